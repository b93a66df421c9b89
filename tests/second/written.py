"""Theorems as a document of plain data (forms, nodes and goals), by which an independent program can check them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

from mmaprobe.queries.kernel.bounds.enclosures import Facts, NoOverflow
from mmaprobe.queries.kernel.bounds.forms import Form
from mmaprobe.queries.kernel.questions.steps import PlanAt
from mmaprobe.queries.kernel.questions.windows import Windowed, unit_in
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.nodes.node import Node, walk
from mmaprobe.smtmodel.units.unit import Unit


class Written:
    """A unit, and theorems about it: nodes and formats are numbered, theorems premises first."""

    def __init__(self, unit: Unit | PlanAt) -> None:
        self.nodes = {node: number for number, node in enumerate(walk(unit.result))}
        self.formats: dict[Format, int] = {}
        self.conditions: dict[NoOverflow, int] = {}
        self.theorems: dict[Theorem, int] = {}
        self.document: dict[str, Any] = {
            "unit": {name: self._plain(getattr(unit, name)) for name in "abcd"} | self._about(unit),
            "nodes": [],
            "formats": [],
            "conditions": [],
            "theorems": [],
            "states": [],
        }
        self._list(list(self.nodes))

    def _about(self, unit: Any) -> dict[str, Any]:
        """What a document says of its unit beside the formats of a, b, c and d."""
        operands = {name: self._plain(unit.formats.get(name)) for name in ("random", "draws")}
        operands["scale"] = self._plain(unit.scale)
        return operands | {"length": unit.length, "result": self.nodes[unit.result], "scales": unit.scales}

    def stating(self, roots: Sequence[Theorem]) -> dict[str, Any]:
        """The document, which states these theorems."""
        for root in roots:
            for theorem in self.walked(root):
                if theorem not in self.theorems:
                    self.theorems[theorem] = len(self.theorems)
                    self.document["theorems"].append(self._theorem(theorem))
        self.document["states"] = [self.theorems[root] for root in roots]
        self.document["formats"] = [self._fields(fmt) for fmt in self.formats]
        return self.document

    def restated(self, value: Any, formats: Sequence[Format]) -> Any:
        """A value as plain data, as in a document with these formats."""
        self.formats = {fmt: number for number, fmt in enumerate(formats)}
        return self._fields(value)

    def walked(self, root: Theorem) -> Iterator[Theorem]:
        """A theorem and what it rests on, as far as the document has it."""
        return root.walk()

    def _theorem(self, theorem: Theorem) -> dict[str, Any]:
        goal = {"is": type(theorem.goal).__name__} | self._fields(theorem.goal)
        premises = [self.theorems[premise] for premise in theorem.premises]
        found = {"rule": theorem.rule, "premises": premises, "goal": goal}
        if theorem.rule == "rewritten":
            found["name"] = theorem.word
        return found

    def _number(self, node: Node) -> int:
        """The number of a node; one that is not of the unit comes after the unit's own."""
        if node not in self.nodes:
            new = [part for part in walk(node) if part not in self.nodes]
            self.nodes |= {part: len(self.nodes) + k for k, part in enumerate(new)}
            self._list(new)
        return self.nodes[node]

    def _list(self, nodes: Sequence[Node]) -> None:
        self.document["nodes"] += [{"kind": node.kind} | self._fields(node) for node in nodes]

    def _fields(self, value: Any) -> dict[str, Any]:
        found = {one.name: getattr(value, one.name) for one in fields(value)}
        return {name: self._plain(part) for name, part in found.items() if not isinstance(part, Unit)}

    def _plain(self, value: Any) -> Any:
        """Fractions as text, forms as their parts, nodes and formats as their numbers."""
        match value:
            case Node():
                return self._number(value)
            case Format():
                return self.formats.setdefault(value, len(self.formats))
            case Form():
                return [[str(factor), self._plain(sorted(atom))] for atom, factor in value.parts.items()]
            case Facts():
                bounds = {name: part for name, part in self._fields(value).items() if name != "known"}
                names = (
                    "least",
                    "most",
                    "head",
                    "digits",
                    "grid",
                    "bits",
                    "interval",
                    "formats",
                )  # of which the second one speaks
                return bounds | {name: self._plain(getattr(value.known, name)) for name in names}
            case NoOverflow():
                if value not in self.conditions:
                    self.conditions[value] = len(self.conditions)
                    self.document["conditions"].append(self._fields(value))
                return self.conditions[value]
            case Fraction():
                return str(value)
            case frozenset():
                return sorted(map(self._plain, value), key=repr)
            case tuple() | list() | range():
                return [self._plain(item) for item in value]
        return self._fields(value) if is_dataclass(value) else value


def written(unit: Unit | Windowed, theorems: Sequence[Theorem]) -> dict[str, Any]:
    """The document that states theorems about a unit, on all inputs or on those in windows, as it is read."""
    document = Written(unit_in(unit)).stating(theorems)
    if isinstance(unit, Windowed):
        document["unit"]["windows"] = unit.windows
    found: dict[str, Any] = json.loads(json.dumps(document))
    return found
