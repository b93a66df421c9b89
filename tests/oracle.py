"""Reference implementation of matrix multiply-accumulate arithmetic in exact rationals.

Written from Xie et al. 2026, section 4 (Algorithms 1-11, Tables 2-7, section 4.2 on special values), and independent
of the package under test. Clarity over speed: every quantity is a `Fraction`, every rounding is one call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from math import ceil, floor
from typing import Any, Literal, get_args, get_type_hints

Table = Mapping[str, Any]
Bits = Sequence[int]
Scales = Bits | None


@dataclass(frozen=True)
class Format:
    """A floating-point format; `specials` says where NaN and infinity are, `padding` counts ignored low bits."""

    exponent_bits: int
    mantissa_bits: int
    bias: int
    specials: str  # ieee | all_ones (one NaN, no infinity) | fnuz (NaN in place of -0) | none
    padding: int = 0
    signed: bool = True
    subnormals: bool = True

    @property
    def emin(self) -> int:
        return 1 - self.bias if self.subnormals else -self.bias

    @property
    def body_bits(self) -> int:
        return self.exponent_bits + self.mantissa_bits

    @property
    def ones(self) -> int:
        return (1 << self.body_bits) - 1

    @property
    def largest(self) -> int:
        """Exponent and mantissa fields of the largest finite number."""
        if self.specials == "ieee":
            return self.ones - (1 << self.mantissa_bits)
        return self.ones - (self.specials == "all_ones")

    @property
    def nan(self) -> int:
        """The canonical NaN: positive and quiet, only the top mantissa bit set where there is a choice."""
        if self.specials == "none":
            raise ValueError("the format has no NaN")
        if self.specials == "ieee":
            return (self.largest + 1 | 1 << (self.mantissa_bits - 1)) << self.padding
        return self.ones if self.specials == "all_ones" else self.ones + 1


FORMATS: dict[str, Format] = {
    "f64": Format(11, 52, 1023, "ieee"),
    "f32": Format(8, 23, 127, "ieee"),
    "tf32": Format(8, 10, 127, "ieee", padding=13),
    "bf16": Format(8, 7, 127, "ieee"),
    "f16": Format(5, 10, 15, "ieee"),
    "e4m3": Format(4, 3, 7, "all_ones"),
    "e5m2": Format(5, 2, 15, "ieee"),
    "e4m3fnuz": Format(4, 3, 8, "fnuz"),
    "e5m2fnuz": Format(5, 2, 16, "fnuz"),
    "e3m2": Format(3, 2, 3, "none"),
    "e2m3": Format(2, 3, 1, "none"),
    "e2m1": Format(2, 1, 1, "none"),
    "ue8m0": Format(8, 0, 127, "all_ones", signed=False, subnormals=False),
    "ue4m3": Format(4, 3, 7, "all_ones", signed=False),
    "e8m13": Format(8, 13, 127, "ieee", padding=10),
}


@dataclass(frozen=True)
class Decoded:
    """A number as the datapath sees it: (-1)^sign * significand * 2^exponent, not normalised."""

    kind: str  # finite | inf | nan
    sign: bool
    significand: Fraction
    exponent: int

    @property
    def is_zero(self) -> bool:
        return self.kind == "finite" and not self.significand

    @property
    def value(self) -> Fraction:
        magnitude = self.significand * pow2(self.exponent)
        return -magnitude if self.sign else magnitude


NAN = Decoded("nan", False, Fraction(0), 0)
ZERO = Decoded("finite", False, Fraction(0), 0)
ONE = Decoded("finite", False, Fraction(1), 0)


def pow2(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def floor_log2(x: Fraction) -> int:
    """Largest e with 2^e <= x, for x > 0."""
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if pow2(guess) <= x else guess - 1


def round_magnitude(magnitude: Fraction, sign: bool, mode: str) -> int:
    """Round a magnitude to an integer; `sign` gives the direction that "up" and "down" take."""
    if mode == "nearest_even":
        return round(magnitude)
    if mode == "nearest_away":
        return floor(magnitude + Fraction(1, 2))
    if mode not in ("toward_zero", "up", "down"):
        raise ValueError(f"unknown rounding mode {mode!r}")
    outward = mode == "up" and not sign or mode == "down" and sign
    return ceil(magnitude) if outward else floor(magnitude)


def decode(fmt: str, bits: int) -> Decoded:
    """The number that a bit pattern stands for; padding bits are ignored, as is the sign of an unsigned format."""
    f = FORMATS[fmt]
    if not 0 <= bits < 1 << max(8 if not f.signed else 0, f.body_bits + f.signed + f.padding):
        raise ValueError(f"{bits:#x} is no {fmt} pattern")
    raw = bits >> f.padding
    sign, body = f.signed and bool(raw >> f.body_bits), raw & f.ones
    field, mantissa = body >> f.mantissa_bits, body & ((1 << f.mantissa_bits) - 1)
    if f.specials == "fnuz" and sign and body == 0 or f.specials == "all_ones" and body == f.ones:
        return NAN
    if f.specials == "ieee" and body > f.largest:
        return NAN if mantissa else Decoded("inf", sign, Fraction(0), 0)
    fraction = Fraction(mantissa, 1 << f.mantissa_bits)
    if f.subnormals and field == 0:
        return Decoded("finite", sign, fraction, f.emin)
    return Decoded("finite", sign, 1 + fraction, field - f.bias)


def infinity(fmt: str, sign: bool, nan: int | None = None) -> int:
    """Infinity, or what stands for it: NaN, or the largest number of a format that has neither."""
    f = FORMATS[fmt]
    if f.specials in ("fnuz", "all_ones"):
        return f.nan if nan is None else nan
    body = f.largest + (f.specials == "ieee")
    return (sign << f.body_bits | body) << f.padding


def encode(
    fmt: str, sign: bool, magnitude: Fraction, mode: str, overflow: str = "infinity", nan: int | None = None
) -> int:
    """Round to the format. `nan` is the pattern given where an infinite result has no pattern of its own."""
    f = FORMATS[fmt]
    if overflow not in ("infinity", "saturate", "ieee"):
        raise ValueError(f"unknown overflow rule {overflow!r}")
    if sign and magnitude and not f.signed:
        raise ValueError(f"{fmt} has no negative numbers")
    sign = sign and f.signed
    exponent = max(floor_log2(magnitude), f.emin) if magnitude else f.emin
    unit = pow2(exponent - f.mantissa_bits)
    n = round_magnitude(magnitude / unit, sign, mode)
    body = ((exponent - f.emin) << f.mantissa_bits) + n
    if not f.subnormals:
        body = max(body - 1, 0)
    if n * unit > decode(fmt, f.largest << f.padding).value:
        inward = mode == "toward_zero" or mode == "up" and sign or mode == "down" and not sign
        if overflow == "infinity" or overflow == "ieee" and not inward:
            return infinity(fmt, sign, nan)
        body = f.largest
    if f.specials == "fnuz" and body == 0:
        sign = False
    return (sign << f.body_bits | body) << f.padding


def multiply(x: Decoded, y: Decoded) -> Decoded:
    """Exact product: significands multiplied, exponents added (step 1 of Algorithms 7-11)."""
    sign = x.sign != y.sign
    if x.kind == "finite" and y.kind == "finite":
        return Decoded("finite", sign, x.significand * y.significand, x.exponent + y.exponent)
    if "nan" in (x.kind, y.kind) or x.is_zero or y.is_zero:
        return NAN
    return Decoded("inf", sign, Fraction(0), 0)


def special_sum(terms: Sequence[Decoded]) -> Decoded | None:
    """The sum where NaN or infinity decides it (section 4.2), else None."""
    signs = {t.sign for t in terms if t.kind == "inf"}
    if any(t.kind == "nan" for t in terms) or len(signs) == 2:
        return NAN
    return Decoded("inf", signs.pop(), Fraction(0), 0) if signs else None


def negative_zero(terms: Sequence[Decoded], mode: str) -> bool:
    """IEEE 754 section 6.3: the sign of a sum that is exactly zero."""
    return all(t.sign for t in terms) or mode == "down" and any(t.sign for t in terms)


def ieee_sum(fmt: str, mode: str, terms: Sequence[Decoded]) -> int:
    """The exact sum of the terms rounded once, by the IEEE 754 rules (Algorithm 3)."""
    special = special_sum(terms)
    if special is not None:
        return FORMATS[fmt].nan if special.kind == "nan" else infinity(fmt, special.sign)
    total = sum((t.value for t in terms), Fraction(0))
    sign = total < 0 if total else negative_zero(terms, mode)
    return encode(fmt, sign, abs(total), mode, "ieee")


def ieee_add(fmt: str, mode: str, a: int, b: int) -> int:
    return ieee_sum(fmt, mode, [decode(fmt, a), decode(fmt, b)])


def ieee_mul(fmt: str, mode: str, a: int, b: int) -> int:
    return ieee_sum(fmt, mode, [multiply(decode(fmt, a), decode(fmt, b))])


def ieee_fma(fmt: str, mode: str, a: int, b: int, c: int) -> int:
    return ieee_sum(fmt, mode, [multiply(decode(fmt, a), decode(fmt, b)), decode(fmt, c)])


def cut(value: Fraction, top: int | None, bits: int | None, mode: str) -> Fraction:
    """Keep `bits` fraction bits of a term aligned at exponent `top` (RZ_F, RD_F of Algorithms 7-11)."""
    if top is None or bits is None:
        return value
    unit = pow2(top - bits)
    rounded = round_magnitude(abs(value) / unit, value < 0, mode) * unit
    return -rounded if value < 0 else rounded


@dataclass(frozen=True)
class Model:
    """The parameters of one instruction, with their defaults, and the steps that they describe."""

    formats: Mapping[str, str]
    length: int
    operation: Literal["fused_dot", "exact_dot", "fma_chain", "add_mul"] = "fused_dot"
    block: int | None = None
    fraction_bits: int | str = "exact"
    carry_bits: int | str = "exact"
    product: str = "unnormalised"
    product_rounding: str = "nearest_even"
    product_overflow: int | None = None
    align_rounding: str = "toward_zero"
    addend: Literal["fused", "late", "after"] = "fused"
    late_fraction_bits: int | str = "exact"
    late_rounding: str = "down"
    late_small_addend: Literal["keep", "cut"] = "keep"
    block_order: str | Sequence[Bits] = "contiguous"
    grouping: Literal["none", "even_odd", "scale_blocks", "pairwise"] = "none"
    group: int = 1
    scale_format: str = "ue8m0"
    scale_block: int | None = None
    partials: Literal["unnormalised", "normalised"] = "unnormalised"
    exponent_floor: int | None = None
    floor_applies_to: Literal["zero_terms", "maximum"] = "zero_terms"
    output_rounding: str = "toward_zero"
    flush_inputs: bool = False
    flush_outputs: bool = False
    zero_sign: Literal["positive", "ieee"] = "positive"
    overflow: str = "infinity"
    nan: int | None = None

    def __post_init__(self) -> None:
        for name, values in CHOICES.items():
            if getattr(self, name) not in values:
                raise ValueError(f"unknown {name} {getattr(self, name)!r}")
        late, wraps = self.addend == "late", self.carry_bits != "exact"
        clash = late and (self.partials == "normalised" or self.grouping == "scale_blocks")
        clash |= wraps and (late or self.precision is None) or self.grouping == "even_odd" and not late
        if clash or (self.operation == "add_mul") != (self.grouping == "pairwise"):
            raise ValueError("parameters that do not go together")

    @property
    def precision(self) -> int | None:
        """Fraction bits kept when aligning, None where nothing is lost."""
        exact = self.operation != "fused_dot" or self.align_rounding == "sticky"
        return None if exact or self.fraction_bits == "exact" else int(self.fraction_bits)

    def ieee(self, rounding: str) -> Model:
        """The same output by the IEEE 754 rules: exact sum, one rounding (Algorithms 1 and 3)."""
        m = replace(self, operation="exact_dot", grouping="none", addend="fused", carry_bits="exact")
        return replace(m, output_rounding=rounding, zero_sign="ieee", overflow="ieee")

    def operand(self, name: str, bits: int) -> Decoded:
        """Decode an input; flushed subnormals become +0 (Algorithm 2, lines 1-3)."""
        x = decode(self.formats[name], bits)
        return ZERO if self.flush_inputs and x.kind == "finite" and 0 < x.significand < 1 else x

    def result(self, bits: int) -> Decoded:
        return decode(self.formats["d"], bits)

    def finish(self, total: Fraction, terms: Sequence[Decoded]) -> int:
        """Convert a finished sum to the output format (Table 2); Algorithm 1, line 5 for flushed results."""
        d = self.formats["d"]
        sign = total < 0 if total else self.zero_sign == "ieee" and negative_zero(terms, self.output_rounding)
        bits = encode(d, sign, abs(total), self.output_rounding, self.overflow, self.nan)
        x = self.result(bits)
        if self.flush_outputs and x.kind == "finite" and x.significand < 1:
            return encode(d, sign, Fraction(0), "toward_zero")
        return bits

    def product_term(self, x: Decoded, y: Decoded) -> Decoded:
        """One product as a term of the sum: exact, normalised or rounded; large ones may become infinite."""
        p = multiply(x, y)
        if p.kind == "finite" and p.significand:
            if self.product == "normalised":
                shift = floor_log2(p.significand)
                p = replace(p, significand=p.significand / pow2(shift), exponent=p.exponent + shift)
            elif self.product.startswith("rounded_"):
                fmt = self.product.removeprefix("rounded_")
                p = decode(fmt, encode(fmt, p.sign, abs(p.value), self.product_rounding, "ieee"))
            elif self.product != "unnormalised":
                raise ValueError(f"unknown product {self.product!r}")
        if self.product_overflow is not None and abs(p.value) >= pow2(self.product_overflow):
            return Decoded("inf", p.sign, Fraction(0), 0)
        return p

    def maximum(self, terms: Sequence[Decoded]) -> int | None:
        """The exponent that terms are aligned at; None where all are zero and no floor says otherwise."""
        exponents = [t.exponent for t in terms if not t.is_zero]
        floored = self.floor_applies_to == "maximum" or len(exponents) < len(terms)
        if self.exponent_floor is not None and floored:
            exponents.append(self.exponent_floor)
        return max(exponents, default=None)

    def fused_sum(self, terms: Sequence[Decoded]) -> Fraction:
        """Step 2 of Algorithm 7: align at the maximum exponent, keep F fraction bits, add; the sum may wrap."""
        top, bits = self.maximum(terms), self.precision
        total = sum((cut(t.value, top, bits, self.align_rounding) for t in terms), Fraction(0))
        if self.carry_bits == "exact" or top is None or bits is None:
            return total
        unit, half = pow2(top - bits), 1 << (bits + 1 + int(self.carry_bits))
        return ((int(total / unit) + half) % (2 * half) - half) * unit

    def late_sum(self, terms: Sequence[Decoded], addend: Decoded) -> Fraction:
        """Algorithms 10 and 11: the products' sum, by even and odd index if grouped, then the addend."""
        groups = [terms[0::2], terms[1::2]] if self.grouping == "even_odd" else [terms]
        top = max((e for e in map(self.maximum, groups) if e is not None), default=None)
        sums = (cut(self.fused_sum(g), top, self.precision, self.late_rounding) for g in groups)
        final = max((e for e in (top, self.maximum([addend])) if e is not None), default=None)
        f, f2 = self.precision, None if self.late_fraction_bits == "exact" else int(self.late_fraction_bits)
        total = cut(sum(sums, Fraction(0)), final, f2, self.late_rounding)
        small = final is not None and f is not None and addend.exponent < final - f - 1
        if small and self.late_small_addend == "cut":
            return total
        return total + cut(addend.value, final, f, self.late_rounding)

    def add(self, terms: Sequence[Decoded]) -> int:
        """Terms to a result in the output format (Algorithm 7; section 4.2)."""
        special = special_sum(terms)
        if special is None:
            return self.finish(self.fused_sum(terms), terms)
        d = self.formats["d"]
        if special.kind == "inf":
            return infinity(d, special.sign, self.nan)
        nvidia = {"f32": 0x7FFFFFFF, "tf32": 0x7FFFFFFF, "e8m13": 0x7FFFFFFF, "f16": 0x7FFF}
        return self.nan if self.nan is not None else nvidia[d] if d in nvidia else FORMATS[d].nan

    def step(self, terms: Sequence[Decoded], addend: Decoded) -> int:
        """One block: its products and the running addend."""
        every = [*terms, addend]
        finite = special_sum(every) is None
        if finite and self.addend == "late":
            return self.finish(self.late_sum(terms, addend), every)
        if finite and self.partials == "normalised":
            bits = self.add(every[:2])
            for term in every[2:]:
                bits = self.add([self.result(bits), term])
            return bits
        return self.add(every)

    def blocks(self) -> Sequence[Bits]:
        """The element indices that each step takes, in order."""
        indices = range(self.length)
        if self.block_order == "interleaved_pairs":
            return [[k for k in indices if k % 4 < 2], [k for k in indices if k % 4 >= 2]]
        if self.block_order == "contiguous":
            size = min(self.block or self.length, self.length)
            return [indices[k : k + size] for k in range(0, self.length, size)]
        if isinstance(self.block_order, str) or sorted(chain.from_iterable(self.block_order)) != [*indices]:
            raise ValueError(f"unknown block_order {self.block_order!r}")
        return self.block_order

    def scaled_group(self, pairs: Sequence[Decoded], scale: Decoded) -> Decoded:
        """Step 1 of Algorithm 9: the exact dot product of G elements, times the scale factors."""
        total = sum((t.value for t in pairs), Fraction(0))
        sign = total < 0 if total else negative_zero(pairs, "nearest_even")
        return multiply(special_sum(pairs) or Decoded("finite", sign, abs(total), 0), scale)

    def dot(self, pairs: Sequence[tuple[Decoded, Decoded]], scales: Sequence[Decoded], c: Decoded) -> int:
        """Algorithm 5: blocks in order, each result the addend of the next."""
        addend, bits = ZERO if self.addend == "after" else c, 0
        for block in self.blocks():
            if self.grouping == "scale_blocks":
                groups = [block[k : k + self.group] for k in range(0, len(block), self.group)]
                terms = [self.scaled_group([multiply(*pairs[k]) for k in g], scales[g[0]]) for g in groups]
            else:
                terms = [multiply(self.product_term(*pairs[k]), scales[k]) for k in block]
            bits = self.step(terms, addend)
            addend = self.result(bits)
        return self.ieee("nearest_even").add([addend, c]) if self.addend == "after" else bits

    def sequence(self, pairs: Sequence[tuple[Decoded, Decoded]], c: Decoded) -> int:
        """Algorithm 4; for add_mul Algorithm 2: products rounded, summed pairwise in groups, then added to c."""
        unit, bits = self.ieee(self.output_rounding), 0
        terms = [multiply(*pair) for pair in pairs]
        if self.operation == "add_mul":
            leaves = [self.result(unit.add([t])) for t in terms]
            groups = [leaves[k : k + self.group] for k in range(0, len(leaves), self.group)]
            while max(map(len, groups)) > 1:
                groups = [[self.result(unit.add(g[k : k + 2])) for k in range(0, len(g), 2)] for g in groups]
            terms = [g[0] for g in groups]
        for term in terms:
            bits = unit.add([term, c])
            c = self.result(bits)
        return bits


CHOICES = {name: get_args(hint) for name, hint in get_type_hints(Model).items() if "Literal" in str(hint)}


def evaluate(
    formats: Table, params: Table, a: Bits, b: Bits, c: int, scale_a: Scales = None, scale_b: Scales = None
) -> int:
    """The pattern of d = c + sum a_k * b_k; elements missing up to `length` are zero."""
    m = Model(**{"length": len(a), **params, "formats": formats})
    if not 0 < len(a) == len(b) <= m.length:
        raise ValueError("a and b need the same number of elements, at most the length")
    pairs = [(m.operand("a", x), m.operand("b", y)) for x, y in zip(a, b, strict=True)]
    pairs += [(ZERO, ZERO)] * (m.length - len(a))
    if m.operation in ("fma_chain", "add_mul"):
        return m.sequence(pairs, m.operand("c", c))
    scales = [ONE] * m.length
    for given in (scale_a, scale_b):
        if given is not None and m.scale_block is not None:
            factors = [decode(m.scale_format, given[k // m.scale_block]) for k in range(m.length)]
            scales = [multiply(x, y) for x, y in zip(scales, factors, strict=True)]
    return m.dot(pairs, scales, m.operand("c", c))
