"""Units of processors against recorded results, the instructions themselves, and emulators."""

from __future__ import annotations

import gzip
import json
from functools import cache
from typing import Any

import numpy as np
import pytest

from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit_files import FOLDER, shipped_unit, units
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.cpu import MACHINES, Inputs, NoDeviceError, Patterns, Vectors, differing, execute
from tests.oracles import node_oracle
from tests.places import DATA, DOCS
from tests.units.test_nodes import oracle

pytestmark = pytest.mark.compilers

RECORDED = DATA / "cpu.jsonl.gz"
FEW, MANY, BY_ORACLE = 20_000, 200_000, 100_000

#: the chains: recorded and executed step by step
STEPS = {"x86/avx512/vfmadd-ph": 8, "arm/neon/fmlal": 2, "ieee/fma/f32": 4, "ieee/fma/f64": 4}

#: units nearby: (unit, what its text says, what stands there instead)
NEARBY = [
    ("x86/amx/tdpbf16ps", "24, nearest_even", "24, to_odd"),
    ("x86/amx/tdpbf16ps", "k in range(1, 32, 2)", "k in range(0, 32, 2)"),
    ("x86/amx/tdpbf16ps", "exact(c, sum)", "exact(odd, r(exact(c, even)))"),
    ("x86/amx/tdpbf16ps", "exact(c, sum)", "exact(c, even, odd)"),
    ("x86/avx512/vdpbf16ps", "odd: r(cut(exact(a[1] * b[1], c)", "odd: r(cut(exact(a[0] * b[0], c)"),
    ("x86/avx512/vdpbf16ps", "exact(a[0] * b[0], odd)", "exact(c, a[0] * b[0], a[1] * b[1])"),
    ("x86/avx512/vfmadd-ph", "nearest_even", "nearest_even, subnormals=flush_after"),
    ("x86/avx512/vfmadd-ph", "nearest_even", "nearest_away"),
    ("x86/avx512/vfmadd-ph", "exact(a[0] * b[0], c)", "exact(r(a[0] * b[0]), c)"),
    ("arm/neon/bfdot", "to_odd, overflow=infinity", "nearest_even"),
    ("arm/neon/bfdot", ", subnormals=flush_before", ""),
    ("arm/neon/bfdot", "o(exact(o(a[0] * b[0]), o(a[1] * b[1])))", "o(exact(a[0] * b[0], a[1] * b[1]))"),
    ("arm/neon/bfmmla", "to_odd, overflow=infinity", "nearest_even"),
    ("arm/neon/bfmmla", "range(0, 4, 2)", "[2, 0]"),
    ("arm/neon/bfmmla", "a[k + 1] * b[k + 1]", "a[k] * b[k]"),
    ("arm/neon/fmlal", "nearest_even", "to_odd"),
    ("arm/neon/fmlal", "length: 1", "length: 1\ninputs: {subnormals: zero}"),
]  # fmt: skip
#: the same where the recorded rows do not decide: checked against the instruction or the emulator
EXECUTED_NEARBY = [
    ("x86/amx/tdpbf16ps", "{subnormals: zero}", "{subnormals: keep}"),
    ("x86/amx/tdpbf16ps", ", subnormals=flush_before", ""),
    ("x86/avx512/vdpbf16ps", "{subnormals: zero}", "{subnormals: keep}"),
    ("x86/avx512/vdpbf16ps", ", subnormals=flush_before", ""),
    ("arm/neon/bfdot", "{subnormals: zero}", "{subnormals: keep}"),
    ("x86/amx/tdpbf16ps", "r(cut(exact(acc, a[k] * b[k]), 24, nearest_even))", "r(exact(acc, a[k] * b[k]))"),
    ("x86/avx512/vdpbf16ps", "r(cut(exact(a[1] * b[1], c), 24, nearest_even))", "r(exact(a[1] * b[1], c))"),
    ("x86/avx512/vdpbf16ps", "24, nearest_even", "60, to_odd"),
    ("arm/neon/bfdot-ebf", "nearest_even", "nearest_even, subnormals=flush_before"),
    ("arm/neon/bfdot-ebf", "a[0] * b[0], a[1] * b[1]", "r(a[0] * b[0]), a[1] * b[1]"),
    ("arm/neon/bfdot-ebf", "exact(c, r(exact(a[0] * b[0], a[1] * b[1])))", "exact(c, a[0] * b[0], a[1] * b[1])"),
    ("arm/neon/bfmmla-ebf", "range(0, 4, 2)", "[2, 0]"),
    ("arm/neon/bfmlalb", "nearest_even", "nearest_even, subnormals=flush_before"),
    ("arm/neon/bfmlalt", "length: 1", "length: 1\ninputs: {subnormals: zero}"),
    ("arm/sme/fmopa-f32", "exact(a[0] * b[0], c)", "exact(r(a[0] * b[0]), c)"),
    ("arm/sme/fmopa-f64", "length: 1", "length: 1\ninputs: {subnormals: zero}"),
    ("arm/sme/fmopa-f16f32", "exact(c, r(exact(a[0] * b[0], a[1] * b[1])))", "exact(c, a[0] * b[0], a[1] * b[1])"),
    ("arm/sme/fmopa-f16f32", "nearest_even", "to_odd"),
    ("arm/sme/bfmopa", "to_odd, overflow=infinity", "nearest_even"),
    ("arm/sme/bfmopa-ebf", "a[0] * b[0], a[1] * b[1]", "r(a[0] * b[0]), a[1] * b[1]"),
    ("power10/mma/xvbf16ger2pp", "a[0] * b[0], a[1] * b[1]", "r(a[0] * b[0]), a[1] * b[1]"),
    ("power10/mma/xvbf16ger2pp", "nearest_even", "nearest_even, subnormals=flush_before"),
    ("power10/mma/xvf16ger2pp", "exact(c, r(exact(a[0] * b[0], a[1] * b[1])))", "exact(c, a[0] * b[0], a[1] * b[1])"),
    ("power10/mma/xvf16ger2pp", "length: 2", "length: 2\ninputs: {subnormals: zero}"),
    ("power10/mma/xvf32gerpp", "exact(a[0] * b[0], c)", "exact(r(a[0] * b[0]), c)"),
    ("riscv/v/vfwmaccbf16", "exact(a[0] * b[0], c)", "exact(r(a[0] * b[0]), c)"),
]
#: conversions, which no processor here has, take no addend of their result's format
EXECUTED = [
    *(name for name in units() if name.partition("/")[0] in MACHINES and "/vcvt" not in name),
    "ieee/fma/f32", "ieee/fma/f64",
]  # fmt: skip


