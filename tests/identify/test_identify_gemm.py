"""`identify --gemm`: which plan a library runs at which K, and that nothing is claimed where it runs another one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.compare.gemm import Element, Matrices
from mmaprobe.queries.order.tree import Leaf, Node
from mmaprobe.queries.plans import asked_products
from mmaprobe.queries.plans import library as gemm_plans
from mmaprobe.queries.plans.candidates import Candidates, cut_alike
from mmaprobe.queries.plans.first_step import first_step
from mmaprobe.queries.plans.forms import _simple, plain
from mmaprobe.queries.plans.lane_stages import ALL, blocks_of, epilogues_of, lanes_of
from mmaprobe.queries.plans.lengths import LENGTHS, lengths_asked
from mmaprobe.queries.plans.mapping import rules_of
from mmaprobe.queries.plans.rules import FEATURES, Rule, Shape, chosen, features_of, learned
from mmaprobe.queries.plans.rules import blocks_of as blocks_of_side
from mmaprobe.queries.plans.rules import sizes_of as size_classes
from mmaprobe.queries.plans.tree_stages import stages_of
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import IncompleteError, InputError
from mmaprobe.smtmodel.base.interrupts import Interrupted, TimeUp, state
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import from_numbers, type_of
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.evaluate.tiles import Matrix
from mmaprobe.smtmodel.inputs.signature import parse_signature
from mmaprobe.smtmodel.nodes import Constant, ExactSum, Round
from mmaprobe.smtmodel.nodes import Element as Input
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain, Fold, Plan, Products, Stage
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.joins import Add, Promote, Tree
from mmaprobe.smtmodel.plans.lowering import unit_of_plan
from mmaprobe.smtmodel.plans.named import (
    after_first,
    in_format,
    in_halves,
    in_multiples,
    in_runs,
    in_runs_at,
    in_turns,
    in_vectors,
    interleaved,
    promoted,
)  # fmt: skip
from mmaprobe.smtmodel.plans.partitions import At, Equal, Halves, Interleaved, Lanes, Runs, Whole
from mmaprobe.smtmodel.plans.plan_files import plans
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.plans.plantext import plan_text
from mmaprobe.smtmodel.plans.stages import Parted, parts_of
from mmaprobe.smtmodel.plans.tape import Tape
from mmaprobe.smtmodel.tables.reference import parse_plan_path, parse_reference
from tests.plans.trees import tree_by_steps

pytestmark = pytest.mark.solvers

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


def but_at_one(a, b):
    half = 27 if a.shape[1] == 53 else 0
    return chain(a, b, 0, half) + chain(a, b, half) if half else chain(a, b)


def shuffled(a, b):
    order = np.random.default_rng(a.shape[1]).permutation(a.shape[1])
    return chain(a[:, order], b[order])


def narrow(a, b):
    # from the last product to the first, in float32: one rounding to float16 hides that from most random inputs
    return chain(a[:, ::-1].astype(np.float32), b[::-1].astype(np.float32)).astype(np.float16)


def few_rows(a, b):
    assert len(a) > 2, "no shape of these was asked for"
    return chain(a, b)


def tripled(a, b):
    return np.float32(3) * chain(a, b)


def long(a, b):
    assert a.shape[1] > 18, "no shape of these was asked for"
    return chain(a, b)


def even(a, b):
    assert not (len(a) % 2 or a.shape[1] % 2 or b.shape[1] % 2), "no shape of these was asked for"
    return chain(a, b)


def transposed(a, b):
    wanted = (4 * a.shape[1], 4), (4, 4 * b.shape[0])  # of one row or column too
    assert (a.strides, b.strides) == wanted, "other matrices were handed over"
    return chain(a, b)


def without_last_of_odd(a, b):
    return chain(a, b, 0, a.shape[1] - len(a) % 2)


def biased(a, b, c):
    scaled = (np.float32(0.7) * chain(a.astype(np.float32), b.astype(np.float32))).astype(np.float16)
    return (scaled.astype(np.float32) + c.astype(np.float32)).astype(np.float16)


def a_cut(a, b):
    cut = (a.view(np.uint16) & np.uint16(0xFFE0)).view(np.float16)  # five bits of fraction, of subnormal numbers too
    return chain(cut.astype(np.float32), b.astype(np.float32))


def in_tiles(a, b):
    tiles = -(-a.shape[1] // 4)
    cuts = [min(a.shape[1], -(-tiles * i // 3) * 4) for i in range(4)]
    parts = [chain(a, b, i, j) for i, j in zip(cuts, cuts[1:]) if i < j]
    return sum(parts[1:], parts[0])


def in_pairs(a, b):
    # a quarter of K, in whole runs of 16, each from +0; the sums of the quarters are added in pairs
    a, b, run = a.astype(np.float32), b.astype(np.float32), -(-a.shape[1] // 64) * 16
    parts = []
    for start in range(0, a.shape[1], run):
        stop = min(start + run, a.shape[1])
        parts.append(sum((chain(a, b, k, min(k + 16, stop)) for k in range(start, stop, 16)), np.float32(0)))
    if len(parts) == 4:
        parts = [parts[0] + parts[1], parts[2] + parts[3]]
    return sum(parts[1:], parts[0])


def fails(a, b):
    raise ValueError("no product of this kind")
"""
UNFUSED = parse_reference("ieee/muladd/f32")
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
    for name, number in (("CHECKED", 20), ("FIRST", 16), ("MORE", 8), ("TREES", 6)):
        monkeypatch.setattr(gemm_plans, name, number)


def test_only_shapes_of_a_span_are_asked_and_spoken_of(tmp_path: Path) -> None:
    """The library has another kernel for few rows, of which nothing is said."""
    code, found, message = asked(tmp_path, "few_rows", "--shape", "3..8,1..8", "--save", str(tmp_path / "plan.yaml"))
    assert code == 0, message
    (rule,) = found["rules"]
    assert parse_plan_path(str(tmp_path / "plan.yaml")).reference == rule["plan"]
    assert (rule["elements"], rule["plan"], rule["confirmed"]) == ("all products", "sum(muladd, +0)", True)
    path = tmp_path / "map.json"
    path.write_text(json.dumps(found))
    known = rules_of(path)
    assert (known.plans_of(Shape(3, 1, 22)) == 0).all()
    assert (known.numbers_of(Shape(2, 4, 22)) == -1).all()


def test_only_multiples_are_asked_and_spoken_of(tmp_path: Path) -> None:
    """The library has another kernel for odd numbers of columns and of products, of which nothing is said."""
    code, found, message = asked(tmp_path, "even", "--multiple", "2")
    assert code == 0, message
    (rule,) = found["rules"]
    assert (rule["elements"], rule["confirmed"]) == ("M, N and K multiples of 2", True)
    path = tmp_path / "map.json"
    path.write_text(json.dumps(found))
    known = rules_of(path)
    assert (known.plans_of(Shape(2, 8, 22)) == 0).all()
    for shape in (Shape(3, 4, 22), Shape(2, 5, 22), Shape(2, 4, 21)):
        assert (known.numbers_of(shape) == -1).all()
    code, _, message = asked(tmp_path, "even", "--multiple", "9")
    assert code == 2
    assert "--multiple" in message


def test_only_the_k_of_a_span_are_asked_and_spoken_of(tmp_path: Path) -> None:
    """K with M and N, as of the products of one model; of a single shape all products asked are of that one."""
    (tmp_path / "library.py").write_text(LIBRARY)
    path = tmp_path / "map.json"
    for spans, within, without in (("1..4,1..4,19..24", Shape(2, 2, 19), Shape(2, 2, 18)),
                                   ("3..3,5..5,5000..5000", Shape(3, 5, 5000), Shape(3, 5, 4999))):  # fmt: skip
        given = ["--formats", "f32,f32,f32", "--shape", spans, "--json"]
        found = CliRunner().invoke(
            main, ["identify", "--gemm", "--device", f"python:{tmp_path}/library.py:long", *given]
        )
        assert found.exit_code == 0, found.stderr
        path.write_text(found.stdout)
        known = rules_of(path)
        assert (known.plans_of(within) == 0).all()
        assert (known.numbers_of(without) == -1).all()


def test_a_large_matrix_repeats_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked_products, "POOL", 64)
    mapper = gemm_plans.Mapper(parse_signature("f32,f32,f32", 1), lambda a, b, c: c, lambda *_: None, Shape(4, 4, 8))
    few, many = (mapper.products.patterns(FORMATS["f32"], (10, width), (-2, 2)) for width in (6, 20))
    assert (few.size, len(np.unique(few)), many.size, len(np.unique(many))) == (60, 60, 200, 64)


