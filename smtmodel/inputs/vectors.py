"""Vectors in files: one JSON object on each line, with bit patterns in hexadecimal."""

from __future__ import annotations

import gzip
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError, nearest
from mmaprobe.smtmodel.base.files import NOT_UTF8, cannot_read, check_utf8
from mmaprobe.smtmodel.base.jsontext import BrokenJsonError, parse_json, quoted_value
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands, check_addend
from mmaprobe.smtmodel.operand import FURTHER, NAMED, OPERANDS, Operand
from mmaprobe.smtmodel.tables.reference import FLAGS, normalised_name, parse_reference

SCHEMA_VERSION = 1

_OWN = {"schema", "id", "model", "arch", "unit", "instruction", *NAMED, "d"}
_FURTHER = frozenset(operand.name for operand in FURTHER)
_PARTS = ("arch", "unit", "instruction")  # the keys of a row for the parts of a model's name
_KNOWN = {*_OWN, "predictions", "question", "exercises", "exercises_alone", "alt", "kind", "gpu", "provenance",
          "family", "outcomes", "reaches", FLAGS}  # fmt: skip
_TEXTS = ("exercises", "reaches")  # keys with lists of strings
_ALONE = "exercises_alone"  # the key of an object of such lists
_HEX = re.compile(r"[0-9a-fA-F]+")
_WORDS = {2: "B", 4: "H", 8: "I", 16: "Q"}  # hexadecimal digits of a pattern -> the letter of `struct`
LONGEST = 1 << 28  # the most characters of a line; a vector of ten million products has fewer
_BOM = "\ufeff"
GZIP = b"\x1f\x8b"  # the first bytes of compressed files


ModelOf = Callable[[], Model]


@dataclass(frozen=True)
class Vector:
    """An input with its result, if known. Patterns are integers; missing products at the end are zero. `d`: the result;
    `line`: the line in the file, 0 without a file; `extra`: the row's other keys, unchanged."""

    model: Model
    operands: Operands[int]
    d: int | None = None
    id: str | int | None = None
    line: int = 0
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def own_keys(self) -> dict[str, Any]:
        """The row's keys that have no meaning for mmaprobe, such as `note` and `tags`."""
        return {key: value for key, value in self.extra.items() if key not in _KNOWN}

    @property
    def predictions(self) -> dict[str, str]:
        """Hypothesis -> the result that it predicts, in hexadecimal."""
        return self.extra.get("predictions") or {}

    @property
    def question(self) -> str:
        """The question of the predictions; empty if the row names none."""
        return str(self.extra.get("question") or "")

    @property
    def exercises(self) -> list[str]:
        """The features of the datapath that the input exercises."""
        return list(self.extra.get("exercises", []))

    @property
    def exercises_in_words(self) -> str:
        """These features; of one that a single hypothesis of two exercises, also which hypothesis that is."""
        alone = self.extra.get(_ALONE, {})
        where = {feature: f" ({name})" for name, features in alone.items() for feature in features}
        return ", ".join(feature + where.get(feature, "") for feature in self.exercises)

    def to_json(self) -> dict[str, Any]:
        """The vector as the JSON object of a line."""
        model = self.model
        out: dict[str, Any] = {"schema": SCHEMA_VERSION}
        if self.id is not None:
            out["id"] = self.id
        if model.reference:
            out["model"] = model.reference
        out |= operands_json(self.operands, model)
        if self.d is not None:
            out["d"] = to_hex(self.d, model.d)
        return out | self.extra


def operands_json(operands: Operands[int], model: Model) -> dict[str, Any]:
    """The keys of an input in a row, with bit patterns in hexadecimal."""
    out: dict[str, Any] = {}
    for (name, side), row in zip(operands.sides.items(), OPERANDS, strict=True):
        if (fmt := model.formats.get(name)) is not None:
            texts = [to_hex(x, fmt) for x in side]
            out[name] = texts if row.per != "sum" else texts[0] if texts else to_hex(0, fmt)
    return out


def to_hex(pattern: int, fmt: Format) -> str:
    """A pattern in hexadecimal, with all digits of its format."""
    return f"{pattern:0{fmt.digits}x}"


def parse_pattern(text: Any, fmt: Format, key: str) -> int:
    """The pattern of a string with all hexadecimal digits of the format; zero may have any number of digits. Raises
    ValueError, naming the key."""
    if not isinstance(text, str):
        one = f', 1 is "{to_hex(fmt.one, fmt)}"' if fmt.one_exponent == fmt.bias else ""
        hint = f": numbers are bit patterns{one}" if isinstance(text, (int, float)) else ""
        raise ValueError(f"{key}: {quoted_value(text)} is not a string of hexadecimal digits{hint}")
    if not _HEX.fullmatch(text):
        hint = ": write the digits alone, without 0x" if text[:2] in ("0x", "0X") else ""
        raise ValueError(f"{key}: {text!r} is not hexadecimal{hint}")
    value = int(text, 16)
    if value >> fmt.width:
        raise ValueError(f"{key}: {text!r} is too wide: {fmt.name} has {fmt.width} bits")
    if value and len(text) != fmt.digits:  # a missing last digit would make another number
        raise ValueError(f"{key}: {text!r}: a pattern of {fmt.name} has {counted(fmt.digits, 'digit')}, zeros included")
    return value


