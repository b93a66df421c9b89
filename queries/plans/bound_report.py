"""The error bound of a plan (`prove --property error-bound`): a formula for every K that is a multiple of its period,
and for each K asked also a number and an input whose error is near the bound."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from typing import Literal

from mmaprobe.documents.parts import ABSENT
from mmaprobe.documents.prove import (
    Alike,
    LargestBoundAt,
    Measure,
    NearestProduct,
    NumericBound,
    PlanBoundAt,
    PlanErrorBound,
    PlanFormula,
)
from mmaprobe.queries.kernel.bounds.enclosures import Enclosed, weakened
from mmaprobe.queries.kernel.bounds.forms import Form
from mmaprobe.queries.kernel.bounds.largest import OfLargest, of_largest
from mmaprobe.queries.kernel.bounds.wording import premises_of_plan, raised_in, up_float, up_text
from mmaprobe.queries.kernel.integers.blocks import InLargest
from mmaprobe.queries.kernel.questions.steps import MOST_PRODUCTS, PlanAt
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.plans.bound import bound_of_plan
from mmaprobe.queries.plans.bound_samples import SCOUTED, ErrorOfPlan, NearPlan, hold_largest
from mmaprobe.queries.plans.slices import loss_theorem
from mmaprobe.queries.properties.bound import Settle, error_of
from mmaprobe.queries.properties.bound_report import derivation, formula_of, window_of
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.inputs.admitted import ExponentRange, Inputs
from mmaprobe.smtmodel.inputs.vectors import to_hex
from mmaprobe.smtmodel.plans.plan import Plan

SIZES = (1024, 8192, 65536)


@dataclass(frozen=True)
class AtLength:
    """The bound for K = `length`. `number`: its value where no operand's exponent is above the maximum of the window;
    `near`: of the `tried` inputs, the one whose error is nearest to its bound."""

    length: int
    theorem: Theorem
    number: Fraction
    near: NearPlan | None
    tried: int

    @property
    def form(self) -> Form:
        return error_of(self.theorem)


@dataclass
class PlanBound:
    """The bounds of one plan, in a measure (`find_plan_bound`). `any`: the bound for every multiple of the plan's
    period, None if no rule gives it; `sizes`: the bounds for each K asked; `in_largest`, `largest`: the bounds in the
    largest elements, where words share a power of two and no rule gives other bounds; `reason`: why a bound is
    missing."""

    plan: Plan
    window: ExponentRange
    measure: Measure | None = None
    any: Theorem | None = None
    sizes: list[AtLength] = field(default_factory=list)
    reason: str = ""
    seconds: float = 0.0
    premises: list[str] = field(default_factory=list)
    in_largest: list[Theorem] = field(default_factory=list)

    @property
    def largest(self) -> list[InLargest]:
        return [one.goal for one in self.in_largest if isinstance(one.goal, InLargest)]

    @property
    def verdict(self) -> Literal["holds", "unknown"]:
        return "holds" if self.any is not None or self.sizes or self.largest else "unknown"

    @property
    def theorems(self) -> list[Theorem]:
        return [*([] if self.any is None else [self.any]), *(size.theorem for size in self.sizes)]

    @property
    def at(self) -> PlanAt | None:
        """The plan and the lengths that the formula covers; None without a formula."""
        if self.any is None:
            return None
        assert isinstance(self.any.goal, Enclosed | OfLargest)
        assert isinstance(self.any.goal.unit, PlanAt)
        return self.any.goal.unit

    @property
    def growth_text(self) -> str:
        """The value of G in the formula, as text."""
        growth, width = (Fraction(1), 0) if self.at is None else (self.at.growth, self.at.repeats.width)
        times = "t" if width else "n - 1"
        power = times if width else f"({times})"
        more = 1 if self.at is None else self.at.loops
        after = "" if more == 1 else " * (1 + g)^(n - 1)" if more == 2 else f" * (1 + g)^({more - 1} (n - 1))"
        text = times if growth == 1 else f"((1 + g)^{power} - 1) / g{after}, g = {up_text(growth - 1)}"
        return f"{text}, t the least whole number with K <= {width} * 2^t" if width else text


def find_plan_bound(
    plan: Plan, inputs: Inputs, lengths: Sequence[int], settle: Settle,
    progress: Callable[[str], None] = lambda text: None, searched: int = MOST_PRODUCTS,
    late: Callable[[], bool] = lambda: False, measure: Measure | None = None,
) -> PlanBound:  # fmt: skip
    """The bounds of a plan: for every multiple of its period, and for each K of `lengths`, 1 to MOST_PRODUCTS. For K up
    to `searched`, samples are evaluated and compared with the bound, until `late` is true. `measure`: the magnitudes in
    which the bounds are; None: the magnitudes of all elements, or the largest magnitudes where no rule gives a bound in
    all of them. Raises ParameterError if a K is out of range or `inputs` restricts more than exponents, and FaultError
    if an evaluation contradicts a bound."""
    start = time.monotonic()
    window = window_of(inputs)
    if not all(1 <= length <= MOST_PRODUCTS for length in lengths):
        raise ParameterError("length", f"a bound is for 1 to {MOST_PRODUCTS} products")
    bound = PlanBound(plan, window, measure)
    bound.premises = premises_of_plan(plan)
    finder = _Finder(plan, settle, measure)
    try:
        bound.any = finder.shown(finder.fewer(None))
    except RuleError as error:
        bound.reason = str(error)
    try:
        for length in lengths:
            progress(f"the bound for K = {length}")
            bound.sizes.append(finder.at(length, window.max, late if length <= searched else lambda: True))
    except RuleError as error:
        bound.reason = str(error)
        bound.in_largest = list(finder.in_largest(lengths)) if measure != "elements" else []
    if any(error_of(theorem).lifts for theorem in bound.theorems):
        bound.premises.append(raised_in(plan))
    bound.seconds = time.monotonic() - start
    return bound


@dataclass(frozen=True)
class _Finder:
    """Finds the bounds of a plan in a measure."""

    plan: Plan
    settle: Settle
    measure: Measure | None

    def fewer(self, length: int | None) -> Theorem:
        """The bound for K = `length`, or for any K, in the elements and with fewer terms. Raises RuleError."""
        proved = bound_of_plan(self.plan, length, self.settle)
        return weakened(proved, error_of(proved).merged())

    def shown(self, fewer: Theorem) -> Theorem:
        """A bound in the measure. Raises RuleError."""
        return of_largest(fewer) if self.measure == "largest" else fewer

    def at(self, length: int, exponent: int, late: Callable[[], bool]) -> AtLength:
        """The bound for K = `length`, its value where no exponent is above `exponent`, and, unless it is `late`, an
        input that is near the bound. Raises RuleError, and FaultError for an input beyond the bound."""
        fewer, near, tried = self.fewer(length), None, 0
        theorem = self.shown(fewer)
        if not late():
            rows = self.scouted if length > SCOUTED else None
            near, tried = ErrorOfPlan(self.plan, error_of(theorem)).nearest(length, rows, late)
        number = ErrorOfPlan(self.plan, error_of(fewer)).largest(length, exponent)
        return AtLength(length, theorem, number, near, tried)

    @cached_property
    def scouted(self) -> list[int]:
        """The rows that are tried for a longer K."""
        return ErrorOfPlan(self.plan, error_of(self.shown(self.fewer(SCOUTED)))).telling_rows()

    def in_largest(self, lengths: Sequence[int]) -> Iterator[Theorem]:
        """The bounds of slices, residues and blocks, in the largest elements of rows and columns, or of blocks."""
        for length in lengths:
            with suppress(RuleError):
                theorem = loss_theorem(self.plan, length, self.settle)
                assert isinstance(theorem.goal, InLargest)
                hold_largest(self.plan, theorem.goal)
                yield theorem


def document_of_plan(bound: PlanBound, name: str) -> PlanErrorBound:
    """The result as a document. `name`: the plan's name."""
    formula = None
    if bound.any is not None and bound.at is not None:
        repeats = bound.at.repeats
        formula = PlanFormula(
            before=repeats.before,
            multiples=repeats.period,
            width=repeats.width,
            bound=formula_of(bound.any),
            growth=bound.growth_text,
        )
    rules, lemmas = derivation((*bound.theorems, *bound.in_largest))
    return PlanErrorBound(
        plan=name,
        measure="largest" if bound.measure == "largest" or bound.largest else "elements",
        verdict=bound.verdict,
        premises=bound.premises,
        reason=bound.reason or None,
        seconds=bound.seconds,
        formula=formula,
        sizes=[_at_length(bound, size) for size in bound.sizes],
        rules=rules,
        lemmas=lemmas,
        largest=[
            LargestBoundAt(length=goal.length, bound=goal.bound, reach=goal.reach, where=goal.where)
            for goal in bound.largest
        ]
        or ABSENT,
    )


