"""Weights: the signed powers of two by which a device multiplies its terms.

A unit only adds products. It subtracts a[k] * b[k] by adding the product of b[k] and -1 * a[k], which is exact; it
subtracts c by adding -1 * c. Powers of two are scale factors of a term.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mmaprobe.queries.compare.steady import AskDevice
from mmaprobe.queries.order.mask_traces import Power
from mmaprobe.queries.order.probe import power_pattern, weights_of
from mmaprobe.queries.order.tree import Leaf
from mmaprobe.smtmodel.arithmetic.display import finite_value
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.nodes import Literal, Node, Product, Round, Scale
from mmaprobe.smtmodel.nodes.round import Rounding

Weights = Mapping[Leaf, Power]  # by leaf; leaves without a weight are not multiplied
ADDED: Power = (1, 0)
FACTORS = FORMATS["ue8m0"]  # the format of powers of two


def weights_of_device(ask: AskDevice, asked: Signature) -> Weights:
    """The weights of a device's terms. A weight is the device's result for an input whose only nonzero term is 1. A
    device with scale factors is not asked: its terms have no weights."""
    if asked.scale is not None:
        return {}
    leaves: list[Leaf] = list(range(asked.length))
    leaves += ["c"] if asked.addend else []
    ones = ask([Vector(asked, _alone(leaf, asked), id=f"1 at {leaf}") for leaf in leaves])
    values = [None if d is None else finite_value(d, asked.d) for d in ones]
    return weights_of(dict(zip(leaves, values, strict=True)))


def _alone(leaf: Leaf, asked: Signature) -> Operands[int]:
    one = [power_pattern(fmt, 1, 0) for fmt in (asked.a, asked.b, asked.c)]
    a, b = (tuple(x if k == leaf else 0 for k in range(asked.length)) for x in one[:2])
    return Operands(a, b, one[2] if leaf == "c" else 0)


def shift_of(leaves: Sequence[Leaf], weights: Weights) -> int | None:
    """The exponent of the power of two that multiplies each of some terms; None if the terms have different powers."""
    shifts = {weights.get(leaf, ADDED)[1] for leaf in leaves}
    return shifts.pop() if len(shifts) == 1 else None


def negated_number(number: Node, fmt: Format) -> Node:
    """A number with its sign changed."""
    inner = number.term if isinstance(number, Round) and number.rounding == Rounding(fmt) else None
    minus_one = Literal(power_pattern(fmt, -1, 0), fmt)
    if isinstance(inner, Product) and inner.left == minus_one:
        return inner.right
    return Round(Product(minus_one, number), Rounding(fmt))


def times_power_of_two(term: Node, places: int) -> Node:
    """A term times 2^places."""
    if not places:
        return term
    return Scale(term, power_of_two(places), power_of_two(0))


def power_of_two(exponent: int) -> Literal:
    return Literal(power_pattern(FACTORS, 1, exponent), FACTORS)
