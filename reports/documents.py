"""The JSON documents that commands print, field by field.

JSON Schema files (reports/schemas) and the page docs/json.md are made of these types, by `python -m tests.schemas`; the
tests hold every document that they print against them. A field that is not always there has ABSENT for its default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter

ABSENT: Any = None

Hex = Annotated[str, StringConstraints(pattern="^[0-9a-f]+$")]
Verdict = Literal["equal", "different", "unknown"]


class Part(BaseModel):
    """An object inside a document."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


class Produced(Part):
    """What made a document."""

    by: str
    """name and version of the program"""
    command: str
    """the command line, to be run again"""
    defaults: str = ABSENT
    """the file of defaults, where one was read"""


class Document(Part):
    """One document on standard output."""

    schema_: Literal[1] = Field(alias="schema")
    """the version of the document: raised when a field goes or changes its meaning; fields may be added"""
    produced: Produced
    """the program and its command line"""


class Vector(Part):
    """An input of a unit, as in a line of a vector file. Keys of your own are kept."""

    model_config = ConfigDict(extra="allow")

    schema_: Literal[1] = Field(alias="schema", default=ABSENT)
    """the version of the row"""
    id: str | int = ABSENT
    """its name in the file"""
    model: str = ABSENT
    """the unit that it was made for"""
    a: list[Hex]
    """bit patterns of the first factors; missing trailing products are zero"""
    b: list[Hex]
    """bit patterns of the second factors"""
    c: Hex
    """bit pattern of the addend"""
    scale_a: list[Hex] = ABSENT
    """scale factors of a, one a block; of units that take them"""
    scale_b: list[Hex] = ABSENT
    """scale factors of b"""
    d: Hex = ABSENT
    """the result observed"""
    predictions: dict[str, Hex] = ABSENT
    """hypothesis: the result that it predicts"""
    question: str = ABSENT
    """the question that the predictions belong to"""
    exercises: list[str] = ABSENT
    """conditions of the datapath that the input reaches"""
    family: str = ABSENT
    """the family whose candidates it helps to tell apart"""
    outcomes: dict[str, int] = ABSENT
    """result: how many classes of that family's candidates give it"""


# -- distinguish


class SolverAnswer(Part):
    """What one solver said to one query."""

    solver: str
    """its name"""
    version: str
    """its version"""
    status: str
    """sat, unsat or unknown"""
    seconds: float
    """how long it took"""
    reason: str
    """why unknown; else empty"""


class Asked(Part):
    """One query: the products that were left free in it."""

    free_products: list[int]
    """numbers of the products that were not held at zero"""
    nonnegative_only: bool
    """whether all numbers were held nonnegative"""
    answers: list[SolverAnswer]
    """what the solvers said"""


class PairOfHypotheses(Part):
    """Two hypotheses and whether an input tells them apart."""

    left: str
    """name of the first"""
    right: str
    """name of the second"""
    verdict: Literal["different", "equal", "unknown", "divided"]
    """divided: no input tells it apart from all the others at once"""
    reused_vector: bool
    """whether a vector found for another pair tells these apart, too"""
    complete: bool
    """whether there is no other kind of vector"""
    found_by_simulation: bool
    """whether samples, and no solver, found the vectors"""
    seconds: float
    """how long it took"""
    asked: list[Asked]
    """the queries, in order"""


class QuestionAnswered(Part):
    """One question and its answer."""

    id: str
    """its name"""
    question: str
    """in words"""
    verdict: str
    """the verdict of all pairs together"""
    expect: Literal["different", "equal"] | None
    """what the question's file expects"""
    hypotheses: dict[str, str]
    """name: the model"""
    dropped: dict[str, str]
    """name: why the hypothesis does not apply"""
    one_vector: str | None
    """the hypothesis that one input must tell from every other one"""
    observed: dict[str, str]
    """GPU: the hypothesis that agrees with it"""
    zeros_only: list[str]
    """operands of which the restrictions admit zeros alone"""
    pairs: list[PairOfHypotheses]
    """every two hypotheses"""
    vectors: list[Vector]
    """the inputs found"""


class Distinguish(Document):
    """Inputs that tell hypotheses, or two models, apart."""

    questions: list[QuestionAnswered]
    """one for each question asked"""


