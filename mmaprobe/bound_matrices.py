"""A proved bound evaluated for matrices in f64: products of magnitudes, each result rounded up."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.kernel.bounds.forms import EXACT, Factor, Form, Monomial
from mmaprobe.queries.kernel.bounds.wording import up_float

Numbers = NDArray[np.float64]
TINY = 2.0**-1074  # the smallest positive number of f64: a smaller product may become 0


class Magnitudes:
    """Upper bounds of magnitudes of matrices A (M x K), B (K x N) and C (M x N) and of sums of their products, a whole
    matrix at once. `least`: the smallest normal number of each operand's format.

    A sum of n nonnegative products, computed in f64 in any order, is at least 1 - n 2^-53 times the exact sum, apart
    from products below 2^-1074, which are lost: n times 2^-1074 is added for them."""

    def __init__(self, a: Numbers, b: Numbers, c: Numbers, least: dict[str, float]) -> None:
        self.given, self.least, self.k = {"a": a, "b": b, "c": c}, least, a.shape[1]
        self.sizes: dict[tuple[str, bool], Numbers] = {}
        self.up = 1 + (self.k + 64) * 2.0**-52

    def size(self, name: str, raised: bool) -> Numbers:
        """The magnitudes of an operand, those that are not zero raised to the smallest normal number if `raised`."""
        if (name, raised) not in self.sizes:
            plain = np.abs(self.given[name])
            lifted = np.maximum(plain, self.least[name]) if raised else plain
            self.sizes[name, raised] = np.where(plain > 0, lifted, 0.0)
        return self.sizes[name, raised]

    def exact(self) -> Numbers:
        """The magnitude |C + A B| as f64 computes it, plus the largest error of this computation."""
        with np.errstate(all="ignore"):
            sizes = np.abs(self.given["a"] @ self.given["b"] + self.given["c"])
            every = self.sum(("a", False), ("b", False), np.arange(self.k)) + self.size("c", False)
            near = sizes + every * ((self.k + 64) * 2.0**-52) + (self.k + 4) * TINY
            return np.where(np.isfinite(sizes), np.minimum(near, every), every)

    def sum(self, left: tuple[str, bool], right: tuple[str, bool], places: NDArray[np.int64]) -> Numbers:
        """An upper bound of the sums of products of two sizes over some places of K."""
        one, other = self.size(*left)[:, places], self.size(*right)[places]
        return np.asarray((one @ other) * self.up + (self.k + 4) * TINY)

    def one(self, factor: Factor) -> Numbers:
        """A magnitude, for every element of the result."""
        if factor.name == EXACT:
            return self.exact()
        size = self.size(factor.name, factor.raised)
        if factor.name == "c":
            return size
        return size[:, [factor.offset]] if factor.name == "a" else size[[factor.offset]]

    def monomial(self, item: Monomial) -> Numbers:
        product: Any = np.ones((1, 1))
        for factor in item:
            product = product * self.one(factor) * self.up + TINY
        return np.asarray(product)


def is_evaluated(form: Form) -> bool:
    """Whether a form contains only magnitudes of a, b, c and the exact result."""
    return all(
        factor.name in ("a", "b", "c", EXACT) and not factor.factors
        for atom in form.parts for item in atom for factor in item
    )  # fmt: skip


def evaluated(form: Form, sizes: Magnitudes) -> Numbers:
    """An upper bound, for every element of the result, of the value of a form whose magnitudes are of single elements,
    each at a place of K."""
    groups: dict[tuple[tuple[str, bool], tuple[str, bool], Fraction], list[int]] = {}
    total: Any = np.zeros(sizes.given["c"].shape)
    with np.errstate(all="ignore"):
        for atom, value in form.parts.items():
            (item, *others) = atom
            names = [factor.name for factor in item]
            if not others and names == ["a", "b"] and item[0].offset == item[1].offset:
                kind = ("a", item[0].raised), ("b", item[1].raised), value
                groups.setdefault(kind, []).append(item[0].offset)
            else:
                largest = sizes.monomial(item)
                for other in others:
                    largest = np.maximum(largest, sizes.monomial(other))
                total = total + largest * up_float(value) * sizes.up + TINY
        for (left, right, value), places in groups.items():
            total = total + sizes.sum(left, right, np.array(places)) * up_float(value) * sizes.up + TINY
        return np.asarray(total * (1 + (len(form.parts) + 4) * 2.0**-52))


def summed(form: Form, sizes: Magnitudes) -> Numbers:
    """An upper bound, for every element of the result, of the value of a form whose magnitudes stand for sums over all
    products, as in the bound of a plan."""
    total: Any = np.zeros(sizes.given["c"].shape)
    every = np.arange(sizes.k)
    with np.errstate(all="ignore"):
        for (item,), value in form.flat().parts.items():
            factors = {factor.name: factor for factor in item}
            size: Any = np.ones((1, 1))
            if {"a", "b"} <= factors.keys():
                size = sizes.sum(("a", factors["a"].raised), ("b", factors["b"].raised), every)
            elif "a" in factors:
                size = sizes.size("a", factors["a"].raised).sum(1, keepdims=True) * sizes.up
            elif "b" in factors:
                size = sizes.size("b", factors["b"].raised).sum(0, keepdims=True) * sizes.up
            for name in factors.keys() & {"c", EXACT}:
                size = size * sizes.one(factors[name]) * sizes.up + TINY
            total = total + size * up_float(value) * sizes.up + TINY
        return np.asarray(total * (1 + (len(form.parts) + 4) * 2.0**-52))
