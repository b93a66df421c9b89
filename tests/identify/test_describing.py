"""Where a device differs from the nearest unit, in words."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mmaprobe.queries.building.describing import (
    RANDOM,
    SHAPED,
    Describer,
    Description,
    Fact,
    conditions,
    holds,
    necessary,
    smallest,
    ways,
    words,
)
from mmaprobe.queries.building.features import Feature, features_of
from mmaprobe.queries.building.shapes import Shapes
from mmaprobe.queries.search.samples import Table
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.evaluate.batch import Patterns, evaluate_models
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import nans, to_numbers
from mmaprobe.smtmodel.inputs.signature import parse_signature
from mmaprobe.smtmodel.units.unitfile import parse_unit

ASKED = parse_signature("f16,f16,f32,f32", 2)
UNIT = parse_unit(
    """unit: pair
formats: {a: f16, b: f16, c: f32, d: f32}
length: 2
roundings: {r: "round(f32, nearest_even)"}
steps:
  s: r(exact(a[0] * b[0], a[1] * b[1]))
  d: r(exact(s, c))
""",
    "pair.yaml",
)
Changed = Callable[[Patterns, Any, Any, Any], Any]


def described(changed: Changed, seconds: float = 60.0) -> Description | None:
    """What is said of a device that gives the unit's results, `changed`: a function of these, both products and c."""

    def ask(rows: Table) -> Patterns:
        a, b = (to_numbers(np.ascontiguousarray(rows[:, at : at + 2].astype(np.uint16)), FORMATS["f16"])
                for at in (0, 2))  # fmt: skip
        c = to_numbers(np.ascontiguousarray(rows[:, 4].astype(np.uint32)), FORMATS["f32"])
        with np.errstate(all="ignore"):
            products = a.astype(np.float64) * b.astype(np.float64)
            found = changed(evaluate_models([Model("pair", UNIT)], rows)[0], products[:, 0], products[:, 1], c)
        return np.where(nans(found, ASKED.d), np.uint64(ASKED.d.nan), found)

    shapes = Shapes(ASKED, seed=5)
    rows = np.concatenate([shapes.rows(kind, 200) for kind in (*RANDOM, *SHAPED)])
    return Describer(ASKED, shapes, ask, time.monotonic() + seconds).described([UNIT], rows, ask(rows))


def test_an_override_is_found_by_its_condition() -> None:
    """Tiny products beside a zero give +0: also where the unit gives +0, which refutes nothing."""

    def changed(d: Patterns, one: Any, other: Any, c: Any) -> Any:
        return np.where((np.abs(one) < 2.0**-25) & (np.abs(other) < 2.0**-25) & (c == 0), np.uint64(0), d)

    found = described(changed)
    assert found is not None
    [difference] = found.differences
    assert difference.how == "the device gives +0"
    assert {"the largest product is below 2^-25", "c is +-0"} <= {*difference.condition}
    assert found.fresh >= 20_000
    assert (found.wrong, found.inside) == (0, None)
    sentences = found.sentences()
    assert sentences[0].startswith("the device gives +0 where ")
    assert sentences[1] == f"this is right on all of {found.fresh} fresh vectors"
    assert all(0 < count < whole for _, count, whole in found.shares)


def test_a_sign_that_is_lost() -> None:
    """Zeros of a sum are positive, whatever its terms."""
    found = described(lambda d, one, other, c: np.where(d == np.uint64(1 << 31), np.uint64(0), d))
    assert found is not None
    [difference] = found.differences
    assert difference.how == "the device gives +0"
    assert 1 <= len(difference.condition) <= 2
    assert not found.wrong


