"""Unit files, shipped and of users. A reference arch/unit/instruction is the path of a shipped file below
smtmodel/units/library."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mmaprobe.smtmodel.base.files import names_below
from mmaprobe.smtmodel.units.unit import Unit

FOLDER = Path(__file__).parent / "library"


@cache
def units() -> tuple[str, ...]:
    """The references of all shipped unit files."""
    return names_below(FOLDER)


def units_of(arch: str) -> tuple[str, ...]:
    """The references of the shipped unit files of an architecture."""
    return tuple(name for name in units() if name.partition("/")[0] == arch)


@cache
def shipped_unit(reference: str) -> Unit:
    return read_unit(FOLDER / f"{reference}.yaml")


def read_unit(path: Path) -> Unit:
    """The unit in a file. Raises InputError (with file, line, key and column) for a file that is not a unit."""
    from mmaprobe.smtmodel.base.yamlfile import read_file
    from mmaprobe.smtmodel.units.unitfile import parse_unit  # here: a model of the tables needs no YAML

    return parse_unit(read_file(path), str(path), whole=True)
