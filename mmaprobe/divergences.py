"""The divergence of two machines in a network of any framework: the network's products one by one, each on both
machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.differences import FAR, bound_of, explained, steps_apart
from mmaprobe.documents.emulate import Diverged, Divergence, Explained
from mmaprobe.machines import Machine, Patterns, Rule, product_of
from mmaprobe.multiplied import Multiplied, bits_of
from mmaprobe.queries.plans.rules import Shape
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.numbers import to_numbers

ROWS = 256  # the most rows and columns of a product for which the bound is evaluated


@dataclass(frozen=True)
class Divergences:
    """The result of `diverge`. `str()` is a table, a notebook shows the picture. `document`: the findings as values;
    `results`: the model's results on both machines."""

    document: Diverged
    results: tuple[Any, Any] = field(repr=False)

    @property
    def first(self) -> Divergence | None:
        """The first product that differs; None if no product differs."""
        number = self.document.first
        return None if number is None else self.document.products[number]

    @property
    def svg(self) -> str:
        """The picture as an SVG document."""
        from mmaprobe.reports.diverged import diverged_drawing
        from mmaprobe.reports.drawings.svg import svg_of

        return svg_of(diverged_drawing(self.document))

    def html(self, path: str | Path | None = None) -> str:
        """The page as HTML; with `path`, also written to this file."""
        from mmaprobe.reports.diverged import diverged_page

        text = diverged_page(self.document)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        from mmaprobe.reports.diverged import diverged_lines

        return "\n".join(diverged_lines(self.document))


@dataclass
class Comparison:
    """A comparison of the products of a run on one machine, in their order, with products of the same factors on
    another machine. `bounds`: whether differences are compared with proved bounds."""

    one: Machine
    other: Machine
    bounds: bool
    rows: list[dict[str, Any]] = field(default_factory=list)
    results: list[tuple[Multiplied, Patterns]] = field(default_factory=list)
    explanation: Explained | None = None

    def first(self, seen: Multiplied) -> None:
        """Add a product of the first run."""
        twin = product_of(self.other, seen.asked, seen.a, seen.b, seen.c, seen.scales)[0]
        self.rows.append(_own_differences(seen, twin, self.one, self.other, self.bounds))
        if self.explanation is None and self.rows[-1]["own"]:
            self.explanation = _explained(seen, twin, self.one, self.other)
        self.results.append((seen, seen.d.copy()))

    def document(
        self, second: Sequence[Multiplied], framework: str, results: Sequence[tuple[NDArray[Any], NDArray[Any]]]
    ) -> Diverged:
        """The document. `second`: the products of the run on the other machine; `results`: the model's results on both.
        Raises ParameterError if the second run had other products."""
        if [seen.shape for seen, _ in self.results] != [seen.shape for seen in second]:
            raise ParameterError(
                "model", "it asked for other products the second time: its path depends on their results"
            )
        products = []
        for number, (row, (seen, d), twin) in enumerate(zip(self.rows, self.results, second, strict=True)):
            fmt = FORMATS[seen.asked.d]
            x, y = (to_numbers(side, fmt).astype(np.float64) for side in (d, twin.d))
            with np.errstate(all="ignore"):
                norm, apart = float(np.linalg.norm(x)), float(np.linalg.norm(x - y))
            products.append(Divergence(
                number=number, plans=(", ".join(seen.plans), ", ".join(twin.plans)), outputs=d.size,
                carried=int((d != twin.d).sum()), carried_ulps=whole_of(steps_apart(d, twin.d, fmt)),
                relative=apart / norm if norm else apart, **row,
            ))  # fmt: skip
        pairs = [(x, y) for x, y in results if x.size]
        with np.errstate(all="ignore"):
            largest = [float(np.abs(x.astype(np.float64) - y.astype(np.float64)).max()) for x, y in pairs]
        return Diverged(
            machines=(self.one.name, self.other.name), framework=framework, products=products,
            first=next((row.number for row in products if row.own), None), explained=self.explanation,
            outputs=sum(x.size for x, _ in pairs),
            differ=sum(int((bits_of(x) != bits_of(y)).sum()) for x, y in pairs), largest=max(largest, default=0.0),
        )  # fmt: skip


