"""The outcome of a claim as a document: the input that decided, the error of each implementation on it, and the
first intermediate result on which they diverge."""

from __future__ import annotations

import ast
from fractions import Fraction

import numpy as np

from mmaprobe.documents.parts import ABSENT
from mmaprobe.documents.verify import Claim as Document
from mmaprobe.documents.verify import ClaimLemma, ClaimVector, FirstStep, PartResult, Shares
from mmaprobe.documents.verify import Step as Tried
from mmaprobe.documents.verify import Worst as Largest
from mmaprobe.hypotheses.claim import Claim
from mmaprobe.hypotheses.unit_claims import PropertyClaim
from mmaprobe.queries.claims.long_sums import result_of_part
from mmaprobe.queries.claims.maximise import Worst, maximised
from mmaprobe.queries.claims.outcome import Outcome
from mmaprobe.queries.kernel.questions.scene import lanes_of
from mmaprobe.queries.properties.report import pair_proof
from mmaprobe.queries.search.witness import Row
from mmaprobe.smtmodel.arithmetic.display import decimal, exact_value, finite_value, powers, ulp_of
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.batch import to_integers
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.smtmodel.inputs.vectors import to_hex
from mmaprobe.smtmodel.plans.dot import RESULT, Step

LONG = 256  # products above which a part is evaluated whole, not step by step
Steps = dict[Step, tuple[int, int]]  # of each step its pattern and width


def document_of(outcome: Outcome) -> Document:
    """What is said of a claim."""
    claim = outcome.claim
    return Document(
        id=claim.id,
        about=claim.about,
        source=claim.source,
        says=claim.says,
        quantifier=claim.quantifier,
        claim=claim.text,
        parts=claim.part_texts,
        zeros_only=list(claim.zeros) if isinstance(claim, PropertyClaim) else [],
        expect=claim.expect,
        verdict=outcome.verdict,
        as_expected=outcome.as_expected,
        interrupted=outcome.interrupted,
        seconds=round(outcome.seconds, 3),
        lemmas=[
            ClaimLemma(
                name=lemma.name,
                answer=str(lemma.answer),
                confirmed_by=str(lemma.confirmed) if lemma.confirmed else None,
            )
            for lemma in outcome.lemmas
        ],
        asked=[
            Tried(what=step.what, seconds=round(step.seconds, 3), answers=list(map(str, step.answers)))
            for step in outcome.asked
        ],
        vector=vector_of_claim(outcome.decided, outcome.row)
        if outcome.row is not None and isinstance(claim, Claim)
        else None,
        counterexample=None if outcome.refuting is None else pair_proof(outcome.refuting),
        shares=ABSENT
        if outcome.share is None and outcome.reached is None
        else Shares(
            proved=None if outcome.share is None else str(outcome.share),
            reached=None if outcome.reached is None else str(outcome.reached),
        ),
    )


def vector_of_claim(claim: Claim, row: Row) -> ClaimVector:
    """An input with the results and errors of all parts, by replay."""
    operands = claim.layout.split(row)
    factors, addend = claim.shape.factors, claim.shape.addend
    exact = exact_sum_of(claim, row)
    steps = {name: steps_of(claim, row, name) for name in claim.shape.parts}
    return ClaimVector(
        format=factors.name,
        c_format=addend.name,
        a=[to_hex(x, factors) for x in operands.a],
        b=[to_hex(x, factors) for x in operands.b],
        c=to_hex(operands.c, addend),
        exact=powers(exact),
        exact_decimal=decimal(exact),
        results={
            name: result_of(part_steps[RESULT][0], claim.shape.parts[name].result, exact)
            for name, part_steps in steps.items()
        },
        first_divergence=parting(steps),
    )


def worst_of(worst: Worst) -> Largest:
    """The largest value found, as a number and exactly, its input, and what is proved."""
    largest = maximised(worst.claim)
    quantity, unit = (ast.unparse(tree) for tree in (largest.quantity, largest.unit))
    return Largest(
        quantity=quantity if unit == "1" else f"{quantity} in {unit}",
        where=[ast.unparse(tree) for tree in largest.where],
        value=None if worst.value is None else float(worst.value),
        exact_value=None if worst.value is None else str(worst.value),
        bound=None if worst.bound is None else str(worst.bound),
        engine=worst.engine,
        left_out=worst.left_out,
        seconds=round(worst.seconds, 3),
        asked=[Tried(what=step.what, answers=list(map(str, step.answers))) for step in worst.asked],
        vector=None if worst.row is None else vector_of_claim(worst.claim, worst.row),
    )


def exact_sum_of(claim: Claim, row: Row) -> Fraction:
    """c + sum of a_k * b_k."""
    values = [finite_value(x, fmt) for x, fmt in zip(row, claim.layout.formats, strict=True)]
    *factors, c = (x or Fraction(0) for x in values)  # only numbers are admitted
    return c + sum((factors[k] * factors[k + claim.terms] for k in range(claim.terms)), Fraction(0))


def result_of(pattern: int, fmt: Format, exact: Fraction) -> PartResult:
    """A result, its error in powers of two and in ulps of the exact sum."""
    value = exact_value(pattern, fmt)
    if value == "-0":
        value = Fraction(0)
    d = to_hex(pattern, fmt)
    if isinstance(value, str):
        return PartResult(d=d, value=value, decimal=value)
    error = abs(value - exact)
    return PartResult(
        d=d,
        value=powers(value),
        decimal=decimal(value),
        error=powers(error),
        error_decimal=decimal(error),
        error_ulps=float(error / ulp_of(exact, fmt)),
    )


def steps_of(claim: Claim, row: Row, name: str) -> Steps:
    """The steps of a part on an input: patterns and their widths. Of a long sum it is the result alone."""
    if claim.terms > LONG:
        part, count = claim.shape.parts[name], claim.terms
        a, b = (np.array(side, dtype=np.uint64) for side in (row[:count], row[count:-1]))
        c = np.array([row[-1:]], dtype=kind_of(part.addend)) if row[-1] else None
        (d,) = result_of_part(part, claim.shape.factors, a[None], b[:, None], c).ravel()
        return {RESULT: (int(d), part.result.width)}
    with np.errstate(over="ignore"):
        lanes = lanes_of(claim.assertion, np.array([row], dtype=np.uint64)).steps(name)
        return {step: (int(to_integers(bits, 1)[0]), bits.width) for step, bits in lanes.items()}


def parting(steps: dict[str, Steps]) -> dict[str, FirstStep] | None:
    """The first step in which two parts diverge: its name and pattern in each. None for one part alone."""
    names = list(steps)
    if len(names) < 2:
        return None
    first, second = (list(steps[name].items()) for name in names[:2])
    for one, two in zip(first, second, strict=False):
        if one != two:
            return {
                name: FirstStep(step=str(step), pattern=f"0x{pattern:0{(width + 3) // 4}x}")
                for name, (step, (pattern, width)) in zip(names, (one, two), strict=False)
            }
    return None
