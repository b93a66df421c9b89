"""Programs that read and simulate designs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from mmaprobe.smtmodel.base.errors import IncompleteError

SECONDS = 300.0  # that a program may take


class MissingProgramError(IncompleteError):
    """Yosys is not installed, or GHDL for a design in VHDL."""


def finished(
    command: Sequence[str], folder: Path, name: str, given: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """The finished run of a program, with its output. Raises IncompleteError for a run that does not end in time."""
    try:
        environment = {**os.environ, **(given or {})}
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, cwd=folder, env=environment
        )
    except subprocess.TimeoutExpired:
        raise IncompleteError(f"{name} did not end within {SECONDS:g} s") from None
