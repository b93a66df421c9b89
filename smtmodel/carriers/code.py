"""The compiling carrier: operations become statements of straight-line C over one lane.

Each statement is filed under what it depends on: the row operands (a), the column operands (b), or both and the addend.
Row and column statements move out of the inner loop, so that an element is decoded once for each row or column and not
once for each output. Widths up to 32 are uint32_t, up to 64 uint64_t, up to 128 unsigned __int128; truths are masks of
all ones or zero, so that the C compiler can turn a loop over lanes into vector instructions. Wider vectors are beyond
this carrier (`TooWideError`): the array carrier serves them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from smtmodel.algebra import Bit, Bits
from smtmodel.carriers.carrier import Carrier

ROW, COLUMN, INNER = 1, 2, 3  # where a statement belongs; row | column is inner
LIMIT = 128


class TooWideError(Exception):
    """A vector too wide for the machine types of the generated code."""


@dataclass(frozen=True)
class Name:
    """A value of the generated code: an expression that is a name or a literal, where it is known, and its type."""

    text: str
    place: int
    kind: str


@dataclass
class CodeCarrier(Carrier):
    """Collects statements; equal ones are written once."""

    statements: list[tuple[Name, str]] = field(default_factory=list)
    known: dict[str, Name] = field(default_factory=dict)

    def input(self, text: str, width: int, place: int) -> Bits:
        """An operand that the surrounding loops provide under a name."""
        return Bits(self, width, Name(text, place, _type(width)))

    def _emit(self, text: str, kind: str, *operands: Name) -> Name:
        place = 0
        for operand in operands:
            place |= operand.place
        key = f"{kind}:{text}"
        if key not in self.known:
            name = Name(f"v{len(self.statements)}", place, kind)
            self.statements.append((name, text))
            self.known[key] = name
        return self.known[key]

    def _trim(self, text: str, width: int, *operands: Name) -> Name:
        kind = _type(width)
        if width in (32, 64, 128):
            return self._emit(f"({kind})({text})", kind, *operands)
        return self._emit(f"({kind})({text}) & {_literal((1 << width) - 1, kind)}", kind, *operands)

    def _widen(self, value: Name, kind: str) -> Name:
        return value if value.kind == kind else self._emit(f"({kind}){value.text}", kind, value)

    def _mask(self, condition: Name, kind: str) -> Name:
        """A truth as a mask of another type: sign-extended."""
        if kind == "uint32_t":
            return condition
        return self._emit(f"({kind})({_SIGNED[kind]})(int32_t){condition.text}", kind, condition)

    def constant(self, value: int, width: int) -> Name:
        kind = _type(width)
        return Name(_literal(value, kind), 0, kind)

    def truth(self, value: bool) -> Name:
        return Name("0xffffffffu" if value else "0u", 0, "uint32_t")

    def binary(self, operation: str, left: Name, right: Name, width: int) -> Name:
        symbol = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}[operation]
        text = f"{left.text} {symbol} {right.text}"
        if symbol in "&|^":
            return self._emit(text, _type(width), left, right)
        return self._trim(text, width, left, right)

    def invert(self, value: Name, width: int) -> Name:
        return self._trim(f"~{value.text}", width, value)

    def negate(self, value: Name, width: int) -> Name:
        return self._trim(f"0 - {value.text}", width, value)

    def shift(self, operation: str, value: Name, amount: Name, width: int) -> Name:
        kind, bits = _type(width), _bits(width)
        if operation == "ashr":
            value = self.sext(value, width, bits)
            last = self._emit(f"{amount.text} < {bits - 1} ? {amount.text} : {bits - 1}", kind, amount)
            return self._trim(f"({kind})(({_SIGNED[kind]}){value.text} >> {last.text})", width, value, last)
        symbol = "<<" if operation == "shl" else ">>"
        safe = self._emit(f"{amount.text} & {bits - 1}", kind, amount)
        moved = self._emit(f"({kind})({value.text} {symbol} {safe.text})", kind, value, safe)
        inside = self._emit(f"({kind})-({kind})({amount.text} < {bits})", kind, amount)
        kept = self._emit(f"{moved.text} & {inside.text}", kind, moved, inside)
        return self._trim(kept.text, width, kept) if operation == "shl" else kept

    def shift_constant(self, operation: str, value: Name, amount: int, width: int) -> Name:
        if operation == "shl":
            return self._trim(f"{value.text} << {amount}", width, value)
        if operation == "lshr":
            return self._emit(f"{value.text} >> {amount}", _type(width), value)
        return self.shift(operation, value, self.constant(amount, width), width)

    def extract(self, value: Name, high: int, low: int, width: int) -> Name:
        text = f"{value.text} >> {low}" if low else value.text
        to = high - low + 1
        if high == width - 1 and _type(to) == value.kind:
            return self._emit(text, value.kind, value)
        return self._trim(text, to, value)

    def concat(self, high: Name, low: Name, high_width: int, low_width: int) -> Name:
        kind = _type(high_width + low_width)
        above, below = self._widen(high, kind), self._widen(low, kind)
        if low.text in ("0u", "0ull"):
            return self._emit(f"{above.text} << {low_width}", kind, above)
        return self._emit(f"({above.text} << {low_width}) | {below.text}", kind, above, below)

    def zext(self, value: Name, width: int, to: int) -> Name:
        return self._widen(value, _type(to))

    def sext(self, value: Name, width: int, to: int) -> Name:
        kind = _type(to)
        wide, sign = self._widen(value, kind), _literal(1 << (width - 1), kind)
        return self._trim(f"({wide.text} ^ {sign}) - {sign}", to, wide)

    def compare(self, operation: str, left: Name, right: Name, width: int) -> Name:
        if operation in ("slt", "sle"):
            flip = self.constant(1 << (width - 1), width)
            left, right = (self.binary("xor", side, flip, width) for side in (left, right))
        symbol = {"eq": "==", "ult": "<", "slt": "<", "ule": "<=", "sle": "<="}[operation]
        return self._emit(f"-(uint32_t)({left.text} {symbol} {right.text})", "uint32_t", left, right)

    def select(self, condition: Name, then: Name, otherwise: Name, width: int) -> Name:
        kind = _type(width)
        mask = self._mask(condition, kind)
        text = f"{otherwise.text} ^ (({then.text} ^ {otherwise.text}) & {mask.text})"
        return self._emit(text, kind, mask, then, otherwise)

    def logic(self, operation: str, left: Name, right: Name) -> Name:
        symbol = {"and": "&", "or": "|", "xor": "^"}[operation]
        return self._emit(f"{left.text} {symbol} {right.text}", "uint32_t", left, right)

    def logic_not(self, value: Name) -> Name:
        return self._emit(f"~{value.text}", "uint32_t", value)

    def test_bit(self, value: Name, index: int, width: int) -> Name:
        return self._emit(f"-(uint32_t)(({value.text} >> {index}) & 1)", "uint32_t", value)

    def leading_zeros(self, value: Name, width: int, result_width: int) -> Name:
        """Binary search by selects, which vectorises everywhere."""
        kind, step = _type(width), 1 << ((width - 1).bit_length() - 1) if width > 1 else 0
        span = max(1, 2 * step)
        rest = value if span == width else self._emit(f"{value.text} << {span - width}", kind, value)
        if span > _bits(width):
            raise TooWideError(f"{width} bits")
        zero = self._emit(f"-(uint32_t)({value.text} == 0)", "uint32_t", value)
        count = Name("0u", 0, "uint32_t")
        while step:
            empty = self._emit(f"-(uint32_t)(({rest.text} >> {span - step}) == 0)", "uint32_t", rest)
            wide = self._mask(empty, kind)
            moved = f"{rest.text} ^ (({rest.text} ^ ({rest.text} << {step})) & {wide.text})"
            rest = self._emit(moved, kind, rest, wide)
            count = self._emit(f"{count.text} + ({empty.text} & {step}u)", "uint32_t", count, empty)
            step //= 2
        return self._emit(f"({count.text} & ~{zero.text}) | ({width}u & {zero.text})", "uint32_t", count, zero)

    def max_of(self, values: Sequence[Name], width: int) -> Name:
        largest = values[0]
        for value in values[1:]:
            text = f"{largest.text} > {value.text} ? {largest.text} : {value.text}"
            largest = self._emit(text, _type(width), largest, value)
        return largest

    def sum_of(self, signs: Sequence[Bit], magnitudes: Sequence[Bits], width: int) -> Name:
        kind = _type(width)
        total = self.constant(0, width)
        for sign, magnitude in zip(signs, magnitudes, strict=True):
            mask, wide = self._mask(sign.node, kind), self._widen(magnitude.node, kind)
            flipped = self._emit(f"({wide.text} ^ {mask.text}) - {mask.text}", kind, wide, mask)
            total = self._emit(f"{total.text} + {flipped.text}", kind, total, flipped)
        return self._trim(total.text, width, total)


_SIGNED = {"uint32_t": "int32_t", "uint64_t": "int64_t", "unsigned __int128": "__int128"}


def _bits(width: int) -> int:
    """The machine width that holds a vector."""
    if width > LIMIT:
        raise TooWideError(f"{width} bits")
    return 32 if width <= 32 else 64 if width <= 64 else 128


def _type(width: int) -> str:
    return {32: "uint32_t", 64: "uint64_t", 128: "unsigned __int128"}[_bits(width)]


def _literal(value: int, kind: str) -> str:
    if kind == "uint32_t":
        return f"{value}u"
    if kind == "uint64_t":
        return f"{value}ull"
    return f"(((unsigned __int128){value >> 64}ull << 64) | {value & (1 << 64) - 1}ull)"
