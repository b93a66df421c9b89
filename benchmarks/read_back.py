"""Rows of the table printed as Verilog, read back by Yosys and proved to be their models: benchmarks/read_back.md.

`python -m benchmarks.read_back [--only TEXT] [--longest 16] [--timeout 120] [-o FILE]`

Rows whose units are the same have one module but for its name, and are asked once, by the name of the first one, those
with fewer partial products first. FILE has a line of JSON for each unit; those that it has already are not asked again.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from benchmarks.netlists import design_of
from benchmarks.pages import keep_row, read_rows
from mmaprobe.cli.line import StatusLine
from mmaprobe.queries.equality.sweeping import prove_design
from mmaprobe.queries.kernel.questions.designs import Designed
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.tables.catalogue import catalogue
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit import Unit


def units(longest: int) -> dict[Unit, list[str]]:
    """The units of at most so many products, in the order of what they are likely to cost, with their rows."""
    found: dict[Unit, list[str]] = {}
    for row in sorted(str(row["id"]) for row in catalogue()):
        unit = parse_reference(row).unit
        if unit.length <= longest:
            found.setdefault(unit, []).append(row)
    return dict(sorted(found.items(), key=lambda item: item[0].length * item[0].a.width * item[0].b.width))


def measured(reference: str, timeout: float) -> dict[str, object]:
    model, start, own = parse_reference(reference), time.monotonic(), time.process_time()
    verdict, lemmas, asked = "", 0, 0.0
    try:
        proof = prove_design(Designed(model, model, design=design_of(model)), Options(timeout=timeout), confirm=False)
        verdict, lemmas = proof.verdict, len(proof.lemmas)
        asked = sum(answer.seconds for answer in (*proof.tried, *(lemma.answer for lemma in proof.lemmas)))
    except MmaprobeError as error:
        verdict = f"error: {error}"
    spent, took = round(time.process_time() - own + asked, 1), round(time.monotonic() - start, 1)
    return {"row": reference, "products": model.length, "verdict": verdict, "lemmas": lemmas, "processor": spent,
            "seconds": took}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--longest", type=int, default=16, help="products of a row, at most")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for a proof")
    parser.add_argument("-o", "--output", type=Path, required=True)
    arguments = parser.parse_args()
    line, done = StatusLine(), {row["row"] for row in read_rows(arguments.output)}
    for rows in units(arguments.longest).values():
        if arguments.only in rows[0] and rows[0] not in done:
            found = measured(rows[0], arguments.timeout) | {"rows": len(rows)}
            line.say(json.dumps(found))
            keep_row(found, arguments.output)


if __name__ == "__main__":
    main()
