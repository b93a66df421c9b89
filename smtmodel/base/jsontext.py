"""JSON written by users: errors describe each mistake in words."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # an escaped half of a surrogate pair
#: halves of surrogate pairs, but for those that stand for bytes of file names that are not UTF-8
_LONE = re.compile("[\ud800-\udc7f\udd00-\udfff]")


class BrokenJsonError(ValueError):
    """Text that is not JSON, or only the beginning of a JSON text."""


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text. Raises BrokenJsonError, or ValueError for a key given twice, a number of thousands of
    digits or beyond 10^308, NaN, Infinity, or half of a surrogate pair, which no file can hold."""
    try:
        text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_number)
        if _HALF.search(text):
            _check_text(value, "")
        return value
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise BrokenJsonError(f"not JSON: {error.msg.removesuffix(' at')} at {line}column {error.colno}") from None
    except UnicodeDecodeError as error:
        number = error.object.count(b"\n", 0, error.start) + 1
        raise BrokenJsonError(f"not JSON: {f'line {number} is ' if number > 1 else ''}not text in UTF-8") from None
    except RecursionError:
        raise ValueError("not JSON: nested too deep") from None
    except ValueError as error:
        raise ValueError(plain_reason(error)) from None


def quoted_value(value: Any) -> str:
    """A value of a JSON text as messages quote it: null and true as in JSON, everything else as in Python."""
    return repr(value) if isinstance(value, str) else json.dumps(value)


def _number(text: str) -> float:
    if math.isinf(value := float(text)):
        raise ValueError(f"{text} is larger than any number that programs read")
    return value


def _constant(name: str) -> NoReturn:
    raise ValueError(f"not JSON: {name} is no number")


def _check_text(value: Any, key: str) -> None:
    """Raises ValueError, with the key, for a string with half of a surrogate pair."""
    if isinstance(value, dict):
        for name, item in value.items():
            _check_text(name, key)
            _check_text(item, name)
    elif isinstance(value, list):
        for item in value:
            _check_text(item, key)
    elif isinstance(value, str) and _LONE.search(value):
        raise ValueError(f"{key}: {value!r} holds half of a surrogate pair, which is no text".removeprefix(": "))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)}: this key is given twice")
    return members


def plain_reason(error: Exception) -> str:
    """The text of an error that Python raised for a value, without advice for programmers."""
    text = " ".join(str(error).split())
    return "a number of more than 4300 digits" if "integer string conversion" in text else text
