"""Whether results depend on the shape of a product, by maps and by rules by hand."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import mmaprobe
from mmaprobe import MmaprobeError
from mmaprobe.cli.main import main
from mmaprobe.machines import machine_of
from mmaprobe.queries.plans.dependence import Dependence
from mmaprobe.queries.plans.equal import prove_plans
from mmaprobe.queries.plans.invariant import Fixed, Invariance, Shapes, enumerated, prove_invariant
from mmaprobe.queries.plans.mapping import rules_of
from mmaprobe.queries.plans.planmap import PlanMap, Reach, Within
from mmaprobe.queries.plans.rules import Feature, Shape
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.evaluate.numbers import in_f64, to_numbers
from mmaprobe.smtmodel.inputs.signature import parse_signature
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.tables.reference import parse_plan_path

CHAIN, SPLIT = "one-chain", "two-runs"
TEXT = """
plan: {name}
formats: {{a: f16, b: f16, c: f16, d: f32}}
units: {{mma: ampere/mma/m16n8k16.f32.f16.f16.f32}}
roundings: {{r: "round(f32, nearest_even)"}}
steps: {{d: "{steps}"}}
"""
SHAPES = "shapes: {M: 1..64, N: 1..512, K: 1..300}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    steps = {CHAIN: "sum(mma, +0)", SPLIT: "sum(split(2, mma, r, grain=64), +0)"}
    for name, text in steps.items():
        kept = "\n".join(line for line in TEXT.format(name=name, steps=text).splitlines()
                         if name == SPLIT or "roundings" not in line)  # fmt: skip
        (tmp_path / f"{name}.yaml").write_text(kept)
    return tmp_path


def written(folder: Path, *elements: str, shapes: str = SHAPES, name: str = "rules.yaml") -> Path:
    lines = ["rules: mine", shapes, "elements:", *(f"- {{{one}}}" for one in elements)]
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder / name


def asked(path: Path, shapes: str = "", fixed: Fixed | None = None) -> Invariance:
    rules = rules_of(path)
    return prove_invariant(rules, Shapes.of(rules, shapes), fixed, Options(timeout=60))


def invoke(*words: str) -> Any:
    return CliRunner().invoke(main, ["prove", "--invariant", *words])


# -- verdicts


def test_one_plan_for_each_k_is_invariant(folder: Path) -> None:
    found = asked(written(folder, f"K: 128.., plan: {SPLIT}.yaml", f"plan: {CHAIN}.yaml"))
    assert found.verdict == "equal"
    assert not found.proofs
    assert {plan.reference: (ks[0], ks[-1]) for plan, ks in found.enumeration.plans.items()} == {
        CHAIN: (1, 127), SPLIT: (128, 300)}  # fmt: skip


def test_two_plans_are_proved_equal_at_each_k_at_which_they_meet(folder: Path) -> None:
    found = asked(written(folder, f"M: ..16, K: 61..64, plan: {SPLIT}.yaml", f"plan: {CHAIN}.yaml"))
    assert found.verdict == "equal"
    (need,) = found.enumeration.needs
    assert need.lengths == [61, 62, 63, 64]  # one run, as its grain is 64
    assert not found.left_open(need)


def test_plans_that_read_no_c_may_name_two_formats_of_it(folder: Path) -> None:
    (folder / "none.yaml").write_text((folder / f"{CHAIN}.yaml").read_text().replace("c: f16", "c: f32"))
    found = asked(written(folder, f"M: ..16, K: 61..64, plan: {SPLIT}.yaml", "plan: none.yaml"))
    assert found.verdict == "equal"
    found = asked(written(folder, f"M: ..16, K: 200.., plan: {SPLIT}.yaml", "plan: none.yaml"))
    assert found.verdict == "different"


def test_a_split_by_m_is_shown_by_two_shapes_and_a_small_input(folder: Path) -> None:
    path = written(folder, f"M: ..16, K: 200.., plan: {SPLIT}.yaml", f"plan: {CHAIN}.yaml")
    found = asked(path)
    assert found.verdict == "different"
    assert found.difference is not None
    proof, *places = found.difference
    assert [place.shape.rows for place in places] == [1, 17]
    # each side once more, as whole products of these two shapes, by the map alone
    assert proof.problem is not None
    assert proof.witness is not None
    whole = proof.problem.whole(proof.witness.operands)
    assert np.count_nonzero(whole.a) <= 4
    results = []
    for place in places:
        shape = place.shape
        a, b = np.zeros((shape.rows, shape.length), np.uint16), np.zeros((shape.length, shape.columns), np.uint16)
        a[place.row], b[:, place.column] = whole.a, whole.b
        plan = found.rules.rules[found.rules.plans_of(shape)[place.row, place.column]].plan
        results.append(int(simulate(a, b, None, plan)[place.row, place.column]))
    assert results == [proof.witness.left, proof.witness.right]
    assert results[0] != results[1]


def test_what_is_fixed_is_not_compared(folder: Path) -> None:
    path = written(folder, f"N: ..7, plan: {SPLIT}.yaml", f"plan: {CHAIN}.yaml")
    assert asked(path, "K=80").verdict == "different"
    assert asked(path, "K=80", "N").verdict == "equal"
    assert asked(path, "K=80", "M").verdict == "different"
    path = written(folder, f"column: 0, plan: {SPLIT}.yaml", f"plan: {CHAIN}.yaml")
    assert asked(path, "K=80").verdict == "different"
    assert asked(path, "K=80", "N").verdict == "equal"  # a column stays where it is
    path = written(folder, f"row: 0, plan: {SPLIT}.yaml", f"plan: {CHAIN}.yaml")
    assert asked(path, "K=80", "N").verdict == "different"


def test_shapes_narrow_the_question(folder: Path) -> None:
    path = written(folder, f"M: ..16, K: 200.., plan: {SPLIT}.yaml", f"plan: {CHAIN}.yaml")
    assert asked(path, "M=..16").verdict == "equal"
    assert asked(path, "K=1..199").verdict == "equal"
    assert asked(path, "M=16..17, K=200..210").verdict == "different"


def test_a_map_that_leaves_elements_out_proves_nothing_of_them(folder: Path) -> None:
    path = written(folder, f"M: 2.., plan: {CHAIN}.yaml")
    found = asked(path)
    assert found.verdict == "unknown"
    assert str(found.enumeration.open[1]) == "[0, 0] of 1 x 1 x 1"
    assert asked(path, "M=2..64").verdict == "equal"


def test_a_verdict_needs_its_theorem(folder: Path) -> None:
    """No field of the outcome says the verdict: without its proofs it is unknown, also beside proofs of others."""
    found = asked(written(folder, f"M: ..16, K: 63..64, plan: {SPLIT}.yaml", f"plan: {CHAIN}.yaml"))
    assert found.verdict == "equal"
    assert replace(found, proofs=[]).verdict == "unknown"
    assert replace(found, proofs=found.proofs[:1]).verdict == "unknown"
    (need,) = found.enumeration.needs
    other = prove_plans(need.right, need.right, None, Options(timeout=60))
    assert other.verdict == "equal"
    assert replace(found, proofs=[other]).verdict == "unknown"
    wide = replace(found, shapes=replace(found.shapes, length=(1, 300)))
    assert wide.verdict == "equal"
    different = asked(written(folder, f"M: ..16, plan: {SPLIT}.yaml", f"plan: {CHAIN}.yaml"))
    assert different.verdict == "different"
    assert replace(different, shapes=replace(different.shapes, rows=(20, 64))).verdict == "equal"  # one plan there
    assert replace(different, rules=found.rules).verdict == "unknown"  # a map without these elements


# -- which plans meet, against every element of every shape


SOME = [
    Feature("number", "M"), Feature("number", "N"), Feature("number", "K"), Feature("number", "M * N"),
    Feature("number", "M * N * K"), Feature("rest", "M", 2), Feature("rest", "K", 3), Feature("place", "rows"),
    Feature("place", "columns", 2), Feature("after", "columns", 2), Feature("multiple", "K", 2),
    Feature("block", "rows", 2),
]  # fmt: skip


def random_map(rng: np.random.Generator, plans: list[Plan]) -> PlanMap:
    rules = []
    for _ in range(int(rng.integers(2, 5))):
        limits = []
        for feature in rng.choice(np.array(SOME, dtype=object), int(rng.integers(0, 3)), replace=False):
            low = int(rng.integers(0, 3))
            limits.append(Within(feature, ((low, None if rng.random() < 0.5 else low + int(rng.integers(0, 3))),)))
        rules.append(Reach(tuple(limits), plans[int(rng.integers(len(plans)))]))
    if rng.random() < 0.7:
        rules.append(Reach((), plans[0]))
    return PlanMap("random", tuple(rules))


@pytest.mark.parametrize("fixed", [None, "M", "N"])
def test_the_plans_that_meet_are_those_of_every_element(folder: Path, fixed: Fixed | None) -> None:
    plans = [parse_plan_path(f"{name}.yaml") for name in (CHAIN, SPLIT)]
    rng, shapes, met = np.random.default_rng(5), Shapes((1, 4), (2, 4), (1, 5)), 0
    for _ in range(80):
        rules = random_map(rng, plans)
        found = enumerated(rules, shapes, fixed)
        sums: dict[tuple[int, ...], set[Plan]] = {}
        missing = set()
        for m, n, k in itertools.product(range(1, 5), range(2, 5), range(1, 6)):
            own = rules.numbers_of(Shape(m, n, k))
            for (row, column), number in np.ndenumerate(own):
                key = {None: (k,), "N": (k, n, column), "M": (k, m, row)}[fixed]
                if number < 0:
                    missing.add(k)
                else:
                    sums.setdefault(key, set()).add(rules.rules[number].plan)
        assert set(found.open) == missing
        edges = {(k, frozenset((need.left, need.right))) for need in found.needs for k in need.lengths}
        for key, some in sums.items():  # all plans of a sum hang together
            reached, rest = {next(iter(some))}, True
            while rest:
                new = {plan for k, pair in edges if k == key[0] and pair & reached for plan in pair} - reached
                reached |= new
                rest = bool(new)
            assert some <= reached
        apart = {(key[0], frozenset(pair)) for key, some in sums.items() for pair in itertools.combinations(some, 2)}
        assert edges <= apart
        met += len(edges)
        for need in found.needs:
            for k, places in need.places.items():
                for place, plan in zip(places, (need.left, need.right), strict=True):
                    number = rules.numbers_of(place.shape)[place.row, place.column]
                    assert place.shape.length == k
                    assert shapes.holds(place.shape)
                    assert rules.rules[number].plan == plan
    assert met > 20


# -- the command


def test_the_command_and_its_document(folder: Path) -> None:
    path = written(folder, f"M: ..16, K: 64..65, plan: {SPLIT}.yaml", f"plan: {CHAIN}.yaml")
    result = invoke(str(path), "--json")
    assert result.exit_code == 1, result.output
    document = json.loads(result.stdout)
    assert document["property"] == "batch-invariant"
    assert document["verdict"] == "different"
    first, second = document["difference"]
    assert (first["plan"], second["plan"]) == (SPLIT, CHAIN)
    assert (first["shape"], second["shape"]) == ([1, 1, 65], [17, 1, 65])
    results = document["vector"]["results"]
    unit = [mmaprobe.plan(f"{name}.yaml") for name in (SPLIT, CHAIN)]
    a, b = (np.zeros(65, np.uint16) for _ in "ab")
    for side, name in ((a, "a"), (b, "b")):
        side[: len(document["vector"][name])] = [int(one, 16) for one in document["vector"][name]]
    f16 = unit[0].a
    again = [mmaprobe.dot(to_numbers(a, f16), to_numbers(b, f16), plan=plan).view(np.uint32).item() for plan in unit]
    assert [f"{one:08x}" for one in again] == results
    assert f"by {SPLIT}," in result.stderr


def test_the_command_proves_and_writes_certificates(folder: Path) -> None:
    path = written(folder, f"M: ..16, K: 63..64, plan: {SPLIT}.yaml", f"plan: {CHAIN}.yaml")
    result = invoke(str(path), "--explain", "--certificate", "kept")
    assert result.exit_code == 0, result.output
    assert "equal at 63 to 64 of K = 63 to 64" in result.stderr
    checked = CliRunner().invoke(main, ["check", "kept"])
    assert checked.exit_code == 0, checked.output
    assert invoke(str(written(folder, f"plan: {CHAIN}.yaml"))).exit_code == 0
    assert invoke(str(written(folder, f"M: 2.., plan: {CHAIN}.yaml"))).exit_code == 3


def test_the_face_of_python(folder: Path) -> None:
    path = written(folder, f"M: ..16, plan: {SPLIT}.yaml", f"plan: {CHAIN}.yaml")
    assert mmaprobe.invariant(path).verdict == "different"
    assert mmaprobe.invariant(str(path), shapes="M=17..64").verdict == "equal"
    with pytest.raises(MmaprobeError, match="formats, length, shape"):
        mmaprobe.invariant(path, length=4)
    with pytest.raises(MmaprobeError, match="shapes"):
        mmaprobe.invariant(path, shapes="M=0")


def test_rules_by_hand_are_a_map_elsewhere_too(folder: Path) -> None:
    path = written(folder, f"M: ..2, row: 1, plan: {SPLIT}.yaml", f"plan: {CHAIN}.yaml")
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((2, 200), (200, 30)))
    np.save("a.npy", a)
    np.save("b.npy", b)
    result = CliRunner().invoke(main, ["simulate", "a.npy", "b.npy", "-o", "d.npy", "--plan", str(path)])
    assert result.exit_code == 0, result.output
    one, other = (mmaprobe.matmul(a, b, plan=f"{name}.yaml") for name in (CHAIN, SPLIT))
    assert (one != other).any(axis=1).all()
    assert np.array_equal(np.load("d.npy"), np.stack([one[0], other[1]]))
    machine = machine_of(path)
    assert machine.rule("f16", "f16").known == "given"
    patterns = a.view(np.uint16)[None], b.view(np.uint16)[None]
    assert np.array_equal(machine.rule("f16", "f16").product(*patterns)[0].view(np.float32), np.load("d.npy"))


@pytest.mark.parametrize(
    ("shapes", "elements", "expected"),
    [
        ("shapes: {M: 1..64, N: 1..512}", ["plan: one-chain.yaml"], "rules.yaml:2: shapes: K is missing"),
        ("shapes: {M: 1.., N: 8, K: 8}", ["plan: one-chain.yaml"], "rules.yaml:2: shapes.M: a last number"),
        (SHAPES, ["plan: one-chain.yaml, L: 4"], "rules.yaml:4: elements.0.L: unknown key"),
        (SHAPES, ["plan: one-chain.yaml, M: 4..2"], "rules.yaml:4: elements.0.M: '4..2'"),
        (SHAPES, ["plan: one-chain.yaml", "M: 4"], "rules.yaml:5: elements.1: plan is missing"),
        (SHAPES, ["plan: none.yaml"], "rules.yaml:4: elements.0.plan: "),
        (SHAPES, ["plan: one-chain.yaml", "plan: ieee/fma/f32"], "rules.yaml:5: elements.1.plan: other formats"),
        (SHAPES, [], "elements"),
    ],
)
def test_mistakes_in_rules(folder: Path, shapes: str, elements: list[str], expected: str) -> None:
    result = invoke(str(written(folder, *elements, shapes=shapes)))
    assert result.exit_code == 2, result.output
    assert expected in result.stderr


@pytest.mark.parametrize("shapes", ["M=3..2", "L=1", "M", "M=0", "K=99999999"])
def test_mistakes_in_shapes(folder: Path, shapes: str) -> None:
    result = invoke(str(written(folder, f"plan: {CHAIN}.yaml")), "--shapes", shapes)
    assert result.exit_code == 2, result.output
    assert "shapes" in result.stderr


def test_a_recorded_product_is_no_map(folder: Path) -> None:
    text = (folder / f"{CHAIN}.yaml").read_text()
    (folder / "product.json").write_text(json.dumps({"looked_at": 1, "plans": {CHAIN: text}}))
    result = invoke("product.json")
    assert result.exit_code == 2, result.output
    assert "one recorded product" in result.stderr


@pytest.mark.parametrize(("name", "d"), [("int8", "int32"), ("e4m3fnuz", "f32"), ("f16", "f32")])
def test_products_come_in_pairs_whose_sum_is_zero(name: str, d: str) -> None:
    """Also in two's complement, where one number has no negative, and where the pattern of -0 is NaN."""
    asked, length = parse_signature(f"{name},{name},{d}", 2000), 2000
    one, other = Dependence(asked, lambda a, b, c: c, Shape(4, 4, length))._drawn(length)
    sums = in_f64(one, asked.a) @ in_f64(other, asked.b).T
    assert sums[:, 0].all()
    assert not sums[:, 1:].any()
    assert (other == 0).any() or name != "e4m3fnuz"
