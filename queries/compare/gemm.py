"""The reduction of two result matrices that differ to one dot product of a few terms.

The row and the column of a differing element are one long dot product, which both devices compute again, tile by tile.
Until their results diverge, both devices get the same inputs. The first tile in which the results diverge, with its
addend, is an input of one instruction on which the devices differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import lcm

import numpy as np

from mmaprobe.queries.compare.devices import (
    Answered,
    ComparedDevice,
    Comparison,
    Pair,
    compared_model,
    differing,
    running_results,
    segment,
)
from mmaprobe.queries.compare.neighbours import neighbours
from mmaprobe.queries.compare.steady import Answer
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.search.witness import results_differ
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import nans, steps_between
from mmaprobe.smtmodel.evaluate.operands import Operands, check_plain
from mmaprobe.smtmodel.evaluate.tiles import Matrix, product_shape
from mmaprobe.smtmodel.operand import FACTORS, FURTHER, NAMED

ELEMENTS = 16  # differing elements that are computed again
STRIP = 1 << 18  # elements compared at a time


@dataclass(frozen=True)
class Matrices:
    """Bit patterns: A (rows x K), B (K x columns), C (rows x columns, None: zeros), the two results D (rows x columns),
    and the scale factors by name."""

    a: Matrix
    b: Matrix
    c: Matrix | None
    d: tuple[Matrix, Matrix]
    scales: Mapping[str, Matrix] = field(default_factory=dict)

    def check(self, model: Model) -> None:
        """Raises ParameterError for shapes that do not fit."""
        shape = product_shape(self.a, self.b, least=1)
        for name, side in (("C", self.c), ("D1", self.d[0]), ("D2", self.d[1])):
            if side is not None and side.shape != shape:
                raise ParameterError(name, f"shape {side.shape} is not that of the product, {shape}")
        check_plain(model)
        if self.scales.keys() != {row.name for row in FACTORS if row.name in model.formats}:
            raise ParameterError("scale factors", f"{model.reference} takes {'none' if not model.scale else 'both'}")
        steps = -(-self.a.shape[1] // model.scale_block)
        if any(side.shape != NAMED[name].shape(*shape, steps) for name, side in self.scales.items()):
            raise ParameterError("scale factors", f"one for each {model.scale_block} products is needed")

    def dot(self, element: Element, model: Model) -> Operands[int]:
        """The dot product of one element, with scale factors, filled up with zeros to a whole scale block."""
        i, j = element.row, element.column
        missing = -self.a.shape[1] % model.scale_block if model.scale else 0
        a, b = ([*map(int, side), *[0] * missing] for side in (self.a[i], self.b[:, j]))
        c = 0 if self.c is None else int(self.c[i, j])
        scales = {name: side[i] if NAMED[name].of == "row" else side[:, j] for name, side in self.scales.items()}
        rest = (tuple(map(int, scales.get(row.name, ()))) for row in FURTHER)
        return Operands(tuple(a), tuple(b), c, tuple(rest))


@dataclass(frozen=True)
class Element:
    """One element in both results. `ulps`: the distance of its two results in steps from one number of the format to
    the next; None if a result is a NaN, or the formats differ."""

    row: int
    column: int
    d: tuple[int, int]
    ulps: int | None


@dataclass(frozen=True)
class Differences:
    """The differing elements of two results. `count`: their number; `total`: the number of all elements; `first`: the
    first differing element; `largest`: the element with the most ulps; `chosen`: the elements to examine."""

    count: int
    total: int
    first: Element | None
    largest: Element | None
    chosen: tuple[Element, ...]


def differing_elements(problem: Problem, matrices: Matrices) -> Differences:
    """The elements in which two results differ, by the problem's comparison."""
    one, two = (side.reshape(-1).astype(np.uint64) for side in matrices.d)
    same_format = problem.left.d == problem.right.d
    unequal = np.flatnonzero(one != two) if same_format else np.arange(one.size)
    elements = []
    for start in range(0, len(unequal), STRIP):
        part = unequal[start : start + STRIP]
        elements.append(part[results_differ(problem, one[part], two[part])])
    where = np.concatenate(elements) if elements else unequal
    if not len(where):
        return Differences(0, one.size, None, None, ())
    apart, known = np.zeros(len(where), np.uint64), np.zeros(len(where), np.bool_)
    if same_format:
        fmt = problem.left.d
        apart = steps_between(one[where], two[where], fmt)
        known = ~(nans(one[where], fmt) | nans(two[where], fmt))

    def element(index: int) -> Element:
        flat = int(where[index])
        ulps = int(apart[index]) if known[index] else None
        row, column = divmod(flat, matrices.d[0].shape[1])
        return Element(row, column, (int(one[flat]), int(two[flat])), ulps)

    numbers = np.flatnonzero(known)
    largest = int(numbers[apart[numbers].argmax()]) if len(numbers) else None
    spread = np.linspace(0, len(where) - 1, ELEMENTS).astype(int).tolist()
    indices = list(dict.fromkeys([0, *([] if largest is None else [largest]), *spread]))[:ELEMENTS]
    chosen = tuple(element(index) for index in indices)
    return Differences(len(where), one.size, chosen[0], None if largest is None else element(largest), chosen)


