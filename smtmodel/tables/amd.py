"""The rows of AMD's matrix cores (Xie et al. 2026, Tables 6 and 7, Algorithms 1, 2, 4, 6, 10, 11; MMA-Sim 2.1.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mmaprobe.smtmodel.tables.instruction import Call, Instruction
from mmaprobe.smtmodel.tables.nvidia import fma_chain
from mmaprobe.smtmodel.tables.sources import MMA_SIM, Source, SourcePart

ZEROS = SourcePart("zero signs", ("zero_sign",), MMA_SIM)
FLUSHED = SourcePart("signs of zero inputs", ("input_zeros",), MMA_SIM)
LATE = SourcePart("bits of the late sum", ("late_fraction_bits", "late_sum_bits"), MMA_SIM)


def _xie(places: str, *parts: SourcePart) -> Source:
    return Source(f"Xie et al. 2026, {places}", parts)


#: the sources of each family's parameters
SOURCES = {
    "fma-chain": _xie("Table 6, Algorithm 4"),
    "e-fdpa": _xie("Table 6, Algorithm 6", ZEROS),
    "ftz-addmul": _xie("Table 6, Algorithms 1 and 2", FLUSHED),
    "tr-fdpa": _xie("Tables 6 and 7, Algorithm 10", LATE, ZEROS),
    "gtr-fdpa": _xie("Tables 6 and 7, Algorithm 11", LATE, ZEROS),
}

# MxNxK in the name -> the number of products; up to CDNA2, names have no underscore before the format
_F32 = {"32x32x1": 1, "16x16x1": 1, "4x4x1": 1, "32x32x2": 2, "16x16x4": 4}
_F16 = {"32x32x4": 4, "16x16x4": 4, "4x4x4": 4, "32x32x8": 8, "16x16x16": 16}
_BF16 = {"32x32x2": 2, "16x16x2": 2, "4x4x2": 2, "32x32x4": 4, "16x16x8": 8}
_BLOCKS = {"32x32x4": "_2b", "16x16x4": "_4b", "4x4x4": "_16b", "32x32x1": "_2b", "16x16x1": "_4b", "4x4x1": "_16b"}
_FP8 = {"fp8": "e4m3fnuz", "bf8": "e5m2fnuz"}


def exact_dot(length: int, block: int) -> Call:
    """The family and parameters of CDNA1's exact sums, rounded to nearest."""
    values = {"length": length, "block": min(length, block), "output_rounding": "nearest_even", "overflow": "ieee"}
    return "e-fdpa", values


def add_mul(length: int, group: int) -> Call:
    """The family and parameters of CDNA2's products and sums, which round to nearest and flush subnormals to zero."""
    flushed = {"flush_inputs": True, "input_zeros": "positive", "flush_outputs": True}
    return "ftz-addmul", {"length": length, "group": group, "output_rounding": "nearest_even", **flushed}


def late_sums(length: int, block: int, family: str = "tr-fdpa", **values: Any) -> Call:
    """The family and parameters of CDNA3's truncated sums (Table 7), with `values` as further parameters."""
    cuts = {"fraction_bits": 24, "late_fraction_bits": 32, "late_sum_bits": 31, "late_rounding": "down"}
    common = {"length": length, "block": min(length, block), **cuts, "output_rounding": "nearest_even"}
    return family, common | values


def _row(arch: str, name: str, shape: str, a: str, b: str, c: str, call: Call) -> Instruction:
    m, n, _ = (int(part) for part in shape.split("x"))
    size = (m, n, call[1]["length"])
    return Instruction(arch, "mfma", name, size, a, b, c, *call, SOURCES[call[0]], "published model")


def instructions() -> Iterator[Instruction]:
    """Every AMD instruction."""
    for arch in ("cdna1", "cdna2"):
        for shape, k in _F32.items():
            yield _row(arch, f"f32_{shape}f32", shape, "f32", "f32", "f32", fma_chain(k, "f32"))
        for shape, k in _F16.items():
            chosen = exact_dot(k, 4) if arch == "cdna1" else add_mul(k, 4)
            yield _row(arch, f"f32_{shape}f16", shape, "f16", "f16", "f32", chosen)
        for shape, k in _BF16.items():
            chosen = exact_dot(k, 2) if arch == "cdna1" else add_mul(k, 2)
            yield _row(arch, f"f32_{shape}bf16", shape, "bf16", "bf16", "f32", chosen)
    for shape, k in _F16.items():
        yield _row("cdna2", f"f32_{shape}bf16_1k", shape, "bf16", "bf16", "f32", add_mul(k, 4))
    for shape in ("16x16x4", "4x4x4"):
        yield _row("cdna2", f"f64_{shape}f64", shape, "f64", "f64", "f64", fma_chain(4, "f64"))
    yield from _cdna3()


def _cdna3() -> Iterator[Instruction]:
    for shape, k in _F32.items():
        name = f"f32_{shape}{_BLOCKS.get(shape, '') if k == 1 else ''}_f32"
        yield _row("cdna3", name, shape, "f32", "f32", "f32", fma_chain(k, "f32"))
    for fmt in ("f16", "bf16"):
        for shape, k in _F16.items():
            name = f"f32_{shape}{_BLOCKS.get(shape, '')}_{fmt}"
            yield _row("cdna3", name, shape, fmt, fmt, "f32", late_sums(k, 8, product_overflow=128))
    for shape, k in (("16x16x8", 8), ("32x32x4", 4)):
        yield _row("cdna3", f"f32_{shape}_xf32", shape, "tf32", "tf32", "f32", late_sums(k, 4, product_overflow=128))
    for shape, k in (("16x16x32", 32), ("32x32x16", 16)):
        for x, a in _FP8.items():
            for y, b in _FP8.items():
                chosen = late_sums(k, 16, "gtr-fdpa", late_small_addend="cut")
                yield _row("cdna3", f"f32_{shape}_{x}_{y}", shape, a, b, "f32", chosen)
    for shape, name in (("16x16x4", "f64_16x16x4_f64"), ("4x4x4", "f64_4x4x4_4b_f64")):
        yield _row("cdna3", name, shape, "f64", "f64", "f64", fma_chain(4, "f64"))