def test_cancelling_products_show_where_c_is_added() -> None:
    """In f16 results of the size of c its place is hidden, as in nearly all of 2,304 random elements."""
    asked, how = parse_signature("f16,f16,f16,f16", 128), Rounding(FORMATS["f16"])
    stage = Chain(parse_reference("hopper/mma/m16n8k16.f32.f16.f16.f32"))
    total = Products(stage, Constant())
    last, first = (
        Plan(asked.a, asked.b, asked.c, Round(result, how))
        for result in (ExactSum((total, Input("c"))), Products(stage, Input("c")))
    )  # fmt: skip
    mapper = gemm_plans.Mapper(
        asked, lambda a, b, c: simulate(a, b, c, last), lambda *_: None, Shape(12, 12, 128)
    )  # fmt: skip
    sample, _ = mapper.products.sample(mapper.top)
    assert mapper.same(last, sample)
    results = mapper.results(first, sample)
    assert results is not None
    apart = ~mapper.agreeing(results, sample)
    assert apart[1::2].sum() > 10
    assert apart[::2].sum() == 0


def test_matrices_are_handed_over_transposed_in_memory(tmp_path: Path) -> None:
    code, found, message = asked(tmp_path, "transposed", "--layout", "nt")
    assert code == 0, message
    path = tmp_path / "map.json"
    path.write_text(json.dumps(found))
    assert (found["layout"], rules_of(path).layout) == ("nt", "nt")
    code, _, message = asked(tmp_path, "transposed")
    assert code == 3
    assert "other matrices were handed over" in message
    code, found, message = asked(tmp_path, "even", "--multiple", "2")
    path.write_text(json.dumps(found))
    assert "layout" not in found
    assert rules_of(path).layout == "nn"


def test_a_change_of_the_plan_with_k_is_found(tmp_path: Path) -> None:
    code, found, message = asked(tmp_path, "changes", "--save", str(tmp_path / "plan.yaml"))
    assert code == 0, found
    rules = {rule["elements"]: rule["plan"] for rule in found["rules"]}
    assert set(rules) == {"K = 1 to 19", "K = 20 to 22"}
    assert rules["K = 1 to 19"] == "sum(muladd, +0)"
    assert rules["K = 20 to 22"].startswith(("sum(split(2, muladd, r", "sum(halve(1", "sum(promote("))
    assert found["checked"] == 20
    assert not found["open"]
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((5, 21)).astype(np.float32), rng.standard_normal((21, 5)).astype(np.float32)
    space: dict[str, Any] = {}
    exec(LIBRARY, space)
    plan = parse_plan(found["plans"][rules["K = 20 to 22"]], "plan.yaml", parse_reference)
    d = simulate(a.view(np.uint32), b.view(np.uint32), None, plan)
    assert np.array_equal(d.view(np.float32), space["changes"](a, b))
    [(gives, looked)] = re.findall(
        r"^not saved: sum\(.* gives ([0-9]+) of ([0-9]+) elements looked at; ", message, re.M
    )
    assert 0 < int(gives) < int(looked)  # a file has one plan
    assert not (tmp_path / "plan.yaml").exists()
    check_map(tmp_path, found, space["changes"])


def test_rules_are_held_at_every_k_of_their_range(tmp_path: Path) -> None:
    """A single K at which the library cuts K has its own rule, or none, and no other rule speaks of it."""
    _, found, _ = asked(tmp_path, "but_at_one", "--length", "60")
    (tmp_path / "map.json").write_text(json.dumps(found))
    known, rng, space = rules_of(tmp_path / "map.json"), np.random.default_rng(6), dict[str, Any]()
    exec(LIBRARY, space)
    for rule in found["rules"]:
        assert rule["lengths_asked"] == rule["lengths"]
    for k in range(1, 61):
        a, b = rng.standard_normal((5, k)).astype(np.float32), rng.standard_normal((k, 6)).astype(np.float32)
        multiply = partial(simulate, a.view(np.uint32), b.view(np.uint32), None)
        d = known.product(Shape(5, 6, k), multiply)
        assert np.array_equal(d.view(np.float32), space["but_at_one"](a, b)), k


def test_where_k_are_too_many_those_beside_cuts_are_asked_first() -> None:
    models = parse_reference("ieee/fma/f32"), parse_reference("hopper/mma/m16n8k16.f32.f16.f16.f32")
    of_loops, of_units = (
        next(plain(parse_signature(formats, 1), R.format)).plan(promoted(256, Chain(model), R))
        for formats, model in zip(("f32,f32,f32", "f16,f16,f32"), models, strict=True)
    )
    assert of_loops is not None
    assert of_units is not None
    sizes = (frozenset({1}), frozenset({1}), frozenset(size_classes(np.arange(1, 3001)).tolist()))
    rules = [Rule((), (), number, sizes, (1, 1, 3000)) for number in range(2)]
    found = lengths_asked([(rules[0], of_loops), (rules[1], of_units)])
    assert len(found) == len(set(found)) == LENGTHS
    for number in range(2):
        mine = [length for at, length in found if at == number]
        assert set(mine[:2]) == {1, 3000}
        assert {k + off for k in range(256, 3000, 256) for off in (-1, 0, 1)} <= set(mine)
        if number:  # the tiles of the unit are then next
            assert all(length in (1, 3000) or length % 16 in (0, 1, 15) for length in mine)
    assert sorted(k for _, k in lengths_asked([(replace(rules[0], most=(1, 1, 40)), of_loops)])) == [*range(1, 41)]


def test_of_plans_that_are_one_at_small_k_the_chain_comes_first(tmp_path: Path) -> None:
    """Also where no order can be revealed, as a factor that is no power of two changes the masks."""
    code, found, message = asked(tmp_path, "tripled")
    assert code == 0, message
    assert [rule["plan"] for rule in found["rules"]] == ["r(product(number(0x40400000, f32), sum(muladd, +0)))"]


def check_map(folder: Path, found: dict[str, Any], function: Any) -> None:
    """`simulate --plan MAP.json` gives what the library gives, and refuses what no rule that is relied on speaks of."""
    rng = np.random.default_rng(5)
    names = [str(folder / f"{name}.npy") for name in "abd"]

    def simulated(relied_on: bool, k: int) -> int:
        rules = [{**rule, "confirmed": relied_on or rule["elements"] == "K = 1 to 19"} for rule in found["rules"]]
        (folder / "map.json").write_text(json.dumps({**found, "rules": rules}))
        sides = rng.standard_normal((5, k)).astype(np.float32), rng.standard_normal((k, 6)).astype(np.float32)
        for name, side in zip(names, sides, strict=False):
            np.save(name, side)
        arguments = ["simulate", *names[:2], "-o", names[2], "--plan", str(folder / "map.json")]
        code = CliRunner().invoke(main, arguments).exit_code
        assert code or np.array_equal(np.load(names[2]), function(*sides))
        return code

    assert [simulated(True, 21), simulated(True, 19), simulated(True, 23)] == [0, 0, 3]
    assert [simulated(False, 19), simulated(False, 21)] == [0, 3]


@pytest.mark.slow
def test_edges_are_elements_of_their_own(tmp_path: Path) -> None:
    """Columns after the last multiple of 4 are summed from the end: they have no plan, and no other element is said
    to be like them."""
    code, found, _ = asked(tmp_path, "edges")
    assert code == 3
    plans = {rule["plan"] for rule in found["rules"] if "columns up to the last multiple of 4" in rule["elements"]}
    assert plans == {"sum(muladd, +0)"}
    after = [rule for rule in found["rules"] if "columns after the last multiple of 4" in rule["elements"]]
    assert any(rule["plan"] is None for rule in after)
    assert found["open"]
    for rule in found["rules"]:  # what is said of the others is so
        assert "columns after" in rule["elements"] or not rule["differ"], rule


@pytest.mark.slow
def test_no_plan_is_named_for_an_order_of_no_plan(tmp_path: Path) -> None:
    code, found, _ = asked(tmp_path, "shuffled")
    assert code in (1, 3)
    for rule in found["rules"]:
        assert rule["plan"] is None or not rule["agree"] or "K up to" in rule["elements"] or "K =" in rule["elements"]
    assert found["open"] or any(rule["differ"] for rule in found["rules"])


