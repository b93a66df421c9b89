"""What is asked of a solver is what is meant: every problem on all inputs of small units, against a truth that shares
no code with it (benchmarks/statements.py). No solver is asked; no input is left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.statements import (
    RESTRICTIONS,
    TRUTH,
    Lanes,
    Statement,
    columns_of,
    counted,
    grid_of,
    numbers,
    problems_about,
    results,
    values_of,
)
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import Monotonic
from mmaprobe.queries.search.witness import replay
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.admitted import Inputs
from tests.statements.test_statements import model

pytestmark = pytest.mark.solvers

FORMATS = {"a": "binary3p2se", "b": "e1m1_none", "c": "e2m1_ieee", "d": "e3m4_ieee"}
ONE = model("r(fused(a[0] * b[0], c, F=1, rounding=down))", length=1, **FORMATS)
OTHER = model("n(exact(a[0] * b[0], c))", length=1, **FORMATS)
LIMITED = model("n(exact(product(a[0], b[0], limit=0), c))", length=1, **FORMATS)  # NaN where the others are not
TWO = model("n(fused(repeat(k in range(2), c, r(fused(acc, a[k] * b[k], F=1))), a[0] * b[0], F=2))",
            a="e1m1_none", b="ue1m1_none", c="e1m1_none", d="e2m3")  # fmt: skip
TOGETHER = model("r(fused(a[0] * b[0], fused(a[1] * b[1], c, F=0), F=1))", a="e1m1_none", b="ue1m1_none", c="e1m1_none")
THREE = model("r(fused(fused(a[0] * b[0], a[1] * b[1], F=0), a[2] * b[2], c, F=1))",
              a="e1m1_none", b="ue1m1_none", c="e1m1_none", length=3)  # fmt: skip
FALLS = model("r(fused(a[0] * b[0], a[0] * b[0], c, F=0))", a="e1m1_none", b="ue1m1_none", c="e3m2", length=1)
ZEROS = model("r(grid(counting(c), a[0] * b[0], F=[1, 4], frame=1))", a="e1m1_none", b="ue1m1_none", c="e2m1", length=1)
EVERY = [*dict.fromkeys(RESTRICTIONS), Inputs(finite=True, zero_terms=(0,)), Inputs(zero_terms=(1,), nonnegative=True)]


def differing(problem: Problem) -> int:
    """On how many inputs the sides of a problem differ, of all that there are."""
    every = grid_of([range(1 << fmt.width) for fmt in problem.layout.formats])
    parts = [every[start : start + 65536].tolist() for start in range(0, len(every), 65536)]
    return sum(int(replay(problem, part).differs.sum()) for part in parts)


def truth(wanted: str, models: Sequence[Model], inputs: Inputs, compare: str | None = None) -> int:
    table = grid_of(columns_of(models[0], inputs))
    table = table[counted(models[0], inputs, table)]
    statement = Statement(0, wanted, tuple(models), inputs, compare)  # type: ignore[arg-type]
    return TRUTH[wanted](statement, table)


def asked(wanted: str, models: Sequence[Model], inputs: Inputs, compare: str | None = None) -> list[Problem]:
    return problems_about(Statement(0, wanted, tuple(models), inputs, compare))  # type: ignore[arg-type]


def falling_pairs(one: Model, inputs: Inputs, axes: list[int], values: Lanes, strictly: bool) -> int:
    """Pairs of admitted inputs, alike but for what rises, of which the result falls."""
    columns = columns_of(one, inputs)
    table, shape = grid_of(columns), [len(column) for column in columns]

    def along(side: NDArray[np.generic]) -> NDArray[np.generic]:
        return np.moveaxis(side.reshape(shape), axes, range(-len(axes), 0)).reshape(-1, len(values))

    found, fine = along(numbers(one, results(one, table))), along(counted(one, inputs, table))
    with np.errstate(invalid="ignore"):
        rises = values[:, None] < values[None, :] if strictly else values[:, None] <= values[None, :]
        pairs = (found[:, :, None] > found[:, None, :]) & rises & fine[:, :, None] & fine[:, None, :]  # type: ignore[operator]
    return int(pairs.sum())


@pytest.mark.parametrize("inputs", EVERY, ids=lambda one: str(one.model_dump(exclude_defaults=True)))
def test_which_inputs_count_and_differ(inputs: Inputs) -> None:
    for compare, pair in (("bits", [ONE, OTHER]), ("value", [ONE, OTHER]), ("bits", [OTHER, LIMITED])):
        (problem,) = asked("equal", pair, inputs, compare)
        assert differing(problem) == truth("equal", pair, inputs, compare)
    for wanted in ("sign-symmetric", "exact"):
        (problem,) = asked(wanted, [ONE], inputs)
        assert differing(problem) == truth(wanted, [ONE], inputs)


def test_an_addend_does_not_rise_from_one_zero_to_the_other() -> None:
    """It was said that c rose from +0 to -0, as a term that a frame flips."""
    (problem,), columns = asked("monotonic-addend", [ZEROS], Inputs()), columns_of(ZEROS, Inputs())
    values = values_of(ZEROS.c)[np.array(columns[-1])]
    found = [falling_pairs(ZEROS, Inputs(), [2], values, strictly) for strictly in (True, False)]
    assert differing(problem) == found[0] < found[1]


@pytest.mark.parametrize("inputs", EVERY[::2], ids=lambda one: str(one.model_dump(exclude_defaults=True)))
def test_what_falls_though_an_operand_rises(inputs: Inputs) -> None:
    if inputs.special:
        with pytest.raises(ParameterError, match="no input is admitted"):
            asked("monotonic-addend", [FALLS], inputs)
    else:
        (problem,), columns = asked("monotonic-addend", [FALLS], inputs), columns_of(FALLS, inputs)
        values = values_of(FALLS.c)[np.array(columns[-1])]
        assert differing(problem) == falling_pairs(FALLS, inputs, [2], values, True)
        assert inputs != Inputs() or differing(problem)
    if inputs.zero_terms != (0,):  # else none can rise
        (problem,), columns = asked("monotonic-product", [ONE], inputs), columns_of(ONE, inputs)
        one, two = (values_of(fmt)[np.array(column)] for fmt, column in zip((ONE.a, ONE.b), columns[:2], strict=True))
        with np.errstate(invalid="ignore"):
            values = np.multiply.outer(one, two).ravel()
        assert differing(problem) == falling_pairs(ONE, inputs, [0, 1], values, True)
        assert inputs != Inputs() or differing(problem)
    places = {problem.raised for problem in asked("monotonic", [TWO], Inputs()) if isinstance(problem, Monotonic)}
    assert places == {None, 0, 1}


@pytest.mark.parametrize("one", [TWO, TOGETHER, THREE], ids=["chain", "together", "exchange alone"])
def test_every_order_is_asked(one: Model) -> None:
    problems = asked("order-independent", [one], Inputs())
    assert any(map(differing, problems)) == bool(truth("order-independent", [one], Inputs()))


def test_a_rotation_is_asked_beside_an_exchange() -> None:
    orders = {problem.order for problem in asked("order-independent", [THREE], Inputs())}  # type: ignore[attr-defined]
    assert orders == {(1, 0, 2), (1, 2, 0)}
