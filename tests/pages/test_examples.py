"""The devices of examples/: each answers what it says it computes."""

from __future__ import annotations

import importlib.util
import shlex
import sys
import types
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mmaprobe
from mmaprobe.runner.callable import open_callable
from mmaprobe.runner.calling import load
from mmaprobe.runner.devices import open_device
from mmaprobe.smtmodel.evaluate.numbers import array_from
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.signature import parse_signature
from mmaprobe.smtmodel.inputs.vectors import Vector
from tests.places import ROOT

FOLDER = ROOT / "examples"
A, B = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(6, dtype=np.float32).reshape(3, 2)


@pytest.mark.parametrize("name", ["matmul", "einsum", "dot"])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_numpy(name: str, kind: type) -> None:
    function = open_callable(f"{FOLDER}/numpy_device.py:{name}").function
    found = function(A.astype(kind), B.astype(kind))
    assert (found.dtype, found.tolist()) == (np.dtype(kind), [[10, 13], [28, 40]])


def test_numpy_float16_adds_one_after_another() -> None:
    function = open_callable(f"{FOLDER}/numpy_device.py:matmul").function
    assert str(mmaprobe.order(function, "f16,f16,f16", 6)).startswith("0-5 (added one after another)")


def test_a_program() -> None:
    asked = parse_signature("f16,f16,f32,f32", 2)
    with open_device(
        f"command:{shlex.quote(sys.executable)} {shlex.quote(str(FOLDER / 'command_device.py'))}"
    ) as device:
        d = device.every([Vector(asked, Operands((0x3C00, 0x4000), (0x3C00, 0x4200), 0x3F000000), id=1)])[0]
    assert np.array([d], np.uint32).view(np.float32)[0] == 7.5


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_torch() -> None:
    for name, rest in (("matmul", ()), ("addmm", (np.ones((2, 2), dtype=np.float32),))):
        function = open_callable(f"{FOLDER}/torch_device.py:{name}").function
        for kind in (np.float32, ml_dtypes.bfloat16):
            found = array_from(function(A.astype(kind), B.astype(kind), *(x.astype(kind) for x in rest)))
            assert found.dtype == kind
            assert found.astype(float).tolist() == (np.array([[10, 13], [28, 40]]) + len(rest)).tolist()


def test_torch_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for PyTorch: numbers go there and come back, in the format of the result that is asked for."""

    class Tensor(np.ndarray[Any, Any]):
        cuda = cpu = lambda self: self

    torch = types.ModuleType("torch")
    torch.__dict__.update(
        from_numpy=lambda x: x.view(Tensor), float32=np.float32, mm=lambda a, b, out_dtype: (a @ b).astype(out_dtype)
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    for name, kind in (("on_gpu", np.float16), ("in_f32", np.float32)):
        function, _ = load(f"{FOLDER}/torch_device.py", name)  # in this process, which has the stand-in
        assert function is not None
        found = function(A.astype(np.float16), B.astype(np.float16))
        assert (found.dtype, found.tolist()) == (np.dtype(kind), [[10, 13], [28, 40]])


@pytest.mark.parametrize(
    ("package", "name"),
    [("scipy", "scipy"), ("onnx", "onnxruntime"), ("jax", "jax"), ("jax", "jax_stacked"), ("tensorflow", "tensorflow")],
)
def test_other_libraries(package: str, name: str) -> None:
    if importlib.util.find_spec(package) is None or importlib.util.find_spec(name.partition("_")[0]) is None:
        pytest.skip(f"{name} is not installed")
    found = open_callable(f"{FOLDER}/library_devices.py:{name}").function(A, B)
    assert (found.dtype, found.tolist()) == (np.dtype(np.float32), [[10, 13], [28, 40]])
