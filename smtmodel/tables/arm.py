"""The rows of Arm's FP8 instructions (FEAT_FP8DOT2, FP8DOT4, FP8FMA, F8F16MM, F8F32MM, SME_F8F16, SME_F8F32).

A row models one element of the result.

Fields of the register FPMR: F8S1 and F8S2, the formats of a and b, are part of a row's name; LSCALE is the parameter
`downscale`; OSM = 1 is `overflow=saturate`. The row fdot stands for the vector, indexed and multi-vector forms of FDOT,
fmlal for FMLALB and FMLALT, fmlall for FMLALLBB to FMLALLTT, and fmopa also for FMOP4A.
"""

from __future__ import annotations

from collections.abc import Iterator

from mmaprobe.smtmodel.tables.instruction import Instruction
from mmaprobe.smtmodel.tables.sources import Source

#: instruction -> format of the result -> number of products
_PRODUCTS = {
    "fdot": {"f16": 2, "f32": 4},
    "fmlal": {"f16": 1},
    "fmlall": {"f32": 1},
    "fmmla": {"f16": 4, "f32": 8},
    "fmopa": {"f16": 2, "f32": 4},
}
_FP8 = ("e4m3", "e5m2")
#: Arm's default NaN
_NANS = {"f16": 0x7E00, "f32": 0x7FC00000}


def instructions() -> Iterator[Instruction]:
    """Every FP8 instruction of Arm."""
    for name, results in _PRODUCTS.items():
        source = Source(f"Arm Architecture Reference Manual, J1.3, FP8DotAddFP ({name.upper()} of FP8)")
        unit = "sme" if name == "fmopa" else "neon"
        for output, length in results.items():
            values = {"length": length, "block": length, "output": output, "output_rounding": "nearest_even",
                      "overflow": "ieee", "zero_sign": "ieee", "nan": _NANS[output]}  # fmt: skip
            for a in _FP8:
                for b in _FP8:
                    row = f"{name}.{output}.{a}.{b}"
                    yield Instruction("arm", unit, row, (1, 1, length), a, b, output, "e-fdpa", values, source,
                                      "published model")  # fmt: skip
