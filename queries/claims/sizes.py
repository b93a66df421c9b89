"""Bounds of intermediate sums by the sizes of their products: each bound is proved from the bound of the sum before,
for any sum within that bound.

The size of a product is a constant, the power of two at the largest exponents of its factors. The bounds show that all
values are numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import reduce
from typing import Protocol

from mmaprobe.queries.kernel.terms.undecided import Question
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.smtmodel.algorithms import fixed
from mmaprobe.smtmodel.algorithms.exact import Fixed, in_units, magnitude
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, constant
from mmaprobe.smtmodel.plans.dot import InUnit, Step, Word

BOUND_SHARE = 0.2  # of the time that is left, for one bound


class Prove(Protocol):
    """Proves a claim from facts, with the terms `cuts` replaced by free variables in both, within a share of the time
    left. Raises UnprovedError."""

    def __call__(
        self, what: str, facts: Sequence[Theorem], claim: Bit, cuts: Sequence[Bits], share: float
    ) -> Theorem: ...


class Sizes:
    """The bounds of the sums of a claim; `admitted`: the theorem that the conditions on inputs hold."""

    def __init__(self, question: Question, admitted: Theorem, prove: Prove) -> None:
        self.question, self.claim, self.scene = question, question.assertion, question.scene
        self.admitted, self.prove = admitted, prove

    def numbers(self) -> Theorem:
        """The theorem that all values are numbers. Raises UnprovedError."""
        window, carrier = self.claim.shape.window, self.scene.carrier
        powers = [window.a[1] + window.b[1]] * self.claim.terms + [window.c[1]]
        facts, cuts = self._bounds([fixed.number(carrier, Fraction(2) ** power) for power in powers])
        return self.prove("every value is a number", facts, self.question.fits, cuts, BOUND_SHARE)

    def _bounds(self, sizes: Sequence[Fixed]) -> tuple[list[Theorem], list[Bits]]:
        """The facts about inputs and sums, and the sums. Raises UnprovedError.

        `sizes`: of the products, and of c; a product is below four times its size, and c below twice its size.
        """
        facts, bounds = [self.admitted], dict[object, Bits]()
        for part in (*self.scene.fits, *(name for name in self.question.reads if name not in self.scene.fits)):
            fmt = self.claim.shape.parts[part].result
            for count, (step, bits, limit) in enumerate(self._limits(part, sizes)):
                if bits.node in bounds:
                    continue
                if part in self.scene.fits:
                    number, fits = in_units(bits, fmt, self.scene.exact())
                    bound = fits & ~fixed.less(limit, magnitude(number))
                else:
                    bound = _below(bits, fmt, limit.unit + limit.bits.width - 1 + count)  # rounding may raise each sum
                facts.append(self.prove(f"bound of {step} of {part}", facts, bound, list(bounds.values()), BOUND_SHARE))
                bounds[bits.node] = bits
        return facts, list(bounds.values())

    def _limits(self, part: str, sizes: Sequence[Fixed]) -> Iterator[tuple[Step, Bits, Fixed]]:
        """The sums of a part in their order, each with a limit of its magnitude if words are truncated."""
        carrier = self.scene.carrier
        fraction = self.claim.shape.parts[part].plan.models[0].a.fraction
        *products, addend = sizes
        limit = fixed.number(carrier, 0) if self.claim.zero_addend else fixed.multiply(fixed.number(carrier, 2), addend)
        for step, bits in self.scene.steps(part).items():
            if isinstance(step, InUnit):
                factor = fixed.number(carrier, Fraction(4, 2 ** (fraction * sum(step.words or ()))))
                own = products[step.start : step.stop]
                limit = reduce(fixed.add, [fixed.multiply(factor, size) for size in own], limit)
            if not isinstance(step, Word):
                yield step, bits, limit


def _below(pattern: Bits, fmt: Format, exponent: int) -> Bit:
    """Whether a result is finite, and below 2^exponent in magnitude if that is the smaller limit. Solvers prove this
    soon, since exponents alone are compared."""
    field = min(max(exponent + fmt.bias, 1) << fmt.fraction, fmt.largest_field + 1)
    fields = pattern.extract(fmt.field_width - 1, fmt.padding)
    return fields.ult(constant(pattern.carrier, field, fields.width))
