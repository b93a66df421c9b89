"""The lists of `mmaprobe list`, with a row for each thing: units, plans, formats, claims, GPUs and the other kinds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Generic, Literal, TypeVar, overload

from mmaprobe.documents import lists
from mmaprobe.smtmodel.base.errors import ParameterError, nearest
from mmaprobe.smtmodel.base.htmltext import html_table
from mmaprobe.smtmodel.base.wording import counted, some_of, table_lines

if TYPE_CHECKING:
    from mmaprobe.smtmodel.arithmetic.formats import Format
    from mmaprobe.smtmodel.families.parameters import Parameter

Row = TypeVar("Row", bound=lists.ListedThing, covariant=True)

SHOWN = 20  # rows that a terminal or a notebook shows unasked
#: common names of formats -> patterns that find these formats, in the line of a model or in its formats
SPOKEN = {
    "fp64": "f64", "double": "f64", "fp32": "(?<!t)f32", "single": "(?<!t)f32", "float": "(?<!t)f32",
    "fp16": "(?<!b)f16", "half": "(?<!b)f16", "bfloat16": "bf16", "xf32": "tf32", "fp8": "(?<!u)e4m3|e5m2",
    "hf8": "(?<!u)e4m3", "bf8": "e5m2", "fp6": "e3m2|e2m3", "fp4": "e2m1", "mxfp8": "(?:e4m3|e5m2).*ue8m0",
    "mxfp6": "(?:e3m2|e2m3).*ue8m0", "mxfp4": "e2m1.*ue8m0", "nvfp4": "e2m1.*ue4m3", "nvf4": "e2m1.*ue4m3",
    "i8": "(?<!u)int8", "s8": "(?<!u)int8", "u8": "uint8", "i4": "(?<!u)int4", "s4": "(?<!u)int4", "u4": "uint4",
    "i32": "(?<!u)int32", "s32": "(?<!u)int32",
}  # fmt: skip


@dataclass(frozen=True, repr=False)
class Listed(Sequence[Row], Generic[Row]):
    """A list of things of one `kind`. `rows`: values whose attributes are the keys of `mmaprobe list --json`: `id`,
    `summary` and the keys of this kind. `repr()` and a notebook show the first rows."""

    kind: str
    rows: tuple[Row, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> Listed[Row]: ...
    def __getitem__(self, place: int | slice) -> Row | Listed[Row]:
        return Listed(self.kind, self.rows[place]) if isinstance(place, slice) else self.rows[place]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __repr__(self) -> str:
        return "\n".join([*table_lines([(row.id, row.summary) for row in self.rows[:SHOWN]]), self._end])

    def _repr_html_(self) -> str:
        return html_table(self._end, [(row.id, row.summary) for row in self.rows[:SHOWN]], (self.kind, ""))

    @property
    def _end(self) -> str:
        more = f", of which {SHOWN} are shown" if len(self) > SHOWN else ""
        return f"({len(self)} {self.kind}{more})"


def units(
    *words: str, a: str | None = None, b: str | None = None, c: str | None = None, d: str | None = None
) -> Listed[lists.ListedModel]:
    """The known units: instructions of the table, and unit files shipped with the package.

    Units: `words`, as after `mmaprobe list models`: each row contains all of them; a GPU ("H100") stands for its
    architecture. `a`, `b`, `c`, `d`: the format of an operand, or of the result ("f16").

    Raises MmaprobeError: a word that is in no row (the message has the nearest word), an argument that is no string.

    Source: `source` and `evidence` of each row, as `mmaprobe list` prints them: recordings of GPUs, or a publication.
    """
    return _listed_by_format("models", _models(), words, {"a": a, "b": b, "c": c, "d": d})


def plans(
    *words: str, a: str | None = None, b: str | None = None, c: str | None = None, d: str | None = None
) -> Listed[lists.ListedPlan]:
    """The known plans: how libraries divide K and add the sums of the parts.

    Units: `words` and `a`, `b`, `c`, `d` as for `units`; `c="none"`: plans that read no c.

    Raises MmaprobeError as `units` does.

    Source: each row has `source` and `evidence` (docs/plans.md).
    """
    return _listed_by_format("plans", _plans(), words, {"a": a, "b": b, "c": c, "d": d})


def formats(*words: str) -> Listed[lists.ListedThing]:
    """The formats of numbers, and the spellings of further formats.

    Units: `words` as for `units`; `width`, `exponent` and `fraction` of a row in bits.

    Raises MmaprobeError as `units` does.

    Source: docs/units.md names the standard of each spelling.
    """
    return _listed("formats", _formats(), words)


def claims(*words: str) -> Listed[lists.ListedClaim]:
    """The claims about algorithms on units that can be verified.

    Units: `words` as for `units`.

    Raises MmaprobeError as `units` does.

    Source: `source` and `says` of each row (docs/claims.md).
    """
    return _listed("claims", _claims(), words)


def gpus(*words: str) -> Listed[lists.ListedGpu]:
    """The GPUs whose matrix units are known, by architecture.

    Units: `words` as for `units`.

    Raises MmaprobeError as `units` does.

    Source: the vendors' names (docs/gpus/README.md has a page for each).
    """
    return _listed("gpus", _gpus(), words)


def _listed(kind: str, every: Sequence[Row], words: Sequence[str]) -> Listed[Row]:
    from mmaprobe.named import WantedError  # the command line lists without NumPy

    for word in words:
        if not isinstance(word, str):
            raise WantedError("words", word, "a string such as 'hopper'")
    rows = matching(every, words)
    if words and not rows and (none := words_in_no_row(every, words)):
        raise ParameterError("words", no_match_text(kind, none, every))
    return Listed(kind, tuple(rows))


def _listed_by_format(
    kind: str, every: Sequence[Row], words: Sequence[str], wanted: Mapping[str, str | None]
) -> Listed[Row]:
    from mmaprobe.named import WantedError
    from mmaprobe.smtmodel.arithmetic.formats import FORMATS
    from mmaprobe.smtmodel.base.errors import UnknownNameError
    from mmaprobe.smtmodel.operand import NO_ADDEND

    asked = {name: fmt for name, fmt in wanted.items() if fmt is not None}
    for name, fmt in asked.items():
        if not isinstance(fmt, str):
            raise WantedError(name, fmt, "the name of a format such as 'f16'")
        if fmt not in FORMATS and (name, fmt) != ("c", NO_ADDEND):
            raise UnknownNameError(f"{name}: format", fmt, FORMATS)
    rows = _listed(kind, every, words)
    return Listed(kind, tuple(row for row in rows if all(_format(row, name) == fmt for name, fmt in asked.items())))


def _format(row: lists.ListedThing, name: str) -> str:
    """The format of an operand, or of the result, of a unit or a plan."""
    assert isinstance(row, (lists.ListedModel, lists.ListedPlan))
    return str(getattr(row.formats, name))


# -- filters


def matching(every: Sequence[Row], words: Sequence[str]) -> list[Row]:
    """The rows that contain all words. Raises NotModelledError for a GPU without units."""
    patterns = search_patterns(words)
    return [row for row in every if all(is_match(row, pattern) for pattern in patterns)]


def words_in_no_row(every: Sequence[lists.ListedThing], words: Sequence[str]) -> list[str]:
    """The words that no row contains."""
    patterns = zip(words, search_patterns(words), strict=True)
    return [word for word, pattern in patterns if not any(is_match(row, pattern) for row in every)]


def no_match_text(kind: str, words: Sequence[str], every: Sequence[lists.ListedThing]) -> str:
    """The message that no line has all of the words. It says in how many lines each word is; for a word in no line, it
    suggests the nearest word that is in one."""
    known = sorted({part for row in every for part in re.split(r"[\s/,;:()\[\]]+", _searched(row))})
    if kind == "models":
        known += [row.id for row in _gpus()]
    none = words_in_no_row(every, words)
    near = [found for word in none if (found := nearest(word, [*known, *SPOKEN], 0.7))]
    hint = f" Did you mean {' and '.join(map(repr, near))}?" if near else ""
    if kind == "models" and len(near) < len(none):
        hint += " Words are parts of lines, GPUs and formats (`mmaprobe list gpus`, `mmaprobe list formats`)."
    where = "" if len(words) < 2 else f" {'; '.join(map(partial(_where, every), words))}."
    return f"no line of {kind} contains {' and '.join(map(repr, words))}.{where}{hint}"


def _where(every: Sequence[lists.ListedThing], word: str) -> str:
    """The number of lines with a word, as text, with their formats if the word is a GPU or an architecture, else with
    their architectures."""
    from mmaprobe.smtmodel.tables.gpus import architecture_of

    [pattern] = search_patterns([word])
    rows = [row for row in every if is_match(row, pattern)]
    models = [row for row in rows if isinstance(row, lists.ListedModel)]
    archs = {row.id.partition("/")[0]: None for row in models}
    formats = {row.formats.a: None for row in models}
    of = [*(formats if (architecture_of(word) or word.lower()) in archs else archs)]
    kinds = f" ({some_of(of, 10)})" if of else ""
    return f"{word!r} is in {counted(len(rows), 'line') if rows else 'none'}{kinds}"


def search_patterns(words: Sequence[str]) -> list[str]:
    """The regular expression of each word. A word matches anywhere, as itself or as a common name of formats. A GPU is
    replaced by its architecture, which must match as a whole name. Raises NotModelledError."""
    from mmaprobe.smtmodel.tables.gpus import architecture_of

    named = ((architecture_of(word), word) for word in words)
    return [rf"{re.escape(arch)}(?![.0-9])" if arch else _spoken(word) for arch, word in named]


def _spoken(word: str) -> str:
    """The regular expression of a word. A name of a format as NumPy, PyTorch or IEEE 754 write it (float8_e4m3fn,
    torch.float16, binary32) also matches this project's names."""
    name = re.sub(r"(?:fp|float|f)[468]_?(?=e[0-9])|(?<=e[0-9]m[0-9])fn$", "", word.lower().removeprefix("torch."))
    name = re.sub(r"^(?:float|binary)(?=[0-9]+$)", "fp", name)
    return f"(?:{re.escape(word)}|{SPOKEN.get(name) or re.escape(name) or '$'})"


