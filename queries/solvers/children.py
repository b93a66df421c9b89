"""Starting Python in child processes: nothing is imported, or loaded, from the current folder.

A user's folder may hold a json.py, or come from a stranger: no code of the folder may run.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

PR_SET_PDEATHSIG = 1  # Linux's prctl; Python's library has no name for it (worker.py and sat_worker.py define it too)
#: the current folder of children; z3 looks for its library there first
FOLDER = "/"


def python_command(program: Path, *arguments: str) -> list[str]:
    """The command that runs a program of this package by its absolute path, with neither the program's folder nor the
    current one on the import path."""
    return [sys.executable, "-P", str(program.resolve()), *arguments]


def environment() -> dict[str, str]:
    """The environment for a child started by `python_command` and for the child's own children: that of this process,
    without the relative entries of PYTHONPATH, and without the empty ones, which stand for the current folder."""
    variables = dict(os.environ)
    entries = [entry for entry in variables.pop("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(entry)]
    return variables | {"PYTHONSAFEPATH": "1"} | ({"PYTHONPATH": os.pathsep.join(entries)} if entries else {})


@contextmanager
def safe_imports() -> Iterator[None]:
    """A block in which children that `multiprocessing` starts get the variables of `environment`: `multiprocessing` has
    no argument for these. Nor do such children run the user's main script again, since a script without a guard would
    start them anew."""
    names: Sequence[str] = ("PYTHONSAFEPATH", "PYTHONPATH")
    before, safe = {name: os.environ.get(name) for name in names}, environment()
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    _set({name: safe.get(name) for name in names})
    try:
        yield
    finally:
        _set(before)
        sys.modules["__main__"] = main


def die_with(parent: int) -> None:
    """End this process with its parent, even if the parent is killed; on Linux alone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # the parent ended before prctl was called
            os._exit(1)


@contextmanager
def without_interrupts() -> Iterator[None]:
    """A block whose child processes ignore Ctrl-C, which a terminal sends to all processes: this process decides which
    children end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _set(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
