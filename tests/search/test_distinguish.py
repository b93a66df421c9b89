"""Witnesses and verdicts: every vector found is replayed by the oracle, and no doubt is passed on as an answer."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pysmt.exceptions import PysmtTypeError

from mmaprobe.hypotheses.library import library
from mmaprobe.hypotheses.schema import Question
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.search import distinguish as search
from mmaprobe.queries.search.answer import answer, problems
from mmaprobe.queries.search.distinguish import (
    Options,
    PairOutcome,
    SolverFaultError,
    WitnessSearch,
    build_query,
    distinguish,
)
from mmaprobe.queries.search.exercises import EXERCISES
from mmaprobe.queries.search.witness import Row, Witness, confirmed_witness, replay, shrink, shrink_rows
from mmaprobe.queries.solvers import asking, engines
from mmaprobe.queries.solvers.contract import Answer, SolverProcess, Status
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.smtmodel.base.errors import FaultError, ParameterError
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands, layout_of
from mmaprobe.smtmodel.inputs.admitted import Compare, ExponentRange, Inputs
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.marks import some_slow
from tests.oracles import node_oracle, oracle
from tests.oracles.family_oracle import IN_WORDS, parameters_of
from tests.said import planted

pytestmark = pytest.mark.solvers

ASK = Options("bitwuzla", timeout=60)
VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
SMALL = f"{VOLTA}@product=normalised,length=1,fraction_bits=4,output=f16"
SMALL_PAIR = f"{VOLTA}@length=2,fraction_bits=4,output=f16"
FINITE = Inputs(finite=True)


def models(base: str, *changes: str) -> list[Model]:
    join = "," if "@" in base else "@"
    return [parse_reference(f"{base}{join}{change}" if change else base) for change in changes]


def problem_of(base: str, left: str, right: str, inputs: Inputs = FINITE, compare: Compare = "bits") -> Problem:
    first, second = models(base, left, right)
    return Problem(first, second, inputs, compare)


def result(model: Model, operands: Operands[int]) -> int:
    """The result of a model by the oracle, which shares nothing with it but the names of parameters; by the oracle of
    nodes for a family that it does not know, or no family."""
    if model.member is None or model.member.family not in IN_WORDS:
        a, b = (list(side) + [0] * (model.length - len(side)) for side in (operands.a, operands.b))
        found = node_oracle.evaluate(model.unit, a, b, operands.c)
        return model.unit.rounding.nan_pattern if found == node_oracle.ANY_NAN else found
    given = {name: value for name, value in parameters_of(model).items() if value is not None}
    given["nan"] = model.unit.rounding.nan_pattern
    formats = {side: getattr(model, side).name for side in "abcd"}
    if not model.scales:
        return oracle.evaluate(formats, given, operands.a, operands.b, operands.c)
    scales = [[*side, *[0] * (model.scales - len(side))] for side in (operands.scale_a, operands.scale_b)]
    return oracle.evaluate(formats, given, operands.a, operands.b, operands.c, *scales)


def differ(left: Model, right: Model, operands: Operands[int], compare: Compare) -> bool:
    """Whether the oracle's two results differ as the contract has it."""
    patterns = [result(model, operands) for model in (left, right)]
    x, y = (oracle.decode(model.d.name, d) for model, d in zip((left, right), patterns, strict=True))
    if compare == "value":
        return (x.kind, x.kind == "inf" and x.sign, x.value) != (y.kind, y.kind == "inf" and y.sign, y.value)
    named = left.nan is not None and right.nan is not None
    return patterns[0] != patterns[1] and (named or not x.kind == y.kind == "nan")


def admissible(inputs: Inputs, model: Model, operands: Operands[int]) -> bool:
    """Whether an input meets its restrictions, by the oracle's decoding."""
    terms = [*zip(operands.a, operands.b, strict=True), (operands.c,)]
    names = [*[model.a.name] * len(operands.a), *[model.b.name] * len(operands.b), model.c.name]
    kinds = [oracle.decode(name, x).kind for name, x in zip(names, (*operands.a, *operands.b, operands.c), strict=True)]
    if inputs.special and set(kinds) == {"finite"}:
        return False
    for index, term in enumerate(terms):
        names = [model.a.name, model.b.name] if len(term) == 2 else [model.c.name]
        if index in inputs.zero_terms:
            if any(term):
                return False
        elif not all(_allowed(inputs, name, pattern) for name, pattern in zip(names, term, strict=True)):
            return False
    return True


