"""All that the kernel proves of a unit, with lemmas that are believed, and what the oracle finds wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache

from mmaprobe.queries.kernel.bounds.enclosures import weakened
from mmaprobe.queries.kernel.bounds.induction import carried, closed
from mmaprobe.queries.kernel.bounds.largest import of_largest
from mmaprobe.queries.kernel.lemmas import Lemma
from mmaprobe.queries.kernel.properties.rises import needed, rises
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.properties.bound import bound_in_units, bound_of, chain_of, error_of
from mmaprobe.queries.properties.signs import symmetry_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.normalising import Normaliser
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.smtmodel.units.unit import Unit
from tests import said
from tests.second.tree import Tree
from tests.second.written import written

WIDE = 6  # fraction bits of both factors together
believed = cache(said.believed)  # one theorem for each lemma


class Believing(Settled):
    """Lemmas that nobody proves."""

    def _settled(self, goal: Lemma) -> Theorem:
        return believed(goal)


SETTLE = Believing(Options(), confirmed=False)


def bounds(unit: Unit) -> Iterator[Theorem]:
    """Of the error of its result, of a chain of it, and in units of its last place."""
    yield (found := bound_of(unit, believed))
    yield weakened(found, error_of(found).merged())
    with suppress(RuleError):  # segments, scale factors
        yield of_largest(found)
    with suppress(RuleError):  # no chain
        chain = chain_of(unit, believed)
        yield from (closed(chain), after := carried(chain, 3))
        yield of_largest(after)
    with suppress(RuleError):  # no sum of the kind of Table 9
        yield bound_in_units(unit, unit.length + 1, True, believed)


def signs(unit: Unit) -> Iterator[Theorem]:
    yield symmetry_of(unit, SETTLE)


def risen(unit: Unit) -> Iterator[Theorem]:
    """That the result does not fall where c or the first product rises; of wide factors, whose significands are
    compared one by one for minutes, c alone."""
    wide = unit.scale is not None or unit.a.fraction + unit.b.fraction > WIDE
    for asked in ((unit, None, False), *(() if wide else ((unit, 0, False),))):
        with suppress(RuleError):
            yield rises(*asked, list(map(believed, needed(*asked))))


def forms(unit: Unit) -> Iterator[Theorem]:
    normaliser = Normaliser(Options())
    normaliser.settle = SETTLE
    if (found := normaliser.proof(unit)) is not None:
        yield found


EVERY: Sequence[Callable[[Unit], Iterator[Theorem]]] = (bounds, signs, risen, forms)


def proved(unit: Unit) -> list[Theorem]:
    """What the rules give; what they refuse is left out."""
    found: list[Theorem] = []
    for kind in EVERY:
        with suppress(RuleError):
            found += kind(unit)
    return found


def faults(unit: Unit, theorems: Sequence[Theorem]) -> list[tuple[int, str]]:
    return list(Tree(written(unit, theorems)).check())
