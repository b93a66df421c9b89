"""The documents of commands that find a model: `separate`, `identify`, `order`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from mmaprobe.documents.devices import OtherPlan
from mmaprobe.documents.parts import ABSENT, Document, Hex, Part, Vector

#: how the matrices A and B lie in memory: n, row after row; t, column after column, as a transposed view of rows does
Layout = Literal["nn", "nt", "tn", "tt"]


class Member(Part):
    """A candidate of a class."""

    model: str  #: the model
    why: str | None  #: how it is known that it is equal to the first candidate of its class
    confirmed_by: str | Sequence[str] | None  #: the solvers that confirmed that it is equal


class Class(Part):
    """Candidates that no input distinguishes."""

    members: Sequence[Member]  #: the candidates
    results: Sequence[Hex]  #: the results that they give for the vectors, in order


class Impossible(Part):
    """Combinations of a family's parameters that cannot be."""

    combinations: int  #: how many combinations there are in all
    left_out: int  #: how many of them are left out
    reasons: Mapping[str, int]  #: reason: how many are left out for it


class Separate(Document):
    """Vectors that distinguish every two candidates of a family."""

    family: str  #: its name
    candidates: int  #: how many it has
    impossible: Impossible  #: combinations that were left out
    classes: Sequence[Class]  #: candidates that are proved equal are in one class
    vectors: Sequence[Vector]  #: vectors that distinguish the classes
    unknown: Sequence[Sequence[str]]  #: pairs that are neither distinguished nor proved equal
    seconds: float  #: how long it took, in seconds


class Outline(Part):
    """The summation order."""

    questions: int  #: how many it took
    tree: Sequence[str] | None = ABSENT  #: as text, line by line (with a family)
    outline: Sequence[str] = ABSENT  #: as text, line by line (without one)


class QuestionAsked(Vector):
    """A question put to a device, and what its answer leaves."""

    left: int  #: candidates left after it
    ruled_out: Mapping[str, Sequence[Any]]  #: parameter: values that no candidate left has


class Explains(Part):
    """A candidate that comes near."""

    model: str  #: the model
    explains: int  #: how many answers it gives


class Contradiction(Part):
    """Two answers to one question."""

    vector: Vector  #: the question
    answers: Sequence[Hex]  #: what the device gave


class Identify(Document):
    """Which candidate of a family a device implements."""

    family: str  #: its name
    device: Mapping[str, Any]  #: `name`, and what the device says of itself
    verdict: Literal["identified", "no candidate", "open"]  #: identified: one class of candidates is left
    error: str | None  #: the error that ended it early
    candidates: int  #: how many the family has
    impossible: Impossible  #: combinations that were left out of it
    units: Sequence[str]
    """instructions of the table with the arithmetic of the one class that is left; empty otherwise"""
    consistent: Sequence[str]
    """if several classes are left: instructions of the table that give every answer, none of them proved"""
    decided: Mapping[str, Any]  #: parameter that the family varies: its value in every candidate left
    assumed: Mapping[str, Any]  #: parameter that the family does not vary: the value it has in all candidates
    undecided: Mapping[str, Sequence[Any]]  #: parameter: the values that are left
    why_undecided: Sequence[str]  #: why no input distinguishes these
    classes: Sequence[Sequence[Member]]  #: the candidates that are left; those proved equal are in one class
    open: Sequence[Sequence[str]]  #: pairs of candidates that are neither distinguished nor proved equal
    questions: int  #: how many were asked about the arithmetic
    summation_order: Outline  #: the order of the additions
    validated: int  #: on how many vectors of validation the device was sampled
    asked: Sequence[QuestionAsked]  #: the questions about the arithmetic
    nearest: Sequence[Explains]  #: if no candidate fits: those that come near
    contradictions: Sequence[Contradiction]  #: answers that contradict each other
    would_decide: Sequence[Vector]  #: questions that a recording has no answer to, and that would decide
    seconds: float  #: how long it took, in seconds


class EqualModel(Part):
    """A unit proved equal to the unit found, on all inputs; of the device, which was sampled, nothing is proved."""

    model: str  #: the unit
    why: str  #: how it is known


class Beside(Part):
    """Units that differ from the one built in one choice."""

    refuted: int  #: how many an answer distinguishes from it
    not_told: int  #: how many no answer distinguishes from it


class NearInstruction(Part):
    """The instruction of the table that comes nearest."""

    model: str  #: its name
    different_answers: int  #: how many answers it does not give
    first_divergence: str | None
    """the stage and the signal in which it first differs from the unit, or from the nearest candidate where none was
    found, on the smallest input that distinguishes them; null where such a signal is not there"""


class Unexplained(Vector):
    """An answer that a candidate does not give."""

    candidate: Hex  #: what the candidate gives


