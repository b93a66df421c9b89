"""Matrix products through a plan, or through a model that takes K in tiles, bit for bit."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import Literal

import numpy as np

from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.libraries import compiler, failure
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import check_addend
from mmaprobe.smtmodel.evaluate.tiles import Matrix, is_wider, kind_of, product_shape
from mmaprobe.smtmodel.operand import FACTORS, NAMED
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.matrices import Job, Patterns, Strip
from mmaprobe.smtmodel.plans.tape import BLOCK, Tape, UncompiledError, block_of, noted

#: who computes: NumPy, generated C, or ("auto") the quicker one of these; all give the same bits
Engine = Literal["auto", "numpy", "compiled"]
# engine "auto" compiles a plan for at least SMALL products, or for at least LONG instructions one after another (NumPy
# takes some milliseconds for each instruction, however few the rows)
SMALL = 1 << 20
LONG = 512

#: an engine of the caller: D as patterns, from a plan, patterns A, B and C, scale factors and `progress`
Product = Callable[[Plan, Matrix, Matrix, Matrix, Mapping[str, Matrix], Callable[[int, int], None] | None], Matrix]

ROWS = 128  # the number of rows that NumPy computes together; the results are the same for any number


def simulate(
    a: Matrix,
    b: Matrix,
    c: Matrix | None,
    model: Model | Plan,
    *,
    engine: Engine | Product = "auto",
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    scales: Mapping[str, Matrix] | None = None,
    times: int = 1,
) -> Matrix:
    """The matrix D of bit patterns (rows x columns, unsigned integers), computed from patterns A (rows x K), B (K x
    columns) and C (rows x columns, or one row or one column as `addend` describes).

    A model takes K in tiles of its length; zero products fill up the last tile, and each tile's result is the next
    tile's addend. `scales`: for models with scale factors, `scale_a` (rows x K / scale block) and `scale_b` (K / scale
    block x columns). `progress(done, total)` counts rows. `times`: the number of matrix products of these shapes that
    the caller computes; engine "auto" compiles for a larger number. Raises ParameterError for shapes that do not fit,
    for patterns wider than their formats, and for a C with nonzero patterns where the model does not read c.
    """
    plan = Plan.chained(model) if isinstance(model, Model) else model
    if not isinstance(plan, Plan):
        how = "mmaprobe.smtmodel.tables.reference has parse_reference and parse_plan_path; mmaprobe.matmul takes names"
        raise ParameterError("model", f"a Model or a Plan is wanted, not {type(model).__name__}: {how}")
    check_addend(plan, c is not None and bool(c.any()), "C")
    c = addend(np.zeros((1, 1), dtype=kind_of(plan.c)) if c is None else c, product_shape(a, b))
    _check(a, b, c, plan)
    scales = filled_scales(plan, scales or {}, a, b)
    if callable(engine):
        if not a.size or not b.size:
            return simulate(a, b, c, model, scales=scales)
        with plan.named():
            return engine(plan, a, b, np.ascontiguousarray(c), scales, progress)
    out, threads = np.empty(c.shape, dtype=kind_of(plan.d)), threads or os.cpu_count() or 1
    with plan.named():
        work = _tape(plan, a.shape[1], a.size * b.shape[1], engine, times) or Job(plan, a, b, scales)
        sides = None if isinstance(work, Job) else work.read(a[None], b[None])
        size = (ROWS, max(1, out.shape[1])) if isinstance(work, Job) else block_of(out.shape, a.shape[1], threads)

        def block(starts: tuple[int, int]) -> int:
            rows, columns = (slice(start, start + count) for start, count in zip(starts, size, strict=True))
            if isinstance(work, Job) or sides is None:
                assert isinstance(work, Job)
                results = Strip(work, rows, Patterns(c[rows], plan.c)).result()
            else:
                factors = (NAMED[name].part(side, rows, columns)[None] for name, side in scales.items())
                results = work.play_sides(sides.part(rows, columns), c[None, rows, columns], *factors)[0]
            out[rows, columns] = results
            return results.size

        done, (down, across) = 0, (range(0, whole, part) for whole, part in zip(out.shape, size, strict=True))
        starts = [(row, column) for row in down for column in across]
        with ThreadPoolExecutor(max_workers=threads) as pool:
            try:
                for outputs in (pool.map if len(starts) > 1 else map)(block, starts):  # a single block needs no thread
                    done += outputs
                    if progress is not None and done // out.shape[1] > (done - outputs) // out.shape[1]:
                        progress(done // out.shape[1], out.shape[0])
            except BaseException:  # an interrupt: the pool waits for running strips, and `ended` ends these
                if isinstance(work, Job):
                    work.ended.set()
                raise
    return out


def simulate_each(
    a: Matrix, b: Matrix, c: Matrix | None, model: Model | Plan, scales: Mapping[str, Matrix] | None = None
) -> Matrix:
    """The results of `simulate` for several products of the same shape: D (blocks x rows x columns) of patterns A
    (blocks x rows x K), B (blocks x K x columns), C (blocks x rows x columns) and scale factors (with a first axis of
    blocks). Small blocks are computed together. Raises ParameterError as `simulate` does."""
    plan = Plan.chained(model) if isinstance(model, Model) else model
    each = a.shape[1] * b.shape[2]
    if len(a) > 1 and each and plan.scale is None and not scales:
        with plan.named():
            small = each <= prod(BLOCK)  # a larger block fills the processors alone
            work = _tape(plan, a.shape[2], a.size * b.shape[2], "auto") if small else None
        if work is not None:
            check_addend(plan, c is not None and bool(c.any()), "C")
            c = np.zeros((1, 1, 1), dtype=kind_of(plan.c)) if c is None else c
            c = np.broadcast_to(c, (len(a), a.shape[1], b.shape[2]))
            _check(a, b, c, plan)
            threads = os.cpu_count() or 1
            size = max(1, min(prod(BLOCK) // each, -(-len(a) // threads)))
            parts = [slice(start, start + size) for start in range(0, len(a), size)]
            with ThreadPoolExecutor(max_workers=threads) as pool:
                return np.concatenate(list(pool.map(lambda part: work.play(a[part], b[part], c[part]), parts)))

    def block(n: int) -> Matrix:
        factors = {name: side[n] for name, side in (scales or {}).items()}
        return simulate(a[n], b[n], None if c is None else c[n], model, scales=factors)

    results = [block(n) for n in range(len(a))]
    return np.stack(results) if results else np.empty((0, a.shape[1], b.shape[2]), dtype=kind_of(plan.d))


def _tape(plan: Plan, length: int, products: int, engine: Engine, times: int = 1) -> Tape | None:
    """The steps of a plan for generated C; None if NumPy is to compute. Raises ParameterError for a K that does not
    fit, and for engine "compiled" where no compiled code is possible."""
    steps = length // min(model.length for model in plan.models)
    if engine == "numpy" or (engine == "auto" and products * times < SMALL and steps * times < LONG):
        return None
    try:
        return noted(plan, length)
    except UncompiledError:
        if engine == "auto":
            return None
        why = "there is no C compiler" if compiler() is None else failure() or "it is too long for a compiler"
        raise ParameterError("engine", f"it cannot be compiled: {why}; numpy computes the same") from None


def addend(c: Matrix, shape: tuple[int, int]) -> Matrix:
    """C with the shape of the product. A bias of one row (1 x columns, or a vector) is repeated for every row, a bias
    of one column (rows x 1) for every column. Raises ParameterError for other shapes."""
    own, c = c.shape, with_rows(c)
    if c.ndim != 2 or any(extent not in (1, size) for extent, size in zip(c.shape, shape, strict=True)):
        raise ParameterError("C", f"shape {own} is not that of the product, {shape}, or of a row or column of it")
    return np.broadcast_to(c, shape)


def with_rows(c: Matrix) -> Matrix:
    """C as a matrix: a vector becomes one row, and a scalar a matrix of 1 x 1."""
    return c.reshape((1,) * (2 - c.ndim) + c.shape) if c.ndim < 2 else c


def _check(a: Matrix, b: Matrix, c: Matrix, plan: Plan) -> None:
    for name, side, fmt in (("A", a, plan.a), ("B", b, plan.b), ("C", c, plan.c)):
        if side.dtype.kind != "u":
            raise ParameterError(name, "bit patterns (unsigned integers) are needed; mmaprobe.matmul takes numbers")
        if is_wider(side, fmt):
            raise ParameterError(name, f"a pattern is wider than the {fmt.width} bits of {fmt.name}")


def filled_scales(plan: Plan, scales: Mapping[str, Matrix], a: Matrix, b: Matrix) -> dict[str, Matrix]:
    """The scale factors of one matrix product by name, with zeros for the zero products that fill up the last tile; an
    empty dictionary for a plan without scale factors. Raises ParameterError for missing, unknown or unfit factors."""
    unit = plan.models[0]
    wanted = [row for row in FACTORS if row.name in plan.formats]
    if unknown := scales.keys() - {row.name for row in wanted}:
        name = min(unknown)
        called = NAMED[name].called if name in NAMED else name
        raise ParameterError(called, f"{plan.reference} takes none")
    if wanted and len(scales) < len(wanted):
        raise ParameterError(wanted[0].called, f"{plan.reference} needs them on both sides")
    filled = {}
    for row in wanted:
        side, fmt, axis = scales[row.name], plan.formats[row.name], int(row.of == "row")
        needed = -(-a.shape[1] // unit.scale_block)
        steps = -(-a.shape[1] // unit.length) * unit.scales
        expected = row.shape(a.shape[0], b.shape[1], needed)
        whole = side.ndim == 2 and side.shape[1 - axis] == expected[1 - axis]
        if not whole or not needed <= side.shape[axis] <= steps:
            raise ParameterError(
                row.name, f"shape {side.shape} is not {expected}, one factor for each {unit.scale_block} products"
            )
        if side.dtype.kind != "u" or is_wider(side, fmt):
            raise ParameterError(row.name, f"bit patterns of {fmt.name} are needed, {fmt.width} bits each")
        short = steps - side.shape[axis]
        filled[row.name] = np.pad(side, ((0, 0), (0, short)) if axis else ((0, short), (0, 0)))
    return filled
