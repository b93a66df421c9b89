"""Two plans, one of each of two results, that differ least; and which of their differences change the results."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from itertools import combinations, product

from mmaprobe.queries.plans.candidates import Candidates, likelihood, rounds_integers, with_unit
from mmaprobe.queries.plans.forms import named
from mmaprobe.queries.plans.recorded import Recorded
from mmaprobe.queries.plans.results import PlansOfResult
from mmaprobe.reports.plan_differences import (
    INPUTS,
    RESULT,
    SUM,
    UNIT,
    C,
    Respects,
    products_left_out,
    respects_of,
    why_they_differ,
)
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.interrupts import CutShort, state
from mmaprobe.smtmodel.nodes import Constant, Element
from mmaprobe.smtmodel.nodes.rewriting import replaced
from mmaprobe.smtmodel.plans import Plan, Products
from mmaprobe.smtmodel.plans.partitions import Equal, Interleaved
from mmaprobe.smtmodel.plans.span import Span
from mmaprobe.smtmodel.plans.stages import Parted

LOOKED = 32  # the most plans of each result that are paired where they are alike in the same respects
BETWEEN = ", (?:then )?"  # what stands between two steps in words
IDLE = "; this alone changes none of these elements"


@dataclass(frozen=True)
class Pair:
    """A plan of each of two results, and sentences on their differences: first the difference that changes the most
    elements."""

    plans: tuple[Plan, Plan]
    why: list[str]


def nearest_pair(given: Sequence[PlansOfResult], recorded: Recorded, places: Sequence[tuple[int, int]]) -> Pair | None:
    """The pair of plans, one of each result, that differ in the fewest respects; None if a result has no plan. Where
    they differ in several, each plan is given the other's part, and keeps it if it still gives all of its result.
    `places`: the row and column of elements in which the results differ."""
    with_c = recorded.asked.addend
    plans = most_alike(given[0].plans, given[1].plans, with_c, recorded.length)
    if plans is None:
        return None
    why = why_they_differ(*plans, with_c)
    if len(why) > 1 and not any(one.products for one in given):
        with suppress(CutShort):
            exchange = _Exchange(recorded, places)
            plans = exchange.nearer(plans)
            why = why_they_differ(*plans, with_c)  # kept if the time ends before these are weighed
            why = exchange.weighed(plans)
    return Pair(plans, [*products_left_out(given), *why.values()])


def most_alike(ones: Sequence[Plan], others: Sequence[Plan], with_c: bool, length: int) -> tuple[Plan, Plan] | None:
    """The pair of plans, one of each side, that differ in the fewest respects; of several such pairs one that does not
    round sums of integers, then the one with the likeliest units, then the one that differs in the fewest steps. None
    if a side has no plan. `with_c`: the products had a C; `length`: their K, at which a plan named has all the runs
    that it says, if there is such a plan."""
    sides = [[plan for plan in side if _has_all_runs(plan, length)] or side for side in (ones, others)]
    respects = {plan: respects_of(plan, with_c) for side in sides for plan in side}
    every = list(next(iter(respects.values()), ()))
    for count in range(len(every), -1, -1):
        pairs = [pair for alike in combinations(every, count) for pair in _alike(sides, respects, alike)]
        if pairs:
            likely = min(map(_unlikely, pairs))
            return min((pair for pair in pairs if _unlikely(pair) == likely), key=partial(_steps_apart, respects))
    return None


def _alike(
    sides: Sequence[Sequence[Plan]], respects: Mapping[Plan, Respects], alike: Sequence[str]
) -> Iterator[tuple[Plan, Plan]]:
    """Pairs of plans that are alike in some respects: of plans that all are so, the first ones of each side."""
    groups: list[defaultdict[object, list[Plan]]] = [defaultdict(list), defaultdict(list)]
    for group, side in zip(groups, sides, strict=True):
        for plan in side:
            group[tuple(respects[plan][what][0] for what in alike)].append(plan)
    for key, some in groups[0].items():
        yield from product(some[:LOOKED], groups[1].get(key, [])[:LOOKED])


def _unlikely(pair: tuple[Plan, Plan]) -> tuple[bool, int]:
    return any(map(rounds_integers, pair)), sum(likelihood(model) for plan in pair for model in plan.models)


def _steps_apart(respects: Mapping[Plan, Respects], pair: tuple[Plan, Plan]) -> int:
    """The number of steps that one of two plans has and the other has not, those of the sums of products aside: of
    these the shortest plans come first."""
    one, other = (
        [step for what, (_, text) in respects[plan].items() if what != SUM for step in re.split(BETWEEN, text)]
        for plan in pair
    )
    alike = sum(block.size for block in SequenceMatcher(None, one, other, False).get_matching_blocks())
    return len(one) + len(other) - 2 * alike


def _has_all_runs(plan: Plan, length: int) -> bool:
    """Whether a sum in a number of equal runs, or in turns of accumulators, has as many of these for K = `length`."""
    for stage in (products.stage for products in plan.sums):
        if isinstance(stage, Parted) and isinstance(divided := stage.partition, (Equal, Interleaved)):
            with suppress(ParameterError):
                if len(divided.cut(Span.of(length), stage).parts) < divided.ways:
                    return False
    return True


class _Exchange:
    """Plans of two results that are given parts of each other, and evaluated on recorded elements: those in which the
    results differ, and those that every plan found gives."""

    def __init__(self, recorded: Recorded, places: Sequence[tuple[int, int]]) -> None:
        self._recorded, self._candidates = recorded, Candidates(recorded.asked)
        differing = recorded.elements([row for row, _ in places], [column for _, column in places])
        self._samples = [differing, *recorded.parts()]

    def nearer(self, plans: tuple[Plan, Plan]) -> tuple[Plan, Plan]:
        """Two plans after each exchange with which they still give their results, and differ in fewer respects. A plan
        that rounds sums of integers takes the part of one that does not, if it can."""
        why, sides = self._why(plans), sorted((0, 1), key=lambda side: not rounds_integers(plans[side]))
        for what, side in product(why, sides):
            own = with_part(plans[side], plans[1 - side], what)
            pair = plans if own is None else (own, plans[1]) if side == 0 else (plans[0], own)
            if len(self._why(pair)) < len(why) and self._changed(pair[side], side, whole=False) == 0:
                return self.nearer(pair)
        return plans

    def weighed(self, plans: tuple[Plan, Plan]) -> dict[str, str]:
        """The sentences on the differences of two plans, by respect: first the difference that changes the most
        elements, as one plan is given the other's part."""
        why = self._why(plans)
        if len(why) < 2:
            return why
        counts = dict[str, int | None]()
        for what in why:
            own = [with_part(plans[side], plans[1 - side], what) for side in (0, 1)]
            changed = [self._changed(plan, side) for side, plan in enumerate(own) if plan is not None]
            counts[what] = max((count for count in changed if count is not None), default=None)
        ranked = sorted(why, key=lambda what: -(counts[what] or 0))
        return {what: f"{why[what]}{IDLE if counts[what] == 0 else ''}" for what in ranked}

    def _why(self, plans: tuple[Plan, Plan]) -> dict[str, str]:
        return why_they_differ(*plans, self._recorded.asked.addend)

    def _changed(self, plan: Plan, side: int, whole: bool = True) -> int | None:
        """How many elements of a result a plan does not give, or, if not `whole`, whether there are any; None if it
        cannot be evaluated, or the time is over."""
        changed = 0
        for samples in self._samples:
            if state.ended or (results := self._candidates.results(plan, samples[side])) is None:
                return None
            changed += self._candidates.differing(results, samples[side])
            if changed and not whole:
                break
        return changed


def with_part(plan: Plan, other: Plan, what: str) -> Plan | None:
    """A plan with the part of another one that a respect is about; None if the part does not fit, or a plan has several
    sums, or words. For the sum of the products this is the whole stage, its unit included; C and the result are one
    part."""
    if not (_is_plain(plan) and _is_plain(other)):
        return None
    read, ended = other if what == INPUTS else plan, other if what in (C, RESULT) else plan
    stage = plan.sums[0].stage
    with suppress(ParameterError):
        if what == UNIT and len(plan.models) == len(other.models) == 1:
            stage = with_unit(stage, plan.models[0], other.models[0])
        elif what in (UNIT, SUM):
            stage = other.sums[0].stage
        total = Products(stage, ended.sums[0].start)
        result = replaced(ended.result, lambda node: total if isinstance(node, Products) else None)
        return named(Plan(plan.a, plan.b, plan.c, result, read.convert_a, read.convert_b))
    return None


def _is_plain(plan: Plan) -> bool:
    """Whether a plan has one sum, from zero or c, of elements as they are or converted."""
    whole = all(chain.words == (None, None) for chain in plan.chains)
    return whole and len(plan.sums) == 1 and isinstance(plan.sums[0].start, Constant | Element)
