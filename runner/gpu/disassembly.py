"""The machine instructions of a compiled kernel, counted by NVIDIA's disassembler (nvdisasm)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

_LABEL = re.compile(r"^\.text\.(\w+):", re.MULTILINE)
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+\s+)?([A-Z][\w.]*)", re.MULTILINE)
#: matrix instructions, conversions and floating-point arithmetic; FMNMX, FSEL and others do not occur in the kernels
_ARITHMETIC = re.compile(r"[A-Z]*MMA(\..*)?|F2FP?\..*|[DFH](ADD|MUL|FMA|SET|SETP|MNMX)2?(_MMA)?\b.*|MUFU.*|I2F.*")


def nvdisasm() -> str | None:
    """The path of the disassembler: of the wheel nvidia-cuda-nvdisasm, of CUDA_PATH, or on the search path; None if
    it is not installed."""
    places = [Path(entry, "nvidia/cu13/bin/nvdisasm") for entry in sys.path]
    if root := os.environ.get("CUDA_PATH"):
        places.append(Path(root, "bin", "nvdisasm"))
    beside = next((str(place) for place in places if place.is_file()), None)
    return beside or shutil.which("nvdisasm")


def arithmetic(cubin: bytes) -> dict[str, Counter[str]] | None:
    """The number of floating-point and matrix instructions of each kind, by kernel. None without nvdisasm, or for an
    architecture that the installed nvdisasm does not know (CUDA 13's does not know Volta)."""
    program = nvdisasm()
    if program is None:
        return None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([program, "-c", file.name], capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        return None
    _, *parts = _LABEL.split(done.stdout)
    counters = {}
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        counters[name] = Counter(code for code in _INSTRUCTION.findall(body) if _ARITHMETIC.fullmatch(code))
    return counters
