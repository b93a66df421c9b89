"""Stages of building: the part of a draft that each stage decides, and the inputs on which that part alone has an
effect."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from mmaprobe.queries.building.answers import NonzeroLeaves
from mmaprobe.queries.building.axes import (
    APART,
    end_tiers,
    product_tiers,
    refined_tiers,
    tiny_tier,
    tiny_tiers,
    zero_tiers,
)
from mmaprobe.queries.building.candidates import Sketch
from mmaprobe.queries.building.lanes import lanes_of
from mmaprobe.queries.building.number_kinds import Counts, every, finite, nonzero, not_zero, ordinary
from mmaprobe.queries.building.roles import adders_of, placements, words_of
from mmaprobe.queries.building.shapes import INNER, Kind, Shapes
from mmaprobe.queries.building.steps import StepAxes, Tier, carry_tiers, late_tiers
from mmaprobe.queries.order.tree import Leaf, leaves_of
from mmaprobe.queries.search.samples import Table

KINDS: tuple[Kind, ...] = ("middle", "heavy", "small", "large", "anything", "vanishing", "subnormal")
WHOLE = 8  # products, at most, of a sum whose leaves are all nonzero at once
LONG = 64  # products above which a sum is long
SHORT = 4  # bits of factors whose products no lower step rounds; fewer if results have fewer bits
PLACED = 4  # roles, at most, with a stage each for their smallest numbers
NEIGHBOURS = 3  # neighbours of one role in one set of leaves
PLACES = 3  # sets of leaves for each step
FIRST = 3  # tiers of a fused step that are tried before its products alone


@dataclass(frozen=True)
class Pool:
    """The source of a stage's inputs. `kept`: the leaves that are not zero."""

    kept: NonzeroLeaves
    rows: Callable[[int], Table]


@dataclass(frozen=True)
class DraftStage:
    """A part of a draft to decide. Its candidates come in tiers: if none of one tier is left, the next tier is tried.
    `counts`: the function that says which results count. `rank`: the first stage about which this stage's inputs give
    information; `since`: the least rank of inputs that candidates are compared on. `signs`: whether the signs of zeros
    count, which they never do among ordinary numbers. `otherwise`: sequences of stages to try instead if no tier has a
    candidate."""

    name: str
    rank: int
    tiers: Sequence[Tier]
    pools: Sequence[Pool]
    counts: Counts
    otherwise: tuple[tuple[DraftStage, ...], ...] = ()
    since: int = 0
    signs: bool = True


