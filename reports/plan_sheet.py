"""The numerical data sheet of a plan: how its stages divide K, its units, and the proved bound of its error."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from mmaprobe.documents.prove import PlanErrorBound
from mmaprobe.queries.plans.bound_report import lengths_text, whole_text
from mmaprobe.reports.datasheet import Sheet, SheetLine, special_values
from mmaprobe.reports.words import operands_text
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.plans import Chain, Parted, Plan, Stage, Then
from mmaprobe.smtmodel.plans.joins import rounding_words
from mmaprobe.smtmodel.plans.lowering import unit_of_plan
from mmaprobe.smtmodel.plans.plantext import step_text, words_text
from mmaprobe.smtmodel.plans.words import PLAIN

PLAN = "plan"  # the basis of lines that are read off the plan


def sheet_of_plan(plan: Plan, name: str, bound: PlanErrorBound) -> Sheet:
    """The sheet of a plan. `name`: the sheet's title; `bound`: the document of `prove --property error-bound`."""
    basis = "; ".join(text for text in (plan.evidence, plan.source) if text) or "its file names no evidence"
    sheet = Sheet(name, [plan.reference], basis)
    step, roundings = step_text(plan)
    period = math.lcm(*(products.stage.period for products in plan.sums))
    sheet.lines = [
        *([SheetLine("About", plan.about, PLAN)] if plan.about else []),
        SheetLine("Formats", operands_text(plan), PLAN),
        *(SheetLine(f"Elements of {side}", f"rounded to {rounding_words(how)} first", PLAN)
          for side, how in (("A", plan.convert_a), ("B", plan.convert_b)) if how is not None),
        *(SheetLine(f"Word {name}", text, PLAN) for name, text in words_text(plan).items()),
        *(SheetLine("Unit", f"{x.reference}, {counted(x.length, 'product')} at a time", PLAN) for x in plan.models),
        *(SheetLine("Sum of the products", text, PLAN) for text in _sums(plan)),
        SheetLine("Result", step, PLAN),
        *(SheetLine(f"Rounding {name}", text, PLAN) for name, text in roundings.items()),
        SheetLine("K without a tail", _whole(plan, period), PLAN),
        *(SheetLine(what, text, f"evaluated at K = {period}")
          for what, text in special_values(Model(plan.reference, unit_of_plan(plan, period)))),
        *_bounds(bound),
    ]  # fmt: skip
    return sheet


def _whole(plan: Plan, period: int) -> str:
    """The numbers of products that leave no product over. A stage may take some products once, before it repeats."""
    stages = {products.stage for products in plan.sums}
    repeats = {stage.partition.repeats(stage) if isinstance(stage, Parted) else (0, period) for stage in stages}
    (first, every), *others = repeats
    if period == 1 or all(isinstance(stage, Chain) for stage in stages):
        return f"multiples of {period}"
    if others or not first or every == period:
        return f"every multiple of {period}, perhaps others"
    return f"{first} and a multiple of {every}"


def _sums(plan: Plan) -> Iterator[str]:
    """The stages in words, the outermost first; equal ones in a row once, with their number."""
    every = [one for products in plan.sums for one in stage_words(products.stage)]
    for text, run in groupby(f"left over: {one.text}" if one.place == "left over" else one.text for one in every):
        count = len(list(run))
        yield text if count == 1 else f"{text}; so {count} times"


@dataclass(frozen=True)
class StageWords:
    """One stage in words. `place`: whether it is the outermost stage, takes the products of the stage before it, or
    takes the products left over."""

    place: Literal["outermost", "inside", "left over"]
    text: str

    def __str__(self) -> str:
        """The text, after the stage's place unless the stage is outermost."""
        return self.text if self.place == "outermost" else f"{self.place}: {self.text}"


def stage_words(stage: Stage) -> Iterator[StageWords]:
    """A stage and its inner stages in words, the outermost first."""
    yield StageWords("outermost", _words(stage))
    bodies = len(stage.bodies) if isinstance(stage, Then) else 0 if isinstance(stage, Chain) else 1
    for number, part in enumerate(stage.parts):
        for one in stage_words(part):
            inside = number < bodies and one.place != "left over"
            yield StageWords("inside" if inside else "left over", one.text)


def _words(stage: Stage) -> str:
    """One stage without its inner stages."""
    if isinstance(stage, Parted):
        return stage.words()
    if isinstance(stage, Then):
        return f"the same products {len(stage.bodies)} times, from the sum before each time: by each of what follows"
    assert isinstance(stage, Chain)
    length = stage.model.length
    tail = ", a last short tile filled up with zeros" if length > 1 else ""
    tail = tail if stage.tail is None else ", products that fill no tile by themselves"
    tiles = f"tiles of {length} products in order" if length > 1 else "one product after another"
    words = "" if stage.words == PLAIN else ", of words of the elements"
    return f"{tiles}{words}, each result the next one's addend{tail}"


def _bounds(bound: PlanErrorBound) -> Iterator[SheetLine]:
    lemmas = counted(len(bound.lemmas), "lemma")
    by = f"proved; {lemmas} about the datapath by solvers; {', '.join(bound.premises)}"
    if (formula := bound.formula) is not None:
        yield SheetLine(f"Error, {lengths_text(formula)}", whole_text(formula), by)
    for size in bound.sizes:
        near = "" if size.nearest is None else f"; an input comes to {size.nearest.ratio:.2f} of it"
        yield SheetLine(f"Error, K = {size.length}", size.bound, f"proved{near}")
    for most in bound.largest or ():
        yield SheetLine(f"Error, K = {most.length}", most.bound, f"proved; {most.premises}")
    if bound.verdict == "unknown":
        yield SheetLine("Error against the exact sum", "no bound is proved", str(bound.reason))