def _allowed(inputs: Inputs, name: str, pattern: int) -> bool:
    x, window = oracle.decode(name, pattern), inputs.exponents
    if (inputs.finite and x.kind != "finite") or (inputs.nonnegative and x.sign) or (inputs.nonzero and not x.value):
        return False
    if (inputs.normal or window) and x.kind == "finite" and 0 < x.significand < 1:
        return False
    return window is None or x.value == 0 or (x.kind == "finite" and window.min <= x.exponent <= window.max)


def check_witnesses(problem: Problem, witnesses: Iterable[Witness]) -> None:
    """The oracle gives the results that each witness states, they differ, and the input counts."""
    for witness in witnesses:
        assert result(problem.left, witness.operands) == witness.left
        assert result(problem.right, witness.operands) == witness.right
        assert differ(problem.left, problem.right, witness.operands, problem.compare)
        assert admissible(problem.inputs, problem.left, witness.operands)
        assert all(set(names) <= set(EXERCISES) for names in witness.exercises)


def asked(problem: Problem, count: int = 1) -> PairOutcome:
    """The outcome, its witnesses checked."""
    outcome = distinguish(problem, replace(ASK, count=count))
    check_witnesses(problem, outcome.witnesses)
    return outcome


# --- the library --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", some_slow(library(), "cdna3-late-sum", "xie-block"))
def test_library(name: str) -> None:
    question = library()[name]
    answered = answer(question, ASK)
    assert answered.verdict == question.expect, [pair.outcome.steps for pair in answered.pairs]
    assert answered.exit_code == 0
    for pair in answered.pairs:
        check_witnesses(pair.outcome.problem, pair.outcome.witnesses)
    for vector in answered.vectors:
        found = {name: int(text, 16) for name, text in vector.extra["predictions"].items()}
        assert found == {name: result(model, vector.operands) for name, model in question.models.items()}
        assert vector.extra["question"] == name
        assert admissible(question.inputs, vector.model, vector.operands)
    for left, right in question.pairs if question.expect == "different" else []:
        pair_models = question.models[left], question.models[right]
        assert any(differ(*pair_models, vector.operands, question.compare) for vector in answered.vectors)


def test_pairs_after_an_interrupt_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found before stays, and the question has no verdict."""
    question = next(x for x in library().values() if len(x.pairs) > 2 and x.expect == "different" and not x.one_vector)
    ask_on, runs = WitnessSearch._ask_on, []

    def interrupted(search: WitnessSearch) -> None:
        runs.append(search)
        if len(runs) == 2:
            raise KeyboardInterrupt
        ask_on(search)

    monkeypatch.setattr(WitnessSearch, "_ask_on", interrupted)
    answered = answer(question, replace(ASK, count=2))
    first, second, *rest = answered.pairs
    assert len(runs) == 2
    assert len(answered.pairs) == len(question.pairs)
    assert first.verdict == second.verdict == "different"
    assert {pair.verdict for pair in rest} == {"unknown"}
    assert not second.outcome.complete
    assert answered.vectors
    assert (answered.verdict, answered.exit_code, answered.document().interrupted) == ("unknown", 3, True)


def test_what_was_observed_is_what_the_instruction_table_says() -> None:
    found = 0
    for question in library().values():
        for name, model in question.models.items() if question.observed else []:
            if model.unit == parse_reference(model.reference.partition("@")[0]).unit:
                found += 1
                assert name in question.observed.values(), f"{question.id}: {name} is the model that ships"
    assert found > 0


# --- small first --------------------------------------------------------------------------------------------------


@pytest.fixture
def unsimulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solvers are asked about what simulation would show."""
    monkeypatch.setattr(search.WitnessSearch, "_simulate", lambda self: None)


@pytest.mark.usefixtures("unsimulated")
def test_a_difference_that_needs_every_product() -> None:
    problem = problem_of(VOLTA, "product=normalised,carry_bits=2", "product=normalised,carry_bits=3",
                         Inputs(finite=True, nonnegative=True))  # fmt: skip
    outcome = asked(problem)
    steps = [(len(step.free), step.answer.status) for step in outcome.steps]
    assert steps == [(1, "unsat"), (2, "unsat"), (3, "unsat"), (4, "sat")]


