"""The options for the scale factors of matrix products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from mmaprobe.cli.choice import FileName
from mmaprobe.smtmodel.operand import FACTORS


def factor_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds an option for each operand that is a scale factor; the command gets the file by the operand's name."""
    for row in reversed(FACTORS):
        of, option = "A" if row.of == "row" else "B", f"--{row.name.replace('_', '-')}"
        help_text = f"Scale factors of {of}, as patterns."
        command = click.option(option, row.name, type=FileName(), metavar="FILE", help=help_text)(command)
    return command
