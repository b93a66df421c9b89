"""Plans: how a matrix product of any K uses units. A plan is an expression whose sums are formed by stages."""

from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.span import Span
from mmaprobe.smtmodel.plans.stages import (
    Chain,
    First,
    Fold,
    Halves,
    Interleaved,
    Lanes,
    Promoted,
    Rounded,
    Runs,
    Split,
    Stage,
    Swizzled,
    Turns,
    Uneven,
    Whole,
    Windows,
)

__all__ = [
    "Chain",
    "First",
    "Fold",
    "Halves",
    "Interleaved",
    "Lanes",
    "Plan",
    "Products",
    "Promoted",
    "Rounded",
    "Runs",
    "Span",
    "Split",
    "Stage",
    "Swizzled",
    "Turns",
    "Uneven",
    "Whole",
    "Windows",
]
