"""What runs under `emulate` has the machine's products, all of them, and everything else as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

import mmaprobe  # noqa: E402
import mmaprobe.torch as mt  # noqa: E402
from mmaprobe.machines import UnsupportedProductError  # noqa: E402
from mmaprobe.torch.emulation import multiplies  # noqa: E402
from tests.frameworks.test_machines import short_map  # noqa: E402
from tests.frameworks.test_torch_products import same, tensors  # noqa: E402

F = torch.nn.functional
CHAIN = "sum(ieee/fma/f64, +0)"


def emulated(function: Any, machine: str = "H100", **more: Any) -> tuple[Any, Any]:
    with mt.emulate(machine, **more) as context:
        found = function()
    return found, context.report


def test_a_product_of_a_gpu_is_that_of_its_recorded_plan() -> None:
    a, b = tensors("f16", (40, 130), (130, 24))
    found, report = emulated(lambda: a @ b)
    assert same(found, torch.from_numpy(mmaprobe.matmul(a.numpy(), b.numpy(), plan="cublas/plain")))
    (row,) = report.products
    assert (row.operator, row.known, tuple(row.shape), row.count) == ("aten.mm", "recorded", (1, 40, 24, 130), 1)
    assert row.after == "rounded once to f16"
    assert "273 of 436 shapes" in row.evidence


def test_fp8_is_promoted_or_fast_as_it_is_asked_for() -> None:
    a, b = tensors("e4m3", (16, 256), (32, 256))
    one = torch.ones(())
    for fast, plan in ((False, "cutlass/fp8-promoted"), (True, "cutlass/fp8-fast")):
        found, _ = emulated(lambda fast=fast: torch._scaled_mm(
            a, b.T, scale_a=one, scale_b=one * 2, out_dtype=torch.float32, use_fast_accum=fast))  # fmt: skip
        expected = mt.matmul(a, b.T, plan=plan)
        assert same(found, expected * 2)


def test_another_plan_for_a_format() -> None:
    a, b = tensors("f32", (8, 40), (40, 6))
    found, report = emulated(lambda: a @ b, f32="plan:cublas/tf32")
    assert same(found, torch.from_numpy(mmaprobe.matmul(a.numpy(), b.numpy(), plan="cublas/tf32")))
    assert report.machine == "H100 (f32=cublas/tf32)"
    assert report.products[0].known == "given"


OPERATORS = {
    "mv": lambda a, b, c: torch.mv(a, b[:, 0]),
    "dot": lambda a, b, c: torch.dot(a[0], b[:, 1]),
    "addmv": lambda a, b, c: torch.addmv(c[:, 0], a, b[:, 0], beta=0.5, alpha=1),
    "addmm": lambda a, b, c: torch.addmm(c, a, b),
    "addmm, beta 0": lambda a, b, c: torch.addmm(c * float("nan"), a, b, beta=0),
    "baddbmm": lambda a, b, c: torch.baddbmm(c[None], a[None], b[None], beta=2),
    "linear": lambda a, b, c: F.linear(a, b.T, c[0]),
    "einsum": lambda a, b, c: torch.einsum("ik,kj->ji", a, b),
    "einsum of a batch": lambda a, b, c: torch.einsum("bik,bkj->bij", a.expand(3, -1, -1), b.expand(3, -1, -1)),
    "tensordot": lambda a, b, c: torch.tensordot(a, b, 1),
    "multi_dot": lambda a, b, c: torch.linalg.multi_dot([a, b, c.T]),
    "out": lambda a, b, c: torch.mm(a, b, out=torch.empty_like(c)),
    "in place": lambda a, b, c: c.clone().addmm_(a, b),
    "attention": lambda a, b, c: F.scaled_dot_product_attention(a[None, None], a[None, None], a[None, None]),
    "conv1d": lambda a, b, c: F.conv1d(a[None], b[:6, : a.shape[0], None].repeat(1, 1, 3), padding=1),
}


@pytest.mark.parametrize("mode", ["grad", "no_grad", "inference_mode"])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_emulated(name: str, mode: str) -> None:
    a, b, c = tensors("f64", (6, 10), (10, 7), (6, 7))
    function = OPERATORS[name]
    expected = function(a, b, c)
    with torch.inference_mode(mode == "inference_mode"), torch.set_grad_enabled(mode == "grad"):
        found, report = emulated(lambda: function(a, b, c))
    assert found.shape == expected.shape
    assert torch.allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert report.products
    assert not report.unknown
    assert not [one for one in report.native if "mm" in one or "dot" in one or "attention" in one]


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions_and_their_gradients(axes: int, transposed: bool, groups: int, stride: int) -> None:
    kind = getattr(torch.nn, f"Conv{'Transpose' * transposed}{axes}d")
    layer = kind(4, 6, 3, stride=stride, padding=1, dilation=2 if stride == 1 else 1, groups=groups).double()
    (x,) = tensors("f64", (2, 4, *(8 if axes < 3 else 5,) * axes))
    x.requires_grad_()
    given = [x, *layer.parameters()]

    def step() -> list[Any]:
        found = layer(x)
        return [found, *torch.autograd.grad(found.square().sum(), given)]

    found, report = emulated(step)
    for one, other in zip(found, step(), strict=True):
        assert torch.allclose(one, other, rtol=1e-10, atol=1e-10)
    assert sum(row.count for row in report.products) == 3


@pytest.mark.parametrize("layer", [torch.nn.Conv2d(4, 6, 3, groups=2), torch.nn.ConvTranspose2d(4, 6, 3, 2)])
def test_convolutions_lie_in_memory_as_pytorchs(layer: Any) -> None:
    (x,) = tensors("f32", (2, 4, 7, 7))
    for own, given in ((layer, x.to(memory_format=torch.channels_last)),
                       (layer.to(memory_format=torch.channels_last), x)):  # fmt: skip
        given.requires_grad_()
        found, expected = emulated(lambda m=own, y=given: m(y))[0], own(given)
        assert found.stride() == expected.stride() != found.contiguous().stride()
        gradients = (torch.autograd.grad(one.square().sum(), [given, own.weight]) for one in (found, expected))
        assert all(one.stride() == other.stride() for one, other in zip(*gradients, strict=True))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors() -> None:
    """Jagged ones consist of operators on their values; what has none is refused by name."""
    (x,), layer = tensors("f32", (5, 8)), torch.nn.Linear(8, 4)
    nested = torch.nested.nested_tensor_from_jagged(x, torch.tensor([0, 3, 5]))
    found, report = emulated(lambda: layer(nested).values())
    assert torch.allclose(found, layer(x), atol=1e-6)
    assert [tuple(row.shape) for row in report.products] == [(1, 5, 4, 8)]
    ragged = torch.nested.nested_tensor([x[:3], x[3:]])
    with pytest.raises(UnsupportedProductError, match="matmul may multiply"):
        emulated(lambda: ragged @ ragged.transpose(1, 2))


def test_a_transformer_forward_and_backward_consists_of_products() -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 24, dropout=0.0, batch_first=True).double()
    (x,) = tensors("f64", (2, 5, 16))

    def step() -> list[Any]:
        found = layer(x)
        return [found, *torch.autograd.grad(found.square().sum(), list(layer.parameters()))]

    found, report = emulated(step)
    for one, other in zip(found, step(), strict=True):
        assert torch.allclose(one, other, rtol=1e-10, atol=1e-10)
    forward = sum(row.count for row in report.products if not row.backward)
    assert (forward, sum(row.count for row in report.products)) == (6, 6 + 2 * 6 - 1)  # x has no gradient
    native, report = emulated(step, backward="native")
    assert {row.backward for row in report.products} == {False}
    assert torch.allclose(native[1], found[1])


def test_recurrent_layers_and_autocast() -> None:
    layer = torch.nn.LSTM(4, 3)
    (x,) = tensors("f32", (2, 1, 4))
    found, report = emulated(lambda: layer(x)[0])
    assert torch.allclose(found, layer(x)[0], atol=1e-6)
    assert report.products
    with torch.autocast("cpu", torch.bfloat16):
        _, report = emulated(lambda: F.linear(x, torch.ones(5, 4)))
    assert [row.formats for row in report.products] == [("bf16", "bf16", "bf16")]


def test_a_compiled_function_is_emulated_too() -> None:
    a, b = tensors("f16", (20, 40), (40, 8))
    function = torch.compile(lambda: a @ b, backend="eager")
    function()
    found, report = emulated(function)
    assert same(found, emulated(lambda: a @ b)[0])
    assert len(report.products) == 1


def test_what_is_native_is_as_outside() -> None:
    """oneDNN is off inside, so that recurrent layers consist of products, but not for native operators."""
    a, b = tensors("bf16", (40, 64), (64, 40))
    expected = a @ b
    found, report = emulated(lambda: a @ b, "T4", unknown="native")
    assert same(found, expected)
    assert report.unknown == {"aten.mm": 1}
    with mt.emulate("H100"), mt.emulate("T4", unknown="native"):
        assert same(a @ b, expected)
    assert torch._C._get_mkldnn_enabled()


def test_settings_are_as_before_even_after_an_error() -> None:
    def settings() -> tuple[Any, ...]:
        return (torch._C._get_mkldnn_enabled(), torch.backends.mha.get_fastpath_enabled(),
                torch.backends.cuda.flash_sdp_enabled())  # fmt: skip

    before = settings()
    with pytest.raises(UnsupportedProductError), mt.emulate("H100"):
        torch.linalg.inv(torch.eye(3))
    assert settings() == before
    assert torch.linalg.inv(torch.eye(3)).shape == (3, 3)


def test_what_is_not_known_is_an_error_or_native_by_choice() -> None:
    x = torch.eye(3)
    with pytest.raises(UnsupportedProductError, match="may multiply matrices and is not emulated"):
        emulated(lambda: torch.linalg.inv(x))
    found, report = emulated(lambda: torch.linalg.inv(x), unknown="native")
    assert torch.equal(found, x)
    assert list(report.unknown) == ["aten.linalg_inv_ex"]
    half = x.half()
    with pytest.raises(UnsupportedProductError, match=r"aten.mm: T4 has .*bf16"):
        emulated(lambda: half.bfloat16() @ half.bfloat16(), "T4")
    _, report = emulated(lambda: half.bfloat16() @ half.bfloat16(), "T4", unknown="native")
    assert report.unknown == {"aten.mm": 1}
    _, report = emulated(lambda: x.int() @ x.int())
    assert "aten.mm (integers)" in report.native


def test_every_operator_of_pytorch_is_a_product_or_not() -> None:
    """Of those named here it is known by hand; the names of all others are read by the same words."""
    for name in ("mm", "addmm_", "_int_mm", "lstm", "_scaled_dot_product_flash_attention", "_fft_c2c",
                 "linalg_solve_ex", "_addmm_activation", "mkldnn_linear", "cudnn_convolution_relu", "_trilinear",
                 "_cdist_forward",
                 "_transformer_encoder_layer_fwd", "_grouped_mm", "_weight_int8pack_mm", "_thnn_fused_gru_cell",
                 "linear_backward", "_foreach_mm", "_native_multi_head_attention", "_scaled_mm_v2"):  # fmt: skip
        assert multiplies("aten", name), name
    for name in ("add", "mul", "softmax", "native_layer_norm_backward", "_softmax_backward_data", "sum", "embedding",
                 "slice_inverse", "upsample_bilinear2d", "nll_loss_forward", "cummin", "detach", "cumsum",
                 "linalg_vector_norm", "convert", "max_pool2d_with_indices", "_fused_adamw_", "_foreach_add",
                 "embedding_bag", "_fused_rms_norm", "grid_sampler_2d", "index_put_", "scatter_add"):  # fmt: skip
        assert not multiplies("aten", name), name
    assert multiplies("flash_attn", "forward")
    assert not multiplies("c10d", "allreduce_")  # sums, between processes


def test_a_linear_layer_multiplies_by_a_transposed_matrix(tmp_path: Path) -> None:
    maps = [short_map(tmp_path), short_map(tmp_path, 70, layout="nt"), short_map(tmp_path, 75, layout="tn")]
    x, w = (side.requires_grad_() for side in tensors("f32", (3, 8), (5, 8)))
    with mt.emulate(maps) as context:
        torch.autograd.grad((torch.nn.functional.linear(x, w) @ w).square().sum(), [x, w])
        mt.matmul(x, w.mT, machine=maps[1])
    known = [(row.backward, row.known, row.evidence.rpartition(" ")[2]) for row in context.report.products]
    assert known[:2] == [(False, "recorded", "map70.json"), (False, "recorded", "map.json")]
    assert {row[1:] for row in known if row[0]} >= {("recorded", "map75.json"), ("recorded", "map70.json")}


def test_the_report_as_text() -> None:
    a, b = tensors("f16", (2, 4, 16), (2, 16, 4))
    with mt.emulate("MI300X") as context:
        torch.bmm(a, b).relu()
    lines = str(context).splitlines()
    assert lines[0] == f"MI300X, PyTorch {torch.__version__}: 1 matrix product computed as this machine does"
    assert lines[1] == ("  1 x aten.bmm  f16 * f16 -> f16  2 of 4 x 4 x 16  "
                        "sum(cdna3/mfma/f32_16x16x16_f16, +0)  [inferred]")  # fmt: skip
    assert "unit: published model" in lines[3]
    assert lines[-1] == "as they are: aten.relu 1"
