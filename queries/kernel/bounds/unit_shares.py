"""The error of a part of a claim as a share of the sum of magnitudes, from the error bound of the part's unit.

M is |c| + sum of |a_k b_k| of an input (shares.py). A part for a given number of products is a unit, one expression
over its factors and c; a bound of that unit in terms of magnitudes of inputs is a share of M.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from mmaprobe.queries.kernel.bounds.enclosures import Enclosed, knowledge_of
from mmaprobe.queries.kernel.bounds.forms import EXACT, Factor, Form, Monomial, round_up
from mmaprobe.queries.kernel.bounds.parts import OfPlan, adds_products_once
from mmaprobe.queries.kernel.bounds.shares import Apart, Space, space_of
from mmaprobe.queries.kernel.bounds.sums import growth_of, times_elements
from mmaprobe.queries.kernel.bounds.wording import COUNT, GROWTH, up_decimal
from mmaprobe.queries.kernel.questions.recorded import recorded_part
from mmaprobe.queries.kernel.questions.scene import lanes_of
from mmaprobe.queries.kernel.questions.steps import PlanAt
from mmaprobe.queries.kernel.questions.windows import Windowed, is_of_plan, plan_at, unit_in
from mmaprobe.queries.kernel.terms.undecided import NoInputDecides, NoLengthDecides
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.smtmodel.algorithms.assertion import Assertion
from mmaprobe.smtmodel.algorithms.parts import Part
from mmaprobe.smtmodel.algorithms.predicate import decimal_of, power_of
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.nodes import Element, Index, Node, Repeat, Running
from mmaprobe.smtmodel.nodes.known import UNKNOWN, ZERO, power
from mmaprobe.smtmodel.nodes.node import Knowledge, walk
from mmaprobe.smtmodel.plans.plan import Products


def unit_of(part: Part, space: Space) -> Windowed:
    """A part on the inputs of a space, as a unit. Raises RuleError if the part is no unit, or takes other inputs."""
    if not all(part.holds(space.factors, *bounds) for bounds in (space.window.a, space.window.b)):
        raise RuleError("unit_of: a factor is no number of the part's format")
    try:
        unit = part.unit(space.factors, space.terms)
    except ParameterError as error:
        raise RuleError(f"unit_of: {error}") from None
    if unit.c != space.addend:
        raise RuleError("unit_of: c is a number of another format")
    return Windowed(unit, windows_of(space))


def windows_of(space: Space) -> tuple[tuple[str, tuple[int, int]], ...]:
    """The exponents of a space by operand."""
    window = space.window
    return ("a", window.a), ("b", window.b), ("c", window.c)


@dataclass(frozen=True)
class Errs:
    """The statement that, on every input of a space with M not zero, a part's result differs from the exact sum by at
    most share * M, and is a finite multiple of 2^unit with a magnitude of at most size * M."""

    space: Space
    part: Part
    share: Fraction
    size: Fraction

    def statement(self) -> str:
        return f"the error is at most {up_decimal(self.share, 6)} of the sum of magnitudes"


@rule
def of_unit(space: Space, part: Part, bound: Theorem) -> Made:
    """The result of a part differs from its unit's exact value, c + sum of a_k b_k with each product once, by at most
    the unit's bound. Where M is not zero the bound is at most a share of M (`share_of`). Nothing overflows if the
    largest inputs of the space meet the hypotheses of the bound."""
    goal: Enclosed = goal_of(bound, Enclosed, "of_unit")
    unit = unit_of(part, space)
    if goal.unit != unit or goal.node != unit.result or goal.places or goal.assuming:
        raise RuleError("of_unit: the bound is not that of the part's result on the inputs of the space")
    adds_products_once(unit_in(unit))
    if not all(one.is_met(lambda factor: _most(space, factor)) for one in goal.provided):
        raise RuleError("of_unit: a rounding may overflow on the largest inputs")
    _check_places(space, unit)
    share = share_of(space, goal.facts.error)
    return Made(Errs(space, part, share, 1 + share), (bound,))


def _check_places(space: Space, unit: Windowed) -> None:
    """Raises RuleError if a result may be no multiple of the space's 2^unit, down to which a claim's numbers go."""
    finest = knowledge_of(unit).of(unit.result).grid
    if finest is None or finest < space.unit:
        raise RuleError("of_unit: a result may be no multiple of the place down to which exact sums go")


def _most(space: Space, factor: Factor) -> Fraction:
    """The largest value of a magnitude. Raises RuleError."""
    ends = {"a": (space.window.a[1], space.factors), "b": (space.window.b[1], space.factors),
            "c": (space.window.c[1], space.addend)}  # fmt: skip
    if factor.name == EXACT:
        return space.most
    if factor.name not in ends:
        raise RuleError("of_unit: the bound has a scale factor, or the error or size of a result so far")
    if factor.name == "c" and space.no_addend:
        return Fraction(0)
    top, fmt = ends[factor.name]
    return power(top + 1) - power(top - fmt.fraction)


def share_of(space: Space, form: Form) -> Fraction:
    """A share of M that bounds a form. Of the terms that are |c| or |a_k b_k| alone, the largest coefficient counts;
    the exact sum, and the largest of these terms, are at most M; any other term is at most its largest value, and M at
    least its least nonzero value."""
    alone, total = dict[object, Fraction](), Fraction(0)
    for atom, value in form.parts.items():
        terms = {_term(item) for item in atom}
        if len(terms) == 1 and None not in terms and terms != {EXACT}:
            (term,) = terms
            alone[term] = alone.get(term, Fraction(0)) + value
        elif None not in terms:
            total += value
        else:
            total += value * max(_largest(space, item) for item in atom) / space.least
    if space.no_addend:
        alone.pop("c", None)
    return total + max(alone.values(), default=Fraction(0))


def _term(item: Monomial) -> object:
    """The kind of a monomial that is at most M: "c", "exact", or the k of a_k b_k; None for another monomial."""
    names = [factor.name for factor in item]
    if any(factor.raised or factor.factors for factor in item):
        return None
    if names in (["c"], [EXACT]):
        return names[0]
    return item[0].offset if names == ["a", "b"] and item[0].offset == item[1].offset else None


def _largest(space: Space, item: Monomial) -> Fraction:
    product = Fraction(1)
    for factor in item:
        if factor.raised:
            raise RuleError("share_of: a magnitude is that of a number that may be subnormal")
        product *= _most(space, factor)
    return product


# -- plans for any number of products


@dataclass(frozen=True)
class ErrsUpTo:
    """The statement for K = first, 2 first, ... up to the `terms` of a space: on every input like the space's, but with
    K products, and with M not zero, the result of a part is finite and differs from the exact sum by at most s M; s
    grows in equal steps from the first of `shares` to the last."""

    space: Space
    part: Part
    first: int
    shares: tuple[Fraction, Fraction]

    @property
    def share(self) -> Fraction:
        """The share for the largest K."""
        return self.shares[1]

    def statement(self) -> str:
        ends = " to ".join(up_decimal(share, 6) for share in self.shares)
        return f"for K = {self.first} n to {self.space.terms} the error is at most {ends} of the sum of magnitudes"


@rule
def of_plan(space: Space, part: Part, first: int, bound: Theorem, once: Theorem | None = None) -> Made:
    """The result of a plan for any K differs from c + sum of a_k b_k by at most the plan's bound. Each coefficient of
    the bound is a constant, K, G, or a product of these. G is a product of sums of powers of r >= 1; therefore G, and
    the share of M that bounds the bound, are convex in the number of repetitions, and between the smallest and the
    largest K the share lies below the line through its values there. (G of levels of halves is not convex, but grows.)
    Nothing overflows for the largest K with the largest inputs, nor for a smaller K, whose sums are smaller. `once`:
    the bound for the smallest K, at which the plan repeats nothing; at this K, and at the next, the share is then at
    most the larger of both shares."""
    goal, at = _of_plan(space, part, bound)
    if at.length is not None:
        raise RuleError("of_plan: the bound is not that of the part's result for any K")
    repeats, last = at.repeats, space.terms
    multiples = first % repeats.period == repeats.before % repeats.period == 0 and first >= repeats.before
    if first < 1 or last < first or last % first or not (repeats.width or multiples):
        what = f"is not for every multiple of {first} up to {last}, but for {repeats.before} + {repeats.period} n"
        raise RuleError(f"of_plan: the bound {what}")
    _no_overflow(goal, _Values(space, at, last))
    if repeats.width or first > repeats.before:
        ends = [_Values(space, at, count).share(goal.facts.error) for count in (first, last)]
        return Made(ErrsUpTo(space, part, first, (ends[bool(repeats.width)], ends[1])), (bound,))
    if once is None or last == first:
        raise RuleError(f"of_plan: the bound is for more than {first} products: K = {first} is wanted besides")
    least, at_least = _of_plan(space, part, once)
    if at_least.length != first:
        raise RuleError(f"of_plan: the other bound is not for K = {first}")
    values = _Values(space, at_least, first)
    _no_overflow(least, values)
    shares = [values.share(least.facts.error)]
    shares += [_Values(space, at, count).share(goal.facts.error) for count in (2 * first, last)]
    return Made(ErrsUpTo(space, part, first, (max(shares[:2]), max(shares))), (bound, once))


@rule
def of_plan_at(space: Space, part: Part, bound: Theorem) -> Made:
    """As `of_plan`, for the number of products of a space alone: the result of a plan differs from c + sum of a_k b_k
    by at most the plan's bound. The part's unit shows that the result is a multiple of 2^unit."""
    goal, at = _of_plan(space, part, bound)
    if at.length != space.terms:
        raise RuleError("of_plan_at: the bound is not that of the part's result for this K")
    values = _Values(space, at, space.terms)
    _no_overflow(goal, values)
    _check_places(space, unit_of(part, space))
    share = values.share(goal.facts.error)
    return Made(Errs(space, part, share, 1 + share), (bound,))


def _of_plan(space: Space, part: Part, bound: Theorem) -> tuple[Enclosed, PlanAt]:
    """The bound of a part's plan on the inputs of a space, where the plan adds c and every product once. Raises
    RuleError."""
    goal: Enclosed = goal_of(bound, Enclosed, "of_plan")
    unit = goal.unit
    if not isinstance(unit, Windowed) or not is_of_plan(unit) or unit.windows != windows_of(space):
        raise RuleError("of_plan: the bound is not that of a plan on the inputs of the space")
    at = plan_at(unit)
    if at.plan != part.plan or goal.node != unit.result or goal.places or goal.assuming:
        raise RuleError("of_plan: the bound is not that of the part's result")
    if not all(part.holds(space.factors, *bounds) for bounds in (space.window.a, space.window.b)):
        raise RuleError("of_plan: a factor is no number of the part's format")
    if at.c != space.addend:
        raise RuleError("of_plan: c is a number of another format")
    added = OfPlan(unit, frozenset()).of(unit.result, ())
    read = {tuple(sorted(node.operand if isinstance(node, Element) else "" for (node, _), count in item
                         for _ in range(count))): value for item, value in added.items()}  # fmt: skip
    if space.no_addend:  # c is +0
        read[("c",)] = Fraction(1)
    if len(read) < len(added) or read != {("a", "b"): 1, ("c",): 1}:
        raise RuleError("of_plan: not every product, and c, is added once")
    return goal, at


def _no_overflow(goal: Enclosed, values: _Values) -> None:
    """Raises RuleError where a rounding may overflow on the largest inputs."""
    for one in goal.provided:
        most = one if one.each or one.most is None else replace(one, most=times_elements(one.most, values.at.length))
        if not most.is_met(values.most):
            raise RuleError("of_plan: a rounding may overflow on the largest inputs")


class _Values:
    """The largest values of magnitudes in a bound of a plan, for one K."""

    def __init__(self, space: Space, at: PlanAt, count: int) -> None:
        self.space, self.at, self.count = space, at, count

    @cached_property
    def growth(self) -> Fraction:
        """The value of G, in a bound for any K."""
        at, repeats, steps = self.at, self.at.repeats, 0
        if repeats.width:
            while repeats.width << steps < self.count:
                steps += 1
        else:
            steps = (self.count - repeats.before) // repeats.period - 1
        growth = growth_of(at.growth, steps)
        for _ in range(at.loops - 1):  # times L (sums.py)
            growth = round_up(growth * (1 + (at.growth - 1) * growth_of(at.growth, steps)))
        return growth

    def most(self, factor: Factor) -> Fraction:
        """The largest value of a magnitude of any element. Raises RuleError."""
        if factor.name in (GROWTH, COUNT):
            return self.growth if factor.name == GROWTH else Fraction(self.count)
        if factor.raised:
            raise RuleError("of_plan: a magnitude of a number that may be subnormal")
        return _most(replace(self.space, terms=self.count), factor)

    def share(self, form: Form) -> Fraction:
        """A share of M that bounds a form in which a product stands for the sum over all products. |c| and the sum of
        |a_k b_k| are M together: the larger coefficient counts. A magnitude of one side is at most K times its largest
        value, and M at least its least nonzero value."""
        sides = {"ab": Fraction(0), "c": Fraction(0)}
        fixed = Fraction(0)
        for atom, value in form.flat().parts.items():
            (item,) = atom
            times, names = value, []
            for factor in item:
                if factor.raised or factor.factors:
                    raise RuleError("of_plan: a magnitude of a number that may be subnormal")
                if factor.name in (GROWTH, COUNT):
                    times *= self.most(factor)
                else:
                    names.append(factor)
            kind = "".join(factor.name for factor in names)
            if kind in sides:
                sides[kind] += times
            elif kind == EXACT:
                fixed += times
            else:
                for factor in names:
                    times *= self.most(factor)
                sums = self.count if any(factor.name in ("a", "b") for factor in names) else 1
                fixed += times * sums / self.space.least
        if self.space.no_addend:
            sides["c"] = Fraction(0)
        return round_up(fixed + max(sides.values())) if fixed or any(sides.values()) else Fraction(0)


# -- results of zero


def makes_zero(result: Node) -> None:
    """Checks that a result is zero whenever c is zero, each product a_k b_k has a factor of zero, and each sum of all
    products that starts from a zero is zero. Raises RuleError.

    `zero`: the nodes that are then zero; `inputs`: by node, the inputs each of which makes it zero. A result so far
    counts as zero, by induction: the start is zero, and the body is zero whenever the result so far is."""
    inputs, zero = dict[Node, frozenset[tuple[str, Index | None]]](), set[Node]()
    for node in walk(result):  # operands first
        below = node.operands
        if isinstance(node, Element):
            own, there = frozenset({(node.operand, node.index)}), False
        elif isinstance(node, (Running, Repeat, Products)):
            own, there = frozenset(), zero.issuperset(below)
        else:
            every, there = frozenset(x for one in below for x in inputs[one]), _is_zero(node, zero)
            own = frozenset(x for x in every if _is_zero(node, zero.union(one for one in below if x in inputs[one])))
        inputs[node] = own
        if there or any(name == "c" or (name == "a" and ("b", index) in own) for name, index in own):
            zero.add(node)
    if result not in zero:
        raise RuleError("makes_zero: it is not known that the unit makes a zero of zeros")


def _is_zero(node: Node, zeros: Set[Node]) -> bool:
    """Whether a node is zero if the operands in `zeros` are zero, by the facts that the node derives from its
    operands'."""
    terms = [ZERO if one in zeros else UNKNOWN for one in node.operands for _ in range(one.count)]
    return node.known(Knowledge({}, fits=True), terms).zero


