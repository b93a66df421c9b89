"""An input of a claim about algorithms: its exact sum, the result and the error of each implementation on it, and the
first intermediate result on which they diverge."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from mmaprobe.documents.verify import ClaimVector, FirstStep, PartResult
from mmaprobe.hypotheses.claim import Claim
from mmaprobe.queries.claims.long_sums import result_of_part
from mmaprobe.queries.kernel.bounds.unit_shares import compared_parts
from mmaprobe.queries.kernel.questions.scene import lanes_of
from mmaprobe.queries.search.witness import Row
from mmaprobe.smtmodel.arithmetic.display import decimal, exact_value, finite_value, powers, ulp_of
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.batch import to_integers
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.smtmodel.inputs.vectors import to_hex
from mmaprobe.smtmodel.plans.dot import RESULT, Step

LONG = 256  # products above which a part is evaluated whole, not step by step
Steps = dict[Step, tuple[int, int]]  # step -> its pattern and width


@dataclass(frozen=True)
class ClaimInput:
    """An input of a claim, replayed. `row`: its patterns in the order of the claim's layout."""

    claim: Claim
    row: Row

    @property
    def operands(self) -> Operands[int]:
        return self.claim.layout.split(self.row)

    @property
    def exact(self) -> Fraction:
        """c + sum of a_k * b_k."""
        return sum(self._terms, Fraction(0))

    @property
    def share(self) -> Fraction | None:
        """The error or the difference that the claim compares, as a share of the sum of magnitudes; None where that sum
        is zero. Raises RuleError for another claim."""
        found, parts, whole = self.results, self.claim.shape.parts, sum(map(abs, self._terms), Fraction(0))
        one, *other = (_number(found[name], parts[name].result) for name in compared_parts(self.claim.assertion))
        return abs(one - (other[0] if other else self.exact)) / whole if whole else None

    @property
    def _terms(self) -> list[Fraction]:
        """c and the products."""
        terms = self.claim.terms
        *factors, c = map(_number, self.row, self.claim.layout.formats)
        return [c, *(factors[k] * factors[k + terms] for k in range(terms))]

    @cached_property
    def steps(self) -> dict[str, Steps]:
        """The steps of each part: patterns and their widths. Of a long sum the result is the only step."""
        return {name: self._steps_of(name) for name in self.claim.shape.parts}

    @property
    def results(self) -> dict[str, int]:
        """The pattern that each part gives."""
        return {name: steps[RESULT][0] for name, steps in self.steps.items()}

    @property
    def document(self) -> ClaimVector:
        """The input with the results and errors of all parts."""
        operands, exact, shape = self.operands, self.exact, self.claim.shape
        return ClaimVector(
            format=shape.factors.name,
            c_format=shape.addend.name,
            a=[to_hex(x, shape.factors) for x in operands.a],
            b=[to_hex(x, shape.factors) for x in operands.b],
            c=to_hex(operands.c, shape.addend),
            exact=powers(exact),
            exact_decimal=decimal(exact),
            results={name: result_of(d, shape.parts[name].result, exact) for name, d in self.results.items()},
            first_divergence=parting(self.steps),
        )

    def _steps_of(self, name: str) -> Steps:
        claim, row = self.claim, self.row
        if claim.terms > LONG:
            part, count = claim.shape.parts[name], claim.terms
            a, b = (np.array(side, dtype=np.uint64) for side in (row[:count], row[count:-1]))
            c = np.array([row[-1:]], dtype=kind_of(part.addend)) if row[-1] else None
            (d,) = result_of_part(part, claim.shape.factors, a[None], b[:, None], c).ravel()
            return {RESULT: (int(d), part.result.width)}
        with np.errstate(over="ignore"):
            lanes = lanes_of(claim.assertion, np.array([row], dtype=np.uint64)).steps(name)
            return {step: (int(to_integers(bits, 1)[0]), bits.width) for step, bits in lanes.items()}


def _number(pattern: int, fmt: Format) -> Fraction:
    return finite_value(pattern, fmt) or Fraction(0)  # only numbers are admitted


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
