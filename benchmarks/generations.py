"""What changes from A100 to H100 to B200 to MI300X, with the smallest input that shows each change.

`python -m benchmarks.generations` asks for the inputs (about two minutes) and writes
hypotheses/vectors/generations.jsonl; both this and `--page` write docs/generations.md from them.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypotheses.schema import Inputs
from queries.search.distinguish import Options, distinguish
from queries.search.problem import Problem
from reports.arithmetic import LINES, arithmetic
from smtmodel.batch import evaluate_row
from smtmodel.display import number_text
from smtmodel.dot import Model
from smtmodel.instructions import INSTRUCTIONS
from smtmodel.operands import Operands
from smtmodel.parameters import format_parameter
from smtmodel.reference import parse_reference
from smtmodel.vectors import Vector, parse_row, to_hex

ROOT = Path(__file__).parents[1]
VECTORS = ROOT / "hypotheses" / "vectors" / "generations.jsonl"
PAGE = ROOT / "docs" / "generations.md"
OPTIONS = Options(solver="bitwuzla", timeout=60.0, count=4)
GPUS = ("A100", "H100", "B200", "MI300X")

#: kind -> the instruction of each GPU, with the largest K that all have
KINDS: Mapping[str, Mapping[str, str]] = {
    "f16, results f32": {
        "A100": "ampere/mma/m16n8k16.f32.f16.f16.f32",
        "H100": "hopper/wgmma/m64n8k16.f32.f16.f16",
        "B200": "blackwell/tcgen05mma/m64n8k16.f32.f16.f16",
        "MI300X": "cdna3/mfma/f32_16x16x16_f16",
    },
    "f16, results f16": {
        "A100": "ampere/mma/m16n8k16.f16.f16.f16.f16",
        "H100": "hopper/wgmma/m64n8k16.f16.f16.f16",
        "B200": "blackwell/tcgen05mma/m64n8k16.f16.f16.f16",
    },
    "bf16": {
        "A100": "ampere/mma/m16n8k16.f32.bf16.bf16.f32",
        "H100": "hopper/wgmma/m64n8k16.f32.bf16.bf16",
        "B200": "blackwell/tcgen05mma/m64n8k16.f32.bf16.bf16",
        "MI300X": "cdna3/mfma/f32_16x16x16_bf16",
    },
    "TF32": {
        "A100": "ampere/mma/m16n8k8.f32.tf32.tf32.f32",
        "H100": "hopper/wgmma/m64n8k8.f32.tf32.tf32",
        "B200": "blackwell/tcgen05mma/m64n8k8.f32.tf32.tf32",
        "MI300X": "cdna3/mfma/f32_16x16x8_xf32",
    },
    "FP8 (e4m3), results f32": {
        "H100": "hopper/wgmma/m64n8k32.f32.e4m3.e4m3",
        "B200": "blackwell/tcgen05mma/m64n8k32.f32.e4m3.e4m3",
        "MI300X": "cdna3/mfma/f32_16x16x32_fp8_fp8",
    },
    "f64": {
        "A100": "ampere/mma/m8n8k4.f64.f64.f64.f64",
        "H100": "hopper/mma/m8n8k4.f64.f64.f64.f64",
        "B200": "blackwell/mma/m8n8k4.f64.f64.f64.f64",
        "MI300X": "cdna3/mfma/f64_16x16x4_f64",
    },
}
#: what a change of family brings that no parameter of the older family has
NEW = {"late_rounding": "toward_zero"}
UNASKED = {"nan", "length"}  # patterns of NaNs are not compared; lengths are the instruction's


@dataclass(frozen=True)
class Step:
    """From one GPU to the next one that has the kind."""

    kind: str
    old: str
    new: str

    @property
    def models(self) -> tuple[Model, Model]:
        return parse_reference(KINDS[self.kind][self.old]), parse_reference(KINDS[self.kind][self.new])

    @property
    def verdict(self) -> str:
        """one: the same expression; formats: other formats, so that no input is common; else changed."""
        old, new = self.models
        if old.unit.operands != new.unit.operands:
            return "formats"
        return "one" if old.unit.result == new.unit.result else "changed"

    @property
    def same_family(self) -> bool:
        old, new = self.models
        assert old.member is not None and new.member is not None
        return old.member.family == new.member.family


@dataclass(frozen=True)
class Change:
    """A parameter, and two models that differ in it alone: one is of a GPU."""

    step: Step
    parameter: str
    before: str
    after: str

    @property
    def id(self) -> str:
        kind = self.step.kind.lower().replace(", results ", "-").partition(" ")[0]
        return f"{kind}-{self.step.old}-{self.step.new}-{self.parameter}".lower()


def steps() -> Iterator[Step]:
    for kind, instructions in KINDS.items():
        names = [gpu for gpu in GPUS if gpu in instructions]
        yield from (Step(kind, old, new) for old, new in zip(names, names[1:], strict=False))


def changes(step: Step) -> list[Change]:
    """Of one step, each parameter that changes: on the older unit where the families are one; else the whole first,
    then what the newer unit has otherwise than the older one, on the newer unit."""
    if step.verdict != "changed":
        return []
    old, new = step.models
    assert old.member is not None and new.member is not None
    theirs = INSTRUCTIONS[old.reference].changed(new) - UNASKED
    if step.same_family:
        return [
            Change(step, name, old.reference, f"{old.reference}@{name}={format_parameter(new.member.values[name])}")
            for name in new.member.values
            if name in theirs
        ]
    found = [Change(step, "family", old.reference, new.reference)]
    for name in new.member.values:
        before = old.member.values[name] if name in old.member.values else NEW.get(name)
        if name in theirs and before is not None and before != new.member.values[name]:
            found.append(Change(step, name, f"{new.reference}@{name}={format_parameter(before)}", new.reference))
    return found


def row_of(change: Change) -> dict[str, Any]:
    """The smallest input that the solver finds: one that the newer GPU answers as the change alone has it, if there is
    one among the first."""
    before, after = parse_reference(change.before), parse_reference(change.after)
    outcome = distinguish(Problem(before, after, Inputs(finite=True)), OPTIONS)
    row: dict[str, Any] = {
        "schema": 1, "id": change.id, "model": KINDS[change.step.kind][change.step.old],
        "before": change.before, "after": change.after,
    }  # fmt: skip
    if outcome.verdict != "different":
        return row | {"verdict": outcome.verdict}

    def shown(operands: Operands[int]) -> bool:
        old, new = (evaluate_row(model, operands) for model in change.step.models)
        return (old, new) == (evaluate_row(before, operands), evaluate_row(after, operands))

    candidates = [witness.operands for witness in outcome.witnesses]
    best = min(candidates, key=lambda one: (not shown(one), sum(map(bool, one.a)), candidates.index(one)))
    count = max((k for k in range(len(best.a)) if best.a[k] or best.b[k]), default=0) + 1
    return row | {
        "a": [to_hex(x, before.a) for x in best.a[:count]],
        "b": [to_hex(x, before.b) for x in best.b[:count]],
        "c": to_hex(best.c, before.c),
        "predictions": predictions(change.step.kind, before, Operands(best.a[:count], best.b[:count], best.c)),
        "isolates": {"before": to_hex(evaluate_row(before, best), before.d),
                     "after": to_hex(evaluate_row(after, best), after.d)},
    }  # fmt: skip


def predictions(kind: str, like: Model, operands: Operands[int]) -> dict[str, str]:
    """The result of every GPU that takes the input."""
    models = {gpu: parse_reference(name) for gpu, name in KINDS[kind].items()}
    fitting = {gpu: m for gpu, m in models.items() if (m.a, m.b, m.c, m.d) == (like.a, like.b, like.c, like.d)}
    return {gpu: to_hex(evaluate_row(m, operands), m.d) for gpu, m in fitting.items()}


def asked() -> list[dict[str, Any]]:
    found = []
    for step in steps():
        for change in changes(step):
            row = row_of(change)
            print(change.id, row.get("verdict", row.get("predictions")), row.get("isolates", ""), flush=True)
            found.append(row)
    return found


def main() -> None:
    if sys.argv[1:] != ["--page"]:
        VECTORS.write_text("".join(json.dumps(row) + "\n" for row in asked()), encoding="utf-8")


if __name__ == "__main__":
    main()
