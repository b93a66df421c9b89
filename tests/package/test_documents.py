"""What Python returns is what the command prints."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import mmaprobe
from mmaprobe.cli.main import main
from mmaprobe.documents.parts import plain

TURING, AMPERE = "turing/mma/m16n8k8.f32.f16.f16.f32", "ampere/mma/m16n8k8.f32.f16.f16.f32"
VOLTA, FMA = "volta/mma/m8n8k4.f32.f16.f16.f32", "ieee/fma/f32"
VECTOR = '{"a": ["4000"], "b": ["3c00"], "c": "3f800000"}'
ONE = np.array([1.0], np.float16)
#: a command, what is returned, and under which key the command has it in a list
SAME: dict[str, tuple[list[str], Callable[[], Any], str | None]] = {
    "units": (["prove", TURING, AMPERE], lambda: mmaprobe.prove(TURING, AMPERE), None),
    "a property": (
        ["prove", FMA, "--property", "order-independent"],
        lambda: mmaprobe.prove(FMA, property="order-independent"),
        None,
    ),
    "plans": (
        ["prove", "plan:loop/fma", "plan:loop/fma", "--length", "3"],
        lambda: mmaprobe.prove("plan:loop/fma", "plan:loop/fma", length=3),
        None,
    ),
    "a bound": (
        ["prove", FMA, "--property", "error-bound", "--length", "3"],
        lambda: mmaprobe.bound(FMA, length=3),
        None,
    ),
    "a difference": (["distinguish", VOLTA, TURING], lambda: mmaprobe.distinguish(VOLTA, TURING), "questions"),
    "an order": (
        ["order", "--device", f"model:{VOLTA}"],
        lambda: mmaprobe.order(f"model:{VOLTA}", "f16,f16,f32,f32", 4),
        None,
    ),
    "an evaluation": (
        ["explain", VOLTA, VECTOR],
        lambda: mmaprobe.explain(VOLTA, 2 * ONE, ONE, np.float32(1)),
        None,
    ),
}


def timeless(value: Any) -> Any:
    """A document without times, and without the command line that made it."""
    if isinstance(value, dict):
        return {key: timeless(one) for key, one in value.items() if key not in ("seconds", "produced")}
    return list(map(timeless, value)) if isinstance(value, list) else value


@pytest.mark.parametrize("what", SAME)
def test_python_returns_what_the_command_prints(what: str) -> None:
    command, call, key = SAME[what]
    printed = json.loads(CliRunner().invoke(main, [*command, "--json"]).stdout)
    if key is not None:
        [printed] = printed[key]
    returned = json.loads(json.dumps(call().document, default=plain))
    for name in ("left", "right"):  # of plans: names as they were given, with or without plan:
        if isinstance(printed.get(name), str):
            printed[name] = printed[name].removeprefix("plan:")
    assert timeless(returned) == timeless(printed)
