"""Monotonicity: does the result ever fall when one operand rises?

Concrete rows shaped for it are tried first, then a proof by lemmas for the kinds of sums that have an argument, at last
the solvers are asked: small questions, then the whole.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import Any

from queries.equality.confirm import confirm as second_words
from queries.equality.lemmas import Lemma, Proof
from queries.equality.staged import RESULT
from queries.properties.monotone.late import Joined, Nested
from queries.properties.monotone.ledger import ADMITTED, Ledger, UnprovedError
from queries.properties.monotone.many import FixedPoint
from queries.properties.monotone.path import Passage, path_of, pattern_of
from queries.properties.monotone.search import find_fall
from queries.properties.monotone.steps import Step, ordered
from queries.properties.monotone.sums import RoundedAddition, TwoTerms
from queries.properties.monotone.truncated import Truncated
from queries.properties.statements import Monotonic, exchangeable
from queries.search.distinguish import Options, distinguish
from smtmodel.algebra import Bits
from smtmodel.nodes import FusedSum

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
    deadline = None if options.timeout is None else start + options.timeout * SHARE
    ledger = Ledger(problem, options, proof, deadline)
    try:
        prove_by_lemmas(ledger)
    except UnprovedError:
        return False
    proof.verdict, proof.chain = "equal", ledger.chain
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


def prove_by_lemmas(ledger: Ledger) -> None:
    """The step that the raised operand enters does not let the result fall, nor do the steps after it, one of whose
    operands that result is. Raises UnprovedError."""
    problem = ledger.problem
    assert isinstance(problem, Monotonic)
    entering = ADMITTED
    patterns: tuple[Bits, ...] = ()
    if problem.raised is None:
        patterns = (ledger.inputs.c, problem.moved(ledger.inputs).c)
        entering = ledger.establish("the addends are ordered", ordered(patterns, problem.left.c), (), [ADMITTED])
    for passage in path_of(ledger.left.trace, problem.raised):
        kind, place = _kind(ledger, passage, bool(patterns))
        proved = kind(ledger, passage.prefix, place, entering, patterns, _name(passage.prefix))
        ledger.inner = proved.inner
        entering = proved.prove()
        patterns = (proved.before.result, proved.after.result)
    ledger.inner = ()
    results = (ledger.left.d, ledger.right.d)
    ledger.establish(RESULT, ~problem.differ(*results), results, [entering])


def _kind(ledger: Ledger, passage: Passage, rounded: bool) -> tuple[type[Step[Any]], int]:
    """How a sum adds, and the place among its terms of what is raised, a result (`rounded`) or not. Raises
    UnprovedError."""
    trace, node, place = ledger.left.trace, passage.inner.node, passage.place
    if passage.outer.prefix != passage.prefix:  # sums within a sum
        if passage.outer.prefix != f"{passage.prefix}late.":
            raise UnprovedError(f"{passage.outer.prefix}sum is added in a way that has no lemmas")
        if passage.inner is passage.outer:
            return Joined, place
        halves = f"{passage.prefix}join." in trace.entered
        return Nested, 2 * place + passage.inner.prefix.endswith("odd.") if halves else place
    if isinstance(node, FusedSum):
        return Truncated, place
    if passage.terms > 2:
        return FixedPoint, place
    _, terms = trace.entered[passage.inner.prefix]
    if rounded and pattern_of(trace, terms[1 - place][1], ledger.inputs.c) is not None:
        return RoundedAddition, place
    if not rounded and pattern_of(trace, terms[place][1], ledger.inputs.c) not in (None, ledger.inputs.c):
        raise UnprovedError("a product that is rounded before it is added to one other term")
    return TwoTerms, place


def _name(prefix: str) -> str:
    """What a step is called in the names of lemmas."""
    step = re.fullmatch(r"block(\d+)\.", prefix)
    if step is not None:
        return f"step {int(step[1]) + 1}"
    return {"": "the step", "after.": "the addition of c"}.get(prefix, f"step {prefix.removesuffix('.')}")
