"""Cross-checking: every lemma of a proof is proved again by an independent engine."""

from __future__ import annotations

import time
from dataclasses import replace

from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.solvers.asking import SolverFaultError
from mmaprobe.queries.solvers.contract import Answer
from mmaprobe.queries.tactics.records import Lemma

CONFIRMERS = ("z3", "bitwuzla", "cvc5")  # the engines asked, the fastest first
SHARE, LEAST = 1.5, 4.0  # time for confirmation: this multiple of the proof's time, and at least these seconds


def confirm(lemmas: list[Lemma], options: Options, spent: float) -> list[Lemma]:
    """The lemmas, each with the answer of a second engine where time allows; the proof took `spent` seconds.

    The first round gives each lemma a quarter of the time that is left, so that a hard one leaves time for the others.
    Lemmas with the same query text are proved once. Raises SolverFaultError if two engines contradict each other.
    """
    allowed = max(LEAST, SHARE * spent)
    if options.timeout is not None:
        allowed = min(allowed, options.timeout - spent)
    if options.deadline is not None:
        allowed = min(allowed, options.deadline - time.monotonic())
    deadline = options.clock() + allowed
    texts = {lemma.query.text: lemma for lemma in lemmas}
    said: dict[str, Answer] = {}
    for round_ in range(len(CONFIRMERS)):
        for text, lemma in texts.items():
            left = deadline - options.clock()
            if text in said or left <= 0:
                continue
            answer = _second_answer(lemma, options, left / 4 if round_ == 0 else left, round_)
            if answer is not None:
                said[text] = answer
    return [replace(lemma, confirmed=said.get(lemma.query.text)) for lemma in lemmas]


def _second_answer(lemma: Lemma, options: Options, seconds: float, round_: int) -> Answer | None:
    others = [engine for engine in CONFIRMERS if engine != lemma.answer.engine]
    engine = others[min(round_, len(others) - 1)]
    answer = options.ask(lemma.query, seconds, f"{lemma.name}: cross-checked by {engine}", engine)[0]
    if answer.status == "sat":
        raise SolverFaultError(f"{lemma.answer} and {answer} contradict each other")
    return answer if answer.status == "unsat" else None
