"""Instances of the rules about what slices and residues lose: tiny plans, some with wrong factors or pairs, on all
elements."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from benchmarks.rules.campaign import Campaign
from benchmarks.rules.lemmas import Truths
from benchmarks.rules.numbers import Unchecked
from mmaprobe.queries.kernel.integers.slices import LosesOfElements, LosesOfLargest, WithinClassical, WithinSpan
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import to_numbers
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.units.unitfile import parse_unit

UNIT = """unit: mma.yaml
formats: {{a: {q}, b: {q}, c: int12, d: int12}}
length: {length}
roundings: {{r: "round(int12, toward_zero)"}}
steps: {{d: "r(fused(a[0:{length}] * b[0:{length}], c, F=10, carry=0, least=10))"}}
"""
PLAN = """plan: tiny
formats: {{a: {a}, b: {b}, c: f32, d: f32}}
units: {{mma: mma.yaml}}
roundings:
  q: round({q}, {mode})
  w: round(int6, {mode})
  t: round({t}, nearest_even)
  r: round(f32, {result})
words:
{words}
steps:
{steps}
"""
MOST = 128  # rows of A, and columns of B
LONGEST = 3  # products up to which a statement is looked at


def _side(rng: random.Random, side: str, moduli: tuple[int, ...]) -> tuple[str, str, list[int]]:
    """The words of a side, what its power of two is, and of each word how many times the element it counts, as a power
    of two."""
    power = rng.choice((f"shared({side})", f"shared({side}, up=true)"))
    other = power if rng.random() < 0.95 else f"shared({side}, up=true)"
    first, step = rng.randint(0, 2), rng.randint(1, 2)
    if rng.random() < 0.05:
        step = 3
    if moduli:
        first += rng.randint(0, 2)
        words = [f"  {side}_whole: w(product(2**{first}, t(product({side}, 1 / {power}))))"]
        words += [f"  {side}{n}: q(residue({side}_whole, {m}))" for n, m in enumerate(moduli)]
        return "\n".join(words), other, [first]
    words = [f"  {side}_0: t(product(2**{first}, t(product({side}, 1 / {power}))))", f"  {side}0: q({side}_0)"]
    for n in (1, 2):
        words += [f"  {side}_{n}: t(product(2**{step}, t(exact({side}_{n - 1}, -{side}{n - 1}))))"]
        words += [f"  {side}{n}: q({side}_{n})"]
    return "\n".join(words), other, [first, first + step, first + 2 * step]


def tiny(rng: random.Random, addend: bool = True, each: int = 0) -> Plan:
    """A plan of slices, or of residues, which adds c or not; `each`: products of an instruction. Raises MmaprobeError
    for one that cannot be."""
    moduli = rng.choice(((), (), (7, 8, 5), (8, 15), (16, 15, 13)))
    (left, a_power, a), (right, b_power, b) = (_side(rng, side, moduli) for side in "ab")
    wrong = rng.choice((0,) * 12 + (1, -1))
    if moduli:
        sums = ", ".join(f"sum(mma(a{n}, b{n}))" for n in range(len(moduli)))
        steps = [f"  all: recombined({sums}, moduli=[{', '.join(map(str, moduli))}])",
                 f"  one: r(product(2**{wrong - a[0] - b[0]}, all))"]  # fmt: skip
    else:
        pairs = [(i, j) for i in range(3) for j in range(3) if i + j < rng.choice((2, 3, 4))] or [(0, 0)]
        steps = [f"  t{n}: r(product(2**{-a[i] - b[j] + wrong * (n == 1)}, sum(mma(a{i}, b{j}))))"
                 for n, (i, j) in enumerate(pairs)]  # fmt: skip
        steps += ["  s0: r(t0)", *(f"  s{n}: r(exact(s{n - 1}, t{n}))" for n in range(1, len(pairs)))]
        steps += [f"  one: r(product(2**0, s{len(pairs) - 1}))"]
    scaled = rng.choice(("r(scale(one, {a}, {b}))", "r(product(r(product(one, {a})), {b}))", "r(product(one, {a}))"
                         if rng.random() < 0.2 else "r(scale(one, {b}, {a}))"))  # fmt: skip
    one = scaled.format(a=a_power, b=b_power)
    steps.append(f"  d: r(exact({one}, c))" if addend else f"  d: {one}")
    text = PLAN.format(
        a=rng.choice(("e2m1", "e2m1", "e3m2", "int3")), b=rng.choice(("e2m1", "e2m1", "int3")),
        words=f"{left}\n{right}",
        q=rng.choice(("int4", "int5")), mode=rng.choice(("toward_zero",) * 4 + ("nearest_even",)),
        t=rng.choice(("f32", "f32", "f32", "e3m2", "e2m1")), steps="\n".join(steps),
        result="nearest_even" if rng.random() < 0.95 else "toward_zero",
    )  # fmt: skip
    unit = parse_unit(
        UNIT.format(q=text.partition("q: round(")[2].partition(",")[0], length=each or rng.randint(1, 2)), "mma.yaml"
    )
    return parse_plan(text, "tiny.yaml", lambda name: Model("mma.yaml", unit))


Array = np.ndarray  # type: ignore[type-arg]


def errors_of(plan: Plan, length: int, rng: random.Random) -> tuple[Array, Array, Array]:
    """Of many rows and columns: the error and, of both sides, the magnitudes; everything is exact in f64."""
    sides = []
    for fmt in (plan.a, plan.b):
        patterns = [x for x in range(1 << fmt.width) if exact_value(x, fmt) not in ("nan", "inf", "-inf")]
        few = len(patterns) ** length <= MOST
        rows = list(product(patterns, repeat=length)) if few else [rng.choices(patterns, k=length) for _ in range(MOST)]
        numbers = {x: 0.0 if isinstance(y := exact_value(x, fmt), str) else float(y) for x in patterns}
        sides.append((np.array(rows, dtype=np.uint8), np.array([[numbers[x] for x in row] for row in rows])))
    (rows, a), (columns, b) = sides
    d = simulate(rows, np.ascontiguousarray(columns.T), None, plan, engine="numpy")
    found = to_numbers(d.astype(kind_of(plan.d)), plan.d).astype(float)
    return np.nan_to_num(np.abs(found - a @ b.T), nan=np.inf), np.abs(a), np.abs(b)


def _largest(side: Array, reach: int) -> tuple[Array, Array]:
    """Of each row, the largest magnitude, and whether the statement is about it."""
    most = side.max(1)
    return most, (most >= 2.0**-reach) & (most <= 2.0**reach)


def _up_to(goal: Any, rng: random.Random) -> Iterator[tuple[int, Array, Array, Array]]:
    """Of each number of products that a goal is about, the errors of its plan and the magnitudes. Raises Unchecked
    after those that are looked at."""
    for length in range(1, min(goal.length, LONGEST) + 1):
        yield length, *errors_of(goal.plan, length, rng)
    if goal.length > LONGEST:
        raise Unchecked


def loses_of_largest(goal: LosesOfLargest, rng: random.Random) -> Iterator[str]:
    for length, errors, a, b in _up_to(goal, rng):
        (left, one), (right, other) = (_largest(side, goal.reach) for side in (a, b))
        size = np.outer(left, right)[one][:, other] * length
        ratio = errors[one][:, other] / np.where(size, size, 1)
        if ratio.size and Fraction(float(ratio.max())) > goal.share * (1 + Fraction(1, 1 << 40)):
            yield f"{ratio.max()} of K products of the largest are lost"
            return


def loses_of_elements(goal: LosesOfElements, rng: random.Random) -> Iterator[str]:
    for length, errors, a, b in _up_to(goal, rng):
        (left, one), (right, other) = (_largest(side, goal.reach) for side in (a, b))
        ones = []
        for side, most, share, step in zip((a, b), (left, right), goal.ones, goal.steps, strict=True):
            spread = np.ceil(np.log2(most / np.where(side.min(1) > 0, side.min(1), np.inf) + (side.min(1) == 0)))
            near = (side.min(1) > 0) * 2.0 ** -np.maximum(spread, 0)
            ones.append((float(share) - float(step) * near) * most)
        bound = float(goal.products) * (a @ b.T) + float(goal.largest) * length * np.outer(left, right)
        bound = bound + np.outer(ones[0], b.sum(1)) + np.outer(a.sum(1), ones[1])
        if (errors > bound * (1 + 2.0**-40))[one][:, other].any():
            yield "an error is beyond the bound"
            return


def within_classical(goal: WithinClassical, rng: random.Random) -> Iterator[str]:
    if goal.length > LONGEST:
        raise Unchecked
    errors, a, b = errors_of(goal.plan, goal.length, rng)
    kept = []
    for side in (a, b):
        most, own = _largest(side, goal.reach)
        kept.append(own & (side.min(1) >= most * 2.0**-goal.spread))
    bound = float(goal.times) * goal.length * 2.0**-goal.plan.d.precision * (a @ b.T)
    if (errors > bound * (1 + 2.0**-40))[kept[0]][:, kept[1]].any():
        yield "an error is beyond the bound"


def within_span(goal: WithinSpan, rng: random.Random) -> Iterator[str]:
    for length, errors, a, b in _up_to(goal, rng):
        (left, one), (right, other) = (_largest(side, goal.reach) for side in (a, b))
        kept = np.outer(left, right) <= 2.0**goal.span * (a[:, None] * b[None]).max(2)
        bound = float(goal.times) * length * 2.0**-goal.plan.d.precision * (a @ b.T)
        if (kept & (errors > bound * (1 + 2.0**-40)))[one][:, other].any():
            yield "an error is beyond the bound"
            return


def instances(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """A tiny plan at a few K."""
    try:
        plan = tiny(rng)
    except MmaprobeError:
        return
    seed, length = rng.random(), rng.choice((1, 1, 2))
    with suppress(MmaprobeError):
        sides = [tiny(random.Random(seed + (each > 2)), False, each) for each in (1, rng.choice((2, 2, 3)))]
        campaign.call("every_product", *sides, length)
    for length in (1, rng.randint(1, 3)):
        campaign.call("every_sum", plan, length)
        times, near, span = Fraction(2) ** rng.choice((10, 18, 20, 22, 24)), rng.randint(-1, 6), rng.random() < 0.5
        campaign.call("every_error", plan, length, rng.choice((4, 10, -1)), near, times, span)
        most = rng.choice((None, None, None, None, None, None, 3))
        wraps = campaign.call("never_wraps", plan, length, most, None, check=False)
        if wraps is None:
            continue
        about = plan, length + rng.choice((0, 0, 0, 0, 1, -1)), rng.choice((3, 4, 4, 6, 10, 40, -1)), wraps
        lost, bounded = (campaign.call(f"loses_of_{what}", *about) for what in ("largest", "elements"))
        times = Fraction(2) ** rng.choice((20, 22, 23, 24, 25, 26, 28, 30))
        if bounded is not None:
            campaign.call("within_classical", bounded, rng.choice((0, 0, 1, 2, 3, -1)), times)
        if lost is not None:
            campaign.call("within_span", lost, rng.choice((0, 0, 1, 2, 4, 6, -1)), times)


MEANINGS = {
    LosesOfLargest: loses_of_largest,
    LosesOfElements: loses_of_elements,
    WithinClassical: within_classical,
    WithinSpan: within_span,
}
