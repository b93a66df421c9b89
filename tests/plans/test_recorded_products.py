"""The plans of recorded products: one search for `identify --gemm` and `compare --gemm`, and no plan that an element
refutes."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

import mmaprobe
from mmaprobe.cli.commands.identify_gemm import _besides, _parity, _show, _step
from mmaprobe.cli.main import main
from mmaprobe.queries.plans import library
from mmaprobe.queries.plans.activations import activation_of
from mmaprobe.queries.plans.apart import same_sizes
from mmaprobe.queries.plans.candidates import Candidates
from mmaprobe.queries.plans.cut_sums import CutSums, cuts_of
from mmaprobe.queries.plans.dealt_sums import DealtSums, in_folds
from mmaprobe.queries.plans.forms import Form, forms_of, named, plain, stored_of
from mmaprobe.queries.plans.library import Mapped, MappedRule
from mmaprobe.queries.plans.nested_sums import nested
from mmaprobe.queries.plans.recorded import LOOKED, PART, Recorded, Sample
from mmaprobe.queries.plans.results import FIRST, KINDS, UNEVEN, plans_of_results, with_others
from mmaprobe.queries.plans.rules import Shape, features_of, learned
from mmaprobe.queries.plans.summed import Summed, summed
from mmaprobe.queries.plans.tree_sums import FEW, TreeSums
from mmaprobe.queries.plans.unit_stages import halved
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.interrupts import CutShort, Interrupted, TimeUp, state
from mmaprobe.smtmodel.base.libraries import compiler
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.smtmodel.inputs.signature import parse_signature
from mmaprobe.smtmodel.nodes import Constant, Element, Round
from mmaprobe.smtmodel.nodes.given import Given
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain, Fold, Plan, Products, Stage
from mmaprobe.smtmodel.plans.gemm import Engine, simulate
from mmaprobe.smtmodel.plans.joins import Order
from mmaprobe.smtmodel.plans.named import in_format, in_runs, in_runs_at, promoted
from mmaprobe.smtmodel.plans.partitions import Equal, Interleaved, Lanes, Runs
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.tables.reference import parse_plan_path, parse_reference

pytestmark = pytest.mark.solvers

HOPPER = parse_reference("hopper/mma/m16n8k16.f32.f16.f16.f32")
UNITS = ("fma", "muladd")
CHAIN, R = Chain(HOPPER), Rounding(HOPPER.d)
Numbers = NDArray[Any]
Save = Callable[..., list[str]]


def factors(rows: int, length: int, columns: int) -> tuple[Numbers, Numbers]:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((rows, length), (length, columns)))
    return a, b


def product(stage: Stage, a: Numbers, b: Numbers, narrow: bool = False) -> Numbers:
    total = Products(stage, Constant())
    plan = Plan(HOPPER.a, HOPPER.b, HOPPER.c, Round(total, Rounding(FORMATS["f16"])) if narrow else total)
    d = simulate(np.ascontiguousarray(a).view(np.uint16), np.ascontiguousarray(b).view(np.uint16), None, plan)
    return d.view(np.float16 if narrow else np.float32)


@pytest.fixture(autouse=True)
def few_new_elements_where_no_test_looks(request: pytest.FixtureRequest) -> None:
    looks = (test_plans_that_one_product_does_not_tell_apart_are_named, test_numbers_of_few_exponents_hide_plans)
    if request.function not in looks:
        request.getfixturevalue("few_new_elements")


@pytest.fixture
def save(tmp_path: Path) -> Save:
    def saved(**matrices: Numbers) -> list[str]:
        for name, matrix in matrices.items():
            np.save(tmp_path / f"{name}.npy", matrix)
        return [str(tmp_path / f"{name}.npy") for name in matrices]

    return saved


def run(*words: str) -> tuple[int, dict[str, Any], str]:
    done = CliRunner().invoke(main, [*words, "--json"])
    return done.exit_code, json.loads(done.stdout) if done.stdout else {}, " ".join(done.stderr.split())


def test_numbers_of_few_exponents_hide_plans(save: Save) -> None:
    """Sums of e4m3 numbers near 1 hardly round, so that each unit gives them: elements of all exponents show that the
    units differ, and with which input."""
    rng = np.random.default_rng(21)
    numbers = [rng.standard_normal(shape).astype(ml_dtypes.float8_e4m3fn) for shape in ((24, 64), (64, 24))]
    a, b = (one.view(np.uint8) for one in numbers)
    d = (numbers[0].astype(np.float64) @ numbers[1].astype(np.float64)).astype(np.float32)
    files = save(a=a, b=b, d=d)
    code, found, text = run(
        "identify", "--gemm", "--device", f"recorded:{','.join(files)}", "--formats", "e4m3,e4m3,f32"
    )
    assert code == 0, text
    assert re.search("[0-9]+ plans give these elements, which do not show which one is true, or whether another", text)
    assert "others give the same in new elements like these, but something else in " in text
    assert "elements of numbers of all exponents: " in text
    assert "a product of such numbers, recorded too, tells them apart" in text
    assert "plans, some under several names, tried at K = 64" in text
    others = [one for one in found["others"] if one.get("wide")]
    assert others
    shown = others[0]["told_apart"]
    x, y = np.zeros((1, 64), np.uint8), np.zeros((64, 1), np.uint8)
    x[0, shown["products"]], y[shown["products"], 0] = ([int(one, 16) for one in shown[side]] for side in "ab")
    names = next(iter(found["plans"])), others[0]["plans"][0]
    results = [
        int(simulate(x, y, None, parse_plan(found["plans"][name], name, parse_reference))[0, 0]) for name in names
    ]
    assert results == [int(one, 16) for one in shown["results"]]
    assert results[0] != results[1]


def test_a_plan_that_reads_subnormal_factors_as_zeros_says_so(save: Save) -> None:
    """CDNA2's units add as a loop may; without a subnormal factor nothing shows that they read those as zeros."""
    a, b = (np.where(np.abs(side) < 2**-10, np.float16(1), side) for side in factors(24, 64, 20))
    stage = Chain(parse_reference("cdna2/mfma/f32_16x16x16f16"))
    for tiny in False, True:
        if tiny:
            a[0, :4], b[0, 5:9] = np.float16(2**-20), np.float16(2**-20)
        files = save(a=a, b=b, d=product(stage, a, b))
        code, found, text = run("identify", "--gemm", "--device", f"recorded:{','.join(files)}")
        assert code == 0, text
        assert next(iter(found["plans"])).startswith("sum(cdna2/mfma/f32_")
        said = "no number of A or B is subnormal, so that these elements do not show whether such numbers count: "
        assert (f"{said}sum(cdna2" in text) is not tiny


def test_of_two_results_no_plan_with_missing_runs_is_named_first(save: Save) -> None:
    """One chain and two runs of 64: both are also three runs of which some are missing at this K."""
    unit = Chain(parse_reference("hopper/wgmma/m64n8k32.f32.e4m3.e4m3"))
    rng, fmt = np.random.default_rng(8), FORMATS["e4m3"]
    a, b = (
        rng.standard_normal(shape).astype(ml_dtypes.float8_e4m3fn).view(np.uint8) for shape in ((32, 128), (128, 32))
    )
    sums = (Round(Products(unit, Constant()), Rounding(FORMATS["f32"])), Products(in_runs(2, unit, R), Constant()))
    d1, d2 = (simulate(a, b, None, Plan(fmt, fmt, FORMATS["f32"], one)).view(np.float32) for one in sums)
    files = save(a=a, b=b, d1=d1, d2=d2)
    _, found, text = run("compare", "--gemm", *files, "--formats", "e4m3,e4m3,f32", "--timeout", "60")
    assert "runs of K" in text
    assert "3 runs of K" not in text
    assert next(iter(found["gemm"]["plans"]["D1"]["plans"])).startswith(("r(sum(", "sum(hopper"))


@pytest.mark.parametrize(
    ("kind", "length", "plan", "others"),
    [
        (np.int32, 40, "sum(hopper/wgmma/m64n8k32.s32.s8.s8, +0)", ""),
        (
            np.float32,
            1300,
            "r(sum(hopper/wgmma/m64n8k32.s32.s8.s8, +0))",
            "elements of integers near the largest: r(sum(",
        ),
    ],
)
def test_sums_of_integers_are_found(save: Save, kind: type, length: int, plan: str, others: str) -> None:
    """Added as integers, which f32 rounds only where they are large: no recorded element is."""
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((12, length), (length, 12)))
    files = save(a=a, b=b, d=(a.astype(np.int64) @ b.astype(np.int64)).astype(kind))
    words = "identify", "--gemm", "--device", f"recorded:{','.join(files)}", "--formats"
    done = CliRunner().invoke(main, [*words, f"int8,int8,{'int32' if kind is np.int32 else 'f32'}"])
    assert done.exit_code == 0, done.output
    text = " ".join(done.output.split())
    assert text.startswith(f"{plan} gives all of the 144 elements looked at")
    assert others in text


