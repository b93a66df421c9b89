"""Facts proved about a node: the distance of its value from the exact value, and the quantities that an alignment
needs.

Of a node N, v(N) is its value in the unit; x(N) is the value of the same expression without rounding, for the inputs as
the unit reads them (if the unit reads subnormals as zero, so does x). Every statement holds for all finite inputs under
its hypotheses: the assumptions about results so far, the roundings that x keeps, and the places where nothing
overflows. A rule's conclusion has the hypotheses of all its premises except those that the rule discharges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import ClassVar, TypeAlias

from mmaprobe.queries.kernel.bounds.forms import (
    ERROR,
    EXACT,
    NOUGHT,
    SIZE,
    Factor,
    Form,
    Values,
    larger,
    largest,
    magnitude,
    number,
    total,
)
from mmaprobe.queries.kernel.bounds.wording import form_text
from mmaprobe.queries.kernel.datapath.rounding_losses import RoundingLoses
from mmaprobe.queries.kernel.lemmas import AlignmentLoses, Lemma
from mmaprobe.queries.kernel.questions.steps import PlanAt
from mmaprobe.queries.kernel.questions.windows import Windowed
from mmaprobe.queries.kernel.theorem import Made, OpenLemmaError, RuleError, Theorem, goal_of, is_theorem, rule
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import Mode
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.nodes import (
    Cancelling,
    Constant,
    Cut,
    Each,
    Element,
    ExactSum,
    FusedSum,
    Gate,
    GridSum,
    Index,
    Literal,
    Node,
    Product,
    Relu,
    Round,
    Running,
    Scale,
    Segment,
)
from mmaprobe.smtmodel.nodes.known import UNKNOWN, ZERO, Known, power
from mmaprobe.smtmodel.nodes.node import Knowledge, walk
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit

Places = tuple[tuple[int, int], ...]  # (level, place) of the loop variables that have a value, in order


@dataclass(frozen=True)
class Facts:
    """-low <= v - x <= high, and |x| <= size. If v counts as nonzero in an alignment, its exponent e there satisfies
    2^e <= weight (None: not known). `known`: further facts about v where nothing overflows."""

    low: Form
    high: Form
    size: Form
    weight: Form | None = None
    known: Known = UNKNOWN

    @property
    def error(self) -> Form:
        """An upper bound of |v - x|."""
        return larger([self.low, self.high])

    @property
    def value(self) -> Form:
        """An upper bound of |v|."""
        return self.size + self.error

    @property
    def is_zero(self) -> bool:
        """Whether v is certainly zero."""
        return not self.size.parts and not self.low.parts and not self.high.parts


@dataclass(frozen=True)
class Assumption:
    """The hypothesis that the result so far of the loop of a level (`CHAIN`: the addend of a chain of instructions) is
    a number of one of these formats, with |v - x| <= error and |x| <= size for any two numbers error and size. Without
    formats: it is zero, v = x = 0."""

    level: int
    formats: frozenset[Format]


@dataclass(frozen=True)
class KeptRounding:
    """The hypothesis that the exact value x of any node contains this rounding's value v in the place of the rounding's
    own x."""

    node: Node
    level: ClassVar[None] = None


Hypothesis: TypeAlias = Assumption | KeptRounding


def knowledge_of(unit: Unit | PlanAt | Windowed) -> Knowledge:
    """The knowledge about the nodes of a unit on finite inputs on which nothing overflows."""
    return Knowledge(unit.formats, fits=True, given=unit.given if isinstance(unit, Windowed) else {})


def index_at(node: Element, places: Places) -> Index | None:
    """The place of an element for these values of loop variables."""
    index, given = node.index, dict(places)
    if index is None:
        return None
    at = sum(factor * given[level] for level, factor in index.factors if level in given)
    return Index(index.offset + at, tuple(x for x in index.factors if x[0] not in given))


@dataclass(frozen=True)
class NoOverflow:
    """The hypothesis that a rounding does not overflow, that a product does not reach its limit, or that no rounding in
    the sum of a plan overflows; for any values of the loop variables without a value in `places`.

    A number whose magnitude is less than 2^below does not overflow. If nothing before this node overflows, the
    magnitude is at most `most` (None: not known); `where`: the error and the size in `most` of the results so far of
    loops. Therefore nothing overflows on an input for which the bounds in all hypotheses of a theorem are small enough.
    `each`: the node lies within a sum of a plan; magnitudes there are those of any single element, not sums over all
    products."""

    node: Node
    places: Places
    below: int = 0
    most: Form | None = field(default=None, hash=False)
    where: tuple[tuple[Factor, Form], ...] = field(default=(), hash=False)
    each: bool = False

    def is_met(self, values: Values) -> bool:
        """Whether nothing overflows here, for these magnitudes of inputs."""
        known = dict(self.where)

        @cache
        def value(factor: Factor) -> Fraction:
            return known[factor].value(value) if factor in known else values(factor)

        return self.most is not None and self.most.value(value) < power(self.below)

    def after(self, level: int, error: Form, size: Form) -> NoOverflow:
        """This hypothesis after |v - x| <= error and |x| <= size are given for each result so far of the loop of a
        level. Raises RuleError if another loop of the same level lies within."""
        bounds = ((Factor(ERROR, level), error), (Factor(SIZE, level), size))
        if any(factor.offset == level for factor, _ in self.where):
            raise RuleError("repeated: a loop within this loop has the same level")
        return replace(self, where=(*self.where, *bounds))


CHAIN = -1


@dataclass(frozen=True)
class Enclosed:
    """The facts about a node of a unit (or of a plan, outside its sums), for the loop variables' values in `places` and
    any values of other loop variables, under the hypotheses `assuming`, on all finite inputs for which the hypotheses
    `provided` are true. Raises RuleError for two assumptions about one loop: E and A would each mean two numbers."""

    unit: Unit | PlanAt | Windowed
    node: Node
    places: Places
    facts: Facts
    assuming: frozenset[Hypothesis] = frozenset()
    provided: frozenset[NoOverflow] = frozenset()

    def __post_init__(self) -> None:
        levels = [one.level for one in self.assuming if isinstance(one, Assumption)]
        if len(set(levels)) < len(levels):
            raise RuleError("a result so far is assumed to be zero or of some formats in one premise, not in another")

    def statement(self) -> str:
        at = "".join(f"[{place}]" for _, place in self.places)
        return f"{self.node.kind}{at}: |v - x| <= {form_text(self.facts.error)}{self._conditions}"

    @property
    def _conditions(self) -> str:
        """The hypotheses, in words."""
        kept = sum(isinstance(one, KeptRounding) for one in self.assuming)
        levels = sorted(one.level for one in self.assuming if isinstance(one, Assumption))
        known = ", ".join("the addend" if level == CHAIN else f"the result so far of loop {level}" for level in levels)
        zero = [one for one in self.assuming if isinstance(one, Assumption) and not one.formats]
        what = "zero is" if zero else "|v - x| <= E and |x| <= A of"
        conditions = [f"where {what} {known}"] if known else []
        conditions += [f"with {counted(kept, 'rounding')} in x too"] if kept else []
        conditions += ["if nothing overflows"] if self.provided else []
        return "".join(f", {one}" for one in conditions)


def bound_places(node: Node, places: Mapping[int, int]) -> Places:
    """The values of those loop variables that the node depends on."""
    return tuple(sorted((level, place) for level, place in places.items() if level in node.free))


def terms_of(item: Node, places: Mapping[int, int]) -> Iterator[tuple[Node, Places]]:
    """The terms of an operand of a sum (`Each`: several), each with its values of loop variables."""
    if isinstance(item, Each):
        for place in item.places:
            yield from terms_of(item.body, {**places, item.level: place})
    else:
        yield item, bound_places(item, places)


def goals_about(name: str, node: Node, places: Places, wanted: Iterable[tuple[Node, Places]],
                premises: Sequence[Theorem]) -> list[Enclosed]:  # fmt: skip
    """The goals of the premises; these must be about the wanted nodes of one unit, in order. Raises RuleError."""
    goals: list[Enclosed] = [goal_of(premise, Enclosed, name) for premise in premises]
    if [(goal.node, goal.places) for goal in goals] != list(wanted):
        raise RuleError(f"{name}: the premises are not about its operands")
    if any(goal.unit is not goals[0].unit for goal in goals):
        raise RuleError(f"{name}: the premises are about several units")
    if places != bound_places(node, dict(places)):
        raise RuleError(f"{name}: the node has other loop variables")
    return goals


def assumed_together(name: str, goals: Sequence[Enclosed]) -> frozenset[Hypothesis]:
    """The assumptions of all premises of a rule together. Raises RuleError for two premises that assume different
    things of a rounding or the addend: their x would be different numbers."""
    assumed = frozenset[Hypothesis]().union(*(goal.assuming for goal in goals))
    for goal in goals:
        others = assumed - goal.assuming
        kept = {one.node for one in others if isinstance(one, KeptRounding)}
        chained = any(one.level == CHAIN for one in others)
        if kept or chained:
            nodes = set(walk(goal.node))
            if nodes & kept:
                raise RuleError(f"{name}: a rounding that is kept is also taken as one that is not")
            if chained and any(node.is_addend for node in nodes):
                raise RuleError(f"{name}: the addend is taken both as a previous result and as an exact input")
    return assumed


def provided_together(goals: Iterable[Enclosed]) -> frozenset[NoOverflow]:
    """The hypotheses of all goals that nothing overflows."""
    return frozenset[NoOverflow]().union(*{goal.provided for goal in goals})


def enclosed(node: Node, places: Places, facts: Facts, goals: Sequence[Enclosed], premises: Sequence[Theorem],
             *more: NoOverflow) -> Made:  # fmt: skip
    """The conclusion of a rule with the facts about a node. `more`: further hypotheses that nothing overflows."""
    assuming, provided = assumed_together(node.kind, goals), provided_together(goals) | frozenset(more)
    return Made(Enclosed(goals[0].unit, node, places, facts, assuming, provided), tuple(premises))


def numbers(known: Known, low: Form, high: Form, size: Form) -> Facts:
    """The facts about a number v of some format: its exponent e is that of its magnitude, but at least emin. If v is
    not zero, |v| >= 2^grid, so that 2^e <= |v| + 2^emin - 2^grid, also if v is subnormal."""
    facts = Facts(low, high, size, NOUGHT, known)
    if not known.formats or known.grid is None:
        return facts
    top = max(fmt.emin for fmt in known.formats)
    tiny = NOUGHT if known.never_tiny or known.grid >= top else number(power(top) - power(known.grid))
    return replace(facts, weight=facts.value + tiny)


# -- rules, one for each kind of node


@rule
def element(unit: Unit | PlanAt | Windowed, node: Element, places: Places = ()) -> Made:
    """An input is exact, v = x. Its exponent e is that of its magnitude, but at least emin (which counts for subnormal
    numbers, where these are kept): 2^e <= max(|x|, 2^emin). In a window of exponents no number is subnormal."""
    if places != bound_places(node, dict(places)):
        raise RuleError("element: the node has other loop variables")
    fmt = unit.formats.get(node.operand)
    if fmt is None:
        raise RuleError("element: the unit has no scale factors")
    index = index_at(node, places)
    known = node.known(knowledge_of(unit), ())
    raised = fmt.subnormals and not known.never_tiny
    facts = Facts(NOUGHT, NOUGHT, magnitude(node.operand, index), magnitude(node.operand, index, raised=raised), known)
    return Made(Enclosed(unit, node, places, facts))


@rule
def segment(node: Segment, places: Places, premises: Sequence[Theorem]) -> Made:
    """A segment of an exact input is read exactly, v = x. It has the input's exponent, and |v| is at most the input's
    magnitude."""
    goals = goals_about("segment", node, places, operands_at(node, places), premises)
    if goals[0].facts.error.parts:
        raise RuleError("segment: the number is not exact")
    return enclosed(node, places, replace(goals[0].facts, known=_known(node, goals)), goals, premises)


@rule
def constant(unit: Unit | PlanAt | Windowed, node: Constant) -> Made:
    """A zero is exact, and has no exponent of its own in an alignment."""
    return Made(Enclosed(unit, node, (), numbers(_known(node, ()), NOUGHT, NOUGHT, NOUGHT)))


@rule
def literal(unit: Unit | PlanAt | Windowed, node: Literal) -> Made:
    """A fixed number is exact, and finite."""
    if node.value is None:
        raise RuleError("literal: a constant is not a number")
    return Made(Enclosed(unit, node, (), numbers(_known(node, ()), NOUGHT, NOUGHT, number(abs(node.value)))))


@rule
def assumed(unit: Unit | Windowed, node: Running | Element, formats: frozenset[Format]) -> Made:
    """The result so far of a loop, under the assumption that it is a number of these formats, |v - x| <= E and |x| <=
    A, for any E and A. Likewise the addend c, which is the previous result in a chain of instructions; if c reads
    subnormal numbers as zero, |v - x| <= E + 2^emin. Without formats: the result so far, or the addend, is zero."""
    level, lost, known = CHAIN, NOUGHT, Known.number(formats)
    if isinstance(node, Running):
        level = node.level
    elif node.operand != "c":
        raise RuleError("assumed: only a result so far, or the addend, is assumed")
    elif formats and formats != {unit.formats["c"]}:
        raise RuleError("assumed: the addend is a number of its own format")
    elif node.subnormals != "keep":
        lost, known = number(power(unit.formats["c"].emin)), replace(known, never_tiny=True)
    assuming = frozenset({Assumption(level, formats)})
    if not formats:
        return Made(Enclosed(unit, node, (), numbers(replace(ZERO, never_minus=False), *[NOUGHT] * 3), assuming))
    error = magnitude(ERROR, Index(level)) + lost
    facts = numbers(known, error, error, magnitude(SIZE, Index(level)))
    return Made(Enclosed(unit, node, (), facts, assuming))


def _multiplied(facts: Sequence[Facts]) -> Facts:
    """The bounds of an exact product: |v1 v2 - x1 x2| <= |x1| e2 + |x2| e1 + e1 e2; exponents add up."""
    one = facts[0]
    for two in facts[1:]:
        e, f = one.error, two.error
        error = one.size * f + two.size * e + e * f
        weight = None if one.weight is None or two.weight is None else one.weight * two.weight
        one = Facts(error, error, one.size * two.size, weight)
    return one


def _known(node: Node, goals: Sequence[Enclosed]) -> Known:
    """The facts of a node where nothing overflows, derived from the facts of its operands or terms."""
    return node.known(Knowledge({}, fits=True), [goal.facts.known for goal in goals])


def operands_at(node: Node, places: Places) -> Iterator[tuple[Node, Places]]:
    return ((operand, bound_places(operand, dict(places))) for operand in node.operands)


@rule
def product(node: Product, places: Places, premises: Sequence[Theorem]) -> Made:
    """An exact product, v = v1 v2: |v - x| <= |x1| e2 + |x2| e1 + e1 e2. Unnormalised, its exponent is the sum of its
    factors'; normalised, 2^e <= |v|."""
    goals = goals_about("product", node, places, operands_at(node, places), premises)
    facts = replace(_multiplied([goal.facts for goal in goals]), known=_known(node, goals))
    facts = replace(facts, weight=facts.value) if node.normalised else facts
    bounds = [] if node.limit is None else [NoOverflow(node, places, node.limit, facts.value)]
    return enclosed(node, places, facts, goals, premises, *bounds)


