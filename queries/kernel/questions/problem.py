"""The difference of two models on an input: one definition for solvers and for replay."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from mmaprobe.queries.kernel.naming import model_text
from mmaprobe.smtmodel.arithmetic import ieee
from mmaprobe.smtmodel.arithmetic.decode import Unpacked, is_largest, is_normal, multiply, unpack
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import Target
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, all_of, any_of, constant, truth
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.model import Evaluation, Model, evaluate
from mmaprobe.smtmodel.evaluate.operands import Layout, Operands, layout_of
from mmaprobe.smtmodel.inputs.admitted import (
    Compare,
    ExponentRange,
    Inputs,
    check_comparable,
    check_inputs,
    with_one_addend,
    without_unread,
    zeros_of,
)
from mmaprobe.smtmodel.nodes import Round
from mmaprobe.smtmodel.nodes.node import Flaws
from mmaprobe.smtmodel.nodes.trace import Visit
from mmaprobe.smtmodel.operand import OPERANDS
from mmaprobe.smtmodel.units.unit import Memo


@dataclass(frozen=True)
class Problem:
    """Two models of the same input formats, the inputs that count, and how results are compared. Where one model does
    not read c, only inputs whose c is +0 count, and c has its format in the other model.

    Raises ParameterError if the two cannot be compared, or if no input is admitted.
    """

    left: Model
    right: Model
    inputs: Inputs = field(default_factory=Inputs)
    compare: Compare = "bits"

    def __post_init__(self) -> None:
        check_comparable(self.left, self.right, self.compare)
        for side, model in zip(("left", "right"), with_one_addend((self.left, self.right)), strict=True):
            object.__setattr__(self, side, model)
        object.__setattr__(self, "inputs", without_unread(self.inputs, self.models, self.length))
        check_inputs(self.inputs, self.left, self.length)

    @property
    def models(self) -> tuple[Model, ...]:
        """All models that take the inputs."""
        return self.left, self.right

    @property
    def length(self) -> int:
        return min(model.length for model in self.models)

    @property
    def zeros(self) -> dict[str, str]:
        """The operands of which zeros alone are admitted, each with the reason."""
        return zeros_of(self.inputs, self.models, self.length)

    @property
    def layout(self) -> Layout:
        """The inputs that all models take; a longer model reads zeros beyond them."""
        return layout_of(self.left, self.length, addend=all(model.addend for model in self.models))

    @property
    def focus(self) -> int | None:
        """The product that every small question must leave free."""
        return None

    @property
    def every(self) -> tuple[str, ...]:
        """The operands of which each side adds the results for every value."""
        return ()

    @property
    def signs_apart(self) -> bool:
        """Whether proofs want sums of positive and of negative magnitudes apart."""
        return False

    @property
    def in_rows(self) -> bool:
        """Whether proofs want products as the sums of their rows."""
        return False

    @property
    def sides(self) -> tuple[str, str]:
        """The two results in words."""
        return "left", "right"

    @property
    def stated(self) -> str:
        """That the two sides agree, in words."""
        return f"d of {model_text(self.left)} = d of {model_text(self.right)}"

    def evaluate(self, operands: Operands[Bits], traced: bool = True) -> tuple[Evaluation, Evaluation]:
        """Both sides on one input. `traced`: with their signals; without signals, operations that the sides share are
        evaluated once."""
        moved = self.moved(operands)
        memo: Memo | None = {} if moved is operands and not traced else None
        return evaluate_on(self.left, operands, traced, memo), evaluate_on(self.right, moved, traced, memo)

    def moved(self, operands: Operands[Bits]) -> Operands[Bits]:
        """The input of the right side: the same input, unless a property's problem says otherwise."""
        return operands

    def differ(self, left: Bits, right: Bits) -> Bit:
        """Whether two results differ as `compare` says; in bits, NaNs may differ only if both models write known
        patterns."""
        if self.compare == "value":
            return _differ_in_value(left, self.left.d, right, self.right.d)
        different = ~left.eq(right)
        if self.left.nan is not None and self.right.nan is not None:
            return different
        both_nan = unpack(left, self.left.d).is_nan & unpack(right, self.right.d).is_nan
        return different & ~both_nan

    def admits(self, operands: Operands[Bits]) -> Bit:
        """Whether an input counts."""
        return admits(self.inputs, self.left, operands)


