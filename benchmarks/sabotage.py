"""One change at a time to the rules of error bounds: does a bound come out that is below the truth, and who notices?

Each change is a piece of text of queries/proof that is replaced in a copy of that package. Under it the bounds of small
units are proved anew and held against all their inputs; the trees of theorems are given to the checker, which is not
changed. The changes are data, benchmarks/sabotage.yaml.

`python -m benchmarks.sabotage [--only TEXT] [-o FILE]`
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
CHANGES = Path(__file__).with_suffix(".yaml")
SECONDS = 300.0  # for all units under one change
HEAD = """# Changes to the rules of error bounds

`python -m benchmarks.sabotage -o benchmarks/sabotage.md`: one change at a time to the rules (queries/proof), under
which the bounds of the small units of tests/test_bounds.py are proved anew, without lemmas about the datapath. A bound
below the truth is one that an input breaks, of all inputs; the check is that of `mmaprobe check`, unchanged. A change
may leave all bounds above the truth: then it is harmless on these units, or shows in none of them.
"""
#: what runs in the changed copy: for each unit whether its bound is below the truth, and whether the check refuses it
PROGRAM = """
import json, sys
from queries.proof.kernel import RuleError
from queries.properties.bound import bound_of, error_of
from smtmodel.dot import Model
from tests.test_bounds import UNITS, small, worst
from tests.test_check import faults, tree_of

for name, parts in UNITS.items():
    model = Model(name, small(*parts).unit)
    try:
        below = worst(model, error_of(bound_of(model.unit)))[0] > 0
        noticed = bool(faults(tree_of(model.unit)))
    except Exception as error:
        print(json.dumps([name, type(error).__name__]), flush=True)
        continue
    print(json.dumps([name, "below" if below else "above", noticed]), flush=True)
"""


def changes() -> list[dict[str, str]]:
    found: list[dict[str, str]] = yaml.safe_load(CHANGES.read_text(encoding="utf-8"))
    return found


def run(change: dict[str, str]) -> list[list[Any]]:
    """What comes of each unit."""
    source = (ROOT / change["file"]).read_text(encoding="utf-8")
    if source.count(change["old"]) != 1:
        raise SystemExit(f"{change['file']}: {change['old']!r} is there {source.count(change['old'])} times, not once")
    with TemporaryDirectory() as folder:
        copy = Path(folder)
        shutil.copytree(ROOT / "queries", copy / "queries")
        for path in ROOT.iterdir():
            if path.name != "queries" and not path.name.startswith("."):
                (copy / path.name).symlink_to(path)
        (copy / change["file"]).write_text(source.replace(change["old"], change["new"]), encoding="utf-8")
        done = subprocess.run([sys.executable, "-P", "-c", PROGRAM], cwd=copy, timeout=SECONDS, capture_output=True,
                              text=True, env=os.environ | {"PYTHONPATH": folder})  # fmt: skip
    if done.returncode:
        return [["all", done.stderr.strip().splitlines()[-1]]]
    return [json.loads(line) for line in done.stdout.splitlines()]


def row_of(change: dict[str, str], found: list[list[Any]]) -> str:
    below = [row for row in found if row[1] == "below"]
    noticed = [row for row in found if row[-1] is True]
    missed = [row[0] for row in below if row[-1] is not True]
    refused = [row for row in found if row[1] not in ("below", "above")]
    where = f"{Path(change['file']).stem}: `{change['old'].strip()}` becomes `{change['new'].strip()}`"
    text = ", ".join(missed) or "-"
    return f"| {where.replace('|', chr(92) + '|')} | {len(below)} | {len(noticed)} | {len(refused)} | {text} |"


def table(only: str) -> Iterator[str]:
    yield "| change | bounds below the truth | trees that the check refuses | no bound | below the truth, not noticed |"
    yield "|---|---|---|---|---|"
    for change in changes():
        if only in change["file"] + change["old"]:
            yield row_of(change, run(change))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    lines = []
    for line in table(given.only):
        print(line, flush=True)
        lines.append(line)
    if given.output is not None:
        given.output.write_text("\n".join([HEAD, *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
