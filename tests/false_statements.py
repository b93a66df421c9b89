"""Statements that an evaluation shows to be false: how they are read, shown to be false again, and put to the provers.

A row of data/false_statements.jsonl.gz is `property` of `models` (as `mmaprobe prove` has it), or `claim`, a claim
file's data; and `row`, the patterns of an input that breaks it (of `problem`, where a property asks several).
"""

from __future__ import annotations

import gzip
import json
from fractions import Fraction
from typing import Any

import numpy as np
import yaml

from mmaprobe.hypotheses.claim import Claim, build_claims
from mmaprobe.hypotheses.claim_file import Statement as AnyClaim
from mmaprobe.hypotheses.unit_claims import BoundClaim, OverflowClaim
from mmaprobe.queries.claims.decide import decide
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import problems_of
from mmaprobe.queries.properties.proving import proofs_of, verdict_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.scene import evaluate_claim
from mmaprobe.queries.search.witness import replay
from mmaprobe.smtmodel.algorithms import sum_of_array
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.base.yamlfile import read_yaml
from mmaprobe.smtmodel.evaluate.batch import evaluate_rows
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.tables.reference import member_of, parse_reference
from tests.oracles.oracle import decode
from tests.places import DATA

FILE = DATA / "false_statements.jsonl.gz"
BELOW_ONE = 0x3F7FFFFF
Statement = dict[str, Any]


def statements() -> list[Statement]:
    with gzip.open(FILE, "rt") as lines:
        return [json.loads(line) for line in lines]


def kind_of(statement: Statement) -> str:
    """What it is a statement of: for counting, and for names of tests."""
    if "property" in statement:
        return str(statement["property"])
    claim = statement["claim"]
    return next((key for key in ("error_bound", "overflow", "property") if key in claim), str(claim["id"]))


def problems(statement: Statement) -> list[Problem]:
    models = [parse_reference(model) for model in statement["models"]]
    inputs = Inputs.model_validate(statement.get("inputs", {}))
    if statement["property"] == "equal":
        return [Problem(models[0], models[1], inputs)]
    return problems_of(statement["property"], models[0], inputs)


def claim_of(statement: Statement) -> AnyClaim:
    (claim,) = build_claims(read_yaml(yaml.safe_dump(statement["claim"]), "false.yaml"))
    return claim


def is_false(statement: Statement) -> bool:
    """Whether its input breaks it, by evaluation alone."""
    row = statement["row"]
    if "property" in statement:
        return bool(replay(problems(statement)[statement["problem"]], [tuple(row)]).differs[0])
    claim = claim_of(statement)
    if isinstance(claim, Claim):
        return claim.quantifier == "all" and bool(evaluate_claim(claim, np.array([row], dtype=np.uint64)).deciding[0])
    if isinstance(claim, BoundClaim):
        return breaks_bound(claim, row)
    assert isinstance(claim, OverflowClaim)
    (count,) = row
    numbers = np.full(count, BELOW_ONE, dtype=np.uint32)
    infinite = exact_value(sum_of_array(claim.reduction, numbers), claim.reduction.result_format) == "inf"
    return infinite and count <= claim.proved


def breaks_bound(claim: BoundClaim, row: list[int]) -> bool:
    """By the exact rationals of the oracle."""
    model, k = claim.model, claim.model.length
    operands = layout_of(model).split(row)
    a, b, (c,) = ([decode(fmt.name, x) for x in side] for side, fmt in
                  ((operands.a, model.a), (operands.b, model.b), ((operands.c,), model.c)))  # fmt: skip
    assert all(x.kind == "finite" for x in (*a, *b, c))
    (pattern,) = evaluate_rows(model, [operands])
    d = decode(model.d.name, pattern)
    if d.kind != "finite":
        return True

    def power(value: Fraction, emin: int) -> Fraction:
        exponent = abs(value).numerator.bit_length() - value.denominator.bit_length()
        exponent -= Fraction(2) ** exponent > abs(value)
        return Fraction(2) ** max(exponent, emin)

    tops = [power(x.value, model.a.emin) * power(y.value, model.b.emin)
            for x, y in zip(a, b, strict=True) if x.value and y.value]  # fmt: skip
    tops += [power(c.value, model.c.emin)] if c.value else []
    u = max(tops, default=Fraction(0)) / 2 ** int(member_of(model).values["fraction_bits"])
    ulp = power(d.value, model.d.emin) / (1 << model.d.fraction) if d.value else Fraction(2) ** (
        model.d.emin - model.d.fraction)  # fmt: skip
    bound = (k + 1) * u + ulp if claim.bound == "loose" else (k - 1) * u + max(u, ulp)
    exact = c.value + sum((x.value * y.value for x, y in zip(a, b, strict=True)), Fraction(0))
    return bool(abs(d.value - exact) > bound)


def verdict(statement: Statement, seconds: float) -> str:
    """What the provers say: "refused" for bad input, "fault" for a contradiction that was noticed."""
    options = Options(timeout=seconds)
    try:
        if "property" in statement:
            return verdict_of(proofs_of(problems(statement), options, confirm=False))
        return decide(claim_of(statement), options).verdict
    except MmaprobeError as error:
        return {2: "refused", 3: "unknown", 4: "fault"}[error.exit_code]
