"""Bounds on the error of a truncating fused dot product (Xie et al. 2026, Table 9): a theorem of the kernel."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np

from mmaprobe.hypotheses.unit_claims import BoundClaim
from mmaprobe.queries.certificates.certificate import Certificate
from mmaprobe.queries.claims.outcome import Contradiction, Outcome, SearchStep
from mmaprobe.queries.kernel.questions.truncating import truncating_steps
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.queries.properties.bound import bound_in_units
from mmaprobe.queries.properties.bound_certificate import certify_unit_bounds
from mmaprobe.queries.search.admitted_rows import admitted_rows, kept_bits
from mmaprobe.queries.search.contradiction import SEED, row_text
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.samples import sample_rows
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.smtmodel.arithmetic.display import ulp_of
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.batch import evaluate_models
from mmaprobe.smtmodel.evaluate.numbers import in_f64
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.nodes import FusedSum
from mmaprobe.smtmodel.nodes.node import of_kind

ABOUT = "the bound is about one truncating sum of exact products and c, rounded once"
ROWS = 512  # inputs whose errors are computed in rationals


class BoundOutcome(Outcome[BoundClaim]):
    """The outcome of a claim that a bound holds; its certificate is the certificate of the unit's bound."""

    def contradiction(self, late: bool) -> Contradiction | None:
        """A finite input whose error, in rationals, is beyond the bound."""
        model = self.claim.model
        layout, finite = layout_of(model), Inputs(finite=True)
        count = min(ROWS, 8 * ROWS // model.length)
        table = np.concatenate(
            [sample_rows(layout, count // 2, SEED), admitted_rows(layout, finite, count, SEED, kept_bits(model))]
        )
        values = np.stack([in_f64(side, fmt) for side, fmt in zip(table.T, layout.formats, strict=True)], axis=1)
        finite_rows = np.isfinite(values).all(axis=1)
        table, values = table[finite_rows], values[finite_rows]
        results = evaluate_models([model], table)[0]
        for row, given, d in zip(table, values.tolist(), in_f64(results, model.d).tolist(), strict=True):
            if not within_bound(self.claim, list(map(Fraction, given)), d):
                return row_text(layout, row.tolist()), f"{d!r}"
        return None

    def certify(self, directory: Path, options: Options) -> list[Certificate]:
        return certify_unit_bounds([self.certified], self.claim.model, directory, options)


def verify_bound(claim: BoundClaim, options: Options) -> BoundOutcome:
    """Prove a bound, or leave it unknown. Raises ParameterError, which names the parameter at fault, for a unit to
    which no rule applies.

    The rules themselves check that they apply to a unit; the parameter at fault is looked for here.
    """
    outcome, settle = BoundOutcome(claim), Settled(options)
    unit = claim.model.unit
    truncating_steps(unit, ABOUT)
    try:
        outcome.theorem = bound_in_units(unit, *claim.units, settle)
        outcome.lemmas = settle.asked
    except KeyboardInterrupt:
        outcome.interrupted = True
    except RuleError as error:
        where, _, why = str(error).partition(": ")
        if where not in ("loosened", "open"):
            raise ParameterError(where, f"{why}: {ABOUT}") from None
        outcome.asked.append(SearchStep(why))
    return outcome


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
    """The power of two at a number's exponent; for a subnormal number, at the exponent of the smallest normal
    number."""
    return ulp_of(value, fmt) * (1 << fmt.fraction)
