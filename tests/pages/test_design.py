"""The page about the design names what there is."""

from __future__ import annotations

import re

import pytest

from tests.places import DOCS

ROWS = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| .* \| (.*) \|$", (DOCS / "design.md").read_text(encoding="utf-8"), re.M)


@pytest.mark.parametrize(("names", "places"), ROWS)
def test_what_a_row_names_is_defined_there(names: str, places: str) -> None:
    paths = [(DOCS / link).resolve() for link in re.findall(r"\]\(([^)]*)\)", places)]
    files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*.py"))]
    defined = {name for file in files for name in re.findall(r"^class (\w+)", file.read_text(encoding="utf-8"), re.M)}
    assert set(re.findall(r"`(\w+)`", names)) <= defined


def test_the_folders_are_those_of_the_layout() -> None:
    from tests.package.test_layout import FLOORS

    text = (DOCS / "design.md").read_text(encoding="utf-8").replace("\n", " ")
    for package in ("smtmodel", "queries"):
        assert ", ".join(name for name in FLOORS[package] if name) in text
    assert len(ROWS) > 10
