"""What block formats lose: the rule against all elements of tiny formats, and what it refuses."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from mmaprobe.queries.checking.folder import check_folder
from mmaprobe.queries.kernel.integers.blocks import LosesOfBlocks, loses_of_blocks
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.plans.bound_report import find_plan_bound
from mmaprobe.queries.plans.certify import certify_plan_bound
from mmaprobe.queries.plans.slices import BLOCKS_REACH, blocks_lose, bound_in_largest
from mmaprobe.queries.properties.bound import chain_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.smtmodel.evaluate.numbers import from_numbers, to_numbers
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.plan_files import FOLDER
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.reference import parse_plan_reference, parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from tests.oracles.oracle import decode
from tests.plans.test_blocks import tiny
from tests.said import believed

pytestmark = pytest.mark.compilers

RESULT = "r(product(r(product(sum(mma(block_a, block_b), c), largest(a))), largest(b)))"


@cache
def chain(unit: Unit) -> Theorem:
    return chain_of(unit, believed)


def lost(plan: Plan, length: int = 2, reach: int = 4, spread: int | None = None, zeros: bool = True) -> LosesOfBlocks:
    goal = loses_of_blocks(plan, length, reach, spread, zeros, chain(plan.models[0].unit)).goal
    assert isinstance(goal, LosesOfBlocks)
    return goal


def blocks(old: str = "", new: str = "") -> Plan:
    """The tiny plan, with its sum as its result; elements of b are divided by the largest of b's format over 6."""
    return tiny(RESULT, "sum(mma(block_a, block_b), c)", old, new)


def numbers(fmt: str, width: int) -> np.ndarray:  # type: ignore[type-arg]
    found = [decode(fmt, pattern) for pattern in range(1 << width)]
    return np.array([float(x.value) for x in found])


def worst(plan: Plan, reach: int) -> float:
    """The largest error of two products over 2 max|a| max|b|, of all rows of e2m3 that are not negative, and of all
    columns of e3m2 of two numbers of one size or of a number and 0."""
    rows = np.array([x for x in product(range(32), repeat=2) if max(x)], dtype=np.uint8)
    columns = np.array([(x, y) for x in range(32) for y in (x, x + 32, 0, x - 1) if x], dtype=np.uint8)
    found = simulate(rows, np.ascontiguousarray(columns.T), None, plan, engine="numpy").view(np.float32).astype(float)
    a, b = numbers("e2m3", 6)[rows], numbers("e3m2", 6)[columns]
    left, right = (np.abs(side).max(1) for side in (a, b))
    kept = np.outer(*((side >= 2.0**-reach) & (side <= 2.0**reach) for side in (left, right)))
    return float(np.max((np.abs(found - a @ b.T) / (2 * np.outer(left, right)))[kept]))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("e: round(ue8m0, toward_zero)", "e: round(ue8m0, nearest_even)"),
        ("2**-2", "2**-1"),
        ("2**-2", "2**-4"),
        ("r(quotient(largest(b, block=2), number(0x40c00000, f32)))", "product(2**-3, largest(b, block=2))"),
        ("a1: q(quotient(a, factor_a))", "a1: q(r(quotient(a, factor_a)))"),
    ],
)
def test_no_block_loses_more(old: str, new: str) -> None:
    """The result is within the bound for all inputs of two products, also where elements saturate; and comes near."""
    plan = blocks(old, new)
    bound, found = lost(plan), worst(plan, 4)
    assert found <= float(bound.share) + float(bound.rest)
    assert found > float(bound.share) / 4


@pytest.mark.parametrize(
    ("name", "elements"),
    [("mx/fp8", 1 / 8), ("mx/fp6", 1 / 16), ("mx/fp4", 1 / 4), ("transformerengine/mxfp8", 1 / 17),
     ("transformerengine/nvfp4", 1 / 5)],
)  # fmt: skip
def test_what_shipped_formats_lose(name: str, elements: float) -> None:
    """Where factors are rounded down, what saturates is lost, 64/512 of 448; rounded up, half a last place."""
    plan = parse_plan_reference(f"plan:{name}")
    goal = blocks_lose(plan, 1024, believed).goal
    assert isinstance(goal, LosesOfBlocks)
    own = (1 + elements) ** 2 - 1
    assert own < goal.share < own + (2**-7 if plan.d.name == "bf16" else 2**-13)
    assert goal.rest < 2**-80
    assert (goal.spread is None) == (name != "transformerengine/nvfp4")
    assert goal.zeros


def test_a_number_of_products_that_fills_no_block() -> None:
    """Where factors of nothing count, K is a multiple of an instruction's."""
    plan = parse_plan_reference("plan:mx/fp4")
    for length, bounded in ((64, True), (32, False), (96, False)):
        if bounded:
            assert lost(plan, length, BLOCKS_REACH).length == length
            continue
        with pytest.raises(RuleError, match="stated in other magnitudes"):
            lost(plan, length, BLOCKS_REACH)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("overflow=saturate", "overflow=ieee", "an element may overflow"),
        ("a1: q(quotient(a, factor_a))", "a1: q(product(a, factor_a))", "not an element divided by its scale factor"),
        ("a1: q(quotient(a, factor_a))", "a1: q(quotient(a, largest(a, block=2)))", "not an element divided"),
        ("a1: q(quotient(a, factor_a))", "a1: q(quotient(factor_a, a))", "divided by an element"),
        ("a1: q(quotient(a, factor_a))", "a1: q(quotient(a, r(exact(factor_a, factor_a))))", "words with a exact"),
        ("q: round(e2m1, nearest_even,", "q: round(e2m1, toward_zero,", "not rounded to nearest"),
        (
            "product(2**-2, largest(a, block=2))",
            "product(largest(a), largest(a, block=2))",
            "how far the largest magnitudes",
        ),
        ("e: round(ue8m0, toward_zero)", "e: round(ue8m0, to_odd)", "the rule does not cover rounding to_odd"),
        ("2**-2", "2**125", "may overflow"),
        ("sum(mma(block_a, block_b), c)", "r(product(sum(mma(block_a, block_b), c), largest(a)))", "do not cancel"),
        ("sum(mma(block_a, block_b), c)", "r(exact(sum(mma(block_a, block_b), +0), c))", "results with a exact"),
        ("sum(mma(block_a, block_b), c)", "r(product(sum(mma(block_a, block_b), +0), c))", "multiplied by more than"),
        ("sum(mma(block_a, block_b), c)", "sum(promote(4, mma(block_a, block_b), r), c)", "results with a sum"),
    ],
)
def test_what_is_refused(old: str, new: str, reason: str) -> None:
    with pytest.raises(RuleError, match=reason):
        lost(blocks(old, new))


