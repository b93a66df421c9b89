"""Scale factors of blocks in PyTorch's own operators, and products of products: those of the machine's units."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

import mmaprobe  # noqa: E402
import mmaprobe.torch as mt  # noqa: E402
from mmaprobe.machines import UnsupportedProductError, machine_of  # noqa: E402
from mmaprobe.named import model_of  # noqa: E402
from mmaprobe.smtmodel.evaluate.numbers import to_numbers  # noqa: E402
from mmaprobe.torch.tensors import TYPE_OF, patterns  # noqa: E402
from tests.frameworks.test_torch_products import same, tensors  # noqa: E402

F = torch.nn.functional
MX = "blackwell/tcgen05mma_block_scale/m64n8k32.block32.f32.e4m3.e4m3.ue8m0"
NVFP4 = "blackwell/tcgen05mma_block_scale/m64n8k64.block16.f32.e2m1.e2m1.ue4m3"
M, N, K = 150, 12, 320
KIND, LAYOUT = F.ScalingType, F.SwizzleType


def tiled(factors: Any) -> Any:
    """Scale factors (rows x blocks) in tiles of 128 rows and 4 blocks, each of 32 lines of 16 bytes: row r of a tile is
    in line r modulo 32, at 4 * (r / 32)."""
    rows, blocks = factors.shape
    down, along = -(-rows // 128), -(-blocks // 4)
    found = torch.zeros(down * along * 512, dtype=torch.uint8)
    for r in range(rows):
        for k in range(blocks):
            tile = (r // 128) * along + k // 4
            found[tile * 512 + (r % 32) * 16 + (r % 128) // 32 * 4 + k % 4] = factors.view(torch.uint8)[r, k]
    return found.view(factors.dtype)


def mx() -> tuple[Any, ...]:
    torch.manual_seed(3)
    a, b = torch.randn(M, K).to(torch.float8_e4m3fn), torch.randn(N, K).to(torch.float8_e4m3fn)
    one, other = (torch.randint(120, 134, (rows, K // 32), dtype=torch.uint8).view(torch.float8_e8m0fnu)
                  for rows in (M, N))  # fmt: skip
    return a, b, one, other


def nvfp4() -> tuple[Any, ...]:
    torch.manual_seed(4)
    a, b = (torch.randint(0, 256, (rows, K // 2), dtype=torch.uint8) for rows in (M, N))
    one, other = (torch.rand(rows, K // 16).to(torch.float8_e4m3fn) for rows in (M, N))
    return a, b, one, other


def alone(patterns: Any) -> Any:
    """The numbers of e2m1 of packed ones, a byte each."""
    return torch.stack([patterns & 15, patterns >> 4], -1).reshape(len(patterns), -1)


@pytest.mark.parametrize("swizzled", [False, True])
def test_mx_in_the_context_is_that_of_its_unit(swizzled: bool) -> None:
    a, b, one, other = mx()
    layout = LAYOUT.SWIZZLE_32_4_4 if swizzled else LAYOUT.NO_SWIZZLE
    factors = [tiled(side) if swizzled else side for side in (one, other)]
    with mt.emulate("B200") as context:
        found = F.scaled_mm(a, b.t(), factors[0], KIND.BlockWise1x32, factors[1], KIND.BlockWise1x32, layout, layout,
                            output_dtype=torch.float32)  # fmt: skip
    expected = mt.scaled_mm(a, b.t().contiguous(), scale_a=one, scale_b=other.t().contiguous(), unit=MX)
    assert same(found, expected)
    (row,) = context.report.products
    assert (row.shape, row.plans) == ((1, M, N, K), (f"sum({MX}, +0)",))
    assert "32" in row.after


def test_the_first_operator_takes_swizzled_factors_and_a_bias() -> None:
    a, b, one, other = mx()
    bias = torch.randn(N).bfloat16()
    with mt.emulate("B200"):
        found = torch._scaled_mm(a, b.t(), tiled(one), tiled(other), bias, out_dtype=torch.bfloat16)
    sums = mt.scaled_mm(a, b.t().contiguous(), scale_a=one, scale_b=other.t().contiguous(), unit=MX)
    assert same(found, (sums + bias.float()).bfloat16())


def test_nvfp4_with_factors_of_whole_matrices_besides() -> None:
    a, b, one, other = nvfp4()
    pairs = torch.float4_e2m1fn_x2
    first, second = torch.tensor(0.75), torch.tensor(1.5)
    kinds = [KIND.BlockWise1x16, KIND.TensorWise]
    layouts = [LAYOUT.SWIZZLE_32_4_4, LAYOUT.NO_SWIZZLE]
    with mt.emulate("B200") as context:
        found = F.scaled_mm(a.view(pairs), b.view(pairs).t(), [tiled(one), first], kinds, [tiled(other), second], kinds,
                            layouts, layouts, output_dtype=torch.float32)  # fmt: skip
    sums = mt.scaled_mm(alone(a), alone(b).t().contiguous(), scale_a=one, scale_b=other.t().contiguous(), unit=NVFP4)
    assert same(found, sums * torch.tensor(0.75 * 1.5))
    assert context.report.products[0].shape == (1, M, N, K)


def test_a_unit_with_scale_factors_may_be_named() -> None:
    a, b, one, other = mx()
    with mt.emulate(unit=MX):
        found = torch._scaled_mm(a, b.t(), tiled(one), tiled(other), out_dtype=torch.float32)
    expected = mt.scaled_mm(a, b.t().contiguous(), scale_a=one, scale_b=other.t().contiguous(), unit=MX)
    assert same(found, expected)


def test_factors_without_a_unit_are_refused_by_name() -> None:
    a, b, one, other = mx()
    with mt.emulate("H100"), pytest.raises(UnsupportedProductError, match=r"H100 has no unit for e4m3 .* ue8m0"):
        torch._scaled_mm(a, b.t(), tiled(one), tiled(other), out_dtype=torch.float32)
    rough = torch.ones(M, 3)
    with mt.emulate("B200"), pytest.raises(UnsupportedProductError, match="128 products"):
        F.scaled_mm(a, b.t(), rough, KIND.BlockWise1x128, torch.ones(N, 3), KIND.BlockWise1x128,
                    output_dtype=torch.bfloat16)  # fmt: skip
    with mt.emulate("B200"), pytest.raises(UnsupportedProductError, match=r"scale factors; .* are wanted"):
        torch._scaled_mm(a, b.t(), one, other, out_dtype=torch.float32)


def test_machines_part_in_products_with_factors_of_blocks() -> None:
    a, b, one, other = mx()
    sides = (a, b.t(), tiled(one), tiled(other))
    model = functools.partial(torch._scaled_mm, out_dtype=torch.float32)
    assert not mt.diverge(model, sides, "B200", "B200").document.differ
    rough = machine_of(unit=f"{MX}@fraction_bits=12")
    document = mt.diverge(model, sides, "B200", rough).document
    (row,), why = document.products, document.explained
    assert row.own == row.carried == document.differ > 0
    assert row.bound is None
    assert why is not None
    assert 1 < len(why.terms) < 16
    assert why.results[0] != why.results[1]
    x, y = (torch.zeros_like(side) for side in (a, b))
    _, i, j = why.element
    places = [term.place for term in why.terms]
    x[i, places], y[j, places] = a[i, places], b[j, places]
    results = []
    for machine in ("B200", rough):
        with mt.emulate(machine):
            results.append(str(model(x, y.t(), *sides[2:])[i, j].item()))
    assert [float(result) for result in why.results] == pytest.approx([float(own) for own in results], rel=1e-6)


EACH = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
BLOCKED = [f"m64n8k32.block32.f32.{a}.{b}.ue8m0" for a in EACH for b in EACH] + [
    f"m64n8k64.{block}.f32.e2m1.e2m1.{scale}"
    for block, scale in (("block32", "ue8m0"), ("block16", "ue4m3"), ("block16", "ue8m0"))
]


@pytest.mark.slow
@pytest.mark.parametrize("name", BLOCKED)
def test_a_million_outputs_with_scale_factors(name: str) -> None:
    """Of all patterns of factors, NaN and infinities among them; in PyTorch's operator where it has the formats."""
    unit = f"blackwell/tcgen05mma_block_scale/{name}"
    model = model_of("unit", unit)
    rng, block = np.random.default_rng(5), model.scale_block
    assert model.scale is not None
    size, k = 1000, 64

    def patterns_of(fmt: Any, shape: tuple[int, int]) -> Any:
        return rng.integers(0, 1 << (fmt.width if fmt.signed else fmt.field_width), shape).astype(np.uint8)

    sides = {"a": (model.a, (size, k)), "b": (model.b, (k, size)), "scale_a": (model.scale, (size, k // block)),
             "scale_b": (model.scale, (k // block, size))}  # fmt: skip
    given = {side: patterns_of(fmt, shape) for side, (fmt, shape) in sides.items()}
    if model.scale.name == "ue8m0":  # near to one, so that not all sums are infinite
        for side in ("scale_a", "scale_b"):
            given[side] = np.where(rng.random(given[side].shape) < 0.9, 120 + given[side] % 16, given[side])
    numbers = {side: to_numbers(given[side], fmt) for side, (fmt, _) in sides.items()}
    expected = mmaprobe.matmul(numbers["a"], numbers["b"], unit=unit, scale_a=numbers["scale_a"],
                               scale_b=numbers["scale_b"]).view(np.uint32)  # fmt: skip
    assert len(np.unique(expected)) > 1000

    def tensor(side: str) -> Any:
        kind = TYPE_OF.get(sides[side][0].name, TYPE_OF["e4m3"] if sides[side][0].name == "ue4m3" else torch.uint8)
        return torch.from_numpy(given[side]).view(kind)

    found = mt.scaled_mm(*map(tensor, "ab"), scale_a=tensor("scale_a"), scale_b=tensor("scale_b"), unit=unit)
    assert (patterns(found).view(np.uint32) == expected).all()
    if {model.a.name, model.b.name} <= {"e4m3", "e5m2"} and not (model.a.name == model.b.name == "e5m2"):
        rows, columns = tensor("scale_a"), tensor("scale_b").T.contiguous()
        with mt.emulate(unit=unit):
            native = torch._scaled_mm(tensor("a"), tensor("b").T.contiguous().T, tiled(rows), tiled(columns),
                                      out_dtype=torch.float32)  # fmt: skip
        assert (patterns(native).view(np.uint32) == expected).all()


# -- operators of several products


def test_addbmm_adds_one_product_after_another() -> None:
    c, a, b = tensors("f16", (9, 5), (3, 9, 40), (3, 40, 5))
    with mt.emulate("H100") as context:
        found = torch.addbmm(c, a, b, beta=0.5)
        expected = torch.addmm(c, a[0], b[0], beta=0.5)
        for x, y in zip(a[1:], b[1:], strict=True):
            expected = torch.addmm(expected, x, y)
    assert same(found, expected)
    assert context.report.products[0].operator == "aten.addbmm"


@pytest.mark.parametrize("ends", [None, [3, 3, 8]])
def test_grouped_products(ends: list[int] | None) -> None:
    b = tensors("bf16", (3, 32, 16))[0]
    if ends is None:
        (a,) = tensors("bf16", (3, 4, 32))
        with mt.emulate("H100"):
            found, expected = torch._grouped_mm(a, b), torch.bmm(a, b)
    else:
        (a,) = tensors("bf16", (8, 32))
        with mt.emulate("H100"):
            found = torch._grouped_mm(a, b, torch.tensor(ends, dtype=torch.int32))
            expected = torch.cat([a[:3] @ b[0], a[3:] @ b[2]])
    assert same(found, expected)


def test_bilinear_and_its_gradients() -> None:
    x, y, w, bias = (side.requires_grad_() for side in tensors("f64", (6, 4), (6, 5), (3, 4, 5), (3,)))
    native = torch.autograd.grad(F.bilinear(x, y, w, bias).square().sum(), (x, y, w, bias))
    with mt.emulate("H100") as context:
        found = torch.autograd.grad(F.bilinear(x, y, w, bias).square().sum(), (x, y, w, bias))
    assert all(torch.allclose(one, other, rtol=1e-12) for one, other in zip(found, native, strict=True))
    assert {row.operator for row in context.report.products} == {"aten._trilinear"}


@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_sparse_tensors_are_refused_by_name() -> None:
    a, b = tensors("f32", (8, 8), (8, 4))
    sparse = a.to_sparse_csr()
    with mt.emulate("H100"), pytest.raises(UnsupportedProductError, match="sparse"):
        sparse @ b