def changed(reference: str, old: str, new: str) -> Model:
    """A shipped unit with one place of its text changed."""
    text = (FOLDER / f"{reference}.yaml").read_text(encoding="utf-8")
    assert old in text
    return Model("nearby.yaml", parse_unit(text.replace(old, new), "nearby.yaml"))


def chained(model: Model, vectors: Vectors) -> Patterns:
    """The results of steps one after another, each with as many products as the model takes."""
    a, b, c = vectors
    for k in range(0, a.shape[1], model.length):
        c = evaluate_batch(model, a[:, k : k + model.length], b[:, k : k + model.length], c)
    return c


# -- recorded results


@cache
def recorded() -> dict[str, tuple[Vectors, Patterns]]:
    rows: dict[str, list[dict[str, Any]]] = {}
    with gzip.open(RECORDED, "rt", encoding="utf-8") as stream:
        for row in map(json.loads, stream):
            rows.setdefault(row["instruction"].partition(",")[0], []).append(row)

    def numbers(side: list[Any]) -> Patterns:
        return np.array([[int(x, 16) for x in row] if isinstance(row, list) else int(row, 16) for row in side],
                        dtype=np.uint64)  # fmt: skip

    return {
        reference: ((numbers([r["a"] for r in own]), numbers([r["b"] for r in own]), numbers([r["c"] for r in own])),
                    numbers([r["d"] for r in own]))
        for reference, own in rows.items()
    }  # fmt: skip


