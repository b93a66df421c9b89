"""Reads the map of a library that `identify --gemm --json` writes, and computes products by it: each element by the
plan of the first rule that speaks of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from mmaprobe.documents.identify import IdentifyGemm, IdentifyProduct, Limit
from mmaprobe.documents.reading import WrongDocumentError, read
from mmaprobe.queries.plans.rules import Feature, Kind, Numbers, Shape
from mmaprobe.smtmodel.base.errors import IncompleteError, InputError
from mmaprobe.smtmodel.base.jsontext import parse_json
from mmaprobe.smtmodel.evaluate.tiles import Matrix
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.reference import parse_reference

YAML = ".yaml"  # how the names of files with rules by hand end
WANTED = "what `identify --gemm --json` prints, nor a plan file, whose name ends in .yaml (`identify --gemm --save`)"


@dataclass(frozen=True)
class Within:
    """The condition that the value of a feature lies within one of some spans, ends included; None: no limit."""

    feature: Feature
    spans: tuple[tuple[int | None, int | None], ...]

    def holds(self, shape: Shape, rows: Numbers, columns: Numbers) -> NDArray[np.bool_]:
        """Which elements meet the condition, for their shape, rows and columns."""
        return self.among(self.feature.values(shape, rows, columns))

    def among(self, values: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which values lie within one of the spans."""
        found = np.zeros(values.shape, dtype=np.bool_)
        for low, high in self.spans:
            found |= (values >= (values if low is None else low)) & (values <= (values if high is None else high))
        return found


@dataclass(frozen=True)
class Reach:
    """The conditions of a rule, and the plan of the elements that meet all of them."""

    limits: tuple[Within, ...]
    plan: Plan


@dataclass(frozen=True)
class PlanMap:
    """The rules of a map that are relied on."""

    reference: str
    rules: tuple[Reach, ...]

    @property
    def plan(self) -> Plan:
        """One of its plans: all have the same formats."""
        return self.rules[0].plan

    def numbers_of(self, shape: Shape) -> NDArray[np.int64]:
        """The number of each element's rule (M x N), -1 for none."""
        rows, columns = (places.ravel() for places in np.indices((shape.rows, shape.columns)))
        found = np.full(len(rows), -1)
        for number, rule in enumerate(self.rules):
            own = np.ones(len(rows), dtype=np.bool_)
            for limit in rule.limits:
                own &= limit.holds(shape, rows, columns)
            found[own & (found < 0)] = number
        return found.reshape(shape.rows, shape.columns)

    def plans_of(self, shape: Shape) -> NDArray[np.int64]:
        """The same. Raises IncompleteError if an element has no rule that is relied on."""
        found = self.numbers_of(shape)
        if len(missing := np.argwhere(found < 0)):
            first = f"[{missing[0][0]}, {missing[0][1]}]"
            raise IncompleteError(
                f"{self.reference}: no rule that is relied on speaks of {len(missing)} of {found.size} elements of "
                f"{shape}, the first one {first}"
            )
        return found

    def product(self, shape: Shape, multiply: Callable[[Plan], Matrix]) -> Matrix:
        """The patterns of D (M x N), each element computed by its plan; `multiply`: the whole D of one plan. Raises
        IncompleteError if an element has no rule that is relied on."""
        own = self.plans_of(shape)
        results = {number: multiply(self.rules[number].plan) for number in np.unique(own).tolist()}
        d = np.zeros_like(next(iter(results.values())))
        for number, result in results.items():
            d[own == number] = result[own == number]
        return d


def read_map(path: Path) -> PlanMap | Plan:
    """The map in a file, the rules by hand in a YAML file, or the first of the plans found of a recorded product.
    Raises InputError for a file that is none of these, and where it has no plan, or no rule that is relied on."""
    if path.suffix == YAML:
        from mmaprobe.queries.plans.rulefile import read_rules  # which imports this module

        return read_rules(path)
    try:
        data = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"neither {WANTED}: {error}", str(path)) from None
    try:
        product = "rules" not in data and "looked_at" in data
        found: IdentifyGemm | IdentifyProduct = read(IdentifyProduct if product else IdentifyGemm, data)
        plans = {
            reference: parse_plan(text, f"{path}: {reference}", parse_reference)
            for reference, text in found.plans.items()
        }
        if isinstance(found, IdentifyProduct):
            return _of_product(plans, str(path))
        rules = tuple(
            Reach(tuple(map(_within, rule.limits)), plans[rule.plan or ""]) for rule in found.rules if rule.confirmed
        )
    except WrongDocumentError as error:
        raise InputError(f"{error}; neither {WANTED}", str(path), key=error.key) from None
    except (KeyError, TypeError, AttributeError):
        raise InputError(f"neither {WANTED}", str(path)) from None
    if not rules:
        raise InputError("a map without a rule that is relied on", str(path))
    return PlanMap(str(path), rules)


def rules_of(path: Path) -> PlanMap:
    """The rules of a map, or those by hand. Raises InputError, also for a recorded product, which has one shape."""
    found = read_map(path)
    if not isinstance(found, PlanMap):
        raise InputError("one recorded product: a map of a function, or rules by hand, has many shapes", str(path))
    return found


def _of_product(plans: Mapping[str, Plan], path: str) -> Plan:
    if not plans:
        raise InputError("no plan was found that gives the recorded product", path)
    return next(iter(plans.values()))


def _within(limit: Limit) -> Within:
    feature = Feature(cast(Kind, limit.kind), limit.of, limit.step, limit.turn)
    return Within(feature, tuple((low, high) for low, high in limit.spans) or ((limit.least, limit.most),))
