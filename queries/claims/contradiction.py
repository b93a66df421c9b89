"""Checks verdicts on claims (error bounds, overflow, algorithms): one that an evaluation contradicts is not
reported."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from mmaprobe.hypotheses.claim import Claim
from mmaprobe.hypotheses.unit_claims import BoundClaim, ClassicalClaim, OverflowClaim, WrapClaim
from mmaprobe.queries.claims.classical import beyond_claim
from mmaprobe.queries.claims.outcome import Outcome
from mmaprobe.queries.claims.samples import claim_rows
from mmaprobe.queries.claims.wraps import wrapping
from mmaprobe.queries.kernel.integers.rows import BELOW_ONE
from mmaprobe.queries.search.admitted_rows import admitted_rows
from mmaprobe.queries.search.contradiction import SEED, kept_bits, raise_contradiction, row_text
from mmaprobe.queries.search.samples import sample_rows
from mmaprobe.queries.search.scene import evaluate_claim
from mmaprobe.smtmodel.algorithms import sum_of_array
from mmaprobe.smtmodel.arithmetic.display import exact_value, ulp_of
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.batch import evaluate_models
from mmaprobe.smtmodel.evaluate.numbers import in_f64
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.nodes import FusedSum
from mmaprobe.smtmodel.nodes.node import of_kind

BOUND_ROWS = 512  # inputs whose errors are computed in rationals
CLAIM_ROWS, LATE_ROWS = 4096, 64  # inputs evaluated for a claim; LATE_ROWS: where its time is over


def check_outcome(outcome: Outcome, late: bool = False) -> None:
    """Raises FaultError if an evaluation contradicts the verdict on a claim. `late`: the time for the claim is over."""
    claim, claimed = outcome.claim, f"{outcome.claim.id} {outcome.verdict}"
    if isinstance(claim, Claim):
        if outcome.row is None and outcome.verdict == ("holds" if claim.quantifier == "all" else "refuted"):
            _check_claim(claim, claimed, LATE_ROWS if late else CLAIM_ROWS)
    elif outcome.verdict == "holds" and isinstance(claim, BoundClaim):
        _check_bound(claim, claimed)
    elif outcome.verdict == "holds" and isinstance(claim, OverflowClaim):
        _check_overflow(claim, claimed)
    elif outcome.verdict == "holds" and isinstance(claim, WrapClaim) and claim.proved:
        _check_wraps(claim, claimed)
    elif outcome.verdict == "holds" and isinstance(claim, ClassicalClaim) and (found := beyond_claim(claim)):
        raise_contradiction(claimed, str(found), "an error beyond the bound")


def _check_claim(claim: Claim, claimed: str, count: int) -> None:
    rows = claim_rows(claim, count, SEED)
    for hit in np.flatnonzero(evaluate_claim(claim, rows).deciding)[:1]:
        raise_contradiction(claimed, row_text(claim.layout, rows[hit].tolist()), "the opposite")


def _check_bound(claim: BoundClaim, claimed: str) -> None:
    """Check the errors of finite inputs, in rationals."""
    model, layout, k = claim.model, layout_of(claim.model), claim.model.length
    count = min(BOUND_ROWS, 8 * BOUND_ROWS // k)
    finite = Inputs(finite=True)
    table = np.concatenate(
        [sample_rows(layout, count // 2, SEED), admitted_rows(layout, finite, count, SEED, kept_bits(model))]
    )
    values = np.stack([in_f64(side, fmt) for side, fmt in zip(table.T, layout.formats, strict=True)], axis=1)
    finite_rows = np.isfinite(values).all(axis=1)
    table, values = table[finite_rows], values[finite_rows]
    results = evaluate_models([model], table)[0]
    for row, given, d in zip(table, values.tolist(), in_f64(results, model.d).tolist(), strict=True):
        if not within_bound(claim, list(map(Fraction, given)), d):
            raise_contradiction(claimed, row_text(layout, row.tolist()), f"{d!r}")


def within_bound(claim: BoundClaim, given: list[Fraction], d: float) -> bool:
    """Whether a result is finite and its error within the bound."""
    model, k = claim.model, claim.model.length
    [bits] = {bits for node in of_kind(model.unit.result, FusedSum) for bits in node.bits_of_terms}
    a, b, c = given[:k], given[k : 2 * k], given[2 * k]
    tops = [top_of(x, model.a) * top_of(y, model.b) for x, y in zip(a, b, strict=True) if x and y]
    unit = max([*tops, *([top_of(c, model.c)] if c else [])], default=Fraction(0)) / 2**bits
    if not math.isfinite(d):
        return False
    ulp = ulp_of(Fraction(d), model.d)
    bound = (k - 1) * unit + max(unit, ulp) if claim.bound == "tight" else (k + 1) * unit + ulp
    exact = sum((x * y for x, y in zip(a, b, strict=True)), c)
    return bool(abs(Fraction(d) - exact) <= bound)


def top_of(value: Fraction, fmt: Format) -> Fraction:
    """The power of two at a number's exponent; subnormal numbers have that of the smallest normal one."""
    return ulp_of(value, fmt) * (1 << fmt.fraction)


def _check_wraps(claim: WrapClaim, claimed: str) -> None:
    """Check that no sum of the claim's products (of one less, where they are the fewest that wrap) leaves its range."""
    if wrap := wrapping(claim, claim.proved):
        raise_contradiction(claimed, str(wrap), "a sum that wraps")


def _check_overflow(claim: OverflowClaim, claimed: str) -> None:
    """Check that no sum of the claim's numbers (of one less, where they are the fewest that overflow) is infinite."""
    count = claim.proved
    if count < 1:
        return
    rng = np.random.default_rng(SEED)
    near = np.uint32(BELOW_ONE) - rng.integers(0, 1 << 14, count, dtype=np.uint32)  # halfway cases of f16 among them
    for what, row in (("the largest number below 1", np.full(count, BELOW_ONE, np.uint32)), ("numbers near 1", near)):
        if exact_value(sum_of_array(claim.reduction, row), claim.reduction.result_format) == "inf":
            raise_contradiction(claimed, f"{count} times {what}", "an infinite sum")
