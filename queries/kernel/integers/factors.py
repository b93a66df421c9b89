"""Rules that two plans agree: plans that compute equal scale factors in different ways, and plans that add the same
integers exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mmaprobe.queries.kernel.equality.plan_units import check_plans, plan_key, read_alike
from mmaprobe.queries.kernel.equality.plans import PlansAgree, same_frames
from mmaprobe.queries.kernel.integers.wraps import check_sums, integers_of
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Interval
from mmaprobe.smtmodel.arithmetic.rounding import SIGNLESS
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, constant
from mmaprobe.smtmodel.evaluate.model import pattern_of
from mmaprobe.smtmodel.nodes import Element, ExactSum, Literal, Node, Product, Recombined, Round, Scale
from mmaprobe.smtmodel.nodes.given import Given
from mmaprobe.smtmodel.nodes.node import of_kind, structure, walk
from mmaprobe.smtmodel.nodes.rewriting import replaced
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.stages import with_words
from mmaprobe.smtmodel.plans.words import Gathered, LargestOf, SharedOf, factor_over, gathered

INTEGERS = FORMATS["f64"]  # the format of a sum of integers in an expression
#: the nodes that depend on the values of sums alone
OF_VALUES = (Given, SharedOf, Literal, Element, Product, Scale, ExactSum, Round, Recombined)


@dataclass(frozen=True)
class FactorsAlike:
    """The scale factors of a (`side` 0) or of b of two plans have the same bits for all largest magnitudes from which
    they are computed, infinities and NaNs included."""

    left: Plan
    right: Plan
    side: int

    def __post_init__(self) -> None:
        kinds = [[structure(part) for part in self._parts(plan)] for plan in (self.left, self.right)]
        if kinds[0] != kinds[1] or not all(isinstance(part, LargestOf) for part in self._parts(self.left)):
            raise RuleError("same_factors: the factors are found from other magnitudes")

    def statement(self) -> str:
        plans = f"{plan_key(self.left)} and of {plan_key(self.right)}"
        return f"scale factors of {'ab'[self.side]} of {plans} are the same for every largest magnitude"

    def _parts(self, plan: Plan) -> list[Gathered]:
        """The values of several elements that a factor reads, in an order that does not depend on their places in the
        factor's expression."""
        return sorted(gathered(factors_of(plan)[self.side]), key=structure)

    def inputs(self, symbol: Callable[[str, int], Bits]) -> tuple[Bits, ...]:
        parts = self._parts(self.left)
        return tuple(symbol(f"largest{k}", part.given.field_width) for k, part in enumerate(parts))

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        factors = []
        for plan in (self.left, self.right):
            node, read = factor_over(factors_of(plan)[self.side])
            by = dict(zip(map(structure, self._parts(plan)), given, strict=True))
            patterns = [self._signed(part, by[structure(part)]) for part in read]
            factors.append(pattern_of(node, *patterns))
        return factors[0].eq(factors[1])

    @staticmethod
    def _signed(part: Gathered, fields: Bits) -> Bits:
        """The pattern of a magnitude, with the sign + if its format has signs."""
        more = part.given.width - fields.width
        return fields if not more else constant(fields.carrier, 0, more).concat(fields)


@rule
def same_factors(left: Plan, right: Plan, lemmas: Sequence[Theorem]) -> Made:
    """Two plans agree if they become one plan when the factors of one take the place of the other's, in words and
    beside words, since the factors have the same bits."""
    check_plans("same_factors", left, right)
    goals: list[FactorsAlike] = [goal_of(lemma, FactorsAlike, "same_factors") for lemma in lemmas]
    if any((goal.left, goal.right) != (left, right) for goal in goals):
        raise RuleError("same_factors: the lemmas are about other plans")
    if not same_frames(left, right) or not read_alike(left, right):
        raise RuleError("same_factors: the plans do other things with their sums, or start them from other numbers")
    others = {factors_of(left)[goal.side]: factors_of(right)[goal.side] for goal in goals}
    for one, other in zip(left.sums, right.sums, strict=True):
        if with_words(one.stage, lambda word: _swapped(word, others)) != other.stage:
            raise RuleError("same_factors: the plans differ in more than in how these factors are found")
    return Made(PlansAgree(left, right, 1), tuple(lemmas))


@rule
def same_integers(left: Plan, right: Plan, length: int) -> Made:
    """Two plans whose sums are of products of the same integers, each as often, agree for one K if no sum wraps,
    saturates or is rounded for any integers of these formats, if no sum is -0, and if both plans make the same result
    of the sums' values alone. A sum that begins with +0 is never -0 where no rounding sees signs."""
    check_plans("same_integers", left, right)
    if length < 1:
        raise RuleError("same_integers: K is from 1 on")
    if (left.a, left.b, left.c) != (right.a, right.b, right.c) or _in_sums(left) != _in_sums(right):
        raise RuleError("same_integers: the plans take other inputs, or do other things with their sums")
    for plan in (left, right):
        check_sums(plan, length, lambda _, word: word.rounding.format.interval if word else _unread())
    for one, other in zip(left.sums, right.sums, strict=True):
        if integers_of(left, one.stage) != integers_of(right, other.stage):
            raise RuleError("same_integers: a sum is of products of other integers")
    return Made(PlansAgree(left, right, 0, length), ())


def _in_sums(plan: Plan) -> Node:
    """A plan's result as an expression over integers in place of its sums. Raises RuleError if the result depends on
    more than the sums' values."""
    numbers = {products: Given(k, INTEGERS) for k, products in enumerate(plan.sums)}
    result = replaced(plan.result, lambda node: numbers.get(node) if isinstance(node, Products) else None)
    for node in walk(result):
        if not isinstance(node, OF_VALUES) or (isinstance(node, Product) and (node.normalised or node.limit)):
            raise RuleError(f"same_integers: the rule does not cover a {node.kind} of a sum")
    rounded = [how for products in plan.sums for how in products.stage.roundings]
    rounded += [node.rounding for model in plan.models for node in of_kind(model.unit.result, Round)]
    if any(how.mode not in SIGNLESS for how in rounded if not how.format.is_integer):
        raise RuleError("same_integers: a sum may be -0")
    return result


def _unread() -> Interval:
    raise RuleError("same_integers: a unit reads elements as they are")


def factors_of(plan: Plan) -> tuple[Round, Round]:
    """The scale factors of a plan's words of a and of b. Raises RuleError for a plan without scale factors."""
    if plan.factors is None:
        raise RuleError("same_factors: a plan has no scale factors of its own")
    return plan.factors


def _swapped(word: Round, others: Mapping[Round, Round]) -> Round:
    """A word with each of its factors replaced by another (`others`)."""
    result = replaced(word, lambda node: others.get(node) if isinstance(node, Round) else None)
    assert isinstance(result, Round)
    return result
