"""Marks of tests: of single values of parametrised ones, and those that the text of a module shows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest

MARK = re.compile(r"\bpytest\.mark\.(\w+)")
WHOLE = re.compile(r"^pytestmark = (.*)", re.MULTILINE)


def some_slow(values: Iterable[Any], *slow: Any) -> list[Any]:
    """The values, and which of them take ten seconds and more. Raises ValueError for a slow one that is not there."""
    found = list(values)
    if missing := [one for one in slow if one not in found]:
        raise ValueError(f"no such values: {missing}")
    return [pytest.param(one, marks=pytest.mark.slow) if one in slow else one for one in found]


def may_hold(text: str, group: str, groups: frozenset[str]) -> bool:
    """Whether a module of this text may have tests of one of the groups that there are, or of none ("fast").

    What is not seen in one line is taken for possible: `pytestmark = ...` is of all tests of a module.
    """
    named = groups.intersection(MARK.findall(text))
    whole = WHOLE.search(text)
    if whole is None or groups.isdisjoint(MARK.findall(whole[1])):
        named |= {"fast"}
    return group in named
