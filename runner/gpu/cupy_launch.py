"""The launch layer on CuPy. No other module imports CuPy; the import of this module raises ImportError without CuPy."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import cupy
import numpy as np

from mmaprobe.runner.gpu.launch import GpuMemoryError, Launcher, LaunchError, status_after
from mmaprobe.runner.protocol import DeviceUnavailableError

_ERRORS = (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError)
_FULL = ("MemoryAllocation", "OUT_OF_MEMORY")  # parts of the names of CUDA's errors when memory is full
_SM_CLOCK = 1  # NVML_CLOCK_SM


class CupyLauncher(Launcher):
    """The current GPU (CUDA_VISIBLE_DEVICES chooses it). Raises DeviceUnavailableError if there is none."""

    def __init__(self) -> None:
        runtime = cupy.cuda.runtime
        try:
            if not runtime.getDeviceCount():
                raise DeviceUnavailableError("CUDA finds no NVIDIA GPU; is CUDA_VISIBLE_DEVICES set?")
            self._device = cupy.cuda.Device()
            self.gpu = runtime.getDeviceProperties(self._device.id)["name"].decode()
            digits = self._device.compute_capability
            self.cuda = divmod(runtime.driverGetVersion() // 10, 100)  # 12090 means 12.9
            self._nvml = _Nvml(self._device.pci_bus_id)
        except _ERRORS as error:
            raise DeviceUnavailableError(
                f"no NVIDIA GPU can be used ({error}); a GPU and a driver that is new enough for CuPy are needed "
                "(nvidia-smi shows both)"
            ) from None
        self._kernels: dict[tuple[bytes, str], tuple[Any, Any]] = {}
        self.capability = (int(digits[:-1]), int(digits[-1]))
        self.versions = {"driver": self._nvml.driver, "cuda": ".".join(map(str, self.cuda)), "cupy": cupy.__version__}

    def load(self, cubin: bytes, name: str) -> None:
        if (cubin, name) not in self._kernels:
            with _failures("loading the kernel"):
                module = cupy.cuda.function.Module()
                module.load(cubin)
                self._kernels[cubin, name] = module, module.get_function(name)  # a function needs its module
        self._kernel = self._kernels[cubin, name][1]

    def launch(
        self, blocks: int, threads: int, inputs: Sequence[Any], output: Any,
        numbers: Sequence[int], timeout: float,
    ) -> None:  # fmt: skip
        arrays: list[Any] = []
        try:
            with _failures("the kernel"):
                arrays += [cupy.asarray(array) for array in inputs]
                host = isinstance(output, np.ndarray)
                result = cupy.empty(output.shape, output.dtype) if host else cupy.asarray(output)
                arrays.append(result)
                self._kernel((blocks,), (threads,), (*arrays, *map(np.uint32, numbers)))
                _wait(timeout)
                if host:
                    output[...] = result.get()
        except GpuMemoryError:
            arrays.clear()
            cupy.get_default_memory_pool().free_all_blocks()
            raise

    def clock(self) -> int | None:
        return self._nvml.clock()


def _wait(timeout: float) -> None:
    """Wait for everything launched so far. Raises LaunchError after `timeout` seconds."""
    done = cupy.cuda.Event(disable_timing=True)
    done.record()
    status_after(lambda: done.done, False, timeout)


@contextlib.contextmanager
def _failures(what: str) -> Iterator[None]:
    """A block whose CUDA errors become LaunchError or GpuMemoryError."""
    try:
        yield
    except cupy.cuda.memory.OutOfMemoryError as error:
        raise GpuMemoryError(f"the GPU's memory is full: {error}") from None
    except _ERRORS as error:
        kind = GpuMemoryError if any(name in str(error) for name in _FULL) else LaunchError
        raise kind(f"{what} failed: {error}") from None


class _Nvml:
    """The driver's version and the clock, from NVIDIA's management library; without the library both are None."""

    def __init__(self, bus: str) -> None:
        self.driver: str | None = None
        self._handle: ctypes.c_void_p | None = None
        try:
            self._library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        handle, text = ctypes.c_void_p(), ctypes.create_string_buffer(96)
        if self._library.nvmlInit_v2():
            return
        if not self._library.nvmlSystemGetDriverVersion(text, ctypes.c_uint(len(text))):
            self.driver = text.value.decode()
        if not self._library.nvmlDeviceGetHandleByPciBusId_v2(bus.encode(), ctypes.byref(handle)):
            self._handle = handle

    def clock(self) -> int | None:
        """The current clock of the multiprocessors in MHz; None if it is unknown."""
        frequency = ctypes.c_uint()
        if self._handle is None or self._library.nvmlDeviceGetClockInfo(
            self._handle, _SM_CLOCK, ctypes.byref(frequency)
        ):
            return None
        return frequency.value
