"""Error bounds of plans: the effect of each step on the error of a sum so far, from the theorems about its units.

v is the value of a step, and x the value of the same expression without rounding, in terms of the start of the sum and
of the products a_k b_k of the words that units read. Magnitudes have no index of a product here: `a` times `b` means
the sum of |a_k b_k| over all products of the step, `a` the sum of |a_k|; the offset of a magnitude is the number of the
pair of words that is read (`pairs_of`), so that a magnitude has each product once. If a plan is for any K, the symbol G
stands for 1 + r + ... + r^(n - 2), where n is the number of repetitions, or one more than the levels of halves; after m
loops, one after another, for this sum times L^(m - 1), L = r^(n - 1). For a given K, a number takes the place of G. G
grows with r and with m.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

from mmaprobe.queries.kernel.bounds.enclosures import (
    CHAIN,
    Assumption,
    Enclosed,
    Facts,
    KeptRounding,
    NoOverflow,
    after_rounding,
    numbers,
    with_lemmas,
)
from mmaprobe.queries.kernel.bounds.forms import (
    ERROR,
    NOUGHT,
    ONE,
    SIZE,
    Atom,
    Factor,
    Form,
    is_product,
    larger,
    magnitude,
    number,
    round_up,
    total,
)
from mmaprobe.queries.kernel.bounds.induction import Chained, linear, reads
from mmaprobe.queries.kernel.bounds.parts import OfPlan, adds_products_once, part_lemmas, times_products
from mmaprobe.queries.kernel.bounds.wording import COUNT, GROWTH, form_text, sum_text
from mmaprobe.queries.kernel.datapath.rounding_losses import RoundingLoses
from mmaprobe.queries.kernel.questions.steps import (
    Added,
    Begin,
    Compensated,
    Halved,
    Loop,
    PlanAt,
    SoFar,
    Step,
    Tile,
    Zero,
    pairs_of,
    record_of,
)
from mmaprobe.queries.kernel.questions.windows import Windowed, plan_at
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import NEAREST
from mmaprobe.smtmodel.nodes import Element, Product, Round, Scale
from mmaprobe.smtmodel.nodes.index import Index
from mmaprobe.smtmodel.nodes.known import ZERO, Known, grid_of, power
from mmaprobe.smtmodel.nodes.node import of_kind, walk
from mmaprobe.smtmodel.operand import NAMED
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.units.unit import Unit

START = 0  # the level of the start of a sum; loops have levels from 1 on
G = magnitude(GROWTH)


@dataclass(frozen=True)
class Summed:
    """The facts about a step that has each of its products once, on all finite inputs on which nothing overflows.
    `assuming`: the formats assumed of the sums so far of the enclosing loops, by level, and of the start of the sum
    (`START`). `growth`: the r of G, if G is in the facts, and `loops` its m, 0 for levels of halves. `limits`: if
    these hold of any element, nothing overflows; in them, the offset of a and b is the number of the pair of words, and
    E and A at `CHAIN` are the error and the size of this step or of one around it: the steps within this step have no
    larger errors or sizes, as no rule makes them smaller."""

    plan: Plan
    step: Step
    facts: Facts
    assuming: frozenset[tuple[int, frozenset[Format]]] = frozenset()
    growth: Fraction | None = None
    loops: int = 0
    limits: frozenset[NoOverflow] = frozenset()

    def statement(self) -> str:
        levels = sorted(level for level, _ in self.assuming)
        known = ", ".join("the start" if level == START else f"the sum so far of loop {level}" for level in levels)
        assumed = f", where |v - x| <= E and |x| <= A of {known}" if known else ""
        bound = sum_text(self.facts.error)
        return f"{type(self.step).__name__.lower()}: |v - x| <= {bound}{assumed}, if nothing overflows"


@dataclass(frozen=True)
class FromZero:
    """One instruction with an addend that is zero: |d - x| <= own, |x| <= size, on all finite inputs on which nothing
    overflows."""

    unit: Unit
    own: Form
    size: Form
    provided: frozenset[NoOverflow] = frozenset()

    def statement(self) -> str:
        return f"an instruction from zero: |d - exact| <= {form_text(self.own)}, if nothing overflows"


# -- forms


def _disjoint_sum(forms: Sequence[Form]) -> Form:
    """An upper bound of the sum of forms, each of which is about other products of each pair of words: for each
    magnitude of products, the largest of its coefficients times the magnitude over all products. A magnitude that is
    raised in one form is raised in all of them, so that it has one coefficient."""
    parts = [form.split(is_product) for form in forms]
    lifts = frozenset[str]().union(*(own.lifts for own, _ in parts))
    return larger([own.lifted(lifts) for own, _ in parts]) + total(rest for _, rest in parts)


def put(form: Form, change: Callable[[Factor], Form]) -> Form:
    """The form with another form in place of every magnitude: an upper bound, if each form put in is an upper bound of
    its magnitude."""
    return total(
        reduce(lambda x, y: x * y, map(change, item), number(value))
        for atom, value in form.flat().parts.items() for item in atom
    )  # fmt: skip


def single(factor: Factor) -> Form:
    return Form({frozenset({(factor,)}): Fraction(1)})


def growth_of(growth: Fraction, count: int) -> Fraction:
    """1 + r + ... + r^(count - 1) for the growth r, rounded up."""
    series, last = Fraction(0), Fraction(1)  # of the leading bits of count: the sum, and r^count
    for bit in f"{count:b}":
        series, last = round_up(series * (1 + last)), round_up(last * last)
        if bit == "1":
            series, last = round_up(1 + growth * series), round_up(last * growth)
    return series


def _sums_of(form: Form, pair: int) -> Form:
    """A form about an instruction's products (no constant) of a pair, without indices: for each kind of monomial its
    largest coefficient. Raises RuleError for a monomial that is not about one product."""
    most: dict[Atom, Fraction] = {}
    for atom, value in form.flat().parts.items():
        (item,) = atom
        places = {factor.offset for factor in item if factor.name in ("a", "b")}
        if len(places) != 1 or not all(factor.name in NAMED and not factor.factors for factor in item):
            raise RuleError("tile: the error of an instruction is no sum of terms about one product each")
        kind = frozenset({tuple(sorted(
            factor._replace(offset=pair if factor.name in ("a", "b") else 0) for factor in item
        ))})  # fmt: skip
        most[kind] = max(most.get(kind, value), value)
    return Form(most)


# -- rules, one for each kind of step


@rule
def from_zero(result: Theorem) -> Made:
    """An instruction whose addend is zero."""
    goal: Enclosed = goal_of(result, Enclosed, "from_zero")
    unit = goal.unit
    if goal.node != unit.result or goal.assuming != {Assumption(CHAIN, frozenset())} or not isinstance(unit, Unit):
        raise RuleError("from_zero: the premise is not about the result where the addend is zero")
    own, size = goal.facts.error, goal.facts.size
    if reads(own, CHAIN) or reads(size, CHAIN):
        raise RuleError("from_zero: the result reads another addend")
    return Made(FromZero(unit, own, size, goal.provided), (result,))


@rule
def begun(plan: Plan, step: Begin, formats: frozenset[Format]) -> Made:
    """The start of a sum, under the assumption that it is a number of these formats: |v - x| <= E, |x| <= A, for any E
    and A; without formats, under the assumption that it is zero."""
    return Made(_assumed(plan, step, START, formats))


@rule
def held(plan: Plan, step: SoFar, formats: frozenset[Format]) -> Made:
    """The sum so far of a loop, under the assumption that it is a number of these formats: |v - x| <= E, |x| <= A, for
    any E and A; without formats, under the assumption that it is zero."""
    return Made(_assumed(plan, step, step.level, formats))


def _assumed(plan: Plan, step: Step, level: int, formats: frozenset[Format]) -> Summed:
    if not formats:
        zero = numbers(replace(ZERO, never_minus=False), NOUGHT, NOUGHT, NOUGHT)
        return Summed(plan, step, zero, frozenset({(level, formats)}))
    error, size = (magnitude(name, Index(level)) for name in (ERROR, SIZE))
    return Summed(plan, step, numbers(Known.number(formats), error, error, size), frozenset({(level, formats)}))


@rule
def nothing(plan: Plan, step: Zero) -> Made:
    """A sum of no products, from +0: v = x = 0."""
    return Made(Summed(plan, step, numbers(ZERO, NOUGHT, NOUGHT, NOUGHT)))


@rule
def tile(step: Tile, chain: Theorem, start: Theorem) -> Made:
    """One use of a unit. Each instruction of a chain takes any E and A of its addend to growth * E + part * A + own,
    and to A + size, for any products, zeros too; the start is a number of the format of the unit's c. The largest
    coefficient of a product in own applies to the sum over all products that the unit reads. If the unit reads words,
    it has to add every product once, and nothing else. If the start is zero, the premise may be about an instruction
    from zero."""
    does: Chained | FromZero = goal_of(chain, FromZero if type(chain.goal) is FromZero else Chained, "tile")
    goal: Summed = goal_of(start, Summed, "tile")
    if does.unit != step.model.unit or goal.step is not step.start:
        raise RuleError("tile: the premises are not about its unit and its start")
    if goal.facts.known.formats is None or not all(step.model.c.holds(fmt) for fmt in goal.facts.known.formats):
        raise RuleError(f"tile: the start is not a number of the unit's {step.model.c.name}")
    pairs = pairs_of(goal.plan)
    if step.read not in pairs:
        raise RuleError("tile: its unit reads words that no unit of the plan reads")
    if any(not isinstance(node, Element) for pair in pairs for node in pair):
        adds_products_once(does.unit)
    if isinstance(does, Chained):
        one = does.step
        own_form, size_form = one.own, one.size
        before = goal.facts.error * one.growth + goal.facts.size * one.part
    elif goal.facts.is_zero:
        own_form, size_form, before = does.own, does.size, NOUGHT
    else:
        raise RuleError("tile: the start is not zero")
    parts = [form.split(is_product) for form in (own_form, size_form)]
    (own, fixed), (size, none) = [(_sums_of(products, pairs.index(step.read)), rest) for products, rest in parts]
    if none.parts or set(fixed.parts) - {ONE}:
        raise RuleError("tile: an instruction adds more than products")
    error = _disjoint_sum([before, own + fixed])
    facts = numbers(Known.number(frozenset({step.model.d})), error, error, _disjoint_sum([goal.facts.size, size]))
    limits = frozenset(_of_pair(one, pairs.index(step.read)) for one in does.provided)
    if isinstance(does, Chained) and does.step.growth < 1:  # the start may have had a larger error
        limits |= {NoOverflow(does.unit.result, ())}
    return Made(replace(goal, step=step, facts=facts, limits=goal.limits | limits), (chain, start))


def _of_pair(limit: NoOverflow, pair: int) -> NoOverflow:
    """The hypothesis of an instruction about overflow, in magnitudes of any of its products, of a pair of words."""

    def placed(factor: Factor) -> Factor:
        return factor._replace(offset=pair, factors=()) if factor.name in ("a", "b") else factor

    where = tuple((factor, form.renamed(placed)) for factor, form in limit.where)
    return replace(limit, most=None if limit.most is None else limit.most.renamed(placed), where=where)


def _within(plan: Plan, fmt: Format) -> frozenset[NoOverflow]:
    """The hypothesis that sums of values, which are rounded to a format, do not overflow."""
    error, size = (magnitude(name, Index(CHAIN)) for name in (ERROR, SIZE))
    return frozenset({NoOverflow(plan.result, (), fmt.emax, error + size)})


@rule
def added(step: Added, premises: Sequence[Theorem], lemmas: Sequence[Theorem]) -> Made:
    """The exact sum of values about different products, rounded: errors and sizes add up, and the rounding has the
    error that it has in a unit (`rounded`)."""
    goals: list[Summed] = [goal_of(premise, Summed, "added") for premise in premises]
    if tuple(goal.step for goal in goals) != step.values:
        raise RuleError("added: the premises are not about its values")
    every = [goal.facts for goal in goals]
    error, size = (_disjoint_sum([getattr(facts, name) for facts in every]) for name in ("error", "size"))
    own = [facts for facts in every if not facts.is_zero]
    known = Known(grid=grid_of([one.known for one in every]), bits=own[0].known.bits if len(own) == 1 else None)
    exact = Facts(error, error, size, known=known)
    facts = after_rounding(exact, step.rounding)
    lemma = RoundingLoses(step.rounding.format, step.rounding.fixed)
    found = _joined(step, facts, goals)
    found = replace(found, limits=found.limits | _within(found.plan, step.rounding.format))
    return with_lemmas(Made(found, tuple(premises)), lemmas, [lemma])


def _joined(step: Step, facts: Facts, goals: Sequence[Summed]) -> Summed:
    """The facts about a step with several values of one plan, with the largest of their G. Raises RuleError if their
    plans or assumptions differ, or if both levels of halves and loops grow."""
    assuming = frozenset[tuple[int, frozenset[Format]]]().union(*(goal.assuming for goal in goals))
    growing = [goal for goal in goals if goal.growth is not None]
    if len({level for level, _ in assuming}) < len(assuming):
        raise RuleError("the premises assume different things of one sum")
    if len({not goal.loops for goal in growing}) > 1 or any(goal.plan is not goals[0].plan for goal in goals):
        raise RuleError("the premises are about several plans, or about loops and halves of any number: ask for a K")
    growth = max((goal.growth for goal in growing if goal.growth is not None), default=None)
    loops, limits = max((goal.loops for goal in growing), default=0), _limits(goals)
    return Summed(goals[0].plan, step, facts, assuming, growth, loops, limits)


def _limits(goals: Sequence[Summed]) -> frozenset[NoOverflow]:
    return frozenset[NoOverflow]().union(*(goal.limits for goal in goals))


@rule
def iterated(step: Loop, start: Theorem, body: Theorem, zero: Theorem | None = None) -> Made:
    """Induction over n iterations, the first one from the start. An iteration takes any E and A to r * E + part * A +
    own, and to A + size, r >= 1, where own and size are about its own products. In the final error, own of iteration i
    has the factor r^(n - 1 - i), and its size the factor part * (1 + ... + r^(n - 2 - i)); both are largest for the
    first iteration: r^(n - 1) = 1 + (r - 1) G, and part * G. E0 has the factor r^n, A0 part * (1 + r G), a constant of
    each iteration 1 + r G.

    If the start is after m loops of any number of iterations, with x + y G in its error or size, r is the largest of
    the growths, G is that of m + 1 loops, which is no smaller, and (x + y G) r^n = x r L + y r G L is at most x r + (y
    r + x r (r - 1)) G in terms of this G.

    If the start is zero, `zero` may stand for the first iteration: a bound of the body where the sum so far is zero,
    with the error own' + fixed' and the size A'. n - 1 iterations follow: own' has the factor r^(n - 1), A' the factor
    part * G, a constant of each other iteration 1 + ... + r^(n - 2) = G; and own and size of the others r^(n - 2) and
    part * (1 + ... + r^(n - 3)), which are L / r and part * (G - 1) / r: together own / r - part * size / r and, times
    G, own (r - 1) / r + part * size / r."""
    first: Summed = goal_of(start, Summed, "iterated")
    goal: Summed = goal_of(body, Summed, "iterated")
    if (first.step, goal.step) != (step.start, step.body) or first.plan is not goal.plan:
        raise RuleError("iterated: the premises are not about its start and its body")
    formats = [formats for level, formats in goal.assuming if level == step.level]
    if len(formats) != 1 or any(facts.known.formats is None or not facts.known.formats <= formats[0]
                                for facts in (first.facts, goal.facts)):  # fmt: skip
        raise RuleError("iterated: a sum so far is not a number of the formats assumed")
    if len(goal.assuming) > 1 or goal.growth is not None or any(level == step.level for level, _ in first.assuming):
        raise RuleError("iterated: an iteration depends on more than the sum so far")
    growth, part, rest = linear(goal.facts.error, step.level)
    grown, kept, more = linear(goal.facts.size, step.level)
    (own, fixed), (size, none) = rest.split(is_product), more.split(is_product)
    if growth < 1 or grown or kept > 1 or none.parts or set(fixed.parts) - {ONE}:
        raise RuleError("iterated: the sum so far enters an iteration in another way")
    rate, loops = first.growth, first.loops
    if step.count is None:
        if rate is not None and not loops:
            raise RuleError("iterated: a loop of any number of iterations starts from any number of halves")
        growth = rate = max(growth, rate or growth)
        times, loops = G, loops + 1
    elif step.count < 1:
        raise RuleError("iterated: a loop has at least one iteration")
    else:
        times = number(growth_of(growth, step.count - 1))
    if zero is not None:
        from_zero: Summed = goal_of(zero, Summed, "iterated")
        facts = _from_zero(step, first, goal, from_zero, (growth, part, own, size, fixed), times)
        limits = _limits([first, goal, from_zero])
        return Made(Summed(goal.plan, step, facts, first.assuming, rate, loops, limits), (start, body, zero))
    last, every = number(1) + times * (growth - 1), number(1) + times * growth  # r^(n - 1), and all powers below r^n
    own = own * last + size.lifted(own.lifts) * (times * part)
    old = _grown(first.facts.error, growth, times) + first.facts.size * (every * part)
    error = _disjoint_sum([old, own + fixed * every])
    facts = numbers(
        Known.number(goal.facts.known.formats or frozenset()), error, error, _disjoint_sum([first.facts.size, size])
    )
    return Made(Summed(goal.plan, step, facts, first.assuming, rate, loops, _limits([first, goal])), (start, body))


Each = tuple[Fraction, Fraction, Form, Form, Form]  # growth, part, own, size and fixed


def _from_zero(step: Loop, start: Summed, body: Summed, from_zero: Summed, each: Each, times: Form) -> Facts:
    """The facts about a loop from zero. `each`: any iteration but the first; `times`: G. Raises RuleError."""
    growth, part, own, size, fixed = each
    if not start.facts.is_zero or start.growth is not None:
        raise RuleError("iterated: the start is not zero")
    if from_zero.step != step.body or from_zero.plan is not body.plan or from_zero.growth is not None:
        raise RuleError("iterated: the iteration from zero is not that of its body")
    if from_zero.assuming != {(step.level, frozenset())}:
        raise RuleError("iterated: the iteration from zero assumes something else")
    formats = body.facts.known.formats
    if formats is None or from_zero.facts.known.formats is None or not from_zero.facts.known.formats <= formats:
        raise RuleError("iterated: the first sum is not a number of the format of the others")
    if any(factor.name in (ERROR, SIZE) for form in (from_zero.facts.error, from_zero.facts.size)
           for atom in form.parts for item in atom for factor in item):  # fmt: skip
        raise RuleError("iterated: the iteration from zero reads the sum so far")
    first = from_zero.facts.error * (number(1) + times * (growth - 1)) + from_zero.facts.size * (times * part)
    lifts = own.lifts | from_zero.facts.error.lifts
    own, first = own.lifted(lifts), first.lifted(lifts)
    steady, lifted = own * (1 / growth), size.lifted(lifts) * (part / growth)
    less = Form({atom: max(Fraction(0), value - lifted.parts.get(atom, Fraction(0)))
                 for atom, value in steady.parts.items()})  # fmt: skip
    others = less + (own * ((growth - 1) / growth) + lifted) * times
    error = _disjoint_sum([first, others + fixed * times])
    return numbers(Known.number(formats), error, error, _disjoint_sum([from_zero.facts.size, size]))


def _grown(form: Form, growth: Fraction, times: Form) -> Form:
    """A form times r^n = r (1 + (r - 1) times); if `times` is G, the part of the form with G is multiplied by r only,
    as its G becomes the G of one loop more."""
    old, more = _by_growth(form)
    fixed = number(growth) if times == G else (number(1) + times * (growth - 1)) * growth
    return old * ((number(1) + times * (growth - 1)) * growth) + more * fixed


def _by_growth(form: Form) -> tuple[Form, Form]:
    """The part of a form without G, and the part with G. Raises RuleError for a form with a power of G."""
    if any(sum(factor.name == GROWTH for factor in item) > 1 for atom in form.parts for item in atom):
        raise RuleError("iterated: the start is a compensated sum of any number of products: ask for a K")
    more, old = form.split(lambda item: any(factor.name == GROWTH for factor in item))
    return old, more


@rule
def compensated(step: Compensated, start: Theorem, parts: Sequence[Theorem], lemmas: Sequence[Theorem]) -> Made:
    """The sums of n parts P_i added to a start P_0, with compensation. Each addition of two numbers of a format, to
    nearest, has s' = (s + P)(1 + d), |d| <= u, r = 1 + u; its loss, s + P - s', is a number of the format: a multiple
    of the last place of the smaller of s and P, and, as s' could have been s or P, no larger than either (Dekker 1971,
    Knuth). Each loss is computed exactly; s_n plus the exact sum of all losses is the sum of all P.

    T is the sum of all |P|. After i additions |s_i| <= r^i T, so that all losses together are at most T (u + u r + ...
    + u r^(n - 1)) = T (r^n - 1). The sum c of the losses, from the first of n on, loses at most u r^(i - 2) T (r^n - 1)
    in step i, together T (r^n - 1) (r^(n - 1) - 1). With G = 1 + r + ... + r^(n - 2) this is u^2 G (1 + r G) T. The
    last addition loses as much as any rounding. Nothing overflows if neither r^n r^n T nor a part does: c is at most
    r^(n - 1) T (r^n - 1). Kahan's program: see `_kahan`."""
    first: Summed = goal_of(start, Summed, "compensated")
    goals: list[Summed] = [goal_of(part, Summed, "compensated") for part in parts]
    if first.step is not step.start or tuple(goal.step for goal in goals) != step.parts or not goals:
        raise RuleError("compensated: the premises are not about its start and its parts")
    if any(goal.assuming or goal.plan is not first.plan for goal in goals):
        raise RuleError("compensated: a part reads another sum, or is of another plan")
    if step.count is None and any(goal.growth is not None for goal in (first, *goals)):
        raise RuleError("compensated: neither the number of sums nor the number of products of one is given")
    if step.count is not None and step.count < len(goals):
        raise RuleError("compensated: more parts than are added")
    how, fmt = step.rounding, step.rounding.format
    if how.mode not in NEAREST or how.subnormals != "keep" or fmt.specials != "ieee" or not fmt.subnormals:
        raise RuleError("compensated: the error of an addition need not be a number of its format")
    every = [first.facts, *(goal.facts for goal in goals)]
    if any(one.known.formats is None or not all(fmt.holds(own) for own in one.known.formats)
           for one in every if not one.is_zero):  # fmt: skip
        raise RuleError("compensated: a number that is added is not one of the format")
    unit = power(-fmt.fraction) / 2
    rate = 1 + unit if step.by == "neumaier" else _rate_of_kahan(unit)
    count, times = (magnitude(COUNT), G) if step.count is None else (
        number(step.count), number(growth_of(rate, step.count - 1)))  # fmt: skip
    halves = [goal.facts.error.split(is_product) for goal in goals]
    if any(goal.facts.size.split(is_product)[1].parts for goal in goals):
        raise RuleError("compensated: a part has more than products")
    fixed = count * larger([rest for _, rest in halves])  # no more parts than products
    error = _disjoint_sum([first.facts.error, *(own for own, _ in halves)]) + fixed
    size = _disjoint_sum([first.facts.size, *(goal.facts.size for goal in goals)])
    if step.by == "neumaier":
        every_ = number(1) + times * rate
        before = error + (error + size) * times * every_ * (unit * unit)
        known = Known(grid=Known.number(frozenset({fmt})).grid)
        facts, power_ = after_rounding(Facts(before, before, size, known=known), how), number(1) + every_ * unit
        largest_ = power_ * power_
    else:
        lost, largest_ = _kahan(unit, times)
        error = error + (error + size) * lost
        facts = numbers(Known.number(frozenset({fmt})), error, error, size)
    found = _joined(step, facts, [first, *goals])
    error_, size_ = (magnitude(name, Index(CHAIN)) for name in (ERROR, SIZE))
    limits = found.limits | {NoOverflow(found.plan.result, (), fmt.emax, (error_ + size_) * largest_)}
    limits |= _within(found.plan, fmt)
    if step.count is None:
        found = replace(found, growth=rate, loops=1)
    made_ = Made(replace(found, limits=limits), (start, *parts))
    return with_lemmas(made_, lemmas, [RoundingLoses(fmt, how.mode)])


