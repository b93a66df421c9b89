"""Arguments that are arrays of numbers: NumPy arrays, and objects of other libraries with __array__ or DLPack."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.named import WantedError
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import ROUNDINGS, Rounding, mode_named
from mmaprobe.smtmodel.base.errors import InexactError, ParameterError, UnknownNameError
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.numbers import (
    RAW_BYTE,
    array_from,
    check_convert,
    format_of,
    from_numbers,
    to_numbers,
    type_of,
    with_bf16,
)
from mmaprobe.smtmodel.evaluate.tiles import kind_of

WANTED = "an array of floating-point numbers (NumPy, ml_dtypes, or what has __array__ or DLPack)"
_VIEWS = "; bit patterns become numbers by a view: x.view(numpy.float16), x.view(ml_dtypes.bfloat16)"
_BYTES = (
    "; a file does not say of which type its bytes are: x.view(ml_dtypes.float8_e4m3fn), x.view(ml_dtypes.float8_e5m2)"
)

_MAKE = "; numpy.array(x, numpy.float32) makes one"
_CAST = "; x.astype(numpy.float32) makes one"
_KINDS = {"u": _VIEWS, "i": _CAST, "b": _CAST, "f": _CAST}  # by the kind of a NumPy type; `f` is only long double here
_AXES = {(2, 1): "; mmaprobe.dot takes 1", (1, 2): "; mmaprobe.matmul takes 2"}


def rounding_of(convert: object) -> Rounding | None:
    """The rounding that an argument names, by its name or its short name (`rne`, `rtz`). Raises MmaprobeError."""
    rounding = mode_named(convert) if isinstance(convert, str) else convert
    if rounding is not None and rounding not in ROUNDINGS:
        raise UnknownNameError("rounding", str(convert), ROUNDINGS)
    return rounding


def patterns_of(
    name: str, given: object, fmt: Format, axes: int, convert: str | None, most: int | None = None
) -> NDArray[Any]:
    """The bit patterns of an argument in a format, in the argument's shape. Raises MmaprobeError unless the argument is
    an array of numbers with `axes` axes (or up to `most` axes, if `most` is given), and for numbers that the format
    does not hold if `convert` names no rounding."""
    rounding = rounding_of(convert)
    array = array_of(name, given, type_of(fmt))
    if not axes <= array.ndim <= (axes if most is None else most):
        wanted = f"an array of {counted(axes, 'dimension')}" if axes else "one number"
        hint = _AXES.get((axes, array.ndim), "")
        raise ParameterError(name, f"{wanted} is wanted, not an array of the shape {array.shape}{hint}")
    try:
        return from_numbers(array, fmt, rounding)
    except InexactError as error:
        raise ParameterError(name, error.asking("say how to round (convert='nearest_even', ...)")) from None
    except ParameterError as error:
        raise ParameterError(name, error.message) from None


def numbers_of(patterns: Sequence[int] | NDArray[Any], fmt: Format) -> NDArray[Any]:
    """Patterns as numbers, in the type of their format."""
    return to_numbers(np.array(patterns, dtype=kind_of(fmt)), fmt)


def check_rounded(given: Sequence[Any], convert: str | None) -> None:
    """Raises MmaprobeError for a conversion of arguments that are all bit patterns."""
    arrays = [array_from(one) for one in given if hasattr(one, "__array__") or hasattr(one, "__dlpack__")]
    check_convert(arrays, convert)


def array_of(name: str, given: object, patterns: np.dtype[Any] | None = None) -> NDArray[Any]:
    """The NumPy array of an argument: numbers, or values of the type `patterns`, which holds bit patterns of a format
    that NumPy has no numbers of. Raises MmaprobeError."""
    if np.ma.is_masked(given):
        raise ParameterError(name, "some elements are masked, which no unit knows: say what they are, x.filled(0)")
    if not (hasattr(given, "__array__") or hasattr(given, "__dlpack__")):
        raise WantedError(name, given, WANTED, _MAKE if isinstance(given, (list, tuple, float, int)) else "")
    try:
        array = with_bf16(array_from(given))
    except Exception as error:  # a library may raise anything when NumPy asks for its array
        reason = " ".join(str(error).split())
        raise ParameterError(name, f"NumPy cannot read this {type(given).__name__}: {reason}") from None
    if format_of(array.dtype) is None and array.dtype != patterns:
        hint = _BYTES if array.dtype == RAW_BYTE else _KINDS.get(array.dtype.kind, "")
        raise ParameterError(name, f"{WANTED} is wanted, not one of {array.dtype}{hint}")
    return array