@pytest.mark.usefixtures("unsimulated")
def test_a_difference_that_one_product_shows() -> None:
    outcome = asked(problem_of(VOLTA, "fraction_bits=23", "fraction_bits=24"))
    assert [len(step.free) for step in outcome.steps] == [1]
    [witness] = outcome.witnesses
    assert not any(witness.operands.a[1:] + witness.operands.b[1:])


def test_models_of_different_lengths() -> None:
    outcome = asked(problem_of("ampere/mma/m16n8k16.f32.f16.f16.f32", "", "length=2,fraction_bits=23"))
    assert len(outcome.witnesses[0].operands.a) == 2


@pytest.mark.parametrize(
    "inputs",
    [
        Inputs(),
        Inputs(finite=True, nonzero=True),
        Inputs(finite=True, normal=True),
        Inputs(finite=True, nonnegative=True, zero_terms=(0,)),
        Inputs(finite=True, zero_terms=(2,)),
        Inputs(exponents=ExponentRange(min=1, max=9)),
        Inputs(finite=True, nonzero=True, exponents=ExponentRange(min=-14, max=-3)),
    ],
    ids=lambda inputs: str(inputs.model_dump(exclude_defaults=True)),
)
def test_restrictions_of_inputs(inputs: Inputs) -> None:
    outcome = asked(problem_of(f"{VOLTA}@length=2", "fraction_bits=12", "fraction_bits=14", inputs), 2)
    assert outcome.verdict == "different"
    assert outcome.witnesses


def test_no_number_is_admitted() -> None:
    problem = problem_of(VOLTA, "fraction_bits=23", "fraction_bits=24", Inputs(exponents=ExponentRange(min=90, max=99)))
    outcome = asked(problem)
    assert (outcome.verdict, outcome.witnesses) == ("equal", [])


# --- several witnesses --------------------------------------------------------------------------------------------


def test_witnesses_differ_in_what_they_exercise() -> None:
    outcome = asked(problem_of(VOLTA, "", "align_rounding=sticky"), 3)
    assert (outcome.verdict, len(outcome.witnesses)) == ("different", 3)
    assert len({witness.exercises for witness in outcome.witnesses}) == 3


def test_no_further_kind() -> None:
    inputs = Inputs(finite=True, nonnegative=True, exponents=ExponentRange(min=-1, max=1))
    outcome = asked(problem_of(SMALL, "carry_bits=0", "carry_bits=1", inputs), 50)
    assert outcome.complete
    assert 0 < len(outcome.witnesses) < 50
    assert len({witness.exercises for witness in outcome.witnesses}) == len(outcome.witnesses)


# --- equal --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (VOLTA, VOLTA),
        (f"{SMALL_PAIR}", f"{SMALL_PAIR},block_order=1-0"),
        (f"{SMALL_PAIR},carry_bits=16", SMALL_PAIR),
        ("ampere/mma/m16n8k8.f32.f16.f16.f32", "ada-lovelace/mma/m16n8k8.f32.f16.f16.f32"),
        ("hopper/wgmma/m64n8k16.f32.f16.f16", "hopper/wgmma/m64n256k16.f32.f16.f16"),
    ],
)
def test_one_arithmetic_under_two_references(left: str, right: str) -> None:
    outcome = asked(Problem(parse_reference(left), parse_reference(right), FINITE))
    assert (outcome.verdict, outcome.witnesses) == ("equal", [])
    assert outcome.steps[-1].answer.status == "unsat"
    assert len(outcome.steps[-1].free) == outcome.problem.length


def test_three_hypotheses_of_which_two_agree() -> None:
    """No verdict that meets the expectation may come with an exit code that says the opposite."""
    changes = dict(zip("abc", models(SMALL, "carry_bits=0", "carry_bits=1", "carry_bits=2"), strict=True))
    inputs = Inputs(finite=True, nonnegative=True, exponents=ExponentRange(min=-1, max=1))
    expectations: tuple[Any, ...] = ("different", "equal", None)
    for expect in expectations:
        answered = answer(Question("x", "x?", changes, inputs, expect), ASK)
        assert [pair.outcome.verdict for pair in answered.pairs] == ["different", "different", "equal"]
        assert answered.exit_code != 0
        assert answered.verdict != expect
        assert answered.pairs[1].reused == differ(changes["a"], changes["c"], answered.vectors[0].operands, "bits")


# --- unknown ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["bitwuzla", "auto"])
def test_time_runs_out(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "SolverProcess", SolverProcess)  # other tests' answers would come in time
    problem = library()["carry-bits-ampere-enough"]
    outcome = answer(problem, Options(solver, timeout=0.02)).pairs[0].outcome
    assert (outcome.verdict, outcome.witnesses) == ("unknown", [])
    assert outcome.steps
    assert all(answer.status == "unknown" and "time" in answer.reason for s in outcome.steps for answer in s.answers)


