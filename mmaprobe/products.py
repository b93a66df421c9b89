"""Matrix products and dot products of arrays, as a unit or a plan computes them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.arrays import check_rounded, patterns_of
from mmaprobe.named import Model, Plan, WantedError, model_of, plan_of
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.numbers import to_numbers
from mmaprobe.smtmodel.evaluate.operands import check_addend
from mmaprobe.smtmodel.evaluate.tiles import product_shape
from mmaprobe.smtmodel.operand import NAMED
from mmaprobe.smtmodel.plans.gemm import addend, simulate, simulate_each, with_rows
from mmaprobe.smtmodel.tables.reference import LENGTH, PLAN

MOST_AXES = 64  # NumPy's own limit
Units = Model | str | os.PathLike[str]
Plans = Plan | str | os.PathLike[str]


def matmul(
    a: Any,
    b: Any,
    c: Any = None,
    *,
    unit: Units | None = None,
    plan: Plans | None = None,
    convert: str | None = None,
    out: NDArray[Any] | None = None,
    **factors: Any,
) -> NDArray[Any]:
    """d = a @ b + c, bit for bit as a unit or a plan computes it.

    Shapes: `a` M x K, `b` K x N, the result M x N; `c` is M x N, a bias of N numbers (or 1 x N), a column (M x 1), or
    one number for all; without it c is +0. A plan that does not read c takes none, not even zeros. Further dimensions
    before these are batches, which broadcast as those of `numpy.matmul` do. Units with scale factors need (`factors`)
    `scale_a`, M x (K / block), and `scale_b`, (K / block) x N. Each is an array of floating-point numbers: of NumPy or
    ml_dtypes, or anything that has `__array__` or DLPack. `out`: an array of the result's shape and type, which is
    filled and returned.

    Units: `unit` takes K in tiles of its length, each result the next one's addend, the last tile filled up with zero
    products; `plan` says how K is divided and how sums are added. One of the two is given, by name or as
    `mmaprobe.unit` and `mmaprobe.plan` return it. Numbers that its formats do not hold are an error, unless `convert`
    names a rounding: nearest_even, nearest_away, toward_zero, up or down (in short rne, rna, rtz, rup, rdn). The result
    has the type of the unit's result: float16, float32 (also for tf32 and e8m13, which end in zeros), float64, or a
    type of ml_dtypes. Arrays of a format that neither NumPy nor ml_dtypes has (`binary8p3`) hold bit patterns as
    unsigned integers, arguments and results.

    Raises MmaprobeError: a wrong type, shapes that do not fit, inexact numbers, a name that is not known, and whatever
    is given but not used: a `c` or scale factors that the unit or the plan does not read.

    Source: that of the unit or the plan (`mmaprobe list models`, docs/plans.md).
    """
    how = _how(unit, plan, c)
    x, y = (
        patterns_of(name, side, fmt, 2, convert, MOST_AXES) for name, side, fmt in (("a", a, how.a), ("b", b, how.b))
    )
    z = None if c is None else patterns_of("c", number_of(c), how.c, 0, convert, MOST_AXES)
    check_rounded((a, b, number_of(c)), convert)
    given = {name: side for name, side in factors.items() if side is not None}
    if unknown := [name for name in given if name not in NAMED or name not in how.formats]:
        called = NAMED[unknown[0]].called if unknown[0] in NAMED else unknown[0]
        raise ParameterError(", ".join(unknown), f"{how.reference} takes no {called}")
    scales = {name: patterns_of(name, side, how.formats[name], 2, None, MOST_AXES) for name, side in given.items()}
    found = to_numbers(_batched(x, y, z, how, scales), how.d)
    if out is None:
        return found
    if not isinstance(out, np.ndarray):
        raise WantedError("out", out, "an array of NumPy")
    if (out.shape, out.dtype) != (found.shape, found.dtype):
        wanted = f"an array of {found.dtype} of the shape {found.shape}"
        raise ParameterError("out", f"{wanted} is wanted, not one of {out.dtype} of the shape {out.shape}")
    out[...] = found
    return out


def _batched(
    x: NDArray[Any], y: NDArray[Any], z: NDArray[Any] | None, how: Model | Plan, scales: dict[str, NDArray[Any]]
) -> NDArray[Any]:
    """D as patterns; axes before the last two are a batch."""
    sides = (x, y, *scales.values(), *(() if z is None else (z,)))
    if all(side.ndim == 2 for side in (x, y, *scales.values())) and (z is None or z.ndim <= 2):
        return simulate(x, y, None if z is None else with_rows(z), how, scales=scales)
    try:
        batch = np.broadcast_shapes(*(side.shape[:-2] for side in sides))
    except ValueError:
        shapes = " and ".join(str(side.shape) for side in sides)
        raise ParameterError("a and b", f"the batches of the shapes {shapes} do not broadcast") from None

    def blocks(side: NDArray[Any]) -> NDArray[Any]:
        return np.broadcast_to(side, (*batch, *side.shape[-2:])).reshape(-1, *side.shape[-2:])

    shape = x.shape[-2], y.shape[-1]
    x, y, c = blocks(x), blocks(y), None if z is None else blocks(with_rows(z))
    if len(x):
        product_shape(x[0], y[0])
        if c is not None:
            addend(c[0], shape)
    each = {name: blocks(side) for name, side in scales.items()}
    return simulate_each(x, y, c, how, each).reshape(*batch, *shape)


def dot(
    a: Any, b: Any, c: Any = None, *, unit: Units | None = None, plan: Plans | None = None, convert: str | None = None
) -> Any:
    """c + sum of a[k] * b[k], bit for bit as a unit or a plan computes it.

    Shapes: `a` and `b` have K elements, `c` is one number (+0 without it): a float, or an array without axes. The
    result is one number, in the type of the unit's result.

    Units: `unit` or `plan`, and `convert`, as for `matmul`; units with scale factors are for `matmul` alone.

    Raises MmaprobeError as `matmul` does.

    Source: that of the unit or the plan (`mmaprobe list models`, docs/plans.md).
    """
    how = _how(unit, plan, c)
    x, y = patterns_of("a", a, how.a, 1, convert), patterns_of("b", b, how.b, 1, convert)
    if x.shape != y.shape:
        raise ParameterError("a and b", f"the shapes {x.shape} and {y.shape} differ")
    if how.scale is not None:
        raise ParameterError("unit", f"{how.reference} takes scale factors: use matmul")
    z = None if c is None else patterns_of("c", number_of(c), how.c, 0, convert).reshape(1, 1)
    check_rounded((a, b, number_of(c)), convert)
    return to_numbers(simulate(x[None, :], y[:, None], z, how), how.d)[0, 0]


def number_of(given: Any) -> Any:
    """A number as an array without axes; everything else as it is. Raises ParameterError for a whole number that is not
    exact in binary64."""
    if type(given) is int:
        try:
            exact = int(float(given)) == given
        except OverflowError:
            exact = False
        if not exact:
            raise ParameterError("c", f"{given.bit_length()} bits are not exact in f64: give an array of another type")
    return np.float64(given) if type(given) in (int, float) else given


def _how(unit: Units | None, plan: Plans | None, c: object) -> Model | Plan:
    if isinstance(c, str):
        raise WantedError("c", c, "an array", f"; the name of a unit or a plan is given as unit={c!r} or plan={c!r}")
    if (unit is None) == (plan is None):
        raise ParameterError("unit, plan", f"give one of the two, not {'none' if unit is None else 'both'}")
    if isinstance(unit, str) and unit.startswith(PLAN) and LENGTH not in unit:
        raise ParameterError("unit", f"{unit} is a plan: give it as plan={unit!r}")
    how = model_of("unit", unit) if plan is None else plan_of("plan", plan)
    check_addend(how, c is not None)
    return how
