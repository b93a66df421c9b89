"""The documents about recorded results and devices: `evaluate`, `run`, `compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from mmaprobe.documents.parts import ABSENT, Document, Hex, Input, Part, Vector


class ModelCount(Part):
    """The rows of one model."""

    model: str  #: the model
    rows: int  #: the number of rows
    mismatches: int  #: rows whose `d` is not the model's result
    unobserved: int  #: rows without `d`


class Fact(Part):
    """A signal of an evaluation."""

    name: str  #: its place in the evaluation
    kind: str  #: number, exponent, pattern, ...
    width: int  #: the number of its bits
    value: Hex  #: its bits
    scale: int = ABSENT  #: of a number: the exponent of its last bit
    signed: bool = ABSENT  #: of a number: whether its bits are in two's complement
    offset: int = ABSENT  #: of an exponent: the number to add to its bits
    format: str = ABSENT  #: of a pattern: the format of its number
    real: str  #: its value in powers of two


class FirstDivergence(Part):
    """Where two evaluations diverge."""

    stage: str  #: the stage of the datapath, in words
    signal: str  #: the first signal that differs
    left: Fact | None  #: this signal in the first evaluation
    right: Fact | None  #: this signal in the second


class Neighbour(Part):
    """A model with one parameter changed that gives the other result."""

    parameter: str  #: the parameter that is changed
    value: str | int | bool | Sequence[int]  #: its new value
    model: str | None  #: the reference of the changed model, if it has one
    first_divergence: FirstDivergence | None  #: where it diverges from the model


class Mismatch(Part):
    """A row whose `d` is not the model's."""

    line: int  #: its line in the file
    id: str | int | None  #: the id of the vector
    model: str  #: the model
    observed: Hex  #: the row's `d`
    predicted: Hex  #: the model's result
    neighbours: Sequence[Neighbour] = ABSENT
    """parameters whose change gives the result observed; of the first few mismatches"""


class Evaluate(Document):
    """Rows with an observed result checked against their models."""

    rows: int  #: rows in the file
    compared: int  #: rows with a `d`, which are compared with their models
    mismatches: int  #: compared rows in which the model gives another result
    models: Sequence[ModelCount]  #: the counts for each model
    first_mismatches: Sequence[Mismatch]  #: the first hundred mismatches
    error: str | None  #: the error that ended the command early


class Place(Part):
    """The place of a vector in the file."""

    id: str | int | None  #: its name
    line: int  #: its line


class RuledOut(Place):
    """The vector that refutes a hypothesis."""

    predicted: Hex  #: the hypothesis's prediction
    observed: Hex  #: the device's answer


class Standing(Part):
    """How many answers agree with a hypothesis."""

    answers: int  #: answers to vectors for which the hypothesis has a prediction
    agree: int  #: the number of answers that equal the prediction
    ruled_out_by: RuledOut | None  #: the first answer that is not as predicted


class Unpredicted(Place):
    """An answer that no hypothesis predicts."""

    observed: Hex  #: the answer
    predictions: Mapping[str, Hex]  #: hypothesis: its prediction


class QuestionStanding(Part):
    """The hypotheses of a question that the answers leave."""

    id: str  #: the question's name
    answers: int  #: answers to its vectors
    standing: Sequence[str]  #: hypotheses that agree with every answer
    hypotheses: Mapping[str, Standing]  #: hypothesis: its answers
    unpredicted: int  #: number of answers that no hypothesis predicts
    first_unpredicted: Sequence[Unpredicted]  #: the first few of these answers


class EarlierDifference(Place):
    """An answer that is not the row's `d`."""

    earlier: Hex  #: the row's `d`
    observed: Hex  #: the device's answer


class ObservedBefore(Part):
    """Rows that had a `d` already."""

    answers: int  #: answers to rows with `d`
    agree: int  #: answers that equal `d`
    first_differences: Sequence[EarlierDifference]  #: the first few answers that differ from `d`


class RunDevice(Part):
    """The device asked."""

    name: str  #: as on the command line
    description: Mapping[str, Any]  #: the device's own description


