"""Features of vectors, from which conditions are learnt: of the operands, of the products and terms in the order of
their sizes, of the exact sum, and of the signals of a unit's datapath."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.building.answers import BUILT
from mmaprobe.queries.search.samples import Table
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.digits import is_digits
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.evaluate.batch import Patterns, evaluate_lanes, sides_of, to_integers
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import in_f64, nans
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.nodes import Constant, Each, Element, ExactSum, Index, Product, Round
from mmaprobe.smtmodel.nodes.trace import Kind as Signals
from mmaprobe.smtmodel.nodes.trace import Part, Stage
from mmaprobe.smtmodel.units.unit import Unit

Flags = NDArray[np.bool_]
Places = NDArray[np.int64]

ALONE = 4  # the most products that are named one by one
LONG = 64  # the most products with which signals are looked at
SIZES = (Stage.MAXIMUM, Stage.SUM)  # stages whose exponents are looked at
LOW = -(1 << 20)  # in place of the exponent of a zero


class Feature(NamedTuple):
    """A flag or a number of each vector. `yes` and `no`: the words for a flag that is set, and not set; or for a number
    that is at least, and below, the bound put in for {}. `cost`: grows with the distance from the operands."""

    values: Places
    yes: str
    no: str
    cost: float


def features_of(asked: Signature, unit: Unit, rows: Table) -> dict[str, Feature]:
    """The features of vectors, by name."""
    found = _Features(asked, rows)
    found.say_operands()
    found.say_products()
    found.say_kinds()
    if asked.addend:
        found.say_addend()
    if 1 < asked.length <= ALONE:
        found.say_terms("", by_field=False, more=0.0)
        found.say_terms("by exponent fields, ", by_field=True, more=0.2)
    if asked.length <= LONG:
        found.say_signals(unit, rows)
    assert all(len(feature.values) == len(rows) for feature in found.by_name.values())
    return found.by_name


class _Features:
    """Features of vectors; each method adds some."""

    def __init__(self, asked: Signature, rows: Table) -> None:
        length = asked.length
        sides = {"a": rows[:, :length], "b": rows[:, length : 2 * length], "c": rows[:, 2 * length : 2 * length + 1]}
        formats = {"a": asked.a, "b": asked.b, "c": asked.c}
        self.asked, self.by_name = asked, dict[str, Feature]()
        self.read = {name: _Numbers(side, formats[name]) for name, side in sides.items() if name != "c" or asked.addend}
        self.products = self.read["a"].times(self.read["b"])

    def _flag(self, name: str, values: NDArray[np.generic], yes: str, no: str, cost: float) -> None:
        self.by_name[name] = Feature(np.asarray(values).astype(np.int64), yes, no, cost)

    def _size(self, name: str, values: Places, what: str, cost: float) -> None:
        self.by_name[name] = Feature(values, f"{what} is at least 2^{{}}", f"{what} is below 2^{{}}", cost)

    def _number(self, name: str, one: _Numbers, place: int, what: str, cost: float) -> None:
        for kind, values, yes, no in (
            ("zero", one.zero, "is +-0", "is not zero"),
            ("negative", one.negative, "has a minus sign", "has a plus sign"),
            ("special", one.special, "is infinite or NaN", "is finite"),
            ("subnormal", one.subnormal, "is subnormal", "is not subnormal"),
        ):
            self._flag(f"{name} {kind}", values[:, place], f"{what} {yes}", f"{what} {no}", cost)
        self._size(name, one.exponent[:, place], f"|{what}|", cost)
        if len(name) > 1 and name[0] in "ab" and is_digits(name[-1]):
            low, high = f"{what} has at least {{}} significant bits", f"{what} has fewer than {{}} significant bits"
            self.by_name[f"{name} bits"] = Feature(one.bits[:, place], low, high, 1.2)

    def say_operands(self) -> None:
        """Each element of short vectors by itself, and whether some are subnormal."""
        if self.asked.addend:
            self._number("c", self.read["c"], 0, "c", 1.0)
        for side in "ab":
            one = self.read[side]
            for place in range(self.asked.length if self.asked.length <= ALONE else 0):
                self._number(f"{side}{place}", one, place, f"{side}{place}", 1.1)
            self._flag(f"{side} subnormal", one.subnormal.any(axis=1), f"an element of {side} is subnormal",
                       f"no element of {side} is subnormal", 1.0)  # fmt: skip

    def say_products(self) -> None:
        """Each product of short vectors by itself, the largest and the least, zeros and signs among them."""
        length, products = self.asked.length, self.products
        for place in range(length if 1 < length <= ALONE else 0):
            self._number(f"product {place}", products, place, f"product {place}", 1.0)
        self._size("largest", products.exponent.max(axis=1), self._largest, 0.9)
        every = "the product" if length == 1 else "every product"
        last = np.minimum(products.last.min(axis=1), self.read["c"].last[:, 0] if self.asked.addend else -LOW)
        what = "term has a bit below 2^{}" if self.asked.addend else "product has a bit below 2^{}"
        self.by_name["finest"] = Feature(last, f"no {what}", f"a {what}", 1.0)
        if length == 1:
            bits = self.read["a"].bits[:, 0] + self.read["b"].bits[:, 0]
            self.by_name["bits"] = Feature(bits, "a0 and b0 have at least {} significant bits together",
                                           "a0 and b0 have fewer than {} significant bits together", 1.1)  # fmt: skip
        self._flag("no product", products.zero.all(axis=1), f"{every} is +-0", "a product is not zero", 0.9)
        if length == 1:
            return
        least = np.where(products.zero, -LOW, products.exponent).min(axis=1)
        self._size("least", least, "every nonzero product", 1.0)
        plus, minus = "has a plus sign", "has a minus sign"
        for name, values, yes, no in (
            ("a zero", products.zero.any(axis=1), "a product is +-0", "no product is zero"),
            ("minus", products.negative.all(axis=1), f"every product {minus}", f"a product {plus}"),
            ("plus", (~products.negative).all(axis=1), f"every product {plus}", f"a product {minus}"),
        ):
            self._flag(name, values, yes, no, 1.0)

    @property
    def _largest(self) -> str:
        return "the product" if self.asked.length == 1 else "the largest product"

    def say_kinds(self) -> None:
        """Whether some operand is infinite, NaN or subnormal."""

        def some(kind: str) -> Flags:
            return np.asarray(np.any([getattr(one, kind).any(axis=1) for one in self.read.values()], axis=0))

        self._flag("special", some("special"), "an operand is infinite or NaN", "every operand is finite", 0.8)
        self._flag("nan", some("nan"), "an operand is NaN", "no operand is NaN", 0.9)
        self._flag("tiny", some("subnormal"), "an operand is subnormal", "no operand is subnormal", 0.8)
        self._flag("zero", some("zero"), "an operand is +-0", "no operand is +-0", 0.9)
        what = "below the smallest normal number"
        small = some("subnormal") | some("zero")
        self._flag("small", small, f"an operand is {what}", f"no operand is {what}", 0.9)

    def say_addend(self) -> None:
        """The products compared with c."""
        largest, c = self.products.exponent.max(axis=1), self.read["c"]
        both = (largest > LOW) & (c.exponent[:, 0] > LOW)
        self._size("apart", np.where(both, largest - c.exponent[:, 0], LOW), f"{self._largest} over c", 1.2)
        if self.asked.length == 1:
            self._flag("opposite", self.products.negative[:, 0] != c.negative[:, 0],
                       "not all products have the sign of c", "all products and c have one sign", 1.1)  # fmt: skip

    def say_terms(self, order: str, by_field: bool, more: float) -> None:
        """The terms in the order of their exponents, or of their exponent fields, in which subnormal numbers have the
        exponent of the smallest normal number. `order`: the words for the order; `more`: the cost of the order."""
        terms = self.products.beside(self.read["c"]) if self.asked.addend else self.products
        ranked = terms.ordered(terms.field if by_field else terms.exponent)
        own = ranked.field if by_field else ranked.exponent
        what = f"{order}the largest term has a"
        self._flag(f"{order}first negative", ranked.negative[:, 0], f"{what} minus sign", f"{what} plus sign",
                   1.1 + more)  # fmt: skip
        for at, pair in enumerate(pairwise(("largest", "second", "third")[: own.shape[1]])):
            self._say_neighbours(ranked, own, at, order, *pair, 1.1 + more)
        if by_field:
            self._say_over("the exponent field of the largest term over the second", own[:, 0], ranked.exponent[:, 1],
                           1.2 + more)  # fmt: skip
        self._say_rest(ranked, own, order, 1.2 + more)
        what = f"the last bit of {order}the largest term"
        self._size(what, ranked.last[:, 0], what, 1.2 + more)

    def _say_over(self, what: str, larger: Places, smaller: Places, cost: float) -> None:
        self._size(what, np.where(smaller > LOW, larger - smaller, LOW), what, cost)

    def _say_neighbours(
        self, ranked: _Numbers, own: Places, at: int, order: str, larger: str, smaller: str, cost: float
    ) -> None:
        """A term and the next smaller one."""
        self._say_over(f"{order}the {larger} term over the {smaller}", own[:, at], own[:, at + 1], cost)
        what, one = f"{order}the {larger} and the {smaller} term", f"{order}the {smaller} term"
        opposite = ranked.negative[:, at] != ranked.negative[:, at + 1]
        self._flag(f"{what} have", opposite, f"{what} have opposite signs", f"{what} have one sign", cost)
        self._flag(f"{what} cancel", ranked.cancel(at), f"{what} cancel", f"{what} do not cancel", cost)
        self._flag(f"{one} zero", ranked.zero[:, at + 1], f"{one} is +-0", f"{one} is not zero", cost)

    def _say_rest(self, ranked: _Numbers, own: Places, order: str, cost: float) -> None:
        """The sum of all terms but the largest."""
        rest, first = ranked.values[:, 1:].sum(axis=1), np.where(ranked.negative[:, 0], -1, 1)
        what = f"{order}the sum of all but the largest term"
        self._flag(f"{what} with", np.sign(rest) == first, f"{what} has its sign", f"{what} has not its sign", cost)
        self._flag(f"{what} zero", rest == 0, f"{what} is zero", f"{what} is not zero", cost)
        self._flag(f"{what} against", np.sign(rest) == -first, f"{what} has the other sign",
                   f"{what} has not the other sign", cost)  # fmt: skip
        below = np.where(rest == 0, LOW, np.frexp(np.where(rest == 0, 1.0, rest))[1] - 1)
        over = np.where((rest == 0) | (own[:, 0] == LOW), LOW, own[:, 0] - below)
        what = f"{order}the largest term over the sum of all others"
        self._size(what, over, what, cost)

    def say_signals(self, unit: Unit, rows: Table) -> None:
        """The result of the unit, the exact sum, and the signals of the unit's datapath."""
        count, given = len(rows), sides_of(self.asked, rows)

        def flag(values: NDArray[np.generic], yes: str, no: str, cost: float) -> None:
            self._flag(yes, values, yes, no, cost)

        evaluation = evaluate_lanes(Model(BUILT, unit), *given)
        self._say_result("the unit's result", to_integers(evaluation.d, count), unit.d, 1.1)
        if unit.scale is None:
            ends = [to_integers(evaluate_lanes(Model(BUILT, _exact(unit, mode)), *given, traced=False).d, count)
                    for mode in ("toward_zero", "up", "down")]  # fmt: skip
            self._say_result("the exact sum", ends[0], unit.d, 1.0)
            flag(ends[1] != ends[2], "the exact sum is no result", "the exact sum is a result", 1.0)
        for signal in evaluation.trace:
            name, value = str(signal.name), signal.value
            if signal.kind is Signals.FLAG:
                flag(to_integers(value, count), f"the signal {name} is set", f"the signal {name} is not set", 1.6)
            elif signal.kind is Signals.NUMBER and isinstance(value, Bits) and value.width <= 64:
                words = to_integers(value, count)
                flag(words == 0, f"the signal {name} is zero", f"the signal {name} is not zero", 1.5)
                if signal.name.part is not Part.SIGNIFICAND:
                    low = words & np.uint64(1)
                    flag(low, f"the last bit of {name} is set", f"the last bit of {name} is clear", 1.7)
            elif isinstance(value, Bits) and signal.kind is Signals.EXPONENT and signal.name.stage in SIZES:
                exponents, width = to_integers(value, count).astype(np.int64), value.width
                signed = np.where(exponents >> (width - 1) & 1, exponents - (1 << width), exponents) + signal.offset
                yes, no = f"the signal {name} is at least {{}}", f"the signal {name} is below {{}}"
                self.by_name[name] = Feature(signed, yes, no, 1.6)

    def _say_result(self, name: str, patterns: Patterns, fmt: Format, cost: float) -> None:
        one = _Numbers(patterns[:, None], fmt)
        for values, yes, no in ((one.zero, "is +-0", "is not zero"), (one.negative, "is negative", "is positive"),
                                (one.subnormal, "is subnormal", "is not subnormal"),
                                (one.special, "is infinite or NaN", "is finite")):  # fmt: skip
            self._flag(f"{name} {yes}", values[:, 0], f"{name} {yes}", f"{name} {no}", cost)
        self._size(name, one.exponent[:, 0], f"|{name}|", cost)


