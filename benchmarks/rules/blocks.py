"""Instances of the rule about what block formats lose: tiny plans, some of which lose far more than they should, on all
elements of small formats."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np

from benchmarks.rules.campaign import Campaign
from benchmarks.rules.lemmas import Truths
from benchmarks.rules.numbers import Unchecked
from benchmarks.rules.slices import errors_of
from mmaprobe.queries.kernel.integers.blocks import LosesOfBlocks
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.queries.properties.bound import chain_of
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.said import believed

UNIT = """unit: mma.yaml
formats: {{a: {q}, b: {p}, c: f32, d: f32, scale: {e}}}
length: {length}
scale_block: 2
roundings: {{r: "round(f32, {mode})"}}
steps: {{d: "r({sum})"}}
"""
PLAN = """plan: tiny
formats: {{a: {a}, b: {b}, c: f32, d: {d}}}
units: {{mma: mma.yaml}}
roundings:
  e: round({e}, {factor}{limit})
  q: round({q}, nearest_even{saturate})
  p: round({p}, nearest_even, overflow=saturate)
  t: round({t}, nearest_even)
  s: round(f32, nearest_even, overflow=sat_finite)
  r: round(f32, nearest_even)
  out: round({d}, nearest_even)
words:
{words}
steps:
{steps}
"""
MOST = 6  # K up to which a statement is looked at


def _literal(value: float) -> str:
    return f"number(0x{int(np.float32(value).view(np.uint32)):08x}, f32)"


def _side(rng: random.Random, side: str, q: str, most: float, levels: bool) -> str:
    """The words of a side. `most`: about the largest number of its elements' format."""
    most *= rng.choice((1, 1, 1, 1, 0.75, 2, 8))
    largest = f"largest({side}, block=2)"
    if levels:
        inverse = rng.choice(("s(quotient(2**0, r(product({f}, decode_{s}))))", "s(quotient(encode_{s}, {f}))"))
        return "\n".join((
            f"  encode_{side}: s(quotient({_literal(4 * most)}, largest({side})))",
            f"  decode_{side}: r(quotient(2**0, encode_{side}))",
            f"  factor_{side}: e(r(product({largest}, r(product(encode_{side}, {_literal(1 / most)})))))",
            f"  inverse_{side}: {inverse.format(s=side, f=f'factor_{side}')}",
            f"  {side}1: {q}(r(product({side}, inverse_{side})))",
            f"  block_{side}: block_scaled({side}1, factor_{side})",
        ))  # fmt: skip
    found = rng.choice((
        f"product({_literal(1 / most)}, {largest})", f"r(product({_literal(1 / most)}, {largest}))",
        f"quotient({largest}, {_literal(most)})", f"t(quotient({largest}, {_literal(most)}))",
        f"product(2**{-int(np.log2(most))}, {largest})",
    ))  # fmt: skip
    element = rng.choice((f"quotient({side}, factor_{side})",) * 3 + (
        f"t(quotient({side}, factor_{side}))", f"r(product({side}, s(quotient(2**0, factor_{side}))))",
        f"product({side}, factor_{side})", f"quotient({side}, e(r(quotient({largest}, 2**1))))"))  # fmt: skip
    return "\n".join((f"  factor_{side}: e({found})", f"  {side}1: {q}({element})",
                      f"  block_{side}: block_scaled({side}1, factor_{side})"))  # fmt: skip


