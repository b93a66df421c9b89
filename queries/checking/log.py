"""The check of a certificate's log: every rule is called again, and the log must state what the files ask."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mmaprobe.queries.certificates.asked import bound_words, required_goals
from mmaprobe.queries.certificates.names import LOG, TERMS
from mmaprobe.queries.certificates.questions import read_document
from mmaprobe.queries.checking.finding import Finding, Texts, of_file
from mmaprobe.queries.kernel.log import Replay, Subject, Writer
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.solvers.asking import Engines, _certified
from mmaprobe.smtmodel.base.wording import counted


@of_file(LOG)
def log(texts: Texts, pieces: Sequence[str]) -> Iterator[Finding]:
    """The findings about a log: its theorems are made again, and must state what the files ask. Queries are looked up
    among those of the certificate, whose proofs are checked separately."""
    document, about = read_document(texts, LOG), required_goals(texts)
    names: dict[str, str] = {}
    for file in (f"{piece}.smt2" for piece in pieces):
        if names.setdefault(texts[file], file) is not file:
            yield Finding(file, f"is the query of {names[texts[file]]} again", "fault")
    engines = Engines(heard=_certified(names), asks=False)
    replay = Replay(document, about.subject, engines, texts.get(TERMS, ""))
    try:
        stated = replay.run()
    except RuleError as error:
        yield Finding(LOG, str(error), "fault")
        return
    yield Finding(LOG, f"{counted(len(replay.theorems), 'theorem')} made again by the rules of the kernel")
    for number, theorem in enumerate(replay.theorems):
        if theorem.answered_query is not None:
            yield Finding(
                f"{LOG}, theorem {number}",
                f"{names[theorem.answered_query.query.text]} asks: {theorem.goal.statement()}",
            )
    unused = names.keys() - {one.query.text for one in engines.answered_queries}
    yield from (Finding(names[text], "is asked by no rule", "fault") for text in sorted(unused))
    yield from _written(document, texts, about.subject, stated)
    goals = [theorem.goal for theorem in stated]
    if not about.accepts(goals):
        yield Finding(LOG, "does not state what the files ask", "fault")
    elif not about.goals and document["says"] != list(map(bound_words, goals)):
        yield Finding(LOG, "says other words than its theorems", "fault")
    else:
        yield from (Finding(LOG, f"states: {bound_words(goal)}") for goal in goals)


def _written(
    document: Mapping[str, Any], texts: Mapping[str, str], subject: Subject, stated: Sequence[Theorem]
) -> Iterator[Finding]:
    """Faults where a log differs from the log that its stated theorems give: steps on which no stated theorem rests, or
    repeated steps."""
    writer = Writer(subject)
    again = json.loads(json.dumps(writer.stating(stated)))
    for name in sorted((document.keys() | again.keys()) - {"says"}):
        if document.get(name) != again.get(name):
            yield Finding(LOG, f"{name}: what is stated does not rest on all of it, or not as it stands", "fault")
    if texts.get(TERMS, "") != (writer.terms_text if writer.terms else ""):
        yield Finding(TERMS, "is not what the log names, as it writes it", "fault")
