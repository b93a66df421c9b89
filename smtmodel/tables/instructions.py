"""The instruction table: which family each matrix instruction is of, its parameters, from where, and how firmly known.

nvidia.py, amd.py and riscv.py hold the rows of the units.
"""

from __future__ import annotations

from mmaprobe.smtmodel.tables import amd, nvidia, riscv
from mmaprobe.smtmodel.tables.instruction import Instruction


def _table() -> dict[str, Instruction]:
    return {row.reference: row for row in (*nvidia.instructions(), *amd.instructions(), *riscv.instructions())}


INSTRUCTIONS = _table()
