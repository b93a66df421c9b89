"""Rules of rewriting: each with its lemmas proved, refused where a lemma fails, and no rule that changes a result."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from mmaprobe.queries.kernel.datapath import effects
from mmaprobe.queries.kernel.datapath.effects import (
    BoundKeeps,
    FormatHolds,
    NeverReaches,
    Normalises,
    RoundsAlike,
)
from mmaprobe.queries.kernel.datapath.ranges import Held, Range, Scope, ranges_of
from mmaprobe.queries.kernel.equality.rewriting import REWRITES, Alike, kind_of
from mmaprobe.queries.kernel.lemmas import Lemma, exhausted, query_of
from mmaprobe.queries.kernel.theorem import RULES, RuleError, Theorem
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.normalising import Normaliser, Wanted, normal_form, rules_of
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.arithmetic.rounding import OVERFLOWS, Target
from mmaprobe.smtmodel.carriers.algebra import constant
from mmaprobe.smtmodel.evaluate.batch import evaluate_models
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import (
    Constant,
    Cut,
    Each,
    Element,
    ExactSum,
    FusedSum,
    Gate,
    GridSum,
    Index,
    Node,
    Product,
    Repeat,
    Round,
    Running,
    SortedSum,
)
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.node_units import MODES, random_unit, vectors
from tests.places import DOCS
from tests.said import assumed
from tests.units.test_nodes import on_arrays

PLAIN = Normaliser(Options("bitwuzla", None))
F16, F32, BF16 = "ampere/mma/m16n8k16.f32.f16.f16.f32", FORMATS["f32"], "ampere/mma/m16n8k16.f32.bf16.bf16.f32"
FP8 = "ada-lovelace/mma/m16n8k32.f32.e4m3.e4m3.f32"
FP8_14 = f"{FP8}@fraction_bits=14"
AFTER = f"{FP8}@family=emulated-fp8,output=f32"
SCALED = "blackwell/tcgen05mma_block_scale/m64n8k64.block32.f32.e2m1.e2m1.ue8m0"
MULTIPLES_OF_64 = Format("coarse", 3, 1, -6, "none")
HALVES = "hopper/mma/m16n8k32.f32.e4m3.e4m3.f32"  # factors are converted to f16
LATE = "cdna3/mfma/f32_32x32x8_f16"

#: two lanes of f16 sums, and c
LANES = """
unit: lanes
formats: {a: f16, b: f16, c: f16, d: f16}
length: 10
roundings: {r: "round(f16, nearest_even)"}
steps:
  even: repeat(k in range(0, 10, 2), +0, r(exact(r(a[k] * b[k]), acc)))
  odd: r(exact(r(a[3] * b[3]), r(r(a[1] * b[1]))))
  d: r(exact(r(exact(even, odd)), c))
