"""Units as expressions: every row and parameter of the table as one, their text, and the commands that take them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.equality.staged import prove
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError, NotModelledError, ParameterError
from mmaprobe.smtmodel.base.libraries import compiler
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch, evaluate_row
from mmaprobe.smtmodel.evaluate.compiled import compile_model
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.nodes import Each, Element, ExactSum, FusedSum, Index, Product, Repeat, Round, Running
from mmaprobe.smtmodel.nodes.node import structure
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import member_of, parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unit_files import shipped_unit, units
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text
from tests.oracles import node_oracle, oracle
from tests.places import ROOT

AMX, VDP = "x86/amx/tdpbf16ps", "x86/avx512/vdpbf16ps"
ROWS = 400
#: one reference for each arithmetic of the table
ARITHMETICS = list({m.unit: ref for ref in INSTRUCTIONS for m in (parse_reference(ref),)}.values())

PAIR = "exact(a[0] * b[0], a[1] * b[1])"
SMALL = """unit: small
formats: {a: f16, b: f16, c: f32, d: f32}
length: 2
roundings:
  r: round(f32, nearest_even)
steps:
  pair: exact(a[0] * b[0], a[1] * b[1])
  d: r(exact(pair, c))
"""


def test_the_text_of_every_row_is_short_and_reads_back() -> None:
    for reference in ARITHMETICS:
        unit = parse_reference(reference).unit
        text = unit_text(unit)
        back = parse_unit(text, "unit.yaml")
        assert back == unit
        assert hash(back) == hash(unit)
        assert len(text.splitlines()) <= 20, reference
        assert unit_text(back) == text


@pytest.mark.parametrize("reference", units())
def test_shipped_units_read_back(reference: str) -> None:
    unit = shipped_unit(reference)
    assert unit.reference == reference
    assert unit.source
    assert unit.evidence
    assert parse_unit(unit_text(unit), "unit.yaml") == unit


def test_one_arithmetic_is_one_expression() -> None:
    names = ("mma/m16n8k16.f32.f16.f16.f32", "wgmma/m64n8k16.f32.f16.f16")
    hopper = {parse_reference(f"hopper/{name}").unit for name in names}
    assert len(hopper | {parse_reference("blackwell/tcgen05mma/m64n8k16.f32.f16.f16").unit}) == 1
    assert parse_reference("ampere/mma/m16n8k16.f32.f16.f16.f32").unit not in hopper


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("exact(pair, c)", "exat(pair, c)", 8, r"steps\.d: column 3 .*unknown node 'exat'; did you mean 'exact'"),
        ("exact(pair, c)", "exact(pear, c)", 8, r"steps\.d: column 9 of the expression: unknown name 'pear'.*'pair'"),
        ("nearest_even", "nearest_evn", 5, r"roundings\.r: column 12 .*did you mean 'nearest_even'"),
        ("a[1] * b[1]", "a[4] * b[4]", 8, r"a: index 4 is outside 0 to 1"),
        ("exact(a[0]", "fused(a[0]", 7, r"steps\.pair: column 1 .*F is missing"),
        (PAIR, "fused(a[0] * b[0], F=3, zero=1)", 7, r"unknown parameter 'zero'; did you mean 'zeros'"),
        (PAIR, "fused(a[0] * b[0], c, F=[])", 7, "F: 0 values for 2 operands"),
        (PAIR, "grid(a[0] * b[0], c, F=[])", 7, "F: 0 values for 2 operands"),
        (PAIR, "grid(a[0] * b[0], c, F=[3, 3], frame=2)", 7, "frame: 2 is not a position"),
        (PAIR, "grid(F=[])", 7, "grid: a sum needs a term"),
        (PAIR, "a[0] * b[0] + a[1] * b[1]", 7, r"is not a node: a sum is written exact\(x, y\) or fused"),
        (PAIR, "a[0:2] * b[0:2]", 7, r"several terms stand where one is needed"),
        (PAIR, "exact(a[0:2] * b[0:3])", 7, r"different numbers of elements"),
        (PAIR, "repeat(k in 4, c, acc)", 7, r"places are written range\(0, 32, 2\)"),
        (PAIR, "repeat(k in range(4), c, a[k*k] * b[k])", 7, r"'k \* k' is not a place: .* \(2\*k \+ 1\)$"),
        ("r(exact(pair, c))", "exact(pair, c)", 8, r"the result is not rounded to a format"),
        ("r(exact(pair, c))", "r(exact(pair, c)", 8, r"steps\.d: column \d+ of the expression: '\(' was never closed"),
        ("d: f32}", "d: f16}", 2, r"formats\.d: the result of the last step is f32"),
        ("  d: r", "  c: r", 8, r"steps\.c: this name cannot be used: it is an operand"),
        ("  pair:", "  k:", 7, r"steps\.k: .*: k is the number of a product in a sum or a loop: each\(k in .*a\[k\]"),
        ("  pair:", "  l:", 7, r"steps\.l: .*: l is the number of a product in a sum or a loop: each\(l in .*a\[l\]"),
        ("  r:", "  i:", 5, r"roundings\.i: .*: i is the number of a product in a sum or a loop: each\(i in "),
        ("  pair:", "  acc:", 7, r"steps\.acc: .*: acc is the result so far in a loop: repeat\("),
        ("  pair:", "  r:", 7, r"steps\.r: this name cannot be used: a rounding has it"),
        ("  pair:", "  exact:", 7, r"steps\.exact: this name cannot be used: it is a node: exact\(TERM, \.\.\.\)"),
        ("  pair:", "  f32:", 7, r"steps\.f32: this name cannot be used: it is a format"),
        (PAIR, "repeat(k in range(2), c, repeat(k in range(2), acc, acc))", 7, "k is the name of the loop around"),
        (PAIR, "repeat(k in range(4), c, exact(acc, a[k // 2] * b[k]))", 7,
         r"'k // 2' is not a place: a place is made of whole numbers and k, added, subtracted or multiplied by a "
         r"number \(2\*k \+ 1\); products that "
         r"share a scale factor stand in an each of their own: each\(k in range\(2, 4\)"),
        ("length: 2", "length: 0", 3, r"length: 0 is impossible"),
        ("length: 2", "length: 4097", 3, r"length: 4097 products are too many; at most 4096"),
        ("length: 2", "length: 4", 3, r"length: no step reads a\[2-3\] and b\[2-3\]: .*`ignored: \[2, 3\]`"),
        ("a[1] * b[1]", "a[1] * b[0]", 3, r"length: no step reads b\[1\]: "),
        ("length: 2", "length: 4\nignored: [2]", 3, r"length: no step reads a\[3\] and b\[3\]: "),
        ("length: 2", "length: 2\nignored: [1]", 4, r"ignored: product 1: the steps read it"),
        ("length: 2", "length: 2\nignored: [2]", 4, r"ignored: product 2: there is no such product"),
        ("steps:", "steps:\n  s: r(c)\n  t: r(s)", 7, r"steps\.s: d does not depend on this step"),
        ("length: 2", "lenght: 2", 3, r"unknown key; did you mean 'length'"),
        ("roundings:\n  r: round(f32, nearest_even)", "roundings: {r: round(f32, nearest_even)}", 4, r"a comma within"),
        ("a: f16", "a: f17", 2, r"formats\.a: unknown format 'f17'"),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_their_place(old: str, new: str, line: int, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_unit(SMALL.replace(old, new), "small.yaml", whole=True)
    assert str(caught.value).startswith(f"small.yaml:{line}: ")


NAMED = """unit: named
formats: {a: f16, b: f16, c: f32, d: f32}
length: 2
roundings:
  final: round(f32, nearest_even)
  early: round(f32, toward_zero)
