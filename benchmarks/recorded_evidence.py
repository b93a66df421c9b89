"""The answers that `make evidence` received, as rows for tests/data.

`python -m benchmarks.recorded_evidence out/evidence -o tests/data/h200.jsonl.gz` writes one row for every input that
was asked of an instruction at its default position: special values, the vectors that reach every condition of the
datapath, the questions of the library, and the random and shaped vectors that were kept. Rows are as in
recorded.jsonl.gz. Answers to one input that differ end it with exit code 3. benchmarks/recorded_rows.py makes the
tables of smtmodel from these rows.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.pages import read_rows
from mmaprobe.smtmodel.tables.gpus import gpu_named
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS

FILES = ("specials", "cover", "questions-answers", "random", "shaped")
Key = tuple[str, tuple[str, ...], tuple[str, ...], str]


def rows(folder: Path) -> Iterator[dict[str, Any]]:
    """The rows of all instructions: `gpu` as the table names it, patterns in hexadecimal as in the answers."""
    for path in (
        folder / f"{reference.replace('/', '-')}" / f"{name}.jsonl" for reference in INSTRUCTIONS for name in FILES
    ):
        for line in read_rows(path):
            about = line["provenance"]["description"]
            row = INSTRUCTIONS[about["instruction"]]
            if line.get("d") is None or (about["row"], about["column"], about["neighbours"]) != (0, 0, "zero"):
                continue
            gpu = (gpu_named(about["name"]) or (about["name"],))[0]
            yield {"gpu": gpu, "arch": row.arch, "unit": row.unit, "instruction": row.name,
                   **{side: line[side] for side in "abcd"}}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    chosen = parser.parse_args()
    kept: dict[Key, dict[str, Any]] = {}
    for row in rows(chosen.folder):
        key = row["instruction"], tuple(row["a"]), tuple(row["b"]), row["c"]
        if kept.setdefault(key, row)["d"] != row["d"]:
            print(f"error: two answers to one input: {kept[key]} and {row['d']}", file=sys.stderr)
            return 3
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in kept.values())
    chosen.output.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"{len(kept)} rows of {len({key[0] for key in kept})} instructions: {chosen.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
