"""The compiling carrier: operations become statements of straight-line C over one lane.

Each statement belongs to the operands on which it depends: the row operands (a), the column operands (b), or both and
the addend. Row and column statements move out of the inner loop, so that an element is decoded once for each row or
column and not once for each output. Bit vectors of up to 32 bits are uint32_t, up to 64 uint64_t, wider ones limbs
(limbs.py); truth values are masks of all ones or zero, so that the C compiler can turn a loop over lanes into vector
instructions. Every value has bounds, which follow from the statement that makes it: statements that the bounds show to
be needless (a mask of a product that fits, a test of a shift by less than the width) are left out, and sums are formed
in the narrowest lanes that hold them. IEEE additions and products are the processor's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mmaprobe.smtmodel.base.libraries import EACH, IS_X86
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.carriers.carrier import COMPARISONS, SIGNS, Carrier
from mmaprobe.smtmodel.carriers.limbs import LIMB, WideCarrier

ROW, COLUMN, INNER = 1, 2, 3  # the loop to which a statement belongs; ROW | COLUMN is INNER
UNKNOWN = 1 << 2 * LIMB  # above every value: no bound is known
ALL = 0xFFFFFFFF
FLUSHES = IS_X86  # whether the processor can flush results that are tiny after rounding (Arm: before rounding)

#: functions that the statements call; leading zeros of a nonzero lane are counted by a vector instruction where the
#: processor has such an instruction
PRELUDE = (
    """#include <stdint.h>
#include <string.h>
/* rounding to nearest, subnormals kept: another library may have left the thread otherwise */
#if defined(__SSE2__)
#include <xmmintrin.h>
#define PLAIN 0x1f80
#define FLUSHING 0x9f80
static unsigned ieee_environment(unsigned mode) {
  unsigned kept = _mm_getcsr();
  _mm_setcsr(mode);
  return kept;
}
static void restore_environment(unsigned kept) { _mm_setcsr(kept); }
#elif defined(__aarch64__)
#define PLAIN 0
static unsigned ieee_environment(unsigned long mode) {
  unsigned long kept;
  __asm__ volatile("mrs %0, fpcr\\n\\tmsr fpcr, %1" : "=r"(kept) : "r"(mode) : "memory");
  return (unsigned)kept;
}
static void restore_environment(unsigned kept) {
  __asm__ volatile("msr fpcr, %0" : : "r"((unsigned long)kept) : "memory");
}
#else
#define PLAIN 0
static unsigned ieee_environment(unsigned mode) { return mode; }
static void restore_environment(unsigned kept) { (void)kept; }
#endif
"""
    + EACH
    + """#if defined(__AVX512CD__)
