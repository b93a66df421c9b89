"""All parts of the campaign: which rules each of them calls, and what no part calls, with the reason."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.rules import (
    blocks,
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
    slices,
    strange,
    wraps,
)
from benchmarks.rules.campaign import Campaign, Meaning
from benchmarks.rules.lemmas import TRUTHS, Truths
from mmaprobe.queries.kernel.bounds.enclosures import Enclosed
from mmaprobe.queries.kernel.closed import REWRITES
from mmaprobe.queries.kernel.questions.steps import PlanAt


def _enclosed(goal: Any, rng: random.Random) -> Iterator[str]:
    return (plans.of_plan if isinstance(goal.unit, PlanAt) else meanings.enclosed)(goal, rng)


MEANINGS: dict[type, Meaning] = {
    **meanings.MEANINGS, **facts.MEANINGS, **properties.MEANINGS, **plans.MEANINGS,
    **equal_plans.MEANINGS, **shares.MEANINGS, **claims.MEANINGS, **rows.MEANINGS, **wraps.MEANINGS,
    **slices.MEANINGS, **blocks.MEANINGS,
    Enclosed: _enclosed,
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
    Part("lemmas", lemmas.instances, ("exhausted", *(kind.__name__ for kind in TRUTHS)), 4, 1.5, 17),
    Part("lemmas asked", facts.lemmas, ("settled",), 1, 0.1, 25),
    Part("rewrites", rewriting.instances,
         ("rewritten", "followed", "congruent", "looped", "results_alike"), 4, 1.0, 31),
    Part("rewrites that apply", rewriting.focused, tuple(REWRITES), 2, 1.0, 5),
    Part("nodes", enclosures.instances, NODES, 4, 1.5, 18),
    Part("kinds of nodes", enclosures.kinds, RARE, 3, 1.0, 8),
    Part("parts of inputs", enclosures.parts, ("part", "rejoined"), 3, 0.8, 20),
    Part("sums with what they lost", enclosures.compensated, ("error_free",), 30, 1.0),
    Part("chains", enclosures.chained_units, ("chained", "from_zero", "closed", "carried"), 3, 1.2, 10),
    Part("units of an alignment", results.in_units, ("summed", "truncated", "loosened"), 6, 2.0, 16),
    Part("signs", results.signs, ("turned",), 6, 0.3),
    Part("order", results.order, ("rises",), 6, 0.5, 30),
    Part("terms", facts.instances,
         ("given", "defined", "follows", "themselves", "replaced", "one_maximum", "never"), 3, 0.8, 16),
    Part("two sides", properties.sides, ("one_expression", "one_form", "undiffering", "agreed"), 1, 0.8, 11),
    Part("orders", properties.orders,
         ("one_sum", "every_order", "each_part", "raised_elsewhere", "does_not_fall"), 6, 2.0, 28),
    Part("negation", properties.negations, ("negates",), 6, 2.0, 13),
    Part("steps of plans", plans.steps, ("begun", "held", "nothing", "tile", "added", "iterated", "halved",
                                          "compensated"), 1, 0.6, 1),
    Part("plans", plans.instances, ("of_all_products", "of_largest"), 2, 1.0, 18),
    Part("plans that agree", equal_plans.instances,
         ("same_forms", "same_parts", "same_bodies", "same_steps", "same_sums", "same_units", "same_tails"), 1, 0.8, 3),
    Part("shares", shares.instances,
         ("begins", "from_here", "after_instruction", "after_addition", "near_each_other",
          "WordIsSmall"), 2, 1.0, 11),
    Part("claims", claims.instances,
         ("FirstWordIsWhole", "ZerosGiveZero", "ConditionsReadNumbers", "by_first_words", "undecided", "of_unit",
          "compares", "of_plan", "of_plan_at", "for_every_length"),
         2, 1.0, 13),
    Part("rows", rows.instances,
         ("below_one", "parted", "joined", "converted", "column_sums", "trees", "in_sequence", "never_overflows"),
         1, 0.8, 22),
    Part("sums that wrap", wraps.instances, ("never_wraps", "same_integers"), 40, 2.0),
    Part("slices", slices.instances,
         ("loses_of_largest", "loses_of_elements", "within_classical", "within_span", "every_product", "every_sum",
          "every_error"),
         10, 1.0),
    Part("block formats", blocks.instances, ("loses_of_blocks",), 20, 1.0),
    Part("strange", strange.instances, (), 1, 0.06),
    Part("edges", strange.edges, (), 1, 0.005),
    Part("cases", rows.cases, ("refuted", "implied"), 1, 0.3, 4),
)  # fmt: skip

#: what no part calls, and why
_DRAWS = "the units of the campaign take no random bits; tests/rules/test_draws.py has all inputs of small ones"
_FACTORS = "tests/rules/test_factors.py has all pairs of ten factors of a small format, each told a second time"
LEFT_OUT: dict[str, str] = {
    "drawn": _DRAWS, "DrawIsNextTo": _DRAWS, "same_factors": _FACTORS, "FactorsAlike": _FACTORS,
}  # fmt: skip

STAGES = "every stage of the project has each of its products once; the rule does not take its word for it"
TYPES = "the types of arguments tell it before (queries/kernel/arguments.py)"
#: what refuses in no call, and why
UNREACHED: dict[str, str] = {
    "congruent: {error}": "what computes alike with a number is a number, and nothing else is asked of operands",
    "one_sum: a loop is left": "loops were written out; tests/rules/test_together.py calls it with one",
    "induction: the step assumes something else of the result so far":
        "the rules take the assumption from the premise; tests/proofs/test_bounds.py calls it with another one",
    "places: not every product is added": STAGES,
    "places: a product is added twice": STAGES,
    "places: a product is added in two rounds of a loop": STAGES,
    "many: whole periods of a stage are written down, and nothing else": STAGES,
    "same_parts: it is not known when {type(one.partition).__name__} divides alike":
        "every partition of the project tells it; tests/pages/test_extending.py adds one that does not",
    "{name}: a plan can still be changed": TYPES,
    "{name}: a {type(part).__name__} is none of the project's stages": TYPES,
    "share_claim: the exact sum has another unit": "it has the unit of the windows, which is the space's",
    "recorded: an operation outside of the unit that is not a sum of two numbers":
        "only words that are scaled need one, which are refused before",
}  # fmt: skip


def run(
    parts: Sequence[Part],
    seeds: Callable[[Part], range],
    enough: int | None = None,
    done: Callable[[Campaign, Part], None] = lambda campaign, part: None,
) -> Campaign:
    """The campaign on some seeds of each part; of a part whose rules all have `enough` instances (`Tally.enough`) on no
    more. `done` is called after each part."""
    campaign, truths = Campaign(MEANINGS), Truths()
    for part in parts:
        campaign.begin(part.name)
        for seed in seeds(part):
            campaign.seed = f"{part.name} {seed}"
            part.make(campaign, truths, random.Random(campaign.seed))
            least = min((campaign.tally(name).enough for name in part.rules), default=0)
            if enough is not None and least >= enough:
                break
        done(campaign, part)
    return campaign
