"""The value of a proved bound for given inputs: in exact fractions, or for large matrices in f64, rounded up."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.arrays import array_of, check_rounded, patterns_of
from mmaprobe.bound_matrices import Magnitudes, Numbers, evaluated, is_evaluated, summed
from mmaprobe.products import MOST_AXES, number_of
from mmaprobe.queries.kernel.bounds.forms import number
from mmaprobe.queries.kernel.bounds.largest import OfLargest, of_largest
from mmaprobe.queries.kernel.bounds.parts import adds_products_once
from mmaprobe.queries.kernel.bounds.sums import put, single
from mmaprobe.queries.kernel.bounds.wording import COUNT, up_float
from mmaprobe.queries.kernel.integers.blocks import InLargest
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.queries.plans.bound_report import PlanBound
from mmaprobe.queries.plans.bound_samples import EASY, ErrorOfPlan, easy_size, exact_result
from mmaprobe.queries.plans.slices import bound_in_largest
from mmaprobe.queries.properties.bound import error_of
from mmaprobe.queries.properties.bound_report import BoundResult
from mmaprobe.queries.properties.bound_samples import ErrorOfModel
from mmaprobe.smtmodel.arithmetic.display import finite_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import in_f64, type_of
from mmaprobe.smtmodel.evaluate.operands import check_addend, check_plain
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.smtmodel.nodes import Constant, Cut, Element, ExactSum, Literal, Node, Product, Round
from mmaprobe.smtmodel.nodes.element import flushed_in
from mmaprobe.smtmodel.nodes.known import power
from mmaprobe.smtmodel.nodes.node import of_kind, walk
from mmaprobe.smtmodel.plans.gemm import addend
from mmaprobe.smtmodel.plans.plan import Plan, Products

MEASURES = ("elements", "largest")
EXACTLY = 1 << 14  # products up to which fractions are used
Patterns = NDArray[Any]
#: from a row of A, a column of B and an addend, as patterns, to the bound of the result's error
Evaluated = Callable[[Patterns, Patterns, int], Fraction]


def value_of(
    bound: BoundResult | PlanBound, a: Any, b: Any, c: Any, convert: str | None, measure: str | None = None
) -> Any:
    """The bound for the result of two vectors and a number, or of matrices; see `Bound.at`. Raises MmaprobeError."""
    if measure not in (None, *MEASURES):
        raise ParameterError("measure", f"{measure!r} is none of {', '.join(MEASURES)}")
    how = bound.model if isinstance(bound, BoundResult) else bound.plan
    check_addend(how, c is not None)
    in_largest = _in_largest(bound, measure)
    length, of_element = (in_largest.length, None) if isinstance(in_largest, InLargest) else _evaluated(bound)
    axes = min(2, array_of("a", a, type_of(how.a)).ndim)
    x, y = patterns_of("a", a, how.a, axes, convert), patterns_of("b", b, how.b, axes, convert)
    z: Patterns = np.zeros((1, 1), kind_of(how.c))  # +0
    if c is not None:
        z = patterns_of("c", number_of(c), how.c, 0, convert, MOST_AXES if axes == 2 else 0)
    check_rounded((a, b, number_of(c)), convert)
    if axes < 2:
        x, y = x.reshape(1, -1), y.reshape(-1, 1)
    if x.shape[1] != y.shape[0]:
        raise ParameterError("a and b", f"the shapes {x.shape} and {y.shape} do not fit each other")
    if x.shape[1] != length:
        raise ParameterError("a", f"K is {x.shape[1]}, and this bound is for {length}: mmaprobe.bound takes a length")
    z = addend(z, (x.shape[0], y.shape[1]))
    sides = {}
    models = (bound.model,) if isinstance(bound, BoundResult) else bound.plan.models
    flushed = flushed_in(*(model.unit.result for model in models))
    if isinstance(bound, PlanBound):  # the bound includes the losses of words
        flushed -= {"ab"[side] for side in range(2) if bound.plan.words_read(side) != (None,)}
    for name, side, fmt in (("a", x, how.a), ("b", y, how.b), ("c", z, how.c)):
        sides[name] = in_f64(side, fmt)
        numbers = np.abs(sides[name])
        if not np.isfinite(numbers).all():
            raise ParameterError(name, "a bound is about finite numbers, and there is an infinity or a NaN")
        if name in flushed and ((numbers > 0) & (numbers < 2.0**fmt.emin)).any():
            raise ParameterError(name, f"{how.reference} reads subnormal numbers as zero: give zeros")
    _warn_of_overflow(_easy_size(how, isinstance(in_largest, InLargest)), sides)
    if in_largest is not None:
        out = _of_largest(in_largest, length, how, sides)
        return out if axes == 2 else float(out[0, 0])
    if x.shape[0] * y.shape[1] * length > EXACTLY and (whole := _at_once(bound, sides)) is not None:
        return whole
    assert of_element is not None
    out = np.empty((x.shape[0], y.shape[1]))
    for row, column in np.ndindex(*out.shape):
        out[row, column] = up_float(of_element(x[row], y[:, column], int(z[row, column])))
    return out if axes == 2 else float(out[0, 0])


def _warn_of_overflow(most: Fraction, sides: dict[str, Numbers]) -> None:
    """Give a RuntimeWarning where the magnitudes of the products and of c add up to more than `most`: a rounding might
    overflow, and then no bound is proved."""
    with np.errstate(all="ignore"):
        size = (np.abs(sides["a"]) @ np.abs(sides["b"]) + np.abs(sides["c"])).max(initial=0.0)
    if not size <= float(most):
        why = f"the magnitudes of products and c add up to {size:.3g}; above {float(most):.3g} one may"
        warnings.warn(f"the bound is for inputs on which no rounding overflows: {why}", RuntimeWarning, 4)


def _easy_size(how: Model | Plan, scaled: bool) -> Fraction:
    """A sum of magnitudes up to which no rounding overflows, and no product reaches its limit. `scaled`: what is added
    on the way to the result is scaled."""
    if isinstance(how, Plan):
        return EASY * _largest_of(how.d) if scaled else easy_size(how)
    rounded = [node.rounding.format for node in of_kind(how.unit.result, Round) if node.converts is None]
    limits = [power(node.limit) for node in of_kind(how.unit.result, Product) if node.limit is not None]
    return EASY * min([*map(_largest_of, (how.d, *rounded)), *limits])


def _largest_of(fmt: Format) -> Fraction:
    """The largest number of a format."""
    largest = finite_value(fmt.largest, fmt)
    assert largest is not None
    return largest


def _in_largest(bound: BoundResult | PlanBound, measure: str | None) -> InLargest | OfLargest | None:
    """The bound in terms of the largest elements, if `measure` asks for it or no other bound is known; else None.
    Raises ParameterError if no rule gives this bound."""
    if isinstance(bound, PlanBound) and not bound.sizes and bound.largest:
        return None if measure == "elements" else bound.largest[0]
    theorem = bound.theorem if isinstance(bound, BoundResult) else bound.sizes[0].theorem if bound.sizes else None
    if measure != "largest" or theorem is None:
        return None
    try:
        goal = of_largest(theorem).goal
    except RuleError as error:
        raise ParameterError("measure", str(error)) from None
    assert isinstance(goal, OfLargest)
    return goal


def _of_largest(goal: InLargest | OfLargest, length: int, how: Model | Plan, sides: dict[str, Numbers]) -> Numbers:
    """A bound in terms of the largest elements of rows and columns, or of blocks, for every element of the result,
    rounded up. Raises ParameterError."""
    if isinstance(goal, OfLargest):
        a, b = np.abs(sides["a"]).max(1, keepdims=True), np.abs(sides["b"]).max(0, keepdims=True)
        form = put(goal.form, lambda factor: number(length) if factor.name == COUNT else single(factor))
        return evaluated(form, Magnitudes(a, b, sides["c"], _least(how)))
    if sides["c"].any():
        raise ParameterError("c", "this bound is for c = 0")
    return bound_in_largest(goal, sides["a"], sides["b"])


def _least(how: Model | Plan) -> dict[str, float]:
    """The smallest normal number of each operand's format."""
    if isinstance(how, Plan):
        return {name: 2.0 ** how.least_normal(name) for name in "abc"}
    return {name: 2.0**fmt.emin for name, fmt in how.unit.formats.items()}


