"""Bounds of sums of numbers from 0 to below 1, operation by operation of a reduction.

A row of numbers is represented by the operations that made it (smtmodel/algorithms/reductions.py); each operation
has a rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from mmaprobe.queries.kernel.arguments import remembered
from mmaprobe.queries.kernel.questions.truncating import truncating_steps
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.smtmodel.algorithms.reductions import Operations, Reduction, in_tree
from mmaprobe.smtmodel.arithmetic.display import finite_value, ulp_of
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model

BELOW_ONE = 0x3F7FFFFF  # the largest f32 below 1
F32 = FORMATS["f32"]
ABOUT = "bounds are known only of sums of exact products in f32 that do not wrap and are only ever truncated"


@dataclass(frozen=True)
class Summands:
    """The numbers that are summed."""

    length: int


@dataclass(frozen=True)
class Operation:
    """An operation on rows, with its other arguments (`parameters`); its result is a row of `length` numbers."""

    name: str
    rows: tuple[Source, ...]
    parameters: tuple[object, ...]
    length: int

    @property
    def shape(self) -> tuple[object, ...]:
        """The operation, and those that made its rows, without lengths and without the places where rows are parted."""
        parameters = () if self.name == "part" else self.parameters
        return self.name, parameters, *(row.shape if isinstance(row, Operation) else () for row in self.rows)


Source: TypeAlias = Summands | Operation


class Recording(Operations[Source]):
    """Records the operations of a reduction."""

    def length(self, numbers: Source) -> int:
        return numbers.length

    def part(self, numbers: Source, start: int, stop: int) -> Source:
        return Operation("part", (numbers,), (start, stop), len(range(numbers.length)[start:stop]))

    def joined(self, first: Source, second: Source) -> Source:
        return Operation("joined", (first, second), (), first.length + second.length)

    def converted(self, source: Format, fmt: Format, numbers: Source) -> Source:
        return Operation("converted", (numbers,), (source, fmt), numbers.length)

    def column_sums(self, unit: Model, shape: tuple[int, int], chain: int, numbers: Source) -> Source:
        side, width = shape
        groups = -(-numbers.length // (chain * side * width))
        return Operation("column_sums", (numbers,), (unit, shape, chain), groups * width)

    def trees(self, fmt: Format, size: int, numbers: Source) -> Source:
        return Operation("trees", (numbers,), (fmt, size), -(-numbers.length // size))

    def in_sequence(self, fmt: Format, numbers: Source) -> Source:
        return Operation("in_sequence", (numbers,), (fmt,), 1)


RECORDING = Recording()


def recorded(reduction: Reduction, numbers: int) -> Source:
    """The operations of a reduction on `numbers` numbers."""
    return reduction.evaluate(RECORDING, Summands(numbers))


@dataclass(frozen=True)
class Bounded:
    """Each number of a row is of this format and from 0 to its bound in `bounds`, whatever the numbers that are summed,
    if these are from 0 to below 1."""

    made: Source
    format: Format
    bounds: tuple[Fraction, ...]

    def statement(self) -> str:
        return f"{self.made.length} numbers of {self.format.name} are at most {max(self.bounds, default=0)}"


@remembered()  # most numbers of a row have one bound
def rounded(value: Fraction, fmt: Format, nearest: bool) -> Fraction:
    """A nonnegative number in a format, to nearest even or down. Raises RuleError beyond its range."""
    unit = ulp_of(value, fmt)
    result = (round(value / unit) if nearest else value // unit) * unit
    if result > fmt.most:
        raise RuleError(f"a sum may exceed the largest {fmt.name}")
    return result


def _of(row: Theorem, name: str, fmt: Format | None = None) -> Bounded:
    goal: Bounded = goal_of(row, Bounded, name)
    if fmt is not None and goal.format != fmt:
        raise RuleError(f"{name}: the numbers are of {goal.format.name}, not of {fmt.name}")
    return goal


def _counted(name: str, *counts: int) -> None:
    """Raises RuleError for a count below 1."""
    if min(counts) < 1:
        raise RuleError(f"{name}: there are {min(counts)} of something that is counted from 1 on")


def _filled(bounds: tuple[Fraction, ...], size: int) -> tuple[Fraction, ...]:
    return bounds + (Fraction(0),) * (-len(bounds) % size)


def _sum(fmt: Format, first: Fraction, second: Fraction) -> Fraction:
    return rounded(first + second, fmt, nearest=True)


@rule
def below_one(numbers: int) -> Made:
    """Numbers of f32 from 0 to below 1 are at most the largest one below 1."""
    _counted("below_one", numbers)
    largest = finite_value(BELOW_ONE, F32)
    assert largest is not None
    return Made(Bounded(Summands(numbers), F32, (largest,) * numbers))


@rule
def parted(row: Theorem, start: int, stop: int) -> Made:
    """A part of a row has its bounds."""
    goal = _of(row, "parted")
    return Made(Bounded(RECORDING.part(goal.made, start, stop), goal.format, goal.bounds[start:stop]), (row,))


@rule
def joined(first: Theorem, second: Theorem) -> Made:
    """Two rows of one format, one after another, have the bounds of both."""
    one, other = _of(first, "joined"), _of(second, "joined")
    if one.format != other.format:
        raise RuleError("joined: the rows are of two formats")
    return Made(Bounded(RECORDING.joined(one.made, other.made), one.format, one.bounds + other.bounds), (first, second))


@rule
def converted(row: Theorem, fmt: Format) -> Made:
    """Rounding to nearest is monotonic: a number in another format is at most its bound there."""
    goal = _of(row, "converted")
    made = RECORDING.converted(goal.format, fmt, goal.made)
    return Made(Bounded(made, fmt, tuple(rounded(bound, fmt, nearest=True) for bound in goal.bounds)), (row,))


@rule
def column_sums(row: Theorem, unit: Model, shape: tuple[int, int], chain: int) -> Made:
    """For nonnegative numbers and a nonnegative addend, a unit that adds exact products and only ever truncates gives a
    number of f32 that is at most their exact sum: at most that sum rounded down. A chain gives at most the exact sum of
    all its numbers rounded down."""
    goal = _of(row, "column_sums", unit.b)
    need_truncation(unit)
    side, width = shape
    _counted("column_sums", side, width, chain)
    group = chain * side * width
    filled, sums = _filled(goal.bounds, group), list[Fraction]()
    for start in range(0, len(filled), group):
        columns = [filled[start + j : start + group : width] for j in range(width)]
        sums += [rounded(sum(column, Fraction(0)), unit.d, nearest=False) for column in columns]
    return Made(Bounded(RECORDING.column_sums(unit, shape, chain, goal.made), unit.d, tuple(sums)), (row,))


def need_truncation(unit: Model) -> None:
    """Raises ParameterError, which names the parameter at fault, for a unit other than those of `ABOUT`."""
    truncating_steps(unit.unit, ABOUT)
    if unit.d != F32 or unit.c != F32:
        raise ParameterError("d", f"{unit.d.name}: {ABOUT}")


def models_of(made: Source) -> Iterator[Model]:
    """The units that operations use."""
    if isinstance(made, Operation):
        yield from (one for one in made.parameters if isinstance(one, Model))
        for row in made.rows:
            yield from models_of(row)


@rule
def trees(row: Theorem, size: int) -> Made:
    """Additions to nearest are monotonic: the sum of the bounds, in the same order, bounds the sum of the numbers."""
    goal = _of(row, "trees")
    _counted("trees", size)
    fmt, filled = goal.format, _filled(goal.bounds, size)
    groups = [filled[k : k + size] for k in range(0, len(filled), size)]
    sums = tuple(in_tree(lambda x, y: _sum(fmt, x, y), group) for group in groups)
    return Made(Bounded(RECORDING.trees(fmt, size, goal.made), fmt, sums), (row,))


@rule
def in_sequence(row: Theorem) -> Made:
    """Additions to nearest, one after another: as in a tree."""
    goal = _of(row, "in_sequence")
    _counted("in_sequence", len(goal.bounds))
    running, *rest = goal.bounds
    for bound in rest:
        running = _sum(goal.format, running, bound)
    return Made(Bounded(RECORDING.in_sequence(goal.format, goal.made), goal.format, (running,)), (row,))


@dataclass(frozen=True)
class NeverOverflows:
    """The sum of up to `numbers` numbers from 0 to below 1 is finite."""

    reduction: Reduction
    numbers: int

    def statement(self) -> str:
        return f"no sum of {self.numbers} numbers from 0 to below 1, or of fewer, overflows"


@rule
def never_overflows(reduction: Reduction, numbers: int, sums: Sequence[Theorem]) -> Made:
    """The sum of n numbers is finite if it has a bound. If the sum of m > n numbers is made by the same operations, it
    equals that of n numbers when the others are +0: rows are filled with +0, groups of +0 alone have the sum +0, and x
    + 0 is x. So a bound for the largest m of each shape is one for all counts of that shape."""
    starts = []
    for one in sums:
        goal = _of(one, "never_overflows")
        starts.append(_start(goal.made))
        if goal.made != recorded(reduction, starts[-1]):
            raise RuleError("never_overflows: a bound is of other operations")
    count = left_open(reduction, numbers, starts)
    if count is not None:
        raise RuleError(f"never_overflows: nothing is known of {count} numbers")
    return Made(NeverOverflows(reduction, numbers), tuple(sums))


def left_open(reduction: Reduction, numbers: int, starts: Sequence[int]) -> int | None:
    """A count up to `numbers` whose shape of operations is that of no count in `starts` as large or larger; None if
    there is no such count."""
    known: dict[tuple[object, ...], int] = {}
    for start in starts:
        shape = _shape(recorded(reduction, start))
        known[shape] = max(start, known.get(shape, 0))
    largest = largest_counts(reduction, numbers)
    return next((count for shape, count in largest.items() if known.get(shape, 0) < count), None)


@remembered()
def largest_counts(reduction: Reduction, numbers: int) -> dict[tuple[object, ...], int]:
    """For each shape of operations, the largest count up to `numbers` that has it."""
    return {_shape(recorded(reduction, count)): count for count in range(1, numbers + 1)}


def _start(made: Source) -> int:
    """How many numbers are summed."""
    return made.length if isinstance(made, Summands) else _start(made.rows[0])


def _shape(made: Source) -> tuple[object, ...]:
    return made.shape if isinstance(made, Operation) else ()
