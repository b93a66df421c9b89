"""What `identify --gemm` says of functions that are no products of matrices: zero points, and a factor for each row or
column."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from mmaprobe.cli.main import main
from mmaprobe.queries.plans.asked_products import AskedProducts
from mmaprobe.queries.plans.first_questions import FirstQuestions
from mmaprobe.queries.plans.recorded import Sample
from mmaprobe.queries.plans.rules import Shape
from mmaprobe.smtmodel.evaluate.numbers import from_numbers, in_f64
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.smtmodel.inputs.signature import parse_signature
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.tables.reference import parse_plan_path


def identified(tmp_path: Path, body: str, formats: str, *more: str) -> Result:
    path = tmp_path / "kernel.py"
    path.write_text(f"import numpy as np\ndef f(a, b):\n    a, b = np.int32(a), np.int32(b)\n    return {body}\n")
    given = ["--device", f"python:{path}:f", "--formats", formats, "--length", "20", *more]
    return CliRunner().invoke(main, ["identify", "--gemm", *given])


@pytest.mark.parametrize(
    ("body", "factor", "other"),
    [
        ("np.float32((a - 3) @ b)", "A", "B"),
        ("np.float32(a @ (b + 1))", "B", "A"),
        ("np.int32((a - 3) @ (b + 1) + 3 * a.shape[1])", "A", "B"),
        ("np.int8(np.clip((a - 3) @ b >> 8, -128, 127))", "A", "B"),
        ("np.int8(np.where((a == 0).all(1)[:, None] & (b != 0).all(0), -128, 0))", "A", "B"),  # the pattern of -0
    ],
)
def test_a_zero_point_is_said_at_once(tmp_path: Path, body: str, factor: str, other: str) -> None:
    made = re.search(r"float32|int8|int32", body)
    assert made
    done = identified(tmp_path, body, f"int8,int8,{made[0].replace('float', 'f')}", "--shape", "8,8")
    assert done.exit_code == 3, done.output
    assert f"zeros for {factor}, beside other numbers for {other}, give " in done.output
    assert f"but not where {factor} has a zero point" in done.output


@pytest.mark.parametrize(
    ("rounded", "zero_point", "steps"),
    [
        ("np.rint(SUMS * np.float32(2**-7)) + 3", 3, "r2(exact(r(product(2**-7, sum("),
        ("np.rint(SUMS * np.float32(2**-7) + np.float32(3))", 3, "r(exact(product(2**-7, sum("),
        ("np.maximum(np.rint(SUMS * np.float32(2**-7)), 0) - 5", -5, "r2(exact(r(relu(product(2**-7, sum("),
    ],
)
def test_a_zero_point_of_the_results_is_a_step_of_the_plan(
    tmp_path: Path, rounded: str, zero_point: int, steps: str
) -> None:
    """A factor of a power of two has many ties, on which the place of the zero point shows."""
    body = f"np.clip({rounded.replace('SUMS', 'np.float32(a @ b)')}, -128, 127).astype(np.int8)"
    done = identified(tmp_path, body, "int8,int8,int8", "--shape", "6,6", "--save", str(tmp_path / "plan.yaml"))
    assert done.exit_code == 0, done.output
    assert f"results have a zero point of {zero_point}, as zeros give it" in done.output
    assert f"all products: {steps}" in done.output
    rng = np.random.default_rng(5)
    a = rng.integers(-128, 128, (100, 20)) >> rng.integers(0, 8, (100, 1))
    b = rng.integers(-128, 128, (20, 100))
    own = eval(f"np.clip({rounded}, -128, 127).astype(np.int8)", {"np": np, "SUMS": np.float32(a @ b)})
    plan = parse_plan_path(f"plan:{tmp_path}/plan.yaml")
    patterns = (side.astype(np.int8).view(np.uint8) for side in (a, b))
    assert np.array_equal(simulate(*patterns, None, plan).astype(np.uint8).view(np.int8), own)


def test_a_zero_point_of_the_results_is_told_from_a_bias(tmp_path: Path) -> None:
    """Zeros give the same number in each element where the results have a zero point."""
    body = "np.clip((a @ b >> 5) + np.arange(b.shape[1]), -128, 127).astype(np.int8)"
    done = identified(tmp_path, body, "int8,int8,int8", "--shape", "6,6")
    assert done.exit_code == 3, done.output
    assert "zeros give 1 in column 1: something is added besides the products" in done.output


@pytest.mark.parametrize(
    ("body", "name", "one"),
    [
        ("np.float32(a @ b) * FACTORS[: b.shape[1]]", "column", "8,1"),
        ("np.float32(a @ b) * FACTORS[: len(a), None]", "row", "1,8"),
    ],
)
def test_a_factor_for_each_row_or_column_is_said(tmp_path: Path, body: str, name: str, one: str) -> None:
    rng = np.random.default_rng(3)
    factors = f"np.float32({rng.uniform(0.001, 0.05, 16).astype(np.float32).tolist()})"
    body = body.replace("FACTORS", factors)
    done = identified(tmp_path, body, "int8,int8,f32", "--shape", "8,8", "--timeout", "10")
    assert done.exit_code in (1, 3), done.output
    option = re.escape("M,1" if name == "column" else "1,N")
    words = rf"the same factors give .* in {name} 0 and .* in {name} 1: no plan has a factor for each {name}, .*"
    assert re.search(rf"{words}--shape {option} asks one {name} alone", done.output), done.output
    done = identified(tmp_path, body, "int8,int8,f32", "--shape", one)
    assert done.exit_code == 0, done.output
    assert "the same factors" not in done.output


@pytest.mark.parametrize(
    "formats", ["f16,f16,f16", "bf16,bf16,f32", "f64,f64,f64", "e2m1,e2m1,f32", "e4m3,e5m2,f16", "uint8,int8,int32"]
)
def test_sums_in_any_order_are_alike_where_rows_and_columns_are(formats: str) -> None:
    """Each element is added in an order of its own, each sum rounded to the format of the results; zeros are -0."""
    asked = parse_signature(formats, 16)
    rng = np.random.default_rng(1)

    def multiply(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        x, y = in_f64(a, asked.a), in_f64(b, asked.b)
        d = np.zeros(c.shape, np.uint64)
        for row, column in np.ndindex(c.shape):
            total = 0.0
            for k in rng.permutation(x.shape[1]):
                total += x[row, k] * y[k, column]
                if not asked.d.is_integer:
                    d[row, column] = from_numbers(np.array([[total or -0.0]]), asked.d, "nearest_even")[0, 0]
                    total = float(in_f64(d[row : row + 1, column], asked.d)[0])
            if asked.d.is_integer:
                d[row, column] = int(total) % (1 << asked.d.width)
        return d.astype(kind_of(asked.d))

    first = FirstQuestions(asked, multiply, (8, 9, 16))
    first.check_zeros()
    assert first.unlike() == ""


@pytest.mark.parametrize("formats", ["f16,f16,f32", "e4m3fnuz,e4m3fnuz,f32", "f16,int8,f32", "f16,uint8,f32"])
def test_products_that_cancel_do_so_in_every_format(formats: str) -> None:
    """Zeros whose pattern with a sign is NaN, and integers in two's complement, have negatives too; uint8 has none."""
    asked, shape = parse_signature(formats, 1), Shape(3, 200, 401)
    seen = list[Sample]()
    ask = AskedProducts(asked, lambda a, b, c: c, shape, (1, 1, 1), 1, 1)
    rows, columns = np.arange(3), np.arange(200)
    seen += [ask.drawn(shape, rows, columns, True) for _ in range(3)]
    for sample in seen:
        a, b = in_f64(sample.a[0], asked.a), in_f64(sample.b[0], asked.b)
        assert np.isfinite(b).all()
        sums = [math.fsum(row * column) for row in a for column in b.T]
        assert (not any(sums)) == asked.b.signed
