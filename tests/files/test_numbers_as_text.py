"""Whole numbers and times as text: only the digits 0 to 9 are digits, everywhere; and nothing is rounded to fit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import mmaprobe
from mmaprobe.cli.main import main
from mmaprobe.hypotheses.claim import build_claims
from mmaprobe.smtmodel.base.digits import is_decimal, is_digits, is_whole
from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError, ParameterError
from mmaprobe.smtmodel.base.yamlfile import read_yaml
from mmaprobe.smtmodel.families.parameters import PARAMETERS, parse_parameter
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.package.test_layout import LEVELS
from tests.places import ROOT

V = "volta/mma/m8n8k4.f32.f16.f16.f32"
#: what Python's `int`, `float` or `str.isdigit` take, and nobody writes
ODD = ("٣", "３", "᠓", "²", "1_0", "0x10", "1e2", "3.0", "9" * 5000)


#: but for the names of commands of LaTeX, \\draw and \\definecolor
PYTHONS = r"\\d(?![er])|\.is(?:digit|decimal|numeric)\(|IntRange|FloatRange\(|type=(?:int|float)\b"


def run(*arguments: str, code: int = 2, files: dict[str, str] | None = None) -> str:
    for name, text in (files or {}).items():
        Path(name).write_text(text, encoding="utf-8")
    done = CliRunner().invoke(main, list(arguments))
    assert done.exit_code == code, (done.exit_code, done.stderr, done.exception)
    assert "a fault of mmaprobe" not in done.stderr
    return str(done.stderr)


def test_digits_are_0_to_9() -> None:
    assert [is_digits(text) for text in ("0", "007", "", "-1", "+1", " 1", *ODD)] == [True, True, *[False] * 13]
    assert [is_whole(text) for text in ("0", "-7", "+7", "", "-", *ODD)] == [True, True, True, *[False] * 11]
    assert all(map(is_decimal, ("3", "-0.5", ".5", "5.", "1e-3", "+2E6")))
    assert not any(map(is_decimal, ("", ".", "e3", "nan", "inf", "٣", "1_0", "0x1", "1e", "1,5")))


def test_nobody_asks_python_what_a_digit_is() -> None:
    """`\\d` and `isdigit` are for names that the program itself makes."""
    own = {"explaining.py", "exact.py", "losses.py", "neighbours.py", "wording.py", "words.py", "bits_drawing.py",
           "absent.py", "gpus.py", "vectors.py", "latex.py",
           "bound_report.py"}  # fmt: skip
    for path in (path for package in LEVELS for path in (ROOT / package).rglob("*.py")):
        found = re.findall(PYTHONS, path.read_text("utf-8"))
        assert not found or path.name in own | {"choice.py", "digits.py"}, (path, found)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    "arguments",
    [
        ("distinguish", V, V, "-n"),
        ("prove", V, V, "--memory"),
        ("prove", V, V, "--length"),
        ("compare", f"model:{V}", f"model:{V}", "--samples"),
        ("compare", f"model:{V}", f"model:{V}", "--seed"),
        ("simulate", "a.npy", "b.npy", "-o", "d.npy", "--model", V, "--threads"),
        ("order", "--device", f"model:{V}", "--length"),
        ("identify", "--device", f"model:{V}", "--length"),
        ("study", "valero-tf32", "--seed"),
    ],
    ids=lambda given: f"{given[0]}{given[-1]}" if isinstance(given, tuple) else given[:4],
)
def test_an_option_that_is_a_whole_number(arguments: tuple[str, ...], odd: str) -> None:
    assert "is not a whole number" in run(*arguments, odd)


@pytest.mark.parametrize("odd", ["٣", "1_0", "nan", "inf", "", "0x10"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("prove", V, V, "--timeout"),
        ("check", ".", "--timeout"),
        ("run", "v.jsonl", "--device", f"model:{V}", "--device-timeout"),
        ("separate", "any", "--each"),
        ("datasheet", V, "-o", "x.html", "--limit"),
        ("show", V, "--svg", "x.svg", "--width"),
        ("study", "valero-tf32", "--width"),
    ],
    ids=lambda given: f"{given[0]}{given[-1]}" if isinstance(given, tuple) else given,
)
def test_an_option_that_is_a_number(arguments: tuple[str, ...], odd: str) -> None:
    assert re.search("is not a number of (seconds|millimetres)", run(*arguments, odd))


def test_numbers_too_large_for_anybody() -> None:
    huge = "99999999999999999999999999"
    assert "is not in the range" in run("prove", V, V, "--memory", huge)
    assert "is not in the range" in run("compare", f"model:{V}", f"model:{V}", "--samples", huge)
    assert "is wider than any paper" in run("show", V, "--svg", "x.svg", "--width", "1e300")


@pytest.mark.parametrize("name", [name for name, row in PARAMETERS.items() if row.low is not None or row.order])
def test_a_parameter_of_a_model(name: str) -> None:
    for odd in ("٣", "３", "²", "1_0", "9" * 5000):
        with pytest.raises(ParameterError, match="impossible"):
            parse_parameter(name, odd)


@pytest.mark.parametrize(
    "reference",
    [
        f"{V}@carry_bits=٣",
        f"{V}@exponent_floor=-١٣١",
        "plan:cublas/plain@length=٦٤",
        "ieee/fma/binary٨p3",
        "ieee/fma/e٥m10_ieee",
        "ieee/fma/e5m10b٣_ieee",
        "ieee/turn/f32/c+٠+1",
        f"ieee/fma/e5m{'9' * 5000}_ieee",
        f"ieee/turn/f32/c+{'9' * 5000}",
    ],
)
def test_a_reference(reference: str) -> None:
    with pytest.raises(MmaprobeError):
        mmaprobe.unit(reference)


def test_lists_and_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = {"f.py": "def f(a, b): return a @ b\n", "v.jsonl": "{}\n"}
    asked = ("identify", "--gemm", "--device", "python:f.py:f", "--formats", "f32,f32,f32", "--length", "4", "--shape")
    assert "whole numbers from 1 to" in run(*asked, "٨,٨", files=files)
    assert "whole numbers from 1 to" in run(*asked, "")
    assert "is not a list of sizes" in run("study", "valero-tf32", "--sizes", "٨", "-o", "r")
    assert "not '٣,٢'" in run("explain", "plan:cublas/plain", "a.npy", "b.npy", "--element", "٣,٢")
    assert "not ''" in run("explain", "plan:cublas/plain", "a.npy", "b.npy", "--element", "")
    asked = ("identify", "--device", "python:f.py:f", "--formats", "e4m3,e4m3,f32", "--length", "8", "--scale")
    assert "give FORMAT/BLOCK" in run(*asked, "ue8m0/٤")
    for line in ("٢", "²"):
        assert "no such file" in run("explain", V, f"v.jsonl:{line}")
    assert "is none of row=R" in run("run", "v.jsonl", "--device", "cuda:m8n8k4.f32.f16.f16.f32?row=٣")


@pytest.mark.parametrize(
    ("restrictions", "message"),
    [
        ("", "a word is missing"),
        (",", "a word is missing"),
        ("finite,", "a word is missing"),
        ("finite,,normal", "a word is missing"),
        ("exponents=٣..٤", "unknown restriction"),
        ("exponents=1_0..2_0", "unknown restriction"),
        ("exponents=-3..3,exponents=-4..4", "another window"),
    ],
)
def test_restrictions_of_inputs(restrictions: str, message: str) -> None:
    for command in ("prove", "distinguish"):
        assert message in run(command, V, f"{V}@carry_bits=2", "--inputs", restrictions)
    if restrictions:
        with pytest.raises(MmaprobeError, match=message):
            mmaprobe.prove(V, f"{V}@carry_bits=2", inputs=restrictions)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("length = 1e9", "2: length: 1000000000.0 is not a whole number"),
        ("length = 2.5", "2: length: 2.5 is not a whole number"),
        ("length = true", "2: length: True is not a whole number"),
        ("memory = '1_000'", "2: memory: '1_000' is not a whole number"),
        ("timeout = true", "2: timeout: True is not a number of seconds"),
        ("confirm = 'maybe'", "2: confirm: 'maybe' is not a value of this option: true or false"),
        ("confirm = 1", "2: confirm: 1 is not a value of this option: true or false"),
    ],
)
def test_defaults_are_not_rounded(entry: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """click made 2 of 2.5, and 1 of true."""
    config = tmp_path / "config.toml"
    config.write_text(f"[prove]\n{entry}\n")
    monkeypatch.setenv("MMAPROBE_CONFIG", str(config))
    assert f"config.toml:{message}" in run("prove", V, V)


@pytest.mark.parametrize("text", ["010", "1_0", "1:10", "0b11", "-07"])
def test_numbers_that_yaml_reads_otherwise(text: str) -> None:
    """YAML 1.1 makes 8 of 010, and 70 of 1:10."""
    with pytest.raises(InputError, match=r"x\.yaml:2: not a value: '.*': a whole number is written in"):
        read_yaml(f"id: x\nlength: {text}\n", "x.yaml")
    assert read_yaml(f"length: '{text}'\n", "x.yaml").data == {"length": text}


def test_numbers_that_yaml_reads_as_all_do() -> None:
    assert read_yaml("[0, 7, -12, +3, 0x1F]", "x.yaml").data == [0, 7, -12, 3, 31]


UNIT = "unit: u\n{own}formats: {{a: {a}, b: f16, c: f32, d: f32}}\nlength: 1\nsteps:\n  d: {step}\n"


@pytest.mark.parametrize("number", ["2_3", "0b11", "0o7", "0x1_7"])
def test_numbers_of_expressions(number: str) -> None:
    text = UNIT.format(own="", a="f16", step=f"round(fused(a[0] * b[0], c, F={number}), f32, up)")
    with pytest.raises(InputError, match=rf"u\.yaml:5: steps\.d: column 31 .*'{number}': a number is written"):
        parse_unit(text, "u.yaml")
    assert parse_unit(text.replace(number, "23"), "u.yaml").length == 1
    assert parse_unit(text.replace(number, "0x17"), "u.yaml").length == 1


CLAIM = """id: mine
about: x
source: y
says: nothing
expect: refuted
terms: 4
inputs: {format: f16, a: [-2, 2], b: [-2, 2], c: zero}
parts:
  one: hopper/mma/m16n8k16.f32.f16.f16.f32
  two: hopper/mma/m16n8k16.f32.f16.f16.f32@block=2
