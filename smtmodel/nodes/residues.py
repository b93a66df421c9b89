"""Residues of integers modulo small numbers, and integers recombined from them by the Chinese remainder theorem.

The integers are integer parts of numbers: bits after the binary point are cut off. No intermediate result is wider than
the number, or than the product of the moduli, since powers of two are multiplied as their residues.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations
from math import gcd, prod
from typing import ClassVar

from mmaprobe.smtmodel.arithmetic.decode import Exponent, Term, Unpacked, fit
from mmaprobe.smtmodel.arithmetic.formats import Interval
from mmaprobe.smtmodel.base.errors import ParameterError, check_number
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, any_of, choose, constant, product, select, truth
from mmaprobe.smtmodel.nodes.known import Known, magnitude
from mmaprobe.smtmodel.nodes.node import Context, Knowledge, Node, Unary, Value

LARGEST = 1 << 16  # the largest modulus
NARROW = 28  # the most bits of a number that one multiplication divides: the product fits 64 bits


def width_of(modulus: int) -> int:
    """The number of bits of the numbers below a modulus."""
    return max(1, (modulus - 1).bit_length())


def reduced(value: Bits, modulus: int) -> Bits:
    """An unsigned number modulo `modulus`, in `width_of(modulus)` bits."""
    bits = width_of(modulus)
    if modulus == 1 << bits:
        return value.truncate(bits) if value.width > bits else value.zext(bits)
    while value.width > max(NARROW, 2 * bits + 2):  # the high part times the residue of 2^low
        low = (value.width + bits + 1) // 2
        high = product(value.extract(value.width - 1, low), _constant(value, (1 << low) % modulus, bits))
        width = max(high.width, low) + 1
        value = high.zext(width) + value.truncate(low).zext(width)
    if value.width < bits:
        return value.zext(bits)
    # Granlund and Montgomery 1994, theorem 4.2: the quotient, by a multiplier with one bit more than the number
    shift = value.width + bits
    multiplier = _constant(value, -(-(1 << shift) // modulus), value.width + 1)
    quotient = product(value, multiplier).extract(shift + value.width - bits, shift)
    return value.truncate(bits) - product(quotient, _constant(value, modulus, bits)).truncate(bits)


def residue(term: Term, modulus: int) -> Bits:
    """The integer part of a number's magnitude, modulo `modulus`."""
    unit, significand = term.exponent.offset(-term.fraction), term.significand
    place, low = unit.bits, unit.low  # the significand's last bit is 2^(place + low)
    if unit.floats:
        significand = select(place.any(), significand, _constant(significand, 0, significand.width))
    if low >= 0:
        up = place.zext(place.width + low.bit_length() + 1)
        up = up + _constant(place, low, up.width)
    else:
        width = max(place.width, (-low).bit_length())
        here, none = _constant(place, -low, width), _constant(place, 0, width)
        place = place.zext(width)
        below = place.ult(here)
        significand = significand.lshr(select(below, here - place, none))
        up = select(below, none, place - here)
    result = reduced(significand, modulus)
    for number in range(min(up.width, max(unit.high, 0).bit_length())):
        power, one = (_constant(up, x, width_of(modulus)) for x in (pow(2, 1 << number, modulus), 1))
        result = reduced(product(result, select(up.bit(number), power, one)), modulus)
    return result


def symmetric(magnitude: Bits, negative: Bit, modulus: int, half: bool) -> tuple[Bit, Bits]:
    """The sign and the magnitude of the residue nearest to zero, modulo m, of a number given by its sign and a
    magnitude below m. `half`: whether the residue is -m/2 rather than m/2, if m is even."""
    width = modulus.bit_length()
    small, whole = magnitude.zext(width), _constant(magnitude, modulus, width)
    other = whole - small
    beyond, tie = other.ult(small), other.eq(small)
    sign = choose(tie, truth(small.carrier, half), (negative ^ beyond) & small.any())
    return sign, select(beyond, other, small)


def _constant(like: Bits, value: int, width: int) -> Bits:
    return constant(like.carrier, value, width)


def _integer(sign: Bit, magnitude: Bits, is_nan: Bit) -> Unpacked:
    carrier = sign.carrier
    term = Term(sign, magnitude, Exponent(constant(carrier, 0, 1), 0, 0), 0)
    return Unpacked(term, ~magnitude.any(), truth(carrier, False), is_nan)


