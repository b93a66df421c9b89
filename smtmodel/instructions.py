"""The instruction table: which accumulator each matrix instruction has, from where, and how firmly known.

The rows below are units (an architecture's path for one input type and result type); the instructions are their
shapes. Sources: Xie et al. 2026, Tables 3 to 5; exponent floors from later public models; recorded hardware
(tests/data) confirms those marked so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from smtmodel.accumulator import Accumulator, nvidia_nan
from smtmodel.formats import FORMATS

Evidence = Literal["recorded hardware", "published model", "inferred"]

XIE = "Xie et al. 2026, Table 4"
FLOORS = "exponent floor from public models"
RECORDED = "recorded results of MATLAB-tensor-core"
EMULATED = "recorded results: an emulation on the f16 unit, no evidence about an FP8 unit"


@dataclass(frozen=True)
class Instruction:
    """One matrix instruction. `shape` is (M, N, K); formats by name; `emulated`: run on another unit."""

    arch: str
    unit: str
    name: str
    shape: tuple[int, int, int]
    a: str
    b: str
    c: str
    accumulator: Accumulator
    source: str
    evidence: Evidence
    emulated: bool = False

    @property
    def reference(self) -> str:
        return f"{self.arch}/{self.unit}/{self.name}"


@dataclass(frozen=True)
class _Unit:
    """Instructions of one path: every shape K of `lengths`, with results d of `outputs`."""

    arch: str
    unit: str
    inputs: tuple[str, ...]
    lengths: tuple[int, ...]
    block: int
    fraction_bits: int
    outputs: tuple[str, ...]
    floors: tuple[int, int]  # with f32 and with f16 results
    evidence: Evidence = "published model"
    mn: str = "m16n8"
    f32_as: Literal["f32", "e8m13"] = "f32"
    mixed: bool = False  # the FP8 formats combine freely
    emulated: bool = False  # chained steps of the f16 unit from zero, c added at the end


_FP8 = ("e4m3", "e5m2")
_BOTH = ("f32", "f16")

_UNITS = (
    _Unit("volta", "mma", ("f16",), (4,), 4, 23, _BOTH, (-131, -20), "recorded hardware", mn="m8n8"),
    _Unit("turing", "mma", ("f16",), (8,), 8, 24, _BOTH, (-132, -21)),
    _Unit("ampere", "mma", ("f16",), (8, 16), 8, 24, _BOTH, (-132, -21), "recorded hardware"),
    _Unit("ampere", "mma", ("bf16",), (8, 16), 8, 24, ("f32",), (-132, -21), "recorded hardware"),
    _Unit("ampere", "mma", ("tf32",), (4, 8), 4, 24, ("f32",), (-132, -21), "recorded hardware"),
    _Unit("ada-lovelace", "mma", ("f16",), (8, 16), 8, 24, _BOTH, (-132, -21), "recorded hardware"),
    _Unit("ada-lovelace", "mma", ("bf16",), (8, 16), 8, 24, ("f32",), (-132, -21)),
    _Unit("ada-lovelace", "mma", ("tf32",), (4, 8), 4, 24, ("f32",), (-132, -21)),
    _Unit(
        "ada-lovelace", "mma", _FP8, (16, 32), 16, 13, _BOTH, (-132, -21), "recorded hardware",
        f32_as="e8m13", mixed=True,
    ),
    _Unit("hopper", "mma", ("f16",), (8, 16), 16, 25, _BOTH, (-133, -22), "recorded hardware"),
    _Unit("hopper", "mma", ("bf16",), (8, 16), 16, 25, ("f32",), (-133, -22), "recorded hardware"),
    _Unit("hopper", "mma", ("tf32",), (4, 8), 8, 25, ("f32",), (-133, -22), "recorded hardware"),
    _Unit("hopper", "wgmma", ("f16",), (16,), 16, 25, _BOTH, (-133, -133), mn="m64n8"),
    _Unit("hopper", "wgmma", ("bf16",), (16,), 16, 25, ("f32",), (-133, -133), mn="m64n8"),
    _Unit("hopper", "wgmma", ("tf32",), (8,), 8, 25, ("f32",), (-133, -133), mn="m64n8"),
    _Unit(
        "hopper", "wgmma", _FP8, (32,), 32, 13, _BOTH, (-133, -133), "recorded hardware",
        mn="m64n8", f32_as="e8m13", mixed=True,
    ),
    _Unit(
        "hopper", "mma", _FP8, (32,), 16, 25, _BOTH, (-133, -22), "recorded hardware", mixed=True, emulated=True,
    ),
)  # fmt: skip


def _rows(unit: _Unit) -> Iterator[Instruction]:
    pairs = [(a, b) for a in unit.inputs for b in unit.inputs if unit.mixed or a == b]
    m, n = (int(part) for part in unit.mn[1:].split("n"))
    for length in unit.lengths:
        for output in unit.outputs:
            for a, b in pairs:
                c = f".{output}" if unit.unit == "mma" else ""  # wgmma accumulates in place
                name = f"{unit.mn}k{length}.{output}.{a}.{b}{c}"
                accumulator = _truncated(unit, length, output)
                yield Instruction(
                    unit.arch,
                    unit.unit,
                    name,
                    (m, n, length),
                    a,
                    b,
                    output,
                    accumulator,
                    _source(unit),
                    unit.evidence,
                    unit.emulated,
                )


def _source(unit: _Unit) -> str:
    if unit.emulated:
        return EMULATED
    return f"{XIE}; {FLOORS}" + (f"; {RECORDED}" if unit.evidence == "recorded hardware" else "")


def _truncated(unit: _Unit, length: int, output: str) -> Accumulator:
    single = output == "f32"
    result = unit.f32_as if single else "f16"
    return Accumulator(
        length=length,
        block=min(length, unit.block),
        fraction_bits=unit.fraction_bits,
        exponent_floor=unit.floors[0 if single else 1],
        output=result,
        output_rounding="toward_zero" if single else "nearest_even",
        nan=nvidia_nan(FORMATS[result]),
        block_order="interleaved_pairs" if unit.emulated else "contiguous",
        addend="after" if unit.emulated else "fused",
    )


INSTRUCTIONS = {row.reference: row for unit in _UNITS for row in _rows(unit)}
