"""Sums of sums without loss as one sum, so that two plans that round at other places have one form where the formats
make these roundings exact.

Each rule keeps the value of a rounded result, with the sign of a zero; it knows the formats of the inputs:

- exact: a rounding of one product or number that its format always holds loses nothing: in a sum its terms stand for
  it (a product of two e2m1 in e4m3, of two f16 in f32);
- zeros: +0 among the terms says only that a sum of zeros is +0; it stands there once where a term is never -0;
- signs: in such a sum the sign of a term that is zero does not matter, so that no +0 is among that term's own terms;
- again: a rounded sum, perhaps with +0, rounded as before, is the sum of the same terms, rounded once.

The rules about zeros hold where no nonzero sum is rounded to zero: all terms are multiples of the smallest number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from smtmodel.formats import Format
from smtmodel.nodes import Constant, Each, Element, ExactSum, Node, Product, Round
from smtmodel.nodes.rewriting import at_place, with_operands, written_out
from smtmodel.nodes.round import Rounding
from smtmodel.unit import Unit

ZERO = Constant()
ANY = 1 << 20  # an exponent above all: zero is a multiple of every power of two


def merged(unit: Unit) -> Node:
    """The result of a unit, without loops, in this form."""
    return _Merger(unit, False).form(written_out(unit.result))


def merged_after_zero(unit: Unit) -> Node | None:
    """The same for every c that is not -0; None where the result may be -0 all the same."""
    merger = _Merger(unit, True)
    form = merger.form(written_out(unit.result))
    return form if merger.is_never_minus(form) else None


@dataclass(frozen=True)
class _Size:
    """Of a number: bits of its significand, an exponent that no value reaches, whether all values are finite."""

    bits: int
    top: int
    finite: bool


class _Merger:
    """`after_zero`: c is not -0."""

    def __init__(self, unit: Unit, after_zero: bool) -> None:
        self.formats: dict[str, Format] = {"a": unit.a, "b": unit.b, "c": unit.c}
        self.after_zero = after_zero
        self.found: dict[Node, Node] = {}
        self.grids: dict[Node, int | None] = {}
        self.signless: dict[Node, Node] = {}

    def form(self, node: Node) -> Node:
        """The node in this form; the operands of other nodes in theirs."""
        if node not in self.found:
            other = with_operands(node, (self.form(operand) for operand in node.operands))
            self.found[node] = self._summed(other.rounding, _terms(other)) if self._keeps_zeros(other) else other
        return self.found[node]

    def _summed(self, how: Rounding, terms: Sequence[Node]) -> Round:
        """Terms in this form, of which none is lost beside a zero, added exactly and rounded."""
        plus = any(map(self.is_never_minus, terms))
        flat = [part for term in terms for part in self._parts(self._signless(term) if plus else term)]
        for one in flat if len(flat) == 1 else ():
            if self._repeats(one, how):
                if not plus:
                    return one
                how, flat = one.rounding, [part for part in _terms(one) if not _is_zero(part)]
        return Round(ExactSum((*flat, *([ZERO] if plus else []))), how)

    def _parts(self, term: Node) -> Sequence[Node]:
        """What a term is the exact sum of, without zeros."""
        return [part for part in (_terms(term) if self._is_exact(term) else [term]) if not _is_zero(part)]

    def _signless(self, node: Node) -> Node:
        """A term whose sign does not matter where it is zero."""
        if not self._keeps_zeros(node):
            return node
        if node not in self.signless:
            terms = [self._signless(term) for term in _terms(node) if not _is_zero(term)]
            self.signless[node] = self._summed(node.rounding, terms) if terms else ZERO
        return self.signless[node]

    # -- what is known of a value

    def _keeps_zeros(self, node: Node) -> TypeGuard[Round]:
        """Whether a node is a rounding of numbers that makes no zero of what is none, and gives a zero the sign that
        IEEE 754 has for it to nearest: all terms are multiples of its format's smallest number."""
        if not isinstance(node, Round):
            return False
        how = node.rounding
        if (how.subnormals, how.zero) != ("keep", "ieee") or how.mode == "down" or not how.format.has_negative_zero:
            return False
        if not how.nan_or_zero:
            return False
        grids = [self._grid(term) for term in _terms(node)]
        return all(grid is not None and grid >= _least(how.format) for grid in grids)

    def is_never_minus(self, node: Node) -> bool:
        if isinstance(node, Element) and node.operand == "c":
            return self.after_zero
        return _is_zero(node) or (self._keeps_zeros(node) and any(map(_is_zero, _terms(node))))

    def _is_exact(self, node: Node) -> TypeGuard[Round]:
        """Whether a rounding keeps the one number that it has beside zeros, whatever it is."""
        if not self._keeps_zeros(node):
            return False
        fmt = node.rounding.format
        sizes = [self._size(term) for term in _terms(node) if not _is_zero(term)]
        return len(sizes) <= 1 and all(
            size is not None and size.bits <= fmt.precision and size.top <= fmt.emax
            and (size.finite or (fmt.has_infinity and node.rounding.keeps_nan))
            for size in sizes
        )  # fmt: skip

    def _repeats(self, one: Node, how: Rounding) -> TypeGuard[Round]:
        """Whether a rounding keeps what a node gives, which is a rounding as well."""
        return self._keeps_zeros(one) and (how.format, how.nan) == (one.rounding.format, one.rounding.nan)

    def _grid(self, node: Node) -> int | None:
        """An exponent of two: finite values are multiples of this power. None where none is known."""
        if node not in self.grids:
            self.grids[node] = self._grid_of(node)
        return self.grids[node]

    def _grid_of(self, node: Node) -> int | None:
        match node:
            case Constant():
                return ANY
            case Element() if node.operand in self.formats:
                return _least(self.formats[node.operand])
            case Product():
                left, right = self._grid(node.left), self._grid(node.right)
                return None if left is None or right is None else left + right
            case Round():
                fmt = node.rounding.format
                grids = [self._grid(term) for term in _terms(node)]
                inner = min(_least(fmt) if grid is None else grid for grid in grids)
                return min(max(inner, _least(fmt)), fmt.emax - fmt.fraction)
        return None

    def _size(self, node: Node) -> _Size | None:
        """None where it is not known."""
        match node:
            case Element() if node.operand in self.formats:
                fmt = self.formats[node.operand]
                return _Size(fmt.precision, fmt.emax + 1, not (fmt.has_infinity or fmt.has_nan))
            case Round():
                fmt = node.rounding.format
                return _Size(fmt.precision, fmt.emax + 1, False)
            case Product(limit=None):
                left, right = self._size(node.left), self._size(node.right)
                if left is not None and right is not None:
                    return _Size(left.bits + right.bits, left.top + right.top, left.finite and right.finite)
        return None


def _terms(rounding: Round) -> list[Node]:
    """What a rounding adds exactly: one node, or what its exact sum has."""
    return list(_added(rounding.term))


def _added(node: Node) -> Iterator[Node]:
    if isinstance(node, ExactSum):
        for item in node.items:
            yield from _added(item)
    elif isinstance(node, Each):
        for place in node.places:
            yield from _added(at_place(node.body, node.level, place))
    else:
        yield node


def _is_zero(term: Node) -> bool:
    """Whether a term is +0 and nothing else."""
    if isinstance(term, Product):
        return _is_zero(term.left) and _is_zero(term.right)
    return isinstance(term, Constant) and not term.negative


def _least(fmt: Format) -> int:
    """The exponent of the smallest number, of which all are multiples."""
    return fmt.emin - fmt.fraction
