"""The values of terms on samples. Terms are looked up by their values on the first samples. Inputs that refute a lemma
become later samples, on which only terms of a possible lemma are evaluated."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce

import numpy as np
from pysmt.fnode import FNode

from mmaprobe.queries.equality.simulated import Value, in_order, lanes_of, simulate
from mmaprobe.queries.search.samples import Table
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.carriers.limbs import LIMB
from mmaprobe.smtmodel.evaluate.programs import ARRAYS

RANDOM = 256  # the default number of random values of a term


class Samples:
    """Samples and the values of terms on them. `rows`: an input in each row; `undefined`: words that may have any
    value."""

    def __init__(self, inputs: Sequence[Bits], undefined: Collection[FNode], rows: Table) -> None:
        self.inputs, self.undefined, self.rows, self.count = inputs, undefined, rows, len(rows)
        self.first, self.later = self._symbols(rows), dict[FNode, Value]()

    def _symbols(self, rows: Table) -> dict[FNode, Value]:
        columns = zip(self.inputs, np.ascontiguousarray(rows.T), strict=True)
        known: dict[FNode, Value] = {
            bits.node: ARRAYS.lanes(column, bits.width) for bits, column in columns if bits.value is None
        }
        random = np.random.default_rng(len(rows))
        return known | {word: random_values(random, word, len(rows)) for word in self.undefined}

    def add(self, rows: Table) -> None:
        """Add inputs to the samples, as later samples."""
        self.rows = np.concatenate([self.rows, rows])
        self.later = self._symbols(self.rows[self.count :])

    def key(self, term: FNode) -> int:
        """A key that terms share if they are equal as numbers on the first samples."""
        return hash(lanes_of(_value(term, self.first), self.count))

    def agree(self, one: FNode, other: FNode) -> bool:
        """Whether two terms are equal as numbers on the later samples."""
        later = len(self.rows) - self.count
        return not later or lanes_of(_value(one, self.later), later) == lanes_of(_value(other, self.later), later)

    def lanes(self, term: FNode) -> Table:
        """The values of a term of up to 64 bits on all samples."""
        later = len(self.rows) - self.count
        known = self.first_lanes(term)
        return np.concatenate([known, _lanes(term, self.later, later)]) if later else known

    def first_lanes(self, term: FNode) -> Table:
        """The values of a term of up to 64 bits on the first samples."""
        return _lanes(term, self.first, self.count)


def _value(term: FNode, values: dict[FNode, Value]) -> Value:
    if term not in values:
        simulate(in_order([term], values), values)
    return values[term]


def _lanes(term: FNode, values: dict[FNode, Value], count: int) -> Table:
    return np.broadcast_to(np.asarray(_value(term, values).node, dtype=np.uint64), (count,))


def random_values(random: np.random.Generator, term: FNode, count: int = RANDOM) -> Value:
    """Random values of a term, some of them small."""
    truth = term.get_type().is_bool_type()
    width, parts = 1 if truth else term.bv_width(), list[Bits]()
    for low in range(0, width, LIMB):
        bits = min(LIMB, width - low)
        lanes = random.integers(0, (1 << bits) - 1, count, dtype=np.uint64, endpoint=True)
        lanes[::3] >>= np.uint64(random.integers(0, bits))
        parts.append(ARRAYS.lanes(lanes, bits))
    whole = reduce(lambda lower, upper: upper.concat(lower), parts)
    return whole.bit(0) if truth else whole
