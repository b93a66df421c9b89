"""Stages: how a plan adds the products of a span. A stage is a unit, in tiles, or a partition of the products
(partitions.py) and a join of the sums of its parts (joins.py), each of which another stage makes. Each is a frozen
value that directs an engine (engine.py)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.engine import Engine
from mmaprobe.smtmodel.plans.joins import Add, InTurn, Join, Only, Order, Promote, Through, Tree
from mmaprobe.smtmodel.plans.partitions import (
    All,
    At,
    Equal,
    First,
    Fold,
    Growth,
    Half,
    Halves,
    Interleaved,
    Lanes,
    Partition,
    Runs,
    Swizzled,
    Whole,
    Windows,
)
from mmaprobe.smtmodel.plans.span import Span

V = TypeVar("V")
P = TypeVar("P", bound=Partition)


def check_holds(what: str, fmt: Format, other: Format) -> None:
    """Raises ParameterError where numbers of the other format cannot be taken as they are."""
    if not fmt.holds(other):
        message = f"{other.name} and {fmt.name} cannot be chained: not every {other.name} is one of {fmt.name}"
        raise ParameterError(what, f"{message}; round it first")


def check_takes(what: str, stage: Stage) -> None:
    """Raises ParameterError where a sum so far would be lost."""
    if not stage.takes_start:
        units = ", ".join(model.reference or "a unit" for model in stage.models if not model.addend)
        raise ParameterError(what, f"{units} does not read c, and an earlier sum would be lost")


class Stage(ABC):
    """How the products of a span are added to a start."""

    tail: Stage | None

    @property
    @abstractmethod
    def d(self) -> Format:
        """The format of its result."""

    @property
    @abstractmethod
    def accumulator(self) -> Format:
        """The format in which it takes its start."""

    @property
    @abstractmethod
    def period(self) -> int:
        """The least number of products that it takes without a part of them being a tail."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Stage, ...]:
        """The stages that it is made of."""

    @property
    def takes_start(self) -> bool:
        """Whether its start enters its result: a unit that does not read c loses it."""
        return all(part.takes_start for part in self.parts)

    @property
    def repeats_one_step(self) -> bool:
        """Whether it takes any number of its steps one after another, each from the sum so far."""
        return False

    @abstractmethod
    def run(self, engine: Engine[V], span: Span, start: V) -> V:
        """Its result from a start. Raises ParameterError for a number of products that does not fit."""

    def from_zero(self, engine: Engine[V], span: Span) -> V:
        return self.run(engine, span, engine.zero(self.accumulator))

    def run_tail(self, engine: Engine[V], span: Span, start: V) -> V:
        """What its tail makes of the products left over."""
        assert self.tail is not None
        with engine.part("tail"):
            return self.tail.run(engine, span, start)

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """The units that it uses, each once."""
        own = (self.model,) if isinstance(self, Chain) else ()
        return tuple(dict.fromkeys((*own, *(model for part in self.parts for model in part.models))))

    def _check_tail(self) -> None:
        """Raises ParameterError where a tail cannot take the sum so far, or gives numbers of another format."""
        if self.tail is not None:
            check_takes("tail", self.tail)
            check_holds("tail", self.tail.accumulator, self.d)
            self._check_alike("tail", self.tail)

    def _check_alike(self, name: str, part: Stage) -> None:
        if part.d != self.d:
            raise ParameterError(name, f"its results are {part.d.name}, the others {self.d.name}: round them alike")