@rule
def unchanged(node: Gate | Cancelling | Relu, places: Places, premises: Sequence[Theorem]) -> Made:
    """A product that is left out where a factor is zero equals the whole product, with the same exponent, but for the
    sign of a zero: a finite product with a factor of zero is zero. A sum that counts as zero where it cancels equals
    the sum, with its exponent wherever it still counts. A rectifier, in v and in x alike, neither makes |v - x| larger
    nor changes the sign of v - x, and keeps values above zero as they are."""
    goals = goals_about("unchanged", node, places, operands_at(node, places), premises)
    return enclosed(node, places, replace(goals[0].facts, known=_known(node, goals)), goals, premises)


@rule
def scale(node: Scale, places: Places, premises: Sequence[Theorem]) -> Made:
    """A term times two scale factors, exactly: as a product of three."""
    goals = goals_about("scale", node, places, operands_at(node, places), premises)
    facts = replace(_multiplied([goal.facts for goal in goals]), known=_known(node, goals))
    return enclosed(node, places, facts, goals, premises)


def _every_term(items: Sequence[Node], places: Places) -> list[tuple[Node, Places]]:
    return [term for item in items for term in terms_of(item, dict(places))]


@rule
def exact(node: ExactSum, places: Places, premises: Sequence[Theorem]) -> Made:
    """An exact sum, v = sum of v_t: errors add up, and so do sizes. In an alignment it counts with the exponent 0,
    whatever its size."""
    goals = goals_about("exact", node, places, _every_term(node.items, places), premises)
    every = [goal.facts for goal in goals]
    facts = Facts(total(f.low for f in every), total(f.high for f in every), total(f.size for f in every), number(1),
                  _known(node, goals))  # fmt: skip
    return enclosed(node, places, facts, goals, premises)


