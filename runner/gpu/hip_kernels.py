"""The kernel of each matrix instruction of AMD's GPUs: the places of its operands in a wave, and its built-in function.

Sources: AMD's matrix instruction calculator and the CDNA and RDNA instruction sets ("Matrix fused-multiply-add",
"Wave matrix multiply accumulate"); LLVM's BuiltinsAMDGPU for the functions and their types. All blocks of an
instruction with several blocks get the same operands, and the result of the first block is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

from mmaprobe.runner.gpu.fragments import Fragment
from mmaprobe.runner.gpu.kernels import Operand
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit_files import units

#: the compiler's targets of each architecture; compilations without a GPU use the first
TARGETS: Mapping[str, tuple[str, ...]] = {
    "cdna1": ("gfx908",), "cdna2": ("gfx90a",), "cdna3": ("gfx942",), "cdna4": ("gfx950",),
    "rdna3": ("gfx1100", "gfx1101", "gfx1102"), "rdna3.5": ("gfx1151", "gfx1150", "gfx1152"),
    "rdna4": ("gfx1201", "gfx1200"),
}  # fmt: skip
_MFMA = re.compile(
    r"(f32|f64)_([0-9]+)x([0-9]+)x([0-9]+)(?:_[0-9]+b)?"
    r"_?(f16|bf16_1k|bf16|xf32|f32|f64|[fb][pf]8_[fb][pf]8)"
)
#: end of the name of an MFMA's function -> the C type and the number of a thread's elements of a matrix
_ELEMENTS = {"f32": ("float", 1), "f16": ("_Float16", 4), "bf16": ("short", 2), "bf16_1k": ("short", 4),
             "xf32": ("float", 2), "f64": ("double", 1)}  # fmt: skip
#: the formats of a and b of an MFMA with scale factors, in the order of their codes in the instruction
_SCALED = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
_FP8 = {"fp8": "e4m3", "bf8": "e5m2"}
_WMMA = re.compile(r"(?:f32|f16|bf16)_16x16x16_(?:f16|bf16)")
_C_TYPES = {"f32": "float", "f16": "_Float16", "f64": "double"}


@dataclass(frozen=True)
class HipKernel:
    """The kernel of one instruction. `shape`: M, N and K; `builtin`: the compiler's function; `types`: the C type and
    the number of elements of each operand of the function; `tail`: the function's arguments after a, b and c;
    `threads`: the threads of a wave, or 1 if each thread has a vector of its own; `alike`: for an instruction without a
    known model, a model with the instruction's formats and number of products."""

    reference: str
    shape: tuple[int, int, int]
    a: Operand
    b: Operand
    c: Operand
    builtin: str
    types: tuple[tuple[str, int], ...]
    tail: str
    threads: int
    alike: str = ""
    scales: tuple[Operand, ...] = ()

    @property
    def arch(self) -> str:
        return self.reference.partition("/")[0]

    @property
    def name(self) -> str:
        return re.sub(r"\W", "_", self.reference)

    @property
    def instruction(self) -> str:
        """The beginning of the instruction's name in a disassembly."""
        _, unit, name = self.reference.split("/")
        return f"v_{unit}_{name.partition('.')[0]}" if unit != "dot2" else "v_dot2"

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (self.a, self.b, self.c, *self.scales)


@cache
def hip_kernels() -> Mapping[str, HipKernel]:
    """Every kernel by the reference of its instruction. The instructions of CDNA4 and the FP8 instructions of RDNA4
    have kernels, but no rows in the table of instructions."""
    kernels = [_mfma(row.reference, row.a, row.b, row.c) for row in INSTRUCTIONS.values() if row.unit == "mfma"]
    kernels += [_wide(m, k, fmt) for m, k in ((16, 32), (32, 16)) for fmt in ("f16", "bf16")]
    kernels += [_scaled(m, k, a, b) for m, k in ((16, 128), (32, 64)) for a, b in product(_SCALED, repeat=2)]
    kernels += [_fp8(unit, a, b) for unit in ("wmma", "dot4") for a, b in product(_FP8, repeat=2)]
    for reference in units():
        arch, unit, name = reference.split("/")
        if arch.startswith("rdna") and unit == "wmma" and _WMMA.fullmatch(name):
            kernels.append(_wmma(reference))
        elif arch in TARGETS and unit == "dot2":
            kernels.append(_dot2(reference))
    return {kernel.reference: kernel for kernel in kernels if kernel is not None}