steps:
  r1: early(exact(a[0] * b[0], c))
  step1: round(exact(r1, a[1] * b[1]), f32, up)
  d: final(exact(step1, cut(exact(r1, c), 20), cut(exact(r1, c), 20)))
"""


def test_names_of_the_file_are_kept_and_others_are_new() -> None:
    """A rounding and a step without names get none that the file has given to something else."""
    unit = parse_unit(NAMED, "named.yaml")
    written = unit_text(unit)
    back = parse_unit(written, "again.yaml", whole=True)
    assert back == unit
    assert unit_text(back) == written
    assert list(back.roundings) == ["early", "r2", "final"]
    assert list(back.names) == ["r1", "step1", "step1_"]
    assert "early(exact(a[0] * b[0], c))" in written


def test_ignored_products_are_written_again() -> None:
    unit = parse_unit(SMALL.replace("length: 2", "length: 4\nignored: [2, 3]"), "small.yaml")
    assert unit.ignored() == (2, 3)
    assert parse_unit(unit_text(unit), "again.yaml", whole=True) == unit


def test_steps_that_use_others_twice_are_read_once() -> None:
    """40 steps, each of which uses the one before twice: 2^40 paths from the result to c."""
    doubled = "".join(f"  x{i}: r(exact(x{i - 1}, x{i - 1}))\n" for i in range(1, 41))
    text = SMALL.replace("length: 2", "length: 1")
    text = text[: text.index("steps:")] + f"steps:\n  x0: r(exact(c, a[0] * b[0]))\n{doubled}  d: r(exact(x40, c))\n"
    unit = parse_unit(text, "doubled.yaml")
    assert parse_unit(text, "doubled.yaml").result == unit.result
    written = unit_text(unit)
    assert unit_text(parse_unit(written, "again.yaml")) == written


def test_nothing_in_a_unit_file_is_executed() -> None:
    for text in ("__import__('os').system('true')", "(lambda: c)()", "c.__class__", "[c for c in a]", "r.__init__(c)"):
        with pytest.raises(InputError):
            parse_unit(SMALL.replace(PAIR, text), "small.yaml")


@pytest.mark.parametrize(
    ("a", "c", "d"), [(1.0, 2.0**-5, 1.0625), (-1.0, 2.0**-5, -1.0625), (-1.0, -(2.0**-5), -1.0625), (0.0, 1.0, 1.0)]
)
def test_a_sticky_bit_is_one_of_the_magnitude(a: float, c: float, d: float) -> None:
    """As its option says, a negative sum becomes more negative, also where what it lost was positive."""
    steps = 'steps: {d: "r(fused(a[0] * b[0], c, F=3, sticky=true))"}'
    head = "unit: u\nformats: {a: f32, b: f32, c: f32, d: f32}\nlength: 1\nroundings: {r: 'round(f32, nearest_even)'}\n"
    model = Model("u.yaml", parse_unit(head + steps, "u.yaml"))
    numbers = [int(np.float32(x).view(np.uint32)) for x in (a, 1.0, c, d)]
    assert evaluate_row(model, Operands((numbers[0],), (numbers[1],), numbers[2])) == numbers[3]
    assert "a negative sum becomes more negative" in run("list", "nodes", "fused")


def test_impossible_nodes_are_named() -> None:
    c, f32 = Element("c"), Rounding(FORMATS["f32"])
    product = Product(Element("a", Index(0)), Element("b", Index(0)))
    for build, message in (
        (lambda: Element("a"), "index"),
        (lambda: Element("c", Index(0)), "index"),
        (lambda: Product(ExactSum((c,)), c), "inputs or rounded results"),
        (lambda: FusedSum((product, c), (24,)), "1 values for 2 operands"),
        (lambda: FusedSum((product, c), 24, "up", sticky=True), "sticky"),
        (lambda: FusedSum((product, c), (24, 25), carry_bits=1), "wraps"),
        (lambda: FusedSum((), 24), "needs a term"),
        (lambda: Rounding(FORMATS["f16"], nan=0x7FFFFFFF), "wider"),
        (lambda: Repeat(1, (), c, c), "no place"),
        (lambda: Unit(FORMATS["f16"], FORMATS["f16"], FORMATS["f32"], 1, ExactSum((product, c))), "not rounded"),
    ):
        with pytest.raises(ParameterError, match=message):
            build()
    assert Round(ExactSum((product, c)), f32) == Round(ExactSum((product, Element("c"))), f32)


def test_a_chain_of_4096_is_small_in_text_and_right() -> None:
    text = """unit: chain
