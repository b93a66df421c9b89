"""The computation of a study: random numbers for every point, the results of the algorithms, and measures of error."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.kernel.bounds.forms import EXACT, Form
from mmaprobe.queries.kernel.integers.blocks import InLargest
from mmaprobe.queries.plans.bound import bound_of_plan
from mmaprobe.queries.plans.bound_samples import exact_result
from mmaprobe.queries.plans.slices import bound_in_largest, loss_theorem
from mmaprobe.queries.properties.bound import error_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.solvers.pool import Pool
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.smtmodel.algorithms import parse_reduction, sum_of_array
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, format_named
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.numbers import from_numbers, in_f64
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.tables.reference import parse_plan_path
from mmaprobe.studies.exact import (
    exact_product,
    measures_of_bound,
    percent_error,
    relative_error,
    signed_measures,
    size_of,
)
from mmaprobe.studies.study import Distribution, Kind, Sampled, Series, Study
from mmaprobe.studies.table import Point, Table

Floats = NDArray[np.float64]
Report = Callable[[int, int, Point], None]
F32_MAX = float(np.finfo(np.float32).max)  # the largest magnitude in a file of numbers
LARGEST_DRAWN = {"f32": F32_MAX, "f64": 2.0**490}  # by format, the largest magnitude for which sums of products are f64
#: the random numbers of each distribution: mean 0 and variance 1; between 0 and 1; the mean of two numbers of the
#: second kind, minus 1/2
DRAWN: dict[Distribution, Callable[[np.random.Generator, tuple[int, ...]], Floats]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "uniform": lambda rng, shape: rng.random(shape),
    "triangular": lambda rng, shape: rng.random((2, *shape)).mean(axis=0) - 0.5,
}


@lru_cache(maxsize=8)
def numbers_of(source: Sampled) -> Floats:
    """The numbers of a .npy file as a vector of f64. Raises OSError, and ValueError for a file without numbers, and
    for numbers that are not finite or lie beyond the range of f32."""
    with open(source.path, "rb") as stream:
        numbers: NDArray[Any] = np.load(stream, allow_pickle=False).ravel()
    if (
        not numbers.size
        or numbers.dtype.kind not in "fiub"
        or not (np.abs(numbers.astype(np.float64)) <= F32_MAX).all()
    ):
        raise ValueError(f"finite numbers within +-{F32_MAX:.3g} are needed, and not {numbers.size} of {numbers.dtype}")
    return numbers.astype(np.float64)


@dataclass(frozen=True)
class Draw:
    """The random numbers of one point."""

    distribution: Distribution
    size: int
    seed: int
    repeat: int = 0

    def numbers(self, shape: tuple[int, ...], side: str, study: Study) -> Floats:
        """Numbers of the distribution, rounded to the study's format. The same draw, shape and side give the same
        numbers. For the side "c" (the addend), the numbers are multiplied by `study.addend_factor`. For any other side,
        the numbers are multiplied by `study.factor` and, if sizes are ranges of exponents, by random powers of two;
        then they are rounded to the study's grid, if there is one. Raises ParameterError for numbers beyond
        LARGEST_DRAWN."""
        words = (self.distribution, side)
        key = [self.seed, self.size, self.repeat, *(zlib.crc32(word.encode()) for word in words), *shape]
        rng = np.random.default_rng(key)
        source = next((one for one in study.sampled if one.name == self.distribution), None)
        drawn = DRAWN[self.distribution](rng, shape) if source is None else rng.choice(numbers_of(source), shape)
        if side == "c":
            drawn = drawn * study.addend_factor
        else:
            drawn = drawn * study.factor
            drawn = np.ldexp(drawn, rng.integers(-self.size, self.size + 1, shape)) if study.length else drawn
            drawn = rounded(drawn, study.grid) if study.grid else drawn
        if not (np.abs(drawn) <= (largest := LARGEST_DRAWN[study.format])).all():
            numbers = f"numbers of {study.grid or study.format} within +-{largest:.3g}"
            raise ParameterError("sizes", f"at {self.size} not all that is drawn are {numbers}")
        return drawn.astype(np.float32).astype(np.float64) if study.format == "f32" else drawn


def rounded(numbers: Floats, name: str) -> Floats:
    """The nearest numbers in the format of this name."""
    fmt = format_named(name)
    return in_f64(from_numbers(numbers, fmt, "nearest_even"), fmt)


class Product:
    """D = A * B of one draw: the inputs, the exact result, and the results of algorithms. Results are computed when a
    caller asks for them, and then kept."""

    def __init__(self, study: Study, draw: Draw) -> None:
        length = study.products(draw.size)
        rows = study.rows or length
        self.a = draw.numbers((rows, length), "a", study)
        self.b = draw.numbers((length, rows), "b", study)
        self.addend = np.zeros((rows, rows))
        self.exact: tuple[Floats, Floats] | None = None
        self.sizes: dict[str, float] = {}
        self.results: dict[str, Floats] = {}

    def result(self, text: str) -> Floats:
        """The result of a plan (`text`: the plan's reference) in f64. The inputs are rounded to nearest even in the
        plan's formats."""
        if text not in self.results:
            plan = parse_plan_path(text)
            a, b = from_numbers(self.a, plan.a, "nearest_even"), from_numbers(self.b, plan.b, "nearest_even")
            results = simulate(a, b, from_numbers(self.addend, plan.c, "nearest_even"), plan).astype(kind_of(plan.d))
            self.results[text] = in_f64(results, plan.d)
        return self.results[text]

    def error(self, series: Series) -> Floats:
        """For each element, the signed deviation of a series' result from the exact result. For a series with `minus`,
        the difference of two results; for a bound, the bound on the deviation's magnitude."""
        with np.errstate(invalid="ignore", over="ignore"):
            if series.bound:
                return bound_of_elements(series.algorithm, self.a, self.b, self.addend)
            if series.minus:
                return self.result(series.algorithm) - self.result(series.minus)
            if self.exact is None:
                self.exact = exact_product(self.a, self.b)
            return ((self.result(series.algorithm) - self.exact[0]) - self.exact[1]) - self.addend

    def measure(self, series: Series, measures: Sequence[str]) -> tuple[float, ...]:
        error = self.error(series)
        for name in measures:
            if name not in self.sizes:
                self.sizes[name] = size_of(self.a, name) * size_of(self.b, name)
        return tuple(relative_error(error, self.sizes[name], name) for name in measures)


def bound_of_elements(reference: str, a: Floats, b: Floats, c: Floats) -> Floats:
    """The proved bound on the error of each element of C + A * B, for a plan whose bound is a formula in magnitudes of
    products, or in the largest magnitudes of rows and columns. Raises ParameterError for a bound of another form, and
    for elements that `check_bounded` refuses."""
    check_bounded(reference, a, b, c)
    plan = parse_plan_path(reference)
    if plan.gathered:
        return bound_in_largest(_goal_of(plan, a.shape[1]), a, b)
    total = np.zeros_like(c)
    for atom, value in _bound_of(plan, a.shape[1]).parts.items():
        (item,) = atom
        inputs = {"a": a, "b": b, "c": c}
        sizes = {f.name: _magnitudes(inputs[f.name], f.raised, 2.0 ** plan.least_normal(f.name)) for f in item
                 if f.name != EXACT}  # fmt: skip
        if len(sizes) < len(item):  # the factor |exact result| is at most the exact result of the inputs' magnitudes
            of_sum, of_c = (float(exact_result(plan, x, 1 - x, magnitudes=True)) for x in (Fraction(1), Fraction(0)))
            total += float(value) * (of_sum * (np.abs(a) @ np.abs(b)) + of_c * np.abs(c))
        elif set(sizes) <= {"c"}:
            total += float(value) * sizes.get("c", 1.0)
        elif "c" not in sizes:  # a sum over k of products, or of a alone or b alone
            total += float(value) * (sizes.get("a", np.ones_like(a)) @ sizes.get("b", np.ones_like(b)))
        else:
            raise ParameterError("bound", f"{reference} has a bound in more than products")
    return total


def check_bounded(reference: str, a: Floats, b: Floats, c: Floats, bounds: Iterable[str] = ()) -> None:
    """Raises ParameterError for elements that are not numbers of the plan's formats, because the bound does not include
    the rounding of inputs, and for a C other than 0 of a plan of slices or blocks. `bounds`: the plans of all bounds of
    the study, for each of which the advice in the message is right."""
    plan = parse_plan_path(reference)
    formats = {"a": plan.a, "b": plan.b, "c": plan.c}
    for (name, fmt), numbers in zip(formats.items(), (a, b, c), strict=True):
        if not np.array_equal(rounded(numbers, fmt.name), numbers):
            drawn = f"{reference} takes {name} in {fmt.name}, of which the numbers drawn are none"
            plans = [plan, *map(parse_plan_path, bounds)]
            raise ParameterError("bound", f"{drawn}: {_advice(plans) if name != 'c' else _advice_for_c(plans)}")
    if plan.gathered and c.any():
        raise ParameterError("bound", f"{plan.reference} has a bound for c = 0")


def _advice(plans: Sequence[Plan]) -> str:
    """The widest grid of which all numbers are numbers of A and of B in these plans."""
    formats = list(dict.fromkeys(fmt for plan in plans for fmt in (plan.a, plan.b)))
    within = [grid for grid in FORMATS.values() if all(fmt.holds(grid) for fmt in formats)]
    if not within:
        return f"no `grid` is within {' and '.join(fmt.name for fmt in formats)}"
    widest = max(within, key=lambda grid: (grid.signed, grid.largest_field))
    return f"a study with this bound has `grid: {widest.name}`"


def _advice_for_c(plans: Sequence[Plan]) -> str:
    """The key for addends, which are not rounded to the grid."""
    held = all(plan.c.holds(FORMATS["f32"]) for plan in plans)
    return f"a study with this bound has `{'format: f32' if held else 'addend_factor: 0'}`"


@lru_cache
def _goal_of(plan: Plan, length: int) -> InLargest:
    goal = loss_theorem(plan, length, Settled(Options())).goal
    assert isinstance(goal, InLargest)
    return goal


@lru_cache
def _bound_of(plan: Plan, length: int) -> Form:
    """The proved bound of a plan for K = `length`; its lemmas about the datapath are settled."""
    return error_of(bound_of_plan(plan, length, Settled(Options()))).merged()


def _magnitudes(numbers: Floats, raised: bool, least: float) -> Floats:
    sizes = np.abs(numbers)
    return np.where(sizes > 0, np.maximum(sizes, least), 0.0) if raised else sizes


class Bias(Product):
    """D = C + A * B of one draw, measured by the signed deviations from the exact result."""

    def __init__(self, study: Study, draw: Draw) -> None:
        super().__init__(study, draw)
        self.addend = draw.numbers(self.addend.shape, "c", study)

    def measure(self, series: Series, measures: Sequence[str]) -> tuple[float, ...]:
        measured = measures_of_bound if series.bound else signed_measures
        values = measured(self.error(series))
        return tuple(values[name] for name in measures)


class Sum:
    """The sum of the numbers of one draw."""

    def __init__(self, study: Study, draw: Draw) -> None:
        self.numbers = draw.numbers((draw.size,), "x", study)
        self.exact = math.fsum(self.numbers)  # the exact sum, rounded once to f64

    def measure(self, series: Series, measures: Sequence[str]) -> tuple[float, ...]:
        algorithm = parse_reduction(series.algorithm)
        pattern = sum_of_array(algorithm, self.numbers.astype(np.float32).view(np.uint32))
        result = float(in_f64(np.array([pattern], kind_of(algorithm.result_format)), algorithm.result_format)[0])
        return (percent_error(result, self.exact),)


def points(study: Study, sizes: Sequence[int], seed: int) -> Iterator[tuple[Point, Series]]:
    """Every point of a study and its series, in the order of the table."""
    for size in sizes:
        for distribution in study.distributions:
            for series in study.series:
                drawn = study.drawn(distribution)
                yield Point(study.id, seed, distribution, drawn, size, series.label, series.subject), series


#: the products or sums of the latest draws, which all series of a point's size and distribution measure
_drawn: dict[tuple[Study, Draw], Product | Sum] = {}
SUBJECTS: dict[Kind, type[Product] | type[Sum]] = {"product": Product, "bias": Bias, "sum": Sum}


def _subject(study: Study, draw: Draw) -> Product | Sum:
    subject = _drawn.get((study, draw))
    if subject is None:
        for key in list(_drawn):
            if key[0] != study or replace(key[1], repeat=draw.repeat) != draw:
                _drawn.pop(key, None)  # another thread may have been here
        subject = _drawn[study, draw] = SUBJECTS[study.kind](study, draw)
    return subject


def values_of(study: Study, series: Series, point: Point) -> tuple[float, ...]:
    """The errors of one point in the order of the study's measures, each averaged over the point's draws."""
    draws = [Draw(point.distribution, point.size, point.seed, repeat) for repeat in range(study.repeats)]
    rows = [_subject(study, draw).measure(series, study.measures) for draw in draws]
    return tuple(float(np.mean(column)) for column in zip(*rows, strict=True))


def run(study: Study, sizes: Sequence[int], seed: int, table: Table, report: Report, pool: Pool | None = None) -> int:
    """Measure every point that the table lacks, and call `report(done, total, point)` before each. Returns the number
    of points measured. Raises ParameterError for impossible sizes and seeds.

    Each point is one task of the `pool` (None: this process measures the points one after another). A point enters the
    table as soon as it is measured; at the end, the new points are moved into the order of `points`.
    """
    least, most = study.least_and_most
    if not sizes or min(sizes) < least or max(sizes) > most:
        raise ParameterError("sizes", f"whole numbers from {least} to {most} are needed")
    if seed < 0:
        raise ParameterError("seed", f"{seed} is negative")
    todo = list(points(study, sizes, seed))
    new = [(done, point, series) for done, (point, series) in enumerate(todo) if table.find(point) is None]
    pool = pool or Pool(1)
    for distribution, series in dict.fromkeys((point.distribution, series) for _, point, series in new if series.bound):
        drawn = SUBJECTS[study.kind](study, Draw(distribution, min(sizes), seed))
        if isinstance(drawn, Product):  # before anything is measured, which takes long
            bounds = (one.algorithm for one in study.series if one.bound)
            check_bounded(series.algorithm, drawn.a, drawn.b, drawn.addend, bounds)

    def measure(task: tuple[int, Point, Series]) -> None:
        done, point, series = task
        report(done, len(todo), point)
        table.add(point, pool.run(values_of, study, series, point))

    try:
        pool.gather(measure, new, lambda task, result: result())
    finally:
        _drawn.clear()
    table.put_last([point for _, point, _ in new])
    return len(new)