@dataclass(frozen=True)
class Chain(Stage):
    """Tiles of the unit's length in order, each result the next tile's addend. What is left over at the end goes
    through `tail` (a shorter unit, or one that takes a single product), or into a last tile filled up with zeros."""

    model: Model
    tail: Stage | None = None

    def __post_init__(self) -> None:
        self._check_tail()

    @property
    def d(self) -> Format:
        return self.model.d

    @property
    def accumulator(self) -> Format:
        return self.model.c

    @property
    def period(self) -> int:
        return self.model.length

    @property
    def parts(self) -> tuple[Stage, ...]:
        return () if self.tail is None else (self.tail,)

    @property
    def takes_start(self) -> bool:
        return self.model.addend and super().takes_start

    @property
    def repeats_one_step(self) -> bool:
        return True

    def run(self, engine: Engine[V], span: Span, start: V) -> V:
        length = self.model.length
        if span.count > length:
            check_takes(self.model.reference, self)
            check_holds(self.model.reference, self.model.c, self.d)
        whole, rest = span.cut(span.count - span.count % length)
        value = start if whole is None else engine.tiles(self.model, whole, start)
        if rest is None:
            return value
        if self.tail is not None:
            return self.run_tail(engine, rest, value)
        with engine.part("tail"):
            return engine.tile(self.model, rest, value)


@dataclass(frozen=True)
class Parted(Stage):
    """The parts of a partition, each summed by the body, and their sums joined. `head`: the stage of products before
    them; `tail`: of those that are left over, from the sum."""

    partition: Partition
    join: Join
    body: Stage
    tail: Stage | None = None
    head: Stage | None = None

    def __post_init__(self) -> None:
        self._check_kinds()
        self.partition.check(self)
        follows = isinstance(self.join, Through) and not self.partition.alone
        if follows or (self.head is not None and self.join.begin != "zero"):
            self.check_follows(self.word)
        self._check_tail()
        if self.head is not None:
            self._check_alike(self.head_name, self.head)

    def _check_kinds(self) -> None:
        partition, join = self.partition, self.join
        if join.word not in partition.joins:
            raise ParameterError(
                self.word, f"these parts are not joined by {join.word}, but {', '.join(partition.joins)}"
            )
        for name, stage in (("tail", self.tail), ("head", self.head)):
            if stage is not None and name not in (partition.takes.replace("first", "head").split()):
                raise ParameterError(name, f"{partition.word} leaves no products to a {name}")
        if partition.takes == "first" and self.head is None:
            raise ParameterError("first", "the first products need a stage")

    def check_follows(self, word: str) -> None:
        """Raises ParameterError where the body cannot begin with the sum so far."""
        check_takes(word, self.body)
        check_holds(word, self.body.accumulator, self.d if self.head is None else self.head.d)

    def words(self) -> str:
        """The parts and how their sums are added, in words."""
        parts, each = self.partition.words(self), self.join.begin == "so far"
        if each and self.partition.alone:
            return parts if self.partition.takes != "first" else f"{parts}, from their sum"
        return f"{parts}{self.partition.each if each else ''}{self.join.words()}{self.partition.more_words}"

    @property
    def word(self) -> str:
        """What it is called in a plan file."""
        return self.partition.word if self.partition.usual == self.join.word else self.join.word

    @property
    def head_name(self) -> str:
        return "first" if self.partition.takes == "first" else "head"

    @property
    def rounding(self) -> Rounding | None:
        """That of its additions."""
        found: Rounding | None = getattr(self.join, "rounding", None)
        return found

    @property
    def d(self) -> Format:
        return self.body.d if self.rounding is None else self.rounding.format

    @property
    def accumulator(self) -> Format:
        if self.join.begin == "zero":
            return self.d
        return (self.head or self.body).accumulator

    @property
    def period(self) -> int:
        return self.partition.period(self)

    @property
    def parts(self) -> tuple[Stage, ...]:
        if self.partition.takes == "first":
            assert self.head is not None
            return (self.head, self.body)
        return (self.body, *(part for part in (self.tail, self.head) if part is not None))

    @property
    def takes_start(self) -> bool:
        return all(part.takes_start for part in self.parts if part is not self.body or self.join.begin != "zero")

    @property
    def repeats_one_step(self) -> bool:
        return isinstance(self.join, InTurn) and isinstance(self.partition, Runs)

    @property
    def grows(self) -> Growth:
        """How it takes n times as many products, each time in the same steps."""
        return self.partition.grows(self)

    def run(self, engine: Engine[V], span: Span, start: V) -> V:
        return self.join.run(engine, self, span, start)

    def added(self, engine: Engine[V], values: Sequence[V]) -> V:
        """Sums added one after another, each addition rounded."""
        assert self.rounding is not None
        return engine.in_order(values, self.rounding)

    def alone(self, engine: Engine[V], value: V) -> V:
        """A sum to which nothing is added, in the stage's format all the same."""
        assert self.rounding is not None
        return value if self.body.d == self.d else engine.rounded([value], self.rounding)


