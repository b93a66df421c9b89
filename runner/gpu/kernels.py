"""The kernel of each matrix instruction of NVIDIA's GPUs: its operands, their places, and the PTX instruction.

A kernel follows from a row of the instruction table; kernel_source.py makes CUDA C of the kernel. Sources: PTX ISA,
`mma`, `wgmma.mma_async`, "Block Scaling for mma.sync", "Packing formats"; of `tcgen05.mma` "Instruction descriptor" and
"Shared memory descriptor", and CUTLASS (cute/arch/mma_sm100_desc.hpp), which has the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mmaprobe.runner.gpu import fragments
from mmaprobe.runner.gpu.fragments import Fragment, Tile, tile
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.operand import FACTORS
from mmaprobe.smtmodel.tables.instruction import Instruction
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS

#: compute capabilities of each architecture
CAPABILITIES = {
    "volta": ((7, 0), (7, 2)),
    "turing": ((7, 5),),
    "ampere": ((8, 0), (8, 6), (8, 7)),
    "ada-lovelace": ((8, 9),),
    "hopper": ((9, 0),),
    "blackwell": ((10, 0), (10, 3)),
    "rtx-blackwell": ((12, 0), (12, 1)),
}


TENSOR_MEMORY = ("tcgen05mma", "tcgen05mma_block_scale")  # units whose sums lie in tensor memory
UNITS = ("mma", "mma_block_scale", "wgmma", *TENSOR_MEMORY)


def target(capability: tuple[int, int]) -> str:
    """The compiler's target; from Hopper on the architecture-specific one, which some matrix instructions need."""
    major, minor = capability
    return f"sm_{major}{minor}" + ("a" if major >= 9 else "")


def architecture(capability: tuple[int, int]) -> str | None:
    """The architecture of a compute capability, by its name in the instruction table; None if the table has none."""
    return next((arch for arch, capable in CAPABILITIES.items() if capability in capable), None)


@dataclass(frozen=True)
class Operand:
    """One matrix of a kernel. `fmt`: the format of its elements; `place`: where they are; `count`: how many a vector
    has; `tag`: the part of the operand's name that distinguishes it from other operands of the same size."""

    matrix: str
    fmt: Format
    place: Fragment | Tile
    count: int
    tag: str = ""

    @property
    def name(self) -> str:
        """A name for the operand's C functions, different for different operands."""
        place = self.place
        where = f"{place.elements}x{place.threads}" if isinstance(place, Fragment) else f"shared{place.majors}"
        return f"{self.matrix}_{self.fmt.name}_{place.width}_{self.count}_{where}{self.tag}"

    @property
    def shift(self) -> int:
        """The number of bits of a register below the pattern of an element: e2m1 is in the middle of a byte, other
        formats are at the bottom."""
        return 2 if (self.fmt.width, self.place.width) == (4, 8) else 0


@dataclass(frozen=True)
class Variant:
    """The choices that the table's row of a `wgmma` leaves open: N (the `columns` of B and D), and the place of A."""

    columns: int = 8
    a: Literal["shared", "registers"] = "shared"


@dataclass(frozen=True)
class Kernel:
    """The kernel of one instruction. `shape`: M, N and K; the operands are in the order of the PTX instruction;
    `ptx`: the PTX instruction with its qualifiers; `descriptor`: the instruction descriptor of tcgen05."""

    row: Instruction
    shape: tuple[int, int, int]
    a: Operand
    b: Operand
    c: Operand
    scales: tuple[Operand, ...]
    ptx: str
    descriptor: int = 0

    @property
    def name(self) -> str:
        if self.row.unit in TENSOR_MEMORY:  # the formats are not in the PTX instruction
            return f"{self.row.unit}_{self.row.name}".replace(".", "_")
        registers = "_registers" if self.row.unit == "wgmma" and isinstance(self.a.place, Fragment) else ""
        return self.ptx.replace(".", "_").replace("::", "_") + registers

    @property
    def operands(self) -> tuple[Operand, ...]:
        return (self.a, self.b, self.c, *self.scales)

    @property
    def threads(self) -> int:
        """The number of threads that compute one vector: a warp or a warpgroup."""
        return 32 if self.row.unit.startswith("mma") else 128


def runnable(row: Instruction) -> bool:
    """Whether there is a kernel for an instruction."""
    return row.arch in CAPABILITIES and row.unit in UNITS and _in_place(row)


def _in_place(row: Instruction) -> bool:
    """Whether results have the width of the addends: kernels keep both in the same registers."""
    return FORMATS[row.c].width == row.d.width


def kernel_of(row: Instruction, variant: Variant | None = None) -> Kernel:
    """The kernel of an instruction. Raises InputError if there is none."""
    if row.arch not in CAPABILITIES:
        raise InputError(f"{row.reference}: CUDA runs NVIDIA's instructions alone")
    if row.unit not in UNITS:
        raise InputError(
            f"{row.reference}: there is no kernel for {row.unit}; command:CMDLINE runs a program of your own"
        )
    if not _in_place(row):
        raise InputError(f"{row.reference}: there is no kernel for results of another width than the addend yet")
    if row.unit == "wgmma":
        return _wgmma(row, variant or Variant())
    if variant is not None:
        raise InputError(f"{row.reference}: columns and a are chosen for wgmma alone")
    return _tcgen05(row) if row.unit in TENSOR_MEMORY else _mma(row)


