"""Values relative to a model, so that one question holds for any instruction.

A whole number may be written as a symbol of the model, alone or with one operation: `F+1`, `L/2`, `enough-1`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.base.errors import MmaprobeError, ParameterError, UnknownNameError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.families.parameters import PARAMETERS, parse_parameter
from mmaprobe.smtmodel.families.parts import Blocks
from mmaprobe.smtmodel.nodes import Constant, FusedSum
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.tables.reference import member_of, with_parameters

_TERM = re.compile(r"([A-Za-z][A-Za-z0-9]*)(?:([-+*/])([0-9]+))?")
_NUMBER = re.compile("-?[0-9]+")

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


class RetargetError(MmaprobeError):
    """A question whose hypotheses have no meaning for a model."""


def hypothesis_model(base: Model, values: Mapping[str, Any]) -> Model:
    """The base model with a hypothesis's parameters, relative values computed. Raises ParameterError and the other
    errors of `with_parameters`.

    `enough` and the words of `block_order` depend on the hypothesis's other parameters. All other symbols depend on the
    base model.
    """
    first = {name: _first_value(base, name, value) for name, value in values.items()}
    known = {name: value for name, value in first.items() if not isinstance(value, _Later)}
    later = {name: value for name, value in first.items() if isinstance(value, _Later)}
    if later:
        changed = with_parameters(base, known)
        known |= {name: value.value_for(changed) for name, value in later.items()}
    return with_parameters(base, {name: known[name] for name in values})


class _Later:
    """A value that depends on the other parameters of its hypothesis. `value_for`: the value for the model with these
    parameters."""

    def __init__(self, value_for: Callable[[Model], Any]) -> None:
        self.value_for = value_for


def _first_value(base: Model, name: str, value: Any) -> Any:
    row = PARAMETERS.get(name)
    if row is None or not isinstance(value, str) or value in row.names:
        return value
    if name == "block_order" and value in ORDERS:
        return _Later(lambda model: _order(model, value))
    if name == "product" and value == ROUNDED_INPUT:
        return _rounded_input(base)
    if row.low is None or _NUMBER.fullmatch(value) or (row.none and value == "none"):
        return value
    return _relative(base, name, value)


def _relative(base: Model, name: str, text: str) -> Any:
    """The value of a symbol, or of a symbol and an operation."""
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
    known = member_of(base).known
    value = {
        "F": known.get("fraction_bits"),
        "F2": known.get("late_fraction_bits"),
        "K": known["length"],
        "L": known["block"],
        "D": base.d.fraction,
        "floor": known.get("exponent_floor"),
    }[symbol]
    if symbol == "F" and (not isinstance(value, int) or known["align_rounding"] == "sticky"):
        raise ParameterError(name, "F: the model's sums keep every bit, so that it has no fraction_bits to start from")
    if value is None:
        raise ParameterError(
            name, f"{symbol}: the model has no {'exponent_floor' if symbol == 'floor' else 'late addend'}"
        )
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
    try:  # the error about a number out of range names the expression that gave the number
        parse_parameter(name, result)
        row = PARAMETERS[name]
        if row.low is not None and row.high is not None and not row.low <= result <= row.high:
            raise ParameterError(name, f"{result} is impossible; it takes {row.admits()}")
    except ParameterError as error:
        raise ParameterError(name, f"{text}: {error.message}") from None
    return result


def _order(model: Model, word: str) -> str | Blocks:
    """The order of products that a word of `ORDERS` stands for. `ascending`: the first product first; `descending`: the
    last product first; `strided`: step i adds the products k with k = i modulo the number of steps."""
    known = member_of(model).known
    length, block = known["length"], known["block"]
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
    """The least number n of carry bits such that no fused sum of the model reaches 2^(n + 1) times the power of two of
    its largest exponent."""
    known = member_of(model).known
    fused = [node for node in walk(model.unit.result) if isinstance(node, FusedSum)]
    bound = _largest_term(model, known) * (known["block"] // _group(known))
    if not any(isinstance(node.items[-1], Constant) for node in fused):  # the last term is an earlier result, or c
        bound += max(_largest_significand(fmt) for fmt in (model.c, model.d))
    if fused and known["align_rounding"] != "toward_zero":
        bound += Fraction(known["block"] + 1, 1 << known["fraction_bits"])
    bits = 0
    while bound >= 1 << (bits + 1):
        bits += 1
    return bits


def _largest_term(model: Model, known: Mapping[str, Any]) -> Fraction:
    """The largest significand of a term of the sum. A term is a product, or the exact sum of a group, times its scale
    factors."""
    product = known.get("product", "unnormalised")
    if product == "normalised":
        largest = 2 - Fraction(1, 1 << (model.a.fraction + model.b.fraction + 1))
    elif product != "unnormalised":
        largest = _largest_significand(format_named(product.removeprefix("rounded_")))
    else:
        largest = _largest_significand(model.a) * _largest_significand(model.b)
    if (group := _group(known)) > 1:  # the sum of a group is in fixed point, so it includes the products' exponents
        largest = _largest_value(model.a) * _largest_value(model.b) * group
    return largest if model.scale is None else largest * _largest_significand(model.scale) ** 2


def _group(known: Mapping[str, Any]) -> int:
    """The number of products that are scaled together."""
    return int(known.get("group", 1)) if "scale_format" in known else 1


def _largest_significand(fmt: Format) -> Fraction:
    return 2 - Fraction(1, 1 << fmt.fraction)


def _largest_value(fmt: Format) -> Fraction:
    fraction = fmt.largest_field & ((1 << fmt.fraction) - 1)
    return (1 + Fraction(fraction, 1 << fmt.fraction)) * Fraction(2) ** fmt.emax
