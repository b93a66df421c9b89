"""Stages: how a plan adds the products of a span. Each is a frozen value that directs an engine. One engine makes an
expression (lowering.py), another one computes with matrices (matrices.py)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Generic, Literal, TypeVar, get_args

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes.index import Index
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.span import Span, moved

V = TypeVar("V")
Order = Literal["sequential", "pairwise", "backwards"]
ORDERS: tuple[Order, ...] = get_args(Order)
Half = Literal["larger", "smaller"]
HALVES: tuple[Half, ...] = get_args(Half)
MOST_LANES = 4096  # each is a sum of its own, even where there are fewer products


class Engine(ABC, Generic[V]):
    """What carries out the steps of a plan; V: the type of a sum so far."""

    @abstractmethod
    def zero(self, fmt: Format) -> V:
        """+0."""

    @abstractmethod
    def tile(self, model: Model, span: Span, start: V) -> V:
        """One use of a unit, at most its length of products; those that are missing are zero."""

    def tiles(self, model: Model, span: Span, start: V) -> V:
        """Uses of a unit for all products of a span, which its length divides; each result is the next one's addend."""
        return _through(self, span, model.length, "tile", start, lambda part, x: self.tile(model, part, x))[0]

    @abstractmethod
    def rounded(self, values: Sequence[V], rounding: Rounding) -> V:
        """The exact sum of values (or one value), rounded."""

    @abstractmethod
    def repeat(self, count: int, name: str, start: V, body: Callable[[Index, V], V]) -> V:
        """The body repeated, from the loop variable and the result so far."""

    @abstractmethod
    def part(self, name: str) -> AbstractContextManager[None]:
        """Within this context, steps belong to a part with this name."""


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


def _through(
    engine: Engine[V], span: Span, count: int, name: str, start: V, body: Callable[[Span, V], V]
) -> tuple[V, Span | None]:
    """The body for every `count` products of a span in turn, and what is left of the span."""
    whole, rest = span.cut(span.count - span.count % count)
    if whole is None:
        return start, rest
    first, loops = whole.loops(count)

    def nest(left: tuple[tuple[int, int], ...], part: Span, running: V) -> V:
        if not left:
            return body(part, running)
        (times, distance), *inner = left
        outer = name if not inner or all(number == 1 for number, _ in inner) else "group"
        return engine.repeat(times, outer, running, lambda k, x: nest(tuple(inner), part.at(k, distance), x))

    return nest(loops, first, start), rest


class Stage(ABC):
    """How the products of a span are added to a start."""

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

    @abstractmethod
    def run(self, engine: Engine[V], span: Span, start: V) -> V:
        """Its result from a start. Raises ParameterError for a number of products that does not fit."""

    def from_zero(self, engine: Engine[V], span: Span) -> V:
        return self.run(engine, span, engine.zero(self.accumulator))

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """The units that it uses, each once."""
        own = (self.model,) if isinstance(self, Chain) else ()
        return tuple(dict.fromkeys((*own, *(model for part in self.parts for model in part.models))))


@dataclass(frozen=True)
class Chain(Stage):
    """Tiles of the unit's length in order, each result the next tile's addend. What is left over at the end goes
    through `tail` (a shorter unit, or one that takes a single product), or into a last tile filled up with zeros."""

    model: Model
    tail: Stage | None = None

    def __post_init__(self) -> None:
        _check_tail(self, self.tail)

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

    def run(self, engine: Engine[V], span: Span, start: V) -> V:
        length = self.model.length
        if span.count > length:
            check_takes(self.model.reference, self)
            check_holds(self.model.reference, self.model.c, self.d)
        whole, rest = span.cut(span.count - span.count % length)
        value = start if whole is None else engine.tiles(self.model, whole, start)
        if rest is None:
            return value
        with engine.part("tail"):
            return engine.tile(self.model, rest, value) if self.tail is None else self.tail.run(engine, rest, value)


class Around(Stage):
    """A stage around another one, the body, that rounds what it makes of the body's sums."""

    body: Stage
    rounding: Rounding

    @property
    def d(self) -> Format:
        return self.rounding.format

    @property
    def accumulator(self) -> Format:
        return self.body.accumulator

    @property
    def period(self) -> int:
        return self.body.period

    @property
    def parts(self) -> tuple[Stage, ...]:
        return (self.body,)


