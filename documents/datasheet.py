"""The documents of `datasheet`: what a standard asks those who make a unit to say of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from mmaprobe.documents.parts import ABSENT, Document


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
