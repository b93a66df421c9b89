"""Candidates for the sum of a matrix product: units, and stages around them, the likely ones first; and whether a plan
reproduces results bit for bit."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import cache
from itertools import chain, product

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.order.tree import Leaf, Node, leaves_of, nodes_of, pruned, size_of
from mmaprobe.queries.plans.forms import Form
from mmaprobe.queries.plans.joined_stages import joined_stages
from mmaprobe.queries.plans.lane_stages import blocks_of, epilogues_of, lanes_of
from mmaprobe.queries.plans.recorded import Sample
from mmaprobe.queries.plans.tree_stages import ranked, stages_of
from mmaprobe.queries.plans.turn_stages import turns_of
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.arithmetic.rounding import Mode
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.base.libraries import briefly_built, compiler
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import same_results
from mmaprobe.smtmodel.evaluate.tiles import Matrix
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain, Fold, Plan, Stage
from mmaprobe.smtmodel.plans.joins import ORDERS, Add, Order, Promote
from mmaprobe.smtmodel.plans.matrices import Job, Patterns, Strip
from mmaprobe.smtmodel.plans.named import (
    in_format,
    in_halves,
    in_multiples,
    in_runs,
    in_turns,
    in_vectors,
    in_windows,
    interleaved,
    promoted,
)  # fmt: skip
from mmaprobe.smtmodel.plans.partitions import Equal, Runs
from mmaprobe.smtmodel.plans.plan_files import plans as shipped_plans
from mmaprobe.smtmodel.plans.stages import Parted, parts_of
from mmaprobe.smtmodel.plans.tape import UncompiledError, noted
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import PLAN, parse_plan_path, parse_reference
from mmaprobe.smtmodel.units.unit_files import units

FEWER: tuple[Mode, ...] = ("toward_zero", "nearest_even")  # how sums are rounded to fewer bits
RUNS = (16, 32, 64, 96, 128, 192, 240, 256, 320, 352, 384, 448, 512, 640, 768, 1024)  # products per separate sum
QUICK = 4  # products of a unit up to which it is always compiled
MANY = 8  # uses of a unit in K from which it is always compiled
PATIENCE = 3.0  # seconds of NumPy's that a longer unit may cost before it is compiled, which takes about as long
WAYS = (2, 4, 8, 16, 32)  # numbers of parts or lanes
#: architectures, in the order in which their units are tried and named, before all others
LIKELY = ("ieee", "hopper", "ampere", "turing", "blackwell", "ada-lovelace", "volta", "cdna3", "cdna2", "cdna1")
FEW = 3  # of these sizes, the likeliest
PAIR = 2  # products of instructions of processors, whose libraries cut K for their caches, and split it for no block
SPLITS = (2, 3, 4, 5, 6, 7, 8, 16)  # numbers of parts of a kernel that splits K
DEALT = (4, 8, 16, 32, 64, 128)  # products of a tile, of which a kernel that splits K may deal as many to each part
GRAINS = (1, 2, 4, 8)  # uses of an instruction that one accumulator takes in turn
THREADS = (32, 64, 128, 256)  # numbers of lanes of kernels of vectors on GPUs, besides WAYS
TAKEN = (1, 2, 4, 8, 16, 32, 64)  # products that one of these lanes takes in a turn
HEADS = (8, 16, 32, 64, 128)  # products of K in a tile; those that fill none may come first
WINDOW = 32  # products, or sums of them, of one window of XLA's reductions
WIDER = {"f16": "f32", "bf16": "f32", "f32": "f64"}


class Candidates:
    """Candidate units and stages for products with the formats of `asked`, and whether a plan reproduces results."""

    def __init__(self, asked: Signature) -> None:
        self.asked = asked
        self.compiled: set[Model] = set()  # longer units that are compiled as well
        self.stored: list[Format] = []  # formats of runs of K before they are added, which the results seem to show
        self._spent: dict[Model, float] = {}  # seconds of NumPy's on the others

    # -- units

    def units(self, taken: tuple[Format, Format]) -> Iterator[Model]:
        """The units of the table for factors of two formats, the likeliest first, each arithmetic once."""
        seen: set[object] = set()
        for model in _table():
            if (model.a, model.b) == taken and (key := (model.unit.result, model.d)) not in seen:
                seen.add(key)
                yield model

    @staticmethod
    def aliases(model: Model) -> Iterator[Model]:
        """The units of the table with the arithmetic of one."""
        key = (model.a, model.b, model.d, model.unit.result)
        return (other for other in _table() if (other.a, other.b, other.d, other.unit.result) == key)

    def steps(self, taken: tuple[Format, Format]) -> Iterator[Model]:
        """Units of one product: multiply-add, fused or not, in the format of the result or the next wider one."""
        (a, b), d = taken, self.asked.d
        for fmt in dict.fromkeys((d.name, WIDER.get(d.name, d.name))):
            if fmt in ("f64", "f32", "f16") and FORMATS[fmt].holds(a) and FORMATS[fmt].holds(b):
                yield parse_reference(f"ieee/fma/{fmt}.{a.name}.{b.name}.{fmt}")
                formats = fmt if a.name == b.name == fmt else f"{fmt}.{a.name}.{b.name}.{fmt}"
                if (unfused := f"ieee/muladd/{formats}") in units():
                    yield parse_reference(unfused)

    def shorter(self, model: Model) -> Iterator[Model]:
        """Units of the table with a model's formats that take fewer products."""
        formats = (model.a, model.b, model.c, model.d)
        for other in self.units((model.a, model.b)):
            if (other.a, other.b, other.c, other.d) == formats and other.length < model.length:
                yield other

    def shipped(self) -> Iterator[Plan]:
        """The shipped plans with these formats."""
        asked = self.asked
        for name in shipped_plans():
            plan = parse_plan_path(PLAN + name)
            same_c = not asked.addend or plan.c == asked.c
            if (plan.a, plan.b, plan.d) == (asked.a, asked.b, asked.d) and same_c:
                yield plan

    # -- stages

    def stages(self, model: Model, length: int) -> Iterator[Stage]:
        """How libraries add K = `length` products with a unit, the likeliest ways first: the chain of it, the
        accumulator promoted, K split, sums that take products in turn, lanes and halves of single products."""
        chain, how, unit = Chain(model), Rounding(model.c), model.length
        yield chain
        ones = [Chain(step) for step in self.steps((model.a, model.b)) if unit > 1 and step.d == model.d == step.c]
        if length % unit:
            yield from (Chain(model, tail) for tail in ones)
            yield from (Chain(model, Chain(short, tail)) for short in self.shorter(model) for tail in (None, *ones))
        runs = [
            run for run in dict.fromkeys((128, 2 * unit, 4 * unit, *RUNS)) if unit < run < length and not run % unit
        ]
        few = len(runs) if unit == PAIR else FEW
        yield from (promoted(run, chain, how) for run in runs[:few])
        grains = [grain for grain in (0, 64, 32, 128, 16, 8) if grain % unit == 0 and grain != unit]
        cuts = [(ways, grain) for grain in grains for ways in SPLITS if grain * ways < 2 * length]
        yield from (in_runs(ways, chain, how, "sequential", grain) for ways, grain in cuts)
        yield from evenly(chain, how, length)
        formats = [Rounding(fmt) for fmt in dict.fromkeys((self.asked.d, *self.stored))
                   if fmt != model.d and model.c.holds(fmt)]  # fmt: skip
        spaces = [in_format(chain, own) for own in formats]
        yield from (in_runs(ways, stored, how, "sequential", grain) for stored in spaces for ways, grain in cuts)
        narrow = [(in_format(chain, own), own) for own in formats]  # whose sums are added in their own format
        yield from (self._widened(in_runs(ways, stored, own, "sequential", grain), how) for stored, own in narrow
                    for ways, grain in cuts)  # fmt: skip
        if self.stored:
            yield from (promoted(run, stored, how) for stored in spaces for run in runs)
            yield from (in_runs(ways, stored, how, order, grain) for stored in spaces for order in ORDERS[1:]
                        for ways, grain in cuts if ways > 2)  # fmt: skip
        yield from (promoted(run, chain, how) for run in runs[few:])
        for order in ORDERS[1:]:
            yield from (in_runs(ways, chain, how, order, grain) for ways, grain in cuts if ways > 2)
        if unit == 1 and model.d == model.c:  # lanes are folded in the format of their sums
            yield from self._single(chain, how, length)
        last = chain if model.d == model.c else in_format(chain, how)
        for turn in GRAINS if unit > 1 else GRAINS[:1]:
            for ways in WAYS if unit == 1 else WAYS[:3]:
                yield from (interleaved(ways, chain, how, order, turn * unit, last) for order in _orders(ways))
        tiles = [tile for tile in HEADS if tile % unit == 0 and length % tile and tile < length]
        heads = [in_multiples(tile, chain, head=chain) for tile in (tiles if unit > 1 else ())]
        yield from heads
        yield from (in_runs(ways, head, how, "sequential", grain) for head in heads for ways in SPLITS
                    for grain in (8, head.period))  # fmt: skip
        yield from (self._widened(promoted(run, stored, own), how) for stored, own in narrow for run in runs)
        yield from (self._widened(in_runs(ways, stored, own, order, grain), how) for stored, own in narrow
                    for order in ORDERS[1:] for ways, grain in cuts if ways > 2)  # fmt: skip

    def _widened(self, stage: Parted, how: Rounding) -> Stage:
        """A stage whose sum has the format of results, or of a rounding that leaves it as it is."""
        return stage if stage.d == self.asked.d else in_format(stage, how)

    def _single(self, chain: Chain, how: Rounding, length: int) -> Iterator[Stage]:
        """Stages of a unit of one product."""
        yield from (in_vectors(chain, how, (ways, *_halved(ways)), tail=chain) for ways in WAYS)
        yield from (promoted(run, chain, how, 1) for run in RUNS if run < length)
        yield from (in_runs(ways, chain, how, "sequential", grain) for ways in WAYS[:3] for grain in (1, 16))
        yield from (
            in_halves(most, chain, how, grain) for most in (8, 16, 32, 64, 128) if most < length for grain in (1, 8)
        )
        yield from vectors(chain, how, length)

    def of_fewer_bits(self, models: Iterable[Model], forms: Iterable[Form]) -> Iterator[Stage]:
        """Sums of units in a format of fewer bits than these and the results have, if some form is of it: a unit's
        result rounded to it at every step, or at the end; or what a unit gives from +0, added with one rounding."""
        fewer = {form.format for form in forms} - {self.asked.d, FORMATS["f32"], FORMATS["f64"]}
        for model, fmt in product(models, fewer):
            if fmt != model.d and model.d.holds(fmt):
                for how in (Rounding(fmt, mode) for mode in FEWER):
                    once, every = in_format(Chain(model), how), model.length
                    yield from (in_turns(every, once), promoted(every, Chain(model), how), once)

    def guesses(
        self, tree: Node | Leaf, taken: tuple[Format, Format], known: Sequence[Plan] = (), *, wider: bool = False
    ) -> Iterator[Stage]:
        """Candidate stages with this summation tree, of units of one product. `known`: plans whose stages are tried as
        parts of them; `wider`: only those whose last products go to narrower vectors, or whose parts are joined
        otherwise than in most libraries, or added in a wider format, which often give what the others give."""
        products = pruned(tree, frozenset(leaf for leaf in leaves_of(tree) if leaf != "c"))
        assert products is not None
        stages = dict.fromkeys(product.stage for plan in known for product in plan.sums)
        for model in self.steps(taken):
            yield from self._read(products, stages, model, wider)

    def _read(self, products: Node | Leaf, known: Iterable[Stage], model: Model, wider: bool) -> Iterator[Stage]:
        how = Rounding(model.d)
        if wider:
            yield from chain(epilogues_of(products, model, how), joined_stages(products, model, how))
            if model.d.name not in WIDER:
                return
        bodies = [stage for stage in known if stage.d == model.d and parts_of(stage, Runs, Promote) is None]
        stages = [*evenly(Chain(model), how, size_of(products)),
                 in_windows(WINDOW, Chain(model), how), *lanes_of(products, model, how),
                 *blocks_of(products, model, how),
                 *turns_of(products, model), *cut_alike(products, known, model, how),
                 *stages_of(products, model, how, bodies)]  # fmt: skip
        formats = [fmt for fmt in dict.fromkeys((self.asked.d, *self.stored)) if fmt != model.d and model.d.holds(fmt)]
        cut = [(stage, join) for stage in stages
               if isinstance(stage, Parted) and isinstance(join := stage.join, Promote | Add)]  # fmt: skip
        runs = [(replace(stage, body=in_format(stage.body, own)), join, own) for own in map(Rounding, formats)
                for stage, join in cut]  # fmt: skip
        stages += [stage for stage, _, _ in runs]
        stages += [self._widened(replace(stage, join=replace(join, rounding=own)), how) for stage, join, own in runs
                   if stage.tail is None]  # fmt: skip
        if wider:
            wide = Rounding(FORMATS[WIDER[model.d.name]])
            parts = (stage for stage in stages if isinstance(stage, Parted) and stage.tail is None)
            stages = [replace(stage, join=replace(join, rounding=wide)) for stage in parts
                     if isinstance(join := stage.join, Promote | Add)
                     and isinstance(stage.partition, Runs | Equal)]  # fmt: skip
        yield from stages

    def of_units(self, tree: Node | Leaf) -> bool:
        """Whether a matrix unit, and not only a scalar loop, may have this tree: some node adds more than two terms at
        once, or the factors are neither f32 nor f64."""
        fused = isinstance(tree, Node) and any(node.kind != "binary" for node in nodes_of(tree))
        return fused or self.narrow

    @property
    def narrow(self) -> bool:
        """Whether the factors have a format of matrix units, neither f32 nor f64."""
        return self.asked.a.name not in ("f32", "f64")

    def in_forms(self, stage: Stage, forms: Iterable[Form], sample: Sample) -> Iterator[tuple[Form, Matrix]]:
        """The results for a sample of a stage in each of some forms that takes its sums. Those are formed once for all
        forms that begin alike."""
        sums: dict[object, Matrix | None] = {}
        taken = stage.models[0].a, stage.models[0].b
        for form in forms:
            if form.taken != taken or form.format != stage.d or (total := form.sum_of(stage)) is None:
                continue
            if (key := (form.convert, form.start)) not in sums:
                sums[key] = self.results(total, sample)
            if (matrix := sums[key]) is not None:
                yield form, form.ended(matrix, sample.c)

    def same(self, plan: Plan, sample: Sample) -> bool:
        """Whether a plan reproduces all results of a sample; all NaNs are equal."""
        results = self.results(plan, sample)
        if results is None:
            return False
        return not self.differing(results, sample)

    def agreeing(self, results: Matrix, sample: Sample) -> NDArray[np.bool_]:
        """Which of the results `results` equal those of a sample (an array of the shape of D); all NaNs are equal."""
        return same_results(results, sample.d, self.asked.d)

    def differing(self, results: Matrix, sample: Sample) -> int:
        """How many of the results `results` differ from those of a sample."""
        return int((~self.agreeing(results, sample)).sum())

    def results(self, plan: Plan, sample: Sample) -> Matrix | None:
        """The results of a plan for the inputs of a sample; None if the plan cannot be evaluated on them, as for a K
        that does not fit its tiles."""
        try:
            compiled = (x.length <= QUICK or x in self.compiled or sample.a.shape[2] >= MANY * x.length
                        for x in plan.models)  # fmt: skip
            if compiler() is not None and all(compiled):
                with suppress(UncompiledError), briefly_built():
                    return noted(plan, sample.a.shape[2]).play(sample.a, sample.b, sample.c)
            begun = time.monotonic()
            matrix = _by_tiles(plan, sample)
            self._charge(plan.models, time.monotonic() - begun)
            return matrix
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
    matrix = Strip(job, slice(None), Patterns(c.reshape(blocks * rows, -1), plan.c)).result()
    mine: Matrix = matrix.reshape(c.shape)[own, :, own]
    return mine


