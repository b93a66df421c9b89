"""Vectors to ask two devices: published vectors, vectors on which hypotheses of the library differ, special values and
samples. The vectors most likely to show a difference come first, so that few questions may suffice for a slow
device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, partial
from importlib.resources import files
from itertools import combinations, product

import numpy as np

from mmaprobe.hypotheses.library import library
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.search.lone_rows import lone_input_rows, lone_rows
from mmaprobe.queries.search.samples import sample_rows, subnormal_rows, tie_rows
from mmaprobe.queries.search.specials import of_both_signs
from mmaprobe.queries.search.witness import Row, results_differ, row_with
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.batch import Shared
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Layout, Operands, layout_of, padded
from mmaprobe.smtmodel.inputs.admitted import check_comparable
from mmaprobe.smtmodel.inputs.vectors import Vector, read_vectors

SEARCHED = 800  # samples among which vectors are chosen on which two hypotheses differ
DISCRIMINATING = 2  # the most vectors for each pair of hypotheses


def all_rows(
    layout: Layout,
    model: Model,
    samples: int,
    seed: int = 1,
    telling: Iterable[Row] = (),
    repeated: list[Row] | None = None,
) -> Iterator[Row]:
    """All rows, each once; random rows come last. `telling`: rows that tell the model from others; `repeated`: a list
    to which a row is added each time that it comes again."""
    seen: set[Row] = set()
    sources = (
        rows_of(_published(), layout, model),
        discriminating_rows(layout, model, seed),
        special_value_rows(layout),
        telling,
        _sampled(layout, model.d, samples, seed),
    )
    for source in sources:
        for proposed in source:
            row = row_with(proposed, dict.fromkeys(layout.unread, 0))
            if row not in seen:
                seen.add(row)
                yield row
            elif repeated is not None:
                repeated.append(row)


def _sampled(layout: Layout, result: Format, count: int, seed: int) -> Iterator[Row]:
    """Samples in a random order: samples of all sizes; samples whose result depends on one bit far below the result's
    last place; ties; samples that differ from one another in one bit of an input; and samples with subnormal
    numbers."""
    part = count // 16
    tables = (
        lone_rows(layout, result, 6 * part, seed), tie_rows(layout, result, 2 * part, seed),
        lone_input_rows(layout, part, seed), subnormal_rows(layout, part, seed),
    )  # fmt: skip
    shaped = [table for table in tables if len(table)]
    rows = np.concatenate([sample_rows(layout, count - sum(map(len, shaped)), seed), *shaped])
    yield from map(tuple, np.random.default_rng(seed).permutation(rows).tolist())


def row_of(operands: Operands[int], layout: Layout) -> Row | None:
    """The row of an input, filled up with zeros; None if a factor beyond the layout's products is not +0."""
    k = layout.length
    if any(operands.a[k:]) or any(operands.b[k:]):
        return None
    a, b, _, *rest = (side[:count] for side, count in zip(operands.sides.values(), layout.counts, strict=True))
    return padded(Operands(a, b, operands.c, tuple(rest)), layout).every


def takes_the_same(one: Model, other: Model) -> bool:
    """Whether vectors made for one model have the formats of another."""
    try:
        check_comparable(one, other, "value")
    except ParameterError:
        return False
    return True


def rows_of(vectors: Iterable[Vector], layout: Layout, model: Model) -> Iterator[Row]:
    """The rows of those vectors that have the model's formats."""
    fitting: dict[Model, bool] = {}
    for vector in vectors:
        if vector.model not in fitting:
            fitting[vector.model] = takes_the_same(vector.model, model)
        row = row_of(vector.operands, layout) if fitting[vector.model] else None
        if row is not None:
            yield row


@cache
def _published() -> tuple[Vector, ...]:
    """The published vectors that come with the library."""
    entries = sorted((files("mmaprobe.hypotheses") / "vectors").iterdir(), key=lambda item: item.name)
    texts = {one.name: one.read_text(encoding="utf-8") for one in entries if one.name.endswith(".jsonl")}
    return tuple(vector for name, text in texts.items() for vector in read_vectors(text.splitlines(), name))


def discriminating_rows(layout: Layout, model: Model, seed: int = 1) -> Iterator[Row]:
    """Samples on which two hypotheses of some question about these formats differ."""
    tables: dict[int, tuple[Layout, Shared]] = {}
    for question in library().values():
        first = next(iter(question.models.values()))
        if not takes_the_same(first, model):
            continue
        length = min(question.length, layout.length)
        if length not in tables:
            shape = layout_of(model, length)
            tables[length] = shape, Shared(sample_rows(shape, SEARCHED, seed), shape)
        shape, rows = tables[length]
        for one, other in combinations(question.models.values(), 2):
            problem = Problem(one, other, compare=question.compare)
            for index in np.flatnonzero(results_differ(problem, rows.of(one), rows.of(other)))[:DISCRIMINATING]:
                row = row_of(shape.split(rows.table[index].tolist()), layout)
                assert row is not None
                yield row


def _values(fmt: Format) -> list[int]:
    """Zeros, one, infinities, NaN, the largest, the smallest, and the smallest normal number."""
    unit = 1 << fmt.padding
    return of_both_signs([0, fmt.one, fmt.infinity, fmt.nan, fmt.largest, unit, unit << fmt.fraction], fmt)


def special_value_rows(layout: Layout) -> Iterator[Row]:
    """Rows with special values: in one product and a plain addend; in a factor and the addend; in the factors of two
    products that are added; and rows in which every product is -0."""
    n, a, b, c = layout.length, layout.a, layout.b, layout.c
    plain = tuple(fmt.one if index in layout.further else 0 for index, fmt in enumerate(layout.formats))
    row = partial(row_with, plain)

    for x, y, z in product(_values(a), _values(b), (0, c.one)):
        yield row({0: x, n: y, 2 * n: z})
    for x, z in product(_values(a), _values(c)):
        yield row({0: x, n: b.one, 2 * n: z})
    if n > 1:
        for x, y in product(_values(a), _values(a)):
            yield row({0: x, 1: y, n: b.one, n + 1: b.one})
    x, y = (a.one | a.sign_bit, 0) if a.nan_for_negative_zero else (a.sign_bit, b.one)
    for z in (0, c.sign_bit):  # with every product a negative zero
        yield row({**dict.fromkeys(range(n), x), **dict.fromkeys(range(n, 2 * n), y), 2 * n: z})
