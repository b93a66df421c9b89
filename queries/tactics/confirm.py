"""Cross-checking: every lemma of a proof is proved again by an independent engine."""

from __future__ import annotations

import time
from dataclasses import replace

from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.solvers.asking import SolverFaultError
from mmaprobe.queries.solvers.contract import Answer
from mmaprobe.queries.tactics.records import Lemma

CONFIRMERS = ("z3", "bitwuzla", "cvc5")  # the engines asked, the fastest first
#: processor seconds for confirmation: this multiple of the proof's time, and at least this many
SHARE, LEAST = 1.5, 4.0
PATIENCE = 8.0  # seconds by the clock for each of these processor seconds, as on a machine with much else to do


def confirm(lemmas: list[Lemma], options: Options, spent: float) -> list[Lemma]:
    """The lemmas, each with the answer of a second engine where time allows; the proof took `spent` seconds.

    The first round gives each lemma a quarter of the time that is left, so that a hard lemma leaves time for the
    others. Processor seconds of the engines are counted, so that a busy machine confirms what an idle machine does.
    Lemmas with the same query text are proved once. Raises SolverFaultError if two engines contradict each other.
    """
    allowed, most = max(LEAST, SHARE * spent), [PATIENCE * max(LEAST, SHARE * spent)]
    if options.timeout is not None:
        most.append(options.timeout - spent)
    if options.deadline is not None:
        most.append(options.deadline - time.monotonic())
    end = options.clock() + min(most)
    texts = {lemma.query.text: lemma for lemma in lemmas}
    confirmations: dict[str, Answer] = {}
    for round_ in range(len(CONFIRMERS)):
        for text, lemma in texts.items():
            left, began = end - options.clock(), time.monotonic()
            if text in confirmations or min(left, allowed) <= 0:
                continue
            share = 0.25 if round_ == 0 else 1.0
            answer = _second_answer(lemma, options, left * share, min(left, allowed) * share, round_)
            allowed -= min(answer.seconds, time.monotonic() - began)  # a stored answer tells the seconds of its run
            if answer.status == "unsat":
                confirmations[text] = answer
    return [replace(lemma, confirmed=confirmations.get(lemma.query.text)) for lemma in lemmas]


def _second_answer(lemma: Lemma, options: Options, seconds: float, processor: float, round_: int) -> Answer:
    others = [engine for engine in CONFIRMERS if engine != lemma.answer.engine]
    engine = others[min(round_, len(others) - 1)]
    engines = options.engines(seconds, f"{lemma.name}: cross-checked by {engine}", engine, processor=processor)
    answer = engines.answers(lemma.query)[0]
    if answer.status == "sat":
        raise SolverFaultError(f"{lemma.answer} and {answer} contradict each other")
    return answer
