"""The declaration of a dot product as IEEE P3109 asks: kappa (4.4, Annex D) and a bound of its error (Annex E)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mmaprobe.documents.datasheet import P3109Declaration
from mmaprobe.documents.parts import ABSENT
from mmaprobe.queries.kernel.questions.statements import problems_of
from mmaprobe.queries.properties.bound_report import document_of, find_bound
from mmaprobe.queries.properties.proving import proofs_of, verdict_on
from mmaprobe.queries.properties.report import pair_proof
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.records import confirmations_of, engines_of
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.smtmodel.arithmetic.display import exact_value, finite_value
from mmaprobe.smtmodel.arithmetic.formats import Format, p3109_name
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.wording import table_lines
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import steps_between
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.operand import DRAWN, NAMED

#: the property that kappa is 0
EXACT = "exact"
#: P3109's names of IEEE 754's formats, and of rounding modes
NAMES = {"f16": "binary16", "f32": "binary32", "f64": "binary64", "bf16": "BFloat16"}
MODES = {
    "nearest_even": "NearestTiesToEven",
    "nearest_away": "NearestTiesToAway",
    "toward_zero": "TowardZero",
    "up": "TowardPositive",
    "down": "TowardNegative",
    "to_odd": "ToOdd",
    "stochastic_a": "StochasticA",
    "stochastic_b": "StochasticB",
    "stochastic_c": "StochasticC",
}
SATURATIONS = {"ieee": "SatNone", "saturate": "SatPropagate", "sat_finite": "SatFinite",
               "sat_propagate": "SatPropagate", "infinity": "infinity in every rounding mode"}  # fmt: skip


def declaration(model: Model, options: Options) -> P3109Declaration:
    """The declaration of a unit: kappa against the exact sum rounded once as the unit rounds, and its error bound."""
    unit, rounding = model.unit, model.unit.rounding
    bound = document_of(find_bound(model, Inputs(), None, Settled(options)))
    addend = f" + {format_name(model.c)}" if unit.addend else ""
    drawn = next((unit.formats[name] for name in DRAWN if name in unit.formats), None)
    bits = f"({drawn.width})" if rounding.stochastic and drawn else ""
    known = rounding.format.has_infinity or rounding.format.has_nan  # else there is nothing but the largest number
    saturation = SATURATIONS[rounding.overflow] if known else "SatFinite"
    projection = f"({MODES[rounding.mode]}{bits}, {saturation})"
    factors = f"{format_name(model.a)} * {format_name(model.b)}"
    return P3109Declaration(
        disclosure="p3109",
        model=model.reference,
        approximates=f"dot product of {model.length}: {factors}{addend} -> {format_name(model.d)}, {projection}",
        **_kappa(model, options),
        error_bound=bound.formula or None,
        terms=bound.terms,
        lemmas=bound.lemmas,
        premises=bound.premises,
        reason=bound.reason,
    )


def format_name(fmt: Format) -> str:
    """A format's name in P3109, as Binary8p4se or binary32; the format's own name if P3109 has none."""
    return p3109_name(fmt).capitalize() or NAMES.get(fmt.name, fmt.name)


def _kappa(model: Model, options: Options) -> dict[str, Any]:
    try:
        proofs = proofs_of(problems_of(EXACT, model, Inputs()), options, True)
    except ParameterError as error:  # the property cannot be asked of this unit
        return {"kappa": None, "kappa_basis": f"not asked: {error.message}"}
    verdict = verdict_on(EXACT, proofs)
    if verdict == "equal":
        engines = engines_of(proofs)
        words = [f"proved by {', '.join(engines) or 'rules about its nodes alone'}"]
        if second := confirmations_of(proofs):
            words.append(f"confirmed by {', '.join(second)}")
        return {"kappa": "0", "kappa_basis": "; ".join(words)}
    witness = next((proof for proof in proofs if proof.witness is not None), None)
    if witness is None or witness.witness is None:
        return {"kappa": None, "kappa_basis": "neither proved to be 0 nor refuted"}
    patterns = witness.witness.left, witness.witness.right
    values = [exact_value(pattern, model.d) for pattern in patterns]
    shown: dict[str, Any] = {"vector": pair_proof(witness).vector}
    if (values[0] == "nan") != (values[1] == "nan"):
        return {**shown, "kappa": "NaN", "kappa_basis": "an input on which one result alone is a NaN"}
    if any(finite_value(pattern, model.d) is None for pattern in patterns):
        return {**shown, "kappa": "infinity", "kappa_basis": "an input on which one result alone is that infinity"}
    one, other = (np.array([pattern], np.uint64) for pattern in patterns)
    steps = int(steps_between(one, other, model.d)[0])
    basis = "an input whose results are finite and differ; no bound over all inputs is proved"
    return {**shown, "kappa": None, "kappa_basis": basis, "at_least": steps or ABSENT}


def declaration_text(declaration: P3109Declaration) -> str:
    """The declaration in lines, as the command prints it."""
    lines = {
        "approximates": declaration.approximates,
        "kappa": f"{declaration.kappa or 'not bounded'} ({declaration.kappa_basis})",
    }
    if declaration.vector:
        given, got = declaration.vector, declaration.vector.results
        lines["  input"] = "; ".join(
            f"{name} = {value}" for name, value in vars(given).items() if name in NAMED and value
        )
        lines["  results"] = f"{got[0]}, and {got[1]} as defined"
    if declaration.at_least:
        lines["  at least"] = str(declaration.at_least)
    lines["error bound"] = declaration.error_bound or f"none is proved: {declaration.reason}"
    if declaration.error_bound:
        lines["  where"] = "; ".join(declaration.premises)
    head = f"{declaration.model}: declaration for IEEE P3109 (4.4, Annexes D and E)"
    return "\n".join([head, *(f"  {line}" for line in table_lines([*lines.items()]))])
