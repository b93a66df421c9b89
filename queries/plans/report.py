"""Findings about plans, as documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mmaprobe.documents.devices import OtherPlan, PlansFound, TellingApart
from mmaprobe.documents.identify import (
    Depends,
    IdentifyGemm,
    IdentifyInvariant,
    IdentifyProduct,
    Layout,
    LeftOut,
    OrderAt,
    ResultAt,
    Rule,
)
from mmaprobe.documents.parts import ABSENT
from mmaprobe.documents.prove import ElementAt, PlansCompared, ProveInvariant, ProvePlans
from mmaprobe.queries.order.text import Outliner
from mmaprobe.queries.order.tree import Leaf, Node
from mmaprobe.queries.plans.dependence import DependenceFindings, PlacedResult
from mmaprobe.queries.plans.equal import PlanProof
from mmaprobe.queries.plans.invariant import At, Fixed, Invariance, Need
from mmaprobe.queries.plans.library import Mapped
from mmaprobe.queries.plans.results import PlansOfResult
from mmaprobe.queries.plans.rules import Shape
from mmaprobe.queries.properties.report import pair_proof, witness_vector
from mmaprobe.queries.tactics.records import confirmations_of, engines_of
from mmaprobe.smtmodel.base.wording import runs_of
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.inputs.vectors import to_hex
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.plantext import plan_text


def document_of(proof: PlanProof, left: str, right: str, length: int | None) -> ProvePlans:
    """The document that `prove` prints about two plans. `left`, `right`: the plans' names; `length`: the K asked."""
    proofs = proof.proofs
    return ProvePlans(
        left=left,
        right=right,
        verdict=proof.verdict,
        interrupted=proof.interrupted,
        seconds=round(proof.seconds, 3),
        length=length,
        multiples=proof.multiples or None,
        rules=proof.rules,
        engines=engines_of(proofs),
        confirmed_by=confirmations_of(proofs),
        proofs=[pair_proof(one) for one in proofs],
        unanswered=proof.tried,
        vector=witness_vector(proof.problem, proof.witness),
    )


def document_of_invariance(found: Invariance) -> ProveInvariant:
    """The document that `prove --invariant` prints."""
    what, difference = found.enumeration, found.difference
    first = min(what.open, default=None)
    return ProveInvariant(
        map=found.rules.reference,
        verdict=found.verdict,
        interrupted=found.interrupted,
        seconds=round(found.seconds, 3),
        fixed=found.fixed,
        shapes=dict(zip("MNK", (found.shapes.rows, found.shapes.columns, found.shapes.length), strict=True)),
        plans={plan.reference: runs_of(lengths) for plan, lengths in what.plans.items()},
        compared=[_compared(found, need) for need in what.needs],
        open=runs_of(sorted(what.open)),
        open_example=None if first is None else _element(what.open[first], None),
        difference=[] if difference is None else [
            _element(at, plan)
            for at, plan in zip(difference[1:], (difference[0].left, difference[0].right), strict=True)
        ],
        vector=None if difference is None else witness_vector(difference[0].problem, difference[0].witness),
    )  # fmt: skip


def _compared(found: Invariance, need: Need) -> PlansCompared:
    proofs = [proof for proof in found.proofs if need.is_asked_by(proof)]
    solved = [one for proof in proofs for one in proof.proofs]
    still = set(found.left_open(need))
    return PlansCompared(
        left=need.left.reference,
        right=need.right.reference,
        lengths=runs_of(need.lengths),
        proved=runs_of([length for length in need.lengths if length not in still]),
        example=[_element(at, plan) for at, plan in
                 zip(need.places[need.lengths[0]], (need.left, need.right), strict=True)],
        rules=list(dict.fromkeys(line for proof in proofs for line in proof.rules)),
        engines=engines_of(solved),
        confirmed_by=confirmations_of(solved),
        unanswered=list(dict.fromkeys(text for proof in proofs for text in proof.tried)) if still else [],
    )  # fmt: skip


def _element(at: At, plan: Plan | None) -> ElementAt:
    return ElementAt(
        shape=list(at.shape.sides),
        place=[at.row, at.column],
        plan=None if plan is None else plan.reference,
    )


