"""The loss of products in slices or residues of integers, with a power of two shared by each row and column.

Elements are divided by this power: a result is then a sum of products of integer words. Its loss is stated for one
product: the part of elements that words leave out, the products of words that are left out, and the loss of roundings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import floor
from typing import ClassVar

from mmaprobe.queries.kernel.bounds.wording import up_decimal, up_text
from mmaprobe.queries.kernel.integers.wraps import NeverWraps, Pair, integers_of, interval_of, residues_of
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.smtmodel.arithmetic.display import exponent_of
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.nodes import ExactSum, Literal, Node, Product, Recombined, Round, Scale
from mmaprobe.smtmodel.nodes.element import MINUS
from mmaprobe.smtmodel.nodes.given import Given
from mmaprobe.smtmodel.nodes.known import magnitude
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.words import SharedOf

LEAST = 1 << 12  # an exponent beyond those of all formats


@dataclass(frozen=True)
class LosesOfLargest:
    """For each K from 1 to `length`, with c = +0 and finite elements, the largest of each row of A and of each column
    of B of a magnitude from 2^-reach to 2^reach: |d - exact| <= share * K * the product of both magnitudes."""

    plan: Plan
    length: int
    reach: int
    share: Fraction
    rest: ClassVar[Fraction] = Fraction(0)  # as in `LosesOfBlocks`

    @property
    def block(self) -> int:
        """The number of products whose largest magnitudes the bound has: all."""
        return self.length

    @property
    def bound(self) -> str:
        return f"|d - exact| <= {up_text(self.share)} * K * max |a_k| * max |b_k|"

    @property
    def where(self) -> str:
        """The largest magnitudes for which the bound holds."""
        return f"the largest magnitudes of the row and of the column are from 2^-{self.reach} to 2^{self.reach}"

    def statement(self) -> str:
        what = f"largest magnitudes from 2^-{self.reach} to 2^{self.reach}, K up to {self.length}, c = 0"
        return f"{self.plan.reference or 'a plan'}: |d - exact| <= {up_decimal(self.share, 6)} K max|a| max|b| ({what})"


@dataclass(frozen=True)
class LosesOfElements:
    """For the inputs of `LosesOfLargest`: |d - exact| <= products * the sum of |a_k b_k| + ones[0] * the largest |a_k|
    * the sum of |b_k| + ones[1] * the largest |b_k| * the sum of |a_k| + largest * K * the product of both largest.
    Where no element of a side is smaller than 2^-s times the largest one, its part of `ones` is smaller by 2^-s times
    its part of `steps`."""

    plan: Plan
    length: int
    reach: int
    products: Fraction
    ones: tuple[Fraction, Fraction]
    largest: Fraction
    steps: tuple[Fraction, Fraction]

    def within(self, spread: int) -> Fraction:
        """The largest ratio of the bound to the sum of |a_k b_k|, where no element is smaller than 2^-spread times the
        largest one."""
        ones = sum(self.ones) * (1 << spread) - sum(self.steps)
        return self.products + ones + self.largest * (1 << 2 * spread)

    def statement(self) -> str:
        shares = (self.products, *self.ones, self.largest)
        products, a, b, largest = (up_decimal(share, 6) for share in shares)
        bound = f"{products} sum |a_k b_k| + {a} max|a| sum |b_k| + {b} max|b| sum |a_k| + {largest} K max|a| max|b|"
        what = f"largest magnitudes from 2^-{self.reach} to 2^{self.reach}, K up to {self.length}, c = 0"
        return f"{self.plan.reference or 'a plan'}: |d - exact| <= {bound} ({what})"


@dataclass(frozen=True)
class WithinClassical:
    """With K = `length`, c = +0, and all elements of a row, or of a column, at least 2^-spread times its largest
    magnitude, which is from 2^-reach to 2^reach: |d - exact| <= times * K * u * the sum of |a_k b_k|, where u is half a
    unit of the last place of 1 in the format of d."""

    plan: Plan
    length: int
    reach: int
    spread: int
    times: Fraction

    def statement(self) -> str:
        bound = f"|d - exact| <= {self.times} K u sum |a_k b_k| for K = {self.length}"
        which = f"from 2^-{self.spread} of the largest, which is from 2^-{self.reach} to 2^{self.reach}"
        return f"{self.plan.reference or 'a plan'}: {bound}, elements {which}"


@dataclass(frozen=True)
class WithinSpan:
    """For each K from 1 to `length`, with c = +0 and finite elements: where the largest magnitudes of a row and of a
    column are from 2^-reach to 2^reach, and their product is at most 2^span times the largest |a_k b_k|, |d - exact| <=
    times * K * u * the sum of |a_k b_k|, with u as in `WithinClassical`."""

    plan: Plan
    length: int
    reach: int
    span: int
    times: Fraction

    def statement(self) -> str:
        bound = f"|d - exact| <= {self.times} K u sum |a_k b_k| for K up to {self.length}"
        which = f"max|a| max|b| <= 2^{self.span} max|a_k b_k|, largest from 2^-{self.reach} to 2^{self.reach}"
        return f"{self.plan.reference or 'a plan'}: {bound}, where {which}"


@rule
def loses_of_largest(plan: Plan, length: int, reach: int, wraps: Theorem) -> Made:
    """The exact sum is a sum of products of words, as in `_Words`, and of the parts that words leave out. The plan's
    result is a sum of products of words, as in `_Results`. The two differ by at most the difference of the factors of
    each product."""
    result, a, b = _found(plan, length, reach, wraps)
    return Made(LosesOfLargest(plan, length, reach, _loss(result, a, b)), (wraps,))


@rule
def loses_of_elements(plan: Plan, length: int, reach: int, wraps: Theorem) -> Made:
    """As `loses_of_largest`, but the loss of roundings of sums, and the part of each side that words leave out, stand
    separately. Words that are cut have the sign of their element: products of such words, each at most as many times as
    in the product of elements, add up to at most the sum of magnitudes, of which a rounding loses its share. The part
    of one side that words leave out is multiplied by elements of the other, and is less than 1 by a last place of the
    side's own elements. For other words the bound is in the largest elements alone."""
    result, a, b = _found(plan, length, reach, wraps)
    if not (a.cut and b.cut):
        none = Fraction(0), Fraction(0)
        return Made(LosesOfElements(plan, length, reach, Fraction(0), none, _loss(result, a, b), none), (wraps,))
    result = _Results(plan, length, reach, (a, b)).of(plan.result)
    ones = a.loss * a.power, b.loss * b.power
    largest = (result.error + a.slack * b.loss + _apart(result, a, b)) * a.power * b.power
    steps = a.step * a.power, b.step * b.power
    return Made(LosesOfElements(plan, length, reach, result.products, ones, largest, steps), (wraps,))


