"""What stands for a machine's products, without any framework."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import mmaprobe
from mmaprobe.machines import ProductRequest, UnsupportedProductError, machine_of, product_of
from mmaprobe.queries.plans.rules import Shape
from mmaprobe.smtmodel.base.errors import MmaprobeError, ParameterError
from mmaprobe.smtmodel.plans.gemm import simulate, simulate_each
from mmaprobe.smtmodel.tables.absent import not_modelled
from mmaprobe.smtmodel.tables.gpus import GPUS
from mmaprobe.smtmodel.tables.reference import parse_plan_path, parse_reference

FMA = """plan: fma
formats: {a: f32, b: f32, c: f32, d: f32}
units: {fma: ieee/fma/f32}
steps: {d: "sum(fma, +0)"}
"""


def numbers(*shape: int, kind: Any = np.float16, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(kind)


@pytest.mark.parametrize("blocks", [0, 1, 2, 5])
@pytest.mark.parametrize("how", ["hopper/mma/m16n8k16.f32.f16.f16.f32", "plan:cublas/split-k", "plan:loop/pairwise"])
def test_blocks_are_computed_as_each_alone(how: str, blocks: int) -> None:
    model = parse_plan_path(how) if how.startswith("plan:") else parse_reference(how)
    kind = np.float32 if how == "plan:loop/pairwise" else np.float16
    for rows, k, columns in ((3, 70, 5), (64, 128, 70)):  # with NumPy, and with compiled steps
        a, b = numbers(blocks, rows, k, kind=kind), numbers(blocks, k, columns, kind=kind)
        x, y = a.view(f"u{a.itemsize}"), b.view(f"u{b.itemsize}")
        found = simulate_each(x, y, None, model)
        assert found.shape == (blocks, rows, columns)
        for one, left, right in zip(found, x, y, strict=True):
            assert (one == simulate(left, right, None, model)).all()


def test_blocks_have_addends_of_their_own() -> None:
    model = parse_reference("hopper/mma/m16n8k16.f32.f16.f16.f32")
    a, b, c = numbers(40, 40, 32), numbers(40, 32, 40), numbers(40, 40, 40, kind=np.float32)
    found = simulate_each(a.view("u2"), b.view("u2"), c.view("u4"), model)
    for n in (0, 1, 39):
        assert (found[n] == simulate(a[n].view("u2"), b[n].view("u2"), c[n].view("u4"), model)).all()
    with pytest.raises(ParameterError, match="bit patterns"):
        simulate_each(a, b, None, model)


def test_every_gpu_that_is_modelled_has_rules_or_says_why_not() -> None:
    for arch, names in GPUS.items():
        if not_modelled(f"{arch}/"):
            with pytest.raises(MmaprobeError, match="no published model"):
                machine_of(names[0])
            continue
        machine = machine_of(names[0])
        assert ("f16", "f16") in machine.rules, names
        assert {rule.known for rule in machine.rules.values()} <= {"recorded", "inferred"}
        assert all("unit: " in rule.evidence for rule in machine.rules.values())


def test_what_is_recorded_is_said_of_the_gpus_that_were() -> None:
    assert machine_of("NVIDIA H100 PCIe").rule("f16", "f16").known == "recorded"
    assert machine_of("GH200").rule("f16", "f16").known == "inferred"
    assert machine_of("A100").rule("bf16", "bf16").evidence == (
        "plan inferred from cuBLAS on Hopper; unit: recorded: A100 500 rows, A2 400 rows"
    )
    fast, promoted = (machine_of("H100").rule("e4m3", "e4m3", fast=fast).name for fast in (True, False))
    assert fast == "sum(hopper/wgmma/m64n8k32.f32.e4m3.e4m3, +0)"
    assert promoted == "sum(promote(128, hopper/wgmma/m64n8k32.f32.e4m3.e4m3, r), +0)"
    with pytest.raises(UnsupportedProductError, match=r"V100 has no rule for products of bf16 \* bf16; it has f16"):
        machine_of("V100").rule("bf16", "bf16")


def test_what_was_not_recorded_is_inferred() -> None:
    rule = machine_of("H100").rule("f16", "f16")
    assert rule.known_for("aten.addmm", (1, 8, 8, 64)) == ("recorded", rule.evidence)
    by = "by aten.mm, aten.addmm, aten._scaled_mm"
    for operator, shape, which in (
        ("aten.bmm", (3, 8, 8, 64), f"{by}, of single matrices"), ("aten.mm", (1, 1, 8, 64), "of matrices"),
        ("aten.convolution", (1, 8, 8, 64), by), ("dot_general", (1, 8, 8, 64), by),
    ):  # fmt: skip
        assert rule.known_for(operator, shape) == ("inferred", f"inferred from products {which}: {rule.evidence}")
    given = machine_of(plan="cublas/plain").rule("f16", "f16")
    assert given.known_for("aten.bmm", (3, 8, 8, 64))[0] == "given"


@pytest.mark.parametrize(("fmt", "plan"), [("f16", "cublas/plain"), ("e4m3", "deepgemm/fp8")])
def test_products_of_a_gpu_are_those_of_the_plans_that_were_recorded(fmt: str, plan: str) -> None:
    how = mmaprobe.plan(plan)
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((1, 24, 300)), rng.standard_normal((1, 300, 16))
    kind = {"f16": np.dtype(np.float16), "e4m3": np.dtype(ml_dtypes.float8_e4m3fn)}[fmt]
    a, b = a.astype(kind), b.astype(kind)
    bits = f"u{a.itemsize}"
    found, message = product_of(
        machine_of("H200"), ProductRequest(fmt, fmt, how.d.name), a.view(bits), b.view(bits), None
    )
    assert message == f"rounded once to {how.d.name}"
    assert (found[0].view("u2") == mmaprobe.matmul(a[0], b[0], plan=plan).view("u2")).all()


def test_c_is_added_before_the_last_rounding_of_a_plan() -> None:
    a, b, c = numbers(1, 30, 64), numbers(1, 64, 20, seed=1), numbers(20, seed=2)
    asked = ProductRequest("f16", "f16", "f16")
    found, message = product_of(machine_of(plan="cublas/plain"), asked, a.view("u2"), b.view("u2"), c)
    sums = mmaprobe.matmul(a[0], b[0], unit="hopper/wgmma/m64n8k16.f32.f16.f16")
    expected = (sums + c.astype(np.float32)).astype(np.float16)
    assert (found[0] == expected).all()
    assert (expected != sums.astype(np.float16) + c).any()  # rounded twice it is another one
    assert message == "alpha, beta and c: added to the sum in f32; rounded once to f16"


def short_map(folder: Path, most: int = 64, fma: str = FMA, **more: str) -> Path:
    """A map of products up to a K."""
    limit = {"kind": "number", "of": "K", "step": 0, "turn": 0, "least": 1, "most": most, "spans": []}
    rule = {"elements": "all", "plan": "fma", "limits": [limit], "confirmed": True, "agree": 9, "differ": []}
    document = {
        "device": {"name": "mine"}, "error": None, "rules": [rule], "plans": {"fma": fma}, "checked": 9, "right": 9,
        "open": [], "left_out": [], "orders": [], "products_asked": 1, "seconds": 1.0, **more,
    }  # fmt: skip
    path = folder / ("map.json" if most == 64 else f"map{most}.json")
    path.write_text(json.dumps(document))
    return path


def test_a_map_says_which_plan_computes_an_element(tmp_path: Path) -> None:
    path = short_map(tmp_path)
    machine = machine_of(path)
    assert machine.name == "map.json"
    a, b = numbers(2, 5, 40, kind=np.float32), numbers(2, 40, 7, kind=np.float32)
    found, _ = product_of(machine, ProductRequest("f32", "f32", "f32"), a.view("u4"), b.view("u4"), None)
    assert (found[1] == mmaprobe.matmul(a[1], b[1], unit="ieee/fma/f32")).all()
    assert machine.rule("f32", "f32").known == "recorded"
    long = np.zeros((1, 2, 65), "u4"), np.zeros((1, 65, 2), "u4")
    with pytest.raises(MmaprobeError, match="no rule that is relied on speaks of 4 of 4 elements"):
        product_of(machine, ProductRequest("f32", "f32", "f32"), *long, None)


def test_a_map_is_for_matrices_that_lie_as_it_was_asked(tmp_path: Path) -> None:
    other = FMA.replace("sum(fma, +0)", "sum(fma, -0)").replace("plan: fma", "plan: other")
    plain, turned = short_map(tmp_path), short_map(tmp_path, 80, other, layout="nt")
    formats = (
        ProductRequest("f32", "f32", "f32"),
        ProductRequest("f32", "f32", "f32", layout="nt"),
        ProductRequest("f32", "f32", "f32", layout="tn"),
    )
    shape = (1, 2, 2, 64)
    for maps in ([plain, turned], [turned, plain]):
        rules = [machine_of(maps).rule_of(one) for one in formats]
        assert [rule.evidence for rule in rules] == [f"identify --gemm: {one}.json" for one in ("map", "map80", "map")]
        known = [rule.known_for("aten.mm", shape, one.layout)[0] for rule, one in zip(rules, formats, strict=True)]
        assert known == ["recorded", "recorded", "inferred"]
        with_c = machine_of(maps).rule_of(formats[1], addend=True)
        assert with_c is rules[1] or with_c == rules[1]
    known_for = machine_of(turned).rule_of(formats[0]).known_for("aten.mm", shape, "nn")
    assert known_for == ("inferred", "inferred from products of layout nt, not nn: identify --gemm: map80.json")
    batched = machine_of([plain, turned], batched=plain)
    assert batched.rule_of(formats[1], (3, 1, 1, 1)).evidence == "identify --gemm: map.json"
    assert batched.rule_of(formats[1]).evidence == "identify --gemm: map80.json"


def test_a_shape_that_a_map_for_its_layout_lacks_is_inferred_from_the_other_map(tmp_path: Path) -> None:
    """A map of one shape of a model, as of its vocabulary, takes no plan from the others."""
    machine = machine_of([short_map(tmp_path, 80), short_map(tmp_path, layout="nt")])
    asked = ProductRequest("f32", "f32", "f32", layout="nt")
    found = [
        machine.rule_of(asked, shape).known_for("aten.mm", shape, "nt") for shape in ((1, 2, 2, 64), (1, 2, 2, 65))
    ]
    assert found[0] == ("recorded", "identify --gemm: map.json")
    assert found[1] == ("inferred", "inferred from products of layout nn, not nt: identify --gemm: map80.json")


def test_a_second_map_is_for_what_the_first_lacks(tmp_path: Path) -> None:
    other = FMA.replace("sum(fma, +0)", "sum(fma, -0)").replace("plan: fma", "plan: other")
    paths = short_map(tmp_path), short_map(tmp_path, 80, other)
    rule = machine_of(paths).rule("f32", "f32")
    names = [machine_of(path).rule("f32", "f32").plans_of(Shape(2, 2, 1)) for path in paths]
    assert names[0] != names[1]
    assert [rule.plans_of(Shape(2, 2, k)) for k in (1, 64, 65, 80)] == [names[0], names[0], names[1], names[1]]
    assert rule.evidence == "identify --gemm: map.json, map80.json"
    with pytest.raises(MmaprobeError, match="no rule that is relied on"):
        rule.plans_of(Shape(2, 2, 81))
    by_hand = tmp_path / "rules.yaml"
    by_hand.write_text("rules: mine\nshapes: {M: 1..9, N: 1..9, K: 1..9}\nelements:\n- {plan: plan.yaml}\n")
    (tmp_path / "plan.yaml").write_text(FMA)
    with pytest.raises(MmaprobeError, match=r"a second map for products of f32 \* f32: only maps"):
        machine_of([paths[0], by_hand])
    rounded = {"d: f32}": "d: f16}", "steps:": 'roundings: {h: "round(f16, nearest_even)"}\nsteps:'}
    half = FMA.replace("sum(fma, +0)", "h(sum(fma, +0))")
    for old, new in rounded.items():
        half = half.replace(old, new)
    half_map = short_map(tmp_path, 90, half)
    with pytest.raises(MmaprobeError, match="with results in f16"):
        machine_of([paths[0], half_map])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"machine": "H1000"}, "unknown GPU 'H1000'"),
        ({}, "machine, unit, plan: give one of the three"),
        ({"machine": "H100", "unit": "ieee/fma/f32"}, "machine, unit, plan: give one of the three"),
        ({"machine": 3}, "machine: the name of a GPU"),
        ({"machine": "H100", "convert": "up"}, "and none is given"),
        ({"machine": "H100", "f17": "ieee/fma/f32"}, "unknown format 'f17'"),
        ({"machine": "MI355X"}, "no published model"),
        ({"machine": "nowhere.json"}, "nowhere.json"),
    ],
)
def test_what_is_no_machine(given: dict[str, Any], message: str) -> None:
    with pytest.raises(MmaprobeError) as error:
        machine_of(**given)
    assert message in str(error.value)


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_a_framework_that_is_missing_is_named_with_the_command_that_installs_it(name: str) -> None:
    code = f"import sys; sys.modules[{name!r}] = None\nimport mmaprobe\nimport mmaprobe.{name}"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"pip install '.[{name}]'" in found.stderr
    assert "MissingError" in found.stderr
