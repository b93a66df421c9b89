"""The `list` command: what there is, one line each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from mmaprobe.cli.choice import Choice
from mmaprobe.cli.command import Command
from mmaprobe.cli.options import JSON, print_json
from mmaprobe.documents import lists
from mmaprobe.smtmodel.base.errors import nearest
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.smtmodel.arithmetic.formats import Format

KINDS = ("models", "hypotheses", "families", "parameters", "formats", "algorithms", "studies", "claims", "devices",
         "plans", "gpus", "words")  # fmt: skip


#: patterns of what people say for formats
SPOKEN = {"fp64": "f64", "fp32": r"(?<!t)f32", "fp16": r"(?<!b)f16", "half": r"(?<!b)f16", "fp8": "(?:fp8|e4m3|e5m2)",
          "fp6": "(?:fp6|e3m2|e2m3)", "fp4": "(?:fp4|e2m1)"}  # fmt: skip


class KindOrGpu(Choice):
    """A kind of thing to list, or the name of a GPU or an architecture, whose models are listed."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from mmaprobe.smtmodel.tables.gpus import GPUS, gpu_named

        if value in KINDS:
            return str(value)
        architectures = {row.id.partition("/")[0] for row in _models()}
        if gpu_named(str(value)):
            return str(value)
        if str(value).lower() in architectures:
            return str(value).lower()
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            gpu = "a GPU of `mmaprobe list gpus` (in quotes if its name has a space)"
            found = value and any(_has(row, pattern) for row in _models() for pattern in _meant((str(value),)))
            hint = f" `mmaprobe list models {value}` lists the instructions with it." if found else ""
            if "Did you mean" not in error.message:
                near = nearest(str(value), [*architectures, *(name for names in GPUS.values() for name in names)])
                hint += f" Did you mean {near!r}?" if near else ""
            self.fail(f"{error.message} Nor is it an architecture, or {gpu}.{hint}")


@click.command("list", cls=Command)
@click.argument("kind", type=KindOrGpu(KINDS), metavar="KIND|GPU|ARCH")
@click.argument("words", nargs=-1, metavar="[WORD]...")
@JSON
def list_command(kind: str, words: tuple[str, ...], as_json: bool) -> None:
    """List models, hypotheses, families, GPUs and the like. One line each; with WORDs only the lines that contain
    all of them.

    KIND is models, hypotheses, families, parameters, formats, algorithms, studies, claims, devices, plans, gpus or
    words. In its place an architecture or a GPU (H100, "RTX 4090", MI300X) lists its models; among the words a GPU is
    read as its architecture.

    \b
    mmaprobe list hypotheses
    mmaprobe list models H100 e4m3
    mmaprobe list MI300X
    mmaprobe list hopper f16
    """
    kinds: Mapping[str, Callable[[], Sequence[Any]]] = {
             "models": _models, "hypotheses": _hypotheses, "families": _families, "parameters": _parameters,
             "formats": _formats, "algorithms": _algorithms, "studies": _studies, "claims": _claims,
             "devices": _devices, "plans": _plans, "gpus": _gpus, "words": _words}  # fmt: skip
    if kind not in kinds:
        kind, words = "models", (kind, *words)
    every = kinds[kind]()
    rows = [row for row in every if all(_has(row, pattern) for pattern in _meant(words))]
    if not rows:
        raise click.BadParameter(_nothing(kind, words, every), param_hint="'[WORD]...'")
    if as_json:
        print_json(rows)
        return
    if kind == "devices" and not words:
        rows = _by_processor(rows)
    width = max(len(row.id) for row in rows)
    for row in rows:
        click.echo(f"{row.id:<{width}}  {row.summary}".rstrip())


def _nothing(kind: str, words: tuple[str, ...], every: Sequence[lists.ListedThing]) -> str:
    """The message that no line has all of the words; for each word that is in no line, the closest word that is."""
    known = sorted({part for row in every for part in re.split(r"[\s/,;:()\[\]]+", f"{row.id} {row.summary}")})
    unknown = [
        word for word, pattern in zip(words, _meant(words), strict=True) if not any(_has(row, pattern) for row in every)
    ]
    if kind == "models":
        known += [row.id for row in _gpus()]
    near = [found for word in unknown if (found := nearest(word, known, 0.7))]
    meant = f" Did you mean {' and '.join(map(repr, near))}?" if near else ""
    return f"no line of {kind} contains {' and '.join(map(repr, words))}.{meant}"