@dataclass(frozen=True)
class AgainstAll(Problem):
    """One model against several at once: only inputs count on which the left model differs from each of `rest`, too."""

    rest: tuple[Model, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for model in self.rest:
            check_comparable(self.left, model, self.compare)
        left, right, *rest = with_one_addend(self.models)
        for name, value in (("left", left), ("right", right), ("rest", tuple(rest))):
            object.__setattr__(self, name, value)

    @property
    def models(self) -> tuple[Model, ...]:
        return (self.left, self.right, *self.rest)

    def admits(self, operands: Operands[Bits]) -> Bit:
        memo: Memo = {}
        left = evaluate_on(self.left, operands, False, memo).d
        others = [replace(self, right=model, rest=()) for model in self.rest]
        apart = [other.differ(left, evaluate_on(other.right, operands, False, memo).d) for other in others]
        return all_of([super().admits(operands), *apart])


@dataclass(frozen=True)
class Candidates(Problem):
    """Two candidates for one device, whose results are compared as the patterns that the device returns: of f32, and of
    e8m13, which it returns as f32."""

    def __post_init__(self) -> None:
        check_comparable(self.left, self.right, "value")
        if self.left.d.width != self.right.d.width:
            raise ParameterError("output", f"{self.left.d.name} and {self.right.d.name} have different widths")


@dataclass(frozen=True)
class Placed(Problem):
    """Two models on inputs in which all elements of a and b are +0 but those at `places`."""

    places: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        return len(self.places)

    def evaluate(self, operands: Operands[Bits], traced: bool = True) -> tuple[Evaluation, Evaluation]:
        whole = self.moved(operands)
        return evaluate_on(self.left, whole, traced), evaluate_on(self.right, whole, traced)

    def moved(self, operands: Operands[Bits]) -> Operands[Bits]:
        count, carrier = max(self.places) + 1, operands.c.carrier
        sides = []
        for given, fmt in ((operands.a, self.left.a), (operands.b, self.left.b)):
            side = [constant(carrier, 0, fmt.width)] * count
            for place, pattern in zip(self.places, given, strict=True):
                side[place] = pattern
            sides.append(tuple(side))
        return Operands(sides[0], sides[1], operands.c)

    def whole(self, operands: Operands[int]) -> Operands[int]:
        """The operands with the zeros at all other places."""
        a, b = (dict(zip(self.places, side, strict=True)) for side in (operands.a, operands.b))
        every = range(max(self.places) + 1)
        return Operands(tuple(a.get(k, 0) for k in every), tuple(b.get(k, 0) for k in every), operands.c)


def evaluate_on(
    model: Model, operands: Operands[Bits], traced: bool = True, memo: Memo | None = None, flaws: Flaws | None = None
) -> Evaluation:
    """A model on an input of at most its length; scale factors beyond the input belong to zero products. `traced`,
    `memo` and `flaws` as in `evaluate`."""
    carrier = operands.c.carrier
    rest = [
        [*side, *(constant(carrier, 0, model.formats[row.name].width) for _ in range(count - len(side)))]
        for row, side, count in list(zip(OPERANDS, operands.sides.values(), model.counts, strict=True))[3:]
    ]
    return evaluate(model, operands.a, operands.b, operands.c, *rest, memo=memo, traced=traced, flaws=flaws)


def _differ_in_value(left: Bits, left_format: Format, right: Bits, right_format: Format) -> Bit:
    wide = _holding(left_format, right_format)
    target = Target(wide, "nearest_even")
    x, y = (
        pattern if fmt == wide else ieee.convert(pattern, fmt, target)
        for pattern, fmt in ((left, left_format), (right, right_format))
    )
    first, second = unpack(x, wide), unpack(y, wide)
    same = x.eq(y) | (first.is_zero & second.is_zero) | (first.is_nan & second.is_nan)
    return ~same


def _holding(one: Format, other: Format) -> Format:
    """A format that has all numbers, infinities and NaNs of two formats: one of the two, where it is an IEEE format and
    has those of the other."""
    if one == other:
        return one
    for own, rest in ((one, other), (other, one)):
        fine = own.unit <= rest.unit and own.precision >= rest.precision
        if fine and own.specials == "ieee" and own.emin <= rest.emin and own.emax >= rest.emax:
            return own
    low, high = min(one.emin, other.emin), max(one.emax, other.emax)
    width = (high - low + 3).bit_length()
    return Format("both", width, max(one.fraction, other.fraction, 1), 1 - low, "ieee")


def admits(inputs: Inputs, model: Model, operands: Operands[Bits]) -> Bit:
    """Whether every operand that is read meets the restrictions; products (and the addend) fixed to zero need only be
    +0."""
    count = len(operands.a)
    conditions = [truth(operands.c.carrier, True)]
    special: list[Bit] = []
    restricted = inputs.model_copy(update={"zero_terms": (), "products_below_two": False}) != Inputs()
    for row, side in zip(OPERANDS, operands.sides.values(), strict=True):
        for k, pattern in enumerate(() if row.is_factor or row.is_drawn else side):
            index = count if row.name == "c" else k if row.per == "product" else None
            if index in inputs.zero_terms:
                conditions.append(pattern.equals(0))
            elif restricted and (row.name != "c" or model.addend):
                fmt = model.formats[row.name]
                value = unpack(pattern, fmt)
                conditions += _restrictions(inputs, value, fmt)
                special += [value.is_nan | value.is_infinite] if inputs.special else []
    if inputs.special:
        conditions.append(any_of([*special, truth(operands.c.carrier, False)]))
    if inputs.products_below_two:
        for x, y in zip(operands.a, operands.b, strict=True):
            conditions.append(~multiply(unpack(x, model.a).term, unpack(y, model.b).term).is_two_or_more)
    for row, side in zip(OPERANDS, operands.sides.values(), strict=True):
        factors = [unpack(scale, model.formats[row.name]) for scale in side if inputs.finite and row.is_factor]
        conditions += [~(factor.is_nan | factor.is_infinite) for factor in factors]
    return all_of(conditions)


def _restrictions(inputs: Inputs, value: Unpacked, fmt: Format) -> list[Bit]:
    conditions = []
    if inputs.finite or inputs.normal or inputs.exponents:  # what is not a number is not normal, and has no exponent
        conditions.append(~(value.is_nan | value.is_infinite))
    if inputs.nonnegative:
        conditions.append(~value.sign)
    if inputs.nonzero:
        conditions.append(~value.is_zero)
    if inputs.normal or inputs.exponents:
        conditions.append(is_normal(value, fmt.is_integer) | value.is_zero)
    if inputs.exponents:
        conditions.append(value.is_zero | _inside(value, inputs.exponents, fmt))
    return conditions


def _inside(value: Unpacked, window: ExponentRange, fmt: Format) -> Bit:
    bits = value.term.exponent.bits
    low, high = max(window.min, fmt.emin), min(window.max, fmt.emax)
    if low > high:
        return truth(bits.carrier, False)
    edges = [constant(bits.carrier, edge + fmt.bias, bits.width) for edge in (low, high)]
    return edges[0].ule(bits) & bits.ule(edges[1])


def is_beyond(visit: Visit) -> Bit:
    """Whether a value of an evaluation is infinite, a NaN, or as large as its format can hold, so that a rounding may
    have overflowed, or a product have reached its limit: no bound of the error is about such inputs."""
    value = visit.value
    special = value.is_infinite | value.is_nan
    if not isinstance(visit.node, Round):
        return special
    how, term = visit.node.rounding, value.term
    if how.loses_nan:  # the number that is written for a NaN, and so for an overflow
        nan = unpack(constant(value.sign.carrier, how.nan_pattern, how.format.width), how.format).term
        special |= term.significand.eq(nan.significand) & term.exponent.bits.eq(nan.exponent.bits)
    return special | is_largest(value, how.format)


def symbolic_operands(problem: Problem, carrier: TermCarrier, free: Sequence[int] | None = None) -> Operands[Bits]:
    """Symbols a0, b0, ..., c; products other than the `free` ones, and those fixed to zero, are constants."""
    layout = problem.layout
    bound = set[int]() if free is None else set(range(layout.length)) - set(free)
    return layout.split(symbols_of(layout, carrier, bound | set(problem.inputs.zero_terms)))


def symbols_of(layout: Layout, carrier: TermCarrier, zero_terms: Collection[int]) -> list[Bits]:
    """A symbol for each operand of a layout; for the operands of `zero_terms` (the index after the products is c) the
    constant zero."""
    free = free_names(layout, zero_terms)
    return [carrier.symbol(name, fmt.width) if name in free else constant(carrier, 0, fmt.width)
            for name, fmt in zip(layout.names, layout.formats, strict=True)]  # fmt: skip


def free_names(layout: Layout, zero_terms: Collection[int]) -> set[str]:
    """The operands of a layout that are read, without those of `zero_terms` (the index after the products is c)."""
    zero = {f"{side}{k}" for side in "ab" for k in zero_terms} | ({"c"} if layout.length in zero_terms else set())
    return set(layout.names) - zero - {layout.names[place] for place in layout.unread}


def free_values(layout: Layout, zero_terms: Collection[int], row: Sequence[int]) -> dict[str, str]:
    """The patterns of the operands of `free_names` in a row of a layout, in hexadecimal, by name."""
    names = free_names(layout, zero_terms)
    return {name: hex(pattern) for name, pattern in zip(layout.names, row, strict=True) if name in names}
