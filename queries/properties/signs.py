"""Sign symmetry of a unit from that of its parts: each rounding of a sum or product, by itself.

The two sides need not agree about the sign of a zero (or of a NaN) between two parts: a sum that cancels is +0 on both.
So of each part two things are proved: negating all that enters it negates its result, as a value, whatever enters; and
the sign of a zero or NaN result that enters is of no effect on the value. Together they carry "the same value with the
other sign" from part to part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from hypotheses.schema import Inputs
from queries.properties.statements import Negated
from queries.search.problem import Problem
from smtmodel.algebra import Bits, constant
from smtmodel.dot import Evaluation, Model
from smtmodel.errors import ParameterError
from smtmodel.formats import Format
from smtmodel.nodes import Constant, Each, Element, Index, Node, Product, Repeat, Round, Running
from smtmodel.nodes.node import walk
from smtmodel.nodes.rewriting import at_place, replaced
from smtmodel.operands import Operands
from smtmodel.ordering import negated
from smtmodel.unit import Unit, products_of


@dataclass(frozen=True)
class Unsigned(Negated):
    """A part with one addend (of this pattern, whatever the input's c) against itself with that addend negated."""

    addend: int = 0

    def evaluate(self, operands: Operands[Bits], traced: bool = True) -> tuple[Evaluation, Evaluation]:
        c = constant(operands.c.carrier, self.addend, self.left.c.width)
        left, right = (replace(operands, c=given) for given in (c, negated(c, self.left.c)))
        return self.compute(left, traced), self.compute(right, traced)

    @property
    def sides(self) -> tuple[str, str]:
        return f"c = 0x{self.addend:x}", f"c = -0x{self.addend:x}"


@dataclass(frozen=True)
class _Entering:
    """What enters a part beside products: c as it is read, a constant, or the result of a rounding."""

    node: Element | Constant | Round  # of a result only how it is rounded counts

    def format(self, unit: Unit) -> Format:
        return self.node.rounding.format if isinstance(self.node, Round) else unit.c

    @property
    def signs(self) -> tuple[int, ...]:
        """Results of which the sign is to be of no effect."""
        if not isinstance(self.node, Round):
            return ()
        rounding = self.node.rounding
        return 0, rounding.format.nan if rounding.nan is None else rounding.nan

    def operand(self, index: Index | None) -> Node:
        """It as an operand of the part: `c`, or an element of a."""
        if isinstance(self.node, Constant):
            return self.node
        name: Any = "c" if index is None else "a"
        return replace(self.node, operand=name, index=index) if isinstance(self.node, Element) else Element(name, index)


class _NoPartError(Exception):
    """A step that is no unit by itself."""


def negated_parts(problem: Negated) -> list[Problem]:
    """What proves a unit's sign symmetry, as a value, part by part. Empty where it has one part alone, where a part is
    no unit by itself (more than two results enter it, or a result and products of results; scale factors), or where
    inputs are restricted (results on the way are not)."""
    unit = problem.left.unit
    if problem.compare != "value" or problem.inputs != Inputs() or unit.scale is not None:
        return []
    rounds = [node for node in walk(unit.result) if isinstance(node, Round)]
    loops = {node.level: node for node in walk(unit.result) if isinstance(node, (Repeat, Each))}
    found: dict[Problem, None] = {}
    try:
        for node in rounds:
            found |= dict.fromkeys(_problems(unit, node, loops))
    except (_NoPartError, ParameterError):  # an index beyond what the part takes
        return []
    return list(found) if len(rounds) > 1 or any(isinstance(part, Unsigned) for part in found) else []


def _problems(unit: Unit, node: Round, loops: Mapping[int, Repeat | Each]) -> Iterator[Problem]:
    """The problems about one rounding, for each kind of what may enter it and in each round of its loops; those of two
    rounds are most often the same."""
    entering = list(dict.fromkeys(_entering(node.term)))  # equal nodes have equal values
    levels = sorted(node.free)
    for kinds in product(*(_kinds(found, loops, unit.c) for found in entering)):
        given = dict(zip(entering, kinds, strict=True))
        numbers = [found for found in entering if not isinstance(given[found].node, Constant)]
        for round_ in product(*(loops[level].places for level in levels)):
            part = _Part(unit, node, given, dict(zip(levels, round_, strict=True)))
            model = part.model(numbers)
            yield Negated(model, model, compare="value")
            for first in numbers:
                model = part.model(sorted(numbers, key=lambda found: found is not first))
                yield from (Unsigned(model, model, compare="value", addend=pattern) for pattern in given[first].signs)


def _entering(node: Node, each: bool = False) -> Iterator[Node]:
    """What enters a rounding's own sum beside products of inputs. A node that stands for a range of terms (`each`) has
    many values: only products, perhaps rounded, are taken there. Raises _NoPartError."""
    if isinstance(node, Product):
        if not all(isinstance(operand, Element) and operand.operand != "c" for operand in node.operands):
            raise _NoPartError
    elif isinstance(node, (Element, Constant, Running, Repeat)) or (isinstance(node, Round) and not each):
        if each or (isinstance(node, Element) and node.operand != "c"):
            raise _NoPartError
        yield node
    else:
        for operand in node.operands:
            yield from _entering(operand, each or isinstance(node, Each))


def _kinds(node: Node, loops: Mapping[int, Repeat | Each], c: Format) -> list[_Entering]:
    """What may enter in the place of a node: for the result so far of a loop, what it starts from or its body."""
    if isinstance(node, Running):
        loop = loops[node.level]
        assert isinstance(loop, Repeat)
        if isinstance(loop.body, Running):
            raise _NoPartError
        found = list(dict.fromkeys([*_kinds(loop.start, loops, c), *_kinds(loop.body, loops, c)]))
        zero = any(isinstance(kind.node, Round) and kind.node.rounding.format == c for kind in found)
        return [kind for kind in found if not (zero and isinstance(kind.node, Constant))]  # a result may be zero
    if isinstance(node, Repeat):
        return _kinds(node.body, loops, c)
    if isinstance(node, (Element, Constant)):
        return [_Entering(node)]
    if isinstance(node, Round):
        return [_Entering(Round(Constant(), node.rounding))]  # whatever was rounded
    raise _NoPartError


@dataclass(frozen=True)
class _Part:
    """A rounding of a unit in one round of its loops, with what enters it."""

    unit: Unit
    node: Round
    given: Mapping[Node, _Entering]
    places: Mapping[int, int]

    def model(self, numbers: Sequence[Node]) -> Model:
        """It as a unit: the first of `numbers` enters as c, a second one as a. Raises _NoPartError, ParameterError."""
        unit = self.unit
        used = products_of(self._replaced(self.node.term, dict.fromkeys(self.given, Constant()), 0), {})
        if len(numbers) > (1 if used else 2):
            raise _NoPartError
        a, c = unit.a, unit.c
        operands: dict[Node, Node] = {node: entering.node for node, entering in self.given.items()}
        for number, index in zip(numbers, (None, Index(0)), strict=False):
            operands[number] = self.given[number].operand(index)
            a, c = (self.given[number].format(unit), c) if index else (a, self.given[number].format(unit))
        first = min(used, default=0)
        term = self._replaced(self.node.term, operands, first)
        part = Unit(a, unit.b, c, max(used, default=first) - first + 1, Round(term, self.node.rounding))
        return Model(f"{unit.reference}, a part", part)  # parts that compute alike are one

    def _replaced(self, node: Node, operands: Mapping[Node, Node], first: int) -> Node:
        """A node with operands for what enters, its products counted from `first`, in this round of the loops."""

        def leaf(part: Node) -> Node | None:
            if part in operands or not isinstance(part, Element):
                return operands.get(part)
            assert part.index is not None
            return replace(part, index=replace(part.index, offset=part.index.offset - first))

        for level, place in self.places.items():
            operands = {at_place(found, level, place): operand for found, operand in operands.items()}
            node = at_place(node, level, place)
        return replaced(node, leaf)
