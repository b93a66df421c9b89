"""Sparse instructions: each has the row of a dense instruction with the same input formats.

A row of A keeps two of each four elements, in tf32 one of each two (PTX ISA, "mma.sp", "wgmma.mma_async.sp"; CDNA3 ISA,
V_SMFMAC). A has K / 2 elements in a row, and the metadata gives the place of each element in its group. No publication
says how a sparse instruction adds. The rows here are inferred: a sparse instruction adds as the dense instruction does,
in steps of as many places, where the places that are not kept hold zeros. The question `sparse-steps` has another
reading, in steps of as many kept elements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

import numpy as np

from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.tiles import Matrix, kind_of, product_shape
from mmaprobe.smtmodel.tables.instruction import Instruction
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS

NOTE = "as {} adds, zeros in the places that the metadata leaves out"
UNITS = ("mma_sp", "wgmma_sp", "smfmac")
_K = re.compile(r"k[0-9]+")
_FP8 = ("e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz")
_SHAPES = {"32x32x8": "32x32x16", "16x16x16": "16x16x32", "32x32x16": "32x32x32", "16x16x32": "16x16x64"}  # of CDNA3


@cache
def sparse_rows() -> Mapping[str, Instruction]:
    """The row of each sparse instruction by reference, made from the row of the dense instruction with the same K or,
    if there is no such instruction, with K / 2."""
    rows = {}
    for row in INSTRUCTIONS.values():
        if reference := _sparse_name(row):
            arch, unit, name = reference.split("/")
            dense = INSTRUCTIONS.get(f"{arch}/{unit.removesuffix('_sp')}/{name}", row)
            k, source = 2 * row.length, replace(row.source, note=NOTE.format(dense.reference))
            rows[reference] = replace(
                dense, unit=unit, name=name, shape=(*row.shape[:2], k), values={**dense.values, "length": k},
                source=source, origin="inferred",
            )  # fmt: skip
    return rows


def _sparse_name(row: Instruction) -> str | None:
    """The reference of the sparse instruction that keeps as many products as a dense instruction has; None if no such
    sparse instruction exists."""
    narrow, fp8 = row.a in ("f16", "bf16", "tf32"), row.a in _FP8 and row.b in _FP8
    if row.emulated or row.scale or not (narrow or (fp8 and row.length in (16, 32))):
        return None
    if row.unit in ("mma", "wgmma") and row.arch not in ("volta", "turing") and (narrow or row.length == 32):
        return f"{row.arch}/{row.unit}_sp/{_K.sub(f'k{2 * row.length}', row.name, count=1)}"
    shape, _, formats = row.name.removeprefix("f32_").partition("_")
    if (row.arch, row.unit) == ("cdna3", "mfma") and row.a != "tf32" and shape in _SHAPES:
        return f"cdna3/smfmac/f32_{_SHAPES[shape]}_{formats}"
    return None


def is_sparse(reference: str) -> bool:
    """Whether a reference (perhaps with changed parameters after @) names a sparse instruction."""
    return reference.strip().lower().partition("@")[0] in sparse_rows()


def spread(kept: Matrix, metadata: Matrix, fmt: Format) -> tuple[Matrix, Matrix]:
    """The whole matrix A (rows x K, with zeros at places that are not kept), and a mask of the kept elements (rows x
    K). `kept`: patterns of the kept elements (rows x K / 2). `metadata`: the place of each kept element in its group
    (same shape). Raises ParameterError for metadata that does not fit."""
    group = 2 if fmt == FORMATS["tf32"] else 4
    half = group // 2
    if metadata.shape != kept.shape or kept.shape[1] % half:
        raise ParameterError(
            "metadata", f"its shape {metadata.shape} and A's {kept.shape} are to be equal, of rows in groups of {half}"
        )
    places = metadata.astype(np.int64).reshape(len(kept), -1, half)
    rising = (np.diff(places, axis=2) > 0).all()
    if not rising or places.min(initial=0) < 0 or places.max(initial=0) >= group:
        raise ParameterError("metadata", f"the places of a group are {half} of 0 to {group - 1}, rising")
    columns = (places + group * np.arange(places.shape[1])[:, None]).reshape(kept.shape)
    whole = np.zeros((len(kept), 2 * kept.shape[1]), dtype=kind_of(fmt))
    there = np.zeros(whole.shape, dtype=bool)
    np.put_along_axis(whole, columns, kept, axis=1)
    np.put_along_axis(there, columns, True, axis=1)
    return whole, there


def sparse_product(
    kept: Matrix, metadata: Matrix, b: Matrix, c: Matrix | None, model: Model, multiply: Callable[..., Matrix]
) -> Matrix:
    """D (rows x columns) of the kept elements of A (rows x K / 2), their places in groups (`metadata`, same shape), B
    (K x columns) and C. `multiply(A, B, C)` computes the rows that keep the same places. In B, zeros replace the
    elements that these rows do not read, so that an infinity or NaN there has no effect. Raises ParameterError as
    `spread` does and for shapes that do not fit."""
    whole, there = spread(kept, metadata, model.a)
    shape = product_shape(whole, b)
    patterns, which = np.unique(there, axis=0, return_inverse=True)
    out = np.empty(shape, dtype=kind_of(model.d))
    for number, pattern in enumerate(patterns):
        rows = which.reshape(-1) == number
        addend = c if c is None or len(c) != len(whole) else c[rows]
        out[rows] = multiply(whole[rows], np.where(pattern[:, None], b, b.dtype.type(0)), addend)
    return out
