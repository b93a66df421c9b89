"""Stages: how a plan adds the products of a span. A stage is a unit that takes products in tiles; or a partition of the
products (partitions.py) with another stage that adds each part and a join (joins.py) of the parts' sums. A stage is a
frozen value. Its method `run` calls the operations of an engine (engine.py)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal, TypeVar

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Round
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.engine import Engine
from mmaprobe.smtmodel.plans.span import Span
from mmaprobe.smtmodel.plans.words import Words

V = TypeVar("V")
P = TypeVar("P", bound="Partition")
#: the value with which parts begin: each with the sum so far; each with +0; the first with the start, others with +0
Begin = Literal["so far", "zero", "start"]
#: how a stage takes n times as many products: in n times as many parts ("parts"); in n times as many parts whose sums
#: are added in order to the sum of the first part ("ordered"); in parts of n times as many products ("each"); in a
#: longer last part after unchanged parts ("last"); in more levels of halves ("halves"); in n times as many parts that
#: hand on more than the sum so far ("carried"); in none of these ways ("")
Growth = Literal["parts", "ordered", "each", "last", "halves", "carried", ""]


def check_holds(what: str, fmt: Format, other: Format) -> None:
    """Raises ParameterError where `fmt` does not hold every number of the other format."""
    if not fmt.holds(other):
        message = f"{other.name} and {fmt.name} cannot be chained: not every {other.name} is one of {fmt.name}"
        raise ParameterError(what, f"{message}; round it first")


def check_positive(name: str, number: int, or_zero: bool = False) -> None:
    """Raises ParameterError for a number that is not positive; `or_zero` allows 0, which means none."""
    if number < 1 - or_zero:
        none = ", or 0 for none" if or_zero else ""
        raise ParameterError(name, f"{number} is impossible; it takes a positive whole number{none}")


def check_takes(what: str, stage: Stage) -> None:
    """Raises ParameterError for a stage that loses its start, because a unit does not read c."""
    if not stage.takes_start:
        units = ", ".join(model.reference or "a unit" for model in stage.models if not model.addend)
        raise ParameterError(what, f"{units} does not read c, and an earlier sum would be lost")


class Stage(ABC):
    """A way to add the products of a span to a start."""

    tail: Stage | None

    @property
    @abstractmethod
    def d(self) -> Format:
        """The format of the result."""

    @property
    @abstractmethod
    def accumulator(self) -> Format:
        """The format of the start."""

    @property
    @abstractmethod
    def period(self) -> int:
        """The least number of products that the stage takes without a tail."""

    @property
    def tile(self) -> int:
        """A number of products of which the stage takes every multiple, with whole units: K may be cut there."""
        return self.period

    @property
    @abstractmethod
    def parts(self) -> tuple[Stage, ...]:
        """The stages that this stage consists of."""

    def walk(self) -> Iterator[Stage]:
        """The stage and all stages within it."""
        yield self
        for part in self.parts:
            yield from part.walk()

    def changed(self, change: Callable[[Chain], Stage]) -> Stage:
        """The stage with each use of a unit replaced by the stage that `change` returns."""
        own: dict[str, Any] = {
            one.name: part.changed(change) if isinstance(part, Stage) else tuple(body.changed(change) for body in part)
            for one in fields(self)  # type: ignore[arg-type]
            if isinstance(part := getattr(self, one.name), Stage) or one.name == "bodies"
        }
        return replace(self, **own)  # type: ignore[type-var]

    @property
    def takes_start(self) -> bool:
        """Whether the result depends on the start: a unit that does not read c ignores the start."""
        return all(part.takes_start for part in self.parts)

    @property
    def repeats_one_step(self) -> bool:
        """Whether the stage is a loop that repeats one step from the sum so far."""
        return False

    @abstractmethod
    def run(self, engine: Engine[V], span: Span, start: V) -> V:
        """The sum of a span's products and a start. Raises ParameterError for a number of products that does not
        fit."""

    def from_zero(self, engine: Engine[V], span: Span) -> V:
        return self.run(engine, span, engine.zero(self.accumulator))

    def run_tail(self, engine: Engine[V], span: Span, start: V) -> V:
        """The sum of the products left over and a start, computed by the tail."""
        assert self.tail is not None
        with engine.part("tail"):
            return self.tail.run(engine, span, start)

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """The units of the stage, each once."""
        return tuple(dict.fromkeys(chain.model for chain in self.chains))

    @cached_property
    def chains(self) -> tuple[Chain, ...]:
        """The uses of units in the stage, each once."""
        return tuple(dict.fromkeys(stage for stage in self.walk() if isinstance(stage, Chain)))

    @cached_property
    def roundings(self) -> tuple[Rounding, ...]:
        """The roundings of sums outside units: the stage's own rounding, then the roundings of the stages within."""
        every = (stage.rounding for stage in self.walk() if isinstance(stage, Parted))
        return tuple(how for how in every if how is not None)

    def _check_tail(self) -> None:
        """Raises ParameterError for a tail that cannot take the sum so far, or that gives another format."""
        if self.tail is not None:
            check_takes("tail", self.tail)
            check_holds("tail", self.tail.accumulator, self.d)
            self._check_alike("tail", self.tail)

    def _check_alike(self, name: str, part: Stage) -> None:
        if part.d != self.d:
            raise ParameterError(name, f"its results are {part.d.name}, the others {self.d.name}: round them alike")


