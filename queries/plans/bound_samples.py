"""Matrices whose products have errors near the bound of a plan. The plan is simulated bit for bit; an error beyond the
bound is a fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, reduce
from itertools import product
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.kernel.bounds.forms import EXACT, Form, Monomial
from mmaprobe.queries.kernel.bounds.wording import COUNT, GROWTH
from mmaprobe.queries.kernel.integers.blocks import InLargest, LosesOfBlocks
from mmaprobe.queries.properties.bound_samples import Measured, largest_of, nearest_of
from mmaprobe.queries.properties.exact import Exactly
from mmaprobe.queries.search.samples import pattern_of
from mmaprobe.smtmodel.arithmetic.display import exact_value, finite_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import NEAREST
from mmaprobe.smtmodel.base.errors import FaultError
from mmaprobe.smtmodel.evaluate.numbers import in_f64
from mmaprobe.smtmodel.evaluate.tiles import Matrix, kind_of
from mmaprobe.smtmodel.nodes import Element, Literal, Node, Recombined, Residue, Round
from mmaprobe.smtmodel.nodes.node import of_kind, walk
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.operand import FACTORS
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.stages import Parted, Stage
from mmaprobe.smtmodel.plans.words import Gathered

SEED, GAPS, RANDOM = 37, 30, 16
MEASURED = 3  # elements of each matrix product whose errors are computed exactly
SAMPLED_PRODUCTS = 64  # products of random elements
SCOUTED = 768  # K at which rows of A are chosen for a longer K
CLIMBERS = 2  # inputs from which the search climbs, of different matrices
STEPS, CHANGES, CLIMBED = 12, 48, 1 << 21  # of climbing: steps, inputs of each step, products evaluated at most
NEARLY = 0.9  # share of a ratio: no ratio in long double is this much too small
EASY = Fraction(1, 4)  # share of each format's largest number: sums of magnitudes up to this share do not overflow
NONE = Fraction(0)
Reals = NDArray[np.float64]
#: sums of |a_k b_k|, |a_k| and so on, by the names of operands; and K times the largest magnitudes
Sums = dict[tuple[str, ...], Fraction]


@dataclass(frozen=True)
class NearPlan(Measured):
    """A row of A and a column of B (patterns) with the pattern `d` of their result."""

    a: Matrix
    b: Matrix
    d: int


def _kind(item: Monomial) -> tuple[str, ...]:
    """The names of a monomial's factors without scale factors, which are one."""
    return tuple(factor.name for factor in item if factor.name not in {row.name for row in FACTORS})


