"""Sign symmetry by nodes: what is known is found, nothing false is, and each side condition refuses once."""

from __future__ import annotations

import copy
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.kernel.lemmas import exhausted
from mmaprobe.queries.kernel.properties.opposite import RoundsOpposite, Turns, lemmas_of, turned
from mmaprobe.queries.kernel.properties.rises import needed, rises
from mmaprobe.queries.kernel.questions.statements import negations
from mmaprobe.queries.kernel.theorem import RuleError
from mmaprobe.queries.properties.proving import proofs_of
from mmaprobe.queries.properties.signs import BY_NODES, symmetry_of
from mmaprobe.queries.search.contradiction import check_problems
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.arithmetic.rounding import SIGNLESS, STOCHASTIC, Target
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.evaluate.batch import evaluate_models
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.tables.reference import parse_reference
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.node_units import MODES, random_unit
from tests.places import ROOT
from tests.said import believed
from tests.second.tree import Tree
from tests.second.written import written

RECORDED = [json.loads(line) for line in (ROOT / "benchmarks" / "properties.jsonl").read_text().splitlines()]
VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
TEXT = """unit: signs
formats: {{a: e5m2, b: e5m2, c: f16, d: f16}}
length: 2
roundings:
  r: round(f16, nearest_even)
  low: round(f16, down)
steps:
  d: {}
"""


@cache
def symmetric(unit: Unit) -> bool:
    try:
        return bool(symmetry_of(unit, believed))
    except RuleError:
        return False


def unit_of(step: str) -> Unit:
    return parse_unit(TEXT.format(step), "signs.yaml")


def test_verdicts_that_are_known() -> None:
    """Every symmetric arithmetic of the table is so by its nodes, and none that is not."""
    known = [record for record in RECORDED if record["property"] == "sign-symmetric"]
    assert len(known) > 80
    for record in known:
        assert symmetric(parse_reference(record["instruction"]).unit) == (record["verdict"] == "holds"), record


def test_no_random_unit_contradicts_it() -> None:
    rng, proved = random.Random(11), 0
    for _ in range(150):
        unit = random_unit(rng)
        try:
            (problem,) = negations(Model("random", unit))
        except MmaprobeError:
            continue
        if symmetric(unit):
            check_problems([problem])
            proved += 1
    assert proved > 15


STEPS = [
    ("r(exact(r(a[0] * b[0]), r(a[1] * b[1])))", True),
    ("repeat(k in range(0, 2), c, r(exact(acc, a[k] * b[k])))", True),
    ("repeat(k in range(0, 2), +0, r(exact(acc, a[k] * b[k])))", True),
    ("r(exact(each(k in range(0, 2), r(a[k] * b[k])), c))", True),
    ("r(cut(fused(a[0] * b[0], c, F=9, rounding=nearest_away), 7, to_odd))", True),
    ("r(exact(c, low(b[0] * b[1]) * a[0]))", True),  # what stays may be rounded down
    ("r(exact(c, low(gate(b[0] * b[1], -0)) * a[0]))", True),
    ("r(fused(a[0] * b[0], a[1] * b[1], c, F=9, carry=3))", True),  # 3.5^2 / 2 and 2, below 2^4
    ("r(fused(a[0] * b[0], a[1] * b[1], c, F=9, carry=2))", False),
    ("r(fused(gate(a[0:2] * b[0:2], -0), c, F=9, carry=3))", True),
    ("r(fused(gate(a[0:2] * b[0:2], -0), c, F=9, carry=2))", False),
    ("r(exact(gate(a[0] * a[1], +0), c))", False),
    ("r(exact(segment(a[0], 1, 3, positive=true, leading=true) * b[0], c))", True),
    ("r(fused(cancelling(fused(segment(a[0], 0, 2) * b[0], a[1] * b[1], F=1)), c, F=9))", True),
    ("r(exact(c, low(segment(b[0], 0, 1) * b[1]) * a[0]))", True),
    ("r(exact(segment(a[0], 0, 1) * segment(a[1], 0, 1), c))", False),
    ("r(fused(cancelling(fused(b[0] * b[1], F=1)), c, F=9))", False),
    ("r(exact(cancelling(fused(a[0] * b[0], F=1, rounding=down)), c))", False),
    ("low(exact(r(a[0] * b[0]), r(a[1] * b[1])))", False),
    ("r(exact(low(a[0] * b[0]), c))", False),
    ("r(fused(a[0] * b[0], c, F=9, rounding=up))", False),
    ("r(fused(a[0] * b[0], c, F=9, sticky=true))", False),
    ("r(cut(exact(a[0] * b[0], c), 7, down))", False),
    ("r(exact(c, b[0]))", False),
    ("r(exact(a[0] * a[1], c))", False),
    ("r(b[0] * b[1])", False),
    ("repeat(k in range(0, 2), b[0], r(exact(acc, a[k] * b[k])))", False),
    ("r(exact(r(c * a[0]) * b[0], a[0] * b[0]))", False),
    ("repeat(k in range(0, 2), c, r(exact(r(acc) * b[k], a[k] * b[k])))", True),
    ("repeat(k in range(0, 2), c, r(exact(r(acc) * a[k], b[k] * b[k])))", False),
    ("repeat(k in range(0, 2), b[0], r(exact(r(acc) * a[k], a[k] * b[k])))", False),
]


