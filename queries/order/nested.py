"""The leaves spared by masks on one leaf and each of many others, with few questions if units are counted in several
groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mmaprobe.queries.order.tree import Leaf, Pair

Counts = Callable[[Sequence[tuple[Pair, Sequence[Leaf]]]], Sequence[int | None]]


@dataclass(frozen=True)
class Nested:
    """Masks on `pivot` and one other leaf. In a tree, one of two such masks hides all leaves that the other hides,
    unless their leaves join an exact step at once.

    Each mask has its first question about its own group, the group of its leaf other than `pivot`. For masks with the
    same own group, the masks that hide the fewest and the most leaves there have questions about the other groups; the
    masks between only if these answers differ. Of masks that hide equally many leaves in their own group, the first has
    a question about every other group, and each further mask about one group in which the first mask hides some leaves
    and spares others, if there is such a group."""

    counts: Counts
    groups: Sequence[Sequence[Leaf]]
    pairs: Sequence[Pair]
    pivot: Leaf

    def left(self) -> dict[Pair, int]:
        """By mask, the number of units that remain, if the answers show it and agree."""
        group_of = {leaf: number for number, group in enumerate(self.groups) for leaf in group}
        own = {pair: group_of[pair[0] if pair[1] == self.pivot else pair[1]] for pair in self.pairs}
        alike: dict[int, dict[int, list[Pair]]] = defaultdict(lambda: defaultdict(list))
        for pair, count in zip(self.pairs, self._asked([(pair, own[pair]) for pair in self.pairs]), strict=True):
            if count is not None:
                alike[own[pair]][count].append(pair)
        first = {number: [alike[number][count][0] for count in sorted(alike[number])] for number in alike}
        known = self._of_each_group(first)
        counts: dict[Pair, int] = {}
        rest: list[tuple[Pair, int, Pair]] = []
        for number, by_count in alike.items():
            others = [other for other in range(len(self.groups)) if other != number]
            for count, pairs in by_count.items():
                spared = {other: known.get((pairs[0], other)) for other in others}
                if None in spared.values():
                    continue
                counts[pairs[0]] = count + sum(x for x in spared.values() if x is not None)
                some = [other for other, x in spared.items() if x and x < len(self.groups[other])] or others
                rest += [(pair, some[at % len(some)], pairs[0]) for at, pair in enumerate(pairs[1:])]
        answers = self._asked([(pair, other) for pair, other, _ in rest])
        for (pair, other, like), count in zip(rest, answers, strict=True):
            if count == known[like, other]:
                counts[pair] = counts[like]
        return counts

    def _of_each_group(self, first: dict[int, list[Pair]]) -> dict[tuple[Pair, int], int | None]:
        """The numbers of leaves that masks spare in groups other than the group of their leaf; `first`: the masks in
        order, by the group of their leaf."""
        known: dict[tuple[Pair, int], int | None] = {}
        spans = [(number, other, 0, len(first[number]) - 1)
                 for number in first for other in range(len(self.groups)) if other != number]  # fmt: skip
        while spans:
            ends = {(first[number][at], other) for number, other, low, high in spans for at in (low, high)}
            new = sorted(ends - known.keys(), key=str)
            known |= dict(zip(new, self._asked(new), strict=True))
            spans = [half for span in spans for half in self._halves(first, known, *span)]
        return known

    def _halves(
        self, first: dict[int, list[Pair]], known: dict[tuple[Pair, int], int | None], number: int, other: int,
        low: int, high: int,
    ) -> Iterator[tuple[int, int, int, int]]:  # fmt: skip
        """The parts of a span with different counts at their ends; if the counts are the same, those of all masks
        between are known."""
        if high - low < 2:
            return
        one = known[first[number][low], other]
        if one is not None and one == known[first[number][high], other]:
            known.update({(pair, other): one for pair in first[number][low + 1 : high]})
            return
        middle = (low + high) // 2
        yield from ((number, other, low, middle), (number, other, middle, high))

    def _asked(self, asked: Sequence[tuple[Pair, int]]) -> Sequence[int | None]:
        return self.counts([(pair, self.groups[number]) for pair, number in asked])
