"""Bounds of intermediate sums by the sizes of their products: each bound is proved from the one before it, for any sum
within that one.

Sizes of products are constants, the largest that their exponents may have, where all that is wanted is that values are
numbers; or powers of two at the exponents of each product, whose sum is at most the sum of magnitudes, where a claim
compares with that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import reduce
from typing import Protocol

from queries.proof.kernel import Theorem
from queries.proof.ledger import UnprovedError
from queries.proof.undecided import Question
from smtmodel.algebra import Bit, Bits, constant
from smtmodel.algorithms import fixed
from smtmodel.algorithms.exact import Fixed, in_units, magnitude
from smtmodel.algorithms.products import Multiword
from smtmodel.algorithms.scene import Scene
from smtmodel.algorithms.steps import RESULT, InUnit, Step, Word

BOUND_SHARE = 0.2  # of the time that is left, for one bound
LAST_SHARE = 0.5  # for what follows from all bounds


class Ask(Protocol):
    """A claim proved from facts, terms cut out of both, within a share of the time that is left. Raises
    UnprovedError."""

    def __call__(
        self, what: str, facts: Sequence[Theorem], claim: Bit, cuts: Sequence[Bits], share: float
    ) -> Theorem: ...


class Sizes:
    """The bounds of the sums of a claim; `admitted`: that the conditions on inputs hold."""

    def __init__(self, question: Question, admitted: Theorem, ask: Ask) -> None:
        self.question, self.claim, self.scene = question, question.claim, question.scene
        self.admitted, self.ask = admitted, ask

    def numbers(self) -> Theorem:
        """That all values are numbers. Raises UnprovedError."""
        window, carrier = self.claim.shape.window, self.scene.carrier
        powers = [window.a[1] + window.b[1]] * self.claim.terms + [window.c[1]]
        facts, cuts = self._bounds([fixed.number(carrier, Fraction(2) ** power) for power in powers], results=True)
        return self.ask("every value is a number", facts, self.question.fits, cuts, BOUND_SHARE)

    def relative(self) -> Theorem:
        """That no input decides a claim that compares with the sum of magnitudes, from the bounds of the sums on the
        way, the last ones as they are. Raises UnprovedError."""
        if not self.scene.fits or "magnitude_sum" not in self.claim.predicate_text:
            raise UnprovedError("it compares no values with the sum of magnitudes")
        sizes, whole = self.scene.tops(), self.scene.exact(magnitudes=True)
        least = self._least(sizes, whole)
        facts, cuts = self._bounds(sizes, results=False)
        return self.ask("the claim follows", [*facts, least], self.question.none, [*cuts, whole.bits], LAST_SHARE)

    def _least(self, sizes: Sequence[Fixed], whole: Fixed) -> Theorem:
        """The sum of magnitudes is no less than that of powers of two: term by term, then their sums. Raises
        UnprovedError."""
        terms, facts = self._terms(whole), list[Theorem]()
        width, largest = whole.bits.width, 1 << (whole.bits.width - 1 - len(terms).bit_length())
        most = constant(whole.bits.carrier, largest, width)
        for place, (term, size) in enumerate(zip(terms, sizes, strict=False)):
            claim = ~fixed.less(term, size) & term.bits.ule(most)
            facts.append(self.ask(f"magnitude {place} is no less than a power of two", [self.admitted], claim, [],
                                  BOUND_SHARE))  # fmt: skip
        name = "the sum of magnitudes is no less than that of powers of two"
        total = Fixed(constant(whole.bits.carrier, 0, width) + terms[0].bits, whole.unit)
        own, known = sizes[0], facts[0]
        for place in range(1, len(terms)):
            cuts = [total.bits, own.bits, terms[place].bits, sizes[place].bits]
            total, own = Fixed(total.bits + terms[place].bits, total.unit), fixed.add(own, sizes[place])
            least = ~fixed.less(total, own)
            claim = least & total.bits.ule(constant(most.carrier, (place + 1) * largest, width))
            known = self.ask(f"{name}, up to {place}", [known, facts[place]], claim, cuts, BOUND_SHARE)
        return self.ask(
            name, [known], ~fixed.less(whole, reduce(fixed.add, sizes)), [total.bits, own.bits], BOUND_SHARE
        )

    def _terms(self, whole: Fixed) -> list[Fixed]:
        """What the sum of magnitudes adds up; c that is fixed to zero is left out."""
        carrier, scene = self.question.carrier, self.scene
        before = len(carrier.addends)
        a, b = ([x.bits for x in side] for side in (scene.a, scene.b))
        Scene(scene.shape, a, b, scene.c.bits).exact(magnitudes=True)  # the same terms once more
        return [Fixed(Bits(carrier, whole.bits.width, node), whole.unit) for node in carrier.addends[before:]]

    def _bounds(self, sizes: Sequence[Fixed], results: bool) -> tuple[list[Theorem], list[Bits]]:
        """What is known of inputs and sums, and these, of `results` too. Raises UnprovedError.

        `sizes`: of the products, and of c; a product is below four times its size, and c below twice.
        """
        facts, found = [self.admitted], dict[object, Bits]()
        for part in self.scene.fits:
            steps, fmt = self.scene.steps(part), self.claim.shape.parts[part].result
            for step, bits, limit in self._limits(part, sizes):
                if bits.node in found or (not results and bits.node == steps[RESULT].node):
                    continue
                number, fits = in_units(bits, fmt, self.scene.exact())
                bound = fits & ~fixed.less(limit, magnitude(number))
                facts.append(self.ask(f"bound of {step} of {part}", facts, bound, list(found.values()), BOUND_SHARE))
                found[bits.node] = bits
        return facts, list(found.values())

    def _limits(self, part: str, sizes: Sequence[Fixed]) -> Iterator[tuple[Step, Bits, Fixed]]:
        """The sums of a part in their order, each with what its magnitude does not exceed if words are truncated."""
        what, carrier = self.claim.shape.parts[part].what, self.scene.carrier
        fraction = (what.model if isinstance(what, Multiword) else what).a.fraction
        *products, addend = sizes
        limit = fixed.number(carrier, 0) if self.claim.zero_addend else fixed.multiply(fixed.number(carrier, 2), addend)
        for step, bits in self.scene.steps(part).items():
            if isinstance(step, InUnit):
                factor = fixed.number(carrier, Fraction(4, 2 ** (fraction * sum(step.words or ()))))
                own = products[step.start : step.stop]
                limit = reduce(fixed.add, [fixed.multiply(factor, size) for size in own], limit)
            if not isinstance(step, Word):
                yield step, bits, limit