def test_every_recorded_row_agrees() -> None:
    assert sum(len(d) for _, d in recorded().values()) == 6000
    for reference, (vectors, d) in recorded().items():
        model = parse_reference(reference)
        assert not differing(model, chained(model, vectors), d).size, reference


@pytest.mark.parametrize(("reference", "old", "new"), NEARBY)
def test_recorded_rows_refute_units_nearby(reference: str, old: str, new: str) -> None:
    vectors, d = recorded()[reference]
    model = changed(reference, old, new)
    assert differing(model, chained(model, vectors), d).size


# -- instructions that are here, or that an emulator has


def executed(reference: str, vectors: Vectors) -> Patterns:
    """Raises NoDeviceError."""
    arch, _, instruction = reference.split("/")
    return execute("x86" if arch == "ieee" else arch, instruction, vectors)


def on_device(reference: str, vectors: Vectors) -> Patterns:
    try:
        return executed(reference, vectors)
    except NoDeviceError as error:
        pytest.skip(str(error))


def inputs(reference: str, count: int) -> Vectors:
    model = parse_reference(reference)
    assert model.d == model.c
    return Inputs(model, seed=sum(map(ord, reference))).vectors(count)


def check(reference: str, vectors: Vectors, found: Patterns) -> None:
    model, count = parse_reference(reference), len(found)
    wrong = differing(model, evaluate_batch(model, *vectors), found)
    assert not wrong.size, f"{len(wrong)} of {count}; row {wrong[0]}: {[side[wrong[0]] for side in vectors]}"


def agrees(reference: str, executed_on: int, by_oracle: int) -> None:
    """As the instruction has it or, where that is not at hand, the oracle in exact rationals."""
    vectors = inputs(reference, executed_on)
    try:
        found = executed(reference, vectors)
    except NoDeviceError:
        vectors = inputs(reference, by_oracle)
        found = np.array(oracle(parse_reference(reference).unit, vectors))
        any_nan = found == node_oracle.ANY_NAN
        found = np.where(any_nan, parse_reference(reference).d.nan, found).astype(np.uint64)
    check(reference, vectors, found)


@pytest.mark.parametrize("reference", EXECUTED)
def test_instruction_agrees(reference: str) -> None:
    agrees(reference, FEW, 540 // parse_reference(reference).length + 9)


@pytest.mark.slow
@pytest.mark.parametrize("reference", EXECUTED)
def test_instruction_agrees_on_many_vectors(reference: str) -> None:
    agrees(reference, MANY, BY_ORACLE)


@pytest.mark.parametrize("reference", ["ieee/fma/f32", "ieee/fma/f64", "x86/avx512/vfmadd-ph", "arm/neon/fmlal"])
def test_chains_agree_step_by_step(reference: str) -> None:
    model, steps = parse_reference(reference), STEPS[reference]
    parts = [Inputs(model, seed=step).vectors(FEW // steps) for step in range(steps)]
    a, b = (np.concatenate([part[side] for part in parts], axis=1) for side in (0, 1))
    found = parts[0][2]
    for step in range(steps):
        found = on_device(reference, (a[:, step : step + 1], b[:, step : step + 1], found))
    assert not differing(model, chained(model, (a, b, parts[0][2])), found).size


@pytest.mark.parametrize(("reference", "old", "new"), EXECUTED_NEARBY)
def test_instructions_refute_units_nearby(reference: str, old: str, new: str) -> None:
    vectors = inputs(reference, 6000)
    found = on_device(reference, vectors)
    model = changed(reference, old, new)
    assert differing(model, evaluate_batch(model, *vectors), found).size


# -- their page


def test_the_page_of_units_shows_every_unit_as_it_ships() -> None:
    page = (DOCS / "units.md").read_text(encoding="utf-8")
    rows = [f"| `{name}` | {shipped_unit(name).source} | {shipped_unit(name).evidence} |" for name in units()]
    assert [line for line in page.splitlines() if line.startswith("| `")] == rows
    assert f"```yaml\n{(FOLDER / 'x86/amx/tdpbf16ps.yaml').read_text(encoding='utf-8')}```" in page
