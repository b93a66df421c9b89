"""A plan over matrices, as a unit at one K, as terms and as steps: all give the same."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
from numpy.typing import NDArray

from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.model import Model, evaluate
from mmaprobe.smtmodel.plans.dot import RESULT, Dot
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.lowering import unit_of_plan
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.planfile import parse_plan
from mmaprobe.smtmodel.plans.plantext import plan_text
from mmaprobe.smtmodel.units.unitfile import parse_unit, unit_text
from tests.oracles.termeval import evaluate_term

Patterns = NDArray[np.uint64]


def agree_on_every_input(plan: Plan, oracle: Callable[[list[int], list[int], int], float]) -> None:
    """All inputs of two products of e2m1, with matrices and, every fourth row, as a unit."""
    rows = np.array(list(product(range(16), repeat=2)), dtype=np.uint8)
    zeros = np.zeros((256, 256), dtype=np.uint32)
    found = simulate(rows, np.ascontiguousarray(rows.T), zeros, plan, engine="numpy")
    wanted = [[oracle(x, y, 0) for y in rows.tolist()] for x in rows.tolist()]
    assert np.array_equal(found.view(np.float32), np.array(wanted, dtype=np.float32))
    assert np.array_equal(simulate(rows, np.ascontiguousarray(rows.T), zeros, plan, engine="compiled"), found)
    model = Model("tiny", unit_of_plan(plan, 2))
    a, b = np.repeat(rows[::4], 256, 0).astype(np.uint64), np.tile(rows, (64, 1)).astype(np.uint64)
    assert np.array_equal(evaluate_batch(model, a, b, zeros[::4].ravel().astype(np.uint64)), found[::4].ravel())


def differ(one: Plan, other: Plan) -> bool:
    """Whether two plans over e2m1 differ on a part of the inputs of two products."""
    rows = np.array(list(product(range(0, 16, 3), repeat=2)), dtype=np.uint8)
    zeros = np.zeros((len(rows), len(rows)), dtype=np.uint32)
    left, right = (simulate(rows, rows.T.copy(), zeros, plan, engine="numpy") for plan in (one, other))
    return not np.array_equal(left, right)


def agree_in_terms(plan: Plan, model_of: Callable[[str], Model], a: Patterns, b: Patterns, c: Patterns) -> Patterns:
    """The results of rows; the symbolic carrier and the steps of one sum give them too; unit and plan read back."""
    length = a.shape[1]
    model = Model("tiny", unit_of_plan(plan, length))
    assert parse_unit(unit_text(model.unit), "unit.yaml") == model.unit
    assert parse_plan(plan_text(plan), "plan.yaml", model_of) == plan
    wanted = evaluate_batch(model, a, b, c)
    carrier = TermCarrier()
    sides = [
        [carrier.symbol(f"{name}{k}", fmt.width) for k in range(length)] for name, fmt in (("a", plan.a), ("b", plan.b))
    ]
    z = carrier.symbol("c", 32)
    values = {f"{name}{k}": own[:, k] for name, own in (("a", a), ("b", b)) for k in range(length)} | {"c": c}
    for bits in (evaluate(model, *sides, z, traced=False).d, Dot(plan, *sides, z).all_steps()[RESULT]):
        assert [int(x) for x in evaluate_term(bits.node, values)] == wanted.tolist()
    return wanted
