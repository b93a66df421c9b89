"""The library shipped with the package, and files given by path."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from hypotheses.schema import Question, build_question
from hypotheses.yamlfile import read_file, read_yaml
from smtmodel.errors import UnknownNameError


def _yaml_files(folder: Traversable) -> list[Traversable]:
    found = []
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        if entry.is_dir():
            found.extend(_yaml_files(entry))
        elif entry.name.endswith((".yaml", ".yml")):
            found.append(entry)
    return found


@cache
def library() -> dict[str, Question]:
    """Every shipped question by id, in the order of the files."""
    questions = {}
    for entry in _yaml_files(files("hypotheses") / "pairs"):
        question = build_question(read_yaml(entry.read_text(encoding="utf-8"), str(entry)))
        questions[question.id] = question
    return questions


def is_file(name: str) -> bool:
    """Whether there is a file of that name; no name is too long to ask."""
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def question_named(name: str) -> Question:
    """A question by id, or from a file by its path. Raises UnknownNameError or InputError."""
    if name in library():
        return library()[name]
    if name.endswith((".yaml", ".yml")) or "/" in name or is_file(name):
        return build_question(read_yaml(read_file(Path(name)), name))
    raise UnknownNameError("hypothesis", name, library(), hint=" (`mmaprobe list hypotheses` shows all)")
