"""What a rule may be called with: each argument is held against the type of its parameter.

A class means that class and no other: an instance of a subclass may behave otherwise than the rule's argument knows.
Of a family (nodes, lemmas, ...), any class is meant that the project itself defines. A sequence becomes a tuple, so
that what a theorem was made of cannot change afterwards.
"""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable
from functools import cached_property
from typing import Any

from queries.kernel import closed
from queries.kernel.errors import RuleError

#: families: the name of the class that its members have in common
FAMILIES = ("smtmodel.nodes.node.Node", "queries.kernel.facts.Basis", "smtmodel.algorithms.reductions.Reduction",
            "pysmt.fnode.FNode")  # fmt: skip
LEMMA = "queries.kernel.lemmas.Lemma"
SEQUENCES = (collections.abc.Sequence, collections.abc.Iterable)


class Signature:
    """The parameters of a rule, with their types."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._signature = inspect.signature(function)

    @cached_property
    def _hints(self) -> dict[str, Any]:
        """The types, read at the first call: a module's names are known once it is loaded."""
        return typing.get_type_hints(self._function)

    def bind(self, *args: Any, **named: Any) -> inspect.BoundArguments:
        """The arguments by parameter, sequences as tuples. Raises RuleError for one of another type, and TypeError for
        a parameter that there is not."""
        given = self._signature.bind(*args, **named)
        for name, value in given.arguments.items():
            try:
                given.arguments[name] = checked(value, self._hints[name])
            except RuleError as error:
                raise RuleError(f"{self._function.__name__}: {name}: {error}") from None
        return given


def checked(value: Any, hint: Any) -> Any:
    """A value as a rule gets it, if it is of this type. Raises RuleError."""
    kind, arguments = typing.get_origin(hint), typing.get_args(hint)
    if kind in (typing.Union, types.UnionType):
        return _one_of(value, arguments)
    if kind is typing.Literal:
        if type(value) is not str or value not in arguments:
            raise RuleError(f"{value!r} is none of {', '.join(map(repr, arguments))}")
        return value
    if kind in SEQUENCES:
        if isinstance(value, str | bytes) or not isinstance(value, collections.abc.Iterable):
            raise RuleError(f"a {type(value).__name__} is not a sequence")
        return tuple(checked(one, arguments[0]) for one in value)
    if kind is frozenset:
        if type(value) is not frozenset:
            raise RuleError(f"a {type(value).__name__} is not a frozenset")
        return frozenset(checked(one, arguments[0]) for one in value)
    if kind is tuple:
        return _tuple(value, arguments)
    if hint is types.NoneType or inspect.isclass(hint):
        if not _is(type(value), hint):
            raise RuleError(f"a {type(value).__name__} is not a {hint.__name__}")
        return value
    raise RuleError(f"no rule takes a {hint}")  # a function, above all


def _one_of(value: Any, hints: tuple[Any, ...]) -> Any:
    for hint in hints:
        try:
            return checked(value, hint)
        except RuleError:
            continue
    names = " or ".join(getattr(hint, "__name__", str(hint)) for hint in hints)
    raise RuleError(f"a {type(value).__name__} is not a {names}")


def _tuple(value: Any, hints: tuple[Any, ...]) -> Any:
    if type(value) is not tuple:
        raise RuleError(f"a {type(value).__name__} is not a tuple")
    if len(hints) == 2 and hints[1] is Ellipsis:
        return tuple(checked(one, hints[0]) for one in value)
    if len(value) != len(hints):
        raise RuleError(f"{len(value)} values are not {len(hints)}")
    return tuple(checked(one, hint) for one, hint in zip(value, hints, strict=True))


def _is(kind: type[Any], hint: type[Any]) -> bool:
    name = f"{hint.__module__}.{hint.__qualname__}"
    if name == LEMMA:
        return closed.is_lemma(kind)
    return kind is hint or (name in FAMILIES and issubclass(kind, hint) and closed.is_own(kind))
