"""NumPy computes a plan on matrices of bit patterns, a strip of rows of D at a time."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, TypeVar

import numpy as np

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.programs import ARRAYS
from mmaprobe.smtmodel.evaluate.tiles import Elementwise, Matrix, kind_of, numpy_tile
from mmaprobe.smtmodel.nodes import Constant, Element, ExactSum, Node, Product, Round
from mmaprobe.smtmodel.nodes.element import MINUS
from mmaprobe.smtmodel.nodes.given import Given
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.rewriting import replaced
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.operand import NAMED
from mmaprobe.smtmodel.plans.engine import Engine
from mmaprobe.smtmodel.plans.joins import Only
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.span import Span
from mmaprobe.smtmodel.plans.stages import Parted, Stage, Then
from mmaprobe.smtmodel.plans.words import Gathered, Words, factor_over, over_given

# an expression with at most this many inputs is computed at once; otherwise each rounding in it is computed apart
INPUTS = 4


class Formatted(Protocol):
    """Numbers of a format."""

    @property
    def format(self) -> Format: ...


F = TypeVar("F", bound=Formatted)


@dataclass(frozen=True)
class Patterns:
    """A matrix of patterns of a format."""

    matrix: Matrix
    format: Format


class EndedError(Exception):
    """Another thread has ended the computation of this result."""


class Job:
    """A plan with its whole inputs: A and B as the units read them, one matrix for each word.

    `scales`: by name, the scale factors of A (rows x K / block) and B (K / block x columns); empty for units without
    scale factors. `ended`: an event that another thread sets to end the computation; the next tile of a strip then
    raises EndedError.
    """

    def __init__(self, plan: Plan, a: Matrix, b: Matrix, scales: Mapping[str, Matrix] | None = None) -> None:
        self.plan, self.ended = plan, threading.Event()
        self.length = a.shape[1]
        self.gathered = {part: gathered_numbers(part, side, axis)
                      for axis, name, side in ((1, "a", a), (0, "b", b)) for part in plan.gathered
                      if part.operand == name}  # fmt: skip
        self.scales = scales or factors_of(plan, self.length, self.gathered, (1, 0))
        self.a, self.b = (
            {
                word: side if word is None else self.word_matrix(word, Patterns(side, fmt))
                for word in plan.words_read(number)
            }
            for number, (side, fmt) in enumerate(((a, plan.a), (b, plan.b)))
        )

    def word_matrix(self, word: Round, side: Patterns) -> Matrix:
        """A word (an expression over an element) of each element of A or of B."""
        node, read = over_given(word)
        axis = int(read[0].operand == "a") if read else 0
        spread = [
            Patterns(spread_over(self.gathered[part], part.block, self.length, axis), part.given) for part in read
        ]
        return of_matrices(node, [side, *spread]).matrix


@dataclass(frozen=True)
class OwnPattern:
    """A function of bit vectors: the pattern that an element contributes to a gathered number (which is a function of
    the largest one)."""

    part: Gathered

    def __call__(self, pattern: Bits) -> Sequence[Bits]:
        return (self.part.own(pattern),)


def gathered_numbers(part: Gathered, side: Matrix, axis: int) -> Matrix:
    """The patterns of the numbers that `part` gathers along an axis of A or of B: one number of all elements (the axis
    has length one in the result), or one of each block of elements. Zeros fill up the last block."""
    contribution, width = OwnPattern(part), part.given.width
    count = part.block or max(1, side.shape[axis])
    with np.errstate(over="ignore"):
        (each,) = ARRAYS.formed(contribution, contribution, ARRAYS.lanes(side.astype(np.uint64), part.format.width))
        every = np.moveaxis(np.broadcast_to(np.asarray(each.node), side.shape), axis, -1)
        every = np.pad(every, [(0, 0)] * (side.ndim - 1) + [(0, -every.shape[-1] % count)])
        largest = every.reshape(*every.shape[:-1], -1, count).max(axis=-1, initial=0)
        number = part.found(ARRAYS.lanes(largest.astype(np.uint64), width))
    patterns = np.broadcast_to(np.asarray(number.node), largest.shape).astype(kind_of(part.given))
    return np.moveaxis(patterns, -1, axis)


def spread_over(values: Matrix, block: int | None, length: int, axis: int) -> Matrix:
    """The values of blocks along an axis, each repeated for every element of its block, up to `length` elements in
    all. Without blocks, the single value along the axis stays as it is."""
    if not block:
        return values
    return np.take(np.repeat(values, block, axis), range(length), axis)


def factors_of(
    plan: Plan, length: int, gathered: Mapping[Gathered, Matrix], axes: tuple[int, int]
) -> dict[str, Matrix]:
    """By name, the scale factors that a plan computes for the words of A and of B; empty for a plan without such
    factors. `gathered`: the patterns of the plan's gathered numbers. `axes`: the axis of K in the factors of A and of
    B; along it, zeros stand for the zero products that fill up the last tile."""
    scales, unit = dict[str, Matrix](), plan.models[0]
    for name, factor, axis in zip(("scale_a", "scale_b"), plan.factors or (), axes, strict=False):
        node, read = factor_over(factor)
        numbers = np.broadcast_arrays(*(gathered[part] for part in read))
        matrix = of_matrices(node, [Patterns(x, part.given) for x, part in zip(numbers, read, strict=True)]).matrix
        short = -(-length // unit.length) * unit.scales - matrix.shape[axis]
        scales[name] = np.pad(matrix, [(0, short if place == axis else 0) for place in range(matrix.ndim)])
    return scales


def of_matrices(node: Round, given: Sequence[Patterns]) -> Patterns:
    """A rounded expression over `Given` nodes, computed for each element of matrices of one shape."""
    function, fmt = Elementwise(node, tuple(x.format for x in given)), node.rounding.format
    return Patterns(function.of([x.matrix for x in given]).astype(kind_of(fmt), copy=False), fmt)


class Results(Engine[F]):
    """An engine that also computes a plan's result from the sums of its stages and c."""

    c: F

    @abstractmethod
    def elementwise(self, node: Round, given: Sequence[F]) -> F:
        """A rounded expression over `Given` nodes, computed for each element of some values."""

    @abstractmethod
    def zeros(self, fmt: Format, negative: bool) -> F:
        """+0, or -0 if `negative`."""

    @abstractmethod
    def gathered(self, node: Gathered) -> F:
        """The number that a plan gathers from all elements of a row of A or of a column of B."""

    def zero(self, fmt: Format) -> F:
        return self.zeros(fmt, False)

    def value(self, node: Node, count: int) -> F:
        """The value of a node of a plan for `count` products: a sum of products, c, or a rounded node."""
        if isinstance(node, Products):
            start = node.start
            fmt = node.stage.accumulator
            begin = self.zeros(fmt, start.negative) if isinstance(start, Constant) else self.value(start, count)
            return node.stage.run(self, Span.of(count), begin) if count else self._start_alone(node.stage, begin)
        if isinstance(node, Element):
            return self.c
        assert isinstance(node, Round)
        given: list[F] = []
        apart = sum(isinstance(part, (Products, Element, Gathered)) for part in walk(node)) > INPUTS

        def leaf(part: Node) -> Node | None:
            inner = apart and isinstance(part, Round) and part is not node
            if not isinstance(part, (Products, Element, Gathered)) and not inner:
                return None
            given.append(self.gathered(part) if isinstance(part, Gathered) else self.value(part, count))
            return Given(len(given) - 1, given[-1].format)

        return self.elementwise(_round(replaced(node, leaf)), given)

    def _start_alone(self, stage: Stage, start: F) -> F:
        """The result of a stage without products: its start, rounded as the stage rounds sums that need no addition."""
        for body in stage.bodies if isinstance(stage, Then) else ():
            start = self._start_alone(body, start)
        if isinstance(stage, Parted) and stage.join.begin != "zero":
            start = self._start_alone(stage.body, start)
            if isinstance(stage.join, Only):
                return self.rounded([start], stage.join.rounding)
            return start if stage.rounding is None else stage.alone(self, start)
        return self.in_format(start, stage.d)

    def in_format(self, value: F, fmt: Format) -> F:
        """The same numbers in another format, which holds these. Low bits that a format ignores are zeros in every
        value."""
        if fmt.takes(value.format):
            return value
        return self.elementwise(Round(Given(0, value.format), Rounding(fmt)), [value])

    def rounded(self, values: Sequence[F], rounding: Rounding) -> F:
        return self.elementwise(_sum(tuple(value.format for value in values), rounding), values)

    def lost(self, values: Sequence[F], total: F, rounding: Rounding) -> F:
        every = [*values, total]
        *leaves, last = (Given(slot, value.format) for slot, value in enumerate(every))
        return self.elementwise(Round(ExactSum((*leaves, Product(MINUS, last))), rounding), every)