def cut_alike(products: Node | Leaf, known: Iterable[Stage], model: Model, how: Rounding) -> Iterator[Stage]:
    """Stages that cut K as known ones do, each of their sums by the lanes of vectors that the last of them has in a
    tree."""
    count = size_of(products)
    cuts = {replace(stage, body=Chain(model)): runs for stage in known if isinstance(stage, Parted)
            if (runs := parts_of(stage, Runs, Promote)) is not None and stage.d == model.d}  # fmt: skip
    for stage, runs in cuts.items():
        size = runs.size(count)
        last = pruned(products, frozenset(range((count - 1) // size * size, count)))
        if size < count and last is not None:
            yield from (replace(stage, body=body) for body in lanes_of(ranked(last), model, how))


@cache
def _table() -> tuple[Model, ...]:
    """The units and instructions that can take K in tiles, the likeliest first."""
    every = (parse_reference(reference) for reference in dict.fromkeys((*units(), *INSTRUCTIONS)))
    return tuple(sorted((x for x in every if x.scale is None and x.c.holds(x.d)), key=likelihood))


def likelihood(model: Model) -> int:
    """The place of a unit's architecture among those whose libraries are the likeliest."""
    architecture = model.reference.partition("/")[0]
    return LIKELY.index(architecture) if architecture in LIKELY else len(LIKELY)


def vectors(chain: Chain, how: Rounding, length: int) -> Iterator[Stage]:
    """Sums of K = `length` products by many lanes that take one or more of each turn, as threads of a GPU do: added in
    halves or in order."""
    for ways in (*WAYS, *THREADS):
        for grain in TAKEN:
            if ways * grain < 2 * length:
                for folds in dict.fromkeys((_halved(ways), (Fold(ways, 1),))):
                    yield in_vectors(chain, how, (ways, *folds), grain=grain)


def evenly(chain: Chain, how: Rounding, length: int) -> Iterator[Stage]:
    """K = `length` split in runs of tiles that are divided evenly, where this is not how other splits end."""
    for grain in (size for size in DEALT if size % chain.model.length == 0):
        uneven = (ways for ways in SPLITS if 0 < -(-length // grain) % ways < ways - 1)
        yield from (in_runs(ways, chain, how, "sequential", grain, "even") for ways in uneven)


def _orders(ways: int) -> tuple[Order, ...]:
    """The orders of adding `ways` sums that give different results."""
    return ORDERS if ways > 2 else ORDERS[:1]


def _halved(lanes: int) -> tuple[Fold, ...]:
    """Folds that add the upper half of the lanes to the lower one, until one is left."""
    return () if lanes == 1 else (Fold(2, lanes // 2), *_halved(lanes // 2))


def with_unit(stage: Stage, model: Model, other: Model) -> Stage:
    """The same stage with another unit in the place of one."""
    changes = {
        field.name: with_unit(part, model, other)
        for field in fields(stage)  # type: ignore[arg-type]
        if isinstance(part := getattr(stage, field.name), Stage)
    }
    if isinstance(stage, Chain) and stage.model == model:
        changes["model"] = other  # type: ignore[assignment]
    return replace(stage, **changes)  # type: ignore[type-var]
