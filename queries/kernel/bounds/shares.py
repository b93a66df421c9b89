"""Bounds of the distance between the values of an algorithm and exact sums, as shares of the sum of magnitudes.

M is |c| + sum of |a_k b_k| of an input. A share s is a bound s * M. The values are those of recorded.py; the inputs are
those that a claim admits: zeros, and normal numbers with exponents in windows. The error of a unit is bounded by
enclosures.py, the size of a word by a lemma about one number. Inputs with M = 0 are treated separately: on these, every
product of words has a factor zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mmaprobe.queries.kernel.bounds.enclosures import Enclosed
from mmaprobe.queries.kernel.bounds.forms import EXACT, Factor, Form, Monomial, round_up
from mmaprobe.queries.kernel.bounds.induction import embeds
from mmaprobe.queries.kernel.bounds.table9 import factors_of
from mmaprobe.queries.kernel.bounds.wording import up_decimal
from mmaprobe.queries.kernel.questions.recorded import Added, Addend, Instruction, Nothing, Value, Word, Words
from mmaprobe.queries.kernel.terms.undecided import check_windows
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.smtmodel.algorithms import fixed
from mmaprobe.smtmodel.algorithms.assertion import Assertion
from mmaprobe.smtmodel.algorithms.exact import Fixed, Window, admitted, in_units, magnitude
from mmaprobe.smtmodel.algorithms.words import converted
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, constant
from mmaprobe.smtmodel.evaluate.model import pattern_of
from mmaprobe.smtmodel.nodes import Constant, Cut, ExactSum, FusedSum, Node, Round
from mmaprobe.smtmodel.nodes.fold import Fold
from mmaprobe.smtmodel.nodes.given import Given
from mmaprobe.smtmodel.nodes.known import power
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.words import split
from mmaprobe.smtmodel.units.unit import Unit

Symbol = Callable[[str, int], Bits]


@dataclass(frozen=True)
class Space:
    """A set of inputs: `terms` products of zeros and of normal numbers of the format `factors`, with exponents in the
    windows of a and of b. c is a zero or a normal number of the format `addend` with its exponent in its window, or +0
    with `no_addend`."""

    factors: Format
    addend: Format
    window: Window
    terms: int
    no_addend: bool

    @property
    def unit(self) -> int:
        """An exponent such that every product, and c, is a multiple of 2^unit."""
        low = self.window
        return min(low.a[0] + low.b[0] - 2 * self.factors.fraction, low.c[0] - self.addend.fraction)

    @property
    def least(self) -> Fraction:
        """A lower bound of M on inputs on which M is not zero."""
        product = power(self.window.a[0] + self.window.b[0])
        return product if self.no_addend else min(product, power(self.window.c[0]))

    @property
    def most(self) -> Fraction:
        """A number that is larger than M on every input."""
        products = self.terms * power(self.window.a[1] + self.window.b[1] + 2)
        return products if self.no_addend else products + power(self.window.c[1] + 1)


def space_of(assertion: Assertion) -> Space:
    """A set of inputs that includes all inputs that a claim admits."""
    shape = assertion.shape
    return Space(shape.factors, shape.addend, shape.window, assertion.terms, assertion.zero_addend)


# -- lemmas about one number


@dataclass(frozen=True)
class WordIsSmall:
    """For every x that is zero, or normal with its exponent in the window, the word of x with the index `number` is
    finite, at most share * |x|, and a multiple of the smallest last place of all these x."""

    words: Words
    window: tuple[int, int]
    share: Fraction
    number: int

    def statement(self) -> str:
        return f"word {self.number} of {self.words.count} is at most {self.share} of its number"

    def inputs(self, symbol: Symbol) -> tuple[Bits, ...]:
        return (symbol("x", self.words.given.width),)

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        how, (low, high), (number,) = self.words, self.window, given
        fmt, carrier = how.given, number.carrier
        check_windows(fmt, self.window)
        zero = Fixed(constant(carrier, 0, high - low + fmt.fraction + 4), low - fmt.fraction)
        wide = converted(number, fmt, how.source)
        expression = split(how.source, Rounding(how.into, how.rounding), how.count)[self.number]
        pattern = wide if isinstance(expression, Given) else pattern_of(expression, wide)
        (word, fits), (own, _) = in_units(pattern, how.into, zero), in_units(number, fmt, zero)
        over, under = (fixed.number(carrier, x) for x in (self.share.numerator, self.share.denominator))
        small = ~fixed.less(fixed.multiply(over, magnitude(own)), fixed.multiply(under, magnitude(word)))
        return ~admitted(number, fmt, self.window) | (fits & small)


# -- values


Product = tuple[Word, Word, int, int]  # a word of a, a word of b, and the indices `start` and `stop` of products


@dataclass(frozen=True)
class Near:
    """On every input of a space where M is not zero a value v is finite and a multiple of 2^unit (`Space.unit`), and
    differs from the sum of the value of `base` and of all `products` by at most distance * M. |v| is at most the sum of
    weight * |c|, of weights_k * |a_k b_k|, and of off * M; so at most size * M."""

    space: Space
    value: Value
    base: Value
    products: tuple[Product, ...]
    distance: Fraction
    weight: Fraction
    weights: tuple[Fraction, ...]
    off: Fraction

    @property
    def size(self) -> Fraction:
        return max(self.weight, *self.weights) + self.off

    def statement(self) -> str:
        share = f"{up_decimal(self.distance, 3)} of the sum of magnitudes"
        return f"after {len(self.products)} sums of products the error is at most {share}"


@rule
def begins(space: Space, value: Value) -> Made:
    """c is a multiple of 2^unit, and at most M; a missing addend is +0."""
    if not isinstance(value, (Addend, Nothing)):
        raise RuleError("begins: a value that is made of others")
    weight = Fraction(0 if isinstance(value, Nothing) or space.no_addend else 1)
    return Made(Near(space, value, value, (), Fraction(0), weight, (Fraction(0),) * space.terms, Fraction(0)))


@rule
def from_here(near: Theorem) -> Made:
    """A value differs from itself by nothing."""
    goal: Near = goal_of(near, Near, "from_here")
    return Made(replace(goal, base=goal.value, products=(), distance=Fraction(0)), (near,))


@rule
def after_instruction(value: Value, near: Theorem, bound: Theorem, words: Sequence[Theorem]) -> Made:
    """The result of a unit is x plus an error, where x is the sum of the addend and of products of words. The error is
    at most the unit's bound; of its monomials c is at most size * M, the products a_k b_k together are at most s_a s_b
    M (s_a and s_b are the shares of the words), and any other monomial is at most its largest value times M / least.
    Nothing overflows if the hypotheses of the bound are met by these values. From multiples of 2^unit every operation
    of the unit makes multiples of 2^unit."""
    goal: Near = goal_of(near, Near, "after_instruction")
    known: Enclosed = goal_of(bound, Enclosed, "after_instruction")
    space = goal.space
    if not isinstance(value, Instruction) or value.addend != goal.value:
        raise RuleError("after_instruction: the premise is not about its addend")
    unit = value.model.unit
    if known.unit != unit or known.node != unit.result or known.places or known.assuming:
        raise RuleError("after_instruction: the bound is not that of the unit's result")
    if (value.a.words.into, value.b.words.into) != (unit.a, unit.b):
        raise RuleError("after_instruction: the words are numbers of other formats than the unit's")
    if any(not 0 <= word.number < word.words.count for word in (value.a, value.b)):
        raise RuleError("after_instruction: there is no such word")
    if not embeds(format_of(value.addend, space, unit.c), unit.c):
        raise RuleError("after_instruction: the addend is a number of another format")
    if not 0 <= value.start < value.stop <= min(space.terms, value.start + unit.length):
        raise RuleError("after_instruction: the unit has fewer products")
    adds_products(unit)
    shares = [share_of(space, side, word, words) for side, word in (("a", value.a), ("b", value.b))]
    sizes = _Sizes(space, unit, goal.size, shares)
    if not all(one.is_met(sizes.most) for one in known.provided):
        raise RuleError("after_instruction: a rounding may overflow")
    loss = sizes.share(known.facts.error)
    loss = round_up(loss) if loss else loss
    own = [shares[0] * shares[1] * (value.start <= k < value.stop) for k in range(space.terms)]
    conclusion = replace(
        goal, value=value, products=(*goal.products, (value.a, value.b, value.start, value.stop)),
        distance=goal.distance + loss, off=goal.off + loss,
        weights=tuple(before + more for before, more in zip(goal.weights, own, strict=True)),
    )  # fmt: skip
    return Made(conclusion, (near, bound, *words))


@rule
def after_addition(value: Value, first: Theorem, second: Theorem) -> Made:
    """The sum of two numbers of a format, rounded to nearest: it loses at most half a last place, 2^-(f + 1) of the sum
    (sums below 2^emin lose nothing). One of the two numbers has the base +0."""
    goals: list[Near] = [goal_of(one, Near, "after_addition") for one in (first, second)]
    one, two = goals
    space = one.space
    if not isinstance(value, Added) or (value.first, value.second) != (one.value, two.value) or two.space != space:
        raise RuleError("after_addition: the premises are not about its numbers")
    fmt = value.format
    if any(not embeds(format_of(goal.value, space, fmt), fmt) for goal in goals):
        raise RuleError("after_addition: a number is of another format")
    if fmt.specials != "ieee" or not (fmt.signed and fmt.subnormals):
        raise RuleError("after_addition: no format of IEEE 754")
    bases = [goal.base for goal in goals]
    if Nothing() not in bases:
        raise RuleError("after_addition: both have a base")
    base = bases[1] if bases[0] == Nothing() else bases[0]
    size = one.size + two.size
    if size * space.most >= power(fmt.emax):
        raise RuleError("after_addition: the sum may overflow")
    loss = size * power(-fmt.fraction - 1)
    near = Near(
        space, value, base, one.products + two.products, one.distance + two.distance + loss, one.weight + two.weight,
        tuple(x + y for x, y in zip(one.weights, two.weights, strict=True)), one.off + two.off + loss,
    )  # fmt: skip
    return Made(near, (first, second))


def format_of(value: Value, space: Space, wanted: Format) -> Format:
    """The format of a value's numbers; for +0 the format `wanted`."""
    match value:
        case Addend():
            return space.addend
        case Instruction():
            return value.model.d
        case Added():
            return value.format
    return wanted


