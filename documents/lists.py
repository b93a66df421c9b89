"""The documents of `list`: a row of each kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from mmaprobe.documents.parts import ABSENT, Part


class ListedThing(Part):
    """One thing of a list."""

    schema: Literal[1] = 1  #: the version of the object
    id: str  #: the name by which commands take it
    summary: str  #: one line of text

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__repr__ = ListedThing.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        """The row as `mmaprobe list` prints it."""
        return f"{self.id}  {self.summary}"


class Formats(Part):
    """The formats of operands and result."""

    a: str  #: the format of the first factors
    b: str  #: the format of the second factors
    c: str  #: the format of the addend; none where no addend is read
    d: str  #: the format of the result


class ListedModel(ListedThing):
    """An instruction or unit (`list models`)."""

    shape: Sequence[int]  #: M, N and K
    formats: Formats  #: its formats
    block: int = ABSENT  #: products added in one step; of instructions of the table
    fraction_bits: int | str = ABSENT  #: bits kept below the largest exponent, or exact; of instructions of the table
    source: str  #: the publication, or where else it is from
    evidence: str  #: the evidence for it
    recorded: Mapping[str, int] = ABSENT  #: GPU: how many of its results are recorded; of instructions of the table
    emulated: bool  #: whether the instruction is made of others


class ListedHypothesis(ListedThing):
    """A question (`list hypotheses`)."""

    hypotheses: Mapping[str, str]  #: name: the model
    expect: Literal["different", "equal"] | None  #: the verdict that its file expects
    observed: Mapping[str, str]  #: GPU: the hypothesis that agrees with it
    source: str  #: the publication that asks it


class ListedFamily(ListedThing):
    """A family of candidates (`list families`)."""

    model: str  #: the instruction that it starts from
    parameters: Mapping[str, Sequence[str]]  #: parameter: its values


class ListedOption(Part):
    """An option of a node."""

    name: str  #: the name, in capitals where the option is given by its place
    meaning: str  #: the meaning in words
    values: str  #: the admitted values in words
    default: str  #: the value if the option is not given, or `needed`


class ListedNode(ListedThing):
    """A node of unit files (`list nodes`)."""

    written: str  #: the node as unit files write it
    meaning: str  #: the meaning in words
    options: Sequence[ListedOption]  #: its options
    example: str  #: a unit file with this node


class ListedParameter(ListedThing):
    """A parameter of models, or of algorithms (`list parameters`)."""

    of: Literal["models", "algorithms"]  #: what has the parameter
    meaning: str  #: the meaning in words
    values: str  #: the admitted values in words


class ListedFormat(ListedThing):
    """A format of numbers, or how a format of one's own is spelled (`list formats`)."""

    width: int = ABSENT  #: of formats: the number of bits
    exponent: int = ABSENT  #: bits of the exponent; of formats
    fraction: int = ABSENT  #: bits of the fraction; of formats
    bias: int = ABSENT  #: of formats: the bias of the exponent


class ListedSpelling(ListedThing):
    """How a format that has no row is spelled (`list formats`)."""


class ListedAlgorithm(ListedThing):
    """An algorithm on top of a unit (`list algorithms`)."""

    parameters: Mapping[str, str]  #: parameter: what it means, and its values
    defaults: Mapping[str, str]  #: parameter: its default


class ListedStudy(ListedThing):
    """A study (`list studies`)."""

    sizes: Sequence[int]  #: K of its points
    series: Mapping[str, str]  #: curve: the algorithm


class ListedClaim(ListedThing):
    """A claim (`list claims`)."""

    source: str  #: the publication, or where else it is from
    says: str  #: what the source says
    expect: str | None  #: what is expected here
    cases: Sequence[str]  #: its cases


class ListedDevice(ListedThing):
    """A device (`list devices`): of this machine, or an instruction of another kind of processor."""

    arch: str = ABSENT  #: the kind of processor; of instructions of processors
    formats: str = ABSENT  #: of a, b, c and d; of instructions of processors
    length: int = ABSENT  #: the number of products
    here: bool | None  #: whether it can be asked; null where this is unknown until it is asked
    missing: str | None  #: why it cannot be asked; null where it can
    model: str | None = ABSENT  #: the unit that it should be


class ListedGpu(ListedThing):
    """A GPU (`list gpus`)."""

    architecture: str  #: the first part of the names of its models


class ListedPlan(ListedThing):
    """A plan (`list plans`)."""

    formats: Formats  #: its formats
    units: Sequence[str]  #: the units that it uses
    about: str  #: the plan in words
    source: str  #: the publication, or where else it is from
    evidence: str  #: the evidence for it


Listed = (
    ListedModel | ListedHypothesis | ListedFamily | ListedParameter | ListedNode | ListedFormat | ListedSpelling
    | ListedAlgorithm | ListedStudy | ListedClaim | ListedDevice | ListedPlan | ListedGpu
)  # fmt: skip
