"""A claim on inputs: over terms for solvers, and over arrays for search and replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from mmaprobe.hypotheses.claim import Claim
from mmaprobe.queries.kernel.questions.scene import columns_of, conditions, decides, deciding, scene_of, symbolic_scene
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits
from mmaprobe.smtmodel.evaluate.batch import Patterns, to_integers
from mmaprobe.smtmodel.evaluate.programs import ARRAYS


@dataclass(frozen=True)
class ClaimBatch:
    """A claim evaluated on a batch of inputs: which inputs are admitted, which decide it, and on which the claim is at
    fault, because the claim or a condition reads a result that is no number."""

    admitted: Patterns
    deciding: Patterns
    at_fault: Patterns


@dataclass(frozen=True, eq=False)
class _Flags:
    """The function that evaluates a claim; functions for the same claim are equal."""

    claim: Claim

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Flags) and other.claim is self.claim

    def __hash__(self) -> int:
        return id(self.claim)

    def __call__(self, *columns: Bits) -> tuple[Bit, Bit, Bit]:
        about = self.claim.assertion
        scene = scene_of(about, columns)
        asked, truth = conditions(about, scene), scene.truth(about.predicate)
        return asked.met, asked.met & decides(about, truth), asked.then(truth).at_fault


def evaluate_claim(claim: Claim, table: Patterns) -> ClaimBatch:
    """Simulate a claim on rows of patterns."""
    with np.errstate(over="ignore"):
        flags_of, columns = _Flags(claim), columns_of(claim.assertion, table)
        flags = [to_integers(bit, len(table)) for bit in ARRAYS.formed(flags_of, flags_of, *columns)]
    if claim.zero_addend:
        keep = (table[:, -1] == 0).astype(np.uint64)
        flags = [flag & keep for flag in flags]
    return ClaimBatch(*flags)


def build_query(claim: Claim, what: Literal["deciding", "admitted"], free: int | None = None) -> Query:
    """The query for an admitted input, or one that also decides the claim; only the first `free` products may be
    nonzero."""
    scene, symbols = symbolic_scene(claim.assertion, free)
    asked = [conditions(claim.assertion, scene).met]
    if what != "admitted":
        asked.append(deciding(claim.assertion, scene))
    return Query(symbols, tuple(bit.node for bit in asked))
