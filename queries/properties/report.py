"""Proofs as documents."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from mmaprobe.documents.parts import ABSENT, Verdict
from mmaprobe.documents.parts import Vector as Row
from mmaprobe.documents.prove import OneLemma, PairProof, Prove, WitnessVector
from mmaprobe.hypotheses.properties import statement_of
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import exchanged_text
from mmaprobe.queries.properties.proving import verdict_on
from mmaprobe.queries.search.witness import Witness, inputs_of
from mmaprobe.queries.solvers.store import result_key
from mmaprobe.queries.tactics.records import Proof, confirmations_of, engines_of
from mmaprobe.smtmodel.evaluate.identity import identity_text
from mmaprobe.smtmodel.inputs.vectors import Vector, to_hex


def verdict_word(wanted: str, verdict: Verdict) -> Verdict | Literal["holds", "refuted"]:
    """The verdict in the words of users: of two models "equal" or "different", of a property, a bound or a claim
    "holds" or "refuted"."""
    if wanted == "equal" or verdict == "unknown":
        return verdict
    return "holds" if verdict == "equal" else "refuted"


def open_key(problems: Sequence[Problem], wanted: str) -> str:
    """The key under which the store says that a property was left open, and after how many seconds."""
    return result_key("open", property=wanted, problems=[identity_text(problem) for problem in problems])


def proof_document(wanted: str, proofs: list[Proof], zeros: Collection[str] = ()) -> Prove:
    """The document that `prove` prints for proofs of the property `wanted`. `zeros`: the operands of which only zeros
    are admitted."""
    model = proofs[0].problem.left
    return Prove(
        property=wanted,
        verdict=verdict_word(wanted, verdict_on(wanted, proofs)),
        interrupted=any(proof.interrupted for proof in proofs),
        seconds=round(sum(proof.seconds for proof in proofs), 3),
        engines=engines_of(proofs),
        confirmed_by=confirmations_of(proofs),
        proofs=[pair_proof(proof) for proof in proofs],
        statement=statement_of(wanted, model.addend, *exchanged_text(model)),
        zeros_only=list(zeros),
    )


def pair_proof(proof: Proof) -> PairProof:
    """The document of one proof: its sides, its lemmas, and the vector on which the sides differ."""
    problem = proof.problem
    return PairProof(
        left=problem.left.reference,
        right=problem.right.reference,
        sides=problem.sides,
        verdict=proof.verdict,
        seconds=round(proof.seconds, 3),
        engines=proof.engines,
        confirmed_by=proof.confirmations,
        why=proof.why or None,
        open=(proof.verdict == "unknown" and proof.left_open) or ABSENT,
        lemmas=[
            OneLemma(
                name=lemma.name,
                cuts=lemma.cuts,
                using=lemma.using or None,
                answer=str(lemma.answer),
                seconds=lemma.answer.seconds,
                confirmed_by=lemma.confirmed_by,
            )
            for lemma in proof.lemmas
        ],
        unanswered=[str(answer) for answer in proof.tried if answer.status == "unknown"],
        vector=witness_vector(proof.problem, proof.witness),
    )


def witness_vector(problem: Problem | None, witness: Witness | None) -> WitnessVector | None:
    """The input on which the sides differ, as one vector for each side, with the replayed results; None without one."""
    if problem is None or witness is None:
        return None
    left, right = inputs_of(problem, witness.operands)
    results = [to_hex(witness.left, problem.left.d), to_hex(witness.right, problem.right.d)]
    other = ABSENT if left == right else Row.of(Vector(problem.right, right).to_json())
    sums = {"every": problem.every, "result_format": problem.left.d.name} if problem.every else {}
    return WitnessVector.of(Vector(problem.left, left).to_json(), results=results, other_side=other, **sums)
