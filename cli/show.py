"""Text for people, and the `list` command."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from cli.choice import Choice
from cli.options import JSON, print_json, say
from smtmodel.display import bit_fields, decimal_text, number_text
from smtmodel.parameters import format_parameter
from smtmodel.vectors import Vector, to_hex

if TYPE_CHECKING:
    from hypotheses.schema import Question
    from queries.compare.observed import Row
    from queries.search.answer import Answered, PairAnswer
    from smtmodel.dot import Model
    from smtmodel.formats import Format
    from smtmodel.operands import Operands
    from smtmodel.unit import Unit


KINDS = ("models", "hypotheses", "families", "parameters", "formats", "algorithms", "studies", "claims", "devices",
         "plans", "gpus")  # fmt: skip


class KindOrGpu(Choice):
    """What is listed, or the name of a GPU, whose models are."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from smtmodel.gpus import gpu_named

        return str(value) if gpu_named(str(value)) else super().convert(value, param, ctx)


@click.command("list")
@click.argument("kind", type=KindOrGpu(KINDS), metavar=f"{{{'|'.join(KINDS)}|GPU}}")
@click.argument("words", nargs=-1, metavar="[WORD]...")
@JSON
def list_command(kind: str, words: tuple[str, ...], as_json: bool) -> None:
    """Show what there is, one line each; with WORDs what has all of them in its line.

    A GPU (H100, "RTX 4090", MI300X) stands for its architecture, as the first word or a later one.

    \b
    mmaprobe list hypotheses
    mmaprobe list models H100 e4m3
    mmaprobe list MI300X
    """
    kinds = {"models": _models, "hypotheses": _hypotheses, "families": _families, "parameters": _parameters,
             "formats": _formats, "algorithms": _algorithms, "studies": _studies, "claims": _claims,
             "devices": _devices, "plans": _plans, "gpus": _gpus}  # fmt: skip
    if kind not in kinds:
        kind, words = "models", (kind, *words)
    rows = [row for row in kinds[kind]() if all(_has(row, word) for word in _meant(words))]
    if as_json:
        print_json([{"schema": 1, **row} for row in rows])
        return
    width = max((len(row["id"]) for row in rows), default=0)
    for row in rows:
        click.echo(f"{row['id']:<{width}}  {row['summary']}".rstrip())
    if not rows:
        say(f"none of the {kind} has {' and '.join(words)} in its line")


def _meant(words: tuple[str, ...]) -> list[str]:
    """The words to look for: for a GPU its architecture. Raises NotModelledError."""
    from smtmodel.gpus import architecture_of

    return [architecture_of(word) or word for word in words]


def _has(row: dict[str, Any], word: str) -> bool:
    """Whether a row has a word in its line; `blackwell` is not in `rtx-blackwell`."""
    return re.search(f"(?<!rtx-){re.escape(word)}", f"{row['id']} {row['summary']}", re.IGNORECASE) is not None


def _gpus() -> list[dict[str, Any]]:
    from smtmodel.gpus import GPUS

    return [{"id": name, "summary": arch, "architecture": arch} for arch, names in GPUS.items() for name in names]


def _models() -> list[dict[str, Any]]:
    from smtmodel.instructions import INSTRUCTIONS
    from smtmodel.reference import parse_reference
    from smtmodel.unit_table import units

    rows = []
    for row in INSTRUCTIONS.values():
        unit = parse_reference(row.reference).unit
        block, bits = len(unit.blocks[0]), kept_bits(unit)
        steps = f"{unit.length // block} x {block}" if block < unit.length else f"{unit.length}"
        summary = f"K={steps}  F={bits}  {unit.d.name} {unit.rounding.mode}  [{row.evidence}]"
        rows.append(
            {
                "id": row.reference,
                "summary": summary + ("  emulated" if row.emulated else ""),
                "shape": list(row.shape),
                "formats": {"a": row.a, "b": row.b, "c": row.c, "d": unit.d.name},
                "block": block,
                "fraction_bits": bits,
                "source": row.source,
                "evidence": row.evidence,
                "recorded": dict(row.recorded),
                "emulated": row.emulated,
            }
        )
    return rows + [_unit_row(reference) for reference in units()]


def kept_bits(unit: Unit) -> int | str:
    """The bits kept below the largest exponent by the sum of products; "exact" where none are lost."""
    from smtmodel.nodes import FusedSum
    from smtmodel.nodes.node import walk

    sums = (node for node in walk(unit.result) if isinstance(node, FusedSum))  # that of products first
    return next((min(node.bits_of_terms) for node in sums), "exact")


