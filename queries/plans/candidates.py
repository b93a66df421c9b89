"""Candidate plans for a library's matrix product, and whether a plan reproduces the library's results bit for bit."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.order.tree import Leaf, Node, leaves_of, nodes_of, pruned
from mmaprobe.queries.plans.joined_stages import joined_stages
from mmaprobe.queries.plans.lane_stages import blocks_of, epilogues_of, lanes_of
from mmaprobe.queries.plans.tree_stages import ranked, stages_of
from mmaprobe.queries.plans.turn_stages import turns_of
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.arithmetic.rounding import Mode
from mmaprobe.smtmodel.base.errors import MmaprobeError, ParameterError
from mmaprobe.smtmodel.base.libraries import compiler
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import nans
from mmaprobe.smtmodel.evaluate.tiles import Matrix
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.nodes import Constant, Element, ExactSum, Literal, Product, Round
from mmaprobe.smtmodel.nodes import Node as AnyNode
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain, Fold, Plan, Products, Stage
from mmaprobe.smtmodel.plans.joins import ORDERS, Add, Order, Promote
from mmaprobe.smtmodel.plans.matrices import Job, Patterns, Strip
from mmaprobe.smtmodel.plans.named import (
    in_format,
    in_halves,
    in_multiples,
    in_runs,
    in_runs_at,
    in_vectors,
    in_windows,
    interleaved,
    promoted,
)  # fmt: skip
from mmaprobe.smtmodel.plans.partitions import Equal, Runs
from mmaprobe.smtmodel.plans.plan_files import plans as shipped_plans
from mmaprobe.smtmodel.plans.plantext import stage_text
from mmaprobe.smtmodel.plans.stages import Parted, parts_of
from mmaprobe.smtmodel.plans.tape import UncompiledError, noted
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import PLAN, parse_plan_path, parse_reference
from mmaprobe.smtmodel.units.unit_files import units

RUNS = (16, 32, 64, 96, 128, 192, 240, 256, 320, 352, 384, 448, 512, 640, 768, 1024)  # products per separate sum
QUICK = 4  # products of a unit up to which it is always compiled
PATIENCE = 3.0  # seconds of NumPy's that a longer unit may cost before it is compiled, which takes about as long
WAYS = (2, 4, 8, 16, 32)  # numbers of parts or lanes
SPLITS = (2, 3, 4, 5, 6, 8, 16)  # numbers of parts of a kernel that splits K
MOST_CUTS = 128  # ways of cutting K at multiples of one number that are tried
GRAINS = (1, 2, 4, 8)  # uses of an instruction that one accumulator takes in turn
THREADS = (32, 64, 128, 256)  # numbers of lanes of kernels of vectors on GPUs, besides WAYS
TAKEN = (1, 2, 4, 8, 16, 32, 64)  # products that one of these lanes takes in a turn
HEADS = (8, 16, 32, 64, 128)  # products of K in a tile; those that fill none may come first
WINDOW = 32  # products, or sums of them, of one window of XLA's reductions
WIDER = {"f16": "f32", "bf16": "f32", "f32": "f64"}
#: how libraries convert inputs in f32 for units of a narrower format
CONVERSIONS: dict[str, tuple[Mode, ...]] = {
    "tf32": ("nearest_away", "nearest_even", "toward_zero"),
    "bf16": ("nearest_even", "toward_zero"),
    "f16": ("nearest_even",),
}


@dataclass(frozen=True)
class Sample:
    """Patterns of several matrix products of one shape: A (products x rows x K), B (products x K x columns), C and D
    (products x rows x columns)."""

    a: Matrix
    b: Matrix
    c: Matrix
    d: Matrix


class Candidates:
    """Candidate plans with the formats of `asked`, and whether a plan reproduces a library's results. `convert`: how
    the inputs become those of the units, None if they are taken as they are; `out`: how a sum of another format becomes
    the result, None for rounding to nearest even; `scalars`: alpha and beta, None if the sum is the result, or begins
    with c, or c is added to it."""

    def __init__(
        self, asked: Signature, convert: Rounding | None = None, out: Rounding | None = None,
        scalars: tuple[float, float] | None = None,
    ) -> None:  # fmt: skip
        self.asked, self.convert, self.out, self.scalars = asked, convert, out or Rounding(asked.d), scalars
        self.compiled: set[Model] = set()  # longer units that are compiled as well
        self._spent: dict[Model, float] = {}  # seconds of NumPy's on the others

    @property
    def taken(self) -> tuple[Format, Format]:
        """The formats of a and b as the units take them."""
        return (self.asked.a, self.asked.b) if self.convert is None else (self.convert.format, self.convert.format)

    def variants(self) -> Iterator[Candidates]:
        """Candidates that convert the inputs from f32, and ones that truncate the result."""
        if self.asked.a.name == self.asked.b.name == "f32":
            for name, modes in CONVERSIONS.items():
                yield from (Candidates(self.asked, Rounding(FORMATS[name], mode)) for mode in modes)
        yield Candidates(self.asked, None, Rounding(self.asked.d, "toward_zero"))

    def like(self, plan: Plan) -> Candidates:
        """Candidates with a plan's conversion of inputs and of its result."""
        out = plan.result.rounding if isinstance(plan.result, Round) else None
        return Candidates(self.asked, plan.convert_a, out if out is not None and out.format == self.asked.d else None)

    def steps(self) -> Iterator[Model]:
        """Units of one product: multiply-add, fused or not, in the format of the result or the next wider one."""
        (a, b), d = self.taken, self.asked.d
        for fmt in dict.fromkeys((d.name, WIDER.get(d.name, d.name))):
            if fmt in ("f64", "f32", "f16") and FORMATS[fmt].holds(a) and FORMATS[fmt].holds(b):
                yield parse_reference(f"ieee/fma/{fmt}.{a.name}.{b.name}.{fmt}")
                formats = fmt if a.name == b.name == fmt else f"{fmt}.{a.name}.{b.name}.{fmt}"
                if (unfused := f"ieee/muladd/{formats}") in units():
                    yield parse_reference(unfused)

    def plans(self, stage: Stage, at_end: bool) -> Iterator[Plan]:
        """Plans with this stage. The sum starts from c, or, with `at_end`, c is added to it at the end; a sum of
        another format than that of d is rounded to it. Formats that do not fit together give no plan."""
        asked, out = self.asked, self.out
        if self.scalars is not None:
            yield from self._scaled(stage, *self.scalars)
            return
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
                yield named(Plan(asked.a, asked.b, asked.c, total, self.convert, self.convert))
            except ParameterError:
                continue

    def _scaled(self, stage: Stage, alpha: float, beta: float) -> Iterator[Plan]:
        """Plans whose result is alpha times the sum plus beta times c: with each product rounded, or fused with the
        addition."""
        how = Rounding(FORMATS["f64" if stage.d.name == "f64" else "f32"])

        def times(scalar: float, node: AnyNode) -> AnyNode:
            pattern = np.array(scalar, np.float64 if how.format.name == "f64" else np.float32)
            return Product(Literal(int(pattern.view(f"u{pattern.itemsize}")), how.format), node)

        total = Products(stage, Constant())
        sums: list[AnyNode] = [total] if alpha == 1 else [times(alpha, total), Round(times(alpha, total), how)]
        ends: list[AnyNode | None] = [None]
        if beta:
            c = Element("c")
            ends = [c] if beta == 1 else [times(beta, c), Round(times(beta, c), how)]
        for one in sums:
            for end in ends:
                term: AnyNode = one if end is None else ExactSum((one, end))
                rounded: list[AnyNode] = [term] if how.format == self.out.format else [term, Round(term, how)]
                for result in (Round(each, self.out) for each in rounded):
                    with suppress(ParameterError):
                        yield named(Plan(self.asked.a, self.asked.b, self.asked.c, result, self.convert, self.convert))

    def table(self) -> Iterator[Plan]:
        """The shipped plans and units, and the instructions of the table, with K taken in tiles."""
        yield from self.shipped()
        yield from self.chains(INSTRUCTIONS)

    def shipped(self) -> Iterator[Plan]:
        """The shipped plans with these formats, and the units of the table, with K taken in tiles."""
        asked = self.asked
        for name in shipped_plans():
            plan = parse_plan_path(PLAN + name)
            same_c = not asked.addend or plan.c == asked.c
            if (plan.a, plan.b, plan.d) == (asked.a, asked.b, asked.d) and same_c:
                yield plan
        yield from self.chains(units())

    def chains(self, references: Iterable[str]) -> Iterator[Plan]:
        """Plans in which one of these units takes K in tiles, for each unit with these formats."""
        for reference in references:
            model = parse_reference(reference)
            if (model.a, model.b) == self.taken and model.scale is None and model.c.holds(model.d):
                yield from self.plans(Chain(model), False)

    def unusual(self, length: int) -> Iterator[Plan]:
        """Candidates for K = `length` that convert their inputs, or truncate their result."""
        for other in self.variants():
            yield from other.chains([*units(), *INSTRUCTIONS])
            if other.convert is not None:
                yield from other.loops(length)

    def loops(self, length: int) -> Iterator[Plan]:
        """Plans that divide K = `length` into parts of usual sizes, with units of one product."""
        for model in self.steps():
            chain, how = Chain(model), Rounding(model.d)
            stages: list[Stage] = [chain]
            stages += [promoted(run, chain, how, even) for run in RUNS if run < length for even in (0, 1)]
            stages += [interleaved(ways, chain, how, order, 1, chain) for ways in WAYS for order in _orders(ways)]
            stages += [in_runs(ways, chain, how, "sequential", grain) for ways in WAYS[:3] for grain in (1, 16)]
            stages += [
                in_halves(most, chain, how, grain) for most in (8, 16, 32, 64, 128) if most < length for grain in (1, 8)
            ]
            stages += [in_vectors(chain, how, (ways, *_halved(ways)), tail=chain) for ways in WAYS]
            for stage in (*stages, *vectors(chain, how, length)):
                yield from self.plans(stage, False)

    def cuts(self, model: Model, length: int) -> Iterator[Plan]:
        """Plans around an instruction, as kernels have them for K = `length`: K split, the accumulator promoted, the
        products that fill no tile summed one by one, c added at the end."""
        chain, how, unit = Chain(model), Rounding(model.c), model.length
        last = chain if model.d == model.c else in_format(chain, how)
        stages: list[Stage] = []
        if length % unit:
            ones = [Chain(step) for step in self.steps() if step.d == model.d == step.c]
            stages += [Chain(model, tail) for tail in ones]
            stages += [Chain(model, Chain(short, tail)) for short in self.shorter(model) for tail in (None, *ones)]
        stages += [
            promoted(run, chain, how)
            for run in dict.fromkeys((2 * unit, 4 * unit, 128, *RUNS))
            if run < length and run % unit == 0
        ]
        if self.asked.d != model.d and model.c.holds(self.asked.d):  # a workspace in the format of the result
            stages += [in_runs(ways, in_format(chain, Rounding(self.asked.d)), how) for ways in SPLITS]
        for ways in SPLITS:
            grains = [grain for grain in (0, 32, 64, 128) if grain % unit == 0 and grain * ways < 2 * length]
            stages += [in_runs(ways, chain, how, order, grain) for grain in grains for order in _orders(ways)]
        stages += [
            interleaved(ways, chain, how, order, turn * unit, last)
            for turn in GRAINS
            for ways in WAYS[:3]
            for order in _orders(ways)
        ]
        heads = [
            in_multiples(tile, chain, head=chain)
            for tile in HEADS
            if tile % unit == 0 and length % tile and tile < length
        ]
        stages += [*heads, *(in_runs(ways, head, how, "sequential", grain) for head in heads for ways in SPLITS
                             for grain in (8, head.period))]  # fmt: skip
        ends = (False, True) if self.asked.addend else (False,)
        for stage in dict.fromkeys((chain, *stages)):
            for at_end in ends:
                yield from self.plans(stage, at_end)

    def uneven(self, model: Model, length: int) -> Iterator[Plan]:
        """Plans around an instruction in which K = `length` is cut at one or two places, as stream-K does, added from
        the first run or from the last one."""
        cuts: list[tuple[int, ...]] = []
        for tile in (128, 64, 32, 16):
            places = range(tile, length, tile) if tile % model.length == 0 else ()
            for count in (1, 2):
                cuts += combinations(places, count) if comb(len(places), count) <= MOST_CUTS else []
        for at in dict.fromkeys(cuts):
            for order in ORDERS if len(at) > 1 else ORDERS[:1]:
                if order != "pairwise":  # of three sums as in order
                    yield from self.plans(in_runs_at(at, Chain(model), Rounding(model.c), order), False)

    def shorter(self, model: Model) -> Iterator[Model]:
        """Instructions of the table with a model's formats that take fewer products, each arithmetic once."""
        seen: set[object] = set()
        for reference in INSTRUCTIONS:
            other = parse_reference(reference)
            alike = (other.a, other.b, other.c, other.d, other.scale) == (model.a, model.b, model.c, model.d, None)
            if alike and other.length < model.length and other.unit.result not in seen:
                seen.add(other.unit.result)
                yield other

    def guesses(self, tree: Node | Leaf, known: Sequence[Plan] = (), *, wider: bool = False) -> Iterator[Plan]:
        """Candidate plans with this summation tree. `known`: plans whose stages are tried as parts of them; `wider`:
        only those whose last products go to narrower vectors, or whose parts are joined otherwise than in most
        libraries, or added in a wider format, which often give what the others give."""
        leaves = leaves_of(tree)
        at_end = isinstance(tree, Node) and "c" in tree.children and len(leaves) > 2 == len(tree.children)
        products = pruned(tree, frozenset(leaf for leaf in leaves if leaf != "c"))
        assert products is not None
        stages = dict.fromkeys(product.stage for plan in known for product in plan.sums)
        for model in self.steps():
            how = Rounding(model.d)
            if wider:
                for stage in chain(epilogues_of(products, model, how), joined_stages(products, model, how)):
                    yield from self.plans(stage, at_end)
                if model.d.name not in WIDER:
                    continue
            bodies = [stage for stage in stages if stage.d == model.d and parts_of(stage, Runs, Promote) is None]
            found = [in_windows(WINDOW, Chain(model), how), *lanes_of(products, model, how),
                     *blocks_of(products, model, how),
                     *turns_of(products, model), *cut_alike(products, stages, model, how),
                     *stages_of(products, model, how, bodies)]  # fmt: skip
            if wider:
                wide = Rounding(FORMATS[WIDER[model.d.name]])
                parts = (stage for stage in found if isinstance(stage, Parted) and stage.tail is None)
                found = [replace(stage, join=replace(join, rounding=wide)) for stage in parts
                         if isinstance(join := stage.join, Promote | Add)
                         and isinstance(stage.partition, Runs | Equal)]  # fmt: skip
            for stage in found:
                yield from self.plans(stage, at_end)

    def of_units(self, tree: Node | Leaf) -> bool:
        """Whether a matrix unit, and not only a scalar loop, may have this tree: some node adds more than two terms at
        once, or the factors are neither f32 nor f64."""
        fused = isinstance(tree, Node) and any(node.kind != "binary" for node in nodes_of(tree))
        return fused or self.narrow

    @property
    def narrow(self) -> bool:
        """Whether the factors have a format of matrix units, neither f32 nor f64."""
        return self.asked.a.name not in ("f32", "f64")

    def same(self, plan: Plan, sample: Sample) -> bool:
        """Whether a plan reproduces all results of a sample; all NaNs are equal."""
        found = self.results(plan, sample)
        if found is None:
            return False
        return not self.differing(found, sample)

    def agreeing(self, found: Matrix, sample: Sample) -> NDArray[np.bool_]:
        """Which of the results `found` equal those of a sample (an array of the shape of D); all NaNs are equal."""
        same: NDArray[np.bool_] = found == sample.d
        return same | (nans(found, self.asked.d) & nans(sample.d, self.asked.d))

    def differing(self, found: Matrix, sample: Sample) -> int:
        """How many of the results `found` differ from those of a sample."""
        return int((~self.agreeing(found, sample)).sum())

    def results(self, plan: Plan, sample: Sample) -> Matrix | None:
        """The results of a plan for the inputs of a sample; None if the plan cannot be evaluated on them, as for a K
        that does not fit its tiles."""
        try:
            if compiler() is not None and all(x.length <= QUICK or x in self.compiled for x in plan.models):
                with suppress(UncompiledError):
                    return noted(plan, sample.a.shape[2]).play(sample.a, sample.b, sample.c)
            begun = time.monotonic()
            found = _by_tiles(plan, sample)
            self._charge(plan.models, time.monotonic() - begun)
            return found
        except MmaprobeError:
            return None

    def _charge(self, models: Iterable[Model], seconds: float) -> None:
        """Enter what a plan's evaluation by NumPy took; units that have cost more than it is worth are compiled."""
        for model in models:
            self._spent[model] = self._spent.get(model, 0.0) + seconds
            if self._spent[model] > PATIENCE:
                self.compiled.add(model)


