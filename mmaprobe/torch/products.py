"""`matmul`, `addmm`, `bmm`, `linear` and `scaled_mm` of tensors, as a unit, a plan or a GPU computes them.

They are one operator of torch.library, `mmaprobe::product`, which has shapes for torch.compile and gradients.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from math import prod
from typing import Any, Literal, get_args

import numpy as np
import torch

from mmaprobe.arrays import patterns_of
from mmaprobe.machines import Machine, ProductRequest, UnsupportedProductError, machine_of, product_of
from mmaprobe.named import WantedError, choice_of, model_of
from mmaprobe.runner.gpu.cuda_product import CudaProduct, product_here
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.numbers import held_as, to_numbers, type_of
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.torch.tensors import (
    FORMAT_OF,
    TYPE_OF,
    DeviceMemory,
    format_of,
    layout_of,
    numbers,
    patterns,
    tensor_of,
    words,
)

Backward = Literal["emulated", "native"]
BACKWARD: tuple[Backward, ...] = get_args(Backward)

_MACHINES: dict[str, Machine] = {}  # by the names that the operator takes: text is all that a graph can hold


def registered(machine: Machine) -> str:
    """The name by which the operator finds a machine."""
    name = machine.name
    while _MACHINES.setdefault(name, machine) is not machine:
        name += "'"
    return name


def product(
    machine: Machine, asked: ProductRequest, a: Any, b: Any, c: Any = None, scales: Mapping[str, Any] | None = None
) -> tuple[Any, str]:
    """D of tensors (blocks x M x K, blocks x K x N; c broadcasts to D), and what was done with the sum. Tensors of
    uint8 are patterns, as all scale factors are."""
    factors, gpu = scales and {name: patterns(side) for name, side in scales.items()}, _gpu(a.device)
    if gpu is None:
        d, after = product_of(machine, asked, patterns(a), patterns(b), None if c is None else numbers(c), factors)
        return tensor_of(d, TYPE_OF[asked.d], a.device), after
    plan = machine.rule_of(asked, (*a.shape[:2], b.shape[2], a.shape[2]), addend=c is not None).plan
    x, y = (words(side).contiguous() if own == fmt.name else patterns(side)
            for side, own, fmt in ((a, asked.a, plan.a), (b, asked.b, plan.b)))  # fmt: skip
    memory = DeviceMemory(a.device)
    with torch.cuda.device(a.device):
        torch.cuda.current_stream().synchronize()
        return product_of(machine, asked, x, y, c, factors, partial(gpu.each, empty=memory.empty), memory)


def _gpu(device: Any) -> CudaProduct | None:
    """The multiplier of tensors in an NVIDIA GPU's memory; None for tensors elsewhere, and without CuPy."""
    if device.type != "cuda" or torch.version.cuda is None:
        return None
    with torch.cuda.device(device):
        return product_here(torch.cuda.current_device())


def _computed(a: Any, b: Any, c: Any, machine: str, d: str, backward: str) -> Any:
    asked = ProductRequest(format_of("a", a), format_of("b", b), d, layout=layout_of(a, b))
    return product(_MACHINES[machine], asked, a, b, c)[0]


def _shape(a: Any, b: Any, c: Any, machine: str, d: str, backward: str) -> Any:
    return a.new_empty((a.shape[0], a.shape[1], b.shape[2]), dtype=TYPE_OF[d])


def _kept(ctx: Any, inputs: Any, output: Any) -> None:
    a, b, c, ctx.machine, _, ctx.backward_by = inputs
    ctx.save_for_backward(a, b)
    ctx.c = None if c is None else (c.shape, c.dtype)


def _gradients(ctx: Any, grad: Any) -> Any:
    """The gradient of a: grad @ b^T; of b: a^T @ grad; each rounded to the type of its factor. `grad` is rounded to the
    other factor's type first, as the unit takes it."""
    a, b = ctx.saved_tensors
    gradients: list[Any] = [None, None, None]
    for place, factor in enumerate((a, b)):
        if not ctx.needs_input_grad[place]:
            continue
        other = (b, a)[place]
        given = grad.to(other.dtype)
        sides = (given, other.mT) if place == 0 else (other.mT, given)
        if ctx.backward_by == "native":
            gradients[place] = torch.bmm(*(side.to(grad.dtype) for side in sides)).to(factor.dtype)
        else:
            gradients[place] = _product(*sides, None, ctx.machine, FORMAT_OF[factor.dtype], ctx.backward_by)
    if ctx.c is not None and ctx.needs_input_grad[2]:
        shape, kind = ctx.c
        gradients[2] = grad.sum_to_size(shape).to(kind)
    return (*gradients, None, None, None)