class Strip(Results[Patterns]):
    """Some rows of D."""

    def __init__(self, job: Job, rows: slice, c: Patterns) -> None:
        self.job, self.rows, self.c = job, rows, Patterns(kept(c.matrix, c.format), c.format)
        self._zeros: dict[tuple[Format, bool], Patterns] = {}  # shared: no computation overwrites its inputs

    def result(self) -> Matrix:
        return self.value(self.job.plan.result, self.job.length).matrix

    def elementwise(self, node: Round, given: Sequence[Patterns]) -> Patterns:
        return of_matrices(node, given)

    def gathered(self, node: Gathered) -> Patterns:
        numbers = self.job.gathered[node]
        part = numbers[self.rows] if node.operand == "a" else numbers
        return Patterns(np.broadcast_to(part, self.c.matrix.shape), node.given)

    def zeros(self, fmt: Format, negative: bool) -> Patterns:
        if (fmt, negative) not in self._zeros:
            zeros = np.full(self.c.matrix.shape, fmt.sign_bit * negative, dtype=kind_of(fmt))
            self._zeros[fmt, negative] = Patterns(zeros, fmt)
        return self._zeros[fmt, negative]

    def tile(self, model: Model, words: Words, span: Span, start: Patterns) -> Patterns:
        if self.job.ended.is_set():
            raise EndedError
        first, missing = span.start.offset, model.length - span.count
        places: Any = slice(first, first + span.count * span.step, span.step) if span.groups == 1 else span.places
        left, right = self.job.plan.read(words)
        a, b = self.job.a[left][self.rows, places], self.job.b[right][places]
        if missing:
            a, b = np.pad(a, ((0, 0), (0, missing))), np.pad(b, ((0, missing), (0, 0)))
        c = self.in_format(start, model.c)
        at = span.scales(model.scale_block).offset if self.job.scales else 0
        factors = slice(at, at + model.scales)
        scales = (
            side[self.rows, factors] if NAMED[name].of == "row" else side[factors]
            for name, side in self.job.scales.items()
        )
        return Patterns(numpy_tile(model, a, b, c.matrix, *scales), model.d)


def kept(matrix: Matrix, fmt: Format) -> Matrix:
    """Patterns with zeros for the low bits that the format ignores."""
    return matrix >> matrix.dtype.type(fmt.padding) << matrix.dtype.type(fmt.padding) if fmt.padding else matrix


@lru_cache(maxsize=256)
def _sum(formats: tuple[Format, ...], rounding: Rounding) -> Round:
    """The node of a rounded sum. The cache keeps one node for each sum, so that the hash is computed once."""
    leaves = tuple(Given(slot, fmt) for slot, fmt in enumerate(formats))
    return Round(ExactSum(leaves) if len(leaves) > 1 else leaves[0], rounding)


def _round(node: Node) -> Round:
    assert isinstance(node, Round)
    return node