# -- claims


@dataclass(frozen=True)
class ShareClaim:
    """The claim that |value(first) - value(second)|, or error(first), is at most share * M. `parts`: the one or two
    compared parts; `read`: other parts, whose results conditions read; `size`: results of at most size * M are in the
    range of the exact sum; `compared`, `against`: the two sides of the comparison, without the share."""

    space: Space
    parts: tuple[Part, ...]
    read: tuple[Part, ...]
    share: Fraction
    size: Fraction
    compared: ast.expr
    against: ast.expr


def share_claim(assertion: Assertion) -> ShareClaim:
    """The statement of a claim that compares an error, or two results, with the sum of magnitudes. Raises RuleError for
    another claim."""
    names, compared, _, against = _sides(assertion)
    space = space_of(assertion)
    # two rows of inputs: with one row, its quantities would fold as constants
    scene = lanes_of(assertion, np.zeros((2, len(assertion.layout.formats)), dtype=np.uint64))
    read = {name for tree in assertion.conditions for name in scene.truth(tree).reads} - set(names)
    exact = scene.exact()
    if exact.unit > space.unit:
        raise RuleError("share_claim: the exact sum has another unit")
    # numbers of a claim are multiples of the exact sum's unit, within its width
    most = power(exact.unit + exact.bits.width - 1) / space.most
    parts, others = (tuple(assertion.shape.parts[name] for name in own) for own in (names, sorted(read)))
    return ShareClaim(space, parts, others, share_at(assertion, assertion.terms), most, compared, against)


