"""Algorithm references, `name[@parameter=value,...]`, and the two ways to run what they name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any

from numpy.typing import NDArray

from mmaprobe.smtmodel.algorithms.forms import MatrixForm, StepsForm
from mmaprobe.smtmodel.algorithms.products import TF64, Markidis, Multiword, OotomoYokota
from mmaprobe.smtmodel.algorithms.reductions import (
    ArrayOperations,
    BitsOperations,
    Recurrence,
    Reduction,
    SinglePass,
    Split,
    WarpShuffle,
)
from mmaprobe.smtmodel.algorithms.steps import RESULT, Step
from mmaprobe.smtmodel.base.errors import ParameterError, UnknownNameError
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.evaluate.tiles import product_shape
from mmaprobe.smtmodel.families.parameters import assignments, format_parameter, parse_parameter
from mmaprobe.smtmodel.plans.gemm import Engine

PRODUCTS: tuple[type[Multiword], ...] = (Markidis, OotomoYokota, Multiword, TF64)
REDUCTIONS: tuple[type[Reduction], ...] = (SinglePass, Recurrence, Split, WarpShuffle)
ALGORITHMS: dict[str, type[Multiword] | type[Reduction]] = {
    **{row.name: row for row in PRODUCTS},
    **{row.name: row for row in REDUCTIONS},
}

_PART = re.compile(r"(?:[^,()]|\([^()]*\))+")


@lru_cache(maxsize=1024)
def parse_any(text: str) -> Multiword | Reduction:
    """The algorithm of a reference such as `ootomo-yokota@unit=volta/mma/m8n8k4.f32.f16.f16.f32,products=4`.

    A unit with parameters of its own is in parentheses: `unit=(volta/...@fraction_bits=24,block=2)`. Raises
    UnknownNameError and ParameterError.
    """
    name, _, tail = text.strip().partition("@")
    kind = ALGORITHMS.get(name.strip().lower())
    if kind is None:
        raise UnknownNameError("algorithm", name, ALGORITHMS, hint=" (`mmaprobe list algorithms` shows all)")
    if tail and ",".join(_PART.findall(tail)) != tail:
        raise ParameterError("@", f"{tail!r}: parameters are written name=value, with commas between them")
    known = {field.name: kind.parameters[field.name] for field in fields(kind)}
    values: dict[str, Any] = {}
    for parameter, given in assignments(_PART.findall(tail)).items():
        value = given.removeprefix("(").removesuffix(")")
        values[parameter] = value if parameter in kind.free else parse_parameter(parameter, value, known)
    return kind(**values)


def parse_algorithm(text: str) -> Multiword:
    """An algorithm for products. Raises what `parse_any` raises, and ParameterError for a reduction."""
    found = parse_any(text)
    if not isinstance(found, Multiword):
        raise ParameterError(found.name, "a sum of numbers, where an algorithm for products is needed")
    return found


def parse_reduction(text: str) -> Reduction:
    """An algorithm for sums of numbers. Raises what `parse_any` raises, and ParameterError for one for products."""
    found = parse_any(text)
    if not isinstance(found, Reduction):
        raise ParameterError(found.name, "an algorithm for products, where a sum of numbers is needed")
    return found


def reference_of(algorithm: Multiword | Reduction) -> str:
    """The text that names an algorithm; `parse_algorithm` reads it back."""
    parts = []
    for field in fields(algorithm):
        value = getattr(algorithm, field.name)
        if value != field.default:
            text = format_parameter(value)
            parts.append(f"{field.name}=({text})" if "@" in text else f"{field.name}={text}")
    return algorithm.name + ("@" + ",".join(parts) if parts else "")


def dot_product(algorithm: Multiword, a: Sequence[Bits], b: Sequence[Bits], c: Bits) -> Bits:
    """d = c + sum of a_k * b_k over the carrier of the inputs: patterns of `source_format`; c and d of `sum_format`.

    Raises ParameterError for sides that do not fit.
    """
    return dot_steps(algorithm, a, b, c)[RESULT]


def dot_steps(algorithm: Multiword, a: Sequence[Bits], b: Sequence[Bits], c: Bits) -> dict[Step, Bits]:
    """The steps of `dot_product` in their order, the last is RESULT; by their texts:

    `a.word0[k]`: a word of a number, in the format of the unit's factors; `unit.a0b1[0:8]`: the running sum of the unit
    after those products of those words; `outside.a0b1[:8]`: the sum outside after them; `sum1`: that of all products of
    that size, unscaled. All but words have `sum_format`.
    """
    if not 0 < len(a) == len(b):
        raise ParameterError("a and b", f"{len(a)} and {len(b)} numbers: the same, nonzero number is needed")
    form = StepsForm()
    algorithm.evaluate(form, tuple(a), tuple(b), c)
    return form.steps


def matrix_product(
    algorithm: Multiword,
    a: NDArray[Any],
    b: NDArray[Any],
    c: NDArray[Any],
    threads: int | None = None,
    engine: Engine = "auto",
) -> NDArray[Any]:
    """D = C + A * B: every element is the `dot_product` of its row and column, bit for bit.

    Patterns as unsigned integers: A (rows x K) and B (K x columns) of `source_format`; C and D (rows x columns) of
    `sum_format`. Raises ParameterError for shapes that do not fit.
    """
    if c.shape != (shape := product_shape(a, b, least=1)):
        raise ParameterError("C", f"shape {c.shape} is not that of the product, {shape}")
    return algorithm.evaluate(MatrixForm(threads, engine), a, b, c)


def sum_of_numbers(algorithm: Reduction, numbers: Sequence[Bits]) -> Bits:
    """The sum of f32 patterns over their carrier, a pattern of `result_format`. Raises ParameterError for none."""
    if not numbers:
        raise ParameterError("numbers", "at least one is needed")
    return algorithm.evaluate(BitsOperations(), tuple(numbers))[0]


def sum_of_array(algorithm: Reduction, numbers: NDArray[Any]) -> int:
    """The sum of a flat array of f32 patterns (unsigned integers): `sum_of_numbers`, bit for bit, but faster."""
    if numbers.ndim != 1 or not len(numbers):
        raise ParameterError("numbers", f"shape {numbers.shape}: a flat array of at least one is needed")
    return int(algorithm.evaluate(ArrayOperations(), numbers)[0])
