"""Checks a tree of theorems about a unit: every side condition and conclusion of every rule, by itself.

The tree is a document of plain data (queries/tactics/written.py says what is in it). The rules, by what they are about:
node_rules.py, part_rules.py, loop_rules.py, result_rules.py, share_rules.py, sign_rules.py, rise_rules.py,
alike_rules.py and rewrite_rules.py. Their statements are those of the docstrings of queries/proof, written a second
time: none of these files, nor goals.py, document.py, magnitudes.py or term_ranges.py, on which they rest, shares code
with what found or wrote the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, ClassVar

from queries.certificates.alike_rules import LEMMAS, congruent, followed, looped, results_alike, rewritten
from queries.certificates.document import Document, Rule
from queries.certificates.goals import Goal, read_goal
from queries.certificates.loop_rules import Step, carried, chained, closed, repeated
from queries.certificates.magnitudes import FaultError, decimal_text, form_text, need, read_form
from queries.certificates.node_rules import (
    assumed,
    constant,
    cut,
    element,
    exact,
    fused,
    grid,
    literal,
    product,
    rounded,
    scale,
    segment,
    unchanged,
)
from queries.certificates.part_rules import part, rejoined
from queries.certificates.result_rules import loosened, summed, truncated, weakened, whole
from queries.certificates.rise_rules import rises
from queries.certificates.share_rules import (
    after_addition,
    after_instruction,
    begins,
    from_here,
    near_each_other,
    near_the_sum,
)
from queries.certificates.sign_rules import turned


def lemma(tree: Document, goal: Goal, premises: Sequence[int], theorem: Any) -> None:
    """A lemma about the datapath: what the file that it names proves, which is checked separately."""
    kinds = ("AlignmentLoses", "RoundingLoses", "TruncationKeeps", "RoundsOpposite",
             "RoundingRises", "RoundingScales", "WordIsSmall", "WordsLeave", "ZerosGiveZero", *LEMMAS)  # fmt: skip
    need(goal.kind in kinds and not premises, "it is not a lemma about the datapath")
    need(isinstance(theorem.get("leaf"), str), "no file is named that shows it")


RULES: dict[str, Rule] = {rule.__name__: rule for rule in (
    element, segment, constant, literal, assumed, product, unchanged, scale, exact, fused, grid, cut, rounded, whole,
    part, rejoined, weakened, repeated, chained, closed, carried, summed, truncated, loosened, turned,
    rises,
    begins, from_here, after_instruction, after_addition, near_the_sum, near_each_other,
    rewritten, followed, congruent, looped, results_alike,
)} | {"settled": lemma, "exhausted": lemma}  # fmt: skip


#: the kinds of goals that are about the result, whatever they say
FINAL = {"Carried", "Closed", "Chained", "BoundInUnits", "Within", "ZerosGiveZero", "Rises", "SameResults"}


class Tree(Document):
    """A document whose theorems are checked one after another."""

    rules: ClassVar[Mapping[str, Rule]] = RULES

    def check(self) -> Iterator[tuple[int, str]]:
        """The faults found: the number of the theorem and what is wrong with it."""
        if not self.states:
            yield -1, "it states nothing"
        for number, theorem in enumerate(self.theorems):
            try:
                self.goals.append(Goal("unreadable"))
                self.goals[-1] = goal = read_goal(theorem["goal"])
                premises = theorem["premises"]
                need(all(type(p) is int and 0 <= p < number for p in premises), "a premise is not before it")
                need(theorem["rule"] in self.rules, "there is no such rule")
                self.rules[theorem["rule"]](self, goal, premises, theorem)
            except FaultError as fault:
                yield number, f"{theorem['rule']}: {fault}"
            except (KeyError, ValueError, TypeError, IndexError, ZeroDivisionError) as error:
                yield number, f"cannot be read: {type(error).__name__} {error}"
        used = {premise for theorem in self.theorems for premise in theorem["premises"]} | set(self.states)
        yield from ((number, "nothing rests on it") for number in range(len(self.theorems)) if number not in used)
        for number in self.states:
            if not (type(number) is int and 0 <= number < len(self.goals)):
                yield -1, "what is stated is not a theorem of it"
            elif not self.final(self.goals[number]):
                yield number, "it is stated, but is not a bound of the result"

    def final(self, goal: Goal) -> bool:
        """Whether a goal is about the result and has no assumptions."""
        whole = goal.node == self.unit["result"] and not goal.assuming and not goal.places
        if goal.kind == "Turns":
            found = goal.parts
            return found["node"] == self.unit["result"] and found["turns"] is True and not found["assuming"]
        return (goal.kind == "Enclosed" and whole) or goal.kind in FINAL


# -- statements in words


def statement_text(tree: Tree, number: int) -> str:
    """A theorem about the result, on one line."""
    goal, where = tree.goals[number], where_text(tree.nodes)
    if goal.kind == "Chained":
        step = Step.read(goal.parts["step"])
        own = form_text(step.own)
        grown = f"(1 + {decimal_text(step.growth - 1)}) E" if step.growth > 1 else "E"
        kept = f" + {decimal_text(step.part)} A" * bool(step.part)
        return f"an instruction takes E, the error of an addend of magnitudes A, to {grown}{kept} + {own}{where}"
    if goal.kind == "Closed":
        part, fixed, growth = (Fraction(goal.parts[name]) for name in ("part", "fixed", "growth"))
        terms = [f"{decimal_text(part)} |c|" * bool(part), f"{form_text(read_form(goal.parts['products']))} of each"]
        terms += [decimal_text(fixed)] if fixed else []
        rate = f"1 + g + ... + g^(n-1), g = 1 + {decimal_text(growth - 1)}" if growth > 1 else "n"
        return f"after n instructions |d - exact| <= G ({' + '.join(filter(None, terms))}), G = {rate}{where}"
    if goal.kind == "Turns":
        return "negating every a and c negates d, as a value: a zero has any sign"
    if goal.kind == "SameResults":
        return f"d is that of another expression, node {goal.parts['other']}, on all inputs"
    if goal.kind == "Rises":
        what = "c" if goal.parts["raised"] is None else f"product {goal.parts['raised']}"
        return f"d does not fall when {what} rises{', no number of a and b being subnormal' * goal.parts['normal']}"
    if goal.kind == "BoundInUnits":
        last = "ulp(d)" if goal.parts["apart"] else "max(u, ulp(d))"
        return f"|d - exact| <= {goal.parts['units']} u + {last}, where inputs are finite: u = 2^(m - F)"
    if goal.kind == "Within":
        what = "the error is" if len(goal.parts["values"]) == 1 else "two results differ by"
        return (
            f"{what} at most {decimal_text(Fraction(goal.parts['share']))} of the sum of magnitudes, if that is not 0"
        )
    if goal.kind == "ZerosGiveZero":
        return f"of {goal.parts['count']} products with zeros, and of a zero, the unit makes a zero"
    if goal.kind == "Carried":
        error = form_text(read_form(goal.parts["error"]))
        return f"after {goal.parts['count']} instructions |d - exact| <= {error}{where}"
    assert goal.facts is not None
    return f"|d - exact| <= {form_text(goal.facts.error)}{where}"


def where_text(nodes: Iterable[Mapping[str, Any]]) -> str:
    """For which inputs a bound of units that have these nodes holds."""
    nodes = list(nodes)
    limits = {node["limit"] for node in nodes if node["kind"] == "product" and node["limit"] is not None}
    flushes = any(node["kind"] == "element" and node["subnormals"] != "keep" for node in nodes)
    found = [f"no product reaches 2^{limit}" for limit in sorted(limits)]
    found += ["exact is the sum of the inputs as read, subnormals as zero"] if flushes else []
    return ", ".join([", where inputs are finite", "no rounding overflows", *found])
