"""The steps by which a plan computes one element of D: tiles, additions, loops. A plan's stages call an engine;
`Recorder` is an engine that records the steps, so that rules are about steps and do not refer to stages.

Steps do not say which products they add: `Places` records these products, and checks that each is added once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm
from typing import Any, TypeVar, cast

from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Element, Index, Node, Round
from mmaprobe.smtmodel.nodes.element import flushed_in
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.engine import Engine, Way
from mmaprobe.smtmodel.plans.joins import Promote, Through
from mmaprobe.smtmodel.plans.lowering import partly_filled
from mmaprobe.smtmodel.plans.partitions import All, First, Halves
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.span import Span
from mmaprobe.smtmodel.plans.stages import Chain, Parted, Stage, Then
from mmaprobe.smtmodel.plans.words import Gathered, Words, word_at

MOST_PRODUCTS = 1 << 20  # the most products of a sum of which a bound is proved
LEAVES = 512  # the largest part that halves leave whole: the steps of each number of products up to it are recorded


@dataclass(frozen=True)
class PlanAt:
    """A plan for `length` products; or, without a length, for all numbers of products of `repeats`. Then n is the
    number of repetitions, at most m = `loops` loops follow one another, and G = (1 + r + ... + r^(n - 2)) * r^((m - 1)
    (n - 1)) for r = `growth`. For halves n is one more than the number of levels, and m = 1."""

    plan: Plan
    length: int | None = None
    growth: Fraction = Fraction(1)
    loops: int = 1

    @property
    def a(self) -> Format:
        return self.plan.a

    @property
    def b(self) -> Format:
        return self.plan.b

    @property
    def c(self) -> Format:
        return self.plan.c

    @property
    def d(self) -> Format:
        return self.plan.d

    @property
    def formats(self) -> Mapping[str, Format]:
        """The formats of the plan's operands, by name."""
        return self.plan.formats

    @property
    def result(self) -> Node:
        return self.plan.result

    @property
    def repeats(self) -> Repeats:
        return repeats_of(self.plan)


@dataclass(frozen=True)
class Repeats:
    """A stage takes `before` products once, and after them any number of times `period` products. A stage of halves
    takes any number of products: at most `width` * 2^t in t levels, from t = 0 on; `width` is 0 for other stages."""

    before: int
    period: int
    width: int = 0


def repeated(stage: Stage) -> Repeats:
    """The numbers of products that a stage takes once, and that it repeats."""
    if not isinstance(stage, Parted):
        return Repeats(0, stage.period)
    if isinstance(stage.partition, All):
        return repeated(stage.body)
    halves = stage.partition if stage.grows == "halves" else None
    return Repeats(*stage.partition.repeats(stage), halves.width if isinstance(halves, Halves) else 0)


def repeats_of(plan: Plan) -> Repeats:
    """The repetition common to all sums of a plan: its period is the least number of products that is whole periods of
    each sum. Raises RuleError if the sums begin with different numbers of products, or if one sum repeats halves and
    another does not."""
    every = {repeated(products.stage) for products in plan.sums}
    if len({(one.before, one.width) for one in every}) > 1 or (len(every) > 1 and any(one.width for one in every)):
        raise RuleError("sums of the plan repeat after different numbers of products: ask for a given K")
    period = lcm(*(one.period for one in every))
    if period > MOST_PRODUCTS:
        raise RuleError(f"it repeats {period} products, which are too many; at most {MOST_PRODUCTS}")
    return replace(next(iter(every)), period=period)


Pair = tuple[Node, Node]  # the expressions over an element of a, and over an element of b, that a unit reads


def _refused(part: Gathered) -> Node:
    raise RuleError("words: no rule is about a word that reads several elements, as by a shared exponent")


def pair_read(plan: Plan, model: Model, words: Words) -> Pair:
    """The expressions that a unit reads where its chain names these words. If the unit reads subnormal numbers as zero,
    the expression rounds them to zero. This is left out for a side of which all units read the elements as they are:
    there the exact result x is defined with the same reading of elements."""
    read = []
    for side, word in enumerate(plan.read(words)):
        name = "ab"[side]
        element = Element(name, Index())
        node: Node = element if word is None else word_at(word, element, _refused)
        if name in flushed_in(model.unit.result) and plan.words_read(side) != (None,):
            node = Round(node, Rounding(model.unit.formats[name], subnormals="flush_after"))
        read.append(node)
    return read[0], read[1]


