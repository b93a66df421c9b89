"""What changes from A100 to H100 to B200 to MI300X, with the smallest input that shows each change.

`python -m benchmarks.generations` asks for the inputs (about two minutes) and writes
hypotheses/vectors/generations.jsonl; both this and `--page` write docs/generations.md from them.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.pages import read_rows
from mmaprobe.queries.candidates.kinds import candidate_of
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.search.distinguish import Options, distinguish
from mmaprobe.queries.tactics.normalising import Normaliser
from mmaprobe.reports.arithmetic import LINES, arithmetic
from mmaprobe.smtmodel.arithmetic.display import number_text
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.families.parameters import format_parameter
from mmaprobe.smtmodel.inputs.admitted import Compare, Inputs
from mmaprobe.smtmodel.inputs.vectors import Vector, parse_row, to_hex
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference

ROOT = Path(__file__).parents[1]
VECTORS = ROOT / "hypotheses" / "vectors" / "generations.jsonl"
PAGE = ROOT / "docs" / "generations.md"
#: of the first question, and of the second, where the first input is not what the newer GPU gives
OPTIONS = (Options(solver="bitwuzla", timeout=20.0), Options(solver="bitwuzla", timeout=10.0, count=3))
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
#: how the page has a device asked
ASKED = """```console
$ grep '"id": "bf16-' hypotheses/vectors/generations.jsonl > bf16.jsonl
$ mmaprobe run bf16.jsonl --device model:hopper/wgmma/m64n8k16.f32.bf16.bf16 -o answers.jsonl 2>&1 | cut -d';' -f 1-2
predictions: 'H100' is consistent with 10 of 10 answers; 'B200' is consistent with 10 of 10 answers
10 vectors answered by model:hopper/wgmma/m64n8k16.f32.bf16.bf16
```""".splitlines()
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
        assert old.member is not None
        assert new.member is not None
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
        yield from (Step(kind, old, new) for old, new in pairwise(names))


def changes(step: Step) -> list[Change]:
    """Of one step, each parameter that changes: on the older unit where the families are one; else the whole first,
    then what the newer unit has otherwise than the older one, on the newer unit."""
    if step.verdict != "changed":
        return []
    old, new = step.models
    assert old.member is not None
    assert new.member is not None
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


def row_of(change: Change) -> dict[str, Any] | None:
    """The smallest input that the solver finds: one that the newer GPU answers as the change alone has it, if there is
    one among the first. None where there is no input, or none was found in time."""
    before, after = parse_reference(change.before), parse_reference(change.after)
    if same(before, after):
        return None

    def shown(operands: Operands[int]) -> bool:
        old, new = (evaluate_row(model, operands) for model in change.step.models)
        return (old, new) == (evaluate_row(before, operands), evaluate_row(after, operands))

    candidates: list[Operands[int]] = []
    for options in OPTIONS:
        compare: Compare = "bits" if before.d == after.d else "value"
        outcome = distinguish(Problem(before, after, Inputs(finite=True), compare), options)
        candidates = [witness.operands for witness in outcome.witnesses]
        if not candidates or any(map(shown, candidates)):
            break
    if not candidates:
        return None
    best = min(candidates, key=lambda one: (not shown(one), candidates.index(one)))
    count = max((k for k in range(len(best.a)) if best.a[k] or best.b[k]), default=0) + 1
    best = Operands(best.a[:count], best.b[:count], best.c)
    return {
        "schema": 1, "id": change.id, "model": KINDS[change.step.kind][change.step.old],
        "a": [to_hex(x, before.a) for x in best.a],
        "b": [to_hex(x, before.b) for x in best.b],
        "c": to_hex(best.c, before.c),
        "predictions": predictions(change.step.kind, before, best),
    }  # fmt: skip


def same(before: Model, after: Model) -> bool:
    """Whether two models are equal by a theorem."""
    normaliser = Normaliser(OPTIONS[0])
    return candidate_of(before, normaliser).form == candidate_of(after, normaliser).form


def predictions(kind: str, like: Model, operands: Operands[int]) -> dict[str, str]:
    """The result of every GPU that takes the input."""
    models = {gpu: parse_reference(name) for gpu, name in KINDS[kind].items()}
    fitting = {gpu: m for gpu, m in models.items() if (m.a, m.b, m.c) == (like.a, like.b, like.c)}
    return {gpu: to_hex(evaluate_row(m, operands), m.d) for gpu, m in fitting.items()}


# -- the page


def written() -> dict[str, dict[str, Any]]:
    """The inputs by id."""
    return {row["id"]: row for row in read_rows(VECTORS)}


def page(known: Mapping[str, Mapping[str, Any]]) -> str:
    """docs/generations.md."""
    text = (
        "What changes in the arithmetic of matrix instructions from each of these GPUs to the next, for each kind of "
        "inputs and results. Beside each change is an input that shows it: two models that differ in it alone give "
        "different results for it. The input is minimised. Beside it are the results of the GPUs, by their models, "
        "which differ in the other changes as well. If no input is shown, the line says why. In inputs, "
        "`at 5` is product 5; a product without a place is product 0, and all others are zero. The steps of a unit "
        "that adds in several are named: `products` adds the products, then in `late` the addend joins their sum. "
        "[gpus](gpus/README.md) says on what the models rest. `python -m benchmarks.generations` makes this page."
    )
    lines = ["# From A100 to H100 to B200 to MI300X", "", *_wrapped(text), ""]
    lines += ["Asked the inputs of a kind, a device agrees with one or more of the four. Here a model plays it:", ""]
    lines += [*ASKED, ""]
    lines += ["| kind | " + " | ".join(f"{old} to {new}" for old, new in pairwise(GPUS)) + " |", "|---|---|---|---|"]
    for kind in KINDS:
        cells = {(step.old, step.new): _summary(step, known) for step in steps() if step.kind == kind}
        row = [cells.get(pair) or _absent(kind, pair) for pair in pairwise(GPUS)]
        lines.append(f"| {kind} | {' | '.join(row)} |")
    for kind, instructions in KINDS.items():
        lines += [
            "",
            f"## {kind}",
            "",
            *_wrapped("; ".join(f"{gpu}: `{name}`" for gpu, name in instructions.items()) + "."),
        ]
        for step in steps():
            if step.kind == kind:
                lines += ["", f"**{step.old} to {step.new}**: {_sentence(step)}", *_table(step, known)]
    return "\n".join([*lines, ""])


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False)


def _absent(kind: str, pair: tuple[str, str]) -> str:
    return f"not on {' and '.join(gpu for gpu in pair if gpu not in KINDS[kind])}"


def _summary(step: Step, known: Mapping[str, Mapping[str, Any]]) -> str:
    if step.verdict == "one":
        return "the same"
    if step.verdict == "formats":
        return "other formats"
    names = [_what(change) for change in changes(step) if change.id in known]
    return ", ".join(dict.fromkeys(names))


def _line(change: Change) -> tuple[str, str, str]:
    """The line of a data sheet that a change alters, and what the two models do, in its words."""
    sides = [dict(arithmetic(parse_reference(name).unit)) for name in (change.before, change.after)]
    lines = [line for line, names in LINES.items() if change.parameter in names]
    line = next((line for line in lines if sides[0].get(line) != sides[1].get(line)), lines[0])
    return line, sides[0].get(line, "none"), sides[1].get(line, "none")


def _what(change: Change) -> str:
    return "the whole sum" if change.parameter == "family" else _line(change)[0].lower()


def _sentence(step: Step) -> str:
    old, new = step.models
    if step.verdict == "one":
        return f"the same expression, so equal on every input: `mmaprobe prove {old.reference} {new.reference}`."
    if step.verdict == "formats":
        return f"{old.a.name} and {new.a.name} are different formats, so that no input is common to both."
    return "each change, in a model that differs in it alone:"


def _table(step: Step, known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    if step.verdict != "changed":
        return []
    rows = ["", "| change | from | to | smallest input | results |", "|---|---|---|---|---|"]
    for change in changes(step):
        row = known.get(change.id)
        _, before, after = _line(change)
        start = f"| {_what(change)} | {before} | {after} |"
        if row is None:
            equal = same(parse_reference(change.before), parse_reference(change.after))
            why = "none: proved equal" if equal else "none found in 20 s"
            rows.append(f"{start} {why} | |")
        else:
            rows.append(f"{start} {_input(parse_row(dict(row)))} | {_results(row['predictions'])} |")
    return rows


def _results(predictions: Mapping[str, str]) -> str:
    """Each result with the GPUs that give it: a column for each GPU is more than a narrow window or a page holds."""
    gpus: dict[str, list[str]] = {}
    for gpu, result in predictions.items():
        gpus.setdefault(result, []).append(gpu)
    return "; ".join(f"{', '.join(names)} `{result}`" for result, names in gpus.items())


def _input(vector: Vector) -> str:
    """The products that are not zero, and the addend, in powers of two."""
    model, operands = vector.model, vector.operands
    terms = [
        f"({number_text(a, model.a)}) * ({number_text(b, model.b)})" + (f" at {k}" if k else "")
        for k, (a, b) in enumerate(zip(operands.a, operands.b, strict=True))
        if a or b
    ]
    return "; ".join([*terms, f"c = {number_text(operands.c, model.c)}"])


def asked(known: Mapping[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for step in steps():
        for change in changes(step):
            row = known.get(change.id) or row_of(change)
            print(change.id, "none" if row is None else row["predictions"], flush=True)
            if row is not None:
                yield row


def main() -> None:
    if sys.argv[1:] != ["--page"]:
        part = VECTORS.with_suffix(".part")  # of a run that was ended
        known = {row["id"]: row for row in read_rows(part)}
        with part.open("w", encoding="utf-8") as stream:
            for row in asked(known):
                stream.write(json.dumps(row) + "\n")
                stream.flush()
        part.replace(VECTORS)
    PAGE.write_text(page(written()), encoding="utf-8")


if __name__ == "__main__":
    main()
