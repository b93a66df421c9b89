"""The sentences of conditions against all inputs of small units, in exact numbers: of integers, of scaled terms, of
sums that wrap, of terms that are rounded off or have floors, and of the one bit that a term loses."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mmaprobe.queries.covering.cover import Covering
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import format_named
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.units.unitfile import parse_unit

Rows = list[tuple[int, ...]]
FLOATS = "a: e2m1_ieee, b: e2m1_ieee, c: e3m2_ieee, d: e3m1_ieee"
INTEGERS = "a: int4, b: int4, c: int4, d: int4"
ONE, HALF, TWO, THREE, INFINITY, NAN = 2, 1, 4, 5, 6, 7  # patterns of e2m1_ieee
TINY, UNIT = 1, 12  # of e3m2_ieee: 2^-4 and 1


def met(
    steps: str, rows: Rows, formats: str = FLOATS, more: str = "", how: str = "nearest_even"
) -> dict[str, set[int]]:
    """By condition, the places of those rows that reach it. What the result hangs on is left out."""
    text = f"unit: small\nformats: {{{formats}}}\nlength: 1\n{more}"
    text += f"roundings: {{r: 'round({formats.split()[-1]}, {how})'}}\nsteps: {{{steps}}}\n"
    covering = Covering(Model("small", parse_unit(text, "small.yaml")), pairs=False, changes=[])
    matrix = covering._hits(np.array(rows, dtype=np.uint64), np.arange(len(covering.singles)), None)
    return {str(one): {*np.flatnonzero(matrix[:, place]).tolist()} for place, one in enumerate(covering.singles)}


def numbers(name: str) -> dict[int, Fraction]:
    """The finite numbers of a format by their patterns."""
    fmt = format_named(name)
    values = {pattern: exact_value(pattern, fmt) for pattern in range(1 << fmt.width)}
    values = {pattern: Fraction(0) if value == "-0" else value for pattern, value in values.items()}
    return {pattern: value for pattern, value in values.items() if isinstance(value, Fraction)}


def first(value: Fraction) -> int:
    """The exponent of the first one of a number that is not zero."""
    found = abs(value).numerator.bit_length() - value.denominator.bit_length()
    return found if abs(value) >= Fraction(2) ** found else found - 1


@pytest.mark.parametrize(("step", "row", "case", "reached"), [
    ("r(fused(a[0] * b[0], c, F=0, rounding=up))", (TWO, TWO, TINY), "term c: +vanishes", False),
    ("r(fused(a[0] * b[0], c, F=0, rounding=up))", (TWO, TWO, TINY), "term c: +loses bits", True),
    ("r(fused(a[0] * b[0], c, F=0, rounding=down))", (TWO, TWO, TINY), "term c: +vanishes", True),
    ("r(fused(a[0] * b[0], c, F=3, floors=[2, none]))", (ONE, ONE, TINY), "term 0: the largest alone", False),
    ("r(fused(a[0] * b[0], c, F=3, floors=[2, none]))", (TWO, TWO, TINY), "term 0: the largest alone", True),
    ("r(fused(a[0] * b[0], a[0] * b[0], a[0] * b[0], c, F=0, carry=0))", (THREE, THREE, 0),
     "carry bits: the sum is one power of two too large", False),
    ("r(fused(a[0] * b[0], a[0] * b[0], c, F=0, carry=0))", (THREE, TWO, 0),
     "carry bits: the sum is one power of two too large", True),
    ("r(fused(a[0] * b[0], c, F=0, zeros=3))", (ONE, 0, UNIT), "sum: zero, of terms that are not all zero", True),
    ("r(grid(c, r(c), F=[0, 3]))", (ONE, ONE, UNIT), "term c: the largest alone", True),
    ("r(grid(c, r(c), F=[0, 3]))", (ONE, ONE, UNIT), "term c(2): the largest alone", False),
])  # fmt: skip
def test_terms_are_what_is_said_of_them(step: str, row: tuple[int, ...], case: str, reached: bool) -> None:
    used = "" if "a[0]" in step else "ignored: [0]\n"
    assert (met(f'd: "{step}"', [row], more=used)[f"d: {case}"] == {0}) == reached


def test_integers_have_a_largest_a_least_and_no_subnormal_number() -> None:
    rows = [*product(range(16), range(16), (0, 7, 8, 15))]
    cases = met('d: "r(exact(a[0] * b[0], c))"', rows, INTEGERS)
    value = numbers("int4")
    totals = [value[a] * value[b] + value[c] for a, b, c in rows]
    said = {"an exact zero": (0, 0), "one": (1, 1), "the largest, exact": (7, 7), "the least, exact": (-8, -8),
            "one beyond the largest": (8, 8), "one beyond the least": (-9, -9), "two beyond the largest": (9, 9),
            "far beyond the largest": (10, 99), "far beyond the least": (-99, -11)}  # fmt: skip
    for case, (low, high) in said.items():
        own = {place for place, total in enumerate(totals) if low <= total <= high or (case == "one" and total == -1)}
        assert cases[f"d: range: {case}"] == own, case
    assert not [case for case in cases if re.search("d: range: .*(normal|binade|exponent)", case)]
    for case, places in cases.items():
        if case.startswith("d: rounding: ") and ("half" in case):
            assert not places, case


def test_a_product_of_integers_has_a_significand_of_two_or_more_where_it_is() -> None:
    """An integer of N bits counts with the exponent N - 2."""
    rows = [*product(range(16), range(16), (0,))]
    cases, value = met('d: "r(exact(a[0] * b[0], c))"', rows, INTEGERS), numbers("int4")
    sizes = [value[a] * value[b] / 16 for a, b, _ in rows]
    assert cases["product: product 0: +significand of 2 or more"] == {k for k, size in enumerate(sizes) if size >= 2}
    assert cases["product: product 0: +significand from 1 to 2"] == {k for k, x in enumerate(sizes) if 1 <= x < 2}
    assert cases["product: product 0: -significand below 1"] == {k for k, size in enumerate(sizes) if -1 < size < 0}


def test_a_nan_is_scaled_as_no_zero_and_no_infinity() -> None:
    formats = f"scale: ue2m1_ieee, {FLOATS}"
    rows = [(INFINITY, 0, 0, ONE, ONE), (INFINITY, NAN, 0, ONE, ONE), (INFINITY, ONE, 0, ONE, ONE),
            (ONE, 0, 0, ONE, ONE), (ONE, ONE, 0, 0, ONE), (INFINITY, ONE, 0, ONE, 0), (ONE, 0, 0, 0, ONE)]  # fmt: skip
    cases = met('d: "r(exact(scale(a[0] * b[0], scale_a[0], scale_b[0]), c))"', rows, formats, more="scale_block: 1\n")
    said = {case.removeprefix("scale: scale: "): places for case, places in cases.items() if "scale: scale" in case}
    assert said == {
        "a factor is NaN": set(), "a factor is zero, and the term is not": {4, 5},
        "infinity times a factor of zero": {5}, "of zero, and no factor is zero": {3},
        "of an infinity, and no factor is zero": {2},
    }  # fmt: skip


def test_a_scaled_sum_of_infinities_of_both_signs_is_no_infinity() -> None:
    formats = f"scale: ue2m1_ieee, {FLOATS}"
    step = 'd: "r(scale(exact(a[0] * b[0], c), scale_a[0], scale_b[0]))"'
    cases = met(step, [(INFINITY, ONE, 60, ONE, ONE), (INFINITY, ONE, 0, ONE, ONE)], formats, more="scale_block: 1\n")
    assert cases["scale: scale: of an infinity, and no factor is zero"] == {1}


@pytest.mark.parametrize("step", ["fused(a[0] * b[0], c, F=3, rounding=up)", "fused(a[0] * b[0], c, F=2, sticky=true)",
                                  "grid(a[0] * b[0], c, F=[3, 1], rounding=up)",
                                  "fused(a[0] * b[0], c, F=3, sticky=true, floors=[3, none])"])  # fmt: skip
def test_the_one_bit_that_a_term_loses_is_where_it_is_said(step: str) -> None:
    """Its place below the term's first one."""
    factors, addends = numbers("e2m1_ieee"), numbers("e3m2_ieee")
    rows = [*product(factors, factors, addends)]
    seen = 0
    for case, places in met(f'd: "r({step})"', rows).items():
        said = re.fullmatch("d: one bit lost of . term (0|c): ([0-9]+) places below its first one, decides", case)
        for a, b, c in (rows[place] for place in places) if said else ():
            value = addends[c] if said[1] == "c" else factors[a] * factors[b]
            lowest = Fraction(value.numerator & -value.numerator, value.denominator)
            assert first(value) - first(lowest) == int(said[2]), (case, a, b, c)
            seen += 1
    assert seen > 20


