"""A study: which algorithms, on which numbers, against what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["product", "sum", "bias"]
Distribution = str  # one of DISTRIBUTIONS, or the path of a .npy file to draw from
DISTRIBUTIONS = ("normal", "uniform", "triangular")
Measure = Literal["l1", "l2", "linf", "entry-1", "entry-2", "entry-max", "percent", "mean", "deviation", "negative"]
NORMS: tuple[Measure, ...] = ("l1", "l2", "linf")
SIGNED: tuple[Measure, ...] = ("mean", "deviation", "negative")  # measures of a bias
#: the measures that a study of each kind takes where it names none, and those that it may name
MEASURES: dict[Kind, tuple[Measure, ...]] = {"product": NORMS, "sum": ("percent",), "bias": SIGNED}
ALLOWED: dict[Kind, tuple[Measure, ...]] = {**MEASURES, "product": (*NORMS, "entry-1", "entry-2", "entry-max")}
LARGEST = 1 << 26  # of a length
MOST_RANGE = 400  # of exponents: numbers drawn in f64, and their products, stay clear of overflow


@dataclass(frozen=True)
class Series:
    """One curve: a plan (of a sum: a reduction), or (`minus`) the difference between its results and another's; or
    (`bound`) the proved error bound of a plan on the same inputs. `dashed` and `group`: how it is drawn; the series of
    a group share a colour. `identity`: the algorithm with digests of the files that it names; empty: it names none."""

    label: str
    algorithm: str
    minus: str = ""
    dashed: bool = False
    group: str = ""
    bound: bool = False
    identity: str = ""

    @property
    def subject(self) -> str:
        """What is drawn, as in the rows of the table."""
        text = self.identity or self.algorithm + (f" - {self.minus}" if self.minus else "")
        return f"bound of {text}" if self.bound else text


@dataclass(frozen=True)
class Sampled:
    """A distribution that draws from the numbers of a .npy file, each as often as any other. `name`: as the study has
    it; `digest`: of the file."""

    name: Distribution
    path: str
    digest: str


@dataclass(frozen=True)
class Study:
    """Curves of error against size.

    product: C = A * B, `size` is K and, unless `rows` says otherwise, the number of rows and of columns too; errors
    relative to the norms of A and B. sum: of `size` numbers; error in percent of the exact sum. bias: D = C + A * B;
    the deviations of D from the exact result, with their signs: mean, standard deviation, and the percentage of those
    below zero; of a bound the mean, the root of the mean square, and 100.

    `format`: of the numbers; `grid`: a narrower format that has the numbers of A and B; `factor`: multiplies A and B;
    `addend_factor`: multiplies C. `length`: sizes are no lengths, but ranges r of exponents: K is `length`, and each
    number of A and B has a factor of its own from 2^-r to 2^r. `repeats`: draws of each point, whose errors are
    averaged.
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

    @property
    def drawn(self) -> str:
        """What numbers are drawn, in a few words: a table made before they changed is not continued."""
        shape = f", {self.rows} rows" if self.rows else ""
        factor = f", times {self.factor:g}" if self.factor != 1 else ""
        addend = f", addends times {self.addend_factor:g}" if self.addend_factor != 1 else ""
        length = f", K = {self.length}" if self.length else ""
        files = "".join(f", {one.name} {one.digest}" for one in self.sampled)
        return f"{self.repeats} of {self.grid or self.format}{shape}{factor}{addend}{length}{files}"

    @property
    def least_and_most(self) -> tuple[int, int]:
        """What a size can be: a length, or a range of exponents."""
        return (0, MOST_RANGE) if self.length else (1, LARGEST)

    def products(self, size: int) -> int:
        """How many products, or numbers, are added up at a size."""
        return self.length or size
