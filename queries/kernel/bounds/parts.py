"""Error bounds for inputs divided into parts, such as a number rounded to tf32 and its rounded remainder: the parts are
separate numbers until all terms are added, and the other parts compensate the loss of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from operator import mul

from mmaprobe.queries.kernel.bounds.enclosures import (
    CHAIN,
    Assumption,
    Enclosed,
    Facts,
    KeptRounding,
    NoOverflow,
    Places,
    after_rounding,
    bound_places,
    index_at,
    knowledge_of,
    numbers,
    terms_of,
    with_lemmas,
)
from mmaprobe.queries.kernel.bounds.forms import NOUGHT, ONE, SIZE, Factor, Form, is_product, magnitude, number, total
from mmaprobe.queries.kernel.bounds.wording import COUNT
from mmaprobe.queries.kernel.datapath.rounding_losses import RoundingLoses
from mmaprobe.queries.kernel.questions.steps import PlanAt, pairs_of, record_of
from mmaprobe.queries.kernel.questions.windows import Windowed, is_of_plan, plan_at
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, goal_of, rule
from mmaprobe.smtmodel.arithmetic.rounding import NEAREST
from mmaprobe.smtmodel.nodes import (
    Cancelling,
    Constant,
    Cut,
    Element,
    ExactSum,
    Gate,
    Index,
    Literal,
    Node,
    Product,
    Repeat,
    Round,
    Running,
    Scale,
    Sum,
)
from mmaprobe.smtmodel.nodes.known import UNKNOWN, Known, power
from mmaprobe.smtmodel.nodes.node import of_kind, walk
from mmaprobe.smtmodel.plans.plan import Products
from mmaprobe.smtmodel.units.unit import Unit

MOST_TERMS = 1 << 14  # terms of a polynomial at most
EXACTLY = (Element, Constant, Literal, Product, ExactSum, Scale, Gate, Round)  # exact nodes, apart from roundings


Symbol = tuple[Node, Places]  # an input, or the error of a rounding
Powers = frozenset[tuple[Symbol, int]]
Polynomial = Mapping[Powers, Fraction]  # powers of symbols: the coefficient of their product


class Parted:
    """Values of nodes as polynomials of inputs and of the errors that the roundings `kept` add to their operands.
    `chain`: the addend is the previous result of a chain of instructions, without rounding."""

    def __init__(self, unit: Unit | Windowed | PlanAt, kept: Set[Node], chain: bool = False) -> None:
        self.unit, self.kept, self.chain, self.knowledge = unit, kept, chain, knowledge_of(unit)
        self._known: dict[Symbol, Polynomial] = {}
        self._sizes: dict[Symbol, Form] = {}

    def of(self, node: Node, places: Places) -> Polynomial:
        """The polynomial of a node with the kept roundings alone. Raises RuleError."""
        if not node.free and (node, ()) not in self._known:  # operands first: nesting may be deep
            for below in walk(node):
                if isinstance(below, (Round, Repeat)) and not below.free:
                    self._of(below, ())
        return self._of(node, places)

    def _of(self, node: Node, places: Places) -> Polynomial:
        key = node, bound_places(node, dict(places))
        if key not in self._known:
            polynomial = {item: value for item, value in self._made(*key).items() if value}
            if len(polynomial) > MOST_TERMS:
                raise RuleError(f"parts: more than {MOST_TERMS} products of parts")
            self._known[key] = polynomial
        return self._known[key]

    def _made(self, node: Node, places: Places) -> Polynomial:
        match node:
            case Element():
                return _symbol((replace(node, index=index_at(node, places)), ()))
            case Constant():
                return {}
            case Literal():
                if node.value is None:
                    raise RuleError("parts: a constant is not a number")
                return {frozenset(): node.value}
            case Product() | Scale():
                return reduce(_times, (self._of(operand, places) for operand in node.operands))
            case Sum():
                return _added([self._of(*term) for item in node.items for term in terms_of(item, dict(places))])
            case Gate() | Cancelling() | Cut():
                return self._of(node.term, places)
            case Round():
                operand = self._of(node.term, places)
                return _added([operand, _symbol((node, places))]) if node in self.kept else operand
            case Repeat():
                found = self._of(node.start, places)
                for place in node.places:
                    own = {**dict(places), node.level: place}
                    # the result so far of this loop has another value now
                    self._known = {key: one for key, one in self._known.items() if node.level not in key[0].free}
                    self._known[Running(node.level), ((node.level, place),)] = found
                    found = self._of(node.body, tuple(sorted(own.items())))
                return found
        raise RuleError(f"parts: nothing is known of {node.kind}")

    def size(self, polynomial: Polynomial, counts: Callable[[bool], bool] = lambda lost: True) -> Form:
        """A bound of the magnitude of those products of a polynomial that `counts` selects, by whether an error is a
        factor."""
        sizes = []
        for item, value in polynomial.items():
            if counts(any(isinstance(node, Round) for (node, _), _ in item)):
                factors = [self._size(symbol) for symbol, count in item for _ in range(count)]
                sizes.append(reduce(mul, factors, number(abs(value))))
        return total(sizes)

    def summed(self, polynomial: Polynomial, counts: Callable[[bool], bool]) -> Form:
        """As `size`, for all products together; in a unit a polynomial has each product separately."""
        return self.size(polynomial, counts)

    def _size(self, symbol: Symbol) -> Form:
        node, places = symbol
        if isinstance(node, Element):
            chained = self.chain and node.operand == "c"
            return magnitude(SIZE, Index(CHAIN)) if chained else magnitude(node.operand, node.index)
        if symbol not in self._sizes:
            assert isinstance(node, Round)
            operand = self.of(node.term, places)
            known = self._term(node.term)
            term = Facts(NOUGHT, NOUGHT, self.size(operand), known=known)
            lost = self.relative(after_rounding(term, node.rounding).error, operand)
            whole = node.rounding.mode in (*NEAREST, "toward_zero") and lost.covers(term.size)
            self._sizes[symbol] = term.size if whole else lost  # at most all of it is lost: zero is a number too
        return self._sizes[symbol]

    def _term(self, node: Node) -> Known:
        """The facts of the value that a rounding rounds."""
        return self.knowledge.of(node) if isinstance(self.unit, Windowed) else UNKNOWN

    def relative(self, form: Form, polynomial: Polynomial) -> Form:
        """A bound of a quantity that is zero if a polynomial is, and else at most the form. If the polynomial is not
        zero, an input that is a factor of all its products is not zero either; if it is in a window, it is at least the
        least number of the window."""
        if not (isinstance(self.unit, Windowed) and form.constant):
            return form
        windows = dict(self.unit.windows)
        there = sorted((node for node in self._factors(polynomial) if node.operand in windows), key=repr)
        if not there or self.chain:
            return form
        rest, one = Form({atom: value for atom, value in form.parts.items() if atom != ONE}), there[0]
        return rest + magnitude(one.operand, one.index) * (form.constant * power(-windows[one.operand][0]))

    def _factors(self, polynomial: Polynomial) -> frozenset[Element]:
        """Inputs that are nonzero whenever the polynomial is: each product has them as factors, or has as a factor the
        error of a rounding whose operand's products all have them."""
        every = [frozenset[Element]().union(*(self._zeros(symbol) for symbol, _ in item)) for item in polynomial]
        return frozenset.intersection(*every) if every else frozenset()

    def _zeros(self, symbol: Symbol) -> frozenset[Element]:
        """The inputs that each make a symbol zero if they are zero."""
        node, places = symbol
        if isinstance(node, Element):
            return frozenset({node})
        assert isinstance(node, Round)
        return self._factors(self.of(node.term, places))