def share_of(space: Space, side: str, word: Word, premises: Iterable[Theorem]) -> Fraction:
    """The share of a word, by a lemma among the premises. Raises RuleError."""
    window = space.window.a if side == "a" else space.window.b
    for premise in premises:
        goal: WordIsSmall = goal_of(premise, WordIsSmall, "share_of")
        if (goal.words, goal.number, goal.window) == (word.words, word.number, window):
            if word.words.given != space.factors:
                raise RuleError("share_of: the words are those of other numbers")
            return goal.share
    raise RuleError("share_of: nothing is known of the size of a word")


def adds_products(unit: Unit) -> None:
    """Checks that the exact result of a unit is the sum of c and of every product a_k b_k once. Then its value is a
    multiple of 2^g if c and all products are: a sum of multiples is a multiple, and so is a multiple rounded or
    truncated to a coarser place; rounding to a finer place does not change a multiple. Raises RuleError."""
    if _Summands().of(unit.result) != Counter([(), *((k, k) for k in range(unit.length))]):
        raise RuleError("adds_products: not every product, and c, is added once")


class _Summands(Fold[Counter[tuple[int, ...]]]):
    """Counts how often a node adds c, and each product, by the indices of the factors."""

    def formed(self, node: Node) -> Counter[tuple[int, ...]]:
        match node:
            case Constant():
                return Counter()
            case Round() | Cut():
                return self.of(node.term)
            case FusedSum() | ExactSum():
                if node.sticky:
                    raise RuleError("adds_products: a sum with a sticky bit")
                return sum(self.of_terms(node.items), Counter())
        return Counter([factors_of(node, self.places)])


