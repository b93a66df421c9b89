"""The matrix and dot-product instructions of this machine's processor as devices.

`cpu_device.c` is compiled here (by CC, or cc), kept in the cache folder, and run in a process of its own: an
instruction that the processor lacks ends that process alone.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from mmaprobe.runner.batches import BatchDevice
from mmaprobe.runner.protocol import DEFAULT_TIMEOUT, DeviceUnavailableError
from mmaprobe.smtmodel.base.errors import IncompleteError, UnknownNameError
from mmaprobe.smtmodel.base.libraries import BuildError, command_of, kept_build
from mmaprobe.smtmodel.evaluate.batch import Patterns
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.signature import parse_signature
from mmaprobe.smtmodel.tables.reference import parse_reference

SOURCE = Path(__file__).with_name("cpu_device.c")
MISSING = 3  # exit status of the program for an instruction that the processor lacks
#: options that compilers need, by the first part of an instruction's reference
FLAGS = {"x86": (), "arm": ("-march=armv8.6-a+fp16fml",), "power10": ("-mcpu=power10",), "riscv": ("-march=rv64gcv",)}
MACHINES = {"x86_64": "x86", "AMD64": "x86", "aarch64": "arm", "arm64": "arm", "ppc64le": "power10", "riscv64": "riscv"}
ELSEWHERE = f"this is {platform.machine()}"  # the reason why other architectures' instructions cannot be asked


@dataclass(frozen=True)
class CpuInstruction:
    """`name`: the instruction's name on the command line; `program`: its name in cpu_device.c. The formats are those of
    `reference`'s unit, or `formats` in the syntax of the command `order`."""

    arch: str
    name: str
    program: str
    about: str
    reference: str = ""
    formats: str = ""
    length: int = 0

    @property
    def model(self) -> Model:
        return parse_reference(self.reference) if self.reference else parse_signature(self.formats, self.length)


def _unit(reference: str, about: str) -> CpuInstruction:
    arch, _, name = reference.split("/")
    return CpuInstruction(arch, name, name, about, reference)


INSTRUCTIONS = (
    _unit("x86/amx/tdpbf16ps", "AMX, one output of a tile"),
    _unit("x86/amx/tdpfp16ps", "AMX-FP16, one output of a tile"),
    _unit("x86/avx512/vdpbf16ps", "AVX512-BF16, one lane"),
    *(_unit(f"x86/amx/tdpb{signs}d", "AMX-INT8, one output of a tile") for signs in ("ss", "su", "us", "uu")),
    *(_unit(f"x86/avx512/vpdpbusd{saturates}", "AVX512-VNNI, one lane") for saturates in ("", "s")),
    *(_unit(f"x86/avx-vnni-int8/vpdpbssd{saturates}", "AVX-VNNI-INT8, one lane") for saturates in ("", "s")),
    _unit("x86/avx512/vfmadd-ph", "AVX512-FP16, one lane of VFMADD231PH"),
    CpuInstruction("x86", "fma-f32", "f32", "FMA, one lane of VFMADD231SS", "ieee/fma/f32"),
    CpuInstruction("x86", "fma-f64", "f64", "FMA, one lane of VFMADD231SD", "ieee/fma/f64"),
    CpuInstruction("x86", "dpps", "dpps", "SSE4.1, four products without an addend", "", "f32,f32,f32", 4),
    _unit("arm/neon/bfdot", "FEAT_BF16, one lane"),
    _unit("arm/neon/bfdot-ebf", "FEAT_EBF16, one lane"),
    _unit("arm/neon/bfmmla", "FEAT_BF16, one output"),
    _unit("arm/neon/bfmmla-ebf", "FEAT_EBF16, one output"),
    _unit("arm/neon/bfmlalb", "FEAT_BF16, one lane"),
    _unit("arm/neon/bfmlalt", "FEAT_BF16, one lane"),
    _unit("arm/neon/fmlal", "FEAT_FHM, one lane"),
    *(_unit(f"arm/neon/{signs}mmla", "FEAT_I8MM, one output") for signs in ("s", "u", "us")),
    *(_unit(f"arm/sme/{signs}mopa", "FEAT_SME, one output of a tile") for signs in ("s", "us")),
    _unit("arm/sme/fmopa-f32", "FEAT_SME, one output of a tile"),
    _unit("arm/sme/fmopa-f64", "FEAT_SME_F64F64, one output of a tile"),
    _unit("arm/sme/fmopa-f16f32", "FEAT_SME, one output of a tile"),
    _unit("arm/sme/bfmopa", "FEAT_SME, one output of a tile"),
    _unit("arm/sme/bfmopa-ebf", "FEAT_SME and FEAT_EBF16, one output of a tile"),
    _unit("power10/mma/xvbf16ger2pp", "MMA, one output"),
    _unit("power10/mma/xvf16ger2pp", "MMA, one output"),
    _unit("power10/mma/xvf32gerpp", "MMA, one output"),
    _unit("riscv/v/vfwmaccbf16", "Zvfbfwma, one lane"),
)