static inline uint32_t zeros32(uint32_t x) { return __builtin_clz(x); }
static inline uint64_t zeros64(uint64_t x) { return __builtin_clzll(x); }
#else
static inline uint32_t zeros32(uint32_t x) {
  uint32_t n = 0, empty;
  for (int step = 16; step; step >>= 1) {
    empty = -(uint32_t)((x >> (32 - step)) == 0);
    x ^= (x ^ (x << step)) & empty;
    n += step & empty;
  }
  return n;
}
static inline uint64_t zeros64(uint64_t x) {
  uint64_t n = 0, empty;
  for (int step = 32; step; step >>= 1) {
    empty = -(uint64_t)((x >> (64 - step)) == 0);
    x ^= (x ^ (x << step)) & empty;
    n += step & empty;
  }
  return n;
}
#endif
static inline uint32_t fma32(uint32_t x, uint32_t y, uint32_t z) {
  float a, b, c, d;
  uint32_t result;
  memcpy(&a, &x, 4), memcpy(&b, &y, 4), memcpy(&c, &z, 4);
  d = __builtin_fmaf(a, b, c);
  memcpy(&result, &d, 4);
  return result;
}
static inline uint64_t fma64(uint64_t x, uint64_t y, uint64_t z) {
  double a, b, c, d;
  uint64_t result;
  memcpy(&a, &x, 8), memcpy(&b, &y, 8), memcpy(&c, &z, 8);
  d = __builtin_fma(a, b, c);
  memcpy(&result, &d, 8);
  return result;
}
static inline uint64_t widened(uint32_t x) {
  float a;
  double d;
  uint64_t result;
  memcpy(&a, &x, 4);
  d = a;
  memcpy(&result, &d, 8);
  return result;
}
"""
)


@dataclass(frozen=True)
class CodeValue:
    """A value of the generated code. `text`: a variable or a literal; `place`: the operands on which the value depends
    (ROW, COLUMN, INNER; 0: none), hence the loop in which it is computed; `kind`: the C type; `most` and `least`:
    bounds of the value as an unsigned number."""

    text: str
    place: int
    kind: str
    most: int
    least: int = 0

    def declared(self, text: str) -> str:
        """The statement that gives the variable the value of an expression."""
        return f"const {self.kind} {self.text} = {text};"


class SignedSum(NamedTuple):
    """A sum of signed terms. `whole`: the sum in two's complement of a whole lane; `most`: the largest possible
    magnitude; `width`: the number of bits of the sum's value, which hold every possible sum."""

    whole: CodeValue
    most: int
    width: int


