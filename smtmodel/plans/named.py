"""Functions that make the stages with names in plan files: partitions with their usual joins, and promoted sums."""

from __future__ import annotations

from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.joins import Add, Only, Order, Promote, Through, Tree
from mmaprobe.smtmodel.plans.partitions import (
    All,
    At,
    Equal,
    First,
    Fold,
    Half,
    Halves,
    Interleaved,
    Lanes,
    Runs,
    Swizzled,
    Whole,
)  # fmt: skip
from mmaprobe.smtmodel.plans.stages import Parted, Stage


def in_format(body: Stage, rounding: Rounding) -> Parted:
    return Parted(All(), Only(rounding), body)


def promoted(
    every: int, body: Stage, rounding: Rounding, even: int = 0, tail: Stage | None = None, share: int = 0
) -> Parted:
    return Parted(Runs(every, even, share), Promote(rounding), body, tail)


def in_turns(every: int, body: Stage, tail: Stage | None = None) -> Parted:
    return Parted(Runs(every), Through(), body, tail)


def in_passes(ways: int, body: Stage, grain: int = 1) -> Parted:
    return Parted(Swizzled(ways, grain), Through(), body)


def in_multiples(number: int, body: Stage, head: Stage | None = None, tail: Stage | None = None) -> Parted:
    return Parted(Whole(number), Through(), body, tail, head)


def after_first(number: int, head: Stage, body: Stage) -> Parted:
    return Parted(First(number), Through(), body, None, head)


def in_runs(ways: int, body: Stage, rounding: Rounding, order: Order = "sequential", grain: int = 0) -> Parted:
    return Parted(Equal(ways, grain), Add(rounding, order), body)


def in_runs_at(at: tuple[int, ...], body: Stage, rounding: Rounding, order: Order = "sequential") -> Parted:
    return Parted(At(at), Add(rounding, order), body)


def interleaved(
    ways: int, body: Stage, rounding: Rounding, order: Order = "sequential", grain: int = 1, tail: Stage | None = None
) -> Parted:
    return Parted(Interleaved(ways, grain), Add(rounding, order), body, tail)


def in_vectors(
    body: Stage, rounding: Rounding, steps: tuple[int | Fold, ...], head: int = 0, tail: Stage | None = None,
    unroll: int = 0, order: Order = "sequential", grain: int = 1,
) -> Parted:  # fmt: skip
    return Parted(Lanes(steps, head, unroll, order, grain), Tree(rounding), body, tail)


def in_halves(most: int, body: Stage, rounding: Rounding, grain: int = 1, first: Half = "larger") -> Parted:
    return Parted(Halves(most, grain, first), Tree(rounding), body)
