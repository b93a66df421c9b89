"""Monotonicity: the result does not fall when one product, or the addend, rises.

If the largest exponent of a sum does not change, its terms are aligned at the same place, which is monotonic. If this
exponent changes, the other terms may lose; but the term that changed it has risen by at least some gain, as there is a
gap between its values of two different exponents. So a sum does not fall if that gain is at least the loss of all other
terms; the difference is the sum's own gain, as a term of the next sum. Gains of numbers of a format, and of products of
small formats, are computed value by value. Rounding is monotonic. Infinities: a term that rises to +infinity makes the
result the largest possible; a term that rises from -infinity had made the result the least possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from math import ceil

from mmaprobe.queries.kernel.arguments import remembered
from mmaprobe.queries.kernel.bounds.enclosures import LOSSES, terms_of
from mmaprobe.queries.kernel.datapath.gains import (
    NONE,
    ZERO,
    Factor,
    Gains,
    gains_of,
    loss,
    numbers_of,
    power,
    products_of,
)
from mmaprobe.queries.kernel.datapath.rounding_rises import RoundingRises, RoundingScales
from mmaprobe.queries.kernel.equality.rewriting import drawn_target
from mmaprobe.queries.kernel.lemmas import AlignmentLoses, Lemma
from mmaprobe.queries.kernel.theorem import Made, RuleError, Theorem, rule
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.nodes import (
    Constant,
    Cut,
    Each,
    Element,
    ExactSum,
    FusedSum,
    Gate,
    Node,
    Product,
    Relu,
    Repeat,
    Round,
    Running,
    Scale,
)
from mmaprobe.smtmodel.nodes.known import Known, all_known
from mmaprobe.smtmodel.nodes.node import Knowledge, of_kind
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.units.unit import Unit

Places = Mapping[int, int]
Results = Mapping[int, tuple[Format, bool]]  # results so far of enclosing loops, by level: format, whether they rise

# -- the effect on a node of an operand that rises


@dataclass(frozen=True)
class Term:
    """The facts about the values of a term of a sum. `gains`: the least increases of the term, if it rises; None for a
    term that does not rise."""

    known: Known
    gains: Callable[[], Gains] | None = None


class _Rise:
    """The terms of a unit when the product with the index `raised` (None: the addend) rises. `normal`: whether no
    number of a and b is subnormal. `lemmas`: the lemmas on which the facts rest."""

    def __init__(self, unit: Unit, raised: int | None, normal: bool) -> None:
        self.unit, self.raised, self.subnormals = unit, raised, not normal
        self.lemmas: dict[Lemma, None] = {}
        self.knowledge: dict[tuple[tuple[int, Format], ...], Knowledge] = {}  # by the formats of results so far

    def rounded(self, node: Node, places: Places, running: Results) -> tuple[Format, bool]:
        """The format of the numbers of a rounded node, of the addend or of a result so far, and whether it rises.
        Raises RuleError if it may fall."""
        match node:
            case Round():
                _check_nan(node.rounding)
                drawn = drawn_target(node.rounding), node.count_of_bits(self.unit.formats)
                self.lemmas |= dict.fromkeys((RoundingRises(*drawn), RoundingScales(*drawn)))
                term = node.term
                while isinstance(term, (Cut, Relu)):  # a rectified sum does not fall either
                    if isinstance(term, Relu) and term.nan != "keep":
                        raise RuleError("rises: a NaN becomes a number")
                    term = term.term
                own = self.term(term, places, running)
                return node.rounding.format, own.gains is not None
            case Element(operand="c"):
                return self.unit.c, self.raised is None
            case Running():
                return running[node.level]
            case Repeat():
                return self._loop(node, places, running)
        raise RuleError(f"rises: a {node.kind} is not a number of a format")

    def _loop(self, node: Repeat, places: Places, running: Results) -> tuple[Format, bool]:
        if not isinstance(node.body, Round):
            raise RuleError("rises: the results of a loop are not rounded")
        fmt = node.body.rounding.format
        state = (fmt, False) if isinstance(node.start, Constant) else self.rounded(node.start, places, running)
        if state[0] != fmt:
            raise RuleError("rises: a loop that begins with a number of another format")
        seen: dict[object, tuple[Format, bool]] = {}
        for place in node.places:
            inner = {**places, node.level: place}
            alike = state, tuple(self._raised(node.body, inner))  # the outcome of a step depends on this alone
            if alike not in seen:
                seen[alike] = self.rounded(node.body, inner, {**running, node.level: state})
            state = seen[alike]
        return state

    def _raised(self, node: Node, places: Places) -> Iterator[bool]:
        """For each element of a and b that a node reads: whether it is a factor of the product that rises."""
        match node:
            case Element(operand="a" | "b") if node.index is not None:
                yield node.index.at(places) == self.raised
            case Repeat() | Each():
                for place in node.places:
                    yield from self._raised(node.body, {**places, node.level: place})
        for operand in () if isinstance(node, Each) else (node.start,) if isinstance(node, Repeat) else node.operands:
            yield from self._raised(operand, places)

    def term(self, node: Node, places: Places, running: Results) -> Term:
        """The facts about a node, and its gains if it rises. Raises RuleError if it may fall."""
        known = self._known(node, running)
        match node:
            case Element() | Round() | Running() | Repeat():
                fmt, rises = self.rounded(node, places, running)
                kept = node.subnormals == "keep" if isinstance(node, Element) else True
                return Term(known, (lambda: gains_of(numbers_of(fmt, kept), fmt.fraction)) if rises else None)
            case Constant():
                return Term(known)
            case Product() if not node.normalised:
                return Term(known, self._product(*self._factor(node.left), *self._factor(node.right), places))
            case Gate():  # a product that is no NaN, but for the sign of a zero
                return self.term(node.term, places, running)
            case Scale(left=Element(is_factor=True), right=Element(is_factor=True)):
                return Term(known, self._scaled(self.term(node.term, places, running).gains))
            case ExactSum():
                rises = any(term.gains for term, _ in self._terms(node, places, running))
                # unless it is zero, it counts with the exponent 0, whatever its value; it is a multiple of 2^grid
                least = 0 if known.grid is None else power(known.grid)
                return Term(known, partial(dict, {(ZERO, 0): least, (0, ZERO): least}) if rises else None)
            case FusedSum():
                return Term(known, self._fused(node, self._terms(node, places, running)))
        raise RuleError(f"rises: of a {node.kind} nothing is known")

    def _known(self, node: Node, running: Results) -> Known:
        results = tuple((level, fmt) for level, (fmt, _) in running.items())
        if results not in self.knowledge:
            own = {level: Known.number(frozenset({fmt})) for level, fmt in results}
            self.knowledge[results] = Knowledge(self.unit.formats, running=own)
        return self.knowledge[results].of(node)

    def _factor(self, node: Node) -> tuple[Element, Factor]:
        """The element that a factor reads, and the reading. Raises RuleError for another node, and for a conversion to
        a format in which some number of the element's format is not normal."""
        element = node.converts if isinstance(node, Round) else node
        if not isinstance(element, Element) or element.operand not in ("a", "b"):
            raise RuleError("rises: a product of other factors than a and b")
        own = self.unit.a if element.operand == "a" else self.unit.b
        if node is element:
            return element, Factor(own)
        assert isinstance(node, Round)
        wide = node.rounding.format
        if not wide.holds(own) or own.unit < wide.emin or element.subnormals != "keep":
            raise RuleError(f"rises: a factor of {own.name} is rounded to {wide.name}")
        _check_nan(node.rounding)
        return element, Factor(own, converted=True)

    def _product(self, left: Element, a: Factor, right: Element, b: Factor, places: Places
                 ) -> Callable[[], Gains] | None:  # fmt: skip
        if {left.operand, right.operand} != {"a", "b"} or any(x.index is None for x in (left, right)):
            raise RuleError("rises: a product of other factors than a and b")
        ks = {x.index.at(places) for x in (left, right) if x.index is not None}
        if self.raised not in ks:
            return None
        if len(ks) > 1 or "keep" not in (left.subnormals, right.subnormals) or left.subnormals != right.subnormals:
            raise RuleError("rises: a factor of the product that rises is lost, or stands in another one too")
        return cache(lambda: gains_of(products_of(a, b, self.subnormals), a.format.fraction + b.format.fraction))

    def _scaled(self, given: Callable[[], Gains] | None) -> Callable[[], Gains] | None:
        fmt, rises = self.unit.scale, dict[tuple[int, int], int]()
        if fmt is None or fmt.signed:
            raise RuleError("rises: a scale factor with a sign")
        factors = range(2 * fmt.emin, 2 * fmt.emax + 1)

        def gains() -> Gains:
            for (before, after), gain in given().items() if given is not None else ():
                for by in factors:
                    key = (before if before == ZERO else before + by, after if after == ZERO else after + by)
                    own = (gain << by if by >= 0 else gain >> -by) >> 2 * fmt.fraction  # a lower bound
                    rises[key] = min(own, rises.get(key, own))
            return rises

        return None if given is None else gains

    def _terms(self, node: ExactSum | FusedSum, places: Places, running: Results
               ) -> list[tuple[Term, int]]:  # fmt: skip
        """The terms of a sum, each with the position of its operand."""
        terms = []
        for position, item in enumerate(node.items):
            for term, at in terms_of(item, dict(places)):
                terms.append((self.term(term, {**places, **dict(at)}, running), position))
        if sum(term.gains is not None for term, _ in terms) > 1:
            raise RuleError("rises: several terms of a sum rise")
        return terms

    def _fused(self, node: FusedSum, terms: Sequence[tuple[Term, int]]) -> Callable[[], Gains] | None:
        own = next(((term, at) for term, at in terms if term.gains is not None), None)
        if own is None:
            return None
        if node.sticky or node.carry_bits is not None:
            raise RuleError("rises: a sum that wraps, or has a sticky bit")
        others = [_AlignedTerm(term, node, at) for term, at in terms if term is not own[0]]
        raised = _AlignedTerm(own[0], node, own[1])
        for one in (*others, raised):
            self.lemmas |= dict.fromkeys(one.lemmas)
        low = min([one.least for one in (*others, raised) if not one.zero] + [*node.bounds])
        gains = _summed(node, raised, others, low)

        def known() -> Gains:
            if node.bounds:  # one that changes no sum here may be left out, which changes the exponent for another sum
                raise RuleError("rises: a sum whose exponent has a bound is a term of another one")
            return gains

        return known