@dataclass
class CodeWords(Carrier):
    """Bit vectors of at most 64 bits. Statements are collected, equal ones only once. The keys of the tables are
    variables."""

    statements: list[tuple[CodeValue, str]] = field(default_factory=list)
    known: dict[str, CodeValue] = field(default_factory=dict)
    #: the operation and operands of values that are exact results (without a cut to a width), and of masks
    made: dict[str, tuple[str, CodeValue, CodeValue]] = field(default_factory=dict)
    #: the operands of a difference, and the number of bits of the difference
    differences: dict[str, tuple[CodeValue, CodeValue, int]] = field(default_factory=dict)
    #: the values of which a variable holds the largest
    largest: dict[str, Sequence[CodeValue]] = field(default_factory=dict)
    sums: dict[str, SignedSum] = field(default_factory=dict)
    #: the operand of a count of leading zeros, and its width
    zeros_of: dict[str, tuple[CodeValue, int]] = field(default_factory=dict)
    flushing: bool = FLUSHES  # whether the processor's additions and products can flush tiny results
    flushes: bool | None = None  # whether this code flushes tiny results; None: no operation has decided this

    def _emit(self, text: str, kind: str, most: int, *operands: CodeValue) -> CodeValue:
        place = 0
        for operand in operands:
            place |= operand.place
        key = f"{kind}:{text}"
        if key not in self.known:
            name = CodeValue(f"v{len(self.statements)}", place, kind, most)
            self.statements.append((name, text))
            self.known[key] = name
        return self.known[key]

    def _mask(self, text: str, *operands: CodeValue) -> CodeValue:
        """A variable for a truth value."""
        return self._emit(text, "uint32_t", ALL, *operands)

    def _trim(self, text: str, width: int, most: int, *operands: CodeValue) -> CodeValue:
        """A variable for the value of an expression, at most `most`, cut to `width` bits."""
        kind, largest = word_type(width), (1 << width) - 1
        if most <= largest:
            return self._emit(f"({kind})({text})", kind, most, *operands)
        if width in (32, 64):
            return self._emit(f"({kind})({text})", kind, largest, *operands)
        return self._emit(f"({kind})({text}) & {_literal(largest, kind)}", kind, largest, *operands)

    def _widen(self, value: CodeValue, kind: str) -> CodeValue:
        if value.kind == kind:
            return value
        wide = self._emit(f"({kind}){value.text}", kind, value.most, value)
        self.made[wide.text] = ("widen", value, value)
        return wide

    def _wide_mask(self, condition: CodeValue, kind: str) -> CodeValue:
        """A truth value as a mask of another type, by sign extension."""
        if kind == "uint32_t":
            return condition
        return self._emit(f"({kind})({_SIGNED[kind]})(int32_t){condition.text}", kind, (1 << LIMB) - 1, condition)

    def constant(self, value: int, width: int) -> CodeValue:
        kind = word_type(width)
        return CodeValue(_literal(value, kind), 0, kind, value, value)

    def truth(self, value: bool) -> CodeValue:
        return CodeValue("0xffffffffu" if value else "0u", 0, "uint32_t", ALL if value else 0)

    def binary(self, operation: str, left: CodeValue, right: CodeValue, width: int) -> CodeValue:
        text = f"{left.text} {SIGNS[operation]} {right.text}"
        if operation in ("or", "xor"):
            return self._emit(text, word_type(width), _ones(max(left.most, right.most)), left, right)
        if operation == "and":
            return self._emit(text, word_type(width), min(left.most, right.most), left, right)
        most = {"add": left.most + right.most, "mul": left.most * right.most, "sub": UNKNOWN}[operation]
        if operation == "add" and most < 1 << width and not right.place and (parts := self._hoisted("add", left)):
            outer, rest = parts
            return self._kept("add", rest, self.binary("add", outer, right, width), width)
        if most < 1 << width:
            return self._kept(operation, left, right, width)
        if left in self._operands("min", right) or right in self.largest.get(left.text, ()):
            return self._emit(text, word_type(width), left.most, left, right)  # never below zero
        result = self._trim(text, width, most, left, right)
        if operation == "sub":
            self.differences[result.text] = (left, right, width)
        return result

    def _kept(self, operation: str, left: CodeValue, right: CodeValue, width: int) -> CodeValue:
        """A sum or product that fits `width` bits."""
        most = left.most + right.most if operation == "add" else left.most * right.most
        result = self._trim(f"{left.text} {SIGNS[operation]} {right.text}", width, most, left, right)
        self.made[result.text] = (operation, left, right)
        return result

    def _hoisted(self, operation: str, value: CodeValue) -> tuple[CodeValue, CodeValue] | None:
        """The row operand and the column operand of the operation of a value in the inner loop, so that work on one
        operand is done once for each row or column. None if another operation, or operands of the inner loop, made the
        value."""
        made, left, right = self.made.get(value.text, ("", value, value))
        if made != operation or value.place != INNER or INNER in (left.place, right.place):
            return None
        return (left, right) if left.place == ROW else (right, left)

    def invert(self, value: CodeValue, width: int) -> CodeValue:
        return self._emit(
            f"{value.text} ^ {_literal((1 << width) - 1, value.kind)}", value.kind, (1 << width) - 1, value
        )

    def negate(self, value: CodeValue, width: int) -> CodeValue:
        result = self._trim(f"0 - {value.text}", width, UNKNOWN, value)
        if value.text in self.sums and self.sums[value.text].width == width:
            self.made[result.text] = ("negate", value, value)
        return result

    def shift(self, operation: str, value: CodeValue, amount: CodeValue, width: int) -> CodeValue:
        kind, bits = word_type(width), _bits(width)
        if operation == "ashr":
            value = self.sext(value, width, bits)
            last = self._capped(amount, bits - 1, kind)
            signed = f"({kind})(({_SIGNED[kind]}){value.text} >> {last.text})"
            return self._trim(signed, width, UNKNOWN, value, last)
        if operation == "lshr" and value.most < 1 << (bits - 1):  # a shift by the lane's width less one gives 0
            last = self._capped(amount, bits - 1, kind)
            shifted = self._emit(f"{value.text} >> {last.text}", kind, value.most, value, last)
            self.made[shifted.text] = (operation, value, last)
            return shifted
        if operation == "shl" and amount.most < width and value.most << amount.most < 1 << width:
            factors, places = self._hoisted("mul", value), self._hoisted("add", amount)
            if factors and places:
                left, right = (self.shift("shl", x, n, width) for x, n in zip(factors, places, strict=True))
                return self._kept("mul", left, right, width)
        symbol, inside = "<<" if operation == "shl" else ">>", amount.most < bits
        safe = amount if inside else self._emit(f"{amount.text} & {bits - 1}", kind, bits - 1, amount)
        if operation == "shl" and self._shifts_out_zeros(value, amount, width):
            return self._emit(f"{value.text} << {safe.text}", kind, (1 << width) - 1, value, safe)
        largest = value.most if operation == "lshr" else (1 << bits) - 1
        if operation == "shl" and amount.most < bits:
            largest = min(largest, value.most << amount.most)
        kept = self._emit(f"({kind})({value.text} {symbol} {safe.text})", kind, largest, value, safe)
        if not inside:
            within = self._emit(f"({kind})-({kind})({amount.text} < {bits})", kind, (1 << bits) - 1, amount)
            kept = self._emit(f"{kept.text} & {within.text}", kind, largest, kept, within)
        return self._trim(kept.text, width, largest, kept) if largest >= 1 << width else kept

    def _operands(self, operation: str, value: CodeValue) -> tuple[CodeValue, ...]:
        """The operands of an operation if this operation made a value, else none."""
        made, *operands = self.made.get(value.text, ("", value))
        return tuple(operands) if made == operation else ()

    def _shifts_out_zeros(self, value: CodeValue, amount: CodeValue, width: int) -> bool:
        """Whether a shift by an amount shifts only zeros out: the amount is at most the value's number of leading
        zeros."""
        (amount, *_) = self._operands("widen", amount) or (amount,)
        counts = [count.text for count in (amount, *self._operands("min", amount)) if count.text in self.zeros_of]
        return any(counted == value and bits <= width for counted, bits in map(self.zeros_of.__getitem__, counts))

    def _capped(self, amount: CodeValue, last: int, kind: str) -> CodeValue:
        """The smaller of an amount and `last`. The amount may be a negative difference, cut to its width: if every
        negative difference is at least `last` both in its width and in the whole lane, the lane is compared, and the
        mask for the width is left out."""
        if amount.most <= last:
            return amount
        if amount.text in self.differences and amount.kind == kind:
            left, right, width = self.differences[amount.text]
            if left.most < 1 << width and right.most <= (1 << width) - last:
                amount = self._emit(f"{left.text} - {right.text}", kind, UNKNOWN, left, right)
        return self._emit(f"{amount.text} < {last} ? {amount.text} : {last}", kind, last, amount)

    def shift_right_jam(self, value: CodeValue, amount: CodeValue, width: int) -> CodeValue | None:
        """The value shifted right with a sticky lowest bit; None if the value may have the top bit of the lane. A shift
        by the lane's width minus one shifts out every bit of any other value, so larger amounts are capped at this
        number."""
        kind, bits = word_type(width), _bits(width)
        if value.most >= 1 << (bits - 1):
            return None
        last = self._capped(amount, bits - 1, kind)
        shifted = self._emit(f"{value.text} >> {last.text}", kind, value.most, value, last)
        lost = f"({kind})(({kind})({shifted.text} << {last.text}) != {value.text})"
        most = min(_ones(value.most), (1 << width) - 1) | 1
        return self._emit(f"{shifted.text} | {lost}", kind, most, shifted, last, value)

    def fuses(self, flush: bool) -> bool:
        """Whether `multiply_and_add` is possible with this `flush`: flushing is a mode of the whole code, set by the
        first `multiply_and_add`."""
        return (self.flushing or not flush) and self.flushes in (None, flush)

    def multiply_and_add(
        self, left: CodeValue, right: CodeValue, addend: CodeValue, width: int, flush: bool
    ) -> CodeValue:
        self.flushes = flush
        text = f"fma{width}({left.text}, {right.text}, {addend.text})"
        return self._emit(text, word_type(width), (1 << width) - 1, left, right, addend)

    def widened(self, value: CodeValue) -> CodeValue:
        return self._emit(f"widened({value.text})", "uint64_t", (1 << LIMB) - 1, value)

    def shift_constant(self, operation: str, value: CodeValue, amount: int, width: int) -> CodeValue:
        if operation == "shl":
            if value.most << amount < 1 << width and (parts := self._hoisted("mul", value)):
                outer, rest = parts
                return self._kept("mul", self.shift_constant("shl", outer, amount, width), rest, width)
            return self._trim(f"{value.text} << {amount}", width, value.most << amount, value)
        if operation == "lshr":
            return self._emit(f"{value.text} >> {amount}", word_type(width), value.most >> amount, value)
        return self.shift(operation, value, self.constant(amount, width), width)

    def extract(self, value: CodeValue, high: int, low: int, width: int) -> CodeValue:
        to, most = high - low + 1, value.most >> low
        if not low and most < 1 << to and word_type(to) == value.kind:
            return value
        text = f"{value.text} >> {low}" if low else value.text
        return self._trim(text, to, most, value)

    def concat(self, high: CodeValue, low: CodeValue, high_width: int, low_width: int) -> CodeValue:
        kind = word_type(high_width + low_width)
        above, below = self._widen(high, kind), self._widen(low, kind)
        most = (high.most << low_width) + low.most
        if not low.most:
            return self.shift_constant("shl", above, low_width, high_width + low_width)
        if not high.most:
            return below
        return self._emit(f"({above.text} << {low_width}) | {below.text}", kind, most, above, below)

    def zext(self, value: CodeValue, width: int, to: int) -> CodeValue:
        return self._widen(value, word_type(to))

    def sext(self, value: CodeValue, width: int, to: int) -> CodeValue:
        kind = word_type(to)
        wide, sign = self._widen(value, kind), 1 << (width - 1)
        if value.most < sign:
            return wide
        bit = _literal(sign, kind)
        return self._trim(f"({wide.text} ^ {bit}) - {bit}", to, UNKNOWN, wide)

    def compare(self, operation: str, left: CodeValue, right: CodeValue, width: int) -> CodeValue:
        if operation in ("slt", "sle"):
            flip = self.constant(1 << (width - 1), width)
            left, right = (self.binary("xor", side, flip, width) for side in (left, right))
        if operation == "ult" and right.most <= left.least:
            return self.truth(False)
        mask = self._mask(f"-(uint32_t)({left.text} {COMPARISONS[operation]} {right.text})", left, right)
        self.made[mask.text] = (operation, left, right)
        return mask

    def select(self, condition: CodeValue, then: CodeValue, otherwise: CodeValue, width: int) -> CodeValue:
        kind = word_type(width)
        if not condition.most:
            return otherwise
        if self.made.get(condition.text) == ("ult", then, otherwise):
            most = min(then.most, otherwise.most)
            value = self._emit(
                f"{then.text} < {otherwise.text} ? {then.text} : {otherwise.text}", kind, most, then, otherwise
            )
            self.made[value.text] = ("min", then, otherwise)
            return value
        mask = self._wide_mask(condition, kind)
        made = self.made.get(condition.text), self.made.get(then.text)
        if made == (("sign", otherwise, otherwise), ("negate", otherwise, otherwise)):  # the magnitude of a sum
            whole, most, _ = self.sums[otherwise.text]
            return self._emit(f"({whole.text} ^ {mask.text}) - {mask.text}", kind, most, whole, mask)
        text, most = (
            f"{otherwise.text} ^ (({then.text} ^ {otherwise.text}) & {mask.text})",
            max(then.most, otherwise.most),
        )
        if not otherwise.most:
            text = f"{then.text} & {mask.text}"
        return self._emit(text, kind, most, mask, then, otherwise)

    def logic(self, operation: str, left: CodeValue, right: CodeValue) -> CodeValue:
        mask = self._mask(f"{left.text} {SIGNS[operation]} {right.text}", left, right)
        if operation == "xor":
            self.made[mask.text] = (operation, left, right)
        return mask

    def logic_not(self, value: CodeValue) -> CodeValue:
        return self._mask(f"~{value.text}", value)

    def test_bit(self, value: CodeValue, index: int, width: int) -> CodeValue:
        if value.most < 1 << index:
            return self.truth(False)
        if index == width - 1 and value.text in self.sums:
            whole = self.sums[value.text].whole
            mask = self._mask(f"-(uint32_t)({whole.text} >> {_bits(width) - 1})", whole)
            self.made[mask.text] = ("sign", value, value)
            return mask
        if index == width - 1:  # the highest bit needs no mask for bits above it
            return self._mask(f"-(uint32_t)({value.text} >> {index})", value)
        return self._mask(f"-(uint32_t)(({value.text} >> {index}) & 1)", value)

    def leading_zeros(self, value: CodeValue, width: int, result_width: int) -> CodeValue:
        """The count of leading zeros. A set bit right below the vector, in the same lane, makes the count right for the
        vector 0 too."""
        kind, bits = word_type(width), _bits(width)
        text = f"zeros{bits}"
        if width < bits:
            spare = bits - width
            filled = self._emit(
                f"({value.text} << {spare}) | {_literal(1 << (spare - 1), kind)}", kind, (1 << bits) - 1, value
            )
            zeros = self._emit(f"(uint32_t){text}({filled.text})", "uint32_t", width, filled)
        else:
            filled = self._emit(f"{value.text} | {_literal(1, kind)}", kind, (1 << bits) - 1, value)
            count = f"(uint32_t){text}({filled.text}) + (uint32_t)({value.text} == 0)"
            zeros = self._emit(count, "uint32_t", width, filled, value)
        self.zeros_of[zeros.text] = value, width
        return self._widen(zeros, word_type(result_width))

    def max_of(self, values: Sequence[CodeValue], width: int) -> CodeValue:
        largest = values[0]
        for value in values[1:]:
            text = f"{largest.text} > {value.text} ? {largest.text} : {value.text}"
            largest = self._emit(text, word_type(width), max(largest.most, value.most), largest, value)
        self.largest[largest.text] = values
        return largest

    def sum_of(
        self, signs: Sequence[CodeValue], magnitudes: Sequence[CodeValue], widths: Sequence[int], width: int
    ) -> CodeValue:
        """The sum of signed magnitudes. Runs of terms whose sum fits 31 bits and a sign are summed in lanes of 32
        bits."""
        kind = word_type(width)
        parts, run, room = list[CodeValue](), list[tuple[CodeValue, CodeValue]](), 0
        terms = list(zip(signs, magnitudes, strict=True))
        for mask, magnitude in terms:
            if magnitude.most < 1 << 31:
                if room + magnitude.most >= 1 << 31:
                    parts.append(self._signed_sum(run, "uint32_t"))
                    run, room = [], 0
                run.append((mask, self._narrow(magnitude)))
                room += magnitude.most
        if run:
            parts.append(self._signed_sum(run, "uint32_t"))
        wide = [(mask, magnitude) for mask, magnitude in terms if magnitude.most >= 1 << 31]
        if wide:
            parts.append(self._signed_sum(wide, kind))
        total = self._extended(parts[0], kind)
        for part in parts[1:]:
            other = self._extended(part, kind)
            total = self._emit(f"{total.text} + {other.text}", kind, UNKNOWN, total, other)
        value = self._trim(total.text, width, UNKNOWN, total)
        most = sum(magnitude.most for _, magnitude in terms)
        if most < 1 << (width - 1):
            self.sums[value.text] = SignedSum(total, most, width)
        return value

    def _narrow(self, value: CodeValue) -> CodeValue:
        return (
            value if value.kind == "uint32_t" else self._emit(f"(uint32_t){value.text}", "uint32_t", value.most, value)
        )

    def _extended(self, value: CodeValue, kind: str) -> CodeValue:
        """A number in two's complement, extended to the lane type `kind`."""
        if value.kind == kind:
            return value
        return self._emit(f"({kind})({_SIGNED[kind]})({_SIGNED[value.kind]}){value.text}", kind, UNKNOWN, value)

    def _signed(self, magnitude: CodeValue, sign: CodeValue, kind: str) -> CodeValue:
        """A signed magnitude, in two's complement of a whole lane."""
        mask, wide = self._wide_mask(sign, kind), self._widen(magnitude, kind)
        return self._emit(f"({wide.text} ^ {mask.text}) - {mask.text}", kind, UNKNOWN, wide, mask)

    def _signed_product(self, magnitude: CodeValue, sign: CodeValue, kind: str) -> CodeValue | None:
        """`_signed` for the product of a row and a column value, perhaps shifted right; None for other values. The
        signs are applied to the factors. A negative product is shifted as its ones' complement, whose bits are the
        inverted bits of the magnitude."""
        made, product, places = self.made.get(magnitude.text, ("", magnitude, magnitude))
        moved = made == "lshr"
        factors, masks = self._hoisted("mul", product if moved else magnitude), self._hoisted("xor", sign)
        if kind != "uint32_t" or not factors or not masks:
            return None
        left, right = (self._signed(x, mask, kind) for x, mask in zip(factors, masks, strict=True))
        value = self._emit(f"{left.text} * {right.text}", kind, UNKNOWN, left, right)
        if not moved:
            return value
        negative = self._emit(f"(uint32_t)((int32_t){value.text} >> 31)", kind, ALL, value)
        turned = self._emit(f"{value.text} + {negative.text}", kind, UNKNOWN, value, negative)
        text = f"(uint32_t)((int32_t){turned.text} >> {places.text}) - {negative.text}"
        return self._emit(text, kind, UNKNOWN, turned, places, negative)

    def _signed_sum(self, terms: Sequence[tuple[CodeValue, CodeValue]], kind: str) -> CodeValue:
        """The sum of terms, each a sign and a magnitude, in two's complement of a whole lane."""
        total = None
        for sign, magnitude in terms:
            flipped = self._signed_product(magnitude, sign, kind) or self._signed(magnitude, sign, kind)
            total = (
                flipped
                if total is None
                else self._emit(f"{total.text} + {flipped.text}", kind, UNKNOWN, total, flipped)
            )
        assert total is not None
        return total