def parse_row(
    row: Any, line: int = 0, model_of: ModelOf | None = None, *, instead: Model | None = None
) -> Vector:  # fmt: skip
    """The vector of one JSON object. `model_of` returns the model for a row that names none; `instead` is the model for
    such a row, and for a row with an unknown model. Raises ValueError or MmaprobeError, naming the field."""
    if not isinstance(row, dict):
        raise ValueError("a JSON object is needed")
    _check_keys(row)
    if (schema := row.get("schema", SCHEMA_VERSION)) != SCHEMA_VERSION or isinstance(schema, bool):
        raise ValueError(f"schema: version {quoted_value(schema)} is not known; this is version {SCHEMA_VERSION}")
    if not isinstance(row.get("id", ""), str | int | None) or isinstance(row.get("id"), bool):
        raise ValueError("id: a string or a number is needed")
    model = _model_of(row, model_of) if instead is None else _model_or(row, instead)
    sides = []
    for name, fmt in (("a", model.a), ("b", model.b)):
        if name not in row:
            raise ValueError(f"{name}: this field is missing")
        items = row[name]
        if not isinstance(items, list) or not items:
            raise ValueError(f"{name}: a list of at least one bit pattern is needed")
        if len(items) > model.length:
            has = f"{model.reference or 'the model'} has {counted(model.length, 'product')}"
            raise ValueError(f"{name}: {len(items)} elements, but {has}")
        sides.append(_patterns(items, fmt, name))
    if len(sides[0]) != len(sides[1]):
        raise ValueError(f"b: {len(sides[1])} elements, but a has {len(sides[0])}")
    if "c" not in row and model.addend:
        raise ValueError("c: this field is missing")
    c = parse_pattern(row["c"], model.c, "c") if "c" in row else 0
    check_addend(model, c != 0, instead=f"write {to_hex(0, model.c)}, which is +0")
    d = None if row.get("d") is None else parse_pattern(row["d"], model.d, "d")
    if not isinstance(row.get("predictions", {}), dict):
        raise ValueError("predictions: an object of hypotheses and bit patterns is needed")
    for name, text in row.get("predictions", {}).items():
        if not isinstance(text, str) or not _HEX.fullmatch(text):
            raise ValueError(f"predictions: {name}: {quoted_value(text)} is not a string of hexadecimal digits")
    _check_texts(row)
    extra = {key: value for key, value in row.items() if key not in _OWN or (key == "model" and model is instead)}
    plain = _FURTHER.isdisjoint(row) and _FURTHER.isdisjoint(model.formats)  # most rows of most files
    rest = () if plain else tuple(_further_operand(row, operand, model) for operand in FURTHER)
    operands = Operands(sides[0], sides[1], c, rest)
    return Vector(model, operands, d, row.get("id"), line, extra)


def vector_of(row: dict[str, Any]) -> Vector:
    """The vector of a JSON object, without its unknown keys. Raises ValueError or MmaprobeError."""
    return parse_row({key: value for key, value in row.items() if key in _KNOWN})


def _check_keys(row: dict[str, Any]) -> None:
    """Raises ValueError for an unknown key that is nearly the name of a missing key."""
    if row.keys() <= _KNOWN:
        return
    missing = frozenset(_KNOWN - row.keys())
    for key in row.keys() - _KNOWN:
        if near := _probable_key(key, missing):
            raise ValueError(f"{key}: unknown field; did you mean {near!r}?")


@lru_cache(256)  # most rows of a file have the same keys
def _probable_key(key: str, missing: frozenset[str]) -> str | None:
    return nearest(key.lower(), sorted(missing), cutoff=0.75)


def _check_texts(row: dict[str, Any]) -> None:
    """Raises ValueError for values of another type under `_TEXTS` and `_ALONE`."""
    for key in _TEXTS:
        if key in row and not _are_texts(row[key]):
            raise ValueError(f"{key}: a list of strings is needed")
    alone = row.get(_ALONE, {})
    if not isinstance(alone, dict) or not all(map(_are_texts, alone.values())):
        raise ValueError(f"{_ALONE}: an object of lists of strings is needed")


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _further_operand(row: dict[str, Any], operand: Operand, model: Model) -> tuple[int, ...]:
    name, items, fmt = operand.name, row.get(operand.name), model.formats.get(operand.name)
    if fmt is None:
        if items:
            raise ValueError(f"{name}: {model.reference} takes no {operand.called}")
        return ()
    if operand.per == "sum":
        if name not in row:
            raise ValueError(f"{name}: this field is missing")
        return (parse_pattern(items, fmt, name),)
    count = operand.count(model.length, model.scales)
    if not isinstance(items, list) or len(items) != count:
        raise ValueError(f"{name}: {model.reference} needs {count} {operand.called}")
    return _patterns(items, fmt, name)


