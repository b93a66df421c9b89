"""Cases of a sum of two numbers: how far their exponents lie apart, and where the first ones of their significands are.

In a case by itself what a datapath shifts by is constant. Many are as easy as one, and which these are is found while
they are proved: a case is tried before its parts, and how long, parts of its size tell that were proved before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from pysmt.fnode import FNode
from pysmt.formula import FormulaManager

FIRST = 5.0  # seconds for a case, where none of its parts has been proved
LEAST = 1.0  # seconds for any
MORE = 1.5  # times what the last one with the same leading zeros took
Places = tuple[tuple[int, int], ...]
MOST = 3  # failures in a row that count: after each of them twice as many cases of that size are not tried


@dataclass(frozen=True)
class Zeros:
    """The leading zeros of a word: from `low` to `high`, by default as many as there may be."""

    word: FNode
    low: int = 0
    high: int | None = None
    divisions: int = 0

    @property
    def most(self) -> int:
        return self.word.bv_width() if self.high is None else self.high

    def parts(self) -> list[Zeros]:
        """None, one, two or three, four to seven, and so on; and halves of these."""
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
    """How many zeros a word begins with, in so many bits."""
    size = word.bv_width()
    count = manager.BV(size, width)
    for place in range(size):
        first = manager.Equals(manager.BVExtract(word, place, place), manager.BV(1, 1))
        count = manager.Ite(first, manager.BV(size - 1 - place, width), count)
    return count


def values_of(manager: FormulaManager, word: FNode, most: int) -> Iterator[FNode]:
    """That a word has a value, for each one up to the largest."""
    return (manager.Equals(word, manager.BV(value, word.bv_width())) for value in range(most + 1))


@dataclass(frozen=True)
class Case:
    """How far two exponents lie apart, if there are two, from one number to another one, and the leading zeros of
    words."""

    apart: FNode | None
    within: tuple[int, int]
    zeros: Mapping[FNode, Zeros]
    depth: int = 0

    def parts(self) -> list[Case]:
        """What it is divided into: halves of the distances, and of one distance the places of first ones."""
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
        """The leading zeros of each word, from how many to how many, at one distance; None for several ones."""
        if self.within[0] != self.within[1]:
            return None
        return tuple((zeros.low, zeros.most) for zeros in self.zeros.values())

    def conditions(self, manager: FormulaManager) -> list[FNode]:
        zeros = [one for zeros in self.zeros.values() for one in zeros.conditions(manager)]
        if self.apart is None:
            return zeros
        width, (low, high) = self.apart.bv_width(), self.within
        first, last = manager.SBV(low, width), manager.SBV(high, width)
        within = [manager.Equals(self.apart, first)]  # substituted by engines, which bounds are not
        if low < high:
            within = [manager.BVSLE(first, self.apart), manager.BVSLE(self.apart, last)]
        return [*within, *zeros]

    def called(self, names: Mapping[FNode, str]) -> str:
        low, high = self.within
        said = [] if self.apart is None else [f"exponents {f'{low} to {high}' if low < high else low} apart"]
        for word, zeros in self.zeros.items():
            if zeros.divisions:
                count = zeros.low if zeros.low == zeros.most else f"{zeros.low} to {zeros.most}"
                said.append(f"{names[word]} with {count} zeros first")
        return ", ".join(said) or "any"


@dataclass
class Patience:
    """How long cases of each depth are tried, by how long those of the next one took; and cases of one distance, by
    what became of the last one with the same leading zeros: one distance is much like the next."""

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
        """That a case was proved, or not, in so many seconds."""
        depth = case.depth
        if proved:
            self.costs[depth] = (self.costs.get(depth, seconds) + seconds) / 2
        if case.places is not None:
            self.proved.pop(case.places, None)
            (self.proved if proved else self.divided)[case.places] = seconds
        self.failures[depth] = 0 if proved else min(self.failures[depth] + 1, MOST)
        self.skipped[depth] = (1 << self.failures[depth]) - 1

    def tell_parts(self, case: Case, seconds: float) -> None:
        """That the parts of a case were proved in so many seconds: if it was given twice as many, the next one may be
        easy."""
        if 2 * seconds < self.divided.get(case.places, 0):
            del self.divided[case.places]