class Run(Document):
    """The answers of a device, and which hypotheses are consistent with them."""

    device: RunDevice  #: the device
    answered: int  #: vectors with an answer
    earlier: int  #: the number of these answers that an earlier run gave
    unanswered: Sequence[Place]  #: vectors without an answer
    questions: Sequence[QuestionStanding]  #: one entry for each question whose predictions the vectors hold
    observed_before: ObservedBefore  #: answers to the vectors that have `d`
    wrong: int = ABSENT  #: with --check: answers that are not their model's
    vectors: Sequence[Vector] = ABSENT  #: without --output: the answers
    file: str  #: the file of the vectors
    output: str | None  #: the file of the answers
    error: str | None  #: the error that ended the command early


class ComparedDevice(Part):
    """One of two devices."""

    name: str  #: as on the command line
    model: str  #: the model for which its inputs are made
    description: Mapping[str, Any]  #: the device's own description
    asked: int  #: questions put to it


class AnyInput(Input):
    """An input of any number of products. Each further operand of the unit has a key of its own."""

    a: Sequence[Hex]  #: bit patterns of the first factors
    b: Sequence[Hex]  #: bit patterns of the second factors
    c: Hex  #: bit pattern of the addend
    scale_a: Sequence[Hex] = ABSENT  #: scale factors of a
    scale_b: Sequence[Hex] = ABSENT  #: scale factors of b


class NeighboursOfSides(Part):
    """For each model, the changes that give the other's result."""

    first: Sequence[Neighbour]  #: changes of the first model that give the second's result
    second: Sequence[Neighbour]  #: changes of the second model that give the first's result


class Difference(Part):
    """An input on which the devices differ, minimised."""

    vector: Vector | None  #: the input as a vector of one instruction, if it is one
    operands: AnyInput  #: the input
    results: Mapping[str, Hex]  #: `first`, `second`: the result of each device
    exercises: Sequence[str]  #: conditions of the datapath that the input reaches
    terms: int  #: the number of nonzero terms
    terms_found: int  #: the number of nonzero terms before the input was minimised
    neighbours: NeighboursOfSides  #: changes of one parameter that explain the difference
    questions: Sequence[str]  #: questions of the library that distinguish these results


class CommonChange(Part):
    """A change that explains every difference found: the changed model gives the other side's results."""

    change: str  #: parameter=value
    agree: int  #: answers that the changed model gives
    answers: int  #: answers that were compared


class CommonChanges(Part):
    """For each model, the changes that explain every difference found."""

    first: Sequence[CommonChange]  #: changes of the first model
    second: Sequence[CommonChange]  #: changes of the second model


class Support(Part):
    """A hypothesis that agrees with a device."""

    hypothesis: str  #: its name
    agree: int  #: answers that it predicts
    answers: int  #: answers that were compared


class QuestionOfLibrary(Part):
    """A question of the library whose hypotheses predict differences."""

    id: str  #: its name
    question: str  #: the question in words
    differences: Sequence[int]  #: numbers of the differences that it explains, from 0
    complete: bool  #: whether it predicts every answer
    first: Sequence[Support]  #: hypotheses that agree with the first device
    second: Sequence[Support]  #: hypotheses that agree with the second


class DeviceContradiction(Part):
    """Answers of one device to one question."""

    device: str  #: its name
    vector: Vector  #: the question
    answers: Sequence[Hex | None]  #: the answers of the device; null where it gave none


class ElementPlace(Part):
    """An element of a matrix."""

    row: int  #: its row, from 0
    column: int  #: its column, from 0


class DifferingElement(ElementPlace):
    """An element in which two matrices differ."""

    d: Sequence[Hex]  #: its bit pattern in each matrix
    ulps: int | None
    """how many numbers of the format it is from one to the other; null if one is a NaN, or the formats differ"""


class DotProduct(AnyInput, ElementPlace):
    """The dot product of an element."""


class ModelAgreement(Part):
    """A model's agreement with one matrix."""

    agree: int  #: the number of elements that the model gives
    changes: Sequence[str]  #: changes of one parameter with which the model gives all elements
    reached_after: int | None
    """the number of products after which the model's partial sum equals the first element; null if none does"""


class ComparedModel(Part):
    """A model compared with two matrices."""

    model: str  #: the model
    elements: int  #: elements looked at
    D1: ModelAgreement  #: the first matrix
    D2: ModelAgreement  #: the second matrix


