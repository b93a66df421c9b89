"""Plan files, shipped and of users. NAME in plan:NAME is the path of a shipped file below smtmodel/plans/library."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from mmaprobe.smtmodel.base.errors import InputError, UnknownNameError
from mmaprobe.smtmodel.base.files import is_file, names_below
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.plans.multiword import SCHEMES
from mmaprobe.smtmodel.plans.plan import Plan

FOLDER = Path(__file__).parent / "library"
_FILE = re.compile(r"(?P<plan>plan:)?(?P<path>.+\.(?:yaml|fpcore))(?P<rest>@.*)?")
_reading: list[Path] = []  # plan files that are being read: a unit may be a plan at a given K


@cache
def plans() -> tuple[str, ...]:
    """The names of all shipped plans."""
    return names_below(FOLDER)


def plan_named(name: str, model_of: Callable[[str], Model]) -> Plan:
    """A shipped plan, or the plan of a file by its path (which ends in .yaml). Raises UnknownNameError or
    InputError."""
    if name.endswith(".yaml"):
        return read_plan(Path(name), model_of)
    if name not in plans():
        raise UnknownNameError("plan", name, (*plans(), *SCHEMES), hint=" (`mmaprobe list plans` shows all)")
    return _shipped(name, model_of)


@cache
def _shipped(name: str, model_of: Callable[[str], Model]) -> Plan:
    return read_plan(FOLDER / f"{name}.yaml", model_of)


def beside(folder: Path, reference: str) -> str:
    """A reference that stands in a file of a folder: if the reference has the path of a file below this folder, the
    path then begins with the folder."""
    match = _FILE.fullmatch(reference.strip())
    if match is None or not is_file(str(folder / match["path"])):
        return reference
    return f"{match['plan'] or ''}{folder / match['path']}{match['rest'] or ''}"


def read_plan(path: Path, model_of: Callable[[str], Model]) -> Plan:
    """The plan in a file. Raises InputError (with file, line, key and column) for a file that is not a plan, and for a
    plan that is one of its own units."""
    from mmaprobe.smtmodel.base.yamlfile import read_file
    from mmaprobe.smtmodel.plans.planfile import parse_plan  # here: a model of the tables needs no YAML

    text, whole = read_file(path), path.resolve()
    if whole in _reading:
        raise InputError("this plan is among its own units", str(path))
    _reading.append(whole)
    try:
        return parse_plan(text, str(path), lambda reference: model_of(beside(path.parent, reference)), whole=True)
    finally:
        _reading.remove(whole)