@dataclass(frozen=True)
class ErrorOfPlan:
    """The error of a plan, and a bound of it."""

    plan: Plan
    bound: Form

    def nearest(
        self, length: int, rows: list[int] | None = None, late: Callable[[], bool] = lambda: False
    ) -> tuple[NearPlan | None, int]:
        """The input of `length` products whose error is nearest to its bound, and how many elements were evaluated,
        until `late` is true; c is zero, scale factors are one. All errors are computed in long double, the largest
        errors again exactly. `rows`: the rows of A that are tried (`telling_rows`); None: all. Raises FaultError if an
        error exceeds its bound."""
        firsts, tried = list[NearPlan](), 0  # the nearest inputs of different matrices
        again = max(1, _steps(length))  # what is compiled for climbing is compiled at once
        for pairs in (_matrices(self.plan, length, rows), _of_all_sizes(self.plan, length)):
            if any(near.error for near in firsts):
                break
            for a, b in pairs:
                if late():
                    break
                results = _results_of(self.plan, a, b, again)
                tried += results.size
                least = NEARLY * float(firsts[-1].ratio) if len(firsts) == CLIMBERS else 0.0
                if (best := nearest_of(self._measured(a, b, results, least))) is not None:
                    firsts = sorted([*firsts, best], key=lambda near: near.ratio, reverse=True)[:CLIMBERS]
        climbed, more = self._climbed(firsts, late)
        return nearest_of(climbed), tried + more

    def _climbed(self, firsts: Sequence[NearPlan], late: Callable[[], bool]) -> tuple[list[NearPlan], int]:
        """For each of the best inputs so far one whose error is at least as near to its bound, found by changes of this
        input, and how many inputs were tried. A change gives another fraction to all elements of one side that have one
        pattern, to some of these, or to one of these. Most changes serve to bring a result next to a power of two,
        where the last rounding loses most of the result. Changes of all inputs are evaluated together."""
        bests, chances, tried = list(firsts), [np.random.default_rng(SEED) for _ in firsts], 0
        steps = _steps(len(firsts[0].a)) if firsts else 0
        for step in range(steps):
            if late():
                break
            pairs = [[near.a[None], near.b[None]] for near in bests]
            for chance, pair in zip(chances, pairs, strict=True):
                varied = _varied(chance, pair[step % 2][0], (self.plan.a, self.plan.b)[step % 2].fraction)
                pair[step % 2] = _as_read(self.plan, step % 2, varied)
            a, b = (np.concatenate(sides) for sides in zip(*pairs, strict=True))
            every = _results_of(self.plan, a, np.ascontiguousarray(b.T), steps)
            for place, (best, (a, b)) in enumerate(zip(bests, pairs, strict=True)):
                results = every[place * len(a) :, place * len(b) :][: len(a), : len(b)]
                tried += results.size
                near = self._measured(a, np.ascontiguousarray(b.T), results, NEARLY * float(best.ratio))
                bests[place] = nearest_of([best, *near]) or best
        return bests, tried

    def telling_rows(self) -> list[int]:
        """The rows that are tried for a longer K, by the bound for K = `SCOUTED`: the best row of each matrix product
        there, and the rows with the same signs and fractions whose exponent gap is larger by 3 and by 6."""
        rows: set[int] = set()
        for a, b in _matrices(self.plan, SCOUTED, None):
            if len(a) > RANDOM:
                rows |= {row for row, _ in self._worst(a, b, _results_of(self.plan, a, b))[:1]}
        return sorted({row // GAPS * GAPS + min(row % GAPS + more, GAPS - 1) for row in rows for more in (0, 3, 6)})

    def _worst(self, a: Matrix, b: Matrix, results: Matrix, least: float = 0.0) -> list[tuple[int, int]]:
        """The places (row, column) of the `MEASURED` largest ratios of error to bound, computed in long double; only
        ratios of at least `least`."""
        plan = self.plan
        x, y, d = (in_f64(side, fmt).astype(np.longdouble)
                   for side, fmt in ((a, plan.a), (b, plan.b), (results, plan.d)))  # fmt: skip
        large, wide = abs(x), abs(y)
        magnitudes = {("a", "b"): large @ wide, ("a",): large.sum(1)[:, None], ("b",): wide.sum(0), ("c",): 0.0}
        above, zero, below = (float(exact_result(plan, Fraction(k))) for k in (1, 0, -1))
        total = x @ y
        exact = np.where(total >= 0, above - zero, zero - below) * total + zero  # with ReLU, two lines that meet at 0
        magnitudes |= {(): 1.0, (EXACT,): abs(exact)} | _of_largest(len(b), large.max(1)[:, None], wide.max(0))
        bound = sum(float(value) * magnitudes[_kind(item)]
                    for atom, value in self.bound.parts.items() for item in atom)  # fmt: skip
        easy = magnitudes["a", "b"] <= float(easy_size(plan))
        error = abs(d - exact)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(error > 0, error / bound, 0.0)
        ratio = np.where(easy & np.isfinite(d), ratio, -1.0)
        order = np.argsort(ratio.astype(float), axis=None)[::-1][:MEASURED]
        return [(int(place) // b.shape[1], int(place) % b.shape[1]) for place in order if ratio.flat[place] >= least]

    def _measured(self, a: Matrix, b: Matrix, results: Matrix, least: float) -> Iterator[NearPlan]:
        """The largest errors of the results of a product, of at least this ratio, computed exactly, but those where a
        rounding might have overflowed. Raises FaultError if an error exceeds its bound."""
        for row, column in self._worst(a, b, results, least):
            x, y, d = a[row], b[:, column], int(results[row, column])
            sums, exact = _sums(self.plan, x, y)
            if sums["a", "b"] > easy_size(self.plan):
                continue
            near = NearPlan(exact, abs(_number(d, self.plan.d) - exact), self._value(sums, exact), x, y, d)
            if near.error > near.bound:
                raise near.contradicts(f"{self.plan.reference} for {len(x)} products", f"{d:x} is")
            yield near

    def _value(self, sums: Sums, exact: Fraction) -> Fraction:
        """The value of the bound where all scale factors are one. `sums`: the sums of |a_k b_k|, |a_k| and so on, by
        the names of operands; none of their terms is subnormal, so that a raised magnitude equals the magnitude itself.
        Raises ValueError for a bound with G, which has no single value."""

        def of(item: Monomial) -> Fraction:
            kind = _kind(item)
            if GROWTH in kind:
                raise ValueError("a bound for any K is not one number")
            return abs(exact) if kind == (EXACT,) else sums[kind] if kind else Fraction(1)

        return self._largest_terms(of)

    def bound_at(self, a: Matrix, b: Matrix, c: int) -> Fraction:
        """The value of the bound for a row of A, a column of B and an addend: patterns of finite numbers."""
        sums, exact = _sums(self.plan, a, b, c, self.bound.lifts)
        return self._value(sums, exact)

    def largest(self, length: int, exponent: int) -> Fraction:
        """The value of the bound for K = `length` where no input's exponent is above `exponent`."""
        most = {name: largest_of(fmt, exponent) for name, fmt in self.plan.formats.items()}
        products = length * _product(most, [name for name in most if name != "c"])
        most[EXACT] = exact_result(self.plan, products, most["c"], magnitudes=True)

        for name in self.bound.lifts:
            most[name] = max(most[name], Fraction(2) ** self.plan.least_normal(name))

        def of(item: Monomial) -> Fraction:
            names = [factor.name for factor in item]
            return _product(most, names) * (length if {"a", "b"} & set(names) else 1)

        return self._largest_terms(of)

    def _largest_terms(self, of: Callable[[Monomial], Fraction]) -> Fraction:
        """The bound's value; each term takes the largest of the values `of` its monomials."""
        return sum((value * max(map(of, atom)) for atom, value in self.bound.parts.items()), Fraction(0))


def _steps(length: int) -> int:
    """How many steps of climbing there are at K = `length`."""
    return min(STEPS, CLIMBED // (CHANGES * length))


def _product(most: dict[str, Fraction], names: Sequence[str]) -> Fraction:
    return reduce(mul, (most[name] for name in names), Fraction(1))


def _varied(rng: np.random.Generator, side: Matrix, fraction: int) -> Matrix:
    """Rows of a side with another fraction in some places."""
    rows = np.repeat(side[None], CHANGES, axis=0)
    kinds = np.unique(side)
    for row in rows:
        alike = np.flatnonzero(side == rng.choice(kinds))
        chosen = alike[: 1 + int(rng.integers(len(alike)))] if rng.random() < 0.5 else alike
        chosen = chosen if rng.random() < 0.7 else rng.choice(alike, 1)
        low = int(rng.integers(1, fraction + 1)) if fraction else 0
        row[chosen] ^= side.dtype.type(rng.integers(1 << low))
    return rows


def _results_of(plan: Plan, a: Matrix, b: Matrix, times: int = 1) -> Matrix:
    """The patterns of D; scale factors are one. `times`: how many products of these shapes are asked for."""
    if plan.scale is None:
        return simulate(a, b, None, plan, times=times)
    one, blocks = plan.scale.bias << plan.scale.fraction, -(-a.shape[1] // plan.scale_block)
    shapes = {row.name: row.shape(a.shape[0], b.shape[1], blocks) for row in FACTORS}
    scales = {name: np.full(shape, one, kind_of(plan.scale)) for name, shape in shapes.items()}
    return simulate(a, b, None, plan, scales=scales, times=times)


def _matrices(plan: Plan, length: int, rows: list[int] | None) -> Iterator[tuple[Matrix, Matrix]]:
    """Pairs of A and B. In all pairs but the last some products are one (where units read words, also of a number of
    which the words leave most), and the others are equal and smaller: of either sign, at each exponent gap, and with
    each of the fractions of `_fractions` and `_of_words`. The last pair is random, with magnitudes from 1/2 to 2.
    `rows`: the rows of A to take in all pairs but the last; None for all."""
    ways = _fractions(plan.a, plan.convert_a) + _of_words(plan, 0)
    kinds = len(ways) * 2
    chosen = np.arange(kinds * GAPS) if rows is None else np.array(rows)
    gap, kind = chosen[:, None] % GAPS, chosen[:, None] // GAPS
    fraction = np.array(ways, dtype=np.uint64)[kind // 2]
    others = _fractions(plan.b, plan.convert_b) + _of_words(plan, 1)
    low, digits = np.array([[0] * len(others) + [12] * len(others)]), np.array([others * 2], dtype=np.uint64)
    heads_of = dict.fromkeys([(0, 0), *product(_of_words(plan, 0) or [0], _of_words(plan, 1) or [0])])
    for heads, (first, last) in product(begins_of(plan, length), heads_of):
        large = pattern_of(plan.a, 0 * kind, 0 * gap + plan.a.bias, 0 * fraction + np.uint64(first))
        small = pattern_of(plan.a, kind % 2, np.maximum(-gap, plan.least_normal("a")) + plan.a.bias, fraction)
        one = pattern_of(plan.b, 0 * low, 0 * low + plan.b.bias, 0 * digits + np.uint64(last))
        less = pattern_of(plan.b, 0 * low, np.maximum(-low, plan.least_normal("b")) + plan.b.bias, digits)
        yield _typed(plan, np.where(heads, large, small), np.where(heads[:, None], one, less))
    yield _random(plan, length)


def _of_all_sizes(plan: Plan, length: int) -> Iterator[tuple[Matrix, Matrix]]:
    """A pair of A and B with positive numbers of all exponents, more and more of which are the largest number: in
    formats of few exponents no other products add up to so many bits that they are rounded."""
    rng = np.random.default_rng(SEED)
    sides = []
    for fmt, shape in ((plan.a, (RANDOM, length)), (plan.b, (RANDOM, length))):
        any_size = rng.integers(fmt.largest + 1, size=shape, dtype=np.uint64) >> fmt.padding << fmt.padding
        large = rng.random(shape) < np.linspace(0, 1, RANDOM)[:, None]
        sides.append(np.where(large, np.uint64(fmt.largest), any_size))
    a, b = _typed(plan, sides[0], sides[1].T)
    yield _as_read(plan, 0, a), _as_read(plan, 1, b)


def _as_read(plan: Plan, side: int, patterns: Matrix) -> Matrix:
    """Patterns of A (`side` 0) or of B (1), with zeros for the subnormal numbers that a unit reads as zero: these count
    as zero in the exact result, too. Sides that are read as words stay as they are."""
    fmt, inputs = (plan.a, plan.b)[side], (part for unit in plan.models for part in of_kind(unit.unit.result, Element))
    flushes = any(part.operand == "ab"[side] and part.subnormals != "keep" for part in inputs)
    if not flushes or not fmt.subnormals or plan.words_read(side) != (None,):
        return patterns
    zeros = patterns.dtype.type(fmt.sign_bit)
    return np.where(abs(in_f64(patterns, fmt)) < 2.0**fmt.emin, patterns & zeros, patterns)


def _random(plan: Plan, length: int) -> tuple[Matrix, Matrix]:
    rng = np.random.default_rng(SEED)
    sides = []
    for fmt, shape in ((plan.a, (RANDOM, length)), (plan.b, (length, 1))):
        sign, exponent = rng.integers(2, size=shape), rng.integers(-1, 1, size=shape)
        sides.append(pattern_of(fmt, sign, exponent + fmt.bias, rng.integers(1 << 63, size=shape, dtype=np.uint64)))
    return _typed(plan, *sides)


def hold_largest(plan: Plan, goal: InLargest) -> None:
    """Compare a bound in largest magnitudes with random products. Raises FaultError for an error beyond the bound."""
    goal = goal if isinstance(goal, LosesOfBlocks) else replace(goal, length=min(goal.length, SAMPLED_PRODUCTS))
    length = goal.length
    a, b = _random(plan, length)
    a = a[:MEASURED]
    for row, d in zip(a, simulate(a, b, None, plan, engine="numpy")[:, 0].tolist(), strict=True):
        x, y = ([_number(one, fmt) for one in side.tolist()] for side, fmt in ((row, plan.a), (b[:, 0], plan.b)))
        error = abs(_number(d, plan.d) - sum(map(mul, x, y), Fraction(0)))
        most = [[max(map(abs, side[k : k + goal.block])) for k in range(0, length, goal.block)] for side in (x, y)]
        if error > goal.share * goal.block * sum(map(mul, *most)) + goal.rest:
            raise FaultError(f"the error bound of {plan.reference} in the largest elements was proved, but {d:x} is "
                             f"{float(error):.6g} from the exact result")  # fmt: skip


def _typed(plan: Plan, a: Matrix, b: Matrix) -> tuple[Matrix, Matrix]:
    return a.astype(kind_of(plan.a)), b.astype(kind_of(plan.b))


def _fractions(fmt: Format, how: Rounding | None) -> list[int]:
    """Fraction fields of the smaller products: all zeros, all ones, and, where a side is converted, the fields of which
    the conversion loses most: half a unit in the last place, and just less, which is lost in the other direction; just
    less than a unit where the conversion truncates."""
    every = (1 << 63) - 1
    if how is None:
        return [0, every]
    unit = 1 << max(0, fmt.fraction - how.format.fraction)
    return [0, every, unit // 2, max(0, unit // 2 - 1)] if how.mode in NEAREST else [0, every, unit - 1]


def _of_words(plan: Plan, side: int) -> list[int]:
    """A fraction field of which every word of a side leaves nearly as much as it can, all of one sign; empty where a
    side is not read in several words, or these are not made by one rounding."""
    fmt, words = (plan.a, plan.b)[side], [word for word in plan.words_read(side) if word is not None]
    hows = {one.rounding for word in words[:1] for one in of_kind(word, Round) if one.rounding.format != fmt}
    if len(plan.words_read(side)) < 2 or len(hows) != 1:
        return []
    (how,) = hows
    bits, found, left = how.format.fraction, 0, fmt.fraction - how.format.fraction
    while left > 0:  # the last place of a word is 2^left: a word leaves just less than half of this place, or all
        own = left - 1 if how.mode in NEAREST else left
        found += 1 << own
        left = own - 1 - bits
        found -= 1 << max(left, 0)
    return [found]


def begins_of(plan: Plan, length: int) -> list[NDArray[np.bool_]]:
    """Sets of products, as masks over K: the first products of the plan's sums."""
    places = {(0,), *(tuple(own) for products in plan.sums for own in _begins(products.stage, length))}
    return [np.isin(np.arange(length), own) for own in sorted(places)]


def _begins(stage: Stage, length: int) -> Iterator[Sequence[int]]:
    if isinstance(stage, Parted) and stage.rounding is not None:
        if begins := stage.partition.begins(length, stage):
            yield begins
        yield from _begins(stage.body, length)


def easy_size(plan: Plan) -> Fraction:
    """A sum of magnitudes up to which no rounding overflows."""
    converted = {how.format for how in (plan.convert_a, plan.convert_b) if how is not None}
    return EASY * min(_number(fmt.largest, fmt) for fmt in {*plan.formats_of_results, *converted})


def _sums(plan: Plan, a: Matrix, b: Matrix, c: int = 0, raised: Set[str] = frozenset()) -> tuple[Sums, Fraction]:
    """The sums of magnitudes over a row of A and a column of B, and the exact result of the plan. `raised`: the
    operands whose numbers below the smallest normal one of their format (`Plan.least_normal`) count as this number."""
    least = {name: Fraction(2) ** plan.least_normal(name) if name in raised else NONE for name in "abc"}

    def numbers(name: str, side: Matrix, fmt: Format) -> tuple[Reals, Reals]:
        """The numbers of a side, and their magnitudes."""
        own = in_f64(side, fmt)
        for pattern in side[~np.isfinite(own)].tolist():
            _number(pattern, fmt)  # raises FaultError
        return own, np.where(own == 0, 0.0, np.maximum(abs(own), float(least[name])))

    (x, large), (y, wide) = numbers("a", a, plan.a), numbers("b", b, plan.b)
    addend = _number(c, plan.c)
    sums: Sums = {
        ("a", "b"): _exact_sum(large, wide), ("a",): _exact_sum(large), ("b",): _exact_sum(wide),
        ("c",): max(abs(addend), least["c"]) if addend else NONE,
    }  # fmt: skip
    most = Fraction(float(large.max())), Fraction(float(wide.max()))
    total = _exact_sum(x, y)
    return sums | _of_largest(Fraction(len(a)), *most), exact_result(plan, total, addend)


def _exact_sum(x: Reals, y: Reals | None = None) -> Fraction:
    """The exact sum of some numbers, or of products of numbers: halves of their significands are multiplied as integers
    and added at each exponent."""
    (m, e), (n, f) = (np.frexp(side) for side in (x, np.ones_like(x) if y is None else y))
    (a, b), (c, d) = (divmod(np.ldexp(one, 54).astype(np.int64), 1 << 27) for one in (m, n))
    scales = (e + f).astype(np.int16)  # numbers of 16 bits are sorted in linear time
    order = np.argsort(scales, kind="stable")
    begins = np.flatnonzero(np.diff(scales[order], prepend=np.int16(-1 << 15)))
    exponents: list[int] = scales[order][begins].tolist()
    total, lowest = 0, exponents[0]
    for weight, parts in ((54, a * c), (27, a * d + b * c), (0, b * d)):  # of at most 56 bits each
        for low, part in ((weight, parts & 0xFFFFFFFF), (weight + 32, parts >> 32)):
            added = np.add.reduceat(part[order], begins).tolist()
            total += sum(one << low + at - lowest for one, at in zip(added, exponents, strict=True))
    return total * Fraction(2) ** (lowest - 108)


def _of_largest(count: Any, a: Any, b: Any) -> dict[tuple[str, ...], Any]:
    """K times the magnitudes of products, of a and of b, by the largest magnitudes of both sides; and K."""
    return {("a", "b", COUNT): count * a * b, ("a", COUNT): count * a, ("b", COUNT): count * b, (COUNT,): count}


def exact_result(plan: Plan, total: Fraction, c: Fraction = NONE, magnitudes: bool = False) -> Fraction:
    """The result of a plan without rounding, where `total` is the exact sum of all products. `magnitudes`: an upper
    bound of its magnitude instead, from the magnitudes `total` and `c`."""
    return _Exactly(plan, total, c, magnitudes).of(plan.result)


def exact_element(plan: Plan, a: Sequence[int], b: Sequence[int], c: int) -> Fraction | None:
    """The exact result of one element, with the factors by which the plan multiplies c and the sum of all products;
    None if an input is not finite. For plans that read whole rows in their result, or residues in words, these factors
    count as 1."""
    numbers = [finite_value(pattern, fmt) for fmt, side in ((plan.a, a), (plan.b, b)) for pattern in side]
    addend = finite_value(c, plan.c) if plan.addend else NONE
    finite = [number for number in numbers if number is not None]
    if addend is None or len(finite) < len(numbers):
        return None
    total = sum(map(mul, finite[: len(a)], finite[len(a) :]), NONE)
    if any(isinstance(node, (Gathered, Recombined, Residue)) for node in walk(plan.result)):
        return total + addend
    return exact_result(plan, total, addend)


class _Exactly(Exactly):
    def __init__(self, plan: Plan, total: Fraction, c: Fraction, magnitudes: bool) -> None:
        super().__init__()
        self.plan, self.total, self.c, self.magnitudes = plan, total, c, magnitudes

    def formed(self, node: Node) -> Fraction:
        match node:
            case Products():
                return self.total * self.plan.share(node) + self.of(node.start)
            case Element():
                return self.c
            case Literal() if self.magnitudes:
                return abs(super().formed(node))
        return super().formed(node)


@cache
def _number(pattern: int, fmt: Format) -> Fraction:
    if (value := finite_value(pattern, fmt)) is None:
        raise FaultError(f"{exact_value(pattern, fmt)} came of numbers that cannot overflow")
    return value
