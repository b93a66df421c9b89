"""Attempts to prove equality: their time, their end, and the lemmas that they keep."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.confirm import confirm
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.smtmodel.base.errors import OutOfTimeError

Question = TypeVar("Question", bound=Problem)


class Attempt(ABC, Generic[Question]):
    """One attempt to prove the two sides of a problem equal. `confirm`: whether a second engine is asked the lemmas of
    a proof, too."""

    def __init__(self, problem: Question, options: Options, confirm: bool) -> None:
        self.problem, self.options, self.confirm = problem, options, confirm
        self.proof, self.start = Proof(problem), options.clock()

    def run(self) -> Proof:
        """The proof. If the time ends, or at an interrupt, the proof has the lemmas proved so far."""
        try:
            self._work()
            if self.confirm and self.proof.verdict == "equal":
                self.proof.lemmas = confirm(self.proof.lemmas, self.options, self.options.clock() - self.start)
        except OutOfTimeError:
            pass
        except KeyboardInterrupt:
            self.proof.interrupted = True
        self.proof.seconds = self.options.clock() - self.start
        return self.proof

    @abstractmethod
    def _work(self) -> None:
        """Look for lemmas, and conclude from them. Raises OutOfTimeError."""

    def _remaining(self, share: float = 1.0) -> float | None:
        """A share of the seconds that are left; None without a limit."""
        limit, deadline = self.options.timeout, self.options.deadline
        left = [] if limit is None else [limit - (self.options.clock() - self.start)]
        left += [] if deadline is None else [deadline - time.monotonic()]
        return max(0.0, min(left)) * share if left else None