# -- prove


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
    """a solver of another lineage that says so, too"""


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
    schema_: Literal[2] = Field(alias="schema")
    """the version of the manifest"""
    question: str
    """what is proved"""
    solver: str
    """who wrote the proofs"""
    skipped_lemmas: list[int]
    """lemmas that the proof of the whole did not need"""
    argument: str
    """how the lemmas give the answer, where no file says it"""
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
    """what is asked"""
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
    """what is asked"""
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
    """inputs that the bound was held against"""
    nearest: Nearest | None = ABSENT
    """the worst of them"""
    certificates: list[Certificate] = ABSENT
    """with --certificate: what was written"""
    certificate_error: str = ABSENT
    """why a certificate could not be written"""


class PlanFormula(Part):
    """A bound for any K."""

    multiples: int
    """K = n times this, for any n"""
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
    """what is asked"""
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


# -- check


class CheckFinding(Part):
    """What was found at one place of a certificate."""

    place: str
    """the file, and where in it"""
    says: str
    """what was found"""
    kind: Literal["fine", "word", "argument", "open", "fault"]
    """word: it relies on the engines named; argument: a written argument, not checked; open: it could not be checked"""


class CheckFolder(Document):
    """A certificate, checked again."""

    folder: str
    """where it is"""
    verdict: Literal["checked", "fault", "incomplete"]
    """fault: a part was rejected; incomplete: a part could not be checked"""
    findings: list[CheckFinding]
    """one for each file, proof and theorem at fault, in order"""


# -- verify


class ClaimLemma(Part):
    """One query of a claim."""

    name: str
    """what is stated"""
    answer: str
    """the solver, its version and its time"""
    confirmed_by: str | None
    """a solver of another lineage that says so, too"""


class Step(Part):
    """Something that was tried."""

    what: str
    """in words"""
    seconds: float = ABSENT
    """how long it took"""
    answers: list[str]
    """what was said to it"""


class PartResult(Part):
    """What one part of a claim gives."""

    d: Hex
    """the bit pattern"""
    value: str
    """the number, in powers of two"""
    error: str = ABSENT
    """|d - exact|, of finite results"""
    error_ulps: float = ABSENT
    """the same in ulps of the exact sum"""


class FirstStep(Part):
    """Where parts of a claim part."""

    step: str
    """the first step that is not alike"""
    pattern: str
    """what it is in this part"""


class ClaimVector(Part):
    """An input of a claim with the results of its parts."""

    format: str
    """of a and b"""
    a: list[Hex]
    """bit patterns of the first factors"""
    b: list[Hex]
    """bit patterns of the second factors"""
    c: Hex
    """bit pattern of the addend"""
    exact: str
    """c + sum of a_k * b_k"""
    results: dict[str, PartResult]
    """part: its result"""
    first_divergence: dict[str, FirstStep] | None
    """part: the first step that differs"""


class Worst(Part):
    """The largest value of a quantity."""

    quantity: str
    """what is made large"""
    where: list[str]
    """under which conditions"""
    value: float | None
    """the largest found"""
    exact_value: str
    """the same as a fraction"""
    bound: str | None
    """what is proved never to be reached"""
    engine: str
    """who proved that"""
    seconds: float
    """how long it took"""
    asked: list[Step]
    """what was tried"""
    vector: ClaimVector | None
    """the input"""


class Claim(Part):
    """One case of a claim and its outcome."""

    id: str
    """its name"""
    about: str
    """in words"""
    source: str
    """who says so"""
    says: str
    """what the source says"""
    quantifier: Literal["all", "exists"]
    """for all inputs, or for some input"""
    claim: str
    """the statement"""
    parts: dict[str, str]
    """name in the statement: what it stands for"""
    zeros_only: list[str]
    """operands of which its restrictions admit zeros alone"""
    expect: str
    """what the file expects"""
    verdict: str
    """holds, refuted or unknown"""
    as_expected: bool
    """whether the verdict is that"""
    interrupted: bool
    """whether an interrupt cut it short"""
    seconds: float
    """how long it took"""
    lemmas: list[ClaimLemma]
    """what was proved"""
    asked: list[Step]
    """what was tried, in order"""
    vector: ClaimVector | None
    """the input that decided, of claims about algorithms"""
    counterexample: PairProof | None
    """the same of claims about units"""
    certificates: list[Certificate] = ABSENT
    """with --certificate: what was written"""
    certificate_error: str = ABSENT
    """why a certificate could not be written"""
    worst: Worst = ABSENT
    """with --maximise"""


