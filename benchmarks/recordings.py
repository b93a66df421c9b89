"""What recorded results of GPUs leave open, and what questions would have left: random vectors against chosen ones.

For every instruction of tests/data/recorded.jsonl.gz (400 or 500 random ones of each GPU): the candidates of its family
that explain all of them, whether the true model is among these, and how many vectors beyond the recording tell apart
what is left. For the family `any` on f16 also how many candidates are left after the recorded and after 4,500 more
random vectors of the same kind (answered by the model of that GPU, which explains every recorded one), and after
mmaprobe's own questions. `python -m benchmarks.recordings [-o benchmarks/recordings.md]`
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.identified import family_of
from benchmarks.pages import table_row
from mmaprobe.hypotheses.family import family_named
from mmaprobe.queries.candidates.identify import Identification, Identifier
from mmaprobe.queries.candidates.kinds import candidate_of, unique_models
from mmaprobe.queries.candidates.outcomes import simulate
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.normalising import Normaliser
from mmaprobe.runner.recorded import RecordedDevice
from mmaprobe.smtmodel.evaluate.batch import evaluate_models, evaluate_rows
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import without_payload
from mmaprobe.smtmodel.evaluate.operands import Operands, layout_of
from mmaprobe.smtmodel.inputs.vectors import Vector
from tests.inputs import normal

RECORDED = Path(__file__).parents[1] / "tests" / "data" / "recorded.jsonl.gz"
MORE = 4500
BUDGET = Options("auto", 40.0)  # seconds for proofs, for each recording


def from_recording(device: RecordedDevice, model: Model, vectors: Sequence[Vector]) -> Identification:
    """The family's candidates that explain a recording."""
    family = family_named(family_of(model.reference)).retargeted(model)

    def ask(asked: Sequence[Vector]) -> list[int | None]:
        return [d for _, d in device.answers(asked)]

    return Identifier(family.candidates(), ask, BUDGET, recorded=vectors).run()


def holds(found: Identification, model: Model) -> bool:
    normaliser = Normaliser(BUDGET)
    forms = {candidate_of(survivor, normaliser).form for survivor in found.survivors}
    return candidate_of(model.any_nan, normaliser).form in forms


def narrowing(model: Model, vectors: Sequence[Vector]) -> tuple[int, int, int, int, int]:
    """Of `any`: candidates, those left after the recording, after more random vectors, after mmaprobe's questions,
    and how many these were."""
    kinds = unique_models(family_named("any").retargeted(model).candidates(), BUDGET)
    models, layout = list(kinds), layout_of(model)
    rows = np.array([padded(layout.length, vector.operands) for vector in vectors], dtype=np.uint64)
    observed = np.array([vector.d for vector in vectors], dtype=np.uint64)
    fits = (simulate(models, rows) == without_payload(observed, model.d)).all(axis=1)
    left = [models[i] for i in np.flatnonzero(fits)]
    a, b, c = normal(model, MORE, np.random.default_rng(7))
    more = np.concatenate([a, b, c[:, None]], axis=1).astype(np.uint64)
    truth = without_payload(evaluate_models([model], more), model.d)[0]
    after = [left[i] for i in np.flatnonzero((simulate(left, more) == truth).all(axis=1))]
    found = Identifier(list(kinds), lambda asked: list(evaluate_rows(model, [v.operands for v in asked])), BUDGET).run()

    def count(some: Sequence[Model]) -> int:
        return sum(1 + len(kinds[m]) for m in some)

    mine = [m for m in found.survivors if m in kinds]
    return count(models), count(left), count(after), count(mine), len(found.questions)


def padded(length: int, operands: Operands[int]) -> list[int]:
    missing = [0] * (length - len(operands.a))
    return [*operands.a, *missing, *operands.b, *missing, operands.c]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="instructions whose name contains this")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/recordings.md"))
    arguments = parser.parse_args()
    groups: dict[str, list[Vector]] = {}
    device = RecordedDevice(str(RECORDED))
    for vector in device.vectors:
        groups.setdefault(vector.model.reference, []).append(vector)
    columns = ("instruction", "recorded", "family", "candidates", "asked", "left", "classes", "true model",
               "open pairs", "would decide")  # fmt: skip
    head = "| " + " | ".join(columns) + " |"
    table, random = [head, "|" + "---|" * 10], []
    for reference, vectors in groups.items():
        if arguments.only not in reference:
            continue
        model, start = vectors[0].model, time.monotonic()
        found = from_recording(device, model, vectors)
        cells = (reference, len(vectors), family_of(reference), found.candidates, len(found.questions),
                 len(found.survivors), len(found.classes), "left" if holds(found, model) else "RULED OUT",
                 len(found.unknown), f"{len(found.would_decide)} vectors")  # fmt: skip
        table.append(table_row(*cells))
        print(table[-1], f"{time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
        if model.a.name == "f16" and model.d.name == "f32":
            random.append("| " + " | ".join(map(str, (reference, *narrowing(model, vectors)))) + " |")
            print(random[-1], file=sys.stderr, flush=True)
    second = (
        "| instruction | candidates of `any` | left after the recorded | after 4,500 more | after mmaprobe's questions "
        "| questions |"
    )
    text = ["# What recorded results of GPUs leave open", "", *table, "", second, "|" + "---|" * 6, *random, ""]
    arguments.output.write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
