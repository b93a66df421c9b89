"""Defaults of options from a file, and the options that hold for every command."""

from __future__ import annotations

import os
import tomllib
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
    those under [COMMAND] for that one. Raises InputError, UnknownNameError."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", str(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not TOML: {error}", str(path)) from None
    known = {name: _options(command) for name, command in group.commands.items()}
    defaults: dict[str, dict[str, Any]] = {name: {} for name in known}
    shared = {key: value for key, value in content.items() if not isinstance(value, dict)}
    everywhere = {key for options in known.values() for key in options}
    for key, value in shared.items():
        if key not in everywhere:
            raise UnknownNameError("option", key, everywhere, f" (in {path})")
        for name, options in known.items():
            if key in options:
                defaults[name][options[key]] = value
    for name, table in content.items():
        if not isinstance(table, dict):
            continue
        if name not in known:
            raise UnknownNameError("command", name, known, f" (in {path})")
        for key, value in table.items():
            if key not in known[name]:
                raise UnknownNameError("option", key, known[name], f" of {name} (in {path})")
            defaults[name][known[name][key]] = value
    return defaults


def _options(command: click.Command) -> dict[str, str]:
    """Long names of options, without hyphens in front -> the names of their parameters."""
    found: dict[str, str] = {}
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            found |= {name[2:]: str(parameter.name) for name in parameter.opts if name.startswith("--")}
    return found
