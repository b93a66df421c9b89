"""What nodes say is known of their values, held against exact values of random small units on random inputs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.rules.meanings import known_fails, negated, turn_fails
from benchmarks.rules.numbers import Evaluation, Loops, TooWide
from benchmarks.rules.units import small_unit
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Constant, Each, Element, FusedSum, GridSum, Index, Node, Repeat, Round
from mmaprobe.smtmodel.nodes.known import ZERO, Known, power
from mmaprobe.smtmodel.nodes.node import Knowledge
from mmaprobe.smtmodel.nodes.round import Rounding, Tiny
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.node_units import MODES

ROWS = 1500
UNITS = 60  # of one test


def nodes_of(node: Node, loops: Loops) -> Iterator[tuple[Node, Loops]]:
    """The nodes outside of loops with running results, for each place of ranges of terms."""
    if isinstance(node, Each):
        for place in node.places:
            yield from nodes_of(node.body, {**loops, node.level: (place, None)})
        return
    yield node, loops
    for operand in (node.start,) if isinstance(node, Repeat) else node.operands:
        yield from nodes_of(operand, loops)


def false_of(unit: Unit, rng: random.Random) -> list[str]:
    """What is false of what is known of a unit's nodes."""
    draw = np.random.default_rng(rng.randrange(1 << 30))
    sizes = {"a": unit.length, "b": unit.length, "scale_a": unit.scales, "scale_b": unit.scales, "c": 1}
    inputs = {}
    for name, fmt in unit.formats.items():
        for place in range(sizes[name]):
            zeros = draw.integers(0, 2, ROWS).astype(np.uint64) * np.uint64(fmt.sign_bit if fmt.signed else 0)
            some = draw.integers(0, 1 << fmt.width, ROWS).astype(np.uint64)
            inputs[name, place] = np.where(draw.random(ROWS) < 0.3, zeros, some)
    evaluation, plus = Evaluation(unit.formats, inputs, ROWS), inputs["c", 0] != unit.c.sign_bit
    other = negated(evaluation)
    found = []
    for unsigned, fits in ((False, False), (True, False), (False, True)):
        knowledge = Knowledge(unit.formats, frozenset({"c"} if unsigned else ()), fits=fits)
        for node, loops in nodes_of(unit.result, {}):
            value, known = evaluation.value(node, loops), knowledge.of(node)
            counts = value.finite & (plus | (not unsigned)) & (~value.fault | (not fits))
            found += [
                f"{name} of {node}" for name, wrong in known_fails(known, value).items() if (wrong & counts).any()
            ]
            if known.finite and not fits and not value.finite.all():
                found.append(f"finite of {node}")
            if known.turns is not None and not fits and turn_fails(value, other.value(node, loops), known.turns).any():
                found.append(f"turns of {node}")
    return found


@pytest.mark.parametrize("seed", range(4))
def test_what_is_known_is_true(seed: int) -> None:
    rng, seen = random.Random(seed), 0
    for _ in range(UNITS):
        unit = small_unit(rng)
        try:
            assert false_of(unit, rng) == []
            seen += 1
        except TooWide:
            continue
    assert seen > UNITS / 2


@pytest.mark.parametrize("kind", [partial(FusedSum, fraction_bits=2), partial(GridSum, fraction_bits=(2,))])
def test_a_sum_of_nothing_but_a_minus_zero_may_be_one(kind: Callable[..., Node]) -> None:
    unit = small_unit(random.Random(1))
    assert (
        false_of(replace(unit, result=Round(kind((Constant(negative=True),)), Rounding(unit.d))), random.Random(2))
        == []
    )


ROUNDED = "r(exact(a[0] * b[0], c))"
FIXED = {
    "a product of zeros of both signs": "r(exact(-0 * +0))",
    "a sum with a sticky bit": "r(fused(a[0] * b[0], c, F=0, sticky=true))",
    "a loop whose results get finer": "repeat(k in range(2), c, r(r(acc) * a[k]))",
    "a sum with as many bits as lie between its grid and its top": "r(exact(a[0], a[1], a[2], a[3]))",
    "negative terms that are all cut to zero": "r(fused(a[0], c, F=2, least=8))",
    "what a rounding that saturates leaves": f"r(exact({ROUNDED}, number(0xb8, e4m3) * s({ROUNDED})))",
    "numbers of one sign that wrap": "r(fused(relu(a[0]), relu(a[1]), F=1, carry=0, least=1))",
    "numbers of one sign that are cut": "r(fused(number(0x3f, e4m3), relu(a[1]), F=0))",
    "negative terms that wrap, and their negative": "r(exact(fused(a[0], a[1], F=1, carry=0), p(exact(a[2], c))))",
    "negative terms that wrap, scaled, and their negative": (
        "r(exact(scale(fused(a[0], a[1], F=1, carry=0), number(0x38, e4m3), number(0x38, e4m3)), p(exact(a[2], c))))"
    ),
    "a sum on a grid of zeros times NaNs": "r(grid(+0 * number(0x7f, e4m3), F=[2]))",
}


