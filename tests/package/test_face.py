"""`import mmaprobe`: results are those of the models and of recorded GPUs, and what cannot be meant is refused."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner

import mmaprobe
from mmaprobe import bound_values
from mmaprobe.cli.main import main
from mmaprobe.documents.prove import ErrorBound, Nearest, NearestProduct
from mmaprobe.smtmodel import VERSION
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import ParameterError, UnknownNameError
from mmaprobe.smtmodel.evaluate.numbers import format_of, from_numbers, to_numbers, type_of
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.tables.reference import parse_plan_path, parse_reference
from tests import records, reference
from tests.oracles.oracle import NAN, decode
from tests.places import ROOT

pytestmark = pytest.mark.solvers

HOPPER, AMPERE = "hopper/mma/m16n8k16.f32.f16.f16.f32", "ampere/mma/m16n8k16.f32.f16.f16.f32"
FP8 = "hopper/wgmma/m64n8k32.f32.e4m3.e4m3"
FUNCTIONS = [name for name in mmaprobe.__all__ if name.islower()]
RNG = np.random.default_rng(3)
A, B = (RNG.standard_normal(shape).astype(np.float16) for shape in ((3, 40), (40, 5)))


# -- numbers and patterns


@pytest.mark.parametrize("name", [name for name, fmt in FORMATS.items() if fmt.width <= 16])
def test_every_pattern_is_its_number_and_back(name: str) -> None:
    fmt = FORMATS[name]
    patterns = np.arange(1 << (fmt.width if fmt.signed else fmt.field_width), dtype=kind_of(fmt))
    with np.errstate(invalid="ignore"):
        numbers = to_numbers(patterns, fmt).astype(np.float64)
    again = from_numbers(numbers, fmt)
    for pattern, number, back in zip(patterns.tolist(), numbers.tolist(), again.tolist(), strict=True):
        expected = decode(name, pattern)
        if expected is NAN:
            assert np.isnan(number)
            continue
        magnitude = float("inf")
        if expected.kind == "finite":
            magnitude = float(expected.significand) * 2.0**expected.exponent
        assert number == (-magnitude if expected.sign else magnitude)
        assert np.signbit(number) == expected.sign
        assert back == pattern


def test_types_are_those_of_the_formats() -> None:
    assert type_of(FORMATS["bf16"]) == ml_dtypes.bfloat16
    assert type_of(FORMATS["tf32"]) == type_of(FORMATS["e8m13"]) == np.float32


@pytest.mark.parametrize(
    ("numbers", "fmt", "message"),
    [
        (np.float32(np.nan), "e2m1", "e2m1 has no NaN"),
        (np.float32(-1), "ue8m0", "ue8m0 has powers of two alone, 2.-127 to"),
        (np.float32(np.inf), "e4m3", "not exact in e4m3"),
        (np.float64(1e6), "f16", "not exact in f16"),
        (ml_dtypes.bfloat16(1.0625), "e4m3", "not exact in e4m3"),
        (np.float32(1 + 2**-12), "tf32", "not exact in tf32"),
    ],
)
def test_numbers_that_a_format_does_not_hold(numbers: Any, fmt: str, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        from_numbers(np.asarray(numbers), FORMATS[fmt])


# -- products


def test_recorded_results_of_gpus() -> None:
    """Rows of every instruction with a recording: `dot`, or `matmul` with scale factors, gives the GPU's own bits."""
    kinds = records.rows("recorded.jsonl.gz")
    assert len(kinds) > 20
    for name, rows in kinds.items():
        unit = mmaprobe.unit(name)
        for row in rows[:3]:
            sides = [
                to_numbers(np.array([int(x, 16) for x in given], dtype=kind_of(fmt)), fmt)
                for given, fmt in ((row["a"], unit.a), (row["b"], unit.b), ([row["c"]], unit.c))
            ]
            a, b, c = sides
            if unit.scale is None:
                d = mmaprobe.dot(a, b, c[0], unit=unit)
            else:
                factors = [
                    to_numbers(np.array([int(x, 16) for x in row[key]], dtype=np.uint8), unit.scale)
                    for key in ("scale_a", "scale_b")
                ]
                d = mmaprobe.matmul(
                    a[None, :], b[:, None], c[None, :], unit=unit, scale_a=factors[0][None], scale_b=factors[1][:, None]
                )[0, 0]
            found, seen = (np.asarray(x, dtype=type_of(unit.d)) for x in (d, 0))
            seen = to_numbers(np.array([int(row["d"], 16)], dtype=kind_of(unit.d)), unit.d)[0]
            assert found.tobytes() == np.asarray(seen).tobytes() or (np.isnan(found) and np.isnan(seen)), (name, row)


