"""Emulations over tiny formats in integers: what slices and residues of a shared power of two give, for all
elements. It reads a description, not a plan, and shares no code with the package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import floor, prod

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Real = NDArray[np.float64]

#: values of the patterns, as whole numbers, and what they are divided by
VALUES = {
    "e2m1": ([0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12], 2),
    "int3": ([0, 1, 2, 3, -4, -3, -2, -1], 1),
}


@dataclass(frozen=True)
class Side:
    """How the elements of a side become words. `up`: the power of two from the largest magnitude on, not up to it.
    `first`: bits before the point of the first slice, or of the whole number of residues, `steps`: more of each further
    slice. `cut`: words are cut, not rounded to the nearest number, ties to even."""

    format: str
    up: bool
    first: int
    steps: tuple[int, ...]
    cut: bool


@dataclass(frozen=True)
class Held:
    """Words held in a format that has all of their integers, and sums of so many binary digits: of the exact product
    and the sum so far, or of both cut to `kept` digits after the first one of the larger one; rounded to nearest, ties
    to even, or cut."""

    format: str
    kept: int | None
    cut: bool


@dataclass(frozen=True)
class Emulation:
    """`word`: bits of the integers that the unit multiplies. `moduli`: of residues; none: of slices, of which the
    `pairs` are kept, in the order in which they are added in exact arithmetic. `sums`: bits of the integers in which
    the unit adds, which saturate or wrap. `off`: by which power of two the result is wrong. `digits`: of the result,
    which is rounded to nearest even. `held`: `sums` are the digits of a format with exponents."""

    a: Side
    b: Side
    word: int
    moduli: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]
    sums: int
    saturates: bool
    off: int
    digits: int
    held: Held | None = None


def numbers(fmt: str) -> list[Fraction]:
    """The value of each pattern."""
    values, unit = VALUES[fmt]
    return [Fraction(x, unit) for x in values]


def power_of(row: Sequence[Fraction], up: bool) -> Fraction:
    """The power of two that a row shares."""
    most = max(map(abs, row))
    if not most:
        return Fraction(1)
    power = Fraction(1)
    while power * 2 <= most:
        power *= 2
    while power > most:
        power /= 2
    return power * 2 if up and power < most else power


def whole(x: Fraction, cut: bool) -> int:
    """A number cut toward zero, or rounded to the nearest whole number, ties to even."""
    if not cut:
        return round(x)
    return floor(x) if x >= 0 else -floor(-x)


def held(x: int, bits: int) -> int:
    """What an integer of some bits saturates to."""
    return max(-(1 << bits - 1), min((1 << bits - 1) - 1, x))


def near_zero(x: int, modulus: int) -> int:
    """The residue from -modulus / 2 on, which is below modulus / 2."""
    return (x + modulus // 2) % modulus - modulus // 2


def words_of(x: Fraction, side: Side, word: int, moduli: tuple[int, ...]) -> list[int]:
    """The words of an element over its power of two."""
    rest = x * 2**side.first
    if moduli:
        number = held(whole(rest, side.cut), 12)
        return [held(near_zero(number, m), word) for m in moduli]
    found = []
    for step in (*side.steps, 0):
        found.append(held(whole(rest, side.cut), word))
        rest = (rest - found[-1]) * 2**step
    return found


def summed(first: Whole, second: Whole, each: Emulation) -> tuple[Whole, NDArray[np.bool_]]:
    """The sums of the products of all rows (rows x K) of both sides, one product after another, and whether each has
    left the range on the way."""
    if each.held is not None:
        return summed_in_digits(first, second, each.sums, each.held)
    total, left = np.zeros((len(first), len(second)), dtype=np.int64), np.zeros((len(first), len(second)), dtype=bool)
    half = 1 << each.sums - 1
    for k in range(first.shape[1]):
        total = total + np.outer(first[:, k], second[:, k])
        left |= (total < -half) | (total >= half)
        total = np.clip(total, -half, half - 1) if each.saturates else (total + half) % (2 * half) - half
    return total, left


def summed_in_digits(first: Whole, second: Whole, digits: int, held: Held) -> tuple[Whole, NDArray[np.bool_]]:
    """The same where sums are rounded, and whether one was. A product has the exponents of both its factors."""
    total = np.zeros((len(first), len(second)), dtype=np.int64)
    left = total != 0
    for k in range(first.shape[1]):
        product_, exact = np.outer(first[:, k], second[:, k]), total + np.outer(first[:, k], second[:, k])
        added = exact
        if held.kept is not None:
            exponents = np.add.outer(exponent_of(first[:, k]), exponent_of(second[:, k])), exponent_of(total)
            place = np.maximum(np.maximum(*exponents) - held.kept, 0)
            added = cut_at(product_, place) + cut_at(total, place)
        place = np.maximum(exponent_of(added) + 1 - digits, 0)
        total = cut_at(added, place) if held.cut else rounded(added.astype(float), digits).astype(np.int64)
        left |= total != exact
    return total, left


def exponent_of(x: Whole) -> Whole:
    """That of the first binary digit; of 0 one below all others."""
    found: Whole = np.where(x == 0, -99, np.floor(np.log2(np.maximum(np.abs(x), 1))).astype(np.int64))
    return found


def cut_at(x: Whole, place: Whole) -> Whole:
    found: Whole = np.sign(x) * (np.abs(x) >> place << place)
    return found


def recombined(residues: Sequence[Whole], moduli: Sequence[int]) -> Whole:
    """The integers nearest to zero with these residues, M/2 rather than -M/2, by a search."""
    every = prod(moduli)
    numbers = np.arange(every)
    table = np.zeros(moduli, dtype=np.int64)
    table[tuple(numbers % m for m in moduli)] = np.where(2 * numbers > every, numbers - every, numbers)
    found: Whole = table[tuple(r % m for r, m in zip(residues, moduli, strict=True))]
    return found


def rounded(x: Real, digits: int) -> Real:
    """To nearest even, of so many binary digits; all numbers have far fewer than f64."""
    place = np.exp2(np.floor(np.log2(np.where(x == 0, 1, np.abs(x)))) + 1 - digits)
    found: Real = np.rint(x / place) * place
    return found


@dataclass(frozen=True)
class Results:
    """Of all rows and all columns (rows x columns, exact in f64): the result, the exact sum, the sum of magnitudes, the
    largest product of magnitudes; the largest and the least magnitude of each row and of each column; whether a sum of
    a unit left its range, or the whole sum that of the moduli. `sides`: the patterns of the rows and of the columns."""

    sides: tuple[Whole, Whole]
    d: Real
    exact: Real
    size: Real
    product: Real
    most: tuple[Real, Real]
    least: tuple[Real, Real]
    beyond: NDArray[np.bool_]
    wide: NDArray[np.bool_]


def results(each: Emulation, length: int) -> Results:
    """Of all rows and columns of some length."""
    sides, values, powers, words, integers = [], [], [], [], []
    for side in (each.a, each.b):
        known = numbers(side.format)
        rows = list(product(range(len(known)), repeat=length))
        power = [power_of([known[p] for p in row], side.up) for row in rows]
        made = [[words_of(known[p] / x, side, each.word, each.moduli) for p in row]
                for row, x in zip(rows, power, strict=True)]  # fmt: skip
        sides.append(np.array(rows))
        values.append(np.array([[float(known[p]) for p in row] for row in rows]))
        powers.append(np.array([float(x) for x in power]))
        words.append(np.array(made).transpose(2, 0, 1))
        integers.append(np.array([[held(whole(known[p] / x * 2**side.first, side.cut), 12) for p in row]
                                  for row, x in zip(rows, power, strict=True)]))  # fmt: skip
    (left, right), (first, second) = values, words
    total, beyond = np.zeros((len(left), len(right))), np.zeros((len(left), len(right)), dtype=bool)
    wide = beyond.copy()
    if each.moduli:
        sums = [summed(x, y, each) for x, y in zip(first, second, strict=True)]
        every = recombined([value for value, _ in sums], each.moduli)
        beyond = np.logical_or.reduce([out for _, out in sums])
        wide = every != integers[0] @ integers[1].T
        total = np.ldexp(every.astype(float), -each.a.first - each.b.first)
    for i, j in each.pairs:
        value, out = summed(first[i], second[j], each)
        beyond = beyond | out
        places = each.a.first + each.b.first + sum(each.a.steps[:i]) + sum(each.b.steps[:j])
        total = total + np.ldexp(value.astype(float), -places)
    d = rounded(np.ldexp(total * np.outer(*powers), each.off), each.digits)
    sizes = np.abs(left), np.abs(right)
    largest = np.max([np.outer(sizes[0][:, k], sizes[1][:, k]) for k in range(length)], axis=0)
    return Results(
        (sides[0], sides[1]), d, left @ right.T, sizes[0] @ sizes[1].T, largest, (sizes[0].max(1), sizes[1].max(1)),
        (sizes[0].min(1), sizes[1].min(1)), beyond, wide,
    )  # fmt: skip