def test_a_unit_of_more_products_than_k_has_no_tail() -> None:
    """Its tail would be all of the sum, and be named beside a unit that takes no product."""
    unit = parse_reference("x86/amx/tdpbf16ps")
    for length, tails in (unit.length - 1, False), (unit.length + 1, True):
        candidates = Candidates(parse_signature("bf16,bf16,f32", length))
        chains = [one for one in candidates.stages(unit, length) if isinstance(one, Chain)]
        assert Chain(unit) in chains
        assert any(one.tail is not None for one in chains) is tails


def test_a_split_of_a_matrix_unit_is_found_in_one_recording(save: Save, tmp_path: Path) -> None:
    """Of the formats in the files; `compare` finds the same plan, whatever the other result."""
    a, b = factors(24, 192, 20)
    d, other = product(in_runs(3, CHAIN, R, "backwards"), a, b), product(CHAIN, a, b)
    files = save(a=a, b=b, d=d, other=other)
    saved = "--save", str(tmp_path / "plan.yaml")
    code, found, text = run("identify", "--gemm", "--device", f"recorded:{','.join(files[:3])}", *saved)
    assert code == 0, text
    same = len(found["plans"]) - sum(len(other["plans"]) for other in found.get("others", ()))
    assert same > 1
    assert f"found for K = 192: others were not asked; one of {same} plans that give the same there" in text
    wanted = f"sum(split(3, {HOPPER.reference}, r, order=backwards), +0)"
    assert wanted in found["plans"]
    assert "gives all of the 480 elements looked at" in text
    assert (found["looked_at"], found["best_agrees"], found["untried"], found["left_out"]) == (480, 480, [], [])
    code, found, _ = run("compare", "--gemm", *files)
    assert code == 0
    assert wanted in found["gemm"]["plans"]["D1"]["plans"]


