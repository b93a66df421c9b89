"""Instances of the rules about the error of a node: of random units, node by node, right and wrong arguments."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from benchmarks.rules.campaign import Campaign
from benchmarks.rules.lemmas import Truths
from benchmarks.rules.units import ADDENDS, FACTORS, RESULTS, WIDE, Small, small_unit
from mmaprobe.queries.kernel.bounds.enclosures import (
    CHAIN,
    Enclosed,
    alignments,
    bound_places,
    cut_loses,
    terms_of,
)
from mmaprobe.queries.kernel.bounds.forms import Form, number
from mmaprobe.queries.kernel.bounds.parts import part_lemmas
from mmaprobe.queries.kernel.bounds.transformations import leaves, losses
from mmaprobe.queries.kernel.datapath.rounding_losses import RoundingLoses
from mmaprobe.queries.kernel.errors import RuleError
from mmaprobe.queries.kernel.lemmas import Lemma
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.smtmodel.arithmetic.formats import format_named
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.nodes import (
    Cancelling,
    Constant,
    Cut,
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
    Repeat,
    Round,
    Running,
    Scale,
    Segment,
    Sum,
)
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit
from tests.node_units import MODES

RULE_OF: dict[type, str] = {
    Segment: "segment", Product: "product", Gate: "unchanged", Cancelling: "unchanged", Relu: "unchanged",
    Scale: "scale", ExactSum: "exact", FusedSum: "fused", GridSum: "grid", Cut: "cut", Round: "rounded",
}  # fmt: skip
WITH_LEMMAS = ("fused", "cut", "rounded")
Key = tuple[Node, tuple[tuple[int, int], ...], bool]


class Deriving:
    """Theorems about the nodes of one unit. `mixing`: c is at times an input, at times the previous result."""

    def __init__(self, campaign: Campaign, truths: Truths, unit: Unit, rng: random.Random, chain: bool) -> None:
        self.campaign, self.truths, self.unit, self.rng, self.chain = campaign, truths, unit, rng, chain
        self.known: dict[Any, Theorem | None] = {}
        self.mixing = rng.random() < 0.15
        self.keeping = 0.0  # the share of roundings that are kept, where they may be

    zero: int | None = None  # the level of which the result so far is taken to be zero

    def call(self, name: str, *arguments: Any) -> Theorem | None:
        return self.campaign.call(name, *arguments)

    def proved(self, lemmas: Sequence[Lemma]) -> list[Theorem]:
        """The lemmas that are true; at times one is missing, or one too many."""
        found = [theorem for lemma in lemmas if (theorem := self.truths.theorem(lemma)) is not None]
        if found and self.rng.random() < 0.03:
            found.pop(self.rng.randrange(len(found)))
        return found

    def node(self, node: Node, places: tuple[tuple[int, int], ...]) -> Theorem | None:
        """The theorem about a node, where there is one."""
        key = node, places
        if key not in self.known or 0 < self.keeping < 1:  # once it is kept, and once it is not
            self.known[key] = self._node(node, places)
        return self.known[key]

    def _node(self, node: Node, places: tuple[tuple[int, int], ...]) -> Theorem | None:
        unit, rng = self.unit, self.rng
        match node:
            case Element(operand="c") if self.chain and not (self.mixing and rng.random() < 0.5):
                return self.call("assumed", unit, node, frozenset() if self.zero == CHAIN else frozenset({unit.c}))
            case Element():
                return self.call("element", unit, node, places)
            case Constant():
                return self.call("constant", unit, node)
            case Literal():
                return self.call("literal", unit, node)
            case Running(level=level) if level == self.zero:
                return self.call("assumed", unit, node, frozenset())
            case Running():
                return self.call("assumed", unit, node, self.formats_of(node))
            case Repeat():
                start = self.node(node.start, bound_places(node.start, dict(places)))
                body = self.node(node.body, bound_places(node.body, {k: v for k, v in places if k != node.level}))
                if start is None or body is None:
                    return None
                zero = None
                if is_zero(start) or rng.random() < 0.2:
                    own = Deriving(self.campaign, self.truths, unit, rng, self.chain)
                    own.mixing, own.zero = False, node.level if rng.random() < 0.9 else None
                    zero = own.node(node.body, bound_places(node.body, {k: v for k, v in places if k != node.level}))
                return self.call("repeated", node, places, start, body, zero)
        premises = self.premises(node, places)
        return None if premises is None else self.applied(node, places, premises)

    def premises(self, node: Node, places: tuple[tuple[int, int], ...]) -> list[Theorem] | None:
        wanted = [term for item in node.operands for term in terms_of(item, dict(places))]
        if not isinstance(node, Sum):
            wanted = [(operand, bound_places(operand, dict(places))) for operand in node.operands]
        found = [self.node(*one) for one in wanted]
        return None if None in found else [one for one in found if one is not None]

    def applied(self, node: Node, places: tuple[tuple[int, int], ...], premises: Sequence[Theorem]) -> Theorem | None:
        name = RULE_OF.get(type(node))
        if name is None:
            return None
        if isinstance(node, Round) and self.rng.random() < self.keeping:
            return self.call("part", self.unit, node, places, self.proved(part_lemmas(node)))
        if name not in WITH_LEMMAS:
            return self.call(name, node, places, premises)
        return self.call(name, node, places, premises, self.proved(self.lemmas(node, places, premises)))

    def lemmas(self, node: Node, places: tuple[tuple[int, int], ...], premises: Sequence[Theorem]) -> list[Lemma]:
        if isinstance(node, FusedSum):
            try:
                return list(alignments(node, places, premises))
            except RuleError:
                return []
        if isinstance(node, Cut):
            return [cut_loses(node.bits, node.mode)]
        return [RoundingLoses(node.rounding.format, node.rounding.mode)] if isinstance(node, Round) else []

    def formats_of(self, running: Running) -> frozenset[Any]:
        """The formats of the results so far of a loop: right ones mostly."""
        formats = set()
        for node in walk(self.unit.result):
            if isinstance(node, Repeat) and node.level == running.level:
                formats |= {part.rounding.format for part in (node.start, node.body) if isinstance(part, Round)}
                if isinstance(node.start, Element):
                    formats.add(self.unit.c)
                if isinstance(node.start, Literal):
                    formats.add(node.start.format)
        if self.rng.random() < 0.05:
            formats = {format_named(self.rng.choice(RESULTS))}
        return frozenset(formats)


def instances(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """All rules on the nodes of one random unit, then on wrong arguments."""
    unit = small_unit(rng)
    own = Deriving(campaign, truths, unit, rng, chain=rng.random() < 0.4)
    for node in walk(unit.result):
        for places in some_places(unit, node, rng):
            own.node(node, places)
    top = own.node(unit.result, ())
    _after(own, top, [theorem for theorem in own.known.values() if theorem is not None])
    for _ in range(4):  # what random units have seldom
        fmt = format_named(rng.choice(RESULTS))
        own.call("literal", unit, Literal(rng.randrange(1 << fmt.width), fmt))
        own.call("constant", unit, Constant(rng.random() < 0.5))


def kinds(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """The rules of nodes that random units have seldom, on one unit that has all of them."""
    choose: Any = rng.choice
    a, b, c = (format_named(rng.choice(("e1m1_none", "e2m1", "e1m2_none", "binary3p2se"))) for _ in range(3))
    scale = format_named(rng.choice(("ue1m1_none", "ue2m1_none")))
    maker = Small(rng, 1, {"a": a, "b": b, "c": c}, scale)
    left, right, first = maker.element("a"), maker.element("b"), rng.choice((0, 0, 1))
    segment = Segment(left, first, first + rng.randint(1, 2), rng.random() < 0.5, rng.random() < 0.3)
    gated = Gate(Product(left, right, rng.random() < 0.3), rng.random() < 0.5)
    parts = Product(segment, right, rng.random() < 0.2)
    while True:
        try:
            total = maker.sum_of((rng.choice((gated, parts)), maker.element("c")))
            grid = maker.grid((rng.choice((gated, parts)), maker.element("c")))
            cut = Cut(rng.choice((total, grid)), rng.randint(2, 4), choose(MODES), rng.choice((None, -3, 0)))
            every: list[Node] = [grid, cut, Cancelling(total), maker.scaled(gated), maker.scaled(parts),
                                 Relu(Round(cut, maker.rounding()))]  # fmt: skip
            body = Round(maker.sum_of((Running(0), rng.choice((gated, grid, parts)))), maker.rounding())
            every.append(Repeat(0, range(rng.choice((1, 2))), choose((maker.element("c"), Constant())), body))
            top = Round(maker.fused(tuple(rng.sample(every, 2))), maker.rounding())
            unit = Unit(a, b, c, 1, top, scale, 1)
            break
        except ParameterError:
            continue
    own = Deriving(campaign, truths, unit, rng, chain=False)
    for node in every:
        own.node(node, ())
    own.node(top, ())


def some_places(unit: Unit, node: Node, rng: random.Random) -> Iterator[tuple[tuple[int, int], ...]]:
    """Values of loop variables for a node: none, as in a loop's body, or some, as for a term of a sum."""
    yield ()
    if node.free and rng.random() < 0.5:
        yield tuple(sorted((level, rng.randrange(max(1, unit.length))) for level in node.free))


