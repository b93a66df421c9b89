"""From a library's matrix product to the plans that it runs: which plan at which K and which shape.

The summation tree at the K asked suggests plans; what ships, and every instruction of the table taken K in tiles, are
tried beside them. A plan counts where it gives the library's own bits, for random matrices of many shapes. Nothing is
said of a shape at which no plan did.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from queries.compare.steady import same_answer
from queries.order.tree import Leaf, Node, leaves_of, nodes_of, pruned
from queries.plans.tree_stages import stages_of, turns
from smtmodel.compiled import compiler
from smtmodel.dot import Model
from smtmodel.errors import IncompleteError, MmaprobeError, ParameterError
from smtmodel.formats import FORMATS, Format
from smtmodel.instructions import INSTRUCTIONS
from smtmodel.nodes import Constant, Element, ExactSum, Round
from smtmodel.nodes.round import Rounding
from smtmodel.numbers import from_numbers
from smtmodel.plan_table import plans as shipped_plans
from smtmodel.plans import Chain, Halves, Interleaved, Plan, Products, Promoted, Split, Stage
from smtmodel.plans.matrices import Job, Patterns, Strip
from smtmodel.plans.plantext import stage_text
from smtmodel.plans.stages import ORDERS
from smtmodel.reference import PLAN, parse_plan_path, parse_reference
from smtmodel.signature import Signature
from smtmodel.tiles import Engine, Matrix
from smtmodel.unit_table import units
from smtmodel.wording import counted

LOOKED = 10  # rows and columns of a product that are computed again: the first, the last, and some between
LEAST = 40  # elements that are computed again, of as many products as that takes
BETWEEN_THEM = 24  # more K, at random, at which plans that were found are tried
CHECKED = 200  # random shapes
TREES = 5  # orders that are revealed for one kind of elements
EDGES = (2, 4, 6, 8, 12, 16, 24, 32, 48, 64)  # multiples after which rows or columns may have a kernel of their own
SCOUTS = 20  # random shapes by which that is found
CHANGES = 6  # of the plan along K, at most: beyond, a kind of elements has no map
SMALLEST = 16  # M and N at which a kernel for small products is looked for
INSIDE, SMALL, BETWEEN = "M and N above 1", "small products", "between small and large products"
RUNS = (16, 32, 64, 96, 128, 192, 240, 256, 320, 352, 384, 448, 512, 640, 768, 1024)  # K that are summed apart
WAYS = (2, 4, 8, 16, 32)  # parts or lanes
WIDER = {"f16": "f32", "bf16": "f32", "f32": "f64"}

Multiply = Callable[[Matrix, Matrix, Matrix], Matrix]
Reveal = Callable[[int, int, int], Node | Leaf | None]


@dataclass(frozen=True)
class Shape:
    """M, N and K of a product."""

    rows: int
    columns: int
    length: int

    @property
    def volume(self) -> int:
        return self.rows * self.columns * self.length

    def __str__(self) -> str:
        return f"{self.rows} x {self.columns} x {self.length}"


@dataclass(frozen=True)
class Place:
    """Some rows and columns of the result of a shape."""

    shape: Shape
    rows: range
    columns: range


@dataclass(frozen=True)
class Kind:
    """Elements that a library may compute by a kernel of their own, in words, and the M and N by which they are looked
    at."""

    name: str
    rows: int
    columns: int


@dataclass(frozen=True)
class Sample:
    """Random inputs, and what the library gives: several products stand beside each other, of which the elements in
    `mine` are results."""

    a: Matrix
    b: Matrix
    c: Matrix
    d: Matrix
    mine: NDArray[np.bool_]


@dataclass(frozen=True)
class Span:
    """Every K from `low` to `high`, of one kind of elements; `plan`: None where none was found."""

    kind: Kind
    low: int
    high: int
    plan: Plan | None


@dataclass
class Tally:
    """Random shapes with elements of a kind: `agree`: all that were looked at are what the spans say; `differ`: one is
    not; `open`: the spans have no plan."""

    agree: int = 0
    differ: list[Shape] = field(default_factory=list)
    open: list[Shape] = field(default_factory=list)


@dataclass
class Mapped:
    """What was found.

    `spans`: kind by kind, the K in order. `edges`: rows after the last multiple of the first number, and columns after
    that of the second, are a kind of their own (0: they are not). `volumes`: products M * N * K up to the first number
    have a kernel of their own, those from the second one on have not (0: there is none). `checks`: what random shapes
    say of each kind. `orders`: where the order was asked for. `asked`: products that the library computed.
    """

    spans: list[Span] = field(default_factory=list)
    edges: tuple[int, int] = (0, 0)
    volumes: tuple[int, int] = (0, 0)
    checks: dict[str, Tally] = field(default_factory=dict)
    orders: dict[tuple[Kind, int], Node | Leaf | None] = field(default_factory=dict)
    asked: int = 0

    @property
    def plans(self) -> list[Plan]:
        """The plans found, each once."""
        return list(dict.fromkeys(span.plan for span in self.spans if span.plan is not None))


class Candidates:
    """Plans of the formats asked, and whether one gives what a library gave."""

    def __init__(self, asked: Signature) -> None:
        self.asked = asked

    def steps(self) -> Iterator[Model]:
        """Steps of one product: fused or not, in the format of the result or a wider one."""
        a, b, d = self.asked.a, self.asked.b, self.asked.d
        for fmt in dict.fromkeys((d.name, WIDER.get(d.name, d.name))):
            if fmt in ("f64", "f32", "f16") and _holds(FORMATS[fmt], a) and _holds(FORMATS[fmt], b):
                yield parse_reference(f"ieee/fma/{fmt}.{a.name}.{b.name}.{fmt}")
                if a.name == b.name == fmt:
                    yield parse_reference(f"ieee/muladd/{fmt}")

    def plans(self, stage: Stage, at_end: bool) -> Iterator[Plan]:
        """A stage as a whole plan: from c or with c at the end, rounded where the result is narrower."""
        asked, out = self.asked, Rounding(self.asked.d)
        if asked.addend and not at_end:
            starts: list[Element | Constant] = [Element("c")]
        else:
            starts = [Constant()]
        for start in starts:
            try:
                total: Products | Round = Products(stage, start)
                if asked.addend and at_end:
                    total = Round(ExactSum((total, Element("c"))), out)
                elif stage.d != asked.d:
                    total = Round(total, out)
                yield _named(Plan(asked.a, asked.b, asked.c, total))
            except ParameterError:
                continue

    def table(self) -> Iterator[Plan]:
        """What ships: plans of these formats, and instructions that take K in tiles."""
        asked = self.asked
        for name in shipped_plans():
            plan = parse_plan_path(PLAN + name)
            same_c = not asked.addend or plan.c == asked.c
            if (plan.a, plan.b, plan.d) == (asked.a, asked.b, asked.d) and same_c:
                yield plan
        for reference in [*INSTRUCTIONS, *units()]:
            model = parse_reference(reference)
            if (model.a, model.b) == (asked.a, asked.b) and model.scale is None and _holds(model.c, model.d):
                yield from self.plans(Chain(model), False)

    def usual(self, length: int) -> Iterator[Plan]:
        """What libraries usually do with this K, where no order is known: what ships, and cuts of usual sizes."""
        yield from self.table()
        for model in self.steps():
            chain, how = Chain(model), Rounding(model.d)
            stages: list[Stage] = [chain]
            stages += [Promoted(run, chain, how, even) for run in RUNS if run < length for even in (0, 1)]
            stages += [Interleaved(ways, chain, how, order, 1, chain) for ways in WAYS for order in ORDERS]
            stages += [Split(ways, chain, how, "sequential", grain) for ways in WAYS[:3] for grain in (1, 16)]
            stages += [Halves(most, chain, how) for most in (8, 16, 32, 64, 128) if most < length]
            for stage in stages:
                yield from self.plans(stage, False)

    def same(self, plan: Plan, sample: Sample) -> bool:
        """Whether a plan gives all results of a sample."""
        found = self.results(plan, sample)
        if found is None:
            return False
        return not self.differing(found, sample)

    def differing(self, found: Matrix, sample: Sample) -> int:
        """How many results of a sample are others than these; all NaNs are one."""
        differs = np.argwhere((found != sample.d) & sample.mine)
        return sum(not same_answer(self.asked.d, int(found[i, j]), int(sample.d[i, j])) for i, j in differs)

    def results(self, plan: Plan, sample: Sample) -> Matrix | None:
        """What a plan gives for the inputs of a sample; None for a K that no tile fits."""
        engine: Engine = "compiled" if compiler() is not None and _slow(plan) else "numpy"
        try:
            job = Job(plan, sample.a, sample.b, engine)
            return Strip(job, slice(None), Patterns(sample.c, plan.c)).result()
        except MmaprobeError:
            return None


class Mapper(Candidates):
    """Maps one library. `multiply`: patterns of A, B and C (zeros where the library takes none) to those of D;
    `reveal`: the summation tree at M, N and K, None where it is not revealed. `top`: the largest shape. `deadline`: of
    time.monotonic; past it IncompleteError is raised, with what was found in `found`."""

    def __init__(
        self, asked: Signature, multiply: Multiply, reveal: Reveal, top: Shape, seed: int = 1,
        deadline: float | None = None, progress: Callable[[str], None] = lambda text: None,
    ) -> None:  # fmt: skip
        super().__init__(asked)
        self.multiply, self.reveal, self.top = multiply, reveal, top
        self.rng = np.random.default_rng(seed)
        self.deadline, self.progress = deadline, progress
        self.found = Mapped()
        self.known: list[Plan] = []
        self.samples: dict[Place, Sample] = {}
        self.fits: dict[tuple[Plan, Place], bool] = {}

    def run(self) -> Mapped:
        """The map, and what random shapes say of it."""
        top, found = self.top, self.found
        self.known = [plan for model in self.steps() for plan in self.plans(Chain(model), False)]
        if top.rows > 1 and top.columns > 1:
            found.spans += self._spans(Kind(INSIDE, top.rows, top.columns))
            found.edges, found.volumes = self._borders()
            (rows, columns), names = found.edges, self._edge_names()
            if columns:
                found.spans += self._spans(Kind(names[1], top.rows, columns - 1))
            if rows:
                found.spans += self._spans(Kind(names[0], rows - 1, top.columns))
        if top.columns > 1:
            found.spans += self._spans(Kind("M = 1", 1, top.columns))
        if top.rows > 1:
            found.spans += self._spans(Kind("N = 1", top.rows, 1))
        found.spans += self._spans(Kind("M = N = 1", 1, 1))
        self._check()
        return found

    # -- one kind of elements

    def _spans(self, kind: Kind) -> list[Span]:
        """Plans for every K: at some first, from the longest down, then where they change, by bisection."""
        lengths, plan_at, trees = _lengths(self.top.length), dict[int, list[Plan]](), 0
        if not self.found.orders:  # the one that was asked for
            self._order(kind, self.top.length)
        for length in reversed(lengths):
            self._say(f"{kind.name}: K = {length}")
            place = _whole(Shape(kind.rows, kind.columns, length))
            fitting = [plan for plan in self.known if self._fits(plan, place)]
            if not fitting and trees < TREES:
                trees += 1
                fitting = self._new(kind, length, lengths)
            plan_at[length] = fitting
        used = {plan for fitting in plan_at.values() for plan in fitting}
        lengths = sorted({*lengths, *(k for plan in used for k in _turns(plan, self.top.length)),
                          *map(int, self.rng.integers(1, self.top.length + 1, BETWEEN_THEM))})  # fmt: skip
        for length in lengths:  # also for plans that were found at a shorter K, and where these cut K in another way
            if plan_at.get(length) != []:
                place = _whole(Shape(kind.rows, kind.columns, length))
                plan_at[length] = [plan for plan in self.known if self._fits(plan, place)]
        chosen = _fewest(lengths, plan_at)
        if sum(chosen[low] != chosen[high] for low, high in pairwise(lengths)) > CHANGES:
            return [Span(kind, 1, lengths[-1], None)]
        spans: list[Span] = []
        for low, high in [*pairwise(lengths), (lengths[-1], 0)]:
            if not high or chosen[low] != chosen[high]:
                last = self._last(chosen[low], chosen[high], kind, low, high) if high else low
                spans.append(Span(kind, spans[-1].high + 1 if spans else 1, last, chosen[low]))
        return spans

    def _last(self, one: Plan | None, other: Plan | None, kind: Kind, low: int, high: int) -> int:
        """The last K of the first plan: from there on the other one fits, or it does no longer."""
        while high - low > 1:
            middle = (low + high) // 2
            place = _whole(Shape(kind.rows, kind.columns, middle))
            before = self._fits(one, place) if one is not None else other is None or not self._fits(other, place)
            low, high = (middle, high) if before else (low, middle)
        return low

    def _new(self, kind: Kind, length: int, lengths: Sequence[int]) -> list[Plan]:
        """The plan that fits at a K, of several the one that fits at most others; it is known from then on."""
        tree = self._order(kind, length)

        def place(k: int) -> Place:
            return _whole(Shape(kind.rows, kind.columns, k))

        fitting = [p for p in self._guesses(tree) if self._fits(p, place(length))] if tree is not None else []
        if not fitting and (tree is None or self._of_units(tree)):
            fitting = [plan for plan in self.table() if self._fits(plan, place(length))]
        if not fitting:
            return []
        others = {*[k for k in lengths if k < length][-6:], *[k for k in lengths if k > length][:4]}
        others |= {k for plan in fitting[1:] for k in _turns(plan, self.top.length)}
        scores = [sum(self._fits(plan, place(k)) for k in others) for plan in fitting] if fitting[1:] else [0]
        best = fitting[scores.index(max(scores))]
        self.known.append(best)
        return [best]

    def _order(self, kind: Kind, length: int) -> Node | Leaf | None:
        if (kind, length) not in self.found.orders:
            self._say(f"{kind.name}: the order at K = {length}")
            self.found.orders[kind, length] = self.reveal(kind.rows, kind.columns, length)
        return self.found.orders[kind, length]

    def _of_units(self, tree: Node | Leaf) -> bool:
        """Whether more than loops over scalars may have this tree: steps of several terms, or factors of a matrix
        unit."""
        fused = isinstance(tree, Node) and any(node.kind != "binary" for node in nodes_of(tree))
        return fused or self.asked.a.name not in ("f32", "f64")

    # -- candidates

    def _guesses(self, tree: Node | Leaf) -> Iterator[Plan]:
        """Plans with this tree."""
        leaves = leaves_of(tree)
        at_end = isinstance(tree, Node) and "c" in tree.children and len(leaves) > 2 == len(tree.children)
        products = pruned(tree, frozenset(leaf for leaf in leaves if leaf != "c"))
        assert products is not None
        for model in self.steps():
            for stage in stages_of(products, model, Rounding(model.d)):
                yield from self.plans(stage, at_end)

    # -- bits

    def _fits(self, plan: Plan, place: Place) -> bool:
        """Whether a plan gives the library's bits at a place."""
        if (plan, place) not in self.fits:
            self._in_time()
            self.fits[plan, place] = self.same(plan, self._sample(place))
        return self.fits[plan, place]

    def _sample(self, place: Place) -> Sample:
        if place not in self.samples:
            rows, columns = self._places(place.rows), self._places(place.columns)
            times = -(-LEAST // (len(rows) * len(columns)))
            parts = [
                self._drawn(place.shape, rows, columns, cancels) for _ in range(times) for cancels in (False, True)
            ]
            a = np.concatenate([part[0] for part in parts])
            b = np.concatenate([part[1] for part in parts], axis=1)
            c, d = (np.zeros((len(a), b.shape[1]), dtype=part.dtype) for part in parts[0][2:])
            mine = np.zeros(d.shape, dtype=np.bool_)
            for n, part in enumerate(parts):
                at = np.s_[n * len(rows) : (n + 1) * len(rows), n * len(columns) : (n + 1) * len(columns)]
                c[at], d[at], mine[at] = part[2], part[3], True
            self.samples[place] = Sample(a, b, c, d, mine)
        return self.samples[place]

    def _drawn(
        self, shape: Shape, rows: NDArray[np.int64], columns: NDArray[np.int64], cancels: bool
    ) -> tuple[Matrix, ...]:
        """One product of random matrices: A, B, C and D at some rows and columns. Where it `cancels`, products come in
        pairs whose exact sum is zero: what comes out is what roundings left, which a narrow result hides otherwise."""
        sizes = (shape.rows, shape.length), (shape.length, shape.columns), (shape.rows, shape.columns)
        formats, spread = (self.asked.a, self.asked.b, self.asked.c), 5 if cancels else 2
        a, b, c = (self._random(fmt, size, spread) for fmt, size in zip(formats, sizes, strict=True))
        if cancels:
            order = self.rng.permutation(shape.length)
            half = shape.length // 2
            one, other, rest = order[:half], order[half : 2 * half], order[2 * half :]
            a[:, other], b[other] = a[:, one], b[one] ^ b.dtype.type(self.asked.b.sign_bit)
            b[rest] = 0
        c = c if self.asked.addend and not cancels else np.zeros_like(c)
        d = self.multiply(a, b, c)
        self.found.asked += 1
        at = np.ix_(rows, columns)
        return a[rows], b[:, columns], c[at], d[at]

    def _places(self, given: range) -> NDArray[np.int64]:
        """The first, the last, and some between."""
        if len(given) <= LOOKED:
            return np.array(given)
        between = self.rng.choice(np.array(given)[1:-1], LOOKED - 2, replace=False)
        return np.sort(np.append(between, [given[0], given[-1]]))

    def _random(self, fmt: Format, size: tuple[int, int], spread: int) -> Matrix:
        numbers = np.ldexp(self.rng.standard_normal(size), self.rng.integers(-spread, spread + 1, size))
        return from_numbers(numbers, fmt, "nearest_even")

    # -- other shapes

    def _parts(self, shape: Shape) -> list[tuple[str, Place]]:
        """The elements of a shape, by the name of their kind."""
        m, n = shape.rows, shape.columns
        if m == 1 or n == 1:
            return [("M = N = 1" if m == n else "M = 1" if m == 1 else "N = 1", _whole(shape))]
        inside = self._cut(shape, self.found.edges)
        low, high = self.found.volumes
        kind = INSIDE if shape.volume >= high else SMALL if shape.volume <= low else BETWEEN
        down, right = len(inside.rows), len(inside.columns)
        names = self._edge_names()
        found = [(kind, inside.rows, inside.columns), (names[1], inside.rows, range(right, n)),
                 (names[0], range(down, m), range(n))]  # fmt: skip
        return [(name, Place(shape, side, other)) for name, side, other in found if side and other]

    def _predicted(self, name: str, length: int) -> Plan | None:
        return next((span.plan for span in self.found.spans
                     if span.kind.name == name and span.low <= length <= span.high), None)  # fmt: skip

    def _borders(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The smallest multiples up to which rows and columns of every shape agree, where not all of them do; and where
        that takes a kernel for small products, up to which M * N * K and from which on not."""
        shapes = [self._random_shape() for _ in range(4 * SCOUTS)]
        scouts = [shape for shape in shapes if shape.rows > 1 < shape.columns][:SCOUTS]
        one_side = [edges for edge in EDGES for edges in ((0, edge), (edge, 0))]
        tried = [(0, 0), *one_side, *((edge, edge) for edge in EDGES)]
        for edges in tried:
            if self._volumes(scouts, edges) == (0, 0):
                return edges, (0, 0)
        small = Kind(SMALL, min(SMALLEST, self.top.rows), min(SMALLEST, self.top.columns))
        self.found.spans += self._spans(small)
        for edges in tried:
            if volumes := self._volumes(scouts, edges):
                return edges, self._narrowed(volumes, edges)
        self.found.spans = [span for span in self.found.spans if span.kind != small]
        return (0, 0), (0, 0)

    def _volumes(self, scouts: Sequence[Shape], edges: tuple[int, int]) -> tuple[int, int] | None:
        """Between which M * N * K the kernel changes, (0, 0) if it does not; None if shapes do not bear it out."""
        small, large, looked = [0], list[int](), 0
        for shape in scouts:
            place = self._cut(shape, edges)
            if not (place.rows and place.columns):
                continue
            looked += 1
            fits = self._which(place)
            if not any(fits):
                return None
            if not all(fits):
                (large if fits[0] else small).append(shape.volume)
        if 2 * looked < len(scouts) or max(small) >= min(large, default=max(small) + 1):
            return None
        return (0, 0) if len(small) == 1 else (max(small), min(large, default=self.top.volume + 1))

    def _which(self, place: Place) -> tuple[bool, bool]:
        """Whether the plan for all shapes fits at a place, and that for small products."""
        plans = [self._predicted(name, place.shape.length) for name in (INSIDE, SMALL)]
        return plans[0] is not None and self._fits(plans[0], place), plans[1] is not None and self._fits(
            plans[1], place
        )

    def _narrowed(self, volumes: tuple[int, int], edges: tuple[int, int]) -> tuple[int, int]:
        """The border between two kernels, closer."""
        low, high = volumes
        for _ in range(40):
            shape = self._random_shape()
            place = self._cut(shape, edges)
            if low < shape.volume < high and place.rows and place.columns:
                fits = self._which(place)
                if fits == (True, False):
                    high = shape.volume
                elif fits == (False, True):
                    low = shape.volume
        return low, high

    def _edge_names(self) -> tuple[str, str]:
        rows, columns = self.found.edges
        return f"rows after the last multiple of {rows}", f"columns after the last multiple of {columns}"

    def _cut(self, shape: Shape, edges: tuple[int, int]) -> Place:
        """The elements of a shape before its edges."""
        sides = [side - side % edge if edge else side for side, edge in zip((shape.rows, shape.columns), edges,
                                                                           strict=True)]  # fmt: skip
        return Place(shape, range(sides[0]), range(sides[1]))

    def _random_shape(self, number: int = 3) -> Shape:
        """A shape up to the largest, vectors among them."""
        top = self.top
        rows, columns, length = (int(self.rng.integers(1, side + 1)) for side in (top.rows, top.columns, top.length))
        return Shape(1 if number % 8 in (0, 2) else rows, 1 if number % 8 in (0, 1) else columns, length)

    def _check(self) -> None:
        """Random shapes, each of whose results the map predicts."""
        for number in range(CHECKED):
            self._say(f"{number} of {CHECKED} random shapes")
            shape = self._random_shape(number)
            for name, place in self._parts(shape):
                plan = self._predicted(name, shape.length)
                tally = self.found.checks.setdefault(name, Tally())
                if plan is None:
                    tally.open.append(shape)
                elif self._fits(plan, place):
                    tally.agree += 1
                else:
                    tally.differ.append(shape)

    def _say(self, text: str) -> None:
        self.progress(f"{text}; {counted(len(self.known), 'plan')} so far")
        self._in_time()

    def _in_time(self) -> None:
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise IncompleteError("the time ran out before every K was looked at")


def _whole(shape: Shape) -> Place:
    return Place(shape, range(shape.rows), range(shape.columns))


def _turns(plan: Plan, most: int) -> set[int]:
    return set().union(*(turns(products.stage, most) for products in plan.sums))


def _lengths(top: int) -> list[int]:
    """K at which plans are tried: powers of two and their neighbours, and some between."""
    found = {1, 2, 3, top, top - 1, top - 2}
    for power in range(2, top.bit_length() + 1):
        found |= {(1 << power) + step for step in (-1, 0, 1)} | {3 << power - 1, (3 << power - 1) + 1}
    found |= {round(top * part / 17) for part in range(1, 17)}
    return sorted(k for k in found if 1 <= k <= top)


def _fewest(lengths: Sequence[int], plan_at: dict[int, list[Plan]]) -> dict[int, Plan | None]:
    """A plan for each K of those that fit there, with as few changes as there can be."""
    chosen: dict[int, Plan | None] = {}
    start = 0
    while start < len(lengths):
        options = plan_at[lengths[start]]
        if not options:
            chosen[lengths[start]] = None
            start += 1
            continue
        reach = {plan: _reach(lengths, plan_at, start, plan) for plan in options}
        best = max(options, key=lambda plan: reach[plan])
        for k in lengths[start : reach[best]]:
            chosen[k] = best
        start = reach[best]
    return chosen


def _reach(lengths: Sequence[int], plan_at: dict[int, list[Plan]], start: int, plan: Plan) -> int:
    end = start
    while end < len(lengths) and plan in plan_at[lengths[end]]:
        end += 1
    return end


def _holds(fmt: Format, other: Format) -> bool:
    from smtmodel.plans.stages import holds

    return holds(fmt, other)


def _slow(plan: Plan) -> bool:
    """Whether it takes products one at a time: a compiled unit is worth its compilation."""
    return any(model.length == 1 for model in plan.models)


def _named(plan: Plan) -> Plan:
    return replace(plan, reference=stage_text(plan))
