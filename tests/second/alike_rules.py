"""Rules of inference about nodes that compute alike: replaced by a rule of rewriting, one after another, in a node, in
a loop; and what follows for a unit's result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.second.document import Document, operands_of
from tests.second.goals import Goal
from tests.second.magnitudes import need
from tests.second.rewrite_rules import (
    REWRITES,
    Lemmas,
    Place,
    plus_for_zeros,
)
from tests.second.term_ranges import Known, Scope, read_scope

#: the lemmas about the datapath that rules of rewriting rest on
LEMMAS = ("AlignmentLoses", "BoundKeeps", "NeverReaches", "Normalises", "FormatHolds", "RoundsAlike", "RoundsTwice",
          "RoundingScales")  # fmt: skip


@dataclass(frozen=True)
class Alike:
    """Two nodes compute alike in a scope, and count alike in an alignment if `counting`; but for the signs of zeros if
    not `signs`."""

    scope: Scope
    node: int
    other: int
    counting: bool
    signs: bool


def read_alike(tree: Document, goal: Goal) -> Alike:
    need(goal.kind == "Alike", "a goal of another kind is needed")
    given = goal.parts
    need(all(type(given[name]) is bool for name in ("counting", "signs")), "it is not said what is alike")
    places = [given["node"], given["other"]]
    need(all(type(at) is int and 0 <= at < len(tree.nodes) for at in places), "there is no such node")
    return Alike(read_scope(tree, given["scope"]), places[0], places[1], given["counting"], given["signs"])


def _premise(tree: Document, premise: int) -> Alike:
    return read_alike(tree, tree.goals[premise])


def _conclude(found: Alike, follows: Alike) -> None:
    need(found == follows, "the conclusion does not follow")


def _need_one_of(tree: Document, premises: Sequence[int], choices: Sequence[Lemmas]) -> None:
    """Check that the premises are the lemmas of one of the choices."""
    goals = [tree.goals[premise] for premise in premises]
    need(all(goal.kind in LEMMAS for goal in goals), "a premise is not a lemma about the datapath")
    given = {_text({"is": goal.kind, **goal.parts}) for goal in goals}
    need(any(given == set(map(_text, lemmas)) for lemmas in choices), "the lemmas are about another datapath")


def _text(lemma: Mapping[str, Any]) -> str:
    return json.dumps(lemma, sort_keys=True)


def rewritten(tree: Document, goal: Goal, premises: Sequence[int], theorem: Any) -> None:
    found, known = read_alike(tree, goal), Known(tree)
    needs = REWRITES[theorem["name"]](Place(tree, known, found.scope, found.node, found.other))
    _need_one_of(tree, premises, needs.choices)
    _conclude(found, Alike(found.scope, found.node, found.other, needs.counting, needs.signs))


def followed(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    one, other = (_premise(tree, premise) for premise in premises)
    need((one.scope, one.other) == (other.scope, other.node), "the second does not begin where the first ends")
    counting, signs = one.counting and other.counting, one.signs and other.signs
    _conclude(read_alike(tree, goal), Alike(one.scope, one.node, other.other, counting, signs))


def congruent(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    found, own, known = read_alike(tree, goal), [_premise(tree, premise) for premise in premises], Known(tree)
    node, new = tree.nodes[found.node], tree.nodes[found.other]
    need(_without_operands(node) == _without_operands(new), "the nodes differ in more than operands")
    pairs = [pair for pair in zip(operands_of(node), operands_of(new), strict=True) if pair[0] != pair[1]]
    need(pairs == [(one.node, one.other) for one in own] and bool(own), "the premises are not about what changes")
    need(all(one.scope == found.scope for one in own), "a premise is in another scope")
    kind, counting, signs = node["kind"], all(one.counting for one in own), all(one.signs for one in own)
    need(
        kind in ("round", "exact", "cut", "fused", "repeat", "product", "scale", "each", "relu"),
        f"of a {kind} it is not known",
    )
    ends = [found.node, found.other]
    if kind in ("round", "exact", "cut", "repeat"):
        counting = True
    elif kind == "fused":
        need(counting, "a fused sum sees with which exponents its terms count")
    if kind == "repeat":
        need(node["body"] == new["body"], "the body of a loop is in another scope")
        formats = [known.formats(found.scope, at["start"]) for at in (node, new)]
        need(formats[0] is not None and formats[0] == formats[1], "the start has another format")
        need(signs or known.blind(node["body"]), "the body sees the sign of a zero")
        ends = [node["body"]]
    signs = signs or all(plus_for_zeros(known, at) for at in ends)
    _conclude(found, Alike(found.scope, found.node, found.other, counting, signs))


def _without_operands(node: Mapping[str, Any]) -> Mapping[str, Any]:
    operands = ("left", "right", "term", "start", "body", "items")
    rest = {name: value for name, value in node.items() if name not in operands}
    return rest | {"operands": len(operands_of(node))}


def looped(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    found, known = read_alike(tree, goal), Known(tree)
    (first,) = premises
    body, place = _premise(tree, first), Place(tree, known, found.scope, found.node, found.other)
    what = place.kind("repeat")
    need(body.node == what["body"] and body.counting, "the premise is not about the body, or it counts otherwise")
    need(body.scope[:-1] == found.scope and bool(body.scope), "the premise is in another scope")
    level, held = body.scope[-1]
    need(level == what["level"], "the premise is about another loop")
    formats = [known.formats(body.scope, at) for at in (body.node, body.other)]
    need(formats[0] is not None and formats[0] == formats[1], "the results are of another format")
    need(held == known.so_far(found.scope, found.node), "the results are not of the kind assumed")
    need(body.signs or known.blind(body.other), "the body sees the sign of a zero")
    place.changes(body=body.other)
    _conclude(found, Alike(found.scope, found.node, found.other, True, body.signs))


def results_alike(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    need(goal.kind == "SameResults", "its goal is of another kind")
    (premise,) = premises
    below = _premise(tree, premise)
    need(not below.scope and below.node == tree.unit["result"], "the premise is not about the unit's result")
    need(below.signs, "zeros may have other signs")
    one, other = (_last_rounding(tree, at) for at in (below.node, below.other))
    need((one["format"], one["nan"]) == (other["format"], other["nan"]), "it is not rounded to the same format")
    need(goal.parts == {"other": below.other}, "the conclusion does not follow")


def _last_rounding(tree: Document, at: int) -> Mapping[str, Any]:
    node = tree.nodes[at]
    while node["kind"] == "repeat":
        node = tree.nodes[node["body"]]
    need(node["kind"] == "round", "the result is not rounded")
    found: Mapping[str, Any] = node["rounding"]
    return found
