"""Rules called with arguments of all kinds: what each made of them, which side condition refused, what is false."""

from __future__ import annotations

import ast
import inspect
import random
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

from benchmarks.rules.crossing import RecentCalls
from benchmarks.rules.numbers import Unchecked
from mmaprobe.queries.kernel import closed
from mmaprobe.queries.kernel.equality.rewriting import REWRITES
from mmaprobe.queries.kernel.errors import OpenLemmaError, RuleError
from mmaprobe.queries.kernel.theorem import RULES, Theorem
from mmaprobe.smtmodel.base.errors import ParameterError

Site = tuple[str, int]  # the module's file and the line of what refuses
KERNEL = ("mmaprobe.queries.kernel.",)
CROSSED = 2  # calls with another argument after each that makes a theorem,
PLENTY = 4000  # unless there were as many calls of the rule before
SHARED = ("errors", "theorem", "arguments")  # modules whose refusals are those of every rule


@dataclass
class Tally:
    """What one rule did. `unchecked`: theorems that no window of inputs decides (`Unchecked`); `broken`:
    calls that ended neither in a theorem nor in a refusal."""

    theorems: int = 0
    refused: Counter[Site] = field(default_factory=Counter)
    false: list[str] = field(default_factory=list)
    broken: Counter[str] = field(default_factory=Counter)
    unchecked: int = 0

    @property
    def instances(self) -> int:
        return self.theorems + self.refused.total()

    @property
    def enough(self) -> int:
        """As many instances, if a tenth of them are theorems."""
        return min(self.instances, 10 * self.theorems)


Meaning = Callable[[Any, random.Random], Iterator[str]]


class Campaign:
    """Calls of rules, each with its outcome. `seed` is that of what is drawn now. Each call that makes a theorem is
    followed by some with an argument exchanged (crossing.py)."""

    def __init__(self, meanings: Mapping[type, Meaning]) -> None:
        self.meanings = meanings
        self.tallies: dict[str, Tally] = {}
        self._known: tuple[str, dict[Any, str | None]] = "", {}
        self.begin("")

    def begin(self, part: str) -> None:
        """A part, which knows nothing of what was called in others."""
        self.seed, self.rng, self.recent = part, random.Random(part), RecentCalls()

    def tally(self, name: str) -> Tally:
        return self.tallies.setdefault(name, Tally())

    def false(self) -> list[str]:
        return [f"{name}, seed {text}" for name, own in self.tallies.items() for text in own.false]

    def call(self, name: str, *arguments: Any, check: bool = True, **named: Any) -> Theorem | None:
        """The theorem of a rule, its goal held against its meaning; None where the rule refuses."""
        theorem = self._called(name, arguments, named, check)
        if theorem is not None and check:
            self.recent.add(theorem)
            for _ in range(CROSSED if self.tally(name).instances < PLENTY else 0):
                changed = self.recent.changed(theorem, self.rng)
                made = None if changed is None else self._called(name, (), changed)
                if made is not None:
                    self.recent.add(made)
        return theorem

    def _called(
        self, name: str, arguments: tuple[Any, ...], named: Mapping[str, Any], check: bool = True
    ) -> Theorem | None:
        own = self.tally(name)
        try:
            theorem = RULES[name](*arguments, **named)
        except (RuleError, ParameterError) as error:  # of a node that cannot be, the latter
            own.refused[site_of(error.__traceback__)] += 1
            return None
        except Exception as error:
            own.broken[_error_text(error)] += 1
            return None
        own.theorems += 1
        if check:
            self.hold(name, theorem.goal)
        return theorem

    def attempt(self, name: str, make: Callable[[], Any]) -> None:
        """What an object, that a rule is about, refuses to be."""
        try:
            make()
        except RuleError as error:
            self.tally(name).refused[site_of(error.__traceback__)] += 1

    def hold(self, name: str, goal: Any) -> None:
        """A goal against its meaning."""
        own = self.tally(name)
        try:
            reason = self._reason(goal)
        except Unchecked:
            own.unchecked += 1
            return
        except Exception as error:
            own.broken[_error_text(error)] += 1
            return
        if reason is not None:
            own.false.append(f"{self.seed}: {goal.statement()}: {reason}")

    def _reason(self, goal: Any) -> str | None:
        """Why a goal is false, if it is; worked out once for each goal of a seed that can be remembered."""
        if self._known[0] != self.seed:
            self._known = self.seed, {}
        known, meaning = self._known[1], self.meanings[type(goal)]
        try:
            if goal in known:
                return known[goal]
        except TypeError:  # with forms, which are mappings
            return next(meaning(goal, random.Random(self.seed)), None)
        known[goal] = next(meaning(goal, random.Random(self.seed)), None)
        return known[goal]

    def rewrite(self, name: str, scope: Any, node: Any) -> Any:
        """What a rule of rewriting puts in place of a node; None, with the place of its refusal, if it says nothing."""
        own, function = self.tally(REWRITES[name].__name__), REWRITES[name]
        with _returns(function) as last:
            found = function(scope, node)
        if found is None:
            own.refused[last[0]] += 1
        return found


