"""The kernel: a theorem is made by a rule, from theorems, and by nothing else.

A rule is a function of this package marked with `rule`: it takes theorems and what it is about, checks its side
conditions, and returns the goal. A side condition that fails raises `RuleError`, and no theorem is made. The code that
searches for proofs (a tactic) is not trusted: it can only call rules.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol

Params = ParamSpec("Params")


class RuleError(Exception):
    """A side condition of a rule that does not hold; the message says which, and where."""


class Goal(Protocol):
    """What a theorem states."""

    def statement(self) -> str:
        """The statement in mathematical notation, on one line."""


_SEAL = object()


@dataclass(frozen=True, eq=False, init=False)
class Theorem:
    """A goal that was proved: by the rule of that name from these premises. `word`: what else the rule rests on, such
    as an engine's answer and that of the engine that confirmed it."""

    goal: Goal
    rule: str
    premises: tuple[Theorem, ...]
    word: str

    def __init__(self, goal: Goal, rule: str, premises: tuple[Theorem, ...], word: str, seal: object) -> None:
        if seal is not _SEAL:
            raise RuleError("a theorem is made by a rule")
        for name, value in (("goal", goal), ("rule", rule), ("premises", premises), ("word", word)):
            object.__setattr__(self, name, value)

    def walk(self, leaves: Container[Theorem] = ()) -> Iterator[Theorem]:
        """This theorem and all that it rests on, each once, premises first; not what `leaves` rest on."""
        seen: set[int] = set()

        def visit(one: Theorem) -> Iterator[Theorem]:
            if id(one) not in seen:
                seen.add(id(one))
                for premise in () if one in leaves else one.premises:
                    yield from visit(premise)
                yield one

        return visit(self)


@dataclass(frozen=True)
class Made:
    """What a rule returns."""

    goal: Goal
    premises: tuple[Theorem, ...] = ()
    word: str = ""


RULES: dict[str, Callable[..., Theorem]] = {}  # every rule, by name


def rule(function: Callable[Params, Made]) -> Callable[Params, Theorem]:
    """A rule of inference. Its docstring is its statement; a premise that is not a theorem raises RuleError. So does a
    second rule of the same name, as proof trees refer to rules by name."""
    name = function.__name__
    if name in RULES:
        raise RuleError(f"two rules are named {name}: rename {function.__module__}.{function.__qualname__}")

    @functools.wraps(function)
    def infer(*args: Params.args, **named: Params.kwargs) -> Theorem:
        made = function(*args, **named)
        if not all(isinstance(premise, Theorem) for premise in made.premises):
            raise RuleError(f"{name}: a premise is not a theorem")
        return Theorem(made.goal, name, made.premises, made.word, _SEAL)

    RULES[name] = infer
    return infer


def goal_of(theorem: Theorem, kind: type[Any], rule_name: str) -> Any:
    """The goal of a premise, which must be of this kind. Raises RuleError."""
    if not isinstance(theorem, Theorem) or not isinstance(theorem.goal, kind):
        raise RuleError(f"{rule_name}: a premise of another kind is needed: {kind.__name__}")
    return theorem.goal
