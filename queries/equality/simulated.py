"""Terms evaluated on many inputs at once, on the array carrier."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import reduce
from typing import Any

import numpy as np
import pysmt.operators as op
from pysmt.fnode import FNode

from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, choose, constant, select, truth
from mmaprobe.smtmodel.carriers.limbs import limbs_of
from mmaprobe.smtmodel.evaluate.programs import ARRAYS

Value = Bits | Bit

_OPERATIONS: dict[int, Callable[..., Value]] = {
    op.BV_NOT: lambda x: ~x, op.BV_NEG: lambda x: -x, op.BV_ADD: lambda x, y: x + y, op.BV_SUB: lambda x, y: x - y,
    op.BV_MUL: lambda x, y: x * y, op.BV_AND: lambda x, y: x & y, op.BV_OR: lambda x, y: x | y,
    op.BV_XOR: lambda x, y: x ^ y, op.BV_LSHL: Bits.shl, op.BV_LSHR: Bits.lshr, op.BV_ASHR: Bits.ashr,
    op.BV_CONCAT: Bits.concat, op.BV_ULT: Bits.ult, op.BV_ULE: Bits.ule, op.BV_SLT: Bits.slt, op.BV_SLE: Bits.sle,
    op.NOT: lambda x: ~x, op.AND: lambda *x: reduce(Bit.__and__, x), op.OR: lambda *x: reduce(Bit.__or__, x),
    op.IFF: lambda x, y: ~(x ^ y), op.IMPLIES: lambda x, y: ~x | y, op.EQUALS: Bits.eq,
}  # fmt: skip


def in_order(roots: Iterable[FNode], leaves: Collection[FNode] = ()) -> list[FNode]:
    """Terms and their subterms, each once and after its operands. The subterms of `leaves` are left out."""
    terms: dict[FNode, None] = {}
    waiting = list(roots)[::-1]
    while waiting:
        term = waiting[-1]
        missing = [] if term in terms or term in leaves else [one for one in term.args() if one not in terms]
        if missing:
            waiting += reversed(missing)
        else:
            terms[term] = None
            waiting.pop()
    return list(terms)


def simulate(terms: Iterable[FNode], values: dict[FNode, Value]) -> None:
    """Add the values of terms to the known `values`. Each term comes after its operands, unless its value, or that of
    its operands, is known."""
    with np.errstate(over="ignore"):
        for term in terms:
            if term not in values:
                values[term] = _value(term, [values[other] for other in term.args()])


def _value(term: FNode, operands: list[Any]) -> Value:
    kind = term.node_type()
    if kind == op.BV_CONSTANT:
        return constant(ARRAYS, term.constant_value(), term.bv_width())
    if kind == op.BOOL_CONSTANT:
        return truth(ARRAYS, term.constant_value())
    if kind == op.BV_EXTRACT:
        part: Bits = operands[0].extract(term.bv_extract_end(), term.bv_extract_start())
        return part
    if kind in (op.BV_ZEXT, op.BV_SEXT):
        width = operands[0].width + term.bv_extend_step()
        wide: Bits = operands[0].zext(width) if kind == op.BV_ZEXT else operands[0].sext(width)
        return wide
    if kind == op.ITE:
        return (choose if isinstance(operands[1], Bit) else select)(*operands)
    return _OPERATIONS[kind](*operands)


def lanes_of(value: Value, count: int) -> tuple[bytes, ...]:
    """A key that words share if their numbers are equal on all samples, whatever their widths: the lanes of each limb,
    without zero limbs at the top. A truth value is a number of one bit."""
    if isinstance(value, Bit):
        value = value.bits(1)
    limbs = [np.broadcast_to(np.asarray(limb.node, dtype=np.uint64), (count,)) for limb in limbs_of(value)]
    while len(limbs) > 1 and not limbs[-1].any():
        limbs.pop()
    return tuple(np.ascontiguousarray(limb).tobytes() for limb in limbs)
