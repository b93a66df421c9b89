"""HIP kernels: compiled for every architecture, their operands in a wave in software, and the device on a library that
stands in for ROCm's."""

from __future__ import annotations

import ctypes
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import evidence, evidence_steps
from mmaprobe.runner.devices import open_device
from mmaprobe.runner.gpu import cuda, hip
from mmaprobe.runner.gpu.device import Position
from mmaprobe.runner.gpu.hip_kernels import TARGETS, HipKernel, hip_kernels
from mmaprobe.runner.gpu.kernel_source import placing, source
from mmaprobe.runner.gpu.launch import LaunchError
from mmaprobe.runner.gpu.rtc import CompilerError
from mmaprobe.runner.protocol import DeviceUnavailableError, Patience
from mmaprobe.smtmodel.base.errors import InputError, UnknownNameError
from mmaprobe.smtmodel.base.libraries import compiler
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from tests.cuda.test_fragments import Place, integers
from tests.places import DATA

pytestmark = pytest.mark.compilers

KERNELS = hip_kernels()
needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C compiler: set CC or install one")
Table = Callable[[int, int], tuple[int, int, int]]  # thread, element -> block, row, column


def clang() -> list[str] | None:
    """A clang that compiles for AMD's GPUs, CDNA4 among them: MMAPROBE_CLANG, one of the system, or that of ziglang."""
    if named := os.environ.get("MMAPROBE_CLANG"):
        return shlex.split(named)
    if found := next((name for name in ("clang-22", "clang-21", "clang-20") if shutil.which(name)), None):
        return [found]
    return [sys.executable, "-m", "ziglang", "clang"] if find_spec("ziglang") else None


def test_every_instruction_of_the_table_has_a_kernel() -> None:
    missing = {row.reference for row in INSTRUCTIONS.values() if row.unit == "mfma"} - KERNELS.keys()
    assert missing == {"cdna2/mfma/f64_4x4x4f64", "cdna3/mfma/f64_4x4x4_4b_f64"}
    assert {kernel.arch for kernel in KERNELS.values()} == TARGETS.keys()


def test_every_function_is_one_of_the_compiler() -> None:
    """The list is of clang 22: what __has_builtin says of each target."""
    known = {tuple(line.split()) for line in (DATA / "amdgpu_builtins.txt").read_text().splitlines()}
    for kernel in KERNELS.values():
        assert (TARGETS[kernel.arch][0], kernel.builtin) in known, kernel.reference


#: the registers that a multiplicand of MFMA with scale factors takes, by the width of its elements
SCALED_REGISTERS = {8: 8, 6: 6, 4: 4}
#: of these instructions, those of a quick run: every format of A, and of B
SCALED_QUICK = ["16x16x128_f8f6f4.e4m3.e2m1", "32x32x64_f8f6f4.e5m2.e3m2", "16x16x128_f8f6f4.e2m3.e5m2",
                "32x32x64_f8f6f4.e3m2.e4m3", "16x16x128_f8f6f4.e2m1.e2m3"]  # fmt: skip


