"""What goals about nodes mean, on inputs: written from the docstring of each goal, not from the rules.

A meaning is a function of a goal and a source of chance that gives the reasons why the goal is false (none: no input
was found on which it is).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np

from benchmarks.rules.numbers import (
    FINITE,
    NOT_A_NUMBER,
    Evaluation,
    Flags,
    Lanes,
    Patterns,
    Value,
    checked,
    formats_of,
    number,
    table_of,
)
from benchmarks.rules.units import Window, reads, window
from mmaprobe.queries.kernel.bounds.enclosures import CHAIN, Assumption, Enclosed, Facts, KeptRounding
from mmaprobe.queries.kernel.bounds.forms import Factor, Form
from mmaprobe.queries.kernel.bounds.induction import Carried, Chained, Closed
from mmaprobe.queries.kernel.bounds.sums import FromZero
from mmaprobe.queries.kernel.bounds.table9 import BoundInUnits, SumInUnits
from mmaprobe.queries.kernel.datapath.ranges import Held
from mmaprobe.queries.kernel.equality.rewriting import Alike, SameResults
from mmaprobe.queries.kernel.properties.opposite import Turns
from mmaprobe.queries.kernel.properties.rises import Rises
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.nodes import (
    Cancelling,
    Constant,
    Counting,
    Cut,
    Each,
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
    Signed,
    SortedSum,
)
from mmaprobe.smtmodel.nodes.known import Known
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.units.unit import Unit
from tests.oracles import oracle

Loops = dict[int, tuple[int, Value | None]]
Meaning = Callable[[Any, random.Random], Iterator[str]]
SLACK = 2.0**-40  # of a bound, whose coefficients binary64 may round: what is compared has far fewer bits
HUGE = Fraction(2) ** 1000  # of ends of intervals: none of the numbers compared is as large


# -- exact values


@dataclass
class Exact:
    """The values of expressions without rounding, inputs as the unit reads them. `so_far`: that of the result so far of
    each loop around; `addend`: that of c, where it is the previous result of a chain; `kept`: roundings that count with
    their own value."""

    evaluation: Evaluation
    so_far: Mapping[int, Lanes] = field(default_factory=dict)
    addend: Lanes | None = None
    kept: frozenset[Node] = frozenset()

    def of(self, node: Node, loops: Loops) -> Lanes:
        return checked(self._of(node, loops))

    def _of(self, node: Node, loops: Loops) -> Lanes:
        match node:
            case Element(operand="c") if self.addend is not None:
                return self.addend
            case Element() | Segment() | Literal() | Constant():
                return self.evaluation.value(node, loops).exact
            case Round() if node in self.kept:
                return self.evaluation.value(node, loops).exact
            case Product() | Scale():
                found = np.ones(self.evaluation.count)
                for operand in node.operands:
                    found = found * self.of(operand, loops)
                return found
            case Gate() | Cancelling() | Counting() | Signed() | Cut() | Round():
                return self.of(node.term, loops)
            case Relu():
                return np.maximum(self.of(node.term, loops), 0.0)
            case Each():
                every = [{**loops, node.level: (place, None)} for place in node.places]
                return np.sum([self.of(node.body, own) for own in every], axis=0)
            case ExactSum() | FusedSum() | GridSum() | SortedSum():
                return np.sum([self.of(item, loops) for item in node.items], axis=0)
            case Running():
                return self.so_far[node.level]
            case Repeat():
                value, found = self.evaluation.value(node.start, loops), self.of(node.start, loops)
                for place in node.places:
                    own: Loops = {**loops, node.level: (place, value)}
                    inner = replace(self, so_far={**self.so_far, node.level: found})
                    value, found = self.evaluation.value(node.body, own), inner.of(node.body, own)
                return found
        raise TypeError(f"no exact value: {node!r}")


# -- forms


class Magnitudes:
    """The magnitudes of which forms are made, on every input. `largest`: of a and b they are those of any element."""

    def __init__(
        self, evaluation: Evaluation, loops: Loops, others: Mapping[tuple[str, int], Lanes], largest: bool = False
    ) -> None:
        self.evaluation, self.loops, self.others, self.largest = evaluation, loops, others, largest

    def of(self, form: Form) -> Lanes:
        found = np.zeros(self.evaluation.count)
        for atom, value in form.parts.items():
            every = [prod([self._factor(factor) for factor in item], start=np.ones(self.evaluation.count))
                     for item in atom]  # fmt: skip
            found = found + float(value) * np.max(every, axis=0)
        return found * (1 + SLACK)

    def _factor(self, factor: Factor) -> Lanes:
        if (factor.name, factor.offset) in self.others:
            return self.others[factor.name, factor.offset]
        if self.largest and factor.name in ("a", "b"):
            inputs, fmt = self.evaluation.inputs, self.evaluation.formats[factor.name]
            sides = [magnitude(fmt, side, factor.raised) for (name, _), side in inputs.items() if name == factor.name]
            return np.max([np.zeros(self.evaluation.count), *sides], axis=0)
        fmt, place = self.evaluation.formats.get(factor.name), place_at(factor.offset, factor.factors, self.loops)
        if fmt is None or (factor.name, place) not in self.evaluation.inputs:  # of nothing here: it may be zero
            return np.zeros(self.evaluation.count)
        return magnitude(fmt, self.evaluation.inputs[factor.name, place], factor.raised)


def place_at(offset: int, factors: Iterable[tuple[int, int]], loops: Mapping[int, Any]) -> int | None:
    """The place of an element; None where a loop variable has no value."""
    if any(level not in loops for level, _ in factors):
        return None
    return offset + sum(by * loops[level][0] for level, by in factors)


def magnitude(fmt: Format, patterns: Patterns, raised: bool) -> Lanes:
    """The magnitudes of numbers of a format; raised, of a subnormal one the smallest normal number."""
    size = np.abs(table_of(fmt)[1][patterns])
    least = 2.0 ** oracle.FORMATS[fmt.name].emin
    return np.where((size > 0) & (size < least), least, size) if raised else size


def named_in(form: Form | None) -> set[tuple[str, int, tuple[tuple[int, int], ...]]]:
    parts = {} if form is None else form.parts
    return {(factor.name, factor.offset, factor.factors) for atom in parts for item in atom for factor in item}


# -- the error of a node


@dataclass
class Situation:
    """A node of a unit on a window of inputs: for values of loop variables, and results so far that are assumed."""

    window: Window
    loops: Loops
    exact: Exact
    others: dict[tuple[str, int], Lanes]
    finite: Flags  # the results so far are numbers

    @property
    def evaluation(self) -> Evaluation:
        return self.window.evaluation

    def magnitudes(self, largest: bool = False) -> Magnitudes:
        return Magnitudes(self.evaluation, self.loops, self.others, largest)


def places_of_levels(unit: Unit) -> dict[int, list[int]]:
    """The places of every loop of a unit, by level."""
    found: dict[int, list[int]] = {}
    for node in walk(unit.result):
        if isinstance(node, Repeat | Each):
            found[node.level] = sorted({*found.get(node.level, []), *node.places})
    return found


def around(unit: Unit, node: Node, places: Mapping[int, int], rng: random.Random) -> list[dict[int, int]]:
    """Values of the loop variables on which a node depends: these, and all of the others."""
    levels, known = sorted(node.free - set(places)), places_of_levels(unit)
    every = [{**places, **dict(zip(levels, own, strict=True))}
             for own in product(*(known.get(level, [0]) for level in levels))]  # fmt: skip
    return rng.sample(every, min(3, len(every)))


def situations(
    unit: Unit, node: Node, places: Mapping[int, int], assumed: Mapping[int, frozenset[Format]], kept: frozenset[Node],
    forms: list[Form | None], rng: random.Random, whole: bool = False,
) -> Iterator[Situation]:  # fmt: skip
    """A node on its inputs, with any results so far of the formats assumed (`CHAIN`: addends), near any exact ones.
    `whole`: the exact result of the unit counts, too."""
    formats = formats_of(unit)
    for own in around(unit, node, places, rng):
        elements = reads([node, unit.result] if whole else [node], own)
        for name, offset, factors in set().union(*map(named_in, forms)):
            place = place_at(offset, factors, {level: (at,) for level, at in own.items()})
            if name in formats and place is not None:
                elements.add((name, place))
        levels = {**{level: frozenset[Format]() for level in node.free if Running(level) in walk(node)}, **assumed}
        if CHAIN in assumed:
            elements.add(("c", 0))
        values = {level: np.concatenate([np.stack([np.full(1 << fmt.width, k), np.arange(1 << fmt.width)])
                                         for k, fmt in enumerate(sorted(held, key=str))], axis=1)
                  for level, held in levels.items() if level != CHAIN and held}  # fmt: skip
        found = window(formats, elements, rng, [side.shape[1] for side in values.values()])
        evaluation, drawn = found.evaluation, np.random.default_rng(rng.getrandbits(32))
        if CHAIN in assumed and not assumed[CHAIN]:  # the addend is zero, of either sign
            evaluation.inputs["c", 0] = evaluation.inputs["c", 0] & np.uint64(unit.c.sign_bit)  # type: ignore[index]
        loops: Loops = {level: (place, None) for level, place in own.items()}
        others, so_far, finite = dict[tuple[str, int], Lanes](), dict[int, Lanes](), np.ones(found.count, dtype=bool)
        addend = None
        for level in levels:
            if level == CHAIN:
                value = number(unit.c, evaluation.inputs["c", 0])
            elif level in values:
                value = any_number(sorted(levels[level], key=str), values[level][:, found.extra.pop(0)])
            else:  # no format: +0 alone
                value = number(unit.c, np.zeros(found.count, dtype=np.uint64))
            off = drawn.integers(-8, 9, found.count) * 2.0 ** drawn.integers(-5, 2) * (drawn.random(found.count) < 0.6)
            off = off * (level not in assumed or bool(assumed[level]))  # of a zero that is assumed x is zero, too
            exact = np.where(value.finite, value.exact + off, 0.0)
            finite = finite & value.finite
            others |= {("error", level): np.abs(off), ("size", level): np.abs(exact)}
            if level == CHAIN:
                addend = exact
            else:
                loops[level] = (loops.get(level, (0, None))[0], value)
                so_far[level] = exact
        yield Situation(found, loops, Exact(evaluation, so_far, addend, kept), others, finite)


def any_number(formats: list[Format], drawn: Patterns) -> Value:
    """Numbers of several formats: the format's position, and the pattern, of each."""
    every = [number(fmt, np.where(drawn[0] == k, drawn[1], 0).astype(np.uint64)) for k, fmt in enumerate(formats)]
    found = every[0]
    for k, value in enumerate(every[1:], 1):
        own = drawn[0] == k
        sides = {name: np.where(own, getattr(value, name), getattr(found, name))
                 for name in ("kind", "exact", "exponent", "is_zero", "every", "some", "single", "fault")}  # fmt: skip
        found = Value(**sides)
    return replace(found, patterns=None)


