"""What commands about families of candidates share: the family that is named, and how candidates are said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mmaprobe.cli.completion import models
from mmaprobe.cli.options import say
from mmaprobe.smtmodel.base.errors import InputError

if TYPE_CHECKING:
    from mmaprobe.documents.identify import Impossible, Member
    from mmaprobe.hypotheses.family import Family
    from mmaprobe.queries.candidates.classes import Equality

MODEL = click.option(
    "--model",
    metavar="MODEL",
    shell_complete=models,
    help="Take formats, length and scale factors from this instruction.",
)


def family_of(name: str, model: str | None) -> Family:
    from mmaprobe.hypotheses.family import family_named
    from mmaprobe.hypotheses.gpu_family import gpu_family
    from mmaprobe.smtmodel.tables.gpus import gpu_named
    from mmaprobe.smtmodel.tables.reference import parse_reference

    if gpu_named(name) and model is None:
        raise InputError(f"{name} has several instructions: --model says on which formats and length the device is "
                         f"asked (`mmaprobe list {name}`)")  # fmt: skip
    asked = None if model is None else parse_reference(model)
    if asked is not None and (found := gpu_family(name, asked)) is not None:
        return found
    family = family_named(name)
    return family if asked is None else family.retargeted(asked)


def say_impossible(family: Family) -> None:
    if family.impossible.count:
        say(f"left out: {family.impossible.text()}")


def impossible(family: Family) -> Impossible:
    """The impossible combinations left out of a family."""
    from mmaprobe.documents.identify import Impossible

    out = family.impossible
    return Impossible(combinations=out.combinations, left_out=out.count, reasons=dict(out.reasons))


def members_of(members: Sequence[Equality]) -> list[Member]:
    from mmaprobe.documents.identify import Member

    return [Member(model=m.model.reference, why=m.why or None, confirmed_by=m.confirmed) for m in members]