def _meant(words: tuple[str, ...]) -> list[str]:
    """The patterns to search for: a word matches anywhere; a GPU is replaced by its architecture, which must match as a
    whole name. Raises NotModelledError."""
    from mmaprobe.smtmodel.tables.gpus import architecture_of

    found = ((architecture_of(word), word) for word in words)
    return [
        rf"{re.escape(arch)}(?![.\d])" if arch else SPOKEN.get(word.lower(), re.escape(word)) for arch, word in found
    ]


def _has(row: lists.ListedThing, pattern: str) -> bool:
    """Whether the line of a row contains a pattern; `rtx-blackwell` does not contain `blackwell`."""
    return re.search(f"(?<!rtx-){pattern}", f"{row.id} {row.summary}", re.IGNORECASE) is not None


def _gpus() -> list[lists.ListedGpu]:
    from mmaprobe.smtmodel.tables.gpus import GPUS

    return [lists.ListedGpu(id=name, summary=arch, architecture=arch) for arch, names in GPUS.items() for name in names]


def _words() -> list[lists.ListedThing]:
    from mmaprobe.cli.glossary import GLOSSARY

    return [lists.ListedThing(id=word.term, summary=word.meaning) for word in GLOSSARY]


def _models() -> list[lists.ListedModel]:
    from mmaprobe.smtmodel.tables.catalogue import catalogue

    return [lists.ListedModel(**row | {"formats": lists.Formats(**row["formats"])}) for row in catalogue()]


def _plans() -> list[lists.ListedPlan]:
    from mmaprobe.smtmodel.plans.plan_files import plans
    from mmaprobe.smtmodel.tables.reference import PLAN, parse_plan_reference

    rows = []
    for name in plans():
        plan = parse_plan_reference(f"{PLAN}{name}")
        about = f"{plan.about.partition('. ')[0].removesuffix('.')}{'' if plan.addend else ', without c'}"
        rows.append(
            lists.ListedPlan(
                id=f"{PLAN}{name}",
                summary=f"{about}  [{plan.evidence}]",
                formats=lists.Formats(a=plan.a.name, b=plan.b.name, c=plan.c.name, d=plan.d.name),
                units=[model.reference for model in plan.models],
                about=plan.about,
                source=plan.source,
                evidence=plan.evidence,
            )
        )
    return rows


def _families() -> list[lists.ListedFamily]:
    from mmaprobe.hypotheses.family import families
    from mmaprobe.smtmodel.families.parameters import format_parameter

    return [
        lists.ListedFamily(
            id=family.id,
            summary=family.about,
            model=family.base.reference,
            parameters={name: list(map(format_parameter, values)) for name, values in family.values.items()},
        )
        for family in families().values()
    ]


def _devices() -> list[lists.ListedDevice]:
    """The instructions of processors, this machine's first, and its GPU: what can be used, and what cannot and why."""
    from importlib.util import find_spec

    from mmaprobe.runner.cpu import INSTRUCTIONS, instructions_here, why_missing

    rows, own = [], instructions_here()
    for row in (*own, *(row for row in INSTRUCTIONS if row not in own)):
        model, why = row.model, why_missing(row)
        listed = f"{model.a.name},{model.b.name},{model.c.name},{model.d.name}" if row.reference else row.formats
        known = f"  [{row.reference}]" if row.reference else ""
        rows.append(lists.ListedDevice(
            id=f"cpu:{row.name}",
            summary=f"K={model.length} {listed}  {row.about}{known}{'  MISSING: ' + why if why else ''}",
            arch=row.arch, formats=listed, length=model.length, here=not why, missing=why or None,
            model=row.reference or None,
        ))  # fmt: skip
    why = "" if find_spec("cupy") else "CuPy is not installed (extras cuda12 and cuda13; docs/hardware.md)"
    summary = "matrix units of an NVIDIA GPU" + (f"  MISSING: {why}" if why else "")
    return [
        *rows,
        lists.ListedDevice(id="cuda:", summary=summary, here=None if not why else False, missing=why or None),
    ]


