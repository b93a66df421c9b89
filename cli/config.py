"""Defaults of options from a file, and the options that all commands have.

click takes defaults as a mapping; reading them from a file, and naming the line of an unknown key, is done here.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from mmaprobe.smtmodel.base.errors import InputError, UnknownNameError
from mmaprobe.smtmodel.base.files import NOT_UTF8, check_utf8

ENVIRONMENT = "MMAPROBE_CONFIG"


def config_path() -> Path | None:
    """The file named by MMAPROBE_CONFIG (None if it is empty), else config.toml in the user's configuration folder."""
    named = os.environ.get(ENVIRONMENT)
    if named is not None:
        return Path(named) if named else None
    base = os.environ.get("XDG_CONFIG_HOME")
    try:
        path = (Path(base) if base else Path.home() / ".config") / "mmaprobe" / "config.toml"
    except RuntimeError:
        return None
    return path if path.is_file() else None


def load_defaults(group: click.Group, path: Path, name: str) -> dict[str, Any]:
    """The defaults of the options of the command `name`. An entry at the top of the file holds for every command that
    has the option, an entry in a table [COMMAND] for that command. Raises InputError, with file, line and key, for an
    entry that names no option of any command (at the top) or of its command (in a table)."""
    try:
        text = check_utf8(path.read_text(encoding="utf-8", errors=NOT_UTF8), str(path))
        content = tomllib.loads(text)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", str(path)) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not TOML: {error}", str(path)) from None
    defaults: dict[str, Any] = {}
    for table, key, value in _entries(content):
        try:
            if (unknown := _entry_option(group, name, table, key)) is not None:
                command, option = unknown
                if isinstance(option.type, click.types.BoolParamType) and not isinstance(value, bool):
                    raise ValueError(f"{value!r} is not a value of this option: true or false, without quotes")
                option.type_cast_value(click.Context(group.commands[command]), value)
                if command == name:
                    defaults[str(option.name)] = value
        except (UnknownNameError, click.BadParameter, TypeError, ValueError, AttributeError) as error:
            wrong = error.message if isinstance(error, click.BadParameter) else str(error)
            if isinstance(error, (TypeError, AttributeError)):  # a conversion's errors for a value of another type
                wrong = f"{value!r} is not a value of this option; text is in quotes"
            raise InputError(wrong, str(path), _line(text, table, key), key or table) from None
    return defaults


def _entries(content: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """(table, key, value) of each entry; the table is "" at the top. The beginning of a table is an entry with an empty
    key."""
    for name, given in content.items():
        if isinstance(given, dict):
            yield name, "", None
            yield from ((name, key, value) for key, value in given.items())
        else:
            yield "", name, given


def _entry_option(group: click.Group, name: str, table: str, key: str) -> tuple[str, click.Option] | None:
    """The command and the option that an entry sets: the command of its table; for an entry at the top of the file, the
    command `name` if it has the option, else the first command with the option. None for the beginning of a table.
    Raises UnknownNameError."""
    if table and table not in group.commands:
        raise UnknownNameError("command", table, group.commands)
    if not key:
        return None
    known: set[str] = set()
    for command in [table] if table else [name, *group.commands]:  # `name` first: looking up a command imports it
        options = _options(group.commands[command])
        if key in options:
            return command, options[key]
        known.update(options)
    raise UnknownNameError("option", key, known, f" (`mmaprobe {table} --help` shows all)" if table else "")


def _line(text: str, table: str, key: str) -> int | None:
    """The number, from 1, of the line on which an entry is written or a table begins; None where the entry has a
    spelling of TOML that is not searched for."""
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        if table and key and re.match(rf"\s*\[\s*{re.escape(table)}\s*\.\s*{re.escape(key)}\b", line):
            return number
        if header := re.match(r"\s*\[\s*([\w-]+)", line):
            section = header.group(1)
            if section == table and not key:
                return number
        elif section == table and key and re.match(rf"\s*[\"']?{re.escape(key)}\b", line):
            return number
    return None


def _options(command: click.Command) -> dict[str, click.Option]:
    """Options by their long names without the hyphens in front."""
    return {
        name[2:]: parameter
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for name in parameter.opts
        if name.startswith("--")
    }
