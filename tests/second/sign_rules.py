"""The rule about signs: a result is negated if its operands are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tests.second.document import Document, nan_as, need_lemmas, operands_of, random_bits
from tests.second.goals import Goal
from tests.second.magnitudes import need, two

ALIKE = ("nearest_even", "nearest_away", "toward_zero", "to_odd")  # modes that treat both signs alike


def turned(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    need(goal.kind == "Turns", "its goal is of another kind")
    need(turns(tree, tree.unit["result"], {}), "the result stays the same")
    wanted: list[dict[str, Any]] = []
    for node in sorted(tree.below(tree.unit["result"])):
        if tree.nodes[node]["kind"] == "round" and _alike(tree, how := tree.nodes[node]["rounding"]):
            flush, positive = how["subnormals"] == "flush_after", how["zero"] == "positive"
            wanted.append({"target": {"format": how["format"], "rounding": how["mode"], "overflow": how["overflow"],
                                      "flush": flush, "positive_zero": positive},
                           "bits": random_bits(tree, tree.nodes[node])})  # fmt: skip
    need_lemmas(tree, premises, "RoundsOpposite", wanted)


def _alike(tree: Document, how: Mapping[str, Any]) -> bool:
    fmt = tree.formats[how["format"]]
    return (
        (how["mode"] in ALIKE or how["mode"].startswith("stochastic_"))
        and fmt["signed"]
        and nan_as(how, fmt) != "number"
    )


def turns(tree: Document, node: int, so_far: Mapping[int, bool]) -> bool:
    """Whether a node is negated (True) or stays the same (False), by what results so far do. Raises FaultError if
    neither is known."""
    what = tree.nodes[node]
    kind = what["kind"]
    if kind == "element":
        found = what["operand"] in ("a", "c")
        kinds = [tree.formats[tree.unit[name]] for name in "ac"] if found else []
        need(all(kind["signed"] for kind in kinds), "an operand has no sign")
        need(all(kind["specials"] != "complement" for kind in kinds), "a least number is its own opposite")
        return found
    if kind == "zero":
        return True
    if kind == "number":
        return False
    if kind == "acc":
        return so_far[what["level"]]
    if kind in ("product", "scale"):
        factors = [what["term"], what["left"], what["right"]] if kind == "scale" else operands_of(what)
        return sum(turns(tree, factor, so_far) for factor in factors) % 2 == 1
    if kind == "repeat":
        before = turns(tree, what["start"], so_far)
        after = turns(tree, what["body"], {**so_far, what["level"]: before})
        need(after is before, "some results turn, and some stay")
        return before
    plain = ("each", "gate", "segment", "cancelling", "cut", "round", "exact", "fused")
    need(kind in plain, f"nothing is known of a {kind}")
    found = _terms(tree, operands_of(what), so_far)
    if found and kind == "round":
        need(_alike(tree, what["rounding"]), "it does not round both signs alike")
    if found and kind == "cut":
        need(what["mode"] in ALIKE, "it is cut up, or down")
    if found and kind == "fused":
        _magnitudes_alone(tree, what)
    return found


def _terms(tree: Document, items: Sequence[int], so_far: Mapping[int, bool]) -> bool:
    seen = {turns(tree, item, so_far) for item in items if tree.nodes[item]["kind"] != "zero"}
    need(len(seen) < 2, "some terms turn, and some stay")
    return False not in seen


def _magnitudes_alone(tree: Document, what: Mapping[str, Any]) -> None:
    """Check that a fused sum treats both signs alike. Raises FaultError if it does not."""
    need(what["rounding"] in ALIKE, "terms are rounded up, or down")
    need(not what["sticky"], "a sticky bit has no sign")
    if what["carry_bits"] is not None:
        more = Fraction(0) if what["rounding"] == "toward_zero" else two(-what["fraction_bits"])
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
