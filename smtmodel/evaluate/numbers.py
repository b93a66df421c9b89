"""Conversions between arrays of floating-point numbers, in the types of NumPy or ml_dtypes, and bit patterns."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.smtmodel.arithmetic import ieee
from mmaprobe.smtmodel.arithmetic.decode import unpack
from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.arithmetic.rounding import Rounding, Target
from mmaprobe.smtmodel.base.errors import InexactError, ParameterError
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.evaluate.tiles import Matrix, is_wider, kind_of

_CARRIER = ArrayCarrier()
RAW_BYTE, RAW_PAIR = np.dtype("V1"), np.dtype("V2")  # NumPy's types in files for ml_dtypes' 8-bit types, and for bf16
#: format without a type of its own -> the longer or signed format whose type its numbers have in arrays
_TRAVELS_AS = {"tf32": "f32", "e8m13": "f32", "ue4m3": "e4m3"}


def type_of(fmt: Format) -> np.dtype[Any]:
    """The type of arrays of a format's numbers. Numbers of tf32 and e8m13 are f32 with zeros at the end; for formats
    without a type in any library, as most integers, the type is the integer type of the patterns."""
    held = held_as(fmt)
    return next((kind for kind, known in _kinds() if _same_numbers(known, held)), np.dtype(kind_of(fmt)))


def held_as(fmt: Format) -> Format:
    """The format as which arrays and vectors hold numbers of a format: most often this one."""
    return format_named(_TRAVELS_AS[fmt.name]) if fmt.name in _TRAVELS_AS else fmt


def _same_numbers(fmt: Format, other: Format) -> bool:
    """Whether every pattern is the same number in two formats, whatever their names."""
    return replace(fmt, name=other.name) == other


def _kinds() -> Iterator[tuple[np.dtype[Any], Format]]:
    yield from _OWN.items()
    yield from _further().items()


def format_of(kind: np.dtype[Any]) -> Format | None:
    """The format of the numbers in arrays of a type; None for other types."""
    if kind == RAW_PAIR:
        return format_named("bf16")
    own = kind.newbyteorder("=")
    return _OWN.get(own) or _further().get(own)


def array_from(given: Any) -> NDArray[Any]:
    """The NumPy array of an object with `__array__` or DLPack. PyTorch refuses to convert a tensor of a type that NumPy
    lacks; if ml_dtypes has a type of this name, the tensor's bits are read as this type. Raises the libraries'
    errors."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(given, torch.Tensor) and not given.requires_grad:
        import ml_dtypes

        if (kind := getattr(ml_dtypes, str(given.dtype).removeprefix("torch."), None)) is not None:
            return array_from(given.view((torch.uint8, torch.int16)[given.itemsize - 1])).view(kind)
    if hasattr(given, "__array__") or not hasattr(given, "__dlpack__"):
        return np.asarray(given)
    return np.from_dlpack(given)


def with_bf16(matrix: Matrix) -> Matrix:
    """An array read from a file, with pairs of bytes read as bf16, whose type NumPy's files lose."""
    return matrix.view(type_of(format_named("bf16"))) if matrix.dtype == RAW_PAIR else matrix