def test_a_narrow_result_hides_no_order() -> None:
    """One rounding to float16 hides the order of sums in float32 from most random inputs: some are made for it."""
    space: dict[str, Any] = {}
    exec(LIBRARY, space)
    asked = parse_signature("f16,f16,f16", 1)

    def multiply(a: Matrix, b: Matrix, c: Matrix) -> Matrix:
        found: Matrix = space["narrow"](a.view(np.float16), b.view(np.float16)).view(np.uint16)
        return found

    mapper = gemm_plans.Mapper(asked, multiply, lambda shape, place, until: None, Shape(8, 8, 16))
    forwards = next(plain(asked, R.format)).plan(Chain(parse_reference("ieee/fma/f32.f16.f16.f32")))
    assert forwards is not None
    for length in (4, 6, 16):
        looked = mapper._seen(Shape(8, 8, length))
        assert not mapper._fitting(forwards, looked).all()


def test_guesses_of_long_sums_do_not_recurse() -> None:
    def chain(products: range) -> Node | Leaf:
        found: Node | Leaf = products[0]
        for product in products[1:]:
            found = Node("binary", (found, product))
        return found

    candidates, unit = Candidates(parse_signature("f16,f16,f16", 1)), Chain(parse_reference("ieee/fma/f32.f16.f16.f32"))
    lanes = Node("binary", (chain(range(0, 2400, 2)), chain(range(1, 2400, 2))))
    for tree, stage in ((chain(range(1200)), unit), (lanes, interleaved(2, unit, R))):
        assert stage in list(candidates.guesses(tree, (FORMATS["f16"], FORMATS["f16"])))


def test_usual_cuts_of_units_are_tried_before_an_order_is_asked_for() -> None:
    """An order of a long K costs more than all of them: PyTorch on AMX had no map for this reason. Of a unit that is
    known already all cuts are."""
    asked, unit = parse_signature("f16,f16,f32", 1), parse_reference("volta/mma/m8n8k4.f32.f16.f16.f32")
    usual, other = (
        Plan(asked.a, asked.b, asked.c, Products(stage, Constant()))
        for stage in (in_runs(2, Chain(unit), R, "sequential", 64), in_runs(8, Chain(unit), R, "backwards"))
    )
    cut = usual

    def multiply(a: Matrix, b: Matrix, c: Matrix) -> Matrix:
        return simulate(a, b, None, cut)

    def late(shape: Shape, place: tuple[int, int], until: float | None) -> None:
        raise IncompleteError("the time for this order ran out")

    mapper = gemm_plans.Mapper(asked, multiply, late, Shape(8, 8, 256))
    looked = mapper._seen(Shape(8, 8, 200))
    mapper.looked[looked.shape] = looked
    mapper._new(looked, 0)
    assert not mapper.findings.orders
    assert looked.fits[-1].all()
    cut = other
    mapper = gemm_plans.Mapper(asked, multiply, late, Shape(8, 8, 256))
    looked = mapper._seen(Shape(8, 8, 200))
    mapper.looked[looked.shape] = looked
    known = next(plain(asked, unit.d)).plan(Chain(unit))
    assert known is not None
    mapper._know(known)
    mapper._new(looked, 0)
    assert not mapper.findings.orders
    assert looked.fits[-1].all()


def test_parts_that_are_added_as_the_whole_may_be_are_tried_where_no_order_is_known() -> None:
    """As for a recorded product."""
    asked = parse_signature("f32,f32,f32", 1)
    stage = in_runs(2, interleaved(4, Chain(UNFUSED), R), R, grain=32)
    own = Plan(asked.a, asked.b, asked.c, Products(stage, Constant()))
    mapper = gemm_plans.Mapper(asked, lambda a, b, c: simulate(a, b, None, own), lambda *_: None, Shape(4, 4, 48))
    looked = mapper._seen(Shape(4, 4, 48))
    mapper.looked[looked.shape] = looked
    mapper._new(looked, 0)
    assert looked.fits[-1].all()