def test_a_condition_that_only_has_to_hold() -> None:
    """A last bit that is inverted on about every other result, which no signal tells, if c is large: the condition only
    has to hold where they differ."""

    def changed(d: Patterns, one: Any, other: Any, c: Any) -> Any:
        odd = (d * np.uint64(2654435761) >> np.uint64(13)) & np.uint64(1) == 1
        return np.where(odd & (np.abs(c) > 2.0**100) & np.isfinite(c), d ^ np.uint64(1), d)

    found = described(changed)
    assert found is not None
    [difference] = found.differences
    assert "is at least 2^100" in difference.condition[0]
    assert found.inside is not None
    assert 0.3 * found.inside[1] < found.inside[0] < 0.95 * found.inside[1]


def test_terms_in_the_order_of_their_sizes() -> None:
    """Products that lie far below c, with opposite signs: whichever of them is larger."""
    shapes, values = Shapes(ASKED, seed=7), np.random.default_rng(2)
    rows = np.concatenate([shapes.rows(kind, 400) for kind in ("middle", "heavy")])
    rows[:, 4] = values.integers(0x3F800000, 0x60000000, len(rows))  # c from 1 to 2^65
    features = features_of(ASKED, UNIT, rows)
    side = {at: np.ldexp(1.0, features[f"product {at}"].values) for at in (0, 1)}
    opposite = features["product 0 negative"].values != features["product 1 negative"].values
    nonzero = (features["product 0 zero"].values == 0) & (features["product 1 zero"].values == 0)
    differs = opposite & nonzero & (np.maximum(side[0], side[1]) * 2.0**28 <= np.ldexp(1.0, features["c"].values))
    assert differs.sum() > 20
    found = smallest(features, differs, ~differs)
    sentences = {words(fact, features[fact.name]) for fact in found.facts}
    assert not found.wrong
    assert "the second and the third term have opposite signs" in sentences
    assert "the largest term over the second is at least 2^28" in sentences


def test_what_cancels_and_what_is_left() -> None:
    """Exact numbers say which neighbours cancel, and which sign the sum of all but the largest term has."""
    rng, asked = np.random.default_rng(4), parse_signature("f16,f16,f16,f16", 2)
    some = np.array([0, 0x8000, 0x3C00, 0xBC00, 0x3C01, 0xBC01, 0x4000, 0x0001, 0x8003, 0x0400, 0x6400, 0xE400])
    rows = some[rng.integers(0, len(some), (4000, 5))].astype(np.uint64)
    unit = parse_unit(
        "unit: u\nformats: {a: f16, b: f16, c: f16, d: f16}\nlength: 2\n"
        'roundings: {r: "round(f16, nearest_even)"}\nsteps: {d: "r(exact(a[0:2] * b[0:2], c))"}\n',
        "u.yaml",
    )
    features = features_of(asked, unit, rows)
    numbers = [[Fraction(float(x)) for x in row] for row in to_numbers(rows.astype(np.uint16), FORMATS["f16"])]

    def field(x: Fraction) -> int:
        return max(math.frexp(x)[1] - 1, -14) if x else -(1 << 20)

    for at, (a0, a1, b0, b1, c) in enumerate(numbers):
        sizes = [abs(x) for x in numbers[at]]
        assert features["zero"].values[at] == (0 in sizes)
        assert features["small"].values[at] == (min(sizes) < Fraction(1, 1 << 14))
        terms = [(a0 * b0, field(a0) + field(b0)), (a1 * b1, field(a1) + field(b1)), (c, field(c))]
        for words_of_order, key in (("", lambda one: math.frexp(one[0])[1] if one[0] else -9999),
                          ("by exponent fields, ", lambda one: one[1] if one[0] else -9999)):  # fmt: skip
            first, *rest = (value for value, _ in sorted(terms, key=key, reverse=True))
            left, what = sum(rest), f"{words_of_order}the sum of all but the largest term"
            assert features[f"{what} zero"].values[at] == (left == 0)
            if first:
                assert features[f"{what} with"].values[at] == (left * first > 0)
                assert features[f"{what} against"].values[at] == (left * first < 0)
                lowest = first / Fraction(2) ** int(
                    features[f"the last bit of {words_of_order}the largest term"].values[at]
                )
                assert lowest.denominator == 1
                assert lowest.numerator % 2
            cancel = features[f"{words_of_order}the second and the third term cancel"].values[at]
            assert cancel == (rest[0] == -rest[1] != 0)


