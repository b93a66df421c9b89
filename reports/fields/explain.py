"""The documents of `explain`, `simulate` and `study`."""

from __future__ import annotations

from mmaprobe.reports.fields.devices import Fact, FirstDivergence
from mmaprobe.reports.fields.parts import Document, Hex, Part


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
    """A term that is infinite or NaN."""

    term: str
    """its name"""
    kind: str
    """nan, inf*0, infinite, or too_large: a product of finite factors beyond the range"""
    inputs: list[str]
    """the operands behind it"""


class SpecialRule(Part):
    """A rule for NaN and infinity that fired."""

    step: int
    """the number of the step, from 0"""
    rule: str
    """nan, inf*0, opposite (infinities of both signs), or infinity"""
    causes: list[Cause]
    """the terms that it is about"""


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
    """its name"""
    format: str
    """the format that it is rounded to"""
    products: list[int] | None
    """the numbers of its first and its last product"""
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
    """row and column, as `3,5`"""
    losses: list[LossStep]
    """the steps that lose bits"""
    d: Hex
    """the result"""


class SimulatedProduct(Part):
    """One product of matrices."""

    name: str
    """the name of the matrix in a .npz file; empty for .npy"""
    shape: list[int]
    """the shape of the result: rows and columns"""
    seconds: float
    """how long it took, in seconds"""


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
    """the seed of the random numbers"""
    sizes: list[int]
    """the sizes measured"""
    new: int
    """points measured by this run"""
    files: list[str]
    """table and curves"""