# -- those with names of their own


def in_format(body: Stage, rounding: Rounding) -> Parted:
    """A stage's result, rounded: into the format of a workspace, say."""
    return Parted(All(), Only(rounding), body)


def promoted(
    every: int, body: Stage, rounding: Rounding, even: int = 0, tail: Stage | None = None, share: int = 0
) -> Parted:
    """Sums of `every` products from +0, each added to the accumulator."""
    return Parted(Runs(every, even, share), Promote(rounding), body, tail)


def in_turns(every: int, body: Stage, tail: Stage | None = None) -> Parted:
    """Every `every` products go through a stage, from the sum so far."""
    return Parted(Runs(every), Through(), body, tail)


def in_passes(ways: int, body: Stage, grain: int = 1) -> Parted:
    """A stage in passes over parts of the products, each from the sum so far."""
    return Parted(Swizzled(ways, grain), Through(), body)


def in_multiples(number: int, body: Stage, head: Stage | None = None, tail: Stage | None = None) -> Parted:
    """Whole multiples of `number` products go through a stage, those left over through another one."""
    return Parted(Whole(number), Through(), body, tail, head)


def after_first(number: int, head: Stage, body: Stage) -> Parted:
    """The first products go through one stage, all others through another one, from its sum."""
    return Parted(First(number), Through(), body, None, head)


def in_runs(ways: int, body: Stage, rounding: Rounding, order: Order = "sequential", grain: int = 0) -> Parted:
    """Equal runs, summed apart and added."""
    return Parted(Equal(ways, grain), Add(rounding, order), body)


def in_runs_at(at: tuple[int, ...], body: Stage, rounding: Rounding, order: Order = "sequential") -> Parted:
    """Runs that end at given places, summed apart and added."""
    return Parted(At(at), Add(rounding, order), body)


def interleaved(
    ways: int, body: Stage, rounding: Rounding, order: Order = "sequential", grain: int = 1, tail: Stage | None = None
) -> Parted:
    """Accumulators that take products in turn, and are added."""
    return Parted(Interleaved(ways, grain), Add(rounding, order), body, tail)


def in_vectors(
    body: Stage, rounding: Rounding, steps: tuple[int | Fold, ...], head: int = 0, tail: Stage | None = None,
    unroll: int = 0, order: Order = "sequential", grain: int = 1,
) -> Parted:  # fmt: skip
    """The lanes of vectors, and their folds."""
    return Parted(Lanes(steps, head, unroll, order, grain), Tree(rounding), body, tail)


def in_halves(most: int, body: Stage, rounding: Rounding, grain: int = 1, first: Half = "larger") -> Parted:
    """Pairwise summation."""
    return Parted(Halves(most, grain, first), Tree(rounding), body)


def in_windows(every: int, body: Stage, rounding: Rounding) -> Parted:
    """Windows of products, and windows of their sums."""
    return Parted(Windows(every), Tree(rounding), body)


def parts_of(stage: Stage, kind: type[P], join: type[Join] = Join) -> P | None:
    """The partition of a stage, if it is of a kind, and joined so."""
    if isinstance(stage, Parted) and isinstance(stage.partition, kind) and isinstance(stage.join, join):
        return stage.partition
    return None
