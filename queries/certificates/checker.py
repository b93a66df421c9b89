"""Checking a DRAT proof: with the C program beside this file, or in Python where there is no compiler."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from queries.certificates import slow
from smtmodel.folders import cache_folder

Engine = Literal["c", "python"]
FLAGS = ("-O2", "-w")


@dataclass(frozen=True)
class Check:
    """The checker's result. `fault` is empty if the proof is valid; `complete` is false if time or memory ran out."""

    fault: str
    engine: Engine
    seconds: float
    complete: bool = True

    @property
    def valid(self) -> bool:
        return not self.fault


@cache
def program() -> Path | None:
    """The compiled checker, built if it is not in the user's cache folder; None without a working C compiler."""
    cc = shutil.which(os.environ.get("CC", "cc"))
    if cc is None:
        return None
    source = files("queries.certificates").joinpath("check.c").read_bytes()
    key = hashlib.sha256(b"\0".join([source, cc.encode(), *(flag.encode() for flag in FLAGS), _machine()])).hexdigest()
    try:
        path = cache_folder() / "compiled" / f"drat-{key[:32]}"
        if not path.exists():
            _build(cc, source, path)
    except (OSError, subprocess.CalledProcessError):
        return None
    return path


def _machine() -> bytes:
    return f"{platform.machine()} {platform.node()}".encode()


def _build(cc: str, source: bytes, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        code, built = Path(folder) / "check.c", Path(folder) / "check"
        code.write_bytes(source)
        subprocess.run([cc, *FLAGS, "-o", str(built), str(code)], check=True, capture_output=True)
        built.replace(path)  # at once, so that another process never runs half a file


def check_files(cnf: Path, proof: Path, timeout: float | None = None, engine: Engine | None = None) -> Check:
    """Check the proof in one file against the formula in another. `timeout` is in seconds; `engine`: the checker to
    use, None for the compiled one where there is a C compiler."""
    start = time.monotonic()
    tool = None if engine == "python" else program()
    if tool is None:
        limit = None if timeout is None else start + timeout
        try:
            fault = slow.fault(cnf.read_text(), proof.read_text(), limit)
        except slow.TooLateError:
            return Check("time ran out", "python", time.monotonic() - start, complete=False)
        return Check(fault, "python", time.monotonic() - start)
    command = [str(tool), str(cnf), str(proof)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return Check("time ran out", "c", time.monotonic() - start, complete=False)
    said = done.stdout.strip() or f"the checker was ended with status {done.returncode}"
    fault = "" if done.returncode == 0 and said == "verified" else said
    return Check(fault, "c", time.monotonic() - start, complete=done.returncode in (0, 1, 2))
