"""Monotonicity: does the result ever fall when one operand rises?

Concrete rows shaped for it are tried first, then a proof by lemmas for the kinds of sums that have an argument, at last
the solvers are asked: small questions, then the whole.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from queries.confirm import confirm as second_words
from queries.distinguish import Options, distinguish
from queries.monotone_lemmas import ADMITTED, Ledger, UnprovedError
from queries.monotone_many import FixedPoint
from queries.monotone_search import find_fall
from queries.monotone_steps import Step, ordered
from queries.monotone_sums import TwoTerms
from queries.monotone_truncated import Truncated
from queries.properties import Monotonic, exchangeable
from queries.prove import RESULT, Lemma, Proof
from smtmodel.algebra import Bits
from smtmodel.dot import Model

SHARE = 0.8  # of the time, at most, for the proof by lemmas
CONFIRM_SHARE = 0.25  # of the time, at most, for the confirmation of all operands' proofs


def prove_monotonic(problem: Monotonic, options: Options, confirm: bool) -> Proof:
    """Find a fall, or prove that there is none. An interrupt ends the work; what was proved until then is kept.
    Raises SolverFaultError."""
    start, proof = time.monotonic(), Proof(problem)
    try:
        proof.witness = find_fall(problem)
        if proof.witness is not None:
            proof.verdict = "different"
        elif not _staged(problem, options, proof, start):
            _whole(problem, options, proof, start)
        if confirm and proof.verdict == "equal":
            spent = time.monotonic() - start
            proof.lemmas = second_words(proof.lemmas, _for_confirmation(problem, options, spent), spent)
    except KeyboardInterrupt:
        proof.interrupted = True
    proof.seconds = time.monotonic() - start
    return proof


def _for_confirmation(problem: Monotonic, options: Options, spent: float) -> Options:
    """The property has a problem for each step at least, and what confirms one must leave time to prove the others."""
    if options.timeout is None:
        return options
    share = options.timeout * CONFIRM_SHARE / len(exchangeable(problem.left))
    return replace(options, timeout=min(options.timeout, spent + share))


def _staged(problem: Monotonic, options: Options, proof: Proof, start: float) -> bool:
    """Whether the lemmas prove it."""
    if not has_argument(problem.left):
        return False
    deadline = None if options.timeout is None else start + options.timeout * SHARE
    try:
        prove_by_lemmas(Ledger(problem, options, proof, deadline))
    except UnprovedError:
        return False
    proof.verdict = "equal"
    return True


def _whole(problem: Monotonic, options: Options, proof: Proof, start: float) -> None:
    left = None if options.timeout is None else max(0.0, options.timeout - (time.monotonic() - start))
    outcome = distinguish(problem, replace(options, timeout=left, count=1))
    proof.tried += [answer for step in outcome.steps for answer in step.answers]
    proof.verdict = outcome.verdict
    if outcome.verdict == "different":
        proof.witness = outcome.witnesses[0]
    elif outcome.verdict == "equal":
        proof.lemmas = [Lemma("the whole question", 0, outcome.steps[-1].query, outcome.steps[-1].answer)]


def has_argument(model: Model) -> bool:
    """Whether the model's steps are of a kind for which there are lemmas. They are proved or not for each model."""
    accumulator = model.accumulator
    return (
        accumulator.operation != "add_mul"
        and accumulator.addend == "fused"
        and accumulator.partials == "unnormalised"
        and accumulator.grouping == "none"
    )


def _kind(model: Model, terms: int) -> type[Step[Any]]:
    if not model.accumulator.exact_sum:
        return Truncated
    return TwoTerms if terms == 2 else FixedPoint


def prove_by_lemmas(ledger: Ledger) -> None:
    """The step that the raised operand enters does not let the result fall, nor do the steps after it, whose addend
    that result is. Raises UnprovedError."""
    problem = ledger.problem
    assert isinstance(problem, Monotonic)
    model, entering = problem.left, ADMITTED
    patterns: tuple[Bits, ...] = ()
    blocks = model.accumulator.blocks
    if problem.raised is None:
        first, place = 0, len(blocks[0])
        patterns = (ledger.inputs.c, problem.moved(ledger.inputs).c)
        claim = ordered(patterns, model.c)
        entering = ledger.establish("the addends are ordered", claim, (), [ADMITTED])
    else:
        first = next(step for step, block in enumerate(blocks) if problem.raised in block)
        place = blocks[first].index(problem.raised)
    for step in range(first, len(blocks)):
        prefix = f"block{step}." if len(blocks) > 1 else ""
        kind = _kind(model, len(blocks[step]) + 1)
        name = f"step {step + 1}" if len(blocks) > 1 else "the step"
        proved = kind(ledger, prefix, place, entering, patterns, name)
        ledger.inner = patterns
        entering = proved.prove()
        patterns, place = (proved.before.result, proved.after.result), len(blocks[min(step + 1, len(blocks) - 1)])
    ledger.inner = ()
    results = (ledger.left.d, ledger.right.d)
    ledger.establish(RESULT, ~problem.differ(*results), results, [entering])