"""
CHAIN = """
unit: chain
formats: {a: f16, b: f16, c: f16, d: f16}
length: 4
roundings: {r: "round(f16, nearest_even, zero=exact_positive)"}
steps: {d: "repeat(k in range(0, 4), +0, r(exact(r(a[k] * b[k]), acc)))"}
"""
NESTED = """
unit: nested
formats: {a: f16, b: f16, c: f16, d: f16}
length: 4
roundings: {r: "round(f16, nearest_even)"}
steps: {d: "r(exact(exact(a[0:2] * b[0:2]), exact(a[2:4] * b[2:4], c)))"}
"""
SCALED_SUM = """
unit: scaled-sum
formats: {{a: e4m3, b: e4m3, c: f32, d: f32, scale: {}}}
length: 4
scale_block: 4
roundings: {{r: "round(f32, nearest_even)"}}
steps: {{d: "r(exact(scale(exact(a[0:4] * b[0:4]), scale_a[0], scale_b[0]), c))"}}
"""
GATED = """
unit: gated
formats: {{a: e2m1, b: {}, c: f16, d: f16}}
length: 2
roundings: {{r: "round(f16, nearest_even, zero=exact_positive)"}}
steps: {{d: "r(exact(gate(a[0:2] * b[0:2], {}), c))"}}
"""

LOSSLESS = """
unit: lossless
formats: {{a: e4m3, b: e4m3, c: f32, d: f64}}
length: 2
roundings: {{r: "round(f64, nearest_even)"}}
steps: {{d: "r(fused(a[0:2] * b[0:2], F={}))"}}
"""
SORTED = """
unit: sorted
formats: {{a: e4m3, b: e4m3, c: e4m3, d: f32}}
length: 2
roundings: {{r: "round(f32, nearest_even)"}}
steps: {{d: "r(sorted(a[0] * b[0], a[1] * b[1], c, F=[{0}, {1}]))"}}
"""
#: an exact sum rounded to f32, then to f16
TWICE = """
unit: twice
formats: {{a: f16, b: f16, c: f32, d: f16}}
length: 2
roundings: {{o: "round(f32, {})", r: "round(f16, {})"}}
steps: {{d: "r(o(exact(a[0:2] * b[0:2], c)))"}}
"""
#: an exact sum of two products in f32, in which more than 24 bits do not fit
HELD_SUM = """
unit: held
formats: {{a: {0}, b: {0}, c: f32, d: f16}}
length: 2
roundings: {{w: "round(f32, nearest_even)", r: "round(f16, nearest_even)"}}
steps: {{d: "r(w(exact(a[0:2] * b[0:2])))"}}
"""
MINUS_ZERO = """
unit: minus
formats: {a: f16, b: f16, c: f32, d: f32}
length: 2
roundings: {r: "round(f32, nearest_even)"}
steps: {d: "r(exact(a[0:2] * b[0:2], c, -0))"}
"""

ODD = """
unit: odd
formats: {{a: f16, b: f16, c: f32, d: f32}}
length: 2
roundings: {{r: "round(f32, nearest_even)", q: "round(f32, nearest_even, zero=positive, subnormals=flush_after)"}}
steps: {{d: "{}"}}
"""
UNREACHED = """
unit: unreached
formats: {{a: f16, b: f16, c: none, d: {fmt}}}
length: 2
roundings: {{r: "round({fmt}, {mode}, overflow={overflow})"}}
steps: {{d: "r(exact(a[0:2] * b[0:2]))"}}
"""
SATURATES = UNREACHED.format(fmt="f32", mode="nearest_even", overflow="saturate")
ADDED = """
unit: added
formats: {{a: {a}, b: e2m1, c: e4m3, d: e4m3}}
length: 1
roundings: {{r: "round(e4m3, nearest_even, overflow=saturate)"}}
steps: {{d: "r(exact(a[0], c))"}}
ignored: [0]
"""
READ = ODD.format("repeat(k in range(0, 2), c, r(exact(q(acc), a[k] * b[k])))")
#: (a published unit or one near it, the rules that apply); with another parameter, at its limit, they do not
USEFUL = [
    (F16, ("floor below every term", "no sum rounded to zero")),
    ("ampere/mma/m16n8k16.f16.f16.f16.f16@exponent_floor=-22,fraction_bits=26", ("floor below every term",)),
    (f"{BF16}@exponent_floor=none", ()),
    (f"{FP8_14},exponent_floor=none", ("no last sum of a loop rounded to zero",)),
    (f"{AFTER},zero_sign=ieee,exponent_floor=none", ("a term that is never -0",)),
    (
        f"{FP8}@family=emulated-fp8,zero_sign=ieee,exponent_floor=-133",
        ("floor below every term", "a term that is never -0"),
    ),
    (f"{AFTER},length=16,block=16,zero_sign=ieee,exponent_floor=none", ("a term that is never -0",)),
    (f"{FP8}@block=16,fraction_bits=11,output=f32,output_rounding=nearest_even", ("sum that fits the result",)),
    (f"{HALVES}@exponent_floor=-20", ("floor below every term",)),
    (f"{F16}@carry_bits=5", ("carry bits that no sum needs", "floor below every term")),
    (f"{F16}@product=rounded_f32", ("products held by the format that they are rounded to",)),
    (f"{F16}@product=rounded_f32,fraction_bits=exact,exponent_floor=none", ("products that an exact sum normalises",)),
    ("volta/mma/m8n8k4.f32.f16.f16.f32@carry_bits=4", ("carry bits that no sum needs",)),
    (f"{LATE}@overflow=ieee", ("product limit never reached", "overflow as the rounding has it")),
    (LANES, ("a term that is never -0", "sign of a zero that nothing reads", "number of the format, rounded again")),
    (GATED.format("e4m3", "-0"), ("gated products whose zeros",)),
    (CHAIN, ("first step of a loop", "zero added", "sum of one term")),
    (NESTED, ("exact sum in an exact sum",)),
    (SCALED_SUM.format("ue4m3"), ("scaled exact sum in an exact sum",)),
    (LOSSLESS.format(34), ("fused sum that loses nothing",)),
    (SORTED.format(35, 35), ("sorted sum that loses nothing",)),
    (TWICE.format("to_odd", "nearest_away"), ("rounding that the next one makes needless",)),
    (HELD_SUM.format("e3m2"), ("rounding that the number needs not",)),
    (SATURATES, ("overflow that no number reaches",)),
    (UNREACHED.format(fmt="f32", mode="up", overflow="infinity"), ("overflow that no number reaches",)),
    (MINUS_ZERO, ("neutral zero added",)),
    (MINUS_ZERO.replace("nearest_even", "down").replace("-0", "+0"), ("neutral zero added",)),
    (ODD.format("r(exact(r(exact(a[0:2] * b[0:2], c)), +0))"), ("number of the format and +0, rounded again",)),
    (ODD.format("r(exact(a[0:2] * b[0:2], +0 * -0))"), ("product of zeros",)),
    (ODD.format("r(exact(a[0:2] * b[0:2], q(c)))"), ("input read as its own format is rounded",)),
    (READ, ("results so far that are read as they are",)),
    (ODD.format("r(relu(r(exact(a[0:2] * b[0:2], c))))"), ("rectified before it is rounded",)),
]


def theorem(reference: str) -> Theorem | None:
    unit = parse_unit(reference, "lanes.yaml") if "steps" in reference else parse_reference(reference).unit
    return PLAIN.proof(unit)


@pytest.mark.parametrize(("reference", "wanted"), USEFUL)
def test_rules_apply_where_they_are_useful(reference: str, wanted: tuple[str, ...]) -> None:
    """With every lemma proved by an engine."""
    found = theorem(reference)
    used = [] if found is None else rules_of([found])
    assert all(any(name.startswith(word) for name in used) for word in wanted), used
    for one in [] if found is None else found.walk():
        assert one.rule != "settled" or "unsat" in one.word
    if not wanted:
        assert found is None


def test_every_rule_is_useful_somewhere() -> None:
    words = {word for _, wanted in USEFUL for word in wanted}
    assert all(any(name.startswith(word) for word in words) for name in REWRITES)


F16_SUMS = "ampere/mma/m16n8k16.f16.f16.f16.f16"
#: a rule, a unit that it applies to, and one beyond its limit
LIMITS = [
    ("floor below every term", f"{F16_SUMS}@exponent_floor=-22,fraction_bits=26",
     f"{F16_SUMS}@exponent_floor=-21,fraction_bits=26"),
    ("floor below every term", f"{BF16}@exponent_floor=-242", f"{BF16}@exponent_floor=-241"),
    ("no sum rounded to zero", f"{F16}@exponent_floor=none", f"{BF16}@exponent_floor=none"),
    ("no sum rounded to zero", f"{FP8}@block=32,exponent_floor=none", f"{FP8_14},block=32,exponent_floor=none"),
    ("no sum rounded to zero", f"{FP8_14},block=32,exponent_floor=-125", f"{FP8_14},block=32,exponent_floor=-126"),
    ("no last sum of a loop rounded to zero", f"{FP8_14},exponent_floor=none",
     f"{FP8_14},block=32,exponent_floor=none"),
    ("no last sum of a loop rounded to zero", f"{FP8_14},exponent_floor=none", f"{BF16}@exponent_floor=none,block=8"),
    ("no sum rounded to zero", f"{SCALED}@exponent_floor=none,scale_format=ue4m3,scale_block=16",
     f"{SCALED}@exponent_floor=none"),
    ("sum that fits the result", f"{AFTER},block=32,fraction_bits=15,output_rounding=nearest_even",
     f"{AFTER},block=32,fraction_bits=20,output_rounding=nearest_even"),
    ("gated products whose zeros have any sign", GATED.format("e2m1", "+0"), GATED.format("e4m3", "+0")),
    ("carry bits that no sum needs", f"{F16}@carry_bits=5", f"{F16}@carry_bits=4"),
    ("carry bits that no sum needs", f"{F16}@length=128,block=128,product=normalised,carry_bits=8",
     f"{F16}@length=128,block=128,product=normalised,carry_bits=7"),
    ("a term that is never -0", f"{AFTER},zero_sign=ieee,fraction_bits=6,exponent_floor=none",
     f"{AFTER},zero_sign=ieee,fraction_bits=5,exponent_floor=none"),
    ("a term that is never -0", f"{AFTER},zero_sign=ieee,exponent_floor=none",
     f"{AFTER},zero_sign=ieee,exponent_floor=none,output_rounding=down"),
    ("a term that is never -0", f"{AFTER},length=16,block=16,zero_sign=ieee,exponent_floor=none",
     f"{AFTER},length=16,block=16,zero_sign=ieee,exponent_floor=none,output_rounding=down"),
    ("carry bits that no sum needs", "volta/mma/m8n8k4.f32.f16.f16.f32@carry_bits=4",
     "volta/mma/m8n8k4.f32.f16.f16.f32@carry_bits=3"),
    ("carry bits that no sum needs", "hopper/wgmma/m64n8k32.f32.e4m3.e4m3@carry_bits=6",
     "hopper/wgmma/m64n8k32.f32.e4m3.e4m3@carry_bits=5"),
    ("carry bits that no sum needs", "volta/mma/m8n8k4.f32.f16.f16.f32@carry_bits=3,product=normalised",
     "volta/mma/m8n8k4.f32.f16.f16.f32@carry_bits=2,product=normalised"),
    ("product limit never reached", f"{LATE}@product_overflow=32", f"{LATE}@product_overflow=31"),
    ("products held by the format that they are rounded to", f"{F16}@product=rounded_f32",
     f"{BF16}@product=rounded_f32"),
    ("overflow as the rounding has it", f"{LATE}@overflow=ieee", f"{LATE}@overflow=ieee,output_rounding=up"),
    ("overflow that no number reaches", SATURATES, SATURATES.replace("f32", "f16")),
    ("overflow that no number reaches", ADDED.format(a="e2m3"), ADDED.format(a="e3m2")),
    ("sign of a zero that nothing reads", LANES, LANES.replace("+0", "-0")),
    ("a term that is never -0", LANES, LANES.replace("nearest_even", "down")),
    ("number of the format, rounded again", ODD.format("r(exact(a[0:2] * b[0:2], r(r(a[0] * c))))"),
     ODD.format("r(exact(a[0:2] * b[0:2], q(r(a[0] * c))))")),
    ("zero added", CHAIN, CHAIN.replace("exact_positive", "ieee").replace("nearest_even", "down")),
    ("first step of a loop", CHAIN, CHAIN.replace("+0", "c")),
    ("fused sum that loses nothing", LOSSLESS.format(34), LOSSLESS.format(33)),
    ("sorted sum that loses nothing", SORTED.format(35, 35), SORTED.format(34, 35)),
    ("rounding that the next one makes needless", TWICE.format("to_odd", "up"), TWICE.format("up", "to_odd")),
    ("rounding that the next one makes needless", TWICE.format("to_odd", "nearest_even"),
     TWICE.format("to_odd", "nearest_even").replace("d: f16", "d: e8m22_ieee").replace("f16, ne", "e8m22_ieee, ne")),
    ("rounding that the next one makes needless", TWICE.format("to_odd", "nearest_even"),
     TWICE.format("to_odd, subnormals=flush_after", "nearest_even").replace("d: f16", "d: bf16").replace(
         "(f16", "(bf16")),
    ("rounding that the next one makes needless", TWICE.format("toward_zero", "toward_zero"),
     TWICE.format("toward_zero", "nearest_even")),
    ("rounding that the number needs not", HELD_SUM.format("e3m2"), HELD_SUM.format("e4m3")),
    ("neutral zero added", MINUS_ZERO, MINUS_ZERO.replace("nearest_even", "down")),
    ("number of the format and +0, rounded again", ODD.format("r(exact(r(exact(a[0:2] * b[0:2], c)), +0))"),
     ODD.format("r(exact(q(exact(a[0:2] * b[0:2], c)), +0))").replace("zero=positive", "zero=ieee")),
    ("product of zeros", ODD.format("r(exact(a[0:2] * b[0:2], +0 * -0))"),
     ODD.format("r(exact(a[0:2] * b[0:2], +0 * c))")),
    ("input read as its own format is rounded", ODD.format("r(exact(a[0:2] * b[0:2], q(c)))"),
     ODD.format("r(exact(a[0:2] * b[0:2], q(c)))").replace("zero=positive", "zero=ieee")),
    ("results so far that are read as they are", READ, READ.replace("f16", "bf16")),
    ("rectified before it is rounded", ODD.format("r(relu(r(exact(a[0:2] * b[0:2], c))))"),
     ODD.format("r(relu(r(exact(a[0:2] * b[0:2], c)), zero=keep))")),
    ("scaled exact sum in an exact sum", SCALED_SUM.format("ue8m0"),
     SCALED_SUM.format("ue8m0").replace("scale(exact", "scale(fused").replace("]), s", "], F=3), s")),
    ("exact sum in an exact sum", NESTED,
     NESTED.replace("exact(a", "fused(a").replace("])", "], F=3)").replace("c)", "c, F=3)")),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "within", "beyond"), LIMITS)
def test_rules_apply_up_to_their_limit(rule: str, within: str, beyond: str) -> None:
    assert [rule in rules_of([found] if found else []) for found in map(theorem, (within, beyond))] == [True, False]


@cache
def steps() -> dict[str, Alike]:
    """Where each rule was applied, once."""
    proofs = [found for reference, _ in USEFUL if (found := theorem(reference)) is not None]
    return {one.word: one.goal for proof in proofs for one in proof.walk() if one.rule == "rewritten"}  # type: ignore[misc]


def refused(rule: str, *given: Any) -> None:
    with pytest.raises(RuleError):
        RULES[rule](*given)


@pytest.mark.parametrize("name", REWRITES)
def test_a_rule_without_a_proof_is_not_applied(name: str) -> None:
    """If no engine proves its lemmas, if another theorem is given for one, or if time ran out."""
    step = steps()[name]
    proposed = REWRITES[name](step.scope, step.node)
    assert proposed is not None
    assert (proposed.other, proposed.counting, proposed.signs) == (step.other, step.counting, step.signs)
    other = PLAIN.settle(Normalises(Range(5, 2, -3, 2, -5)))
    if proposed.lemmas:
        proved = PLAIN.settle.all_of(proposed.lemmas)
        assert proved is not None
        refused("rewritten", step.scope, step.node, name, proved[1:])
        refused("rewritten", step.scope, step.node, name, [*proved, other])
        refused("rewritten", step.scope, step.node, name, [other] * len(proved))
        late = Normaliser(Options("bitwuzla", 0.0))
        found = late._step(step.scope, step.node, Wanted(False, True))
        assert found is None or {one.rule for one in found.walk()} <= {"rewritten", "exhausted"}
    refused("rewritten", step.scope, Constant(), name, PLAIN.settle.all_of(proposed.lemmas))


UNIT = parse_reference(f"{F16}@exponent_floor=none").unit
SCOPE = Scope.of(UNIT)


def made(scope: Scope, node: Node, other: Node, counting: bool = True, signs: bool = True) -> Theorem:
    """Any theorem at all."""
    return assumed(Alike(scope, node, other, counting, signs))


def test_rules_of_inference_refuse_what_does_not_follow() -> None:
    loop = UNIT.result
    assert isinstance(loop, Repeat)
    assert isinstance(loop.body, Round)
    total = loop.body.term
    assert isinstance(total, FusedSum)
    product, held = total.items[0], kind_of(SCOPE, loop)
    assert held is not None
    inner = SCOPE.within(1, held)
    one, two = made(inner, product, Running(1)), made(inner, product, Running(1), counting=False)
    # one after another
    refused("followed", one, made(inner, product, Running(1)))
    refused("followed", one, made(SCOPE, Running(1), product))
    assert not RULES["followed"](two, made(inner, Running(1), product)).goal.counting  # type: ignore[attr-defined]
    # congruence
    refused("congruent", inner, total, (two, None))
    refused("congruent", inner, total, (None, one))
    refused("congruent", SCOPE, total, (one, None))
    refused("congruent", SCOPE, loop, (made(SCOPE, loop.start, Constant()), None))
    refused("congruent", SCOPE, loop, (None, made(SCOPE, loop.body, loop.body)))
    refused("congruent", SCOPE, Constant(), ())
    refused("congruent", SCOPE, Product(A, B), (made(SCOPE, A, total), None))
    floor = replace(total, zeros=-3)
    for node, counting in ((total, True), (floor, True), (Cut(total, 9), True), (Cut(total, 9, least=-9), True)):
        below = one if isinstance(node, FusedSum) else made(inner, total, floor, counting=False)
        operands = (below, None) if isinstance(node, FusedSum) else (below,)
        assert RULES["congruent"](inner, node, operands).goal.counting is counting  # type: ignore[attr-defined]
    # loops
    body, other = loop.body, replace(loop.body, term=floor)
    assert RULES["looped"](SCOPE, loop, made(inner, body, other)).goal.other == replace(loop, body=other)  # type: ignore[attr-defined]
    refused("looped", SCOPE, loop, made(inner, other, body))
    refused("looped", SCOPE, loop, made(inner, body, other, counting=False))
    refused("looped", SCOPE, loop, made(SCOPE, body, other))
    refused("looped", SCOPE, loop, made(SCOPE.within(2, held), body, other))
    refused("looped", inner, loop, made(inner, body, other))
    for wrong in (Held(frozenset((FORMATS["f16"],))), Held(held.formats, -20)):
        refused("looped", SCOPE, loop, made(SCOPE.within(1, wrong), body, other))
    refused("looped", SCOPE, loop, made(inner, body, A))
    # results
    refused("results_alike", UNIT, made(inner, UNIT.result, UNIT.result))
    refused("results_alike", UNIT, made(SCOPE, body, UNIT.result))
    refused("results_alike", UNIT, made(SCOPE, UNIT.result, A))
    refused("results_alike", UNIT, made(SCOPE, UNIT.result, UNIT.result, signs=False))
    wide = replace(body, rounding=replace(body.rounding, nan=None))
    refused("results_alike", UNIT, made(SCOPE, UNIT.result, replace(UNIT.result, body=wide)))


def test_signs_of_zeros_end_only_where_nothing_reads_them() -> None:
    """Through what gives a sign of zero of its own, before and after, and into no node that may look at one."""
    congruent, looped = RULES["congruent"], RULES["looped"]
    f16 = FORMATS["f16"]
    inner = SCOPE.within(1, Held(frozenset((f16,))))

    def rounded(term: Node, zero: Any) -> Round:
        return Round(term, Rounding(f16, zero=zero))

    product = Product(A, B)
    other = rounded(product, "positive")
    item = made(inner, product, other, signs=False)
    two = ExactSum((product, Running(1)))
    total = congruent(inner, two, (item, None))
    assert not total.goal.signs  # type: ignore[attr-defined]
    for zero, signs in (("ieee", False), ("exact_positive", True), ("positive", True)):
        assert congruent(inner, rounded(two, zero), (total,)).goal.signs is signs  # type: ignore[attr-defined]
        alone = congruent(inner, rounded(product, zero), (item,)).goal.signs  # type: ignore[attr-defined]
        assert alone is (zero == "positive")
    single = made(inner, two, product, signs=False)
    assert not congruent(inner, rounded(two, "exact_positive"), (single,)).goal.signs  # type: ignore[attr-defined]
    assert congruent(inner, rounded(two, "positive"), (single,)).goal.signs  # type: ignore[attr-defined]
    assert not congruent(inner, FusedSum((product, Running(1)), 10), (item, None)).goal.signs  # type: ignore[attr-defined]
    refused("congruent", inner, GridSum((product, Running(1)), (10, 10)), (item, None))
    assert not RULES["followed"](item, made(inner, other, product)).goal.signs  # type: ignore[attr-defined]
    assert not RULES["followed"](made(inner, other, product), item).goal.signs  # type: ignore[attr-defined]
    # loops
    start, begins = rounded(product, "ieee"), rounded(product, "positive")
    first = made(SCOPE, start, begins, signs=False)
    grid = GridSum((product, Running(1)), (10, 10))
    for zero, signs in (("ieee", False), ("exact_positive", True)):
        loop = Repeat(1, range(3), start, rounded(two, zero))
        assert congruent(SCOPE, loop, (first, None)).goal.signs is signs  # type: ignore[attr-defined]
        held = kind_of(SCOPE, loop)
        assert held is not None
        body = made(SCOPE.within(1, held), loop.body, loop.body, signs=False)
        assert not looped(SCOPE, loop, body).goal.signs  # type: ignore[attr-defined]
        refused("congruent", SCOPE, replace(loop, body=rounded(grid, zero)), (first, None))
        refused("looped", SCOPE, loop, made(body.goal.scope, loop.body, rounded(grid, zero), signs=False))  # type: ignore[attr-defined]


def test_the_last_sum_of_a_loop_has_others_before_it_that_no_node_but_sums_reads() -> None:
    unit = parse_reference(f"{FP8_14},exponent_floor=none").unit
    loop, scope = unit.result, Scope.of(unit)
    assert isinstance(loop, Repeat)
    body = loop.body
    assert isinstance(body, Round)
    assert isinstance(body.term, FusedSum)
    apply = REWRITES["no last sum of a loop rounded to zero"]
    assert apply(scope, loop) is not None
    assert apply(scope, replace(loop, places=loop.places[:1])) is None
    read = replace(body, term=GridSum((Product(A, B), Running(1)), (10, 10)))
    for term, applies in ((replace(body, term=FusedSum(body.term.items, 9)), True), (read, False)):
        other = replace(loop, body=replace(body, term=replace(body.term, items=(*body.term.items, term))))
        assert (apply(scope, other) is not None) is applies


@pytest.mark.parametrize("result", ["f16", "bf16", "e5m2"])
def test_a_sum_of_terms_below_the_last_place_is_refused_without_an_engine(result: str) -> None:
    """It may be rounded to zero; the lemma that it is not would be false."""
    name = "no sum rounded to zero"
    step = steps()[name]
    assert isinstance(step.node, Round)
    assert REWRITES[name](step.scope, step.node) is not None
    how = replace(step.node.rounding, format=FORMATS[result], nan=None)
    assert REWRITES[name](step.scope, replace(step.node, rounding=how)) is None


def test_the_page_names_every_rule() -> None:
    page = (DOCS / "identify.md").read_text(encoding="utf-8")
    _, _, section = page.partition("### Equal by rewriting")
    rows = [line.split(" | ")[0].removeprefix("| ") for line in section.partition("## ")[0].splitlines()]
    assert {row for row in rows if row in REWRITES} == set(REWRITES)


PRODUCT, RESULT = Range(22, 20, -28, 30, -48), Range(24, 23, -126, 127, -149, True)
F16_TARGET = Target(FORMATS["f16"], "nearest_even")
#: (a lemma at its limit, the same beyond it)
EDGES: list[tuple[Lemma, Lemma]] = [
    (BoundKeeps(PRODUCT, 24, "toward_zero", -24), BoundKeeps(PRODUCT, 24, "toward_zero", -23)),
    (BoundKeeps(PRODUCT, 24, "nearest_even", -24), BoundKeeps(PRODUCT, 23, "nearest_even", -24)),
    (BoundKeeps(RESULT, 25, "up", -124), BoundKeeps(RESULT, 25, "up", -123)),
    (NeverReaches(PRODUCT, 32), NeverReaches(PRODUCT, 31)),
    (Normalises(PRODUCT), FormatHolds(replace(PRODUCT, width=25), Target(F32, "nearest_even"))),
    (FormatHolds(PRODUCT, Target(F32, "down")), FormatHolds(PRODUCT, F16_TARGET)),
    (FormatHolds(PRODUCT, Target(F32, "down")), FormatHolds(PRODUCT, Target(F32, "down", positive_zero=True))),
    (RoundsAlike(F16_TARGET, replace(F16_TARGET, overflow="infinity")),
     RoundsAlike(replace(F16_TARGET, rounding="up"), replace(F16_TARGET, rounding="up", overflow="infinity"))),
    (RoundsAlike(Target(F32, "nearest_even", "infinity"), Target(F32, "toward_zero", "infinity"), True),
     RoundsAlike(Target(F32, "nearest_even"), Target(F32, "toward_zero"), True)),
]  # fmt: skip


@pytest.mark.parametrize(("holds", "fails"), EDGES)
def test_lemmas_hold_up_to_their_limit(holds: Lemma, fails: Lemma) -> None:
    assert PLAIN.settle(holds) is not None, holds.statement()
    assert PLAIN.settle(fails) is None, fails.statement()
    assert PLAIN.settle.options.engines(None, fails.statement()).answers(query_of(fails))[0].status == "sat"


SMALL = Range(4, 2, -3, 2, -5)
LITTLE = Target(FORMATS["e2m3"], "nearest_even")
SMALL_LEMMAS = [
    *(BoundKeeps(SMALL, bits, mode, -1) for bits in (2, 4) for mode in MODES),
    *(NeverReaches(SMALL, limit) for limit in (3, 4)),
    Normalises(SMALL), Normalises(replace(SMALL, unit=-4)),
    *(FormatHolds(SMALL, Target(FORMATS[name], "up")) for name in ("e5m2", "e4m3", "e3m2")),
    *(RoundsAlike(LITTLE, replace(LITTLE, overflow=overflow)) for overflow in OVERFLOWS),
    *(RoundsAlike(LITTLE, replace(LITTLE, rounding=mode), True) for mode in MODES),
]  # fmt: skip


def truth(goal: Lemma) -> bool:
    """By evaluation of every input."""
    with suppress(RuleError):
        return exhausted(goal).goal == goal
    with pytest.raises(RuleError, match="otherwise"):  # not: too many bits
        exhausted(goal)
    return False


def test_engines_and_evaluation_agree_on_small_lemmas() -> None:
    found = [(truth(goal), PLAIN.settle(goal) is not None) for goal in SMALL_LEMMAS]
    assert [one for one, _ in found] == [other for _, other in found]
    assert {one for one, _ in found} == {True, False}


@pytest.mark.parametrize(("what", "kind"), [("align", BoundKeeps), ("round_and_pack", FormatHolds)])
def test_a_broken_datapath_has_no_lemma(what: str, kind: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    kept = getattr(effects, what)
    monkeypatch.setattr(effects, what, lambda *given: (lambda found: found & ~constant(found.carrier, 6, found.width))(
        kept(*given)))  # fmt: skip
    goals = [goal for goal in SMALL_LEMMAS if isinstance(goal, kind)]
    assert goals
    assert not all(truth(goal) for goal in goals)


# -- no rule changes a result


def alike(unit: Unit, other: Node, count: int, seed: int) -> bool:
    """Whether results are the same; any NaN for a NaN of which the pattern is not known."""
    table = vectors(unit, count, np.random.default_rng(seed))
    again = unit.with_result(other)
    left, right = on_arrays(unit, table), on_arrays(again, table)
    return left == right


@pytest.mark.parametrize("part", range(4))
def test_random_units_compute_as_their_normal_forms(part: int) -> None:
    for seed in range(part * 60, part * 60 + 60):
        unit = random_unit(random.Random(seed))
        found = PLAIN.proof(unit)
        if found is not None:
            assert alike(unit, normal_form(unit, found), 400, seed), (seed, rules_of([found]))


A, B, C = Element("a", Index(0)), Element("b", Index(0)), Element("c")
OWN = {
    "p": Format("p", 2, 1, 1, "none"),
    "q": Format("q", 3, 1, 2, "ieee"),
    "r": Format("r", 3, 2, 3, "ieee"),
    "s": Format("s", 4, 7, 7, "ieee"),
    "w": Format("w", 5, 4, 15, "ieee"),
}


def near(rng: random.Random) -> Unit:
    """A step or a chain of steps over tiny formats, with parameters about the limits of the rules."""
    choose: Any = rng.choice
    length, chained, result = 2, rng.random() < 0.6, OWN[choose("qrs")]
    index = Index(0, ((1, 1),)) if chained else Index(0, ((2, 1),))
    product: Node = Product(Element("a", index), Element("b", index), rng.random() < 0.3, choose((None, None, 5, 6)))
    if rng.random() < 0.3:
        product = Round(product, Rounding(choose((OWN["r"], OWN["w"])), choose(MODES)))
    elif rng.random() < 0.3:
        product = Gate(product, rng.random() < 0.5)
    start = choose((Constant(), Constant(), C, Constant(negative=True)))
    terms = product if chained else Each(2, range(length), product)
    if not chained and rng.random() < 0.3:
        terms = ExactSum((terms,))
    items = (terms, Running(1) if chained else start)
    bits = rng.randint(1, 5)
    total: Node = ExactSum(items)
    if rng.random() < 0.85:
        floor = choose((None, None, *range(-5, 2)))
        zeros, least = choose(((floor, None), (None, floor)))
        carry = choose((None, None, None, 0, 1, 2))
        sticky = carry is None and rng.random() < 0.15
        total = FusedSum(items, bits, "toward_zero" if sticky else choose(MODES), sticky, carry, zeros, least)
    if not chained and rng.random() < 0.15:
        one, other = (Product(Element("a", Index(k)), Element("b", Index(k))) for k in range(2))
        total = SortedSum((one, other, start), (2 * bits, 2 * bits))
    tiny = choose(("keep", "keep", "keep", "flush_after", "flush_before"))
    how = Rounding(result, choose(MODES), choose(OVERFLOWS), tiny, choose(("ieee", "exact_positive", "positive")))
    node: Node = Round(total, how)
    if chained:
        node = Repeat(1, range(length), start, node)
    while rng.random() < 0.4:  # a step after it
        again = replace(how, zero=choose(("ieee", "exact_positive", "positive")), mode=choose(MODES))
        beside = choose((Constant(), Constant(negative=True), C, Round(C, again), Round(Product(A, B), again)))
        node = Round(choose((node, ExactSum((node, beside)), ExactSum((node,)))), again)
    return Unit(OWN["p"], OWN["p"], OWN[choose("qrs")], length, node)


@cache
def every_input(fmt: Format) -> tuple[Any, ...]:
    """All a and b, each with 8 of all c."""
    lanes = np.arange(1 << 19, dtype=np.uint64)
    a, b = (np.stack([lanes >> np.uint64(shift + 4 * k) & np.uint64(15) for k in range(2)], axis=1) for shift in (0, 8))
    c = (lanes >> np.uint64(16)) * np.uint64(0x9E3779B1) + lanes * np.uint64(7) & np.uint64((1 << fmt.width) - 1)
    return a, b, c


@pytest.mark.slow
def test_small_units_near_the_limits_compute_as_their_normal_forms() -> None:
    """All products of two pairs of numbers, each with several addends; and every rule is used."""
    used: Counter[str] = Counter()
    rng = random.Random(8)
    for _ in range(300):
        unit = near(rng)
        found = PLAIN.proof(unit)
        if found is None:
            continue
        used.update(rules_of([found]))
        table = tuple(side[::31] for side in every_input(unit.c))
        again = replace(unit, result=normal_form(unit, found))
        assert on_arrays(unit, table) == on_arrays(again, table), (rules_of([found]), unit.result)
    assert set(used) == set(REWRITES), set(REWRITES) - set(used)


@pytest.mark.parametrize("mode", ["nearest_even", "down"])
@pytest.mark.parametrize("name", ["q", "r", "s", "w"])
def test_sorted_sums_that_lose_nothing_are_exact(name: str, mode: Any) -> None:
    """All products of two pairs of numbers, each with several addends, with the fewest bits at which the rule applies,
    and with one more; with few bits the sum is another one."""
    fmt, how = OWN[name], Rounding(OWN["w"], mode, "infinity" if mode == "nearest_even" else "ieee")
    terms = (Product(A, B), Product(Element("a", Index(1)), Element("b", Index(1))), C)
    units = [Unit(OWN["p"], OWN["p"], fmt, 2, Round(SortedSum(terms, (bits, bits)), how)) for bits in range(1, 40)]
    forms = [normal_form(unit, PLAIN.proof(unit)) for unit in units]
    exact = Round(ExactSum(terms), how)
    first = forms.index(exact)
    table = tuple(side[::13] for side in every_input(fmt))
    for number in (first, first + 1):
        assert forms[number] == exact
        assert on_arrays(units[number], table) == on_arrays(replace(units[number], result=exact), table)
    assert on_arrays(units[0], table) != on_arrays(replace(units[0], result=exact), table)


def signs_of_zeros() -> Iterator[Node]:
    """Where a zero keeps its sign although a rule about signs is near."""
    fmt = OWN["q"]
    both = [Product(Element("a", Index(k)), Element("b", Index(k))) for k in range(2)]
    total = ExactSum(tuple(both))

    def rounded(term: Node, zero: Any = "ieee", subnormals: Any = "keep") -> Round:
        return Round(term, Rounding(fmt, zero=zero, subnormals=subnormals))

    yield rounded(rounded(both[0]), "positive")
    yield rounded(rounded(total), "positive")
    yield rounded(rounded(both[0]), subnormals="flush_before")
    yield rounded(rounded(both[0]), subnormals="flush_after")
    for inner in (rounded(total, "exact_positive"), rounded(total, "exact_positive", "flush_after")):
        yield rounded(ExactSum((inner, C)))
    yield rounded(ExactSum((rounded(both[0], "exact_positive"), C)))
    coarse = ExactSum((rounded(both[0]), C))
    for subnormals in ("flush_after", "flush_before"):
        yield rounded(ExactSum((rounded(coarse, "exact_positive", subnormals), rounded(both[1]))))
    yield rounded(FusedSum((rounded(both[0], "positive"), C), 1, least=6))
    yield rounded(ExactSum((Constant(), both[0])))
    yield rounded(ExactSum((Constant(), both[0])), "exact_positive")
    yield rounded(ExactSum((ExactSum((Constant(), rounded(both[0]))), C)))
    for term in (Product(rounded(Running(1), "positive"), Element("a", Index(0))),
                 FusedSum((rounded(Running(1), "positive"), both[0]), 1, least=6)):  # fmt: skip
        yield Repeat(1, range(2), C, rounded(term))
    for zero in ("ieee", "exact_positive"):  # of a sum that is rounded without loss, and then down
        held = Round(total, Rounding(Format("v", 5, 9, 15, "ieee"), zero=zero))  # type: ignore[arg-type]
        yield Round(ExactSum((held, C)), Rounding(fmt, "down"))


@pytest.mark.parametrize("node", list(signs_of_zeros()), ids=lambda node: node.kind)
def test_signs_of_zeros_that_are_read_are_kept(node: Node) -> None:
    fine = Format("t", 2, 1, 3, "none")  # whose products are tiny in the result's format
    unit = Unit(fine, fine, OWN["q"], 2, node)
    found = PLAIN.proof(unit)
    again = replace(unit, result=normal_form(unit, found))
    table = tuple(side[::7] for side in every_input(unit.c))
    assert on_arrays(unit, table) == on_arrays(again, table), rules_of([found] if found else [])


# -- ranges


def numbers(fmt: Format) -> list[tuple[Fraction, int]]:
    """Every finite number of a format other than zero, with its exponent."""
    found = [exact_value(pattern, fmt) for pattern in range(1 << fmt.width)]
    values = [abs(Fraction(value)) for value in found if isinstance(value, Fraction) and value]
    return [(x, max(fmt.emin, x.numerator.bit_length() - x.denominator.bit_length())) for x in values]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_range_of_an_exact_sum_is_that_of_its_term(count: int) -> None:
    """As the datapath makes it where a sum takes it as a term: all sums of products of e2m1."""
    fmt = FORMATS["e2m1"]
    product = Product(Element("a", Index(0, ((1, 1),))), Element("b", Index(0, ((1, 1),))))
    total = ExactSum((Each(1, range(count), product),))
    (found,) = ranges_of(Scope((("a", fmt), ("b", fmt))), total) or ()
    sums = {x * y for x, _ in numbers(fmt) for y, _ in numbers(fmt)} | {Fraction(0)}
    for _ in range(count - 1):
        sums = {
            abs(x + sign * y * z) for x in sums for y, _ in numbers(fmt) for z, _ in numbers(fmt) for sign in (1, -1)
        }
    assert (found.low, found.high, found.leading) == (0, 0, False)
    assert max(sums) < Fraction(2) ** found.integer <= 8 * max(sums)
    assert all((x / Fraction(2) ** found.unit).denominator == 1 for x in sums)
    assert any((x / Fraction(2) ** (found.unit + 1)).denominator != 1 for x in sums)
    assert found.fraction == -found.unit


@pytest.mark.parametrize("name", ["e4m3", "e5m2", "e2m3"])
def test_ranges_of_results_are_those_of_all_numbers(name: str) -> None:
    """Of the results of a loop, multiples of 2^unit: no smaller exponent, none that is a multiple of more."""
    fmt = FORMATS[name]
    for unit in (None, *range(fmt.emin - fmt.fraction - 1, 3)):
        some = [(x, e) for x, e in numbers(fmt) if unit is None or (x / Fraction(2) ** unit).denominator == 1]
        (found,) = ranges_of(Scope(()).within(1, Held(frozenset((fmt,)), unit)), Running(1)) or ()
        assert found.low == min(e for _, e in some)
        assert found.high >= max(e for _, e in some)
        assert all((x / Fraction(2) ** found.unit).denominator == 1 for x, _ in some)
        assert any((x / Fraction(2) ** (found.unit + 1)).denominator != 1 for x, _ in some)
        assert all(x >= Fraction(2) ** e for x, e in some if e > found.low) or not found.leading


@pytest.mark.parametrize("source", ["e4m3", "e5m2", "e2m3"])
@pytest.mark.parametrize("target", ["f16, down", "f16, toward_zero, overflow=saturate", "bf16, up, nan=0x0000",
                                    "f16, nearest_even, nan=0x0001", "f16, nearest_even, subnormals=flush_after",
                                    "e4m3, nearest_even", "e5m2, to_odd, overflow=saturate", "e2m1, up"])  # fmt: skip
def test_ranges_of_roundings_are_those_of_all_results(source: str, target: str) -> None:
    """A rounding makes no finer numbers, but for the largest one and what stands for a NaN."""
    text = f"""