@pytest.mark.parametrize("name", FIXED)
def test_what_random_units_have_seldom(name: str) -> None:
    unit = parse_unit(
        "unit: fixed\nformats: {a: e2m1, b: e2m1, c: e2m1, d: e4m3}\nlength: 4\nroundings:\n"
        '  r: "round(e4m3, nearest_even)"\n  p: "round(e4m3, nearest_even, zero=positive)"\n'
        '  s: "round(e2m1, toward_zero, overflow=saturate)"\n'
        f"steps:\n  d: {FIXED[name]}\n", "fixed.yaml")  # fmt: skip
    assert false_of(unit, random.Random(4)) == []


NEAR = """unit: near
formats: {{a: e2m1, b: e2m1, c: {fmt}, d: {fmt}}}
length: 1
inputs: {{a: keep, b: keep, c: zero}}
roundings: {{r: "round({fmt}, nearest_even)"}}
steps:
  d: r(exact(a[0] * b[0], c))
"""


@pytest.mark.parametrize(("fmt", "far"), [("e4m3", True), ("e4m4_none", False)])
def test_a_sum_of_a_number_and_what_is_coarse_enough_is_never_tiny(fmt: str, far: bool) -> None:
    """Products are multiples of 2^-2, which is 2^(emin + p) of e4m3, and half of that of e4m4."""
    unit = parse_unit(NEAR.format(fmt=fmt), "near.yaml")
    a, b, c = (side.ravel().astype(np.uint64) for side in np.meshgrid(range(16), range(16), range(1 << unit.c.width)))
    found = evaluate_batch(Model("near", unit), a[:, None], b[:, None], c) & np.uint64(unit.d.sign_bit - 1)
    tiny = (found > 0) & (found < 1 << unit.d.fraction)
    assert Knowledge(unit.formats).of(unit.result).never_tiny == far == (not tiny.any())


WHOLE = """unit: whole
formats: {{a: {a}, b: e2m1, c: f32, d: f32}}
length: 1
roundings: {{w: "round(int6, toward_zero)", n: "round(int4, nearest_even)", f: "round(f32, up)"}}
steps:
  d: f({step})
"""
INTEGERS = (
    "w(a[0])", "n(a[0])", "relu(n(a[0]))", "n(a[0]) * b[0]", "n(n(a[0]) * n(b[0]))", "residue(n(a[0]), 6)",
    "residue(a[0], 5)", "exact(a[0], -w(a[0]))", "exact(a[0], -n(a[0]))", "exact(n(a[0]), -w(n(a[0])))",
    "exact(relu(a[0]), relu(n(a[0])))", "exact(f(2**1 * a[0]), -w(f(2**1 * a[0])))",
    "exact(w(a[0]), n(b[0]), number(0xb8, e4m3))", "exact(f(2**-2 * a[0]), -w(f(2**-2 * a[0])))",
    "exact(f(2**4 * b[0]), -w(f(2**4 * b[0])))", "exact(b[0], -w(b[0]))", "exact(relu(b[0]), -n(relu(b[0])))",
    "recombined(residue(a[0], 4), residue(b[0], 3), moduli=[4, 3])", "exact(a[0], number(0xc0, e4m3), n(a[0]))",
    "exact(f(2**4 * a[0]), number(0xf8, e4m3b20_none) * n(f(2**4 * a[0])))",
)  # fmt: skip


@pytest.mark.parametrize("a", ["int5", "e3m2", "e2m1", "e3m1_ieee"])
def test_what_is_known_of_integers(a: str) -> None:
    """On all inputs; of most nodes no interval is narrower than the one that is known."""
    fmt, near = format_named(a), 0
    rows = np.array([*product(range(1 << fmt.width), range(16))], dtype=np.uint64)
    for step in INTEGERS:
        unit = parse_unit(WHOLE.format(a=a, step=step), "whole.yaml")
        assert isinstance(unit.result, Round)
        known = Knowledge(unit.formats).of(unit.result.term)
        found = evaluate_batch(Model("whole", unit), rows[:, :1], rows[:, 1:], rows[:, 0] * 0)
        values = {exact_value(int(x), unit.d) for x in np.unique(found)}
        finite = [Fraction(0 if x == "-0" else x) for x in values if x == "-0" or isinstance(x, Fraction)]
        assert known.interval is not None
        low, high = known.interval
        assert low <= min(0, *finite), (step, min(finite), low)
        assert max(0, *finite) <= high, (step, max(finite), high)
        assert not known.finite or len(finite) == len(values)
        assert known.grid is None or all((x / power(known.grid)).denominator == 1 for x in finite), step
        near += (low, high) == (min(0, *finite), max(0, *finite))
    assert near >= len(INTEGERS) / 2