def lengths_text(formula: PlanFormula) -> str:
    """The values of K that a formula covers, as text."""
    before = f"{formula.before} + " if formula.before else ""
    multiples = "n" if formula.multiples == 1 else f"{formula.multiples} n"
    return "any K" if formula.width else f"K = {before}{multiples}"


def whole_text(formula: PlanFormula) -> str:
    """The formula, with the definition of its G."""
    return " where G = ".join(filter(None, (formula.bound, growth_of(formula))))


def growth_of(formula: PlanFormula) -> str:
    """The value of G in a formula; empty where it has no G."""
    return formula.growth if " G" in formula.bound else ""


def _at_length(bound: PlanBound, size: AtLength) -> PlanBoundAt:
    near, plan = size.near, bound.plan
    return PlanBoundAt(
        length=size.length,
        bound=formula_of(size.theorem),
        window=NumericBound(min=bound.window.min, max=bound.window.max, bound=up_float(size.number)),
        tried=size.tried,
        nearest=None
        if near is None
        else NearestProduct(
            ratio=float(near.ratio),
            error=float(near.error),
            bound=up_float(near.bound),
            a=_alike(near.a.tolist(), plan.a),
            b=_alike(near.b.tolist(), plan.b),
        ),
    )


def _alike(patterns: list[int], fmt: Format) -> list[Alike]:
    return [Alike(pattern=to_hex(pattern, fmt), count=len(list(alike))) for pattern, alike in groupby(patterns)]
