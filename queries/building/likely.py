"""A table of likely values for the holes of a draft, in the order in which they are tried.

A node's own variants, and further nodes around it, follow the values of this table. A new kind of node needs no row
here: its class has the methods `variants` and `nodes_around`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

from mmaprobe.queries.building.draft import Groups, Reads, Scaled, Start, with_node
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.arithmetic.rounding import OVERFLOWS, ROUNDINGS, Mode, Overflow
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.nodes import Node
from mmaprobe.smtmodel.nodes.element import SUBNORMALS
from mmaprobe.smtmodel.nodes.node import Variant, kinds, others, walk
from mmaprobe.smtmodel.nodes.round import TINY, ZEROS, Tiny, Zero

Value = TypeVar("Value")


def _first_of(values: Sequence[Value], *first: Value) -> tuple[Value, ...]:
    """All values of a node's parameter, with the likely ones first."""
    return *first, *(value for value in values if value not in first)


# -- roundings
MODES: tuple[Mode, ...] = (*ROUNDINGS, "to_odd")
DIRECT: tuple[Mode, ...] = ("nearest_even", "toward_zero")
_UNBOUNDED: tuple[tuple[Tiny, bool], ...] = (("flush_before", True), ("keep", True))
_BOUNDED = [(tiny, False) for tiny in _first_of(TINY, "keep", "flush_after", "flush_before")]
TINIES: tuple[tuple[Tiny, bool], ...] = (*_BOUNDED[:3], *_UNBOUNDED, *_BOUNDED[3:])
OVERFLOW: tuple[Overflow, ...] = _first_of(OVERFLOWS, "ieee", "infinity", "saturate")
SIGNS: tuple[Zero, ...] = _first_of(ZEROS, "ieee", "exact_positive", "positive")
# -- formats
INNER = tuple(FORMATS[name] for name in ("f32", "f64", "bf16", "f16", "e8m13", "tf32"))  # formats of sums within a unit
ROOMY = INNER[:2]  # formats in which sums are often kept
SHORT = INNER[2:4]  # formats in which running sums are stored
WIDE = FORMATS["f64"]  # the format for sums with more bits than the result
# -- sums
ALIGNED: tuple[tuple[Mode, bool], ...] = (*((mode, False) for mode in MODES), ("toward_zero", True))
GUARDS = range(1, 9)  # bits that an inexact sum keeps beyond those of its format
FEWER = range(9)  # bits that a seemingly exact sum may keep beyond those of its format
MOST_BITS = 40  # the most bits of a fused sum, unless the result has more
GROUPS: tuple[Groups, ...] = ("even_odd", "pairs", "quads")  # groups of products that are summed first
JOINED = range(10)  # bits of the finished sum of products beyond the bits of its terms
CUTS = (None, 31, 32, 33, 30, 29, 28, 27, 26, 25, 24)  # bits to which the sum with a late addend is cut
STORED = tuple(2**k for k in range(1, 12))  # numbers of steps between two stores of a running sum
STARTS: tuple[Start, ...] = ("pair", "first", "zero")
SWAPPED: tuple[Start, ...] = ("second", "zero_second")
SCALED: tuple[Scaled, ...] = ("terms", "sums")
# -- inputs
_ALIKE = [(way, way) for way in _first_of(SUBNORMALS, "keep", "zero", "positive_zero")]
READS: tuple[Reads, ...] = (*_ALIKE[:3], ("zero", "keep"), ("keep", "zero"), *_ALIKE[3:])
READ_BITS = (8, 11, 12, 16, 22, 24)  # bits that may be read of inputs in long formats, if a and b differ


def zero_floors(d: Format) -> Sequence[int | None]:
    """The likely exponents of zero terms of fused sums; None: zero terms do not count."""
    floors = [None, *range(d.emin - 18, d.emin + 1)]
    return [*floors, *range(-139, -126)] if d.emin > -100 else floors


def _likely_values(part: Node, parameter: str, d: Format) -> Sequence[object]:
    """The likely values of a parameter of a node."""
    table: dict[tuple[str, str], Sequence[object]] = {
        ("fused", "rounding"): MODES,
        ("fused", "carry_bits"): (None, *range(7)),
        ("cut", "rounding"): MODES,
        ("product", "limit"): (None, d.emax + 1),
    }
    return table.get((part.kind, parameter), ())


def _variants(part: Node, d: Format) -> Iterator[Variant]:
    """Variants of a node: the likely values of each parameter, then the node's own variants."""
    own = list(part.variants())
    for parameter, old in dict.fromkeys((change.parameter, change.old) for change in own):
        yield from others(parameter, old, _likely_values(part, parameter, d))
    yield from own


def varied_expressions(root: Node, d: Format) -> Iterator[Node]:
    """The expressions with one parameter of one node changed, one node left out, or one node added."""
    return _changed(root, lambda part: (*_varied(part, d), *nodes_around(part)))


def with_inserted_node(root: Node, d: Format) -> Iterator[Node]:
    """The expressions with one more node around one of their nodes, with each value of each of its parameters."""
    return _changed(
        root, lambda part: [one for more in nodes_around(part) for one in (more, *_varied(more, d)) if one != part]
    )


def nodes_around(part: Node) -> Iterator[Node]:
    """Nodes of every kind around a node, as the kinds themselves list them."""
    for kind in kinds():
        yield from kind.nodes_around(part)


def _changed(root: Node, change: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    for part in walk(root):
        for other in dict.fromkeys(change(part)):
            yield with_node(root, part, other)


def _varied(part: Node, d: Format) -> Iterator[Node]:
    for variant in _variants(part, d):
        with suppress(ParameterError):
            yield part.varied(variant)