def _found(plan: Plan, length: int, reach: int, wraps: Theorem) -> tuple[_Form, _Elements, _Elements]:
    """The result, and elements by their words. Raises RuleError."""
    goal = goal_of(wraps, NeverWraps, "loses_of_largest")
    if goal.plan != plan or goal.length != length or (goal.most_a, goal.most_b) != (None, None):
        raise RuleError("loses_of_largest: it is not known that no sum wraps")
    if length < 1 or not 0 <= reach < LEAST:
        raise RuleError(f"loses_of_largest: K is from 1 on, and exponents are from 0 to {LEAST - 1}")
    found = _Results(plan, length, reach)
    result = found.of(plan.result)
    if result.powers != (1, 1):
        raise RuleError("loses_of_largest: the result has not both powers of two as factors")
    sides = [_Words(fmt) for fmt in (plan.a, plan.b)]
    pairs = list(result.factors)
    a, b = (side.element(list(dict.fromkeys(pair[n] for pair in pairs))) for n, side in enumerate(sides))
    if found.ups != {("a", sides[0].up), ("b", sides[1].up)}:
        raise RuleError("loses_of_largest: the result is multiplied by other powers of two than words are divided by")
    return result, a, b


def _loss(result: _Form, a: _Elements, b: _Elements) -> Fraction:
    """The loss of a product, in the product of the largest magnitudes of the row and of the column."""
    loss = result.error + a.top * b.loss + a.loss * (b.top + b.loss) + _apart(result, a, b)
    return loss * a.power * b.power


def _apart(result: _Form, a: _Elements, b: _Elements) -> Fraction:
    """The error by factors of products of words that differ from the factors in the products of elements."""
    loss = Fraction(0)
    for pair in {(one, other) for one in a.factors for other in b.factors} | result.factors.keys():
        wanted = a.factors.get(pair[0], Fraction(0)) * b.factors.get(pair[1], Fraction(0))
        loss += abs(result.factors.get(pair, Fraction(0)) - wanted) * _most(pair[0]) * _most(pair[1])
    return loss


