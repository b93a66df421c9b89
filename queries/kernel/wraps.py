"""No sum of integers leaves the range of its accumulator, or of the moduli from which it is recombined: intervals of
what units read, and of their sums.

Every interval has 0 in it. So a bound for K products is one for fewer, and for any that are added up on the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

from mmaprobe.queries.kernel.theorem import Made, RuleError, rule
from mmaprobe.smtmodel.arithmetic.display import finite_value, ulp_of
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import (
    Constant,
    Element,
    ExactSum,
    FusedSum,
    Literal,
    Node,
    Product,
    Recombined,
    Residue,
    Round,
)
from mmaprobe.smtmodel.nodes.element import MINUS
from mmaprobe.smtmodel.nodes.given import Given
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.repeat import Each
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.stages import Chain, Stage, Then
from mmaprobe.smtmodel.plans.words import SharedOf

#: the least and the largest of some numbers
Interval = tuple[Fraction, Fraction]
NOTHING: Interval = (Fraction(0), Fraction(0))


@dataclass(frozen=True)
class NeverWraps:
    """No sum of up to `length` products of a plan's units wraps or saturates, and each number recombined from sums of
    residues is the sum of the products of the integers that these are residues of, whatever the elements of A and B, if
    these are finite, and of a magnitude of at most `most_a` and `most_b` (None: of any)."""

    plan: Plan
    length: int
    most_a: int | None = None
    most_b: int | None = None

    def statement(self) -> str:
        sides = (("a", self.most_a), ("b", self.most_b))
        within = "".join(f", {side} within {most}" for side, most in sides if most is not None)
        return f"no sum of up to {self.length} products of {self.plan.reference or 'a plan'} wraps{within}"


@rule
def never_wraps(plan: Plan, length: int, most_a: int | None, most_b: int | None) -> Made:
    """Units that add products of integers exactly, each once, give sums between those of the least and of the largest
    products, if these are in the range of the accumulator: by induction on the instructions, of which the last one has
    the widest interval. Sums start from +0. A sum of products of residues is that of the products of the integers
    modulo each number; so what is recombined is their sum, if that is less than half of the product of the moduli."""
    if any(number is not None and number < 0 for number in (length, most_a, most_b)):
        raise RuleError("never_wraps: K and magnitudes are from 0 on")
    if plan.scale is not None:
        raise RuleError("never_wraps: the units take scale factors")
    for products in plan.sums:
        if products.start != Constant():
            raise RuleError("never_wraps: a sum starts from another number than +0")
        _stage(plan, products.stage, length, NOTHING, {"a": most_a, "b": most_b})
    for node in walk(plan.result):
        if isinstance(node, Recombined):
            integers = (
                interval_of(word, most) for word, most in zip(residues_of(plan, node), (most_a, most_b), strict=True)
            )
            half = Fraction(node.whole - 1, 2)
            check_within(_times(product_of(*integers), length), (-half, half))
    return Made(NeverWraps(plan, length, most_a, most_b))


def _stage(plan: Plan, stage: Stage, count: int, start: Interval, most: Mapping[str, int | None]) -> Interval:
    """The interval of a stage's result for `count` products. Raises RuleError."""
    if isinstance(stage, Then):
        for body in stage.bodies:
            start = _stage(plan, body, count, start, most)
        return start
    if not isinstance(stage, Chain):
        raise RuleError(f"never_wraps: a {type(stage).__name__} is more than a chain of instructions")
    if stage.tail is not None:
        raise RuleError("never_wraps: nothing is told of products left over for a tail")
    unit, read = stage.model, plan.read(stage.words)
    given = {"a": plan.a, "b": plan.b}
    sides = {
        side: _within(given[side], most[side]) if word is None else interval_of(word, most[side])
        for side, word in zip("ab", read, strict=True)
    }
    tiles, rest = divmod(count, unit.length)
    if tiles:
        _, each = added(unit, sides, NOTHING, unit.length)
        before = _plus(start, _times(each, tiles - 1))
        growth, end = added(unit, sides, before, unit.length)
        if growth != each:
            raise RuleError("never_wraps: an instruction adds more than its products to c")
        start = end
    return added(unit, sides, start, rest)[1] if rest else start