def _adds(how: Model | Plan) -> bool:
    """Whether the exact result of a unit or a plan is the sum of all products, and of c where c enters the result."""
    if isinstance(how, Plan):
        return exact_result(how, Fraction(1)) == 1 and exact_result(how, Fraction(0), Fraction(1)) in (0, 1)
    try:
        adds_products_once(how.unit)
    except RuleError:
        return False
    return True


def _at_once(bound: BoundResult | PlanBound, sides: dict[str, Numbers]) -> Numbers | None:
    """The bound for every element of a product of matrices; None if the exact result is not C + A B alone, or if the
    bound is in terms of other magnitudes."""
    if isinstance(bound, PlanBound):
        form, plan = bound.sizes[0].form, bound.plan
        plain = all(isinstance(node, (Products, Round, Cut, ExactSum, Element, Constant, Literal)) or _is_multiple(node)
                    for node in walk(plan.result))  # fmt: skip
        if not (plain and _adds(plan) and is_evaluated(form)):
            return None
        return summed(form.lifted(form.lifts), Magnitudes(sides["a"], sides["b"], sides["c"], _least(plan)))
    assert bound.theorem is not None
    form = error_of(bound.theorem)
    if not _adds(bound.model):
        return None
    sizes = Magnitudes(sides["a"], sides["b"], sides["c"], _least(bound.model))
    return evaluated(form, sizes) if is_evaluated(form) else None


def _is_multiple(node: Node) -> bool:
    """Whether a node is a fixed number times another node."""
    return isinstance(node, Product) and isinstance(node.left, Literal)


def _evaluated(bound: BoundResult | PlanBound) -> tuple[int, Evaluated]:
    """K, and the bound at this K as a function of a row, a column and an addend. Raises ParameterError where no bound
    is known for a single K."""
    if isinstance(bound, PlanBound):
        if not bound.sizes:
            why = bound.reason or "a bound for every K is not one number: give mmaprobe.bound a length"
            raise ParameterError("bound", why)
        error, plan = ErrorOfPlan(bound.plan, bound.sizes[0].form), bound.plan
        if plan.scale is not None:
            raise ParameterError("bound", f"{plan.reference} takes scale factors, for which no number is offered")
        return bound.sizes[0].length, error.bound_at
    if bound.theorem is None:
        raise ParameterError("bound", bound.reason)
    model, of_chain = bound.model, ErrorOfModel(bound.model, error_of(bound.theorem))
    if model.scale is not None:
        raise ParameterError("bound", f"{model.reference} takes scale factors, for which no number is offered")
    check_plain(model)

    def of_rows(a: Patterns, b: Patterns, c: int) -> Fraction:
        shape = (bound.length // model.length, model.length)
        steps = np.zeros((shape[0], 2 * model.length + 1), np.uint64)
        steps[:, : model.length], steps[:, model.length : -1] = a.reshape(shape), b.reshape(shape)
        steps[0, -1] = c
        return of_chain.bound_at(steps)

    return bound.length, of_rows