def residues(modulus: int) -> Interval:
    """The interval of the residues nearest to zero modulo m, with -m/2 rather than m/2."""
    return Fraction(-(modulus // 2)), Fraction((modulus - 1) // 2)


def _known(interval: Interval, operands: Sequence[Known]) -> Known:
    """Facts of an integer in an interval."""
    most = magnitude(interval)
    return Known(0, 0, most, 0, 0, int(most).bit_length(), interval, never_minus=True,
                 finite=all(own.finite for own in operands), agrees=True)  # fmt: skip


def _is_special(value: Value) -> Bit:
    return any_of([value.is_nan, *value.infinities])


def check_modulus(modulus: int) -> None:
    """Raises ParameterError for a modulus outside the limits."""
    check_number("modulus", modulus, (2, LARGEST))


@dataclass(frozen=True, eq=False)
class Residue(Unary):
    """The integer part of a number modulo m: the residue nearest to zero, and -m/2 rather than m/2. A NaN if the number
    is not finite."""

    kind: ClassVar[str] = "residue"
    source: ClassVar[str] = "Ozaki, Uchino and Imamura 2025, Ozaki scheme II, section 3"
    modulus: int
    is_number = True

    def __post_init__(self) -> None:
        check_modulus(self.modulus)

    def evaluate(self, context: Context, keep: int | None) -> Value:
        value = context.value(self.term)
        nearest = partial(_nearest, modulus=self.modulus)
        return context.step(self, context.formed(self.own, nearest, value.term, _is_special(value)))

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        return _known(residues(self.modulus), operands)

    def sentence(self) -> str:
        return f"modulo {self.modulus}, nearest to zero"


def _nearest(term: Term, is_nan: Bit, modulus: int) -> Unpacked:
    return _integer(*symmetric(residue(term, modulus), term.sign, modulus, True), is_nan)


@dataclass(frozen=True, eq=False)
class Recombined(Node):
    """The integer nearest to zero with given residues: modulo each of some pairwise coprime moduli, the residue of one
    operand. The result is P/2 rather than -P/2 if the product P of the moduli is even, and a NaN if an operand is not
    finite."""

    kind: ClassVar[str] = "recombined"
    source: ClassVar[str] = "RIKEN-RCCS/GEMMul8, src/oz2/undo_scaling/crt_tree.hpp"
    items: tuple[Node, ...]
    moduli: tuple[int, ...]
    is_number = True

    def __post_init__(self) -> None:
        if len(self.items) != len(self.moduli) or not self.items:
            raise ParameterError("moduli", f"{len(self.items)} numbers have {len(self.moduli)} moduli; each needs one")
        for modulus in self.moduli:
            check_modulus(modulus)
        for one, other in combinations(self.moduli, 2):
            if gcd(one, other) > 1:
                raise ParameterError("moduli", f"{one} and {other} have a common divisor")

    @property
    def whole(self) -> int:
        """The product of the moduli."""
        return prod(self.moduli)

    def evaluate(self, context: Context, keep: int | None) -> Value:
        values = [context.value(item) for item in self.items]
        terms = tuple(value.term for value in values)
        special = any_of([_is_special(value) for value in values])
        return context.step(self, context.formed(self.own, partial(_recombined, moduli=self.moduli), terms, special))

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        low, high = residues(self.whole)  # here P/2 rather than -P/2
        return _known((-high, -low), operands)

    def sentence(self) -> str:
        return f"the integer with these residues modulo {', '.join(map(str, self.moduli))}"


def _recombined(terms: Sequence[Term], is_nan: Bit, moduli: Sequence[int]) -> Unpacked:
    whole = prod(moduli)
    width = (len(moduli) * whole).bit_length()
    total = constant(is_nan.carrier, 0, width)
    for term, modulus in zip(terms, moduli, strict=True):
        rest = whole // modulus
        own = residue(term, modulus)
        share = reduced(product(own, _constant(own, pow(rest, -1, modulus), width_of(modulus))), modulus)
        other = _constant(own, modulus, modulus.bit_length()) - share.zext(modulus.bit_length())
        share = select(term.sign & share.any(), other, share.zext(modulus.bit_length()))
        total = total + fit(product(share, _constant(own, rest, rest.bit_length())), width)
    for number in reversed(range(len(moduli).bit_length())):
        some = _constant(total, whole << number, width)
        total = select(total.ult(some), total, total - some)
    return _integer(*symmetric(total.truncate(width_of(whole)), truth(is_nan.carrier, False), whole, False), is_nan)
