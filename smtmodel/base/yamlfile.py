"""YAML with line numbers: every error names file, line and key.

PyYAML is used, and not ruamel.yaml: both know the line of a node, and both leave the limit on expanded aliases and the
keys of pydantic's errors to this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from mmaprobe.smtmodel.base.errors import InputError, ParameterError, UnknownNameError, nearest
from mmaprobe.smtmodel.base.files import INPUTS, NOT_UTF8, cannot_read, check_utf8
from mmaprobe.smtmodel.base.jsontext import plain_reason

Key = tuple[str | int, ...]
MOST_CHARACTERS, MOST_VALUES = 1_000_000, 20_000  # of a file; with aliases a short file can have endless values
MOST_DEPTH = 500  # of a document that libyaml gets, whose recursion has no limit of its own
STANDARD = "tag:yaml.org,2002:"
#: kinds of values that a tag may name, and how messages describe such a value
SCALARS = {
    "str": "text", "int": "a whole number", "float": "a number", "bool": "true or false", "null": "empty",
    "timestamp": "a date", "binary": "text in base64", "merge": "<<", "value": "=",
}  # fmt: skip
#: whole numbers. YAML 1.1 allows others, which programs read differently: 010 (which is 8), 1_0 and 1:10
_WHOLE = re.compile("[-+]?(0|[1-9][0-9]*|0x[0-9a-fA-F]+)")
#: how messages of the parser begin, and what the user is told then
SYNTAX = {
    "mapping values are not allowed": "a second colon on a line, or a line indented deeper than the one above it; "
    "text with a colon is in quotes",
    "found character '\\t'": "a tab; lines are indented with spaces",
    "found character": "text that begins with {name} must be in quotes",
    "expected ',' or ']'": "[ without its ], or a comma is missing",
    "expected ',' or '}'": "{{ without its }}, or a comma is missing",
    "found unexpected end of stream": "a quotation mark without its second",
    "but found another document": "a second document begins (---); a file holds one",
    "found undefined alias": "an alias, *{name}, without an anchor, &{name}, above it",
    "found undefined tag handle": "unknown tag {name}: write the value without it",
    "found unknown escape character": "\\{name} is not known in double quotes; single quotes keep it",
    "second occurrence": "an anchor (&) that is given twice",
    "sequence entries are not allowed": "a list item (-) on the line of its key; it begins on the next line",
    "could not find expected ':'": "a line without a colon, or text that goes on outside quotes",
    "expected <block end>": "a line that is indented neither like its neighbours nor like the key they belong to",
    "expected alphabetic or numeric": "text that begins with & or * must be in quotes",
    "expected the node content": "a value is missing before {name}",
    "expected '<document start>'": "a line indented less than the first, or a bracket too many",
}
#: a key that one kind of file alone has -> the kind, and where it is read
KINDS = {
    "claim": "a claim, which `mmaprobe verify` reads",
    "property": "a claim, which `mmaprobe verify` reads",
    "hypotheses": "a question, which `mmaprobe distinguish` reads",
    "candidates": "a family, which `mmaprobe identify` and `mmaprobe separate` read",
    "curves": "a study, which `mmaprobe study` reads",
    "rules": "rules by hand, which `mmaprobe simulate --plan` reads",
    "plan": "a plan, which `mmaprobe explain` and `mmaprobe simulate --plan` read",
    "unit": "a unit, which commands read in the place of a MODEL",
}
Model = TypeVar("Model", bound=BaseModel)


class Strict(BaseModel):
    """The base of the schemas of files: unknown keys are errors, and what is read is immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass
class YamlFile:
    """A parsed file: plain data, and the line of every key and list item."""

    name: str
    data: Any
    lines: dict[Key, int] = field(default_factory=dict)

    def error(self, key: Iterable[str | int], message: str) -> InputError:
        """An error at a key, or at the nearest of its parents that is in the file."""
        return InputError(message, self.name, *self._at(key))

    def place(self, key: Iterable[str | int]) -> str:
        """File, line and key, as an error begins with them."""
        line, name = self._at(key)
        return f"{self.name}:{line}: {name}"

    def _at(self, key: Iterable[str | int]) -> tuple[int, str | None]:
        path = tuple(key)
        line = next((self.lines[path[:n]] for n in range(len(path), -1, -1) if path[:n] in self.lines), 1)
        return line, ".".join(str(part) for part in path) or None


