"""Fused multiply-adds in the syntax of IBM's FPgen test suite (`.fptest`): `b32*+ 0 A B C -> D flags`.

Source: "Floating-Point Test-Suite for IEEE 754R", IBM Haifa, 2007, sections on syntax: operands as sign, significand in
hexadecimal and binary exponent; rounding modes >, <, 0, =0, =^; exceptions x, u, o, z, i.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from queries.compare.observed import ObservedVector
from smtmodel import ieee
from smtmodel.algebra import constant
from smtmodel.carriers.arrays import ArrayCarrier
from smtmodel.display import exact_value
from smtmodel.errors import InputError
from smtmodel.formats import Format
from smtmodel.rounding import Target

TYPES = {"f16": "b16", "f32": "b32", "f64": "b64"}
MODES = {"nearest_even": "=0", "nearest_away": "=^", "toward_zero": "0", "up": ">", "down": "<"}


def tests(rows: Sequence[ObservedVector], name: str) -> tuple[bytes, str]:
    """A line for each vector that has at most one nonzero product, and operands that d's format (f16, f32 or f64)
    represents exactly. D is the observed result, or the model's if none was observed. The second item says so where
    vectors were left out. Raises InputError if no vector fits."""
    lines = [line for row in rows if (line := _line(row)) is not None]
    if not lines:
        raise InputError(
            "no vector fits FPgen: one product, no scale factors, and operands that are numbers of a result in "
            f"{', '.join(TYPES)}",
            name,
        )
    note = f"{len(lines)} of {len(rows)} vectors; the others do not fit FPgen" if len(lines) < len(rows) else ""
    return ("\n".join(lines) + "\n").encode(), note


def _line(row: ObservedVector) -> str | None:
    model, operands = row.model, row.vector.operands
    used = [k for k, pair in enumerate(zip(operands.a, operands.b, strict=True)) if any(pair)]
    if model.d.name not in TYPES or model.scale is not None or len(used) > 1:
        return None
    k = used[0] if used else 0
    given = [(operands.a[k], model.a), (operands.b[k], model.b), (operands.c, model.c)]
    inputs = [_in_format(pattern, fmt, model.d) for pattern, fmt in given]
    if None in inputs:
        return None
    d = row.predicted if row.vector.d is None else row.vector.d
    patterns = [pattern for pattern in inputs if pattern is not None]
    texts = " ".join(operand_text(pattern, model.d) for pattern in patterns)
    flags = _flags(patterns, d, model.d)
    mode = MODES.get(model.rounding)
    if mode is None:
        return None
    return f"{TYPES[model.d.name]}*+ {mode} {texts} -> {operand_text(d, model.d)} {flags}".rstrip()


def _in_format(pattern: int, fmt: Format, target: Format) -> int | None:
    """The pattern of the same number in another format, if it has one."""
    if fmt == target:
        return pattern
    value = exact_value(pattern, fmt)
    if value == "nan":
        return target.nan
    wide = ieee.convert(constant(ArrayCarrier(), pattern, fmt.width), fmt, Target(target, "toward_zero"))
    assert wide.value is not None
    return wide.value if exact_value(wide.value, target) == value else None


def operand_text(pattern: int, fmt: Format) -> str:
    """A pattern in FPgen's syntax."""
    value, sign = exact_value(pattern, fmt), "-" if pattern & fmt.sign_bit else "+"
    if value == "nan":
        return "Q"
    if isinstance(value, str) and value.endswith("inf"):
        return f"{sign}Inf"
    if not value or value == "-0":
        return f"{sign}Zero"
    field, fraction = divmod((pattern & ~fmt.sign_bit) >> fmt.padding, 1 << fmt.fraction)
    exponent = field - fmt.bias if field else fmt.emin
    return f"{sign}{int(field > 0)}.{fraction:0{(fmt.fraction + 3) // 4}X}P{exponent}"


def _flags(inputs: Sequence[int], d: int, fmt: Format) -> str:
    """The exceptions of a multiply-add with this result."""
    a, b, c = (exact_value(pattern, fmt) for pattern in inputs)
    result = exact_value(d, fmt)
    if result == "nan":
        return "" if "nan" in (a, b, c) else "i"
    numbers = [Fraction(0) if x == "-0" else x for x in (a, b, c, result)]
    if any(isinstance(x, str) for x in numbers[:3]):
        return ""
    x, y, z = (Fraction(value) for value in numbers[:3])
    exact = x * y + z
    largest = exact_value(fmt.largest, fmt)
    assert isinstance(largest, Fraction)
    if isinstance(result, str) and result.endswith("inf"):
        return "xo"
    if numbers[3] == exact:
        return ""
    return "xo" if abs(exact) > largest else "xu" if abs(exact) < Fraction(2) ** fmt.emin else "x"
