"""Error bounds: never below the truth on all inputs of small formats, for every unit; and no false one is proved."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

import mmaprobe
from mmaprobe.cli.main import main
from mmaprobe.queries.kernel import lemmas
from mmaprobe.queries.kernel.bounds import enclosures, forms, induction
from mmaprobe.queries.kernel.bounds import parts as of_parts
from mmaprobe.queries.kernel.bounds.enclosures import cut_loses, weakened
from mmaprobe.queries.kernel.bounds.forms import EXACT, Factor, Form, number
from mmaprobe.queries.kernel.bounds.induction import Step, carried, chained
from mmaprobe.queries.kernel.bounds.parts import part_lemmas
from mmaprobe.queries.kernel.datapath import rounding_losses
from mmaprobe.queries.kernel.datapath.rounding_losses import RoundingLoses
from mmaprobe.queries.kernel.lemmas import AlignmentLoses
from mmaprobe.queries.kernel.theorem import RULES, Made, RuleError, Theorem
from mmaprobe.queries.properties.bound import _Composer, bound_of, chain_of, error_of, parts_of
from mmaprobe.queries.properties.bound_report import find_bound
from mmaprobe.queries.properties.bound_samples import ErrorOfModel, Near, Search, covered
from mmaprobe.queries.properties.wraps import wrapped_input
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.samples import sample_rows
from mmaprobe.queries.solvers.asking import Engines
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.smtmodel.arithmetic.display import exact_value, finite_value
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.base.errors import FaultError, ParameterError
from mmaprobe.smtmodel.carriers.algebra import constant
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands, layout_of
from mmaprobe.smtmodel.inputs.admitted import ExponentRange, Inputs
from mmaprobe.smtmodel.nodes import (
    Constant,
    Cut,
    Element,
    ExactSum,
    FusedSum,
    GridSum,
    Index,
    Product,
    Repeat,
    Round,
    Scale,
    Segment,
    exact,
    known,
)
from mmaprobe.smtmodel.nodes.node import Node, walk
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unit_files import units
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.node_units import random_unit, vectors
from tests.oracles.node_oracle import evaluate
from tests.said import assumed, says
from tests.said import believed as _believed
from tests.second.tree import Tree
from tests.second.written import written

pytestmark = pytest.mark.solvers

HOPPER = "hopper/mma/m16n8k16.f32.f16.f16.f32"
ARITHMETICS = list({m.unit: ref for ref in INSTRUCTIONS for m in (parse_reference(ref),)}.values())
#: formats of four bits for factors, of five for addends and results, with infinities or without
SMALL = """unit: small
own_formats:
  p: {{exponent: 2, fraction: 1, specials: none}}
  q: {{exponent: 3, fraction: 1, bias: 2, specials: none}}
  wide: {{exponent: 4, fraction: 6, specials: none}}
formats: {{a: p, b: p, c: q, d: {result}}}
length: 2
{inputs}
roundings:
  r: round(q, {rounding})
  w: round(wide, toward_zero)
  h: round(binary6p1se, nearest_away)
  low: round(e2m1b0_none, toward_zero)
steps:
  d: {d}