def pairs_of(plan: Plan) -> tuple[Pair, ...]:
    """The pairs of expressions that the units of a plan read, each once."""
    return tuple(dict.fromkeys(pair_read(plan, chain.model, chain.words) for chain in plan.chains))


@dataclass(frozen=True, eq=False)
class Step:
    """A step. Its kinds are the classes below. Equal steps are made once (`made`), so that steps are compared by
    identity."""


@dataclass(frozen=True, eq=False)
class Begin(Step):
    """The start of the sum."""


@dataclass(frozen=True, eq=False)
class Zero(Step):
    """+0."""


@dataclass(frozen=True, eq=False)
class SoFar(Step):
    """The running sum in the loop of a level."""

    level: int


@dataclass(frozen=True, eq=False)
class Tile(Step):
    """One use of a unit, with `start` as its c. If products are missing, `model` is the unit with zeros in their
    places."""

    model: Model
    read: Pair
    start: Step


@dataclass(frozen=True, eq=False)
class Added(Step):
    """The exact sum of values (or one value), rounded."""

    values: tuple[Step, ...]
    rounding: Rounding


@dataclass(frozen=True, eq=False)
class Compensated(Step):
    """`count` sums (None: any number), each of which is one of `parts`, added to a start with compensation
    (`Engine.compensated`), each addition rounded, in one of the ways (`by`)."""

    count: int | None
    start: Step
    parts: tuple[Step, ...]
    rounding: Rounding
    by: Way


@dataclass(frozen=True, eq=False)
class Loop(Step):
    """The body `count` times (None: any number of times), from `start`."""

    level: int
    count: int | None
    start: Step
    body: Step


@dataclass(frozen=True, eq=False)
class Halved(Step):
    """The sum of any number of products, by halves: at most `width` * 2^t products have at most t levels. A part that
    is not halved is one of `leaves`, for one product, two products, and so on; the sums of two halves are added and
    rounded. The first leaf starts from the start of the sum, the others from +0."""

    width: int
    rounding: Rounding
    leaves: tuple[Step, ...]