class _Numbers:
    """Signs, exponents, kinds and significant bits of some numbers, shape (vectors, numbers)."""

    def __init__(self, patterns: Table, fmt: Format) -> None:
        values = in_f64(patterns, fmt)
        self.nan = nans(patterns, fmt)
        self.special = self.nan | ~np.isfinite(values)
        sized = np.where(self.special, 1.0, np.abs(values))
        self.negative = (patterns & np.uint64(fmt.sign_bit)) != 0
        self.zero = (sized == 0) & ~self.special
        self.mantissa, exponents = np.frexp(sized)
        self.exponent = np.where(self.zero, LOW, exponents.astype(np.int64) - 1)
        self.subnormal = ~self.zero & ~self.special & (self.exponent < fmt.emin)
        whole = (self.mantissa * 2.0**53).astype(np.int64)
        self.bits = np.where(whole == 0, 0, 54 - np.frexp((whole & -whole).astype(np.float64))[1])
        self.field = np.where(self.zero, LOW, np.maximum(self.exponent, fmt.emin))

    def times(self, other: _Numbers) -> _Numbers:
        """The products of these numbers and others."""
        product = object.__new__(_Numbers)
        product.nan = self.nan | other.nan
        product.special = self.special | other.special
        product.negative, product.zero = self.negative ^ other.negative, self.zero | other.zero
        mantissa = self.mantissa * other.mantissa
        exact = self.exponent + other.exponent + (mantissa >= 0.5)
        product.mantissa = np.where(mantissa < 0.5, 2 * mantissa, mantissa)
        product.exponent = np.where(product.zero, LOW, exact)
        product.field = np.where(product.zero, LOW, self.field + other.field)
        product.bits = self.bits + other.bits - (mantissa < 0.5)
        product.subnormal = np.zeros_like(product.zero)
        return product

    def ordered(self, exponents: Places) -> _Numbers:
        """The numbers of each vector, in descending order of `exponents`."""
        order = np.argsort(-exponents, axis=1, kind="stable")
        return self._each(lambda values: np.take_along_axis(values, order, axis=1))

    def beside(self, other: _Numbers) -> _Numbers:
        """These numbers, then others, for each vector."""
        return self._each(lambda values, more: np.concatenate([values, more], axis=1), other)

    def _each(self, change: Callable[..., Any], *others: _Numbers) -> _Numbers:
        made = object.__new__(_Numbers)
        for name, values in vars(self).items():
            setattr(made, name, change(values, *(getattr(other, name) for other in others)))
        return made

    @property
    def values(self) -> NDArray[np.float64]:
        """The numbers; an infinity or a NaN, also as a factor, counts as 1 with its sign."""
        sizes = np.ldexp(self.mantissa, np.where(self.zero, 0, self.exponent + 1))
        return np.where(self.zero, 0.0, np.where(self.negative, -sizes, sizes))

    @property
    def last(self) -> Places:
        """The exponent of the last bit that is set; for a zero, one above all exponents."""
        return np.where(self.zero, -LOW, self.exponent - self.bits + 1)

    def cancel(self, at: int) -> Flags:
        """Whether two neighbouring numbers add up to zero without being zeros."""
        one, other = (slice(None), at), (slice(None), at + 1)
        same = (self.mantissa[one] == self.mantissa[other]) & (self.exponent[one] == self.exponent[other])
        return np.asarray(same & ~self.zero[one] & (self.negative[one] != self.negative[other]))


def _exact(unit: Unit, mode: Literal["toward_zero", "up", "down"]) -> Unit:
    """The exact sum of the products and c, rounded to the format of results."""
    loop = Index(0, ((1, 1),))
    terms = Each(1, range(unit.length), Product(Element("a", loop), Element("b", loop)))
    total = ExactSum((terms, Element("c") if unit.addend else Constant()))
    node = Round(total, replace(unit.rounding, mode=mode, overflow="ieee", subnormals="keep", zero="ieee"))
    return unit.computing(node)