def _unit_row(reference: str) -> dict[str, Any]:
    """A unit that ships as a file."""
    from smtmodel.unit_table import shipped_unit

    unit = shipped_unit(reference)
    return {
        "id": reference,
        "summary": f"K={unit.length}  {unit.d.name} {unit.rounding.mode}  [{unit.evidence}]",
        "shape": [1, 1, unit.length],
        "formats": {side: getattr(unit, side).name for side in "abcd"},
        "source": unit.source,
        "evidence": unit.evidence,
        "emulated": False,
    }


def _plans() -> list[dict[str, Any]]:
    from smtmodel.plan_table import plans
    from smtmodel.reference import PLAN, parse_plan_reference

    rows = []
    for name in plans():
        plan = parse_plan_reference(f"{PLAN}{name}")
        rows.append(
            {
                "id": f"{PLAN}{name}",
                "summary": f"{plan.about.partition('. ')[0].removesuffix('.')}  [{plan.evidence}]",
                "formats": {side: getattr(plan, side).name for side in "abcd"},
                "units": [model.reference for model in plan.models],
                "about": plan.about,
                "source": plan.source,
                "evidence": plan.evidence,
            }
        )
    return rows


def _families() -> list[dict[str, Any]]:
    from hypotheses.family import families

    return [
        {
            "id": family.id,
            "summary": family.about,
            "model": family.base.reference,
            "parameters": {name: list(map(format_parameter, values)) for name, values in family.values.items()},
        }
        for family in families().values()
    ]


def _devices() -> list[dict[str, Any]]:
    """The instructions of this processor, and the GPU: what is here, and what is missing and why."""
    from importlib.util import find_spec

    from runner.cpu import here, missing

    rows = []
    for row in here():
        model, why = row.model, missing(row)
        formats = {side: getattr(model, side).name for side in "abcd"}
        listed = ",".join(formats.values()) if row.reference else row.formats
        known = f"  [{row.reference}]" if row.reference else ""
        rows.append({
            "id": f"cpu:{row.name}",
            "summary": f"K={model.length} {listed}  {row.about}{known}{'  MISSING: ' + why if why else ''}",
            "formats": listed, "length": model.length, "here": not why, "missing": why or None,
            "model": row.reference or None,
        })  # fmt: skip
    why = "" if find_spec("cupy") else "CuPy is not installed (extras cuda12 and cuda13; docs/hardware.md)"
    summary = "matrix units of an NVIDIA GPU" + (f"  MISSING: {why}" if why else "")
    return [*rows, {"id": "cuda:", "summary": summary, "here": None if not why else False, "missing": why or None}]


def _hypotheses() -> list[dict[str, Any]]:
    from hypotheses.library import library

    return [
        {
            "id": question.id,
            "summary": question.question,
            "hypotheses": {name: model.reference for name, model in question.models.items()},
            "expect": question.expect,
            "observed": question.observed,
            "source": question.source,
        }
        for question in library().values()
    ]


def _parameters() -> list[dict[str, Any]]:
    from smtmodel.parameters import PARAMETERS

    return [
        {"id": name, "summary": f"{row.meaning}: {row.admits()}", "meaning": row.meaning, "values": row.admits()}
        for name, row in PARAMETERS.items()
    ]


def _formats() -> list[dict[str, Any]]:
    from smtmodel.formats import FORMATS, SPELLINGS

    rows: list[dict[str, Any]] = [
        {
            "id": fmt.name,
            "summary": f"{fmt.width} bits: exponent {fmt.exponent}, fraction {fmt.fraction}, bias {fmt.bias}",
            "width": fmt.width,
            "exponent": fmt.exponent,
            "fraction": fmt.fraction,
            "bias": fmt.bias,
        }
        for fmt in FORMATS.values()
    ]
    return [*rows, *({"id": spelling, "summary": meaning} for spelling, meaning in SPELLINGS.items())]


def _algorithms() -> list[dict[str, Any]]:
    from dataclasses import fields

    from smtmodel.algorithms import ALGORITHMS

    rows = []
    for kind in ALGORITHMS.values():
        names = [field.name for field in fields(kind)]
        parameters = {name: f"{kind.parameters[name].meaning}: {kind.parameters[name].admits()}" for name in names}
        defaults = {field.name: format_parameter(field.default) for field in fields(kind)}
        summary = f"{kind.about}; parameters: {', '.join(names)}"
        rows.append({"id": kind.name, "summary": summary, "parameters": parameters, "defaults": defaults})
    return rows


def _studies() -> list[dict[str, Any]]:
    from studies.catalogue import STUDIES

    return [
        {"id": study.name, "summary": study.about, "sizes": list(study.sizes),
         "series": {series.label: series.algorithm for series in study.series}}
        for study in STUDIES.values()
    ]  # fmt: skip


