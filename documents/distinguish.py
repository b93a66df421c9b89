"""The document of `distinguish`, and the parts about questions that other documents share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from mmaprobe.documents.parts import Document, Part, Vector
from mmaprobe.documents.prove import confirmed_text


class SolverAnswer(Part):
    """One solver's answer to one query."""

    solver: str  #: its name
    version: str  #: its version
    status: str  #: sat, unsat or unknown
    seconds: float  #: the duration in seconds
    reason: str  #: why unknown; else empty


class QueryAsked(Part):
    """One query, and the products that it left free."""

    free_products: Sequence[int]  #: numbers of the products that were not fixed to zero
    nonnegative_only: bool  #: whether all inputs were restricted to nonnegative numbers
    answers: Sequence[SolverAnswer]  #: the solvers' answers


class PairOfHypotheses(Part):
    """Two hypotheses and whether an input distinguishes them."""

    left: str  #: the first hypothesis
    right: str  #: the second hypothesis
    verdict: Literal["different", "equal", "unknown", "divided"]
    """divided: no single input distinguishes the first hypothesis from all others"""
    reused_vector: bool  #: whether a vector found for another pair distinguishes these, too
    complete: bool  #: whether no further kind of input distinguishes them
    found_by_simulation: bool  #: whether samples, and no solver, found the vectors
    seconds: float  #: the duration in seconds
    asked: Sequence[QueryAsked]  #: the queries, in order


def pair_text(pair: PairOfHypotheses, asked: str, vectors: str) -> str:
    """The verdict in words. `asked`: the text about the engines that answered; `vectors`: the text about the vectors
    found."""
    if pair.reused_vector:
        return "different (by a vector of another pair)"
    verdicts = {"equal": "equal on every admitted input", "divided": "no single input distinguishes it from all others"}
    if pair.verdict in verdicts:
        return f"{verdicts[pair.verdict]}; {confirmed_text(None)} [{asked}]"
    if pair.verdict == "unknown":
        return f"unknown; tried [{asked}]"
    more = "" if pair.complete else " (there may be more kinds)"
    if pair.complete and pair.asked and pair.asked[-1].answers[0].status == "unsat":
        more = " (in both, any other input exercises the same features as one found)"
    return f"different{vectors}{more} [{asked}]"


def expected_text(expect: str | None, met: bool) -> str:
    """The text that says whether a verdict was expected; empty without an expectation."""
    return "" if expect is None else "as expected" if met else f"EXPECTED {expect}"


class QuestionAnswered(Part):
    """One question and its answer."""

    id: str  #: its name
    question: str  #: in words
    verdict: str  #: the verdict of all pairs together
    expect: Literal["different", "equal"] | None  #: what the question's file expects
    hypotheses: Mapping[str, str]  #: hypothesis: its model
    dropped: Mapping[str, str]  #: hypothesis: why it does not apply
    one_vector: str | None  #: the hypothesis that one input must distinguish from every other one
    observed: Mapping[str, str]  #: GPU: the hypothesis that agrees with it
    zeros_only: Sequence[str]  #: operands that the restrictions limit to zeros
    interrupted: bool  #: whether an interrupt ended the search
    pairs: Sequence[PairOfHypotheses]  #: all pairs of hypotheses with their verdicts
    vectors: Sequence[Vector]  #: the inputs found


class Distinguish(Document):
    """Inputs that distinguish hypotheses, or two models."""

    questions: Sequence[QuestionAnswered]  #: one for each question asked
