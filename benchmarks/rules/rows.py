"""Instances of the rules about rows of numbers that are summed, and about cases that no input of a unit reaches.

Rows are evaluated in binary64, which holds sums of two numbers of f32 and of smaller formats before they are rounded
again; matrix instructions by the datapath, on numbers near the bounds.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from benchmarks.rules.campaign import Campaign
from benchmarks.rules.lemmas import Truths
from benchmarks.rules.numbers import Encoding, Lanes, Unchecked
from benchmarks.rules.properties import tiny_unit
from benchmarks.statements import grid_of
from mmaprobe.queries.kernel.cases.conditions import Met, conditions_of, hangs
from mmaprobe.queries.kernel.cases.unreachable import Unreachable
from mmaprobe.queries.kernel.integers.rows import BELOW_ONE, Bounded, NeverOverflows, Source, Summands, largest_counts
from mmaprobe.queries.kernel.questions.problem import Problem, evaluate_on
from mmaprobe.queries.kernel.theorem import RULES, Theorem
from mmaprobe.queries.solvers.asking import Engines
from mmaprobe.smtmodel.algorithms import parse_reduction, sum_of_array
from mmaprobe.smtmodel.algorithms.reductions import Operations, Reduction, in_tree
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format, format_named
from mmaprobe.smtmodel.carriers.algebra import truth
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch, to_integers
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.oracles import oracle

UNITS = ("volta/mma/m8n8k4.f32.f16.f16.f32", "hopper/mma/m16n8k8.f32.f16.f16.f32", "ieee/fma/f32.f16.f16.f32",
         "ampere/mma/m16n8k8.f32.bf16.bf16.f32", "volta/mma/m8n8k4.f16.f16.f16.f16")  # fmt: skip
REDUCTIONS = ("warp-shuffle@warps=2", "warp-shuffle@format=f16,warps=2", "recurrence@side=2,chain=1",
              "single-pass@side=2,chain=2,warps=1", "single-pass@side=2,chain=1,columns=outside",
              "split@side=2,share=30,warps=1")  # fmt: skip
F32 = FORMATS["f32"]


class Overflowed(Exception):  # noqa: N818 - of which bounds say nothing
    """A number beyond a format's range."""


def rounded(x: Lanes, fmt: Format) -> Lanes:
    """To nearest even."""
    patterns, over = Encoding.of(fmt).rounded(np.where(x > 0, x, 1.0), x < 0, Rounding(fmt))
    if (over & (x > 0)).any():
        raise Overflowed
    return np.where(x > 0, [float(oracle.decode(fmt.name, int(pattern)).value) for pattern in patterns], 0.0)


def row_of(made: Source, given: Lanes) -> Lanes:
    """The row that operations make of numbers."""
    if isinstance(made, Summands):
        return given[: made.length]
    first, *others = (row_of(row, given) for row in made.rows)
    parameters: Any = made.parameters
    match made.name:
        case "part":
            return first[parameters[0] : parameters[1]]
        case "joined":
            return np.concatenate([first, *others])
        case "converted":
            return rounded(first, parameters[1])
        case "column_sums":
            return _column_sums(*parameters, first)
        case "trees":
            fmt, size = parameters
            groups = np.pad(first, (0, -len(first) % size)).reshape(-1, size)
            return np.array([in_tree(lambda x, y: _plus(fmt, x, y), list(group)) for group in groups])
        case "in_sequence":
            running = first[0]
            for x in first[1:]:
                running = _plus(parameters[0], running, x)
            return np.array([running])
    raise TypeError(made.name)


def _plus(fmt: Format, x: float, y: float) -> float:
    return float(rounded(np.array([x + y]), fmt)[0])


