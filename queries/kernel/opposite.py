"""Sign symmetry: a property of a node from that of its operands.

Every a and c of an input is negated. A node turns if its value is then negated, and stays if its value does not change:
NaN is NaN, an infinity or a nonzero number has the opposite or the same sign, and a zero is a zero, of either sign. The
rule is about nodes whose value, but for the sign of a zero, does not depend on the sign of a zero operand (that of a
sum on a grid does).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mmaprobe.queries.kernel.ranges import Scope
from mmaprobe.queries.kernel.rewriting import fits, target_of
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.smtmodel.arithmetic.decode import Exponent, unpack
from mmaprobe.smtmodel.arithmetic.rounding import Mode, Target, round_and_pack
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits
from mmaprobe.smtmodel.nodes import (
    Cancelling,
    Constant,
    Cut,
    Each,
    Element,
    ExactSum,
    FusedSum,
    Gate,
    Node,
    Product,
    Repeat,
    Round,
    Running,
    Scale,
    Segment,
)
from mmaprobe.smtmodel.units.unit import Unit

EVEN: tuple[Mode, ...] = ("nearest_even", "nearest_away", "toward_zero", "to_odd")  # modes that ignore the sign


@dataclass(frozen=True)
class Turns:
    """A node of a unit turns, or stays if not `turns`. `assuming`: the levels of the enclosing loops whose result so
    far is assumed to turn."""

    unit: Unit
    node: Node
    turns: bool
    assuming: frozenset[int] = frozenset()

    def statement(self) -> str:
        return f"this {self.node.kind} {'is negated' if self.turns else 'stays the same'} if every a and c is negated"


@dataclass(frozen=True)
class RoundsOpposite:
    """A magnitude with two bits more than the format's precision, at any place in the format's range or just outside
    it, rounded for a target with each sign, gives NaN both times, or one magnitude with the sign given (a zero with
    either sign)."""

    target: Target

    def statement(self) -> str:
        return f"rounding to {self.target.format.name}, {self.target.rounding}, sees magnitudes alone"

    @property
    def _low(self) -> int:
        return self.target.format.emin - self.target.format.fraction - 4

    def inputs(self, symbol: Callable[[str, int], Bits]) -> tuple[Bits, ...]:
        fmt = self.target.format
        return symbol("magnitude", fmt.precision + 2), symbol("place", (fmt.emax + 4 - self._low).bit_length())

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        magnitude, place = given
        fmt = self.target.format
        unit = Exponent(place, self._low, self._low + (1 << place.width) - 1)
        positive = magnitude.any() & ~magnitude.any()
        one, other = (unpack(round_and_pack(sign, magnitude, unit, self.target), fmt) for sign in (positive, ~positive))
        same = one.term.significand.eq(other.term.significand) & one.term.exponent.bits.eq(other.term.exponent.bits)
        signs = ~one.sign & other.sign
        infinite = one.is_infinite & other.is_infinite & signs
        finite = ~(one.is_infinite | other.is_infinite) & same & (signs | (one.is_zero & other.is_zero))
        return (one.is_nan & other.is_nan) | (~(one.is_nan | other.is_nan) & (infinite | finite))


def lemmas_of(node: Node) -> tuple[RoundsOpposite, ...]:
    """The lemmas about the datapath that `turned` needs for a node that turns."""
    return (RoundsOpposite(target_of(node.rounding)),) if isinstance(node, Round) else ()


@rule
def turned(unit: Unit, node: Node, premises: Sequence[Theorem], lemmas: Sequence[Theorem]) -> Made:
    """An element of a or c turns, one of b or of the scale factors stays; a zero does both. A product turns if exactly
    one of its factors does, a gated one if the product does, a segment if its element does, a sum that counts as zero
    where it cancels if the sum does, and a scaled term if the term does; scale factors stay. A
    sum turns if all its terms turn, and stays if all stay: exponents do not change, and alignment, cuts and roundings
    depend on magnitudes alone, except in the modes up and down. A sum that turns must not wrap, as wrapping is not
    symmetric, and must not have a sticky bit, which has no sign if the sum cancels. A loop turns if its start turns,
    and its body turns if the result so far does (induction)."""
    goals: list[Turns] = [goal_of(premise, Turns, "turned") for premise in premises]
    if [goal.node for goal in goals] != list(node.operands) or any(goal.unit is not unit for goal in goals):
        raise RuleError("turned: the premises are not about its operands")
    assuming = frozenset[int]().union(*(goal.assuming for goal in goals))
    turns = _parity(unit, node, goals)
    if turns:
        _check_magnitudes(unit, node)
        if [lemma.goal for lemma in lemmas] != list(lemmas_of(node)):
            raise RuleError("turned: a lemma about the datapath is missing, or about another one")
    elif lemmas:
        raise RuleError("turned: it needs no lemma")
    if isinstance(node, Running):
        assuming |= {node.level}
    if isinstance(node, Repeat):
        if node.level in goals[0].assuming:
            raise RuleError("turned: the start of a loop reads its own results")
        assuming -= {node.level}
    return Made(Turns(unit, node, turns, assuming), (*premises, *lemmas))


def _parity(unit: Unit, node: Node, goals: Sequence[Turns]) -> bool:
    """Whether a node turns. Raises RuleError if it is not known to turn or to stay."""
    signs = [goal.turns for goal in goals if goal.node != Constant() and goal.node != Constant(negative=True)]
    match node:
        case Element():
            if node.operand in ("a", "c") and not (unit.a.signed and unit.c.signed):
                raise RuleError("turned: an operand has no sign")
            return node.operand in ("a", "c")
        case Constant() | Running():
            return True
        case Product():
            return goals[0].turns != goals[1].turns
        case Gate() | Segment():  # zeros of one sign, also for what is not finite: a zero turns and stays
            return goals[0].turns
        case Scale():
            if goals[1].turns or goals[2].turns:
                raise RuleError("turned: a scale factor turns")
            return goals[0].turns
        case Repeat():
            if not all(goal.turns for goal in goals):
                raise RuleError("turned: a loop's results stay")
            return True
        case Each() | Cut() | Round() | ExactSum() | FusedSum() | Cancelling():
            if len(set(signs)) > 1:
                raise RuleError("turned: some terms turn, and some stay")
            return not signs or signs[0]
    raise RuleError(f"turned: of a {node.kind} it is not known")


def _check_magnitudes(unit: Unit, node: Node) -> None:
    """Raises RuleError for a node that does not treat both signs alike."""
    if isinstance(node, Round) and (node.rounding.mode not in EVEN or not node.rounding.format.signed):
        raise RuleError(f"turned: rounded {node.rounding.mode}, or to a format without signs")
    if isinstance(node, Round) and not node.rounding.nan_or_zero:
        raise RuleError("turned: a NaN is written as a number, which is not negated")
    if isinstance(node, Cut) and node.mode not in EVEN:
        raise RuleError(f"turned: cut {node.mode}")
    if isinstance(node, FusedSum):
        if node.rounding not in EVEN or node.sticky:
            raise RuleError(f"turned: terms are rounded {node.rounding}, or a sticky bit is set")
        if node.carry_bits is not None and not fits(Scope.of(unit), node):
            raise RuleError("turned: the sum may wrap")
