"""The matrix unit of an AMD GPU as a device: HIP's run-time compiler and runtime, through ctypes.

ROCm's libraries libhiprtc.so and libamdhip64.so are looked for in HIP_PATH, ROCM_PATH and /opt/rocm, then by the
system's loader. HIP_VISIBLE_DEVICES chooses the GPU. The kernels have not run on a GPU yet: they are compiled for every
architecture, and checked on a simulated wave (tests/hip).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.runner.gpu.cuda import parse_name
from mmaprobe.runner.gpu.device import GpuDevice, Position
from mmaprobe.runner.gpu.hip_kernels import TARGETS, HipKernel, hip_kernels
from mmaprobe.runner.gpu.kernel_source import source
from mmaprobe.runner.gpu.launch import GpuMemoryError, Launcher, LaunchError, status_after
from mmaprobe.runner.gpu.rtc import RuntimeCompiler
from mmaprobe.runner.protocol import DeviceUnavailableError
from mmaprobe.smtmodel.base.errors import InputError, UnknownNameError
from mmaprobe.smtmodel.tables.reference import parse_reference

_OUT_OF_MEMORY, _NOT_READY = 2, 600  # hipErrorOutOfMemory, hipErrorNotReady
_TO_DEVICE, _TO_HOST = 1, 2  # hipMemcpyKind
_NAME_BYTES, _PROPERTIES_BYTES = 256, 1 << 14  # hipDeviceProp_t has about 1,500 bytes and begins with the name


def open_hip(text: str, launcher: HipLauncher | None = None) -> HipDevice:
    """The device `[UNIT/]INSTRUCTION[?row=R,column=C,neighbours=random,seed=S]` of this machine's AMD GPU.

    Raises InputError, UnknownNameError, DeviceUnavailableError, CompilerError or LaunchError.
    """
    name, position, variant = parse_name(text)
    if variant is not None:
        raise InputError(f"hip:{text}: the options columns and a are for NVIDIA's wgmma alone")
    wanted = name.strip().lower()
    every = hip_kernels()
    fitting = [kernel for reference, kernel in every.items() if f"/{reference}".endswith(f"/{wanted}")]
    if not fitting:
        known = [reference.partition("/")[2] for reference in every] if wanted.count("/") < 2 else list(every)
        raise UnknownNameError("instruction", wanted, known, hint=" (`mmaprobe list models` shows all)")
    if launcher is None:
        try:
            launcher = HipLauncher()
        except DeviceUnavailableError as error:
            raise DeviceUnavailableError(f"hip:{text}: {error}") from None
    arch = next((arch for arch, targets in TARGETS.items() if launcher.target in targets), None)
    if arch is None:
        raise DeviceUnavailableError(f"hip:{text}: no kernels for this GPU ({launcher.gpu}, {launcher.target})")
    own = [kernel for kernel in fitting if kernel.arch == arch]
    if len(own) != 1:
        named = [kernel.reference.partition("/")[2] for kernel in every.values() if kernel.arch == arch]
        raise UnknownNameError(f"instruction of this GPU ({launcher.gpu}, {arch})", wanted, named)
    return HipDevice(f"hip:{text}", own[0], position, launcher)


class HipDevice(GpuDevice):
    """One instruction of an AMD GPU. If no model of the instruction is known, `model` is a model of another instruction
    with the same formats and number of products."""

    shown_by = "rocm-smi"

    def __init__(self, name: str, kernel: HipKernel, position: Position, launcher: HipLauncher) -> None:
        super().__init__(name, kernel, parse_reference(kernel.alike or kernel.reference), position, launcher)
        launcher.load(launcher.compile(source([kernel])), kernel.name)
        self.description = {
            "name": launcher.gpu,
            "instruction": kernel.reference,
            "target": launcher.target,
            **launcher.versions,
            "builtin": kernel.builtin,
            **asdict(position),
        }


class HipLauncher(Launcher):
    """The current AMD GPU. `target`: the compiler's name of the GPU (gfx942). Raises DeviceUnavailableError without a
    GPU."""

    def __init__(self) -> None:
        self._runtime = _library("libamdhip64.so")
        self._compiler = RuntimeCompiler(_library("libhiprtc.so"), "hiprtc")
        self._runtime.hipGetErrorString.restype = ctypes.c_char_p
        count, device, version = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        if self._runtime.hipGetDeviceCount(ctypes.byref(count)) or not count.value:
            raise DeviceUnavailableError("HIP finds no AMD GPU; is HIP_VISIBLE_DEVICES set?")
        properties = ctypes.create_string_buffer(_PROPERTIES_BYTES)
        self._call("hipGetDevice", ctypes.byref(device))
        get = (
            "hipGetDevicePropertiesR0600"
            if hasattr(self._runtime, "hipGetDevicePropertiesR0600")
            else "hipGetDeviceProperties"
        )
        self._call(get, properties, device)
        self._call("hipRuntimeGetVersion", ctypes.byref(version))
        self.gpu = properties.raw[:_NAME_BYTES].split(b"\0", 1)[0].decode(errors="replace")
        self.target = _target_in(properties.raw)
        self.capability, self.cuda = (0, 0), (0, 0)
        self.versions = {"hip": version.value}
        self._kernel = ctypes.c_void_p()

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(self._runtime, name)(*arguments)
        if status:
            kind = GpuMemoryError if status == _OUT_OF_MEMORY else LaunchError
            raise kind(f"{name}: {self._runtime.hipGetErrorString(status).decode()}")

    def compile(self, text: str) -> bytes:
        """The code object of a source. Raises CompilerError with the compiler's messages."""
        options, refused = (f"--offload-arch={self.target}", "-O2"), f"hiprtc refused a kernel for {self.target}"
        (code,) = self._compiler.compiled(text, "mmaprobe.hip", options, ("GetCode",), refused)
        return code

    def load(self, cubin: bytes, name: str) -> None:
        module = ctypes.c_void_p()
        self._call("hipModuleLoadData", ctypes.byref(module), cubin)
        self._call("hipModuleGetFunction", ctypes.byref(self._kernel), module, name.encode())

    def launch(
        self, blocks: int, threads: int, inputs: Sequence[NDArray[Any]], output: NDArray[Any],
        numbers: Sequence[int], timeout: float,
    ) -> None:  # fmt: skip
        pointers: list[ctypes.c_void_p] = []
        try:
            for array in (*inputs, output):
                pointers.append(ctypes.c_void_p())
                self._call("hipMalloc", ctypes.byref(pointers[-1]), ctypes.c_size_t(max(1, array.nbytes)))
            for pointer, array in zip(pointers, inputs, strict=False):
                self._call("hipMemcpy", pointer, _address(array), ctypes.c_size_t(array.nbytes), _TO_DEVICE)
            values = [*pointers, *map(ctypes.c_uint32, numbers)]
            arguments = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
            grid, block = (blocks, 1, 1), (threads, 1, 1)
            self._call("hipModuleLaunchKernel", self._kernel, *grid, *block, 0, None, arguments, None)
            if status := status_after(lambda: self._runtime.hipStreamQuery(None), _NOT_READY, timeout):
                raise LaunchError(f"the kernel failed: {self._runtime.hipGetErrorString(status).decode()}")
            self._call("hipMemcpy", _address(output), pointers[-1], ctypes.c_size_t(output.nbytes), _TO_HOST)
        finally:
            for pointer in pointers:
                self._runtime.hipFree(pointer)

    def clock(self) -> int | None:
        return None


def _address(array: NDArray[Any]) -> ctypes.c_void_p:
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data if array.size else np.zeros(1).ctypes.data)


def _target_in(properties: bytes) -> str:
    """The target in hipDeviceProp_t, as gfx90a of `gfx90a:sramecc+:xnack-`. Versions of HIP differ in the field's
    place."""
    start = properties.find(b"gfx", _NAME_BYTES)
    return properties[start:].split(b"\0", 1)[0].split(b":", 1)[0].decode(errors="replace") if start >= 0 else "unknown"


def _places(name: str) -> Iterator[str]:
    for root in (os.environ.get("HIP_PATH"), os.environ.get("ROCM_PATH"), "/opt/rocm"):
        if root:
            yield str(Path(root, "lib", name))
    yield name


def _library(name: str) -> ctypes.CDLL:
    for place in _places(name):
        try:
            return ctypes.CDLL(place)
        except OSError:
            continue
    raise DeviceUnavailableError(f"{name} was not found: ROCm and an AMD GPU are needed (HIP_PATH says where ROCm is)")
