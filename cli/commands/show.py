"""The `show` command: the unit file of any model, and a picture of the order in which it adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mmaprobe.cli.command import Command
from mmaprobe.cli.completion import models
from mmaprobe.cli.options import refuse
from mmaprobe.cli.picture_files import PictureFiles, picture_options
from mmaprobe.cli.text.vectors import say_unread
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.reports.drawings.sheet import Drawing
    from mmaprobe.smtmodel.evaluate.model import Model


@click.command(cls=Command)
@click.argument("model", shell_complete=models)
@click.option(
    "--change", metavar="NAME=VALUE",
    help="Of a unit: with this parameter changed, as `compare` and `cover` name changes (zeros_count=products).",
)  # fmt: skip
@picture_options
def show(model: str, change: str | None, pictures: PictureFiles) -> None:
    """Print the file of a unit or a plan. It has MODEL's arithmetic as an expression, and can be edited and used by its
    path.

    With --svg, --pdf or --tikz a picture is drawn instead: of a unit the tree of its sums; of a plan how it divides one
    K (plan:NAME@length=K).

    \b
    mmaprobe show hopper/mma/m16n8k16.f32.f16.f16.f32 > my-unit.yaml
    mmaprobe show my-unit.yaml --change zeros_count=products > changed.yaml
    mmaprobe distinguish hopper/mma/m16n8k16.f32.f16.f16.f32 ./my-unit.yaml
    mmaprobe show plan:cublas/split-k > my-plan.yaml
    mmaprobe show plan:cublas/split-k@length=4096 --svg plan.svg
    """
    from mmaprobe.smtmodel.plans.plantext import plan_text
    from mmaprobe.smtmodel.tables.reference import LENGTH, PLAN, names_plan, parse_plan_path, parse_reference
    from mmaprobe.smtmodel.units.unitfile import unit_text

    if names_plan(model):
        name = model.removeprefix(PLAN)
        refuse(f"{PLAN}{name}: the picture of a plan is for some K: {PLAN}{name}{LENGTH}64", "svg", "pdf", "tikz")
        refuse("a plan has no parameters to change: change its text", "change")
        plan = parse_plan_path(model)
        say_unread(plan)
        click.echo(plan_text(plan), nl=False)
        return
    shown = parse_reference(model)
    if change is not None:
        shown = _changed(shown, change)
    pictures.write(lambda width: _picture(shown, width))
    if not pictures:
        say_unread(shown)
        click.echo(unit_text(shown.unit), nl=False)


def _changed(model: Model, change: str) -> Model:
    """The unit that differs from a model's in one parameter. Raises UnknownNameError."""
    from mmaprobe.queries.compare.neighbours import neighbours
    from mmaprobe.smtmodel.base.errors import UnknownNameError

    known = {f"{name}={value}": near for name, value, near in neighbours(model)}
    if change not in known:
        raise UnknownNameError("change", change, known, f" (all of {model.reference}: {', '.join(sorted(known))})")
    return known[change]


def _picture(model: Model, width: float | None) -> Drawing:
    """The drawing of a model: of a unit the tree of its sums, of a plan at one K how the plan divides K. `width`: in
    pixels, None: natural width."""
    from mmaprobe.queries.order.structure import tree_of
    from mmaprobe.queries.order.text import Outliner
    from mmaprobe.reports.drawings.order_drawing import order_drawing
    from mmaprobe.reports.drawings.plan_drawing import plan_drawing
    from mmaprobe.reports.words import operands_text
    from mmaprobe.smtmodel.tables.reference import names_plan, parse_plan_path
    from mmaprobe.smtmodel.units.unitfile import step_texts

    base = model.instruction
    if names_plan(base):
        return plan_drawing(parse_plan_path(base), model.length, width)
    notes = [f"{name}: {text}" for name, text in step_texts(model.unit).items()]
    outline = Outliner(tree_of(model.unit, aligned_apart=True)).outline()
    return order_drawing(
        outline, f"{model.reference}: {counted(model.length, 'product')} ({operands_text(model)})", notes, width
    )