@pytest.mark.parametrize(("formats", "of_units"), [("f16,f16,f32", True), ("f32,f32,f32", False)])
def test_units_are_tried_where_an_order_costs_too_much(
    formats: str, of_units: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the largest shape first, whose K shows how it is cut; a scalar loop is told by an order of a short K."""
    asked, top, searched = parse_signature(formats, 1), Shape(4, 4, 96), list[Shape]()
    monkeypatch.setattr(gemm_plans.Mapper, "_affordable", lambda self, looked: False)
    monkeypatch.setattr(gemm_plans.Mapper, "_new", lambda self, looked, number: searched.append(looked.shape))
    monkeypatch.setattr(gemm_plans, "FIRST", 16)

    def multiply(a: Matrix, b: Matrix, c: Matrix) -> Matrix:
        return np.full(c.shape, a.any() and b.any(), dtype=c.dtype)  # of no plan

    mapper = gemm_plans.Mapper(asked, multiply, lambda *_: None, top)
    mapper._mended = lambda rules: rules  # type: ignore[method-assign]
    mapper.run()
    assert (searched[0] == top) is of_units


@pytest.mark.parametrize("every", [936])
def test_the_size_of_a_cut_is_told_by_other_k(every: int) -> None:
    """K = 1148 is cut in the same way by all sizes from 576 to 1144; where a sum is just full, one is told from
    another, and elements that a known plan gives, as nothing is cut, count too."""
    asked = parse_signature("f32,f32,f32", 1)

    def cut(size: int) -> Plan:
        stage = promoted(size, CHAIN, R, share=8)
        return Plan(asked.a, asked.b, asked.c, Products(stage, Constant()), reference=str(size))

    def multiply(a: Matrix, b: Matrix, c: Matrix) -> Matrix:
        return simulate(a, b, None, cut(every))

    mapper = gemm_plans.Mapper(asked, multiply, lambda shape, place, until: None, Shape(3, 3, 2048))
    looked = mapper.looked[Shape(3, 3, 1148)] = mapper._seen(Shape(3, 3, 1148))
    guesses = [cut(size) for size in range(1144, 576, -56)]
    assert all(mapper._fitting(plan, looked).all() for plan in guesses)
    assert cut(every) not in guesses
    assert mapper._going_on(guesses, looked)[0] == cut(every)


def test_rules_are_learned_as_they_are() -> None:
    """Of elements whose kernel follows from limits and edges, the rules say these limits, and speak of no number
    between two that were seen."""
    rng = np.random.default_rng(3)
    features, kernels = [], []
    for _ in range(200):
        shape = Shape(*map(int, rng.integers(1, 64, 3)))
        rows, columns = (np.arange(side) for side in (shape.rows, shape.columns))
        at = np.array([(i, j) for i in rows[-9:] for j in columns[-9:]])
        features.append(features_of(shape, at[:, 0], at[:, 1]))
        edge = at[:, 1] >= shape.columns - shape.columns % 8
        kernels.append(np.where(shape.rows * shape.columns * shape.length <= 20000, 0, np.where(edge, 1, 2)))
    every, kernel = np.concatenate(features), np.concatenate(kernels)
    rules = learned(every, kernel[:, None] == np.arange(3))
    assert {rule.plan for rule in rules} == {0, 1, 2}
    assert (np.array([rules[n].plan for n in chosen(rules, every)]) == kernel).all()
    (small,) = [rule for rule in rules if rule.plan == 0]
    (limit,) = small.below
    assert limit.low <= 20000 < limit.high
    between = every[:1].copy()
    between[0, limit.feature] = (limit.low + limit.high) // 2
    if limit.high - limit.low > 1:
        assert chosen(rules, between)[0] == -1
    assert small.text() == f"M * N * K up to {limit.low}"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--device", "python:library.py:fails"], 3, "no product of this kind"),
        (["--device", "model:volta/mma/m8n8k4.f32.f16.f16.f32"], 2, "a function that multiplies matrices"),
        (["--device", "python:library.py:chain", "--shape", "9"], 2, "give M,N"),
        (["--device", "python:library.py:chain", "--shape", "9..8,8"], 2, "or spans LOW..HIGH"),
        (["--device", "python:library.py:chain", "--shape", "8,8,8"], 2, "K is given once"),
        (["--device", "python:library.py:chain", "--length", "70000"], 2, "from 1 to 65536"),
        (["--device", "python:library.py:chain", "--shape", "4..8,8", "--invariant"], 2, "from 1 x 1 on"),
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
        Plan(FMA.a, FMA.b, FMA.c, Products(stage, Constant())) for stage in (chain, promoted(16, chain, R))
    )
    for name in ("units", "shipped"):
        monkeypatch.setattr(Candidates, name, lambda *given: iter(()))
    monkeypatch.setattr(Candidates, "aliases", lambda self, model: iter([model]))
    monkeypatch.setattr(Candidates, "steps", lambda self, taken: iter([chain.model]))
    monkeypatch.setattr(Candidates, "stages", lambda self, model, length: iter([chain, promoted(16, chain, R)]))
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
        {"plans": [name], "tried": plans["D1"]["tried"], "complete": True, "untried": [], "looked_at": 36,
         "best": None, "best_agrees": 36, "left_out": []}
        for name in ("sum(muladd, +0)", "sum(promote(16, muladd, r), +0)")
    ]  # fmt: skip
    i, j = json.loads(found.stdout)["gemm"]["first"]["row"], json.loads(found.stdout)["gemm"]["first"]["column"]
    steps = plans["first_step"]  # sixteen products make the first sum; the next one begins a sum from +0
    products = a[i] * b[:, j]
    total = np.float32(0)
    for product in products[:17]:
        total = total + product
    assert [steps[name]["step"] for name in ("D1", "D2")] == ["tile[16]", "chunk[1].tile[0]"]
    assert float(Fraction(steps["D1"]["value"])) == total
    assert float(Fraction(steps["D2"]["value"])) == products[16]


def test_runs_in_another_order_first_differ_where_they_are_added() -> None:
    """Each run is the same step in both plans, whenever it is made."""
    stages = [in_runs(3, Chain(FMA), R, order) for order in ("sequential", "backwards")]
    one, other = (Plan(FMA.a, FMA.b, FMA.c, Products(stage, Constant())) for stage in stages)
    numbers = np.array([[1, 2**-24, 2**-24]], np.float32).view(np.uint32)
    ones = np.ones((3, 1), np.float32).view(np.uint32)
    sums = [simulate(numbers, ones, None, plan) for plan in (one, other)]
    found = first_step(one, other, Matrices(numbers, ones, None, (sums[0], sums[1])), Element(0, 0, (0, 0), None))
    assert found is not None
    assert [step and float(step.value) for step in found] == [1.0, 2**-23]


# -- the parts


def tree_of(stage: Stage, places: list[int]) -> Node | Leaf:
    """The tree of a stage, written anew from its description."""
    match stage:
        case Chain():
            return added(list(places))
        case Parted(Runs() as cut, Promote()):
            size = cut.every
            if cut.share and len(places) % size:
                sums = -(-len(places) // size)
                size = next(n for n in range(cut.share, size + 1, cut.share) if n * sums > len(places))
            left = len(places) % size
            cuts = list(range(0, len(places), size))
            if cut.even and left and len(places) > size:
                half = (size + left + (cut.even == 1)) // 2
                cuts[-1] = cuts[-2] + -(-half // cut.even) * cut.even
            ends = [*cuts[1:], len(places)]
            return added([tree_of(stage.body, places[i:j]) for i, j in zip(cuts, ends, strict=True)])
        case Parted(Equal() as cut, Add(order=order)):
            grain = cut.grain or stage.body.period
            tiles = -(-len(places) // grain)
            if cut.tiles == "even":
                ends = [-(-tiles * n // cut.ways) * grain for n in range(cut.ways + 1)]
                parts = [places[i:j] for i, j in pairwise(ends) if i < j]
            else:
                size = -(-tiles // cut.ways) * grain
                parts = [places[i : i + size] for i in range(0, len(places), size)]
            return added([tree_of(stage.body, part) for part in parts], order)
        case Parted(At() as cut, Add(order=order)):
            ends = [*cut.at, len(places)]
            parts = [tree_of(stage.body, places[i:j]) for i, j in zip([0, *cut.at], ends, strict=True)]
            return added(parts, order)
        case Parted(Halves() as cut, Tree()):
            pair = 2 * cut.grain
            half = (len(places) if cut.first == "smaller" else len(places) + pair - 1) // pair * cut.grain
            if len(places) <= cut.most or not 0 < half < len(places):
                return tree_of(stage.body, places)
            return Node("binary", (tree_of(stage, places[:half]), tree_of(stage, places[half:])))
        case Parted(Whole() as cut, head=Stage()):
            left = len(places) % cut.number or cut.number
            rest = places[left:]
            parts = [rest[n : n + stage.body.partition.every] for n in range(0, len(rest), stage.body.partition.every)]
            return added([tree_of(stage.head, places[:left]), *(tree_of(stage.body.body, part) for part in parts)])
        case Parted(Whole() as cut, tail=Chain()):
            whole = len(places) - len(places) % cut.number
            return added([*([tree_of(stage.body, places[:whole])] if whole else []), *places[whole:]])
        case Parted(Interleaved() as cut, Add(order=order)):
            turn = cut.ways * cut.grain
            whole = len(places) - len(places) % turn
            lanes = [[k for n, k in enumerate(places[:whole]) if n % turn // cut.grain == w] for w in range(cut.ways)]
            return added([added([tree_of(stage.body, lane) for lane in lanes]), *places[whole:]])
    raise AssertionError(stage)


def added(parts: list[Any], order: str = "sequential") -> Any:
    whole, *rest = parts[::-1] if order == "backwards" else parts
    for part in rest:
        whole = Node("binary", (whole, part))
    return whole


CHAIN = Chain(FMA)
STAGES = [
    CHAIN,
    promoted(16, CHAIN, R),
    promoted(24, CHAIN, R, even=1),
    promoted(24, CHAIN, R, even=4),
    promoted(20, interleaved(2, CHAIN, R), R),
    promoted(24, CHAIN, R, share=8),
    in_multiples(24, promoted(24, CHAIN, R), head=CHAIN),
    interleaved(1, interleaved(2, CHAIN, R), R, grain=8, tail=CHAIN),
    in_runs(3, CHAIN, R, grain=1),
    in_runs(2, CHAIN, R, grain=8),
    interleaved(4, CHAIN, R, tail=CHAIN),
    interleaved(2, interleaved(2, interleaved(2, CHAIN, R), R), R, tail=CHAIN),
    in_halves(10, CHAIN, R),
    in_halves(16, CHAIN, R, 8, "smaller"),
    in_runs_at((16, 48), CHAIN, R),
    in_runs_at((16, 48, 56), CHAIN, R, "backwards"),
    in_runs(4, CHAIN, R, "backwards", 1),
    in_runs(3, promoted(8, CHAIN, R), R, "backwards", 8),
]


@pytest.mark.parametrize("stage", STAGES, ids=[type(stage).__name__ + str(n) for n, stage in enumerate(STAGES)])
def test_a_tree_suggests_its_stage(stage: Stage) -> None:
    """Among the guesses is one with the tree of the stage at this K and at another one."""
    runs = parts_of(stage, Runs, Promote)
    length = 60 if runs and runs.even != 4 else 62 if runs else 65
    if runs and runs.every == 20:
        length = 80
    guesses = stages_of(tree_of(stage, list(range(length))), FMA, R)
    assert any(
        all(
            tree_by_steps(guess, k) == tree_of(stage, list(range(k)))
            for k in (length, length - (1 if parts_of(stage, At) else stage.period))
        )
        for guess in guesses
        if not (own := parts_of(guess, Runs, Promote)) or own.every < length
    ), guesses


def lanes_tree(stage: Parted, count: int, place: int = 0, start: Node | Leaf | None = None) -> Node | Leaf:
    """The tree of a sum by lanes, written anew from its description."""
    cut = stage.partition
    assert isinstance(cut, Lanes)
    sums: list[Any] = [start, *[None] * (cut.lanes - 1)]
    last = [step for step in cut.steps if not isinstance(step, Fold)][-1]

    def take(lane: int, product: int) -> None:
        sums[lane] = product if sums[lane] is None else Node("binary", (sums[lane], product))

    if cut.head:
        while (count - place) % cut.lanes >= cut.head:
            for lane in range(cut.head):
                take(place + lane if place < cut.lanes else lane, place + lane)
            place += cut.head
    for number, step in enumerate(cut.steps):
        if isinstance(step, Fold):
            groups = ([sums[lane] for lane in group if sums[lane] is not None] for group in step.groups(len(sums)))
            sums = [added(group) if group else None for group in groups]
            continue
        end = count - count % cut.unroll if cut.unroll and not number else count
        while cut.order == "backwards" and not number and end - place:
            for turn in reversed(range(0, cut.unroll, step)):
                for lane in range(step):
                    take(lane, place + turn + lane)
            place += cut.unroll
        turn = step * cut.grain
        while end - place >= turn or (stage.tail is None and step == last and place < end):
            for taken in range(min(turn, count - place)):
                take(taken // cut.grain, place + taken)
            place += min(turn, count - place)
        assert number < len(cut.steps) - 1
    rest = list(range(place, count))
    if rest and parts_of(stage.tail, Runs, Promote):
        return added([sums[0], added(rest)])
    return lanes_tree(stage.tail, count, place, sums[0]) if parts_of(stage.tail, Lanes) else added([sums[0], *rest])


LANES = [
    in_vectors(CHAIN, R, (64, Fold(2, 8), 32, Fold(4, 8), Fold(2, 4), Fold(2, 1), Fold(2, 1)), tail=CHAIN),
    in_vectors(CHAIN, R, (8, Fold(2, 4), Fold(2, 1), Fold(2, 1)), 4, promoted(8, CHAIN, R)),
    in_vectors(CHAIN, R, (16, Fold(2, 8), Fold(2, 4), Fold(2, 2), Fold(2, 1))),
    in_vectors(CHAIN, R, (16, Fold(2, 1), Fold(2, 1), Fold(2, 1), Fold(2, 1))),
    in_vectors(CHAIN, R, (2, 1, Fold(2, 1)), unroll=8),
    in_vectors(CHAIN, R, (4, 4, Fold(2, 1), Fold(2, 1)), unroll=16, order="backwards"),
    in_vectors(CHAIN, R, (8, Fold(2, 4), Fold(4, 1)), grain=4),
    in_vectors(CHAIN, R, (8, Fold(8, 1)), grain=2, tail=CHAIN),
    in_vectors(CHAIN, R, (11, Fold(11, 1)), tail=CHAIN),
    in_vectors(CHAIN, R, (128, Fold(2, 64), Fold(4, 16), Fold(16, 1)), grain=2),
    in_vectors(CHAIN, R, (80, Fold(2, 40), 40, Fold(3, 16), 16, Fold(2, 8), 8, Fold(8, 1)), tail=CHAIN),
    in_vectors(
        CHAIN, R, (32, Fold(4, 8), Fold(2, 4), Fold(4, 1)), tail=in_vectors(CHAIN, R, (4, Fold(2, 2), Fold(2, 1)))
    ),
]
NAMES = ["dot", "gemv", "reduced", "in-pairs", "unrolled", "backwards", "several", "several-tail", "eleven", "one-turn",
         "uneven", "fewer"]  # fmt: skip


#: whose trees show that lanes take several turns at once only where enough products are left
UNROLLED = [in_vectors(CHAIN, R, (2, Fold(2, 1)), unroll=unroll, tail=promoted(8, CHAIN, R)) for unroll in (4, 8)]


@pytest.mark.parametrize(
    ("stage", "length"),
    [(stage, length) for stage in LANES for length in (200, 236, 239, 254)]
    + [(stage, length) for stage in UNROLLED for length in (239, 254)],
)
def test_a_tree_suggests_lanes(stage: Parted, length: int) -> None:
    """Among the guesses is the stage itself, or one with its tree at every K."""
    tree = lanes_tree(stage, length)
    guesses = [*lanes_of(tree, FMA, R), *epilogues_of(tree, FMA, R)]
    assert any(
        parts_of(guess, Lanes)
        and all(lanes_tree(guess, count) == lanes_tree(stage, count) for count in range(150, 280))
        for guess in guesses
    ), guesses


def test_a_tree_suggests_blocks() -> None:
    """Blocks of 8 products, then one of 4, of 2 and of 1, each summed apart."""
    tree = added([added(list(range(8))), added(list(range(8, 16))), added([16, 17, 18, 19]), added([20, 21]), 22])
    two = promoted(2, CHAIN, R)
    assert promoted(8, CHAIN, R, tail=promoted(4, CHAIN, R, tail=two)) in list(blocks_of(tree, FMA, R))
    products_first = in_multiples(4, Chain(parse_reference("ieee/muladd/f32")), tail=CHAIN)
    assert promoted(8, products_first, R) in list(blocks_of(tree, FMA, R))  # a compiler's loop within each block
    pairs = added([added([k, k + 1]) for k in range(0, 12, 2)])
    ours, unfused = Candidates(parse_signature("f32,f32,f32", 12)), Chain(parse_reference("ieee/muladd/f32"))
    f32 = FORMATS["f32"]
    usual, wider = (list(ours.guesses(pairs, (f32, f32), wider=wide)) for wide in (False, True))
    in_f64 = promoted(2, unfused, Rounding(FORMATS["f64"]))  # OpenBLAS, kernel/x86_64/sdot.c, for a stride
    assert in_f64 in wider
    assert in_f64 not in usual
    mma = Chain(parse_reference("hopper/mma/m16n8k8.f32.f16.f16.f32"))
    around = Candidates(parse_signature("f16,f16,f32", 100)).stages(mma.model, 100)
    assert in_multiples(32, mma, head=mma) in set(around)  # CUTLASS, see docs/cublas-plans.md


def test_sums_of_parts_are_stored_in_the_formats_that_results_show() -> None:
    """They are added in the wider format or in their own, of a tree and around a unit; a last rounding to the format of
    results is not written twice. Parts with a tail, which stays in its format, are no reason to stop."""
    pairs = added([added([k, k + 1]) for k in range(0, 12, 2)])
    ours, unfused, f32 = Candidates(parse_signature("f32,f32,f32", 12)), Chain(UNFUSED), FORMATS["f32"]
    s, h = Rounding(FORMATS["bf16"]), Rounding(FORMATS["f16"])
    ours.stored = [s.format]
    guesses = list(ours.guesses(pairs, (f32, f32)))
    parts = in_format(unfused, s)
    assert {promoted(2, parts, R), in_format(promoted(2, parts, s), R)} <= set(guesses)
    mma = Chain(parse_reference("hopper/mma/m16n8k8.f32.f16.f16.f32"))
    around = list(Candidates(parse_signature("f16,f16,f16", 100)).stages(mma.model, 100))
    parts = in_format(mma, h)
    assert {in_runs(2, parts, R), in_runs(2, parts, h), promoted(64, parts, R), promoted(64, parts, h)} <= set(around)
    assert len(around) == len(set(around))
    two = [stage for stage in around if isinstance(stage, Parted) and stage.partition.sums == 2]
    assert {stage.join.order for stage in two if isinstance(stage.join, Add)} == {"sequential"}


def product(stage: Stage, x: Matrix, y: Matrix) -> np.float32:
    plan = Plan(FMA.a, FMA.b, FMA.c, Products(stage, Constant()))
    found = simulate(x[None].view(np.uint32), y[:, None].copy().view(np.uint32), None, plan)
    return np.float32(found.view(np.float32)[0, 0])


@pytest.mark.parametrize("length", [1, 3, 7, 8, 12, 15, 21, 22, 31])
def test_lanes_compute_as_a_loop(length: int) -> None:
    """Vectors of lanes in float32, with a multiplication and an addition each, written by hand; the expression of the
    plan at this K gives the same."""
    unit = Chain(parse_reference("ieee/muladd/f32"))
    rng = np.random.default_rng(length)
    x, y = (rng.standard_normal(length).astype(np.float32) for _ in range(2))
    short = in_vectors(unit, R, (8, Fold(2, 4), Fold(4, 1)))
    sums = np.zeros(8, np.float32)
    for k in range(length):
        sums[k % 8] += x[k] * y[k]
    half = sums[:4] + sums[4:]
    assert product(short, x, y) == ((half[0] + half[1]) + half[2]) + half[3]
    folded = in_vectors(unit, R, (8, Fold(2, 4), 4, Fold(2, 1), Fold(2, 1)), tail=unit)
    sums, whole = np.zeros(8, np.float32), length - length % 8
    for k in range(whole):
        sums[k % 8] += x[k] * y[k]
    half, four = sums[:4] + sums[4:], length - length % 4
    for k in range(whole, four):
        half[k % 4] += x[k] * y[k]
    total = (half[0] + half[1]) + (half[2] + half[3])
    for k in range(four, length):
        total = total + x[k] * y[k]
    assert product(folded, x, y) == total
    first = in_vectors(unit, R, (8, Fold(2, 4), Fold(4, 1)), 4, promoted(4, unit, R))
    sums, start = np.zeros(8, np.float32), 4 if length % 8 >= 4 else 0
    for k in range(four):
        sums[k if k < start else (k - start) % 8] += x[k] * y[k]
    half = sums[:4] + sums[4:]
    total, rest = ((half[0] + half[1]) + half[2]) + half[3], np.float32(0)
    for k in range(four, length):
        rest = rest + x[k] * y[k]
    assert product(first, x, y) == (total + rest if four < length else total)
    twos = in_vectors(unit, R, (8, Fold(2, 4), Fold(4, 1)), 2, unit)
    sums, start, even = np.zeros(8, np.float32), length % 8 // 2 * 2, length - length % 2
    for k in range(even):
        sums[k if k < start else (k - start) % 8] += x[k] * y[k]
    half = sums[:4] + sums[4:]
    total = ((half[0] + half[1]) + half[2]) + half[3]
    assert product(twos, x, y) == (total + x[-1] * y[-1] if even < length else total)
    for stage in (short, folded, first, twos):
        model = Model("lanes", unit_of_plan(Plan(FMA.a, FMA.b, FMA.c, Products(stage, Constant())), length))
        bits = [int(value) for value in x.view(np.uint32)], [int(value) for value in y.view(np.uint32)]
        expected = int(product(stage, x, y).view(np.uint32))
        assert evaluate_row(model, Operands(tuple(bits[0]), tuple(bits[1]), 0)) == expected


@pytest.mark.parametrize("length", [16, 17, 31, 32, 33, 47, 48, 50])
def test_the_last_two_sums_are_made_equal(length: int) -> None:
    """As a loop in float32 that was written by hand after OpenBLAS, driver/level3/level3.c."""
    stage = promoted(16, Chain(parse_reference("ieee/muladd/f32")), R, even=2)
    plan = Plan(FMA.a, FMA.b, FMA.c, Products(stage, Constant()))
    rng = np.random.default_rng(length)
    a, b = rng.standard_normal((3, length)).astype(np.float32), rng.standard_normal((length, 3)).astype(np.float32)
    total, start = np.zeros((3, 3), np.float32), 0
    while start < length:
        left = length - start
        size = 16 if left >= 32 or left <= 16 else (left // 2 + 1) // 2 * 2
        part = np.zeros((3, 3), np.float32)
        for k in range(start, min(start + size, length)):
            part = part + np.outer(a[:, k], b[k])
        total, start = total + part, start + size
    assert np.array_equal(simulate(a.view(np.uint32), b.view(np.uint32), None, plan).view(np.float32), total)


def test_few_results_give_a_factor_of_few_digits() -> None:
    """The estimates of 16 sums in f32 are wrong in the eighth digit, or all are a little small if sums are truncated:
    of the numbers near them the shortest is tried first, and the nearest in f32."""
    estimate, own = 1.0000999385559899, float(np.float32(1.0000999385559899))
    assert _simple(estimate, 7.3e-8, 9.1e-8) == _simple(estimate, 7.3e-8, 1e-12) == [1.0001, own]
    assert _simple(estimate + 1e-6, 7.3e-8, 1e-12) == [float(np.float32(estimate + 1e-6))]


def test_a_multiple_is_stored_before_c_is_added(tmp_path: Path) -> None:
    """A factor, a rounding to the format of results, an addend and another rounding, in one plan."""
    code, found, message = asked(tmp_path, "biased", "--formats", "f16,f16,f16,f16")
    assert code == 0, message
    (rule,) = found["rules"]
    assert rule["plan"].startswith("r2(exact(r2(r(product(number(0x3f333333, f32), sum(")  # of units that agree


def test_a_split_whose_tiles_are_divided_evenly_is_found(tmp_path: Path) -> None:
    code, found, message = asked(tmp_path, "in_tiles", "--length", "40")
    assert code == 0, message
    assert "sum(split(3, muladd, r, grain=4, tiles=even), +0)" in {rule["plan"] for rule in found["rules"]}


def test_one_plan_of_every_k_comes_before_plans_of_some_k(tmp_path: Path) -> None:
    """At each K other plans give the same; units of several products give it but for small numbers."""
    given = ("--formats", "f16,f16,f32", "--length", "160", "--multiple", "8", "--save", str(tmp_path / "plan.yaml"))
    code, found, message = asked(tmp_path, "in_pairs", *given)
    assert code == 0, message
    assert [rule["plan"] for rule in found["rules"]] == ["sum(split(4, promote(16, fma, r), r, order=pairwise), +0)"]
    assert parse_plan_path(str(tmp_path / "plan.yaml")).reference == found["rules"][0]["plan"]


@pytest.mark.parametrize("own", ["ieee/fma/f32.f16.f16.f32", "cdna2/dot2/f32_f16"])
def test_units_that_differ_for_small_numbers_are_asked_of_them(own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is asked further where no product seen so far tells two units apart."""
    asked = parse_signature("f16,f16,f32", 1)
    one, other = (
        Plan(asked.a, asked.b, asked.c, Products(promoted(8, Chain(parse_reference(unit)), R), Constant()))
        for unit in (own, {"ieee/fma/f32.f16.f16.f32", "cdna2/dot2/f32_f16"}.difference({own}).pop())
    )
    mapper = gemm_plans.Mapper(asked, lambda a, b, c: simulate(a, b, None, one), lambda *_: None, Shape(8, 8, 16))
    looked = mapper._seen(Shape(8, 8, 16))
    monkeypatch.setattr(mapper, "_count_of", lambda *_: 0)
    numbers = next(n for n in range(64) if mapper.same(other, looked.alone(n)))
    assert mapper._with_best_unit(other, looked.alone(numbers), [looked]).models == one.models


def test_a_factor_that_is_cut_to_a_few_bits_is_found(tmp_path: Path) -> None:
    """To five bits of fraction: f16 numbers of A, which the units that take f16 are given."""
    code, found, message = asked(tmp_path, "a_cut", "--formats", "f16,f16,f32")
    assert code == 0, message
    (rule,) = found["rules"]
    assert rule["plan"].endswith(", +0), a rounded to e5m5_ieee, toward_zero")
    assert rule["confirmed"]


@pytest.mark.slow
def test_a_plan_of_some_shapes_alone_is_not_saved(tmp_path: Path) -> None:
    """Where M is odd a product is left out, and only of even M is there a plan."""
    path = tmp_path / "plan.yaml"
    code, found, message = asked(tmp_path, "without_last_of_odd", "--save", str(path), "--timeout", "20")
    assert code == 3
    rules = [rule["elements"] for rule in found["rules"] if rule["plan"] and "K = 1" not in rule["elements"]]
    assert rules
    assert all(text.endswith("M even") for text in rules)
    assert "the last product of K is no part of the sum in " in message
    assert "without a plan, all of M odd: " in message
    assert "not saved: " in message
    assert not path.exists()


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
    assert "gives all of the 480 elements looked at; at K = 96 so do: " in " ".join(done.stderr.split())
    saved = parse_plan_path(str(tmp_path / "plan.yaml"))
    assert (simulate(a.view(np.uint32), b.view(np.uint32), None, saved).view(np.float32) == d).all()
    np.save(files[2], d + np.float32(1))
    done = CliRunner().invoke(main, [*line, "--timeout", "0.3"])
    assert done.exit_code == 3
    assert "the time was over; not tried, or not wholly: " in done.stderr
    np.save(files[2], d[:, :3])
    done = CliRunner().invoke(main, line)
    assert done.exit_code == 2
    assert "do not give D (24, 3)" in done.stderr


@pytest.mark.parametrize("length", [3, 4, 8, 11, 15, 16, 23])
def test_what_fills_no_block_goes_through_the_tail(length: int) -> None:
    """Blocks of 8 products, then of 4, of 2 and of 1, each summed apart, as a loop in float32 written by hand."""
    unit = Chain(parse_reference("ieee/muladd/f32"))
    stage = promoted(8, unit, R, tail=promoted(4, unit, R, tail=promoted(2, unit, R)))
    rng = np.random.default_rng(length)
    x, y = (rng.standard_normal(length).astype(np.float32) for _ in range(2))
    total, start = np.float32(0), 0
    for size in (8, 4, 2, 1):
        while length - start >= size:
            part = np.float32(0)
            for k in range(start, start + size):
                part = part + x[k] * y[k]
            total, start = total + part, start + size
    assert product(stage, x, y) == total


LANES_FILE = """plan: lanes
formats: {a: f32, b: f32, c: f32, d: f32}
units: {fma: ieee/fma/f32}
roundings:
  r: round(f32, nearest_even)
steps:
  d: sum(STAGE, +0)
"""


@pytest.mark.parametrize("length", [89, 93])
def test_what_fills_one_vector_of_two_may_be_summed_apart(length: int) -> None:
    """As in Eigen's product of a matrix and a vector."""
    both = in_vectors(CHAIN, R, (16, *WIDE))
    apart = in_vectors(CHAIN, R, (8, *WIDE[1:]))
    whole = length - length % 16
    sums = [lanes_tree(both, whole), lanes_tree(apart, whole + 8, whole), *range(whole + 8, length)]
    wanted = replace(both, tail=promoted(8, apart, R, tail=CHAIN))
    assert wanted in [*lanes_of(added(sums), FMA, R)]
    quarter = in_vectors(CHAIN, R, (4, *WIDE[2:]))
    if length - whole >= 12:
        sums[2:] = [lanes_tree(quarter, whole + 12, whole + 8), *range(whole + 12, length)]
        unfused = Chain(parse_reference("ieee/muladd/f32"))
        for last in (CHAIN, unfused):
            tail = promoted(8, apart, R, tail=promoted(4, quarter, R, tail=last))
            assert replace(both, tail=tail) in [*lanes_of(added(sums), FMA, R)]
    in_order = [lanes_tree(both, whole), *range(whole, length)]
    products_first = in_multiples(8, Chain(parse_reference("ieee/muladd/f32")), tail=CHAIN)
    assert replace(both, tail=products_first) in [*lanes_of(added(in_order), FMA, R)]


@pytest.mark.parametrize("length", [1149, 1500])
def test_sums_of_a_known_cut_may_have_lanes(length: int) -> None:
    """Eigen's block of K depends on K alone: other elements have the same one, and add its products by lanes."""
    cut = promoted(936, CHAIN, R, share=8)
    lanes = in_vectors(CHAIN, R, (16, Fold(2, 4), Fold(2, 4), 4, Fold(2, 2), Fold(2, 1)), tail=CHAIN)
    size = Runs(936, share=8).size(length)
    assert size < length < 2 * size
    tree = added([lanes_tree(lanes, size), lanes_tree(lanes, length, size)])
    assert replace(cut, body=lanes) in [*cut_alike(tree, [CHAIN, cut], FMA, R)]
    assert not [*cut_alike(tree, [CHAIN, replace(cut, partition=Runs(2000, share=8))], FMA, R)]


@pytest.mark.parametrize("length", [50, 137, 312])
def test_products_left_over_may_come_first(length: int) -> None:
    """In the first lane before the others begin; four where none are left over."""
    left = (length - 1) % 4 + 1
    lanes = [[*range(left), *range(left, length, 4)], *(list(range(left + n, length, 4)) for n in (1, 2, 3))]
    one, other = (added([added(lanes[n]), added(lanes[n + 2])]) for n in (0, 1))
    wanted = in_multiples(4, in_vectors(CHAIN, R, (4, Fold(2, 2), Fold(2, 1))), head=CHAIN)
    guesses = list(lanes_of(added([one, other]), FMA, R))
    assert wanted in guesses
    assert after_first(left, CHAIN, in_vectors(CHAIN, R, (4, Fold(2, 2), Fold(2, 1)), tail=CHAIN)) in guesses


WIDE = (Fold(2, 8), Fold(2, 4), Fold(2, 2), Fold(2, 1))


@pytest.mark.parametrize("last", [False, True], ids=["from-it", "added-last"])
@pytest.mark.parametrize("length", [99, 140])
def test_the_first_product_may_be_apart(last: bool, length: int) -> None:
    """As in MKL's gemv with AVX-512: lanes begin with the first product, and take what fills no turn in another,
    masked, turn; or lanes begin with the second one, and the first is added to their sum."""
    body = in_vectors(CHAIN, R, (32, Fold(2, 16), 16, *WIDE)) if last else in_vectors(CHAIN, R, (16, *WIDE))
    if last:
        stage, sums = after_first(1, CHAIN, promoted(ALL, body, R)), lanes_tree(body, length, 1)
        tree = Node("binary", (0, sums))
    else:
        stage = after_first(1, CHAIN, replace(body, tail=body))
        tree = lanes_tree(replace(body, tail=body), length, 1, 0)
    assert stage in [*lanes_of(tree, FMA, R)]


@pytest.mark.parametrize(
    "stage",
    [
        *LANES,
        in_multiples(4, LANES[3], head=CHAIN),
        after_first(4, CHAIN, LANES[3]),
        in_turns(8, in_runs(2, CHAIN, R, grain=4), CHAIN),
    ],
    ids=[*NAMES, "whole", "first", "turns"],
)
def test_the_text_of_a_stage_is_the_plan(stage: Stage) -> None:
    plan = Plan(FMA.a, FMA.b, FMA.c, Products(stage, Constant()), reference="lanes")
    assert parse_plan(plan_text(plan), "lanes", parse_reference) == plan


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        ("lanes(fma, r)", "2 arguments given, 3"),
        ("lanes(fma, r, fold(2, 1))", "the first step is a number of lanes"),
        ("lanes(fma, r, 8, fold(2, 3))", "8 lanes are not groups of 2, 3 apart"),
        ("lanes(fma, r, 8, fold(1, 1), fold(8, 1))", "8 lanes are not groups of 1"),
        ("lanes(fma, r, 4, 8, fold(4, 1))", "8 lanes do not follow 4"),
        ("lanes(fma, r, 8, 4, fold(4, 1))", "2 lanes are left at the end"),
        ("lanes(fma, r, 8, fold(2, 4))", "4 lanes are left at the end"),
        ("lanes(fma, r, 8, fold(8, 1), head=9)", "a turn of 9 is not shorter"),
        ("lanes(fma, r, 8, fold(8))", "1 argument"),
        ("lanes(fma, r, 8, fold(8, 1), unroll=12, tail=fma)", "12 is not a multiple of 8 lanes"),
        ("lanes(fma, r, 8, fold(8, 1), unroll=16)", "no step takes the products left over"),
        ("lanes(fma, r, 8, 1, fold(8, 1), head=4, unroll=16)", r"first \(head\) or last \(unroll\)"),
        ("lanes(fma, r, 8, 1, fold(8, 1), order=backwards)", "or backwards with unroll"),
        ("lanes(fma, r, 8, 1, fold(8, 1), unroll=-8)", "unroll: -8 is impossible"),
        ("promote(4, fma, r, even=1, tail=fma)", "go through a tail or into equal sums"),
        ("promote(4, fma, r, share=1, tail=fma)", "go through a tail or into equal sums"),
        ("promote(4, fma, r, share=1, even=1)", "the last two sums are made equal, or all"),
        ("promote(4, fma, r, share=3)", "4 is not a multiple of 3"),
        ("promote(4, fma, r, head=1)", "head"),
    ],
)
def test_stages_that_are_none(stage: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        parse_plan(LANES_FILE.replace("STAGE", stage), "lanes.yaml", parse_reference)
    assert str(error.value).startswith("lanes.yaml:7: steps.d: column")


def test_a_rule_is_relied_on_only_where_other_plans_are_wrong() -> None:
    """At a small K many plans give the same: shapes that agree there tell nothing apart."""
    one, other = (parse_plan_path(f"plan:loop/{name}") for name in ("fma", "lanes"))
    rule = learned(np.zeros((1, len(FEATURES)), np.int64), np.ones((1, 1), np.bool_))[0]
    assert gemm_plans.MappedRule(rule, one, 8).confirmed
    assert not gemm_plans.MappedRule(rule, one, 7).confirmed
    assert not gemm_plans.MappedRule(rule, one, 200, rivals={other: 7}).confirmed
    assert gemm_plans.MappedRule(rule, one, 200, rivals={other: 8}).confirmed
    assert not gemm_plans.MappedRule(rule, one, 200, [Shape(1, 1, 1)]).confirmed


@pytest.mark.parametrize(
    ("side", "largest", "turn", "blocks"),
    [
        (7, 4, 0, [4] * 4 + [2] * 2 + [1]),
        (25, 6, 4, [6] * 24 + [1]),
        (19, 6, 4, [6] * 12 + [4] * 4 + [2, 2, 1]),  # twelve, then a panel of 4 and what is left
        (22, 6, 4, [6] * 12 + [6] * 6 + [2] * 2 + [2] * 2),  # twelve, then eight, then two
        (35, 16, -8, [8] * 8 + [16] * 16 + [8] * 8 + [2, 2, 1]),
        (5, 16, -8, [4] * 4 + [1]),
    ],
)
def test_blocks_of_rows(side: int, largest: int, turn: int, blocks: list[int]) -> None:
    """As OpenBLAS's sgemm on Haswell cuts M and N."""
    assert blocks_of_side(side, largest, turn).tolist() == blocks


def test_time_that_runs_out_loses_no_rule() -> None:
    """What was learned is there when the time is over, and half of it is kept for the check."""
    asked, space = parse_signature("f32,f32,f32", 16), dict[str, Any]()
    exec(LIBRARY, space)

    def multiply(a: Matrix, b: Matrix, c: Matrix) -> Matrix:
        found: Matrix = space["chain"](a.view(np.float32), b.view(np.float32)).view(np.uint32)
        return found

    def stop(text: str) -> None:
        if "random shapes" in text:
            mapper.deadline = time.monotonic() - 1

    mapper = gemm_plans.Mapper(asked, multiply, lambda shape, place, until: None, Shape(6, 6, 24), progress=stop)
    with pytest.raises(IncompleteError):
        mapper.run()
    assert [entry.plan and entry.plan.reference for entry in mapper.findings.rules] == ["sum(muladd, +0)"]
    assert mapper.findings.checked == 0


@pytest.mark.parametrize("name", ["loop/fma", "loop/lanes", "loop/pairwise", "openblas/sgemm"])
@pytest.mark.parametrize("length", [7, 200])
def test_a_tape_computes_as_a_strip(name: str, length: int) -> None:
    """Several products at once, their steps noted before, as each by matrices."""
    plan, rng = parse_plan_path(f"plan:{name}"), np.random.default_rng(length)
    sizes = ((3, 4, length), plan.a), ((3, length, 5), plan.b), ((3, 4, 5), plan.c)
    a, b, c = (from_numbers(rng.standard_normal(size).astype(type_of(fmt)), fmt, "nearest_even") for size, fmt in sizes)
    expected = [simulate(*sides, plan, engine="numpy") for sides in zip(a, b, c, strict=True)]
    assert (Tape(plan, length).play(a, b, c) == expected).all()


@pytest.mark.parametrize("stage", [*STAGES[:8], *LANES])
def test_a_loop_that_is_noted_twice_goes_on_alike(stage: Stage) -> None:
    plan = Plan(FMA.a, FMA.b, FMA.c, Products(promoted(8 * stage.period, stage, R), Constant()))
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(size).astype(np.float32).view(np.uint32) for size in ((48 * stage.period,) * 2))
    length = len(a)
    expected = simulate(a[None], b[:, None].copy(), None, plan, engine="numpy" if length < 300 else "compiled")
    found = Tape(plan, length).play(a[None, None], b[None, :, None], np.zeros((1, 1, 1), np.uint32))
    assert found[0] == expected