def is_match(row: lists.ListedThing, pattern: str) -> bool:
    """Whether the line of a row, or its formats, contain a pattern; `rtx-blackwell` does not contain `blackwell`."""
    return re.search(f"(?<!rtx-){pattern}", _searched(row), re.IGNORECASE) is not None


def _searched(row: lists.ListedThing) -> str:
    """The text in which words are searched: the line, and the formats of a unit or a plan, since a name may spell a
    format in another way (i8) or leave it out."""
    formats = (_format(row, name) for name in "abcd") if isinstance(row, (lists.ListedModel, lists.ListedPlan)) else ()
    return " ".join([row.id, row.summary, *formats])


# -- rows


def _gpus() -> list[lists.ListedGpu]:
    from mmaprobe.smtmodel.tables.gpus import GPUS

    return [lists.ListedGpu(id=name, summary=arch, architecture=arch) for arch, names in GPUS.items() for name in names]


def _models() -> list[lists.ListedModel]:
    from mmaprobe.smtmodel.tables.catalogue import catalogue

    return [lists.ListedModel(**row | {"formats": lists.Formats(**row["formats"])}) for row in catalogue()]


def _plans() -> list[lists.ListedPlan]:
    from mmaprobe.smtmodel.operand import NO_ADDEND
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
                formats=lists.Formats(
                    a=plan.a.name, b=plan.b.name, c=plan.c.name if plan.addend else NO_ADDEND, d=plan.d.name
                ),
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
    """The instructions of processors, this machine's first, and GPUs, each with the reason why it cannot be used, if
    there is one."""
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
        lists.ListedDevice(
            id="hip:",
            summary="MFMA, WMMA and V_DOT2 of an AMD GPU, by ROCm (no result was recorded yet)",
            here=None,
            missing=None,
        ),
    ]


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
    """The parameters of models, then those of algorithms."""
    from mmaprobe.smtmodel.algorithms import ALGORITHMS
    from mmaprobe.smtmodel.families.parameters import PARAMETERS

    tables = {id(kind.parameters): kind for kind in ALGORITHMS.values()}.values()
    rows: list[tuple[Literal["models", "algorithms"], str, Parameter]]
    rows = [("models", name, row) for name, row in PARAMETERS.items()]
    rows += [("algorithms", name, row) for kind in tables for name, row in kind.parameters.items()]
    return [
        lists.ListedParameter(
            id=name,
            summary=f"{row.meaning}: {row.admits()}" + "  [of algorithms]" * (of == "algorithms"),
            of=of,
            meaning=row.meaning,
            values=row.admits(),
        )
        for of, name, row in rows
    ]