def _after(own: Deriving, top: Theorem | None, every: Sequence[Theorem]) -> None:
    """The rules that take one theorem: whole, weakened, chained, closed, carried."""
    rng = own.rng
    for theorem in [top, *rng.sample(every, min(4, len(every)))]:
        if theorem is None:
            continue
        own.call("whole", theorem)
        own.call("of_largest", theorem)
        goal = theorem.goal
        if isinstance(goal, Enclosed):
            own.call("weakened", theorem, _claim(goal.facts.error, rng))
        chain = own.call("chained", theorem)
        if chain is not None:
            own.call("closed", chain)
            if (chained := own.call("carried", chain, rng.choice((0, 1, 1, 2, 2, 3)))) is not None:
                own.call("of_largest", chained)
            own.call("carried", theorem, 2)
            own.call("from_zero", theorem)
            own.call("closed", theorem)


def _claim(error: Form, rng: random.Random) -> Form:
    """A bound near one that is known: larger, merged, or smaller in one coefficient."""
    kind = rng.random()
    if kind < 0.3:
        return error.merged()
    if kind < 0.6:
        return error + number(Fraction(rng.randrange(3), 8))
    parts = dict(error.parts)
    if parts:
        atom = rng.choice(sorted(parts, key=str))
        parts[atom] = parts[atom] * Fraction(rng.choice((1, 2, 3, 5)), 4)
    return Form(parts)


