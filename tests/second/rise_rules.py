"""The rule about rises: a result does not fall if one product, or the addend, rises.

A term has an exponent e, and is a multiple of 2^(e - digits) below head * 2^e. The least gain of a raised term whose
exponent moves from e to f is found by comparing all values of both exponents. A fused sum whose largest exponent moves
from m to n changes by the gain of its raised term, less what that term and the others lose by being truncated at
another place; that is the gain of the sum. Amounts are integers in units of 2^-FINEST: gains are rounded down, losses
up.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from tests.second.document import LOSSES, Document, holds, nan_as, random_bits
from tests.second.goals import Goal
from tests.second.magnitudes import need

FINEST = 1500
INFINITE = ("ieee", "extended")  # special values of formats that have infinities
MANY = 1 << 22  # values of one exponent that are compared, at most
Plain = Mapping[str, Any]
Places = Mapping[int, int]
Exponent = int | None  # None: of a zero that counts as one
Gains = dict[tuple[Exponent, Exponent], int]
Number = tuple[int, bool]  # the format of a number, and whether it rises


def gain(exponent: int) -> int:
    return 1 << FINEST + exponent if exponent >= -FINEST else 0


def most(digits: int) -> Fraction:
    """The largest significand with so many digits below its first bit."""
    return 2 - Fraction(1, 2**digits)


def loss(exponent: int) -> int:
    return 1 << max(0, FINEST + exponent)


@dataclass(frozen=True)
class Kind:
    """A nonzero term: its least and largest exponent e, and the values that it may have: multiples of 2^(e - digits)
    and of 2^grid, at most head * 2^e."""

    low: int
    high: int
    digits: int
    head: Fraction
    grid: int


@dataclass(frozen=True)
class Term:
    """`gains`: what a raised term gains, computed where it is a term of a fused sum; None for a term that is not
    raised. `unfit`: why the fused sum cannot use these gains, empty if it can."""

    kind: Kind
    gains: Callable[[], Gains] | None = None
    unfit: str = ""


def rises(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    need(goal.kind == "Rises" and set(goal.parts) == {"raised", "normal"}, "its goal is of another kind")
    raised, normal = goal.parts["raised"], goal.parts["normal"]
    need(type(normal) is bool and (raised is None or type(raised) is int), "it does not say what rises")
    need(raised is None or 0 <= raised < tree.unit["length"], "there is no such product")
    unit = _Unit(tree, raised, normal)
    unit.number(tree.unit["result"], {}, {})
    unit.need_lemmas([tree.goals[premise] for premise in premises])


class _Unit:
    def __init__(self, tree: Document, raised: int | None, normal: bool) -> None:
        self.tree, self.raised, self.normal = tree, raised, normal
        self.roundings: list[Plain] = []  # targets, each with a number of random bits
        self.aligned: set[tuple[int, int, int, str]] = set()  # of terms: width, digits, bits kept, and mode

    def need_lemmas(self, known: Iterable[Goal]) -> None:
        """Check that exactly the lemmas that the datapath needs are known. Raises FaultError if they are not."""
        left = list(known)
        for rounding in self.roundings:
            for kind in ("RoundingRises", "RoundingScales"):
                own = [goal for goal in left if goal.kind == kind and goal.parts == rounding]
                need(bool(own), "that a rounding does not fall is not known")
                left = [goal for goal in left if goal not in own]
        wider: dict[tuple[int, int, str], int] = {}
        for width, digits, bits, mode in self.aligned:
            wider[digits, bits, mode] = max(width, wider.get((digits, bits, mode), 0))
        for goal in left:
            need(goal.kind == "AlignmentLoses", "a premise is not a lemma about its datapath")
            key = goal.parts["fraction"], goal.parts["bits"], goal.parts["mode"]
            need(key in wider, "a lemma is about another datapath")
        for (digits, bits, mode), width in wider.items():
            wanted = {"fraction": digits, "bits": bits, "mode": mode}
            need(any(goal.parts["width"] >= width and wanted.items() <= goal.parts.items() for goal in left),
                 "what an alignment loses is not known")  # fmt: skip

    # -- numbers of a format

    def number(self, node: int, places: Places, running: Mapping[int, Number]) -> Number:
        """The number that a node is: its value is a number of a format and does not fall. Raises FaultError if that is
        not known."""
        what = self.tree.nodes[node]
        kind = what["kind"]
        if kind == "element":
            need(what["operand"] == "c", "an element that is not an addend")
            return self.tree.unit["c"], self.raised is None
        if kind == "acc":
            return running[what["level"]]
        if kind == "repeat":
            return self._loop(what, places, running)
        need(kind == "round", f"a {kind} is not a number of a format")
        how = what["rounding"]
        self._nan(how)
        target = {"format": how["format"], "rounding": how["mode"], "overflow": how["overflow"],
                  "flush": how["subnormals"] == "flush_after", "positive_zero": how["zero"] == "positive"}  # fmt: skip
        rounding: Plain = {"target": target, "bits": random_bits(self.tree, what)}
        if rounding not in self.roundings:
            self.roundings.append(rounding)
        inner = what["term"]
        while self.tree.nodes[inner]["kind"] in ("cut", "relu"):  # to fewer bits, or rectified: it does not fall either
            need(self.tree.nodes[inner].get("nan", "keep") == "keep", "a NaN becomes a number")
            inner = self.tree.nodes[inner]["term"]
        return how["format"], self.term(inner, places, running).gains is not None

    def _loop(self, what: Plain, places: Places, running: Mapping[int, Number]) -> Number:
        own = self.tree.nodes[what["body"]]
        need(own["kind"] == "round", "the results of a loop are not rounded")
        state = own["rounding"]["format"], False
        if self.tree.nodes[what["start"]]["kind"] != "zero":
            state = self.number(what["start"], places, running)
        need(state[0] == own["rounding"]["format"], "a loop begins with a number of another format")
        steps: dict[Any, Number] = {}
        for place in what["places"]:
            inner = {**places, what["level"]: place}
            read = tuple(index == self.raised for index in self._read(what["body"], inner))
            if (read, state) not in steps:
                steps[read, state] = self.number(what["body"], inner, {**running, what["level"]: state})
            state = steps[read, state]
        return state

    def _read(self, node: int, places: Places) -> Iterator[int]:
        """The indices of the factors that a node reads."""
        what = self.tree.nodes[node]
        if what["kind"] == "element" and what["operand"] in ("a", "b"):
            yield _index(what["index"], places)
        if what["kind"] in ("repeat", "each"):
            for place in what["places"]:
                yield from self._read(what["body"], {**places, what["level"]: place})
        for name in ("start", "term", "left", "right"):
            if name in what:
                yield from self._read(what[name], places)
        for item in what.get("items", ()):
            yield from self._read(item, places)

    def _nan(self, how: Plain) -> None:
        """Check that a NaN is written as a NaN, and that an overflow is not written as a value below all numbers.
        Raises FaultError."""
        fmt = self.tree.formats[how["format"]]
        need(nan_as(how, fmt) == "nan", "a NaN is a number")
        below = fmt["signed"] and fmt["specials"] == "negative_zero"
        need(not below or how["overflow"] == "saturate", "what overflows is NaN, below every number")

    # -- terms of sums

    def term(self, node: int, places: Places, running: Mapping[int, Number]) -> Term:
        what = self.tree.nodes[node]
        kind = what["kind"]
        if kind == "zero":
            return Term(Kind(0, 0, 0, Fraction(0), 0))
        if kind in ("element", "round", "acc", "repeat"):
            return self._rounded(what, *self.number(node, places, running))
        if kind == "product":
            return self._product(what, places)
        if kind == "gate":
            return self.term(what["term"], places, running)
        if kind == "scale":
            return self._scaled(what, self.term(what["term"], places, running))
        need(kind in ("exact", "fused"), f"of a {kind} it is not known")
        terms = [(self.term(one, {**places, **dict(at)}, running), position)
                 for one, at, position in self.tree.terms(what["items"], places.items())]  # fmt: skip
        need(sum(one.gains is not None for one, _ in terms) < 2, "several terms of a sum rise")
        return _exact([one for one, _ in terms]) if kind == "exact" else self._fused(what, terms)

    def _rounded(self, what: Plain, number: int, rising: bool) -> Term:
        fmt = self.tree.formats[number]
        low, digits = self.tree.emin(number), int(fmt["fraction"])
        kept = what["kind"] != "element" or what["subnormals"] == "keep"
        values = list(_values(fmt, low, kept))
        kind = Kind(low, max(high for _, _, high in values), digits, most(digits), low - digits)
        return Term(kind, partial(_gains, values, digits) if rising else None)

    def _product(self, what: Plain, places: Places) -> Term:
        need(not what["normalised"], "a product that is normalised")
        (one, a, lowest), (other, b, lowest_b) = (self._factor(what[name]) for name in ("left", "right"))
        factors = one, other
        need(sorted(one["operand"] for one in factors) == ["a", "b"], "a product of other inputs")
        at = [_index(one["index"], places) for one in factors]
        digits = sum(int(self.tree.formats[self.tree.unit[name]]["fraction"]) for name in "ab")
        grid = sum(self.tree.last(self.tree.unit[name]) for name in "ab")
        high = max(x[2] for x in a) + max(y[2] for y in b)
        a_digits, b_digits = (int(self.tree.formats[self.tree.unit[name]]["fraction"]) for name in "ab")
        kind = Kind(lowest + lowest_b, high, digits, most(a_digits) * most(b_digits), grid)
        if self.raised not in at or self.raised is None:
            return Term(kind)
        need(at[0] == at[1], "a factor of the product that rises stands in another one")
        need(all(one["subnormals"] == "keep" for one in factors), "a factor of the product that rises is lost")
        return Term(kind, lambda: _gains(list(_products(a, b)), digits))

    def _factor(self, node: int) -> tuple[Plain, list[Values], int]:
        """The input that a factor is, its values with the exponents with which they are multiplied, and the smallest of
        these. An input that is converted to a format in which every number of its own is normal has their exponents."""
        what = self.tree.nodes[node]
        element = self.tree.nodes[what["term"]] if what["kind"] == "round" else what
        need(element["kind"] == "element" and element["operand"] in ("a", "b"), "a factor is not an input")
        own = self.tree.unit[element["operand"]]
        fmt, low, last = self.tree.formats[own], self.tree.emin(own), self.tree.last(own)
        if what is element:
            return element, list(_values(fmt, low, not self.normal)), low
        wide = self.tree.formats[what["rounding"]["format"]]
        infinite = fmt["specials"] not in INFINITE or wide["specials"] in INFINITE
        need(holds(wide, fmt) and infinite, "a factor is rounded to a format that does not hold it")
        need(last >= self.tree.emin(what["rounding"]["format"]), "a factor is rounded to a subnormal number")
        need(element["subnormals"] == "keep", "a factor is read as another number, and rounded")
        self._nan(what["rounding"])
        least, one = low if self.normal else last, 1 << fmt["fraction"]
        return element, [(range(one, 2 * one), least, _most(fmt))], last

    def _scaled(self, what: Plain, term: Term) -> Term:
        factors = [self.tree.nodes[what[name]] for name in ("left", "right")]
        need(all(one["kind"] == "element" and one["operand"] in ("scale_a", "scale_b") for one in factors),
             "a scale factor is not an input")  # fmt: skip
        fmt = self.tree.formats[self.tree.unit["scale"]]
        need(not fmt["signed"], "a scale factor has a sign")
        digits, own = 2 * int(fmt["fraction"]), term.kind
        low, high = 2 * self.tree.emin(self.tree.unit["scale"]), 2 * _most(fmt)
        kind = Kind(own.low + low, own.high + high, own.digits + digits, own.head * most(digits // 2) ** 2,
                    own.grid + low - digits)  # fmt: skip
        given = term.gains
        if given is None:
            return Term(kind)
        return Term(kind, lambda: _times(given(), low, high, digits), term.unfit)

    def _fused(self, what: Plain, terms: Sequence[tuple[Term, int]]) -> Term:
        keeps, floors, reach = (_each(what[name], len(what["items"])) for name in ("fraction_bits", "floors", "reach"))
        every = [term.kind for term, _ in terms]
        bounds = [bound for bound in (what["zeros"], what["least"], *floors) if bound is not None]
        sticky = int(what["sticky"])
        low, high = min([one.low for one in every] + bounds), max([one.high for one in every] + bounds)
        cut = math.floor if what["rounding"] == "toward_zero" else math.ceil
        heads = [Fraction(cut(term.kind.head * 2 ** keeps[at]), 2 ** keeps[at]) for term, at in terms]
        head, grid = sum(heads) + Fraction(1, 2 ** max(keeps)), min(one.grid for one in every) - sticky
        kind = Kind(low, high, max(keeps) + sticky, head, grid)
        rising = [number for number, (term, _) in enumerate(terms) if term.gains is not None]
        if not rising:
            return Term(kind)
        need(not sticky and what["carry_bits"] is None, "a sum wraps, or has a sticky bit")
        cuts = [_Cut(term.kind, keeps[at], reach[at], what["rounding"]) for term, at in terms]
        widths = [math.floor(cut.kind.head * Fraction(2) ** cut.kind.digits).bit_length() for cut in cuts]  # 0: zero
        self.aligned |= {(width, cut.kind.digits, cut.bits, cut.mode)
                         for width, cut in zip(widths, cuts, strict=True) if width > 0}  # fmt: skip
        (own,) = rising
        term, at = terms[own]
        need(not term.unfit, term.unfit)
        need(reach[at] is None or term.kind.head < 2, "what may vanish is not a number")
        others = [cut for number, cut in enumerate(cuts) if number != own]
        least = [bound for bound in (what["least"], floors[at]) if bound is not None]
        if what["zeros"] is not None and any(cut.kind.low >= what["zeros"] for cut in others):
            least.append(what["zeros"])  # which that one reaches, be it zero or not
        assert term.gains is not None
        found = _Moves(term.gains(), cuts[own], others, what["zeros"], max(least, default=None), kind.low).gains()
        return Term(kind, lambda: found, "a sum with a least exponent is a term of another" if bounds else "")


@dataclass(frozen=True)
class _Cut:
    """A term in a fused sum, of which `bits` are kept below the largest exponent."""

    kind: Kind
    bits: int
    reach: int | None
    mode: str

    def vanished(self, m: int) -> int:
        """A bound of the magnitude of a term that vanishes, if the largest exponent is m."""
        return 0 if self.reach is None else math.ceil(self.kind.head * loss(m - self.reach - 1))

    def off(self, m: int, rises: int, exponent: Exponent = None) -> int:
        """How far the alignment lowers (0) or raises (1) a value at most; `exponent`: that of the term, if it is
        known."""
        if exponent == m and self.kind.digits <= self.bits:
            return 0
        if self.kind.grid >= m - self.bits:
            return self.vanished(m)
        share = LOSSES[self.mode][rises] * loss(m - self.bits)
        return max(-(-share.numerator // share.denominator), self.vanished(m))

    def drops(self, before: int, after: int) -> int:
        """How much smaller a value becomes, at most, if the largest exponent changes."""
        coarse, fine = max(before, after), min(before, after)
        if self.kind.grid >= coarse - self.bits:  # it is not truncated
            return self.vanished(coarse)
        finer = max(fine - self.bits, self.kind.grid)  # both values are multiples of 2^finer
        if self.mode == "toward_zero":
            found = loss(coarse - self.bits) - gain(finer)
        elif self.mode in ("down", "up"):
            worse = (self.mode == "down") == (after > before)
            found = loss(coarse - self.bits) - gain(finer) if worse else 0
        else:
            # from half a unit (or one) below the coarse value to as much above it: ends that are multiples of 2^finer
            found = loss(coarse - self.bits - (1 if self.mode in ("nearest_even", "nearest_away") else 0))
        return found if self.reach is None else max(found, self.vanished(coarse) + loss(finer))


class _Moves:
    """The gain of a fused sum if its largest exponent changes."""

    def __init__(self, rising: Gains, own: _Cut, others: Sequence[_Cut], zeros: int | None, least: int | None,
                 low: int) -> None:  # fmt: skip
        self.rising, self.own, self.zeros, self.least, self.low = rising, own, zeros, least, low
        self.others: dict[_Cut, int] = {}
        for cut in others:
            self.others[cut] = self.others.get(cut, 0) + 1

    def counted(self, exponent: Exponent) -> int | None:
        """The exponent with which a raised term of this exponent counts in the largest one; None if it does not
        count."""
        found = [one for one in (self.zeros if exponent is None else exponent, self.least) if one is not None]
        return max(found, default=None)

    def gains(self) -> Gains:
        found: Gains = {}
        for upward in (True, False):
            lower: dict[Exponent, dict[Exponent, int]] = {}  # by the exponent on the side where it is the largest
            for (before, after), rise in self.rising.items():
                top, under = (after, before) if upward else (before, after)
                most, less = self.counted(top), self.counted(under)
                if most is not None and (less is None or less < most):
                    lower.setdefault(top, {})[under] = rise
            for top, rose in lower.items():
                most = self.counted(top)
                assert most is not None
                lost = 0 if top is None else self.own.off(most, int(not upward), top)
                for m, left in self._moved(most, rose, upward):
                    need(left >= lost, "the other terms of a sum may lose more than one has risen")
                    key = (m, most) if upward else (most, m)
                    found[key] = min(left - lost, found.get(key, left))
        for (before, after), rise in self.rising.items():  # where a sum counts as zero, every term does
            exponent = after if before is None else before if after is None else None
            if exponent is not None and None in (before, after):
                most = max(one for one in (self.counted(exponent), self.zeros) if one is not None)
                left = max(0, rise - self.own.off(most, int(before is not None), exponent))
                zeros = (None, most) if before is None else (most, None)
                found[zeros] = min(left, found.get(zeros, left))
        return found

    def _moved(self, top: int, rose: Mapping[Exponent, int], upward: bool) -> Iterator[tuple[int, int]]:
        """The gains that remain of rises to a largest exponent (or from it), the other largest exponent being m. There
        the raised term has an exponent that counts as m, or as less while another term has m."""
        starts: dict[int, list[Exponent]] = {}
        for under in rose:
            count = self.counted(under)
            starts.setdefault(self.low if count is None else max(count, self.low), []).append(under)
        passed: int | None = None  # the least rise from a number that counts as less
        zero = False
        for m in range(min(starts), top):
            left = [] if passed is None else [passed - self.own.off(m, int(upward))]
            for under in starts.get(m, ()):
                zero = zero or under is None
                if under is not None:
                    left.append(rose[under] - self.own.off(m, int(upward), under))
                    passed = rose[under] if passed is None else min(passed, rose[under])
            left += [rose[None]] if zero else []
            yield m, min(left) - sum(count * cut.drops(*((m, top) if upward else (top, m)))
                                     for cut, count in self.others.items())  # fmt: skip


def _exact(terms: Sequence[Term]) -> Term:
    """An exact sum counts with the exponent 0, unless every term is zero."""
    kinds = [one.kind for one in terms]
    grid = min(one.grid for one in kinds)
    kind = Kind(0, 0, -grid, sum(one.head * Fraction(2) ** one.high for one in kinds), grid)
    rising = any(one.gains is not None for one in terms)
    return Term(kind, (lambda: {(None, 0): gain(grid), (0, None): gain(grid)}) if rising else None)


def _each(given: Any, count: int) -> list[Any]:
    """One value for each operand; None for each if nothing is given."""
    return list(given) if isinstance(given, list) and given else [None if given == [] else given] * count


def _index(index: Plain, places: Places) -> int:
    return int(index["offset"]) + sum(int(step) * places[level] for level, step in index["factors"])


def _times(gains: Gains, low: int, high: int, digits: int) -> Gains:
    """The gains of terms that are multiplied by a power of two, the same before and after: at least 2^(by - digits),
    for each `by` from `low` to `high`."""
    found: Gains = {}
    for (before, after), rise in gains.items():
        for by in range(low, high + 1):
            key = None if before is None else before + by, None if after is None else after + by
            least = rise << by - digits if by >= digits else rise >> digits - by
            found[key] = min(least, found.get(key, least))
    return found


# -- values

Values = tuple[Sequence[int], int, int]  # significands in order, and the least and the largest exponent that they have


def _most(fmt: Plain) -> int:
    """The exponent of the largest numbers of a format, or one more."""
    return int((1 << fmt["exponent"]) - 1) - int(fmt["bias"])


def _values(fmt: Plain, low: int, subnormals: bool) -> Iterator[Values]:
    """The numbers of a format, or a superset of them."""
    one = 1 << fmt["fraction"]
    yield range(one, 2 * one), low, _most(fmt) - (fmt["specials"] == "ieee")
    if subnormals and fmt["subnormals"] and one > 1:
        yield range(1, one), low, low


def _products(a: Iterable[Values], b: Iterable[Values]) -> Iterator[Values]:
    b = list(b)
    for one, low, high in a:
        for other, low_b, high_b in b:
            need(len(one) * len(other) <= MANY, "there are too many products to be compared one by one")
            yield sorted({x * y for x in one for y in other}), low + low_b, high + high_b


def _gains(every: Sequence[Values], digits: int) -> Gains:
    """The least increase between values of two exponents, for each pair of them: the difference of their magnitudes,
    or, from a negative to a positive value, the sum."""
    found: Gains = {}

    def note(one: Exponent, other: Exponent, least: int) -> None:
        for key in ((one, other), (other, one)):  # that of a positive value, and of a negative one
            found[key] = min(least, found.get(key, least))

    for values, low, high in every:
        for e in range(low, high + 1):
            note(None, e, values[0] * gain(e - digits))
        for others, low_f, high_f in every:
            for places in range(max(1, low_f - high), high_f - low + 1):
                apart = _apart(others, values, places)
                for e in range(max(low, low_f - places), min(high, high_f - places) + 1):
                    note(e, e + places, apart * gain(e - digits))
    return found


def _apart(above: Sequence[int], below: Sequence[int], places: int) -> int:
    """The least of the nonzero differences and of the sums of a number of `above`, times 2^places, and one of
    `below`."""
    sums = (above[0] << places) + below[0]
    if above[0] << places > below[-1]:
        return min(sums, (above[0] << places) - below[-1])
    found = sums
    for x in above:
        if (x << places) - below[-1] >= found:
            break
        before, after = bisect_left(below, x << places), bisect_right(below, x << places)
        if before:
            found = min(found, (x << places) - below[before - 1])
        if after < len(below):
            found = min(found, below[after] - (x << places))
    return found
