"""The option and the lookup that commands about families of candidates share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mmaprobe.cli.completion import models
from mmaprobe.cli.options import Decorator
from mmaprobe.smtmodel.base.errors import InputError

if TYPE_CHECKING:
    from mmaprobe.hypotheses.family import Family


def model_option(when: str = "") -> Decorator:
    """The option --model, the instruction that gives candidates their formats, length and scale factors. `when`: when
    the option is given, in words."""
    what = "formats, length and scale factors from this instruction."
    taken = f"{when}: take" if when else "Take"
    return click.option("--model", metavar="MODEL", shell_complete=models, help=f"{taken} {what}")


def family_of(name: str, own: Family | None, model: str | None) -> Family:
    """The candidates under a name: the family `own`; without one, those of the GPU of this name. If --model is given,
    they have the signature of the model that it names. Raises MmaprobeError."""
    from mmaprobe.hypotheses.gpu_family import gpu_family
    from mmaprobe.smtmodel.tables.reference import parse_reference

    asked = None if model is None else parse_reference(model)
    if own is not None:
        return own if asked is None else own.retargeted(asked)
    if asked is None:
        raise InputError(f"{name} has several instructions: --model says on which formats and length the device is "
                         f"asked (`mmaprobe list {name}`)")  # fmt: skip
    return gpu_family(name, asked)
