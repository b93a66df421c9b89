"""Groups of parameters that families share, each with its defaults, its checks and the nodes that it forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal

from mmaprobe.smtmodel.arithmetic import rounding as modes
from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.families.parameters import check_parameter
from mmaprobe.smtmodel.nodes import Cut, Element, ExactSum, FusedSum, Index, Node, Product, Round, Scale
from mmaprobe.smtmodel.nodes.chains import interleaved_pairs, shifts_of_blocks
from mmaprobe.smtmodel.nodes.round import Rounding, Zero
from mmaprobe.smtmodel.operand import RANDOM

Exact = Literal["exact"]
Partials = Literal["unnormalised", "normalised"]
StepSums = Literal["rounded", "kept"]
SmallAddend = Literal["keep", "cut"]
Blocks = tuple[tuple[int, ...], ...]

ZEROS: dict[str, Zero] = {"ieee": "ieee", "positive": "exact_positive", "always_positive": "positive"}


@dataclass(frozen=True)
class ParameterGroup:
    """A group of parameters, which are the class's fields. Raises ParameterError for values that are impossible alone
    or together."""

    def __post_init__(self) -> None:
        for item in fields(self):
            check_parameter(item.name, getattr(self, item.name))

    @property
    def idle(self) -> tuple[str, ...]:
        """The parameters without effect, for these values of the others in the group."""
        return ()


@dataclass(frozen=True)
class Steps(ParameterGroup):
    """The products of each step, in the order of the steps."""

    length: int
    block: int
    block_order: str | Blocks = "contiguous"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.length % self.block:
            raise ParameterError("block", f"{self.block} does not divide the length {self.length}")
        if self.block_order == "interleaved_pairs" and (self.length % 4 or self.block * 2 != self.length):
            raise ParameterError("block_order", "interleaved_pairs needs a length of two blocks and a multiple of 4")
        if isinstance(self.block_order, tuple):
            if sorted(k for part in self.block_order for k in part) != list(range(self.length)):
                raise ParameterError("block_order", f"every product from 0 to {self.length - 1} must be in it once")
            if any(len(part) != self.block for part in self.block_order):
                raise ParameterError("block_order", f"every block must take {self.block} products")

    @cached_property
    def blocks(self) -> Blocks:
        if self.block_order == "interleaved_pairs":
            return interleaved_pairs(range(self.length))
        if isinstance(self.block_order, str):
            return tuple(tuple(range(k, k + self.block)) for k in range(0, self.length, self.block))
        return self.block_order

    @cached_property
    def offsets(self) -> tuple[int, ...] | None:
        """Each step's offset from the places of the first step; None if the places of a step are not those of the first
        step shifted."""
        return shifts_of_blocks(self.blocks)


@dataclass(frozen=True)
class Inputs(ParameterGroup):
    """The reading of the elements of a, b and c, and the format in which the factors are multiplied (`input_format`):
    `own`, or a format to which the factors are converted first. The conversion rounds if the format has fewer bits, and
    makes subnormals normal if it has smaller exponents."""

    flush_inputs: bool = False
    input_zeros: Literal["signed", "positive"] = "signed"
    input_format: str = "own"
    input_rounding: modes.Mode = "nearest_even"

    @property
    def idle(self) -> tuple[str, ...]:
        return ("input_rounding",) if self.input_format == "own" else ()

    def element(self, operand: str, index: Index | None = None) -> Element:
        subnormals: Literal["positive_zero", "keep"] = "positive_zero" if self.flush_inputs else "keep"
        return Element(operand, index, subnormals, self.input_zeros == "positive")

    def factor(self, operand: str, index: Index) -> Node:
        element = self.element(operand, index)
        if self.input_format == "own":
            return element
        return Round(element, Rounding(format_named(self.input_format), self.input_rounding))


@dataclass(frozen=True)
class Products(ParameterGroup):
    """The product of two elements."""

    product: str = "unnormalised"
    product_rounding: modes.Mode = "nearest_even"
    product_overflow: int | None = None

    @property
    def _rounded(self) -> bool:
        return self.product.startswith("rounded_")

    @property
    def idle(self) -> tuple[str, ...]:
        return () if self._rounded else ("product_rounding",)

    def multiplied(self, left: Node, right: Node) -> Node:
        term = Product(left, right, self.product == "normalised", self.product_overflow)
        if not self._rounded:
            return term
        return Round(term, Rounding(format_named(self.product.removeprefix("rounded_")), self.product_rounding))


@dataclass(frozen=True)
class Alignment(ParameterGroup):
    """A sum whose terms are aligned at the largest exponent and cut, or exact."""

    fraction_bits: int | Exact = "exact"
    align_rounding: modes.Mode | Literal["sticky"] = "toward_zero"
    exponent_floor: int | None = None
    floor_applies_to: Literal["zero_terms", "maximum"] = "zero_terms"

    @property
    def idle(self) -> tuple[str, ...]:
        return ("floor_applies_to",) if self.exponent_floor is None else ()

    @property
    def exact(self) -> bool:
        """Whether the rounded result is that of the exact sum: the sum is exact, or its terms have a sticky bit."""
        return self.fraction_bits == "exact" or self.align_rounding == "sticky"

    @property
    def zeros(self) -> int | None:
        """The exponent of a zero term."""
        return self.exponent_floor if self.floor_applies_to == "zero_terms" else None

    @property
    def least(self) -> int | None:
        """The least value of the maximum of exponents."""
        return self.exponent_floor if self.floor_applies_to == "maximum" else None

    def sum(self, terms: Sequence[Node], carry_bits: int | Exact = "exact") -> Node:
        if self.fraction_bits == "exact" or self.align_rounding == "sticky":
            return ExactSum(tuple(terms))
        carry = None if carry_bits == "exact" else carry_bits
        return FusedSum(
            tuple(terms), self.fraction_bits, self.align_rounding, carry_bits=carry, zeros=self.zeros, least=self.least
        )


@dataclass(frozen=True)
class Sums(ParameterGroup):
    """The addition of a step's terms: all at once, with limited carry bits or not, or two at a time, each sum
    rounded."""

    carry_bits: int | Exact = "exact"
    partials: Partials = "unnormalised"

    def check(self, alignment: Alignment) -> None:
        if self.carry_bits != "exact" and (alignment.exact or self.partials == "normalised"):
            raise ParameterError("carry_bits", "only a truncated sum of several terms wraps: carry_bits must be exact")


@dataclass(frozen=True)
class Late(ParameterGroup):
    """The parameters of an addend that is added to the finished sum of products."""

    late_fraction_bits: int = 31
    late_sum_bits: int | None = None
    late_rounding: modes.Mode = "down"
    late_small_addend: SmallAddend = "keep"

    def bits(self, alignment: Alignment) -> int:
        """The fraction bits of the sum of products. Raises ParameterError if this sum is not truncated."""
        if alignment.exact or alignment.fraction_bits == "exact":
            raise ParameterError("fraction_bits", "an addend that joins late needs a truncated sum of products")
        return alignment.fraction_bits

    def sum(self, products: Node, addend: Node, alignment: Alignment) -> Node:
        bits = self.bits(alignment)
        keeps = (self.late_fraction_bits, bits)
        reach = (None, bits + 1) if self.late_small_addend == "cut" else ()
        zeros, least = alignment.zeros, alignment.least
        return FusedSum((products, addend), keeps, self.late_rounding, zeros=zeros, least=least, reach=reach)

    def cut(self, total: Node, fmt: Format) -> Node:
        """The sum with the addend, cut before it is rounded to a format."""
        return total if self.late_sum_bits is None else Cut(total, self.late_sum_bits + 1, self.late_rounding, fmt.emin)


@dataclass(frozen=True)
class Scales(ParameterGroup):
    """Scale factors: `scale_block` products share one on each side. Without a format there are none."""

    scale_format: str | None = None
    scale_block: int = 32

    @property
    def idle(self) -> tuple[str, ...]:
        return ("scale_block",) if self.scale_format is None else ()

    @property
    def format(self) -> Format | None:
        return None if self.scale_format is None else format_named(self.scale_format)

    def needed(self) -> None:
        """Raises ParameterError if there are no scale factors."""
        if self.scale_format is None:
            raise ParameterError("scale_format", "the family needs one")

    def check(self, steps: Steps, alignment: Alignment) -> None:
        if self.scale_format is None:
            return
        if steps.length % self.scale_block:
            raise ParameterError("scale_block", f"{self.scale_block} does not divide the length {steps.length}")
        if alignment.exact:
            raise ParameterError("scale_format", "only truncated sums take scale factors")

    def scaled(self, term: Node, place: int) -> Scale:
        """A product, or a sum of products, times the scale factors of the product at `place`."""
        index = Index(place // self.scale_block)
        return Scale(term, Element("scale_a", index), Element("scale_b", index))


@dataclass(frozen=True)
class IeeeResult(ParameterGroup):
    """The result's format and rounding; overflow, zeros and NaNs by IEEE 754."""

    output: str = "f32"
    output_rounding: modes.ResultMode = "toward_zero"
    random_bits: int | None = None
    flush_outputs: bool = False
    nan: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rounding.stochastic != (self.random_bits is not None):
            needs = "needs a number of random bits" if self.rounding.stochastic else "takes no random bits"
            raise ParameterError("random_bits", f"{self.output_rounding} {needs}")

    @cached_property
    def rounding(self) -> Rounding:
        return self._rounded()

    def _rounded(self, overflow: modes.ResultOverflow = "ieee", zero: Zero = "ieee") -> Rounding:
        tiny: Literal["flush_after", "keep"] = "flush_after" if self.flush_outputs else "keep"
        return Rounding(format_named(self.output), self.output_rounding, overflow, tiny, zero, self.nan)

    def rounded(self, term: Node) -> Round:
        """A term rounded to a result."""
        return Round(term, self.rounding, Element(RANDOM.name) if self.rounding.stochastic else None)

    @property
    def random(self) -> Format | None:
        """The format of the random bits of the result's rounding; None without random bits."""
        return None if self.random_bits is None else format_named(f"uint{self.random_bits}")


@dataclass(frozen=True)
class Result(IeeeResult):
    """The result's format and rounding."""

    zero_sign: Literal["positive", "ieee", "always_positive"] = "positive"
    overflow: modes.ResultOverflow = "infinity"

    @cached_property
    def rounding(self) -> Rounding:
        return self._rounded(self.overflow, ZEROS[self.zero_sign])
