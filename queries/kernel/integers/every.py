"""Statements about plans with few inputs: every input is evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.kernel.bounds.parts import adds_products_once
from mmaprobe.queries.kernel.equality.plan_units import check_plans
from mmaprobe.queries.kernel.equality.plans import PlansAgree
from mmaprobe.queries.kernel.integers.slices import WithinClassical, WithinSpan
from mmaprobe.queries.kernel.integers.wraps import NeverWraps, added, check_within, residues_of
from mmaprobe.queries.kernel.theorem import Made, RuleError, rule
from mmaprobe.smtmodel.arithmetic.display import finite_value
from mmaprobe.smtmodel.arithmetic.formats import Format, Interval
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.tiles import Matrix, kind_of
from mmaprobe.smtmodel.nodes import Constant, Recombined
from mmaprobe.smtmodel.nodes.known import NOTHING
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.matrices import Job, Patterns
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.stages import Chain

EVERY = 16  # the most bits of a row and a column together for which all rows and columns are evaluated
Wholes = NDArray[np.object_]  # Python's integers
Rows = Sequence[Sequence[Fraction]]
WIDEST = 24  # bits of an integer word; sums of few products are in 64 bits then


@rule
def every_product(left: Plan, right: Plan, length: int) -> Made:
    """Two plans that do not read c agree for one K if their results have the same bits for all rows and columns."""
    check_plans("every_product", left, right)
    if left.addend or right.addend or left.d != right.d:
        raise RuleError("every_product: a plan reads c, or the results have other formats")
    rows, columns = _Side.of(left.a, left.b, length)
    if not np.array_equal(_results(left, rows, columns), _results(right, rows, columns)):
        raise RuleError("every_product: the plans differ")
    return Made(PlansAgree(left, right, 0, length), ())


@rule
def every_sum(plan: Plan, length: int) -> Made:
    """No sum of a plan leaves its range: units of one product add exactly while sums are in range, and so are the sums
    of the first products of all rows and columns, for every number of products. A recombined sum is less than half of
    the product of the moduli for all rows and columns."""
    if length < 1 or plan.scale is not None:
        raise RuleError("every_sum: K is from 1 on, and no unit takes scale factors")
    for count in range(1, length + 1):
        rows, columns = (side.finite() for side in _Side.of(plan.a, plan.b, count))
        job = Job(plan, rows.patterns, np.ascontiguousarray(columns.patterns.T))
        for products in plan.sums:
            _in_range(products, job, plan)
        for node in walk(plan.result):
            if isinstance(node, Recombined):
                one, other = residues_of(plan, node)
                *_, last = _sums(
                    _integers(job.word_matrix(one, Patterns(rows.patterns, plan.a)), one.rounding.format),
                    _integers(job.word_matrix(other, Patterns(columns.patterns.T, plan.b)), other.rounding.format).T,
                )
                half = Fraction(node.whole - 1, 2)
                check_within(last, (-half, half))
    return Made(NeverWraps(plan, length), ())


@rule
def every_error(plan: Plan, length: int, reach: int, near: int, times: Fraction, span: bool) -> Made:
    """A bound compared with the errors for all its rows and columns: for elements of a spread `near` at K = `length`;
    or, with `span`, for largest products of a span `near` at each K up to `length`. Largest magnitudes are from
    2^-reach to 2^reach. The bound is `times` K 2^-precision times the sum of the magnitudes of products."""
    if length < 1 or near < 0 or reach < 0:
        raise RuleError("every_error: K is from 1 on, spreads, spans and reaches from 0 on")
    for count in range(1, length + 1) if span else (length,):
        rows, columns = (side.finite().reaching(reach) for side in _Side.of(plan.a, plan.b, count))
        if not span:
            rows, columns = rows.within(near), columns.within(near)
        if not rows.values or not columns.values:
            continue
        found = Errors.of(rows.values, columns.values, [1] * count, _results(plan, rows, columns), plan.d)
        meant = found.near(near) if span else True
        if np.any(meant & (~found.finite | found.beyond(times * count / (1 << plan.d.precision)))):
            raise RuleError("every_error: an error is beyond the bound")
    kind = WithinSpan if span else WithinClassical
    return Made(kind(plan, length, reach, near, times), ())


@dataclass(frozen=True)
class Errors:
    """Values for all pairs of a row and a column, as exact integers times one common power of two: the product of the
    largest magnitudes, the largest product, the error of each result that is a number, and the sum of magnitudes."""

    largest: Wholes
    product: Wholes
    error: Wholes
    size: Wholes
    finite: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: Rows, columns: Rows, times: Sequence[int], results: Matrix, fmt: Format) -> Errors:
        """The errors for rows and columns of one number of elements, with the k-th product added `times[k]` times."""
        patterns, places = np.unique(results, return_inverse=True)
        values = [finite_value(int(x), fmt) for x in patterns]
        numbers = [Fraction(0) if x is None else x for x in values]
        sides = [max(x.denominator for row in side for x in row) for side in (rows, columns)]
        unit = max(sides[0] * sides[1], *(x.denominator for x in numbers))  # a power of two, as every denominator
        a, b = (np.array([[int(x * y) for x in row] for row in side], dtype=object)
                for side, y in ((rows, sides[0]), (columns, unit // sides[0])))  # fmt: skip
        d = np.array([int(x * unit) for x in numbers], dtype=object)[places.reshape(results.shape)]
        products = np.array([np.multiply.outer(x, y) for x, y in zip(a.T, b.T, strict=True)])
        every, sizes = np.array(times, dtype=object).reshape(-1, 1, 1), abs(products)
        return cls(
            np.multiply.outer(abs(a).max(1), abs(b).max(1)), sizes[np.array(times) > 0].max(0),
            abs(d - (every * products).sum(0)), (every * sizes).sum(0),
            np.array([x is not None for x in values])[places.reshape(results.shape)],
        )  # fmt: skip

    def near(self, span: int) -> NDArray[np.bool_]:
        """For each pair, whether the largest product is at least 2^-span times the product of the largest elements."""
        return np.asarray(self.largest <= self.product * (1 << span), dtype=bool)

    def beyond(self, share: Fraction) -> NDArray[np.bool_]:
        """For each pair, whether the error is more than a share of the sum of magnitudes."""
        return np.asarray(self.error * share.denominator > self.size * share.numerator, dtype=bool)


@dataclass(frozen=True)
class _Side:
    """Rows of A or columns of B: patterns (rows x K), and the numbers, if they are finite."""

    format: Format
    patterns: Matrix
    values: tuple[tuple[Fraction, ...], ...] = ()

    @classmethod
    def of(cls, a: Format, b: Format, length: int) -> tuple[_Side, _Side]:
        """All rows and all columns. Raises RuleError if there are too many."""
        if length < 1 or (a.width + b.width) * length > EVERY:
            raise RuleError(f"inputs of {(a.width + b.width) * length} bits are too many to evaluate each")
        one, other = (
            np.array(list(product(range(1 << fmt.width), repeat=length)), dtype=kind_of(fmt)) for fmt in (a, b)
        )
        return cls(a, one), cls(b, other)

    def finite(self) -> _Side:
        """The rows or columns whose elements are all finite."""
        numbers = [finite_value(pattern, self.format) for pattern in range(1 << self.format.width)]
        rows = [tuple(numbers[int(x)] for x in row) for row in self.patterns]
        values = {k: tuple(x for x in row if x is not None) for k, row in enumerate(rows)}
        return self._chosen({k: row for k, row in values.items() if len(row) == len(rows[k])})

    def reaching(self, reach: int) -> _Side:
        """The rows or columns whose largest magnitude is from 2^-reach to 2^reach."""
        low, high = Fraction(1, 1 << reach), Fraction(1 << reach)
        return self._chosen({k: row for k, row in enumerate(self.values) if low <= max(map(abs, row)) <= high})

    def within(self, spread: int) -> _Side:
        """The rows or columns whose magnitudes differ by a factor of at most 2^spread."""
        return self._chosen({k: row for k, row in enumerate(self.values)
                             if (1 << spread) * min(map(abs, row)) >= max(map(abs, row))})  # fmt: skip

    def _chosen(self, rows: dict[int, tuple[Fraction, ...]]) -> _Side:
        return _Side(self.format, self.patterns[list(rows)], tuple(rows.values()))


def _results(plan: Plan, rows: _Side, columns: _Side) -> Matrix:
    try:
        return simulate(rows.patterns, np.ascontiguousarray(columns.patterns.T), None, plan, engine="numpy")
    except ParameterError as error:
        raise RuleError(f"a plan does not take these products: {error}") from None


def _in_range(products: Products, job: Job, plan: Plan) -> None:
    """Raises RuleError where a sum may leave its range on the way."""
    stage = products.stage
    if products.start != Constant() or type(stage) is not Chain or stage.tail is not None or stage.model.length != 1:
        raise RuleError("every_sum: a sum that is no chain of single products from +0")
    unit, (one, other) = stage.model, plan.read(stage.words)
    left, right = _integers(job.a[one], unit.a), _integers(job.b[other], unit.b).T
    adds_products_once(unit.unit)
    added(unit, {"a": _interval(left), "b": _interval(right)}, NOTHING, 1)
    for interval in _sums(left, right):
        added(unit, {"a": NOTHING, "b": NOTHING}, interval, 1)


def _integers(patterns: Matrix, fmt: Format) -> Matrix:
    """The integers that patterns encode."""
    if not fmt.is_integer or fmt.width > WIDEST:
        raise RuleError(f"every_sum: a word is no integer of at most {WIDEST} bits")
    numbers = patterns.astype(np.int64)
    return numbers - ((numbers >> fmt.width - 1) << fmt.width) if fmt.signed else numbers


def _sums(left: Matrix, right: Matrix) -> Iterator[Interval]:
    """For k = 1 to K: the interval of the sums of the first k products, over all pairs of rows (rows x K) of both
    sides."""
    total = np.zeros((len(left), len(right)), dtype=np.int64)
    for k in range(left.shape[1]):
        total = total + np.outer(left[:, k], right[:, k])
        yield _interval(total)


def _interval(numbers: Matrix) -> Interval:
    """The least interval of the numbers and 0."""
    return min(NOTHING[0], Fraction(int(numbers.min()))), max(NOTHING[1], Fraction(int(numbers.max())))
