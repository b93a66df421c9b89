"""The picture of an evaluation: every bit shown adds up, and where two evaluations diverge is named right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from mmaprobe.cli.main import main
from mmaprobe.queries.compare.neighbours import neighbours
from mmaprobe.reports.arithmetic import arithmetic
from mmaprobe.reports.bits_text import Canvas
from mmaprobe.reports.drawings.evaluation_drawing import evaluation_drawing
from mmaprobe.reports.drawings.grid import BAR, GAP, grid_of
from mmaprobe.reports.drawings.sheet import Text, shapes_of
from mmaprobe.reports.evaluation_text import draw
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.evaluate.facts import SignalFact
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.explain.explaining import explain
from mmaprobe.smtmodel.explain.explanation import BitLine, Explanation, Picture, Special
from mmaprobe.smtmodel.explain.losses import losses
from mmaprobe.smtmodel.inputs.vectors import parse_row
from mmaprobe.smtmodel.nodes import FusedSum
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.trace import Name, Stage
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit_files import units
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests import inputs

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
AMPERE = "ampere/mma/m16n8k16.f32.f16.f16.f32"
HOPPER = "hopper/mma/m16n8k16.f32.f16.f16.f32"
CDNA2 = "cdna2/mfma/f32_32x32x8f16"
CDNA3 = "cdna3/mfma/f32_32x32x8_f16"
CDNA3_FP8 = "cdna3/mfma/f32_32x32x16_fp8_fp8"
NVFP4 = "rtx-blackwell/mma_block_scale/m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"
TWO = Fraction(2)

#: Equation 10 of Xie et al. 2026: c = 2^23 and the products -2^23, -0.5, -0.25, -0.125
EQUATION_10 = {"a": ["f000", "b800", "b400", "b000"], "b": ["6400", "3c00", "3c00", "3c00"], "c": "4b000000"}

AMPERE_DRAWING = f"""
{AMPERE}
  r: round(f32, toward_zero, overflow=infinity, zero=positive, nan=0x7fffffff)
  d: repeat(i in range(0, 16, 8), c, r(fused(a[i:i+8] * b[i:i+8], acc, F=24, zeros=-132)))

  k  a              b          product  exponent, significand
  0  f000 -2^13     6400 2^10  -2^23      23  -1
  1  b800 -2^-1     3c00 1     -2^-1      -1  -1
  2  b400 -2^-2     3c00 1     -2^-2      -2  -1
  3  b000 -2^-3     3c00 1     -2^-3      -3  -1
  c  4b000000 2^23                        23  +1
  12 zero products: 4-15

block0: products 0-7 and c
  maximum exponent 23 (terms 0, c); 24 bits kept below it, to 2^-1
        2^     23 20   15   10    5    0
  term   exp  c|+--+----+----+----+----+-|--  c: carry bits; right of |: truncated
     0 -  23  .|1000000000000000000000000|
     1 -  -1  .|........................1|
     2 -  -2  .|.........................|1
     3 -  -3  .|.........................|01
     c +  23  .|1000000000000000000000000|
       4 zero terms
              ------------------------------
 2's c        1|1111111111111111111111111|
   sum -      .|........................1|
  f32, toward zero: exact: -2^-1
  block0 = bf000000  1 01111110 00000000000000000000000  -2^-1

block1: zero products; what comes in passes unchanged: bf000000  -2^-1

