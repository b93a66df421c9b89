"""Vectors in other programs' formats, read back with those programs' readers or with oracles of their own."""

from __future__ import annotations

import csv
import io
import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import gmpy2
import numpy as np
import pytest
import z3
from click.testing import CliRunner, Result
from junitparser import JUnitXml
from pysmt.smtlib.parser import SmtLibParser

from cli.export import FORMATS
from cli.main import main

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
NVFP4 = "rtx-blackwell/mma_block_scale/m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"
ROWS: list[dict[str, Any]] = [
    {"id": "good", "model": VOLTA, "a": ["3c00", "4000"], "b": ["3c00", "3c00"], "c": "3f800000", "d": "40800000"},
    {"id": "<bad> & \u0001", "model": VOLTA, "a": ["3c00"], "b": ["3c00"], "c": "3f800000", "d": "40000001"},
    {"model": VOLTA, "a": ["7bff"], "b": ["7bff"], "c": "3f800000"},
]
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
    monkeypatch.setattr("cli.export._terminal", lambda: True)
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


# -- FPgen: read by a parser of its own, computed again by GMP and MPFR

FORMATS_OF = {"b16": (11, 15), "b32": (24, 127), "b64": (53, 1023)}
ROUNDINGS = {"=0": gmpy2.RoundToNearest, "0": gmpy2.RoundToZero, ">": gmpy2.RoundUp, "<": gmpy2.RoundDown}
OPERAND = re.compile(r"([+-])([01])\.([0-9A-F]+)P(-?\d+)")


def operand(text: str, precision: int) -> Fraction | str:
    if text[1:] in ("Zero", "Inf") or text == "Q":
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
    from smtmodel.reference import parse_reference
    from tests import inputs

    model, rng = parse_reference(reference), np.random.default_rng(11)
    patterns = [[f"{int(x):0{model.a.digits}x}" for x in inputs.raw(model.a, (3,), rng)] for _ in range(150)] + [
        [f"{int(x):0{model.a.digits}x}" for x in inputs.numbers(model.a, (3,), rng)] for _ in range(150)
    ]
    patterns.append(
        [f"{pattern:0{model.a.digits}x}" for pattern in (model.a.bias << model.a.fraction,) * 3]
    )  # 1 * 1 + 1
    rows = [{"model": reference, "a": [a], "b": [b], "c": c} for a, b, c in patterns]
    lines = exported(tmp_path, "fptest", *rows).decode().splitlines()
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
            assert d != "Q" or "Q" in (a, b, c) or flags == "i"
            continue
        exact = Fraction(a) * Fraction(b) + Fraction(c)
        context = gmpy2.context(
            precision=precision, emax=bias + 1, emin=4 - bias - precision, subnormalize=True, round=ROUNDINGS[mode]
        )
        with context:
            rounded = gmpy2.mpfr(gmpy2.mpq(exact.numerator, exact.denominator))
        assert rounded == gmpy2.mpq(Fraction(d)), line
        assert ("x" in flags) == (Fraction(d) != exact), line
    assert {"", "x", "xo"} <= seen


def test_fptest_takes_what_fits(tmp_path: Path) -> None:
    rows = [ROWS[1], ROWS[0], SCALED]
    path, target = vectors(tmp_path, *rows), tmp_path / "out.fptest"
    result = run("export", path, "--format", "fptest", "-o", str(target))
    assert "1 of 3 vectors; the others do not fit FPgen" in result.stderr
    assert target.read_text() == "b32*+ 0 +1.000000P0 +1.000000P0 +1.000000P0 -> +1.000001P1 x\n"
    run("export", vectors(tmp_path, SCALED), "--format", "fptest", code=2)


def test_every_format_is_in_the_help_and_goes_to_standard_output(tmp_path: Path) -> None:
    text = run("export", "--help").stdout
    for wanted in FORMATS:
        assert f"\n  {wanted} " in text
        assert run("export", vectors(tmp_path, ROWS[1]), "--format", wanted).stdout_bytes
    path = vectors(tmp_path, ROWS[0])
    assert "overwrite" in run("export", path, "--format", "csv", "-o", path, code=2).stderr
    run("export", path, "--format", "csv", "-o", str(tmp_path / "no" / "x.csv"), code=2)
