"""A bound of the difference between a unit's result and the exact sum, derived from its expression.

A term that keeps bits down to the place u loses less than 2^u when it is aligned, whatever the rounding; a result
rounded to nearest is off by at most half a unit in the last place, else by less than one. Excluded are overflow,
flushed subnormals, sums that wrap, and errors that a later step multiplies.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from math import prod

from smtmodel.nodes import Cut, Each, FusedSum, GridSum, Node, Repeat, Round
from smtmodel.unit import Unit


@dataclass(frozen=True)
class Loss:
    """In the fused sum whose signals are called `name`, up to `terms` terms keep `bits` bits below its largest
    exponent; the sum is formed `times` times."""

    name: str
    terms: int
    bits: int
    times: int


def formed(unit: Unit) -> list[tuple[Node, int]]:
    """Every node of a unit, operands first, and how many times an evaluation forms it."""
    found: dict[Node, int] = {}

    def visit(node: Node, loops: tuple[tuple[int, int], ...]) -> None:
        if node in found:
            return
        if isinstance(node, Repeat):
            visit(node.start, loops)
        inside = (*loops, (node.level, len(node.places))) if isinstance(node, (Repeat, Each)) else loops
        for operand in node.operands:  # the start was visited above
            visit(operand, inside)
        deepest = max((place for place, (level, _) in enumerate(loops, start=1) if level in node.free), default=0)
        found[node] = prod(length for _, length in loops[:deepest])

    visit(unit.result, ())
    return list(found.items())


def losses(unit: Unit) -> list[Loss]:
    """The losses by alignment. A term that vanishes because it is out of reach is less than 2^(e - reach + 1)."""
    found = []
    for node, times in formed(unit):
        if isinstance(node, FusedSum):
            reaches = [bits for item, bits in zip(node.items, node.reach or [None] * len(node.items), strict=True)
                       for _ in range(item.count)]  # fmt: skip
            kept = Counter(bits if far is None else min(bits, far - 1)
                           for bits, far in zip(node.bits_of_terms, reaches, strict=True))  # fmt: skip
            found += [Loss(unit.labels[node], terms, bits, times) for bits, terms in kept.items()]
        elif isinstance(node, GridSum):  # a unit is 2^(e - F) or less; a term whose bits are flipped loses at most one
            terms = len(node.bits_of_terms)
            found.append(Loss(unit.labels[node], terms, min(node.fraction_bits), times))
    return found


def roundings(unit: Unit) -> int:
    """The number of roundings in an evaluation, that of d included."""
    return sum(times for node, times in formed(unit) if isinstance(node, Round))


def bound_text(unit: Unit) -> str:
    """The bound in words; e is the largest exponent of a sum's terms."""
    parts = []
    if lost := losses(unit):
        alike: dict[tuple[tuple[tuple[int, int], ...], int], list[str]] = {}
        for (name, times), group in groupby(lost, key=lambda one: (one.name, one.times)):
            alike.setdefault((tuple((one.terms, one.bits) for one in group), times), []).append(name)
        texts = []
        for (terms, times), names in alike.items():
            where = f" in {', '.join(names)}" if any(names) else ""
            texts.append(" + ".join(f"{count} * 2^(e - {bits})" for count, bits in terms) + where + _times(times))
        parts.append(f"alignment loses less than {'; '.join(texts)}, where e is the largest exponent of the terms")
    cuts: Counter[int] = Counter()
    for node, times in formed(unit):
        cuts[node.bits if isinstance(node, Cut) else 0] += times
    for bits, times in cuts.items():
        if bits:
            parts.append(
                f"the cut of a sum loses less than one unit of bit {bits - 1} below its leading one{_times(times)}"
            )
    rounded: Counter[tuple[str, bool]] = Counter()
    for node, times in formed(unit):
        if isinstance(node, Round):
            rounded[node.rounding.format.name, node.rounding.mode.startswith("nearest")] += times
    for (name, nearest), times in rounded.items():
        unit_lost = "at most half a unit" if nearest else "less than one unit"
        parts.append(f"rounding to {name} loses {unit_lost} in the last place{_times(times)}")
    return "; ".join(parts)


def _times(times: int) -> str:
    return f", {times} times" if times > 1 else ""
