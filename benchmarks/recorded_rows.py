"""What the recorded results of tests/data are, and what they decide, as tables that ship with smtmodel.

recorded.json: the number of results of each instruction and GPU. decided.json: for each of these the parameters whose
near values all disagree with some result, and the near values of the others that agree with all. Near values are those
of queries/compare/neighbours.py; one that is equal by theorem is none.

`python -m benchmarks.recorded_rows` writes both, in about four minutes.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mmaprobe.queries.candidates.kinds import candidate_of
from mmaprobe.queries.compare.neighbours import neighbours
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.normalising import Normaliser
from mmaprobe.smtmodel.evaluate.batch import evaluate_rows
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import nans
from mmaprobe.smtmodel.families.parameters import PARAMETERS
from mmaprobe.smtmodel.inputs.vectors import Vector, parse_row
from mmaprobe.smtmodel.nodes.counting import ZEROS_COUNT
from mmaprobe.smtmodel.tables.recordings import Decided
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests import records

ROOT = Path(__file__).parents[1]
#: files, and the GPUs that gave all of their results as well
FILES = {"recorded.jsonl.gz": (), "h200.jsonl.gz": ("H100",), "h100.jsonl.gz": ()}
TABLE = ROOT / "smtmodel" / "tables" / "recorded.json"
DECISIONS = ROOT / "smtmodel" / "tables" / "decided.json"
BUDGET = Options(timeout=20.0)
#: what nodes call a parameter of families
NODES = {
    "sticky": "align_rounding", "rounding": "align_rounding", "normalised": "product", "limit": "product_overflow",
    "mode": "output_rounding", "subnormals": "flush_outputs", "input_subnormals": "flush_inputs", "zero": "zero_sign",
    "zeros": "exponent_floor", "addend": "family", "exact": "family",
}  # fmt: skip


def recorded_rows() -> dict[str, dict[str, list[dict[str, Any]]]]:
    """instruction -> GPU -> rows, both in alphabetical order."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for name, others in FILES.items():
        for reference, rows in records.rows(name).items():
            for row in rows:
                for gpu in (row["gpu"], *others):
                    found[reference, gpu].append(row)
    table: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for (reference, gpu), rows in sorted(found.items()):
        table.setdefault(reference, {})[gpu] = rows
    return table


def counted() -> dict[str, dict[str, int]]:
    """instruction -> GPU -> number of rows."""
    return {name: {gpu: len(rows) for gpu, rows in gpus.items()} for name, gpus in recorded_rows().items()}


def decided(reference: str, gpus: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, Decided]:
    """GPU -> `decided`: parameters of which every near value disagrees with a row; `open`: the near values of the
    others that agree with all rows."""
    vectors = {gpu: [parse_row(row) for row in rows] for gpu, rows in gpus.items()}
    found: dict[str, Decided] = {gpu: Decided(decided=[], open={}) for gpu in gpus}
    seen: dict[str, set[str]] = {gpu: set() for gpu in gpus}
    for parameter, value, model in near(reference):
        for gpu, rows in vectors.items():
            seen[gpu].add(parameter)
            if agrees(model, rows):
                found[gpu]["open"].setdefault(parameter, []).append(value)
    for gpu, one in found.items():
        one["decided"] = sorted(seen[gpu] - set(one["open"]))
    return found


def near(reference: str) -> Iterator[tuple[str, str, Model]]:
    """(parameter, value, model) of the near models that are not known to be equal."""
    model, normaliser = parse_reference(reference), Normaliser(BUDGET)
    own = candidate_of(model, normaliser).form
    for name, value, other in neighbours(model):
        where, _, word = name.rpartition(" ")
        if word == ZEROS_COUNT:  # of no parameter of families
            continue
        parameter = NODES.get(word, word)
        assert parameter in PARAMETERS, name
        if candidate_of(other, normaliser).form != own:
            yield parameter, f"{where}: {value}" if where else value, other


def agrees(model: Model, vectors: Sequence[Vector]) -> bool:
    """Whether a model gives every result; any NaN will do where it names no pattern."""
    ours = evaluate_rows(model, [vector.operands for vector in vectors])
    theirs = [vector.d or 0 for vector in vectors]
    if model.nan is not None:
        return ours == theirs
    table = [nans(np.array(side, dtype=np.uint64), model.d) for side in (ours, theirs)]
    same = np.array(ours, dtype=np.uint64) == np.array(theirs, dtype=np.uint64)
    return bool(np.all(same | (table[0] & table[1])))


def main() -> None:
    TABLE.write_text(json.dumps(counted(), indent=1) + "\n", encoding="utf-8")
    found = {}
    for reference, gpus in recorded_rows().items():
        print(reference, flush=True)
        found[reference] = decided(reference, gpus)
    DECISIONS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
