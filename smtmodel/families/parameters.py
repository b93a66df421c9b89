"""The parameters of all families by their names in files and on the command line, with their meanings and values.

Each family takes some of the parameters (smtmodel/families/functions.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mmaprobe.smtmodel.arithmetic.formats import FORMATS, format_named, is_spelling
from mmaprobe.smtmodel.arithmetic.rounding import MODES, RESULT_MODES, RESULT_OVERFLOWS, mode_named
from mmaprobe.smtmodel.base.digits import is_digits, is_whole
from mmaprobe.smtmodel.base.errors import CARRY_BITS, EXPONENTS, ParameterError, UnknownNameError, nearest

FAMILY = "family"  # the parameter that names the function
FAMILIES = (
    "t-fdpa", "st-fdpa", "gst-fdpa", "emulated-fp8",
    "tr-fdpa", "gtr-fdpa", "e-fdpa", "rvbna", "grid-fdpa", "fma-chain", "ftz-addmul",
)  # fmt: skip
SCALES = ("ue8m0", "ue4m3")
OUTPUTS = ("f32", "f16", "e8m13", "f64")
ZERO_SIGNS = ("positive", "ieee", "always_positive")
_ROUNDED = tuple(f"rounded_{fmt.name}" for fmt in FORMATS.values() if fmt.specials == "ieee")


def assignments(parts: Iterable[str]) -> dict[str, str]:
    """The values by name of `name=value` texts. Raises ParameterError for any other text, and for a name given
    twice."""
    values: dict[str, str] = {}
    for part in parts:
        name, _, value = (piece.strip() for piece in part.partition("="))
        if not name or not value:
            raise ParameterError(name or "@", "a parameter is written name=value")
        if name in values:
            raise ParameterError(name, "given twice")
        values[name] = value
    return values


@dataclass(frozen=True)
class Parameter:
    """The meaning of a parameter, and the kinds of values that it takes: `names`, whole numbers from `low` to `high`,
    true or false (`boolean`), `none`, a bit pattern in hexadecimal (`pattern`), a list of lists of product numbers
    (`order`), or formats; `formats` is the text before a format's name, None if the parameter takes no format."""

    meaning: str
    names: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
    boolean: bool = False
    none: bool = False
    pattern: bool = False
    order: bool = False
    formats: str | None = None

    def admits(self) -> str:
        """The values that the parameter takes, in words."""
        parts = list(self.names)
        if self.low is not None:
            parts.append(f"a whole number from {self.low} to {self.high}")
        if self.order:
            parts.append("a list of blocks, each a list of product numbers (0-1:2-3)")
        if self.pattern:
            parts.append("a bit pattern in hexadecimal")
        if self.formats is not None:
            parts.append(f"{self.formats}FORMAT for another format")
        parts += ["true", "false"] * self.boolean + ["none"] * self.none
        return ", ".join(parts[:-1]) + " or " + parts[-1] if len(parts) > 1 else parts[0]


PARAMETERS: dict[str, Parameter] = {
    FAMILY: Parameter("how products and addend are summed; it says which of the others there are", FAMILIES),
    "length": Parameter("K: products in the instruction", low=1, high=1024),
    "block": Parameter("L: products fused in one step; steps are chained", low=1, high=1024),
    "fraction_bits": Parameter("F: bits kept below the unit of the maximum exponent", ("exact",), 1, 64),
    "carry_bits": Parameter("the sum is kept in F + 1 + n bits and a sign, and wraps", ("exact",), *CARRY_BITS),
    "product": Parameter("the product's significand", ("unnormalised", "normalised", *_ROUNDED), formats="rounded_"),
    "product_rounding": Parameter("how a rounded product is rounded", MODES),
    "product_overflow": Parameter("an exact product of magnitude 2^n or more is infinite", (), *EXPONENTS, none=True),
    "align_rounding": Parameter("what happens to bits shifted out of one term", (*MODES, "sticky")),
    "late_fraction_bits": Parameter("F2: bits kept of the products' sum when a late addend joins", low=1, high=64),
    "late_sum_bits": Parameter(
        "bits kept below the leading one of the sum with a late addend", low=1, high=64, none=True
    ),
    "late_rounding": Parameter("how sums are cut when a late addend joins", MODES),
    "late_small_addend": Parameter("an addend more than F + 1 places below the sum", ("keep", "cut")),
    "block_order": Parameter("which products each block takes", ("contiguous", "interleaved_pairs"), order=True),
    "group": Parameter("products that are scaled, aligned, or added in pairs, as one group", low=1, high=1024),
    "scale_format": Parameter("format of the scale factors", SCALES, none=True, formats=""),
    "scale_block": Parameter("products that share one pair of scale factors", low=1, high=1024),
    "partials": Parameter("whether partial sums are rounded after every addition", ("unnormalised", "normalised")),
    "step_sums": Parameter("the sum of a step's products, before the addend joins", ("rounded", "kept")),
    "downscale": Parameter("n: the sum of a step's products is divided by 2^n", low=0, high=127),
    "exponent_floor": Parameter("exponent that a zero term brings to the maximum", (), *EXPONENTS, none=True),
    "floor_applies_to": Parameter(
        "what exponent_floor is: the exponent of zero terms, or the least maximum", ("zero_terms", "maximum")
    ),
    "output": Parameter("format of the result", OUTPUTS, formats=""),
    "output_rounding": Parameter("rounding of the result", RESULT_MODES),
    "random_bits": Parameter("N: random bits that stochastic rounding is given", low=2, high=64, none=True),
    "flush_inputs": Parameter("subnormal inputs are read as +0", boolean=True),
    "input_zeros": Parameter("sign of zero inputs", ("signed", "positive")),
    "input_format": Parameter(
        "format to which the factors are converted before they are multiplied", ("own",), formats=""
    ),
    "input_rounding": Parameter("rounding of that conversion", MODES),
    "flush_outputs": Parameter("subnormal results become zero", boolean=True),
    "zero_sign": Parameter("sign of an exact zero sum, or (always_positive) of every zero result", ZERO_SIGNS),
    "overflow": Parameter("result beyond the largest finite number", RESULT_OVERFLOWS),
    "nan": Parameter("pattern of a NaN result (none: the format's quiet NaN)", none=True, pattern=True),
}


