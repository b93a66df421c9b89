"""Error-free transformations: sums of which some terms are the losses of earlier additions.

An addition to nearest of two numbers x and y of a format gives s = x + y + d, and -d is a number of the format. Two
programs compute -d exactly: 2Sum (Møller 1965, Knuth 1969), and fast 2Sum (Dekker 1971) where the exponent of x is not
below that of y. The difference of a number and its rounding, to nearest or toward zero, loses nothing either (Sterbenz
1974: neither is more than twice the other, or one is zero).

So the value of a sum is followed through its roundings as a combination of symbols: the values of its leaves, and the
error that each rounding adds to its operand. The value of 2Sum is the symbol of the addition's error with a minus, so
that the two cancel in a sum of both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from mmaprobe.queries.kernel.bounds.enclosures import (
    Facts,
    KeptRounding,
    NoOverflow,
    Places,
    after_rounding,
    bound_places,
    enclosed,
    goals_about,
    with_lemmas,
)
from mmaprobe.queries.kernel.bounds.forms import NOUGHT, Form, number, total
from mmaprobe.queries.kernel.datapath.rounding_losses import RoundingLoses
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, rule
from mmaprobe.smtmodel.arithmetic.rounding import NEAREST
from mmaprobe.smtmodel.nodes import Each, ExactSum, Literal, Node, Product, Round
from mmaprobe.smtmodel.nodes.known import power
from mmaprobe.smtmodel.nodes.node import Knowledge, walk
from mmaprobe.smtmodel.nodes.round import Rounding

Signs = Mapping[Node, int]
Combination = Mapping[Node, Fraction]  # of leaves, and of the errors that roundings add to their operands


def loses_a_number(how: Rounding) -> bool:
    """Whether the loss of an addition of two numbers of the format is a number of the format: the addition rounds to
    nearest, without flushing."""
    fmt = how.format
    return how.mode in NEAREST and how.subnormals == "keep" and fmt.specials == "ieee" and fmt.subnormals


# -- programs


def signed(node: Node) -> tuple[Node, int] | None:
    """A node and its sign: the product of a node with -1 is that node with a minus. None for a product with another
    literal."""
    if isinstance(node, Product) and isinstance(node.left, Literal) and not node.normalised and node.limit is None:
        return (node.right, -1) if node.left.value == -1 else None
    return node, 1


def added(node: Node) -> Signs | None:
    """The two different nodes that a rounding adds, with their signs; None for another node, or a rounding of another
    sum."""
    if not (isinstance(node, Round) and isinstance(node.term, ExactSum) and len(node.term.items) == 2):
        return None
    items = [one for item in node.term.items if not isinstance(item, Each) and (one := signed(item)) is not None]
    return dict(items) if len(dict(items)) == 2 else None


def _sign(node: Node, wanted: Signs) -> int:
    """1 for a rounding that adds these nodes with these signs, -1 for one with both signs reversed, else 0."""
    actual = added(node)
    if actual is None or actual.keys() != wanted.keys():
        return 0
    signs = {actual[one] * sign for one, sign in wanted.items()}
    return signs.pop() if len(signs) == 1 else 0


def _orders(signs: Signs) -> Iterator[tuple[Node, int, Node, int]]:
    (x, p), (y, q) = signs.items()
    yield x, p, y, q
    yield y, q, x, p


def _one_way(*nodes: Node) -> bool:
    """Whether all nodes are roundings with the same parameters, for which the loss of an addition is a number of the
    format."""
    roundings = [node.rounding for node in nodes if isinstance(node, Round) and node.random is None]
    return len(roundings) == len(nodes) and len(set(roundings)) == 1 and loses_a_number(roundings[0])


def fast_two_sum(node: Node) -> Iterator[tuple[Round, Node, Node, int]]:
    """For a node e with z = r(s - x), e = r(y - z): s, x, y, and the sign with which the node is x + y - s."""
    for z, _, y, _ in _orders(outer) if (outer := added(node)) else ():
        for s, _, x, _ in _orders(inner) if (inner := added(z)) else ():
            total = added(s)
            if isinstance(s, Round) and total is not None and total.keys() == {x, y} and _one_way(node, z, s):
                way = _sign(z, {s: 1, x: -total[x]})
                if way and (sign := _sign(node, {y: total[y], z: -way})):
                    yield s, x, y, sign


def two_sum(node: Node) -> Iterator[tuple[Round, int]]:
    """For a node e with u = r(s - x), w = r(s - u), e = r(r(x - w) + r(y - u)): s, and the sign with which the node is
    x + y - s."""
    for one, _, other, _ in _orders(outer) if (outer := added(node)) else ():
        for y, _, u, _ in _orders(second) if (second := added(other)) else ():
            for s, _, x, _ in _orders(inner) if (inner := added(u)) else ():
                total, third = added(s), added(one)
                if not isinstance(s, Round) or total is None or third is None or total.keys() != {x, y}:
                    continue
                w = next(iter(third.keys() - {x}))
                if x not in third or not _one_way(node, one, other, u, w, s):
                    continue
                way = _sign(u, {s: 1, x: -total[x]})
                back = way and _sign(w, {s: 1, u: -way})
                dx, dy = _sign(one, {x: total[x], w: -back}), _sign(other, {y: total[y], u: -way})
                if back and dx and dy and (sign := _sign(node, {one: dx, other: dy})):
                    yield s, sign


def rest_of_rounding(node: Node) -> Round | None:
    """For a node r(x - y) where y is x rounded to nearest or toward zero: y. None for another node."""
    for y, p, x, q in _orders(operands) if (operands := added(node)) else ():
        if isinstance(y, Round) and y.term == x and p == -q and y.random is None:
            return y if y.rounding.mode in (*NEAREST, "toward_zero") else None
    return None


def residuals(node: Node) -> frozenset[Node]:
    """The nodes within a node that may be the loss of an addition."""
    return frozenset(one for one in walk(node) if next(two_sum(one), None) or next(fast_two_sum(one), None))


# -- nodes that are followed


def _is_followed(node: Node) -> bool:
    """Whether a node is followed to its operands: a sum of single terms, a rounding of such a sum, a product with a
    literal."""
    match node:
        case ExactSum():
            return not any(isinstance(item, Each) for item in node.items)
        case Round():
            return node.random is None and isinstance(node.term, ExactSum) and _is_followed(node.term)
        case Product():
            return isinstance(node.left, Literal) and node.limit is None
    return False


def followed_nodes(node: Node) -> list[Node]:
    """The nodes through which a sum is followed, operands first."""
    nodes = dict[Node, None]()
    waiting = [(node, False)]
    while waiting:
        one, done = waiting.pop()
        if done:
            nodes[one] = None
        elif one not in nodes and _is_followed(one):
            waiting.append((one, True))
            waiting += [(operand, False) for operand in one.operands]
    return list(nodes)


def leaves(node: ExactSum) -> list[Node]:
    """The nodes at which following a sum ends, each once."""
    followed = dict.fromkeys(followed_nodes(node))
    return list(dict.fromkeys(one for node in followed for one in node.operands if one not in followed))


class Followed:
    """The values of the nodes through which a sum is followed, given the facts about its leaves."""

    def __init__(self, node: ExactSum, facts: Mapping[Node, Facts]) -> None:
        self.facts, self.known = facts, {leaf: one.known for leaf, one in facts.items()}
        self.values: dict[Node, Combination] = {leaf: {leaf: Fraction(1)} for leaf in facts}
        self.sizes = {leaf: one.value for leaf, one in facts.items()}
        self.rounded = list[tuple[Round, Form]]()
        for one in followed_nodes(node):
            self.known[one] = one.known(Knowledge({}, fits=True), [self.known[x] for x in one.operands])
            self.values[one] = self._value(one)

    def size(self, value: Combination) -> Form:
        """A bound of the magnitude of a combination."""
        return total(self.sizes[one] * abs(factor) for one, factor in value.items())

    def _value(self, node: Node) -> Combination:
        match node:
            case ExactSum():
                combination = dict[Node, Fraction]()
                for item in node.items:
                    for one, factor in self.values[item].items():
                        combination[one] = combination.get(one, Fraction(0)) + factor
                return {one: factor for one, factor in combination.items() if factor}
            case Product(left=Literal() as left, right=right):
                if (by := left.value) is None:
                    raise RuleError("error_free: a factor is not a number")
                return {one: factor * by for one, factor in self.values[right].items() if by}
        assert isinstance(node, Round)
        before = self.values[node.term]
        self.rounded.append((node, self.size(before)))
        if self._loses_nothing(node):
            self.sizes[node] = NOUGHT
            return before
        if (lost := self._residual(node)) is not None:
            return lost
        y = Facts(NOUGHT, NOUGHT, self.size(before), known=self.known[node.term])
        self.sizes[node] = after_rounding(y, node.rounding).error
        return {**before, node: Fraction(1)}

    def _residual(self, node: Round) -> Combination | None:
        """The loss of an addition, if a node computes such a loss."""
        for s, sign in two_sum(node):
            if s in self.sizes and all(self._is_number(one, s.rounding) for one in added(s) or ()):
                return {s: Fraction(-sign)}
        for s, x, y, sign in fast_two_sum(node):
            both = self._is_number(x, s.rounding) and self._is_number(y, s.rounding)
            if s in self.sizes and both and self._is_ordered(x, y):
                return {s: Fraction(-sign)}
        return None

    def _is_ordered(self, x: Node, y: Node) -> bool:
        """Whether x is zero, or |x| >= 2^e for an e with |y| < 2^(e + 1)."""
        least, top = self.known[x].least, self.known[y].top
        if isinstance(x, Literal):
            return top is not None and x.value is not None and abs(x.value) >= power(top - 1)
        normal = self.known[x].formats is not None and self.known[x].never_tiny
        return normal and least is not None and top is not None and least >= top - 1

    def _loses_nothing(self, node: Round) -> bool:
        coarse, how = rest_of_rounding(node), node.rounding
        if coarse is None or how.subnormals != "keep" or not how.format.subnormals:
            return False
        return self._is_number(coarse.term, how) and how.format.holds(coarse.rounding.format)

    def _is_number(self, node: Node, how: Rounding) -> bool:
        """Whether each value of a node is a number of the format of a rounding."""
        known, fmt = self.known[node], how.format
        if known.formats is not None and all(map(fmt.holds, known.formats)):
            return True
        if known.bits is None or known.top is None or known.grid is None:
            return False
        return known.bits <= fmt.precision and known.top <= fmt.emax and known.grid >= fmt.unit


@rule
def error_free(node: ExactSum, places: Places, premises: Sequence[Theorem], lemmas: Sequence[Theorem]) -> Made:
    """A sum, followed through its roundings to its leaves: v is a combination of the values of the leaves and of the
    errors of roundings, x the same combination of the exact values of the leaves. So |v - x| is at most the sum of the
    errors of the leaves and of the roundings, each times its factor; the errors that 2Sum or fast 2Sum computes cancel.
    None of the roundings may overflow."""
    known, followed = dict(places), followed_nodes(node)
    wanted = ((one, bound_places(one, known)) for one in leaves(node))
    if not (goals := goals_about("error_free", node, places, wanted, premises)):
        raise RuleError("error_free: the sum has no leaves")
    if {one.node for goal in goals for one in goal.assuming if isinstance(one, KeptRounding)} & set(followed):
        raise RuleError("error_free: a rounding that is kept is followed")
    sums = Followed(node, {goal.node: goal.facts for goal in goals})
    value = sums.values[node]
    error = total((sums.facts[one].error if one in sums.facts else sums.sizes[one]) * abs(factor)
                  for one, factor in value.items())  # fmt: skip
    size = total(sums.facts[one].size * abs(factor) for one, factor in value.items() if one in sums.facts)
    limits = (NoOverflow(one, bound_places(one, known), one.rounding.format.emax, most) for one, most in sums.rounded)
    facts = Facts(error, error, size, number(1), sums.known[node])
    made = enclosed(node, places, facts, goals, premises, *limits)
    return with_lemmas(made, lemmas, losses(node))


def losses(node: ExactSum) -> list[RoundingLoses]:
    """The lemmas about the datapath on which a sum rests."""
    rounded = [one.rounding for one in followed_nodes(node) if isinstance(one, Round)]
    return list(dict.fromkeys(RoundingLoses(how.format, how.fixed) for how in rounded))