class DiffersWhere(Part):
    """Vectors on which a device differs from a unit in one way."""

    how: str  #: in which way, in words
    where: Sequence[str]  #: what holds on these vectors, in words


class Differs(Part):
    """Where a device differs from the nearest candidate, as far as vectors say."""

    ways: Sequence[DiffersWhere]  #: the ways in which it differs
    fresh: int  #: on how many vectors, of which nothing was learnt, this was tested
    wrong: int  #: on how many of these it is not so
    shares: Mapping[str, Sequence[int]]  #: of random and of shaped vectors: how many differ, of how many
    inside: Sequence[int] = ABSENT
    """where the device differs only there, but not on all such vectors: on how many it does, of how many"""


class Build(Document):
    """The unit of a device of which nothing was known."""

    device: Mapping[str, Any]  #: `name`, and what the device says of itself
    formats: Mapping[str, str]  #: the formats of a, b, c and d
    length: int  #: how many products the device adds
    verdict: str
    """built: a unit gives every answer; unexplained: none was found that does; open: the time ended before that"""
    error: str | None  #: the error that ended it early
    seconds: float  #: how long it took, in seconds
    unit: str | None = ABSENT  #: the unit file; this field and those below are there where the order was found
    equal: Sequence[EqualModel] = ABSENT
    """instructions, and units that come with mmaprobe, proved equal to the unit found"""
    undecided: Sequence[str] = ABSENT  #: units that give the same answers and are not proved equal
    nearest_instruction: NearInstruction | None = ABSENT  #: the nearest instruction, if none is equal
    summation_order: Outline | None = ABSENT  #: the order of the additions
    questions: int = ABSENT  #: how many questions about the arithmetic were asked
    validated: int = ABSENT  #: on how many vectors of validation the device was sampled
    beside: Beside = ABSENT  #: what answers say of units that differ in one choice
    stage: str = ABSENT  #: how far the search came
    left_for_time: Sequence[str] = ABSENT
    """groups of candidates that were not looked through, as their share of the time was too short"""
    why: str | None = ABSENT  #: why no unit was found, or what was not asked about it when the time ended
    nearest: str | None = ABSENT  #: the candidate that comes nearest, as a unit file
    unexplained: Sequence[Unexplained] = ABSENT  #: answers that the nearest candidate does not give
    differs: Differs | None = ABSENT  #: where the device differs from the nearest candidate, if a condition says so


class Limit(Part):
    """A number of an element or its product that lies between two others."""

    kind: str
    """number: M, N, K, or a product of them; rest: the remainder of M or N by `step`; after: 1 where the row or column
    of the element lies after the last multiple of `step`; first: 1 where it is one of the first of those after it, the
    others of which fill multiples of `turn`; multiple: 1 where K is a multiple of `step`"""
    of: str  #: M, N, K, M * N, M * N * K, rows or columns
    step: int  #: the divisor; 0 for `number`
    turn: int  #: for `first`: the multiples that the others fill; else 0
    least: int | None  #: the smallest value; null: no limit
    most: int | None  #: the largest value; null: no limit
    spans: Sequence[Sequence[int]]
    """for M, N and K each, the first and the last number that the rule is about; empty: all within the limits"""


class Rule(Part):
    """Elements of products that one plan gives."""

    elements: str  #: which elements, in words
    plan: str | None  #: the plan found
    limits: Sequence[Limit]  #: the elements in numbers, for programs: those within all of these limits
    confirmed: bool  #: whether it is relied on: some new random shapes agree, with this plan alone, and none differs
    agree: int  #: new random shapes in which all of these elements are as the plan gives them
    lengths: int = ABSENT  #: how many K the rule covers; older maps have neither this nor the next
    lengths_asked: int = ABSENT  #: at how many of these K elements of the rule were compared with the plan
    differ: Sequence[Sequence[int]]  #: [M, N, K] of shapes asked in which another kernel computes some


class OrderAt(Part):
    """The summation order of one element."""

    shape: Sequence[int]  #: M, N and K
    place: Sequence[int]  #: its row and column
    outline: Sequence[str]  #: as text, line by line


class IdentifyProduct(Document):
    """Which plans give a recorded product."""

    files: Sequence[str]  #: those of A, B, C where there is one, and D
    length: int  #: K
    plans: Mapping[str, str]  #: those that give every element looked at: name: the plan file
    tried: int  #: how many plans were tried
    untried: Sequence[str]  #: without a plan: what was not tried, or not wholly, as the time was over, in words
    looked_at: int  #: elements that were computed again
    best: str | None  #: if no plan gives all: one that gives most of them
    best_agrees: int  #: how many elements are given at most
    left_out: Sequence[int]  #: products k that are not in the sum; the plans are of the others
    twice: Sequence[int] = ABSENT  #: products k that are added twice
    instead: str = ABSENT  #: what stands in the place of those that are not in the sum, in words
    others: Sequence[OtherPlan] = ABSENT  #: those of `plans` that differ from the first one on other inputs
    seconds: float  #: how long it took, in seconds


