"""Groups of tests: a module is left out where no test of it can be of the group that is asked for, and only there."""

from __future__ import annotations

import pytest

from tests.marks import may_hold, some_slow

GROUPS = frozenset({"solvers", "pages"})
MARK = "pytest.mark."  # apart from the names: the texts here are no marks of this module


@pytest.mark.parametrize(
    ("text", "of"),
    [
        ("def test_it() -> None: ...", {"fast"}),
        (f"pytestmark = {MARK}solvers", {"solvers"}),
        (f"pytestmark = [{MARK}processes, {MARK}pages]", {"pages"}),
        (f"pytestmark = {MARK}processes", {"fast"}),
        (f"pytestmark = [\n    {MARK}pages,\n]", {"fast", "pages"}),
        (f"@{MARK}solvers\ndef test_it() -> None: ...", {"fast", "solvers"}),
        (f"pytestmark = {MARK}pages\n@{MARK}solvers\ndef test_it() -> None: ...", {"pages", "solvers"}),
        (f"x = pytest.param(1, marks={MARK}pages)", {"fast", "pages"}),
    ],
)
def test_what_a_module_may_hold(text: str, of: set[str]) -> None:
    assert {group for group in (*GROUPS, "fast") if may_hold(text, group, GROUPS)} == of


def test_a_slow_value_that_is_not_there_is_an_error() -> None:
    assert len(some_slow("abc", "b")) == 3
    with pytest.raises(ValueError, match="no such values: \\['d'\\]"):
        some_slow("abc", "b", "d")
