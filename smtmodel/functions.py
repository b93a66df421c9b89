"""The families of published units as functions, each of its own parameters.

The rows of the instruction table call them, and the grids of family files. Algorithms are those of Xie et al. 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from smtmodel.accumulator import Accumulator
from smtmodel.errors import ParameterError

_STEPS = ("length", "block", "block_order")
_INPUTS = ("flush_inputs", "input_zeros")
_PRODUCT = ("product", "product_rounding", "product_overflow")
_SUM = ("fraction_bits", "align_rounding", "exponent_floor", "floor_applies_to")
_ROUNDED = ("output", "output_rounding", "flush_outputs", "nan")
_RESULT = (*_ROUNDED, "zero_sign", "overflow")
_FUSED = (*_STEPS, *_INPUTS, *_PRODUCT, *_SUM, "carry_bits", "partials", *_RESULT)
_LATE = ("late_fraction_bits", "late_sum_bits", "late_rounding", "late_small_addend")
_SCALES = ("scale_format", "scale_block")


@dataclass(frozen=True)
class FamilyFunction:
    """A family: what its units have in common (`fixed`), and the parameters that are theirs to choose (`takes`).

    `block_is`: the parameter that says how many products a step takes, where it is not `block`.
    """

    name: str
    about: str
    source: str
    takes: tuple[str, ...]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    block_is: str = "block"

    def __call__(self, **values: Any) -> Accumulator:
        """The accumulator with these parameters; those not given have their defaults. Raises ParameterError."""
        for name in values:
            if name not in self.takes:
                raise ParameterError(name, self.refusal(name))
        return self.accumulator(values)

    def accumulator(self, values: Mapping[str, Any]) -> Accumulator:
        """The same, where a signature fixes parameters beside the family's own (formats of results and scales)."""
        chosen = {"fraction_bits": "exact", **self.fixed, **values}
        chosen.setdefault("block", chosen.get(self.block_is, chosen["length"]))
        return Accumulator(**chosen)

    def refusal(self, name: str) -> str:
        """Why a parameter is not taken, and who takes it."""
        others = [other.name for other in FUNCTIONS.values() if name in other.takes]
        found = f"; {', '.join(others)} {'takes' if len(others) == 1 else 'take'} it" if others else ""
        return f"{self.name} does not take it (it takes {', '.join(self.takes)}){found}"


_IEEE = {"zero_sign": "ieee", "overflow": "ieee"}

FUNCTIONS: dict[str, FamilyFunction] = {
    function.name: function
    for function in (
        FamilyFunction("t-fdpa", "fused sums of products and addend, aligned and cut, steps chained", "Algorithm 7",
                       _FUSED),
        FamilyFunction("st-fdpa", "T-FDPA of products with scale factors", "Algorithm 8", (*_FUSED, *_SCALES)),
        FamilyFunction("gst-fdpa", "fused sums of groups, each exact and scaled", "Algorithm 9",
                       (*_FUSED, *_SCALES, "group"), {"grouping": "scale_blocks"}),
        FamilyFunction("emulated-fp8", "T-FDPA steps chained from +0, the addend added to the finished sum",
                       "recorded results of H100, H200 and B200", _FUSED, {"addend": "after"}),
        FamilyFunction("tr-fdpa", "the addend joins the finished, aligned sum of products", "Algorithm 10",
                       (*_STEPS, *_INPUTS, *_PRODUCT, *_SUM, *_LATE, *_RESULT), {"addend": "late"}),
        FamilyFunction("gtr-fdpa", "TR-FDPA with even and odd products summed apart", "Algorithm 11",
                       (*_STEPS, *_INPUTS, *_PRODUCT, *_SUM, *_LATE, *_RESULT),
                       {"addend": "late", "grouping": "even_odd"}),
        FamilyFunction("e-fdpa", "exact sums of products and addend, each rounded once", "Algorithm 6",
                       (*_STEPS, *_INPUTS, "product_overflow", "partials", *_RESULT), {"operation": "exact_dot"}),
        FamilyFunction("fma-chain", "IEEE fused multiply-adds, one after another", "Algorithm 4",
                       ("length", *_INPUTS, *_ROUNDED), {"operation": "fma_chain", "block": 1, **_IEEE}),
        FamilyFunction("ftz-addmul", "products rounded one by one and added in pairs", "Algorithms 1 and 2",
                       ("length", "group", *_INPUTS, *_ROUNDED),
                       {"operation": "add_mul", "grouping": "pairwise", **_IEEE}, block_is="group"),
    )
}  # fmt: skip
