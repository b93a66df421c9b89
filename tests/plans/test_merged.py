"""Sums of sums as one sum: the same bits on every input, for random plans of small formats and of those that ship."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.plan_statements import plan, statement
from mmaprobe.queries.kernel.equality.plan_units import joined as merged
from mmaprobe.queries.kernel.equality.plan_units import joined_after_zero as merged_after_zero
from mmaprobe.queries.plans.equal import prove_plans
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import InputError, ParameterError
from mmaprobe.smtmodel.evaluate.batch import evaluate_models
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Element, Node, Product, Round
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.rewriting import rebuilt, replaced, written_out
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.lowering import unit_of_plan
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unitfile import parse_unit

pytestmark = pytest.mark.solvers

ROWS = 512


def random_plans(first: int, count: int) -> Iterator[Plan]:
    for number in range(first, first + count):
        try:
            yield plan(statement(number).left)
        except (InputError, ParameterError):
            continue


def patterns(draw: np.random.Generator, fmt: Format, shape: tuple[int, ...]) -> NDArray[np.uint64]:
    """Random bits, half of them zeros of both signs, infinities and NaNs more often than bits alone have them."""
    found = draw.integers(0, 1 << fmt.width, shape).astype(np.uint64)
    zeros = draw.integers(0, 2, shape).astype(np.uint64) * np.uint64(fmt.sign_bit)
    top = np.uint64(fmt.infinity_field << fmt.padding if fmt.has_infinity else fmt.nan)
    found = np.where(draw.random(shape) < 0.5, zeros, found)
    return np.where(draw.random(shape) < 0.02, top | zeros, found).astype(np.uint64)


def disagreement(unit: Unit, seed: int, result: Node, after: Node | None = None) -> int | None:
    """A row on which another result is another one. `after`: one for rows in which c is not -0, where it is not -0."""
    others = [unit.with_result(one) for one in (result, after) if one is not None]
    draw = np.random.default_rng(seed)
    a, b = (patterns(draw, fmt, (ROWS, unit.length)) for fmt in (unit.a, unit.b))
    a[::3, 1:] = 0
    a[1::3] = unit.a.sign_bit
    c = patterns(draw, unit.c, (ROWS,))
    rows = np.column_stack([a, b, c])
    minus = c == unit.c.sign_bit
    table = np.concatenate([rows, rows[minus]])  # again, with +0 in place of -0
    table[ROWS:, -1] = 0
    first, *found = evaluate_models([Model("unit", side) for side in (unit, *others)], table)
    bad = np.zeros(len(table), dtype=bool)
    for place, one in enumerate(found):
        nan = [(side & np.uint64(unit.d.sign_bit - 1)) > unit.d.largest_field for side in (first, one)]
        wrong = (one != first) & ~(nan[0] & nan[1])
        bad |= ((wrong | (one == unit.d.sign_bit)) & (table[:, -1] != unit.c.sign_bit)) if place else wrong
    return int(np.flatnonzero(bad)[0]) if bad.any() else None


@pytest.mark.parametrize("first", range(0, 240, 24))
def test_small_formats(first: int) -> None:
    changed = 0
    for one in random_plans(first, 24):
        for length in random.Random(first).sample(range(1, 14), 4):
            try:
                unit = unit_of_plan(one, length)
            except ParameterError:
                continue
            result = merged(unit)
            place = disagreement(unit, length, result, merged_after_zero(unit))
            assert place is None, (one.reference, length, str(one.sums[0].stage))
            roundings = [len([x for x in walk(side) if isinstance(x, Round)]) for side in (unit.result, result)]
            changed += roundings[0] > roundings[1]
    assert changed > 4


def test_a_thousand_steps_within_one_another_are_written_out() -> None:
    """More than Python's calls may be within one another."""
    text = (
        "plan: p\nformats: {a: f16, b: f16, c: f32, d: f32}\nunits:\n  fma: ieee/fma/f32.f16.f16.f32\nroundings: {}\n"
        "steps:\n  d: sum(fma, c)\n"
    )
    node = whole = written_out(unit_of_plan(parse_plan(text, "p.yaml", parse_reference), 1000).result)
    assert replaced(whole, lambda _: None) is whole
    assert rebuilt(whole, lambda _, new: new, {}) is whole
    steps = 0
    while isinstance(node, Round):
        node, steps = next(one for one in node.term.operands if not isinstance(one, Product)), steps + 1
    assert (node, steps) == (Element("c"), 1000)