def tiny(rng: random.Random) -> Plan:
    """A plan of blocks of two elements, with factors of the row or without. Raises MmaprobeError for one that cannot
    be."""
    formats = {"e2m1": 6.0, "e2m3": 7.5, "e3m2": 28.0, "e2m2b1_none": 7.0, "e4m3": 448.0}
    (q, left), (p, right) = (rng.choice(list(formats.items())) for _ in "ab")
    levels = rng.random() < 0.3
    e = rng.choice(("ue4m3", "ue4m3", "ue5m3b15_none") if levels else ("ue8m0", "ue8m0", "ue4m3", "ue5m1b15_none"))
    length = rng.choice((2, 4))
    terms = [f"scale(exact(a[{k}:{k + 2}] * b[{k}:{k + 2}]), scale_a[{k // 2}], scale_b[{k // 2}])"
             for k in range(0, length, 2)]  # fmt: skip
    inside = ", ".join([*terms, "c"])
    exact = f"exact({inside})" if rng.random() < 0.5 else f"fused({inside}, F={rng.choice((10, 20, 30))}, zeros=-132)"
    unit = parse_unit(UNIT.format(q=q, p=p, e=e, length=length, sum=exact,
                                  mode=rng.choice(("toward_zero", "nearest_even"))), "mma.yaml")  # fmt: skip
    words = [_side(rng, "a", "q", left, levels), _side(rng, "b", "p", right, levels)]
    steps = "  d: out(sum(mma(block_a, block_b), +0))"
    if levels:
        # what rows and columns are divided by, so that nearly nothing is lost; or another number
        numbers = [float.fromhex("0x1p0")]
        for side, text in zip("ab", words, strict=True):
            pattern = int(text.partition(f"encode_{side}: s(quotient(number(0x")[2][:8], 16)
            numbers.append(float(np.uint32(pattern).view(np.float32)))
        scale = _literal(rng.choice((1, 1, 1, 1, 1.25)) / numbers[1] / numbers[2])
        steps = (f"  one: r(product({scale}, sum(mma(block_a, block_b), +0)))\n  two: r(product(one, largest(a)))\n"
                 f"  d: out(r(product(two, largest({rng.choice('bbbbbba')}))))")  # fmt: skip
    text = PLAN.format(
        a=rng.choice(("e2m1", "e3m2", "e4m3")), b=rng.choice(("e2m1", "e2m3")), d=rng.choice(("f32", "f32", "bf16")),
        e=e, factor=rng.choice(("toward_zero", "up", "nearest_even")), q=q, p=p,
        limit=rng.choice(("", ", overflow=sat_finite")), saturate=rng.choice(("", ", overflow=saturate")),
        t=rng.choice(("f16", "e5m2", "e4m3")), words="\n".join(words), steps=steps,
    )  # fmt: skip
    return parse_plan(text, "tiny.yaml", lambda name: Model("mma.yaml", unit))


def loses_of_blocks(goal: LosesOfBlocks, rng: random.Random) -> Iterator[str]:
    if goal.length > MOST:
        raise Unchecked
    kept, every = [], []
    found, *sides = errors_of(goal.plan, goal.length, rng)
    for side in sides:
        blocks = np.stack([side[:, k : k + 2].max(1) for k in range(0, goal.length, 2)], 1)
        within = (blocks >= 2.0**-goal.reach) & (blocks <= 2.0**goal.reach)
        if goal.spread is not None:
            within &= blocks >= blocks.max(1, keepdims=True) * 2.0**-goal.spread
        kept.append((within | ((blocks == 0) & goal.zeros)).all(1))
        every.append(blocks)
    size = 2 * (every[0] @ every[1].T)
    bound = float(goal.share) * size + float(goal.rest)
    if (found > bound * (1 + 2.0**-40))[kept[0]][:, kept[1]].any():
        yield "an error is beyond the bound"


def instances(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """A tiny plan at a few K."""
    try:
        plan = tiny(rng)
        chain = chain_of(plan.models[0].unit, believed)
    except (MmaprobeError, RuleError):
        return
    for length in rng.sample((1, 2, 3, 4, 6, 0), 3):
        spread = rng.choice((None, 0, 1, 2, 3, 6, -1))
        reach = rng.choice((0, 1, 2, 3, 4, 10, -1))
        for zeros in (True, False):
            campaign.call("loses_of_blocks", plan, length, reach, spread, zeros, chain)


MEANINGS = {LosesOfBlocks: loses_of_blocks}