d = bf000000  1 01111110 00000000000000000000000  -2^-1
"""


def explained(model: str, **row: Any) -> Explanation:
    vector = parse_row({"model": model, **row})
    return explain(vector.model, vector.operands)


def by_text(explanation: Explanation) -> dict[str, SignalFact]:
    """The signals by the text of their names."""
    return {str(fact.name): fact for fact in explanation.facts}


def drawn(explanation: Explanation, marked: Name | None = None) -> list[str]:
    canvas = Canvas(marked=marked)
    draw(explanation, canvas)
    return canvas.lines


def pictures(explanation: Explanation) -> Iterator[Picture]:
    for step in explanation.steps:
        yield from step.pictures


def only(explanation: Explanation) -> Picture:
    [picture] = pictures(explanation)
    return picture


def named(picture: Picture) -> dict[str, BitLine]:
    return {row.name: row for row in picture.rows}


def special_of(explanation: Explanation) -> Special:
    [special] = [picture.special for picture in pictures(explanation) if picture.special]
    return special


def run(*arguments: str, code: int = 0, stdin: str | None = None) -> Result:
    result = CliRunner().invoke(main, list(arguments), input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    return result


# -- pictures verified by hand


@pytest.mark.parametrize(
    ("model", "fraction_bits", "kept", "value"),
    [
        (VOLTA, 23, [], Fraction(0)),
        (AMPERE, 24, ["1"], Fraction(-1, 2)),
        (HOPPER, 25, ["1", "2"], Fraction(-3, 4)),
    ],
)
def test_equation_10(model: str, fraction_bits: int, kept: list[str], value: Fraction) -> None:
    explanation = explained(model, **EQUATION_10)
    picture = explanation.steps[0].pictures[0]
    rows = named(picture)
    assert (picture.maximum, picture.unit, picture.floor) == (23, 23 - fraction_bits, None)
    assert [name for name, row in rows.items() if "maximum" in row.marks] == ["0", "c"]
    assert rows["0"].bits == rows["c"].bits == "1" + "0" * fraction_bits
    for name, place in (("1", -1), ("2", -2), ("3", -3)):
        row = rows[name]
        assert (row.negative, row.exponent) == (True, place)
        expected = "" if name in kept else "1"
        assert (row.cut, row.cut_first if row.cut else place) == (expected, place)
        assert (row.value, row.lost) == ((-(TWO**place), 0) if name in kept else (0, -(TWO**place)))
    assert picture.total.value == value
    assert exact_value(explanation.result, explanation.model.d) == value


def test_the_drawing_of_equation_10_on_ampere() -> None:
    assert drawn(explained(AMPERE, **EQUATION_10)) == AMPERE_DRAWING.strip("\n").split("\n")


def test_two_less_2_to_the_minus_40_is_cut_to_two() -> None:
    explanation = explained(VOLTA, a=["8010"], b=["0010"], c="40000000")
    picture = only(explanation)
    row = named(picture)["0"]
    assert (row.value, row.lost, row.exponent) == (0, -(TWO**-40), -28)
    assert (picture.total.value, picture.zeros) == (2, ("1", "2", "3"))
    lines = drawn(explanation)
    assert "     0 - -28  ........................| ~ 1" in lines
    assert lines[-1] == "d = 40000000  0 10000000 00000000000000000000000  2"


def test_a_sum_that_wraps() -> None:
    """Four products of (2 - 2^-10)^2 and 4 - 2^-22 in one carry bit: the sum is kept modulo 16."""
    explanation = explained(f"{VOLTA}@carry_bits=1", a=["3fff"] * 4, b=["3fff"] * 4, c="407fffff")
    picture = only(explanation)
    exact = 4 * (2 - TWO**-10) ** 2 + 4 - TWO**-22
    assert picture.unwrapped is not None
    assert picture.complement is not None
    assert picture.unwrapped.value == exact
    assert picture.total.value == exact - 16
    assert (len(picture.complement.bits), picture.complement.first) == (26, 3)
    assert " exact +      100|111111110000000000001111  (does not fit: it wraps)" not in drawn(explanation)
    assert " exact +      100|111111110000000000001111  does not fit: it wraps" in drawn(explanation)
    unwrapped = only(explained(VOLTA, a=["3fff"] * 4, b=["3fff"] * 4, c="407fffff"))
    assert (unwrapped.unwrapped, unwrapped.total.value) == (None, exact)


def test_no_integer_is_subnormal() -> None:
    explanation = explained("cdna3/mfma/i32_16x16x32_i8", a=["80", "7f"], b=["80", "7f"], c="7fffffff")
    assert "  int32, toward zero: exact: -2^31 + 2^15 - 2^8" in drawn(explanation)


def test_a_late_addend() -> None:
    """Equation 10 on CDNA3: the products' sum keeps 24 bits and enters the second sum with 32."""
    explanation = explained(CDNA3, **EQUATION_10)
    products, late = pictures(explanation)
    assert (products.name, products.unit, products.total.value) == ("products", -1, -(TWO**23) - TWO**-1)
    rows = named(late)
    assert (late.name, late.maximum, late.unit) == ("late", 23, -9)
    assert (rows["products"].last, rows["c"].last) == (-9, -1)
    assert (rows["products"].value, late.total.value) == (products.total.value, -(TWO**-1))


def test_a_late_addend_cut_among_bits_that_the_products_keep() -> None:
    """e4m3fnuz, bias 8: 1*1 - 1.5*2 = -2 (even), 0.5*0.5625 (odd); c = -1.375*2^-24 - 2^-47 is rounded down to
    -2^-23, the last place of its 24 bits."""
    a, b = ["40", "38", "44"], ["40", "39", "c8"]
    explanation = explained(CDNA3_FP8, a=a, b=b, c="b3b00001")
    even, odd, join, late = pictures(explanation)
    assert (even.total.value, odd.total.value) == (-2, Fraction(9, 32))
    assert join.total.value == -2 + Fraction(9, 32)
    row = named(late)["c"]
    assert (row.value, row.lost) == (-(TWO**-23), -11534337 * TWO**-47)
    assert "raised" in row.marks
    assert any(line.startswith("         c - -24  ") and "1x.xx....|" in line for line in drawn(explanation))


def test_a_late_sum_cut_before_it_is_rounded() -> None:
    """2^15 + 2^-9 + 2^-17 loses its last bit, 32 places below the first, and is then halfway between two results."""
    row = {"a": ["3804"], "b": ["1c00"], "c": "47000000"}
    explanation = explained(CDNA3, **row)
    late = list(pictures(explanation))[-1]
    assert late.cut is not None
    assert (late.total.value, late.cut.value) == (2**15 + TWO**-9 + TWO**-17, 2**15 + TWO**-9)
    assert late.rounded is not None
    assert (late.rounded.half, late.rounded.sticky, explanation.result) == (True, False, 0x47000000)
    assert any(line.endswith("10000000.  normalised and cut") for line in drawn(explanation))
    whole = explained(f"{CDNA3}@late_sum_bits=none", **row)
    assert (list(pictures(whole))[-1].cut, whole.result) == (None, 0x47000001)


def test_a_late_addend_too_small_is_dropped() -> None:
    """FP8 on CDNA3 drops an addend more than F + 1 places below the sum, though rounding down would raise it."""
    row = {"a": ["40"], "b": ["40"], "c": "af000001"}
    late = list(pictures(explained(CDNA3_FP8, **row)))[-1]
    assert (named(late)["c"].value, late.total.value) == (0, 1)
    kept = list(pictures(explained(f"{CDNA3_FP8}@late_small_addend=keep", **row)))[-1]
    assert (named(kept)["c"].value, named(kept)["c"].marks) == (-(TWO**-24), {"raised"})


