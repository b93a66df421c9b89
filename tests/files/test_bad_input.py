"""Input that is wrong: named in words, with its place, and at once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

import mmaprobe
from mmaprobe.cli.main import PLACES, main
from mmaprobe.smtmodel.algorithms.predicate import parse_predicate
from mmaprobe.smtmodel.base.errors import InputError, ParameterError
from mmaprobe.smtmodel.base.yamlfile import read_yaml
from mmaprobe.smtmodel.inputs.vectors import read_vectors

V = "volta/mma/m8n8k4.f32.f16.f16.f32"
HOPPER, FP8 = "hopper/mma/m16n8k16.f32.f16.f16.f32", "hopper/wgmma/m64n8k32.f32.e4m3.e4m3"
PLAIN = {"a": ["3c00"], "b": ["3c00"], "c": "00000000"}
ROW = {"model": V, **PLAIN}
QUESTION = f"""id: mine
question: Which?
source: nobody
model: {V}
hypotheses:
  two: {{carry_bits: 2}}
  three: {{carry_bits: 3}}
expect: different
"""


def run(*arguments, code, message, stdin=None):
    """The command ends with this exit code and one line that says this."""
    done = CliRunner().invoke(main, list(arguments), input=stdin)
    assert done.exit_code == code, done.output
    assert message in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    return done


# --- YAML ---------------------------------------------------------------------------------------------------------

BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 41))
NINES = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 8))
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} {'[' * 150}*a{n - 1}{']' * 150}\n" for n in range(1, 10))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BOMB, "more than 20,000 values, every use of an alias counted"),
        (NINES, "more than 20,000 values, every use of an alias counted"),
        (CHAIN, "nested too deep"),
        ("x: " + "[" * 5000, "nested too deep"),
        ("x: y\n" * 300_000, "more than 1,000,000 characters"),
        (f"x: {'9' * 5000}", "not a value: a number of more than 4300 digits"),
        ('x: !!int ""', "not a value: '' is not a whole number"),
        ("x: !!bool maybe", "not a value: 'maybe' is not true or false"),
        ("x: !!timestamp noon", "not a value: 'noon' is not a date"),
        ("? [a, b]\n: c", "a key must be a single word"),
        ("x: y\nz: \x01", "2: not YAML: U.0001, a character that no text has"),
        ("x: y\nz: !foo 1", "2: unknown tag !foo"),
        ("x: y\nz: !foo {a: 1}", "2: unknown tag !foo"),
        ("x: y\n!foo z: 1", "2: unknown tag !foo"),
        ("x: !!python/object:os.system [a]", "1: unknown tag !!python/object:os.system"),
        ("x: !far!away 1", "1: not YAML: unknown tag !far!"),
        ("x: y\nz: a: b", "2: not YAML: a second colon on a line"),
        ("x: y\nz: 'a\nb: c\n", "2: not YAML: a quotation mark without its second"),
        ("x: *y", "1: not YAML: an alias, [*]y, without an anchor"),
        ("x: @y", "1: not YAML: text that begins with @ must be in quotes"),
        ("%YAML 1{\nx: y", "1: not YAML: expected a digit or '.', but found '{'"),
        ('x: "\\q"', "1: not YAML: [\\\\]q is not known in double quotes"),
    ],
)
def test_yaml_that_nobody_writes(text, message, tmp_path):
    with pytest.raises(InputError, match=message) as caught:
        read_yaml(text, "file.yaml")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("file.yaml")


def test_a_bomb_on_the_command_line(tmp_path):
    path = tmp_path / "bomb.yaml"
    path.write_text(BOMB)
    for command in ("distinguish", "verify", "separate"):
        run(command, str(path), code=2, message="every use of an alias counted")


@pytest.mark.parametrize("name", ["Mine", "größe", "-x", "a b"])
def test_an_id_in_words(name, tmp_path):
    path = tmp_path / "q.yaml"
    path.write_text(QUESTION.replace("mine", f"'{name}'"))
    message = "q.yaml:1: id: an id has small letters a to z, digits, dots and hyphens"
    run("distinguish", str(path), code=2, message=message)


CLAIM = f"id: mine\nterms: 1\ninputs: {{format: f16, a: [0, 0]}}\nparts: {{p: 'markidis@unit={V}'}}\nclaim: finite(p)\n"
FAMILY = "id: mine\nformats: {a: f16, b: f16, c: f32, d: f32}\nlength: 4\ncandidates: [{family: fma-chain}]\n"


@pytest.mark.parametrize(
    ("text", "commands", "message"),
    [
        (CLAIM, ("cover", "show", "distinguish", "study", "separate"), "5: claim: unknown key: the file is a claim"),
        (FAMILY, ("cover", "verify", "distinguish", "study"), "4: candidates: unknown key: the file is a family"),
        (QUESTION, ("cover", "verify", "study"), "5: hypotheses: unknown key: the file is a question"),
    ],
    ids=["claim", "family", "question"],
)  # fmt: skip
def test_a_file_of_another_kind_is_told(text, commands, message, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    for command in commands:
        run(command, str(path), code=2, message=f"{path}:{message}")


# --- vectors ------------------------------------------------------------------------------------------------------


def vectors(*lines):
    return list(read_vectors(lines, "rows.jsonl"))


def test_keys_and_ids_stand_once():
    with pytest.raises(InputError, match=r"rows\.jsonl:1: c: this key is given twice"):
        vectors(json.dumps(ROW)[:-1] + ', "c": "00000001"}')
    with pytest.raises(InputError, match=r"rows\.jsonl:3: id: 'x' is the id of line 1 too"):
        vectors(*(json.dumps({**ROW, "id": name}) for name in ("x", 1, "x")))
    assert len(vectors(*(json.dumps({**ROW, "id": name}) for name in ("1", 1, None, None)))) == 4


def test_numbers_of_thousands_of_digits():
    with pytest.raises(InputError, match=r"rows\.jsonl:1: a number of more than 4300 digits"):
        vectors(json.dumps(ROW)[:-1] + f', "id": {"9" * 5000}}}')


def test_a_byte_order_mark_is_read():
    [vector] = vectors("\ufeff" + json.dumps(ROW))
    assert vector.operands.a == (0x3C00,)


def test_a_prefix_is_told():
    with pytest.raises(InputError, match=r"a\[0\]: '0x3c00' is not hexadecimal: write the digits alone, without 0x"):
        vectors(json.dumps({**ROW, "a": ["0x3c00"]}))


def test_other_keys_are_kept(tmp_path):
    path, extra = tmp_path / "v.jsonl", {"note": "mine", "tags": [1, {"x": None}]}
    path.write_text(json.dumps({**ROW, "id": "v", **extra}) + "\n")
    [line] = run("run", str(path), "--device", f"model:{V}", code=0, message="1 vector").stdout.splitlines()
    answered = json.loads(line)
    assert {name: answered[name] for name in extra} == extra
    path.write_text(json.dumps({**ROW, "scale_q": 1}) + "\n")
    run("run", str(path), "--device", f"model:{V}", code=2, message="scale_q: unknown field; did you mean 'scale_")


def test_vectors_without_a_model(tmp_path):
    """Where the command has --model, or a device that knows its instruction."""
    path = tmp_path / "v.jsonl"
    path.write_text(json.dumps(PLAIN) + "\n" + json.dumps({**PLAIN, "d": "3f800000"}) + "\n")
    answers = tmp_path / "answers.jsonl"
    for _ in range(2):  # the second goes on, with nothing left to ask
        run("run", str(path), "--device", f"model:{V}", "-o", str(answers), code=0, message="2 vectors answered")
    assert json.loads(answers.read_text().splitlines()[0])["model"] == V
    done = CliRunner().invoke(main, ["evaluate", str(path), "--model", V])
    assert "0 mismatches" in done.stderr
    assert CliRunner().invoke(main, ["export", str(path), "--model", V, "--format", "csv"]).exit_code == 0
    assert CliRunner().invoke(main, ["explain", V, str(path)]).exit_code == 0
    sides = f"model:{V}", f"model:{V}@fraction_bits=20"
    assert CliRunner().invoke(main, ["compare", *sides, "--vectors", str(path), "--samples", "10"]).exit_code == 0
    run("evaluate", str(path), code=2, message=f"{path}:1: model: this field is missing: name the instruction")
    device = "command:cat"
    run("run", str(path), "--device", device, code=2, message=f"{path}:1: model: this field is missing, and {device}")


# --- options ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "0", "-1", "1e400", "2e9", "abc"])
def test_times_are_finite(value):
    run("distinguish", "carry-bits-ampere", "--timeout", value, code=2, message=f"'{value}' is not a number of seconds")
    run("separate", "nvidia-f16", "--each", value, code=2, message="is not a number of seconds above 0")
    run(
        "identify",
        "nvidia-f16",
        "--device",
        f"model:{V}",
        "--device-timeout",
        value,
        code=2,
        message="number of seconds",
    )


def test_defaults_name_file_line_and_key(tmp_path, monkeypatch):
    path = tmp_path / "config.toml"
    monkeypatch.setenv("MMAPROBE_CONFIG", str(path))
    path.write_text('quiet = 1\n[prove]\ntimeout = "abc"\n'.removeprefix("quiet = 1\n"))
    message = f"error: {path}:2: timeout: 'abc' is not a number of seconds above 0"
    run("list", "formats", code=2, message=message)


def test_small_mistakes():
    run("distinguish", V, f"{V}@", code=2, message="@: a parameter is written name=value")
    run("distinguish", "/tmp", code=2, message="error: /tmp: is a folder: a model, a question or its file is needed")
    run("distinguish", "/tmp", V, code=2, message="error: /tmp: is a folder")
    run("study", "valero-tf32", "--sizes", "8,99999999999999", code=2, message="--sizes: 99999999999999 is too large")


def test_a_store_makes_no_folders(tmp_path):
    path = tmp_path / "new" / "s.sqlite"
    message = f"{path}: there is no folder {path.parent}: make it first"
    run("distinguish", "carry-bits-ampere", "--store", str(path), code=2, message=message)
    assert not path.parent.exists()


def test_expressions_without_end():
    for text in ("-" * 20_000 + "a", "(" * 20_000, "-" * 60 + "1", "1 +\n" * 5):
        with pytest.raises(ParameterError) as caught:
            parse_predicate(text, ["a"])
        assert len(str(caught.value)) < 200
        assert "\n" not in str(caught.value)


def test_families_without_end(tmp_path, monkeypatch):
    path = tmp_path / "f.yaml"
    head = "id: f\nformats: {a: f16, b: f16, c: f32, d: f32}\nlength: 4\nparameters:\n"
    path.write_text(head + "  fraction_bits: {from: 0, to: 1000000000}\n")
    run("separate", str(path), code=2, message="f.yaml:5: parameters.fraction_bits: a range of more than 1,000 values")
    monkeypatch.setattr("mmaprobe.hypotheses.family.MOST_COMBINATIONS", 100)
    path.write_text(head + "  block: [1, 2, 4]\n  fraction_bits: {from: 1, to: 60}\n")
    run("separate", str(path), code=2, message="parameters: more than 100 combinations: leave values out")


# --- files that are read and written ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        "simulate IN IN -o IN --model M",
        "distinguish IN -o IN",
        "distinguish IN --smt2 IN",
        "separate IN -o IN",
        "cover IN -o IN",
        "evaluate IN -o IN",
        "export IN --format csv -o IN",
        "run IN --device model:M -o IN",
        "identify nvidia-f16 --device recorded:IN -o IN",
        "identify --device recorded:IN --formats f16,f16,f32,f32 --length 4 --save IN",
        "order --device recorded:IN --formats f16,f16,f32,f32 --length 4 -o IN",
        "compare recorded:IN model:M -o IN",
        "compare model:M model:M --vectors IN -o IN",
        "run v.jsonl --device python:IN:f -o IN",
        "run v.jsonl --device rtl:IN,top=mma -o IN",
        "identify --gemm --device recorded:a.npy,IN,d.npy --formats f16,f16,f32 --save IN",
        "order --device command:cat:IN --formats f16,f16,f32,f32 --length 4 -o IN",
        "explain M IN:1 --svg IN",
        "explain IN@block=2 v.jsonl:1 --pdf IN",
        "show IN --tikz IN",
        "report IN -o IN",
        "datasheet IN -o IN",
    ],
)
def test_no_output_takes_the_place_of_an_input(arguments, tmp_path):
    path, other = tmp_path / "sub" / "in.html", tmp_path / "in.html"
    path.parent.mkdir()
    path.write_text(QUESTION)
    other.symlink_to(path)  # the same file by another name
    read, _, written = arguments.rpartition("IN")
    line = f"{read.replace('IN', str(path))}{other}{written}".replace("M", V).split()
    run(*line, code=2, message="would overwrite an input")
    assert path.read_text() == QUESTION


def test_files_that_are_not_what_they_should_be(tmp_path):
    rows, matrix = tmp_path / "rows.jsonl", tmp_path / "a.npy"
    rows.write_bytes(b"\x7fELF\xd0")
    run("evaluate", str(rows), code=2, message=f"{rows}:1: cannot be read: not text in UTF-8")
    run("explain", V, f"{rows}:1", code=2, message=f"{rows}:1: cannot be read: not text in UTF-8")
    run(
        "show",
        str(rows.rename(tmp_path / "unit.yaml")),
        code=2,
        message="unit.yaml:1: cannot be read: not text in UTF-8",
    )
    (tmp_path / "unit.yaml").rename(rows)
    shape = ("--formats", "f32,f32,f32", "--length", "8")
    run("order", "--device", f"python:{tmp_path}:f", *shape, code=2, message="is a folder: a Python file is needed")
    run("evaluate", str(tmp_path), code=2, message="cannot be read: Is a directory")
    rows.write_text('{"aa": ["3c00"], "b": ["3c00"], "c": "00000000"}\n')
    run("run", str(rows), "--device", f"model:{V}", code=2, message="rows.jsonl:1: a: this field is missing")
    product = ["simulate", str(matrix), str(matrix), "--model", V, "-o", str(tmp_path / "d.npy")]
    matrix.write_bytes(b"")
    run(*product, code=2, message="a.npy: not a .npy or .npz file of numbers")
    np.save(matrix, np.ones((2, 2), np.int64))
    run(*product, code=2, message="a.npy: int64 is none of")
    product[1] = str(tmp_path)
    run(*product, code=2, message="cannot be read: Is a directory")


def test_an_output_that_cannot_be_is_found_before_the_work(tmp_path):
    ask = ["distinguish", V, f"{V}@carry_bits=2", "-o"]
    run(*ask, str(tmp_path / "no" / "x"), code=2, message=f"no/x: there is no folder {tmp_path / 'no'}: make it first")
    run(*ask, str(tmp_path), code=2, message=f"{tmp_path}: is a folder: a file is needed")
    run("datasheet", "H100", "-o", "h100.pdf", code=2, message="a name that ends in .html or .tex or .md is needed")
    run("report", "x.json", "-o", "report.pdf", code=2, message="a name that ends in .html is needed")


def test_numbers_that_do_not_fit_and_plans_without_k_say_what_to_give(tmp_path):
    a, b, out = (str(tmp_path / f"{name}.npy") for name in "abd")
    np.save(a, np.full((2, 16), 0.1))
    np.save(b, np.ones((16, 2), np.float16))
    product = ("simulate", a, b, "-o", out, "--model")
    run(*product, HOPPER, code=2, message=f"{a}: 0.1 at [0, 0] is not exact in f16: say how to round (--convert)")
    run("explain", HOPPER, a, b, "--element", "0,0", code=2, message="not exact in f16: give a file of rounded numbers")
    run(*product, "plan:cublas/plain", code=2, message="plan:cublas/plain: a plan is a model for a given number of")
    run("show", "plan:cublas/plain", "--svg", out + ".svg", code=2, message="the picture of a plan is for some K")


def test_rows_that_another_model_does_not_take_are_named(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"model": V, "a": ["3c00"], "b": ["3c00"], "c": "00000000", "d": "3f800000"}))
    run("evaluate", str(path), "--model", FP8, code=2, message=f"{path}:1: {FP8} takes other formats than {V}")


# --- what to do next ----------------------------------------------------------------------------------------------

H = "hopper/mma/m16n8k16.f32.f16.f16.f32"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("compare", H, V), f"for a model write model:{H}"),
        (("compare", "H100", "A100"), '`mmaprobe list "H100"` shows the instructions, docs/generations.md'),
        (("compare", "a.npy", "b.npy", "d1.npy", "d2.npy"), "for two results of a matrix product, --gemm A B D1 D2"),
        (("distinguish", "H100", "A100"), '`mmaprobe list "H100"` shows them'),
        (("distinguish", H, "ampere"), "`mmaprobe list ampere` shows them"),
        (("distinguish", H, "alignment-bits"), f"{H} is a model, and alignment-bits a question"),
        (("distinguish", H, "alignment-bitz"), "did you mean 'alignment-bits'?"),
        (("distinguish", f"{H}@F=24", H), "unknown parameter 'F' (F is fraction_bits)"),
        (("distinguish", "-q", H, V), "-q is written before the command: "),
        (("simulate", "a", "b", "c", "--c", "e", "--model", H, "-o", "d.npy"), "C is given twice: c, and --c e"),
        (("explain", H, "a.npy", "b.npy", "--c", "c.npy"), "--c: it goes with --element, as matrix files do"),
        (("explain", H, "a", "b", "c", "--c", "e", "--element", "0,0"), "C is given twice: c, and --c e"),
        (("identify", "--device", f"model:{H}", "--c", "c.npy"), "--c: it goes with --gemm and a recorded product"),
        (("identify", "--gemm", "--device", "recorded:a,b,c,d", "--c", "e"), "--c: C is given twice: c, and e"),
        (("identify", "--gemm", "--device", "recorded:a,b"), "A.npy,B.npy,D.npy (and --c C.npy), A.npy,B.npy,C.npy,D"),
        (("evaluate", "rows.jsonl", "--junit", "x.xml", "-o", "x.xml"), "x.xml: --output and --junit name one file"),
        (("evaluate", "rows.jsonl", "--junit", "none/x.xml"), "none/x.xml: there is no folder none: make it first"),
        (("import", os.devnull, "--model", "ieee/fma/f32"), "the file has no line of words"),
        (("export", "rows.jsonl", "--format", "csv", "-o", "x.npz"), "x.npz has the ending of npz: give --format npz"),
        (("distinguish", H, V, "--memory", "10G"), "'10G' is not a whole number of MiB"),
        (("distinguish", H, V, "--count", "0"), "'-n' / '--count': 0 is not in the range x>=1"),
        (("simulate", "a", "b", "--plan", "none.json", "-o", "d.npy"), "none.json: no such file"),
        (("compare", "--gemm", "a.npy", "b.npy", "c.npy", "d.npy", "e.npy"), "--gemm A B D1 D2 [--c C]"),
        (("simulate", "a.npy", "b.npy", "-o", "d.npy"), "give --model (a unit) or --plan"),
        (("distinguish", H, V, "-o", "d.npy"), "a name that ends in .jsonl is needed"),
        (("study", "xie-bias", "--width", "40"), "--width: 40 mm is too narrow: 80 or more"),
        (("check", "."), "not a folder that --certificate wrote"),
        (("check", "nosuch"), "nosuch: no such folder"),
        (("explain", V, json.dumps(PLAIN), "--svg", "x.png"), "x.png: a name that ends in .svg is needed"),
        (("explain", V, json.dumps(PLAIN), "--tikz", "x.pdf"), "x.pdf: a name that ends in .tex is needed"),
        (("show", "cublas/split-k"), "did you mean 'plan:cublas/split-k'?"),
        (("list", "bf16"), "`mmaprobe list models bf16` lists the instructions with it"),
    ],
)
def test_a_message_says_what_to_do(
    command: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(*command, code=2, message=message)


def test_formats_as_people_call_them() -> None:
    rows = CliRunner().invoke(main, ["list", "H100", "fp8"]).stdout.splitlines()
    assert rows
    assert all("e4m3" in row or "e5m2" in row for row in rows)
    names = [CliRunner().invoke(main, ["list", "hopper", name]).stdout for name in ("fp16", "bf16")]
    assert "bf16" not in names[0]
    assert "f16" not in names[1].replace("bf16", "")


def test_what_a_program_and_a_function_lack(tmp_path: Path) -> None:
    vectors, empty = tmp_path / "v.jsonl", tmp_path / "empty.py"
    vectors.write_text(json.dumps({**PLAIN, "model": V}) + "\n")
    empty.write_text("x = 1\n")
    run("run", str(vectors), "--device", f"python:{empty}:matmul", code=2, message=f"{empty}: defines no function")
    message = "ended with exit status 0, without an answer, on vector 1"
    run("run", str(vectors), "--device", "command:true", code=3, message=message)


def test_a_file_with_another_ending_is_no_unit_file(tmp_path: Path) -> None:
    ending = "the name of a unit file"
    run("show", str(tmp_path / "unit.yml"), code=2, message=f"{ending} ends in .yaml")
    run(
        "identify", "--device", f"model:{V}", "--save", str(tmp_path / "unit.txt"), code=2, message=f"{ending}, or of a"
    )
    plan = tmp_path / "plan.yaml"
    plan.write_text("plan: mine\n", encoding="utf-8")
    needed = f"for a given number of products: plan:{plan}@length=64"
    run("show", f"{plan}@length=64", code=2, message=needed)
    run("explain", str(plan), "{}", code=2, message=needed)
    run("distinguish", str(plan), V, code=2, message=needed)


# -- numbers of unit files

OWN_UNIT = """unit: own
formats: {{a: e4m3, b: e4m3, c: f16, d: f16}}
length: {length}
roundings: {{r: "round(f16, nearest_even)"}}
steps: {{d: "{steps}"}}
"""
HUGE = "1000000000"
TOO_LARGE = [
    ("r(fused(a[0] * b[0], c, F=9, carry=%s))", "carry: %s is impossible; it takes a whole number from 0 to 16"),
    ("r(fused(a[0] * b[0], c, F=9, zeros=%s))", "zeros: %s is impossible; it takes a whole number from -4096 to 4096"),
    ("r(fused(a[0] * b[0], c, F=9, least=-%s))", "least: -%s is impossible"),
    ("r(fused(a[0] * b[0], c, F=9, floors=[none, %s]))", "floors: %s is impossible"),
    ("r(fused(a[0] * b[0], c, F=9, reach=[%s, none]))", "reach: %s is impossible"),
    ("r(grid(a[0] * b[0], c, F=[9, 9], reach=[%s, none]))", "reach: %s is impossible"),
    ("r(grid(a[0] * b[0], c, F=[9, %s]))", "F: %s is impossible; it takes a whole number from 0 to 256"),
    ("r(fused(a[0] * b[0], c, F=%s))", "F: %s is impossible"),
    ("r(exact(product(a[0], b[0], limit=%s), c))", "limit: %s is impossible"),
    ("r(cut(exact(a[0] * b[0], c), 9, down, least=%s))", "least: %s is impossible"),
    ("r(cut(exact(a[0] * b[0], c), %s, down))", "%s bits are impossible"),
    ("r(exact(segment(a[0], 0, %s) * b[0], c))", "segment: %s is impossible"),
    ("repeat(k in range(0, %s), c, r(exact(a[0] * b[0], acc)))", "more than 4096 places"),
    ("r(exact(a[0:%s] * b[0:%s], c))", "more than 4096 places"),
]


@pytest.mark.parametrize(("steps", "message"), TOO_LARGE)
def test_numbers_of_a_unit_file_have_limits(steps: str, message: str, tmp_path: Path) -> None:
    """As parameters of a reference have: file, line and key are named, and no datapath is built."""
    path = tmp_path / "own.yaml"
    path.write_text(OWN_UNIT.format(length=1, steps=steps.replace("%s", HUGE)))
    result = CliRunner().invoke(main, ["show", str(path)])
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith(f"error: {path}:5: steps.d:"), result.stderr
    assert message.replace("%s", HUGE) in result.stderr


def test_a_number_of_thousands_of_digits_is_called_that(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(OWN_UNIT.format(length=1, steps=f"r(fused(a[0] * b[0], c, F={'9' * 5000}))"))
    result = CliRunner().invoke(main, ["show", str(path)])
    assert result.exit_code == 2
    assert "a number of more than 4300 digits" in result.stderr
    assert "sys." not in result.stderr


@pytest.mark.parametrize("length", ["true", '"4"', "1.0"])
def test_the_length_of_a_unit_is_a_whole_number(length: str, tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(OWN_UNIT.format(length=length, steps="r(exact(a[0] * b[0], c))"))
    result = CliRunner().invoke(main, ["show", str(path)])
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith(f"error: {path}:3: length:"), result.stderr


# --- names of files -----------------------------------------------------------------------------------------------


def _file_options() -> Iterator[tuple[str, str, int]]:
    for name in PLACES:
        for parameter in main.commands[name].params:
            if isinstance(parameter, click.Option) and isinstance(parameter.type, click.Path):
                yield name, parameter.opts[-1], parameter.nargs


@pytest.mark.parametrize(("command", "option", "files"), list(_file_options()))
def test_an_empty_name_is_no_file(
    command: str, option: str, files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = {"compare": ["model:x", "model:y"], "simulate": ["a.npy", "b.npy", "--model", V]}
    device = ["--device", f"model:{V}"] * (command in ("order", "identify", "run"))
    done = run(command, *arguments.get(command, [V] * (command != "order")), *device, option, *[""] * files, code=2,
               message="a name is missing: '' names no ")  # fmt: skip
    assert option in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("below", ["", "/inner"])
@pytest.mark.parametrize("command", [("prove", V, V, "--certificate"), ("study", "valero-tf32", "-o")])
def test_a_link_to_nothing_is_called_that(command: tuple[str, ...], below: str, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("nowhere")
    (tmp_path / "file").touch()
    place = f"{link} is" if below else f"{link}: is"
    run(*command, f"{link}{below}", code=2, message=f"{place} a link to nowhere, which is not there")
    if below:
        run(*command, f"{tmp_path}/file{below}", code=2, message=f"{tmp_path}/file is no folder")


def test_a_link_into_no_folder_names_the_folder(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "missing" / "file")
    run(
        "distinguish", V, HOPPER, "-o", str(tmp_path / "link"), code=2, message=f"there is no folder {tmp_path}/missing"
    )


# --- what is asked of chains --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--property", "monotonic"], "monotonic is a property of one model\n"),
        (["--compare", "value"], "--compare: chains of a unit to --length products can only be proved equal"),
        (["--inputs", "finite"], "--inputs: chains of a unit to --length products can only be proved equal"),
    ],
)
def test_chains_of_units_are_not_called_plans(arguments: list[str], message: str) -> None:
    run("prove", V, V, "--length", "5", *arguments, code=2, message=message)
    name, value = arguments[0].removeprefix("--"), arguments[1]
    with pytest.raises(ParameterError) as raised:
        mmaprobe.prove(V, V, length=5, **{name: value})
    assert "plan" not in str(raised.value)
    assert raised.value.parameter == ("right" if name == "property" else name)


@pytest.mark.parametrize(
    ("given", "plans", "remedy"),
    [
        ((), "plans for any K", "a plan is a model at one K: plan:NAME@length=K"),
        (("--length", "4"), "plans at --length 4", "a plan is a model at one K, without --length: plan:NAME@length=4"),
    ],
)
def test_plans_are_models_at_the_k_that_was_asked(given: tuple[str, ...], plans: str, remedy: str) -> None:
    said = f"--inputs: {plans} can only be proved equal, bit for bit and on every input; {remedy}\n"
    run("prove", *["plan:loop/fma"] * 2, "--inputs", "finite", *given, code=2, message=said)
    run("prove", *["plan:loop/fma@length=4"] * 2, "--inputs", "finite", code=0, message="equal")


@pytest.mark.parametrize("name", ["\0", "a\0.yaml", "plan:./a\0.yaml@length=4", "plan:\0", f"{V}\0", f"{V}@F\0=3"])
def test_a_null_character_is_in_no_name(name: str) -> None:
    with pytest.raises(InputError) as raised:
        list(read_vectors([json.dumps({"model": name, **PLAIN})], "rows.jsonl"))
    assert str(raised.value).startswith("rows.jsonl:1: model: ")
    assert "embedded" not in str(raised.value)


def test_names_too_long_for_a_file_are_no_fault(tmp_path: Path) -> None:
    long, rows = "x" * 5000, tmp_path / "rows.jsonl"
    rows.write_text(json.dumps(ROW) + "\n")
    for arguments in (["run", str(rows), "--device", long], ["run", str(rows), "--device", f"recorded:{long}"],
                      ["run", str(rows), "--device", f"python:{long}:f"], ["datasheet", long, "-o", "x.html"],
                      ["explain", V, long], ["distinguish", long, V], ["show", f"{long}.yaml"],
                      ["show", f"plan:{long}.yaml"], ["check", long], ["prove", V, V, "--certificate", long],
                      ["prove", V, V, "--store", long], ["distinguish", V, HOPPER, "-o", long]):  # fmt: skip
        run(*arguments, code=2, message="")


def test_what_the_system_says_has_no_number() -> None:
    for arguments in (["evaluate"], ["report", "-o", "x.html"], ["compare", f"model:{V}"]):
        name = "/proc/self/mem" if arguments[0] != "compare" else "recorded:/proc/self/mem"
        done = run(*arguments, name, code=2, message="cannot be read: Input/output error")
        assert "Errno" not in done.stderr
