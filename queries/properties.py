"""Properties of one model, stated as the equality of two evaluations of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from queries.problem import Problem, evaluate_on
from smtmodel.algebra import Bits
from smtmodel.dot import Evaluation, Model
from smtmodel.operands import Operands


@dataclass(frozen=True)
class Reordered(Problem):
    """A model against itself with its products in another order: `order[k]` is the product in place k."""

    order: tuple[int, ...] = ()

    def evaluate(self, operands: Operands[Bits]) -> tuple[Evaluation, Evaluation]:
        a, b = (tuple(side[k] for k in self.order) for side in (operands.a, operands.b))
        moved = Operands(a, b, operands.c, operands.scale_a, operands.scale_b)
        return evaluate_on(self.left, operands), evaluate_on(self.right, moved)


def reorderings(model: Model) -> list[Reordered]:
    """For each step an exchange of its first two products and a rotation of all: these two generate every order.

    Products move inside one step, scale block or group; a chain of single products is reordered as a whole.
    """
    accumulator = model.accumulator
    steps: Sequence[Sequence[int]] = accumulator.blocks
    if all(len(step) == 1 for step in steps):
        steps = [[k for step in steps for k in step]]
    if model.scale is not None:
        size = accumulator.group if accumulator.grouping == "scale_blocks" else accumulator.scale_block
        steps = [part for step in steps for part in _parts(step, size)]
    found = []
    for step in steps:
        for moved in {(step[1], step[0], *step[2:]), (*step[1:], step[0])} if len(step) > 1 else ():
            order = list(range(model.length))
            for place, source in zip(step, moved, strict=True):
                order[place] = source
            found.append(Reordered(model, model, order=tuple(order)))
    return sorted(found, key=lambda problem: problem.order, reverse=True)  # rotations differ soonest


def _parts(step: Sequence[int], size: int) -> list[Sequence[int]]:
    groups: dict[int, list[int]] = {}
    for k in step:
        groups.setdefault(k // size, []).append(k)
    return list(groups.values())
