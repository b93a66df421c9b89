"""Machines for frameworks: which plan stands for a product of two formats, how that is known, and the product."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mmaprobe.arrays import rounding_of
from mmaprobe.documents.identify import Layout
from mmaprobe.named import Model, WantedError, gives_plan, model_of, plan_of, whole_product_of
from mmaprobe.products import Plans, Units
from mmaprobe.queries.plans.mapping import YAML, read_map
from mmaprobe.queries.plans.planmap import PlanMap, numbers_in
from mmaprobe.queries.plans.rules import Shape
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.base.errors import IncompleteError, InputError, MmaprobeError, ParameterError, UnknownNameError
from mmaprobe.smtmodel.evaluate.numbers import from_numbers, to_numbers, type_of
from mmaprobe.smtmodel.nodes import Constant, Round
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain, Plan, Products, Stage
from mmaprobe.smtmodel.plans.gemm import simulate_each
from mmaprobe.smtmodel.plans.named import promoted
from mmaprobe.smtmodel.tables.gpus import GPUS, architecture_of, gpu_named
from mmaprobe.smtmodel.tables.reference import parse_reference

#: how a rule's plan is known: recorded on this GPU or by this map, inferred from cuBLAS's plan on Hopper, or given
Known = Literal["recorded", "inferred", "given"]
Patterns = NDArray[Any]
#: computes D of each block (each matrix of a batch) by a plan, from A, B, C and scale factors, as `simulate_each` does
Multiply = Callable[[Plan, Any, Any, Any, Any], Patterns]

ANY = ("*", "*")  # key of the rule for all other formats, whose numbers the rule rounds
FP8 = ("e4m3", "e5m2", "e4m3fnuz", "e5m2fnuz")
_NEAR = ("H100", "H200")  # GPUs whose cuBLAS was recorded, see docs/cublas-plans.md
_CUBLAS = "cuBLAS 13.1 on an H200"
_ASKED = ("aten.mm", "aten.addmm", "aten._scaled_mm")  # operators of PyTorch whose products were recorded
#: by format: what recordings on Hopper say of the plan
_RECORDED = {
    "f16": f"one chain rounded once: {_CUBLAS}, 273 of 436 shapes",
    "bf16": f"one chain rounded once: {_CUBLAS}, all 216 shapes that nvjet kernels compute without a split of K",
    "f32": f"one chain of fused multiply-adds: {_CUBLAS}, most of 436 shapes",
    "f64": f"one chain of fused multiply-adds: {_CUBLAS}, most of 436 shapes",
    "fast": f"{_CUBLAS}, 320 of 353 shapes",
    "promoted": f"{_CUBLAS}, 353 of 353 shapes",
}
PROMOTED = 128  # FP8 products from +0 before their sum is added in f32: CUTLASS, fp8_accumulation.hpp


class UnsupportedProductError(MmaprobeError):
    """A product that a machine has no rule for, or an operator that is not known."""


@dataclass(frozen=True)
class Rule:
    """How products of some formats are computed: by one plan, or by the plans of a map. `known`, `evidence`: how the
    plan is known; `recorded_for`: the operators of frameworks for which it was recorded, for others it is inferred.
    `convert`: the rounding of elements to the plan's input formats, where these hold fewer numbers."""

    how: Plan | PlanMap = field(repr=False)
    known: Known
    evidence: str
    convert: str | None = None
    recorded_for: tuple[str, ...] = ()
    _own: dict[Shape, NDArray[np.int64]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def known_for(self, operator: str, shape: tuple[int, ...], layout: Layout = "nn") -> tuple[Known, str]:
        """How the plan of a product (blocks, M, N, K) of an operator is known, and the evidence. Batches, matrices in
        another memory layout than a map's, and vectors on a GPU run other kernels than the recorded ones."""
        blocks, m, n, _ = shape
        own = self.how.layout if isinstance(self.how, PlanMap) else None
        others = {
            f"by {', '.join(self.recorded_for)}": operator not in self.recorded_for,
            "of single matrices": blocks > 1,
            "of matrices": own is None and min(m, n) == 1,
            f"of layout {own}, not {layout}": own not in (None, layout),
        }
        if self.known != "recorded" or not any(others.values()):
            return self.known, self.evidence
        which = ", ".join(text for text, holds in others.items() if holds)
        return "inferred", f"inferred from products {which}: {self.evidence}"

    @property
    def plan(self) -> Plan:
        """The plan; of a map one of its plans, which have the same formats."""
        return self.how.plan if isinstance(self.how, PlanMap) else self.how

    @cached_property
    def before_rounding(self) -> Rule:
        """The rule for the sum to which c is added: its plans lack their rounding at the end, where this is their last
        step."""
        if isinstance(self.how, Plan):
            return replace(self, how=_before_rounding(self.how))
        rules = tuple(replace(rule, plan=_before_rounding(rule.plan)) for rule in self.how.rules)
        return replace(self, how=replace(self.how, rules=rules)) if len({rule.plan.d for rule in rules}) == 1 else self

    @property
    def name(self) -> str:
        """The name of the plan, or of the map."""
        return self.how.reference or "a plan"

    def product(
        self, a: Any, b: Any, c: Patterns | None = None, scales: Mapping[str, Patterns] | None = None,
        by: Multiply | None = None,
    ) -> Patterns:  # fmt: skip
        """D of each block (blocks x M x N) of patterns A (blocks x M x K), B (blocks x K x N), C (blocks x M x N) and
        scale factors; `by`: the function that multiplies, by default on the processor. Raises IncompleteError where a
        map has no rule."""
        multiply = by or _by_processor
        if isinstance(self.how, Plan):
            return multiply(self.how, a, b, c, scales)
        shape = Shape(a.shape[1], b.shape[2], a.shape[2])
        own = self._numbers(self.how, shape)
        first, *others = numbers_in(own)
        results = multiply(self.how.rules[first].plan, a, b, c, scales)
        for number in others:
            results[:, own == number] = multiply(self.how.rules[number].plan, a, b, c, scales)[:, own == number]
        return results

    def plans_of(self, shape: Shape) -> tuple[str, ...]:
        """The names of the plans that compute a product of a shape."""
        if isinstance(self.how, Plan):
            return (self.name,)
        return tuple(self.how.rules[number].plan.reference for number in numbers_in(self._numbers(self.how, shape)))

    def knows(self, shape: Shape) -> bool:
        """Whether there is a plan for each element of a product of a shape."""
        try:
            self.plans_of(shape)
        except IncompleteError:
            return False
        return True

    def _numbers(self, rules: PlanMap, shape: Shape) -> NDArray[np.int64]:
        """For each element of a product, the number of the map's rule that computes the element; kept, as models ask
        for the same shapes again and again."""
        if shape not in self._own:
            self._own[shape] = rules.plans_of(shape)
        return self._own[shape]


def _by_processor(plan: Plan, a: Patterns, b: Patterns, c: Patterns | None, scales: Any) -> Patterns:
    return simulate_each(a, b, c, plan, scales)


def _before_rounding(plan: Plan) -> Plan:
    last = plan.result
    if isinstance(last, Round) and isinstance(last.operands[0], Products):
        return replace(plan, result=last.operands[0])
    return plan


@dataclass(frozen=True)
class Machine:
    """A machine's rules by the formats of a and b. `fast`: for FP8 with fast accumulation; `with_c`: of maps that read
    c; `batched`: for several matrices at once; `laid`: of maps for transposed matrices, by formats, layout and whether
    the map reads c. Where a rule's plan reads no c, c is added to the sum, as libraries do."""

    name: str
    rules: Mapping[tuple[str, str], Rule]
    fast: Mapping[tuple[str, str], Rule] = field(default_factory=dict)
    with_c: Mapping[tuple[str, str], Rule] = field(default_factory=dict)
    architecture: str | None = None
    batched: Mapping[tuple[str, str], Rule] = field(default_factory=dict)
    laid: Mapping[tuple[str, str, Layout, bool], Rule] = field(default_factory=dict)

    def rule_of(
        self, asked: ProductRequest, shape: tuple[int, int, int, int] = (1, 1, 1, 1), *, addend: bool = False
    ) -> Rule:
        """The rule for one product of a shape (blocks, M, N, K); the rule of a map for another layout where no map for
        the product's own layout has the shape. Raises UnsupportedProductError."""
        blocks = shape[0]
        if asked.scale is not None:
            return self._scaled_rule(asked.a, asked.b, *asked.scale)
        if blocks == 1 or not self.batched:
            pair = asked.a, asked.b
            addends = (addend,) if addend and pair in self.with_c else (addend, False)
            for one in addends:
                own = self.laid.get((*pair, asked.layout, one))
                if own is not None and (pair not in self.rules or own.knows(Shape(*shape[1:]))):
                    return own
        return self.rule(asked.a, asked.b, addend=addend, fast=asked.fast, blocks=blocks)

    def _scaled_rule(self, a: str, b: str, scale: str, block: int) -> Rule:
        """The rule for products of two formats with a scale factor for each `block` products."""
        own = self.rules.get((a, b))
        if (
            own is not None
            and own.plan.scale is not None
            and (own.plan.scale.name, own.plan.scale_block) == (scale, block)
        ):
            return own
        found = None if self.architecture is None else _scaled_rule(self.architecture, a, b, scale, block)
        if found is None:
            raise UnsupportedProductError(
                f"{self.name} has no unit for {a} * {b} with {scale} for {block} products each"
            )
        return found

    def rule(self, a: str, b: str, *, addend: bool = False, fast: bool = False, blocks: int = 1) -> Rule:
        """The rule for products of two formats; for several matrices at once if `blocks` is above 1. Raises
        UnsupportedProductError."""
        if blocks > 1 and (a, b) in self.batched:
            return self.batched[a, b]
        if addend and (a, b) in self.with_c:
            return self.with_c[a, b]
        own = (self.fast.get((a, b)) if fast else None) or self.rules.get((a, b)) or self.rules.get(ANY)
        if own is None:
            known = ", ".join(sorted({f"{one} * {other}" for one, other in self.rules})) or "none"
            raise UnsupportedProductError(f"{self.name} has no rule for products of {a} * {b}; it has {known}")
        return own


def machine_of(
    machine: Any = None, *, unit: Units | None = None, plan: Plans | None = None, convert: str | None = None,
    batched: Any = None, **formats: Units | Plans,
) -> Machine:  # fmt: skip
    """The machine that arguments name: a GPU, a map of `identify --gemm --json`, rules by hand, or several of these, a
    unit or a plan; `formats`: by format, a unit or a plan in place of the machine's own. Raises MmaprobeError."""
    if sum(one is not None for one in (machine, unit, plan)) != 1:
        raise ParameterError("machine, unit, plan", "give one of the three")
    if convert is not None and unit is None and plan is None and not formats:
        raise ParameterError("convert", "it rounds the inputs of a unit or a plan, and none is given")
    convert = rounding_of(convert)
    if isinstance(machine, Machine):
        made = machine
    elif machine is not None:
        made = _named(machine)
    else:
        how = Plan.chained(model_of("unit", unit)) if unit is not None else plan_of("plan", plan)
        rule = _given(how, convert)
        made = Machine(how.reference, {(how.a.name, how.b.name): rule} | ({ANY: rule} if convert else {}))
    if batched is not None:
        made = replace(made, batched=_batched(batched))
    if not formats:
        return made
    rules = dict(made.rules)
    for name, reference in formats.items():
        if name not in FORMATS:
            raise UnknownNameError("format", name, FORMATS)
        rules[name, name] = _given(whole_product_of(name, reference), convert)
    changed = ", ".join(f"{name}={rules[name, name].name}" for name in formats)
    return replace(made, name=f"{made.name} ({changed})", rules=rules)


def _batched(given: Any) -> Mapping[tuple[str, str], Rule]:
    """The rules for products of several matrices at once: of a map, of rules by hand or of a plan."""
    if gives_plan(given):
        rule = _given(plan_of("batched", given), None)
        return {(rule.plan.a.name, rule.plan.b.name): rule}
    return _named(given).rules


def _given(how: Plan, convert: str | None) -> Rule:
    return Rule(how, "given", how.evidence or how.source or "as given", convert)


def _named(machine: Any) -> Machine:
    if not isinstance(machine, (str, os.PathLike)):
        if isinstance(machine, (list, tuple)) and machine:
            return _of_maps([os.fspath(one) for one in machine])
        raise WantedError("machine", machine, "the name of a GPU, the path of a map, or a list of these paths")
    name = os.fspath(machine)
    if name.endswith((".json", YAML)):
        return _of_maps([name])
    known = gpu_named(name)
    if known is None:
        gpus = [gpu for row in GPUS.values() for gpu in row]
        raise UnknownNameError(
            "GPU",
            name,
            gpus,
            hint=" (a map's name ends in .json, that of rules by hand in .yaml; units and plans: unit=, plan=)",
        )
    arch = architecture_of(name)
    assert arch is not None
    return _of_gpu(known[0], arch)


def _of_maps(paths: Sequence[str]) -> Machine:
    found: dict[tuple[str, str, Layout, bool], Rule] = {}
    for path in paths:
        plan_map = read_map(Path(path))
        plan, layout = (plan_map.plan, plan_map.layout) if isinstance(plan_map, PlanMap) else (plan_map, "nn")
        key = plan.a.name, plan.b.name, layout, plan.addend
        if key in found:
            found[key] = _with_map(found[key], plan_map, path)
        elif path.endswith(YAML):
            found[key] = Rule(plan_map, "given", f"rules by hand: {Path(path).name}")
        else:
            asked = ("aten.addmm",) if plan.addend else ("aten.mm", "dot_general")
            source = f"identify --gemm: {Path(path).name}"
            found[key] = Rule(plan_map, "recorded", source, None, asked)
    rules, with_c = ({key[:2]: rule for key, rule in sorted(found.items(), key=lambda one: one[0][2] == "nn")
                      if key[3] == addend} for addend in (False, True))  # fmt: skip
    laid = {key: rule for key, rule in found.items() if key[2] != "nn"}
    return Machine(", ".join(Path(path).name for path in paths), with_c | rules, {}, with_c, laid=laid)


def _with_map(first: Rule, second: Plan | PlanMap, path: str) -> Rule:
    """The rule with a further map, for shapes without a rule in the maps before. Raises InputError unless both are maps
    that `identify --gemm` found, with results in one format."""
    own, pair = first.how, f"{first.plan.a.name} * {first.plan.b.name}"
    given = path.endswith(YAML) or first.known == "given"
    if not isinstance(own, PlanMap) or not isinstance(second, PlanMap) or given:
        raise InputError(
            f"a second map for products of {pair}: only maps of `identify --gemm` can complete each other", path
        )
    if second.plan.d != first.plan.d:
        raise InputError(f"a second map for products of {pair}, with results in {second.plan.d.name}", path)
    both = replace(own, reference=f"{own.reference}, {second.reference}", rules=own.rules + second.rules)
    return replace(first, how=both, evidence=f"{first.evidence}, {Path(path).name}")


@lru_cache(maxsize=64)
def _of_gpu(gpu: str, arch: str) -> Machine:
    rules: dict[tuple[str, str], Rule] = {}
    fast: dict[tuple[str, str], Rule] = {}
    for (a, b), (reference, evidence) in _best_units(arch).items():
        model = parse_reference(reference)
        chain = _from_zero(Chain(model), model, reference)
        if a not in FP8:
            rules[a, b] = _rule(chain, gpu, _RECORDED.get(a, ""), evidence)
        elif arch != "hopper":
            rules[a, b] = fast[a, b] = _rule(chain, gpu, "", evidence)
        else:
            fast[a, b] = _rule(chain, gpu, _RECORDED["fast"] if (a, b) == ("e4m3", "e4m3") else "", evidence)
            stage = promoted(PROMOTED, Chain(model), Rounding(model.c))
            slow = _from_zero(stage, model, f"promote({PROMOTED}, {reference}, r)")
            rules[a, b] = _rule(slow, gpu, _RECORDED["promoted"] if (a, b) == ("e4m3", "e4m3") else "", evidence)
    if not rules:
        raise UnsupportedProductError(f"{gpu} ({arch}): no unit is known")
    if ("f32", "f32") not in rules:
        model = parse_reference("ieee/fma/f32")
        rules["f32", "f32"] = _rule(
            _from_zero(Chain(model), model, model.reference), gpu, _RECORDED["f32"], "by definition"
        )
    return Machine(gpu, rules, fast, architecture=arch)


@lru_cache(maxsize=256)
def _scaled_rule(arch: str, a: str, b: str, scale: str, block: int) -> Rule | None:
    """One chain from +0 of an architecture's unit that takes scale factors, the unit with the longest K; None without
    such a unit."""
    from mmaprobe.smtmodel.tables.catalogue import catalogue

    found = [
        row
        for row in catalogue()
        if str(row["id"]).startswith(f"{arch}/")
        and f".block{block}." in str(row["id"])
        and str(row["id"]).endswith(f".{scale}")
        and (row["formats"]["a"], row["formats"]["b"], row["formats"]["d"]) == (a, b, "f32")
    ]
    if not found:
        return None
    best = max(found, key=lambda row: int(row["shape"][2]))
    model = parse_reference(str(best["id"]))
    plan = _from_zero(Chain(model), model, model.reference)
    return Rule(plan, "inferred", f"plan inferred from cuBLAS on Hopper; unit: {best['evidence']}")


def _from_zero(stage: Stage, model: Model, name: str) -> Plan:
    """The plan that adds all products by a stage from +0."""
    return Plan(model.a, model.b, model.c, Products(stage, Constant()), reference=f"sum({name}, +0)")


def _rule(plan: Plan, gpu: str, recorded: str, unit: str) -> Rule:
    if recorded and gpu in _NEAR:
        return Rule(plan, "recorded", f"plan recorded: {recorded}; unit: {unit}", None, _ASKED)
    return Rule(plan, "inferred", f"plan inferred from cuBLAS on Hopper; unit: {unit}")


def _best_units(arch: str) -> dict[tuple[str, str], tuple[str, str]]:
    """By formats of a and b: the unit with f32 sums (f64 sums for f64) that takes the most products, and how it is
    known. Asynchronous instructions go before others; among units of one K the first is taken."""
    from mmaprobe.smtmodel.tables.catalogue import catalogue
    from mmaprobe.smtmodel.tables.sparse import UNITS

    best: dict[tuple[str, str], tuple[tuple[int, int], str, str]] = {}
    for row in catalogue():
        reference, formats = str(row["id"]), row["formats"]
        own, unit, _ = reference.split("/", 2)
        pair, wide = (formats["a"], formats["b"]), "f64" if formats["a"] == "f64" else "f32"
        plain = formats["d"] in (wide, "e8m13") and formats["c"] in (wide, "f32") and not row["emulated"]
        if own != arch or not plain or "scale" in reference or unit == "dot2" or unit in UNITS:
            continue
        rank = (int(unit in ("wgmma", "tcgen05mma")), int(row["shape"][2]))
        if pair not in best or rank > best[pair][0]:
            best[pair] = (rank, reference, str(row["evidence"]))
    return {pair: (reference, evidence) for pair, (_, reference, evidence) in best.items()}


# -- products of numbers


@dataclass(frozen=True)
class ProductRequest:
    """One product as a framework asks for it: the formats of a, b and the result; `alpha` times the sum plus `beta`
    times c; whether FP8 may be accumulated fast; `scale`: the format of scale factors, and the number of products for
    each factor; `layout`: how a and b lie in memory."""

    a: str
    b: str
    d: str
    alpha: float = 1.0
    beta: float = 1.0
    fast: bool = False
    scale: tuple[str, int] | None = None
    layout: Layout = "nn"


class Memory:
    """The memory and the library in which sums become D: the processor's memory, and NumPy."""

    library: Any = np

    def zeros(self, shape: tuple[int, ...], fmt: Format) -> Any:
        """Zeros, in the type of a format."""
        return np.zeros(shape, type_of(fmt))

    def numbers(self, patterns: Any, fmt: Format) -> Any:
        """The numbers that patterns encode."""
        return to_numbers(patterns, fmt)

    def rounded(self, given: Any, fmt: Format) -> Any:
        """Numbers in the type of a format, rounded to nearest even."""
        with np.errstate(all="ignore"):
            return given.astype(type_of(fmt), copy=False)

    def host(self, given: Any) -> NDArray[Any]:
        """Numbers as an array of NumPy."""
        return np.asarray(given)


PROCESSOR = Memory()


def product_of(
    machine: Machine, asked: ProductRequest, a: Any, b: Any, c: Any, scales: Mapping[str, Patterns] | None = None,
    by: Multiply | None = None, memory: Memory = PROCESSOR,
) -> tuple[Any, str]:  # fmt: skip
    """D as numbers (blocks x M x N, in the type of asked.d), and in words what was done with the sum. `a`: patterns
    (blocks x M x K), `b`: patterns (blocks x K x N); `c`: numbers that broadcast to D, or None; `scales`: patterns of
    `scale_a` (blocks x M x factors) and `scale_b` (blocks x factors x N); `by`: as of `Rule.product`; `memory`: where c
    and D are."""
    rule = machine.rule_of(asked, (*a.shape[:2], b.shape[2], a.shape[2]), addend=c is not None)
    plan = rule.plan
    steps = [] if asked.scale is None else ["{} for {} products each".format(*asked.scale)]
    x, y = (_taken(side, name, fmt, rule.convert) for side, name, fmt in
            ((a, asked.a, plan.a), (b, asked.b, plan.b)))  # fmt: skip
    shape = (a.shape[0], a.shape[1], b.shape[2])
    own = None if c is None or not plan.addend or asked.alpha != 1 or asked.beta != 1 else _held(memory.host(c), plan.c)
    if 0 in shape or a.shape[2] == 0:
        sums = memory.zeros(shape, plan.d)
    elif own is not None:
        sums, c = memory.numbers(rule.product(x, y, np.broadcast_to(own, shape), None, by), plan.d), None
        steps.append("c: added by the plan")
    else:
        rule = rule if c is None and asked.alpha == 1 else rule.before_rounding
        sums = memory.numbers(rule.product(x, y, None, scales, by), rule.plan.d)
    if c is not None or asked.alpha != 1:
        wide = FORMATS["f64" if "f64" in (plan.d.name, asked.d) else "f32"]
        addend = None if c is None else memory.rounded(c, wide)
        sums = scaled(memory.rounded(sums, wide), addend, asked.alpha, asked.beta, memory)
        steps.append(f"alpha, beta and c: added to the sum in {wide.name}")
    found = memory.rounded(sums, FORMATS[asked.d])
    if found.dtype != sums.dtype:
        steps.append(f"rounded once to {asked.d}")
    return found, "; ".join(steps)


def _taken(side: Patterns, name: str, fmt: Format, convert: str | None) -> Patterns:
    """Patterns in a plan's input format: rounded where the rule says so."""
    own = FORMATS[name]
    if own.name == fmt.name:
        return side
    return from_numbers(to_numbers(np.ascontiguousarray(side), own), fmt, convert)  # type: ignore[arg-type]


def _held(c: NDArray[Any], fmt: Format) -> Patterns | None:
    """The patterns of c in a format; None where the format does not hold all numbers of c."""
    try:
        return from_numbers(c, fmt)
    except ParameterError:
        return None


def scaled(sums: Any, c: Any, alpha: float, beta: float, memory: Memory = PROCESSOR) -> Any:
    """alpha * sums + beta * c as libraries do it: beta * c rounded, then one fused multiply-add (CUTLASS,
    linear_combination.h); each number in the type of `sums`, f32 or f64."""
    wide = "f64" if sums.dtype.itemsize == 8 else "f32"
    first, second = (float(type_of(FORMATS[wide]).type(factor)) for factor in (alpha, beta))
    with np.errstate(all="ignore"):
        if c is None or beta == 0:
            return sums * first
        addend = c if second == 1 else c * second
        if first == 1:
            return sums + addend
        if wide == "f64":
            return _fused(sums, first, addend, memory)
        exact = memory.rounded(sums, FORMATS["f64"]) * first  # 48 bits at most
        return memory.rounded(_odd_sum(exact, memory.rounded(addend, FORMATS["f64"]), memory.library), FORMATS["f32"])


def _fused(sums: Any, factor: float, addend: Any, memory: Memory) -> Any:
    """factor * sums + addend in f64, rounded once: each number of `sums` as a product with K = 1."""
    s, c = np.broadcast_arrays(memory.host(sums), memory.host(addend))
    x, y, z = (np.ascontiguousarray(side, np.float64).view(np.uint64) for side in
               (s.reshape(1, -1, 1), np.full((1, 1, 1), factor), c.reshape(1, -1, 1)))  # fmt: skip
    found = simulate_each(x, y, z, Plan.chained(parse_reference("ieee/fma/f64")))
    return memory.numbers(found.reshape(s.shape), FORMATS["f64"])


def _odd_sum(x: Any, y: Any, library: Any) -> Any:
    """x + y in f64 rounded to odd, so that a second rounding, to 24 bits, gives the exact sum rounded once."""
    s = x + y
    part = s - x
    lost = (x - (s - part)) + (y - part)
    even = (s.view(library.int64) & 1) == 0
    towards = library.copysign(library.full_like(s, library.inf), lost)
    return library.where(library.isfinite(s) & (lost != 0) & even, library.nextafter(s, towards), s)
