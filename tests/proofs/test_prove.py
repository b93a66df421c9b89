"""Staged proofs: what is equal is proved, what is not gets a replayed vector, cuts never invent an equality."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner
from pysmt.environment import Environment
from pysmt.typing import BVType

from mmaprobe.cli.main import main
from mmaprobe.hypotheses.properties import STATEMENTS, Property
from mmaprobe.queries.candidates.classes import partition
from mmaprobe.queries.equality import staged
from mmaprobe.queries.equality.staged import prove
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import Reordered, reorderings
from mmaprobe.queries.kernel.terms.cutting import Abstraction, conjuncts
from mmaprobe.queries.search.distinguish import Options, distinguish
from mmaprobe.queries.search.samples import sample_rows
from mmaprobe.queries.search.stored import witness_key
from mmaprobe.queries.search.witness import replay
from mmaprobe.queries.solvers import engines
from mmaprobe.queries.solvers.asking import Engines
from mmaprobe.queries.solvers.contract import SolverProcess
from mmaprobe.queries.solvers.portfolio import solve
from mmaprobe.queries.solvers.store import Store
from mmaprobe.queries.tactics import confirm as confirming
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.smtmodel.base.errors import OutOfTimeError
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.inputs.restrictions import parse_inputs
from mmaprobe.smtmodel.tables.reference import parse_reference

pytestmark = pytest.mark.solvers

FAST = Options("bitwuzla", 60.0)
VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"


def orders(reference: str) -> list[Proof]:
    return [prove(problem, FAST, confirm=False) for problem in reorderings(parse_reference(reference))]


@pytest.mark.parametrize(
    "reference",
    [
        VOLTA,
        "turing/mma/m16n8k8.f16.f16.f16.f16",
        "ampere/mma/m16n8k8.f32.tf32.tf32.f32",
        "hopper/mma/m16n8k16.f32.f16.f16.f32",
        "hopper/wgmma/m64n8k32.f32.e4m3.e4m3",
        "cdna3/mfma/f32_32x32x4_xf32",
    ],
)
def test_order_does_not_matter(reference: str) -> None:
    proofs = orders(reference)
    assert len(proofs) >= 2
    assert {proof.verdict for proof in proofs} == {"equal"}
    assert all(proof.lemmas for proof in proofs)


@pytest.mark.parametrize(
    "reference",
    [
        "cdna3/mfma/f32_32x32x16_fp8_fp8",
        "cdna1/mfma/f32_16x16x4f32",
        "cdna2/mfma/f32_32x32x8f16",
        f"{VOLTA}@partials=normalised",
    ],
)
def test_order_matters(reference: str) -> None:
    problems = reorderings(parse_reference(reference))
    proof = next(p for p in (prove(x, FAST, confirm=False) for x in problems) if p.verdict == "different")
    assert proof.witness is not None
    assert proof.witness.left != proof.witness.right
    assert replay(proof.problem, [proof.witness.operands.every]).differs[0]


def test_every_order_is_generated() -> None:
    """The exchanges and rotations of one step generate all permutations of it."""
    model = parse_reference(VOLTA)
    generators = [problem.order for problem in reorderings(model)]
    reached, new = {tuple(range(4))}, [tuple(range(4))]
    while new:
        found = {tuple(order[k] for k in generator) for order in new for generator in generators} - reached
        reached |= found
        new = sorted(found)
    assert len(reached) == 24


def test_equal_across_shapes() -> None:
    turing, ampere = "turing/mma/m16n8k8.f32.f16.f16.f32", "ampere/mma/m16n8k8.f32.f16.f16.f32"
    proof = prove(Problem(parse_reference(turing), parse_reference(ampere)), FAST)
    assert proof.verdict == "equal"


@pytest.mark.parametrize(("bits", "products"), [(3, "normalised"), (4, "unnormalised")])
def test_carry_bits_that_are_enough(bits: int, products: str) -> None:
    left, right = (parse_reference(f"{VOLTA}@product={products}{more}") for more in (f",carry_bits={bits}", ""))
    assert prove(Problem(left, right, Inputs(finite=True)), FAST, confirm=False).verdict == "equal"


def test_neighbours_are_told_apart() -> None:
    """No pair of neighbouring fraction bits is ever called equal."""
    models = [parse_reference(f"{VOLTA}@fraction_bits={bits}") for bits in range(20, 26)]
    for left, right in pairwise(models):
        assert prove(Problem(left, right), FAST, confirm=False).verdict == "different"


def test_lemma_queries_are_unsatisfiable_by_every_engine() -> None:
    proof = prove(reorderings(parse_reference(VOLTA))[0], FAST, confirm=False)
    for lemma in proof.lemmas:
        for engine in ("bitwuzla", "z3"):
            assert solve(lemma.query, engine, 60)[0].status == "unsat", lemma.name


def test_confirmation_is_reported() -> None:
    proof = prove(reorderings(parse_reference(VOLTA))[0], FAST)
    assert len(proof.engines) == 1
    assert "bitwuzla" in proof.engines[0]
    assert len(proof.confirmations) == 1
    assert "z3" in proof.confirmations[0]


def test_a_busy_machine_confirms_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second engine's processor seconds count: here it starts after the clock has run beyond them."""

    class Late(SolverProcess):
        def _attend(self, question: bytes) -> None:
            time.sleep(2.5)
            super()._attend(question)

    proof = prove(reorderings(parse_reference(VOLTA))[0], FAST, confirm=False)
    monkeypatch.setattr(engines, "SolverProcess", Late)
    monkeypatch.setattr(confirming, "LEAST", 1.0)
    for patience, confirmed in ((60.0, True), (1.0, False)):
        monkeypatch.setattr(confirming, "PATIENCE", patience)
        lemmas = confirming.confirm(proof.lemmas[:1], FAST, 0.0)
        assert all(lemma.confirmed for lemma in lemmas) is confirmed


