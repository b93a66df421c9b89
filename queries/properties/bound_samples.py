"""Inputs whose errors are near a proved error bound, each computed in exact rationals; an error beyond the bound is a
fault."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.kernel.bounds.forms import Form
from mmaprobe.queries.kernel.questions.problem import is_beyond
from mmaprobe.queries.properties.exact import ExactChain, ExactRow, in_magnitudes, stride_of
from mmaprobe.queries.search.contradiction import row_text
from mmaprobe.queries.search.samples import Table, pattern_of, sample_rows, with_ones
from mmaprobe.smtmodel.arithmetic.display import finite_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import FaultError
from mmaprobe.smtmodel.evaluate.batch import CHUNK, evaluate_batch, evaluate_lanes, sides_of, to_integers
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Layout, layout_of
from mmaprobe.smtmodel.nodes import Segment
from mmaprobe.smtmodel.nodes.known import power
from mmaprobe.smtmodel.nodes.node import of_kind

SEED, ROWS = 31, 240
GAPS, KINDS = 40, 6  # distances in bits from the large terms down to the others; choices of signs and fractions
NARROW_RANGE = 56  # with fewer exponents of products than this, the large terms have the largest exponent
CHAINS, WORK = 16, 4096  # the most chains of each kind, and the most products in them; two chains in any case
CLIMBS, TRIES = 10, 40  # rounds of small changes to the best input, and changes in a round
#: further rounds follow, MORE times at most, while the error is below a share of the bound and the last rounds gained
MORE, NEAR_ENOUGH, GAIN = 10, Fraction(9, 10), Fraction(1, 100)


@dataclass(frozen=True)
class Measured:
    """`exact`: the result of an input without rounding; `error`: |d - exact|; `bound`: the bound for this input."""

    exact: Fraction
    error: Fraction
    bound: Fraction

    @property
    def ratio(self) -> Fraction:
        return self.error / self.bound if self.bound else Fraction(0)

    def contradicts(self, what: str, given: str) -> FaultError:
        """The fault that the result of an input exceeds the proved bound of `what`."""
        return FaultError(
            f"the error bound of {what} was proved, but an evaluation contradicts it: {given} {float(self.error):.6g} "
            f"from the exact result; the bound there is {float(self.bound):.6g}"
        )


M = TypeVar("M", bound=Measured)


def nearest_of(cases: Iterable[M]) -> M | None:
    """The input whose error is nearest to its bound."""
    return max(cases, key=lambda near: near.ratio, default=None)


@dataclass(frozen=True)
class Near(Measured):
    """An input (of a chain: its rows one after another) with the result of each row."""

    row: tuple[int, ...]
    results: tuple[int, ...]


def covered(model: Model, table: Table) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """The result of each row, and the rows that a bound covers: no value is infinite, a NaN, or as large as its format
    can hold, so that no rounding has overflowed and no product has reached its limit."""
    evaluation = evaluate_lanes(model, *sides_of(model, table))
    out = np.ones(len(table), dtype=bool)
    for visit in evaluation.trace.visits:
        out &= to_integers(is_beyond(visit), len(table)) == 0
    return to_integers(evaluation.d, len(table)), out


@dataclass(frozen=True)
class Search:
    """`best`: the input whose error is nearest to its bound, None if the bound covers no input that was tried; `tried`:
    the number of inputs that the bound covers."""

    best: Near | None
    tried: int


@dataclass(frozen=True)
class ErrorOfModel:
    """The error of a model and a bound of this error; or those of a chain of `count` instructions, in which each result
    is the addend of the next."""

    model: Model
    bound: Form
    count: int = 1

    @cached_property
    def layout(self) -> Layout:
        """The operands of a row."""
        return layout_of(self.model)

    def measured(self, table: Table) -> list[Near]:
        """The error and the bound of every row that the bound covers. Raises FaultError if an error exceeds its
        bound."""
        results, admitted = covered(self.model, table)
        rows = zip(table[admitted], results[admitted], strict=True)
        return [near for row, pattern in rows if (near := self._near(row[None], int(pattern))) is not None]

    def nearest(self) -> Search:
        """Search samples and constructed inputs, then small changes of the best input. Raises FaultError if an error
        exceeds its bound."""
        rng = np.random.default_rng(SEED)
        cases = self.measured(sample_rows(self.layout, ROWS, SEED)) + self.measured(dominated(self.layout))
        best, tried = nearest_of(cases), len(cases)
        if best is None:
            return Search(best, tried)
        for _ in range(1 + MORE):
            before = best.ratio
            for _ in range(CLIMBS):
                changed = self.measured(_changed(self.layout, best.row, rng))
                best, tried = max(best, *changed, key=lambda near: near.ratio), tried + len(changed)
            if best.ratio >= NEAR_ENOUGH or best.ratio <= (1 + GAIN) * before:
                break
        return Search(best, tried)

    def nearest_chain(self, of_one: Form) -> Search:
        """Search chains on samples and on constructed inputs. `of_one` is the bound of a single instruction. Raises
        FaultError if an error exceeds its bound."""
        model, layout, count, k = self.model, self.layout, self.count, self.model.length
        rng, chains = np.random.default_rng(SEED), max(2, min(CHAINS, WORK // (count * k)))
        single = [near for near in ErrorOfModel(model, of_one).measured(dominated(layout, [(k,)])) if near.exact]
        single = sorted(single, key=lambda near: near.error / abs(near.exact), reverse=True)[:chains]
        shaped = np.array([near.row for near in single], dtype=np.uint64).reshape(len(single), len(layout.names))
        mixed = sample_rows(layout, 2 * chains * count, SEED)
        mixed = _finite(layout, mixed[rng.permutation(len(mixed))][: chains * count]).reshape(chains, count, -1)
        steps = np.concatenate([np.repeat(shaped[:, None], count, axis=1), mixed])
        results = steps[:, 0, 2 * k]
        for number in range(count):
            steps[:, number, 2 * k] = results
            results = evaluate_batch(model, *sides_of(model, steps[:, number]))
        rows = steps.reshape(-1, steps.shape[-1])  # checked together: signals take many times as long as results
        fine = [covered(model, rows[start : start + CHUNK])[1] for start in range(0, len(rows), CHUNK)]
        admitted = np.concatenate(fine).reshape(steps.shape[:2]).all(axis=1)
        tried = zip(steps[admitted], results[admitted], strict=True)
        cases = [near for row, pattern in tried if (near := self._near(row, int(pattern))) is not None]
        return Search(nearest_of(cases), len(cases))

    def _near(self, steps: Table, pattern: int) -> Near | None:
        """The error and the bound of the rows of a chain with this result; None if a number is not finite."""
        model, d = self.model, finite_value(pattern, self.model.d)
        if d is None or (chain := ExactChain.of(model, self.layout, steps)) is None:
            return None
        results = (*(int(row[2 * model.length]) for row in steps[1:]), pattern)
        error, exact = abs(d - chain.exact[-1]), chain.exact[-1]
        near = Near(exact, error, self.bound.value(chain.magnitude), tuple(map(int, steps.flat)), results)
        if near.error > near.bound:
            place = f"a chain of {len(steps)} instructions" if self.count > 1 else row_text(self.layout, near.row)
            raise near.contradicts(model.reference, f"{place} gives {pattern:x}, which is")
        return near

    def bound_at(self, steps: Table) -> Fraction:
        """The value of the bound for a chain whose instructions have these rows of finite operands; only the first
        addend counts."""
        chain = ExactChain.of(self.model, self.layout, steps)
        assert chain is not None
        return self.bound.value(chain.magnitude)

    def largest(self, exponent: int) -> Fraction:
        """The value of the bound if no input's exponent is above `exponent`."""
        layout, unit = self.layout, in_magnitudes(self.model.unit)
        largest: dict[tuple[str, int], tuple[Fraction, Format]] = {}
        in_segments = any(of_kind(unit.result, Segment))
        for (name, place), fmt in zip(layout.places, layout.formats, strict=True):
            stride = stride_of(self.model, name)
            top = all_ones(fmt, exponent) if in_segments else largest_of(fmt, exponent)
            for number in range(self.count if stride else 1):
                largest[name, place + number * stride] = top, fmt
        row = ExactRow(unit, largest)
        return self.bound.value(row.magnitude(row.exact))


