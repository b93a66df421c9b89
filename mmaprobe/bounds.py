"""Proved bounds of the distance between a unit's result and the exact sum."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mmaprobe.arrays import numbers_of
from mmaprobe.documents.prove import Measure
from mmaprobe.named import flag_of, gives_plan, model_of, plan_of, restrictions_of, whole_of
from mmaprobe.products import Plans, Units
from mmaprobe.questions import Case, Verdicts, case_of, options_of

if TYPE_CHECKING:
    from mmaprobe.documents.prove import ErrorBound, PlanErrorBound
    from mmaprobe.queries.conjectures.conjecture import Decided
    from mmaprobe.queries.plans.bound_report import PlanBound
    from mmaprobe.queries.properties.bound_report import BoundResult


@dataclass(frozen=True, repr=False)
class Bound(Verdicts):
    """A bound of |d - exact|, where `exact` is the same sum without rounding.

    `verdict`: holds, refuted (a sum wraps on the input `nearest`, and the bound in `document.nearest` is the sum of all
    magnitudes), or unknown (`document.reason`). `formula`: the bound in terms of the inputs' magnitudes (for a plan: at
    the length asked), or None. `every`: the formula for every length that a chain or a plan takes without a tail, or
    None. `where`: the conditions under which both hold. `largest`: the largest value of the formula where no input's
    exponent is above `exponent`, rounded up. `nearest`: the input tried whose error is nearest to its bound, with `a`
    and `b` of K elements, and the result. `document`: the output of `mmaprobe prove --property error-bound --json`, as
    a value whose attributes are its keys, with each coefficient of a unit's bound as a fraction. `proved`: the bound
    that `at` evaluates.
    """

    document: ErrorBound | PlanErrorBound = field(repr=False)
    formula: str | None
    every: str | None
    where: str
    exponent: int
    largest: float | None
    nearest: Case | None
    proved: BoundResult | PlanBound = field(repr=False, compare=False)

    @property
    def latex(self) -> str | None:
        """The formula, or the formula for every length, for display mathematics."""
        from mmaprobe.reports.latex import latex_of

        formula = self.formula or self.every
        return None if formula is None else latex_of(formula)

    def _lines(self) -> list[str]:
        from mmaprobe.documents.prove import below_text

        statement = self.formula or self.every or str(getattr(self.document, "reason", "") or "")
        below = f"where inputs are below {below_text(self.exponent)}"
        largest = [] if self.largest is None else [f"at most {self.largest:.5g} {below}"]
        return [f"{self.verdict}: {statement}", "; ".join([*largest, f"where {self.where}"] if self.where else largest)]

    def at(
        self, a: Any, b: Any, c: Any = None, *, convert: str | None = None, measure: Measure | None = None
    ) -> Any:  # fmt: skip
        """The bound as a number, for given inputs.

        Shapes: as for `dot`, `a` and `b` of K elements and `c` one number, which gives one number; or as for `matmul`,
        `a` M x K, `b` K x N and `c` M x N (or a bias, a column, or one number), which gives M x N. K is the bound's
        `length`.

        Units: float64, rounded up; `convert` as for `matmul`. For up to 16,384 products M x K x N the bound is computed
        in exact fractions; for more, by products of matrices in f64, whose own errors are added. The bound holds under
        the conditions of `where`. A RuntimeWarning says where the magnitudes of the products and of c add up to more
        than a quarter of the largest number of a result, so that a rounding may overflow.

        `measure`: "elements", in the magnitudes |a_k| and |b_k| themselves; "largest", in the largest magnitude of a
        row of A and of a column of B in place of all of them. For a plan whose elements share a power of two, as in
        Ozaki's schemes, or a scale factor, only the bound in "largest" is known, and None means "largest"; for others
        None means "elements". For block formats the largest magnitudes are those of each block.

        Raises MmaprobeError: an unknown bound, the bound of a plan without a length, a measure in which no bound is
        known, a unit with scale factors, another K, an infinity or a NaN, a subnormal number that the unit reads as
        zero; otherwise as `matmul` does.

        Source: the bound as it was proved, before terms were merged for its formula.
        """
        from mmaprobe.bound_values import value_of

        return value_of(self.proved, a, b, c, convert, measure)


def bound(
    unit: Units | Plans,
    *,
    length: int | None = None,
    inputs: str = "",
    confirm: bool = True,
    timeout: float = 300.0,
    solver: str = "auto",
) -> Bound:
    """How far a result can be from the exact sum: a proved bound, as a formula and as a number.

    Shapes: of the nearest input, `a` and `b` have one element for each product.

    Units: `unit` is a unit or a plan (plan:NAME, or a result of `mmaprobe.plan`). `length` is K: the products of a
    chain of instructions, each result the next instruction's addend, or the products of a plan. Without a length the
    bound is of one instruction; a plan then has only the formula for every K. `inputs`: exponents=LOW..HIGH, of which
    HIGH (0 if it is not given) is the largest exponent in the number `largest`; the formula is for all finite inputs.
    `confirm`: True or False, whether a second solver confirms every lemma; `timeout` in seconds for all lemmas;
    `solver` as for `distinguish`.

    Raises MmaprobeError: an unknown name, a length that the chain does not take, other restrictions; its subclass
    FaultError if an evaluated input is beyond the bound.

    Source: composed by rules, node by node, and compared with inputs in exact rationals (docs/prove.md, docs/plans.md);
    certificates are written by `mmaprobe prove`.
    """
    from mmaprobe.queries.conjectures.bounds import BoundOfModel, BoundOfPlan

    options, confirm = options_of(solver, timeout), flag_of("confirm", confirm)
    restrictions = restrictions_of(inputs)
    count = None if length is None else whole_of("length", length)
    if gives_plan(unit):
        plan, lengths = plan_of("unit", unit), () if count is None else (count,)
        return _of_plan(BoundOfPlan(plan, restrictions, lengths, plan.reference).decide(options, confirm))
    return _of_model(BoundOfModel(model_of("unit", unit), restrictions, count).decide(options, confirm))


def _of_model(decided: Decided[BoundResult, ErrorBound]) -> Bound:
    result, document = decided.found, decided.document
    formula = document.formula or None
    return Bound(
        document,
        formula,
        document.chain.any if document.chain else None,
        ", ".join(document.premises),
        result.window.max,
        document.window.bound if document.window else None,
        _nearest_of_model(result),
        result,
    )


def _nearest_of_model(bound: BoundResult) -> Case | None:
    """The rows of a chain as one input: the first row's addend, the last row's result."""
    from itertools import chain

    from mmaprobe.smtmodel.evaluate.operands import Operands, layout_of

    if bound.near is None:
        return None
    model, near, layout = bound.model, bound.near, layout_of(bound.model)
    size = len(layout.names)
    rows = [layout.split(near.row[start : start + size]) for start in range(0, len(near.row), size)]

    every = zip(*(row.sides.values() for row in rows), strict=True)
    a, b, _, *rest = (tuple(chain.from_iterable(sides)) for sides in every)
    whole = Operands(a, b, rows[0].c, tuple(rest))
    return case_of(model, whole, near.results[-1])


def _of_plan(decided: Decided[PlanBound, PlanErrorBound]) -> Bound:
    from mmaprobe.queries.plans.bound_report import lengths_text, whole_text

    result, document = decided.found, decided.document
    every, size = document.formula, document.sizes[0] if document.sizes else None
    largest = document.largest[0] if result.largest else None
    return Bound(
        document,
        size.bound if size is not None else largest.bound if largest is not None else None,
        None if every is None else f"for {lengths_text(every)}: {whole_text(every)}",
        ", ".join(result.premises) if largest is None else largest.premises,
        result.window.max,
        None if size is None else size.window.bound,
        _nearest_of_plan(result),
        result,
    )


def _nearest_of_plan(bound: PlanBound) -> Case | None:
    near = bound.sizes[0].near if bound.sizes else None
    if near is None:
        return None
    plan = bound.plan
    a, b = numbers_of(near.a, plan.a), numbers_of(near.b, plan.b)
    (c,), (d,) = numbers_of([0], plan.c), numbers_of([near.d], plan.d)
    return Case(plan.reference, a, b, c if plan.addend else None, d)
