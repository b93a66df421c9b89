"""The power of two that the elements of a row or a column share, computed from their largest magnitude."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import ClassVar

from mmaprobe.smtmodel.arithmetic.decode import Unpacked, fit, unpack
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import Bits, constant, max_of, select
from mmaprobe.smtmodel.nodes.known import Known
from mmaprobe.smtmodel.nodes.node import Context, Knowledge, Node, Value


@cache
def powers_of(fmt: Format) -> Format:
    """The format of the powers of two that numbers of a format may share, with the exponents of all numbers and of
    their inverses. Pattern 0 stands for zero, the largest pattern for an infinity or a NaN."""
    most = max(fmt.fraction - fmt.emin + 1, fmt.emax + 1, 1)  # pattern 0 is below the smallest subnormal number's
    width = most.bit_length() + 1
    return Format(f"powers_{fmt.name}", width, 0, (1 << (width - 1)) - 1, "all_ones", signed=False, subnormals=False)


def own_power(value: Unpacked, powers: Format, up: bool) -> Bits:
    """The pattern of the largest power of two that is at most a value's magnitude, or, with `up`, of the smallest that
    is at least the magnitude. Patterns have the order of the magnitudes."""
    term = value.term.normalised()
    width = max(powers.width, term.exponent.bits.width + 1)
    field = fit(term.exponent.bits, width) + constant(term.sign.carrier, term.exponent.low + powers.bias, width)
    if up:
        rest = term.significand.truncate(term.significand.width - 1)
        field = field + rest.any().bits(width)
    field = select(term.is_zero, constant(term.sign.carrier, 0, width), field).truncate(powers.width)
    return select(value.is_nan | value.is_infinite, constant(term.sign.carrier, powers.nan, powers.width), field)


def shared_power(largest: Bits, powers: Format, inverse: bool) -> Bits:
    """The power of two of a row, from the largest of its elements' patterns (`own_power`): 1 if all elements are zero,
    NaN if one is not finite."""
    carrier, width = largest.carrier, powers.width
    one, nan = constant(carrier, powers.bias, width), constant(carrier, powers.nan, width)
    power = select(largest.any(), largest, one)
    if not inverse:
        return power
    return select(power.eq(nan), nan, constant(carrier, 2 * powers.bias, width) - power)


@dataclass(frozen=True, eq=False)
class Shared(Node):
    """The largest power of two that is at most the largest magnitude of some numbers; with `up`, the smallest power of
    two that is at least that magnitude; with `inverse`, 1 divided by this power. The value is 1 if all numbers are
    zero, and NaN if a number is infinite or a NaN. `format`: the format of the numbers."""

    kind: ClassVar[str] = "shared"
    source: ClassVar[str] = "Ootomo et al. 2024, section 3; OCP microscaling 1.0, 6.3"
    one_side: ClassVar[str] = "an exponent is shared by elements of one side: shared(a[0:16])"
    items: tuple[Node, ...]
    format: Format
    up: bool = False
    inverse: bool = False
    is_number = never_below_zero = True

    def __post_init__(self) -> None:
        if not self.items or not all(item.is_number and item.count == 1 for item in self.items):
            raise ParameterError("shared", self.one_side)

    def evaluate(self, context: Context, keep: int | None) -> Value:
        powers = powers_of(self.format)
        own_of = partial(own_power, powers=powers, up=self.up)
        patterns = [context.formed((powers.name, self.up), own_of, context.value(item).item) for item in self.items]
        return context.step(self, unpack(shared_power(max_of(patterns), powers, self.inverse), powers))

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        return Known.number(frozenset({powers_of(self.format)}))

    def sentence(self) -> str:
        which = "smallest power of two from" if self.up else "largest power of two up to"
        return f"{'1 divided by ' if self.inverse else ''}the {which} the largest magnitude"
