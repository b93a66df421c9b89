"""The man page, made of what --help says: `make man` writes docs/mmaprobe.1."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from mmaprobe.cli.completion import PROGRAM
from mmaprobe.cli.main import main
from mmaprobe.smtmodel import VERSION

LITERAL = "\b"  # click's mark before a paragraph that keeps its lines


def manual() -> str:
    """The manual page, in roff."""
    context = click.Context(main, info_name=PROGRAM, **main.context_settings)
    about, *rest = _paragraphs(main)
    lines = [f'.TH MMAPROBE 1 "" "{PROGRAM} {VERSION}" "User Commands"', ".SH NAME"]
    lines += [f"{PROGRAM} \\- {_escaped(_first(about))}", ".SH SYNOPSIS", f".B {PROGRAM}", *_usage(context)]
    lines += [".SH DESCRIPTION", *_text(rest), ".SH OPTIONS", *_options(main, context), ".SH COMMANDS"]
    for name, command in main.commands.items():
        inner = click.Context(command, info_name=name, parent=context)
        lines += [f".SS {name}", f".B {PROGRAM} {name}", *_usage(inner), *_text(_paragraphs(command))]
        lines += _options(command, inner)
    return "\n".join(lines) + "\n"


def _first(paragraph: str) -> str:
    first = " ".join(paragraph.split()).removesuffix(".")
    return first[0].lower() + first[1:]


def _usage(context: click.Context) -> list[str]:
    return [_escaped(" ".join(context.command.collect_usage_pieces(context)))]


def _paragraphs(command: click.Command) -> list[str]:
    return inspect.cleandoc(command.help or "").split("\n\n")


def _text(paragraphs: list[str]) -> Iterator[str]:
    for paragraph in paragraphs:
        marked, _, rest = paragraph.partition("\n") if paragraph.startswith(LITERAL) else ("", "", paragraph)
        yield ".PP"
        if marked or all(line.startswith(f"{PROGRAM} ") for line in rest.splitlines()):
            yield from (".nf", ".RS", *map(_escaped, rest.splitlines()), ".RE", ".fi")
        else:
            yield _escaped(" ".join(rest.split()))


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None:
            names, meaning = record
            yield from (".TP", f".B {_escaped(names)}", _escaped(" ".join(meaning.split())))


def _escaped(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text[:1] in (".", "'") else text


if __name__ == "__main__":
    print(manual(), end="")
