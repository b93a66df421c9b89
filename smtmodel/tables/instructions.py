"""The instruction table: the family and parameters of each matrix instruction, their source and evidence.

nvidia.py and amd.py hold the rows of the units; this module expands them into instructions.
"""

from __future__ import annotations

from mmaprobe.smtmodel.tables import amd, nvidia
from mmaprobe.smtmodel.tables.instruction import Instruction


def _table() -> dict[str, Instruction]:
    return {row.reference: row for row in (*nvidia.instructions(), *amd.instructions())}


INSTRUCTIONS = _table()
