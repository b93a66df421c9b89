"""Products of tensors are those of arrays, and their gradients are products too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

import mmaprobe  # noqa: E402
import mmaprobe.torch as mt  # noqa: E402
from mmaprobe.machines import UnsupportedProductError, scaled  # noqa: E402
from mmaprobe.runner.calling import laid  # noqa: E402
from mmaprobe.smtmodel.units.unitfile import unit_text  # noqa: E402
from mmaprobe.torch.tensors import TYPE_OF, layout_of, numbers, patterns  # noqa: E402

HOPPER = "hopper/wgmma/m64n8k16.f32.f16.f16"
PLAIN = "ieee/fma/f32"
MXFP8 = "blackwell/tcgen05mma_block_scale/m64n8k32.block32.f32.e4m3.e4m3.ue8m0"
UNITS = {
    "f16": HOPPER,
    "bf16": "hopper/wgmma/m64n8k16.f32.bf16.bf16",
    "e4m3": "hopper/wgmma/m64n8k32.f32.e4m3.e4m3",
    "e5m2": "hopper/wgmma/m64n8k32.f32.e5m2.e5m2",
    "e4m3fnuz": "cdna3/mfma/f32_16x16x32_fp8_fp8",
    "f32": PLAIN,
    "f64": "ieee/fma/f64",
}


def tensors(fmt: str, *shapes: tuple[int, ...], seed: int = 0) -> list[Any]:
    made = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=made).to(TYPE_OF[fmt]) for shape in shapes]


def same(one: Any, other: Any) -> bool:
    return one.dtype == other.dtype and one.shape == other.shape and bool((patterns(one) == patterns(other)).all())


@pytest.mark.parametrize("fmt", UNITS)
def test_a_product_of_tensors_is_that_of_their_arrays(fmt: str) -> None:
    a, b = tensors(fmt, (33, 70), (70, 21))
    c = torch.randn(33, 21, dtype=torch.float64 if fmt == "f64" else torch.float32)
    for addend in (None, c):
        found = mt.matmul(a, b, addend, unit=UNITS[fmt])
        expected = mmaprobe.matmul(numbers(a), numbers(b), None if addend is None else c.numpy(), unit=UNITS[fmt])
        assert (patterns(found) == expected.view(f"u{expected.itemsize}")).all()


@pytest.mark.slow
@pytest.mark.parametrize("fmt", UNITS)
def test_a_million_outputs(fmt: str) -> None:
    a, b = tensors(fmt, (1024, 48), (48, 1024))
    expected = mmaprobe.matmul(numbers(a), numbers(b), unit=UNITS[fmt])
    assert (patterns(mt.matmul(a, b, unit=UNITS[fmt])) == expected.view(f"u{expected.itemsize}")).all()


def test_the_memory_is_the_tensors_own() -> None:
    (a,) = tensors("bf16", (4, 6))
    assert np.shares_memory(patterns(a.mT), a.view(torch.int16).numpy())


SHAPES = [((5,), (5,)), ((4, 5), (5,)), ((5,), (5, 3)), ((2, 4, 5), (5, 3)), ((2, 4, 5), (2, 5, 3)),
          ((3, 1, 4, 5), (2, 5, 3)), ((0, 5), (5, 3)), ((4, 0), (0, 3)), ((2, 4, 5), (5,))]  # fmt: skip


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_shapes_are_those_of_torch(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = tensors("f64", left, right)
    expected = torch.matmul(a, b)
    found = mt.matmul(a, b, unit="ieee/fma/f64")
    assert found.shape == expected.shape
    assert torch.allclose(found, expected)
    c = torch.ones(expected.shape[-1:], dtype=torch.float64)
    assert torch.allclose(mt.matmul(a, b, c, unit="ieee/fma/f64"), expected + c)


def test_views_transposes_and_strides() -> None:
    a, b = tensors("f16", (80, 40), (90, 80))
    x, y = a.T[::2, 3:77], b.T[3:77, 10::3]
    assert same(mt.matmul(x, y, unit=HOPPER), mt.matmul(x.contiguous(), y.contiguous(), unit=HOPPER))


def test_gradients_are_those_of_the_products_written_out() -> None:
    a, b, c = (x.requires_grad_() for x in tensors("f16", (12, 40), (40, 9), (12, 9)))
    grad = torch.randn(12, 9)
    mt.matmul(a, b, c, unit=HOPPER).backward(grad)
    half = grad.half()
    assert same(a.grad, mt.matmul(half, b.detach().T, unit=HOPPER).half())
    assert same(b.grad, mt.matmul(a.detach().T, half, unit=HOPPER).half())
    assert same(c.grad, half)
    x = a.detach().requires_grad_()
    mt.matmul(x, b, unit=HOPPER, backward="native").backward(grad)
    assert torch.allclose(x.grad.float(), (half.float() @ b.detach().float().T), rtol=1e-2, atol=1e-2)


def test_the_operator_keeps_the_rules_of_pytorch() -> None:
    a, b = (x.requires_grad_() for x in tensors("f32", (2, 3, 4), (2, 4, 5)))
    mt.matmul(a, b, unit=PLAIN)  # names the machine
    torch.library.opcheck(torch.ops.mmaprobe.product, (a, b, None, PLAIN, "f32", "emulated"))


def test_compiled_mapped_and_without_gradients() -> None:
    a, b = tensors("f32", (6, 4, 5), (5, 3))

    def function(x: Any, y: Any) -> Any:
        return mt.linear(x, y.mT, unit=PLAIN).relu()

    expected = function(a, b)
    assert same(torch.compile(function, backend="aot_eager", fullgraph=True)(a, b), expected)
    assert same(torch.vmap(function, (0, None))(a, b), expected)
    with torch.inference_mode():
        assert same(function(a, b), expected)


def test_scale_factors_of_blocks() -> None:
    unit = MXFP8
    a, b = tensors("e4m3", (5, 64), (64, 7))
    rows = torch.full((5, 2), 2.0).to(torch.float8_e8m0fnu)
    columns = torch.full((2, 7), 0.5).to(torch.float8_e8m0fnu)
    found = mt.scaled_mm(a, b, scale_a=rows, scale_b=columns, unit=unit)
    given = {"scale_a": numbers(rows), "scale_b": numbers(columns)}
    assert (found.numpy() == mmaprobe.matmul(numbers(a), numbers(b), unit=unit, **given)).all()


def test_how_matrices_lie_in_memory() -> None:
    """As the example's function gets them from `identify --gemm --layout`, those of one row or column too."""
    for rows, columns in ((3, 4), (1, 4), (4, 1)):
        for a, letter in (("C", "n"), ("F", "t")):
            side = torch.from_numpy(laid(np.zeros((rows, columns), np.float32), a))
            other = torch.from_numpy(laid(np.zeros((columns, rows), np.float32), a))
            assert layout_of(side, other) == 2 * letter
            assert layout_of(side[None].expand(5, rows, columns), other) == 2 * letter
    x, w = torch.zeros(5, 8), torch.zeros(6, 8)
    assert layout_of(x, w.mT) == "nt"
    assert layout_of(x[:, ::2], w.mT[::2]) == "nn"  # copied
    assert layout_of(x[:, :4].mT, x[:, 4:]) == "tn"


