"""A short Markdown page for one GPU: its matrix instructions, their arithmetic in words, and the basis of each line."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from itertools import groupby

from mmaprobe.reports import basis
from mmaprobe.reports.arithmetic import LINES
from mmaprobe.reports.datasheet import Sheet, Unasked, sheets_of
from mmaprobe.smtmodel.base.progress import Pieces
from mmaprobe.smtmodel.base.wording import ranges_text
from mmaprobe.smtmodel.tables.absent import not_modelled
from mmaprobe.smtmodel.tables.gpus import GPUS, gpu_named, gpus_of
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.recordings import RECORDED
from mmaprobe.smtmodel.tables.reference import parse_reference

ARCHITECTURES = {"ada-lovelace": "Ada Lovelace", "rtx-blackwell": "RTX Blackwell"}
EVERY = "all"
STEPS = "; "  # between the number of products and the steps
SOME = "*"  # the mark of what holds for some instructions of a row
RECORDED_ON = (
    'A GPU in the column "rests on": its recorded results refute every value near the one in the column "what".'
)
LETTERS = 'The letters in the column "rests on" are:'
PARTLY = "`1*` stands for some of the instructions with number 1, `1` for all of them."


def architecture_name(arch: str) -> str:
    """The usual spelling of an architecture's name: Hopper, CDNA3."""
    return ARCHITECTURES.get(arch, arch.upper() if "dna" in arch else arch.capitalize())


def file_name(gpu: str) -> str:
    """The file name of a GPU's page: rtx-4090.md."""
    return f"{gpu.lower().replace(' ', '-')}.md"


def gpu_page(gpu: str, pieces: Pieces) -> str:
    """The page of a GPU of the table (`mmaprobe.smtmodel.tables.gpus`)."""
    named = gpu_named(gpu)
    assert named is not None, gpu
    name, arch = named
    return _page(name, arch, _sheets(arch, pieces))


def pages(pieces: Pieces) -> Mapping[str, str]:
    """The page of every GPU by file name, and an index."""
    texts = {"README.md": _index()}
    for arch, gpus in GPUS.items():
        sheets = _sheets(arch, pieces)
        texts |= {file_name(gpu): _page(gpu, arch, sheets) for gpu in gpus}
    return texts


def _sheets(arch: str, pieces: Pieces) -> Sequence[Sheet]:
    """The data sheets of an architecture: those of the table's instructions, if the table has any. (Unit files beside
    these, such as those of integers, rest on sources of their own, for which the page has no column.)"""
    sheets = sheets_of(arch, Unasked(), pieces)
    return [sheet for sheet in sheets if not _instructions(arch) or sheet.instructions[0] in INSTRUCTIONS]


def _page(gpu: str, arch: str, sheets: Sequence[Sheet]) -> str:
    others = [name for name in gpus_of(arch) if name != gpu]
    alike = f", like {_listed(others)}" if others else ""
    head = [f"# {gpu}", "", f"Architecture: {architecture_name(arch)}{alike}."]
    if not sheets:
        return "\n".join([*head, "", f"Not modelled: {not_modelled(f'{arch}/')}.", ""])
    of_files = not _instructions(arch)
    sources = {} if of_files else _sources(sheets)
    arithmetic = _lines(sheets, sources)
    lines = [
        *head, "", *_wrapped(_evidence(gpu, arch)), "",
        *_wrapped(
            f"Made by `mmaprobe datasheet {_quoted(gpu)} -o {file_name(gpu)}`. "
            "A name that ends in `.html` gives whole data sheets, "
            "with expressions, special values, proved properties and bounds of errors. "
            f"`mmaprobe list {_quoted(gpu)}` names every instruction."
        ), "",
        "## Instructions", "",
        *_table("no.", "unit", "instructions", "formats", "products", *(["rests on"] if of_files else [])),
        *(_row(number, sheet) for number, sheet in enumerate(sheets, 1)), "",
        "## Arithmetic", "",
        *([] if of_files else _legend(arithmetic, sources)),
        *_table("line", "of no.", "what", *([] if of_files else ["rests on"])),
        *arithmetic, "",
    ]  # fmt: skip
    return "\n".join(lines)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False)


def _table(*columns: str) -> list[str]:
    """The head of a Markdown table. No library writes the tables here and in benchmarks: libraries pad columns, and one
    longer cell would then change every line."""
    return [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]


def _index() -> str:
    rows = [
        f"| {architecture_name(arch)} | {', '.join(f'[{gpu}]({file_name(gpu)})' for gpu in gpus)} | {_rows_of(arch)} |"
        for arch, gpus in GPUS.items()
    ]
    text = (
        "A page for each GPU: what its matrix instructions compute, and on what each statement rests. As far as is "
        "known, GPUs of one architecture compute alike; results are recorded of some of them only: the last column has "
        "their number. [generations](../generations.md) has what changes from one architecture to the next, with an "
        "input that shows each change."
    )
    table = [*_table("architecture", "GPUs", "recorded results"), *rows]
    made = "`python -m benchmarks.gpu_pages` makes these pages."
    return "\n".join(["# GPUs", "", *_wrapped(text), "", *table, "", made, ""])


def _rows_of(arch: str) -> str:
    counts: dict[str, int] = {}
    for reference, gpus in RECORDED.items():
        if reference.startswith(f"{arch}/"):
            for gpu, rows in gpus.items():
                counts[gpu] = counts.get(gpu, 0) + rows
    if counts:
        return ", ".join(f"{gpu} {rows:,}" for gpu, rows in counts.items())
    if _instructions(arch):
        return "none"
    return "not modelled" if not_modelled(f"{arch}/") else "see its pages"