@rule
def within_classical(premise: Theorem, spread: int, times: Fraction) -> Made:
    """If elements are at least 2^-spread times the largest, K products add up to at least K * 2^-2spread times the
    product of both largest, and to at least the sum of elements of one side times 2^-spread times the largest of the
    other."""
    goal: LosesOfElements = goal_of(premise, LosesOfElements, "within_classical")
    if spread < 0:
        raise RuleError("within_classical: a spread is from 0 on")
    unit = Fraction(1, 1 << goal.plan.d.precision)
    if goal.within(spread) > times * goal.length * unit:
        raise RuleError(f"within_classical: {float(goal.within(spread)):.6g} sum |a_k b_k| is all that is known")
    return Made(WithinClassical(goal.plan, goal.length, goal.reach, spread, times), (premise,))


@rule
def within_span(premise: Theorem, span: int, times: Fraction) -> Made:
    """The largest |a_k b_k| is no larger than the sum of all."""
    goal = goal_of(premise, LosesOfLargest, "within_span")
    if span < 0:
        raise RuleError("within_span: a span is from 0 on")
    if goal.share * (1 << span) > times * Fraction(1, 1 << goal.plan.d.precision):
        raise RuleError(f"within_span: {float(goal.share):.6g} K max|a| max|b| is all that is known")
    return Made(WithinSpan(goal.plan, goal.length, goal.reach, span, times), (premise,))


def _most(word: Round) -> Fraction:
    """The largest magnitude of an integer word."""
    return magnitude(interval_of(word, None))


def _has_room(word: Round) -> bool:
    """Whether an integer word never saturates, rounded to zero or to nearest."""
    top = magnitude(interval_of(word.term, None))
    return (floor(top) if word.rounding.mode == "toward_zero" else round(top)) <= word.rounding.format.most


def _is_power(value: Fraction) -> bool:
    return value.numerator.bit_count() == 1 and value.denominator.bit_count() == 1 and value > 0


# -- words


@dataclass(frozen=True)
class _Affine:
    """A number that is `of` times the element over its power, plus factors times integer words, with an error of at
    most `error`. `keeps`: a format that has the number, times a power of two."""

    of: Fraction
    factors: Mapping[Round, Fraction]
    error: Fraction
    keeps: Format | None = None

    def times(self, factor: Fraction) -> _Affine:
        own = {word: factor * x for word, x in self.factors.items()}
        return _Affine(factor * self.of, own, abs(factor) * self.error, self.keeps if _is_power(abs(factor)) else None)


@dataclass(frozen=True)
class _Elements:
    """Elements over their power: at most `top`, and equal to sums of factors times words with an error of at most
    `loss`. `power`: the power is at most that many times the largest magnitude. `cut`: all words have the element's
    sign, and so have sums of some words, which exceed the element by at most `slack`. For elements of at least 2^-s the
    loss is smaller by 2^-s times `step`."""

    factors: Mapping[Round, Fraction]
    loss: Fraction
    top: Fraction
    power: int
    cut: bool
    slack: Fraction
    step: Fraction


