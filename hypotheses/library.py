"""The hypotheses shipped with the package, and hypotheses in files given by path."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from mmaprobe.hypotheses.schema import Question, build_question, retarget
from mmaprobe.smtmodel.base.errors import UnknownNameError
from mmaprobe.smtmodel.base.files import names_file
from mmaprobe.smtmodel.base.yamlfile import YamlFile, read_file, read_yaml
from mmaprobe.smtmodel.tables.gpus import gpu_named, gpus_of
from mmaprobe.smtmodel.tables.reference import parse_reference


def yaml_files(folder: Traversable) -> list[Traversable]:
    """Every YAML file in a folder and its subfolders."""
    found = []
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        if entry.is_dir():
            found.extend(yaml_files(entry))
        elif entry.name.endswith((".yaml", ".yml")):
            found.append(entry)
    return found


@cache
def _shipped() -> dict[str, tuple[YamlFile, Question]]:
    """Every shipped file with its question, by id, in the order of the files."""
    found = {}
    for entry in yaml_files(files("mmaprobe.hypotheses") / "pairs"):
        file = read_yaml(entry.read_text(encoding="utf-8"), str(entry))
        question = build_question(file)
        found[question.id] = file, question
    return found


@cache
def library() -> dict[str, Question]:
    """Every shipped question by id, in the order of the files."""
    return {name: question for name, (_, question) in _shipped().items()}


def question_named(name: str, model: str | None = None) -> Question:
    """A question by id, or from a file by its path, about its own model or about another one.

    `ID@MODEL` is the question ID re-targeted to MODEL; vectors name re-targeted questions in this way. Raises
    UnknownNameError, InputError, and the errors of `retarget`.
    """
    plain, at, target = name.partition("@")
    if at and model is None and plain in _shipped():
        return retarget(_shipped()[plain][0], target)
    if name in _shipped():
        file, question = _shipped()[name]
        return question if model is None else retarget(file, model)
    if names_file(name):
        file = read_yaml(read_file(Path(name)), name)
        return build_question(file) if model is None else retarget(file, model)
    if gpu_named(name) or gpus_of(name.lower()):
        parse_reference(name)  # its error says why a GPU or an architecture is not a model
    raise UnknownNameError("hypothesis", name, library(), hint=" (`mmaprobe list hypotheses` shows all)")
