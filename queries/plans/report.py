"""What was found of plans, as documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mmaprobe.documents.devices import PlansFound
from mmaprobe.documents.identify import IdentifyGemm, IdentifyProduct, LeftOut, OrderAt, Rule
from mmaprobe.documents.prove import ProvePlans, WitnessVector
from mmaprobe.queries.order.text import Outliner
from mmaprobe.queries.order.tree import Leaf, Node
from mmaprobe.queries.plans.equal import PlanProof
from mmaprobe.queries.plans.library import Mapped
from mmaprobe.queries.plans.results import Given
from mmaprobe.queries.plans.rules import Shape
from mmaprobe.queries.properties.report import pair_proof
from mmaprobe.queries.tactics.records import confirmations_of
from mmaprobe.smtmodel.inputs.vectors import Vector, to_hex
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.plantext import plan_text


def document_of(proof: PlanProof, left: str, right: str, length: int | None) -> ProvePlans:
    """The document that `prove` prints of two plans, by the names that they were given; `length`: the K asked."""
    proofs, witness, vector = proof.proofs, proof.witness, None
    if witness is not None and proof.problem is not None:
        problem = proof.problem
        results = [to_hex(witness.left, problem.left.d), to_hex(witness.right, problem.right.d)]
        row = Vector(problem.left, problem.whole(witness.operands)).to_json()
        vector = WitnessVector.of(row, results=results)
    return ProvePlans(
        left=left,
        right=right,
        verdict=proof.verdict,
        interrupted=proof.interrupted,
        seconds=round(proof.seconds, 3),
        length=length,
        multiples=proof.multiples or None,
        rules=proof.rules,
        engines=sorted({engine for one in proofs for engine in one.engines}),
        confirmed_by=confirmations_of(proofs),
        proofs=[pair_proof(one) for one in proofs],
        unanswered=proof.tried,
        vector=vector,
    )


def document_of_map(found: Mapped, name: str, seconds: float, error: object = None) -> IdentifyGemm:
    """The document that `identify --gemm` prints of a function of this name; `error`: what ended it early."""
    return IdentifyGemm(
        device={"name": name},
        error=None if error is None else str(error),
        rules=[
            Rule(
                elements=said.rule.text(),
                plan=None if said.plan is None else said.plan.reference,
                limits=said.rule.limits(),
                confirmed=said.confirmed,
                agree=said.agree,
                differ=_sides_of(said.differ),
            )
            for said in found.rules
        ],
        plans=_texts(found.plans),
        checked=found.checked,
        right=found.right,
        open=_sides_of(found.open),
        left_out=[
            LeftOut(shape=shape, products=products)
            for shape, products in zip(_sides_of(found.left_out), found.left_out.values(), strict=True)
        ],
        orders=[
            OrderAt(shape=[shape.rows, shape.columns, shape.length], place=place, outline=outline_of(tree))
            for (shape, place), tree in found.orders.items()
        ],
        products_asked=found.asked,
        seconds=round(seconds, 3),
    )


def _sides_of(shapes: Iterable[Shape]) -> list[list[int]]:
    return [[shape.rows, shape.columns, shape.length] for shape in shapes]


def outline_of(tree: Node | Leaf | None) -> list[str]:
    """A summation order as text, line by line."""
    return ["not revealed"] if tree is None else Outliner(tree).outline().lines()


def document_of_product(found: Given, files: Iterable[object], length: int, seconds: float) -> IdentifyProduct:
    """The document that `identify --gemm` prints of a recorded product of `length` products in each sum."""
    return IdentifyProduct(
        files=list(map(str, files)),
        length=length,
        plans=_texts(found.plans),
        tried=found.tried,
        untried=found.untried,
        looked_at=found.looked,
        best=None if found.best is None else found.best.plan.reference,
        best_agrees=found.most,
        left_out=found.left_out,
        seconds=round(seconds, 3),
    )


def plans_found(found: Given, first: Sequence[Plan] = ()) -> PlansFound:
    """What was found of one of two results; `first`: plans that are named before the others."""
    return PlansFound(
        plans=found.names(first),
        complete=not found.untried,
        tried=found.tried,
        untried=found.untried,
        looked_at=found.looked,
        best=None if found.best is None else found.best.plan.reference,
        best_agrees=found.most,
        left_out=found.left_out,
    )


def _texts(plans: Iterable[Plan]) -> dict[str, str]:
    """The plan file of each, by name."""
    return {plan.reference: plan_text(plan) for plan in plans}