def enclosed(goal: Enclosed, rng: random.Random, largest: bool = False) -> Iterator[str]:
    """`largest`: magnitudes of a and b are those of the largest elements."""
    assumed = {one.level: one.formats for one in goal.assuming if isinstance(one, Assumption)}
    kept = frozenset(one.node for one in goal.assuming if isinstance(one, KeptRounding))
    facts, places = goal.facts, dict(goal.places)
    assert isinstance(goal.unit, Unit)
    forms = [facts.low, facts.high, facts.size, facts.weight]
    whole = any(name == "exact" for name, *_ in set().union(*map(named_in, forms)))
    for one in situations(goal.unit, goal.node, places, assumed, kept, forms, rng, whole):
        if whole:
            one.others["exact", 0] = np.abs(one.exact.of(goal.unit.result, one.loops))
        value, exact = one.evaluation.value(goal.node, one.loops), one.exact.of(goal.node, one.loops)
        yield from facts_fail(facts, value, exact, one.magnitudes(largest), ~value.fault & value.finite & one.finite)
        if goal.provided:
            yield from overflows(goal, one, value, rng)


def overflows(goal: Enclosed, one: Situation, value: Value, rng: random.Random) -> Iterator[str]:
    """Why a rounding overflows although all conditions that none does are met: on a few inputs."""
    inputs, known = one.evaluation.inputs, places_of_levels(goal.unit)  # type: ignore[arg-type]
    finite = [number(one.evaluation.formats[name], side).finite for (name, _), side in inputs.items()]
    counts = np.logical_and.reduce([one.finite, *finite])
    bad, rows = np.flatnonzero(counts & (value.fault | ~value.finite)), np.flatnonzero(counts)
    for row in {*rng.sample(bad.tolist(), min(len(bad), 6)), *rng.sample(rows.tolist(), min(len(rows), 2))}:

        def size(factor: Factor, row: int = row) -> Fraction:
            """The largest, whatever the places of loops are that have none."""
            if (factor.name, factor.offset) in one.others:
                return Fraction(float(one.others[factor.name, factor.offset][row]))
            places = [[one.loops[level][0]] if level in one.loops else known[level] for level, _ in factor.factors]
            every = [factor.offset + sum(by * place for (_, by), place in zip(factor.factors, own, strict=True))
                     for own in product(*places)]  # fmt: skip
            fmt = one.evaluation.formats[factor.name]
            return max(Fraction(float(magnitude(fmt, inputs[factor.name, place][[row]], factor.raised)[0]))
                       for place in every)  # fmt: skip

        try:
            met = all(condition.is_met(size) for condition in goal.provided)
        except KeyError:  # the exact result of the unit, or what the node does not read, is not known here
            continue
        if met and (value.fault[row] or not value.finite[row]):
            yield f"something overflows, input {row}, where no condition fails"