def _claims() -> list[dict[str, Any]]:
    from hypotheses.claim import claims

    return [
        {"id": name, "summary": f"{cases[0].about} (expected: {cases[0].expect})", "source": cases[0].source,
         "says": cases[0].says, "expect": cases[0].expect, "cases": [case.id for case in cases]}
        for name, cases in claims().items()
    ]  # fmt: skip


def show_answer(answered: Answered) -> None:
    """The question, who said what, and every vector with its predictions."""
    question = answered.question
    say(f"{question.id}: {question.question}")
    if question.source:
        say(f"  source: {question.source}")
    width = max(len(name) for name in question.models)
    for name, model in question.models.items():
        say(f"  {name:<{width}}  {model.reference}")
    for pair in answered.pairs:
        say(f"  {pair.left} | {pair.right}: {_verdict(pair)}")
    for vector in answered.vectors:
        say()
        show_vector(question, vector)
    for device, name in question.observed.items():
        say(f"  observed on {device}: {name}")
    if question.note:
        say(f"  note: {question.note}")
    if question.expect and answered.verdict != "unknown":
        say(f"  {'as expected' if answered.exit_code == 0 else f'EXPECTED {question.expect}'}")
    say()


def _verdict(pair: PairAnswer) -> str:
    outcome = pair.outcome
    if pair.reused:
        return "different (by a vector above)"
    asked = "; ".join(
        f"{len(step.free)} free{' of one sign' if step.one_sign else ''}: {', '.join(map(str, step.answers))}"
        for step in outcome.steps
    )
    asked += "; found by simulation" if outcome.simulated else ""
    if pair.verdict == "divided":
        return f"no input tells it apart from all of them; not confirmed by a second solver [{asked}]"
    if outcome.verdict == "different":
        more = "" if outcome.complete else " (there may be more kinds)"
        return f"different, {len(outcome.witnesses)} vector(s){more} [{asked}]"
    if outcome.verdict == "equal":
        return f"equal on every admitted input; not confirmed by a second solver [{asked}]"
    return f"unknown; tried [{asked}]"


def show_operands(model: Model, operands: Operands[int]) -> None:
    """The nonzero inputs as powers of two and as bits."""
    for line in operand_lines(model, operands).values():
        say(line)


def operand_lines(model: Model, operands: Operands[int], decimals: bool = False) -> dict[str, str]:
    """The operands that show_operands shows, by name. `decimals`: beside the powers of two."""
    found: list[tuple[str, int, Any]] = []
    for k, (x, y) in enumerate(zip(operands.a, operands.b, strict=True)):
        if x or y:
            found += [(f"a{k}", x, model.a), (f"b{k}", y, model.b)]
    found.append(("c", operands.c, model.c))
    for k, (x, y) in enumerate(zip(operands.scale_a, operands.scale_b, strict=True)):
        found += [(f"scale_a{k}", x, model.scale), (f"scale_b{k}", y, model.scale)]
    return {
        name: f"  {name:>4} = {to_hex(pattern, fmt):<8}  {bit_fields(pattern, fmt):<34}  "
        + value_text(pattern, fmt, decimals)
        for name, pattern, fmt in found
    }


def value_text(pattern: int, fmt: Format, decimals: bool) -> str:
    """A number in powers of two, and in decimals where these say more."""
    text, decimal = number_text(pattern, fmt), decimal_text(pattern, fmt)
    return f"{text} = {decimal}" if decimals and decimal != text else text


def show_vector(question: Question, vector: Vector) -> None:
    """The inputs, then every prediction and what hardware is known to agree with it."""
    show_operands(vector.model, vector.operands)
    predictions: dict[str, str] = vector.extra.get("predictions", {})
    width = max((len(name) for name in predictions), default=0)
    for name, text in predictions.items():
        fmt = question.models[name].d
        devices = [device for device, seen in question.observed.items() if seen == name]
        tail = f"   <- {', '.join(devices)}" if devices else ""
        say(f"  {name:>{width}} gives {text}  {number_text(int(text, 16), fmt)}{tail}")
    if vector.extra.get("exercises"):
        say(f"  exercises: {', '.join(vector.extra['exercises'])}")


def show_mismatch(row: Row, file: str) -> None:
    """One line for a mismatch of `evaluate`."""
    vector, fmt = row.vector, row.model.d
    assert vector.d is not None
    observed, predicted = (f"{to_hex(d, fmt)} ({number_text(d, fmt)})" for d in (vector.d, row.predicted))
    say(f"  {file}:{vector.line}: {row.model.reference}: observed {observed}, the model gives {predicted}")
