"""Units as the text of a unit file, which unitfile.py reads back as equal ones."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import yaml

from smtmodel.errors import ParameterError
from smtmodel.formats import FORMATS, Format, is_spelling
from smtmodel.nodes import (
    Constant,
    Cut,
    Each,
    Element,
    ExactSum,
    FusedSum,
    Gate,
    GridSum,
    Index,
    Literal,
    Node,
    Product,
    Repeat,
    Round,
    Running,
    Scale,
)
from smtmodel.nodes.element import OPERANDS
from smtmodel.nodes.node import walk
from smtmodel.nodes.repeat import Places
from smtmodel.nodes.round import Rounding
from smtmodel.unit import Unit, closed_steps

VARIABLES = "ijkl"  # the loop variable of each level, as it is written


def unit_text(unit: Unit) -> str:
    """The text of a unit, which `parse_unit` reads back as an equal one. Raises ParameterError for one that no file
    says: of a plan whose units read their inputs in different ways, or with too many loops within one another."""
    return _Writer(unit).text()


def step_texts(unit: Unit) -> dict[str, str]:
    """The roundings and the steps of a unit as they are written, by name."""
    writer = _Writer(unit)
    return writer.rounding_texts() | writer.step_texts()


def _variable(level: int) -> str:
    """The loop variable of a level."""
    return VARIABLES[level - 1] if level <= len(VARIABLES) else f"loop{level}"


class _Writer:
    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.names: dict[Node, str] = {node: name for name, node in unit.names.items()}
        for number, node in enumerate((n for n in closed_steps(unit.result) if n not in self.names), start=1):
            self.names[node] = f"step{number}"
        self.order = [node for node in walk(unit.result) if node in self.names]
        self.roundings = self._named_roundings()
        self.open: list[int] = []  # the levels of the repetitions around what is written

    def _named_roundings(self) -> dict[Rounding, str]:
        found = dict.fromkeys(node.rounding for node in walk(self.unit.result) if isinstance(node, Round))
        if len(found) == 1:
            return dict.fromkeys(found, "r")
        return {rounding: f"r{number}" for number, rounding in enumerate(found, start=1)}

    def text(self) -> str:
        unit = self.unit
        formats = {name: getattr(unit, name).name for name in "abcd"}
        data: dict[str, Any] = {"unit": unit.reference}
        data |= {key: getattr(unit, key) for key in ("about", "source", "evidence") if getattr(unit, key)}
        used = [unit.a, unit.b, unit.c, *([unit.scale] if unit.scale else []), *(how.format for how in self.roundings)]
        used += [node.format for node in walk(unit.result) if isinstance(node, Literal)]
        if own := {fmt.name: _own_text(fmt) for fmt in used if not (fmt.name in FORMATS or is_spelling(fmt.name))}:
            data["own_formats"] = own
        data |= {"formats": formats | ({"scale": unit.scale.name} if unit.scale else {}), "length": unit.length}
        if unit.scale:
            data["scale_block"] = unit.scale_block
        if inputs := self._inputs():
            data["inputs"] = inputs
        data["roundings"], data["steps"] = self.rounding_texts(), self.step_texts()
        return yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=118, allow_unicode=True)

    def _inputs(self) -> dict[str, str]:
        """How inputs are read, where not as they are."""
        elements = {node for node in walk(self.unit.result) if isinstance(node, Element) and not node.is_factor}
        reads: dict[str, str] = {}
        for operand in OPERANDS[:3]:
            ways = {node.subnormals for node in elements if node.operand == operand}
            if len(ways) > 1:
                raise ParameterError(operand, "its elements are read in several ways, and a unit file has one")
            reads |= dict.fromkeys([str(operand)] if ways else [], next(iter(ways), "keep"))
        zeros = {node.positive_zeros for node in elements}
        if len(zeros) > 1:
            raise ParameterError("zeros", "some elements are read as +0 where they are -0, and a unit file says all")
        inputs: dict[str, str] = {}
        if set(reads.values()) - {"keep"}:
            inputs = {"subnormals": next(iter(reads.values()))} if len(set(reads.values())) == 1 else reads
        return inputs | ({"zeros": "positive"} if True in zeros else {})

    def rounding_texts(self) -> dict[str, str]:
        return {name: f"round({self._rounding(how)})" for how, name in self.roundings.items()}

    def step_texts(self) -> dict[str, str]:
        steps = {self.names[node]: self._body(node) for node in self.order if node is not self.unit.result}
        return steps | {"d": self._body(self.unit.result)}

    def _rounding(self, how: Rounding) -> str:
        return ", ".join([how.format.name, how.mode, *_changed(how, ("overflow", "subnormals", "zero"))] + (
            [] if how.nan is None else [f"nan=0x{how.nan:x}"]))  # fmt: skip

    def _node(self, node: Node) -> str:
        return self.names[node] if node in self.names else self._body(node)

    def _index(self, index: Index) -> str:
        parts = [_variable(level) if factor == 1 else f"{factor}*{_variable(level)}"
                 for level, factor in index.factors]  # fmt: skip
        parts += [str(index.offset)] if index.offset or not parts else []
        return " + ".join(parts) if len(parts) > 1 else parts[0]

    def _body(self, node: Node) -> str:
        match node:
            case Constant():
                return "-0" if node.negative else "+0"
            case Literal():
                return f"number(0x{node.pattern:x}, {node.format.name})"
            case Element():
                return "c" if node.index is None else f"{node.operand}[{self._index(node.index)}]"
            case Running():
                return "acc" if node.level == self.open[-1] else f"{_variable(node.level)}.acc"
            case Product():
                left, right = self._node(node.left), self._node(node.right)
                changed = _changed(node, ("normalised", "limit"))
                return f"product({', '.join([left, right, *changed])})" if changed else f"{left} * {right}"
            case Gate():
                return f"gate({self._node(node.term)}, {'-' if node.minus_zero else '+'}0)"
            case ExactSum():
                return f"exact({', '.join(map(self._node, node.items))})"
            case FusedSum():
                bits = node.fraction_bits
                words = [f"F={bits}" if isinstance(bits, int) else f"F={_listed(bits)}"]
                words += [f"carry={node.carry_bits}"] if node.carry_bits is not None else []
                words += _changed(node, ("rounding", "sticky", "zeros", "least"))
                words += [f"{word}={_listed(value)}" for word in ("floors", "reach") if (value := getattr(node, word))]
                return f"fused({', '.join([*map(self._node, node.items), *words])})"
            case GridSum():
                words = [f"F={_listed(node.fraction_bits)}", *_changed(node, ("rounding", "frame"))]
                words += [f"{word}={_listed(value)}" for word in ("floors", "reach") if (value := getattr(node, word))]
                return f"grid({', '.join([*map(self._node, node.items), *words])})"
            case Cut():
                words = [self._node(node.term), str(node.bits), node.mode, *_changed(node, ("least",))]
                return f"cut({', '.join(words)})"
            case Round():
                return f"{self.roundings[node.rounding]}({self._node(node.term)})"
            case Scale():
                return f"scale({', '.join(map(self._node, node.operands))})"
            case Repeat():
                loop = f"{_variable(node.level)} in {_places(node.places)}"
                start = self._node(node.start)
                self.open.append(node.level)
                body = self._node(node.body)
                self.open.pop()
                return f"repeat({loop}, {start}, {body})"
            case Each():
                return (
                    self._slice(node)
                    or f"each({_variable(node.level)} in {_places(node.places)}, {self._node(node.body)})"
                )
        raise TypeError(f"no text for {type(node).__name__}")

    def _slice(self, node: Each) -> str | None:
        """`a[0:16] * b[0:16]`, where a range of terms is one."""
        body = node.body
        if not (isinstance(body, Product) and isinstance(node.places, range)):
            return None
        if node.places.start or node.places.step != 1:
            return None
        sides = []
        for factor in (body.left, body.right):
            if not (isinstance(factor, Element) and factor.index is not None):
                return None
            factors = dict(factor.index.factors)
            step = factors.pop(node.level, 0)
            if step < 1:
                return None
            low = Index(factor.index.offset, tuple(factors.items()))
            high = Index(factor.index.offset + step * len(node.places), tuple(factors.items()))
            every = f":{step}" if step > 1 else ""
            sides.append(f"{factor.operand}[{self._index(low)}:{self._index(high)}{every}]".replace(" ", ""))
        changed = _changed(body, ("normalised", "limit"))
        return f"product({', '.join([*sides, *changed])})" if changed else " * ".join(sides)


def _own_text(fmt: Format) -> dict[str, Any]:
    written = {key: getattr(fmt, key) for key in ("exponent", "fraction", "bias", "specials")}
    return written if fmt.signed else {**written, "signed": False}


def _changed(value: Any, names: tuple[str, ...]) -> list[str]:
    """The parameters that differ from their defaults, as they are written."""
    defaults = {item.name: item.default for item in fields(value)}
    found = ((name, getattr(value, name)) for name in names)
    return [f"{name}={str(own).lower()}" for name, own in found if own != defaults[name]]


def _listed(values: tuple[int | None, ...]) -> str:
    return f"[{', '.join('none' if value is None else str(value) for value in values)}]"


def _places(places: Places) -> str:
    if not isinstance(places, range):
        return f"[{', '.join(map(str, places))}]"
    end = places[-1] + places.step
    if places.step != 1:
        return f"range({places.start}, {end}, {places.step})"
    return f"range({places.start}, {end})" if places.start else f"range({end})"


class _Dumper(yaml.SafeDumper):
    """Short mappings on one line, as in a file written by hand."""


def _mapping(dumper: yaml.SafeDumper, data: dict[str, Any]) -> yaml.Node:
    short = all(isinstance(value, str) and len(value) < 20 for value in data.values())
    return dumper.represent_mapping("tag:yaml.org,2002:map", data, flow_style=short)


_Dumper.add_representer(dict, _mapping)