"""
SUMS: dict[str, Any] = {
    "a product of a rounded sum": lambda v: v["a1"] * (v["a0"] * v["b0"] + v["c"]) + v["b1"],
    "one product and c": lambda v: v["a0"] * v["b0"] + v["c"],
    "a product": lambda v: v["a0"] * v["b0"],
    "rectified": lambda v: np.maximum(v["a0"] * v["b0"] + v["a1"] * v["b1"] + v["c"], 0),
    "rectified number": lambda v: np.maximum(v["a0"] * v["b0"] + v["a1"] * v["b1"], 0) + v["c"],
    "a product truncated": lambda v: v["a0"] * v["b0"],
    "a number": lambda v: 1.5 * v["a0"] * v["b0"],
    "segments": lambda v: v["a0"] * v["b0"] + np.where(v["a1"] % 1.5 == 0, v["a1"] / 3, 0) * v["b1"] + v["c"],
}
BOTH = "a[0] * b[0], a[1] * b[1]"
PARTS = "h(a[{0}]) * b[{0}], low(exact(a[{0}], product(h(a[{0}]), number(0xbc00, f16)))) * b[{0}]"
CHAIN = "repeat(k in range(2), c, r({}))"
#: the sum, the rounding, how inputs are read
UNITS = {
    "truncated": (f"r(fused({BOTH}, c, F=1))", "toward_zero", ""),
    "holds all": (f"r(fused({BOTH}, c, F=2))", "toward_zero", ""),
    "nearest": (f"r(fused({BOTH}, c, F=1, rounding=nearest_even))", "nearest_even", ""),
    "down": (f"r(fused({BOTH}, c, F=0, rounding=down))", "down", ""),
    "up": (f"r(fused({BOTH}, c, F=1, rounding=up))", "up", ""),
    "sticky": (f"r(fused({BOTH}, c, F=1, sticky=true))", "to_odd", ""),
    "just room": (f"r(fused({BOTH}, c, F=1, carry=2, rounding=up))", "toward_zero", ""),
    "floor": (f"r(fused({BOTH}, c, F=2, zeros=1))", "toward_zero", ""),
    "least": (f"r(fused({BOTH}, c, F=2, least=2))", "nearest_away", ""),
    "reach": (f"r(fused({BOTH}, c, F=3, reach=[none, none, 1]))", "nearest_even", ""),
    "two places": (f"r(fused({BOTH}, c, F=[1, 1, 3], floors=[none, 1, none]))", "toward_zero", ""),
    "inner sum": (f"r(fused(fused({BOTH}, F=1), c, F=2, rounding=down))", "nearest_even", ""),
    "exact": (f"r(exact({BOTH}, c))", "nearest_even", ""),
    "exact in a sum": (f"r(fused(exact({BOTH}), c, F=1))", "toward_zero", ""),
    "flush after": (f"r(exact({BOTH}, c))", "nearest_even, subnormals=flush_after", ""),
    "flush before": (f"r(exact({BOTH}, c))", "down, subnormals=flush_before", "inputs: {subnormals: zero}"),
    "rectified": (f"r(relu(exact({BOTH}, c)))", "nearest_even", ""),
    "rectified number": (f"r(fused(relu(w(exact({BOTH})), zero=keep), c, F=1))", "toward_zero", ""),
    "cut": (f"r(cut(exact({BOTH}, c), 3, down))", "nearest_even", ""),
    "cut with a least exponent": (f"r(cut(fused({BOTH}, c, F=5), 2, up, least=0))", "toward_zero", ""),
    "normalised": ("r(fused(product(a[0], b[0], normalised=true), a[1] * b[1], c, F=1))", "toward_zero", ""),
    "rounded products": ("r(exact(c, r(exact(r(a[0] * b[0]), r(a[1] * b[1])))))", "nearest_even", ""),
    "a product of a rounded sum": ("r(fused(a[1] * r(exact(a[0] * b[0], c)), b[1], F=2))", "toward_zero", ""),
    "one product and c": ("w(fused(a[0] * b[0], c, F=0))", "toward_zero", ""),
    "a product truncated": ("w(fused(a[0] * b[0], F=1))", "toward_zero", ""),
    "a product": ("r(a[0] * b[0])", "nearest_even", ""),
    "gated": ("r(fused(gate(a[0:2] * b[0:2], -0), c, F=1))", "toward_zero", ""),
    "cancelling": (f"r(fused(cancelling(fused({BOTH}, F=1)), c, F=1))", "toward_zero", ""),
    "cancelling cut": (f"r(fused(cancelling(cut(exact({BOTH}), 2, down, least=-1)), c, F=1))", "nearest_even", ""),
    "a number": ("r(product(number(0x3e00, f16), r(a[0] * b[0])))", "down", ""),
    "segments": ("r(fused(segment(a[0], 0, 2) * b[0], "
                 "product(segment(a[1], 1, 3, leading=true), b[1], normalised=true), c, F=1))", "down", ""),
    "parts": (f"r(exact({PARTS.format(0)}, a[1] * b[1], c))", "down", ""),
    "parts in a loop": (f"repeat(k in range(2), c, r(fused(acc, {PARTS.format('k')}, F=5)))", "nearest_even", ""),
    "chain": (CHAIN.format("fused(acc, a[k] * b[k], F=1)"), "toward_zero", ""),
    "chain of sums": (CHAIN.format("exact(acc, a[k] * b[k])"), "nearest_even", ""),
    "chain that flushes": (CHAIN.format("exact(acc, a[k] * b[k])"), "down, subnormals=flush_after", ""),
}  # fmt: skip


believed = cache(_believed)  # one theorem for each lemma


def nearest_of(model: Model, chain: Theorem, count: int) -> Search:
    return ErrorOfModel(model, error_of(chain), count).nearest_chain(error_of(bound_of(model.unit, believed)))


def measured(model: Model, error: Form, table: NDArray[np.uint64]) -> list[Near]:
    return ErrorOfModel(model, error).measured(table)


def small(d: str, rounding: str, inputs: str = "") -> Model:
    text = SMALL.format(d=d, rounding=rounding, inputs=inputs, result="wide" if d.startswith("w(") else "q")
    return Model("small", parse_unit(text, "small.yaml"))


Lanes = NDArray[np.float64]


def every_row(model: Model) -> NDArray[np.uint64]:
    """All inputs, but of the factors b of which only the positive ones: the signs of a are enough."""
    half = 1 << (model.b.width - 1)
    sizes = [1 << model.a.width] * 2 + [half] * 2 + [1 << model.c.width]
    return np.stack([axis.ravel() for axis in np.meshgrid(*map(np.arange, sizes), indexing="ij")], 1).astype(np.uint64)


def numbers_of(fmt: Format) -> Lanes:
    found = [exact_value(pattern, fmt) for pattern in range(1 << fmt.width)]
    return np.array([0.0 if isinstance(value, str) else float(value) for value in found])


def worst(model: Model, error: Form) -> tuple[float, float]:
    """The largest error less the bound, and the largest ratio of the two, of all inputs: exact, in 53 bits."""
    table = every_row(model)
    results, admitted = covered(model, table)
    table, results = table[admitted], results[admitted]
    flushed = any(isinstance(node, Element) and node.subnormals != "keep" for node in walk(model.unit.result))
    values = {name: numbers_of(fmt)[table[:, k]] for k, (name, fmt) in
              enumerate(zip(layout_of(model).names, layout_of(model).formats, strict=True))}  # fmt: skip
    read = {name: np.where(np.abs(value) < 2.0 ** layout_of(model).formats[k].emin, 0, value) if flushed else value
            for k, (name, value) in enumerate(values.items())}  # fmt: skip
    exact = SUMS.get(model.reference, lambda v: v["a0"] * v["b0"] + v["a1"] * v["b1"] + v["c"])(read)
    formats = dict(zip(layout_of(model).names, layout_of(model).formats, strict=True))

    def magnitude(factor: Factor) -> Lanes:
        if factor.name == EXACT:
            return np.abs(exact)
        name = factor.name if factor.name == "c" else f"{factor.name}{factor.offset}"
        own = np.abs(values[name])
        return np.where(own > 0, np.maximum(own, 2.0 ** formats[name].emin), 0) if factor.raised else own

    bound = np.zeros(len(table))
    for atom, value in error.parts.items():
        assert Fraction(float(value)) == value
        items = [np.prod([magnitude(factor) for factor in item], axis=0) for item in atom]
        bound = bound + float(value) * np.max(np.broadcast_arrays(*items), axis=0) if len(items) > 1 else (
            bound + float(value) * items[0])  # fmt: skip
    errors = np.abs(numbers_of(model.d)[results] - exact)
    return float((errors - bound).max()), float((errors / np.where(bound > 0, bound, 1)).max())


@pytest.mark.parametrize("name", UNITS)
def test_no_input_of_small_formats_is_beyond_the_bound(name: str) -> None:
    model = small(*UNITS[name])
    model = Model(name, model.unit)
    beyond, ratio = worst(model, error_of(bound_of(model.unit, believed)))
    assert beyond <= 0
    assert ratio > 0.1, "the bound is far from every input"


@pytest.mark.parametrize("top", [-2, -1, 1, 2])
@pytest.mark.parametrize("step", ["exact(product(a[0], number(0xb, e2m1)), b[0], c)",
                                  "exact(segment(a[0], 1, 2) * segment(b[0], 1, 2), segment(c, 1, 2))"])  # fmt: skip
def test_the_number_for_a_window_is_above_every_error_in_it(step: str, top: int) -> None:
    """Terms that cancel where all inputs are largest, and a largest number, 4, whose last bit is clear."""
    text = SMALL.format(d=f"r({step})", rounding="down", inputs="", result="q").replace("length: 2", "length: 1")
    text = text.replace("own_formats:", "own_formats:\n  f: {exponent: 2, fraction: 1, specials: all_ones}")
    model = Model("small", parse_unit(text.replace("a: p, b: p, c: q", "a: f, b: f, c: f"), "small.yaml"))
    found, fmt = find_bound(model, Inputs(exponents=ExponentRange(min=-9, max=top)), None, believed), model.a
    below = [pattern for pattern in range(16) if abs(finite_value(pattern, fmt) or 0) < 2.0 ** (top + 1)]
    rows = np.stack([side.ravel() for side in np.meshgrid(*[np.array(below, dtype=np.uint64)] * 3)], axis=1)
    errors = [near.error for near in measured(model, error_of(found.theorem), rows)]
    assert max(errors) <= found.number
    assert max(errors) or top < 0


@pytest.mark.parametrize("reference", [HOPPER, "ieee/fma/f16", "cdna2/mfma/f32_32x32x4bf16", "arm/neon/bfdot"])
def test_an_input_comes_near_the_bound(reference: str) -> None:
    model = parse_reference(reference)
    best = ErrorOfModel(model, error_of(bound_of(model.unit, believed))).nearest().best
    assert best is not None
    assert best.ratio > Fraction(9, 10)


def test_every_unit_has_a_bound_and_no_sample_is_beyond_it() -> None:
    """But those whose integer sums wrap: their errors have no bound in magnitudes of inputs."""
    for place, reference in enumerate([*units(), *ARITHMETICS]):
        model = parse_reference(reference)
        if model.d.name in ("int32", "uint32") and any(isinstance(node, FusedSum) for node in walk(model.unit.result)):
            with pytest.raises(RuleError, match="may wrap"):
                bound_of(model.unit, believed)
            continue
        error = error_of(bound_of(model.unit, believed))
        if place < len(units()) or place % 12 == 0:  # benchmarks/bounds.py evaluates them all
            assert measured(model, error, sample_rows(layout_of(model), 20, place)), reference


def test_exact_is_the_sum_of_the_products_and_the_addend() -> None:
    for reference in (HOPPER, "ampere/mma/m16n8k16.f32.f16.f16.f32", "cdna3/mfma/f32_16x16x32_fp8_fp8"):
        model = parse_reference(reference)
        layout, k = layout_of(model), model.length
        for near in measured(model, error_of(bound_of(model.unit, believed)), sample_rows(layout, 30, 5)):
            x = [Fraction(0) if v == "-0" else Fraction(v) for v in
                 (exact_value(p, fmt) for p, fmt in zip(near.row, layout.formats, strict=True))]  # fmt: skip
            assert near.exact == x[2 * k] + sum(p * q for p, q in zip(x[:k], x[k : 2 * k], strict=True))


def test_random_expressions_keep_their_bounds() -> None:
    proved = 0
    for seed in range(40):
        unit = random_unit(random.Random(seed))
        model = Model(f"random {seed}", unit)
        try:
            error = error_of(bound_of(unit, believed))
        except RuleError:
            continue
        a, b, c, *scales = vectors(unit, 40, np.random.default_rng(seed))
        measured(model, error, np.concatenate([a, b, c[:, None], *scales], axis=1))
        proved += 1
    assert proved >= 34


# -- chains


def test_a_chain_of_instructions_is_a_loop_over_their_products() -> None:
    """Of FMAs: the same bound for four instructions of one product and for one of four."""
    for name in ("ieee/fma/f32", "ieee/fma/f16"):
        one, four = parse_reference(name), parse_reference(f"{name}@length=4")
        looped = error_of(bound_of(four.unit, believed)).merged()
        assert error_of(carried(chain_of(one.unit, believed), 4)).covers(looped)
        assert looped.covers(error_of(carried(chain_of(one.unit, believed), 4)))


@pytest.mark.parametrize("name", ["truncated", "nearest", "flush after", "cut", "rounded products"])
def test_no_chain_is_beyond_its_bound(name: str) -> None:
    model = small(*UNITS[name])
    chain = chain_of(model.unit, believed)
    for count in (1, 3):
        assert nearest_of(model, carried(chain, count), count).tried > 5


def test_chains_in_which_a_sum_saturates_are_left_out() -> None:
    model = parse_reference("hopper/mma/m16n8k8.f16.f16.f16.f16@overflow=saturate")
    assert nearest_of(model, carried(chain_of(model.unit, believed), 4), 4).tried > 5


def test_a_chain_comes_near_its_bound() -> None:
    model = parse_reference(HOPPER)
    found = nearest_of(model, carried(chain_of(model.unit, believed), 8), 8)
    assert found.best is not None
    assert found.best.ratio > Fraction(7, 10)


def test_the_closed_form_is_what_the_steps_do() -> None:
    step = Step(1, Fraction(5, 4), Fraction(1, 8), number(3), number(2))
    error, size = number(1), number(7)
    for n in range(1, 6):
        assert step.run(range(n), number(1), number(7)) == (error * Fraction(5, 4) + size * Fraction(1, 8) + number(3),
                                                            size + number(2))  # fmt: skip
        error, size = error * Fraction(5, 4) + size * Fraction(1, 8) + number(3), size + number(2)


@pytest.mark.parametrize("reference", [HOPPER, "x86/amx/tdpbf16ps", "cdna3/mfma/f32_16x16x32_fp8_fp8"])
def test_the_formula_for_any_number_of_instructions_covers_each(reference: str) -> None:
    chain = chain_of(parse_reference(reference).unit, believed)
    goal = induction.closed(chain).goal
    assert isinstance(goal, induction.Closed)
    (least,) = {value for atom, value in goal.products.parts.items()}
    for n in (1, 2, 3, 9):
        whole = sum(goal.growth**k for k in range(n))
        proved = error_of(carried(chain, n))
        for atom, value in proved.parts.items():
            kind_ = {factor.name for item in atom for factor in item}
            limit = goal.fixed if not kind_ else goal.part if kind_ == {"c"} else least
            assert value <= limit * whole * (1 + Fraction(1, 1 << 50))


def test_a_closed_form_needs_an_error_that_does_not_shrink() -> None:
    shrinking = replace(chain_of(UNIT, believed).goal.step, growth=Fraction(1, 2))  # type: ignore[attr-defined]
    broken = chain_of(UNIT, believed)
    object.__setattr__(broken, "goal", replace(broken.goal, step=shrinking))  # type: ignore[type-var]
    refused("closed", broken)
    refused("closed", bound_of(UNIT, believed))


# -- false bounds


def test_no_smaller_coefficient_and_no_missing_term_is_proved() -> None:
    for parts in UNITS.values():
        theorem = bound_of(small(*parts).unit, believed)
        proved = error_of(theorem)
        assert error_of(weakened(theorem, proved)) == proved
        assert error_of(weakened(theorem, proved.merged() * 2)) == proved.merged() * 2
        for atom, value in proved.parts.items():
            others = {own: x for own, x in proved.parts.items() if own != atom}
            for false in (Form(others), Form(others | {atom: value * Fraction(1023, 1024)})):
                with pytest.raises(RuleError):
                    weakened(theorem, false)


#: by the unit that shows it: what is broken, and how
SABOTAGE: list[tuple[str, Any, str, Any]] = [
    ("exact", enclosures, "LOSSES", {mode: (x / 2, y / 2) for mode, (x, y) in enclosures.LOSSES.items()}),
    ("one product and c", enclosures._Aligned, "whole", property(lambda self: True)),
    ("least", enclosures._Aligned, "safe", lambda self, m: True),
    ("flush after", exact, "grid_of", lambda every: 1),
    ("exact in a sum", enclosures, "largest", lambda every: next(iter(every))),
    ("holds all", enclosures, "largest", lambda every: list(every)[-1]),
    (
        "a product truncated",
        enclosures,
        "magnitude",
        lambda name, index=None, raised=False: forms.magnitude(name, index),
    ),
    ("exact", enclosures.Facts, "value", property(lambda self: self.size * Fraction(1, 2))),
    ("a product", known, "total", lambda one, two: 0),
    ("one product and c", enclosures, "larger", lambda every: forms.NOUGHT),
    ("parts", of_parts, "after_rounding", lambda y, how: y),
    ("parts", of_parts.Parted, "of", lambda self, node, places: {}),
    ("chain of sums", Step, "run", lambda self, places, error, size: (self.own.at(self.level, 0), size)),
    ("chain of sums", induction, "round_up", lambda value: value / 8),
    ("rounded products", enclosures, "total", lambda every: next(iter(every))),
]


@pytest.mark.parametrize("sabotage", SABOTAGE, ids=lambda one: f"{one[2]} in {one[0]}")
def test_a_broken_rule_is_caught_by_all_inputs(sabotage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    name, where, what, broken = sabotage
    model = Model(name, small(*UNITS[name]).unit)
    monkeypatch.setattr(where, what, broken)
    assert worst(model, error_of(bound_of(model.unit, believed)))[0] > 0


def test_a_sum_without_room_has_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two products of at most 1.5^2 and an addend of at most 1.5, in halves rounded up: 6.5."""
    model = small(UNITS["just room"][0].replace("carry=2", "carry=1"), "toward_zero")
    with pytest.raises(RuleError, match="may wrap"):
        bound_of(model.unit, believed)
    monkeypatch.setattr(FusedSum, "never_wraps", lambda *given: True)
    assert worst(model, error_of(bound_of(model.unit, believed)))[0] > 0