claim: error(one) <= error(two)
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("terms: 4", "terms: ٤", "6: terms: '٤': the number of products is a whole number"),
        ("terms: 4", "terms: ²", "6: terms: '²': the number of products is a whole number"),
        ("terms: 4", "terms: '{n}'\ncases: {n: ['٢']}", "6: terms: '٢': the number of products is a whole number"),
        ("block=2", "block=٢", "10: parts.two: block: ٢ is impossible"),
        ("terms: 4", "terms: '{n}'\ncases: {n: []}", "7: cases.n: no values"),
        ("terms: 4", "terms: 4\ncases: {n: [1]}", "7: cases.n: nothing in the file is {n}"),
    ],
)
def test_claims(old: str, new: str, message: str) -> None:
    assert old in CLAIM
    with pytest.raises(InputError, match=re.escape(f"c.yaml:{message}")):
        build_claims(read_yaml(CLAIM.replace(old, new), "c.yaml"))


def test_a_format_that_nothing_has(tmp_path: Path) -> None:
    path, step = tmp_path / "u.yaml", "round(exact(a[0] * b[0], c), f32, up)"
    own = "own_formats: {mine: {exponent: 4, fraction: 3, bias: 7, specials: ieee}}\n"
    path.write_text(UNIT.format(own=own, a="f16", step=step))
    with pytest.raises(InputError, match=r"u\.yaml:2: own_formats\.mine: nothing has this format"):
        mmaprobe.unit(str(path))
    path.write_text(UNIT.format(own=own, a="mine", step=step))
    assert mmaprobe.unit(str(path)).a.width == 8


def test_times_in_python() -> None:
    assert mmaprobe.prove(V, V, timeout=10**400).verdict == "equal"
    for wrong in (0, -1, float("nan"), "x", None, True):
        with pytest.raises(MmaprobeError, match="device_timeout: "):
            mmaprobe.order(lambda a, b: a @ b, "f32,f32,f32", 4, device_timeout=wrong)  # type: ignore[arg-type]


def test_completion_without_a_shell() -> None:
    """Its variables are the shell's: what is wrong with them is no fault."""
    for words in ({}, {"COMP_WORDS": "mmaprobe", "COMP_CWORD": "x"}):
        done = CliRunner().invoke(main, [], env={"_MAIN_COMPLETE": "bash_complete", **words})
        assert done.exit_code == 2, done.exception
        assert "`mmaprobe completion` prints the script" in done.stderr