class _Sizes:
    """The largest values of magnitudes in an instruction, and their shares."""

    def __init__(self, space: Space, unit: Unit, addend: Fraction, shares: Sequence[Fraction]) -> None:
        self.space, self.unit, self.addend = space, unit, addend
        self.product = shares[0] * shares[1]
        window, total = space.window, (addend + self.product) * space.most
        self.largest = {"a": shares[0] * power(window.a[1] + 1), "b": shares[1] * power(window.b[1] + 1),
                        "c": addend * space.most, EXACT: total}  # fmt: skip

    def most(self, factor: Factor) -> Fraction:
        """The largest value of a magnitude. Raises RuleError."""
        if factor.name not in self.largest:
            raise RuleError("after_instruction: a unit with scale factors, or of which a result so far is not known")
        return self.largest[factor.name] + (self._lift(factor) if factor.raised else 0)

    def _lift(self, factor: Factor) -> Fraction:
        formats = {"a": self.unit.a, "b": self.unit.b, "c": self.unit.c}
        return power(formats[factor.name].emin)

    def share(self, form: Form) -> Fraction:
        """A share that bounds a form. Of the coefficients of the monomials a_k b_k, one for each k, only the largest
        counts."""
        products, total = dict[int, Fraction](), Fraction(0)
        for atom, value in form.parts.items():
            items = list(atom)
            place = _product(items[0])
            if len(items) > 1 or place is None:
                total += value * max(map(self._share, items))
                continue
            products[place] = products.get(place, Fraction(0)) + value * self.product
            total += value * (self._share(items[0]) - self.product)  # where magnitudes are raised
        return total + max(products.values(), default=Fraction(0))

    def _share(self, item: Monomial) -> Fraction:
        least, names = self.space.least, [factor.name for factor in item]
        if names in (["c"], [EXACT]):
            own = self.addend if names == ["c"] else self.addend + self.product
            return own + (self._lift(item[0]) / least if item[0].raised else 0)
        if _product(item) is not None:
            whole, plain = Fraction(1), Fraction(1)
            for factor in item:
                plain *= self.largest[factor.name]
                whole *= self.most(factor)
            return self.product + (whole - plain) / least
        share = Fraction(1)
        for factor in item:
            share *= self.most(factor)
        return share / least