unit: rounded
formats: {{a: {source}, b: f16, c: f32, d: f32}}
length: 1
roundings: {{r: "round({target})", r2: "round(f32, nearest_even)"}}
steps: {{d: "r2(exact(r(a[0]), c))"}}
"""
    unit = parse_unit(text, "rounded.yaml")
    (node,) = [one for one in walk(unit.result) if isinstance(one, Round) and isinstance(one.term, Element)]
    (found,) = ranges_of(Scope.of(unit), node) or ()
    rows = np.array([(pattern, 0, 0) for pattern in range(1 << FORMATS[source].width)], dtype=np.uint64)
    (results,) = evaluate_models([Model("rounded", unit)], rows).tolist()
    values = [abs(x) for d in results if isinstance(x := exact_value(d, FORMATS["f32"]), Fraction) and x]
    assert values
    assert all((x / Fraction(2) ** found.unit).denominator == 1 for x in values)
    tight = node.rounding.format.holds(FORMATS[source]) and node.rounding.nan_or_zero
    assert any((x / Fraction(2) ** (found.unit + 1)).denominator != 1 for x in values) or not tight


def test_the_largest_number_may_be_finer_than_what_is_rounded() -> None:
    node = Round(Element("a", Index(0)), Rounding(FORMATS["e2m1"], "down"))
    (found,) = ranges_of(Scope((("a", MULTIPLES_OF_64),)), node) or ()
    assert found.unit == FORMATS["e2m1"].emax - FORMATS["e2m1"].fraction < 6
