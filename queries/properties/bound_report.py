"""The error bound of a model (`prove --property error-bound`): a theorem, its value for a window of exponents, and an
input whose error is near the bound."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

import numpy as np

from mmaprobe.documents.parts import ABSENT
from mmaprobe.documents.parts import Vector as Row
from mmaprobe.documents.prove import Chain, ErrorBound, ErrorTerm, LemmaOfBound, Measure, Nearest, NumericBound
from mmaprobe.queries.kernel.bounds.enclosures import Enclosed, weakened
from mmaprobe.queries.kernel.bounds.forms import Factor, Form
from mmaprobe.queries.kernel.bounds.induction import MOST_CARRIED, Carried, Chained, Closed, carried, closed, step_text
from mmaprobe.queries.kernel.bounds.largest import OfLargest, bound_text, of_largest
from mmaprobe.queries.kernel.bounds.wording import form_text, premises_of, raised, up_decimal, up_float, up_text
from mmaprobe.queries.kernel.closed import is_lemma
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.properties.bound import Settle, bound_of, chain_of, error_of
from mmaprobe.queries.properties.bound_samples import ErrorOfModel, Near
from mmaprobe.queries.properties.exact import ExactChain
from mmaprobe.queries.properties.wraps import wrapped_input
from mmaprobe.smtmodel.arithmetic.display import powers
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.inputs.admitted import ExponentRange, Inputs
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.units.unit import Unit

MOST_BITS = 128  # the most bits of a coefficient that is shown exactly
SHOWN = 160  # the most characters of a formula that is shown as proved; the terms of a longer formula are merged
WINDOW = ExponentRange(min=0, max=0)


@dataclass
class BoundResult:
    """The bound of a model, or of a chain of its instructions. `length`: the number of products; `theorem`: the bound
    as proved; `shown`: the bound as shown, with fewer terms if it is long; `chain`: the effect of one instruction of a
    chain on the error; `any`: the bound of a chain of any length; `number`: the value of the bound for the `window`;
    `near`: of the inputs `tried`, the input whose error is nearest to its bound, or, if no bound holds, an input on
    which a sum wraps (`wrapped_input`); `reason`: why there is no bound."""

    model: Model
    length: int
    window: ExponentRange
    measure: Measure = "elements"
    theorem: Theorem | None = None
    shown: Theorem | None = None
    chain: Theorem | None = None
    any: Theorem | None = None
    number: Fraction | None = None
    near: Near | None = None
    tried: int = 0
    reason: str = ""
    seconds: float = 0.0
    premises: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> Literal["holds", "refuted", "unknown"]:
        if self.theorem is None:
            return "unknown" if self.near is None else "refuted"
        return "holds"


def find_bound(
    model: Model, inputs: Inputs, length: int | None, settle: Settle, measure: Measure | None = None
) -> BoundResult:
    """The bound of a model, or, with `length`, of a chain of its instructions with `length` products in all. The bound
    is compared with samples. `measure`: "elements" or "largest", the magnitudes in which the bound is stated. Raises
    ParameterError for a length or a restriction that no bound can have, and FaultError if an evaluation contradicts the
    bound."""
    start = time.monotonic()
    window, count = window_of(inputs), _count(model, length)
    result = BoundResult(
        model, model.length * count, window, measure or "elements",
        premises=premises_of(model.unit.result),
    )  # fmt: skip
    try:
        if length is None:
            result.theorem = bound_of(model.unit, settle)
            result.shown = shown_bound(result.theorem)
        else:
            result.chain = chain_of(model.unit, settle)
            result.any = closed(result.chain)
            result.theorem = result.shown = carried(result.chain, count)
        if measure == "largest":
            result.shown, result.chain, result.any = of_largest(result.theorem), None, None
    except RuleError as error:
        result.reason, result.near = str(error), wrapped_input(model, count)
        result.seconds = time.monotonic() - start
        return result
    assert result.theorem is not None
    bounded = ErrorOfModel(model, error_of(result.theorem), count)
    result.number = bounded.largest(window.max)
    search = bounded.nearest() if length is None else bounded.nearest_chain(error_of(bound_of(model.unit, settle)))
    result.near, result.tried = search.best, search.tried
    if result.near is not None and measure == "largest":
        result.near = replace(result.near, bound=_in_largest(result, result.near))
    result.seconds = time.monotonic() - start
    return result


def window_of(inputs: Inputs) -> ExponentRange:
    """The window of exponents for which a bound has a value. Raises ParameterError for another restriction."""
    if inputs != Inputs(exponents=inputs.exponents):
        raise ParameterError("inputs", "error-bound is about all finite inputs; it takes exponents alone")
    return inputs.exponents or WINDOW


def _in_largest(result: BoundResult, near: Near) -> Fraction:
    """The value, on an input, of the bound in largest elements."""
    assert result.shown is not None
    layout = layout_of(result.model)
    chain = ExactChain.of(result.model, layout, np.array(near.row, np.uint64).reshape(-1, len(layout.names)))
    assert chain is not None

    def largest(factor: Factor) -> Fraction:
        elements = (factor._replace(offset=place) for name, place in chain.numbers if name == factor.name)
        return max(map(chain.magnitude, elements))

    return error_of(result.shown).value(largest)


def shown_bound(theorem: Theorem) -> Theorem:
    """The bound of a theorem in a form that is not too long to be read."""
    error = error_of(theorem)
    return theorem if len(form_text(error)) <= SHOWN else weakened(theorem, error.merged())


def formula_of(theorem: Theorem) -> str:
    """The bound as a formula."""
    assert isinstance(theorem.goal, Enclosed | Carried | OfLargest)
    return f"|d - exact| <= {bound_text(theorem.goal)}"


def constants_of(form: Form, shown: str) -> list[str]:
    """For each coefficient that is rounded in a formula: its text there, its exact value, and its decimals, rounded
    up."""
    lines: dict[str, str] = {}
    for value in sorted(set(form.flat().parts.values()), reverse=True):
        text, short = up_text(value), max(value.numerator, value.denominator).bit_length() <= MOST_BITS
        if text in shown and re.fullmatch(r"1\.\d{4}(\*.*)?", text):
            exact = f"exactly {powers(value)}, " if short else ""
            lines.setdefault(text, f"{text}: {exact}at most {up_decimal(value, 9)}")
    return list(lines.values())


def conditions_of(unit: Unit, formula: str) -> list[str]:
    """The premises of a unit's bound, and the meaning of x° in its formula, in words."""
    return [*premises_of(unit.result), *([raised(unit)] if "°" in formula else [])]


