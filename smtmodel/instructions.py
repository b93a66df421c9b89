"""The instruction table: which accumulator each matrix instruction has, from where, and how firmly known.

nvidia.py and amd.py hold the rows of the units; this module expands them into instructions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from smtmodel.accumulator import Accumulator

Evidence = Literal["recorded hardware", "published model", "inferred"]


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


def _table() -> dict[str, Instruction]:
    from smtmodel import amd, nvidia

    return {row.reference: row for row in (*nvidia.instructions(), *amd.instructions())}


INSTRUCTIONS = _table()

_INTEGER = "integer instructions are not modelled: mmaprobe is about floating-point sums"
_SPARSE = "sparse instructions are not modelled yet: give the products that remain to the dense instruction"
_ABSENT = (
    (re.compile(r".*[._](s8|u8|s4|u4|b1|s32|i8|i32)\b.*|.*/i32_.*|.*\d+i8(_.*)?"), _INTEGER),
    (re.compile(r".*/(mma_sp|wgmma_sp|tcgen05mma_sp|mma\.sp)/.*|.*smfmac.*|.*[._]sp[._].*"), _SPARSE),
    (
        re.compile(r"(ampere|ada-lovelace|hopper|blackwell|rtx-blackwell)/mma/m8n8k4\.f(16|32)\..*"),
        "m8n8k4 with f16 runs on the tensor cores of Volta and Turing alone; from Ampere on it is done by ordinary "
        "multiply-adds",
    ),
    (
        re.compile(r"ada-lovelace/wgmma/.*|(blackwell|rtx-blackwell)/wgmma/.*"),
        "this architecture has no wgmma: it is Hopper's alone",
    ),
    (re.compile(r"cdna4/.*|rdna\d/.*"), "no published bit-accurate model of this architecture is known"),
)


def not_modelled(reference: str) -> str | None:
    """Why a plausible instruction is not in the table; None for a name that is merely unknown."""
    return next((reason for pattern, reason in _ABSENT if pattern.fullmatch(reference)), None)