#: by mode: the most that rounding lowers, and raises, a value, in units of the last place kept
LOSSES: dict[Mode, tuple[Fraction, Fraction]] = {
    "nearest_even": (Fraction(1, 2), Fraction(1, 2)),
    "nearest_away": (Fraction(1, 2), Fraction(1, 2)),
    "toward_zero": (Fraction(1), Fraction(1)),
    "to_odd": (Fraction(1), Fraction(1)),
    "down": (Fraction(1), Fraction(0)),
    "up": (Fraction(0), Fraction(1)),
}


@dataclass(frozen=True)
class _Aligned:
    """A term of a fused sum: its facts, the number F of fraction bits kept of it (`bits`), and its reach."""

    facts: Facts
    bits: int
    reach: int | None

    def lemma(self, mode: Mode) -> AlignmentLoses | None:
        """The lemma about the term's alignment, for a significand with `digits` bits below its exponent and the bits
        above it that the head needs; None for a sum, and if the digits or the head are not known."""
        digits, head = self.facts.known.digits, self.facts.known.head
        if digits is None or head is None or self.facts.known.bits is None:
            return None
        return AlignmentLoses(digits + int(head).bit_length(), digits, self.bits, mode)

    def loss(self, mode: Mode, side: int) -> Fraction:
        """The most that alignment lowers (`side` 0) or raises (1) the term, in units of 2^m. Raises RuleError."""
        kept = LOSSES[mode][side] * power(-self.bits)
        if self.reach is None:
            return kept
        head = self.facts.known.head
        if head is None or self.reach < 0:
            raise RuleError("fused: nothing is known of the size of a term that vanishes")
        return max(kept, head * power(-self.reach - 1))

    @property
    def whole(self) -> bool:
        """Whether the term loses nothing if its exponent is m."""
        digits = self.facts.known.digits
        return digits is not None and digits <= self.bits

    def safe(self, m: int) -> bool:
        """Whether the term loses nothing in an alignment at m, whatever its exponent."""
        grid = self.facts.known.grid
        return self.reach is None and grid is not None and grid >= m - self.bits


