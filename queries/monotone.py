"""Monotonicity: does the result ever fall when one operand rises?"""

from __future__ import annotations

import time

from queries.distinguish import Options, distinguish
from queries.properties import Monotonic
from queries.prove import Lemma, Proof


def prove_monotonic(problem: Monotonic, options: Options, confirm: bool) -> Proof:
    """Search for a fall; the whole question's "unsat" is the proof. Raises SolverFaultError."""
    start, proof = time.monotonic(), Proof(problem)
    outcome = distinguish(problem, options)
    proof.tried = [answer for step in outcome.steps for answer in step.answers]
    proof.verdict = outcome.verdict
    if outcome.verdict == "different":
        proof.witness = outcome.witnesses[0]
    elif outcome.verdict == "equal":
        proof.lemmas = [Lemma("the whole question", 0, outcome.steps[-1].query, outcome.steps[-1].answer)]
    proof.seconds = time.monotonic() - start
    return proof
