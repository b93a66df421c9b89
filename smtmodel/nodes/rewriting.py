"""Rewriting of expressions: replacing parts, renumbering the levels of loops, writing loops out."""

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
#: (node, depth of loops around it, new levels of the loops on which it depends) -> the renumbered node
Numbered = dict[tuple[Node, int, tuple[tuple[int, int], ...]], Node]


def with_operands(node: Node, operands: Iterable[Node]) -> Node:
    """The node with other operands, given in the order of its operands; the node itself if all are the same objects."""
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
    changed: Node = replace(node, **changes)  # type: ignore[type-var]
    hash(changed)  # caches the hash while the operands' hashes are known; a later hash would recurse through all nodes
    return changed


def replaced(node: Node, leaf: Leaf, cache: dict[Node, Node] | None = None) -> Node:
    """The expression with each node replaced for which `leaf` returns a node. `leaf` is called from the top down, and
    not for parts of replaced nodes. `cache` keeps the result for each node."""
    cache = {} if cache is None else cache
    return _from_below(node, cache, leaf, with_operands)


def rebuilt(node: Node, change: Callable[[Node, Node], Node], cache: dict[Node, Node]) -> Node:
    """The expression rebuilt from the leaves up. `change` is called with each node and with the node over its rebuilt
    operands, and returns the result. `cache` keeps the result for each node."""
    return _from_below(node, cache, lambda _: None, lambda old, new: change(old, with_operands(old, new)))


def _from_below(node: Node, cache: dict[Node, Node], leaf: Leaf, form: Callable[[Node, Iterable[Node]], Node]) -> Node:
    """The result for a node: the node that `leaf` returns, else `form` of the results for its operands. There is no
    recursion, since hundreds of steps may be nested."""
    waiting = [(node, False)]
    while waiting:
        part, below = waiting.pop()
        if part in cache:
            continue
        if below:
            cache[part] = form(part, [cache[operand] for operand in part.operands])
        elif (other := leaf(part)) is not None:
            cache[part] = other
        else:
            waiting += [(part, True), *((operand, False) for operand in reversed(part.operands))]
    return cache[node]


def at_place(node: Node, level: int, place: int) -> Node:
    """The expression with the loop variable of a level replaced by a value."""

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
    """The expression with the running result of the loop at a level replaced."""
    return replaced(node, lambda part: value if part == Running(level) else part if level not in part.free else None)


def each_of(term: Node) -> Iterator[Node]:
    """The terms of a range of terms, one by one; any other node is a single term."""
    if isinstance(term, Each):
        for place in term.places:
            yield from each_of(at_place(term.body, term.level, place))
    else:
        yield term


def written_out(node: Node) -> Node:
    """The expression without repetitions: each body stands once for each place."""

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
    """The expression with its loops `levels` deeper. `element` is called with each input, with the levels of its index
    shifted, and returns the node in its place."""

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


def numbered(node: Node, depth: int = 0, cache: Numbered | None = None) -> Node:
    """The expression with levels counted from `depth`: a loop's level is one more than the level of the loop around it.
    `cache` keeps the result for each node."""
    cache = {} if cache is None else cache

    def visit(part: Node, names: dict[int, int], depth: int) -> Node:
        key = part, depth, tuple((level, names[level]) for level in sorted(part.free) if level in names)
        if key not in cache:
            cache[key] = form(part, names, depth)
        return cache[key]

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
    """The terms whose exact sum a rounding rounds: all terms of an exact sum, with nested exact sums, or the single
    operand."""
    items = rounding.term.flat.items if isinstance(rounding.term, ExactSum) else (rounding.term,)
    return [term for item in items for term in each_of(item)]