@pytest.mark.parametrize(("ab", "unit"), [
    ("f16", "ieee/fma/f32.f16.f16.f32"), ("bf16", "ieee/fma/f32.bf16.bf16.f32"), ("f32", "ieee/fma/f32"),
    ("f16", "hopper/mma/m16n8k16.f32.f16.f16.f32"),
])  # fmt: skip
def test_formats_with_infinities(ab: str, unit: str) -> None:
    for step in (
        "sum(promote(3, fma, r), c)", "r(exact(r(exact(sum(split(2, fma, r), +0), c)), c))",
        "sum(lanes(fma, r, 4, fold(2, 2), fold(2, 1)), +0)", "sum(halve(2, fma, z), c)", "sum(promote(2, fma, low), c)",
    ):  # fmt: skip
        text = (
            f"plan: p\nformats: {{a: {ab}, b: {ab}, c: f32, d: f32}}\nunits:\n  fma: {unit}\nroundings:\n"
            "  r: round(f32, nearest_even)\n  z: round(f32, toward_zero)\n  low: round(f32, down)\n"
            f"steps:\n  d: {step}\n"
        )
        for length in (1, 2, 5, 7):
            one = unit_of_plan(parse_plan(text, step, parse_reference), length)
            assert disagreement(one, length, merged(one), merged_after_zero(one)) is None, step


@pytest.mark.parametrize("fmt", ["e5m2", "e2m3", "e3m2", "e4m3"])  # too few bits, too small a range, both, neither
def test_products_that_a_format_does_not_hold(fmt: str) -> None:
    unit = parse_unit(
        f"unit: two\nformats: {{a: e2m1, b: e2m1, c: {fmt}, d: {fmt}}}\nlength: 2\n"
        f"roundings:\n  r: round({fmt}, nearest_even, overflow=saturate)\n"
        "steps:\n  d: r(exact(r(exact(a[0] * b[0], +0)), r(exact(a[1] * b[1])), c))\n",
        "two.yaml",
    )
    assert disagreement(unit, 1, merged(unit)) is None
    assert (sum(isinstance(node, Round) for node in walk(merged(unit))) == 1) == (fmt == "e4m3")


ONE = """unit: one
formats: {{a: {ab}, b: {ab}, c: {c}, d: {c}}}
length: 2
roundings:
  r: round({c}, nearest_even{outer})
  q: round({inner})
steps:
  d: {step}
"""
INSIDE = "r(exact(q(exact(a[0] * b[0])), a[1] * b[1], c))"
AGAIN = "r(exact(q(exact(a[0] * b[0], a[1] * b[1], c)), {}))"
#: how it is rounded inside, the step, other things, and how many roundings are left
KEPT: list[tuple[str, str, dict[str, str], int]] = [
    ("e4m3, nearest_even", INSIDE, {}, 1),
    ("e4m3, toward_zero, overflow=saturate", INSIDE, {}, 1),
    ("e4m3, nearest_even, subnormals=flush_after", INSIDE, {}, 1),
    ("e4m3, nearest_even, zero=positive", INSIDE, {}, 1),  # as with +0 among its terms
    ("e4m3, nearest_even, zero=exact_positive", INSIDE, {}, 1),  # of one term, which has its own sign
    ("e4m3, nearest_even, zero=exact_positive", INSIDE.replace("a[0] * b[0]", "a[0] * b[0], +0"), {}, 1),
    ("e2m1, nearest_even, zero=exact_positive", INSIDE, {}, 2),  # -1/4 is rounded to -0
    ("e4m3, down", INSIDE, {}, 1),
    ("e4m3fnuz, nearest_even", INSIDE, {}, 2),  # no -0
    ("e4m3, nearest_even, nan=0x01", INSIDE, {}, 1),  # no product is a NaN
    ("e2m1, nearest_even", INSIDE, {}, 2),  # products finer than its smallest number
    ("e5m2, nearest_even", INSIDE, {}, 2),  # too few bits
    ("e2m3, nearest_even", INSIDE, {}, 2),  # too small a range
    ("f32, nearest_even", INSIDE, {"ab": "f16", "c": "f32"}, 1),
    ("e8m23_none, nearest_even, overflow=saturate", INSIDE, {"ab": "f16", "c": "f32"}, 2),  # no infinity
    ("f32, nearest_even, nan=0x00000000", INSIDE, {"ab": "f16", "c": "f32"}, 2),  # a NaN becomes +0
    ("f32, nearest_even", INSIDE, {"ab": "f32", "c": "f32"}, 2),
    ("e4m3, nearest_even", INSIDE.replace("exact(a[0] * b[0])", "exact(a[0] * b[0], c)"), {}, 2),  # two terms
    ("e4m3, nearest_even", INSIDE.replace("exact(a[0] * b[0])", "exact(a[0] * b[0], +0)"), {}, 1),
    ("e4m3, nearest_even", INSIDE.replace("a[0] * b[0]", "product(a[0], b[0], limit=5)"), {}, 2),  # of no known size
    ("e4m3, nearest_even", INSIDE, {"outer": ", subnormals=flush_after"}, 1),
    ("e4m3, nearest_even", INSIDE, {"outer": ", zero=positive"}, 1),
    ("e4m3, nearest_even", AGAIN.format("+0"), {}, 1),
    ("e4m3, nearest_even", AGAIN.format("-0"), {}, 1),
    ("e5m3_ieee, nearest_even", AGAIN.format("+0"), {}, 2),
    ("e2m1, nearest_even", AGAIN.format("+0"), {"c": "e2m1"}, 2),  # -1/4 is rounded to -0
    ("e5m2, nearest_even, nan=0x81", "r(exact(r(exact(q(exact(a[0] * b[0], c)), +0)), a[1] * b[1]))", {}, 3),
    ("e4m3, nearest_even, nan=0xff", "r(q(exact(a[0] * b[0], a[1] * b[1], c)))", {}, 2),
    ("e4m3, nearest_even, nan=0xff", AGAIN.format("+0"), {}, 2),
    # 3/16, the largest number, which products become, is finer than all of them, and than numbers of the outer format
    ("e2m1b6_none, nearest_even", "r(exact(r(exact(q(exact(a[0] * b[0])), +0)), c))", {"c": "e3m2b2_ieee"}, 3),
]  # fmt: skip


