"""Expressions made of expressions: parts replaced, loops shifted to other levels, loops written out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from mmaprobe.smtmodel.nodes.element import Element
from mmaprobe.smtmodel.nodes.exact import ExactSum
from mmaprobe.smtmodel.nodes.index import Index
from mmaprobe.smtmodel.nodes.node import Node
from mmaprobe.smtmodel.nodes.repeat import Each, Repeat, Running
from mmaprobe.smtmodel.nodes.round import Round

Leaf = Callable[[Node], Node | None]
#: a node renumbered: by the depth of loops around it, and the levels that those on which it depends have become
Numbered = dict[tuple[Node, int, tuple[tuple[int, int], ...]], Node]


def with_operands(node: Node, operands: Iterable[Node]) -> Node:
    """The node with other operands in the places of its own, in their order: itself, if they are its own."""
    others = tuple(operands)
    if all(new is old for new, old in zip(others, node.operands, strict=True)):
        return node
    given, changes = iter(others), dict[str, Any]()
    for name in node.field_names():
        value = getattr(node, name)
        if isinstance(value, Node):
            changes[name] = next(given)
        elif isinstance(value, tuple) and value and isinstance(value[0], Node):
            changes[name] = tuple(next(given) for _ in value)
    made: Node = replace(node, **changes)  # type: ignore[type-var]
    hash(made)  # while those of its operands are known: from the top it would go through all that is within
    return made


def replaced(node: Node, leaf: Leaf, found: dict[Node, Node] | None = None) -> Node:
    """The expression with every node for which `leaf` gives another replaced by that one, from the top down. `found`
    keeps what became of each node."""
    found = {} if found is None else found
    return _from_below(node, found, leaf, with_operands)


def rebuilt(node: Node, change: Callable[[Node, Node], Node], found: dict[Node, Node]) -> Node:
    """The expression rebuilt from below: `change` is given each node and the same over its rebuilt operands. `found`
    keeps what became of each node."""
    return _from_below(node, found, lambda _: None, lambda old, new: change(old, with_operands(old, new)))


def _from_below(node: Node, found: dict[Node, Node], leaf: Leaf, form: Callable[[Node, Iterable[Node]], Node]) -> Node:
    """What becomes of a node: what `leaf` gives, or made by `form` of what becomes of its operands. Without recursion:
    hundreds of steps may be within one another."""
    waiting = [(node, False)]
    while waiting:
        part, below = waiting.pop()
        if part in found:
            continue
        if below:
            found[part] = form(part, [found[operand] for operand in part.operands])
        elif (other := leaf(part)) is not None:
            found[part] = other
        else:
            waiting += [(part, True), *((operand, False) for operand in reversed(part.operands))]
    return found[node]


def at_place(node: Node, level: int, place: int) -> Node:
    """The expression where the loop variable of a level has a value."""

    def leaf(part: Node) -> Node | None:
        if level not in part.free:
            return part
        if not (isinstance(part, Element) and part.index is not None):
            return None
        factors = dict(part.index.factors)
        offset = part.index.offset + factors.pop(level) * place
        return replace(part, index=Index(offset, tuple(factors.items())))

    return replaced(node, leaf)


def with_running(node: Node, level: int, value: Node) -> Node:
    """The expression with the result so far of the loop at a level replaced."""
    return replaced(node, lambda part: value if part == Running(level) else part if level not in part.free else None)


def each_of(term: Node) -> Iterator[Node]:
    """The terms of a range of terms, one by one; of another term, itself."""
    if isinstance(term, Each):
        for place in term.places:
            yield from each_of(at_place(term.body, term.level, place))
    else:
        yield term


def written_out(node: Node) -> Node:
    """The expression without repetitions: each body once for each place."""

    def leaf(part: Node) -> Node | None:
        if not isinstance(part, Repeat):
            return None
        value = replaced(part.start, leaf)
        for place in part.places:
            body = replaced(at_place(part.body, part.level, place), leaf)
            value = with_running(body, part.level, value)
        return value

    return replaced(node, leaf)


def shifted(node: Node, levels: int, element: Callable[[Element], Node]) -> Node:
    """The expression with its loops `levels` deeper; `element` gives what replaces each of its inputs, in whose index
    the levels are shifted already."""

    def leaf(part: Node) -> Node | None:
        if isinstance(part, Element):
            index = part.index
            if index is not None:
                index = Index(index.offset, tuple((level + levels, factor) for level, factor in index.factors))
            return element(replace(part, index=index))
        if isinstance(part, Running):
            return Running(part.level + levels)
        if isinstance(part, Repeat):
            start, body = (replaced(operand, leaf) for operand in part.operands)
            return Repeat(part.level + levels, part.places, start, body)
        if isinstance(part, Each):
            return Each(part.level + levels, part.places, replaced(part.body, leaf))
        return None

    return replaced(node, leaf)


def numbered(node: Node, depth: int = 0, found: Numbered | None = None) -> Node:
    """The expression with every loop's level one more than that of the loop around it, from `depth` on. `found` keeps
    what became of each node."""
    found = {} if found is None else found

    def visit(part: Node, names: dict[int, int], depth: int) -> Node:
        key = part, depth, tuple((level, names[level]) for level in sorted(part.free) if level in names)
        if key not in found:
            found[key] = form(part, names, depth)
        return found[key]

    def form(part: Node, names: dict[int, int], depth: int) -> Node:
        if isinstance(part, Element) and part.index is not None:
            factors = tuple((names.get(level, level), factor) for level, factor in part.index.factors)
            return replace(part, index=Index(part.index.offset, factors))
        if isinstance(part, Running):
            return Running(names.get(part.level, part.level))
        if isinstance(part, (Repeat, Each)):
            body = visit(part.body, {**names, part.level: depth + 1}, depth + 1)
            if isinstance(part, Each):
                return Each(depth + 1, part.places, body)
            return Repeat(depth + 1, part.places, visit(part.start, names, depth), body)
        return with_operands(part, (visit(operand, names, depth) for operand in part.operands))

    return visit(node, {}, depth)


def terms_of(rounding: Round) -> list[Node]:
    """The terms that a rounding adds exactly: those of its exact sum, nested ones included, or its one term."""
    items = rounding.term.flat.items if isinstance(rounding.term, ExactSum) else (rounding.term,)
    return [term for item in items for term in each_of(item)]
