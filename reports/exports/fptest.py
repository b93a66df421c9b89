"""Fused multiply-adds in the syntax of IBM's FPgen test suite (`.fptest`): `b32*+ 0 A B C -> D flags`; of a unit that
reads no c, products: `b32* 0 A B -> D flags`.

Source: "Floating-Point Test-Suite for IEEE 754R", IBM Haifa, 2007, sections on syntax: operands as sign, significand in
hexadecimal and binary exponent; rounding modes >, <, 0, =0, =^; exceptions x, u, o, z, i. Flags are those of IEEE
754-2019, section 7. It leaves to each processor whether tininess is detected before or after rounding; the first lines
of a file, which begin with #, say which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Literal

from mmaprobe.queries.compare.observed import ObservedVector
from mmaprobe.reports.exports.export import Export
from mmaprobe.smtmodel import nodes
from mmaprobe.smtmodel.arithmetic import ieee
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import Rounding, Target
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.carriers.algebra import constant
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.exceptions import EXCEPTIONS, INEXACT, INVALID, OVERFLOW, UNDERFLOW, exceptions_in
from mmaprobe.smtmodel.nodes.element import flushed_in
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.round import Tiny

TYPES = {"f16": "b16", "f32": "b32", "f64": "b64"}
MODES: dict[Rounding, str] = {"nearest_even": "=0", "nearest_away": "=^", "toward_zero": "0", "up": ">", "down": "<"}
Tininess = Literal["after", "before"]
#: when units that replace tiny results by zeros detect tininess
FLUSHES: dict[Tiny, Tininess] = {"flush_after": "after", "flush_before": "before"}
LETTERS = dict(zip(EXCEPTIONS, "xuozi", strict=True))
#: what a sum of products and c has not
OTHERS = (nodes.Largest, nodes.Literal, nodes.Quotient, nodes.Recombined, nodes.Relu, nodes.Residue, nodes.Shared)
HEADER = """# A * B + C -> D, as observed, else as the model gives it
# flags of IEEE 754-2019, 7: x inexact, u underflow (tiny and inexact), o overflow, i invalid
"""


def tests(rows: Sequence[ObservedVector], name: str, tininess: Tininess | None) -> Export:
    """A line for each vector that has at most one nonzero product, and operands that d's format (f16, f32 or f64)
    represents exactly, of a unit that adds products and c alone. D is the observed result, or the model's if none was
    observed. `tininess`: when tininess is detected, unless the unit determines it (None: after rounding). The note has
    the number of vectors left out, if any. Raises InputError if no vector fits, or if a unit contradicts `tininess`."""
    lines, detected = list[str](), dict[Tininess, dict[str, None]]()
    for row in rows:
        when = _tininess(row.model, tininess, name)
        if (line := _line(row, when)) is not None:
            lines.append(line)
            detected.setdefault(when, {})[row.model.reference] = None
    if not lines:
        raise InputError(
            "no vector fits FPgen: it needs a unit that adds products and c alone, one product, no scale factors, and "
            f"operands in the format of a result in {', '.join(TYPES)}",
            name,
        )
    note = f"{len(lines)} of {len(rows)} vectors; the others do not fit FPgen" if len(lines) < len(rows) else ""
    heads = HEADER if all(row.model.addend for row in rows) else HEADER.replace(" ->", ", and A * B, ->", 1)
    lines_of_tininess = [f"# tininess is detected {when} rounding" for when in detected]
    if len(lines_of_tininess) > 1:
        lines_of_tininess = [
            f"{line}: {', '.join(models)}" for line, models in zip(lines_of_tininess, detected.values(), strict=True)
        ]
    return Export((heads + "\n".join([*lines_of_tininess, *lines]) + "\n").encode(), note)


def _tininess(model: Model, wanted: Tininess | None, name: str) -> Tininess:
    """When a unit detects tininess. Raises InputError if this contradicts `wanted`."""
    own = FLUSHES.get(model.unit.rounding.subnormals)
    if own is not None and wanted is not None and own != wanted:
        reason = f"it makes results zero that are tiny {own} rounding"
        raise InputError(f"--tininess {wanted}: {model.reference or 'the unit'} says {own}, as {reason}", name)
    return own or wanted or "after"


def _line(row: ObservedVector, tininess: Tininess) -> str | None:
    model, operands = row.model, row.vector.operands
    ignored = model.unit.ignored()
    pairs = enumerate(zip(operands.a, operands.b, strict=True))
    used = [k for k, pair in pairs if any(pair) and k not in ignored]
    mode = next((one for one in MODES if one == model.rounding), None)
    if model.d.name not in TYPES or len(model.formats) > 3 or len(used) > 1 or mode is None:
        return None
    if any(isinstance(node, OTHERS) for node in walk(model.unit.result)):
        return None
    k = used[0] if used else next(k for k in range(model.length) if k not in ignored)
    given = {"a": (operands.a[k], model.a), "b": (operands.b[k], model.b), "c": (operands.c, model.c)}
    inputs = [_in_format(pattern, fmt, model.d) for pattern, fmt in given.values()]
    if None in inputs:
        return None
    flushed = flushed_in(model.unit.result)
    read = [
        0 if operand in flushed and _is_subnormal(pattern, fmt) else own
        for (operand, (pattern, fmt)), own in zip(given.items(), inputs, strict=True)
        if own is not None
    ]
    shown = inputs if model.addend else inputs[:2]
    texts = " ".join(operand_text(pattern, model.d) for pattern in shown if pattern is not None)
    operation = "*+" if model.addend else "*"
    flags = "".join(LETTERS[name] for name in exceptions_in(signalled(read, row.result, model.d, mode, tininess)))
    start = f"{TYPES[model.d.name]}{operation} {MODES[mode]}"
    return f"{start} {texts} -> {operand_text(row.result, model.d)} {flags}".rstrip()


def _in_format(pattern: int, fmt: Format, target: Format) -> int | None:
    """The pattern of the same number in another format; None if the format does not hold it."""
    if fmt == target:
        return pattern
    value = exact_value(pattern, fmt)
    if value == "nan":
        return target.infinity | 1 << target.padding if _is_signalling(pattern, fmt) else target.nan
    wide = ieee.convert(constant(ArrayCarrier(), pattern, fmt.width), fmt, Target(target, "toward_zero"))
    assert wide.value is not None
    return wide.value if exact_value(wide.value, target) == value else None


def _is_subnormal(pattern: int, fmt: Format) -> bool:
    return 0 < (pattern & ~fmt.sign_bit) >> fmt.padding < 1 << fmt.fraction


def _is_signalling(pattern: int, fmt: Format) -> bool:
    """Whether a pattern is a signalling NaN, by its first fraction bit (IEEE 754-2019, 6.2.1)."""
    quiet = 1 << fmt.fraction + fmt.padding - 1
    return fmt.specials == "ieee" and exact_value(pattern, fmt) == "nan" and not pattern & quiet


def operand_text(pattern: int, fmt: Format) -> str:
    """A pattern in FPgen's syntax."""
    value, sign = exact_value(pattern, fmt), "-" if pattern & fmt.sign_bit else "+"
    if value == "nan":
        return "S" if _is_signalling(pattern, fmt) else "Q"
    if isinstance(value, str) and value.endswith("inf"):
        return f"{sign}Inf"
    if not value or value == "-0":
        return f"{sign}Zero"
    field, fraction = divmod((pattern & ~fmt.sign_bit) >> fmt.padding, 1 << fmt.fraction)
    exponent = field - fmt.bias if field else fmt.emin
    return f"{sign}{int(field > 0)}.{fraction:0{(fmt.fraction + 3) // 4}X}P{exponent}"