def _count(model: Model, length: int | None) -> int:
    if length is None:
        return 1
    if not 1 <= length <= MOST_CARRIED or length % model.length:
        why = f"it takes a multiple of {model.length}, at most {MOST_CARRIED}"
        if model.addend:
            why += f"; plan:{model.reference} takes any K, its last tile filled up with zeros"
        raise ParameterError("length", f"{length} is not a chain of {model.reference}: {why}")
    return length // model.length


def document_of(result: BoundResult) -> ErrorBound:
    """The result as a document."""
    model = result.model
    nearest = None if result.near is None else nearest_input(model, result.near)
    document = ErrorBound(
        model=model.reference,
        measure=result.measure,
        length=result.length,
        verdict=result.verdict,
        premises=result.premises,
        reason=result.reason or None,
        seconds=result.seconds,
        nearest=nearest if result.verdict != "unknown" else ABSENT,
    )
    if result.theorem is None or result.shown is None or result.number is None:
        return document
    chain: Chain = ABSENT
    if result.chain is not None and isinstance(result.chain.goal, Chained):
        step = result.chain.goal.step
        assert result.any is not None
        assert isinstance(result.any.goal, Closed)
        chain = Chain(step=step_text(step), growth=str(step.growth), part=str(step.part), any=result.any.goal.text)
    rules, lemmas = derivation([result.shown])
    formula = formula_of(result.shown)
    return replace(
        document,
        premises=conditions_of(result.model.unit, formula),
        formula=formula,
        terms=terms_of(error_of(result.shown if result.measure == "largest" else result.theorem)),
        window=NumericBound(min=result.window.min, max=result.window.max, bound=up_float(result.number)),
        chain=chain,
        rules=rules,
        lemmas=lemmas,
        tried=result.tried,
    )


def derivation(bounds: Iterable[Theorem]) -> tuple[dict[str, int], list[LemmaOfBound]]:
    """The derivation of bounds: the number of theorems by each rule, and the lemmas about the datapath."""
    every = dict.fromkeys(one for theorem in bounds for one in theorem.walk())
    lemmas = {one.goal.statement(): one.word for one in every if is_lemma(type(one.goal))}
    rules = dict(sorted(Counter(one.rule for one in every).items()))
    return rules, [LemmaOfBound(lemma=lemma, by=by) for lemma, by in lemmas.items()]


def terms_of(form: Form) -> list[ErrorTerm]:
    """The terms of a bound: each coefficient as a fraction, with the products of magnitudes whose largest it
    multiplies."""
    return [
        ErrorTerm(
            coefficient=str(value),
            of=[[[factor.name, factor.offset, factor.raised] for factor in item] for item in sorted(atom)],
        )
        for atom, value in form.parts.items()
    ]


def nearest_input(model: Model, near: Near) -> Nearest:
    """The input nearest to the bound: a vector, or a vector for each instruction of a chain, whose addend is the result
    of the instruction before it."""
    layout, results = layout_of(model), near.results
    size = len(layout.names)
    rows = [near.row[start : start + size] for start in range(0, len(near.row), size)]
    vectors = [Row.of(Vector(model, layout.split(row), d).to_json()) for row, d in zip(rows, results, strict=True)]
    nearest = Nearest(ratio=float(near.ratio), error=float(near.error), bound=up_float(near.bound))
    return replace(nearest, vector=vectors[0]) if len(vectors) == 1 else replace(nearest, vectors=vectors)
