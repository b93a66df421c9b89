"""The closed lists of the kernel: which functions are rules, which of them rewrite, and which classes are lemmas.

A function or class outside these lists is no rule and no lemma, whatever decorator it has.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

KERNEL = __name__.rpartition(".")[0]
#: the packages that define the classes of rules' arguments
PACKAGES = ("mmaprobe.smtmodel.", "mmaprobe.queries.", "mmaprobe.hypotheses.")


def _by_name(files: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType({name: f"{KERNEL}.{file}" for file, names in files.items() for name in names.split()})


#: rules of inference: name -> module
RULES = _by_name({
    "lemmas": "settled exhausted",
    "terms.facts": "given defined follows themselves replaced one_maximum never",
    "terms.same": "undiffering agreed", "terms.undecided": "by_first_words undecided",
    "bounds.enclosures": "element segment constant literal assumed product unchanged scale exact fused grid cut "
                         "rounded whole weakened",
    "bounds.draws": "drawn", "bounds.parts": "part rejoined", "bounds.transformations": "error_free",
    "bounds.induction": "repeated chained closed carried", "bounds.table9": "summed truncated loosened",
    "bounds.sums": "from_zero begun held nothing tile added iterated compensated halved of_all_products",
    "bounds.shares": "begins from_here after_instruction after_addition near_each_other",
    "bounds.unit_shares": "of_unit of_plan of_plan_at compares for_every_length", "bounds.largest": "of_largest",
    "integers.rows": "below_one parted joined converted column_sums trees in_sequence never_overflows",
    "equality.rewriting": "rewritten followed congruent looped results_alike",
    "properties.opposite": "turned", "properties.rises": "rises",
    "equality.expressions": "one_expression one_sum one_form", "equality.plan_units": "same_forms",
    "equality.stages": "same_parts same_bodies same_steps", "equality.plans": "same_sums same_units same_tails",
    "properties.together": "every_order each_part raised_elsewhere negates does_not_fall",
    "cases.unreachable": "refuted implied", "integers.wraps": "never_wraps",
    "integers.slices": "loses_of_largest loses_of_elements within_classical within_span",
    "integers.blocks": "loses_of_blocks", "integers.factors": "same_factors same_integers",
    "integers.every": "every_product every_sum every_error",
})  # fmt: skip

#: rules of rewriting, which `rewritten` applies: name -> module
REWRITES = _by_name({
    "equality.rewriting":
        "unreached gated_zero held_product normalised_in_vain needless_floor needless_carry lossless_sum "
        "lossless_sorted plain_overflow unreached_overflow no_sum_to_zero no_last_sum_to_zero fitting_sum "
        "positive_term unread_sign nested_sum scaled_sum zero_added single_term rounded_again rounded_twice "
        "rounded_in_vain neutral_zero_added first_step zero_after product_of_zeros input_read read_once rectified",
})  # fmt: skip

#: statements about all values of some bits, which engines or evaluation settle: name -> module
LEMMAS = _by_name({
    "lemmas": "AlignmentLoses",
    "datapath.rounding_losses": "RoundingLoses TruncationKeeps", "bounds.draws": "DrawIsNextTo",
    "datapath.effects": "BoundKeeps NeverReaches Normalises FormatHolds RoundsAlike RoundsTwice",
    "properties.opposite": "RoundsOpposite", "datapath.rounding_rises": "RoundingRises RoundingScales",
    "terms.undecided": "FirstWordIsWhole ZerosGiveZero ConditionsReadNumbers",
    "bounds.shares": "WordIsSmall", "integers.factors": "FactorsAlike",
})  # fmt: skip


def is_of(names: Mapping[str, str], function: Callable[..., Any]) -> bool:
    """Whether a function is the one listed under its name: defined in the listed module itself."""
    module = sys.modules.get(names.get(function.__name__, ""))
    return module is not None and function.__globals__ is vars(module) and function.__qualname__ == function.__name__


def is_own(kind: type[Any]) -> bool:
    """Whether a class is the one that its module defines under its name, in the project's packages."""
    module = sys.modules.get(kind.__module__)
    return kind.__module__.startswith(PACKAGES) and getattr(module, kind.__qualname__, None) is kind


def is_lemma(kind: type[Any]) -> bool:
    """Whether a class is one of the lemmas."""
    return LEMMAS.get(kind.__name__) == kind.__module__ and is_own(kind)
