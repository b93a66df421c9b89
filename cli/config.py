"""Defaults of options from a file, and the options that hold for every command."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from smtmodel.errors import InputError, UnknownNameError

ENVIRONMENT = "MMAPROBE_CONFIG"


def config_path() -> Path | None:
    """The file named by MMAPROBE_CONFIG (empty: none), else config.toml in the user's configuration folder."""
    named = os.environ.get(ENVIRONMENT)
    if named is not None:
        return Path(named) if named else None
    base = os.environ.get("XDG_CONFIG_HOME")
    try:
        path = (Path(base) if base else Path.home() / ".config") / "mmaprobe" / "config.toml"
    except RuntimeError:
        return None
    return path if path.is_file() else None


def load_defaults(group: click.Group, path: Path) -> dict[str, dict[str, Any]]:
    """The defaults of each command's options: those at the top of the file hold for every command that has the option,
    those under [COMMAND] for that one. Raises InputError with file, line and key."""
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not TOML: {error}", str(path)) from None
    defaults: dict[str, dict[str, Any]] = {name: {} for name in group.commands}
    for table, key, value in _entries(content):
        try:
            for option, command in _meant(group, table, key):
                option.type_cast_value(click.Context(group.commands[command]), value)
                defaults[command][str(option.name)] = value
        except (UnknownNameError, click.BadParameter, TypeError) as error:
            wrong = error.message if isinstance(error, click.BadParameter) else str(error)
            raise InputError(wrong, str(path), _line(text, table, key), key or table) from None
    return defaults


def _entries(content: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Table ("" at the top), key and value; a table begins with an entry of its own that has no key."""
    for name, given in content.items():
        if isinstance(given, dict):
            yield name, "", None
            yield from ((name, key, value) for key, value in given.items())
        else:
            yield "", name, given


def _meant(group: click.Group, table: str, key: str) -> list[tuple[click.Option, str]]:
    """The options that an entry is about, and their commands. Raises UnknownNameError."""
    if table and table not in group.commands:
        raise UnknownNameError("command", table, group.commands)
    known = {name: _options(command) for name, command in group.commands.items() if table in ("", name)}
    if key and not any(key in options for options in known.values()):
        of = f" (`mmaprobe {table} --help` shows all)" if table else ""
        raise UnknownNameError("option", key, {name for options in known.values() for name in options}, of)
    return [(options[key], name) for name, options in known.items() if key in options]


def _line(text: str, table: str, key: str) -> int | None:
    """The line on which an entry is written, or a table begins; None where it is spelt in another way."""
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
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