class Verify(Document):
    """Claims: verified, refuted by an input, or unknown."""

    claims: list[Claim]
    """one for each case"""


# -- separate, identify, order


class Member(Part):
    """A candidate of a class."""

    model: str
    """the model"""
    why: str | None
    """why it gives the results of the first of its class"""
    confirmed_by: str | list[str] | None
    """who confirmed that"""


class Class(Part):
    """Candidates that no input tells apart."""

    members: list[Member]
    """the candidates"""
    results: list[Hex]
    """their result of each vector"""


class Impossible(Part):
    """Combinations of a family's parameters that cannot be."""

    combinations: int
    """in all"""
    left_out: int
    """of them left out"""
    reasons: dict[str, int]
    """why: how many"""


class Separate(Document):
    """Vectors that tell every two candidates of a family apart."""

    family: str
    """its name"""
    candidates: int
    """how many it has"""
    impossible: Impossible
    """what was left out"""
    classes: list[Class]
    """candidates proved equal are in one class"""
    vectors: list[Vector]
    """which tell the classes apart"""
    unknown: list[list[str]]
    """pairs that stay open"""
    seconds: float
    """how long it took"""


class Outline(Part):
    """The summation order."""

    questions: int
    """how many it took"""
    tree: list[str] | None = ABSENT
    """as text, line by line (with a family)"""
    outline: list[str] = ABSENT
    """as text, line by line (without one)"""


class QuestionAsked(Vector):
    """A question put to a device, and what its answer leaves."""

    left: int
    """candidates left after it"""
    ruled_out: dict[str, list[Any]]
    """parameter: values that no candidate left has"""


class Explains(Part):
    """A candidate that comes near."""

    model: str
    """the model"""
    explains: int
    """answers that it gives, too"""


class Contradiction(Part):
    """Two answers to one question."""

    vector: Vector
    """the question"""
    answers: list[Hex]
    """what the device gave"""


class Identify(Document):
    """Which candidate of a family a device implements."""

    family: str
    """its name"""
    device: dict[str, Any]
    """`name`, and what the device says of itself"""
    verdict: Literal["identified", "no candidate", "open"]
    """identified: one class of candidates is left"""
    error: str | None
    """what ended it early"""
    candidates: int
    """how many the family has"""
    impossible: Impossible
    """what was left out of it"""
    units: list[str]
    """instructions of the table with the arithmetic of the one class that is left; empty otherwise"""
    decided: dict[str, Any]
    """parameter of the family: its value in every candidate left"""
    assumed: dict[str, Any]
    """parameter that the family does not name: the value it has in all candidates"""
    undecided: dict[str, list[Any]]
    """parameter: the values that are left"""
    why_undecided: list[str]
    """why no input tells these apart"""
    classes: list[list[Member]]
    """what is left"""
    open: list[list[str]]
    """pairs of candidates that are neither told apart nor proved equal"""
    questions: int
    """how many were asked about the arithmetic"""
    summation_order: Outline
    """what was asked about the order"""
    validated: int
    """answers of validation"""
    asked: list[QuestionAsked]
    """the questions about the arithmetic"""
    nearest: list[Explains]
    """where no candidate fits: those that come near"""
    contradictions: list[Contradiction]
    """answers that contradict each other"""
    would_decide: list[Vector]
    """questions that a recording has no answer to, and that would decide"""
    seconds: float
    """how long it took"""


class EqualModel(Part):
    """A unit proved equal."""

    model: str
    """the unit"""
    why: str
    """how it is known"""


class Beside(Part):
    """Units that differ from the one built in one choice."""

    refuted: int
    """told from it by an answer"""
    not_told: int
    """not told from it"""


class NearInstruction(Part):
    """The instruction of the table that comes nearest."""

    model: str
    """its name"""
    different_answers: int
    """answers that it does not give"""
    first_divergence: str | None
    """the stage and the signal in which it first differs from the unit, or from the nearest candidate where none was
    found, on the smallest input that tells them apart; null where such a signal is not there"""


class Unexplained(Vector):
    """An answer that a candidate does not give."""

    candidate: Hex
    """what the candidate gives"""