formats: {a: f16, b: f16, c: f32, d: f32}
length: 4096
roundings: {r: "round(f32, nearest_even)"}
steps: {d: "repeat(k in range(4096), c, r(exact(acc, a[k] * b[k])))"}
"""
    unit = parse_unit(text, "chain.yaml")
    assert isinstance(unit.result, Repeat)
    assert len(unit_text(unit).splitlines()) < 10
    rng = np.random.default_rng(1)
    a, b = (rng.integers(0x3C00, 0x4000, (2, 4096)).astype(np.uint16) for _ in "ab")
    total = np.zeros(2, dtype=np.float32)
    for k in range(4096):
        exact = a[:, k].view(np.float16).astype(np.float64) * b[:, k].view(np.float16).astype(np.float64)
        total = (total.astype(np.float64) + exact).astype(np.float32)
    found = evaluate_batch(Model("chain", unit), a, b, np.zeros(2))
    assert found.tolist() == total.view(np.uint32).tolist()


def test_nested_loops_read_back() -> None:
    index = Index(0, ((1, 4), (2, 1)))
    product = Product(Element("a", index), Element("b", index))
    r = Rounding(FORMATS["f32"])
    inner = Repeat(2, range(4), Running(1), Round(ExactSum((Running(2), product)), r))
    outer = Repeat(1, range(2), Element("c"), Round(ExactSum((inner, Running(1))), r))
    unit = Unit(FORMATS["f16"], FORMATS["f16"], FORMATS["f32"], 8, outer)
    assert "i.acc" not in unit_text(unit).replace("repeat(j in range(4), acc", "")
    assert parse_unit(unit_text(unit), "nested.yaml") == unit
    spread = Round(
        ExactSum((Each(1, (0, 3, 1), Product(Element("a", Index(0, ((1, 1),))), Element("b", Index(5)))),)), r
    )
    assert parse_unit(unit_text(Unit(unit.a, unit.b, unit.c, 8, spread)), "each.yaml").result == spread


def test_a_unit_that_reads_its_addend_alone_reads_back() -> None:
    half, single = FORMATS["f16"], FORMATS["f32"]
    flushed = Round(Element("c", None, "zero"), Rounding(half))
    unit = Unit(half, half, single, 1, flushed)
    assert parse_unit(unit_text(unit), "addend.yaml").result == flushed


def test_parameters_of_a_unit_file_are_refused() -> None:
    with pytest.raises(ParameterError, match="no parameters"):
        parse_reference(f"{AMX}@fraction_bits=3")
    with pytest.raises(NotModelledError, match="unit file"):
        member_of(parse_reference(AMX))
    with pytest.raises(MmaprobeError, match=r"did you mean 'x86/amx/tdpbf16ps'"):
        parse_reference("x86/amx/tdpbf16p")


@pytest.mark.skipif(compiler() is None, reason="no C compiler")
def test_compiled_units_agree_with_arrays() -> None:
    model, rng = parse_reference("arm/neon/fmlal"), np.random.default_rng(3)
    compiled = compile_model(model)
    assert compiled is not None
    a, b = (rng.integers(0, 1 << 16, (20, 1), dtype=np.uint64) for _ in "ab")
    c = rng.integers(0, 1 << 32, (20, 20), dtype=np.uint64)
    found = compiled.tile(a, b.T, c)
    for i in range(20):
        expected = evaluate_batch(model, np.repeat(a[i : i + 1], 20, 0), b, c[i])
        assert found[i].tolist() == expected.tolist()


def test_arm_s_matrix_instruction_is_two_dot_products(tmp_path: Path) -> None:
    text = (ROOT / "smtmodel" / "units" / "library" / "arm" / "neon" / "bfmmla.yaml").read_text(encoding="utf-8")
    steps = text.index("steps:")
    step = "o(exact({}, o(exact(o(a[{}] * b[{}]), o(a[{}] * b[{}])))))"
    chained = f"steps:\n  first: {step.format('c', 0, 0, 1, 1)}\n  d: {step.format('first', 2, 2, 3, 3)}\n"
    file = tmp_path / "chained.yaml"
    file.write_text(text[:steps] + chained, encoding="utf-8")
    pair = parse_reference("arm/neon/bfmmla"), parse_reference(str(file))
    proof = prove(Problem(*pair))
    assert proof.verdict == "equal"
    assert proof.confirmations
    crossed = chained.replace("a[2] * b[2]", "a[2] * b[3]")
    file.write_text(f"{text[:steps]}ignored: [2]\n{crossed}", encoding="utf-8")
    assert prove(Problem(pair[0], parse_reference(str(file)))).verdict == "different"


def test_two_instructions_of_one_processor_differ() -> None:
    """One product that underflows: flushed to -0, then added to the other chain's +0, or to c by a fused addition."""
    operands = Operands((0xBE80, 0), (0x0100, 0), 0)
    found = [evaluate_row(parse_reference(reference), operands) for reference in (AMX, VDP)]
    assert found == [0, 0x80000000]


