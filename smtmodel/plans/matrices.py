"""A plan computed with matrices of bit patterns: a strip of rows of D at a time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol, TypeVar

import numpy as np

from smtmodel import tiles
from smtmodel.dot import Model
from smtmodel.formats import Format
from smtmodel.nodes import Constant, Element, ExactSum, Index, Node, Round
from smtmodel.nodes.rewriting import replaced
from smtmodel.nodes.round import Rounding
from smtmodel.plans.plan import Plan, Products
from smtmodel.plans.span import Span
from smtmodel.plans.stages import Engine
from smtmodel.tiles import Elementwise, Given, Matrix, Tiler, kind_of

AT_ONCE = 1 << 21  # elements of B that the steps of one call read; no result depends on it


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


class Job:
    """A plan with its whole inputs: A and B as the units take them, and what computes tiles.

    `scales`: scale factors of A (rows x K / block) and B (K / block x columns), for a unit that has them.
    """

    def __init__(
        self, plan: Plan, a: Matrix, b: Matrix, engine: tiles.Engine, scales: tuple[Matrix, Matrix] | None = None
    ) -> None:
        self.plan, self.scales = plan, scales
        products = a.size * b.shape[1]
        self.compiled = engine == "compiled" or (engine == "auto" and products >= tiles.SMALL)
        self.a, self.b = (
            side if how is None else self.elementwise(Round(Given(0, fmt), how), [Patterns(side, fmt)]).matrix
            for side, fmt, how in ((a, plan.a, plan.convert_a), (b, plan.b, plan.convert_b))
        )
        self.tilers = {model: Tiler(model, engine, products, a.shape[1]) for model in plan.models}

    def elementwise(self, node: Round, given: Sequence[Patterns]) -> Patterns:
        """A rounded expression over `Given` nodes for matrices of one shape."""
        function = Elementwise(node, tuple(x.format for x in given))
        fmt = node.rounding.format
        return Patterns(function.of([x.matrix for x in given], self.compiled).astype(kind_of(fmt), copy=False), fmt)


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
        return self.job.elementwise(node, given)

    def zeros(self, fmt: Format, negative: bool) -> Patterns:
        if (fmt, negative) not in self._zeros:
            zeros = np.full(self.c.matrix.shape, fmt.sign_bit * negative, dtype=kind_of(fmt))
            self._zeros[fmt, negative] = Patterns(zeros, fmt)
        return self._zeros[fmt, negative]

    def tile(self, model: Model, span: Span, start: Patterns) -> Patterns:
        first, missing = span.start.offset, model.length - span.count
        places: Any = slice(first, first + span.count * span.step, span.step) if span.groups == 1 else span.places
        a, b = self.job.a[self.rows, places], self.job.b[places]
        if missing:
            a, b = np.pad(a, ((0, 0), (0, missing))), np.pad(b, ((0, missing), (0, 0)))
        return self._tiles(model, a, b, start, [span])

    def tiles(self, model: Model, span: Span, start: Patterns) -> Patterns:
        first, loops = span.loops(model.length)
        starts = [first.start.offset]
        for count, distance in loops:
            starts = [place + distance * n for place in starts for n in range(count)]
        most = max(1, AT_ONCE // (model.length * max(self.job.b.shape[1], 1)))
        if model.c.width != model.d.width:  # each result is first made an addend
            most = 1
        for done in range(0, len(starts), most):
            some = starts[done : done + most]
            if span.groups == 1 or (len(some) == 1 and first.groups == 1):  # a view, no copy
                places: Any = slice(some[0], some[-1] + model.length * first.step, first.step)
            else:
                places = np.add.outer(some, np.array(first.places) - first.start.offset).ravel()
            spans = (replace(first, start=Index(place)) for place in some)
            start = self._tiles(model, self.job.a[self.rows, places], self.job.b[places], start, spans)
        return start

    def _tiles(self, model: Model, a: Matrix, b: Matrix, start: Patterns, spans: Iterable[Span]) -> Patterns:
        """Steps of a unit; `spans`: the products of each in the whole matrices."""
        c = self.in_format(start, model.c)
        scales: list[Matrix | None] = [None, None]
        if self.job.scales is not None:
            left, right = self.job.scales
            firsts = [span.scales(model.scale_block).offset for span in spans]
            at = [place + n for place in firsts for n in range(model.scales)]
            scales = [left[self.rows, at], right[at]]
        return Patterns(self.job.tilers[model](a, b, c.matrix, *scales), model.d)


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
