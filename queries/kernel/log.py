"""The log of a proof: writing the called rules and their arguments as plain data, and calling these rules again.

A record is the name of a rule and its arguments. Units, plans and claims are those of files beside the log. Nodes are
numbered: first the nodes of the units, then the nodes in the goals of theorems, in their order. Other values are in a
table, each once. A value outside these tables cannot be written, and a record that a rule refuses makes no theorem.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from functools import cache, lru_cache
from importlib import import_module
from io import StringIO
from typing import Any

from pysmt.environment import Environment
from pysmt.exceptions import PysmtException
from pysmt.fnode import FNode
from pysmt.smtlib.parser import SmtLibParser

from mmaprobe.queries.kernel import closed
from mmaprobe.queries.kernel.arguments import SEQUENCES, checked
from mmaprobe.queries.kernel.bounds.forms import Factor, Form
from mmaprobe.queries.kernel.errors import RuleError
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.steps import Step, Tile, recorded
from mmaprobe.queries.kernel.terms.same import SidesAgree, undiffering
from mmaprobe.queries.kernel.terms.undecided import Question
from mmaprobe.queries.kernel.theorem import RULES, Theorem
from mmaprobe.queries.solvers.asking import Engines
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.smtmodel.algorithms.assertion import Assertion
from mmaprobe.smtmodel.algorithms.parts import Part
from mmaprobe.smtmodel.algorithms.reductions import Reduction
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.terms import Maximum
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.nodes.node import Node, walk
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.stages import Stage
from mmaprobe.smtmodel.units.unit import Unit

SCHEMA = 1  # the version of the layout of a log, and of the documents beside it
NUMBER_LIMIT = 1 << 64  # the numbers of a log are below it: patterns of operands, numbers of theorems, counts
MOST_AT_ONCE = 1 << 20  # numbers that are arguments of a rule are below it, as the rule may take as many steps
_FRACTION = re.compile(r"-?[0-9]+(/[0-9]+)?")
#: modules whose classes stand for values of arguments, beside lemmas and nodes
VALUES = (
    *(f"{closed.KERNEL}.{file}" for file in ("cases.conditions", "equality.plan_units", "questions.problem",
                                             "datapath.ranges", "questions.recorded", "bounds.shares",
                                             "questions.steps", "cases.unreachable", "questions.windows")),
    "mmaprobe.smtmodel.algorithms.exact", "mmaprobe.smtmodel.arithmetic.formats", "mmaprobe.smtmodel.nodes.round",
    "mmaprobe.smtmodel.arithmetic.rounding",
)  # fmt: skip
#: values of the subject, which a log writes by their numbers; and the subject's attribute that lists them
NUMBERED = {Model: "models", Unit: "units", Plan: "plans", Stage: "stages", Problem: "problems",
            Assertion: "assertions", Part: "parts", Reduction: "reductions"}  # fmt: skip


@dataclass(frozen=True)
class Subject:
    """The subject of a log, all of it in files beside the log: models; plans, whose steps theorems name at the K in
    `lengths` (None: at any K); problems; a claim about algorithms; a reduction."""

    models: tuple[Model, ...] = ()
    plans: tuple[Plan, ...] = ()
    lengths: tuple[int | None, ...] = ()
    problems: tuple[Problem, ...] = ()
    assertions: tuple[Assertion, ...] = ()
    reductions: tuple[Reduction, ...] = ()

    @property
    def units(self) -> tuple[Unit, ...]:
        """The units that theorems may be about, each once: those of all models and plans, also without a NaN pattern;
        those of parts of claims; and those of partly filled tiles."""
        models = [*self.models, *(model for plan in self.plans for model in plan.models)]
        every = [one.unit for model in models for one in (model, model.any_nan)]
        for assertion in self.assertions:
            for part in assertion.shape.parts.values():
                with suppress(ParameterError):
                    every.append(part.unit(assertion.shape.factors, assertion.terms))
        every += [step.model.unit for step in self.steps if isinstance(step, Tile)]
        return tuple(dict.fromkeys(every))

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(part for assertion in self.assertions for part in assertion.shape.parts.values())

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages of all plans, each before the stages that it is made of."""
        stages, waiting = dict[Stage, None](), [product.stage for plan in self.plans for product in plan.sums]
        while waiting:
            stage = waiting.pop()
            stages[stage] = None
            waiting += stage.parts
        return tuple(stages)

    @property
    def steps(self) -> Iterator[Step]:
        """The steps of the plans' sums, each after the steps that it is made of. Sums without recorded steps, such as
        sums of words that share an exponent of a row, are left out."""
        for plan in self.plans:
            for length in self.lengths:
                for stage in dict.fromkeys(one.stage for one in plan.sums):
                    with suppress(RuleError):
                        yield from steps_below(recorded(plan, stage, length))