def test_a_sum_that_may_reach_the_first_power_beyond_its_bits_has_no_bound() -> None:
    """Two numbers of at most 1.75, in halves rounded up to 2: their sum 4 needs a bit more than 3.5 does."""
    text = """unit: two numbers
formats: {a: e3m2, b: e3m2, c: none, d: f32}
length: 1
roundings: {r: "round(f32, toward_zero)"}
steps:
  d: r(fused(a[0], b[0], F=1, carry=1, rounding=up))
"""
    unit = parse_unit(text, "small.yaml")
    number = FORMATS["e3m2"].one | 3
    assert evaluate_row(Model("two numbers", unit), Operands((number,), (number,), 0)) == 0xC0800000  # -4
    with pytest.raises(RuleError, match="may wrap"):
        bound_of(unit, believed)


def test_a_product_of_rounded_numbers_errs_by_both_errors_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two numbers just above 1, rounded up to 1.5: 1.25 off, nearly, of which the product of the errors is 0.25."""
    text = """unit: two numbers
formats: {a: e3m5_none, b: e3m5_none, c: e2m1, d: f32}
length: 1
roundings: {r: "round(f32, toward_zero)", u: "round(e6m1_none, up)"}
steps:
  d: r(u(a[0]) * u(b[0]))
"""
    model = Model("two numbers", parse_unit(text, "small.yaml"))
    above = np.array([[0x61, 0x61, 0]], dtype=np.uint64)
    (near,) = measured(model, error_of(bound_of(model.unit, believed)), above)
    assert near.error == Fraction(9, 4) - Fraction(33, 32) ** 2
    shown = enclosures._multiplied

    def less(facts: Any) -> Any:
        one, two = facts
        error = one.size * two.error + two.size * one.error
        return replace(shown(facts), low=error, high=error)

    monkeypatch.setattr(enclosures, "_multiplied", less)
    with pytest.raises(FaultError, match="contradicts"):
        measured(model, error_of(bound_of(model.unit, believed)), above)


# -- rules: what each of them checks


def test_only_a_rule_makes_a_theorem() -> None:
    theorem = bound_of(small(*UNITS["exact"]).unit, believed)
    with pytest.raises(RuleError):
        Theorem(Made(theorem.goal), "rounded", object(), {})
    with pytest.raises(AttributeError):
        theorem.rule = "another"  # type: ignore[misc]
    assert {one.rule for one in theorem.walk()} <= set(RULES)
    assert all(rule.__doc__ for rule in RULES.values())


UNIT = parse_unit(
    SMALL.format(d=f"r(cut(fused({BOTH}, c, F=2), 4))", rounding="nearest_even", inputs="", result="q"), "u"
)
OTHER = replace(UNIT, names={})
A, C = (node for node in walk(UNIT.result) if isinstance(node, Element) and node.operand in "ac" and (
    node.index is None or node.index.offset == 0))  # fmt: skip


def of(node: Node, places: Any = ()) -> Theorem:
    return _Composer(UNIT, believed).of(node, places)


def kind(wanted: type[Node], unit: Unit = UNIT) -> Any:
    return next(node for node in walk(unit.result) if isinstance(node, wanted))


def loop(text: str) -> Any:
    unit = small(text, "nearest_even").unit
    return unit, kind(Repeat, unit)


Q = frozenset({UNIT.d})
SUM, PRODUCT, CUT = kind(FusedSum), kind(Product), kind(Cut)
TERMS = [of(item) for item in SUM.items]
FACTORS = [of(PRODUCT.left), of(PRODUCT.right)]
ALIGNED = [believed(goal) for goal in enclosures.alignments(SUM, (), TERMS)]
ROUNDED = believed(RoundingLoses(UNIT.d, UNIT.rounding.mode))


def refused(rule: str, *args: Any) -> None:
    """For another reason than an argument too few or a lemma that stays open."""
    with pytest.raises(RuleError) as error:
        RULES[rule](*args)
    assert type(error.value) is RuleError
    assert "required argument" not in str(error.value)


def refused_sum(node: FusedSum, premises: list[Theorem]) -> None:
    refused("fused", node, (), premises, [believed(goal) for goal in enclosures.alignments(node, (), premises)])


def test_rules_refuse_premises_about_something_else() -> None:
    goal = enclosures.Enclosed
    assert isinstance(of(SUM).goal, goal)
    refused("element", UNIT, A, ((1, 0),))
    refused("element", UNIT, Element("scale_a", Index(0)), ())
    refused("constant", UNIT, A)
    refused("product", PRODUCT, (), FACTORS[::-1])
    refused("product", PRODUCT, (), FACTORS[:1])
    refused("product", PRODUCT, (), [A, A])
    refused("product", PRODUCT, ((1, 0),), FACTORS)
    refused("product", PRODUCT, (), [FACTORS[0], RULES["element"](OTHER, PRODUCT.right, ())])
    refused("fused", SUM, (), TERMS[:-1], ALIGNED)
    refused("exact", ExactSum(SUM.items), (), TERMS[1:])
    refused("scale", Scale(A, A, A), (), [of(A), of(A), of(C)])
    refused("cut", CUT, (), [TERMS[0]], [believed(cut_loses(CUT.bits, CUT.mode))])
    cut = next(one for one in bound_of(small(*UNITS["cut"]).unit, believed).walk() if one.rule == "cut")
    assert isinstance(cut.goal.node, Cut)
    for other in (cut_loses(cut.goal.node.bits + 1, cut.goal.node.mode), cut_loses(cut.goal.node.bits, "up")):
        refused("cut", cut.goal.node, (), cut.premises[:1], [believed(other)])
    assert cut.premises[1].goal == cut_loses(cut.goal.node.bits, cut.goal.node.mode)
    refused("rounded", UNIT.result, (), [TERMS[0]], [ROUNDED])
    refused("whole", TERMS[0])
    refused("weakened", UNIT, number(1))


def error_in(node: FusedSum, first: Theorem) -> Fraction:
    """The constant of the error of a sum of an exact sum and c, in units of its weight."""
    lemmas = [believed(goal) for goal in enclosures.alignments(node, (), [first, of(C)])]
    goal = RULES["fused"](node, (), [first, of(C)], lemmas).goal
    assert isinstance(goal, enclosures.Enclosed)
    return sum((factor for _, factor in goal.facts.high.parts.items()), Fraction(0))


def test_rules_refuse_what_they_know_nothing_of() -> None:
    a_sum = ExactSum((A, C))
    exact = RULES["exact"](a_sum, (), [of(A), of(C)])
    refused_sum(FusedSum((A, C), 1, carry_bits=0), [of(A), of(C)])  # may wrap
    refused_sum(FusedSum((a_sum, C), 1, carry_bits=2), [exact, of(C)])  # a sum of two numbers, with the exponent 0
    assert error_in(FusedSum((a_sum, C), 1, reach=(3, None)), exact) > error_in(FusedSum((a_sum, C), 1), exact)
    refused("grid", GridSum((A, C), (1, 2)), (), [of(C), of(A)])
    cut_sum = Cut(a_sum, 4)
    kept = RULES["cut"](cut_sum, (), [exact], [believed(cut_loses(4, cut_sum.mode))])
    refused("grid", GridSum((cut_sum, C), (1, 2)), (), [kept, of(C)])
    refused_sum(FusedSum((cut_sum, C), 1), [kept, of(C)])
    refused("unchanged", cut_sum, (), [exact])
    refused("segment", Round(C, UNIT.rounding), (), [of(C)])
    without_zero = Round(a_sum, Rounding(replace(UNIT.d, subnormals=False)))
    refused("rounded", without_zero, (), [exact], [ROUNDED])


@pytest.mark.parametrize("name", ["parts", "parts in a loop"])
def test_parts_of_an_input_lack_nothing_together(name: str) -> None:
    unit = small(*UNITS[name]).unit
    together, apart = (
        error_of(found) for found in (bound_of(unit, believed), _Composer(unit, believed).of(unit.result, ()))
    )
    assert together.value(lambda factor: Fraction(1)) < apart.value(lambda factor: Fraction(1)) * 3 / 4


def test_parts_are_refused_where_they_are_none_or_are_taken_as_roundings_too(monkeypatch: pytest.MonkeyPatch) -> None:
    unit = small(*UNITS["parts"]).unit
    node, plain = unit.result.operands[0], _Composer(unit, believed)
    keeping = _Composer(unit, believed, parts=parts_of(unit))
    keeping.joined = unit.result  # so that the sum is not rejoined
    terms = [keeping.of(term, ()) for term in node.items]
    total = RULES["exact"](node, (), terms)
    low = max(parts_of(unit), key=lambda one: len(list(walk(one))))
    proved = list(map(believed, part_lemmas(low)))
    refused("part", unit, node, (), proved)
    refused("part", unit, UNIT.result, (), proved)  # of a sum that is not exact
    refused("part", unit, low, ((1, 0),), proved)
    refused("part", unit, low, (), [believed(RoundingLoses(unit.d, "down"))])
    refused("part", Unit, low, (), proved)
    refused("whole", total)
    refused("rejoined", plain.of(node, ()))
    refused("rejoined", UNIT)
    assert RULES["rejoined"](total).goal.facts.error.parts  # type: ignore[attr-defined]
    mixed = node, (), [plain.of(node.items[0], ()), *terms[1:]]
    with pytest.raises(RuleError, match="a rounding that is kept is also taken as one that is not"):
        RULES["exact"](*mixed)
    with monkeypatch.context() as patched:
        patched.setattr(enclosures, "assumed_together",
                        lambda name, goals: frozenset().union(*(goal.assuming for goal in goals)))  # fmt: skip
        both = RULES["exact"](*mixed)
    for premise, refusal in ((both, "taken as one that is not"), (total, "")):
        found = written(unit, [RULES["rejoined"](premise)])
        faults = [fault for _, fault in Tree(found | {"states": [len(found["theorems"]) - 1]}).check()]
        assert bool(refusal) == any(refusal and refusal in fault for fault in faults), faults
    monkeypatch.setattr(of_parts.Parted, "size", lambda self, polynomial, counts=None: number(0))
    found = written(unit, [RULES["rejoined"](total)])
    faults = [fault for _, fault in Tree(found).check()]
    assert "rejoined: the conclusion does not follow: low, high, size" in faults, faults


def test_the_checker_refuses_parts_that_are_none_and_what_else_is_assumed() -> None:
    unit = small(*UNITS["parts in a loop"]).unit
    theorem = bound_of(unit, believed)
    document = written(unit, [theorem])
    at = {one["rule"]: number for number, one in enumerate(document["theorems"])}
    fused_ = next(number for number, node in enumerate(document["nodes"]) if node["kind"] == "fused")
    over = next(number for number, node in enumerate(document["nodes"]) if node.get("term") == fused_)

    def faults(number: int, **changes: Any) -> set[str]:
        found = json.loads(json.dumps(document))
        found["theorems"][number]["goal"] |= changes
        return {fault for _, fault in Tree(found).check()}

    goal = document["theorems"][at["part"]]["goal"]
    assert "part: a rounding of what is not exact" in faults(at["part"], node=over)
    assert "part: it keeps other roundings" in faults(at["part"], assuming=[{"node": over}])
    (premise,) = document["theorems"][at["rejoined"]]["premises"]
    below = document["theorems"][premise]["goal"]
    more = [*below["assuming"], {"level": 1, "formats": []}]
    assert below["assuming"] == goal["assuming"]
    assert "rejoined: what is kept, and of c, is all that is assumed" in faults(premise, assuming=more)
    more = [*below["assuming"], {"level": -1, "formats": []}]
    assert "rejoined: it is about another, or assumes something else" in faults(premise, assuming=more)
    document["theorems"].append({"rule": "whole", "premises": [premise], "goal": below})
    assert "whole: the premise assumes something of it" in faults(premise)


@pytest.mark.parametrize("name", ["parts", "parts in a loop"])
def test_a_chain_of_instructions_follows_the_parts_of_its_inputs(name: str) -> None:
    unit = small(*UNITS[name]).unit
    chain = chain_of(unit, believed)
    assert "rejoined" in {one.rule for one in chain.walk()}
    apart = chained(_Composer(unit, believed, chain=True).of(unit.result, ()))
    together, others = (carried(one, 2).goal.error for one in (chain, apart))  # type: ignore[attr-defined]
    assert together.value(lambda factor: Fraction(1)) < others.value(lambda factor: Fraction(1)) * 3 / 4
    assert not list(Tree(written(unit, [carried(chain, 3)])).check())


def test_a_part_of_the_addend_is_no_part_in_a_chain() -> None:
    """Of a previous result the parts are not exact: it has an error of its own."""
    unit = small(f"r(exact({BOTH}, c, low(exact(c, product(h(c), number(0xbc00, f16))))))", "nearest_even").unit
    assert len(parts_of(unit)) == 2
    with pytest.raises(RuleError, match="enters the step more than once"):
        chain_of(unit, believed)
    with pytest.raises(RuleError, match="the addend is taken both"):
        _Composer(unit, believed, chain=True, parts=parts_of(unit)).of(unit.result, ())


def test_a_loop_within_a_loop_adds_its_products_every_time() -> None:
    inner = f"repeat(k in range(2), i.acc, r(fused(acc, {PARTS.format('k')}, F=5)))"
    unit = small(f"repeat(i in range(3), c, {inner})", "nearest_even").unit
    found = of_parts.Parted(unit, frozenset()).of(unit.result, ())
    assert sorted(found.values()) == [1, 3, 3]  # c, and each product three times


def test_a_segment_of_an_addend_that_has_an_error_is_refused() -> None:
    """Which bits are read of it is not what is known of it."""
    unit = small("r(exact(a[0] * b[0], segment(c, 0, 2)))", "toward_zero").unit
    (node,) = (node for node in walk(unit.result) if isinstance(node, Segment))
    own, so_far = RULES["element"](unit, node.term, ()), RULES["assumed"](unit, node.term, frozenset({unit.c}))
    refused("segment", node, (), [so_far])
    for premise, refusal in ((own, []), (so_far, ["segment: of a number that is not exact"])):
        found = written(unit, [premise])
        goal = found["theorems"][0]["goal"]
        goal = goal | {"node": found["nodes"].index(next(x for x in found["nodes"] if x["kind"] == "segment"))}
        goal["facts"] = goal["facts"] | {"formats": None}
        found["theorems"].append({"rule": "segment", "premises": [0], "goal": goal})
        faults = Tree(found | {"states": [1]}).check()
        assert refusal == [fault for _, fault in faults if fault.startswith("segment")]


def test_what_is_assumed_of_a_result_so_far_holds_at_the_start_and_after_a_step() -> None:
    refused("assumed", UNIT, A, Q)
    refused("assumed", UNIT, C, frozenset({UNIT.a}))
    unit, node = loop("repeat(k in range(2), c, r(exact(acc, a[k] * b[k])))")
    start = RULES["element"](unit, node.start, ())

    def body(formats: frozenset[Format]) -> Theorem:
        composer = _Composer(unit, believed)
        composer.formats[node.level] = formats
        return composer.of(node.body, ())

    fine = body(frozenset({unit.c, unit.d}))
    assert RULES["repeated"](node, (), start, fine)
    refused("repeated", node, (), start, body(frozenset({unit.a})))  # of formats that the start is not of
    refused("repeated", node, (), fine, start)
    refused("repeated", node, (), RULES["element"](small(*UNITS["exact"]).unit, node.start, ()), fine)
    refused("repeated", node, ((1, 0),), start, fine)
    sums = [node for node in walk(node.body) if isinstance(node, ExactSum)]
    acc, product = sums[0].items
    twice = replace(sums[0], items=(acc, acc, product))
    last = _Composer(unit, believed).of(product, ())
    zero, other = (RULES["assumed"](unit, acc, formats) for formats in (frozenset[Format](), frozenset({unit.c})))
    assert RULES["exact"](twice, (), [other, other, last])
    assert RULES["exact"](twice, (), [zero, zero, last])
    with pytest.raises(RuleError, match="in one premise, not in another"):
        RULES["exact"](twice, (), [zero, other, last])
    for text in ("exact(acc, acc, a[k] * b[k])", "exact(r(acc) * a[k], c)"):
        other, _looped = loop(f"repeat(k in range(2), c, r({text}))")
        with pytest.raises(RuleError):  # more than once, or multiplied
            bound_of(other, believed)


def test_a_step_of_an_induction_is_of_any_place_and_gives_what_is_assumed() -> None:
    unit, node = loop("repeat(k in range(2), c, r(exact(acc, a[k] * b[k])))")
    start, composer = RULES["element"](unit, node.start, ()), _Composer(unit, believed)
    composer.formats[node.level] = frozenset({unit.c, unit.d})
    goal: Any = composer.of(node.body, ()).goal
    step = assumed(replace(goal, places=((node.level, 0),)))
    with pytest.raises(RuleError, match="for every place of the loop"):
        RULES["repeated"](node, (), start, step)
    with pytest.raises(RuleError, match="assumes something else"):
        induction.step_of(goal, enclosures.Assumption(node.level, frozenset({unit.a})))
    wider, other = loop("r(exact(repeat(k in range(2), c, w(exact(acc, a[k] * b[k]))), c))")
    composer = _Composer(wider, believed)
    composer.formats[other.level] = frozenset({wider.c})
    with pytest.raises(RuleError, match="not a number of the formats assumed"):
        RULES["repeated"](other, (), RULES["element"](wider, other.start, ()), composer.of(other.body, ()))


def test_a_normalised_product_is_of_numbers_and_a_premise_is_a_theorem() -> None:
    product = replace(PRODUCT, normalised=True)
    assert RULES["product"](product, (), FACTORS)
    goal: Any = RULES["element"](UNIT, PRODUCT.right, ()).goal
    larger = replace(goal.facts.known, formats=None, head=Fraction(3))  # a factor that may be large beside its exponent
    forged = assumed(replace(goal, facts=replace(goal.facts, known=larger)))
    found: Any = RULES["product"](product, (), [FACTORS[0], forged]).goal
    assert (found.facts.known.head, found.facts.known.digits) == (None, None)
    assert RULES["product"](PRODUCT, (), [FACTORS[0], forged])  # which unnormalised need not be one
    changed = assumed(goal)
    object.__setattr__(changed, "goal", forged.goal)
    with pytest.raises(RuleError, match="premise of another kind"):
        RULES["product"](PRODUCT, (), [FACTORS[0], changed])


P3109 = """unit: e3
formats: {a: binary8p4se, b: binary8p4se, c: binary8p4se, d: binary8p4se}
length: 8
roundings: {h: round(f16), r: round(binary8p4se)}
steps: {d: "r(repeat(i in range(8), +0, h(exact(acc, a[i] * b[i]))))"}
"""


def test_the_first_sum_of_a_chain_from_zero_is_exact() -> None:
    """IEEE P3109's example of an error bound (interim report 4.0, annex E.3): seven sums in binary16, not eight."""
    unit = parse_unit(P3109, "e3.yaml")
    form = error_of(bound_of(unit, believed)).merged()
    found = max(value for atom, value in form.parts.items() for item in atom if [x.name for x in item] == ["a", "b"])
    assert Fraction(93, 100 << 8) < found <= Fraction(94, 100 << 8)
    model, rng = Model("e3", unit), np.random.default_rng(5)
    rows = rng.integers(0x30, 0x50, (300, 17)).astype(np.uint64)
    rows[:, 16] = 0
    assert all(near.error <= near.bound for near in measured(model, form, rows))


