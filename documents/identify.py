"""The documents of commands that find a model: `separate`, `identify`, `order`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from mmaprobe.documents.devices import OtherPlan
from mmaprobe.documents.parts import ABSENT, Document, Hex, Part, Vector

#: the layout of the matrices A and B in memory: n, row after row; t, column after column (a transposed view)
Layout = Literal["nn", "nt", "tn", "tt"]


class Member(Part):
    """A candidate of a class."""

    model: str  #: the model
    why: str | None  #: the reason why it is in this class; null for the first candidate
    confirmed_by: str | Sequence[str] | None  #: the solvers that confirmed this


class Class(Part):
    """Candidates that are proved equal; with --one, candidates with the same result for the vector."""

    members: Sequence[Member]  #: the candidates
    results: Sequence[Hex]  #: their results for the vectors, in order


class Impossible(Part):
    """Combinations of a family's parameters that are impossible."""

    combinations: int  #: the number of all combinations
    left_out: int  #: the number of combinations left out
    reasons: Mapping[str, int]  #: reason: the number of combinations left out for it


class Separate(Document):
    """Vectors that distinguish the classes of a family's candidates."""

    family: str  #: its name
    candidates: int  #: the number of candidates
    impossible: Impossible  #: combinations that were left out
    classes: Sequence[Class]  #: the classes, in which every candidate is once
    vectors: Sequence[Vector]  #: vectors that distinguish the classes
    unknown: Sequence[Sequence[str]]  #: pairs that are neither distinguished nor proved equal
    seconds: float  #: the duration in seconds


class Outline(Part):
    """The summation order."""

    questions: int  #: the number of questions asked about the order
    tree: Sequence[str] | None = ABSENT  #: with a family: the order as text, line by line
    outline: Sequence[str] = ABSENT  #: without a family: the order as text, line by line


class QuestionAsked(Vector):
    """A question put to a device, and the candidates that its answer leaves."""

    left: int  #: candidates left after it
    ruled_out: Mapping[str, Sequence[Any]]  #: parameter: values that no candidate left has


class Explains(Part):
    """A candidate near to the device."""

    model: str  #: the model
    explains: int  #: the number of answers that it gives


class Contradiction(Part):
    """Two answers to one question."""

    vector: Vector  #: the question
    answers: Sequence[Hex]  #: the device's answers


class Identify(Document):
    """Which candidate of a family a device implements."""

    family: str  #: its name
    device: Mapping[str, Any]  #: `name`, and the device's own description
    verdict: Literal["identified", "no candidate", "open"]  #: identified: one class of candidates is left
    error: str | None  #: the error that ended the command early
    candidates: int  #: the number of candidates of the family
    impossible: Impossible  #: combinations that were left out of the family
    units: Sequence[str]
    """instructions of the table with the arithmetic of the one class that is left; empty otherwise"""
    consistent: Sequence[str]
    """if several classes are left: instructions of the table that give every answer, none of them proved"""
    decided: Mapping[str, Any]  #: parameter that the family varies: its value in every candidate left
    assumed: Mapping[str, Any]  #: parameter that the family does not vary: its value in all candidates
    undecided: Mapping[str, Sequence[Any]]  #: parameter: the values that are left
    why_undecided: Sequence[str]  #: why candidates of one class are equal, whatever values of these they have
    classes: Sequence[Sequence[Member]]  #: the candidates that are left; those proved equal are in one class
    open: Sequence[Sequence[str]]  #: pairs of candidates that are neither distinguished nor proved equal
    questions: int  #: the number of questions about the arithmetic
    summation_order: Outline  #: the order of the additions
    validated: int  #: vectors of validation put to the device
    asked: Sequence[QuestionAsked]  #: the questions about the arithmetic
    nearest: Sequence[Explains]  #: if no candidate fits: the nearest candidates
    contradictions: Sequence[Contradiction]  #: answers that contradict each other
    would_decide: Sequence[Vector]  #: questions without an answer in the recording that would decide
    seconds: float  #: the duration in seconds


class EqualModel(Part):
    """A unit proved equal to the unit found, on all inputs; about the device, which was sampled, nothing is proved."""

    model: str  #: the unit
    why: str  #: the reason why it is equal


class Beside(Part):
    """Units that differ from the built unit in one choice."""

    refuted: int  #: the number of these units that an answer refutes
    not_told: int  #: the number of these units that no answer refutes


class NearInstruction(Part):
    """The nearest instruction of the table."""

    model: str  #: its name
    different_answers: int  #: the number of answers that it does not give
    first_divergence: str | None
    """the stage and the signal in which it first differs from the unit (if none was found, from the nearest candidate),
    on the smallest input that distinguishes them; null without such a signal"""


class Unexplained(Vector):
    """An answer that a candidate does not give."""

    candidate: Hex  #: the candidate's result


class DiffersWhere(Part):
    """Vectors on which a device differs from a unit in one way."""

    how: str  #: the way, in words
    where: Sequence[str]  #: the conditions of these vectors, in words


