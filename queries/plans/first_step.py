"""The first step in which two plans of one matrix product differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from mmaprobe.queries.compare.gemm import Element, Matrices
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.explain.losses import Loss, losses
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.lowering import unit_of_plan
from mmaprobe.smtmodel.units.unit import TRACED


def first_step(one: Plan, other: Plan, matrices: Matrices, element: Element) -> tuple[Loss | None, Loss | None] | None:
    """The first steps of an element, one of each plan, at which two plans differ in the products that they add or in
    their results (None: the plan has no further step). None if all steps are the same, or the product is too long to be
    traced. Steps that add the same products with the same result are no difference, even if other steps come between
    them. The last step of a plan, its result, is compared with that of the other one."""
    row, column = element.row, element.column
    a, b = (tuple(map(int, side)) for side in (matrices.a[row], matrices.b[:, column]))
    operands = Operands(a, b, 0 if matrices.c is None else int(matrices.c[row, column]))
    try:
        steps = [
            losses(Model(plan.reference, unit_of_plan(plan, len(a), TRACED)), operands)[0] for plan in (one, other)
        ]
    except ParameterError:
        return None
    both = Counter(map(_what, steps[0])) & Counter(map(_what, steps[1]))
    pairs = zip_longest(*(_remaining(side, both.copy()) for side in steps))
    ends = steps[0][-1], steps[1][-1]  # both are the result
    for left, right in pairs:
        if _what(left) != _what(right):
            last = (left is None and right is ends[1]) or (right is None and left is ends[0])
            return ends if last else (left, right)
    return None


def _remaining(steps: Sequence[Loss], both: Counter[object]) -> Iterator[Loss]:
    """The steps of a plan without steps that do not change a sum, and without steps that both plans have (`both`)."""
    for before, step in zip((None, *steps), steps, strict=False):
        if step.products is not None and both[_what(step)]:
            both[_what(step)] -= 1
        elif before is None or step.products is not None or step.value != before.value:
            yield step


def _what(step: Loss | None) -> object:
    return None if step is None else (step.products, step.value)
