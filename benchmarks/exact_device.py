"""A device that is not a model of mmaprobe's: the exact rationals of tests/oracles behind the device protocol.

`python -m benchmarks.exact_device REFERENCE` answers vectors on standard input. Formats and parameters are read from
the reference; nothing of smtmodel computes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.oracles import oracle
from tests.oracles.family_oracle import parameters_of


def main() -> None:
    model = parse_reference(sys.argv[1])
    parameters = parameters_of(model)
    forms = {side: getattr(model, side).name for side in "abcd"}

    def patterns(texts: Sequence[str]) -> list[int]:
        return [int(text, 16) for text in texts]

    for line in sys.stdin:
        row = json.loads(line)
        scales = [patterns(row[side]) if row.get(side) else None for side in ("scale_a", "scale_b")]
        d = oracle.evaluate(forms, parameters, patterns(row["a"]), patterns(row["b"]), int(row["c"], 16), *scales)
        print(json.dumps({"id": row.get("id"), "d": f"{d:x}".zfill(model.d.digits)}), flush=True)


if __name__ == "__main__":
    main()
