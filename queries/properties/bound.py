"""Error bounds of units, composed node by node: a tactic that calls the rules and is not trusted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from mmaprobe.queries.kernel.bounds import enclosures as rules
from mmaprobe.queries.kernel.bounds.draws import draw_lemmas, drawn
from mmaprobe.queries.kernel.bounds.enclosures import Enclosed, Places, bound_places, terms_of
from mmaprobe.queries.kernel.bounds.forms import Form
from mmaprobe.queries.kernel.bounds.induction import Carried, chained, repeated
from mmaprobe.queries.kernel.bounds.largest import OfLargest
from mmaprobe.queries.kernel.bounds.parts import EXACTLY, part, part_lemmas, rejoined
from mmaprobe.queries.kernel.bounds.sums import Summed
from mmaprobe.queries.kernel.bounds.table9 import loosened, sum_of, summed, terms_of_sum, truncated
from mmaprobe.queries.kernel.bounds.transformations import error_free, followed_nodes, leaves, losses, residuals
from mmaprobe.queries.kernel.datapath.rounding_losses import RoundingLoses, TruncationKeeps
from mmaprobe.queries.kernel.lemmas import Lemma
from mmaprobe.queries.kernel.questions.windows import Windowed, unit_in
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.nodes import (
    Cancelling,
    Constant,
    Cut,
    Element,
    ExactSum,
    FusedSum,
    Gate,
    GridSum,
    Literal,
    Node,
    Product,
    Relu,
    Repeat,
    Round,
    Running,
    Scale,
    Segment,
)
from mmaprobe.smtmodel.nodes.node import of_kind, walk
from mmaprobe.smtmodel.units.unit import Unit

#: proves a lemma about the datapath; None if it cannot
Settle = Callable[[Lemma], Theorem | None]


def bound_of(unit: Unit | Windowed, settle: Settle) -> Theorem:
    """A theorem that bounds |d - exact|; `settle` proves the lemmas that the theorem rests on. Raises RuleError if no
    rule gives a bound, or if a lemma is not proved."""
    return _composed(unit, settle, False)


def _composed(unit: Unit | Windowed, settle: Settle, chain: bool, zero: bool = False) -> Theorem:
    parts = frozenset(node for node in parts_of(unit) if not (chain and "c" in _operands_of(node)))
    why = ""
    try:
        if parts:
            return _Composer(unit, settle, chain, parts, zero).result()
    except RuleError as error:
        why = f"; with parts of inputs: {error}"
    try:
        return _Composer(unit, settle, chain, zero=zero).result()
    except RuleError as error:
        raise type(error)(f"{error}{why}") from None


def parts_of(unit: Unit | Windowed) -> frozenset[Node]:
    """The parts into which inputs are split: roundings of an input, and roundings of the rest that such a rounding
    leaves. Roundings of the result are no parts. Empty if no rest is rounded."""

    def inputs(node: Node) -> set[Node]:
        return set(of_kind(node, Element))

    top, node = set[Node](), unit.result
    while isinstance(node, (Round, Cut)):
        top.add(node)
        node = node.term
    roundings = {node for node in of_kind(unit.result, Round) if len(inputs(node)) == 1 and node.random is None
             and node not in top and all(isinstance(one, EXACTLY) for one in walk(node))}  # fmt: skip
    return frozenset(roundings) if any(roundings & set(walk(node.term)) for node in roundings) else frozenset()


def _operands_of(node: Node) -> set[str]:
    return {one.operand for one in of_kind(node, Element)}


def chain_of(unit: Unit, settle: Settle) -> Theorem:
    """A theorem about how one instruction of a chain changes the error. Raises RuleError if no rule gives one."""
    return chained(_composed(unit, settle, True))


def from_zero(unit: Unit, settle: Settle) -> Theorem:
    """A theorem about the result of one instruction whose c is zero. Raises RuleError if no rule gives one."""
    return _composed(unit, settle, True, True)


def bound_in_units(unit: Unit, units: int, apart: bool, settle: Settle) -> Theorem:
    """A theorem that bounds |d - exact| in units of the alignment and of the last place. Raises RuleError if no rule
    gives such a bound; the message begins with the unit's parameter that no rule covers, if there is any."""
    composer, total = _Composer(unit, settle), sum_of(unit)
    terms = [composer.of(*term) for term in terms_of_sum(total)]
    lemmas = [needed(goal, settle) for goal in rules.alignments(total, (), terms)]
    return loosened(truncated(summed(unit, terms, lemmas), needed(TruncationKeeps(unit.d), settle)), units, apart)


def error_of(theorem: Theorem) -> Form:
    """The bound that a theorem states of |d - exact|."""
    goal = theorem.goal
    if isinstance(goal, Carried | OfLargest):
        return goal.error if isinstance(goal, Carried) else goal.form
    assert isinstance(goal, Enclosed)
    assert goal.node == goal.unit.result
    assert not goal.assuming
    return goal.facts.error


def needed(goal: Lemma, settle: Settle) -> Theorem:
    """The theorem of a lemma. Raises RuleError if the lemma stays open."""
    if (theorem := settle(goal)) is None:
        raise RuleError(f"open: it is not decided whether {goal.statement()}")
    return theorem


def proved(goals: Sequence[Lemma], settle: Settle) -> list[Theorem]:
    """The theorems of the lemmas that `settle` proves."""
    return [theorem for goal in goals if (theorem := settle(goal)) is not None]