def test_a_scaled_group() -> None:
    """16 products of 1.5 * 2 in the first group, scaled by 2 and 0.5; one of -0.5 in the second, scaled by 1.125."""
    a, b = ["3"] * 16 + ["1"] + ["0"] * 47, ["4"] * 16 + ["a"] + ["0"] * 47
    scales = {"scale_a": ["40", "39", "38", "38"], "scale_b": ["30", "38", "38", "38"]}
    explanation = explained(NVFP4, a=a, b=b, c="00000000", **scales)
    [step] = explanation.steps
    assert [(group.name, group.total) for group in step.groups[:2]] == [("0-15", 48), ("16-31", Fraction(-1, 2))]
    rows = named(step.pictures[0])
    assert (rows["0-15"].value, rows["16-31"].value) == (48, Fraction(-9, 16))
    assert step.pictures[0].zeros == ("32-47", "48-63", "c")
    assert "  group 0-15: exact sum 2^6 - 2^4, scaled * 2 * 2^-1" in drawn(explanation)


def test_a_sum_rounded_up() -> None:
    """An f16 result of 1 + 2^-11 + 2^-20 rounds to 1 + 2^-10."""
    model = "ampere/mma/m16n8k8.f16.f16.f16.f16"
    explanation = explained(model, a=["3c00", "1000", "0400"], b=["3c00", "3c00", "2400"], c="0000")
    rounded = only(explanation).rounded
    assert rounded is not None
    assert (rounded.lowest, rounded.half, rounded.sticky, rounded.outcome) == (-10, True, True, "raised")
    lines = drawn(explanation)
    place = next(index for index, line in enumerate(lines) if line.endswith("^h" + "s" * 13))
    assert lines[place - 1].endswith("1000000000010000000010000")
    assert lines[place + 1].endswith("10000000001..............")


@pytest.mark.parametrize(
    ("changes", "row", "outcome"),
    [
        ("", {"a": ["7bff"] * 2, "b": ["7bff"] * 2, "c": "7f7fffff"}, "exact"),
        ("@output=f16", {"a": ["7bff"], "b": ["7bff"], "c": "00000000"}, "overflow"),
        ("@output=f16,overflow=saturate", {"a": ["7bff"], "b": ["7bff"], "c": "00000000"}, "overflow"),
        ("@flush_outputs=true", {"a": ["0000"], "b": ["0000"], "c": "00000001"}, "flushed"),
        ("", {"a": ["0000"], "b": ["0000"], "c": "00000001"}, "exact"),
        ("@output=f16", {"a": ["0001"], "b": ["0001"], "c": "00000000"}, "cut"),
    ],
)
def test_what_becomes_of_a_sum(changes: str, row: dict[str, Any], outcome: str) -> None:
    rounded = only(explained(VOLTA + changes, **row)).rounded
    assert rounded is not None
    assert rounded.outcome == outcome
    assert rounded.subnormal == (rounded.pattern == 1)


def test_the_floor_decides_the_maximum() -> None:
    picture = only(explained(f"{VOLTA}@exponent_floor=0", a=["0001"], b=["0001"], c="00000001"))
    assert (picture.maximum, picture.floor) == (0, 0)
    assert not any("maximum" in row.marks for row in picture.rows)
    assert any("(the exponent floor, above every term)" in line for line in drawn(explained(
        f"{VOLTA}@exponent_floor=0", a=["0001"], b=["0001"], c="00000001")))  # fmt: skip


def test_the_floor_decides_the_maximum_also_where_it_cuts_no_bit() -> None:
    picture = only(explained("hopper/wgmma/m64n8k32.f16.e5m2.e5m2", a=["01"], b=["01"], c="0000"))
    assert (picture.maximum, picture.floor) == (-21, -21)


def test_a_grid_names_exponents_that_its_terms_have() -> None:
    """Terms of 2.25, 16 and 36.6, with F of 24 and c with 26: the largest of 0 - 24, 4 - 24 and 5 - 26 is -20."""
    found = explained("rdna3/dot2/f32_f16", a=["3e00", "3c01"], b=["3e00", "4c03"], c="42123456")
    picture = only(found)
    assert picture.largest == (("1", 4, 24),)
    assert "  largest exponent less F: 4 - 24 (term 1); bits kept to 2^-20" in drawn(found)
    assert "max" not in " ".join(drawn(found))
    drawing = evaluation_drawing([found])
    assert not [shape for sheet in drawing.sheets for shape in shapes_of(sheet.root)
                if isinstance(shape, Text) and shape.text.startswith("max")]  # fmt: skip


def test_bits_kept_of_terms_that_keep_different_numbers() -> None:
    text = ("unit: x\nformats: {a: f16, b: f16, c: f32, d: f32}\nlength: 1\n"
            "steps: {d: 'round(fused(a[0] * b[0], c, F=[10, 24]), f32)'}\n")  # fmt: skip
    model = Model("x.yaml", parse_unit(text, "x.yaml"))
    found = explain(model, parse_row({"model": HOPPER, "a": ["3c00"], "b": ["3c00"], "c": "3f800000"}).operands)
    assert "  maximum exponent 0 (terms 0, c); 10 to 24 bits kept below it, to 2^-24" in drawn(found)