def from_numbers(matrix: Matrix, fmt: Format, convert: Rounding | None = None) -> Matrix:
    """The bit patterns of a matrix. Unsigned integers are patterns already. Floating-point numbers must be numbers of
    the format, unless `convert` is the mode in which they are rounded. Two raw bytes, as in NumPy's files, are read as
    bf16, one raw byte as a pattern. Raises ParameterError, and InexactError for a number that the format lacks."""
    matrix = with_bf16(matrix)
    if matrix.dtype == RAW_BYTE:
        return _checked_patterns(matrix.view("u1"), fmt)
    if matrix.dtype.kind == "u":
        return _checked_patterns(matrix, fmt)
    source = format_of(matrix.dtype)
    if source is None:
        known = "f16, f32, f64, a type of ml_dtypes, or bit patterns as unsigned integers"
        raise ParameterError("", f"{matrix.dtype} is none of {known}")
    patterns = matrix.astype(matrix.dtype.newbyteorder("=")).view(f"u{matrix.dtype.itemsize}")
    if _same_numbers(source, fmt):
        return patterns.astype(kind_of(fmt))
    if not fmt.fraction:
        return _power_patterns(matrix, fmt)
    if not source.fraction:
        return from_numbers(matrix.astype(np.float64), fmt, convert)
    with np.errstate(over="ignore"):
        lanes = _CARRIER.lanes(patterns.astype(np.uint64), source.width)
        rounded = ieee.convert(lanes, source, Target(fmt, convert or "nearest_even"))
        nan = np.asarray(unpack(lanes, source).is_nan.node)
        if not fmt.has_nan and np.any(nan):
            raise ParameterError("", f"{fmt.name} has no NaN")
        if not fmt.signed and np.any(unpack(lanes, source).sign.node):
            raise ParameterError("", f"{fmt.name} has no negative numbers")
        if convert is None:
            exact = np.asarray(ieee.convert(rounded, fmt, Target(source, "nearest_even")).eq(lanes).node)
            _check_exact(matrix, np.broadcast_to(exact | nan, matrix.shape), fmt)
    return np.broadcast_to(np.asarray(rounded.node), matrix.shape).astype(kind_of(fmt))


def check_convert(matrices: Iterable[Matrix], convert: str | None) -> None:
    """Raises ParameterError for a rounding `convert` if all matrices are bit patterns, which are never rounded."""
    if convert is not None and all(side.dtype == RAW_BYTE or side.dtype.kind == "u" for side in matrices):
        raise ParameterError("convert", "bit patterns are taken as they are, and none is rounded: leave it out")


def nans(patterns: Matrix, fmt: Format) -> NDArray[np.bool_]:
    """Which patterns are NaNs."""
    if fmt.nan_for_negative_zero:
        return np.asarray(patterns == np.uint64(fmt.nan))
    fields = (patterns & np.uint64((1 << fmt.field_width) - 1)) >> np.uint64(fmt.padding)
    return np.asarray(fields > np.uint64(fmt.last_field))


def same_results(one: Matrix, other: Matrix, fmt: Format) -> NDArray[np.bool_]:
    """Which patterns are the same result; all NaNs are the same result, whatever their patterns."""
    return np.asarray((one == other) | (nans(one, fmt) & nans(other, fmt)))


def steps_between(one: Matrix, other: Matrix, fmt: Format) -> NDArray[np.uint64]:
    """How many steps from one number of a format to the next lie between the numbers of two arrays of patterns. Both
    zeros are one place, infinities are the outermost ones, and a NaN may be anywhere."""
    places = [_places(side.astype(np.uint64), fmt) for side in (one, other)]
    return np.maximum(*places) - np.minimum(*places)  # up to 2^64 - 1


def _places(patterns: Matrix, fmt: Format) -> NDArray[np.uint64]:
    """Integers in the order of the numbers: of a format with a sign, 2^63 stands for zero."""
    zero = np.uint64(fmt.signed << 63)
    if fmt.complement:
        unread = 64 - fmt.width
        return np.asarray(((patterns << np.uint64(unread)).view(np.int64) >> unread).view(np.uint64) ^ zero)
    fields = (patterns & np.uint64((1 << fmt.field_width) - 1)) >> np.uint64(fmt.padding)
    negative = (patterns >> np.uint64(fmt.field_width) & np.uint64(fmt.signed)) != 0
    return np.where(negative, zero - fields, zero + fields)


def without_payload(patterns: Matrix, fmt: Format) -> Matrix:
    """The patterns, with one pattern for all NaNs."""
    return np.where(nans(patterns, fmt), np.uint64(fmt.nan), patterns)


