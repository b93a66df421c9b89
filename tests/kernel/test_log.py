"""Theorems from a log: what rules were called with is plain data, from which the same rules make the same theorems
again, and nothing else."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import pytest

from mmaprobe.queries.kernel.bounds.induction import carried, closed
from mmaprobe.queries.kernel.datapath.rounding_losses import RoundingLoses
from mmaprobe.queries.kernel.lemmas import exhausted
from mmaprobe.queries.kernel.log import Replay, Subject, Writer, _place
from mmaprobe.queries.kernel.properties.rises import needed, rises
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.plans.bound import bound_of_plan
from mmaprobe.queries.properties.bound import bound_in_units, bound_of, chain_of
from mmaprobe.queries.properties.signs import symmetry_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.normalising import Normaliser
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_plan_reference, parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text
from tests import said
from tests.claims.test_claim_stages import VOLTA
from tests.rules.test_rewriting import USEFUL
from tests.said import says

believed = cache(said.believed)
REFERENCES = sorted(INSTRUCTIONS)
PLANS = ("cublas/split-k", "cublas/plain", "openblas/sgemm", "loop/lanes", "deepgemm/fp8", "loop/fma")
NORMALISER = Normaliser(Options("bitwuzla", 60.0))


def made_again(roots: Sequence[Theorem], subject: Subject, again: Subject) -> list[Theorem]:
    """The theorems of a log that was written as text, and read beside files that were written and read too."""
    text = json.dumps(Writer(subject).stating(roots))
    return Replay(json.loads(text), again, says("unsat")).run()


def read_again(reference: str) -> tuple[Subject, Subject]:
    unit = parse_reference(reference).unit
    return Subject((Model("unit.yaml", unit),)), Subject(
        (Model("unit.yaml", parse_unit(unit_text(unit), "unit.yaml")),)
    )


def same(roots: Sequence[Theorem], again: Sequence[Theorem]) -> None:
    assert [one.goal.statement() for one in roots] == [one.goal.statement() for one in again]
    pairs = [(one, other) for root, made in zip(roots, again, strict=True)
             for one, other in zip(root.walk(), made.walk(), strict=True)]  # fmt: skip
    assert all((one.rule, one.goal.statement()) == (other.rule, other.goal.statement()) for one, other in pairs)


def bounds(reference: str) -> Iterator[Theorem]:
    unit = parse_reference(reference).unit
    yield bound_of(unit, believed)
    try:
        chain = chain_of(unit, believed)
        yield from (closed(chain), carried(chain, 3))
    except RuleError:
        return


@pytest.mark.solvers
@pytest.mark.parametrize("reference", REFERENCES[::9])
def test_bounds_of_instructions(reference: str) -> None:
    try:
        roots = list(bounds(reference))
    except RuleError:
        pytest.skip("no rule gives a bound")
    same(roots, made_again(roots, *read_again(reference)))


@pytest.mark.parametrize("name", PLANS)
def test_bounds_of_plans(name: str) -> None:
    roots, lengths = list[Theorem](), list[int | None]()
    plan, again = (parse_plan_reference(f"plan:{name}") for _ in range(2))
    for length in (None, 64, 100):
        roots.append(bound_of_plan(plan, length, believed))
        lengths.append(length)
    same(
        roots,
        made_again(
            roots, Subject(plans=(plan,), lengths=tuple(lengths)), Subject(plans=(again,), lengths=tuple(lengths))
        ),
    )


@pytest.mark.parametrize("reference", [name for name, rules in USEFUL if rules and "\n" not in name][::2])
def test_normal_forms(reference: str) -> None:
    theorem = NORMALISER.proof(parse_reference(reference).unit)
    if theorem is None:
        pytest.skip("it is its normal form")
    (again,) = made_again([theorem], *read_again(reference))
    assert again.goal.other == theorem.goal.other  # type: ignore[attr-defined]


def _signs(reference: str) -> Theorem | None:
    return symmetry_of(parse_reference(reference).unit, believed)


def _rise(reference: str) -> Theorem | None:
    unit = parse_reference(reference).unit
    return rises(unit, None, False, list(map(believed, needed(unit, None, False))))


def _units(reference: str) -> Theorem | None:
    unit = parse_reference(reference).unit
    return bound_in_units(unit, unit.length + 1, True, believed)


OTHERS: list[tuple[Callable[[str], Theorem | None], str]] = [
    (_signs, VOLTA), (_signs, "arm/neon/fmlal"), (_rise, "ieee/fma/f32"), (_rise, "ieee/fma/f32@length=4"),
    (_units, VOLTA),
]  # fmt: skip


@pytest.mark.parametrize(("prove", "reference"), OTHERS)
def test_signs_rises_and_bounds_in_units(prove: Callable[[str], Theorem | None], reference: str) -> None:
    theorem = prove(reference)
    if theorem is None:
        pytest.skip("it is not so")
    same([theorem], made_again([theorem], *read_again(reference)))


@cache
def _log() -> tuple[dict[str, Any], Subject]:
    unit = parse_reference(VOLTA).unit
    return json.loads(
        json.dumps(Writer(Subject((Model("unit.yaml", unit),))).stating([bound_of(unit, believed)]))
    ), Subject((Model("unit.yaml", unit),))


def test_a_record_that_is_changed_is_another_theorem_or_none() -> None:
    """Of every record each argument in turn: one larger, another theorem or node, nothing, text."""
    document, subject = _log()
    (true,) = Replay(document, subject, says("unsat")).run()
    refused = kept = 0
    for number, record in list(enumerate(document["records"]))[::3]:
        for name, value in record.items():
            for other in (None, "text", -1, [], [value, value], {"value": 0}, True, 1 << 80,
                          *([value + 1, value - 1] if type(value) is int else [])):  # fmt: skip
                changed = copy.deepcopy(document)
                changed["records"][number][name] = other
                try:
                    (made,) = Replay(changed, subject, says("unsat")).run()
                except RuleError:
                    refused += 1
                else:  # an argument that was not changed in effect
                    kept += 1
                    same = made.goal == true.goal  # else of the node that writes any NaN, which is not the result
                    assert same or made.goal.node != made.goal.unit.result, (record, name, other)  # type: ignore[attr-defined]
    assert refused > 150
    assert kept < refused // 20


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("records", [{"rule": "anything"}]), ("records", [{"rule": "element"}]), ("records", [{}]), ("records", [[]]),
        ("records", [{"rule": "exhausted", "goal": 0}]), ("records", [{"rule": ["exact"]}]), ("states", [99999]),
        ("states", [True]), ("states", ["0"]), ("values", [{"is": "Theorem"}]), ("values", [{"is": "Engines"}]),
        ("values", [{"is": "PlanAt", "plan": 0, "length": None, "growth": "1"}]), ("values", [{"value": 0}]),
    ],
)  # fmt: skip
def test_what_is_no_log_is_refused(place: str, value: Any) -> None:
    document, subject = _log()
    with pytest.raises(RuleError):
        Replay({**document, place: value}, subject, says("unsat")).run()


def test_lemmas_are_asked_again_and_evaluated_again() -> None:
    document, subject = _log()
    for answer in ("unknown", "sat"):
        with pytest.raises(RuleError, match=r"theorem \d+: .*loses less than"):
            Replay(document, subject, says(answer)).run()  # type: ignore[arg-type]
    small = exhausted(RoundingLoses(FORMATS["e2m1"], "up"))
    (again,) = made_again([small], *read_again(VOLTA))
    assert again.rule == "exhausted"


def test_a_subject_is_the_one_among_others_of_its_kind() -> None:
    models = [parse_reference(f"{VOLTA}@fraction_bits={bits}") for bits in (22, 23)]
    assert [_place(parse_reference(model.reference), models) for model in models] == [0, 1]
    with pytest.raises(RuleError, match="that the files do not state"):
        _place(parse_reference(f"{VOLTA}@fraction_bits=21"), models)
