"""Matrices of a product in .npy files: their formats, and their bit patterns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmaprobe.cli.array_files import CONVERTED, errors_name, load_matrix
from mmaprobe.smtmodel.base.errors import InputError, ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mmaprobe.smtmodel.arithmetic.formats import Format
    from mmaprobe.smtmodel.inputs.signature import Signature


def formats_of(files: Mapping[str, Path], formats: str | None, instead: str = "") -> Signature:
    """The formats of matrices, from `formats` (`a,b,d`, or `a,b,c,d` with C) or from the types of the numbers in the
    files. `files`: by name: a, b, d and, if given, c and d2. `instead`: the text of an alternative to --formats. Raises
    InputError or ParameterError."""
    from mmaprobe.smtmodel.evaluate.numbers import format_of
    from mmaprobe.smtmodel.inputs.signature import Signature, parse_signature

    if formats is not None:
        given = parse_signature(formats, 1)
        if given.addend != ("c" in files):
            raise ParameterError("--formats", "one for each matrix: a,b,d, or a,b,c,d where C is given")
        return given
    named = {}
    for name, path in files.items():
        kind = load_matrix(path, mapped=True).dtype
        if (fmt := format_of(kind)) is None:
            wanted = f"give --formats {'a,b,c,d' if 'c' in files else 'a,b,d'}{instead}"
            raise InputError(f"the type {kind} of the numbers has no format: {wanted}", str(path))
        named[name] = fmt
    if named["d"] != named.get("d2", named["d"]):
        first, second = named["d"].name, named["d2"].name
        raise InputError(
            f"its numbers are {second}, those of {files['d']} {first}, and results of one format are compared: "
            "`mmaprobe identify --gemm --device recorded:A,B,D` says what gives each", str(files["d2"])
        )  # fmt: skip
    return Signature(named["a"], named["b"], named.get("c", named["d"]), named["d"], 1, "c" in files)


def patterns_of(
    path: Path, fmt: Format, convert: Any = None, wanted: str = CONVERTED, bias: bool = False
) -> NDArray[Any]:
    """The bit patterns of the matrix in a file; with `bias`, a row of numbers will do. `convert`: the rounding of
    numbers that the format does not hold; without it they are an error, and `wanted` is the advice in its message.
    Raises InputError."""
    from mmaprobe.smtmodel.evaluate.numbers import from_numbers

    with errors_name(str(path), wanted=wanted):
        patterns = from_numbers(load_matrix(path), fmt, convert)
    if not (patterns.ndim == 2 or (bias and patterns.ndim < 2)) or (patterns.size and int(patterns.max()) >> fmt.width):
        raise InputError(f"a matrix of {fmt.name} is needed, two axes and {fmt.width} bits", str(path))
    return patterns
