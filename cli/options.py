"""Options and output that several commands share."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from smtmodel.errors import InputError
from smtmodel.vectors import Vector

if TYPE_CHECKING:
    from hypotheses.schema import Inputs

Command = TypeVar("Command", bound=Callable[..., Any])

JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")


def solver_options(command: Command) -> Command:
    """--solver, --timeout and --memory."""
    for option in (
        click.option(
            "--memory", type=click.IntRange(64), default=8192, show_default=True,
            help="MiB that a solver's process may use.",
        ),
        click.option(
            "--timeout", type=click.FloatRange(min=0, min_open=True), default=300.0, show_default=True,
            help="Seconds for each pair of models.",
        ),
        click.option(
            "--solver", type=click.Choice(["auto", "bitwuzla", "z3", "cvc5"]), default="auto", show_default=True,
            help="auto: all of them, the first answer counts.",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


def parse_inputs(restrictions: str) -> Inputs:
    """The restrictions of inputs that a comma-separated list names. Raises UnknownNameError."""
    from hypotheses.schema import Inputs
    from smtmodel.errors import UnknownNameError

    known = ("finite", "nonnegative", "nonzero", "normal")
    chosen = [word.strip() for word in restrictions.split(",") if word.strip()]
    for word in chosen:
        if word not in known:
            raise UnknownNameError("restriction of inputs", word, known)
    return Inputs.model_validate(dict.fromkeys(chosen, True))


def say(text: str = "") -> None:
    """Text for people: standard error, so that standard output carries data alone."""
    click.echo(text, err=True)


def print_json(document: Any) -> None:
    click.echo(json.dumps(document))


def progress(text: str) -> None:
    """A line of progress that the next one overwrites; only on a terminal."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[2K{text[:100]}\r", err=True, nl=False)


def write_vectors(vectors: Iterable[Vector], target: str | None) -> None:
    """Vectors as JSONL to a file, or to standard output for None or "-". Raises InputError."""
    lines = "".join(json.dumps(vector.to_json()) + "\n" for vector in vectors)
    if target in (None, "-"):
        click.echo(lines, nl=False)
        return
    assert target is not None
    write_text(Path(target), lines)


def write_text(path: Path, text: str) -> None:
    """Write a whole file. Raises InputError where it cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", str(path)) from None


@contextmanager
def open_input(name: str) -> Iterator[tuple[Iterable[str], str]]:
    """The lines of a vector file ("-": standard input) and its name for messages. Raises InputError."""
    from smtmodel.vectors import open_text

    if name == "-":
        yield sys.stdin, "standard input"
        return
    with open_text(Path(name)) as stream:
        yield stream, name
