"""Rules about whole results: bounds restated, and bounds in units of the largest term of one fused sum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.second.document import Document, conclude, largest_number, need_lemmas, need_same
from tests.second.goals import Goal
from tests.second.magnitudes import (
    Factor,
    Form,
    add,
    changed,
    covers,
    flat,
    lifted,
    lifts,
    merged,
    need,
    plain,
    read_form,
    single,
    times,
)
from tests.second.node_rules import Term
from tests.second.part_rules import Polynomials


def whole(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    (premise,) = premises
    below, facts = tree.enclosed(premise)
    node = tree.unit["result"]
    while node != below.node:
        need(tree.nodes[node]["kind"] in ("round", "cut"), "the result is more than a rounding of it")
        node = tree.nodes[node]["term"]
    need_same(goal, below)
    need(not below.assuming, "the premise assumes something of it")
    conclude(goal, replace(facts, size=single("exact")))


def weakened(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    (premise,) = premises
    below, facts = tree.enclosed(premise)
    need_same(goal, below)
    assert goal.facts is not None
    claimed = goal.facts.low
    need(covers(claimed, facts.error) or covers(claimed, merged(facts.error)), "it is not implied by its premise")
    conclude(goal, replace(facts, low=claimed, high=claimed))


def loosened(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    (premise,) = premises
    below = tree.goals[premise]
    need(goal.kind == below.kind == "BoundInUnits", "it is about something else than its premise")
    more = goal.parts["units"] - below.parts["units"]
    steps = {(False, False): 0, (False, True): 1, (True, True): 0}
    step = below.parts["apart"], goal.parts["apart"]
    need(step in steps and more >= steps[step], "it is not implied by its premise")


def of_largest(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    """Each magnitude of an element becomes that of the largest one, a sum over products K times its largest term."""
    (premise,) = premises
    below = tree.goals[premise]
    if below.kind == "Carried":
        error, count = read_form(below.parts["error"]), below.parts["count"]
    else:
        error, count = tree.enclosed(premise)[1].error, None
        whole = below.node == tree.unit["result"] and not (below.places or below.assuming)
        need(whole, "the premise is not about the result, or assumes something")
    need(goal.kind == "OfLargest" and goal.parts["count"] == count, "it is about something else than its premise")

    def of_any(factor: Factor) -> Factor:
        need(factor[0] in ("a", "b", "c", "exact", "growth", "count"), "a magnitude of another operand")
        return factor[0], 0, (), factor[3]

    names = lifts(error)
    found = lifted(changed(error, of_any), names)
    if any(factor[0] == "exact" for atom in found for item in atom for factor in item):
        whole_size, before = lifted(changed(_size_of_exact(tree), of_any), names), flat(found)
        found = {}
        for atom, value in before.items():
            (item,) = atom
            one = plain(value)
            for factor in item:
                one = times(one, whole_size if factor[0] == "exact" else single(*factor))
            found = add(found, one)
    every: Form = {}
    for atom, value in (flat(found) if tree.of_plan else found).items():
        each = tree.of_plan and any(factor[0] in ("a", "b") for item in atom for factor in item)
        every = add(every, times({atom: value}, single("count")) if each else {atom: value})
    need(read_form(goal.parts["form"]) == every, "the conclusion does not follow")


def _size_of_exact(tree: Document) -> Form:
    """The sum of the magnitudes of all that the exact result adds: of what is rectified, no more than that."""
    node = tree.unit["result"]
    while tree.nodes[node]["kind"] in ("round", "cut", "relu"):
        node = tree.nodes[node]["term"]
    known = Polynomials(tree, ())
    return known.bound(known.of(node, (), {}))


def _input(tree: Document, node: int, places: Mapping[int, int]) -> tuple[str, int]:
    """The name of the operand that a node reads, and the index of the element."""
    what = tree.nodes[node]
    need(what["kind"] == "element" and what["subnormals"] == "keep", "a factor is not an input, or is read as another")
    index = what["index"] or {"offset": 0, "factors": ()}
    return what["operand"], index["offset"] + sum(step * places[level] for level, step in index["factors"])


def _the_sum(tree: Document) -> Mapping[str, Any]:
    """The fused sum whose rounding the result is. Raises FaultError if the result is not such a rounding."""
    top = tree.nodes[tree.unit["result"]]
    need(top["kind"] == "round", "the result is not rounded")
    total: Mapping[str, Any] = tree.nodes[top["term"]]
    need(total["kind"] == "fused", "the result is not one fused sum")
    return total


def summed(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    need(goal.kind == "SumInUnits", "its goal is of another kind")
    total = _the_sum(tree)
    kept = total["fraction_bits"]
    need(total["rounding"] == "toward_zero" and not total["sticky"] and total["carry_bits"] is None, "it may wrap")
    need(type(kept) is int and not any(far is not None for far in total["reach"] or ()), "terms are cut off apart")
    terms = list(tree.terms(total["items"], ()))
    found = [tree.enclosed(premise) for premise in premises[: len(terms)]]
    need([(one.node, one.places) for one, _ in found] == [term[:2] for term in terms], "premises about other terms")
    every = [facts for _, facts in found]
    need(not any(one.assuming or one.provided for one, _ in found), "a term is known under a hypothesis")
    need(not any(f.low or f.high for f in every), "a term is not exact")
    added = []
    for node, places, _ in terms:
        what, known = tree.nodes[node], dict(places)
        if what["kind"] == "product":
            need(not what["normalised"] and what["limit"] is None, "a product is normalised, or has a limit")
            added.append(tuple(sorted(_input(tree, what[side], known) for side in ("left", "right"))))
        else:
            added.append((_input(tree, node, known),))
    every_product = [(("a", k), ("b", k)) for k in range(tree.unit["length"])]
    need(sorted(added) == sorted([*every_product, (("c", 0),)]), "not every product, and c, is added once")
    for bound in (total["zeros"], total["least"], *total["floors"]):
        need(bound is None or all(f.least is not None and f.least >= bound for f in every), "a floor exceeds exponents")
    lemmas = [Term(facts, kept, None).lemma("toward_zero") for facts in every]
    need_lemmas(tree, premises[len(terms) :], "AlignmentLoses", lemmas)
    whole = all(facts.digits is not None and facts.digits <= kept for facts in every)
    need(goal.parts["lost"] == len(terms) - (1 if whole else 0), "the conclusion does not follow")


def truncated(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    first, *rest = premises
    need(goal.kind == "BoundInUnits" and tree.goals[first].kind == "SumInUnits", "a premise about the sum is needed")
    how, number, total = tree.nodes[tree.unit["result"]]["rounding"], tree.unit["d"], _the_sum(tree)
    need(how["format"] == number and how["mode"] == "toward_zero" and how["subnormals"] == "keep", "not only cut off")
    a, b, c, d = (tree.formats[tree.unit[name]] for name in "abcd")
    need(d["signed"] and d["subnormals"] and d["fraction"] > 0, "the format has no sign, or no subnormal numbers")
    (top_a, _), (top_b, _), (top_c, _), (top, fields) = map(largest_number, (a, b, c, d))
    need(fields == (1 << d["fraction"]) - 1, "the largest number has not all bits")
    reach = top_a + top_b + 2
    need(reach + tree.unit["length"].bit_length() < top, "the products can overflow")
    fine = min(c["fraction"], total["fraction_bits"]) <= d["fraction"] and reach <= top - total["fraction_bits"]
    need(top_c < top or (top_c == top and fine), "the addend can make it overflow")
    need_lemmas(tree, rest, "TruncationKeeps", [{"format": number}])
    expected = {"units": tree.goals[first].parts["lost"] - 1, "apart": False}
    need(dict(goal.parts) == expected, "the conclusion does not follow")
