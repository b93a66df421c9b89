"""Libraries built from C on the machine that they run on, kept in the user's cache folder: named by their source, the
compiler and the processor."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from smtmodel.folders import cache_folder

IS_X86 = platform.machine().lower() in ("x86_64", "amd64")
#: loops are made vectors, and what is left of them is not: twice as quick to compile, and no slower
FLAGS = (
    "-O2", "-ftree-vectorize", "--param=vect-epilogues-nomask=0", "-march=native", "-shared", "-fPIC", "-w",
    *(("-mprefer-vector-width=512",) if IS_X86 else ()),  # where there are such: a quarter to two thirds more a second
)  # fmt: skip


@cache
def compiler() -> str | None:
    """The C compiler found, if there is one; clang's loops are the quickest (benchmarks/simulate.md)."""
    named = os.environ.get("CC")
    return next(filter(None, map(shutil.which, (named,) if named else ("clang", "cc"))), None)


@cache
def loaded(source: str, load: Callable[[str], Any] = ctypes.CDLL) -> Any:
    """The loaded library of a source, built if it is not in the cache; None where that fails."""
    cc = compiler()
    if cc is None:
        return None
    try:
        return load(str(kept_build(cc, FLAGS, source, ".so")))
    except (OSError, subprocess.CalledProcessError):
        return None


def address_of(function: Any) -> int:
    """Where a loaded function is."""
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found


def kept_build(cc: str, flags: tuple[str, ...], source: str, suffix: str) -> Path:
    """What a compiler makes of a source for this machine, from the cache folder where it is there. Raises OSError or
    CalledProcessError."""
    import hashlib  # with tempfile a twentieth of the time of a command that compiles nothing
    import tempfile

    key = "\0".join((source, cc, " ".join(flags), platform.processor(), platform.machine(), platform.node()))
    path = cache_folder() / "compiled" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}{suffix}"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        code = Path(folder) / "model.c"
        code.write_text(source, encoding="utf-8")
        built = Path(folder) / "model.so"
        subprocess.run([cc, *flags, "-o", str(built), str(code)], check=True, capture_output=True)
        built.replace(path)  # at once, so that another process never loads half a file
    return path
