"""Claims in exact rationals: their texts evaluated by Python itself over tests/oracles/algorithm_oracle.py."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from gmpy2 import mpq

from mmaprobe.hypotheses.claim import Claim
from mmaprobe.smtmodel.algorithms.parts import Part
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.plans.multiword import Multiword, is_scheme, parse_scheme
from tests.oracles import algorithm_oracle as oracle
from tests.oracles.family_oracle import parameters_of
from tests.oracles.oracle import FORMATS, decode, evaluate, floor_log2

Run = Callable[[Sequence[int], Sequence[int], int], int]
SIZES = ((0, 0), (0, 1), (1, 0), (1, 1))


def unit_of(model: Model) -> oracle.Unit:
    formats = {side: getattr(model, side).name for side in "abcd"}
    return partial(evaluate, formats, parameters_of(model))


def run_of(part: Part, given: str) -> Run:
    """A part as a function of patterns, a and b in the format `given`."""
    (model,) = part.plan.models
    unit, length, source = unit_of(model), model.length, part.source.name

    def run(a: Sequence[int], b: Sequence[int], c: int) -> int:
        if given != source:
            a, b = ([oracle.convert(x, given, source, "nearest_even") for x in side] for side in (a, b))
        if not is_scheme(part.text):
            return oracle.gemm(unit, length, a, b, c)
        return algorithm_of(parse_scheme(part.text), model, unit)(a, b, c)

    return run


def algorithm_of(algorithm: Multiword, model: Model, unit: oracle.Unit) -> Run:
    length = model.length
    split = (algorithm.split, algorithm.words, algorithm.scale)

    def run(a: Sequence[int], b: Sequence[int], c: int) -> int:
        left = oracle.words(a, algorithm.source, model.a.name, *split)
        right = oracle.words(b, algorithm.source, model.b.name, *split)
        if algorithm.name == "markidis":
            assert (algorithm.products, algorithm.order, algorithm.addend) == (4, "small_first", "unit")
            return oracle.markidis(unit, length, left, right, c)
        if algorithm.name == "ootomo-yokota":
            assert algorithm.order == "large_first"
            return oracle.ootomo_yokota(unit, length, left, right, c, 11, algorithm.products == 4)
        if algorithm.chain != "all":
            assert algorithm.words == 1
            return oracle.chained(unit, length, left[0], right[0], c, algorithm.chain)
        order = [pair for pair in SIZES if sum(pair) <= {1: 0, 3: 1, 4: 2}[algorithm.products]]
        if algorithm.order == "small_first":
            order.sort(key=lambda pair: (-sum(pair), pair))
        return oracle.largest_first(unit, length, left, right, c, order)

    return run


class Rationals:
    """A claim on one input."""

    def __init__(self, claim: Claim, row: Sequence[int]) -> None:
        self.claim, self.row = claim, row
        terms, self.given = claim.terms, claim.shape.factors.name
        self.a, self.b, self.c = row[:terms], row[terms : 2 * terms], row[2 * terms]
        self.results = {
            name: run_of(part, self.given)(self.a, self.b, self.c) for name, part in claim.shape.parts.items()
        }
        self.formats = {name: part.result.name for name, part in claim.shape.parts.items()}
        self.addend = claim.shape.addend.name
        self.products = [decode(self.given, x).value * decode(self.given, y).value
                         for x, y in zip(self.a, self.b, strict=True)]  # fmt: skip
        self.last = decode(self.addend, self.c).value
        self.exact = self.last + sum(self.products, mpq(0))

    def decides(self) -> bool:
        """Whether the input meets the conditions and decides the claim."""
        held = self.truth(self.claim.file.data["claim"])
        met = all(self.truth(text) for text in self.claim.file.data["inputs"].get("where", []))
        return met and held == (self.claim.quantifier == "exists")

    def truth(self, text: str) -> bool:
        return bool(self.number(text))

    def number(self, text: str) -> Any:
        names: dict[str, Any] = {
            "a": [("in", x) for x in self.a], "b": [("in", x) for x in self.b], "c": ("c", self.c),
            **{name: (self.formats[name], d) for name, d in self.results.items()}, **{name: name for name in FORMATS},
            "error": lambda x: abs(self.value(x) - self.exact), "value": self.value, "exact": lambda: self.exact,
            "magnitude_sum": lambda: abs(self.last) + sum(map(abs, self.products), mpq(0)),
            "terms": lambda: len(self.products), "top": self.top, "ulp": self.ulp,
            "distance": lambda x, y: abs(self.ordinal(x) - self.ordinal(y)), "bits": lambda x: x[1],
            "finite": lambda x: decode(self.format_of(x), x[1]).kind == "finite",
            "zero": lambda x: self.every(x, lambda y: self.value(y) == 0),
            "nonzero": lambda x: self.every(x, lambda y: self.value(y) != 0),
            "nonnegative": lambda x: self.every(x, lambda y: not decode(self.format_of(y), y[1]).sign),
            "fits": lambda x, fmt: self.every(x, lambda y: not self.beyond(y, fmt)),
            "lacks": lambda x, fmt: self.every(x, lambda y: self.beyond(y, fmt) or self.value(y) == 0),
        }  # fmt: skip
        # powers of two with negative exponents must stay rationals, and decimals be exact
        decimal = r"[0-9]+([.][0-9]+)?[eE][+-]?[0-9]+|[0-9]+[.][0-9]+"
        rational = re.sub(decimal, r'mpq("\g<0>")', text.replace("2**", "Two**"))
        return eval(rational, {"Two": mpq(2), "mpq": mpq}, names)

    def format_of(self, x: Any) -> str:
        return str({"in": self.given, "c": self.addend}.get(x[0], x[0]))

    def value(self, x: Any) -> mpq:
        found = decode(self.format_of(x), x[1])
        assert found.kind == "finite"
        return found.value

    def ulp(self, x: Any) -> mpq:
        number = self.value(x) if isinstance(x, tuple) else x
        (fmt,) = set(self.formats.values())
        f = FORMATS[fmt]
        return mpq(2) ** (max(floor_log2(abs(number)), f.emin) - f.mantissa_bits) if number else mpq(0)

    def ordinal(self, x: Any) -> int:
        f = FORMATS[self.format_of(x)]
        body = (x[1] >> f.padding) & f.ones
        return -body if (x[1] >> f.padding) > f.ones else body

    def top(self) -> mpq:
        sums = [exponent_of(self.given, x) + exponent_of(self.given, y)
                for x, y, p in zip(self.a, self.b, self.products, strict=True) if p]  # fmt: skip
        sums += [exponent_of(self.addend, self.c)] if self.last else []
        return mpq(2) ** max(sums) if sums else mpq(0)

    def every(self, x: Any, test: Callable[[Any], bool]) -> bool:
        return all(map(test, x)) if isinstance(x, list) else test(x)

    def beyond(self, x: Any, fmt: str) -> bool:
        """Whether a normal number is not a multiple of the last place that the format would have at its exponent."""
        number = self.value(x)
        return (
            number != 0 and (number / mpq(2) ** (floor_log2(abs(number)) - FORMATS[fmt].mantissa_bits)).denominator != 1
        )


def exponent_of(fmt: str, pattern: int) -> int:
    return floor_log2(abs(decode(fmt, pattern).value))
