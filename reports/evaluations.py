"""Evaluations as documents: signals, the first divergence of two units, neighbours of a unit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from mmaprobe.documents import devices, explain
from mmaprobe.documents.parts import ABSENT
from mmaprobe.queries.compare.neighbours import Divergence, Neighbour
from mmaprobe.reports.words import value_text
from mmaprobe.smtmodel.arithmetic.display import number_text
from mmaprobe.smtmodel.evaluate.facts import SignalFact
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.explain.explanation import Explanation
from mmaprobe.smtmodel.explain.losses import ElementLosses
from mmaprobe.smtmodel.inputs.vectors import to_hex
from mmaprobe.smtmodel.nodes.trace import Kind


def neighbour_of(near: Neighbour) -> devices.Neighbour:
    """A neighbour as a document. `model` is the neighbour's reference if the neighbour is an instruction with a changed
    parameter, else None."""
    return devices.Neighbour(
        parameter=near.parameter,
        value=near.value,
        model=None if near.model.member is None else near.model.reference,
        first_divergence=divergence_of(near.divergence),
    )


def divergence_of(difference: Divergence | None) -> devices.FirstDivergence | None:
    """The first divergence of two units as a document; None if there is none."""
    if difference is None:
        return None
    left, right = difference.left, difference.right
    return devices.FirstDivergence(
        stage=difference.stage,
        signal=str(difference.signal),
        left=None if left is None else fact_of(left),
        right=None if right is None else fact_of(right),
    )


def fact_of(fact: SignalFact) -> devices.Fact:
    number, fmt = fact.kind is Kind.NUMBER, fact.format
    scale: int = ABSENT if fact.scale is None else fact.scale
    return devices.Fact(
        name=str(fact.name),
        kind=fact.kind.value,
        width=fact.width,
        value=fact.digits,
        scale=scale if number else ABSENT,
        signed=fact.is_signed if number else ABSENT,
        offset=scale if fact.kind is Kind.EXPONENT else ABSENT,
        format=ABSENT if fmt is None else fmt.name,
        real=value_text(fact) if fmt is None else number_text(fact.value, fmt),
    )


def evaluation_of(explanation: Explanation, observed: int | None) -> explain.Evaluation:
    """One evaluation as a document. `observed`: a device's result, if it is known."""
    fmt = explanation.model.d
    inputs = [
        explain.ExplainedInput(
            name=name,
            format=given.format.name,
            value=to_hex(given.pattern, given.format),
            real=number_text(given.pattern, given.format),
        )
        for name, given in explanation.inputs.items()
        if name != "c" or explanation.model.addend
    ]
    return explain.Evaluation(
        model=explanation.model.reference,
        inputs=inputs,
        signals=list(map(fact_of, explanation.facts)),
        special=_special(explanation),
        d=to_hex(explanation.result, fmt),
        real=number_text(explanation.result, fmt),
        observed=None if observed is None else to_hex(observed, fmt),
    )


def _special(explanation: Explanation) -> list[explain.SpecialRule]:
    """The rules for NaN and infinity that fired, step by step."""
    pictures = [(index, part) for index, step in enumerate(explanation.steps) for part in step.pictures]
    return [
        explain.SpecialRule(
            step=index,
            rule=part.special.rule,
            causes=[explain.Cause(term=c.term, kind=c.kind, inputs=c.inputs) for c in part.special.causes],
        )
        for index, part in pictures
        if part.special is not None
    ]


def document_of(
    explanations: Sequence[Explanation], difference: Divergence | None, observed: Sequence[int | None] = ()
) -> explain.Explain:
    """The document of `explain`, about one evaluation, or about two and their first divergence. `observed`: a device's
    result for each evaluation."""
    evaluations = [evaluation_of(one, seen) for one, seen in zip_longest(explanations, observed)]
    return explain.Explain(evaluations=evaluations, difference=divergence_of(difference))


def losses_of(model: Model, element: str, losses: ElementLosses) -> explain.ExplainElement:
    """The document of `explain --element`: the losses in the sums of one element of a plan's product. `model`: the plan
    at one K; `element`: the element's row and column."""
    steps = [
        explain.LossStep(
            step=one.step,
            format=one.format.name,
            products=one.products,
            cut=str(one.cut),
            rounded=str(one.rounded),
            total=None if one.total is None else str(one.total),
        )
        for one in losses.steps
    ]
    return explain.ExplainElement(
        plan=model.reference,
        length=model.length,
        element=element,
        inputs=None if losses.words is None else str(losses.words),
        losses=steps,
        d=to_hex(losses.result, model.d),
    )
