"""Sign symmetry: the result of a unit is negated if every a and c is (`Known.turns`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mmaprobe.queries.kernel.datapath.rounding_rises import OfTarget, rounding_text
from mmaprobe.queries.kernel.equality.rewriting import drawn_target
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, rule
from mmaprobe.smtmodel.arithmetic.decode import unpack
from mmaprobe.smtmodel.arithmetic.rounding import round_and_pack
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits
from mmaprobe.smtmodel.nodes import Round
from mmaprobe.smtmodel.nodes.node import Knowledge, of_kind
from mmaprobe.smtmodel.units.unit import Unit


@dataclass(frozen=True)
class Turns:
    """The statement that the result of a unit is negated if every a and c of an input is: a NaN stays a NaN, an
    infinity or a nonzero number has the opposite sign, and a zero stays a zero, of either sign."""

    unit: Unit

    def statement(self) -> str:
        return "the result is negated if every a and c is negated"


@dataclass(frozen=True)
class RoundsOpposite(OfTarget):
    """The lemma that rounding does not depend on the sign: a magnitude with two bits more than the format's precision,
    at any place in the format's range or just outside it, rounded with each sign, gives NaN both times, or the same
    magnitude with the given sign (a zero with either sign). `bits`: the number of random bits of the rounding, the same
    bits both times; the magnitude has this many further bits."""

    spare = 2

    def statement(self) -> str:
        return f"{rounding_text(self.target, self.bits)}, does not depend on the sign"

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        magnitude, place, *drawn = given
        fmt = self.target.format
        unit = self.unit_at(place)
        positive = magnitude.any() & ~magnitude.any()
        one, other = (unpack(round_and_pack(sign, magnitude, unit, self.target, *drawn), fmt)
                      for sign in (positive, ~positive))  # fmt: skip
        same = one.term.significand.eq(other.term.significand) & one.term.exponent.bits.eq(other.term.exponent.bits)
        signs = ~one.sign & other.sign
        infinite = one.is_infinite & other.is_infinite & signs
        finite = ~(one.is_infinite | other.is_infinite) & same & (signs | (one.is_zero & other.is_zero))
        return (one.is_nan & other.is_nan) | (~(one.is_nan | other.is_nan) & (infinite | finite))


def lemmas_of(unit: Unit) -> tuple[RoundsOpposite, ...]:
    """The lemmas about the datapath that `turned` needs. Raises RuleError for a unit whose result is not known to be
    negated."""
    if Knowledge(unit.formats).of(unit.result).turns is not True:
        raise RuleError("turned: that the result is negated is not known")
    return tuple(dict.fromkeys(RoundsOpposite(drawn_target(node.rounding), node.count_of_bits(unit.formats))
                               for node in of_kind(unit.result, Round) if node.rounding.is_signless))  # fmt: skip


@rule
def turned(unit: Unit, lemmas: Sequence[Theorem]) -> Made:
    """Each node derives from its operands whether its value is negated or unchanged. The sign of a zero matters in the
    nodes' arithmetic only for the sign of a zero result. Random bits are unchanged. A rounding that reads magnitudes
    alone needs a lemma about the datapath; an unchanged value may be rounded in any way."""
    if {lemma.goal for lemma in lemmas} != set(lemmas_of(unit)):
        raise RuleError("turned: a lemma about the datapath is missing, or about another one")
    return Made(Turns(unit), tuple(lemmas))