class Stages:
    """The stages for the trees of a sketch. `all`, in order: `steps` by role, from the last step down; then the parts
    that all steps share, `products`, `carries` and the `limits` of the range, which are the smallest numbers, zeros,
    and the largest numbers with special values (`ends`). `quick`: whether only likely drafts are tried; `seen`: gives
    the number of significant bits of the results so far, or (True) of the results of products alone; `fused`: asks
    which products are fused into the addition while others are rounded before it. `long`: the sum has more than LONG
    products, so fewer vectors validate it; `few`: only few leaves are nonzero at a time."""

    def __init__(
        self,
        sketch: Sketch,
        shapes: Shapes,
        chance: random.Random,
        quick: bool = False,
        seen: Callable[[bool], int] = lambda alone: 0,
        fused: Callable[[], frozenset[int]] = frozenset,
    ) -> None:
        self.sketch, self.shapes, self.chance, self.quick = sketch, shapes, chance, quick
        self.seen, self.fused = seen, fused
        self.asked = sketch.asked
        self.narrow = Shapes(self.asked, 1, shapes.weights, narrow=True)
        self.long, self.few = self.asked.length > LONG, self.asked.length > WHOLE
        self.steps = self._steps()
        rank, kinds = 2 * len(self.steps), sorted({kind for stages in sketch.kinds for kind in stages.values()})
        tiers = product_tiers(kinds, self.asked, self._adders(), self.fused)
        self.products = DraftStage("products", rank, tiers, self._pools("middle"), ordinary)
        tiers = carry_tiers(range(sketch.count))
        self.carries = DraftStage("carries", rank + 1, tiers, self._pools("heavy"), ordinary)
        small = self._smallest(rank + 2, [*self._pools("small"), *self._small_by_role()])
        zeros = DraftStage("zeros", small.rank, zero_tiers(kinds, self.asked), [self.pool("small")], finite)
        tiers = end_tiers(self.asked, sketch.weights)
        self.ends = DraftStage("overflow and specials", small.rank + 1, tiers, *self._ends())
        self.limits = small, zeros, self.ends
        self.all = [*self.steps, self.products, self.carries, *self.limits]

    @property
    def everything(self) -> DraftStage:
        """The last stage, in which every answer counts."""
        return replace(self.ends, counts=every)

    @property
    def ranks(self) -> list[int]:
        """For each of KINDS, the rank of the stage about which rows of this kind give information."""
        decided = self.products, self.carries, self.limits[0], *[self.ends] * 4
        return [stage.rank for stage in decided]

    def _steps(self) -> list[DraftStage]:
        several, stages = len(self.sketch.parts) > 1, list[DraftStage]()
        if several or isinstance(self.sketch.parts[0].root, int | str):
            name, kind = ("the order and the roundings", "any") if several else ("the rounding", "exact")
            return [DraftStage(name, 0, self._axes(kind, 0).tiers(), self._pools("middle"), ordinary)]
        for role in range(self.sketch.count):
            stages += self._stages_of_role(role, self.sketch.kinds[0][role], 2 * len(stages))
        return stages

    def _axes(self, kind: str, role: int, alone: bool = False) -> StepAxes:
        """The axes of a role's steps. `alone`: the axes of their products, without the terms that are added to
        these."""
        seen = partial(self.seen, alone or role > 0)
        if len(self.sketch.parts) > 1:
            return StepAxes(kind, role, self.asked, seen)
        [part] = self.sketch.parts
        lanes = lanes_of(part) if kind == "fused" and self.asked.length <= WHOLE else []
        return StepAxes(kind, role, self.asked, seen, lanes, adders_of(part).get("c") == role, alone)

    def _smallest(self, rank: int, small: Sequence[Pool]) -> DraftStage:
        """The stage of the smallest numbers, with one treatment for all roles. If this leaves no candidate and there
        are many roles, a stage for each role, from the last step down, with terms and sums that are normal numbers."""
        name, several = "the smallest numbers", self.sketch.count > APART and len(self.sketch.parts) == 1
        tiers = tiny_tiers(self.asked, self.sketch.weights, not several)
        if not several:
            return DraftStage(name, rank, tiers, small, nonzero)
        last, by_role = rank + self.sketch.count, list[DraftStage]()
        for role in range(self.sketch.count):
            tier, pools = tiny_tier(role), self._sums_of(role)
            step = DraftStage(f"{name} of step {role + 1}", rank + role, [tier], pools, finite, since=rank, signs=False)
            by_role.append(step)
        refined = DraftStage(f"{name} of each step", last, refined_tiers(self.asked, self._adders()), small, nonzero)
        return DraftStage(name, last, tiers, small, nonzero, ((*by_role, refined),))

    def _sums_of(self, role: int) -> list[Pool]:
        """Inputs with tiny sums of a role whose terms are not tiny."""
        places = placements(self.sketch.parts[0], role, self.chance, PLACES)
        return [self.pool("cancelling", place) for place in places if any(leaf != "c" for leaf in place)]

    def _ends(self) -> tuple[list[Pool], Counts]:
        """Pools of the largest numbers, and the function that says which results count: all. For long sums the pools
        use few leaves and zeros do not count, as the zeros at other leaves have signs."""
        return ([self.pool("large")], every) if not self.long else (self._pools("large"), not_zero)

    def _stages_of_role(self, role: int, kind: str, rank: int) -> list[DraftStage]:
        """The stages of a role. They decide how its steps add; for fused steps with other terms, how the steps add
        products, and then how other terms join these."""
        part, tiers = self.sketch.parts[0], self._axes(kind, role).tiers(self.quick)
        places = placements(part, role, self.chance, PLACES)
        name = f"step {role + 1} of {self.sketch.count}, {words_of(part.steps(role)[0])}"
        if kind != "fused":
            return [DraftStage(name, rank, tiers, self._sums(places, role), ordinary)]
        joined = any(not isinstance(child, int) for node in part.steps(role) for child in node.children)
        alone = list(dict.fromkeys(frozenset(self._alone(place, role)) for place in places))
        alone = [place for place in alone if len(place) > 1]
        if not alone or not joined or set(alone) == set(places):
            return [DraftStage(name, rank, tiers, self._sums(places, role), ordinary)]
        apart, sums = self._axes(kind, role, alone=True).tiers(self.quick), self._sums(places, role)
        products = DraftStage(f"{name}, its products", rank, apart, self._sums(alone, role), ordinary)
        joins = DraftStage(f"{name}, what joins", rank + 1, late_tiers(role), sums, ordinary)
        more = DraftStage(name, rank + 1, tiers[FIRST:], sums, ordinary)
        return [replace(more, tiers=tiers[:FIRST], otherwise=((products, joins), (more,)))]

    def _alone(self, place: frozenset[Leaf], role: int) -> Iterator[Leaf]:
        """The leaves in `place` that are products added by a step of this role."""
        own = {child for node in self.sketch.parts[0].steps(role) for child in node.children if isinstance(child, int)}
        return (leaf for leaf in place if leaf in own)

    def _sums(self, places: Sequence[frozenset[Leaf]], role: int) -> list[Pool]:
        below = role + 1 < self.sketch.count and max(self.asked.a.emax, self.asked.b.emax) <= INNER.emax
        shapes = self.narrow if below else self.shapes

        def rows(place: frozenset[Leaf], bits: int) -> Callable[[int], Table]:
            return lambda count: shapes.sums(count, place, bits)

        return [Pool(place, rows(place, max(1, min(SHORT, self.asked.d.precision // 2)))) for place in places]

    def pool(self, kind: Kind, place: NonzeroLeaves = None) -> Pool:
        """Rows of a kind with nonzero products at some leaves only."""
        if place is None:
            return Pool(None, lambda count: self.shapes.rows(kind, count))
        return Pool(place, lambda count: self.shapes.at(kind, count, place))

    def _pools(self, kind: Kind) -> list[Pool]:
        """Pools of a kind: one with nonzero products at any leaves; for long sums several, each with few leaves."""
        several = len(self.sketch.parts) > 1
        if not self.few:
            return [self.pool(kind)]
        leaves = leaves_of(self.sketch.parts[0].root)
        chosen = [
            frozenset(["c", *leaves[:3], *self.chance.sample(leaves, 3), *self._leaves_of_each_role(begin)])
            & frozenset(leaves)
            for begin in (True, False)
        ]
        if several:  # adjacent leaves, and leaves far apart
            length = self.asked.length
            near: list[list[int]] = [[0, 1, 2, 3], [0, 1, length // 2, length // 2 + 1]]
            near += [[*range(0, length, length // 4)], [0, 1, 2, length - 1]]
            chosen = [frozenset(leaf for leaf in leaves if leaf == "c" or leaf in places) for places in near]
        return [self.pool(kind, place) for place in chosen]

    def _adders(self) -> list[int]:
        """The roles whose steps add products; empty while the order is open."""
        adders = adders_of(self.sketch.parts[0]) if len(self.sketch.parts) == 1 else {}
        return sorted({role for leaf, role in adders.items() if leaf != "c"})

    def _leaves_of_each_role(self, begin: bool) -> Iterator[Leaf]:
        """For each role, adjacent leaves that its steps add. `begin`: whether two leaves of one step are among them, as
        only these show how a sum begins."""
        adding, part = self._adders(), self.sketch.parts[0]
        if not adding or (len(adding) < 2 and not begin):
            return
        adders = adders_of(part)
        for role in adding[:PLACED]:
            own = [leaf for leaf in leaves_of(part.root) if leaf != "c" and adders[leaf] == role]
            start = self.chance.randrange(max(1, len(own) - NEIGHBOURS + 1))
            yield from own[start : start + NEIGHBOURS]
            both = [[leaf for leaf in node.children if isinstance(leaf, int)][:2] for node in part.steps(role)]
            if begin and (pairs := [pair for pair in both if len(pair) == 2]):
                yield from self.chance.choice(pairs)

    def _small_by_role(self) -> list[Pool]:
        """Small numbers at leaves of one role, for each role."""
        part = self.sketch.parts[0]
        if len(self.sketch.parts) > 1 or part.count < 2:
            return []
        places = [placements(part, role, self.chance, 1)[0] for role in range(part.count)]
        pools = [self.pool("small", place) for place in places[:PLACED] if any(leaf != "c" for leaf in place)]
        return pools if self.few else [replace(pool, kept=None) for pool in pools]

    def pools_with_ranks(self, few: bool) -> Iterator[tuple[int, Pool]]:
        """Pools of every kind with their ranks: at all leaves, and at the leaves of each role. `few`: whether units are
        restricted to the leaves of that role."""
        part = self.sketch.parts[0]
        ranks = self.ranks
        if not self.long:
            for kind, rank in zip(KINDS, ranks, strict=True):
                yield rank, self.pool(kind)
        if len(self.sketch.parts) == 1:
            for role in range(part.count):
                for place in placements(part, role, self.chance, 2):
                    for kind, rank in zip(KINDS, ranks, strict=True):
                        if any(leaf != "c" for leaf in place):
                            yield rank, replace(self.pool(kind, place), kept=place if few else None)