def test_plans_that_one_product_does_not_tell_apart_are_named(
    save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loop in f32 whose products are rounded, times 0.3, stored in f16, to which a bias in f32 is added: fused steps
    give the same elements. Both are named, which first and why, and a command that writes an input that one of them
    alone is right about."""
    rng = np.random.default_rng(21)
    a, b, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((24, 60), (60, 20), (1, 20)))

    def kernel(a: Numbers, b: Numbers, bias: Numbers) -> Numbers:
        total = np.zeros((len(a), b.shape[1]), np.float32)
        for k in range(a.shape[1]):
            total = total + a[:, k : k + 1] * b[k]
        return (total * np.float32(0.3)).astype(np.float16).astype(np.float32) + bias

    files, plan = save(a=a, b=b, c=bias, d=kernel(a, b, bias)), tmp_path / "plan.yaml"
    found = run("identify", "--gemm", "--device", f"recorded:{','.join(files)}", "--save", str(plan), "--timeout", "60")
    code, document, text = found
    fused, rounded = (f"r(exact(r2(r(product(number(0x3e99999a, f32), sum({unit}, +0)))), c))" for unit in UNITS)
    assert code == 0
    assert next(iter(document["plans"])) == fused
    [other] = [one for one in document["others"] if rounded in one["plans"]]
    assert 0 < other["differ"] < other["new"]
    assert "in f16 one product does not tell these plans apart" in text
    ambiguous = "which do not show which one is true, or whether another is; named first: the sh"
    assert re.search(f"[0-9]+ plans give these elements, {ambiguous}", text)
    assert rounded in text[text.index("something else in ") :]
    assert f"{len(document['others'])} other plans may be the true one" in text
    shown = other["told_apart"]
    x, y = np.zeros((1, 60), np.uint32), np.zeros((60, 1), np.uint32)
    x[0, shown["products"]], y[shown["products"], 0] = ([int(one, 16) for one in shown[side]] for side in "ab")
    x, y, z = x.view(np.float32), y.view(np.float32), np.array([[int(shown["c"], 16)]], np.uint32).view(np.float32)
    one, two = (int(result, 16) for result in shown["results"])
    assert kernel(x, y, z).view(np.uint32)[0, 0] == two != one
    assert mmaprobe.matmul(x, y, z, plan=str(plan)).view(np.uint32)[0, 0] == one
    assert f"({one:08x}) from {rounded} ({two:08x}): python -c" in text
    monkeypatch.chdir(tmp_path)
    exec(re.sub(r"\\ ", "", text.split('python -c "')[1].split('"')[0]))
    x, y, z = (np.load(f"tell-{name}.npy") for name in "abc")
    assert x.shape == a.shape
    assert z.shape == (len(a), b.shape[1])
    assert kernel(x, y, z).view(np.uint32)[0, 0] == two


def test_plans_that_were_found_are_asked_of_all_recorded_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where products are exact a fused step and one that rounds them are right; one row has others, and is not among
    the first elements."""
    rng = np.random.default_rng(5)
    a, b = (rng.integers(1, 99, shape).astype(np.float32) / 64 for shape in ((40, 24), (24, 20)))
    a[7] = rng.uniform(3, 4, 24)
    d = np.zeros((40, 20), np.float32)
    for k in range(24):
        d += a[:, k : k + 1] * b[k]
    patterns = [side.view(np.uint32) for side in (a, b, d)]
    monkeypatch.setattr(Recorded, "parts", lambda self: [self.block(np.arange(4), np.arange(20))])
    asked = parse_signature("f32,f32,f32", 24)
    recorded = Recorded(asked, patterns[0], patterns[1], None, (patterns[2],))
    assert 7 not in with_others((), recorded)[0]
    [found] = plans_of_results(recorded, (), lambda text: None, 30)
    assert "sum(muladd, +0)" in found.names()
    assert "sum(fma, +0)" not in found.names()
    assert found.looked == d.size
    for plan in found.plans:
        assert np.array_equal(simulate(*patterns[:2], None, plan), patterns[2]), plan.reference


@pytest.mark.parametrize(
    ("at", "order", "length"),
    [
        ((48,), "sequential", 136),
        pytest.param((80, 112), "backwards", 200, marks=pytest.mark.slow),
        pytest.param((32, 64, 160), "pairwise", 200, marks=pytest.mark.slow),
    ],
)
def test_k_cut_at_a_few_places_is_found(at: tuple[int, ...], order: Order, length: int) -> None:
    """As by stream-K, C at the start; and no other way of cutting K gives these elements."""
    a, b = (side.view(np.uint16) for side in factors(24, length, 20))
    c = np.random.default_rng(1).standard_normal((24, 20)).astype(np.float32).view(np.uint32)
    stage = in_runs_at(at, CHAIN, R, order)
    d = simulate(a, b, c, Plan(HOPPER.a, HOPPER.b, HOPPER.c, Products(stage, Element("c"))))
    asked = parse_signature("f16,f16,f32,f32", length)
    [form, *_] = plain(asked, HOPPER.d)
    recorded = Recorded(asked, a, b, c, (d,))
    rows, columns = np.indices(d.shape)
    [sample] = recorded.elements(rows.ravel().tolist(), columns.ravel().tolist())
    cut = [stage for stage, _ in CutSums(HOPPER, form, sample, Candidates(asked).results).stages(form, sample)]
    assert cut == [stage]
    if order != "backwards":  # one whole search is enough
        return
    [found] = plans_of_results(recorded, (), lambda text: None, 60)
    assert stage in {products.stage for plan in found.plans for products in plan.sums}


def test_sums_of_cuts_are_those_of_their_plans() -> None:
    """With a last tile that is short, and factors rounded first."""
    a, b = (side.astype(np.float32).view(np.uint32) for side in factors(6, 120, 6))
    asked = parse_signature("f32,f32,f16", 120)
    h = Rounding(FORMATS["f16"])
    form = next(plain(asked, HOPPER.d, (h, h)))
    sample = Recorded(asked, a, b, None, (np.zeros((6, 6), np.uint16),)).elements(range(6), range(6))[0]
    sums = CutSums(HOPPER, form, sample, Candidates(asked).results)
    for at, orders in sums._ways():
        for order in orders:
            added = sums._added(at, order)
            for way in (0, len(at) // 2, len(at) - 1):
                stage = in_runs_at(tuple(int(x) * sums.tile for x in at[way]), CHAIN, R, order)
                plan = form.sum_of(stage)
                assert plan is not None
                wanted = Candidates(asked).results(plan, sample)
                assert wanted is not None
                assert (added[way].view(np.uint32) == wanted.ravel()).all()


@pytest.mark.parametrize("started", [False, True])
def test_sums_of_promoted_runs_are_those_of_their_plans(started: bool) -> None:
    """With a last tile that is short, and where C comes first."""
    a, b = (side.view(np.uint16) for side in factors(6, 200, 6))
    c = np.random.default_rng(1).standard_normal((6, 6)).astype(np.float32).view(np.uint32)
    asked = parse_signature("f16,f16,f32,f32", 200)
    form = Form(asked, HOPPER.d, (None, None), Element("c") if started else Constant(), Given(0, HOPPER.d))
    sample = Recorded(asked, a, b, c, (c,)).elements(range(6), range(6))[0]
    stages, added = CutSums(HOPPER, form, sample, Candidates(asked).results)._promoted
    for stage, sums in [*zip(stages, added, strict=True)][::7]:
        plan = form.sum_of(stage)
        assert plan is not None
        wanted = Candidates(asked).results(plan, sample)
        assert wanted is not None
        assert (sums.view(np.uint32) == wanted.ravel()).all(), plan


@pytest.mark.parametrize("length", [97, 96])
@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("unit", [HOPPER.reference, "ieee/muladd/f16"])
def test_sums_of_accumulators_are_those_of_their_plans(unit: str, started: bool, length: int) -> None:
    """With products that fill no turn, and where C comes first."""
    model, (a, b) = parse_reference(unit), (side.view(np.uint16) for side in factors(4, length, 4))
    asked = parse_signature(f"f16,f16,{model.c.name},{model.d.name}", length)
    c = np.random.default_rng(1).standard_normal((4, 4)).astype(f"f{model.c.width // 8}").view(kind_of(model.c))
    form = Form(asked, model.d, (None, None), Element("c") if started else Constant(), Given(0, model.d))
    [sample] = Recorded(asked, a, b, c, (c,)).elements(range(4), range(4))
    dealt = DealtSums(model, form, sample, Candidates(asked).results)
    levels, sums = dealt.every
    assert len(levels) > 20
    for one, own in zip(levels, sums, strict=True):
        plan = form.sum_of(dealt.stage(one))
        assert plan is not None
        wanted = Candidates(asked).results(plan, sample)
        assert wanted is not None
        assert (own.view(kind_of(model.d)) == wanted.ravel()).all(), plan


def accumulated(a: Numbers, b: Numbers, ways: int, backwards: bool = False) -> Numbers:
    """The product of matrices in accumulators that take the products in turn."""
    sums = [np.zeros((len(a), b.shape[1]), a.dtype) for _ in range(ways)]
    for k in range(a.shape[1]):
        sums[k % ways] = sums[k % ways] + np.outer(a[:, k], b[k])
    total, *others = sums[::-1] if backwards else sums
    for other in others:
        total = total + other
    return total


@pytest.mark.parametrize(
    ("ways", "length", "dtype", "backwards", "stage"),
    [
        (3, 100, np.float32, False, "lanes(muladd, r, 3, fold(3, 1))"),
        (5, 150, np.float32, True, "interleave(5, muladd, r, order=backwards)"),
        pytest.param(6, 200, np.float16, False, "lanes(muladd, r, 6, fold(6, 1))", marks=pytest.mark.slow),
    ],
)
def test_accumulators_that_take_products_in_turn_are_found(
    save: Save, ways: int, length: int, dtype: Any, backwards: bool, stage: str
) -> None:
    """Of a number that is no power of two, with K that it divides or not."""
    a, b = (side.astype(dtype) for side in factors(24, length, 32))
    files = save(a=a, b=b, d=accumulated(a, b, ways, backwards))
    code, found, text = run("identify", "--gemm", "--device", f"recorded:{','.join(files)}", "--timeout", "100")
    assert code == 0, text
    assert f"sum({stage}, +0)" in found["plans"], text


def test_five_accumulators_in_pairs_are_found(save: Save) -> None:
    """Two pairs, and one alone; their last turn is short."""
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((24, 102), (102, 32)))
    one, two, three, four, five = (accumulated(a[:, way::5], b[way::5], 1) for way in range(5))
    files = save(a=a, b=b, d=(one + two) + (three + four) + five)
    code, found, text = run("identify", "--gemm", "--device", f"recorded:{','.join(files)}")
    assert code == 0, text
    assert "sum(lanes(muladd, r, 5, fold(2, 1), fold(2, 1), fold(2, 1)), +0)" in found["plans"], text


@pytest.mark.parametrize("usual", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_accumulators_of_parts_of_k_are_found(save: Save, monkeypatch: pytest.MonkeyPatch, usual: bool) -> None:
    """Each of three parts of K in three accumulators, the parts added backwards; looked for when all else was tried."""
    for what in () if usual else ("stages", "shipped", "of_fewer_bits"):
        monkeypatch.setattr(Candidates, what, lambda *_: iter(()))
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((24, 153), (153, 32)))
    one, two, three = (accumulated(a[:, at : at + 51], b[at : at + 51], 3) for at in (0, 51, 102))
    files = save(a=a, b=b, d=three + two + one)
    code, found, text = run("identify", "--gemm", "--device", f"recorded:{','.join(files)}")
    assert code == 0, text
    assert "sum(split(3, interleave(3, muladd, r), r, order=backwards, grain=1), +0)" in found["plans"], text


@pytest.mark.parametrize("order", ["sequential", "backwards"])
def test_k_is_cut_at_more_tiles_where_nothing_else_is_found(order: Order) -> None:
    a, b = factors(4, 1300, 4)
    asked, stage = parse_signature("f16,f16,f32", 1300), in_runs_at((176, 816), CHAIN, R, order)
    d = product(stage, a, b).view(np.uint32)
    recorded = Recorded(asked, a.view(np.uint16), b.view(np.uint16), None, (d,))
    [sample] = recorded.elements([0, 1, 2, 3] * 4, [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4)
    forms, evaluate = [next(plain(asked, HOPPER.d))], Candidates(asked).results
    assert not [one for _, one, _ in cuts_of(HOPPER, forms, [sample], evaluate)]
    assert stage == next(cuts_of(HOPPER, forms, [sample], evaluate, within=True))[1]


@pytest.mark.parametrize("length", [93, 320])
@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize("unit", ["ieee/muladd/f16", "ieee/fma/f32.f16.f16.f32"])
def test_sums_of_trees_are_those_of_their_plans(unit: str, started: bool, length: int) -> None:
    """With blocks and turns that are not full, and where C comes first."""
    model, (a, b) = parse_reference(unit), (side.view(np.uint16) for side in factors(4, length, 4))
    asked = parse_signature(f"f16,f16,{model.c.name},{model.d.name}", length)
    c = np.random.default_rng(1).standard_normal((4, 4)).astype(f"f{model.c.width // 8}").view(kind_of(model.c))
    form = Form(asked, model.d, (None, None), Element("c") if started else Constant(), Given(0, model.d))
    [sample] = Recorded(asked, a, b, c, (c,)).elements(range(4), range(4))
    trees = TreeSums(model, form, sample, Candidates(asked).results)
    levels, sums = trees.every
    assert len(levels) > 50
    for one, own in zip(levels, sums, strict=True):
        plan = form.sum_of(trees.stage(one))
        assert plan is not None
        wanted = Candidates(asked).results(plan, sample)
        assert wanted is not None
        assert (own.view(kind_of(model.d)) == wanted.ravel()[:FEW]).all(), plan


@pytest.mark.parametrize(("unit", "length"), [("ieee/fma/f32.f16.f16.f32", 75), (HOPPER.reference, 200)])
@pytest.mark.parametrize("started", [False, True])
def test_sums_of_parts_are_those_of_their_plans(unit: str, length: int, started: bool) -> None:
    """With a last part that is shorter, of whose turns one is not full, and where C comes first."""
    model, (a, b) = parse_reference(unit), (side.view(np.uint16) for side in factors(4, length, 4))
    asked = parse_signature(f"f16,f16,{model.c.name},{model.d.name}", length)
    c = np.random.default_rng(1).standard_normal((4, 4)).astype(np.float32).view(np.uint32)
    form = Form(asked, model.d, (None, None), Element("c") if started else Constant(), Given(0, model.d))
    [sample] = Recorded(asked, a, b, c, (c,)).elements(range(4), range(4))
    kinds = set[tuple[type, ...]]()
    for parts in nested(model, form, sample, Candidates(asked).results):
        levels, sums = parts.every
        for one, own in [*zip(levels, sums, strict=True)][len(kinds) % 5 :: 7]:
            plan = form.sum_of(parts.stage(one))
            assert plan is not None
            wanted = Candidates(asked).results(plan, sample)
            assert wanted is not None
            assert (own.view(kind_of(model.d)) == wanted.ravel()).all(), plan
            kinds.add(tuple(type(level.partition) for level in one))
    assert {(Equal,), (Equal, Interleaved), (Equal, Lanes), (Equal, Runs), (Runs, Interleaved)} <= kinds


def shuffled(lanes: Numbers) -> Numbers:
    """The sum over the last axis as a warp's shuffles add it: lane i takes what lane i + n/2 has."""
    while (half := lanes.shape[-1] // 2) > 0:
        lanes = lanes[..., :half] + lanes[..., half:]
    return lanes[..., 0]


def neighbours(lanes: Numbers) -> Numbers:
    """The sum over the last axis, in pairs of neighbours."""
    while lanes.shape[-1] > 1:
        lanes = lanes[..., ::2] + lanes[..., 1::2]
    return lanes[..., 0]


def in_order(sums: Numbers) -> Numbers:
    """The sum over the last axis, one after another."""
    total: Numbers = np.add.accumulate(sums, axis=-1)[..., -1]
    return total


def threads(products: Numbers) -> Numbers:
    """The sum of 128 threads: each adds every 128th product, then each warp its threads, then one thread the warps."""
    turns = products.reshape(*products.shape[:-1], -1, 128)
    return in_order(shuffled(in_order(turns.swapaxes(-1, -2)).reshape(*products.shape[:-1], -1, 32)))


def blocks(size: int, tree: Callable[[Numbers], Numbers], join: Callable[[Numbers], Numbers]) -> Any:
    """The sum of blocks of products, each in a tree."""
    return lambda products: join(tree(products.reshape(*products.shape[:-1], -1, size)))


@pytest.mark.parametrize(
    ("length", "dtype", "kernel", "stage"),
    [
        (384, np.float32, blocks(32, neighbours, in_order), "promote(32, halve(1, muladd, r), r)"),
        (
            128, np.float32, blocks(16, shuffled, neighbours),
            "add(16, lanes(muladd, r, 16, fold(2, 8), fold(2, 4), fold(2, 2), fold(2, 1)), r, order=pairwise)",
        ),
        (
            96, np.float16, blocks(32, shuffled, in_order),
            "promote(32, lanes(fma, r, 32, fold(2, 16), fold(2, 8), fold(2, 4), fold(2, 2), fold(2, 1)), r)",
        ),
        (
            512, np.float32, threads,
            "lanes(muladd, r, 128, fold(2, 16), fold(2, 8), fold(2, 4), fold(2, 2), fold(2, 1), fold(4, 1))",
        ),
    ],
)  # fmt: skip
def test_trees_over_blocks_and_over_threads_are_found(
    save: Save, length: int, dtype: Any, kernel: Callable[[Numbers], Numbers], stage: str
) -> None:
    """As CUDA kernels add what their threads have; of f16 factors, with sums in f32."""
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((24, length), (length, 24)))
    d = kernel(a.astype(np.float32)[:, None] * b.astype(np.float32).T[None])
    code, found, text = run("identify", "--gemm", "--device", f"recorded:{','.join(save(a=a, b=b, d=d))}")
    assert code == 0, text
    assert f"sum({stage}, +0)" in found["plans"], text


def test_a_loop_of_a_warp_is_named_by_the_operation_of_a_loop_first() -> None:
    """Matrix units that add one product give the same results; by both commands, which have one search."""
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((24, 1024), (1024, 24)))
    lanes = np.zeros((24, 24, 32), np.float32)
    for turn in range(0, 1024, 32):
        own = slice(turn, turn + 32)
        lanes = (lanes + a[:, None, own].astype(float) * b.T[None, :, own]).astype(np.float32)
    recorded = Recorded(parse_signature("f32,f32,f32", 1024), a.view(np.uint32), b.view(np.uint32), None,
                        tuple(tree(lanes).view(np.uint32) for tree in (neighbours, shuffled)))  # fmt: skip
    for found, folds in zip(plans_of_results(recorded, (), print, 100), ((1,) * 5, (16, 8, 4, 2, 1)), strict=True):
        assert f"sum(lanes(fma, r, 32, {', '.join(f'fold(2, {fold})' for fold in folds)}), +0)" in found.names()
        assert "/" not in found.names()[0]


@pytest.mark.parametrize("narrow", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_runs_promoted_within_a_split_are_found(save: Save, narrow: bool) -> None:
    """The parts of K of four kernels, each of which promotes what it has every 96 products: by both commands, and from
    narrow results, of which a loop of single products gives all elements too."""
    a, b = factors(72, 1536, 64)
    d = product(in_runs(4, promoted(96, CHAIN, R), R, grain=384), a, b, narrow)
    files = save(a=a, b=b, d=d, other=product(CHAIN, a, b, narrow))
    code, found, text = run("identify", "--gemm", "--device", f"recorded:{','.join(files[:3])}")
    assert code == 0, text
    words = f"split(4, promote(96, {HOPPER.reference}, "
    assert any(words in name for name in found["plans"]), text
    if not narrow:
        code, found, text = run("compare", "--gemm", *files)
        assert any(words in name for name in found["gemm"]["plans"]["D1"]["plans"]), text


def test_no_plan_is_named_that_an_element_refutes(save: Save) -> None:
    """Two results differ in one element, which many plans give: thousands of others are looked at as well."""
    a, b = factors(64, 128, 70)
    d, plain = product(in_runs(2, CHAIN, R), a, b, narrow=True), product(CHAIN, a, b, narrow=True)
    other = d.copy()
    row, column = np.argwhere(d == plain)[5]
    other[row, column] = np.nextafter(d[row, column], np.float16(0))
    assert 0 < (d != plain).sum() < 50  # so that few elements tell the two plans apart
    _, found, text = run("compare", "--gemm", *save(a=a, b=b, d1=d, d2=other), "--timeout", "12")
    one, two = (found["gemm"]["plans"][name] for name in ("D1", "D2"))
    assert f"sum({HOPPER.reference}, +0)" not in str(one["plans"])
    assert one["looked_at"] == a.shape[0] * b.shape[1] > LOOKED
    assert not two["plans"]
    assert two["best_agrees"] < two["looked_at"] <= one["looked_at"]  # the time may end first
    assert f"gives {two['best_agrees']} of {two['looked_at']}" in text
    assert two["complete"] or "the time was over; not tried, or not wholly: " in text


def test_a_factor_is_seen_before_other_plans_are_tried(save: Save) -> None:
    """Alpha is told from the numbers; K is then cut around each unit."""
    a, b = factors(24, 192, 20)
    one, other = (np.float32(0.125) * product(stage, a, b) for stage in (CHAIN, in_runs(3, CHAIN, R, "backwards")))
    _, found, text = run("compare", "--gemm", *save(a=a, b=b, d1=one, d2=other))
    names = [found["gemm"]["plans"][name]["plans"][0] for name in ("D1", "D2")]
    assert all(name.startswith("r(product(2**-3, sum(") for name in names), text
    assert "split(3, " in names[1]


ALPHA, BETA = "number(0x3fcccccd, f32)", "number(0x3e99999a, f32)"  # 1.6, 0.3


@pytest.mark.parametrize(
    ("result", "c"),
    [
        (f"r(exact(product({ALPHA}, sum(u, +0)), r(product({BETA}, c))))", "whole"),  # alpha and beta
        ("r(exact(sum(u, +0), c))", "row"),
        ("r(exact(sum(u, +0), c))", "column"),
        ("sum(u, c)", "whole"),
        ("r(exact(h(sum(u, +0)), c))", "whole"),  # stored before c is added
        (f"r(exact(h(r(product({ALPHA}, sum(u, +0)))), c))", "row"),  # the same of a multiple of it
        ("r(relu(exact(sum(u, +0), c)))", "row"),
        ("r(h(sum(u, +0)))", ""),  # rounded twice
    ],
)
def test_what_becomes_of_a_sum_is_found_by_both_commands(save: Save, result: str, c: str) -> None:
    """Factors, an addend at the start, at the end, or after the sum was stored, a row or a column of it, an activation,
    and two roundings."""
    a, b = factors(24, 48, 20)
    plan = parse_plan(
        "plan: one\nformats: {a: f16, b: f16, c: f32, d: f32}\n"
        f"units: {{u: {HOPPER.reference}}}\n"
        "roundings: {r: 'round(f32, nearest_even)', h: 'round(f16, nearest_even)'}\n"
        f"steps: {{d: '{result}'}}\n", "one", parse_reference
    )  # fmt: skip
    shape = {"row": (1, 20), "column": (24, 1)}.get(c, (24, 20))
    addend = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    whole = np.ascontiguousarray(np.broadcast_to(addend, (24, 20)))

    def of(one: Plan) -> Numbers:
        sides = (side.view(np.uint16) for side in (a, b))
        return simulate(*sides, whole.view(np.uint32) if c else None, one).view(np.float32)

    d = of(plan)
    files = save(a=a, b=b, **({"c": whole} if c else {}), d=d, other=product(CHAIN, a, b))
    *sides, _ = files
    code, found, text = run("identify", "--gemm", "--device", f"recorded:{','.join(sides)}")
    assert code == 0, text
    wanted = named(replace(plan, roundings={})).reference  # with names of its own, as in a plan that is found
    assert wanted in found["plans"], text
    a_file, b_file, *c_file = sides[:-1]
    words = [a_file, b_file, *files[-2:], *(["--c", *c_file] if c else [])]
    code, found, text = run("compare", "--gemm", *words, "--timeout", "6")
    assert wanted in found["gemm"]["plans"]["D1"]["plans"], text


def test_one_factor_of_fewer_bits_is_found_by_both_commands(save: Save) -> None:
    """A is cut to bf16, and the f32 numbers of B are taken as they are; the other kernel takes both so."""
    a, b = (side.astype(np.float32) * np.float32(1 / 3) for side in factors(24, 64, 20))

    def chain(x: Numbers) -> Numbers:
        total = np.zeros((24, 20), np.float32)
        for k in range(64):
            total = total + np.outer(x[:, k], b[k])
        return total

    files = save(a=a, b=b, d=chain((a.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)), other=chain(a))
    wanted = "sum(muladd, +0), a rounded to bf16, toward_zero"
    code, found, text = run("identify", "--gemm", "--device", f"recorded:{','.join(files[:3])}")
    assert (code, list(found["plans"])) == (0, [wanted]), text
    code, found, text = run("compare", "--gemm", *files)
    assert list(found["gemm"]["plans"]["D1"]["plans"]) == [wanted]
    assert "why: the inputs are rounded to bf16, toward zero (A) and taken as they are (B) (D1); taken as they" in text


@pytest.mark.parametrize(
    ("step", "wanted"),
    [
        (lambda total, term: cut(total + term), "r(sum(turns(1, r2(fma)), +0))"),  # f32's rounding, then the cut
        (lambda total, term: cut(total.astype(float) + term), "r(sum(promote(1, fma, r2), +0))"),  # of the exact sum
        (None, "r(sum(r2(fma), +0))"),  # of the result alone
    ],
)
def test_sums_of_fewer_bits_than_the_results_are_found(step: Any, wanted: str) -> None:
    """In a register of 14 bits: the low bits of all results are zero."""
    a, b = factors(24, 40, 20)
    total = np.zeros((24, 20), np.float32)
    for k in range(40):
        term = np.outer(a[:, k].astype(np.float32), b[k].astype(np.float32))
        total = step(total, term) if step else total + term
    d = (total if step else cut(total)).view(np.uint32)
    recorded = Recorded(parse_signature("f16,f16,f32", 40), a.view(np.uint16), b.view(np.uint16), None, (d,))
    [found] = plans_of_results(recorded, (), lambda text: None, 60)
    assert f"{wanted}, r2: round(e8m13, toward_zero)" in found.names()


def cut(numbers: Numbers) -> Numbers:
    """Numbers cut to 14 bits."""
    fractions, exponents = np.frexp(numbers)
    return np.ldexp(np.trunc(fractions * 2**14), exponents - 14).astype(np.float32)


@pytest.mark.parametrize(
    ("cut", "fmt", "d"),
    [
        (lambda body: in_runs(3, body, R), "bf16", "f32"),
        (lambda body: promoted(64, body, R), "f16", "f32"),
        (lambda body: in_runs_at((48, 144), body, R), "f16", "f32"),
        (lambda body: in_runs(3, body, R, order="backwards"), "bf16", "f16"),
    ],
)
def test_runs_stored_with_fewer_bits_than_results_are_found(cut: Callable[[Stage], Stage], fmt: str, d: str) -> None:
    """Nothing is stored in plans for results that show no such loss."""
    a, b = factors(24, 240, 20)
    sides, asked = [side.view(np.uint16) for side in (a, b)], parse_signature(f"f16,f16,{d}", 240)
    narrow, word = d == "f16", asked.d.width // 8
    stage = cut(in_format(CHAIN, Rounding(FORMATS[fmt])))
    recorded = Recorded(asked, *sides, None, (product(stage, a, b, narrow).view(f"u{word}"),))
    [found] = plans_of_results(recorded, (), lambda text: None, 60)
    new = factors(40, 240, 30)
    stages = [products.stage for plan in found.plans for products in plan.sums]
    assert any((product(one, *new, narrow) == product(stage, *new, narrow)).all() for one in stages)
    [sample] = replace(recorded, d=(product(cut(CHAIN), a, b, narrow).view(f"u{word}"),)).block(
        np.arange(24), np.arange(20)
    )
    assert stored_of(asked, sample, forms_of(asked, sample)) == []


@pytest.mark.parametrize(
    ("cut", "d"),
    [
        (lambda body, how: in_runs(3, body, how), "f16"),
        (lambda body, how: promoted(64, body, how), "f32"),
        (lambda body, how: in_runs_at((48, 144), body, how), "f32"),
    ],
)
def test_runs_added_in_the_narrower_format_that_stores_them_are_found(
    cut: Callable[[Stage, Rounding], Stage], d: str
) -> None:
    a, b = factors(24, 240, 20)
    sides, h = [side.view(np.uint16) for side in (a, b)], Rounding(FORMATS["f16"])
    stage = in_format(cut(in_format(CHAIN, h), h), R)
    results = product(stage, a, b, d == "f16")
    recorded = Recorded(parse_signature(f"f16,f16,{d}", 240), *sides, None, (results.view(f"u{results.itemsize}"),))
    [found] = plans_of_results(recorded, (), lambda text: None, 60)
    new = factors(40, 240, 30)
    stages = [products.stage for plan in found.plans for products in plan.sums]
    wanted = product(stage, *new)
    assert any((product(in_format(one, R), *new) == wanted).all() for one in stages)


@pytest.mark.parametrize("with_c", [False, True])
def test_one_element_that_differs_is_named(save: Save, with_c: bool) -> None:
    """Also where no plan that is near reads C."""
    a, b = factors(24, 64, 20)
    d = product(CHAIN, a, b).copy()
    d.view(np.uint32)[17, 13] += 1
    files = save(a=a, b=b, **({"c": np.ones_like(d)} if with_c else {}), d=d)
    found = CliRunner().invoke(main, ["identify", "--gemm", "--device", f"recorded:{','.join(files)}"])
    assert found.exit_code == 1
    told = " ".join(found.stderr.split())
    assert "it differs in 1 element, the first at [17, 13]: " in told
    assert "479 of 480 (99%)" in told


@pytest.mark.parametrize("change", ["fraction_bits=23", "output_rounding=nearest_even"])
def test_an_instruction_that_is_not_in_the_table_is_found_in_a_product(save: Save, tmp_path: Path, change: str) -> None:
    a, b = factors(24, 448, 20)
    unit = parse_reference(f"{HOPPER.reference}@{change}")
    files = save(a=a, b=b, d=product(in_runs(2, promoted(128, Chain(unit), R), R), a, b))
    plan = tmp_path / "plan.yaml"
    code, found, text = run("identify", "--gemm", "--device", f"recorded:{','.join(files)}", "--save", str(plan))
    assert code == 0
    assert "gives all of the 480 elements looked at" in text
    assert all(unit.reference in name for name in found["plans"])
    assert "with grain=64 its parts have the same lengths there, and other lengths at K = 384" in " ".join(
        plan.read_text().split()
    )
    assert np.array_equal(mmaprobe.matmul(a, b, plan=str(plan)), np.load(files[2]))


@pytest.mark.parametrize(("size", "length", "wanted"), [(128, 448, (64, 384)), (64, 576, None), (64, 384, (32, 385))])
def test_a_k_at_which_parts_of_another_grain_have_other_sizes(
    size: int, length: int, wanted: tuple[int, int] | None
) -> None:
    stage = in_runs(2, promoted(size, CHAIN, R), R)
    assert same_sizes(Plan(HOPPER.a, HOPPER.b, HOPPER.c, Products(stage, Constant())), length) == wanted


def test_what_is_stored_is_seen_behind_relu() -> None:
    """Most of the results are zeros, which lose nothing."""
    a, b = factors(24, 240, 20)
    sums = product(in_runs(3, in_format(CHAIN, Rounding(FORMATS["bf16"])), R), a, b)
    c = np.linspace(-40, 1, sums.size, dtype=np.float32).reshape(sums.shape)
    d = np.maximum(sums + c, 0).view(np.uint32)
    sides, asked = [side.view(np.uint16) for side in (a, b)], parse_signature("f16,f16,f32,f32", 240)
    recorded = Recorded(asked, *sides, c.view(np.uint32), (d,))
    [sample] = recorded.block(np.arange(24), np.arange(20))
    assert np.median(d) == 0
    assert FORMATS["bf16"] in stored_of(asked, sample, forms_of(asked, sample))


def test_tiles_of_any_size_around_one_product_are_found() -> None:
    a, b = factors(24, 132, 20)
    stage = promoted(12, Chain(parse_reference("ieee/fma/f32.f16.f16.f32")), R)
    sides = a.view(np.uint16), b.view(np.uint16)
    d = product(stage, a, b).view(np.uint32)
    [found] = plans_of_results(Recorded(parse_signature("f16,f16,f32", 132), *sides, None, (d,)), (), print, 60)
    new = factors(40, 132, 30)
    stages = [products.stage for plan in found.plans for products in plan.sums]
    assert stages
    assert all((product(one, *new) == product(stage, *new)).all() for one in stages)


def test_a_split_loop_of_single_products_is_named_where_narrow_results_hide_it() -> None:
    """K = 210 in three runs that are multiples of 16, as kernels take their tiles, each stored in f16."""
    a, b = factors(24, 210, 20)
    h = Rounding(FORMATS["f16"])
    stage = in_runs(3, in_format(Chain(parse_reference("ieee/fma/f32.f16.f16.f32")), h), R, grain=16)
    d = product(stage, a, b, narrow=True).view(np.uint16)
    sides = a.view(np.uint16), b.view(np.uint16)
    recorded = Recorded(parse_signature("f16,f16,f16", 210), *sides, None, (d,))
    [found] = plans_of_results(recorded, (), lambda text: None, 60)
    assert stage in [products.stage for plan in found.plans for products in plan.sums]


def test_every_plan_named_gives_every_element(save: Save) -> None:
    a, b = factors(9, 64, 7)
    d = product(CHAIN, a, b, narrow=True)
    recorded = Recorded(parse_signature("f16,f16,f16", 64), *(x.view(np.uint16) for x in (a, b)), None,
                        (d.view(np.uint16),))  # fmt: skip
    [found] = plans_of_results(recorded, (), lambda text: None, 60)
    assert found.plans
    engine: Engine = "numpy" if compiler() is None else "compiled"  # there are hundreds of plans
    for plan in found.plans:
        results = simulate(a.view(np.uint16), b.view(np.uint16), None, plan, engine=engine)
        assert (results == d.view(np.uint16)).all()


@pytest.mark.parametrize("missing", [range(88, 96), range(95, 96), range(3), (5, 41, 77)])
def test_products_that_are_not_in_the_sum(save: Save, missing: Any) -> None:
    """They are told from the numbers, and the plan of the others is found: with K cut, or with zeros there."""
    a, b = factors(20, 96, 24)
    short = a.copy()
    short[:, list(missing)] = 0
    d = product(in_runs(2, CHAIN, R), short, b)
    files = save(a=a, b=b, d=d, plain=product(CHAIN, a, b))
    code, found, text = run("identify", "--gemm", "--device", f"recorded:{','.join(files[:3])}")
    assert code == 0, text
    assert found["left_out"] == list(missing)
    assert " not in the sum" in text
    assert f"sum(split(2, {HOPPER.reference}, r), +0)" in found["plans"]
    code, found, text = run("compare", "--gemm", *files)
    assert [found["gemm"]["plans"][name]["left_out"] for name in ("D1", "D2")] == [list(missing), []]
    assert " not in the sum (D1); all are added once (D2)" in text


@pytest.mark.parametrize(
    ("order", "twice", "instead"),
    [
        ([*range(96), *range(88, 96)], [*range(88, 96)], None),  # a last tile that begins before the end of the others
        ([*range(48), *range(40, 96)], [*range(40, 48)], None),  # two runs that overlap
        ("next", None, "the next row of A"),
    ],
)
def test_products_that_are_added_twice_or_of_another_row(save: Save, order: Any, twice: Any, instead: Any) -> None:
    a, b = factors(40, 96, 32)
    moved, own = a.copy(), list(range(96)) if instead else order
    if instead:
        moved[:, 64:80] = np.roll(a, -1, 0)[:, 64:80]
    files = save(a=a, b=b, d=product(CHAIN, moved[:, own], b[own]), plain=product(CHAIN, a, b))
    code, found, text = run("identify", "--gemm", "--device", f"recorded:{','.join(files[:3])}")
    assert code == 0, text
    assert (found.get("twice"), found.get("instead")) == (twice, instead)
    assert f"sum({HOPPER.reference}, +0)" in found["plans"]
    assert (f"taken with {instead}" if instead else "are added twice") in text
    _, found, text = run("compare", "--gemm", *files)
    assert found["gemm"]["plans"]["D1"].get("twice") == twice
    assert "(D1); all are added once (D2)" in text


def test_few_columns_show_what_is_left_out() -> None:
    """As of one row and eight columns, from which no correlation is told."""
    a, b = factors(1, 1000, 8)
    short = product(CHAIN, a[:, :-8], b[:-8], narrow=True)
    for d, missing in ((short, tuple(range(992, 1000))), (product(CHAIN, a, b, narrow=True), ())):
        sample = Sample(*(x.view(np.uint16)[None] for x in (a, b)), np.zeros((1, 1, 8), np.uint16),
                        d.view(np.uint16)[None])  # fmt: skip
        assert summed(parse_signature("f16,f16,f16", 1000), sample).left_out == missing


def test_the_time_is_kept(save: Save) -> None:
    a, b = factors(40, 1000, 40)
    d = product(CHAIN, a, b) + np.float32(0.25)
    begun = time.monotonic()
    code, found, text = run("identify", "--gemm", "--device", f"recorded:{','.join(save(a=a, b=b, d=d))}",
                            "--timeout", "4")  # fmt: skip
    assert code == 3, text
    assert time.monotonic() - begun < 4 + 6  # the machine may be busy
    assert found["untried"]
    assert not found["plans"]


def test_a_plan_that_is_named_gives_all_that_is_looked_at_though_the_time_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The time ends with the first part of the elements of each plan; the last elements refute the chain."""
    a, b = (side.view(np.uint16) for side in factors(64, 64, 64))
    plan = Plan(HOPPER.a, HOPPER.b, HOPPER.c, Products(CHAIN, Constant()))
    d = simulate(a, b, None, plan)
    refuted = d.copy()
    refuted[-1, -1] += 1
    own, late = Candidates.results, 0.0

    def slow(self: Candidates, plan: Plan, sample: Sample) -> Any:
        nonlocal late
        late += 1000 * (sample.d.size >= PART)
        return own(self, plan, sample)

    monkeypatch.setattr(Candidates, "results", slow)
    monkeypatch.setattr(time, "monotonic", lambda: late)
    for one, right in ((d, True), (refuted, False)):
        recorded = Recorded(parse_signature("f16,f16,f32", 64), a, b, None, (one,))
        [found] = plans_of_results(recorded, [(0, 0)], lambda text: None, 60)
        assert bool(found.plans) == right
        assert found.looked == LOOKED or not right


@pytest.mark.parametrize("end", [TimeUp, Interrupted])
@pytest.mark.parametrize("trials", [0, 40])
def test_an_interrupt_loses_neither_the_nearest_plan_nor_what_was_not_tried(
    monkeypatch: pytest.MonkeyPatch, trials: int, end: type[CutShort]
) -> None:
    """The time given for a command, or the user, interrupts the search before or within its trials."""
    how = "late" if end is TimeUp else "interrupted"
    monkeypatch.setattr(state, how, False)
    a, b = factors(16, 64, 16)
    d, left = product(CHAIN, a, b), trials
    d[::2] *= np.float32(1.5)

    def report(text: str) -> None:
        nonlocal left
        if not left:
            setattr(state, how, True)
            raise end
        left -= 1

    sides = [side.view(np.uint16 if side.dtype == np.float16 else np.uint32) for side in (a, b, d)]
    recorded = Recorded(parse_signature("f16,f16,f32", 64), sides[0], sides[1], None, (sides[2],))
    [found] = plans_of_results(recorded, [], report, 60)
    assert (found.plans, found.untried) == ((), KINDS if trials == 0 else found.untried)
    assert {*found.untried} <= {*KINDS}
    assert UNEVEN in found.untried
    assert found.tried >= trials
    assert (found.best is not None) == bool(trials)


def test_the_time_of_the_search_is_what_the_command_has_left(save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow start leaves less for the search; it got all, and was interrupted."""
    given: list[float] = []

    def search(recorded: Recorded, first: object, report: object, seconds: float) -> Any:
        given.append(seconds)
        raise ParameterError("time", "is noted")

    monkeypatch.setattr("mmaprobe.queries.plans.results.plans_of_results", search)
    for module in ("identify_gemm", "compare_gemm"):
        monkeypatch.setattr(f"mmaprobe.cli.commands.{module}.left", lambda seconds: seconds - 1)
    a, b = factors(4, 16, 4)
    d = product(CHAIN, a, b)
    files = save(a=a, b=b, d=d, e=d + np.float32(1))
    for words in (["identify", "--gemm", "--device", f"recorded:{','.join(files[:3])}"], ["compare", "--gemm", *files]):
        CliRunner().invoke(main, [*words, "--timeout", "5"])
    assert given == [4, 4]


def test_plans_of_results_and_of_a_function_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """What both commands find, as plans that multiply."""
    a, b = factors(24, 192, 20)
    c = np.random.default_rng(1).standard_normal(20).astype(np.float32)
    wanted = [f"sum({unit}, c)" for unit in (HOPPER.reference, "volta/mma/m8n8k4.f32.f16.f16.f32")]
    d, other = (mmaprobe.matmul(a, b, c, unit=unit[4:-4]) for unit in wanted)
    one = mmaprobe.plans_of(a, b, d, c, other=other)
    assert one.other is not None
    for name, result, found in zip(wanted, (d, other), (one, one.other), strict=True):
        assert found.verdict == "found"
        assert name in repr(found)
        assert name in found.document.plans
        assert (mmaprobe.matmul(a, b, c, plan=found.plans[0]) == result).all()
    late = mmaprobe.plans_of(a, b, d * np.float32(1.7), timeout=1e-6)
    assert (late.verdict, late.plans, bool(late.document.untried)) == ("open", (), True)
    with pytest.raises(mmaprobe.MmaprobeError, match="do not give D"):
        mmaprobe.plans_of(a, b, d[1:])
    for name, number in (("CHECKED", 8), ("FIRST", 12), ("MORE", 4), ("TREES", 2)):
        monkeypatch.setattr(library, name, number)

    def product(a: Any, b: Any) -> Any:
        assert (a.strides, b.strides) == ((4, 4 * len(a)), (4 * b.shape[1], 4))
        return np.cumsum(a[:, :, None] * b[None], axis=1, dtype=np.float32)[:, -1]

    mapped = mmaprobe.identify_gemm(product, "f32,f32,f32", 12, shape=(4, 4), layout="tn", timeout=30)
    assert "sum(muladd, +0)" in {plan.reference for plan in mapped.plans}
    assert mapped.document.rules
    assert mapped.document.layout == "tn"
    with pytest.raises(mmaprobe.MmaprobeError, match="unknown layout 'rows'"):
        mmaprobe.identify_gemm(product, "f32,f32,f32", 12, layout="rows")  # type: ignore[arg-type]


def test_the_first_elements_tried_are_small_ones_as_well() -> None:
    """Two results that differ by a factor differ everywhere first, and large ones hide much."""
    a, b = (side.view(np.uint16) for side in factors(16, 64, 16))
    d = simulate(a, b, None, Plan(HOPPER.a, HOPPER.b, HOPPER.c, Products(CHAIN, Constant())))
    recorded = Recorded(parse_signature("f16,f16,f32", 64), a, b, None, (d,))
    given = [(0, column) for column in range(FIRST)]
    chosen = [*zip(*with_others(given, recorded), strict=True)]
    sizes = np.abs(d.view(np.float32))
    small = {(int(at // 16), int(at % 16)) for at in np.argsort(sizes, axis=None)[: FIRST // 2]}
    assert len(chosen) == FIRST
    assert {*given[: FIRST // 2], *small} <= {*chosen}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(("kind", "size"), [(np.float16, 200.0), (np.float32, 1e25), (np.float64, 1e152)])
def test_numbers_that_overflow_warn_of_nothing(kind: Any, size: float) -> None:
    """Neither where factors are rounded to a format that does not hold them, nor where squares of results overflow."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape) for shape in ((12, 40), (40, 16)))
    a[2:] *= size
    b[:, 1:] *= size
    a[3, 3] = np.inf
    b[5, 5] = np.nan
    with np.errstate(all="ignore"):
        a, b = a.astype(kind), b.astype(kind)
        d = a @ b
    view = f"u{d.itemsize}"
    name = f"f{8 * d.itemsize}"
    asked = parse_signature(f"{name},{name},{name}", 40)
    recorded = Recorded(asked, a.view(view), b.view(view), None, (d.view(view),))
    [sample] = recorded.block(*recorded.looked())
    forms = forms_of(asked, sample)
    assert forms
    stored_of(asked, sample, forms)
    assert not summed(asked, sample)
    assert not activation_of(asked, sample)


@pytest.mark.parametrize(("ones_of_b", "unlike"), [(0, 8), (1, 8), (4, 3)])
def test_products_of_zeros_say_nothing_of_missing_ones(ones_of_b: int, unlike: int) -> None:
    """Nothing is inferred, and no equation without a solution is solved, where all products are zero, or all beside the
    last ones."""
    a, b, d = np.ones((4, 4), np.float16), np.zeros((4, 4), np.float16), np.zeros((4, 4), np.float16)
    b[4 - ones_of_b :] = 1
    d.flat[:unlike] = 1
    recorded = Recorded(parse_signature("f16,f16,f16", 4), a.view("u2"), b.view("u2"), None, (d.view("u2"),))
    [sample] = recorded.block(*recorded.looked())
    assert not summed(recorded.asked, sample)


def test_products_that_are_zero_are_not_said_to_be_missing() -> None:
    """Beside a product that is added twice, or that is missing."""
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((8, 8)).astype(np.float32) for _ in range(2))
    a[:, 5] = 0
    for times, wanted in ((1, Summed((), (3,))), (-1, Summed((3,)))):
        d = a @ b + np.float32(times) * a[:, 3:4] @ b[3:4]
        recorded = Recorded(parse_signature("f32,f32,f32", 8), a.view("u4"), b.view("u4"), None, (d.view("u4"),))
        [sample] = recorded.block(*recorded.looked())
        assert summed(recorded.asked, sample) == wanted


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e200, 1.7e308])
def test_results_of_any_size_have_forms(size: float) -> None:
    """Also where the square of a factor or of a result, or its inverse, is no number of f64."""
    a, b = factors(6, 6, 6)
    d = (a.astype(float) @ b.astype(float)) * (size / 100)
    asked = parse_signature("f16,f16,f64", 6)
    recorded = Recorded(asked, a.view("u2"), b.view("u2"), None, (d.view("u8"),))
    [sample] = recorded.block(*recorded.looked())
    assert forms_of(asked, sample)
    assert not summed(asked, sample)


def test_results_of_other_shapes_are_refused() -> None:
    a, b = (np.zeros(shape, np.uint16) for shape in ((2, 3), (3, 4)))
    with pytest.raises(ParameterError, match="do not give D"):
        Recorded(parse_signature("f16,f16,f16", 3), a, b, None, (np.zeros((2, 3), np.uint16),))


LIBRARY = """
import numpy as np


def chain(a, b, places):
    total = np.zeros((len(a), b.shape[1]), np.float32)
    for k in places:
        total = total + np.outer(a[:, k], b[k])
    return total


def last_eight(a, b):
    return chain(a, b, range(a.shape[1] - 8 * (a.shape[1] > 16)))


def not_fourth(a, b):
    return chain(a, b, [k for k in range(a.shape[1]) if k != 4])


def whole(a, b):
    return chain(a, b, range(a.shape[1]))
"""


@pytest.mark.parametrize(
    ("name", "missing", "text"),
    [
        ("last_eight", [*range(16, 24)], "products k = 16-23 are not in the sum"),
        ("not_fourth", [4], "product k = 4 is not in the sum"),
        ("whole", None, "starts from"),
    ],
)
def test_the_order_says_what_is_not_in_the_sum(tmp_path: Path, name: str, missing: list[int] | None, text: str) -> None:
    """A mask at such a product changes nothing; the others have their order."""
    (tmp_path / "library.py").write_text(LIBRARY)
    code, found, message = run("order", "--device", f"python:{tmp_path}/library.py:{name}", "--formats", "f32,f32,f32",
                            "--length", "24")  # fmt: skip
    assert code == 0, message
    assert found.get("left_out") == missing
    assert text in message
    terms = {term for step in found["steps"] for term in step["terms"]}
    assert terms == set(range(24)) - set(missing or ())


def test_ends_that_are_missing_by_one_step_are_one_sentence() -> None:
    ends = {Shape(1, 1, 8 * n + n % 7 + 1): n % 7 + 1 for n in range(1, 9)}
    assert _step(ends) == 8
    assert _step(ends | {Shape(1, 1, 17): 2}) is None
    assert _step({Shape(1, 1, 9): 1, Shape(1, 1, 10): 2}) is None  # too few to say so
    assert _step({}) is None


def test_what_is_odd_in_all_of_many_shapes_is_said() -> None:
    shapes = [Shape(2 * n + 1, n + 1, 8) for n in range(20)]
    assert _parity(shapes) == ", all of M odd and K even"
    assert _parity([*shapes, Shape(2, 1, 8)]) == ", all of K even"
    assert not _parity(shapes[:9])  # too few to say so


def test_what_a_plan_does_not_give_is_said_where_it_is_saved() -> None:
    """That of the most elements is saved, whichever rule comes first."""
    one, other = (parse_plan_path(f"plan:{name}") for name in ("loop/lanes", "cublas/split-k"))
    features = np.array([features_of(Shape(m, 4, 8), np.zeros(1, int), np.zeros(1, int))[0] for m in range(1, 20)])
    odd = features[:, 0] % 2 == 1
    rules = learned(features, np.stack([odd, ~odd], axis=1))
    assert sorted(rule.text().rpartition(", ")[2] for rule in rules) == ["M even", "M odd"]
    mapped = Mapped(
        [MappedRule(rule, (one, other)[rule.plan]) for rule in rules], gives={one: 9, other: 10}, observed=19
    )
    assert mapped.plans == [other, one]
    assert _besides(mapped) == f"{other.reference} gives 10 of 19 elements looked at"
    assert not _besides(replace(mapped, rules=[message for message in mapped.rules if message.plan == one]))
    single = replace(mapped, rules=mapped.rules[:1], gives={mapped.rules[0].plan: 19}, open=[Shape(1, 4, 8)])
    assert _besides(single).endswith(" gives 19 of 19 elements looked at, but not those of 1 new shape")


def test_where_no_map_holds_the_nearest_plan_is_said_and_few_rules(capsys: pytest.CaptureFixture[str]) -> None:
    """Most new random shapes are not as the rules say: those that are not relied on are counted."""
    one, other = (parse_plan_path(f"plan:{name}") for name in ("loop/lanes", "cublas/split-k"))
    features = np.array([features_of(Shape(m, 4, 8), np.zeros(1, int), np.zeros(1, int))[0] for m in range(1, 20)])
    odd = features[:, 0] % 2 == 1
    rules = [MappedRule(rule, (one, other)[rule.plan], 8) for rule in learned(features, np.stack([odd, ~odd], axis=1))]
    shapes = [Shape(m, 4, 8) for m in range(1, 8)]
    rules[1].differ = shapes[:3]
    fails = Mapped(rules, 8, 3, shapes, gives={one: 9, other: 10}, observed=19, asked=9)
    _show(fails, 1.0)
    message = capsys.readouterr().err.splitlines()
    assert [line for line in message if "other results" in line or "other elements" in line] == []
    assert sum(line.startswith(said_rule.rule.text()) for line in message for said_rule in rules) == 1
    gives = f"{other.reference} gives 10 of 19 elements looked at, in each of 2 or more products of a shape"
    assert f"elsewhere no plan tried gives the results; {gives}" in message
    assert "1 rule not relied on (--json has them)" in message
    _show(replace(fails, right=5), 1.0)
    printed = capsys.readouterr().err
    assert "other results in 3 of 11 new shapes" in printed
    assert "no plan tried" not in printed


def test_the_map_of_a_function_says_what_is_not_in_its_sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No plan gives such sums, and neither their order nor a plan is looked for."""

    def looked_for(*_: object) -> None:
        raise AssertionError("a plan is looked for")

    monkeypatch.setattr(library.Mapper, "_order", looked_for)
    monkeypatch.setattr(library.Mapper, "_groups", looked_for)
    for name, number in (("CHECKED", 8), ("FIRST", 12), ("MORE", 4), ("TREES", 2)):
        monkeypatch.setattr(library, name, number)
    (tmp_path / "library.py").write_text(LIBRARY)
    device = f"python:{tmp_path}/library.py:last_eight"
    code, found, message = run("identify", "--gemm", "--device", device, "--formats", "f32,f32,f32",
                               "--length", "40", "--shape", "6,6", "--timeout", "30")  # fmt: skip
    assert code == 3, message
    assert found["left_out"]
    for one in found["left_out"]:
        length = one["shape"][2]
        assert one["products"] == list(range(length - 8, length))
    assert "the last 8 products of K are no part of the sum in " in message


def test_c_and_archives_are_written_alike_in_all_commands(
    save: Save, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--c C, C as a third file, and a matrix of an archive: one and the same."""
    seen: list[Recorded] = []

    def search(recorded: Recorded, *_: object) -> Any:
        seen.append(recorded)
        raise ParameterError("search", "seen")

    a, b = factors(4, 32, 4)
    bias = np.arange(4, dtype=np.float32)[None]
    d, other = (mmaprobe.matmul(a, b, bias + x, unit=HOPPER.reference) for x in (0, 1))
    files, archive = save(a=a, b=b, c=bias, d=d), str(tmp_path / "all.npz")
    np.savez(archive, a=a, b=b, c=bias[0], d=d, other=other)
    np.savez(product := str(tmp_path / "product.npz"), a=a, b=b, c=bias, d=d)
    of_archive = {name: f"{archive}:{name}" for name in ("a", "b", "c", "d", "other")}
    sides, taken = [of_archive["a"], of_archive["b"]], [of_archive["a"], of_archive["b"], of_archive["d"]]

    ways = {
        f"recorded:{','.join(files)}": (), f"recorded:{product}": (), f"recorded:{','.join(taken)}": ("--c", files[2]),
    }  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr("mmaprobe.queries.plans.results.plans_of_results", search)
        for device, rest in ways.items():
            assert "seen" in run("identify", "--gemm", "--device", device, *rest)[2]
        assert "seen" in run("compare", "--gemm", *taken, of_archive["other"], "--c", of_archive["c"])[2]
    assert len({(str(one.asked), *(x.tobytes() for x in (one.a, one.b, one.c, one.d[0]))) for one in seen}) == 1
    assert len(seen) == 4

    for inputs in ((*files[:3],), (*files[:2], "--c", of_archive["c"]), (*sides, "--c", files[2])):
        out = str(tmp_path / "out.npy")
        code, _, text = run("simulate", *inputs, "-o", out, "--model", HOPPER.reference)
        assert code == 0, text
        assert np.array_equal(np.load(out), d)
        code, printed, text = run("explain", HOPPER.reference, *inputs, "--element", "1,2")
        assert (code, printed["d"]) == (0, f"{int(d.view(np.uint32)[1, 2]):08x}"), text


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("recorded:all.npz", "all.npz: matrices a, b and d are needed, and c if there is one; it has a, q"),
        ("recorded:all.npz,b.npy,d.npy", "all.npz: one matrix is needed; it has a, q: write all.npz:a for one of them"),
        ("recorded:all.npz:e,b.npy,d.npy", "all.npz: it has no matrix 'e', but a, q"),
    ],
)
def test_archives_of_other_matrices(device: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("all.npz", a=np.ones((2, 2)), q=np.ones((2, 2)))
    code, _, text = run("identify", "--gemm", "--device", device)
    assert (code, message in text) == (2, True), text


@pytest.mark.parametrize("ways", [3, 5, 6, 8])
def test_lanes_are_folded_as_their_groups_say(ways: int) -> None:
    lanes = np.append(-(2.0 ** -np.arange(0, 3 * ways, 3)), [-0.0] * ways).astype(np.float16).reshape(2, ways)
    for folds in (halved(ways), (Fold(ways, 1),)):
        wanted = list(lanes.T)
        for fold in folds:
            wanted = [reduce(add, [wanted[lane] for lane in group]) for group in fold.groups(len(wanted))]
        assert in_folds(lanes[..., None], folds).tobytes() == wanted[0].tobytes()