def signalled(inputs: Sequence[int], d: int, fmt: Format, mode: Rounding, tininess: Tininess) -> int:
    """The exceptions of a multiply-add with this result, which may differ from IEEE 754's, as the bits of `EXCEPTIONS`.
    It overflows if the result rounded with unbounded exponents exceeds the largest number, or if the unit gives
    infinity. It is tiny if the exact result, or the result rounded with unbounded exponents (by `tininess`), lies below
    the smallest normal number (IEEE 754-2019, 7.4 and 7.5)."""
    a, b, c = (exact_value(pattern, fmt) for pattern in inputs)
    result = exact_value(d, fmt)
    if result == "nan":
        quiet = "nan" in (a, b, c) and not any(_is_signalling(pattern, fmt) for pattern in inputs)
        return 0 if quiet else INVALID
    numbers = [Fraction(0) if x == "-0" else x for x in (a, b, c, result)]
    if any(isinstance(x, str) for x in numbers[:3]):
        return 0
    x, y, z = (Fraction(value) for value in numbers[:3])
    exact, rounded = x * y + z, _unbounded(inputs, fmt, mode)
    if isinstance(numbers[3], str) or abs(rounded) > fmt.most:
        return INEXACT | OVERFLOW
    if numbers[3] == exact:
        return 0
    tiny = abs(exact if tininess == "before" else rounded) < Fraction(2) ** fmt.emin
    return INEXACT | (UNDERFLOW if tiny else 0)


def _unbounded(inputs: Sequence[int], fmt: Format, mode: Rounding) -> Fraction:
    """A multiply-add of numbers, rounded to the format's precision with exponents wide enough for every product and sum
    of the format's numbers."""
    wide = replace(fmt, name="unbounded", exponent=fmt.exponent + 2, bias=(2 << fmt.exponent) - 1)
    a, b, c = (constant(ArrayCarrier(), _in_format(pattern, fmt, wide) or 0, wide.width) for pattern in inputs)
    pattern = ieee.fma(a, b, c, wide, mode).value
    assert pattern is not None
    value = exact_value(pattern, wide)
    return value if isinstance(value, Fraction) else Fraction(0)
