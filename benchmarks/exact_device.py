"""A device that is not a model of mmaprobe's: the exact rationals of tests/oracles behind the device protocol.

`python -m benchmarks.exact_device REFERENCE|FILE.yaml` answers vectors on standard input, as the instruction of a
reference or the unit of a file. Formats, parameters and nodes are read from these; nothing of smtmodel computes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.oracles import node_oracle, oracle
from tests.oracles.family_oracle import parameters_of

Side = list[int]
Answer = Callable[[Side, Side, int, Side, Side], int]


def instruction(reference: str) -> tuple[Format, Answer]:
    model = parse_reference(reference)
    parameters, forms = parameters_of(model), {side: getattr(model, side).name for side in "abcd"}

    def answer(a: Side, b: Side, c: int, left: Side, right: Side) -> int:
        return oracle.evaluate(forms, parameters, a, b, c, left or None, right or None)

    return model.d, answer


def unit(path: Path) -> tuple[Format, Answer]:
    own = parse_unit(path.read_text(encoding="utf-8"), path.name)

    def answer(a: Side, b: Side, c: int, left: Side, right: Side) -> int:
        missing = [0] * (own.length - len(a))
        d = node_oracle.evaluate(own, a + missing, b + missing, c, left, right)
        return own.d.nan if d == node_oracle.ANY_NAN else d

    return own.d, answer


def main() -> None:
    what = sys.argv[1]
    fmt, answer = unit(Path(what)) if what.endswith(".yaml") else instruction(what)
    for line in sys.stdin:
        row = json.loads(line)
        a, b, *scales = ([int(text, 16) for text in row.get(side, ())] for side in ("a", "b", "scale_a", "scale_b"))
        d = answer(a, b, int(row["c"], 16), *scales)
        print(json.dumps({"id": row.get("id"), "d": f"{d:x}".zfill(fmt.digits)}), flush=True)


if __name__ == "__main__":
    main()
