"""The log of a proof: which rules were called with what, as plain data, and the same rules called again.

A record is the name of a rule and its arguments. Units are those of files beside the log; nodes are numbered, those of
the units first, then those that theorems speak of, in their order; other values are in a table, each once. What stands
in no table cannot be written, and what a rule refuses when it is called again is no theorem.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from queries.kernel import closed
from queries.kernel.arguments import SEQUENCES
from queries.kernel.errors import RuleError
from queries.kernel.forms import Factor, Form
from queries.kernel.steps import Step, recorded
from queries.kernel.theorem import RULES, Theorem
from queries.solvers.asking import Engines
from smtmodel.nodes.node import Node, walk
from smtmodel.plans.plan import Plan
from smtmodel.unit import Unit

SCHEMA = 2
#: modules whose classes stand for values of arguments, beside lemmas and nodes
VALUES = (
    "queries.kernel.ranges", "queries.kernel.steps",
    "smtmodel.formats", "smtmodel.nodes.round", "smtmodel.rounding",
)  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """What a log is about, of files beside it: units; or a plan, with its units, and the numbers of products (None:
    any) for which its steps are spoken of."""

    units: tuple[Unit, ...]
    plan: Plan | None = None
    lengths: tuple[int | None, ...] = ()

    @staticmethod
    def of_plan(plan: Plan, lengths: Iterable[int | None]) -> Subject:
        return Subject(tuple(dict.fromkeys(model.unit for model in plan.models)), plan, tuple(lengths))

    @property
    def steps(self) -> Iterator[Step]:
        """The steps of the plan's sums, those that a step is made of before it."""
        stages = [] if self.plan is None else list(dict.fromkeys(one.stage for one in self.plan.sums))
        for length in self.lengths:
            for stage in stages:
                assert self.plan is not None
                yield from steps_below(recorded(self.plan, stage, length))


def steps_below(step: Step) -> Iterator[Step]:
    """Every step that a step is made of, each once, before it; and the step."""
    seen: dict[Step, None] = {}
    waiting = [(step, iter(_made_of(step)))]
    while waiting:
        current, parts = waiting[-1]
        for part in parts:
            if part not in seen:
                waiting.append((part, iter(_made_of(part))))
                break
        else:
            seen[current] = None
            waiting.pop()
    return iter(seen)


def _made_of(step: Step) -> Iterator[Step]:
    for field in fields(step):
        value = getattr(step, field.name)
        yield from (one for one in (value if isinstance(value, tuple) else (value,)) if isinstance(one, Step))


class _Tables:
    """What records refer to by number."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.units = list(subject.units)
        self.nodes: dict[Node, int] = {}
        self.theorems: list[Theorem] = []
        self.steps = {step: number for number, step in enumerate(dict.fromkeys(subject.steps))}
        for unit in self.units:
            self.spoken_of(unit.result)
        if subject.plan is not None:
            self.spoken_of(subject.plan.result)

    def add(self, theorem: Theorem) -> None:
        """A theorem, and the nodes that its goal speaks of."""
        self.theorems.append(theorem)
        goal: Any = theorem.goal
        for field in fields(goal):
            if isinstance(node := getattr(goal, field.name), Node):
                self.spoken_of(node)

    def spoken_of(self, node: Node) -> None:
        if node not in self.nodes:
            for part in walk(node):
                self.nodes.setdefault(part, len(self.nodes))


class Writer(_Tables):
    """Writes theorems about a subject."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(subject)
        self.values: dict[object, int] = {}
        self.table: list[Any] = []
        self.places: dict[Theorem, int] = {}
        self.records: list[dict[str, Any]] = []

    def stating(self, roots: Sequence[Theorem]) -> dict[str, Any]:
        """The log of these theorems and of all that they rest on. Raises RuleError for an argument that no table
        has."""
        for root in roots:
            for theorem in root.walk():
                if theorem not in self.places:
                    given = {name: value for name, value in theorem.arguments.items() if not _asks(value)}
                    arguments = {name: self.plain(value) for name, value in given.items()}
                    self.records.append({"rule": theorem.rule} | arguments)
                    self.places[theorem] = len(self.theorems)
                    self.add(theorem)
        return {"schema": SCHEMA, "values": self.table, "records": self.records,
                "states": [self.places[root] for root in roots]}  # fmt: skip

    def plain(self, value: Any) -> Any:
        match value:
            case None | bool() | int() | str():
                return value
            case Fraction():
                return str(value)
            case Theorem():
                return self.places[value]
            case Node():
                if value not in self.nodes:
                    raise RuleError(f"log: a {value.kind} that is neither of the units nor of a theorem")
                return self.nodes[value]
            case Unit():
                return self.units.index(value)
            case Step():
                return self.steps[value]
            case Plan():
                if value is not self.subject.plan:
                    raise RuleError("log: another plan")
                return 0
            case Form():
                return [[self.plain(factor), sorted(map(self.plain, atom))] for atom, factor in value.parts.items()]
            case range():
                return [value.start, value.stop, value.step]
            case tuple() | list():
                return [self.plain(one) for one in value]
            case frozenset():
                return sorted(map(self.plain, value), key=repr)
        if not is_dataclass(value) or type(value).__name__ not in classes():
            raise RuleError(f"log: a {type(value).__name__} cannot be written")
        if value not in self.values:
            own = {field.name: self.plain(getattr(value, field.name)) for field in fields(value)}
            self.values[value] = len(self.table)
            self.table.append({"is": type(value).__name__} | own)
        return {"value": self.values[value]}


