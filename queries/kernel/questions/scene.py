"""The statement of a claim about algorithms for one input: one definition for solvers, search and replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pysmt.fnode import FNode

from mmaprobe.queries.kernel.questions.problem import symbols_of
from mmaprobe.smtmodel.algorithms.assertion import Assertion
from mmaprobe.smtmodel.algorithms.scene import Scene, Truth
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, constant, truth
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.batch import Patterns, lanes


@dataclass(frozen=True)
class Conditions:
    """Conditions on an input, each evaluated only if the conditions before it are met. `met`: all are met; `at_fault`:
    an evaluated condition reads a result that is no number. No input is both."""

    met: Bit
    at_fault: Bit

    def then(self, *more: Truth) -> Conditions:
        """These conditions and others after them."""
        met, at_fault = self.met, self.at_fault
        for one in more:
            at_fault = at_fault | (met & ~one.numbers)
            met = met & one.yes
        return Conditions(met, at_fault)


def deciding(assertion: Assertion, scene: Scene) -> Bit:
    """Whether an input decides a claim: as a counterexample of a claim about all inputs, or as an example of a claim
    that some input exists."""
    return decides(assertion, scene.truth(assertion.predicate))


def decides(assertion: Assertion, truth: Truth) -> Bit:
    """Whether the truth of the predicate on an input decides a claim."""
    return truth.no if assertion.quantifier == "all" else truth.yes


def conditions(assertion: Assertion, scene: Scene) -> Conditions:
    """The conditions for an input to count: it is in the windows, and meets all conditions of the claim."""
    windows = Conditions(scene.admits(), truth(scene.carrier, False))
    return windows.then(*(scene.truth(tree) for tree in assertion.conditions))


def scene_of(assertion: Assertion, row: Sequence[Bits]) -> Scene:
    operands = assertion.layout.split(list(row))
    return Scene(assertion.shape, operands.a, operands.b, operands.c)


def symbolic_scene(assertion: Assertion, free: int | None = None) -> tuple[Scene, tuple[FNode, ...]]:
    """A claim on symbols, all products but the first `free` ones zero: the quantities, and the symbols."""
    terms = assertion.terms
    zero = {*range(terms if free is None else free, terms), *([terms] if assertion.zero_addend else ())}
    row = symbols_of(assertion.layout, TermCarrier(), zero)
    return scene_of(assertion, row), tuple(bits.node for bits in row if bits.value is None)


def columns_of(assertion: Assertion, table: Patterns) -> list[Bits]:
    """The columns of a table of patterns, one for each operand."""
    formats = assertion.layout.formats
    columns = [lanes(table[:, k], fmt.width) for k, fmt in enumerate(formats)]
    if assertion.zero_addend:
        columns[-1] = constant(columns[-1].carrier, 0, formats[-1].width)
    return columns


def lanes_of(assertion: Assertion, table: Patterns) -> Scene:
    """The quantities of a claim on rows of patterns."""
    return scene_of(assertion, columns_of(assertion, table))
