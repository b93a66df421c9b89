"""No sum of integers leaves the range of its accumulator, or of the moduli from which it is recombined: intervals of
what units read, and of their sums. Integers may be numbers of formats that have all integers up to some one.

Every interval has 0 in it. So a bound for K products is one for fewer, and for any that are added up on the way.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce

from mmaprobe.queries.kernel.parts import adds_products_once
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
from mmaprobe.smtmodel.nodes.repeat import Each, Repeat, Running
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.joins import Promote
from mmaprobe.smtmodel.plans.partitions import Runs
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.stages import Chain, Parted, Stage, Then, parts_of
from mmaprobe.smtmodel.plans.words import SharedOf

#: the least and the largest of some numbers
Interval = tuple[Fraction, Fraction]
NOTHING: Interval = (Fraction(0), Fraction(0))
Pair = tuple[Round, Round]  # a word of a and a word of b, both integers


@dataclass(frozen=True)
class NeverWraps:
    """No sum of up to `length` products of a plan's units, each of integers, wraps, saturates or is rounded, and each
    number recombined from sums of residues is the sum of the products of the integers that these are residues of,
    whatever the elements of A and B, if these are finite, and of a magnitude of at most `most_a` and `most_b` (None: of
    any)."""

    plan: Plan
    length: int
    most_a: int | None = None
    most_b: int | None = None

    def statement(self) -> str:
        sides = (("a", self.most_a), ("b", self.most_b))
        within = "".join(f", {side} within {most}" for side, most in sides if most is not None)
        what = "wraps" if self.plan.adds_integers else "is rounded"
        return f"no sum of up to {self.length} products of {self.plan.reference or 'a plan'} {what}{within}"


@rule
def never_wraps(plan: Plan, length: int, most_a: int | None, most_b: int | None) -> Made:
    """Units that add products of integers exactly, each once, give sums between those of the least and of the largest
    products, if these are in the range of the accumulator: by induction on the instructions, of which the last one has
    the widest interval. Sums start from +0. A sum of products of residues is that of the products of the integers
    modulo each number; so what is recombined is their sum, if that is less than half of the product of the moduli."""
    if any(number is not None and number < 0 for number in (length, most_a, most_b)):
        raise RuleError("never_wraps: K and magnitudes are from 0 on")

    def interval(side: int, word: Round | None) -> Interval:
        most = (most_a, most_b)[side]
        return numbers_within((plan.a, plan.b)[side], most) if word is None else interval_of(word, most)

    check_sums(plan, length, interval)
    for node in walk(plan.result):
        if isinstance(node, Recombined):
            integers = (
                interval_of(word, most) for word, most in zip(residues_of(plan, node), (most_a, most_b), strict=True)
            )
            half = Fraction(node.whole - 1, 2)
            check_within(_times(product_of(*integers), length), (-half, half))
    return Made(NeverWraps(plan, length, most_a, most_b))


def check_sums(plan: Plan, length: int, interval: Callable[[int, Round | None], Interval]) -> None:
    """Raises RuleError where a sum of up to `length` products may not be exact. `interval`: of the integers of a side
    that a unit reads, of a word or, without one, of elements."""
    if plan.scale is not None:
        raise RuleError("never_wraps: the units take scale factors")
    for model in plan.models:
        adds_products_once(model.unit)
    for products in plan.sums:
        if products.start != Constant():
            raise RuleError("never_wraps: a sum starts from another number than +0")
        _stage(plan, products.stage, length, NOTHING, interval)


def _stage(
    plan: Plan, stage: Stage, count: int, start: Interval, interval: Callable[[int, Round | None], Interval]
) -> Interval:
    """The interval of a stage's result for `count` products. Raises RuleError."""
    if isinstance(stage, Then):
        for body in stage.bodies:
            start = _stage(plan, body, count, start, interval)
        return start
    if (runs := promoted(stage)) is not None:
        body, every = runs
        run = min(count, every) or 1
        low, high = _stage(plan, body, run, NOTHING, interval)
        start = _plus(start, (low * count / run, high * count / run))  # each product adds as much
        check_within(start, whole_numbers(stage.d))
        return start
    if not isinstance(stage, Chain):
        raise RuleError(f"never_wraps: a {type(stage).__name__} is more than a chain of instructions")
    if stage.tail is not None:
        raise RuleError("never_wraps: nothing is told of products left over for a tail")
    unit, read = stage.model, plan.read(stage.words)
    if any(word is None and not fmt.is_integer for word, fmt in zip(read, (plan.a, plan.b), strict=True)):
        raise RuleError(f"never_wraps: {unit.reference or 'a unit'} does not add integers")
    sides = {
        side: interval(number, None if word is None else whole_of(word))
        for number, (side, word) in enumerate(zip("ab", read, strict=True))
    }
    tiles, rest = divmod(count, unit.length)
    if tiles:
        each = added(unit, sides, NOTHING, unit.length)
        start = added(unit, sides, _plus(start, _times(each, tiles - 1)), unit.length)
    return added(unit, sides, start, rest) if rest else start


