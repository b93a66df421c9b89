"""What every test shares: no test reads or fills the user's own store of answers, or reads the user's defaults; and
the groups of tests that take long, each of which runs alone by its name (`pytest -m solvers`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from queries.solvers import store
from tests.browser import chromium as chromium  # one browser for every module: Playwright allows no second

#: group -> modules without their test_; what is in none runs with `make test-fast`
GROUPS = {
    "solvers": (
        "admitted", "bitblast", "bounds", "build", "certificate", "claim_stages", "compare", "contradictions",
        "distinguish", "false_statements", "families", "identify", "ieee", "long_sums", "monotone", "mutations",
        "one_vector", "order", "output", "pool", "properties", "prove", "prove_plans", "question_library",
        "small_pairs", "solvers", "store_solving", "unit_properties", "verdicts", "verify",
    ),
    "browser": ("report", "svg"),
    "cluster": ("cluster", "cluster_refused"),
    "kernels": ("cuda", "cupy_launch", "evidence", "kernels"),
    "compilers": (
        "algorithms", "compiled", "cpu_devices", "cpu_units", "own_formats", "plans", "simulate", "witnesses",
    ),
    "pages": ("claims_page", "documentation"),
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
