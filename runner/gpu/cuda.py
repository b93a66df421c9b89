"""The matrix unit of an NVIDIA GPU as a device: kernels made from the instruction table, run through CuPy."""

from __future__ import annotations

import re
from dataclasses import asdict
from functools import cache
from typing import Any

from mmaprobe.runner.gpu.device import GpuDevice, Position
from mmaprobe.runner.gpu.disassembly import arithmetic
from mmaprobe.runner.gpu.kernel_source import source
from mmaprobe.runner.gpu.kernels import (
    CAPABILITIES,
    Kernel,
    Variant,
    architecture,
    kernel_of,
    runnable,
    target,
)
from mmaprobe.runner.gpu.launch import Launcher
from mmaprobe.runner.gpu.nvrtc import Compiled, compiler_for
from mmaprobe.runner.protocol import CLOCK, DeviceUnavailableError
from mmaprobe.smtmodel.base.digits import is_digits
from mmaprobe.smtmodel.base.errors import InputError, NotModelledError, UnknownNameError
from mmaprobe.smtmodel.base.wording import install_command
from mmaprobe.smtmodel.tables.absent import not_modelled
from mmaprobe.smtmodel.tables.instruction import Instruction
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference

#: option -> the regular expression of its values
OPTIONS = {"row": "[0-9]+", "column": "[0-9]+", "neighbours": "zero|random", "seed": "[0-9]+", "columns": "[0-9]+",
           "a": "shared|registers"}  # fmt: skip


def open_cuda(text: str, launcher: Launcher | None = None) -> CudaDevice:
    """The device `[UNIT/]INSTRUCTION[?row=R,column=C,neighbours=random,seed=S]` of this machine's GPU; for `wgmma` also
    `columns=N` and `a=registers`.

    Raises InputError, UnknownNameError, NotModelledError, DeviceUnavailableError, CompilerError or LaunchError.
    """
    name, position, variant = parse_name(text)
    _check_known(name)
    if launcher is None:
        try:
            launcher = launcher_here()
        except DeviceUnavailableError as error:
            raise DeviceUnavailableError(f"cuda:{text}: {error}") from None
    row = find_instruction(name, launcher.capability, launcher.gpu)
    return CudaDevice(f"cuda:{text}", row, position, variant, launcher)


def parse_name(text: str) -> tuple[str, Position, Variant | None]:
    """The instruction, the position and the variant of a device's name. Raises InputError."""
    name, question, tail = text.strip().partition("?")
    options: dict[str, Any] = {}
    for part in tail.split(",") if question else []:
        key, _, value = part.strip().partition("=")
        if key not in OPTIONS or not re.fullmatch(OPTIONS[key], value):
            known = "row=R, column=C, neighbours=zero or random, seed=S, columns=N, a=shared or registers"
            raise InputError(f"cuda:{text}: {part.strip()!r} is none of {known}")
        if key in options:
            raise InputError(f"cuda:{text}: {key} is given twice")
        options[key] = int(value) if is_digits(value) else value
    if options.get("seed", 0) >> 32:
        raise InputError(f"cuda:{text}: seed has more than 32 bits")
    chosen = {key: options.pop(key) for key in ("columns", "a") if key in options}
    return name, Position(**options), Variant(**chosen) if chosen else None


def _check_known(name: str) -> None:
    """Check, before a GPU is looked for, that some GPU has the instruction, or that the reason for its absence from the
    table is known. Raises UnknownNameError."""
    wanted = name.strip().lower()
    known = [row.reference for row in INSTRUCTIONS.values() if row.arch in CAPABILITIES]
    named = any(_has_name(reference, wanted) for reference in known)
    if not named and not any(_why_absent(arch, wanted) for arch in CAPABILITIES):
        own = [reference.partition("/")[2] for reference in known] if wanted.count("/") < 2 else known
        raise UnknownNameError("instruction", wanted, own, hint=" (`mmaprobe list models` shows all)")