def letter_hint(name: str) -> str:
    """The end of a message about an unknown name: the parameter with this letter in papers (F, L); else empty."""
    meant = next((known for known, row in PARAMETERS.items() if row.meaning.startswith(f"{name}: ")), None)
    return f" ({name} is {meant})" if meant else ""


#: how near a name is to a known one, from 0 to 1, if it is a misspelling
MISSPELT = 0.8


def change_hint(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name that is no misspelling of a known one: that units have changes that no
    reference expresses; else empty."""
    if nearest(name, known, MISSPELT):
        return ""
    return " (a change that `compare` or `cover` names: `mmaprobe show MODEL --change NAME=VALUE` prints its unit file)"


def check_parameter(name: str, value: Any, table: Mapping[str, Parameter] = PARAMETERS) -> None:
    """Raises ParameterError for a value that the parameter `name` of `table` does not take."""
    row = table[name]
    if isinstance(value, bool):
        fits = row.boolean
    elif isinstance(value, int):
        fits = (row.pattern and value >= 0) or (row.low is not None and row.low <= value <= (row.high or 0))
    else:
        fits = value in row.names or (value is None and row.none) or (isinstance(value, tuple) and row.order)
        fits = fits or (value is not None and _of_format(name, value, row) == value)
    if not fits:
        raise _impossible(name, format_parameter(value), row)


def _of_format(name: str, value: Any, row: Parameter) -> str | None:
    """The canonical text of a value that names a format; None for other values. Raises ParameterError for an impossible
    format, and for a format with the wrong sign for the parameter."""
    if row.formats is None or not isinstance(value, str) or not value.startswith(row.formats):
        return None
    text = value.removeprefix(row.formats)
    if text not in FORMATS and not is_spelling(text):
        return None
    fmt = format_named(text)
    if fmt.signed == (name == "scale_format"):
        raise ParameterError(name, f"{text} has {'a' if fmt.signed else 'no'} sign")
    return row.formats + fmt.name


def _impossible(name: str, text: str, row: Parameter) -> ParameterError:
    if row.names and row.low is None and not row.order:
        return ParameterError(name, str(UnknownNameError("value", text, row.names)))
    return ParameterError(name, f"{text} is impossible; it takes {row.admits()}")


def parse_parameter(name: str, value: Any, table: Mapping[str, Parameter] = PARAMETERS) -> Any:
    """The value of a parameter from its text in a reference or from YAML. Raises UnknownNameError, ParameterError."""
    if name not in table:
        raise UnknownNameError("parameter", name, table, " (`mmaprobe list parameters` shows all)")
    row = table[name]
    if isinstance(value, list) and row.order:
        parts = [part if isinstance(part, list) else [part] for part in value]
        if not all(type(k) is int for part in parts for k in part):
            raise _impossible(name, str(value), row)
        return tuple(tuple(part) for part in parts)
    if not isinstance(value, str) or value in row.names:
        return value
    if (mode := mode_named(value)) in row.names:
        return mode
    if row.none and value == "none":
        return None
    if (default := _of_format(name, value, row)) is not None:
        return default
    if row.boolean and value in ("true", "false"):
        return value == "true"
    if row.pattern and re.fullmatch(r"(0x)?[0-9a-fA-F]+", value):
        return int(value, 16)
    if row.low is not None and is_whole(value) and value[0] != "+":
        return int(value)
    if row.order and all(map(is_digits, re.split("[-:]", value))):
        return tuple(tuple(int(k) for k in part.split("-")) for part in value.split(":"))
    raise _impossible(name, value, row)


def format_parameter(value: Any) -> str:
    """The text of a parameter's value in a model reference; `parse_parameter` reads it back."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ":".join("-".join(str(k) for k in part) for part in value)
    return str(value)
