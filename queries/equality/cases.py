"""Cases of a sum of two numbers: the distance of their exponents, and the places of the leading ones of significands.

In a single case the shift amounts of a datapath are constant. Many cases together may be as easy as a single case, and
only trying shows which: a case is tried before its parts, for a time that parts of its size took before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from pysmt.fnode import FNode
from pysmt.formula import FormulaManager

FIRST = 5.0  # seconds for a case, if no case of the size of its parts has been proved
LEAST = 1.0  # the least seconds for a case that is tried
MORE = 1.5  # times the seconds of the last case with the same leading zeros
Places = tuple[tuple[int, int], ...]
MOST_FAILURES = 3  # failures in a row that count: after n failures, 2^n - 1 cases of the same size are not tried


@dataclass(frozen=True)
class Zeros:
    """A range of the count of a word's leading zeros: from `low` to `high`, by default the width of the word."""

    word: FNode
    low: int = 0
    high: int | None = None
    divisions: int = 0

    @property
    def most(self) -> int:
        return self.word.bv_width() if self.high is None else self.high

    def parts(self) -> list[Zeros]:
        """Two parts: the halves if `high` is given; else the count 0, then 1, 2 to 3, 4 to 7 and so on, and the
        rest."""
        if self.low == self.most:
            return []
        middle = min(max(2 * self.low - 1, 0), self.most - 1) if self.high is None else (self.low + self.most) // 2
        return [replace(self, high=middle, divisions=self.divisions + 1),
                replace(self, low=middle + 1, divisions=self.divisions + 1)]  # fmt: skip

    def conditions(self, manager: FormulaManager) -> Iterator[FNode]:
        top = self.word.bv_width() - 1
        for bits, zero in ((self.low, True), (self.most + 1, False)):
            if 0 < bits <= top + 1:
                none = manager.Equals(manager.BVExtract(self.word, top + 1 - bits, top), manager.BV(0, bits))
                yield none if zero else manager.Not(none)


def leading_zeros(manager: FormulaManager, word: FNode, width: int) -> FNode:
    """The number of leading zeros of a word, as a term of `width` bits."""
    size = word.bv_width()
    count = manager.BV(size, width)
    for place in range(size):
        first = manager.Equals(manager.BVExtract(word, place, place), manager.BV(1, 1))
        count = manager.Ite(first, manager.BV(size - 1 - place, width), count)
    return count


def values_of(manager: FormulaManager, word: FNode, most: int) -> Iterator[FNode]:
    """For each value from 0 to `most`, the term that a word has this value."""
    return (manager.Equals(word, manager.BV(value, word.bv_width())) for value in range(most + 1))


@dataclass(frozen=True)
class Case:
    """A range of the distance of two exponents (`apart`: the distance; None: there are no two exponents), and for each
    word a range of leading zeros."""

    apart: FNode | None
    within: tuple[int, int]
    zeros: Mapping[FNode, Zeros]
    depth: int = 0

    def parts(self) -> list[Case]:
        """The parts of a case: halves of its distances, or, of a single distance, parts of a word's leading zeros."""
        low, high = self.within
        if low < high:
            middle = (low + high) // 2
            return [replace(self, within=half, depth=self.depth + 1) for half in ((low, middle), (middle + 1, high))]
        for word in sorted(self.zeros, key=lambda word: self.zeros[word].divisions):
            if parts := self.zeros[word].parts():
                return [replace(self, zeros={**self.zeros, word: part}, depth=self.depth + 1) for part in parts]
        return []

    @property
    def places(self) -> Places | None:
        """The range of leading zeros of each word, at a single distance; None for several distances."""
        if self.within[0] != self.within[1]:
            return None
        return tuple((zeros.low, zeros.most) for zeros in self.zeros.values())

    def conditions(self, manager: FormulaManager) -> list[FNode]:
        zeros = [one for zeros in self.zeros.values() for one in zeros.conditions(manager)]
        if self.apart is None:
            return zeros
        width, (low, high) = self.apart.bv_width(), self.within
        first, last = manager.SBV(low, width), manager.SBV(high, width)
        within = [manager.Equals(self.apart, first)]  # engines substitute an equality, but no bounds
        if low < high:
            within = [manager.BVSLE(first, self.apart), manager.BVSLE(self.apart, last)]
        return [*within, *zeros]

    def called(self, names: Mapping[FNode, str]) -> str:
        low, high = self.within
        words = [] if self.apart is None else [f"exponents {f'{low} to {high}' if low < high else low} apart"]
        for word, zeros in self.zeros.items():
            if zeros.divisions:
                count = zeros.low if zeros.low == zeros.most else f"{zeros.low} to {zeros.most}"
                words.append(f"{names[word]} with {count} zeros first")
        return ", ".join(words) or "any"


@dataclass
class Patience:
    """The time for which a case is tried, by the time that cases of the next depth took; for a case of a single
    distance, by the outcome of the last case with the same leading zeros, as neighbouring distances are much alike."""

    costs: dict[int, float] = field(default_factory=dict)
    failures: Counter[int] = field(default_factory=Counter)
    skipped: Counter[int] = field(default_factory=Counter)
    proved: dict[Places | None, float] = field(default_factory=dict)
    divided: dict[Places | None, float] = field(default_factory=dict)

    def limit(self, case: Case) -> float:
        """The seconds for a case; 0: its parts are tried at once."""
        if case.places in self.divided:
            return 0
        if (own := self.proved.get(case.places)) is not None:
            return max(LEAST, MORE * own)
        if self.skipped[case.depth]:
            self.skipped[case.depth] -= 1
            return 0
        return max(LEAST, self.costs.get(case.depth + 1, FIRST))

    def tell(self, case: Case, seconds: float, proved: bool) -> None:
        """Note that a case was proved, or not, in these seconds."""
        depth = case.depth
        if proved:
            self.costs[depth] = (self.costs.get(depth, seconds) + seconds) / 2
        if case.places is not None:
            self.proved.pop(case.places, None)
            (self.proved if proved else self.divided)[case.places] = seconds
        self.failures[depth] = 0 if proved else min(self.failures[depth] + 1, MOST_FAILURES)
        self.skipped[depth] = (1 << self.failures[depth]) - 1

    def tell_parts(self, case: Case, seconds: float) -> None:
        """Note that the parts of a case were proved in these seconds: if the case itself was tried for more than twice
        as long, the next such case may be easy, and is tried."""
        if 2 * seconds < self.divided.get(case.places, 0):
            del self.divided[case.places]