def facts_fail(facts: Facts, value: Value, exact: Lanes, sizes: Magnitudes, counts: Flags) -> Iterator[str]:
    """Why facts about a value are false where it counts."""
    v, x = value.exact, exact
    wrong = {
        "v - x < -low": v - x < -sizes.of(facts.low), "v - x > high": v - x > sizes.of(facts.high),
        "|x| > size": np.abs(x) > sizes.of(facts.size),
    }  # fmt: skip
    aligned, e = ~value.is_zero, value.exponent
    if facts.weight is not None:
        wrong["2^e > weight"] = aligned & (np.ldexp(1.0, np.minimum(e, 100)) > sizes.of(facts.weight))
    wrong |= known_fails(facts.known, value)
    for name, where in wrong.items():
        if (where & counts).any():
            at = int(np.argmax(where & counts))
            yield f"{name}: v = {v[at]}, x = {x[at]}, e = {e[at]}"


def known_fails(known: Known, value: Value) -> dict[str, Flags]:
    """Where what is said to be known of a value is false, by what is said."""
    v, aligned, e, wrong = value.exact, ~value.is_zero, value.exponent, dict[str, Flags]()
    if known.least is not None:
        wrong["e < least"] = aligned & (e < known.least)
    if known.most is not None:
        wrong["e > most"] = aligned & (e > known.most)
    if known.head is not None:
        wrong["|v| > head * 2^e"] = aligned & (np.abs(v) > float(known.head) * np.ldexp(1.0, np.maximum(e, -1000)))
    if known.digits is not None:
        wrong["digits"] = aligned & ~is_whole(np.ldexp(v, np.minimum(known.digits - e, 900)))
    if known.grid is not None:
        wrong["grid"] = ~is_whole(np.ldexp(v, -known.grid))
    if known.bits is not None:
        odd = np.where(v != 0, np.frexp(v)[0], 0.0)  # from 1/2 to below 1
        wrong["bits"] = ~is_whole(np.ldexp(odd, known.bits))
    if known.formats is not None:
        wrong["formats"] = ~np.logical_or.reduce([v == 0, *(np.isin(v, finite_numbers(fmt)) for fmt in known.formats)])
    if known.interval is not None:
        low, high = (float(max(-HUGE, min(end, HUGE))) for end in known.interval)
        wrong["outside of its interval"] = (v < low) | (v > high) | (low > 0) | (high < 0)
    if known.never_tiny and known.formats:
        tiny = min(fmt.emin for fmt in known.formats)
        wrong["subnormal"] = (v != 0) & (np.abs(v) < np.ldexp(1.0, tiny))
    if known.zero:
        wrong["not zero"] = v != 0
    if known.never_minus:
        wrong["-0"] = (v == 0) & value.every
    if known.agrees:
        wrong["above zero"] = value.every & ((v > 0) | ((v == 0) & ~value.is_zero))
    if known.positive:
        wrong["zero of negative numbers"] = (v == 0) & value.every
    return wrong


