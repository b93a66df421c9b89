"""Arguments that random units have seldom: each fails a side condition, or nearly."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from benchmarks import plan_statements
from benchmarks.rules.campaign import Campaign
from benchmarks.rules.enclosures import Deriving
from benchmarks.rules.facts import ENGINE
from benchmarks.rules.lemmas import Truths
from benchmarks.rules.results import turned
from benchmarks.rules.units import FACTORS, RESULTS
from mmaprobe.queries.kernel.bounds.enclosures import alignments
from mmaprobe.queries.kernel.datapath.ranges import Held, Range, Scope
from mmaprobe.queries.kernel.datapath.rounding_losses import TruncationKeeps
from mmaprobe.queries.kernel.equality.plan_units import AtLength, units_of
from mmaprobe.queries.kernel.errors import RuleError
from mmaprobe.queries.kernel.lemmas import AlignmentLoses
from mmaprobe.queries.kernel.properties.rises import needed
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import Monotonic, Reordered
from mmaprobe.queries.kernel.terms.facts import Basis
from mmaprobe.queries.kernel.terms.same import Compared
from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.nodes import (
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
    Repeat,
    Round,
    Running,
    Scale,
    Segment,
)
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.units.unit import Unit

A, B, C = Element("a", Index(0)), Element("b", Index(0)), Element("c")
AB = Product(A, B)
WIDE = Format("wide", 8, 23, 127, "ieee")
BARE = Format("bare", 2, 1, 1, "none", subnormals=False)
TINY = format_named("e1m1_none")


def expressions(rng: random.Random, fmt: Format) -> list[Node]:
    """Results of units, each with something that rules refuse in one place or another."""
    how = Rounding(fmt, rng.choice(("nearest_even", "toward_zero")))
    half = Literal(fmt.one - (1 << fmt.fraction) if fmt.one >> fmt.fraction > 1 else fmt.one, fmt)
    running, level = Running(3), 3

    def loop(*items: Node, start: Node = Constant()) -> Node:  # noqa: B008 - a node is a constant
        return Repeat(level, range(2), start, Round(ExactSum(items), how))

    bits = rng.randint(1, 5)
    inner = ExactSum((AB, C))
    made: list[Any] = [
        lambda: Round(ExactSum((Product(C, half), AB)), how),
        lambda: loop(Product(Round(running, how), Round(running, how)), AB),
        lambda: loop(running, running, AB),
        lambda: loop(Product(Round(running, how), A), AB, start=C),
        lambda: Round(FusedSum((Cut(inner, 3), AB), bits), how),
        lambda: Round(FusedSum((inner, AB), bits, reach=(2, None)), how),
        lambda: Round(FusedSum((Cut(inner, 3), AB), bits, reach=(2, None)), how),
        lambda: Round(GridSum((Cut(inner, 3), AB), (2, 3)), how),
        lambda: Round(GridSum((inner, AB), (2, 3), reach=(1, 2)), how),
        lambda: Round(ExactSum((Segment(C, 0, 2), AB)), how),
        lambda: Round(ExactSum((Product(Segment(C, 0, 2), A),)), how),
        lambda: Round(Product(FusedSum((AB, C, AB), 4), A, True), how),
        lambda: Round(Product(ExactSum((AB, C)), A, True), how),
        lambda: Round(ExactSum((Scale(AB, A, B), C)), how),
        lambda: Round(ExactSum((Scale(AB, Element("scale_a", Index(0)), Element("scale_b", Index(0))), C)), how),
        lambda: Round(FusedSum((FusedSum((AB, C), bits, least=0), AB), bits), how),
        lambda: Round(FusedSum((AB, AB, C), bits), how),
        lambda: Round(FusedSum((Product(A, A), C), bits), how),
        lambda: Round(FusedSum((Product(C, A), AB), bits), how),
        lambda: Round(FusedSum((ExactSum((AB, C)), C), bits, reach=(2, 1)), how),
        lambda: Round(FusedSum((AB, C), bits, sticky=True), how),
        lambda: Round(FusedSum((AB, C), bits, carry_bits=0), how),
        lambda: Round(ExactSum((C,)), how),
        lambda: Round(Relu(Round(inner, how), "zero"), how),
        lambda: Round(Relu(Round(inner, how)), how),
        lambda: Round(Cut(Relu(Round(inner, how), "zero"), 3), how),
        lambda: Repeat(level, range(2), C, Round(Cut(ExactSum((running, AB)), 3), how)),
        lambda: Repeat(level, range(2), C, Repeat(4, range(2), running, Round(ExactSum((Running(4), AB)), how))),
        lambda: Repeat(level, range(2), Constant(), Round(ExactSum((B, B)), how)),
        lambda: Repeat(level, range(2), Round(inner, how), Round(Relu(Round(ExactSum((running, AB)), how)), how)),
        lambda: Round(ExactSum((Gate(AB), C)), how),
        lambda: Round(ExactSum((Product(Round(A, how), B), C)), how),
        lambda: Round(inner, replace(how, nan=1)),
        lambda: Round(ExactSum((Round(Cut(inner, 2, "down"), how), AB)), how),
        lambda: Round(ExactSum((Round(inner, replace(how, mode="up")), AB)), how),
    ]  # fmt: skip
    found = []
    for make in made:
        try:
            found.append(make())
        except ParameterError:
            continue
    return found


def units(rng: random.Random) -> list[Unit]:
    """Units of these results, over formats at random."""
    found = []
    for result in expressions(rng, format_named(rng.choice(RESULTS))):
        formats = [format_named(rng.choice(FACTORS)) for _ in range(3)]
        body = result.body if isinstance(result, Repeat) else result
        if isinstance(body, Round) and rng.random() < 0.5 and body.rounding.format.subnormals:
            formats[2] = body.rounding.format
        scale = rng.choice((None, None, format_named("ue1m1_none"), format_named("e1m1_none")))
        try:
            found.append(Unit(formats[0], formats[1], formats[2], 1, result, scale, 1 if scale else 0))
        except (ParameterError, AssertionError):
            continue
    return found


def instances(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """All that may be said of these units."""
    for unit in rng.sample(units(rng), 12):
        for chain in (False, True):
            own = Deriving(campaign, truths, unit, rng, chain)
            own.mixing = rng.random() < 0.3
            top = own.node(unit.result, ())
            found = None if top is None else campaign.call("chained", top)
            if found is not None:
                campaign.call("closed", found)
                campaign.call("carried", found, rng.choice((0, 1, 2)))
        _ordered(campaign, truths, unit)
        turned(campaign, truths, unit)


def _ordered(campaign: Campaign, truths: Truths, unit: Unit) -> None:
    for raised in (None, 0):
        try:
            lemmas = needed(unit, raised, False)
        except (RuleError, ParameterError):
            campaign.call("rises", unit, raised, False, ())
            continue
        proved = [theorem for lemma in lemmas if (theorem := truths.theorem(lemma)) is not None]
        campaign.call("rises", unit, raised, False, proved)


def edges(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """Calls each of which fails one side condition that nothing else fails."""
    fmt, how = format_named("e1m1_none"), Rounding(format_named("e3m2_ieee"))
    unit = Unit(fmt, fmt, fmt, 1, Round(ExactSum((AB, C)), how))
    _rewriting(campaign, unit)
    _loops(campaign, truths, unit, rng)
    _parts(campaign, truths, unit, rng)
    _problems(campaign, truths, unit)
    _objects(campaign, truths)
    campaign.call("exhausted", AlignmentLoses(9, 3, 3, "toward_zero"), check=False)
    campaign.call("rises", Unit(WIDE, WIDE, fmt, 1, Round(FusedSum((AB, C), 3), how)), 0, False, ())
    scaled = Round(ExactSum((Scale(AB, Element("scale_a", Index(0)), Element("scale_b", Index(0))), C)), how)
    campaign.call("rises", Unit(fmt, fmt, fmt, 1, scaled, fmt, 1), 0, False, ())


def _rewriting(campaign: Campaign, unit: Unit) -> None:
    call, scope, result = campaign.call, Scope.of(unit), unit.result
    assert isinstance(result, Round)
    how, own = result.rounding, Index(0, ((3, 1),))
    positive, name = replace(how, zero="positive"), "sign of a zero that nothing reads"
    each = Each(3, range(2), Product(Element("a", own), Element("b", own)))
    for rule, node in (
        ("products that an exact sum normalises in vain", Product(Segment(A, 0, 2), B, True)),
        ("sum of one term", Round(ExactSum((each,)), how)),
        ("first step of a loop", Repeat(3, range(4), C, Round(ExactSum((Running(3), AB)), positive))),
    ):
        campaign.rewrite(rule, scope, node)
    same = call("rewritten", scope, result, name, ())
    call("congruent", scope, Gate(AB), [same])
    call("congruent", scope, result, [same, same])
    call("congruent", scope, Repeat(3, range(2), C, result), [None, same])
    call("congruent", scope, Repeat(3, range(2), result, Relu(Running(3))), [same, None])
    if same is not None:
        call("results_alike", unit, same)
    held, scopes = Held(frozenset({how.format})), [scope]
    nodes: list[Node] = [Round(ExactSum((Running(5), AB)), how)]
    for level in (3, 4, 5):
        scopes.append(scopes[-1].within(level, held))
        nodes.append(Repeat(8 - level, range(2), Running(7 - level) if level < 5 else C, nodes[-1]))
    found = call("rewritten", scopes[3], nodes[0], name, ())
    for place, node in zip(scopes[2::-1], nodes[1:], strict=True):  # the last is a loop of loops of loops
        found = None if found is None else call("looped", place, node, found, ())
    strange = call("rewritten", scope.within(5, Held(frozenset({unit.a}))), nodes[0], name, ())
    if strange is not None:
        call("looped", scope, Repeat(5, range(2), C, nodes[0]), strange, ())


def _loops(campaign: Campaign, truths: Truths, unit: Unit, rng: random.Random) -> None:
    """Loops within loops of one level, from their own results so far, and at places."""
    how, at = unit.rounding, Index(0, ((3, 1),))
    inner = Round(ExactSum((Running(3), Product(Element("a", at), Element("b", at)))), how)
    loop = Repeat(3, range(2), Constant(), inner)
    own = Deriving(campaign, truths, replace(unit, length=2, result=loop), rng, chain=False)
    own.node(Round(ExactSum((AB, C)), Rounding(BARE)), ())
    stays = Round(ExactSum((B, B)), how)
    turned = {node: campaign.call("turned", unit, node, (), ()) for node in (B, Constant())}
    terms = campaign.call("turned", unit, stays.term, [turned[B], turned[B]], ())
    sides = turned[Constant()], campaign.call("turned", unit, stays, [terms], ())
    campaign.call("turned", unit, Repeat(3, range(2), Constant(), stays), sides, ())
    odd = Rounding(format_named("e3m1_all_ones"), "toward_zero")  # its largest number is not full
    total = FusedSum((C, AB), 3)
    other = replace(unit, result=Round(total, odd))
    terms_of = Deriving(campaign, truths, other, rng, chain=False)
    premises = [one for node in total.items if (one := terms_of.node(node, ())) is not None]
    lemmas = [truths.theorem(lemma) for lemma in alignments(total, (), premises)]
    lost, keeps = campaign.call("summed", other, premises, lemmas), truths.theorem(TruncationKeeps(other.d))
    campaign.call("truncated", lost, keeps)
    alone = Round(Product(Element("a", at), Element("b", at)), how)  # which reads no result so far
    start, body, placed = own.node(Constant(), ()), own.node(alone, ()), own.node(alone, ((3, 0),))
    for places, step in (((), placed), (((7, 1),), body)):
        campaign.call("repeated", Repeat(3, range(2), Constant(), alone), places, start, step)
    own.node(Repeat(3, range(2), Constant(), Round(ExactSum((loop, Running(3))), how)), ())
    own.node(Repeat(3, range(2), Round(ExactSum((Running(3), AB)), how), inner), ())


def _parts(campaign: Campaign, truths: Truths, unit: Unit, rng: random.Random) -> None:
    how, infinite = unit.rounding, format_named("e2m1_ieee")
    campaign.call("part", unit, Round(ExactSum((A, Literal(infinite.infinity, infinite))), how), (), ())
    sums = [Round(ExactSum(tuple(Element(name, Index(k)) for k in range(130))), how) for name in ("a", "b")]
    campaign.call("part", replace(unit, length=130), Round(Product(*sums), how), (), ())
    kept = ExactSum((Product(Round(A, how), B), Segment(C, 0, 2)))
    own = Deriving(campaign, truths, replace(unit, result=Round(kept, how)), rng, chain=False)
    own.keeping = 1.0
    if (found := own.node(kept, ())) is not None:
        campaign.call("rejoined", found)


def _problems(campaign: Campaign, truths: Truths, unit: Unit) -> None:
    call, model = campaign.call, Model("left", unit)
    other = Model("right", replace(unit, result=replace(unit.result, rounding=Rounding(format_named("e3m2")))))
    call("one_form", Problem(model, other, compare="value"), None, None)
    call("one_expression", Reordered(model, model, order=(0,)))
    alone = Model("alone", replace(unit, length=2, result=Round(C, unit.rounding)))
    twice = call("undiffering", Reordered(alone, alone, order=(0, 0)), "select", ENGINE)
    if twice is not None:
        call("every_order", alone, Inputs(), "bits", [twice])
    lemmas = [theorem for lemma in needed(unit, None, False) if (theorem := truths.theorem(lemma)) is not None]
    known = call("rises", unit, None, False, lemmas)
    if known is not None:
        call("does_not_fall", Monotonic(model, other, Inputs(), "value"), known)
    plan, unlike = plan_statements.plan("sum(fma, c)"), Plan.chained(model)
    by = format_named("ue1m1_none")
    scaled = Plan.chained(Model("scaled", replace(unit, scale=by, scale_block=1)))
    for left, right, length in ((plan, unlike, 1), (scaled, scaled, 1), (plan, plan, 240)):
        call("same_forms", left, right, AtLength(length), "joined")
    sides = [Model(name, side) for name, side in zip("pq", units_of("edges", plan, plan, AtLength(2)), strict=True)]
    for theorem in (twice, call("one_expression", Problem(*sides, compare="value"), check=False)):
        if theorem is not None:
            call("same_units", plan, plan, 2, theorem)


def _objects(campaign: Campaign, truths: Truths) -> None:
    """Objects that there are none of."""
    carrier = TermCarrier(maximum="relational")
    x, y = (carrier.symbol(name, 2) for name in "xy")
    basis = Basis(carrier, x.any().node)
    campaign.attempt("given", lambda: setattr(basis, "assumed", y.any().node))
    campaign.attempt("exhausted", lambda: Range(0, 0, 0, 0, 0))

    class Own(Problem):
        """No problem of the project's."""

    model = Model("fma", Unit(TINY, TINY, TINY, 1, Round(C, Rounding(TINY))))
    campaign.attempt("undiffering", lambda: Compared(Own(model, model)))
    carrier.maxima = {x.node: frozenset({(x + y).node})}
    campaign.call("defined", basis, x.node, [(x + y).node])