@pytest.mark.parametrize(("step", "wanted"), STEPS)
def test_side_conditions(step: str, wanted: bool) -> None:
    unit = unit_of(step)
    assert symmetric(unit) == wanted
    if wanted:
        check_problems(negations(Model("signs", unit)))


def test_which_lemmas_it_needs() -> None:
    unit, other = unit_of("r(exact(a[0] * b[0], c))"), unit_of("r(exact(a[0] * a[1], c))")
    (lemma,) = lemmas_of(unit)
    assert turned(unit, [believed(lemma)]).goal == Turns(unit)
    down = believed(RoundsOpposite(Target(FORMATS["f16"], "down")))
    for given, lemmas in ((unit, []), (unit, [down]), (unit, [believed(lemma), down]), (other, [believed(lemma)])):
        with pytest.raises(RuleError):
            turned(given, lemmas)


@pytest.mark.parametrize("mode", MODES)
def test_the_lemma_is_true_of_modes_that_see_magnitudes(mode: Any) -> None:
    for name in ("e4m3", "e5m2", "e3m2"):
        lemma = RoundsOpposite(Target(FORMATS[name], mode))
        if mode in SIGNLESS:
            assert exhausted(lemma)
        else:
            with pytest.raises(RuleError, match="shows otherwise"):
                exhausted(lemma)


@pytest.mark.parametrize("mode", STOCHASTIC)
def test_the_lemma_is_true_of_random_bits(mode: Any) -> None:
    for bits in (1, 2):
        assert exhausted(RoundsOpposite(Target(FORMATS["e3m2"], mode), bits))


DRAWN = """unit: drawn
formats: {{a: e2m1, b: e2m1, c: e2m1, d: e3m2_ieee, draws: uint2}}
length: 1
roundings:
  s: round(e3m2_ieee, {})
  low: round(e3m2_ieee, down)
steps:
  d: {}
"""
DRAWS = {
    "s(exact(c, a[0] * b[0]), draws[0])": (True, True),
    "s(exact(c, low(b[0]) * a[0]), draws[0])": (True, None),
    "repeat(k in range(0, 1), c, s(exact(acc, a[k] * b[k]), draws[k]))": (True, None),
    "s(exact(c, b[0] * b[0], a[0]), draws[0])": (False, None),
    "s(low(exact(c, a[0] * b[0])), draws[0])": (False, True),
    "s(exact(c, a[0] * b[0], s(b[0] * b[0], draws[0]) * a[0]), draws[0])": (True, None),
}  # whether each is negated with its operands, and whether it rises; None: it is not known


@pytest.mark.parametrize("mode", STOCHASTIC)
@pytest.mark.parametrize("step", DRAWS)
def test_what_random_bits_round_is_negated_and_rises(step: str, mode: str) -> None:
    """On every input, the random bits being the same: a rule that says so is right, and says it where it is."""
    unit = parse_unit(DRAWN.format(mode, step), "drawn.yaml")
    model = Model("drawn", unit)
    layout = layout_of(model)
    every = np.arange(1 << sum(fmt.width for fmt in layout.formats), dtype=np.uint64)
    columns = {}
    for name, fmt in zip(layout.names, layout.formats, strict=True):
        columns[name], every = every & np.uint64((1 << fmt.width) - 1), every >> np.uint64(fmt.width)

    def values(**changed: Any) -> Any:
        rows = np.stack([*(columns | changed).values()], axis=1)
        (results,) = evaluate_models([model], rows)
        table = np.array([np.nan if (x := exact_value(k, unit.d)) == "nan" else float(x) for k in range(64)])
        return table[results]

    minus = {name: columns[name] ^ np.uint64(8) for name in ("a0", "c")}
    plain, other = values(), values(**minus)
    negated = bool(((plain == -other) | (np.isnan(plain) & np.isnan(other))).all())
    assert (negated, symmetric(unit)) == (DRAWS[step][0], DRAWS[step][0])
    above = np.array([1, 2, 3, 4, 5, 6, 7, 7, 0, 8, 9, 10, 11, 12, 13, 14], np.uint64)[columns["c"]]  # the next number
    raised = bool((values(c=above) >= plain).all())
    if (known := DRAWS[step][1]) is not None:
        lemmas = needed(unit, None, normal=False)
        assert rises(unit, None, False, [believed(lemma) for lemma in lemmas])
        assert raised == known


def document_of(unit: Unit) -> dict[str, Any]:
    return written(unit, [symmetry_of(unit, believed)])


