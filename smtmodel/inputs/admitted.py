"""Restrictions on the inputs of a question, and checks that models can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import StrictBool, StrictInt, field_validator, model_validator

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.base.yamlfile import Strict
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.operand import FURTHER

Compare = Literal["bits", "value"]


class ExponentRange(Strict):
    """Exponents from `min` to `max`, both included."""

    min: StrictInt
    max: StrictInt

    @model_validator(mode="after")
    def _ordered(self) -> ExponentRange:
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}: no number is admitted")
        return self


class Inputs(Strict):
    """Restrictions on the inputs of a question. They hold for every element of a and b, and for c; a zero meets every
    restriction of exponents. An element that is `normal`, or whose exponent is restricted, is finite.

    `zero_terms`: products fixed to zero, by index; the index after the last product is the addend.
    `products_below_two`: the significands of each product multiply to less than 2, so that the product is normalised.
    `special`: at least one element, or the addend, is an infinity or a NaN.
    """

    finite: StrictBool = False
    nonnegative: StrictBool = False
    nonzero: StrictBool = False
    normal: StrictBool = False
    products_below_two: StrictBool = False
    special: StrictBool = False
    exponents: ExponentRange | None = None
    zero_terms: tuple[StrictInt, ...] = ()

    @field_validator("zero_terms")
    @classmethod
    def _indices(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if any(index < 0 for index in value):
            raise ValueError("indices of products start at 0")
        return value

    @model_validator(mode="after")
    def _some(self) -> Inputs:
        if self.special and (self.finite or self.normal or self.exponents is not None):
            raise ValueError("special wants an infinity or a NaN, and the other restrictions admit none")
        return self


def admitted(inputs: Inputs, fmt: Format) -> Literal["nothing", "zeros", "numbers"]:
    """The elements of a format that the restrictions admit for one operand. Only a window outside the format's
    exponents excludes all nonzero numbers, since for every exponent a power of two meets all other restrictions."""
    window = inputs.exponents
    if window is None or (window.min <= fmt.emax and window.max >= fmt.emin):
        return "numbers"
    return "nothing" if inputs.nonzero else "zeros"


def zeros_only(inputs: Inputs, model: Model, length: int) -> dict[str, str]:
    """The operands (a, b, c) of inputs of `length` products for which the window of exponents admits zeros alone, each
    with the range of its format's exponents in words. Raises ParameterError if an operand has no admitted element."""
    zeros = {}
    for name, fmt, indices in (
        ("a", model.a, range(length)),
        ("b", model.b, range(length)),
        *([("c", model.c, range(length, length + 1))] if model.addend else []),
    ):
        left = "zeros" if set(indices) <= set(inputs.zero_terms) else admitted(inputs, fmt)
        reach = f"{fmt.name} has exponents from {fmt.emin} to {fmt.emax}"
        window = inputs.exponents
        if left == "nothing" and window is not None:
            raise ParameterError(
                "exponents",
                f"no input is admitted: {reach}, and {name} is to be nonzero, from {window.min} to {window.max}",
            )
        if left == "zeros" and admitted(inputs, fmt) != "numbers":
            zeros[name] = reach
    return zeros


def unread_by_some(models: Sequence[Model]) -> dict[str, str]:
    """If some models read c and others do not, the reason why c is +0 for all, by the operand's name; else empty."""
    without = [model.reference for model in models if not model.addend]
    return {"c": f"{', '.join(dict.fromkeys(without))} does not read c"} if 0 < len(without) < len(models) else {}


def zeros_of(inputs: Inputs, models: Sequence[Model], length: int) -> dict[str, str]:
    """The operands that are always zero in a question about several models, each with the reason in words. Raises
    ParameterError."""
    return zeros_only(inputs, models[0], length) | unread_by_some(models)


def without_unread(inputs: Inputs, models: Sequence[Model], length: int) -> Inputs:
    """The restrictions on inputs of several models, with c fixed to +0 if only some models read it."""
    if not unread_by_some(models) or length in inputs.zero_terms:
        return inputs
    return inputs.model_copy(update={"zero_terms": (*inputs.zero_terms, length)})


def check_inputs(inputs: Inputs, model: Model, length: int) -> None:
    """Raises ParameterError for restrictions that admit no input of `length` products, or name a term that such an
    input lacks."""
    zeros_only(inputs, model, length)
    for index in inputs.zero_terms:
        if index > length:
            raise ParameterError("zero_terms", f"{index}: there are {counted(length, 'product')} and an addend")
    free = set(range(length + 1)) - set(inputs.zero_terms)
    used = ([model.a, model.b] if free - {length} else []) + ([model.c] if length in free and model.addend else [])
    if inputs.special and not any(fmt.has_nan or fmt.has_infinity for fmt in used):
        names = ", ".join(dict.fromkeys(fmt.name for fmt in used)) or "zero"
        raise ParameterError("special", f"no input is admitted: there is no infinity and no NaN in {names}")


def with_one_addend(models: Sequence[Model]) -> list[Model]:
    """The models with one format of c as far as possible: models that do not read c get the format of the first model
    that does, or of the first model."""
    lead = next((model for model in models if model.addend), models[0])
    return [model if model.addend or model.c == lead.c else model.with_addend(lead.c) for model in models]


def check_comparable(left: Model, right: Model, compare: Compare) -> None:
    """Raises ParameterError for models whose inputs have different formats, or whose results cannot be compared."""
    for side in ("a", "b", "c") if left.addend and right.addend else ("a", "b"):
        one, other = (getattr(model, side) for model in (left, right))
        if one != other:
            raise ParameterError(side, f"the models take different formats: {one.name} and {other.name}")
    scales = [(model.scale, model.scale and model.scale_block) for model in (left, right)]
    if scales[0] != scales[1]:
        raise ParameterError("scale_format", "the models take different scale factors")
    for row in FURTHER:
        if left.formats.get(row.name) != right.formats.get(row.name):
            raise ParameterError(row.name, f"the models take different {row.name}")
    if compare == "bits" and left.d != right.d:
        raise ParameterError("output", f"results are {left.d.name} and {right.d.name}: choose to compare by value")
