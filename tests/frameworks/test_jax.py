"""Products in JAX are the machine's, under jit, grad and vmap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

jax: Any = pytest.importorskip("jax", reason="JAX is not installed")

import mmaprobe  # noqa: E402
import mmaprobe.jax as mj  # noqa: E402
from mmaprobe.machines import UnsupportedProductError  # noqa: E402
from tests.frameworks.test_machines import short_map  # noqa: E402

HOPPER = "hopper/wgmma/m64n8k16.f32.f16.f16"
PLAIN = (((1,), (0,)), ((), ()))
jnp = jax.numpy


def arrays(*shapes: tuple[int, ...], kind: Any = np.float16) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(kind) for shape in shapes]


def test_a_product_is_that_of_arrays() -> None:
    a, b = arrays((9, 70), (70, 5))
    found = mj.dot_general(a, b, PLAIN, unit=HOPPER, preferred_element_type=jnp.float32)
    assert (np.asarray(found) == mmaprobe.matmul(a, b, unit=HOPPER)).all()


def test_dimensions_are_those_of_lax() -> None:
    a, b = arrays((2, 3, 4, 5), (5, 3, 6, 2), kind=np.float32)
    dimensions = (((3,), (0,)), ((0, 1), (3, 1)))
    found = mj.dot_general(a, b, dimensions, unit="ieee/fma/f32")
    assert np.allclose(found, jax.lax.dot_general(a, b, dimensions), atol=1e-5)


def test_jit_grad_and_vmap() -> None:
    a, b = arrays((9, 20), (20, 5))

    def function(x: Any, y: Any) -> Any:
        return mj.dot_general(x, y, PLAIN, machine="H100").sum(dtype=jnp.float32)

    assert jax.jit(function)(a, b) == function(a, b)
    of_a, of_b = jax.jit(jax.grad(function, (0, 1)))(a, b)
    ones = np.ones((9, 5), np.float16)
    assert (of_a == mmaprobe.matmul(ones, b.T.copy(), plan="cublas/plain")).all()
    assert (of_b == mmaprobe.matmul(a.T.copy(), ones, plan="cublas/plain")).all()
    stack = np.stack([a, a + 1])
    each = jax.vmap(lambda x: mj.dot_general(x, b, PLAIN, machine="H100"))(stack)
    assert (np.asarray(each[1]) == mmaprobe.matmul(stack[1], b, plan="cublas/plain")).all()


def test_a_context_has_every_product() -> None:
    a, b = arrays((9, 70), (70, 5))
    function = jax.jit(lambda x, y: jnp.tanh(x @ y))
    native = function(a, b)
    with mj.emulate("H100") as context:
        found = function(a, b)
        jax.block_until_ready(found)
    expected = jnp.tanh(mmaprobe.matmul(a, b, plan="cublas/plain"))
    assert (np.asarray(found) == np.asarray(expected)).all()
    (row,) = context.report.products
    assert (row.operator, tuple(row.shape), row.known) == ("dot_general", (1, 9, 5, 70), "inferred")
    assert (np.asarray(function(a, b)) == np.asarray(native)).all()
    assert str(context).startswith(f"H100, JAX {jax.__version__}: 1 matrix product")


def test_gradients_in_a_context_are_products_too() -> None:
    a, b = arrays((6, 12), (12, 5), kind=np.float32)

    def function(x: Any, y: Any) -> Any:
        return jnp.square(jnp.einsum("ik,kj->ij", x, y)).sum()

    expected = jax.jit(jax.grad(function, (0, 1)))(a, b)
    with mj.emulate("A100") as context:
        found = jax.block_until_ready(jax.jit(jax.vmap(jax.grad(function, (0, 1))))(a[None], b[None]))
    for one, other in zip(found, expected, strict=True):
        assert np.allclose(one[0], other, rtol=1e-5, atol=1e-5)
    assert sum(row.count for row in context.report.products) == 3


CONVOLUTIONS = {
    "plain": {"window_strides": (1, 1), "padding": "SAME"},
    "strides": {"window_strides": (2, 1), "padding": ((1, 0), (2, 2))},
    "dilated": {"window_strides": (1, 1), "padding": "VALID", "rhs_dilation": (2, 1)},
    "transposed": {"window_strides": (1, 1), "padding": ((2, 1), (1, 2)), "lhs_dilation": (2, 2)},
    "groups": {"window_strides": (1, 1), "padding": "SAME", "feature_group_count": 2},
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_and_their_gradients(name: str) -> None:
    params = CONVOLUTIONS[name]
    layout = ("NCHW", "OIHW", "NCHW") if name in ("plain", "groups") else ("NHWC", "HWIO", "NHWC")
    x, w = arrays((2, 4, 7, 6), (6, 4 // params.get("feature_group_count", 1), 3, 2), kind=np.float32)
    if layout[0] == "NHWC":
        x, w = x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0)

    def function(a: Any, b: Any) -> Any:
        return jnp.square(jax.lax.conv_general_dilated(a, b, dimension_numbers=layout, **params)).sum()

    step = jax.jit(jax.value_and_grad(function, (0, 1)))
    expected = step(x, w)
    with mj.emulate("H100") as context:
        found = jax.block_until_ready(step(x, w))
    for one, other in zip((found[0], *found[1]), (expected[0], *expected[1]), strict=True):
        assert np.allclose(one, other, rtol=1e-4, atol=1e-4)
    assert {row.operator for row in context.report.products} == {"conv_general_dilated"}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_whose_shape_a_map_lacks_is_native_by_choice(name: str, tmp_path: Path) -> None:
    """Of 9 channels and 6 places K is 54, of 12 channels 72."""
    path, params = short_map(tmp_path), {**CONVOLUTIONS[name], "feature_group_count": 1}
    for channels, known in ((9, True), (12, False)):
        x, w = arrays((2, channels, 7, 6), (6, channels, 3, 2), kind=np.float32)
        step = jax.jit(lambda a, b, params=params: jax.lax.conv_general_dilated(a, b, **params))
        expected = step(x, w)
        with mj.emulate(path, unknown="native") as context:
            found = jax.block_until_ready(step(x, w))
        assert np.allclose(found, expected, rtol=1e-4, atol=1e-4)
        assert [row.shape[3] for row in context.report.products] == [54] * known
        assert len(context.report.unknown) == 1 - known
        if not known:
            with pytest.raises(UnsupportedProductError, match="no rule that is relied on"), mj.emulate(path):
                step(x, w)


def test_groups_of_images_have_products_of_their_own() -> None:
    """M of the lowering is that of the product that runs: 4 images in 2 groups."""
    x, w = arrays((4, 3, 6, 6), (4, 3, 3, 3), kind=np.float32)
    step = jax.jit(lambda a, b: jax.lax.conv_general_dilated(a, b, (1, 1), "VALID", batch_group_count=2))
    shapes = []
    with mj.emulate("H100") as context:
        found, plans_of = None, context._tally.plans_of
        context._tally.plans_of = lambda asked, shape, addend=False: shapes.append(shape) or plans_of(asked, shape)
        found = jax.block_until_ready(step(x, w))
    assert np.allclose(found, step(x, w), rtol=1e-4, atol=1e-4)
    assert set(shapes) == {tuple(row.shape) for row in context.report.products} == {(2, 32, 2, 27)}


def test_what_is_not_known_is_an_error_or_native_by_choice() -> None:
    x = np.eye(3, dtype=np.float32)
    function = jax.jit(lambda x: jax.lax.linalg.cholesky(x, symmetrize_input=False))
    with pytest.raises(UnsupportedProductError, match="cholesky: not emulated"), mj.emulate("H100"):
        function(x)
    with mj.emulate("H100", unknown="native") as context:
        assert (jax.block_until_ready(function(x)) == x).all()
        jax.block_until_ready(jnp.dot(x.astype(int), x.astype(int)))
    assert context.report.unknown == {"cholesky": 1}
    assert (function(x) == x).all()
    with pytest.raises(UnsupportedProductError, match=r"V100 has no rule for products of bf16 \* bf16"):
        mj.dot_general(x.astype(jnp.bfloat16), x.astype(jnp.bfloat16), PLAIN, machine="V100")
    with pytest.raises(mmaprobe.MmaprobeError, match="unknown GPU 'H1000'"):
        mj.emulate("H1000")
