"""What every test shares: no test reads or fills the user's own store of answers, or reads the user's defaults; every
JSON document that a command prints is one that reports.documents describes; and the groups of tests that take long,
each of which runs alone by its name (`pytest -m solvers`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from pydantic import ValidationError

from cli import options
from queries.solvers import store
from reports import documents
from tests.browser import chromium as chromium  # one browser for every module: Playwright allows no second

#: group -> modules without their test_; what is in none runs with `make test-fast`
GROUPS = {
    "solvers": (
        "admitted", "bitblast", "bounds", "build", "certificate", "check", "claim_stages", "compare", "contradictions",
        "distinguish", "false_statements", "families", "identify", "ieee", "long_sums", "monotone", "mutations",
        "one_vector", "order", "output", "pool", "properties", "prove", "prove_plans", "question_library",
        "small_pairs", "solvers", "statements", "store_solving", "unit_properties", "verdicts", "verify",
    ),
    "browser": ("report", "svg"),
    "cluster": ("cluster", "cluster_refused"),
    "kernels": ("cuda", "cupy_launch", "evidence", "kernels"),
    "compilers": (
        "algorithms", "compiled", "cpu_devices", "cpu_units", "own_formats", "plans", "simulate", "witnesses",
    ),
    "pages": ("claims_page", "documentation", "extending"),
}  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    for group, modules in GROUPS.items():
        config.addinivalue_line("markers", f"{group}: {', '.join(modules)}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    groups = {f"test_{module}": group for group, modules in GROUPS.items() for module in modules}
    for item in items:
        item.add_marker(groups.get(item.path.stem, "fast"))


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "default_path", lambda: tmp_path / "own-store.sqlite")
    monkeypatch.setenv("MMAPROBE_CONFIG", "")


@pytest.fixture(autouse=True)
def described_documents(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The faults of documents printed in a test, which has none."""
    faults: list[str] = []

    def checked(document: Any) -> str:
        text = plain(document)
        command = click.get_current_context().info_name or ""
        try:
            documents.check(command, text)
        except ValidationError as error:
            faults.append(f"{command} --json: {error}")
        return text

    plain = options.document_text
    monkeypatch.setattr(options, "document_text", checked)
    yield faults
    assert not faults, "\n".join(faults)
