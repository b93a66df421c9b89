"""The launch layer itself, on a stand-in for CuPy that keeps to the names that CuPy has."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mmaprobe.runner.gpu.cuda import open_cuda
from mmaprobe.runner.gpu.launch import GpuMemoryError, LaunchError
from mmaprobe.runner.protocol import DeviceUnavailableError, Patience
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.cuda.fake_gpu import random_rows

pytestmark = pytest.mark.kernels

MODEL = "hopper/mma/m16n8k16.f32.f16.f16.f32"


class CudaError(RuntimeError):
    pass


class OutOfMemoryError(MemoryError):
    pass


class Array:
    """Memory of the GPU."""

    def __init__(self, host: np.ndarray[Any, Any]) -> None:
        self.device = host.copy()

    def get(self) -> np.ndarray[Any, Any]:
        return self.device


class Card:
    """What CuPy shows of a GPU; `trouble` is raised at a launch."""

    def __init__(self) -> None:
        self.trouble: Exception | None = None
        self.count, self.busy, self.freed = 1, 0, 0

    def kernel(self, grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...]) -> None:
        if self.trouble:
            raise self.trouble
        pointers, numbers = arguments[:6], arguments[6:]
        assert (grid, block) == ((-(-int(numbers[0]) // 4),), (128,))
        assert all(isinstance(each, Array) for each in pointers)
        assert [type(each) for each in numbers] == [np.uint32] * 5
        a, b, c, _, _, d = (each.device for each in pointers)
        d[...] = evaluate_batch(parse_reference(MODEL), a, b, c[:, 0])

    def module(self) -> ModuleType:
        def load(cubin: bytes) -> None:
            if self.trouble:
                raise self.trouble
            assert cubin[:4] == b"\x7fELF"

        def count() -> int:
            if self.count < 0:
                raise CudaError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")
            return self.count

        def done() -> bool:
            self.busy -= 1
            return self.busy < 0

        def free() -> None:
            self.freed += 1

        made = ModuleType("cupy")
        made.__version__ = "14.2.0"  # type: ignore[attr-defined]
        runtime = SimpleNamespace(
            CUDARuntimeError=CudaError, getDeviceCount=count, driverGetVersion=lambda: 12090,
            getDeviceProperties=lambda number: {"name": b"Fake H100"},
        )  # fmt: skip
        parts = {
            "runtime": runtime,
            "driver": SimpleNamespace(CUDADriverError=CudaError),
            "memory": SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            "Device": lambda: SimpleNamespace(id=0, compute_capability="90", pci_bus_id="0000:01:00.0"),
            "Event": lambda disable_timing: _Event(done),
            "function": SimpleNamespace(
                Module=lambda: SimpleNamespace(load=load, get_function=lambda name: self.kernel)
            ),
        }
        cuda = SimpleNamespace(**parts)
        made.__dict__.update(
            cuda=cuda, asarray=lambda one: one if isinstance(one, Array) else Array(one),
            empty=lambda shape, dtype: Array(np.zeros(shape, dtype)),
            get_default_memory_pool=lambda: SimpleNamespace(free_all_blocks=free),
        )  # fmt: skip
        return made


class _Event:
    def __init__(self, look: Any) -> None:
        self._look = look

    def record(self) -> None:
        pass

    @property
    def done(self) -> bool:
        return bool(self._look())


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[Card]:
    made = Card()
    monkeypatch.setitem(sys.modules, "cupy", made.module())
    monkeypatch.delitem(sys.modules, "mmaprobe.runner.gpu.cupy_launch", raising=False)
    yield made
    sys.modules.pop("mmaprobe.runner.gpu.cupy_launch", None)


def test_a_launch(card: Card) -> None:
    card.busy = 5
    device = open_cuda("mma/m16n8k16.f32.f16.f16.f32")
    given = random_rows(MODEL, 999)
    assert np.array_equal(device.patterns(*given), evaluate_batch(device.model, *given))
    description = device.description
    assert (description["name"], description["compute_capability"], description["cuda"]) == ("Fake H100", "9.0", "12.9")
    assert (description["cupy"], description["nvrtc"].split(".")[0]) == ("14.2.0", "12")


def test_what_lies_in_the_gpus_memory_is_read_and_filled_there(card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    from mmaprobe.runner.gpu.cuda import launcher_here

    def kernel(grid: Any, block: Any, arguments: tuple[Any, ...]) -> None:
        a, b, d = (each.device for each in arguments[:3])
        d[...] = a + b

    monkeypatch.setattr(card, "kernel", kernel)
    launcher, one, out = launcher_here(), np.arange(6), Array(np.zeros(6, int))
    launcher.load(b"\x7fELF", "product")
    launcher.launch(1, 32, [Array(one), one], out, [6], 60)
    assert np.array_equal(out.device, 2 * one)
    host = np.zeros(6, int)
    launcher.launch(1, 32, [Array(one), one], host, [6], 60)
    assert np.array_equal(host, 2 * one)


def test_no_gpu(card: Card) -> None:
    name = "m16n8k16.f32.f16.f16.f32"
    card.count = 0
    with pytest.raises(DeviceUnavailableError, match=rf"cuda:{name}: CUDA finds no NVIDIA GPU"):
        open_cuda(name)
    card.count = -1
    with pytest.raises(DeviceUnavailableError, match=r"no NVIDIA GPU .*cudaErrorInsufficientDriver.*driver"):
        open_cuda(name)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (CudaError("cudaErrorIllegalAddress: illegal"), LaunchError, "the kernel failed: cudaErrorIllegalAddress"),
        (CudaError("cudaErrorMemoryAllocation: out"), GpuMemoryError, "the kernel failed: cudaErrorMemoryAllocation"),
        (OutOfMemoryError("Out of memory allocating 512 bytes"), GpuMemoryError, "memory is full: Out of memory"),
    ],
)
def test_failures_of_a_launch(card: Card, error: Exception, kind: type[Exception], words: str) -> None:
    device = open_cuda("mma/m16n8k16.f32.f16.f16.f32")
    card.trouble = error
    with pytest.raises(kind, match=words):
        device.patterns(*random_rows(MODEL, 10))
    assert card.freed == (kind is GpuMemoryError)


def test_a_kernel_that_cannot_be_loaded(card: Card) -> None:
    card.trouble = CudaError("CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image")
    with pytest.raises(LaunchError, match="loading the kernel failed: CUDA_ERROR_NO_BINARY_FOR_GPU"):
        open_cuda("mma/m16n8k16.f32.f16.f16.f32")


def test_a_kernel_that_hangs(card: Card) -> None:
    card.busy = 10**9
    device = open_cuda("mma/m16n8k16.f32.f16.f16.f32")
    device.patience = Patience(0.05)
    with pytest.raises(LaunchError, match=r"did not finish within 0\.05 s"):
        device.patterns(*random_rows(MODEL, 10))
