"""Sums of integers that wrap: claims of them at tiny formats against all elements, and what the rule refuses."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from mmaprobe.hypotheses.claim import build_claims, claims_named
from mmaprobe.hypotheses.unit_claims import WrapClaim
from mmaprobe.queries.certificates.names import CLAIM
from mmaprobe.queries.checking.folder import check_folder
from mmaprobe.queries.claims.decide import decide
from mmaprobe.queries.claims.outcome import Outcome
from mmaprobe.queries.claims.wraps import wrapping
from mmaprobe.queries.kernel.equality.plans import PlansAgree
from mmaprobe.queries.kernel.integers.factors import same_integers
from mmaprobe.queries.kernel.integers.wraps import interval_of, never_wraps
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.queries.plans.equal import prove_plans
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel import plans
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.base.yamlfile import read_yaml
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Round
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.reference import parse_plan_reference, parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.tampering import fitted

UNIT = """unit: mma.yaml
formats: {{a: {a}, b: {b}, c: int6, d: int6}}
length: {length}
roundings: {{r: "round(int6, toward_zero)"}}
steps: {{d: "r({sum})"}}
"""
WRAPS, SATURATES = "fused(a[0:{0}] * b[0:{0}], c, F=4, carry=0, least=4)", "exact(a[0:{0}] * b[0:{0}], c)"
INT8 = "ampere/mma/m16n8k32.s32.s8.s8.s32"


def unit(length: int = 2, a: str = "int3", b: str = "int3", total: str = WRAPS) -> str:
    return UNIT.format(a=a, b=b, length=length, sum=total.format(length))


def claim_of(name: str = "mine.yaml", **data: Any) -> WrapClaim:
    text = yaml.safe_dump({"id": "mine", "expect": "holds", **data})
    (claim,) = build_claims(read_yaml(text, name))
    assert isinstance(claim, WrapClaim)
    return claim


def decided(claim: WrapClaim) -> Outcome[Any]:
    return decide(claim, Options())


def integers(fmt: str, most: int | None) -> list[int]:
    bits = int(fmt[-1])
    every = range(1 << bits) if fmt[0] == "u" else range(-(1 << bits - 1), 1 << bits - 1)
    return [x for x in every if most is None or abs(x) <= most]


def leaves(a: list[int], b: list[int], count: int) -> bool:
    """Whether a sum of so many products, of any, leaves 6 bits."""
    sums = {0}
    for _ in range(count):
        sums = {total + x * y for total, x, y in product(sums, a, b)}
        if min(sums) < -32 or max(sums) > 31:
            return True
    return False


@pytest.mark.parametrize("total", [WRAPS, SATURATES], ids=["wraps", "saturates"])
@pytest.mark.parametrize(("a", "b"), [("int3", "int3"), ("uint3", "int3"), ("uint3", "uint3"), ("int4", "int3")])
def test_claims_of_tiny_integers(a: str, b: str, total: str, tmp_path: Path) -> None:
    """Every claim holds, or is refuted, as all elements have it."""
    seen = set()
    for length, most in product((1, 3), ((None, None), (None, 3), (3, 3), (1, 2))):
        (tmp_path / "mma.yaml").write_text(unit(length, a, b, total))
        within = {side: one for side, one in zip("ab", most, strict=True) if one is not None}
        sides = integers(a, most[0]), integers(b, most[1])
        for count in (1, 2, 3, 4):
            wrapped, before = leaves(*sides, count), count > 1 and leaves(*sides, count - 1)
            for wanted, true in (("never", not wrapped), ("smallest", wrapped and not before)):
                claim = claim_of(plan=str(tmp_path / "mma.yaml"), products=count, wraps=wanted, within=within)
                assert decided(claim).verdict == ("holds" if true else "refuted"), claim.text
                seen.add((wanted, true))
    assert len(seen) == 4


def test_the_shipped_claims_are_about_these_limits() -> None:
    limits = {"int8-wraps": 128 * 128, "int8-wraps-one-side": 128 * 127, "int8-wraps-digits": 127 * 127,
              "uint8-wraps": 255 * 255, "ozaki-int8-7-wraps": 127 * 127}  # fmt: skip
    for name, largest in limits.items():
        (claim, *_) = claims_named(name)
        assert isinstance(claim, WrapClaim)
        assert claim.count == (2**31 - 1) // largest + 1
    (mixed, *_) = claims_named("uint8-int8-wraps")
    assert isinstance(mixed, WrapClaim)
    assert mixed.count == 2**31 // (255 * 128) + 1  # the least of int32 is one further from 0


# -- words


def plan(words: str = "  a1: q(a)\n  b1: q(b)", total: str = "sum(mma(a1, b1))", **formats: str) -> Plan:
    named = {"a": "f16", "b": "f16", "c": "f32", "d": "f32"} | formats
    text = f"""plan: p
