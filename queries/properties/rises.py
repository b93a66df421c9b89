"""The result does not fall when one product, or the addend, rises: by how much a term rises where its exponent moves.

Where the largest exponent of a sum stays, its terms are aligned at one place, which is monotonic. Where it moves, the
other terms may lose; the term that moved it has risen by some least gain, as its values of two exponents lie apart. So
a sum does not fall if that gain makes up for what all others lose; and then it has a gain of its own, as a term of the
next sum. Numbers of a format and products of small formats are compared one by one. Rounding is monotonic. Infinities:
one that rises to +infinity, or from -infinity, makes the result the largest there is, or made it the least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from queries.proof.enclosures import LOSSES, terms_of
from queries.proof.kernel import Made, RuleError, Theorem, rule
from queries.proof.lemmas import AlignmentLoses, Lemma
from queries.proof.rewriting import target_of
from queries.proof.same import SidesAgree
from queries.properties.statements import Monotonic
from smtmodel.algebra import Bit, Bits, choose, constant
from smtmodel.decode import Exponent
from smtmodel.formats import Format
from smtmodel.nodes import (
    Constant,
    Cut,
    Element,
    ExactSum,
    FusedSum,
    Node,
    Product,
    Repeat,
    Round,
    Running,
    Scale,
)
from smtmodel.nodes.node import walk
from smtmodel.ordering import pattern_key
from smtmodel.rounding import Target, round_and_pack
from smtmodel.unit import Unit

ONE = 1300  # gains are whole numbers of 2^-ONE
ZERO, NONE = -(10**6), -(10**7)  # the exponent of a value that is zero; that of a zero that does not count
LARGEST = 1 << 16  # products of significands that are compared one by one, where subnormal numbers are among them
Gains = Mapping[tuple[int, int], int]  # by the exponents before and after, where these differ: the least rise
Places = Mapping[int, int]


def power(exponent: int) -> int:
    """2^exponent as a gain; none below 2^-ONE."""
    return 1 << ONE + exponent if ONE + exponent >= 0 else 0


# -- the values of a term


@dataclass(frozen=True)
class Values:
    """Magnitudes p * 2^(e - fraction), p from these significands, e from the first to the second exponent."""

    significands: tuple[int, ...] | range
    low: int
    high: int


def numbers_of(fmt: Format, subnormals: bool) -> tuple[Values, ...]:
    """The finite numbers of a format, or more."""
    one = 1 << fmt.fraction
    found = [Values(range(one, 2 * one), fmt.emin, fmt.emax)]
    if subnormals and fmt.subnormals and fmt.fraction:
        found.append(Values(range(1, one), fmt.emin, fmt.emin))
    return tuple(found)


def products_of(a: Format, b: Format, subnormals: bool) -> tuple[Values, ...]:
    """The finite products of numbers of two formats, or more. Raises RuleError where they are too many."""
    if a.fraction + b.fraction > (LARGEST.bit_length() - 1 if subnormals else 22):
        raise RuleError("rises: products of numbers with so many bits are not compared one by one")
    found = []
    for x in numbers_of(a, subnormals):
        for y in numbers_of(b, subnormals):
            left, right = (np.array(side.significands, dtype=np.int64) for side in (x, y))
            every = np.unique(np.multiply.outer(left, right))
            found.append(Values(tuple(every.tolist()), x.low + y.low, x.high + y.high))
    return tuple(found)


def gains_of(every: Sequence[Values], fraction: int) -> dict[tuple[int, int], int]:
    """The least rises from a value to a larger one of another exponent, either sign, and from or to zero."""
    found: dict[tuple[int, int], int] = {}

    def least(key: tuple[int, int], gain: int) -> None:
        found[key] = min(gain, found.get(key, gain))

    for low in every:
        smallest = low.significands[0]
        for e in range(low.low, low.high + 1):
            least((ZERO, e), smallest * power(e - fraction))
            least((e, ZERO), smallest * power(e - fraction))
            for high in every:
                for f in range(max(high.low, e + 1), high.high + 1):
                    gain = _apart(high.significands, low.significands, f - e) * power(e - fraction)
                    least((e, f), gain)
                    least((f, e), gain)
    return found


def _apart(high: tuple[int, ...] | range, low: tuple[int, ...] | range, places: int) -> int:
    """The least difference, not zero, of p * 2^places and q, or their least sum."""
    first, last = high[0] << places, low[-1]
    total = first + low[0]
    if first > last:
        return min(first - last, total)
    return min(_searched(high, low, places), total)


@cache
def _searched(high: tuple[int, ...] | range, low: tuple[int, ...] | range, places: int) -> int:
    if isinstance(high, range) and isinstance(low, range):
        return 1  # one of two neighbours is not a multiple of 2^places, and both lie in the range
    x, y = _array(high) << places, _array(low)
    at = np.searchsorted(y, x)
    found = []
    for offset in (-1, 0, 1):
        inside = (at + offset >= 0) & (at + offset < len(y))
        off = np.abs(x[inside] - y[(at + offset)[inside]])
        found += [int(off[off > 0].min())] if (off > 0).any() else []
    return min(found, default=1)


@cache
def _array(values: tuple[int, ...] | range) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


# -- what a node makes of a rise


@dataclass(frozen=True)
class Term:
    """What is known of any value of a node: exponents from low to high, `fraction` digits below its exponent, |v| <
    head * 2^e, and that it is a multiple of 2^grid; or of one that rises: its gains besides."""

    low: int
    high: int
    fraction: int
    head: int
    grid: int
    gains: Callable[[], Gains] | None = None


class _Rise:
    """The terms of a unit where `raised` (the place of a product, None: the addend) rises."""

    def __init__(self, problem: Monotonic) -> None:
        self.unit: Unit = problem.left.unit
        self.raised = problem.raised
        self.subnormals = not problem.inputs.normal
        self.lemmas: dict[Lemma, None] = {}

    def rounded(self, node: Node, places: Places, running: Mapping[int, tuple[Format, bool]]) -> tuple[Format, bool]:
        """Of a rounded node, or the addend: the format of its numbers, and whether it rises. Raises RuleError where it
        may fall."""
        match node:
            case Round():
                target = target_of(node.rounding)
                if (
                    target.format.nan_for_negative_zero
                    and not target.format.has_infinity
                    and target.overflow != "saturate"
                ):
                    raise RuleError("rises: what overflows is NaN, whose pattern lies below every other")
                self.lemmas |= dict.fromkeys((RoundingRises(target), RoundingScales(target)))
                term = node.term
                while isinstance(term, Cut):
                    term = term.term
                found = self.term(term, places, running)
                return node.rounding.format, found.gains is not None
            case Element(operand="c"):
                return self.unit.c, self.raised is None
            case Running():
                return running[node.level]
            case Repeat():
                return self._loop(node, places, running)
        raise RuleError(f"rises: a {node.kind} is not a number of a format")

    def _loop(self, node: Repeat, places: Places, running: Mapping[int, tuple[Format, bool]]) -> tuple[Format, bool]:
        if not isinstance(node.body, Round):
            raise RuleError("rises: the results of a loop are not rounded")
        fmt = node.body.rounding.format
        state = (fmt, False) if isinstance(node.start, Constant) else self.rounded(node.start, places, running)
        if state[0] != fmt:
            raise RuleError("rises: a loop that begins with a number of another format")
        seen: set[object] = set()
        for place in node.places:
            inner = dict(places) | {node.level: place}
            if state[1] and "rises" in seen:  # the other steps are as this one
                continue
            if state[1]:
                seen.add("rises")
            state = self.rounded(node.body, inner, {**running, node.level: state})
        return state

    def term(self, node: Node, places: Places, running: Mapping[int, tuple[Format, bool]]) -> Term:
        """What is known of a node. Raises RuleError where it may fall."""
        match node:
            case Element() | Round() | Running() | Repeat():
                return self._number(node, places, running)
            case Constant():
                return Term(0, 0, 0, 1, 0)
            case Product(left=Element() as left, right=Element() as right) if not node.normalised:
                return self._product(node, left, right, places)
            case Scale(left=Element(), right=Element()):
                return self._scaled(self.term(node.term, places, running))
            case ExactSum():
                return self._exact(node, self._terms(node, places, running))
            case FusedSum():
                return self._fused(node, self._terms(node, places, running))
            case Cut():
                found = self.term(node.term, places, running)
                if found.gains is not None:
                    raise RuleError("rises: a sum that is cut is a term of another one")
                return Term(found.grid, found.high + found.head.bit_length() + 1, node.bits, 2, found.grid)
        raise RuleError(f"rises: of a {node.kind} nothing is known")

    def _number(self, node: Node, places: Places, running: Mapping[int, tuple[Format, bool]]) -> Term:
        fmt, rises = self.rounded(node, places, running)
        kept = node.subnormals == "keep" if isinstance(node, Element) else True
        gains = (lambda: gains_of(numbers_of(fmt, kept), fmt.fraction)) if rises else None
        return Term(fmt.emin, fmt.emax, fmt.fraction, 2, fmt.emin - fmt.fraction, gains)

    def _product(self, node: Product, left: Element, right: Element, places: Places) -> Term:
        a, b = self.unit.a, self.unit.b
        if {left.operand, right.operand} != {"a", "b"} or any(x.index is None for x in (left, right)):
            raise RuleError("rises: a product of other factors than a and b")
        ks = {x.index.at(places) for x in (left, right) if x.index is not None}
        gains = None
        if self.raised in ks:
            if len(ks) > 1 or "keep" not in (left.subnormals, right.subnormals) or left.subnormals != right.subnormals:
                raise RuleError("rises: a factor of the product that rises is lost, or stands in another one too")
            gains = cache(lambda: gains_of(products_of(a, b, self.subnormals), a.fraction + b.fraction))
        low, fraction = a.emin + b.emin, a.fraction + b.fraction
        return Term(low, a.emax + b.emax, fraction, 4, low - fraction, gains)

    def _scaled(self, term: Term) -> Term:
        fmt = self.unit.scale
        if fmt is None or fmt.signed:
            raise RuleError("rises: a scale factor with a sign")
        low, high, fraction = 2 * fmt.emin, 2 * fmt.emax, 2 * fmt.fraction
        given, found = term.gains, dict[tuple[int, int], int]()

        def gains() -> Gains:
            for (before, after), gain in given().items() if given is not None else ():
                for by in range(low, high + 1):
                    key = (before if before == ZERO else before + by, after if after == ZERO else after + by)
                    own = (gain << by if by >= 0 else gain >> -by) >> fraction  # no less than it is there
                    found[key] = min(own, found.get(key, own))
            return found

        return Term(term.low + low, term.high + high, term.fraction + fraction, 4 * term.head,
                    term.grid + low - fraction, None if given is None else gains)  # fmt: skip

    def _terms(self, node: ExactSum | FusedSum, places: Places, running: Mapping[int, tuple[Format, bool]]
               ) -> list[tuple[Term, int]]:  # fmt: skip
        """The terms of a sum, each with the position of its operand."""
        found = []
        for position, item in enumerate(node.items):
            for term, at in terms_of(item, dict(places)):
                found.append((self.term(term, {**places, **dict(at)}, running), position))
        if sum(term.gains is not None for term, _ in found) > 1:
            raise RuleError("rises: several terms of a sum rise")
        return found

    def _exact(self, node: ExactSum, terms: Sequence[tuple[Term, int]]) -> Term:
        """It counts with one exponent, whatever its value, unless that is zero; it is a multiple of its grid."""
        grid = min(term.grid for term, _ in terms)
        gains: Callable[[], Gains] | None = None
        if any(term.gains is not None for term, _ in terms):
            gains = partial(dict, {(ZERO, 0): power(grid), (0, ZERO): power(grid)})
        top = max(term.high + term.head.bit_length() for term, _ in terms) + len(terms).bit_length()
        return Term(0, 0, -grid, 1 << max(top, 1), grid, gains)

    def _fused(self, node: FusedSum, terms: Sequence[tuple[Term, int]]) -> Term:
        finest = max(node.bits_of_terms)
        bounds = [bound for bound in (node.zeros, node.least, *node.floors) if bound is not None]
        low, high = min([t.low for t, _ in terms] + bounds), max([t.high for t, _ in terms] + bounds)
        head, grid = sum(term.head + 1 for term, _ in terms), min(term.grid for term, _ in terms)
        own = next(((term, at) for term, at in terms if term.gains is not None), None)
        if own is None:
            return Term(low, high, finest, head, grid - node.sticky)
        if node.sticky or node.carry_bits is not None:
            raise RuleError("rises: a sum that wraps, or has a sticky bit")
        others = [_Other(term, node, at) for term, at in terms if term is not own[0]]
        raised = _Other(own[0], node, own[1])
        for one in (*others, raised):
            self.lemmas |= dict.fromkeys(one.lemmas)
        gains = _summed(node, raised, others, low)
        return Term(low, high, finest, head, grid, lambda: gains)


@dataclass(frozen=True)
class _Other:
    """A term of a fused sum, and what becomes of it there."""

    term: Term
    node: FusedSum
    at: int

    @property
    def bits(self) -> int:
        found = self.node.each(self.node.fraction_bits, self.at)
        assert found is not None
        return found

    @property
    def reach(self) -> int | None:
        return self.node.each(self.node.reach, self.at)

    @property
    def whole(self) -> bool:
        """Whether it loses nothing where its exponent is the largest."""
        return self.term.fraction <= self.bits

    @property
    def lemmas(self) -> list[Lemma]:
        width = self.term.fraction + self.term.head.bit_length() - 1
        return [AlignmentLoses(width, self.term.fraction, self.bits, self.node.rounding)]

    def part(self, m: int, side: int) -> int:
        """How far it falls (0), or rises (1), at most, where it is aligned at 2^m."""
        mode, kept = self.node.rounding, m - self.bits
        if m <= NONE or self.term.grid >= kept:
            found = 0
        else:
            loss = LOSSES[mode][side]
            found = power(kept) * loss.numerator // loss.denominator
        return max(found, self.lost(m))

    def lost(self, m: int) -> int:
        """The most that is lost where it vanishes at 2^m."""
        return 0 if self.reach is None or m <= NONE else self.term.head * power(m - self.reach - 1)

    def falls(self, before: int, after: int) -> int:
        """How much less it is aligned at 2^after than at 2^before."""
        mode = self.node.rounding
        coarse, fine = max(before, after), min(before, after)
        if fine <= NONE or self.term.grid >= coarse - self.bits:
            return self.lost(coarse) if fine > NONE else 0
        unit, finer = power(coarse - self.bits), power(max(fine - self.bits, self.term.grid))
        if mode == "toward_zero":
            found = unit - finer
        elif mode in ("down", "up"):
            found = unit - finer if (mode == "down") == (after > before) else 0
        else:
            found = unit + finer
        return max(found, self.lost(coarse) + finer) if self.reach is not None else found


def _summed(node: FusedSum, own: _Other, others: Sequence[_Other], low: int) -> dict[tuple[int, int], int]:
    """The gains of a sum, by its largest exponents before and after. Raises RuleError for one below zero."""
    assert own.term.gains is not None
    if own.reach is not None and own.term.head != 2:
        raise RuleError("rises: a term that may vanish, and is not a number")
    bound = max([NONE] + [x for x in (node.least, node.each(node.floors, own.at)) if x is not None])
    if node.zeros is not None and any(one.term.low >= node.zeros for one in others):
        bound = max(bound, node.zeros)  # of that term, be it zero or not
    zero = NONE if node.zeros is None else node.zeros

    def counted(e: int) -> int:
        return max(zero if e == ZERO else e, bound)

    least: dict[tuple[int, int], int] = {}
    for (before, after), gain in own.term.gains().items():
        key = counted(before), counted(after)
        if key[0] != key[1]:
            least[key] = min(gain, least.get(key, gain))
    kinds: dict[tuple[int, int, int | None, int], tuple[_Other, int]] = {}
    for one in others:
        kind = (one.bits, one.term.grid, one.reach, one.term.head)
        kinds[kind] = (one, kinds.get(kind, (one, 0))[1] + 1)
    found = {key: gain for up in (True, False) for key, gain in _moved(least, own, list(kinds.values()), low, up)}
    for (before, after), gain in own.term.gains().items():  # of a sum that counts as zero all terms do
        if ZERO in (before, after):
            e = after if before == ZERO else before
            top = max(counted(e), zero)
            key = (ZERO, top) if before == ZERO else (top, ZERO)
            lost = 0 if own.whole and top == e else own.part(top, 0 if before == ZERO else 1)
            found[key] = min(max(0, gain - lost), found.get(key, gain))
    return found


def _moved(least: Gains, own: _Other, kinds: Sequence[tuple[_Other, int]], low: int, up: bool
           ) -> Iterator[tuple[tuple[int, int], int]]:  # fmt: skip
    """The gains where the largest exponent rises, or falls: there the raised term has it after, or before."""
    tops: dict[int, dict[int, int]] = {}
    for (before, after), gain in least.items():
        if (after > before) == up:
            top, under = (after, before) if up else (before, after)
            tops.setdefault(top, {})[under] = gain
    for top, unders in tops.items():
        if top <= NONE:
            continue
        whole = 0 if own.whole else own.part(top, 0 if up else 1)
        first = min([low, *(under for under in unders if under > NONE)])
        so_far: int | None = unders.get(NONE)  # the least gain from lower exponents
        for m in range(first, top):
            lost = sum(count * one.falls(*((m, top) if up else (top, m))) for one, count in kinds)
            found = []
            if m in unders:
                found.append(unders[m] - whole - (0 if own.whole else own.part(m, 1 if up else 0)))
            if so_far is not None:
                found.append(so_far - whole - own.part(m, 1 if up else 0))
            if found:
                yield ((m, top) if up else (top, m)), _kept(min(found) - lost)
            if m in unders:
                so_far = unders[m] if so_far is None else min(so_far, unders[m])


def _kept(gain: int) -> int:
    if gain < 0:
        raise RuleError("rises: the other terms of a sum may lose more than one has risen")
    return gain


# -- the rule


@dataclass(frozen=True)
class _OfRounding:
    """About a magnitude of three bits more than a result has, anywhere about the numbers of a format, rounded for a
    target with either sign."""

    target: Target

    @property
    def _low(self) -> int:
        return self.target.format.emin - self.target.format.fraction - 5

    def inputs(self, symbol: Callable[[str, int], Bits]) -> tuple[Bits, ...]:
        fmt = self.target.format
        width = (fmt.emax + 4 - self._low).bit_length()
        return symbol("sign", 1), symbol("magnitude", fmt.precision + 3), symbol("place", width)

    def _opened(self, given: tuple[Bits, ...]) -> tuple[Bits, Exponent, Callable[[Bits, Exponent], Bits]]:
        """The magnitude with a bit more, its unit, and what rounds another to a key that grows with the number."""
        sign, magnitude, place = given
        unit = Exponent(place, self._low, self._low + (1 << place.width) - 1)

        def rounded(value: Bits, at: Exponent) -> Bits:
            return pattern_key(round_and_pack(sign.bit(0), value, at, self.target), self.target.format)

        return magnitude.zext(magnitude.width + 1), unit, rounded


@dataclass(frozen=True)
class RoundingRises(_OfRounding):
    """The next larger magnitude gives no smaller number."""

    def statement(self) -> str:
        return f"rounding to {self.target.format.name}, {self.target.rounding}, does not fall where a number rises"

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        wide, unit, rounded = self._opened(given)
        first, second = rounded(wide, unit), rounded(wide + constant(wide.carrier, 1, wide.width), unit)
        return choose(given[0].bit(0), second.sle(first), first.sle(second))


@dataclass(frozen=True)
class RoundingScales(_OfRounding):
    """It gives the same in units half as large."""

    def statement(self) -> str:
        return f"rounding to {self.target.format.name}, {self.target.rounding}, does not depend on the unit"

    def claim(self, given: tuple[Bits, ...]) -> Bit:
        wide, unit, rounded = self._opened(given)
        return rounded(wide.shl(1), unit).eq(rounded(wide, unit.offset(1)))


def needed(problem: Monotonic) -> tuple[Lemma, ...]:
    """The lemmas about the datapath by which a result does not fall. Raises RuleError where it may."""
    if type(problem) is not Monotonic or problem.left != problem.right:
        raise RuleError("rises: it is about a product or the addend of one model")
    unit = problem.left.unit
    found = _Rise(problem)
    reads = [node for node in walk(unit.result) if isinstance(node, Element)]
    if problem.raised is not None and not any(node.operand == "a" for node in reads):
        raise RuleError("rises: the unit reads no products")
    found.rounded(unit.result, {}, {})
    return tuple(found.lemmas)


@rule
def rises(problem: Monotonic, lemmas: Sequence[Theorem]) -> Made:
    """The docstring of this file: each sum gains where its largest exponent moves, by the values that the raised term
    has on both sides of it; what is rounded from it does not fall, nor does a loop's next step."""
    wanted = needed(problem)
    if {lemma.goal for lemma in lemmas} != set(wanted):
        raise RuleError("rises: a lemma about the datapath is missing, or about another one")
    return Made(SidesAgree(problem), tuple(lemmas))
