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
    """The option for the instruction on whose formats and length candidates are; `when`: with what it goes."""
    what = "formats, length and scale factors from this instruction."
    taken = f"{when}: take" if when else "Take"
    return click.option("--model", metavar="MODEL", shell_complete=models, help=f"{taken} {what}")


def family_of(name: str, model: str | None) -> Family:
    """The family with an id, of a file or of a GPU, for the signature of the model named by --model if it is given.
    Raises MmaprobeError."""
    from mmaprobe.hypotheses.family import family_named
    from mmaprobe.hypotheses.gpu_family import gpu_family
    from mmaprobe.smtmodel.tables.gpus import gpu_named
    from mmaprobe.smtmodel.tables.reference import parse_reference

    if gpu_named(name) and model is None:
        raise InputError(f"{name} has several instructions: --model says on which formats and length the device is "
                         f"asked (`mmaprobe list {name}`)")  # fmt: skip
    asked = None if model is None else parse_reference(model)
    if asked is not None and (own := gpu_family(name, asked)) is not None:
        return own
    family = family_named(name)
    return family if asked is None else family.retargeted(asked)
