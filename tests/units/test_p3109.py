"""IEEE P3109's formats and saturation modes: each number of small formats, and what becomes of what is beyond them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mmaprobe.queries.kernel.datapath.ranges import Scope
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import format_named
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.oracles import node_oracle

WIDEST = 8


def decoded(bits: int, precision: int, signed: bool, extended: bool, pattern: int) -> Fraction | str:
    """The value of a code point, as the interim report 4.0 decodes it."""
    half, ones = 1 << (bits - 1), (1 << bits) - 1
    if pattern == (half if signed else ones):
        return "nan"
    if extended and pattern == (half - 1 if signed else ones - 1):
        return "inf"
    if extended and signed and pattern == ones:
        return "-inf"
    negative, field = signed and pattern > half, pattern % half if signed else pattern
    exponent, digits = divmod(field, 1 << (precision - 1))
    bias = 1 << (bits - precision - signed)
    size = (Fraction(digits, 1 << (precision - 1)) + (exponent > 0)) * Fraction(2) ** (max(exponent, 1) - bias)
    return -size if negative else size


@pytest.mark.parametrize("bits", range(3, WIDEST + 1))
@pytest.mark.parametrize("kind", ["se", "sf", "ue", "uf"])
def test_every_number_of_every_format(bits: int, kind: str) -> None:
    signed, extended = kind[0] == "s", kind[1] == "e"
    for precision in range(1, bits + (not signed)):
        fmt = format_named(f"binary{bits}p{precision}{kind}")
        found = [exact_value(pattern, fmt) for pattern in range(1 << bits)]
        assert found == [decoded(bits, precision, signed, extended, pattern) for pattern in range(1 << bits)]


@pytest.mark.parametrize("bits", range(WIDEST + 1, 16))
@pytest.mark.parametrize("kind", ["se", "sf", "ue", "uf"])
def test_wider_formats_have_names(bits: int, kind: str) -> None:
    for precision in range(1, bits + (kind[0] == "u")):
        fmt = format_named(f"binary{bits}p{precision}{kind}")
        assert (fmt.width, fmt.precision, fmt.signed) == (bits, precision, kind[0] == "s")
        assert exact_value(fmt.one, fmt) == 1
        assert (exact_value(fmt.infinity, fmt) == "inf") == (kind[1] == "e")


def unit(d: str, overflow: str, mode: str = "nearest_even") -> Model:
    text = f"""unit: ends
formats: {{a: e5m2, b: e5m2, c: {d}, d: {d}}}
length: 2
roundings: {{r: "round({d}, {mode}, overflow={overflow})"}}
steps: {{d: "r(exact(a[0:2] * b[0:2], c))"}}
"""
    return Model("ends", parse_unit(text, "ends.yaml", whole=True))


@pytest.mark.oracle
@pytest.mark.parametrize("overflow", ["sat_finite", "sat_propagate", "saturate"])
@pytest.mark.parametrize("d", ["binary8p3se", "e4m3fnuz", "e4m3", "e2m1", "f16", "e5m2"])
def test_ends(d: str, overflow: str) -> None:
    """SatFinite makes the largest number of an infinity, SatPropagate only where the format has no infinity."""
    model, rng = unit(d, overflow, str(np.random.default_rng(len(d)).choice(["nearest_even", "up", "to_odd"]))), 700
    numbers = np.random.default_rng(7)
    a, b = (numbers.choice(np.r_[0x7C, 0xFC, 0x7B, 0xFB, 0x3C, 0x7D, 0:256:7], (rng, 2)) for _ in "ab")
    c = numbers.integers(0, 1 << model.c.width, rng)
    found = evaluate_batch(model, a, b, c).tolist()
    seen = set()
    for row, (mine, *given) in enumerate(zip(found, a.tolist(), b.tolist(), c.tolist(), strict=True)):
        theirs = node_oracle.evaluate(model.unit, *given)
        value = exact_value(mine, model.d)
        assert mine == theirs if theirs != node_oracle.ANY_NAN else value == "nan", (row, given, mine, theirs)
        seen.add(value if isinstance(value, str) else "largest" if mine & model.d.largest == model.d.largest else "")
    kept = overflow != "sat_finite" and model.d.has_infinity
    assert ({"inf", "-inf"} <= seen) == kept
    assert "largest" in seen


def test_no_rule_rewrites_what_makes_numbers_of_infinities() -> None:
    for d, overflow in (("e4m3", "sat_propagate"), ("f16", "sat_finite")):
        with pytest.raises(RuleError, match="numbers of infinities"):
            Scope.of(unit(d, overflow).unit)
    assert Scope.of(unit("f16", "sat_propagate").unit)
