"""How libraries cut K around a unit: the partitions, the joins of their parts, and how the sums of parts are kept, as a
table in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Literal, get_args

from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain, Fold, Stage
from mmaprobe.smtmodel.plans.engine import Way
from mmaprobe.smtmodel.plans.joins import ORDERS, Add, Compensate, Order, Promote
from mmaprobe.smtmodel.plans.named import (
    in_format,
    in_halves,
    in_multiples,
    in_passes,
    in_runs,
    in_vectors,
    interleaved,
    promoted,
)  # fmt: skip
from mmaprobe.smtmodel.plans.partitions import SPLITS, Equal, Runs
from mmaprobe.smtmodel.plans.stages import Parted

RUNS = (16, 32, 64, 96, 128, 192, 240, 256, 320, 352, 384, 448, 512, 640, 768, 1024)  # products per separate sum
LIKELIEST = 3  # the first sizes of RUNS are the likeliest
ODD = 100  # sizes of runs below this are all tried around units of one product, last
PAIR = 2  # products of a CPU's instruction; CPU libraries cut K for caches, and do not split K among blocks
WAYS = (2, 4, 8, 16, 32)  # numbers of parts or lanes
TILES = (0, 64, 32, 128, 16, 8)  # the parts of equal runs are multiples of one of these; 0: of the unit's products
DEALT = (4, 8, 16, 32, 64, 128)  # products of a tile; a kernel that splits K may deal its tiles evenly to the parts
GRAINS = (1, 2, 4, 8)  # uses of an instruction that one accumulator takes in turn
THREADS = (32, 64, 128, 256)  # numbers of lanes of kernels of vectors on GPUs, besides WAYS
TAKEN = (1, 2, 4, 8, 16, 32, 64)  # products that one lane of such a kernel takes in a turn
HEADS = (8, 16, 32, 64, 128)  # products of a tile; a rest of K that fills no tile may come first

#: roundings: of the sum of each part as it is stored (None: it is not stored), and of the addition of these sums;
#: None in place of both: as in the stage
PartRoundings = tuple[Rounding | None, Rounding] | None
#: which roundings are tried: those of the stage; sums stored in formats that results show, or also in that of results
Keeping = Literal["as it is", "shown", "stored"]


IN_ORDER, OTHERWISE = ORDERS[:1], ORDERS[1:]
#: cuts, the orders in which the sums of parts are added (where there is a choice), and how they are kept
USUAL: tuple[tuple[str, Sequence[Order], Keeping], ...] = (
    ("likely runs", IN_ORDER, "as it is"),
    ("equal runs", IN_ORDER, "as it is"),
    ("even runs", IN_ORDER, "as it is"),
    ("equal runs", IN_ORDER, "stored"),
    ("even runs", IN_ORDER, "stored"),
    ("runs", IN_ORDER, "shown"),
    ("equal runs", OTHERWISE, "shown"),
    ("runs", IN_ORDER, "as it is"),
    ("equal runs", OTHERWISE, "as it is"),
    ("loops", IN_ORDER, "as it is"),
    ("in turn", ORDERS, "as it is"),
    ("in passes", IN_ORDER, "as it is"),
    ("compensated", IN_ORDER, "as it is"),
    ("rest first", IN_ORDER, "as it is"),
    ("rest first in runs", IN_ORDER, "as it is"),
    ("runs", IN_ORDER, "stored"),
    ("equal runs", OTHERWISE, "stored"),
    ("odd runs", IN_ORDER, "as it is"),
    ("odd runs", IN_ORDER, "shown"),
)


def _cuts(chain: Chain, how: Rounding, length: int) -> dict[str, Iterable[Parted]]:
    """The cuts of the table for K = `length`, around a unit whose accumulator has the format of `how`."""
    unit, last = chain.model.length, chain if chain.d == how.format else in_format(chain, how)
    sizes = [size for size in dict.fromkeys((128, 2 * unit, 4 * unit, *RUNS)) if unit < size < length]
    runs = [promoted(size, chain, how) for size in sizes if not size % unit]
    grains = product((grain for grain in TILES if not grain % unit and grain != unit), SPLITS)
    dealt = (Equal(ways, grain, "even") for grain, ways in product(DEALT, SPLITS) if not grain % unit)
    turns = product(GRAINS if unit > 1 else GRAINS[:1], WAYS if unit == 1 else WAYS[:3])
    tiles = (tile for tile in HEADS if unit > 1 and not tile % unit and tile < length and length % tile)
    heads = [in_multiples(tile, chain, head=chain) for tile in tiles]
    return {
        "runs": runs,
        "odd runs": [promoted(size, chain, how) for size in range(2, min(length, ODD)) if unit == 1],
        "likely runs": runs if unit == PAIR else runs[:LIKELIEST],
        "equal runs": [in_runs(ways, chain, how, grain=grain) for grain, ways in grains if grain * ways < 2 * length],
        "even runs": [Parted(cut, Add(how), chain) for cut in dealt if cut.uneven(length)],
        "loops": _loops(chain, how, length) if unit == 1 and chain.d == how.format else (),
        "in passes": [in_passes(ways, chain, turn * unit) for turn in GRAINS for ways in WAYS
                      if ways * turn * unit < length],
        "compensated": [Parted(Runs(size), Compensate(how, way), chain) for way in get_args(Way)
                        for size in (unit, *sizes) if not size % unit],
        "in turn": [interleaved(ways, chain, how, "sequential", turn * unit, last) for turn, ways in turns],
        "rest first": heads,
        "rest first in runs": (in_runs(ways, head, how, grain=grain) for head, ways in product(heads, SPLITS)
                               for grain in (8, head.period)),
    }  # fmt: skip


def _loops(chain: Chain, how: Rounding, length: int) -> Iterator[Parted]:
    """Loops over single products, with lanes that are folded in the format of their sums."""
    yield from (in_vectors(chain, how, (ways, *halved(ways)), tail=chain) for ways in WAYS)
    yield from (promoted(run, chain, how, 1) for run in RUNS if run < length)
    yield from (in_runs(ways, chain, how, grain=grain) for ways, grain in product(WAYS[:3], (1, 16)))
    yield from (in_halves(most, chain, how, grain) for most, grain in product(HEADS, (1, 8)) if most < length)
    yield from vectors(chain, how, length)


def usual(model: Model, length: int, keeping: Callable[[Keeping], Sequence[PartRoundings]]) -> Iterator[Parted]:
    """The stages of the table for K = `length` products, each once, with sums in the format of the unit's accumulator.
    `keeping`: the ways of keeping the sums of parts."""
    seen, cuts = set[Stage](), _cuts(Chain(model), Rounding(model.c), length)
    for cut, orders, kept in USUAL:
        for how, order in product(keeping(kept), orders):
            for stage in cuts[cut]:
                if order != "sequential" and stage.partition.sums == 2:
                    continue  # two sums are added in one order
                join = replace(stage.join, order=order) if isinstance(stage.join, Add) else stage.join
                one = kept_as(replace(stage, join=join), how)
                if one is not None and one not in seen:
                    seen.add(one)
                    yield one


def in_equal_parts(size: int, body: Stage, how: Rounding, length: int, tile: int) -> Iterator[Parted]:
    """Stages that divide K = `length` into equal parts, each added in promoted runs of `size` products. `tile`: one of
    the numbers of which the sizes of parts are multiples."""
    runs = promoted(size, body, how)
    for ways, grain in product(SPLITS, (0, tile)):
        parts = Equal(ways, grain).sizes(length, in_runs(ways, runs, how))
        for order in (ORDERS if len(parts) > 2 else ORDERS[:1]) if size < parts[0] < length else ():
            yield in_runs(ways, runs, how, order, grain)


def kept_as(stage: Parted, kept: PartRoundings) -> Parted | None:
    """The stage with the sums of its parts kept in a way; None where they are not simply added, or formats do not
    fit."""
    if kept is None:
        return stage
    part, total = kept
    with suppress(ParameterError):
        if isinstance(stage.join, Promote | Add):
            body = stage.body if part is None else in_format(stage.body, part)
            return replace(stage, body=body, join=replace(stage.join, rounding=total))
    return None


def vectors(chain: Chain, how: Rounding, length: int) -> Iterator[Parted]:
    """Sums of K = `length` by many lanes that take one or more products of each turn, as threads of a GPU do: added in
    halves or in order."""
    for ways, grain in product((*WAYS, *THREADS), TAKEN):
        for folds in dict.fromkeys((halved(ways), (Fold(ways, 1),))) if ways * grain < 2 * length else ():
            yield in_vectors(chain, how, (ways, *folds), grain=grain)


def halved(lanes: int) -> tuple[Fold, ...]:
    """Folds that add the upper half of the lanes to the lower half, until one lane is left."""
    return () if lanes == 1 else ((fold := Fold(2, -(-lanes // 2))), *halved(fold.left(lanes)))


def paired(lanes: int) -> tuple[Fold, ...]:
    """Folds that add neighbouring lanes, until one lane is left."""
    return (Fold(2, 1),) * (lanes - 1).bit_length()
