"""Inputs of long sums on which the error of a plan is a large share of the sum of magnitudes.

For a claim about every number of products, this search goes beyond the few products that can be searched term by term:
whole matrices go through the plans, their errors are computed in long double, and the claim is evaluated exactly on the
inputs with the largest errors. A side of an input is a block of numbers, repeated, with a larger number where a plan's
sums begin. A side can have any length, so that an input that is bad for one number of products is tried with more
products, and with fewer. Its numbers meet the conditions on every number of a side; other conditions are asked of whole
inputs.
"""

from __future__ import annotations

import ast
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from mmaprobe.hypotheses.claim import Claim
from mmaprobe.queries.claims.samples import fractions, meets, on_each
from mmaprobe.queries.kernel.questions.scene import conditions, decides
from mmaprobe.queries.plans.bound_samples import begins_of
from mmaprobe.queries.search.samples import pattern_of
from mmaprobe.queries.search.witness import Row
from mmaprobe.smtmodel.algorithms.assertion import Assertion
from mmaprobe.smtmodel.algorithms.exact import Fixed
from mmaprobe.smtmodel.algorithms.parts import Part
from mmaprobe.smtmodel.algorithms.reductions import ArrayOperations
from mmaprobe.smtmodel.algorithms.scene import Scene
from mmaprobe.smtmodel.arithmetic.display import finite_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.carriers.algebra import Bits, constant, truth
from mmaprobe.smtmodel.evaluate.numbers import in_f64
from mmaprobe.smtmodel.evaluate.programs import ARRAYS
from mmaprobe.smtmodel.evaluate.tiles import Matrix, kind_of
from mmaprobe.smtmodel.nodes.known import power
from mmaprobe.smtmodel.plans.dot import RESULT, Step
from mmaprobe.smtmodel.plans.gemm import simulate

SCOUTED = (256, 2048)  # numbers of products, about, that are searched before the claim's largest number
ROWS, COLUMNS, ELITE = 48, 8, 10  # sides tried at a time, of A and of B, and pairs of sides that are kept
MEASURED = 3  # inputs of each number of products on which the claim is evaluated exactly
TRIED = 64  # the most inputs of a matrix product that are tested for conditions on whole inputs
#: of a share in long double, what it loses at most for each product; and its part that is left, rounded to f64
ROUNDED, NEARLY = Fraction(4 * float(np.finfo(np.longdouble).eps)), 1 - Fraction(1, 1 << 50)
DRAWN = 1 << 12  # numbers drawn for a side


@dataclass(frozen=True)
class Side:
    """The numbers (patterns) of one side of an input, for any number of products."""

    block: tuple[int, ...]
    large: int | None = None  # the number where sums begin

    def of(self, begins: NDArray[np.bool_]) -> Matrix:
        numbers = np.resize(np.array(self.block, dtype=np.uint64), len(begins))
        return numbers if self.large is None else np.where(begins, np.uint64(self.large), numbers)


@dataclass(frozen=True)
class Long:
    """An input for one number of products. `share`: the error or the difference that the claim compares, as a share of
    the sum of magnitudes, None where the input does not count; `decides`: whether the input decides the claim;
    `no_number`: a part that is read and whose result is no number."""

    row: Row
    share: Fraction | None
    decides: bool
    no_number: str | None = None

    @property
    def terms(self) -> int:
        return len(self.row) // 2