def run(*arguments: str) -> str:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_commands_take_unit_files(tmp_path: Path) -> None:
    file = tmp_path / "unit.yaml"
    file.write_text(run("show", VDP), encoding="utf-8")
    assert parse_unit(file.read_text(encoding="utf-8"), "x") == shipped_unit(VDP)
    row = {"model": str(file), "a": ["3f81", "3f80"], "b": ["3f83", "4040"], "c": "3f800001", "d": "40a10180"}
    vectors = tmp_path / "v.jsonl"
    vectors.write_text(json.dumps(row) + "\n", encoding="utf-8")
    assert json.loads(run("evaluate", str(vectors), "--json"))["mismatches"] == 0
    shown = run("explain", str(file), json.dumps(row))
    assert "d: r(cut(exact(a[0] * b[0], odd), 24, nearest_even))" in shown
    assert "d = 40a10180" in shown
    elsewhere = CliRunner().invoke(main, ["explain", VDP, json.dumps({**row, "model": "./elsewhere.yaml"})])
    assert "d = 40a10180" in elsewhere.stdout
    assert "there is no ./elsewhere.yaml here" in elsewhere.stderr
    document = json.loads(run("explain", str(file), json.dumps(row), "--against", VDP, "--json"))
    assert document["difference"] is None
    command = [sys.executable, "-m", "mmaprobe.cli.main", "device", str(file)]
    asked = json.dumps({side: row[side] for side in "abc"}) + "\n"
    served = subprocess.run(command, input=asked, capture_output=True, text=True, check=True).stdout.splitlines()
    assert json.loads(served[1])["d"] == "40a10180"
    np.save(tmp_path / "a.npy", np.full((3, 5), 0x3F80, dtype=np.uint16))
    np.save(tmp_path / "b.npy", np.full((5, 2), 0x4000, dtype=np.uint16))
    run(
        "simulate",
        str(tmp_path / "a.npy"),
        str(tmp_path / "b.npy"),
        "-o",
        str(tmp_path / "d.npy"),
        "--model",
        str(file),
    )
    assert (np.load(tmp_path / "d.npy") == 10).all()
    assert "declare" in run("export", str(vectors), "--format", "smt2")
    run("datasheet", str(file), "-o", str(tmp_path / "sheet.html"), "--limit", "0")
    assert "exact(a[1] * b[1], c)" in (tmp_path / "sheet.html").read_text(encoding="utf-8")
    assert AMX in run("list", "models")