class Build(Document):
    """The unit of a device of which nothing was known."""

    device: dict[str, Any]
    """`name`, and what the device says of itself"""
    formats: dict[str, str]
    """of a, b, c and d"""
    length: int
    """products"""
    verdict: str
    """identified: a unit gives every answer and nothing near it does; open: something was not decided"""
    error: str | None
    """what ended it early"""
    seconds: float
    """how long it took"""
    unit: str | None = ABSENT
    """the unit file; this field and those below are there where the order was found"""
    equal: list[EqualModel] = ABSENT
    """what ships and is proved equal"""
    undecided: list[str] = ABSENT
    """units that give the same answers and are not proved equal"""
    nearest_instruction: NearInstruction | None = ABSENT
    """where no instruction of the table is equal"""
    summation_order: Outline | None = ABSENT
    """the order"""
    questions: int = ABSENT
    """about the arithmetic"""
    validated: int = ABSENT
    """vectors of validation"""
    beside: Beside = ABSENT
    """units that differ in one choice"""
    stage: str = ABSENT
    """how far it came"""
    why: str | None = ABSENT
    """why no unit was found"""
    nearest: str | None = ABSENT
    """the candidate that comes nearest, as a unit file"""
    unexplained: list[Unexplained] = ABSENT
    """answers that it does not give"""


class Span(Part):
    """Values of K with one plan."""

    elements: str
    """which elements of the product, in words"""
    shape: list[int]
    """M and N that were looked at"""
    from_: int = Field(alias="from")
    """smallest K"""
    to: int
    """largest K"""
    plan: str | None
    """the plan found"""


class Tally(Part):
    """Random shapes held against the plans."""

    agree: int
    """shapes that are as said"""
    differ: list[list[int]]
    """[M, N, K] of shapes that another kernel computes"""
    open: list[list[int]]
    """[M, N, K] of shapes of which nothing is known"""


class OrderAt(Part):
    """The summation order of one shape."""

    shape: list[int]
    """M, N and K"""
    outline: list[str]
    """as text, line by line"""


class IdentifyProduct(Document):
    """Which plans give a recorded product."""

    files: list[str]
    """those of A, B, C where there is one, and D"""
    length: int
    """K"""
    plans: dict[str, str]
    """those that give every element looked at: name: the plan file"""
    tried: int
    """how many plans were tried"""
    looked_at: int
    """elements that were computed again"""
    best: str | None
    """the plan that gives most of them"""
    best_agrees: int
    """how many it gives"""
    seconds: float
    """how long it took"""


class IdentifyGemm(Document):
    """Which plan a library's matrix product runs at which K."""

    device: dict[str, Any]
    """`name`"""
    error: str | None
    """what ended it early"""
    spans: list[Span]
    """values of K"""
    plans: dict[str, str]
    """name: the plan file"""
    edges: list[int]
    """rows and columns in whose multiples the inside of a product ends"""
    volumes: list[int]
    """M * N * K up to which, and from which, other kernels run"""
    checked: dict[str, Tally]
    """sort of elements: what random shapes say"""
    orders: list[OrderAt]
    """the orders revealed"""
    products_asked: int
    """matrix products asked of the library"""
    seconds: float
    """how long it took"""


class OrderStep(Part):
    """One sum."""

    kind: str
    """how its terms are added"""
    terms: list[str | int]
    """numbers of products, and c"""
    steps: list[int]
    """numbers of steps whose sums it adds"""


class Order(Document):
    """The order in which a device adds."""

    device: dict[str, Any]
    """`name`, and what the device says of itself"""
    formats: dict[str, str]
    """of a, b, d, and of c where there is one"""
    length: int
    """products"""
    revealed: bool
    """whether the order was found"""
    error: str | None
    """why not"""
    questions: int
    """how many it took"""
    seconds: float
    """how long it took"""
    steps: list[OrderStep] = ABSENT
    """the sums, in the order in which they are done; this field and those below are there where it was found"""
    outline: list[str] = ABSENT
    """as text, line by line"""
    places: int = ABSENT
    """binary places that the formats allow to see"""
    starts_from: str = ABSENT
    """with --ends: what the sum begins with"""
    products_fused: list[int] = ABSENT
    """with --ends: products that are not rounded before they are added"""
    products_rounded: list[int] = ABSENT
    """with --ends: products that are rounded before"""
    products_not_told: str = ABSENT
    """with --ends: why no answer tells"""


# -- cover


class OutOfReach(Part):
    """A condition that no input reaches."""

    condition: str
    """the step, what of it, the case; `not NAME=VALUE`: a change of a parameter that no input shows"""
    rule: str
    """the rule of inference that gives it"""
    why: str
    """the engines' words"""