def share_at(assertion: Assertion, count: int) -> Fraction:
    """The share of the sum of magnitudes with which a claim compares, for this many products. Raises RuleError."""
    constant, each = linear_in_terms(_sides(assertion)[2])
    return constant + each * count


def compared_parts(assertion: Assertion) -> tuple[str, ...]:
    """The names of the parts that a claim compares, with the exact sum or with each other. Raises RuleError."""
    return _sides(assertion)[0]


def _sides(assertion: Assertion) -> tuple[tuple[str, ...], ast.expr, ast.expr, ast.expr]:
    """The compared parts, the compared quantity, the share of the sum of magnitudes, and that sum. Raises RuleError."""
    match assertion.predicate:
        case ast.Compare(left=left, ops=[ast.LtE()], comparators=[ast.BinOp(left=one, op=ast.Mult(), right=two)]) if (
            assertion.quantifier == "all"
        ):
            sums = [(share, whole) for share, whole in ((one, two), (two, one))
                    if ast.unparse(whole) == "magnitude_sum()"]  # fmt: skip
            match left:
                case ast.Call(func=ast.Name("error"), args=[ast.Name(name)]) if sums:
                    return (name,), left, *sums[0]
                case ast.Call(func=ast.Name("abs"), args=[ast.BinOp(op=ast.Sub(), left=ast.Call(
                        func=ast.Name("value"), args=[ast.Name(name)]), right=ast.Call(
                        func=ast.Name("value"), args=[ast.Name(other)]))]) if sums:  # fmt: skip
                    if name in assertion.shape.parts and other in assertion.shape.parts:
                        return (name, other), left, *sums[0]
    raise RuleError("share_claim: the claim compares neither an error nor two results with the sum of magnitudes")