def _aligned(node: FusedSum | GridSum, goals: Sequence[Enclosed]) -> list[_Aligned]:
    """The terms of a sum, from the goals about them."""
    every = zip(goals, node.bits_of_terms, node.each_term(node.reach), strict=True)
    return [_Aligned(goal.facts, bits, far) for goal, bits, far in every]


def _nonzero(terms: Sequence[_Aligned]) -> list[_Aligned]:
    """The terms without those that are certainly zero."""
    return [term for term in terms if not term.facts.is_zero]


def alignments(node: FusedSum, places: Places, premises: Sequence[Theorem]) -> list[AlignmentLoses]:
    """The lemmas about the datapath that a fused sum of these terms may need."""
    goals = goals_about("fused", node, places, _every_term(node.items, places), premises)
    lemmas = [term.lemma(node.rounding) for term in _nonzero(_aligned(node, goals))]
    return list(dict.fromkeys(lemma for lemma in lemmas if lemma is not None))


def with_lemmas(made: Made, lemmas: Sequence[Theorem], needed: Sequence[Lemma]) -> Made:
    """A rule's conclusion, with the lemmas about the datapath that it needs as further premises. Raises RuleError if a
    lemma is about another datapath, and OpenLemmaError if one is not proved."""
    proved = [lemma.goal for lemma in lemmas if is_theorem(lemma)]
    if any(goal not in needed for goal in proved):
        raise RuleError("a lemma is about another datapath")
    for goal in needed:
        if goal not in proved:
            raise OpenLemmaError(f"a lemma about the datapath stays open: {goal.statement()}")
    return made.resting_on(lemmas)