class OfPlan(Parted):
    """Values of a plan's nodes outside its sums. A product of symbols of a and b (elements, or errors of their words'
    roundings) stands for its sum over all products."""

    def __init__(self, unit: Unit | Windowed | PlanAt, kept: Set[Node]) -> None:
        super().__init__(unit, kept)
        self.at = plan_at(unit)

    def _made(self, node: Node, places: Places) -> Polynomial:
        if not isinstance(node, Products):
            return super()._made(node, places)
        found = [self._of(node.start, places)]
        for pair in record_of(self.at.plan, node.stage, self.at.length).places.pairs:
            found.append(_times(*map(self.read, pair)))
        return _added(found)

    def read(self, node: Node) -> Polynomial:
        """The polynomial of a word that a unit reads. Raises RuleError if the word may be nonzero while its element is
        zero."""
        polynomial = self.of(node, ())
        if frozenset() in polynomial:
            raise RuleError("words: a word that is not zero where its element is")
        return polynomial

    def summed(self, polynomial: Polynomial, counts: Callable[[bool], bool]) -> Form:
        sides: tuple[dict[Powers, Fraction], dict[Powers, Fraction]] = {}, {}
        for item, value in polynomial.items():
            sides[all(node.is_addend for (node, _), _ in item)][item] = value
        products, rest = (self.size(side, counts) for side in sides)
        return times_products(products, self.at.length) + rest

    def _term(self, node: Node) -> Known:
        if isinstance(self.unit, Windowed):
            return super()._term(node)
        if isinstance(node, Round) and node in self.kept:
            return Known.number(frozenset({node.rounding.format}))
        return Known.number(frozenset({self.unit.formats[node.operand]})) if isinstance(node, Element) else UNKNOWN

    def magnitude(self, factor: Factor) -> Form:
        """A bound of the word of one element of a or b that a unit reads (`offset`: the number of the pair of words);
        raised, also of the smallest normal number of the word's format: if the word is not zero, neither is the
        element, whose raised magnitude is at least `Plan.least_normal`, which is no less than the smallest normal
        number of any word's format."""
        if factor.name not in ("a", "b"):
            return Form({frozenset({(factor,)}): Fraction(1)})
        node, windowed = pairs_of(self.at.plan)[factor.offset][factor.name == "b"], isinstance(self.unit, Windowed)
        one = magnitude(factor.name, Index(), factor.raised and not windowed)  # no number is subnormal in a window
        if isinstance(node, Element):
            return one
        assert isinstance(node, Round)
        polynomial = self.read(node)
        size = self.size(polynomial)
        if not factor.raised:
            return size
        if windowed:
            return size + self.relative(number(power(node.rounding.format.emin)), polynomial)
        if size.parts.get(frozenset({(factor._replace(offset=0, raised=False),)}), Fraction(0)) >= 1:
            return size.lifted({factor.name})
        return size + number(power(node.rounding.format.emin))