def linear_in_terms(tree: ast.expr) -> tuple[Fraction, Fraction]:
    """The two coefficients of an expression that is linear in the number of products: the constant, and the summand for
    each product. Raises RuleError for another expression."""
    match tree:
        case ast.Constant():
            return decimal_of(tree), Fraction(0)
        case ast.Call(func=ast.Name("terms"), args=[]):
            return Fraction(0), Fraction(1)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            constant, each = linear_in_terms(inner)
            return -constant, -each
        case ast.BinOp(op=operator, left=left, right=right):
            (one, more), (two, others) = linear_in_terms(left), linear_in_terms(right)
            match operator:
                case ast.Add():
                    return one + two, more + others
                case ast.Sub():
                    return one - two, more - others
                case ast.Mult() if not (more and others):
                    return one * two, one * others + two * more
                case ast.Pow() if not (more or others) and two.denominator == 1:
                    return power_of(one, two, tree), Fraction(0)
    raise RuleError("share_claim: a factor of the sum of magnitudes that is no constant, nor linear in terms()")


@rule
def compares(assertion: Assertion, within: Sequence[Theorem]) -> Made:
    """Where M is zero, every result is zero (`makes_zero`). Elsewhere the results are as close as the claim says; they
    lie in the range of the claim's numbers, as do the results that conditions read. Two results differ by at most the
    sum of their errors. `within`: a bound of the difference of both results, or a bound of each error."""
    wanted, space = share_claim(assertion), space_of(assertion)
    every = (*wanted.parts, *wanted.read)
    if len(wanted.parts) > 1 and within and type(within[0].goal) is Apart:
        apart: Apart = goal_of(within[0], Apart, "compares")
        results = tuple(recorded_part(part, space.factors, space.terms) for part in wanted.parts)
        if (apart.space, apart.values) != (space, results):
            raise RuleError("compares: the bound is about other results")
        goals = [apart, *_errs(within[1:], Errs, space, wanted.read)]
        share = apart.share
    else:
        goals = _errs(within, Errs, space, every)
        share = _sum(goal.share for goal in goals[: len(wanted.parts)])
    if share > wanted.share:
        raise RuleError(f"compares: {up_decimal(share, 6)} of the sum of magnitudes is all that is known")
    if max(goal.size for goal in goals) > wanted.size:
        raise RuleError("compares: a result may leave the range of the exact sum")
    for part in every:
        makes_zero(unit_in(unit_of(part, space)).result)
    return Made(NoInputDecides(assertion), tuple(within))