@dataclass
class _Words:
    """The words of a side. An integer word is the operand of its rounding less the remainder: so an element is a
    combination of its words, and of the remainder of the last word."""

    format: Format
    up: bool | None = None
    made: dict[Node, _Affine] = field(default_factory=dict)

    def element(self, words: list[Round]) -> _Elements:
        """Elements in terms of the words that lose least, among those in products and the words below these."""
        best: tuple[Fraction, _Affine, Round] | None = None
        for word in words:
            how = word.rounding
            if not how.format.is_integer:
                raise RuleError("loses_of_largest: a unit reads a word that is no integer")
            term = self.of(word.term)
            left = {"toward_zero": Fraction(1), "nearest_even": Fraction(1, 2)}.get(how.mode)
            if left is None or not term.of or not _has_room(word):
                continue
            loss = (left + term.error) / abs(term.of)
            if best is None or loss < best[0]:
                best = loss, term, word
        if best is None or self.up is None:
            raise RuleError("loses_of_largest: no word is known to be nearly an element")
        loss, term, word = best
        factors = {own: -x / term.of for own, x in term.factors.items()}
        factors[word] = factors.get(word, Fraction(0)) + 1 / term.of
        cut = all(x > 0 and own.rounding.mode == "toward_zero" for own, x in factors.items())
        slack = term.error / abs(term.of)
        # an element of at least 1 is a multiple of its last place; so is the part cut off, as integers are multiples
        place = abs(term.of) / (1 << self.format.fraction)
        whole = _is_power(abs(term.of)) and place < 1 and all(x.denominator == 1 for x in term.factors.values())
        step = place / abs(term.of) if cut and whole and not self.up and not self.format.is_integer else Fraction(0)
        return _Elements(factors, loss, Fraction(1 if self.up else 2), 2 if self.up else 1, cut, slack, step)

    def of(self, node: Node) -> _Affine:
        if node not in self.made:
            self.made[node] = self._of(node)
        return self.made[node]

    def _of(self, node: Node) -> _Affine:
        match node:
            case Product(left=Given(), right=SharedOf(inverse=True, up=up), limit=None):
                if self.up not in (None, up):
                    raise RuleError("loses_of_largest: words with different powers of two")
                self.up = up
                return _Affine(Fraction(1), {}, Fraction(0), self.format)
            case Product(left=Literal() as factor, right=right, limit=None) if (x := factor.value) is not None:
                return self.of(right).times(x)
            case ExactSum(items=(Round() as whole, Product(left=left, right=Round() as part, limit=None))) if (
                left == MINUS
                and part.term == whole
                and part.rounding.format.is_integer
                and part.rounding.mode == "toward_zero"
            ):
                term = self.of(whole)
                if not _has_room(part):
                    raise RuleError("loses_of_largest: a slice may saturate")
                factors = {**term.factors, part: term.factors.get(part, Fraction(0)) - 1}
                return _Affine(term.of, factors, term.error, term.keeps)  # a number's own lower digits
            case Round() if not node.rounding.format.is_integer:
                return self._rounded(node)
        raise RuleError(f"loses_of_largest: the rule does not cover words with a {node.kind}")

    def _rounded(self, node: Round) -> _Affine:
        how, term = node.rounding, self.of(node.term)
        fmt = how.format
        interval_of(node, None)  # raises where it may overflow
        if how != Rounding(fmt, how.mode):
            raise RuleError("loses_of_largest: a rounding with rules of its own")
        least = Fraction(2) ** fmt.unit
        if term.keeps is None or term.keeps.precision > fmt.precision or term.keeps.complement:
            raise RuleError("loses_of_largest: a word is rounded that has more bits")
        return _Affine(term.of, term.factors, term.error + least, term.keeps)


# -- results


@dataclass(frozen=True)
class _Form:
    """A number that is factors times sums of products of words, times powers of two that rows and columns share
    (`powers`: how often those of a and of b are factors), with an error of at most `error` for each product, over these
    powers, and of `products` times the sum of magnitudes. `whole`: for a form that is no sum, its number. The form is a
    multiple of 2^grid."""

    factors: Mapping[Pair, Fraction]
    error: Fraction
    powers: tuple[int, int]
    grid: int
    whole: Fraction = Fraction(0)
    keeps: Format | None = None
    products: Fraction = Fraction(0)


