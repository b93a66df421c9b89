"""The sum on a grid: all terms truncated or rounded to the multiples of one power of two, and added as integers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from mmaprobe.smtmodel.arithmetic.alignment import align, is_within, magnitude_of, total_of
from mmaprobe.smtmodel.arithmetic.decode import Exponent, Term, Unpacked
from mmaprobe.smtmodel.arithmetic.rounding import ROUNDINGS, Mode
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.wording import as_words
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, all_of, constant, max_of, select, truth
from mmaprobe.smtmodel.nodes.known import ZERO, Known, all_known, grid_of, power, sum_of, total, turns_of
from mmaprobe.smtmodel.nodes.node import Context, Knowledge, Node, Value, Variant, near, others
from mmaprobe.smtmodel.nodes.sums import (
    Sum,
    counted_exponents,
    enter_terms,
    in_order,
    named_terms,
    record_terms,
    summed,
)
from mmaprobe.smtmodel.nodes.trace import Part, Stage, Trace


@dataclass(frozen=True, eq=False)
class GridSum(Sum):
    """The sum of terms as multiples of 2^g, where g is the largest of e - F over the terms that are not zero, each with
    its own exponent e and its operand's F.

    `fraction_bits`: F of each operand. `rounding`: the mode in which a term is rounded to the grid. `frame`: the
    position of the operand whose sign is the adder's: unless all terms are zero, a term of magnitude m (zeros too) with
    the opposite sign adds ~m = -m - 1, its inverted bits without the one of a negation; None: such a term adds -m. (A
    frame operand that is a zero sum is negative here if all its terms are.) `floors`, one for each operand: the least
    exponent with which its terms count in g, zeros included (None: no floor, and zeros do not count). `reach`, one for
    each operand: a term whose exponent is more than that many places below g vanishes (None: no term vanishes).
    """

    kind: ClassVar[str] = "grid"
    source: ClassVar[str] = "ROCm/rocm-systems, issue 12056 and pull request 12120 (RDNA3, RDNA3.5 and RDNA4)"
    items: tuple[Node, ...]
    fraction_bits: tuple[int, ...]
    rounding: Mode = "toward_zero"
    frame: int | None = None
    floors: tuple[int | None, ...] = ()
    reach: tuple[int | None, ...] = ()

    def __post_init__(self) -> None:
        self.check_alignment(self.fraction_bits, self.floors, self.reach)
        if self.frame is not None:
            if not 0 <= self.frame < len(self.items):
                raise ParameterError("frame", f"{self.frame} is not a position among its {len(self.items)} operands")
            if self.items[self.frame].count != 1:
                raise ParameterError("frame", "the sign of one term is needed, and that operand stands for several")

    @property
    def bits_of_terms(self) -> tuple[int, ...]:
        return self.by_term(self.fraction_bits)

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        """The facts of the sum. In units of the grid, a term is at most head * 2^e, plus one if rounding may raise it,
        plus one if its bits may be inverted."""
        terms = [(known, bits) for known, bits in zip(operands, self.bits_of_terms, strict=True) if not known.zero]
        finite = all(known.finite for known in operands)
        if not terms:
            return replace(ZERO, never_minus=all(known.never_minus for known in operands), finite=finite,
                           turns=turns_of(operands))  # fmt: skip
        finest = max(self.bits_of_terms)
        leasts = all_known(total(known.least, -bits) for known, bits in terms)
        mosts = all_known(total(known.most, -bits) for known, bits in terms)
        floors = [e - bits for e, bits in zip(self.floors, self.fraction_bits, strict=False) if e is not None]
        places = None if leasts is None else [max([min(leasts), *floors])]  # the least g where a term is not zero
        grid = grid_of(operands)
        if self.frame is not None:
            grid = None if grid is None or places is None else min(grid, *places)
        heads = all_known(None if known.head is None else known.head * power(bits - finest) for known, bits in terms)
        head = None if heads is None else sum(heads) + 2 * len(operands) * power(-finest)
        most = None if mosts is None else max(mosts + floors) + finest
        units = len(operands) * ((self.rounding != "toward_zero") + (self.frame is not None))
        more = None if most is None else units * power(most - finest)
        return Known(
            None if leasts is None else min(leasts) + finest, most, head, finest, grid,
            interval=sum_of(operands, more, head, most), finite=finite,
        )  # fmt: skip

    def of_terms(self, terms: Sequence[tuple[int, Node]]) -> Self:
        total = super(GridSum, replace(self, frame=None)).of_terms(terms)
        if self.frame is None:
            return total
        (frame,) = (place for place, (at, _) in enumerate(terms) if at == self.frame)
        return replace(total, frame=frame)

    def key_of(self, position: int) -> tuple[str, ...]:
        return (*super().key_of(position), str(position == self.frame))

    @property
    def bounds(self) -> tuple[int, ...]:
        return tuple(floor for floor in self.floors if floor is not None)

    @property
    def frame_term(self) -> int | None:
        return None if self.frame is None else sum(item.count for item in self.items[: self.frame])

    @property
    def raises_of_terms(self) -> tuple[int, ...]:
        return tuple(max(self.fraction_bits) - bits for bits in self.bits_of_terms)

    @property
    def reach_of_terms(self) -> list[int | None]:
        finest = max(self.fraction_bits)
        return [None if far is None else finest + far for far in self.each_term(self.reach)]

    def evaluate(self, context: Context, keep: int | None) -> Value:
        names, values = named_terms(self.items, context)
        return summed(self, context, self.own, self._sum, names, values, tuple(value.finite_sign for value in values))

    def _sum(self, trace: Trace, names: Sequence[str], own_signs: Sequence[Bit], *items: Value | Unpacked) -> Term:
        carrier = items[0].sign.carrier
        finest = max(self.fraction_bits)
        exponents = self._counted(items)
        maximum = replace(exponents[0], bits=max_of([own.bits for own in exponents]))
        unit = maximum.offset(-finest)
        enter_terms(trace, names, items, exponents)
        trace.exponent(Stage.MAXIMUM, maximum)
        aligned = []
        for item, far in zip(items, self.reach_of_terms, strict=True):
            magnitude = align(item.term, maximum, finest, self.rounding)
            if far is not None:
                near_enough = is_within(item.term, maximum, far)
                magnitude = select(near_enough, magnitude, constant(carrier, 0, magnitude.width))
            aligned.append(magnitude)
        frame = truth(carrier, False) if self.frame_term is None else own_signs[self.frame_term]
        signs = [sign ^ frame for sign in own_signs]
        if self.frame is not None:
            counts = ~all_of([item.is_zero for item in items])
            aligned = [_one_more(size, sign & counts) for size, sign in zip(aligned, signs, strict=True)]
        record_terms(trace, names, items, aligned, unit)
        total = total_of(signs, aligned, None)
        trace.number(Stage.SUM, total, unit, is_signed=True)
        opposes, magnitude = magnitude_of(total)
        negative = (opposes ^ frame) & magnitude.any()  # a zero sum has a plus sign, as in every sum
        trace.flag(Stage.SUM, negative, part=Part.NEGATIVE)
        trace.number(Stage.SUM, magnitude, unit, part=Part.MAGNITUDE)
        return Term(negative, magnitude, unit.offset(finest), finest)

    def _counted(self, items: Sequence[Value | Unpacked]) -> list[Exponent]:
        """The exponents of the terms in the maximum, each raised by the difference between the largest F and the
        term's F."""
        least, raised = self.each_term(self.floors), self.raises_of_terms
        floors = [None if floor is None else floor + more for floor, more in zip(least, raised, strict=True)]
        own = [item.term.exponent.offset(more) for item, more in zip(items, raised, strict=True)]
        return counted_exponents(items, own, floors)

    def variants(self) -> Iterator[Variant]:
        for bits in dict.fromkeys(self.fraction_bits):
            yield from others("fraction_bits", bits, near(bits))
        yield from others("rounding", self.rounding, ROUNDINGS)
        alone = [position for position, item in enumerate(self.items) if item.count == 1]
        yield from others("frame", self.frame, (None, *alone))
        for name in ("floors", "reach"):
            yield from others(name, getattr(self, name), ((),))

    def sentence(self) -> str:
        bits = ", ".join(map(str, self.fraction_bits))
        small = {"toward_zero": "truncated"}.get(self.rounding, f"rounded {as_words(self.rounding)}")
        flips = "" if self.frame is None else "; bits of a term that opposes one operand's sign flipped, not negated"
        grid = f"multiples of one 2^(exponent - F), the largest, F = {bits} by operand"
        floors = f"; {in_order(self.floors)}: the least exponents of its terms in order" if self.bounds else ""
        return f"terms {small} to {grid}; added{flips}{floors}{self.vanishing('this power of two')}"


def _one_more(magnitude: Bits, more: Bit) -> Bits:
    """A magnitude, plus one where `more` is set."""
    width = magnitude.width + 1
    return magnitude.zext(width) + more.bits(width)
