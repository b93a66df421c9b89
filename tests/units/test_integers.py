"""Integer matrix units against Python's integers, over all carriers."""

from __future__ import annotations

from operator import mul

import numpy as np
import pytest

from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.compiled import compile_model
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit_files import FOLDER, shipped_unit, units
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.cpu import Inputs, Patterns, Vectors
from tests.units.test_nodes import as_terms

pytestmark = pytest.mark.compilers

INTEGER = [name for name in units() if shipped_unit(name).c.is_integer]
SATURATING = [name for name in INTEGER if name.endswith((".satfinite", "ds"))]
FEW, MANY = 1500, 100_000
COMPILED = INTEGER[::6]  # compiling takes seconds where other work is done as well


def number(pattern: int, fmt: Format) -> int:
    bits = int(fmt.name.removeprefix("u").removeprefix("int"))
    return pattern - (pattern >> bits - 1 << bits if fmt.name.startswith("int") else 0)


def sums(model: Model, vectors: Vectors) -> list[int]:
    """The sums of products and c, as they are."""
    a, b, c = (np.vectorize(number, otypes=[object])(side, fmt)
               for side, fmt in zip(vectors, (model.a, model.b, model.c), strict=True))  # fmt: skip
    return [sum(map(mul, x, y), z) for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)]


def wanted(model: Model, vectors: Vectors, saturates: bool) -> Patterns:
    low, high = -(2**31), 2**31 - 1
    found = [min(max(x, low), high) if saturates else x for x in sums(model, vectors)]
    return np.array([x % 2**32 for x in found], dtype=np.uint64)


def vectors_of(reference: str, count: int) -> tuple[Model, Vectors, Patterns]:
    model = parse_reference(reference)
    vectors = Inputs(model, seed=sum(map(ord, reference))).vectors(count)
    return model, vectors, wanted(model, vectors, reference in SATURATING)


def test_which_units_there_are() -> None:
    assert len(INTEGER) == 25
    assert len(SATURATING) == 3
    kinds = {(unit.a.name, unit.b.name) for unit in map(shipped_unit, INTEGER)}
    assert kinds == {("int8", "int8"), ("uint8", "uint8"), ("int8", "uint8"), ("uint8", "int8"), ("int4", "int4")}


@pytest.mark.parametrize("reference", INTEGER)
def test_arrays_terms_and_generated_code(reference: str) -> None:
    model, (a, b, c), d = vectors_of(reference, FEW)
    exact = np.array(sums(model, (a, b, c)))
    assert not np.all((exact >= -(2**31)) & (exact < 2**31))  # sums that leave the range are among them
    assert np.array_equal(evaluate_batch(model, a, b, c), d)
    few = slice(0, 40)
    assert as_terms(model.unit, (a[few], b[few], c[few])) == d[few].tolist()
    compiled = compile_model(model) if reference in COMPILED else None
    if compiled is not None:
        found = [int(compiled.tile(a[k : k + 1], b[k : k + 1].T, c[k : k + 1, None])[0, 0]) for k in range(200)]
        assert found == d[:200].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("reference", INTEGER)
def test_many_vectors(reference: str) -> None:
    model, vectors, d = vectors_of(reference, MANY)
    assert np.array_equal(evaluate_batch(model, *vectors), d)


@pytest.mark.parametrize(
    ("reference", "old", "new"),
    [
        ("x86/avx512/vpdpbusd", "carry=0", "carry=1"),
        ("x86/avx512/vpdpbusd", "least=30", "least=31"),
        ("x86/avx512/vpdpbusd", ", least=30", ""),
        ("x86/avx512/vpdpbusd", "a: uint8, b: int8", "a: int8, b: uint8"),
        ("x86/avx512/vpdpbusds", "exact(a[0:4] * b[0:4], c)", "fused(a[0:4] * b[0:4], c, F=30, carry=0, least=30)"),
        ("x86/avx512/vpdpbusds", "exact(a[0:4] * b[0:4], c)", "exact(a[2:4] * b[2:4], r(exact(a[0:2] * b[0:2], c)))"),
        ("arm/neon/smmla", "int8, b", "uint8, b"),
    ],
)  # fmt: skip
def test_units_nearby_are_refuted(reference: str, old: str, new: str) -> None:
    text = (FOLDER / f"{reference}.yaml").read_text(encoding="utf-8")
    assert old in text
    _, vectors, d = vectors_of(reference, FEW)
    assert (evaluate_batch(Model("nearby", parse_unit(text.replace(old, new), "nearby.yaml")), *vectors) != d).any()


# -- formats


def test_conversion_to_integers() -> None:
    """Every number of f16 as one of a few bits, in every rounding, beyond the ends too."""
    from fractions import Fraction
    from math import ceil, floor, trunc

    from mmaprobe.smtmodel.arithmetic.display import exact_value
    from mmaprobe.smtmodel.evaluate.tiles import Elementwise
    from mmaprobe.smtmodel.nodes import Round
    from mmaprobe.smtmodel.nodes.given import Given
    from mmaprobe.smtmodel.nodes.round import Rounding

    f16, int5 = format_named("f16"), format_named("int5")
    finite = np.array([n for n in range(0, 1 << 16, 7) if n >> 10 & 31 != 31], dtype=np.uint64)
    values = [Fraction(0) if (x := exact_value(int(n), f16)) == "-0" else x for n in finite]
    for mode, own in (("nearest_even", round), ("toward_zero", trunc), ("up", ceil), ("down", floor)):
        found = Elementwise(Round(Given(0, f16), Rounding(int5, mode)), (f16,)).of([finite])  # type: ignore[arg-type]
        assert found.tolist() == [min(max(own(x), -16), 15) % 32 for x in values]  # type: ignore[arg-type]
    wide = Elementwise(Round(Given(0, int5), Rounding(f16)), (int5,)).of([np.arange(32, dtype=np.uint64)])
    assert [exact_value(int(n), f16) for n in wide] == [n - 32 * (n > 15) for n in range(32)]


@pytest.mark.parametrize("name", ["int2", "int65", "uint1", "int0"])
def test_integers_that_cannot_be(name: str) -> None:
    with pytest.raises(MmaprobeError, match="bits are impossible"):
        format_named(name)


def test_which_formats_hold_which() -> None:
    holds = {(x, y): format_named(x).holds(format_named(y)) for x, y in (
        ("int32", "int8"), ("int8", "int32"), ("int8", "uint8"), ("int16", "uint8"), ("f32", "int8"), ("f32", "int32"),
        ("f64", "int32"), ("uint8", "int8"), ("e4m3", "int8"), ("f16", "int12"), ("int8", "f16"))}  # fmt: skip
    assert [pair for pair, held in holds.items() if held] == [
        ("int32", "int8"), ("int16", "uint8"), ("f32", "int8"), ("f64", "int32"), ("f16", "int12")]  # fmt: skip
    assert not format_named("e1m6b0_none").holds(format_named("int8"))