formats: {{{", ".join(f"{name}: {fmt}" for name, fmt in named.items())}}}
units: {{mma: mma.yaml}}
roundings:
  q: round(int3, toward_zero)
  n: round(int3, nearest_even)
  r: round(f16, nearest_even)
  s: round(f32, nearest_even)
  o: round(int6, toward_zero)
words:
{words}
steps:
  c0: o(c)
  one: {total}
  d: s(exact(s(one), c))
"""
    return parse_plan(text, "p.yaml", lambda name: Model("mma", parse_unit(unit(), name)))


@pytest.mark.parametrize(("word", "low", "high"), [
    ("q(a)", -4, 3),
    ("q(r(product(a, 1 / shared(a))))", -1, 1),
    ("q(r(product(a, 1 / shared(a, up=true))))", -1, 1),
    ("q(r(product(2**1, r(product(a, 1 / shared(a))))))", -3, 3),
    ("q(r(product(2**2, r(exact(a_part, -q(a_part))))))", -3, 3),
    ("q(r(product(2**1, r(exact(a_part, -q(a_part))))))", -1, 1),
    ("n(r(product(2**1, r(exact(a_part, -q(a_part))))))", -2, 2),
    ("q(r(product(2**2, r(exact(a_part, -n(a_part))))))", -4, 3),
    ("q(r(product(2**2, r(exact(a, -q(a))))))", -4, 3),
])  # fmt: skip
def test_intervals_of_words(word: str, low: int, high: int) -> None:
    made = plan(f"  a_part: r(product(a, 1 / shared(a)))\n  a1: {word}\n  b1: q(b)")
    found = made.chains[0].a
    assert found is not None
    assert interval_of(found, None) == (low, high)


@pytest.mark.parametrize(("fmt", "below"), [("f16", 1 - Fraction(1, 1 << 11)), ("e2m1", Fraction(1, 2))])
def test_what_is_left_of_a_number_is_below_one(fmt: str, below: Fraction) -> None:
    """The largest number of the format below 1: what is left is a multiple of the number's last place."""
    words = "  a1: q(r(exact(a, -q(a))))\n  b1: q(b)"
    word = plan(words.replace("r(", "s("), a=fmt, b=fmt).chains[0].a
    assert word is not None
    assert isinstance(word.term, Round)
    assert interval_of(word.term.term, 3) == (-below, below)


def test_slices_of_a_row() -> None:
    """The second slice of 2 bits is within 3, so that 3 products of such fit into 6 bits, and 4 do not."""
    words = "\n".join(f"  {x}_part: r(product({x}, 1 / shared({x})))\n"
                      f"  {x}1: q(r(product(2**2, r(exact({x}_part, -q({x}_part))))))" for x in "ab")  # fmt: skip
    own = plan(words)
    claim = WrapClaim(id="", about="", source="", says="nothing", expect=None, file=read_yaml("{}", ""), plan=own,
                      count=4, most_a=None, most_b=None, asked="smallest")  # fmt: skip
    assert never_wraps(own, 3, None, None).goal.statement() == "no sum of up to 3 products of p wraps"
    with pytest.raises(RuleError, match="a sum from -36 to 36 may leave -32 to 31"):
        never_wraps(own, 4, None, None)
    assert wrapping(claim, 3) is None
    found = wrapping(claim, 4)
    assert found is not None
    assert (found.exact, found.result) == (36, -28)


# -- integers in formats with exponents

FLOATS = """unit: mma.yaml
formats: {{a: {a}, b: {a}, c: {c}, d: {c}}}
length: {length}
roundings: {{r: "round({c}, {mode})"}}
steps: {{d: "r({sum})"}}
"""


