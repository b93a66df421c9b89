"""Values relative to a model, so that one question holds for any instruction.

A whole number may be written as a symbol of the model, alone or with one operation: `F+1`, `L/2`, `enough-1`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from smtmodel.accumulator import PARAMETERS, Accumulator, BlockOrder, parse_parameter
from smtmodel.dot import Model
from smtmodel.errors import MmaprobeError, ParameterError, UnknownNameError
from smtmodel.formats import Format
from smtmodel.reference import with_parameters

_TERM = re.compile(r"([A-Za-z][A-Za-z0-9]*)(?:([-+*/])(\d+))?")
_NUMBER = re.compile(r"-?\d+")
_DEFAULTS = Accumulator(length=1, block=1)

#: symbol -> meaning
SYMBOLS: dict[str, str] = {
    "F": "fraction_bits of the model",
    "F2": "late_fraction_bits of the model",
    "K": "length of the model",
    "L": "block of the model",
    "D": "fraction bits of the format of the model's results",
    "floor": "exponent_floor of the model",
    "enough": "least carry_bits with which no sum of the hypothesis wraps",
}
ORDERS = ("ascending", "descending", "strided")
ROUNDED_INPUT = "rounded_input"
LATER = ("enough", "block_order")  # what depends on the hypothesis's other parameters


class RetargetError(MmaprobeError):
    """A question that makes no sense for a model."""


def hypothesis_model(base: Model, values: Mapping[str, Any]) -> Model:
    """The base model with a hypothesis's parameters, relative values computed. Raises ParameterError and others.

    `enough` and the words of `block_order` see the hypothesis's other parameters; every other symbol is the base's.
    """
    first = {name: _first_value(base, name, value) for name, value in values.items()}
    known = {name: value for name, value in first.items() if not isinstance(value, _Later)}
    later = {name: value for name, value in first.items() if isinstance(value, _Later)}
    if later:
        changed = with_parameters(base, known)
        known |= {name: value.of(changed) for name, value in later.items()}
    return with_parameters(base, {name: known[name] for name in values})


class _Later:
    """A value that waits for the other parameters of its hypothesis."""

    def __init__(self, of: Callable[[Model], Any]) -> None:
        self.of = of


def _first_value(base: Model, name: str, value: Any) -> Any:
    row = PARAMETERS.get(name)
    if row is None or not isinstance(value, str) or value in row.names:
        return value
    if name == "block_order" and value in ORDERS:
        return _Later(lambda model: _order(model.accumulator, value))
    if name == "product" and value == ROUNDED_INPUT:
        return _rounded_input(base)
    if row.low is None or _NUMBER.fullmatch(value) or (row.none and value == "none"):
        return value
    return _relative(base, name, value)


def _relative(base: Model, name: str, text: str) -> Any:
    """The number that a symbol, or a symbol and an operation, stands for."""
    match = _TERM.fullmatch(text)
    if match is None:
        raise ParameterError(
            name,
            f"{text!r} is impossible; it takes {PARAMETERS[name].admits()}, or one of {', '.join(SYMBOLS)} "
            "with at most one of + - * / and a whole number, without blanks (F+1)",
        )
    symbol, sign, amount = match.groups()
    if symbol not in SYMBOLS:
        raise ParameterError(name, str(UnknownNameError("symbol", symbol, SYMBOLS)))
    if symbol == "enough":
        return _Later(lambda model: _calculated(name, text, enough_carry_bits(model), sign, amount))
    return _calculated(name, text, _symbol(base, name, symbol), sign, amount)


def _symbol(base: Model, name: str, symbol: str) -> int:
    accumulator = base.accumulator
    if symbol == "F2" and accumulator.addend != "late":
        raise ParameterError(name, "F2: the model has no late addend")
    if symbol == "F" and (accumulator.exact_sum or accumulator.fraction_bits == "exact"):
        raise ParameterError(name, "F: the model's sums keep every bit, so that it has no fraction_bits to start from")
    if symbol == "floor" and accumulator.exponent_floor is None:
        raise ParameterError(name, "floor: the model has no exponent_floor")
    value = {
        "F": accumulator.fraction_bits,
        "F2": accumulator.late_fraction_bits,
        "K": accumulator.length,
        "L": accumulator.block,
        "D": base.d.fraction,
        "floor": accumulator.exponent_floor,
    }[symbol]
    assert isinstance(value, int)
    return value


def _calculated(name: str, text: str, value: int, sign: str | None, amount: str | None) -> int:
    if sign is None or amount is None:
        return value
    number = int(amount)
    if sign == "/":
        if number == 0 or value % number:
            raise ParameterError(name, f"{text}: {value} is not a multiple of {number}")
        return value // number
    result = {"+": value + number, "-": value - number, "*": value * number}[sign]
    try:  # a number out of range says where it is from
        parse_parameter(name, result)
        row = PARAMETERS[name]
        if row.low is not None and row.high is not None and not row.low <= result <= row.high:
            raise ParameterError(name, f"{result} is impossible; it takes {row.admits()}")
    except ParameterError as error:
        raise ParameterError(name, f"{text}: {str(error).removeprefix(f'{name}: ')}") from None
    return result


def _order(accumulator: Accumulator, word: str) -> str | BlockOrder:
    """`ascending`: as they come; `descending`: the last product first; `strided`: step i takes k = i modulo the
    number of steps."""
    length, block = accumulator.length, accumulator.block
    if word == "ascending":
        return "contiguous"
    products = list(range(length))
    steps = length // block
    ordered = products[::-1] if word == "descending" else [k for i in range(steps) for k in products[i::steps]]
    return tuple(tuple(ordered[start : start + block]) for start in range(0, length, block))


def _rounded_input(base: Model) -> str:
    names = PARAMETERS["product"].names
    wanted = f"rounded_{base.a.name}"
    if base.a != base.b:
        raise ParameterError("product", f"{ROUNDED_INPUT}: the inputs are {base.a.name} and {base.b.name}")
    if wanted not in names:
        raise ParameterError("product", f"{ROUNDED_INPUT}: rounding to {base.a.name} is not modelled")
    return wanted


def enough_carry_bits(model: Model) -> int:
    """The least n with which the magnitude of no fused sum reaches 2^(n + 1) units of the maximum exponent."""
    accumulator = model.accumulator
    bound = _largest_term(model) * (accumulator.block // _group(accumulator))
    if accumulator.addend == "fused" or (accumulator.addend == "after" and accumulator.block < accumulator.length):
        bound += max(_largest_significand(fmt) for fmt in (model.c, model.d))
    if accumulator.align_rounding not in ("toward_zero", "sticky") and isinstance(accumulator.fraction_bits, int):
        bound += Fraction(accumulator.block + 1, 1 << accumulator.fraction_bits)
    bits = 0
    while bound >= 1 << (bits + 1):
        bits += 1
    return bits


def _largest_term(model: Model) -> Fraction:
    """The largest significand that a term of the sum may have: a product, or the exact sum of a group, scaled."""
    accumulator, fmt = model.accumulator, model.accumulator.product_format
    if accumulator.product == "normalised":
        largest = 2 - Fraction(1, 1 << (model.a.fraction + model.b.fraction + 1))
    elif fmt is not None:
        largest = _largest_significand(fmt)
    else:
        largest = _largest_significand(model.a) * _largest_significand(model.b)
    if accumulator.grouping == "scale_blocks":  # fixed point: the exponents of its products stay in the group
        largest = _largest_value(model.a) * _largest_value(model.b) * accumulator.group
    return largest if model.scale is None else largest * _largest_significand(model.scale) ** 2


def _group(accumulator: Accumulator) -> int:
    return accumulator.group if accumulator.grouping == "scale_blocks" else 1


def _largest_significand(fmt: Format) -> Fraction:
    return 2 - Fraction(1, 1 << fmt.fraction)


def _largest_value(fmt: Format) -> Fraction:
    fraction = fmt.largest_field & ((1 << fmt.fraction) - 1)
    return (1 + Fraction(fraction, 1 << fmt.fraction)) * Fraction(2) ** fmt.emax


def without_idle(accumulator: Accumulator) -> Accumulator:
    """The accumulator with every parameter that another one leaves without effect at its default."""
    names: list[str] = []
    if accumulator.addend != "late":
        names += ["late_fraction_bits", "late_sum_bits", "late_rounding", "late_small_addend"]
    summing = accumulator.operation in ("fused_dot", "exact_dot") and accumulator.addend != "after"
    if summing and accumulator.zero_sign != "ieee":  # such sums do not see the signs of zeros
        names += ["input_zeros"]
    if accumulator.product_format is None:
        names += ["product_rounding"]
    if accumulator.grouping not in ("scale_blocks", "pairwise"):
        names += ["group"]
    if accumulator.scale_format is None:
        names += ["scale_block"]
    if accumulator.exponent_floor is None:
        names += ["floor_applies_to"]
    return replace(accumulator, **_defaults(*names))


def _defaults(*names: str) -> dict[str, Any]:
    return {name: getattr(_DEFAULTS, name) for name in names}
