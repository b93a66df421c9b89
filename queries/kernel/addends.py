"""What is known of a sum so far: that it is never -0, never subnormal; and how a unit reads it as an addend.

A unit may read subnormal addends as zeros, and every zero as +0 (CDNA2). In a chain the addend is the result before, so
that reading it changes nothing if no result is subnormal or -0. By induction, a loop whose body reads the result so far
in this way then computes as one that reads its start once.

A sum is rounded once to a format of p bits of precision. Unless rounding is down, an exact zero sum is -0 only if all
its terms are negative or -0, so that it never is if one of them is never -0. A sum that is not zero is at least 2^e,

- if all terms are multiples of 2^e;
- or if all terms but one, y, are multiples of 2^(e + p), where y is a number of the format, of at least 2^e itself if
  it is not zero. If the other terms together are zero, the sum is y. Else let 2^g be what they are multiples of: if y
  is below 2^(g - 1), the sum is at least 2^(g - 1); and if it is not, y is a multiple of 2^(g - p), and so is the sum.

So no such sum is rounded to zero, if 2^e is the smallest number of the format, or is flushed, if it is the smallest
normal number.
"""

from __future__ import annotations

from mmaprobe.queries.kernel.grids import Grids, has_positive_sums, least_of, terms_of
from mmaprobe.smtmodel.nodes import Constant, Element, Node, Repeat, Round, Running
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.rewriting import rebuilt, replaced
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit

Levels = frozenset[int]  # of loops whose results so far are as is claimed


def read_once(unit: Unit) -> Node:
    """The result of a unit, whose loops read no result so far that is read as it is."""
    return _Reader(unit).form(unit.result)


def reading_that_changes_nothing(unit: Unit) -> Rounding | None:
    """How all results of a unit may be read without a change: a rounding to their format that makes zeros +0, and
    subnormal numbers zero where there are none; None if a result may be -0."""
    reader = _Reader(unit)
    for tiny in ("flush_after", "keep"):
        how = Rounding(unit.d, subnormals=tiny, zero="positive")
        if unit.d.has_negative_zero and reader.keeps(unit.result, how, frozenset()):
            return how
    return None


class _Reader:
    """Rewrites the loops of one unit."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.grids = Grids({"a": unit.a, "b": unit.b, "c": unit.c})

    def form(self, node: Node) -> Node:
        return rebuilt(node, lambda _, other: self._loop(other) if isinstance(other, Repeat) else other, {})

    def _loop(self, loop: Repeat) -> Node:
        so_far = Running(loop.level)
        hows = {
            part.rounding for part in walk(loop.body)
            if isinstance(part, Round) and part.term == so_far and is_reading(part.rounding)
        }  # fmt: skip
        if len(hows) != 1:
            return loop
        (how,) = hows
        body = replaced(loop.body, lambda part: so_far if part == Round(so_far, how) else None)
        bare = replaced(loop.body, lambda part: Constant() if part == Round(so_far, how) else None)
        if so_far in walk(bare) or not self.keeps(body, how, frozenset((loop.level,))):
            return loop
        return Repeat(loop.level, loop.places, self._read(loop.start, how), body)

    def _read(self, start: Node, how: Rounding) -> Node:
        """A start as it is read."""
        if isinstance(start, Element) and self.unit.c == how.format and start.operand == "c":
            flushed = how.subnormals != "keep" or start.subnormals != "keep"
            return Element("c", None, "positive_zero" if flushed else "keep", True)
        return start if self.keeps(start, how, frozenset()) else Round(start, how)

    def keeps(self, node: Node, how: Rounding, levels: Levels) -> bool:
        """Whether reading does not change any value of a node, if it changes no result so far of the loops at some
        levels."""
        return self._is_never_minus(node, how, levels) and (
            how.subnormals == "keep" or self._is_never_tiny(node, how, levels)
        )

    def _loop_keeps(self, loop: Repeat, how: Rounding, levels: Levels) -> bool:
        """By induction: what is claimed of results so far is all that reading changes nothing in."""
        return self.keeps(loop.start, how, levels) and self.keeps(loop.body, how, levels | {loop.level})

    def _is_never_minus(self, node: Node, how: Rounding, levels: Levels) -> bool:
        """Whether no value of a node, a number of the format, is -0."""
        match node:
            case Running():
                return node.level in levels
            case Repeat():
                return self._loop_keeps(node, how, levels)
            case Constant():
                return not node.negative
            case Element():
                return node.operand == "c" and self.unit.c == how.format and node.positive_zeros
            case Round() if node.rounding == how:
                return True
            case Round() if node.rounding.format == how.format and node.rounding.nan_or_zero:
                own = node.rounding
                if own.zero == "positive":
                    return True
                if own.mode == "down" or not self._is_far(node, how, levels, own.subnormals != "keep"):
                    return False
                return has_positive_sums(node) or any(
                    self._is_never_minus(term, how, levels) for term in terms_of(node)
                )
        return False

    def _is_never_tiny(self, node: Node, how: Rounding, levels: Levels) -> bool:
        """Whether no value of a node, a number of the format, is subnormal."""
        match node:
            case Running():
                return node.level in levels and how.subnormals != "keep"
            case Repeat():
                return how.subnormals != "keep" and self._loop_keeps(node, how, levels)
            case Constant():
                return True
            case Element():
                return node.operand == "c" and self.unit.c == how.format and node.subnormals != "keep"
            case Round() if node.rounding.format == how.format and node.rounding.nan_or_zero:
                return node.rounding.subnormals != "keep" or self._is_far(node, how, levels, True)
        return False

    def _is_far(self, node: Round, how: Rounding, levels: Levels, normal: bool) -> bool:
        """Whether a sum that is not zero is at least the smallest number of its format, the smallest normal one if
        `normal`."""
        fmt, terms = how.format, terms_of(node)
        least = fmt.emin if normal else least_of(fmt)
        grids = [self.grids.of(term) for term in terms]
        if all(grid is not None and grid >= least for grid in grids):
            return True
        near = [n for n, grid in enumerate(grids) if grid is None or grid - fmt.precision < least]
        return len(near) == 1 and self._is_number(terms[near[0]], how, levels, normal)

    def _is_number(self, node: Node, how: Rounding, levels: Levels, normal: bool) -> bool:
        """Whether every value of a node is a number of the format, a normal one or zero if `normal`."""
        if normal:
            return self._is_never_tiny(node, how, levels)
        match node:
            case Running():
                return node.level in levels
            case Repeat():
                return all(
                    self._is_number(part, how, levels | {node.level}, normal) for part in (node.start, node.body)
                )
            case Element():
                return node.operand == "c" and self.unit.c == how.format
            case Round():
                return node.rounding.format == how.format
        return isinstance(node, Constant)


def is_reading(how: Rounding) -> bool:
    """Whether a rounding is how a unit reads a number of the same format as an addend, every zero as +0."""
    plain = (how.mode, how.overflow, how.nan, how.zero) == ("nearest_even", "ieee", None, "positive")
    return plain and how.subnormals in ("keep", "flush_after") and how.format.has_negative_zero
