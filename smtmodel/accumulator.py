"""The parameters of an accumulator: one frozen dataclass whose field names are also the YAML and command-line names.

PARAMETERS says for each what it means and which values it takes; the stages say what each value does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from smtmodel.errors import ParameterError, UnknownNameError
from smtmodel.formats import FORMATS, Format, format_named, is_spelling
from smtmodel.rounding import OVERFLOWS, ROUNDINGS, Overflow, Rounding

Exact = Literal["exact"]
BlockOrder = tuple[tuple[int, ...], ...]

SCALES = ("ue8m0", "ue4m3")
OUTPUTS = ("f32", "f16", "e8m13", "f64")
ZERO_SIGNS = ("positive", "ieee", "always_positive")
_ROUNDED = tuple(f"rounded_{fmt.name}" for fmt in FORMATS.values() if fmt.specials == "ieee")


@dataclass(frozen=True)
class Parameter:
    """What a parameter means, and its values: names, whole numbers of a range, true or false, none, a bit pattern in
    hexadecimal, or a list of lists of product numbers. `formats`: what stands before the name of any format, where
    one may stand."""

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
        """The values in words."""
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
    "length": Parameter("K: products in the instruction", low=1, high=1024),
    "block": Parameter("L: products fused in one step; steps are chained", low=1, high=1024),
    "operation": Parameter("the family's step", ("fused_dot", "exact_dot", "fma_chain", "add_mul")),
    "fraction_bits": Parameter("F: bits kept below the unit of the maximum exponent", ("exact",), 1, 64),
    "carry_bits": Parameter("the sum is kept in F + 1 + n bits and a sign, and wraps", ("exact",), 0, 16),
    "product": Parameter("the product's significand", ("unnormalised", "normalised", *_ROUNDED), formats="rounded_"),
    "product_rounding": Parameter("how a rounded product is rounded", ROUNDINGS),
    "product_overflow": Parameter("a product of magnitude 2^n or more is infinite", low=-4096, high=4096, none=True),
    "align_rounding": Parameter("what happens to bits shifted out of one term", (*ROUNDINGS, "sticky")),
    "addend": Parameter("where c enters", ("fused", "late", "after")),
    "late_fraction_bits": Parameter("F2: bits kept of the products' sum when a late addend joins", low=1, high=64),
    "late_sum_bits": Parameter(
        "bits kept below the leading one of the sum with a late addend", low=1, high=64, none=True
    ),
    "late_rounding": Parameter("how sums are cut when a late addend joins", ROUNDINGS),
    "late_small_addend": Parameter("an addend more than F + 1 places below the sum", ("keep", "cut")),
    "block_order": Parameter("which products each block takes", ("contiguous", "interleaved_pairs"), order=True),
    "grouping": Parameter("how products are combined first", ("none", "even_odd", "scale_blocks", "pairwise")),
    "group": Parameter("products of one group (scale_blocks, pairwise)", low=1, high=1024),
    "scale_format": Parameter("format of the scale factors", SCALES, none=True, formats=""),
    "scale_block": Parameter("products that share one pair of scale factors", low=1, high=1024),
    "partials": Parameter("whether partial sums are rounded after every addition", ("unnormalised", "normalised")),
    "exponent_floor": Parameter("exponent that a zero term brings to the maximum", low=-4096, high=4096, none=True),
    "floor_applies_to": Parameter("the reading of the floor", ("zero_terms", "maximum")),
    "output": Parameter("format of the result", OUTPUTS, formats=""),
    "output_rounding": Parameter("rounding of the result", ROUNDINGS),
    "flush_inputs": Parameter("subnormal inputs are read as +0", boolean=True),
    "input_zeros": Parameter("sign of zero inputs", ("signed", "positive")),
    "flush_outputs": Parameter("subnormal results become zero", boolean=True),
    "zero_sign": Parameter("sign of an exact zero sum, or (always_positive) of every zero result", ZERO_SIGNS),
    "overflow": Parameter("result beyond the largest finite number", OVERFLOWS),
    "nan": Parameter("pattern of a NaN result (none: the format's quiet NaN)", none=True, pattern=True),
}


@dataclass(frozen=True)
class Accumulator:
    """How a unit computes d = c + sum of a_k * b_k over `length` products; see PARAMETERS.

    Raises ParameterError for values that are impossible alone or together.
    """

    length: int
    block: int
    operation: Literal["fused_dot", "exact_dot", "fma_chain", "add_mul"] = "fused_dot"
    fraction_bits: int | Exact = "exact"
    carry_bits: int | Exact = "exact"
    product: str = "unnormalised"
    product_rounding: Rounding = "nearest_even"
    product_overflow: int | None = None
    align_rounding: Rounding | Literal["sticky"] = "toward_zero"
    addend: Literal["fused", "late", "after"] = "fused"
    late_fraction_bits: int = 31
    late_sum_bits: int | None = None
    late_rounding: Rounding = "down"
    late_small_addend: Literal["keep", "cut"] = "keep"
    block_order: str | BlockOrder = "contiguous"
    grouping: Literal["none", "even_odd", "scale_blocks", "pairwise"] = "none"
    group: int = 1
    scale_format: str | None = None
    scale_block: int = 32
    partials: Literal["unnormalised", "normalised"] = "unnormalised"
    exponent_floor: int | None = None
    floor_applies_to: Literal["zero_terms", "maximum"] = "zero_terms"
    output: str = "f32"
    output_rounding: Rounding = "toward_zero"
    flush_inputs: bool = False
    input_zeros: Literal["signed", "positive"] = "signed"
    flush_outputs: bool = False
    zero_sign: Literal["positive", "ieee", "always_positive"] = "positive"
    overflow: Overflow = "infinity"
    nan: int | None = None

    def __post_init__(self) -> None:
        for name in PARAMETERS:
            check_parameter(name, getattr(self, name))
        if self.length % self.block:
            raise ParameterError("block", f"{self.block} does not divide the length {self.length}")
        self._check_combinations()
        if isinstance(self.block_order, tuple):
            self._check_order(self.block_order)
        if self.block_order == "interleaved_pairs" and (self.length % 4 or self.block * 2 != self.length):
            raise ParameterError("block_order", "interleaved_pairs needs a length of two blocks and a multiple of 4")
        if self.nan is not None and self.nan >> self.output_format.width:
            raise ParameterError("nan", f"{self.nan:x} is wider than the {self.output_format.width} bits of the output")

    def _check_combinations(self) -> None:
        late, grouping = self.addend == "late", self.grouping
        if self.carry_bits != "exact" and (self.exact_sum or late or self.partials == "normalised"):
            raise ParameterError("carry_bits", "only a truncated sum of several terms wraps: carry_bits must be exact")
        if late and (self.exact_sum or self.partials == "normalised" or grouping == "scale_blocks"):
            raise ParameterError("addend", "late needs a truncated, unnormalised sum without scale blocks")
        if grouping == "even_odd" and (not late or self.block % 2):
            raise ParameterError("grouping", "even_odd needs a late addend and an even block")
        if (self.operation == "add_mul") != (grouping == "pairwise"):
            raise ParameterError("grouping", "the operation add_mul and the grouping pairwise need each other")
        if grouping in ("scale_blocks", "pairwise") and self.block % self.group:
            raise ParameterError("group", f"{self.group} does not divide the block {self.block}")
        if grouping == "pairwise" and self.group & (self.group - 1):
            raise ParameterError("group", "pairwise sums need a power of two")
        if grouping == "scale_blocks" and self.scale_format is None:
            raise ParameterError("scale_format", "scale_blocks needs one")
        if self.scale_format is not None:
            self._check_scales()
        if self.operation in ("fma_chain", "add_mul"):
            self._check_ieee_steps()

    def _check_ieee_steps(self) -> None:
        """The steps of these are IEEE operations on the exact products: what else could be set has no meaning."""
        fixed = {"product": "unnormalised", "product_overflow": None, "addend": "fused", "partials": "unnormalised",
                 "zero_sign": "ieee", "overflow": "ieee", "block_order": "contiguous"}  # fmt: skip
        for name, value in fixed.items():
            if getattr(self, name) != value:
                raise ParameterError(name, f"with the operation {self.operation} it must be {format_parameter(value)}")

    def _check_scales(self) -> None:
        if self.length % self.scale_block:
            raise ParameterError("scale_block", f"{self.scale_block} does not divide the length {self.length}")
        if self.grouping == "scale_blocks" and self.scale_block % self.group:
            raise ParameterError("group", f"{self.group} does not divide the scale block {self.scale_block}")
        if self.operation == "add_mul" or self.exact_sum:
            raise ParameterError("scale_format", "only truncated sums take scale factors")

    def _check_order(self, order: BlockOrder) -> None:
        if sorted(k for part in order for k in part) != list(range(self.length)):
            raise ParameterError("block_order", f"every product from 0 to {self.length - 1} must stand in it once")
        if any(len(part) != self.block for part in order):
            raise ParameterError("block_order", f"every block must take {self.block} products")

    @property
    def exact_sum(self) -> bool:
        """Whether no bit of the sum is lost before the output is rounded."""
        return self.operation != "fused_dot" or self.fraction_bits == "exact" or self.align_rounding == "sticky"

    @property
    def output_format(self) -> Format:
        return format_named(self.output)

    @property
    def nan_pattern(self) -> int:
        return self.output_format.nan if self.nan is None else self.nan

    @property
    def product_format(self) -> Format | None:
        """The format that products are rounded to, if they are."""
        return format_named(self.product.removeprefix("rounded_")) if self.product.startswith("rounded_") else None

    @property
    def scale(self) -> Format | None:
        """The format of the scale factors, if there are any."""
        return None if self.scale_format is None else format_named(self.scale_format)

    @property
    def scales(self) -> int:
        """The number of scale factors on each side."""
        return 0 if self.scale_format is None else self.length // self.scale_block

    @property
    def blocks(self) -> BlockOrder:
        """The indices of the products that each step takes, in the order of the steps."""
        if self.block_order == "interleaved_pairs":
            return tuple(tuple(k for k in range(self.length) if (k % 4 < 2) == first) for first in (True, False))
        if isinstance(self.block_order, str):
            step = {"fma_chain": 1, "add_mul": self.group}.get(self.operation, self.block)
            return tuple(tuple(range(k, k + step)) for k in range(0, self.length, step))
        return self.block_order

    def prefix(self, step: int) -> str:
        """What the names of a step's signals begin with."""
        return f"block{step}." if len(self.blocks) > 1 else ""

    @property
    def addition_rounding(self) -> Rounding:
        """How an IEEE addition of finished sums rounds: one of an addend that comes after the chain, to nearest."""
        return "nearest_even" if self.addend == "after" else self.output_rounding

    def changed(self, values: Mapping[str, Any]) -> Accumulator:
        """This accumulator with some parameters given, as text or as YAML values.

        A shorter length shortens the block with it, and a given list decides the block; a changed output keeps
        NVIDIA's NaN in its width. Raises UnknownNameError and ParameterError.
        """
        parsed = {name: parse_parameter(name, value) for name, value in values.items()}
        order = parsed.get("block_order")
        if isinstance(order, tuple) and order and "block" not in parsed:
            parsed["block"] = len(order[0])
        if isinstance(parsed.get("length"), int) and "block" not in parsed:
            parsed["block"] = min(parsed["length"], self.block)
        if self.nan is not None and "output" in parsed and "nan" not in parsed:
            parsed["nan"] = nvidia_nan(FORMATS[parsed["output"]]) if parsed["output"] in OUTPUTS else None
        return replace(self, **parsed)


