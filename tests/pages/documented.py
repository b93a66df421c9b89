"""Commands and names that the documentation mentions without running them, checked against the program's own tables."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from mmaprobe.cli.main import main
from mmaprobe.hypotheses.claim import claims_named
from mmaprobe.hypotheses.family import family_named
from mmaprobe.hypotheses.library import library, question_named
from mmaprobe.smtmodel.tables.gpus import gpu_named
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import names_plan, parse_plan_path, parse_plan_reference, parse_reference
from mmaprobe.studies.file import study_named
from tests.documentation import blocks

ARCHITECTURES = sorted({row.arch for row in INSTRUCTIONS.values()} | {"ieee"}, key=len, reverse=True)
_CHANGES = r"\w+=[\w:.-]*\w"
REFERENCE = re.compile(
    rf"(?<![\w/-])(?:{'|'.join(ARCHITECTURES)})/[a-z0-9_]+/[a-z0-9_.-]*[a-z0-9](?:/c[0-9+()]+[0-9)])?(?:@{_CHANGES}(?:,{_CHANGES})*)?"
)
PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9_]*(@.*)?|.*(\.\.\.|[{*]).*")
FILE = re.compile(r".*\.(yaml|jsonl?|gz|npy|html)")
OPERATORS = {"|", "||", "&&", ";", "&"}


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def mentioned(page: Path) -> Iterator[tuple[list[str], bool]]:
    """The arguments of every mmaprobe command of a page that is not run, and whether it may be a fragment."""
    for block in blocks(page):
        if block.language in ("sh", ""):
            for line in block.text.replace("\\\n", " ").splitlines():
                for words in _simple_commands(line):
                    yield words, False
    for span in re.findall(r"`([^`]+)`", prose(page)):
        for words in _simple_commands(" ".join(span.split())):
            yield words, True


def _simple_commands(line: str) -> Iterator[list[str]]:
    """The arguments of every mmaprobe command of a line, and of those in its arguments (`command:mmaprobe ...`)."""
    if "mmaprobe" not in line:
        return
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word not in OPERATORS:
            words.append(word)
            continue
        for position, first in enumerate(words):
            if first.rpartition("/")[2].rpartition(":")[2] == "mmaprobe" and not _installs(words[:position]):
                yield _without_redirection(words[position + 1 :])
                break
        for argument in words:
            if " " in argument:
                yield from _simple_commands(argument)
        words = []


def _installs(before: list[str]) -> bool:
    return "install" in before or "git" in before or "cd" in before


def _without_redirection(words: list[str]) -> list[str]:
    cut = [position for position, word in enumerate(words) if word in ("<", ">", ">>")]
    return words[: cut[0]] if cut else words


def check_command(arguments: list[str], fragment: bool) -> None:
    """Raises click.UsageError or MmaprobeError for a command, an option or a name that there is not. A fragment may
    lack arguments."""
    words = list(arguments)
    while words and words[0] in ("-q", "--quiet", "-v", "--verbose"):
        words.pop(0)
    if not words or PLACEHOLDER.fullmatch(words[0]) or words[0] in ("-h", "--help", "--version"):
        return
    command = main.commands.get(words[0])
    if command is None:
        raise click.UsageError(f"no such command {words[0]!r}")
    try:
        context = command.make_context(words[0], words[1:])
    except click.MissingParameter:
        if not fragment:
            raise
        return
    except click.exceptions.Exit:  # --help
        return
    for parameter in command.params:
        check = CHECKS.get(f"{command.name} {parameter.name}") or CHECKS.get(str(parameter.name))
        if check is not None:
            given = context.params[str(parameter.name)]
            for value in given if isinstance(given, tuple) else (given,):
                if value and not PLACEHOLDER.fullmatch(value) and not FILE.fullmatch(value):
                    check(value)


def _question(name: str) -> None:
    if "/" in name.partition("@")[0]:
        parse_reference(name)
    elif name not in library():
        question_named(name)


def _device(name: str) -> None:
    kind, colon, rest = name.partition(":")
    if not colon or kind not in ("model", "command", "plain", "python", "recorded", "rtl", "cuda", "hip", "cpu"):
        raise click.UsageError(f"{name!r} is not a device")
    if kind == "model":
        parse_reference(rest)


def _servable(name: str) -> None:
    if not name.startswith("cuda:"):
        parse_reference(name)


def _model(name: str) -> None:
    if name == "plan:NAME" or name.startswith("rtl:"):
        return
    if names_plan(name):
        parse_plan_reference(name)
    else:
        parse_reference(name)


def _subject(name: str) -> None:
    if name not in ARCHITECTURES and gpu_named(name) is None:
        _model(name)


#: what an argument or option names, by its parameter; of one command alone where two words stand
CHECKS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("model", "models", "other", "target", "reference"), _model), "simulate plan": parse_plan_path,
    "family": family_named, "device_name": _device, "subjects": _subject, "study study": study_named,
    "distinguish names": _question, "verify names": claims_named, "compare names": _device, "device model": _servable,
}  # fmt: skip
