"""Every kernel compiled for every compute capability by NVRTC, no GPU needed; what the machine code executes."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest

from mmaprobe.runner.gpu import nvrtc
from mmaprobe.runner.gpu.disassembly import arithmetic
from mmaprobe.runner.gpu.kernel_source import source
from mmaprobe.runner.gpu.kernels import (
    CAPABILITIES,
    TENSOR_MEMORY,
    Kernel,
    Variant,
    architecture,
    kernel_of,
    kernels_of,
    target,
)
from mmaprobe.runner.gpu.nvrtc import compiler_for, library
from mmaprobe.runner.gpu.rtc import CompilerError
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS

pytestmark = pytest.mark.kernels

#: one capability of each architecture; the others differ in nothing that a kernel uses and get one kernel each
FIRST = {arch: capabilities[0] for arch, capabilities in CAPABILITIES.items()}
KERNELS = [(arch, kernel) for arch in CAPABILITIES for kernel in kernels_of(arch)]
#: of tcgen05, whose kernels are large, one of each way in which operands lie
SOME = [f"blackwell/tcgen05mma{name}" for name in (
    "/m64n8k16.f32.f16.f16", "/m64n8k16.f16.f16.f16", "/m64n8k8.f32.tf32.tf32", "/m64n8k32.f32.e4m3.e2m1",
    "/m64n8k32.f16.e3m2.e5m2", "_block_scale/m64n8k32.block32.f32.e2m3.e4m3.ue8m0",
    "_block_scale/m64n8k64.block32.f32.e2m1.e2m1.ue8m0", "_block_scale/m64n8k64.block16.f32.e2m1.e2m1.ue4m3",
    "_block_scale/m64n8k64.block16.f32.e2m1.e2m1.ue8m0")]  # fmt: skip


def intended(kernel: Kernel) -> str:
    """The machine instruction that the row of the table stands for, as a pattern."""
    row = kernel.row
    m, n, k = kernel.shape
    a, b, c = row.a.upper(), row.b.upper(), row.c.upper()
    if row.a == "f64":
        return r"DMMA\.8x8x4" if row.arch == "blackwell" else rf"DMMA\.({m}{n}{k}|{m}x{n}x{k})"
    if row.unit in TENSOR_MEMORY:  # formats and shape are in the descriptor
        wide = "O" if k == 64 else "H" if row.a in ("f16", "bf16", "tf32") else "Q"
        return f"UTC{wide}MMA" + r"\.(4X|BLOCK16)" * (row.scales == 4)
    if row.unit == "wgmma":
        kind = f"HGMMA.{m}x{n}x{k}.{c}" if row.a in ("f16", "bf16", "tf32") else f"QGMMA.{m}x{n}x{k}.{c}.{a}.{b}"
    elif row.a in ("f16", "bf16", "tf32"):
        kind = f"HMMA.{m}{n}{k}.{c}"
    elif row.scale is None:
        return rf"QMMA\.{m}{n}{k}\.{c}\.{a}\.{b}"
    else:
        scale = {"ue8m0": "E8", "ue4m3": "UE4M3"}[row.scale.name]
        scale += ".4X" if row.scales == 4 else ""
        return re.escape(f"{'OMMA' if k == 64 else 'QMMA'}.SF.{m}{n}{k}.{c}.{a}.{b}.{scale}")
    return re.escape(kind + (f".{a}" if row.a in ("bf16", "tf32") else ""))


def check(kernel: Kernel, ptx: str, executed: Counter[str] | None) -> None:
    """The instruction stands once in the PTX, beside no floating-point arithmetic, and is what the GPU executes."""
    row = kernel.row
    body = ptx[ptx.index(f".entry {kernel.name}(") :].partition(".entry ")[2].partition(".entry ")[0]
    assert body.count(kernel.ptx) == 1
    assert not re.search(r"\b(add|sub|mul|fma|mad|cvt|min|max)(\.\w+)*\.(f16|bf16|f32|f64)\b", body)
    if executed is None:
        return
    if row.emulated:  # two chained steps of the f16 unit from zero, and an addition at the end
        assert executed[f"HMMA.16816.{row.c.upper()}"] == 2
        assert not any(code.startswith(("QMMA", "QGMMA")) for code in executed)
        assert executed["FADD" if row.c == "f32" else "HADD2"]
        return
    if row.shape == (8, 8, 4) and row.a == "f16":  # in steps, each of which gives some of the results
        steps = [f"HMMA.884.{row.c.upper()}.{row.c.upper()}.STEP{k}" for k in range(4 if row.c == "f32" else 2)]
        assert executed == Counter(steps)
        return
    assert len(executed) == 1, executed
    assert re.fullmatch(intended(kernel), next(iter(executed))), executed
    m, _, k = row.shape
    chained = row.arch == "blackwell" and row.a == "f64"  # its f64 unit has one shape
    assert executed.total() == (m // 8 * k // 4 if chained else 1), executed


def variants(arch: str) -> list[Kernel]:
    """More columns, and A in registers, of one instruction for each way in which its matrices can lie."""
    if arch != "hopper":
        return []
    names = ("m64n8k16.f32.f16.f16", "m64n8k16.f16.f16.f16", "m64n8k8.f32.tf32.tf32", "m64n8k32.f32.e4m3.e5m2")
    chosen = (Variant(16, "registers"), Variant(256))
    return [kernel_of(INSTRUCTIONS[f"hopper/wgmma/{name}"], variant) for name in names for variant in chosen]


def check_all(kernels: list[Kernel], capability: tuple[int, int]) -> None:
    compiled = compiler_for(capability).compile(source(kernels), target(capability))
    executed = arithmetic(compiled.cubin)
    assert (executed is None) == (capability == FIRST["volta"])  # the disassembler of CUDA 13 does not know it
    for kernel in kernels:
        check(kernel, compiled.ptx, None if executed is None else executed[kernel.name])


@pytest.mark.parametrize(
    "arch", [pytest.param(arch, marks=pytest.mark.slow) if arch == "rtx-blackwell" else arch for arch in CAPABILITIES]
)
def test_kernels_execute_their_instruction_and_no_other(arch: str) -> None:
    kernels = [kernel for kernel in kernels_of(arch) if kernel.row.unit not in TENSOR_MEMORY] + variants(arch)
    check_all(kernels, FIRST[arch])


@pytest.mark.parametrize("capability", CAPABILITIES["blackwell"])
def test_kernels_of_tcgen05_execute_their_instruction(capability: tuple[int, int]) -> None:
    check_all([kernel_of(INSTRUCTIONS[name]) for name in SOME], capability)


@pytest.mark.slow
@pytest.mark.parametrize("capability", CAPABILITIES["blackwell"])
def test_every_kernel_of_tcgen05_executes_its_instruction(capability: tuple[int, int]) -> None:
    check_all([kernel for kernel in kernels_of("blackwell") if kernel.row.unit in TENSOR_MEMORY], capability)


@pytest.mark.parametrize("capability", [c for found in CAPABILITIES.values() for c in found[1:]])
def test_other_capabilities_of_an_architecture(capability: tuple[int, int]) -> None:
    arch = architecture(capability)
    assert arch is not None
    kernel = kernels_of(arch)[0]
    assert kernel.ptx in compiler_for(capability).compile(source([kernel]), target(capability)).ptx


def test_cuda_12_compiles_for_hopper_and_later_too() -> None:
    """A driver of CUDA 12 cannot load what CUDA 13 made."""
    for arch, name in (
        ("hopper", "hopper/wgmma/m64n8k32.f32.e4m3.e4m3"),
        ("blackwell", "blackwell/mma/m16n8k32.f32.e4m3.e4m3.f32"),
        ("blackwell", "blackwell/tcgen05mma_block_scale/m64n8k64.block16.f32.e2m1.e2m1.ue4m3"),
        ("rtx-blackwell", "rtx-blackwell/mma_block_scale/m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3"),
    ):
        compiler = compiler_for(FIRST[arch], newest=12)
        assert compiler.version[0] == 12
        kernel = kernel_of(INSTRUCTIONS[name])
        assert kernel.ptx in compiler.compile(source([kernel]), target(FIRST[arch])).ptx


def test_errors_of_the_compiler() -> None:
    compiler = library(13)
    assert compiler is not None
    with pytest.raises(CompilerError, match=r"(?s)NVRTC 13\.\d+ refused a kernel for sm_90a.*error"):
        compiler.compile("__global__ void broken() { nonsense }", "sm_90a")
    with pytest.raises(CompilerError, match="does not compile for sm_35"):
        compiler_for((3, 5))


def test_the_compiler_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a driver newer than every NVRTC known here: the newest of these."""
    monkeypatch.setattr(nvrtc, "library", lambda major: None)
    for newest, major in ((12, 12), (13, 13), (14, 13)):
        with pytest.raises(CompilerError, match=rf"no NVRTC of CUDA {major} was found: pip install .*cuda{major}"):
            compiler_for((9, 0), newest)