@dataclass(frozen=True)
class Rounded(Around):
    """A stage's result, rounded: into the format of a workspace, say."""

    body: Stage
    rounding: Rounding

    def run(self, engine: Engine[V], span: Span, start: V) -> V:
        return engine.rounded([self.body.run(engine, span, start)], self.rounding)


@dataclass(frozen=True)
class Promoted(Around):
    """Every `every` products are summed by a stage from +0, and that sum is added to the accumulator and rounded. What
    is left at the end is a shorter sum, or goes through `tail`, from the accumulator; with `even` (not 0) the shorter
    sum and the one before it are made equal: the first of them has half of the products, rounded down (up where `even`
    is 1), then up to a multiple of `even`; with `share` (not 0) all sums are made equal, of the next multiple of
    `share` above an equal share; the last one takes what is left."""

    every: int
    body: Stage
    rounding: Rounding
    even: int = 0
    tail: Stage | None = None
    share: int = 0

    def __post_init__(self) -> None:
        _positive("promote", self.every)
        _check_tail(self, self.tail)
        for name, number in (("even", self.even), ("share", self.share)):
            if number and self.tail is not None:
                raise ParameterError(name, "what is left goes through a tail, or is made equal: one of them")
            _check_optional(name, number)
        if self.even and self.share:
            raise ParameterError("share", "the last two sums are made equal, or all of them: one of them")
        if self.share and self.every % self.share:
            raise ParameterError("share", f"{self.every} is not a multiple of {self.share}")

    @property
    def d(self) -> Format:
        return self.rounding.format

    @property
    def accumulator(self) -> Format:
        return self.rounding.format

    @property
    def period(self) -> int:
        return math.lcm(self.every, self.body.period)

    @property
    def parts(self) -> tuple[Stage, ...]:
        return _with_tail(self.body, self.tail)

    @property
    def takes_start(self) -> bool:
        return self.tail is None or self.tail.takes_start

    def size(self, count: int) -> int:
        """Products of each sum but the last ones, of a number of products."""
        if not self.share or count <= self.every or count % self.every == 0:
            return self.every
        return (count // (self.share * (count // self.every + 1)) + 1) * self.share

    def run(self, engine: Engine[V], span: Span, start: V) -> V:
        def chunk(part: Span, running: V) -> V:
            return engine.rounded([running, self.body.from_zero(engine, part)], self.rounding)

        every = self.size(span.count)
        full, left = divmod(span.count, every)
        if not (self.even and left and full):
            value, rest = _through(engine, span, every, "chunk", start, chunk)
            if rest is None:
                return value
            if self.tail is not None:
                with engine.part("tail"):
                    return self.tail.run(engine, rest, value)
            with engine.part("last"):
                return chunk(rest, value)
        whole, ends = span.cut((full - 1) * self.every)
        value = start if whole is None else _through(engine, whole, self.every, "chunk", start, chunk)[0]
        assert ends is not None
        half = (ends.count + (self.even == 1)) // 2
        for number, part in enumerate(ends.cut(-(-half // self.even) * self.even)):
            if part is not None:
                with engine.part(f"last{number}"):
                    value = chunk(part, value)
        return value


@dataclass(frozen=True)
class Turns(Stage):
    """Every `every` products go through a stage, from the sum so far. What is left at the end is a shorter turn, or
    goes through `tail`."""

    every: int
    body: Stage
    tail: Stage | None = None

    def __post_init__(self) -> None:
        _positive("turns", self.every)
        check_takes("turns", self.body)
        check_holds("turns", self.body.accumulator, self.d)
        _check_tail(self, self.tail)

    @property
    def d(self) -> Format:
        return self.body.d

    @property
    def accumulator(self) -> Format:
        return self.body.accumulator

    @property
    def period(self) -> int:
        return math.lcm(self.every, self.body.period)

    @property
    def parts(self) -> tuple[Stage, ...]:
        return _with_tail(self.body, self.tail)

    def run(self, engine: Engine[V], span: Span, start: V) -> V:
        def turn(part: Span, running: V) -> V:
            return self.body.run(engine, part, running)

        value, rest = _through(engine, span, self.every, "turn", start, turn)
        if rest is None:
            return value
        with engine.part("last" if self.tail is None else "tail"):
            return (self.tail or self.body).run(engine, rest, value)


@dataclass(frozen=True)
class Swizzled(Stage):
    """The stage in `ways` passes, each from the sum so far: over the first `grain` of every `ways` * `grain` products,
    then over the next `grain` of each, and so on. A pass is the whole stage over its own products: it divides these
    alone, and fills up a last tile of them."""

    ways: int
    body: Stage
    grain: int = 1

    def __post_init__(self) -> None:
        _positive("swizzle", self.ways)
        _positive("grain", self.grain)
        check_takes("swizzle", self.body)
        check_holds("swizzle", self.body.accumulator, self.d)

    @property
    def d(self) -> Format:
        return self.body.d

    @property
    def accumulator(self) -> Format:
        return self.body.accumulator

    @property
    def period(self) -> int:
        return self.ways * math.lcm(self.grain, self.body.period)

    @property
    def parts(self) -> tuple[Stage, ...]:
        return (self.body,)

    def run(self, engine: Engine[V], span: Span, start: V) -> V:
        turn, size = self.ways * self.grain, self.grain * span.step
        if span.groups > 1:
            raise span.unfit(turn)
        if span.count % self.grain:
            fits = f"it takes multiples of {self.grain}"
            raise ParameterError("swizzle", f"{span.count} products do not fit: {fits}")
        value = start
        for number in range(min(self.ways, span.count // self.grain)):
            groups = -(-(span.count - number * self.grain) // turn)
            part = Span(moved(span.start, number * size), groups, turn * span.step, self.grain, span.step)
            with engine.part(f"pass{number}" if self.ways > 1 else ""):
                value = self.body.run(engine, part, value)
        return value


@dataclass(frozen=True)
class Whole(Stage):
    """Whole multiples of `number` products go through a stage. Those left over go through `tail` after them, or through
    `head` before them, which takes `number` products where none are left over."""

    number: int
    body: Stage
    head: Stage | None = None
    tail: Stage | None = None

    def __post_init__(self) -> None:
        _positive("whole", self.number)
        if (self.head is None) == (self.tail is None):
            raise ParameterError("whole", "what is left over goes through a head or a tail: one of them")
        _check_tail(self, self.tail)
        if self.head is not None:
            check_takes("whole", self.body)
            check_holds("whole", self.body.accumulator, self.head.d)
            _check_alike(self, "head", self.head)

    @property
    def d(self) -> Format:
        return self.body.d

    @property
    def accumulator(self) -> Format:
        return (self.head or self.body).accumulator

    @property
    def period(self) -> int:
        return math.lcm(self.number, self.body.period)

    @property
    def parts(self) -> tuple[Stage, ...]:
        return _with_tail(self.body, self.tail or self.head)

    def run(self, engine: Engine[V], span: Span, start: V) -> V:
        left = span.count % self.number
        if self.head is not None:
            first, rest = span.cut(left or self.number)
            assert first is not None
            with engine.part("head"):
                value = self.head.run(engine, first, start)
            return value if rest is None else self.body.run(engine, rest, value)
        whole, rest = span.cut(span.count - left)
        value = start if whole is None else self.body.run(engine, whole, start)
        if rest is None:
            return value
        assert self.tail is not None
        with engine.part("tail"):
            return self.tail.run(engine, rest, value)


@dataclass(frozen=True)
class First(Stage):
    """The first `number` products go through `head`, all others through a stage, from its sum."""

    number: int
    head: Stage
    body: Stage

    def __post_init__(self) -> None:
        _positive("first", self.number)
        check_takes("first", self.body)
        check_holds("first", self.body.accumulator, self.head.d)
        _check_alike(self, "first", self.head)

    @property
    def d(self) -> Format:
        return self.body.d

    @property
    def accumulator(self) -> Format:
        return self.head.accumulator

    @property
    def period(self) -> int:
        return math.lcm(self.number, self.head.period, self.body.period)

    @property
    def parts(self) -> tuple[Stage, ...]:
        return (self.head, self.body)

    def run(self, engine: Engine[V], span: Span, start: V) -> V:
        first, rest = span.cut(min(self.number, span.count))
        assert first is not None
        with engine.part("first"):
            value = self.head.run(engine, first, start)
        return value if rest is None else self.body.run(engine, rest, value)


class Runs(Around):
    """A stage that cuts its products into runs, each summed by a stage; the first one from the start, the others from
    +0. The sums are added in order, in pairs, or in order from the last one, each addition rounded."""

    order: Order

    @abstractmethod
    def spans(self, span: Span) -> Iterator[Span]:
        """The runs of products. Raises ParameterError for a number of products that does not fit."""

    def run(self, engine: Engine[V], span: Span, start: V) -> V:
        found = []
        spans = list(self.spans(span))
        for number, part in enumerate(spans):
            with engine.part(f"part{number}" if len(spans) > 1 else ""):
                begin = start if number == 0 else engine.zero(self.body.accumulator)
                found.append(self.body.run(engine, part, begin))
        return _joined(engine, found, self)


@dataclass(frozen=True)
class Split(Runs):
    """`ways` runs, as equal as multiples of `grain` can be; the last ones may be shorter, or none."""

    ways: int
    body: Stage
    rounding: Rounding
    order: Order = "sequential"
    grain: int = 0  # 0: the period of the body

    def __post_init__(self) -> None:
        _positive("split", self.ways)
        _check_optional("grain", self.grain)

    @property
    def period(self) -> int:
        return self.ways * math.lcm(self.grain or 1, self.body.period)

    def spans(self, span: Span) -> Iterator[Span]:
        grain = self.grain or self.body.period
        size = -(-span.count // (grain * self.ways)) * grain
        rest: Span | None = span
        while rest is not None:
            first, rest = rest.cut(min(size, rest.count))
            if first is not None:
                yield first


@dataclass(frozen=True)
class Uneven(Runs):
    """Runs that end at given numbers of products, the last one at the end: stream-K deals tiles of K to workers, and
    one of them may end a result and begin the next one."""

    at: tuple[int, ...]
    body: Stage
    rounding: Rounding
    order: Order = "sequential"

    def __post_init__(self) -> None:
        if not self.at:
            raise ParameterError("split", "a list says where K is cut: it needs a place")
        for before, place in zip((0, *self.at), self.at, strict=False):
            if place <= before or place % self.body.period:
                fits = f"places rise, and are multiples of {self.body.period}"
                raise ParameterError("split", f"K cannot be cut at {place} after {before}: {fits}")

    @property
    def period(self) -> int:
        return (self.at[-1] // self.body.period + 1) * self.body.period

    def spans(self, span: Span) -> Iterator[Span]:
        if span.count <= self.at[-1]:
            raise ParameterError("split", f"{span.count} products do not fit: the last cut is at {self.at[-1]}")
        rest: Span | None = span
        for before, place in zip((0, *self.at), self.at, strict=False):
            assert rest is not None
            first, rest = rest.cut(place - before)
            assert first is not None
            yield first
        assert rest is not None
        yield rest


@dataclass(frozen=True)
class Interleaved(Around):
    """`ways` accumulators that take runs of `grain` products in turn, the first one from the start, the others from
    +0; added at the end as a split's are. What no full turn takes goes through `tail`, from the sum."""

    ways: int
    body: Stage
    rounding: Rounding
    order: Order = "sequential"
    grain: int = 1
    tail: Stage | None = None

    def __post_init__(self) -> None:
        _positive("interleave", self.ways)
        _positive("grain", self.grain)
        _check_tail(self, self.tail)

    @property
    def period(self) -> int:
        return self.ways * math.lcm(self.grain, self.body.period)

    @property
    def parts(self) -> tuple[Stage, ...]:
        return _with_tail(self.body, self.tail)

    def run(self, engine: Engine[V], span: Span, start: V) -> V:
        turn = self.ways * self.grain
        whole, rest = span.cut(span.count - span.count % turn)
        value = start
        if whole is not None:
            if whole.groups > 1:
                raise whole.unfit(turn)
            found = []
            for number in range(self.ways):
                place = Index(whole.start.offset + number * self.grain * whole.step, whole.start.factors)
                part = Span(place, whole.count // turn, turn * whole.step, self.grain, whole.step)
                with engine.part(f"lane{number}" if self.ways > 1 else ""):
                    begin = start if number == 0 else engine.zero(self.body.accumulator)
                    found.append(self.body.run(engine, part, begin))
            value = _joined(engine, found, self)
        if rest is None:
            return value
        if self.tail is None:
            fits = f"it takes multiples of {turn} unless it has a tail"
            raise ParameterError("interleave", f"{span.count} products do not fit: {fits}")
        with engine.part("tail"):
            return self.tail.run(engine, rest, value)


@dataclass(frozen=True)
class Fold:
    """Groups of `ways` lanes, `stride` apart, each become one: added in order, each addition rounded. Of fewer
    than `ways` * `stride` lanes, the last groups have one fewer."""

    ways: int
    stride: int

    def takes(self, lanes: int) -> bool:
        """Whether that many lanes are such groups."""
        size = self.ways * self.stride
        return self.ways > 1 and (lanes % size == 0 or size - self.stride < lanes < size)

    def groups(self, lanes: int) -> Iterator[Sequence[int]]:
        """The lanes that each of those that are left takes."""
        size = self.ways * self.stride
        for first in range(0, lanes, size):
            for inner in range(self.stride):
                yield range(first + inner, min(first + size, lanes), self.stride)

    def left(self, lanes: int) -> int:
        """How many lanes are left of that many."""
        return self.stride * -(-lanes // (self.ways * self.stride))


@dataclass(frozen=True)
class Lanes(Around):
    """The lanes of vectors: a step that is a number of lanes takes whole turns, of `grain` products for each lane; a
    fold adds lanes to each other. Later steps take what earlier ones left, with as many of the first lanes as they
    say; lane 0 begins with the start, the others with +0. What is left in the end goes through `tail`, from the sum;
    without one the last lanes that take products take it in a turn that is short: the first of them `grain` products
    each, the next one what is left. With `head` (not 0) a short turn
    comes first: of the products that fill no turn of the first lanes, as many as `head` divides. With `unroll` (not 0)
    the first lanes take a multiple of `unroll` products, with `order` backwards each `unroll` of them from the last
    turn to the first one; what is left goes to later steps or the tail."""

    body: Stage
    rounding: Rounding
    steps: tuple[int | Fold, ...]
    head: int = 0
    tail: Stage | None = None
    unroll: int = 0
    order: Order = "sequential"
    grain: int = 1

    def __post_init__(self) -> None:
        _check_tail(self, self.tail)
        _check_optional("head", self.head)
        _positive("grain", self.grain)
        if self.grain > 1 and (self.head or self.unroll):
            raise ParameterError("grain", "lanes that take several products in a turn have neither head nor unroll")
        check_takes("lanes", self.body)
        check_holds("lanes", self.body.accumulator, self.d)
        if self.body.d != self.d:
            raise ParameterError(
                "lanes", f"their sums are {self.body.d.name}, folds give {self.d.name}: round them alike"
            )
        lanes = self.lanes
        _positive("lanes", lanes)
        if lanes > MOST_LANES:
            raise ParameterError("lanes", f"{lanes} are too many; at most {MOST_LANES}")
        self._check_unroll(lanes)
        if self.head >= lanes:
            raise ParameterError("head", f"a turn of {self.head} is not shorter than one of {lanes} lanes")
        for step in self.steps:
            if not isinstance(step, Fold):
                _positive("lanes", step)
                if step > lanes:
                    raise ParameterError("lanes", f"{step} lanes do not follow {lanes}")
                continue
            _positive("fold", step.ways)
            _positive("fold", step.stride)
            if not step.takes(lanes):
                raise ParameterError("fold", f"{lanes} lanes are not groups of {step.ways}, {step.stride} apart")
            lanes = step.left(lanes)
        if lanes != 1:
            raise ParameterError("lanes", f"{lanes} lanes are left at the end: fold them")

    def _check_unroll(self, lanes: int) -> None:
        _check_optional("unroll", self.unroll)
        if self.unroll % lanes:
            raise ParameterError("unroll", f"{self.unroll} is not a multiple of {lanes} lanes")
        if self.order == "pairwise" or (self.order == "backwards" and not self.unroll):
            raise ParameterError("order", "lanes take their products in order, or backwards with unroll")
        if self.unroll and self.head:
            raise ParameterError("unroll", "what fills no turn comes first, or at the end: head or unroll")
        if self.unroll and self.tail is None and all(isinstance(step, Fold) for step in self.steps[1:]):
            raise ParameterError("unroll", "nothing takes what is left over: give a tail, or lanes after the first")

    @property
    def lanes(self) -> int:
        """How many there are at first."""
        first = self.steps[0] if self.steps else None
        if first is None or isinstance(first, Fold):
            raise ParameterError("lanes", "the first step is a number of lanes")
        return first

    @property
    def period(self) -> int:
        return self.multiples(self.body.period)

    def multiples(self, number: int) -> int:
        """Products of which any multiple fills whole turns and gives each lane a multiple of a number."""
        return self.unroll * number if self.unroll else self.lanes * math.lcm(self.grain, number)

    @property
    def parts(self) -> tuple[Stage, ...]:
        return _with_tail(self.body, self.tail)

    def run(self, engine: Engine[V], span: Span, start: V) -> V:
        if span.groups > 1:
            raise span.unfit(self.lanes)
        found = [start, *(engine.zero(self.body.accumulator) for _ in range(self.lanes - 1))]
        rest: Span | None = span
        if self.head:
            left = span.count % self.lanes
            rest = self._taken(engine, "head", found, span, left - left % self.head, self.lanes)
        last = max(number for number, step in enumerate(self.steps) if not isinstance(step, Fold))
        for number, step in enumerate(self.steps):
            if isinstance(step, Fold):
                groups = list(step.groups(len(found)))
                with engine.part(f"fold{number}"):
                    found = [_in_order(engine, [found[lane] for lane in group], self.rounding) for group in groups]
            elif rest is not None:
                short = self.tail is None and number == last
                turn = self.unroll if self.unroll and not number else step * self.grain
                count = rest.count if short else rest.count - rest.count % turn
                back = number == 0 and self.order == "backwards"
                rest = self._taken(engine, f"step{number}", found, rest, count, step, back)
        if rest is None:
            return found[0]
        assert self.tail is not None
        with engine.part("tail"):
            return self.tail.run(engine, rest, found[0])

    def _taken(
        self, engine: Engine[V], name: str, found: list[V], span: Span, count: int, lanes: int, back: bool = False
    ) -> Span | None:
        """Adds the first products of a span to lanes in turn, and gives the rest of the span; `back`: each unrolled
        turn backwards."""

        def unrolled(part: Span, running: V) -> V:
            for turn in reversed(range(part.count)):
                with engine.part(f"turn{turn}"):
                    running = self.body.run(engine, Span.of(1, moved(part.start, turn * part.step)), running)
            return running

        whole, rest = span.cut(count)
        for lane in range(lanes) if whole is not None else ():
            for own in self._own(span, count, lanes, lane):
                fewer = ".short" if own.count < self.grain else ""
                with engine.part(f"{name}.lane{lane}{fewer}"):
                    if back:
                        found[lane], _ = _through(engine, own, self.unroll // lanes, "unrolled", found[lane], unrolled)
                    else:
                        found[lane] = self.body.run(engine, own, found[lane])
        return rest

    def _own(self, span: Span, count: int, lanes: int, lane: int) -> Iterator[Span]:
        """What a lane takes of the first `count` products: its whole turns, then a turn in which it has fewer."""
        turn, first = lanes * self.grain, lane * self.grain
        if (own := count - first) <= 0:
            return
        turns = own // turn + (own % turn >= self.grain)
        if turns:
            yield Span(moved(span.start, first * span.step), turns, turn * span.step, self.grain, span.step)
        if 0 < (left := own % turn) < self.grain:
            yield Span.of(left, moved(span.start, (count - left) * span.step), span.step)


@dataclass(frozen=True)
class Halves(Around):
    """Pairwise summation: more than `most` products are two halves, summed apart, added and rounded. The first half is
    a multiple of `grain`: the least that is the larger half, or the largest that is the smaller one (`first`); where
    that leaves one half without products, they are not halved. The first one begins with the start, the others with
    +0."""

    most: int
    body: Stage
    rounding: Rounding
    grain: int = 1
    first: Half = "larger"

    def __post_init__(self) -> None:
        _positive("halve", self.most)
        _positive("grain", self.grain)

    @property
    def longest(self) -> int:
        """The most products that are not halved."""
        return max(self.most, self.grain if self.first == "larger" else 2 * self.grain - 1)

    def run(self, engine: Engine[V], span: Span, start: V) -> V:
        grains, left_over = divmod(span.count, 2 * self.grain)
        half = (grains + (self.first == "larger" and left_over > 0)) * self.grain
        if span.count <= self.longest:
            return _alone(engine, self.body.run(engine, span, start), self)
        left, right = span.cut(half)
        assert left is not None
        assert right is not None
        with engine.part("left"):
            one = self.run(engine, left, start)
        with engine.part("right"):
            other = self.from_zero(engine, right)
        return engine.rounded([one, other], self.rounding)


@dataclass(frozen=True)
class Windows(Around):
    """Windows of `every` products, each summed by a stage, the first one from the start, the others from +0. What is
    missing to whole windows is missing from the first and from the last one, half of it each (one more from the last).
    More than `every` sums are added by windows in the same way, until there are at most so many, which are added in
    order, each addition rounded."""

    every: int
    body: Stage
    rounding: Rounding

    def __post_init__(self) -> None:
        _positive("windows", self.every)
        if self.every == 1:
            raise ParameterError("windows", "windows of one product leave as many sums: at least 2")

    def sizes(self, count: int) -> list[int]:
        """How many of a number of products, or of sums, each window has."""
        number = -(-count // self.every)
        first = self.every - (number * self.every - count) // 2
        return (
            [count] if number == 1 else [first, *[self.every] * (number - 2), count - first - (number - 2) * self.every]
        )

    def run(self, engine: Engine[V], span: Span, start: V) -> V:
        found, rest = list[V](), span
        for number, size in enumerate(self.sizes(span.count)):
            window, left = rest.cut(size)
            assert window is not None
            rest = left or rest
            with engine.part(f"window{number}" if left or number else ""):
                value = self.body.run(engine, window, engine.zero(self.body.accumulator) if number else start)
                found.append(_alone(engine, value, self))
        while len(found) > 1:
            sums, sizes = iter(found), self.sizes(len(found))
            found = [_in_order(engine, list(islice(sums, size)), self.rounding) for size in sizes]
        return found[0]


def _joined(engine: Engine[V], values: Sequence[V], stage: Runs | Interleaved) -> V:
    """Values added, each addition rounded: one after another from the first or the last one, or neighbours in pairs
    until one is left."""
    rounding, layer = stage.rounding, list(values)
    if stage.order == "backwards":
        layer.reverse()
    while stage.order == "pairwise" and len(layer) > 1:
        pairs = [engine.rounded(layer[k : k + 2], rounding) for k in range(0, len(layer) - 1, 2)]
        layer = pairs + (layer[-1:] if len(layer) % 2 else [])
    return _in_order(engine, layer, rounding) if len(values) > 1 else _alone(engine, values[0], stage)


def _in_order(engine: Engine[V], values: Sequence[V], rounding: Rounding) -> V:
    """Values added one after another, each addition rounded."""
    value, *others = values
    for other in others:
        value = engine.rounded([value, other], rounding)
    return value


def _alone(engine: Engine[V], value: V, stage: Runs | Interleaved | Halves | Windows) -> V:
    """A sum to which nothing is added, in the stage's format all the same."""
    return value if stage.body.d == stage.d else engine.rounded([value], stage.rounding)


def _with_tail(body: Stage, tail: Stage | None) -> tuple[Stage, ...]:
    return (body,) if tail is None else (body, tail)


def _check_tail(stage: Stage, tail: Stage | None) -> None:
    """Raises ParameterError where a tail cannot take the sum so far, or gives numbers of another format."""
    if tail is not None:
        check_takes("tail", tail)
        check_holds("tail", tail.accumulator, stage.d)
        _check_alike(stage, "tail", tail)


def _check_alike(stage: Stage, name: str, part: Stage) -> None:
    if part.d != stage.d:
        raise ParameterError(name, f"its results are {part.d.name}, the others {stage.d.name}: round them alike")


def _positive(name: str, number: int) -> None:
    if number < 1:
        raise ParameterError(name, f"{number} is impossible; it takes a positive whole number")


def _check_optional(name: str, number: int) -> None:
    if number < 0:
        raise ParameterError(name, f"{number} is impossible; it takes a positive whole number, or 0 for none")
