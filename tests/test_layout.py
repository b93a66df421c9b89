"""Imports go one way, also those within functions and those for types alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: the packages of the top level, each of which may import those after it
LEVELS = ("mmaprobe", "cli", "reports", "studies", "runner", "queries", "hypotheses", "smtmodel")
#: the packages of queries, each of which may import those after it
FLOORS = ("checking", "plans", "building", "candidates", "order", "covering", "compare", "claims", "properties",
          "equality", "tactics", "certificates", "search", "kernel", "solvers")  # fmt: skip


@cache
def imports() -> dict[str, set[str]]:
    """What each module of the project imports of the project."""
    files = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
             for package in LEVELS for path in (ROOT / package).rglob("*.py")}  # fmt: skip
    names = set(files.values())
    return {name: set(_imported(path, names)) - {name} for path, name in files.items()}


def _imported(path: Path, names: set[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole in names or node.module in names:
                    yield whole if whole in names else node.module


def test_no_module_imports_itself_by_way_of_others() -> None:
    found = dict(imports())
    found["smtmodel.carriers.carrier"] = found["smtmodel.carriers.carrier"] - {
        "smtmodel.algebra"
    }  # types alone: values and carriers are one contract
    tuple(TopologicalSorter(found).static_order())  # raises CycleError, which names the modules


def test_the_kernel_imports_what_units_and_answers_are_and_nothing_else() -> None:
    allowed = ("queries.kernel", "queries.solvers", "smtmodel")
    own = {name: others for name, others in imports().items() if name.startswith(("queries.kernel", "queries.solvers"))}
    strange = {name: [one for one in others if not one.startswith(allowed)] for name, others in own.items()}
    assert not {name: others for name, others in strange.items() if others}


def test_packages_import_those_below_them_alone() -> None:
    for level, order in ((0, LEVELS), (1, FLOORS)):
        for name, others in imports().items():
            for other in others:
                above, below = name.split("."), other.split(".")
                if level and not (above[0] == below[0] == "queries" and len(above) > 1):
                    continue
                assert order.index(above[level]) <= order.index(below[level]), f"{name} imports {other}"
