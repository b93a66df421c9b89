"""Whether the log of a certificate states what its files ask: every rule is called again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from queries.certificates.asked import asked, words
from queries.certificates.names import LOG, TERMS
from queries.certificates.questions import read_document
from queries.checking.finding import Contents, Finding, of_file
from queries.kernel.log import Replay
from queries.kernel.theorem import RuleError
from queries.solvers.asking import Engines, _certified
from smtmodel.wording import counted


@of_file(LOG)
def log(texts: Mapping[str, str], contents: Contents) -> Iterator[Finding]:
    """The theorems that are made again, and what they state. What each query says is looked for among the queries of
    the certificate, of each of which it is said elsewhere whether it is proved."""
    document, about = read_document(texts, LOG), asked(texts)
    names = {texts[f"{piece}.smt2"]: f"{piece}.smt2" for piece in contents.pieces}
    engines = Engines(heard=_certified(names), asks=False)
    replay = Replay(document, about.subject, engines, texts.get(TERMS, ""))
    try:
        stated = replay.run()
    except RuleError as error:
        yield Finding(LOG, str(error), "fault")
        return
    yield Finding(LOG, f"{counted(len(replay.theorems), 'theorem')} made again by the rules of the kernel")
    for number, theorem in enumerate(replay.theorems):
        if theorem.said is not None:
            yield Finding(
                f"{LOG}, theorem {number}", f"{names[theorem.said.query.text]} asks: {theorem.goal.statement()}"
            )
    unused = names.keys() - {one.query.text for one in engines.said}
    yield from (Finding(names[text], "is asked by no rule", "fault") for text in sorted(unused))
    goals = [theorem.goal for theorem in stated]
    if not about.accepts(goals):
        yield Finding(LOG, "does not state what the files ask", "fault")
    elif not about.goals and document["says"] != list(map(words, goals)):
        yield Finding(LOG, "says other words than its theorems", "fault")
    else:
        yield from (Finding(LOG, f"states: {words(goal)}") for goal in goals)
