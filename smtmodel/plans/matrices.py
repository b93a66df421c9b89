"""A plan computed by NumPy with matrices of bit patterns: a strip of rows of D at a time."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, TypeVar

import numpy as np

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.tiles import Elementwise, Matrix, kind_of, numpy_tile
from mmaprobe.smtmodel.nodes import Constant, Element, ExactSum, Index, Node, Round
from mmaprobe.smtmodel.nodes.given import Given
from mmaprobe.smtmodel.nodes.rewriting import replaced
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.operand import NAMED
from mmaprobe.smtmodel.plans.engine import Engine
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.span import Span


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
    """What was computed is not wanted any more."""


class Job:
    """A plan with its whole inputs: A and B as the units take them.

    `scales`: by name the scale factors of A (rows x K / block) and B (K / block x columns), of a unit that has them.
    `ended`: set where the result is not wanted any more; the next tile of a strip raises EndedError.
    """

    def __init__(self, plan: Plan, a: Matrix, b: Matrix, scales: Mapping[str, Matrix] | None = None) -> None:
        self.plan, self.scales, self.ended = plan, scales or {}, threading.Event()
        self.a, self.b = (
            side if how is None else of_matrices(Round(Given(0, fmt), how), [Patterns(side, fmt)]).matrix
            for side, fmt, how in ((a, plan.a, plan.convert_a), (b, plan.b, plan.convert_b))
        )


def of_matrices(node: Round, given: Sequence[Patterns]) -> Patterns:
    """A rounded expression over `Given` nodes for matrices of one shape."""
    function, fmt = Elementwise(node, tuple(x.format for x in given)), node.rounding.format
    return Patterns(function.of([x.matrix for x in given]).astype(kind_of(fmt), copy=False), fmt)


class Results(Engine[F]):
    """What a plan makes of its sums and of c."""

    c: F

    @abstractmethod
    def elementwise(self, node: Round, given: Sequence[F]) -> F:
        """A rounded expression over `Given` nodes."""

    @abstractmethod
    def zeros(self, fmt: Format, negative: bool) -> F:
        """+0 or -0."""

    def zero(self, fmt: Format) -> F:
        return self.zeros(fmt, False)

    def value(self, node: Node, count: int) -> F:
        """A node of a plan, of that many products: a sum of them, c, or rounded."""
        if isinstance(node, Products):
            start = node.start
            fmt = node.stage.accumulator
            begin = self.zeros(fmt, start.negative) if isinstance(start, Constant) else self.value(start, count)
            return node.stage.run(self, Span.of(count), begin) if count else self.in_format(begin, node.stage.d)
        if isinstance(node, Element):
            return self.c
        assert isinstance(node, Round)
        given: list[F] = []

        def leaf(part: Node) -> Node | None:
            if not isinstance(part, (Products, Element)):
                return None
            given.append(self.value(part, count))
            return Given(len(given) - 1, given[-1].format)

        return self.elementwise(_round(replaced(node, leaf)), given)

    def in_format(self, value: F, fmt: Format) -> F:
        """The same numbers in a format that holds them. Bits that a format ignores are zeros in every value."""
        if fmt.takes(value.format):
            return value
        return self.elementwise(Round(Given(0, value.format), Rounding(fmt)), [value])

    def rounded(self, values: Sequence[F], rounding: Rounding) -> F:
        return self.elementwise(_sum(tuple(value.format for value in values), rounding), values)

    def repeat(self, count: int, name: str, start: F, body: Callable[[Index, F], F]) -> F:
        for number in range(count):
            start = body(Index(number), start)
        return start

    def part(self, name: str) -> AbstractContextManager[None]:
        return nullcontext()


class Strip(Results[Patterns]):
    """Some rows of D."""

    def __init__(self, job: Job, rows: slice, c: Patterns) -> None:
        self.job, self.rows, self.c = job, rows, Patterns(kept(c.matrix, c.format), c.format)
        self._zeros: dict[tuple[Format, bool], Patterns] = {}  # what is computed is never put in place of an input

    def result(self) -> Matrix:
        return self.value(self.job.plan.result, self.job.a.shape[1]).matrix

    def elementwise(self, node: Round, given: Sequence[Patterns]) -> Patterns:
        return of_matrices(node, given)

    def zeros(self, fmt: Format, negative: bool) -> Patterns:
        if (fmt, negative) not in self._zeros:
            zeros = np.full(self.c.matrix.shape, fmt.sign_bit * negative, dtype=kind_of(fmt))
            self._zeros[fmt, negative] = Patterns(zeros, fmt)
        return self._zeros[fmt, negative]

    def tile(self, model: Model, span: Span, start: Patterns) -> Patterns:
        if self.job.ended.is_set():
            raise EndedError
        first, missing = span.start.offset, model.length - span.count
        places: Any = slice(first, first + span.count * span.step, span.step) if span.groups == 1 else span.places
        a, b = self.job.a[self.rows, places], self.job.b[places]
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
    """One node for each sum, which then knows its hash."""
    leaves = tuple(Given(slot, fmt) for slot, fmt in enumerate(formats))
    return Round(ExactSum(leaves) if len(leaves) > 1 else leaves[0], rounding)


def _round(node: Node) -> Round:
    assert isinstance(node, Round)
    return node
