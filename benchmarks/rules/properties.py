"""Instances of the rules that two sides agree, and that a model has a property: of units with few inputs.

The truth is that of benchmarks/statements.py: all inputs, all orders, all pairs of which one is larger.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks import statements
from benchmarks.rules.campaign import Campaign
from benchmarks.rules.facts import ENGINE
from benchmarks.rules.lemmas import Truths
from benchmarks.rules.results import even_unit, turned
from benchmarks.rules.rewriting import Plain, rewritten
from benchmarks.rules.units import RESULTS
from benchmarks.statements import Statement, Table
from mmaprobe.queries.kernel.datapath.ranges import Scope
from mmaprobe.queries.kernel.equality.rewriting import REWRITES
from mmaprobe.queries.kernel.errors import RuleError
from mmaprobe.queries.kernel.properties.rises import needed
from mmaprobe.queries.kernel.properties.together import HasProperty
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import Exact, Monotonic, Negated, Reordered, reorderings
from mmaprobe.queries.kernel.terms.same import Compared, SidesAgree
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.smtmodel.arithmetic.formats import format_named
from mmaprobe.smtmodel.base.errors import MmaprobeError, ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.nodes import Each, Element, ExactSum, FusedSum, Index, Node, Product, Repeat, Round, Running
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.units.unit import Unit

ROWS = 1 << 15  # inputs of a statement
RESTRICTIONS = (*(Inputs(),) * 4, Inputs(finite=True), Inputs(finite=True, normal=True), Inputs(nonnegative=True),
                Inputs(finite=True, nonzero=True), Inputs(zero_terms=(0,)))  # fmt: skip


# -- meanings


def table_of(model: Model, inputs: Inputs) -> Table | None:
    """All inputs that are admitted; None: too many."""
    columns = statements.columns_of(model, inputs)
    if float(np.prod([float(len(column)) for column in columns])) > ROWS:
        return None
    table = statements.grid_of(columns)
    return table[statements.counted(model, inputs, table)]


def broken(wanted: str, models: tuple[Model, ...], inputs: Inputs, compare: Any) -> int:
    """On how many inputs a statement is false."""
    table = table_of(models[0], inputs)
    if table is None or not len(table):
        return 0
    return statements.TRUTH[wanted](Statement(0, wanted, models, inputs, compare), table)


def sides_agree(goal: SidesAgree, rng: random.Random) -> Iterator[str]:
    problem = goal.problem
    model, inputs = problem.left, problem.inputs
    match problem:
        case Reordered():
            table = table_of(model, inputs)
            if table is None:
                return
            moved, k = table.copy(), model.length
            moved[:, : 2 * k] = table[:, [*problem.order, *(k + place for place in problem.order)]]
            sides = [(model, statements.results(model, side)) for side in (table, moved)]
            count = int(statements.different(sides[0], sides[1], problem.compare).sum())
        case Negated():
            count = broken("sign-symmetric", (model,), inputs, "value")
        case Monotonic():
            table = table_of(model, inputs)
            own = Statement(0, "monotonic", (model,), inputs)
            if table is None:
                return
            if problem.raised is None:
                count = statements.broken_addend(own, table)
            else:  # of the other products it is not asked
                count = _falls_along(own, table, problem.raised)
        case Exact():
            count = broken("exact", (model,), inputs, "value")
        case _:
            count = broken("equal", (model, problem.right), inputs, problem.compare)
    if count:
        yield f"{count} inputs show otherwise"


def _falls_along(own: Statement, table: Table, place: int) -> int:
    (model,) = own.models
    columns, k = statements.columns_of(model, own.inputs), model.length
    factors = ((model.a, place), (model.b, k + place))
    one, two = (statements.values_of(fmt)[np.array(columns[at])] for fmt, at in factors)
    with np.errstate(invalid="ignore"):
        values = np.multiply.outer(one, two).ravel()
    return statements._broken_along(own, table, [place, k + place], values)


def has_property(goal: HasProperty, rng: random.Random) -> Iterator[str]:
    if count := broken(goal.wanted, (goal.model,), goal.inputs, goal.compare):
        yield f"{goal.wanted} is false on {count} inputs"


MEANINGS = {SidesAgree: sides_agree, HasProperty: has_property}


# -- instances


def tiny_unit(rng: random.Random) -> Unit:
    """A unit of so few inputs that all of them are evaluated."""
    while True:
        shape = rng.choice((("e1m1_none", "e1m1_none", 1), ("e2m1", "e1m1_none", 1), ("e1m1_none", "ue1m1_none", 2),
                            ("binary3p2se", "e1m1_none", 1), ("e1m1_none", "ue1m1_none", 2),
                            ("ue1m1_none", "ue1m1_none", 3)))  # fmt: skip
        a, b = map(format_named, shape[:2])
        c = format_named(rng.choice(("e1m1_none", "e2m1", "binary4p2se") if shape[2] > 1 else (*RESULTS, "e2m1")))
        length = shape[2]
        maker = Plain(rng, length, {"a": a, "b": b, "c": c}, None)
        try:
            return Unit(a, b, c, length, maker.top() if rng.random() < 0.4 else _usual(rng, maker, length))
        except ParameterError:
            continue


def _usual(rng: random.Random, maker: Plain, length: int) -> Node:
    """All products and c, in one sum, in a chain of them, or as a range of terms."""
    products = [Product(Element("a", Index(k)), Element("b", Index(k))) for k in range(length)]
    kind, own = rng.random(), Index(0, ((9, 1),))
    if kind < 0.3:
        body = Round(maker.total((Running(9), Product(Element("a", own), Element("b", own)))), maker.rounding())
        return Repeat(9, range(length), Element("c"), body)
    if kind < 0.5:
        return Round(maker.total((Each(9, range(length), Product(Element("a", own), Element("b", own))), Element("c"))),
                     maker.rounding())  # fmt: skip
    return Round(maker.total((*products, Element("c"))), maker.rounding())


def _variant(unit: Unit, rng: random.Random) -> Unit:
    """A unit near one: the same, with terms in another order, or with one parameter changed."""
    kind = rng.random()
    result = unit.result
    if kind < 0.3:
        return replace(unit, reference="again")
    if kind < 0.6:

        def shuffled(node: Node, new: Node) -> Node:
            one_width = isinstance(new, FusedSum) and isinstance(new.fraction_bits, int)
            if not (isinstance(new, ExactSum) or one_width):
                return new
            assert isinstance(new, ExactSum | FusedSum)
            return replace(new, items=tuple(rng.sample(new.items, len(new.items))))

        return unit.rewritten(shuffled)
    node = rng.choice(list(walk(result)))
    every = list(node.variants())
    if not every:
        return unit
    changed = rng.choice(every)
    return unit.rewritten(lambda old, new: new.varied(changed) if old == node else new)


def sides(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """Two units, or one in two orders, whose expressions are the same in one way or another."""
    unit, call = tiny_unit(rng), campaign.call
    left = Model("left", unit)
    for _ in range(3):
        try:
            other = Model("right", _variant(unit, rng))
            problem = Problem(left, other, rng.choice(RESTRICTIONS), rng.choice(("bits", "bits", "value")))
        except MmaprobeError:
            continue
        call("one_expression", problem)
        theorems = [_same(campaign, truths, own, rng) for own in (unit, other.unit)]
        call("one_form", problem, None, None)
        call("one_form", problem, *theorems)
        if rng.random() < 0.2:
            call("one_form", problem, *reversed(theorems))
        if rng.random() < 0.1:
            call("one_expression", Problem(left, Model("wide", replace(unit, length=unit.length + 1))))
        if rng.random() < 0.6:
            call("undiffering", problem, rng.choice(("select", "relational")), ENGINE)
            _agreed(campaign, problem, rng)


def _same(campaign: Campaign, truths: Truths, unit: Unit, rng: random.Random) -> Theorem | None:
    """That a unit computes as some other expression."""
    for name in rng.sample(list(REWRITES), len(REWRITES)):
        theorem = rewritten(campaign, truths, Scope.of(unit), unit.result, name, rng)
        if theorem is not None:
            return campaign.call("results_alike", unit, theorem)
    return None


def _agreed(campaign: Campaign, problem: Problem, rng: random.Random) -> None:
    """That two sides agree by a fact about their terms, evaluated on all values of the inputs."""
    compared = Compared(problem, "select")
    admitted = campaign.call("given", compared)
    found = None if admitted is None else campaign.call("follows", compared, compared.never, [admitted], [], ENGINE)
    if found is not None:
        campaign.call("agreed", compared, found)
        campaign.call("agreed", Compared(problem, "select"), found)
    if admitted is not None:
        campaign.call("agreed", compared, admitted)


def orders(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """Orders of the products, one by one, and then all of them; and the rise of one product from that of another."""
    unit, call = tiny_unit(rng), campaign.call
    model, inputs = Model("unit", unit), rng.choice(RESTRICTIONS)
    compare = rng.choice(("bits", "bits", "value"))
    known: list[Theorem] = []
    every = [problem.order for problem in reorderings(model)]
    every += [tuple(rng.sample(range(unit.length), unit.length))]
    if rng.random() < 0.1:
        every.append((0,) * unit.length)
    for order in every:
        try:
            problem = Reordered(model, model, inputs, compare, order=order)
        except MmaprobeError:
            continue
        found = call("one_sum", problem)
        known += [] if found is None else [found]
        if rng.random() < 0.1:
            other = Model("other", _variant(unit, rng))
            call("one_sum", Reordered(model, other, inputs, "value", order=order))
    some = known if rng.random() < 0.8 else known[1:]
    call("every_order", model, inputs if rng.random() < 0.9 else Inputs(), compare, some)
    call("each_part", rng.choice(("order-independent", "sign-symmetric", "monotonic", "nonsense")), model, inputs,
         compare, some)  # fmt: skip
    _raised(campaign, truths, model, inputs, known, rng)


def _raised(
    campaign: Campaign, truths: Truths, model: Model, inputs: Inputs, known: Sequence[Theorem], rng: random.Random
) -> None:
    """Monotonic in one operand after another, and as a whole."""
    call, parts = campaign.call, list[Theorem]()
    for raised in (None, *range(model.length)):
        try:
            problem = Monotonic(model, model, inputs, raised=raised)
        except MmaprobeError:
            continue
        found = _does_not_fall(campaign, truths, problem, rng)
        if found is None and parts and raised is not None:
            found = call("raised_elsewhere", problem, rng.choice(parts), known)
        if found is not None:
            parts.append(found)
            place = rng.randrange(model.length)
            try:
                elsewhere = Monotonic(model, model, inputs, raised=place)
            except MmaprobeError:
                continue
            call("raised_elsewhere", elsewhere, found, known if rng.random() < 0.8 else known[1:])
            if known:
                call("raised_elsewhere", elsewhere, rng.choice(known), known)
    for wanted in ("monotonic", "monotonic-addend", "monotonic-product"):
        call("each_part", wanted, model, inputs, "bits", parts)


def _does_not_fall(campaign: Campaign, truths: Truths, problem: Monotonic, rng: random.Random) -> Theorem | None:
    unit, normal = problem.left.unit, rng.random() < 0.3
    try:
        lemmas = needed(unit, problem.raised, normal)
    except (RuleError, ParameterError):
        return None
    proved = [theorem for lemma in lemmas if (theorem := truths.theorem(lemma)) is not None]
    found = campaign.call("rises", unit, problem.raised, normal, proved)
    if found is None:
        return None
    if rng.random() < 0.15:
        try:
            campaign.call("does_not_fall", replace(problem, raised=0), found)
        except MmaprobeError:
            return None
    return campaign.call("does_not_fall", problem, found)


def negations(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """Symmetry in the signs, from that of the result's node."""
    unit = tiny_unit(rng) if rng.random() < 0.7 else even_unit(rng)
    known = turned(campaign, truths, unit)
    try:
        model = Model("unit", unit)
        problem = Negated(model, model, rng.choice(RESTRICTIONS), rng.choice(("value", "value", "bits")))
    except MmaprobeError:
        return
    found = None if known is None else campaign.call("negates", problem, known)
    campaign.call("each_part", "sign-symmetric", model, problem.inputs, "value", [] if found is None else [found])
