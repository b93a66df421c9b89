"""Algorithm references, `name[@parameter=value,...]`: schemes of products, which are plans, and sums of numbers."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from numpy.typing import NDArray

from mmaprobe.smtmodel.algorithms.reductions import (
    ArrayOperations,
    Recurrence,
    Reduction,
    SinglePass,
    Split,
    WarpShuffle,
)
from mmaprobe.smtmodel.base.errors import ParameterError, UnknownNameError
from mmaprobe.smtmodel.plans.multiword import SCHEMES, Multiword, given_values, is_scheme
from mmaprobe.smtmodel.plans.multiword import reference_of as reference_of

REDUCTIONS: dict[str, type[Reduction]] = {row.name: row for row in (SinglePass, Recurrence, Split, WarpShuffle)}
ALGORITHMS: dict[str, type[Multiword] | type[Reduction]] = {**SCHEMES, **REDUCTIONS}


@lru_cache(maxsize=1024)
def parse_reduction(text: str) -> Reduction:
    """An algorithm for sums of numbers, such as `single-pass@chain=5`. Raises UnknownNameError and ParameterError."""
    name = text.partition("@")[0].strip().lower()
    if is_scheme(text):
        raise ParameterError(name, "an algorithm for products, where a sum of numbers is needed")
    if name not in REDUCTIONS:
        raise UnknownNameError("algorithm", name, ALGORITHMS, hint=" (`mmaprobe list algorithms` shows all)")
    return REDUCTIONS[name](**given_values(text, REDUCTIONS[name]))


def sum_of_array(algorithm: Reduction, numbers: NDArray[Any]) -> int:
    """The sum of a flat array of f32 patterns (unsigned integers), as a pattern of the algorithm's `result_format`.
    Raises ParameterError for an empty array or one of another shape."""
    if numbers.ndim != 1 or not len(numbers):
        raise ParameterError("numbers", f"shape {numbers.shape}: a flat array of at least one is needed")
    return int(algorithm.evaluate(ArrayOperations(), numbers)[0])