class Conditions(Part):
    """What became of the conditions of one kind."""

    reached: list[str]
    """those that a vector reaches"""
    out_of_reach: list[OutOfReach]
    """those that no input reaches, proved"""
    open: list[str]
    """neither"""


class Cover(Document):
    """Vectors that reach the conditions of a unit's datapath."""

    model: str
    """the unit"""
    complete: bool
    """whether every condition is reached, or proved to be out of reach"""
    conditions: Conditions
    """the cases of each input and step"""
    pairs: Conditions
    """two cases of a step together"""
    changes: Conditions
    """changes of one parameter, which a vector shows by its result"""
    vectors: list[Vector]
    """`d` is the unit's result; `reaches`: what each was chosen for"""
    seconds: float
    """how long it took"""


# -- evaluate, run, compare


class ModelCount(Part):
    """The rows of one model."""

    model: str
    """the model"""
    rows: int
    """how many rows"""
    mismatches: int
    """rows whose `d` is not the model's"""
    unobserved: int
    """rows without `d`"""


class Fact(Part):
    """A signal of an evaluation."""

    name: str
    """where it stands"""
    kind: str
    """number, exponent, pattern, ..."""
    width: int
    """bits"""
    value: Hex
    """the bits"""
    scale: int = ABSENT
    """of a number: the exponent of its last bit"""
    signed: bool = ABSENT
    """of a number: whether in two's complement"""
    offset: int = ABSENT
    """of an exponent: what is to be added"""
    real: str | None
    """the value in powers of two"""


class FirstDivergence(Part):
    """Where two evaluations diverge."""

    stage: str
    """in words"""
    signal: str
    """the first signal that differs"""
    left: Fact | None
    """what it is in the first"""
    right: Fact | None
    """what it is in the second"""


class Neighbour(Part):
    """A model with one thing changed that gives the other result."""

    parameter: str
    """what is changed"""
    value: str | int | bool | list[int]
    """to what"""
    model: str | None
    """its reference, where it has one"""
    first_divergence: FirstDivergence | None
    """where it diverges from the model"""


class Mismatch(Part):
    """A row whose `d` is not the model's."""

    line: int
    """in the file"""
    id: str | int | None
    """of the vector"""
    model: str
    """the model"""
    observed: Hex
    """the row's `d`"""
    predicted: Hex
    """the model's"""
    neighbours: list[Neighbour] = ABSENT
    """of the first few: what would give the result observed"""


class Evaluate(Document):
    """Rows with an observed result held against their models."""

    rows: int
    """in the file"""
    compared: int
    """of them with `d`"""
    mismatches: int
    """of them where the model gives something else"""
    models: list[ModelCount]
    """the same, model by model"""
    first_mismatches: list[Mismatch]
    """the first hundred"""
    error: str | None
    """what ended it early"""


class Place(Part):
    """A vector of the file."""

    id: str | int | None
    """its name"""
    line: int
    """its line"""


class RuledOut(Place):
    """The vector that refutes a hypothesis."""

    predicted: Hex
    """by the hypothesis"""
    observed: Hex
    """on the device"""


class Standing(Part):
    """How a hypothesis fares."""

    answers: int
    """answers that it predicts"""
    agree: int
    """of them as predicted"""
    ruled_out_by: RuledOut | None
    """the first that is not"""


class Unpredicted(Place):
    """An answer that no hypothesis predicts."""

    observed: Hex
    """the answer"""
    predictions: dict[str, Hex]
    """what the hypotheses say"""


class QuestionStanding(Part):
    """What the answers leave of a question."""

    id: str
    """the question"""
    answers: int
    """answers to its vectors"""
    standing: list[str]
    """hypotheses that every answer agrees with"""
    hypotheses: dict[str, Standing]
    """each of them"""
    unpredicted: int
    """answers that none of them predicts"""
    first_unpredicted: list[Unpredicted]
    """the first few"""


class EarlierDifference(Place):
    """An answer that is not the row's `d`."""

    earlier: Hex
    """the row's"""
    observed: Hex
    """the device's"""


class ObservedBefore(Part):
    """Rows that had a `d` already."""

    answers: int
    """how many"""
    agree: int
    """of them answered so again"""
    first_differences: list[EarlierDifference]
    """the first few of the others"""


class RunDevice(Part):
    """The device asked."""

    name: str
    """as on the command line"""
    description: dict[str, Any]
    """what it says of itself"""


