"""Nothing is imported from the folder in which a command is run, by no process that it starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from mmaprobe.queries.certificates.sat import SatSolver
from mmaprobe.queries.solvers.children import environment
from mmaprobe.queries.solvers.contract import SolverProcess, end_idle
from mmaprobe.smtmodel.base.folders import cache_folder
from tests.places import ROOT

pytestmark = pytest.mark.programs

V = "volta/mma/m8n8k4.f32.f16.f16.f32"
MODULES = [
    "bitwuzla", "cvc5", "z3", "pysat", "json", "random", "signal", "struct", "resource", "select", "socket",
    "selectors", "subprocess", "tempfile", "queries", "threading", "numpy", "pickle", "cli", "smtmodel", "mmaprobe",
]  # fmt: skip
QUERY = "(set-option :produce-models true)(set-logic QF_BV)"
QUERY += "(declare-const x (_ BitVec 4))(assert (= x #x3))(check-sat)(get-value (x))"
LIBRARY = """#include <stdio.h>
__attribute__((constructor)) static void loaded(void) { FILE *f = fopen("%s", "a"); fputs("libz3", f); fclose(f); }
"""


@pytest.fixture
def trap(tmp_path):
    """A folder of modules that leave a marker when they are imported, and the marker."""
    folder, marker = tmp_path / "trap", tmp_path / "executed"
    folder.mkdir()

    def text(name):
        return f"open({str(marker)!r}, 'a').write({name!r} + chr(10))\n"

    for name in MODULES:
        (folder / f"{name}.py").write_text(text(name))
    for name in ("queries", "mmaprobe"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(text(f"{name}/__init__.py"))
    if cc := shutil.which("cc"):
        source = tmp_path / "trap.c"
        source.write_text(LIBRARY % marker)
        subprocess.run([cc, "-shared", "-fPIC", "-o", str(folder / "libz3.so"), str(source)], check=True)
    return folder, marker


def executed(marker):
    return marker.read_text().split() if marker.exists() else []


@pytest.mark.parametrize("path", [None, ".", os.pathsep])
def test_processes_of_solvers(trap, path, monkeypatch):
    folder, marker = trap
    monkeypatch.chdir(folder)
    if path is not None:
        monkeypatch.setenv("PYTHONPATH", path)
    end_idle()
    for engine in ("bitwuzla", "z3", "cvc5"):
        answer = SolverProcess(engine, QUERY).answer(60)
        assert (answer.status, executed(marker)) == ("sat", []), answer
    with SatSolver() as solver:
        assert solver.refute([(1,), (-1,)], 60) is not None
    assert executed(marker) == []
    end_idle()


PROGRAM = f"""
import os
from mmaprobe.queries.candidates import outcomes
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.tables.reference import parse_reference
models = [parse_reference(f"{V}@fraction_bits={{bits}}") for bits in range(20, 26)]
outcomes.ALONE, outcomes.PART = 1, 3
table = outcomes.pool_rows(layout_of(models[0]), 10)
there = outcomes.simulate(models, table, processes=2)
assert (there == outcomes.simulate(models, table, processes=1)).all()
assert "PYTHONSAFEPATH" not in os.environ  # devices of users are started as they are
"""


def test_processes_that_simulate(trap, tmp_path):
    """In a process of its own: where one has simulated before, the helper of multiprocessing runs already."""
    folder, marker = trap
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run([sys.executable, program], cwd=folder, capture_output=True, text=True, check=False)
    assert executed(marker) == []
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["prove", V, f"{V}@carry_bits=4", "--certificate", "proof"], 0, "accepted by the checker"),
        (["--verbose", "verify", "chain-length-exact", "--timeout", "1"], None, "chain-length-exact"),
    ],
)
def test_commands(trap, tmp_path, arguments, code, message):
    """Run as the console script is: its own folder, not the current one, is on the import path."""
    folder, marker = trap
    program = tmp_path / "bin" / "mmaprobe"
    program.parent.mkdir()
    program.write_text("from mmaprobe.cli.main import main\nmain()\n")
    done = subprocess.run(
        [sys.executable, str(program), *arguments, "--store", str(tmp_path / "store.sqlite")],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert executed(marker) == []
    assert message in done.stderr, done.stderr
    assert code is None or done.returncode == code
    assert "Traceback" not in done.stderr


def test_a_path_without_the_current_folder(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", "lib", "/opt/lib", "."]))
    assert environment() == {**os.environ, "PYTHONPATH": "/opt/lib", "PYTHONSAFEPATH": "1"}
    monkeypatch.setenv("PYTHONPATH", "")
    assert "PYTHONPATH" not in environment()


def test_commands_of_certificates_are_safe():
    """The folder of a certificate comes from somebody else: what is said to check it with must not run its files."""
    for page in (ROOT / "docs" / "prove.md", *(ROOT / "queries" / "certificates").glob("*.md")):
        assert "mmaprobe check" in page.read_text()
        assert "python -m" not in page.read_text()


def test_programs_are_not_kept_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "mmaprobe"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cache_folder() == tmp_path / "cache" / "mmaprobe"
