"""An evaluator of pysmt terms (QF_BV with Booleans) on many assignments at once, written from the SMT-LIB semantics.

It shares nothing with the array carrier: bit vectors are object arrays of Python integers, one lane for each
assignment, truth values are arrays of bool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pysmt.operators as op
from numpy.typing import ArrayLike, NDArray
from pysmt.fnode import FNode

Lanes = NDArray[Any]


def objects(values: ArrayLike) -> Lanes:
    """An array of Python integers."""
    return values.astype(object) if isinstance(values, np.ndarray) else np.array(values, dtype=object)


def _mask(width: int) -> int:
    return (1 << width) - 1


def _signed(value: Lanes, width: int) -> Lanes:
    return np.where(value >> (width - 1) != 0, value - (1 << width), value)


def _shift(move: Callable[[Lanes, Lanes], Lanes], value: Lanes, amount: Lanes, width: int, beyond: Any) -> Lanes:
    """`move` by amounts below the width, else what is `beyond` it."""
    out = amount >= width
    return np.where(out, beyond, move(value, np.where(out, 0, amount))) & _mask(width)


def _ashr(value: Lanes, amount: Lanes, width: int) -> Lanes:
    signed = _signed(value, width)
    return _shift(np.right_shift, signed, amount, width, np.where(signed < 0, -1, 0))


#: operations on vectors of one width, which come to be reduced modulo 2^width; then the width
_MODULAR: dict[int, Callable[..., Lanes]] = {
    op.BV_ADD: lambda x, y: x + y,
    op.BV_SUB: lambda x, y: x - y,
    op.BV_MUL: lambda x, y: x * y,
    op.BV_NEG: lambda x: -x,
    op.BV_NOT: lambda x: ~x,
    op.BV_AND: lambda x, y: x & y,
    op.BV_OR: lambda x, y: x | y,
    op.BV_XOR: lambda x, y: x ^ y,
}
_SHIFTS: dict[int, Callable[[Lanes, Lanes, int], Lanes]] = {
    op.BV_LSHL: lambda x, y, width: _shift(np.left_shift, x, y, width, 0),
    op.BV_LSHR: lambda x, y, width: _shift(np.right_shift, x, y, width, 0),
    op.BV_ASHR: _ashr,
}
_TRUTHS: dict[int, Callable[..., Lanes]] = {
    op.AND: lambda *xs: np.logical_and.reduce(xs),
    op.OR: lambda *xs: np.logical_or.reduce(xs),
    op.NOT: np.logical_not,
    op.IFF: np.equal,
    op.EQUALS: lambda x, y: np.asarray(x == y, dtype=bool),
    op.BV_ULT: lambda x, y: np.asarray(x < y, dtype=bool),
    op.BV_ULE: lambda x, y: np.asarray(x <= y, dtype=bool),
    op.ITE: np.where,
}
_SIGNED: dict[int, Callable[..., Lanes]] = {
    op.BV_SLT: lambda x, y: np.asarray(x < y, dtype=bool),
    op.BV_SLE: lambda x, y: np.asarray(x <= y, dtype=bool),
}


def _apply(node: FNode, arguments: Sequence[Lanes]) -> Lanes:
    kind = node.node_type()
    if kind in _TRUTHS:
        return _TRUTHS[kind](*arguments)
    width = node.arg(0).bv_width()  # of the first operand
    if kind in _MODULAR:
        return _MODULAR[kind](*arguments) & _mask(width)
    if kind in _SHIFTS:
        return _SHIFTS[kind](arguments[0], arguments[1], width)
    if kind in _SIGNED:
        return _SIGNED[kind](*(_signed(value, width) for value in arguments))
    value = arguments[0]
    if kind == op.BV_CONCAT:
        joined: Lanes = value << node.arg(1).bv_width() | arguments[1]
        return joined
    if kind == op.BV_EXTRACT:
        low, high = node.bv_extract_start(), node.bv_extract_end()
        cut: Lanes = value >> low & _mask(high - low + 1)
        return cut
    if kind == op.BV_ZEXT:
        return value
    if kind == op.BV_SEXT:
        return _signed(value, width) & _mask(width + node.bv_extend_step())
    raise NotImplementedError(op.op_to_str(kind))


def _leaf(node: FNode, values: Mapping[str, Lanes], count: int) -> Lanes:
    if node.is_symbol():
        lanes = values[node.symbol_name()]
        if node.get_type().is_bool_type():
            return lanes.astype(bool)
        if max(lanes) > _mask(node.bv_width()) or min(lanes) < 0:
            raise ValueError(f"{node.symbol_name()} is wider than {node.bv_width()} bits")
        return lanes
    if node.is_bool_constant():
        return np.full(count, node.constant_value(), dtype=bool)
    return np.full(count, int(node.constant_value()), dtype=object)


def _order(roots: Sequence[FNode]) -> list[FNode]:
    """Every node once, operands first."""
    done: dict[FNode, None] = {}
    stack = list(roots)
    while stack:
        missing = [child for child in stack[-1].args() if child not in done]
        if missing and stack[-1] not in done:
            stack.extend(missing)
        else:
            done.setdefault(stack.pop())
    return list(done)


def evaluate_terms(roots: Sequence[FNode], values: Mapping[str, ArrayLike]) -> list[Lanes]:
    """The values of some terms where symbols, by name, have the values given (arrays of one length)."""
    inputs = {name: objects(lanes) for name, lanes in values.items()}
    count = len(next(iter(inputs.values())))
    order = _order(roots)
    last_use = {child: position for position, node in enumerate(order) for child in node.args()}
    memo: dict[FNode, Lanes] = {}
    kept = set(roots)
    for position, node in enumerate(order):
        children = node.args()
        memo[node] = _apply(node, [memo[child] for child in children]) if children else _leaf(node, inputs, count)
        for child in set(children):
            if last_use[child] == position and child not in kept:
                del memo[child]
    return [memo[root] for root in roots]


def evaluate_term(root: FNode, values: Mapping[str, ArrayLike]) -> Lanes:
    """The value of one term; see `evaluate_terms`."""
    return evaluate_terms([root], values)[0]
