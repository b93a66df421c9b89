"""Exact sums and errors in fixed point: against rationals, and symbolic against executable."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaprobe.smtmodel.algorithms import exact, fixed
from mmaprobe.smtmodel.algorithms.exact import Window
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.plans.dot import RESULT, Dot
from mmaprobe.smtmodel.tables.reference import parse_plan_path
from tests.oracles.algorithm_oracle import exact as oracle_sum
from tests.oracles.oracle import decode, floor_log2
from tests.oracles.termeval import evaluate_terms

F32 = FORMATS["f32"]
WINDOWS = [Window((0, 0), (0, 0), (-30, -20)), Window((-3, 5), (-4, 4), (-8, 9)), Window((-10, 3), (0, 2), (-40, 8))]


def at_most(x: exact.Fixed, y: exact.Fixed, factor: int) -> Bit:
    """x <= factor * y, as claims are evaluated."""
    return ~fixed.less(fixed.multiply(y, fixed.number(y.bits.carrier, factor)), x)


def drawn(window: Window, count: int, length: int, rng: np.random.Generator) -> list[NDArray[np.uint64]]:
    def side(shape: tuple[int, ...], bounds: tuple[int, int]) -> NDArray[np.uint64]:
        exponent = rng.integers(bounds[0] + 127, bounds[1] + 128, shape, dtype=np.uint64) << np.uint64(23)
        rest = rng.integers(0, 1 << 23, shape, dtype=np.uint64) | rng.integers(
            0, 2, shape, dtype=np.uint64
        ) << np.uint64(31)
        return np.where(rng.random(shape) < 0.1, np.uint64(0), exponent | rest)

    a, b, c = side((count, length), window.a), side((count, length), window.b), side((count,), window.c)
    pairs = length // 2  # in half of the rows products cancel but for a last bit
    first = a[::2, 0 : 2 * pairs : 2]
    a[::2, 1::2][:, :pairs] = first ^ np.uint64(1 << 31) ^ (first != 0).astype(np.uint64)
    b[::2, 1::2][:, :pairs] = b[::2, 0 : 2 * pairs : 2]
    return [a, b, c]


def lanes(sides: list[NDArray[np.uint64]]) -> tuple[list[Bits], list[Bits], Bits]:
    carrier = ArrayCarrier()
    a, b = ([carrier.lanes(np.ascontiguousarray(s[:, k]), 32) for k in range(s.shape[1])] for s in sides[:2])
    return a, b, carrier.lanes(sides[2], 32)


def quantities(a: list[Bits], b: list[Bits], c: Bits, window: Window) -> dict[str, Any]:
    markidis, ootomo = (parse_plan_path(f"{name}@unit=ampere/mma/m16n8k8.f32.tf32.tf32.f32,split=toward_zero")
                        for name in ("markidis", "ootomo-yokota"))  # fmt: skip
    total = exact.exact_sum(a, b, c, F32, F32, window)
    total = exact.Fixed(total.bits.pad(23), total.unit - 23)
    d = [Dot(plan, a, b, c).all_steps()[RESULT] for plan in (markidis, ootomo)]
    p, q = (exact.in_units(x, F32, total) for x in d)
    errors = [exact.magnitude(fixed.subtract(x[0], total)) for x in (p, q)]
    return {"total": total, "p": p[0], "q": q[0], "fits": p[1] & q[1], "closer": exact.closer(p[0], q[0], total),
            "ulp": exact.ulp(total, F32), "errors": errors, "d": d,
            "small": at_most(errors[0], exact.ulp(total, F32), 3)}  # fmt: skip


def truths(bit: Any, count: int) -> list[bool]:
    return [bool(x) for x in np.broadcast_to(bit.node, (count,))]


def ulp_of(x: Fraction) -> Fraction:
    return Fraction(2) ** (max(floor_log2(abs(x)), -126) - 23 if x else -149)


@pytest.mark.parametrize("window", WINDOWS)
def test_rationals(window: Window) -> None:
    count = 200
    sides = drawn(window, count, 5, np.random.default_rng(7))
    a, b, c = lanes(sides)
    with np.errstate(over="ignore"):
        found = quantities(a, b, c, window)
        admitted = [exact.admitted(x, F32, bounds) for side, bounds in ((a, window.a), (b, window.b)) for x in side]
    assert all(all(truths(bit, count)) for bit in admitted)
    totals, ulps = found["total"].numbers(count), found["ulp"].numbers(count)
    errors = [error.numbers(count) for error in found["errors"]]
    fits, closer, small = (truths(found[name], count) for name in ("fits", "closer", "small"))
    for k, row in enumerate(zip(*(side.tolist() for side in sides), strict=True)):
        expected = oracle_sum("f32", row[0], row[1], decode("f32", row[2]))
        assert totals[k] == expected
        values = [decode("f32", int(x.node[k])).value for x in found["d"]]
        assert fits[k] == all(v % Fraction(2) ** found["total"].unit == 0 for v in values)
        if not fits[k]:
            continue
        assert [error[k] for error in errors] == [abs(v - expected) for v in values]
        assert closer[k] == (abs(values[0] - expected) < abs(values[1] - expected))
        if expected:
            assert ulps[k] == ulp_of(expected)
            assert small[k] == (abs(values[0] - expected) <= 3 * ulp_of(expected))
    assert sum(fits) > count * 0.9
    assert 5 < sum(closer) < count


def test_symbolic_gives_the_same() -> None:
    window, count, length = WINDOWS[1], 40, 2
    sides = drawn(window, count, length, np.random.default_rng(8))
    carrier = TermCarrier()
    a, b = ([carrier.symbol(f"{name}{k}", 32) for k in range(length)] for name in "ab")
    symbolic = quantities(a, b, carrier.symbol("c", 32), window)
    with np.errstate(over="ignore"):
        ours = quantities(*lanes(sides), window)
    names = ("total", "ulp", "p", "q")
    values = {f"{name}{k}": sides[i][:, k] for i, name in enumerate("ab") for k in range(length)}
    roots = [symbolic[name].bits.node for name in names] + [symbolic[name].node for name in ("fits", "closer", "small")]
    found = evaluate_terms(roots, {**values, "c": sides[2]})
    for name, column in zip(names, found, strict=False):
        width, scale = ours[name].bits.width, Fraction(2) ** ours[name].unit
        signed = [int(x) - (1 << width if int(x) >> (width - 1) else 0) for x in column]
        assert [x * scale for x in signed] == ours[name].numbers(count), name
    for name, column in zip(("fits", "closer", "small"), found[4:], strict=True):
        assert [bool(x) for x in column] == truths(ours[name], count)


def test_what_is_not_admitted() -> None:
    carrier = ArrayCarrier()
    for value, inside in ((1.0, True), (1.99, True), (0.99, False), (2.0, False), (-1.5, True), (0.0, True),
                          (np.inf, False), (np.nan, False), (1e-40, False)):  # fmt: skip
        pattern = carrier.lanes(np.array([value], dtype=np.float32).view(np.uint32), 32)
        assert truths(exact.admitted(pattern, F32, (0, 0)), 1) == [inside]


def test_results_that_do_not_fit() -> None:
    one = ArrayCarrier().lanes(np.array([1.0], dtype=np.float32).view(np.uint32), 32)
    total = exact.exact_sum([one], [one], one, F32, F32, Window((0, 0), (0, 0), (0, 0)))
    for value, fits in ((1.5, True), (-2.0, True), (0.0, True), (2.0**40, False), (2.0**-60, False), (np.inf, False),
                        (np.nan, False), (2.0**-46, True), (1.5 * 2.0**-46, False), (1e-42, False)):  # fmt: skip
        pattern = ArrayCarrier().lanes(np.array([value], dtype=np.float32).view(np.uint32), 32)
        number, known = exact.in_units(pattern, F32, total)
        assert truths(known, 1) == [fits], value
        assert not fits or number.numbers(1) == [Fraction(value)]


@pytest.mark.parametrize("bounds", [(1, 0), (-127, 0), (0, 128)])
def test_windows_without_numbers(bounds: tuple[int, int]) -> None:
    with pytest.raises(ParameterError, match="exponents"):
        Window(bounds, (0, 0), (0, 0)).check(F32, F32)


def test_small_numbers_exhaustively() -> None:
    """Distances and ties, over all triples of 4-bit numbers; ulps of a small format, subnormals and zero included."""
    carrier = ArrayCarrier()
    values = np.arange(-8, 8)
    triple = [side.ravel() for side in np.meshgrid(values, values, values)]
    p, q, x = (exact.Fixed(carrier.lanes((side & 15).astype(np.uint64), 4), 0) for side in triple)
    with np.errstate(over="ignore"):
        found = exact.closer(p, q, x)
        gap = exact.magnitude(fixed.subtract(p, x))
        bounded = at_most(gap, exact.magnitude(q), 3)
    distance = abs(triple[0] - triple[2])
    assert np.array_equal(found.node, distance < abs(triple[1] - triple[2]))
    assert gap.numbers(len(distance)) == distance.tolist()
    assert np.array_equal(bounded.node, distance <= 3 * abs(triple[1]))
    fmt = FORMATS["e2m1"]  # spacing 1/2 below 2, then 1 (below 4) and 2
    sizes = np.arange(-64, 64)  # in units of 1/16
    with np.errstate(over="ignore"):
        ulps = exact.ulp(exact.Fixed(carrier.lanes((sizes & 127).astype(np.uint64), 7), -4), fmt).numbers(128)
    assert ulps == [Fraction(2) if abs(n) == 64 else Fraction(1) if abs(n) >= 32 else Fraction(1, 2) for n in sizes]