def _by_tiles(plan: Plan, sample: Sample) -> Matrix:
    """The results of a plan for a sample, computed as the diagonal blocks of one larger matrix product."""
    blocks, rows, length = sample.a.shape
    columns = sample.b.shape[2]
    job = Job(plan, sample.a.reshape(-1, length), np.concatenate(list(sample.b), axis=1))
    c = np.zeros((blocks, rows, blocks, columns), dtype=sample.c.dtype)
    own = np.arange(blocks)
    c[own, :, own] = sample.c
    found = Strip(job, slice(None), Patterns(c.reshape(blocks * rows, -1), plan.c)).result()
    mine: Matrix = found.reshape(c.shape)[own, :, own]
    return mine


def cut_alike(products: Node | Leaf, known: Iterable[Stage], model: Model, how: Rounding) -> Iterator[Stage]:
    """Stages that cut K as known ones do, each of their sums by the lanes of vectors that the last of them has in a
    tree."""
    count = len(leaves_of(products))
    cuts = {replace(stage, body=Chain(model)): runs for stage in known if isinstance(stage, Parted)
            if (runs := parts_of(stage, Runs, Promote)) is not None and stage.d == model.d}  # fmt: skip
    for stage, runs in cuts.items():
        size = runs.size(count)
        last = pruned(products, frozenset(range((count - 1) // size * size, count)))
        if size < count and last is not None:
            yield from (replace(stage, body=body) for body in lanes_of(ranked(last), model, how))


def named(plan: Plan) -> Plan:
    """The plan, named by its text, by how it converts its inputs, and by how its result is rounded if not to nearest
    even."""
    how, out = plan.convert_a, plan.result.rounding.mode if isinstance(plan.result, Round) else "nearest_even"
    inputs = "" if how is None else f", inputs rounded to {how.format.name}, {how.mode}"
    result = "" if out == "nearest_even" else f", result rounded {out}"
    return replace(plan, reference=f"{stage_text(plan)}{inputs}{result}")


def vectors(chain: Chain, how: Rounding, length: int) -> Iterator[Stage]:
    """Sums of K = `length` products by many lanes that take one or more of each turn, as threads of a GPU do: added in
    halves or in order."""
    for ways in (*WAYS, *THREADS):
        for grain in TAKEN:
            if ways * grain < 2 * length:
                for folds in dict.fromkeys((_halved(ways), (Fold(ways, 1),))):
                    yield in_vectors(chain, how, (ways, *folds), grain=grain)


def _orders(ways: int) -> tuple[Order, ...]:
    """The orders of adding `ways` sums that give different results."""
    return ORDERS if ways > 2 else ORDERS[:1]


def _halved(lanes: int) -> tuple[Fold, ...]:
    """Folds that add the upper half of the lanes to the lower one, until one is left."""
    return () if lanes == 1 else (Fold(2, lanes // 2), *_halved(lanes // 2))
