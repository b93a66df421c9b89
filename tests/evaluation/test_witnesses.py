"""Four witnesses of one arithmetic: arrays, generated C, solver terms and the oracle in exact rationals, on every input
of random small units, and on many of every family and of every unit file."""

from __future__ import annotations

import random

import numpy as np
import pytest

from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.compiled import CompiledModel, compile_model
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unit_files import units
from tests.cpu import Inputs
from tests.evaluation.test_carriers import REFERENCES, by_oracle, disagreements, draw
from tests.node_units import Patterns, random_unit
from tests.units.test_nodes import as_terms, compare, on_arrays, oracle

pytestmark = pytest.mark.compilers

FACTORS = ("e2m1", "e1m1_none", "binary3p2se", "binary4p2se", "e2m1_ieee", "e2m1_all_ones")
ADDENDS = (*FACTORS, "e3m2", "binary6p3se")
MOST, FEWER = 16, 12  # bits of an input, of which all are tried
UNITS, QUICK = 200, 6  # the first few, of fewer inputs, are always tried
MANY, FEW = 10_000, 300
SHORT = ("arm/neon/bfdot", "riscv/v/vfwmaccbf16")


def small_unit(seed: int) -> Unit:
    """One whose inputs can be tried all."""
    rng = random.Random(seed)
    while True:
        unit = random_unit(rng, FACTORS, ADDENDS, (1, 1, 2))
        if unit.scale is None and bits_of(unit) <= (FEWER if seed < QUICK else MOST):
            return unit


def bits_of(unit: Unit) -> int:
    return unit.length * (unit.a.width + unit.b.width) + unit.c.width


def every_input(unit: Unit) -> tuple[Patterns, ...]:
    rest, columns = np.arange(1 << bits_of(unit), dtype=np.uint64), []
    for fmt in (*(unit.a,) * unit.length, *(unit.b,) * unit.length, unit.c):
        columns.append(rest & np.uint64((1 << fmt.width) - 1))
        rest = rest >> np.uint64(fmt.width)
    a, b = (np.stack(columns[k : k + unit.length], axis=1) for k in (0, unit.length))
    return a, b, columns[-1]


def in_c(compiled: CompiledModel, table: tuple[Patterns, ...]) -> list[int]:
    """The results of generated C: one output at a time, so that each meets the loop for its own inputs."""
    a, b, c, *scales = table
    return [
        int(compiled.tile(a[[row]], b[[row]].T, c[row].reshape(1, 1), *(side[[row]] if k == 0 else side[[row]].T
                          for k, side in enumerate(scales)))[0, 0]) for row in range(len(c))
    ]  # fmt: skip


def in_tiles(compiled: CompiledModel, table: tuple[Patterns, ...]) -> list[int]:
    """The results of generated C where rows with and without special values meet one column: every output is one
    input."""
    a, b, c = table
    results = np.empty(len(c), dtype=np.uint64)
    _, column = np.unique(b, axis=0, return_inverse=True)
    for place in range(int(column.max()) + 1):
        rows = np.flatnonzero(column.ravel() == place)
        results[rows] = compiled.tile(a[rows], b[rows[:1]].T, c[rows][:, None])[:, 0]
    return [int(x) for x in results]


def agree(unit: Unit, table: tuple[Patterns, ...], exhaustive: bool) -> None:
    """All four give the same results."""
    wanted = oracle(unit, table)
    compare(unit, table, on_arrays(unit, table), wanted)
    compare(unit, table, as_terms(unit, table), wanted)
    compiled = compile_model(Model("unit", unit))
    if compiled is not None:
        found = in_tiles(compiled, table) if exhaustive else in_c(compiled, table)
        compare(unit, table, found, wanted)


@pytest.mark.parametrize("seed", [pytest.param(k, marks=pytest.mark.slow if k >= QUICK else ()) for k in range(UNITS)])
def test_every_input_of_small_units(seed: int) -> None:
    unit = small_unit(seed)
    agree(unit, every_input(unit), exhaustive=True)


@pytest.mark.parametrize(
    ("reference", "count"),
    [*((name, FEW) for name in SHORT), *(pytest.param(name, MANY, marks=pytest.mark.slow) for name in units())],
)
def test_unit_files(reference: str, count: int) -> None:
    model = parse_reference(reference)
    agree(model.unit, Inputs(model, seed=len(reference)).vectors(count), exhaustive=False)


@pytest.mark.slow
@pytest.mark.parametrize("reference", REFERENCES)
def test_families(reference: str) -> None:
    """Terms meet arrays in tests/evaluation/test_carriers.py."""
    model = parse_reference(reference)
    columns = draw(model, MANY)
    results = evaluate_batch(model, *columns).tolist()
    assert not disagreements(model, columns, results, by_oracle(model, columns))
    compiled = compile_model(model)
    if compiled is not None:
        assert not disagreements(model, columns, results, in_c(compiled, tuple(columns)))