def _product(item: Monomial) -> int | None:
    """The k of a monomial a_k b_k; None for another monomial."""
    if [factor.name for factor in item] != ["a", "b"] or any(factor.factors for factor in item):
        return None
    one, two = item
    return one.offset if one.offset == two.offset else None


# -- results


@dataclass(frozen=True)
class Apart:
    """On every input of a space where M is not zero two results differ by at most share * M. They are finite multiples
    of 2^unit, with magnitudes of at most size * M."""

    space: Space
    values: tuple[Value, Value]
    share: Fraction
    size: Fraction

    def statement(self) -> str:
        return f"two results are apart by at most {up_decimal(self.share, 6)} of the sum of magnitudes"


@rule
def near_each_other(nears: Sequence[Theorem], words: Sequence[Theorem]) -> Made:
    """Two results with a common base differ by at most their distances and the share of the products of words that only
    one of them adds."""
    goals: list[Near] = [goal_of(near, Near, "near_each_other") for near in nears]
    if len(goals) != 2:
        raise RuleError(f"near_each_other: {len(goals)} results, not two")
    one, two = goals
    if one.base != two.base or one.space != two.space:
        raise RuleError("near_each_other: two results without a base in common")
    share = one.distance + two.distance + apart(one, two, words)
    return Made(Apart(one.space, (one.value, two.value), share, max(one.size, two.size)), (*nears, *words))


def units(value: Value) -> Iterator[Instruction]:
    """The instructions in a value."""
    match value:
        case Instruction():
            yield value
            yield from units(value.addend)
        case Added():
            yield from units(value.first)
            yield from units(value.second)


def apart(first: Near, second: Near, words: Sequence[Theorem]) -> Fraction:
    """The share of the products of words that only one of two results adds. A pair of words counts as often as it
    occurs at any one index k."""
    one, two = Counter(first.products), Counter(second.products)
    places = Counter[tuple[Word, Word, int]]()
    for (a, b, start, stop), count in ((one - two) + (two - one)).items():
        places.update({(a, b, k): count for k in range(start, stop)})
    most: dict[tuple[Word, Word], int] = {}
    for (a, b, _), count in places.items():
        most[a, b] = max(count, most.get((a, b), 0))
    space = first.space
    return sum((count * share_of(space, "a", a, words) * share_of(space, "b", b, words)
                for (a, b), count in most.items()), Fraction(0))  # fmt: skip
