"""Block formats: scale factors found from the elements, against exact rationals and against f32 arithmetic by NumPy,
which share no code with the plans."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from mmaprobe.queries.plans.equal import prove_plans
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import InputError, ParameterError
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.identity import identity_text
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.lowering import unit_of_plan
from mmaprobe.smtmodel.plans.matrices import Job, Patterns
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.plans.words import LargestOf, SharedOf
from mmaprobe.smtmodel.tables.reference import parse_plan_reference, parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text
from tests.oracles import node_oracle
from tests.plans import plan_oracle
from tests.plans.carriers import agree_in_terms

pytestmark = pytest.mark.compilers

Bits = NDArray[Any]
Floats = NDArray[np.float32]
SHIPPED = ("mx/fp8", "mx/fp6", "mx/fp4", "transformerengine/mxfp8", "transformerengine/nvfp4")

UNIT = """
unit: tiny/mma/block
formats: {a: e2m1, b: e2m1, c: f32, d: f32, scale: ue8m0}
length: 4
scale_block: 2
roundings:
  r: round(f32, toward_zero)
steps:
  d: r(exact(each(i in range(2), scale(exact(a[2*i:2*i+2] * b[2*i:2*i+2]), scale_a[i], scale_b[i])), c))
"""
TINY = """
plan: tiny-blocks
formats: {a: e2m3, b: e3m2, c: f32, d: f32}
units:
  mma: mma.yaml
roundings:
  e: round(ue8m0, toward_zero)
  u: round(ue8m0, up)
  q: round(e2m1, nearest_even, overflow=saturate)
  r: round(f32, nearest_even)
words:
  factor_a: e(product(2**-2, largest(a, block=2)))
  a1: q(quotient(a, factor_a))
  block_a: block_scaled(a1, factor_a)
  factor_b: u(r(quotient(largest(b, block=2), number(0x40c00000, f32))))
  b1: q(quotient(b, factor_b))
  block_b: block_scaled(b1, factor_b)
steps:
  d: r(product(r(product(sum(mma(block_a, block_b), c), largest(a))), largest(b)))
"""


def model_of(reference: str) -> Model:
    return Model("mma.yaml", parse_unit(UNIT, "mma.yaml")) if reference == "mma.yaml" else parse_reference(reference)


def tiny(*changes: str) -> Plan:
    """The plan with texts in the place of others, each after the one that it replaces."""
    text = TINY
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text
        text = text.replace(old, new) if old else text
    return parse_plan(text, "tiny.yaml", model_of, whole=True)


@cache
def shipped(name: str) -> Plan:
    return parse_plan_reference(f"plan:{name}")


def inputs(plan: Plan, length: int, seed: int) -> tuple[Bits, Bits]:
    """Rows and columns of numbers of many sizes; the last but one of any patterns, the last one mostly of zeros."""
    random = np.random.default_rng(seed)

    def side(fmt: int) -> Bits:
        numbers = random.standard_normal((4, length)) * np.exp2(random.integers(-12, 12, (4, length)))
        found = numbers.astype(np.float32).view(np.uint32) >> np.uint32(32 - fmt)
        found[2] = random.integers(0, 1 << fmt, length)
        found[3, : length - 3] = 0
        return found.astype(np.uint32 if fmt > 16 else np.uint16)

    return side(plan.a.width), np.ascontiguousarray(side(plan.b.width).T)


def agree(plan: Plan, a: Bits, b: Bits, d: Bits) -> None:
    wanted = plan_oracle.matmul(plan, a.tolist(), b.tolist(), np.zeros(d.shape, int).tolist())
    for found, own in zip(d.ravel().tolist(), wanted, strict=True):
        assert found == own or (own == node_oracle.ANY_NAN and exact_value(found, plan.d) == "nan")


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_plans_are_as_exact_rationals_say(name: str) -> None:
    """Whole blocks, parts of one, several tiles; by NumPy and by generated C."""
    plan = shipped(name)
    for length in (5, 16, 70):
        a, b = inputs(plan, length, length)
        d = simulate(a, b, None, plan, engine="numpy")
        agree(plan, a, b, d)
        assert np.array_equal(simulate(a, b, None, plan, engine="compiled"), d)


# -- what libraries compute, in f32 by NumPy


def powers_down(largest: Floats, places: int) -> Bits:
    """The rule of the specification by the exponent field, as torchao has it."""
    field = (largest.view(np.uint32) >> np.uint32(23)).astype(np.int64) - places
    return np.clip(field, 0, 254).astype(np.uint8)


def powers_up(largest: Floats, inverse: np.float32) -> Bits:
    """TransformerEngine's `float_to_e8m0` of the largest magnitude times 1/448."""
    bits = (largest * inverse).view(np.uint32).astype(np.int64)
    field, rest = bits >> 23, bits & 0x7FFFFF
    up = (rest > 0) & (field != 254) & ~((field == 0) & (rest <= 0x400000))
    return (field + up).astype(np.uint8)