def _mfma(reference: str, a: str, b: str, c: str, each: int = 0) -> HipKernel | None:
    arch, _, name = reference.split("/")
    parts = _MFMA.fullmatch(name)
    assert parts is not None, reference
    sums, kind = parts[1], parts[5]
    m, n, k = (int(parts[place]) for place in (2, 3, 4))
    if (sums, m) == ("f64", 4):
        return None  # the places of its blocks are not known well enough
    if arch == "cdna3" and kind == "bf16":
        kind = "bf16_1k"
    if each:
        types, suffix = ("__bf16" if kind == "bf16" else "_Float16", each), f"_{kind}"
    elif kind in _ELEMENTS:
        types, suffix = _ELEMENTS[kind], f"_{kind}" if kind == "xf32" else kind
        each = types[1]
    else:
        types, suffix, each = ("long", 1), f"_{kind}", 8
    blocks = 64 * each // (k * m)
    one, other, third = FORMATS[a], FORMATS[b], FORMATS[c]
    operands = (
        Operand("a", one, _multiplicand(m, each, blocks, one, "a"), k, f"_{m}"),
        Operand("b", other, _multiplicand(n, each, blocks, other, "b"), k, f"_{m}"),
        Operand("c", third, _accumulator(m, n, blocks, third.width), 1, f"_{m}"),
    )
    result = (_C_TYPES[sums], m * n * blocks // 64)
    builtin = f"__builtin_amdgcn_mfma_{sums}_{m}x{n}x{k}{suffix}"
    return HipKernel(reference, (m, n, k), *operands, builtin, (types, types, result), ", 0, 0, 0", 64)


def _wide(m: int, k: int, fmt: str) -> HipKernel:
    """CDNA4's MFMA with eight elements in a thread."""
    kernel = _mfma(f"cdna4/mfma/f32_{m}x{m}x{k}_{fmt}", fmt, fmt, "f32", 8)
    assert kernel is not None
    return replace(kernel, alike=f"cdna3/mfma/f32_16x16x16_{fmt}@length={k}")


def _scaled(m: int, k: int, a: str, b: str) -> HipKernel:
    """CDNA4's MFMA with a scale factor for each 32 products, in the lowest byte of a thread. A thread has 32 elements:
    elements of 8 bits lie in two runs of 16 places along K, shorter elements in one run."""
    across, block = f"lane & {m - 1}", f"lane >> {m.bit_length() - 1}"

    def multiplicand(name: str) -> Fragment:
        fmt = FORMATS[a if name == "a" else b]
        along = f"16 * ({block}) + (i & 15) + {1024 // m} * (i >> 4)" if fmt.width == 8 else f"32 * ({block}) + i"
        return Fragment(32, fmt.width, *((across, along) if name == "a" else (along, across)), 64)

    codes = f"{_SCALED.index(a)}, {_SCALED.index(b)}"
    return HipKernel(
        f"cdna4/mfma_scale/f32_{m}x{m}x{k}_f8f6f4.{a}.{b}",
        (m, m, k),
        Operand("a", FORMATS[a], multiplicand("a"), k, f"_{m}"),
        Operand("b", FORMATS[b], multiplicand("b"), k, f"_{m}"),
        Operand("c", FORMATS["f32"], _accumulator(m, m, 1, 32), 1, f"_{m}"),
        f"__builtin_amdgcn_mfma_scale_f32_{m}x{m}x{k}_f8f6f4",
        (("int", 8), ("int", 8), ("float", m * m // 64), ("int", 1), ("int", 1)),
        f", {codes}, 0, vscale_a, 0, vscale_b",
        64,
        f"blackwell/tcgen05mma_block_scale/m64n8k32.block32.f32.{a}.{b}.ue8m0@length={k}",
        (
            Operand("scale_a", FORMATS["ue8m0"], Fragment(1, 8, across, block, 64), k // 32, f"_{m}"),
            Operand("scale_b", FORMATS["ue8m0"], Fragment(1, 8, block, across, 64), k // 32, f"_{m}"),
        ),
    )


def _fp8(unit: str, a: str, b: str) -> HipKernel:
    """RDNA4's WMMA with FP8, with eight elements in a thread as with f16; and V_DOT4, with a vector in each thread."""
    reference, k = (f"rdna4/wmma/f32_16x16x16_{a}_{b}", 16) if unit == "wmma" else (f"rdna4/dot4/f32_{a}_{b}", 4)
    one, other, sums = FORMATS[_FP8[a]], FORMATS[_FP8[b]], FORMATS["f32"]
    alike = f"rtx-blackwell/mma/m16n8k32.f32.{one.name}.{other.name}.f32@length={k}"
    if unit == "dot4":
        places = Fragment(4, 8, "0", "i", 1), Fragment(4, 8, "i", "0", 1), Fragment(1, 32, "0", "0", 1)
        shape, sizes, threads, builtin = (1, 1, 4), (1, 1, 1), 1, f"__builtin_amdgcn_dot4_f32_{a}_{b}"
    else:
        along, across = "8 * (lane >> 4) + i", "lane & 15"
        places = Fragment(8, 8, across, along), Fragment(8, 8, along, across), Fragment(8, 32, along, across)
        shape, sizes, threads = (16, 16, 16), (2, 2, 8), 32
        builtin = f"__builtin_amdgcn_wmma_f32_16x16x16_{a}_{b}_w32_gfx12"
    operands = Operand("a", one, places[0], k), Operand("b", other, places[1], k), Operand("c", sums, places[2], 1)
    types = tuple(zip(("int", "int", "float"), sizes, strict=True))
    return HipKernel(reference, shape, *operands, builtin, types, "", threads, alike)


def _multiplicand(size: int, each: int, blocks: int, fmt: Format, side: str) -> Fragment:
    """A (B) of an MFMA. The threads run first through `size` rows (columns), then through groups of `each` places along
    K, one group in a thread, then through blocks."""
    log, groups = size.bit_length() - 1, 64 // (size * blocks)
    along, across = f"{each} * ((lane >> {log}) & {groups - 1}) + i", f"lane & {size - 1}"
    row, column = (across, along) if side == "a" else (along, across)
    return Fragment(each, fmt.width, row, column, 64)


def _accumulator(m: int, n: int, blocks: int, width: int) -> Fragment:
    """C and D of an MFMA: a thread has four successive rows of one column, and successive threads have successive
    columns; for f64 the four rows of a thread are four apart."""
    column, elements = f"lane & {n - 1}", m * n * blocks // 64
    if width == 64:
        return Fragment(elements, 64, "4 * i + (lane >> 4)", column, 64)
    if m == 4:
        return Fragment(elements, 32, "i", column, 64, "(lane >> 2) == 0")
    if m == 16:
        return Fragment(elements, 32, "4 * (lane >> 4) + (i & 3)", column, 64, "(i >> 2) == 0")
    return Fragment(elements, 32, "8 * ((i >> 2) & 3) + 4 * (lane >> 5) + (i & 3)", column, 64, "(i >> 4) == 0")


def _wmma(reference: str) -> HipKernel:
    """WMMA in waves of 32 threads. RDNA3: each half of a wave has all elements of A and B and every second row of D;
    results of 16 bits are in the lower halves of registers. RDNA4: each half of a wave has eight places along K and
    eight rows of D."""
    arch, _, name = reference.split("/")
    model, four = parse_reference(reference), arch == "rdna4"
    each, kind = 8 if four else 16, {"f16": "_Float16", "bf16": "short"}
    along, across = ("8 * (lane >> 4) + i" if four else "i"), "lane & 15"
    rows, width = ("8 * (lane >> 4) + i", model.c.width) if four else ("2 * i + (lane >> 4)", 32)
    operands = (
        Operand("a", model.a, Fragment(each, 16, across, along), 16, f"_{each}"),
        Operand("b", model.b, Fragment(each, 16, along, across), 16, f"_{each}"),
        Operand("c", model.c, Fragment(8, width, rows, across), 1, f"_{each}"),
    )
    result = {**kind, "f32": "float"}[model.c.name], 8 * width // model.c.width
    builtin = f"__builtin_amdgcn_wmma_{name}_w32{'_gfx12' if four else ''}"
    tail = "" if four or model.c == FORMATS["f32"] else ", false"  # false: results in the lower halves of registers
    types = (kind[model.a.name], each), (kind[model.b.name], each), result
    return HipKernel(reference, (16, 16, 16), *operands, builtin, types, tail, 32)


def _dot2(reference: str) -> HipKernel:
    """V_DOT2: a vector in each thread."""
    model, name = parse_reference(reference), reference.rpartition("/")[2]
    kind = {"f16": "_Float16", "bf16": "__bf16", "f32": "float"}
    operands = (
        Operand("a", model.a, Fragment(2, 16, "0", "i", 1), 2),
        Operand("b", model.b, Fragment(2, 16, "i", "0", 1), 2),
        Operand("c", model.c, Fragment(1, model.c.width, "0", "0", 1), 1),
    )
    types = (kind[model.a.name], 2), (kind[model.b.name], 2), (kind[model.c.name], 1)
    builtin = "__builtin_amdgcn_fdot2" + ("" if name == "f32_f16" else f"_{name}")
    clamp = ", false" if model.d == FORMATS["f32"] else ""
    return HipKernel(reference, (1, 1, 2), *operands, builtin, types, clamp, 1)
