"""Lemmas settled by engines: a second engine is asked too, and proved lemmas are kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import ParamSpec, TypeVar

from mmaprobe.queries.kernel.lemmas import Lemma, exhausted, settled
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.solvers.asking import Engines
from mmaprobe.queries.tactics.confirm import CONFIRMERS, LEAST, PATIENCE, SHARE
from mmaprobe.queries.tactics.records import Lemma as ProofLemma
from mmaprobe.smtmodel.base.errors import FaultError

Params = ParamSpec("Params")
Result = TypeVar("Result")
TAKEN = 20.0  # seconds that a lemma's proof is taken to have needed, for the time of a second engine


def result_or_none(rule: Callable[Params, Result], *arguments: Params.args, **named: Params.kwargs) -> Result | None:
    """The result of a rule; None where the rule refuses."""
    with suppress(RuleError):
        return rule(*arguments, **named)
    return None


class Settled:
    """Settles lemmas: by evaluating all inputs where they are few, or by an engine, and another one if `confirmed`.

    `seconds`: for one lemma, within the time of the options. `needed`: a lemma that does not hold contradicts a rule,
    and raises FaultError; else the rule that needs the lemma does not apply. `asked`: the lemmas that engines proved.
    """

    def __init__(self, options: Options, confirmed: bool = True, seconds: float = 30.0, needed: bool = True) -> None:
        self.options, self.confirmed, self.seconds, self.needed = options, confirmed, seconds, needed
        self.deadline = None if options.timeout is None else options.clock() + options.timeout
        self.known: dict[Lemma, Theorem | None] = {}
        self.asked: list[ProofLemma] = []

    def late(self) -> bool:
        """Whether the time of the options is over."""
        return self.deadline is not None and self.options.clock() > self.deadline

    @property
    def asks(self) -> bool:
        """Whether engines have time for an answer; else only stored answers count."""
        return self.options.timeout != 0

    @property
    def open(self) -> list[Lemma]:
        """The lemmas that were asked for and are not proved."""
        return [goal for goal, theorem in self.known.items() if theorem is None]

    def __call__(self, goal: Lemma) -> Theorem | None:
        if goal not in self.known:
            self.known[goal] = self._settled(goal)
        return self.known[goal]

    def all_of(self, goals: Sequence[Lemma]) -> list[Theorem] | None:
        """The theorems of several lemmas; None if one of the lemmas is not proved."""
        proved = []
        for goal in goals:
            if (theorem := self(goal)) is None:
                return None
            proved.append(theorem)
        return proved

    def _settled(self, goal: Lemma) -> Theorem | None:
        with suppress(RuleError):
            return exhausted(goal)
        left = self.seconds if self.deadline is None else self.deadline - self.options.clock()
        engines = self.options.engines(max(0.0, min(self.seconds, left)), goal.statement())
        others = self._others(goal, engines)
        try:
            theorem = settled(goal, engines, others)
        except RuleError:
            answer = engines.answered_queries[0].answer
            if answer.status == "sat" and self.needed:
                raise FaultError(f"{answer} contradicts a rule: {goal.statement()}") from None
            return None
        (own,) = engines.answered_queries
        second = next(
            (one.answer for other in others for one in other.answered_queries if one.answer.status == "unsat"), None
        )
        self.asked.append(ProofLemma(goal.statement(), 0, own.query, own.answer, confirmed=second))
        return theorem

    def _others(self, goal: Lemma, engines: Engines) -> list[Engines]:
        """The engines that may confirm: the last of them has most of the time, in processor seconds."""
        if not self.confirmed:
            return []
        allowed, most = max(LEAST, SHARE * TAKEN), math.inf
        if self.options.timeout is not None:
            allowed = min(allowed, self.options.timeout - TAKEN)
        if self.deadline is not None:
            most = self.deadline - self.options.clock()
        *early, last = CONFIRMERS
        limits = dict.fromkeys(early, max(0.0, allowed / 4)) | {last: max(0.0, allowed)}
        return [replace(engines, solver=engine, seconds=max(0.0, min(PATIENCE * limits[engine], most)),
                        processor=limits[engine], answered_queries=[],
                        name=f"{engines.name}: cross-checked by {engine}")
                for engine in CONFIRMERS]  # fmt: skip
