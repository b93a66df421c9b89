"""What every test shares: no test reads or fills the user's own store of answers, or reads the user's defaults."""

from __future__ import annotations

from pathlib import Path

import pytest

from queries import store
from tests.browser import chromium as chromium  # one browser for every module: Playwright allows no second


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "default_path", lambda: tmp_path / "own-store.sqlite")
    monkeypatch.setenv("MMAPROBE_CONFIG", "")
