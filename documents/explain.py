"""The documents of `explain`, `simulate` and `study`."""

from __future__ import annotations

from collections.abc import Sequence

from mmaprobe.documents.devices import Fact, FirstDivergence
from mmaprobe.documents.parts import Document, Hex, Part


class ExplainedInput(Part):
    """An operand."""

    name: str  #: a0, b0, c, ...
    format: str  #: its format
    value: Hex  #: its bit pattern
    real: str  #: its value


class Cause(Part):
    """A term that is infinite or NaN."""

    term: str  #: its name
    kind: str  #: nan, inf*0, infinite, or too_large: a product of finite factors beyond the range
    inputs: Sequence[str]  #: the operands from which the term is computed


class SpecialRule(Part):
    """A rule for NaN and infinity that fired."""

    step: int  #: the number of the step, from 0
    rule: str  #: nan, inf*0, opposite (infinities of both signs), or infinity
    causes: Sequence[Cause]  #: the terms to which the rule applies


class Evaluation(Part):
    """One evaluation of one model."""

    model: str  #: the model
    inputs: Sequence[ExplainedInput]  #: the model's operands; c only if the model reads c
    signals: Sequence[Fact]  #: its signals, in order
    special: Sequence[SpecialRule]  #: the rules for NaN and infinity that fired
    d: Hex  #: the result
    real: str  #: its value
    observed: Hex | None  #: the row's `d`


class Explain(Document):
    """One evaluation, or two of one input."""

    evaluations: Sequence[Evaluation]  #: one, or two with --against
    difference: FirstDivergence | None  #: where the two evaluations diverge


class LossStep(Part):
    """A step that loses bits."""

    step: str  #: its name
    format: str  #: the format that it is rounded to
    products: Sequence[int] | None  #: the numbers of its first and its last product
    cut: str  #: what alignment truncates, as a fraction
    rounded: str  #: what rounding changes, as a fraction
    total: str | None  #: of the last step: the element less the exact result; of other steps: all losses so far


class ExplainElement(Document):
    """One element of a matrix product."""

    plan: str  #: the plan
    length: int  #: K
    element: str  #: row and column, as `3,5`
    inputs: str | None  #: the loss where inputs are read (by words and conversions), as a fraction
    losses: Sequence[LossStep]  #: the steps that lose bits, and the last one
    d: Hex  #: the result


class SimulatedProduct(Part):
    """One product of matrices."""

    name: str  #: the name of the matrix in a .npz file; empty for .npy
    shape: Sequence[int]  #: the shape of the result: rows and columns
    seconds: float  #: the duration in seconds


class Simulate(Document):
    """Products of matrices as a model or a plan computes them."""

    model: str  #: the model, or the plan
    output: str  #: the file written
    products: Sequence[SimulatedProduct]  #: one for each matrix


class Study(Document):
    """The error of algorithms against size."""

    study: str  #: its name
    seed: int  #: the seed of the random numbers
    sizes: Sequence[int]  #: the sizes measured
    new: int  #: points measured by this run
    files: Sequence[str]  #: table and curves