def test_trees_pass_and_changed_ones_do_not() -> None:
    """A lemma changed, or left out, is found; and a tree that states the lemma alone."""
    for record in RECORDED[::9]:
        unit = parse_reference(record["instruction"]).unit
        if symmetric(unit):
            assert not list(Tree(document_of(unit)).check()), record["instruction"]
    drawn = [parse_unit(DRAWN.format("stochastic_b", step), "drawn.yaml") for step, known in DRAWS.items() if known[0]]
    for unit in (*drawn, *(unit_of(step) for step, wanted in STEPS if wanted)):
        document = document_of(unit)
        assert not list(Tree(document).check()), unit
        *lemmas, _ = document["theorems"]
        for number in range(len(lemmas)):
            broken = copy.deepcopy(document)
            broken["theorems"][number]["goal"]["target"]["rounding"] = "down"
            assert {k for k, _ in Tree(broken).check()} & {number, len(lemmas)}, (unit, number)
            broken = copy.deepcopy(document)
            del broken["theorems"][-1]["premises"][number]
            assert len(lemmas) in {k for k, _ in Tree(broken).check()}
        assert list(Tree(document | {"states": [0]}).check())


def test_a_scale_factor_that_turns_is_refused() -> None:
    """A scaled product, with an element of a in the place of its factor."""
    model = parse_reference("blackwell/tcgen05mma_block_scale/m64n8k32.block32.f32.e5m2.e3m2.ue8m0")
    document = document_of(model.unit)
    turning, scaled = 0, next(number for number, node in enumerate(document["nodes"]) if node["kind"] == "scale")
    assert document["nodes"][turning]["operand"] == "a"
    assert not list(Tree(document).check())
    document["nodes"][scaled]["left"] = turning
    assert list(Tree(document).check())


def test_false_units_have_no_tree() -> None:
    """The tree of a symmetric unit, said of one that differs in one parameter."""
    document = document_of(unit_of(STEPS[7][0]))
    total = next(node for node in document["nodes"] if node["kind"] == "fused")
    for name, value in (("rounding", "up"), ("sticky", True), ("carry_bits", 2)):
        kept, total[name] = total[name], value
        assert list(Tree(document).check()), name
        total[name] = kept
    unit = unit_of("r(cut(exact(a[0] * b[0], c), 7, to_odd))")
    document = document_of(unit)
    (cut,) = (node for node in document["nodes"] if node["kind"] == "cut")
    cut["mode"] = "down"
    assert list(Tree(document).check())
    document = document_of(unit_of("repeat(k in range(0, 2), c, r(exact(r(acc) * b[k], a[k] * b[k])))"))
    assert not list(Tree(document).check())
    factor = next(node for node in document["nodes"] if node.get("operand") == "b")
    factor["operand"] = "a"  # what turns is negated once more with each step
    assert list(Tree(document).check())


def test_the_command_writes_a_log_that_is_checked(tmp_path: Path) -> None:
    def run(*arguments: str) -> str:
        found = CliRunner().invoke(main, list(arguments))
        assert found.exit_code == 0, found.output
        return found.output

    folder, reference = str(tmp_path / "proof"), "ieee/fma/f16@length=2"
    assert BY_NODES in run(
        "prove", "--property", "sign-symmetric", reference, "--certificate", folder, "--timeout", "60"
    )
    assert "is sign-symmetric: negating every a and c negates" in run("check", folder)
    assert json.loads(next((tmp_path / "proof").rglob("log.json")).read_text())["records"]


def test_a_unit_that_is_not_symmetric_has_an_input() -> None:
    problem = negations(parse_reference("ieee/fma/f16@length=2,output_rounding=down"))[0]
    (proof,) = proofs_of([problem], Options(timeout=60), confirm=False)
    assert proof.verdict == "different"


INTEGERS = """unit: integers
formats: {{a: {}, b: int4, c: {}, d: e5m6_ieee}}
length: 1
roundings: {{r: "round(e5m6_ieee, nearest_even)", whole: "round(int4, nearest_even)"}}
steps: {{d: "{}"}}
"""


@pytest.mark.parametrize(("a", "c", "step", "wanted"), [
    ("e2m1", "e2m1", "r(exact(a[0] * b[0], c))", True),
    ("int4", "e2m1", "r(exact(a[0] * b[0], c))", False),
    ("int4", "e2m1", "r(fused(a[0] * b[0], c, F=4))", False),
    ("e2m1", "int4", "r(exact(a[0] * b[0], c))", False),
    ("e2m1", "e2m1", "r(exact(whole(a[0] * b[0]), c))", False),
])  # fmt: skip
def test_the_least_integer_has_no_opposite(a: str, c: str, step: str, wanted: bool) -> None:
    """Negated, it is itself: where this shows in a result, the rule says nothing, and an input is found."""
    unit = parse_unit(INTEGERS.format(a, c, step), "integers.yaml")
    (problem,) = negations(Model("integers", unit))
    (proof,) = proofs_of([problem], Options(timeout=60), confirm=False)
    assert (proof.verdict == "equal") == wanted


def test_a_tree_of_integers_is_refused() -> None:
    document = document_of(parse_unit(INTEGERS.format("e2m1", "e2m1", "r(exact(a[0] * b[0], c))"), "integers.yaml"))
    assert not list(Tree(document).check())
    document["unit"]["a"] = document["unit"]["b"]
    assert list(Tree(document).check())
