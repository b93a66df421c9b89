"""Vectors as CSV and as NumPy arrays."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from mmaprobe.queries.compare.observed import ObservedVector
from mmaprobe.reports.exports.export import Export
from mmaprobe.smtmodel.base.escapes import text_bytes
from mmaprobe.smtmodel.inputs.vectors import SCHEMA_VERSION, to_hex
from mmaprobe.smtmodel.operand import OPERANDS

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
SIDES = [row for row in OPERANDS if row.name != "c"]


def csv_table(rows: Sequence[ObservedVector], name: str) -> Export:
    """CSV (RFC 4180) with a header: id, model, d (observed), predicted, c, a0, ..., b0, ..., scale_a0, ...; patterns
    are hexadecimal. Fields of missing products, and of d if none was observed, are empty. An apostrophe stands before
    an id that a spreadsheet would take for a formula."""
    counts = _counts(rows)
    header = ["id", "model", "d", "predicted", "c"] + [side.at(k) for side in SIDES for k in range(counts[side.name])]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(header)
    for row in rows:
        vector, model = row.vector, row.model
        d = "" if vector.d is None else to_hex(vector.d, model.d)
        name = _name(row) if isinstance(vector.id, int) else _cell(_name(row))
        fields = [name, _cell(model.reference), d]
        fields += [to_hex(row.predicted, model.d), to_hex(vector.operands.c, model.c)]
        for side in SIDES:
            digits = [to_hex(pattern, model.formats[side.name]) for pattern in vector.operands.sides[side.name]]
            fields += digits + [""] * (counts[side.name] - len(digits))
        writer.writerow(fields)
    return Export(text_bytes(out.getvalue()))


def npz_arrays(rows: Sequence[ObservedVector], name: str) -> Export:
    """Arrays with one row for each vector: `a`, `b` of shape (vectors, products); `c`, `d`, `predicted` of shape
    (vectors,); `scale_a`, `scale_b` of shape (vectors, scale factors), other operands likewise; bit patterns in the
    narrowest unsigned type, with zeros for missing products. `d_known`: whether `d` was observed; `id` and `model` are
    strings, `schema` is the version."""
    counts = _counts(rows)
    operands = [row.vector.operands for row in rows]
    arrays: dict[str, Any] = {
        "schema": np.uint64(SCHEMA_VERSION),
        "id": np.array([_name(row) for row in rows]),
        "model": np.array([row.model.reference for row in rows]),
        "c": _narrow([one.c for one in operands], max((row.model.c.width for row in rows), default=8)),
        "d_known": np.array([row.vector.d is not None for row in rows], dtype=bool),
    }
    width = max((row.model.d.width for row in rows), default=8)
    arrays["d"] = _narrow([row.vector.d or 0 for row in rows], width)
    arrays["predicted"] = _narrow([row.predicted for row in rows], width)
    for name, count in counts.items():
        formats = [fmt for row in rows if (fmt := row.model.formats.get(name))]
        table = [[*one.sides[name], *[0] * (count - len(one.sides[name]))] for one in operands]
        arrays[name] = _narrow(table, max((fmt.width for fmt in formats), default=8))
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return Export(out.getvalue())


def _counts(rows: Sequence[ObservedVector]) -> dict[str, int]:
    return {side.name: max((len(row.vector.operands.sides[side.name]) for row in rows), default=0) for side in SIDES}


def _narrow(values: Any, width: int) -> Any:
    return np.array(values, dtype=next(f"u{size}" for size in (1, 2, 4, 8) if 8 * size >= width))


def _cell(text: str) -> str:
    """A cell that no spreadsheet takes for a formula: an apostrophe precedes a character that would begin one."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _name(row: ObservedVector) -> str:
    """The id of a vector, or its line."""
    return f"line {row.vector.line}" if row.vector.id is None else str(row.vector.id)
