"""That no sum of integers leaves its range or is rounded, and that two plans add the same integers, said a second time,
of the text of plan and unit files, whose expressions are read as Python reads them.

Every range has 0 in it: what some of the products add up to lies between as many of the least and of the largest ones.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor, prod
from typing import Any

from tests.second.magnitudes import FaultError, end_of, need, two
from tests.second.slice_rules import Rounding, Text, TheoremData, loaded

KNOWN = {"f16": "e5m10_ieee", "bf16": "e8m7_ieee", "f32": "e8m23_ieee", "f64": "e11m52_ieee", "e8m13": "e8m13_ieee",
         "e4m3": "e4m3_all_ones", "e5m2": "e5m2_ieee", "e2m1": "e2m1_none", "e2m3": "e2m3_none",
         "e3m2": "e3m2_none"}  # fmt: skip
IN_STEPS = ("product", "scale", "exact", "recombined", "shared", "number", "residue")  # what sees values alone
ROUNDED: Mapping[str, Callable[[Fraction], int]] = {"toward_zero": int, "nearest_even": round}
FINE = Fraction(1, 1 << 2000)  # a place of which all numbers are multiples


@dataclass(frozen=True)
class Range:
    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        need(self.low <= 0 <= self.high, "a range without 0")

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def __mul__(self, other: Range) -> Range:
        return Range(
            min(self.low * other.high, self.high * other.low), max(self.low * other.low, self.high * other.high)
        )

    def times(self, count: Fraction | int) -> Range:
        return Range(self.low * count, self.high * count)

    def cut(self, top: Fraction) -> Range:
        return self.within(Range(-top, top))

    def within(self, other: Range) -> Range:
        return Range(max(self.low, other.low), min(self.high, other.high))

    def has(self, other: Range) -> bool:
        return self.low <= other.low and other.high <= self.high

    @property
    def most(self) -> Fraction:
        return max(-self.low, self.high)


ZERO = Range(Fraction(0), Fraction(0))


@dataclass(frozen=True)
class Numbers:
    """A format by its name: bits of its numbers, the exponent of its smallest normal one, and all finite ones."""

    bits: int
    emin: int
    all: Range
    integer: bool

    @classmethod
    def of(cls, name: str) -> Numbers:
        if found := re.fullmatch("(u?)int([0-9]+)", name):
            bits = int(found[2]) - (not found[1])
            return cls(bits, bits - 1, Range(Fraction(0) if found[1] else -two(bits), two(bits) - 1), True)
        found = re.fullmatch("e([0-9]+)m([0-9]+)(?:b([0-9]+))?_(ieee|all_ones|none)", KNOWN.get(name, name))
        need(found is not None, f"nothing is told of {name}")
        assert found is not None
        bias = int(found[3]) if found[3] else (1 << int(found[1]) - 1) - 1
        place = two(-int(found[2]))
        top = 2 - place * (2 if found[4] == "all_ones" else 1)
        most = top * two((1 << int(found[1])) - 1 - (found[4] == "ieee") - bias)
        return cls(int(found[2]) + 1, 1 - bias, Range(-most, most), False)

    @property
    def integers(self) -> Range:
        """Integers of which it has all."""
        need(self.integer or self.emin <= 0, "no normal number 1")
        return self.all if self.integer else self.all.cut(two(self.bits))

    @property
    def step(self) -> Fraction:
        """Of the smallest numbers."""
        return Fraction(1) if self.integer else two(self.emin + 1 - self.bits)

    def rounded(self, value: Fraction, mode: str) -> Fraction:
        """To so many bits, whatever the largest number is."""
        place = self.step if self.integer or not value else max(self.step, two((end_of(abs(value)) or 0) - self.bits))
        return ROUNDED.get(mode, _away)(value / place) * place


def _away(value: Fraction) -> int:
    """The farthest that a number may be rounded to, in any mode."""
    return ceil(value) if value > 0 else floor(value)


class Words:
    """Ranges of the words of a side of a plan, of elements up to `most`."""

    def __init__(self, text: Text, side: str, most: int | None) -> None:
        self.text, self.side = text, side
        self.element = Numbers.of(text.formats[side])
        self.elements = self.element.all if most is None else self.element.all.cut(Fraction(most))
        self.known: dict[ast.expr, Range] = {}
        self.places: dict[ast.expr, tuple[int, Fraction]] = {}

    def range(self, node: ast.expr) -> Range:
        node = self.text.of(node)
        if node not in self.known:
            self.known[node] = self._range(node)
        return self.known[node]

    def _range(self, node: ast.expr) -> Range:
        if isinstance(node, ast.Name):
            need(node.id == self.side, "a word of the other side")
            return self.elements
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.range(node.operand)
            return Range(-inner.high, -inner.low)
        if (number := self.text.number(node)) is not None:
            return Range(min(number, Fraction(0)), max(number, Fraction(0)))
        name, operands = self.text.called(node)
        if name in self.text.roundings:
            return self._rounded(self.text.roundings[name], operands[0])
        if name == "residue":
            return residues(ast.literal_eval(operands[1]))
        if name == "product":
            return self._product(*operands)
        need(name == "exact", f"nothing is told of words with a {name}")
        added = sum(map(self.range, operands), ZERO)
        return self._left(*operands, added) if len(operands) == 2 else added

    def _product(self, left: ast.expr, right: ast.expr) -> Range:
        if isinstance(right, ast.BinOp) and isinstance(right.op, ast.Div):  # by the power of the largest magnitude
            need(isinstance(left, ast.Name) and left.id == self.side, "something else than an element is divided")
            assert isinstance(right.right, ast.Call)
            top = Fraction(1) if right.right.keywords else 2 - two(1 - self.bits_of_elements)
            return Range(-top, top)
        return self.range(left) * self.range(right)

    @property
    def bits_of_elements(self) -> int:
        return self.element.bits + (self.element.integer and self.element.all.low < 0)

    def _rounded(self, how: Rounding, term: ast.expr) -> Range:
        """Integers that wrap or saturate are some of the format; other numbers must not overflow."""
        numbers = Numbers.of(how.format)
        try:
            inner = self.range(term)
            found = Range(numbers.rounded(inner.low, how.mode), numbers.rounded(inner.high, how.mode))
        except FaultError:  # whatever the number is
            need(numbers.integer, "nothing is told of a word")
            return numbers.all
        need(numbers.integer or numbers.all.has(found), "a word may overflow")
        return found.within(numbers.all)

    def _left(self, whole: ast.expr, minus: ast.expr, added: Range) -> Range:
        """A number less its integer part is below 1, and a multiple of a last place of its own; less what it is rounded
        to in another way, a last place or what is beyond the largest number."""
        part = self.text.of(minus.operand) if isinstance(minus, ast.UnaryOp) else minus
        if part is minus or not isinstance(part, ast.Call):
            return added
        name, terms = self.text.called(part)
        how = self.text.roundings.get(name)
        if how is None or self.text.key(whole) != self.text.key(terms[0]):
            return added
        own, numbers = self.range(whole), Numbers.of(how.format)
        kept = Range(Fraction(ceil(own.low)), Fraction(floor(own.high)))
        if numbers.integer and how.mode == "toward_zero" and numbers.all.has(kept):
            bits, place = self.digits(whole)
            return added.within(own.cut(1 - max(two(-bits), min(place, Fraction(1)))))
        return added.cut(max(own.most * two(1 - numbers.bits), numbers.step, own.most - numbers.all.high))

    def digits(self, node: ast.expr) -> tuple[int, Fraction]:
        """How many significant bits a word has at most, and a power of two of which it is a multiple."""
        node = self.text.of(node)
        if node not in self.places:
            self.places[node] = self._digits(node)
        return self.places[node]

    def _digits(self, node: ast.expr) -> tuple[int, Fraction]:
        if isinstance(node, ast.Name):
            return self.element.bits, self.element.step
        if (number := self.text.number(node)) is not None:
            place = Fraction(number.numerator & -number.numerator or 1, number.denominator)
            return (number / place).numerator.bit_length(), place
        name, operands = self.text.called(node)
        if name in self.text.roundings:
            numbers = Numbers.of(self.text.roundings[name].format)
            bits, place = self.digits(operands[0])
            fits = numbers.all.has(self.range(operands[0]))
            return (min(bits, numbers.bits), max(place, numbers.step)) if fits else (numbers.bits, numbers.step)
        if name == "product" and not isinstance(operands[1], ast.BinOp):
            (one, place), (more, other) = map(self.digits, operands)
            return one + more, place * other
        return (self.element.bits, FINE) if name == "product" else (2000, FINE)


def residues(modulus: int) -> Range:
    """Those nearest to 0."""
    return Range(Fraction(-(modulus // 2)), Fraction((modulus - 1) // 2))


# -- a unit


@dataclass(frozen=True)
class Value:
    """The range of a node, how often it has c and each product, and the largest exponent with which it is aligned."""

    range: Range
    counts: Counter[str]
    exponent: int
    element: bool = False


@dataclass
class Unit:
    """A unit file; where an instruction is told, what it adds."""

    data: str
    sides: Mapping[str, Range] = field(default_factory=dict)
    start: Range = ZERO
    products: int = 0
    turns: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        data = loaded(self.data)
        self.length = data["length"]
        self.numbers = {name: Numbers.of(fmt) for name, fmt in data["formats"].items()}
        self.modes = {
            name: [one.strip() for one in how[6:-1].split(",")][:2] for name, how in data["roundings"].items()
        }
        self.result = ast.parse(data["steps"]["d"], mode="eval").body
        self.others = data["steps"].keys() - {"d"}
        self.integer = self.numbers["d"].integer

    def added(self, start: Range, products: int, sides: Mapping[str, Range]) -> Range:
        """What an instruction makes of a sum so far and of so many products."""
        self.start, self.products, self.sides = start, products, sides
        need(not self.others and len({one.integer for one in self.numbers.values()}) == 1, "it does not add integers")
        (found,) = self.values(self.result)
        need(found.counts == Counter(["c", *map(str, range(self.length))]), "not every product, and c, is added once")
        return found.range

    def values(self, node: ast.expr) -> list[Value]:
        match node:
            case ast.Name(id="c"):
                return [Value(self.start, Counter("c"), self._exponent(self.start, "c"))]
            case ast.Subscript(value=ast.Name(id="a" | "b" as side)):
                return [self._element(side, place) for place in self._places(node.slice)]
            case ast.BinOp(op=ast.Mult()):
                return self._products(node.left, node.right)
            case ast.Call(func=ast.Name(id="product"), args=[left, right], keywords=[]):
                return self._products(left, right)
            case ast.Call(func=ast.Name(id=name), args=items) if name in ("exact", "fused"):
                terms = [value for item in items for value in self.values(item)]
                need(not any(term.element for term in terms), "elements are added")
                added = sum((term.range for term in terms), ZERO)
                how = {str(one.arg): ast.literal_eval(one.value) for one in node.keywords if one.arg != "rounding"}
                if name == "fused":
                    self._check_aligned(terms, added, how)
                counts = sum((term.counts for term in terms), Counter[str]())
                return [Value(added, counts, max((term.exponent for term in terms), default=0))]
            case ast.Call(func=ast.Name(id=name), args=[term, *_]) if name in self.modes:
                numbers = Numbers.of(self.modes[name][0])
                need(numbers.integer == self.integer, "integers are rounded to other numbers")
                every = self.values(term)
                need(all(numbers.integers.has(one.range) for one in every), "a sum may leave its range")
                return [replace(one, exponent=max(numbers.emin, 0 if self.integer else _exponent_of(one.range)))
                        for one in every]  # fmt: skip
            case ast.Call(func=ast.Name(id="repeat"), args=[ast.Compare(left=ast.Name(id=name), comparators=[ast.Call(
                args=turns)]), start, body]):  # fmt: skip
                (self.so_far,) = self.values(start)
                for turn in range(*map(ast.literal_eval, turns)):
                    self.turns[name] = turn
                    (self.so_far,) = self.values(body)
                return [self.so_far]
            case ast.Name(id="acc"):
                return [self.so_far]
        raise FaultError("nothing is told of such a unit")

    def _places(self, index: ast.expr) -> range:
        if isinstance(index, ast.Slice):
            assert index.lower is not None
            assert index.upper is not None
            return range(self._place(index.lower), self._place(index.upper))
        return range(self._place(index), self._place(index) + 1)

    def _place(self, index: ast.expr) -> int:
        match index:
            case ast.Name():
                return self.turns[index.id]
            case ast.BinOp(op=ast.Add()):
                return self._place(index.left) + self._place(index.right)
        return int(ast.literal_eval(index))

    def _element(self, side: str, place: int) -> Value:
        own = self.sides[side] if place < self.products else ZERO
        return Value(own, Counter([f"{side}{place}"]), self._exponent(own, side), True)

    def _exponent(self, own: Range, operand: str) -> int:
        """Integers have one exponent; of other numbers it is that of the largest, or of subnormal ones."""
        emin = self.numbers[operand].emin
        return emin if self.integer else max(emin, _exponent_of(own))

    def _products(self, left: ast.expr, right: ast.expr) -> list[Value]:
        found = []
        need(not self.integer or isinstance(left, ast.Subscript), "a product of other integers")
        need(not self.integer or isinstance(right, ast.Subscript), "a product of other integers")
        for one, other in zip(self.values(left), self.values(right), strict=True):
            ((a, _),), ((b, _),) = one.counts.items(), other.counts.items()
            need(a[0] == "a" and b[0] == "b" and a[1:] == b[1:], "another product")
            both = one.range * other.range
            exponent = one.exponent + other.exponent if self.integer else _exponent_of(both)
            found.append(Value(both, Counter([a[1:]]), exponent))
        return found

    def _check_aligned(self, terms: list[Value], inner: Range, how: Mapping[str, Any]) -> None:
        """No term is cut: the last place that is kept is at most 1. A sum that wraps counts in units of 1."""
        need(how.keys() <= {"F", "carry", "least", "zeros", "floors"}, "terms are lost")
        kept = how["F"] if isinstance(how["F"], list) else [how["F"]]
        bounds = [how.get("least"), how.get("zeros"), *how.get("floors", [])]
        most = max([term.exponent for term in terms] + [one for one in bounds if one is not None])
        need(most <= min(kept), "a sum may lose bits")
        if how.get("carry") is not None:
            need(kept == [how.get("least")], "a sum may wrap in fewer bits")
            room = two(kept[0] + 1 + how["carry"])
            need(Range(-room, room - 1).has(inner), "a sum may wrap")


def _exponent_of(own: Range) -> int:
    return int(own.most).bit_length() - 1


# -- a plan


class Sums:
    """The sums of a plan, of up to so many products. `most`: of elements of both sides; with `formats`, a word is any
    integer of its format."""

    def __init__(self, data: TheoremData, formats: bool = False) -> None:
        self.data, self.text, self.length, self.formats = data, Text(data["text"]), data["length"], formats
        need("scale" not in loaded(data["text"]), "units take scale factors")
        self.files: Mapping[str, str] = data["units"]
        self.names: Mapping[str, str] = loaded(data["text"])["units"]
        self.sides = {side: Words(self.text, side, most) for side, most in zip("ab", data["most"], strict=True)}
        self.modes: set[str] = set()

    def calls(self, name: str, node: ast.expr) -> Iterator[ast.Call]:
        """Uses of a function in a step, and in those that it names, each once."""
        seen, left = set[str](), [node]
        while left:
            for one in ast.walk(left.pop()):
                if isinstance(one, ast.Name) and one.id in self.text.named and one.id not in seen:
                    seen.add(one.id)
                    left.append(self.text.named[one.id])
                elif isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == name:
                    yield one

    def check(self) -> None:
        """No sum of products leaves its range."""
        for one in self.calls("sum", self.text.named["d"]):
            need([*map(ast.unparse, one.args[1:])] in ([], ["+0"]), "a sum starts from another number")
            self.stage(one.args[0], ZERO, self.length)

    def check_recombined(self) -> None:
        for one in self.calls("recombined", self.text.named["d"]):
            moduli = ast.literal_eval(one.keywords[0].value)
            half = Fraction(prod(moduli) - 1, 2)
            wholes = {self._wholes(item, modulus) for item, modulus in zip(one.args, moduli, strict=True)}
            need(len({tuple(map(self.text.key, pair)) for pair in wholes}) == 1, "residues of different integers")
            a, b = (self.sides[side].range(word) for side, word in zip("ab", wholes.pop(), strict=True))
            need(Range(-half, half).has((a * b).times(self.length)), "another number may be recombined")

    def used(self, node: ast.expr) -> tuple[str, list[ast.expr]]:
        """The name and the operands of a stage; a unit alone reads elements."""
        if isinstance(node, ast.Name) and node.id in self.names:
            return node.id, [ast.Name(side) for side in "ab"]
        return self.text.called(node)

    def stage(self, node: ast.expr, start: Range, count: int) -> Range:
        """The range of a stage's result for so many products."""
        name, operands = self.used(node)
        need(name in ("then", "promote", *self.names), "more than a chain of instructions")
        if name == "then":
            for body in operands:
                start = self.stage(body, start, count)
            return start
        if name == "promote":
            need(not self.text.of(node).keywords, "more than a chain of instructions")  # type: ignore[attr-defined]
            assert isinstance(operands[2], ast.Name)
            how, run = self.text.roundings[operands[2].id], min(count, ast.literal_eval(operands[0])) or 1
            found = start + self.stage(operands[1], ZERO, run).times(Fraction(count, run))
            need(Numbers.of(how.format).integers.has(found), "a sum may be rounded")
            self.modes |= {how.mode} if not Numbers.of(how.format).integer else set()
            return found
        unit = Unit(self.files[self.names[name]])
        self.modes |= {mode for fmt, mode in unit.modes.values() if not Numbers.of(fmt).integer}
        sides = {side: self.word(side, word) for side, word in zip("ab", operands, strict=True)}
        tiles, rest = divmod(count, unit.length)
        product = sides["a"] * sides["b"]
        if tiles:
            start = unit.added(start + product.times((tiles - 1) * unit.length), unit.length, sides)
        return unit.added(start, rest, sides) if rest else start

    def integer(self, node: ast.expr) -> ast.expr:
        """The integer word that a unit reads, as it is or held in a format that has all integers of its own."""
        name, operands = self.text.called(node)
        numbers = Numbers.of(self.text.roundings[name].format)
        if numbers.integer:
            return self.text.of(node)
        inner = self.text.of(operands[0])
        need(isinstance(inner, ast.Call), "no integer")
        own = self.text.roundings.get(self.text.called(inner)[0])
        need(own is not None and Numbers.of(own.format).integer, "no integer")
        assert own is not None
        need(numbers.integers.has(Numbers.of(own.format).all), "an integer may be rounded")
        return inner

    def word(self, side: str, node: ast.expr) -> Range:
        if isinstance(node, ast.Name) and node.id == side:
            need(not self.formats and self.sides[side].element.integer, "an element is no integer")
            return self.sides[side].elements
        whole = self.integer(node)
        if self.formats:
            return Numbers.of(self.text.roundings[self.text.called(whole)[0]].format).all
        return self.sides[side].range(whole)

    def _wholes(self, item: ast.expr, modulus: int) -> tuple[ast.expr, ...]:
        """The integers whose residues a sum is of."""
        name, (stage, *_) = self.text.called(item)
        unit, words = self.used(stage)
        need(name == "sum" and unit in self.names, "no sum of products by one unit")
        return tuple(self._whole(word, modulus) for word in words)

    def _whole(self, word: ast.expr, modulus: int) -> ast.expr:
        name, (term, *_) = self.text.called(self.integer(word))
        kind, operands = self.text.called(term)
        need(kind == "residue" and ast.literal_eval(operands[1]) == modulus, "no residue of its modulus")
        need(Numbers.of(self.text.roundings[name].format).all.has(residues(modulus)), "a residue may leave its range")
        whole = self.text.of(operands[0])
        need(isinstance(whole, ast.Call), "a residue of no integer")
        how = self.text.roundings.get(self.text.called(whole)[0])
        need(how is not None and Numbers.of(how.format).integer, "a residue of no integer")
        return whole


