"""Rules about loops and chains of instructions: the effect on an error of one step, and of many steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tests.second.document import Document, conclude
from tests.second.goals import CHAIN, Condition, Goal, frozen
from tests.second.magnitudes import (
    ONE,
    Form,
    Monomial,
    above,
    add,
    changed,
    covers,
    flat,
    lifted,
    lifts,
    merged,
    most,
    need,
    put,
    read_form,
    single,
    times,
)

SLACK = 1 + Fraction(1, 1 << 40)  # a coefficient rounded up may exceed its least value by this factor


@dataclass(frozen=True)
class Step:
    """One step of a loop: an error bound E becomes growth E + part A + own, and a sum of magnitudes A becomes A +
    size."""

    level: int
    growth: Fraction
    part: Fraction
    own: Form
    size: Form

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Step:
        return cls(given["level"], Fraction(given["growth"]), Fraction(given["part"]), read_form(given["own"]),
                   read_form(given["size"]))  # fmt: skip

    def run(self, places: Sequence[int], error: Form, size: Form) -> tuple[Form, Form]:
        """E and A after a step for each place, E rounded up slightly: the last step counts its own error once, the one
        before it `growth` times, and so on."""
        weight, sizes, errors = Fraction(1), [size], [Form()]
        seen = Fraction(0)  # the sum of the weights of the steps after this one
        for place in reversed(places):
            errors.append(times(put(self.own, self.level, place), weight))
            errors.append(times(put(self.size, self.level, place), self.part * seen))
            sizes.append(put(self.size, self.level, place))
            seen, weight = seen + weight, above(weight * self.growth)
        return add(*errors, times(error, weight), times(size, self.part * seen)), add(*sizes)


def _step(tree: Document, goal: Goal, level: int, formats: frozenset[int], result: frozenset[int] | None) -> Step:
    """The step that a theorem states, if it is linear in what it assumes."""
    need((level, formats) in goal.assuming, "the step assumes something else of the result so far")
    need(result is not None and result <= formats, "the step's result is not a number of the formats assumed")
    assert goal.facts is not None
    growth, part, own = linear(goal.facts.error, level)
    grown, kept, size = linear(goal.facts.size, level)
    need(not grown and kept <= 1, "the result so far enters the step more than once")
    return Step(level, growth, part, own, size)


def linear(form: Form, level: int) -> tuple[Fraction, Fraction, Form]:
    """The coefficients of the error and of the size that are assumed at a level, and the rest of the form."""
    marks = [next(iter(single(name, level))) for name in ("error", "size")]

    def reads(atom: frozenset[Monomial]) -> bool:
        return any(factor[:2] in (("error", level), ("size", level)) for item in atom for factor in item)

    split = add(*(flat({atom: value}) if reads(atom) else {atom: value} for atom, value in form.items()))
    rest = {atom: value for atom, value in split.items() if atom not in marks}
    need(not any(map(reads, rest)), "the error is not linear in the result so far")
    return split.get(marks[0], Fraction(0)), split.get(marks[1], Fraction(0)), rest


def need_close(claimed: Form, least: Form) -> None:
    """Check that a coefficient that was rounded up is large enough, and larger by at most the factor SLACK."""
    need(covers(claimed, least), "the bound is smaller than what follows")
    need(covers(times(least, SLACK), claimed), "the bound is larger than what follows")


def repeated(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    what = tree.node(goal, "repeat")
    level, known = what["level"], dict(goal.places)
    (first, begin), (body, facts), *zero = (tree.enclosed(premise) for premise in premises)
    need((first.node, body.node) == (what["start"], what["body"]), "the premises are not about its start and its body")
    need(first.places == tree.bound(what["start"], goal.places), "its start has other loop variables")
    inner = {own: place for own, place in known.items() if own != level}
    need(body.places == tree.bound(what["body"], inner.items()), "the body is not of any place")
    own = [one for one in body.assuming if one[0] == level]
    need(not any(one[0] == level for one in first.assuming), "the start reads a loop of the same level")
    nothing = frozenset({(level, frozenset[int]())})
    apart = [replace(body, assuming=body.assuming - frozenset(own)), *(
        replace(zero_body, assuming=zero_body.assuming - nothing) for zero_body, _ in zero)]  # fmt: skip
    together = (tree.together([first, body]) - frozenset(own)) | tree.together([first, *apart])
    need(goal.assuming == together, "it assumes something else")
    need(len(own) <= 1 and bool(what["places"]), "the body assumes several things, or there is no place")
    if not own:  # the last round alone counts
        need(goal.provided == body.provided | first.provided, "something else may not overflow")
        last = what["places"][-1]
        low, high, size = (put(form, level, last) for form in (facts.low, facts.high, facts.size))
        weight = None if facts.weight is None else put(facts.weight, level, last)
        return conclude(goal, replace(facts, low=low, high=high, size=size, weight=weight))
    ((_, formats),) = own
    need(begin.formats is not None and begin.formats <= formats, "the start is not a number of the formats assumed")
    step = _step(tree, body, level, formats, facts.formats)
    start, places, within = (begin.error, begin.size), what["places"], body
    for zero_body, own_facts in zero:
        need(not (begin.size or begin.low or begin.high), "the start is not zero")
        need((zero_body.node, zero_body.places) == (body.node, body.places), "the first step is not that of the body")
        need([one for one in zero_body.assuming if one[0] == level] == list(nothing), "the first step is not from zero")
        need(own_facts.formats is not None and own_facts.formats <= formats, "the first result is another number")
        for form in (own_facts.error, own_facts.size):
            need(linear(form, level)[:2] == (0, 0), "the first step reads the result so far")
        start = put(own_facts.error, level, places[0]), put(own_facts.size, level, places[0])
        places, within = places[1:], replace(body, provided=body.provided | zero_body.provided)
    error, size = step.run(places, *start)
    every, _ = replace(step, growth=max(step.growth, Fraction(1))).run(places, *start)
    need(goal.provided == _within(goal, within, level, every, size) | first.provided, "something else may not overflow")
    assert goal.facts is not None
    claimed = goal.facts.low
    need_close(claimed, error)
    return conclude(goal, tree.numbers(formats, claimed, claimed, size))


def _within(goal: Goal, body: Goal, level: int, error: Form, size: Form) -> frozenset[Condition]:
    """Where nothing may overflow within a loop of which `error` and `size` are bounds of every result so far, the error
    rounded up as the goal says."""
    marks = frozen(single("error", level)), frozen(single("size", level))
    need(not any(mark in marks for one in body.provided for mark, _ in one.where), "a loop within has the same level")
    forms = {form for one in goal.provided for mark, form in one.where if mark == marks[0]}
    need(len(forms) == bool(body.provided), "bounds of the results so far are not said, or several")
    for form in forms:
        need_close(dict(form), error)
    bounds = [(marks[0], form) for form in forms] + [(marks[1], frozen(size))]
    return frozenset(replace(one, where=(*one.where, *bounds)) for one in body.provided)


def chained(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    (premise,) = premises
    below, facts = tree.enclosed(premise)
    c, d = tree.unit["c"], tree.unit["d"]
    need(goal.kind == "Chained" and below.node == tree.unit["result"], "it is not about the result")
    need(below.assuming == {(CHAIN, frozenset({c}))}, "the premise is not about any addend")
    one, other = tree.formats[d], tree.formats[c]
    alike = ("exponent", "bias", "specials", "signed", "subnormals")
    # the patterns are aligned at the top: the additional bits of the wider one are fraction bits
    width = {name: fmt["storage"] or fmt["signed"] + fmt["exponent"] + fmt["fraction"] + fmt["padding"]
             for name, fmt in (("d", one), ("c", other))}  # fmt: skip
    need(all(one[name] == other[name] for name in alike) and width["d"] == width["c"]
         and one["fraction"] <= other["fraction"], "a result is not an addend")  # fmt: skip
    need(facts.formats is not None, "the result is not a number of a format")
    need(goal.provided == below.provided, "something else may not overflow")
    step = _step(tree, below, CHAIN, frozenset({c}), frozenset({c}))
    need(Step.read(goal.parts["step"]) == step, "the conclusion does not follow")


def _of_chain(tree: Document, goal: Goal, premises: Sequence[int], kind: str) -> Step:
    (premise,) = premises
    need(goal.kind == kind and tree.goals[premise].kind == "Chained", "a premise about a chain is needed")
    return Step.read(tree.goals[premise].parts["step"])


def closed(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    step = _of_chain(tree, goal, premises, "Closed")
    need(step.growth >= 1, "the error of the result so far shrinks")
    own = merged(step.own)
    products = most(own, lifted(times(flat(step.size), step.part), lifts(own)))
    products = merged({atom: value for atom, value in products.items() if atom != ONE})
    found = {"growth": step.growth, "part": step.part, "fixed": own.get(ONE, Fraction(0))}
    claimed = {name: Fraction(goal.parts[name]) for name in found}
    need(claimed == found and read_form(goal.parts["products"]) == products, "the conclusion does not follow")


def carried(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    step, count, unit = _of_chain(tree, goal, premises, "Carried"), goal.parts["count"], tree.unit
    need(type(count) is int and count >= 1, "a chain has an instruction")
    stride = {"a": unit["length"], "b": unit["length"], "scale_a": unit["scales"], "scale_b": unit["scales"]}

    def placed(form: Form) -> Form:
        return changed(form, lambda factor: (*factor[:2], (*factor[2], (CHAIN, stride[factor[0]])), factor[3]))

    step = replace(step, own=placed(step.own), size=placed(step.size))
    error, _ = step.run(range(count), {}, single("c"))
    need_close(read_form(goal.parts["error"]), merged(error))
