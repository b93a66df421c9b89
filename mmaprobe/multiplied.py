"""Products computed in a framework's context: each product, for a listener, and the number of products of each kind."""

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
    """A product that a machine computed: patterns of A, B and D (blocks x M x K and so on), c as numbers that broadcast
    to D, patterns of scale factors; `place`: the part of the network that asked for it."""

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
    """The products of a context so far. `listener` receives each product; its arrays may change afterwards."""

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
        """Add one product; `arrays`: a, b, c, d and scales of `Multiplied`, for the listener."""
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
