"""Imports go one way, also those within functions and those for types alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from tests.places import ROOT

#: the packages of the top level, each of which may import those after it
LEVELS = ("cli", "mmaprobe", "reports", "studies", "runner", "queries", "hypotheses", "documents", "smtmodel")
INNER = tuple(name for name in LEVELS if name != "mmaprobe")  # in mmaprobe: links to the folders beside it
#: the folders of a package, each of which may import those after it
FLOORS = {
    "cli": ("commands", "text", ""),
    "queries": ("checking", "claims", "conjectures", "plans", "building", "candidates", "order", "covering", "compare",
                "properties", "equality", "tactics", "certificates", "search", "kernel", "solvers"),
    "queries.kernel": ("log", "integers", "properties", "equality", "bounds", "cases", "terms", "questions",
                       "datapath", ""),
    "smtmodel": ("algorithms", "inputs", "tables", "explain", "plans", "evaluate", "families", "units", "nodes",
                 "designs", "arithmetic", "carriers", "base", ""),
}  # fmt: skip


@cache
def imports() -> dict[str, set[str]]:
    """What each module of the project imports of the project."""
    files = {path: ".".join(("mmaprobe", *path.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__")
             for folder, package in ((ROOT / "mmaprobe", "."), *((ROOT, name) for name in INNER))
             for path in (folder / package).rglob("*.py")}  # fmt: skip
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
    tuple(TopologicalSorter(imports()).static_order())  # raises CycleError, which names the modules


def test_the_kernel_imports_what_units_and_answers_are_and_nothing_else() -> None:
    allowed = ("mmaprobe.queries.kernel", "mmaprobe.queries.solvers", "mmaprobe.smtmodel")
    own = {
        name: others
        for name, others in imports().items()
        if name.startswith(("mmaprobe.queries.kernel", "mmaprobe.queries.solvers"))
    }
    strange = {name: [one for one in others if not one.startswith(allowed)] for name, others in own.items()}
    assert not {name: others for name, others in strange.items() if others}


def test_packages_import_those_below_them_alone() -> None:
    def package(name: str) -> str:
        first = name.removeprefix("mmaprobe").removeprefix(".").partition(".")[0]
        return first if first in INNER else "mmaprobe"

    for name, others in imports().items():
        for other in others if name != "mmaprobe.__main__" else ():  # the program, which is the command line
            assert LEVELS.index(package(name)) <= LEVELS.index(package(other)), f"{name} imports {other}"
            if package(name) == package(other) and (floors := FLOORS.get(package(name))) is not None:
                above, below = (floor(one) for one in (name, other))
                assert floors.index(above) <= floors.index(below), f"{name} imports {other}"


def test_folders_of_the_kernel_import_those_below_them_alone() -> None:
    kernel = "mmaprobe.queries.kernel."
    floors = FLOORS["queries.kernel"]
    for name, others in imports().items():
        for other in others if name.startswith(kernel) else ():
            if other.startswith(kernel):
                above, below = (one.removeprefix(kernel).partition(".")[0] for one in (name, other))
                levels = [floors.index(one) if one in floors else floors.index("") for one in (above, below)]
                assert levels[0] <= levels[1], f"{name} imports {other}"


def floor(name: str) -> str:
    """The folder of a module in its package: "" for one that stands in none."""
    parts = name.split(".")
    return parts[2] if (ROOT / parts[1] / parts[2]).is_dir() else ""


def test_every_package_is_linked_into_the_one_that_is_installed() -> None:
    for name in INNER:
        assert (ROOT / "mmaprobe" / name).readlink() == Path("..", name)
    loose = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"benchmarks", "tests", "examples", "mmaprobe"}
    assert loose == set(INNER)


def test_no_module_is_imported_by_its_name_in_the_checkout_alone() -> None:
    """`import queries` would find a second copy of the package, or somebody else's."""
    likely = re.compile(rf"(?:import|from|,)[\s\\]+(?:{'|'.join(INNER)})\b")  # few files: to parse all takes seconds
    for path in ROOT.glob("*/**/*.py"):
        if not {".venv", ".venv-torch", "build"} & set(path.parts):
            text = path.read_text(encoding="utf-8")
            found = [name for node in ast.walk(ast.parse(text if likely.search(text) else ""))
                     for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else
                                  [node.module or ""] if isinstance(node, ast.ImportFrom) else [])]  # fmt: skip
            assert not [name for name in found if name.partition(".")[0] in INNER], path
