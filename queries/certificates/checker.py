"""Checking a DRAT proof: with the C program beside this file, or in Python where there is no compiler."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from mmaprobe.queries.certificates import slow
from mmaprobe.smtmodel.base.libraries import BuildError, build, command_of, own_folder

Engine = Literal["c", "python"]
FLAGS = ("-O2", "-w")
BUILD_SECONDS = 30.0  # then the slow checker takes its place


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
    """The compiled checker, built once in each process, where nobody else can put another in its place; None without a
    working C compiler."""
    cc = command_of(os.environ.get("CC") or "cc")
    if cc is None:
        return None
    source = files("mmaprobe.queries.certificates").joinpath("check.c").read_text(encoding="utf-8")
    try:
        folder = own_folder() / "checker"
        folder.mkdir(mode=0o700)
        return build(cc, FLAGS, source, folder, BUILD_SECONDS)
    except (OSError, BuildError):
        return None


def check_files(cnf: Path, proof: Path, timeout: float | None = None, engine: Engine | None = None) -> Check:
    """Check the proof in one file against the formula in another. `timeout` is in seconds; `engine`: the checker to
    use, None for the compiled one where there is a C compiler."""
    start = time.monotonic()
    tool = None if engine == "python" else program()
    if tool is None:
        return _slowly(cnf, proof, start, timeout)
    command = [str(tool), str(cnf), str(proof)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except OSError:  # no program runs from that folder
        return _slowly(cnf, proof, start, timeout)
    except subprocess.TimeoutExpired:
        return Check("time ran out", "c", time.monotonic() - start, complete=False)
    said = done.stdout.strip() or f"the checker was ended with status {done.returncode}"
    fault = "" if done.returncode == 0 and said == "verified" else said
    return Check(fault, "c", time.monotonic() - start, complete=done.returncode in (0, 1, 2))


def _slowly(cnf: Path, proof: Path, start: float, timeout: float | None) -> Check:
    limit = None if timeout is None else start + timeout
    try:
        fault = slow.fault(cnf.read_text(), proof.read_text(), limit)
    except slow.TooLateError:
        return Check("time ran out", "python", time.monotonic() - start, complete=False)
    return Check(fault, "python", time.monotonic() - start)