def test_a_product_is_what_the_model_computes() -> None:
    found = mmaprobe.matmul(A, B, unit=HOPPER)
    assert found.dtype == np.float32
    expected = simulate(A.view(np.uint16), B.view(np.uint16), None, parse_reference(HOPPER))
    assert np.array_equal(found.view(np.uint32), expected)
    plan = mmaprobe.matmul(A, B, plan="cublas/split-k")
    assert plan.dtype == np.float16
    chosen = parse_plan_path("plan:cublas/split-k")
    z = np.zeros((3, 5), dtype=np.uint16)
    assert np.array_equal(plan.view(np.uint16), simulate(A.view(np.uint16), B.view(np.uint16), z, chosen))
    assert np.array_equal(mmaprobe.matmul(A, B, plan=mmaprobe.plan("plan:cublas/split-k")), plan)


def test_an_addend_and_a_dot_product() -> None:
    c = np.full((3, 5), 0.5, dtype=np.float32)
    found = mmaprobe.matmul(A, B, c, unit=HOPPER)
    assert mmaprobe.dot(A[1], B[:, 2], 0.5, unit=HOPPER) == found[1, 2]
    assert type(mmaprobe.dot(A[1], B[:, 2], unit=HOPPER)) is np.float32
    assert np.array_equal(mmaprobe.matmul(A, B, c[:1], unit=HOPPER), found)
    column = mmaprobe.matmul(A, B, np.array([[1.0], [2.0], [3.0]], np.float32), unit=HOPPER)
    assert [mmaprobe.dot(A[i], B[:, 4], i + 1.0, unit=HOPPER) for i in range(3)] == column[:, 4].tolist()


def test_conversion_is_asked_for_by_name() -> None:
    a, b = A.astype(np.float64) / 3, B.astype(np.float32)
    with pytest.raises(
        mmaprobe.MmaprobeError,
        match=r"^a: 0\.68.* at \[0, 0\] is not exact in e4m3: .*convert",
    ):
        mmaprobe.matmul(a, b, unit=FP8)
    found = mmaprobe.matmul(a, b, unit=FP8, convert="nearest_even")
    small = [side.astype(np.float32).astype(ml_dtypes.float8_e4m3fn) for side in (a, b)]
    assert np.array_equal(found, mmaprobe.matmul(small[0], small[1], unit=FP8))
    with pytest.raises(UnknownNameError, match="nearest_even"):
        mmaprobe.matmul(a, b, unit=FP8, convert="nearest")


class WithArray:
    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if self.array is None:
            raise RuntimeError("it lies on another machine")
        return self.array


class WithDlpack:
    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **rest: Any) -> Any:
        return self.array.__dlpack__(**rest)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("kind", [WithArray, WithDlpack])
def test_whatever_holds_an_array(kind: Any) -> None:
    expected = mmaprobe.matmul(A, B, unit=HOPPER)
    assert np.array_equal(mmaprobe.matmul(kind(A), kind(B), unit=HOPPER), expected)
    small = A.astype(ml_dtypes.bfloat16)
    unit = "hopper/mma/m16n8k16.f32.bf16.bf16.f32"
    assert mmaprobe.matmul(WithArray(small), B.astype(ml_dtypes.bfloat16), unit=unit).dtype == np.float32


class Tensor:
    """PyTorch's, where it is not installed: NumPy is given none of bf16."""

    def __init__(self, array: Any, requires_grad: bool = False) -> None:
        self.array, self.requires_grad = array, requires_grad
        self.dtype, self.itemsize = f"torch.{array.dtype}", array.itemsize

    def view(self, kind: Any) -> Tensor:
        return Tensor(self.array.view(kind))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if self.requires_grad or self.array.dtype.kind not in "iu":
            raise TypeError("Got unsupported ScalarType")
        return self.array


@pytest.mark.parametrize(
    ("name", "unit"),
    [("bfloat16", "hopper/mma/m16n8k16.f32.bf16.bf16.f32"), ("float8_e4m3fn", FP8)],
)
def test_the_bits_of_a_tensor_whose_type_numpy_lacks(name: str, unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = A.astype(getattr(ml_dtypes, name)), B.astype(getattr(ml_dtypes, name))
    expected = mmaprobe.matmul(a, b, unit=unit)
    try:
        import torch
    except ModuleNotFoundError:
        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(Tensor=Tensor, uint8=np.uint8, int16=np.int16))
        tensors = [Tensor(side) for side in (a, b)]
    else:
        tensors = [torch.from_numpy(side.astype(np.float32)).to(getattr(torch, name)) for side in (a, b)]
    assert np.array_equal(mmaprobe.matmul(*tensors, unit=unit), expected)
    tensors[0].requires_grad = True
    with pytest.raises(mmaprobe.MmaprobeError, match="a: NumPy cannot read this Tensor: "):
        mmaprobe.matmul(*tensors, unit=unit)