def read_yaml(text: str, name: str) -> YamlFile:
    """Parse one document. Raises InputError for broken YAML, repeated keys, and files beyond the limits above."""
    if len(text) > MOST_CHARACTERS:
        raise InputError(f"more than {MOST_CHARACTERS:,} characters", name)
    try:
        root = _compose(text)
    except yaml.MarkedYAMLError as error:
        unclosed = str(error.problem).startswith("found unexpected end")
        mark = (error.context_mark if unclosed else None) or error.problem_mark or error.context_mark
        raise InputError(f"not YAML: {_syntax(error)}", name, mark.line + 1 if mark else None) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, int(error.position)) + 1
        raise InputError(f"not YAML: U+{error.character:04X}, a character that no text has", name, line) from None
    except yaml.YAMLError as error:
        raise InputError(f"not YAML: {plain_reason(error)}", name) from None
    except RecursionError:
        raise InputError("not YAML: nested too deep", name) from None
    if root is None:
        raise InputError("the file is empty", name, 1)
    file = YamlFile(name, None)
    try:
        file.data = _construct(root, (), file)
    except RecursionError:
        raise InputError("not YAML: nested too deep", name) from None
    return file


def _syntax(error: yaml.MarkedYAMLError) -> str:
    """What is wrong, for whoever wrote the file; the parser's own message where SYNTAX has no other."""
    problem = str(error.problem)
    name = problem.split("'")[1] if problem.count("'") > 1 else ""
    return next((words.format(name=name) for start, words in SYNTAX.items() if problem.startswith(start)), problem)


