"""Arguments that random units have seldom: each fails a side condition, or nearly."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from benchmarks.rules.campaign import Campaign
from benchmarks.rules.enclosures import Deriving
from benchmarks.rules.lemmas import Truths
from benchmarks.rules.units import FACTORS, RESULTS
from mmaprobe.queries.kernel.errors import RuleError
from mmaprobe.queries.kernel.lemmas import AlignmentLoses
from mmaprobe.queries.kernel.opposite import lemmas_of
from mmaprobe.queries.kernel.problem import Problem
from mmaprobe.queries.kernel.ranges import Scope
from mmaprobe.queries.kernel.rises import needed
from mmaprobe.queries.kernel.statements import Monotonic
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.base.errors import MmaprobeError, ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.nodes import (
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
)
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit

A, B, C = Element("a", Index(0)), Element("b", Index(0)), Element("c")
AB = Product(A, B)
WIDE = Format("wide", 8, 23, 127, "ieee")
BARE = Format("bare", 2, 1, 1, "none", subnormals=False)


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
        lambda: loop(Product(running, running), AB),
        lambda: loop(running, running, AB),
        lambda: loop(Product(running, A), AB, start=C),
        lambda: Round(FusedSum((Cut(inner, 3), AB), bits), how),
        lambda: Round(FusedSum((inner, AB), bits, reach=(2, None)), how),
        lambda: Round(FusedSum((Cut(inner, 3), AB), bits, reach=(2, None)), how),
        lambda: Round(GridSum((Cut(inner, 3), AB), (2, 3)), how),
        lambda: Round(GridSum((inner, AB), (2, 3), reach=(1, 2)), how),
        lambda: Round(ExactSum((Segment(C, 0, 2), AB)), how),
        lambda: Round(ExactSum((Product(Segment(C, 0, 2), A),)), how),
        lambda: Round(Product(FusedSum((AB, C, AB), 4), A, True), how),
        lambda: Round(Product(ExactSum((AB, C)), A, True), how),
        lambda: Round(inner, Rounding(BARE)),
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
        if rng.random() < 0.03:
            formats[:2] = [WIDE, WIDE]
        try:
            found.append(Unit(formats[0], formats[1], formats[2], 1, result, scale, 1 if scale else 0))
        except (ParameterError, AssertionError):
            continue
    return found


def instances(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """All that may be said of these units."""
    for unit in rng.sample(units(rng), 6):
        small = WIDE not in (unit.a, unit.b)
        for chain in (False, True) if small else ():
            own = Deriving(campaign, truths, unit, rng, chain)
            own.mixing = rng.random() < 0.3
            top = own.node(unit.result, ())
            found = None if top is None else campaign.call("chained", top)
            if found is not None:
                campaign.call("closed", found)
                campaign.call("carried", found, rng.choice((0, 1, 2)))
        _ordered(campaign, truths, unit)
        if small:
            _turned(campaign, truths, unit)
    _others(campaign, truths, rng)


def _ordered(campaign: Campaign, truths: Truths, unit: Unit) -> None:
    for raised in (None, 0):
        try:
            lemmas = needed(unit, raised, False)
        except (RuleError, ParameterError):
            campaign.call("rises", unit, raised, False, ())
            continue
        proved = [theorem for lemma in lemmas if (theorem := truths.theorem(lemma)) is not None]
        campaign.call("rises", unit, raised, False, proved)


def _turned(campaign: Campaign, truths: Truths, unit: Unit) -> None:
    known: dict[Node, Theorem] = {}
    for node in walk(unit.result):
        if all(operand in known for operand in node.operands):
            lemmas = [theorem for lemma in lemmas_of(node) if (theorem := truths.theorem(lemma)) is not None]
            found = campaign.call("turned", unit, node, [known[operand] for operand in node.operands], lemmas)
            if found is not None:
                known[node] = found
    own = Repeat(3, range(2), Running(3), Round(ExactSum((Running(3), AB)), Rounding(unit.d)))
    start = campaign.call("turned", unit, Running(3), (), ())
    if start is not None:
        campaign.call("turned", unit, own, [start, start], ())
        campaign.call("turned", unit, Repeat(3, range(2), Running(3), Running(3)), [start, start], ())


def _others(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """Rules about lemmas, scopes and problems."""
    campaign.call("exhausted", AlignmentLoses(9, 3, 3, "toward_zero"), check=False)
    fmt, inner = format_named("e1m1_none"), ExactSum((AB, C))
    unit = Unit(fmt, fmt, fmt, 1, Round(inner, Rounding(format_named("e3m2_ieee"))))
    other = replace(unit, result=Round(inner, Rounding(format_named("e3m2"))))
    scope = Scope.of(unit)
    same = campaign.call("rewritten", scope, unit.result, "sign of a zero that nothing reads", ())
    if same is not None:
        campaign.call("congruent", scope, Gate(AB), [same])
        campaign.call("congruent", scope, Repeat(3, range(2), C, unit.result), [None, same])
        campaign.call("congruent", scope, Repeat(3, range(2), unit.result, Relu(Running(3))), [same, None])
        campaign.call("results_alike", unit, same)
    left, right = Model("left", unit), Model("right", other)
    try:
        campaign.call("one_form", Problem(left, right, compare="value"), None, None)
        lemmas = [theorem for lemma in needed(unit, None, False) if (theorem := truths.theorem(lemma)) is not None]
        known = campaign.call("rises", unit, None, False, lemmas)
        if known is not None:
            campaign.call("does_not_fall", Monotonic(left, right, Inputs(), "value"), known)
    except MmaprobeError:
        return
