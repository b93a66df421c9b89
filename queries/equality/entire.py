"""Whether two sides differ, asked as a whole: without cut-points, without facts."""

from __future__ import annotations

from queries.proof.ledger import Ledger, UnprovedError
from queries.proof.records import Proof
from queries.proof.same import Compared, agreed
from queries.search.distinguish import Options, SolverFaultError
from queries.search.witness import confirmed, replay, shrink
from queries.solvers.contract import Answer
from queries.solvers.smtlib import Query

WHOLE = "the whole question"


def decide_whole(proof: Proof, options: Options, limit: float | None) -> None:
    """Ask it, and note the answer in the proof. Raises SolverFaultError."""
    problem = proof.problem
    compared = Compared(problem, maximum="select")
    ledger = Ledger(compared)

    def ask(what: str, query: Query, count: int) -> Answer:
        answers = options.ask(query, limit, what)
        proof.tried += answers
        return answers[0]

    try:
        fact = ledger.prove(WHOLE, compared.never, [ledger.admitted], [], ask, compared.symbols)
    except UnprovedError:
        answer = proof.tried[-1]
        if answer.status != "sat":
            return
    else:
        proof.lemmas += ledger.lemmas(fact)
        proof.compared = proof.compared or compared  # earlier lemmas are about its terms
        proof.theorem, proof.verdict = agreed(compared, fact), "equal"
        return
    row = tuple(answer.values.get(name, 0) for name in problem.layout.names)
    if not replay(problem, [row]).differs[0]:
        raise SolverFaultError(f"{answer} gave an input on which the two do not differ: {row}")
    proof.witness, proof.verdict = confirmed(problem, shrink(problem, row)), "different"
