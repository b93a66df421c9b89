"""Algorithms: against exact rationals, symbolic against executable, matrices against dot products, their texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaprobe.smtmodel.algorithms import ALGORITHMS
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.compiled import compile_model
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.dot import RESULT, Dot
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.multiword import Multiword, parse_scheme
from mmaprobe.smtmodel.tables.reference import parse_plan_path, parse_reference
from tests import inputs
from tests.oracles import algorithm_oracle as oracle
from tests.oracles.family_oracle import parameters_of
from tests.oracles.oracle import evaluate
from tests.oracles.termeval import evaluate_term

pytestmark = pytest.mark.compilers

Patterns = NDArray[np.uint64]

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
AMPERE = "ampere/mma/m16n8k16.f32.f16.f16.f32"
TF32 = "ampere/mma/m16n8k8.f32.tf32.tf32.f32"
BF16 = "hopper/mma/m16n8k16.f32.bf16.bf16.f32"
CDNA3 = "cdna3/mfma/f32_16x16x8_xf32"
ORDER_6 = ((0, 0), (0, 1), (1, 0), (0, 2), (1, 1), (2, 0))
ORDER_9 = (*ORDER_6, (1, 2), (2, 1), (2, 2))


def oracle_unit(model: Model) -> oracle.Unit:
    formats = {side: getattr(model, side).name for side in "abcd"}
    return partial(evaluate, formats, parameters_of(model))


def recipe(text: str) -> Callable[[Sequence[int], Sequence[int], int], int]:
    """The oracle of an algorithm reference of this file."""
    algorithm = parse_scheme(text)
    model = parse_reference(algorithm.unit)
    unit, length = oracle_unit(model), model.length
    split = (algorithm.split, algorithm.words, algorithm.scale)

    def run(a: Sequence[int], b: Sequence[int], c: int) -> int:
        left = oracle.words(a, algorithm.source, model.a.name, *split)
        right = oracle.words(b, algorithm.source, model.b.name, *split)
        if algorithm.name == "markidis":
            return oracle.markidis(unit, length, left, right, c)
        if algorithm.name == "ootomo-yokota":
            return oracle.ootomo_yokota(unit, length, left, right, c, 11, algorithm.products == 4)
        if algorithm.chain != "all":
            return oracle.chained(unit, length, left[0], right[0], c, algorithm.chain)
        order = {1: ORDER_6[:1], 3: ORDER_6[:3], 4: (*ORDER_6[:3], (1, 1)), 6: ORDER_6, 9: ORDER_9}
        return oracle.largest_first(unit, length, left, right, c, order[algorithm.products])

    return run


CASES = {
    "markidis": 9,
    f"markidis@unit={TF32},split=toward_zero": 9,
    f"markidis@unit={VOLTA},split=nearest_away": 5,
    "ootomo-yokota": 17,
    f"ootomo-yokota@unit={TF32},split=nearest_away": 9,
    f"ootomo-yokota@unit={VOLTA},split=toward_zero,products=4": 5,
    f"ootomo-yokota@unit=({TF32}@fraction_bits=23,block=8),products=4": 9,
    "multiword@words=1,products=1": 9,
    "multiword": 9,
    f"multiword@unit={CDNA3},products=4,split=toward_zero": 5,
    f"multiword@unit={BF16},words=3,products=6": 5,
    f"multiword@unit={BF16},words=3,products=9": 5,
    "tf64": 3,
    "tf64@products=4,split=toward_zero": 3,
    "multiword@words=1,products=1,source=f64,unit=ieee/fma/f64": 3,
    f"multiword@words=1,products=1,chain=2,addend=first,unit={VOLTA}": 18,
}  # fmt: skip


def sample(algorithm: Multiword, length: int, count: int, seed: int = 1) -> tuple[Patterns, Patterns, Patterns]:
    """Random, cancelling, tiny, sparse and random-bit numbers of the source format, with special values."""
    # a chain of multiply-adds with the shapes of the algorithm's own inputs
    name = {"f32": "f32", "f64": "f64", "f16": "f16"}[algorithm.source]
    like = parse_reference(f"ieee/fma/{name}@length={length}")
    a, b, c = inputs.mixture(like, count, np.random.default_rng(seed))
    chosen = np.random.default_rng(seed).permutation(len(c))[:count]
    return a[chosen], b[chosen], c[chosen]


def on_lanes(plan: Plan, a: Patterns, b: Patterns, c: Patterns) -> list[int]:
    carrier, fmt = ArrayCarrier(), plan.a
    sides = [[carrier.lanes(np.ascontiguousarray(side[:, k]), fmt.width) for k in range(a.shape[1])] for side in (a, b)]
    with np.errstate(over="ignore"):
        d = Dot(plan, *sides, carrier.lanes(c, plan.c.width)).all_steps()[RESULT]
    return [int(x) for x in np.broadcast_to(d.node, c.shape)]


def same(plan: Plan, ours: int, theirs: int) -> bool:
    """Bit for bit; NaNs are one where the last step names no pattern."""
    kinds = [oracle.decode(plan.c.name, pattern).kind for pattern in (ours, theirs)]
    return ours == theirs or kinds == ["nan", "nan"]


@pytest.mark.parametrize("text", CASES)
def test_exact_rationals(text: str) -> None:
    plan = parse_plan_path(text)
    a, b, c = sample(parse_scheme(text), CASES[text], 120)
    ours = on_lanes(plan, a, b, c)
    run = recipe(text)
    theirs = [run(*row) for row in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)]
    wrong = [k for k in range(len(c)) if not same(plan, ours[k], theirs[k])]
    assert not wrong, (hex(ours[wrong[0]]), hex(theirs[wrong[0]]), a[wrong[0]], b[wrong[0]], c[wrong[0]])
    kinds = [oracle.decode(plan.c.name, x).kind for x in ours]
    assert "nan" in kinds
    assert kinds.count("finite") > 40
    assert len(set(ours)) > 40


def symbolic(plan: Plan, length: int) -> Bits:
    carrier, width = TermCarrier(), plan.a.width
    sides = [[carrier.symbol(f"{side}{k}", width) for k in range(length)] for side in "ab"]
    return Dot(plan, *sides, carrier.symbol("c", plan.c.width)).all_steps()[RESULT]


SYMBOLIC = {
    f"markidis@unit={VOLTA},split=toward_zero": 5,
    "ootomo-yokota@products=4": 2,
    f"ootomo-yokota@unit={TF32},split=nearest_away": 2,
    f"multiword@unit={BF16},words=3,products=6,addend=last": 2,
    "tf64": 2,
}


@pytest.mark.parametrize("text", SYMBOLIC)
def test_symbolic_gives_the_same_bits(text: str) -> None:
    plan, length = parse_plan_path(text), SYMBOLIC[text]
    a, b, c = sample(parse_scheme(text), length, 60, seed=2)
    values = {f"{name}{k}": side[:, k] for name, side in (("a", a), ("b", b)) for k in range(length)}
    found = evaluate_term(symbolic(plan, length).node, {**values, "c": c})
    assert [int(x) for x in found] == on_lanes(plan, a, b, c)


MATRICES = [
    "markidis",
    f"ootomo-yokota@unit={TF32},split=nearest_away",
    "ootomo-yokota@products=4,addend=last",
    "multiword@loop=tiles,chain=3,order=small_first,addend=first",
    f"multiword@unit={BF16},words=3,products=6,sums=by_size,correction_chain=2",
    "multiword@order=01-00-10",
    "tf64",
]


@pytest.mark.parametrize("text", MATRICES)
@pytest.mark.parametrize("engine", ["numpy", "compiled"])
def test_matrices_are_dot_products(text: str, engine: str) -> None:
    plan, algorithm = parse_plan_path(text), parse_scheme(text)
    (model,) = plan.models
    if engine == "compiled" and compile_model(model) is None:
        pytest.skip("no compiler")
    rows, columns, k = 7, 5, 2 * model.length + 3
    x, _, z = sample(algorithm, k, rows * columns, seed=3)
    y = sample(algorithm, k, columns, seed=4)[1].T
    left, c = x[:rows], z.reshape(rows, columns)
    d = simulate(left, y, c, plan, engine=engine)  # type: ignore[arg-type]
    i, j = (index.ravel() for index in np.indices(c.shape))
    assert d.ravel().tolist() == on_lanes(plan, left[i], y[:, j].T, c.ravel())


def test_table_5_of_valpey() -> None:
    """Where Ootomo-Yokota is less accurate than Markidis; b1 is 1.998046875 * 2^7 (the printed exponent is -7)."""
    a = np.array([[1.0009765625 * 2**-8, 1.326171875 * 2**-14, 2**-12, 2**-12]], dtype=np.float32)
    b = np.array([[1.998046875 * 2**7, 1.4443359375 * 2**-7, 2**-12, 2**-12]], dtype=np.float32)
    c = np.array([2**-24], dtype=np.float32)
    bits = [side.view(np.uint32).astype(np.uint64) for side in (a, b, c)]
    for split in ("toward_zero", "nearest_even"):
        results = [
            on_lanes(parse_plan_path(f"{name}@unit={VOLTA},split={split}"), *bits)[0]
            for name in ("markidis", "ootomo-yokota")
        ]
        assert results == [0x3F800001, 0x3F800000]


def test_steps_say_where_two_algorithms_part() -> None:
    """Table 5 again, as sums in the unit: with c, 1 + 2^-23; without, 1, to which 2^-24 outside adds nothing."""
    a = np.array([1.0009765625 * 2**-8, 1.326171875 * 2**-14, 2**-12, 2**-12], dtype=np.float32)
    b = np.array([1.998046875 * 2**7, 1.4443359375 * 2**-7, 2**-12, 2**-12], dtype=np.float32)
    carrier = ArrayCarrier()
    sides = [[carrier.lanes(x.view(np.uint32).reshape(1), 32) for x in side] for side in (a, b)]
    c = carrier.lanes(np.array([2**-24], dtype=np.float32).view(np.uint32), 32)
    with np.errstate(over="ignore"):
        first, second = (Dot(parse_plan_path(f"{name}@unit={VOLTA}"), *sides, c).all_steps()
                         for name in ("markidis", "ootomo-yokota"))  # fmt: skip
    values = [
        {str(name): int(np.asarray(x.node).reshape(-1)[0]) for name, x in steps.items()} for steps in (first, second)
    ]
    assert list(values[0])[:4] == [f"a.word0[{k}]" for k in range(4)]
    assert list(values[0])[-3:] == ["unit.a1b0[0:4]", "unit.a0b0[0:4]", "d"]
    assert [x["unit.a0b0[0:4]"] for x in values] == [0x3F800001, 0x3F800000]
    assert [x["d"] for x in values] == [0x3F800001, 0x3F800000]
    assert {"unit.a0b1[0:4]", "unit.a1b0[0:4]", "outside.a1b0[:4]"} < set(values[1])
    assert all(x["a.word1[1]"] == 0 for x in values)


def test_texts_are_read_back() -> None:
    for text in (*CASES, *MATRICES):
        algorithm = parse_scheme(text)
        assert parse_scheme(algorithm.reference) == algorithm
    assert {"markidis", "ootomo-yokota", "multiword", "tf64"} < set(ALGORITHMS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ootomo-yokotta", "did you mean 'ootomo-yokota'"),
        ("markidis@splitt=toward_zero", "did you mean 'split'"),
        ("markidis@split=to_zero", "did you mean 'toward_zero'"),
        ("markidis@products=2", "one keeps 1, 3, 4 products"),
        ("markidis@products=three", "products: three is impossible"),
        ("markidis@order=biggest", "order: biggest is impossible"),
        ("markidis@order=00-01", "must be a permutation of the products kept"),
        ("markidis@scale=11", "sums=by_size"),
        ("multiword@correction_chain=2", "one chain"),
        ("multiword@chain=0", "chain: 0 is impossible"),
        ("multiword@words=9", "words: 9 is impossible"),
        ("multiword@split", "name=value"),
        ("multiword@split=up,split=down", "given twice"),
        ("multiword@unit=ampere/mma/m16n8k8.f32.tf32.tf32", "unknown model"),
        ("multiword@unit=(ampere/mma/m16n8k8.f32.tf32.tf32.f32@fraction_bits=99)", "fraction_bits: 99"),
        ("multiword@unit=rtx-blackwell/mma_block_scale/m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3", "scale factors"),
        ("multiword@,split=up", "commas between"),
    ],
)  # fmt: skip
def test_what_cannot_be(text: str, message: str) -> None:
    with pytest.raises(MmaprobeError, match=message) as caught:
        parse_plan_path(text)
    assert caught.value.exit_code == 2