def test_a_file_of_bf16_holds_its_numbers(tmp_path: Path) -> None:
    """NumPy's files have no name for the type: what comes back are pairs of bytes, which are never read as f16."""
    kept = A.astype(ml_dtypes.bfloat16), B.astype(ml_dtypes.bfloat16)
    for name, side in zip("ab", kept, strict=True):
        np.save(tmp_path / f"{name}.npy", side)
    a, b = (np.load(tmp_path / f"{name}.npy") for name in "ab")
    assert a.dtype == np.dtype("V2")
    for unit in ("hopper/mma/m16n8k16.f32.bf16.bf16.f32", HOPPER):
        wanted = mmaprobe.matmul(*kept, unit=unit, convert="nearest_even")
        assert np.array_equal(mmaprobe.matmul(a, b, unit=unit, convert="nearest_even"), wanted)
        files = [str(tmp_path / f"{name}.npy") for name in "abd"]
        command = ["simulate", *files[:2], "-o", files[2], "--model", unit, "--convert", "nearest_even"]
        assert CliRunner().invoke(main, command).exit_code == 0
        assert np.array_equal(np.load(files[2]), wanted)
    assert format_of(a.dtype) is FORMATS["bf16"]


def test_identify_from_a_recording(tmp_path: Path) -> None:
    """Every row counts, here as on the command line; rows that name no instruction are those that were asked about."""
    from mmaprobe.queries.search.samples import sample_rows
    from mmaprobe.smtmodel.evaluate.batch import evaluate_row
    from mmaprobe.smtmodel.evaluate.operands import layout_of

    model = parse_reference(HOPPER)
    path, verdicts = tmp_path / "rows.jsonl", []
    for wrong in (-1, 13):
        lines = []
        for number, row in enumerate(sample_rows(layout_of(model), 30, 5).tolist()):
            operands = layout_of(model).split(row)
            d = evaluate_row(model, operands) ^ (number == wrong)
            a, b = ([f"{x:04x}" for x in side] for side in (operands.a, operands.b))
            lines.append(json.dumps({"a": a, "b": b, "c": f"{operands.c:08x}", "d": f"{d:08x}"}))
        path.write_text("\n".join(lines))
        found = mmaprobe.identify(f"recorded:{path}", "H100", formats="f16,f16,f32,f32", length=16)
        verdicts.append((found.verdict, found.unit and found.unit.reference.partition("@")[0]))
    assert verdicts == [("identified", HOPPER), ("no candidate", None)]
    with pytest.raises(mmaprobe.MmaprobeError, match=r"rows\.jsonl:1: a: 16 elements, but .* has 8 products"):
        mmaprobe.identify(f"recorded:{path}", "H100", formats="f16,f16,f32,f32", length=8)


