"""`identify --gemm`: which plan a library runs at which K, and that nothing is claimed where it runs another one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from cli.main import main
from queries.order.tree import Leaf, Node
from queries.plans import library as gemm_plans
from queries.plans.tree_stages import stages_of
from smtmodel.gemm import simulate
from smtmodel.nodes import Constant
from smtmodel.nodes.round import Rounding
from smtmodel.plan_table import plans
from smtmodel.plans import Chain, Halves, Interleaved, Plan, Products, Promoted, Split, Stage
from smtmodel.plans.planfile import parse_plan
from smtmodel.plans.plantext import plan_text
from smtmodel.reference import parse_plan_path, parse_reference
from smtmodel.signature import parse_signature
from smtmodel.tiles import Matrix

LIBRARY = """
import numpy as np


def chain(a, b, start=0, stop=None):
    total = np.zeros((len(a), b.shape[1]), np.float32)
    for k in range(start, a.shape[1] if stop is None else stop):
        total = total + np.outer(a[:, k], b[k])
    return total


def changes(a, b):
    length = a.shape[1]
    if length <= 19:
        return chain(a, b)
    return chain(a, b, 0, (length + 1) // 2) + chain(a, b, (length + 1) // 2)


def edges(a, b):
    found = chain(a, b)
    for start in range(0, b.shape[1] % 4):
        found[:, -1 - start] = chain(a[:, ::-1], b[::-1])[:, -1 - start]
    return found


def shuffled(a, b):
    order = np.random.default_rng(a.shape[1]).permutation(a.shape[1])
    return chain(a[:, order], b[order])


def narrow(a, b):
    # from the last product to the first, in float32: one rounding to float16 hides that from most random inputs
    return chain(a[:, ::-1].astype(np.float32), b[::-1].astype(np.float32)).astype(np.float16)


def fails(a, b):
    raise ValueError("no product of this kind")
"""
FMA, R = parse_reference("ieee/fma/f32"), Rounding(parse_reference("ieee/fma/f32").d)


def asked(tmp_path: Path, name: str, *rest: str) -> tuple[int, dict[str, Any], str]:
    (tmp_path / "library.py").write_text(LIBRARY)
    found = CliRunner().invoke(
        main,
        ["identify", "--gemm", "--device", f"python:{tmp_path}/library.py:{name}", "--formats", "f32,f32,f32",
         "--length", "22", "--shape", "8,8", "--json", *rest],
    )  # fmt: skip
    return found.exit_code, json.loads(found.stdout) if found.stdout else {}, found.stderr


@pytest.fixture(autouse=True)
def fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemm_plans, "CHECKED", 20)


def test_a_change_of_the_plan_with_k_is_found(tmp_path: Path) -> None:
    code, found, _ = asked(tmp_path, "changes", "--save", str(tmp_path / "plan.yaml"))
    assert code == 0
    inside = [(span["from"], span["to"], span["plan"]) for span in found["spans"] if span["shape"] == [8, 8]]
    assert inside[0] == (1, 19, "sum(muladd, +0)")
    assert inside[1][:2] == (20, 22)  # of that range a split in two and one more halving are the same
    assert inside[1][2] in ("sum(split(2, muladd, r, grain=1), +0)", "sum(halve(16, muladd, r), +0)")
    assert not any(tally["differ"] or tally["open"] for tally in found["checked"].values())
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((5, 21)).astype(np.float32), rng.standard_normal((21, 5)).astype(np.float32)
    space: dict[str, Any] = {}
    exec(LIBRARY, space)
    plan = parse_plan(found["plans"][inside[1][2]], "plan.yaml", parse_reference)
    d = simulate(a.view(np.uint32), b.view(np.uint32), None, plan)
    assert np.array_equal(d.view(np.float32), space["changes"](a, b))
    assert parse_plan_path(str(tmp_path / "plan.yaml")).reference == inside[0][2]


def test_edges_are_kinds_of_their_own(tmp_path: Path) -> None:
    """Columns after the last multiple of 4 are summed from the end: they have no plan, and no other element is said
    to be like them."""
    code, found, _ = asked(tmp_path, "edges")
    assert code == 3
    assert found["edges"] == [0, 4]
    (inside,) = [span for span in found["spans"] if span["shape"] == [8, 8]]
    assert (inside["from"], inside["to"], inside["plan"]) == (1, 22, "sum(muladd, +0)")
    tally = found["checked"]["M and N above 1"]
    assert tally["agree"]
    assert not tally["differ"]
    edge = found["checked"]["columns after the last multiple of 4"]
    assert edge["differ"] or edge["open"]


def test_no_plan_is_named_for_an_order_of_no_plan(tmp_path: Path) -> None:
    code, found, _ = asked(tmp_path, "shuffled")
    assert code in (1, 3)
    assert not [span for span in found["spans"] if span["plan"] and span["to"] > 3]


def test_a_narrow_result_hides_no_order() -> None:
    """One rounding to float16 hides the order of sums in float32 from most random inputs: some are made for it."""
    space: dict[str, Any] = {}
    exec(LIBRARY, space)
    asked = parse_signature("f16,f16,f16", 1)

    def multiply(a: Matrix, b: Matrix, c: Matrix) -> Matrix:
        found: Matrix = space["narrow"](a.view(np.float16), b.view(np.float16)).view(np.uint16)
        return found

    top = gemm_plans.Shape(8, 8, 16)
    mapper = gemm_plans.Mapper(asked, multiply, lambda m, n, k: None, top)
    forwards = next(plan for plan in mapper.plans(Chain(parse_reference("ieee/fma/f32.f16.f16.f32")), False))
    for length in (4, 6, 16):
        place = gemm_plans.Place(gemm_plans.Shape(8, 8, length), range(8), range(8))
        assert not mapper._fits(forwards, place)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--device", "python:library.py:fails"], 3, "no product of this kind"),
        (["--device", "model:volta/mma/m8n8k4.f32.f16.f16.f32"], 2, "a function that multiplies matrices"),
        (["--device", "python:library.py:chain", "--shape", "9"], 2, "give M,N"),
        (["--device", "python:library.py:changes", "--formats", "f32,f32,f32,f32"], 2, "takes no addend"),
    ],
)
def test_what_cannot_be_asked(
    arguments: list[str], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "library.py").write_text(LIBRARY)
    monkeypatch.chdir(tmp_path)
    given = ["--formats", "f32,f32,f32", "--length", "8", *arguments]
    found = CliRunner().invoke(main, ["identify", "--gemm", *given])
    assert (found.exit_code, message in found.stderr) == (code, True), found.stderr


def test_two_results_have_their_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`compare --gemm` names what gives each, where no one change of the model does, and where the two diverge."""
    chain = Chain(parse_reference("ieee/muladd/f32"))
    plain, blocks = (
        Plan(FMA.a, FMA.b, FMA.c, Products(stage, Constant()), reference=name)
        for name, stage in (("plain", chain), ("blocks", Promoted(16, chain, R)))
    )
    monkeypatch.setattr(gemm_plans.Candidates, "usual", lambda self, length: iter([plain, blocks]))
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((6, 40)).astype(np.float32), rng.standard_normal((40, 6)).astype(np.float32)
    files = {"a": a, "b": b}
    for name, plan in (("d1", plain), ("d2", blocks)):
        files[name] = simulate(a.view(np.uint32), b.view(np.uint32), None, plan).view(np.float32)
    for name, matrix in files.items():
        np.save(tmp_path / f"{name}.npy", matrix)
    paths = [str(tmp_path / f"{name}.npy") for name in files]
    found = CliRunner().invoke(main, ["compare", "--gemm", *paths, "--model", "ieee/fma/f32", "--json"])
    assert found.exit_code == 0
    plans = json.loads(found.stdout)["gemm"]["plans"]
    assert [plans[name] for name in ("D1", "D2")] == [
        {"plans": ["plain"], "tried": 2},
        {"plans": ["blocks"], "tried": 2},
    ]
    count = plans["diverge_after"]
    assert count > 16
    i, j = json.loads(found.stdout)["gemm"]["first"]["row"], json.loads(found.stdout)["gemm"]["first"]["column"]
    for products, same in ((count - 1, True), (count, False)):
        parts = a[i : i + 1, :products].view(np.uint32), np.ascontiguousarray(b[:products, j : j + 1]).view(np.uint32)
        one, other = (simulate(*parts, None, plan) for plan in (plain, blocks))
        assert (one[0, 0] == other[0, 0]) == same


# -- the parts


def tree_of(stage: Stage, places: list[int]) -> Node | Leaf:
    """The tree of a stage, written anew from its description."""
    match stage:
        case Chain():
            return added(list(places))
        case Promoted():
            size, left = stage.every, len(places) % stage.every
            cuts = list(range(0, len(places), size))
            if stage.even and left and len(places) > size:
                cuts[-1] = cuts[-2] + -(-(size + left) // (2 * stage.even)) * stage.even
            ends = [*cuts[1:], len(places)]
            return added([tree_of(stage.body, places[i:j]) for i, j in zip(cuts, ends, strict=True)])
        case Split():
            size = -(-len(places) // (stage.grain * stage.ways)) * stage.grain
            return added([tree_of(stage.body, places[i : i + size]) for i in range(0, len(places), size)])
        case Halves():
            if len(places) <= stage.most:
                return tree_of(stage.body, places)
            half = -(-len(places) // (2 * stage.grain)) * stage.grain
            return Node("binary", (tree_of(stage, places[:half]), tree_of(stage, places[half:])))
        case Interleaved():
            turn = stage.ways * stage.grain
            whole = len(places) - len(places) % turn
            lanes = [
                [k for n, k in enumerate(places[:whole]) if n % turn // stage.grain == w] for w in range(stage.ways)
            ]
            return added([added([tree_of(stage.body, lane) for lane in lanes]), *places[whole:]])
    raise AssertionError(stage)


def added(parts: list[Any]) -> Any:
    whole, *rest = parts
    for part in rest:
        whole = Node("binary", (whole, part))
    return whole


CHAIN = Chain(FMA)
STAGES = [
    CHAIN,
    Promoted(16, CHAIN, R),
    Promoted(24, CHAIN, R, even=1),
    Promoted(24, CHAIN, R, even=4),
    Promoted(20, Interleaved(2, CHAIN, R), R),
    Split(3, CHAIN, R, grain=1),
    Split(2, CHAIN, R, grain=8),
    Interleaved(4, CHAIN, R, tail=CHAIN),
    Interleaved(2, Interleaved(2, Interleaved(2, CHAIN, R), R), R, grain=2, tail=CHAIN),
    Halves(10, CHAIN, R),
]


@pytest.mark.parametrize("stage", STAGES, ids=[type(stage).__name__ + str(n) for n, stage in enumerate(STAGES)])
def test_a_tree_suggests_its_stage(stage: Stage) -> None:
    """Among the guesses is one with the tree of the stage at this K and at another one."""
    length = 60 if isinstance(stage, Promoted) and stage.even != 4 else 62 if isinstance(stage, Promoted) else 65
    if isinstance(stage, Promoted) and stage.every == 20:
        length = 80
    guesses = stages_of(tree_of(stage, list(range(length))), FMA, R)
    assert any(
        all(tree_of(guess, list(range(k))) == tree_of(stage, list(range(k))) for k in (length, length - stage.period))
        for guess in guesses
        if not isinstance(guess, Promoted) or guess.every < length
    ), guesses


@pytest.mark.parametrize("length", [16, 17, 31, 32, 33, 47, 48, 50])
def test_the_last_two_sums_are_made_equal(length: int) -> None:
    """As a loop in float32 that was written by hand."""
    stage = Promoted(16, Chain(parse_reference("ieee/muladd/f32")), R, even=2)
    plan = Plan(FMA.a, FMA.b, FMA.c, Products(stage, Constant()))
    rng = np.random.default_rng(length)
    a, b = rng.standard_normal((3, length)).astype(np.float32), rng.standard_normal((length, 3)).astype(np.float32)
    total, start = np.zeros((3, 3), np.float32), 0
    while start < length:
        left = length - start
        size = 16 if left >= 32 or left <= 16 else (left + 3) // 4 * 2
        part = np.zeros((3, 3), np.float32)
        for k in range(start, min(start + size, length)):
            part = part + np.outer(a[:, k], b[k])
        total, start = total + part, start + size
    assert np.array_equal(simulate(a.view(np.uint32), b.view(np.uint32), None, plan).view(np.float32), total)


@pytest.mark.parametrize("name", [name for name in plans() if name != "cutlass/linear-combination"])
def test_the_text_of_a_plan_is_the_plan(name: str) -> None:
    plan = parse_plan_path(name)
    assert parse_plan(plan_text(plan), name, parse_reference) == plan


def test_show_prints_the_file_of_a_plan(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(CliRunner().invoke(main, ["show", "plan:cublas/split-k"]).stdout, encoding="utf-8")
    assert parse_plan_path(str(path)).result == parse_plan_path("plan:cublas/split-k").result
    tree = CliRunner().invoke(main, ["show", str(path), "--svg", str(tmp_path / "tree.svg")])
    assert tree.exit_code == 2
    assert f"plan:{path}@length=64" in tree.stderr


def test_a_recorded_product_has_its_plans(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(size).astype(np.float32) for size in ((24, 96), (96, 20)))
    d = simulate(a.view(np.uint32), b.view(np.uint32), None, parse_plan_path("plan:loop/lanes")).view(np.float32)
    files = [tmp_path / f"{name}.npy" for name in "abd"]
    for file, matrix in zip(files, (a, b, d), strict=True):
        np.save(file, matrix)
    line = ["identify", "--gemm", "--device", f"recorded:{','.join(map(str, files))}", "--formats", "f32,f32,f32"]
    done = CliRunner().invoke(main, [*line, "--timeout", "20", "--json", "--save", str(tmp_path / "plan.yaml")])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert any("interleave(8, fma, r, order=pairwise, tail=fma)" in text for text in document["plans"].values())
    assert document["looked_at"] == 24 * 20
    saved = parse_plan_path(str(tmp_path / "plan.yaml"))
    assert (simulate(a.view(np.uint32), b.view(np.uint32), None, saved).view(np.float32) == d).all()
    np.save(files[2], d + np.float32(1))
    assert CliRunner().invoke(main, [*line, "--timeout", "3"]).exit_code == 1
    np.save(files[2], d[:, :3])
    done = CliRunner().invoke(main, line)
    assert done.exit_code == 2
    assert "do not give D (24, 3)" in done.stderr