@pytest.mark.parametrize("fmt", ["f32", "f64"])
def test_alpha_and_beta_are_one_fused_multiply_add(fmt: str) -> None:
    rng, kind = np.random.default_rng(1), {"f32": np.float32, "f64": np.float64}[fmt]
    sums, c = (rng.standard_normal(200).astype(kind) for _ in range(2))
    c[:100] = -(sums[:100] * kind(1.7)) * kind(1 + 2**-12)
    found = scaled(sums, c, 1.7, 1.0)
    factor = np.full(1, kind(1.7))
    expected = [mmaprobe.dot(s[None], factor, z, unit=f"ieee/fma/{fmt}") for s, z in zip(sums, c, strict=True)]
    assert (found == np.array(expected)).all()
    assert (found != sums * factor + c).any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a, b: mt.matmul(a, b, machine="H1000"), "unknown GPU 'H1000'; did you mean 'H100'"),
        (lambda a, b: mt.matmul(a, b), "machine, unit, plan: give one of the three"),
        (lambda a, b: mt.matmul(a, b.T, machine="H100"), "do not fit each other"),
        (lambda a, b: mt.matmul(a, b, machine="H100", dtype=torch.int32), "no result is rounded to torch.int32"),
        (lambda a, b: mt.matmul(a.int(), b, machine="H100"), "in no format that a unit takes"),
        (lambda a, b: mt.matmul(a, b, (a @ b).int(), machine="H100"), "c: numbers of torch.int32 are in no format"),
        (lambda a, b: mt.scaled_mm(a, b, scale_a=a, scale_b=b, unit=MXFP8, c=a.int()), "c: numbers of torch.int32"),
        (lambda a, b: mt.matmul(a.numpy(), b, machine="H100"), "a: a tensor is wanted, not ndarray"),
        (lambda a, b: mt.matmul(a, b, machine="H100", backward="none"), "unknown backward 'none'"),
        (lambda a, b: mt.matmul(a, b, unit=PLAIN.replace("f32", "f64")), "has no rule for products of f32 * f32"),
        (lambda a, b: mt.matmul(a, b, unit=HOPPER), "has no rule for products of f32 * f32; it has f16 * f16"),
        (lambda a, b: mt.scaled_mm(a, b, scale_a=a, scale_b=b, unit=PLAIN), "takes no scale factors"),
    ],
)
def test_what_is_refused(call: Any, message: str) -> None:
    a, b = tensors("f32", (3, 4), (4, 5))
    with pytest.raises(mmaprobe.MmaprobeError) as error:
        call(a, b)
    assert message in str(error.value)


def test_numbers_are_rounded_where_it_is_asked_for() -> None:
    a, b = tensors("f32", (3, 20), (20, 5))
    found = mt.matmul(a, b, unit=HOPPER, convert="nearest_even")
    assert same(found, mt.matmul(a.half(), b.half(), unit=HOPPER))
    with pytest.raises(UnsupportedProductError):
        mt.matmul(a, b, unit=HOPPER)


def test_a_file_is_read_each_time(tmp_path: Path) -> None:
    """A unit file that was changed since the last product is another unit."""
    volta = unit_text(mmaprobe.unit("volta/mma/m8n8k4.f32.f16.f16.f32").unit)
    a, b = torch.tensor([[1.0, -(2.0**-10)]]).half(), torch.tensor([[1.0], [2.0**-14]]).half()
    path, found = tmp_path / "mine.yaml", []
    for text in (volta, volta.replace("F=23", "F=24"), volta):
        path.write_text(text, encoding="utf-8")
        found.append(float(mt.matmul(a, b, unit=path)))
    assert found == [1.0, 1 - 2.0**-24, 1.0]
