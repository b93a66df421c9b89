"""The kept rows of `list models` are those that the tables give."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mmaprobe.smtmodel.tables import catalogue


def test_the_kept_rows_are_those_of_the_tables() -> None:
    assert catalogue.FILE.read_text(encoding="utf-8") == catalogue.catalogue_text(), "run `make tables`"


@pytest.mark.parametrize("kept", ["", "[]", '{"sources": "of before", "models": []}'])
def test_rows_of_other_tables_are_made_anew(kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "models.json"
    file.write_text(kept, encoding="utf-8")
    monkeypatch.setattr(catalogue, "FILE", file)
    assert catalogue.catalogue() == json.loads(catalogue.catalogue_text())["models"]


def test_a_change_of_any_table_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {path for pattern in catalogue.SOURCES for path in catalogue.FOLDER.glob(pattern)}
    for path in files:
        copy = tmp_path / path.relative_to(catalogue.FOLDER)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    before = catalogue._digest()
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path)
    assert catalogue._digest() == before
    for path in ("tables/amd.py", "units/library/x86/amx/tdpbf16ps.yaml", "tables/recorded.json"):
        (tmp_path / path).write_bytes((tmp_path / path).read_bytes() + b"\n")
        before, changed = catalogue._digest(), before
        assert before != changed