assert [field.name for field in fields(Accumulator)] == list(PARAMETERS)


def nvidia_nan(fmt: Format) -> int:
    """NVIDIA's canonical NaN: all ones below the sign (Xie et al. 2026, section 4.2); e8m13 travels as f32."""
    return (1 << (fmt.width - 1)) - 1


def check_parameter(name: str, value: Any, table: Mapping[str, Parameter] = PARAMETERS) -> None:
    """Raises ParameterError for a value that the parameter, a row of `table`, never takes."""
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
    """The one text of a value that names a format. Raises ParameterError for a format that cannot be, or not here."""
    if row.formats is None or not isinstance(value, str) or not value.startswith(row.formats):
        return None
    text = value.removeprefix(row.formats)
    if text not in FORMATS and not is_spelling(text):
        return None
    found = format_named(text)
    if found.signed == (name == "scale_format"):
        raise ParameterError(name, f"{text} has {'a' if found.signed else 'no'} sign")
    return row.formats + found.name


def _impossible(name: str, text: str, row: Parameter) -> ParameterError:
    if row.names and row.low is None and not row.order:
        return ParameterError(name, str(UnknownNameError("value", text, row.names)))
    return ParameterError(name, f"{text} is impossible; it takes {row.admits()}")


def parse_parameter(name: str, value: Any, table: Mapping[str, Parameter] = PARAMETERS) -> Any:
    """A parameter's value from the text of a reference or from YAML. Raises UnknownNameError, ParameterError."""
    if name not in table:
        raise UnknownNameError("parameter", name, table)
    row = table[name]
    if isinstance(value, list) and row.order:
        parts = [part if isinstance(part, list) else [part] for part in value]
        if not all(type(k) is int for part in parts for k in part):
            raise _impossible(name, str(value), row)
        return tuple(tuple(part) for part in parts)
    if not isinstance(value, str) or value in row.names:
        return value
    if row.none and value == "none":
        return None
    if (found := _of_format(name, value, row)) is not None:
        return found
    if row.boolean and value in ("true", "false"):
        return value == "true"
    if row.pattern and re.fullmatch(r"(0x)?[0-9a-fA-F]+", value):
        return int(value, 16)
    if row.low is not None and re.fullmatch(r"-?\d+", value):
        return int(value)
    if row.order and re.fullmatch(r"\d+([-:]\d+)*", value):
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
