"""Induction: the effect of one step on the error of the result so far, carried through any number of steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mmaprobe.queries.kernel.bounds.enclosures import (
    CHAIN,
    Assumption,
    Enclosed,
    NoOverflow,
    Places,
    assumed_together,
    bound_places,
    numbers,
)
from mmaprobe.queries.kernel.bounds.forms import (
    ERROR,
    NOUGHT,
    ONE,
    SIZE,
    Factor,
    Form,
    larger,
    magnitude,
    round_up,
    total,
)
from mmaprobe.queries.kernel.bounds.wording import form_text, up_text
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.nodes import Repeat
from mmaprobe.smtmodel.nodes.known import Known
from mmaprobe.smtmodel.units.unit import Unit

MOST_CARRIED = 1 << 16  # the most instructions of a chain, and so the most products of a chain in a report


@dataclass(frozen=True)
class Step:
    """One step: after it, an error E and a size A of the result so far have become at most growth * E + part * A + own,
    and at most A + size. `own` and `size` may depend on the loop variable of `level`."""

    level: int
    growth: Fraction
    part: Fraction
    own: Form
    size: Form

    def run(self, places: Sequence[int], error: Form, size: Form) -> tuple[Form, Form]:
        """E and A after a step for each of the places: E = growth^n E0 + sum over i of growth^(n - 1 - i) (part A_i +
        own_i), with A_i = A0 + size_0 + ... + size_(i - 1)."""
        # growth^n, for the n steps after a place, and 1 + growth + ... + growth^(n - 1)
        after, later = Fraction(1), Fraction(0)
        errors, sizes = [], []
        for place in reversed(places):
            own_size = self.size.at(self.level, place)
            errors += [self.own.at(self.level, place) * after, own_size * (self.part * later)]
            sizes.append(own_size)
            later, after = later + after, round_up(self.growth * after)
        errors += [error * after, size * (self.part * later)]
        return total(errors).raised(), total([size, *sizes])


def step_text(step: Step) -> str:
    """The error after a step, from E and A before it."""
    growth = "E" if step.growth == 1 else f"(1 + {up_text(step.growth - 1)}) E"
    part = f" + {up_text(step.part)} A" if step.part else ""
    own = f" + {form_text(step.own.merged())}" if step.own.parts else ""
    return f"E becomes {growth}{part}{own}"


def step_of(goal: Enclosed, assumption: Assumption) -> Step:
    """The step from an assumption to a goal whose error and size are linear in the E and A assumed. Raises
    RuleError."""
    level = assumption.level
    if assumption not in goal.assuming:
        raise RuleError("induction: the step assumes something else of the result so far")
    if goal.facts.known.formats is None or not goal.facts.known.formats <= assumption.formats:
        raise RuleError("induction: the step's result is not a number of the formats assumed")
    growth, part, own = linear(goal.facts.error, level)
    grown, kept, size = linear(goal.facts.size, level)
    if grown or kept > 1:
        raise RuleError("induction: the result so far enters the step more than once")
    return Step(level, growth, part, own, size)


def linear(form: Form, level: int) -> tuple[Fraction, Fraction, Form]:
    """The coefficients of E and of A, and the rest. Raises RuleError for a form that is not linear in E and A."""
    error, size = (frozenset({(Factor(name, level),)}) for name in (ERROR, SIZE))
    whole = Form({})
    for atom, value in form.parts.items():
        one = Form({atom: value})
        whole += one.flat() if any(_reads(item, level) for item in atom) else one
    rest = {atom: value for atom, value in whole.parts.items() if atom not in (error, size)}
    if any(_reads(item, level) for atom in rest for item in atom):
        raise RuleError("induction: the error is not linear in the result so far")
    return whole.parts.get(error, Fraction(0)), whole.parts.get(size, Fraction(0)), Form(rest)


def reads(form: Form, level: int) -> bool:
    """Whether a form has the error or the size of the result so far of a loop."""
    return any(_reads(item, level) for atom in form.parts for item in atom)


def _reads(item: tuple[Factor, ...], level: int) -> bool:
    return any(factor.name in (ERROR, SIZE) and factor.offset == level for factor in item)


@rule
def repeated(node: Repeat, places: Places, start: Theorem, body: Theorem, zero: Theorem | None = None) -> Made:
    """Induction over the places of a loop. The start has |v - x| <= E0, |x| <= A0; a step takes any E and A to growth *
    E + part * A + own and to A + size; then `Step.run` gives the bounds of the last result. With a growth of at least 1
    these are bounds of every result so far, too: the hypotheses that nothing overflows within the loop depend on them.
    If the start is zero, `zero`, a bound of the body where the result so far is zero, may stand for the first step."""
    first: Enclosed = goal_of(start, Enclosed, "repeated")
    goal: Enclosed = goal_of(body, Enclosed, "repeated")
    if (first.node, goal.node) != (node.start, node.body) or first.unit is not goal.unit:
        raise RuleError("repeated: the premises are not about its start and its body")
    known = dict(places)
    if places != bound_places(node, known) or first.places != bound_places(node.start, known):
        raise RuleError("repeated: the node has other loop variables")
    if goal.places != bound_places(node.body, {k: v for k, v in known.items() if k != node.level}):
        raise RuleError("repeated: the premise about the body is not for every place of the loop")
    if any(one.level == node.level for one in first.assuming):
        raise RuleError("repeated: the start reads the result so far of a loop of the same level")
    own = [one for one in goal.assuming if isinstance(one, Assumption) and one.level == node.level]
    formats = own[0].formats if own else frozenset[Format]()
    if own and (first.facts.known.formats is None or not first.facts.known.formats <= formats):
        raise RuleError("repeated: the start is not a number of the formats assumed")
    assuming, within = assumed_together("repeated", [first, goal]) - frozenset(own), goal.provided
    step = step_of(goal, own[0]) if own else None
    if step is None:  # the body does not read the result so far: the last iteration alone counts
        facts = replace(goal.facts, **{name: getattr(goal.facts, name).at(node.level, node.places[-1])
                                       for name in ("low", "high", "size")})  # fmt: skip
        if facts.weight is not None:
            facts = replace(facts, weight=facts.weight.at(node.level, node.places[-1]))
    else:
        begin, rest = (first.facts.error, first.facts.size), node.places
        if zero is not None:
            from_zero: Enclosed = goal_of(zero, Enclosed, "repeated")
            begin, rest = _after_first(from_zero, first, goal, node, formats), node.places[1:]
            others = replace(goal, assuming=goal.assuming - frozenset(own))
            apart = replace(from_zero, assuming=from_zero.assuming - {Assumption(node.level, frozenset())})
            assuming |= assumed_together("repeated", [first, others, apart])
            within |= from_zero.provided
        error, size = step.run(rest, *begin)
        facts = numbers(Known.number(formats), error, error, size)
        if step.growth < 1:
            error, size = replace(step, growth=Fraction(1)).run(rest, *begin)
        within = frozenset(one.after(node.level, error, size) for one in within)
    return Made(Enclosed(goal.unit, node, places, facts, assuming | first.assuming, within | first.provided),
                (start, body, *([] if zero is None else [zero])))  # fmt: skip


def _after_first(from_zero: Enclosed, start: Enclosed, body: Enclosed, node: Repeat, formats: frozenset[Format]
                 ) -> tuple[Form, Form]:  # fmt: skip
    """E and A after the first step of a loop from zero. Raises RuleError."""
    if not start.facts.is_zero or Assumption(node.level, frozenset()) not in from_zero.assuming:
        raise RuleError("repeated: a start that is zero, and a step from zero, are needed")
    if (from_zero.node, from_zero.places, from_zero.unit) != (body.node, body.places, body.unit):
        raise RuleError("repeated: the step from zero is not that of the body")
    if from_zero.facts.known.formats is None or not from_zero.facts.known.formats <= formats:
        raise RuleError("repeated: the first result is not a number of the formats assumed")
    if reads(from_zero.facts.error, node.level) or reads(from_zero.facts.size, node.level):
        raise RuleError("repeated: the step from zero reads the result so far")
    return from_zero.facts.error.at(node.level, node.places[0]), from_zero.facts.size.at(node.level, node.places[0])


@dataclass(frozen=True)
class Chained:
    """The effect of one instruction on |d - exact|, in a chain of instructions that each have the previous result as
    addend c, on all finite inputs on which nothing overflows: `provided` is true in each instruction."""

    unit: Unit
    step: Step
    provided: frozenset[NoOverflow] = frozenset()

    def statement(self) -> str:
        return f"each instruction: {step_text(self.step)}, if nothing overflows"


@dataclass(frozen=True)
class Carried:
    """A bound of |d - exact| after `count` instructions of a chain, on all finite inputs on which nothing overflows;
    product k of instruction i is product i * length + k."""

    unit: Unit
    count: int
    error: Form

    def statement(self) -> str:
        return f"after {self.count} instructions: |d - exact| <= {form_text(self.error)}, if nothing overflows"


@rule
def chained(result: Theorem) -> Made:
    """A chain of instructions as a loop over them: the result of one, a number of c's format, is the addend of the
    next."""
    goal: Enclosed = goal_of(result, Enclosed, "chained")
    unit = goal.unit
    # a plan is no instruction
    if goal.node != unit.result or [one.level for one in goal.assuming] != [CHAIN] or not isinstance(unit, Unit):
        raise RuleError("chained: the premise is not about the result for any addend c: there is none, or it is fixed")
    if not embeds(unit.d, unit.c):
        raise RuleError(f"chained: a result in {unit.d.name} cannot be an addend in {unit.c.name}")
    (own,) = (one for one in goal.assuming if isinstance(one, Assumption))
    widened = replace(goal, facts=replace(goal.facts, known=Known.number(frozenset({unit.c}))))
    return Made(Chained(unit, step_of(widened, own), goal.provided), (result,))


@dataclass(frozen=True)
class Closed:
    """|d - exact| <= G(n) * (part * |c| + sum over all instructions of products + fixed) after any number n of
    instructions, where G(n) = 1 + growth + ... + growth^(n - 1), on all finite inputs on which nothing overflows; the
    magnitudes in `products` are those of one instruction."""

    unit: Unit
    growth: Fraction
    part: Fraction
    products: Form
    fixed: Fraction

    def statement(self) -> str:
        return f"{self.text}, if nothing overflows"

    @property
    def text(self) -> str:
        """The bound alone."""
        inner = [form_text(magnitude("c") * self.part)] if self.part else []
        inner += [f"{form_text(self.products)} of each, added up"] if self.products.parts else []
        inner += [up_text(self.fixed)] if self.fixed else []
        if not inner:
            return "after n instructions: |d - exact| <= 0"
        growth = f"((1 + g)^n - 1) / g, g = {up_text(self.growth - 1)}" if self.growth != 1 else "n"
        return f"after n instructions: |d - exact| <= G * ({' + '.join(inner)}), G = {growth}"


@rule
def closed(chain: Theorem) -> Made:
    """A chain from an exact addend, with growth r >= 1 and G(n) = 1 + r + ... + r^(n - 1): an instruction's own error q
    enters with a factor of at most r^(n - 1), and the size s that it adds with at most part * G(n - 1); together at
    most max(q, part * s) * (r^(n - 1) + G(n - 1)) = max(q, part * s) * G(n). |c| enters with part * G(n), a constant of
    each instruction with G(n)."""
    goal: Chained = goal_of(chain, Chained, "closed")
    step = goal.step
    if step.growth < 1:
        raise RuleError("closed: the error of the result so far must not shrink")
    own = step.own.merged()
    products = larger([own, (step.size.flat() * step.part).lifted(own.lifts)])
    products = Form({atom: value for atom, value in products.parts.items() if atom != ONE}).merged()
    return Made(Closed(goal.unit, step.growth, step.part, products, own.constant), (chain,))


@rule
def carried(chain: Theorem, count: int) -> Made:
    """Induction over the instructions of a chain, from an addend that is exact: as `repeated`."""
    goal: Chained = goal_of(chain, Chained, "carried")
    if not 1 <= count <= MOST_CARRIED:
        raise RuleError(f"carried: a chain has at least one instruction, and at most {MOST_CARRIED}")
    unit = goal.unit

    def placed(factor: Factor) -> Factor:
        return factor._replace(factors=(*factor.factors, (CHAIN, unit.count(factor.name))))

    step = replace(goal.step, own=goal.step.own.renamed(placed), size=goal.step.size.renamed(placed))
    error, _ = step.run(range(count), NOUGHT, magnitude("c"))
    return Made(Carried(unit, count, error.merged()), (chain,))


def embeds(one: Format, other: Format) -> bool:
    """Whether every pattern of one format is the same number in the other."""
    return one.is_within(other) and one.width == other.width
