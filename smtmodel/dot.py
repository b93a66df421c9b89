"""A model: formats and an accumulator, evaluated over any carrier by chaining the stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from smtmodel import ieee
from smtmodel.accumulator import Accumulator
from smtmodel.algebra import Bits, constant
from smtmodel.decode import Unpacked, unpack
from smtmodel.errors import NotModelledError
from smtmodel.formats import FORMATS, Format
from smtmodel.rounding import Mode, Target
from smtmodel.stages import DECODE, PRODUCT, RESULT, block_sum, form_product, group_sum, scale_product, unpack_input
from smtmodel.trace import Silent, Trace
from smtmodel.unit import Unit

#: the parameters that single products depend on
FORMING = ("flush_inputs", "input_zeros", "product", "product_rounding", "product_overflow")
Memo = dict[tuple[Any, ...], list[Unpacked]]


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
        name = self.accumulator.scale_format
        return None if name is None else FORMATS[name]

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
        return self.accumulator.output_rounding

    @property
    def blocks(self) -> tuple[tuple[int, ...], ...]:
        """The products that each step takes, in the order of the steps."""
        return self.accumulator.blocks


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
        return f"UnitModel({self.reference!r})"

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
    def rounding(self) -> Mode:
        return self.unit.rounding.mode

    @property
    def nan(self) -> int | None:
        return self.unit.nan

    @property
    def blocks(self) -> tuple[tuple[int, ...], ...]:
        return self.unit.blocks


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
    taken from it are not in the trace again). `traced`: whether the signals of an expression are kept.
    """
    if not len(scale_a) == len(scale_b) == model.scales:
        raise ValueError(f"{model.reference} takes {model.scales} scale factors on each side")
    if isinstance(model, UnitModel):
        return Evaluation(*model.unit.evaluate(a, b, c, scale_a, scale_b, Trace() if traced else Silent()))
    return _evaluate_stages(model, a, b, c, scale_a, scale_b, memo)


def _evaluate_stages(
    model: Model,
    a: Sequence[Bits],
    b: Sequence[Bits],
    c: Bits,
    scale_a: Sequence[Bits],
    scale_b: Sequence[Bits],
    memo: Memo | None,
) -> Evaluation:
    accumulator, carrier, trace = model.accumulator, c.carrier, Trace()
    products = _products(model, a, b, trace, {} if memo is None else memo)
    output = accumulator.output_format
    addend = unpack_input(accumulator, c, model.c)
    trace.term("addend", addend.term, DECODE)
    if accumulator.addend == "after":
        addend = unpack(constant(carrier, 0, output.width), output)
    scales = _scales(model, scale_a, scale_b)
    result = None
    blocks = accumulator.blocks
    for step, indices in enumerate(blocks):
        trace.prefix = accumulator.prefix(step)
        terms, names = _block_terms(model, products, scales, indices, trace)
        result = block_sum(accumulator, terms, addend, [*names, "addend"], trace)
        addend = unpack(result, output)
    trace.prefix = ""
    assert result is not None
    if accumulator.addend == "after":
        target = Target(output, accumulator.addition_rounding, flush=accumulator.flush_outputs)
        outer = unpack_input(accumulator, c, model.c)
        result = ieee.add_unpacked(unpack(result, output), outer, target, accumulator.nan_pattern)
        trace.flag("after_addend", result, RESULT)
    return Evaluation(result, trace)


def _products(model: Model, a: Sequence[Bits], b: Sequence[Bits], trace: Trace, memo: Memo) -> list[Unpacked]:
    key = (model.a, model.b, model.length, *(getattr(model.accumulator, name) for name in FORMING))
    if key not in memo:
        memo[key] = _form_products(model, a, b, trace)
    return memo[key]


def _form_products(model: Model, a: Sequence[Bits], b: Sequence[Bits], trace: Trace) -> list[Unpacked]:
    accumulator, missing = model.accumulator, model.length - len(a)
    carrier = a[0].carrier
    padded = [[*side, *[constant(carrier, 0, fmt.width)] * missing] for side, fmt in ((a, model.a), (b, model.b))]
    products = []
    for k, (x, y) in enumerate(zip(*padded, strict=True)):
        factors = unpack_input(accumulator, x, model.a), unpack_input(accumulator, y, model.b)
        product = form_product(accumulator, *factors)
        trace.term(f"product[{k}]", product.term, PRODUCT)
        products.append(product)
    return products


def _scales(model: Model, left: Sequence[Bits], right: Sequence[Bits]) -> list[tuple[Unpacked, Unpacked]]:
    fmt = model.scale
    return [] if fmt is None else [(unpack(x, fmt), unpack(y, fmt)) for x, y in zip(left, right, strict=True)]


def _block_terms(
    model: Model,
    products: Sequence[Unpacked],
    scales: Sequence[tuple[Unpacked, Unpacked]],
    indices: Sequence[int],
    trace: Trace,
) -> tuple[list[Unpacked], list[str]]:
    """The terms of one step with their names: products, scaled products, or scaled groups of products."""
    accumulator = model.accumulator
    if not scales:
        return [products[k] for k in indices], [str(k) for k in indices]
    step = accumulator.group if accumulator.grouping == "scale_blocks" else 1
    terms, names = [], []
    for start in range(0, len(indices), step):
        members = [products[k] for k in indices[start : start + step]]
        first = indices[start]
        name = f"{first}-{indices[start + step - 1]}" if step > 1 else str(first)
        term = group_sum(members, name, trace) if step > 1 else members[0]
        terms.append(scale_product(term, *scales[first // accumulator.scale_block]))
        names.append(name)
    return terms, names
