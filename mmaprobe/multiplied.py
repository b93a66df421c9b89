"""The products that a machine computes for a framework: each product, for a listener, and the counts of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.documents.emulate import Emulated, EmulatedProduct
from mmaprobe.machines import Machine, Patterns, ProductRequest
from mmaprobe.queries.plans.rules import Shape


def bits_of(numbers: NDArray[Any]) -> Patterns:
    """The bit patterns of numbers in a type of NumPy or ml_dtypes."""
    return np.ascontiguousarray(numbers).view(f"u{numbers.itemsize}")


@dataclass(frozen=True)
class Multiplied:
    """A product that a machine computed. `shape`: blocks, M, N and K; `a`, `b`, `d`: patterns (blocks x M x K, blocks x
    K x N, blocks x M x N); `c`: numbers that broadcast to D; `scales`: patterns of scale factors; `place`: the part of
    the network that asked for the product."""

    operator: str
    backward: bool
    place: str
    asked: ProductRequest
    shape: tuple[int, int, int, int]
    plans: tuple[str, ...]
    a: Patterns
    b: Patterns
    c: NDArray[Any] | None
    d: Patterns
    scales: Mapping[str, Patterns] | None = None


@dataclass
class Tally:
    """The products of a context so far, and how often the framework ran other operators (`native`, `unknown`).
    `listener` receives each product, whose arrays may change afterwards."""

    machine: Machine
    framework: str
    listener: Callable[[Multiplied], None] | None = None
    products: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    native: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)

    def plans_of(
        self, asked: ProductRequest, shape: tuple[int, int, int, int], addend: bool = False
    ) -> tuple[str, ...]:
        """The plans that compute a product (blocks, M, N, K). Raises UnsupportedProductError, and IncompleteError where
        a map has no rule."""
        rule = self.machine.rule_of(asked, shape, addend=addend)
        return () if 0 in shape else rule.plans_of(Shape(*shape[1:]))

    def add(
        self, operator: str, backward: bool, asked: ProductRequest, shape: tuple[int, int, int, int], addend: bool,
        after: str, arrays: Callable[[], Mapping[str, Any]],
    ) -> None:  # fmt: skip
        """Add one product. `arrays`: returns a, b, c, d and scales of `Multiplied`; it is called only for a
        listener."""
        plans = self.plans_of(asked, shape, addend)
        known = self.machine.rule_of(asked, shape, addend=addend).known_for(operator, shape, asked.layout)
        self.products[operator, backward, (asked.a, asked.b, asked.d), shape, plans, *known, after] += 1
        if self.listener is not None:
            self.listener(Multiplied(operator, backward, "", asked, shape, plans, **arrays()))

    @property
    def document(self) -> Emulated:
        """The document: the plan of each product, and the operators that the framework computed itself."""
        products = [
            EmulatedProduct(
                operator=operator, backward=backward, formats=formats, shape=shape, count=count, plans=plans,
                known=known, evidence=evidence, after=after,
            )
            for (operator, backward, formats, shape, plans, known, evidence, after), count in self.products.items()
        ]  # fmt: skip
        return Emulated(machine=self.machine.name, framework=self.framework, products=products,
                        native=dict(self.native), unknown=dict(self.unknown))  # fmt: skip

    def __str__(self) -> str:
        from mmaprobe.reports.emulated import emulated_lines

        return "\n".join(emulated_lines(self.document))
