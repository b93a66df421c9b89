"""Monotonicity: does the result ever fall when one operand rises?

Concrete rows shaped for it are tried first, then a proof by lemmas for the kinds of sums that have an argument, at last
the solvers are asked: small questions, then the whole.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from queries.confirm import confirm as second_words
from queries.distinguish import Options, distinguish
from queries.monotone_late import Joined, Nested
from queries.monotone_lemmas import ADMITTED, Ledger, UnprovedError
from queries.monotone_many import FixedPoint
from queries.monotone_search import find_fall
from queries.monotone_steps import Step, ordered
from queries.monotone_sums import RoundedAddition, TwoTerms
from queries.monotone_truncated import Truncated
from queries.properties import Monotonic, exchangeable
from queries.prove import RESULT, Lemma, Proof
from smtmodel.algebra import Bits
from smtmodel.dot import Model, UnitModel

SHARE = 0.8  # of the time, at most, for the proof by lemmas
CONFIRM_SHARE = 0.25  # of the time, at most, for the confirmation of all operands' proofs


def prove_monotonic(problem: Monotonic, options: Options, confirm: bool) -> Proof:
    """Find a fall, or prove that there is none. An interrupt ends the work; what was proved until then is kept.
    Raises SolverFaultError."""
    start, proof = time.monotonic(), Proof(problem)
    try:
        proof.witness = find_fall(problem) if options.timeout is None or options.timeout > 0 else None
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
    if not has_argument(problem):
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


def has_argument(problem: Monotonic) -> bool:
    """Whether what the raised operand enters is of a kind for which there are lemmas. They are proved or not for each
    model."""
    if isinstance(problem.left, UnitModel):
        return False
    accumulator = problem.left.accumulator
    if accumulator.partials != "unnormalised":
        return False
    return problem.raised is None or accumulator.operation != "add_mul"


def _kind(model: Model, terms: int) -> type[Step[Any]]:
    if model.accumulator.operation == "add_mul":
        return RoundedAddition
    if model.accumulator.addend == "late":
        return Joined
    if not model.accumulator.exact_sum:
        return Truncated
    return TwoTerms if terms == 2 else FixedPoint


def prove_by_lemmas(ledger: Ledger) -> None:
    """The step that the raised operand enters does not let the result fall, nor do the steps after it, one of whose
    operands that result is. Raises UnprovedError."""
    problem = ledger.problem
    assert isinstance(problem, Monotonic)
    model, entering = problem.left, ADMITTED
    patterns: tuple[Bits, ...] = ()
    if problem.raised is None:
        patterns = (ledger.inputs.c, problem.moved(ledger.inputs).c)
        entering = ledger.establish("the addends are ordered", ordered(patterns, model.c), (), [ADMITTED])
    for kind, prefix, place, name in _steps(problem):
        proved = kind(ledger, prefix, place, entering, patterns, name)
        ledger.inner = proved.inner
        entering = proved.prove()
        patterns = (proved.before.result, proved.after.result)
    ledger.inner = ()
    results = (ledger.left.d, ledger.right.d)
    ledger.establish(RESULT, ~problem.differ(*results), results, [entering])


def _steps(problem: Monotonic) -> Iterator[tuple[type[Step[Any]], str, int, str]]:
    """The steps that what is raised goes through: how each adds, its prefix in the trace, the place among its terms
    of what is raised, and its name."""
    model, raised = problem.left, problem.raised
    blocks, after = model.accumulator.blocks, model.accumulator.addend == "after"
    first = (len(blocks) if after else 0) if raised is None else next(k for k, b in enumerate(blocks) if raised in b)
    for step, block in list(enumerate(blocks))[first:]:
        kind = _kind(model, len(block) + 1)
        name = f"step {step + 1}" if len(blocks) > 1 else "the step"
        entered = raised is not None and step == first
        size = model.accumulator.group if model.accumulator.grouping == "scale_blocks" else 1
        addend = {RoundedAddition: 0, Joined: 1}.get(kind, len(block) // size)
        if kind is Joined and entered:
            kind = Nested
        yield kind, model.accumulator.prefix(step), block.index(raised) // size if entered else addend, name
    if after:
        yield RoundedAddition, "after.", 1 if raised is None else 0, "the addition of c"
