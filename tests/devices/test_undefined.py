"""Designs that leave bits undefined: which cases of a choice can hold, and what is proved whatever the bits are."""

from __future__ import annotations

import shutil
from itertools import product
from pathlib import Path
from random import Random

import pytest

from mmaprobe.queries.equality.sweeping import prove_design
from mmaprobe.queries.kernel.questions.designs import Designed
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.runner.rtl import RtlDevice
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.designs.choices import Conditions, Gate, Wire
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.units.unitfile import parse_unit

UNIT = """unit: product
formats: {a: e2m1, b: e2m1, c: none, d: f16}
length: 1
roundings: {r: "round(f16, nearest_even)"}
steps: {d: "r(exact(a[0] * b[0]))"}
"""
#: the product of two magnitudes in quarters, once the halves of each are known
REST = """
  wire [7:0] quarters = x * y;
  reg [3:0] place; integer k;
  always @* begin place = 0; for (k = 0; k < 8; k = k + 1) if (quarters[k]) place = k; end
  wire [9:0] fraction = {2'b0, quarters} << (10 - place);
  wire [4:0] exponent = place + 13;
  assign d = {a[3] ^ b[3], quarters == 0 ? 15'b0 : {exponent, fraction}};
endmodule
"""
HEAD = "module dot(input [3:0] a, b, output [15:0] d);\n"
#: as a case for each digit, without a default; the same digits as parts of a word
CASES = """
  function [3:0] halves(input [2:0] m);
    case (m) ROWS endcase
  endfunction
"""
ROWS = [f"{digit}: halves = {value};" for digit, value in enumerate([0, 1, 2, 3, 4, 6, 8, 12])]
CASE = HEAD + CASES + "  wire [3:0] x = halves(a[2:0]), y = halves(b[2:0]);\n" + REST
PARTS = (HEAD + "  wire [{top}:0] digits = {word};\n  wire [3:0] x = digits[{{~a[2:0], 2'b0}} +: 4], "
         "y = digits[{{~b[2:0], 2'b0}} +: 4];\n" + REST.replace("{", "{{").replace("}", "}}"))  # fmt: skip

pytestmark = pytest.mark.compilers


def verdict(text: str, folder: Path) -> str:
    path = folder / "dot.sv"
    path.write_text(text, encoding="utf-8")
    model, device = Model("product.yaml", parse_unit(UNIT, "product.yaml")), RtlDevice(f"{path},top=dot")
    proof = prove_design(Designed(model, model, design=device.design), Options(timeout=20.0))
    return "equal" if proof.theorem else "differ" if proof.witness else "unknown"


def cases(*rows: str) -> str:
    return CASE.replace("ROWS", " ".join(rows))


UNIQUE = """unique case (1'b1)
      m[2:1] == 0: halves = m[0];
      SECOND: halves = {1'b1, m[0]};
      default: halves = {3'b001, m[0]} << (m[2:1] - 1);"""

DESIGNS = [
    (
        "cases of which one holds at a time",
        CASE.replace("case (m) ROWS", UNIQUE.replace("SECOND", "m[2:1] == 1")),
        "equal",
    ),
    (
        "two cases at once, the first of which is right",
        CASE.replace("case (m) ROWS", UNIQUE.replace("SECOND", "m < 4")),
        "unknown",
    ),
    ("every case", cases(*ROWS), "equal"),
    ("zero by default", cases(*ROWS[1:], "default: halves = 0;"), "equal"),
    ("an undefined default that is never taken", cases(*ROWS, "default: halves = 4'bx;"), "equal"),
    ("an undefined default, where a simulator's zero is right", cases(*ROWS[1:], "default: halves = 4'bx;"), "unknown"),
    ("an undefined default, where it is not", cases(*ROWS[:5], *ROWS[6:], "default: halves = 4'bx;"), "differ"),
    ("parts of a word", PARTS.format(top=31, word="32'h0123468c"), "equal"),
    ("parts of a word and beyond it", PARTS.format(top=27, word="28'h123468c"), "unknown"),
]


@pytest.mark.skipif(shutil.which("yosys") is None, reason="Yosys is not installed (the package yosys)")
@pytest.mark.parametrize(("text", "wanted"), [row[1:] for row in DESIGNS], ids=[row[0] for row in DESIGNS])
def test_equal_means_whatever_undefined_bits_are(text: str, wanted: str, tmp_path: Path) -> None:
    assert verdict(text, tmp_path) == wanted


