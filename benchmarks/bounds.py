"""Proved error bounds of every arithmetic of the table, and how near an input comes: writes benchmarks/bounds.md.

python -m benchmarks.bounds [REFERENCE...]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from mmaprobe.queries.kernel.bounds.wording import form_text
from mmaprobe.queries.properties.bound import error_of
from mmaprobe.queries.properties.bound_report import BoundResult, find_bound
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.smtmodel.base.files import write_whole
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unit_files import units

PAGE = Path(__file__).parent / "bounds.md"
HEAD = """# Error bounds

Written by `python -m benchmarks.bounds`: for each arithmetic of the instruction table, by one instruction that has it,
and for each unit file, the bound that `mmaprobe prove --property error-bound` proves of `|d - exact|`. It is about
finite inputs on which nothing overflows ([docs/prove.md](../docs/prove.md#a-bound-on-the-error)); `x°` is `x`, or the
smallest normal number where `x` is smaller and not zero. `nearest`: the largest share of the bound that an input of
those tried reaches.

| instruction | d - exact is at most | nearest |
|---|---|---|
"""


def arithmetics() -> list[str]:
    """One reference for each expression of the table, then the unit files."""
    found: dict[Unit, str] = {}
    for reference in INSTRUCTIONS:
        found.setdefault(parse_reference(reference).unit, reference)
    return [*found.values(), *units()]


def line(result: BoundResult) -> str:
    """A row of the table."""
    if result.shown is None:
        return f"| `{result.model.reference}` | unknown: {result.reason} | |"
    formula = form_text(error_of(result.shown)).replace("|", "\\|").replace("*", "\\*")
    near = "" if result.near is None else f"{float(result.near.ratio):.3f}"
    return f"| `{result.model.reference}` | {formula} | {near} |"


def main(references: Sequence[str]) -> None:
    lines, settle = [], Settled(Options(timeout=60.0), confirmed=False)
    for reference in references or arithmetics():
        lines.append(line(find_bound(parse_reference(reference), Inputs(), None, settle)))
        print(lines[-1], flush=True)
    if not references:
        write_whole(PAGE, HEAD + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