class LongScene(Scene):
    """One input of many products, whose results are known. The pairs of factors that an expression may name come first;
    every other pair follows once. Numbers are exact, without limit of width."""

    def __init__(self, assertion: Assertion, row: Row, results: Mapping[str, int]) -> None:
        shape, self._terms, self._named = assertion.shape, len(row) // 2, assertion.terms
        pairs = list(zip(row[: self._terms], row[self._terms : -1], strict=True))
        first = pairs[: self._named]
        every = [*first, *dict.fromkeys(pairs).keys() - set(first)]
        a, b = ([constant(ARRAYS, pair[side], shape.factors.width) for pair in every] for side in (0, 1))
        super().__init__(shape, a, b, constant(ARRAYS, row[-1], shape.addend.width))
        self._results = results
        values = {pattern: _number(pattern, shape.factors) for pair in every for pattern in pair}
        products = [values[x] * values[y] * times for (x, y), times in Counter(pairs).items()]
        last = _number(row[-1], shape.addend)
        known: dict[str | bool, Fraction | None] = {
            False: sum(products, last), True: sum(map(abs, products), abs(last)),
            **{name: finite_value(pattern, shape.parts[name].result) for name, pattern in results.items()},
        }  # fmt: skip
        numbers = {name: value for name, value in known.items() if value is not None}
        unit = min(1 - value.denominator.bit_length() for value in numbers.values())
        whole = {name: int(value / power(unit)) for name, value in numbers.items()}
        width = max(value.bit_length() for value in whole.values()) + 2
        self._numbers = {name: Fixed(constant(ARRAYS, value, width), unit) for name, value in whole.items()}

    @property
    def terms(self) -> int:
        return self._terms

    @property
    def nameable(self) -> int:
        return self._named

    def steps(self, name: str) -> dict[Step, Bits]:
        """The result as the only step."""
        return {RESULT: constant(ARRAYS, self._results[name], self.shape.parts[name].result.width)}

    def exact(self, magnitudes: bool = False) -> Fixed:
        return self._numbers[magnitudes]

    def share(self, name: str, *other: str) -> Fraction:
        """How far a result is from the exact sum, or from another result, as a share of the sum of magnitudes."""
        one, two, whole = (self._numbers[which].numbers(1)[0] for which in (name, *(other or (False,)), True))
        return abs(one - two) / whole if whole else Fraction(0)

    def value(self, name: str) -> Fixed:
        self.fits[name] = truth(ARRAYS, name in self._numbers)
        return self._numbers.get(name, self._numbers[False])


class Numbers:
    """Numbers of one side that meet the conditions on every number of the side, by how far their exponent lies below
    the largest exponent."""

    def __init__(self, claim: Claim, side: str, rng: np.random.Generator) -> None:
        fmt, self.rng, (low, high) = claim.shape.factors, rng, getattr(claim.shape.window, side)
        exponent = rng.integers(low, high + 1, DRAWN)
        sign = (rng.integers(0, 6, DRAWN) == 0).astype(np.int64)
        drawn = pattern_of(fmt, sign, exponent + fmt.bias, fractions(fmt, rng.integers(0, 1 << 30, DRAWN), rng))
        met = np.flatnonzero(meets(claim, side, drawn))
        self.gaps = [drawn[met[exponent[met] == one]] for one in range(high, low - 1, -1) if one in exponent[met]]

    def __call__(self, gap: int) -> int:
        """A number with this gap, or with the largest gap that any number has; zero if no number meets the
        conditions."""
        return int(self.rng.choice(self.gaps[min(gap, len(self.gaps) - 1)])) if self.gaps else 0


Pair = tuple[int, Side, Side]  # the index of the places where sums begin, and the two sides


