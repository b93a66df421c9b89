"""A transformer on this processor is what the plan of this processor's library makes of it, bit for bit.

tests/data/pytorch_cpu_*.json.gz are maps that `identify --gemm --json --length 256 --shape 256,256` found of PyTorch
2.13.0, one thread, on an AMD EPYC with AVX-512 and its bf16: of `matmul` and `addmm` of examples/torch_device.py; and
pytorch_cpu_wide_*.json.gz those of `--length 3072 --shape 64..3072,64..3072 --multiple 64`, which are asked after them.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

import mmaprobe.torch as mt  # noqa: E402
from mmaprobe.machines import machine_of  # noqa: E402
from mmaprobe.multiplied import Multiplied  # noqa: E402
from mmaprobe.torch.emulation import Emulation  # noqa: E402
from mmaprobe.torch.tensors import TYPE_OF, patterns, tensor_of  # noqa: E402
from tests.frameworks.test_torch_products import same, tensors  # noqa: E402
from tests.places import ROOT  # noqa: E402

PLAN = """plan: a-chain
formats: {a: f32, b: f32, c: f32, d: f32}
units: {fma: ieee/fma/f32}
steps: {d: "sum(fma, -0)"}
"""
DEVICE = """import sys
import torch
sys.path.insert(0, "{folder}")
from torch_device import matmul
torch.set_num_threads(1)
"""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    flag = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
    torch.set_num_threads(1)
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)  # attention multiplies in its inputs' type
    yield
    torch.set_num_threads(before)
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(flag)


def step(layers: Any, x: Any) -> list[Any]:
    """The result and all gradients, with attention in its plain form."""
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        found = layers(x)
        return [found, *torch.autograd.grad(found.square().sum(), list(layers.parameters()))]


def transformer(width: int = 64) -> Any:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def products(maps: list[Path], fmt: str, width: int, rows: int) -> tuple[list[Multiplied], int]:
    """The products of a transformer, forward and backward, as maps have them, and how many these do not know; the
    result and all gradients are those of PyTorch itself."""
    (x,) = tensors(fmt, (2, rows // 2, width))
    seen: list[Multiplied] = []
    layers = transformer(width).to(TYPE_OF[fmt])
    native = step(layers, x)
    with Emulation(machine_of(maps), "native", listener=seen.append) as context:
        found = step(layers, x)
    assert all(same(one, other) for one, other in zip(found, native, strict=True))
    return seen, sum(context.report.unknown.values())


def differing(seen: list[Multiplied], fmt: str) -> list[Any]:
    """The products of which PyTorch's own of the same factors, which lie alike in memory, have another bit."""
    differ = []
    for one in seen:
        sides = [tensor_of(side, TYPE_OF[fmt]) for side in (one.a, one.b)]
        a, b = (
            side.mT.contiguous().mT if lies == "t" else side for side, lies in zip(sides, one.asked.layout, strict=True)
        )
        if one.operator == "aten.addmm":
            native = torch.addmm(tensor_of(one.c, TYPE_OF[fmt]), a[0], b[0])[None]
        else:
            native = torch.bmm(a, b) if one.operator == "aten.bmm" else torch.mm(a[0], b[0])[None]
        differ += [] if (patterns(native) == one.d).all() else [(one.operator, one.shape)]
    return differ


@pytest.mark.parametrize(("width", "rows"), [(32, 40), (512, 128), *(pytest.param(*size, marks=pytest.mark.slow) for
    size in ((48, 96), (64, 32), (64, 64), (64, 256), (128, 64), (128, 256), (256, 128), (768, 128)))])  # fmt: skip
@pytest.mark.parametrize(("fmt", "names"), [
    ("f32", ("f32", "f32_addmm", "wide_f32", "wide_f32_addmm")), ("bf16", ("bf16", "wide_bf16"))])  # fmt: skip
def test_every_product_by_the_maps_of_such_a_processor(
    fmt: str, names: tuple[str, ...], width: int, rows: int, tmp_path: Path
) -> None:
    """None is without a plan, and no product has another bit."""
    maps = [tmp_path / f"{name}.json" for name in names]
    for path in maps:
        path.write_bytes(gzip.decompress((ROOT / "tests" / "data" / f"pytorch_cpu_{path.name}.gz").read_bytes()))
    for m, k, n in ((rows, width, 3 * width), (rows, 4 * width, width)):
        a, b = tensors(fmt, (m, k), (k, n))
        own = machine_of(maps).rules[fmt, fmt].product(patterns(a)[None], patterns(b)[None])
        if not np.array_equal(patterns(a @ b), own[0]):  # without what emulates PyTorch
            pytest.skip("this processor's library runs other plans than those of the maps")
    seen, unknown = products(maps, fmt, width, rows)
    assert (len(seen), unknown) == (35, 0)
    assert not differing(seen, fmt)


def test_forward_and_backward_in_f32_by_the_plan_of_this_processor(tmp_path: Path) -> None:
    plan = tmp_path / "chain.yaml"
    plan.write_text(PLAN)
    for m, k, n in ((32, 64, 192), (16, 16, 16), (64, 32, 128)):
        a, b = tensors("f32", (m, k), (k, n))
        if not same(a @ b, mt.matmul(a, b, plan=plan)):
            pytest.skip("this processor's library runs another plan than one chain of fused multiply-adds")
    layers = transformer()
    (x,) = tensors("f32", (2, 16, 64))
    native = step(layers, x)
    with mt.emulate(plan=plan) as context:
        found = step(layers, x)
    assert sum(row.count for row in context.report.products) == 35
    assert all(same(one, other) for one, other in zip(found, native, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("fmt", ["f32", "bf16"])
def test_a_map_that_identify_found_is_this_processors_products(fmt: str, tmp_path: Path) -> None:
    """It knows all products of a model whose sides are multiples of 16, and they have the same bits."""
    device = tmp_path / "device.py"
    device.write_text(DEVICE.format(folder=ROOT / "examples"))
    program = [str(Path(sys.executable).with_name("mmaprobe")), "identify", "--gemm", "--json", "--timeout", "600",
               "--device", f"python:{device}:matmul", "--formats", ",".join([fmt] * 3), "--length", "192",
               "--shape", "16..192,16..192", "--multiple", "16"]  # fmt: skip
    found = subprocess.run(program, capture_output=True, text=True, check=False)
    assert found.returncode == 0
    path = tmp_path / "map.json"
    path.write_text(found.stdout)
    seen, unknown = products([path], fmt, 64, 64)
    assert not differing(seen, fmt)
    assert (len(seen), unknown) == (35, 0)
