"""The `list` command: what there is, one line each."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from mmaprobe.cli.choice import Choice
from mmaprobe.cli.command import Command
from mmaprobe.cli.options import JSON, print_json, refuse
from mmaprobe.smtmodel.base.errors import nearest
from mmaprobe.smtmodel.base.wording import counted, table_lines

if TYPE_CHECKING:
    from mmaprobe.documents import lists

#: the kinds of mmaprobe/listed.py, and the words of the glossary
KINDS = ("models", "hypotheses", "families", "parameters", "nodes", "formats", "algorithms", "studies", "claims",
         "devices", "plans", "gpus", "words")  # fmt: skip
#: other names of kinds: what Python's `mmaprobe.units` gives is what `list models` shows
NAMES = {"units": "models", "instructions": "models", "questions": "hypotheses"}


class KindOrGpu(Choice):
    """A kind of thing to list, or the name of a GPU or an architecture, whose models are listed."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from mmaprobe import listed
        from mmaprobe.smtmodel.tables.gpus import GPUS, gpu_named

        if value in KINDS:
            return str(value)
        for name in (str(value), f"{value}s"):
            if name in NAMES:
                return NAMES[name]
        architectures = {row.id.partition("/")[0] for row in listed.KINDS["models"]()}
        if gpu_named(str(value)):
            return str(value)
        if str(value).lower() in architectures:
            return str(value).lower()
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            gpu = "a GPU of `mmaprobe list gpus` (in quotes if its name has a space)"
            exists = value and bool(listed.matching(listed.KINDS["models"](), (str(value),)))
            hint = f" `mmaprobe list models {value}` lists the instructions with it." if exists else ""
            if "Did you mean" not in error.message:
                near = nearest(str(value), [*architectures, *(name for names in GPUS.values() for name in names)])
                hint += f" Did you mean {near!r}?" if near else ""
            self.fail(f"{error.message} Nor is it an architecture, or {gpu}.{hint}")


@click.command("list", cls=Command)
@click.argument("kind", type=KindOrGpu(KINDS), metavar="KIND|GPU|ARCH")
@click.argument("words", nargs=-1, metavar="[WORD]...")
@click.option("--all", "every", is_flag=True, help="Every line, where a terminal shows a screen of them.")
@JSON
def list_command(kind: str, words: tuple[str, ...], every: bool, as_json: bool) -> None:
    """List models, hypotheses, families, GPUs and the like. One line each; with WORDs only the lines that contain
    all of them. Of one node or algorithm, given by its name, also its options.

    KIND is models, hypotheses, families, parameters, nodes, formats, algorithms, studies, claims, devices, plans,
    gpus or words; units and instructions are models, questions hypotheses. In its place an architecture or a GPU
    (H100, "RTX 4090", MI300X) lists its models; among the words a GPU is read as its architecture, and a name of a
    format (fp8, bf8, float16, int8, mxfp4) finds what has the format.

    \b
    mmaprobe list hypotheses
    mmaprobe list models H100 e4m3
    mmaprobe list MI300X
    mmaprobe list hopper f16
    mmaprobe list nodes fused
    mmaprobe list algorithms multiword
    """
    from mmaprobe.listed import KINDS as LISTS
    from mmaprobe.listed import matching, no_match_text

    if kind not in KINDS:
        kind, words = "models", (kind, *words)
    known = LISTS[kind]() if kind in LISTS else _words()
    rows: Sequence[lists.ListedThing] = matching(known, words)
    if not rows:
        raise click.BadParameter(no_match_text(kind, words, known), param_hint="'[WORD]...'")
    named = [row for row in rows if (row.id,) == words]
    if as_json:
        refuse("a document has every row", "every")
        print_json(named if kind in DETAILED and named else rows)
        return
    if kind in DETAILED and len(named) == 1:
        click.echo("\n".join(_details(named[0])))
        return
    if kind == "devices" and not words:
        rows = _by_processor(rows)
    lines = table_lines([(row.id, row.summary) for row in rows])
    shown = len(lines) if every or not sys.stdout.isatty() else _of_a_screen(lines)
    click.echo("\n".join(lines[:shown]))
    if shown < len(lines):
        click.echo(
            f"... and {len(lines) - shown} more: --all shows them, a WORD only the lines that contain it", err=True
        )


#: kinds of rows: a single row, named alone, is shown with its options
DETAILED = ("nodes", "algorithms")


def _of_a_screen(lines: Sequence[str]) -> int:
    """The number of lines that fit on the terminal, long lines wrapped, if two rows stay free."""
    size = shutil.get_terminal_size()
    room = max(5, size.lines - 2)
    for number, line in enumerate(lines):
        room -= max(1, -(-len(line) // max(1, size.columns)))
        if room < (number + 1 < len(lines)):  # a row for the note that lines are left out
            return max(1, number)
    return len(lines)


def _details(row: Any) -> list[str]:
    """The lines about a node or an algorithm: its meaning, its options and an example."""
    from mmaprobe.documents.lists import ListedNode

    if isinstance(row, ListedNode):
        options = [(one.name, f"{one.meaning}: {one.values}", "" if one.default == "needed" else one.default)
                   for one in row.options]  # fmt: skip
        head, example = f"{row.written}: {row.meaning}", row.example.rstrip().splitlines()
        last = "A unit file with it:"
    else:
        options = [(name, meaning, row.defaults[name]) for name, meaning in row.parameters.items()]
        head = f"{row.id}: {row.summary.partition('; parameters: ')[0]}"
        last, example = (
            "As an algorithm of a claim or a study (if it multiplies, as a plan too):",
            [_example(row, options)],
        )
    lines = [head]
    for name, meaning, default in options:
        lines.append(f"  {name}: {meaning}{f' (if not given: {default})' if default else ''}")
    return [*lines, "", last, *(f"  {line}" for line in example)]


def _example(row: lists.ListedAlgorithm, options: Sequence[tuple[str, str, str]]) -> str:
    """The algorithm's name with the default of its first parameter."""
    given = [f"{name}={default}" for name, _, default in options[:1] if default]
    return f"{row.id}@{','.join(given)}" if given else row.id


def _words() -> list[lists.ListedThing]:
    from mmaprobe.cli.glossary import GLOSSARY
    from mmaprobe.documents import lists

    return [lists.ListedThing(id=word.term, summary=word.meaning) for word in GLOSSARY]


def _by_processor(rows: Sequence[Any]) -> list[lists.ListedThing]:
    """The rows of devices. The instructions of a kind of processor other than this machine's share one row."""
    from mmaprobe.documents import lists
    from mmaprobe.runner.cpu import ELSEWHERE, instructions_here

    own, listed = {row.arch for row in instructions_here()}, dict[str, lists.ListedThing]()
    for row in rows:
        if not row.arch or row.arch in own:
            listed[row.id] = row
        elif row.arch not in listed:
            names = [other.id.removeprefix("cpu:") for other in rows if other.arch == row.arch]
            many = counted(len(names), "instruction")
            summary = f"{many} ({', '.join(names)})  MISSING: {ELSEWHERE}"
            listed[row.arch] = lists.ListedThing(id=row.arch, summary=summary)
    return list(listed.values())
