"""Where an evaluation loses bits: the result of each rounded step compared with the exact sum of its terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from mmaprobe.smtmodel.arithmetic.decode import Unpacked
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.facts import evaluate_one, integer, item_of
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.nodes import Cut, Round, Sum
from mmaprobe.smtmodel.nodes.trace import Visit

Entered = Mapping[str, tuple[int, tuple[tuple[str, Unpacked], ...]]]


@dataclass(frozen=True)
class Loss:
    """A rounded step. `products`: the first and the last nonzero product of its sum, if there are any; `count`: their
    number; `cut`: what the alignment took away; `rounded`: what normalising and rounding added or took away; both are 0
    for a step that loses nothing; `value`: the result, in `format`."""

    step: str
    products: tuple[int, int] | None
    count: int
    cut: Fraction
    rounded: Fraction
    value: Fraction
    format: Format

    @property
    def lost(self) -> Fraction:
        """The result less the exact sum."""
        return self.cut + self.rounded


def losses(model: Model, operands: Operands[int]) -> tuple[list[Loss], int]:
    """The rounded steps of an evaluation in order, up to the first number that is not finite; and the result's
    pattern."""
    evaluation = evaluate_one(model, operands)
    return list(_steps(evaluation.trace.visits, evaluation.trace.entered)), integer(evaluation.d)


def _steps(visits: Sequence[Visit], entered: Entered) -> Iterator[Loss]:
    values: dict[object, Fraction] = {}  # the last value of each node
    cut = rounded = Fraction(0)
    places: list[int] = []
    for visit in visits:
        node, item = visit.node, item_of("", visit.value)
        if item.special:
            return
        value = values[node] = item.value
        if isinstance(node, Sum) and visit.prefix in entered:
            terms = [item_of(name, term) for name, term in entered[visit.prefix][1]]
            lost = value - sum((term.value for term in terms), Fraction(0))
            cut, rounded = (cut + lost, rounded) if node.bits_of_terms else (cut, rounded + lost)
            places += [int(term.name) for term in terms if term.name.isdigit() and not term.is_zero]
        elif isinstance(node, (Cut, Round)):
            rounded += value - values[node.term]
        if isinstance(node, Round):
            ends = (min(places), max(places)) if places else None
            step = visit.prefix.removesuffix(".") or "d"
            yield Loss(step, ends, len(places), cut, rounded, value, node.rounding.format)
            cut, rounded, places = Fraction(0), Fraction(0), []
