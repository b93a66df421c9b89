"""A claim on inputs: over terms for solvers, and over arrays for search and replay."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mmaprobe.hypotheses.claim import Claim, Largest
from mmaprobe.queries.kernel.questions.scene import columns_of, conditions, decides, deciding, scene_of, symbolic_scene
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.smtmodel.algorithms import fixed
from mmaprobe.smtmodel.algorithms.exact import Fixed
from mmaprobe.smtmodel.algorithms.scene import Scene, Truth
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits
from mmaprobe.smtmodel.evaluate.batch import Patterns, to_integers
from mmaprobe.smtmodel.evaluate.programs import ARRAYS

NEARLY = 1 - 2.0**-40  # numbers in long double that differ by more are in the order of the exact ones


@dataclass(frozen=True)
class ClaimBatch:
    """A claim evaluated on a batch of inputs: which inputs are admitted, which decide it, and on which the claim is at
    fault, because the claim or a condition reads a result that is no number."""

    admitted: Patterns
    deciding: Patterns
    at_fault: Patterns
    largest: tuple[Fraction, int] | None = None  # of a quantity that was asked for: its largest value, and the row


@dataclass(frozen=True, eq=False)
class _Flags:
    """The function that evaluates a claim, and a quantity with its unit; functions for the same claim and quantity are
    equal."""

    claim: Claim
    largest: Largest | None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Flags) and other.claim is self.claim and other.largest == self.largest

    def __hash__(self) -> int:
        return id(self.claim)

    def __call__(self, *columns: Bits) -> tuple[tuple[Bit, ...], tuple[Bits, ...]]:
        about = self.claim.assertion
        scene = scene_of(about, columns)
        asked, truth = conditions(about, scene), scene.truth(about.predicate)
        flags = asked.met, asked.met & decides(about, truth), asked.then(truth).at_fault
        if self.largest is None:
            return flags, ()
        counts, _, quantity, unit = meets_quantity(self.claim, self.largest, scene)
        return (*flags, counts), fixed.aligned(quantity, unit)[:2]


def meets_quantity(claim: Claim, largest: Largest, scene: Scene) -> tuple[Bit, Bit, Fixed, Fixed]:
    """Whether an input counts for a quantity; whether it is left out because a result is no number; the quantity, and
    its unit."""
    inner = (scene.truth(tree) for tree in largest.where)
    asked = conditions(claim.assertion, scene).then(*inner)
    (quantity, reads), (unit, others) = map(scene.quantity, (largest.quantity, largest.unit))
    positive = fixed.less(fixed.number(scene.carrier, 0), unit)
    asked = asked.then(Truth.of(positive, {**reads, **others}))
    return asked.met, asked.at_fault, quantity, unit


def evaluate_claim(claim: Claim, table: Patterns, largest: Largest | None = None) -> ClaimBatch:
    """Simulate a claim on rows of patterns. `largest`: a quantity that is never negative, whose largest value is
    wanted."""
    with np.errstate(over="ignore"):
        flags_of, columns = _Flags(claim, largest), columns_of(claim.assertion, table)
        bits, numbers = ARRAYS.formed(flags_of, flags_of, *columns)
    flags = [to_integers(bit, len(table)) for bit in bits]
    if claim.zero_addend:
        keep = (table[:, -1] == 0).astype(np.uint64)
        flags = [flag & keep for flag in flags]
    admitted, deciding, at_fault, *counts = flags
    most = None
    if counts:
        quantity, unit = (Fixed(own, 0) for own in numbers)
        most = _largest(np.flatnonzero(counts[0]), quantity, unit, len(table))
    return ClaimBatch(admitted, deciding, at_fault, most)


def _largest(rows: NDArray[np.intp], quantity: Fixed, unit: Fixed, count: int) -> tuple[Fraction, int] | None:
    """The largest quotient of some rows and its row: exactly, of those that are near the largest in long double."""
    with np.errstate(over="ignore", invalid="ignore"):
        rough = quantity.roughly(count)[rows] / unit.roughly(count)[rows]
    finite = np.isfinite(rough)
    near = rows[~finite | (rough >= rough[finite].max(initial=0) * NEARLY)]
    values = zip(quantity.numbers(count, near), unit.numbers(count, near), near, strict=True)
    return max(((one / other, int(row)) for one, other, row in values), default=None)


def build_query(claim: Claim, what: Literal["deciding", "admitted"], free: int | None = None) -> Query:
    """The query for an admitted input, or one that also decides the claim; only the first `free` products may be
    nonzero."""
    scene, symbols = symbolic_scene(claim.assertion, free)
    asked = [conditions(claim.assertion, scene).met]
    if what != "admitted":
        asked.append(deciding(claim.assertion, scene))
    return Query(symbols, tuple(bit.node for bit in asked))
