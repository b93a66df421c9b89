"""Error bounds of plans of slices, residues or blocks, in the largest magnitudes of rows and columns or of blocks."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.kernel.bounds.wording import up_float
from mmaprobe.queries.kernel.integers.blocks import InLargest, LosesOfBlocks, loses_of_blocks
from mmaprobe.queries.kernel.integers.slices import loses_of_elements, loses_of_largest
from mmaprobe.queries.kernel.integers.wraps import never_wraps
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.queries.properties.bound import Settle, chain_of
from mmaprobe.queries.tactics.settling import result_or_none
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.plans.plan import Plan

REACH, BLOCKS_REACH = 100, 30  # bounds hold for largest magnitudes from 2^-reach to 2^reach
SPREAD = 12  # binary orders of magnitude between the blocks of one row, in plans that scale rows before blocks
Numbers = NDArray[Any]


def slices_lose(plan: Plan, length: int, reach: int) -> Theorem:
    """A theorem `LosesOfLargest`. Raises RuleError where no rule gives one, or a sum may wrap."""
    return loses_of_largest(plan, length, reach, never_wraps(plan, length, None, None))


def elements_lose(plan: Plan, length: int, reach: int) -> Theorem:
    """A theorem `LosesOfElements`. Raises RuleError where no rule gives one, or a sum may wrap."""
    return loses_of_elements(plan, length, reach, never_wraps(plan, length, None, None))


def blocks_lose(plan: Plan, length: int, settle: Settle) -> Theorem:
    """A theorem `LosesOfBlocks`, about blocks of zeros as well where these stay zeros. Raises RuleError where no rule
    gives one."""
    chain = chain_of(plan.models[0].unit, settle)
    rows = any(part.block is None for part in plan.gathered)
    about = partial(loses_of_blocks, plan, length, BLOCKS_REACH, SPREAD if rows else None)
    return result_or_none(about, True, chain) or about(False, chain)


def loss_theorem(plan: Plan, length: int, settle: Settle) -> Theorem:
    """The theorem that bounds a plan's error in the largest magnitudes. Raises RuleError where no rule gives one."""
    if plan.factors is not None:
        return blocks_lose(plan, length, settle)
    return slices_lose(plan, length, min(REACH, plan.d.emax // 4))


def bound_in_largest(goal: InLargest, a: Numbers, b: Numbers) -> Numbers:
    """The bound of every element of A * B (rows x columns), rounded up, for `a` (rows x K) and `b` (K x columns) of
    f64. Raises ParameterError for largest magnitudes that the bound does not cover."""
    starts, sides = np.arange(0, a.shape[1], goal.block), list[Numbers]()
    spread = goal.spread if isinstance(goal, LosesOfBlocks) else 0
    for name, side in (("a", np.abs(a)), ("b", np.abs(b).T)):
        most = np.maximum.reduceat(side, starts, axis=1)
        least = np.full((len(most), 1), 2.0**-goal.reach)
        if spread is not None:
            least = np.maximum(least, most.max(1, keepdims=True) * 2.0**-spread)
        within = (most >= least) & (most <= 2.0**goal.reach)
        if not (within | ((most == 0) & (goal.zeros if isinstance(goal, LosesOfBlocks) else False))).all():
            raise ParameterError(name, f"{goal.where}, in this bound")
        sides.append(most)
    bounds: Numbers = sides[0] @ sides[1].T * (
        up_float(goal.share * goal.block) * (1 + (len(starts) + 3) * 2.0**-52)
    ) + up_float(goal.rest)
    return bounds
