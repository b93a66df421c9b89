"""Vectors as a C header: arrays of bit patterns, to be compiled into test benches and kernels."""

from __future__ import annotations

from collections.abc import Sequence

from mmaprobe.queries.compare.observed import ObservedVector
from mmaprobe.reports.exports.export import Export
from mmaprobe.smtmodel import VERSION
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.base.escapes import c_comment, text_bytes
from mmaprobe.smtmodel.evaluate.cuda_text import word_of
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import padded
from mmaprobe.smtmodel.inputs.vectors import to_hex
from mmaprobe.smtmodel.operand import NAMED

LINE = 116  # characters of a line of numbers


def header(rows: Sequence[ObservedVector], name: str) -> Export:
    """C99 arrays of unsigned integers, each of the smallest type that holds its format:
    `mmaprobe_a[vectors][products]`, likewise b, c and further operands; `mmaprobe_d[vectors]` has the observed results,
    or the model's where none was observed. Raises InputError unless all vectors are of one model.
    """
    model = model_of(rows, name, "a C header")
    lines = [
        f"/* {len(rows)} vectors of {c_comment(model.reference)}, written by mmaprobe {VERSION}. */",
        "#ifndef MMAPROBE_VECTORS_H",
        "#define MMAPROBE_VECTORS_H",
        "#include <stdint.h>",
        f"#define MMAPROBE_VECTORS {len(rows)}",
        f"#define MMAPROBE_PRODUCTS {model.length}",
        *([f"#define MMAPROBE_SCALES {model.scales}"] if model.scales else []),
    ]
    given = [padded(row.vector.operands, model) for row in rows]
    for (name, fmt), count in zip(model.formats.items(), filter(None, model.counts), strict=True):
        table = [one.sides[name] for one in given]
        lines += _table(name, fmt, table, 0 if NAMED[name].per == "sum" else count, fmt.name)
    note = model.d.name + ("" if model.nan is not None else "; any NaN for a NaN")
    lines += _table("d", model.d, [[row.result] for row in rows], 0, note)
    return Export(text_bytes("\n".join([*lines, "#endif"]) + "\n"))


def model_of(rows: Sequence[ObservedVector], name: str, what: str) -> Model:
    """The only model of some vectors; `what`: the file or test that needs one model, for the message. Raises
    InputError."""
    models = {row.model.reference: row.model for row in rows}
    if len(models) != 1:
        these = f"of {len(models)} models" if models else "no vector"
        raise InputError(f"{what} has the vectors of one model; {these} (--model names one)", name)
    [model] = models.values()
    return model


def _table(name: str, fmt: Format, table: Sequence[Sequence[int]], count: int, note: str) -> list[str]:
    """A static array with one number, or `count` numbers, for each vector."""
    shape = "[MMAPROBE_VECTORS]" + (f"[{count}]" if count else "")
    lines = [f"/* {c_comment(note)} */", f"static const {word_of(fmt)} mmaprobe_{name}{shape} = {{"]
    for row in table:
        lines += _wrapped([f"0x{to_hex(value, fmt)}" for value in row], count > 0)
    return [*lines, "};"]


def _wrapped(numbers: Sequence[str], braces: bool) -> list[str]:
    lines, line = [], "    {" if braces else "    "
    for number in numbers:
        if len(line) + len(number) > LINE:
            lines.append(line.rstrip())
            line = "     "
        line += f"{number}, "
    return [*lines, line.rstrip(", ") + ("}," if braces else ",")]
