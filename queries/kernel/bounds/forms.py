"""Bounds as forms: sums of nonnegative rational constants times magnitudes of inputs, in exact arithmetic.

An atom is the maximum of one or more monomials, in most cases of one. A monomial is a product of magnitudes. As every
magnitude is nonnegative, a form is never negative, and it never falls when a coefficient or a magnitude rises. Every
rule that uses forms relies on this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, reduce
from math import lcm
from operator import mul
from types import MappingProxyType
from typing import Any, NamedTuple

from mmaprobe.smtmodel.nodes.index import Index
from mmaprobe.smtmodel.nodes.known import power

EXACT, ERROR, SIZE = "exact", "error", "size"  # the names of magnitudes of values other than inputs
PRECISION = 64  # bits of a coefficient that is rounded up


class Factor(NamedTuple):
    """A magnitude. `name`: the name of an operand, for the magnitude of one of its elements; `exact`, for that of the
    exact result; `error` or `size`, for the error or the exact magnitude of the result so far of the loop whose level
    is `offset`. The index of an element is `offset` plus, for each (level, factor) of `factors`, the factor times the
    loop variable of the level.

    `raised`: the element's magnitude, or the smallest normal number of its format if the element is subnormal.
    """

    name: str
    offset: int = 0
    factors: tuple[tuple[int, int], ...] = ()
    raised: bool = False

    def at(self, level: int, place: int) -> Factor:
        """The factor with the value `place` for the loop variable of a level."""
        if all(own != level for own, _ in self.factors):
            return self
        moved = sum(factor * place for own, factor in self.factors if own == level)
        return self._replace(offset=self.offset + moved, factors=tuple(x for x in self.factors if x[0] != level))


Monomial = tuple[Factor, ...]
Atom = frozenset[Monomial]  # the maximum of its monomials
ONE: Atom = frozenset({()})
Values = Callable[[Factor], Fraction]


def added(numbers: Iterable[Fraction]) -> Fraction:
    """The sum of numbers, brought to lowest terms once."""
    terms = tuple(numbers)
    common = lcm(*(x.denominator for x in terms))
    return Fraction(sum(x.numerator * (common // x.denominator) for x in terms), common)


@dataclass(frozen=True)
class Form:
    """A sum of coefficients, none negative, times atoms."""

    parts: Mapping[Atom, Fraction]

    def __post_init__(self) -> None:
        if any(value.numerator < 0 for value in self.parts.values()):
            raise ValueError("a form has no negative coefficient")
        parts = {atom: value for atom, value in self.parts.items() if value}
        object.__setattr__(self, "parts", MappingProxyType(parts))

    def __reduce__(self) -> tuple[Any, ...]:
        return Form, (dict(self.parts),)

    def __add__(self, other: Form) -> Form:
        return total([self, other])

    def __mul__(self, other: Form | Fraction | int) -> Form:
        """The product; the product of two maxima is the maximum of the products, as no magnitude is negative."""
        if not isinstance(other, Form):
            return Form({atom: value * other for atom, value in self.parts.items()})
        products: dict[Atom, Fraction] = {}
        for x, one in self.parts.items():
            for y, two in other.parts.items():
                atom = frozenset(tuple(sorted(p + q)) for p in x for q in y)
                products[atom] = products[atom] + one * two if atom in products else one * two
        return Form(products)

    @property
    def constant(self) -> Fraction:
        return self.parts.get(ONE, Fraction(0))

    def covers(self, other: Form) -> bool:
        """Whether each coefficient of the other form is at most the coefficient of the same atom in this form."""
        return all(self.parts.get(atom, Fraction(0)) >= value for atom, value in other.parts.items())

    def flat(self) -> Form:
        """An upper bound: every maximum replaced by the sum of its monomials."""
        return total([Form({frozenset({item}): value}) for atom, value in self.parts.items() for item in atom])

    def split(self, chosen: Callable[[Monomial], bool]) -> tuple[Form, Form]:
        """The flat form in two parts: the monomials that are chosen, and all others."""
        sides: tuple[dict[Atom, Fraction], dict[Atom, Fraction]] = {}, {}
        for atom, value in self.flat().parts.items():
            (item,) = atom
            sides[not chosen(item)][atom] = value
        return Form(sides[0]), Form(sides[1])

    @property
    def lifts(self) -> frozenset[str]:
        """The names of the operands with a raised magnitude in the form."""
        return frozenset(factor.name for atom in self.parts for item in atom for factor in item if factor.raised)

    def lifted(self, names: Set[str]) -> Form:
        """An upper bound: every magnitude of these operands raised."""
        return self.renamed(lambda factor: factor._replace(raised=factor.raised or factor.name in names))

    def merged(self) -> Form:
        """An upper bound with fewer coefficients. It is flat; if one magnitude of an operand is raised, all are; all
        monomials of the same operands have the largest of their coefficients."""
        flat = self.flat().lifted(self.lifts)
        most: dict[tuple[str, ...], Fraction] = {}
        for (item,), value in flat.parts.items():
            shape = tuple(factor.name for factor in item)
            most[shape] = max(most.get(shape, value), value)
        return Form({atom: most[tuple(factor.name for factor in item)] for atom in flat.parts for item in atom})

    def at(self, level: int, place: int) -> Form:
        """The form with the value `place` for the loop variable of a level."""
        return self.renamed(lambda factor: factor.at(level, place))

    def renamed(self, change: Callable[[Factor], Factor]) -> Form:
        """The form with every magnitude changed."""
        return total([
            Form({frozenset(tuple(sorted(map(change, item))) for item in atom): value})
            for atom, value in self.parts.items()
        ])  # fmt: skip

    def raised(self) -> Form:
        """An upper bound: coefficients rounded up to about `PRECISION` bits."""
        return Form({atom: round_up(value) for atom, value in self.parts.items()})

    def value(self, values: Values) -> Fraction:
        """The form's value for these magnitudes."""
        known, products = cache(values), {}
        for item in {item for atom in self.parts for item in atom}:
            products[item] = reduce(mul, map(known, item)) if item else Fraction(1)
        return added(c * max(map(products.__getitem__, atom)) for atom, c in self.parts.items())