class _AlignedTerm:
    """A term of a fused sum, and the effect of alignment on this term. Raises RuleError if too little is known of the
    term."""

    def __init__(self, term: Term, node: FusedSum, at: int) -> None:
        self.at, self.gains, self.mode, known = at, term.gains, node.rounding, term.known
        bits, self.reach = node.value_at(node.fraction_bits, at), node.value_at(node.reach, at)
        facts = known.least, known.digits, known.grid, bits
        if known.head is None or (numbers := all_known(facts if not known.zero else (0, 0, known.grid, bits))) is None:
            raise RuleError("rises: too little is known of a term of a sum")
        self.zero, self.is_number, self.head = known.zero, known.formats is not None, known.head
        self.least, self.digits, self.grid, self.bits = numbers

    @property
    def kind(self) -> tuple[object, ...]:
        """The kind of a term: alignment has the same effect on all terms of a kind."""
        return self.bits, self.grid, self.reach, self.head

    @property
    def lemmas(self) -> list[Lemma]:
        width = int(self.head * Fraction(2) ** self.digits).bit_length()
        return [AlignmentLoses(width, self.digits, self.bits, self.mode)] if width > 0 and not self.zero else []

    def part(self, m: int, side: int, exponent: int | None = None) -> int:
        """The most by which alignment at 2^m lowers the term (`side` 0) or raises it (`side` 1), as a loss (gains.py).
        `exponent`: the term's own exponent, if known."""
        kept = m - self.bits
        if exponent == ZERO or (exponent == m and self.digits <= self.bits):
            return 0
        if self.grid >= kept:
            return self.lost(m)
        share = LOSSES[self.mode][side]
        return max(-(-loss(kept) * share.numerator // share.denominator), self.lost(m))

    def lost(self, m: int) -> int:
        """The most that is lost if the term is beyond its reach when aligned at 2^m."""
        return 0 if self.reach is None or m <= NONE else ceil(self.head * loss(m - self.reach - 1))

    def falls(self, before: int, after: int) -> int:
        """The largest decrease of the term from its value aligned at 2^before to its value aligned at 2^after."""
        mode = self.mode
        coarse, fine = max(before, after), min(before, after)
        if fine <= NONE or self.grid >= coarse - self.bits:
            return self.lost(coarse) if fine > NONE else 0
        unit, finer = loss(coarse - self.bits), power(max(fine - self.bits, self.grid))
        if mode == "toward_zero":
            most = unit - finer
        elif mode in ("down", "up"):
            most = unit - finer if (mode == "down") == (after > before) else 0
        else:
            # the finer rounding moves a value past no multiple of the coarse unit, and past no midpoint of two
            most = loss(coarse - self.bits - (mode != "to_odd"))
        return max(most, self.lost(coarse) + finer) if self.reach is not None else most


def _summed(node: FusedSum, own: _AlignedTerm, others: Sequence[_AlignedTerm], low: int) -> dict[tuple[int, int], int]:
    """The gains of a sum, by its largest exponents before and after. Raises RuleError for a gain below zero."""
    assert own.gains is not None
    if own.reach is not None and not own.is_number:
        raise RuleError("rises: a term that may vanish, and is not a number")
    bound = max([NONE] + [x for x in (node.least, node.value_at(node.floors, own.at)) if x is not None])
    if node.zeros is not None and any(one.zero or one.least >= node.zeros for one in others):
        bound = max(bound, node.zeros)  # that other term counts with at least this exponent, whether it is zero or not
    zero = NONE if node.zeros is None else node.zeros

    @cache
    def counted(e: int) -> int:
        return max(zero if e == ZERO else e, bound)

    kinds: dict[tuple[object, ...], tuple[_AlignedTerm, int]] = {}
    for one in others:
        if not one.zero:
            kinds[one.kind] = (one, kinds.get(one.kind, (one, 0))[1] + 1)
    gains, rises = own.gains(), dict[tuple[int, int], int]()
    for up in (True, False):  # where the larger exponent is that after, or before, and the raised term has it
        tops: dict[int, dict[int, int]] = {}
        for (before, after), gain in gains.items():
            top, under = (after, before) if up else (before, after)
            if counted(top) > counted(under):
                tops.setdefault(top, {})[under] = gain
        for top, unders in tops.items():
            lost, rose = own.part(counted(top), 0 if up else 1, top), 1 if up else 0
            entering: dict[int, list[int]] = {}
            for under in unders:
                entering.setdefault(max(counted(under), low), []).append(under)
            least, from_zero = None, unders.get(ZERO)  # the least gain of those that entered below m; that of a zero
            for m in range(min(entering), counted(top)):
                new = entering.get(m, [])
                left = [unders[under] - own.part(m, rose, under) for under in new]
                left += [least - own.part(m, rose)] if least is not None else []
                left += [from_zero] if from_zero is not None and max(counted(ZERO), low) < m else []
                falls = sum(count * one.falls(*((m, counted(top)) if up else (counted(top), m)))
                            for one, count in kinds.values())  # fmt: skip
                key = (m, counted(top)) if up else (counted(top), m)
                rises[key] = min(kept := _kept(min(left) - lost - falls), rises.get(key, kept))
                numbers = [unders[under] for under in new if under != ZERO]
                least = min([*numbers, *([] if least is None else [least])], default=None)
    for (before, after), gain in gains.items():  # a sum counts as zero only if all terms do
        if ZERO in (before, after):
            e = after if before == ZERO else before
            top = max(counted(e), zero)
            key = (ZERO, top) if before == ZERO else (top, ZERO)
            lost = own.part(top, 0 if before == ZERO else 1, e)
            rises[key] = min(max(0, gain - lost), rises.get(key, gain))
    return rises


def _check_nan(how: Rounding) -> None:
    """Raises RuleError for a rounding that writes a NaN as a number, or as a pattern below those of all numbers."""
    fmt = how.format
    if not how.keeps_nan:
        raise RuleError(f"rises: a NaN is a number of {fmt.name}")
    if fmt.nan_for_negative_zero and not fmt.has_infinity and how.beyond != "saturate":
        raise RuleError("rises: what overflows is NaN, whose pattern lies below every other")


def _kept(gain: int) -> int:
    if gain < 0:
        raise RuleError("rises: the other terms of a sum may lose more than one has risen")
    return gain


# -- the rule


@dataclass(frozen=True)
class Rises:
    """The result of a unit does not fall when the product with the index `raised` (None: the addend) rises, unless the
    result is NaN before or after; `normal`: if no number of a and b is subnormal."""

    unit: Unit
    raised: int | None
    normal: bool

    def statement(self) -> str:
        what = "c" if self.raised is None else f"a{self.raised}*b{self.raised}"
        return f"the result does not fall when {what} rises{', no number of a and b being subnormal' * self.normal}"


@remembered(1 << 8)
def needed(unit: Unit, raised: int | None, normal: bool) -> tuple[Lemma, ...]:
    """The lemmas about the datapath that `rises` needs. Raises RuleError if the result may fall."""
    rise = _Rise(unit, raised, normal)
    reads = list(of_kind(unit.result, Element))
    if raised is not None and not any(node.operand == "a" for node in reads):
        raise RuleError("rises: the unit reads no products")
    rise.rounded(unit.result, {}, {})
    return tuple(rise.lemmas)


@rule
def rises(unit: Unit, raised: int | None, normal: bool, lemmas: Sequence[Theorem]) -> Made:
    """The argument at the head of this file. Where the largest exponent of a sum changes, the sum has a gain, computed
    from the values of the raised term with the exponents before and after; the rounded sum does not fall, nor does the
    next step of a loop."""
    if {lemma.goal for lemma in lemmas} != set(needed(unit, raised, normal)):
        raise RuleError("rises: a lemma about the datapath is missing, or about another one")
    return Made(Rises(unit, raised, normal), tuple(lemmas))
