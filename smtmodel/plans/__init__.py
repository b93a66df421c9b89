"""Plans: how a matrix product of any K uses units. A plan is an expression whose sums are formed by stages."""

from smtmodel.plans.plan import Plan, Products
from smtmodel.plans.span import Span
from smtmodel.plans.stages import Chain, Halves, Interleaved, Promoted, Rounded, Split, Stage

__all__ = ["Chain", "Halves", "Interleaved", "Plan", "Products", "Promoted", "Rounded", "Span", "Split", "Stage"]
