"""The powers of two of which all values of an expression are multiples."""

from __future__ import annotations

from collections.abc import Mapping

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.nodes import Constant, Element, ExactSum, Node, Product, Repeat, Round, Running
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.rewriting import each_of

ANY = 1 << 20  # an exponent above all: zero is a multiple of every power of two


class Grids:
    """Of the nodes of one unit. `formats`: those of its operands, by name."""

    def __init__(self, formats: Mapping[str, Format]) -> None:
        self.formats = formats
        self.found: dict[Node, int | None] = {}

    def of(self, node: Node) -> int | None:
        """An exponent e such that all finite values of a node are multiples of 2^e; None if none is known."""
        if node not in self.found:
            self.found[node] = self._of(node)
        return self.found[node]

    def _of(self, node: Node) -> int | None:
        match node:
            case Constant():
                return ANY
            case Element() if node.operand in self.formats:
                return least_of(self.formats[node.operand])
            case Product():
                left, right = self.of(node.left), self.of(node.right)
                return None if left is None or right is None else left + right
            case Repeat():
                return self._of_loop(node, node.body) if isinstance(node.body, Round) else None
            case Round() if node.rounding.nan_or_zero:  # else the number written for a NaN may be any multiple
                fmt = node.rounding.format
                grids = [self.of(term) for term in terms_of(node)]
                inner = min(least_of(fmt) if grid is None else grid for grid in grids)
                return min(max(inner, least_of(fmt)), fmt.emax - fmt.fraction)
        return None

    def _of_loop(self, loop: Repeat, body: Round) -> int | None:
        """By induction: if the start and the other terms of every step are multiples of 2^e, so is every sum so far,
        which is no more than one of the terms. Where it is more, nothing is assumed of it."""
        so_far = Running(loop.level)
        others = [term for term in terms_of(body) if term != so_far]
        if not any(so_far in walk(term) for term in others):
            body = Round(ExactSum((Constant(), *others)), body.rounding)
        start, step = self.of(loop.start), self.of(body)
        return None if start is None or step is None else min(start, step)


def terms_of(rounding: Round) -> list[Node]:
    """The terms that a rounding adds exactly: those of its exact sum, nested ones included, or its one term."""
    items = rounding.term.flat.items if isinstance(rounding.term, ExactSum) else (rounding.term,)
    return [term for item in items for term in each_of(item)]


def has_positive_sums(rounding: Round) -> bool:
    """Whether every exact zero sum of several terms is +0; a sum of one term is that term instead, with its sign."""
    term = rounding.term
    several = isinstance(term, ExactSum) and sum(item.count for item in term.items) > 1
    return rounding.rounding.zero == "exact_positive" and several


def least_of(fmt: Format) -> int:
    """The exponent e of the smallest positive number 2^e of a format, of which all its finite numbers are multiples."""
    return fmt.emin - fmt.fraction
