"""Bounds as the checker of theorems reads and computes them: coefficients times the largest of some magnitudes.

A form is never negative, and never falls when a coefficient or a magnitude rises.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

Factor = tuple[str, int, tuple[tuple[int, int], ...], bool]
Monomial = tuple[Factor, ...]
Form = dict[frozenset[Monomial], Fraction]  # coefficients of the largest of some monomials
Range = tuple[Fraction, Fraction]  # the least and the largest of some numbers, between which 0 is
ONE: frozenset[Monomial] = frozenset({()})
FINE = 128  # bits kept of a number that is rounded up here: more than a proof keeps


class FaultError(Exception):
    """A step that the checker rejects."""


def need(holds: bool, what: str) -> None:
    if not holds:
        raise FaultError(what)


def two(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


NOTHING = 1 << 20  # of two to its power all zeros are multiples


def end_of(largest: Fraction | None) -> int | None:
    """The least exponent of a power of two above a magnitude; None: not known."""
    if largest is None or not largest:
        return None if largest is None else -NOTHING
    start = largest.numerator.bit_length() - largest.denominator.bit_length()
    return next(k for k in (start, start + 1) if two(k) > largest)


def at_most(largest: Fraction, place: int, mode: str) -> Fraction:
    """What numbers up to this one are rounded to at most: multiples of 2^place."""
    whole, rest = divmod(largest, two(place))
    half = 2 * rest > two(place) or (2 * rest == two(place) and whole % 2 == 1)
    return (whole + (half if mode == "nearest_even" else mode != "toward_zero" and rest > 0)) * two(place)


def rounded_at_most(largest: Fraction, bits: int, least: int | None, mode: str) -> Fraction:
    """What numbers up to this one are rounded to at most: so many bits, the last places as at 2^least below it."""
    end = end_of(largest)
    if end is None or not largest:
        return largest
    return at_most(largest, (end - 1 if least is None else max(end - 1, least)) - bits + 1, mode)


def plain(value: Fraction | int) -> Form:
    return {ONE: Fraction(value)} if value else {}


def single(name: str, offset: int = 0, factors: tuple[tuple[int, int], ...] = (), raised: bool = False) -> Form:
    return {frozenset({((name, offset, factors, raised),)}): Fraction(1)}


def add(*forms: Form) -> Form:
    found: Form = {}
    for form in forms:
        for atom, value in form.items():
            found[atom] = found.get(atom, Fraction(0)) + value
    return found


def most(*forms: Form) -> Form:
    """An upper bound of all forms."""
    found: Form = {}
    for form in forms:
        for atom, value in form.items():
            found[atom] = max(found.get(atom, value), value)
    return found


def times(one: Form, other: Form | Fraction) -> Form:
    if isinstance(other, Fraction):
        return {atom: value * other for atom, value in one.items() if other}
    return add(*({frozenset(tuple(sorted(p + q)) for p in x for q in y): v * w}
                 for x, v in one.items() for y, w in other.items()))  # fmt: skip


def flat(form: Form) -> Form:
    return add(*({frozenset({item}): value} for atom, value in form.items() for item in atom))


def changed(form: Form, change: Callable[[Factor], Factor]) -> Form:
    return add(*({frozenset(tuple(sorted(map(change, item))) for item in atom): value} for atom, value in form.items()))


def lifts(form: Form) -> set[str]:
    return {factor[0] for atom in form for item in atom for factor in item if factor[3]}


def lifted(form: Form, names: set[str]) -> Form:
    return changed(form, lambda factor: (*factor[:3], factor[3] or factor[0] in names))


def merged(form: Form) -> Form:
    """An upper bound of a form: flat, raised alike, with one coefficient for all monomials of the same operands."""
    even = lifted(flat(form), lifts(form))
    top: dict[tuple[str, ...], Fraction] = {}
    shapes = {atom: tuple(factor[0] for (item,) in [tuple(atom)] for factor in item) for atom in even}
    for atom, value in even.items():
        top[shapes[atom]] = max(top.get(shapes[atom], value), value)
    return {atom: top[shapes[atom]] for atom in even}


def put(form: Form, level: int, place: int) -> Form:
    """The form with a value for the loop variable of a level."""

    def at(factor: Factor) -> Factor:
        moved = sum(step * place for own, step in factor[2] if own == level)
        return factor[0], factor[1] + moved, tuple(x for x in factor[2] if x[0] != level), factor[3]

    return changed(form, at)


def covers(form: Form, other: Form) -> bool:
    return all(form.get(atom, Fraction(0)) >= value for atom, value in other.items())


def above(value: Fraction) -> Fraction:
    """The number, or a slightly larger one with few bits."""
    unit = two(value.numerator.bit_length() - value.denominator.bit_length() - FINE)
    return -(-value // unit) * unit


def read_form(given: Any) -> Form:
    found: Form = {}
    for coefficient, atom in given:
        value = Fraction(coefficient)
        need(value > 0, "a coefficient is not positive")
        items = [tuple(sorted((str(n), int(o), tuple((int(a), int(b)) for a, b in f), bool(r)) for n, o, f, r in item))
                 for item in atom]  # fmt: skip
        need(frozenset(items) not in found and bool(items), "a magnitude stands twice, or nowhere")
        found[frozenset(items)] = value
    return found