def times_products(form: Form, length: int | None) -> Form:
    """A form about each product, summed over all products: monomials without a magnitude of a or b count as many times
    as there are products."""
    products, rest = form.split(is_product)
    return products + rest * (magnitude(COUNT) if length is None else number(length))


def _symbol(symbol: Symbol) -> Polynomial:
    return {frozenset({(symbol, 1)}): Fraction(1)}


def _added(every: Sequence[Polynomial]) -> Polynomial:
    total: dict[Powers, Fraction] = {}
    for one in every:
        for item, value in one.items():
            total[item] = total.get(item, Fraction(0)) + value
    return total


def _times(one: Polynomial, other: Polynomial) -> Polynomial:
    def joined(x: Powers, y: Powers) -> Powers:
        return frozenset((Counter(dict(x)) + Counter(dict(y))).items())

    return _added([{joined(x, y): v * w} for x, v in one.items() for y, w in other.items()])


def part_lemmas(node: Node) -> list[RoundingLoses]:
    """The lemmas about the datapath that a part needs."""
    return list(dict.fromkeys(RoundingLoses(one.rounding.format, one.rounding.fixed) for one in of_kind(node, Round)))


@rule
def part(unit: Unit | Windowed, node: Round, places: Places, lemmas: Sequence[Theorem]) -> Made:
    """A rounding of a lossless expression of inputs and of such roundings, all kept: v = x, as kept roundings count
    with their values in x. Its operand is a polynomial of inputs and of the errors of those roundings, each at most the
    error by `rounded`: |v| is at most the sum of the magnitudes of all products of the polynomial, and of this
    rounding's error. The operand of each of those roundings has such a bound, too, and must not overflow."""
    if places != bound_places(node, dict(places)) or is_of_plan(unit):
        raise RuleError("part: the node is no rounding of a unit, or has other loop variables")
    if not all(isinstance(one, EXACTLY) for one in walk(node)):
        raise RuleError("part: the rounded expression is not exact")
    kept = frozenset(of_kind(node, Round))
    parted, how = Parted(unit, kept), node.rounding
    polynomial = parted.of(node, places)
    size = parted.size(polynomial)
    known = replace(Known.number(frozenset({how.format})), never_tiny=how.subnormals != "keep")
    facts = numbers(known, NOUGHT, NOUGHT, size)
    if facts.weight is not None:
        facts = replace(facts, weight=parted.relative(facts.weight, polynomial))
    provided = frozenset(
        NoOverflow(one, bound_places(one, dict(places)), one.rounding.format.emax,
                   parted.size(parted.of(one.term, places))) for one in kept
    )  # fmt: skip
    made = Made(Enclosed(unit, node, places, facts, frozenset(map(KeptRounding, kept)), provided))
    return with_lemmas(made, lemmas, part_lemmas(node))