@pytest.mark.skipif(clang() is None, reason="no clang for AMD's GPUs: apt install clang-22, or set MMAPROBE_CLANG")
@pytest.mark.parametrize(
    ("arch", "target", "quick"),
    [
        *((arch, targets[0], True) for arch, targets in TARGETS.items()),
        *(pytest.param(arch, target, False, marks=pytest.mark.slow) for arch in TARGETS for target in TARGETS[arch]),
    ],
)
def test_kernels_execute_their_instruction_and_no_other(arch: str, target: str, quick: bool, tmp_path: Path) -> None:
    own = [kernel for kernel in KERNELS.values() if kernel.arch == arch]
    if quick:
        own = [kernel for kernel in own if not kernel.scales or kernel.reference.partition("/f32_")[2] in SCALED_QUICK]
    (path := tmp_path / "kernels.hip").write_text(source(own))
    command = [*(clang() or ()), "-x", "hip", "--cuda-device-only", f"--offload-arch={target}", "-nogpuinc",
               "-nogpulib", "-O2", "-Werror", "-S", "-o", str(tmp_path / "out.s"), str(path)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    text = (tmp_path / "out.s").read_text()
    for kernel in own:
        body = text.partition(f"\n{kernel.name}:")[2].partition(".end_amdhsa_kernel")[0]
        lines = [line.strip() for line in body.splitlines()]
        found = [line for line in lines if line.startswith(("v_mfma", "v_wmma", "v_dot"))]
        assert len(found) == 1, kernel.reference
        assert found[0].startswith(kernel.instruction)
        if kernel.scales:  # the codes of the formats say how many registers are read
            first, last = zip(
                *(map(int, pair) for pair in re.findall(r"v\[([0-9]+):([0-9]+)\]", found[0])), strict=True
            )
            read = [end + 1 - start for start, end in zip(first[1:3], last[1:3], strict=True)]
            assert read == [SCALED_REGISTERS[kernel.a.fmt.width], SCALED_REGISTERS[kernel.b.fmt.width]], found[0]


def test_names_tell_operands_apart() -> None:
    """Else one's functions would be taken for the other's."""
    known: dict[str, object] = {}
    for kernel in KERNELS.values():
        for operand in kernel.operands:
            assert known.setdefault(operand.name, operand) == operand


# -- a wave in software: where AMD's documents put each element


def multiplicand(kernel: HipKernel, side: str, each: int) -> Table:
    """Threads in order: rows of A (columns of B) change first, then the runs of places along K, then the blocks."""
    m, n, k = kernel.shape
    size = m if side == "a" else n
    order = [(block, run, x) for block in range(64) for run in range(k // each) for x in range(size)]
    again = 64 // size  # runs until a thread has its next one

    def table(lane: int, i: int) -> tuple[int, int, int]:
        block, run, x = order[lane]
        along = (run + i // each * again) * each + i % each
        return (block, x, along) if side == "a" else (block, along, x)

    return table


def results(kernel: HipKernel) -> Table:
    """Registers in order: of each block, four rows of every fourth group of rows at a time; of f64 one row."""
    m, n, _ = kernel.shape
    together = 1 if kernel.c.fmt.width == 64 else 4
    held, at = dict[tuple[int, int], tuple[int, int, int]](), dict[int, int]()
    lanes_of_a_row = n
    groups = 64 // lanes_of_a_row if m > 4 else 1
    for block in range(64):
        for row in range(m):
            for column in range(n):
                part = row // together % groups if m > 4 else block
                lane = part * lanes_of_a_row + column
                if lane < 64 and (m > 4 or block < 16):
                    held[lane, at.get(lane, 0)] = block, row, column
                    at[lane] = at.get(lane, 0) + 1
    return lambda lane, i: held[lane, i]


def wave(kernel: HipKernel, side: str) -> Table:
    """RDNA's waves of 32 threads, and the dot products of single threads."""
    four = kernel.arch == "rdna4"
    if kernel.threads == 1:
        return lambda lane, i: {"a": (0, 0, i), "b": (0, i, 0), "c": (0, 0, 0)}[side]
    if side == "c":
        return lambda lane, i: (0, i + lane // 16 * 8 if four else i * 2 + lane // 16, lane % 16)
    along: Callable[[int, int], int] = (lambda lane, i: i + lane // 16 * 8) if four else (lambda lane, i: i)
    return (
        (lambda lane, i: (0, lane % 16, along(lane, i)))
        if side == "a"
        else (lambda lane, i: (0, along(lane, i), lane % 16))
    )


def table_of(kernel: HipKernel, side: str) -> Table:
    if kernel.threads != 64:
        return wave(kernel, side)
    operand: Any = next(operand for operand in kernel.operands if operand.matrix == side)
    if side == "c":
        return results(kernel)
    if side.startswith("scale"):  # one factor in a thread: of all rows (columns) for the first 32 places, then the next
        return multiplicand(replace(kernel, shape=(*kernel.shape[:2], kernel.shape[2] // 32)), side[-1], 1)
    runs = 2 if kernel.scales and operand.fmt.width == 8 else 1
    return multiplicand(kernel, side, operand.place.elements // runs)


@pytest.mark.parametrize("reference", KERNELS)
def test_elements_lie_where_the_documents_say(reference: str) -> None:
    kernel = KERNELS[reference]
    m, n, k = kernel.shape
    extents = ((m, k), (k, n), (m, n), (m, k // 32), (k // 32, n))
    for operand, extent in zip(kernel.operands, extents, strict=False):
        table, seen = table_of(kernel, operand.matrix), set()
        place: Any = operand.place
        holder = compile(place.holder, "holder", "eval")
        for lane in range(kernel.threads):
            for i in range(place.elements):
                block, row, column = table(lane, i)
                assert place.place(lane, i) == (row, column), (operand.matrix, lane, i)
                counts = eval(holder, {}, {"lane": lane, "i": i})
                assert bool(counts) == (block == 0) or operand.matrix != "c"
                seen.add((row, column))
        assert seen == {(row, column) for row in range(extent[0]) for column in range(extent[1])}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = tmp_path_factory.mktemp("placing")
    (folder / "placing.c").write_text(placing(KERNELS.values()))
    command = [
        *(compiler() or ()),
        "-O1",
        "-w",
        "-shared",
        "-fPIC",
        str(folder / "placing.c"),
        "-o",
        str(folder / "p.so"),
    ]
    subprocess.run(command, check=True, timeout=120)
    return ctypes.CDLL(str(folder / "p.so"))


@needs_compiler
@pytest.mark.parametrize("reference", list(KERNELS)[::5])
def test_a_wave_multiplies_the_vector(reference: str, library: Any) -> None:
    """Integers in the places of patterns: the wave's matrices are multiplied, and the result is taken out once."""
    kernel, rng = KERNELS[reference], random.Random(reference)
    m, n, k = kernel.shape
    a, b, *factors = ([rng.randrange(1, 8) for _ in range(size)] for size in (k, k, *[k // 32] * len(kernel.scales)))
    scale = [x * y for x, y in zip(*factors, strict=True)] or [1]
    for row, column in {(0, 0), (m - 1, n - 1), (m // 2, n // 3)}:
        at, matrices = Place(0, row, column, 0, 0), {}
        for operand, patterns in zip(kernel.operands, (a, b, [5], *factors), strict=True):
            place: Any = operand.place
            load, table = getattr(library, f"load_{operand.name}"), table_of(kernel, operand.matrix)
            matrix = matrices.setdefault(operand.matrix, {})
            for lane in range(kernel.threads):
                registers = integers(place.word, [0] * place.registers)
                load(registers, ctypes.c_uint32(lane), ctypes.byref(at), integers(operand.fmt.word, patterns))
                whole = sum(word << place.word * j for j, word in enumerate(registers))
                for i in range(place.elements):
                    block, x, y = table(lane, i)
                    if block == 0:
                        matrix[x, y] = whole >> place.width * i & (1 << place.width) - 1
        one, other, *scales = (matrices[name] for name in matrices if name != "c")

        def times(x: int, y: int, z: int, one: Any = one, other: Any = other, scales: Any = tuple(scales)) -> int:
            factor = scales[0][x, z // 32] * scales[1][z // 32, y] if scales else 1
            return int(one[x, z] * other[z, y] * factor)

        product = {(x, y): c + sum(times(x, y, z) for z in range(k)) for (x, y), c in matrices["c"].items()}
        place, store, table = kernel.c.place, getattr(library, f"store_{kernel.c.name}"), table_of(kernel, "c")
        written = []
        for lane in range(kernel.threads):
            words = [0] * place.registers
            for i in range(place.elements):
                block, x, y = table(lane, i)
                words[i // place.per_register] |= (product[x, y] if block == 0 else 1) << place.width * (
                    i % place.per_register
                )
            out = integers(kernel.c.fmt.word, [0])
            store(integers(place.word, words), ctypes.c_uint32(lane), ctypes.byref(at), out)
            written += [out[0]] if out[0] else []
        wanted = 5 + sum(x * y * scale[z * len(scale) // k] for z, (x, y) in enumerate(zip(a, b, strict=True)))
        assert written == [wanted]


# -- the device

STAND_IN = r"""
#include <stdlib.h>
#include <string.h>
static int polls, fails, full;
const char *hipGetErrorString(int code) { return code == 2 ? "out of memory" : "a fault"; }
const char *hiprtcGetErrorString(int code) { return "a fault"; }
int hipGetDeviceCount(int *count) { *count = 1; return 0; }
int hipGetDevice(int *device) { *device = 0; return 0; }
int hipGetDevicePropertiesR0600(char *p, int device)
{ strcpy(p, "Stand-in"); strcpy(p + 1160, "TARGET:xnack-"); return 0; }
int hipRuntimeGetVersion(int *version) { *version = 70100000; return 0; }
int hipMalloc(void **p, size_t size) { *p = malloc(size); return size > 1 << 26 ? 2 : 0; }
int hipFree(void *p) { free(p); return 0; }
int hipMemcpy(void *to, const void *from, size_t size, int kind) { memcpy(to, from, size); return 0; }
int hipModuleLoadData(void **module, const char *code) { *module = (void *)1; return strncmp(code, "code", 4) ? 1 : 0; }
int hipModuleGetFunction(void **function, void *module, const char *name) { *function = (void *)name; return 0; }
/* the kernel: d is c */
int hipModuleLaunchKernel(void *f, unsigned x, unsigned y, unsigned z, unsigned tx, unsigned ty, unsigned tz,
                          unsigned shared, void *stream, void **arguments, void **extra)
{
  unsigned count = *(unsigned *)arguments[6];
  memcpy(*(void **)arguments[5], *(void **)arguments[2], 4 * count);
  polls = 3;
  return 0;
}
int hipStreamQuery(void *stream) { return polls-- > 0 ? 600 : HANGS ? 600 : 0; }
int hiprtcCreateProgram(void **p, const char *text, const char *name, int n, char **h, char **i)
{ *p = (void *)text; return 0; }
int hiprtcCompileProgram(void *p, int n, const char **options)
{ return strcmp(options[0], "--offload-arch=TARGET") != 0; }
int hiprtcGetProgramLogSize(void *p, size_t *size) { *size = 6; return 0; }
int hiprtcGetProgramLog(void *p, char *log) { strcpy(log, "wrong"); return 0; }
int hiprtcGetCodeSize(void *p, size_t *size) { *size = 5; return 0; }
int hiprtcGetCode(void *p, char *code) { strcpy(code, "code"); return 0; }
int hiprtcDestroyProgram(void **p) { return 0; }
"""


def stood_in(folder: Path, monkeypatch: pytest.MonkeyPatch, target: str, hangs: int = 0) -> None:
    (folder / "lib").mkdir()
    (path := folder / "hip.c").write_text(STAND_IN.replace("TARGET", target).replace("HANGS", str(hangs)))
    command = [*(compiler() or ()), "-w", "-shared", "-fPIC", str(path), "-o", str(folder / "lib/libamdhip64.so")]
    subprocess.run(command, check=True, timeout=60)
    shutil.copy(folder / "lib/libamdhip64.so", folder / "lib/libhiprtc.so")
    monkeypatch.setenv("HIP_PATH", str(folder))


def asked(device: Any, rows: Sequence[int]) -> list[int]:
    zeros = np.zeros((len(rows), device.model.length), dtype=np.uint64)
    factors = [zeros[:, : device.model.scales]] * len(device.kernel.scales)
    found: list[int] = device.patterns(zeros, zeros, np.array(rows, dtype=np.uint64), *factors).tolist()
    return found


@needs_compiler
@pytest.mark.parametrize(
    ("target", "name", "reference"),
    [
        ("gfx942", "f32_16x16x16_f16?row=3", "cdna3/mfma/f32_16x16x16_f16"),
        ("gfx950", "mfma/f32_16x16x32_f16", "cdna4/mfma/f32_16x16x32_f16"),
        ("gfx950", "f32_32x32x64_f8f6f4.e2m3.e2m1", "cdna4/mfma_scale/f32_32x32x64_f8f6f4.e2m3.e2m1"),
        ("gfx1200", "f32_16x16x16_fp8_bf8", "rdna4/wmma/f32_16x16x16_fp8_bf8"),
        ("gfx1201", "dot2/f32_bf16", "rdna4/dot2/f32_bf16"),
    ],
)
def test_a_device_by_a_library_in_place_of_rocm(
    target: str, name: str, reference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stood_in(tmp_path, monkeypatch, target)
    device: Any = open_device(f"hip:{name}")
    assert asked(device, [1, 2, 3]) == [1, 2, 3]
    about = device.description
    assert [about["name"], about["target"], about["instruction"]] == ["Stand-in", target, reference]
    assert about["builtin"] == hip_kernels()[reference].builtin
    assert [device.model.a, device.model.c] == [hip_kernels()[reference].a.fmt, hip_kernels()[reference].c.fmt]
    assert device.model.length == hip_kernels()[reference].shape[2]


@needs_compiler
def test_what_may_go_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stood_in(tmp_path, monkeypatch, "gfx942", hangs=1)
    device = hip.open_hip("f32_16x16x16_f16")
    device.patience = Patience(0.05)
    with pytest.raises(LaunchError, match="did not finish"):
        asked(device, [1])
    with pytest.raises(InputError, match="rows 0 to 15"):
        hip.open_hip("f32_16x16x16_f16?row=16")
    with pytest.raises(InputError, match="wgmma"):
        hip.open_hip("f32_16x16x16_f16?columns=16")
    with pytest.raises(UnknownNameError, match="instruction of this GPU"):
        hip.open_hip("rdna4/dot2/f32_bf16")
    with pytest.raises(UnknownNameError, match="did you mean 'mfma/f32_16x16x16_f16'"):
        hip.open_hip("mfma/f32_16x16x16_f15")
    launcher = hip.HipLauncher()
    launcher.target = "gfx1"
    with pytest.raises(CompilerError, match="wrong"):
        launcher.compile("")
    with pytest.raises(DeviceUnavailableError, match="no kernels for this GPU"):
        hip.open_hip("f32_16x16x16_f16", launcher=launcher)
    with pytest.raises(LaunchError, match="hipModuleLoadData: a fault"):
        launcher.load(b"no code", "kernel")


def test_without_rocm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hip, "_places", lambda name: iter(()))
    with pytest.raises(DeviceUnavailableError, match=r"hip:f32_16x16x16_f16: libamdhip64\.so was not found: ROCm"):
        open_device("hip:f32_16x16x16_f16")
    assert "cdna2/mfma/f64_4x4x4f64" not in hip_kernels()
    assert Position().row == 0


@needs_compiler
def test_evidence_asks_the_amd_gpu_where_there_is_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the library in place of ROCm, whose kernels answer c: in every position, and otherwise than the models."""

    def nothing() -> None:
        raise DeviceUnavailableError("no cupy")

    monkeypatch.setattr(cuda, "launcher_here", nothing)
    stood_in(tmp_path, monkeypatch, "gfx942")
    out = tmp_path / "out"
    few = ["--only", r"f32_16x16x16_f16$", "--steps", "position,random", "--count", "60", "-o", str(out)]
    assert evidence.main(few) == 0
    found = json.loads((out / "summary.json").read_text())["cdna3/mfma/f32_16x16x16_f16"]
    assert found["position"]["independent"]
    assert len(found["position"]["positions"]) == 7
    assert 0 < found["random"]["mismatches"] <= found["random"]["vectors"] == 60


def test_evidence_of_every_amd_gpu_has_its_instructions(tmp_path: Path) -> None:
    for arch in evidence.AMD:
        chosen = evidence.arguments(["--arch", arch, "-o", str(tmp_path)])
        todo = evidence.jobs(chosen, arch)
        assert [job.model.length for job in todo] == [job.shape[2] for job in todo]
        assert {job.device() for job in todo} == {f"hip:{job.reference.partition('/')[2]}" for job in todo}
    assert "cdna4" not in evidence.AMD
    assert "fasi-final-rounding" in evidence_steps.question_names("cdna2/mfma/f64_16x16x4f64")
