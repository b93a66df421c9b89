"""New inputs that distinguish plans which give the same recorded product.

A recording shows few roundings, and a recording stored in a narrow format hides most of these. New elements have the
recorded numbers in other places. Elements of a few products that cancel show single roundings of sums; elements of
numbers half way between two numbers of a narrower format show the rounding of inputs. Recorded numbers of few exponents
hide most of what plans do to small ones, so that elements of numbers of all exponents follow, or of large integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import ceil, log2

import numpy as np

from mmaprobe.queries.plans.candidates import Candidates
from mmaprobe.queries.plans.recorded import SEED, Recorded, Sample, near_ends
from mmaprobe.queries.plans.unit_stages import TILES
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.tiles import Matrix, kind_of
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.partitions import Equal
from mmaprobe.smtmodel.plans.stages import Parted

SIDE = 64  # rows and columns of new elements
SPARSE_SIDE = 32  # rows and columns of new elements with few nonzero products
FAMILIES = 12  # samples of elements with few nonzero products
NEAR = 4096  # by how much another K may be smaller or larger
POOL = 4096  # numbers of all exponents, among which elements choose
TINY = 4  # one of so many of these numbers is subnormal
PRODUCTS = (2, 3, 4)  # nonzero products of such an element: the last one cancels the first


@dataclass(frozen=True)
class Input:
    """The input of one element. `products`: by the k of each nonzero product, the patterns of a and b; `results`: the
    result of the plan that is named first, and of another plan."""

    products: dict[int, tuple[int, int]]
    c: int
    results: tuple[int, int]


@dataclass(frozen=True)
class Other:
    """A plan, under all its names, that gives every recorded element, as the plan named first does. `differ`: the
    number of the `asked` new elements on which the two plans differ; `shown`: such an element with few nonzero
    products; `wide`: these elements have numbers of all exponents, or large integers, and no element like the recorded
    ones differs."""

    plans: tuple[Plan, ...]
    differ: int
    asked: int
    shown: Input | None
    wide: bool = False


def narrowest(plan: Plan) -> Format:
    """The format with the fewest bits to which a plan rounds a sum."""
    return min(plan.formats_of_results, key=lambda fmt: fmt.width)


def same_sizes(plan: Plan, length: int) -> tuple[int, int] | None:
    """A usual grain, other than a plan's, with which the equal parts of its sum are as long at K = `length`; and the
    nearest K at which they are not."""
    stages, most = [total.stage for total in plan.sums], max(model.length for model in plan.models)
    for stage, grain in product(stages, (tile for tile in TILES if tile and tile % most == 0)):
        if isinstance(stage, Parted) and isinstance(cut := stage.partition, Equal):
            with suppress(ParameterError):
                own = replace(cut, grain=grain)
                other = replace(stage, partition=own)
                near = (length + more for size in range(min(length, NEAR)) for more in (-size, size))
                unlike = next((k for k in near if cut.sizes(k, stage) != own.sizes(k, other)), length)
                if unlike != length:
                    return grain, unlike
    return None


class Apart:
    """New elements like those of a recorded product, then elements of numbers of all exponents, or of large integers,
    on which a plan is compared with others."""

    def __init__(self, recorded: Recorded, candidates: Candidates, plan: Plan) -> None:
        self._recorded, self._candidates, self._plan = recorded, candidates, plan

    @cached_property
    def _like(self) -> list[tuple[Sample, Matrix]]:
        sides = (self._recorded.a, self._recorded.b)
        return self._answered(_samples(self._recorded, *(side[side != 0] if np.any(side) else side for side in sides)))

    @cached_property
    def _wide(self) -> list[tuple[Sample, Matrix]]:
        asked, chance = self._recorded.asked, np.random.default_rng(SEED)
        if asked.of_integers:
            largest = (near_ends(chance, fmt, np.zeros(POOL, np.bool_)) for fmt in (asked.a, asked.b))
            return self._answered(_samples(self._recorded, *largest))
        if any(fmt.is_integer for fmt in (asked.a, asked.b, asked.d)):
            return []  # numbers of one exponent
        most = asked.d.emax - ceil(log2(asked.length)) - 1
        pools = (_of_all_exponents(fmt, most // 2, chance) for fmt in (asked.a, asked.b))
        return self._answered(_samples(self._recorded, *pools))

    def _answered(self, samples: Iterator[Sample]) -> list[tuple[Sample, Matrix]]:
        return [
            (sample, results)
            for sample in samples
            if (results := self._candidates.results(self._plan, sample)) is not None
        ]

    def other(self, plans: tuple[Plan, ...]) -> Other:
        """The comparison of a plan, of which `plans` are all names, with the plan named first."""
        like = self._compared(plans, self._like)
        if like.differ or not (wide := self._compared(plans, self._wide)).differ:
            return like
        return replace(wide, wide=True)

    def _compared(self, plans: tuple[Plan, ...], elements: list[tuple[Sample, Matrix]]) -> Other:
        differ, asked, shown = 0, 0, None
        for sample, wanted in elements:
            results = self._candidates.results(plans[0], sample)
            if results is None:
                continue
            unlike = ~self._candidates.agreeing(results, Sample(sample.a, sample.b, sample.c, wanted))
            differ, asked = differ + int(unlike.sum()), asked + unlike.size
            if shown is None and unlike.any():
                shown = _input(sample, np.argwhere(unlike)[0], (wanted, results))
        return Other(plans, differ, asked, shown)


def _input(sample: Sample, place: Matrix, results: tuple[Matrix, Matrix]) -> Input | None:
    """The input of an element of a sample; None if many of its products are nonzero."""
    block, row, column = map(int, place)
    a, b = sample.a[block, row], sample.b[block, :, column]
    if (places := np.flatnonzero((a != 0) | (b != 0))).size > max(PRODUCTS):
        return None
    one, other = (int(result[block, row, column]) for result in results)
    products = {int(k): (int(a[k]), int(b[k])) for k in places}
    return Input(products, int(sample.c[block, row, column]), (one, other))


def _of_all_exponents(fmt: Format, most: int, chance: np.random.Generator) -> Matrix:
    """Random patterns of a format, of all exponents up to `most`, and some subnormal ones."""
    largest = min(fmt.largest_field, max(most - fmt.emin + 1, 1) << fmt.fraction)
    fields = chance.integers(1, largest + 1, POOL)
    if fmt.subnormals:
        fields[::TINY] = chance.integers(1, 1 << fmt.fraction, POOL // TINY) if fmt.fraction else 1
    signs = chance.integers(0, 2, POOL) << (fmt.width - 1) if fmt.signed else 0
    return (fields << fmt.padding | signs).astype(kind_of(fmt))


def _tied(side: Matrix, fmt: Format, chance: np.random.Generator) -> Matrix:
    """Patterns of numbers half way between two numbers of a narrower format: each pattern of `side` is cut after a
    random bit of its fraction, and this bit is set."""
    places = chance.integers(fmt.padding, fmt.padding + max(fmt.fraction, 1), side.shape)
    last = (1 << places).astype(side.dtype)
    return np.where(side == 0, side, (side & ~(last - side.dtype.type(1))) | last)


def _samples(recorded: Recorded, a: Matrix, b: Matrix) -> Iterator[Sample]:
    """Samples of new elements, whose D is not known: elements with few nonzero products, then elements with all
    products. `a`, `b`: the factors among which elements choose."""
    chance, length = np.random.default_rng(SEED), recorded.length
    a, b = a.ravel(), b.ravel()
    c = None if recorded.c is None else recorded.c.ravel()

    def sample(one: Matrix, other: Matrix, with_c: bool) -> Sample:
        shape = (1, one.shape[0], other.shape[1])
        zeros = np.zeros(shape, dtype=recorded.addends.dtype)
        return Sample(one[None], other[None], zeros if c is None or not with_c else chance.choice(c, shape), zeros)

    for number in range(FAMILIES if length > 1 else 0):
        count = min(PRODUCTS[number % len(PRODUCTS)], length)
        places = np.sort(chance.choice(length, count, replace=False))
        one, other = np.zeros((SPARSE_SIDE, length), dtype=a.dtype), np.zeros((length, SPARSE_SIDE), dtype=b.dtype)
        one[:, places], other[places] = chance.choice(a, (SPARSE_SIDE, count)), chance.choice(b, (count, SPARSE_SIDE))
        if number % 2:
            one, other = _tied(one, recorded.asked.a, chance), _tied(other, recorded.asked.b, chance)
        if recorded.asked.a.signed:
            one[:, places[-1]] = one[:, places[0]] ^ one.dtype.type(1 << (recorded.asked.a.width - 1))
            other[places[-1]] = other[places[0]]
        yield sample(one, other, number >= FAMILIES // 2)
    yield sample(chance.choice(a, (SIDE, length)), chance.choice(b, (length, SIDE)), True)