class CodeCarrier(WideCarrier):
    """Bit vectors of any width. `words` holds the statements; `flushing`: whether additions can flush tiny results."""

    words: CodeWords

    def __init__(self, flushing: bool = FLUSHES) -> None:
        super().__init__(CodeWords(flushing=flushing))

    def input(self, text: str, width: int, place: int) -> Bits:
        """An operand in the C variable `text` of the surrounding loops. `place`: ROW, COLUMN or INNER."""
        return Bits(self, width, CodeValue(text, place, word_type(width), (1 << width) - 1))

    @property
    def environment(self) -> str:
        """The mode of the processor that the code needs, an argument of `ieee_environment`."""
        return "FLUSHING" if self.words.flushes else "PLAIN"


_SIGNED = {"uint32_t": "int32_t", "uint64_t": "int64_t"}


def _ones(most: int) -> int:
    """The largest number with as many bits as `most`."""
    return (1 << most.bit_length()) - 1


def _bits(width: int) -> int:
    """The width of the lane for a bit vector of `width` bits."""
    assert width <= LIMB
    return 32 if width <= 32 else 64


def word_type(width: int) -> str:
    """The C type of bit vectors of a width of at most 64."""
    return f"uint{_bits(width)}_t"


def _literal(value: int, kind: str) -> str:
    return f"{value}u" if kind == "uint32_t" else f"{value}ull"