def finite_numbers(fmt: Format) -> Lanes:
    kind, exact, *_ = table_of(fmt)
    return exact[kind == FINITE]


def is_whole(x: Lanes) -> Flags:
    return np.asarray(x == np.rint(x), dtype=bool)


# -- chains


def chained(goal: Chained, rng: random.Random) -> Iterator[str]:
    if not is_next(goal.unit):
        yield "a result is no addend"
        return
    unit, step = goal.unit, goal.step
    for one in situations(unit, unit.result, {}, {CHAIN: frozenset({unit.c})}, frozenset(), [step.own, step.size], rng):
        value, exact = one.evaluation.value(unit.result, {}), one.exact.of(unit.result, {})
        counts, sizes = ~value.fault & value.finite & one.finite, one.magnitudes()
        error, size = one.others["error", CHAIN], one.others["size", CHAIN]
        after = float(step.growth) * error + float(step.part) * size + sizes.of(step.own)
        if (counts & (np.abs(value.exact - exact) > after * (1 + SLACK))).any():
            yield "an instruction adds more to the error"
        if (counts & (np.abs(exact) > (size + sizes.of(step.size)) * (1 + SLACK))).any():
            yield "an instruction adds more to the size"


def from_zero(goal: FromZero, rng: random.Random) -> Iterator[str]:
    for one in situations(
        goal.unit, goal.unit.result, {}, {CHAIN: frozenset()}, frozenset(), [goal.own, goal.size], rng
    ):
        value, exact = one.evaluation.value(goal.unit.result, {}), one.exact.of(goal.unit.result, {})
        counts, sizes = ~value.fault & value.finite & one.finite, one.magnitudes()
        if (counts & (np.abs(value.exact - exact) > sizes.of(goal.own))).any():
            yield "an instruction from zero errs by more"
        if (counts & (np.abs(exact) > sizes.of(goal.size))).any():
            yield "an instruction from zero is larger"