@dataclass(frozen=True)
class Trace:
    """One element recomputed by both devices: the results after each span of products, and the first span after which
    the results differ (None: they do not differ)."""

    element: Element
    operands: Operands[int]
    span: int
    results: tuple[tuple[Answer, ...], tuple[Answer, ...]]
    diverged: int | None

    @property
    def products(self) -> tuple[int, int]:
        """(first product, one past the last) of the span in which the results diverge."""
        assert self.diverged is not None
        return self.diverged * self.span, min((self.diverged + 1) * self.span, len(self.operands.a))

    def tile(self, model: Model, index: int) -> Operands[int]:
        """The input of one span, with the addend of the first side."""
        addend = self.results[0][index - 1] if index else self.operands.c
        return segment(self.operands, index * self.span, self.span, addend or 0, model)

    def shared(self, model: Model) -> Iterator[Answered]:
        """The spans for which both sides had the same input, with their answers."""
        for index, (one, two) in enumerate(zip(*self.results, strict=True)):
            if one is not None and two is not None:
                yield self.tile(model, index), one, two
            if one != two:
                return


def spans_of(side: ComparedDevice, inputs: Sequence[Operands[int]], span: int) -> list[tuple[Answer, ...]]:
    """For each of some long dot products, the running results after each span."""
    return list(zip(*running_results(side.results, inputs, span, side.model)[1:], strict=True))


def traced(
    left: ComparedDevice, right: ComparedDevice, problem: Problem, matrices: Matrices, elements: Sequence[Element]
) -> list[Trace]:
    """The traces of some elements, which each side computes again in tiles of its own instruction's length."""
    span = lcm(left.model.length, right.model.length)
    inputs = [matrices.dot(element, left.model) for element in elements]
    results = [spans_of(side, inputs, span) for side in (left, right)]
    traces = []
    for element, operands, one, two in zip(elements, inputs, *results, strict=True):
        diverged = np.flatnonzero(differing(problem, one, two))
        traces.append(Trace(element, operands, span, (one, two), int(diverged[0]) if len(diverged) else None))
    return traces


def reduce(
    comparison: Comparison, left: ComparedDevice, right: ComparedDevice, problem: Problem, traces: Sequence[Trace]
) -> Trace | None:
    """Minimise the tiles in which results diverge, until enough differences are found. Returns the trace of the first
    difference; None if there is no difference."""
    source = None
    for trace in traces:
        comparison.keep(trace.shared(left.model))
    for trace in traces:
        if comparison.done:
            break
        if trace.diverged is None:
            continue
        tile, before = trace.tile(left.model, trace.diverged), len(comparison.differences)
        pair = Pair(left, right, problem.compare, len(tile.a))
        ask(comparison, pair, tile)
        if len(comparison.differences) > before:
            source = source or trace
            _narrow(comparison)
    return source