def test_no_time_gives_unknown_or_a_simulated_difference() -> None:
    problem = reorderings(parse_reference(VOLTA))[0]
    assert prove(problem, Options("bitwuzla", 0.0), confirm=False).verdict == "unknown"


def test_samples_reach_special_values() -> None:
    problem = Problem(parse_reference(VOLTA), parse_reference(VOLTA))
    rows = [tuple(map(int, row)) for row in sample_rows(problem.layout, 500)]
    results = replay(problem, rows).left
    assert len(set(results.tolist())) > 100
    assert 0x7FFFFFFF in results
    assert {0x7F800000, 0xFF800000} & set(results.tolist())


def test_reordered_problem_moves_products() -> None:
    model = parse_reference(f"{VOLTA}@partials=normalised")
    problem = Reordered(model, model, order=(0, 2, 1, 3))
    rows = [tuple(map(int, row)) for row in sample_rows(problem.layout, 2000)]
    assert replay(problem, rows).differs.any()


def test_command() -> None:
    run = CliRunner().invoke(main, ["prove", VOLTA, VOLTA + "@carry_bits=4", "--json", "--solver", "bitwuzla"])
    assert run.exit_code == 0
    document = json.loads(run.stdout)
    assert document["verdict"] == "equal"
    run = CliRunner().invoke(main, ["prove", VOLTA, VOLTA + "@fraction_bits=24", "--json"])
    assert run.exit_code == 1
    document = json.loads(run.stdout)
    assert document["proofs"][0]["vector"]["a"]
    assert "give the same" in document["statement"]
    assert document["verdict"] == "different"
    for wrong in (["prove", VOLTA], ["prove", VOLTA, VOLTA, "--property", "order-independent"]):
        assert CliRunner().invoke(main, wrong).exit_code == 2


def test_a_property_is_said_in_words_and_what_was_raised() -> None:
    command = ["prove", "--property", "monotonic-product", VOLTA, "--solver", "bitwuzla"]
    run = CliRunner().invoke(main, command)
    assert run.exit_code == 1
    before, after = run.stderr.split("before gives ")
    raised = re.search(r"after a(\d)\*b\1 rose gives [0-9a-f]{8}  .* = (\S+)", after)
    assert raised is not None
    assert set(re.findall(r"^ +([abc]\d?) = ", after, re.M)) == {f"a{raised[1]}", f"b{raised[1]}"}  # what is new
    assert len(re.findall(r"^ +([abc]\d?) = ", before, re.M)) > 2
    assert float(raised[2]) < float(re.match(r"[0-9a-f]{8}  .* = (\S+)", after)[1])  # type: ignore[index]
    assert "monotonic-product (the result does not fall when one product rises): no;" in run.stderr


