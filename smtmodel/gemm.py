"""Matrix products through a model, bit for bit: D = C + A * B, tiles of K chained as the instruction chains them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from smtmodel import ieee
from smtmodel.carriers.arrays import ArrayCarrier
from smtmodel.compiled import CompiledModel, compile_model
from smtmodel.dot import Model, evaluate
from smtmodel.errors import ParameterError
from smtmodel.formats import FORMATS, Format
from smtmodel.rounding import Rounding, Target

Engine = Literal["auto", "numpy", "compiled"]
Matrix = NDArray[Any]

ROWS = 128  # outputs of a strip of rows are computed together; no result depends on it
COLUMNS = 256  # of a NumPy tile
SMALL = 1 << 20  # products below which compiling does not pay

_CARRIER = ArrayCarrier()


def simulate(
    a: Matrix,
    b: Matrix,
    c: Matrix | None,
    model: Model,
    *,
    scale_a: Matrix | None = None,
    scale_b: Matrix | None = None,
    engine: Engine = "auto",
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Matrix:
    """D as bit patterns (rows x columns, unsigned integers) of patterns A (rows x K), B (K x columns) and C.

    K is cut into the model's length, the last tile filled up with zero products; each tile's result is the next
    tile's addend. `scale_a` (rows x K / scale block) and `scale_b` (K / scale block x columns) for models with scale
    factors. `progress(done, total)` counts rows. Raises ParameterError for shapes that do not fit.
    """
    c = np.zeros((a.shape[0], b.shape[1]), dtype=kind_of(model.c)) if c is None else c
    _check(a, b, c, model)
    length = model.length
    missing = -a.shape[1] % length
    left, right = np.pad(a, ((0, 0), (0, missing))), np.pad(b, ((0, missing), (0, 0)))
    scales = _scales(model, scale_a, scale_b, left.shape, right.shape)
    compiled = _compiled(engine, model, left.size * right.shape[1])
    out = np.empty(c.shape, dtype=kind_of(model.d))

    def strip(start: int) -> None:
        rows = slice(start, start + ROWS)
        running: Matrix = c[rows]
        for k in range(0, left.shape[1], length):
            x, y = left[rows, k : k + length], right[k : k + length]
            if compiled is not None:
                running = compiled.tile(x, y, running)
                continue
            block = model.scale_block
            factors = slice(k // block, (k + length) // block)
            running = _numpy_rows(model, x, y, running, scales[0][rows, factors], scales[1][factors])
        out[rows] = running

    starts = range(0, out.shape[0], ROWS)
    with ThreadPoolExecutor(max_workers=threads or os.cpu_count() or 1) as pool:
        for done, _ in enumerate(pool.map(strip, starts), start=1):
            if progress is not None:
                progress(min(done * ROWS, out.shape[0]), out.shape[0])
    return out


def kind_of(fmt: Format) -> Any:
    """The unsigned integer type that holds a format's patterns."""
    return next(
        kind for bits, kind in ((8, np.uint8), (16, np.uint16), (32, np.uint32), (64, np.uint64)) if fmt.width <= bits
    )


def _check(a: Matrix, b: Matrix, c: Matrix, model: Model) -> None:
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ParameterError("A and B", f"shapes {a.shape} and {b.shape} cannot be multiplied")
    if c.shape != (a.shape[0], b.shape[1]):
        raise ParameterError("C", f"shape {c.shape} is not that of the product, {(a.shape[0], b.shape[1])}")
    for name, side, fmt in (("A", a, model.a), ("B", b, model.b), ("C", c, model.c)):
        if side.dtype.kind != "u":
            raise ParameterError(name, "bit patterns (unsigned integers) are needed")
        if side.size and int(side.max()) >> fmt.width:
            raise ParameterError(name, f"a pattern is wider than the {fmt.width} bits of {fmt.name}")