def kernels_of(arch: str) -> list[Kernel]:
    """Every kernel of an architecture."""
    return [kernel_of(row) for row in INSTRUCTIONS.values() if row.arch == arch and runnable(row)]


def _mma(row: Instruction) -> Kernel:
    m, n, k = row.shape
    a, b, c = (FORMATS[name] for name in (row.a, row.b, row.c))
    width = 4 if k == 64 else max(8, a.width)  # formats of 4 and 6 bits take a byte where formats may be mixed
    if (m, n, k, row.a) == (8, 8, 4, "f16"):
        result = fragments.quad_pair_accumulator(c.width)
    else:
        result = fragments.accumulator(m, n, c.width)
    operands = (
        Operand("a", a, fragments.multiplicand_a(m, k, width), k),
        Operand("b", b, fragments.multiplicand_b(k, n, width), k),
        Operand("c", c, result, 1),
    )
    return Kernel(row, row.shape, *operands, _scales(row), _mma_name(row))


def _scales(row: Instruction) -> tuple[Operand, ...]:
    fmt, count = row.scale, row.scales
    if fmt is None:
        return ()
    places = {"row": fragments.scales_a(count), "column": fragments.scales_b(count)}
    if row.unit in TENSOR_MEMORY:
        places = {"row": fragments.lane_scales_a(count), "column": fragments.lane_scales_b(count)}
    return tuple(Operand(factor.name, fmt, places[factor.of], count) for factor in FACTORS)


def _mma_name(row: Instruction) -> str:
    """The PTX instruction with its qualifiers."""
    m, n, k = row.shape
    scale = row.scale
    parts = ["mma.sync.aligned"]
    if scale is not None:
        parts += _scaled(row)
    elif row.arch == "rtx-blackwell" and k == 32:
        parts.append("kind::f8f6f4")
    parts += [f"m{m}n{n}k{k}", "row.col", row.c, row.a, row.b, row.c, *([scale.name] if scale else [])]
    return ".".join(parts)


def _scaled(row: Instruction) -> list[str]:
    """The qualifiers of an instruction with scale factors."""
    count = row.scales
    kind = "mxf8f6f4" if row.shape[2] == 32 else "mxf4" if count == 2 else "mxf4nvf4"
    return [f"kind::{kind}", "block_scale", f"scale_vec::{count}X"]


def _wgmma(row: Instruction, variant: Variant) -> Kernel:
    m, _, k = row.shape
    n = variant.columns
    if n % 8 or not 8 <= n <= 256:
        raise InputError(f"{row.reference}: columns={n} is no multiple of 8 from 8 to 256")
    a, b, c = (FORMATS[name] for name in (row.a, row.b, row.c))
    in_registers = fragments.multiplicand_a(m, k, a.width, threads=128)
    operands = (
        Operand("a", a, in_registers if variant.a == "registers" else tile(m, k, a.width), k),
        Operand("b", b, tile(n, k, b.width), k),
        Operand("c", c, fragments.accumulator(m, n, c.width, threads=128), 1),
    )
    name = f"wgmma.mma_async.sync.aligned.m{m}n{n}k{k}.{row.c}.{row.a}.{row.b}"
    return Kernel(row, (m, n, k), *operands, (), name)


#: format -> its number within its kind, in the instruction descriptor of tcgen05; e2m1 is 1 in mxf4 and mxf4nvf4
_NUMBERS = {"f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
_F32, _UE8M0 = 1, 1  # the formats of D and of scale factors; f16 and ue4m3 are 0


def _tcgen05(row: Instruction) -> Kernel:
    """`tcgen05.mma` by one block, with 128 rows if there are scale factors, else with 64."""
    _, n, k = row.shape
    m = 64 if row.scale is None else 128
    a, b, c = (FORMATS[name] for name in (row.a, row.b, row.c))
    # where formats of 4, 6 and 8 bits mix, 16 elements take 16 bytes, and narrow elements fill the lowest of these
    each = {side: 128 // side.width if k == 64 else min(16, 128 // side.width) for side in (a, b)}
    result = fragments.accumulator(m, n, 32, threads=128) if m == 64 else fragments.lanes(n)
    operands = (
        Operand("a", a, Tile(m, k, a.width, each[a]), k),
        Operand("b", b, Tile(n, k, b.width, each[b]), k),
        Operand("c", c, result, 1, f"_m{m}"),
    )
    kind = ["kind::" + (row.a if row.a == "tf32" else "f16" if a.width == 16 else "f8f6f4")]
    numbers = [1 if k == 64 else _NUMBERS[side] for side in (row.a, row.b)]
    descriptor = numbers[0] << 7 | numbers[1] << 10 | n >> 3 << 17 | m >> 4 << 24
    if row.scale is None:
        descriptor |= (_F32 if row.c == "f32" else 0) << 4
    else:
        kind, descriptor = _scaled(row), descriptor | (_UE8M0 if row.scale.name == "ue8m0" else 0) << 23
    ptx = ".".join(["tcgen05.mma.cta_group::1", *kind])
    return Kernel(row, (m, n, k), *operands, _scales(row), ptx, descriptor)
