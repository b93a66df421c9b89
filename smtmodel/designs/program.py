"""Programs that read and simulate designs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from mmaprobe.smtmodel.base.errors import IncompleteError

SECONDS = 300.0  # the time limit of a program


class MissingProgramError(IncompleteError):
    """Yosys is not installed, or, for a design in VHDL, GHDL."""


def run_program(
    command: Sequence[str], folder: Path, name: str, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """The run of a program to its end, with its output. `name`: the program's name in messages; `variables`:
    environment variables to add. Raises IncompleteError for a run that does not end within SECONDS."""
    try:
        environment = {**os.environ, **(variables or {})}
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, cwd=folder, env=environment
        )
    except subprocess.TimeoutExpired:
        raise IncompleteError(f"{name} did not end within {SECONDS:g} s") from None