def chained_units(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """Units whose result may be the next addend: as in a chain of instructions."""
    unit = chained_unit(rng)
    own = Deriving(campaign, truths, unit, rng, chain=True)
    top = own.node(unit.result, ())
    if top is not None:
        _after(own, top, [])
    own = Deriving(campaign, truths, unit, rng, chain=True)
    own.zero = CHAIN
    top = own.node(unit.result, ())
    if top is not None:
        own.call("from_zero", top)
        own.call("chained", top)


def is_zero(theorem: Theorem) -> bool:
    goal = theorem.goal
    return isinstance(goal, Enclosed) and goal.facts.is_zero


def chained_unit(rng: random.Random) -> Unit:
    """A unit whose result is a sum with the addend, mostly in the addend's format."""
    while True:
        a, b, c = (format_named(rng.choice(names)) for names in (FACTORS, FACTORS, ADDENDS))
        length = rng.choice((1, 1, 2))
        maker = Small(rng, length, {"a": a, "b": b, "c": c}, None)
        items: list[Node] = [maker.element("c"), *(maker.product(0) for _ in range(rng.choice((1, 1, 2))))]
        if rng.random() < 0.2:
            items.append(maker.element("c"))
        if rng.random() < 0.05:
            items.append(Literal(c.one, c))
        rng.shuffle(items)
        try:
            total = maker.sum_of(tuple(items))
            if rng.random() < 0.2:
                total = maker.sum_of((Round(total, maker.rounding()), maker.product(0)))
            result = Round(total, maker.rounding(c if rng.random() < 0.9 else None))
            return Unit(a, b, c, length, result)
        except ParameterError:
            continue


def parts(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """Inputs that are taken in parts, each rounded: the parts are kept, and their sums are as good as none was lost."""
    a, b, c = (format_named(rng.choice(("e1m2_none", "e2m2_none", "e2m1", "e1m3_none"))) for _ in range(3))
    maker = Small(rng, 1, {"a": a, "b": b, "c": c}, None)
    coarse = format_named(rng.choice(("e2m1", "e1m2_none", "e2m2_none", "e3m1_none")))
    minus = Literal(coarse.one | coarse.sign_bit, coarse)

    def parted(factor: Node) -> tuple[Node, Node]:
        how = replace(maker.rounding(coarse), nan=None)
        first = Round(factor, how)
        rest = ExactSum((factor, Product(first, minus)))
        return first, Round(rest, replace(maker.rounding(coarse), nan=None)) if rng.random() < 0.8 else first

    (a0, a1), (b0, b1) = parted(Element("a", Index(0))), parted(Element("b", Index(0)))
    terms: list[Node] = [Product(a0, b0), Product(a0, b1), Product(a1, b0), Element("c")]
    total = ExactSum(tuple(rng.sample(terms, rng.randint(2, 4))))
    try:
        top = Round(total, maker.rounding(format_named(rng.choice(WIDE))))
        unit = Unit(a, b, c, 1, Round(Cut(total, 4), top.rounding) if rng.random() < 0.2 else top)
    except ParameterError:
        return
    own = Deriving(campaign, truths, unit, rng, chain=rng.random() < 0.05)
    for node in (a0, a1, b0, b1):
        if isinstance(node, Round):
            own.call("part", unit, node, ((3, 0),) if rng.random() < 0.05 else (), own.proved(part_lemmas(node)))
    own.keeping = rng.choice((0.6, 1.0, 1.0))
    for node in (total, unit.result):
        found = own.node(node, ())
        if found is not None:
            own.call("rejoined", found)
    for theorem in [one for one in own.known.values() if one is not None][:3]:
        own.call("rejoined", theorem)
    own.call("part", unit, top, (), own.proved(part_lemmas(top)))


def compensated(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """Sums with what one of their additions lost: by 2Sum or fast 2Sum, some with a sign, an operand or a rounding that
    is wrong."""
    fmt = format_named(rng.choice(("e2m2_ieee", "e3m1_ieee", "e2m1_ieee", "e3m1_ieee", "e2m2_none")))
    maker = Small(rng, 1, dict.fromkeys("abc", fmt), None)
    mode: Any = rng.choice(("nearest_even", "nearest_even", "nearest_away", "toward_zero", "up"))
    minus, how = Literal(fmt.one | fmt.sign_bit, fmt), Rounding(fmt, mode)

    def less(node: Node) -> Node:
        return Product(minus, node)

    def added(*items: Node) -> Round:
        own = [less(one) if one.is_number and rng.random() < 0.03 else one for one in items]
        rng.shuffle(own)
        return Round(ExactSum(tuple(own)), how if rng.random() < 0.97 else maker.rounding(fmt))

    values = [Element("a", Index(0)), Element("b", Index(0)), Element("c"), Literal(rng.randrange(1 << fmt.width), fmt)]
    x, y, z = rng.sample(values, 3) if rng.random() < 0.8 else rng.choices(values, k=3)
    coarse = Round(x, replace(maker.rounding(format_named("e2m1")), nan=None))
    if rng.random() < 0.2:
        x, z = coarse, added(x, less(coarse))
    s = added(x, y)
    u = added(s, less(x))
    if rng.random() < 0.3:
        lost = added(y, less(u))
    else:
        w = added(s, less(u))
        lost = added(added(x, less(w)), added(y, less(u)))
    every = [s, lost, z, added(lost, z), added(s, z)]
    total = ExactSum(tuple(rng.sample(every, rng.randint(2, 3))))
    try:
        unit = Unit(fmt, fmt, fmt, 1, Round(total, how))
    except ParameterError:
        return
    own = Deriving(campaign, truths, unit, rng, chain=rng.random() < 0.2)
    for node in (node for node in walk(total) if isinstance(node, ExactSum)):
        premises = [own.node(leaf, ()) for leaf in leaves(node)]
        given = [one for one in premises if one is not None]
        if given and rng.random() < 0.05:
            given.pop()
        if len(given) == len(premises) or rng.random() < 0.1:
            own.call("error_free", node, (), given, own.proved(losses(node)))
