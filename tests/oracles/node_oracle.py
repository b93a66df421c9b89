"""Units of nodes in exact rationals, written from the table of nodes alone: it reads their fields, not their code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from gmpy2 import mpq

from mmaprobe.smtmodel.nodes import (
    Cancelling,
    Constant,
    Counting,
    Cut,
    Each,
    Element,
    ExactSum,
    FusedSum,
    Gate,
    GridSum,
    Largest,
    Literal,
    Product,
    Quotient,
    Recombined,
    Relu,
    Repeat,
    Residue,
    Round,
    Running,
    Scale,
    Segment,
    Shared,
    Signed,
    SortedSum,
)
from mmaprobe.smtmodel.nodes.index import Index
from mmaprobe.smtmodel.nodes.node import Node
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.words import SharedOf
from mmaprobe.smtmodel.units.unit import Unit
from tests.oracles.oracle import FORMATS, ROUND, decode, drawn, encode, floor_log2, infinity, power

BELOW_ALL = -5000  # an exponent that no term has
ANY_NAN = -1  # the result where a NaN has no pattern of its own


@dataclass(unsafe_hash=True)  # made in great numbers: a frozen one takes four times as long
class Value:
    """What travels between nodes.

    `exponent`: where it counts in an alignment. `is_zero`: it stands there as a zero, whose exponent does not count.
    `signs`: those of the numbers that were added up. `single`: it is one number, not a sum. `bits`: the pattern of a
    number of a format that was rounded to.
    """

    kind: str  # finite | inf | nan
    exact: mpq  # of infinity: +1 or -1
    exponent: int = 0
    is_zero: bool = False
    signs: frozenset[bool] = frozenset({False})
    single: bool = True
    bits: int | None = None

    @property
    def negative(self) -> bool:
        """The sign of one number, zeros included; of a sum that is not zero, its own."""
        return self.exact < 0 if self.exact else self.signs == {True}


NAN = Value("nan", mpq(0))
Loops = dict[int, tuple[int, Value | None]]  # level -> the loop variable, and the result so far


def infinite(negative: bool, single: bool = True) -> Value:
    return Value("inf", mpq(-1 if negative else 1), signs=frozenset({negative}), single=single)


@cache
def number(fmt: str, pattern: int, bits: int | None = None) -> Value:
    """The number of a format that a pattern stands for."""
    x = decode(fmt, pattern)
    if x.kind != "finite":
        return replace(NAN if x.kind == "nan" else infinite(x.sign), bits=bits)
    return Value("finite", x.value, x.exponent, not x.significand, frozenset({x.sign}), bits=bits)


def units(value: mpq, place: int, mode: str) -> mpq:
    """Rounded to a multiple of 2^place."""
    return ROUND[mode](value / power(place)) * power(place)


def times(values: Sequence[Value]) -> Value:
    """An exact product; what infinities and zeros give; exponents added, signs combined."""
    if any(v.kind == "nan" for v in values):
        return NAN
    first, *others = values
    flip = sum(v.negative for v in others) % 2 == 1
    if any(v.kind == "inf" for v in values):
        zero = any(v.kind == "finite" and not v.exact for v in values)
        return NAN if zero else infinite(first.negative != flip, first.single)
    exact = first.exact
    for v in others:
        exact *= v.exact
    signs = frozenset(sign != flip for sign in first.signs)
    is_zero = any(v.is_zero for v in values)
    return Value("finite", exact, sum(v.exponent for v in values), is_zero, signs, first.single)


def special(terms: Sequence[Value]) -> Value | None:
    """The sum where NaN or infinity decides it."""
    infinities = {t.negative for t in terms if t.kind == "inf"}
    if any(t.kind == "nan" for t in terms) or len(infinities) == 2:
        return NAN
    return infinite(infinities.pop(), single=False) if infinities else None


def exact_sum(terms: Sequence[Value]) -> Value:
    """The sum without loss: exponent 0 of its fixed point, a zero if all its terms are."""
    total = sum((t.exact for t in terms), mpq(0))
    signs = frozenset[bool]().union(*(t.signs for t in terms))
    single = len(terms) == 1 and terms[0].single
    return special(terms) or Value("finite", total, 0, all(t.is_zero for t in terms), signs, single)


def fused_sum(node: FusedSum, operands: Sequence[Sequence[Value]]) -> Value:
    """Terms aligned at the largest exponent, cut, and added."""
    every = [t for terms in operands for t in terms]
    count = len(operands)
    bits = [node.fraction_bits] * count if isinstance(node.fraction_bits, int) else node.fraction_bits
    floors = node.floors or [None] * count
    reaches = node.reach or [None] * count
    found = special(every)
    signs = frozenset[bool]().union(*(t.signs for t in every))
    if found is not None or all(t.is_zero for t in every):
        return found or Value("finite", mpq(0), 0, True, signs, single=False)

    exponents = [] if node.least is None else [node.least]
    for terms, low in zip(operands, floors, strict=True):
        counted = [node.zeros if t.is_zero else t.exponent for t in terms]
        exponents += [e for e in counted if e is not None] + [low for _ in terms if low is not None]
    top = max(exponents)

    total, lost = mpq(0), False
    for terms, precision, reach in zip(operands, bits, reaches, strict=True):
        for t in terms:
            if t.is_zero or (reach is not None and t.exponent < top - reach):
                continue
            kept = units(t.exact, top - precision, node.rounding)
            lost |= kept != t.exact
            total += kept
    last = top - max(bits)
    if node.carry_bits is not None:
        half = 1 << (max(bits) + 1 + node.carry_bits)
        total = ((int(total / power(last)) + half) % (2 * half) - half) * power(last)
    if node.sticky and lost:
        total += (-1 if total < 0 else 1) * power(last - 1)
    return Value("finite", total, top, False, signs, single=False)


def sorted_sum(node: SortedSum, terms: Sequence[Value]) -> Value:
    """The two terms with the highest first places, then the third; borrows for what is cut off, one sticky bit."""
    signs = frozenset[bool]().union(*(t.signs for t in terms))
    if (found := special(terms)) is not None:
        return found
    plain = [item.term if isinstance(item, Counting) else item for item in node.items]
    firsts = [BELOW_ALL if t.is_zero else t.exponent + isinstance(item, Product)
              for t, item in zip(terms, plain, strict=True)]  # fmt: skip
    x, y, z = (terms[at] for at in sorted(range(3), key=lambda at: (-firsts[at], at)))
    top, sticky, last = max(firsts), False, 0
    total, minus = x.exact, x.negative
    for term, bits in zip((y, z), node.fraction_bits, strict=True):
        last = top - bits
        if term is z and not total and not sticky:
            return Value("finite", z.exact, firsts[terms.index(z)], False, signs, single=False)
        total, term_exact = (-total, -term.exact) if minus else (total, term.exact)
        kept = units(total, last, "toward_zero") + units(term_exact, last, "down")
        sticky |= units(term_exact, last, "down") != term_exact
        total = -kept if minus else kept
        minus = total < 0 if total else minus
    if sticky:
        total += (-1 if minus else 1) * power(last - 1)
    return Value("finite", total, top, all(t.is_zero for t in terms), signs, single=False)


def grid_sum(node: GridSum, operands: Sequence[Sequence[Value]]) -> Value:
    """Integers on a grid, whose unit is the coarsest that an exponent and its operand's F give; where there is a frame,
    what opposes its sign is flipped, so that it counts one unit more."""
    every = [t for terms in operands for t in terms]
    count = len(operands)
    found = special(every)
    signs = frozenset[bool]().union(*(t.signs for t in every))
    if found is not None or all(t.is_zero for t in every):
        return found or Value("finite", mpq(0), 0, True, signs, single=False)

    places = []
    for terms, bits, low in zip(operands, node.fraction_bits, node.floors or [None] * count, strict=True):
        places += [t.exponent - bits for t in terms if not t.is_zero]
        places += [low - bits for _ in terms if low is not None]
    place = max(places)

    total = mpq(0)
    frame = None if node.frame is None else operands[node.frame][0].negative
    for terms, reach in zip(operands, node.reach or [None] * count, strict=True):
        for t in terms:
            near = reach is None or t.is_zero or t.exponent >= place - reach
            kept = units(t.exact, place, node.rounding) if near else mpq(0)
            if frame is not None and t.negative != frame:
                kept += (-1 if t.negative else 1) * power(place)
            total += kept
    return Value("finite", total, place + max(node.fraction_bits), False, signs, single=False)


def cut(value: Value, node: Cut) -> Value:
    """Normalised and rounded to some significant bits; a sum that is zero has the least exponent, or one below all.

    A sum that is not zero has one sign from here on, also where it is cut to zero.
    """
    least = BELOW_ALL if node.least is None else node.least
    if value.kind != "finite" or not value.exact:
        return replace(value, exponent=least)
    exponent = max(floor_log2(abs(value.exact)), least)
    exact = units(value.exact, exponent - node.bits + 1, node.mode)
    if exact:  # normalised again after a carry
        exponent = max(floor_log2(abs(exact)), least)
    return replace(value, exact=exact, exponent=exponent, signs=frozenset({value.exact < 0}), single=not exact)


def rectified(value: Value, node: Relu) -> Value:
    """What is above zero stays; each zero, or what becomes one, has the sign that its rule says."""
    if value.kind == "nan" and node.nan == "keep":
        return NAN
    if value.kind != "nan" and value.exact > 0:
        return replace(value, bits=None, single=True)
    negative = value.kind != "nan" and value.negative
    sign = {"positive": False, "keep": negative and not value.exact, "signed": negative}[node.zero]
    is_zero = value.is_zero or value.kind == "nan" or value.exact < 0
    return Value("finite", mpq(0), value.exponent, is_zero, frozenset({sign}))


def zero_is_negative(value: Value, rule: str, mode: str) -> bool:
    """The sign of a zero result: of an exact zero, or of a number that rounds to one."""
    if rule == "positive":
        return False
    if value.exact:
        return value.exact < 0
    if rule == "exact_positive" and not value.single:
        return False
    return value.signs == {True} or (mode == "down" and True in value.signs)


def rounded(value: Value, how: Rounding, random: tuple[int, int] | None = None) -> Value:
    """The number of a format. `random`: of stochastic rounding, how many random bits, and which."""
    name = how.format.name
    if value.kind == "nan":
        bits = nan_pattern(how)
    elif value.kind == "inf":
        whole = how.overflow == "sat_finite" or (how.overflow == "sat_propagate" and not how.format.has_infinity)
        bits = (
            encode(name, value.negative, power(1 << 20), "up", "saturate")
            if whole
            else infinity(name, value.negative, how.nan)
        )
    elif not value.exact or (how.subnormals == "flush_before" and abs(value.exact) < power(FORMATS[name].emin)):
        bits = zero(value, how)
    else:
        mode = how.mode if random is None else drawn(how.mode, *random)
        overflow = "saturate" if how.overflow.startswith("sat_") else how.overflow
        bits = encode(name, value.exact < 0, abs(value.exact), mode, overflow)
        x = decode(name, bits)
        if x.kind == "nan":  # where there is no infinity
            bits = nan_pattern(how)
        elif x.kind == "finite" and (not x.significand or (how.subnormals == "flush_after" and x.significand < 1)):
            bits = zero(value, how)
    has_nan = FORMATS[name].specials != "none"
    if has_nan and decode(name, bits).kind == "nan":  # else it is the number that stands for it
        return replace(NAN, bits=ANY_NAN if how.nan is None else bits)
    return number(name, bits, bits)


def shared(values: Sequence[Value], node: Shared | SharedOf) -> Value:
    """A power of two from the largest of some magnitudes."""
    if any(value.kind != "finite" for value in values):
        return NAN
    largest = max(abs(value.exact) for value in values)
    place = floor_log2(largest) if largest else 0
    place += node.up and largest > power(place)
    place = -place if node.inverse else place
    return Value("finite", power(place), place)


def largest(values: Sequence[Value]) -> Value:
    """The one of the largest magnitude, without its sign."""
    if any(value.kind == "nan" for value in values):
        return NAN
    if any(value.kind == "inf" for value in values):
        return infinite(False)
    found = max(abs(value.exact) for value in values)
    return Value("finite", found, floor_log2(found) if found else 0, not found)


def divided(one: Value, other: Value) -> Value:
    """A quotient without loss."""
    kinds, negative = (one.kind, other.kind), one.negative != other.negative
    if "nan" in kinds or kinds == ("inf", "inf") or (kinds == ("finite", "finite") and not (one.exact or other.exact)):
        return NAN
    if one.kind == "inf" or (other.kind == "finite" and not other.exact):
        return infinite(negative)
    exact = mpq(0) if other.kind == "inf" else one.exact / other.exact
    return Value("finite", exact, 0, not exact, frozenset({negative}))


def nearest(value: int, modulus: int) -> Value:
    """The residue of an integer that is nearest to zero."""
    found = (value + modulus // 2) % modulus - modulus // 2
    return Value("finite", mpq(found), 0, not found, frozenset({found < 0}))


def recombined(values: Sequence[Value], moduli: Sequence[int]) -> Value:
    """The integer with the residues of others: found from one modulus to the next."""
    if any(value.kind != "finite" for value in values):
        return NAN
    total, whole = 0, 1
    for value, modulus in zip(values, moduli, strict=True):
        while (total - int(value.exact)) % modulus:
            total += whole
        whole *= modulus
    found = total - whole if 2 * total > whole else total
    return Value("finite", mpq(found), 0, not found, frozenset({found < 0}))


def zero(value: Value, how: Rounding) -> int:
    negative = zero_is_negative(value, how.zero, how.mode)
    return encode(how.format.name, negative, mpq(0), "toward_zero")


def nan_pattern(how: Rounding) -> int:
    if how.nan is not None:
        return how.nan
    fmt = FORMATS[how.format.name]
    return 0 if fmt.specials == "none" else fmt.nan


@dataclass(frozen=True)
class Evaluation:
    """One unit on one input."""

    unit: Unit
    inputs: dict[str, Sequence[int]]
    known: dict[tuple[int, str], Value]

    def place(self, index: Index | None, loops: Loops) -> int:
        return 0 if index is None else index.offset + sum(f * loops[level][0] for level, f in index.factors)

    def element(self, node: Element, loops: Loops) -> Value:
        u = self.unit
        fmt = {"a": u.a, "b": u.b, "c": u.c, "scale_a": u.scale, "scale_b": u.scale}[node.operand]
        if fmt is None:
            raise ValueError("a scale factor of a unit without")
        given, k = self.inputs[node.operand], self.place(node.index, loops)
        x = number(fmt.name, given[k] if k < len(given) else 0)
        subnormal = fmt.subnormals and x.kind == "finite" and 0 < abs(x.exact) < power(FORMATS[fmt.name].emin)
        if node.positive_zeros and x.kind == "finite" and not x.exact:
            return replace(x, signs=frozenset({False}), bits=None)
        if node.subnormals == "keep" or not subnormal:
            return x
        negative = x.negative and node.subnormals == "zero" and not node.positive_zeros
        return Value("finite", mpq(0), is_zero=True, signs=frozenset({negative}))

    def terms(self, node: Node, loops: Loops) -> Iterator[Value]:
        """The terms that an operand of a sum stands for."""
        if isinstance(node, Each):
            for place in node.places:
                yield from self.terms(node.body, {**loops, node.level: (place, None)})
        else:
            yield self.value(node, loops)

    def value(self, node: Node, loops: Loops) -> Value:
        key = id(node), str(loops) if loops else ""
        if key not in self.known:
            self.known[key] = self.compute(node, loops)
        return self.known[key]

    def compute(self, node: Node, loops: Loops) -> Value:
        if isinstance(node, Element):
            return self.element(node, loops)
        if isinstance(node, Constant):
            return Value("finite", mpq(0), is_zero=True, signs=frozenset({node.negative}))
        if isinstance(node, Literal):
            return number(node.format.name, node.pattern)
        if isinstance(node, Product):
            return self.product(node, loops)
        if isinstance(node, Gate):
            return self.gate(node, loops)
        if isinstance(node, Segment):
            return self.segment(node, loops)
        if isinstance(node, Cancelling):
            total = self.value(node.term, loops)
            return replace(total, is_zero=total.is_zero or (total.kind == "finite" and not total.exact))
        if isinstance(node, Signed):
            total = self.value(node.term, loops)
            exact = exact_sum([t for item in node.term.operands for t in self.terms(item, loops)])
            kept = total.kind == "finite" and not total.exact and exact.exact
            # as what is cut to zero: no exact zero sum, so that it keeps its sign
            return replace(total, signs=frozenset({exact.exact < 0}), single=True) if kept else total
        if isinstance(node, Counting):
            return replace(self.value(node.term, loops), is_zero=False, bits=None)
        if isinstance(node, Relu):
            return rectified(self.value(node.term, loops), node)
        if isinstance(node, Shared):
            return shared([self.value(item, loops) for item in node.items], node)
        if isinstance(node, Largest):
            return largest([self.value(item, loops) for item in node.items])
        if isinstance(node, Quotient):
            return divided(self.value(node.left, loops), self.value(node.right, loops))
        if isinstance(node, Residue):
            given = self.value(node.term, loops)
            return nearest(int(given.exact), node.modulus) if given.kind == "finite" else NAN
        if isinstance(node, Recombined):
            return recombined([self.value(item, loops) for item in node.items], node.moduli)
        if isinstance(node, Scale):
            return times([self.value(x, loops) for x in (node.term, node.left, node.right)])
        if isinstance(node, ExactSum):
            return exact_sum([t for item in node.items for t in self.terms(item, loops)])
        if isinstance(node, FusedSum):
            return fused_sum(node, [[*self.terms(item, loops)] for item in node.items])
        if isinstance(node, SortedSum):
            return sorted_sum(node, [self.value(item, loops) for item in node.items])
        if isinstance(node, GridSum):
            return grid_sum(node, [[*self.terms(item, loops)] for item in node.items])
        if isinstance(node, Cut):
            return cut(self.value(node.term, loops), node)
        if isinstance(node, Round):
            random = None
            if isinstance(node.random, Element):
                given = self.inputs[node.random.operand]
                random = self.unit.formats[node.random.operand].width, given[self.place(node.random.index, loops)]
            if isinstance(node.random, Literal):
                random = node.random.format.width, node.random.pattern
            return rounded(self.value(node.term, loops), node.rounding, random)
        if isinstance(node, Repeat):
            return self.repeat(node, loops)
        if isinstance(node, Running):
            so_far = loops[node.level][1]
            if so_far is not None:
                return so_far
        raise TypeError(f"no value: {node!r}")

    def product(self, node: Product, loops: Loops) -> Value:
        p = times([self.value(node.left, loops), self.value(node.right, loops)])
        if p.kind != "finite" or not p.exact:
            return p
        if node.limit is not None and abs(p.exact) >= power(node.limit):
            return infinite(p.negative)
        return replace(p, exponent=floor_log2(abs(p.exact))) if node.normalised else p

    def gate(self, node: Gate, loops: Loops) -> Value:
        factors = [self.value(x, loops) for x in node.term.operands]
        if any(x.kind == "finite" and not x.exact for x in factors):
            return Value("finite", mpq(0), is_zero=True, signs=frozenset({node.minus_zero}))
        return self.value(node.term, loops)

    def segment(self, node: Segment, loops: Loops) -> Value:
        """Some bits of an input, read from its exponent down; what is not finite is in the first segment alone."""
        x = self.value(node.term, loops)
        if x.kind != "finite":
            return Value("finite", mpq(0), is_zero=True) if node.first else replace(x, bits=None)
        size = abs(x.exact) / power(x.exponent + 1)  # below 1: the bit `i` is worth 2^-(i + 1)
        down = -1 - floor_log2(size) if node.leading and size else 0  # from where the leading one is
        kept = units(size, -node.end - down, "toward_zero") - units(size, -node.first - down, "toward_zero")
        if not kept:
            signs = frozenset({x.negative and not node.positive})
            return replace(x, exact=mpq(0), is_zero=True, signs=signs, bits=None)
        return replace(x, exact=(-1 if x.negative else 1) * kept * power(x.exponent + 1), bits=None)

    def repeat(self, node: Repeat, loops: Loops) -> Value:
        so_far = self.value(node.start, loops)
        for place in node.places:
            so_far = self.value(node.body, {**loops, node.level: (place, so_far)})
        return so_far


def evaluate(
    unit: Unit, a: Sequence[int], b: Sequence[int], c: int, scale_a: Sequence[int] = (), scale_b: Sequence[int] = (),
    random: int = 0, draws: Sequence[int] = (),
) -> int:  # fmt: skip
    """The result's pattern; ANY_NAN for a NaN without a pattern of its own."""
    inputs: dict[str, Sequence[int]] = {"a": a, "b": b, "c": [c], "scale_a": scale_a, "scale_b": scale_b}
    inputs |= {"random": [random], "draws": draws}
    result = Evaluation(unit, inputs, {}).value(unit.result, {})
    if result.bits is None:
        raise ValueError("the result is not rounded to a format")
    return result.bits
