"""Claims about one unit, reduction or plan: a bound on its error, a property of `prove`, whether it overflows, whether
sums of integers wrap, whether slices lose more than a classical sum may."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, StrictInt

from mmaprobe.hypotheses.claim_file import Head, Statement
from mmaprobe.hypotheses.properties import Property, check_compared
from mmaprobe.hypotheses.schema import check_file_inputs
from mmaprobe.smtmodel.algorithms import parse_reduction, reference_of
from mmaprobe.smtmodel.algorithms.reductions import Reduction
from mmaprobe.smtmodel.base.yamlfile import Strict, YamlFile, located
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Compare, Inputs, zeros_of
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.plan_files import beside
from mmaprobe.smtmodel.tables.reference import names_plan, parse_plan_reference, parse_reference

BOUNDS = {"loose": "error <= (L + 1) * u + ulp(d)", "tight": "error <= (L - 1) * u + max(u, ulp(d))"}


class _BoundFile(Head):
    """`error_bound`: the bound on the error for every finite input of `model`, which sums L products and c with F
    fraction bits; u = 2^(largest exponent - F). loose: (L + 1)u + ulp(d); tight: (L - 1)u + max(u, ulp(d))."""

    expect: Literal["holds"]
    model: str
    error_bound: Literal["loose", "tight"]

    def statement(self, file: YamlFile, stated: dict[str, Any]) -> BoundClaim:
        return BoundClaim(**stated, model=_model(file, "model", self.model), bound=self.error_bound)


class _OverflowFile(Head):
    """`overflow: smallest`: `numbers` is the least count of f32 numbers from 0 to below 1 whose sum can be infinite;
    `never`: the sum of `numbers` such numbers, or of fewer, cannot be infinite."""

    reduction: str
    numbers: StrictInt = Field(gt=0, le=1 << 20)
    overflow: Literal["smallest", "never"]

    def statement(self, file: YamlFile, stated: dict[str, Any]) -> OverflowClaim:
        with located(file, ("reduction",)):
            reduction = parse_reduction(self.reduction)
        return OverflowClaim(**stated, reduction=reduction, count=self.numbers, asked=self.overflow)


class _Within(Strict):
    """The largest magnitudes of elements of A and of B."""

    a: StrictInt | None = Field(default=None, ge=0)
    b: StrictInt | None = Field(default=None, ge=0)


class _WrapFile(Head):
    """`wraps: smallest`: `products` is the least K at which a sum of products of integers can leave the range of its
    accumulator, where it wraps or saturates; `never`: no sum can leave it for this K or a smaller K. `plan`: a plan, or
    a unit that takes K in tiles from +0. `within`: the largest magnitudes of the elements."""

    plan: str
    products: StrictInt = Field(gt=0, le=1 << 20)
    within: _Within = _Within()
    wraps: Literal["smallest", "never"]

    def statement(self, file: YamlFile, stated: dict[str, Any]) -> WrapClaim:
        return WrapClaim(
            **stated, plan=_plan(file, self.plan), count=self.products, most_a=self.within.a, most_b=self.within.b,
            asked=self.wraps,
        )  # fmt: skip


class _ClassicalFile(Head):
    """`classical`: with K products, c = 0 and no element smaller than 2^-spread times the largest element of its row or
    column, the error is at most `classical` times K u sum |a_k b_k|; the largest elements are from 2^-reach to 2^reach,
    and u is 2^-53 if d is in f64. With `span` instead of `spread`: the bound holds where the product of the largest
    elements of a row and a column is at most 2^span times the largest of their products, also for fewer than K
    products."""

    plan: str
    products: StrictInt = Field(gt=0, le=1 << 20)
    spread: StrictInt = Field(default=0, ge=0, le=1 << 10)
    span: StrictInt | None = Field(default=None, ge=0, le=1 << 10)
    reach: StrictInt = Field(default=100, ge=0, le=1 << 10)
    classical: StrictInt = Field(gt=0)

    def statement(self, file: YamlFile, stated: dict[str, Any]) -> ClassicalClaim:
        return ClassicalClaim(
            **stated, plan=_plan(file, self.plan), count=self.products, spread=self.spread, span=self.span,
            reach=self.reach, classical=self.classical,
        )  # fmt: skip


class _PropertyFile(Head):
    """`property` of `model` on the inputs that `inputs` admits, as `mmaprobe prove --property`; "equal" has `other`."""

    model: str
    other: str | None = None
    property: Property
    inputs: Inputs = Inputs()
    compare: Compare | None = None

    def statement(self, file: YamlFile, stated: dict[str, Any]) -> PropertyClaim:
        if (self.property == "equal") != (self.other is not None):
            raise file.error(("property",), "equal is about two models, `model` and `other`; a property is of one")
        with located(file, ("compare",)):
            check_compared(self.property, self.compare)
        other = None if self.other is None else _model(file, "other", self.other)
        claim = PropertyClaim(
            **stated, model=_model(file, "model", self.model), other=other, wanted=self.property, inputs=self.inputs,
            compare=self.compare,
        )  # fmt: skip
        check_file_inputs(file, claim.inputs, claim.model, claim.length)
        return claim


@dataclass(frozen=True, kw_only=True)
class BoundClaim(Statement):
    """A bound on the error of a model over all finite inputs."""

    model: Model
    bound: Literal["loose", "tight"]

    @property
    def text(self) -> str:
        return BOUNDS[self.bound]

    @property
    def units(self) -> tuple[int, bool]:
        """How many units u the error may have, and whether ulp(d) is added to them; if not, max(u, ulp(d)) is added."""
        return (self.model.length + 1, True) if self.bound == "loose" else (self.model.length - 1, False)

    @property
    def part_texts(self) -> dict[str, str]:
        return {"d": self.model.reference}


@dataclass(frozen=True, kw_only=True)
class CountClaim(Statement):
    """A claim about sums of a count of terms: that the count is the smallest at which an event can happen (an overflow,
    a wrap, too large an error), or that the event never happens at this count."""

    count: int
    asked: Literal["smallest", "never"]

    @property
    def proved(self) -> int:
        """The count up to which the event is claimed never to happen."""
        return self.count - (self.asked == "smallest")


@dataclass(frozen=True, kw_only=True)
class OverflowClaim(CountClaim):
    """A claim about the overflow of a sum of numbers."""

    reduction: Reduction

    @property
    def text(self) -> str:
        wanted = {"smallest": "can overflow, fewer cannot", "never": "cannot overflow"}
        return f"{self.count} numbers from 0 to below 1 {wanted[self.asked]}"

    @property
    def part_texts(self) -> dict[str, str]:
        return {"d": reference_of(self.reduction)}


@dataclass(frozen=True, kw_only=True)
class WrapClaim(CountClaim):
    """A claim about sums of integers that wrap or saturate."""

    plan: Plan
    most_a: int | None
    most_b: int | None

    @property
    def loss(self) -> str:
        """What becomes of a sum that is too large, in words."""
        return "wrap" if self.plan.adds_integers else "be rounded"

    @property
    def text(self) -> str:
        wanted = {"smallest": f"can {self.loss}, fewer cannot", "never": f"cannot {self.loss}"}
        sides = (("a", self.most_a), ("b", self.most_b))
        within = "".join(f", {side} within {most}" for side, most in sides if most is not None)
        return f"sums of {self.count} products of integers {wanted[self.asked]}{within}"

    @property
    def part_texts(self) -> dict[str, str]:
        return {"d": self.plan.reference}


@dataclass(frozen=True, kw_only=True)
class ClassicalClaim(CountClaim):
    """A claim that errors are at most a multiple of the classical bound."""

    asked: Literal["never"] = "never"
    plan: Plan
    spread: int
    span: int | None
    reach: int
    classical: int

    @property
    def text(self) -> str:
        near = f"elements from 2^-{self.spread} times the largest"
        near = near if self.span is None else f"max|a| max|b| <= 2^{self.span} max|a_k b_k|"
        return f"error(d) <= {self.classical} K u sum |a_k b_k|, K = {self.count}, {near}"

    @property
    def part_texts(self) -> dict[str, str]:
        return {"d": self.plan.reference}


@dataclass(frozen=True, kw_only=True)
class PropertyClaim(Statement):
    """A property of a model, or the equality of two models, on admitted inputs."""

    model: Model
    other: Model | None
    wanted: Property
    inputs: Inputs
    compare: Compare | None

    @property
    def length(self) -> int:
        """The number of products of an input."""
        return min(model.length for model in self.models)

    @property
    def models(self) -> tuple[Model, ...]:
        """The model, and the model `other` that it is to be equal to."""
        return (self.model,) if self.other is None else (self.model, self.other)

    @property
    def zeros(self) -> dict[str, str]:
        return zeros_of(self.inputs, self.models, self.length)

    @property
    def text(self) -> str:
        restrictions = self.inputs.model_dump(exclude_defaults=True)
        admitted = ", ".join(name if value is True else f"{name}: {value}" for name, value in restrictions.items())
        return f"{self.wanted}" + (f" ({admitted})" if admitted else "")

    @property
    def part_texts(self) -> dict[str, str]:
        found = {"d": self.model.reference}
        return found if self.other is None else found | {"other": self.other.reference}


#: key of a claim file -> what the file holds; a file without these keys is about algorithms
UNIT_CLAIMS: Mapping[str, type[Head]] = {
    "classical": _ClassicalFile,
    "error_bound": _BoundFile,
    "overflow": _OverflowFile,
    "property": _PropertyFile,
    "wraps": _WrapFile,
}


def _plan(file: YamlFile, text: str) -> Plan:
    """A plan, or a unit that takes K in tiles from +0."""
    with located(file, ("plan",)):
        reference = beside(Path(file.name).parent, text)
        if names_plan(reference):
            return parse_plan_reference(reference)
        return Plan.chained(parse_reference(reference), from_zero=True)


def _model(file: YamlFile, key: str, text: str) -> Model:
    with located(file, (key,)):
        return parse_reference(text)
