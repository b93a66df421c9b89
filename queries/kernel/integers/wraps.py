"""The rule that no sum of integers leaves the range of its accumulator, or of the moduli from which it is recombined,
by intervals of the words that units read and of their sums. An integer may be a number of a floating-point format that
has all integers up to some integer.

Every interval includes 0. So a bound for K products is a bound for fewer products, and for every intermediate sum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mmaprobe.queries.kernel.bounds.parts import adds_products_once
from mmaprobe.queries.kernel.theorem import Made, RuleError, rule
from mmaprobe.smtmodel.arithmetic.formats import Format, Interval
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import (
    Constant,
    Element,
    ExactSum,
    FusedSum,
    Node,
    Product,
    Recombined,
    Residue,
    Round,
)
from mmaprobe.smtmodel.nodes.given import Given
from mmaprobe.smtmodel.nodes.known import NOTHING, Known, common, lies_in, magnitude, plus, product_of
from mmaprobe.smtmodel.nodes.node import Knowledge, walk
from mmaprobe.smtmodel.nodes.repeat import Each, Repeat, Running
from mmaprobe.smtmodel.nodes.residues import residues
from mmaprobe.smtmodel.plans.joins import Promote
from mmaprobe.smtmodel.plans.partitions import Runs
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.stages import Chain, Parted, Stage, Then, parts_of
from mmaprobe.smtmodel.plans.words import SharedOf

Pair = tuple[Round, Round]  # a word of a and a word of b, both integers


@dataclass(frozen=True)
class NeverWraps:
    """The statement about all finite elements of A and B with magnitudes of at most `most_a` and `most_b` (None: of any
    magnitude): no sum of up to `length` products of integers by a plan's units wraps, saturates or is rounded; and each
    number that is recombined from sums of residues is the sum of the products of the integers that have these
    residues."""

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
    the widest interval. Sums start from +0. A sum of products of residues equals, modulo each number, the sum of the
    products of the integers; so the recombined number is the sum of the products of the integers, if this is less than
    half of the product of the moduli."""
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
    """Raises RuleError if a sum of up to `length` products may not be exact. `interval`: gives the interval of the
    integers that a unit reads of a side (0: A, 1: B): of a word, or of the elements themselves (None)."""
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
    """The interval of a stage's result for `count` products from a sum in `start`. Raises RuleError if a sum may not be
    exact."""
    if isinstance(stage, Then):
        for body in stage.bodies:
            start = _stage(plan, body, count, start, interval)
        return start
    if (runs := promoted(stage)) is not None:
        body, every = runs
        run = min(count, every) or 1
        low, high = _stage(plan, body, run, NOTHING, interval)
        start = plus(start, (low * count / run, high * count / run))  # each product adds as much
        check_within(start, whole_numbers(stage.d))
        return start
    if not isinstance(stage, Chain):
        raise RuleError(f"never_wraps: a {type(stage).__name__} is more than a chain of instructions")
    if stage.tail is not None:
        raise RuleError("never_wraps: the rule does not cover products left over for a tail")
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
        start = added(unit, sides, plus(start, _times(each, tiles - 1)), unit.length)
    return added(unit, sides, start, rest) if rest else start


def promoted(stage: Stage) -> tuple[Stage, int] | None:
    """The stage that sums each run of K from +0, and the number of products of a run, for a stage that adds the sums of
    runs, each rounded; None for another stage."""
    runs = parts_of(stage, Runs, Promote)
    if runs is None or runs.even or runs.share or not isinstance(stage, Parted) or stage.tail is not None:
        return None
    return stage.body, runs.every


def integers_of(plan: Plan, stage: Stage) -> Mapping[Pair, int]:
    """The pairs of integers, of a and of b, whose products a stage adds, each with the number of times. Raises
    RuleError for a stage other than chains."""
    pairs = Counter[Pair]()
    if isinstance(stage, Then):
        for body in stage.bodies:
            pairs += integers_of(plan, body)
        return pairs
    if (runs := promoted(stage)) is not None:
        return integers_of(plan, runs[0])
    if not isinstance(stage, Chain):
        raise RuleError("never_wraps: a sum that is more than a chain of instructions")
    a, b = plan.read(stage.words)
    if a is None or b is None:
        raise RuleError("never_wraps: a unit reads elements as they are")
    return Counter({(whole_of(a), whole_of(b)): 1})


def whole_of(word: Round) -> Round:
    """The integer that a word stands for: the word itself, or the integer that it rounds to a format that has all
    integers of the operand's format. Raises RuleError for a word that is no integer."""
    if word.rounding.format.is_integer:
        return word
    if not isinstance(word.term, Round) or not word.term.rounding.format.is_integer:
        raise RuleError("never_wraps: a unit reads a word that is no integer")
    check_within(numbers_within(word.term.rounding.format, None), whole_numbers(word.rounding.format))
    return word.term


def residues_of(plan: Plan, node: Recombined) -> tuple[Round, Round]:
    """The integer words of a and of b whose residues' products a plan's units add, for each modulus. Raises RuleError
    for a number that is recombined from other sums."""
    words = dict.fromkeys(_residues(plan, item, modulus) for item, modulus in zip(node.items, node.moduli, strict=True))
    if len(words) > 1:
        raise RuleError("never_wraps: the sums are of residues of different integers")
    (sides,) = words
    return sides