@pytest.mark.parametrize(
    ("row", "rule", "terms", "given"),
    [
        ({"a": ["3c00", "7e00"], "b": ["3c00", "3c00"], "c": "7f800000"}, "nan", ["1"], ["a1"]),
        ({"a": ["3c00"], "b": ["3c00"], "c": "7fc00000"}, "nan", ["c"], ["c"]),
        ({"a": ["7c00"], "b": ["8000"], "c": "7f800000"}, "inf*0", ["0"], ["a0", "b0"]),
        ({"a": ["7c00"], "b": ["3c00"], "c": "ff800000"}, "opposite", ["0", "c"], ["a0", "c"]),
        ({"a": ["3c00", "3c00"], "b": ["3c00", "fc00"], "c": "00000000"}, "infinity", ["1"], ["b1"]),
    ],
)
def test_special_values(row: dict[str, Any], rule: str, terms: list[str], given: list[str]) -> None:
    explanation = explained(VOLTA, **row)
    special = special_of(explanation)
    assert special.rule == rule
    assert [cause.term for cause in special.causes] == terms
    assert [name for cause in special.causes for name in cause.inputs] == given
    assert special.pattern == explanation.result


def test_a_product_that_overflows_and_the_steps_after_it() -> None:
    row = {"a": ["7f00"] + ["0"] * 8, "b": ["7f00"] + ["0"] * 8, "c": "00000000"}
    explanation = explained("cdna3/mfma/f32_32x32x8_bf16", **{**row, "a": ["7f00"], "b": ["7f00"]})
    assert [(cause.term, cause.kind) for cause in special_of(explanation).causes] == [("0", "too_large")]
    chained = explained(AMPERE, a=["7c00"], b=["3c00"], c="00000000")
    first, second = (step.pictures[0].special for step in chained.steps)
    assert first is not None
    assert second is not None
    assert [cause.inputs for cause in (*first.causes, *second.causes)] == [("a0",), ()]


@pytest.mark.parametrize(
    "step", ["signed(fused(a[0:2] * b[0:2], c, F=5, zeros=-3))", "fused(counting(a[0:2] * b[0:2]), counting(c), F=6)"]
)
def test_inputs_are_named_through_nodes_that_pass_special_values_on(step: str) -> None:
    head = "{unit: x, formats: {a: f16, b: f16, c: f32, d: f32}, length: 2, roundings: {r: 'round(f32, toward_zero)'}"
    model = Model("x", parse_unit(f"{head}, steps: {{d: 'r({step})'}}}}", "x.yaml"))
    special = special_of(explain(model, Operands((0x3C00, 0x7C00), (0x3C00, 0x3C00), 0xFF800000)))
    assert (special.rule, [(cause.term, cause.inputs) for cause in special.causes]) == (
        "opposite", [("1", ("a1",)), ("c", ("c",))],
    )  # fmt: skip


def test_pairwise_sums_are_rounded_one_by_one() -> None:
    """Equation 10 on CDNA2: 2^23 + ((-2^23 - 0.5) + (-0.25 - 0.125)), all rounded (Xie et al. 2026, section 5)."""
    explanation = explained(CDNA2, **EQUATION_10)
    first = {picture.name: picture for picture in explanation.steps[0].pictures if not picture.single}
    assert [exact_value(p.rounded.pattern, p.rounded.format) for p in first.values() if p.rounded] == [
        -(TWO**23), Fraction(-3, 8), -(TWO**23), 0,
    ]  # fmt: skip
    assert list(first) == ["0-1", "2-3", "0-3", ""]
    assert explanation.steps[1].passes


# -- every bit shown adds up


def sample() -> list[Model]:
    """One model of every arithmetic and set of formats, every unit that is an expression, a plan, and some models that
    no instruction has."""
    every = sorted(map(parse_reference, INSTRUCTIONS), key=lambda model: repr(model.member))
    chosen = [next(group) for _, group in groupby(every, key=lambda model: repr(model.member))]
    changes = [
        "carry_bits=0",
        "partials=normalised",
        "align_rounding=nearest_even",
        "align_rounding=up",
        "family=emulated-fp8",
    ]
    changes += [
        "fraction_bits=exact,partials=normalised",
        "product=rounded_f16",
        "product=normalised,align_rounding=down",
    ]
    chosen += [parse_reference(f"{base}@{change}") for base in (VOLTA, AMPERE) for change in changes]
    written_out = f"{AMPERE}@block_order=" + ":".join(f"{k}-{15 - k}" for k in range(8))
    plan = "plan:cublas/split-k@length=48"
    return chosen + [parse_reference(reference) for reference in (written_out, plan, *units())]


def operands_of(model: Model, rng: np.random.Generator) -> Iterator[Operands[int]]:
    for generate in (inputs.bits, inputs.normal):
        a, b, c = (side.tolist() for side in generate(model, 1, rng)[:3])
        low, high = (115, 140) if model.scale and model.scale.name == "ue8m0" else (0, 128)
        scales = [tuple(rng.integers(low, high, model.scales).tolist()) for _ in range(2)]
        yield Operands(tuple(a[0]), tuple(b[0]), c[0], tuple(scales))