#: kind of node -> the rule, which rests on no lemma
RULES: dict[type[Node], Callable[..., Theorem]] = {
    Segment: rules.segment, Product: rules.product, Gate: rules.unchanged, Cancelling: rules.unchanged,
    Relu: rules.unchanged, Scale: rules.scale, ExactSum: rules.exact, GridSum: rules.grid,
}  # fmt: skip
#: kind of node -> the rule, and the function that gives the lemmas on which the rule rests
RESTING: dict[type[Node], tuple[Callable[..., Theorem], Callable[..., Sequence[Lemma]]]] = {
    FusedSum: (rules.fused, rules.alignments),
    Cut: (rules.cut, lambda node, *_: [rules.cut_loses(node.bits, node.mode)]),
    Round: (rules.rounded, lambda node, *_: [RoundingLoses(node.rounding.format, node.rounding.fixed)]),
}


def from_terms(node: Node, places: Places, terms: Callable[[], Sequence[Theorem]], settle: Settle) -> Theorem:
    """A theorem about a node from the theorems about its terms, for nodes other than inputs, numbers and loops. Raises
    RuleError if no rule covers the node."""
    if (plain := RULES.get(type(node))) is not None:
        return plain(node, places, terms())
    if type(node) not in RESTING:
        raise RuleError(f"no rule says what {node.kind} loses")
    (resting, lemmas), premises = RESTING[type(node)], terms()
    return resting(node, places, premises, proved(lemmas(node, places, premises), settle))


def is_zero(theorem: Theorem) -> bool:
    """Whether a value is certainly zero."""
    assert isinstance(theorem.goal, (Summed, Enclosed))
    return theorem.goal.facts.is_zero


def formats_of(theorem: Theorem) -> frozenset[Format]:
    """Formats one of which represents the value exactly; empty if none is known."""
    assert isinstance(theorem.goal, (Summed, Enclosed))
    return theorem.goal.facts.known.formats or frozenset()


class _Composer:
    def __init__(self, unit: Unit | Windowed, settle: Settle, chain: bool = False,
                 parts: frozenset[Node] = frozenset(), zero: bool = False) -> None:  # fmt: skip
        self.unit, self.settle, self.chain, self.parts, self.zero = unit, settle, chain, parts, zero
        self.known: dict[tuple[Node, Places], Theorem] = {}
        self.formats: dict[int, frozenset[Format]] = {}
        self.tops: set[Node] = set()
        self.residuals = residuals(unit.result)
        own = unit_in(unit)
        self.steps = {step: name for name, step in own.names.items()} | {own.result: "d"}
        self.where: str | None = None
        node = unit.result
        while not chain and isinstance(node, (Round, Cut)):
            node = node.term
            self.tops.add(node)
        self.joined = node

    def result(self) -> Theorem:
        """The theorem about the unit's result. Theorems are made from the leaves up, since steps may be nested more
        deeply than Python recurses."""
        inside = {one for part in self.parts for one in walk(part)} - self.parts
        for node in walk(self.unit.result):
            if isinstance(node, (Round, Repeat)) and not node.free and node not in inside:
                self.of(node, ())
        return self.of(self.unit.result, ())

    def of(self, node: Node, places: Places) -> Theorem:
        key = node, bound_places(node, dict(places))
        if key not in self.known:
            with self._located(node):
                made = self._made(*key)
            made = rejoined(made) if self.parts and node == self.joined else made
            self.known[key] = rules.whole(made) if node in self.tops else made
        return self.known[key]

    @contextmanager
    def _located(self, node: Node) -> Iterator[None]:
        """Adds to a rule's refusal the step of the unit where it happened: the innermost step that has a name."""
        try:
            yield
        except RuleError as error:
            if self.where is None and (name := self.steps.get(node)) is not None:
                self.where = name
                raise type(error)(f"{error}, in step {name}") from None
            raise

    def _made(self, node: Node, places: Places) -> Theorem:
        match node:
            case Element():
                if self.chain and node.operand == "c":
                    formats = frozenset[Format]() if self.zero else frozenset({self.unit.formats["c"]})
                    return rules.assumed(self.unit, node, formats)
                return rules.element(self.unit, node, places)
            case Constant():
                return rules.constant(self.unit, node)
            case Literal():
                return rules.literal(self.unit, node)
            case Running():
                return rules.assumed(self.unit, node, self.formats[node.level])
            case ExactSum() if self.residuals and not self.residuals.isdisjoint(followed_nodes(node)):
                wanted = [self.of(one, places) for one in leaves(node)]
                return error_free(node, places, wanted, proved(losses(node), self.settle))
            case Round() if node in self.parts:
                return part(self.unit, node, places, proved(part_lemmas(node), self.settle))
            case Round() if node.random is not None:
                lemmas = proved(draw_lemmas(node, self.unit.formats), self.settle)
                return drawn(node, places, self._terms(node.operands, places), lemmas)
            case Repeat():
                start = self.of(node.start, places)
                formats = formats_of(start) | _results(node.body)
                body, zero = self._body(node, places, formats), None
                if is_zero(start):
                    zero = self._body(node, places, frozenset())
                return repeated(node, places, start, body, zero)
        return from_terms(node, places, lambda: self._terms(node.operands, places), self.settle)

    def _body(self, node: Repeat, places: Places, formats: frozenset[Format]) -> Theorem:
        """The theorem about the body of a loop whose result so far is a number of one of `formats`."""
        self.formats[node.level] = formats
        theorem = self.of(node.body, tuple(x for x in places if x[0] != node.level))
        # another loop of this level may have other assumptions
        self.known = {key: one for key, one in self.known.items() if node.level not in key[0].free}
        return theorem

    def _terms(self, items: tuple[Node, ...], places: Places) -> list[Theorem]:
        return [self.of(*term) for item in items for term in terms_of(item, dict(places))]


def _results(node: Node) -> frozenset[Format]:
    """The formats of a rounded node's results; empty for other nodes."""
    match node:
        case Round():
            return frozenset({node.rounding.format})
        case Repeat():
            return _results(node.start) | _results(node.body)
    return frozenset()