@rule
def fused(node: FusedSum, places: Places, premises: Sequence[Theorem], lemmas: Sequence[Theorem]) -> Made:
    """A fused sum, aligned at 2^m. A term of which F bits are kept loses at most 2^(m - F), half of that to nearest;
    rounding down it only falls, rounding up it only rises. It loses nothing if it is a multiple of 2^(m - F). A term
    whose exponent is m is such a multiple if it has at most F digits below its exponent; so if all terms have at most F
    digits, one of them loses nothing. A term beyond its reach r has e <= m - r - 1 and loses |v| <= head * 2^(m - r -
    1). A sticky bit adds at most half a unit 2^(m - F), for the largest F.

    m is the largest exponent of a term, 2^m <= the largest weight; or a lower bound of m (`zeros`, `least`, `floors`),
    which changes nothing if no term's exponent lies below it. A sum that wraps must have room for all terms once they
    are aligned (`aligned_head`): less than 2^(1 + carry bits) * 2^m."""
    goals = goals_about("fused", node, places, _every_term(node.items, places), premises)
    terms, mode = _nonzero(_aligned(node, goals)), node.rounding
    if not terms:
        return enclosed(node, places, numbers(_known(node, goals), NOUGHT, NOUGHT, NOUGHT), goals, premises)
    every = [term.facts for term in terms]
    if not node.never_wraps([facts.known for facts in every]):
        raise RuleError(f"fused: a sum of {len(terms)} terms may wrap in {node.carry_bits} carry bits")
    weights = [f.weight for f in every if f.weight is not None]
    if len(weights) < len(every):
        raise RuleError("fused: the exponent of a term is not known")
    m = largest(weights)
    bounds = [bound for bound in node.bounds if any(f.known.least is None or f.known.least < bound for f in every)]
    sides = []
    for side in (0, 1):
        losses = [term.loss(mode, side) for term in terms]
        spared = min(losses) if all(term.whole for term in terms) else Fraction(0)
        sticky = power(-max(node.bits_of_terms) - 1) if node.sticky else Fraction(0)
        at_bound = [power(bound) * (sticky + sum(x for x, term in zip(losses, terms, strict=True)
                                                 if not term.safe(bound))) for bound in bounds]  # fmt: skip
        sides.append(m * (sum(losses) - spared + sticky) + number(max(at_bound, default=0)))
    facts = Facts(
        total([*(f.low for f in every), sides[0]]), total([*(f.high for f in every), sides[1]]),
        total(f.size for f in every), m + number(max(map(power, bounds), default=0)), _known(node, goals),
    )  # fmt: skip
    made = enclosed(node, places, facts, goals, premises)
    return with_lemmas(made, lemmas, alignments(node, places, premises))