def cast(numbers: Floats, kind: Any, most: float) -> Bits:
    with np.errstate(over="ignore"):
        found: Bits = np.clip(numbers, -most, most).astype(kind).view(np.uint8)
    return found


@pytest.mark.parametrize(
    ("name", "kind", "most", "places"),
    [("mx/fp8", ml_dtypes.float8_e4m3fn, 448, 8), ("mx/fp6", ml_dtypes.float6_e2m3fn, 7.5, 2),
     ("mx/fp4", ml_dtypes.float4_e2m1fn, 6, 2), ("transformerengine/mxfp8", ml_dtypes.float8_e4m3fn, 448, None)],
)  # fmt: skip
def test_elements_and_factors_of_mx(name: str, kind: Any, most: float, places: int | None) -> None:
    plan, random = shipped(name), np.random.default_rng(2)
    values = random.standard_normal((64, 96)) * np.exp2(random.integers(-90, 90, (64, 96)))
    values[:, 64:] *= np.exp2(random.integers(-45, 45, (64, 1)))
    values[0], values[1, 0] = 0, 1e-44
    a = np.clip(values, -1e38, 1e38).astype(np.float32).view(np.uint32)
    if plan.a.width == 16:
        a &= np.uint32(0xFFFF0000)
    numbers = a.view(np.float32).reshape(64, 3, 32)
    patterns = (a >> np.uint32(32 - plan.a.width)).astype(np.uint32 if plan.a.width > 16 else np.uint16)
    largest = np.abs(numbers).max(axis=2)
    wanted = powers_up(largest, np.float32(1) / np.float32(448)) if places is None else powers_down(largest, places)
    job = Job(plan, patterns, np.zeros((96, 1), patterns.dtype))
    assert np.array_equal(job.scales["scale_a"][:, :3], wanted)  # beyond these are those of missing products
    (word,) = plan.words_read(0)
    assert word is not None
    with np.errstate(over="ignore"):
        scaled = numbers * np.exp2(127.0 - wanted).astype(np.float32)[:, :, None]
    elements = job.word_matrix(word, Patterns(patterns, plan.a))
    assert np.array_equal(elements.reshape(64, 3, 32), cast(scaled, kind, most))


