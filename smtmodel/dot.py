"""A model: formats and an accumulator, or a unit file, evaluated over any carrier as an expression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from smtmodel.accumulator import Accumulator
from smtmodel.algebra import Bits
from smtmodel.errors import NotModelledError
from smtmodel.families import unit_of
from smtmodel.formats import Format
from smtmodel.nodes import Node, Round
from smtmodel.nodes.node import structure
from smtmodel.nodes.rewriting import rebuilt
from smtmodel.rounding import Mode
from smtmodel.trace import Silent, Trace
from smtmodel.unit import Memo, Unit


@dataclass(frozen=True)
class Model:
    """d = c + sum of a_k * b_k as one unit computes it. `reference` is its name on the command line."""

    reference: str
    a: Format
    b: Format
    c: Format
    accumulator: Accumulator = field(repr=False)

    @property
    def d(self) -> Format:
        return self.accumulator.output_format

    @property
    def length(self) -> int:
        return self.accumulator.length

    @property
    def scale(self) -> Format | None:
        """The format of the scale factors, if there are any."""
        return self.accumulator.scale

    @property
    def scales(self) -> int:
        """The number of scale factors on each side."""
        return self.accumulator.scales

    @property
    def scale_block(self) -> int:
        """The number of products that share a pair of scale factors."""
        return self.accumulator.scale_block

    @property
    def nan(self) -> int | None:
        """The pattern of a NaN result; None where it is not known."""
        return self.accumulator.nan

    @property
    def rounding(self) -> Mode:
        """How the result is rounded."""
        return self.unit.rounding.mode

    @property
    def blocks(self) -> tuple[tuple[int, ...], ...]:
        """The products that each step takes, in the order of the steps."""
        return self.accumulator.blocks

    @cached_property
    def unit(self) -> Unit:
        """The unit as an expression."""
        return unit_of(self.accumulator, self.a, self.b, self.c, self.reference)

    @property
    def any_nan(self) -> Model:
        """The model with NaNs of every pattern as one."""
        return self if self.nan is None else replace(self, accumulator=replace(self.accumulator, nan=None))


class UnitModel(Model):
    """A model that is an expression: a unit file. It has no parameters of a family."""

    def __init__(self, unit: Unit, reference: str) -> None:
        for name, value in (("reference", reference), ("a", unit.a), ("b", unit.b), ("c", unit.c), ("unit", unit)):
            object.__setattr__(self, name, value)

    unit: Unit

    @property
    def accumulator(self) -> Accumulator:
        raise NotModelledError(
            f"{self.reference} is a unit file, an expression without parameters of a family: this needs an instruction "
            "of the table, which has them"
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnitModel) and (self.reference, self.unit) == (other.reference, other.unit)

    def __hash__(self) -> int:
        return hash((self.reference, self.unit))

    def __repr__(self) -> str:
        unit = self.unit  # its file may change: what it says stands here, by which stored results are found
        formats = (unit.a, unit.b, unit.c, unit.length, unit.scale, unit.scale_block)
        return f"UnitModel({self.reference!r}, {formats!r}, {structure(unit.result)!r})"

    @property
    def d(self) -> Format:
        return self.unit.d

    @property
    def length(self) -> int:
        return self.unit.length

    @property
    def scale(self) -> Format | None:
        return self.unit.scale

    @property
    def scales(self) -> int:
        return self.unit.scales

    @property
    def scale_block(self) -> int:
        return self.unit.scale_block or 1

    @property
    def nan(self) -> int | None:
        return self.unit.nan

    @property
    def blocks(self) -> tuple[tuple[int, ...], ...]:
        return self.unit.blocks

    @property
    def any_nan(self) -> Model:
        if self.nan is None:
            return self
        pattern = self.nan

        def leaf(old: Node, new: Node) -> Node:
            own = isinstance(new, Round) and new.rounding.nan == pattern
            return replace(new, rounding=replace(new.rounding, nan=None)) if own and isinstance(new, Round) else new

        unit = replace(self.unit, result=rebuilt(self.unit.result, leaf, {}), names={}, signals={}, titles={})
        return UnitModel(unit, self.reference)


@dataclass(frozen=True)
class Evaluation:
    """The result pattern (`model.d.width` bits) and the signals on the way to it."""

    d: Bits
    trace: Trace


def evaluate(
    model: Model,
    a: Sequence[Bits],
    b: Sequence[Bits],
    c: Bits,
    scale_a: Sequence[Bits] = (),
    scale_b: Sequence[Bits] = (),
    *,
    memo: Memo | None = None,
    traced: bool = True,
) -> Evaluation:
    """Evaluate over the carrier of the inputs: patterns of `a.width`, `b.width`, `c.width` bits.

    Fewer products than the model's length stand for zero products at the end. A model with scale factors needs
    `model.scales` of them (`model.scale.width` bits) on each side.

    `memo`, for many models on the same inputs: products are formed once for all models that form them alike (those
    taken from it are not in the trace again). `traced`: whether the signals are kept.
    """
    if not len(scale_a) == len(scale_b) == model.scales:
        raise ValueError(f"{model.reference} takes {model.scales} scale factors on each side")
    return Evaluation(*model.unit.evaluate(a, b, c, scale_a, scale_b, Trace() if traced else Silent(), memo))