def document_of_dependence(
    found: DependenceFindings, name: str, asked: Signature, top: Shape, fixed: Fixed | None, seconds: float
) -> IdentifyInvariant:
    """The document that `identify --gemm --invariant` prints about the function `name`."""
    depends = found.depends
    shown = None if depends is None else Depends(
        results=[_result(result, asked) for result in (depends.one, depends.other)],
        a=[to_hex(pattern, asked.a) for pattern in depends.a],
        b=[to_hex(pattern, asked.b) for pattern in depends.b],
        others="random" if depends.filled else "zeros",
    )  # fmt: skip
    return IdentifyInvariant(
        device={"name": name},
        verdict="depends" if depends is not None else "none seen" if found.error is None else "open",
        error=found.error,
        fixed=fixed,
        shape=list(top.sides),
        lengths=found.lengths,
        stacked=found.unstacked is None,
        why_not=found.unstacked,
        products_asked=found.products,
        compared=found.compared,
        depends=shown,
        alike=found.alike,
        seconds=round(seconds, 3),
    )


def _result(result: PlacedResult, asked: Signature) -> ResultAt:
    return ResultAt(
        shape=list(result.at.shape.sides),
        stack=result.stack,
        block=result.block,
        place=[result.at.row, result.at.column],
        d=to_hex(result.d, asked.d),
    )


def document_of_map(
    mapped: Mapped, name: str, seconds: float, error: object = None, layout: Layout = "nn"
) -> IdentifyGemm:
    """The document that `identify --gemm` prints about the function `name`. `layout`: the layout of A and B in its
    calls; `error`: the error that ended the search early."""
    return IdentifyGemm(
        device={"name": name},
        layout=ABSENT if layout == "nn" else layout,
        error=None if error is None else str(error),
        rules=[
            Rule(
                elements=entry.rule.text(),
                plan=None if entry.plan is None else entry.plan.reference,
                limits=entry.rule.limits(),
                confirmed=entry.confirmed,
                agree=entry.agree,
                lengths=len(entry.rule.lengths),
                lengths_asked=len(entry.lengths),
                differ=[list(shape.sides) for shape in entry.differ],
            )
            for entry in mapped.rules
        ],
        plans=_texts(mapped.plans),
        checked=mapped.checked,
        right=mapped.right,
        open=[list(shape.sides) for shape in mapped.open],
        left_out=[
            LeftOut(
                shape=list(shape.sides),
                products=what.left_out,
                twice=what.twice or ABSENT,
                instead=what.instead or ABSENT,
            )
            for shape, what in mapped.left_out.items()
        ],
        orders=[
            OrderAt(shape=list(shape.sides), place=place, outline=outline_of(tree))
            for (shape, place), tree in mapped.orders.items()
        ],
        products_asked=mapped.asked,
        seconds=round(seconds, 3),
    )


def outline_of(tree: Node | Leaf | None) -> list[str]:
    """A summation order as text, line by line."""
    return ["not revealed"] if tree is None else Outliner(tree).outline().lines()


def document_of_product(found: PlansOfResult, files: Iterable[object], length: int, seconds: float) -> IdentifyProduct:
    """The document that `identify --gemm` prints about a recorded matrix product with K = `length`."""
    return IdentifyProduct(
        files=list(map(str, files)),
        length=length,
        plans=_texts(found.plans),
        seconds=round(seconds, 3),
        **_searched(found),
    )


def plans_found(found: PlansOfResult, first: Sequence[Plan] = ()) -> PlansFound:
    """The document about one of two compared matrices; `first`: plans that are named before the others."""
    return PlansFound(plans=found.names(first), complete=not found.untried, **_searched(found))


def _searched(found: PlansOfResult) -> dict[str, Any]:
    """What the document of a recorded product and that of one of two compared matrices have in common."""
    return {
        "tried": found.tried,
        "untried": found.untried,
        "looked_at": found.looked,
        "best": None if found.best is None else found.best.plan.reference,
        "best_agrees": found.most,
        "left_out": found.left_out,
        "twice": found.products.twice or ABSENT,
        "instead": found.products.instead or ABSENT,
        "others": _others(found) or ABSENT,
    }


def _others(found: PlansOfResult) -> list[OtherPlan]:
    """The plans that give the recorded elements as the first plan does, and new elements on which they differ."""
    every = []
    for one in found.others:
        plan, shown = one.plans[0], one.shown
        shown_apart = ABSENT if shown is None else TellingApart(
            products=list(shown.products),
            a=[to_hex(a, plan.a) for a, _ in shown.products.values()],
            b=[to_hex(b, plan.b) for _, b in shown.products.values()],
            c=to_hex(shown.c, plan.c),
            results=[to_hex(result, plan.d) for result in shown.results],
        )  # fmt: skip
        every.append(
            OtherPlan(
                plans=[plan.reference for plan in one.plans],
                differ=one.differ,
                new=one.asked,
                wide=one.wide or ABSENT,
                told_apart=shown_apart,
            )
        )
    return every


def _texts(plans: Iterable[Plan]) -> dict[str, str]:
    """The text of the plan file of each plan, by name."""
    return {plan.reference: plan_text(plan) for plan in plans}