def check(picture: Picture, model: Model) -> None:
    exact = sum((row.value for row in picture.rows), Fraction(0))
    if "sticky" in picture.total.marks:
        assert abs(exact - picture.total.value) < TWO**picture.total.last
    elif picture.unwrapped is not None:
        assert any(isinstance(node, FusedSum) and node.carry_bits is not None for node in walk(model.unit.result))
        assert picture.unwrapped.value == exact != picture.total.value
    else:
        assert picture.total.value == exact
    if picture.complement is not None:
        width, unit = len(picture.complement.bits), picture.complement.last
        number = int(picture.complement.bits, 2) - (int(picture.complement.bits[0]) << width)
        assert number * TWO**unit == picture.total.value
    if picture.unit is not None:
        assert all(row.last >= picture.unit for row in picture.rows if row.bits)
    rounded = picture.rounded
    if rounded is not None and rounded.outcome in ("exact", "cut", "raised"):
        step = TWO**rounded.lowest if rounded.outcome == "raised" else 0
        value = exact_value(rounded.pattern, rounded.format)
        assert abs(rounded.kept.value) + step == (0 if isinstance(value, str) else abs(value))
        if rounded.outcome == "exact":
            assert rounded.kept.value == (picture.cut or picture.total).value


@pytest.mark.parametrize("model", sample(), ids=lambda model: model.reference)
def test_every_bit_shown_adds_up(model: Model) -> None:
    for operands in operands_of(model, np.random.default_rng(3)):
        explanation = explain(model, operands)
        assert explanation.result == evaluate_row(model, operands)
        for picture in pictures(explanation):
            if picture.special is None:
                check(picture, model)
        for group in (group for step in explanation.steps for group in step.groups):
            scales = [explanation.inputs[name] for name in group.scales or ()]
            factors = [exact_value(scale.pattern, scale.format) for scale in scales]
            entered = Name("", Stage.TERM, group.name)
            value = explanation.facts[entered].real or Fraction(0)
            if "nan" not in factors:
                assert abs(value) == abs(group.total * factors[0] * factors[1])  # type: ignore[operator]
        assert max(map(len, drawn(explanation))) <= 100


ROUNDED_PRODUCTS = """
unit: my/rounded
formats: {a: f16, b: f16, c: f32, d: f32}
length: 4
roundings: {r: "round(f32, nearest_even)", h: "round(f16, toward_zero)"}
steps:
  d: r(fused(each(k in range(4), h(a[k] * b[k])), exact(c, a[0] * b[1]), F=24, sticky=true))
"""


def test_each_term_of_a_range_has_signals_of_its_own() -> None:
    """(2 - 2^-10)^2 and (1 + 2^-10)^2 are cut to f16, 2^-24 is not; a factor of another place is not a product k."""
    model = Model("x.yaml", parse_unit(ROUNDED_PRODUCTS, "x"))
    a, b = (0x3FFF, 0x3C01, 0x3C00, 0), (0x3FFF, 0x3C01, 0x0001, 0)
    explanation = explain(model, Operands(a, b, 0x3F800001))
    facts = by_text(explanation)
    assert [exact_value(facts[f"round[{k}].result"].value, FORMATS["f16"]) for k in range(4)] == [
        4 - TWO**-8, 1 + TWO**-9, TWO**-24, 0,
    ]  # fmt: skip
    singles = {picture.name: picture for picture in pictures(explanation) if picture.single}
    assert [(name, picture.plain) for name, picture in singles.items()] == [
        ("0", False), ("1", False), ("2", True), ("3", True),
    ]  # fmt: skip
    lines = drawn(explanation)
    assert "  products 2-3: exact in f16" in lines
    assert "  0: rounded to f16" in lines
    [other] = [row for row in explanation.products if not row.name.isdigit()]
    assert other.value == (2 - TWO**-10) * (1 + TWO**-10)
    [special] = [p.special for p in pictures(explain(model, Operands((0x7C00, 0, 0, 0), b, 0))) if p.special][1:]
    assert (special.rule, [(c.term, c.inputs) for c in special.causes]) == (
        "infinity",
        [("0", ()), ("product2", ("a0",))],
    )


def test_steps_of_a_unit_file() -> None:
    """AMX: an even chain that overflows passes its infinity on; zeros that change their sign do not pass."""
    amx = "x86/amx/tdpbf16ps"
    explanation = explained(amx, a=["7f00", "0000"] + ["0000"] * 30, b=["7f00", "0000"] + ["0000"] * 30, c="3f800000")
    assert [step.passes for step in explanation.steps] == [False, *[True] * 15, *[True] * 16, False]
    lines = drawn(explanation)
    assert "even[1] to even[15]: zero products; what comes in passes unchanged: 7f800000  inf" in lines
    assert "odd[0] to odd[15]: zero products; what comes in passes unchanged: 00000000  0" in lines
    assert "  sum: an infinity decides: term even" in lines
    fma = explained("ieee/fma/f32@length=2", a=["0", "3f800000"], b=["0", "3f800000"], c="80000000")
    assert [step.passes for step in fma.steps] == [False, False]  # -0 + 0 is +0


def test_a_gated_product_is_listed_as_the_sum_takes_it() -> None:
    """0 * inf is a zero behind its gate, and NaN without one."""
    for product, special in (("gate(a[0] * b[0], -0)", False), ("a[0] * b[0]", True)):
        text = f"""
            unit: gated
            formats: {{a: f16, b: f16, c: f32, d: f32}}
            length: 1
            roundings: {{r: "round(f32, nearest_even)"}}
            steps: {{d: "r(fused({product}, c, F=24))"}}
        """
        model = Model("gated.yaml", parse_unit(dedent(text), "gated.yaml"))
        explanation = explain(model, Operands((0x0000,), (0x7C00,), 0x3F800000))
        (product_line,) = explanation.products
        assert product_line.marks == ({"nan"} if special else frozenset())
        assert any("nan" in line for line in drawn(explanation)) == special


