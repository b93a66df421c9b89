"""Monotonicity: does the result ever fall when one operand rises?

The rule about nodes (queries/kernel/properties/rises.py) is tried first, then concrete rows constructed for a fall; a
problem that both leave open is treated as any other question about two sides.
"""

from __future__ import annotations

import time
from dataclasses import replace

from mmaprobe.queries.equality.staged import prove
from mmaprobe.queries.kernel.properties.rises import needed, rises
from mmaprobe.queries.kernel.properties.together import does_not_fall
from mmaprobe.queries.kernel.questions.statements import Monotonic
from mmaprobe.queries.properties.bound import proved
from mmaprobe.queries.properties.falls import find_fall
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.stored import store_witness, stored_witness
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.queries.tactics.settling import Settled, result_or_none

LEMMA_SECONDS = 20.0  # for one lemma about the datapath
BY_RISES = "where the largest exponent of a sum changes, the term that changes it rises by what the others lose or more"


def prove_monotonic(problem: Monotonic, options: Options, confirm: bool) -> Proof:
    """Prove that the result never falls, or find an input on which the result falls. Raises SolverFaultError and
    KeyboardInterrupt."""
    start = time.monotonic()
    witness = stored_witness(problem, options)
    proof = _by_nodes(problem, options, confirm) if witness is None else None
    if witness is None and proof is None and not options.stored and options.timeout != 0:
        witness = find_fall(problem)
        store_witness(problem, witness, options)
    proof = proof if witness is None else Proof(problem, witness=witness)
    if proof is None:
        left = None if options.timeout is None else max(0.0, options.timeout - (time.monotonic() - start))
        proof = prove(problem, replace(options, timeout=left), confirm)
    proof.seconds = time.monotonic() - start
    return proof


def _by_nodes(problem: Monotonic, options: Options, confirm: bool) -> Proof | None:
    """The proof by the rule about nodes; None if the rule gives no proof."""
    settle = Settled(options, confirm, LEMMA_SECONDS)
    question = problem.left.unit, problem.raised, problem.inputs.normal
    theorem = result_or_none(lambda: does_not_fall(problem, rises(*question, proved(needed(*question), settle))))
    return None if theorem is None else Proof(problem, settle.asked, why=BY_RISES, theorem=theorem)
