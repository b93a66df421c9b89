"""All parts of the campaign: which rules each of them calls, and what no part calls, with the reason."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.rules import (
    claims,
    enclosures,
    equal_plans,
    facts,
    lemmas,
    meanings,
    plans,
    properties,
    results,
    rewriting,
    rows,
    shares,
    strange,
)
from benchmarks.rules.campaign import Campaign, Meaning
from benchmarks.rules.lemmas import TRUTHS, Truths
from mmaprobe.queries.kernel.closed import REWRITES
from mmaprobe.queries.kernel.enclosures import Enclosed
from mmaprobe.queries.kernel.steps import PlanAt


def _enclosed(goal: Any, rng: random.Random) -> Iterator[str]:
    return (plans.of_plan if isinstance(goal.unit, PlanAt) else meanings.enclosed)(goal, rng)


MEANINGS: dict[type, Meaning] = {
    **meanings.MEANINGS, **facts.MEANINGS, **properties.MEANINGS, **plans.MEANINGS,
    **equal_plans.MEANINGS, **shares.MEANINGS, **claims.MEANINGS, **rows.MEANINGS, Enclosed: _enclosed
}  # fmt: skip


@dataclass(frozen=True)
class Part:
    """Some rules, and what makes instances of them from a source of chance. `few`: how many seeds the tests take, from
    `first` on; `share`: of the seeds of the whole campaign."""

    name: str
    make: Callable[[Campaign, Truths, random.Random], None]
    rules: tuple[str, ...]
    few: int = 10
    share: float = 1.0
    first: int = 0


NODES = ("element", "constant", "literal", "assumed", "product", "exact", "rounded", "whole", "weakened")
RARE = ("segment", "unchanged", "scale", "fused", "grid", "cut", "repeated")
PARTS = (
    Part("lemmas", lemmas.instances, ("exhausted", *(kind.__name__ for kind in TRUTHS)), 12, 1.3),
    Part("lemmas asked", facts.lemmas, ("settled",), 2, 0.1),
    Part("rewrites", rewriting.instances, ("rewritten", "followed", "congruent", "looped", "results_alike"), 12, 0.7),
    Part("rewrites that apply", rewriting.focused, tuple(REWRITES), 3, 0.2),
    Part("nodes", enclosures.instances, NODES, 8, 0.6),
    Part("kinds of nodes", enclosures.kinds, RARE, 6, 0.5),
    Part("parts of inputs", enclosures.parts, ("part", "rejoined"), 8, 0.6),
    Part("chains", enclosures.chained_units, ("chained", "closed", "carried"), 8, 0.8),
    Part("units of an alignment", results.in_units, ("summed", "truncated", "loosened"), 20, 1.6),
    Part("signs", results.signs, ("turned",), 12, 0.1),
    Part("order", results.order, ("rises",), 16, 0.2),
    Part("terms", facts.instances,
         ("given", "defined", "follows", "themselves", "replaced", "one_maximum", "never"), 5, 0.5),
    Part("two sides", properties.sides, ("one_expression", "one_form", "undiffering", "agreed"), 3, 0.4),
    Part("orders", properties.orders,
         ("one_sum", "every_order", "each_part", "raised_elsewhere", "does_not_fall"), 20, 1.4),
    Part("negation", properties.negations, ("negates",), 20, 1.2),
    Part("plans", plans.instances,
         ("begun", "held", "nothing", "tile", "added", "iterated", "of_all_products"), 3, 0.4, 29),
    Part("halves of plans", plans.halves, ("halved",), 3, 0.3),
    Part("plans that agree", equal_plans.instances,
         ("same_forms", "same_parts", "same_steps", "same_sums", "same_units", "same_tails"), 4, 0.32, 2),
    Part("shares", shares.instances,
         ("begins", "from_here", "after_instruction", "after_addition", "near_the_sum", "near_each_other",
          "WordIsSmall", "WordsLeave"), 4, 0.8, 14),
    Part("claims", claims.instances,
         ("FirstWordIsWhole", "ZerosGiveZero", "ConditionsReadNumbers", "by_first_words", "undecided", "compares"),
         5, 0.17, 7),
    Part("rows", rows.instances,
         ("below_one", "parted", "joined", "converted", "column_sums", "trees", "in_sequence", "never_overflows"),
         6, 0.4),
    Part("strange", strange.instances, (), 2, 0.06),
    Part("cases", rows.cases, ("refuted", "implied"), 2, 0.12),
)  # fmt: skip

#: what no part calls, and why
LEFT_OUT: dict[str, str] = {}


def run(
    parts: Sequence[Part],
    seeds: Callable[[Part], range],
    enough: int | None = None,
    done: Callable[[Campaign, Part], None] = lambda campaign, part: None,
) -> Campaign:
    """The campaign on some seeds of each part; of a part whose rules all have `enough` instances on no more. `done` is
    called after each part."""
    campaign, truths = Campaign(MEANINGS), Truths()
    for part in parts:
        for seed in seeds(part):
            campaign.seed = f"{part.name} {seed}"
            part.make(campaign, truths, random.Random(campaign.seed))
            least = min((campaign.tally(name).instances for name in part.rules), default=0)
            if enough is not None and least >= enough:
                break
        done(campaign, part)
    return campaign