def test_the_term_facts_are_those_of_the_products() -> None:
    facts = by_text(explained(AMPERE, **EQUATION_10))
    for k in range(4):
        assert facts[f"block0.term[{k}]"].real == facts[f"product[{k}].significand"].real
        assert facts[f"block0.term[{k}].sign"].value == facts[f"product[{k}].sign"].value
    assert facts["block0.max_exponent"].real == 23
    assert facts["block0.sum"].real == Fraction(-1, 2)


def test_a_picture_too_wide_takes_panels_and_loses_no_column() -> None:
    explanation = explained("ieee/fma/f64", a=["3ff123456789abcd"], b=["3ff123456789abcd"], c="3ca3333333333333")
    picture = only(explanation)
    grid = grid_of(picture, picture.rows, 40)
    assert all(sum(3 if column == GAP else 1 for column in panel) <= 40 for panel in grid.panels)
    places = [column for panel in grid.panels for column in panel if column not in (BAR, GAP)]
    assert places == list(range(0, picture.total.last - 1, -1))


def test_a_rectified_number_says_what_becomes_of_it() -> None:
    text = """
        unit: rectified
        formats: {a: f16, b: f16, c: f32, d: f16}
        length: 1
        roundings: {r: "round(f32, nearest_even)", h: "round(f16, nearest_even)"}
        steps: {d: "h(relu(r(exact(a[0] * b[0], c)), zero=keep))"}
    """
    model = Model("rectified.yaml", parse_unit(dedent(text), "rectified.yaml"))
    for c, line in (
        (0xC0A00000, "  max(-5, 0): 0"),
        (0x7FC00000, "  max(nan, 0): a NaN decides: term max(nan, 0)"),
        (0xFF800000, "  max(-inf, 0): 0"),
        (0x40A00000, "  max(x, 0): 5, exact in f16"),
    ):
        explanation = explain(model, Operands((0x0000,), (0x3C00,), c))
        assert line in drawn(explanation)
    assert dict(arithmetic(model.unit))["Activation"] == "max(x, 0); a NaN is kept, -0 is kept"
    changes = {f"{name}={value}" for name, value, _ in neighbours(model)}
    assert {"relu_zero=positive", "relu_zero=signed", "relu_nan=zero", "relu=false"} <= changes


# -- a rounding whose result is rounded again

VIA_DOUBLE = """unit: via-double
formats: {a: f32, b: f32, c: f32, d: f32}
length: 1
roundings: {w: "round(f64, nearest_even)", r: "round(f32, nearest_even)"}
steps: {d: "r(w(exact(a[0] * b[0], c)))"}
"""
CAST = """unit: cast
formats: {a: f32, b: f32, c: f64, d: bf16}
length: 1
ignored: [0]
roundings: {w: "round(f32, nearest_even)", r: "round(bf16, nearest_even)"}
steps: {d: "r(w(c))"}
"""
STORED = """plan: stored-twice
formats: {a: f16, b: f16, c: f16, d: bf16}
units: {mma: ampere/mma/m16n8k16.f32.f16.f16.f32}
roundings: {h: "round(f16, nearest_even)", o: "round(bf16, nearest_even)"}
steps: {d: "o(h(sum(mma, +0)))"}
"""
#: (a + 2^-23)(1 + 3 * 2^-23) + 2^-77: the f64 nearest to it lies half way between two numbers of f32
HALF_WAY = {"a": ["3f800001"], "b": ["3f800001"], "c": "19000000"}
TWICE: dict[str, Any] = {"a": ["3c01"], "b": ["3c03"], "c": "0000"}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    texts = {"via": VIA_DOUBLE, "cast": CAST, "stored": STORED}
    for name, text in texts.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    named = {name: str(tmp_path / f"{name}.yaml") for name in texts}
    return {**named, "stored": f"plan:{named['stored']}@length=2"}


def roundings(explanation: Explanation) -> list[tuple[str, Fraction | str]]:
    """Each rounding drawn: its format, and its result there."""
    found = [picture.rounded for picture in pictures(explanation) if picture.rounded]
    return [(rounded.format.name, exact_value(rounded.pattern, rounded.format)) for rounded in found]


def test_every_rounding_is_drawn_with_its_format(files: dict[str, str]) -> None:
    """In units and in plans; a cast shows c itself, then c in f32."""
    value = 1 + TWO**-8 + TWO**-19 + TWO**-20  # (1 + 2^-10)(1 + 3 * 2^-10)
    product = (1 + TWO**-10) * (1 + 3 * TWO**-10)
    stored = explained(files["stored"], **TWICE)
    assert value == product
    assert roundings(stored)[-3:] == [("f32", product), ("f16", 1 + TWO**-8), ("bf16", 1)]
    cast = explained(files["cast"], a=["00000000"], b=["00000000"], c="3ff0100000000001")
    assert roundings(cast) == [("f32", 1 + TWO**-8), ("bf16", 1)]
    first, second = pictures(cast)
    assert [(row.name, row.value) for row in first.rows] == [("c", 1 + TWO**-8 + TWO**-52)]
    assert [(row.name, row.value) for row in second.rows] == [("c in f32", 1 + TWO**-8)]
    lines = drawn(stored)
    assert [line.strip() for line in lines if "rounded to" in line] == [
        "tail: rounded to f16",
        "tail in f16: rounded to bf16",
    ]
    via = explained(files["via"], **HALF_WAY)
    assert [name for name, _ in roundings(via)] == ["f64", "f32"]
    assert "  sum in f64: rounded to f32" in drawn(via)


