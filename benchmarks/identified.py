"""Does `identify` find the right model? Every arithmetic of the instruction table, from its family, and programs of
unusual parameters that answer by exact rationals (benchmarks/exact_device.py).

Each is a run of the command line of its own, with an empty store. `python -m benchmarks.identified [--only TEXT]
[--minutes N] [-o benchmarks/identified.md]`; a second run goes on from the rows that the output already has.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.pages import table_head, table_row
from benchmarks.properties import alike
from mmaprobe.queries.candidates.kinds import candidate_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.normalising import Normaliser
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference

LIMITS = "at most 40 questions and 180 s each"
HEAD = ("device", "alike", "family", "candidates", "answer", "right", "questions", "for the order", "seconds")
F16 = "ampere/mma/m16n8k16.f32.f16.f16.f32"
FP8 = "hopper/wgmma/m64n8k32.f32.e4m3.e4m3"
CDNA3 = "cdna3/mfma/f32_32x32x8_f16"

#: (family, a program's arithmetic); the last ones are in no family
UNSEEN = (
    ("any", f"{F16}@fraction_bits=26,align_rounding=down,output_rounding=nearest_even"),
    ("any", f"{F16}@block=4,fraction_bits=21,product=normalised,exponent_floor=-133,floor_applies_to=maximum"),
    ("any", f"{F16}@block=16,fraction_bits=23,carry_bits=3,zero_sign=ieee,exponent_floor=none"),
    ("any", f"{F16}@block=16,align_rounding=sticky,output_rounding=nearest_even,exponent_floor=none,zero_sign=ieee"),
    ("any", f"{F16}@block=8,family=emulated-fp8,block_order=interleaved_pairs,fraction_bits=25"),
    ("any", f"{F16}@partials=normalised,exponent_floor=none,fraction_bits=24"),
    ("any", f"{F16}@output=e8m13,fraction_bits=14,exponent_floor=none"),
    ("nvidia-f16", f"{F16}@block=8,fraction_bits=27,product=normalised,align_rounding=nearest_even"),
    ("nvidia-fp8", f"{FP8}@fraction_bits=15,align_rounding=down,output=f32"),
    ("amd-mfma", f"{CDNA3}@late_fraction_bits=30,fraction_bits=25"),
    ("nvidia-f16", f"{F16}@fraction_bits=18"),
    ("any", f"{F16}@product=rounded_bf16"),
)
OUTSIDE = 2  # of them


@dataclass(frozen=True)
class Case:
    """A device, how many instructions of the table it stands for, the family asked, and the truth."""

    device: str
    alike: int
    family: str
    truth: Model
    outside: bool = False


def family_of(reference: str) -> str:
    """The shipped family of an instruction of the table."""
    row = INSTRUCTIONS[reference]
    if row.arch.startswith("cdna"):
        return "amd-mfma"
    if row.scale is not None:
        return "nvidia-block-scaled"
    return f"nvidia-{row.a}" if row.a == row.b and row.a in ("f16", "bf16", "tf32", "f64") else "nvidia-fp8"


def cases() -> Iterator[Case]:
    """Programs first, then the instructions of the table, one for all that share formats and arithmetic, in an order
    that makes any first part of them a fair sample."""
    for number, (family, reference) in enumerate(UNSEEN):
        device = f"command:{sys.executable} -m benchmarks.exact_device {reference}"
        yield Case(device, 1, family, parse_reference(reference), number >= len(UNSEEN) - OUTSIDE)
    groups = alike()
    random.Random(2026).shuffle(groups)
    for references in groups:
        first = references[0]
        yield Case(f"model:{first}", len(references), family_of(first), parse_reference(first))


def run(case: Case) -> tuple[dict[str, Any], float]:
    """The document of one identification, and its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        model = case.truth.reference.partition("@")[0]
        command = [sys.executable, "-P", "-m", "mmaprobe.cli.main", "identify", case.family]
        command += ["--device", case.device, "--model", model]
        start = time.monotonic()
        done = subprocess.run(
            [*command, "--timeout", "180", "--json", "--store", f"{folder}/store"], capture_output=True, text=True
        )
        seconds = time.monotonic() - start
        if not done.stdout.strip():
            raise SystemExit(f"{' '.join(command)}: {done.stderr}")
        return json.loads(done.stdout), seconds


def is_right(case: Case, document: dict[str, Any]) -> bool:
    """Whether the one class left holds the truth (payloads of NaNs apart), or nothing was named if none may be."""
    if case.outside:
        return bool(document["verdict"] == "no candidate")
    normaliser = Normaliser(Options())
    named = [parse_reference(member["model"]) for members in document["classes"] for member in members]
    truth, *found = [candidate_of(model, normaliser).form for model in (case.truth.any_nan, *named)]
    return document["verdict"] == "identified" and truth in found


def line(case: Case, document: dict[str, Any], seconds: float) -> str:
    right = "yes" if is_right(case, document) else "NO"
    order = document["summation_order"]["questions"]
    name = case.device.replace(sys.executable, "python")
    cells = (name, case.alike, case.family, document["candidates"], document["verdict"], right, document["questions"],
             order, f"{seconds:.0f}")  # fmt: skip
    return table_row(*cells)


def summary(rows: list[list[str]]) -> str:
    """How many were right, and the largest figures."""
    right = sum(row[5] == "yes" for row in rows)
    most, slowest = max(int(row[6]) for row in rows), max(int(row[8]) for row in rows)
    within = sum(int(row[6]) <= 40 and int(row[8]) <= 180 for row in rows)
    return (
        f"{len(rows)} devices for {sum(int(row[1]) for row in rows)} arithmetics and programs: {right} right, "
        f"{within} within the limits ({LIMITS}); at most {most} questions and {slowest} s."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="devices whose name contains this")
    parser.add_argument("--minutes", type=float, default=1e9, help="start none after so long")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/identified.md"))
    arguments = parser.parse_args()
    start, lines = time.monotonic(), []
    if arguments.output.exists():
        text = arguments.output.read_text(encoding="utf-8")
        lines = [row for row in text.splitlines() if row.startswith(("| model:", "| command:"))]
    for case in cases():
        name = case.device.replace(sys.executable, "python")
        if arguments.only not in name or any(f"| {name} |" in row for row in lines):
            continue
        if time.monotonic() - start > 60 * arguments.minutes:
            break
        lines.append(line(case, *run(case)))
        print(lines[-1], file=sys.stderr, flush=True)
        rows = [[cell.strip() for cell in row.strip("| ").split(" | ")] for row in lines]
        table = [*table_head(*HEAD), *lines]
        title = "Does `identify` find the right model?"
        arguments.output.write_text(f"# {title}\n\n{summary(rows)}\n\n" + "\n".join(table) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