def ask(comparison: Comparison, pair: Pair, operands: Operands[int]) -> None:
    """Compare both devices on one input."""
    comparison.run(pair, [operands.every], 1)


def _narrow(comparison: Comparison) -> None:
    """Shorten the last difference to an input of the shorter instruction, if the products beyond it are zero and the
    devices differ on the shortened input too."""
    last = comparison.differences[-1]
    length, parts = last.pair.problem.length, last.operands
    if last.pair.length <= length or any(parts.a[length:]) or any(parts.b[length:]):
        return
    pair = Pair(*last.pair.sides, last.pair.problem.compare, length)
    del comparison.differences[-1]
    before = len(comparison.differences)
    try:
        ask(comparison, pair, segment(parts, 0, length, parts.c, pair.left.model))
    finally:
        if len(comparison.differences) == before:
            comparison.differences.append(last)


@dataclass(frozen=True)
class Reproduced:
    """A model compared with the two results on the elements examined: the number of elements of each result that it
    reproduces; the changes of one parameter that reproduce all elements; and the number of products after which the
    model's running value first was the result of the first element (None: never)."""

    elements: int
    agree: tuple[int, int]
    changes: tuple[tuple[str, ...], tuple[str, ...]]
    reached: tuple[int | None, int | None]
    models: tuple[Model | None, Model | None] = field(default=(None, None))


def reproduced(
    model: Model, matrices: Matrices, elements: Sequence[Element], problem: Problem, report: Callable[[str], None]
) -> Reproduced:
    """The agreement of a model with both results on some elements. If the model does not reproduce all elements of a
    result, its neighbours are tried too."""
    inputs = [matrices.dot(element, model) for element in elements]
    given = [[element.d[side] for element in elements] for side in (0, 1)]
    running = spans_of(compared_model(model), inputs, model.length)
    agree = [~differing(problem, [one[-1] for one in running], d) for d in given]
    reached: list[int | None] = []
    for side in (0, 1):
        same = np.flatnonzero(~differing(problem, running[0], [given[side][0]] * len(running[0])))
        reached.append(min((int(same[0]) + 1) * model.length, len(inputs[0].a)) if len(same) else None)
    models: list[Model | None] = [model if all(one) else None for one in agree]
    changes: list[list[str]] = [[], []]
    if None in models:
        tiles = _tiles(model, inputs, running)
        known = compared_model(model).results(tiles)
        for name, value, near in neighbours(model):
            report(f"trying {name}={value}")
            other = compared_model(near)
            if other.results(tiles) == known:
                continue  # a change without effect on any step has no effect on the chain
            results = [one[-1] for one in spans_of(other, inputs, near.length)]
            for index in (0, 1):
                against = Problem(near, model, compare=problem.compare)
                if models[index] is not model and not differing(against, results, given[index]).any():
                    changes[index].append(f"{name}={value}")
                    models[index] = models[index] or near
    return Reproduced(
        len(elements),
        (int(agree[0].sum()), int(agree[1].sum())),
        (tuple(changes[0]), tuple(changes[1])),
        (reached[0], reached[1]),
        (models[0], models[1]),
    )


def _tiles(model: Model, inputs: Sequence[Operands[int]], running: Sequence[Sequence[Answer]]) -> list[Operands[int]]:
    """Every tile of the chains, with its running value as addend; a last tile that is cut short is filled up with zero
    products."""
    length, tiles = model.length, []
    for operands, results in zip(inputs, running, strict=True):
        for index, c in enumerate([operands.c, *results[:-1]]):
            part = segment(operands, index * length, length, c or 0, model)
            rest = (0,) * (length - len(part.a))
            tiles.append(replace(part, a=part.a + rest, b=part.b + rest))
    return tiles
