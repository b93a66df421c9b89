"""The fused sum: all terms aligned at the largest exponent, truncated or rounded, and added unnormalised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import ClassVar

from mmaprobe.smtmodel.arithmetic.alignment import align, bound_matters, distance, is_within, magnitude_of, total_of
from mmaprobe.smtmodel.arithmetic.decode import Exponent, Term, Unpacked
from mmaprobe.smtmodel.arithmetic.rounding import ROUNDINGS, SIGNLESS, Mode
from mmaprobe.smtmodel.base.errors import CARRY_BITS, EXPONENTS, ParameterError, check_number
from mmaprobe.smtmodel.base.wording import as_words
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, any_of, constant, max_of, select, truth
from mmaprobe.smtmodel.nodes.counting import ZEROS_COUNT, where_zeros_count, with_zeros_counting
from mmaprobe.smtmodel.nodes.exact import ExactSum, is_positive
from mmaprobe.smtmodel.nodes.known import (
    ZERO,
    Known,
    all_known,
    magnitude,
    multiple_of,
    power,
    runs,
    sum_of,
    turned,
    turns_of,
)
from mmaprobe.smtmodel.nodes.node import Context, Knowledge, Node, Value, Variant, near, others
from mmaprobe.smtmodel.nodes.sums import Sum, counted_exponents, enter_terms, named_terms, record_terms, summed
from mmaprobe.smtmodel.nodes.trace import Part, Stage, Trace

#: exponents of zero terms in published units, for f16 and f32 results (Xie et al. 2026, Table 5)
PUBLISHED_ZEROS = (-19, -20, -21, -131, -132, -133)
MOST_CARRIES = 6  # enough for 64 terms
#: messages about options that exclude each other
CARRY_ALONE = "a sum that wraps takes one F for all operands, and no sticky"
STICKY_ALONE = "a sum with sticky takes no carry, and no rounding but toward_zero"


@dataclass(frozen=True, eq=False)
class FusedSum(Sum):
    """The sum of terms aligned at the largest exponent m among them, in units of 2^(m - F).

    `fraction_bits`: F, one for all terms or one for each operand. `rounding`: the mode in which a term is rounded to
    its last place. `sticky`: the bits below a term's last place are dropped, and one bit below the sum's last place is
    set if a dropped bit was set. `carry_bits`: the sum wraps in F + 1 + carry_bits bits and a sign; None: no sum wraps.
    Exponents that count in m: `zeros`, the exponent of a zero term (None: a zero term does not count); `least`, the
    least m; `floors`, one for each operand, the least exponent with which its terms count (None: no floor). `reach`,
    one for each operand: a term more than that many places below m vanishes (None: no term vanishes).
    """

    kind: ClassVar[str] = "fused"
    source: ClassVar[str] = "Xie et al. 2026, Algorithms 7 to 11; Valpey et al. 2025, Algorithm 1"
    items: tuple[Node, ...]
    fraction_bits: int | tuple[int, ...]
    rounding: Mode = "toward_zero"
    sticky: bool = False
    carry_bits: int | None = None
    zeros: int | None = None
    least: int | None = None
    floors: tuple[int | None, ...] = ()
    reach: tuple[int | None, ...] = ()

    def __post_init__(self) -> None:
        self.check_alignment(self.fraction_bits, self.floors, self.reach)
        check_number("carry", self.carry_bits, CARRY_BITS)
        check_number("zeros", self.zeros, EXPONENTS)
        check_number("least", self.least, EXPONENTS)
        if self.sticky and self.rounding != "toward_zero":
            raise ParameterError("sticky", STICKY_ALONE)
        if self.carry_bits is not None and (self.sticky or isinstance(self.fraction_bits, tuple)):
            raise ParameterError("carry", CARRY_ALONE)

    @property
    def bits_of_terms(self) -> tuple[int, ...]:
        return self.by_term(self.fraction_bits)

    @property
    def bounds(self) -> tuple[int, ...]:
        """The lower bounds of the largest exponent: the exponent of zeros, the least m, the floors."""
        return tuple(bound for bound in (self.zeros, self.least, *self.floors) if bound is not None)

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        """The facts of the sum. m is at least the exponent of each term. The magnitude of an aligned term is at most
        head * 2^m, rounded up to a multiple of 2^(m - F), or down if `rounding` is toward zero, since rounding is
        monotonic."""
        terms = [(known, bits) for known, bits in zip(operands, self.bits_of_terms, strict=True) if not known.zero]
        finite, turns = all(known.finite for known in operands), turns_of(operands)
        if not terms:
            return replace(ZERO, never_minus=all(known.never_minus for known in operands), finite=finite, turns=turns)
        finest = max(self.bits_of_terms)
        leasts, mosts = (
            all_known(ends) for ends in zip(*((known.least, known.most) for known, _ in terms), strict=True)
        )
        aligned = self._aligned_head(terms)
        head = None if aligned is None else aligned + power(-finest)
        most = None if mosts is None else max([*mosts, *self.bounds])
        added = [finest] if self.sticky else [] if self.rounding == "toward_zero" else self.bits_of_terms
        more = None if most is None else sum((power(most - bits) for bits in added), Fraction(0))
        m = self._least_maximum(leasts)
        grids = [known.grid if m is None else m - bits if known.grid is None else max(known.grid, m - bits)
                 for known, bits in terms]  # fmt: skip
        grid = None if self.sticky or None in grids else min(grid for grid in grids if grid is not None)
        interval, room = sum_of(operands, more, head, most), self.never_wraps(operands)
        if interval is not None and not room:
            interval = -magnitude(interval), magnitude(interval)
        return Known(
            None if leasts is None else min(leasts), most, head, finest + self.sticky,
            grid, interval=interval, finite=finite,
            adds=True, agrees=(agrees := self._agrees(operands)),
            positive=is_positive(operands if agrees else [known for known in operands if known.zero]),
            turns=turned(turns, self._is_signless and room),
        )  # fmt: skip

    @property
    def _is_signless(self) -> bool:
        """Whether the alignment depends on magnitudes alone. A sticky bit does not: it has no sign if terms cancel."""
        return self.rounding in SIGNLESS and not self.sticky

    def never_wraps(self, terms: Sequence[Known]) -> bool:
        """Whether the sum of all aligned terms is certainly less than 2^(1 + carry bits) * 2^m, so that it never wraps.
        A sum with carry bits has one F for all terms."""
        if self.carry_bits is None:
            return True
        head = self._aligned_head([(known, max(self.bits_of_terms)) for known in terms if not known.zero])
        return head is not None and head < power(1 + self.carry_bits)

    def _aligned_head(self, terms: Sequence[tuple[Known, int]]) -> Fraction | None:
        """The sum of the largest magnitudes of the aligned terms in units of 2^m; `terms`: each with the number of bits
        kept of it."""
        heads = all_known(
            None if known.head is None else multiple_of(known.head, -bits, self.rounding) for known, bits in terms
        )
        return None if heads is None else sum((head * count for head, count in runs(heads)), Fraction(0))

    def _least_maximum(self, leasts: Sequence[int] | None) -> int | None:
        """A lower bound of m for nonzero sums, if one is known. `leasts`: the least exponents of the terms. In a
        nonzero sum some term is not zero, and counts with its own exponent or with `zeros`."""
        bounds = [bound for bound in (self.least, *self.floors) if bound is not None]
        if leasts is not None:
            bounds += [min(leasts), *([] if self.zeros is None else [min(self.zeros, max(leasts))])]
        return max(bounds, default=None)

    def _agrees(self, operands: Sequence[Known]) -> bool:
        """`Known.agrees`, as for an exact sum if the sum never wraps, and m is the exponent of a nonzero term, which
        the alignment does not cut to zero."""
        plain = self.carry_bits is None and not self.bounds and not any(far is not None for far in self.reach)
        return plain and all(known.agrees and _is_kept(known, bits)
                             for known, bits in zip(operands, self.bits_of_terms, strict=True))  # fmt: skip

    def evaluate(self, context: Context, keep: int | None) -> Value:
        normalised = keep is not None  # the reader of the sum depends on its value alone, not on its exponent
        sum_of = partial(self._sum, normalised=normalised)
        return summed(self, context, (self.own, normalised), sum_of, *named_terms(self.items, context))

    def _sum(self, trace: Trace, names: Sequence[str], *items: Value | Unpacked, normalised: bool) -> Term:
        keeps, reach = self.bits_of_terms, self.reach_of_terms
        fewer = normalised and not trace.keeps  # signals state the deciding exponent even where it cuts no bit
        zeros, least = (self._counting(bound, items, min(keeps), fewer) for bound in (self.zeros, self.least))
        own = [item.term.exponent for item in items]
        exponents = counted_exponents(items, own, self.each_term(self.floors), zeros, least)
        enter_terms(trace, names, items, exponents)
        maximum = self._maximum(exponents, least)
        trace.exponent(Stage.MAXIMUM, maximum)
        finest = max(keeps)
        unit = maximum.offset(-finest)
        aligned, lost = [], []
        for item, bits, far in zip(items, keeps, reach, strict=True):
            magnitude, carrier = align(item.term, maximum, bits, self.rounding), item.sign.carrier
            counts = truth(carrier, True) if far is None else is_within(item.term, maximum, far)
            if self.sticky:
                lost.append(_loses(item.term, maximum, bits, magnitude) & counts)
            if far is not None:
                magnitude = select(counts, magnitude, constant(carrier, 0, magnitude.width))
            aligned.append(magnitude.pad(finest - bits))
        record_terms(trace, names, items, aligned, unit)
        width = None if self.carry_bits is None else finest + 2 + self.carry_bits
        total = total_of([item.sign for item in items], aligned, width)
        trace.number(Stage.SUM, total, unit, is_signed=True)
        negative, magnitude = magnitude_of(total, wraps=width is not None)
        if self.sticky:
            magnitude, unit, finest = magnitude.concat(any_of(lost).bits(1)), unit.offset(-1), finest + 1
        trace.flag(Stage.SUM, negative, part=Part.NEGATIVE)
        trace.number(Stage.SUM, magnitude, unit, part=Part.MAGNITUDE)
        return Term(negative, magnitude, unit.offset(finest), finest)

    def _counting(
        self, bound: int | None, items: Sequence[Value | Unpacked], bits: int, normalised: bool
    ) -> int | None:
        """The least exponent `bound`; None if it can neither truncate a bit of the sum nor change the exponent with
        which the sum counts in another alignment."""
        alike = self.carry_bits is None and not isinstance(self.fraction_bits, tuple) and not self.reach
        kept = bits if alike and normalised else None
        return bound if bound_matters(bound, [item.term for item in items], kept) else None

    def _maximum(self, exponents: Sequence[Exponent], least: int | None) -> Exponent:
        own = [exponent.bits for exponent in exponents]
        if least is not None and least >= exponents[0].high:
            bits = constant(own[0].carrier, least - exponents[0].low, own[0].width)
            return replace(exponents[0], bits=bits)
        if least is not None:
            own.append(constant(own[0].carrier, least - exponents[0].low, own[0].width))
        return replace(exponents[0], bits=max_of(own))

    def variants(self) -> Iterator[Variant]:
        for bits in dict.fromkeys(self.bits_of_terms):
            yield from others("fraction_bits", bits, near(bits))
        yield from others("rounding", self.rounding, ROUNDINGS)
        yield from others("sticky", self.sticky, (False, True))
        yield from others("carry_bits", self.carry_bits, (None, *range(1, MOST_CARRIES + 1)))
        yield from others("zeros", self.zeros, PUBLISHED_ZEROS if self.zeros is None else (None, *near(self.zeros)))
        if self.least is not None:
            yield from others("least", self.least, (None, *near(self.least)))
        if (self.zeros is None) != (self.least is None):
            yield Variant("floor", (self.zeros, self.least), (self.least, self.zeros))
        if isinstance(self.fraction_bits, tuple):
            far = tuple(None if bits == max(self.fraction_bits) else bits + 1 for bits in self.fraction_bits)
            yield from others("reach", self.reach, ((), far))
        yield from where_zeros_count(self.items)
        yield Variant("exact", False, True)

    def varied(self, variant: Variant) -> Node:
        if variant.parameter == "exact":
            return ExactSum(self.items)
        if variant.parameter == ZEROS_COUNT:
            return replace(self, items=with_zeros_counting(self.items, variant.new))
        if variant.parameter == "floor":
            if (self.zeros, self.least) != variant.old:
                return self
            return replace(self, zeros=self.least, least=self.zeros)
        changed = super().varied(variant)
        if variant.parameter == "fraction_bits" and isinstance(changed, FusedSum) and changed is not self:
            assert isinstance(variant.old, int)
            assert isinstance(variant.new, int)
            reach = tuple(variant.new + 1 if far == variant.old + 1 else far for far in self.reach)
            return replace(changed, reach=reach)  # a term within reach can still change the last bit kept
        return changed

    def sentence(self) -> str:
        bits = self.fraction_bits
        kept = f"{bits} bits" if isinstance(bits, int) else f"{', '.join(map(str, bits))} bits (by operand)"
        small = {"toward_zero": "truncated"}.get(self.rounding, f"rounded {as_words(self.rounding)}")
        wraps = "" if self.carry_bits is None else f", {self.carry_bits} carry bits"
        return f"terms aligned at the largest exponent, {small} {kept} below it, added{wraps}"


def _is_kept(known: Known, bits: int) -> bool:
    """Whether alignment at the term's own exponent, with `bits` bits kept, cuts no nonzero value to zero: no digit is
    below the bits kept, or the value is a number of a format, of which even one below 2^emin is at least 2^grid."""
    if known.zero or (known.digits is not None and known.digits <= bits):
        return True
    if not known.formats or known.grid is None:
        return False
    return known.grid >= max(fmt.emin for fmt in known.formats) - bits


def _loses(term: Term, maximum: Exponent, bits: int, magnitude: Bits) -> Bit:
    """Whether a term has a set bit below its last place."""
    spare = max(0, term.fraction - bits)
    whole = term.significand.pad(max(0, bits - term.fraction))
    width = max(magnitude.width + spare, whole.width)
    back = magnitude.pad(spare).zext(width).shl(distance(term, maximum))
    return ~back.eq(whole.zext(width))
