"""Are units built rightly without a family? Instructions of the table, and units that nobody has built.

`python -m benchmarks.built invented [--only TEXT] [-o FILE]` serves the units of benchmarks/invented.yaml by
exact rationals (benchmarks/exact_device.py), `plausible` those of benchmarks/plausible.yaml, and `table` the
arithmetics of the instruction table and the units that ship, by `model:`. Each is a run of the command line of its own.
A unit that was built is held against the truth on 20,000 vectors (fewer of long sums); "exact" where no vector differs,
"wrong" otherwise. With -o a second run goes on from the rows that the output already has.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pages import keep_line, read_rows
from mmaprobe.queries.building.shapes import Kind, Shapes
from mmaprobe.smtmodel.evaluate.batch import evaluate_models
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import nans
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unit_files import units
from mmaprobe.smtmodel.units.unitfile import parse_unit

KINDS: tuple[Kind, ...] = ("middle", "heavy", "small", "large", "anything")
ROWS = 4000  # of each kind
SECONDS = 180


@dataclass(frozen=True)
class Case:
    """A device and the truth."""

    name: str
    device: str
    asked: Signature
    truth: Model
    note: str = ""


def model_case(name: str, device: str, truth: Model, note: str = "") -> Case:
    asked = Signature(truth.a, truth.b, truth.c, truth.d, truth.length, True, truth.scale, truth.scale_block)
    return Case(name, device, asked, truth, note)


def table_cases() -> Iterator[Case]:
    """One instruction of each arithmetic, the shortest of those that differ in their length alone; then the units."""
    seen: dict[Any, tuple[str, Model, int]] = {}
    sizes = ("length", "block", "group", "block_order", "nan")
    for reference, row in INSTRUCTIONS.items():
        model = parse_reference(reference)
        formats = tuple(side.name for side in (model.a, model.b, model.c, model.d))
        key = formats, (row.family, *(value for name, value in row.member.values.items() if name not in sizes))
        old = seen.get(key)
        if old is None or model.length < old[1].length:
            seen[key] = reference, model, (old[2] if old else 0) + 1
        else:
            seen[key] = old[0], old[1], old[2] + 1
    cheapest_first = sorted(seen.values(), key=lambda found: (found[1].scale is not None, found[1].length))
    for reference, model, count in cheapest_first:
        yield model_case(reference, f"model:{reference}", model, f"{count}")
    for reference in units():
        yield model_case(reference, f"model:{reference}", parse_reference(reference), "1")


def served_cases(what: str, folder: Path) -> Iterator[Case]:
    """The units of a file, each behind exact rationals."""
    for text in (Path(__file__).parent / f"{what}.yaml").read_text(encoding="utf-8").split("---\n")[1:]:
        unit = parse_unit(text, f"{what}.yaml")
        name, path = unit.reference, folder / f"{unit.reference}.yaml"
        path.write_text(text, encoding="utf-8")
        note = "outside" if what == "invented" and int(name[-2:]) % 2 else ""
        yield model_case(name, f"command:{sys.executable} -m benchmarks.exact_device {path}", Model(name, unit), note)


def cases(what: str, folder: Path) -> Iterator[Case]:
    """The devices of one table."""
    yield from table_cases() if what == "table" else served_cases(what, folder)


def run(case: Case, folder: Path, seconds: float) -> dict[str, Any]:
    """What `identify` says, and whether it is right. `user`: seconds of a processor, the device's with it."""
    asked, file = case.asked, folder / "built.yaml"
    file.unlink(missing_ok=True)
    formats = ",".join(side.name for side in (asked.a, asked.b, *([asked.c] if asked.addend else []), asked.d))
    command = [
        sys.executable,
        "-P",
        "-m",
        "mmaprobe.cli.main",
        "identify",
        "--device",
        case.device,
        "--formats",
        formats,
    ]
    command += ["--length", str(asked.length), "--timeout", str(seconds), "--save", str(file), "--json"]
    if asked.scale is not None:
        command += ["--scale", f"{asked.scale.name}/{asked.scale_block}"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    user = round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, 1)
    if not done.stdout.strip():
        return {"name": case.name, "note": case.note, "outcome": "error", "said": done.stderr.strip()[-300:]}
    found = json.loads(done.stdout)
    order = (found.get("summation_order") or {}).get("questions", 0)
    row = {"name": case.name, "note": case.note, "K": asked.length, "order": order, "code": done.returncode}
    row |= {
        "questions": found.get("questions", 0),
        "seconds": found["seconds"],
        "user": user,
        "verdict": found["verdict"],
    }
    row |= {"equal": [x["model"] for x in found.get("equal", [])], "open": len(found.get("undecided", []))}
    row["outcome"] = "not found"
    row["stage"] = found.get("stage") or found.get("error")
    if file.exists():
        unit = parse_unit(file.read_text(encoding="utf-8"), file.name)
        wrong, rows = differences(case, unit)
        right = "exact" if found["verdict"] == "built" else "not finished, no difference"
        row["outcome"] = f"wrong ({wrong} of {rows})" if wrong else right
    return row


def differences(case: Case, built: Unit) -> tuple[int, int]:
    """The vectors on which a unit differs from the truth, and how many were looked at."""
    asked = case.asked
    shapes, count = Shapes(asked, seed=77), max(200, ROWS * 32 // max(32, asked.length))
    wrong = 0
    for kind in KINDS:
        rows = shapes.rows(kind, count)
        one, other = evaluate_models([Model("built", built), case.truth], rows)
        both = nans(one, asked.d) & nans(other, asked.d)
        wrong += int(np.count_nonzero((one != other) & ~both))
    return wrong, count * len(KINDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("table", "invented", "plausible"))
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each unit")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    known = {row["name"] for row in read_rows(options.output)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for case in cases(options.what, folder):
            if options.only not in case.name or case.name in known:
                continue
            keep_line(json.dumps(run(case, folder, options.seconds)), options.output)


if __name__ == "__main__":
    main()