@dataclass(frozen=True)
class Places:
    """Products of pairs of words, each at most once, as bit masks: bit k is product k. There is a mask, of the products
    of the first round, for each pair and each set of loop variables on which products depend."""

    bits: Mapping[tuple[Pair, tuple[tuple[int, int], ...]], int]

    @classmethod
    def of(cls, span: Span, pair: Pair) -> Places:
        """The products of a span."""
        group = _repeated(1, span.step, span.size)
        return cls({(pair, span.start.factors): _repeated(group, span.pitch, span.groups) << span.start.offset})

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The pairs of words, each once."""
        return tuple(dict.fromkeys(pair for pair, _ in self.bits))

    def joined(self, other: Places) -> Places:
        """The union. Raises RuleError if a product is in both."""
        every = dict(self.bits)
        for key, bits in other.bits.items():
            if every.get(key, 0) & bits:
                raise RuleError("places: a product is added twice")
            every[key] = every.get(key, 0) | bits
        return Places(every)

    def looped(self, level: int, count: int) -> Places:
        """The products of all rounds of a loop. Raises RuleError where two rounds add the same product."""
        places = Places({})
        for (pair, factors), bits in self.bits.items():
            distance = sum(step for own, step in factors if own == level)
            every = _repeated(bits, distance, count)
            if every.bit_count() != count * bits.bit_count():
                raise RuleError("places: a product is added in two rounds of a loop")
            places = places.joined(Places({(pair, tuple(x for x in factors if x[0] != level)): every}))
        return places

    def are_all(self, count: int) -> bool:
        """Whether these are the first `count` products, for each pair."""
        wanted = {(pair, ()): (1 << count) - 1 for pair in self.pairs}
        return bool(wanted) and {key: bits for key, bits in self.bits.items() if bits} == wanted


def _repeated(bits: int, distance: int, count: int) -> int:
    """The union of `count` copies of a mask, each shifted `distance` bits further than the copy before."""
    pattern, done, run, size = 0, 0, bits, 1
    while count:  # `run` is the union of `size` copies
        if count & 1:
            pattern, done = pattern | run << distance * done, done + size
        run, size, count = run | run << distance * size, 2 * size, count >> 1
    return pattern


@dataclass(frozen=True)
class Recorded:
    """Steps, and the products that they add."""

    step: Step
    places: Places


Kind = TypeVar("Kind", bound=Step)
V = TypeVar("V")
_known: dict[tuple[Any, ...], Step] = {}


def made(kind: type[Kind], *parts: Any) -> Kind:
    """The step of a kind with some parts. Equal steps are made once."""
    key = (kind, *parts)
    kept = _known.get(key)
    if kept is None:
        kept = _known[key] = kind(*parts)
    assert isinstance(kept, kind)
    return kept


class Recorder(Engine[Recorded]):
    """Records the steps of a stage of a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.level = 0

    def begin(self) -> Recorded:
        return Recorded(made(Begin), Places({}))

    def zero(self, fmt: Format) -> Recorded:
        return Recorded(made(Zero), Places({}))

    def tile(self, model: Model, words: Words, span: Span, start: Recorded) -> Recorded:
        pair = pair_read(self.plan, model, words)
        step = made(Tile, partly_filled(model, span.count), pair, start.step)
        return Recorded(step, start.places.joined(Places.of(span, pair)))

    def rounded(self, values: Sequence[Recorded], rounding: Rounding) -> Recorded:
        places = Places({})
        for value in values:
            places = places.joined(value.places)
        return Recorded(made(Added, tuple(value.step for value in values), rounding), places)

    def lost(self, values: Sequence[Recorded], total: Recorded, rounding: Rounding) -> Recorded:
        raise RuleError("steps: what one addition loses is no sum of products")

    def compensated(
        self, start: Recorded, parts: Sequence[tuple[Span, str]], body: Callable[[Span], Recorded], rounding: Rounding,
        by: Way,
    ) -> Recorded:  # fmt: skip
        places, steps = start.places, list[Step]()
        for span, _ in parts:
            own = body(span)
            places = places.joined(own.places)
            steps.append(own.step)
        every = tuple(dict.fromkeys(steps))
        return Recorded(made(Compensated, len(steps), start.step, every, rounding, by), places)

    def repeat(self, count: int, name: str, start: Recorded, body: Callable[[Index, Recorded], Recorded]) -> Recorded:
        if count == 1:
            return body(Index(), start)
        with self._loop() as level:
            round_ = body(Index(0, ((level, 1),)), self._so_far(level))
        loop = made(Loop, level, count, start.step, round_.step)
        return Recorded(loop, start.places.joined(round_.places.looped(level, count)))

    def many(self, stage: Stage, span: Span, start: Recorded) -> Recorded:
        """The step of a stage that is run any number of times, each time on as many further products. The places are
        those of the first time."""
        if isinstance(stage, Parted) and stage.join.carries:
            once = stage.run(self, span, start)
            period = once.step
            if not isinstance(period, Compensated) or period.count != 1 or period.start is not start.step:
                raise RuleError("many: a period is not one sum that is added with compensation")
            every = made(Compensated, None, period.start, period.parts, period.rounding, period.by)
            return Recorded(every, once.places)
        with self._loop() as level:
            once = stage.run(self, span, self._so_far(level))
        return Recorded(made(Loop, level, None, start.step, once.step), start.places.joined(once.places))

    def halved(self, stage: Parted, span: Span, start: Recorded) -> Recorded:
        """The step of a stage of halves, for any number of products. The two halves of a part have no product in
        common, so that each product is added once if each leaf adds each of its products once. The places are those of
        `span`."""
        assert isinstance(stage.partition, Halves)
        longest = stage.partition.longest
        if longest > LEAVES:
            raise RuleError(f"halves of {longest} products: at most {LEAVES} are looked at one by one")
        leaves, pairs = [], set[frozenset[Pair]]()
        for count in range(1, longest + 1):
            leaf = stage.run(self, Span.of(count), self.begin())
            if not leaf.places.are_all(count):
                raise RuleError("places: not every product is added")
            pairs.add(frozenset(leaf.places.pairs))
            leaves.append(leaf.step)
        if len(pairs) > 1:
            raise RuleError("places: halves of which some are products of other words")
        step = made(Halved, repeated(stage).width, stage.rounding, tuple(leaves))
        places = start.places
        for pair in leaf.places.pairs:
            places = places.joined(Places.of(span, pair))
        return Recorded(step, places)

    def _so_far(self, level: int) -> Recorded:
        return Recorded(made(SoFar, level), Places({}))

    @contextmanager
    def _loop(self) -> Iterator[int]:
        self.level += 1
        yield self.level
        self.level -= 1

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        yield


