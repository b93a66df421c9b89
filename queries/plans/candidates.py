"""Candidates for the sum of a matrix product: units, and stages around them, the likely ones first; and whether a plan
reproduces results bit for bit."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import chain, product

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.order.tree import Leaf, Node, leaves_of, nodes_of, pruned, size_of
from mmaprobe.queries.plans.cut_sums import tile_of
from mmaprobe.queries.plans.forms import Form, with_sums
from mmaprobe.queries.plans.lane_stages import blocks_of, epilogues_of, lanes_of
from mmaprobe.queries.plans.recorded import Sample
from mmaprobe.queries.plans.tree_stages import Steps, ranked, stages_of
from mmaprobe.queries.plans.turn_stages import turns_of
from mmaprobe.queries.plans.unit_stages import Keeping, PartRoundings, in_equal_parts, kept_as, usual
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.arithmetic.rounding import Mode
from mmaprobe.smtmodel.base.errors import MmaprobeError, ParameterError
from mmaprobe.smtmodel.base.libraries import briefly_built, compiler
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import same_results
from mmaprobe.smtmodel.evaluate.tiles import Matrix
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain, Plan, Products, Stage
from mmaprobe.smtmodel.plans.joins import Promote
from mmaprobe.smtmodel.plans.matrices import Job, Patterns, Strip
from mmaprobe.smtmodel.plans.named import (
    in_format,
    in_turns,
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
QUICK = 4  # products of a unit up to which it is always compiled
COMPILED_USES = 8  # uses of a unit in K from which it is always compiled
CHUNK = 12  # ways of cutting K that are tried around each unit before the next unit's turn
PATIENCE = 3.0  # seconds of NumPy's that a longer unit may cost before it is compiled, which takes about as long
#: architectures, in the order in which their units are tried and named, before all others
LIKELY = ("ieee", "hopper", "ampere", "turing", "blackwell", "ada-lovelace", "volta", "cdna3", "cdna2", "cdna1")
WIDER = {"f16": "f32", "bf16": "f32", "f32": "f64"}


class Candidates:
    """Candidate units and stages for products with the formats of `asked`, and whether a plan reproduces results."""

    def __init__(self, asked: Signature) -> None:
        self.asked = asked
        self.compiled: set[Model] = set()  # longer units that are compiled as well
        #: formats in which, by the results, sums of runs may be stored before they are added
        self.stored: list[Format] = []
        self._spent: dict[Model, float] = {}  # seconds of NumPy's on units that are not compiled

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
        """The units of the table with the arithmetic of a model."""
        return iter(_by_arithmetic().get(_arithmetic(model), ()))

    def twins(self, plan: Plan) -> Iterator[Plan]:
        """A plan of one unit with each other unit of the table, and each unit of one product, that fits in its
        place."""
        if len(plan.models) == 1:
            own = plan.models[0]
            taken = own.a, own.b
            others = (with_unit_in(plan, own, one) for one in dict.fromkeys((*self.units(taken), *self.steps(taken))))
            yield from (one for one in others if one is not None and one != plan)

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
        """How libraries add K = `length` products with a unit, the likeliest ways first: the chain of the unit, the
        accumulator promoted, K split, sums that take products in turn, lanes and halves of single products."""
        unit = model.length
        yield Chain(model)
        if self.in_any_order(model, length):
            return
        ones = [Chain(step) for step in self.steps((model.a, model.b)) if unit > 1 and step.d == model.d == step.c]
        if length > unit and length % unit:  # at a smaller K a tail is all
            yield from (Chain(model, tail) for tail in ones)
            yield from (Chain(model, Chain(short, tail)) for short in self.shorter(model) for tail in (None, *ones))
        yield from (self._in_known_format(one, model) for one in usual(model, length, partial(self.kept, model)))

    def in_any_order(self, model: Model, length: int) -> bool:
        """Whether the sum of `length` products is the same in every order: integers that stay within the format of the
        unit's results."""
        largest = [max(map(abs, fmt.interval)) for fmt in (model.a, model.b)]
        starts = self.asked.addend and self.asked.c.is_integer
        return model.d.is_integer and not starts and length * largest[0] * largest[1] <= model.d.most

    def kept(self, model: Model, keeping: Keeping = "stored") -> Sequence[PartRoundings]:
        """How the sums of parts by a unit may be kept: stored in a narrower format, and added in the unit's format, or
        in that narrower format."""
        if keeping == "as it is":
            return [None]
        formats = dict.fromkeys((*((self.asked.d,) if keeping == "stored" else ()), *self.stored))
        narrower = [Rounding(fmt) for fmt in formats if fmt != model.d and model.c.holds(fmt)]
        return [*((own, Rounding(model.c)) for own in narrower), *((own, own) for own in narrower)]

    def _in_known_format(self, stage: Stage, model: Model) -> Stage:
        """The stage, rounded to the format of the unit's sums if the stage's sum has neither a format of the unit nor
        that of the results."""
        return stage if stage.d in (model.c, model.d, self.asked.d) else in_format(stage, Rounding(model.c))

    def of_fewer_bits(self, models: Iterable[Model], forms: Iterable[Form]) -> Iterator[Stage]:
        """Sums of units in a format of fewer bits than the units and the results have, if some form has this format: a
        unit's result is rounded to it at every step, or at the end; or the results of a unit from +0 are added, with
        one rounding."""
        if self.asked.of_integers:  # many of their sums have few bits
            return
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
        parts of candidates; `wider`: only the candidates whose last products go to narrower vectors, or whose parts are
        joined otherwise than in most libraries, or added in a wider format. These often have the same results as
        other candidates."""
        products = pruned(tree, frozenset(leaf for leaf in leaves_of(tree) if leaf != "c"))
        assert products is not None
        stages = dict.fromkeys(product.stage for plan in known for product in plan.sums)
        for model in self.steps(taken):
            yield from self._read(products, stages, model, wider)

    def _read(self, products: Node | Leaf, known: Iterable[Stage], model: Model, wider: bool) -> Iterator[Stage]:
        how = Rounding(model.d)
        if wider:
            yield from epilogues_of(products, model, how)
            yield from self._with_kept(stages_of(products, model, how, wider=True), model)
            if model.d.name not in WIDER:
                return
        bodies = [stage for stage in known if stage.d == model.d and parts_of(stage, Runs, Promote) is None]
        steps = Steps(ranked(products))
        found = chain(lanes_of(products, model, how), blocks_of(products, model, how), turns_of(products, model),
                      cut_alike(products, known, model, how), stages_of(products, model, how, bodies),
                      likely(model, size_of(products)))  # fmt: skip
        stages = [stage for stage in dict.fromkeys(found) if steps.may_be_of(stage)]
        if wider:
            wide = Rounding(FORMATS[WIDER[model.d.name]])
            parted = (stage for stage in stages if isinstance(stage, Parted) and stage.tail is None)
            runs = (stage for stage in parted if isinstance(stage.partition, Runs | Equal))
            yield from (one for stage in runs if (one := kept_as(stage, (None, wide))) is not None)
            return
        yield from self._with_kept(stages, model)

    def _with_kept(self, stages: Sequence[Stage], model: Model) -> Iterator[Stage]:
        """Stages, then those that join parts with the sums of these parts kept in narrower formats."""
        yield from stages
        parted = [stage for stage in stages if isinstance(stage, Parted)]
        every = (kept_as(stage, kept) for kept in self.kept(model) for stage in parted)
        yield from (self._in_known_format(one, model) for one in every if one is not None)

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
        """The results of a stage for a sample, in each of the forms that take the stage's sums. The sums are computed
        once for all forms with the same conversion and start."""
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
            compiled = (x.length <= QUICK or x in self.compiled or sample.a.shape[2] >= COMPILED_USES * x.length
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
        """Add the seconds of a plan's evaluation by NumPy to its units; units that have cost more than PATIENCE are
        compiled."""
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
    """Stages that cut K as known stages do; each run is summed by the lanes of vectors that the last run has in a
    tree."""
    count = size_of(products)
    cuts = {replace(stage, body=Chain(model)): runs for stage in known if isinstance(stage, Parted)
            if (runs := parts_of(stage, Runs, Promote)) is not None and stage.d == model.d}  # fmt: skip
    for stage, runs in cuts.items():
        size = runs.size(count)
        last = pruned(products, frozenset(range((count - 1) // size * size, count)))
        if size < count and last is not None:
            yield from (replace(stage, body=body) for body in lanes_of(ranked(last), model, how))


def likely(model: Model, length: int) -> Iterator[Stage]:
    """How libraries add K = `length` products with a unit of one product, whatever the tree: a tree at one K may show
    fewer parts than a stage has at another."""
    yield from usual(model, length, lambda _: [None])
    if tile := tile_of(model, length):
        for size in range(tile, length // 2 + 1, tile):
            yield from in_equal_parts(size, Chain(model), Rounding(model.c), length, tile)


@cache
def _table() -> tuple[Model, ...]:
    """The units and instructions that can take K in tiles, the likeliest first."""
    every = (parse_reference(reference) for reference in dict.fromkeys((*units(), *INSTRUCTIONS)))
    return tuple(sorted((x for x in every if x.scale is None and x.c.holds(x.d)), key=likelihood))


@cache
def _by_arithmetic() -> Mapping[object, Sequence[Model]]:
    """The units of the table by their arithmetic."""
    found: dict[object, list[Model]] = {}
    for model in _table():
        found.setdefault(_arithmetic(model), []).append(model)
    return found


def _arithmetic(model: Model) -> tuple[object, ...]:
    return model.a, model.b, model.d, model.unit.result


def likelihood(model: Model) -> int:
    """The rank of a unit's architecture by how likely its libraries are: 0 is the likeliest."""
    architecture = model.reference.partition("/")[0]
    return LIKELY.index(architecture) if architecture in LIKELY else len(LIKELY)


def with_unit(stage: Stage, model: Model, other: Model) -> Stage:
    """The same stage with the unit `other` in the place of the unit `model`."""
    return stage.changed(lambda use: replace(use, model=other) if use.model == model else use)


def with_unit_in(plan: Plan, model: Model, other: Model) -> Plan | None:
    """The same plan with the unit `other` in the place of the unit `model`; None if `other` does not fit."""
    with suppress(ParameterError):
        return with_sums(plan, lambda products: Products(with_unit(products.stage, model, other), products.start))
    return None


def outline(plan: Plan) -> tuple[bool, int, int, str]:
    """The place of a plan among plans that give the same results: plans that do not round sums of integers come first;
    then the plan with the shortest text, without the names of units; then the plan with the likeliest unit."""
    text = plan.reference
    for model in plan.models:
        text = text.replace(model.reference, model.c.name)
    return rounds_integers(plan), len(text), min(map(likelihood, plan.models)), plan.reference


def rounds_integers(plan: Plan) -> bool:
    """Whether a unit of a plan rounds sums of integers to numbers of another format."""
    return any(model.a.is_integer and not model.d.is_integer for model in plan.models)
