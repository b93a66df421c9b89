"""Products of a Triton kernel as devices, on a GPU: python:examples/triton_device.py:dot (also tf32, tf32x3, ieee,
promoted)."""

import ml_dtypes
import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def _product(
    a, b, d, rows, columns, length,
    high: tl.constexpr, wide: tl.constexpr, deep: tl.constexpr, precision: tl.constexpr, imprecise: tl.constexpr,
    within: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0) * high + tl.arange(0, high)
    j = tl.program_id(1) * wide + tl.arange(0, wide)
    k = tl.arange(0, deep)
    total = tl.zeros((high, wide), dtype=within)
    for start in range(0, length, deep):
        at = start + k
        left = tl.load(
            a + i[:, None].to(tl.int64) * length + at[None, :],
            mask=(i[:, None] < rows) & (at[None, :] < length), other=0.0,
        )  # fmt: skip
        right = tl.load(
            b + at[:, None].to(tl.int64) * columns + j[None, :],
            mask=(at[:, None] < length) & (j[None, :] < columns), other=0.0,
        )  # fmt: skip
        total = tl.dot(left, right, total, input_precision=precision, max_num_imprecise_acc=imprecise, out_dtype=within)
    inside = (i[:, None] < rows) & (j[None, :] < columns)
    tl.store(d + i[:, None].to(tl.int64) * columns + j[None, :], total, mask=inside)


def product(a, b, d, tile, precision=None, imprecise=None):
    """d = a b for tensors on the GPU, with tiles of 64 rows, 64 columns and `tile` products. `precision` is
    input_precision of `tl.dot`, `imprecise` its max_num_imprecise_acc; None: Triton's default. Sums are kept in the
    format of d."""
    within = getattr(tl, str(d.dtype).removeprefix("torch."))
    grid = (-(-a.shape[0] // 64), -(-b.shape[1] // 64))
    _product[grid](
        a, b, d, a.shape[0], b.shape[1], a.shape[1],
        high=64, wide=64, deep=tile, precision=precision, imprecise=imprecise, within=within, num_warps=4,
    )  # fmt: skip
    return d


def on_gpu(a, b, tile, precision=None, imprecise=None):
    """Results in f32 of NumPy arrays; narrow formats, which NumPy does not have, pass as bytes."""
    narrow = {ml_dtypes.bfloat16: torch.bfloat16, ml_dtypes.float8_e4m3fn: torch.float8_e4m3fn,
              ml_dtypes.float8_e5m2: torch.float8_e5m2}.get(a.dtype.type)  # fmt: skip
    if narrow is not None:
        a, b = (torch.from_numpy(x.view(np.uint8)).view(narrow) for x in (a, b))
    else:
        a, b = torch.from_numpy(a), torch.from_numpy(b)
    d = torch.empty((len(a), b.shape[1]), dtype=torch.float32, device="cuda")
    return product(a.cuda(), b.cuda(), d, tile, precision, imprecise).cpu()


def dot(a, b):
    """Products of f16, bf16 or FP8 numbers."""
    return on_gpu(a, b, 64)


def tf32(a, b):
    return on_gpu(a, b, 32, "tf32")


def tf32x3(a, b):
    return on_gpu(a, b, 32, "tf32x3")


def ieee(a, b):
    return on_gpu(a, b, 32, "ieee")


def promoted(a, b):
    """Products of FP8 numbers; the sums of 128 products are added in f32."""
    return on_gpu(a, b, 128, None, 128)
