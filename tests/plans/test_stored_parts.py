"""Kernels that split K and store the sum of each part in the format of the result, in which the parts are then added:
`identify --gemm` finds one plan of each, and none of kernels that have no plan."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from mmaprobe.queries.plans import library
from mmaprobe.queries.plans.recorded import random_patterns
from mmaprobe.queries.plans.rules import Shape
from mmaprobe.runner.device_plans import mapper_of
from mmaprobe.smtmodel.base.errors import IncompleteError
from mmaprobe.smtmodel.evaluate.numbers import type_of
from mmaprobe.smtmodel.inputs.signature import parse_signature
from mmaprobe.smtmodel.plans.gemm import simulate

pytestmark = pytest.mark.solvers

NEW, SECONDS = 40, 30.0  # shapes, and time for kernels without a plan
MANY = 1 << 16  # products of one factor each: they show how a sum and c are rounded
KINDS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
Numbers = NDArray[Any]
#: formats of a, b, c and d; how K is cut; in which order the parts are added; alpha, beta; the largest K
KERNELS: dict[str, tuple[str, tuple[int, ...], str, float, float, int]] = {
    "three": ("f16,f16,f16", (3, 16), "sequential", 1, 0, 96),
    "three-scaled": ("f16,f16,f16,f16", (3, 16), "sequential", 0.75, 1, 96),
    "three-bf16": ("bf16,bf16,bf16", (3, 16), "sequential", 1, 0, 97),
    "three-bf16-scaled": ("bf16,bf16,bf16,bf16", (3, 16), "sequential", 0.75, 1, 99),
    "two": ("f16,f16,f16", (2, 1), "sequential", 1, 0, 61),
    "four-pairwise": ("f16,f16,f16", (4, 8), "pairwise", 1, 0, 99),
    "four-backwards": ("f16,f16,f16", (4, 16), "backwards", 1, 0, 127),
    "seven": ("f16,f16,f16", (7, 1), "sequential", 1, 0, 77),
    "three-wide": ("bf16,bf16,bf16", (3, 32), "backwards", 1, 0, 192),
    "seven-pairwise": ("bf16,bf16,bf16", (7, 8), "pairwise", 1, 0, 113),
    "four-alpha-beta": ("f16,f16,f16,f16", (4, 32), "sequential", 2.5, 0.3, 161),
    "two-minus": ("f16,f16,f16,f16", (2, 16), "sequential", 1, -1, 95),
    "every": ("f16,f16,f16", (0, 32), "sequential", 1, 0, 131),
    "every-bias": ("bf16,bf16,bf16,bf16", (0, 16), "sequential", 1, 1, 75),
    "three-even": ("f16,f16,f16", (-3, 16), "sequential", 1, 0, 127),
    "four-alpha": ("f16,f16,f16", (4, 16), "pairwise", 0.3, 0, 127),
    "seven-bias": ("f16,f16,f16,f16", (7, 16), "backwards", 0.75, 1, 223),
    "four-wide-bias": ("f16,f16,f32,f16", (4, 8), "sequential", 1, 1, 99),
    "three-backwards": ("f16,f16,f16,f16", (3, 8), "backwards", 1, 1, 71),
    "two-bf16": ("bf16,bf16,bf16,bf16", (2, 32), "sequential", 0.125, 0.5, 127),
    "three-of-24": ("bf16,bf16,bf16", (3, 24), "sequential", 1, 0, 160),  # which only the order shows
    "four-even-of-24": ("bf16,bf16,bf16", (-4, 24), "sequential", 1, 0, 256),
    "four-pairs-of-24": ("f16,f16,f16", (4, 24), "pairwise", 1, 0, 256),
    "every-7-alpha": ("f16,f16,f16", (0, 7), "sequential", 0.75, 0, 128),
}
#: kernels that no plan gives: what is odd about each
ODD = {
    "from-the-middle": ("f16,f16,f16", (4, 16), "middle", 1, 0, 96),  # the third part first
    "from-the-end": ("f16,f16,f16,f16", (-3, 16), "reversed", 0.75, 1, 96),  # each part from its last product on
    "truncated": ("f16,f16,f16", (3, 16), "truncated", 1, 0, 96),  # each part rounded towards zero
    "mixed": ("bf16,bf16,bf16", (7, 8), "mixed", 1, 1, 112),  # parts in another order for each K
}
QUICK = ("three-scaled",)


def parts_of(length: int, ways: int, grain: int) -> list[int]:
    """Where parts end: every `grain` products, or `ways` parts in multiples of `grain`, of tiles divided evenly if
    `ways` is negative."""
    tiles = -(-length // grain)
    if ways < 0:
        ends = [-(-tiles * number // -ways) * grain for number in range(1, 1 - ways)]
    else:
        step = -(-tiles // ways) * grain if ways else grain
        ends = list(range(step, length + step, step))
    return sorted({min(end, length) for end in ends})


def summed(a: Numbers, b: Numbers, start: int, stop: int) -> Numbers:
    total = np.zeros((len(a), b.shape[1]), np.float32)
    for k in range(start, stop):
        total = total + np.outer(a[:, k].astype(np.float32), b[k].astype(np.float32))
    return total


def joined(parts: list[Numbers], order: str) -> Numbers:
    """The sum of parts, each addition rounded to their format."""

    def add(one: Numbers, other: Numbers) -> Numbers:
        return (one.astype(np.float32) + other.astype(np.float32)).astype(one.dtype)

    while order == "pairwise" and len(parts) > 2:
        pairs = [add(*pair) for pair in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, *parts[2 * len(pairs) :]]
    total, *rest = parts[::-1] if order == "backwards" else parts
    for part in rest:
        total = add(total, part)
    return total


def kernel(name: str) -> Callable[..., Numbers]:
    formats, cut, order, alpha, beta, _ = {**KERNELS, **ODD}[name]
    kind = KINDS[formats.split(",")[-1]]

    def stored(a: Numbers, b: Numbers) -> Numbers:
        ends = parts_of(a.shape[1], *cut)
        spans = list(zip([0, *ends], ends, strict=False))
        if order == "reversed":
            return joined([summed(a[:, i:j][:, ::-1], b[i:j][::-1], 0, j - i).astype(kind) for i, j in spans], "")
        sums = [summed(a, b, *span) for span in spans]
        if order == "truncated":
            bits = (np.ascontiguousarray(part).view(np.uint32) & np.uint32(0xFFFFE000) for part in sums)
            sums = [part.view(np.float32) for part in bits]
        parts = [part.astype(kind) for part in sums]
        if order == "middle":
            parts = [*parts[2:3], *parts[:2], *parts[3:]]
        if order == "mixed":
            parts = [parts[n] for n in np.random.default_rng(a.shape[1]).permutation(len(parts))]
        return joined(parts, order)

    def plain(a: Numbers, b: Numbers) -> Numbers:
        total = stored(a, b)
        return total if alpha == 1 else (np.float32(alpha) * total.astype(np.float32)).astype(kind)

    def scaled(a: Numbers, b: Numbers, c: Numbers) -> Numbers:
        times = np.float32(alpha) * stored(a, b).astype(np.float32)
        return (times + np.float32(beta) * c.astype(np.float32)).astype(kind)

    return scaled if formats.count(",") == 3 else plain


@pytest.fixture(autouse=True)
def fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, number in (("CHECKED", 20), ("FIRST", 16), ("MORE", 8), ("QUIET", 2), ("TREES", 6)):
        monkeypatch.setattr(library, name, number)


def check(mapper: library.Mapper, name: str) -> None:
    """What the rules that are relied on say is so, for new shapes and numbers."""
    held, mapper.deadline = 0, None
    rules = [rule for rule, entry in zip(mapper.rules, mapper.findings.rules, strict=True) if entry.confirmed]
    for number in range(NEW):
        at, right = mapper.held(rules, mapper.products.random_shape(number))
        assert right[at >= 0].all(), (name, mapper.findings.rules)
        held += int((at >= 0).sum())
    assert held or not mapper.findings.whole


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
                                  for name in KERNELS])  # fmt: skip
def test_stored_parts_are_found(name: str) -> None:
    formats, *_, longest = KERNELS[name]
    mapper = mapper_of(kernel(name), parse_signature(formats, longest), (8, 8), None)
    found = mapper.run()
    assert found.whole
    assert all(entry.confirmed for entry in found.rules)
    check(mapper, name)
    (plan,) = found.plans
    rng = np.random.default_rng(3)
    a, b, c = plan.a, plan.b, plan.c
    x, y, z = (
        random_patterns(rng, fmt, size, low, 2)
        for fmt, size, low in ((a, (MANY, 1), -2), (b, (1, 1), 0), (c, (MANY, 1), -24))
    )
    z = z if mapper.asked.addend else np.zeros_like(z)
    given = [side.view(type_of(fmt)) for side, fmt in ((x, a), (y, b), (z, c))]
    exact = kernel(name)(*given[: 2 + mapper.asked.addend])
    assert np.array_equal(simulate(x, y, z, plan), exact.view(x.dtype))


@pytest.mark.slow
@pytest.mark.parametrize("name", ODD)
def test_no_wrong_map_of_other_parts_is_relied_on(name: str) -> None:
    formats, *_, longest = ODD[name]
    mapper = mapper_of(kernel(name), parse_signature(formats, longest), (8, 8), SECONDS)
    with suppress(IncompleteError):
        mapper.run()
    assert not mapper.findings.whole
    check(mapper, name)


@pytest.mark.parametrize("name", ["two", "two-minus"])
def test_the_order_of_a_function_of_two_or_three_matrices_is_revealed(name: str) -> None:
    formats, *_ = KERNELS[name]
    mapper = mapper_of(kernel(name), parse_signature(formats, 9), (8, 8), None)
    assert mapper.reveal(Shape(8, 8, 9), (0, 0), None) is not None