def test_each_thing_is_known_of_some_node() -> None:
    """Else the test above would ask nothing of it."""
    rng, seen = random.Random(9), set[str]()
    for _ in range(200):
        unit = small_unit(rng)
        knowledge = Knowledge(unit.formats)
        for node, _ in nodes_of(unit.result, {}):
            known = knowledge.of(node)
            seen |= {name for name, value in vars(known).items() if value not in (None, False, ())}
    assert seen == set(vars(ZERO))


@pytest.mark.parametrize("name", ["_is_far", "nan_or_zero"])
def test_a_broken_statement_is_found_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = property(lambda self: True) if name == "nan_or_zero" else lambda self, terms, normal: True
    monkeypatch.setattr(Rounding, name, broken)
    rng = random.Random(3)
    for _ in range(150):
        with suppress(TooWide):
            if false_of(small_unit(rng), rng):
                return
    pytest.fail("no statement was false")


def test_nothing_is_known_of_a_node_that_says_nothing() -> None:
    class Strange(Round):
        def known(self, knowledge: Knowledge, operands: object) -> Known:
            return Node.known(self, knowledge, ())

    unit = small_unit(random.Random(1))
    assert Knowledge(unit.formats).of(Strange(unit.result, Rounding(unit.d))) == Known()


WIDE = Format("wide", 5, 4, 15, "ieee")
KINDS = ("e2m1", "e3m2_ieee", "e3m1_all_ones", "e2m2_negative_zero", "e3m1_extended", "e3m0_extended", "e2m2b0_none")


def as_floats(patterns: NDArray[np.uint64], fmt: Format) -> NDArray[np.float64]:
    return np.array([float(exact_value(int(pattern), fmt)) for pattern in patterns])


def is_known(x: NDArray[np.float64], known: Known) -> NDArray[np.bool_]:
    """Whether numbers are such that this is known of them."""
    assert known.grid is not None
    assert known.bits is not None
    assert known.largest is not None
    whole = np.ldexp(x, -known.grid)
    digits = np.ldexp(np.frexp(x)[0], known.bits)
    sized = (whole == np.rint(whole)) & (digits == np.rint(digits)) & (np.abs(x) <= float(known.largest))
    return np.where(np.isfinite(x), sized, not known.finite)


@pytest.mark.parametrize("subnormals", ["keep", "flush_after", "flush_before"])
@pytest.mark.parametrize("name", KINDS)
def test_a_rounding_keeps_what_it_says(name: str, subnormals: Tiny) -> None:
    """All numbers of all sizes about the format's, in every mode: none is changed, or none becomes zero."""
    fmt, kept, fine = format_named(name), 0, 0
    rows = np.arange(1 << WIDE.width, dtype=np.uint64)[:, None]
    x = as_floats(rows[:, 0], WIDE)
    numbers = as_floats(np.arange(1 << fmt.width, dtype=np.uint64), fmt)
    for mode in MODES:
        nan = (1 if mode == "up" else fmt.nan) if fmt.has_nan else None
        how = Rounding(fmt, mode, "saturate" if mode == "to_odd" else "ieee", subnormals, nan=nan)
        unit = Unit(WIDE, WIDE, fmt, 1, Round(Element("a", Index(0)), how))
        y = as_floats(evaluate_batch(Model("one", unit), rows, rows * 0, rows[:, 0] * 0), fmt)
        same = np.where(np.isnan(x), np.isnan(y), (x == y) & (np.signbit(x) == np.signbit(y)))
        lost = (y == 0) & (x != 0) & np.isfinite(x)
        for g, b, t, finite in product(
            range(fmt.emin - fmt.fraction - 1, fmt.emin + 2), range(1, 5), range(fmt.emax - 2, fmt.emax + 3), (0, 1)
        ):
            most = (2 - power(-WIDE.fraction)) * power(t - 1)
            known = Known(grid=g, bits=b, interval=(-most, most), finite=bool(finite))
            given = is_known(x, known)
            assert not how.keeps(known) or same[given].all(), (how, known)
            assert not how.keeps_nonzero(known) or not lost[given].any(), (how, known)
            kept, fine = kept + how.keeps(known), fine + bool(same[given].all())
        own = np.isin(x, numbers) & ~((x == 0) & np.signbit(x) & (not fmt.has_negative_zero))
        own |= np.isnan(x) & fmt.has_nan
        for large in (False, True):
            known = replace(Known.number(frozenset({fmt})), never_tiny=large)
            given = own & ~(large & (x != 0) & (np.abs(x) < 2.0**fmt.emin))
            assert how.keeps(known) == same[given].all(), (how, known)
    assert 3 * kept >= fine or not fmt.has_negative_zero
    assert (kept > 0) == fmt.has_negative_zero