class Differs(Part):
    """Where a device differs from the nearest candidate, learnt from vectors and tested on fresh vectors."""

    ways: Sequence[DiffersWhere]  #: the ways in which it differs
    fresh: int  #: the number of fresh vectors that tested this
    wrong: int  #: the number of fresh vectors on which the description is wrong
    shares: Mapping[str, Sequence[int]]  #: of random and of shaped vectors: how many differ, and the number of all
    inside: Sequence[int] = ABSENT
    """if the device differs only on vectors with these conditions, but not on all of them: the number that differ, and
    the number of all"""


class Missed(Part):
    """How many answers the nearest candidate does not give, of new vectors too if the device answers any."""

    finite: Sequence[int]
    """of answers to finite operands that are finite and below the largest number: how many it does not give, and the
    number of all"""
    others: Sequence[int]  #: of all other answers: how many it does not give, and the number of all


class Build(Document):
    """The unit of a device about which nothing was known."""

    device: Mapping[str, Any]  #: `name`, and the device's own description
    formats: Mapping[str, str]  #: the formats of a, b, c and d
    length: int  #: the number of products that the device adds
    verdict: str
    """built: a unit gives every answer; unexplained: no unit was found that does; open: the time ended before"""
    error: str | None  #: the error that ended the command early
    seconds: float  #: the duration in seconds
    unit: str | None = ABSENT  #: the unit file; this field and those below are there where the order was found
    equal: Sequence[EqualModel] = ABSENT
    """instructions, and units that come with mmaprobe, proved equal to the unit found"""
    undecided: Sequence[str] = ABSENT  #: units that give the same answers and are not proved equal
    nearest_instruction: NearInstruction | None = ABSENT  #: the nearest instruction, if none is equal
    summation_order: Outline | None = ABSENT  #: the order of the additions
    questions: int = ABSENT  #: the number of questions about the arithmetic
    validated: int = ABSENT  #: vectors of validation put to the device
    beside: Beside = ABSENT  #: how many units that differ in one choice are refuted, and how many are not
    stage: str = ABSENT  #: the stage of the search when it ended
    left_for_time: Sequence[str] = ABSENT
    """groups of candidates not searched, as their share of the time was too short"""
    why: str | None = ABSENT  #: why no unit was found, or which question about it was open when the time ended
    nearest: str | None = ABSENT  #: the nearest candidate, as a unit file
    missed: Missed | None = ABSENT  #: how many answers the nearest candidate does not give
    unexplained: Sequence[Unexplained] = ABSENT  #: some answers that the nearest candidate does not give
    differs: Differs | None = ABSENT  #: where the device differs from the nearest candidate, if a condition says so


class Limit(Part):
    """Bounds of a number of an element or of its matrix product."""

    kind: str
    """number: M, N, K, or a product of them; rest: the remainder of M, N or K by `step`; multiple: 1 if K is a multiple
    of `step`, else 0; after: 1 if the element's row or column lies after the last multiple of `step`, else 0; first: 1
    if it is one of the first r, else 0, where r is the largest multiple of `step` in M or N, modulo `turn`; place: the
    number of the row or column, from 0, modulo `step` unless this is 0; block: the size of its block, as M or N is cut
    into blocks of `step`, the rest into blocks of the largest power of two below `step`, and so on"""
    of: str  #: M, N, K, M * N, M * N * K, rows or columns
    step: int  #: the divisor, or the size of blocks; 0 for `number`, and for a `place` that is not divided
    turn: int  #: for `first`: a second divisor; for `block`: the size of panels (negative: of the first block); else 0
    least: int | None  #: the smallest value; null: no limit
    most: int | None  #: the largest value; null: no limit
    spans: Sequence[Sequence[int]]
    """for M, N and K each, the spans (first and last number) of the rule; empty: all numbers within the limits"""


class Rule(Part):
    """Elements of matrix products that one plan gives."""

    elements: str  #: which elements, in words
    plan: str | None  #: the plan found
    limits: Sequence[Limit]  #: for programs: the elements within all of these limits
    confirmed: bool  #: whether it is relied on: enough new random shapes agree with this plan alone, and none differs
    agree: int  #: new random shapes in which the plan gives all of these elements
    lengths: int = ABSENT  #: the number of K that the rule covers; missing in older maps, as is the next field
    lengths_asked: int = ABSENT  #: the number of these K at which its elements were compared with the plan
    differ: Sequence[Sequence[int]]  #: [M, N, K] of shapes in which the plan does not give all of these elements


class OrderAt(Part):
    """The summation order of one element."""

    shape: Sequence[int]  #: M, N and K
    place: Sequence[int]  #: its row and column
    outline: Sequence[str]  #: the order as text, line by line


