"""A model: formats and an accumulator, evaluated over any carrier by chaining the stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from smtmodel import ieee
from smtmodel.accumulator import Accumulator
from smtmodel.algebra import Bits, constant
from smtmodel.decode import unpack
from smtmodel.formats import Format
from smtmodel.rounding import Target
from smtmodel.stages import DECODE, PRODUCT, RESULT, block_sum, form_product
from smtmodel.trace import Trace


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


@dataclass(frozen=True)
class Evaluation:
    """The result pattern (`model.d.width` bits) and the signals on the way to it."""

    d: Bits
    trace: Trace


def evaluate(model: Model, a: Sequence[Bits], b: Sequence[Bits], c: Bits) -> Evaluation:
    """Evaluate over the carrier of the inputs: patterns of `a.width`, `b.width`, `c.width` bits.

    Fewer products than the model's length stand for zero products at the end.
    """
    accumulator, carrier, trace = model.accumulator, c.carrier, Trace()
    flush = accumulator.flush_inputs
    missing = model.length - len(a)
    padded = [[*side, *[constant(carrier, 0, fmt.width)] * missing] for side, fmt in ((a, model.a), (b, model.b))]
    products = []
    for k, (x, y) in enumerate(zip(*padded, strict=True)):
        left, right = unpack(x, model.a, flush), unpack(y, model.b, flush)
        product = form_product(accumulator, left, right)
        trace.term(f"product[{k}]", product.term, PRODUCT)
        products.append(product)
    output = accumulator.output_format
    addend = unpack(c, model.c, flush)
    trace.term("addend", addend.term, DECODE)
    if accumulator.addend == "after":
        addend = unpack(constant(carrier, 0, output.width), output)
    result = None
    blocks = accumulator.blocks
    for step, indices in enumerate(blocks):
        trace.prefix = f"block{step}." if len(blocks) > 1 else ""
        names = [*(str(k) for k in indices), "addend"]
        result = block_sum(accumulator, [products[k] for k in indices], addend, names, trace)
        addend = unpack(result, output)
    trace.prefix = ""
    assert result is not None
    if accumulator.addend == "after":
        target = Target(output, "nearest_even")
        widened = ieee.convert(c, model.c, target) if model.c != output else c
        result = ieee.add(result, widened, output, nan=accumulator.nan_pattern)
        trace.flag("after_addend", result, RESULT)
    return Evaluation(result, trace)