@dataclass
class Instructions:
    """A chain of instructions: every input of all, the last result, its exact value, and where that counts."""

    evaluation: Evaluation
    result: Lanes
    exact: Lanes
    counts: Flags


def is_next(unit: Unit) -> bool:
    """Whether every result is, as a pattern, the same number as an addend."""
    if unit.d.width != unit.c.width:
        return False
    (kind, exact, *_), (other_kind, other, *_) = map(table_of, (unit.d, unit.c))
    return bool(((kind == other_kind) & (exact == other)).all())


def run_chain(unit: Unit, count: int, rng: random.Random) -> Instructions:
    """The instructions of a chain: element k of instruction i is element i * length + k."""
    every = reads([unit.result], {}) | {(name, k) for name in ("a", "b") for k in range(unit.length)} | {("c", 0)}
    strides = {"a": unit.length, "b": unit.length, "scale_a": unit.scales, "scale_b": unit.scales, "c": 1}
    rows = {(name, k + i * strides[name]) for name, k in every for i in range(count if name != "c" else 1)}
    whole = window(formats_of(unit), rows, rng).evaluation
    patterns = whole.inputs["c", 0]
    exact, counts = number(unit.c, patterns).exact, number(unit.c, patterns).finite
    for i in range(count):
        own = {(name, k): whole.inputs[name, k + i * strides[name]] for name, k in every if name != "c"}
        step = Evaluation(whole.formats, {**own, ("c", 0): patterns}, whole.count)
        value = step.value(unit.result, {})
        exact = Exact(step, {}, exact).of(unit.result, {})
        counts = counts & ~value.fault & value.finite
        assert value.patterns is not None
        patterns = value.patterns
    return Instructions(whole, value.exact, exact, counts)


