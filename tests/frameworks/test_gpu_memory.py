"""Tensors in a GPU's memory are multiplied by kernels, whose text runs on the processor here; all results are those of
the processor's own engine."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from mmaprobe.machines import Machine, ProductRequest, Rule, machine_of, product_of
from mmaprobe.queries.plans.planmap import PlanMap, Reach, Within
from mmaprobe.queries.plans.rules import Feature
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.tables.reference import parse_reference
from tests.cuda.processor import Processor, product_by_text
from tests.evaluation.test_compiled import patterns

pytestmark = pytest.mark.kernels


def test_products_of_frameworks_by_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans by format, converted factors, an addend, alpha and beta, a map's rules, scale factors of blocks."""
    gpu, rng = product_by_text(monkeypatch), np.random.default_rng(3)
    for name, asked, more in (
        ("H100", ProductRequest("f16", "f16", "f16"), {}),
        ("H100", ProductRequest("f16", "f16", "f16", alpha=0.5, beta=2.0), {}),
        (
            "H100",
            ProductRequest("f32", "f32", "f32"),
            {"f32": "ampere/mma/m16n8k8.f32.tf32.tf32.f32", "convert": "rne"},
        ),
        ("B200", ProductRequest("e2m1", "e2m1", "f32", scale=("ue4m3", 16)), {}),
    ):
        machine = machine_of(name, **more)
        fmt = machine.rule_of(asked).plan.a if asked.scale else FORMATS[asked.a]
        a, b = (patterns(rng, fmt, shape, False).astype(kind_of(fmt))
                for shape in ((2, 5, 64), (2, 64, 7)))  # fmt: skip
        c = rng.standard_normal((5, 7)).astype(np.float16) if asked.beta == 2 else None
        scales = None
        if asked.scale:
            a, b = a[:1], b[:1]
            scales = {"scale_a": rng.integers(40, 70, (1, 5, 4), dtype=np.uint8),
                      "scale_b": rng.integers(40, 70, (1, 4, 7), dtype=np.uint8)}  # fmt: skip
        found, expected = (product_of(machine, asked, a, b, c, scales, by) for by in (gpu.each, None))
        assert found[1] == expected[1]
        assert np.array_equal(found[0].view(np.uint8), expected[0].view(np.uint8))
        assert len(np.unique(found[0])) > 20


def test_jax_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    jax: Any = pytest.importorskip("jax", reason="JAX is not installed")
    import mmaprobe.jax as mj

    a, b = np.random.default_rng(1).standard_normal((2, 20, 20)).astype(np.float16)
    expected = mj.dot_general(a, b, (((1,), (0,)), ((), ())), machine="H100")
    gpu, calls = product_by_text(monkeypatch), []
    monkeypatch.setattr(mj, "product_here", lambda device: calls.append(device) or gpu)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    found = mj.dot_general(a, b, (((1,), (0,)), ((), ())), machine="H100")
    assert calls
    assert np.array_equal(np.asarray(found), np.asarray(expected))


def on_gpu(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Tensors are in the memory of a GPU that is this processor; the devices that were asked for. No result is moved
    from an array of NumPy to that memory."""
    import torch

    from mmaprobe.torch import products, tensors

    gpu, devices = product_by_text(monkeypatch), []
    monkeypatch.setattr(products, "_gpu", lambda device: devices.append(device) or gpu)
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: type("Stream", (), {"synchronize": lambda self: None})())
    for module in (products, tensors):
        monkeypatch.setattr(module, "tensor_of", lambda *_: pytest.fail("a result is moved to the GPU"))
    return devices


@pytest.mark.parametrize(("fmt", "how", "scalars"), [
    ("f32", {"machine": "H100"}, None), ("f32", {"machine": "H100"}, (0.3, 1.7)), ("bf16", {"machine": "H100"}, (1, 1)),
    ("f16", {"machine": "MI300X"}, (0.3, 1)), ("f16", {"unit": "ampere/mma/m16n8k8.f32.f16.f16.f32"}, (1, 1)),
    ("f64", {"machine": "H100"}, (1, 0.5)), ("f16", {"plan": "cublas/plain"}, (1, 1)),
])  # fmt: skip
def test_results_stay_in_a_gpus_memory(
    fmt: str, how: dict[str, Any], scalars: tuple[float, float] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are those of the processor, c added and rounded; a sum that is neither is not copied at all."""
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
    from mmaprobe.torch.products import product
    from mmaprobe.torch.tensors import TYPE_OF

    torch.manual_seed(1)
    a, b, c = (torch.randn(shape).to(TYPE_OF[fmt]) for shape in ((2, 5, 70), (2, 70, 6), (6,)))
    c[0] = -(a[0, 0].double() @ b[0, :, 0].double()) * (scalars or (1,))[0]  # cancels
    alpha, beta = scalars or (1, 1)
    given = (machine_of(**how), ProductRequest(fmt, fmt, fmt, alpha, beta), a, b, c if scalars else None)
    expected, message = product(*given)
    assert len(on_gpu(monkeypatch)) == 0
    made: list[Any] = []
    launch = Processor.launch
    monkeypatch.setattr(Processor, "launch", lambda self, *more: (made.append(more[3]), launch(self, *more))[1])
    found, same = product(*given)
    assert same == message
    assert torch.equal(found, expected)
    assert found.isfinite().all()
    assert len(found.unique()) > 20
    assert {type(one) for one in made} == {torch.Tensor}
    assert scalars or made[0].data_ptr() == found.data_ptr()


def test_a_map_of_two_plans_in_a_gpus_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
    from mmaprobe.torch.products import product

    columns = Within(Feature("place", "columns"), ((0, 2),))
    rules = tuple(Reach(limits, Plan.chained(parse_reference(unit)))
                  for limits, unit in (((columns,), "ieee/fma/f32"), ((), "ieee/muladd/f32")))  # fmt: skip
    machine = Machine("mine", {("f32", "f32"): Rule(PlanMap("mine", rules), "given", "by hand")})
    torch.manual_seed(1)
    given = (machine, ProductRequest("f32", "f32", "f32"), torch.randn(2, 5, 70), torch.randn(2, 70, 6))
    expected = product(*given)[0]
    on_gpu(monkeypatch)
    assert torch.equal(product(*given)[0], expected)
    assert not torch.equal(expected, product(machine_of(unit="ieee/fma/f32"), *given[1:])[0])


def test_tensors_in_a_gpus_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strides, negated views and batches, forward and backward."""
    torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")
    from mmaprobe.torch import emulate

    torch.manual_seed(0)
    x, w = torch.randn(3, 6, 40).half(), (torch.randn(9, 40) / 8).half().requires_grad_()

    def step() -> list[Any]:
        y = torch.nn.functional.linear(x, w, torch.ones(9).half())
        z = torch.bmm(y.mT, -y)
        return [y, z, *torch.autograd.grad(z.float().square().sum(), w)]

    with emulate("H100"):
        expected = step()
    devices = on_gpu(monkeypatch)
    with emulate("H100") as context:
        found = step()
    assert len(devices) == sum(row.count for row in context.report.products) > 3
    for one, other in zip(found, expected, strict=True):
        assert one.isfinite().all()
        assert torch.equal(one, other)