def adds_products_once(unit: Unit, scaled: bool = False) -> None:
    """Checks that the value of a unit without rounding is c and the sum of every product a_k b_k once, times both scale
    factors of its block if they are `scaled`. Raises RuleError."""
    counts = dict[tuple[tuple[str, int], ...], Fraction]()
    for item, value in Parted(unit, frozenset()).of(unit.result, ()).items():
        inputs = [node for (node, _), count in item for _ in range(count) if isinstance(node, Element)]
        read = tuple(sorted((node.operand, 0 if node.index is None else node.index.offset) for node in inputs))
        counts[read] = counts.get(read, Fraction(0)) + value
    wanted = {(("c", 0),): Fraction(1)}
    for k in range(unit.length):
        factors = (("scale_a", k // unit.scale_block), ("scale_b", k // unit.scale_block)) if scaled else ()
        wanted[("a", k), ("b", k), *factors] = Fraction(1)
    if {item: value for item, value in counts.items() if value} != wanted:
        raise RuleError("adds_products_once: not every product, and c, is added once")


@rule
def rejoined(premise: Theorem) -> Made:
    """A bound of |v - x| with kept roundings implies a bound without: x with kept roundings is a polynomial of inputs
    and of the errors of these roundings; x without is the same polynomial with zero for these errors. The two x differ
    by the products with such an error as a factor. In a chain of instructions, the addend's x is the previous result's
    in both. In a plan the products of words are summed over all places."""
    goal: Enclosed = goal_of(premise, Enclosed, "rejoined")
    kept = frozenset(one.node for one in goal.assuming if isinstance(one, KeptRounding))
    others = frozenset(one for one in goal.assuming if isinstance(one, Assumption))
    if not kept or any(one.level != CHAIN for one in others):
        raise RuleError("rejoined: the premise is not about roundings that are kept, and nothing else but the addend")
    if goal.places or goal.node.free:
        raise RuleError("rejoined: the premise is about some places alone")
    if others and is_of_plan(goal.unit):
        raise RuleError("rejoined: a plan is no instruction of a chain")
    if others and any(one.is_addend for node in kept for one in walk(node)):
        raise RuleError("rejoined: the addend is taken both as a previous result and as an exact input")
    parted = OfPlan(goal.unit, kept) if is_of_plan(goal.unit) else Parted(goal.unit, kept, bool(others))
    polynomial = parted.of(goal.node, ())
    lost, size = parted.summed(polynomial, lambda lost: lost), parted.summed(polynomial, lambda lost: not lost)
    facts = replace(goal.facts, low=goal.facts.low + lost, high=goal.facts.high + lost, size=size)
    return Made(replace(goal, facts=facts, assuming=others), (premise,))
