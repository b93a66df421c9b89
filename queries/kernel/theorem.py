"""The kernel: a theorem is made by a rule, from theorems, and by nothing else.

A rule is a function of this package marked with `rule`: it takes theorems and other arguments, checks its side
conditions, and returns the goal. A side condition that fails raises `RuleError`, and no theorem is made. The code that
searches for proofs (a tactic) is not trusted: it can only call rules. The rules are those of `closed` and no others;
each argument has the type that its parameter states (`arguments`), and none is a function of the tactic's.

The kernel does not guard against code that changes frozen objects (`object.__setattr__`): such code could change any
record of theorems, too. Certificates do guard against it: another process checks them from files (docs/trusted.md).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ParamSpec, Protocol
from weakref import WeakKeyDictionary

from mmaprobe.queries.kernel import closed
from mmaprobe.queries.kernel.arguments import Signature
from mmaprobe.queries.kernel.errors import OpenLemmaError as OpenLemmaError
from mmaprobe.queries.kernel.errors import RuleError as RuleError
from mmaprobe.queries.solvers.asking import AnsweredQuery

Params = ParamSpec("Params")


class Goal(Protocol):
    """The statement of a theorem."""

    def statement(self) -> str:
        """The statement in mathematical notation, on one line."""


_SEAL = object()
_MADE: WeakKeyDictionary[Theorem, Goal] = WeakKeyDictionary()  # the theorems that rules made, each with its goal


def is_theorem(value: object) -> bool:
    """Whether a value is a theorem that a rule made, unchanged."""
    return type(value) is Theorem and _MADE.get(value) is value.goal


@dataclass(frozen=True, eq=False, init=False)
class Theorem:
    """A goal that the rule named `rule` proved from the `premises`. `word`: the rule's further grounds, such as an
    engine's answer and that of the engine that confirmed it; `answered_query`: these answers, with the query;
    `arguments`: the arguments of the rule, by parameter, so that it can be called again."""

    goal: Goal
    rule: str
    premises: tuple[Theorem, ...]
    word: str
    answered_query: AnsweredQuery | None
    arguments: Mapping[str, object]

    def __init__(self, made: Made, rule: str, seal: object, arguments: Mapping[str, object]) -> None:
        if seal is not _SEAL:
            raise RuleError("a theorem is made by a rule")
        for name in ("goal", "premises", "word", "answered_query"):
            object.__setattr__(self, name, getattr(made, name))
        object.__setattr__(self, "rule", rule)
        object.__setattr__(self, "arguments", arguments)
        _MADE[self] = made.goal

    def walk(self, leaves: Container[Theorem] = ()) -> Iterator[Theorem]:
        """This theorem and all theorems that it rests on, each once, premises first. The premises of `leaves` are left
        out."""
        theorems: dict[int, Theorem] = {}
        waiting = [self]
        while waiting:  # without recursion: a theorem may rest on a long chain of others
            one = waiting[-1]
            missing = [] if one in leaves else [premise for premise in one.premises if id(premise) not in theorems]
            if missing and id(one) not in theorems:
                waiting += reversed(missing)
            else:
                theorems[id(one)] = one
                waiting.pop()
        return iter(theorems.values())


@dataclass(frozen=True)
class Made:
    """The conclusion of a rule, as the rule returns it."""

    goal: Goal
    premises: tuple[Theorem, ...] = ()
    word: str = ""
    answered_query: AnsweredQuery | None = None

    def resting_on(self, more: Iterable[Theorem]) -> Made:
        """The conclusion, with further premises."""
        return replace(self, premises=(*self.premises, *more))


RULES: dict[str, Callable[..., Theorem]] = {}  # every rule that was loaded, by name


def rule(function: Callable[Params, Made]) -> Callable[Params, Theorem]:
    """A decorator for a rule of inference, which must be in `closed.RULES`. The rule's docstring is its statement. An
    argument of another type than its parameter's, or a premise that is not a theorem, raises RuleError. So does a
    second rule of the same name, as logs refer to rules by name."""
    name = function.__name__
    if not closed.is_of(closed.RULES, function):
        raise RuleError(f"{function.__module__}.{function.__qualname__} is none of the kernel's rules")
    if name in RULES:
        raise RuleError(f"two rules are named {name}: rename {function.__module__}.{function.__qualname__}")
    signature = Signature(function)

    @functools.wraps(function)
    def infer(*args: Params.args, **named: Params.kwargs) -> Theorem:
        try:
            given = signature.bind(*args, **named)
        except TypeError as error:
            raise RuleError(f"{name}: {error}") from None
        made = function(**given)  # type: ignore[call-arg]
        if not all(map(is_theorem, made.premises)):
            raise RuleError(f"{name}: a premise is not a theorem")
        return Theorem(made, name, _SEAL, MappingProxyType(given))

    RULES[name] = infer
    return infer


def goal_of(theorem: Theorem, kind: type[Any], rule_name: str) -> Any:
    """The goal of a premise, which must be of this kind. Raises RuleError."""
    if not is_theorem(theorem) or type(theorem.goal) is not kind:
        raise RuleError(f"{rule_name}: a premise of another kind is needed: {kind.__name__}")
    return theorem.goal