class Run(Document):
    """The answers of a device, and which hypotheses are consistent with them."""

    device: RunDevice
    """the device"""
    answered: int
    """vectors with an answer"""
    earlier: int
    """of them by an earlier run"""
    unanswered: list[Place]
    """vectors without"""
    questions: list[QuestionStanding]
    """of vectors with predictions"""
    observed_before: ObservedBefore
    """of vectors with `d`"""
    file: str
    """the vectors"""
    output: str | None
    """where the answers are"""
    error: str | None
    """what ended it early"""
    vectors: list[Vector] = ABSENT
    """without --output: the answers"""


class ComparedDevice(Part):
    """One of two devices."""

    name: str
    """as on the command line"""
    model: str
    """the model that its inputs are made by"""
    description: dict[str, Any]
    """what it says of itself"""
    asked: int
    """questions put to it"""


class AnyInput(Part):
    """An input of any number of products."""

    a: list[Hex]
    """bit patterns of the first factors"""
    b: list[Hex]
    """bit patterns of the second factors"""
    c: Hex
    """bit pattern of the addend"""
    scale_a: list[Hex] = ABSENT
    """scale factors of a"""
    scale_b: list[Hex] = ABSENT
    """scale factors of b"""


class NeighboursOfSides(Part):
    """Of each model what, changed, gives the other's result."""

    first: list[Neighbour]
    """of the first"""
    second: list[Neighbour]
    """of the second"""


class Difference(Part):
    """An input on which the devices differ, made small."""

    vector: Vector | None
    """as an input of one instruction, where it is one"""
    operands: AnyInput
    """as it is"""
    results: dict[str, Hex]
    """first, second: what each gives"""
    exercises: list[str]
    """conditions of the datapath that the input reaches"""
    terms: int
    """terms that are not zero"""
    terms_found: int
    """the same before it was made small"""
    neighbours: NeighboursOfSides
    """what may be behind it"""
    questions: list[str]
    """questions of the library that tell these results apart"""


class CommonChange(Part):
    """A change that gives every difference."""

    change: str
    """parameter=value"""
    agree: int
    """answers that the changed model gives"""
    answers: int
    """of so many"""


class CommonChanges(Part):
    """Of each model the changes that give every difference."""

    first: list[CommonChange]
    """of the first"""
    second: list[CommonChange]
    """of the second"""


class Support(Part):
    """A hypothesis that agrees with a device."""

    hypothesis: str
    """its name"""
    agree: int
    """answers that it predicts"""
    answers: int
    """of so many"""


class QuestionOfLibrary(Part):
    """A question of the library whose hypotheses predict differences."""

    id: str
    """its name"""
    question: str
    """in words"""
    differences: list[int]
    """numbers of the differences that it explains, from 0"""
    complete: bool
    """whether it predicts every answer"""
    first: list[Support]
    """hypotheses that agree with the first device"""
    second: list[Support]
    """hypotheses that agree with the second"""


class DeviceContradiction(Part):
    """Answers of one device to one question."""

    device: str
    """its name"""
    vector: Vector
    """the question"""
    answers: list[Hex | None]
    """what it gave"""


class DifferingElement(Part):
    """An element in which two matrices differ."""

    row: int
    """from 0"""
    column: int
    """from 0"""
    d: list[Hex]
    """what each has"""
    ulps: int | None
    """how far apart, of finite numbers"""


class DotProduct(AnyInput):
    """The dot product of an element."""

    row: int
    """from 0"""
    column: int
    """from 0"""


class Gemm(Part):
    """With --gemm: two matrices that should be alike."""

    elements: int
    """of a matrix"""
    differing: int
    """of them not alike"""
    first: DifferingElement | None = ABSENT
    """the first one"""
    largest: DifferingElement | None = ABSENT
    """the one farthest apart"""
    model: dict[str, Any] = ABSENT
    """with --model: `model`, `elements` looked at, and of D1 and D2 in how many the model agrees, and which changes
    give all"""
    plans: dict[str, Any] = ABSENT
    """of D1 and D2 the `plans` that give them and how many were `tried`; `diverge_after` is how many products"""
    computed_again: dict[str, int] = ABSENT
    """`elements` looked at, and in how many each side gives its matrix again"""
    dot_product: DotProduct = ABSENT
    """an element to look at"""
    element: list[int] = ABSENT
    """row and column of the element that was followed up"""
    tile: int | None = ABSENT
    """the tile in which the sides part"""
    products: list[int] = ABSENT
    """from which product to which"""


