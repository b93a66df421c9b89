"""The `show` command: the unit file of any model."""

from __future__ import annotations

import click

from cli.completion import models


@click.command()
@click.argument("model", shell_complete=models)
def show(model: str) -> None:
    """Print the unit file of MODEL: its arithmetic as an expression that can be edited and used by its path.

    \b
    mmaprobe show hopper/mma/m16n8k16.f32.f16.f16.f32 > my-unit.yaml
    mmaprobe distinguish hopper/mma/m16n8k16.f32.f16.f16.f32 ./my-unit.yaml
    """
    from smtmodel.reference import parse_reference
    from smtmodel.unitfile import unit_text

    click.echo(unit_text(parse_reference(model).unit), nl=False)
