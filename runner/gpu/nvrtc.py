"""NVIDIA's run-time compiler (NVRTC) through ctypes: CUDA C to machine code for one architecture, without a GPU.

CuPy has NVRTC too, but cannot compile for the architecture-specific targets (sm_90a and later) that `wgmma` and block
scaling need. Several versions can be installed side by side: CUDA 13 dropped Volta, and a driver of CUDA 12 does not
load machine code of CUDA 13.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mmaprobe.runner.gpu.rtc import CompilerError, RuntimeCompiler
from mmaprobe.smtmodel.base.wording import install_command

MAJORS = (13, 12)  # versions of CUDA, the preferred first
_FOLDERS = {13: "nvidia/cu13/lib", 12: "nvidia/cuda_nvrtc/lib"}  # the libraries of the wheels, below site-packages


@dataclass(frozen=True)
class Compiled:
    """Machine code (`cubin`, an ELF file), the PTX from which it was made, and the compiler's version."""

    cubin: bytes
    ptx: str
    version: tuple[int, int]


class Nvrtc(RuntimeCompiler):
    """One NVRTC library. Raises OSError if it cannot be loaded."""

    def __init__(self, path: str) -> None:
        super().__init__(ctypes.CDLL(path), "nvrtc")
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.call("Version", ctypes.byref(major), ctypes.byref(minor))
        self.version = (major.value, minor.value)

    @property
    def capabilities(self) -> frozenset[int]:
        """The compute capabilities for which the library compiles, as 10 * major + minor."""
        count = ctypes.c_int()
        self.call("GetNumSupportedArchs", ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        self.call("GetSupportedArchs", numbers)
        return frozenset(numbers)

    def compile(self, source: str, target: str) -> Compiled:
        """Compile for a target such as "sm_90a". Raises CompilerError with the compiler's messages."""
        refused = f"NVRTC {self.version[0]}.{self.version[1]} refused a kernel for {target}"
        options = [f"--gpu-architecture={target}"]
        ptx, cubin = self.compiled(source, "mmaprobe.cu", options, ("GetPTX", "GetCUBIN"), refused)
        return Compiled(cubin, ptx.rstrip(b"\0").decode(), self.version)


def _places(major: int) -> Iterator[str]:
    """Paths of the library, in the order of trial: wheels, CUDA_PATH, the system's loader, the usual folder."""
    name = f"libnvrtc.so.{major}"
    for entry in sys.path:
        path = Path(entry, _FOLDERS[major], name)
        if path.exists():
            yield str(path)
    if root := os.environ.get("CUDA_PATH"):
        yield str(Path(root, "lib64", name))
    yield name
    yield f"/usr/local/cuda/lib64/{name}"


@cache
def library(major: int) -> Nvrtc | None:
    """NVRTC of a major version of CUDA; None if it is not installed."""
    for place in _places(major):
        try:
            return Nvrtc(place)
        except OSError:
            continue
    return None


def compiler_for(capability: tuple[int, int], newest: int = MAJORS[0]) -> Nvrtc:
    """The newest installed NVRTC, up to a version of CUDA, that knows a compute capability. Raises CompilerError."""
    wanted = 10 * capability[0] + capability[1]
    libraries = [nvrtc for major in MAJORS if major <= newest and (nvrtc := library(major))]
    for nvrtc in libraries:
        if wanted in nvrtc.capabilities:
            return nvrtc
    if not libraries:
        missing = min(max(newest, MAJORS[-1]), MAJORS[0])
        raise CompilerError(
            f"no NVRTC of CUDA {missing} was found: {install_command(f'cuda{missing}')}, "
            "or set CUDA_PATH to a CUDA toolkit"
        )
    versions = " and ".join(".".join(map(str, nvrtc.version)) for nvrtc in libraries)
    hint = "; CUDA 13 dropped Volta: pip install nvidia-cuda-nvrtc-cu12" if wanted < 75 else ""
    raise CompilerError(f"NVRTC {versions} does not compile for sm_{wanted}{hint}")