class Compare(Document):
    """Where two devices differ."""

    verdict: Literal["different", "unstable", "no difference"]
    """unstable: a device contradicts itself"""
    reason: str | None
    """why they differ, in one sentence; null without a difference"""
    compare: str | None
    """how results are compared: bits or value"""
    devices: list[ComparedDevice]
    """the two"""
    compared: int
    """vectors answered by both"""
    different: int
    """of them with different answers"""
    differences: list[Difference]
    """some of them, made small, of different kinds"""
    common_changes: CommonChanges
    """what may be behind all of them"""
    questions: list[QuestionOfLibrary]
    """what the library asks about that"""
    contradictions: list[DeviceContradiction]
    """answers that contradict each other"""
    error: str | None
    """what ended it early"""
    gemm: Gemm = ABSENT
    """with --gemm"""


# -- explain, simulate, study


class ExplainedInput(Part):
    """An operand."""

    name: str
    """a0, b0, c, ..."""
    format: str
    """its format"""
    value: Hex
    """its bit pattern"""
    real: str
    """its value"""


class Cause(Part):
    """A term that is infinite or no number."""

    term: str
    """its name"""
    kind: str
    """what it is"""
    inputs: list[str]
    """the operands behind it"""


class SpecialRule(Part):
    """A rule for NaN and infinity that fired."""

    step: int
    """number of the step"""
    rule: str
    """in words"""
    causes: list[Cause]
    """by which terms"""


class Evaluation(Part):
    """One evaluation of one model."""

    model: str
    """the model"""
    inputs: list[ExplainedInput]
    """the operands"""
    signals: list[Fact]
    """its signals, in order"""
    special: list[SpecialRule]
    """the rules for NaN and infinity that fired"""
    d: Hex
    """the result"""
    real: str
    """its value"""
    observed: Hex | None
    """the row's `d`"""


class Explain(Document):
    """One evaluation, or two of one input."""

    evaluations: list[Evaluation]
    """one, or two with --against"""
    difference: FirstDivergence | None
    """where they diverge"""


class LossStep(Part):
    """A step that loses bits."""

    step: str
    """which"""
    products: list[int] | None
    """the products in it, from and to"""
    cut: str
    """what alignment truncates, as a fraction"""
    rounded: str
    """what rounding changes, as a fraction"""


class ExplainElement(Document):
    """One element of a matrix product."""

    plan: str
    """the plan"""
    length: int
    """K"""
    element: str
    """row,column"""
    losses: list[LossStep]
    """the steps that lose bits"""
    d: Hex
    """the result"""


class SimulatedProduct(Part):
    """One product of matrices."""

    name: str
    """of the matrix in a .npz file; empty for .npy"""
    shape: list[int]
    """of the result"""
    seconds: float
    """how long it took"""


class Simulate(Document):
    """Matrices through a model."""

    model: str
    """the model, or the plan"""
    output: str
    """the file written"""
    products: list[SimulatedProduct]
    """one for each matrix"""


class Study(Document):
    """The error of algorithms against size."""

    study: str
    """its name"""
    seed: int
    """of the random numbers"""
    sizes: list[int]
    """that were measured"""
    new: int
    """points measured by this run"""
    files: list[str]
    """table and curves"""


# -- list


class Row(Part):
    """One thing of a list."""

    schema_: Literal[1] = Field(alias="schema")
    """the version of the object"""
    id: str
    """the name by which commands take it"""
    summary: str
    """one line of text"""


class Formats(Part):
    """The formats of operands and result."""

    a: str
    """of the first factors"""
    b: str
    """of the second factors"""
    c: str
    """of the addend"""
    d: str
    """of the result"""


class ModelRow(Row):
    """An instruction or unit (`list models`)."""

    shape: list[int]
    """M, N and K"""
    formats: Formats
    """its formats"""
    block: int = ABSENT
    """products added in one step; of instructions of the table"""
    fraction_bits: int | str = ABSENT
    """bits kept below the largest exponent, or exact; of instructions of the table"""
    source: str
    """who says so"""
    evidence: str
    """what it rests on"""
    recorded: dict[str, int] = ABSENT
    """GPU: recorded results; of instructions of the table"""
    emulated: bool
    """whether the instruction is made of others"""


