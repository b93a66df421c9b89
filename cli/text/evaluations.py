"""Evaluations as JSON values: signals, where two units diverge, neighbours of a unit."""

from __future__ import annotations

from typing import Any

from mmaprobe.queries.compare.neighbours import Divergence, Neighbour
from mmaprobe.reports.words import value_text
from mmaprobe.smtmodel.arithmetic.display import number_text
from mmaprobe.smtmodel.evaluate.facts import Fact
from mmaprobe.smtmodel.explain.explanation import Explanation
from mmaprobe.smtmodel.inputs.vectors import to_hex
from mmaprobe.smtmodel.nodes.trace import Kind


def neighbour_json(near: Neighbour) -> dict[str, Any]:
    """`model`: the reference of the neighbour, if it is an instruction with a changed parameter; else None."""
    return {
        "parameter": near.parameter,
        "value": near.value,
        "model": None if near.model.member is None else near.model.reference,
        "first_divergence": None if near.divergence is None else divergence_json(near.divergence),
    }


def divergence_json(difference: Divergence) -> dict[str, Any]:
    """Where two units first diverge."""
    sides = {"left": difference.left, "right": difference.right}
    return {
        "stage": difference.stage,
        "signal": str(difference.signal),
        **{name: None if fact is None else fact_json(fact) for name, fact in sides.items()},
    }


def fact_json(fact: Fact) -> dict[str, Any]:

    out: dict[str, Any] = {
        "name": str(fact.name),
        "kind": fact.kind.value,
        "width": fact.width,
        "value": f"{fact.value:0{(fact.width + 3) // 4}x}",
    }
    if fact.kind is Kind.NUMBER:
        out |= {"scale": fact.scale, "signed": fact.is_signed}
    elif fact.kind is Kind.EXPONENT:
        out["offset"] = fact.scale
    if fact.format is not None:
        return out | {"format": fact.format.name, "real": number_text(fact.value, fact.format)}
    return out | {"real": value_text(fact)}


def document(explanation: Explanation, observed: int | None) -> dict[str, Any]:
    """The document of one evaluation. `observed`: the result that a device gave, if it is known."""

    fmt = explanation.model.d
    inputs = [
        {
            "name": name,
            "format": given.format.name,
            "value": to_hex(given.pattern, given.format),
            "real": number_text(given.pattern, given.format),
        }
        for name, given in explanation.inputs.items()
    ]
    signals = [fact_json(fact) for fact in explanation.facts]
    return {
        "model": explanation.model.reference,
        "inputs": inputs,
        "signals": signals,
        "special": _special(explanation),
        "d": to_hex(explanation.result, fmt),
        "real": number_text(explanation.result, fmt),
        "observed": None if observed is None else to_hex(observed, fmt),
    }


def _special(explanation: Explanation) -> list[dict[str, Any]]:
    """The rules for NaN and infinity that fired, step by step."""
    pictures = [(index, part) for index, step in enumerate(explanation.steps) for part in step.pictures]
    return [
        {
            "step": index,
            "rule": part.special.rule,
            "causes": [{"term": c.term, "kind": c.kind, "inputs": list(c.inputs)} for c in part.special.causes],
        }
        for index, part in pictures
        if part.special is not None
    ]