def never_wraps(data: TheoremData) -> None:
    need(all(one is None or one >= 0 for one in (data["length"], *data["most"])), "a number below 0")
    sums = Sums(data)
    sums.check()
    sums.check_recombined()


class Result(Text):
    """A plan whose sums are those of integers, each as often as it is; expressions of several have one numbering."""

    def __init__(self, sums: Sums, numbers: dict[Any, int]) -> None:
        super().__init__(sums.data["text"])
        self.sums, self.numbers = sums, numbers

    def key(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Call):
            return super().key(node)
        assert isinstance(node.func, ast.Name)
        if node.func.id == "sum":
            pairs = Counter(self.added(node.args[0]))
            return str(self.numbers.setdefault(("sum", *sorted(pairs.items())), len(self.numbers)))
        name = node.func.id
        need(name in self.roundings or name in IN_STEPS, "more than the value of a sum may enter")
        return super().key(node)

    def added(self, stage: ast.expr) -> Iterator[tuple[str, ...]]:
        name, operands = self.sums.used(stage)
        if name in ("then", "promote"):
            for body in operands if name == "then" else operands[1:2]:
                yield from self.added(body)
        else:
            yield tuple(self.key(self.sums.integer(word)) for word in operands)


def same_integers(data: TheoremData, other: TheoremData) -> None:
    """The sums are of the same integers, whatever these are, and never -0, as only rounding down makes one."""
    numbers, found = dict[Any, int](), list[str]()
    for one in (data, other):
        sums = Sums(one, formats=True)
        sums.check()
        need("down" not in sums.modes, "a sum may be -0")
        found.append(Result(sums, numbers).key(sums.text.named["d"]))
    formats = [loaded(one["text"])["formats"] for one in (data, other)]
    need(formats[0] == formats[1] and found[0] == found[1], "the plans differ in more than in units")
