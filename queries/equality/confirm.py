"""Second words: another engine's answer on every lemma of a proof."""

from __future__ import annotations

from dataclasses import replace

from queries.equality.lemmas import Lemma
from queries.search.distinguish import Options, SolverFaultError
from queries.solvers.contract import Answer

SECONDS = ("z3", "bitwuzla", "cvc5")  # who is asked for a second word, the likeliest first
SHARE, LEAST = 1.5, 4.0  # confirmation may take so many times as long as the proof, or so many seconds


def confirm(lemmas: list[Lemma], options: Options, spent: float) -> list[Lemma]:
    """The lemmas with a second engine's word on each, as far as the time goes; `spent` seconds went into the proof.

    Every lemma is asked briefly first, so that one that a second engine cannot do costs the others nothing; lemmas of
    one text are asked once.
    """
    allowed = max(LEAST, SHARE * spent)
    if options.timeout is not None:
        allowed = min(allowed, options.timeout - spent)
    deadline = options.clock() + allowed
    texts = {lemma.query.text: lemma for lemma in lemmas}
    said: dict[str, Answer] = {}
    for round_ in range(len(SECONDS)):
        for text, lemma in texts.items():
            left = deadline - options.clock()
            if text in said or left <= 0:
                continue
            answer = _second(lemma, options, left / 4 if round_ == 0 else left, round_)
            if answer is not None:
                said[text] = answer
    return [replace(lemma, confirmed=said.get(lemma.query.text)) for lemma in lemmas]


def _second(lemma: Lemma, options: Options, seconds: float, round_: int) -> Answer | None:
    others = [engine for engine in SECONDS if engine != lemma.answer.engine]
    engine = others[min(round_, len(others) - 1)]
    answer = options.ask(lemma.query, seconds, f"{lemma.name}: {engine} is asked as well", engine)[0]
    if answer.status == "sat":
        raise SolverFaultError(f"{lemma.answer} and {answer} contradict each other")
    return answer if answer.status == "unsat" else None