def held(total: str, a: str = "e3m2", c: str = "e4m3", mode: str = "toward_zero", length: int = 1, stage: str = "",
         integers: str = "int4") -> Plan:  # fmt: skip
    """Numbers of three bits, cut to integers, and these held in `a`, are added in `c`."""
    unit = parse_unit(FLOATS.format(a=a, c=c, length=length, mode=mode, sum=total), "mma.yaml")
    text = f"""plan: held
formats: {{a: e2m1, b: e2m1, c: f32, d: f32}}
units: {{mma: mma.yaml}}
roundings: {{q: "round({integers}, toward_zero)", h: "round({a}, nearest_even)", s: "round(f32, nearest_even)",
            t: "round(e5m8b15_ieee, toward_zero)", n: "round(e5m8b15_ieee, down)"}}
words: {{a0: q(a), a1: h(a0), b0: q(b), b1: h(b0), h1: h(a), h2: h(b)}}
steps:
  one: sum({stage or "mma(a1, b1)"})
  d: s(product(2**1, one))
"""
    return parse_plan(text, "p.yaml", lambda name: Model("mma", unit))


def exact_up_to(own: Plan, most: int) -> int:
    """The largest K for which every sum of products of numbers within 3 is what it is in integers."""
    numbers = {0: 0, 1: 0, 2: 1, 3: 1, 4: 2, 5: 3, 10: -1, 12: -2, 13: -3}
    for count in range(1, most + 1):
        sides = list(product(numbers, repeat=count)) if count < 3 else [(5,) * count, (5,) * (count - 1) + (4,)]
        rows, patterns = np.array([[numbers[x] for x in row] for row in sides]), np.array(sides, dtype=np.uint8)
        found = simulate(patterns, np.ascontiguousarray(patterns.T), None, own, engine="numpy").view(np.float32)
        if not np.array_equal(found, 2 * rows @ rows.T):
            return count - 1
    return most


@pytest.mark.parametrize(("c", "mode", "total"), [
    ("e5m4b15_ieee", "toward_zero", "fused(a[0:1] * b[0:1], c, F=4)"),
    ("e5m4b15_ieee", "nearest_even", "fused(a[0:1] * b[0:1], c, F=5, zeros=-9)"),
    ("e5m4b15_ieee", "toward_zero", "fused(a[0:1] * b[0:1], c, F=3)"),
    ("e5m5b15_ieee", "up", "fused(a[0:1] * b[0:1], c, F=7, least=7)"),
    ("e5m5b15_ieee", "up", "fused(a[0:1] * b[0:1], c, F=7, least=8)"),
    ("e5m5b15_ieee", "down", "exact(a[0:1] * b[0:1], c)"),
    ("e4m3", "nearest_even", "exact(a[0:1] * b[0:1], c)"),
])  # fmt: skip
def test_sums_in_formats_with_exponents(c: str, mode: str, total: str) -> None:
    """The rule tells of no K that is too large, and of all where the format of the sum alone limits it."""
    own = held(total, c=c, mode=mode)
    largest = next(k for k in range(9) if not _told(own, k + 1))
    true = exact_up_to(own, 9)
    assert largest <= true
    if c != "e4m3" and "least=8" not in total and "F=3" not in total:
        assert largest == true == {"e5m4b15_ieee": 3, "e5m5b15_ieee": 7}[c]


def test_runs_that_are_promoted() -> None:
    """Runs of 3 are added in a wider format: 14 of their sums of at most 27 are below 2^9, and 128 products of 9 in
    f32 are exact, where a run of 4 is not."""

    def largest(every: int, how: str) -> int:
        own = held("exact(a[0:1] * b[0:1], c)", c="e5m4b15_ieee", stage=f"promote({every}, mma(a1, b1), {how})")
        return next(k for k in range(500) if not _told(own, k + 1))

    assert (largest(3, "t"), largest(4, "t"), largest(4, "s")) == (56, 3, 3)
    with pytest.raises(StopIteration):
        largest(3, "s")


@pytest.mark.parametrize(("made", "reason"), [
    (lambda: held("exact(a[0:1] * b[0:1], c)", a="e2m1"), "may leave -4 to 4"),
    (lambda: held("exact(a[0:1] * b[0:1], c)", a="f16", c="int9", mode="toward_zero"), "does not add integers"),
    (lambda: held("exact(product(a[0], b[0]), c)", stage="mma(h1, h2)"), "a word that is no integer"),
    (lambda: held("exact(product(a[0], b[0]), c)", c="e4m3b0_none"), "no normal number 1"),
    (lambda: held("exact(product(a[0], b[0]), c)", stage="promote(8, mma(a1, b1), s, share=8)"), "more than a chain"),
])  # fmt: skip
def test_integers_that_are_not_held(made: Any, reason: str) -> None:
    with pytest.raises(RuleError, match=reason):
        never_wraps(made(), 1, 3, 3)


