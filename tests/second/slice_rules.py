"""What slices, residues and blocks lose, said a second time, of the text of a plan file, whose expressions are read as
Python reads them.

Of slices, a word is so many times the element over its power, and integer words; of blocks, a number is between two
numbers times so many largest magnitudes. What is claimed has to be at least what follows.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import ceil, floor, inf
from typing import Any

import yaml

from tests.second.magnitudes import need, two

#: precision, exponents of the smallest normal and of the largest number, and the largest number over that power of two
FORMATS: Mapping[str, tuple[int, int, int, Fraction]] = {
    "f64": (53, -1022, 1023, 2 - Fraction(1, 1 << 52)), "f32": (24, -126, 127, 2 - Fraction(1, 1 << 23)),
    "bf16": (8, -126, 127, 2 - Fraction(1, 1 << 7)), "e4m3": (4, -6, 8, Fraction(7, 4)),
    "e2m3": (4, 0, 2, Fraction(15, 8)), "e2m1": (2, 0, 2, Fraction(3, 2)), "e3m2": (3, -2, 4, Fraction(7, 4)),
    "ue8m0": (1, -127, 127, Fraction(1)), "ue4m3": (4, -6, 8, Fraction(7, 4)),
}  # fmt: skip
NO_ZERO = ("ue8m0",)
SLACK = 1 + Fraction(1, 1 << 40)  # what is claimed may have been rounded up
TheoremData = Mapping[str, Any]


@dataclass(frozen=True)
class Rounding:
    format: str
    mode: str
    others: str

    @property
    def integer(self) -> int:
        """The largest number of an integer format; 0 of another one."""
        found = re.fullmatch("int([0-9]+)", self.format)
        return (1 << int(found[1]) - 1) - 1 if found else 0

    @property
    def shape(self) -> tuple[int, int, int, Fraction]:
        return FORMATS[self.format]

    @property
    def least(self) -> Fraction:
        return two(self.shape[1] - self.shape[0] + 1)


@cache
def loaded(text: str) -> Any:
    return yaml.safe_load(text)


class Text:
    """A plan file."""

    def __init__(self, text: str) -> None:
        data = loaded(text)
        self.formats: Mapping[str, str] = data["formats"]
        self.roundings = {name: Rounding(*(part.strip() for part in [*how[6:-1].split(",", 2), ""][:3]))
                          for name, how in data.get("roundings", {}).items()}  # fmt: skip
        trees = {**data.get("words", {}), **data["steps"]}
        self.keys, self.numbers = dict[str, str](), dict[Any, int]()
        self.named = {name: ast.parse(tree.strip(), mode="eval").body for name, tree in trees.items()}

    def of(self, node: ast.expr) -> ast.expr:
        """What a name stands for."""
        while isinstance(node, ast.Name) and node.id in self.named:
            node = self.named[node.id]
        return node

    def key(self, node: ast.expr) -> str:
        """An expression without names, as a key: its number among all that were asked for."""
        if isinstance(node, ast.Name) and node.id in self.named:
            if node.id not in self.keys:
                self.keys[node.id] = self.key(self.named[node.id])
            return self.keys[node.id]
        if isinstance(node, ast.Name):
            parts: tuple[Any, ...] = ("name", self.roundings.get(node.id, node.id))
        else:
            parts = (type(node).__name__, *(self._part(one) for _, one in ast.iter_fields(node)))
        return str(self.numbers.setdefault(parts, len(self.numbers)))

    def _part(self, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(map(self._part, value))
        return self.key(value) if isinstance(value, ast.AST) else value  # type: ignore[arg-type]

    def called(self, node: ast.expr) -> tuple[str, list[ast.expr]]:
        """The name and the operands of a call."""
        node = self.of(node)
        need(isinstance(node, ast.Call) and isinstance(node.func, ast.Name), "nothing is told of such a step")
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Name)
        return node.func.id, node.args

    def number(self, node: ast.expr) -> Fraction | None:
        """A number that is written: a power of two, or a pattern of f32."""
        node = self.of(node)
        match node:
            case ast.BinOp(left=ast.Constant(value=2), op=ast.Pow()):
                return two(int(ast.literal_eval(node.right)))
            case ast.Call(func=ast.Name(id="number"), args=[ast.Constant(value=int(pattern)), ast.Name(id="f32")]):
                exponent, fraction = pattern >> 23, pattern & (1 << 23) - 1
                need(0 < exponent < 255, "a number is not a normal one above zero")
                return two(exponent - 150) * (fraction | 1 << 23)
        return None


# -- slices and residues


@dataclass(frozen=True)
class Sliced:
    """`of` times the element over its power, plus factors times integer words, up to `error`; its magnitude is at most
    `top`, and below it if `below`."""

    of: Fraction
    words: Mapping[str, Fraction]
    error: Fraction
    top: Fraction
    below: bool


def integer_most(how: Rounding, sliced: Sliced) -> Fraction:
    """The largest magnitude of an integer word. It does not saturate."""
    if how.mode == "toward_zero":
        most = ceil(sliced.top) - 1 if sliced.below else floor(sliced.top)
    else:
        need(how.mode == "nearest_even", "a word is rounded in another way")
        most = round(sliced.top)
    need(0 <= most <= how.integer, "a word may saturate")
    return Fraction(most)


class Slices:
    """The words of a side, each integer word by its key."""

    def __init__(self, text: Text, side: str) -> None:
        self.text, self.side = text, side
        self.terms: dict[str, tuple[Rounding, Sliced]] = {}
        self.up: bool | None = None

    def word(self, node: ast.expr) -> str:
        """The key of an integer word."""
        key = self.text.key(node)
        if key not in self.terms:
            name, operands = self.text.called(node)
            how = self.text.roundings[name]
            need(how.integer > 0, "a unit reads a word that is no integer")
            self.terms[key] = how, self.of(operands[0])
        return key

    def of(self, node: ast.expr) -> Sliced:
        name, operands = self.text.called(node)
        if name in self.text.roundings:
            how, inner = self.text.roundings[name], self.of(operands[0])
            need(not how.integer and how.others == "", "a part of a word is rounded in another way")
            need(how.shape[0] >= FORMATS[self.text.formats[self.side]][0], "a word is rounded that has more bits")
            need(inner.top < two(how.shape[2]), "a word may overflow")
            return replace(inner, error=inner.error + how.least)
        if name == "exact":
            whole, part = operands
            need(isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub), "a sum is no remainder")
            assert isinstance(part, ast.UnaryOp)
            key = self.word(part.operand)
            how, cut = self.terms[key]
            _, (term,) = self.text.called(part.operand)
            need(how.mode == "toward_zero" and self.text.key(whole) == self.text.key(term), "it is no remainder")
            integer_most(how, cut)
            return Sliced(cut.of, {**cut.words, key: cut.words.get(key, Fraction(0)) - 1}, cut.error, Fraction(1), True)
        need(name == "product", "a word is made in another way")
        left, right = operands
        if isinstance(left, ast.Name) and left.id == self.side:
            need(isinstance(right, ast.BinOp) and isinstance(right.op, ast.Div), "an element is multiplied by a number")
            assert isinstance(right, ast.BinOp)
            assert isinstance(right.right, ast.Call)
            up = bool(right.right.keywords)
            need(self.up in (None, up), "words with different powers of two")
            self.up = up
            return Sliced(Fraction(1), {}, Fraction(0), Fraction(1 if up else 2), not up)
        factor, inner = self.text.number(left), self.of(right)
        need(factor is not None, "a word is multiplied by another one")
        assert factor is not None
        return Sliced(factor * inner.of, {key: factor * x for key, x in inner.words.items()}, factor * inner.error,
                      factor * inner.top, inner.below)  # fmt: skip

    def most(self, key: str) -> Fraction:
        return integer_most(*self.terms[key])

    def element(self, keys: set[str]) -> tuple[dict[str, Fraction], Fraction]:
        """The element over its power, by the words that say most of it, and what they leave."""
        best: tuple[Fraction, str] | None = None
        for key in keys:
            how, term = self.terms[key]
            if term.of:
                left = (term.error + (1 if how.mode == "toward_zero" else Fraction(1, 2))) / term.of
                best = (left, key) if best is None or left < best[0] else best
        need(best is not None, "no word is nearly an element")
        assert best is not None
        left, key = best
        term = self.terms[key][1]
        found = {one: -x / term.of for one, x in term.words.items()}
        found[key] = found.get(key, Fraction(0)) + 1 / term.of
        return found, left


@dataclass(frozen=True)
class Sums:
    """Factors times sums of products of words, times powers of both sides, up to `error` for each product and
    `products` times the sum of magnitudes; multiples of 2^grid, which are numbers of `bits` bits."""

    pairs: Mapping[tuple[str, str], Fraction]
    error: Fraction
    powers: tuple[int, int]
    grid: int
    bits: int | None = None
    products: Fraction = Fraction(0)


@dataclass(frozen=True)
class Element:
    """An element over its power, by words: at most `top`, and `left` besides. `cut`: the words add up to at most the
    element and `slack`. From 2^-s on it is a multiple of 2^-s times `step`, and so is what is cut of it."""

    words: Mapping[str, Fraction]
    left: Fraction
    top: Fraction
    cut: bool
    slack: Fraction
    step: Fraction

    @classmethod
    def of(cls, side: Slices, keys: set[str]) -> Element:
        words, left = side.element(keys)
        how = [side.terms[key][0].mode for key in words]
        last = min(words, key=lambda key: words[key])  # of what is left, the smallest part
        term = side.terms[last][1]
        digits = FORMATS[side.text.formats[side.side]][0] if side.text.formats[side.side] in FORMATS else 0
        cut = set(how) == {"toward_zero"} and min(words.values()) > 0
        step = two(1 - digits) if digits and cut and not side.up and term.of * two(1 - digits) < 1 else Fraction(0)
        return cls(words, left, Fraction(1 if side.up else 2), cut, term.error / term.of, step)


class Steps:
    #: where these are told, roundings lose of the sum of magnitudes
    elements: tuple[Element, Element] | None = None

    def __init__(self, data: TheoremData) -> None:
        self.text = Text(data["text"])
        self.length, self.reach = data["length"], data["reach"]
        self.sides = {side: Slices(self.text, side) for side in "ab"}

    def most(self, sums: Sums) -> Fraction:
        return sums.error + sum(
            (abs(x) * self.sides["a"].most(a) * self.sides["b"].most(b) for (a, b), x in sums.pairs.items()),
            Fraction(0),
        )  # fmt: skip

    def of(self, node: ast.expr) -> Sums:
        name, operands = self.text.called(node)
        if name == "sum":
            return self._sum(operands[0])
        if name == "recombined":
            wholes = {tuple(self._whole(side, word) for side, word in zip("ab", self._read(item), strict=True))
                      for item in operands}  # fmt: skip
            need(len(wholes) == 1, "residues of different integers")
            (one, other) = wholes.pop()
            return Sums({(one, other): Fraction(1)}, Fraction(0), (0, 0), 0)
        if name in ("product", "scale"):
            factors = list(map(self._factor, operands))
            need(factors.count(None) == 1, "a sum is multiplied by another one")
            found = self.of(operands[factors.index(None)])
            for factor in factors:
                found = found if factor is None else self._times(found, *factor)
            return found
        if name == "exact":
            return self._added([self.of(one) for one in operands if not (isinstance(one, ast.Name) and one.id == "c")])
        need(name in self.text.roundings, "nothing is told of such a step")
        return self._rounded(self.text.roundings[name], self.of(operands[0]))

    def _read(self, node: ast.expr) -> tuple[ast.expr, ast.expr]:
        """What a unit of a sum reads."""
        name, operands = self.text.called(node)
        if name == "sum":
            name, operands = self.text.called(operands[0])
        need(len(operands) == 2, "a unit does not read two words")
        return operands[0], operands[1]

    def _whole(self, side: str, node: ast.expr) -> str:
        """The integer of which a word is a residue."""
        _, (residue,) = self.text.called(node)
        name, operands = self.text.called(residue)
        need(name == "residue", "a word is no residue")
        return self.sides[side].word(operands[0])

    def _sum(self, node: ast.expr) -> Sums:
        name, operands = self.text.called(node)
        bodies = operands if name == "then" else [node]
        pairs: dict[tuple[str, str], Fraction] = {}
        for body in bodies:
            one, other = (self.sides[side].word(word) for side, word in zip("ab", self._read(body), strict=True))
            pairs[one, other] = pairs.get((one, other), Fraction(0)) + 1
        return Sums(pairs, Fraction(0), (0, 0), 0)

    def _factor(self, node: ast.expr) -> tuple[Fraction, tuple[int, int]] | None:
        """A number times powers that sides share; None for what has a sum in it."""
        if (number := self.text.number(node)) is not None:
            return number, (0, 0)
        name, operands = self.text.called(node)
        if name == "shared":
            (one,), up = operands, bool(self.text.of(node).keywords)  # type: ignore[attr-defined]
            assert isinstance(one, ast.Name)
            need(self.sides[one.id].up in (None, up), "words are divided by another power of two")
            return Fraction(1), (int(one.id == "a"), int(one.id == "b"))
        factors = [self._factor(one) for one in operands] if name in {*self.text.roundings, "product"} else [None]
        found, powers = Fraction(1), (0, 0)
        for factor in factors:
            if factor is None:
                return None
            found, powers = found * factor[0], (powers[0] + factor[1][0], powers[1] + factor[1][1])
        if name != "product":
            _, low, high, _ = self.text.roundings[name].shape
            far = self.reach * sum(powers)
            need(two(low + far) <= found <= two(high - far), "a factor may be subnormal, or overflow")
        return found, powers

    @staticmethod
    def _times(sums: Sums, factor: Fraction, powers: tuple[int, int]) -> Sums:
        place = factor.numerator.bit_length() - factor.denominator.bit_length()
        need(factor == two(place), "a factor is no power of two")
        both = sums.powers[0] + powers[0], sums.powers[1] + powers[1]
        return replace(sums, pairs={pair: factor * x for pair, x in sums.pairs.items()}, error=factor * sums.error,
                       powers=both, grid=sums.grid + place, products=factor * sums.products)  # fmt: skip

    @staticmethod
    def _added(every: list[Sums]) -> Sums:
        pairs: dict[tuple[str, str], Fraction] = {}
        for one in every:
            for pair, x in one.pairs.items():
                pairs[pair] = pairs.get(pair, Fraction(0)) + x
        need(len({one.powers for one in every}) == 1, "numbers with different powers of two are added")
        bits = every[0].bits if len(every) == 1 else None
        error = sum((one.error for one in every), Fraction(0))
        products = sum((one.products for one in every), Fraction(0))
        return Sums(pairs, error, every[0].powers, min(one.grid for one in every), bits, products)

    def _rounded(self, how: Rounding, sums: Sums) -> Sums:
        need(how.mode == "nearest_even" and not how.others and not how.integer, "a result is rounded in another way")
        bits, low, high, _ = how.shape
        most, far = self.most(sums), self.reach * sum(sums.powers)
        tops = self.elements[0].top * self.elements[1].top if self.elements else 0
        top = (most + sums.products * tops) * self.length
        need(sums.grid - far >= low and top * two(far) <= two(high), "a result may be subnormal, or overflow")
        exact = (sums.bits is not None and sums.bits <= bits) or top <= two(sums.grid + bits)
        if exact or not self.elements or min(sums.pairs.values()) < 0:
            return replace(sums, error=sums.error + (0 if exact else most * two(-bits)), bits=bits)
        a, b = self.elements
        need(all(one in a.words and other in b.words for one, other in sums.pairs), "a product of other words")
        times = max(x / a.words[one] / b.words[other] for (one, other), x in sums.pairs.items())
        beside = times * ((a.top + a.slack) * (b.top + b.slack) - a.top * b.top)
        return replace(sums, error=sums.error + (sums.error + beside) * two(-bits),
                       products=sums.products + (sums.products + times) * two(-bits), bits=bits)  # fmt: skip


def _elements(data: TheoremData) -> tuple[Steps, Sums, tuple[Element, Element]]:
    steps = Steps(data)
    found = steps.of(steps.text.named["d"])
    need(found.powers == (1, 1), "powers of two are left")
    a, b = (Element.of(steps.sides[side], {pair[n] for pair in found.pairs}) for n, side in enumerate("ab"))
    return steps, found, (a, b)


def _apart(steps: Steps, found: Sums, a: Element, b: Element) -> Fraction:
    """What is in the product of elements, by words, and not in the result, or the other way round."""
    pairs = {(x, y): v * w for x, v in a.words.items() for y, w in b.words.items()}
    return sum((abs(found.pairs.get((x, y), Fraction(0)) - pairs.get((x, y), Fraction(0)))
                * steps.sides["a"].most(x) * steps.sides["b"].most(y) for x, y in pairs.keys() | found.pairs.keys()),
               Fraction(0))  # fmt: skip


def _claimed(data: TheoremData, name: str, least: Fraction, number: int | None = None) -> None:
    own = Fraction(data[name] if number is None else data[name][number])
    need(least <= own <= least * SLACK, f"{name}: {float(least)}, and {float(own)} is claimed")


def _at_most(steps: Steps, side: str) -> int:
    """As many times the largest magnitude a power is at most."""
    return 2 if steps.sides[side].up else 1


def loses_of_largest(data: TheoremData) -> None:
    """The sum of words and the exact one differ by what words leave, and by factors of products of words."""
    steps, found, (a, b) = _elements(data)
    _claimed(data, "share", _lost(steps, found, a, b))


def _lost(steps: Steps, found: Sums, a: Element, b: Element) -> Fraction:
    lost = found.error + a.left * (b.top + b.left) + a.top * b.left + _apart(steps, found, a, b)
    return lost * _at_most(steps, "a") * _at_most(steps, "b")


def loses_of_elements(data: TheoremData) -> None:
    """Words of both sides that are cut add up, pair by pair, to no more than the product of elements."""
    steps, found, (a, b) = _elements(data)
    if not (a.cut and b.cut):
        _claimed(data, "largest", _lost(steps, found, a, b))
        need({data["products"], *data["ones"], *data["steps"]} == {"0"}, "of words that are not cut something is told")
        return
    steps.elements = a, b
    found = steps.of(steps.text.named["d"])
    _claimed(data, "products", found.products)
    for number, (own, side) in enumerate(zip((a, b), "ab", strict=True)):
        _claimed(data, "ones", own.left * _at_most(steps, side), number)
        need(Fraction(data["steps"][number]) <= own.step * _at_most(steps, side), "a last place is smaller")
    beside = (found.error + a.slack * b.left + _apart(steps, found, a, b)) * _at_most(steps, "a") * _at_most(steps, "b")
    _claimed(data, "largest", beside)


def within_classical(data: TheoremData) -> None:
    """Of elements from 2^-spread of the largest on K max|a| max|b| is at most 2^(2 spread) times the sum of magnitudes,
    and max|a| sum |b_k| at most 2^spread times that, of which a last place is less."""
    bits, *_ = FORMATS[data["format"]]
    spread = data["spread"]
    need(spread >= 0, "a spread is from 0 on")
    ones = [Fraction(one) * two(spread) - Fraction(step) for one, step in zip(data["ones"], data["steps"], strict=True)]
    share = Fraction(data["products"]) + sum(ones) + Fraction(data["largest"]) * two(2 * spread)
    need(share * two(bits) <= Fraction(data["times"]) * data["length"], "an error may be larger")


def within_span(data: TheoremData) -> None:
    """max|a| max|b| is at most 2^span times a product."""
    bits, *_ = FORMATS[data["format"]]
    need(Fraction(data["share"]) * two(data["span"] + bits) <= Fraction(data["times"]), "an error may be larger")


# -- blocks


@dataclass(frozen=True)
class Near:
    """Between `low` and `high` times m^M r^R s^S for the powers told, where m and r are the largest magnitudes of the
    block and of its row and s is its scale factor; `element`: and times the element, off by `tiny` besides."""

    low: Fraction
    high: Fraction
    powers: tuple[int, int, int] = (0, 0, 0)
    element: bool = False
    tiny: Fraction = Fraction(0)

    def over(self, other: Near) -> Near:
        need(not other.element, "a number is divided by an element")
        return self.by(Near(1 / other.high, 1 / other.low, tuple(-x for x in other.powers)))  # type: ignore[arg-type]

    def by(self, other: Near) -> Near:
        need(not (self.element and other.element) and not self.tiny and not other.tiny, "elements are multiplied")
        powers = tuple(x + y for x, y in zip(self.powers, other.powers, strict=True))
        return Near(self.low * other.low, self.high * other.high, powers, self.element or other.element)  # type: ignore[arg-type]


def off(how: Rounding) -> tuple[Fraction, Fraction]:
    """How much smaller and larger a normal number above zero may become, relative to it."""
    place = two(1 - how.shape[0])  # of 1
    least = {"toward_zero": place / (1 + place), "nearest_even": place / (2 + place), "up": Fraction(0)}
    need(how.mode in least, "a number is rounded in another way")
    return least[how.mode], {"toward_zero": Fraction(0), "up": place}.get(how.mode, least[how.mode])


class Block:
    """The words of a side of a block format."""

    def __init__(self, text: Text, word: ast.expr, reach: int, spread: int | None, zeros: bool) -> None:
        self.text, self.reach, self.spread = text, reach, spread
        name, (element, factor) = text.called(word)
        need(name == "block_scaled", "a unit reads another word")
        self.factor_key = text.key(factor)
        _, (term,) = text.called(factor)
        self.factor = self.rounded(text.roundings[text.called(factor)[0]], self.of(term))
        rounding, (term,) = text.called(element)
        how, own = text.roundings[rounding], self.of(term)
        need(own.element and own.powers[0] == 0 and own.powers[2] == -1, "no element divided by its factor is rounded")
        need(how.mode == "nearest_even" and how.format in FORMATS and how.format not in NO_ZERO, "as no element is")
        self.idle: Fraction | float = Fraction(0)
        for row in () if not zeros else (None,) if spread is None else (True, False):
            need(not self.at_zero(element, row), "an element of a block of zeros is not zero")
            self.idle = self.at_zero(factor, row)
            need(not (self.factor.powers[1] and self.idle), "a factor of a block of zeros, which hangs on its row")
        self.rows, self.middle = own.powers[1], (own.low + own.high) / 2
        low, high = self.ends(replace(own, low=self.middle, high=self.middle))
        more = (own.high - self.middle) / self.middle + own.tiny / low
        bits, emin, emax, top = how.shape
        lost = max((1 + more) * off(how)[0], two(emin - bits) / low)
        if high * (1 + more) > top * two(emax):
            need("saturate" in how.others or "sat_finite" in how.others, "an element may overflow")
            lost = max(lost, 1 + more - top * two(emax) / high)
        self.lost = lost + more
        self.most = max(1 + self.lost, two(emin) / low)
        self.scale = 1 / low

    def of(self, node: ast.expr) -> Near:
        number = self.text.number(node)
        if number is not None:
            return Near(number, number)
        if isinstance(node, ast.Name) and node.id in "ab":
            return Near(Fraction(1), Fraction(1), element=True)
        if hasattr(self, "factor") and self.text.key(node) == self.factor_key:
            return Near(Fraction(1), Fraction(1), (0, 0, 1))
        name, operands = self.text.called(node)
        if name == "largest":
            block = bool(self.text.of(node).keywords)  # type: ignore[attr-defined]
            need(block or self.spread is not None, "it is not told how large a row is")
            return Near(Fraction(1), Fraction(1), (int(block), int(not block), 0))
        if name == "product":
            return self.of(operands[0]).by(self.of(operands[1]))
        if name == "quotient":
            return self.of(operands[0]).over(self.of(operands[1]))
        need(name in self.text.roundings, "nothing is told of such a word")
        return self.rounded(self.text.roundings[name], self.of(operands[0]))

    def ends(self, near: Near) -> tuple[Fraction, Fraction]:
        """The least and the largest; of an element, where it is the largest of its block."""
        m, r, s = near.powers
        low, high = near.low, near.high
        for _ in range(abs(s)):
            low, high = (low * self.factor.low, high * self.factor.high) if s > 0 else (
                low / self.factor.high, high / self.factor.low)  # fmt: skip
        m, r = m + near.element + s * self.factor.powers[0] if s else m + near.element, r
        if s:
            r += s * self.factor.powers[1]
        spread = 2 * self.reach if self.spread is None else min(self.spread, 2 * self.reach)
        places = [m * x + r * y for y in (-self.reach, spread - self.reach, self.reach)
                  for x in {max(-self.reach, y - spread), y}]  # fmt: skip
        return low * two(min(places)), high * two(max(places))

    def rounded(self, how: Rounding, near: Near) -> Near:
        bits, emin, emax, top = how.shape
        low, high = self.ends(near)
        spare = Fraction(1, 4) * two(1 - bits) if how.mode == "nearest_even" else 0
        need(high + near.tiny <= (top + spare) * two(emax), "a number may overflow")
        less, more = off(how)
        tiny = Fraction(0)
        if near.element:
            need(how.mode != "up" and how.format not in NO_ZERO, "an element is rounded in another way")
            tiny = near.tiny * (1 + more) + how.least
        else:
            need(low >= two(emin), "a number may be subnormal")
        return replace(near, low=near.low * (1 - less), high=near.high * (1 + more), tiny=tiny)

    def at_zero(self, node: ast.expr, row: bool | None) -> Fraction | float:
        """The number in a block of zeros, or infinity. `row`: whether its row has another element, of magnitude 1: then
        what hangs on that is some normal number above zero, and 1 stands for it."""
        if (number := self.text.number(node)) is not None:
            return number
        if isinstance(node, ast.Name) and node.id in "ab":
            return Fraction(0)
        name, operands = self.text.called(node)
        if name == "largest":
            return Fraction(row is True and not self.text.of(node).keywords)  # type: ignore[attr-defined]
        found = [self.at_zero(one, row) for one in operands]
        if name in self.text.roundings:
            return self.at_zero_rounded(self.text.roundings[name], found[0])
        need(name in ("product", "quotient"), "nothing is told of such a word")
        one, other = found
        if name == "product":
            need(inf not in found, "infinity times a number")
            return one * other
        need(other != inf and (one or other) and one != inf, "a quotient that is no number")
        return Fraction(one) / Fraction(other) if other else inf

    @staticmethod
    def at_zero_rounded(how: Rounding, value: Fraction | float) -> Fraction | float:
        bits, emin, emax, top = how.shape
        if value > top * two(emax):
            need("sat_finite" in how.others or (value != inf and "saturate" in how.others), "a number overflows")
            return top * two(emax)
        value = Fraction(value)
        exponent = emin
        while two(exponent + 1) <= value:
            exponent += 1
        place = two(exponent + 1 - bits)
        ways = {"nearest_even": round, "toward_zero": floor, "up": ceil}
        found = ways[how.mode](value / place) * place
        return two(emin) if how.format in NO_ZERO and not found else found


def loses_of_blocks(data: TheoremData) -> None:
    """A chain of instructions from zero adds, of each, what it loses of its own products and of the sum so far."""
    text, step = Text(data["text"]), data["step"]
    result, after = text.named["d"], list[tuple[str, Any]]()
    while True:
        name, operands = text.called(result)
        if name == "sum":
            break
        if name in text.roundings:
            after.append(("round", text.roundings[name]))
            result = operands[0]
            continue
        need(name == "product", "a sum is not multiplied alone")
        (factor,) = [one for one in operands if "sum(" not in ast.unparse(ast.Expression(one))
                     and not (isinstance(one, ast.Name) and one.id in text.named)]  # fmt: skip
        (result,) = [one for one in operands if one is not factor]
        after.append(("times", factor))
    _, words = text.called(operands[0])
    a, b = (Block(text, word, data["reach"], data["spread"], data["zeros"]) for word in words)
    count, whole = ceil(Fraction(data["length"], step["length"])), data["length"] % step["length"] == 0
    most = a.most * b.most
    share, alone, size = _told(step["own"]), _told(step["own"], "scale_a scale_b"), _told(step["size"])
    rest = sum((Fraction(value) for names, _, value in step["own"] if not names), Fraction(0))
    need(whole or not alone, "factors of no elements count")
    growth = max(Fraction(step["growth"]), Fraction(1)) ** count
    share += count * Fraction(step["part"]) * size
    lost = growth * (share * most + alone * a.scale * b.scale / step["block"])
    ends = [max(side.scale * side.middle * two(data["reach"]), Fraction(side.idle)) for side in (a, b)]
    if a.idle or b.idle:
        rest += alone * max(a.idle * ends[1], ends[0] * b.idle) * (step["length"] // step["block"])
    rest, times, rows = growth * count * rest, a.middle * b.middle, [0, 0]
    for kind, what in reversed(after):
        if kind == "round":
            need(what.mode == "nearest_even" and not what.others, "a result is rounded in another way")
            lost, rest = lost + off(what)[1] * (most + lost), rest * (1 + off(what)[1]) + what.least
        elif (number := text.number(what)) is not None:
            times, rest = times * number, rest * number
        else:
            name, (side,) = text.called(what)
            need(name == "largest" and isinstance(side, ast.Name), "a sum is multiplied by something else")
            rows["ab".index(side.id)] += 1  # type: ignore[attr-defined]
            rest *= two(data["reach"])
    need(rows == [-a.rows, -b.rows], "largest magnitudes are left")
    found = times * lost + abs(1 - times) * most + a.lost + b.lost + a.lost * b.lost
    for claimed, least in ((data["share"], found), (data["rest"], rest)):
        need(least <= Fraction(claimed) <= least * SLACK, f"{float(least)}, and {float(Fraction(claimed))} is claimed")


def _told(form: Any, kind: str = "a b scale_a scale_b") -> Fraction:
    """The largest coefficient of such magnitudes at any place."""
    places: dict[int, Fraction] = {}
    for names, place, value in form:
        need(names in ("", "a b scale_a scale_b", "scale_a scale_b"), "an error in other magnitudes")
        if names == kind:
            places[place] = places.get(place, Fraction(0)) + Fraction(value)
    return max(places.values(), default=Fraction(0))
