"""The rows of RISC-V's dot products with bulk normalisation (drafts Zvdota and Zvbdota), one output of each.

A row has n products: the number of elements of a vector register (n4 of bf16: VLEN = 64), or vl, if vl is smaller.
"""

from __future__ import annotations

from collections.abc import Iterator

from mmaprobe.smtmodel.tables.instruction import Call, Instruction, Origin
from mmaprobe.smtmodel.tables.sources import Source

SOURCE = Source(
    "RISC-V ISA manual, draft Zvdota/Zvbdota 1.0 (riscv-isa-manual, pull request 2618), bulk normalisation; "
    "riscv-isa-sim, riscv/bulknormdot.h and zvbdot.h"
)
NAN = 0x7FC00000
_BF16 = (4, 8, 16)
_FP8 = (8, 16, 32)
#: extension -> the middle part of its instructions' names
_EXTENSIONS = {"zvdota": "dota", "zvbdota": "bdota"}


def bulk_normalised(length: int) -> Call:
    """The family and parameters of bulk normalisation for n = `length` products. The products are aligned with 23 +
    log2(n) (rounded up) bits below the largest exponent; the alignment and the result are rounded to odd."""
    bits = 23 + (length - 1).bit_length()
    odd = {"align_rounding": "to_odd", "output_rounding": "to_odd", "zero_sign": "always_positive", "nan": NAN}
    return "rvbna", {"length": length, "block": length, "fraction_bits": bits, **odd}


def instructions() -> Iterator[Instruction]:
    """Every RISC-V instruction."""
    for extension, name in _EXTENSIONS.items():
        for length in _BF16:
            yield _row(extension, f"vfw{name}16bf.n{length}", length, "bf16", "bf16")
        for a, b in (("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e4m3"), ("e5m2", "e5m2")):
            formats = a if a == b else f"{a}.{b}"
            for length in _FP8:
                yield _row(extension, f"vfq{name}8f.{formats}.n{length}", length, a, b)


def _row(extension: str, name: str, length: int, a: str, b: str) -> Instruction:
    columns = 8 if extension == "zvbdota" else 1
    shape, call = (1, columns, length), bulk_normalised(length)
    origin: Origin = "simulator's routine" if extension == "zvbdota" else "published model"
    return Instruction("riscv", extension, name, shape, a, b, "f32", *call, SOURCE, origin)