def test_tensors_of_pytorch() -> None:
    """However they lie in memory; what has no numbers here is an error of PyTorch that says what to do."""
    torch = pytest.importorskip("torch")
    units = {"float16": HOPPER, "bfloat16": "hopper/mma/m16n8k16.f32.bf16.bf16.f32", "float8_e4m3fn": FP8}
    for kind, unit in units.items():
        a, b = (torch.from_numpy(side.astype(np.float32)).to(getattr(torch, kind)) for side in (A, B))
        turned = (side.t().contiguous().t() for side in (a, b))
        wanted = mmaprobe.matmul(a.float().numpy(), b.float().numpy(), unit=unit)
        assert np.array_equal(mmaprobe.matmul(a, b, unit=unit), wanted)
        assert np.array_equal(mmaprobe.matmul(*turned, unit=unit), wanted)
    half = torch.from_numpy(A)
    for tensor, advice in ((half.clone().requires_grad_(), "detach"), (half.to_sparse(), "to_dense")):
        with pytest.raises(mmaprobe.MmaprobeError, match=f"a: NumPy cannot read this Tensor: .*{advice}"):
            mmaprobe.matmul(tensor, B, unit=HOPPER)
    found = mmaprobe.order(lambda x, y: torch.from_numpy(x) @ torch.from_numpy(y), "f32,f32,f32", 4)
    again = mmaprobe.order(lambda x, y: (torch.from_numpy(x) @ torch.from_numpy(y)).numpy(), "f32,f32,f32", 4)
    assert str(found) == str(again)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"a": [[1.0]]}, "a: an array of floating-point numbers .* is wanted, not list; numpy.array"),
        ({"a": A.view(np.uint16)}, "not one of uint16; bit patterns become numbers by a view"),
        ({"a": A.astype(int)}, r"not one of int64; x.astype"),
        ({"a": A.astype(ml_dtypes.float8_e5m2).view("V1")}, r"x.view\(ml_dtypes.float8_e4m3fn\)"),
        ({"unit": "plan:cublas/plain"}, "unit: plan:cublas/plain is a plan: give it as plan="),
        ({"a": A.astype(object)}, "not one of object$"),
        ({"a": A > 0}, "not one of bool; x.astype"),
        ({"a": np.ma.masked_less(A, 0)}, "a: some elements are masked"),
        ({"a": A + 1j}, "not one of complex"),
        ({"a": WithArray(None)}, "NumPy cannot read this WithArray: it lies on another machine"),
        (
            {"a": A[0]},
            r"a: an array of 2 dimensions is wanted, not an array of the shape \(40,\); mmaprobe.dot takes 1",
        ),
        ({"c": A[0].astype(np.float32)}, r"C: shape \(1, 40\) is not that of the product, \(3, 5\)"),
        ({"a": np.stack([A, A]), "b": np.stack([B, B, B])}, r"the batches of the shapes .* do not broadcast"),
        ({"out": np.empty((3, 5))}, r"out: an array of float32 of the shape \(3, 5\) is wanted, not one of float64"),
        ({"b": B[:39]}, "cannot be multiplied: A has 40 columns, and B 39 rows$"),
        ({"b": B.T}, r"and B \d+ rows; B transposed has as many rows \(B.T\)"),
        ({"c": HOPPER}, "the name of a unit or a plan is given as unit='hopper/"),
        ({"c": A}, "C: shape"),
        ({"unit": None}, "give one of the two"),
        ({"plan": "cublas/plain"}, "give one of the two"),
        ({"unit": 3}, r"a unit \(mmaprobe.unit\) or the name of one is wanted, not int"),
        ({"unit": "hopper/mma/m16n8k16.f32.f16.f16.f23"}, "did you mean"),
        ({"unit": None, "plan": "cublas/plane"}, "did you mean 'cublas/plain'"),
        ({"scale_a": A}, "takes no scale factors"),
    ],
)
def test_what_cannot_be_multiplied(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(mmaprobe.MmaprobeError, match=message):
        mmaprobe.matmul(**{"a": A, "b": B, "unit": HOPPER, **arguments})


def test_a_masked_array_without_a_mask_is_an_array() -> None:
    assert np.array_equal(mmaprobe.matmul(np.ma.masked_array(A), B, unit=HOPPER), mmaprobe.matmul(A, B, unit=HOPPER))


# -- questions


def test_one_evaluation_and_where_two_part() -> None:
    found = mmaprobe.explain(HOPPER, A[0, :16], B[:16, 0], against=AMPERE)
    assert found.d == mmaprobe.dot(A[0, :16], B[:16, 0], unit=HOPPER)
    assert found.other == mmaprobe.dot(A[0, :16], B[:16, 0], unit=AMPERE)
    assert found.difference is not None
    assert HOPPER in str(found)
    assert f"first divergence: {found.difference}" in str(found)
    assert found._repr_svg_().startswith("<svg")
    alone = mmaprobe.explain(HOPPER, A[0, :3], B[:3, 0])
    assert (alone.other, alone.difference) == (None, None)
    with pytest.raises(ParameterError, match="up to 16 elements"):
        mmaprobe.explain(HOPPER, A[0], B[:, 0])
    with pytest.raises(ParameterError, match="another format of a"):
        mmaprobe.explain(HOPPER, A[0, :3], B[:3, 0], against=FP8)


def test_two_units_told_apart() -> None:
    found = mmaprobe.distinguish(HOPPER, AMPERE, solver="bitwuzla")
    assert found.verdict == "different"
    assert found.document.pairs[0].found_by_simulation
    (one,) = found.differences
    for case, name in ((one.left, HOPPER), (one.right, AMPERE)):
        assert case.unit == name
        assert mmaprobe.dot(case.a, case.b, case.c, unit=name) == case.d
    assert one.left.d != one.right.d
    with pytest.raises(TypeError, match=r"compare \.verdict"):
        bool(found)


def test_proofs() -> None:
    same = mmaprobe.prove("turing/mma/m16n8k8.f32.f16.f16.f32", "ampere/mma/m16n8k8.f32.f16.f16.f32", timeout=60)
    assert (same.verdict, same.difference) == ("equal", None)
    assert [one.why for one in same.document.proofs] == ["the expressions are the same"]
    bits = mmaprobe.prove("volta/mma/m8n8k4.f32.f16.f16.f32", "volta/mma/m8n8k4.f32.f16.f16.f32@carry_bits=4")
    assert bits.verdict == "equal"
    assert "carry bits that no sum needs" in bits.document.proofs[0].why
    assert bits.document.confirmed_by
    other = mmaprobe.prove("cdna3/mfma/f32_32x32x8_f16", property="sign-symmetric")
    assert other.verdict == "refuted"
    assert other.difference is not None
    for case in (other.difference.left, other.difference.right):
        assert mmaprobe.dot(case.a, case.b, case.c, unit=case.unit) == case.d
    alone = mmaprobe.prove("ieee/fma/f32", property="order-independent")
    assert alone.verdict == "holds"  # no step adds two products
    plans = mmaprobe.prove("plan:cublas/plain", "plan:cublas/plain")
    assert plans.verdict == "equal"
    assert plans.document.multiples
    with pytest.raises(UnknownNameError, match="monotonic"):
        mmaprobe.prove(HOPPER, property="monotonous")
    with pytest.raises(ParameterError, match=r"mmaprobe\.bound"):
        mmaprobe.prove(HOPPER, property="error-bound")
    with pytest.raises(ParameterError, match="give a second unit, or a property of one"):
        mmaprobe.prove(HOPPER)


def near_of(found: mmaprobe.Bound) -> Nearest | NearestProduct:
    """The ratio, the error and the bound of the nearest input."""
    document = found.document
    near = document.nearest if isinstance(document, ErrorBound) else document.sizes[0].nearest
    assert near is not None
    return near


def test_a_bound() -> None:
    """Of a chain, of a plan, and where no rule gives one; the inputs near them give the results that are said."""
    chained = mmaprobe.bound("ieee/fma/f32", length=3)
    assert (chained.verdict, chained.document.length, chained.exponent) == ("holds", 3, 0)
    assert chained.formula is not None
    assert chained.formula in str(chained.document)
    assert chained.every is not None
    assert chained.every.startswith("after n instructions: |d - exact| <= ")
    assert "inputs are finite" in chained.where
    assert "confirmed by" in chained.document.lemmas[0].by
    planned = mmaprobe.bound("plan:loop/fma", length=3, inputs="exponents=-2..2")
    assert planned.every is not None
    assert planned.every.startswith("for K = n: |d - exact| <= ")
    assert planned.exponent == 2
    for found, how in ((chained, {"unit": "ieee/fma/f32"}), (planned, {"plan": "loop/fma"})):
        assert found.nearest is not None
        case, near = found.nearest, near_of(found)
        assert case.a.shape == case.b.shape == (3,)
        assert mmaprobe.dot(case.a, case.b, case.c, **how) == case.d
        exact = sum((Fraction(float(x)) * Fraction(float(y)) for x, y in zip(case.a, case.b, strict=True)),
                    Fraction(float(case.c)))  # fmt: skip
        assert float(abs(Fraction(float(case.d)) - exact)) == near.error <= near.bound
        assert found.largest is not None
        assert found.at(case.a, case.b, case.c) == pytest.approx(near.bound, rel=1e-9)
    assert mmaprobe.bound(mmaprobe.plan("loop/fma")).formula is None
    none = mmaprobe.bound("volta/mma/m8n8k4.f32.f16.f16.f32@carry_bits=1")
    assert (none.verdict, none.formula) == ("refuted", None)
    assert none.nearest is not None
    assert near_of(none).error > near_of(none).bound  # of all magnitudes together: the sum wrapped
    assert none.document.reason is not None
    assert "may wrap" in none.document.reason
    with pytest.raises(ParameterError, match="it takes a multiple of 16"):
        mmaprobe.bound(HOPPER, length=17)
    with pytest.raises(ParameterError, match="may wrap"):
        none.at(np.ones(4, np.float16), np.ones(4, np.float16))
    with pytest.raises(ParameterError, match="exponents alone"):
        mmaprobe.bound(HOPPER, inputs="finite")


@pytest.mark.parametrize(("unit", "length", "kind"), [
    (HOPPER, 32, np.float16), ("ieee/fma/f32", None, np.float32), ("plan:cublas/plain", 40, np.float16),
    ("plan:loop/fma", 5, np.float32)])  # fmt: skip
def test_a_bound_of_given_numbers(unit: str, length: int | None, kind: type[np.floating[Any]]) -> None:
    """Every element's error is below its bound, subnormal inputs too; and for twice the numbers it is twice
    the bound, but for what subnormal results lose."""
    found = mmaprobe.bound(unit, length=length, confirm=False)
    how = {"plan": unit} if unit.startswith("plan:") else {"unit": unit}
    rng, k = np.random.default_rng(5), found.proved.length if length is None else length
    a, b = rng.standard_normal((2, k)).astype(kind), rng.standard_normal((k, 3)).astype(kind)
    a[0, 0], b[0, 1] = np.finfo(kind).smallest_subnormal, 0
    c = mmaprobe.matmul(a, b, **how)  # in the format of the addend
    addend = () if unit == "plan:cublas/plain" else (c,)  # whose beta is 0
    got, bounds = mmaprobe.matmul(a, b, *addend, **how), found.at(a, b, *addend)
    assert bounds.shape == got.shape
    for i, j in np.ndindex(*got.shape):
        pairs = zip(a[i], b[:, j], strict=True)
        exact = sum((Fraction(float(x)) * Fraction(float(y)) for x, y in pairs), Fraction(0))
        exact += Fraction(float(c[i, j])) if addend else 0
        assert abs(Fraction(float(got[i, j])) - exact) <= Fraction(float(bounds[i, j])) < 1
    assert found.at(a[1], b[:, 0], *(side[1, 0] for side in addend)) == bounds[1, 0]
    assert found.at(a, b)[1, 0] <= bounds[1, 0]
    twice = (side[1, 0] * kind(2) for side in addend)
    assert found.at(a[1] * kind(2), b[:, 0], *twice) == pytest.approx(2 * bounds[1, 0], rel=1e-3)


@pytest.mark.parametrize("unit", ["plan:loop/fma", "ampere/mma/m16n8k8.f32.bf16.bf16.f32"])
def test_a_bound_of_numbers_that_may_overflow(unit: str) -> None:
    """Nothing is proved where a rounding overflows, and `at` says so."""
    found = mmaprobe.bound(unit, length=8, confirm=False)
    a, b = np.full((2, 8), 1.0, np.float32), np.full((8, 3), 1.0, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.at(a, b)
        found.at(a * np.float32(2.0**122), b)
    for sides in ((a * np.float32(2.0**127), b), ((a * np.float32(2.0**127))[0], b[:, 0])):
        with pytest.warns(RuntimeWarning, match=r"on which no rounding overflows: .* add up to 1.36e\+39") as given:
            found.at(*sides)
        assert given[0].filename == __file__


@pytest.mark.parametrize(("unit", "length"), [
    (HOPPER, None), (HOPPER, 48), ("plan:cublas/plain", 40), ("cdna3/mfma/f32_32x32x8_f16", None),
    ("ieee/fma/f64", 4)])  # fmt: skip
def test_a_bound_of_large_matrices_is_that_of_their_elements(
    unit: str, length: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In f64, rounded up: subnormal factors and products that f64 does not hold too."""
    found = mmaprobe.bound(unit, length=length, confirm=False)
    kind = np.float64 if "f64" in unit else np.float16
    rng, k = np.random.default_rng(3), found.proved.length if length is None else length
    a = (rng.standard_normal((6, k)) * 10.0 ** rng.integers(-7, 3, (6, k))).astype(kind)
    b = rng.standard_normal((k, 5)).astype(kind)
    a[0], b[0, 0] = 0, np.finfo(kind).smallest_subnormal
    a[1] = np.finfo(kind).tiny
    if kind is np.float64:
        a[2] *= 1e-200
        b[:, 2] *= 1e-200
    sizes = found.at(a, b)
    monkeypatch.setattr(bound_values, "EXACTLY", 0)
    monkeypatch.setattr(bound_values, "_evaluated", lambda found: (k, None))
    at_once = found.at(a, b)
    assert (at_once >= sizes).all()
    assert (at_once <= sizes * (1 + 1e-9) + 1e-300).all()


@pytest.mark.parametrize("unit", [HOPPER, "plan:loop/fma", "plan:cutlass/tf32"])
def test_a_bound_in_the_largest_elements(unit: str) -> None:
    """Of a row and a column: that of products of these alone, whatever the signs."""
    found = mmaprobe.bound(unit, length=32, confirm=False)
    kind = np.float16 if unit == HOPPER else np.float32
    rng = np.random.default_rng(4)
    a, b, c = (rng.standard_normal(shape).astype(kind) for shape in ((3, 32), (32, 2), (3, 2)))
    c = c.astype(np.float32)
    largest, every = found.at(a, b, c, measure="largest"), found.at(a, b, c, measure="elements")
    assert (every == found.at(a, b, c)).all()
    assert (every < largest).all()
    most = np.broadcast_to(np.abs(a).max(1, keepdims=True), a.shape), np.broadcast_to(np.abs(b).max(0), b.shape)
    assert (largest >= found.at(*most, np.abs(c))).all()
    assert largest == pytest.approx(found.at(*most, np.abs(c)), rel=1e-9)
    assert (found.at(*most, np.abs(c), measure="largest") == largest).all()
    assert found.at(a[0], b[:, 0], c[0, 0], measure="largest") == pytest.approx(largest[0, 0], rel=1e-9)


def test_a_bound_takes_the_addends_of_matmul() -> None:
    """A bias, a row, a column, one number: as a whole matrix of them."""
    found = mmaprobe.bound(HOPPER, confirm=False)
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((3, 16), (16, 5)))
    for c in (*(rng.standard_normal(shape).astype(np.float32) for shape in ((5,), (1, 5), (3, 1), ())), 2.5, 3):
        whole = np.broadcast_to(np.asarray(c, np.float32), (3, 5))
        assert mmaprobe.matmul(a, b, c, unit=HOPPER).shape == (3, 5)
        for measure in ("elements", "largest"):
            assert (found.at(a, b, c, measure=measure) == found.at(a, b, whole, measure=measure)).all()
    for wrong in (np.ones(3, np.float32), np.ones((1, 3, 5), np.float32)):
        with pytest.raises(ParameterError, match="is not that of the product"):
            found.at(a, b, wrong)
    with pytest.raises(ParameterError, match="c: one number is wanted"):
        found.at(a[0], b[:, 0], np.ones(1, np.float32))


def test_the_bound_of_slices_is_in_the_largest_elements() -> None:
    found = mmaprobe.bound("plan:ozaki/int8-6", length=24, confirm=False)
    rng = np.random.default_rng(6)
    a, b = rng.standard_normal((4, 24)), rng.standard_normal((24, 3)) * 2.0 ** rng.integers(-30, 1, (24, 3))
    sizes = found.at(a, b)
    share = Fraction(found.proved.largest[0].share)  # type: ignore[union-attr]
    got, errors = mmaprobe.matmul(a, b, plan="ozaki/int8-6"), np.empty(sizes.shape)
    for i, j in np.ndindex(*sizes.shape):
        pairs = [(Fraction(x), Fraction(y)) for x, y in zip(a[i].tolist(), b[:, j].tolist(), strict=True)]
        errors[i, j] = float(abs(Fraction(float(got[i, j])) - sum((x * y for x, y in pairs), Fraction(0))))
        exactly = share * 24 * max(abs(x) for x, _ in pairs) * max(abs(y) for _, y in pairs)
        assert exactly <= Fraction(float(sizes[i, j])) <= exactly * (1 + Fraction(1, 1 << 43))
    assert (errors <= sizes).all()
    assert (errors > sizes / 4096).any()
    assert found.at(a[0], b[:, 0]) == sizes[0, 0] == found.at(a, b, measure="largest")[0, 0]
    for given, how, message in (
        ((a, b), {"measure": "elements"}, "no rule is about a word that reads several"),
        ((a, b), {"measure": "any"}, "'any' is none of"),
        ((a * 0, b), {}, "a: the largest magnitudes"), ((a, b * 2.0**200), {}, "b: the largest magnitudes"),
        ((a[:, :9], b[:9]), {}, "K is 9, and this bound is for 24"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=message):
            found.at(*given, **how)  # type: ignore[arg-type]


def test_numbers_that_a_bound_is_not_for() -> None:
    found, ones = mmaprobe.bound(HOPPER, confirm=False), np.ones(16, np.float16)
    for given, message in (
        ((ones[:8], ones[:8]), "K is 8, and this bound is for 16"),
        ((ones, np.append(ones, ones)), "do not fit"),
        ((ones, ones * np.float16(np.inf)), "finite numbers"),
        ((ones, ones, "1"), "c: an array"),
        ((ones * 1j, ones), "a: an array of floating-point numbers"),
    ):
        with pytest.raises(mmaprobe.MmaprobeError, match=message):
            found.at(*given)
    with pytest.raises(ParameterError, match="not one number"):
        mmaprobe.bound("plan:loop/fma", confirm=False).at(ones, ones)
    flushing = mmaprobe.bound("x86/avx512/vdpbf16ps", confirm=False)
    tiny = np.full(2, 1e-39, np.float32)
    with pytest.raises(ParameterError, match="reads subnormal numbers as zero"):
        flushing.at(tiny, np.ones(2, np.float32), convert="nearest_even")


def test_a_claim() -> None:
    (found,) = mmaprobe.verify("ootomo-not-worse-f16@terms=2,split=toward_zero")
    assert found.verdict == found.document.expect


def chain(a: Any, b: Any, c: Any) -> Any:
    d = c
    with np.errstate(all="ignore"):
        for k in range(a.shape[1]):
            d = (d + a[:, k : k + 1].astype(np.float64) * b[k : k + 1]).astype(np.float32)
    return d


def test_the_order_of_a_function() -> None:
    found = mmaprobe.order(chain, "f16,f16,f32,f32", 5)
    assert str(found).startswith("c, 0-4 (added one after another)")
    assert found._repr_svg_().startswith("<svg")
    assert found.document.steps
    with pytest.raises(mmaprobe.MmaprobeError, match=r"a function .* is wanted, not int"):
        mmaprobe.order(3, "f16,f16,f32,f32", 5)  # type: ignore[arg-type]


def test_the_unit_of_a_function() -> None:
    found = mmaprobe.identify(chain, formats="f16,f16,f32,f32", length=2)
    assert found.verdict == "built"
    assert found.unit is not None
    a, b = A[:, :2], B[:2]
    assert np.array_equal(
        mmaprobe.matmul(a, b, unit=found.unit), chain(a, b, np.zeros((3, 5), dtype=np.float32))
    )  # fmt: skip
    with pytest.raises(ParameterError, match="both are wanted"):
        mmaprobe.identify(chain)


def test_the_instruction_of_a_gpu_that_a_function_is() -> None:
    unit = "ampere/mma/m16n8k8.f32.f16.f16.f32"

    def product(a: Any, b: Any, c: Any) -> Any:
        return mmaprobe.matmul(a, b, c, unit=unit)

    found = mmaprobe.identify(product, "A100", formats="f16,f16,f32,f32", length=8)
    assert found.verdict == "identified"
    assert found.unit is not None
    assert unit in found.document.units
    assert mmaprobe.identify(product, "H100", formats="f16,f16,f32,f32", length=8).verdict == "no candidate"
    with pytest.raises(ParameterError, match="both are wanted with A100"):
        mmaprobe.identify(product, "A100")
    with pytest.raises(mmaprobe.MmaprobeError, match=r"A100 \(ampere\) has no instruction on f16 f16 f16 f32"):
        mmaprobe.identify(product, "A100", formats="f16,f16,f16,f32", length=8)


# -- the package itself


def test_its_page_lists_every_function() -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8").splitlines()
    for name in FUNCTIONS:
        function = getattr(mmaprobe, name)
        first = (inspect.getdoc(function) or "").splitlines()[0]
        assert f"| `{reference.call(function)}` | {first} |" in page


def test_the_reference_is_that_of_the_docstrings() -> None:
    assert reference.PAGE.read_text(encoding="utf-8") == reference.page(), "python -m tests.reference writes it"


def test_importing_it_is_quick() -> None:
    late = {"numpy", "z3", "pysmt", "click", "mmaprobe.smtmodel"}
    program = f"import sys, mmaprobe; print(sorted({late} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-P", "-c", program], cwd=ROOT, env={"PYTHONPATH": str(ROOT)},
                           capture_output=True, text=True, check=True)  # fmt: skip
    assert found.stdout.strip() == "[]"
    assert set(mmaprobe.__all__) <= set(dir(mmaprobe))
    assert mmaprobe.__version__ == VERSION
    with pytest.raises(AttributeError, match="no attribute 'matmull'"):
        mmaprobe.matmull  # noqa: B018


def test_a_program_without_a_guard_is_not_run_again(tmp_path: Path) -> None:
    """Children that simulate candidates do not run the user's program, which would start children in turn."""
    program = tmp_path / "mine.py"
    program.write_text(
        "import numpy as np\nprint('once', flush=True)\nfrom mmaprobe.queries.candidates import outcomes\n"
        "from mmaprobe.smtmodel.tables.reference import parse_reference\noutcomes.ALONE = outcomes.PART = 1\n"
        f"model = parse_reference({HOPPER!r})\n"
        "print(outcomes.simulate([model, model], np.zeros((1, 33), dtype=np.uint64), processes=2).shape)\n"
    )
    found = subprocess.run([sys.executable, str(program)], env={"PYTHONPATH": str(ROOT)}, cwd=tmp_path,
                           capture_output=True, text=True, timeout=60)  # fmt: skip
    assert found.stdout.split("\n")[:2] == ["once", "(2, 1)"], found.stderr


@pytest.mark.parametrize(
    ("call", "output"),
    [
        (lambda: mmaprobe.distinguish(HOPPER, HOPPER, count="3"), "count: a whole number is wanted, not str"),  # type: ignore[arg-type]
        (
            lambda: mmaprobe.distinguish(HOPPER, HOPPER, inputs=None),
            "inputs: a string such as 'finite,nonzero' is wanted",
        ),  # type: ignore[arg-type]
        (lambda: mmaprobe.distinguish(HOPPER, HOPPER, timeout=float("nan")), "timeout: nan is impossible"),
        (lambda: mmaprobe.prove(HOPPER, HOPPER, length=0), "length: 0 is impossible"),
        (lambda: mmaprobe.prove(HOPPER, HOPPER, length=1.5), "length: a whole number is wanted"),  # type: ignore[arg-type]
        (lambda: mmaprobe.order(chain, "f16,f16,f32,f32", "8"), "length: a whole number is wanted"),  # type: ignore[arg-type]
        (lambda: mmaprobe.order(chain, "f16,f32", 8), "^formats: .*give a,b,c,d"),
        (lambda: mmaprobe.prove(HOPPER, HOPPER, inputs="exponents=5..3"), "^inputs: "),
        (lambda: mmaprobe.order(chain, ["f16"] * 4, 8), "formats: a string such as .* is wanted"),  # type: ignore[arg-type]
        (lambda: mmaprobe.verify("ootomo-not-worse-f16", timeout=-1), "timeout: -1 is impossible"),
        (lambda: mmaprobe.dot(A[0], B[:, 0], 2**53 + 1, unit=HOPPER), "not exact in f64"),
        (lambda: mmaprobe.dot(A[0], B[:, 0], 10**400, unit=HOPPER), "not exact in f64"),
    ],
)
def test_wrong_arguments_have_named_errors(call: Callable[[], object], output: str) -> None:
    with pytest.raises(mmaprobe.MmaprobeError, match=output):
        call()


def test_a_property_of_a_plan_at_one_k_is_told_how_to_be_asked() -> None:
    with pytest.raises(ParameterError, match="one plan at one K is a unit: plan:cublas/split-k@length=16"):
        mmaprobe.prove("plan:cublas/split-k", property="sign-symmetric", length=16)