@pytest.mark.parametrize(
    "bits", [("exponent_floor=-20", "exponent_floor=-21"), ("fraction_bits=23", "fraction_bits=24")]
)
def test_no_engine_is_asked_about_what_simulation_shows(bits: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One product alone cannot show where a zero's exponent lies, and no engine says so soon."""
    problem = problem_of("ada-lovelace/mma/m16n8k8.f16.f16.f16.f16", *bits)
    monkeypatch.setattr(asking, "solve", Script("unknown"))
    outcome = asked(problem)
    assert (outcome.verdict, outcome.simulated, len(outcome.steps)) == ("different", True, 0)
    monkeypatch.setattr(search, "tie_rows", lambda layout, *_: np.zeros((1, len(layout.formats)), np.uint64))
    assert distinguish(problem, ASK).simulated == ("fraction" in bits[0])  # other rows do not show a floor
    same = problem_of("ada-lovelace/mma/m16n8k8.f16.f16.f16.f16", *bits[:1] * 2)
    assert not distinguish(same, ASK).simulated


@pytest.mark.parametrize("last", ["unknown", "unsat"])
def test_further_kinds_are_ruled_out_by_an_answer_alone(last: Status, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of vectors that samples found there may be more kinds, unless an engine says that there are none."""
    problem = problem_of("ada-lovelace/mma/m16n8k8.f16.f16.f16.f16", "fraction_bits=23", "fraction_bits=24")
    monkeypatch.setattr(asking, "solve", Script(last))
    outcome = distinguish(problem, replace(ASK, count=200))
    assert (outcome.simulated, 1 <= len(outcome.witnesses) < 200, bool(outcome.steps)) == (True, True, True)
    assert outcome.complete == (last == "unsat")


class Script:
    """Answers given in turn in place of a solver's, the last one for ever after."""

    def __init__(self, *statuses: Status, **values: int) -> None:
        self.statuses, self.values, self.asked = list(statuses), values, 0

    def __call__(self, query: Query, *rest: Any) -> list[Answer]:
        status = self.statuses[min(self.asked, len(self.statuses) - 1)]
        self.asked += 1
        return planted(query, Answer(status, "liar", "1.0", 0.5, self.values if status == "sat" else {}))


@pytest.mark.usefixtures("unsimulated")
@pytest.mark.parametrize(("before", "last"), [("unsat", "unknown"), ("unknown", "unsat"), ("unsat", "unsat")])
def test_only_the_whole_question_proves(before: Status, last: Status, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of(VOLTA, "fraction_bits=23", "fraction_bits=24")
    monkeypatch.setattr(asking, "solve", Script(before))
    asked_before = len(distinguish(problem, ASK).steps) - 1
    assert asked_before > 0
    monkeypatch.setattr(asking, "solve", Script(*[before] * asked_before, last))
    outcome = distinguish(problem, ASK)
    assert outcome.verdict == ("equal" if last == "unsat" else "unknown")
    assert [step.answer.status for step in outcome.steps] == [before] * asked_before + [last]
    assert len(outcome.steps[-1].free) == problem.length
    assert outcome.seconds == (asked_before + 1) / 2


@pytest.mark.usefixtures("unsimulated")
@pytest.mark.parametrize(
    "values",
    [{}, {"a0": 0x3C00, "b0": 0x3C00, "c": 0x3F800000}, {"a0": 0x7E00}, {"a0": 0x3C00, "b0": 0x3C00, "c": 0x7F800000}],
    ids=["zeros", "agreeing", "NaN", "infinity"],
)
def test_a_solver_that_lies_is_found_out(values: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "solve", Script("sat", **values))
    with pytest.raises(SolverFaultError, match=r"liar 1\.0") as caught:
        asked(problem_of(VOLTA, "fraction_bits=23", "fraction_bits=24"))
    assert isinstance(caught.value, FaultError)
    assert caught.value.exit_code == 4


@pytest.mark.usefixtures("unsimulated")
def test_a_truthful_script_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """1 * 1 - 2^-24 loses its second term where 23 fraction bits are kept, and not where 24 are."""
    monkeypatch.setattr(asking, "solve", Script("sat", a0=0x3C00, b0=0x3C00, c=0xB3800000))
    outcome = asked(problem_of(VOLTA, "fraction_bits=23", "fraction_bits=24"))
    assert outcome.verdict == "different"


def test_hypotheses_of_different_lengths() -> None:
    """A vector of a longer pair has products that the shortest model lacks."""
    changes = models(VOLTA, "fraction_bits=23", "fraction_bits=24", "length=2,fraction_bits=25")
    answered = answer(Question("x", "x?", dict(zip("abc", changes, strict=True)), FINITE), ASK)
    assert (answered.verdict, answered.exit_code) == ("different", 0)
    for pair in answered.pairs:
        check_witnesses(pair.outcome.problem, pair.outcome.witnesses)


# --- comparing results --------------------------------------------------------------------------------------------


def test_zeros_are_equal_by_value_only() -> None:
    changes = f"{VOLTA}@length=1,fraction_bits=4,output=f16", "zero_sign=positive", "zero_sign=ieee"
    outcome = asked(problem_of(*changes))
    assert [(witness.left, witness.right) for witness in outcome.witnesses] == [(0, 0x8000)]
    assert asked(problem_of(*changes, compare="value")).verdict == "equal"


def test_results_of_different_formats_are_compared_by_value() -> None:
    changes = f"{VOLTA}@length=1", "", "output=f16"
    with pytest.raises(ParameterError, match="f16 and bf16"):
        Problem(parse_reference(VOLTA), parse_reference("ampere/mma/m16n8k8.f32.bf16.bf16.f32"))
    with pytest.raises(ParameterError, match=r"compare .*value"):
        problem_of(*changes)
    outcome = asked(problem_of(*changes, compare="value"))
    assert outcome.verdict == "different"


def test_equal_values_of_different_formats() -> None:
    """Products of two e4m3 numbers fit into f16 where they are neither too large nor too small."""
    base = "ada-lovelace/mma/m16n8k32.f32.e4m3.e4m3.f32@length=1"
    inputs = Inputs(finite=True, exponents=ExponentRange(min=-3, max=7), zero_terms=(1,))
    assert asked(problem_of(base, "", "output=f16", inputs, "value")).verdict == "equal"
    larger = Inputs(finite=True, exponents=ExponentRange(min=-3, max=8), zero_terms=(1,))
    outcome = asked(problem_of(base, "", "output=f16", larger, "value"))
    assert outcome.verdict == "different"


@pytest.mark.parametrize(("change", "verdict"), [("nan=7fc00000", "different"), ("nan=none", "equal")])
def test_nans_are_one_unless_both_models_name_theirs(change: str, verdict: str) -> None:
    outcome = asked(problem_of(SMALL.replace(",output=f16", ""), "", change, Inputs()))
    assert outcome.verdict == verdict


# --- shrinking ----------------------------------------------------------------------------------------------------


def cost(problem: Problem, row: Row) -> tuple[int, int, int]:
    """Nonzero terms, operands that are not powers of two, and significand bits after the first, by the oracle."""
    layout = problem.layout
    operands = layout.split(row)
    terms = sum(1 for pair in zip(operands.a, operands.b, strict=True) if any(pair)) + (operands.c != 0)
    bits = []
    for pattern, fmt in zip(row, layout.formats, strict=True):
        number = oracle.decode(fmt.name, pattern).significand.numerator
        bits.append((number // (number & -number)).bit_length() - 1 if number else 0)
    return terms, sum(1 for count in bits if count), sum(bits)


def differing_rows(problem: Problem, count: int) -> list[Row]:
    """Random inputs of nearby exponents on which two models differ."""
    rng = np.random.default_rng(3)
    columns = []
    for fmt in problem.layout.formats:
        exponent = rng.integers(fmt.bias - 4, fmt.bias + 4, 4000, dtype=np.uint64)
        rest = rng.integers(0, 1 << fmt.fraction, 4000, dtype=np.uint64)
        sign = rng.integers(0, 2, 4000, dtype=np.uint64) << np.uint64(fmt.width - 1)
        columns.append(sign | exponent << np.uint64(fmt.fraction) | rest)
    rows = [tuple(int(x) for x in row) for row in np.stack(columns, axis=1)]
    return [rows[k] for k in np.flatnonzero(replay(problem, rows).differs)][:count]


SHRINKING = [
    ("fraction_bits=23", "fraction_bits=24", FINITE),
    ("", "align_rounding=sticky", Inputs(finite=True, nonzero=True)),
    ("product=rounded_f16", "", Inputs(finite=True, normal=True)),
    ("", "output_rounding=up", Inputs(finite=True, exponents=ExponentRange(min=-3, max=3))),
]


@pytest.mark.parametrize(("left", "right", "inputs"), SHRINKING, ids=[row[1] or row[0] for row in SHRINKING])
def test_shrinking_keeps_the_difference_and_lowers_the_cost(left: str, right: str, inputs: Inputs) -> None:
    problem = problem_of(VOLTA, left, right, inputs)
    rows = differing_rows(problem, 5)
    assert rows
    for row in rows:
        small = shrink(problem, row)
        witness = confirmed_witness(problem, small)
        assert witness is not None
        check_witnesses(problem, [witness])
        assert cost(problem, small) < cost(problem, row)
        assert shrink(problem, small) == small


def test_shrinking_keeps_what_it_is_told_to_keep() -> None:
    problem = problem_of(VOLTA, "fraction_bits=23", "fraction_bits=24")
    for row in differing_rows(problem, 5):
        sign = replay(problem, [row]).left >> np.uint64(31)
        small = shrink(problem, row, lambda found, sign=sign: np.asarray(found.left >> np.uint64(31) == sign))  # type: ignore[misc]
        assert replay(problem, [small]).left >> np.uint64(31) == sign
        assert replay(problem, [small]).differs[0]


def test_of_many_products_runs_are_dropped_first() -> None:
    """256 products of which two are needed: in a few dozen questions, where one by one takes hundreds."""
    layout = layout_of(parse_reference(VOLTA + "@length=256,block=4"))
    asked = []

    def needed(rows: list[Row]) -> Any:
        asked.append(len(rows))
        return np.array([bool(row[5] and row[256 + 5] and row[200] and row[456]) for row in rows])

    small = shrink_rows(layout, (0x3C01,) * 512 + (0,), needed)
    assert [k for k in range(512) if small[k]] == [5, 200, 261, 456]
    assert sum(asked) < 1000


# --- terms --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["carry-bits-volta", "cdna3-late-sum", "mxfp8-tcgen05-rtx", "f64-hopper-cdna2"])
def test_terms_are_of_the_sorts_that_pysmt_finds(name: str) -> None:
    """Widths are not checked when a term is built, and the sort of one is told by its operation; here pysmt's own
    checker walks over whole questions."""
    for _, _, problem in problems(library()[name])[:1]:
        carrier = TermCarrier()
        for assertion in build_query(problem, None, (), carrier).assertions:
            assert carrier.environment.stc.get_type(assertion).is_bool_type()
        for term in list(carrier.manager.formulae.values()):
            assert term.get_type() == carrier.environment.stc.get_type(term), term
        wrong = carrier.manager.BVAdd(carrier.symbol("a0", problem.left.a.width).node, carrier.constant(0, 3))
        with pytest.raises(PysmtTypeError):
            carrier.environment.stc.get_type(wrong)


@pytest.mark.usefixtures("unsimulated")
def test_a_question_that_was_refuted_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What little patience left open is asked with more, and nothing else is."""
    problem = problem_of(VOLTA, "fraction_bits=23", "fraction_bits=24")
    monkeypatch.setattr(asking, "solve", Script("unsat", "unknown", "unsat"))
    free = [len(step.free) for step in distinguish(problem, ASK).steps]
    assert free == [1, 2, 3, 4, 2, 4]  # of four, the last at first with one sign


def test_vectors_found_before_time_ran_out_are_kept(tmp_path: Path) -> None:
    """Also where the limit comes between two looks at the clock, as there are many more to look for."""
    target = tmp_path / "found.jsonl"
    words = ["distinguish", VOLTA, "hopper/mma/m16n8k16.f32.f16.f16.f32", "-n", "500", "-o", str(target), "--fresh"]
    command = [sys.executable, "-c", "from mmaprobe.cli.entry import main; main()", *words, "--timeout"]
    for seconds in ("6", "24"):  # on a busy machine the first vector can take longer than 6 s
        done = subprocess.run([*command, seconds], capture_output=True, text=True)
        if target.exists():
            break
    assert target.exists(), done.stderr
    assert done.returncode == 0
    assert 0 < len(target.read_text().splitlines()) < 500
    message = (f"time ran out: {seconds} s were given, and the work was cut short", "(there may be more kinds)")
    assert any(text in done.stderr for text in message)  # the search itself may see first that its time is over