def _batched(info: Any, in_dims: Any, *inputs: Any) -> Any:
    a, b, c, *rest = inputs
    size = info.batch_size

    def blocks(side: Any, dim: int | None) -> Any:
        moved = side.unsqueeze(0).expand(size, *side.shape) if dim is None else side.movedim(dim, 0)
        return moved.flatten(0, 1)

    x, y, z = (None if side is None else blocks(side, dim) for side, dim in zip((a, b, c), in_dims, strict=False))
    return _product(x, y, z, *rest).unflatten(0, (size, -1)), 0


_SCHEMA = "(Tensor a, Tensor b, Tensor? c, str machine, str d, str backward) -> Tensor"
_product: Any = torch.library.custom_op("mmaprobe::product", _computed, mutates_args=(), schema=_SCHEMA)
_product.register_fake(_shape)
_product.register_autograd(_gradients, setup_context=_kept)
_product.register_vmap(_batched)


# -- what users call


def matmul(
    a: Any, b: Any, c: Any = None, *, machine: Any = None, unit: Any = None, plan: Any = None,
    convert: str | None = None, dtype: Any = None, backward: Backward = "emulated",
) -> Any:  # fmt: skip
    """a @ b + c of tensors, bit for bit as a unit, a plan or a machine computes it.

    Shapes: those of torch.matmul, vectors and batch dimensions that broadcast included; `c` broadcasts to the result.

    Units: one of `machine` (a GPU such as "H100", or the path of a map), `unit` and `plan`; `convert` as for
    `mmaprobe.matmul`. The result has the type `dtype`, to which it is rounded once; without it that of the unit's or
    plan's result, and of a machine that of `a`. `backward`: emulated, the gradients are products of the same machine,
    `grad` rounded to the type of the factor in whose place it stands; or native.

    Raises MmaprobeError: as `mmaprobe.matmul`, and UnsupportedProductError for formats that the machine has no rule
    for.

    Source: that of the unit or the plan; of a GPU, what its report says (`emulate`).
    """
    how = _machine(machine, unit, plan, convert)
    _tensors(a=a, b=b, c=c)
    _check_addend(c)
    if not a.dim() or not b.dim():
        raise ParameterError("a and b", "both have at least one dimension")
    if a.shape[-1] != b.shape[-2 if b.dim() > 1 else 0]:
        raise ParameterError("a and b", f"the shapes {tuple(a.shape)} and {tuple(b.shape)} do not fit each other")
    x = a.unsqueeze(0) if a.dim() == 1 else a
    y = b.unsqueeze(1) if b.dim() == 1 else b
    batch = torch.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    folded = y.dim() == 2 and x.dim() > 2
    whole = (*batch, x.shape[-2], y.shape[-1])
    if folded:  # as PyTorch does: one product, of all rows
        x, y = x.reshape(1, prod(x.shape[:-1]), x.shape[-1]), y.unsqueeze(0)
    else:
        x, y = (side.expand(*batch, *side.shape[-2:]).reshape(prod(batch), *side.shape[-2:]) for side in (x, y))
    z = None
    if c is not None:
        z = torch.broadcast_to(c, tuple(size for size, gone in zip(
            whole, (*[False] * len(batch), a.dim() == 1, b.dim() == 1), strict=True) if not gone))  # fmt: skip
        z = z.reshape(whole).reshape(x.shape[0], x.shape[1], y.shape[2])
    d = FORMAT_OF[_kind(dtype)] if dtype is not None else _result(how, x, y, own=machine is None)
    result = _product(x, y, z, registered(how), d, choice_of("backward", backward, BACKWARD)).reshape(whole)
    result = result.squeeze(-2) if a.dim() == 1 else result
    return result.squeeze(-1) if b.dim() == 1 else result


def addmm(c: Any, a: Any, b: Any, **how: Any) -> Any:
    """c + a @ b of matrices, with the arguments of `matmul`; c in torch.addmm's place.

    Shapes: `a` M x K, `b` K x N, `c` broadcasts to M x N.

    Units: as for `matmul`.

    Raises MmaprobeError: as `matmul`.

    Source: as for `matmul`.
    """
    _axes(2, a=a, b=b)
    return matmul(a, b, c, **how)