def _scales(
    model: Model, scale_a: Matrix | None, scale_b: Matrix | None, left: tuple[int, ...], right: tuple[int, ...]
) -> tuple[Matrix, Matrix]:
    """The scale factors, filled up with zeros beside zero products; empty for models without."""
    if model.scale is None:
        if scale_a is not None or scale_b is not None:
            raise ParameterError("scale factors", f"{model.reference} takes none")
        return np.zeros((left[0], 0), dtype=np.uint64), np.zeros((0, right[1]), dtype=np.uint64)
    if scale_a is None or scale_b is None:
        raise ParameterError("scale factors", f"{model.reference} needs them on both sides")
    steps = left[1] // model.scale_block
    filled = []
    for name, side, axis, other in (("scale_a", scale_a, 1, left[0]), ("scale_b", scale_b, 0, right[1])):
        short = steps - side.shape[axis] if side.ndim == 2 else -1
        if short < 0 or side.shape[1 - axis] != other:
            raise ParameterError(name, f"shape {side.shape} does not fit one factor for each scale block")
        filled.append(np.pad(side, ((0, 0), (0, short)) if axis else ((0, short), (0, 0))))
    return filled[0], filled[1]


def _compiled(engine: Engine, model: Model, products: int) -> CompiledModel | None:
    if engine == "numpy" or (engine == "auto" and products < SMALL):
        return None
    compiled = compile_model(model)
    if compiled is None and engine == "compiled":
        raise ParameterError("engine", f"{model.reference} cannot be compiled here (no C compiler, or sums too wide)")
    return compiled


def _numpy_rows(model: Model, a: Matrix, b: Matrix, c: Matrix, scale_a: Matrix, scale_b: Matrix) -> Matrix:
    """One tile of K for a strip of rows: rows and columns broadcast, so that each element is decoded once."""
    out = np.empty(c.shape, dtype=np.uint64)
    scale = model.scale

    def lanes(side: Matrix, fmt: Format) -> Any:
        return _CARRIER.lanes(side.astype(np.uint64), fmt.width)

    for start in range(0, c.shape[1], COLUMNS):
        part = slice(start, start + COLUMNS)
        left = [lanes(a[:, k : k + 1], model.a) for k in range(a.shape[1])]
        right = [lanes(b[k : k + 1, part], model.b) for k in range(b.shape[0])]
        factors: list[list[Any]] = [[], []]
        if scale is not None:
            factors = [
                [lanes(scale_a[:, k : k + 1], scale) for k in range(scale_a.shape[1])],
                [lanes(scale_b[k : k + 1, part], scale) for k in range(scale_b.shape[0])],
            ]
        with np.errstate(over="ignore"):
            result = evaluate(model, left, right, lanes(c[:, part], model.c), *factors, traced=False).d
        out[:, part] = result.node
    return out


def from_numbers(matrix: Matrix, fmt: Format, convert: Rounding | None = None) -> Matrix:
    """Bit patterns of a matrix. Unsigned integers (and raw 1- or 2-byte records) are patterns already; floating-point
    numbers must be exact in the format unless `convert` says how to round them. Raises ParameterError."""
    if matrix.dtype.kind == "V" and matrix.dtype.itemsize in (1, 2):
        return matrix.view(f"u{matrix.dtype.itemsize}")
    if matrix.dtype.kind == "u":
        return matrix
    source = _NUMBERS.get(matrix.dtype.newbyteorder("="))
    if source is None:
        raise ParameterError("dtype", f"{matrix.dtype} is neither f16, f32, f64 nor unsigned patterns")
    patterns = matrix.astype(matrix.dtype.newbyteorder("=")).view(f"u{matrix.dtype.itemsize}").astype(np.uint64)
    if source.name == fmt.name:
        return patterns.astype(kind_of(fmt))
    with np.errstate(over="ignore"):
        lanes = _CARRIER.lanes(patterns, source.width)
        rounded = ieee.convert(lanes, source, Target(fmt, convert or "nearest_even"))
        if convert is None:
            exact = ieee.convert(rounded, fmt, Target(source, "nearest_even")).eq(lanes).node
            if not np.all(exact | np.isnan(matrix)):
                raise ParameterError("dtype", f"numbers are not exact in {fmt.name}: say how to round them (--convert)")
    return np.broadcast_to(np.asarray(rounded.node), matrix.shape).astype(kind_of(fmt))


def to_numbers(patterns: Matrix, fmt: Format) -> Matrix:
    """Floating-point numbers where NumPy has the type, else the patterns themselves."""
    name = "f32" if fmt.padding else fmt.name  # a shortened f32 travels as one
    kind = next((kind for kind, source in _NUMBERS.items() if source.name == name), None)
    return patterns if kind is None else patterns.view(kind)


_NUMBERS: dict[np.dtype[Any], Format] = {
    np.dtype(np.float16): FORMATS["f16"],
    np.dtype(np.float32): FORMATS["f32"],
    np.dtype(np.float64): FORMATS["f64"],
}