@pytest.mark.parametrize("how", ["up, overflow=saturate", "nearest_even, subnormals=flush_after"])
def test_no_bit_decides_a_result_that_is_the_largest_or_zero_without_it_too(how: str) -> None:
    factors, addends = numbers("e2m1_ieee"), numbers("e3m2_ieee")
    rows = [*product(factors, factors, addends)]
    totals = [factors[a] * factors[b] + addends[c] for a, b, c in rows]
    alike = {place for place, total in enumerate(totals)
             if (total >= 16 if "saturate" in how else 0 < abs(total) < Fraction(3, 16))}  # fmt: skip
    cases = met('d: "r(exact(a[0] * b[0], c))"', rows, how=how)
    deciding = {case: places for case, places in cases.items() if "decides" in case}
    assert len(alike) > 10
    assert any(deciding.values())
    assert not [case for case, places in deciding.items() if places & alike]


@pytest.mark.parametrize("mode", ["a", "b", "c"])
def test_random_bits_that_are_just_enough_are_the_least_that_raise(mode: str) -> None:
    """With one less they would not raise, and just too few would with one more."""
    formats, step = f"{FLOATS}, random: uint3", 'd: "r(exact(a[0] * b[0], c), random)"'
    formats = formats.replace("d: e3m1_ieee, random: uint3", "random: uint3, d: e3m1_ieee")
    factors, addends = numbers("e2m1_ieee"), numbers("e3m2_ieee")
    rows = [*product(factors, factors, addends, range(8))]
    cases = met(step, rows, formats, how=f"stochastic_{mode}")
    enough, few = set[int](), set[int]()
    for place, (a, b, c, random) in enumerate(rows):
        total = abs(factors[a] * factors[b] + addends[c])
        if not total:
            continue
        share = total / Fraction(2) ** (max(first(total), -2) - 1) % 1 * 8
        drawn = {"a": share // 1, "b": (share * 2 // 1 + 1) / 2, "c": Fraction(round(share))}[mode] + random
        enough |= {place} if 8 <= drawn < 9 else set()
        few |= {place} if 7 <= drawn < 8 else set()
    assert len(enough) > 100
    assert cases["d: random bits: just enough to raise"] == enough
    assert cases["d: random bits: just too few to raise"] == few


@pytest.mark.parametrize("formats", ["a: e2m1_ieee, b: e2m1, c: e2m1", "a: e2m1, b: e2m1, c: e2m2b0_ieee"])
def test_one_bit_of_an_input_is_above_another_term_where_both_are_numbers(formats: str) -> None:
    """The other term may be one of subnormal factors, and is no infinity."""
    kinds = formats.split(": ")[1:]
    sides = [numbers(kind.split(",")[0]) for kind in kinds]
    rows = [*product(*(range(1 << format_named(kind.split(",")[0]).width) for kind in kinds))]
    addend = format_named(kinds[2])
    cases = met('d: "r(exact(a[0] * b[0], c))"', rows, f"{formats}, d: e3m2_ieee")
    for bit in range(addend.fraction):
        wanted = set()
        for place, row in enumerate(rows):
            a, b, c = (side.get(pattern) for side, pattern in zip(sides, row, strict=True))
            if a and b and c and row[2] & ~addend.sign_bit == 1 << bit and first(c) > first(a * b):
                wanted.add(place)
        assert wanted
        assert cases[f"c: one bit: subnormal, bit {bit} alone, above another term"] == wanted
    beside = [places for case, places in cases.items() if case.endswith("above another term")]
    assert all(pattern in side for places in beside for place in places
               for side, pattern in zip(sides, rows[place], strict=True))  # fmt: skip
