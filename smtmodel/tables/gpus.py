"""Product names of GPUs and their architectures in the instruction table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from mmaprobe.smtmodel.base.errors import NotModelledError
from mmaprobe.smtmodel.tables.absent import not_modelled

#: Sources. NVIDIA: "CUDA GPU Compute Capability" (developer.nvidia.com/cuda-gpus) and the CUDA C++ Programming Guide,
#: where 7.0 is Volta, 7.5 Turing, 8.0 and 8.6 Ampere, 8.9 Ada Lovelace, 9.0 Hopper, 10.x and 11.0 (Thor) Blackwell,
#: 12.x RTX Blackwell. AMD: the processors in LLVM's AMDGPU user guide, where gfx908 is CDNA1, gfx90a CDNA2, gfx942
#: CDNA3, gfx950 CDNA4, gfx110x RDNA3, gfx1151 RDNA3.5, gfx120x RDNA4
GPUS: Mapping[str, tuple[str, ...]] = {
    "volta": ("V100", "Titan V", "Quadro GV100"),
    "turing": ("T4", "RTX 2060", "RTX 2070", "RTX 2080", "Titan RTX", "Quadro RTX 6000", "Quadro RTX 8000"),
    "ampere": ("A100", "A800", "A30", "A2", "A10", "A10G", "A16", "A40", "RTX 3060", "RTX 3070", "RTX 3080", "RTX 3090",
               "RTX A4000", "RTX A5000", "RTX A6000"),
    "ada-lovelace": ("L4", "L20", "L40", "L40S", "RTX 4060", "RTX 4070", "RTX 4080", "RTX 4090", "RTX 6000 Ada"),
    "hopper": ("H100", "H200", "H800", "H20", "GH200"),
    "blackwell": ("B100", "B200", "B300", "GB200", "GB300", "Jetson Thor", "Jetson AGX Thor"),
    "rtx-blackwell": ("RTX 5060", "RTX 5070", "RTX 5080", "RTX 5090", "RTX PRO 6000", "GB10"),
    "cdna1": ("MI100",),
    "cdna2": ("MI210", "MI250", "MI250X"),
    "cdna3": ("MI300A", "MI300X", "MI325X"),
    "cdna4": ("MI350X", "MI355X"),
    "rdna3": ("RX 7700 XT", "RX 7800 XT", "RX 7900 GRE", "RX 7900 XT", "RX 7900 XTX", "Radeon PRO W7800",
              "Radeon PRO W7900"),
    "rdna3.5": ("Radeon 8050S", "Radeon 8060S"),
    "rdna4": ("RX 9060 XT", "RX 9070", "RX 9070 XT", "Radeon AI PRO R9700"),
}  # fmt: skip

_MAKERS = {"nvidia", "geforce", "tesla", "amd", "instinct", "radeon"}


@cache
def _names() -> dict[tuple[str, ...], tuple[str, str]]:
    return {_words(name): (name, arch) for arch, names in GPUS.items() for name in names}


def _words(name: str) -> tuple[str, ...]:
    """The words of a name in a form that can be compared: (a100, sxm4, 80gb) for `NVIDIA A100-SXM4-80GB`, (rtx, 4090)
    for `RTX4090`."""
    parts = re.sub(r"\b(rtx|rx|ti)(?=\d)|(?<=\d)(?=ti\b)", r"\1 ", name.lower()).replace("-", " ").split()
    return tuple(part for part in parts if part not in _MAKERS)


def gpu_named(name: str) -> tuple[str, str] | None:
    """The name of a GPU in `GPUS` and its architecture; None for an unknown GPU. `name` may have another spelling, a
    maker before the name, and memory and form factor after it, as drivers report these."""
    words = _words(name)
    longest = min(len(words), max(map(len, _names())))  # linear time in the input
    return next((_names()[words[:end]] for end in range(longest, 0, -1) if words[:end] in _names()), None)


def architecture_of(name: str) -> str | None:
    """The architecture of a GPU; None for an unknown GPU. Raises NotModelledError for an architecture of which no model
    is published."""
    named = gpu_named(name)
    if named is None:
        return None
    gpu, arch = named
    if reason := not_modelled(f"{arch}/"):
        raise NotModelledError(f"{gpu} ({arch}): {reason}")
    return arch


def gpus_of(arch: str) -> tuple[str, ...]:
    """The product names of an architecture's GPUs; empty for an unknown architecture."""
    return GPUS.get(arch, ())
