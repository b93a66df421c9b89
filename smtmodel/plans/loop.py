"""The loop of a plan: a step that adds a fixed number of products to a running sum."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.nodes import Element, Node
from mmaprobe.smtmodel.nodes.given import Given
from mmaprobe.smtmodel.nodes.rewriting import replaced
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.lowering import unit_of_plan
from mmaprobe.smtmodel.plans.partitions import All, Runs
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.stages import Parted, Stage, parts_of
from mmaprobe.smtmodel.units.unit import Unit


@dataclass(frozen=True)
class Step:
    """A step that adds `period` products to a running sum of format `sums`. On any multiple of `period` products,
    the loop computes this step repeatedly from the start of `stage`, and then `last`, the roundings of the result."""

    stage: Stage
    period: int
    sums: Format
    last: tuple[Rounding, ...] = ()


def step_of(stage: Stage) -> Step | None:
    """The step that a stage repeats; None for a stage that does not repeat a single step."""
    if isinstance(stage, Parted) and isinstance(stage.partition, All):
        inner = step_of(stage.body)
        return None if inner is None or stage.rounding is None else replace(inner, last=(*inner.last, stage.rounding))
    if not stage.repeats_one_step:
        return None
    runs = parts_of(stage, Runs)
    return Step(stage, stage.period if runs is None else runs.every, stage.accumulator)


def unit_of_step(plan: Plan, stage: Stage, sums: Format, length: int) -> Unit:
    """A stage of a plan on `length` products as a unit, whose c (of format `sums`) is the running sum."""
    return unit_of_plan(plan.with_result(Products(stage, Element("c")), c=sums), length)


def around(plan: Plan, node: Node) -> Node:
    """A part of a plan's result as an expression over the plan's sums of products: each sum becomes a `Given` node
    with the sum's place in `plan.sums`."""

    def leaf(part: Node) -> Node | None:
        return Given(plan.sums.index(part), part.stage.d) if isinstance(part, Products) else None

    return replaced(node, leaf)