def whole_of(steps: NDArray[np.uint64]) -> int:
    """The largest of `steps` between numbers."""
    return int(steps[steps != FAR].max(initial=0))


def _own_differences(
    seen: Multiplied, twin: NDArray[Any], one: Machine, other: Machine, bounds: bool
) -> dict[str, Any]:
    """The fields of `Divergence` about differences that arise in this product, which both machines compute from the
    factors of the first run. `twin`: the results of the other machine."""
    asked, fmt = seen.asked, FORMATS[seen.asked.d]
    d, e = seen.d, bits_of(twin)
    differ = d != e
    with np.errstate(all="ignore"):
        apart = np.abs(to_numbers(np.ascontiguousarray(d), fmt).astype(np.float64) - twin.astype(np.float64))
    row: dict[str, Any] = {
        "module": seen.place, "operator": seen.operator, "backward": seen.backward,
        "formats": (asked.a, asked.b, asked.d), "shape": seen.shape, "own": int(differ.sum()),
        "own_ulps": whole_of(steps_apart(d, e, fmt)), "own_largest": float(np.nanmax(apart, initial=0.0)),
    }  # fmt: skip
    if bounds:
        row["bound"] = _share_of_bounds(seen, one, other, differ) if differ.any() else 0.0
    return row


def _share_of_bounds(seen: Multiplied, one: Machine, other: Machine, differ: NDArray[np.bool_]) -> float | None:
    """The largest |difference of the sums| as a share of the sum of both bounds, in the first block that differs. None
    if a bound is not known, or a rule rounds its inputs."""
    if seen.scales is not None:
        return None
    block = int(np.argwhere(differ)[0][0])
    rows = np.unique(np.argwhere(differ[block])[:, 0])[:ROWS]
    columns = np.unique(np.argwhere(differ[block][rows])[:, 1])[:ROWS]
    bits = [np.ascontiguousarray(side) for side in (seen.a[block][rows], seen.b[block][:, columns])]
    x, y = (to_numbers(side, FORMATS[name]) for side, name in zip(bits, (seen.asked.a, seen.asked.b), strict=True))
    sums, limits = [], []
    for machine in (one, other):
        rule = _rule(seen, machine)
        limit = bound_of(rule, x, y)
        if limit is None or rule.convert is not None:
            return None
        patterns = rule.product(bits[0][None], bits[1][None])[0]
        sums.append(patterns.view(f"f{patterns.itemsize}").astype(np.float64))
        limits.append(limit)
    apart, whole = np.abs(sums[0] - sums[1]), limits[0] + limits[1]
    return float(np.max(np.divide(apart, whole, out=np.zeros_like(apart), where=whole > 0)))


def _rule(seen: Multiplied, machine: Machine) -> Rule:
    return machine.rule_of(seen.asked, seen.shape)


def _explained(seen: Multiplied, twin: NDArray[Any], one: Machine, other: Machine) -> Explained | None:
    """The element with the largest difference in units in the last place, reduced to few terms. `twin`: the results of
    the other machine."""
    steps = steps_apart(seen.d, bits_of(twin), FORMATS[seen.asked.d])
    places = np.argwhere(steps > 0)
    place = places[int(np.argmax(steps[tuple(places.T)]))] if len(places) else np.zeros(3, int)
    block, row, column = (int(x) for x in place)
    left, right = (_rule(seen, machine) for machine in (one, other))
    if (left.plan.a.name, right.plan.a.name) != (seen.asked.a, seen.asked.a):
        return None  # a rule that rounds its inputs takes patterns of another format
    a, b = np.ascontiguousarray(seen.a[block, row]), np.ascontiguousarray(seen.b[block, :, column])
    scales = None if seen.scales is None else {
        name: np.ascontiguousarray(side[block, row] if name == "scale_a" else side[block, :, column])
        for name, side in seen.scales.items()}  # fmt: skip
    return explained(left, right, a, b, (block, row, column), Shape(*seen.shape[1:]), scales)
