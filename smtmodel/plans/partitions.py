"""Partitions: how a stage divides the products of a span into parts. A partition is a frozen value with a name in plan
files. It forms the parts, describes them in words, and knows which numbers of products two stages with this
partition divide in the same way.

A further partition is one more class in `PARTITIONS`. A method that the class does not override returns a value from
which rules prove nothing.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, islice, pairwise, product
from typing import ClassVar, Literal, TypeVar, get_args

from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.plans.engine import Engine, in_turn
from mmaprobe.smtmodel.plans.joins import Order
from mmaprobe.smtmodel.plans.span import Span, moved
from mmaprobe.smtmodel.plans.stages import Cut, Growth, Part, Parted, Partition, SumStructure, check_positive

V = TypeVar("V")
Tiles = Literal["full", "even"]
TILES: tuple[Tiles, ...] = get_args(Tiles)
Half = Literal["larger", "smaller"]
HALVES: tuple[Half, ...] = get_args(Half)
SPLITS = (2, 3, 4, 5, 6, 7, 8, 16)  # numbers of parts of a kernel that splits K
GRAINS = (1, 2, 4, 8, 16, 32, 64)  # likely lengths of parts are multiples of one of these
SPLIT_GRAINS = (*GRAINS, 128)  # likely grains of the equal runs of a kernel that splits K
TRIED_SIZES = 4  # the number of observed sizes for which the rarer partitions are tried
MOST_BLOCKS, MOST_SHARED = 12, 24  # numbers of sizes tried for each observed size: with `even`, with `share`
MOST_LANES = 4096  # every lane has a sum, even without products


@dataclass(frozen=True)
class All(Partition):
    """All products as one part."""

    word: ClassVar[str] = ""
    usual: ClassVar[str] = ""
    joins: ClassVar[tuple[str, ...]] = ("",)
    alone: ClassVar[bool] = True
    growth: ClassVar[Growth] = "each"

    def cut(self, span: Span, stage: Parted) -> Cut:
        return Cut((Part(span),))

    def words(self, stage: Parted, joined: str) -> str:
        return f"the sum of what follows{joined}"

    def multiple(self, number: int, stages: Sequence[Parted]) -> int:
        return number


@dataclass(frozen=True)
class Runs(Partition):
    """Runs of `every` products. The products left over at the end are a shorter run, or go through the tail. With
    `even` (not 0) the last two runs share their products: the first of these has half of the products, rounded down
    (up where `even` is 1), then up to a multiple of `even`. With `share` (not 0) all runs are equal: each has an equal
    share of the products, rounded up to the next multiple of `share`; the last run has the rest."""

    word: ClassVar[str] = "turns"
    usual: ClassVar[str] = "through"
    takes: ClassVar[str] = "tail"
    loops: ClassVar[bool] = True
    unused: ClassVar[frozenset[str]] = frozenset({"even", "share"})
    divided: ClassVar[str] = "every"
    every: int
    even: int = 0
    share: int = 0

    @classmethod
    def likely(cls, structure: SumStructure) -> Iterator[Partition]:
        sizes = dict.fromkeys((*structure.sizes, 4, 8, 16, 32, 64, 128, 256))
        yield from (cls(every) for every in sizes if every < structure.count)
        for size in structure.sizes[:TRIED_SIZES]:
            longer = islice(range(size + -size % 64, 2 * size, 64), MOST_BLOCKS)  # equal for this K, not for others
            yield from (cls(every, even) for every in dict.fromkeys((size, *longer)) for even in GRAINS if even < every)
        for size, share in product(structure.sizes[:TRIED_SIZES], (8, 16, 4)):
            some = (cls(every, share=share) for every in range(size, structure.count, share) if size % share == 0)
            shared = [one for one in some if one.size(structure.count) == size]
            yield from shared[:: -(-len(shared) // MOST_SHARED) or 1]

    def check(self, stage: Parted) -> None:
        super().check(stage)
        for name, number in (("even", self.even), ("share", self.share)):
            if number and stage.tail is not None:
                raise ParameterError(
                    name, "the products left go through a tail or into equal sums: give one of the two"
                )
        if self.even and self.share:
            raise ParameterError("share", "either the last two sums are made equal, or all sums")
        if self.share and self.every % self.share:
            raise ParameterError("share", f"{self.every} is not a multiple of {self.share}")

    def size(self, count: int) -> int:
        """The number of products in each run before the last two, for `count` products in all."""
        if not self.share or count <= self.every or count % self.every == 0:
            return self.every
        return (count // (self.share * (count // self.every + 1)) + 1) * self.share

    def cut(self, span: Span, stage: Parted) -> Cut:
        every = self.size(span.count)
        full, left = divmod(span.count, every)
        if self.even and left and full:
            whole, ends = span.cut((full - 1) * every)
            assert ends is not None
            half = (ends.count + (self.even == 1)) // 2
            last = enumerate(ends.cut(-(-half // self.even) * self.even))
            parts = [Part(part, f"last{number}") for number, part in last if part is not None]
            return Cut([*_looped(whole, every), *parts])
        whole, rest = span.cut(span.count - left)
        if rest is None or stage.tail is not None:
            return Cut(_looped(whole, every), rest=rest)
        return Cut([*_looped(whole, every), Part(rest, "last")])

    def words(self, stage: Parted, joined: str) -> str:
        if stage.join.word == "through":
            return f"turns of {counted(self.every, 'product')}{joined}"
        even = f"; the last two equally long, in multiples of {self.even}" if self.even else ""
        share = f"; all of as many sums alike, in multiples of {self.share}" if self.share else ""
        return f"every {self.every} products{joined}{even}{share}"

    def equal_words(self, stage: Parted) -> str:
        kind = {"so far": "turns", "zero": "sums"}.get(stage.join.begin, "runs")
        return f"{kind} of {self.every} products, each one equal"

    def grows(self, stage: Parted) -> Growth:
        if stage.join.begin != "start":
            return "parts"
        return "ordered" if stage.join.in_order else ""

    def repeats(self, stage: Parted) -> tuple[int, int]:
        """If the sums of the runs are added in order, only the first run begins with the start; it is not repeated."""
        return (self.every, stage.period) if self.grows(stage) == "ordered" else super().repeats(stage)

    def turn(self, stage: Parted) -> int:
        return self.every

    def begins(self, length: int, stage: Parted) -> Sequence[int]:
        return range(0, length, self.size(length))

    def multiple(self, number: int, stages: Sequence[Parted]) -> int:
        return math.lcm(self.every, number)


def _looped(span: Span | None, each: int) -> list[Part]:
    return [] if span is None else [Part(span, each=each)]


@dataclass(frozen=True)
class Sized(Partition):
    """Runs whose sizes follow from the number of products."""

    word: ClassVar[str] = "split"
    usual: ClassVar[str] = "add"

    @abstractmethod
    def sizes(self, count: int, stage: Parted) -> Sequence[int]:
        """The number of products in each run, for `count` products in all. Raises ParameterError for a `count` that
        does not fit."""

    def cut(self, span: Span, stage: Parted) -> Cut:
        return Cut(_numbered("part", _of_sizes(span, self.sizes(span.count, stage))))

    def begins(self, length: int, stage: Parted) -> Sequence[int]:
        return [0, *accumulate(self.sizes(length, stage)[:-1])]

    starts = begins


def _of_sizes(span: Span, sizes: Sequence[int]) -> list[Span]:
    """A span divided into runs of these sizes."""
    spans, rest = list[Span](), span
    for size in sizes:
        first, left = rest.cut(size)
        assert first is not None
        spans.append(first)
        rest = left or rest
    return spans


@dataclass(frozen=True)
class Equal(Sized):
    """`ways` runs of K / `ways` products, rounded up to a multiple of `grain` (0: of the body's period); the last run
    may be shorter, and last runs may be missing. With `tiles` "even", K is divided into tiles of `grain` products, and
    run i (from 1) ends after i / `ways` of the tiles, rounded up; a run without tiles is left out."""

    unused: ClassVar[frozenset[str]] = frozenset({"grain", "tiles"})
    later: ClassVar[frozenset[str]] = frozenset({"tiles"})
    growth: ClassVar[Growth] = "each"
    equal: ClassVar[str] = "split in {ways} equal runs, each one equal"
    ways: int
    grain: int = 0
    tiles: Tiles = "full"

    @classmethod
    def likely(cls, structure: SumStructure) -> Iterator[Partition]:
        ways = dict.fromkeys((*SPLITS, *(-(-structure.count // size) for size in structure.sizes)))
        sizes = structure.sizes[:TRIED_SIZES]  # a run fills whole grains
        own = {n for size in sizes for n in range(3, size + 1) if size % n == 0}
        odd = product(SPLITS, sorted(own - {*SPLIT_GRAINS}, reverse=True))
        # with at most as many grains as runs, each run is one grain, and another partition has the same runs
        pairs = product(ways, SPLIT_GRAINS), (one for one in odd if math.prod(one) < structure.count)
        every = [cls(*one) for one in chain(*pairs) if math.prod(one) < 2 * structure.count]
        yield from (one for one in every if one.full(structure.count))
        yield from (replace(one, tiles="even") for one in every if one.uneven(structure.count))

    def full(self, count: int) -> bool:
        """Whether runs of full tiles leave no run missing."""
        size = -(-count // (self.grain * self.ways)) * self.grain
        return -(-count // size) == self.ways

    def uneven(self, count: int) -> bool:
        """Whether `tiles` "full" would make the last runs more than one tile shorter than the others, or empty."""
        return 0 < -(-count // self.grain) % self.ways < self.ways - 1

    def sizes(self, count: int, stage: Parted) -> Sequence[int]:
        grain = self.grain or stage.body.period
        tiles = -(-count // grain)
        share = -(-tiles // self.ways)
        even = (-(-tiles * number // self.ways) for number in range(1, self.ways + 1))
        ends = even if self.tiles == "even" else range(share, tiles + share, share)
        return [end - start for start, end in pairwise((0, *(min(end * grain, count) for end in ends))) if end > start]

    def words(self, stage: Parted, joined: str) -> str:
        even = ", as even as tiles of these are" if self.tiles == "even" else ""
        return f"{self.ways} runs of K{f' in multiples of {self.grain}' if self.grain else ''}{even}{joined}"

    def multiple(self, number: int, stages: Sequence[Parted]) -> int:
        """The runs are equal if they are multiples of the grains of all stages."""
        grains = (one.partition.grain or one.body.period for one in stages if isinstance(one.partition, Equal))
        return self.ways * math.lcm(number, *grains)

    @property
    def sums(self) -> int:
        return self.ways


def _numbered(name: str, spans: Sequence[Span]) -> list[Part]:
    """The spans as numbered parts; a single part has no name."""
    return [Part(span, f"{name}{number}" if len(spans) > 1 else "") for number, span in enumerate(spans)]


@dataclass(frozen=True)
class At(Sized):
    """Runs that end after the numbers of products in `at`; the last run ends at the end of K. Stream-K kernels have
    such runs: a worker takes a range of tiles that may begin within one result and end within the next."""

    growth: ClassVar[Growth] = "last"
    divided: ClassVar[str] = "at"
    at: tuple[int, ...]

    @classmethod
    def likely(cls, structure: SumStructure) -> Iterator[Partition]:
        yield from map(cls, structure.places)

    def check(self, stage: Parted) -> None:
        if not self.at:
            raise ParameterError("split", "a list has places to cut K at: it needs one")
        for before, place in zip((0, *self.at), self.at, strict=False):
            if place <= before or place % stage.body.tile:
                fits = f"places rise, and are multiples of {stage.body.tile}"
                raise ParameterError("split", f"K cannot be cut at {place} after {before}: {fits}")

    def sizes(self, count: int, stage: Parted) -> Sequence[int]:
        if count <= self.at[-1]:
            raise ParameterError("split", f"{count} products do not fit: the last cut is at {self.at[-1]}")
        return [place - before for before, place in pairwise((0, *self.at, count))]

    def period(self, stage: Parted) -> int:
        return (self.at[-1] // stage.body.period + 1) * stage.body.period

    def tile(self, stage: Parted) -> int:
        return stage.period

    def words(self, stage: Parted, joined: str) -> str:
        return f"runs of K that end after {', '.join(map(str, self.at))} products and at the end{joined}"

    def equal_words(self, stage: Parted) -> str:
        return f"split at {' and '.join(map(str, self.at))}, each run equal"

    def repeats(self, stage: Parted) -> tuple[int, int]:
        return self.at[-1], stage.body.period

    @property
    def sums(self) -> int:
        return len(self.at) + 1

    def multiple(self, number: int, stages: Sequence[Parted]) -> int:
        """Any K beyond the last place is divided in the same way."""
        return number


@dataclass(frozen=True)
class Dealt(Partition):
    """`ways` parts, to which runs of `grain` products are dealt in turn."""

    ways: int
    grain: int = 1

    @classmethod
    def likely(cls, structure: SumStructure) -> Iterator[Partition]:
        ways = dict.fromkeys((2, 3, 4, 8, 16, *(-(-structure.count // size) for size in structure.sizes)))
        yield from (cls(*one) for one in product(ways, GRAINS) if 2 * math.prod(one) <= structure.count)

    def multiple(self, number: int, stages: Sequence[Parted]) -> int:
        return self.ways * math.lcm(number, self.grain)

    def tile(self, stage: Parted) -> int:
        return stage.period if stage.tail is None else super().tile(stage)

    @property
    def sums(self) -> int:
        return self.ways

    def starts(self, length: int, stage: Parted) -> Sequence[int]:
        return range(0, self.ways * self.grain, self.grain)

    def begins(self, length: int, stage: Parted) -> Sequence[int]:
        return range(min(length, self.ways * self.grain))


@dataclass(frozen=True)
class Interleaved(Dealt):
    """`ways` parts that take runs of `grain` products in turn. The products after the last whole turn go through the
    tail."""

    word: ClassVar[str] = "interleave"
    usual: ClassVar[str] = "add"
    takes: ClassVar[str] = "tail"
    growth: ClassVar[Growth] = "each"
    equal: ClassVar[str] = "{ways} lanes of one layout, each one equal"

    def cut(self, span: Span, stage: Parted) -> Cut:
        turn = self.ways * self.grain
        whole, rest = span.cut(span.count - span.count % turn)
        if rest is not None and stage.tail is None:
            fits = f"it takes multiples of {turn} unless it has a tail"
            raise ParameterError("interleave", f"{span.count} products do not fit: {fits}")
        if whole is None:
            return Cut(rest=rest)
        if whole.groups > 1:
            raise whole.unfit(turn)
        every = [_every(whole, number * self.grain, whole.count // turn, turn, self.grain)
                 for number in range(self.ways)]  # fmt: skip
        return Cut(_numbered("lane", every), rest=rest)

    def words(self, stage: Parted, joined: str) -> str:
        return f"{self.ways} sums that take {counted(self.grain, 'product')} in turn{joined}"

    def turn(self, stage: Parted) -> int:
        return self.grain


def _every(span: Span, first: int, turns: int, turn: int, grain: int) -> Span:
    """From each of the first `turns` turns of a span, `grain` products from place `first` of the turn on."""
    return Span(moved(span.start, first * span.step), turns, turn * span.step, grain, span.step)


@dataclass(frozen=True)
class Swizzled(Dealt):
    """`ways` passes: pass 0 takes the first `grain` of every `ways` * `grain` products, pass 1 the next `grain`, and
    so on. The body takes each pass as a sum of its own: it divides the products of the pass into tiles and fills up
    the last tile."""

    word: ClassVar[str] = "swizzle"
    usual: ClassVar[str] = "through"
    growth: ClassVar[Growth] = "each"
    equal: ClassVar[str] = "{ways} passes over the same products, each one equal"

    def cut(self, span: Span, stage: Parted) -> Cut:
        turn = self.ways * self.grain
        if span.groups > 1:
            raise span.unfit(turn)
        if span.count % self.grain:
            fits = f"it takes multiples of {self.grain}"
            raise ParameterError("swizzle", f"{span.count} products do not fit: {fits}")
        parts = list[Part]()
        for number in range(min(self.ways, span.count // self.grain)):
            turns = -(-(span.count - number * self.grain) // turn)
            part = _every(span, number * self.grain, turns, turn, self.grain)
            parts.append(Part(part, f"pass{number}" if self.ways > 1 else ""))
        return Cut(parts)

    def words(self, stage: Parted, joined: str) -> str:
        passes = f"{self.ways} passes, each over {counted(self.grain, 'product')} of every"
        return f"{passes} {self.ways * self.grain}: the whole of what follows{joined.replace(' each', '')}"


@dataclass(frozen=True)
class Whole(Partition):
    """The body takes a multiple of `number` products. The products left over go through the tail (they are the last
    ones) or through the head (they are the first ones); if no products are left over, a head takes `number`
    products."""

    word: ClassVar[str] = "whole"
    usual: ClassVar[str] = "through"
    joins: ClassVar[tuple[str, ...]] = ("through", "promote")
    takes: ClassVar[str] = "head tail"
    alone: ClassVar[bool] = True
    growth: ClassVar[Growth] = "each"
    equal: ClassVar[str] = "multiples of {number} products, equal"
    divided: ClassVar[str] = "number"
    number: int

    @classmethod
    def likely(cls, structure: SumStructure) -> Iterator[Partition]:
        yield from (cls(number) for number in (2, 4, 8, 16, 32) if number < structure.count)

    def check(self, stage: Parted) -> None:
        super().check(stage)
        if (stage.head is None) == (stage.tail is None):
            raise ParameterError("whole", "the products left over go through a head or a tail: give one of the two")

    def cut(self, span: Span, stage: Parted) -> Cut:
        left = span.count % self.number
        if stage.head is not None:
            head, body = span.cut(left or self.number)
            return Cut(_alone(body), head=head)
        body, rest = span.cut(span.count - left)
        return Cut(_alone(body), rest=rest)

    def words(self, stage: Parted, joined: str) -> str:
        first = "" if stage.head is None else ", after those left over"
        return f"multiples of {counted(self.number, 'product')}{first}{joined}"

    def repeats(self, stage: Parted) -> tuple[int, int]:
        """A head takes `number` products once where K is a multiple of `number`."""
        return (0 if stage.head is None else self.number), stage.period

    def multiple(self, number: int, stages: Sequence[Parted]) -> int:
        return math.lcm(self.number, number)


def _alone(span: Span | None) -> list[Part]:
    return [] if span is None else [Part(span)]


@dataclass(frozen=True)
class First(Partition):
    """The first `number` products go through the head, all others through the body."""

    word: ClassVar[str] = "first"
    usual: ClassVar[str] = "through"
    joins: ClassVar[tuple[str, ...]] = ("through", "promote")
    takes: ClassVar[str] = "first"
    alone: ClassVar[bool] = True
    growth: ClassVar[Growth] = "each"
    equal: ClassVar[str] = "the first products alike ({number}), the others equal"
    divided: ClassVar[str] = "number"
    number: int

    def cut(self, span: Span, stage: Parted) -> Cut:
        head, body = span.cut(min(self.number, span.count))
        return Cut(_alone(body), head=head)

    def period(self, stage: Parted) -> int:
        assert stage.head is not None
        return math.lcm(self.number, stage.head.period, stage.body.period)

    def words(self, stage: Parted, joined: str) -> str:
        return f"the first {counted(self.number, 'product')}, then the others{joined or ', from their sum'}"

    def repeats(self, stage: Parted) -> tuple[int, int]:
        return self.number, stage.body.period

    def multiple(self, number: int, stages: Sequence[Parted]) -> int:
        return number


@dataclass(frozen=True)
class Halves(Partition):
    """Products in halves (pairwise summation), which are halved again until a part has at most `most` products. The
    first half is a multiple of `grain`: the least multiple that is at least half of the products (`first` "larger"),
    or the largest multiple that is at most half of the products (`first` "smaller"). A part that would have an empty
    half is not halved. With the join `tree`, the sums of two halves are added."""

    word: ClassVar[str] = "halve"
    usual: ClassVar[str] = "tree"
    joins: ClassVar[tuple[str, ...]] = ("through", "promote", "add", "tree")
    equal: ClassVar[str] = "halves of multiples of {grain}, each one equal"
    divided: ClassVar[str] = "grain"
    most: int
    grain: int = 1
    first: Half = "larger"

    @classmethod
    def likely(cls, structure: SumStructure) -> Iterator[Partition]:
        powers = (1 << n for n in range(1, (structure.count - 1).bit_length()))
        every = (most for most in dict.fromkeys((*structure.sizes, *powers)) if most < structure.count)
        yield from (cls(one[0], one[2], one[1]) for one in product(every, HALVES, GRAINS) if one[0] >= one[2])

    @property
    def longest(self) -> int:
        return max(self.most, self.grain if self.first == "larger" else 2 * self.grain - 1)

    @property
    def width(self) -> int:
        """A number w: at most w * 2^t products have at most t levels of halves."""
        over = 0 if self.first == "larger" else self.grain - 1  # the products that a second half may have more
        return (self.longest - over) // self.grain * self.grain

    def _halved(self, span: Span) -> tuple[Span, Span] | None:
        if span.count <= self.longest:
            return None
        grains, left_over = divmod(span.count, 2 * self.grain)
        left, right = span.cut((grains + (self.first == "larger" and left_over > 0)) * self.grain)
        assert left is not None
        assert right is not None
        return left, right

    def cut(self, span: Span, stage: Parted) -> Cut:
        return Cut(list(self._leaves(span, "")))

    def _leaves(self, span: Span, name: str) -> Iterator[Part]:
        if (halves := self._halved(span)) is None:
            yield Part(span, name)
            return
        for side, half in zip(("left", "right"), halves, strict=True):
            yield from self._leaves(half, f"{name}.{side}".removeprefix("."))

    def in_tree(self, engine: Engine[V], stage: Parted, span: Span, start: V) -> V:
        if (halves := self._halved(span)) is None:
            return stage.alone(engine, stage.body.run(engine, span, start))
        left, right = halves
        with engine.part("left"):
            one = self.in_tree(engine, stage, left, start)
        with engine.part("right"):
            other = self.in_tree(engine, stage, right, engine.zero(stage.body.accumulator))
        return stage.added(engine, [one, other])

    def period(self, stage: Parted) -> int:
        return stage.body.period

    def words(self, stage: Parted, joined: str) -> str:
        first = " (the first one the smaller)" if self.first == "smaller" else ""
        return f"halves{first}, down to {counted(self.most, 'product')}{joined}"

    def grows(self, stage: Parted) -> Growth:
        return "halves" if stage.join.word == "tree" else ""

    def repeats(self, stage: Parted) -> tuple[int, int]:
        """A stage of halves takes any number of products."""
        return 0, 1

    def multiple(self, number: int, stages: Sequence[Parted]) -> int:
        return self.grain


@dataclass(frozen=True)
class Windows(Partition):
    """Windows of `every` products. If K is not a multiple of `every`, the first and the last window are shorter, each
    by half of the missing products (the last window by the larger half). With the join `tree`, the sums are added in
    windows of `every` sums, and so on until one sum is left."""

    word: ClassVar[str] = "windows"
    usual: ClassVar[str] = "tree"
    joins: ClassVar[tuple[str, ...]] = ("through", "promote", "add", "tree")
    equal: ClassVar[str] = "windows of {every} products, each one equal"
    divided: ClassVar[str] = "every"
    every: int

    @classmethod
    def likely(cls, structure: SumStructure) -> Iterator[Partition]:
        yield from (cls(every) for every in (4, 8, 16, 32, 64) if every < structure.count)

    def check(self, stage: Parted) -> None:
        super().check(stage)
        if self.every == 1:
            raise ParameterError("windows", "windows of one product leave as many sums as products: at least 2")

    def sizes(self, count: int) -> list[int]:
        """The number of products (or of sums) in each window, for `count` products (or sums) in all."""
        number = -(-count // self.every)
        first = self.every - (number * self.every - count) // 2
        return (
            [count] if number == 1 else [first, *[self.every] * (number - 2), count - first - (number - 2) * self.every]
        )

    def cut(self, span: Span, stage: Parted) -> Cut:
        return Cut(_numbered("window", _of_sizes(span, self.sizes(span.count))))

    def in_tree(self, engine: Engine[V], stage: Parted, span: Span, start: V) -> V:
        values = list[V]()
        for number, part in enumerate(self.cut(span, stage).parts):
            with engine.part(part.name):
                begin = engine.zero(stage.body.accumulator) if number else start
                values.append(stage.alone(engine, stage.body.run(engine, part.span, begin)))
        while len(values) > 1:
            sums, sizes = iter(values), self.sizes(len(values))
            values = [stage.added(engine, list(islice(sums, size))) for size in sizes]
        return values[0]

    def period(self, stage: Parted) -> int:
        return stage.body.period

    def words(self, stage: Parted, joined: str) -> str:
        ends = "the first and the last one shorter"
        return f"windows of {counted(self.every, 'product')}, {ends}, and windows of their sums{joined}"

    def multiple(self, number: int, stages: Sequence[Parted]) -> int:
        """Whole multiples of `every` products fill all windows."""
        return self.every


@dataclass(frozen=True)
class Fold:
    """A step that adds the sums of each group of `ways` lanes, `stride` lanes apart, in order into one lane; each
    addition is rounded. The last groups may have fewer lanes."""

    ways: int
    stride: int

    def takes(self, lanes: int) -> bool:
        """Whether `lanes` lanes form groups of this fold."""
        size = self.ways * self.stride
        left = lanes % size
        return self.ways > 1 and (left == 0 or (left >= self.stride if lanes > size else left > size - self.stride))

    def groups(self, lanes: int) -> Iterator[Sequence[int]]:
        """For each lane after the fold, the lanes whose sums are added into it."""
        size = self.ways * self.stride
        for first in range(0, lanes, size):
            for inner in range(self.stride):
                yield range(first + inner, min(first + size, lanes), self.stride)

    def left(self, lanes: int) -> int:
        """The number of lanes after a fold of `lanes` lanes."""
        return self.stride * -(-lanes // (self.ways * self.stride))


@dataclass(frozen=True)
class Lanes(Partition):
    """The lanes of vectors. Lane 0 begins with the start, the other lanes with +0. Each step is a number or a fold. A
    number n adds products to the first n lanes in whole turns: `grain` products for each lane. A fold adds lanes to
    one another. The last step leaves one lane.
    Products that fill no turn go to later numbers, and in the end through the tail. Without a tail, the last number
    takes these products in a short turn: the first lanes take `grain` products each, and the next lane the rest.
    `head` (not 0): a short turn comes before all steps; of the products that fill no turn of the first number, the
    short turn takes the largest multiple of `head`.
    `unroll` (not 0): the first number takes only a multiple of `unroll` products; with `order` "backwards", the lanes
    take each `unroll` products from the last turn to the first."""

    word: ClassVar[str] = "lanes"
    usual: ClassVar[str] = "tree"
    joins: ClassVar[tuple[str, ...]] = ("tree",)
    takes: ClassVar[str] = "tail"
    continues: ClassVar[bool] = True
    unused: ClassVar[frozenset[str]] = frozenset({"head"})
    steps: tuple[int | Fold, ...]
    head: int = 0
    unroll: int = 0
    order: Order = "sequential"
    grain: int = 1

    def check(self, stage: Parted) -> None:
        super().check(stage)
        if self.grain > 1 and (self.head or self.unroll):
            raise ParameterError("grain", "lanes that take several products in a turn have neither head nor unroll")
        stage.check_follows("lanes")
        if stage.body.d != stage.d:
            raise ParameterError(
                "lanes", f"their sums are {stage.body.d.name}, folds give {stage.d.name}: round them alike"
            )
        lanes = self.lanes
        check_positive("lanes", lanes)
        if lanes > MOST_LANES:
            raise ParameterError("lanes", f"{lanes} are too many; at most {MOST_LANES}")
        self._check_unroll(lanes, stage)
        if self.head >= lanes:
            raise ParameterError("head", f"a turn of {self.head} is not shorter than one of {lanes} lanes")
        for step in self.steps:
            if not isinstance(step, Fold):
                check_positive("lanes", step)
                if step > lanes:
                    raise ParameterError("lanes", f"{step} lanes do not follow {lanes}")
                continue
            check_positive("fold", step.ways)
            check_positive("fold", step.stride)
            if not step.takes(lanes):
                raise ParameterError("fold", f"{lanes} lanes are not groups of {step.ways}, {step.stride} apart")
            lanes = step.left(lanes)
        if lanes != 1:
            raise ParameterError("lanes", f"{lanes} lanes are left at the end: fold them")

    def _check_unroll(self, lanes: int, stage: Parted) -> None:
        if self.unroll % lanes:
            raise ParameterError("unroll", f"{self.unroll} is not a multiple of {lanes} lanes")
        if self.order == "pairwise" or (self.order == "backwards" and not self.unroll):
            raise ParameterError("order", "lanes take their products in order, or backwards with unroll")
        if self.unroll and self.head:
            raise ParameterError(
                "unroll", "products that fill no turn come first (head) or last (unroll): give one of the two"
            )
        if self.unroll and stage.tail is None and all(isinstance(step, Fold) for step in self.steps[1:]):
            raise ParameterError(
                "unroll", "no step takes the products left over: give a tail, or lanes after the first"
            )

    @property
    def lanes(self) -> int:
        """The number of lanes in the first step."""
        first = self.steps[0] if self.steps else None
        if first is None or isinstance(first, Fold):
            raise ParameterError("lanes", "the first step is a number of lanes")
        return first

    def cut(self, span: Span, stage: Parted) -> Cut:
        raise ParameterError("lanes", "lanes are added in a tree alone")

    def multiple(self, number: int, stages: Sequence[Parted]) -> int:
        return self.unroll * number if self.unroll else self.lanes * math.lcm(self.grain, number)

    @property
    def counts(self) -> tuple[int, ...]:
        """In backwards order, the body takes one product at a time."""
        return (1,) if self.order == "backwards" else ()

    def words(self, stage: Parted, joined: str) -> str:
        widths = ", then ".join(str(step) for step in self.steps if isinstance(step, int))
        unroll = f" of multiples of {self.unroll} products, each {self.order}" if self.unroll else ""
        return f"{widths} lanes that take {counted(self.grain, 'product')} each in turn{unroll}, folded{joined}"

    def equal_words(self, stage: Parted) -> str:
        return f"vectors of {self.lanes} lanes, each lane equal"

    def grows(self, stage: Parted) -> Growth:
        return "each" if self.order == "sequential" else ""

    def starts(self, length: int, stage: Parted) -> Sequence[int]:
        return range(0, self.lanes * self.grain, self.grain)

    def begins(self, length: int, stage: Parted) -> Sequence[int]:
        return range(min(length, self.lanes * self.grain))

    def in_tree(self, engine: Engine[V], stage: Parted, span: Span, start: V) -> V:
        if span.groups > 1:
            raise span.unfit(self.lanes)
        sums = [start, *(engine.zero(stage.body.accumulator) for _ in range(self.lanes - 1))]
        rest: Span | None = span
        if self.head:
            left = span.count % self.lanes
            rest = self._taken(engine, stage, "head", sums, span, left - left % self.head, self.lanes)
        last = max(number for number, step in enumerate(self.steps) if not isinstance(step, Fold))
        for number, step in enumerate(self.steps):
            if isinstance(step, Fold):
                groups = list(step.groups(len(sums)))
                with engine.part(f"fold{number}"):
                    sums = [stage.added(engine, [sums[lane] for lane in group]) for group in groups]
            elif rest is not None:
                short = stage.tail is None and number == last
                turn = self.unroll if self.unroll and not number else step * self.grain
                count = rest.count if short else rest.count - rest.count % turn
                back = number == 0 and self.order == "backwards"
                rest = self._taken(engine, stage, f"step{number}", sums, rest, count, step, back)
        return sums[0] if rest is None else stage.run_tail(engine, rest, sums[0])

    def _taken(
        self, engine: Engine[V], stage: Parted, name: str, sums: list[V], span: Span, count: int, lanes: int,
        back: bool = False,
    ) -> Span | None:  # fmt: skip
        """Add the first `count` products of a span to the sums of `lanes` lanes in place, and return the rest of the
        span. `back`: the turns of each `unroll` products are taken from the last one to the first."""

        def unrolled(part: Span, running: V) -> V:
            for turn in reversed(range(part.count)):
                with engine.part(f"turn{turn}"):
                    running = stage.body.run(engine, Span.of(1, moved(part.start, turn * part.step)), running)
            return running

        whole, rest = span.cut(count)
        for lane in range(lanes) if whole is not None else ():
            for own in self._own(span, count, lanes, lane):
                fewer = ".short" if own.count < self.grain else ""
                with engine.part(f"{name}.lane{lane}{fewer}"):
                    if back:
                        sums[lane], _ = in_turn(engine, own, self.unroll // lanes, "unrolled", sums[lane], unrolled)
                    else:
                        sums[lane] = stage.body.run(engine, own, sums[lane])
        return rest

    def _own(self, span: Span, count: int, lanes: int, lane: int) -> Iterator[Span]:
        """The products of one lane among the first `count`: those of whole turns, then those of a short turn."""
        turn, first = lanes * self.grain, lane * self.grain
        if (own := count - first) <= 0:
            return
        turns = own // turn + (own % turn >= self.grain)
        if turns:
            yield _every(span, first, turns, turn, self.grain)
        if 0 < (left := own % turn) < self.grain:
            yield Span.of(left, moved(span.start, (count - left) * span.step), span.step)


#: the partitions of plan files, the likeliest in a library first
PARTITIONS: tuple[type[Partition], ...] = (
    Equal, Interleaved, Lanes, Halves, Windows, Runs, Swizzled, Whole, First, At,
)  # fmt: skip