def carried(goal: Carried, rng: random.Random, largest: bool = False) -> Iterator[str]:
    if not is_next(goal.unit):
        yield "a result is no addend"
        return
    if goal.count > 4:
        return
    chain = run_chain(goal.unit, goal.count, rng)
    bound = Magnitudes(chain.evaluation, {}, {}, largest).of(goal.error)
    if (chain.counts & (np.abs(chain.result - chain.exact) > bound)).any():
        yield f"after {goal.count} instructions the error is larger"


def closed(goal: Closed, rng: random.Random) -> Iterator[str]:
    if not is_next(goal.unit):
        yield "a result is no addend"
        return
    unit, strides = goal.unit, {"a": goal.unit.length, "b": goal.unit.length}
    for count in (1, 2, 3):
        chain = run_chain(unit, count, rng)
        sizes = Magnitudes(chain.evaluation, {}, {})
        first = magnitude(unit.c, chain.evaluation.inputs["c", 0], False) * float(goal.part) + float(goal.fixed)
        products = [sizes.of(goal.products.renamed(
            lambda factor, i=i: factor._replace(offset=factor.offset + i * strides.get(factor.name, unit.scales))))
            for i in range(count)]  # fmt: skip
        times = sum(float(goal.growth) ** k for k in range(count))
        bound = times * (first + np.sum(products, axis=0)) * (1 + SLACK)
        if (chain.counts & (np.abs(chain.result - chain.exact) > bound)).any():
            yield f"after {count} instructions the error is larger"


# -- units of an alignment


def _alignment(unit: Unit, rng: random.Random) -> tuple[Window, FusedSum, Lanes, Flags]:
    """All inputs of a unit of one sum, the sum, its unit u, and where inputs are finite."""
    assert isinstance(unit.result, Round)
    total = unit.result.term
    assert isinstance(total, FusedSum)
    assert isinstance(total.fraction_bits, int)
    found = window(formats_of(unit), reads([unit.result], {}), rng)
    terms = [term for item in total.items for term in found.evaluation.terms(item, {})]
    top = np.max([np.where(term.is_zero, -1000, term.exponent) for term in terms], axis=0)
    finite = np.logical_and.reduce([number(found.evaluation.formats[name], side).finite
                                    for (name, _), side in found.evaluation.inputs.items()])  # fmt: skip
    return found, total, np.ldexp(1.0, np.maximum(top - total.fraction_bits, -900)), finite


def sum_in_units(goal: SumInUnits, rng: random.Random) -> Iterator[str]:
    found, total, unit, finite = _alignment(goal.unit, rng)
    value, exact = found.evaluation.value(total, {}).exact, Exact(found.evaluation).of(total, {})
    if (finite & (np.abs(value - exact) > goal.lost * unit)).any():
        yield "the sum loses more"
    if (finite & ~is_whole(value / unit)).any():
        yield "the sum is no multiple of u"


def bound_in_units(goal: BoundInUnits, rng: random.Random) -> Iterator[str]:
    found, total, unit, finite = _alignment(goal.unit, rng)
    value, exact = found.evaluation.value(goal.unit.result, {}), Exact(found.evaluation).of(total, {})
    fmt = oracle.FORMATS[goal.unit.d.name]
    d = np.where(value.finite, value.exact, 0.0)
    exponent = np.maximum(np.where(d != 0, np.frexp(d)[1] - 1, fmt.emin), fmt.emin)
    ulp = np.ldexp(1.0, exponent - fmt.mantissa_bits)
    if (finite & ~value.finite).any():
        yield "d is not finite"
    most = goal.units * unit + (ulp if goal.apart else np.maximum(unit, ulp))
    if (finite & value.finite & (np.abs(d - exact) > most)).any():
        yield "the bound in units is exceeded"