@dataclass(frozen=True)
class Many(Stage):
    """A stage that takes, for any n, n times the products that it is run on: in the same steps n times, or by halves.
    Products before the place `before` are not repeated."""

    stage: Stage
    before: int = 0

    @property
    def d(self) -> Format:
        return self.stage.d

    @property
    def accumulator(self) -> Format:
        return self.stage.accumulator

    @property
    def period(self) -> int:
        return repeated(self.stage).period if self._halves else self.stage.period

    @property
    def tile(self) -> int:
        return self.stage.tile

    @property
    def parts(self) -> tuple[Stage, ...]:
        return (self.stage,)

    @property
    def _halves(self) -> bool:
        return isinstance(self.stage, Parted) and self.stage.grows == "halves"

    def run(self, engine: Engine[V], span: Span, start: V) -> V:
        if span.start.offset < self.before:
            return self.stage.run(engine, span, start)
        if not (isinstance(engine, Recorder) and isinstance(start, Recorded) and span.count % self.period == 0):
            raise RuleError("many: whole periods of a stage are written down, and nothing else")
        if self._halves:
            assert isinstance(self.stage, Parted)
            return cast(V, engine.halved(self.stage, span, start))
        return cast(V, engine.many(self.stage, span, start))


def for_all(stage: Stage, whole: bool = True) -> Stage:
    """The stage that takes, for every n, n times the products that it is run on, which are whole periods of `stage`. A
    chain or a promotion, also with its products in another order, repeats the same steps n times. The runs of a split
    or an interleaving, and the lanes of a vector, all of whose turns are whole, each take n times as many products. Of
    a split at given places that takes all products (`whole`), the last run takes n times as many, and the others do not
    change; the same holds for the products after the first ones. Halves that take all products take any number. Stages
    one after another each take n times as many. Runs that are added in order are the first run and, from its sum, a
    promotion of the others. Raises RuleError for other stages."""
    if isinstance(stage, Chain):
        return Many(stage)
    if isinstance(stage, Then):
        return Then(tuple(for_all(body, False) for body in stage.bodies))
    if not isinstance(stage, Parted):
        raise RuleError(f"a stage of {type(stage).__name__} is not one step repeated")
    body, first = stage.body, stage.partition.repeats(stage)[0]
    match stage.grows:
        case "parts" | "carried":
            return Many(stage)
        case "ordered" if whole:
            assert stage.rounding is not None
            rest = replace(stage, join=Promote(stage.rounding))
            return for_all(Parted(First(first), Through(), rest, head=body))
        case "halves" if whole:
            return Many(stage)
        case "each" if whole or not first:
            return replace(stage, body=for_all(body, whole and isinstance(stage.partition, All)))
        case "last" if whole and body.repeats_one_step:
            return replace(stage, body=Many(body, first))
    raise RuleError(f"a stage of {type(stage.partition).__name__} is not one step repeated")


def recorded(plan: Plan, stage: Stage, length: int | None) -> Step:
    """The steps of a stage, as in `record_of`."""
    return record_of(plan, stage, length).step


def record_of(plan: Plan, stage: Stage, length: int | None) -> Recorded:
    """The steps of a stage for `length` products; without a length, for any number of repetitions of the plan's period
    after the products that it takes once (`Repeats`). For each pair of words whose products are added, each product is
    added once. Raises RuleError, and ParameterError for a length that does not fit."""
    if length is not None and length < 1:
        raise RuleError(f"places: {length} products are no sum")
    recorder, count = Recorder(plan), length
    if count is None:
        count = (repeats := repeats_of(plan)).before + repeats.period
    record = (for_all(stage) if length is None else stage).run(recorder, Span.of(count), recorder.begin())
    if not record.places.are_all(count):
        raise RuleError("places: not every product is added, of each pair of words")
    return record