def test_a_step_from_zero_is_of_a_loop_from_zero() -> None:
    unit, node = loop("r(repeat(k in range(2), +0, w(exact(acc, a[k] * b[k]))))")
    formats, start = frozenset({node.body.rounding.format}), RULES["constant"](unit, node.start)

    def body(own: frozenset[Format], text: Node = node.body) -> Theorem:
        composer = _Composer(unit, believed)
        composer.formats[node.level] = own
        return composer.of(text, ())

    general, zero = body(formats), body(frozenset())
    plain: Any = RULES["repeated"](node, (), start, general).goal
    restated: Any = RULES["repeated"](node, (), start, general, zero).goal
    assert plain.facts.error.merged().covers(restated.facts.error.merged())
    assert restated.facts.error.merged() != plain.facts.error.merged()
    assert not restated.assuming
    refused("repeated", node, (), start, general, general)  # of any result so far
    refused("repeated", node, (), start, zero, zero)  # the others are not zero
    refused("repeated", node, (), start, general, body(frozenset(), node.body.operands[0]))  # another node
    begun, other = loop("repeat(k in range(2), c, r(exact(acc, a[k] * b[k])))")
    composer = _Composer(begun, believed)
    composer.formats[other.level] = frozenset({begun.c})
    step = composer.of(other.body, ())
    assert RULES["repeated"](other, (), RULES["element"](begun, other.start, ()), step)
    composer = _Composer(begun, believed)
    composer.formats[other.level] = frozenset()
    refused("repeated", other, (), RULES["element"](begun, other.start, ()), step, composer.of(other.body, ()))