@rule
def grid(node: GridSum, places: Places, premises: Sequence[Theorem]) -> Made:
    """A sum of multiples of 2^g, where g is the largest e_t - F_t of a term that is not zero, or of a floor in place of
    e_t: 2^g <= the largest weight_t * 2^-F_t + the largest 2^(floor - F). A term loses at most one unit 2^g, half of
    that to nearest; rounding down it only falls, rounding up it only rises; one that lies beyond its reach r, |v| <=
    head * 2^(g - r - 1), is lost. If there is a frame, a term of which a magnitude of m units is kept, of the sign
    opposite to the frame's, counts m + 1 units in its direction, and so does a zero (m = 0): truncated, |v| is in [m, m
    + 1) units, and m + 1 differs from it by at most one unit. Without a frame, and without floors, a term with e - F =
    g loses nothing if it has at most F digits below its exponent; so if that is true of all terms, one of them loses
    nothing."""
    goals = goals_about("grid", node, places, _every_term(node.items, places), premises)
    every, terms = [goal.facts for goal in goals], _aligned(node, goals)
    if not (counted := _nonzero(terms)):
        return enclosed(node, places, numbers(_known(node, goals), NOUGHT, NOUGHT, NOUGHT), goals, premises)
    weights = [term.facts.weight for term in counted if term.facts.weight is not None]
    if len(weights) < len(counted):
        raise RuleError("grid: the exponent of a term is not known")
    fewest, finest = min(node.fraction_bits), max(node.fraction_bits)
    raised = [weight * power(fewest - term.bits) for weight, term in zip(weights, counted, strict=True)]
    bounds = zip(node.floors, node.fraction_bits, strict=False)
    floors = [power(low - bits) for low, bits in bounds if low is not None]
    unit = largest(raised) * power(-fewest) + number(max(floors, default=0))
    flips = [node.frame is not None and place != node.frame_term for place in range(len(terms))]
    spare = not any(flips) and all(term.whole for term in counted)
    sides = []
    for side in (0, 1):
        losses = []
        for term, flip in zip(terms, flips, strict=True):
            kept = Fraction(0) if term.facts.is_zero else LOSSES[node.rounding][side]
            if term.reach is not None and not term.facts.is_zero:
                if term.facts.known.head is None:
                    raise RuleError("grid: nothing is known of the size of a term that vanishes")
                kept = max(kept, term.facts.known.head * power(-term.reach - 1))
            truncated = node.rounding == "toward_zero" and term.reach is None
            losses.append(Fraction(1) if flip and truncated else kept + flip)
        lost = sum(losses) - (min(losses) if spare and not floors else 0)
        sides.append(unit * lost)
    facts = Facts(
        total([*(f.low for f in every), sides[0]]), total([*(f.high for f in every), sides[1]]),
        total(f.size for f in every), unit * power(finest), _known(node, goals),
    )  # fmt: skip
    return enclosed(node, places, facts, goals, premises)


