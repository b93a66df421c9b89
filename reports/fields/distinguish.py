"""The document of `distinguish`, and the questions that other commands ask as it does."""

from __future__ import annotations

from typing import Literal

from reports.fields.parts import Document, Part, Vector


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
    """Two hypotheses and whether an input distinguishes them."""

    left: str
    """name of the first"""
    right: str
    """name of the second"""
    verdict: Literal["different", "equal", "unknown", "divided"]
    """divided: no input distinguishes it from all the others at once"""
    reused_vector: bool
    """whether a vector found for another pair distinguishes these, too"""
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
    """Inputs that distinguish hypotheses, or two models."""

    questions: list[QuestionAnswered]
    """one for each question asked"""
