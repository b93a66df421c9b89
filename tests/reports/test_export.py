"""Vectors in other programs' formats, read back with those programs' readers or with oracles of their own."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import gmpy2
import numpy as np
import pytest
import z3
from click.testing import CliRunner, Result
from junitparser import JUnitXml
from pysmt.smtlib.parser import SmtLibParser

from mmaprobe.cli.commands.export import FORMATS
from mmaprobe.cli.main import main
from mmaprobe.reports.exports.fptest import LETTERS, Tininess, signalled
from mmaprobe.smtmodel.arithmetic import ieee
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.evaluate.batch import to_integers
from mmaprobe.smtmodel.exceptions import exceptions_in
from tests.marks import some_slow

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
NVFP4 = "rtx-blackwell/mma_block_scale/m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"
ROWS: list[dict[str, Any]] = [
    {"id": "good", "model": VOLTA, "a": ["3c00", "4000"], "b": ["3c00", "3c00"], "c": "3f800000", "d": "40800000"},
    {"id": "<bad> & \u0001", "model": VOLTA, "a": ["3c00"], "b": ["3c00"], "c": "3f800000", "d": "40000001"},
    {"model": VOLTA, "a": ["7bff"], "b": ["7bff"], "c": "3f800000"},
]
FUSED = {"model": "ieee/fma/f32", "a": ["3f800000"], "b": ["40000000"], "c": "3f800000"}
SCALED = {
    "id": 7,
    "model": NVFP4,
    "a": ["2"],
    "b": ["2"],
    "c": "00000000",
    "scale_a": ["38"] * 4,
    "scale_b": ["40"] * 4,
}


def run(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    return result


def vectors(folder: Path, *rows: dict[str, Any]) -> str:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def exported(folder: Path, wanted: str, *rows: dict[str, Any]) -> bytes:
    target = folder / f"out.{wanted}"
    run("export", vectors(folder, *rows), "--format", wanted, "-o", str(target))
    return target.read_bytes()


def test_csv(tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(exported(tmp_path, "csv", *ROWS, SCALED).decode())))
    assert [row["id"] for row in rows] == ["good", "<bad> & \u0001", "line 3", "7"]
    for given, row in zip([*ROWS, SCALED], rows, strict=True):
        for side in ("a", "b", "scale_a", "scale_b"):
            read = [row[key] for key in row if re.fullmatch(side + r"\d+", key) and row[key]]
            assert read == given.get(side, [])
        assert (row["c"], row["d"], row["model"]) == (given["c"], given.get("d", ""), given["model"])
    assert rows[0]["predicted"] == "40800000"
    assert rows[1]["predicted"] == "40000000"


def test_binary_formats_are_not_written_to_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(ROWS[0]) + "\n")
    command = ["export", str(file), "--format", "npz"]
    assert CliRunner().invoke(main, command).exit_code == 0
    monkeypatch.setattr("mmaprobe.cli.commands.export._terminal", lambda: True)
    refused = CliRunner().invoke(main, command)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "name a file with --output" in refused.stderr
    assert CliRunner().invoke(main, [*command, "-o", str(tmp_path / "rows.npz")]).exit_code == 0


def test_npz(tmp_path: Path) -> None:
    with np.load(io.BytesIO(exported(tmp_path, "npz", *ROWS, SCALED)), allow_pickle=False) as arrays:
        assert arrays["a"].dtype == np.uint16
        assert arrays["c"].dtype == np.uint32
        assert arrays["a"].tolist()[0] == [0x3C00, 0x4000]
        assert arrays["a"].tolist()[3] == [2, 0]
        assert arrays["d_known"].tolist() == [True, True, False, False]
        assert arrays["d"].tolist()[:2] == [0x40800000, 0x40000001]
        assert arrays["predicted"].tolist()[:2] == [0x40800000, 0x40000000]
        assert arrays["scale_a"].tolist()[3] == [0x38] * 4
        assert arrays["model"].tolist() == [VOLTA] * 3 + [NVFP4]


def test_junit(tmp_path: Path) -> None:
    [suite] = JUnitXml.fromstring(exported(tmp_path, "junit", *ROWS))
    assert (suite.tests, suite.failures, suite.skipped, suite.errors) == (3, 1, 1, 0)
    good, bad, unknown = suite
    assert [case.name for case in (good, bad, unknown)] == ["good", "<bad> & ?", "line 3"]
    assert good.is_passed
    assert bad.is_failure
    assert unknown.is_skipped
    assert "40000001" in bad.result[0].message
    assert "40000000" in bad.result[0].message


def test_smt2(tmp_path: Path) -> None:
    text = exported(tmp_path, "smt2", *ROWS).decode()
    statuses = re.findall(r":status (\w+)", text)
    assert statuses == ["unsat", "sat", "unsat"]
    assert z3.Z3_eval_smtlib2_string(z3.Context().ref(), text).split() == statuses
    commands = [command.name for command in SmtLibParser().get_script(io.StringIO(text))]
    assert commands.count("check-sat") == commands.count("push") == commands.count("pop") == 3
    refused = run("export", vectors(tmp_path, ROWS[0], SCALED), "--format", "smt2", code=2)
    assert "--model" in refused.stderr


def test_smt2_of_a_model_that_reads_no_c(tmp_path: Path) -> None:
    (tmp_path / "unit.yaml").write_text(
        "unit: no-c\nformats: {a: e3m2, b: e3m2, c: none, d: f16}\nlength: 1\nsteps: {d: 'round(a[0] * b[0], f16)'}\n",
        encoding="utf-8",
    )
    row = {"model": str(tmp_path / "unit.yaml"), "a": ["0c"], "b": ["0c"], "c": "0000"}
    text = exported(tmp_path, "smt2", row | {"d": "3c00"}, row | {"d": "3c01"}).decode()
    assert z3.Z3_eval_smtlib2_string(z3.Context().ref(), text).split() == ["unsat", "sat"]


# -- FPgen: read by a parser of its own, computed again by GMP and MPFR

FORMATS_OF = {"b16": (11, 15), "b32": (24, 127), "b64": (53, 1023)}
ROUNDINGS = {"=0": gmpy2.RoundToNearest, "0": gmpy2.RoundToZero, ">": gmpy2.RoundUp, "<": gmpy2.RoundDown}
OPERAND = re.compile(r"([+-])([01])\.([0-9A-F]+)P(-?\d+)")


def operand(text: str, precision: int) -> Fraction | str:
    if text[1:] in ("Zero", "Inf") or text in ("Q", "S"):
        return Fraction(0) if text.endswith("Zero") else text
    found = OPERAND.fullmatch(text)
    assert found, text
    sign, hidden, digits, exponent = found.groups()
    fraction = int(digits, 16)
    assert fraction < 1 << (precision - 1)
    value = (int(hidden) + Fraction(fraction, 1 << (precision - 1))) * Fraction(2) ** int(exponent)
    return -value if sign == "-" else value


@pytest.mark.parametrize("reference", ["ieee/fma/f32", "ieee/fma/f64", "ieee/fma/f32@output_rounding=down"])
def test_fptest_against_gmp(reference: str, tmp_path: Path) -> None:
    from mmaprobe.smtmodel.tables.reference import parse_reference
    from tests import inputs

    model, rng = parse_reference(reference), np.random.default_rng(11)
    patterns = [[f"{int(x):0{model.a.digits}x}" for x in inputs.raw(model.a, (3,), rng)] for _ in range(150)] + [
        [f"{int(x):0{model.a.digits}x}" for x in inputs.numbers(model.a, (3,), rng)] for _ in range(150)
    ]
    patterns.append(
        [f"{pattern:0{model.a.digits}x}" for pattern in (model.a.bias << model.a.fraction,) * 3]
    )  # 1 * 1 + 1
    rows = [{"model": reference, "a": [a], "b": [b], "c": c} for a, b, c in patterns]
    lines = [line for line in exported(tmp_path, "fptest", *rows).decode().splitlines() if line[0] != "#"]
    assert len(lines) == len(rows)
    seen = set()
    for line in lines:
        words = line.split()
        kind, mode, arrow = words[0].removesuffix("*+"), words[1], words.index("->")
        precision, bias = FORMATS_OF[kind]
        a, b, c, d = (operand(text, precision) for text in (*words[2:5], words[arrow + 1]))
        flags = words[arrow + 2] if len(words) > arrow + 2 else ""
        seen.add(flags)
        if any(isinstance(x, str) for x in (a, b, c, d)):
            assert d != "Q" or flags == ("" if "Q" in (a, b, c) and "S" not in (a, b, c) else "i")
            continue
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        context = gmpy2.context(
            precision=precision, emax=bias + 1, emin=4 - bias - precision, subnormalize=True, round=ROUNDINGS[mode]
        )
        with context:
            rounded = gmpy2.mpfr(gmpy2.mpq(exact.numerator, exact.denominator))
        assert rounded == gmpy2.mpq(Fraction(d)), line
        assert ("x" in flags) == (Fraction(d) != exact), line
        mode_name = {"=0": "nearest_even", "0": "toward_zero", ">": "up", "<": "down"}[mode]
        assert flags == exceptions(exact, Fraction(d), model.d, mode_name, "after"), line
    assert {"", "x", "xo"} <= seen


def nearest_places(exact: Fraction, precision: int) -> tuple[Fraction, int, Fraction]:
    """The unit of the last of so many places of a number, how many units are below it, and what is left of one."""
    unit = Fraction(1)
    while abs(exact) >= unit * 2**precision:
        unit *= 2
    while exact and abs(exact) < unit * 2 ** (precision - 1):
        unit /= 2
    whole = exact / unit // 1
    return unit, int(whole), exact / unit - whole


def exceptions(exact: Fraction, d: Fraction | str, fmt: Format, mode: str, tininess: str) -> str:
    """The flags of IEEE 754-2019, 7.4 to 7.6, of a number rounded as if the range of exponents were unbounded."""
    unit, below, rest = nearest_places(exact, fmt.precision)
    up = {"down": 0, "up": rest > 0, "toward_zero": rest > 0 and exact < 0,
          "nearest_even": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2),
          "nearest_away": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and exact > 0)}[mode]  # fmt: skip
    rounded = (below + int(up)) * unit
    exponent, significand = fmt.largest_number
    if abs(rounded) > significand * Fraction(2) ** exponent:
        return "xo"
    if d == exact:
        return ""
    return "xu" if abs(exact if tininess == "before" else rounded) < Fraction(2) ** fmt.emin else "x"


OTHERS = ["nearest_away", "toward_zero", "up"]


@pytest.mark.all_inputs
@pytest.mark.parametrize("mode", some_slow(["nearest_even", "down", *OTHERS], *OTHERS))
def test_flags_of_every_input_of_a_small_format(mode: Any) -> None:
    fmt, carrier = Format("q", 2, 1, 1, "ieee"), ArrayCarrier()
    values = [exact_value(pattern, fmt) for pattern in range(1 << fmt.width)]
    seen = {"after": set[str](), "before": set[str]()}
    every = itertools.product(range(1 << fmt.width), repeat=3)
    rows = [row for row in every if row[0] <= row[1]]  # not factors in the other order
    sides = (Bits(carrier, fmt.width, np.array(side, dtype=np.uint64)) for side in zip(*rows, strict=True))
    results = to_integers(ieee.fma(*sides, fmt, mode), len(rows)).tolist()
    for row, d in zip(rows, results, strict=True):
        a, b, c = (Fraction(0) if values[pattern] == "-0" else values[pattern] for pattern in row)
        result = Fraction(0) if values[d] == "-0" else values[d]
        words = {when: signalled(row, d, fmt, mode, when) for when in get_args(Tininess)}
        found = {when: "".join(LETTERS[name] for name in exceptions_in(word)) for when, word in words.items()}
        if any(isinstance(x, str) for x in (a, b, c)):
            quiet = "nan" in (a, b, c)  # as every NaN of a format with one fraction bit
            assert set(found.values()) == {"i" if result == "nan" and not quiet else ""}, row
            continue
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        for when in get_args(Tininess):
            assert found[when] == exceptions(exact, result, fmt, mode, when), (row, when)
            seen[when].add(found[when])
    assert seen["before"] == seen["after"] == {"", "x", "xo", "xu"}


#: A * B + C, and its flags where tiny results are found after and before rounding
FLAGS = [
    ("ieee/fma/f16", ("4800", "3c00", "7bff"), "x", "x"),  # 65504 + 8 is rounded to 65504
    ("ieee/fma/f16", ("4c00", "3c00", "7bff"), "xo", "xo"),  # 65504 + 16 to 65536
    ("ieee/fma/f16@output_rounding=up", ("0001", "3c00", "7bff"), "xo", "xo"),
    ("ieee/fma/f16@output_rounding=down", ("0001", "3c00", "7bff"), "x", "x"),
    ("ieee/fma/f16@output_rounding=toward_zero", ("7bff", "7bff", "0000"), "xo", "xo"),
    ("ieee/fma/f32", ("99800000", "19800000", "00800000"), "x", "xu"),
    ("ieee/fma/f32", ("19800000", "19800000", "00000001"), "xu", "xu"),
    ("ieee/fma/f32", ("7f800001", "3f800000", "3f800000"), "i", "i"),  # a signalling NaN
    ("ieee/fma/f32", ("7fc00000", "3f800000", "3f800000"), "", ""),
]


@pytest.mark.parametrize(("reference", "given", "after", "before"), FLAGS)
def test_flags_at_the_limits(
    reference: str, given: tuple[str, str, str], after: str, before: str, tmp_path: Path
) -> None:
    a, b, c = given
    path = vectors(tmp_path, {"model": reference, "a": [a], "b": [b], "c": c})
    for when, flags in ((None, after), ("after", after), ("before", before)):
        more = [] if when is None else ["--tininess", when]
        *header, line = run("export", path, "--format", "fptest", *more).stdout.splitlines()
        assert line.partition("-> ")[2].partition(" ")[2] == flags
        assert header[-1] == f"# tininess is detected {when or 'after'} rounding"


def test_a_unit_that_makes_tiny_results_zero_says_when_it_finds_them(tmp_path: Path) -> None:
    text = """unit: own
