"""The documents of `datasheet`: what a standard asks the makers of a unit to disclose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from mmaprobe.documents.parts import ABSENT, Document
from mmaprobe.documents.prove import ErrorTerm, LemmaOfBound, WitnessVector


class ImeDisclosure(Document):
    """An entry of the table that RISC-V's integrated matrix extension has implementations publish: how one output
    element of a floating-point multiply-accumulate is summed, by format, number of products and (G, psm, rnd)."""

    disclosure: Literal["riscv-ime"]  #: the standard
    model: str  #: the unit
    formats: str  #: of a and b, of c, and of the result
    sew: int  #: bits of an element of C
    widening: int  #: W: bits of an element of C for one bit of an element of A and B; a sub-dot-product has W products
    sub_dot_products: int  #: λ: sub-dot-products of an output element
    products: int  #: λ times W
    group: int  #: G: consecutive sub-dot-products that are summed before they are added to C
    psm: Literal[0, 1]  #: 0: the sum of a group is exact; 1: it is what `algorithm` says
    rounded: bool  #: rnd: whether the sum of a group is rounded to the format of C before it is added
    rounding: str  #: the rounding mode of C
    algorithm: str = ABSENT  #: with psm = 1: how a group is summed
    parameters: Mapping[str, int | str] = ABSENT  #: with psm = 1: the parameters of the algorithm
    expression: str  #: the whole unit, as unit files write it
    basis: str  #: where the model is from


class P3109Declaration(Document):
    """What IEEE P3109 (interim report 4.0) asks to be declared of an approximate dot product: kappa, how many
    numbers of the format it is from a result to the defined one, the exact sum rounded once (4.4, Annex D), and a bound
    of the error (Annex E). Each number is proved."""

    disclosure: Literal["p3109"]  #: the standard
    model: str  #: the unit
    approximates: str  #: the operation: the formats of factors, addend and result, and the projection
    kappa: Literal["0", "infinity", "NaN"] | None
    """0: every result is the defined one; infinity, NaN: an input is shown on which one of the two results alone is
    infinite, or a NaN; null: no kappa is proved"""
    kappa_basis: str  #: which solvers proved it, or that an input shows it
    at_least: int = ABSENT
    """where an input is shown with two finite results: how many numbers of the format it is from one to the other"""
    vector: WitnessVector = ABSENT  #: the input, with the unit's result and the defined one
    error_bound: str | None  #: |d - exact| is at most this; null where no bound is proved
    terms: Sequence[ErrorTerm] = ABSENT  #: the bound's terms, for programs
    lemmas: Sequence[LemmaOfBound] = ABSENT  #: what solvers proved of the datapath for it
    premises: Sequence[str]  #: what the bound assumes of the inputs
    reason: str | None  #: why there is no bound
