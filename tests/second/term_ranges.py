"""What the checker of rewriting knows of the numbers that terms of sums can be, in its own words.

A scope says what is known of the result so far of each loop around a node: its formats, and the power of two of which
it is a multiple. A range is that of the nonzero finite numbers that a term can be, as the datapath bounds them: a
significand of `width` bits, `fraction` of them below the exponent, which is from `low` to `high`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tests.second.document import Document, largest_number, nan_as
from tests.second.magnitudes import need

Plain = Mapping[str, Any]
NOTHING = 1 << 20  # the grid of a zero
#: the nodes in which the sign of a zero operand affects only the sign of a zero result
BLIND = {"element", "zero", "number", "acc", "product", "gate", "scale", "each", "exact", "fused", "cut", "round",
         "repeat"}  # fmt: skip


@dataclass(frozen=True)
class Held:
    """A result so far is a number of one of these formats, and a multiple of 2^unit (None: of their smallest)."""

    formats: frozenset[int]
    unit: int | None = None


Scope = tuple[tuple[int, Held], ...]  # by level, outermost first


@dataclass(frozen=True)
class Range:
    """As queries/kernel/ranges.py writes one. `unit`: every number is a multiple of 2^unit; `leading`: the first bit of
    the significand is set unless the exponent is the least."""

    width: int
    fraction: int
    low: int
    high: int
    unit: int
    leading: bool = False

    @property
    def document(self) -> dict[str, Any]:
        names = ("width", "fraction", "low", "high", "unit", "leading")
        return {name: getattr(self, name) for name in names}

    @property
    def most(self) -> Fraction:
        """The largest significand, in units of the power of two at its exponent."""
        return Fraction((1 << self.width) - 1, 1 << self.fraction)


Ranges = frozenset[Range] | None


def read_scope(tree: Document, given: Plain) -> Scope:
    names = ("a", "b", "c") + (("scale_a", "scale_b") if tree.unit["scale"] is not None else ())
    need(given["formats"] == [[name, tree.unit[name.split("_")[0]]] for name in names], "it is about other operands")
    found = tuple((level, Held(frozenset(one["formats"]), one["unit"])) for level, one in given["held"])
    need(len(dict(found)) == len(found), "a loop is around itself")
    return found


class Known:
    """What is known of the nodes of a tree."""

    def __init__(self, tree: Document) -> None:
        self.tree = tree
        self.found: dict[tuple[Scope, int], Ranges] = {}

    def formats(self, scope: Scope, at: int) -> frozenset[int] | None:
        """The formats of which a value is a number, none for a zero; None if they are not known."""
        node = self.tree.nodes[at]
        kind = node["kind"]
        if kind == "element":
            return frozenset({self.tree.unit[node["operand"].split("_")[0]]})
        if kind == "zero":
            return frozenset()
        if kind == "acc":
            return dict(scope)[node["level"]].formats if node["level"] in dict(scope) else None
        if kind == "repeat":
            need(bool(node["places"]), "a loop has no step")
            node = self.tree.nodes[node["body"]]
        return frozenset({node["rounding"]["format"]}) if node["kind"] == "round" else None

    def ranges(self, scope: Scope, at: int) -> Ranges:
        """The ranges of the nonzero terms that a node adds to a sum; None if they are not known."""
        if (scope, at) not in self.found:
            self.found[scope, at] = self._ranges(scope, at)
        return self.found[scope, at]

    def _ranges(self, scope: Scope, at: int) -> Ranges:
        node = self.tree.nodes[at]
        kind = node["kind"]
        if kind in ("each", "gate"):
            return self.ranges(scope, node["body" if kind == "each" else "term"])
        if kind in ("product", "scale"):
            first, *rest = [self.ranges(scope, one) for one in factors_of(node)]
            for other in rest:
                if first is None or other is None:
                    return None
                first = frozenset(_product(x, y) for x in first for y in other)
            return frozenset(map(_normalised, first or ())) if kind == "product" and node["normalised"] else first
        if kind == "exact":
            own = [self.ranges(scope, item) for item in node["items"]]
            if any(ranges is None for ranges in own):
                return None
            terms = [one for ranges, item in zip(own, node["items"], strict=True) for one in ranges or ()
                     for _ in range(self.count(item))]  # fmt: skip
            return frozenset({_sum(terms)})
        formats = self.formats(scope, at)
        if formats is None:
            return None
        return frozenset(self._number(fmt, self.grid(scope, at)) for fmt in formats)

    def grid(self, scope: Scope, at: int) -> int | None:
        """Of what power of two every finite value is a multiple, none for a zero; None if it is not known."""
        node = self.tree.nodes[at]
        kind, fmts = node["kind"], self.formats(scope, at)
        if kind == "zero":
            return NOTHING
        if kind == "acc":
            own = dict(scope).get(node["level"])
            return None if own is None else own.unit
        if kind == "repeat":
            return self._of_loop(scope, node)
        if kind == "element" and fmts:
            return min(map(self.tree.last, fmts))
        if kind == "round":
            how, inner = node["rounding"], self.grid(scope, node["term"])
            fmt = self.tree.formats[how["format"]]
            largest, last = largest_number(fmt)[0] - fmt["fraction"], self.tree.last(how["format"])
            return last if inner is None or nan_as(how, fmt) == "number" else max(min(inner, largest), last)
        if kind in ("each", "gate", "relu", "cut", "cancelling", "segment"):
            return self.grid(scope, node["body" if kind == "each" else "term"])
        if kind in ("product", "scale"):
            return self._joined(scope, factors_of(node), sum)
        if kind == "exact" or (kind == "fused" and not node["sticky"]):
            return self._joined(scope, node["items"], min)
        return None

    def _of_loop(self, scope: Scope, node: Plain) -> int | None:
        """By induction: a grid of the start that no step makes finer."""
        so_far, fmts = self.grid(scope, node["start"]), self.formats(scope, node["start"]) or frozenset()
        for _ in range(4):
            last = self.grid((*scope, (node["level"], Held(fmts, so_far))), node["body"])
            if so_far is None or last is None or last >= so_far:
                return last
            so_far = last
        return self.grid((*scope, (node["level"], Held(fmts))), node["body"])

    def _joined(self, scope: Scope, every: Sequence[int], how: Callable[[list[int]], int]) -> int | None:
        grids = [self.grid(scope, one) for one in every]
        return None if None in grids else how([one for one in grids if one is not None])

    def _number(self, number: int, unit: int | None) -> Range:
        """The numbers of a format that are multiples of 2^unit."""
        fmt = self.tree.formats[number]
        fraction = int(fmt["fraction"]) if fmt["subnormals"] else 0
        low, high = self.tree.emin(number), largest_number(fmt)[0]
        found = Range(fraction + 1, fraction, low, high, low - fraction, True)
        if unit is None or unit <= found.unit:
            return found
        return replace(found, unit=unit, low=min(max(unit, low), high))

    def count(self, at: int) -> int:
        """The number of terms that a node adds to a sum."""
        node = self.tree.nodes[at]
        return len(node["places"]) * self.count(node["body"]) if node["kind"] == "each" else 1

    def blind(self, at: int) -> bool:
        """Whether operands that are alike but for the signs of zeros give such results."""
        return all(self.tree.nodes[one]["kind"] in BLIND for one in self.tree.below(at))

    def items(self, at: int) -> Sequence[int]:
        """The terms of a sum; of another node none."""
        node = self.tree.nodes[at]
        found: Sequence[int] = node["items"] if node["kind"] in ("exact", "fused") else ()
        return found

    def adds(self, at: int) -> bool:
        """Whether a zero result has the sign of a sum of zeros: an exact sum of one term is that term."""
        return self.tree.nodes[at]["kind"] == "fused" or sum(map(self.count, self.items(at))) > 1

    def aligned(self, scope: Scope, at: int) -> list[tuple[Range, int]] | None:
        """The ranges of the terms of a fused sum, each with the bits kept of it; None if one is not known."""
        node = self.tree.nodes[at]
        bits = node["fraction_bits"]
        each = bits if isinstance(bits, list) else [bits] * len(node["items"])
        own = [self.ranges(scope, item) for item in node["items"]]
        if any(ranges is None for ranges in own):
            return None
        return [(one, kept) for ranges, kept in zip(own, each, strict=True) for one in ranges or ()]


def factors_of(node: Plain) -> list[int]:
    """What a product or a scaled term multiplies."""
    return [node[name] for name in ("term", "left", "right") if name in node]


def _product(left: Range, right: Range) -> Range:
    return Range(left.width + right.width, left.fraction + right.fraction, left.low + right.low,
                 left.high + right.high, left.unit + right.unit)  # fmt: skip


def _normalised(one: Range) -> Range:
    """With the first bit of its significand set, so that it has one bit before its point."""
    before = one.width - one.fraction
    return Range(one.width, one.width - 1, one.low + before - one.width, one.high + before - 1, one.unit)


def _sum(terms: Sequence[Range]) -> Range:
    """An exact sum in fixed point, which counts with the exponent 0: as wide as its largest magnitude."""
    low = min(one.low - one.fraction for one in terms)
    largest = sum((1 << one.width + one.high - one.fraction - low) - 1 for one in terms)
    return Range(largest.bit_length(), -low, 0, 0, min(one.unit for one in terms))