def _patterns(items: list[Any], fmt: Format, name: str) -> tuple[int, ...]:
    try:  # all at once; if this fails, each alone, for a message with the element's index
        if (word := _WORDS.get(fmt.digits)) and set(map(len, items)) == {fmt.digits}:
            values = struct.unpack(f">{len(items)}{word}", bytes.fromhex("".join(items)))
            if max(values) >> fmt.width == 0:
                return values
    except (TypeError, ValueError, struct.error):
        pass
    return tuple(parse_pattern(item, fmt, f"{name}[{k}]") for k, item in enumerate(items))


def _model_of(row: dict[str, Any], model_of: ModelOf | None) -> Model:
    for key in ("model", *_PARTS):
        if key in row and not isinstance(row[key], str):
            raise ValueError(f"{key}: {quoted_value(row[key])} is not a string")
    if "model" in row:
        _check_alike(row)
        return _model_named("model", row["model"])
    missing = [key for key in _PARTS if key not in row]
    if len(missing) == 3 and model_of is not None:
        return model_of()
    if len(missing) == 3:
        raise ValueError("model: this field is missing: name the instruction in the row, or for all rows by --model")
    if missing:
        raise ValueError(f"{missing[0]}: this field is missing (or give `model`, a model reference)")
    return _model_named("instruction", normalised_name(row["arch"], row["unit"], row["instruction"]))


def _check_alike(row: dict[str, Any]) -> None:
    """Raises ValueError if arch, unit or instruction contradict `model`, since only `model` is read."""
    if row.keys().isdisjoint(_PARTS):
        return
    base = row["model"].partition("@")[0].strip().lower()
    for key, part in zip(_PARTS, base.split("/", 2), strict=False):
        if key in row and normalised_name("", "", row[key])[2:] not in (part, base):
            raise ValueError(f"{key}: {row[key]!r}, but the row's model is {row['model']}: leave one of them out")


def _model_named(key: str, reference: str) -> Model:
    try:
        return parse_reference(reference)
    except MmaprobeError as error:
        raise InputError(str(error), key=key) from None


def _model_or(row: dict[str, Any], instead: Model) -> Model:
    try:
        return _model_of(row, lambda: instead)
    except (ValueError, MmaprobeError):
        return instead


def _is_gzip(path: Path) -> bool:
    """Whether a file is a gzip file: by its first bytes, or by its name alone if it cannot be read twice."""
    if path.suffix == ".gz" or not path.is_file():
        return path.suffix == ".gz"
    with path.open("rb") as stream:
        return stream.read(len(GZIP)) == GZIP


def open_text(path: Path) -> IO[str]:
    """A stream of a text file, or of a gzip file of text, for `check_utf8`. Raises InputError."""
    try:
        if _is_gzip(path):
            return gzip.open(path, "rt", encoding="utf-8", errors=NOT_UTF8)
        return path.open(encoding="utf-8", errors=NOT_UTF8)
    except OSError as error:
        raise cannot_read(error, path) from None


def lines_of(stream: IO[str], name: str) -> Iterator[str]:
    """The lines of a file. Raises InputError for a line of more than LONGEST characters, before memory runs out."""
    number = 0
    while line := stream.readline(LONGEST + 1):
        number += 1
        if len(line) > LONGEST:
            raise InputError(f"a line of more than {LONGEST:,} characters", name, number)
        yield line


def read_vectors(
    lines: Iterable[str], name: str, model_of: ModelOf | None = None, gpu: str = "", *, instead: Model | None = None
) -> Iterator[Vector]:
    """The vectors of a file, one at a time. `model_of` and `instead` as of `parse_row`; `gpu`: rows of other GPUs are
    skipped. Raises InputError with file, line and field at the first bad row, for an id that an earlier row has, and
    for a file without vectors."""
    number = count = 0
    places: dict[str | int, int] = {}
    try:
        for number, text in enumerate(lines, start=1):
            check_utf8(text, name, number)
            if number == 1:
                text = text.removeprefix(_BOM)
            if not text.strip():
                continue
            count += 1
            try:
                row = parse_json(text)
                if gpu and isinstance(row, dict) and row.get("gpu") != gpu:
                    continue
                vector = parse_row(row, number, model_of, instead=instead)
                if vector.id is not None and places.setdefault(vector.id, number) != number:
                    raise ValueError(f"id: {vector.id!r} is the id of line {places[vector.id]} too")
                yield vector
            except (ValueError, MmaprobeError) as error:
                other = "; vectors are JSON objects, one a line" if isinstance(error, BrokenJsonError) else ""
                raise InputError(f"{error}{other}", name, number) from None
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read: {why}", name, number + 1) from None
    if not count:
        raise InputError("the file has no vector", name)
