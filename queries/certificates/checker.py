"""Checking a DRAT proof: with drat-trim, a program of other authors, where it is on the path, else with the C program
beside this file."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from mmaprobe.smtmodel import __version__
from mmaprobe.smtmodel.base.libraries import BuildError, build, compiler, own_folder

DRAT_TRIM: Literal["drat-trim"] = "drat-trim"
OWN: Literal["check.c"] = "check.c"
FLAGS = ("-O2", "-w")
BUILD_SECONDS = 30.0
LONGEST = 20_000.0  # seconds for a proof without a given limit: drat-trim's own limit
#: a step that both programs read alike: drat-trim reads 010 as 8, and other bytes as its binary format
STEP = re.compile(rb"(?:d )?(?:-?[1-9][0-9]{0,8} )*0")
OPTIONS: dict[str, list[str]] = {DRAT_TRIM: ["-w"], OWN: []}  # -w: no line for each ignored deletion
#: drat-trim's exit status and verdict lines; older versions end with status 0 where time ran out
VERIFIED, REJECTED = (0, ["s VERIFIED"]), (1, ["s NOT VERIFIED"])


class NoCheckerError(Exception):
    """Why there is no checker, and what to install."""


@dataclass(frozen=True)
class Checker:
    """A program that checks proofs."""

    name: Literal["drat-trim", "check.c"]
    path: Path

    def __str__(self) -> str:
        """The version of this project's checker, which each process builds; the path of another checker."""
        return f"{OWN} of mmaprobe {__version__}" if self.name == OWN else f"{self.name} ({self.path})"


@dataclass(frozen=True)
class Check:
    """The result for a proof: `fault` is empty if a checker verified the proof; `complete` is false if no checker saw
    all of the proof, `late` true if time or memory ran out. `checker`: the checker's name."""

    fault: str
    checker: str = ""
    complete: bool = True
    late: bool = False

    @property
    def valid(self) -> bool:
        return not self.fault


def checker() -> Checker:
    """The checker of this machine. Raises NoCheckerError."""
    program = shutil.which(DRAT_TRIM)
    if program is not None and os.path.isabs(program):  # a relative path would be in the current folder
        return Checker(DRAT_TRIM, Path(program))
    path, why = _own()
    if path is None:
        raise NoCheckerError(f"no checker of proofs: install drat-trim or a C compiler ({why})")
    return Checker(OWN, path)


def checker_named() -> str | None:
    """The name of the program that checks proofs on this machine; None if there is none."""
    try:
        return str(checker())
    except NoCheckerError:
        return None


@cache
def _own() -> tuple[Path | None, str]:
    """The compiled checker, built once in each process, in a folder that nobody else can write; or, without a working C
    compiler, None and the reason."""
    cc = compiler()
    if cc is None:
        return None, "there is neither"
    source = files("mmaprobe.queries.certificates").joinpath(OWN).read_text(encoding="utf-8")
    try:
        folder = own_folder() / "checker"
        folder.mkdir(mode=0o700)
        return build(cc, FLAGS, source, folder, BUILD_SECONDS), ""
    except (OSError, BuildError) as error:
        return None, str(error)


def check_files(cnf: Path, proof: Path, timeout: float | None = None) -> Check:
    """Check the proof in one file against the formula in another. `timeout` is in seconds."""
    try:
        by = checker()
        if fault := _malformed(proof):
            return Check(fault, by.name)
        command = [str(path.absolute()) for path in (by.path, cnf, proof)]  # a name could begin with -, as options do
        status, output = _run([*command, *OPTIONS[by.name]], timeout or LONGEST)
    except NoCheckerError as error:
        return Check(f"not checked: {error}", complete=False)
    except subprocess.TimeoutExpired:
        return Check("time ran out", by.name, complete=False, late=True)
    except OSError as error:
        return Check(f"not checked: {by} cannot be run: {error.strerror}", by.name, complete=False)
    return (_of_own if by.name == OWN else _of_drat_trim)(status, output)


def _malformed(proof: Path) -> str:
    """The fault in the text of a proof; empty if each line is a step, and the last one the empty clause."""
    line = b""
    with proof.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not STEP.fullmatch(line.removesuffix(b"\n")):
                return f"step {number}: not a clause"
    return "" if line.strip() == b"0" else "the proof does not end in the empty clause"


def _of_own(status: int, output: str) -> Check:
    output = output.strip()
    if (status, output) == (0, "verified"):
        return Check("", OWN)
    ended = f"not checked: {OWN} was ended with status {status}"
    return Check(output or ended, OWN, complete=bool(output) and status in (1, 2), late=status == 3)


def _of_drat_trim(status: int, output: str) -> Check:
    """The result of drat-trim. A proof is verified only if drat-trim prints this verdict and no other, and exits with
    the status for this verdict."""
    verdict = status, [line for line in output.splitlines() if line.startswith("s ")]
    if verdict == VERIFIED:
        return Check("", DRAT_TRIM)
    if verdict == REJECTED:
        return Check("drat-trim says: s NOT VERIFIED", DRAT_TRIM)
    lines = "; ".join(verdict[1]) or "nothing"
    return Check(f"not checked: drat-trim says {lines[:80]}, and ended with status {status}", DRAT_TRIM, complete=False)


def _run(command: list[str], timeout: float) -> tuple[int, str]:
    """The exit status and output of a program. An exception here ends the program and all processes that the program
    started. Raises OSError, subprocess.TimeoutExpired."""
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)  # the process was not waited for, so its number is still its own
            raise
    return process.returncode, output.decode("ascii", errors="replace").replace("\r", "\n")
