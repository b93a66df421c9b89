"""Slices of a shared exponent: against Python's integers, which share no code with the plans."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import frexp, ldexp
from operator import mul
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.plans.gemm import Engine, simulate
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.reference import parse_plan_reference, parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.oracles.oracle import decode
from tests.plans.carriers import Patterns, agree_in_terms, agree_on_every_input, differ

pytestmark = pytest.mark.compilers

Numbers = NDArray[np.float64]
Oracle = Callable[[list[float], list[float], float], float]
OZAKI = "plan:ozaki/int8-7"

UNIT = """
unit: tiny/mma/int4
formats: {a: int4, b: int4, c: int8, d: int8}
length: 2
roundings:
  r: round(int8, toward_zero)
steps:
  d: r(fused(a[0:2] * b[0:2], c, F=6, carry=0, least=6))
"""
TINY = """
plan: tiny-slices
formats: {a: e2m1, b: e2m1, c: f32, d: f32}
units:
  mma: mma.yaml
roundings:
  q: round(int4, toward_zero)
  r: round(f32, nearest_even)
words:
  a_part: r(product(2**1, r(product(a, 1 / shared(a)))))
  a1: q(a_part)
  a2: q(r(product(2**2, r(exact(a_part, -a1)))))
  b_part: r(product(2**2, r(product(b, 1 / shared(b, up=true)))))
  b1: q(b_part)
  b2: q(r(product(2**2, r(exact(b_part, -b1)))))
steps:
  high: sum(mma(a1, b1))
  low: sum(then(mma(a1, b2), mma(a2, b1)))
  total: r(exact(r(product(2**-3, high)), r(product(2**-5, low))))
  d: r(exact(r(product(r(product(total, shared(a))), shared(b, up=true))), c))
