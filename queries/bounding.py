"""Error bounds of units, found by composition: a tactic, which calls the rules and is not trusted."""

from __future__ import annotations

from queries.proof import enclosures as rules
from queries.proof.enclosures import Enclosed, Places, bound_places, terms_of
from queries.proof.forms import Form
from queries.proof.induction import Carried, chained, repeated
from queries.proof.kernel import Theorem
from smtmodel.formats import Format
from smtmodel.nodes import Constant, Cut, Element, ExactSum, FusedSum, Node, Product, Repeat, Round, Running, Scale
from smtmodel.unit import Unit


def bound_of(unit: Unit) -> Theorem:
    """A bound of |d - exact|. Raises RuleError where no rule gives one."""
    return _Composer(unit).of(unit.result, ())


def chain_of(unit: Unit) -> Theorem:
    """What an instruction of a chain does to the error. Raises RuleError where no rule says it."""
    return chained(_Composer(unit, chain=True).of(unit.result, ()))


def error_of(theorem: Theorem) -> Form:
    """The bound that a theorem states of |d - exact|."""
    goal = theorem.goal
    if isinstance(goal, Carried):
        return goal.error
    assert isinstance(goal, Enclosed)
    assert goal.node == goal.unit.result
    assert not goal.assuming
    return goal.facts.error


class _Composer:
    def __init__(self, unit: Unit, chain: bool = False) -> None:
        self.unit, self.chain = unit, chain
        self.known: dict[tuple[Node, Places], Theorem] = {}
        self.formats: dict[int, frozenset[Format]] = {}
        self.tops: set[Node] = set()
        node = unit.result
        while not chain and isinstance(node, (Round, Cut)):
            node = node.term
            self.tops.add(node)

    def of(self, node: Node, places: Places) -> Theorem:
        key = node, bound_places(node, dict(places))
        if key not in self.known:
            made = self._made(*key)
            self.known[key] = rules.whole(made) if node in self.tops else made
        return self.known[key]

    def _made(self, node: Node, places: Places) -> Theorem:
        match node:
            case Element():
                if self.chain and node.operand == "c":
                    return rules.assumed(self.unit, node, frozenset({self.unit.c}))
                return rules.element(self.unit, node, places)
            case Constant():
                return rules.constant(self.unit, node)
            case Running():
                return rules.assumed(self.unit, node, self.formats[node.level])
            case Product():
                return rules.product(node, places, self._operands(node, places))
            case Scale():
                return rules.scale(node, places, self._operands(node, places))
            case ExactSum():
                return rules.exact(node, places, self._terms(node.items, places))
            case FusedSum():
                return rules.fused(node, places, self._terms(node.items, places))
            case Cut():
                return rules.cut(node, places, self._operands(node, places))
            case Round():
                return rules.rounded(node, places, self._operands(node, places))
            case Repeat():
                start = self.of(node.start, places)
                self.formats[node.level] = _formats(start) | _results(node.body)
                body = self.of(node.body, tuple(x for x in places if x[0] != node.level))
                return repeated(node, places, start, body)
        raise TypeError(f"no rule for {node.kind}")

    def _operands(self, node: Node, places: Places) -> list[Theorem]:
        return [self.of(operand, places) for operand in node.operands]

    def _terms(self, items: tuple[Node, ...], places: Places) -> list[Theorem]:
        return [self.of(*term) for item in items for term in terms_of(item, dict(places))]


def _formats(theorem: Theorem) -> frozenset[Format]:
    assert isinstance(theorem.goal, Enclosed)
    return theorem.goal.facts.formats or frozenset()


def _results(node: Node) -> frozenset[Format]:
    """The formats that a rounded node's results have."""
    match node:
        case Round():
            return frozenset({node.rounding.format})
        case Repeat():
            return _results(node.start) | _results(node.body)
    return frozenset()