# --- formats of one's own ---------------------------------------------------------------------------------------------


OWN = """unit: own
own_formats:
  e4m3i: {exponent: 4, fraction: 3, bias: 7, specials: ieee}
  e3m4: {exponent: 3, fraction: 4, specials: ieee}
formats: {a: e4m3i, b: e3m4, c: e4m3i, d: e4m3i}
length: 1
roundings:
  r: round(e4m3i, nearest_even)
steps:
  d: r(exact(a[0] * b[0], c))
"""


@pytest.mark.parametrize(("bias", "name"), [(7, "e4m3_ieee"), (0, "e4m3b0_ieee"), (-3, "e4m3i")])
def test_a_unit_with_an_own_format_reads_back(bias: int, name: str) -> None:
    """Under the format's common spelling; a negative bias has none."""
    unit = parse_unit(OWN.replace("bias: 7", f"bias: {bias}"), "own.yaml")
    assert unit.a.name == name
    assert parse_unit(unit_text(unit), "own.yaml") == unit


def test_formats_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """All products with some addends, by the oracle; and the text reads back."""
    unit = parse_unit(OWN, "own.yaml")
    assert (unit.a.width, unit.a.infinity, unit.b.bias, unit.d) == (8, 0x78, 3, unit.a)
    assert parse_unit(unit_text(unit), "own.yaml") == unit
    assert parse_unit(OWN.replace("bias: 7", "bias: 8"), "own.yaml") != unit
    rows = {"e4m3i": oracle.Format(4, 3, -6, "ieee"), "e3m4": oracle.Format(3, 4, -2, "ieee")}
    monkeypatch.setattr(oracle, "FORMATS", oracle.FORMATS | rows)
    monkeypatch.setattr(node_oracle, "FORMATS", oracle.FORMATS)
    a, b = (side.ravel().astype(np.uint64)[:, None] for side in np.meshgrid(np.arange(256), np.arange(256)))
    for c in (0x00, 0x81, 0x39, 0x77, 0xF8):
        found = evaluate_batch(Model("own", unit), a, b, np.full(len(a), c, np.uint64))
        for place in range(0, len(a), 23):
            wanted = node_oracle.evaluate(unit, [int(a[place, 0])], [int(b[place, 0])], c)
            got = int(found[place])
            if wanted == node_oracle.ANY_NAN:
                assert oracle.decode("e4m3i", got).kind == "nan"
            else:
                assert got == wanted, (hex(int(a[place, 0])), hex(int(b[place, 0])), hex(c), hex(got), hex(wanted))


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("exponent: 4", "exponent: 1", 3, "it takes 2 to 15 exponent and 1 to 52 fraction bits"),
        ("exponent: 4", "exponent: -4", 3, "-4 exponent"),
        ("exponent: 4", "exponent: four", 3, "a whole number is needed"),
        ("specials: ieee}\n  e3m4", "specials: odd}\n  e3m4", 3, "'ieee', 'all_ones'"),
        ("  e4m3i: {", "  e4m3: {", 3, "this name cannot be used"),
        ("b: e3m4", "b: e3m5", 5, "did you mean 'e3m4'?"),
        ("exponent: 4, fraction: 3", "exponent: 15, fraction: 52", 3, "68 bits are too many"),
    ],
)
def test_formats_that_cannot_be(old: str, new: str, line: int, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        parse_unit(OWN.replace(old, new, 1), "own.yaml")
    assert str(caught.value).startswith(f"own.yaml:{line}: ")


SCALED = """unit: scaled
formats: {a: f16, b: f16, c: f32, d: f32, scale: ue8m0}
length: 1
scale_block: 1
roundings:
  r: round(f32, nearest_even)
steps:
  d: r(exact(scale(a[0] * b[0], scale_a[0], scale_b[0]), c))
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("scale: ue8m0", "scale: f16", "factors have no sign"),
        ("scale_a[0]", "number(0xbc00, f16)", "or a positive number"),
        ("scale_a[0]", "c", "is an element of scale_a or scale_b"),
    ],
)
def test_scale_factors_have_no_sign(old: str, new: str, message: str) -> None:
    """They change the exponents of terms, and no sign of a zero or an infinity; `-1 * a[k]` is a product."""
    parse_unit(SCALED, "scaled.yaml")
    parse_unit(SCALED.replace("scale_a[0]", "number(0x3c00, f16)"), "scaled.yaml")
    with pytest.raises(InputError, match=message):
        parse_unit(SCALED.replace(old, new), "scaled.yaml")


def test_two_unit_files_are_told_apart_and_proved_equal(tmp_path: Path) -> None:
    one, other = tmp_path / "one.yaml", tmp_path / "other.yaml"
    one.write_text(OWN, encoding="utf-8")
    other.write_text(
        OWN.replace("unit: own", "unit: other").replace("exact(a[0] * b[0], c)", "fused(a[0] * b[0], c, F=4)")
    )
    document = json.loads(run("distinguish", str(one), str(other), "--solver", "bitwuzla"))
    assert document["predictions"]["left"] != document["predictions"]["right"]
    refused = CliRunner().invoke(main, ["distinguish", str(one), "ieee/fma/f16"])
    assert (refused.exit_code, "the models take different formats: e4m3_ieee and f16" in refused.stderr) == (2, True)
    other.write_text(OWN.replace("unit: own\n", ""), encoding="utf-8")
    refused = CliRunner().invoke(main, ["distinguish", str(one), str(other)])
    assert (refused.exit_code, "unit: this key is missing" in refused.stderr) == (2, True)
    assert json.loads(run("prove", str(one), str(one), "--solver", "bitwuzla", "--json"))["verdict"] == "equal"
    other.write_text(OWN.replace("e4m3i", "narrow").replace("e3m4", "fine"), encoding="utf-8")
    assert json.loads(run("prove", str(one), str(other), "--json"))["verdict"] == "equal"


def test_fewer_vectors_than_asked_for_are_all_there_are(tmp_path: Path) -> None:
    """The results differ where c overflows, which five kinds of rounding do: it is said why there are 5 vectors."""
    text = "unit: {}\nformats: {{a: f32, b: f32, c: f16, d: e4m3}}\nlength: 1\nignored: [0]\nroundings: " \
        "{{r: 'round(e4m3, nearest_even, overflow={})'}}\nsteps: {{d: r(c)}}\n"  # fmt: skip
    files = [tmp_path / f"{name}.yaml" for name in ("saturate", "infinity")]
    for file in files:
        file.write_text(text.format(file.stem, file.stem), encoding="utf-8")
    asked = ["distinguish", *map(str, files), "--solver", "bitwuzla"]
    for count, words in (
        ("9", "different, 5 vectors (in both, any other input exercises the same features as one found) ["),
        ("1", "different, 1 vector ["),
    ):
        result = CliRunner().invoke(main, [*asked, "-n", count])
        assert (result.exit_code, words in result.stderr) == (0, True), result.stderr


def test_equal_expressions_have_one_text() -> None:
    """Ranges are equal whose ends differ, and of equal nodes the first one made may stand for both."""
    one, other = (Repeat(1, places, Element("c"), Running(1)) for places in (range(0, 17, 16), range(0, 32, 16)))
    assert structure(one) == structure(other)  # before they are compared, from when on they share their fields
    assert one == other


def test_integers_have_no_subnormal_numbers() -> None:
    """What reads subnormal numbers as zero reads those of the other operands; of integers alone it is refused."""
    text = """
unit: whole
formats: {a: int8, b: uint4, c: f16, d: f16}
length: 1
inputs: {subnormals: zero}
roundings:
  r: round(f16, nearest_even)
steps:
  d: r(exact(a[0] * b[0], c))
"""
    unit = parse_unit(text, "whole.yaml")
    assert evaluate_row(Model("whole", unit), Operands((1,), (1,), 1)) == 0x3C00
    assert parse_unit(unit_text(unit), "again.yaml") == unit
    for operand, name in (("a", "int8"), ("b", "uint4")):
        with pytest.raises(InputError, match=f"{operand}: {name} has no subnormal numbers that could be read as zero"):
            parse_unit(text.replace("subnormals", operand), "whole.yaml")
