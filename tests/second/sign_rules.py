"""The rule about signs: a result is negated if its operands are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tests.second.document import Document, nan_as, need_lemmas, operands_of
from tests.second.goals import Goal
from tests.second.magnitudes import need, two


def turned(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    need(goal.kind == "Turns", "its goal is of another kind")
    what = tree.nodes[goal.parts["node"]]
    kind = what["kind"]
    operands = [what["term"], what["left"], what["right"]] if kind == "scale" else operands_of(what)
    own = [tree.goals[premise] for premise in premises[: len(operands)]]
    need(all(one.kind == "Turns" for one in own), "a premise of another kind is needed")
    need([one.parts["node"] for one in own] == operands, "the premises are not about its operands")
    flips = [bool(one.parts["turns"]) for one in own]
    assumed = {level for one in own for level in one.parts["assuming"]}
    found = True
    if kind == "element":
        found = what["operand"] in ("a", "c")
        need(not found or all(tree.formats[tree.unit[name]]["signed"] for name in "ac"), "an operand has no sign")
    elif kind == "product":
        found = flips[0] is not flips[1]
    elif kind in ("gate", "segment", "cancelling"):
        found = flips[0]
    elif kind == "scale":
        found = flips[0]
        need(not any(flips[1:]), "a scale factor turns")
    elif kind == "repeat":
        need(all(flips), "the results of the loop stay")
        need(what["level"] not in own[0].parts["assuming"], "the start reads the results of the loop")
    elif kind not in ("zero", "acc"):
        need(kind in ("each", "cut", "round", "exact", "fused"), f"of a {kind} it is not known")
        seen = {flip for flip, node in zip(flips, operands, strict=True) if tree.nodes[node]["kind"] != "zero"}
        need(len(seen) < 2, "some terms turn, and some stay")
        found = False not in seen
    if found and kind in ("cut", "round", "fused"):
        _magnitudes_alone(tree, what)
    assumed = assumed | {what["level"]} if kind == "acc" else assumed
    assumed = assumed - {what["level"]} if kind == "repeat" else assumed
    wanted = []
    if found and kind == "round":
        how = what["rounding"]
        target = {"format": how["format"], "rounding": how["mode"], "overflow": how["overflow"],
                  "flush": how["subnormals"] == "flush_after", "positive_zero": how["zero"] == "positive"}  # fmt: skip
        wanted.append({"target": target})
    need_lemmas(tree, premises[len(operands) :], "RoundsOpposite", wanted)
    need(goal.parts["turns"] is found and set(goal.parts["assuming"]) == assumed, "the conclusion does not follow")


def _magnitudes_alone(tree: Document, what: Mapping[str, Any]) -> None:
    """Check that a node treats both signs alike. Raises FaultError if it does not."""
    kind = what["kind"]
    mode = what["mode"] if kind == "cut" else what["rounding"] if kind == "fused" else what["rounding"]["mode"]
    need(mode not in ("up", "down"), "it is rounded up, or down")
    if kind == "round":
        fmt = tree.formats[what["rounding"]["format"]]
        need(fmt["signed"], "it is rounded to a format without signs")
        need(nan_as(what["rounding"], fmt) != "number", "a NaN is written as a number, which is not negated")
    if kind == "fused":
        need(not what["sticky"], "a sticky bit has no sign")
        if what["carry_bits"] is not None:
            more = Fraction(0) if mode == "toward_zero" else two(-what["fraction_bits"])
            most = sum(_largest_significand(tree, node) + more for node, _, _ in tree.terms(what["items"], ()))
            need(most < two(1 + what["carry_bits"]), "the sum may wrap")


def _largest_significand(tree: Document, node: int) -> Fraction:
    """An upper bound of a term, in units of the power of two at its exponent."""
    what = tree.nodes[node]
    if what["kind"] == "repeat":
        what = tree.nodes[what["body"]]
    if what["kind"] == "gate":
        what = tree.nodes[what["term"]]
    if what["kind"] == "product":
        left, right = _largest_significand(tree, what["left"]), _largest_significand(tree, what["right"])
        bits = Fraction(1, 2 * left.denominator * right.denominator)
        return 2 - bits if what["normalised"] else left * right
    if what["kind"] == "zero":
        return Fraction(0)
    need(what["kind"] in ("element", "round"), "it is not known how large a term is")
    number = what["rounding"]["format"] if what["kind"] == "round" else tree.unit[what["operand"].split("_")[0]]
    return 2 - two(-tree.formats[number]["fraction"])