def _rate_of_kahan(unit: Fraction) -> Fraction:
    """q of `_kahan`."""
    rate = 1 + unit
    return rate * (1 + (rate * rate + rate) * unit)


def _kahan(unit: Fraction, times: Form) -> tuple[Form, Form]:
    """The loss of n additions by Kahan's program, and the size of its values, in T; `times`: G of q.

    y_i = P_i + e_(i - 1) + h, s_i = s_(i - 1) + y_i + d, z_i = s_i - s_(i - 1) + f, e_i = y_i - z_i + g = g - d - f,
    where each of h, d, f and g is the error of a sum of two numbers, and at most u times this sum: a subnormal sum of
    numbers of a format loses nothing. So s_n + e_n = sum of P_i + h_i - f_i + g_i, whichever of s and y is larger.

    With W_i = |s_(i - 1)| + |y_i|: |d_i| <= u W_i, |f_i| <= u (|y_i| + |d_i|), |g_i| <= u (|d_i| + |f_i|), |e_i| <= r
    (|d_i| + |f_i|) <= v W_i for v = (r^2 + r) u; and W_(i + 1) <= r W_i + r (|P_(i + 1)| + v W_i), so that W_i <= q^(i
    - 1) T with q = r (1 + v). Summed: h <= u T (1 + v G), y <= r T (1 + v G), d <= u T (1 + q G), and |e_n| <= v q^(n -
    1) T, q^(n - 1) = 1 + (q - 1) G. No value, and no operand of a rounding, exceeds 4 q^(n - 1) T."""
    rate, one = 1 + unit, number(1)
    lost, growth = (rate * rate + rate) * unit, _rate_of_kahan(unit)
    carried, sums_, last = one + times * lost, one + times * growth, one + times * (growth - 1)
    d = sums_ * unit
    f = (carried * rate + d) * unit
    return carried * unit + f + (d + f) * unit + last * lost, last * 4