def test_the_plan_of_a_recorded_product_computes_others(tmp_path: Path) -> None:
    """`simulate --plan` takes the document of files too, and says in words what else it wants."""
    plan, path = parse_plan_path("plan:loop/lanes"), tmp_path / "found.json"
    document: dict[str, Any] = {"schema": 1, "plans": {plan.reference: plan_text(plan)}, "looked_at": 9}
    path.write_text(json.dumps(document))
    a, b, d = (str(tmp_path / f"{name}.npy") for name in "abd")
    ones = np.ones((2, 40), np.float32)
    np.save(a, ones), np.save(b, ones.T)
    command = ["simulate", a, b, "-o", d, "--plan", str(path)]
    assert CliRunner().invoke(main, command).exit_code == 0
    assert (np.load(d) == 40).all()
    for text, message in (
        (json.dumps({**document, "plans": {}}), "no plan was found that gives the recorded product"),
        (json.dumps({"schema": 1, "plans": {}}), "neither what `identify --gemm --json` prints, nor a plan file"),
        ("[]", "neither what `identify --gemm --json` prints, nor a plan file"),
        ("plan: mine", "neither what `identify --gemm --json` prints, nor a plan file"),
    ):
        path.write_text(text)
        result = CliRunner().invoke(main, command)
        assert (result.exit_code, message in result.stderr) == (2, True), result.stderr