@dataclass(frozen=True)
class Chain(Stage):
    """A unit that takes products in tiles of its length, in order; each tile's result is the next tile's addend. The
    products left over at the end go through `tail` (such as a shorter unit), or into a last tile that zero products
    fill up.

    `a`, `b`: the word that the unit reads of each element of A or of B; None stands for the element itself, converted
    as the plan says."""

    model: Model
    tail: Stage | None = None
    a: Round | None = None
    b: Round | None = None
    repeats_one_step = True

    def __post_init__(self) -> None:
        self._check_tail()

    @property
    def words(self) -> Words:
        return self.a, self.b

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

    def changed(self, change: Callable[[Chain], Stage]) -> Stage:
        return change(self if self.tail is None else replace(self, tail=self.tail.changed(change)))

    def run(self, engine: Engine[V], span: Span, start: V) -> V:
        length = self.model.length
        if span.count > length:
            check_takes("", self)
            check_holds(self.model.reference, self.model.c, self.d)
        whole, rest = span.cut(span.count - span.count % length)
        value = start if whole is None else engine.tiles(self.model, self.words, whole, start)
        if rest is None:
            return value
        if self.tail is not None:
            return self.run_tail(engine, rest, value)
        with engine.part("tail"):
            return engine.tile(self.model, self.words, rest, value)


@dataclass(frozen=True)
class Then(Stage):
    """Several stages that take the same products one after another, each from the sum of the stage before. A plan that
    represents an element by several words has one stage for each pair of words."""

    bodies: tuple[Stage, ...]
    tail: Stage | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if not self.bodies:
            raise ParameterError("then", "it needs a stage")
        for before, body in pairwise(self.bodies):
            check_takes("then", body)
            check_holds("then", body.accumulator, before.d)

    @property
    def d(self) -> Format:
        return self.bodies[-1].d

    @property
    def accumulator(self) -> Format:
        return self.bodies[0].accumulator

    @property
    def period(self) -> int:
        return math.lcm(*(body.period for body in self.bodies))

    @property
    def tile(self) -> int:
        return math.lcm(*(body.tile for body in self.bodies))

    @property
    def parts(self) -> tuple[Stage, ...]:
        return self.bodies

    def run(self, engine: Engine[V], span: Span, start: V) -> V:
        for number, body in enumerate(self.bodies):
            with engine.part(f"then{number}" if len(self.bodies) > 1 else ""):
                start = body.run(engine, span, start)
        return start


# -- partitions and joins


@dataclass(frozen=True)
class Part:
    """A span that the body adds. With `each` (not 0), a loop takes `each` products at a time."""

    span: Span
    name: str = ""
    each: int = 0


@dataclass(frozen=True)
class Cut:
    """A divided span: the parts that the body adds, the products before the parts (for the stage's head), and the
    products after the parts (`rest`, for the stage's tail)."""

    parts: Sequence[Part] = ()
    head: Span | None = None
    rest: Span | None = None


@dataclass(frozen=True)
class SumStructure:
    """What is known of the structure of a sum of `count` products. `sizes`: likely numbers of products of one part or
    of several adjacent parts. `places`: likely tuples of the places at which parts end."""

    count: int
    sizes: Sequence[int] = ()
    places: Sequence[tuple[int, ...]] = ()


