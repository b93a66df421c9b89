"""Whether sums of products of integers leave the range of their accumulator, or the range in which its format has all
integers: excluded by a rule of the kernel, or shown by evaluating K copies of one element of A and one of B."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod

import numpy as np

from mmaprobe.hypotheses.unit_claims import WrapClaim
from mmaprobe.queries.claims.outcome import Contradiction, CountOutcome, SearchStep
from mmaprobe.queries.kernel.integers.every import every_sum
from mmaprobe.queries.kernel.integers.wraps import never_wraps, numbers_within, promoted, residues_of
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.settling import result_or_none
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format, Interval
from mmaprobe.smtmodel.evaluate.tiles import Matrix, kind_of
from mmaprobe.smtmodel.inputs.vectors import to_hex
from mmaprobe.smtmodel.nodes import Constant, Recombined, Round
from mmaprobe.smtmodel.nodes.known import NOTHING
from mmaprobe.smtmodel.nodes.node import of_kind
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.matrices import Job, Patterns
from mmaprobe.smtmodel.plans.plan import Products
from mmaprobe.smtmodel.plans.stages import Chain, Stage, Then

F64 = FORMATS["f64"]
Pair = tuple[int, int]  # patterns of an element of A and of one of B


@dataclass(frozen=True)
class Wrapped:
    """A sum of K copies of one product, an element of A times an element of B: the exact sum differs from the plan's
    result."""

    count: int
    a: str
    b: str
    exact: int
    result: int

    def __str__(self) -> str:
        return f"{self.count} times {self.a} * {self.b}, words of which add up to {self.exact}, give {self.result}"


class WrapOutcome(CountOutcome[WrapClaim]):
    """The outcome of a claim about sums that wrap."""

    def contradiction(self, late: bool) -> Contradiction | None:
        """A sum of the claim's count of products that leaves its range, or of one product less if the claim says that
        this count is the smallest that wraps."""
        wrap = wrapping(self.claim, self.claim.proved) if self.claim.proved else None
        return None if wrap is None else (str(wrap), "a sum that wraps")


def verify_wraps(claim: WrapClaim, options: Options) -> WrapOutcome:
    """Decide a claim. Raises ParameterError for a plan that cannot be evaluated."""
    outcome = WrapOutcome(claim)
    none = f"no sum of up to {claim.proved} products {'wraps' if claim.plan.adds_integers else 'is rounded'}"
    try:
        outcome.theorem = never_wraps(claim.plan, claim.proved, claim.most_a, claim.most_b)
        outcome.asked.append(SearchStep(f"{none}, by intervals"))
    except RuleError as error:
        outcome.asked.append(SearchStep(str(error)))
        if claim.proved and claim.most_a is None and claim.most_b is None:
            with suppress(RuleError):
                outcome.theorem = every_sum(claim.plan, claim.proved)
                outcome.asked.append(SearchStep(f"{none}, each evaluated"))
    for count in dict.fromkeys((claim.count, claim.proved)):
        if count and not (count == claim.proved and outcome.theorem is not None):
            wrap = wrapping(claim, count)
            outcome.exceeds[count] = wrap is not None
            outcome.asked.append(SearchStep(f"no copies of numbers tried wrap: {count}" if wrap is None else str(wrap)))
    return outcome


def wrapping(claim: WrapClaim, count: int) -> Wrapped | None:
    """Copies of two elements whose sum of `count` products is not exact in one of the plan's sums; None if every sum
    that was tried is exact."""
    for products in claim.plan.sums:
        chains, plan = _chains(products.stage), _alone(claim.plan, products)
        if not chains:
            continue
        pairs = product(_elements(plan.a, claim.most_a), _elements(plan.b, claim.most_b))
        ones = {pair: _product_of(plan, chains, *pair) for pair in pairs}
        if wrap := _first(plan, ones, count, plan.d.integers or NOTHING, int):
            return wrap
    every = (_recombined(claim, node, count) for node in of_kind(claim.plan.result, Recombined))
    return next(filter(None, every), None)


def _recombined(claim: WrapClaim, node: Recombined, count: int) -> Wrapped | None:
    """Copies of two elements whose sum is beyond the range of the moduli from which it is recombined: the result in f64
    is not the sum of the products of the integers whose residues the units read."""
    plan = claim.plan.with_result(Round(node, Rounding(F64)))
    if (words := result_or_none(residues_of, plan, node)) is None:
        return None
    ones: dict[Pair, int] = {}
    for pair in product(_elements(plan.a, claim.most_a), _elements(plan.b, claim.most_b)):
        given = [_copies(fmt, pattern, 1) for fmt, pattern in zip((plan.a, plan.b), pair, strict=True)]
        job = Job(plan, given[0], given[1])
        numbers = [exact_value(int(job.word_matrix(word, Patterns(own, fmt))[0, 0]), word.rounding.format)
                   for word, own, fmt in zip(words, given, (plan.a, plan.b), strict=True)]  # fmt: skip
        ones[pair] = int(prod(x for x in numbers if isinstance(x, Fraction)))
    most = Fraction((node.whole - 1) // 2)
    return _first(plan, ones, count, (-most, most), lambda exact: int(float(exact)))


def _first(
    plan: Plan, ones: Mapping[Pair, int], count: int, held: Interval, rounded: Callable[[int], int]
) -> Wrapped | None:
    """The first pair of elements, the largest product first, of which `count` copies have an exact sum beyond `held`
    and a result other than this sum rounded; `ones`: the product of each pair."""
    for pair in sorted(ones, key=lambda pair: -abs(ones[pair])):
        exact = count * ones[pair]
        if not held[0] <= exact <= held[1] and (result := _of_copies(plan, *pair, count)) != rounded(exact):
            left, right = (to_hex(x, fmt) for x, fmt in zip(pair, (plan.a, plan.b), strict=True))
            return Wrapped(count, left, right, exact, result)
    return None


def _chains(stage: Stage) -> list[Chain]:
    """The chains by which a stage takes all products, each chain as often as the stage has it; no chains for other
    stages."""
    if isinstance(stage, Then):
        return [chain for body in stage.bodies for chain in _chains(body)]
    if (runs := promoted(stage)) is not None:
        return _chains(runs[0])
    return [stage] if isinstance(stage, Chain) and stage.tail is None else []


def _alone(plan: Plan, products: Products) -> Plan:
    """The plan whose result is one of the sums of another plan, begun at +0 and not changed further."""
    result = Products(products.stage, Constant())
    return Plan(plan.a, plan.b, products.stage.accumulator, result, plan.convert_a, plan.convert_b)


def _product_of(plan: Plan, chains: Sequence[Chain], a: int, b: int) -> int:
    """What one product of two elements adds to the sum, exactly: the sum of the products of the words that units
    read."""
    job, total = Job(plan, _copies(plan.a, a, 1), _copies(plan.b, b, 1)), Fraction(0)
    for chain in chains:
        one, other = plan.read(chain.words)
        left, right = (exact_value(int(x[0, 0]), fmt) for x, fmt in
                       ((job.a[one], chain.model.a), (job.b[other], chain.model.b)))  # fmt: skip
        total += left * right if isinstance(left, Fraction) and isinstance(right, Fraction) else 0
    return int(total) if total.denominator == 1 else 0


def _of_copies(plan: Plan, a: int, b: int, count: int) -> int:
    """The plan's sum of `count` copies of a * b."""
    row, column = _copies(plan.a, a, count), _copies(plan.b, b, count).T
    value = exact_value(int(simulate(row, np.ascontiguousarray(column), None, plan)[0, 0]), plan.d)
    return int(value) if isinstance(value, Fraction) else 0


def _copies(fmt: Format, pattern: int, count: int) -> Matrix:
    return np.full((1, count), pattern, dtype=kind_of(fmt))


def _elements(fmt: Format, most: int | None) -> Iterator[int]:
    """Patterns of the elements that are tried. Of an integer format: the extreme integers up to a magnitude. Of other
    formats: 1, a number below 2, or below 1, whose digits are ones alone, and the negatives of both."""
    if fmt.is_integer:
        low, high = map(int, numbers_within(fmt, most))
        yield from (high, low % (1 << fmt.width))
    elif most is None or most >= 1:
        ones = fmt.one - 1 if most == 1 else fmt.one | (1 << fmt.fraction + fmt.padding) - (1 << fmt.padding)
        yield from (sign | one for sign in (0, fmt.sign_bit) for one in (fmt.one, ones))