def _by_processor(rows: Sequence[lists.ListedDevice]) -> list[lists.ListedThing]:
    """The rows of devices, where each other kind of processor has one row for all its instructions."""
    from mmaprobe.runner.cpu import ELSEWHERE, instructions_here

    own, found = {row.arch for row in instructions_here()}, dict[str, lists.ListedThing]()
    for row in rows:
        if not row.arch or row.arch in own:
            found[row.id] = row
        elif row.arch not in found:
            names = [other.id.removeprefix("cpu:") for other in rows if other.arch == row.arch]
            many = counted(len(names), "instruction")
            summary = f"{many} ({', '.join(names)})  MISSING: {ELSEWHERE}"
            found[row.arch] = lists.ListedThing(id=row.arch, summary=summary)
    return list(found.values())


def _hypotheses() -> list[lists.ListedHypothesis]:
    from mmaprobe.hypotheses.library import library

    return [
        lists.ListedHypothesis(
            id=question.id,
            summary=question.question,
            hypotheses={name: model.reference for name, model in question.models.items()},
            expect=question.expect,
            observed=question.observed,
            source=question.source,
        )
        for question in library().values()
    ]


def _parameters() -> list[lists.ListedParameter]:
    from mmaprobe.smtmodel.families.parameters import PARAMETERS

    return [
        lists.ListedParameter(
            id=name, summary=f"{row.meaning}: {row.admits()}", meaning=row.meaning, values=row.admits()
        )
        for name, row in PARAMETERS.items()
    ]


def _format_summary(fmt: Format) -> str:
    if fmt.is_integer:
        return f"{fmt.width} bits: {'' if fmt.signed else 'unsigned '}integers"
    return f"{fmt.width} bits: exponent {fmt.exponent}, fraction {fmt.fraction}, bias {fmt.bias}"


def _formats() -> list[lists.ListedThing]:
    from mmaprobe.smtmodel.arithmetic.formats import FORMATS, SPELLINGS

    rows = [
        lists.ListedFormat(
            id=fmt.name,
            summary=_format_summary(fmt),
            width=fmt.width,
            exponent=fmt.exponent,
            fraction=fmt.fraction,
            bias=fmt.bias,
        )
        for fmt in FORMATS.values()
    ]
    return [*rows, *(lists.ListedSpelling(id=spelling, summary=meaning) for spelling, meaning in SPELLINGS.items())]


def _algorithms() -> list[lists.ListedAlgorithm]:
    from dataclasses import fields

    from mmaprobe.smtmodel.algorithms import ALGORITHMS
    from mmaprobe.smtmodel.families.parameters import format_parameter

    rows = []
    for kind in ALGORITHMS.values():
        names = [field.name for field in fields(kind)]
        parameters = {name: f"{kind.parameters[name].meaning}: {kind.parameters[name].admits()}" for name in names}
        defaults = {field.name: format_parameter(field.default) for field in fields(kind)}
        summary = f"{kind.about}; parameters: {', '.join(names)}"
        rows.append(lists.ListedAlgorithm(id=kind.name, summary=summary, parameters=parameters, defaults=defaults))
    return rows


def _studies() -> list[lists.ListedStudy]:
    from mmaprobe.studies.file import studies

    return [
        lists.ListedStudy(id=study.id, summary=study.about, sizes=study.sizes,
                    series={series.label: series.subject for series in study.series})
        for study in studies().values()
    ]  # fmt: skip


def _claims() -> list[lists.ListedClaim]:
    from mmaprobe.hypotheses.claim import claims

    return [
        lists.ListedClaim(id=name, summary=f"{cases[0].about} (expected: {cases[0].expect})", source=cases[0].source,
                    says=cases[0].says, expect=cases[0].expect, cases=[case.id for case in cases])
        for name, cases in claims().items()
    ]  # fmt: skip
