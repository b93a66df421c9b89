"""The instruction table: the family and parameters of each matrix instruction, their source and evidence.

nvidia.py, amd.py and riscv.py hold the rows of the units.
"""

from __future__ import annotations

from mmaprobe.smtmodel.tables import amd, nvidia, riscv
from mmaprobe.smtmodel.tables.instruction import Instruction


def _table() -> dict[str, Instruction]:
    return {row.reference: row for row in (*nvidia.instructions(), *amd.instructions(), *riscv.instructions())}


INSTRUCTIONS = _table()