def _error_text(error: Exception) -> str:
    file, line = site_of(error.__traceback__)
    return f"{type(error).__name__}: {error} ({Path(file).name}:{line})"


def site_of(traceback: TracebackType | None) -> Site:
    """The innermost statement of an error: where it was raised."""
    assert traceback is not None
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback.tb_frame.f_code.co_filename, traceback.tb_lineno


@contextmanager
def _returns(function: Callable[..., Any]) -> Iterator[list[Site]]:
    """Where a function, called once within, returned: a list with one place."""
    code, last = function.__code__, list[Site]()

    def own(frame: FrameType, event: str, argument: object) -> Any:
        if event == "return":
            last[:] = [(code.co_filename, frame.f_lineno)]
        return own

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code is not code:
            return None
        frame.f_trace_lines = False
        return own

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield last
    finally:
        sys.settrace(before)


# -- the side conditions of a rule


@dataclass(frozen=True)
class Refusal:
    """A statement that refuses: from a first line to a last one of a file."""

    file: str
    first: int
    last: int
    text: str

    def holds(self, site: Site) -> bool:
        return site[0] == self.file and self.first <= site[1] <= self.last


def functions_of(rule: Callable[..., Any]) -> list[FunctionType]:
    """A rule and the functions of the rules' modules that it calls, directly or through others."""
    waiting, found = [inspect.unwrap(rule)], dict[CodeType, FunctionType]()
    while waiting:
        function = waiting.pop()
        if not isinstance(function, FunctionType) or function.__code__ in found:
            continue
        found[function.__code__] = function
        for name in _names(function.__code__):
            value = inspect.unwrap(function.__globals__[name]) if name in function.__globals__ else None
            module = getattr(value, "__module__", None) or ""
            if not module.startswith(KERNEL) or module.rsplit(".", 1)[-1] in SHARED:
                continue
            if isinstance(value, type):
                members = [getattr(member, "fget", member) for member in vars(value).values()]
                waiting += [inspect.unwrap(member) for member in members if callable(member)]
            elif callable(value) and getattr(value, "__name__", "") not in closed.RULES:
                waiting.append(value)
    return list(found.values())


def _names(code: CodeType) -> set[str]:
    return set(code.co_names).union(*(_names(part) for part in code.co_consts if isinstance(part, CodeType)))


@cache
def refusals(name: str) -> tuple[Refusal, ...]:
    """The statements by which a rule, or what it calls, refuses; of a rule of rewriting, those that say nothing."""
    if name in closed.REWRITES:
        (function,) = (own for own in REWRITES.values() if own.__name__ == name)
        return tuple(_statements(function, returns=True))
    own = (refusal for function in functions_of(RULES[name]) for refusal in _statements(function, returns=False))
    return tuple(dict.fromkeys(own))


def _statements(function: Callable[..., Any], returns: bool) -> Iterator[Refusal]:
    try:
        lines, start = inspect.getsourcelines(function)
    except (OSError, TypeError):  # a method that a dataclass made
        return
    file = function.__code__.co_filename
    for node in ast.walk(ast.parse(textwrap.dedent("".join(lines)))):
        if returns and isinstance(node, ast.Return) and _may_be_none(node.value):
            yield Refusal(file, start + node.lineno - 1, start + (node.end_lineno or 0) - 1, ast.unparse(node))
        if not returns and isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            kind = ast.unparse(node.exc.func)
            if kind in (RuleError.__name__, OpenLemmaError.__name__):
                text = ast.unparse(node.exc.args[-1]).removeprefix("f")[1:-1]
                yield Refusal(file, start + node.lineno - 1, start + (node.end_lineno or 0) - 1, text)


def _may_be_none(value: ast.expr | None) -> bool:
    if isinstance(value, ast.IfExp):
        return _may_be_none(value.body) or _may_be_none(value.orelse)
    return isinstance(value, ast.Constant) and value.value is None


def never_failed(name: str, tally: Tally) -> list[Refusal]:
    """The side conditions of a rule that nothing failed."""
    return [one for one in refusals(name) if not any(one.holds(site) for site in tally.refused)]