def test_instructions_without_a_kernel() -> None:
    with pytest.raises(InputError, match="no kernel for mma_sp; command:"):
        kernel_of(replace(INSTRUCTIONS["ampere/mma/m16n8k16.f32.f16.f16.f32"], unit="mma_sp"))
    with pytest.raises(InputError, match="NVIDIA"):
        kernel_of(INSTRUCTIONS["cdna3/mfma/f32_16x16x16_f16"])


def test_every_instruction_of_nvidia_has_a_kernel() -> None:
    rows = [row for row in INSTRUCTIONS.values() if row.arch in CAPABILITIES]
    missing = {row.reference for row in rows} - {kernel.row.reference for _, kernel in KERNELS}
    assert missing == {f"{arch}/mma/m8n8k4.f32.f16.f16.f16" for arch in ("volta", "turing")}  # as below
    for arch in CAPABILITIES:
        assert len({kernel.name for kernel in kernels_of(arch)}) == len(kernels_of(arch))


def test_results_of_another_width_than_the_addend_have_no_kernel() -> None:
    row = INSTRUCTIONS["turing/mma/m8n8k4.f32.f16.f16.f16"]
    assert row.name not in {kernel.row.name for kernel in kernels_of("turing")}
    with pytest.raises(InputError, match="another width"):
        kernel_of(row)