@dataclass(frozen=True)
class Partition(ABC):
    """A division of the products of a span into parts. The fields are the parameters in a plan file. A parameter with
    a default stands there with its name; 0 means none."""

    word: ClassVar[str]
    """the name in a plan file; a stage with the usual join has the same name"""
    usual: ClassVar[str]
    """the name of the usual join"""
    joins: ClassVar[tuple[str, ...]] = ("through", "promote", "add", "compensate")
    """the names of the joins that this partition may have"""
    takes: ClassVar[str] = ""
    """further stages, besides the body: "tail", "head", both ("head tail", one of which is needed), or "first" """
    alone: ClassVar[bool] = False
    """whether all products are one part"""
    loops: ClassVar[bool] = False
    """whether the parts have equally many products, as the steps of a loop"""
    continues: ClassVar[bool] = False
    """whether a part may begin with the sum of another part, whatever the join"""
    growth: ClassVar[Growth] = ""
    """how n times as many products are divided"""
    unused: ClassVar[frozenset[str]] = frozenset()
    """parameters that have no effect where the products fill whole parts"""
    divided: ClassVar[str] = ""
    """the name of the parameter with the number of products in a whole part, or with the places at which parts end"""
    equal: ClassVar[str] = "parts alike, each one equal"
    """the words for two stages that are equal because their parts are"""

    @classmethod
    def likely(cls, structure: SumStructure) -> Iterable[Partition]:
        """The partitions that a library with a sum of this structure is likely to have, likeliest first."""
        return ()

    @abstractmethod
    def cut(self, span: Span, stage: Parted) -> Cut:
        """The parts of a span. Raises ParameterError for a number of products that does not fit."""

    @abstractmethod
    def words(self, stage: Parted, joined: str) -> str:
        """The description of the parts for users; `joined`: the description of the join, which follows."""

    def equal_words(self, stage: Parted) -> str:
        """The text `equal` with the values of this partition's parameters."""
        return self.equal.format(**vars(self))

    def check(self, stage: Parted) -> None:
        """Raises ParameterError for impossible parameters."""
        for number, own in enumerate(fields(self)):
            value, name = getattr(self, own.name), own.name if number else stage.word
            if isinstance(value, int):
                check_positive(name, value, own.default == 0)

    def period(self, stage: Parted) -> int:
        """The least number of products that the stage takes with no product left over."""
        return self.multiple(stage.body.period, (stage,)) or stage.body.period

    def tile(self, stage: Parted) -> int:
        """`Stage.tile` of a stage with this partition. Most partitions have shorter last parts, or a tail."""
        return math.lcm(*(part.tile for part in (stage.body, stage.head) if part is not None))

    def multiple(self, number: int, stages: Sequence[Parted]) -> int:
        """A number m of products, or 0 if no m is known. Any stages with this partition (the parameters `unused` may
        differ) divide any multiple of m products in the same way into whole parts. If all `counts` are multiples of
        `number`, the size of each part is a multiple of `number` too."""
        return 0

    @property
    def counts(self) -> tuple[int, ...]:
        """The parameters that have to be multiples of the body's number of products."""
        given = getattr(self, self.divided) if self.divided else ()
        return given if isinstance(given, tuple) else (given,)

    def grows(self, stage: Parted) -> Growth:
        """The growth of a stage with this partition and the stage's join."""
        return self.growth

    def repeats(self, stage: Parted) -> tuple[int, int]:
        """The number of products taken once, and then the number of products taken repeatedly."""
        return 0, stage.period

    @property
    def sums(self) -> int:
        """The largest number of sums of parts; 0 if no largest number is known."""
        return 0

    def starts(self, length: int, stage: Parted) -> Iterable[int]:
        """The places at which the parts of `length` products begin; a search for a difference tries these."""
        return ()

    def turn(self, stage: Parted) -> int:
        """The number of products from the start of one turn to the start of the next."""
        return stage.period

    def begins(self, length: int, stage: Parted) -> Sequence[int]:
        """The places of the first products of all sums, for `length` products: a large first product leads to a large
        error."""
        return ()

    def in_tree(self, engine: Engine[V], stage: Parted, span: Span, start: V) -> V:
        """The sum of a span's products and a start, where the sums of parts are added in this partition's tree."""
        raise ParameterError(self.word, "these parts have no tree")


