"""The documents of `prove`: equality, plans, error bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from mmaprobe.documents.parts import ABSENT, Document, Hex, Part, Vector, Verdict

#: the magnitudes in which a bound is expressed: of all elements, or the largest of a row of A and of a column of B
Measure = Literal["elements", "largest"]

UNCONFIRMED = "no second solver"
SMALL = 16  # exponents below it are shown as whole numbers


def below_text(exponent: int) -> str:
    """The power of two, as text, below which the magnitudes of inputs up to this exponent are."""
    return str(2 << exponent) if 0 <= exponent < SMALL else f"2^{exponent + 1}"


def proved_text(engines: Sequence[str], confirmed_by: Sequence[str], without: str = "by rules alone") -> str:
    """A text that names the solvers that proved a statement and those that confirmed it. `without`: the text if no
    solver was asked."""
    by = f"by {', '.join(engines)}; {confirmed_text(', '.join(confirmed_by))}"
    return by if engines else without


def confirmed_text(confirmed_by: str | None) -> str:
    """A text that names the solvers that confirmed a proof."""
    return f"confirmed by {confirmed_by or UNCONFIRMED}"


class OneLemma(Part):
    """One step of a proof, and who answered it."""

    name: str  #: the statement
    cuts: int  #: the number of signals replaced by fresh variables
    using: str | None  #: the rule that it rests on
    answer: str  #: the solver, its version and its time
    seconds: float  #: the duration in seconds
    confirmed_by: str | None  #: a solver of another lineage that gives the same answer


class WitnessVector(Vector):
    """An input on which two sides differ."""

    results: Sequence[Hex]  #: the result of each side, evaluated again
    other_side: Vector = ABSENT
    """the input of the second side, where it is not the same: permuted, negated, or with a term raised"""
    every: Sequence[str] = ABSENT  #: operands of which each side adds the results for every value; `vector` has one
    result_format: str = ABSENT  #: with `every`: the format of these sums


class PairProof(Part):
    """One of the statements that were to be proved: two sides give the same result."""

    left: str  #: the model of the first side
    right: str  #: the model of the second side
    sides: Sequence[str]  #: what the sides are, in words
    verdict: Verdict  #: equal: the statement holds
    seconds: float  #: the duration in seconds
    engines: Sequence[str]  #: the solvers that proved it
    confirmed_by: Sequence[str]  #: solvers that confirmed it
    why: str | None  #: what the proof rests on besides lemmas: one expression, one normal form, or a symmetry of nodes
    lemmas: Sequence[OneLemma]  #: the steps of its proof
    unanswered: Sequence[str]  #: queries without an answer
    vector: WitnessVector | None  #: the input on which the sides differ
    open: str = ABSENT  #: of a design whose verdict is unknown: the first word not proved equal to a word of the model


class CertificatePiece(Part):
    """A query of a certificate, and the proof that no input satisfies the query."""

    name: str  #: the name of its files, without ending
    states: str  #: what it proves
    words: Sequence[str]  #: which engines answered what, and when
    variables: int = ABSENT
    """variables of its formula (CNF); this field and those below are there where it has a proof"""
    clauses: int = ABSENT  #: clauses of its formula
    proof_lines: int = ABSENT  #: lines of its DRAT proof
    checker: str = ABSENT  #: the program that checked the proof
    sha256: Mapping[str, Hex]  #: file: its digest


class Certificate(Part):
    """A folder with theorems, queries, formulas and checked proofs: its manifest."""

    folder: str = ABSENT  #: the path of the folder
    schema: Literal[5] = 5  #: the version of the manifest
    question: str  #: the statement, in lines: what is claimed, then the inputs, units and windows that it is about
    solver: str  #: the solver that wrote the proofs
    pieces: Sequence[CertificatePiece]  #: its queries
    sha256: Mapping[str, Hex]  #: file: its digest, of its other files


class Prove(Document):
    """Whether two models are equal, or one model has a property."""

    property: str  #: equal, or the property asked
    verdict: Literal["equal", "different", "holds", "refuted", "unknown"]
    """of two models: equal (proved) or different (a vector shows it); of a property: holds or refuted"""
    interrupted: bool  #: whether an interrupt or the time limit ended the work early
    seconds: float  #: the duration in seconds
    engines: Sequence[str]  #: the solvers that proved it
    confirmed_by: Sequence[str]  #: solvers that confirmed every part; empty if a part is not confirmed
    proofs: Sequence[PairProof]  #: the statements of which it is made
    statement: str  #: the property in words
    zeros_only: Sequence[str]  #: operands of which --inputs admits zeros alone
    certificates: Sequence[Certificate] = ABSENT  #: with --certificate: the certificates written
    certificate_error: str = ABSENT  #: why a certificate could not be written


class ProvePlans(Document):
    """Whether two plans are equal, for one K or for every K."""

    property: Literal["equal"] = "equal"  #: the property
    left: str  #: the first plan
    right: str  #: the second plan
    verdict: Verdict  #: equal: proved
    interrupted: bool  #: whether an interrupt or the time limit ended the work early
    seconds: float  #: the duration in seconds
    length: int | None  #: K, or null for every K
    multiples: int | None  #: the statement is about every K that is a multiple of this; null if it is about one K
    rules: Sequence[str]  #: the rules by which one plan was rewritten into the other
    engines: Sequence[str]  #: solvers that proved its lemmas
    confirmed_by: Sequence[str]  #: solvers that confirmed all lemmas
    proofs: Sequence[PairProof]  #: the lemmas
    unanswered: Sequence[str]  #: what was tried without an answer
    vector: WitnessVector | None  #: the input on which they differ
    certificates: Sequence[Certificate] = ABSENT  #: with --certificate: the certificates written
    certificate_error: str = ABSENT  #: why a certificate could not be written


class ElementAt(Part):
    """An element of a product, and the plan that computes it."""

    shape: Sequence[int]  #: M, N and K
    place: Sequence[int]  #: its row and column
    plan: str | None  #: the plan that the map has for it; null where it has none


class PlansCompared(Part):
    """Two plans that compute the same sum in two shapes."""

    left: str  #: the first plan
    right: str  #: the second plan
    lengths: Sequence[Sequence[int]]  #: these K, in spans: the first and the last K of each
    proved: Sequence[Sequence[int]]  #: the K at which the plans are proved equal, in spans
    example: Sequence[ElementAt]  #: the two elements at the first K
    rules: Sequence[str]  #: the rules by which one plan was rewritten into the other
    engines: Sequence[str]  #: solvers that proved its lemmas
    confirmed_by: Sequence[str]  #: solvers that confirmed all lemmas
    unanswered: Sequence[str]  #: what was tried without an answer


class ProveInvariant(Document):
    """Whether the result of a row and a column depends on the shape of the product, by a map of a library."""

    property: Literal["batch-invariant"] = "batch-invariant"  #: the property
    map: str  #: the file of the map
    verdict: Verdict
    """equal: proved to be the same for all shapes; different: two shapes and an input show it"""
    interrupted: bool  #: whether an interrupt or the time limit ended the work early
    seconds: float  #: the duration in seconds
    fixed: Literal["M", "N"] | None  #: the side that is the same in the shapes that are compared
    shapes: Mapping[str, Sequence[int]]  #: M, N and K: the first and the last one asked about
    plans: Mapping[str, Sequence[Sequence[int]]]  #: plan: the spans of K at which it computes elements
    compared: Sequence[PlansCompared]  #: the plans that have to be equal; none where each K has one
    open: Sequence[Sequence[int]]  #: the spans of K at which the map says nothing of some element
    open_example: ElementAt | None  #: the first such element
    difference: Sequence[ElementAt]  #: two elements that differ; empty for another verdict
    vector: WitnessVector | None  #: the row and the column on which they differ
    certificates: Sequence[Certificate] = ABSENT  #: with --certificate: the certificates written
    certificate_error: str = ABSENT  #: why a certificate could not be written


class ErrorTerm(Part):
    """One term of a bound: a coefficient times a magnitude."""

    coefficient: str  #: a fraction
    of: Sequence[Sequence[Sequence[str | int | bool]]]
    """products of magnitudes, of which the coefficient multiplies the largest; each factor is [operand, its place,
    whether raised to the smallest normal number]"""


class NumericBound(Part):
    """A bound as a number, and the exponents of operands for which it holds."""

    min: int  #: the smallest exponent of an operand
    max: int  #: the largest exponent of an operand
    bound: float  #: |d - exact| is at most this number, which is rounded up


class Chain(Part):
    """A chain of instructions."""

    step: str  #: a bound of the error after one more instruction, given the error before it
    growth: str  #: the factor by which the earlier error grows
    part: str  #: the error that the instruction adds, in terms of the magnitudes
    any: str  #: the bound for a chain of any length


class LemmaOfBound(Part):
    """A lemma about the datapath."""

    lemma: str  #: the statement
    by: str  #: the solvers that proved and confirmed it, with their times


class Nearest(Part):
    """The input found whose error comes nearest to the bound."""

    ratio: float  #: error / bound
    error: float  #: |d - exact| for this input
    bound: float  #: the bound for this input, rounded up
    vector: Vector = ABSENT  #: the input of one instruction
    vectors: Sequence[Vector] = ABSENT  #: the inputs of a chain, each with the addend that the one before gives


class ErrorBound(Document):
    """A bound of |d - exact| of one model."""

    property: Literal["error-bound"] = "error-bound"  #: the property
    model: str  #: the model
    measure: Measure  #: the magnitudes in the bound: of all elements, or the largest of the row and of the column
    length: int  #: products in all
    verdict: Literal["holds", "refuted", "unknown"]  #: holds: proved; refuted: a sum wraps, and no bound holds
    premises: Sequence[str]  #: what is assumed of the inputs
    reason: str | None  #: why there is no bound
    seconds: float  #: the duration in seconds
    formula: str = ABSENT
    """the bound as a formula; this field and those below, down to `tried`, are there where a bound was proved"""
    terms: Sequence[ErrorTerm] = ABSENT  #: the formula's terms, for programs
    window: NumericBound = ABSENT  #: the bound as a number
    chain: Chain = ABSENT  #: the bound for chains of this instruction, where one is proved
    rules: Mapping[str, int] = ABSENT  #: rule: how often it was used
    lemmas: Sequence[LemmaOfBound] = ABSENT  #: what solvers proved of the datapath
    tried: int = ABSENT  #: inputs that the bound was checked against
    nearest: Nearest | None = ABSENT
    """of the inputs tried, the one with the largest ratio of error to bound; null where none was tried; of a verdict
    refuted an input on which a sum wraps, `bound` being the sum of all magnitudes: of a chain its first instructions,
    the others being like the last one"""
    certificates: Sequence[Certificate] = ABSENT  #: with --certificate: the certificates written
    certificate_error: str = ABSENT  #: why a certificate could not be written


class PlanFormula(Part):
    """A bound for any K."""

    before: int  #: products that are not repeated; 0 if all are
    multiples: int  #: the formula is for K = `before` and n times this number, for every n from 1 on
    width: int  #: of plans with `halve`: up to this number times 2^t products are added in t levels; 0 of other plans
    bound: str  #: the bound as a formula with G, which depends on n (of halves on t), and of halves with K
    growth: str  #: G as a formula of n, or of t


class Alike(Part):
    """Elements that follow one another and are alike."""

    pattern: str  #: the bit pattern of each
    count: int  #: the number of these elements


class NearestProduct(Part):
    """The row of A and the column of B found whose error comes nearest to the bound, c being zero."""

    ratio: float  #: error / bound
    error: float  #: |d - exact| for this input
    bound: float  #: the bound for this input, rounded up
    a: Sequence[Alike]  #: the row of A
    b: Sequence[Alike]  #: the column of B


class PlanBoundAt(Part):
    """A bound for one K."""

    length: int  #: K
    bound: str  #: the bound as a formula
    window: NumericBound  #: the bound as a number
    tried: int  #: elements of products that were evaluated
    nearest: NearestProduct | None
    """of these, the one with the largest ratio of error to bound; null where none was tried"""


class LargestBoundAt(Part):
    """A bound for one K, in the largest elements of a row of A and of a column of B, or of blocks of them."""

    length: int  #: K
    bound: str  #: the bound as a formula, where c is 0
    reach: int  #: the largest elements are from 2^-reach to 2^reach
    where: str  #: this range in words, and the other conditions of the bound on the elements

    @property
    def premises(self) -> str:
        """What is assumed of the inputs, in words."""
        return f"inputs are finite, c = 0, and {self.where}"


class PlanErrorBound(Document):
    """A bound of |d - exact| of a plan."""

    property: Literal["error-bound"] = "error-bound"  #: the property
    plan: str  #: the plan
    measure: Measure  #: the magnitudes in the bounds: of all elements, or the largest of the row and the column
    verdict: Literal["holds", "unknown"]  #: holds: proved
    premises: Sequence[str]  #: what is assumed of the inputs
    reason: str | None  #: why there is no bound, or no formula
    seconds: float  #: the duration in seconds
    formula: PlanFormula | None  #: for every K that is a multiple of the plan's period
    sizes: Sequence[PlanBoundAt]  #: a bound for each K asked
    rules: Mapping[str, int]  #: rule: how often it was used
    lemmas: Sequence[LemmaOfBound]  #: what solvers proved of the datapath
    largest: Sequence[LargestBoundAt] = ABSENT  #: where no other bound is proved: a bound for each K asked
    certificates: Sequence[Certificate] = ABSENT  #: with --certificate: the certificates written
    certificate_error: str = ABSENT  #: why a certificate could not be written
