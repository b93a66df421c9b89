"""The documents of `prove`: equality, plans, error bounds."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from reports.fields.parts import ABSENT, Document, Hex, Part, Vector, Verdict


class OneLemma(Part):
    """One step of a proof, and who answered it."""

    name: str
    """what is stated"""
    cuts: int
    """signals that were replaced by fresh variables"""
    using: str | None
    """the rule that it rests on"""
    answer: str
    """the solver, its version and its time"""
    seconds: float
    """its time"""
    confirmed_by: str | None
    """a solver of another lineage that gives the same answer"""


class WitnessVector(Vector):
    """An input on which two sides differ."""

    results: list[Hex]
    """what each side gives, by replay"""
    other_side: Vector = ABSENT
    """the input of the second side, where it is another one: a permutation, negated, raised"""


class PairProof(Part):
    """One of the statements that were to be proved: two sides give the same result."""

    left: str
    """the model of the first side"""
    right: str
    """the model of the second side"""
    sides: list[str]
    """what the sides are, in words"""
    verdict: Verdict
    """equal: the statement holds"""
    seconds: float
    """how long it took"""
    engines: list[str]
    """who proved it"""
    confirmed_by: list[str]
    """who confirmed it"""
    why: str | None
    """the rules that it rests on, beside lemmas: expressions that are one or have one normal form, symmetry of nodes"""
    lemmas: list[OneLemma]
    """its steps"""
    unanswered: list[str]
    """queries without an answer"""
    vector: WitnessVector | None
    """the input on which the sides differ"""


class CertificatePiece(Part):
    """One question of a certificate that has no answer, and its proof."""

    name: str
    """stem of its files"""
    states: str
    """what it proves"""
    words: list[str]
    """what engines answered, and when"""
    variables: int = ABSENT
    """of its formula (CNF); this field and those below are there where it has a proof"""
    clauses: int = ABSENT
    """of its formula"""
    proof_lines: int = ABSENT
    """of its DRAT proof"""
    checker: str = ABSENT
    """who checked the proof"""
    sha256: dict[str, Hex]
    """file: its digest"""


class Certificate(Part):
    """A folder with theorems, queries, formulas and checked proofs: its manifest."""

    folder: str = ABSENT
    """where it is"""
    schema_: Literal[3] = Field(alias="schema")
    """the version of the manifest"""
    question: str
    """what is proved"""
    solver: str
    """who wrote the proofs"""
    skipped_lemmas: list[int]
    """lemmas that the proof of the whole did not need"""
    parts: list[str]
    """folders in it that hold certificates of which it is made"""
    pieces: list[CertificatePiece]
    """the questions"""
    sha256: dict[str, Hex]
    """its other files: their digests"""


class Prove(Document):
    """Two models equal, or a property of one model."""

    property: str
    """equal, or the property asked"""
    verdict: Verdict
    """of the two sides of the statement, equal: it is proved; different: a vector shows that it does not hold"""
    holds: bool | None
    """whether the statement holds: true, false, or null where that is unknown"""
    interrupted: bool
    """whether an interrupt cut it short"""
    seconds: float
    """how long it took"""
    engines: list[str]
    """who proved it"""
    confirmed_by: list[str]
    """who confirmed all of it; empty where that is not so of every part"""
    proofs: list[PairProof]
    """its statements"""
    zeros_only: list[str]
    """operands of which --inputs admits zeros alone"""
    statement: str
    """the property in words"""
    certificates: list[Certificate] = ABSENT
    """with --certificate: what was written"""
    certificate_error: str = ABSENT
    """why a certificate could not be written"""


class ProvePlans(Document):
    """Two plans equal, for one K or for every K."""

    property: Literal["equal"]
    """the property"""
    left: str
    """the first plan"""
    right: str
    """the second plan"""
    verdict: Verdict
    """equal: proved"""
    interrupted: bool
    """whether an interrupt cut it short"""
    seconds: float
    """how long it took"""
    length: int | None
    """K, or null for every K"""
    multiples: int | None
    """every K that is a multiple of this"""
    rules: list[str]
    """how the one plan was rewritten into the other"""
    engines: list[str]
    """who proved its lemmas"""
    confirmed_by: list[str]
    """who confirmed all of them"""
    proofs: list[PairProof]
    """the lemmas"""
    unanswered: list[str]
    """what was tried without an answer"""
    vector: WitnessVector | None
    """the input on which they differ"""
    certificates: list[Certificate] = ABSENT
    """with --certificate: what was written"""
    certificate_error: str = ABSENT
    """why a certificate could not be written"""


class ErrorTerm(Part):
    """One term of a bound: a coefficient times a magnitude."""

    coefficient: str
    """a fraction"""
    of: list[list[list[str | int | bool]]]
    """products of factors, each [operand, its place, whether raised to the smallest normal number]"""


class Window(Part):
    """The numbers that a numeric bound is about."""

    min: int
    """smallest exponent of an operand"""
    max: int
    """largest exponent"""
    bound: float
    """|d - exact| is at most this"""


class Chain(Part):
    """A chain of instructions."""

    step: str
    """the error after one more instruction, by the error before it"""
    growth: str
    """by which factor the error before it grows"""
    part: str
    """what is added, of the magnitudes"""
    any: str
    """the bound for a chain of any length"""


class LemmaOfBound(Part):
    """A lemma about the datapath."""

    lemma: str
    """what it states"""
    by: str
    """who proved it"""


class Nearest(Part):
    """The input found whose error comes nearest to the bound."""

    ratio: float
    """error / bound"""
    error: float
    """|d - exact| there"""
    bound: float
    """the bound there"""
    vector: Vector = ABSENT
    """the input of one instruction"""
    vectors: list[Vector] = ABSENT
    """the inputs of a chain, each with the addend that the one before gives"""


class ErrorBound(Document):
    """A bound of |d - exact| of one model."""

    property: Literal["error-bound"]
    """the property"""
    model: str
    """the model"""
    length: int
    """products in all"""
    verdict: Literal["holds", "unknown"]
    """holds: proved"""
    premises: list[str]
    """what is supposed of inputs"""
    reason: str | None
    """why there is no bound"""
    seconds: float
    """how long it took"""
    formula: str = ABSENT
    """the bound as a formula; this field and those below are there where a bound was proved"""
    terms: list[ErrorTerm] = ABSENT
    """the same, for programs"""
    window: Window = ABSENT
    """the bound as a number"""
    chain: Chain = ABSENT
    """of a chain of instructions"""
    rules: dict[str, int] = ABSENT
    """rule: how often it was used"""
    lemmas: list[LemmaOfBound] = ABSENT
    """what solvers proved of the datapath"""
    tried: int = ABSENT
    """inputs that the bound was checked against"""
    nearest: Nearest | None = ABSENT
    """the worst of them"""
    certificates: list[Certificate] = ABSENT
    """with --certificate: what was written"""
    certificate_error: str = ABSENT
    """why a certificate could not be written"""


class PlanFormula(Part):
    """A bound for any K."""

    before: int
    """products that are not repeated; 0 if all are"""
    multiples: int
    """K = `before` and n times this, for any n from 1 on"""
    bound: str
    """the bound, in n by way of G"""
    growth: str
    """what G is"""


class Alike(Part):
    """Elements that follow one another and are alike."""

    pattern: str
    """in hexadecimal"""
    count: int
    """how many"""


class NearestProduct(Part):
    """The row of A and the column of B found whose error comes nearest to the bound, c being zero."""

    ratio: float
    """error / bound"""
    error: float
    """|d - exact| there"""
    bound: float
    """the bound there"""
    a: list[Alike]
    """the row"""
    b: list[Alike]
    """the column"""


class PlanBoundAt(Part):
    """A bound for one K."""

    length: int
    """K"""
    bound: str
    """the bound as a formula"""
    window: Window
    """the bound as a number"""
    tried: int
    """elements of products that were evaluated"""
    nearest: NearestProduct | None
    """the worst of them; null where none was tried"""


class PlanErrorBound(Document):
    """A bound of |d - exact| of a plan."""

    property: Literal["error-bound"]
    """the property"""
    plan: str
    """the plan"""
    verdict: Literal["holds", "unknown"]
    """holds: proved"""
    premises: list[str]
    """what is supposed of inputs"""
    reason: str | None
    """why there is no bound, or no formula"""
    seconds: float
    """how long it took"""
    formula: PlanFormula | None
    """for every K that is a multiple of the plan's period"""
    sizes: list[PlanBoundAt]
    """for the K asked"""
    rules: dict[str, int]
    """rule: how often it was used"""
    lemmas: list[LemmaOfBound]
    """what solvers proved of the datapath"""
