"""The document of `verify`: claims about algorithms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from mmaprobe.documents.parts import ABSENT, Document, Hex, Part
from mmaprobe.documents.prove import Certificate, PairProof

#: the quantifier of a claim, in words
QUANTIFIED = {"all": "for all inputs", "exists": "for some input"}


class ClaimLemma(Part):
    """One query of a claim."""

    name: str  #: the statement
    answer: str  #: the solver, its version and its time
    confirmed_by: str | None  #: a solver of another lineage that gives the same answer


class Step(Part):
    """An attempt to decide a claim."""

    what: str  #: the attempt, in words
    seconds: float = ABSENT  #: the duration in seconds
    answers: Sequence[str]  #: what the solvers answered


class PartResult(Part):
    """The result of one part of a claim."""

    d: Hex  #: the bit pattern
    value: str  #: the number, in powers of two
    decimal: str  #: the number, in decimal digits
    error: str = ABSENT  #: |d - exact|, of finite results, in powers of two
    error_decimal: str = ABSENT  #: the error in decimal digits
    error_ulps: float = ABSENT  #: the error in ulps of the exact sum


class FirstStep(Part):
    """The first step in which the parts of a claim diverge."""

    step: str  #: the first step whose result differs between the parts
    pattern: str  #: the result of this step in this part


class ClaimVector(Part):
    """An input of a claim with the results of its parts."""

    format: str  #: the format of a and b
    c_format: str  #: the format of c
    a: Sequence[Hex]  #: bit patterns of the first factors
    b: Sequence[Hex]  #: bit patterns of the second factors
    c: Hex  #: bit pattern of the addend
    exact: str  #: c + sum of a_k * b_k, in powers of two
    exact_decimal: str  #: the same in decimal digits
    results: Mapping[str, PartResult]  #: part: its result
    first_divergence: Mapping[str, FirstStep] | None  #: part: the first step that differs


class Worst(Part):
    """The largest value of a quantity."""

    quantity: str  #: the quantity that is maximised
    where: Sequence[str]  #: the conditions on the inputs
    value: float | None  #: the largest value found
    exact_value: str | None  #: this value as a fraction
    bound: str | None  #: a value that is proved never to be reached
    engine: str | None  #: the solver that proved this
    most: str | None  #: a value that is never exceeded, by the proof that decided the claim
    left_out: int
    """the number of inputs tried that do not count, as a result is infinite, NaN or beyond the range of exact sums; the
    bound, too, is about inputs on which every result is a number"""
    seconds: float  #: the duration in seconds
    asked: Sequence[Step]  #: what was tried
    vector: ClaimVector | None  #: the input with the largest value found


class Shares(Part):
    """An error, or a difference of results, that a claim compares with the sum of magnitudes: its share of that sum."""

    proved: str | None
    """the least share that is proved never to be exceeded, as a fraction: by any input in the windows, also one that
    `where` leaves out"""
    reached: str | None  #: the largest share that was found, as a fraction
    late: bool = ABSENT  #: the time, or an interrupt, ended the work before a share was proved


class Claim(Part):
    """One case of a claim and its outcome."""

    id: str  #: its name
    about: str  #: the subject of the claim, in words
    source: str  #: the publication
    says: str  #: what the source says
    quantifier: Literal["all", "exists"]  #: for all inputs, or for some input
    claim: str  #: the statement
    parts: Mapping[str, str]  #: name in the statement: the algorithm or model that it names
    zeros_only: Sequence[str]  #: operands that the claim's restrictions limit to zeros
    expect: str | None  #: what the file expects
    verdict: str  #: holds, refuted or unknown
    as_expected: bool  #: whether the verdict is the expected one; if none is expected, whether the claim holds
    interrupted: bool  #: whether an interrupt or the time limit ended the work early
    seconds: float  #: the duration in seconds
    lemmas: Sequence[ClaimLemma]  #: what was proved
    asked: Sequence[Step]  #: what was tried, in order
    vector: ClaimVector | None  #: of claims about algorithms: the input that decides the claim
    counterexample: PairProof | None  #: of claims about units: the statement that is refuted, with its vector
    shares: Shares = ABSENT  #: of claims that compare an error, or two results, with the sum of magnitudes
    certificates: Sequence[Certificate] = ABSENT  #: with --certificate: the certificates written
    certificate_error: str = ABSENT  #: why a certificate could not be written
    worst: Worst = ABSENT  #: with --maximise


class Verify(Document):
    """Claims: verified, refuted by an input, or unknown."""

    claims: Sequence[Claim]  #: one for each case
