"""The differences between two plans, in words."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from functools import lru_cache

from mmaprobe.queries.plans.candidates import likelihood
from mmaprobe.queries.plans.results import PlansOfResult
from mmaprobe.reports.plan_sheet import stage_words
from mmaprobe.smtmodel.arithmetic.display import number_text
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.nodes import Element, Literal, Relu, Round
from mmaprobe.smtmodel.nodes.node import of_kind
from mmaprobe.smtmodel.nodes.normal import normal
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.joins import rounding_words
from mmaprobe.smtmodel.plans.partitions import Equal, Interleaved
from mmaprobe.smtmodel.plans.span import Span
from mmaprobe.smtmodel.plans.stages import Parted

C = "C:"  # key of the place where C is added
LOOKED = 12  # the most plans of each result that are compared with those of the other


def products_left_out(results: Sequence[PlansOfResult]) -> list[str]:
    """A sentence on the difference between the products that two results contain; none if both contain the same."""
    texts = ["; ".join(one.products.sentences()) or "all are added once" for one in results]
    return [f"of the products, {texts[0]} (D1); {texts[1]} (D2)"] if texts[0] != texts[1] else []


def most_alike(ones: Sequence[Plan], others: Sequence[Plan], with_c: bool, length: int) -> tuple[Plan, Plan] | None:
    """The pair of plans, one of each side, with the fewest differences; of several such pairs the pair with the
    likeliest units, then the pair whose references differ least. None if a side has no plan. `with_c`: the products had
    a C; `length`: their K, at which a plan named has all the runs that it says, if there is such a plan."""
    ones, others = ([plan for plan in side if _has_all_runs(plan, length)] or side for side in (ones, others))
    pairs = [(one, other) for one in ones[:LOOKED] for other in others[:LOOKED]]

    def apart(pair: tuple[Plan, Plan]) -> tuple[int, int, int]:
        one, other = (plan.reference for plan in pair)
        alike = sum(block.size for block in SequenceMatcher(None, one, other, False).get_matching_blocks())
        unlikely = sum(likelihood(model) for plan in pair for model in plan.models)
        return len(why_they_differ(*pair, with_c)), unlikely, len(one) + len(other) - 2 * alike

    return min(pairs, key=apart, default=None)


def _has_all_runs(plan: Plan, length: int) -> bool:
    """Whether a sum in a number of equal runs, or in turns of accumulators, has as many of these for K = `length`."""
    for stage in (products.stage for products in plan.sums):
        if isinstance(stage, Parted) and isinstance(divided := stage.partition, (Equal, Interleaved)):
            with suppress(ParameterError):
                if len(divided.cut(Span.of(length), stage).parts) < divided.ways:
                    return False
    return True


def why_they_differ(one: Plan, other: Plan, with_c: bool) -> list[str]:
    """The differences between two plans, one sentence each. `with_c`: the products had a C."""
    ways = zip(_ways(one).items(), _ways(other).values(), strict=True)
    return [f"{what} {left} (D1); {right} (D2)" for (what, (key, left)), (other_key, right) in ways
            if key != other_key and left != right and (with_c or what != C)]  # fmt: skip


@lru_cache(maxsize=2 * LOOKED)
def _ways(plan: Plan) -> dict[str, tuple[object, str]]:
    """The respects in which plans may differ -> this plan's value, for comparison with other plans, and the value in
    words."""
    taken = [f"rounded to {rounding_words(how)}" if how else "taken as they are"
             for how in (plan.convert_a, plan.convert_b)]  # fmt: skip
    factors = [number_text(node.pattern, node.format) for node in of_kind(plan.result, Literal)]
    result = f"the sum times {', c times '.join(factors)}" if factors else "the sum"
    result += ", but zero for those below zero" if any(of_kind(plan.result, Relu)) else ""
    starts = any(isinstance(products.start, Element) for products in plan.sums)
    uses = added = any(of_kind(plan.result, Element))
    for number, node in enumerate(of_kind(plan.result, Round)):
        if added and len(factors) < 2 and any(of_kind(node, Element)):
            result, added = f"{result}{', and c' if number else ' and c'}", False
        result += f", {'then ' if number else ''}rounded to {rounding_words(node.rounding)}"
    words = {
        "the inputs are": taken[0] if taken[0] == taken[1] else f"{taken[0]} (A) and {taken[1]} (B)",
        "the unit is": " and ".join(model.reference for model in plan.models),
        "the sum of the products:": "; ".join(str(one) for own in plan.sums for one in stage_words(own.stage)),
        C: "the first sum begins with it" if starts else "added at the end" if uses else "not used",
        "the result is": result,
    }
    arithmetics = [(model.length, normal(model.unit.result)) for model in plan.models]  # a unit may have two names
    return {what: (arithmetics if what == "the unit is" else text, text) for what, text in words.items()}
