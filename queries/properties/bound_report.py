"""The error bound of a model (`prove --property error-bound`): a theorem, its value for a window of exponents, and an
input whose error is near the bound."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from mmaprobe.queries.kernel.enclosures import premises_of, weakened
from mmaprobe.queries.kernel.forms import Form
from mmaprobe.queries.kernel.induction import MOST_CARRIED, Chained, Closed, carried, closed, step_text
from mmaprobe.queries.kernel.rounding_losses import LEMMAS
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.kernel.wording import form_text, raised, up_float
from mmaprobe.queries.properties.bound import Settle, bound_of, chain_of, error_of
from mmaprobe.queries.properties.bound_samples import Near, largest_error, nearest, nearest_of_chain
from mmaprobe.queries.properties.wraps import wrapped
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.inputs.admitted import ExponentRange, Inputs
from mmaprobe.smtmodel.inputs.vectors import Vector

SHOWN = 160  # characters of a formula up to which it is shown as proved, its terms not merged
WINDOW = ExponentRange(min=0, max=0)


@dataclass
class BoundResult:
    """The bound of a model, or of a chain of its instructions. `length`: the number of products; `theorem`: the bound
    as proved; `shown`: the bound as shown, with fewer terms if it is long; `chain`: what one instruction of a chain
    does to the error; `any`: the bound of a chain of any length; `number`: the value of the bound for the `window`;
    `near`: of the inputs `tried`, the one whose error is nearest to its bound, or where no bound holds one on which a
    sum wraps (`wrapped`); `reason`: why there is no bound."""

    model: Model
    length: int
    window: ExponentRange
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


def find_bound(model: Model, inputs: Inputs, length: int | None, settle: Settle) -> BoundResult:
    """The bound of a model, or, for a `length`, of a chain of its instructions with that many products; it is compared
    with samples. Raises ParameterError for a length or a restriction that no bound can have, and FaultError if an
    evaluation contradicts the bound."""
    start = time.monotonic()
    if inputs != Inputs(exponents=inputs.exponents):
        raise ParameterError("inputs", "error-bound is about all finite inputs; it takes exponents alone")
    count = _count(model, length)
    result = BoundResult(
        model, model.length * count, inputs.exponents or WINDOW, premises=premises_of(model.unit.result)
    )
    try:
        if length is None:
            result.theorem = bound_of(model.unit, settle)
            result.shown = shown(result.theorem)
        else:
            result.chain = chain_of(model.unit, settle)
            result.any = closed(result.chain)
            result.theorem = result.shown = carried(result.chain, count)
    except RuleError as error:
        result.reason, result.near = str(error), wrapped(model, count)
        result.seconds = time.monotonic() - start
        return result
    assert result.theorem is not None
    bound = error_of(result.theorem)
    result.number = largest_error(model, bound, count, result.window.max)
    if length is None:
        found = nearest(model, bound)
    else:
        found = nearest_of_chain(model, bound, count, error_of(bound_of(model.unit, settle)))
    result.near, result.tried = found.best, found.tried
    result.seconds = time.monotonic() - start
    return result


def shown(theorem: Theorem) -> Theorem:
    """The bound of a theorem in a form that is not too long to be read."""
    error = error_of(theorem)
    return theorem if len(form_text(error)) <= SHOWN else weakened(theorem, error.merged())


def formula_of(theorem: Theorem) -> str:
    """The bound as a formula."""
    return f"|d - exact| <= {form_text(error_of(theorem))}"


def conditions_of(premises: Sequence[str], formula: str) -> str:
    """The premises of a bound, and what its formula means by x°, in words."""
    return ", ".join([*premises, *([raised()] if "°" in formula else [])])


def _count(model: Model, length: int | None) -> int:
    if length is None:
        return 1
    if not 1 <= length <= MOST_CARRIED or length % model.length:
        raise ParameterError(
            "length", f"{length} is not a chain of {model.reference}: it takes a multiple of {model.length}, at most "
            f"{MOST_CARRIED}"
        )  # fmt: skip
    return length // model.length


def document_of(result: BoundResult) -> dict[str, Any]:
    """The result as a JSON document."""
    model = result.model
    out: dict[str, Any] = {
        "schema": 1, "property": "error-bound", "model": model.reference, "length": result.length,
        "verdict": result.verdict, "premises": result.premises, "reason": result.reason or None,
        "seconds": result.seconds,
    }  # fmt: skip
    if result.verdict == "refuted":
        out["nearest"] = None if result.near is None else near_json(model, result.near)
    if result.theorem is None or result.shown is None or result.number is None:
        return out
    out["formula"] = formula_of(result.shown)
    out["terms"] = terms_json(error_of(result.theorem))
    out["window"] = {"min": result.window.min, "max": result.window.max, "bound": up_float(result.number)}
    if result.chain is not None and isinstance(result.chain.goal, Chained):
        step = result.chain.goal.step
        out["chain"] = {"step": step_text(step), "growth": str(step.growth), "part": str(step.part)}
        assert result.any is not None
        assert isinstance(result.any.goal, Closed)
        out["chain"]["any"] = result.any.goal.text
    out["rules"] = dict(sorted(Counter(one.rule for one in result.shown.walk()).items()))
    lemmas = [one for one in result.shown.walk() if isinstance(one.goal, LEMMAS)]
    out["lemmas"] = [{"lemma": one.goal.statement(), "by": one.word} for one in lemmas]
    out["tried"] = result.tried
    out["nearest"] = None if result.near is None else near_json(model, result.near)
    return out


def terms_json(form: Form) -> list[dict[str, Any]]:
    """The terms of a bound as JSON values: each coefficient as a fraction, with the products of magnitudes of which it
    multiplies the largest."""
    return [
        {
            "coefficient": str(value),
            "of": [[[factor.name, factor.offset, factor.raised] for factor in item] for item in sorted(atom)],
        }
        for atom, value in form.parts.items()
    ]


def near_json(model: Model, near: Near) -> dict[str, Any]:
    """The input nearest to the bound as JSON: a vector, or one for each instruction of a chain, each addend being the
    result before it."""
    layout, results = layout_of(model), near.results
    size = len(layout.names)
    rows = [near.row[start : start + size] for start in range(0, len(near.row), size)]
    vectors = [Vector(model, layout.split(row), d).to_json() for row, d in zip(rows, results, strict=True)]
    found: dict[str, Any] = {"ratio": float(near.ratio), "error": float(near.error), "bound": up_float(near.bound)}
    return found | ({"vector": vectors[0]} if len(vectors) == 1 else {"vectors": vectors})
