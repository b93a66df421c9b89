"""The hardware carrier: operations become the wires of a combinational module, in the Verilog of IEEE 1364-2001.

A node is the name of a wire or a constant; equal expressions share a wire. Bit vectors are declared with a range, also
vectors of one bit, so that every vector has bit selects; truth values are scalars.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.carriers.carrier import COMPARISONS, SIGNS, Carrier

_NAME = re.compile(r"\bn[0-9]+\b")
_TRUE, _FALSE = "1'b1", "1'b0"


class VerilogCarrier(Carrier):
    """Collects wires, and the Verilog functions that the wires' expressions call."""

    def __init__(self) -> None:
        self.functions: dict[str, str] = {}
        self._wires: dict[tuple[int, str], str] = {}

    def wire(self, width: int, expression: str) -> str:
        """The wire of an expression. `width` 0: a truth value."""
        key = width, expression
        if key not in self._wires:
            self._wires[key] = f"n{len(self._wires)}"
        return self._wires[key]

    def wires_of(self, results: Iterable[str], given: Collection[str] = ()) -> list[tuple[str, int, str]]:
        """The wires on which `results` depend, each with its width and expression, every wire after those in its
        expression. The wires `given`, and those on which only these depend, are left out."""
        needed, wires = set(results), list[tuple[str, int, str]]()
        for (width, expression), name in reversed(self._wires.items()):
            if name in needed and name not in given:
                needed.update(_NAME.findall(expression))
                wires.append((name, width, expression))
        return wires[::-1]

    @staticmethod
    def statements_of(wires: Iterable[tuple[str, int, str]], names: Mapping[str, str]) -> list[str]:
        """The declarations of wires. `names`: the names of some wires in the place of their own."""
        lines = (f"wire {range_of(width)}{name} = {expression};" for name, width, expression in wires)
        return [_NAME.sub(lambda wire: names.get(wire[0], wire[0]), line) for line in lines]

    @staticmethod
    def read_by(wires: Iterable[tuple[str, int, str]]) -> set[str]:
        """The wires that the expressions of wires read."""
        return {name for _, _, expression in wires for name in _NAME.findall(expression)}

    def lines_of_functions(self) -> list[str]:
        """The lines of the functions that wires call."""
        return [line for text in self.functions.values() for line in text.splitlines()]

    def _vector(self, value: str, width: int) -> str:
        """A vector of which parts can be selected: a constant becomes a wire."""
        return self.wire(width, value) if "'" in value else value

    def constant(self, value: int, width: int) -> str:
        return f"{width}'h{value:x}"

    def truth(self, value: bool) -> str:
        return _TRUE if value else _FALSE

    def binary(self, operation: str, left: str, right: str, width: int) -> str:
        return self.wire(width, f"{left} {SIGNS[operation]} {right}")

    def invert(self, value: str, width: int) -> str:
        return self.wire(width, f"~{value}")

    def negate(self, value: str, width: int) -> str:
        return self.wire(width, f"-{value}")

    def shift(self, operation: str, value: str, amount: str, width: int) -> str:
        if operation == "ashr":
            return self.wire(width, f"$signed({value}) >>> {amount}")
        return self.wire(width, f"{value} {'<<' if operation == 'shl' else '>>'} {amount}")

    def shift_constant(self, operation: str, value: str, amount: int, width: int) -> str:
        vector = self._vector(value, width)
        if operation == "shl":
            return self.wire(width, f"{{{vector}[{width - amount - 1}:0], {amount}'h0}}")
        filler = f"{amount}'h0" if operation == "lshr" else f"{{{amount}{{{vector}[{width - 1}]}}}}"
        return self.wire(width, f"{{{filler}, {vector}[{width - 1}:{amount}]}}")

    def extract(self, value: str, high: int, low: int, width: int) -> str:
        return self.wire(high - low + 1, f"{self._vector(value, width)}[{high}:{low}]")

    def concat(self, high: str, low: str, high_width: int, low_width: int) -> str:
        return self.wire(high_width + low_width, f"{{{high}, {low}}}")

    def zext(self, value: str, width: int, to: int) -> str:
        return self.wire(to, f"{{{to - width}'h0, {value}}}")

    def sext(self, value: str, width: int, to: int) -> str:
        vector = self._vector(value, width)
        return self.wire(to, f"{{{{{to - width}{{{vector}[{width - 1}]}}}}, {vector}}}")

    def compare(self, operation: str, left: str, right: str, width: int) -> str:
        if operation in ("slt", "sle"):
            left, right = f"$signed({left})", f"$signed({right})"
        return self.wire(0, f"{left} {COMPARISONS[operation]} {right}")

    def select(self, condition: str, then: str, otherwise: str, width: int) -> str:
        return self.wire(width, f"{condition} ? {then} : {otherwise}")

    def logic(self, operation: str, left: str, right: str) -> str:
        return self.wire(0, f"{left} {SIGNS[operation]} {right}")

    def logic_not(self, value: str) -> str:
        return self.wire(0, f"~{value}")

    def number(self, value: str, width: int) -> str:
        return self.wire(width, value if width == 1 else f"{{{width - 1}'h0, {value}}}")

    def nonzero(self, value: str, width: int) -> str:
        return self.wire(0, f"|{value}")

    def test_bit(self, value: str, index: int, width: int) -> str:
        return self.wire(0, f"{self._vector(value, width)}[{index}]")

    def leading_zeros(self, value: str, width: int, result_width: int) -> str:
        """The count of leading zeros, in logarithmic depth as of `TermCarrier.leading_zeros`, by functions."""
        name, whole = f"leading_zeros_{width}", 1 << result_width
        for half in (1 << place for place in range(result_width)):
            self.functions.setdefault(f"leading_zeros_in_{2 * half}", _leading_zeros(half))
        filled = f"{{value, {whole - width}'b1{'0' * (whole - width - 1)}}}"
        self.functions[name] = _function(name, result_width, width, f"leading_zeros_in_{whole}({filled})")
        return self.wire(result_width, f"{name}({value})")

    def sum_of(self, signs: Sequence[str], magnitudes: Sequence[str], widths: Sequence[int], width: int) -> str:
        """A wire for the sum, and wires for its signed terms."""
        terms = []
        for sign, magnitude, size in zip(signs, magnitudes, widths, strict=True):
            wide = Bits(self, size, magnitude).zext(width)
            terms.append(self.select(sign, (-wide).node, wide.node, width))
        return self.wire(width, " + ".join(terms) or self.constant(0, width))


def range_of(width: int) -> str:
    """The range in the declaration of a vector; empty for width 0, a truth value."""
    return f"[{width - 1}:0] " if width else ""


def _leading_zeros(half: int) -> str:
    """The text of a function that counts the leading zeros of a nonzero word with halves of `half` bits: of the upper
    half, or of the lower half if the upper half is zero."""
    name = f"leading_zeros_in_{2 * half}"
    if half == 1:
        return _function(name, 1, 2, "~value[1]")
    empty, inner = f"value[{2 * half - 1}:{half}] == 0", f"leading_zeros_in_{half}"
    rest = f"{empty} ? {inner}(value[{half - 1}:0]) : {inner}(value[{2 * half - 1}:{half}])"
    return _function(name, half.bit_length(), 2 * half, f"{{{empty}, {rest}}}")


def _function(name: str, result: int, width: int, expression: str) -> str:
    """The text of a function of one word of `width` bits, with a result of `result` bits."""
    return f"""function [{result - 1}:0] {name}(input [{width - 1}:0] value);
  {name} = {expression};
endfunction"""