def residues_of(plan: Plan, node: Recombined) -> tuple[Round, Round]:
    """The words of a and of b that are integers, of whose residues a plan's units add products for each modulus. Raises
    RuleError for what is recombined of other sums."""
    found = dict.fromkeys(_residues(plan, item, modulus) for item, modulus in zip(node.items, node.moduli, strict=True))
    if len(found) > 1:
        raise RuleError("never_wraps: the sums are of residues of different integers")
    (sides,) = found
    return sides


def _residues(plan: Plan, item: Node, modulus: int) -> tuple[Round, Round]:
    """Those of one modulus."""
    if not isinstance(item, Products) or not isinstance(item.stage, Chain):
        raise RuleError("never_wraps: what is recombined is no sum of products by one unit")
    sides = []
    for word in plan.read(item.stage.words):
        match word:
            case Round(term=Residue(term=Round() as whole, modulus=own)) if own == modulus:
                check_within(_of_residues(modulus), _within(word.rounding.format, None))
                if not (word.rounding.format.is_integer and whole.rounding.format.is_integer):
                    raise RuleError("never_wraps: a residue is of a number, or becomes one, that is no integer")
                sides.append(whole)
            case _:
                raise RuleError(f"never_wraps: a word of a recombined sum is no residue modulo {modulus}")
    return sides[0], sides[1]


# -- an instruction


def added(unit: Model, sides: Mapping[str, Interval], start: Interval, count: int) -> tuple[Interval, Interval]:
    """What an instruction adds to c, and its result, from c in `start`, with products beyond the first `count` of
    zeros. Raises RuleError where a sum may leave the range of its accumulator, or is not one of integers."""
    if not all(fmt.is_integer for fmt in (unit.a, unit.b, unit.c, unit.d)):
        raise RuleError(f"never_wraps: {unit.reference or 'a unit'} does not add integers")
    if not unit.addend:
        raise RuleError("never_wraps: a unit does not read c")
    reads = _Reads(unit, sides, start, count)
    sums = reads.interval(unit.unit.result, {})
    if reads.addends != 1:
        raise RuleError("never_wraps: c is not added once")
    return (sums[0] - start[0], sums[1] - start[1]), sums


@dataclass
class _Reads:
    """Intervals of the nodes of a unit. `addends`: how often c was read."""

    unit: Model
    sides: Mapping[str, Interval]
    start: Interval
    count: int
    addends: int = 0

    def interval(self, node: Node, places: Mapping[int, int]) -> Interval:
        match node:
            case Element(operand="c"):
                self.addends += 1
                return self.start
            case Element(operand="a" | "b") if node.index is not None:
                return self.sides[node.operand] if node.index.at(places) < self.count else NOTHING
            case Product(left=Element(operand="a" | "b"), right=Element(operand="a" | "b"), limit=None):
                if node.normalised:
                    raise RuleError("never_wraps: nothing is told of normalised products")
                return product_of(self.interval(node.left, places), self.interval(node.right, places))
            case Each():
                return _sum(self.interval(node.body, {**places, node.level: place}) for place in node.places)
            case ExactSum():
                return _sum(self.interval(item, places) for item in node.items)
            case FusedSum():
                self._check_exact(node)
                inner = _sum(self.interval(item, places) for item in node.items)
                if node.carry_bits is not None:
                    top = 1 << node.bits_of_terms[0] + 1 + node.carry_bits
                    check_within(inner, (Fraction(-top), Fraction(top - 1)))
                return inner
            case Round() if node.rounding.format.is_integer and not isinstance(node.term, Round):
                inner = self.interval(node.term, places)
                check_within(inner, _within(node.rounding.format, None))
                return inner
        raise RuleError(f"never_wraps: nothing is told of sums with a {node.kind}")

    def _check_exact(self, node: FusedSum) -> None:
        """Raises RuleError for an alignment in other units than 1: then a bit of a term may be lost."""
        unit, bits = self.unit, set(node.bits_of_terms)
        tops = (unit.a.emin + unit.b.emin, unit.c.emin)  # the exponents of products and of c: each format has one
        if node.sticky or node.zeros is not None or any(far is not None for far in (*node.floors, *node.reach)):
            raise RuleError("never_wraps: a sum may lose bits")
        if node.least is None or bits != {node.least} or max(tops) > node.least:
            raise RuleError("never_wraps: a sum may lose bits")