def bmm(a: Any, b: Any, **how: Any) -> Any:
    """The products of two batches of matrices, with the arguments of `matmul`.

    Shapes: `a` B x M x K, `b` B x K x N.

    Units: as for `matmul`.

    Raises MmaprobeError: as `matmul`.

    Source: as for `matmul`.
    """
    _axes(3, a=a, b=b)
    if a.shape[0] != b.shape[0]:
        raise ParameterError("a and b", f"batches of {a.shape[0]} and {b.shape[0]} matrices")
    return matmul(a, b, **how)


def linear(x: Any, weight: Any, bias: Any = None, **how: Any) -> Any:
    """x @ weight^T + bias, with the arguments of `matmul`.

    Shapes: those of torch.nn.functional.linear.

    Units: as for `matmul`.

    Raises MmaprobeError: as `matmul`.

    Source: as for `matmul`.
    """
    _axes(2, weight=weight)
    return matmul(x, weight.mT, bias, **how)


def scaled_mm(a: Any, b: Any, *, scale_a: Any, scale_b: Any, unit: Any, c: Any = None) -> Any:
    """a @ b with a scale factor for each block of products: MX and NVFP4, on units that take them.

    Shapes: `a` M x K, `b` K x N, `scale_a` M x (K / block), `scale_b` (K / block) x N, not swizzled; c M x N.

    Units: FP8 tensors, or patterns of e2m1, e2m3 and e3m2 as uint8, one number each; scale factors as
    float8_e8m0fnu, or for ue4m3 float8_e4m3fn. It has no gradient.

    Raises MmaprobeError: a unit without scale factors, formats or shapes that do not fit.

    Source: that of the unit (`mmaprobe list models`).
    """
    how = model_of("unit", unit)
    _tensors(a=a, b=b, scale_a=scale_a, scale_b=scale_b, c=c)
    _check_addend(c)
    if how.scale is None:
        raise ParameterError("unit", f"{how.reference} takes no scale factors: use matmul")
    sides = {"a": (a, how.a), "b": (b, how.b), "scale_a": (scale_a, how.scale), "scale_b": (scale_b, how.scale)}
    given = {name: patterns_of(name, _plain(name, side, fmt), fmt, 2, None) for name, (side, fmt) in sides.items()}
    z = None if c is None else patterns_of("c", numbers(c), how.c, 2, None)
    x, y = given.pop("a"), given.pop("b")
    return tensor_of(to_numbers(simulate(x, y, z, how, scales=given), how.d), TYPE_OF[how.d.name], a.device)


def _plain(name: str, side: Any, fmt: Format) -> Any:
    """The numbers of a tensor, or of bytes that are patterns of a format. Raises MmaprobeError."""
    if side.dtype != torch.uint8:
        format_of(name, side)
        return numbers(side)
    bits = side.detach().cpu().numpy()
    if (bits >> (fmt.width if fmt.signed else fmt.field_width)).any():
        raise ParameterError(name, f"a byte is no pattern of {fmt.name}, which has {fmt.width} bits")
    return np.ascontiguousarray(bits).view(type_of(fmt))


def _result(how: Machine, a: Any, b: Any, own: bool) -> str:
    if not own:
        return format_of("a", a)
    return held_as(how.rule(format_of("a", a), format_of("b", b)).plan.d).name


def _machine(machine: Any, unit: Any, plan: Any, convert: str | None) -> Machine:
    """The machine that arguments name, the same object as before if nothing has changed: files are read each time.
    Compiled code, in which no file can be read, has the machine of the last call outside of such code."""
    key = (tuple(machine) if isinstance(machine, list) else machine, unit, plan, convert)
    if not (torch.compiler.is_compiling() and key in _FOUND):
        found = machine_of(machine, unit=unit, plan=plan, convert=convert)
        if _FOUND.get(key) != found:
            _FOUND[key] = found
    return _FOUND[key]


_FOUND: dict[Any, Machine] = {}


def _tensors(**given: Any) -> None:
    for name, one in given.items():
        if one is not None and not isinstance(one, torch.Tensor):
            raise WantedError(name, one, "a tensor", "; mmaprobe.matmul takes arrays")


def _check_addend(c: Any) -> None:
    """Raises UnsupportedProductError for an addend that holds no numbers of a known format."""
    if c is not None:
        format_of("c", c)


def _axes(count: int, **given: Any) -> None:
    _tensors(**given)
    for name, one in given.items():
        if one.dim() != count:
            raise ParameterError(name, f"{count} dimensions are wanted, not the shape {tuple(one.shape)}")


def _kind(dtype: Any) -> Any:
    if dtype not in FORMAT_OF:
        raise UnsupportedProductError(f"dtype: no result is rounded to {dtype}")
    return dtype
