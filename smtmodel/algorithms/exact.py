"""Exact sums of products in fixed point, and comparisons of errors against these sums, over any carrier.

Widths stay small because the inputs' exponents are in a window. Results are valid only where every input is `admitted`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mmaprobe.smtmodel.arithmetic.decode import Exponent, Term, fit, multiply, unpack
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, constant, max_of, select, sum_of
from mmaprobe.smtmodel.carriers.limbs import LIMB, limbs_of


@dataclass(frozen=True)
class Fixed:
    """The number `bits` * 2^unit, `bits` in two's complement."""

    bits: Bits
    unit: int

    def numbers(self, count: int, chosen: NDArray[np.intp] | None = None) -> list[Fraction]:
        """The values of `count` lanes, or of those chosen, for bits of the array carrier or constant bits."""
        width, limbs = self.bits.width, [limb if chosen is None else limb[chosen] for limb in self._limbs(count)]
        parted = zip(*map(np.ndarray.tolist, limbs), strict=True)
        values = [sum(part << (LIMB * place) for place, part in enumerate(parts)) for parts in parted]
        scale = Fraction(2) ** self.unit
        return [(value - (1 << width if value >> (width - 1) else 0)) * scale for value in values]

    def roughly(self, count: int) -> NDArray[np.longdouble]:
        """The bits of `count` lanes of no negative number, in long double."""
        parts = (np.ldexp(limb.astype(np.longdouble), LIMB * place) for place, limb in enumerate(self._limbs(count)))
        return np.asarray(sum(parts), dtype=np.longdouble)

    def _limbs(self, count: int) -> list[NDArray[np.uint64]]:
        nodes = (np.asarray(limb.node, dtype=np.uint64) for limb in limbs_of(self.bits))
        return [np.broadcast_to(node, (count,)) for node in nodes]


@dataclass(frozen=True)
class Window:
    """The lowest and the highest exponent of nonzero inputs, for each operand. Inputs are zeros and normal numbers."""

    a: tuple[int, int]
    b: tuple[int, int]
    c: tuple[int, int]

    def check(self, source: Format, addend: Format) -> None:
        """Raises ParameterError for a window that is empty or leaves the exponents of a format's normal numbers."""
        for name, (low, high), fmt in (("a", self.a, source), ("b", self.b, source), ("c", self.c, addend)):
            if low > high:
                raise ParameterError(name, f"exponents {low}..{high}: {low} is above {high}, no number is admitted")
            if low < fmt.emin or high > fmt.emax:
                raise ParameterError(name, f"exponents {low}..{high} leave those of {fmt.name}, {fmt.emin}..{fmt.emax}")


def admitted(pattern: Bits, fmt: Format, window: tuple[int, int]) -> Bit:
    """Whether a number is a zero, or a normal number with its exponent in the window."""
    value = unpack(pattern, fmt)
    field = pattern.extract(fmt.field_width - 1, fmt.padding + fmt.fraction)
    low, high = (constant(pattern.carrier, exponent + fmt.bias, fmt.exponent) for exponent in window)
    inside = value.is_zero | (low.ule(field) & field.ule(high))
    if fmt.specials == "ieee":  # no window contains the top exponent, of infinities and NaNs
        return inside
    return inside & ~value.is_nan & ~value.is_infinite


def _placed(term: Term, window: tuple[int, int]) -> tuple[Bits, int]:
    """The magnitude of a term as fixed-point bits, and the exponent of these bits' unit. The term is zero or has its
    exponent in the window."""
    low, high = window
    exponent = term.exponent
    width = max(exponent.bits.width, (high - low).bit_length())
    distance = fit(exponent.bits, width) - constant(exponent.bits.carrier, low - exponent.low, width)
    wide = term.significand.zext(term.significand.width + high - low)
    return wide.shl(distance.truncate(max((high - low).bit_length(), 1))) if high > low else wide, low - term.fraction