def find_instruction(name: str, capability: tuple[int, int], gpu: str) -> Instruction:
    """The instruction of this GPU that `[ARCH/][UNIT/]INSTRUCTION` names. Raises UnknownNameError, NotModelledError,
    DeviceUnavailableError for a GPU of no architecture of the table, or InputError for an instruction of other GPUs."""
    arch = architecture(capability)
    this = f"this GPU ({gpu}, compute capability {capability[0]}.{capability[1]})"
    if arch is None:
        known = ", ".join(sorted({f"{major}.{minor}" for capable in CAPABILITIES.values() for major, minor in capable}))
        raise DeviceUnavailableError(
            f"{this} is of no architecture in the table of instructions, whose GPUs have {known}"
        )
    own = {row.reference: row for row in INSTRUCTIONS.values() if row.arch == arch}
    wanted = name.strip().lower()
    matching = [row for reference, row in own.items() if _has_name(reference, wanted)]
    if len(matching) == 1:
        return matching[0]
    others = sorted({row.arch for row in INSTRUCTIONS.values() if _has_name(row.reference, wanted)} & {*CAPABILITIES})
    if others:
        raise InputError(f"{name} is an instruction of {', '.join(others)}; {this} is {arch}")
    if reason := _why_absent(arch, wanted):
        raise NotModelledError(f"{arch}: {name}: {reason}")
    runs = [reference.partition("/")[2] for reference, row in own.items() if runnable(row)]
    raise UnknownNameError(f"instruction of {this}", wanted, runs, hint=" (`mmaprobe list models` shows all)")


def _why_absent(arch: str, wanted: str) -> str | None:
    """Why an architecture's instruction is missing from the table; None if no reason is known."""
    return not_modelled(f"{arch}/{wanted}" if wanted.count("/") == 1 else f"{arch}/mma/{wanted}")


def _has_name(reference: str, wanted: str) -> bool:
    return reference == wanted or reference.endswith(f"/{wanted}")


def launcher_here() -> Launcher:
    """The launcher of this machine's GPU, by CuPy. Raises DeviceUnavailableError, whose message says what is
    missing."""
    needs = (
        f"{install_command('cuda12')} (or cuda13, after the CUDA version that nvidia-smi shows); "
        "an NVIDIA GPU and its driver are needed as well"
    )
    try:
        from mmaprobe.runner.gpu.cupy_launch import CupyLauncher
    except ModuleNotFoundError as error:
        raise DeviceUnavailableError(f"the Python package {error.name!r} is missing: {needs}") from None
    except ImportError as error:
        raise DeviceUnavailableError(f"CuPy cannot be loaded: {error}; {needs}") from None
    return CupyLauncher()


@cache
def _compiled_kernel(kernel: Kernel, capability: tuple[int, int], cuda: int) -> tuple[Compiled, dict[str, int] | None]:
    """A kernel compiled for a GPU and its driver's version of CUDA, and the counts of its machine instructions (None
    without a disassembler). Raises CompilerError."""
    compiled = compiler_for(capability, cuda).compile(source([kernel]), target(capability))
    executed = arithmetic(compiled.cubin)
    return compiled, None if executed is None else dict(executed[kernel.name])


class CudaDevice(GpuDevice):
    """One instruction of an NVIDIA GPU."""

    def __init__(
        self, name: str, row: Instruction, position: Position, variant: Variant | None, launcher: Launcher
    ) -> None:
        kernel = kernel_of(row, variant)
        super().__init__(name, kernel, parse_reference(row.reference), position, launcher)
        compiled, executed = _compiled_kernel(kernel, launcher.capability, launcher.cuda[0])
        launcher.load(compiled.cubin, kernel.name)
        self.description = {
            "name": launcher.gpu,
            "instruction": row.reference,
            "compute_capability": ".".join(map(str, launcher.capability)),
            **launcher.versions,
            "nvrtc": ".".join(map(str, compiled.version)),
            "target": target(launcher.capability),
            "ptx": kernel.ptx,
            **({"descriptor": f"{kernel.descriptor:08x}"} if kernel.descriptor else {}),
            "machine_instructions": executed,
            "emulated": row.emulated,
            **asdict(position),
            **({} if variant is None else asdict(variant)),
            CLOCK: launcher.clock(),
        }