SCALED = """
unit: scaled
formats: {a: e2m1, b: e2m1, c: f32, d: f32, scale: ue8m0}
length: 4
scale_block: BLOCK
roundings: {final: 'round(f32, toward_zero)'}
steps:
  d: final(fused(TERMS, c, F=25))
"""


@pytest.mark.parametrize(
    ("unit", "exchanged", "others", "holds"),
    [
        (VOLTA, "any two products", "", True),
        (
            "hopper/mma/m16n8k16.f32.f16.f16.f32@length=32",
            "products that one step adds",
            "products of different steps",
            True,
        ),
        ("ieee/fma/f32@length=3", "any two products", "", False),
        ("4", "any two products", "", True),
        ("2", "products that one step adds, of 2 in a row with the same scale factors,", "other products", True),
        ("1", "any two products, but not their scale factors,", "", False),
    ],
)
def test_the_products_that_are_exchanged_are_said(
    tmp_path: Path, unit: str, exchanged: str, others: str, holds: bool
) -> None:
    """And of which nothing is said. Two products with scale factors of their own add another sum in other places."""
    if unit in "124":
        file = tmp_path / "scaled.yaml"
        places = [(k, k // int(unit)) for k in range(4)]
        terms = ", ".join(f"scale(a[{k}] * b[{k}], scale_a[{at}], scale_b[{at}])" for k, at in places)
        file.write_text(SCALED.replace("BLOCK", unit).replace("TERMS", terms))
        unit = str(file)
    certificate = str(tmp_path / "certificate")
    run = CliRunner().invoke(main, ["prove", "--property", "order-independent", unit, "--certificate", certificate])
    assert run.exit_code == int(not holds), run.output
    beyond = f"; it says nothing of {others}" if others else ""
    said = f"order-independent (exchanging {exchanged} does not change the result{beyond})"
    assert said in run.stderr
    assert ("where two differ: mmaprobe distinguish plan:ONE@length=K plan:OTHER@length=K" in run.stderr) == bool(
        others
    )
    stated = CliRunner().invoke(main, ["check", certificate]).stderr
    assert (said if not holds else said.replace(" (", ": ").rstrip(")")) in stated


def test_a_property_of_a_plan_is_asked_at_one_k() -> None:
    """The error names the plan at this K, which works."""
    asked = ["prove", "--property", "order-independent"]
    run = CliRunner().invoke(main, [*asked, "plan:cublas/split-k", "--length", "64"])
    hint = "a plan is a model at one K, without --length: plan:cublas/split-k@length=64"
    assert (run.exit_code, hint in run.stderr) == (2, True), run.output
    assert CliRunner().invoke(main, [*asked, hint.split()[-1]]).exit_code == 0
    units = CliRunner().invoke(main, [*asked, VOLTA, "--length", "64"])
    assert (units.exit_code, "a plan is" in units.stderr) == (2, False)


def test_every_property_is_said_in_words() -> None:
    assert set(STATEMENTS) == set(get_args(Property))


def test_a_cut_takes_a_whole_cone_and_leaves_the_rest() -> None:
    environment = Environment()
    build = environment.formula_manager
    x, y, z, cut = (build.Symbol(name, BVType(8)) for name in ("x", "y", "z", "cut"))
    cone, rest = build.BVAdd(x, y), build.BVULT(x, z)
    changed = Abstraction(environment, {cone: cut, y: z})
    assert changed(build.And(build.Equals(build.BVMul(cone, y), x), rest)) is build.And(
        build.Equals(build.BVMul(cut, z), x), rest
    )
    assert changed(rest) is rest
    assert changed(cone) is cut


def test_a_conjunction_of_thousands_is_taken_apart() -> None:
    build = Environment().formula_manager
    parts = [build.Symbol(f"p{number}") for number in range(5000)]
    nested = parts[0]
    for part in parts[1:]:
        nested = build.And(nested, part)
    assert conjuncts(nested) == parts


def test_the_store_answers_for_the_solver_that_is_asked(tmp_path: Path) -> None:
    two = (VOLTA, f"{VOLTA}@carry_bits=4")
    command = ["prove", *two, "--no-confirm", "--json", "--store", str(tmp_path / "store")]

    def engines(*options: str) -> tuple[str, bool]:
        """The engine, and whether all its answers are of an earlier run."""
        run = CliRunner().invoke(main, [*command, *options])
        assert run.exit_code == 0, run.output
        document = json.loads(run.stdout)
        [engine] = document["engines"]
        answers = [lemma["answer"] for proof in document["proofs"] for lemma in proof["lemmas"]]
        return engine.split()[0], all("from the store" in answer for answer in answers)

    assert engines("--solver", "bitwuzla") == ("bitwuzla", False)
    assert engines("--solver", "bitwuzla") == engines() == ("bitwuzla", True)
    assert engines("--solver", "z3") == ("z3", False)
    assert engines() == ("bitwuzla", True)  # the first of those that answered


def test_without_stored_answers_no_query_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples decide still, and so do answers once there are some."""
    equal = reorderings(parse_reference(VOLTA))[0]
    left, right = (parse_reference(f"{VOLTA}@carry_bits={bits}") for bits in (1, 2))
    with Store(tmp_path / "store.sqlite") as store:
        kept = replace(FAST, store=store, stored=True)
        with monkeypatch.context() as patched:
            patched.setattr(Engines, "answers", lambda engines, query: pytest.fail("a query was built"))
            assert [prove(one, kept).verdict for one in (equal, Problem(left, right))] == ["unknown", "different"]
        assert prove(equal, replace(FAST, store=store), confirm=False).verdict == "equal"
        assert prove(equal, kept, confirm=False).verdict == "equal"


def test_a_stored_difference_is_evaluated_again_and_not_searched_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = Problem(*(parse_reference(f"{VOLTA}@carry_bits={bits}") for bits in (1, 2)))
    with Store(tmp_path / "store.sqlite") as store:
        kept = replace(FAST, store=store)
        first = prove(problem, kept).witness
        assert first is not None
        with monkeypatch.context() as patched:
            patched.setattr(staged, "sample_rows", lambda *given: pytest.fail("simulated again"))
            assert prove(problem, kept).witness == first
        zeros = [0] * len(problem.layout.formats)  # the sides agree there, whatever the store says
        store.record_result(witness_key(problem), {"verdict": "different", "input": zeros})
        assert prove(problem, kept).witness == first


def test_after_the_deadline_nothing_is_built_or_asked_or_said_to_be_equal() -> None:
    pair = [parse_reference(f"{VOLTA}@carry_bits={bits}") for bits in (4, 5)]
    problem, late = Problem(*pair), replace(FAST, deadline=time.monotonic() - 1)
    proof, found = prove(problem, late), distinguish(problem, late)
    assert (proof.verdict, proof.theorem, proof.tried) == ("unknown", None, [])
    assert (found.verdict, found.steps) == ("unknown", [])
    parted = partition(pair, FAST, deadline=late.deadline)
    assert [len(members) for members in parted.classes] == [1, 1]
    assert parted.unknown == [tuple(pair)]
    carrier = TermCarrier()
    x, y = (carrier.symbol(name, 8) for name in "xy")
    with pytest.raises(OutOfTimeError), carrier.until(late.deadline):
        x + y
    assert (x + y).width == 8


TWO_WORDS = """plan: mine
formats: {a: f32, b: f32, c: none, d: f32}
units: {mma: hopper/mma/m16n8k16.f32.bf16.bf16.f32}
roundings: {h: "round(bf16, nearest_even)", r: "round(f32, nearest_even)"}
words: {a0: h(a), a1: "h(r(exact(a, -a0)))", b0: h(b), b1: "h(r(exact(b, -b0)))"}
steps:
  small: sum(then(SMALL), +0)
  large: sum(mma(a0, b0), +0)
  d: r(exact(large, small))
"""


def test_inputs_that_restrictions_admit_come_before_solvers(tmp_path: Path) -> None:
    """One of nine hundred random inputs in the window shows the difference: none of the shaped inputs, of which few are
    in it, and no engine in a minute."""
    models = []
    for name, small in (("one", "mma(a0, b1), mma(a1, b0)"), ("other", "mma(a1, b0), mma(a0, b1)")):
        path = tmp_path / f"{name}.yaml"
        path.write_text(TWO_WORDS.replace("SMALL", small))
        models.append(parse_reference(f"plan:{path}@length=16"))
    problem = Problem(models[0], models[1], parse_inputs("exponents=-2..2"))
    proof = prove(problem, replace(FAST, timeout=10.0))
    assert proof.verdict == "different"
    assert not proof.tried
    outcome = distinguish(problem, replace(FAST, timeout=10.0))
    assert outcome.simulated
    assert not outcome.steps
