"""Candidate stages for the summation tree of an unrolled loop that adds to one sum, each turn in the same order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product

from mmaprobe.queries.order.tree import Leaf, Node, leaves_of
from mmaprobe.queries.plans.tree_stages import spine
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.plans import Chain, Stage
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.turns import TURN, is_turn_of_one

TURNS = (2, 3, 4, 6, 8, 12, 16, 24, 32)  # products of one turn
MOST_CANDIDATES = (
    64  # candidates for one tree: either of two products that are added to each other may be rounded first
)


def turn_unit(model: Model, order: str) -> Model | None:
    """The unit of one turn in an order of `ieee/turn`, for a kernel whose unit of one product is `model`; None unless
    `model` is a fused multiply-add with one format for all operands."""
    return parse_reference(f"{TURN}{model.d.name}/{order}") if is_turn_of_one(model.unit) else None


def turns_of(root: Node | Leaf, model: Model) -> Iterator[Stage]:
    """Chains for a tree over the products 0, 1, ...: a unit of one turn, repeated, then the unit of one product for the
    products that fill no turn. `model`: the unit of one product; there are chains only if this unit is a fused
    multiply-add with one format for all operands."""
    parts = spine(root)
    if parts is None:
        return
    places = [frozenset(leaves_of(part)) for part in parts]
    count = sum(map(len, places))
    for turn in TURNS:
        second, third = (_within(parts, places, first, turn) for first in (turn, 2 * turn))
        if not second or (third != second and 3 * turn <= count):
            continue
        for order in islice(product(*second), MOST_CANDIDATES):
            unit = turn_unit(model, "+".join(("c", *order)))
            if unit is not None and order != tuple(map(str, range(turn))):  # else it is a chain of single products
                yield Chain(unit, Chain(model))
        return  # several such turns as one make no other unit


def _within(parts: Sequence[Node | Leaf], places: Sequence[frozenset[Leaf]], first: int, turn: int) -> list[list[str]]:
    """The consecutive parts that together hold the `turn` products from `first` on, each as a list of its texts. Empty
    if no parts hold exactly these products, or if all parts are sums of equally many products: these are blocks, which
    other stages cover."""
    wanted = frozenset(range(first, first + turn))
    at = [n for n, own in enumerate(places) if own <= wanted]
    sizes = [len(places[n]) for n in at]
    whole = sum(sizes) == turn and at == [*range(at[0], at[-1] + 1)]
    return [_terms(parts[n], turn) for n in at] if whole and (sizes[0] == 1 or len(set(sizes)) > 1) else []


def _terms(part: Node | Leaf, turn: int) -> list[str]:
    """The texts of a part of a turn in `ieee/turn`: a product, or a sum in brackets."""
    return [f"({text})" for text in _sums(part, turn)] if isinstance(part, Node) else [str(int(part) % turn)]


def _sums(node: Node, turn: int) -> list[str]:
    """The texts of a sum without its brackets. A product stands after the sum to which it is added; two products have
    two texts, since either may be rounded first; two sums have one text, since their order does not matter."""
    one, other = sorted(node.children, key=lambda child: (not isinstance(child, Node), min(leaves_of(child))))
    if not isinstance(one, Node):
        x, y = _terms(one, turn)[0], _terms(other, turn)[0]
        return [f"{x}+{y}", f"{y}+{x}"]
    return [f"{x}+{y}" for x in _sums(one, turn) for y in _terms(other, turn)]