class HypothesisRow(Row):
    """A question (`list hypotheses`)."""

    hypotheses: dict[str, str]
    """name: the model"""
    expect: Literal["different", "equal"] | None
    """what its file expects"""
    observed: dict[str, str]
    """GPU: the hypothesis that agrees with it"""
    source: str
    """who asks"""


class FamilyRow(Row):
    """A family of candidates (`list families`)."""

    model: str
    """the instruction that it starts from"""
    parameters: dict[str, list[str]]
    """parameter: its values"""


class ParameterRow(Row):
    """A parameter of models (`list parameters`)."""

    meaning: str
    """in words"""
    values: str
    """in words"""


class FormatRow(Row):
    """A format of numbers, or how a format of one's own is spelled (`list formats`)."""

    width: int = ABSENT
    """bits; of formats"""
    exponent: int = ABSENT
    """bits of the exponent; of formats"""
    fraction: int = ABSENT
    """bits of the fraction; of formats"""
    bias: int = ABSENT
    """of the exponent; of formats"""


class SpellingRow(Row):
    """How a format that has no row is spelled (`list formats`)."""


class AlgorithmRow(Row):
    """An algorithm on top of a unit (`list algorithms`)."""

    parameters: dict[str, str]
    """parameter: what it means, and its values"""
    defaults: dict[str, str]
    """parameter: its default"""


class StudyRow(Row):
    """A study (`list studies`)."""

    sizes: list[int]
    """K of its points"""
    series: dict[str, str]
    """curve: the algorithm"""


class ClaimRow(Row):
    """A claim (`list claims`)."""

    source: str
    """who says so"""
    says: str
    """what the source says"""
    expect: str
    """what is expected here"""
    cases: list[str]
    """its cases"""


class DeviceRow(Row):
    """A device of this machine (`list devices`)."""

    formats: str = ABSENT
    """of a, b, c and d; of instructions of the processor"""
    length: int = ABSENT
    """products"""
    here: bool | None
    """whether it can be asked; null where only asking tells"""
    missing: str | None
    """why not"""
    model: str | None = ABSENT
    """the unit that it should be"""


class GpuRow(Row):
    """A GPU (`list gpus`)."""

    architecture: str
    """the first part of the names of its models"""


class PlanRow(Row):
    """A plan (`list plans`)."""

    formats: Formats
    """its formats"""
    units: list[str]
    """the units that it uses"""
    about: str
    """in words"""
    source: str
    """who says so"""
    evidence: str
    """what it rests on"""


Listed = (
    ModelRow | HypothesisRow | FamilyRow | ParameterRow | FormatRow | SpellingRow | AlgorithmRow | StudyRow | ClaimRow
    | DeviceRow | PlanRow | GpuRow
)  # fmt: skip

#: command -> what it prints with --json
DOCUMENTS: Mapping[str, Any] = {
    "distinguish": Distinguish,
    "prove": Prove | ProvePlans | ErrorBound | PlanErrorBound,
    "verify": Verify,
    "check": CheckFolder,
    "separate": Separate,
    "identify": Identify | Build | IdentifyGemm | IdentifyProduct,
    "order": Order,
    "cover": Cover,
    "evaluate": Evaluate,
    "run": Run,
    "compare": Compare,
    "explain": Explain | ExplainElement,
    "simulate": Simulate,
    "study": Study,
    "list": list[Listed],
}
#: what is in a line of a vector file
VECTOR = "vector"


def check(command: str, text: str) -> None:
    """Raises pydantic.ValidationError for a document that is not what a command should print."""
    TypeAdapter(DOCUMENTS[command]).validate_json(text)


def schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of each document, by command, and that of a vector."""
    return {
        name: {"$schema": "https://json-schema.org/draft/2020-12/schema"} | _plain(TypeAdapter(kind).json_schema())
        for name, kind in {**DOCUMENTS, VECTOR: Vector}.items()
    }


def _plain(schema: Any) -> Any:
    """Without what is of these types alone: fields may be added, and absent is absent."""
    if isinstance(schema, list):
        return [_plain(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    own = schema.get("type") == "object" or "anyOf" in schema or "$ref" in schema or "type" in schema
    return {
        key: {name: _plain(one) for name, one in value.items()} if key in ("properties", "$defs") else _plain(value)
        for key, value in schema.items()
        if not (own and (key == "default" or (key == "additionalProperties" and value is False)
                         or (key == "title" and "properties" not in schema)))
    }  # fmt: skip
