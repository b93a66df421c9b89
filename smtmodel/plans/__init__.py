"""Plans: how a matrix product of any K uses units. A plan is an expression; stages compute its sums of products."""

from mmaprobe.smtmodel.plans.partitions import Fold
from mmaprobe.smtmodel.plans.plan import Plan, Products
from mmaprobe.smtmodel.plans.span import Span
from mmaprobe.smtmodel.plans.stages import Chain, Parted, Stage, Then

__all__ = ["Chain", "Fold", "Parted", "Plan", "Products", "Span", "Stage", "Then"]