PRODUCT = "import time\ndef matmul(a, b):\n    time.sleep(0.02)\n    return a @ b\n"


def test_time_that_runs_out_loses_nothing_and_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(PRODUCT)
    words = ["identify", "--gemm", "--device", f"python:{tmp_path}/slow.py:matmul", "--formats", "f32,f32,f32",
             "--length", "40", "--timeout", "4"]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", "from mmaprobe.cli.entry import main; main()", *words], capture_output=True, text=True
    )
    assert done.returncode == 3
    assert done.stderr.count("time ran out") == 1, done.stderr
    assert "of finite numbers asked" in done.stderr
    assert "not done: " in done.stderr
    assert "; to go on, give more than --timeout 4\n" in done.stderr


def test_a_search_that_is_cut_short_names_the_nearest_plan(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before any rule is learned what the known plans give is counted; before any product is asked, that is said."""
    (tmp_path / "f.py").write_text("def f(a, b):\n    return a @ b + a.dtype.type(1)\n", encoding="utf-8")
    words = ["identify", "--gemm", "--device", f"python:{tmp_path / 'f.py'}:f", "--formats", "f32,f32,f32"]

    def learned(mapper: gemm_plans.Mapper) -> None:
        mapper._look_at([Shape(2, 3, 4), Shape(4, 2, 4)])
        raise mapper.late()

    monkeypatch.setattr(gemm_plans.Mapper, "run", learned)
    done = CliRunner().invoke(main, [*words, "--length", "4", "--timeout", "77"])
    assert done.exit_code == 3
    assert re.search(r"^the nearest of [0-9]+ plans tried so far: .* gives [0-9]+ of 14 elements .* \([0-9]+%\)$",
                     done.stderr, re.M), done.stderr  # fmt: skip
    assert "not done: a plan for the other elements, rules of M, N and K, and a check" in done.stderr
    assert "give more than --timeout 77\n" in done.stderr
    assert "0 of 0 new random shapes" not in done.stderr

    def interrupted(mapper: gemm_plans.Mapper) -> None:
        mapper._look_at([Shape(2, 3, 4), Shape(4, 2, 4)])
        monkeypatch.setattr(state, "interrupted", True)
        raise Interrupted

    monkeypatch.setattr(gemm_plans.Mapper, "run", interrupted)
    done = CliRunner().invoke(main, [*words, "--length", "4", "--timeout", "77"])
    assert done.exit_code == 3
    assert re.search(r"^the nearest of [0-9]+ plans tried so far: ", done.stderr, re.M), done.stderr
    assert "a check of the rules on new random shapes\nerror: interrupted\n" in done.stderr
    monkeypatch.setattr(state, "interrupted", False)

    def ended(*rest: object) -> None:
        raise TimeUp

    monkeypatch.setattr("mmaprobe.runner.device_plans.mapper_of", ended)
    done = CliRunner().invoke(main, [*words, "--length", "4", "--timeout", "77"])
    assert done.exit_code == 3
    assert "before a product was asked: give more than --timeout 77" in done.stderr


def test_an_error_that_says_why_is_the_only_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*rest: object) -> None:
        monkeypatch.setattr(state, "late", True)
        raise IncompleteError("the time ran out before the map was whole")

    monkeypatch.setattr("mmaprobe.runner.device_plans.mapper_of", late)
    words = ["identify", "--gemm", "--device", "python:x.py:f", "--formats", "f32,f32,f32", "--length", "4"]
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, done.stderr) == (3, "error: the time ran out before the map was whole\n")


@pytest.mark.parametrize(
    ("end", "plan"),
    [
        ("(t + c.astype(np.float32)).astype(np.float16)", "r2(r(exact(sum(fma, +0), c)))"),
        ("(t + c.astype(np.float64)).astype(np.float16)", "r(exact(sum(fma, +0), c))"),
    ],
)
def test_a_sum_that_is_rounded_twice_is_told_from_one_that_is_rounded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, plan: str
) -> None:
    """Of random elements one of 100,000 shows it: sums half way between two results, and a small c, are asked. They
    alone tell it, without the further products whose c is chosen, which show it for some shapes."""
    monkeypatch.setattr(gemm_plans, "DIRECTED", 0)
    path = tmp_path / "biased.py"
    path.write_text(
        "import numpy as np\ndef f(a, b, c):\n    t = np.zeros((len(a), b.shape[1]), np.float32)\n"
        "    for k in range(a.shape[1]):\n        t = t + np.float32(a[:, k : k + 1]) * np.float32(b[k])\n"
        f"    return {end}\n"
    )
    device = ["--device", f"python:{path}:f", "--formats", "f16,f16,f16,f16", "--shape", "16,16,24"]
    done = CliRunner().invoke(main, ["identify", "--gemm", *device])
    assert done.exit_code == 0, done.output
    assert f"all products: {plan}\n" in done.output


def test_a_function_that_adds_a_row_of_its_own_is_told_so_at_once(tmp_path: Path) -> None:
    path = tmp_path / "biased.py"
    path.write_text("import numpy as np\ndef f(a, b):\n    return np.float32(a) @ np.float32(b) - np.float32(1)\n")
    for command in ("identify", "--gemm", "--shape", "8,8"), ("order",):
        device = ["--device", f"python:{path}:f", "--formats", "f16,f16,f32", "--length", "40"]
        done = CliRunner().invoke(main, [*command, *device])
        assert done.exit_code == 3, done.output
        assert "zeros give -1" in done.output
        assert "something is added besides the products, as a bias is; give it as c" in done.output
        assert "or results go through a function that is not 0 at 0, as exp" in done.output