@dataclass(frozen=True)
class Join(ABC):
    """A way to add the sums of parts. The fields are the parameters in a plan file: a rounding, and options."""

    word: ClassVar[str]
    """the name in a plan file"""
    begin: ClassVar[Begin]
    """the value with which parts begin"""
    carries: ClassVar[bool] = False
    """whether parts hand on more than the sum so far, such as a compensation"""

    @property
    def in_order(self) -> bool:
        """Whether parts have sums of their own, which are added one after another to the first sum."""
        return False

    @abstractmethod
    def joined(self, engine: Engine[V], stage: Parted, parts: Sequence[Part], start: V) -> V:
        """The sum of some parts' products and a start."""

    @abstractmethod
    def words(self) -> str:
        """The description of the addition for users, which follows the description of the partition."""

    def run(self, engine: Engine[V], stage: Parted, span: Span, start: V) -> V:
        """The sum of a span's products and a start: first the head's products, then the parts, then the tail's
        products."""
        cut = stage.partition.cut(span, stage)
        if cut.head is not None:
            assert stage.head is not None
            with engine.part(stage.head_name):
                start = stage.head.run(engine, cut.head, start)
        value = self.joined(engine, stage, cut.parts, start) if cut.parts else start
        return value if cut.rest is None else stage.run_tail(engine, cut.rest, value)


@dataclass(frozen=True)
class Parted(Stage):
    """A partition, the stage `body` that adds each part, and the join of the parts' sums. `head`: the stage for the
    products before the parts. `tail`: the stage that adds the products after the parts to the sum so far."""

    partition: Partition
    join: Join
    body: Stage
    tail: Stage | None = None
    head: Stage | None = None

    def __post_init__(self) -> None:
        self._check_kinds()
        self.partition.check(self)
        follows = self.join.begin == "so far" and not self.partition.alone
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
        """The description of the parts and of their join for users."""
        only = self.partition.alone and self.join.begin == "so far"
        return self.partition.words(self, "" if only else self.join.words())

    @property
    def word(self) -> str:
        """The stage's name in a plan file."""
        return self.partition.word if self.partition.usual == self.join.word else self.join.word

    @property
    def head_name(self) -> str:
        return "first" if self.partition.takes == "first" else "head"

    @property
    def rounding(self) -> Rounding | None:
        """The rounding of the join's additions."""
        how: Rounding | None = getattr(self.join, "rounding", None)
        return how

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
    def tile(self) -> int:
        return self.partition.tile(self)

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
        return self.partition.loops and self.join.begin != "start" and not self.join.carries

    @property
    def grows(self) -> Growth:
        """How the stage takes n times as many products. If parts of growth "each" begin with the sum so far and repeat
        one step, all parts together are one loop over products in another order, which takes n times as many steps."""
        growth = self.partition.grows(self)
        if self.join.carries:
            return "carried" if growth == "parts" else growth if growth == "each" else ""
        if growth != "each" or self.partition.alone or self.join.begin != "so far":
            return growth
        return "parts" if self.body.repeats_one_step else ""

    def run(self, engine: Engine[V], span: Span, start: V) -> V:
        return self.join.run(engine, self, span, start)

    def added(self, engine: Engine[V], values: Sequence[V]) -> V:
        """The values added one after another, with each addition rounded."""
        assert self.rounding is not None
        return engine.in_order(values, self.rounding)

    def alone(self, engine: Engine[V], value: V) -> V:
        """A sum that needs no addition, rounded to the stage's format."""
        assert self.rounding is not None
        return value if self.body.d == self.d else engine.rounded([value], self.rounding)


def parts_of(stage: Stage, kind: type[P], join: type[Join] = Join) -> P | None:
    """The partition of a stage if the partition and the join have these classes; else None."""
    if isinstance(stage, Parted) and isinstance(stage.partition, kind) and isinstance(stage.join, join):
        return stage.partition
    return None


def with_words(stage: Stage, change: Callable[[Round], Round]) -> Stage:
    """The stage with `change` applied to each word that its units read."""

    def changed(use: Chain) -> Chain:
        a, b = (None if word is None else change(word) for word in use.words)
        return replace(use, a=a, b=b)

    return stage.changed(changed)
