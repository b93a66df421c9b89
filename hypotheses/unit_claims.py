"""Claims about one unit, reduction or plan: a bound on its error, a property of `prove`, whether it overflows, whether
sums of integers wrap, whether slices lose more than a classical sum may."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, StrictInt

from mmaprobe.hypotheses.claim_file import Head, Statement, cases_of, located, stated
from mmaprobe.hypotheses.properties import Property, check_compared
from mmaprobe.hypotheses.schema import check_file_inputs
from mmaprobe.smtmodel.algorithms import parse_reduction, reference_of
from mmaprobe.smtmodel.algorithms.reductions import Reduction
from mmaprobe.smtmodel.base.yamlfile import Strict, YamlFile
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


class _OverflowFile(Head):
    """`overflow: smallest`: `numbers` is the least count of f32 numbers from 0 to below 1 whose sum can be infinite;
    `never`: the sum of `numbers` of them or fewer cannot be infinite."""

    reduction: str
    numbers: StrictInt = Field(gt=0, le=1 << 20)
    overflow: Literal["smallest", "never"]


class _Within(Strict):
    """The largest magnitudes of elements of A and of B."""

    a: StrictInt | None = Field(default=None, ge=0)
    b: StrictInt | None = Field(default=None, ge=0)


class _WrapFile(Head):
    """`wraps: smallest`: `products` is the least K at which a sum of products of integers can leave the range of its
    accumulator, where it wraps or saturates; `never`: no sum can for this K or a smaller one. `plan`: a plan, or a unit
    that takes K in tiles from +0. `within`: the largest magnitudes of the elements."""

    plan: str
    products: StrictInt = Field(gt=0, le=1 << 20)
    within: _Within = _Within()
    wraps: Literal["smallest", "never"]


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


class _PropertyFile(Head):
    """`property` of `model` on the inputs that `inputs` admits, as `mmaprobe prove --property`; "equal" has `other`."""

    model: str
    other: str | None = None
    property: Property
    inputs: Inputs = Inputs()
    compare: Compare | None = None


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
class OverflowClaim(Statement):
    """A claim about the overflow of a sum of numbers."""

    reduction: Reduction
    numbers: int
    overflow: Literal["smallest", "never"]

    @property
    def proved(self) -> int:
        """The count up to which no sum is to overflow."""
        return self.numbers - (self.overflow == "smallest")

    @property
    def text(self) -> str:
        wanted = {"smallest": "can overflow, fewer cannot", "never": "cannot overflow"}
        return f"{self.numbers} numbers from 0 to below 1 {wanted[self.overflow]}"

    @property
    def part_texts(self) -> dict[str, str]:
        return {"d": reference_of(self.reduction)}


@dataclass(frozen=True, kw_only=True)
class WrapClaim(Statement):
    """A claim about sums of integers that wrap or saturate."""

    plan: Plan
    products: int
    most_a: int | None
    most_b: int | None
    wraps: Literal["smallest", "never"]

    @property
    def proved(self) -> int:
        """The K up to which no sum is to wrap."""
        return self.products - (self.wraps == "smallest")

    @property
    def loss(self) -> str:
        """What becomes of a sum that is too large, in words."""
        return "wrap" if self.plan.adds_integers else "be rounded"

    @property
    def text(self) -> str:
        wanted = {"smallest": f"can {self.loss}, fewer cannot", "never": f"cannot {self.loss}"}
        sides = (("a", self.most_a), ("b", self.most_b))
        within = "".join(f", {side} within {most}" for side, most in sides if most is not None)
        return f"sums of {self.products} products of integers {wanted[self.wraps]}{within}"

    @property
    def part_texts(self) -> dict[str, str]:
        return {"d": self.plan.reference}


@dataclass(frozen=True, kw_only=True)
class ClassicalClaim(Statement):
    """A claim that errors are at most a multiple of the classical bound."""

    plan: Plan
    products: int
    spread: int
    span: int | None
    reach: int
    classical: int

    @property
    def text(self) -> str:
        near = f"elements from 2^-{self.spread} times the largest"
        near = near if self.span is None else f"max|a| max|b| <= 2^{self.span} max|a_k b_k|"
        return f"error(d) <= {self.classical} K u sum |a_k b_k|, K = {self.products}, {near}"

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
        """Operand -> the reason why only zeros are admitted for it."""
        return zeros_of(self.inputs, self.models, self.length)

    @property
    def text(self) -> str:
        said = self.inputs.model_dump(exclude_defaults=True)
        admitted = ", ".join(name if value is True else f"{name}: {value}" for name, value in said.items())
        return f"{self.wanted}" + (f" ({admitted})" if admitted else "")

    @property
    def part_texts(self) -> dict[str, str]:
        found = {"d": self.model.reference}
        return found if self.other is None else found | {"other": self.other.reference}


def bound_claims(file: YamlFile) -> Iterator[BoundClaim]:
    """The cases of a file with `error_bound`. Raises InputError."""
    for parsed, plain, case in cases_of(file, _BoundFile):
        model = _model(plain, "model", parsed.model)
        yield BoundClaim(**stated(parsed, plain, case), model=model, bound=parsed.error_bound)


def overflow_claims(file: YamlFile) -> Iterator[OverflowClaim]:
    """The cases of a file with `overflow`. Raises InputError."""
    for parsed, plain, case in cases_of(file, _OverflowFile):
        with located(plain, ("reduction",)):
            reduction = parse_reduction(parsed.reduction)
        head = stated(parsed, plain, case)
        yield OverflowClaim(**head, reduction=reduction, numbers=parsed.numbers, overflow=parsed.overflow)


def wrap_claims(file: YamlFile) -> Iterator[WrapClaim]:
    """The cases of a file with `wraps`. Raises InputError."""
    for parsed, plain, case in cases_of(file, _WrapFile):
        yield WrapClaim(
            **stated(parsed, plain, case), plan=_plan(plain, parsed.plan), products=parsed.products,
            most_a=parsed.within.a, most_b=parsed.within.b, wraps=parsed.wraps,
        )  # fmt: skip


def classical_claims(file: YamlFile) -> Iterator[ClassicalClaim]:
    """The cases of a file with `classical`. Raises InputError."""
    for parsed, plain, case in cases_of(file, _ClassicalFile):
        yield ClassicalClaim(
            **stated(parsed, plain, case), plan=_plan(plain, parsed.plan), products=parsed.products,
            spread=parsed.spread, span=parsed.span, reach=parsed.reach, classical=parsed.classical,
        )  # fmt: skip


def property_claims(file: YamlFile) -> Iterator[PropertyClaim]:
    """The cases of a file with `property`. Raises InputError."""
    for parsed, plain, case in cases_of(file, _PropertyFile):
        if (parsed.property == "equal") != (parsed.other is not None):
            raise plain.error(("property",), "equal is about two models, `model` and `other`; a property is of one")
        with located(plain, ("compare",)):
            check_compared(parsed.property, parsed.compare)
        other = None if parsed.other is None else _model(plain, "other", parsed.other)
        claim = PropertyClaim(
            **stated(parsed, plain, case), model=_model(plain, "model", parsed.model), other=other,
            wanted=parsed.property, inputs=parsed.inputs, compare=parsed.compare,
        )  # fmt: skip
        check_file_inputs(plain, claim.inputs, claim.model, claim.length)
        yield claim


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
