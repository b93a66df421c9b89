"""Arguments that are arrays of numbers, from whatever holds them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.units import WantedError
from smtmodel.errors import ParameterError, UnknownNameError
from smtmodel.formats import Format
from smtmodel.numbers import RAW_BYTE, array_from, format_of, from_numbers, loaded, type_of
from smtmodel.rounding import ROUNDINGS
from smtmodel.wording import counted

WANTED = "an array of floating-point numbers (NumPy, ml_dtypes, or what has __array__ or DLPack)"
_VIEWS = "; bit patterns become numbers by a view: x.view(numpy.float16), x.view(ml_dtypes.bfloat16)"
_BYTES = (
    "; a file does not say of which type its bytes are: x.view(ml_dtypes.float8_e4m3fn), x.view(ml_dtypes.float8_e5m2)"
)


def patterns_of(name: str, given: object, fmt: Format, axes: int, convert: str | None) -> NDArray[Any]:
    """The bit patterns of an argument in a format. Raises MmaprobeError unless it is an array of numbers with that many
    axes, and for numbers that the format does not hold where no conversion is asked for."""
    if convert is not None and convert not in ROUNDINGS:
        raise UnknownNameError("rounding", str(convert), ROUNDINGS)
    array = array_of(name, given, type_of(fmt))
    if array.ndim != axes:
        wanted = f"an array of {counted(axes, 'dimension')}" if axes else "one number"
        raise ParameterError(name, f"{wanted} is wanted, not an array of the shape {array.shape}")
    try:
        return from_numbers(array, fmt, convert)
    except ParameterError as error:
        raise ParameterError(name, f"{str(error).removeprefix(f'{error.parameter}: ')}") from None


def array_of(name: str, given: object, patterns: np.dtype[Any] | None = None) -> NDArray[Any]:
    """The NumPy array of an argument: of numbers, or of the type `patterns`, which is that of bit patterns where a
    format has none of numbers. Raises MmaprobeError."""
    if np.ma.is_masked(given):
        raise ParameterError(name, "some elements are masked, which no unit knows: say what they are, x.filled(0)")
    if not (hasattr(given, "__array__") or hasattr(given, "__dlpack__")):
        raise WantedError(name, given, WANTED)
    try:
        array = loaded(array_from(given))
    except Exception as error:  # whatever a library raises where NumPy cannot have its array
        reason = " ".join(str(error).split())
        raise ParameterError(name, f"NumPy cannot read this {type(given).__name__}: {reason}") from None
    if format_of(array.dtype) is None and array.dtype != patterns:
        hint = _VIEWS if array.dtype.kind == "u" else _BYTES if array.dtype == RAW_BYTE else ""
        raise ParameterError(name, f"{WANTED} is wanted, not one of {array.dtype}{hint}")
    return array