def check_within(interval: Interval, room: Interval) -> None:
    if interval[0] < room[0] or interval[1] > room[1]:
        raise RuleError(f"never_wraps: a sum from {interval[0]} to {interval[1]} may leave {room[0]} to {room[1]}")


# -- words


def interval_of(word: Node, most: int | None) -> Interval:
    """The interval of a word of finite elements of a magnitude of at most `most`. Raises RuleError."""
    match word:
        case Given():
            return _within(word.format, most)
        case Literal():
            if (value := finite_value(word.pattern, word.format)) is None:
                raise RuleError("never_wraps: a word has a factor that is not a number")
            return min(value, Fraction(0)), max(value, Fraction(0))
        case Product(left=Given(format=fmt), right=SharedOf(inverse=True, up=up), limit=None):
            # the power is the largest one up to the magnitudes, which have so many bits, or the next
            bits = fmt.width if fmt.is_integer else fmt.precision
            top = 2 - Fraction(2) ** (1 - bits) if not up else Fraction(1)
            return -top, top
        case Residue():
            return _of_residues(word.modulus)
        case Product(limit=None):
            return product_of(interval_of(word.left, most), interval_of(word.right, most))
        case ExactSum():
            left = _left_over(word, most)
            return left or _sum(interval_of(item, most) for item in word.items)
        case Round():
            return _rounded(word, most)
    raise RuleError(f"never_wraps: nothing is told of words with a {word.kind}")


def _of_residues(modulus: int) -> Interval:
    return Fraction(-(modulus // 2)), Fraction((modulus - 1) // 2)


def _rounded(word: Round, most: int | None) -> Interval:
    """Of any rounded number; of an integer, at least the range of its format, whatever it was."""
    rounding, room = word.rounding, _within(word.rounding.format, None)
    try:
        low, high = interval_of(word.term, most)
        interval = -_magnitude(-low, rounding), _magnitude(high, rounding)
    except RuleError:
        if not rounding.format.is_integer:
            raise
        return room
    if room[0] <= interval[0] and interval[1] <= room[1]:
        return interval
    if not rounding.format.is_integer:
        raise RuleError("never_wraps: a word may overflow")
    return room


def _magnitude(value: Fraction, rounding: Rounding) -> Fraction:
    """A number from 0 on, rounded with no limit of the range: rounding is monotonic."""
    ways: Mapping[str, Callable[[Fraction], int]] = {"toward_zero": math.floor, "nearest_even": round}
    if rounding.mode not in ways:
        raise RuleError(f"never_wraps: nothing is told of words rounded {rounding.mode}")
    unit = ulp_of(value, rounding.format)
    return ways[rounding.mode](value / unit) * unit


def _left_over(word: ExactSum, most: int | None) -> Interval | None:
    """Of a number less its integer part, if that is in the range of its format: less than 1, with the number's sign. It
    is a multiple of the number's last place, and so a number of the number's format."""
    match word.items:
        case (Given() | Round() as whole, Product(left=left, right=Round(term=term) as part, limit=None)):
            pass
        case _:
            return None
    fmt, integers = whole.format if isinstance(whole, Given) else whole.rounding.format, part.rounding
    if left != MINUS or term != whole or not integers.format.is_integer or integers.mode != "toward_zero":
        return None
    low, high = interval_of(whole, most)
    room = _within(integers.format, None)
    if -math.floor(-low) < room[0] or math.floor(high) > room[1]:
        return None
    below = 1 - Fraction(2) ** max(-fmt.fraction - 1, fmt.unit)
    return max(low, -below), min(high, below)


# -- intervals


def _within(fmt: Format, most: int | None) -> Interval:
    """Of all finite numbers of a format, of a magnitude of at most `most`."""
    high = fmt.most
    low = Fraction(0) if not fmt.signed else -high - fmt.complement * Fraction(2) ** fmt.unit
    return (low, high) if most is None else (max(low, Fraction(-most)), min(high, Fraction(most)))


def _plus(one: Interval, other: Interval) -> Interval:
    return one[0] + other[0], one[1] + other[1]


def _sum(intervals: Iterable[Interval]) -> Interval:
    return reduce(_plus, intervals, NOTHING)


def _times(one: Interval, count: int) -> Interval:
    return one[0] * count, one[1] * count


def product_of(one: Interval, other: Interval) -> Interval:
    ends = [x * y for x in one for y in other]
    return min(ends), max(ends)