def steps_below(step: Step) -> Iterator[Step]:
    """The step and every step that it is made of, each once and after the steps that it is made of."""
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
    """The nodes, theorems, steps and other values that records refer to by number."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.nodes: dict[Node, int] = {}
        self.theorems: list[Theorem] = []
        self.steps = {step: number for number, step in enumerate(dict.fromkeys(subject.steps))}
        self.numbered = {kind: getattr(subject, name) for kind, name in NUMBERED.items()}
        for unit in subject.units:
            self.number_nodes(unit.result)
        for plan in subject.plans:
            self.number_nodes(plan.result)

    def add(self, theorem: Theorem) -> None:
        """Enter a theorem, and number the nodes in the fields of its goal."""
        self.theorems.append(theorem)
        goal: Any = theorem.goal
        for field in fields(goal):
            if isinstance(node := getattr(goal, field.name), Node):
                self.number_nodes(node)

    def number_nodes(self, node: Node) -> None:
        if node not in self.nodes:
            for part in walk(node):
                self.nodes.setdefault(part, len(self.nodes))


class Writer(_Tables):
    """Writes theorems about a subject. `wholes`: theorems that the sides of a problem agree, each of which the
    log proves by one question about the whole problem, without premises; the values: the form of maxima in it."""

    def __init__(self, subject: Subject, wholes: Mapping[Theorem, Maximum] | None = None) -> None:
        super().__init__(subject)
        self.wholes = wholes or {}
        self.terms: dict[FNode, str] = {}
        self.values: dict[object, int] = {}
        self.table: list[Any] = []
        self.places: dict[Theorem, int] = {}
        self.records: list[dict[str, Any]] = []

    def stating(self, roots: Sequence[Theorem]) -> dict[str, Any]:
        """The log of these theorems and of all theorems that they rest on. Raises RuleError for an argument that is in
        no table."""
        for root in roots:
            for theorem in root.walk(self.wholes):
                if theorem not in self.places:
                    self.records.append(self._record(theorem))
                    self.places[theorem] = len(self.theorems)
                    self.add(theorem)
        return {"schema": SCHEMA, "lengths": list(self.subject.lengths), "values": self.table,
                "records": self.records, "states": [self.places[root] for root in roots]}  # fmt: skip

    @property
    def terms_text(self) -> str:
        """The terms that records name, in SMT-LIB."""
        return Query((), (), tuple((name, term) for term, name in self.terms.items())).text

    def _record(self, theorem: Theorem) -> dict[str, Any]:
        if theorem in self.wholes:
            assert isinstance(theorem.goal, SidesAgree)
            asked = {"problem": theorem.goal.problem, "maximum": self.wholes[theorem]}
            return {"rule": undiffering.__name__} | {name: self.plain(value) for name, value in asked.items()}
        given = {name: value for name, value in theorem.arguments.items() if not _asks(value)}
        return {"rule": theorem.rule} | {name: self.plain(value) for name, value in given.items()}

    def plain(self, value: Any) -> Any:
        """A value as plain data: numbers, texts and lists of these. Raises RuleError for a value in no table."""
        match value:
            case None | bool() | int() | str():
                return value
            case Fraction():
                return str(value)
            case Theorem():
                return self.places[value]
            case Node():
                if value not in self.nodes:
                    raise RuleError(f"log: a node ({value.kind}) of no unit and no theorem")
                return self.nodes[value]
            case Step():
                return self.steps[value]
            case FNode():
                return self.terms.setdefault(value, f"term-{len(self.terms) + 1}")
            case Form():
                return [[self.plain(factor), sorted(map(self.plain, atom))] for atom, factor in value.parts.items()]
            case range():
                return [value.start, value.stop, value.step]
            case tuple() | list():
                return [self.plain(one) for one in value]
            case frozenset():
                return sorted(map(self.plain, value), key=repr)
        for kind, own in self.numbered.items():
            if isinstance(value, kind) and not (kind is Problem and value not in own):
                return _place(value, own)
        return {"value": self._number(value)}

    def _number(self, value: Any) -> int:
        """The number of a value in the table, to which a new value is added."""
        name = type(value).__name__
        if name not in classes():
            raise RuleError(f"log: a {name} cannot be written")
        key = value if _is_hashable(value) else _Unhashed(value)
        if key not in self.values:
            if isinstance(value, Inputs):
                own: Mapping[str, Any] = {"inputs": value.model_dump(mode="json")}
            elif isinstance(value, Question):
                own = {"assertion": self.plain(value.assertion), "whole": sorted(value.whole)}
            else:
                own = {one.name: self.plain(getattr(value, one.name)) for one in fields(value) if one.init}
            self.values[key] = len(self.table)
            self.table.append({"is": name, **own})
        return self.values[key]


class Replay(_Tables):
    """The theorems of a log, made again by their rules. `engines`: answer the queries of the rules; `terms`: the terms
    that records name, in SMT-LIB."""

    def __init__(self, document: Mapping[str, Any], subject: Subject, engines: Engines, terms: str = "") -> None:
        super().__init__(subject)
        self._text, self._terms = terms, dict[str, FNode]()
        self._steps = list(self.steps)
        self.document, self.engines = document, engines
        self.values: list[Any] = []
        self._numbered: list[Node] = []

    def run(self) -> list[Theorem]:
        """The theorems that the log states. Raises RuleError, which names the record at fault."""
        try:
            for entry in self.document["values"]:
                self.values.append(self._built(entry))
        except RuleError as error:
            raise RuleError(f"value {len(self.values)}: {error}") from None
        except (KeyError, TypeError, ValueError, IndexError, ParameterError) as error:
            raise RuleError(f"value {len(self.values)}: cannot be read: {type(error).__name__} {error}") from None
        for number, record in enumerate(self.document["records"]):
            try:
                self.add(self._made(record))
            except RuleError as error:
                raise RuleError(f"theorem {number}: {error}") from None
            except (KeyError, TypeError, ValueError, IndexError, AttributeError, ParameterError) as error:
                raise RuleError(f"theorem {number}: cannot be read: {type(error).__name__} {error}") from None
        try:
            return [self.theorems[_checked(place, len(self.theorems))] for place in self.document["states"]]
        except (ValueError, TypeError) as error:
            raise RuleError(f"the stated theorems: {error}") from None

    def _made(self, record: Mapping[str, Any]) -> Theorem:
        name = record["rule"]
        if not isinstance(name, str) or name not in rules():
            raise RuleError(f"there is no rule {name}")
        given = {key: value for key, value in record.items() if key != "rule"}
        hints = hints_of(RULES[name])
        arguments = {key: self.value(value, hints[key]) for key, value in given.items()}
        for value in arguments.values():
            if type(value) is int:
                _whole(value, MOST_AT_ONCE)
        if "engines" in hints:
            arguments["engines"] = self.engines
        return RULES[name](**arguments)

    def value(self, plain: Any, hint: Any) -> Any:
        """The value of the type `hint` that plain data stand for. Raises KeyError, TypeError, ValueError or IndexError
        for data of another form."""
        if isinstance(plain, dict):
            return self.values[_checked(plain["value"], len(self.values))]
        kind, inner = typing.get_origin(hint), typing.get_args(hint)
        if kind in (typing.Union, types.UnionType):
            others = [one for one in inner if one is not types.NoneType]
            if all(typing.get_origin(one) is typing.Literal for one in others):
                return checked(plain, hint)
            return None if plain is None and len(others) < len(inner) else self.value(plain, others[0])
        if kind in (*SEQUENCES, list):
            return tuple(self.value(one, inner[0]) for one in _list(plain))
        if kind is tuple:
            whole = [inner[0]] * len(plain) if len(inner) == 2 and inner[1] is Ellipsis else inner
            return tuple(self.value(one, own) for one, own in zip(_list(plain), whole, strict=True))
        if kind is frozenset:
            return frozenset(self.value(one, inner[0]) for one in _list(plain))
        if hint is int:
            return _whole(plain, NUMBER_LIMIT)
        if kind is typing.Literal or hint in (bool, str):
            return checked(plain, hint)
        if hint is Fraction:
            return _fraction(plain)
        if hint is Theorem:
            return self.theorems[_checked(plain, len(self.theorems))]
        if hint is Form:
            return Form({frozenset(tuple(map(_factor, monomial)) for monomial in atom): _fraction(factor)
                         for factor, atom in _list(plain)})  # fmt: skip
        if hint is range:
            return range(*(_whole(one, MOST_AT_ONCE) for one in _list(plain)))
        if hint is FNode:
            return self._terms[plain]
        if isinstance(hint, type):
            for own, values in ((Node, self._all_nodes), (Step, self._steps), *self.numbered.items()):
                if issubclass(hint, own):
                    return values[_checked(plain, len(values))]
        raise TypeError(f"{plain!r} is no {hint}")

    @property
    def _all_nodes(self) -> list[Node]:
        if len(self._numbered) < len(self.nodes):
            self._numbered = list(self.nodes)
        return self._numbered

    def _built(self, entry: Mapping[str, Any]) -> Any:
        kind: Any = classes()[entry["is"]]
        if kind is Inputs:
            return Inputs.model_validate(entry["inputs"])
        if kind is Question:
            question = Question(self.value(entry["assertion"], Assertion), frozenset(_list(entry["whole"])))
            self._terms = named_terms(self._text, question.carrier.environment)
            return question
        hints = hints_of(kind)
        return kind(**{name: self.value(value, hints[name]) for name, value in entry.items() if name != "is"})


@cache
def classes() -> Mapping[str, type[Any]]:
    """The classes of values of arguments, by name."""
    every: set[type[Any]] = {getattr(import_module(module), name) for name, module in closed.LEMMAS.items()}
    for name in VALUES:
        module = import_module(name)
        every |= {one for one in vars(module).values() if isinstance(one, type) and one.__module__ == name}
    kinds = [Inputs, Question, *(one for one in sorted(every, key=repr) if is_dataclass(one))]
    return {kind.__name__: kind for kind in kinds}


@cache
def rules() -> Mapping[str, Callable[..., Theorem]]:
    """Every rule of the kernel, by name. All modules with rules are loaded."""
    for module in closed.RULES.values():
        import_module(module)
    return RULES


@lru_cache
def hints_of(what: Any) -> Mapping[str, Any]:
    """The types of the parameters of a rule, or of the fields of a class."""
    return typing.get_type_hints(getattr(what, "__wrapped__", what))


def named_terms(text: str, environment: Environment) -> dict[str, FNode]:
    """The terms that a text in SMT-LIB defines, by name, as terms of `environment`. Raises ValueError for any other
    text."""
    try:
        script = SmtLibParser(environment).get_script(StringIO(text))
    except PysmtException as error:
        raise ValueError(f"not the terms of a log: {error}") from None
    return {str(command.args[0]): command.args[-1] for command in script.commands if command.name == "define-fun"}


def _is_hashable(value: object) -> bool:
    """Whether a value, with all its parts, can be a key."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class _Unhashed:
    """A key for a value that has no hash, as a part of it is a claim. The hash is that of the value's class."""

    value: object

    def __hash__(self) -> int:
        return hash(type(self.value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unhashed) and type(self.value) is type(other.value) and self.value == other.value


def _asks(value: object) -> bool:
    """Whether an argument is an engine list. It is not written, since a replay uses its own engines."""
    return isinstance(value, Engines) or (isinstance(value, tuple) and any(isinstance(one, Engines) for one in value))


def _place(value: object, among: Sequence[object]) -> int:
    """The number of a value in a list. Raises RuleError for a value outside the list."""
    for number, one in enumerate(among):
        if one is value or one == value:
            return number
    raise RuleError(f"log: a {type(value).__name__} that the files do not state")


def _factor(plain: Any) -> Factor:
    name, offset, factors, raised = _list(plain)
    if not isinstance(name, str) or type(raised) is not bool:
        raise TypeError(f"{plain!r} is no factor")
    pairs = ((_whole(level, MOST_AT_ONCE), _whole(stride, MOST_AT_ONCE)) for level, stride in _list(factors))
    return Factor(name, _whole(offset, MOST_AT_ONCE), tuple(pairs), raised)


def _whole(value: Any, most: int) -> int:
    """The value, if it is a whole number with a magnitude below `most`. Raises ValueError."""
    if type(value) is not int or not -most < value < most:
        raise ValueError(f"{str(value)[:40]} is no whole number below {most}")
    return value


def _fraction(plain: Any) -> Fraction:
    """The fraction of a text as a log writes it. A power of ten is refused (ValueError), since a short text with one
    may stand for too many digits."""
    if not isinstance(plain, str) or not _FRACTION.fullmatch(plain):
        raise ValueError(f"{str(plain)[:40]} is no fraction")
    return Fraction(plain)


def _checked(value: Any, count: int) -> int:
    """The value, if it is an index of a list of `count` items. Raises ValueError."""
    if type(value) is not int or not 0 <= value < count:
        raise ValueError(f"{value!r} is no number below {count}")
    return value


def _list(value: Any) -> Iterable[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return value