class TellingApart(Part):
    """An element for which two plans give different results. All factors but those listed are +0."""

    products: Sequence[int]  #: the products k with factors listed
    a: Sequence[Hex]  #: the factor a of each of these products
    b: Sequence[Hex]  #: the factor b of each of these products
    c: Hex  #: the addend
    results: Sequence[Hex]  #: of the plan named first, then of the other plan


class OtherPlan(Part):
    """A plan that gives a recorded product, but differs from the plan named first on new elements."""

    plans: Sequence[str]  #: its names
    differ: int  #: the number of new elements on which it differs
    new: int  #: the number of new elements compared; 0 if the time was over
    wide: bool = ABSENT  #: whether these have numbers of all exponents, since no element like the recorded ones differs
    told_apart: TellingApart = ABSENT  #: a new element with few products


class PlansFound(Part):
    """The plans of one matrix."""

    plans: Sequence[str]  #: the plans that give every element looked at
    complete: bool  #: whether all candidates were tried
    tried: int  #: the number of candidates tried
    untried: Sequence[str]  #: candidates not tried for lack of time, in words
    looked_at: int  #: elements that were computed again
    best: str | None  #: if no plan gives all elements: a plan that gives most
    best_agrees: int  #: the largest number of elements that a plan gives
    left_out: Sequence[int]  #: products k that are not in the sum
    twice: Sequence[int] = ABSENT  #: products k that are added twice
    instead: str = ABSENT  #: the value in place of the products left out, in words
    others: Sequence[OtherPlan] = ABSENT  #: the plans of `plans` that differ from the first plan on other inputs


class StepOfPlan(Part):
    """A step of an element, computed by a plan."""

    step: str  #: its name
    products: Sequence[int] | None  #: the numbers of its first and its last product
    value: str  #: its value, as a fraction


class FirstSteps(Part):
    """The first step in which two plans differ."""

    D1: StepOfPlan | None  #: the step of the first matrix's plan; null where that plan has no such step
    D2: StepOfPlan | None  #: the step of the second matrix's plan


class ComparedPlans(Part):
    """The plans of two matrices."""

    why: Sequence[str] = ABSENT  #: the differences between the first plans of both matrices, in words
    D1: PlansFound  #: the first matrix
    D2: PlansFound  #: the second matrix
    first_step: FirstSteps | None = ABSENT
    """the first step in which these plans differ, in the first differing element; null if no step differs"""


class ComputedAgain(Part):
    """Elements computed again by both sides."""

    elements: int  #: the number of elements
    first: int  #: the number of elements for which the first side gives its matrix's value
    second: int  #: the number of elements for which the second side gives its matrix's value


class Gemm(Part):
    """With --gemm: two matrices that should be alike."""

    elements: int  #: elements of each matrix
    differing: int  #: elements in which they differ
    first: DifferingElement | None = ABSENT  #: the first element that differs
    largest: DifferingElement | None = ABSENT  #: the element with the largest difference
    model: ComparedModel = ABSENT  #: with --model: its agreement with the matrices
    plans: ComparedPlans = ABSENT  #: the plans that give the matrices
    computed_again: ComputedAgain = ABSENT  #: elements computed again by both sides
    dot_product: DotProduct = ABSENT  #: the operands of a differing element
    element: Sequence[int] = ABSENT  #: row and column of the element that was followed up
    tile: int | None = ABSENT  #: the tile in which the sides diverge
    products: Sequence[int] = ABSENT
    """the range of the dot product's remaining products: the first product, and the product after the last"""


class Compare(Document):
    """Where two devices differ."""

    verdict: Literal["different", "unstable", "no difference", "not compared"]
    """unstable: a device contradicts itself; not compared: no vector was answered by both"""
    reason: str | None
    """why the devices differ, in one sentence; null if unknown. For two recordings that are not compared: the library's
    hypotheses that predict every answer of one recording and not of the other"""
    compare: str | None  #: how results are compared: bits or value
    devices: Sequence[ComparedDevice]  #: the two devices
    compared: int  #: vectors answered by both
    different: int  #: the number of these vectors with different answers
    differences: Sequence[Difference]  #: differences of several kinds, minimised
    common_changes: CommonChanges  #: changes of one parameter that explain all differences
    questions: Sequence[QuestionOfLibrary]  #: questions of the library whose hypotheses predict differences
    contradictions: Sequence[DeviceContradiction]  #: answers that contradict each other
    gemm: Gemm = ABSENT  #: with --gemm
    error: str | None  #: the error that ended the command early
