"""The proved error bounds of all plans that ship, and how near an input comes to each.

`python -m benchmarks.plan_bounds [WORD...] [--searched K]` asks those whose name has a word (all without one), looks
for inputs up to a K, writes benchmarks/plan_bounds.jsonl, and docs/plan-bounds.md from it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.pages import read_rows, write_rows
from mmaprobe.documents.parts import plain
from mmaprobe.documents.prove import PlanFormula
from mmaprobe.documents.reading import read
from mmaprobe.queries.plans.bound_report import SIZES, document_of_plan, find_plan_bound, lengths_text
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.plans.plan_files import plans
from mmaprobe.smtmodel.tables.reference import parse_plan_path

ROOT = Path(__file__).parents[1]
RECORDS, PAGE = ROOT / "benchmarks" / "plan_bounds.jsonl", ROOT / "docs" / "plan-bounds.md"
LISTED = 64  # runs of one pattern, in an input that is kept
HEAD = """# How far the plans that ship can be from the exact result

At most by how much can an element d of a matrix product differ from the exact result? The first table has a bound for
three K, [the second](#for-any-k) a formula for any K. Each bound is a theorem: |d - exact| is never larger, for finite
inputs on which no rounding overflows.

- Sums are over all K products. x° is x, or the smallest normal number of its format where x is smaller and not zero.
- near: the largest error found, divided by the bound for the same input. With 0.9 no bound can be more than 10 percent
  smaller. The inputs have c = 0, and were evaluated bit for bit; where the cell is empty none was searched for.
- Bounds in K * max |a_k| * max |b_k| are for c = 0 and largest elements from 2^-100 to 2^100 (f32: from 2^-31 to
  2^31); those in magnitudes of blocks for largest elements that are 0 or from 2^-30 to 2^30, of NVFP4 from 2^-30 to
  2^30 and at least 2^-12 times those of the row and the column.

`mmaprobe prove --property error-bound plan:NAME` gives one of these bounds, with the lemmas on which it rests
([plans](plans.md)). `python -m benchmarks.plan_bounds` writes this page.

| plan | K | bound | near |
|---|---|---|---|
"""
FORMULAS = """
## For any K

In the second column n counts periods of the plan: with `16 n` the formula is for every K that is a multiple of 16. G
says how errors grow: it is nearly n - 1 as long as n g is small. Bounds of plans with words (multiword, triton) are
relative to the elements themselves: what words lose of them is in the constant part.

| plan | K | bound |
|---|---|---|
"""


def page(rows: Sequence[dict[str, Any]]) -> str:
    """The tables."""
    numbers = "".join(
        f"| {row['plan']} | {size['length']} | {_text(size['bound'])} | {_ratio(size)} |\n"
        for row in rows for size in [*row["sizes"], *row.get("largest", ())]
    )  # fmt: skip
    formulas = "".join(f"| {row['plan']} | {_formula(row)} |\n" for row in rows)
    return f"{HEAD}{numbers}{FORMULAS}{formulas}"


def _text(bound: str) -> str:
    return bound.removeprefix("|d - exact| <= ").replace("|", "\\|")


def _ratio(size: dict[str, Any]) -> str:
    return f"{near['ratio']:.3f}" if (near := size.get("nearest")) is not None else ""


def _formula(row: dict[str, Any]) -> str:
    found = row["formula"]
    if found is None:
        return f"| none: {row['reason']}"
    growth = f"; G = {found['growth']}" if " G" in found["bound"] else ""
    return f"{lengths_text(read(PlanFormula, found)).removeprefix('K = ')} | {_text(found['bound'])}{growth}"


def kept(row: dict[str, Any]) -> dict[str, Any]:
    """What the records keep: of an input near the bound, its patterns only where they are few."""
    sizes = []
    for size in row["sizes"]:
        near = size["nearest"]
        if near is not None and max(len(near["a"]), len(near["b"])) > LISTED:
            near = {key: near[key] for key in ("ratio", "error", "bound")}
        sizes.append({**size, "nearest": near})
    names = ("plan", "verdict", "reason", "formula", "largest")
    return {key: row[key] for key in names if key in row} | {"sizes": sizes}


def read_records() -> dict[str, dict[str, Any]]:
    """The rows by plan."""
    return {row["plan"]: row for row in read_rows(RECORDS)}


def nearest_of(row: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    """A record with the nearer inputs of an earlier one that has the same bounds."""
    for size, old in zip(row["sizes"], before["sizes"] if before else [], strict=False):
        if size["bound"] == old["bound"] and old["nearest"] and size["nearest"]:
            size["nearest"] = max(size["nearest"], old["nearest"], key=lambda near: float(near["ratio"]))
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--searched", type=int, default=max(SIZES))
    given = parser.parse_args()
    known, words = read_records(), given.words
    for name in sorted(plans()):
        if not words or any(word in name for word in words):
            settle = Settled(Options(timeout=60.0), False)  # seconds of one plan
            found = find_plan_bound(parse_plan_path(name), Inputs(), SIZES, settle, searched=given.searched)
            row = json.loads(json.dumps(document_of_plan(found, name), default=plain))
            known[name] = nearest_of(kept(row), known.get(name))
            print(f"{row['seconds']:6.1f} s  {name}", flush=True)
            write_rows((known[one] for one in sorted(known)), RECORDS)
    PAGE.write_text(page([known[one] for one in sorted(known)]), encoding="utf-8")


if __name__ == "__main__":
    main()