def cut_loses(bits: int, mode: Mode) -> RoundingLoses:
    """The lemma about the loss of a cut to `bits` bits. A cut is a rounding to a format with `bits` significant bits
    and no largest number (smtmodel/nodes/cut.py). The loss does not depend on the range of exponents; the lemma has the
    range of f32."""
    return RoundingLoses(Format(f"{bits} bits", 8, bits - 1, 127, "none"), mode)


@rule
def cut(node: Cut, places: Places, premises: Sequence[Theorem], lemmas: Sequence[Theorem]) -> Made:
    """A sum y rounded to n bits at its own exponent e, 2^e <= |y|: it loses at most 2^(e - n + 1), half to nearest.
    With a least exponent the unit is at least u = 2^(least - n + 1), and a multiple of u loses nothing where u is the
    unit. Without one, the exponent with which a zero sum counts in an alignment is not known."""
    (goal,) = goals = goals_about("cut", node, places, operands_at(node, places), premises)
    y, known, fraction = goal.facts, goal.facts.known, node.bits - 1
    exact = known.bits is not None and known.bits <= node.bits
    relative = Fraction(0) if exact else power(-fraction)
    fine = node.least is None or (known.grid is not None and known.grid >= node.least - fraction)
    fixed = Fraction(0) if fine or node.least is None else power(node.least - fraction)
    low, high = (y.value * (relative * loss) + number(fixed * loss) for loss in LOSSES[node.mode])
    facts = Facts(y.low + low, y.high + high, y.size, None, _known(node, goals))
    if node.least is not None:
        facts = replace(facts, weight=facts.value + number(power(node.least)))
    return with_lemmas(enclosed(node, places, facts, goals, premises), lemmas, [cut_loses(node.bits, node.mode)])


