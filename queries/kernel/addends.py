"""What is known of a sum so far: that it is never -0, never subnormal; and how a unit reads it as an addend.

A unit may read subnormal addends as zeros, and every zero as +0 (CDNA2). In a chain the addend is the result before, so
that reading it changes nothing if no result is subnormal or -0 (smtmodel/nodes/round.py says when). By induction, a
loop whose body reads the result so far in this way then computes as one that reads its start once.
"""

from __future__ import annotations

from dataclasses import replace

from mmaprobe.smtmodel.nodes import Constant, Element, Node, Repeat, Round, Running
from mmaprobe.smtmodel.nodes.known import Known
from mmaprobe.smtmodel.nodes.node import Knowledge, walk
from mmaprobe.smtmodel.nodes.rewriting import rebuilt, replaced
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit


def read_once(unit: Unit) -> Node:
    """The result of a unit, whose loops read no result so far that is read as it is."""
    return _Reader(unit).form(unit.result)


def reading_that_changes_nothing(unit: Unit) -> Rounding | None:
    """How all results of a unit may be read without a change: a rounding to their format that makes zeros +0, and
    subnormal numbers zero where there are none; None if a result may be -0."""
    reader = _Reader(unit)
    for tiny in ("flush_after", "keep"):
        how = Rounding(unit.d, subnormals=tiny, zero="positive")
        if unit.d.has_negative_zero and reader.keeps(unit.result, how, reader.known):
            return how
    return None


class _Reader:
    """Rewrites the loops of one unit."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.known = Knowledge(unit.formats)

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
        read = replace(Known.number(frozenset((how.format,))), never_minus=True, never_tiny=how.subnormals != "keep")
        if so_far in walk(bare) or not self.keeps(body, how, self.known.within(loop.level, read)):
            return loop
        return Repeat(loop.level, loop.places, self._read(loop.start, how), body)

    def _read(self, start: Node, how: Rounding) -> Node:
        """A start as it is read."""
        if isinstance(start, Element) and self.unit.c == how.format and start.operand == "c":
            flushed = how.subnormals != "keep" or start.subnormals != "keep"
            return Element("c", None, "positive_zero" if flushed else "keep", True)
        return start if self.keeps(start, how, self.known) else Round(start, how)

    def keeps(self, node: Node, how: Rounding, known: Knowledge) -> bool:
        """Whether reading does not change any value of a node."""
        one = known.of(node)
        plain = one.never_minus and (how.subnormals == "keep" or one.never_tiny)
        return plain and one.formats is not None and one.formats <= {how.format}


def is_reading(how: Rounding) -> bool:
    """Whether a rounding is how a unit reads a number of the same format as an addend, every zero as +0."""
    plain = (how.mode, how.overflow, how.nan, how.zero) == ("nearest_even", "ieee", None, "positive")
    return plain and how.subnormals in ("keep", "flush_after") and how.format.has_negative_zero
