"""The hypotheses shipped with the package, and hypotheses in files given by path."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from mmaprobe.hypotheses.schema import Question, build_question, retarget
from mmaprobe.smtmodel.base.errors import UnknownNameError
from mmaprobe.smtmodel.base.files import names_file
from mmaprobe.smtmodel.base.yamlfile import YamlFile, read_yaml, read_yaml_file
from mmaprobe.smtmodel.tables.gpus import gpu_named, gpus_of
from mmaprobe.smtmodel.tables.reference import parse_reference


def shipped_files(folder: str) -> Iterator[YamlFile]:
    """Every YAML file in a folder of this package, and in the folder's subfolders, in the order of their names."""
    return _files_in(files("mmaprobe.hypotheses") / folder)


def _files_in(folder: Traversable) -> Iterator[YamlFile]:
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        if entry.is_dir():
            yield from _files_in(entry)
        elif entry.name.endswith(".yaml"):
            yield read_yaml(entry.read_text(encoding="utf-8"), str(entry))


@cache
def _shipped() -> dict[str, tuple[YamlFile, Question]]:
    """Every shipped file with its question, by id, in the order of the files."""
    found = {}
    for file in shipped_files("pairs"):
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
        file = read_yaml_file(name)
        return build_question(file) if model is None else retarget(file, model)
    if gpu_named(name) or gpus_of(name.lower()):
        parse_reference(name)  # its error says why a GPU or an architecture is not a model
    raise UnknownNameError("hypothesis", name, library(), hint=" (`mmaprobe list hypotheses` shows all)")
