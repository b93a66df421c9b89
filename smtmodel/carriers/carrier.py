"""The operations that a representation of bit vectors offers to the algebra."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

Node = Any  # a carrier's own representation of a value
Made = TypeVar("Made")

#: the signs of operations in C, and in Verilog
SIGNS = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
COMPARISONS = {"eq": "==", "ult": "<", "ule": "<=", "slt": "<", "sle": "<="}


class Carrier(ABC):
    """One representation of bit vectors. Nodes of `Bit` values and of `Bits` values may differ in kind.

    The methods are the whole contract. `width` is the width of the operands unless a method's text says otherwise.
    """

    @abstractmethod
    def constant(self, value: int, width: int) -> Node: ...

    @abstractmethod
    def truth(self, value: bool) -> Node: ...

    @abstractmethod
    def binary(self, operation: str, left: Node, right: Node, width: int) -> Node:
        """The result of an operation (add, sub, mul, and, or, xor), modulo 2^width."""

    @abstractmethod
    def invert(self, value: Node, width: int) -> Node: ...

    @abstractmethod
    def negate(self, value: Node, width: int) -> Node: ...

    @abstractmethod
    def shift(self, operation: str, value: Node, amount: Node, width: int) -> Node:
        """The value shifted (shl, lshr, ashr) by an amount, which has the width of the value."""

    @abstractmethod
    def shift_constant(self, operation: str, value: Node, amount: int, width: int) -> Node:
        """The value shifted by a static amount, 0 < amount < width."""

    def shift_right_jam(self, value: Node, amount: Node, width: int) -> Node | None:
        """The value shifted right, with the lowest bit set if a set bit is shifted out; None if the carrier has no such
        operation, and the algebra uses two shifts."""
        return None

    def formed(self, key: Hashable, function: Callable[..., Made], *inputs: Any) -> Made:
        """function(*inputs), for values of the algebra, terms, exponents and tuples of these. `key` identifies the
        function and everything that the function reads besides its inputs. A carrier may record the calls and make them
        again for other inputs (smtmodel/evaluate/programs.py)."""
        return function(*inputs)

    def undefined(self, width: int) -> Node | None:
        """A word of any value, independent of earlier words; None if the carrier has no such words, and the caller
        chooses a value."""
        return None

    def fuses(self, flush: bool) -> bool:
        """Whether the carrier has `multiply_and_add`. `flush`: in the form in which a result that is tiny after
        rounding with unbounded exponent (IEEE 754-2019, 7.5) becomes a zero of the result's sign."""
        return False

    def multiply_and_add(self, left: Node, right: Node, addend: Node, width: int, flush: bool) -> Node:
        """left * right + addend of patterns of binary32 or binary64 (by the width), rounded once to nearest, ties to
        even (IEEE 754-2019, 5.4.1); a NaN has any pattern. Only where the carrier `fuses`."""
        raise NotImplementedError

    def widened(self, value: Node) -> Node:
        """A pattern of binary32 as a pattern of binary64; a NaN has any pattern. Only where the carrier `fuses`."""
        raise NotImplementedError

    @abstractmethod
    def extract(self, value: Node, high: int, low: int, width: int) -> Node: ...

    @abstractmethod
    def concat(self, high: Node, low: Node, high_width: int, low_width: int) -> Node: ...

    @abstractmethod
    def zext(self, value: Node, width: int, to: int) -> Node: ...

    @abstractmethod
    def sext(self, value: Node, width: int, to: int) -> Node: ...

    @abstractmethod
    def compare(self, operation: str, left: Node, right: Node, width: int) -> Node:
        """The truth node of a comparison: eq, ult, ule, slt or sle."""

    @abstractmethod
    def select(self, condition: Node, then: Node, otherwise: Node, width: int) -> Node: ...

    @abstractmethod
    def logic(self, operation: str, left: Node, right: Node) -> Node:
        """The truth node of an operation (and, or, xor) on truth nodes."""

    @abstractmethod
    def logic_not(self, value: Node) -> Node: ...

    def number(self, value: Node, width: int) -> Node:
        """A truth node as a vector of `width` bits: 1 for true, 0 for false."""
        return self.select(value, self.constant(1, width), self.constant(0, width), width)

    def nonzero(self, value: Node, width: int) -> Node:
        """The truth node of whether a vector has a set bit."""
        return self.logic_not(self.compare("eq", value, self.constant(0, width), width))

    def uniform(self, value: Node) -> bool | None:
        """The value of a truth node that is known to be the same on every lane; else None."""
        return None

    def stacked(self, values: Sequence[Node]) -> Node | None:
        """Vectors of one width as one value, on all of which an operation works at once; `row` takes the results apart.
        None if stacking saves no time."""
        return None

    def row(self, value: Node, index: int, width: int) -> Node:
        """The vector at an index of several stacked vectors, or the truth at an index of several (width 1). Only for
        carriers that stack."""
        raise NotImplementedError

    @abstractmethod
    def test_bit(self, value: Node, index: int, width: int) -> Node: ...

    @abstractmethod
    def leading_zeros(self, value: Node, width: int, result_width: int) -> Node:
        """The number of zero bits above the highest set bit; `width` for zero."""

    def max_of(self, values: Sequence[Node], width: int) -> Node:
        """The largest of unsigned numbers, by a balanced tree of comparisons."""
        layer = list(values)
        while len(layer) > 1:
            pairs = zip(layer[::2], layer[1::2], strict=False)
            larger = [self.select(self.compare("ult", x, y, width), y, x, width) for x, y in pairs]
            layer = larger + layer[2 * len(larger) :]
        return layer[0]

    @abstractmethod
    def sum_of(self, signs: Sequence[Node], magnitudes: Sequence[Node], widths: Sequence[int], width: int) -> Node:
        """The sum of signed magnitudes (of `widths`, each at most `width`) in two's complement, modulo 2^width. Signs
        are truth nodes."""
