"""A study: algorithms, the distributions of their inputs, and the measures of their errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["product", "sum", "bias"]
Distribution = str  # one of DISTRIBUTIONS, or the path of a .npy file to draw from
DISTRIBUTIONS = ("normal", "uniform", "triangular")
Measure = Literal["l1", "l2", "linf", "entry-1", "entry-2", "entry-max", "percent", "mean", "deviation", "negative"]
NORMS: tuple[Measure, ...] = ("l1", "l2", "linf")
SIGNED: tuple[Measure, ...] = ("mean", "deviation", "negative")  # measures of a bias
#: kind of study -> its default measures, and the measures that it may name
MEASURES: dict[Kind, tuple[Measure, ...]] = {"product": NORMS, "sum": ("percent",), "bias": SIGNED}
ALLOWED: dict[Kind, tuple[Measure, ...]] = {**MEASURES, "product": (*NORMS, "entry-1", "entry-2", "entry-max")}
LARGEST = 1 << 26  # the largest number of products or of added numbers
MOST_RANGE = 400  # the largest range of exponents, for which products of f64 numbers do not overflow


@dataclass(frozen=True)
class Series:
    """One curve: the errors of an algorithm (a plan; in a study of kind "sum", a reduction). With `minus` (another
    plan), the differences between the results of the two plans; with `bound`, the proved error bound of the plan on the
    same inputs. `dashed`: the style of the line. `group`: the series of a group share a colour. `identity`: the
    algorithm with digests of the files that it names; empty if it names no file."""

    label: str
    algorithm: str
    minus: str = ""
    dashed: bool = False
    group: str = ""
    bound: bool = False
    identity: str = ""

    @property
    def subject(self) -> str:
        """The description of the algorithm in the rows of the table."""
        text = self.identity or self.algorithm + (f" - {self.minus}" if self.minus else "")
        return f"bound of {text}" if self.bound else text


@dataclass(frozen=True)
class Sampled:
    """A distribution that draws the numbers of a .npy file with equal probabilities. `name`: the distribution's name in
    the study. `digest`: the first 12 hexadecimal digits of the file's SHA-256 digest."""

    name: Distribution
    path: str
    digest: str


@dataclass(frozen=True)
class Study:
    """Curves of errors over sizes.

    Kind "product": D = A * B, where a size is K and the number of rows and of columns (or `rows`); errors are relative
    to the norms of A and B. Kind "sum": the sum of `size` numbers; errors are percentages of the exact sum. Kind
    "bias": D = C + A * B; the measures are the mean and standard deviation of D's signed deviations from the exact
    result, and the percentage of deviations below zero (of a bound: the mean, the root of the mean square, and 100).

    `format`: the format of the numbers. `grid`: a narrower format to which the numbers of A and B are rounded.
    `factor`, `addend_factor`: the constants by which A and B, and C, are multiplied. `length`: if not None, K is
    `length` and a size r is a range of exponents: each number of A and B is multiplied by a random power of two from
    2^-r to 2^r. `repeats`: the number of draws of each point, over which errors are averaged.
    """

    id: str
    about: str
    kind: Kind
    format: str
    sizes: tuple[int, ...]
    series: tuple[Series, ...]
    distributions: tuple[Distribution, ...] = ("normal", "uniform")
    rows: int | None = None
    grid: str = ""
    factor: float = 1
    addend_factor: float = 1
    length: int | None = None
    repeats: int = 1
    measures: tuple[Measure, ...] = NORMS
    axis: str = "n"
    sampled: tuple[Sampled, ...] = ()

    def drawn(self, distribution: Distribution) -> str:
        """The description of the numbers drawn of a distribution, in the rows of the table. A run continues only rows
        with the same description."""
        shape = f", {self.rows} rows" if self.rows else ""
        factor = f", times {self.factor:g}" if self.factor != 1 else ""
        addend = f", addends times {self.addend_factor:g}" if self.addend_factor != 1 else ""
        length = f", K = {self.length}" if self.length else ""
        files = "".join(f", {one.name} {one.digest}" for one in self.sampled if one.name == distribution)
        return f"{self.repeats} of {self.grid or self.format}{shape}{factor}{addend}{length}{files}"

    @property
    def least_and_most(self) -> tuple[int, int]:
        """The least and the largest size: of a length, or of a range of exponents."""
        return (0, MOST_RANGE) if self.length else (1, LARGEST)

    def products(self, size: int) -> int:
        """The number of products (in a study of kind "sum": of numbers) that are added at a size."""
        return self.length or size
