"""A blind unit behind the device protocol: `python -m benchmarks.blind.device NAME`. Nothing of smtmodel computes."""

from __future__ import annotations

import json
import sys

from benchmarks.blind.sets import UNITS
from tests.oracle import FORMATS


def main() -> None:
    unit = UNITS[sys.argv[1]]
    last = FORMATS[unit.formats.split(",")[-1]]
    digits = (last.exponent_bits + last.mantissa_bits + last.padding + 1 + 3) // 4
    for line in sys.stdin:
        row = json.loads(line)
        a, b = ([int(text, 16) for text in row[side]] for side in ("a", "b"))
        missing = [0] * (unit.length - len(a))
        scales = [[int(text, 16) for text in row[f"scale_{side}"]] if unit.scale else [] for side in ("a", "b")]
        d = unit.result(a + missing, b + missing, int(row["c"], 16), *scales)
        print(json.dumps({"id": row.get("id"), "d": f"{d:x}".zfill(digits)}), flush=True)


if __name__ == "__main__":
    main()