def test_elements_and_factors_of_nvfp4() -> None:
    """The arithmetic of quantize_transpose_nvfp4.cuh, operation by operation."""
    plan, random = shipped("transformerengine/nvfp4"), np.random.default_rng(3)
    values = random.standard_normal((64, 64)) * np.exp2(random.integers(-20, 20, (64, 64)))
    values[0] = 0
    numbers = values.astype(ml_dtypes.bfloat16).astype(np.float32)
    patterns = (numbers.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    one, most = np.float32(1), np.finfo(np.float32).max
    with np.errstate(all="ignore"):
        whole = np.abs(numbers).max(axis=1)
        encode = np.where(whole == 0, one, np.minimum(np.float32(448) * np.float32(6) / whole, most))
        blocks = numbers.reshape(64, 4, 16)
        each = np.abs(blocks).max(axis=2) * (encode * (one / np.float32(6)))[:, None]
        factors = np.minimum(each, np.float32(448)).astype(ml_dtypes.float8_e4m3fn)
        inverse = np.minimum(one / (factors.astype(np.float32) * (one / encode)[:, None]), most)
        elements = cast(np.nan_to_num(blocks * inverse[:, :, None]), ml_dtypes.float4_e2m1fn, 6)
    job = Job(plan, patterns, np.zeros((64, 1), np.uint16))
    assert np.array_equal(job.scales["scale_a"], factors.view(np.uint8))
    (word,) = plan.words_read(0)
    assert word is not None
    assert np.array_equal(job.word_matrix(word, Patterns(patterns, plan.a)).reshape(64, 4, 16), elements)


# -- a tiny plan


def test_a_tiny_plan_over_every_carrier() -> None:
    """Five products, the last one alone in its tile: matrices, the unit at this K, terms, steps, and exact
    rationals."""
    plan, random = tiny(), np.random.default_rng(4)
    a, b = (random.integers(0, 64, (40, 5)).astype(np.uint8) for _ in "ab")
    a[0], b[1, :2] = 0, 0
    wide = a.astype(np.uint64), b.astype(np.uint64), np.zeros(40, dtype=np.uint64)
    wanted = agree_in_terms(plan, model_of, *wide)
    for engine in ("numpy", "compiled"):
        every = simulate(a, np.ascontiguousarray(b.T), None, plan, engine=engine)
        assert np.array_equal(every.diagonal(), wanted)
    agree(plan, a[:8], b[:8].T, simulate(a[:8], np.ascontiguousarray(b[:8].T), None, plan, engine="numpy"))


def test_loops_over_tiles() -> None:
    """Of three tiles and more the unit at a K has a loop, in which blocks are found."""
    plan, random = tiny(), np.random.default_rng(5)
    a, b = (random.integers(0, 64, (30, 18)).astype(np.uint8) for _ in "ab")
    unit = unit_of_plan(plan, 18)
    assert "range" in unit_text(unit)
    found = evaluate_batch(Model("tiny", unit), a.astype(np.uint64), b.astype(np.uint64), np.zeros(30, dtype=np.uint64))
    assert np.array_equal(simulate(a, np.ascontiguousarray(b.T), None, plan).diagonal(), found)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("e(product(2**-2, largest(a, block=2)))", "u(product(2**-2, largest(a, block=2)))"),
        ("2**-2", "2**-1"),
        ("q(quotient(a, factor_a))", "q(a)"),
        ("round(e2m1, nearest_even, overflow=saturate)", "round(e2m1, toward_zero, overflow=saturate)"),
        ("number(0x40c00000, f32)", "number(0x40800000, f32)"),
        ("largest(a))), largest(b)))", "largest(a))), largest(a)))"),
    ],
)
def test_plans_nearby_differ(old: str, new: str) -> None:
    random = np.random.default_rng(6)
    a, b = random.integers(0, 64, (40, 4)).astype(np.uint8), random.integers(0, 64, (4, 40)).astype(np.uint8)
    one, other = (simulate(a, b, None, plan, engine="numpy") for plan in (tiny(), tiny(old, new)))
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("largest(a, block=2)", "largest(a, block=0)", "a block of 0 elements is impossible"),
        ("largest(a, block=2)", "largest(a, block=4)", "takes a factor for each 2 products"),
        ("largest(a, block=2)", "largest(b, block=2)", "a word is made of one element"),
        ("largest(a, block=2)", "largest(a)", "the factor of a block must be computed"),
        ("largest(a, block=2)", "largest(c, block=2)", "unknown value 'c'"),
        ("largest(a, block=2)", "largest(a, blocks=2)", "unknown parameter 'blocks'"),
        ("e: round(ue8m0, toward_zero)", "e: round(f32, toward_zero)", "scale factors in ue8m0, not in f32"),
        ("e(product(2**-2, largest(a, block=2)))", "e(product(a, largest(a, block=2)))", "no number below zero"),
        ("mma(block_a, block_b)", "mma(block_a, b1)", "the same pair of factors, or none"),
        ("mma(block_a, block_b)", "mma(a1, b1)", "no unit reads this word|scale factors"),
        ("largest(a))), largest(b)))", "largest(a))), largest(b, block=2)))", "not those of a block"),
        ("block_scaled(a1, factor_a)", "block_scaled(a1, a)", "a word and its factor are rounded each"),
    ],
)
def test_mistakes(old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tiny(old, new)


def test_tiles_that_begin_within_a_block() -> None:
    """Of lanes that take one product each a tile has no whole blocks."""
    plan = tiny("sum(mma(block_a, block_b), c)", "sum(interleave(2, mma(block_a, block_b), r), c)")
    a = np.ones((1, 16), np.uint8)
    with pytest.raises(ParameterError, match="tile does not begin where 2 products share"):
        simulate(a, a.T, None, plan, engine="numpy")


# -- statements, whose truth all inputs say


SMALL = TINY.replace("a: e2m3, b: e3m2, c: f32", "a: e2m1, b: e2m1, c: none").replace("block_b), c)", "block_b), +0)")
CHANGES = (
    ("", ""),
    ("e(product(2**-2, largest(a, block=2)))", "u(product(2**-2, largest(a, block=2)))"),
    ("e(product(2**-2, largest(a, block=2)))", "e(quotient(largest(a, block=2), 2**2))"),
    ("q(quotient(a, factor_a))", "q(r(quotient(a, factor_a)))"),
    ("q(quotient(a, factor_a))", "q(r(product(a, r(quotient(2**0, factor_a)))))"),
    ("2**-2", "2**-1"),
    ("largest(a))), largest(b)))", "largest(b))), largest(a)))"),
    ("largest(a))), largest(b)))", "largest(a))), largest(a)))"),
    ("number(0x40c00000, f32)", "number(0x40e00000, f32)"),
)


def test_verdicts_are_those_of_all_inputs() -> None:
    """Each change of a plan against the plan, for two products."""
    plans = [parse_plan(SMALL.replace(*change) if change[0] else SMALL, "small.yaml", model_of) for change in CHANGES]
    rows = np.array(list(product(range(16), repeat=2)), dtype=np.uint8)
    results = [simulate(rows, np.ascontiguousarray(rows.T), None, plan, engine="numpy") for plan in plans]
    seen = set()
    for one, other in [(0, n) for n in range(1, len(plans))]:
        alike = np.array_equal(results[one], results[other])
        verdict = prove_plans(plans[one], plans[other], 2, Options(timeout=20)).verdict
        assert verdict == ("equal" if alike else "different"), (CHANGES[one], CHANGES[other])
        seen.add(alike)
    assert seen == {True, False}


def test_published_digests_stay() -> None:
    """A power that a whole row shares has the text that it had before there were blocks."""
    assert "block" not in identity_text(SharedOf("a", FORMATS["f64"]))
    assert "block=16" in identity_text(LargestOf("a", FORMATS["f64"], block=16))
    with pytest.raises(ParameterError, match="shared by all elements of a row"):
        SharedOf("a", FORMATS["f64"], block=2)


# -- formats without zero and sign


def test_numbers_below_the_smallest_power() -> None:
    """In a format without subnormal numbers whatever is less than the smallest one becomes it; the rest as by the
    oracle."""
    for mode in ("toward_zero", "up", "nearest_away", "down"):
        unit = parse_unit(
            "unit: x\nformats: {a: f32, b: f32, c: none, d: f32}\nlength: 1\nsteps:\n"
            f"  d: round(product(number(0x3f800000, f32), round(largest(a[0:1]), ue8m0, {mode})), f32)\n",
            "x.yaml",
        )
        bits = [*range(0, 1 << 23, 99991), 0x7F7FFFFF, 0x7F000000, 0x7F000001, 0x400000, 0x400001, 0x3FFFFF, 1]
        given = np.array(bits, dtype=np.uint64)[:, None]
        found = evaluate_batch(Model("x", unit), given, given, np.zeros(len(bits), dtype=np.uint64))
        for one, d in zip(bits, found.tolist(), strict=True):
            wanted = node_oracle.evaluate(unit, [one], [one], 0)
            assert d == wanted or (wanted == node_oracle.ANY_NAN and exact_value(d, FORMATS["f32"]) == "nan")
    assert found[0] == 0x400000


def test_quotients_of_every_pair() -> None:
    """All pairs of numbers of e3m2 and e4m3, rounded to formats with more and with fewer bits."""
    for fmt, target, mode in product(("e3m2", "e4m3"), ("e2m1", "f16"), ("nearest_even", "up", "to_odd")):
        width = FORMATS[fmt].width
        unit = parse_unit(
            f"unit: x\nformats: {{a: {fmt}, b: {fmt}, c: none, d: {target}}}\nlength: 1\nsteps:\n"
            f"  d: round(quotient(a[0], b[0]), {target}, {mode})\n",
            "x.yaml",
        )
        step = 1 if width < 8 else 5
        pairs = np.array(list(product(range(0, 1 << width, step), repeat=2)), dtype=np.uint64)
        found = evaluate_batch(Model("x", unit), pairs[:, :1], pairs[:, 1:], np.zeros(len(pairs), dtype=np.uint64))
        for (x, y), d in zip(pairs.tolist(), found.tolist(), strict=True):
            wanted = node_oracle.evaluate(unit, [x], [y], 0)
            assert d == wanted or (wanted == node_oracle.ANY_NAN and exact_value(d, FORMATS[target]) in ("nan", 0))


def test_a_quotient_is_rounded_at_once() -> None:
    unit = parse_unit(
        "unit: x\nformats: {a: f32, b: f32, c: f32, d: f32}\nlength: 1\nsteps:\n"
        "  d: round(exact(quotient(a[0], b[0]), c), f32)\n",
        "x.yaml",
    )
    one = np.array([[0x3F800000]], dtype=np.uint64)
    with pytest.raises(ParameterError, match="the bits of a quotient do not end"):
        evaluate_batch(Model("x", unit), one, one, np.zeros(1, dtype=np.uint64))
