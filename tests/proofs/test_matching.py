"""Signals that are one number at two static scales are found, and related so that a proof may merge them."""

from __future__ import annotations

import numpy as np
import pytest

from mmaprobe.queries.equality.matching import Matcher, Twin
from mmaprobe.queries.equality.staged import prove
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.arithmetic.decode import Exponent
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.inputs.admitted import Inputs
from mmaprobe.smtmodel.nodes.trace import Kind, Name, Signal, Stage, Trace
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.oracles.termeval import evaluate_terms

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32@length=2"
VALUES = np.array([0, 1, 2, 5, 12, 127], dtype=np.uint64)
EVERY = np.full(len(VALUES), True)


def signal(values: np.ndarray, width: int, *, scaled: bool = True, signed: bool = False, offset: int = 0) -> Signal:
    bits = ArrayCarrier().lanes(values.astype(np.uint64) & np.uint64((1 << width) - 1), width)
    trace = Trace()
    unit = Exponent(bits, offset, offset + (1 << width) - 1)
    if scaled:
        trace.number(Stage.SUM, bits, unit, is_signed=signed)
    else:
        trace.exponent(Stage.MAXIMUM, unit)
    return next(iter(trace))


def symbol(width: int, name: str) -> tuple[TermCarrier, Signal]:
    carrier = TermCarrier()
    return carrier, Signal(Name(name, Stage.STEP), carrier.symbol(name, width), Kind.PATTERN)


@pytest.mark.parametrize(("left", "right", "places"), [(0, 0, 0), (0, 2, 2), (3, 0, -3), (3, 1, -2)])
@pytest.mark.parametrize("signed", [False, True])
def test_a_static_scale_is_found(left: int, right: int, places: int, signed: bool) -> None:
    mine, other = (
        signal(VALUES << np.uint64(left), 12, signed=signed),
        signal(VALUES << np.uint64(right), 11, signed=signed),
    )
    twin = Matcher([(mine, mine)], EVERY).twin(other)
    assert twin is not None
    assert (twin.places, twin.offset) == (places, 0)


def test_an_exponent_is_matched_as_a_number() -> None:
    mine = signal(VALUES, 8, scaled=False, offset=-20)
    other = signal(VALUES + np.uint64(5), 8, scaled=False, offset=-25)
    twin = Matcher([(mine, mine)], EVERY).twin(other)
    assert twin is not None
    assert (twin.places, twin.offset) == (0, 5)


def test_different_numbers_do_not_match() -> None:
    mine, other = signal(VALUES, 8), signal(VALUES + np.uint64(1), 8)
    assert Matcher([(mine, mine)], EVERY).twin(other) is None
    assert Matcher([(mine, mine)], EVERY).twin(signal(VALUES, 8, signed=True)) is None


def test_only_the_samples_that_count_are_compared() -> None:
    odd = np.array([False, True, False, True, False, True])
    other = np.where(odd, VALUES, 0).astype(np.uint64)
    mine = signal(VALUES, 8)
    assert Matcher([(mine, mine)], EVERY).twin(signal(other, 8)) is None
    assert Matcher([(mine, mine)], odd).twin(signal(other, 8)) is not None


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(("places", "offset"), [(0, 0), (2, 0), (-2, 0), (0, 3), (0, -3)])
@pytest.mark.parametrize(("own", "other"), [(6, 6), (4, 7), (7, 4)])
def test_the_replacement_is_the_other_wherever_the_goal_holds(
    own: int, other: int, places: int, offset: int, signed: bool
) -> None:
    carrier, left = symbol(own, "left")
    right = carrier.symbol("right", other).node
    twin = Twin(left, places, offset)
    sides = twin.goal(carrier.manager, right, signed)
    replaced = twin.replacement(carrier.manager, right, signed)
    assert replaced.bv_width() == other
    x, y = (table.ravel() for table in np.meshgrid(np.arange(1 << own), np.arange(1 << other)))
    first, second, instead = evaluate_terms([*sides, replaced], {"left": x, "right": y})
    holds = first == second
    assert holds.any()
    assert (instead[holds] == y[holds]).all()


def test_products_below_two_need_no_normalisation() -> None:
    inputs = Inputs(normal=True, finite=True, products_below_two=True)
    problem = Problem(parse_reference(VOLTA), parse_reference(f"{VOLTA},product=normalised"), inputs)
    proof = prove(problem, Options("bitwuzla", 60.0), confirm=False)
    assert proof.verdict == "equal"
    assert any("<< 1" in lemma.name for lemma in proof.lemmas)


def test_products_of_two_and_more_do() -> None:
    inputs = Inputs(normal=True, finite=True)
    problem = Problem(parse_reference(VOLTA), parse_reference(f"{VOLTA},product=normalised"), inputs)
    proof = prove(problem, Options("bitwuzla", 60.0), confirm=False)
    assert proof.verdict == "different"
