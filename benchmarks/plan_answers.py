"""Whether two plans are equal, as a row of records: the theorem's rules, or a vector."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mmaprobe.queries.plans.equal import PlanProof, prove_plans
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.inputs.vectors import to_hex
from mmaprobe.smtmodel.plans import Plan

ROOT = Path(__file__).parents[1]


def answer(plans: tuple[Plan, Plan], length: int | None, timeout: float) -> dict[str, Any]:
    """What is found for K = `length`, or for every K that both plans take whole."""
    proof = prove_plans(*plans, length, Options(timeout=timeout))
    row: dict[str, Any] = {"verdict": proof.verdict, "seconds": round(proof.seconds, 1)}
    if proof.theorem is not None:
        row |= {"rules": proof.rules, "multiples": proof.multiples}
        row |= {"engines": sorted({name for one in proof.proofs for name in (*one.engines, *one.confirmations)})}
    return row | (_vector(proof) if proof.witness is not None else {})


def _vector(proof: PlanProof) -> dict[str, Any]:
    problem, witness = proof.problem, proof.witness
    assert problem is not None
    assert witness is not None
    operands, model = witness.operands, problem.left
    used = [n for n, pair in enumerate(zip(operands.a, operands.b, strict=True)) if any(pair)]
    return {
        "length": model.length,
        "products": [[problem.places[n], to_hex(operands.a[n], model.a), to_hex(operands.b[n], model.b)] for n in used],
        "c": to_hex(operands.c, model.c),
        "results": [to_hex(witness.left, model.d), to_hex(witness.right, model.d)],
    }
