"""Programs of a vector give the bits they promise: run in Python and C, compiled by NVRTC."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mmaprobe.reports.exports.snippets import TORCH, Snippet, decimal_text, sides, snippets
from mmaprobe.runner.gpu.kernels import CAPABILITIES
from mmaprobe.runner.gpu.nvrtc import compiler_for
from mmaprobe.runner.gpu.rtc import CompilerError
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.inputs.vectors import Vector, to_hex
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.reports.test_svg import operands_of

CASES = [
    "volta/mma/m8n8k4.f32.f16.f16.f32", "turing/mma/m16n8k8.f16.f16.f16.f16", "ampere/mma/m8n8k4.f64.f64.f64.f64",
    "ampere/mma/m16n8k8.f32.tf32.tf32.f32", "ada-lovelace/mma/m16n8k32.f32.e4m3.e5m2.f32",
    "hopper/wgmma/m64n8k32.f32.e4m3.e4m3", "hopper/wgmma/m64n8k16.f32.bf16.bf16",
    "rtx-blackwell/mma_block_scale/m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3",
    "cdna3/mfma/f32_32x32x16_fp8_fp8", "ieee/fma/f64",
]  # fmt: skip


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[Vector, list[tuple[str, Any, int]], dict[str, Snippet]]:
    model = parse_reference(request.param)
    rng = np.random.default_rng(len(request.param))
    vector = Vector(model, operands_of(model, rng))
    predicted = [("mine", model, evaluate_row(model, vector.operands))]
    return vector, predicted, {one.language: one for one in snippets(vector, predicted)}


def test_python_prints_the_predicted_bits(case: Any) -> None:
    _, predicted, found = case
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(found["Python"].code, {})
    assert out.getvalue().split() == [to_hex(predicted[0][2], predicted[0][1].d), predicted[0][1].reference]


def test_c_prints_the_bits(case: Any, tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler: install gcc or clang")
    vector, predicted, found = case
    file, program = tmp_path / "vector.c", tmp_path / "vector"
    file.write_text(found["C"].code)
    subprocess.run([compiler, "-Wall", "-Werror", "-o", program, file], check=True)
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    for line, (name, fmt, patterns) in zip(lines, sides(vector), strict=False):
        assert line.split() == [name, *(to_hex(pattern, fmt) for pattern in patterns)]
    assert lines[-1] == f"d {to_hex(predicted[0][2], predicted[0][1].d)} by mine"


def test_cuda_compiles(case: Any) -> None:
    vector, _, found = case
    row = INSTRUCTIONS.get(vector.model.reference)
    if row is None or row.arch not in CAPABILITIES:
        assert "CUDA" not in found
        return
    code, capability = found["CUDA"].code, CAPABILITIES[row.arch][0]
    try:
        compiler = compiler_for(capability)
    except CompilerError as error:
        pytest.skip(str(error))
    compiled = compiler.compile(code, re.search(r"-arch=(\w+)", code).group(1))  # type: ignore[union-attr]
    assert compiled.cubin
    (given,) = re.findall(r"<<<.*>>>\((.*)\);", code)
    (taken,) = re.findall(r'extern "C" .*\(([^)]*)\)\n\{', code[code.index('extern "C"') :].replace("(128)", ""))
    assert len(given.split(",")) == len(taken.split(","))
    for _, fmt, patterns in sides(vector):
        assert ", ".join(f"{pattern:#0{fmt.digits + 2}x}" for pattern in patterns) in code


def test_the_host_part_of_cuda_is_cpp(case: Any, tmp_path: Path) -> None:
    """With stand-ins for what nvcc brings, a C++ compiler takes it."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler: install g++ or clang")
    found = case[2]
    if "CUDA" not in found:
        return
    code = found["CUDA"].code
    host = re.sub(r"(\w+)<<<1, \d+>>>\(", r"launch(", code[code.index("#ifndef __CUDACC_RTC__") :])
    stand_ins = """#include <cstddef>
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
typedef int cudaError_t; enum { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
template <typename T> void cudaMalloc(T **, size_t); void cudaMemset(void *, int, size_t);
void cudaMemcpy(void *, const void *, size_t, int); cudaError_t cudaGetLastError();
const char *cudaGetErrorString(cudaError_t); template <typename... T> void launch(T...);
"""
    file = tmp_path / "vector.cpp"
    file.write_text(stand_ins + host)
    subprocess.run([compiler, "-Wall", "-Werror", "-fsyntax-only", file], check=True)


class Tensor:
    """What the snippets need of PyTorch's tensors, on NumPy."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def view(self, dtype: Any) -> Tensor:
        return Tensor(self.array.view(dtype))


def stand_in() -> types.ModuleType:
    """PyTorch, or as much of it as the snippets need where it is not installed."""
    try:
        import torch

        return torch  # type: ignore[no-any-return]
    except ModuleNotFoundError:
        pass
    module: Any = types.ModuleType("torch")
    types_ = {"float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2,
              "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
              "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu, "bfloat16": ml_dtypes.bfloat16}  # fmt: skip
    for name in {*TORCH.values(), "uint8", "int16", "int32", "int64"}:
        setattr(module, name, np.dtype(types_[name]) if name in types_ else np.dtype(name))
    module.tensor = lambda numbers, dtype: Tensor(np.array(numbers, dtype=dtype))  # raises if a number does not fit
    return module  # type: ignore[no-any-return]


def numbers_of(tensor: Any) -> list[float]:
    if isinstance(tensor, Tensor):
        return [float(x) for x in tensor.array.astype(np.float64)]
    return [float(x) for x in tensor.double()]


def test_torch_tensors_hold_the_numbers(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    vector, predicted, found = case
    monkeypatch.setitem(sys.modules, "torch", stand_in())
    names: dict[str, Any] = {}
    exec(found["PyTorch"].code, names)
    for name, fmt, patterns in sides(vector):
        wanted = [float(decimal_text(p, fmt)) for p in patterns] if fmt.name in TORCH else [float(p) for p in patterns]
        assert numbers_of(names[name]) == wanted
    assert to_hex(predicted[0][2], predicted[0][1].d) in found["PyTorch"].code
    exact: dict[str, Any] = {"inf": float("inf"), "nan": float("nan")}
    exec(found["decimal"].code, exact)
    assert exact["a"] == [float(decimal_text(p, vector.model.a)) for p in vector.operands.a]
