"""Flattens nested sums whose inner roundings are exact into one sum, so that two plans that round at different places
have the same form if the formats make these roundings exact.

Each rule keeps the value of a rounded result, with the sign of a zero; it uses the formats of the inputs:

- exact: a rounding of one product or number that its format always represents loses nothing: within a sum it is
  replaced by its terms (a product of two e2m1 in e4m3, of two f16 in f32);
- zeros: +0 among the terms only makes a sum of zeros +0; it is kept once if some term is never -0, or if the rounding
  makes every zero sum +0;
- signs: in such a sum the sign of a term that is zero does not matter, so that +0 is left out of that term's own terms;
- again: a rounded sum, perhaps with +0, rounded as before, is the sum of the same terms, rounded once.

The rules about zeros hold where no nonzero sum is rounded to zero: all terms are multiples of the smallest number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeGuard

from mmaprobe.smtmodel.nodes import Constant, ExactSum, Node, Product, Round
from mmaprobe.smtmodel.nodes.node import Knowledge
from mmaprobe.smtmodel.nodes.rewriting import rebuilt, terms_of, written_out
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit

ZERO = Constant()


def merged(unit: Unit) -> Node:
    """The result of a unit with its loops written out and its nested sums flattened."""
    return _Merger(unit, False).form(written_out(unit.result))


def merged_after_zero(unit: Unit) -> Node | None:
    """The flattened result of a unit, with its loops written out, for every c other than -0; None if the result may
    still be -0."""
    merger = _Merger(unit, True)
    form = merger.form(written_out(unit.result))
    return form if merger.is_never_minus(form) else None


class _Merger:
    """Flattens the nodes of one unit. `after_zero`: c is assumed not to be -0."""

    def __init__(self, unit: Unit, after_zero: bool) -> None:
        self.known = Knowledge(unit.formats, frozenset({"c"}) if after_zero else frozenset())
        self.found: dict[Node, Node] = {}
        self.signless: dict[Node, Node] = {}

    def form(self, node: Node) -> Node:
        """The node with all sums of sums within it flattened."""
        return rebuilt(node, self._flattened, self.found)

    def _flattened(self, _: Node, node: Node) -> Node:
        """A node over flattened operands."""
        other = self._with_zero(node)
        return self._summed(other.rounding, terms_of(other)) if self._keeps_zeros(other) else other

    def _with_zero(self, node: Node) -> Node:
        """The node with +0 among its terms, if its rounding makes zero sums +0 and no other sum zero."""
        if not isinstance(node, Round) or not (node.rounding.zero == "positive" or _has_positive_sums(node)):
            return node
        plain = Round(ExactSum((*terms_of(node), ZERO)), replace(node.rounding, zero="ieee"))
        return plain if self._keeps_zeros(plain) else node

    def _summed(self, how: Rounding, terms: Sequence[Node]) -> Round:
        """The flattened form of terms added exactly and rounded, all flattened themselves; the rounding keeps zeros
        (`_keeps_zeros`)."""
        plus = any(map(self.is_never_minus, terms))
        flat = [part for term in terms for part in self._parts(self._signless(term) if plus else term)]
        for one in flat if len(flat) == 1 else ():
            if self._repeats(one, how):
                if not plus:
                    return one
                how, flat = one.rounding, [part for part in terms_of(one) if not _is_zero(part)]
        return Round(ExactSum((*flat, *([ZERO] if plus else []))), how)

    def _parts(self, term: Node) -> Sequence[Node]:
        """The terms whose exact sum a term is, constants +0 left out."""
        return [part for part in (terms_of(term) if self._is_exact(term) else [term]) if not _is_zero(part)]

    def _signless(self, node: Node) -> Node:
        """A term simplified for a sum in which the sign of its zero does not matter."""
        if not self._keeps_zeros(node):
            return node
        if node not in self.signless:
            terms = [self._signless(term) for term in terms_of(node) if not _is_zero(term)]
            self.signless[node] = self._summed(node.rounding, terms) if terms else ZERO
        return self.signless[node]

    # -- properties of a value

    def _keeps_zeros(self, node: Node) -> TypeGuard[Round]:
        """Whether a node is a rounding that never rounds a nonzero sum to zero (all terms are multiples of the smallest
        number of its format) and gives a zero the sign of IEEE 754 for rounding to nearest."""
        if not isinstance(node, Round):
            return False
        how = node.rounding
        if (how.subnormals, how.zero) != ("keep", "ieee") or how.mode == "down" or not how.format.has_negative_zero:
            return False
        if not how.nan_or_zero:
            return False
        grids = [self.known.of(term).grid for term in terms_of(node)]
        return all(grid is not None and grid >= how.format.emin - how.format.fraction for grid in grids)

    def is_never_minus(self, node: Node) -> bool:
        """Whether the value of a flattened node is known never to be -0."""
        return self.known.of(node).never_minus

    def _is_exact(self, node: Node) -> TypeGuard[Round]:
        """Whether a rounding has at most one term besides constants +0, and represents every value of that term
        exactly."""
        if not self._keeps_zeros(node):
            return False
        fmt = node.rounding.format
        sizes = [self.known.of(term) for term in terms_of(node) if not _is_zero(term)]
        return len(sizes) <= 1 and all(
            size.bits is not None and size.bits <= fmt.precision and size.top is not None and size.top <= fmt.emax
            and (size.finite or (fmt.has_infinity and node.rounding.keeps_nan))
            for size in sizes
        )  # fmt: skip

    def _repeats(self, one: Node, how: Rounding) -> TypeGuard[Round]:
        """Whether a node is a rounding whose results are unchanged if they are rounded again by `how`."""
        return self._keeps_zeros(one) and (how.format, how.nan) == (one.rounding.format, one.rounding.nan)


def _has_positive_sums(rounding: Round) -> bool:
    """Whether every exact zero sum of several terms is +0; a sum of one term is that term instead, with its sign."""
    term = rounding.term
    several = isinstance(term, ExactSum) and sum(item.count for item in term.items) > 1
    return rounding.rounding.zero == "exact_positive" and several


def _is_zero(term: Node) -> bool:
    """Whether a term is the constant +0, or a product of such constants."""
    if isinstance(term, Product):
        return _is_zero(term.left) and _is_zero(term.right)
    return isinstance(term, Constant) and not term.negative