def test_premises_that_are_refused() -> None:
    plan = blocks()
    for length, reach, spread in ((0, 4, None), (2, -1, None), (2, 1 << 12, None), (2, 4, -1)):
        with pytest.raises(RuleError, match="from 1 on"):
            lost(plan, length, reach, spread)
    other = chain(parse_plan_reference("plan:mx/fp8").models[0].unit)
    with pytest.raises(RuleError, match="not about the plan's unit"):
        loses_of_blocks(plan, 2, 4, None, True, other)


def test_a_bound_is_reported_and_certified(tmp_path: Path) -> None:
    plan, options = parse_plan_reference("plan:mx/fp8"), Options()
    found = find_plan_bound(plan, Inputs(), (64,), Settled(options, False))
    assert found.verdict == "holds"
    (goal,) = found.largest
    assert goal.bound.startswith("|d - exact| <= 1.0626*2^-2 * 32 * sum of max |a_k| * max |b_k| of each block")
    certify_plan_bound(found, tmp_path / "certificate", options)
    assert {one.kind for one in check_folder(tmp_path / "certificate")} == {"fine"}
    assert Fraction(goal.share) > Fraction(17, 64)


NVFP4 = "transformerengine/nvfp4"


def test_blocks_of_zeros_beside_others() -> None:
    """Blocks of zeros, a row and a column of zeros, zeros of both signs lose nothing, and the bound holds."""
    plan, rng = parse_plan_reference(f"plan:{NVFP4}"), np.random.default_rng(4)
    a, b = (np.exp2(rng.integers(-4, 5, (8, 8, 1))) * rng.standard_normal((8, 8, 16)) for _ in "ab")
    for side in (a, b):
        side[np.abs(side) < 0.1] = 0.125
        side[rng.random((8, 8)) < 0.5] = 0.0
        side[0], side[1, 0] = 0.0, -0.0
    a, b = a.reshape(8, 128), b.reshape(8, 128)
    left, right = (from_numbers(side, plan.a, "nearest_even") for side in (a, b))
    a, b = (to_numbers(side, plan.a).astype(float) for side in (left, right))
    d = to_numbers(simulate(left, np.ascontiguousarray(right.T), None, plan).astype(kind_of(plan.d)), plan.d)
    bound = bound_in_largest(blocks_lose(plan, 128, believed).goal, a, b.T)  # type: ignore[arg-type]
    assert (np.abs(d - a @ b.T) <= bound).all()
    assert not d[0].any()
    assert not d[:, 0].any()
    assert bound[1:, 1:].min() < bound.max() / 8


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("s: round(f32, nearest_even, overflow=sat_finite)", "s: round(f32, nearest_even)", "a block of zeros becomes"),
        ("s: round(f32, nearest_even, overflow=sat_finite)", "s: round(f32, nearest_even, overflow=saturate)",
         "a block of zeros becomes"),
        ("inverse_a: s(quotient(2**0, r(product(factor_a, decode_a))))", "inverse_a: s(quotient(encode_a, factor_a))",
         ""),
        ("r(product(encode_a, number(0x3e2aaaab, f32)))", "r(quotient(encode_a, number(0x40c00000, f32)))", ""),
        ("r(product(largest(a, block=16), r(product(encode_a, number(0x3e2aaaab, f32)))))",
         "r(product(r(quotient(largest(a, block=16), largest(a))), number(0x43e00000, f32)))", "a row of zeros"),
    ],
)  # fmt: skip
def test_what_blocks_of_zeros_become(old: str, new: str, reason: str) -> None:
    """Divisions by a factor of zero, and by the largest magnitude of a row of zeros."""
    text = (FOLDER / f"{NVFP4}.yaml").read_text(encoding="utf-8")
    assert old in text
    plan = parse_plan(text.replace(old, new), "x.yaml", parse_reference)
    if reason:
        with pytest.raises(RuleError, match=reason):
            lost(plan, 64, 10, 4)
        assert not lost(plan, 64, 10, 4, zeros=False).zeros
    else:
        assert lost(plan, 64, 10, 4).spread == 4


def test_a_factor_that_may_be_subnormal() -> None:
    """E4M3 has 15 exponents of normal numbers, and elements their own 2: blocks of 2^-16 times a row are too small."""
    plan = parse_plan_reference(f"plan:{NVFP4}")
    assert lost(plan, 64, 10, 12).spread == 12
    with pytest.raises(RuleError, match="may be subnormal"):
        lost(plan, 64, 10, 16)