class LongSums:
    """Searches inputs of a claim about every number of products. `known`: inputs of fewer products to begin with."""

    def __init__(self, claim: Claim, known: Sequence[Row]) -> None:
        self.claim, self.factors = claim, claim.shape.factors
        about = claim.assertion
        read, *asked = (_parts_named(tree, claim) for tree in (about.predicate, *about.conditions))
        self.read = list(dict.fromkeys(chain(read, *asked)))
        wrong = [name for tree in _calls(about.predicate, "error") for name in _parts_named(tree, claim)]
        self.compared = wrong[:1] or read[:2]  # one result with the exact sum, or two with each other
        self.asked = [tree for tree in claim.assertion.conditions if not any(on_each(tree, side) for side in "ab")]
        self.rng = np.random.default_rng(1)
        self.known = [Side(row[start : start + len(row) // 2]) for row in known for start in (0, len(row) // 2)]
        self.least = Fraction(0)  # a share that some input reaches, also where the search is interrupted
        self.numbers = [Numbers(claim, side, self.rng) for side in "ab"]

    def worst(self, seconds: float) -> Iterator[list[Long]]:
        """For several numbers of products, the last of which is the claim's largest, the worst inputs found; `seconds`:
        about the time for all."""
        least, most = self.claim.terms, self.claim.assertion.most or self.claim.terms
        counts = sorted({max(least, min(one, most) // least * least) for one in (*SCOUTED, most)})
        began, elite = time.monotonic(), list[Pair]()
        for place, count in enumerate(counts):
            until = began + seconds * (place + 1) / len(counts)
            elite = self._searched(count, elite, until)
            yield [self._exactly(count, *pair) for pair in elite[:MEASURED]]

    def simplest(self, long: Long) -> Long:
        """A simpler input that decides like `long`: with all products equal, if such an input decides; then with half
        as many products, and so on, as long as the input decides."""
        best, count, least = long, long.terms, self.claim.terms
        place = count // 2
        alike = self._measured((*(long.row[place],) * count, *(long.row[count + place],) * count, 0))
        if alike.decides:
            best = alike
        while (count := count // 2 // least * least) >= least:
            less = self._measured((*best.row[:count], *best.row[best.terms : best.terms + count], 0))
            if not less.decides:
                break
            best = less
        return best

    def no_number(self, long: Long) -> InputError:
        """The error of a claim that reads a part's result, for an input on which this result is no number."""
        what = f"{long.no_number} gives no number for {long.terms} products, such as"
        first = " and ".join(f"{side} = {long.row[at]:#x}" for side, at in (("a0", 0), ("b0", long.terms)))
        return self.claim.file.error(("claim",), f"{what} {first}; narrow the exponents, or the number of products")

    def _searched(self, count: int, elite: Sequence[Pair], until: float) -> list[Pair]:
        """The worst pairs of sides, for one number of products: at least one round and, while time is left, further
        rounds with changes of the best pairs."""
        begins = self._begins(count)
        ranked: dict[Pair, float] = {}
        fresh: list[tuple[list[Side], list[Side]]] = [
            (list({a: 0 for _, a, _ in elite}), list({b: 0 for _, _, b in elite}))
        ]
        if not elite:
            fresh = [(self.known[0::2], self.known[1::2])]
        while True:
            for given in fresh:
                left = [*given[0], *(self._side(0, elite) for _ in range(ROWS - len(given[0])))]
                right = [*given[1], *(self._side(1, elite) for _ in range(max(0, COLUMNS - len(given[1]))))]
                for place, mask in enumerate(begins):
                    sides = [np.stack([one.of(mask) for one in side]) for side in (left, right)]
                    results = self._results(*sides)
                    for row, column, ratio in self._best(sides, results):
                        ranked[place, left[row], right[column]] = ratio
            elite = sorted(ranked, key=lambda pair: -ranked[pair])[:ELITE]
            ranked = {pair: ranked[pair] for pair in elite}
            finite = [ratio for ratio in ranked.values() if math.isfinite(ratio)]
            self.least = max([self.least, *(Fraction(ratio) * NEARLY - count * ROUNDED for ratio in finite)])
            if time.monotonic() >= until:
                return elite
            fresh = [([], list({b: 0 for _, _, b in elite})[: COLUMNS // 2])]

    def _side(self, which: int, elite: Sequence[Pair]) -> Side:
        """A new side, or a side of the best pairs with another number in it."""
        number, choose = self.numbers[which], self.rng.integers
        if elite and choose(2):
            like = elite[int(choose(len(elite)))][1:][which]
            block = list(like.block)
            block[int(choose(len(block)))] = number(int(choose(8)))
            return Side((block[0],) if not choose(4) else tuple(block), like.large)
        if choose(3):  # all numbers alike but those where sums begin
            return Side((number(int(choose(30))),), number(0) if choose(3) else None)
        return Side(tuple(number(int(choose(3))) for _ in range(1 << choose(1, 6))))

    def _begins(self, count: int) -> list[NDArray[np.bool_]]:
        """The places where the sums of the parts that are read begin, as masks."""
        masks = [mask for name in self.read for mask in begins_of(self.claim.shape.parts[name].plan, count)]
        return list({mask.tobytes(): mask for mask in masks}.values())

    def _results(self, left: Matrix, right: Matrix) -> dict[str, Matrix]:
        """The results of the parts that the claim or a condition reads."""
        parts = self.claim.shape.parts
        return {name: result_of_part(parts[name], self.factors, left, right.T) for name in self.read}

    def _best(self, sides: Sequence[Matrix], results: Mapping[str, Matrix]) -> Iterator[tuple[int, int, float]]:
        """The rows and columns of the inputs with the largest shares, of the inputs that count, each with its share."""
        ratios, found = self._ratios(sides, results), 0
        for at in np.argsort(ratios, axis=None)[::-1][: TRIED if self.asked else ELITE]:
            row, column = divmod(int(at), len(sides[1]))
            if self.asked:
                given = (*sides[0][row].tolist(), *sides[1][column].tolist(), 0)
                one = self._evaluated(given, {name: int(own[row, column]) for name, own in results.items()})
                if one.share is None and one.no_number is None:
                    continue
            yield row, column, float(ratios[row, column])
            if (found := found + 1) == ELITE:
                return

    def _ratios(self, sides: Sequence[Matrix], results: Mapping[str, Matrix]) -> NDArray[np.longdouble]:
        """The errors or differences that the claim compares, as shares of the sums of magnitudes; infinite where a
        result is no number."""
        x, y = (in_f64(side, self.factors).astype(np.longdouble) for side in sides)
        first, *second = (in_f64(results[name], self.claim.shape.parts[name].result).astype(np.longdouble)
                          for name in self.compared)  # fmt: skip
        whole = abs(x) @ abs(y.T)
        with np.errstate(invalid="ignore"):
            error = abs(first - (second[0] if second else x @ y.T))
        share = np.where(whole > 0, error / np.where(whole > 0, whole, 1), 0)
        return np.asarray(np.where(np.isfinite(error), share, np.inf), dtype=np.longdouble)

    def _exactly(self, count: int, place: int, left: Side, right: Side) -> Long:
        begins = self._begins(count)
        mask = begins[min(place, len(begins) - 1)]
        return self._measured((*left.of(mask).tolist(), *right.of(mask).tolist(), 0))

    def _measured(self, row: Row) -> Long:
        """The claim evaluated on an input; c is +0."""
        count = len(row) // 2
        a, b = np.array(row[:count], dtype=np.uint64), np.array(row[count:-1], dtype=np.uint64)
        return self._evaluated(row, {name: int(own.item()) for name, own in self._results(a[None], b[None]).items()})

    def _evaluated(self, row: Row, results: Mapping[str, int]) -> Long:
        assertion, scene = self.claim.assertion, LongScene(self.claim.assertion, row, results)
        asked, truth = conditions(assertion, scene), scene.truth(assertion.predicate)
        if asked.then(truth).at_fault.value:
            return Long(row, None, False, next(name for name, fits in scene.fits.items() if not fits.value))
        if not asked.met.value:
            return Long(row, None, False)
        return Long(row, scene.share(*self.compared), bool(decides(assertion, truth).value))


def _calls(tree: ast.expr, name: str) -> list[ast.Call]:
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == name]


def _parts_named(tree: ast.expr, claim: Claim) -> list[str]:
    return [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in claim.shape.parts]


def result_of_part(part: Part, given: Format, a: Matrix, b: Matrix, c: Matrix | None = None) -> Matrix:
    """The patterns of a part's results for A and B (patterns in the format `given`) and C."""
    source, operations = part.source, ArrayOperations()

    def read(side: Matrix) -> Matrix:
        every, places = np.unique(side, return_inverse=True)
        return operations.converted(given, source, every).astype(kind_of(source))[places].reshape(side.shape)

    return simulate(read(a), read(b), c, part.plan)


def _number(pattern: int, fmt: Format) -> Fraction:
    value = finite_value(pattern, fmt)
    assert value is not None
    return value
