"""The K at which a rule is compared with its library. A plan that cuts K at other places than the library does may
still be right at most K."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, zip_longest

import numpy as np

from mmaprobe.queries.plans.rules import Rule
from mmaprobe.smtmodel.plans import Chain, Plan, Stage
from mmaprobe.smtmodel.plans.stages import Parted

LENGTHS = 512  # the most K of all rules together
MIXED = 2654435761  # an odd number that puts K in no order, as a factor modulo 2^32


def lengths_asked(rules: Iterable[tuple[Rule, Plan]]) -> list[tuple[int, int]]:
    """The K at which rules are compared, each with the number of its rule, from all rules in turn; at most
    `LENGTHS`."""
    queues = [[(number, length) for length in _ranked(*rule)] for number, rule in enumerate(rules)]
    return list(islice((one for some in zip_longest(*queues) for one in some if one is not None), LENGTHS))


def _ranked(rule: Rule, plan: Plan) -> Sequence[int]:
    """The K of a rule's range: its ends, then the K next to multiples of the sizes that the plan names, the largest
    size first, then the other K in no order."""
    lengths = np.array(rule.lengths, dtype=np.int64)
    ranks = np.zeros_like(lengths)
    for size in sorted({size for products in plan.sums for size in _sizes(products.stage)}):
        rests = lengths % size
        ranks[(rests <= 1) | (rests == size - 1)] = size
    ends = [k for k in (0, -1) if len(lengths)]
    for at in np.flatnonzero(np.diff(lengths) != rule.multiple).tolist():
        ends += [at, at + 1]
    ranks[ends] = np.max(ranks, initial=0) + 1
    ranked: list[int] = lengths[np.lexsort((lengths * MIXED % (1 << 32), -ranks))].tolist()
    return ranked


def _sizes(stage: Stage) -> Iterator[int]:
    """The sizes of uses of a unit, runs, tiles and grains of a stage."""
    for part in stage.walk():
        own = [part.model.length] if isinstance(part, Chain) else []
        if isinstance(part, Parted):
            own = [size for size in vars(part.partition).values() if isinstance(size, int)]
        yield from (size for size in own if size > 1)
