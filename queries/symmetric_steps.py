"""Sign symmetry of a model from that of its parts: the steps of a chain, rounded products and IEEE additions.

The two sides of a chain need not agree about the sign of a zero (or of a NaN) between two steps: a sum that cancels is
+0 on both. So of each part two things are proved: negating all that enters it negates its result, as a value, from
any sum so far; and the sign of a zero or NaN that enters is of no effect on the value. Together they carry "the same
value with the other sign" from part to part.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypotheses.schema import Inputs
from queries.problem import Problem
from queries.properties import Negated
from smtmodel.algebra import Bits, constant
from smtmodel.dot import Evaluation, Model, UnitModel
from smtmodel.errors import ParameterError
from smtmodel.families import addend_of, product_of, result_of
from smtmodel.nodes import Element, ExactSum, Index, Round
from smtmodel.operands import Operands
from smtmodel.ordering import negated
from smtmodel.reference import with_parameters
from smtmodel.unit import Unit


@dataclass(frozen=True)
class Unsigned(Negated):
    """A part with one addend (of this pattern, whatever the input's c) against itself with that addend negated."""

    addend: int = 0

    def evaluate(self, operands: Operands[Bits]) -> tuple[Evaluation, Evaluation]:
        c = constant(operands.c.carrier, self.addend, self.left.c.width)
        left, right = (replace(operands, c=given) for given in (c, negated(c, self.left.c)))
        return self.compute(left), self.compute(right)

    @property
    def sides(self) -> tuple[str, str]:
        return f"c = 0x{self.addend:x}", f"c = -0x{self.addend:x}"


@dataclass(frozen=True)
class _Addition(Negated):
    """The IEEE addition of a0 (a pattern of the results' format) and c, or of c and a0."""

    swapped: bool = False
    given: bool = False  # c is an input of the unit, not a sum so far

    def compute(self, operands: Operands[Bits]) -> Evaluation:
        model = self.left
        c = addend_of(model.accumulator) if self.given else Element("c")
        pair = (Element("a", Index(0)), c)
        last = result_of(model.accumulator).rounding
        unit = Unit(model.d, model.b, model.c, 1, Round(ExactSum(pair[::-1] if self.swapped else pair), last))
        return Evaluation(*unit.evaluate(operands.a[:1], operands.b[:1], operands.c))


@dataclass(frozen=True)
class NegatedAddition(_Addition):
    """Negating both operands of an addition negates its result."""


@dataclass(frozen=True)
class UnsignedAddition(_Addition, Unsigned):
    """The sign of a zero or NaN operand of an addition is of no effect on the value."""


@dataclass(frozen=True)
class NegatedProduct(Negated):
    """Negating one factor negates the rounded product."""

    def compute(self, operands: Operands[Bits]) -> Evaluation:
        model = self.left
        result = Round(product_of(model.accumulator), result_of(model.accumulator).rounding)
        unit = Unit(model.a, model.b, model.c, 1, result)
        return Evaluation(*unit.evaluate(operands.a[:1], operands.b[:1], operands.c))


def negated_parts(problem: Negated) -> list[Problem]:
    """What proves a model's sign symmetry, as a value, part by part. Empty where its steps are no models by themselves
    (that of a unit that flushes its inputs would flush sums between steps too), or where inputs are restricted (such
    sums are not)."""
    model = problem.left
    if isinstance(model, UnitModel):
        return []
    accumulator = model.accumulator
    rounded, after = accumulator.operation == "add_mul", accumulator.addend == "after"
    if (
        problem.compare != "value"
        or problem.inputs != Inputs()
        or model.scale is not None
        or ((after or rounded) and model.c != model.d)
    ):
        return []
    if rounded:
        return [NegatedProduct(model, model, compare="value"), *_additions(model)]
    steps = _steps(model) if (after or len(accumulator.blocks) > 1) and not accumulator.flush_inputs else []
    return [*steps, *_additions(model)] if steps and after else steps


def _steps(model: Model) -> list[Problem]:
    """One step from c and from any sum so far, and what the sign of a zero or NaN does there. None where c is read
    otherwise than a sum so far, since a step by itself reads every addend as an input."""
    if _reads_otherwise(model):
        return []
    length, formats = len(model.accumulator.blocks[0]), {model.c.name: model.c, model.d.name: model.d}
    try:
        changes = {"length": length, "block": length, "block_order": "contiguous"}
        step = with_parameters(model, changes | ({"addend": "fused"} if model.accumulator.addend == "after" else {}))
    except ParameterError:
        return []
    running = replace(step, c=model.d)
    return [
        *(Negated(one, one, compare="value") for one in (replace(step, c=fmt) for fmt in formats.values())),
        *(Unsigned(running, running, compare="value", addend=pattern) for pattern in _signs(model)),
    ]


def _reads_otherwise(model: Model) -> bool:
    """Whether inputs are not read as the patterns that they are."""
    return model.accumulator.flush_inputs or model.accumulator.input_zeros != "signed"


def _additions(model: Model) -> list[Problem]:
    """Additions in both orders; sums so far are taken as they are, c as the unit reads it."""
    base = replace(model, a=model.d, b=model.d)
    found: list[Problem] = []
    for swapped in (False, True):
        for given in sorted({False, _reads_otherwise(model)}):
            found.append(NegatedAddition(base, base, compare="value", swapped=swapped, given=given))
            for pattern in _signs(model):
                one = UnsignedAddition(base, base, compare="value", swapped=swapped, given=given, addend=pattern)
                found.append(one)
    return found


def _signs(model: Model) -> tuple[int, int]:
    """Patterns whose sign is to be of no effect: zero, and the NaN that results are."""
    return 0, model.accumulator.nan_pattern