NOUGHT = Form({})


def is_product(item: Monomial) -> bool:
    """Whether a monomial has the magnitude of an element of a or of b."""
    return any(factor.name in ("a", "b") for factor in item)


def number(value: Fraction | int) -> Form:
    """The form of a constant."""
    return Form({ONE: Fraction(value)})


def magnitude(name: str, index: Index | None = None, raised: bool = False) -> Form:
    """The form of one magnitude: that of an element of an operand."""
    place = Index() if index is None else index
    return Form({frozenset({(Factor(name, place.offset, place.factors, raised),)}): Fraction(1)})


def total(forms: Iterable[Form]) -> Form:
    """The sum of forms."""
    sums: dict[Atom, Fraction] = {}
    for form in forms:
        for atom, value in form.parts.items():
            sums[atom] = sums[atom] + value if atom in sums else value
    return Form(sums)


def larger(forms: Sequence[Form]) -> Form:
    """An upper bound of each form: every atom has its largest coefficient."""
    most: dict[Atom, Fraction] = {}
    for form in forms:
        for atom, value in form.parts.items():
            most[atom] = max(most[atom], value) if atom in most else value
    return Form(most)


def largest(forms: Sequence[Form]) -> Form:
    """An upper bound of each form: the maximum of one atom from each form that has one with the coefficient 1 (other
    than the constant), plus `larger` of the remainders."""
    leads: list[Monomial] = []
    rests: list[Form] = []
    for form in forms:
        lead = next((atom for atom, value in form.parts.items() if value == 1 and atom != ONE), None)
        if lead is None:
            rests.append(form)
        else:
            leads += lead
            rests.append(Form({atom: value for atom, value in form.parts.items() if atom != lead}))
    top = Form({frozenset(leads): Fraction(1)}) if leads else NOUGHT
    return top + larger(rests)


def round_up(value: Fraction) -> Fraction:
    """The number rounded up to about `PRECISION` bits."""
    spare = value.numerator.bit_length() - value.denominator.bit_length() - PRECISION
    unit = power(spare)
    return -(-value // unit) * unit
