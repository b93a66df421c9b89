"""Documents read back: JSON values as the classes that commands print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from mmaprobe.documents.parts import ABSENT, Input, Part, complete

_WANTED = {str: "text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}


class WrongDocumentError(ValueError):
    """A JSON value that no document has at this place. `key`: the place, such as models.0.name."""

    def __init__(self, key: str, wanted: str) -> None:
        super().__init__(f"not as a command wrote it: {wanted} is needed")
        self.key = key or None


@cache
def kinds_of(part: Any) -> dict[str, Any]:
    """The type of each field of a class of parts, by name."""
    return get_type_hints(part, include_extras=True)


def required(part: type[Part]) -> list[str]:
    """The keys that every object of this class has."""
    complete(part)
    return [field.name for field in fields(part) if field.default is not ABSENT or field.metadata]


def read(kind: Any, value: Any, key: str = "", whole: bool = False) -> Any:
    """A JSON value as a value of the type `kind`. Unknown keys are left out, except in inputs, which keep them. A
    missing key raises AttributeError when its field is read. With `whole`, a missing key, and an unknown key outside
    inputs, raise WrongDocumentError. `key`: the place of the value. Raises WrongDocumentError for a value of another
    type."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _first(args, value, key, whole)
    if origin is Sequence and isinstance(value, list):
        return [read(args[0], one, f"{key}.{k}".lstrip("."), whole) for k, one in enumerate(value)]
    if origin is Mapping and isinstance(value, dict):
        return {name: read(args[1], one, f"{key}.{name}".lstrip("."), whole) for name, one in value.items()}
    if isinstance(kind, type) and issubclass(kind, Part) and isinstance(value, dict):
        return _part(kind, value, key, whole)
    if not _fits(kind, origin, args, value):
        _refuse(kind, origin, args, key)
    return value


def _first(kinds: Sequence[Any], value: Any, key: str, whole: bool) -> Any:
    """A JSON value as a value of the first type that fits. If none fits, raises the error with the deepest place."""
    errors: list[WrongDocumentError] = []
    for kind in kinds:
        try:
            return read(kind, value, key, whole)
        except WrongDocumentError as error:
            errors.append(error)
    raise max(errors, key=lambda error: (error.key or "").count("."))


def _part(kind: Any, value: dict[str, Any], key: str, whole: bool) -> Part:
    if whole and (missing := [name for name in required(kind) if name not in value]):
        raise WrongDocumentError(f"{key}.{missing[0]}".lstrip("."), "this key")
    if whole and not issubclass(kind, Input) and (other := value.keys() - kinds_of(kind).keys()):
        raise WrongDocumentError(f"{key}.{min(other)}".lstrip("."), "a known key")
    complete(kind)
    kinds = kinds_of(kind)
    made: Part = object.__new__(kind)
    for name, one in value.items():
        if name in kinds:
            vars(made)[name] = read(kinds[name], one, f"{key}.{name}".lstrip("."), whole)
        elif issubclass(kind, Input):
            vars(made)[name] = one
    return made


def _fits(kind: Any, origin: Any, args: tuple[Any, ...], value: Any) -> bool:
    """Whether a JSON value belongs to a type without parts."""
    if origin is Annotated:
        return isinstance(value, str) and args[1].fullmatch(value) is not None
    if origin is Literal:
        return any(value == one and type(value) is type(one) for one in args)
    return kind is Any or type(value) is kind or (kind is float and type(value) is int)


def _refuse(kind: Any, origin: Any, args: tuple[Any, ...], key: str) -> NoReturn:
    if origin is Literal:
        *most, last = map(repr, args)
        raise WrongDocumentError(key, f"{', '.join(most)} or {last}" if most else last)
    what = "hexadecimal digits" if origin is Annotated else "a list" if origin is Sequence else "an object"
    raise WrongDocumentError(key, _WANTED.get(kind, what))
