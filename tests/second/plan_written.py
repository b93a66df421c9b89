"""Theorems about a plan as a document of plain data. Beside what a document of a unit has, it has the units that the
plan uses, the steps that theorems are about, and for each stage what it does with so many products, written down as it
is done: uses of units with the products that they read, roundings, and what is lost by them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from mmaprobe.queries.kernel.bounds.enclosures import Enclosed
from mmaprobe.queries.kernel.bounds.largest import OfLargest
from mmaprobe.queries.kernel.questions.steps import PlanAt, Step
from mmaprobe.queries.kernel.questions.windows import Windowed
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Element, Index, Node, Round
from mmaprobe.smtmodel.nodes.node import of_kind
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.engine import Engine
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.span import Span
from mmaprobe.smtmodel.plans.stages import Stage
from mmaprobe.smtmodel.plans.words import Words, word_at
from mmaprobe.smtmodel.units.unit import Unit
from tests.second.written import Written

OF_PLANS = PlanAt, Windowed, Plan
TURNS = 3  # of what a plan repeats any number of times
WIDEST = 12  # products of a sum by halves


class Done(Engine[int]):
    """What a stage does, each operation once, with its operands by number."""

    def __init__(self, document: WrittenPlan) -> None:
        self.document, self.made = document, dict[str, int]()
        self.nodes: list[list[Any]] = []

    def _node(self, *parts: Any) -> int:
        key = json.dumps(parts)
        if key not in self.made:
            self.made[key] = len(self.nodes)
            self.nodes.append(list(parts))
        return self.made[key]

    def begin(self) -> int:
        return self._node("begin")

    def zero(self, fmt: Format) -> int:
        return self._node("zero")

    def tile(self, model: Model, words: Words, span: Span, start: int) -> int:
        read = self.document.read(model, words)
        return self._node("tile", self.document.number_of(model.unit), read, start, span.places)

    def rounded(self, values: Sequence[int], rounding: Rounding) -> int:
        return self._node("rounded", list(values), self.document.plain(rounding))

    def lost(self, values: Sequence[int], total: int, rounding: Rounding) -> int:
        return self._node("lost", list(values), total, self.document.plain(rounding))

    def repeat(self, count: int, name: str, start: int, body: Callable[[Index, int], int]) -> int:
        for place in range(count):
            start = body(Index(place), start)
        return start

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        yield


class WrittenPlan(Written):
    """A plan for some K, or for any, and theorems about it."""

    def __init__(self, at: PlanAt | Windowed) -> None:
        self.at = at.unit if isinstance(at, Windowed) else at
        assert isinstance(self.at, PlanAt)
        self.plan: Plan = self.at.plan
        self.units: dict[Unit, int] = {}
        self.steps: dict[Step, int] = {}
        self.stages: dict[Stage, int] = {}
        self.more: dict[str, list[Any]] = {"units": [], "steps": [], "stages": []}
        self.windows = at.windows if isinstance(at, Windowed) else ()
        super().__init__(self.at)
        self.document |= self.more
        every = [tuple(self.read(chain.model, chain.words)) for chain in self.plan.chains]
        self.document["unit"]["pairs"] = list(map(list, dict.fromkeys(every)))

    def _about(self, unit: Any) -> dict[str, Any]:
        about = {"scale": self._plain(self.plan.scale), "random": None, "result": self.nodes[unit.result]}
        own = {"length": self.at.length, "growth": str(self.at.growth), "loops": self.at.loops}
        return about | own | {"windows": [[name, list(ends)] for name, ends in self.windows]}

    def stating(self, roots: Sequence[Theorem]) -> dict[str, Any]:
        found = super().stating(roots)
        for stage in self.stages:
            self.more["stages"].append(self._stage(stage))
        found["formats"] = [self._fields(fmt) for fmt in self.formats]
        return found

    def _theorem(self, theorem: Theorem) -> dict[str, Any]:
        if self.is_elsewhere(theorem):
            goal = {"is": type(theorem.goal).__name__} | self._fields(theorem.goal)
            return {"rule": "elsewhere", "premises": [], "goal": goal}
        return super()._theorem(theorem)

    @staticmethod
    def is_elsewhere(theorem: Theorem) -> bool:
        """Whether it is about a unit of the plan, and stands in a document of that."""
        return isinstance(getattr(theorem.goal, "unit", None), Unit)

    def walked(self, root: Theorem) -> Iterator[Theorem]:
        return root.walk(leaves=[one for one in root.walk() if self.is_elsewhere(one)])

    def number_of(self, unit: Unit) -> int:
        if unit not in self.units:
            self.units[unit] = len(self.units)
            own = {name: self._plain(getattr(unit, name)) for name in "abcd"}
            own |= {"length": unit.length, "scale_block": unit.scale_block}
            self.more["units"].append(own | {"result": self._number(unit.result)})
        return self.units[unit]

    def read(self, model: Model, words: Words) -> list[int]:
        """What a unit reads of an element of a, and of b: the element, or its word, flushed where the unit does so."""
        found = []
        for name, word in zip("ab", self.plan.read(words), strict=True):
            plain = Element(name, Index())
            node: Node = plain if word is None else word_at(word, plain, lambda shared: shared)
            own = [one for one in of_kind(model.unit.result, Element) if one.operand == name]
            worded = any(self.plan.read(chain.words)["ab".index(name)] is not None for chain in self.plan.chains)
            if worded and any(one.subnormals != "keep" for one in own):
                node = Round(node, Rounding(model.unit.formats[name], subnormals="flush_after"))
            found.append(self._number(node))
        return found

    def plain(self, value: Any) -> Any:
        return self._plain(value)

    def _plain(self, value: Any) -> Any:
        match value:
            case Step():
                if value not in self.steps:
                    plain = {"kind": type(value).__name__} | self._fields(value)
                    self.steps[value] = len(self.steps)
                    self.more["steps"].append(plain)
                return self.steps[value]
            case Stage():
                return self.stages.setdefault(value, len(self.stages))
            case Model():
                return self.number_of(value.unit)
            case Unit():
                return self.number_of(value)
        return super()._plain(value)

    def _fields(self, value: Any) -> dict[str, Any]:
        every = {one.name: getattr(value, one.name) for one in fields(value)}
        return {name: self._plain(part) for name, part in every.items() if not isinstance(part, OF_PLANS)}

    def _stage(self, stage: Stage) -> dict[str, Any]:
        """What a stage does with so many products: the K asked for, or the first ones that it takes."""
        length, repeats = self.at.length, self.at.repeats if self.at.length is None else None
        if length is not None:
            counts = [length]
        elif repeats is not None and repeats.width:
            counts = list(range(1, WIDEST))
        else:
            assert repeats is not None
            counts = [repeats.before + turns * repeats.period for turns in range(1, TURNS + 1)]
        records = []
        for count in counts:
            done = Done(self)
            result = stage.run(done, Span.of(count), done.begin())
            records.append({"count": count, "nodes": done.nodes, "result": result})
        return {"halves": bool(repeats and repeats.width), "records": records}


def plan_written(theorems: Sequence[Theorem]) -> dict[str, Any]:
    """The document that states bounds of one plan, as it is read."""
    (at,) = {one.goal.unit for one in theorems if isinstance(one.goal, Enclosed | OfLargest)}
    found: dict[str, Any] = json.loads(json.dumps(WrittenPlan(at).stating(theorems)))
    return found
