"""`explain --element`: one element of a matrix product, and the steps of it that lose bits."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mmaprobe.cli.array_files import ROUNDED, errors_name, load_matrix, with_addend
from mmaprobe.cli.options import print_json
from mmaprobe.smtmodel.base.digits import is_digits
from mmaprobe.smtmodel.base.errors import InputError, ParameterError
from mmaprobe.smtmodel.base.escapes import printable
from mmaprobe.smtmodel.base.wording import table_lines

if TYPE_CHECKING:
    from mmaprobe.smtmodel.evaluate.operands import Operands
    from mmaprobe.smtmodel.explain.losses import ElementLosses, Loss


def explain_element(name: str, files: tuple[str, ...], c: Path | None, element: str, as_json: bool) -> None:
    """Print the steps that lose bits in the element `row,column` of the result of a plan (or of a model that takes K in
    tiles) for the matrices A, B and C. Raises InputError."""
    from mmaprobe.cli.text.vectors import result_text
    from mmaprobe.queries.plans.bound_samples import exact_element
    from mmaprobe.reports.evaluations import losses_of
    from mmaprobe.smtmodel.evaluate.model import Model
    from mmaprobe.smtmodel.evaluate.operands import check_addend
    from mmaprobe.smtmodel.explain.losses import element_losses
    from mmaprobe.smtmodel.plans.lowering import unit_of_plan
    from mmaprobe.smtmodel.tables.reference import parse_plan_reference
    from mmaprobe.smtmodel.units.unit import TRACED

    files = with_addend(files, c, "--element takes two matrix files, and C where there is one: A B [--c C]")
    plan = parse_plan_reference(name)
    if plan.scale is not None:
        raise InputError(f"{name} takes scale factors, which --element does not: explain a vector that has them")
    operands = _operands(files, element, (plan.a, plan.b, plan.c))
    check_addend(plan, len(files) == 3, files[-1])
    model = Model(name, unit_of_plan(plan, len(operands.a), TRACED))
    losses = element_losses(model, operands, exact_element(plan, operands.a, operands.b, operands.c))
    if as_json:
        print_json(losses_of(model, element, losses))
        return
    unread = "" if plan.addend else ", c is not read"
    click.echo(f"{printable(name)}: element {element}, K = {model.length}{unread}")
    _show(losses)
    click.echo(f"d = {result_text(losses.result, model.d)}")


def _show(losses: ElementLosses) -> None:
    rows: list[tuple[str, ...]] = [("step", "format", "products", "truncated", "rounded", "total loss")]
    if losses.words:
        rows.append(("inputs as read", "", "", "", "", _signed(losses.words)))
    for step_loss in losses.steps:
        parts = (_signed(part) if part else "" for part in (step_loss.cut, step_loss.rounded))
        rows.append((step_loss.step, step_loss.format.name, _products(step_loss), *parts, _signed(step_loss.total)))
    for line in table_lines(rows) if len(rows) > 1 else ():
        click.echo(f"  {line}")
    lossy = sum(1 for step in losses.steps if step.cut or step.rounded)
    click.echo(f"  {lossy} of {losses.count} rounded steps lose bits")


def _signed(loss: Fraction | None) -> str:
    return "" if loss is None else f"{float(loss):+.3e}"


def _products(loss: Loss) -> str:
    """The products that are not zero: the first and the last one, and their number if some between are zero."""
    if loss.products is None:
        return ""
    first, last = loss.products
    if first == last:
        return str(first)
    return f"{first}-{last}" if loss.count == last - first + 1 else f"{loss.count} of {first}-{last}"


def _operands(files: tuple[str, ...], element: str, formats: tuple[Any, Any, Any]) -> Operands[int]:
    from mmaprobe.smtmodel.evaluate.numbers import from_numbers
    from mmaprobe.smtmodel.evaluate.operands import Operands
    from mmaprobe.smtmodel.evaluate.tiles import product_shape
    from mmaprobe.smtmodel.plans.gemm import addend

    row, _, column = element.partition(",")
    if not (is_digits(row.strip()) and is_digits(column.strip())):
        raise click.UsageError(f"--element is a row and a column, counted from 0: 3,5, not {element!r}")
    i, j = int(row), int(column)
    sides = []
    for file, fmt in zip(files, formats, strict=False):
        with errors_name(file, wanted=ROUNDED):
            sides.append(from_numbers(load_matrix(Path(file)), fmt))
    a, b, *rest = sides
    with errors_name(", ".join(files), "A and B", "C"):
        shape = product_shape(a, b, least=1)
        rest = [addend(c, shape) for c in rest]
    if i >= shape[0] or j >= shape[1]:
        raise ParameterError("element", f"{i},{j} is outside the product, which is {shape[0]} x {shape[1]}")
    c = int(rest[0][i, j]) if rest else 0
    return Operands(tuple(map(int, a[i])), tuple(map(int, b[:, j])), c)