class Replay(_Tables):
    """The theorems of a log, made again by their rules. `engines` answer what rules ask."""

    def __init__(self, document: Mapping[str, Any], subject: Subject, engines: Engines) -> None:
        super().__init__(subject)
        self._steps = list(self.steps)
        self.document, self.engines = document, engines
        self.values: list[Any] = []
        self._numbered: list[Node] = []

    def run(self) -> list[Theorem]:
        """The theorems that the log states. Raises RuleError, which names the record at fault."""
        try:
            for entry in self.document["values"]:
                self.values.append(self._built(entry))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise RuleError(f"value {len(self.values)}: cannot be read: {type(error).__name__} {error}") from None
        for number, record in enumerate(self.document["records"]):
            try:
                self.add(self._made(record))
            except RuleError as error:
                raise RuleError(f"theorem {number}: {error}") from None
            except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
                raise RuleError(f"theorem {number}: cannot be read: {type(error).__name__} {error}") from None
        try:
            return [self.theorems[_number(place, len(self.theorems))] for place in self.document["states"]]
        except ValueError as error:
            raise RuleError(f"what is stated: {error}") from None

    def _made(self, record: Mapping[str, Any]) -> Theorem:
        name = record["rule"]
        if not isinstance(name, str) or name not in RULES:
            raise RuleError(f"there is no rule {name}")
        given = {key: value for key, value in record.items() if key != "rule"}
        hints = hints_of(RULES[name])
        arguments = {key: self.value(value, hints[key]) for key, value in given.items()}
        if "engines" in hints:
            arguments["engines"] = self.engines
        return RULES[name](**arguments)

    def value(self, plain: Any, hint: Any) -> Any:
        """A value of this type, from plain data. Raises an error of Python's for data of another form."""
        if isinstance(plain, dict):
            return self.values[_number(plain["value"], len(self.values))]
        kind, inner = typing.get_origin(hint), typing.get_args(hint)
        if kind in (typing.Union, types.UnionType):
            others = [one for one in inner if one is not types.NoneType]
            return None if plain is None and len(others) < len(inner) else self.value(plain, others[0])
        if kind in (*SEQUENCES, list):
            return tuple(self.value(one, inner[0]) for one in _list(plain))
        if kind is tuple:
            whole = [inner[0]] * len(plain) if len(inner) == 2 and inner[1] is Ellipsis else inner
            return tuple(self.value(one, own) for one, own in zip(_list(plain), whole, strict=True))
        if kind is frozenset:
            return frozenset(self.value(one, inner[0]) for one in _list(plain))
        if kind is typing.Literal or hint in (bool, int, str):
            return plain
        if hint is Fraction:
            return Fraction(plain)
        if hint is Theorem:
            return self.theorems[_number(plain, len(self.theorems))]
        if hint is Unit:
            return self.units[_number(plain, len(self.units))]
        if hint is Plan:
            return (self.subject.plan,)[_number(plain, 1)]
        if isinstance(hint, type) and issubclass(hint, Step):
            return self._steps[_number(plain, len(self._steps))]
        if hint is Form:
            return Form({frozenset(tuple(map(_factor, monomial)) for monomial in atom): Fraction(factor)
                         for factor, atom in _list(plain)})  # fmt: skip
        if hint is range:
            return range(*plain)
        if isinstance(hint, type) and issubclass(hint, Node):
            return self._node(plain)
        raise TypeError(f"{plain!r} is no {hint}")

    def _node(self, number: Any) -> Node:
        if len(self._numbered) < len(self.nodes):
            self._numbered = list(self.nodes)
        return self._numbered[_number(number, len(self._numbered))]

    def _built(self, entry: Mapping[str, Any]) -> Any:
        kind = classes()[entry["is"]]
        hints = hints_of(kind)
        given = {name: self.value(value, hints[name]) for name, value in entry.items() if name != "is"}
        return kind(**given)


@cache
def classes() -> Mapping[str, type[Any]]:
    """The classes of values of arguments, by name."""
    every = {getattr(import_module(module), name) for name, module in closed.LEMMAS.items()}
    for name in VALUES:
        module = import_module(name)
        every |= {one for one in vars(module).values() if isinstance(one, type) and one.__module__ == name}
    return {one.__name__: one for one in sorted(every, key=repr) if is_dataclass(one)}


@lru_cache
def hints_of(what: Callable[..., Any]) -> Mapping[str, Any]:
    """The types of the parameters of a rule, or of the fields of a class."""
    return typing.get_type_hints(getattr(what, "__wrapped__", what))


def _asks(value: object) -> bool:
    """Whether an argument is engines, which a replay has of its own."""
    return isinstance(value, Engines) or (isinstance(value, tuple) and any(isinstance(one, Engines) for one in value))


def _factor(plain: Any) -> Factor:
    name, offset, factors, raised = plain
    return Factor(name, offset, tuple(map(tuple, factors)), raised)


def _number(value: Any, count: int) -> int:
    if type(value) is not int or not 0 <= value < count:
        raise ValueError(f"{value!r} is no number below {count}")
    return value


def _list(value: Any) -> Iterable[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return value
