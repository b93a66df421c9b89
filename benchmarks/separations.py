"""How well the shipped families separate: candidates, classes, vectors, and what stays open.

`python -m benchmarks.separations [FAMILY...] [-o benchmarks/separations.md]`; every pair is told apart by a replayed
vector, alike by construction, or proved equal.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from benchmarks.pages import table_head, table_row
from mmaprobe.hypotheses.family import families, family_named
from mmaprobe.queries.candidates.separate import separate
from mmaprobe.queries.search.distinguish import Options

HEAD = (
    "family",
    "candidates",
    "classes",
    "asked of solvers",
    "pairs open",
    "vectors",
    "2 log2(classes) + 20",
    "seconds",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", nargs="*", default=sorted(families()))
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for each family")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/separations.md"))
    arguments = parser.parse_args()
    table = table_head(*HEAD)
    for name in arguments.family:
        found = separate(family_named(name).candidates(), Options("auto", arguments.timeout))
        classes = len(found.classes)
        cells = (name, found.candidates, classes, found.asked, len(found.unknown), len(found.rows),
                 f"{2 * math.log2(classes) + 20:.0f}", f"{found.seconds:.0f}")  # fmt: skip
        table.append(table_row(*cells))
        print(table[-1], file=sys.stderr, flush=True)
        limit = f"At most {arguments.timeout:g} s for each family."
        text = f"# How well the shipped families separate\n\n{limit}\n\n" + "\n".join(table) + "\n"
        arguments.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
