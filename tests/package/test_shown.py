"""What people see and type first: lists, what a notebook shows, batches, short names, and nodes of unit files."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner

import mmaprobe
from mmaprobe.cli.choice import Millimetres
from mmaprobe.cli.commands import listing
from mmaprobe.cli.main import main
from mmaprobe.listed import SHOWN
from mmaprobe.questions import terms_text
from mmaprobe.reports.latex import latex_of
from mmaprobe.smtmodel.algorithms import ALGORITHMS
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.arithmetic.rounding import MODES, ROUNDINGS, SHORT
from mmaprobe.smtmodel.base.errors import InputError, ParameterError, UnknownNameError
from mmaprobe.smtmodel.evaluate.identity import identity_text
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import from_numbers
from mmaprobe.smtmodel.families.parameters import parse_parameter
from mmaprobe.smtmodel.tables.reference import parse_plan_path, parse_reference
from mmaprobe.smtmodel.units.unitfile import ExpressionReader, parse_unit, unit_text
from mmaprobe.smtmodel.units.written import NODES
from tests import nodes_page

HOPPER, VOLTA = "hopper/mma/m16n8k16.f32.f16.f16.f32", "volta/mma/m8n8k4.f32.f16.f16.f32"
RNG = np.random.default_rng(5)
A, B = (RNG.standard_normal(shape).astype(np.float16) for shape in ((2, 3, 4, 20), (3, 20, 5)))


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(main, list(arguments))
    assert done.exit_code == code, done.output
    return done.output


# -- lists


@pytest.mark.parametrize("kind", ["models", "plans", "formats", "claims", "gpus"])
def test_python_lists_what_the_command_lists(kind: str) -> None:
    listed = getattr(mmaprobe, "units" if kind == "models" else kind)
    rows = listed()
    assert [row.id for row in rows] == [row["id"] for row in json.loads(run("list", kind, "--json"))]
    assert len(repr(rows).splitlines()) == min(len(rows), SHOWN) + 1
    assert f"({len(rows)} {kind}" in repr(rows)
    assert rows._repr_html_().count("<tr>") == min(len(rows), SHOWN) + 1
    assert len(rows[:2]) == 2


def test_lists_are_filtered_by_words_and_formats() -> None:
    assert {row.id for row in mmaprobe.units("H100", "e4m3")} == {
        row.id for row in mmaprobe.units() if row.id.startswith("hopper/") and "e4m3" in row.id
    }
    found = mmaprobe.units(a="bf16", d="f32")
    assert found
    assert {(row.formats.a, row.formats.d) for row in found} == {("bf16", "f32")}
    assert list(mmaprobe.units("hopper", a="e2m1")) == []
    with pytest.raises(ParameterError, match="Did you mean 'hopper'"):
        mmaprobe.units("hoper")
    with pytest.raises(UnknownNameError, match="did you mean 'f16'"):
        mmaprobe.plans(a="f17")


def test_a_terminal_is_shown_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    lines = ["x" * 81] * 40  # two rows each
    assert listing._of_a_screen(lines) == 10
    assert listing._of_a_screen(["x"] * 22) == 22
    assert listing._of_a_screen(["x"] * 23) == 21
    assert len(run("list", "models").splitlines()) > 100  # no terminal: every row


# -- representations


def test_what_is_seen_of_units_plans_and_verdicts_is_two_lines() -> None:
    different = mmaprobe.distinguish(VOLTA, f"{HOPPER}@length=4")
    equal = mmaprobe.prove(VOLTA, f"{VOLTA}@carry_bits=4")
    claims = mmaprobe.verify("ootomo-not-worse-f16@terms=2,split=toward_zero")
    (claim,) = claims
    assert claim.input is not None
    assert repr(claims) == repr(claim)
    assert claim.document.id in claim._repr_html_() in claims._repr_html_()
    unit = mmaprobe.units(VOLTA)[0]
    assert repr(unit) == f"{VOLTA}  {unit.summary}"
    alone = mmaprobe.prove(VOLTA, property="order-independent")
    assert repr(alone) == f"holds: order-independent, {VOLTA}"
    seen = [mmaprobe.unit(HOPPER), mmaprobe.plan("cublas/split-k"), different, different.differences[0],
            different.differences[0].left, equal, claim, claim.input, mmaprobe.bound(VOLTA, confirm=False)]  # fmt: skip
    for one in seen:
        assert len(repr(one).splitlines()) == 2, repr(one)
        assert len(repr(one)) < 700
        assert "<" in one._repr_html_()
    assert "F=25" in repr(seen[0])
    assert "K in four runs" in repr(seen[1])
    assert repr(different).startswith("different: ")
    assert repr(equal).startswith(f"equal: {VOLTA} = {VOLTA}@carry_bits=4\n  by ")
    assert "; confirmed by " in repr(equal)
    assert repr(claim).startswith(f"{claim.document.id}: refuted: ")
    assert "&lt;=" in seen[-1]._repr_html_()


def test_the_input_of_a_claim_is_that_of_its_document() -> None:
    (claim,) = mmaprobe.verify("ootomo-not-worse-f16@terms=2,split=toward_zero")
    found, recorded = claim.input, claim.document.vector
    assert found is not None
    assert recorded is not None
    fmt = FORMATS[recorded.format]
    assert [f"{x:04x}" for x in from_numbers(found.a, fmt).tolist()] == recorded.a
    assert [f"{x:04x}" for x in from_numbers(found.b, fmt).tolist()] == recorded.b
    assert found.exact == sum(
        (x * y for x, y in zip(map(_fraction, found.a), map(_fraction, found.b), strict=True)), _fraction(found.c)
    )
    results = {name: f"{from_numbers(np.array([d]), FORMATS['f32'])[0]:08x}" for name, d in found.results.items()}
    assert results == {name: part.d for name, part in recorded.results.items()}


def _fraction(number: Any) -> Fraction:
    return Fraction(float(number))


def test_stored_results_are_found_by_all_that_is_computed() -> None:
    """Not by what people see of a model, which leaves out what is long."""
    model = parse_reference(HOPPER)
    assert identity_text(model) == identity_text(parse_reference(HOPPER))
    other = Model(model.reference, replace(parse_reference(f"{HOPPER}@fraction_bits=24").unit))
    assert identity_text(model) != identity_text(other)
    stages = [products.stage for name in ("cublas/split-k", "cublas/plain") for products in parse_plan_path(name).sums]
    assert len({identity_text(stage) for stage in stages}) == len(stages)
    assert all("#0 element" in identity_text(stage) for stage in stages)


# -- products


def test_batches_biases_scalars_and_out() -> None:
    whole = mmaprobe.matmul(A, B, unit=HOPPER)
    bias, block = np.arange(5, dtype=np.float32), RNG.standard_normal((2, 1, 4, 5)).astype(np.float32)
    biased, each = mmaprobe.matmul(A, B, bias, unit=HOPPER), mmaprobe.matmul(A, B, block, unit=HOPPER)
    one, column = mmaprobe.matmul(A, B, 2.5, unit=HOPPER), mmaprobe.matmul(A, B, bias[:4, None], unit=HOPPER)
    assert whole.shape == each.shape == (2, 3, 4, 5)
    for i in range(2):
        for j in range(3):
            for found, c in ((whole, None), (biased, bias[None, :]), (each, block[i, 0]), (column, bias[:4, None]),
                             (one, np.full((4, 5), 2.5, np.float32))):  # fmt: skip
                assert np.array_equal(found[i, j], mmaprobe.matmul(A[i, j], B[j], c, unit=HOPPER))
    out = np.empty((4, 5), np.float32)
    assert mmaprobe.matmul(A[0, 0], B[0], 1, unit=HOPPER, out=out) is out
    assert np.array_equal(out, mmaprobe.matmul(A[0, 0], B[0], np.ones((4, 5), np.float32), unit=HOPPER))
    assert mmaprobe.matmul(A[:0], B, bias, unit=HOPPER).shape == (0, 3, 4, 5)
    with pytest.raises(ParameterError, match=r"C: shape \(4,|C: shape \(1, 4\)"):
        mmaprobe.matmul(A, B, bias[:4], unit=HOPPER)


def test_batches_with_scale_factors() -> None:
    unit = "blackwell/tcgen05mma_block_scale/m64n8k32.block32.f32.e4m3.e4m3.ue8m0"
    kinds = mmaprobe.matmul(np.ones((1, 32), np.float32), np.ones((32, 1), np.float32), unit=unit, convert="rne",
                            scale_a=np.ones((1, 1), np.float32), scale_b=np.ones((1, 1), np.float32))  # fmt: skip
    a, b = np.ones((2, 3, 32), np.float32), np.ones((32, 2), np.float32)
    scale_a, scale_b = np.full((2, 3, 1), 2, np.float32), np.ones((1, 2), np.float32)
    scale_a[1] = 4
    found = mmaprobe.matmul(a, b, unit=unit, convert="rne", scale_a=scale_a, scale_b=scale_b)
    assert found.shape == (2, 3, 2)
    assert np.array_equal(found[0], np.full((3, 2), 2 * kinds[0, 0]))
    assert np.array_equal(found[1], np.full((3, 2), 4 * kinds[0, 0]))


# -- short names


def test_short_names_of_roundings(tmp_path: Path) -> None:
    assert set(SHORT.values()) == set(MODES)
    a, b = A[0, 0].astype(np.float32) * np.float32(1.1), B[0]
    for short, mode in SHORT.items():
        assert parse_parameter("output_rounding", short) == mode
        text = NODES["cut"].file.replace("down", short)
        assert parse_unit(text, "u").result == parse_unit(text.replace(f", {short})", f", {mode})"), "u").result
        if mode in ROUNDINGS:
            found = mmaprobe.matmul(a, b, unit=HOPPER, convert=short.upper())
            assert np.array_equal(found, mmaprobe.matmul(a, b, unit=HOPPER, convert=mode))
    with pytest.raises(UnknownNameError, match="rounding"):
        mmaprobe.matmul(a, b, unit=HOPPER, convert="rto")  # no rounding of IEEE 754
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    run("simulate", str(tmp_path / "a.npy"), str(tmp_path / "b.npy"), "-o", str(tmp_path / "d.npy"), "--model", HOPPER,
        "--convert", "RTZ")  # fmt: skip
    assert np.array_equal(np.load(tmp_path / "d.npy"), mmaprobe.matmul(a, b, unit=HOPPER, convert="toward_zero"))


def test_lengths_on_paper_have_units() -> None:
    kind = Millimetres()
    assert [kind.convert(text, None, None) for text in ("85", "85mm", "8.5cm", "3.5in")] == [85, 85, 85, 88.9]
    for text in ("in", "cm", "8.5 m", "-1in", "1e999in", "nanmm"):
        with pytest.raises(Exception, match=r"millimetres|range"):
            kind.convert(text, None, None)


def test_the_package_is_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "mmaprobe", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == run("--version").replace("main", "mmaprobe")


# -- nodes of unit files


@pytest.mark.parametrize("name", NODES)
def test_the_example_of_a_node_is_a_unit_with_it(name: str) -> None:
    row = NODES[name]
    unit = parse_unit(row.file, name, whole=True)
    assert f"{name}(" in row.example
    again = parse_unit(unit_text(unit), name)
    assert again.result == unit.result
    shown = run("list", "nodes", name)
    assert row.file.strip().splitlines()[-1].strip() in shown
    for option in row.options:
        assert f"  {option.name}: {option.meaning}: {option.values}" in shown


def test_the_page_of_nodes_is_that_of_their_table() -> None:
    assert nodes_page.PAGE.read_text(encoding="utf-8") == nodes_page.page(), "python -m tests.nodes_page writes it"


def test_every_node_and_each_option_has_a_row() -> None:
    """What the reader calls, and what an option is that is not given."""
    assert set(NODES) == set(ExpressionReader.calls)
    for row in NODES.values():
        for option in row.options:
            values = option.values.split(", ")
            if option.by_name and option.default in values:
                for value in values:
                    call = f"{row.name}({_inside(row.example, row.name)}, {option.name}={value})"
                    text = row.file.replace(f"{row.name}({_whole(row.example, row.name)})", call)
                    given = parse_unit(text, row.name)
                    if value == option.default:
                        bare = row.file.replace(f"{row.name}({_whole(row.example, row.name)})",
                                                f"{row.name}({_inside(row.example, row.name)})")  # fmt: skip
                        assert given.result == parse_unit(bare, row.name).result, (row.name, option.name)
    with pytest.raises(InputError, match="unknown parameter 'F2'"):
        parse_unit(NODES["fused"].file.replace("carry=3", "F2=3"), "u")


def _whole(example: str, name: str) -> str:
    """What stands in the parentheses of a call."""
    start = example.index(f"{name}(") + len(name) + 1
    depth, end = 1, start
    while depth:
        depth += {"(": 1, ")": -1}.get(example[end], 0)
        end += 1
    return example[start : end - 1]


def _inside(example: str, name: str) -> str:
    """The same without what is given by name, but for F."""
    tree = ast.parse(f"f({_whole(example, name)})", mode="eval").body
    tree.keywords = [word for word in tree.keywords if word.arg == "F"]
    return ast.unparse(tree)[2:-1]


def test_an_algorithm_is_shown_with_its_parameters() -> None:
    for kind in ALGORITHMS.values():
        shown = run("list", "algorithms", kind.name)
        names = json.loads(run("list", "algorithms", kind.name, "--json"))[0]["parameters"]
        assert all(f"  {name}: " in shown for name in names)
    assert "split" in run("list", "parameters", "split")
    assert yaml.safe_load(NODES["scale"].file)["scale_block"] == 4


def test_a_study_gives_arrays(tmp_path: Path) -> None:
    found = mmaprobe.study("navarro-cub", sizes=[2048, 1024], folder=tmp_path)
    assert found.sizes.tolist() == [1024, 2048]
    assert all(values.shape == (2,) for values in found.values.values())
    assert len(repr(found).splitlines()) == 2
    assert {key[1] for key in found.values} == set(found.curves)
    table = (tmp_path / "navarro-cub.csv").read_text(encoding="utf-8").splitlines()
    assert len(table) == 1 + 2 * len({key[:2] for key in found.values})
    again = mmaprobe.study("navarro-cub", sizes=[1024], folder=tmp_path)
    assert all(np.array_equal(again.values[key], values[:1]) for key, values in found.values.items())
    with pytest.raises(mmaprobe.MmaprobeError, match="sizes"):
        mmaprobe.study("navarro-cub", sizes=[0])
    for sizes, wanted in (
        (3, "a list of whole numbers is wanted, not int"),
        ([1.5], "a whole number is wanted, not float"),
    ):
        with pytest.raises(mmaprobe.MmaprobeError, match=f"^sizes: {wanted}$"):
            mmaprobe.study("navarro-cub", sizes=sizes)


# -- bounds


@pytest.mark.parametrize(
    ("formula", "latex"),
    [
        ("|d - exact| <= 2^-23 * |exact| + 1.0001*2^-21 * max(|a_k° b_k°| (k=0..15), |c°|)",
         r"\lvert d - \mathrm{exact}\rvert \le 2^{-23} \cdot \lvert \mathrm{exact}\rvert + 1.0001 \cdot 2^{-21} \cdot "
         r"\max(\max_{k=0..15} \lvert a_{k}^{\circ} b_{k}^{\circ}\rvert, \lvert c^{\circ}\rvert)"),
        ("2^-3 * max(|a_k b_k| (k=0..3)) + 2^-2 * max(|a_k b_k| (k=0..3), |c|) + 2^-1 * max(|a_0|, |c|)",
         r"2^{-3} \cdot \max_{k=0..3} \lvert a_k b_k\rvert + "
         r"2^{-2} \cdot \max(\max_{k=0..3} \lvert a_k b_k\rvert, \lvert c\rvert) + "
         r"2^{-1} \cdot \max(\lvert a_0\rvert, \lvert c\rvert)"),
        ("(2^-24 G + 2^-6) * sum |a_k b_k| + 3*2^-133 G",
         r"(2^{-24} G + 2^{-6}) \cdot \sum_k \lvert a_k b_k\rvert + 3 \cdot 2^{-133} G"),
        ("2^-36 * K * max |a_k| * max |b_k|",
         r"2^{-36} \cdot K \cdot \max \lvert a_k\rvert \cdot \max \lvert b_k\rvert"),
        ("2^-7 * sum |a_k| (k=0..63) + |a_12 b_12|",
         r"2^{-7} \cdot \sum_{k=0}^{63} \lvert a_k\rvert + \lvert a_{12} b_{12}\rvert"),
        ("G = ((1 + g)^(n - 1) - 1) / g * (1 + g)^(2 (n - 1))",
         r"G = ((1 + g)^{n - 1} - 1) / g \cdot (1 + g)^{2 (n - 1)}"),
        ("sum |scale_a_k° scale_b_k°| (k=0..3) + sum |a_k scale_a°| (k=0..63)",
         r"\sum_{k=0}^{3} \lvert \mathrm{scale}_{a,k}^{\circ} \mathrm{scale}_{b,k}^{\circ}\rvert + "
         r"\sum_{k=0}^{63} \lvert a_k \mathrm{scale}_{a}^{\circ}\rvert"),
    ],
)  # fmt: skip
def test_a_formula_as_latex(formula: str, latex: str) -> None:
    assert latex_of(formula) == latex


def test_results_in_int16_are_numbers(tmp_path: Path) -> None:
    (file := tmp_path / "sat.yaml").write_text(
        """unit: sat
