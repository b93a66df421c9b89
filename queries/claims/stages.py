"""Proofs of claims in stages: free variables replace terms of the formula; no assumption is made about them beyond
facts already proved about the terms.

There are four ways, each sound alone. A claim may hold for any result of one part, for example if it says that another
part is the best. It may follow from the fact that no number is nearer to the exact sum than the result of a part. It
may hold for any finite values of the steps that all parts share. It may follow from intervals: for positive numbers,
every word and every intermediate sum lies between its values on the smallest and the largest inputs, and the smallest
value depends on the number of nonzero products. Evaluation finds these bounds; each is proved from the bounds before
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import permutations

import numpy as np

from mmaprobe.queries.claims.nearest_sums import NearestSum, Operand
from mmaprobe.queries.claims.sizes import Prove, Sizes
from mmaprobe.queries.kernel.questions.scene import lanes_of
from mmaprobe.queries.kernel.terms.undecided import Question
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.queries.tactics.ledger import UnprovedError
from mmaprobe.smtmodel.algorithms.scene import Number
from mmaprobe.smtmodel.arithmetic import ieee
from mmaprobe.smtmodel.arithmetic.decode import unpack
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, all_of, choose, constant, select
from mmaprobe.smtmodel.evaluate.batch import to_integers
from mmaprobe.smtmodel.plans.dot import RESULT, Step, Word, word_format


class Stages:
    """The ways to prove, for values that are numbers, that no input decides a claim: each returns the theorem or raises
    UnprovedError. `admitted`: the theorem that the conditions on inputs hold."""

    def __init__(self, question: Question, admitted: Theorem, prove: Prove) -> None:
        self.question, self.claim, self.scene = question, question.assertion, question.scene
        self.admitted, self.prove, self.carrier = admitted, prove, question.carrier
        self.sizes = Sizes(question, admitted, prove)
        self.steps = {name: self.scene.steps(name) for name in self.claim.shape.parts}
        self.within: tuple[list[Theorem], list[Bits]] | None = None  # proved intervals, and their terms

    @property
    def ways(self) -> tuple[Callable[[], Theorem], ...]:
        """The ways to try, the cheap ones first; all but `any_result` need results of one format."""
        several = (self.any_result, self.nearest_sum, self.intervals, self.shared_steps)
        if len({part.result.name for part in self.claim.shape.parts.values()}) > 1:
            return several[:1]
        return several if len(self.steps) > 1 else (self.nearest_sum,)

    def numbers(self) -> Theorem:
        """The theorem that all values are numbers: by the intervals if the claim follows from these, else by sizes."""
        if self.within is not None:
            facts, cuts = self.within
            with suppress(UnprovedError):
                return self.prove("every value is a number", facts, self.question.fits, cuts, CUT_SHARE)
        return self.sizes.numbers()

    def any_result(self) -> Theorem:
        """The claim holds for any results of all parts and any exact sum, or for any result of one part."""
        if not self.scene.fits:
            raise UnprovedError("errors and values alone are compared with results that nobody computed")
        results = {name: steps[RESULT] for name, steps in self.steps.items()}
        free = {"every result and the exact sum": [*results.values(), self.scene.exact().bits]}
        free |= {f"the result of {name}": [result] for name, result in results.items()}
        for what, cuts in free.items():
            with suppress(UnprovedError):
                return self.prove(f"{what} may be any number", [self.admitted], self.question.none, cuts, RESULT_SHARE)
        raise UnprovedError("no result may be any number")

    def nearest_sum(self) -> Theorem:
        """The claim follows from one fact: the result of a part is the sum of two numbers, rounded to nearest, and
        their exact sum is that of the claim."""
        results = [steps[RESULT] for steps in self.steps.values()]
        for name, addition in self._additions() if self.scene.fits else ():
            result, total = self.steps[name][RESULT], addition.result
            first, last = (unpack(bits, addition.fmt) for bits in (total, result))
            same = result.eq(total) | (first.is_zero & last.is_zero) | (first.is_nan & last.is_nan)
            with suppress(UnprovedError):
                nearest = addition.prove(self.admitted)
                equal = self.prove(f"the result of {name} is that sum", [], same, [total], BRIEF_SHARE)
                cuts = [total, *results, self.scene.exact().bits]
                return self.prove("the claim follows", [nearest, equal], self.question.none, cuts, 0.5)
        raise UnprovedError("no result is a rounded sum of two numbers")

    def _additions(self) -> Iterator[tuple[str, NearestSum]]:
        """The additions of c to another step, each with the name of its part."""
        scene, shape, terms = self.scene, self.claim.shape, self.claim.terms
        if shape.addend.name != shape.result.name:
            return
        window = shape.window
        # a sum of several products may cancel down to the last place of the smallest product
        least = window.a[0] + window.b[0] - (2 * shape.factors.fraction if terms > 1 else 0)
        most = window.a[1] + window.b[1] + (2 * terms - 1).bit_length()
        addend = Operand("c", scene.c.bits, window.c)

        asked: dict[object, Theorem | None] = {}  # several additions have operands in common

        def derive(what: str, facts: Sequence[Theorem], claim: Bit, cuts: Sequence[Bits]) -> Theorem:
            key = (claim.node, *facts, *(cut.node for cut in cuts))
            if key not in asked:
                asked[key] = None
                asked[key] = self.prove(what, facts, claim, cuts, SUM_SHARE)
            if (theorem := asked[key]) is None:
                raise UnprovedError(what)
            return theorem

        for part, steps in self.steps.items():
            sums = {bits.node: (name, bits) for name, bits in steps.items() if not isinstance(name, Word)}
            for name, bits in sums.values():
                for first, second in permutations((addend, Operand(str(name), bits, (least, most)))):
                    if ieee.add(first.bits, second.bits, shape.result).node in sums:
                        yield part, NearestSum(derive, shape.result, (first, second), scene.exact())

    def shared_steps(self) -> Theorem:
        """The claim holds for any finite values of the steps that the parts share."""
        shared, fmt = self._shared(), self.claim.shape.result
        if not shared or self.scene.fits:
            raise UnprovedError("no steps are shared, or values are compared")
        values = [unpack(bits, fmt) for bits in shared.values()]
        finite = all_of([~(value.is_nan | value.is_infinite) for value in values])
        numbers = self.prove("the steps that the parts share are finite", [self.admitted], finite, [], CUT_SHARE)
        return self.prove("the steps that the parts share are cut out", [numbers], self.question.none,
                          list(shared.values()), CUT_SHARE)  # fmt: skip

    def _shared(self) -> dict[Step, Bits]:
        """The sums that all parts share, in their order."""
        first, *others = ({bits.node for bits in steps.values()} for steps in self.steps.values())
        left = {node for node in first.intersection(*others) if not (node.is_constant() or node.is_symbol())}
        shared = dict[Step, Bits]()
        for name, bits in next(iter(self.steps.values())).items():
            if bits.node in left and not isinstance(name, Word):
                shared[name] = bits
                left.remove(bits.node)  # two steps with the same term are one step
        return shared

    # --- intervals ---------------------------------------------------------------------------------------------------

    def intervals(self) -> Theorem:
        """The claim follows from the intervals of all words, and of the sums that the parts share."""
        if self.scene.fits or not self._shared():
            raise UnprovedError("no steps are shared, or values are compared")
        facts, cuts = [self.admitted], list[Bits]()
        corners = self._corners()
        for part, steps in self.steps.items():
            for name, bits in steps.items():
                if isinstance(name, Word) and not bits.node.is_symbol():
                    number = (self.scene.a if name.side == "a" else self.scene.b)[name.place]
                    fact = self._word_fact(part, name, bits, number, corners[part][name])
                    facts.append(self.prove(f"interval of {name}", [self.admitted], fact, [], BRIEF_SHARE))
                    cuts.append(bits)
        part, corner = next(iter(corners.items()))
        for room, (name, bits) in enumerate(self._shared().items()):
            fact = self._sum_fact(bits, corner[name], room)
            facts.append(self.prove(f"interval of {name}", facts, fact, cuts, CUT_SHARE))
            cuts.append(bits)
        none = self.prove("the claim follows from the intervals", facts, self.question.none, cuts, 0.5)
        self.within = facts, cuts
        return none

    def _corners(self) -> dict[str, dict[Step, list[int]]]:
        """The steps of every part on several inputs: the smallest numbers in the first 1, 2, ... products with zeros
        after them; last, the largest numbers."""
        claim = self.claim
        window, formats, terms = claim.shape.window, claim.layout.formats, claim.terms
        bounds = [window.a] * terms + [window.b] * terms + [window.c]
        ends = [[(exponent + fmt.bias << fmt.fraction) + fraction << fmt.padding for exponent, fraction in
                 ((low, 0), (high, (1 << fmt.fraction) - 1))]
                for fmt, (low, high) in zip(formats, bounds, strict=True)]  # fmt: skip
        rows = [[low if k % terms < count and k < 2 * terms else 0 for k, (low, _) in enumerate(ends)]
                for count in range(1, terms + 1)]  # fmt: skip
        rows.append([high for _, high in ends[:-1]] + [0 if claim.zero_addend else ends[-1][1]])
        with np.errstate(over="ignore"):
            scene = lanes_of(claim, np.array(rows, dtype=np.uint64))
            return {part: {name: to_integers(bits, len(rows)).tolist() for name, bits in scene.steps(part).items()}
                    for part in claim.shape.parts}  # fmt: skip

    def _word_fact(self, part: str, name: Word, word: Bits, number: Number, corner: list[int]) -> Bit:
        fmt = word_format(self.claim.shape.parts[part].plan, "ab".index(name.side), name.number)
        zero = unpack(number.bits, number.fmt).is_zero
        low, high = corner[-2], _binade_end(corner[-1], fmt)
        least, most = (constant(self.carrier, bound, word.width) for bound in (low, high))
        return choose(zero, ~word.any(), least.ule(word) & word.ule(most))

    def _sum_fact(self, total: Bits, corner: list[int], room: int) -> Bit:
        """The fact that a sum lies between two bounds. `corner`: the sums of 1, 2, ... smallest products, and last the
        sum of the largest products. The lower bound depends on the number of nonzero products. The upper bound is the
        end of the binade `room` binades above that of the last sum, as the bounds of earlier steps are ends of binades
        too."""
        count = len(corner) - 1
        places, width = count.bit_length(), total.width
        found = constant(self.carrier, 0, places)
        for x, y in zip(self.scene.a, self.scene.b, strict=True):
            nonzero = [~unpack(factor.bits, factor.fmt).is_zero for factor in (x, y)]
            found = found + all_of(nonzero).bits(places)
        least = constant(self.carrier, 0, width)
        for products, pattern in enumerate(corner[:-1], 1):
            exactly = found.eq(constant(self.carrier, products, places))
            least = select(exactly, constant(self.carrier, pattern, width), least)
        most = _binade_end(corner[-1], self.claim.shape.result, room)
        return least.ule(total) & total.ule(constant(self.carrier, most, width))


RESULT_SHARE = 0.03  # share of the time left for a claim with results cut out
BRIEF_SHARE = 0.05  # share for an interval that depends on one number alone
CUT_SHARE = 0.2  # share for a proof in which free variables replace steps
SUM_SHARE = 0.4  # share for a lemma about an addition


def _binade_end(pattern: int, fmt: Format, above: int = 0) -> int:
    """The largest finite pattern with the exponent of a positive number plus `above`."""
    step = 1 << (fmt.fraction + fmt.padding)
    return min((pattern | (step - 1)) + above * step, (fmt.largest_field + 1 << fmt.padding) - 1)
