"""Matrix multiply-accumulate arithmetic in exact rationals, written from Xie et al. 2026, section 4, alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import chain
from math import ceil, floor, trunc
from typing import Any, Literal, get_args, get_type_hints

from gmpy2 import mpq

Table = Mapping[str, Any]
Bits = Sequence[int]
Scales = Bits | None
ROUND: dict[str, Callable[[mpq], int]] = {
    "nearest_even": round,
    "nearest_away": lambda x: trunc(x + mpq(1 if x > 0 else -1, 2)),
    "toward_zero": trunc,
    "up": ceil,
    "down": floor,
    "to_odd": lambda x: trunc(x) if x == trunc(x) or trunc(x) % 2 else trunc(x) + (1 if x > 0 else -1),
}
#: what is added to a magnitude's share x of a unit, in parts of 2^-N of it, before it is truncated: IEEE P3109's 4.7.4
DRAWS: dict[str, Callable[[mpq, int, int], mpq]] = {
    "stochastic_a": lambda x, n, r: mpq(floor(x * 2**n) + r, 2**n),
    "stochastic_b": lambda x, n, r: mpq(floor(x * 2 ** (n + 1)) + 2 * r + 1, 2 ** (n + 1)),
    "stochastic_c": lambda x, n, r: mpq(round(x * 2**n) + r, 2**n),
}


def drawn(mode: str, bits: int, random: int) -> Callable[[mpq], int]:
    """Stochastic rounding to an integer by N random bits."""

    def rounded(x: mpq) -> int:
        whole = trunc(abs(x))
        raised = DRAWS[mode](abs(x) - whole, bits, random) >= 1
        return int((-1 if x < 0 else 1) * (whole + raised))

    return rounded


@dataclass(frozen=True)
class Format:
    """A floating-point format; `specials` says where NaN and infinity are, `padding` counts ignored low bits."""

    exponent_bits: int
    mantissa_bits: int
    emin: int
    specials: str  # ieee | all_ones (one NaN, no infinity) | fnuz (NaN in place of -0) | p3109 (and infinity) | none
    padding: int = 0
    signed: bool = True
    subnormals: bool = True
    complement: bool = False

    @cached_property
    def ones(self) -> int:
        """Exponent and mantissa fields full of ones; one more is the sign bit."""
        return (1 << (self.exponent_bits + self.mantissa_bits)) - 1

    @cached_property
    def largest(self) -> int:
        """Exponent and mantissa fields of the largest finite number."""
        if self.specials == "p3109":  # infinity above it; unsigned, the NaN above that
            return self.ones - 1 if self.signed else self.ones - 2
        return self.ones - {"ieee": 1 << self.mantissa_bits, "all_ones": 1}.get(self.specials, 0)

    @property
    def nan(self) -> int:
        """The canonical NaN: positive and quiet, only the top mantissa bit set where there is a choice."""
        if self.specials == "none":
            raise ValueError("the format has no NaN")
        if self.specials == "ieee":
            return (self.largest + 1 | 1 << (self.mantissa_bits - 1)) << self.padding
        return self.ones if self.specials == "all_ones" or not self.signed else self.ones + 1

    @property
    def one_zero(self) -> bool:
        """Whether the pattern of -0 is the NaN, or a number."""
        return self.signed and (self.complement or self.specials in ("fnuz", "p3109"))


class _Formats(dict[str, Format]):
    """By name; besides, where they are asked for by name, integers of every width."""

    def __missing__(self, name: str) -> Format:
        if not name.startswith("int") or not name[3:].isdecimal():
            raise KeyError(name)
        return _integers(int(name[3:]))


def _integers(bits: int) -> Format:
    return Format(1, bits - 2, bits - 2, "none", complement=True)


FORMATS: dict[str, Format] = _Formats({
    "f64": Format(11, 52, -1022, "ieee"),
    "f32": Format(8, 23, -126, "ieee"),
    "tf32": Format(8, 10, -126, "ieee", padding=13),
    "bf16": Format(8, 7, -126, "ieee"),
    "f16": Format(5, 10, -14, "ieee"),
    "e4m3": Format(4, 3, -6, "all_ones"),
    "e5m2": Format(5, 2, -14, "ieee"),
    "e4m3fnuz": Format(4, 3, -7, "fnuz"),
    "e5m2fnuz": Format(5, 2, -15, "fnuz"),
    "e3m2": Format(3, 2, -2, "none"),
    "e2m3": Format(2, 3, 0, "none"),
    "e2m1": Format(2, 1, 0, "none"),
    "ue8m0": Format(8, 0, -127, "all_ones", signed=False, subnormals=False),
    "ue4m3": Format(4, 3, -6, "all_ones", signed=False),
    "e8m13": Format(8, 13, -126, "ieee", padding=10),
    "e4m3_ieee": Format(4, 3, -6, "ieee"),
    "e6m9_ieee": Format(6, 9, -30, "ieee"),
    "e3m4_ieee": Format(3, 4, -2, "ieee"),
    "e4m3b11_negative_zero": Format(4, 3, -10, "fnuz"),
    "e2m5_none": Format(2, 5, 0, "none"),
    "binary6p3se": Format(3, 2, -3, "p3109"),
    "binary4p2se": Format(2, 1, -1, "p3109"),
    "binary3p2se": Format(1, 1, 0, "p3109"),
    "e2m1_ieee": Format(2, 1, 0, "ieee"),
    "e1m1_none": Format(1, 1, 1, "none"),
    "e2m1_all_ones": Format(2, 1, 0, "all_ones"),
    "e1m1_all_ones": Format(1, 1, 1, "all_ones"),
    "e2m0_all_ones": Format(2, 0, 0, "all_ones"),
    "binary3p1se": Format(2, 0, -1, "p3109"),
    "ue2m1_ieee": Format(2, 1, 0, "ieee", signed=False),
    "e2m1b9_ieee": Format(2, 1, -8, "ieee"),
})  # fmt: skip
for bits in (3, 4, 5, 8, 32):  # integers: multiples of one, the last place of the only exponent
    FORMATS[f"int{bits}"] = _integers(bits)
    FORMATS[f"uint{bits}"] = Format(1, bits - 1, bits - 1, "none", signed=False)
for p in range(1, 8):  # IEEE P3109, interim report: the exponent bias is half the number of exponent fields
    FORMATS[f"binary8p{p}se"] = Format(8 - p, p - 1, 1 - 2 ** (7 - p), "p3109")
    FORMATS[f"binary8p{p}ue"] = Format(9 - p, p - 1, 1 - 2 ** (8 - p), "p3109", signed=False)
    FORMATS[f"binary8p{p}uf"] = Format(9 - p, p - 1, 1 - 2 ** (8 - p), "all_ones", signed=False)


@dataclass(unsafe_hash=True)  # made in great numbers: a frozen one takes four times as long
class Decoded:
    """A term as the datapath sees it: (-1)^sign * significand * 2^exponent, not normalised. A sum that `cancelled` is
    zero but for its exponent, which counts."""

    kind: str  # finite | inf | nan
    sign: bool
    significand: mpq
    exponent: int
    cancelled: bool = False

    @cached_property
    def value(self) -> mpq:
        return (-1 if self.sign else 1) * self.significand * power(self.exponent)


NAN = Decoded("nan", False, mpq(0), 0)
ZERO = Decoded("finite", False, mpq(0), 0)
ONE = Decoded("finite", False, mpq(1), 0)


@cache
def power(exponent: int) -> mpq:
    """Of two."""
    return mpq(2) ** exponent


def floor_log2(x: mpq) -> int:
    """Largest e with 2^e <= x, for x > 0."""
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if power(guess) <= x else guess - 1


@lru_cache(1 << 16)
def decode(fmt: str, bits: int) -> Decoded:
    """The number that a bit pattern stands for; padding bits are ignored, as is the sign of an unsigned format."""
    f = FORMATS[fmt]
    if not 0 <= bits < ((f.ones + 1) << (1 + f.padding) if f.signed else max(256, f.ones + 1)):
        raise ValueError(f"{bits:#x} is no {fmt} pattern")
    if f.complement:
        number = bits - 2 * (f.ones + 1) * (bits > f.ones)
        return Decoded("finite", number < 0, mpq(abs(number), 1 << f.mantissa_bits), f.emin)
    raw = bits >> f.padding
    sign, body = f.signed and raw > f.ones, raw & f.ones
    if (f.one_zero and sign and body == 0) or (f.specials == "all_ones" and body == f.ones):
        return NAN
    if body > f.largest:
        return NAN if body > f.largest + 1 else Decoded("inf", sign, mpq(1), 0)
    field, mantissa = divmod(body, 1 << f.mantissa_bits)
    hidden = field > 0 or not f.subnormals
    significand = hidden + mpq(mantissa, 1 << f.mantissa_bits)
    return Decoded("finite", sign, significand, f.emin + field - (hidden and f.subnormals))


def infinity(fmt: str, sign: bool, nan: int | None = None) -> int:
    """Infinity, or what stands for it: NaN, or the largest number of a format that has neither."""
    f = FORMATS[fmt]
    if f.complement:
        return f.ones + 1 if sign else f.ones
    if f.specials in ("fnuz", "all_ones"):
        return f.nan if nan is None else nan
    return (sign * (f.ones + 1) + f.largest + (f.specials in ("ieee", "p3109"))) << f.padding


def encode(fmt: str, sign: bool, magnitude: mpq, mode: str | Callable[[mpq], int],
           overflow: str = "infinity", nan: int | None = None) -> int:  # fmt: skip
    """Round to the format, in a mode or by a function to integers. `nan` is the pattern given where an infinite result
    has no pattern of its own."""
    f, whole = FORMATS[fmt], ROUND[mode] if isinstance(mode, str) else mode
    if overflow not in ("infinity", "saturate", "ieee") or (sign and magnitude and not f.signed):
        raise ValueError(f"no encoding: {fmt}, negative {sign}, overflow {overflow!r}")
    if f.complement:
        number = whole(-magnitude if sign else magnitude)
        return int(min(max(number, -f.ones - 1), f.ones)) % (2 * (f.ones + 1))
    exponent = max(floor_log2(magnitude), f.emin) if magnitude else f.emin
    unit = power(exponent - f.mantissa_bits)
    base = (exponent - f.emin) << f.mantissa_bits  # even but without mantissa: there the pattern itself is even or odd
    body = abs(whole((-1 if sign else 1) * (magnitude / unit + base)))
    n, body = body - base, max(body - (not f.subnormals), 0)
    if n * unit > decode(fmt, f.largest << f.padding).value:
        inward = mode in ("toward_zero", "to_odd") or (mode == "up" and sign) or (mode == "down" and not sign)
        if overflow == "infinity" or (overflow == "ieee" and not inward):
            return infinity(fmt, sign, nan)
        body = f.largest
    negative = sign and f.signed and not (f.one_zero and body == 0)
    return int((negative * (f.ones + 1) + body) << f.padding)


def multiply(x: Decoded, y: Decoded) -> Decoded:
    """Exact product: significands multiplied, exponents added (step 1 of Algorithms 7-11)."""
    sign = x.sign != y.sign
    if x.kind == "finite" and y.kind == "finite":
        cancelled = (x.cancelled and y.significand > 0) or (y.cancelled and x.significand > 0)
        return Decoded("finite", sign, x.significand * y.significand, x.exponent + y.exponent, cancelled)
    if "nan" in (x.kind, y.kind) or not x.significand or not y.significand:
        return NAN
    return Decoded("inf", sign, mpq(1), 0)


def special_sum(terms: Sequence[Decoded]) -> Decoded | None:
    """The sum where NaN or infinity decides it (section 4.2), else None."""
    signs = {t.sign for t in terms if t.kind == "inf"}
    if any(t.kind == "nan" for t in terms) or len(signs) == 2:
        return NAN
    return Decoded("inf", signs.pop(), mpq(1), 0) if signs else None


def negative_zero(terms: Sequence[Decoded], mode: str) -> bool:
    """IEEE 754 section 6.3: the sign of a sum that is exactly zero."""
    return all(t.sign for t in terms) or (mode == "down" and any(t.sign for t in terms))


def cut(value: mpq, top: int | None, bits: int | None, mode: str) -> mpq:
    """Keep `bits` fraction bits of a term aligned at exponent `top` (RZ_F, RD_F of Algorithms 7-11)."""
    if top is None or bits is None:
        return value
    unit = power(top - bits)
    return ROUND[mode](value / unit) * unit


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
    late_sum_bits: int | None = None
    late_rounding: str = "down"
    late_small_addend: Literal["keep", "cut"] = "keep"
    block_order: str | Sequence[Bits] = "contiguous"
    grouping: Literal["none", "even_odd", "scale_blocks", "pairwise"] = "none"
    group: int = 1
    scale_format: str = "ue8m0"
    scale_block: int = 1
    partials: Literal["unnormalised", "normalised"] = "unnormalised"
    downscale: int = 0
    exponent_floor: int | None = None
    floor_applies_to: Literal["zero_terms", "maximum"] = "zero_terms"
    output_rounding: str = "toward_zero"
    random_bits: None = None  # tests/units/test_stochastic.py has units that take some
    flush_inputs: bool = False
    input_zeros: Literal["signed", "positive"] = "signed"
    input_format: str = "own"
    input_rounding: str = "nearest_even"
    flush_outputs: bool = False
    zero_sign: Literal["positive", "ieee", "always_positive"] = "positive"
    overflow: str = "infinity"
    nan: int | None = None

    def __post_init__(self) -> None:
        for name, values in CHOICES.items():
            if getattr(self, name) not in values:
                raise ValueError(f"unknown {name} {getattr(self, name)!r}")
        late, wraps = self.addend == "late", self.carry_bits != "exact"
        clash = late and (self.partials == "normalised" or self.grouping == "scale_blocks")
        clash |= (wraps and (late or self.precision is None)) or (self.grouping == "even_odd" and not late)
        if clash or (self.operation == "add_mul") != (self.grouping == "pairwise"):
            raise ValueError("parameters that do not go together")

    @cached_property
    def precision(self) -> int | None:
        """mpq bits kept when aligning, None where nothing is lost."""
        exact = self.operation != "fused_dot" or self.align_rounding == "sticky"
        return None if exact or self.fraction_bits == "exact" else int(self.fraction_bits)

    def ieee(self, rounding: str) -> Model:
        """The same output by the IEEE 754 rules: exact sum, one rounding (Algorithms 1 and 3)."""
        if rounding not in self._by_ieee:
            m = replace(self, operation="exact_dot", grouping="none", addend="fused", carry_bits="exact")
            self._by_ieee[rounding] = replace(m, output_rounding=rounding, zero_sign="ieee", overflow="ieee")
        return self._by_ieee[rounding]

    @cached_property
    def _by_ieee(self) -> dict[str, Model]:
        return {}

    def operand(self, name: str, bits: int) -> Decoded:
        """Decode an input; flushed subnormals become +0 (Algorithm 2, lines 1-3), and -0 where zeros have no sign. A
        factor may be converted to another format first."""
        x = decode(self.formats[name], bits)
        flushed = self.flush_inputs and 0 < x.significand < 1
        unsigned = self.input_zeros == "positive" and x.significand == 0
        x = ZERO if x.kind == "finite" and (flushed or unsigned) else x
        if self.input_format == "own" or name == "c" or x.kind != "finite":
            return x
        return decode(self.input_format, encode(self.input_format, x.sign, abs(x.value), self.input_rounding, "ieee"))

    def result(self, bits: int) -> Decoded:
        return decode(self.formats["d"], bits)

    def finish(self, total: mpq, terms: Sequence[Decoded]) -> int:
        """Convert a finished sum to the output format (Table 2); Algorithm 1, line 5 for flushed results."""
        d, mode = self.formats["d"], self.output_rounding
        sign = total < 0 if total else self.zero_sign == "ieee" and negative_zero(terms, mode)
        bits = encode(d, sign, abs(self.cut_sum(total)), mode, self.overflow, self.nan)
        x = self.result(bits)
        tiny = self.flush_outputs and x.kind == "finite" and x.significand < 1
        if x.kind == "finite" and (tiny or x.significand == 0):
            return encode(d, sign and self.zero_sign != "always_positive", mpq(0), mode)
        return bits

    def product_term(self, x: Decoded, y: Decoded) -> Decoded:
        """One product as a term of the sum: exact, normalised or rounded; exact ones that are large may be infinite."""
        p = exact = multiply(x, y)
        nonzero = p.kind == "finite" and p.significand > 0
        if nonzero and self.product == "normalised":
            shift = floor_log2(p.significand)
            p = replace(p, significand=p.significand / power(shift), exponent=p.exponent + shift)
        elif nonzero and self.product != "unnormalised":
            fmt = self.product.removeprefix("rounded_")
            p = decode(fmt, encode(fmt, p.sign, abs(p.value), self.product_rounding, "ieee"))
        if nonzero and self.product_overflow is not None and abs(exact.value) >= power(self.product_overflow):
            p = Decoded("inf", p.sign, mpq(1), 0)
        return p

    def maximum(self, terms: Sequence[Decoded]) -> int | None:
        """The exponent that terms are aligned at; None where all are zero and no floor says otherwise."""
        found = [t.exponent for t in terms if t.significand or t.cancelled]
        floored = self.floor_applies_to == "maximum" or len(found) < len(terms)
        floors = [] if self.exponent_floor is None or not floored else [self.exponent_floor]
        return max(found + floors, default=None)

    def fused_sum(self, terms: Sequence[Decoded]) -> mpq:
        """Step 2 of Algorithm 7: align at the maximum exponent, keep F fraction bits, add; the sum may wrap."""
        bits = self.precision
        top = None if bits is None else self.maximum(terms)
        total = sum((cut(t.value, top, bits, self.align_rounding) for t in terms), mpq(0))
        if self.carry_bits == "exact" or top is None or bits is None:
            return total
        unit, half = power(top - bits), 1 << (bits + 1 + int(self.carry_bits))
        return ((int(total / unit) + half) % (2 * half) - half) * unit

    def late_sum(self, terms: Sequence[Decoded], addend: Decoded) -> mpq:
        """Algorithms 10 and 11: the products' sum, by even and odd index if grouped, then the addend."""
        groups = [terms[0::2], terms[1::2]] if self.grouping == "even_odd" else [terms]
        top = max((e for e in map(self.maximum, groups) if e is not None), default=None)
        sums = (cut(self.fused_sum(g), top, self.precision, self.late_rounding) for g in groups)
        final = max((e for e in (top, self.maximum([addend])) if e is not None), default=None)
        f, f2 = self.precision, None if self.late_fraction_bits == "exact" else int(self.late_fraction_bits)
        total = cut(sum(sums, mpq(0)), final, f2, self.late_rounding)
        small = final is not None and f is not None and addend.exponent < final - f - 1
        kept = ZERO if small and self.late_small_addend == "cut" else addend
        return total + cut(kept.value, final, f, self.late_rounding)

    def cut_sum(self, total: mpq) -> mpq:
        """A late addend's sum in MMA-Sim 2.1.1: normalised as a number with the smallest exponent of d, then cut."""
        if self.addend != "late" or self.late_sum_bits is None or not total:
            return total
        exponent = max(floor_log2(abs(total)), FORMATS[self.formats["d"]].emin)
        return cut(total, exponent, self.late_sum_bits, self.late_rounding)

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
        if self.downscale:
            terms = [multiply(term, Decoded("finite", False, mpq(1), -self.downscale)) for term in terms]
        every = [*terms, addend]
        finite = special_sum(every) is None
        if finite and self.addend == "late":
            return self.finish(self.late_sum(terms, addend), every)
        if self.partials == "normalised":  # an infinity to which a partial sum overflows is a term of the next sum
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
            size = self.block or self.length
            return [indices[k : k + size] for k in range(0, self.length, size)]
        if isinstance(self.block_order, str) or sorted(chain.from_iterable(self.block_order)) != [*indices]:
            raise ValueError(f"unknown block_order {self.block_order!r}")
        return self.block_order

    def scaled_group(self, pairs: Sequence[Decoded], scale: Decoded) -> Decoded:
        """Step 1 of Algorithm 9: the exact dot product of G elements, times the scale factors. MMA-Sim 2.1.1: one whose
        products cancel keeps the exponent of its scale factors; only one of zeros counts as a zero."""
        total = sum((t.value for t in pairs), mpq(0))
        sign = total < 0 if total else negative_zero(pairs, "nearest_even")
        cancelled = not total and any(t.significand for t in pairs)
        return multiply(special_sum(pairs) or Decoded("finite", sign, abs(total), 0, cancelled), scale)

    def dot(self, pairs: Sequence[tuple[Decoded, Decoded]], scales: Sequence[Decoded], c: Decoded) -> int:
        """Algorithm 5: blocks in order, each result the addend of the next."""
        addend, bits = ZERO if self.addend == "after" else c, 0
        for block in self.blocks():
            if self.grouping == "scale_blocks":
                groups = [block[k : k + self.group] for k in range(0, len(block), self.group)]
                terms = [self.scaled_group([multiply(*pairs[k]) for k in g], scales[g[0]]) for g in groups]
            else:
                products = [self.product_term(*pairs[k]) for k in block]
                factors = [scales[k] for k in block]
                terms = [p if s is ONE else multiply(p, s) for p, s in zip(products, factors, strict=True)]
            bits = self.step(terms, addend)
            addend = self.result(bits)
        return self.ieee("nearest_even").add([addend, c]) if self.addend == "after" else bits

    def tree(self, terms: Sequence[Decoded]) -> Decoded:
        """Terms rounded one by one, then added pairwise, every sum rounded (Algorithm 2, lines 7-12)."""
        half = (len(terms) + 1) // 2
        parts = terms if len(terms) == 1 else [self.tree(terms[:half]), self.tree(terms[half:])]
        return self.result(self.add(parts))

    def sequence(self, pairs: Sequence[tuple[Decoded, Decoded]], c: Decoded) -> int:
        """Algorithm 4, a chain of fused multiply-adds, or Algorithm 2, sums of P products added to c in turn."""
        unit, bits = self.ieee(self.output_rounding), 0
        terms = [multiply(*pair) for pair in pairs]
        if self.operation == "add_mul":
            terms = [unit.tree(terms[k : k + self.group]) for k in range(0, len(terms), self.group)]
        for term in terms:
            bits = unit.add([term, c])
            c = self.result(bits)
        return bits