@rule
def rounded(node: Round, places: Places, premises: Sequence[Theorem], lemmas: Sequence[Theorem]) -> Made:
    """A term y, rounded without overflow to a format with f fraction bits, loses at most one unit of the last place,
    half of one to nearest. It does not overflow if |y| < 2^emax. If |y| >= 2^emin, the unit is 2^(e - f) <= 2^-f |y|,
    and a y of at most f + 1 significant bits loses nothing, nor does a multiple of the largest unit, as a sum of
    integers is of 1. Else the unit is 2^(emin - f), and a multiple of it loses nothing; where subnormal results are
    flushed, all of y is lost."""
    (goal,) = goals = goals_about("rounded", node, places, operands_at(node, places), premises)
    facts = after_rounding(goal.facts, node.rounding)
    lemma = RoundingLoses(node.rounding.format, node.rounding.fixed)
    bound = NoOverflow(node, places, node.rounding.format.emax, goal.facts.value)
    return with_lemmas(enclosed(node, places, facts, goals, premises, bound), lemmas, [lemma])


def after_rounding(y: Facts, how: Rounding) -> Facts:
    """The facts about the rounding of a term with the facts `y`, as in `rounded`: a term that is certainly zero or at
    least 2^emin has no fixed loss. Raises RuleError for a format without subnormal numbers (no number can be rounded to
    a format without a sign)."""
    fmt = how.format
    if not fmt.subnormals:
        raise RuleError(f"rounded: {fmt.name} has no subnormal numbers")
    known = y.known
    relative = Fraction(0) if known.bits is not None and known.bits <= fmt.precision else power(-fmt.fraction)
    top = fmt.emin if fmt.complement else fmt.emax  # -2^emax of two's complement has emin's exponent
    if known.grid is not None and known.grid >= top - fmt.fraction:
        relative = Fraction(0)
    flush = how.subnormals != "keep" and (known.grid is None or known.grid < fmt.emin)
    normal = known.formats is not None and known.never_tiny and known.least is not None and known.least >= fmt.emin
    fine = normal or (known.grid is not None and known.grid >= fmt.unit)
    flush = flush and not normal
    fixed = Fraction(0) if fine else power(fmt.unit)
    sides = []
    for loss in LOSSES[how.fixed]:
        tiny = power(fmt.emin) if flush else fixed * loss
        sides.append(y.value * (relative * loss) + number(tiny))
    return numbers(how.known(known, True), y.low + sides[0], y.high + sides[1], y.size)


@rule
def whole(premise: Theorem) -> Made:
    """If only roundings follow a sum up to the result, |x| of the sum is |exact|, the magnitude of the exact result."""
    goal: Enclosed = goal_of(premise, Enclosed, "whole")
    if goal.assuming:
        raise RuleError("whole: the premise assumes something of it")
    node = goal.unit.result
    while node != goal.node:
        if not isinstance(node, (Round, Cut)):
            raise RuleError("whole: the result is more than a rounding of it")
        node = node.term
    return Made(replace(goal, facts=replace(goal.facts, size=magnitude(EXACT))), (premise,))


@rule
def weakened(premise: Theorem, claimed: Form) -> Made:
    """A bound implies a larger bound: with larger coefficients, with the sum of some magnitudes in place of the largest
    of them, or with a raised magnitude (`Factor.raised`) in place of the magnitude."""
    goal: Enclosed = goal_of(premise, Enclosed, "weakened")
    error = goal.facts.error
    if not (claimed.covers(error) or claimed.covers(error.merged())):
        raise RuleError("weakened: the bound claimed is not implied by the one proved")
    return Made(replace(goal, facts=replace(goal.facts, low=claimed, high=claimed)), (premise,))