@rule
def halved(step: Halved, leaves: Sequence[Theorem], lemmas: Sequence[Theorem]) -> Made:
    """Induction over the levels of pairwise summation. A leaf of n products has an error of at most e E0 + p A0 + own +
    fixed. Two sums whose errors and sizes together are E and A are added to one with an error of at most r E + part A +
    more, r >= 1, and the size A. With t levels, and G = 1 + ... + r^(t - 1), r^t = 1 + (r - 1) G, a sum of K products
    has an error of at most r^t (e E0 + p A0 + own) + part G (A0 + size) + r^t (fixed + more) K, with the largest fixed
    / n of a leaf in place of fixed: with one level more, E is that of both halves together, which have fewer levels, no
    product in common and the start once; and K products are in at most K leaves, added K - 1 times."""
    goals: list[Summed] = [goal_of(leaf, Summed, "halved") for leaf in leaves]
    if tuple(goal.step for goal in goals) != step.leaves:
        raise RuleError("halved: the premises are not about its leaves")
    if any(goal.growth is not None or goal.assuming - goals[0].assuming for goal in goals):
        raise RuleError("halved: leaves assume different things of the start, or are of any number of products")
    plan, fmt = goals[0].plan, step.rounding.format
    if any(
        goal.plan is not plan or goal.facts.known.formats is None or not goal.facts.known.formats <= {fmt}
        for goal in goals
    ):
        raise RuleError("halved: leaves are of several plans, or not numbers of one format")
    grown, kept, own, fixed, sizes = Fraction(0), Fraction(0), [], Fraction(0), []
    for count, goal in enumerate(goals, 1):
        growth, part, rest = linear(goal.facts.error, START)
        entered, held_, more = linear(goal.facts.size, START)
        (products, constant), (size, none) = rest.split(is_product), more.split(is_product)
        if entered or held_ > 1 or none.parts or set(constant.parts) - {ONE}:
            raise RuleError("halved: the start enters a leaf in another way")
        grown, kept, fixed = max(grown, growth), max(kept, part), max(fixed, constant.constant / count)
        own.append(products)
        sizes.append(size)
    error, old = (magnitude(name, Index(START)) for name in (ERROR, SIZE))
    both = Known(grid=Known.number(frozenset({fmt})).grid)
    added_ = after_rounding(Facts(error, error, old, known=both), step.rounding)
    rate, part, more = linear(added_.error, START)  # r >= 1; more is a number: the error is E and the loss of A + E
    last, size = number(1) + G * (rate - 1), larger(sizes)
    first, products = error * grown + old * kept, larger(own)
    above = (old + size.lifted(products.lifts)) * G * part
    bound = (first + products) * last + above + last * magnitude(COUNT) * (fixed + more.constant)
    facts = numbers(Known.number(frozenset({fmt})), bound, bound, old + size)
    lemma = RoundingLoses(fmt, step.rounding.fixed)
    limits = _limits(goals) | _within(plan, fmt)
    made_ = Made(Summed(plan, step, facts, goals[0].assuming, rate, limits=limits), tuple(leaves))
    return with_lemmas(made_, lemmas, [lemma])