def one(step: str, inner: str = "e4m3, nearest_even", ab: str = "e2m1", c: str = "e4m3", outer: str = "") -> Unit:
    return parse_unit(ONE.format(ab=ab, c=c, outer=outer, inner=inner, step=step), "one.yaml")


@pytest.mark.parametrize(("inner", "step", "other", "left"), KEPT)
def test_a_rounding_is_left_out_where_it_loses_nothing_and_nowhere_else(
    inner: str, step: str, other: dict[str, str], left: int
) -> None:
    unit = one(step, inner, **other)
    form = merged(unit)
    assert len({node for node in walk(form) if isinstance(node, Round)}) == left
    assert disagreement(unit, 1, form) is None


def test_c_that_is_never_minus_zero_makes_a_sum_that_is_not() -> None:
    unit = one("r(exact(r(exact(a[0] * b[0], a[1] * b[1])), c))")
    found = merged_after_zero(unit)
    assert found is not None
    zeros = [
        next(x.rounding.zero for x in walk(form) if x == form and isinstance(x, Round))
        for form in (found, merged(unit))
    ]
    assert zeros == ["exact_positive", "ieee"]


@pytest.mark.parametrize(("c", "step", "never"), [
    ("e4m3", "r(exact(a[0] * b[0], +0))", True), ("e2m1", "r(exact(a[0] * b[0], +0))", False),  # -1/4 is rounded to -0
    ("e4m3", "r(exact(a[0] * b[0], +0 * a[1]))", False),
])  # fmt: skip
def test_a_sum_with_plus_zero_is_minus_zero_only_where_it_is_rounded_to_it(c: str, step: str, never: bool) -> None:
    assert (merged_after_zero(one(step, c=c)) is not None) is never


#: elements of c as they are read, and whether one that is not -0 may be read as -0
READ = [("c: zero", True), ("c: positive_zero", False), ("c: keep", False), ("c: zero, zeros: positive", False)]


@pytest.mark.parametrize(("inputs", "may"), READ)
def test_a_sum_so_far_that_is_read_as_zero_has_a_sign(inputs: str, may: bool) -> None:
    """A result below zero, too small to be normal, is not -0, and read as -0 by the next instruction."""
    formats = "{a: e2m3, b: e2m1, c: e3m2, d: e3m2}"
    text = "unit: one\nformats: {}\nlength: 1\ninputs: {{{}}}\nroundings: {{r: 'round(e3m2, nearest_even)'}}\nsteps: {}"
    one, two = (parse_unit(text.format(formats, inputs, f'{{d: "r(exact(a[0:1] * b[0:1], c{plus}))"}}\n'), "x.yaml")
                for plus in ("", ", +0"))  # fmt: skip
    for unit in (one, two):
        after = merged_after_zero(unit)
        assert (after is None) is (may and unit is one)
        assert after is None or disagreement(unit, 1, unit.result, after) is None
    units = {"./one.yaml": Model("one", one), "./two.yaml": Model("two", two)}
    sides = [parse_plan(f"plan: {name}\nformats: {formats}\nunits: {{u: ./{name}.yaml}}\nsteps: {{d: 'sum(u, +0)'}}\n",
                        name, units.__getitem__) for name in ("one", "two")]  # fmt: skip
    proof = prove_plans(*sides, None, Options("bitwuzla", 20.0), confirm=False)
    assert proof.verdict == ("different" if may else "equal")
