"""What an input exercises, for inputs whose sums and roundings are plain to see, and vectors that differ in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mmaprobe.hypotheses.schema import pair_of
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.search.answer import answer
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.witness import exercised_features, replay
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.units.unitfile import parse_unit

UNASKED = Options(stored=True)  # no answer is stored, so that no query is asked
UNIT = """
unit: sum
formats: {{a: {a}, b: {a}, c: {c}, d: {d}}}
length: {n}
roundings: {{r: "round({d}, nearest_even)"}}
steps: {{d: "{text}"}}
"""
ONE, HALF, MINUS, LARGEST, TINY = 0x3C00, 0x3800, 0xBC00, 0x7BFF, 0x0C00  # f16: 1, 1/2, -1, 65504, 2^-12
FMA, TWO_PRODUCTS, CHAIN = "r(exact(a[0] * b[0], c))", "r(exact(a[0:2] * b[0:2], c))", "r(exact(a[1] * b[1], {}))"


def unit(text: str, n: int = 1, a: str = "f16", c: str = "f32", d: str = "f32") -> Model:
    return Model(text, parse_unit(UNIT.format(text=text, n=n, a=a, c=c, d=d), "sum.yaml"))


def features(model: Model, row: list[int]) -> set[str]:
    problem = Problem(model, model)
    ((left, right),) = exercised_features(problem, replay(problem, [tuple(row)], traced=True))
    assert left == right
    return set(left)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([ONE, ONE, 0x3F000000], set()),  # 1 + 0.5
        ([ONE, ONE, 0xBF800000], {"cancellation", "zero"}),  # 1 - 1
        ([ONE, MINUS, 0x3F000000], {"cancellation", "negative"}),  # -1 + 0.5
        ([ONE, ONE, 0x3F800000], {"carry"}),  # 1 + 1
        ([ONE, ONE, 0x33800000], {"tie", "rounded down"}),  # 1 + 2^-24
        ([ONE, ONE, 0x34400000], {"tie", "rounded up"}),  # 1 + 1.5 * 2^-23
        ([ONE, ONE, 0x33800001], {"rounded up"}),
        ([ONE, ONE, 0x337FFFFF], {"rounded down"}),
        ([0, ONE, 0x00000001], {"subnormal"}),
        ([0, ONE, 0], {"zero"}),
    ],
)
def test_one_fused_multiply_add(row: list[int], expected: set[str]) -> None:
    assert features(unit(FMA), row) == expected


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([ONE, ONE, ONE, MINUS, 0x00000001], {"cancellation", "subnormal"}),  # 1 - 1 + 2^-149
        ([ONE, ONE, ONE, ONE, 0], {"carry"}),
        ([HALF, ONE, ONE, ONE, 0], set()),
        ([HALF, HALF, ONE, ONE, 0xBF800000], {"cancellation", "zero"}),
        ([TINY, 0, TINY, 0, 0x3F800000], {"tie", "rounded down"}),
    ],
)
def test_an_exact_sum_of_three(row: list[int], expected: set[str]) -> None:
    """Rows a0, a1, b0, b1, c."""
    assert features(unit(TWO_PRODUCTS, 2), row) == expected


def test_every_step_counts() -> None:
    """1 + 2^-24 is rounded to 1, and 1 - 1 is zero; the sum cut to 11 bits is a tie before."""
    row = [TINY, ONE, TINY, MINUS, 0x3F800000]
    assert features(unit(CHAIN.format(FMA), 2), row) == {"tie", "rounded down", "cancellation", "zero"}
    cut = unit("r(cut(exact(a[0] * b[0], c), 11))")
    assert features(cut, [ONE, ONE, 0x3A000000]) == {"tie", "rounded down"}  # 1 + 2^-11


def test_overflow_and_integers() -> None:
    assert features(unit(FMA, d="f16"), [LARGEST, ONE, 0x477FE000]) == {"carry", "overflow"}  # 65504 + 65504
    assert features(unit(FMA, d="f16"), [LARGEST, ONE, 0x41800000]) == {"tie", "rounded up", "overflow"}  # + 16
    whole = unit(FMA, a="int8", c="int32", d="int32")
    assert features(whole, [5, 1, 2]) == set()
    assert features(whole, [1, 1, 0x7FFFFFFF]) == {"carry", "overflow"}
    assert features(whole, [0xFF, 1, 0x80000000]) == {"negative", "overflow"}
    assert features(whole, [0, 1, 0x80000000]) == {"negative"}


def test_further_vectors_are_sampled_and_each_says_what_it_exercises_where() -> None:
    """Of one chain and of two runs: no query is needed, and no two vectors exercise the same in both."""
    chain, runs = "r(exact(a[0] * b[0], +0))", ["r(exact(a[0] * b[0], +0))", "r(exact(a[1] * b[1], +0))"]
    for k in range(1, 4):
        chain = f"r(exact(a[{k}] * b[{k}], {chain}))"
    runs = [f"r(exact(a[{k + 2}] * b[{k + 2}], {run}))" for k, run in enumerate(runs)]
    question = pair_of(unit(chain, 4, c="none"), unit(f"r(exact({', '.join(runs)}))", 4, c="none"), Inputs(finite=True))
    answered = answer(question, replace(UNASKED, count=8))
    (pair,) = answered.pairs
    assert (len(answered.vectors), pair.outcome.steps, pair.outcome.complete) == (8, [], True)
    rows = [vector.to_json() for vector in answered.vectors]
    assert len({(str(row["exercises"]), str(row.get("exercises_alone"))) for row in rows}) == 8
    for vector, witness in zip(answered.vectors, pair.outcome.witnesses, strict=True):
        left, right = map(set, witness.exercises)
        assert set(vector.exercises) == left | right
        alone = {name: own for name, own in (("left", left - right), ("right", right - left)) if own}
        assert {name: set(own) for name, own in vector.extra.get("exercises_alone", {}).items()} == alone
        for name, own in alone.items():
            assert all(f"{feature} ({name})" in vector.exercises_in_words for feature in own)