def _nodes() -> list[lists.ListedNode]:
    from mmaprobe.smtmodel.units.written import NODES

    return [
        lists.ListedNode(
            id=row.name,
            summary=f"{row.written}  {row.meaning}",
            written=row.written,
            meaning=row.meaning,
            options=[
                lists.ListedOption(name=one.name, meaning=one.meaning, values=one.values, default=one.default)
                for one in row.options
            ],
            example=row.file,
        )
        for row in NODES.values()
    ]


def _format_summary(fmt: Format) -> str:
    if fmt.is_integer:
        return f"{fmt.width} bits: {'' if fmt.signed else 'unsigned '}integers"
    ends = {"highest": fmt.width - fmt.field_width - int(fmt.signed), "lowest": fmt.padding}
    unread = [f"; {counted(count, f'{which} bit')} not read" for which, count in ends.items() if count]
    return f"{fmt.width} bits: exponent {fmt.exponent}, fraction {fmt.fraction}, bias {fmt.bias}{''.join(unread)}"


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


KINDS: Mapping[str, Callable[[], Sequence[lists.ListedThing]]] = {
    "models": _models, "hypotheses": _hypotheses, "families": _families, "parameters": _parameters, "nodes": _nodes,
    "formats": _formats, "algorithms": _algorithms, "studies": _studies, "claims": _claims, "devices": _devices,
    "plans": _plans, "gpus": _gpus,
}  # fmt: skip
