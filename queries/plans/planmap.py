"""The rules of a map, which say which plan computes which element of a product. Each rule has conditions on the element
and its shape, and the first rule that holds counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaprobe.documents.identify import Layout
from mmaprobe.queries.plans.rules import Feature, Numbers, Shape
from mmaprobe.smtmodel.base.errors import IncompleteError
from mmaprobe.smtmodel.evaluate.tiles import Matrix
from mmaprobe.smtmodel.plans import Plan


@dataclass(frozen=True)
class Within:
    """The condition that the value of a feature lies within one of some spans, ends included; None: no limit."""

    feature: Feature
    spans: tuple[tuple[int | None, int | None], ...]

    def holds(self, shape: Shape, rows: Numbers, columns: Numbers) -> NDArray[np.bool_]:
        """For each element, given by its row and column in a shape, whether it meets the condition."""
        return self.among(self.feature.values(shape, rows, columns))

    def among(self, values: NDArray[np.int64]) -> NDArray[np.bool_]:
        """For each value, whether it lies within one of the spans."""
        inside = np.zeros(values.shape, dtype=np.bool_)
        for low, high in self.spans:
            inside |= (values >= (values if low is None else low)) & (values <= (values if high is None else high))
        return inside


@dataclass(frozen=True)
class Reach:
    """The conditions of a rule, and the plan of the elements that meet all of them."""

    limits: tuple[Within, ...]
    plan: Plan


def numbers_in(own: NDArray[np.int64]) -> list[int]:
    """The rule numbers that `PlanMap.plans_of` gives, each once; a large product often has only one."""
    numbers: list[int] = np.unique(own[:1, :1] if own.strides == (0, 0) else own).tolist()
    return numbers


@dataclass(frozen=True)
class PlanMap:
    """The rules of a map that are relied on, for matrices that lie in memory as in `layout`."""

    reference: str
    rules: tuple[Reach, ...]
    layout: Layout = "nn"

    @property
    def plan(self) -> Plan:
        """The plan of the first rule. All plans of a map have the same formats."""
        return self.rules[0].plan

    def numbers_of(self, shape: Shape) -> NDArray[np.int64]:
        """The number of each element's rule (M x N), -1 for none."""
        alike = all(limit.feature.of_shape for rule in self.rules for limit in rule.limits)
        size = (1, 1) if alike else (shape.rows, shape.columns)
        rows, columns = (places.ravel() for places in np.indices(size))
        numbers = np.full(len(rows), -1)
        for number, rule in enumerate(self.rules):
            own = np.ones(len(rows), dtype=np.bool_)
            for limit in rule.limits:
                own &= limit.holds(shape, rows, columns)
            numbers[own & (numbers < 0)] = number
        return np.broadcast_to(numbers.reshape(size), (shape.rows, shape.columns))

    def plans_of(self, shape: Shape) -> NDArray[np.int64]:
        """The number of each element's rule (M x N), as of `numbers_of`. Raises IncompleteError if an element has no
        rule that is relied on."""
        numbers = self.numbers_of(shape)
        if len(missing := np.argwhere(numbers < 0)):
            first = f"[{missing[0][0]}, {missing[0][1]}]"
            raise IncompleteError(
                f"{self.reference}: no rule that is relied on speaks of {len(missing)} of {numbers.size} elements of "
                f"{shape}, the first one {first}"
            )
        return numbers

    def product(self, shape: Shape, multiply: Callable[[Plan], Matrix]) -> Matrix:
        """The patterns of D (M x N), each element computed by its plan. `multiply`: gives the whole D of one plan.
        Raises IncompleteError if an element has no rule that is relied on."""
        own = self.plans_of(shape)
        results = {number: multiply(self.rules[number].plan) for number in numbers_in(own)}
        d = np.zeros_like(next(iter(results.values())))
        for number, result in results.items():
            d[own == number] = result[own == number]
        return d
