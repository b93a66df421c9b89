"""`identify` without a family: units are built from answers, or it is said that none was found."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from mmaprobe.cli.main import main
from mmaprobe.queries.building.answers import BUILT, Answered
from mmaprobe.queries.building.axes import (
    end_tiers,
    neighbours,
    normalising,
    ordinary_neighbours,
    product_tiers,
    simplest,
    tiny_tiers,
    with_floor,
    with_limit,
    zero_tiers,
)
from mmaprobe.queries.building.build import Builder
from mmaprobe.queries.building.candidates import Candidate, Sketch
from mmaprobe.queries.building.clock import Clock
from mmaprobe.queries.building.draft import (
    EXACT,
    OTHERS,
    PRODUCTS,
    Draft,
    Start,
    Step,
    Store,
    changed,
    fused,
    round_by,
    with_node,
)
from mmaprobe.queries.building.lanes import lanes_of, with_one_lane
from mmaprobe.queries.building.likely import MODES, STARTS, SWAPPED, with_inserted_node
from mmaprobe.queries.building.mending import mended, near_units
from mmaprobe.queries.building.naming import Naming, name_of, same_by_form, with_nan
from mmaprobe.queries.building.number_kinds import ordinary
from mmaprobe.queries.building.outcome import Built, text_of
from mmaprobe.queries.building.parts import PASSES, Parts, Reading, read_once, uneven_parts
from mmaprobe.queries.building.roles import placements, roles_apart, roles_by_shape
from mmaprobe.queries.building.shapes import Shapes
from mmaprobe.queries.building.stages import KINDS
from mmaprobe.queries.building.steps import (
    StepAxes,
    carry_tiers,
    drafts_of_merged,
    late_tiers,
    merged_drafts,
    with_bits,
)
from mmaprobe.queries.building.templates import ORDER
from mmaprobe.queries.building.validation import Validation
from mmaprobe.queries.compare.steady import AGAIN
from mmaprobe.queries.covering.cover import Cover
from mmaprobe.queries.kernel.questions.problem import Candidates
from mmaprobe.queries.order.likely_orders import likely_orders
from mmaprobe.queries.order.structure import tree_of
from mmaprobe.queries.order.tree import (
    Leaf,
    Node,
    binary_trees,
    chain_of,
    joined_branch,
    leaves_of,
    nodes_of,
    one_after_another,
    with_products,
)
from mmaprobe.queries.search.distinguish import Options, PairOutcome
from mmaprobe.queries.search.witness import confirmed_witness, replay
from mmaprobe.runner.batches import BatchDevice
from mmaprobe.runner.device_unit import Orders
from mmaprobe.runner.device_unit import built as built_by
from mmaprobe.runner.model_device import ModelDevice
from mmaprobe.runner.protocol import DeviceError, Patience
from mmaprobe.runner.recorded import RecordedDevice
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.arithmetic.rounding import OVERFLOWS, Mode
from mmaprobe.smtmodel.base.errors import OutOfTimeError
from mmaprobe.smtmodel.evaluate.batch import Patterns, evaluate_batch, evaluate_models, evaluate_rows
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import nans
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.signature import parse_signature
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.nodes import Cancelling, Counting, Cut, FusedSum, Gate, Product, Repeat, Round, SortedSum
from mmaprobe.smtmodel.nodes import Node as Expression
from mmaprobe.smtmodel.nodes.element import SUBNORMALS
from mmaprobe.smtmodel.nodes.node import kinds, walk
from mmaprobe.smtmodel.nodes.round import TINY, ZEROS, Rounding
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unitfile import parse_unit, step_texts
from tests.cpu import differing
from tests.marks import some_slow
from tests.oracles.programs import PROGRAMS

pytestmark = pytest.mark.solvers

NEAREST = round_by(Rounding(FORMATS["f32"]))

PAIR = """unit: pair
formats: {a: bf16, b: bf16, c: f32, d: f32}
length: 2
roundings: {r: "round(f32, MODE)"}
steps: {d: "r(exact(c, r(exact(a[0] * b[0], a[1] * b[1]))))"}
"""
ODD = """unit: odd
formats: {a: bf16, b: bf16, c: f32, d: f32}
length: 2
roundings: {r: "round(f32, nearest_even)"}
steps: {d: "r(exact(c, r(exact(a[0] * b[0], a[0] * b[0], a[0] * b[0], a[1] * b[1]))))"}
"""


SIXTEENTH = "number(0x7b, ue8m0), number(0x7f, ue8m0)"  # two scale factors
SUBTRACTS = """unit: subtracts
formats: {a: f16, b: f16, c: f16, d: f16}
length: 3
roundings: {r: "round(f16, nearest_even)", n: "round(f16, toward_zero)"}
steps: {d: "n(exact(PLACES))"}
"""


APART = """unit: apart
formats: {a: f16, b: f16, c: f32, d: f32}
length: 4
roundings: {r: "round(f32, nearest_away)", t: "round(e8m20_ieee, nearest_away)"}
steps: {d: "SUMS"}
"""


NEGATED = """unit: negated
formats: {a: bf16, b: bf16, c: f32, d: f32}
length: 2
roundings: {r: "round(f32, MODE)"}
steps: STEPS
"""


@pytest.fixture(autouse=True)
def brief_covering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Covering vectors have tests of their own (test_cover.py), and so has the search that tells pairs apart."""
    for name, seconds in (("COVERING", 0.5), ("TELLING", 1.0)):
        monkeypatch.setattr(f"mmaprobe.queries.building.validation.{name}", seconds)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["identify", *arguments])


def built(device: str, formats: str, length: int, *more: str, code: int = 0) -> dict[str, Any]:
    result = run("--device", device, "--formats", formats, "--length", str(length), "--json", *more)
    assert result.exit_code == code, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(
    ("reference", "formats", "length"),
    [
        ("ieee/fma/f32", "f32,f32,f32,f32", 1),
        pytest.param("x86/avx512/vdpbf16ps", "bf16,bf16,f32,f32", 2, marks=pytest.mark.slow),
        pytest.param("arm/neon/bfdot", "bf16,bf16,f32,f32", 2, marks=pytest.mark.slow),
        pytest.param("arm/neon/bfdot-ebf", "bf16,bf16,f32,f32", 2, marks=pytest.mark.slow),
        ("x86/avx512/vfmadd-ph", "f16,f16,f16,f16", 1),
    ],
)
def test_units_of_processors(reference: str, formats: str, length: int, tmp_path: Path) -> None:
    """Built, saved, read again, and equal to the unit by proof."""
    file = tmp_path / "mine.yaml"
    found = built(f"model:{reference}", formats, length, "--save", str(file))
    assert found["verdict"] == "built"
    assert reference in [row["model"] for row in found["equal"]]
    assert not found["undecided"]
    saved = parse_unit(file.read_text(encoding="utf-8"), str(file))
    assert found["unit"] == file.read_text(encoding="utf-8")
    assert saved.reference == "mine"
    assert "vectors of validation" in saved.evidence
    model, rows = parse_reference(reference), Shapes(parse_signature(formats, length), seed=99).anything(2000)
    operands = rows[:, :length], rows[:, length : 2 * length], rows[:, -1]
    results = evaluate_batch(parse_reference(str(file)), *operands)
    assert not differing(model, evaluate_batch(model, *operands), results).size


MIXED = """unit: mixed
formats: {a: f16, b: f16, c: f32, d: f32}
length: 4
roundings: {n: "round(f32, nearest_even)", u: "round(f32, up)", z: "round(f32, toward_zero)"}
steps:
  pair: u(exact(a[0] * b[0], a[1] * b[1]))
  other: z(fused(a[2] * b[2], a[3] * b[3], F=20))
  d: n(exact(c, u(exact(pair, other))))
"""


@pytest.mark.slow
def test_steps_that_differ_are_told_apart(tmp_path: Path) -> None:
    """Other roundings at every step, and a fused sum within."""
    file, mine = tmp_path / "mixed.yaml", tmp_path / "mine.yaml"
    file.write_text(MIXED)
    found = built(f"model:{file}", "f16,f16,f32,f32", 4, "--save", str(mine))
    assert found["verdict"] == "built"
    rows = Shapes(parse_signature("f16,f16,f32,f32", 4), seed=99).anything(2000)
    operands = rows[:, :4], rows[:, 4:8], rows[:, -1]
    models = [parse_reference(str(path)) for path in (file, mine)]
    assert not differing(models[0], *(evaluate_batch(model, *operands) for model in models)).size


@pytest.mark.parametrize("mode", ["up", pytest.param("to_odd", marks=pytest.mark.slow)])
def test_a_unit_that_nobody_knows_is_built(mode: str, tmp_path: Path) -> None:
    file = tmp_path / f"{mode}.yaml"
    file.write_text(PAIR.replace("MODE", mode))
    found = built(f"model:{file}", "bf16,bf16,f32,f32", 2)
    assert f"round(f32, {mode}" in found["unit"]
    assert "exact(a[0] * b[0], a[1] * b[1])" in found["unit"]
    nearest = found["nearest_instruction"]
    assert nearest["different_answers"] > 0
    assert nearest["first_divergence"]


COUNTS = """unit: counts
formats: {a: e4m3, b: e4m3, c: none, d: f32}
length: 2
roundings: {r: "round(f32, toward_zero, zero=positive, nan=0x7fffffff)"}
steps: {d: "r(fused(counting(a[0:2] * b[0:2]), F=13))"}
"""


@pytest.mark.slow
def test_products_that_count_where_they_are_zero(tmp_path: Path) -> None:
    """The units beside one with such products are compared with the device, too."""
    file, mine = tmp_path / "counts.yaml", tmp_path / "mine.yaml"
    file.write_text(COUNTS)
    found = built(f"model:{file}", "e4m3,e4m3,f32", 2, "--save", str(mine))
    assert "counting(" in found["unit"]
    rows = Shapes(parse_signature("e4m3,e4m3,f32,f32", 2), seed=99).anything(2000)
    models = [parse_reference(str(path)) for path in (file, mine)]
    results = [evaluate_batch(model, rows[:, :2], rows[:, 2:4], np.zeros(len(rows), np.uint64)) for model in models]
    assert not differing(models[0], *results).size


LANE = """unit: lane
formats: {a: f16, b: f16, c: f32, d: f32}
length: 4
roundings: {z: "round(f32, toward_zero, zero=positive)"}
steps:
  d: z(fused(a[0:2] * b[0:2], a[2] * b[2], a[3] * b[3], c, F=[23, 22, 23, 23], zeros=-131))
"""


def test_rows_of_a_format_without_fraction_bits() -> None:
    """A number of one bit has no half and no subnormal neighbour."""
    for formats in ("binary8p1se,binary8p1se,f32,f32", "binary8p1sf,e5m2,f16,f64", "e4m3,binary4p1se,f32,f16"):
        for kind in KINDS:
            assert len(Shapes(parse_signature(formats, 3), seed=7).rows(kind, 200)) == 200


