"""The rows of NVIDIA's tensor cores.

Sources: Xie et al. 2026, Tables 3 to 5; for exponent floors, signs of zeros and some instructions, the later simulator
of the same authors, MMA-Sim 2.1.1. The questions in hypotheses/pairs/mma-sim are about the differences between the two.
The module recordings.py says which instructions have recorded results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.families.member import nvidia_nan
from mmaprobe.smtmodel.tables.instruction import Call, Instruction, Origin
from mmaprobe.smtmodel.tables.sources import MMA_SIM, Source, SourcePart

FLOORS = SourcePart("exponent floor and zero signs", ("exponent_floor", "floor_applies_to", "zero_sign"), MMA_SIM)
XIE = Source("Xie et al. 2026, Tables 3 to 5", (FLOORS,))
NEWER = Source(MMA_SIM)  # the source of instructions that are not in the paper
VALPEY = Source(f"Valpey et al. 2025 (HMMA.884 on Turing) and {MMA_SIM}", (FLOORS,))
EMULATED = Source(
    "recorded results of H100, H200 and B200; factors converted to f16: an H200's answers, 2026-11-26",
    note="an emulation on the f16 unit, no evidence about an FP8 unit",
)
FMA = Source("Xie et al. 2026, Table 3, Algorithm 4")


@dataclass(frozen=True)
class UnitRow:
    """The datapath of a unit for some input formats. It has an instruction for each K in `lengths`, each result format
    in `outputs`, and each input format (if `mixed`, each pair of input formats)."""

    arch: str
    unit: str
    inputs: tuple[str, ...]
    lengths: tuple[int, ...]
    block: int
    fraction_bits: int
    floors: tuple[int, int]  # exponent floors with f32 results, and with f16 results
    outputs: tuple[str, ...] = ("f32",)
    origin: Origin = "published model"
    mn: str = "m16n8"
    f32_as: str = "f32"  # the format to which f32 results are rounded
    addend: str = ""  # the format of the addend; empty: the format of the result
    mixed: bool = False  # whether a and b may have different formats
    emulated: bool = False  # whether the f16 unit computes the sum of products in chained steps, to which c is added
    scale_format: str | None = None
    scale_block: int = 32
    group: int = 0  # the number of products that are summed exactly before the scale factors apply
    source: Source = XIE


FP8 = ("e4m3", "e5m2")
FP8_6_4 = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
BOTH = ("f32", "f16")

_V, _T, _H = (-131, -19), (-132, -20), (-133, -21)

UNITS = (
    UnitRow("volta", "mma", ("f16",), (4,), 4, 23, _V, BOTH, mn="m8n8"),
    UnitRow("volta", "mma", ("f16",), (4,), 4, 23, _V, mn="m8n8", addend="f16", source=NEWER),
    UnitRow("turing", "mma", ("f16",), (4,), 4, 23, _V, BOTH, mn="m8n8", source=VALPEY),
    UnitRow("turing", "mma", ("f16",), (4,), 4, 23, _V, mn="m8n8", addend="f16", source=VALPEY),
    UnitRow("turing", "mma", ("f16",), (8,), 8, 24, _T, BOTH),
    UnitRow("ampere", "mma", ("f16",), (8, 16), 8, 24, _T, BOTH),
    UnitRow("ampere", "mma", ("bf16",), (8, 16), 8, 24, _T),
    UnitRow("ampere", "mma", ("tf32",), (4, 8), 4, 24, _T),
    UnitRow("ada-lovelace", "mma", ("f16",), (8, 16), 8, 24, _T, BOTH),
    UnitRow("ada-lovelace", "mma", ("bf16",), (8, 16), 8, 24, _T),
    UnitRow("ada-lovelace", "mma", ("tf32",), (4, 8), 4, 24, _T),
    UnitRow("ada-lovelace", "mma", FP8, (16, 32), 16, 13, _T, BOTH, f32_as="e8m13", mixed=True),
    UnitRow("hopper", "mma", ("f16",), (8, 16), 16, 25, _H, BOTH),
    UnitRow("hopper", "mma", ("bf16",), (8, 16), 16, 25, _H),
    UnitRow("hopper", "mma", ("tf32",), (4, 8), 8, 25, _H),
    UnitRow("hopper", "mma", FP8, (32,), 16, 25, _H, BOTH, "inferred", mixed=True, emulated=True,
         source=EMULATED),
    UnitRow("hopper", "wgmma", ("f16",), (16,), 16, 25, _H, BOTH, mn="m64n8"),
    UnitRow("hopper", "wgmma", ("bf16",), (16,), 16, 25, _H, mn="m64n8"),
    UnitRow("hopper", "wgmma", ("tf32",), (8,), 8, 25, _H, mn="m64n8"),
    UnitRow("hopper", "wgmma", FP8, (32,), 32, 13, _H, BOTH, mn="m64n8", f32_as="e8m13", mixed=True),
    UnitRow("blackwell", "mma", ("f16",), (8, 16), 16, 25, _H, BOTH),
    UnitRow("blackwell", "mma", ("bf16",), (8, 16), 16, 25, _H),
    UnitRow("blackwell", "mma", ("tf32",), (4, 8), 8, 25, _H),
    UnitRow("blackwell", "mma", FP8, (32,), 16, 25, _H, BOTH, "inferred", mixed=True, emulated=True,
         source=EMULATED),
    UnitRow("blackwell", "tcgen05mma", ("f16",), (16,), 16, 25, _H, BOTH, mn="m64n8"),
    UnitRow("blackwell", "tcgen05mma", ("bf16",), (16,), 16, 25, _H, mn="m64n8"),
    UnitRow("blackwell", "tcgen05mma", ("tf32",), (8,), 8, 25, _H, mn="m64n8"),
    UnitRow("blackwell", "tcgen05mma", FP8_6_4, (32,), 32, 25, _H, BOTH, mn="m64n8", mixed=True),
    UnitRow("blackwell", "tcgen05mma_block_scale", FP8_6_4, (32,), 32, 25, _H, mn="m64n8", mixed=True,
         scale_format="ue8m0"),
    UnitRow("blackwell", "tcgen05mma_block_scale", ("e2m1",), (64,), 64, 35, (-139, -139), mn="m64n8",
         scale_format="ue8m0", group=16),
    UnitRow("blackwell", "tcgen05mma_block_scale", ("e2m1",), (64,), 64, 35, (-139, -139), mn="m64n8",
         scale_format="ue4m3", scale_block=16, group=16),
    UnitRow("blackwell", "tcgen05mma_block_scale", ("e2m1",), (64,), 64, 35, (-139, -139), mn="m64n8",
         scale_format="ue8m0", scale_block=16, group=16, source=NEWER),
    UnitRow("rtx-blackwell", "mma", ("f16",), (8, 16), 16, 25, _H, BOTH),
    UnitRow("rtx-blackwell", "mma", ("bf16",), (8, 16), 16, 25, _H),
    UnitRow("rtx-blackwell", "mma", ("tf32",), (4, 8), 8, 25, _H),
    UnitRow("rtx-blackwell", "mma", FP8, (16,), 16, 25, _H, BOTH, mixed=True, source=NEWER),
    UnitRow("rtx-blackwell", "mma", FP8_6_4, (32,), 32, 25, _H, BOTH, mixed=True),
    UnitRow("rtx-blackwell", "mma_block_scale", FP8_6_4, (32,), 32, 25, _H, mixed=True, scale_format="ue8m0"),
    UnitRow("rtx-blackwell", "mma_block_scale", ("e2m1",), (64,), 64, 35, (-139, -139), scale_format="ue8m0", group=16),
    UnitRow("rtx-blackwell", "mma_block_scale", ("e2m1",), (64,), 64, 35, (-139, -139), scale_format="ue4m3",
         scale_block=16, group=16),
    UnitRow("rtx-blackwell", "mma_block_scale", ("e2m1",), (64,), 64, 35, (-139, -139), scale_format="ue8m0",
         scale_block=16, group=16, source=NEWER),
)  # fmt: skip

#: architecture -> the shapes of its f64 instructions
DOUBLE = {
    "ampere": ("m8n8k4",),
    "ada-lovelace": ("m8n8k4",),
    "hopper": ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"),
    "blackwell": ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"),
    "rtx-blackwell": ("m8n8k4",),
}


def instructions() -> Iterator[Instruction]:
    """Every NVIDIA instruction."""
    for unit in UNITS:
        yield from _rows(unit)
    for arch, shapes in DOUBLE.items():
        for shape in shapes:
            m, n, k = (int(part) for part in shape[1:].replace("n", " ").replace("k", " ").split())
            name = f"{shape}.f64.f64.f64.f64"
            origin: Origin = "published model"
            yield Instruction(arch, "mma", name, (m, n, k), "f64", "f64", "f64", *fma_chain(k, "f64"), FMA, origin)


def fma_chain(length: int, output: str) -> Call:
    """The family and parameters of a chain of IEEE fused multiply-adds, rounded to nearest even."""
    return "fma-chain", {"length": length, "output": output, "output_rounding": "nearest_even"}


def _rows(unit: UnitRow) -> Iterator[Instruction]:
    pairs = [(a, b) for a in unit.inputs for b in unit.inputs if unit.mixed or a == b]
    m, n = (int(part) for part in unit.mn[1:].split("n"))
    for length in unit.lengths:
        for output in unit.outputs:
            for a, b in pairs:
                shape = f"{unit.mn}k{length}" + (f".block{unit.scale_block}" if unit.scale_format else "")
                parts = [shape, output, a, b]
                addend = unit.addend or output
                parts += [addend] if unit.unit.startswith("mma") else []  # other instructions accumulate in place
                parts += [unit.scale_format] if unit.scale_format else []
                yield Instruction(
                    unit.arch,
                    unit.unit,
                    ".".join(parts),
                    (m, n, length),
                    a,
                    b,
                    addend,
                    *_truncated(unit, length, output),
                    unit.source,
                    unit.origin,
                    unit.emulated,
                )


def _truncated(unit: UnitRow, length: int, output: str) -> Call:
    """The family and parameters of a row of `UNITS`, for a K (`length`) and a result format (`output`)."""
    single = output == "f32"
    result = unit.f32_as if single else "f16"
    values: dict[str, Any] = {
        "length": length,
        "block": min(length, unit.block),
        "fraction_bits": unit.fraction_bits,
        "exponent_floor": unit.floors[0 if single else 1],
        "output": result,
        "output_rounding": "toward_zero" if single else "nearest_even",
        "zero_sign": "always_positive",
        "nan": nvidia_nan(FORMATS[result]),
    }
    if unit.emulated:
        return "emulated-fp8", {**values, "block_order": "interleaved_pairs", "input_format": "f16"}
    if unit.scale_format is None:
        return "t-fdpa", values
    values |= {"scale_format": unit.scale_format, "scale_block": unit.scale_block}
    return ("gst-fdpa", {**values, "group": unit.group}) if unit.group else ("st-fdpa", values)
