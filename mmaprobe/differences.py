"""Differences of two results of one product: bits, units in the last place, proved bounds, and a few terms that show
the difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.bounds import Bound, bound
from mmaprobe.documents.emulate import Explained, Term
from mmaprobe.machines import Patterns, Rule
from mmaprobe.pictures import explain
from mmaprobe.queries.plans.planmap import PlanMap, numbers_in
from mmaprobe.queries.plans.rules import Shape
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import nans, steps_between, to_numbers
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.lowering import unit_of_plan

FAR = np.uint64(2**64 - 1)  # more than lies between any two numbers of floating point
SHOWN = 8  # terms of a vector that is evaluated bit by bit, at most


def steps_apart(x: Patterns, y: Patterns, fmt: Format) -> NDArray[np.uint64]:
    """The distance in units in the last place between two arrays of numbers, given as patterns of a format of floating
    point. `FAR` where one number is a NaN, zero where both are NaNs."""
    left, right = nans(x, fmt), nans(y, fmt)
    return np.where(left & right, 0, np.where(left | right, FAR, steps_between(x, y, fmt)))


@lru_cache(maxsize=256)
def _bound(plan: Plan, length: int) -> Bound:
    return bound(plan, length=length, confirm=False)


def bound_of(rule: Rule, a: Any, b: Any) -> NDArray[np.float64] | None:
    """The proved bound of |sum - exact| for every element of a product of matrices of numbers; None where there is
    none: special values, a map with several plans, or a plan whose bound is not known."""
    how = rule.how
    if isinstance(how, PlanMap):
        own = numbers_in(how.plans_of(Shape(a.shape[0], b.shape[1], a.shape[1])))
        if len(own) > 1:
            return None
        how = how.rules[own[0]].plan
    try:
        return np.asarray(_bound(how, a.shape[1]).at(a, b, convert=rule.convert))
    except MmaprobeError:
        return None


Factors = Mapping[str, Patterns]  # patterns of the scale factors of a row and of a column, by the operand's name


def _repeated(scales: Factors | None, times: int) -> Factors | None:
    """The scale factors of one element, repeated for a batch of products of one element each."""
    return scales and {name: np.broadcast_to(side[None, :] if name == "scale_a" else side[:, None],
                                             (times, 1, len(side)) if name == "scale_a" else (times, len(side), 1))
                       for name, side in scales.items()}  # fmt: skip


def few_terms(
    one: Rule, other: Rule, a: Patterns, b: Patterns, shape: Shape, scales: Factors | None = None
) -> list[int] | None:
    """A minimal set of places of K that shows a difference of two rules. If all other products are zero, the sums
    differ; if any one of these products is zero too, the sums are equal. None if the sums of all products are equal.
    `a`, `b`: patterns of a row and a column; `shape`: of the product for which the rules choose their plans."""
    left, right = (_first_plan(rule, shape) for rule in (one, other))

    def differ(sets: list[list[int]]) -> NDArray[np.bool_]:
        x = np.zeros((len(sets), 1, len(a)), a.dtype)
        y = np.zeros((len(sets), len(b), 1), b.dtype)
        for number, places in enumerate(sets):
            x[number, 0, places], y[number, places, 0] = a[places], b[places]
        own = _repeated(scales, len(sets))
        sums = [to_numbers(rule.product(x, y, None, own), rule.plan.d).ravel() for rule in (left, right)]
        same = (sums[0] == sums[1]) | (np.isnan(sums[0]) & np.isnan(sums[1]))
        return np.asarray(~same)

    places = list(range(len(a)))
    if not differ([places])[0]:
        return None
    size = max(1, len(places) // 2)
    while True:
        parts = [places[start : start + size] for start in range(0, len(places), size)]
        rests = [[place for place in places if place not in set(part)] for part in parts]
        smaller = next((rest for rest, fits in zip(rests, differ(rests), strict=True) if fits and rest), None)
        if smaller is not None:
            places, size = smaller, max(1, min(size, len(smaller) // 2))
        elif size == 1:
            return places
        else:
            size = max(1, size // 2)


def explained(
    one: Rule, other: Rule, a: Patterns, b: Patterns, element: tuple[int, int, int], shape: Shape,
    scales: Factors | None = None,
) -> Explained | None:  # fmt: skip
    """The few terms of an element on which two rules differ, the result of each rule, and both evaluations bit by bit
    if one instruction can take these terms. None if the rules give equal sums. `a`, `b`, `scales`: patterns of the row
    and the column of the element."""
    places = few_terms(one, other, a, b, shape, scales)
    if places is None:
        return None
    left, right = (_first_plan(rule, shape) for rule in (one, other))
    fmt = left.plan.a
    x, y = np.zeros((1, 1, len(a)), a.dtype), np.zeros((1, len(b), 1), b.dtype)
    x[0, 0, places], y[0, places, 0] = a[places], b[places]
    own = _repeated(scales, 1)
    results = [str(to_numbers(rule.product(x, y, None, own), rule.plan.d)[0, 0, 0]) for rule in (left, right)]
    first, second = to_numbers(a[places], fmt), to_numbers(b[places], left.plan.b)
    terms = [Term(place=place, a=str(p), b=str(q)) for place, p, q in zip(places, first, second, strict=True)]
    return Explained(
        element=element, terms=terms, results=results, why=[] if scales else _why(left, right, a, b, places)
    )


def _first_plan(rule: Rule, shape: Shape) -> Rule:
    """The rule with one plan: of a map, the plan of the first element of a product."""
    if not isinstance(rule.how, PlanMap):
        return rule
    own = rule.how.plans_of(shape)
    return replace(rule, how=rule.how.rules[int(own.flat[0])].plan)


def _why(left: Rule, right: Rule, a: Patterns, b: Patterns, places: list[int]) -> list[str]:
    """The text of both evaluations of these terms, moved to the first places of K. It is empty if the sums are equal
    there, if there are more terms than `SHOWN` or than an instruction takes, or if a rule rounds its inputs."""
    length = max(unit.length for rule in (left, right) for unit in rule.plan.models)
    if len(places) > min(SHOWN, length):
        return []
    x, y = np.zeros((1, 1, length), a.dtype), np.zeros((1, length, 1), b.dtype)
    x[0, 0, : len(places)], y[0, : len(places), 0] = a[places], b[places]
    sums = [to_numbers(rule.product(x, y), rule.plan.d).tobytes() for rule in (left, right)]
    if sums[0] == sums[1] or left.convert or right.convert:
        return []
    try:
        models = [Model(rule.name, unit_of_plan(rule.plan, length)) for rule in (left, right)]
        numbers = to_numbers(x[0, 0], left.plan.a), to_numbers(y[0, :, 0], left.plan.b)
        return str(explain(models[0], *numbers, against=models[1])).splitlines()
    except MmaprobeError:
        return []
