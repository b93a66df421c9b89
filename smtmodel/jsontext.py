"""JSON as users write it: every mistake is described in words."""

from __future__ import annotations

import json
from typing import Any


class BrokenJsonError(ValueError):
    """Text that is not JSON, or only the beginning of it."""


def parse_json(text: str | bytes) -> Any:
    """What a JSON text says. Raises BrokenJsonError, or ValueError for what must not be in it: a key given twice, a
    number of thousands of digits."""
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise BrokenJsonError(f"not JSON: {error.msg.removesuffix(' at')} at column {error.colno}") from None
    except UnicodeDecodeError as error:
        raise BrokenJsonError(f"not JSON: {error.reason} at byte {error.start}") from None
    except RecursionError:
        raise ValueError("not JSON: nested too deep") from None
    except ValueError as error:
        raise ValueError(plain_reason(error)) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)}: this key is given twice")
    return found


def plain_reason(error: Exception) -> str:
    """The text of an error that Python raised for a value, without advice for programmers."""
    text = " ".join(str(error).split())
    return "a number of more than 4300 digits" if "integer string conversion" in text else text