def test_vectors_that_differ_are_parted_where_one_condition_is_wrong() -> None:
    """Three parts, each with a condition of its own, where no fact holds on all of them."""
    rng = np.random.default_rng(5)
    numbers = {name: rng.integers(-20, 20, 4000) for name in ("x", "y")}
    flags = {name: rng.integers(0, 2, 4000) for name in ("f", "g")}
    features = {name: Feature(values, f"{name} is at least {{}}", f"{name} is below {{}}", 1.0)
                for name, values in numbers.items()}  # fmt: skip
    features |= {name: Feature(values, name, f"not {name}", 1.0) for name, values in flags.items()}
    x, y, f, g = numbers["x"], numbers["y"], flags["f"] != 0, flags["g"] != 0
    differs = np.where(f, x >= 5, np.where(g, y >= 7, x < -8))
    found = conditions(features, differs, ~differs)
    assert len(found) == 3
    assert sum(one.wrong for one in found) == 0
    words_of_order = np.any([np.all([holds(fact, features) for fact in one.facts], axis=0) for one in found], axis=0)
    assert (words_of_order == differs).all()
    some = conditions(features, x >= 5, x < 5)
    assert [one.facts for one in some] == [(Fact("x", 5, True),)]


def test_two_conditions_that_only_have_to_hold() -> None:
    """Large sums saturate, and of others a bit that is cut off may change the result: each a condition of its own."""
    rng = np.random.default_rng(8)
    size, finest = rng.integers(0, 30, 4000), rng.integers(-40, 10, 4000)
    features = {"size": Feature(size, "the sum is at least 2^{}", "the sum is below 2^{}", 1.0),
                "finest": Feature(finest, "no bit lies below 2^{}", "a bit lies below 2^{}", 1.0)}  # fmt: skip
    differs = (size >= 25) | ((finest < -24) & (rng.random(4000) < 0.5))
    found = necessary(features, differs, ~differs)
    assert {frozenset(words(fact, features[fact.name]) for fact in one.facts) for one in found} == {
        frozenset(("the sum is at least 2^25",)), frozenset(("the sum is below 2^25", "a bit lies below 2^-24"))
    }  # fmt: skip
    covered = np.any([np.all([holds(fact, features) for fact in one.facts], axis=0) for one in found], axis=0)
    assert covered[differs].all()
    assert sum(one.wrong for one in found) == (covered & ~differs).sum() < 0.5 * (~differs).sum()
    alone = necessary(features, size >= 25, (size < 25) & (finest < 0))
    assert [[fact.name for fact in one.facts] for one in alone] == [["size"]]


def test_no_condition_is_made_up() -> None:
    """Of results that differ by nothing but chance nothing is said, nor of a device that does not differ."""
    chance = np.random.default_rng(1)
    assert described(lambda d, *_: np.where(chance.random(len(d)) < 0.5, d ^ np.uint64(1), d)) is None
    assert described(lambda d, *_: d) is None


@pytest.mark.parametrize(
    ("d", "own", "how"),
    [
        (0x80000000, 0, "the device gives -0"),
        (0x7FC00000, 0x3F800000, "the device gives NaN"),
        (0x3F800000, 0x7FC00000, "the device gives no NaN, the unit does,"),
        (0x3F800001, 0x3F800000, "the device gives one unit more in the last place"),
        (0xBF800000, 0xBF800001, "the device gives one unit less in the last place"),
        (0xBF800000, 0x3F800000, "the device gives the other sign"),
        (0x00000001, 0, "the device gives no zero, the unit does,"),
    ],
)
def test_ways_in_words(d: int, own: int, how: str) -> None:
    found = ways(np.array([d], dtype=np.uint64), np.array([own], dtype=np.uint64), ASKED.d)
    assert found.tolist() == [how]
