"""The algebra of fixed-width bit vectors over which every operation of the datapath is written once.

`Bits` and `Bit` are values with operators; a `Carrier` lowers each operation to its own representation (solver
terms, NumPy arrays, generated code). Constants stay Python integers, and operations on constants are folded here, so
that a term fixed to zero disappears from a query before a solver gets the query.

Widths are static. Operands of `+ - * & | ^` and comparisons must have one width; `zext`, `sext` and `truncate`
change it. Shifts take an amount of any width; shifting by the width or more gives zero (or copies of the sign).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce

from mmaprobe.smtmodel.carriers.carrier import Carrier, Node


class WidthError(ValueError):
    """Operands whose widths do not fit the operation: a defect of the program, not of its input."""


def _mask(width: int) -> int:
    return (1 << width) - 1


def _signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) else value


_FOLD = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor,
}  # fmt: skip


class Bit:
    """A truth value: a constant, or a node of a carrier."""

    __slots__ = ("_node", "carrier", "value")

    def __init__(self, carrier: Carrier, node: Node = None, value: bool | None = None) -> None:
        self.carrier = carrier
        self._node = node
        self.value = value

    @property
    def node(self) -> Node:
        if self._node is None:
            self._node = self.carrier.truth(bool(self.value))
        return self._node

    def _logic(self, operation: str, other: Bit) -> Bit:
        return Bit(self.carrier, self.carrier.logic(operation, self.node, other.node))

    def __and__(self, other: Bit) -> Bit:
        if self.value is not None:
            return other if self.value else self
        if other.value is not None:
            return self if other.value else other
        return self._logic("and", other)

    def __or__(self, other: Bit) -> Bit:
        if self.value is not None:
            return self if self.value else other
        if other.value is not None:
            return other if other.value else self
        return self._logic("or", other)

    def __xor__(self, other: Bit) -> Bit:
        if self.value is not None:
            return ~other if self.value else other
        if other.value is not None:
            return ~self if other.value else self
        return self._logic("xor", other)

    def __invert__(self) -> Bit:
        if self.value is not None:
            return Bit(self.carrier, value=not self.value)
        return Bit(self.carrier, self.carrier.logic_not(self.node))

    def folded(self) -> Bit:
        """A constant if the carrier knows that the truth value is the same on every lane, else this truth value.
        Operations on constants fold."""
        known = self.carrier.uniform(self.node) if self.value is None else None
        return self if known is None else Bit(self.carrier, value=known)

    def row(self, index: int) -> Bit:
        """The truth value at an index of several stacked ones."""
        return self if self.value is not None else Bit(self.carrier, self.carrier.row(self.node, index, 1))

    def bits(self, width: int = 1) -> Bits:
        """The vector 1 for true and 0 for false."""
        if self.value is not None:
            return constant(self.carrier, int(self.value), width)
        return Bits(self.carrier, width, self.carrier.number(self.node, width))


class Bits:
    """A bit vector of static width: a constant, or a node of a carrier."""

    __slots__ = ("_node", "carrier", "value", "width")

    def __init__(self, carrier: Carrier, width: int, node: Node = None, value: int | None = None) -> None:
        if width <= 0:
            raise WidthError(f"width {width}")
        self.carrier = carrier
        self.width = width
        self._node = node
        self.value = value

    @property
    def node(self) -> Node:
        if self._node is None:
            assert self.value is not None
            self._node = self.carrier.constant(self.value, self.width)
        return self._node

    def _new(self, node: Node, width: int | None = None) -> Bits:
        return Bits(self.carrier, width or self.width, node)

    def _constant(self, value: int, width: int | None = None) -> Bits:
        width = width or self.width
        return Bits(self.carrier, width, None, value & ((1 << width) - 1))

    def _binary(self, operation: str, other: Bits) -> Bits:
        if self.width != other.width:
            raise WidthError(f"{operation}: {self.width} and {other.width} bits")
        if self.value is not None and other.value is not None:
            return self._constant(_FOLD[operation](self.value, other.value))
        return self._new(self.carrier.binary(operation, self.node, other.node, self.width))

    def __add__(self, other: Bits) -> Bits:
        if self.value == 0:
            return other
        return self if other.value == 0 else self._binary("add", other)

    def __sub__(self, other: Bits) -> Bits:
        return self if other.value == 0 else self._binary("sub", other)

    def __mul__(self, other: Bits) -> Bits:
        for one in (self, other):
            if one.value == 0:
                return one
        if other.value == 1:
            return self
        return other if self.value == 1 else self._binary("mul", other)

    def __and__(self, other: Bits) -> Bits:
        for one, two in ((self, other), (other, self)):
            if one.value == 0:
                return one
            if one.value == _mask(self.width):
                return two
        return self._binary("and", other)

    def __or__(self, other: Bits) -> Bits:
        if self.value == 0:
            return other
        return self if other.value == 0 else self._binary("or", other)

    def __xor__(self, other: Bits) -> Bits:
        if self.value == 0:
            return other
        return self if other.value == 0 else self._binary("xor", other)

    def __invert__(self) -> Bits:
        if self.value is not None:
            return self._constant(~self.value)
        return self._new(self.carrier.invert(self.node, self.width))

    def __neg__(self) -> Bits:
        if self.value is not None:
            return self._constant(-self.value)
        return self._new(self.carrier.negate(self.node, self.width))

    def _shift(self, operation: str, amount: int | Bits) -> Bits:
        if isinstance(amount, Bits) and amount.value is not None:
            amount = amount.value
        if amount == 0 or self.value == 0:
            return self
        if isinstance(amount, int):
            amount = min(amount, self.width - 1) if operation == "ashr" else amount
            if amount >= self.width:
                return self._constant(0)
            if self.value is not None:
                source = _signed(self.value, self.width) if operation == "ashr" else self.value
                return self._constant(source << amount if operation == "shl" else source >> amount)
            return self._new(self.carrier.shift_constant(operation, self.node, amount, self.width))
        if amount.width > self.width:
            limit = self.width if self.width <= _mask(self.width) else _mask(self.width)
            amount = minimum(amount, amount._constant(limit)).truncate(self.width)
        amount = amount.zext(self.width)
        return self._new(self.carrier.shift(operation, self.node, amount.node, self.width))

    def shl(self, amount: int | Bits) -> Bits:
        return self._shift("shl", amount)

    def lshr(self, amount: int | Bits) -> Bits:
        return self._shift("lshr", amount)

    def ashr(self, amount: int | Bits) -> Bits:
        return self._shift("ashr", amount)

    def extract(self, high: int, low: int) -> Bits:
        """Bits `high` down to `low`, both included; bit 0 is the lowest."""
        if not 0 <= low <= high < self.width:
            raise WidthError(f"bits {high}..{low} of {self.width}")
        if high - low + 1 == self.width:
            return self
        if self.value is not None:
            return self._constant(self.value >> low, high - low + 1)
        return self._new(self.carrier.extract(self.node, high, low, self.width), high - low + 1)

    def top(self, count: int) -> Bits:
        return self.extract(self.width - 1, self.width - count)

    def truncate(self, width: int) -> Bits:
        """The low `width` bits."""
        return self.extract(width - 1, 0)

    def concat(self, low: Bits) -> Bits:
        """This vector above `low`."""
        width = self.width + low.width
        if self.value is not None and low.value is not None:
            return self._constant(self.value << low.width | low.value, width)
        if self.value == 0:
            return low.zext(width)
        return self._new(self.carrier.concat(self.node, low.node, self.width, low.width), width)

    def pad(self, zeros: int) -> Bits:
        """The vector with `zeros` zero bits appended below: an exact multiplication by 2^zeros."""
        return self.concat(self._constant(0, zeros)) if zeros else self

    def zext(self, to: int) -> Bits:
        return self._extend("zext", to)

    def sext(self, to: int) -> Bits:
        return self._extend("sext", to)

    def _extend(self, operation: str, to: int) -> Bits:
        if to < self.width:
            raise WidthError(f"{operation} of {self.width} bits to {to}")
        if to == self.width:
            return self
        if self.value is not None:
            return self._constant(_signed(self.value, self.width) if operation == "sext" else self.value, to)
        lower = self.carrier.sext if operation == "sext" else self.carrier.zext
        return self._new(lower(self.node, self.width, to), to)

    def _compare(self, operation: str, other: Bits) -> Bit:
        if self.width != other.width:
            raise WidthError(f"{operation}: {self.width} and {other.width} bits")
        if self.value is not None and other.value is not None:
            left, right = self.value, other.value
            if operation in ("slt", "sle"):
                left, right = _signed(left, self.width), _signed(right, self.width)
            truth = (
                left == right if operation == "eq" else left < right if operation in ("ult", "slt") else left <= right
            )
            return Bit(self.carrier, value=truth)
        return Bit(self.carrier, self.carrier.compare(operation, self.node, other.node, self.width))

    def eq(self, other: Bits) -> Bit:
        return self._compare("eq", other)

    def ult(self, other: Bits) -> Bit:
        return self._compare("ult", other)

    def ule(self, other: Bits) -> Bit:
        return self._compare("ule", other)

    def slt(self, other: Bits) -> Bit:
        return self._compare("slt", other)

    def sle(self, other: Bits) -> Bit:
        return self._compare("sle", other)

    def equals(self, value: int) -> Bit:
        """Whether the vector equals a constant, modulo 2^width."""
        return self.eq(self._constant(value))

    def any(self) -> Bit:
        """Whether the vector is not zero."""
        if self.value is not None:
            return Bit(self.carrier, value=self.value != 0)
        return Bit(self.carrier, self.carrier.nonzero(self.node, self.width))

    def bit(self, index: int) -> Bit:
        if not 0 <= index < self.width:
            raise WidthError(f"bit {index} of {self.width}")
        if self.value is not None:
            return Bit(self.carrier, value=bool(self.value >> index & 1))
        return Bit(self.carrier, self.carrier.test_bit(self.node, index, self.width))

    def msb(self) -> Bit:
        return self.bit(self.width - 1)

    def row(self, index: int) -> Bits:
        """The vector at an index of several stacked vectors."""
        return self if self.value is not None else self._new(self.carrier.row(self.node, index, self.width))

    def leading_zeros(self) -> Bits:
        """The number of zeros above the highest set bit (`width` for the vector 0), in as few bits as hold `width`."""
        result_width = self.width.bit_length()
        if self.value is not None:
            return self._constant(self.width - self.value.bit_length(), result_width)
        return self._new(self.carrier.leading_zeros(self.node, self.width, result_width), result_width)


def constant(carrier: Carrier, value: int, width: int) -> Bits:
    return Bits(carrier, width, None, value & ((1 << width) - 1))


def truth(carrier: Carrier, value: bool) -> Bit:
    return Bit(carrier, None, value)


def select(condition: Bit, then: Bits, otherwise: Bits) -> Bits:
    """`then` where the condition holds, else `otherwise`."""
    if then.width != otherwise.width:
        raise WidthError(f"select: {then.width} and {otherwise.width} bits")
    if condition.value is not None:
        return then if condition.value else otherwise
    if then is otherwise or (then.value is not None and then.value == otherwise.value):
        return then
    carrier = condition.carrier
    return Bits(carrier, then.width, carrier.select(condition.node, then.node, otherwise.node, then.width))


def choose(condition: Bit, then: Bit, otherwise: Bit) -> Bit:
    """`select` for truth values."""
    return (condition & then) | (~condition & otherwise)


def stacked(values: Sequence[Bits]) -> Bits | None:
    """Several vectors of one width as one value, so that one operation works on all. None if one of them is constant,
    or the carrier does not stack."""
    if any(value.value is not None for value in values):
        return None
    node = values[0].carrier.stacked([value.node for value in values])
    return None if node is None else values[0]._new(node)


def any_of(bits: Sequence[Bit]) -> Bit:
    return reduce(operator.or_, bits)


def all_of(bits: Sequence[Bit]) -> Bit:
    return reduce(operator.and_, bits)


def minimum(left: Bits, right: Bits) -> Bits:
    """The smaller of two unsigned numbers of one width."""
    return select(left.ult(right), left, right)


def product(left: Bits, right: Bits) -> Bits:
    """The exact product of unsigned numbers; its width is the sum of the widths."""
    width = left.width + right.width
    return left.zext(width) * right.zext(width)


def shift_right_jam(value: Bits, amount: Bits) -> Bits:
    """The vector shifted right, with the lowest bit set if a set bit is shifted out, so that rounding can tell inexact
    values."""
    if value.value is None and amount.value is None and amount.width <= value.width:
        jammed = value.carrier.shift_right_jam(value.node, amount.zext(value.width).node, value.width)
        if jammed is not None:
            return Bits(value.carrier, value.width, jammed)
    shifted = value.lshr(amount)
    lost = ~shifted.shl(amount).eq(value)
    return shifted | lost.bits(value.width)


def max_of(values: Sequence[Bits]) -> Bits:
    """The largest of unsigned numbers of one width."""
    known = [value for value in values if value.value is not None]
    rest = [value for value in values if value.value is None]
    if known:
        largest = max(known, key=lambda value: value.value or 0)
        if largest.value or not rest:
            rest.append(largest)
    if len(rest) == 1:
        return rest[0]
    carrier, width = rest[0].carrier, rest[0].width
    return Bits(carrier, width, carrier.max_of([value.node for value in rest], width))


def sum_of(carrier: Carrier, signs: Sequence[Bit], magnitudes: Sequence[Bits], width: int) -> Bits:
    """The sum of signed magnitudes in two's complement, modulo 2^width."""
    terms = [(sign, magnitude) for sign, magnitude in zip(signs, magnitudes, strict=True) if magnitude.value != 0]
    if not terms:
        return constant(carrier, 0, width)
    if all(sign.value is not None and magnitude.value is not None for sign, magnitude in terms):
        total = sum(-(m.value or 0) if s.value else (m.value or 0) for s, m in terms)
        return constant(carrier, total, width)
    signs, magnitudes, widths = zip(*((sign.node, term.node, term.width) for sign, term in terms), strict=True)
    return Bits(carrier, width, carrier.sum_of(signs, magnitudes, widths, width))
