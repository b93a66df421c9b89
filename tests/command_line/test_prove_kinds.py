"""Which kind of statement a command line of `prove` asks, and what it is then about."""

from __future__ import annotations

from typing import Any

import pytest

from mmaprobe.cli.commands import prove, prove_bounds, prove_models, prove_plans
from mmaprobe.cli.commands.prove_line import CommandLine
from mmaprobe.smtmodel.tables import reference
from mmaprobe.smtmodel.tables.reference import Named

UNIT, PLAN, DESIGN = "ampere/mma/m16n8k16.f32.f16.f16.f32", "plan:cublas/plain", "rtl:unit.sv,top=unit"
NOTHING: dict[str, Any] = dict.fromkeys(CommandLine.__dataclass_fields__) | {
    "wanted": "equal",
    "restrictions": "",
    "sides": (),
}


@pytest.mark.parametrize(
    ("sides", "given", "kind"),
    [
        ([UNIT, UNIT], {}, prove_models.Models),
        ([UNIT], {"wanted": "exact"}, prove_models.Models),
        ([PLAN], {"wanted": "exact"}, prove_models.Models),  # which refuses it
        ([f"{PLAN}@length=16", UNIT], {}, prove_models.Models),
        ([UNIT, DESIGN], {}, prove_models.Design),
        ([UNIT, UNIT], {"length": 32}, prove_plans.PlansEqual),
        ([UNIT, PLAN], {}, prove_plans.PlansEqual),
        ([], {"rules": "map.json"}, prove_plans.Invariant),
        ([UNIT], {"wanted": "error-bound", "length": 32}, prove_bounds.UnitBound),
        ([f"{PLAN}@length=16"], {"wanted": "error-bound"}, prove_bounds.UnitBound),
        ([PLAN], {"wanted": "error-bound"}, prove_bounds.PlanBounds),
    ],
)
def test_a_command_line_asks_one_kind(sides: list[str], given: dict[str, Any], kind: type) -> None:
    line = CommandLine(**NOTHING | {"sides": tuple(map(Named, sides))} | given)
    assert next(one for one, is_asked in prove.KINDS.items() if is_asked(line)) is kind


def test_a_reference_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    side, plan = Named(UNIT), Named(PLAN)
    model, whole = side.model, plan.plan
    for name in ("names_plan", "parse_reference", "parse_plan_path"):
        monkeypatch.setattr(reference, name, None)
    assert plan.is_plan
    assert plan.plan is whole
    assert side.model is model