@pytest.mark.skipif(shutil.which("yosys") is None, reason="Yosys is not installed (the package yosys)")
def test_a_wire_with_two_drivers_is_no_design(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="conflicting drivers"):
        verdict(cases(*ROWS).replace("endmodule", "assign d = {a, b, a, b};\nendmodule"), tmp_path)


SLANG = "use of undeclared identifier 'z'"  # as the Yosys of the Python package says it


@pytest.mark.skipif(shutil.which("yosys") is None, reason="Yosys is not installed (the package yosys)")
def test_a_wire_that_is_not_declared_is_driven(tmp_path: Path) -> None:
    """Verilog declares what an instance drives, and also a name that is misspelt."""
    text = cases(*ROWS)
    driven = text.replace(HEAD, f"{HEAD}  same of_a(.from(a[3]), .to(sign));\n").replace("a[3] ^", "sign ^")
    driven += "module same(input from, output to);\n  assign to = from;\nendmodule\n"
    assert verdict(driven, tmp_path) == "equal"
    wrong = text.replace("x * y", "x * z")
    line = next(number for number, row in enumerate(wrong.splitlines(), start=1) if "x * z" in row)
    with pytest.raises(InputError, match=rf":{line}: (z is not declared, and nothing drives it|{SLANG})$"):
        verdict(wrong, tmp_path)


def gates(random: Random, inputs: int, count: int) -> dict[Wire, Gate]:
    """Gates of one bit, above input bits 0 and up."""
    every: dict[Wire, Gate] = {}
    for number in range(inputs, inputs + count):
        kind = random.choice(["$eq", "$logic_not", "$not", "$reduce_and", "$or", "$logic_or", "$reduce_or", "$and"])
        width = 1 if kind in ("$not", "$or", "$and", "$logic_or") else random.randint(1, 3)
        bits: list[Wire] = [*range(number), "0", "1"]
        sides = {port: tuple(random.choice(bits) for _ in range(width))
                 for port in ("A", "B")[: 1 + (kind in ("$eq", "$or", "$logic_or", "$and"))]}  # fmt: skip
        if kind == "$eq":
            sides["B"] = tuple(random.choice("01") for _ in range(width))
        every[number] = kind, sides
    return every


def value(bit: Wire, every: dict[Wire, Gate], word: tuple[bool, ...]) -> bool:
    if isinstance(bit, str):
        return bit == "1"
    if bit not in every:
        return word[bit]
    kind, inputs = every[bit]
    one, other = ([value(wire, every, word) for wire in inputs.get(port, ())] for port in "AB")
    match kind:
        case "$eq":
            return one == other
        case "$logic_not" | "$not":
            return not any(one)
        case "$reduce_and" | "$and":
            return all(one + other)
    return any(one + other)


def test_what_is_shown_of_conditions_holds_for_every_input() -> None:
    shown = {"disjoint": 0, "covering": 0}
    for seed in range(600):
        random = Random(seed)
        inputs = random.randint(1, 4)
        every = gates(random, inputs, random.randint(2, 6))
        wires: list[Wire] = random.sample([*range(inputs), *every], 2) + ["0"] * random.randint(0, 1)
        found = Conditions(wires, every.get)
        words = [[value(wire, every, word) for wire in wires] for word in product((False, True), repeat=inputs)]
        shown["disjoint"] += found.disjoint
        shown["covering"] += found.covering
        assert not found.disjoint or all(sum(holds) < 2 for holds in words), (seed, wires)
        assert not found.covering or all(any(holds) for holds in words), (seed, wires)
    assert min(shown.values()) > 30, shown


def test_each_value_of_a_word_is_a_case_of_its_own() -> None:
    """As Yosys writes `case`: disjoint, and covering with all of them."""
    every: dict[Wire, Gate] = {100 + n: ("$eq", {"A": tuple(range(4)), "B": tuple(f"{n:04b}")}) for n in range(16)}
    whole, part = Conditions(list(every), every.get), Conditions(list(every)[1:], every.get)
    assert (whole.disjoint, whole.covering, part.disjoint, part.covering) == (True, True, True, False)


@pytest.mark.parametrize("undefined", ["x", "z"])
def test_nothing_is_shown_of_a_bit_that_is_undefined(undefined: str) -> None:
    every: dict[Wire, Gate] = {1: ("$eq", {"A": (undefined,), "B": ("0",)})}
    found = Conditions([undefined, 1], every.get)
    assert (found.disjoint, found.covering) == (False, False)