def test_a_defect_of_one_product_is_located(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One bit less is kept of one product: the unit says of which, as a change of one that is known."""
    monkeypatch.setattr("mmaprobe.queries.building.build.BY_STEPS", 0.0)
    file = tmp_path / "lane.yaml"
    file.write_text(LANE)
    found = built(f"model:{file}", "f16,f16,f32,f32", 4)
    assert found["verdict"] == "built"
    assert found["nearest_instruction"]["different_answers"] > 0
    saved = tmp_path / "mine.yaml"
    saved.write_text(found["unit"])
    truth, mine = (parse_reference(str(path)) for path in (file, saved))
    assert not of_rows([truth.unit, mine.unit], 3000)[0].any()


FEW_INPUTS = """unit: few
formats: {a: e2m1, b: e2m1, c: none, d: f16}
length: 2
roundings: {r: "round(f16, nearest_even, zero=positive)"}
steps: {d: "r(exact(a[0:2] * b[0:2]))"}
"""


def test_many_candidates_are_all_proved_equal(tmp_path: Path) -> None:
    """No rounding of these formats loses anything, so that whatever is rounded how is one unit."""
    file = tmp_path / "few.yaml"
    file.write_text(FEW_INPUTS)
    found = built(f"model:{file}", "e2m1,e2m1,f16", 2)
    assert (found["verdict"], found["undecided"], found["left_for_time"]) == ("built", [], [])


def test_units_of_few_inputs_are_compared_on_all_of_them() -> None:
    """No sum of these formats is rounded: directions differ in the sign of a zero at most."""

    def unit(mode: str) -> Model:
        text = FEW_INPUTS.replace("c: none", "c: e2m1").replace("nearest_even, zero=positive", mode)
        lines = text.replace("length: 2", "length: 1").replace("a[0:2] * b[0:2]", "a[0] * b[0], c")
        return Model(mode, parse_unit(lines, "x.yaml"))

    own, same, other = map(unit, ("nearest_even", "up", "down"))
    found = name_of(own, [same, other], Options(), None)
    assert (found.equal, found.open) == ([(same, "evaluated on all 4096 inputs")], [other])
    results = evaluate_models([own, other], np.array(found.witnesses, dtype=np.uint64))
    assert results.tolist() == [[0], [0x8000]]


SCALED = """unit: scaled
formats: {a: e2m1, b: e2m1, c: f32, d: f32, scale: ue8m0}
length: 4
scale_block: 2
roundings: {r: "round(f32, up)"}
steps: {d: "r(exact(BLOCK1, r(exact(BLOCK0, c))))"}
"""


def test_products_of_which_blocks_alone_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Formats too narrow for masks within a block: its products have steps all the same."""
    for name, value in (("PROOFS", 0.3), ("COVERING", 0.1), ("VALIDATION", 400), ("COVERED", 64), ("POOL", 40)):
        monkeypatch.setattr(f"mmaprobe.queries.building.validation.{name}", value)
    file, mine = tmp_path / "scaled.yaml", tmp_path / "mine.yaml"
    blocks = [
        ", ".join(f"scale(a[{k}] * b[{k}], scale_a[{k // 2}], scale_b[{k // 2}])" for k in (at, at + 1))
        for at in (0, 2)
    ]
    file.write_text(SCALED.replace("BLOCK0", blocks[0]).replace("BLOCK1", blocks[1]))
    device = ["--device", f"model:{file}", "--formats", "e2m1,e2m1,f32,f32", "--length", "4", "--scale", "ue8m0/2"]
    result = run(*device, "--save", str(mine))
    assert result.exit_code in (0, 3), result.stderr
    assert "2 products share scale factors: the order of such products was not asked" in result.stderr
    models = [parse_reference(str(path)) for path in (file, mine)]
    rows = Shapes(parse_signature("e2m1,e2m1,f32,f32", 4, "ue8m0/2"), seed=99).rows("anything", 2000)
    left, right = evaluate_models(models, rows)
    assert ((left == right) | (nans(left, FORMATS["f32"]) & nans(right, FORMATS["f32"]))).all()


def test_blocks_stand_for_their_products() -> None:
    chain = chain_of(["c", 0, 2])
    [one] = with_products(chain, 2)
    assert one == chain_of(["c", Node("binary", (0, 1)), Node("binary", (2, 3))])
    fused = Node("binary", (Node("fused", ("c", 0, 3)), 6))
    first, second = with_products(fused, 3)
    blocks = [Node("exact", tuple(range(at, at + 3))) for at in (0, 3, 6)]
    assert first == Node("binary", (Node("fused", ("c", *blocks[:2])), blocks[2]))
    assert second == Node("exact", (Node("fused", ("c", *range(6))), 6, 7, 8))
    assert with_products(0, 4) == [Node("exact", (0, 1, 2, 3))]


def of_rows(units: Sequence[Unit], count: int) -> Any:
    """Where each of some units of four f16 products differs from the first one; NaNs are alike."""
    rows = Shapes(parse_signature("f16,f16,f32,f32", 4), seed=99).anything(count)
    found = evaluate_models([Model("", unit) for unit in units], rows)
    found[nans(found, FORMATS["f32"])] = FORMATS["f32"].nan
    return found[1:] != found[0]


def test_a_unit_is_mended(tmp_path: Path) -> None:
    """One product keeps a bit less, and the sum is rounded otherwise: two changes lead there."""
    file = tmp_path / "lane.yaml"
    file.write_text(LANE.replace("toward_zero", "nearest_even"))
    truth, near = parse_reference(str(file)).unit, parse_reference("volta/mma/m8n8k4.f32.f16.f16.f32").unit

    def wrong(units: Sequence[Unit]) -> Any:
        return of_rows([truth, *units], 400)

    assert wrong([near]).any()
    found = mended([near], wrong)
    assert found
    assert not of_rows([truth, *found[:1]], 3000).any()
    assert not mended([parse_reference("x86/avx512/vdpbf16ps").unit], lambda units: np.ones((len(units), 4), np.bool_))


def test_time_that_runs_out_is_said() -> None:
    asked = parse_signature("f16,f16,f32,f32", 4)
    found = Builder([joined_branch("fused", ["c", *range(4)])], asked, lambda _: [], Options(), time.monotonic()).run()
    assert (found.verdict, found.unit) == ("open", None)
    assert "the time ran out" in found.why


def test_time_that_runs_out_within_an_answer_keeps_what_was_found() -> None:
    class Slow(ModelDevice):
        def answers(self, vectors: Iterable[Vector]) -> Iterator[tuple[Vector, int | None]]:
            for number, (vector, d) in enumerate(super().answers(vectors)):
                if str(vector.id).startswith("build"):
                    self.patience = Patience(1.0, time.monotonic())
                    self.check_time(vector, number + 1)
                yield vector, d

    asked, shown = parse_signature("f16,f16,f16,f16", 1), list[str]()
    outcome, _ = built_by(Slow("x86/avx512/vfmadd-ph"), asked, Options(), None, shown.append, lambda _: None)
    assert (outcome.verdict, outcome.unit) == ("open", None)
    assert outcome.why == "the time ran out after 0 questions about the arithmetic"
    assert shown


@pytest.mark.parametrize("refuted", [False, True])
def test_a_unit_that_is_left_when_the_time_ends_is_an_open_one(
    refuted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is printed and saved with what was not asked, and not where an answer refutes it."""

    def out_of_time() -> list[Candidate]:
        raise OutOfTimeError("a share of it")

    def late(self: Validation, cover: Cover, *_: object) -> bool:
        assert self.clock.within(0.1, "group 1 at a step", out_of_time) == []
        if refuted:
            rows = np.array(cover.rows[:1], dtype=np.uint64)
            self.answers.bank.append(Answered(rows, np.array(cover.results[:1], np.uint64) ^ np.uint64(1), 0))
        raise OutOfTimeError("the time ran out")

    monkeypatch.setattr(Validation, "_agrees", late)
    mine, reference = tmp_path / "mine.yaml", "x86/avx512/vfmadd-ph"
    found = built(f"model:{reference}", "f16,f16,f16,f16", 1, "--save", str(mine), code=3)
    assert (found["verdict"], found["equal"], found["left_for_time"]) == ("open", [], ["group 1 at a step"])
    assert found["validated"] >= 5000
    if refuted:
        assert (found["unit"], found["why"], mine.exists()) == (None, "the time ran out", False)
        return
    assert reference in found["undecided"]
    assert re.fullmatch(r"the time ran out before (\d+) of the \1 conditions were asked about", found["why"])
    evidence = parse_unit(mine.read_text(encoding="utf-8"), "mine.yaml").evidence
    assert f"{found['why']}; not searched for lack of time: group 1 at a step" in evidence
    message = run("--device", f"model:{reference}", "--formats", "f16,f16,f16,f16", "--length", "1")
    assert f"not finished: {found['why']}" in message.stderr
    assert "not searched for lack of time: group 1 at a step" in message.stderr
    assert not any(word in message.stderr for word in ("exact,", "identified", "this is"))


BEGUN = """unit: begun
formats: {a: bf16, b: bf16, c: none, d: f32}
length: 16
roundings: {r: "round(f32, toward_zero, overflow=infinity, zero=positive)"}
steps: {d: "r(fused(a[0:16] * b[0:16], +0, F=23, zeros=-133))"}
"""


@pytest.mark.parametrize("faint", [True, False])
def test_what_no_proof_decides_is_told_apart(faint: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a zero counts in a sum without zero products shows on faint terms at all places: these are asked before
    proofs are tried, and the rest of the time is for other inputs that a solver finds."""
    told = list[Candidates]()

    def distinguished(problem: Candidates, options: Options) -> PairOutcome:
        told.append(problem)
        assert options.timeout
        rows = Shapes(parse_signature("bf16,bf16,f32", 16)).faint(4000)
        differing = np.flatnonzero(replay(problem, rows).differs)
        witness = confirmed_witness(problem, tuple(map(int, rows[differing[0]])))
        assert witness is not None
        return PairOutcome(problem, [witness])

    at = "mmaprobe.queries.building.validation"
    monkeypatch.setattr(f"{at}.VALIDATION", 1600)
    monkeypatch.setattr(f"{at}.name_of", lambda own, others, *_: Naming(open=[*others]))
    monkeypatch.setattr(f"{at}.distinguish", distinguished)
    if not faint:
        monkeypatch.setattr(f"{at}.FAINT", 0)
    true = tmp_path / "true.yaml"
    true.write_text(BEGUN)
    found = built(f"model:{true}", "bf16,bf16,f32", 16)
    assert "+0, F=23, zeros=-133" in found["unit"]
    assert found["undecided"] == []
    assert len(told) == (not faint)


def test_a_few_of_the_units_that_give_the_same_answers_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = parse_reference("ieee/fma/f32").unit
    others = [Model(BUILT, unit), *(Model(f"unit-{number}", unit) for number in range(9))]
    found = Built("built", unit, open=others), Orders([joined_branch("fused", ["c", 0])], 3)
    monkeypatch.setattr("mmaprobe.runner.device_unit.built", lambda *_: found)
    for more, expected in (([], 3), (["--all"], 9)):
        lines = run("--device", "model:ieee/fma/f32", *more).stderr.splitlines()
        assert sum("not decided: the same answers from 10 other units" in line for line in lines) == 1
        assert sum(re.fullmatch(r" *unit-[0-9]", line) is not None for line in lines) == expected
        assert sum(line.strip().startswith("a draft (") for line in lines) == 1
        assert any("and 6 more (--all lists them)" in line for line in lines) == (not more)
    mine = tmp_path / "mine.yaml"
    run("--device", "model:ieee/fma/f32", "--save", str(mine))
    evidence = parse_unit(mine.read_text(encoding="utf-8"), "mine.yaml").evidence
    assert "; not told from a draft (r: round(f32, nearest_even); d: r(" in evidence
    assert "), unit-0, unit-1" in evidence
    refused = run("nvidia-f16", "--device", "model:ieee/fma/f32", "--all")
    assert (refused.exit_code, "--all" in refused.stderr) == (2, True)


def test_units_beside_one() -> None:
    """One parameter differs, of all terms or of one; every one is another unit."""
    unit = parse_reference("volta/mma/m8n8k4.f32.f16.f16.f32").unit
    found = list(near_units(unit))
    assert len({other.result for other in found} | {unit.result}) == len(found) + 1
    kept = [node.fraction_bits for other in found for node in walk(other.result) if isinstance(node, FusedSum)]
    assert {22, 24} <= set(kept)
    assert sum(isinstance(bits, tuple) and sorted(bits).count(22) == 1 for bits in kept) == 5
    assert all((other.length, other.d) == (unit.length, unit.d) for other in found)


def test_units_beside_one_that_subtracts_the_addend(tmp_path: Path) -> None:
    """c is a factor of a product there: no chain starts from it."""
    path = tmp_path / "minus.yaml"
    step = "{d: 'r(exact(number(0xbf800000, f32) * c, a[0] * b[0], a[1] * b[1]))'}"
    path.write_text(NEGATED.replace("MODE", "up").replace("STEPS", step))
    assert list(near_units(parse_reference(str(path)).unit))


@pytest.mark.parametrize(
    ("formats", "zeros"), [("a: f16, b: f16, c: f32, d: f32", 2), ("a: bf16, b: bf16, c: f32, d: f32", 4)]
)
def test_a_sum_of_three_terms_that_sorts_them_is_beside_an_exact_one(formats: str, zeros: int) -> None:
    """Also where a zero c counts, if a product may lie below it; nodes that take inputs alone are in no other's way."""
    text = f"unit: u\nformats: {{{formats}}}\nlength: 2\nroundings: {{r: 'round(f32, up)'}}\nsteps: {{d: 'SUM'}}\n"
    exact = parse_unit(text.replace("SUM", "r(exact(a[0:2] * b[0:2], c))"), "u.yaml")
    found = [other for other in near_units(exact) if any(isinstance(node, SortedSum) for node in walk(other.result))]
    assert len(found) == zeros
    sums = {step for unit in found for step in step_texts(unit).values()}
    assert "r(sorted(a[0] * b[0], a[1] * b[1], c, F=[50, 78]))" in sums
    for counted in (
        "r(sorted(a[0] * b[0], a[1] * b[1], counting(c), F=[50, 78]))",
        "r(fused(a[0] * b[0], counting(c), F=9))",
    ):
        unit = parse_unit(text.replace("SUM", counted), "u.yaml")
        assert {
            node.fraction_bits
            for other in near_units(unit)
            for node in walk(other.result)
            if isinstance(node, (SortedSum, FusedSum))
        } >= ({(51, 78), (50, 77)} if "sorted" in counted else {8, 10})


def test_a_known_unit_takes_few_questions() -> None:
    found = built("model:cdna3/mfma/f32_32x32x4_2b_f16", "f16,f16,f32,f32", 4)
    assert found["verdict"] == "built"
    assert "cdna3/mfma/f32_32x32x4_2b_f16" in [row["model"] for row in found["equal"]]
    assert found["questions"] < 60


def only_likely_tiers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no unit is right, all tiers of every step are tried again, which takes the most time by far."""
    tiers = StepAxes.tiers
    monkeypatch.setattr(StepAxes, "tiers", lambda self, quick=False: tiers(self)[:2])
    monkeypatch.setattr("mmaprobe.queries.building.stages.product_tiers", lambda *given: product_tiers(*given)[:1])


@pytest.mark.slow
def test_what_no_candidate_explains_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_likely_tiers(monkeypatch)
    file = tmp_path / "odd.yaml"
    file.write_text(ODD)
    found = built(f"model:{file}", "bf16,bf16,f32,f32", 2, code=1)  # most results differ: where is not worth saying
    assert (found["verdict"], found["unit"]) == ("unexplained", None)
    assert found["nearest"]
    assert found["differs"] is None
    for row in found["unexplained"]:
        assert row["d"] != row["candidate"]
    with monkeypatch.context() as patch:  # a group that the time was too short for may hold the right one
        patch.setattr(
            Clock, "__init__", lambda self, deadline: vars(self).update(deadline=None, limit=None, left=["x"])
        )
        late = built(f"model:{file}", "bf16,bf16,f32,f32", 2, code=3)
        assert (late["verdict"], late["left_for_time"]) == ("open", ["x"])
        assert "too short for 1 group" in late["why"]
    message = run("--device", f"model:{file}", "--formats", "bf16,bf16,f32,f32", "--length", "2")
    assert message.exit_code == 1
    assert "no unit found" in message.stderr
    assert "the device gives" in message.stderr


LOOP = """unit: loop
formats: {a: bf16, b: bf16, c: f32, d: f32}
length: 16
roundings: {r: "round(f32, toward_zero, overflow=infinity, zero=positive)"}
steps: {d: "repeat(i in range(0, 16, 8), c, r(fused(a[i:i+8] * b[i:i+8], acc, F=24, zeros=-132)))"}
"""


def test_the_nearest_candidate_is_nearest_on_finite_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the one with the infinities of the device; and it reads no c where the device takes none."""
    monkeypatch.setattr("mmaprobe.queries.building.build.Describer.described", lambda *_: None)
    texts = BEGUN, BEGUN.replace("=infinity", "=ieee"), BEGUN.replace("zeros=-133", "zeros=-136"), LOOP
    begun, largest, small, loop = (parse_unit(text, "unit.yaml") for text in texts)

    def ask(vectors: Sequence[Vector]) -> list[int]:
        rows = np.array([vector.operands.every for vector in vectors], dtype=np.uint64)
        return [int(d) for d in evaluate_models([Model("begun", begun)], rows)[0]]

    asked = parse_signature("bf16,bf16,f32", 16)
    builder = Builder([joined_branch("fused", [*range(16)])], asked, ask, Options())
    builder.answers.put(Shapes(asked, 5).rows("middle", 300), 0, None)
    for unit in (small, largest):
        builder.search.note(Candidate(None, unit))
    builder.known, found = [], builder.result
    builder._unexplained()
    assert found.nearest == largest
    (wrong, whole), (others, rest) = found.within, found.beyond
    assert (wrong, whole > 1000, 0 < others <= rest) == (0, True, True)
    builder.search.noted = {loop: None, small: None}
    builder._unexplained()
    assert found.nearest == small
    assert 0 < found.within[0] < others
    builder.search.noted = {loop: None}
    builder._unexplained()
    assert "repeat(i in range(0, 16, 8), +0, " in text_of(found.nearest)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (0, "it differs only where an operand or the answer is infinite, NaN or the largest number: on 3 of 9 answers"),
        (2, "it differs on 2 of 50 finite answers to finite operands, and on 3 of 9 others"),
    ],
)
def test_where_the_nearest_candidate_differs_is_said(wrong: int, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nearest = parse_reference("ieee/fma/f32").unit
    found = Built("unexplained", nearest=nearest, within=(wrong, 50), beyond=(3, 9))
    orders = Orders([joined_branch("fused", ["c", 0])], 3)
    monkeypatch.setattr("mmaprobe.runner.device_unit.built", lambda *_: (found, orders))
    result = run("--device", "model:ieee/fma/f32", "--json")
    assert (result.exit_code, message in result.stderr) == (1, True)
    assert json.loads(result.stdout)["missed"] == {"finite": [wrong, 50], "others": [3, 9]}


def test_a_long_sum_that_was_looked_at_through_few_leaves_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is decided at few leaves is validated as the whole unit."""
    for name in ("LONG", "WHOLE"):
        monkeypatch.setattr(f"mmaprobe.queries.building.stages.{name}", 2)
    asked, root = parse_signature("bf16,bf16,f32", 10), chain_of([*range(9, -1, -1)])
    truth = Sketch([roles_by_shape(root)], asked).unit(draft(step(how("up"))), None)

    def ask(vectors: Sequence[Vector]) -> list[int]:
        rows = np.array([[*v.operands.a, *v.operands.b, v.operands.c] for v in vectors], dtype=np.uint64)
        return [int(d) for d in evaluate_models([Model("x", truth)], rows)[0]]

    decided = Builder([root], asked, ask, Options()).search.by_stages()
    rows = Shapes(asked, 7).middle(100)
    given, *found = evaluate_models([Model("x", truth), *(candidate.model for candidate in decided)], rows)
    assert any((given == d).all() for d in found)


def test_long_sums_have_as_many_vectors_of_validation_where_time_and_memory_allow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mmaprobe.queries.building.stages.LONG", 2)
    monkeypatch.setattr("mmaprobe.queries.building.validation.LONG", 2)
    monkeypatch.setattr("mmaprobe.queries.building.validation.VALIDATION", 1400)
    asked, root = parse_signature("bf16,bf16,f32", 10), chain_of([*range(10)])
    truth = Sketch([roles_by_shape(root)], asked).unit(draft(), None)

    def ask(vectors: Sequence[Vector]) -> list[int]:
        rows = np.array([[*v.operands.a, *v.operands.b, v.operands.c] for v in vectors], dtype=np.uint64)
        return [int(d) for d in evaluate_models([Model("x", truth)], rows)[0]]

    for numbers, more, count in ((1_000_000, 0.5, 1400), (700 * 21, 0.5, 840), (1_000_000, -1.0, 280)):
        monkeypatch.setattr("mmaprobe.queries.building.validation.NUMBERS", numbers)
        monkeypatch.setattr("mmaprobe.queries.building.validation.MORE", more)
        builder = Builder([root], asked, ask, Options(), time.monotonic() + 100)
        found = [Candidate(None, truth)]
        assert builder.validation.validated(found) == found
        assert builder.answers.checks == count + 280  # and as many special values as vectors of the first round


class Broken(BatchDevice):
    """A unit that is wrong where c is zero and the product lies below the smallest number."""

    batch = 512
    name = "broken"

    def __init__(self) -> None:
        self.model = parse_reference("ieee/fma/f32")
        self.description: dict[str, Any] = {"name": "broken"}

    def patterns(
        self, a: Patterns, b: Patterns, c: Patterns, scale_a: Patterns | None = None, scale_b: Patterns | None = None
    ) -> Patterns:
        found = evaluate_batch(self.model, a, b, c)
        found[(found == 1) & (c == 0)] = 0
        return found


def test_a_defect_at_the_smallest_number_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    only_likely_tiers(monkeypatch)
    monkeypatch.setattr("mmaprobe.runner.devices.open_device", lambda *rest: Broken())
    found = built("model:x", "f32,f32,f32,f32", 1, code=3)
    assert found["verdict"] == "unexplained"
    [way] = found["differs"]["ways"]  # and where it is
    assert way["how"] == "the device gives +0"
    assert any("is below 2^-148" in fact for fact in way["where"])
    assert (found["differs"]["wrong"], found["differs"]["fresh"] >= 1000) == (0, True)


class Dying(ModelDevice):
    """A device that dies after a number of answers."""

    left = 0

    def answers(self, vectors: Iterable[Vector]) -> Iterator[tuple[Vector, int | None]]:
        for vector, d in super().answers(vectors):
            if not Dying.left:
                raise DeviceError(self.name, "died", vector, 1)
            Dying.left -= 1
            yield vector, d


@pytest.mark.parametrize("command", ["order", "identify"])
def test_no_answer_of_a_device_that_dies_is_lost(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmaprobe.runner.devices.open_device", lambda *rest: Dying("ieee/fma/f32"))
    file, whole = tmp_path / "answers.jsonl", tmp_path / "whole.jsonl"
    given = [command, "--device", "model:ieee/fma/f32", "--formats", "f32,f32,f32,f32", "--length", "1"]
    Dying.left = first = 6 if command == "order" else 30
    died = CliRunner().invoke(main, [*given, "-o", str(file)])
    assert (died.exit_code, "died" in died.stderr) == (3, True)
    assert len(file.read_text().splitlines()) == first
    assert list(RecordedDevice(str(file), parse_signature("f32,f32,f32,f32", 1)).vectors)
    if command == "identify":  # which goes on alike, but takes long
        return
    Dying.left = enough = 1000
    done = CliRunner().invoke(main, [*given, "-o", str(file)])
    assert (done.exit_code, f"{first} answers of an earlier run" in done.stderr) == (0, True)
    again = enough - Dying.left - min(first, AGAIN)
    Dying.left = enough
    CliRunner().invoke(main, [*given, "-o", str(whole)])
    assert again == enough - Dying.left - first
    rows = [[{**json.loads(line), "provenance": None} for line in path.read_text().splitlines()]
            for path in (file, whole)]  # fmt: skip
    assert rows[0] == rows[1]


def test_options_belong_to_one_way_or_the_other() -> None:
    device = ("--device", "model:ieee/fma/f32")
    assert run("--device", "command:./none").exit_code == 2  # of an instruction they are known
    for rest in (("--formats", "f32,f32,f32,f32"), ("--length", "1", "--formats", "f32,f32,f32,f32", "--model", "x")):
        assert run(*device, *rest).exit_code == 2
    assert run("nvidia-f16", *device, "--length", "1").exit_code == 2


# -- drafts


def how(mode: Mode = "nearest_even", name: str = "f32", bits: int | None = None, **ends: Any) -> Round:
    return round_by(Rounding(FORMATS[name], mode, **ends), bits)


def step(own: Round | None = NEAREST, total: Expression = EXACT, leaves: Round | None = None) -> Step:
    return Step(own, total, leaves)


def draft(*steps: Step, d: str = "f32", **more: Any) -> Draft:
    """Of one exact sum, rounded to nearest, if no steps are given."""
    return Draft(steps or (step(how(name=d)),), **more)


def drafted(root: Node | Leaf, chosen: Draft, formats: str, length: int, kept: frozenset[Leaf] | None = None) -> Any:
    return Sketch([roles_by_shape(root)], parse_signature(formats, length)).unit(chosen, kept)


def test_drafts_of_long_chains_are_loops() -> None:
    unit = drafted(chain_of(["c", *range(600)]), draft(), "f32,f32,f32,f32", 600)
    assert unit.result == parse_reference("ieee/fma/f32@length=600").unit.result
    blocks = chain_of([chain_of(list(range(k, k + 8))) for k in range(0, 600, 8)])
    root = Node("binary", (blocks, "c"))
    unit = drafted(root, draft(*[step()] * roles_by_shape(root).count, start="zero"), "f32,f32,f32,f32", 600)
    rows = Shapes(parse_signature("f32,f32,f32,f32", 600)).middle(20)
    d = evaluate_batch(Model("x", unit), rows[:, :600], rows[:, 600:1200], rows[:, 1200])
    assert len(d) == 20
    places = {k for block in unit.blocks for k in block}
    assert places <= {*range(600)}


def test_fused_steps_are_the_tables() -> None:
    tree = joined_branch("fused", ["c", *range(16)])
    own = how("toward_zero", zero="positive", overflow="infinity")
    unit = drafted(tree, with_floor(draft(step(own, fused(25))), -133), "f16,f16,f32,f32", 16)
    table = parse_reference("hopper/mma/m16n8k16.f32.f16.f16.f32")
    assert same_by_form(Model("x", unit), table)
    assert not same_by_form(Model("x", unit), parse_reference("hopper/mma/m16n8k16.f32.f16.f16.f32@fraction_bits=24"))


def test_what_joins_a_finished_sum_is_the_tables() -> None:
    own = how(zero="exact_positive", overflow="infinity")
    late = FusedSum((fused(24, items=(PRODUCTS,)), OTHERS), (32, 24), "down")
    found = with_limit(draft(step(own, Cut(late, 32, "down", -126))), 128)
    unit = drafted(joined_branch("fused", ["c", *range(4)]), found, "f16,f16,f32,f32", 4)
    assert same_by_form(Model("x", unit), parse_reference("cdna3/mfma/f32_32x32x4_2b_f16"))


@pytest.mark.parametrize(
    "sums",
    [
        "r(fused(fused(a[0:4] * b[0:4], F=21), c, F=26))",
        pytest.param("r(fused(t(fused(a[0:4] * b[0:4], F=21)), c, F=26))", marks=pytest.mark.slow),
    ],
)
def test_two_sums_that_are_fused_apart(sums: str, tmp_path: Path) -> None:
    """The products' sum joins c unrounded, or as a number of a format that is no register's."""
    file, mine = tmp_path / "apart.yaml", tmp_path / "mine.yaml"
    file.write_text(APART.replace("SUMS", sums))
    found = built(f"model:{file}", "f16,f16,f32,f32", 4, "--save", str(mine))
    assert found["verdict"] == "built"
    assert same_by_form(parse_reference(str(file)), parse_reference(str(mine)))


def test_a_sum_without_products_is_that_in_which_they_would_join() -> None:
    late = FusedSum((Round(fused(21, items=(PRODUCTS,)), Rounding(with_bits(FORMATS["f32"], 21))), OTHERS), 26)
    tree = joined_branch("fused", ["c", *range(4)])
    alone = drafted(tree, draft(step(total=late)), "f16,f16,f32,f32", 4, frozenset[Leaf](["c"]))
    assert [node.fraction_bits for node in walk(alone.result) if isinstance(node, FusedSum)] == [26]
    cut = FusedSum((fused(26, items=(PRODUCTS,)), OTHERS), 22)
    some = drafted(tree, draft(step(total=cut)), "f16,f16,f32,f32", 4, frozenset[Leaf]([0, 1]))
    assert [node.fraction_bits for node in walk(some.result) if isinstance(node, FusedSum)] == [26, 22]


def test_sums_of_products_are_rounded_to_the_bits_that_are_seen() -> None:
    axes = StepAxes("fused", 0, parse_signature("f16,f16,f32,f32", 4), lambda: 21, alone=True)
    between = {found.steps[0].between for found in axes.rounded_first(draft(step()))}
    assert {found.format.precision for found in between if found is not None} == {21, 22, 23}
    tiers = late_tiers(0)
    given = draft(step(total=FusedSum((Round(fused(21, items=(PRODUCTS,)), Rounding(FORMATS["tf32"])), OTHERS), 10)))
    assert not [*tiers[0](given), *tiers[1](given)]  # where c joins is not known yet
    assert {found.steps[0].between for found in tiers[2](given)} == {Rounding(FORMATS["tf32"])}


def test_terms_of_sums_commute_and_nothing_else_does() -> None:
    def model(text: str) -> Model:
        return Model("x", parse_unit(text, "x"))

    text = PAIR.replace("MODE", "up")
    one = model(text)
    assert same_by_form(one, model(text.replace("a[0] * b[0], a[1] * b[1]", "a[1] * b[1], a[0] * b[0]")))
    assert not same_by_form(one, model(text.replace("b[1]", "b[0]")))
    assert not same_by_form(one, model(text.replace("up", "down")))


# -- roles

LANES = Node("binary", (Node("binary", (chain_of([0, 2, 4, 6]), chain_of([1, 3, 5, 7]))), "c"))


def test_steps_of_one_pattern_have_one_role() -> None:
    part = roles_by_shape(LANES)
    assert part.count == 3
    assert [len(part.steps(role)) for role in range(3)] == [1, 1, 6]
    assert roles_apart(LANES).count == 8
    pairs = [Node("binary", (k, k + 1)) for k in range(0, 8, 2)]
    chain: Node | Leaf = "c"
    for pair in pairs:
        chain = Node("binary", (chain, pair))
    assert roles_by_shape(chain).count == 2  # also where the first sum is larger than c
    assert roles_by_shape(chain, {2: (-1, 0), 3: (-1, 0)}).count > 2


def test_a_step_is_shown_by_one_leaf_below_each_of_its_branches() -> None:
    part = roles_by_shape(LANES)
    for place in placements(part, 1, random.Random(3), 3):
        assert len({leaf % 2 for leaf in place if leaf != "c"}) == 2
        assert part.of_few(place) is not None


def test_leaves_that_show_a_step_meet_in_none_below() -> None:
    """Steps are decided from the last one down: one below that adds something would not be known yet."""
    lanes: list[Node | Leaf] = [*range(16)]
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [Node("binary", pair) for pair in zip(lanes[:half], lanes[half:], strict=True)]
    part = roles_by_shape(Node("binary", (lanes[0], "c")))
    for role in range(part.count):
        for place in placements(part, role, random.Random(role), 8):
            few = part.of_few(place)
            assert few is not None
            assert max(few.roles[id(node)] for node in nodes_of(few.root) if len(node.children) > 1) == role


STEPS = step(how("up")), step(how("down", "f64")), step(how("to_odd"))
PARTS = Parts((Reading(5, "nearest_even"), None), (Reading(4, "toward_zero"), None), ((0, 1), (1, 0), (0, 0)))
KEPT = replace(PARTS, a=(Reading(5, "toward_zero"), None), kept=True)
ALIGNED_TWICE = Node("fused", (Node("fused", tuple(range(4))), Node("fused", tuple(range(4, 8))), "c"))
STORED = draft(convert=how("down"), store=Store(4, how("toward_zero", "bf16")))


@pytest.mark.parametrize(
    ("root", "chosen"),
    [
        *((LANES, draft(*STEPS, start=start)) for start in STARTS),
        (LANES, draft(*STEPS[:2], step(how("to_odd"), leaves=how("down", "bf16")))),
        (LANES, draft(*STEPS, parts=read_once(Reading(5, "toward_zero"), Reading(7, "nearest_even")))),
        *((LANES, draft(*STEPS, start="zero", parts=replace(PARTS, passes=passes))) for passes in PASSES),
        (chain_of(["c", *range(8)]), draft(parts=replace(PARTS, passes="whole"))),
        *((LANES, draft(*STEPS, parts=replace(KEPT, passes=passes))) for passes in PASSES),
        (ALIGNED_TWICE, draft(step(total=fused(24)), step(None, Cancelling(fused(15))))),
        (ALIGNED_TWICE, draft(step(total=fused(24)), step(total=fused(15)), odd=(frozenset([1, 5]), -3))),
        (chain_of(["c", *range(8)]), STORED),
        (Node("binary", (chain_of([*range(8)]), "c")), replace(STORED, steps=(step(), step()))),
        (chain_of(["c", *(k ^ 1 for k in range(8))]), STORED),
        (chain_of(["c", *range(8)]), draft(products=how(name="bf16"), fused=frozenset([0, 3]))),
    ],
)
def test_the_tree_of_few_leaves_computes_as_the_whole(root: Node, chosen: Draft) -> None:
    """But for the signs of zeros."""
    asked, length = parse_signature("f16,f16,f32,f32", 8), 8
    sketch = Sketch([roles_by_shape(root)], asked)
    few_leaves: list[list[Leaf]] = [["c", 0, 5], [2, 4, 3], ["c", 7]]
    for kept in map(frozenset, few_leaves):
        rows = Shapes(asked, 5).at("middle", 60, kept)
        whole, few = (
            evaluate_batch(Model("x", sketch.unit(chosen, given)), rows[:, :length], rows[:, length:-1], rows[:, -1])
            for given in (None, kept)
        )
        counts = ordinary(whole, asked.d) & (whole % (1 << 31) != 0)
        assert (whole == few)[counts].all()
        assert counts.any()


def test_products_are_fused_one_by_one() -> None:
    """Which of them are is asked once a tier needs it, and they part a loop."""
    asked, calls = parse_signature("f32,f32,f32,f32", 12), []

    def seen() -> frozenset[int]:
        calls.append(1)
        return frozenset([5])

    tiers = product_tiers(["binary"], asked, [0], seen)
    assert not calls
    found = [chosen for tier in tiers[:3] for chosen in tier(draft())]
    some = [chosen for chosen in found if chosen.fused]
    assert calls
    assert {(chosen.fused, chosen.products) for chosen in some} == {(frozenset([5]), how())}
    part = roles_by_shape(chain_of(["c", *range(12)]))
    unit = Sketch([part], asked).unit(some[0], None)
    loops = [node for node in walk(unit.result) if isinstance(node, Repeat)]
    assert sorted(len(loop.places) for loop in loops) == [5, 6]

    def ask(vectors: Sequence[Vector]) -> list[int]:
        return evaluate_rows(Model("", unit), [vector.operands for vector in vectors])

    builder = Builder([part.root], asked, ask, Options())
    for _ in range(2):
        assert builder._fused() == {5}
        assert builder.answers.questions == 12
    builder.turn_to([roles_by_shape(chain_of(["c", *range(11, -1, -1)]))])  # another tree is asked about by itself
    builder._fused()
    assert builder.answers.questions == 24
    assert {chosen.fused for chosen in ordinary_neighbours(some[0], asked)} >= {frozenset(), frozenset([5, 7])}
    assert simplest(replace(some[0], products=how(name="f64")), asked, {}).fused == frozenset()


def test_a_lane_that_keeps_other_bits() -> None:
    """Its products are at one place of every step, which are a loop then, or it is one product."""
    steps: list[Node] = []
    for start in range(0, 16, 4):
        steps.append(Node("fused", (steps[-1] if steps else "c", *range(start, start + 4))))
    part, asked = roles_by_shape(steps[-1]), parse_signature("f16,f16,f32,f32", 16)
    lanes = lanes_of(part)
    assert {frozenset([1, 5, 9, 13]), frozenset([9])} <= set(lanes)
    assert len(lanes) == 20
    sketch, plain = Sketch([part], asked), draft(step(how("toward_zero"), fused(25)))
    whole = sketch.unit(replace(plain, odd=(frozenset([1, 5, 9, 13]), -1)), None)
    assert isinstance(whole.result, Repeat)
    [loop] = [node for node in walk(whole.result) if isinstance(node, FusedSum)]
    assert sorted(loop.bits_of_terms) == [24, 25, 25, 25, 25]
    alone = sketch.unit(replace(plain, odd=(frozenset([9]), 2)), None)
    sums = [node for node in walk(alone.result) if isinstance(node, FusedSum)]
    assert sorted(max(x.bits_of_terms) for x in sums) == [25, 25, 25, 27]
    rows = Shapes(asked, 5).rows("middle", 200)
    right, wrong = evaluate_models([Model("", sketch.unit(plain, None)), Model("", alone)], rows)
    missed = rows[right != wrong]
    assert len(missed)
    tried = [chosen.odd for chosen in with_one_lane(plain, part, missed, asked)]
    assert (frozenset([9]), 2) in tried
    missed[0, 9] = 0
    assert (frozenset([9]), 2) not in [chosen.odd for chosen in with_one_lane(plain, part, missed, asked)]


def test_stores_of_an_inner_chain() -> None:
    """They are drafted, and told from one conversion at its end, through leaves of steps that are far apart."""
    asked, store = parse_signature("bf16,bf16,f32,f32", 24), Store(4, how("nearest_even", "bf16"))
    once = draft(step(), step(leaves=store.round))
    assert any(found.store == store for tier in StepAxes("binary", 1, asked).tiers() for found in tier(once))
    assert any(found.store == store for found in ordinary_neighbours(once, asked))
    places = placements(roles_by_shape(Node("binary", (chain_of([*range(24)]), "c"))), 1, random.Random(1), 3)
    numbers = [[leaf for leaf in place if isinstance(leaf, int)] for place in places]
    assert max(max(some) - min(some) for some in numbers) > 4


def test_steps_that_come_again_after_a_few_are_a_loop() -> None:
    order: list[Leaf] = ["c", *(k ^ 1 for k in range(600))]
    unit = drafted(chain_of(order), draft(), "bf16,bf16,f32,f32", 600)
    assert isinstance(unit.result, Repeat)
    assert len(unit.result.places) == 300
    few = drafted(chain_of(order[:13]), draft(), "bf16,bf16,f32,f32", 12)
    plain = drafted(chain_of(order[:13]), draft(), "bf16,bf16,f32,f32", 12, frozenset(order[:13]))
    assert few != plain
    rows = Shapes(parse_signature("bf16,bf16,f32,f32", 12)).middle(50)
    one, other = evaluate_models([Model("x", few), Model("y", plain)], rows)
    assert (one == other).all()


@pytest.mark.parametrize("start", [*STARTS, *SWAPPED])
def test_a_draft_with_loops_computes_as_the_one_without(start: Start) -> None:
    total: Node | Leaf = "c"
    for k in range(0, 12, 4):
        total = Node("binary", (total, chain_of([*range(k, k + 4)])))
    assert isinstance(total, Node)
    formats, chosen = "bf16,bf16,bf16,bf16", draft(*[step(how(name="bf16"))] * roles_by_shape(total).count, start=start)
    few = drafted(total, chosen, formats, 12)
    plain = drafted(total, chosen, formats, 12, frozenset(leaves_of(total)))
    assert few != plain
    rows = Shapes(parse_signature(formats, 12)).middle(100)
    one, other = evaluate_models([Model("x", few), Model("y", plain)], rows)
    assert (one == other).all()


def test_inputs_are_read_with_fewer_bits() -> None:
    asked = parse_signature("f32,f32,f32,f32", 1)
    tiers = product_tiers(["binary"], asked, [0])
    wanted = Reading(11, "toward_zero")
    assert any(found.parts == read_once(wanted, wanted) for tier in tiers for found in tier(draft()))
    unit = Sketch([roles_by_shape(joined_branch("binary", ["c", 0]))], asked).unit(
        draft(parts=read_once(wanted, wanted)), None
    )
    rows = np.array([[0x3F801FFF, 0x40001FFF, 0], [0x3F803FFF, 0xC0000FFF, 0]], dtype=np.uint64)
    assert evaluate_models([Model("x", unit)], rows)[0].tolist() == [0x40000000, 0xC0002000]


THREE_OF_FOUR = ((0, 1), (1, 0), (0, 0))
IN_BF16 = (Reading(8, "nearest_even"), Reading(8, "nearest_even"))


@pytest.mark.parametrize(
    ("parts", "agrees"),
    [
        (Parts(IN_BF16, IN_BF16, THREE_OF_FOUR), True),
        (Parts(IN_BF16, IN_BF16, THREE_OF_FOUR[::-1]), False),
        (Parts(IN_BF16, IN_BF16, (*THREE_OF_FOUR, (1, 1))), False),
        (Parts(IN_BF16, IN_BF16, THREE_OF_FOUR, "terms"), False),
        (Parts((Reading(9, "nearest_even"), Reading(8, "nearest_even")), IN_BF16, THREE_OF_FOUR), False),
    ],
)
def test_products_in_parts(parts: Parts, agrees: bool) -> None:
    """Two parts of each input, and three of the four products: as a program in exact numbers computes it."""
    truth = PROGRAMS["bf16-3pass-4"]
    asked = parse_signature(truth.formats, truth.length)
    tree, chosen = Node("binary", (joined_branch("exact", [*range(4)]), "c")), draft(step(), step(), parts=parts)
    model = Model("x", Sketch([roles_by_shape(tree)], asked).unit(chosen, None))
    rows = np.concatenate([Shapes(asked, 3).rows(kind, 40) for kind in KINDS])
    found, wanted = evaluate_models([model], rows)[0], truth.answers(rows)
    assert (((found == wanted) | nans(found, asked.d) & nans(wanted, asked.d)).all()) == agrees
    if agrees:
        tiers = product_tiers(["exact", "binary"], asked, [1])
        assert any(replace(chosen, parts=parts) in tier(draft(*chosen.steps)) for tier in tiers)
        assert parse_unit(text_of(replace(model.unit, reference="x")), "x.yaml")


def test_segments_of_unequal_width_are_tried() -> None:
    """Five and three bits of one factor; seven of the other, whose last is dropped, or multiplied too."""
    asked = parse_signature("bf16,bf16,bf16,bf16", 1)
    high, low = Reading(5, "toward_zero"), Reading(7, "toward_zero")
    every = list(uneven_parts(asked))
    assert Parts((high, None), (low,), ((0, 0), (1, 0)), "steps", kept=True) in every
    phases = ((0, 0), (1, 0), (0, 1), (1, 1))
    assert Parts((high, None), (low, None), phases, "steps", kept=True) in every
    assert not list(uneven_parts(parse_signature("f32,f32,f32,f32", 1)))


def test_products_alone_in_fixed_point_are_tried() -> None:
    """Products to odd at 2^-24, a sum with c that is truncated, and a second rounding."""
    asked = parse_signature("f16,f16,bf16,bf16", 4)
    axes = StepAxes("exact", 0, asked, adds_c=True)
    wanted = fused(56, "to_odd", least=32, items=(PRODUCTS,))
    found = [
        tried
        for tried in axes.tier("fixed_products")(draft(step()))
        if wanted in tried.steps[0].sum.operands and tried.convert == how("nearest_even", "bf16")
    ]
    assert how("toward_zero", "f32") in [tried.steps[0].round for tried in found]
    assert "fixed_products" in ORDER["exact"]


FIXED_ODD = """unit: fixed-odd
formats: {a: f16, b: f16, c: bf16, d: bf16}
length: 4
roundings: {z: "round(f32, toward_zero)", e: "round(bf16, nearest_even)"}
steps: {d: "e(z(exact(fused(a[0:4] * b[0:4], F=56, rounding=to_odd, least=32), c)))"}
"""
TWO_PHASES = """unit: two-phases
formats: {a: bf16, b: bf16, c: bf16, d: bf16}
length: 1
inputs: {subnormals: zero}
roundings: {r: "round(bf16, nearest_even, subnormals=flush_before)"}
steps:
  high: r(exact(c, segment(a[0], 0, 5) * segment(b[0], 0, 7)))
  d: r(exact(high, segment(a[0], 5, 8) * segment(b[0], 0, 7)))
"""
CUT_TO_ZERO = """unit: cut-to-zero
formats: {a: f16, b: f16, c: f32, d: f32}
length: 4
roundings: {r: "round(f32, nearest_even)"}
steps: {d: "r(signed(fused(a[0:4] * b[0:4], c, F=26)))"}
"""
ZEROS_COUNT = """unit: zeros-count
formats: {a: f16, b: f16, c: f32, d: f32}
length: 4
roundings: {r: "round(f32, nearest_even)"}
steps: {d: "r(fused(counting(a[0:4] * b[0:4]), c, F=24))"}
"""


@pytest.mark.slow
@pytest.mark.parametrize("text", [FIXED_ODD, TWO_PHASES, CUT_TO_ZERO, ZEROS_COUNT])
def test_what_designs_do(text: str, tmp_path: Path) -> None:
    """Products in fixed point, a dropped part of a factor, the sign of a sum that is cut to zero, zeros that count."""
    file, mine = tmp_path / "design.yaml", tmp_path / "mine.yaml"
    file.write_text(text)
    truth = parse_reference(str(file))
    formats = ",".join(side.name for side in (truth.a, truth.b, truth.c, truth.d))
    found = built(f"model:{file}", formats, truth.length, "--save", str(mine))
    assert found["verdict"] == "built"
    shapes = Shapes(parse_signature(formats, truth.length), seed=99)
    rows = np.concatenate([shapes.rows(kind, 500) for kind in KINDS])
    operands = rows[:, : truth.length], rows[:, truth.length : -1], rows[:, -1]
    results = [evaluate_batch(model, *operands) for model in (truth, parse_reference(str(mine)))]
    assert not differing(truth, *results).size


def test_likely_orders_have_every_leaf_once() -> None:
    for length, addend in ((2, True), (3, False), (8, True), (32, True), (6, False)):
        leaves = sorted(map(str, (["c"] if addend else []) + [*range(length)]))
        found = likely_orders(length, addend)
        assert all(sorted(map(str, leaves_of(root))) == leaves for root in found)
        assert len(found) > 4


def test_choices_that_say_the_same_are_one() -> None:
    asked, long = parse_signature("f16,f16,f32,f32", 4), parse_signature("f32,f32,f32,f32", 4)
    assert simplest(draft(products=how()), asked, {}) == draft()  # products of f16 fit f32
    assert simplest(draft(products=how()), long, {}) == draft(products=how())
    assert simplest(draft(step(how(overflow="infinity"))), asked, {}) == draft()
    flushed = how("nearest_away", "f16", subnormals="flush_after")
    cut = how(subnormals="flush_after", overflow="infinity")
    found = simplest(draft(step(flushed), products=cut, convert=cut), long, {})  # each for itself
    before, after = how(subnormals="flush_before"), how(subnormals="flush_after")
    assert found.roundings() == {0: flushed, "products": after, "convert": before}
    assert simplest(draft(step(cut)), asked, {}).steps == (step(before),)
    some = draft(step(after), products=how(), unrounded=frozenset([0]))
    assert simplest(some, long, {}) == some  # these sums are of exact products
    short, most = parse_signature("f16,f16,f16,f16", 4), how("up", "f32", subnormals="flush_after", overflow="saturate")
    assert simplest(draft(step(most)), short, {}).steps == (step(how("up")),)  # neither is reached


def test_a_draft_has_no_parameter_of_a_node() -> None:
    """They are where the nodes are: in its expressions."""
    known = {name for kind in kinds() if is_dataclass(kind) for name in kind.field_names()}
    known |= {item.name for item in fields(Rounding)}
    own = {item.name for part in (Draft, Step, Store) for item in fields(part)}
    assert own & known == {"start"}  # with which a sum begins; of a loop it is an operand


def test_every_value_that_a_node_has_is_tried() -> None:
    """In the roundings and inputs of a draft; also one that only the node's file names."""
    asked = parse_signature("f16,f16,f16,f16", 2)
    tiers = [*tiny_tiers(asked, {}, True), *zero_tiers(["exact"], asked), *end_tiers(asked, {})]
    found = [x for tier in tiers for x in tier(draft(d="f16"))]
    roundings = [x.steps[0].round.rounding for x in found if x.steps[0].round is not None]
    assert {rounding.subnormals for rounding in roundings} == {*TINY}
    assert {rounding.zero for rounding in roundings} == {*ZEROS}
    assert {rounding.overflow for rounding in roundings} == {*OVERFLOWS}
    assert {x.c.subnormals for x in found} == {*SUBNORMALS}
    assert {*map(type, (x.product for x in found))} == {Product, Gate, Counting}


def test_what_no_node_takes_is_no_candidate() -> None:
    """For instance a product that is zero and normalised, within a node that lets it count with its exponent."""
    asked = parse_signature("e4m3,e4m3,f32,f32", 4)
    plain = [draft(), draft(step(total=fused(13)))]
    others = [replace(one, product=other) for one in plain for other in with_inserted_node(one.product, asked.d)]
    for one in plain:
        sums = with_inserted_node(one.steps[0].sum, asked.d)
        others += [one.with_step(0, replace(one.steps[0], sum=other)) for other in sums]
    assert {type(one.product) for one in others} >= {Counting, Gate}
    tiers = [*tiny_tiers(asked, {}, True), *zero_tiers(["fused"], asked), *end_tiers(asked, {}), *late_tiers(0)]
    tiers += [*carry_tiers([0]), lambda one: neighbours(one, asked, {}), lambda one: normalising(one, asked)]
    for one, tier in product(others, tiers):
        assert all(isinstance(found, Draft) for found in tier(one))
    counting = next(one.product for one in others if isinstance(one.product, Counting))
    refused = changed(counting, Product, partial(replace, normalised=True))
    assert refused is counting
    assert with_node(counting, counting.term, replace(counting.term, normalised=True)) is counting


def test_modes_that_no_answer_shows_are_one_draft() -> None:
    steps = [draft(step(how(mode)), step(how("up")), products=how("down")) for mode in MODES]
    [one] = merged_drafts(steps)
    assert one.unshown == {0}
    assert drafts_of_merged(one) == steps
    assert merged_drafts(steps[1:]) == steps[1:]
    both = replace(one, unshown=frozenset((0, 1, "products")))
    assert {tuple(own.rounding.mode for own in found.roundings().values()) for found in drafts_of_merged(both)} >= {
        ("up", "up", "up"), ("up", "up", "down"), ("to_odd", "down", "to_odd")
    }  # fmt: skip


def test_sums_in_a_shorter_format_are_drafted_from_the_bits_of_results() -> None:
    asked = parse_signature("e5m2,e5m2,f16,f16", 8)
    axes = StepAxes("fused", 0, asked, lambda: 8)
    assert [fmt.name for fmt in axes.shorter] == ["bf16"]
    own, d = how("up", "bf16"), how(name="f16")
    hidden = frozenset(["convert"])  # which only overflow shows
    assert draft(step(own, fused(7)), convert=d, unshown=hidden) in axes.tier("fused_shorter")(draft(d="f16"))
    aligned = step(own, fused(7, "nearest_even"))
    assert draft(aligned, convert=d, unshown=hidden) in axes.tier("aligned_shorter")(draft(d="f16"))
    longer = StepAxes("fused", 0, parse_signature("e5m2,e5m2,f64,f64", 8), lambda: 11)
    assert [fmt.name for fmt in longer.shorter] == ["f16", "tf32"]
    assert not StepAxes("fused", 1, asked, lambda: 8).shorter  # of whose sums nothing is seen
    assert not StepAxes("fused", 0, asked, lambda: 9).shorter


def test_a_register_in_fixed_point_has_room_for_the_addend() -> None:
    """What is below its last bit is cut, however large c is; of products alone no more bits are needed."""
    asked = parse_signature("f16,f16,f32,f32", 2)
    [tried] = [
        chosen
        for chosen in StepAxes("exact", 0, asked).fixed(draft())
        if chosen.steps == (step(total=fused(62, "down", least=32)),)  # 32 + 30
    ]
    with_c, alone = (
        Sketch([roles_by_shape(Node("exact", leaves))], asked).unit(tried, None) for leaves in (("c", 0, 1), (0, 1))
    )
    for tiny, expected in ((0x0800, 0x53800001), (0x0001, 0x53800000)):  # 2^-13 * 2^-15 counts, 2^-24 * 2^-15 not
        operands = Operands((0x5C00, tiny), (0x5C00, 0x0200), 0x53800000)  # 2^40, and half of its last place
        assert evaluate_rows(Model("x", with_c), [operands]) == [expected]
    sums = [node for unit in (with_c, alone) for node in walk(unit.result) if isinstance(node, FusedSum)]
    assert [(node.fraction_bits, node.least) for node in sums] == [(159, 129), (62, 32)]


def test_a_pattern_that_is_a_number_in_another_format_of_the_width_is_no_nan_of_it() -> None:
    roundings = "roundings:\n  r: round(f16, up)\n  s: round(bf16, up)\nsteps:\n  d: r(s(exact(a[0] * b[0], c)))\n"
    unit = parse_unit(f"unit: x\nformats: {{a: e5m2, b: e5m2, c: f16, d: f16}}\nlength: 1\n{roundings}", "x.yaml")
    found = with_nan(unit, 0x7E00).result
    assert isinstance(found, Round)
    assert isinstance(found.term, Round)
    assert (found.rounding.nan, found.term.rounding.nan) == (0x7E00, None)


def test_chains_in_place_of_steps_without_loss() -> None:
    halves = Node("exact", (0, 1, 2)), Node("exact", (3, 4, 5))
    found = one_after_another(Node("exact", ("c", *halves)))
    last = [
        joined_branch("binary", (joined_branch("binary", ("c", halves[0])), halves[1])),
        joined_branch("binary", (joined_branch("binary", halves), "c")),
    ]
    each = [Node("binary", (Node("binary", tuple(half.children[:2])), half.children[2])) for half in halves]
    every = [chain_of(["c", *each]), chain_of([*each, "c"])]
    assert found == [*last, *every]
    assert one_after_another(chain_of([0, 1, "c"])) == one_after_another(0) == []


def test_orders_of_few_terms() -> None:
    assert [len(list(binary_trees(["c", *range(count)]))) for count in range(5)] == [1, 1, 3, 15, 105]


def test_covering_vectors_of_a_sum_without_an_addend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more products than are looked at through all leaves: those that show a step tell it from what is beside it."""
    monkeypatch.setattr("mmaprobe.queries.building.validation.POOL", 20)
    asked = parse_signature("f32,f32,f32", 12)
    root = chain_of([*range(12)])
    unit = Sketch([roles_by_shape(root)], asked).unit(draft(start="zero"), None)

    def ask(vectors: Sequence[Vector]) -> list[int]:
        return evaluate_rows(Model("x", unit), [vector.operands for vector in vectors])

    builder = Builder([root], asked, ask, Options())
    builder.turn_to([roles_by_shape(root)])
    assert builder.validation.covered(Candidate(draft(start="zero"), unit))
    assert builder.answers.checks > 20
    assert not builder.validation.covered(Candidate(draft(step(how("up")), start="zero"), unit))


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ("c, a[0] * b[0], r(number(0xbc00, f16) * a[1]) * b[1], a[2] * b[2]", "subtracts the products at 1"),
        ("r(number(0xbc00, f16) * c), a[0] * b[0], a[1] * b[1], a[2] * b[2]", "subtracts c"),
        ("c, " + ", ".join(f"r(number(0xbc00, f16) * a[{k}]) * b[{k}]" for k in range(3)), "subtracts every product"),
        (
            f"c, {', '.join(f'scale(a[{k}] * b[{k}], {SIXTEENTH})' for k in range(3))}",
            "multiplies every product by 2^-4",
        ),
        (f"c, scale(r(exact(a[0] * b[0], a[1] * b[1], a[2] * b[2])), {SIXTEENTH})", "multiplies every product by 2^-4"),
        (f"r(scale(c, {SIXTEENTH})), a[0] * b[0], a[1] * b[1], a[2] * b[2]", "multiplies c by 2^-4"),
    ],
)
def test_what_is_subtracted_or_multiplied_is_found(
    terms: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its zeros, infinities, subnormals and rounding directions; `order` says it too."""
    for name, value in (("PROOFS", 0.3), ("COVERING", 0.3), ("VALIDATION", 1600)):
        monkeypatch.setattr(f"mmaprobe.queries.building.validation.{name}", value)
    true, mine = tmp_path / "true.yaml", tmp_path / "mine.yaml"
    true.write_text(SUBTRACTS.replace("PLACES", terms))
    result = run("--device", f"model:{true}", "--formats", "f16,f16,f16,f16", "--length", "3", "--save", str(mine))
    assert result.exit_code in (0, 3), result.stderr
    assert f"it {message}" in result.stderr
    models = [parse_reference(str(file)) for file in (true, mine)]
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 1 << 16, (4000, 7), dtype=np.uint64)
    rows[:2000] = rng.choice(
        np.array([0, 0x8000, 0x3C00, 0xBC00, 0x7C00, 1, 0x8001, 0x7BFF], dtype=np.uint64), (2000, 7)
    )
    left, right = evaluate_models(models, rows)
    assert ((left == right) | (nans(left, FORMATS["f16"]) & nans(right, FORMATS["f16"]))).all()
    order = CliRunner().invoke(
        main, ["order", "--device", f"model:{true}", "--formats", "f16,f16,f16,f16", "--length", "3"]
    )
    assert f"it {message}" in order.stderr


