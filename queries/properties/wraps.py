"""Inputs that show that a unit has no error bound because a sum wraps: the error is larger than the sum of the
magnitudes of all terms, hence larger than the error of a result of 0."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mmaprobe.queries.properties.bound_samples import ROWS, SEED, Near, covered, dominated, nearest_of
from mmaprobe.queries.properties.exact import ExactChain
from mmaprobe.queries.search.samples import Table, every_row, sample_rows
from mmaprobe.smtmodel.arithmetic.display import finite_value
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.nodes import FusedSum, Node, Sum
from mmaprobe.smtmodel.nodes.node import of_kind
from mmaprobe.smtmodel.nodes.rewriting import rebuilt
from mmaprobe.smtmodel.units.unit import Unit

SMALL = 15  # the most bits of all operands together for which all inputs are tried
LOOKED_AT = 64  # the most inputs on which a sum wraps that are evaluated further
STEPS = 8  # the most instructions of a chain until its result no longer changes


def wrapped_input(model: Model, count: int) -> Near | None:
    """A finite input on which nothing overflows, a sum wraps, and the error |d - exact| is larger than the sum of the
    magnitudes of all terms (`bound` in the result). Of several such inputs, the input with the largest ratio of error
    to sum. For a chain of `count` instructions the input has a row for each instruction, and all products after the
    first row are zeros. None if no sum can wrap, or the search finds no such input."""
    if not any(node.carry_bits is not None for node in of_kind(model.unit.result, Sum)):
        return None
    layout, roomy = layout_of(model), Model(model.reference, _with_room(model))
    table = every_row(layout, SMALL)
    if table is None:
        table = np.concatenate([dominated(layout), sample_rows(layout, ROWS, SEED)])
    (results, fine), (others, _) = covered(model, table), covered(roomy, table)
    rows = table[fine & (results != others)]
    cases = [near for row in rows[:: -(-len(rows) // LOOKED_AT) or 1] for near in _chains(model, row, count)]
    return nearest_of(cases)


def _with_room(model: Model) -> Unit:
    """The unit whose sums do not wrap."""

    def change(_: Node, new: Node) -> Node:
        return replace(new, carry_bits=None) if isinstance(new, FusedSum) else new

    return model.unit.with_result(rebuilt(model.unit.result, change, {}))


def _chains(model: Model, row: Table, count: int) -> Iterator[Near]:
    """The chain of an input and then zero products alone, up to the instruction after which the result stays the same.
    Empty if the chain's error is at most the sum of all magnitudes."""
    k, layout = model.length, layout_of(model)
    steps = np.zeros((min(count, STEPS), len(row)), dtype=np.uint64)
    steps[0], steps[1:, 2 * k + 1 :] = row, [fmt.one for fmt in layout.formats[2 * k + 1 :]]
    results: list[int] = []
    for step in steps:
        step[2 * k] = results[-1] if results else row[2 * k]
        evaluation, fine = covered(model, step[None])
        if not fine[0]:
            return
        results.append(int(evaluation[0]))
        if len(results) > 1 and results[-1] == results[-2]:
            break
    else:
        if count > len(steps):
            return
    steps = steps[: len(results)]
    chain, d = ExactChain.of(model, layout, steps), finite_value(results[-1], model.d)
    if chain is None or d is None:
        return
    exact, size = chain.exact[-1], chain.magnitudes[-1]
    if abs(d - exact) > size:
        yield Near(exact, abs(d - exact), size, tuple(map(int, steps.flat)), tuple(results))