def _finite(layout: Layout, table: Table) -> Table:
    """The rows (changed in place) with zero for each pattern that is not finite."""
    for index, fmt in enumerate(layout.formats):
        beyond = (table[:, index] & np.uint64((1 << fmt.field_width) - 1)) > np.uint64(fmt.largest)
        table[beyond | (fmt.nan_for_negative_zero & (table[:, index] == np.uint64(fmt.nan))), index] = 0
    return table


def largest_of(fmt: Format, exponent: int) -> Fraction:
    """An upper bound of the numbers of a format whose exponents are at most `exponent`."""
    if exponent < fmt.emin:
        return min(fmt.most, power(exponent + 1))
    return min(fmt.most, (2 - power(-fmt.fraction)) * power(exponent))


def all_ones(fmt: Format, exponent: int) -> Fraction:
    """As `largest_of`, but with every bit of the significand set, so that each segment of the significand is as large
    as possible. (The largest number of some formats, as 448 of e4m3, has clear bits.)"""
    top = min(exponent, fmt.emax)
    return max(Fraction(0), power(top + 1) - power(max(top, fmt.emin) - fmt.fraction))


def dominated(layout: Layout, mains: Sequence[tuple[int, ...]] = ()) -> Table:
    """Rows in which the products of one set of `mains` (the index K is the addend) are large, and all other terms have
    the largest magnitude that lies a number of bits below the large terms. If products have few exponents,
    the large terms have the largest exponent: then as many exponents as possible lie below the bits that are kept."""
    k, a, b, c = layout.length, layout.a, layout.b, layout.c
    mains = mains or [(0,), (k - 1,), (k,), tuple(range(min(2, k)))]
    gap = np.tile(np.arange(GAPS), KINDS * len(mains))
    kind = np.repeat(np.arange(KINDS), GAPS * len(mains))
    main = np.tile(np.repeat(np.arange(len(mains)), GAPS), KINDS)
    table = np.zeros((len(gap), len(layout.formats)), dtype=np.uint64)
    lowest, highest = a.emin + b.emin, min(a.emax + b.emax, c.emax)
    top = highest if highest - lowest < NARROW_RANGE else min(highest, max(2, lowest, c.emin))
    most = np.uint64((1 << 63) - 1)
    for place in range(k + 1):
        own = np.isin(main, [number for number, places in enumerate(mains) if place in places])
        exponent = np.where(own, top, top - gap)
        sign = np.where(own, 0, kind // 2 == 1) | (~own & (kind // 2 == 2) & (place % 2 == 1))
        fraction = np.where(own & (kind % 2 == 0), np.uint64(0), most)
        if place == k:
            table[:, 2 * k] = pattern_of(c, sign, exponent + c.bias, fraction)
            continue
        left = np.clip(exponent // 2, np.maximum(a.emin, exponent - b.emax), np.minimum(a.emax, exponent - b.emin))
        table[:, place] = pattern_of(a, sign, left + a.bias, fraction)
        table[:, k + place] = pattern_of(b, 0 * sign, exponent - left + b.bias, fraction)
    return with_ones(layout, table)


def _changed(layout: Layout, row: Sequence[int], rng: np.random.Generator) -> Table:
    """Rows that differ from `row` in at most three patterns: a bit or the low bits inverted, the pattern of another
    operand, or a neighbouring pattern."""
    table = np.tile(np.array(row, dtype=np.uint64), (TRIES, 1))
    for one in table:
        for _ in range(rng.integers(1, 4)):
            index = int(rng.integers(len(row)))
            fmt = layout.formats[index]
            kind = rng.integers(4)
            if kind == 0:
                one[index] ^= np.uint64(1) << np.uint64(rng.integers(fmt.padding, fmt.width))
            elif kind == 1:
                low = np.uint64((1 << (int(rng.integers(fmt.fraction + 1)) + fmt.padding)) - (1 << fmt.padding))
                one[index] ^= low
            elif kind == 2:
                one[index] = one[rng.choice([k for k, own in enumerate(layout.formats) if own == fmt])]
            else:
                one[index] = (int(one[index]) + int(rng.choice([-1, 1])) * (1 << fmt.padding)) % (1 << fmt.width)
    return table
