"""Units a few changes away from a unit that gives most of the answers: for instance, one term keeps one bit less."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.building.draft import with_node
from mmaprobe.queries.building.likely import MODES
from mmaprobe.queries.compare.neighbours import neighbours
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.arithmetic.rounding import Mode
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Counting, Cut, Each, ExactSum, FusedSum, Node, Round, SortedSum
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.rewriting import at_place, rebuilt
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit

CHANGES = 3  # the most successive changes of a unit
WIDER = ("f32", "f64")  # formats to which a sum may be rounded before a format of fewer bits
SORTED = 3  # the number of terms of a sum for which sorting of the terms is tried
TAKEN = 3  # the number of nearest units that are changed further
Wrong = NDArray[np.bool_]  # for each unit and answer: whether the unit gives another answer


def in_mode(unit: Unit, mode: Mode) -> Unit:
    """The unit with one mode for all its roundings."""

    def changed(_: Node, node: Node) -> Node:
        if isinstance(node, Round):
            return replace(node, rounding=replace(node.rounding, mode=mode))
        return replace(node, mode=mode) if isinstance(node, Cut) else node

    return unit.computing(rebuilt(unit.result, changed, {}))


def near_units(unit: Unit) -> Iterator[Unit]:
    """The units that differ in one parameter, of all terms or of one term of a fused sum, or by one rounding, or by the
    sorting of three terms."""
    seen = {unit.result}
    for _, _, near in neighbours(Model("", unit)):
        if near.unit.result not in seen and (unit.length, unit.d) == (near.unit.length, near.unit.d):
            seen.add(near.unit.result)
            yield unit.computing(near.unit.result)
    for result in (*_with_one_term_changed(unit.result), *_rounded_twice(unit.result), *_sorted(unit)):
        if result not in seen:
            yield unit.computing(result)


def _with_one_term_changed(root: Node) -> Iterator[Node]:
    """The expressions in which one term of a fused sum keeps one bit less, or one bit more."""
    for node in walk(root):
        if not isinstance(node, FusedSum) or node.carry_bits is not None:
            continue
        for at, item in enumerate(node.items):
            for parts, place in _single_terms(item):
                for change in (-1, 1):
                    changed = _with_changed_bits(node, at, parts, place, change)
                    if changed is not None:
                        yield with_node(root, node, changed)


def _rounded_twice(root: Node) -> Iterator[Node]:
    """The expressions in which a result is first rounded to a format of more bits, or such a first rounding is left
    out."""
    for node in walk(root):
        if not isinstance(node, Round):
            continue
        if isinstance(node.term, Round):
            yield with_node(root, node, replace(node, term=node.term.term))
            continue
        for name, mode in product(WIDER, MODES):
            if FORMATS[name].precision > node.rounding.format.precision:
                yield with_node(root, node, replace(node, term=Round(node.term, Rounding(FORMATS[name], mode))))


def _sorted(unit: Unit) -> Iterator[Node]:
    """The expressions in which a sum of three terms adds its terms in the order of their exponents. If a product may
    lie below the exponents of c, each sum is also tried with a c that counts with an exponent even if it is zero."""
    p, ways = unit.d.precision, (False, True) if unit.c.emin > unit.a.emin + unit.b.emin + 1 else (False,)
    for node in walk(unit.result):
        if not isinstance(node, (ExactSum, FusedSum)) or sum(item.count for item in node.items) != SORTED:
            continue
        terms = [parts[place] for item in node.items for parts, place in _single_terms(item)]
        for counts, bits in product(ways, ((2 * p + 2, 3 * p + 6), (p + 2, p + 2))):
            own = (Counting(term) if counts and term.is_addend else term for term in terms)
            with suppress(ParameterError):  # a sum of terms other than inputs and products
                yield with_node(unit.result, node, SortedSum(tuple(own), bits))


def _single_terms(item: Node) -> Iterator[tuple[list[Node], int]]:
    """For each term of an operand: the operand split so that this term stands alone, and the position of the term."""
    if not isinstance(item, Each):
        yield [item], 0
        return
    places = list(item.places)
    for number, place in enumerate(places):
        before, after = places[:number], places[number + 1 :]
        parts = [*_range(item, before), at_place(item.body, item.level, place), *_range(item, after)]
        yield parts, len(_range(item, before))


def _range(item: Each, places: Sequence[int]) -> list[Node]:
    if len(places) < 2:
        return [at_place(item.body, item.level, place) for place in places]
    return [replace(item, places=tuple(places))]


def _with_changed_bits(node: FusedSum, at: int, parts: Sequence[Node], place: int, change: int) -> Node | None:
    """The sum in which one part of the operand at position `at` keeps `change` more fraction bits (fewer if negative);
    None if no such sum exists."""
    terms: list[tuple[int, Node]] = []
    for position, item in enumerate(node.items):
        terms += [(position, part) for part in parts] if position == at else [(position, item)]
    bits = [node.value_at(node.fraction_bits, position) or 0 for position, _ in terms]
    bits[at + place] += change
    try:
        return replace(node.of_terms(terms), fraction_bits=tuple(bits))
    except ParameterError:
        return None


def mended(units: Sequence[Unit], wrong: Callable[[Sequence[Unit]], Wrong]) -> list[Unit]:
    """The units that give every answer, reached from the given ones by up to CHANGES changes, each of which lowers the
    number of wrong answers. `wrong`: for each unit (row) and answer (column), whether the unit gives another answer."""
    nearest = _nearest(list(dict.fromkeys(units)), wrong)
    for _ in range(CHANGES):
        if not nearest or nearest[0][0] == 0:
            break
        tried = dict.fromkeys(other for _, unit in nearest for other in near_units(unit))
        least = nearest[0][0]
        nearest = [(count, unit) for count, unit in _nearest(list(tried), wrong) if count < least]
    return [unit for count, unit in nearest if count == 0]


def _nearest(units: Sequence[Unit], wrong: Callable[[Sequence[Unit]], Wrong]) -> list[tuple[int, Unit]]:
    """The TAKEN units with the fewest wrong answers, and all units without wrong answers, each with its number of wrong
    answers."""
    if not units:
        return []
    counts = wrong(units).sum(axis=1)
    order = np.argsort(counts, kind="stable")
    return [(int(counts[at]), units[at]) for place, at in enumerate(order) if place < TAKEN or not counts[at]]