def _instructions(arch: str) -> list[str]:
    return [name for name, row in INSTRUCTIONS.items() if row.arch == arch]


def _evidence(gpu: str, arch: str) -> str:
    own = {reference: gpus[gpu] for reference, gpus in RECORDED.items() if gpu in gpus}
    every = _instructions(arch)
    known = _rows_of(arch)
    if own:
        return (
            f"Recorded on this GPU: {sum(own.values()):,} results of {len(own)} of the {len(every)} instructions; the "
            "models agree with all of them. The second table says in its last column what each line of the arithmetic "
            "rests on: results recorded here or on another GPU, a publication, or an inference."
        )
    if every and known != "none":
        return f"No result of this GPU is recorded; results of its architecture are: {known}."
    if not every:
        return (
            "The units of this architecture are files (`mmaprobe show`). The first table says what each unit rests on. "
            "Which lines of the second table its recorded results decide is not known."
        )
    return "No result of this architecture is recorded: every line is published."


def _row(number: int, sheet: Sheet) -> str:
    first, *others = sheet.instructions
    unit, name = first.split("/")[1:]
    more = f" and {len(others)} more" if others else ""
    values = {line.name: line.value for line in sheet.lines}
    formats = values["Formats"] if len(values["Formats"]) < 60 else _shortened(values["Formats"])
    scaled = f"; factors {values['Scale factors']}" if "Scale factors" in values else ""
    rests = "" if first in INSTRUCTIONS else f" {basis.of_file(parse_reference(first))} |"
    formats = formats.replace("->", "→")  # browsers break lines at a hyphen, not at an arrow
    count = values["Products"].partition(STEPS)[0]
    return f"| {number} | {unit} | `{name}`{more} | {formats}{scaled} | {count} |{rests}"


def _shortened(formats: str) -> str:
    """a * a, a * b, ... + c -> d: the pairs of many formats."""
    pairs, _, rest = formats.partition(" + ")
    sides = dict.fromkeys(side for pair in pairs.split(", ") for side in pair.split(" * "))
    return f"two of {', '.join(sides)} + {rest}"


def _sources(sheets: Sequence[Sheet]) -> dict[str, str]:
    """A letter for each publication, or ground of inference, that is the basis of a line of the arithmetic."""
    sources = dict.fromkeys(
        basis.publication_of(INSTRUCTIONS[name], parameters)
        for sheet in sheets
        for line in sheet.lines
        if (parameters := LINES.get(line.name)) is not None
        for name in sheet.instructions
        if not basis.deciders(INSTRUCTIONS[name], parameters)
    )
    return {source: chr(ord("A") + number) for number, source in enumerate(sources)}


def _legend(lines: Sequence[str], sources: Mapping[str, str]) -> list[str]:
    """The meaning of the entries in the column "rests on"."""
    rests = [line.rsplit("|", 2)[1] for line in lines]
    sentences = [RECORDED_ON] if any(text.strip() not in sources.values() for text in rests) else []
    sentences += [PARTLY] if any(SOME in text for text in rests) else []
    sentences += [LETTERS] if sources else []
    return [*(_wrapped(" ".join(sentences)) if sentences else []), *([""] if sentences else []),
            *(f"- {letter}: {source}" for source, letter in sources.items()), *([""] if sources else [])]  # fmt: skip


def _lines(sheets: Sequence[Sheet], sources: Mapping[str, str]) -> list[str]:
    """A row for each statement, with the numbers of the sheets that make it."""
    numbers_of: dict[str, dict[str, list[int]]] = {name: {} for name in LINES}
    for number, sheet in enumerate(sheets, 1):
        for line in sheet.lines:
            if line.name in LINES:
                value = line.value.partition(STEPS)[2] if line.name == "Products" else line.value
                numbers_of[line.name].setdefault(value, []).append(number)
    rows = []
    for name, values in numbers_of.items():
        for value, numbers in values.items():
            where = EVERY if len(numbers) == len(sheets) else ranges_text(numbers)
            rests = f" {_rests(name, sheets, numbers, sources)} |" if sheets[0].instructions[0] in INSTRUCTIONS else ""
            rows.append(f"| {name} | {where} | {value} |{rests}")
    return rows


def _rests(line: str, sheets: Sequence[Sheet], numbers: Sequence[int], sources: Mapping[str, str]) -> str:
    """The basis of a line: each kind of evidence once, with the numbers of its sheets; `*` if it holds only for some
    instructions of a sheet."""
    kinds: dict[str, dict[int, str]] = {}
    for number in numbers:
        marks_of = [_kind(name, LINES[line], sources) for name in sheets[number - 1].instructions]
        for kind in marks_of:
            kinds.setdefault(kind, {})[number] = "" if len(set(marks_of)) == 1 else SOME
    if len(kinds) == 1:
        return next(iter(kinds))
    ordered = sorted(kinds.items(), key=lambda item: item[0] in sources.values())
    return "; ".join(f"{_marked(marks)}: {kind}" for kind, marks in ordered)


def _kind(reference: str, parameters: Sequence[str], sources: Mapping[str, str]) -> str:
    row = INSTRUCTIONS[reference]
    gpus = basis.deciders(row, parameters)
    return ", ".join(gpus) if gpus else sources[basis.publication_of(row, parameters)]


def _marked(marks: Mapping[int, str]) -> str:
    parts: list[str] = []
    for mark, run in groupby(sorted(marks.items()), key=lambda pair: pair[1]):
        numbers = [number for number, _ in run]
        parts += [f"{number}{SOME}" for number in numbers] if mark else [ranges_text(numbers)]
    return ", ".join(parts)


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _quoted(name: str) -> str:
    return f'"{name}"' if " " in name else name
