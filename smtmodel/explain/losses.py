"""The losses of an evaluation. A rounded step has two: its result less the exact sum of its terms, and its result less
the result that it would have if no step lost bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

from mmaprobe.smtmodel.arithmetic.display import finite_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.facts import evaluate_one, integer, item_of
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.nodes import Cut, Element, Node, Relu, Repeat, Residue, Round, Running, SortedSum, Sum
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.trace import Visit


@dataclass(frozen=True)
class Loss:
    """A rounded step. `products`: the first and the last nonzero product of the step's sum, or the product that the
    step rounds; None without products; `count`: the number of these products; `cut`: the change by the alignment;
    `rounded`: the change by normalising and rounding; both changes are 0 for an exact step; `value`: the result, in
    `format`; `total`: the result less what the step would give if no step up to this one lost bits (words stay as they
    are); None where this is undefined, since a rounding does more than drop bits; `word`: the step makes a word of an
    element rather than a sum."""

    step: str
    products: tuple[int, int] | None
    count: int
    cut: Fraction
    rounded: Fraction
    value: Fraction
    format: Format
    total: Fraction | None
    word: bool = False


@dataclass(frozen=True)
class ElementLosses:
    """The steps of one element that lose bits, of `count` steps in all. The last step is always one of them, and its
    total is the element less the exact result. `result`: the element's pattern; `words`: the plan's result from its
    words without rounding, less the exact result; None where this difference is unknown."""

    steps: Sequence[Loss]
    count: int
    result: int
    words: Fraction | None


def losses(model: Model, operands: Operands[int]) -> tuple[list[Loss], int]:
    """The rounded steps of an evaluation in order, up to the first value that is not finite; and the result's
    pattern."""
    evaluation = evaluate_one(model, operands)
    steps = _steps(evaluation.trace.visits, _words(model.unit.result))
    return list(steps), integer(evaluation.d)


def element_losses(model: Model, operands: Operands[int], exact: Fraction | None) -> ElementLosses:
    """The losses of one element of a product. `exact`: the element without rounding; None if an input is not finite."""
    steps, result = losses(model, operands)
    sums = [step for step in steps if not step.word]
    if any(isinstance(node, Residue) for node in walk(model.unit.result)):  # residues round to find multiples
        sums = [replace(step, total=None) for step in sums]
    words, d = None, finite_value(result, model.d)
    lossy = [step for step in sums[:-1] if step.cut or step.rounded]
    if sums and exact is not None and d is not None and sums[-1].value == d:
        words = None if sums[-1].total is None else d - sums[-1].total - exact
        lossy.append(replace(sums[-1], total=d - exact))
    return ElementLosses(lossy, len(sums), result, words)


def _words(result: Node) -> Set[Node]:
    """The nodes that read elements of one side alone: words, made of an element before its multiplication."""
    read: dict[Node, frozenset[str]] = {}
    for node in walk(result):
        sides_read = (node.operand.removeprefix("scale_"),) if isinstance(node, Element) else ()
        read[node] = frozenset(sides_read).union(*(read[part] for part in node.operands))
    return {node for node, sides in read.items() if sides in ({"a"}, {"b"})}


def _steps(visits: Sequence[Visit], words: Set[Node]) -> Iterator[Loss]:
    values: dict[Node, Fraction] = {}  # the last value of each node
    totals: dict[Node, Fraction | None] = {}  # the last total of each node
    # totals by the id of a node's value, which is also the object of a sum's term or a loop's result
    by_object: dict[int, Fraction | None] = {}
    alone: dict[Node | int, int | None] = {}  # the only product of a node, by the node and by its value's id
    cut = rounded = Fraction(0)
    places: list[int] = []
    for visit in visits:
        node, item = visit.node, item_of("", visit.value)
        assert isinstance(node, Node)
        if item.special:
            return
        value = values[node] = item.value
        alone[node] = alone[id(visit.value)] = _product(visit, alone)
        if isinstance(node, (Sum, SortedSum)) and visit.terms is not None:
            terms = [item_of(name, term) for name, term in visit.terms]
            lost = value - sum((term.value for term in terms), Fraction(0))
            aligned = isinstance(node, SortedSum) or node.bits_of_terms
            cut, rounded = (cut + lost, rounded) if aligned else (cut, rounded + lost)
            own = [int(name) if name.isdigit() else alone.get(id(term)) for name, term in visit.terms]
            places += [k for k, term in zip(own, terms, strict=True) if k is not None and not term.is_zero]
            total = _added(lost, *(by_object.get(id(term), Fraction(0)) for _, term in visit.terms))
        elif isinstance(node, (Running, Repeat)):
            total = by_object.get(id(visit.value))
        else:
            total = _total(node, values, totals)
        total = Fraction(0) if node in words else total
        totals[node] = by_object[id(visit.value)] = total
        if isinstance(node, (Cut, Round)):
            rounded += value - values[node.term]
        if isinstance(node, Round):
            step, word = visit.prefix.removesuffix(".") or "d", node in words
            if (k := alone[node]) is not None and value and not word:
                places = [k]
            ends = (min(places), max(places)) if places else None
            yield Loss(step, ends, len(places), cut, rounded, value, node.rounding.format, total, word)
            cut, rounded, places = Fraction(0), Fraction(0), []


def _product(visit: Visit, alone: Mapping[Node | int, int | None]) -> int | None:
    """The place of the only product on which a node's value depends: the node is the product, a factor, or computed
    from the product. None for sums and loops."""
    node = visit.node
    assert isinstance(node, Node)
    if isinstance(node, Element):
        return int(visit.place[1:]) if node.operand in ("a", "b") else None
    if visit.terms is not None or isinstance(node, (Running, Repeat)):
        return None
    places = {alone.get(part) for part in node.operands} - {None}
    return places.pop() if len(places) == 1 else None


def _total(node: Node, values: Mapping[Node, Fraction], totals: Mapping[Node, Fraction | None]) -> Fraction | None:
    """The value of a node less the value that the node would have without loss in its operands; None if unknown."""
    below = [totals.get(part) for part in node.operands]
    if node.without_loss == "operand":
        return _added(values[node] - values[node.operands[0]], *below)
    if (node.without_loss == "product" or isinstance(node, Relu)) and None not in below:
        ideal = [values[part] - (lost or 0) for part, lost in zip(node.operands, below, strict=True)]
        return values[node] - (max(*ideal, Fraction(0)) if isinstance(node, Relu) else prod(ideal))
    return None if any(lost != 0 for lost in below) else Fraction(0)


def _added(*parts: Fraction | None) -> Fraction | None:
    known = [part for part in parts if part is not None]
    return sum(known, Fraction(0)) if len(known) == len(parts) else None