formats: {a: int8, b: int8, c: int16, d: int16}
length: 4
roundings: {s: "round(int16, nearest_even)"}
steps: {d: "s(exact(a[0:4] * b[0:4], c))"}
"""
    )
    rng = np.random.default_rng(1)
    a, b = rng.integers(-128, 128, (9, 4), np.int8), rng.integers(-128, 128, (4, 7), np.int8)
    c = rng.integers(-(2**15), 2**15, (9, 7), np.int16)
    found = mmaprobe.matmul(a, b, c, unit=str(file))
    assert found.dtype == np.int16
    assert np.array_equal(found, np.clip(a.astype(int) @ b.astype(int) + c, -(2**15), 2**15 - 1))


@pytest.mark.parametrize("model", [VOLTA, "plan:loop/fma"])
def test_latex_goes_into_a_file_and_leaves_standard_output_to_json(model: str) -> None:
    command = ["prove", "--property", "error-bound", model, "--length", "64", "--no-confirm", "--latex"]
    done, both = (CliRunner().invoke(main, [*command, *more]) for more in ((), ("--json",)))
    assert (done.exit_code, both.exit_code) == (0, 0)
    assert done.stdout.startswith("% needs ")
    assert done.stderr == ""
    assert both.stderr == done.stdout
    assert json.loads(both.stdout)["verdict"] == "holds"


def test_bounds_are_printed_as_latex_and_with_their_constants() -> None:
    found = mmaprobe.bound(VOLTA, length=64, confirm=False)
    assert found.latex is not None
    assert found.latex.count("{") == found.latex.count("}")
    assert not set("*|°") & set(found.latex)
    shown = run("prove", "--property", "error-bound", VOLTA, "--length", "64", "--no-confirm", "--latex")
    needed, shown_formula, *chain, conditions = shown.splitlines()
    assert (needed, shown_formula) == (r"% needs \usepackage{amsmath}", rf"\[ {found.latex} \]")
    assert all(line.startswith(r"\[ ") for line in chain)
    assert conditions.startswith("This holds where inputs are finite")
    of_plan = run("prove", "--property", "error-bound", "plan:loop/fma", "--length", "64", "--no-confirm", "--latex")
    for recorded in (
        "For $K = ",
        r"where \(G = ((1 + g)^{n - 1} - 1) / g, g = 2^{-24}\).",
        "For $K = 64$:\n",
        "This holds where",
    ):
        assert recorded in of_plan
    lines = run("prove", "--property", "error-bound", VOLTA, "--length", "64", "--no-confirm").splitlines()
    rows = [line.strip() for line in lines if ": exactly " in line or ": at most " in line]
    assert rows
    assert len(rows) == len({row.partition(":")[0] for row in rows})
    for row in rows:
        text, _, rest = row.partition(": ")
        assert text in lines[0]
        factor, _, power = text.partition("*2^")
        decimal = Fraction(rest.rpartition("at most ")[2])
        assert decimal <= Fraction(factor) * Fraction(2) ** int(power or 0) * (1 + Fraction(1, 10**8))


def test_infinity_times_zero_is_no_zero_product() -> None:
    """It makes the result a NaN, so that the sum has to show it; so have products that a double underflows to zero."""
    a, b = np.array([np.inf, 1e-300, 0.0]), np.array([0.0, 1e-300, 2.0])
    assert terms_text(a, b, 0.0, {}) == "inf * 0.0 + 1e-300 * 1e-300 + c = 0.0"