def test_drawings_and_json_have_every_rounding_in_its_format(files: dict[str, str], tmp_path: Path) -> None:
    picture = tmp_path / "x.svg"
    given = json.dumps(TWICE)
    run("explain", files["stored"], given, "--svg", str(picture))
    text = picture.read_text()
    assert "tail: rounded to f16" in text
    assert "tail in f16: rounded to bf16" in text
    document = json.loads(run("explain", files["stored"], given, "--json").stdout)
    signals = {one["name"]: one for one in document["evaluations"][0]["signals"] if one["kind"] == "pattern"}
    results = {one["format"]: one["real"] for name, one in signals.items() if name.endswith("result")}
    assert results == {"f32": "1052675*2^-20", "f16": "1 + 2^-8", "bf16": "1"}


def test_cuts_of_a_cut_sum_are_drawn_each() -> None:
    text = VIA_DOUBLE.replace("w(exact(a[0] * b[0], c))", "cut(cut(exact(a[0] * b[0], c), 20, toward_zero), 12, up)")
    explanation = explain(Model("cuts", parse_unit(text, "cuts.yaml")), Operands((0x3FAAAAAA,), (0x3F800001,), 0))
    assert [len(picture.cut.bits) for picture in pictures(explanation) if picture.cut] == [20, 12]


def test_the_first_difference_is_one_of_values(files: dict[str, str]) -> None:
    """A rounding that one side alone has, and that changes its number; the sums before it are one, whatever they are
    called."""
    for one, other, which in ((files["via"], "ieee/fma/f32", "first"), ("ieee/fma/f32", files["via"], "second")):
        lines = run("explain", one, json.dumps(HALF_WAY), "--against", other).stdout.splitlines()
        assert lines[-1].startswith(f"first divergence: rounding: only the {which} has round.rounded (f64 ")
        assert sum("<-- only here" in line for line in lines) == 1
    same = {"a": ["3f800000"], "b": ["3f800001"], "c": "00000000"}
    lines = run("explain", files["via"], json.dumps(same), "--against", "ieee/fma/f32").stdout.splitlines()
    assert lines[-1] == "first divergence: none: every signal that counts is the same"


SEGMENTS = """unit: parts
formats: {a: bf16, b: bf16, c: bf16, d: bf16}
length: 1
roundings: {r: "round(bf16, nearest_even)"}
steps:
  p0: r(exact(c, segment(a[0], 0, 5) * segment(b[0], 0, 7)))
  d: r(exact(p0, segment(a[0], 5, 8) * segment(b[0], 0, 7)))
"""


def test_the_factors_of_parts_of_significands_are_shown(tmp_path: Path) -> None:
    file = tmp_path / "parts.yaml"
    file.write_text(SEGMENTS)
    model = parse_reference(str(file))
    operands = Operands((0x3FA9,), (0x40FF,), 0)
    lines = drawn(explain(model, operands))
    assert any("a0[0:5] 1 + 2^-2 + 2^-4  b0[0:7] 2^3 - 2^-4" in line for line in lines)
    assert any("a0[5:8] 2^-7" in line for line in lines)
    against = ["explain", str(file), '{"a": ["3fa9"], "b": ["40ff"], "c": "0000"}', "--against", "ieee/fma/bf16"]
    message = CliRunner().invoke(main, against).stdout.splitlines()[-1]
    assert message == "first divergence: terms: p0.term[product1] 2667*2^-8 | term[0] 43095*2^-12"


TAILS = """plan: two-tails
formats: {a: f16, b: f16, c: f32, d: f32}
units: {u: ampere/mma/m16n8k8.f32.f16.f16.f32, f: ieee/fma/f32.f16.f16.f32, v: volta/mma/m8n8k4.f32.f16.f16.f32}
roundings: {r: "round(f32, nearest_even)"}
steps:
  d: r(exact(sum(chain(u, tail=f), +0), sum(chain(v, tail=f), c)))
"""


def test_parts_of_a_plan_that_have_one_name_are_drawn_each(tmp_path: Path) -> None:
    """Two sums of the same products, one of them with c: their tails are not one signal."""
    (tmp_path / "tails.yaml").write_text(TAILS)
    explanation = explain(
        parse_reference(f"plan:{tmp_path / 'tails.yaml'}@length=9"), Operands((0x3C01,) * 9, (0x3555,) * 9, 0x3F800000)
    )
    lines = [line.strip() for line in drawn(explanation)]
    alone = "tail = 8 + round: 1399125*2^-22 + 1399125*2^-19 = 12592125*2^-22, exact in f32"
    assert [lines.count(line) for line in (alone, "tail2: exact sum of 8 + tile")] == [1, 1]
    rows = [(row.name, row.value) for step in explanation.steps for one in step.pictures for row in one.rows]
    (one, first), (two, second) = [row for row in rows if row[0].startswith("tail")]
    assert (one, two, 0 < second - first < 1) == ("tail", "tail2", True)