@pytest.mark.parametrize(("left", "right", "count", "reason"), [
    ({}, {"c": "e5m5b15_ieee"}, 2, ""),
    ({}, {"c": "e5m3b15_ieee"}, 2, "may leave -16 to 16"),
    ({}, {"c": "e5m5b15_ieee", "mode": "down"}, 2, "may be -0"),
    ({}, {"c": "e5m5b15_ieee", "stage": "promote(2, promote(1, mma(a1, b1), n), s)"}, 2, "may be -0"),
    ({}, {"c": "e5m8b15_ieee", "integers": "int4"}, 2, "of other integers"),
    ({}, {"c": "e5m5b15_ieee", "stage": "then(mma(a1, b1), mma(a1, b1))"}, 1, "of other integers"),
])  # fmt: skip
def test_plans_of_the_same_integers(left: dict[str, str], right: dict[str, str], count: int, reason: str) -> None:
    total = "exact(a[0:1] * b[0:1], c)"
    one, other = (held(total, **({"a": "e3m2", "c": "e5m6b15_ieee", "integers": "int3"} | x)) for x in (left, right))
    if reason:
        with pytest.raises(RuleError, match=reason):
            same_integers(one, other, count)
    else:
        assert same_integers(one, other, count).goal == PlansAgree(one, other, 0, count)
        with pytest.raises(RuleError, match="may leave"):
            same_integers(one, other, 5)


def test_slices_in_f16_are_those_in_int8() -> None:
    one, other = (parse_plan_reference(f"plan:ozaki/{name}-7") for name in ("f16", "int8"))
    found = prove_plans(one, other, 1024)
    assert found.rules == ["K = 1024: exact sums of products of the same integers"]
    with pytest.raises(RuleError, match="may leave -16777216 to 16777216"):
        same_integers(one, other, 1025)
    assert never_wraps(one, 1040, None, None)


@pytest.mark.parametrize(("every", "most"), [(0, 72), (64, 74565), (96, 0)])
def test_slices_in_fp8_on_hopper(every: int, most: int) -> None:
    """Its sums keep 14 bits: 72 products of 225 are below 2^14, 73 are not. Promoted, sums are those of f32."""
    text = (Path(plans.__file__).parent / "library" / "ozaki" / "fp8-14.yaml").read_text()
    own = "rtx-blackwell/mma/m16n8k32.f32.e4m3.e4m3.f32"
    assert own in text
    text = text.replace(own, "hopper/wgmma/m64n8k32.f32.e4m3.e4m3")
    if every:
        text = re.sub(r"sum\((mma\([^)]*\))\)", rf"sum(promote({every}, \1, s))", text)
        text = text.replace("roundings:\n", "roundings:\n  s: round(f32, nearest_even)\n")
    hopper = parse_plan(text, "hopper.yaml", parse_reference)
    if most:
        assert never_wraps(hopper, most, None, None)
    with pytest.raises(RuleError, match="may leave"):
        never_wraps(hopper, most + 1 if most else 80, None, None)


def _told(own: Plan, count: int) -> bool:
    try:
        never_wraps(own, count, 3, 3)
    except RuleError:
        return False
    return True


# -- residues


def residues(words: str = "", total: str = "recombined(sum(mma(a1, b1)), sum(mma(a2, b2)), moduli=[3, 5])") -> Plan:
    """Integers of three bits by residues modulo 3 and 5: their sum is recombined from -7 to 7."""
    made = "\n".join(f"  {x}0: q({x})\n  {x}1: q(residue({x}0, 3))\n  {x}2: q(residue({x}0, 5))" for x in "ab")
    return plan(words or made, f"s({total})", a="e2m1", b="e2m1")


@pytest.mark.parametrize(("most_a", "most_b"), [(None, None), (1, 2), (1, 3), (2, 2), (2, 3), (0, None)])
def test_sums_of_residues(most_a: int | None, most_b: int | None) -> None:
    """The rule is as right as all elements have it: their integers are from -4 to 3, residues within 2."""
    own, most = residues(), (most_a, most_b)
    for length in range(1, 8):
        largest = length * prod(4 if bound is None else bound for bound in most)
        claim = WrapClaim(id="", about="", source="", says="nothing", expect=None, file=read_yaml("{}", ""), plan=own,
                          count=length, most_a=most_a, most_b=most_b, asked="never")  # fmt: skip
        if largest <= 7:
            assert (
                never_wraps(own, length, *most).goal.statement().startswith(f"no sum of up to {length} products of p")
            )
            assert wrapping(claim, length) is None
        else:
            with pytest.raises(RuleError, match="may leave -7 to 7"):
                never_wraps(own, length, *most)


