"""A device that is not a model of mmaprobe's: the exact rationals of tests/oracles behind the device protocol.

`python -m benchmarks.exact_unit FILE` serves the unit of a file. Nothing of smtmodel computes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.oracles.node_oracle import ANY_NAN, evaluate


def main() -> None:
    path = Path(sys.argv[1])
    unit = parse_unit(path.read_text(encoding="utf-8"), path.name)
    for line in sys.stdin:
        row = json.loads(line)
        sides = [[int(text, 16) for text in row.get(side, ())] for side in ("a", "b", "scale_a", "scale_b")]
        missing = [0] * (unit.length - len(sides[0]))
        d = evaluate(unit, sides[0] + missing, sides[1] + missing, int(row["c"], 16), sides[2], sides[3])
        pattern = unit.d.nan if d == ANY_NAN else d
        print(json.dumps({"id": row.get("id"), "d": f"{pattern:x}".zfill(unit.d.digits)}), flush=True)


if __name__ == "__main__":
    main()