@pytest.mark.parametrize(
    ("steps", "mode"),
    [
        ("{d: 'r(exact(c, r(number(0xbf800000, f32) * r(exact(a[0] * b[0], a[1] * b[1])))))'}", "nearest_even"),
        ("{d: 'r(exact(c, r(number(0xbf800000, f32) * r(exact(a[0] * b[0], a[1] * b[1])))))'}", "up"),
        pytest.param(
            "{d: 'r(number(0xbf800000, f32) * r(exact(c, a[0] * b[0], a[1] * b[1])))'}",
            "nearest_even",
            marks=pytest.mark.slow,
        ),
        ("{s: 'r(exact(a[0] * b[0], a[1] * b[1]))', d: 'r(number(0xbf800000, f32) * r(exact(c, s)))'}", "down"),
        pytest.param(
            "{d: 'r(exact(c, r(number(0xbf800000, f32) * r(fused(a[0] * b[0], a[1] * b[1], F=20)))))'}",
            "toward_zero",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_sums_that_are_negated(steps: str, mode: str, tmp_path: Path) -> None:
    """As POWER's np and nn forms: what cancels in a sum that is subtracted is -0, and "up" is down."""
    true, mine = tmp_path / "true.yaml", tmp_path / "mine.yaml"
    true.write_text(NEGATED.replace("MODE", mode).replace("STEPS", steps))
    found = built(f"model:{true}", "bf16,bf16,f32,f32", 2, "--save", str(mine))
    assert found["questions"] <= 400
    models = [parse_reference(str(file)) for file in (true, mine)]
    rng = np.random.default_rng(1)
    zeros = np.array([0, 0x8000, 0x3F80, 0xBF80], dtype=np.uint64)
    rows = rng.choice(zeros, (500, 5))
    rows[:, 4] <<= np.uint64(16)
    for table in (rows, Shapes(parse_signature("bf16,bf16,f32,f32", 2), 9).rows("anything", 4000)):
        left, right = evaluate_models(models, table)
        assert ((left == right) | (nans(left, FORMATS["f32"]) & nans(right, FORMATS["f32"]))).all()


SKIPPED = """unit: skipped
formats: {a: f16, b: f16, c: f32, d: f32}
length: 1
roundings: {r: "round(f32, nearest_even)"}
steps: {d: "r(exact(c, gate(a[0] * b[0], ZERO)))"}
"""


@pytest.mark.parametrize("zero", ["-0", "+0"])
def test_products_with_a_zero_factor_that_are_left_out(zero: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zero times infinity is nothing, or +0."""
    for name, value in (("PROOFS", 0.3), ("COVERING", 0.3), ("VALIDATION", 1600)):
        monkeypatch.setattr(f"mmaprobe.queries.building.validation.{name}", value)
    true, asked = parse_unit(SKIPPED.replace("ZERO", zero), "skipped.yaml"), parse_signature("f16,f16,f32,f32", 1)

    def ask(vectors: Sequence[Vector]) -> list[int]:
        rows = np.array([[*v.operands.a, *v.operands.b, v.operands.c] for v in vectors], dtype=np.uint64)
        return [int(d) for d in evaluate_models([Model("true", true)], rows)[0]]

    found = Builder([tree_of(true)], asked, ask, Options(timeout=0.5), time.monotonic() + 60).run()
    assert found.unit is not None
    assert found.questions <= 400
    for kind in KINDS:
        rows = Shapes(asked, 9).rows(kind, 4000)
        left, right = evaluate_models([Model("true", true), Model("mine", found.unit)], rows)
        assert ((left == right) | (nans(left, FORMATS["f32"]) & nans(right, FORMATS["f32"]))).all()


def test_small_numbers_cancel_with_the_addend() -> None:
    """Whatever the formats: only that shows the sign of an exact zero where a product meets c."""
    for formats in ("f16,f16,f32,f32", "bf16,bf16,bf16,bf16", "e4m3,e4m3,f32,f32", "f64,f64,f64,f64"):
        asked = parse_signature(formats, 3)
        rows = Shapes(asked).rows("small", 600)
        units = [
            drafted(Node("exact", ("c", 0, 1, 2)), draft(step(how(mode, asked.d.name))), formats, 3)
            for mode in ("nearest_even", "down")
        ]
        nearest, down = evaluate_models([Model("", unit) for unit in units], rows)
        addends = rows[:, -1] & np.uint64(asked.c.sign_bit - 1)
        assert ((nearest == 0) & (down == asked.d.sign_bit) & (addends != 0)).sum() >= 5, formats


def test_vanishing_terms_beside_zeros() -> None:
    """Both products of a sum below the least subnormal result, and c zero: the sign of the result is the sum's."""
    asked = parse_signature("bf16,bf16,f32,f32", 4)
    pairs = Node("exact", (Node("exact", ("c", 0, 1)), 2, 3))
    unit = drafted(pairs, draft(step(), step()), "bf16,bf16,f32,f32", 4)
    rows = Shapes(asked).rows("vanishing", 1500)
    [found] = evaluate_models([Model("", unit)], rows)
    sizes = rows & np.array([*[asked.a.sign_bit - 1] * 8, asked.c.sign_bit - 1], dtype=np.uint64)
    alone = (sizes[:, [2, 3, 6, 7]] != 0).all(axis=1) & (sizes[:, [0, 1, 8]] == 0).all(axis=1)
    assert (alone & (found == 0x80000000)).sum() >= 10


@pytest.mark.parametrize("formats", ["f16,f16,f32,f32", "bf16,bf16,f32,f32", "e4m3,e4m3,f16,f16", "f32,f32,f32,f32"])
def test_subnormal_factors_that_count_normalised(formats: str) -> None:
    """Among terms of their size, which alone tells such a unit from one that aligns them as the format has them."""
    asked, root = parse_signature(formats, 4), Node("fused", ("c", 0, 1, 2, 3))
    chosen = draft(step(how(name=asked.d.name), fused(12)))
    normalised = list(normalising(chosen, asked))[3]
    units = [drafted(root, own, formats, 4) for own in (chosen, normalised)]
    rows = Shapes(asked).rows("subnormal", 1500)
    plain, other = evaluate_models([Model("", unit) for unit in units], rows)
    assert (plain != other).sum() >= 75
    assert normalised in neighbours(chosen, asked, {})
    assert any(normalised in tier(chosen) for tier in product_tiers(["fused"], asked, [0]))


def test_subnormal_addends_that_count_normalised_too() -> None:
    """As where inputs are normalised once they are read."""
    formats, root = "bf16,bf16,f32,f32", Node("fused", ("c", 0))
    asked = parse_signature(formats, 1)
    rows = Shapes(asked).rows("subnormal", 1000)
    units = [drafted(root, tried, formats, 1) for tried in normalising(draft(step(total=fused(12))), asked)]
    assert len(units) == 5
    found = evaluate_models([Model("", unit) for unit in units], rows)
    assert len(np.unique(found, axis=0)) == len(units)


TWICE = """unit: twice
formats: {a: f16, b: f16, c: f16, d: f16}
length: 2
roundings: {r: "round(f32, MODE)", o: "round(f16, nearest_even)"}
steps: {d: "o(r(exact(c, r(exact(a[0] * b[0], a[1] * b[1])))))"}
"""


@pytest.mark.parametrize("mode", some_slow(["nearest_even", "toward_zero"], "toward_zero"))
def test_results_that_are_converted(mode: str, tmp_path: Path) -> None:
    """Sums in f32, then one conversion to f16: only ties of the conversion tell it from one rounding."""
    true, mine = tmp_path / "true.yaml", tmp_path / "mine.yaml"
    true.write_text(TWICE.replace("MODE", mode))
    found = built(f"model:{true}", "f16,f16,f16,f16", 2, "--save", str(mine))
    assert found["questions"] <= 250
    models = [parse_reference(str(file)) for file in (true, mine)]
    for kind in KINDS:
        left, right = evaluate_models(models, Shapes(parse_signature("f16,f16,f16,f16", 2), 9).rows(kind, 4000))
        assert ((left == right) | (nans(left, FORMATS["f16"]) & nans(right, FORMATS["f16"]))).all()


CHAINED = """unit: chained
formats: {a: e4m3, b: e4m3, c: f32, d: bf16}
length: 4
roundings: {r: "round(f32, nearest_even)", o: "round(f16, to_odd)", t: "round(bf16, nearest_even)"}
steps: {d: "t(r(exact(r(exact(c, o(exact(a[0] * b[0], a[1] * b[1])))), o(exact(a[2] * b[2], a[3] * b[3])))))"}
"""


@pytest.mark.slow
def test_steps_that_seem_to_lose_nothing_are_a_chain(tmp_path: Path) -> None:
    """What f32 loses between them lies below all that a mask of these formats shows; sums in f16 hold no larger one."""
    true, mine = tmp_path / "true.yaml", tmp_path / "mine.yaml"
    true.write_text(CHAINED)
    built(f"model:{true}", "e4m3,e4m3,f32,bf16", 4, "--save", str(mine))
    models = [parse_reference(str(file)) for file in (true, mine)]
    left, right = evaluate_models(models, Shapes(parse_signature("e4m3,e4m3,f32,bf16", 4), 9).rows("middle", 8000))
    assert (left == right).all()


ALIGNED = """unit: aligned
formats: {a: f16, b: f16, c: f16, d: f16}
length: 1
roundings: {r: "round(f16, nearest_even)"}
steps: {d: "r(fused(product(a[0], b[0], normalised=true), product(c, number(0x7f, ue8m0), normalised=true), F=13))"}
"""


def test_numbers_that_count_normalised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an alignment that cuts the smaller term without a sticky bit."""
    for name, value in (("PROOFS", 0.3), ("COVERING", 0.3), ("VALIDATION", 1600)):
        monkeypatch.setattr(f"mmaprobe.queries.building.validation.{name}", value)
    true, mine = tmp_path / "true.yaml", tmp_path / "mine.yaml"
    true.write_text(ALIGNED)
    built(f"model:{true}", "f16,f16,f16,f16", 1, "--save", str(mine))
    models = [parse_reference(str(file)) for file in (true, mine)]
    for kind in KINDS:
        left, right = evaluate_models(models, Shapes(parse_signature("f16,f16,f16,f16", 1), 9).rows(kind, 4000))
        assert ((left == right) | (nans(left, models[0].d) & nans(right, models[0].d))).all()


SIMULATED = """unit: simulated
formats: {a: bf16, b: bf16, c: none, d: f32}
length: 16
roundings: {x: "round(f64, nearest_even)", r: "round(f32, toward_zero, overflow=infinity, zero=positive)"}
steps: {d: "r(fused(each(i in range(16), x(a[i]) * x(b[i])), +0, F=23, zeros=-133))"}
"""


def test_subnormal_factors_count_normalised_above_a_least_exponent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in programs that take numbers apart in f64 and align no sum below the exponent of a zero."""
    for name, value in (("PROOFS", 0.3), ("VALIDATION", 1600)):
        monkeypatch.setattr(f"mmaprobe.queries.building.validation.{name}", value)
    true = tmp_path / "true.yaml"
    true.write_text(SIMULATED)
    found = built(f"model:{true}", "bf16,bf16,f32", 16, "--timeout", "80")
    models = [Model("", parse_unit(text, "unit.yaml")) for text in (SIMULATED, found["unit"])]
    for kind in (*KINDS, "faint"):
        left, right = evaluate_models(models, Shapes(parse_signature("bf16,bf16,f32", 16), 9).rows(kind, 4000))
        assert ((left == right) | (nans(left, models[0].d) & nans(right, models[0].d))).all()


def test_a_draft_with_a_unit_for_some_leaves_alone_is_no_candidate() -> None:
    """`counting` takes one product; a sum of several has none that it could take."""
    asked = parse_signature("bf16,bf16,f32", 16)
    search = Builder([joined_branch("fused", [*range(16)])], asked, lambda _: [], Options()).search
    rows = Shapes(asked).rows("middle", 4)
    search.answers.bank.append(Answered(rows, np.zeros(4, np.uint64), 0))
    counted = draft(Step(NEAREST, FusedSum((Counting(PRODUCTS),), 23)))
    candidate = Candidate(counted, parse_unit(BEGUN, "begun.yaml"))
    assert search.agreeing([candidate], search.stages.everything) == []


def test_products_that_a_step_in_f16_keeps() -> None:
    rows = Shapes(parse_signature("f16,f16,f32,f32", 4), narrow=True).sums(300, frozenset(["c", 0, 2]), 4)
    floats = rows[:, :8].astype(np.uint16).view(np.float16).astype(np.float64)
    sizes = np.abs(floats[:, :4] * floats[:, 4:])
    assert 2**-14 <= sizes[sizes > 0].min() < 2**-10
    assert sizes.max() < 2**15


@pytest.mark.parametrize(
    "formats", ["f16,f16,f16,f16", "bf16,bf16,bf16,bf16", "bf16,bf16,f32,bf16", "bf16,bf16,f32,f32"]
)
@pytest.mark.parametrize("leaves", [frozenset[Leaf](["c", 0, 1]), frozenset[Leaf]([0, 1, 2])])
def test_sums_show_whether_they_are_rounded_twice(formats: str, leaves: frozenset[Leaf]) -> None:
    """At least a few of the inputs of a stage tell one rounding from two, and which one the first of these is."""
    asked = parse_signature(formats, 3)
    root = Node("fused", tuple(leaves))
    inner = "f64" if asked.d.name == "f32" else "f32"
    d, modes = asked.d.name, ("nearest_even", "toward_zero", "up")
    once = [draft(d=d)]
    twice = [draft(step(how(mode, inner)), convert=how(name=d)) for mode in modes]
    models = [Model("", drafted(root, chosen, formats, 3)) for chosen in (*once, *twice)]
    found = evaluate_models(models, Shapes(asked).sums(600, leaves, 4))
    for one, other in combinations(range(len(models)), 2):
        assert (found[one] != found[other]).sum() >= 5, (one, other)


def test_longer_sums_above_a_step_are_tried_with_it() -> None:
    asked = parse_signature("f16,f16,f16,f16", 4)
    truncated, own, long = step(how("toward_zero", "f16")), step(how(name="f16")), step()
    start = draft(truncated, own, own)
    tried = {found for tier in StepAxes("exact", 1, asked).tiers() for found in tier(start)}
    both = draft(long, long, own, convert=truncated.round)
    assert {both, replace(both, steps=(step(how("toward_zero")), long, own))} <= tried
    assert all(found.convert is None for found in tried if found.steps[1].result_format(asked.d) == FORMATS["bf16"])


def test_products_are_rounded_in_some_steps_alone() -> None:
    asked = parse_signature("f32,f32,f32,f32", 4)
    found = {tried.unrounded for tier in product_tiers(["binary"], asked, [1, 3]) for tried in tier(draft())}
    assert {frozenset[int](), frozenset([1]), frozenset([3])} <= found


def test_subnormal_factors_of_products_that_are_not_zero() -> None:
    asked = parse_signature("bf16,bf16,f32,f32", 1)
    rows = Shapes(asked).rows("small", 1600)
    for one, other in ((0, 1), (1, 0)):
        fields, beside = rows[:, one] & 0x7FFF, rows[:, other] & 0x7FFF
        shown = (fields > 0) & (fields < 0x80) & (beside >= 0x3380)  # at least 2^-24: not every product is zero
        assert shown.sum() > 20


def test_one_factor_alone_is_read_as_zero_where_it_is_subnormal() -> None:
    asked = parse_signature("f16,f16,f32,f32", 3)
    sketch = Sketch([roles_by_shape(chain_of(["c", 0, 1, 2]))], asked)
    tried = [found for tier in tiny_tiers(asked, {}, True) for found in tier(draft())]
    rows = [Operands((0x0001, 0, 0), (0x3C00, 0, 0), 0), Operands((0x3C00, 0, 0), (0x0001, 0, 0), 0)]
    least = 0x33800000  # 2^-24
    for b, expected in (("keep", [0, least]), ("zero", [least, 0])):
        a = "zero" if b == "keep" else "keep"
        found = [chosen for chosen in tried if chosen == draft().read_as(a, b, "keep")]
        assert found
        assert evaluate_rows(Model("x", sketch.unit(found[0], None)), rows) == expected
    one, other = draft().read_as("zero", "keep", "keep"), draft().read_as("keep", "zero", "keep")
    assert {one, other} <= {*neighbours(draft(), asked, {})}


def test_scale_factors_go_with_formats_and_length() -> None:
    """Also for a device that says its own formats and length."""
    found = run("--device", "model:volta/mma/m8n8k4.f32.f16.f16.f32", "--scale", "ue8m0/32")
    assert found.exit_code == 2
    assert "give --formats and --length: --scale goes with both" in found.stderr
