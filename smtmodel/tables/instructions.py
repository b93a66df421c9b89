"""The instruction table: for each matrix instruction, a family with parameters, and their source and evidence.

nvidia.py, amd.py, arm.py and riscv.py hold the rows of the units.
"""

from __future__ import annotations

from mmaprobe.smtmodel.tables import amd, arm, nvidia, riscv
from mmaprobe.smtmodel.tables.instruction import Instruction


def _table() -> dict[str, Instruction]:
    return {row.reference: row for table in (nvidia, amd, arm, riscv) for row in table.instructions()}


INSTRUCTIONS = _table()
