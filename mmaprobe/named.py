"""Units and plans by name, and the checks of arguments of the Python functions."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsIndex, TypeVar

from mmaprobe.smtmodel.base.errors import MmaprobeError, ParameterError, UnknownNameError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.tables.reference import names_plan, parse_plan_path, parse_reference

if TYPE_CHECKING:
    from mmaprobe.smtmodel.inputs.admitted import Inputs
    from mmaprobe.smtmodel.inputs.signature import Signature

__all__ = ["Model", "Plan", "model_of", "plan", "plan_of", "unit"]
Text = TypeVar("Text", bound=str)


class WantedError(MmaprobeError, TypeError):
    """An argument of a wrong type; the message names the right one."""

    def __init__(self, name: str, given: object, wanted: str, hint: str = "") -> None:
        super().__init__(f"{name}: {wanted} is wanted, not {type(given).__name__}{hint}")


def whole_of(name: str, given: object) -> int:
    """A positive whole number. Raises MmaprobeError."""
    if isinstance(given, bool) or not isinstance(given, SupportsIndex):
        raise WantedError(name, given, "a whole number")
    number = operator.index(given)  # NumPy's whole numbers too
    if number < 1:
        raise ParameterError(name, f"{given} is impossible; it takes a whole number from 1 on")
    return number


def seconds_of(name: str, given: object) -> float:
    """A time in seconds. Raises MmaprobeError."""
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise WantedError(name, given, "a number of seconds")
    if not given > 0:
        raise ParameterError(name, f"{given} is impossible; it takes a positive number of seconds")
    return float(min(given, sys.float_info.max))


def sides_of(shape: object) -> tuple[int, int]:
    """The largest M and N. Raises MmaprobeError."""
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise WantedError("shape", shape, "two numbers, the largest M and N")
    return whole_of("shape", shape[0]), whole_of("shape", shape[1])


def text_of(name: str, given: object, example: str) -> str:
    """A string. Raises MmaprobeError."""
    if not isinstance(given, str):
        raise WantedError(name, given, f"a string such as {example!r}")
    return given


def choice_of(name: str, given: Text, known: Sequence[str]) -> Text:
    """One of some words. Raises MmaprobeError."""
    if given not in known:
        raise UnknownNameError(name, str(given), known)
    return given


def flag_of(name: str, given: object) -> bool:
    """True or False. Raises MmaprobeError."""
    if not isinstance(given, bool):
        raise WantedError(name, given, "True or False")
    return given


def restrictions_of(inputs: object) -> Inputs:
    """Restrictions of inputs, such as `finite,nonzero`. Raises MmaprobeError."""
    from mmaprobe.smtmodel.inputs.restrictions import parse_inputs

    return parse_inputs(text_of("inputs", inputs, "finite,nonzero"))


def signature_of(formats: object, length: SupportsIndex) -> Signature:
    """The signature of a device's questions: formats of a, b, c and d, and the number of products. Raises
    MmaprobeError."""
    from mmaprobe.smtmodel.inputs.signature import parse_signature

    return parse_signature(text_of("formats", formats, "f16,f16,f32,f32"), whole_of("length", length))


def unit(reference: str | os.PathLike[str]) -> Model:
    """The model of one instruction.

    `reference`: `arch/unit/instruction` of the table (`mmaprobe list models`), with parameters changed after an `@`;
    the path of a unit file (it ends in .yaml); or a plan at one K, `plan:NAME@length=K`.

    Units: the model's `a`, `b`, `c` and `d` are formats (`name`, `width` in bits); `length` is K, the number of
    products of one instruction.

    Raises MmaprobeError for an unknown name (the message has the nearest name) and for a file with a mistake (the
    message has line and key).

    Source: `mmaprobe list models` has the evidence for each model: recordings of GPUs, or a publication.
    """
    if not isinstance(reference, (str, os.PathLike)):
        raise WantedError("reference", reference, "the name of a unit or the path of its file")
    return parse_reference(os.fspath(reference))


def plan(reference: str | os.PathLike[str]) -> Plan:
    """The plan of a whole matrix product: how K is divided, and how the partial sums are added.

    `reference`: a name of `mmaprobe list plans`, with or without `plan:` before it; the path of a plan file (it ends in
    .yaml); or a unit, for the plan in which it takes K in tiles, from c on.

    Units: the plan's `a`, `b`, `c` and `d` are formats (`name`, `width` in bits); the plan is for every K.

    Raises MmaprobeError as `unit` does.

    Source: each plan's file names its source (docs/plans.md).
    """
    if not isinstance(reference, (str, os.PathLike)):
        raise WantedError("reference", reference, "the name of a plan or the path of its file")
    return parse_plan_path(os.fspath(reference))


def model_of(name: str, given: object) -> Model:
    """The model of an argument: a model, or the reference of one. Raises MmaprobeError."""
    if isinstance(given, Model):
        return given
    if isinstance(given, (str, os.PathLike)):
        return unit(given)
    raise WantedError(name, given, "a unit (mmaprobe.unit) or the name of one")


def plan_of(name: str, given: object) -> Plan:
    """The plan of an argument: a plan, or the reference of one. Raises MmaprobeError."""
    if isinstance(given, Plan):
        return given
    if isinstance(given, (str, os.PathLike)):
        return plan(given)
    raise WantedError(name, given, "a plan (mmaprobe.plan) or the name of one")


def gives_plan(given: object) -> bool:
    """Whether an argument is a plan for any K, or the name of one. Raises InputError for a file that is not YAML."""
    return isinstance(given, Plan) or (isinstance(given, (str, os.PathLike)) and names_plan(os.fspath(given)))


def whole_product_of(name: str, given: object) -> Plan:
    """The plan of an argument: a plan, the name of a plan, or a unit, which takes K in tiles. Raises MmaprobeError."""
    return Plan.chained(given) if isinstance(given, Model) else plan_of(name, given)
