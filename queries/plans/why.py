"""Why two plans are equal, in words: the rules by which a theorem was made."""

from __future__ import annotations

from collections.abc import Iterator

from mmaprobe.queries.kernel.equality.plan_units import FormsAgree
from mmaprobe.queries.kernel.equality.plans import PlansAgree
from mmaprobe.queries.kernel.equality.stages import StagesAgree
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.plans.partitions import All
from mmaprobe.smtmodel.plans.stages import Parted, parts_of

FINE = ", without roundings that lose nothing"
#: the argument `form` of the rule `same_forms` -> what the sentence adds about the normal form
FORMS = {"plain": "", "read": ", where results so far are read as they are", "joined": FINE, "positive": FINE}


def lines_of(theorem: Theorem, depth: int = 0) -> Iterator[str]:
    """Lines about the rule that made a theorem, and, indented below, about the rules of its premises."""
    within = theorem.premises if theorem.rule in ("same_sums", "same_parts", "same_bodies") else ()
    goal = theorem.goal
    plain = isinstance(goal, PlansAgree) or (isinstance(goal, StagesAgree) and parts_of(goal.one, All) is not None)
    if not plain or len(within) != 1:  # a plan or an undivided stage with one premise has no line of its own
        yield "  " * depth + _line(theorem)
        depth += 1
    for premise in within:
        yield from lines_of(premise, depth)


def _line(theorem: Theorem) -> str:
    goal = theorem.goal
    if isinstance(goal, StagesAgree):
        if theorem.rule == "same_bodies":
            return "the same products by stages one after another, each one equal"
        if theorem.rule == "same_parts":
            parted = goal.one if theorem.premises else None
            return parted.partition.equal_words(parted) if isinstance(parted, Parted) else "the same stage"
        so_far = "sum so far, which is never -0," if _is_positive(theorem.premises[0]) else "sum so far"
        form = _form(theorem.premises[0])
        has = "is proved equal" if form is None else f"has {form}"
        return f"induction: a step of {goal.multiples} products from any {so_far} {has}"
    assert isinstance(goal, PlansAgree)
    if theorem.rule == "same_factors":
        words = sorted({one.word for one in theorem.premises})
        return f"the same scale factors for every largest magnitude of a block: {', '.join(words)}"
    if theorem.rule == "same_integers":
        return f"K = {goal.length}: exact sums of products of the same integers"
    if theorem.rule == "same_sums":
        return "each sum of all products"
    form = _form(theorem.premises[0])
    if theorem.rule == "same_units":
        return f"proved as units of {goal.length} products" if form is None else f"K = {goal.length}: {form}"
    stage = goal.left.sums[0].stage
    rest = goal.length % stage.period
    tiles = f"K = {goal.length}: the same {goal.length - rest} products in tiles"
    left = f"{tiles}; with {counted(rest, 'product')} left over"
    so_far = "from any sum that tiles make"
    return f"{left}, proved equal {so_far}" if form is None else f"{left}, {so_far}, {form}"


def _form(alike: Theorem) -> str | None:
    """The form by which two units are proved to agree, in words; None if solvers proved that they agree."""
    return f"one normal form{FORMS[str(alike.arguments['form'])]}" if alike.rule == "same_forms" else None


def _is_positive(alike: Theorem) -> bool:
    return isinstance(alike.goal, FormsAgree) and alike.goal.positive