def test_a_sum_that_rounds_its_terms_rounds_them_off(tmp_path: Path) -> None:
    """The legend says what the lines' notes say; a sum that truncates beside it has a legend of its own."""
    unit = tmp_path / "u.yaml"
    for how, legends in (("nearest_even", ["rounded off"]), ("toward_zero", ["truncated"])):
        unit.write_text(
            "unit: u\nformats: {a: f16, b: f16, c: f32, d: f32}\nlength: 2\n"
            'roundings: {r: "round(f32, toward_zero)"}\n'
            f'steps: {{d: "r(fused(a[0:2] * b[0:2], c, F=10, rounding={how}))"}}\n'
        )
        lines = drawn(explained(str(unit), a=["3c00", "0fff"], b=["3c00", "3c00"], c="3f800000"))
        assert [line.split("right of |: ")[1] for line in lines if "right of |" in line] == legends


def drawn_unit(step: str, row: dict[str, Any], formats: str = "a: f16, b: f16, c: f32, d: f32") -> str:
    """The drawing of a unit of two products with the rounding r."""
    head = f"{{unit: x, formats: {{{formats}}}, length: 2, roundings: {{r: 'round(f32, down)'}}"
    block = ", scale_block: 2" if "scale" in formats else ""
    model = Model("x", parse_unit(f"{head}{block}, steps: {{d: 'r({step})'}}}}", "x.yaml"))
    return "\n".join(drawn(explain(model, parse_row(row, instead=model).operands)))


def test_a_grid_that_rounds_its_terms_rounds_them_off() -> None:
    said = drawn_unit(
        "grid(a[0:2] * b[0:2], c, F=[0, 0], rounding=up)", {"a": ["3c00"], "b": ["3e00"], "c": "00000000"}
    )
    assert "right of |: rounded off" in said


def test_a_quotient_whose_bits_do_not_end_has_a_sticky_bit() -> None:
    for divisor, sticky in (("40400000", True), ("40800000", False)):
        said = drawn_unit("quotient(r(exact(a[0:2] * b[0:2])), c)", {"a": ["3c00"], "b": ["3c00"], "c": divisor})
        assert ("lowest bit: sticky" in said) == sticky


SCALED = "a: f16, b: f16, c: f32, d: f32, scale: ue4m3_ieee"


def test_a_scale_factor_that_is_no_input_is_said_by_its_value() -> None:
    row = {"a": ["3c00", "3c00"], "b": ["3c00", "4000"], "c": "00000000", "scale_a": ["40"], "scale_b": ["38"]}
    step = "exact(scale(exact(a[0:2] * b[0:2]), scale_a[0], 2**-3), c)"
    assert "group 0-1: exact sum 3, scaled * 2 * 2^-3" in drawn_unit(step, row, SCALED)


def test_a_scaled_sum_that_is_cut_is_called_no_exact_sum() -> None:
    row = {"a": ["3c00", "3c00"], "b": ["3c00", "3e00"], "c": "00000000", "scale_a": ["40"], "scale_b": ["38"]}
    said = drawn_unit("exact(scale(fused(a[0:2] * b[0:2], F=0), scale_a[0], 2**-3), c)", row, SCALED)
    assert "group" not in said
    assert "0 bits kept below it" in said


def test_zero_times_an_infinite_factor_is_a_nan_and_names_it() -> None:
    row = {"a": ["0000", "0000"], "b": ["3c00", "0000"], "c": "00000000", "scale_a": ["78"], "scale_b": ["38"]}
    step = "exact(scale(exact(a[0:2] * b[0:2]), scale_a[0], 2**-3), c)"
    assert "infinity times zero is a NaN: term 0-1 (scale_a0)" in drawn_unit(step, row, SCALED)
    row["a"] = ["3c00", "0000"]
    assert "an infinity decides: term 0-1 (scale_a0)" in drawn_unit(step, row, SCALED)


def test_a_rounded_number_that_is_rounded_again_is_one_step() -> None:
    """It was formed for each number of bits that its readers keep, drawn twice, and counted twice among the losses."""
    text = """unit: x
formats: {a: f16, b: f16, c: f32, d: f32}
length: 1
roundings: {r: "round(f32, nearest_even)", h: "round(f16, nearest_even)"}
steps:
  p: "h(fused(a[0] * b[0], c, F=3))"
  q: "h(exact(p, c))"
  d: "r(exact(p, relu(h(p)), q))"
"""
    model, operands = Model("x", parse_unit(text, "x.yaml")), Operands((0x3E01,), (0x3E00,), 0x3F801234)
    assert sum(line.startswith("  p: maximum exponent") for line in drawn(explain(model, operands))) == 1
    assert [step.step for step in losses(model, operands)[0]] == ["p", "round", "q", "d"]


@pytest.mark.parametrize("name", ["e4m3fnuz", "binary6p3se", "e2m1_ieee", "e4m3", "int4"])
def test_subnormal_numbers_alone_are_read_as_zero(name: str) -> None:
    """No zero, NaN or integer is."""
    text = f"unit: flushed\nformats: {{a: {name}, b: e4m3, c: none, d: f32}}\nlength: 1\ninputs: {{subnormals: zero}}\n"
    unit = parse_unit(text + 'steps: {d: "round(exact(a[0] * b[0]), f32, nearest_even)"}\n', "flushed.yaml")
    model, least = Model("flushed", unit), Fraction(2) ** unit.a.emin
    for pattern in range(1 << unit.a.width):
        value = exact_value(pattern, unit.a)
        small = isinstance(value, Fraction) and 0 < abs(value) < least and not unit.a.is_integer
        assert explain(model, Operands((pattern,), (0x38,), 0)).inputs["a0"].flushed == small, (pattern, value)