def test_a_recombined_sum_that_is_another_one() -> None:
    """1 and 1.75 are divided by 1 and are 4 and 7: 8 * 49 is beyond half of 7 * 9 * 11."""
    made = "\n".join(f"  {x}0: w(product(2**2, r(product({x}, 1 / shared({x})))))\n" + "\n".join(
        f"  {x}{m}: w(residue({x}0, {m}))" for m in (7, 9, 11)) for x in "ab")  # fmt: skip
    text = f"""plan: p
formats: {{a: e4m3, b: e4m3, c: f32, d: f32}}
units: {{mma: {INT8.replace("s8.s8", "s8.s8")}}}
roundings: {{w: "round(int8, toward_zero)", r: "round(f16, nearest_even)", s: "round(f32, nearest_even)"}}
words:
{made}
steps:
  total: recombined(sum(mma(a7, b7)), sum(mma(a9, b9)), sum(mma(a11, b11)), moduli=[7, 9, 11])
  d: s(exact(s(total), c))
"""
    own = parse_plan(text, "p.yaml", parse_reference)
    claim = WrapClaim(id="", about="", source="", says="nothing", expect=None, file=read_yaml("{}", ""), plan=own,
                      count=8, most_a=None, most_b=None, asked="smallest")  # fmt: skip
    assert never_wraps(own, 5, None, None).goal.length == 5  # the integers are within 8
    assert wrapping(claim, 7) is None
    found = wrapping(claim, 8)
    assert found is not None
    assert (found.exact, found.result) == (8 * 49, 8 * 49 - 693)


@pytest.mark.parametrize(("old", "new", "reason"), [
    ("a2: q(residue(a0, 5))", "a9: q(product(2**1, a))\n  a2: q(residue(a9, 5))", "of different integers"),
    ("a2: q(residue(a0, 5))", "a2: q(residue(a0, 4))", "no residue modulo 5"),
    ("a2: q(residue(a0, 5))", "a2: q(a)", "no residue modulo 5"),
    ("a0: q(a)", "a0: r(a)", "no integer"),
    ("a2: q(residue(a0, 5))", "a2: q(residue(a, 5))", "no residue modulo 5"),
])  # fmt: skip
def test_what_is_no_residue(old: str, new: str, reason: str) -> None:
    made = "\n".join(f"  {x}0: q({x})\n  {x}1: q(residue({x}0, 3))\n  {x}2: q(residue({x}0, 5))" for x in "ab")
    assert old in made
    with pytest.raises(RuleError, match=reason):
        never_wraps(residues(made.replace(old, new)), 1, 1, 1)


def test_residues_that_do_not_fit() -> None:
    made = "\n".join(f"  {x}0: q({x})\n  {x}1: q(residue({x}0, 11))" for x in "ab")
    with pytest.raises(RuleError, match="a sum from -5 to 5 may leave -4 to 3"):
        never_wraps(residues(made, "recombined(sum(mma(a1, b1)), moduli=[11])"), 1, 1, 1)
    whole = "recombined(sum(then(mma(a1, b1), mma(a1, b1))), moduli=[3])"
    with pytest.raises(RuleError, match="no sum of products by one unit"):
        never_wraps(residues(made.replace("11", "3"), whole), 1, 1, 1)


# -- refusals


@pytest.mark.parametrize(("made", "reason"), [
    (lambda: plan(total="sum(mma(a1, b1), c0)"), "starts from another number"),
    (lambda: plan(total="sum(chain(mma(a1, b1), tail=mma(a1, b1)))"), "left over for a tail"),
    (lambda: plan(total="sum(interleave(2, mma(a1, b1), o))"), "more than a chain of instructions"),
    (lambda: Plan.chained(parse_reference("ieee/fma/f32"), from_zero=True), "does not add integers"),
    (lambda: Plan.chained(parse_reference(INT8)), "starts from another number"),
])  # fmt: skip
def test_what_is_refused(made: Any, reason: str) -> None:
    with pytest.raises(RuleError, match=reason):
        never_wraps(made(), 1, None, None)