"""


def model_of(reference: str) -> Model:
    return Model("mma.yaml", parse_unit(UNIT, "mma.yaml")) if reference == "mma.yaml" else parse_reference(reference)


def tiny(old: str = "", new: str = "") -> Plan:
    assert old in TINY
    return parse_plan(TINY.replace(old, new) if old else TINY, "tiny.yaml", model_of, whole=True)


# -- the oracles


def sliced(row: list[float], count: int, bits: int) -> tuple[int, list[list[int]]]:
    """Twice the exponent's power of two in a row of f64, and of each number `count` slices of `bits` bits, the first of
    which has one bit less, cut from the bits of its magnitude with its sign."""
    top = max((frexp(x)[1] for x in row if x), default=1)
    found = []
    for x in row:
        n, d = abs(x).as_integer_ratio()
        whole = (
            (n << count * bits - 1) // d
            if top == 0
            else ((n << count * bits - 1 - top) // d if count * bits - 1 >= top else n // (d << top - count * bits + 1))
        )
        digits = [whole >> bits * k & (1 << bits) - 1 for k in reversed(range(count))]
        found.append([-y if x < 0 else y for y in digits])
    return top, found


def wrapped(x: int, bits: int) -> int:
    return (x + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def ozaki(row: list[float], column: list[float], c: float, count: int = 7, bits: int = 7) -> float:
    """D of one row and one column by slices of int8, added in f64: pairs of slices by their places, as ozIMMU."""
    (left, a), (right, b) = sliced(row, count, bits), sliced(column, count, bits)
    sums, first, second = 0.0, list(zip(*a, strict=True)), list(zip(*b, strict=True))
    for place in range(count):
        for i in range(place + 1):
            total = wrapped(sum(map(mul, first[i], second[place - i])), 32)
            sums += ldexp(total, 32 - bits * place)
    return sums / 2**44 * ldexp(1.0, left) * ldexp(1.0, right) + c


def inputs(rows: int, length: int, columns: int, spread: int, seed: int) -> tuple[Numbers, Numbers, Numbers]:
    random = np.random.default_rng(seed)

    def side(*shape: int) -> Numbers:
        found: Numbers = random.standard_normal(shape) * np.exp2(random.integers(-spread, spread + 1, shape))
        found[random.random(shape) < 0.05] = 0
        return found

    return side(rows, length), side(length, columns), side(rows, columns)


def through(plan: Plan, a: Numbers, b: Numbers, c: Numbers, engine: Engine) -> Numbers:
    found = simulate(a.view(np.uint64), b.view(np.uint64), c.view(np.uint64), plan, engine=engine)
    return found.view(np.float64)


def agree(oracle: Oracle, a: Numbers, b: Numbers, c: Numbers, d: Numbers, places: list[tuple[int, int]]) -> None:
    for i, j in places:
        wanted = oracle(a[i].tolist(), b[:, j].tolist(), float(c[i, j]))
        assert d[i, j].tobytes() == np.float64(wanted).tobytes(), (i, j, d[i, j], wanted)


def agree_in_a_large_product(reference: str, oracle: Oracle) -> None:
    a, b, c = inputs(1024, 1024, 1024, 3, 2)
    d = through(parse_plan_reference(reference), a, b, c, "compiled")
    random = np.random.default_rng(3)
    agree(oracle, a, b, c, d, [(int(i), int(j)) for i, j in random.integers(0, 1024, (2000, 2))])


def give_nan_in_their_rows(reference: str) -> None:
    a, b, c = inputs(2, 8, 2, 1, 5)
    a[0, 3] = np.inf
    d = through(parse_plan_reference(reference), a, b, c, "numpy")
    assert np.isnan(d[0]).all()
    assert np.isfinite(d[1]).all()


def few() -> tuple[Patterns, Patterns, Patterns]:
    """Rows of three products of e2m1, and numbers to add."""
    random = np.random.default_rng(4)
    a, b, c = random.integers(0, 16, (20, 3)), random.integers(0, 16, (20, 3)), random.integers(0, 9, 20) << 23
    return a.astype(np.uint64), b.astype(np.uint64), c.astype(np.uint64)


# -- Ozaki I


@pytest.mark.parametrize("spread", [0, 30, 300])
def test_slices_of_int8(spread: int) -> None:
    plan = parse_plan_reference(OZAKI)
    a, b, c = inputs(5, 70, 6, spread, spread)
    a[0], b[:, 0] = 0, 0
    places = list(product(range(5), range(6)))
    d = through(plan, a, b, c, "numpy")
    agree(ozaki, a, b, c, d, places)
    assert through(plan, a, b, c, "compiled").tobytes() == d.tobytes()


def test_the_oracle_sees_other_slices() -> None:
    """Fewer slices, other bits, and pairs left out give other results."""
    a, b, c = inputs(3, 40, 3, 5, 1)
    d = through(parse_plan_reference(OZAKI), a, b, c, "numpy")
    for count, bits in ((6, 7), (7, 6)):
        assert any(ozaki(a[i].tolist(), b[:, i].tolist(), float(c[i, i]), count, bits) != d[i, i] for i in range(3))


@pytest.mark.slow
def test_sums_of_many_large_slices_wrap() -> None:
    """The last slices have 7 bits: 127^2 * K is beyond int32 from K = 133,145 on, and the plan wraps as the oracle."""
    length = 1 << 18
    a = np.full((1, length), 1 - 2.0**-53)
    d = through(parse_plan_reference(OZAKI), a, a.T, np.zeros((1, 1)), "compiled")
    agree(ozaki, a, a.T, np.zeros((1, 1)), d, [(0, 0)])
    assert abs(d[0, 0] / length - 1) > 2.0**-16
    half = length // 2 - 1
    near = through(parse_plan_reference(OZAKI), a[:, :half], a.T[:half], np.zeros((1, 1)), "compiled")
    assert abs(near[0, 0] / half - 1) < 2.0**-40


@pytest.mark.slow
def test_a_large_product() -> None:
    agree_in_a_large_product(OZAKI, ozaki)


# -- by exhaustion


def tiny_oracle(a: list[int], b: list[int], c: int) -> float:
    """Of numbers of e2m1: all are small integers times 1/2."""
    x, y = ([(-1 if v.sign else 1) * int(2 * abs(v.value)) for v in (decode("e2m1", p) for p in side)]
            for side in (a, b))  # fmt: skip
    up, down = max(map(abs, x)), max(map(abs, y))
    left = 1 << up.bit_length() - 1 if up else 2  # in units of 1/2
    right = 1 << (down - 1).bit_length() if down else 2

    def digits(value: int, scale: int, bits: int) -> tuple[int, int]:
        whole = (abs(value) << bits + 2) // scale
        return tuple((-1 if value < 0 else 1) * z for z in (whole >> 2, whole & 3))  # type: ignore[return-value]

    first = [digits(v, left, 1) for v in x]
    second = [tuple(wrapped_end(z) for z in digits(v, right, 2)) for v in y]
    high = wrapped(sum(p[0] * q[0] for p, q in zip(first, second, strict=True)), 8)
    low = 0
    for i, j in ((0, 1), (1, 0)):
        low = wrapped(low + sum(p[i] * q[j] for p, q in zip(first, second, strict=True)), 8)
    return (high / 8 + low / 32) * (left / 2) * (right / 2) + float(np.uint32(c).view(np.float32))


def wrapped_end(value: int) -> int:
    return min(max(value, -8), 7)


def test_every_input_of_a_tiny_plan() -> None:
    agree_on_every_input(tiny(), tiny_oracle)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("shared(b, up=true)", "shared(b)"),
        ("1 / shared(a)", "1 / shared(a, up=true)"),
        ("round(int4, toward_zero)", "round(int4, nearest_even)"),
        ("mma(a1, b2), mma(a2, b1)", "mma(a1, b2)"),
        ("2**-5", "2**-4"),
    ],
)
def test_plans_nearby_differ(old: str, new: str) -> None:
    near = tiny(old, new) if "mma(a2" not in old else parse_plan(TINY.replace(old, new), "tiny.yaml", model_of)
    assert differ(tiny(), near)


def test_terms_and_steps() -> None:
    agree_in_terms(tiny(), model_of, *few())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1 / shared(b, up=true)", "1 / shared(a)", "a word is made of one element"),
        ("1 / shared(a)", "1 / a", "1 can be divided only by a power of two that elements share"),
        ("1 / shared(a)", "shared(c)", "unknown value 'c'"),
        ("1 / shared(a)", "shared(a, down=true)", "unknown parameter 'down'"),
    ],
)
def test_mistakes(old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tiny(old, new)


@pytest.mark.parametrize("name", ["e2m1", "e2m3", "e3m2", "e4m3"])
@pytest.mark.parametrize("up", [False, True])
@pytest.mark.parametrize("inverse", ["", "1 / "])
def test_the_power_of_every_number_of_a_format(name: str, up: bool, inverse: str) -> None:
    """That of the smallest subnormal number too, which is not the 1 of zeros."""
    text = (f"unit: x\nformats: {{a: {name}, b: f16, c: none, d: f32}}\nlength: 1\nroundings: {{r: 'round(f32)'}}\n"
            f"steps: {{d: 'r({inverse}shared(a[0:1], up={str(up).lower()}) * b[0])'}}\n")  # fmt: skip
    model = Model("x", parse_unit(text, "x.yaml"))
    terms = [decode(name, pattern) for pattern in range(1, 1 << (model.formats["a"].width - 1))]
    numbers = [float(term.value) for term in terms if term.kind == "finite"]
    powers = [ldexp(1.0, exponent - 1 + (up and part > 0.5)) for part, exponent in map(frexp, numbers)]
    a = np.arange(1, 1 + len(powers), dtype=np.uint64)[:, None]
    found = evaluate_batch(model, a, np.full_like(a, 0x3C00), np.zeros_like(a[:, 0]))
    assert found.astype(np.uint32).view(np.float32).tolist() == [1 / own if inverse else own for own in powers]


def test_rows_that_are_not_finite() -> None:
    give_nan_in_their_rows(OZAKI)


def test_the_plan_ships() -> None:
    assert Path(parse_plan_reference(OZAKI).place.partition(":")[0]).name == "int8-7.yaml"