def test_a_chain_takes_the_result_as_an_addend() -> None:
    theorem = bound_of(UNIT, believed)
    refused("chained", theorem)  # of one addend, not of any
    refused("carried", theorem, 4)
    refused("carried", chain_of(UNIT, believed), 0)
    with pytest.raises(RuleError):
        chain_of(small(*UNITS["one product and c"]).unit, believed)  # its result is of another format
    assert isinstance(Made(theorem.goal).goal, enclosures.Enclosed)


# -- lemmas about the datapath

MODES = tuple(enclosures.LOSSES)
SMALL_LEMMAS = [
    *(AlignmentLoses(*sizes, mode) for mode in MODES for sizes in ((4, 2, 3), (4, 3, 1), (5, 3, 3), (3, 1, 0))),
    *(RoundingLoses(FORMATS[name], mode) for mode in MODES for name in ("e2m1", "e3m2", "e4m3", "e5m2")),
]


def test_lemmas_hold_on_all_inputs_of_small_sizes_and_engines_agree() -> None:
    for goal in SMALL_LEMMAS:
        assert RULES["exhausted"](goal).goal == goal
    for goal in SMALL_LEMMAS[::12]:
        assert "unsat" in RULES["settled"](goal, Engines("bitwuzla")).word


@pytest.mark.parametrize("what", ["align", "round_and_pack"])
def test_a_broken_datapath_has_no_lemma(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = lemmas if what == "align" else rounding_losses
    kept = getattr(module, what)
    monkeypatch.setattr(module, what, lambda *given: (lambda found: found & ~constant(found.carrier, 2, found.width))(
        kept(*given)))  # fmt: skip
    goals = [goal for goal in SMALL_LEMMAS if isinstance(goal, AlignmentLoses) == (what == "align")]
    for goal in goals[::5]:
        refused("exhausted", goal)
        with pytest.raises(FaultError, match="contradicts a rule: "):  # alignments are lemmas of monotonicity, too
            Settled(Options(solver="bitwuzla"), confirmed=False)._settled(goal)


def test_lemmas_that_are_false_or_not_decided_or_not_the_nodes_are_refused() -> None:
    wide = RoundingLoses(FORMATS["f32"], "nearest_even")
    refused("exhausted", wide)
    refused("settled", wide, says("unknown"))
    refused("settled", wide, says("sat"))
    other = RULES["exhausted"](RoundingLoses(FORMATS["e2m1"], "up"))
    refused("fused", SUM, (), TERMS, [other])
    refused("rounded", UNIT.result, (), [of(CUT)], [other])
    refused("rounded", UNIT.result, (), [of(CUT)], [of(CUT)])


def test_lemmas_are_those_of_the_nodes() -> None:
    settle = Settled(Options(solver="bitwuzla"), confirmed=False)
    unit = small(*UNITS["nearest"]).unit
    found = [one.goal for one in bound_of(unit, settle).walk() if isinstance(one.goal, (AlignmentLoses, RoundingLoses))]
    assert {goal.mode for goal in found} == {"nearest_even"}
    assert {(goal.width, goal.fraction, goal.bits) for goal in found if isinstance(goal, AlignmentLoses)} == {
        (4, 2, 1), (2, 1, 1)}  # fmt: skip


# -- the command


def bound(*args: str) -> Any:
    return CliRunner().invoke(
        main, ["prove", "--property", "error-bound", "--solver", "bitwuzla", "--no-confirm", *args]
    )


def test_the_command_prints_a_formula_and_numbers(tmp_path: Path) -> None:
    shown = bound(HOPPER, "--inputs", "exponents=-3..3", "--json")
    assert shown.exit_code == 0
    document = json.loads(shown.stdout)
    assert document["verdict"] == "holds"
    assert document["formula"] == "|d - exact| <= 2^-23 * |exact| + 1.0001*2^-21 * max(|a_k° b_k°| (k=0..15), |c°|)"
    assert document["window"]["max"] == 3
    assert 0.9 < document["nearest"]["ratio"] <= 1
    assert document["nearest"]["vector"]["model"] == HOPPER
    coefficients = [Fraction(term["coefficient"]) for term in document["terms"]]
    assert sorted(coefficients) == [Fraction(1, 1 << 23), Fraction(16, 1 << 25) * (1 + Fraction(1, 1 << 23))]
    assert "checked against" in shown.stderr
    path = tmp_path / "mine.yaml"
    path.write_text(SMALL.format(d=UNITS["chain"][0], rounding="nearest_even", inputs="", result="q"))
    assert bound(str(path), "--explain").exit_code == 0
    chained = json.loads(bound(str(path), "--length", "8", "--json").stdout)
    assert chained["length"] == 8
    assert "E becomes" in chained["chain"]["step"]
    vectors_ = chained["nearest"]["vectors"]
    assert [row["c"] for row in vectors_[1:]] == [row["d"] for row in vectors_[:-1]]


def test_what_cannot_be_bounded_is_unknown_and_bad_input_is_an_error(tmp_path: Path) -> None:
    product_ = "product(a[{0}], b[{0}], normalised=true)"  # at most 1.5, which no rule says
    step = f"r(fused({product_.format(0)}, {product_.format(1)}, F=1, carry=1, rounding=up))"
    path = tmp_path / "unit.yaml"
    path.write_text(SMALL.format(d=step, rounding="nearest_even", inputs="", result="q"))
    unknown = bound(str(path), "--json")
    assert unknown.exit_code == 3
    assert json.loads(unknown.stdout)["verdict"] == "unknown"
    assert "may wrap" in unknown.stderr
    for args in ([HOPPER, HOPPER], [HOPPER, "--length", "17"], [HOPPER, "--inputs", "normal"],
                 [HOPPER, "--compare", "value"], ["nowhere.yaml"]):  # fmt: skip
        assert bound(*args).exit_code == 2
    words = ["prove", "--property", "sign-symmetric", HOPPER, "--length", "16"]
    assert CliRunner().invoke(main, words).exit_code == 2


def test_where_a_sum_wraps_no_bound_holds() -> None:
    for more, steps in ((), 1), (("--length", "12"), 2):
        shown = bound("volta/mma/m8n8k4.f32.f16.f16.f32@carry_bits=1", "--json", *more)
        assert shown.exit_code == 1
        document = json.loads(shown.stdout)
        assert document["verdict"] == "refuted"
        near, exact, size, model = document["nearest"], Fraction(0), Fraction(0), parse_reference(document["model"])
        rows = near.get("vectors") or [near["vector"]]
        assert len(rows) == steps
        for at, row in enumerate(rows):
            a, b, (c, d) = ([int(x, 16) for x in side] for side in (row["a"], row["b"], (row["c"], row["d"])))
            assert evaluate(model.unit, a, b, c) == d
            values = [exact_value(x, model.a) * exact_value(y, model.b) for x, y in zip(a, b, strict=True)]
            values += [] if at else [exact_value(c, model.c)]
            exact, size = exact + sum(values), size + sum(map(abs, values))
        assert abs(exact_value(d, model.d) - exact) == Fraction(near["error"]) > size == Fraction(near["bound"])
    assert "d is -15.7971 where the exact result is 16.2029" in shown.stderr
    model = small(UNITS["just room"][0], "toward_zero")
    assert wrapped_input(model, 1) is None
    less = small(UNITS["just room"][0].replace("carry=2", "carry=1"), "toward_zero")
    assert wrapped_input(less, 1) is not None


def test_an_evaluation_beyond_the_bound_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    halved = {mode: (x / 2, y / 2) for mode, (x, y) in enclosures.LOSSES.items()}
    monkeypatch.setattr(enclosures, "LOSSES", halved)
    shown = bound(HOPPER)
    assert shown.exit_code == 4
    assert "contradicts it" in shown.stderr


@pytest.mark.parametrize(("rule", "node"), [
    ("fused", FusedSum((Constant(negative=True),), 3)), ("grid", GridSum((Constant(negative=True),), (3,))),
])  # fmt: skip
def test_a_sum_of_nothing_but_a_minus_zero_may_be_one(rule: str, node: Node) -> None:
    given: Any = [RULES["constant"](UNIT, Constant(negative=True))]
    theorem: Any = RULES[rule](node, (), given, *([[]] if rule == "fused" else []))
    assert theorem.goal.facts.known.zero
    assert not theorem.goal.facts.known.never_minus


WITHOUT_C = """
plan: without-c
formats: {a: f16, b: f16, c: none, d: f32}
units: {mma: rdna3/wmma/f32_16x16x16_f16}
steps: {d: "sum(mma, +0)"}
"""


def test_operands_whose_subnormal_numbers_are_read_as_zero_are_named(tmp_path: Path) -> None:
    """RDNA3's WMMA keeps those of a and b: 15 * 2^-24 times 1 is summed as it is."""
    (tmp_path / "without-c.plan.yaml").write_text(WITHOUT_C)
    wmma, plan = "rdna3/wmma/f32_16x16x16_f16", f"plan:{tmp_path / 'without-c.plan.yaml'}"
    for how, length, zeros in ((wmma, 16, "c"), ("cdna2/mfma/f32_16x16x16f16", 16, "a, b and c"), (plan, 64, "")):
        where = mmaprobe.bound(how, length=length, confirm=False).where
        assert ("as zero" in where) is bool(zeros)
        assert f"read: subnormals of {zeros} as zero" in where or not zeros


WITH_RELU = """
plan: with-relu
formats: {a: f16, b: f16, c: f16, d: f16}
units: {mma: ampere/mma/m16n8k16.f32.f16.f16.f32}
roundings: {r: 'round(f32, nearest_even)', out: 'round(f16, nearest_even)'}
steps: {t: 'r(exact(sum(mma, +0), c))', d: out(relu(t))}
"""


def test_the_exact_result_of_a_rectified_sum_is_rectified(tmp_path: Path) -> None:
    """Sums below zero have no error: the nearest input has another sum."""
    (tmp_path / "with-relu.plan.yaml").write_text(WITH_RELU)
    bound = mmaprobe.bound(f"plan:{tmp_path / 'with-relu.plan.yaml'}", length=16, confirm=False)
    assert "exact is the result without rounding, with its ReLU" in bound.where
    assert bound.document.sizes[0].nearest.ratio > 0.9


def test_sums_of_integers_lose_nothing_where_they_do_not_overflow() -> None:
    """Every integer within int32 is one of its numbers, in a chain and in a plan as well."""
    clamped = "ampere/mma/m16n8k32.s32.s8.s8.s32.satfinite"
    for how in (clamped, f"plan:{clamped}"):
        assert mmaprobe.bound(how, length=64, confirm=False).largest == 0
    assert mmaprobe.bound(clamped, confirm=False).formula == "|d - exact| <= 0"
    chain = mmaprobe.bound(clamped, length=64, confirm=False).every
    assert chain == "after n instructions: |d - exact| <= 0"


@pytest.mark.parametrize(("c", "term", "planned"), [("f32", ", c", True), ("none", "", False)])
def test_a_plan_is_named_in_place_of_a_chain_where_there_is_one(c: str, term: str, planned: bool) -> None:
    """A unit that reads no c adds nothing to an earlier sum: it has no plan of any K."""
    text = f"""
unit: small
formats: {{a: f16, b: f16, c: {c}, d: f32}}
length: 4
steps: {{d: 'round(fused(a[0:4] * b[0:4]{term}, F=24), f32, nearest_even)'}}
"""
    with pytest.raises(ParameterError, match="6 is not a chain of") as refused:
        find_bound(Model("small", parse_unit(text, "small.yaml")), Inputs(), 6, believed)
    assert ("takes any K" in str(refused.value)) is planned


def test_what_an_integer_counts_as_at_least_is_said(tmp_path: Path) -> None:
    """Of a format of floating point it is the smallest normal number, of which integers have none."""
    file = tmp_path / "mixed.yaml"
    file.write_text("unit: mixed\nformats: {a: e2m1, b: int4, c: none, d: e5m6_ieee}\nlength: 1\nsteps:\n"
                    '  d: "round(fused(a[0] * b[0], F=1), e5m6_ieee, toward_zero)"\n')  # fmt: skip
    words = ["prove", "--property", "error-bound", str(file)]
    document = json.loads(CliRunner().invoke(main, [*words, "--json"]).stdout)
    assert "b_0°" in document["formula"]
    meaning = "x° is x, or the smallest normal number of its format (for b, an integer, 2^2) where x is smaller"
    assert document["premises"][-1].startswith(meaning)
    assert meaning in CliRunner().invoke(main, words).stderr
    assert meaning in mmaprobe.bound(file).where