@pytest.mark.parametrize(("total", "reason"), [
    ("fused(a[0:2] * b[0:2], c, F=4, carry=0)", "may wrap in fewer bits"),
    ("fused(a[0:2] * b[0:2], c, F=3, carry=1, least=4)", "may lose bits"),
    ("fused(a[0:2] * b[0:2], c, F=4, carry=0, least=4, zeros=5)", "may lose bits"),
    ("exact(a[0:2] * b[0:2])", "and c, is added once"),
    ("exact(a[0:2] * b[0:2], c, c)", "and c, is added once"),
    ("exact(a[0:2] * b[0:2], a[0] * b[0], c)", "not every product"),
    ("exact(a[0] * b[1], a[1] * b[0], c)", "not every product"),
    ("exact(product(a[0], b[0], normalised=true), product(a[1], b[1]), c)", "normalised products"),
])  # fmt: skip
def test_units_that_are_refused(total: str, reason: str) -> None:
    model = Model("mma", parse_unit(UNIT.format(a="int3", b="int3", length=2, sum=total), "mma.yaml"))
    with pytest.raises(RuleError, match=reason):
        never_wraps(Plan.chained(model, from_zero=True), 2, None, None)


def test_products_above_the_alignment_are_refused() -> None:
    """Products of int4 count with the exponent 4: of a sum in units of 2^(4 - 3) they lose their last bit."""
    text = UNIT.replace("int6", "int5").format(a="int4", b="int4", length=1, sum=WRAPS.format(1).replace("4", "3"))
    own = Plan.chained(Model("mma", parse_unit(text, "mma.yaml")), from_zero=True)
    with pytest.raises(RuleError, match="may lose bits"):
        never_wraps(own, 1, 1, 1)


def test_counts_that_are_refused() -> None:
    own = Plan.chained(parse_reference(INT8), from_zero=True)
    for given in ((-1, None, None), (1, -1, None), (1, None, -1)):
        with pytest.raises(RuleError, match="from 0 on"):
            never_wraps(own, *given)


# -- files and certificates


def test_files_that_are_wrong() -> None:
    for change in ({"within": {"a": -1}}, {"products": 0}, {"plan": "no/such"}, {"wraps": "often"}):
        with pytest.raises(InputError):
            claim_of(**({"plan": INT8, "products": 3, "wraps": "never"} | change))


@pytest.mark.parametrize("reference", [INT8, "plan:ozaki/int8-7", "plan:ozaki/int8-ii-13"])
def test_a_certificate(reference: str, tmp_path: Path) -> None:
    limit = {INT8: 131072, "plan:ozaki/int8-7": 133145}.get(reference, 12)
    data = {"id": "mine", "expect": "holds", "plan": reference, "products": limit, "wraps": "smallest"}
    decided(claim_of(**data)).certify(tmp_path, Options())
    assert {found.kind for found in check_folder(tmp_path)} == {"fine"}
    changes: tuple[dict[str, Any], ...] = ({"products": limit + 1}, {"wraps": "never"}, {"within": {"a": 127}},
                                           {"plan": "ampere/mma/m16n8k32.s32.u8.u8.s32"})  # fmt: skip
    for change in changes if reference == INT8 else changes[:1]:
        (tmp_path / CLAIM).write_text(yaml.safe_dump(data | change))
        fitted(tmp_path)
        assert "fault" in {found.kind for found in check_folder(tmp_path)}, change


def test_a_certificate_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "mma.yaml").write_text(unit())
    folder = tmp_path / "found"
    decided(claim_of(plan=str(tmp_path / "mma.yaml"), products=2, wraps="smallest")).certify(folder, Options())
    (tmp_path / "mma.yaml").unlink()
    assert {found.kind for found in check_folder(folder)} == {"fine"}


def test_plans_are_taken_as_they_start() -> None:
    assert claim_of(plan="plan:ozaki/int8-7", products=1, wraps="never").plan == parse_plan_reference(
        "plan:ozaki/int8-7"
    )


def test_what_is_said_of_sums_in_f32() -> None:
    """Such a sum is rounded, and wraps in int32."""
    for name, loss, step in (
        ("ozaki-f16-7-wraps", "can be rounded", "is rounded"),
        ("int8-wraps", "can wrap", "wraps"),
    ):
        (claim, *_) = claims_named(name)
        assert isinstance(claim, WrapClaim)
        assert f"{loss}, fewer cannot" in claim.text
        assert f"products {step}, by intervals" in str(decided(claim).asked[0])
