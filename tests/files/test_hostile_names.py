"""Names that hold the syntax of other languages: they are text there, whatever stands in them."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
import tokenize
from dataclasses import replace
from pathlib import Path

import pytest

import mmaprobe
from mmaprobe.cli.line import StatusLine
from mmaprobe.queries.compare.observed import ObservedVector, evaluate_vectors
from mmaprobe.reports.drawings.order_drawing import order_drawing
from mmaprobe.reports.drawings.tikz import tikz_of
from mmaprobe.reports.exports.c_header import header
from mmaprobe.reports.exports.smtlib import script
from mmaprobe.reports.exports.snippets import snippets
from mmaprobe.reports.exports.tables import csv_table
from mmaprobe.smtmodel.base.escapes import c_comment, c_string, one_line, printable
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unitfile import unit_text
from tests.command_line.test_cli import VOLTA, run

NAMES = (
    "dir*/ int INJECTED; /*.yaml",
    "dir\n#error INJECTED\n(assert false)\nINJECTED = 1\n.yaml",
    "dir\r#error INJECTED\x0bx\x0c\x85\u2028\u2029.yaml",
    'dir"); INJECTED(??/"\\.yaml',
    "caf\udce9\x1b]0;INJECTED\x07\u202e.yaml",
)
ESCAPES = "\x1b[2J\x1b]0;title\x07\x9b2J\u202eright\u2066\x7f"


def rows_of(name: str) -> list[ObservedVector]:
    model = Model(name, parse_reference(VOLTA).unit)
    return list(evaluate_vectors([Vector(model, Operands((0x3C00,), (0x3C00,), 0), id=name)], None, "x"))


@pytest.mark.parametrize("name", NAMES)
def test_names_in_programs_are_text(name: str, tmp_path: Path) -> None:
    rows = rows_of(name)
    programs = {one.language: one.code for one in snippets(rows[0].vector, [(name, rows[0].vector.model, 0)])}
    programs["header"] = header(rows, "x")[0].decode()
    programs["SMT-LIB"] = script(rows, "x")[0].decode()
    assert programs["header"].partition("\n")[0].count("*/") == 1
    assert len(programs["header"].splitlines()) == len(header(rows_of("plain.yaml"), "x")[0].decode().splitlines())
    for line in programs["SMT-LIB"].splitlines():
        assert "INJECTED" not in line or line.startswith("; ")
    assert "(assert false)" not in programs["SMT-LIB"].splitlines()
    for language in ("Python", "PyTorch"):
        words = tokenize.generate_tokens(io.StringIO(programs[language]).readline)
        names = {word.string for word in words if word.type == tokenize.NAME}
        assert "INJECTED" not in names
    if (cc := shutil.which("cc")) is not None:
        (tmp_path / "x.c").write_text(programs["C"], encoding="utf-8")
        (tmp_path / "y.c").write_text(programs["header"] + "int main(void) { return 0; }\n", encoding="utf-8")
        for file in ("x", "y"):
            made = [cc, "-std=c99", "-Wall", "-Werror", "-Wno-unused", "-trigraphs", f"{file}.c", "-o", file]
            built = subprocess.run(made, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert built.returncode == 0, built.stderr
        message = subprocess.run(["./x"], cwd=tmp_path, capture_output=True, check=True).stdout
        assert message.endswith(b" by " + name.encode("utf-8", "backslashreplace") + b"\n")


def test_names_in_tex_are_comments() -> None:
    outline = mmaprobe.order(f"model:{VOLTA}", "f16,f16,f32,f32", 4).tree.outline()
    drawing = order_drawing(outline, "title\n\\input{INJECTED}", [])
    lines = tikz_of(drawing).splitlines()
    assert lines[1] == "% title\\n\\input{INJECTED}"
    assert not any("\\input{" in line for line in lines[2:])


def test_escapes() -> None:
    assert one_line("a\nb\x00\x7f\u2028") == r"a\nb\x00\x7f\u2028"
    assert printable("a\n\tb\r\x1b[2J\x9b\u202e") == "a\n\tb\\r\\x1b[2J\\x9b\\u202e"
    assert c_comment("*/ /* x */*") == "* / / * x * / *"
    assert c_string('é"\\?\n') == r'"\303\251\"\\\?\012"'


@pytest.mark.parametrize("name", ["=cmd|'/C calc'!A0", "+1", "-x", "@SUM(A1)", "\t=1"])
def test_a_cell_is_no_formula(name: str) -> None:
    [row] = rows_of("plain.yaml")
    shown = csv_table([replace(row, vector=replace(row.vector, id=name))], "x")[0].decode()
    assert next(csv.DictReader(io.StringIO(shown)))["id"] == f"'{name}"
    shown = csv_table([replace(row, vector=replace(row.vector, id=-5))], "x")[0].decode()
    assert next(csv.DictReader(io.StringIO(shown)))["id"] == "-5"


def raw(text: str) -> set[str]:
    """The characters of a text that a terminal would obey."""
    return {letter for letter in text if letter not in "\n\t" and printable(letter) != letter}


def test_no_name_reaches_the_terminal_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / f"x{ESCAPES}.jsonl"
    assert not raw(run("evaluate", str(path), code=2).stderr)
    assert not raw(run("list", ESCAPES, code=2).stderr)
    row = {"model": VOLTA, "a": ["3c00"], "b": ["3c00"], "c": "3f800000"}
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    (tmp_path / "mine.py").write_text(f"def f(a, b, c):\n    raise ValueError({ESCAPES!r})\n", encoding="utf-8")
    assert not raw(run("run", str(path), "--device", f"python:{tmp_path}/mine.py:f", code=3).stderr)
    (tmp_path / "mine.py").write_text(
        f"import sys\nsys.stderr.write({ESCAPES!r})\nsys.stderr.flush()\nsys.exit(3)\n", encoding="utf-8"
    )
    program = f"command:{sys.executable} {tmp_path}/mine.py"
    result = run("run", str(path), "--device", program, code=3)
    assert "\\x1b[2J" in result.stderr
    assert not raw(result.stderr)
    (tmp_path / "unit.yaml").write_text(f"{json.dumps(ESCAPES)}: 1\n", encoding="utf-8")
    assert not raw(run("show", str(tmp_path / "unit.yaml"), code=2).stderr)
    (tmp_path / f"u{ESCAPES}.yaml").write_text(unit_text(parse_reference(VOLTA).unit), encoding="utf-8")
    shown = run("explain", str(tmp_path / f"u{ESCAPES}.yaml"), json.dumps(row), code=0)
    assert not raw(shown.stdout + shown.stderr)


def test_progress_is_printable(capsys: pytest.CaptureFixture[str]) -> None:
    StatusLine().show(f"asking {ESCAPES}", stays=True)
    assert not raw(capsys.readouterr().err)


def test_names_in_names_of_files(tmp_path: Path) -> None:
    question = {
        "id": "mine", "question": "x", "source": "y", "model": VOLTA, "expect": "different",
        "hypotheses": {"a/b": {"carry_bits": 1}, "../c\n": {"carry_bits": 2}, "a-b": {"carry_bits": 3}},
    }  # fmt: skip
    (tmp_path / "q.yaml").write_text(json.dumps(question), encoding="utf-8")
    folder = tmp_path / "out"
    folder.mkdir()
    run("distinguish", str(tmp_path / "q.yaml"), "--smt2", str(folder / "q.smt2"), "--solver", "bitwuzla", code=0)
    assert sorted(path.name for path in folder.iterdir()) == [
        "q-..%2Fc%0A-a-b.smt2", "q-a%2Fb-..%2Fc%0A.smt2", "q-a%2Fb-a-b.smt2",
    ]  # fmt: skip