def promoted(stage: Stage) -> tuple[Stage, int] | None:
    """How runs of K are summed from +0, and of how many products, by a stage that adds their sums, each rounded."""
    runs = parts_of(stage, Runs, Promote)
    if runs is None or runs.even or runs.share or not isinstance(stage, Parted) or stage.tail is not None:
        return None
    return stage.body, runs.every


def integers_of(plan: Plan, stage: Stage) -> Mapping[Pair, int]:
    """How often a stage adds the products of which integers of both sides. Raises RuleError."""
    found = Counter[Pair]()
    if isinstance(stage, Then):
        for body in stage.bodies:
            found += integers_of(plan, body)
        return found
    if (runs := promoted(stage)) is not None:
        return integers_of(plan, runs[0])
    if not isinstance(stage, Chain):
        raise RuleError("never_wraps: a sum that is more than a chain of instructions")
    a, b = plan.read(stage.words)
    if a is None or b is None:
        raise RuleError("never_wraps: a unit reads elements as they are")
    return Counter({(whole_of(a), whole_of(b)): 1})


def whole_of(word: Round) -> Round:
    """The integer that a word is: the word itself, or what is rounded to a format that has all integers of its own.
    Raises RuleError."""
    if word.rounding.format.is_integer:
        return word
    if not isinstance(word.term, Round) or not word.term.rounding.format.is_integer:
        raise RuleError("never_wraps: a unit reads a word that is no integer")
    check_within(numbers_within(word.term.rounding.format, None), whole_numbers(word.rounding.format))
    return word.term


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
        match None if word is None else whole_of(word):
            case Round(term=Residue(term=Round() as whole, modulus=own), rounding=how) if own == modulus:
                check_within(_of_residues(modulus), numbers_within(how.format, None))
                if not whole.rounding.format.is_integer:
                    raise RuleError("never_wraps: a residue is of a number that is no integer")
                sides.append(whole)
            case _:
                raise RuleError(f"never_wraps: a word of a recombined sum is no residue modulo {modulus}")
    return sides[0], sides[1]


# -- an instruction


def added(unit: Model, sides: Mapping[str, Interval], start: Interval, count: int) -> Interval:
    """The result of an instruction, c in `start` and the first `count` products added, where all are integers. Raises
    RuleError where a sum may leave the range of its accumulator, or be rounded."""
    if len({fmt.is_integer for fmt in (unit.a, unit.b, unit.c, unit.d)}) > 1:
        raise RuleError(f"never_wraps: {unit.reference or 'a unit'} does not add integers")
    return _Reads(unit, sides, start, count).interval(unit.unit.result, {})


