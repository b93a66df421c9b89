"""The conditions of a parallel choice ($pmux): whether two can hold at once, and whether one always holds.

The conditions are conjunctions of bits, read off their gates. A bit of any other gate is a free variable, so that
conclusions hold whatever the rest of a design computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations, product

Wire = int | str  # the number of a bit, or "0", "1", "x", "z" for a constant
Gate = tuple[str, Mapping[str, tuple[Wire, ...]]]  # a gate's type, and the bits of its inputs by port
Cube = Mapping[Wire, bool]  # a conjunction: bit -> the value that the bit must have

MOST_CONJUNCTIONS = 256  # the most conjunctions in one condition
VARIABLES = 24  # the most bits of which all combinations of values are tried


class Conditions:
    """The conditions of one choice. `gate_of`: the gate that drives a bit; None if no single gate does."""

    def __init__(self, conditions: Sequence[Wire], gate_of: Callable[[Wire], Gate | None]) -> None:
        self._gate_of = gate_of
        self._cases = [self._cubes(condition) for condition in conditions]

    @cached_property
    def disjoint(self) -> bool:
        """True only if no two conditions can hold at once."""
        pairs = combinations(self._cases, 2)
        return all(_conflict(one, other) for left, right in pairs for one, other in product(left, right))

    @cached_property
    def covering(self) -> bool:
        """True only if some condition holds for all values of the bits."""
        every = [cube for case in self._cases for cube in case]
        return len({bit for cube in every for bit in cube}) <= VARIABLES and _covering(every)

    def _cubes(self, bit: Wire) -> list[Cube]:
        """The conjunctions of a condition, which holds where at least one of its conjunctions holds."""
        alone: list[Cube] = [{bit: True}]
        if bit in ("0", "1"):
            return [{}] if bit == "1" else []
        gate = self._gate_of(bit)
        if gate is None:
            return alone
        kind, inputs = gate
        sides = [side for side in (inputs.get("A", ()), inputs.get("B", ())) if side]
        single = all(len(side) == 1 for side in sides)
        match kind:
            case "$eq" | "$eqx" if len({len(side) for side in sides}) == 1:
                return _equal(zip(*sides, strict=True), alone)
            case "$logic_not" | "$not" if kind == "$logic_not" or single:
                return _equal(((one, "0") for one in sides[0]), alone)
            case "$reduce_and":
                return _equal(((one, "1") for one in sides[0]), alone)
            case "$or" | "$logic_or" | "$reduce_or" | "$reduce_bool" if kind != "$or" or single:
                cubes = [cube for side in sides for one in side for cube in self._cubes(one)]
                return cubes if len(cubes) <= MOST_CONJUNCTIONS else alone
            case "$and" | "$logic_and" if single:
                pairs = product(*(self._cubes(side[0]) for side in sides))
                both: list[Cube] = [{**one, **other} for one, other in pairs if not _conflict(one, other)]
                return both if len(both) <= MOST_CONJUNCTIONS else alone
        return alone


def _equal(pairs: Iterable[tuple[Wire, Wire]], otherwise: list[Cube]) -> list[Cube]:
    """The condition that the bits of each pair are equal, as conjunctions; `otherwise` if a pair is not a bit and a
    known constant."""
    cube: dict[Wire, bool] = {}
    for one, other in pairs:
        bit, value = (one, other) if other in ("0", "1") else (other, one)
        if value not in ("0", "1") or bit in ("x", "z"):
            return otherwise
        wanted = value == "1"
        if bit in ("0", "1"):
            if (bit == "1") != wanted:
                return []
        elif cube.setdefault(bit, wanted) != wanted:
            return []
    return [cube]


def _conflict(one: Cube, other: Cube) -> bool:
    return any(other.get(bit, value) != value for bit, value in one.items())


def _covering(cubes: Sequence[Cube]) -> bool:
    """Whether at least one of some conjunctions holds for all values of the bits. Both values of a bit are tried, then
    of the next."""
    if not all(cubes):
        return True
    if not cubes:
        return False
    shortest: Cube = min(cubes, key=len)
    bit = next(iter(shortest))
    return all(
        _covering([{one: wanted for one, wanted in cube.items() if one != bit} for cube in cubes
                   if cube.get(bit, value) == value])
        for value in (False, True)
    )  # fmt: skip