def _column_sums(unit: Model, shape: tuple[int, int], chain: int, numbers: Lanes) -> Lanes:
    """Ones times matrices, tile by tile of the unit."""
    side, width = shape
    if not len(numbers):
        return numbers
    matrices = np.pad(numbers, (0, -len(numbers) % (chain * side * width))).reshape(-1, chain * side, width)
    columns = matrices.transpose(0, 2, 1).reshape(-1, chain * side)
    patterns = np.array([[oracle.encode(unit.b.name, False, oracle.mpq(x), "nearest_even") for x in column]
                         for column in columns], dtype=np.uint64)  # fmt: skip
    running = np.zeros(len(columns), dtype=np.uint64)
    for matrix in range(chain):
        for start in range(0, side, unit.length):
            own = patterns[:, matrix * side + start : matrix * side + min(side, start + unit.length)]
            running = evaluate_batch(unit, np.full(own.shape, unit.a.one, dtype=np.uint64), own, running)
    return np.array([float(oracle.decode(unit.d.name, int(pattern)).value) for pattern in running])


def bounded(goal: Bounded, rng: random.Random) -> Iterator[str]:
    count = _count(goal.made)
    drawn = np.random.default_rng(rng.getrandbits(32))
    for below in (0, 1 << 10, 1 << 23, 1 << 29):
        patterns = np.uint32(BELOW_ONE) - drawn.integers(0, below + 1, count).astype(np.uint32)
        try:
            found = row_of(goal.made, patterns.view(np.float32).astype(np.float64))
        except Overflowed:
            yield "a number is beyond the format's range"
            return
        if len(found) != len(goal.bounds) or len(found) != goal.made.length:
            yield "another length"
        for number, most in zip(found, goal.bounds, strict=False):
            if not 0 <= number <= float(most):
                yield f"{number} is above {float(most)}"


def _count(made: Source) -> int:
    return made.length if isinstance(made, Summands) else max(map(_count, made.rows))


def never_overflows(goal: NeverOverflows, rng: random.Random) -> Iterator[str]:
    yield from (
        f"{count} numbers overflow" for count in range(1, goal.numbers + 1) if _overflows(goal.reduction, count)
    )


@cache
def _overflows(reduction: Reduction, count: int) -> bool:
    found = sum_of_array(reduction, np.full(count, BELOW_ONE, dtype=np.uint32))
    return isinstance(exact_value(found, reduction.result_format), str)