def _residues(plan: Plan, item: Node, modulus: int) -> tuple[Round, Round]:
    """The integer words of a and of b for one modulus."""
    if not isinstance(item, Products) or not isinstance(item.stage, Chain):
        raise RuleError("never_wraps: what is recombined is no sum of products by one unit")
    sides = []
    for word in plan.read(item.stage.words):
        match None if word is None else whole_of(word):
            case Round(term=Residue(term=Round() as whole, modulus=own), rounding=how) if own == modulus:
                check_within(residues(modulus), numbers_within(how.format, None))
                if not whole.rounding.format.is_integer:
                    raise RuleError("never_wraps: a residue is of a number that is no integer")
                sides.append(whole)
            case _:
                raise RuleError(f"never_wraps: a word of a recombined sum is no residue modulo {modulus}")
    return sides[0], sides[1]


# -- an instruction


def added(unit: Model, sides: Mapping[str, Interval], start: Interval, count: int) -> Interval:
    """The interval of the result of an instruction that adds every product once, for c in `start` and the first `count`
    products, all of integers. Every intermediate sum lies in this interval, as no term is subtracted. Raises RuleError
    if a sum may leave the range of its accumulator, or be rounded."""
    if len({fmt.is_integer for fmt in (unit.a, unit.b, unit.c, unit.d)}) > 1:
        raise RuleError(f"never_wraps: {unit.reference or 'a unit'} does not add integers")
    whole, each = unit.d.is_integer, product_of(sides["a"], sides["b"])
    every = plus(start, _times(each, count))

    def interval(node: Node) -> Interval:
        match node:
            case Element():
                return {"c": start, **sides}[node.operand]
            case Each():
                return interval(node.body)
        return each if isinstance(node, Product) else every

    for node in walk(unit.unit.result):
        match node:
            case Element(operand="a" | "b" | "c") | Constant() | Each() | Repeat() | Running() | ExactSum():
                pass
            case Product(limit=None):
                if node.normalised:
                    raise RuleError("never_wraps: the rule does not cover normalised products")
                if not all(isinstance(factor, Element) or (not whole and _is_read(factor)) for factor in node.operands):
                    raise RuleError("never_wraps: a product of other numbers than elements")
            case FusedSum():
                _check_exact(unit, node, [interval(item) for item in node.items])
                if node.carry_bits is not None:
                    top = 1 << node.bits_of_terms[0] + 1 + node.carry_bits
                    check_within(every, (Fraction(-top), Fraction(top - 1)))
            case Round() if not isinstance(node.term, Round) and node.rounding.format.is_integer == whole:
                check_within(interval(node.term), whole_numbers(node.rounding.format))
            case _:
                raise RuleError(f"never_wraps: the rule does not cover sums with a {node.kind}")
    return every


def _is_read(factor: Node) -> bool:
    """Whether a factor is a rounded element."""
    return isinstance(factor, Round) and isinstance(factor.term, Element)


def _check_exact(unit: Model, node: FusedSum, terms: Sequence[Interval]) -> None:
    """Raises RuleError for an alignment in larger units than 1, in which a bit of a term may be lost, and for a sum
    with carry bits in other units than 1."""
    bits = set(node.bits_of_terms)
    # an integer format has one exponent; other numbers have no exponent above that of the largest integer
    tops = [unit.a.emin + unit.b.emin, unit.c.emin, *node.bounds]
    tops += [x.rounding.format.emin for x in walk(node) if isinstance(x, Round)]
    if not unit.d.is_integer:
        tops += [int(magnitude(term)).bit_length() - 1 for term in terms]
    if node.sticky or any(far is not None for far in node.reach) or max(tops) > min(bits):
        raise RuleError("never_wraps: a sum may lose bits")
    if node.carry_bits is not None and bits != {node.least}:
        raise RuleError("never_wraps: a sum may wrap in fewer bits")


def check_within(interval: Interval, room: Interval) -> None:
    """Raises RuleError unless an interval lies within another (`room`)."""
    if not lies_in(interval, room):
        raise RuleError(f"never_wraps: a sum from {interval[0]} to {interval[1]} may leave {room[0]} to {room[1]}")


# -- words


@dataclass
class OfElements(Knowledge):
    """The facts about words of finite elements with magnitudes of at most `most` (None: of any magnitude)."""

    most: int | None = None

    def _of(self, node: Node) -> Known:
        match node:
            case Given(format=fmt):
                return replace(Known.number(frozenset({fmt}), interval=numbers_within(fmt, self.most)), finite=True)
            case Product(left=Given(format=fmt), right=SharedOf(inverse=True, up=up), limit=None):
                # the power of two is the largest one up to the largest magnitude, which has `bits` bits, or the next
                bits = fmt.width if fmt.is_integer else fmt.precision
                top = 2 - Fraction(2) ** (1 - bits) if not up else Fraction(1)
                return Known(bits=bits, interval=(-top, top), finite=True)
        return super()._of(node)


def interval_of(word: Node, most: int | None) -> Interval:
    """The interval of a word of finite elements with magnitudes of at most `most` (None: of any magnitude). Raises
    RuleError if the interval is not known."""
    known = OfElements({}, most=most).of(word)
    if known.interval is None or not known.finite:
        raise RuleError(f"never_wraps: the rule does not cover words with a {word.kind}, or a word may overflow")
    return known.interval


# -- intervals


def whole_numbers(fmt: Format) -> Interval:
    """An interval of integers, all of which are numbers of a format. Raises RuleError if the format has no zero, or no
    normal number 1."""
    if fmt.integers is None:
        raise RuleError(f"never_wraps: {fmt.name} has no zero, or no normal number 1")
    return fmt.integers


def numbers_within(fmt: Format, most: int | None) -> Interval:
    """The interval of all finite numbers of a format with magnitudes of at most `most` (None: of any magnitude)."""
    return fmt.interval if most is None else common(fmt.interval, (Fraction(-most), Fraction(most)))


def _times(one: Interval, count: int) -> Interval:
    return one[0] * count, one[1] * count