@rule
def of_all_products(
    at: PlanAt | Windowed, node: Products, total_: Theorem, start: Theorem, lemmas: Sequence[Theorem]
) -> Made:
    """The sum of all products of a plan: its steps are those of its stage, with each product of a pair of words once,
    and E and A are those of its start, a number of the format assumed. Its magnitudes are sums over all products, so
    that two such sums may not be multiplied. All roundings in words are kept: a word is a polynomial of its element and
    of their errors, and its magnitude is at most the sum of the magnitudes of the polynomial's terms."""
    goal: Summed = goal_of(total_, Summed, "of_all_products")
    first: Enclosed = goal_of(start, Enclosed, "of_all_products")
    stage, unit, at = node.stage, at, plan_at(at)
    if goal.plan is not at.plan or first.unit is not unit or first.node != node.start:
        raise RuleError("of_all_products: the premises are not about the sum and its start")
    if not all(isinstance(one, KeptRounding) for one in first.assuming):
        raise RuleError("of_all_products: the start assumes something")
    if goal.step is not record_of(at.plan, stage, at.length).step:
        raise RuleError("of_all_products: the premise is not about the steps of the plan")
    if goal.growth is not None and (goal.growth > at.growth or goal.loops > at.loops):
        raise RuleError("of_all_products: the steps grow faster than the plan is said to")
    known = first.facts.known.formats
    if {level for level, _ in goal.assuming} - {START} or known is None or not all(
        any(own.holds(fmt) for own in formats) for _, formats in goal.assuming for fmt in known
    ):  # fmt: skip
        raise RuleError("of_all_products: the start is not a number of the format assumed")
    if any(sum(any(of_kind(operand, Products)) for operand in one.operands) > 1 for one in walk(at.result)
           if isinstance(one, (Product, Scale))):  # fmt: skip
        raise RuleError("of_all_products: two sums are multiplied")
    starts = {Factor(ERROR, START): first.facts.error, Factor(SIZE, START): first.facts.size}
    words = OfPlan(unit, kept := frozenset(words_in(at.plan)))
    forms = []
    for form in (goal.facts.error, goal.facts.size):
        products, rest = form.split(is_product)
        forms.append(times_products(put(products, words.magnitude), at.length)
                     + put(rest, lambda factor: starts.get(factor, single(factor))))  # fmt: skip
    facts = numbers(Known.number(goal.facts.known.formats or frozenset()), forms[0], forms[0], forms[1])
    whole = tuple((Factor(name, CHAIN), times_elements(form, at.length))
                 for name, form in zip((ERROR, SIZE), forms, strict=True))  # fmt: skip
    provided = first.provided | {_of_elements(one, words, whole) for one in goal.limits}
    provided |= {NoOverflow(one, (), one.rounding.format.emax, words.size(words.of(one.term, ())), each=True)
                 for one in kept}  # fmt: skip
    made_ = Made(
        Enclosed(unit, node, (), facts, first.assuming | set(map(KeptRounding, kept)), provided), (total_, start)
    )
    return with_lemmas(made_, lemmas, word_lemmas(at.plan))


def _of_elements(limit: NoOverflow, words: OfPlan, whole: tuple[tuple[Factor, Form], ...]) -> NoOverflow:
    """The hypothesis of a step of a plan about overflow, in magnitudes of any element; `whole`: the error and the size
    of the whole sum."""
    where = tuple((factor, put(form, words.magnitude)) for factor, form in limit.where)
    most = None if limit.most is None else put(limit.most, words.magnitude)
    return replace(limit, most=most, where=(*where, *whole), each=True)


def times_elements(form: Form, length: int | None) -> Form:
    """A form about sums over all products as one about any element: its products times the number of products."""
    products, rest = form.split(is_product)
    return products * (magnitude(COUNT) if length is None else number(length)) + rest


def words_in(plan: Plan) -> list[Round]:
    """The roundings in words that the units of a plan read."""
    return list(dict.fromkeys(one for pair in pairs_of(plan) for node in pair for one in of_kind(node, Round)))


def word_lemmas(plan: Plan) -> list[RoundingLoses]:
    """The lemmas about the datapath on which the words of a plan rest."""
    return list(dict.fromkeys(goal for word in words_in(plan) for goal in part_lemmas(word)))