def instructions_here() -> list[CpuInstruction]:
    """The instructions that a processor of this machine's kind may have."""
    arch = MACHINES.get(platform.machine())
    return [row for row in INSTRUCTIONS if row.arch == arch]


@cache
def program(compiler: str, flags: tuple[str, ...]) -> Path:
    """The compiled program. Raises DeviceUnavailableError."""
    if (cc := command_of(compiler)) is None:
        raise DeviceUnavailableError(f"no C compiler {compiler!r}: install one, or name one by CC")
    try:
        return kept_build(cc, ("-O1", *flags), SOURCE.read_text(encoding="utf-8"), ".cpu")
    except (BuildError, OSError) as error:
        raise DeviceUnavailableError(f"{compiler} does not compile cpu_device.c: {error}") from None


def own_program(arch: str) -> Path:
    """The program for this machine. Raises DeviceUnavailableError."""
    return program(os.environ.get("CC", "cc"), FLAGS[arch])


class MissingInstructionError(IncompleteError):
    """The processor lacks the instruction."""


def execute(
    words: Sequence[str], instruction: str, a: Patterns, b: Patterns, c: Patterns, timeout: float | None = None
) -> Patterns:
    """The results of a program (perhaps run by an emulator) for rows of whole vectors. Raises MissingInstructionError,
    or IncompleteError where the program fails."""
    rows = np.concatenate([a, b, c[:, None]], axis=1).astype("<u8").tobytes()
    try:
        done = subprocess.run([*words, instruction], input=rows, capture_output=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise IncompleteError(f"no answer within {timeout:g} s") from None
    except OSError as error:
        raise IncompleteError(f"{words[-1]} cannot be run: {error.strerror}") from None
    if done.returncode == MISSING:
        raise MissingInstructionError(f"{' '.join(words[:-1]) or 'this processor'} has no {instruction}")
    results = np.frombuffer(done.stdout, dtype="<u8").astype(np.uint64)
    if done.returncode or results.shape != c.shape:
        message = done.stderr.decode(errors="replace").strip()
        raise IncompleteError(f"it ended with status {done.returncode} after {len(results)} results; {message}")
    return results


class CpuDevice(BatchDevice):
    """One instruction of this processor. Raises UnknownNameError or DeviceUnavailableError."""

    batch = 4096

    def __init__(self, name: str) -> None:
        known = {row.name: row for row in INSTRUCTIONS}
        if name not in known:
            raise UnknownNameError("instruction", name, known, hint=" (`mmaprobe list devices` shows what is here)")
        self.instruction = known[name]
        if reason := why_missing(self.instruction):
            raise DeviceUnavailableError(f"cpu:{name}: {reason}")
        self.name, self.model = f"cpu:{name}", self.instruction.model
        self.description = {"name": processor_name(), "instruction": name}

    def patterns(self, a: Patterns, b: Patterns, c: Patterns, *rest: Patterns) -> Patterns:
        short = ((0, 0), (0, self.model.length - a.shape[1]))
        words = [str(own_program(self.instruction.arch))]
        return execute(words, self.instruction.program, np.pad(a, short), np.pad(b, short), c, self.patience.left())


def why_missing(row: CpuInstruction) -> str:
    """Why an instruction cannot be asked on this machine; empty where it can."""
    if row not in instructions_here():
        return f"an instruction of {row.arch}, {ELSEWHERE}"
    zeros, length = np.zeros(1, dtype=np.uint64), row.model.length
    table = np.zeros((1, length), dtype=np.uint64)
    try:
        execute([str(own_program(row.arch))], row.program, table, table, zeros, DEFAULT_TIMEOUT)
    except MissingInstructionError:
        return "this processor, or its kernel, has no such instruction"
    except (DeviceUnavailableError, IncompleteError) as error:
        return str(error)
    return ""


def processor_name() -> str:
    """The name of this machine's processor, as far as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
