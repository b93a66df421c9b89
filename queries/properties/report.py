"""Proofs as JSON documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from mmaprobe.queries.kernel.problem import Problem
from mmaprobe.queries.properties.proving import verdict_on
from mmaprobe.queries.search.witness import moved_input
from mmaprobe.queries.solvers.store import result_key
from mmaprobe.queries.tactics.records import Proof, Verdict, confirmations_of
from mmaprobe.smtmodel.inputs.vectors import Vector, to_hex


def said(wanted: str, verdict: Verdict) -> Verdict | Literal["holds", "refuted"]:
    """The verdict as users read it: of two models whether they are equal, of a property, as of a bound and of a claim,
    whether it holds."""
    if wanted == "equal" or verdict == "unknown":
        return verdict
    return "holds" if verdict == "equal" else "refuted"


def open_key(problems: Sequence[Problem], wanted: str) -> str:
    """The key under which the store says that a property was left open, and after how many seconds."""
    return result_key("open", property=wanted, problems=[repr(problem) for problem in problems])


def proof_document(wanted: str, proofs: list[Proof]) -> dict[str, Any]:
    """The document that `prove --json` prints for proofs of the property `wanted`."""
    return {
        "schema": 1,
        "property": wanted,
        "verdict": verdict_on(wanted, proofs),
        "interrupted": any(proof.interrupted for proof in proofs),
        "seconds": round(sum(proof.seconds for proof in proofs), 3),
        "engines": sorted({engine for proof in proofs for engine in proof.engines}),
        "confirmed_by": confirmations_of(proofs),
        "proofs": [proof_json(proof) for proof in proofs],
    }


def proof_json(proof: Proof) -> dict[str, Any]:
    """The JSON object of one proof: its sides, its lemmas, and the vector on which the sides differ."""
    problem = proof.problem
    return {
        "left": problem.left.reference,
        "right": problem.right.reference,
        "sides": list(problem.sides),
        "verdict": proof.verdict,
        "seconds": round(proof.seconds, 3),
        "engines": proof.engines,
        "confirmed_by": proof.confirmations,
        "why": proof.why or None,
        "lemmas": [
            {
                "name": lemma.name,
                "cuts": lemma.cuts,
                "using": lemma.using or None,
                "answer": str(lemma.answer),
                "seconds": lemma.answer.seconds,
                "confirmed_by": str(lemma.confirmed) if lemma.confirmed else None,
            }
            for lemma in proof.lemmas
        ],
        "unanswered": [str(answer) for answer in proof.tried if answer.status == "unknown"],
        "vector": _witness_json(proof),
    }


def _witness_json(proof: Proof) -> dict[str, Any] | None:
    """The input on which the sides differ, as one vector for each side, with the replayed results; None if there is
    none."""
    problem, witness = proof.problem, proof.witness
    if witness is None:
        return None
    operands = witness.operands
    results = [to_hex(witness.left, problem.left.d), to_hex(witness.right, problem.right.d)]
    document: dict[str, Any] = {**Vector(problem.left, operands).to_json(), "results": results}
    moved = moved_input(problem, operands)
    if moved != operands:
        document["other_side"] = Vector(problem.right, moved).to_json()
    return document
