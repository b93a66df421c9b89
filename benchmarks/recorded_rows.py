"""Counts the recorded results of tests/data for each instruction and GPU, and writes smtmodel/recorded.json.

`python -m benchmarks.recorded_rows`
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

from smtmodel.reference import normalised_name

ROOT = Path(__file__).parents[1]
ROWS = ROOT / "tests" / "data" / "recorded.jsonl.gz"
TABLE = ROOT / "smtmodel" / "recorded.json"


def counted(path: Path = ROWS) -> dict[str, dict[str, int]]:
    """instruction -> GPU -> number of rows, both in alphabetical order."""
    found: Counter[tuple[str, str]] = Counter()
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            found[normalised_name(row["arch"], row["unit"], row["instruction"]), row["gpu"]] += 1
    table: dict[str, dict[str, int]] = {}
    for (reference, gpu), rows in sorted(found.items()):
        table.setdefault(reference, {})[gpu] = rows
    return table


def main() -> None:
    TABLE.write_text(json.dumps(counted(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