CHOICES = {name: get_args(hint) for name, hint in get_type_hints(Model).items() if "Literal" in str(hint)}


@cache
def _ieee_unit(fmt: str, mode: str) -> Model:
    return Model({"d": fmt}, 1, nan=None if FORMATS[fmt].specials == "none" else FORMATS[fmt].nan).ieee(mode)


def ieee_sum(fmt: str, mode: str, *terms: Decoded) -> int:
    """The exact sum of the terms rounded once, by the IEEE 754 rules (Algorithm 3)."""
    return _ieee_unit(fmt, mode).add(terms)


def ieee_add(fmt: str, mode: str, a: int, b: int) -> int:
    return ieee_sum(fmt, mode, decode(fmt, a), decode(fmt, b))


def ieee_mul(fmt: str, mode: str, a: int, b: int) -> int:
    return ieee_sum(fmt, mode, multiply(decode(fmt, a), decode(fmt, b)))


def ieee_fma(fmt: str, mode: str, a: int, b: int, c: int) -> int:
    return ieee_sum(fmt, mode, multiply(decode(fmt, a), decode(fmt, b)), decode(fmt, c))


_UNITS: dict[str, Model] = {}  # what many inputs are put to is made once


def _unit(formats: Table, params: Table, length: int) -> Model:
    key = repr((dict(formats), dict(params), length))
    if key not in _UNITS:
        _UNITS[key] = Model(**{"length": length, **params, "formats": dict(formats)})
    return _UNITS[key]


def evaluate(
    formats: Table, params: Table, a: Bits, b: Bits, c: int, scale_a: Scales = None, scale_b: Scales = None
) -> int:
    """The pattern of d = c + sum a_k * b_k; elements missing up to `length` are zero."""
    m = _unit(formats, params, len(a))
    if not 0 < len(a) == len(b) <= m.length:
        raise ValueError("a and b need the same number of elements, at most the length")
    pairs = [(m.operand("a", x), m.operand("b", y)) for x, y in zip(a, b, strict=True)]
    pairs += [(ZERO, ZERO)] * (m.length - len(a))
    if m.operation in ("fma_chain", "add_mul"):
        return m.sequence(pairs, m.operand("c", c))
    scales = [ONE] * m.length
    for given in (x for x in (scale_a, scale_b) if x is not None):
        factors = [decode(m.scale_format, given[k // m.scale_block]) for k in range(m.length)]
        scales = list(map(multiply, scales, factors))
    return m.dot(pairs, scales, m.operand("c", c))
