"""Kernels of products run on the processor, thread by thread, from the text that a GPU gets as machine code."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mmaprobe.runner.gpu import cuda_product
from mmaprobe.runner.gpu.cuda_product import CudaProduct
from mmaprobe.runner.gpu.launch import Launcher

#: what CUDA has and C++ has not, for one thread at a time
_SHIM = """
struct Place {{ unsigned x; }};
static Place blockIdx, blockDim, threadIdx;
#define __global__
#define __device__
#define __noinline__
template <class To, class From> static To as(From x) {{ To y; __builtin_memcpy(&y, &x, sizeof y); return y; }}
static int __clz(unsigned x) {{ return x ? __builtin_clz(x) : 32; }}
static int __clzll(unsigned long long x) {{ return x ? __builtin_clzll(x) : 64; }}
static float __uint_as_float(unsigned x) {{ return as<float>(x); }}
static unsigned __float_as_uint(float x) {{ return as<unsigned>(x); }}
static double __longlong_as_double(long long x) {{ return as<double>(x); }}
static long long __double_as_longlong(double x) {{ return as<long long>(x); }}
static float __fmaf_rn(float x, float y, float z) {{ return __builtin_fmaf(x, y, z); }}
static double __fma_rn(double x, double y, double z) {{ return __builtin_fma(x, y, z); }}
{source}
extern "C" void launch(unsigned grid, unsigned each, {parameters}) {{
  blockDim.x = each;
  for (blockIdx.x = 0; blockIdx.x < grid; blockIdx.x++)
    for (threadIdx.x = 0; threadIdx.x < each; threadIdx.x++) product({arguments});
}}
"""


class Processor(Launcher):
    """Runs a kernel's text in place of its machine code."""

    gpu, capability, cuda, versions = "none", (9, 0), (13, 0), {}

    def __init__(self) -> None:
        self._built: dict[bytes, ctypes.CDLL] = {}

    def load(self, cubin: bytes, name: str) -> None:
        if cubin not in self._built:
            self._built[cubin] = _built(cubin.decode(), name)
        self._library = self._built[cubin]

    def launch(
        self, blocks: int, threads: int, inputs: Sequence[Any], output: Any,
        numbers: Sequence[int], timeout: float,
    ) -> None:  # fmt: skip
        arrays = [*map(np.asarray, [*inputs, output])]  # tensors may be among them
        assert all(array.flags.c_contiguous for array in arrays)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        self._library.launch(blocks, threads, *pointers, *map(ctypes.c_uint32, numbers))

    def clock(self) -> int | None:
        return None


def _built(source: str, name: str) -> ctypes.CDLL:
    """A kernel's text as a function of this processor."""
    match = re.search(rf"void {name}\(([^)]*)\) {{", source)
    assert match is not None
    arguments = ", ".join(re.findall(r"(\w+)(?:,|$)", match[1]))
    with tempfile.TemporaryDirectory() as folder:
        text, built = Path(folder, "kernel.cpp"), Path(folder, "kernel.so")
        text.write_text(_SHIM.format(source=source, parameters=match[1], arguments=arguments), encoding="utf-8")
        flags = ["-O0", "-march=native", "-ffp-contract=off", "-shared", "-fPIC", "-w"]
        subprocess.run(["g++", *flags, "-o", built, text], check=True)
        return ctypes.CDLL(str(built))


def product_by_text(monkeypatch: pytest.MonkeyPatch) -> CudaProduct:
    """Products by a GPU that is this processor, of several launches."""
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    monkeypatch.setattr(cuda_product, "_cubin", lambda source, *_: source.encode())
    monkeypatch.setattr(cuda_product, "MOST_WORK", 40)  # several launches
    return CudaProduct(Processor())