formats: {a: f32, b: f32, c: f32, d: f32}
length: 1
ELEMENTS
roundings: {r: "round(f32, nearest_even, subnormals=HOW)"}
steps: {d: "r(exact(a[0] * b[0], c))"}
"""
    rows = []
    for how in ("flush_before", "flush_after", "keep"):
        (tmp_path / f"{how}.yaml").write_text(text.replace("HOW", how).replace("ELEMENTS\n", ""))
        model = str(tmp_path / f"{how}.yaml")
        rows.append({"model": model, "a": ["99800000"], "b": ["19800000"], "c": "00800000"})
    found = exported(tmp_path, "fptest", *rows).decode().splitlines()
    assert [line for line in found if "tininess" in line] == [
        f"# tininess is detected before rounding: {rows[0]['model']}",
        f"# tininess is detected after rounding: {rows[1]['model']}, {rows[2]['model']}",
    ]
    assert [line.split()[-1] for line in found[-3:]] == ["xu", "x", "x"]
    refused = run("export", vectors(tmp_path, rows[0]), "--format", "fptest", "--tininess", "after", code=2)
    assert "says before, as it makes results zero that are tiny before rounding" in refused.stderr


def test_a_subnormal_operand_read_as_zero_is_no_inexact_one(tmp_path: Path) -> None:
    row = {"model": "ieee/fma/f32@flush_inputs=true", "a": ["00000001"], "b": ["3f800000"], "c": "3f800000"}
    assert exported(tmp_path, "fptest", row).decode().splitlines()[-1].endswith("-> +1.000000P0")


@pytest.mark.parametrize(
    ("step", "more", "c", "line"),
    [
        ("r(exact(a[0:2] * b[0:2], c))", "", "4000", "b16*+ =0 +1.080P0 +1.000P1 +1.000P1 -> +1.040P2"),
        ("r(exact(a[0] * b[0], c))", "ignored: [1]", "4000", "b16*+ =0 +1.080P0 +1.000P1 +1.000P1 -> +1.040P2"),
        ("r(exact(a[1] * b[1], c))", "ignored: [0]", "4000", "b16*+ =0 +Zero +Zero +1.000P1 -> +1.000P1"),
        ("r(exact(a[0:2] * b[0:2]))", "c: none", "0000", "b16* =0 +1.080P0 +1.000P1 -> +1.080P1"),
        ("r(quotient(r(exact(a[0:2] * b[0:2])), c))", "", "4000", None),
        ("r(relu(r(exact(a[0:2] * b[0:2], c))))", "", "4000", None),
        ("r(exact(product(number(0x4000, f16), r(exact(a[0:2] * b[0:2], c)))))", "", "4000", None),
    ],
)
def test_fptest_has_sums_of_products_and_c_alone(
    step: str, more: str, c: str, line: str | None, tmp_path: Path
) -> None:
    """1.125 * 2 + 2 = 4.25; a quotient or a rectified sum is no multiply-add, nor is a product that is not read."""
    addend, ignored = ("none", "") if more == "c: none" else ("f16", more)
    unit = tmp_path / "unit.yaml"
    unit.write_text(f"unit: x\nformats: {{a: f16, b: f16, c: {addend}, d: f16}}\nlength: 2\n{ignored}\n"
                    f"roundings: {{r: 'round(f16, nearest_even)'}}\nsteps: {{d: '{step}'}}\n")  # fmt: skip
    path = vectors(tmp_path, {"model": str(unit), "a": ["3c80", "0000"], "b": ["4000", "0000"], "c": c})
    if line is None:
        refused = run("export", path, "--format", "fptest", code=2)
        assert "it needs a unit that adds products and c alone" in refused.stderr
        return
    found = run("export", path, "--format", "fptest").stdout.splitlines()
    assert found[-1] == line
    assert found[0].startswith("# A * B + C ->") is (addend != "none")


def test_tininess_is_of_fptest_alone(tmp_path: Path) -> None:
    refused = run("export", vectors(tmp_path, ROWS[0]), "--format", "csv", "--tininess", "after", code=2)
    assert "--tininess needs --format fptest: csv has no flags" in refused.stderr


def test_fptest_takes_what_fits(tmp_path: Path) -> None:
    rows = [ROWS[1], ROWS[0], SCALED]
    path, target = vectors(tmp_path, *rows), tmp_path / "out.fptest"
    result = run("export", path, "--format", "fptest", "-o", str(target))
    assert "1 of 3 vectors; the others do not fit FPgen" in result.stderr
    *header, line = target.read_text().splitlines()
    assert all(line.startswith("# ") for line in header)
    assert line == "b32*+ 0 +1.000000P0 +1.000000P0 +1.000000P0 -> +1.000001P1 x"
    run("export", vectors(tmp_path, SCALED), "--format", "fptest", code=2)


def test_every_format_is_in_the_help_and_goes_to_standard_output(tmp_path: Path) -> None:
    text = run("export", "--help").stdout
    for wanted in FORMATS:
        assert f"\n  {wanted} " in text
        row = FUSED if wanted == "riscv" else ROWS[1]
        assert run("export", vectors(tmp_path, row), "--format", wanted).stdout_bytes
    path = vectors(tmp_path, ROWS[0])
    assert "overwrite" in run("export", path, "--format", "csv", "-o", path, code=2).stderr
    run("export", path, "--format", "csv", "-o", str(tmp_path / "no" / "x.csv"), code=2)


def test_a_model_where_vectors_are_wanted_is_told_what_makes_some() -> None:
    message = run("export", "ieee/fma/f32", "--format", "c", code=2).output
    assert "ieee/fma/f32 is a model: `mmaprobe cover ieee/fma/f32 -o vectors.jsonl` makes some" in message
    assert run("export", "no/file.jsonl", "--format", "c", code=2).output == "error: no/file.jsonl: no such file\n"
