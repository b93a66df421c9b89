"""Monotonicity: does the result ever fall when one operand rises?

Concrete rows shaped for it are tried first, then the rule about nodes (rises.py), then a proof by lemmas about terms
for the kinds of sums that have an argument, at last the solvers are asked: small questions, then the whole.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from queries.equality.entire import settle_whole
from queries.equality.staged import RESULT
from queries.proof.confirm import confirm as second_words
from queries.proof.kernel import RuleError
from queries.proof.records import Proof
from queries.proof.settling import Settled
from queries.properties.monotone.late import Joined, Nested
from queries.properties.monotone.ledger import ADMITTED, NamedFacts, UnprovedError
from queries.properties.monotone.many import FixedPoint
from queries.properties.monotone.path import Passage, path_of, pattern_of, terms_below
from queries.properties.monotone.search import find_fall
from queries.properties.monotone.steps import Step, ordered
from queries.properties.monotone.sums import RoundedAddition, TwoTerms
from queries.properties.monotone.truncated import Truncated
from queries.properties.rises import needed, rises
from queries.properties.statements import Monotonic, exchangeable
from queries.search.distinguish import Options, distinguish
from smtmodel.algebra import Bits
from smtmodel.nodes import FusedSum
from smtmodel.trace import Trace

LEMMA_SECONDS = 20.0  # for one lemma about the datapath
BY_RISES = "where the largest exponent of a sum moves, what moved it has risen by more than the other terms lose"
SHARE = 0.8  # of the time, at most, for the proof by lemmas
CONFIRM_SHARE = 0.25  # of the time, at most, for the confirmation of all operands' proofs


def prove_monotonic(problem: Monotonic, options: Options, confirm: bool, forms: bool = True) -> Proof:
    """Find a fall, or prove that there is none; not `forms`: by lemmas about its terms alone. An interrupt ends the
    work; what was proved until then is kept. Raises SolverFaultError."""
    start, proof = time.monotonic(), Proof(problem)
    try:
        proof.witness = find_fall(problem) if options.timeout is None or options.timeout > 0 else None
        if proof.witness is not None:
            proof.verdict = "different"
        elif not (forms and _by_nodes(problem, options, proof, confirm)) and not _staged(
            problem, options, proof, start
        ):
            _whole(problem, options, proof, start)
        if confirm and proof.verdict == "equal" and not proof.why:
            spent = time.monotonic() - start
            proof.lemmas = second_words(proof.lemmas, _for_confirmation(problem, options, spent), spent)
    except KeyboardInterrupt:
        proof.interrupted = True
    proof.seconds = time.monotonic() - start
    return proof


def _by_nodes(problem: Monotonic, options: Options, proof: Proof, confirm: bool) -> bool:
    """Whether it follows by a rule from the nodes of the unit."""
    settle = Settled(options, confirm, LEMMA_SECONDS)
    try:
        lemmas = [settle(lemma) for lemma in needed(problem)]
        proof.theorem = rises(problem, [lemma for lemma in lemmas if lemma is not None])
    except RuleError:
        return False
    proof.verdict, proof.lemmas, proof.why = "equal", settle.asked, BY_RISES
    return True


def _for_confirmation(problem: Monotonic, options: Options, spent: float) -> Options:
    """The property has a problem for each step at least, and what confirms one must leave time to prove the others."""
    if options.timeout is None:
        return options
    share = options.timeout * CONFIRM_SHARE / len(exchangeable(problem.left))
    return replace(options, timeout=min(options.timeout, spent + share))


def _staged(problem: Monotonic, options: Options, proof: Proof, start: float) -> bool:
    """Whether the lemmas prove it."""
    deadline = None if options.timeout is None else start + options.timeout * SHARE
    ledger = NamedFacts(problem, options, proof, deadline)
    try:
        ledger.answer(prove_by_lemmas(ledger))
    except (UnprovedError, RuleError):
        return False
    return True


def _whole(problem: Monotonic, options: Options, proof: Proof, start: float) -> None:
    def left() -> float | None:
        return None if options.timeout is None else max(0.0, options.timeout - (time.monotonic() - start))

    outcome = distinguish(problem, replace(options, timeout=left(), count=1), small=True)
    proof.tried += [answer for step in outcome.steps for answer in step.answers]
    if outcome.witnesses:
        proof.verdict, proof.witness = "different", outcome.witnesses[0]
    else:
        proof.lemmas.clear()  # those of an argument that led nowhere
        settle_whole(proof, options, left())


def prove_by_lemmas(ledger: NamedFacts) -> str:
    """The step that the raised operand enters does not let the result fall, nor do the steps after it, one of whose
    operands that result is. The name of the fact that is the answer. Raises UnprovedError."""
    problem = ledger.problem
    assert isinstance(problem, Monotonic)
    entering = ADMITTED
    patterns: tuple[Bits, ...] = ()
    if problem.raised is None:
        patterns = (ledger.inputs.c, problem.moved(ledger.inputs).c)
        entering = ledger.establish("the addends are ordered", ordered(patterns, problem.left.c), (), [ADMITTED])
    for passage in path_of(ledger.left.trace, problem.raised):
        proved = _step(ledger, passage, entering, patterns)
        ledger.inner = proved.inner
        entering = proved.prove()
        patterns = (proved.before.result, proved.after.result)
    ledger.inner = ()
    results = (ledger.left.d, ledger.right.d)
    return ledger.establish(RESULT, ~problem.differ(*results), results, [entering])


def _step(ledger: NamedFacts, passage: Passage, entering: str, patterns: Sequence[Bits]) -> Step[Any]:
    """The proof for a sum by how it adds; `patterns`: those of what is raised, if it is the addend or a result. Raises
    UnprovedError."""
    name, last = _name(ledger.left.trace, passage), len(passage.entered) - 1
    sums, _ = terms_below(ledger.left.trace, passage.outer)
    if len(sums) > 1:
        if not all(isinstance(total.node, FusedSum) for total, _ in passage.entered):
            raise UnprovedError(f"{passage.outer.prefix}sum is added in a way that has no lemmas")
        level = Nested if last else Joined
        return level(ledger, passage, last, entering, patterns, name)
    kind = _kind(ledger, passage, bool(patterns))
    return kind(ledger, passage.prefix, passage.place, entering, patterns, name)


def _kind(ledger: NamedFacts, passage: Passage, rounded: bool) -> type[Step[Any]]:
    """How one sum adds; `rounded`: what is raised is the addend or a result. Raises UnprovedError."""
    trace, place = ledger.left.trace, passage.place
    if isinstance(passage.inner.node, FusedSum):
        return Truncated
    if passage.terms > 2:
        return FixedPoint
    _, terms = trace.entered[passage.inner.prefix]
    if rounded and pattern_of(trace, terms[1 - place][1], ledger.inputs.c) is not None:
        return RoundedAddition
    if not rounded and pattern_of(trace, terms[place][1], ledger.inputs.c) not in (None, ledger.inputs.c):
        raise UnprovedError("a product that is rounded before it is added to one other term")
    return TwoTerms


def _name(trace: Trace, passage: Passage) -> str:
    """What a step is called in the names of lemmas."""
    within = passage.rounding.within
    if within in trace.rounds:
        return f"step {trace.rounds.index(within) + 1}"
    own = passage.prefix.rstrip(".")
    return f"step {own}" if own else "the step"


def by_facts(problem: Monotonic, options: Options) -> Proof:
    """A proof by lemmas about terms or by the whole question, of which a certificate can be written."""
    start, proof = time.monotonic(), Proof(problem)
    if not _staged(problem, options, proof, start):
        _whole(problem, options, proof, start)
    return proof