@dataclass
class _Reads:
    """Intervals of the nodes of a unit. `running`: of the result so far of a loop, by its level."""

    unit: Model
    sides: Mapping[str, Interval]
    start: Interval
    count: int
    running: dict[int, Interval] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether it adds numbers of integer formats."""
        return self.unit.d.is_integer

    def interval(self, node: Node, places: Mapping[int, int]) -> Interval:
        match node:
            case Element(operand="c"):
                return self.start
            case Element(operand="a" | "b") if node.index is not None:
                return self.sides[node.operand] if node.index.at(places) < self.count else NOTHING
            case Constant():
                return NOTHING
            case Product(limit=None):
                if node.normalised:
                    raise RuleError("never_wraps: nothing is told of normalised products")
                if self.whole and not all(isinstance(factor, Element) for factor in node.operands):
                    raise RuleError("never_wraps: a product of integers of other formats")
                return product_of(self.interval(node.left, places), self.interval(node.right, places))
            case Each():
                return _sum(self.interval(node.body, {**places, node.level: place}) for place in node.places)
            case Repeat():
                self.running[node.level] = self.interval(node.start, places)
                for place in node.places:
                    self.running[node.level] = self.interval(node.body, {**places, node.level: place})
                return self.running[node.level]
            case Running():
                return self.running[node.level]
            case ExactSum():
                return _sum(self.interval(item, places) for item in node.items)
            case FusedSum():
                terms = [self.interval(item, places) for item in node.items]
                self._check_exact(node, terms)
                inner = _sum(terms)
                if node.carry_bits is not None:
                    top = 1 << node.bits_of_terms[0] + 1 + node.carry_bits
                    check_within(inner, (Fraction(-top), Fraction(top - 1)))
                return inner
            case Round() if not isinstance(node.term, Round) and node.rounding.format.is_integer == self.whole:
                inner = self.interval(node.term, places)
                check_within(inner, whole_numbers(node.rounding.format))
                return inner
        raise RuleError(f"never_wraps: nothing is told of sums with a {node.kind}")

    def _check_exact(self, node: FusedSum, terms: Sequence[Interval]) -> None:
        """Raises RuleError for an alignment in larger units than 1: then a bit of a term may be lost. A sum that may
        wrap is in units of 1."""
        unit, bits = self.unit, set(node.bits_of_terms)
        # of an integer format all exponents are one; of other numbers none is larger than that of the largest integer
        tops = [unit.a.emin + unit.b.emin, unit.c.emin, *node.bounds]
        tops += [x.rounding.format.emin for x in walk(node) if isinstance(x, Round)]
        if not self.whole:
            tops += [int(max(-low, high)).bit_length() - 1 for low, high in terms]
        if node.sticky or any(far is not None for far in node.reach) or max(tops) > min(bits):
            raise RuleError("never_wraps: a sum may lose bits")
        if node.carry_bits is not None and bits != {node.least}:
            raise RuleError("never_wraps: a sum may wrap in fewer bits")


def check_within(interval: Interval, room: Interval) -> None:
    if interval[0] < room[0] or interval[1] > room[1]:
        raise RuleError(f"never_wraps: a sum from {interval[0]} to {interval[1]} may leave {room[0]} to {room[1]}")


# -- words


def interval_of(word: Node, most: int | None) -> Interval:
    """The interval of a word of finite elements of a magnitude of at most `most`. Raises RuleError."""
    match word:
        case Given():
            return numbers_within(word.format, most)
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
    rounding, room = word.rounding, numbers_within(word.rounding.format, None)
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
    room = numbers_within(integers.format, None)
    if -math.floor(-low) < room[0] or math.floor(high) > room[1]:
        return None
    below = 1 - Fraction(2) ** max(-fmt.fraction - 1, fmt.unit)
    return max(low, -below), min(high, below)


# -- intervals


def whole_numbers(fmt: Format) -> Interval:
    """Integers of which a format has all; 1 is a normal number of it. Raises RuleError."""
    low, high = numbers_within(fmt, None)
    if fmt.is_integer:
        return low, high
    if fmt.emin > 0 or not fmt.subnormals:
        raise RuleError(f"never_wraps: {fmt.name} has no zero, or no normal number 1")
    top = Fraction(1 << fmt.precision)
    return max(low, -top), min(high, top)


def numbers_within(fmt: Format, most: int | None) -> Interval:
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