@dataclass
class _Results:
    """The results made of exact sums whose number of products is at most `length`; with `elements`, the words of which
    elements are made, errors are in terms of elements, too."""

    plan: Plan
    length: int
    reach: int
    elements: tuple[_Elements, _Elements] | None = None
    made: dict[Node, _Form] = field(default_factory=dict)
    ups: set[tuple[str, bool]] = field(
        default_factory=set
    )  # operand, and whether rounded up, of the powers that are factors
    largest: dict[Pair, Fraction] = field(default_factory=dict)  # magnitudes of products of words

    def most(self, form: _Form) -> Fraction:
        """The largest magnitude of a form for each product."""
        for a, b in form.factors.keys() - self.largest.keys():
            self.largest[a, b] = _most(a) * _most(b)
        return sum((abs(x) * self.largest[pair] for pair, x in form.factors.items()), form.error)

    def of(self, node: Node) -> _Form:
        if node not in self.made:
            self.made[node] = self._of(node)
        return self.made[node]

    def _of(self, node: Node) -> _Form:
        match node:
            case Products():
                pairs = integers_of(self.plan, node.stage)
                return _Form({pair: Fraction(x) for pair, x in pairs.items()}, Fraction(0), (0, 0), 0)
            case Recombined():
                return _Form({residues_of(self.plan, node): Fraction(1)}, Fraction(0), (0, 0), 0)
            case SharedOf(operand=operand, inverse=False, up=up):
                self.ups.add((operand, up))
                return _Form({}, Fraction(0), (int(operand == "a"), int(operand == "b")), 0, Fraction(1))
            case Literal() if (x := node.value) is not None and _is_power(abs(x)):
                place = abs(x).numerator.bit_length() - abs(x).denominator.bit_length()
                return _Form({}, Fraction(0), (0, 0), place, x)
            case Product(limit=None):
                return self._product(self.of(node.left), self.of(node.right))
            case Scale():
                return self._product(self._product(self.of(node.term), self.of(node.left)), self.of(node.right))
            case ExactSum():
                return self._sum([self.of(item) for item in node.items if not item.is_addend])
            case Round() if not node.rounding.format.is_integer:
                return self._rounded(node, self.of(node.term))
        raise RuleError(f"loses_of_largest: the rule does not cover results with a {node.kind}")

    @staticmethod
    def _product(one: _Form, other: _Form) -> _Form:
        one, other = (one, other) if other.whole else (other, one)
        if not other.whole or other.factors or other.error:
            raise RuleError("loses_of_largest: a sum is multiplied by another one")
        x = other.whole
        powers = one.powers[0] + other.powers[0], one.powers[1] + other.powers[1]
        factors = {pair: x * own for pair, own in one.factors.items()}
        error, products = abs(x) * one.error, abs(x) * one.products
        return _Form(factors, error, powers, one.grid + other.grid, x * one.whole, one.keeps, products)

    @staticmethod
    def _sum(forms: list[_Form]) -> _Form:
        if any(form.whole for form in forms) or len({form.powers for form in forms}) != 1:
            raise RuleError("loses_of_largest: a sum of numbers with different powers of two")
        factors: dict[Pair, Fraction] = {}
        for form in forms:
            for pair, x in form.factors.items():
                factors[pair] = factors.get(pair, Fraction(0)) + x
        keeps = forms[0].keeps if len(forms) == 1 else None
        error, products = (sum((getattr(form, name) for form in forms), Fraction(0)) for name in ("error", "products"))
        grid = min(form.grid for form in forms)
        return _Form(factors, error, forms[0].powers, grid, keeps=keeps, products=products)

    def _rounded(self, node: Round, form: _Form) -> _Form:
        """To nearest, a number loses at most half of its last place, and nothing if it is a number of the format
        already, or a multiple of 2^grid of no more bits."""
        how, fmt = node.rounding, node.rounding.format
        if how != Rounding(fmt):
            raise RuleError("loses_of_largest: a rounding with rules of its own")
        of_products = form.products * self.elements[0].top * self.elements[1].top if self.elements else 0
        top = Fraction(abs(form.whole)) if form.whole else (self.most(form) + of_products) * self.length
        far = self.reach * sum(form.powers)
        if form.grid - far < fmt.emin or (exponent_of(top) + 1 if top else 0) + far > fmt.emax:
            raise RuleError("loses_of_largest: a result may be subnormal, or overflow")
        keeps = form.keeps is not None and form.keeps.precision <= fmt.precision
        if form.whole or keeps or top <= Fraction(2) ** (form.grid + fmt.precision):
            return replace(form, keeps=fmt)
        unit, times = Fraction(1, 1 << fmt.precision), self._times(form)
        if times is None:
            return replace(form, error=form.error + self.most(form) * unit, keeps=fmt)
        assert self.elements is not None
        a, b = self.elements
        slack = times * (a.slack * b.top + b.slack * a.top + a.slack * b.slack)
        return replace(form, error=form.error + (form.error + slack) * unit,
                       products=form.products + (form.products + times) * unit, keeps=fmt)  # fmt: skip

    def _times(self, form: _Form) -> Fraction | None:
        """The largest ratio of the factor of a product of words in a form to its factor in the product of elements;
        None without `elements`, for a negative factor, or for a pair of words that is not in that product."""
        if self.elements is None:
            return None
        a, b = (one.factors for one in self.elements)
        if any(x < 0 or one not in a or other not in b for (one, other), x in form.factors.items()):
            return None
        return max((x / (a[one] * b[other]) for (one, other), x in form.factors.items()), default=Fraction(0))
