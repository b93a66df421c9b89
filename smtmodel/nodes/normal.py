"""The normal form of an expression: expressions with the same normal form have the same value on every input.

Each rule keeps the value of a node, with signs of zeros, infinities and NaNs:

- one place: a repetition with one place is its body there;
- nested: a repetition whose body is a repetition from the outer result so far is one repetition over both places;
- variable: a loop variable is shifted so that the least offset of an index that reads it is less than its factor, and
  scaled so that the factors have no common divisor;
- range: the places of a range of terms are in order, and its variable is shifted and scaled likewise;
- joined: a repetition that starts from a repetition with the same body is one repetition over the places of both;
- fixed point: a result rounded again to its own format, where no subnormal, zero or NaN is changed, is itself;
- commuted: the terms of a sum are in one order.

The rules about loops change only the notation: with loops written out, both sides are the same expression. The last two
rules concern values: in tests/units/test_normal_form.py a solver proves, for the formats that ship, that the second
rounding keeps every result of the first, and that sums in any order are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import gcd
from typing import TypeVar

from mmaprobe.smtmodel.nodes.element import Element
from mmaprobe.smtmodel.nodes.index import Index
from mmaprobe.smtmodel.nodes.node import Node, of_kind, walk
from mmaprobe.smtmodel.nodes.repeat import Each, Repeat, Running, places_of
from mmaprobe.smtmodel.nodes.rewriting import Numbered, at_place, numbered, replaced, with_operands, with_running
from mmaprobe.smtmodel.nodes.round import Round, Rounding
from mmaprobe.smtmodel.nodes.sums import Sum

Loop = TypeVar("Loop", Repeat, Each)


@dataclass
class Forms:
    """The normal forms made so far, for expressions that share parts."""

    formed: dict[Node, Node] = field(default_factory=dict)
    numbered: Numbered = field(default_factory=dict)
    commuted: dict[Node, Node] = field(default_factory=dict)


def normal(node: Node, forms: Forms | None = None) -> Node:
    """The normal form of an expression. `forms`: normal forms of other expressions, whose common parts are reused."""
    forms = forms or Forms()
    return _commuted(numbered(_normal_of(node, forms.formed), cache=forms.numbered), forms.commuted)


def _normal_of(node: Node, normal: dict[Node, Node]) -> Node:
    if node not in normal:
        operands = tuple(_normal_of(operand, normal) for operand in node.operands)
        normal[node] = _by_rules(with_operands(node, operands))
    return normal[node]


def _by_rules(node: Node) -> Node:
    if isinstance(node, Repeat):
        return _repeated(node)
    if isinstance(node, Each):  # a range of terms of a sum
        plain = _with_plain_variable(node)
        return replace(plain, places=places_of(sorted(plain.places)))
    if isinstance(node, Round) and _is_fixed_point(node):
        return node.term
    return node


def _commuted(node: Node, kept: dict[Node, Node]) -> Node:
    if node not in kept:
        other = with_operands(node, (_commuted(operand, kept) for operand in node.operands))
        if isinstance(other, Sum):
            items, key = other.items, other.key_of
            order = sorted(range(len(items)), key=lambda at: (hash(items[at]), key(at)))
            other = other.of_terms([(at, items[at]) for at in order])
        kept[node] = other
    return kept[node]


def _is_fixed_point(node: Round) -> bool:
    term = node.term
    while isinstance(term, Repeat):
        term = term.body
    how = node.rounding
    return (
        isinstance(term, Round)
        and (term.rounding.format, term.rounding.nan) == (how.format, how.nan)
        and (
            (how.subnormals, how.zero) == (term.rounding.subnormals, term.rounding.zero)
            or _keeps_small(how, term.rounding)
        )
        and how.zero != "exact_positive"
        and not how.bounds_infinity
        and how.nan_or_zero  # else the outer rounding may change a number written for NaN
    )


def _keeps_small(how: Rounding, before: Rounding) -> bool:
    """Whether a rounding keeps every zero and every subnormal result of the rounding before it."""
    return how.zero == "ieee" and (how.subnormals == "keep" or before.subnormals != "keep")


def _repeated(node: Repeat) -> Node:
    node = _with_plain_variable(_flat_repeat(node))
    if len(node.places) == 1:
        return with_running(at_place(node.body, node.level, node.places[0]), node.level, node.start)
    before = node.start
    if isinstance(before, Repeat) and (before.level, before.body) == (node.level, node.body):
        return Repeat(node.level, (*before.places, *node.places), before.start, node.body)
    return node


def _flat_repeat(node: Repeat) -> Repeat:
    inner = node.body
    if not (isinstance(inner, Repeat) and inner.start == Running(node.level)):
        return node
    if Running(node.level) in walk(inner.body):
        return node
    factors = [dict(index.factors) for index in _indices(inner.body)]
    pairs = {(own.get(node.level, 0), own.get(inner.level, 0)) for own in factors} - {(0, 0)}
    if not pairs:
        return node
    first = min(pairs)
    unit = first[0] // gcd(*first), first[1] // gcd(*first)
    if any(pair[0] * unit[1] != pair[1] * unit[0] for pair in pairs):
        return node
    main = 0 if unit[0] else 1

    def leaf(part: Node) -> Node | None:
        if isinstance(part, Running) and part.level == inner.level:
            return Running(node.level)
        if not (isinstance(part, Element) and part.index is not None):
            return None
        factors = dict(part.index.factors)
        pair = factors.pop(node.level, 0), factors.pop(inner.level, 0)
        factors[node.level] = pair[main] // unit[main]
        return replace(part, index=Index(part.index.offset, tuple(factors.items())))

    places = tuple(unit[0] * outer + unit[1] * own for outer in node.places for own in inner.places)
    return Repeat(node.level, places, node.start, replaced(inner.body, leaf))


def _with_plain_variable(node: Loop) -> Loop:
    level = node.level
    own = [(index.offset, dict(index.factors)[level]) for index in _indices(node.body) if level in dict(index.factors)]
    if not own:
        return node
    common = gcd(*(factor for _, factor in own))
    shift = min(offset // (factor // common) for offset, factor in own)

    def leaf(part: Node) -> Node | None:
        if not (isinstance(part, Element) and part.index is not None and level in part.free):
            return None
        factors = dict(part.index.factors)
        factors[level] //= common
        return replace(part, index=Index(part.index.offset - factors[level] * shift, tuple(factors.items())))

    places = tuple(common * place + shift for place in node.places)
    return replace(node, places=places, body=replaced(node.body, leaf))


def _indices(node: Node) -> Iterator[Index]:
    return (part.index for part in of_kind(node, Element) if part.index is not None)
