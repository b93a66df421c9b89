"""A claim on inputs: over terms for solvers, and over arrays for search and replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pysmt.fnode import FNode

from hypotheses.claim import Claim
from queries.search.problem import symbols_of
from queries.search.witness import Row
from queries.solvers.contract import Answer
from queries.solvers.smtlib import Query
from smtmodel.algebra import Bit, Bits, constant, truth
from smtmodel.algorithms.scene import Scene, Truth
from smtmodel.batch import Patterns, lanes, to_integers
from smtmodel.carriers.terms import TermCarrier
from smtmodel.programs import ARRAYS


@dataclass(frozen=True)
class ClaimBatch:
    """A claim evaluated on a batch of inputs: which are admitted, which decide it, and on which the claim is at fault,
    since it, or a condition, reads a result that is no number."""

    admitted: Patterns
    deciding: Patterns
    at_fault: Patterns


@dataclass(frozen=True)
class Conditions:
    """Conditions on an input, each asked where those before it are met: whether all of them are `met`, and whether one
    that is asked reads a result that is no number (`at_fault`). No input is both."""

    met: Bit
    at_fault: Bit

    def then(self, *more: Truth) -> Conditions:
        """These conditions and others after them."""
        met, at_fault = self.met, self.at_fault
        for one in more:
            at_fault = at_fault | (met & ~one.numbers)
            met = met & one.yes
        return Conditions(met, at_fault)


def deciding(claim: Claim, scene: Scene) -> Bit:
    """Whether an input decides: it breaks a claim for all, or is one that a claim says there is."""
    return decides(claim, scene.truth(claim.predicate))


def decides(claim: Claim, said: Truth) -> Bit:
    """Whether what a claim says of an input decides it."""
    return said.no if claim.quantifier == "all" else said.yes


def conditions(claim: Claim, scene: Scene) -> Conditions:
    """Whether an input counts: it is in the windows, and meets all conditions."""
    windows = Conditions(scene.admits(), truth(scene.carrier, False))
    return windows.then(*(scene.truth(tree) for tree in claim.where))


def scene_of(claim: Claim, row: Sequence[Bits]) -> Scene:
    operands = claim.layout.split(list(row))
    return Scene(claim.shape, operands.a, operands.b, operands.c)


def columns_of(claim: Claim, table: Patterns) -> list[Bits]:
    """Rows of patterns, an operand each."""
    formats = claim.layout.formats
    columns = [lanes(table[:, k], fmt.width) for k, fmt in enumerate(formats)]
    if claim.zero_addend:
        columns[-1] = constant(columns[-1].carrier, 0, formats[-1].width)
    return columns


def lanes_of(claim: Claim, table: Patterns) -> Scene:
    """The quantities of a claim on rows of patterns."""
    return scene_of(claim, columns_of(claim, table))


@dataclass(frozen=True, eq=False)
class _Flags:
    """The function that evaluates a claim; that of the same object is the same."""

    claim: Claim

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Flags) and other.claim is self.claim

    def __hash__(self) -> int:
        return id(self.claim)

    def __call__(self, *columns: Bits) -> tuple[Bit, Bit, Bit]:
        scene = scene_of(self.claim, columns)
        asked, said = conditions(self.claim, scene), scene.truth(self.claim.predicate)
        return asked.met, asked.met & decides(self.claim, said), asked.then(said).at_fault


def evaluate_claim(claim: Claim, table: Patterns) -> ClaimBatch:
    """Simulate a claim on rows of patterns."""
    with np.errstate(over="ignore"):
        flags_of, columns = _Flags(claim), columns_of(claim, table)
        flags = [to_integers(bit, len(table)) for bit in ARRAYS.formed(flags_of, flags_of, *columns)]
    if claim.zero_addend:
        keep = (table[:, -1] == 0).astype(np.uint64)
        flags = [flag & keep for flag in flags]
    return ClaimBatch(*flags)


def build_query(claim: Claim, what: Literal["deciding", "admitted"], free: int | None = None) -> Query:
    """Is there an admitted input that decides, or one that is admitted at all? All products but the first `free` ones
    are zero."""
    scene, symbols = symbolic_scene(claim, free)
    asked = [conditions(claim, scene).met]
    if what != "admitted":
        asked.append(deciding(claim, scene))
    return Query(symbols, tuple(bit.node for bit in asked))


def symbolic_scene(claim: Claim, free: int | None = None) -> tuple[Scene, tuple[FNode, ...]]:
    """A claim on symbols, all products but the first `free` ones zero: the quantities, and the symbols."""
    zero = {*range(claim.terms if free is None else free, claim.terms), *([claim.terms] if claim.zero_addend else ())}
    row = symbols_of(claim.layout, TermCarrier(), zero)
    return scene_of(claim, row), tuple(bits.node for bits in row if bits.value is None)


def row_of(claim: Claim, answer: Answer) -> Row:
    """The input that a solver gave; what it was not asked for is zero."""
    return tuple(answer.values.get(name, 0) for name in claim.layout.names)