@rule
def for_every_length(assertion: Assertion, within: Sequence[Theorem]) -> Made:
    """Where M is not zero, the error is as small as the claim says: it is at most s M; s and the claim's share both
    grow in equal steps, therefore two K suffice. Two results differ by at most the sum of their errors. The results
    that conditions read are numbers too. Where M is zero, every product has a factor zero, all of whose words are zero
    too; from these zeros units, sums and the plan make zeros (`makes_zero`)."""
    if assertion.most is None:
        raise RuleError("for_every_length: the claim is about one number of products")
    wanted, space = share_claim(assertion.at(assertion.terms)), space_of(assertion.at(assertion.most))
    goals = _errs(within, ErrsUpTo, space, (*wanted.parts, *wanted.read))
    if any(goal.first != assertion.terms for goal in goals):
        raise RuleError("for_every_length: the premise is about other numbers of products")
    for place, count in enumerate((assertion.terms, assertion.most)):
        known = _sum(goal.shares[place] for goal in goals[: len(wanted.parts)])
        if known > share_at(assertion, count):
            share = f"{up_decimal(known, 6)} of the sum of magnitudes"
            raise RuleError(f"for_every_length: {share} is all that is known for K = {count}")
    for goal in goals:
        for model in goal.part.plan.models:
            makes_zero(model.unit.result)
        makes_zero(goal.part.plan.result)
    return Made(NoLengthDecides(assertion), tuple(within))


def _errs(within: Sequence[Theorem], kind: type[Errs | ErrsUpTo], space: Space, parts: Sequence[Part]) -> list[Any]:
    """The goals about the errors of these parts, in order, on the inputs of a space. Raises RuleError."""
    goals = [goal_of(one, kind, "claims") for one in within]
    if [(goal.space, goal.part) for goal in goals] != [(space, part) for part in parts]:
        raise RuleError("claims: the bounds are about other results, or not about all of them")
    return goals


def _sum(shares: Iterable[Fraction]) -> Fraction:
    return sum(shares, Fraction(0))