class LeftOut(Part):
    """Products that are missing from sums."""

    shape: Sequence[int]  #: [M, N, K] of a matrix product with elements without a plan
    products: Sequence[int]  #: products k that are not in their sums
    twice: Sequence[int] = ABSENT  #: products k that are added twice
    instead: str = ABSENT  #: what stands in the place of those that are not in the sums, in words


class IdentifyGemm(Document):
    """Which plan a library's matrix product runs where."""

    device: Mapping[str, Any]  #: `name`
    layout: Layout = ABSENT  #: how A and B lay in memory, row after row (n) or column after column (t); absent: nn
    error: str | None  #: the error that ended it early
    rules: Sequence[Rule]  #: which elements have which plan
    plans: Mapping[str, str]  #: name: the plan file
    checked: int  #: new random shapes that were compared with the rules
    right: int  #: those of which every element is as the rules say
    open: Sequence[Sequence[int]]  #: [M, N, K] of those with elements of which nothing is known
    left_out: Sequence[LeftOut]  #: what is missing from the sums of shapes that have elements without a plan
    orders: Sequence[OrderAt]  #: the orders revealed
    products_asked: int  #: matrix products asked of the library
    seconds: float  #: how long it took, in seconds


class ResultAt(Part):
    """A result that a function gave."""

    shape: Sequence[int]  #: M, N and K
    stack: int  #: how many products were computed at once; 0: matrices, which are no stack
    block: int  #: of a stack the product
    place: Sequence[int]  #: its row and column
    d: Hex  #: the bits


class Depends(Part):
    """Two results of one row and one column that differ, asked again."""

    results: Sequence[ResultAt]  #: the two
    a: Sequence[Hex]  #: the row of A
    b: Sequence[Hex]  #: the column of B
    others: Literal["zeros", "random"]  #: what the other rows and columns held


class IdentifyInvariant(Document):
    """Whether results of a function depend on the shape of the product."""

    device: Mapping[str, Any]  #: `name`
    verdict: Literal["depends", "none seen", "open"]
    """depends: two results of the same row and column differ; none seen: all of those asked are the same, which proves
    nothing of others; open: cut short"""
    error: str | None  #: what cut it short
    fixed: Literal["M", "N"] | None  #: the side that was the same in the shapes that were compared
    shape: Sequence[int]  #: the largest M, N and K
    lengths: Sequence[int]  #: the K asked
    stacked: bool  #: whether stacks of products were asked too
    why_not: str | None  #: why they were not
    products_asked: int  #: how many products the function computed
    compared: int  #: how many results were compared
    depends: Depends | None  #: the two results
    alike: Mapping[str, Sequence[Sequence[Sequence[int]]]]
    """M and N, where it depends on them: groups of its values, as spans, that give row 0, or column 0, the same bits"""
    seconds: float  #: how long it took, in seconds


class OrderStep(Part):
    """One sum."""

    kind: str  #: how its terms are added
    terms: Sequence[str | int]  #: the products that it adds, by their numbers, and c
    steps: Sequence[int]  #: the earlier steps whose sums it adds, by their numbers


class Order(Document):
    """The order in which a device adds."""

    device: Mapping[str, Any]  #: `name`, and what the device says of itself
    formats: Mapping[str, str]  #: the formats of a, b, d, and of c where there is one
    length: int  #: the number of products
    revealed: bool  #: whether the order was found
    error: str | None  #: why it was not found
    questions: int  #: how many it took
    seconds: float  #: how long it took, in seconds
    steps: Sequence[OrderStep] = ABSENT
    """the sums, in the order in which they are done; this field and those below are there where it was found"""
    outline: Sequence[str] = ABSENT  #: as text, line by line
    places: int = ABSENT  #: binary places that the formats allow to see
    starts_from: str = ABSENT
    """what the sum begins with; this field and those below are there where the formats let it be asked"""
    products_fused: Sequence[int] = ABSENT  #: products that are not rounded before they are added
    products_rounded: Sequence[int] = ABSENT  #: products that are rounded before
    left_out: Sequence[int] = ABSENT  #: products that are not in the sum
    twice: Sequence[int] = ABSENT  #: products that are added twice
    instead: str = ABSENT  #: what stands in the place of those that are not in the sum, in words
    weights: Mapping[str, str] = ABSENT
    """where some terms are subtracted or scaled: by which power of two, with its sign; by the number of the product, or
    c"""
    products_not_told: str = ABSENT  #: why no answer tells whether products are rounded
