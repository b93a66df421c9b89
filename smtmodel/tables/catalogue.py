"""The contents of the tables, a row for each model. The file models.json keeps the rows, so that a list of the models
needs no built models.

`python -m mmaprobe.smtmodel.tables.catalogue` writes the file. If the tables have changed after that, `catalogue`
builds the rows from the tables.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mmaprobe.smtmodel.units.unit import Unit

FOLDER = Path(__file__).parents[1]
FILE = FOLDER / "tables" / "models.json"
#: the files on which the rows depend: the tables, the families, the unit files, the counts of recorded results
SOURCES = (
    *(
        f"tables/{name}"
        for name in (
            "nvidia.py",
            "amd.py",
            "arm.py",
            "riscv.py",
            "instruction.py",
            "instructions.py",
            "sparse.py",
            "sources.py",
            "recorded.json",
        )
    ),
    "families/*.py",
    "units/library/**/*.yaml",
)

Entry = dict[str, Any]


def catalogue() -> list[Entry]:
    """The rows of all models: from FILE if FILE has the digest of the present sources, else built from the tables."""
    try:
        kept = json.loads(FILE.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return build_rows()
    if not isinstance(kept, dict) or kept.get("sources") != _digest():
        return build_rows()
    rows: list[Entry] = kept["models"]
    return rows


def build_rows() -> list[Entry]:
    """The rows of all models, built from the tables."""
    from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
    from mmaprobe.smtmodel.tables.reference import parse_reference
    from mmaprobe.smtmodel.tables.sparse import sparse_rows
    from mmaprobe.smtmodel.units.unit_files import shipped_unit, units

    rows = []
    for row in (*INSTRUCTIONS.values(), *sparse_rows().values()):
        unit = parse_reference(row.reference).unit
        block, bits = len(unit.blocks[0]), kept_bits(unit)
        steps = f"{unit.length // block} x {block}" if block < unit.length else f"{unit.length}"
        summary = f"K={steps}  F={bits}  {unit.d.name} {unit.rounding.mode}  [{row.evidence}]"
        rows.append(
            {
                "id": row.reference,
                "summary": summary + ("  emulated" if row.emulated else ""),
                "shape": list(row.shape),
                "formats": {"a": row.a, "b": row.b, "c": row.c, "d": unit.d.name},
                "block": block,
                "fraction_bits": bits,
                "source": str(row.source),
                "evidence": row.evidence,
                "recorded": dict(row.recorded),
                "emulated": row.emulated,
            }
        )
    return rows + [_row_of_file(reference, shipped_unit(reference)) for reference in units()]


def kept_bits(unit: Unit) -> int | str:
    """The number of bits that the sum of products keeps below the largest exponent; "exact" if it loses no bits."""
    from mmaprobe.smtmodel.nodes import Sum
    from mmaprobe.smtmodel.nodes.node import of_kind

    sums = (node.bits_of_terms for node in of_kind(unit.result, Sum))  # the sum of products is first
    return next((min(bits) for bits in sums if bits), "exact")


def _row_of_file(reference: str, unit: Unit) -> Entry:
    """The row of a unit that ships as a file; its summary has the first part of the unit's evidence."""
    return {
        "id": reference,
        "summary": f"K={unit.length}  {unit.d.name} {unit.rounding.mode}  [{unit.evidence.partition('; ')[0]}]",
        "shape": [1, 1, unit.length],
        "formats": {side: getattr(unit, side).name for side in "abcd"},
        "source": unit.source,
        "evidence": unit.evidence,
        "emulated": False,
    }


def _digest() -> str:
    """The SHA-256 digest of all sources (paths and contents, in the order of the paths), in hexadecimal."""
    digest = sha256()
    for path in sorted(path for pattern in SOURCES for path in FOLDER.glob(pattern)):
        digest.update(path.relative_to(FOLDER).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def catalogue_text() -> str:
    """The text that FILE should have for the present tables."""
    rows = ",\n".join(json.dumps(row) for row in build_rows())
    return f'{{"sources": "{_digest()}", "models": [\n{rows}\n]}}\n'


if __name__ == "__main__":
    FILE.write_text(catalogue_text(), encoding="utf-8")