# -- nodes that compute alike


def alike_window(
    formats: Mapping[str, Format], nodes: list[Node], held: Mapping[int, Held], rng: random.Random
) -> tuple[Window, Loops]:
    """Nodes on their inputs, for some values of loop variables, and any results so far of the kinds known."""
    levels = sorted(frozenset[int]().union(*(node.free for node in nodes)) | set(held))
    places = {level: rng.randrange(2) for level in levels}
    read = {part.level for node in nodes for part in walk(node) if isinstance(part, Running) and part.level in levels}
    held = {**{level: Held(frozenset((formats["c"],))) for level in read}, **held}  # of others any number
    values = {}
    for level, kind in held.items():
        every = [(k, pattern) for k, fmt in enumerate(sorted(kind.formats, key=str))
                 for pattern in range(1 << fmt.width) if _is_held(fmt, pattern, kind)]  # fmt: skip
        values[level] = np.array(every or [(0, 0)]).T
    found = window(formats, reads(nodes, places), rng, [side.shape[1] for side in values.values()])
    loops: Loops = {level: (place, None) for level, place in places.items()}
    for level, side in values.items():
        drawn, own = side[:, found.extra.pop(0)], sorted(held[level].formats, key=str)
        zero = number(formats["c"], np.zeros(found.count, dtype=np.uint64))
        loops[level] = (places[level], any_number(own, drawn) if own else replace(zero, patterns=None))
    return found, loops


def _is_held(fmt: Format, pattern: int, held: Held) -> bool:
    kind, exact, *_ = (side[pattern] for side in table_of(fmt))
    if kind != FINITE:
        return True
    minus = exact == 0 and pattern >> fmt.width - 1 == 1
    tiny = 0 < abs(exact) < 2.0**fmt.emin
    whole = held.unit is None or float(np.ldexp(exact, -held.unit)).is_integer()
    return whole and not (held.never_minus and minus) and not (held.never_tiny and tiny)


def alike(goal: Alike, rng: random.Random) -> Iterator[str]:
    found, loops = alike_window(dict(goal.scope.formats), [goal.node, goal.other], dict(goal.scope.held), rng)
    sides = [list(found.evaluation.terms(node, loops)) for node in (goal.node, goal.other)]
    if len(sides[0]) != len(sides[1]):
        yield "other numbers of terms"
    for one, two in zip(*sides, strict=False):
        yield from unlike(one, two, goal.counting, goal.signs)


def unlike(one: Value, two: Value, counting: bool, signs: bool) -> Iterator[str]:
    """Why two nodes do not compute alike."""
    finite = one.finite & two.finite
    infinite = ~finite & (one.kind != NOT_A_NUMBER)
    wrong = {
        "kinds": one.kind != two.kind, "infinities": infinite & (one.exact != two.exact),
        "numbers": finite & (one.exact != two.exact), "zeros that count": finite & (one.is_zero != two.is_zero),
    }  # fmt: skip
    zero = finite & (one.exact == 0) & (two.exact == 0)
    if signs:
        wrong["signs of zeros"] = zero & ((one.every != two.every) | (one.some != two.some))
        wrong["signs of single zeros"] = zero & (one.single != two.single) & (one.every | two.every)
    if counting:
        wrong["exponents"] = finite & ~one.is_zero & ~two.is_zero & (one.exponent != two.exponent)
    for name, where in wrong.items():
        if where.any():
            at = int(np.argmax(where))
            yield f"{name}: {one.exact[at]} and {two.exact[at]}, input {at}"


def same_results(goal: SameResults, rng: random.Random) -> Iterator[str]:
    found, _ = alike_window(formats_of(goal.unit), [goal.unit.result, goal.other], {}, rng)
    one, two = (found.evaluation.value(node, {}) for node in (goal.unit.result, goal.other))
    assert one.patterns is not None
    assert two.patterns is not None
    nan = (one.kind == NOT_A_NUMBER) & (two.kind == NOT_A_NUMBER) & (goal.unit.nan is None)
    if (~nan & (one.patterns != two.patterns)).any():
        at = int(np.argmax(~nan & (one.patterns != two.patterns)))
        yield f"results: {one.exact[at]} and {two.exact[at]}"


