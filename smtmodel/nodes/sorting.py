"""A sum of three terms in the order of their exponents: two additions, with one sticky bit for the bits cut off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

from mmaprobe.smtmodel.arithmetic.alignment import magnitude_of, total_of
from mmaprobe.smtmodel.arithmetic.decode import Exponent, Term, Unpacked
from mmaprobe.smtmodel.base.errors import ParameterError, check_number
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, choose, constant, select, shift_right_jam, truth
from mmaprobe.smtmodel.nodes.counting import Counting
from mmaprobe.smtmodel.nodes.exact import ExactSum
from mmaprobe.smtmodel.nodes.known import UNKNOWN, Known
from mmaprobe.smtmodel.nodes.node import Context, Knowledge, Node, Terminal, Value, Variant, near, others
from mmaprobe.smtmodel.nodes.product import Product
from mmaprobe.smtmodel.nodes.sums import BITS, enter_terms, named_terms, summed
from mmaprobe.smtmodel.nodes.trace import Part, Stage, Trace


class _Placed(NamedTuple):
    """A term to be sorted: its sign, its magnitude with the first place 2^head, and `head`, as bits with a static
    offset that all terms share. The head of a zero that does not count is below all others."""

    sign: Bit
    magnitude: Bits
    head: Bits


@dataclass(frozen=True, eq=False)
class SortedSum(Node):
    """The sum of three terms, x, y and z from the largest exponent to the smallest (terms with the same exponent stay
    in order): x + y is formed, then z is added.

    A term's exponent is the exponent of the first place that the term may have: one more than the sum of the factors'
    exponents for a product. x has the exponent m. `fraction_bits`: how many places below 2^m the first and the second
    addition keep. The term added is cut off there in two's complement: toward zero if its sign and the sum's agree,
    away from zero if they differ, as by a borrow. A bit below the last place is set if either addition lost a bit. If x
    and y cancel, the sum is z.
    """

    kind: ClassVar[str] = "sorted"
    source: ClassVar[str] = "adders of three operands by sorting, as expanding dot products of open vector units have"
    items: tuple[Node, ...]
    fraction_bits: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.fraction_bits) != 2 or self.fraction_bits[0] > self.fraction_bits[1]:
            raise ParameterError(
                "F", "two whole numbers are needed, one for each addition, the second at least as large"
            )
        for bits in self.fraction_bits:
            check_number("F", bits, BITS)
        if len(self.items) != 3:
            raise ParameterError("sorted", f"it adds three terms, and these are {len(self.items)}")
        for item in self.items:
            one = item.term if isinstance(item, Counting) else item
            if not (isinstance(one, Terminal) or (isinstance(one, Product) and not one.normalised)):
                raise ParameterError("sorted", "its terms are inputs and products that are not normalised")

    def evaluate(self, context: Context, keep: int | None) -> Value:
        return summed(self, context, self.own, self._sum, *named_terms(self.items, context))

    def _sum(self, trace: Trace, names: Sequence[str], *items: Value | Unpacked) -> Term:
        first, second = self.fraction_bits
        exponents = _heads(items)
        enter_terms(trace, names, items, exponents)
        width = max(item.term.significand.width for item in items)
        x, y, z = _in_order(
            [_Placed(item.sign, item.term.significand.pad(width - item.term.significand.width), exponent.bits)
             for item, exponent in zip(items, exponents, strict=True)]
        )  # fmt: skip
        head = replace(exponents[0], bits=x.head)
        trace.exponent(Stage.MAXIMUM, head)
        start, _ = _cut(x, x.head, first)
        sign, total, lost = _added(x.sign, start, y, x.head, first)
        alone = ~total.any() & ~lost
        sign, total, lost_then = _added(sign, total.pad(second - first), z, x.head, second)
        total = total.concat((lost | lost_then).bits(1))
        fraction = second + 1
        if (more := width - 1 - fraction) > 0:
            total, fraction = total.pad(more), fraction + more
        rest = z.magnitude.pad(fraction + 1 - width)
        size = max(total.width, rest.width)
        total = select(alone, rest.zext(size), total.zext(size))
        sign = choose(alone, z.sign, sign) & total.any()
        at = replace(head, bits=select(alone, z.head, x.head))
        trace.flag(Stage.SUM, sign, part=Part.NEGATIVE)
        trace.number(Stage.SUM, total, at.offset(-fraction), part=Part.MAGNITUDE)
        return Term(sign, total, at, fraction)

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        """Whether the sum is finite, and nothing else."""
        return replace(UNKNOWN, finite=all(known.finite for known in operands), adds=True)

    def variants(self) -> Iterator[Variant]:
        for bits in dict.fromkeys(self.fraction_bits):
            yield from others("fraction_bits", bits, near(bits))
        yield Variant(self.kind, True, False)

    def varied(self, variant: Variant) -> Node:
        return ExactSum(self.items) if variant.parameter == self.kind else super().varied(variant)

    def sentence(self) -> str:
        first, second = self.fraction_bits
        return (
            f"the two terms with the largest exponents added, {first} bits kept below the first, then the third, "
            f"{second} bits kept, with one sticky bit"
        )


def _heads(items: Sequence[Value | Unpacked]) -> list[Exponent]:
    """The exponents of the first places that terms may have, with one static offset; bits 0 are below all exponents."""
    own = [item.term.exponent.offset(item.term.integer - 1) for item in items]
    low, high = min(one.low for one in own) - 1, max(one.high for one in own)
    width = (high - low).bit_length()
    nought = constant(items[0].sign.carrier, 0, width)
    return [Exponent(select(item.is_zero, nought, one.rebased(low, width)), low, high, floats=True)
            for item, one in zip(items, own, strict=True)]  # fmt: skip


def _in_order(terms: Sequence[_Placed]) -> list[_Placed]:
    """The terms from the largest exponent to the smallest."""
    before = {(i, j): terms[j].head.ule(terms[i].head) for i, j in ((0, 1), (0, 2), (1, 2))}
    first = [before[0, 1] & before[0, 2], ~before[0, 1] & before[1, 2], ~before[0, 2] & ~before[1, 2]]
    last = [~before[0, 1] & ~before[0, 2], before[0, 1] & ~before[1, 2], before[0, 2] & before[1, 2]]
    middle = [~one & ~other for one, other in zip(first, last, strict=True)]
    return [_chosen(flags, terms) for flags in (first, middle, last)]


def _chosen(flags: Sequence[Bit], terms: Sequence[_Placed]) -> _Placed:
    """The term whose flag is set. Exactly one of the three flags is."""
    one, other, rest = terms
    return _Placed(
        choose(flags[0], one.sign, choose(flags[1], other.sign, rest.sign)),
        select(flags[0], one.magnitude, select(flags[1], other.magnitude, rest.magnitude)),
        select(flags[0], one.head, select(flags[1], other.head, rest.head)),
    )


def _cut(term: _Placed, head: Bits, fraction_bits: int) -> tuple[Bits, Bit]:
    """The magnitude of a term, cut off, in units of 2^(head - fraction_bits), and whether set bits are cut off."""
    spare = fraction_bits - (term.magnitude.width - 1)
    shifted = term.magnitude.pad(max(0, spare) + 1)
    if spare < 0:
        shifted = shift_right_jam(shifted, constant(shifted.carrier, -spare, (-spare).bit_length()))
    shifted = shift_right_jam(shifted, head - term.head)
    return shifted.extract(shifted.width - 1, 1), shifted.bit(0)


def _added(sign: Bit, so_far: Bits, term: _Placed, head: Bits, fraction_bits: int) -> tuple[Bit, Bits, Bit]:
    """The sign and the magnitude of a sum after one more term is added, and whether set bits of this term are cut
    off."""
    kept, lost = _cut(term, head, fraction_bits)
    opposes = sign ^ term.sign
    width = kept.width + 1
    kept = kept.zext(width) + (lost & opposes).bits(width)
    negative, total = magnitude_of(total_of([truth(sign.carrier, False), opposes], [so_far, kept], None))
    return sign ^ negative, total, lost
