"""The documents of models that run in a framework: which plan stood for which product, and where two machines part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from mmaprobe.documents.parts import ABSENT, Part


class EmulatedProduct(Part):
    """Products of one operator, shape and plan."""

    operator: str  #: the framework's name
    backward: bool  #: whether a gradient asked for it
    formats: Sequence[str]  #: those of a, b and the result
    shape: Sequence[int]  #: blocks, M, N and K
    count: int  #: how many there were
    plans: Sequence[str]  #: what computed its elements
    known: Literal["recorded", "inferred", "given"]
    """how the plan is known: recorded on this machine, inferred from another's, or given"""
    evidence: str  #: what it rests on, and what the unit rests on
    after: str  #: what was done with the sum, in words


class Emulated(Part):
    """What ran under `emulate`."""

    machine: str  #: its name
    framework: str  #: name and version
    products: Sequence[EmulatedProduct]  #: those computed as the machine does
    native: Mapping[str, int]  #: operator: how often it ran as it is; none of them is a matrix product
    unknown: Mapping[str, int]
    """operator: how often it ran as it is by choice: it may multiply matrices, or has a product without a rule"""


class Term(Part):
    """One product of a small vector."""

    place: int  #: its k
    a: str  #: the factor of a
    b: str  #: that of b


class Divergence(Part):
    """One product on two machines."""

    number: int  #: its place in the order of products, from 0
    module: str  #: the module of the model in which it is
    operator: str  #: the framework's name
    backward: bool  #: whether a gradient asked for it
    formats: Sequence[str]  #: those of a, b and the result
    shape: Sequence[int]  #: blocks, M, N and K
    plans: Sequence[str]  #: on the first machine, and on the second
    outputs: int  #: how many results it has
    own: int  #: results that differ where both machines get the first one's factors
    own_ulps: int  #: by how many units in the last place at most
    own_largest: float  #: the largest difference
    carried: int  #: results that differ in the run: by this product and those before
    carried_ulps: int  #: by how many units in the last place at most
    relative: float  #: norm of the difference in the run, over the norm of the result
    bound: float | None = ABSENT
    """the largest of |difference| over the sum of both proved bounds, of results that differ; null: no bound"""


class Explained(Part):
    """An input of few products on which two machines differ."""

    element: Sequence[int]  #: block, row and column of the result
    terms: Sequence[Term]  #: its products that are not zero
    results: Sequence[str]  #: on the first machine, and on the second
    why: Sequence[str]  #: both evaluations, line by line, where both are one unit


class Diverged(Part):
    """Where two machines part in a model."""

    machines: Sequence[str]  #: their names
    framework: str  #: name and version
    products: Sequence[Divergence]  #: every product in order
    first: int | None  #: the number of the first that differs
    explained: Explained | None  #: why it does
    outputs: int  #: numbers that the model returns
    differ: int  #: those of them that differ
    largest: float  #: the largest difference of these