# -- signs and order


def negation(fmt: Format, patterns: Patterns) -> Patterns:
    """The numbers with the other sign; a zero where there is no zero of the other sign."""
    own = oracle.FORMATS[fmt.name]
    flipped = patterns ^ np.uint64((own.ones + 1) << own.padding)
    kind, exact, *_ = table_of(fmt)
    stays = (kind[patterns] == NOT_A_NUMBER) | ((exact[patterns] == 0) & bool(own.one_zero))
    return np.where(stays, patterns, flipped)


def negated(evaluation: Evaluation) -> Evaluation:
    """The evaluation of the inputs with every a and c negated."""
    return Evaluation(evaluation.formats, {
        key: negation(evaluation.formats[key[0]], side) if key[0] in ("a", "c") else side
        for key, side in evaluation.inputs.items()}, evaluation.count)  # fmt: skip


def turn_fails(before: Value, after: Value, turns: bool) -> Flags:
    """Where a value is not negated, or does not stay the same, if every a and c is negated."""
    return (before.kind != after.kind) | (after.exact != (-before.exact if turns else before.exact))


def turns(goal: Turns, rng: random.Random) -> Iterator[str]:
    result = goal.unit.result
    evaluation = window(formats_of(goal.unit), reads([result], {}), rng, []).evaluation
    before, after = (one.value(result, {}) for one in (evaluation, negated(evaluation)))
    if (wrong := turn_fails(before, after, True)).any():
        at = int(np.argmax(wrong))
        yield f"negated inputs give {after.exact[at]} after {before.exact[at]}"


def rises(goal: Rises, rng: random.Random) -> Iterator[str]:
    """The value of one product rises, or that of the addend, and all else stays."""
    unit, k = goal.unit, goal.raised
    moved = [("c", 0)] if k is None else [("a", k), ("b", k)]
    formats = formats_of(unit)
    found = window(formats, reads([unit.result], {}) | set(moved), rng, [1 << formats[name].width for name, _ in moved])
    other = Evaluation(formats, {**found.evaluation.inputs, **dict(zip(moved, found.extra, strict=True))}, found.count)
    counts = np.ones(found.count, dtype=bool)
    sides = []
    for one in (found.evaluation, other):
        values = [number(formats[name], one.inputs[name, place]) for name, place in moved]
        numbers = np.stack([_number_line(value) for value in values])
        with np.errstate(invalid="ignore"):
            sides.append(np.prod(numbers, axis=0))
        for (name, _), side in one.inputs.items():
            if goal.normal and name in ("a", "b"):
                value = number(formats[name], side)
                small = value.finite & (np.abs(value.exact) < 2.0 ** oracle.FORMATS[formats[name].name].emin)
                counts = counts & ~(small & (value.exact != 0))
    before, after = (one.value(unit.result, {}) for one in (found.evaluation, other))
    counts = counts & (sides[0] <= sides[1] if k is None else sides[0] < sides[1])
    falls = _number_line(after) < _number_line(before)
    if (counts & falls).any():
        at = int(np.argmax(counts & falls))
        yield f"the result falls from {before.exact[at]} to {after.exact[at]}"


def _number_line(value: Value) -> Lanes:
    """Numbers with infinities and NaNs as binary64 has them."""
    infinite = np.where(value.exact < 0, -np.inf, np.inf)
    return np.where(value.finite, value.exact, np.where(value.kind == NOT_A_NUMBER, np.nan, infinite))


MEANINGS: dict[type, Meaning] = {
    Enclosed: enclosed, Chained: chained, FromZero: from_zero, Carried: carried, Closed: closed,
    SumInUnits: sum_in_units, BoundInUnits: bound_in_units, Alike: alike,
    SameResults: same_results, Turns: turns, Rises: rises,
}  # fmt: skip
