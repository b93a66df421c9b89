"""The check of a rule's arguments against the types of its parameters.

A class means that class and no other: an instance of a subclass may behave otherwise than the rule's proof assumes.
A family (nodes, lemmas, ...) means any of its classes that the project itself defines. Every part of an argument must
also be a plain value or an instance of a class of the project (`whole`). A sequence becomes a tuple, so that the
arguments of a theorem's rule cannot change afterwards.
"""

from __future__ import annotations

import collections.abc
import functools
import inspect
import types
import typing
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from mmaprobe.queries.kernel import closed
from mmaprobe.queries.kernel.errors import RuleError

#: families, each by the name of the base class of its members
FAMILIES = (
    "mmaprobe.queries.kernel.terms.facts.Basis", "mmaprobe.queries.kernel.questions.problem.Problem",
    "mmaprobe.smtmodel.algorithms.reductions.Reduction", "mmaprobe.smtmodel.nodes.node.Node",
    "mmaprobe.smtmodel.plans.stages.Stage", "pysmt.fnode.FNode",
)  # fmt: skip
LEMMA = "mmaprobe.queries.kernel.lemmas.Lemma"
SEQUENCES = (collections.abc.Sequence, collections.abc.Iterable)
#: classes whose instances are accepted without a check of their parts, such as theorems
OPAQUE = (
    "mmaprobe.queries.kernel.terms.facts.Basis", "mmaprobe.queries.kernel.theorem.Theorem",
    "mmaprobe.queries.solvers.asking.Engines", "pysmt.fnode.FNode",
)  # fmt: skip
PLAIN = frozenset({int, str, bool, Fraction, types.NoneType, range})

_checked: WeakValueDictionary[int, Any] = WeakValueDictionary()  # values that are whole, by their identity
Params = ParamSpec("Params")
Result = TypeVar("Result")


class Signature:
    """The parameters of a rule, with their types."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._signature = inspect.signature(function)
        self._names = tuple(self._signature.parameters)
        self._needed = {name for name, one in self._signature.parameters.items() if one.default is one.empty}

    @cached_property
    def _hints(self) -> dict[str, Any]:
        """The types by parameter. They are read at the first call, when all modules whose classes they name are
        loaded."""
        return typing.get_type_hints(self._function)

    def bind(self, *args: Any, **named: Any) -> dict[str, Any]:
        """The arguments by parameter, sequences as tuples. Raises RuleError for an argument of another type, and
        TypeError for arguments that do not match the parameters."""
        given, hints = dict(zip(self._names, args, strict=False)), self._hints
        if len(args) > len(self._names) or given.keys() & named.keys() or not self._needed <= {*given, *named} <= {
            *self._names
        }:  # fmt: skip
            self._signature.bind(*args, **named)  # its TypeError says what is wrong
        given |= named
        for name, value in given.items():
            try:
                given[name] = checked(value, hints[name])
            except RuleError as error:
                raise RuleError(f"{self._function.__name__}: {name}: {error}") from None
        return given


def checked(value: Any, hint: Any) -> Any:
    """A value in the form in which a rule gets it, with sequences as tuples. Raises RuleError for a value of another
    type than `hint`."""
    kind, arguments = _opened(hint)
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
        return value if _name(hint) in OPAQUE else whole(value)
    raise RuleError(f"no rule takes a {hint}")  # such as a function


@cache
def _opened(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """The generic type of a type hint, and its arguments."""
    return typing.get_origin(hint), typing.get_args(hint)


def _one_of(value: Any, hints: tuple[Any, ...]) -> Any:
    for hint in hints:
        try:
            return checked(value, hint)
        except RuleError:
            if type(value) is hint:  # of the class, but with a part that is refused
                raise
    names = " or ".join(getattr(hint, "__name__", str(hint)) for hint in hints)
    raise RuleError(f"a {type(value).__name__} is not a {names}")


def _tuple(value: Any, hints: tuple[Any, ...]) -> Any:
    if type(value) is not tuple:
        raise RuleError(f"a {type(value).__name__} is not a tuple")
    if len(hints) == 2 and hints[1] is Ellipsis:
        return tuple(checked(one, hints[0]) for one in value)
    if len(value) != len(hints):
        raise RuleError(f"a tuple of {len(value)}, where {len(hints)} values are needed")
    return tuple(checked(one, hint) for one, hint in zip(value, hints, strict=True))


Value = TypeVar("Value")


def whole(value: Value) -> Value:
    """The value, if each part of it is a number, a text, a tuple, a frozen set, or an object of a class of the project
    (not of a namesake or a subclass from elsewhere). Fields that comparison ignores (`compare` of a field) are left
    out. Each object is checked once. Raises RuleError for another part."""
    waiting, new, seen = [value], list[Any](), set[int]()
    while waiting:
        one: Any = waiting.pop()
        kind = type(one)
        if kind in PLAIN:
            continue
        if kind is tuple or kind is frozenset:
            waiting += [part for part in one if type(part) not in PLAIN]
        elif id(one) not in seen and _checked.get(id(one)) is not one:
            if not closed.is_own(kind):
                raise RuleError(f"a {kind.__name__} within a {type(value).__name__} is no value of the project's")
            new.append(one)  # a reference: no other object gets its id
            seen.add(id(one))
            waiting += _parts_of(one)
    for one in new:
        with suppress(TypeError):  # a named tuple takes no weak reference
            _checked[id(one)] = one
    return value


def _parts_of(value: Any) -> list[Any]:
    """The items of a tuple, or the values of an object's fields. A read-only mapping in a field is replaced by its keys
    and values."""
    if isinstance(value, tuple):
        return list(value)
    values = [getattr(value, field.name) for field in fields(value) if field.compare] if is_dataclass(value) else []
    return [
        part for one in values for part in ([*one, *one.values()] if type(one) is types.MappingProxyType else [one])
    ]


_forget: list[Callable[[], None]] = []  # the functions that clear the caches of `remembered`


def forget() -> None:
    """Clear the caches of all functions under `remembered`."""
    for clear in _forget:
        clear()


def remembered(size: int | None = None) -> Callable[[Callable[Params, Result]], Callable[Params, Result]]:
    """A decorator that caches the last `size` results of a function. The arguments must be `whole`: an object of a
    foreign class could claim to equal an argument, and its result would be taken for that of the argument."""

    def keeping(function: Callable[Params, Result]) -> Callable[Params, Result]:
        keeper = functools.lru_cache(size, typed=True)(function)
        _forget.append(keeper.cache_clear)
        known: Callable[..., Result] = keeper

        @functools.wraps(function)
        def asked(*given: Params.args, **named: Params.kwargs) -> Result:
            whole(given)
            return known(*given, **named)

        return asked

    return keeping


def _name(kind: type[Any]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _is(kind: type[Any], hint: type[Any]) -> bool:
    name = _name(hint)
    if name == LEMMA:
        return closed.is_lemma(kind)
    return kind is hint or (name in FAMILIES and issubclass(kind, hint) and closed.is_own(kind))
