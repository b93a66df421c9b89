"""A term whose exponent takes part in an alignment even if the term is zero."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar

from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import truth
from mmaprobe.smtmodel.nodes.element import Constant, Literal
from mmaprobe.smtmodel.nodes.known import UNKNOWN, Known
from mmaprobe.smtmodel.nodes.node import Context, Knowledge, Node, Number, Terminal, Unary, Value, Variant
from mmaprobe.smtmodel.nodes.product import Product
from mmaprobe.smtmodel.nodes.repeat import Each

ZEROS_COUNT, PRODUCTS = "zeros_count", "products"  # the parameter of variants of a sum in which zero terms count


@dataclass(frozen=True, eq=False)
class Counting(Unary):
    """An input, or the product of two inputs, that counts in an alignment with its own exponent also where it is zero:
    a zero input with the least exponent of its format, a product with the sum of its factors' exponents, as in a unit
    that does not test for zero before the alignment. Value and sign are the term's."""

    kind: ClassVar[str] = "counting"
    source: ClassVar[str] = "alignments that compare exponent fields alone"
    passes_specials = True

    def __post_init__(self) -> None:
        inputs = self.term.operands if isinstance(self.term, Product) else (self.term,)
        if not all(isinstance(one, Terminal) and not isinstance(one, (Constant, Literal)) for one in inputs):
            raise ParameterError("counting", "it takes an input, or the product of two")
        if isinstance(self.term, Product) and self.term.normalised:
            raise ParameterError("counting", "a product that is zero is not normalised, and counts with no exponent")

    @property
    def is_number(self) -> bool:
        return self.term.is_number

    def key(self, context: Context) -> Hashable:
        inner = self.term.key(context)
        return None if inner is None else (self.kind, inner)

    def evaluate(self, context: Context, keep: int | None) -> Value:
        item = context.value(self.term).item
        return Number(replace(item, is_zero=truth(item.sign.carrier, False)))

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        """Whether the term is finite, and nothing else."""
        return replace(UNKNOWN, finite=operands[0].finite)

    @classmethod
    def nodes_around(cls, node: Node) -> Iterator[Node]:
        with suppress(ParameterError):
            yield cls(node)

    def variants(self) -> Iterator[Variant]:
        yield Variant("counting", True, False)

    def sentence(self) -> str:
        return f"{self.term.sentence()}, which counts where it is zero"


def counting(item: Node) -> Node:
    """An operand of a sum in which zero terms count; unchanged if its terms cannot be `Counting`, or are."""
    return (
        replace(item, body=counting(item.body)) if isinstance(item, Each) else next(Counting.nodes_around(item), item)
    )


def where_zeros_count(items: Sequence[Node]) -> Iterator[Variant]:
    """The variants of a sum in which zero products count, without and with zero inputs among the terms. There is no
    variant for zero inputs alone: these count with the least exponent of their format, which is seldom above the
    exponents of products."""
    able = [item for item in items if counting(item) != item]
    inputs = [item for item in able if isinstance(item, Terminal)]
    if len(able) > len(inputs):
        yield Variant(ZEROS_COUNT, "none", PRODUCTS)
        if inputs:
            yield Variant(ZEROS_COUNT, "none", "terms")


def with_zeros_counting(items: tuple[Node, ...], which: object) -> tuple[Node, ...]:
    """The operands of a sum, changed so that zero products, or all zero terms, count."""
    return tuple(item if which == PRODUCTS and isinstance(item, Terminal) else counting(item) for item in items)