def exact_sum(
    a: Sequence[Bits], b: Sequence[Bits], c: Bits, source: Format, addend: Format, window: Window,
    room: Sequence[tuple[int, Fraction]] = (),
) -> Fixed:  # fmt: skip
    """c + sum of a_k * b_k without rounding, for admitted inputs (a and b in `source`, c in `addend`).

    The unit is the lowest place of any term. `room`: further sets of numbers that unit and width must hold, each as the
    exponent of a power of two that divides all of them, and their largest magnitude. Raises ParameterError for an
    impossible window.
    """
    window.check(source, addend)
    products = (window.a[0] + window.b[0], window.a[1] + window.b[1])
    terms = [multiply(unpack(x, source).term, unpack(y, source).term) for x, y in zip(a, b, strict=True)]
    placed = [(term.sign, *_placed(term, products)) for term in terms]
    last = unpack(c, addend).term
    placed.append((last.sign, *_placed(last, window.c)))
    unit = min([exponent for _, _, exponent in placed] + [place for place, most in room if most])
    magnitudes = [magnitude.pad(exponent - unit) for _, magnitude, exponent in placed]
    width = max(magnitude.width for magnitude in magnitudes) + len(placed).bit_length() + 1
    width = max([width, *(int(most / Fraction(2) ** unit).bit_length() + 1 for _, most in room)])
    return Fixed(sum_of(c.carrier, [sign for sign, _, _ in placed], magnitudes, width), unit)


def in_units(pattern: Bits, fmt: Format, like: Fixed) -> tuple[Fixed, Bit]:
    """A result in the width and unit of the exact sum `like`, and whether the result fits: finite, in range and a
    multiple of the unit. The error of a result that does not fit is infinite."""
    value, width = unpack(pattern, fmt), like.bits.width
    term, carrier = value.term, pattern.carrier
    low, high = like.unit, like.unit + width - 2
    reach = Exponent(term.exponent.bits, term.exponent.low, term.exponent.high)
    least, most = max(low, reach.low), min(high, reach.high)
    if least > most:  # of all numbers of the format only zero lies in the range of such sums
        return Fixed(constant(carrier, 0, width), low), value.is_zero & ~value.is_nan
    inside = _between(reach, least, most)
    wide, unit = _placed(term, (least, most))
    shift = unit - low  # the number of places from the unit of `like` to the lowest bit of `wide`
    if shift < 0:
        whole = wide.lshr(-shift)
        rest = ~wide.truncate(min(-shift, wide.width)).any()
    else:
        whole, rest = wide.pad(shift), ~constant(carrier, 0, 1).any()
    whole = fit(whole, width - 1).zext(width)
    fits = ~value.is_nan & ~value.is_infinite & (value.is_zero | (inside & rest))
    return Fixed(select(value.sign, -whole, whole), low), fits


def _between(exponent: Exponent, low: int, high: int) -> Bit:
    bits = exponent.bits
    least, most = (constant(bits.carrier, bound - exponent.low, bits.width) for bound in (low, high))
    return least.ule(bits) & bits.ule(most)


def magnitude(x: Fixed) -> Fixed:
    """|x|, one bit wider than x, so that no magnitude overflows."""
    wide = x.bits.sext(x.bits.width + 1)
    return Fixed(select(x.bits.msb(), -wide, wide), x.unit)


def closer(p: Fixed, q: Fixed, exact: Fixed) -> Bit:
    """Whether |p - exact| < |q - exact|: p and q differ, and the exact number is on p's side of their mean. This form
    has no absolute values, which are hard for solvers."""
    width = max(side.bits.width for side in (p, q, exact)) + 2
    left, right, middle = (side.bits.sext(width) for side in (p, q, exact))
    total, twice = left + right, middle.shl(1)
    return (left.slt(right) & twice.slt(total)) | (right.slt(left) & total.slt(twice))


def ulp(x: Fixed, fmt: Format) -> Fixed:
    """The unit in the last place of `fmt` at x: 2^(floor(log2 |x|) - fraction), at least the spacing of the subnormals,
    and this spacing for zero. x is padded by as many places as `fmt` has fraction bits, so that every ulp is a whole
    number of units."""
    size = magnitude(x).bits
    carrier, width = size.carrier, size.width
    one = constant(carrier, 1, width)
    places = constant(carrier, width - 1, max(size.leading_zeros().width, width.bit_length()))
    top = places - fit(size.leading_zeros(), places.width)  # the place of the leading one; all ones for zero
    smallest = max(fmt.emin - x.unit, 0)  # at and below this place the spacing is that of the subnormals
    least = constant(carrier, max(smallest, fmt.fraction), places.width)
    at = max_of([select(size.any(), top, least), least])
    return Fixed(one.shl(at - constant(carrier, fmt.fraction, places.width)), x.unit)
