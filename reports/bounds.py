"""How far a unit's result can be from the exact sum, read off its parameters.

A term that keeps bits down to the place u loses less than 2^u when it is aligned, whatever the rounding; a result
rounded to nearest is off by at most half a unit in the last place, else by less than one. Overflow, flushed subnormals
and sums that wrap lie outside.
"""

from __future__ import annotations

from dataclasses import dataclass

from smtmodel.accumulator import Accumulator
from smtmodel.explanation import PictureKind


@dataclass(frozen=True)
class Loss:
    """In a sum of this kind, up to `terms` terms keep `bits` bits below its largest exponent."""

    kind: PictureKind
    terms: int
    bits: int


def losses(acc: Accumulator) -> list[Loss]:
    """Where bits are cut off by alignment in one step (with normalised partial sums: in one addition)."""
    if acc.exact_sum:
        return []
    assert acc.fraction_bits != "exact"
    bits = acc.fraction_bits
    if acc.partials == "normalised":
        return [Loss("partial", 2, bits)]
    terms = len(acc.blocks[0])
    if acc.grouping == "scale_blocks":
        terms //= acc.group
    if acc.addend != "late":
        return [Loss("sum", terms + 1, bits)]
    late = [Loss("late", 1, acc.late_fraction_bits), Loss("late", 1, bits)]
    if acc.grouping == "even_odd":
        return [Loss("even", terms // 2, bits), Loss("odd", terms // 2, bits), Loss("join", 2, bits), *late]
    return [Loss("products", terms, bits), *late]


def roundings(acc: Accumulator) -> int:
    """Results rounded to the output format on the way to d."""
    steps, products = len(acc.blocks), len(acc.blocks[0])
    if acc.operation == "add_mul":
        return steps * 2 * products  # each product, the additions in pairs, and the one to the running sum
    return steps * (products if acc.partials == "normalised" else 1) + (acc.addend == "after")


def bound_text(acc: Accumulator) -> str:
    """The bound in words; e stands for the largest exponent of a sum's terms."""
    unit = "half a unit" if acc.output_rounding.startswith("nearest") else "one unit"
    relation = "at most" if acc.output_rounding.startswith("nearest") else "less than"
    count = roundings(acc)
    rounded = f"{relation} {unit} in the last place of the result"
    if count > 1:
        rounded = f"{relation} {unit} in the last place of each of the {count} rounded results"
    where = {"sum": "", "partial": " of each addition", "even": " of the even products", "odd": " of the odd products",
             "join": " of their sum", "products": " of the products", "late": " of products and addend"}  # fmt: skip
    parts = [f"{loss.terms} * 2^(e - {loss.bits}){where[loss.kind]}" for loss in losses(acc)]
    steps = len(acc.blocks)
    each = f" in each of the {steps} steps" if steps > 1 and parts and acc.partials != "normalised" else ""
    lost = f"alignment loses less than {' + '.join(parts)}{each}, where e is the largest exponent; " if parts else ""
    more = "; products are rounded before" if acc.product_format else ""
    if acc.addend == "late" and acc.late_sum_bits is not None:
        lost += f"cutting the joined sum loses less than one unit of bit {acc.late_sum_bits} below its leading one; "
    return f"{lost}rounding loses {rounded}{more}"
