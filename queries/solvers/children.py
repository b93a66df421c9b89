"""How this program starts Python in processes of its own: nothing is imported, or loaded, from the current folder.

Whoever works in a folder with a json.py of their own, or in one that a stranger has sent, must not have it executed.
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

PR_SET_PDEATHSIG = 1  # Linux's prctl, which no library of Python wraps; programs that import nothing have it too
#: where children run; z3 looks for its library in the current folder first
FOLDER = "/"


def python_command(program: Path, *arguments: str) -> list[str]:
    """The command that runs a program of ours, by its absolute path, without its folder or the current one on the
    import path."""
    return [sys.executable, "-P", str(program.resolve()), *arguments]


def environment(given: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment (by default this process's) for such a child and for those that it starts in turn: relative
    entries of PYTHONPATH, also empty ones, would stand for the current folder."""
    found = dict(os.environ if given is None else given)
    entries = [entry for entry in found.pop("PYTHONPATH", "").split(os.pathsep) if os.path.isabs(entry)]
    return found | {"PYTHONSAFEPATH": "1"} | ({"PYTHONPATH": os.pathsep.join(entries)} if entries else {})


@contextmanager
def safe_imports() -> Iterator[None]:
    """As `environment`, for children that `multiprocessing` starts meanwhile, which knows no other way. Nor do they run
    the program again that uses this package: a script without a guard would start them anew."""
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
    """This process ends with its parent, even if that is killed, where Linux sees to it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it was killed before it could be watched
            os._exit(1)


@contextmanager
def without_interrupts() -> Iterator[None]:
    """Children started meanwhile see no Ctrl-C, which a terminal sends to all: this process decides what is kept."""
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