def _compose(text: str) -> yaml.Node | None:
    """The tree of a document, by libyaml where PyYAML was built with it: a tenth of the time. A document that libyaml
    refuses is read again by PyYAML's own parser, which has better messages. PyYAML's parser also reads a document that
    may be nested deeper than MOST_DEPTH, which could crash libyaml: blocks nest at most as deep as the longest line is
    long, flows at most as deep as there are brackets."""
    deepest = max(map(len, text.splitlines()), default=0) + text.count("[") + text.count("{")
    if yaml.__with_libyaml__ and deepest < MOST_DEPTH:
        with suppress(yaml.YAMLError, UnicodeEncodeError):
            return yaml.compose(text, Loader=yaml.CSafeLoader)
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _construct(node: yaml.Node, path: Key, file: YamlFile, above: tuple[yaml.Node, ...] = ()) -> Any:
    line = node.start_mark.line + 1
    file.lines.setdefault(path, line)
    if len(file.lines) > MOST_VALUES:
        raise InputError(f"more than {MOST_VALUES:,} values, every use of an alias counted", file.name, line)
    if any(node is other for other in above):
        raise InputError("an alias that contains itself", file.name, line)
    above = (*above, node)
    _check_tag(node, file)
    if isinstance(node, yaml.MappingNode):
        out: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise InputError("a key must be a single word", file.name, line)
            _check_tag(key_node, file)
            key = str(key_node.value)
            if key in out:
                raise InputError(f"repeated key (first on line {file.lines[(*path, key)]})", file.name, line, key)
            file.lines[(*path, key)] = line
            out[key] = _construct(value_node, (*path, key), file, above)
        return out
    if isinstance(node, yaml.SequenceNode):
        return [_construct(child, (*path, index), file, above) for index, child in enumerate(node.value)]
    plain = isinstance(node, yaml.ScalarNode) and not node.style
    if plain and node.tag == f"{STANDARD}int" and not _WHOLE.fullmatch(node.value):
        written = "decimal digits, without zeros before them, or 0x and hexadecimal ones"
        why = f"{node.value!r}: a whole number is written in {written}; put text in quotes"
        raise InputError(f"not a value: {why}", file.name, line)
    try:
        return yaml.constructor.SafeConstructor().construct_object(node)
    except (yaml.YAMLError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
        # PyYAML's constructors let errors of their own code through: an IndexError for `!!int ""`
        kind = SCALARS[node.tag.removeprefix(STANDARD)]
        reason = plain_reason(error) if "digits" in plain_reason(error) else f"{node.value!r} is not {kind}"
        raise InputError(f"not a value: {reason}; put text in quotes", file.name, line) from None


def _check_tag(node: yaml.Node, file: YamlFile) -> None:
    """A tag names the kind of a value; PyYAML knows more kinds than SCALARS, and some of them run code."""
    own = SCALARS if isinstance(node, yaml.ScalarNode) else ("map" if isinstance(node, yaml.MappingNode) else "seq",)
    if node.tag.removeprefix(STANDARD) not in own:
        tag = "!!" + node.tag.removeprefix(STANDARD) if node.tag.startswith(STANDARD) else node.tag
        raise InputError(f"unknown tag {tag}: write the value without it", file.name, node.start_mark.line + 1)


def validate(file: YamlFile, schema: type[Model]) -> Model:
    """The file's data as a schema's model; the first error as an InputError."""
    if not isinstance(file.data, dict):
        raise InputError("the file must hold keys and values", file.name, 1)
    try:
        return schema.model_validate(file.data)
    except ValidationError as problem:
        # an unknown key explains a missing key
        errors = problem.errors()
        unknown = [error for error in errors if error["type"] == "extra_forbidden"]
        for error in unknown:
            name = ".".join(map(str, error["loc"]))
            if name in KINDS and nearest(name, _fields_at(schema, ())) is None:
                raise file.error(error["loc"], f"unknown key: the file is {KINDS[name]}") from None
        first = next(iter(unknown), errors[0])
        path = first["loc"] if first["type"] == "missing" else _in_data(first["loc"], file.data)
        missing = [str(error["loc"][-1]) for error in errors
                   if error["type"] == first["type"] == "missing" and error["loc"][:-1] == path[:-1]]  # fmt: skip
        if len(missing) > 1:
            raise file.error(path[:-1], f"these keys are missing: {', '.join(missing)}") from None
        raise file.error(path, _message(first["type"], first["msg"], path, schema)) from None


def _in_data(path: Key, data: Any) -> Key:
    """The beginning of an error's path that is in the data: pydantic adds names of possible types."""
    for depth, part in enumerate(path):
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return path[:depth]
    return path


#: pydantic's kinds of errors about types, and what the user is told
_WANTED = {
    **dict.fromkeys(("dict_type", "model_type"), "keys with values are needed, {key: value}"),
    **dict.fromkeys(("list_type", "tuple_type"), "a list is needed, [value, value]"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number is needed"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number is needed"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false is needed"),
    "string_type": "text is needed; put a number, or a word such as true, in quotes",
}


def _message(kind: str, message: str, path: Key, schema: type[BaseModel]) -> str:
    if kind == "literal_error":
        return message.replace("Input should be ", "") + " is needed"
    if kind == "extra_forbidden":
        known = _fields_at(schema, path[:-1])
        near = nearest(str(path[-1]), known)
        return "unknown key" + (f"; did you mean {near!r}?" if near else f"; known: {', '.join(known)}")
    if kind == "missing":
        return "this key is missing"
    if kind == "string_type" and str(path[-1]).count(")") > str(path[-1]).count("("):
        return "a comma within { } begins a new key: write the text with the comma in quotes, or on a line of its own"
    if kind == "string_pattern_mismatch":  # only ids have a pattern
        return "an id has small letters a to z, digits, dots and hyphens, and begins with a letter or a digit"
    return _WANTED.get(kind) or message.removeprefix("Value error, ")


def _fields_at(schema: type[BaseModel], path: Key) -> list[str]:
    """The keys that a schema has at a path, through fields whose type is a schema or an optional schema."""
    current: type[BaseModel] = schema
    for part in path:
        info = current.model_fields.get(str(part))
        kinds = [] if info is None else [info.annotation, *get_args(info.annotation)]
        inner = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
        if not inner:
            return []
        current = inner[0]
    return [info.alias or name for name, info in current.model_fields.items()]


@contextmanager
def located(file: YamlFile, key: Key) -> Iterator[None]:
    """A block in which UnknownNameError and ParameterError become InputErrors at a key of a file."""
    try:
        yield
    except (UnknownNameError, ParameterError) as error:
        raise file.error(key, str(error)) from None


def read_yaml_file(path: Path | str) -> YamlFile:
    """The YAML in a file. Raises InputError."""
    return read_yaml(read_file(Path(path)), str(path))


def read_file(path: Path) -> str:
    """The text of a file. Raises InputError when there is none or it cannot be read."""
    try:
        INPUTS.add(path)
        with path.open(encoding="utf-8", errors=NOT_UTF8) as stream:
            return check_utf8(stream.read(MOST_CHARACTERS + 1), str(path))
    except OSError as error:
        raise cannot_read(error, path) from None
    except ValueError:  # a null character, or half of a surrogate pair
        why = "no file can have this name"
        raise InputError(f"cannot be read: {why}", str(path)) from None