class IdentifyProduct(Document):
    """Which plans give a recorded product."""

    files: Sequence[str]  #: the files of A, B, C (if there is one) and D
    length: int  #: K
    plans: Mapping[str, str]  #: the plans that give every element looked at: name: the plan file
    tried: int  #: the number of plans tried
    untried: Sequence[str]  #: without a plan: candidates not tried, at least in part, for lack of time, in words
    looked_at: int  #: elements that were computed again
    best: str | None  #: if no plan gives all elements: a plan that gives most
    best_agrees: int  #: the largest number of elements that a plan gives
    left_out: Sequence[int]  #: products k that are not in the sum; the plans add the others
    twice: Sequence[int] = ABSENT  #: products k that are added twice
    instead: str = ABSENT  #: the value in place of the products left out, in words
    others: Sequence[OtherPlan] = ABSENT  #: the plans of `plans` that differ from the first plan on other inputs
    seconds: float  #: the duration in seconds


class LeftOut(Part):
    """Products that are missing from sums."""

    shape: Sequence[int]  #: [M, N, K] of a matrix product with elements without a plan
    products: Sequence[int]  #: products k that are not in the sums of these elements
    twice: Sequence[int] = ABSENT  #: products k that are added twice
    instead: str = ABSENT  #: the value in place of the products left out, in words


class IdentifyGemm(Document):
    """Which plan computes which elements of a library's matrix product."""

    device: Mapping[str, Any]  #: `name`
    layout: Layout = ABSENT  #: the layouts of A and B, row after row (n) or column after column (t); absent: nn
    error: str | None  #: the error that ended the command early
    rules: Sequence[Rule]  #: which elements have which plan
    plans: Mapping[str, str]  #: name: the plan file
    checked: int  #: new random shapes that were compared with the rules
    right: int  #: the number of these shapes in which every element is as the rules say
    open: Sequence[Sequence[int]]  #: [M, N, K] of these shapes with elements that have no plan
    left_out: Sequence[LeftOut]  #: products missing from sums, by shape with elements without a plan
    orders: Sequence[OrderAt]  #: the orders revealed
    products_asked: int  #: matrix products asked of the library
    seconds: float  #: the duration in seconds


class ResultAt(Part):
    """A result of a function."""

    shape: Sequence[int]  #: M, N and K
    stack: int  #: the number of products in the stack; 0: no stack
    block: int  #: the product's number in the stack
    place: Sequence[int]  #: its row and column
    d: Hex  #: the bits


class Depends(Part):
    """Two results of one row and one column that differ, also when computed again."""

    results: Sequence[ResultAt]  #: the two results
    a: Sequence[Hex]  #: the row of A
    b: Sequence[Hex]  #: the column of B
    others: Literal["zeros", "random"]  #: what the other rows and columns held


class IdentifyInvariant(Document):
    """Whether results of a function depend on the shape of the product."""

    device: Mapping[str, Any]  #: `name`
    verdict: Literal["depends", "none seen", "open"]
    """depends: two results of the same row and column differ; none seen: all results asked are the same, which proves
    nothing about others; open: ended early"""
    error: str | None  #: the error that ended the command early
    fixed: Literal["M", "N"] | None  #: the side that was the same in the shapes that were compared
    shape: Sequence[int]  #: the largest M, N and K
    lengths: Sequence[int]  #: the K asked
    stacked: bool  #: whether stacks of products were asked too
    why_not: str | None  #: why stacks were not asked
    products_asked: int  #: the number of products that the function computed
    compared: int  #: the number of results compared
    depends: Depends | None  #: the two differing results
    alike: Mapping[str, Sequence[Sequence[Sequence[int]]]]
    """for M and N, if the results depend on it: groups of its values, as spans, that give row 0, or column 0, the same
    bits"""
    seconds: float  #: the duration in seconds


class OrderStep(Part):
    """One sum."""

    kind: str  #: how its terms are added
    terms: Sequence[str | int]  #: the products that it adds, by their numbers, and c
    steps: Sequence[int]  #: the numbers of the earlier steps whose sums it adds


class Order(Document):
    """The order in which a device adds."""

    device: Mapping[str, Any]  #: `name`, and the device's own description
    formats: Mapping[str, str]  #: the formats of a, b, d, and of c where there is one
    length: int  #: the number of products
    revealed: bool  #: whether the order was found
    error: str | None  #: why the order was not found
    questions: int  #: the number of questions asked
    seconds: float  #: the duration in seconds
    steps: Sequence[OrderStep] = ABSENT
    """the sums, in the order of their computation; this field and those below are there if the order was found"""
    outline: Sequence[str] = ABSENT  #: the order as text, line by line
    places: int = ABSENT  #: the binary places within which the answers show losses
    starts_from: str = ABSENT
    """the start of the sum; this field and those below are there if the formats can show it"""
    products_fused: Sequence[int] = ABSENT
    """products that are not rounded to the result's format before they are added"""
    products_rounded: Sequence[int] = ABSENT
    """products that are rounded before they are added, added to +0 first, or cut where terms are aligned"""
    left_out: Sequence[int] = ABSENT  #: products that are not in the sum
    twice: Sequence[int] = ABSENT  #: products that are added twice
    instead: str = ABSENT  #: the value in place of the products left out, in words
    weights: Mapping[str, str] = ABSENT
    """if some terms are subtracted or scaled: number of the product, or c: the signed power of two that scales it"""
    products_not_told: str = ABSENT  #: why no answer tells whether products are rounded