def _checked_patterns(patterns: Matrix, fmt: Format) -> Matrix:
    """Returns a matrix of patterns. Raises ParameterError if its type is too narrow for the format's patterns, or a
    pattern has more bits than the format."""
    wanted = kind_of(fmt)
    if patterns.dtype.itemsize < np.dtype(wanted).itemsize:
        raise ParameterError(
            "", f"{patterns.dtype} is too narrow for patterns of {fmt.name}: {np.dtype(wanted)} is wanted"
        )
    if is_wider(patterns, fmt):
        wanted = f"bit patterns of {fmt.name} are wanted"
        raise ParameterError("", f"a pattern is wider than the {fmt.width} bits of {fmt.name}: {wanted}")
    return patterns


def _check_exact(matrix: Matrix, exact: NDArray[np.bool_], fmt: Format) -> None:
    """Raises InexactError, with the first number that is not exact in the format, unless all are."""
    if not exact.all():
        place = np.argwhere(~exact)[0]
        where = f" at [{', '.join(map(str, place))}]" if place.size else ""
        raise InexactError(f"{matrix[tuple(place)]}{where} is not exact in {fmt.name}")


def _power_patterns(matrix: Matrix, fmt: Format) -> Matrix:
    """The patterns of a matrix in a format of powers of two. Raises ParameterError for other numbers."""
    with np.errstate(invalid="ignore"):
        scales = matrix.astype(type_of(fmt))
        if not np.all((scales.astype(np.float64) == matrix.astype(np.float64)) | np.isnan(matrix)):
            raise ParameterError("", f"{fmt.name} has powers of two alone, 2^{fmt.emin} to 2^{fmt.emax}")
    return scales.view(kind_of(fmt))


def to_numbers(patterns: Matrix, fmt: Format) -> Matrix:
    """The numbers of patterns, in the format's type (`type_of`)."""
    return patterns.view(type_of(fmt))


def in_f64(patterns: Matrix, fmt: Format) -> NDArray[np.float64]:
    """The numbers of patterns in f64, of which every format is a subset."""
    words = np.ascontiguousarray(patterns, kind_of(fmt))
    with np.errstate(over="ignore", invalid="ignore"):
        if type_of(fmt) != words.dtype and fmt.signed:
            return np.asarray(to_numbers(words, fmt).astype(np.float64))
        lanes = _CARRIER.lanes(words.astype(np.uint64), fmt.width)
        wide = ieee.convert(lanes, fmt, Target(format_named("f64"), "nearest_even"))
    return np.broadcast_to(np.asarray(wide.node, dtype=np.uint64), words.shape).copy().view(np.float64)


#: the types of NumPy, each with its format
_OWN = {
    np.dtype(kind): format_named(name)
    for name, kind in {
        "f64": np.float64, "f32": np.float32, "f16": np.float16,
        "int8": np.int8, "int16": np.int16, "int32": np.int32,
    }.items()
}  # fmt: skip


@cache
def _further() -> dict[np.dtype[Any], Format]:
    """The types of ml_dtypes, each with its format. The library is imported here, since it takes 4 MB and few commands
    need it."""
    import ml_dtypes

    kinds = {
        "bf16": ml_dtypes.bfloat16,
        "e4m3": ml_dtypes.float8_e4m3fn,
        "e5m2": ml_dtypes.float8_e5m2,
        "e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
        "e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
        "e3m2": ml_dtypes.float6_e3m2fn,
        "e2m3": ml_dtypes.float6_e2m3fn,
        "e2m1": ml_dtypes.float4_e2m1fn,
        "ue8m0": ml_dtypes.float8_e8m0fnu,
        "e3m4_ieee": ml_dtypes.float8_e3m4,
        "e4m3_ieee": ml_dtypes.float8_e4m3,
        "e4m3b11_negative_zero": ml_dtypes.float8_e4m3b11fnuz,
        "int4": ml_dtypes.int4,
    }
    return {np.dtype(kind): format_named(name) for name, kind in kinds.items()}
