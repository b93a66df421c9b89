"""Monotonicity: does the result ever fall when one operand rises?

The rule about nodes (queries/proof/rises.py) is tried first, then concrete rows constructed for a fall; finally the
solvers are asked: restricted queries, then the whole one.
"""

from __future__ import annotations

import time
from dataclasses import replace

from queries.equality.entire import decide_whole
from queries.proof.confirm import confirm as second_words
from queries.proof.kernel import RuleError
from queries.proof.records import Proof
from queries.proof.rises import needed, rises
from queries.proof.settling import Settled
from queries.properties.falls import find_fall
from queries.properties.statements import Monotonic, exchangeable
from queries.properties.together import does_not_fall
from queries.search.distinguish import Options, distinguish

LEMMA_SECONDS = 20.0  # for one lemma about the datapath
BY_RISES = "where the largest exponent of a sum moves, what moved it has risen by more than the other terms lose"
CONFIRM_SHARE = 0.25  # of the time, at most, for cross-checking the proofs of all operands


def prove_monotonic(problem: Monotonic, options: Options, confirm: bool) -> Proof:
    """Prove that the result never falls, or find an input on which it does. An interrupt ends the work. Raises
    SolverFaultError."""
    start, proof = time.monotonic(), Proof(problem)
    try:
        if not _by_nodes(problem, options, proof, confirm):
            proof.witness = find_fall(problem) if options.timeout is None or options.timeout > 0 else None
            if proof.witness is not None:
                proof.verdict = "different"
            else:
                _whole(problem, options, proof, start)
                spent = time.monotonic() - start
                if confirm and proof.verdict == "equal":
                    proof.lemmas = second_words(proof.lemmas, _for_confirmation(problem, options, spent), spent)
    except KeyboardInterrupt:
        proof.interrupted = True
    proof.seconds = time.monotonic() - start
    return proof


def _by_nodes(problem: Monotonic, options: Options, proof: Proof, confirm: bool) -> bool:
    """Whether the rule about nodes proves the problem; if so, the theorem is entered in `proof`."""
    settle = Settled(options, confirm, LEMMA_SECONDS)
    try:
        of = problem.left.unit, problem.raised, problem.inputs.normal
        lemmas = [settle(lemma) for lemma in needed(*of)]
        proof.theorem = does_not_fall(problem, rises(*of, [lemma for lemma in lemmas if lemma is not None]))
    except RuleError:
        return False
    proof.verdict, proof.lemmas, proof.why = "equal", settle.asked, BY_RISES
    return True


def _for_confirmation(problem: Monotonic, options: Options, spent: float) -> Options:
    """The time limit for cross-checking one proof: the property has at least one problem for each step, and time must
    remain to prove the others."""
    if options.timeout is None:
        return options
    share = options.timeout * CONFIRM_SHARE / len(exchangeable(problem.left))
    return replace(options, timeout=min(options.timeout, spent + share))


def _whole(problem: Monotonic, options: Options, proof: Proof, start: float) -> None:
    def left() -> float | None:
        return None if options.timeout is None else max(0.0, options.timeout - (time.monotonic() - start))

    outcome = distinguish(problem, replace(options, timeout=left(), count=1), small=True)
    proof.tried += [answer for step in outcome.steps for answer in step.answers]
    if outcome.witnesses:
        proof.verdict, proof.witness = "different", outcome.witnesses[0]
    else:
        decide_whole(proof, options, left())