class _Called(Operations[Any]):
    """Each operation as a call of its rule; None where one refuses."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign

    def length(self, numbers: Theorem | None) -> int:
        return 1 if numbers is None else int(numbers.goal.made.length)  # type: ignore[attr-defined]

    def part(self, numbers: Any, start: int, stop: int) -> Any:
        return None if numbers is None else self.campaign.call("parted", numbers, start, stop)

    def joined(self, first: Any, second: Any) -> Any:
        return None if first is None or second is None else self.campaign.call("joined", first, second)

    def converted(self, source: Format, fmt: Format, numbers: Any) -> Any:
        return None if numbers is None else self.campaign.call("converted", numbers, fmt)

    def column_sums(self, unit: Model, shape: tuple[int, int], chain: int, numbers: Any) -> Any:
        return None if numbers is None else self.campaign.call("column_sums", numbers, unit, shape, chain)

    def trees(self, fmt: Format, size: int, numbers: Any) -> Any:
        return None if numbers is None else self.campaign.call("trees", numbers, size)

    def in_sequence(self, fmt: Format, numbers: Any) -> Any:
        return None if numbers is None else self.campaign.call("in_sequence", numbers)


@cache
def unit_named(reference: str) -> Model:
    return parse_reference(reference)


def instances(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """Operations on rows, one after another, at random; then the sums of a reduction."""
    call = campaign.call
    found = call("below_one", rng.randint(1, 12))
    for _ in range(5):
        if found is None:
            break
        goal: Any = found.goal
        length, kind = goal.made.length, rng.randrange(6)
        other: Theorem | None = None
        if kind == 0:
            start = rng.randrange(length)
            other = call("parted", found, start, rng.randint(start + 1, length))
        elif kind == 1:
            second = call("below_one", rng.randint(1, 4))
            other = None if second is None else call("joined", found, second)
            call("joined", found, found)
        elif kind == 2:
            some = ("f16", "bf16", "f32", "e3m2", "e2m3", "e2m1", "e4m1_none", "f16")
            other = call("converted", found, format_named(rng.choice(some)))
        elif kind == 3:
            unit = unit_named(rng.choice(UNITS))
            other = call("column_sums", found, unit, (rng.choice((2, 4, 8)), rng.choice((1, 2))), rng.choice((1, 2)))
        elif kind == 4:
            other = call("trees", found, rng.choice((1, 2, 3, 4)))
        else:
            other = call("in_sequence", found)
        call("parted", found, rng.randrange(length), length)
        if other is not None and other.goal.made.length:  # type: ignore[attr-defined]
            found = other
    if rng.random() < 0.5:
        _reduced(campaign, parse_reduction(rng.choice(REDUCTIONS)), rng)


def _reduced(campaign: Campaign, reduction: Reduction, rng: random.Random) -> None:
    numbers = rng.randint(1, 20)
    counts = list(largest_counts(reduction, numbers).values())
    sums = [reduction.evaluate(_Called(campaign), RULES["below_one"](count)) for count in counts]
    every = [one for one in sums if one is not None]
    for _ in range(4):
        some = rng.sample(every, rng.randint(max(0, len(every) - 1), len(every)))
        if rng.random() < 0.2:
            some.append(RULES["below_one"](3))
        campaign.call("never_overflows", reduction, rng.randint(1, numbers), some)


# -- cases that no input reaches


def met_on_all_inputs(model: Model) -> tuple[Met, int]:
    """Which inputs of a unit, of all, reach its conditions, and how many inputs there are."""
    problem = Problem(model, model)
    layout = problem.layout
    table = grid_of([range(1) if place in layout.unread else range(1 << fmt.width)
                     for place, fmt in enumerate(layout.formats)])  # fmt: skip
    carrier = ArrayCarrier()
    lanes = [carrier.lanes(np.ascontiguousarray(table[:, at]), fmt.width) for at, fmt in enumerate(layout.formats)]
    operands = layout.split(lanes)
    with np.errstate(over="ignore"):
        evaluation = evaluate_on(model, operands)
        flags, yes = conditions_of(model, layout, operands, evaluation), truth(carrier, True)
        reached = {one: flag if one.flaw is None else flag & hangs(model, operands, evaluation.d, {one.flaw: yes})
                   for one, flag in flags.items()}  # fmt: skip
        return reached, len(table)


def unreachable(goal: Unreachable, rng: random.Random) -> Iterator[str]:
    flags, count = met_on_all_inputs(goal.model)
    if any(one not in flags for case in goal.cases for one in case):
        raise Unchecked  # a case of another unit
    for case in goal.cases:
        met = np.logical_and.reduce([to_integers(flags[one], count) != 0 for one in case])
        if met.any():
            yield f"input {int(np.argmax(met))} reaches a case"


def cases(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """Cases of a unit, alone and together, each of which an input reaches or none."""
    model = Model("unit", tiny_unit(rng))
    other = Model("other", tiny_unit(rng))
    flags, count = met_on_all_inputs(model)
    every = list(flags)
    met = {one: to_integers(flags[one], count) != 0 for one in every}
    none = [one for one in every if not met[one].any()]
    engines = Engines("bitwuzla", 20.0)
    found = []
    for _ in range(6):
        some = tuple(rng.sample(every, 1)) if rng.random() < 0.3 or not none else (rng.choice(none),)
        if rng.random() < 0.3:
            some = (*some, rng.choice(every))
        theorem = campaign.call("refuted", Unreachable(model, (some,)), engines)
        found += [] if theorem is None else [(some, theorem)]
    for case, theorem in found:
        wider = (*case, rng.choice(every))
        campaign.call("implied", Unreachable(model, (wider, case)), theorem)
        campaign.call("implied", Unreachable(model, ((rng.choice(every),),)), theorem)
        campaign.call("implied", Unreachable(model, (wider, case[:-1])), theorem)
        campaign.call("implied", Unreachable(other, (case,)), theorem)


MEANINGS = {Bounded: bounded, NeverOverflows: never_overflows, Unreachable: unreachable}
