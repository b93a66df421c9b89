"""The loop of a plan: a step that takes a fixed number of products from one sum to the next."""

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
    """A step that takes `period` products from one sum to the next: on every multiple of `period` products, the stage
    that repeats it is this step repeated from the stage's start, and then `last`, the roundings of the result."""

    stage: Stage
    period: int
    sums: Format
    last: tuple[Rounding, ...] = ()


def step_of(stage: Stage) -> Step | None:
    """The step that a stage repeats; None for a stage that keeps several sums."""
    if isinstance(stage, Parted) and isinstance(stage.partition, All):
        inner = step_of(stage.body)
        return None if inner is None or stage.rounding is None else replace(inner, last=(*inner.last, stage.rounding))
    if not stage.repeats_one_step:
        return None
    runs = parts_of(stage, Runs)
    return Step(stage, stage.period if runs is None else runs.every, stage.accumulator)


def unit_of_step(plan: Plan, stage: Stage, sums: Format, length: int) -> Unit:
    """A stage of a plan for some number of products, as a unit whose c is any sum so far."""
    return unit_of_plan(plan.with_result(Products(stage, Element("c")), c=sums), length)


def around(plan: Plan, node: Node) -> Node:
    """A part of a plan's result as an expression over its sums of products, each replaced by a given number (its place
    among the sums)."""

    def leaf(part: Node) -> Node | None:
        return Given(plan.sums.index(part), part.stage.d) if isinstance(part, Products) else None

    return replaced(node, leaf)
