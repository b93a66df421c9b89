"""The documents of models that run in a framework: the plan of each product, and where two machines diverge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from mmaprobe.documents.parts import ABSENT, Part


class EmulatedProduct(Part):
    """Products of one operator, shape and plan."""

    operator: str  #: the framework's name
    backward: bool  #: whether a gradient asked for it
    formats: Sequence[str]  #: the formats of a, b and the result
    shape: Sequence[int]  #: blocks, M, N and K
    count: int  #: the number of products
    plans: Sequence[str]  #: the plans of the elements
    known: Literal["recorded", "inferred", "given"]
    """how the plan is known: recorded on this machine, inferred from another machine's plan, or given"""
    evidence: str  #: the evidence for the plan and for its unit
    after: str  #: what was done with the sum, in words


class Emulated(Part):
    """What ran under `emulate`."""

    machine: str  #: the name of the machine
    framework: str  #: name and version
    products: Sequence[EmulatedProduct]  #: the products computed as the machine computes them
    native: Mapping[str, int]  #: operator that multiplies no matrices: how often the framework ran it
    unknown: Mapping[str, int]
    """operator that may multiply matrices, or whose product has no rule: how often the framework ran it, as the user
    allowed (`unknown`)"""


class Term(Part):
    """One product of a small vector."""

    place: int  #: the number k of the product
    a: str  #: the factor of a
    b: str  #: the factor of b


class Divergence(Part):
    """One product on two machines."""

    number: int  #: its place in the order of products, from 0
    module: str  #: the module of the model in which it is
    operator: str  #: the framework's name
    backward: bool  #: whether a gradient asked for it
    formats: Sequence[str]  #: the formats of a, b and the result
    shape: Sequence[int]  #: blocks, M, N and K
    plans: Sequence[str]  #: on the first machine, and on the second
    outputs: int  #: the number of results
    own: int  #: the number of results that differ when both machines get the factors of the first machine's run
    own_ulps: int  #: the largest of these differences in units in the last place
    own_largest: float  #: the largest of these differences
    carried: int  #: the number of results that differ between the two runs, by this product or by earlier ones
    carried_ulps: int  #: the largest of the differences between the runs in units in the last place
    relative: float  #: norm of the difference between the runs, over the norm of the result
    bound: float | None = ABSENT
    """the largest of |own difference| over the sum of both proved bounds; null: no bound"""


class Explained(Part):
    """An input of few products on which two machines differ."""

    element: Sequence[int]  #: block, row and column of the result
    terms: Sequence[Term]  #: the nonzero products of the input
    results: Sequence[str]  #: on the first machine, and on the second
    why: Sequence[str]  #: both evaluations, line by line, where one unit gives each result


class Diverged(Part):
    """Where two machines diverge in a model."""

    machines: Sequence[str]  #: their names
    framework: str  #: name and version
    products: Sequence[Divergence]  #: every product in order
    first: int | None  #: the number of the first product with differing results
    explained: Explained | None  #: an input of few terms on which this product differs
    outputs: int  #: how many numbers the model returns
    differ: int  #: how many of these numbers differ
    largest: float  #: the largest difference of these numbers
