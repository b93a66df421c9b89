"""A transformer in JAX: its products are those of this processor's own plans, and `diverge` says where two machines
part.

tests/data/jax_cpu_*.json.gz are maps that `identify --gemm --json --length 256 --shape 256,256 --multiple 32` found of
JAX 0.10.2, one thread, on an AMD EPYC with AVX-512: of a product and of stacks of four
(examples/library_devices.py; 64 s and 37 s).
"""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

jax: Any = pytest.importorskip("jax", reason="JAX is not installed")

import mmaprobe  # noqa: E402
import mmaprobe.jax as mj  # noqa: E402
from mmaprobe.machines import machine_of  # noqa: E402
from mmaprobe.multiplied import Multiplied  # noqa: E402
from tests.places import ROOT  # noqa: E402

jnp = jax.numpy
WIDTH, HEADS, TOKENS = 32, 4, 16
CHAIN = """plan: a-chain
formats: {a: f32, b: f32, c: f32, d: f32}
units: {fma: ieee/fma/f32}
steps: {d: "sum(fma, +0)"}
"""
ROUNDED = CHAIN.replace("steps:", 'roundings: {r: "round(f32, nearest_even)"}\nsteps:')
PLANS = {
    "chain.yaml": CHAIN,
    "lanes.yaml": ROUNDED.replace("sum(fma", "sum(lanes(fma, r, 2, fold(2, 1))"),
    "batch.yaml": ROUNDED.replace("sum(fma", "sum(interleave(4, fma, r, order=pairwise, tail=fma)"),
    "rules.yaml": "rules: XLA\nshapes: {M: 1..64, N: 1..64, K: 1..64}\nelements:\n"
    "- {M: 64, N: 32, K: 16, plan: lanes.yaml}\n- {plan: chain.yaml}\n",
}
#: XLA's products of one thread in a process of its own: Eigen divides K by the caches and threads that it finds
NATIVE = """import os, sys
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
import jax, numpy as np
product = jax.jit(lambda a, b: a @ b)
sides = np.load(sys.argv[1])
def alone(x): return x[0] if len(x) == 1 else x
results = [np.asarray(product(alone(sides[f"a{n}"]), alone(sides[f"b{n}"]))) for n in range(len(sides) // 2)]
np.savez(sys.argv[2], *results)
"""


def parameters(count: int = 1) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)

    def drawn(*shape: int) -> Any:
        return 0.2 * rng.standard_normal(shape).astype(np.float32)

    names = {"q": WIDTH, "k": WIDTH, "v": WIDTH, "o": WIDTH, "u": 2 * WIDTH}
    layers = [{name: drawn(WIDTH, size) for name, size in names.items()} for _ in range(count)]
    return [layer | {"d": drawn(2 * WIDTH, WIDTH)} for layer in layers], 5 * drawn(TOKENS, WIDTH)


def normal(x: Any) -> Any:
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def loss(layers: Any, x: Any) -> Any:
    for layer in layers:
        h = normal(x)
        q, k, v = (jnp.swapaxes((h @ layer[name]).reshape(TOKENS, HEADS, -1), 0, 1) for name in "qkv")
        weights = jax.nn.softmax(jnp.einsum("htd,hsd->hts", q, k) / np.float32(8**0.5), -1)
        x = x + jnp.swapaxes(jnp.einsum("hts,hsd->htd", weights, v), 0, 1).reshape(TOKENS, WIDTH) @ layer["o"]
        x = x + jnp.maximum(normal(x) @ layer["u"], 0) @ layer["d"]
    return jnp.square(x).sum()


def seen_in(machine: Any, layers: int) -> list[Multiplied]:
    """The products of a step, forward and backward."""
    seen: list[Multiplied] = []
    with mj.Emulation(machine, listener=seen.append):
        jax.block_until_ready(jax.jit(jax.grad(loss, (0, 1)))(*parameters(layers)))
    return seen


def natives(seen: list[Multiplied], folder: Path) -> list[Any]:
    sides = {f"{name}{n}": side.view(np.float32) for n, one in enumerate(seen) for name, side in
             (("a", one.a), ("b", one.b))}  # fmt: skip
    np.savez(folder / "sides.npz", **sides)
    done = subprocess.run([sys.executable, "-c", NATIVE, folder / "sides.npz", folder / "results.npz"],
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    results = np.load(folder / "results.npz")
    return [results[f"arr_{n}"].view(np.uint32).reshape(one.d.shape) for n, one in enumerate(seen)]


@pytest.mark.parametrize("layers", [1, pytest.param(3, marks=pytest.mark.slow)])
def test_every_product_forward_and_backward_by_the_plans_of_this_processor(layers: int, tmp_path: Path) -> None:
    for name, text in PLANS.items():
        (tmp_path / name).write_text(text)
    machine = machine_of(tmp_path / "rules.yaml", batched=tmp_path / "batch.yaml")
    seen = seen_in(machine, layers)
    assert len(seen) == 24 * layers
    assert {one.shape[0] for one in seen} == {1, HEADS}
    differ = [one.shape for one, own in zip(seen, natives(seen, tmp_path), strict=True) if (one.d != own).any()]
    if len(differ) > len(seen) // 2:
        pytest.skip("this processor's XLA runs other plans than those written here, for AVX-512")
    assert not differ
    batch = next(one for one in seen if one.shape[0] == HEADS)
    chain = machine_of(plan=tmp_path / "chain.yaml").rule("f32", "f32").product(batch.a, batch.b)
    assert (chain != batch.d).any()  # products of several matrices have another plan


def test_every_product_by_the_maps_of_such_a_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 96 tokens and a width of 128 no product is without a plan, which N modulo 64 decides; none has another bit."""
    for name, value in (("WIDTH", 128), ("HEADS", 2), ("TOKENS", 96)):
        monkeypatch.setattr(sys.modules[__name__], name, value)
    paths = [tmp_path / f"jax_cpu_{name}.json" for name in ("f32", "f32_batched")]
    for path in paths:
        path.write_bytes(gzip.decompress((ROOT / "tests" / "data" / f"{path.name}.gz").read_bytes()))
    machine = machine_of(paths[0], batched=paths[1])
    seen = seen_in(machine, 1)
    assert len(seen) == 24
    assert len({one.plans for one in seen}) == 2
    differ = [one.shape for one, own in zip(seen, natives(seen, tmp_path), strict=True) if (one.d != own).any()]
    if len(differ) > len(seen) // 2:
        pytest.skip("this processor's XLA runs other plans than those of the maps, for AVX-512")
    assert not differ


def perceptron(weights: Any, x: Any) -> Any:
    return jnp.square(jnp.tanh(x @ weights[0]) @ weights[1]).sum(dtype=np.float32)


def weights(kind: Any) -> Any:
    rng = np.random.default_rng(3)
    return [rng.standard_normal(shape).astype(kind) for shape in ((200, 40), (40, 30))], rng.standard_normal(
        (60, 200)
    ).astype(kind)


def test_where_two_machines_part_in_a_transformer() -> None:
    found = mj.diverge(loss, parameters(), "H100", mj.emulate("H100", f32="plan:cublas/tf32"), bounds=False)
    document = found.document
    assert [row.shape[0] for row in document.products] == [1, 1, 1, HEADS, HEADS, 1, 1, 1]
    assert found.first is not None
    assert found.first.number == document.first == next(row.number for row in document.products if row.own)
    assert all(row.carried == row.own for row in document.products[: found.first.number + 1])
    assert document.explained is not None
    assert str(found).startswith(f"H100 and H100 (f32=cublas/tf32), JAX {jax.__version__}: 8 matrix products")
    assert "<html" in found.html()


def test_products_of_gradients_are_compared_too() -> None:
    sides = weights(np.float32)
    found = mj.diverge(jax.grad(perceptron), sides, "H100", "MI300X", bounds=False)
    assert [tuple(row.shape[1:]) for row in found.document.products] == [
        (60, 40, 200), (60, 30, 40), (30, 40, 60), (60, 40, 30), (40, 200, 60)]  # fmt: skip
    assert found.document.outputs == 200 * 40 + 40 * 30
    same = mj.diverge(perceptron, sides, "H100", "H100")
    assert same.first is None
    assert same.document.differ == 0
    assert [row.bound for row in same.document.products] == [0.0, 0.0]


def test_own_differences_are_those_of_the_two_plans() -> None:
    (b, _), a = weights(np.float16)
    found = mj.diverge(lambda x, y: jnp.matmul(x, y, preferred_element_type=np.float32), (a, b), "H100", "MI300X")
    one, other = (mmaprobe.matmul(a, b, plan=machine_of(gpu).rule("f16", "f16").plan) for gpu in ("H100", "MI300X"))
    (row,) = found.document.products
    differ = int((one.view(np.uint32) != other.view(np.uint32)).sum())
    assert row.own == row.carried == found.document.differ == differ > 0
    assert row.bound is not None
    assert 0 < row.bound < 1


def test_a_path_that_depends_on_results_is_refused() -> None:
    calls: list[int] = []

    def other(a: Any, b: Any) -> Any:
        calls.append(1)
        return a @ b if len(calls) == 1 else (a @ b) @ b

    with pytest.raises(mmaprobe.MmaprobeError, match="other products the second time"):
        mj.diverge(other, (np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32)), "H100", "A100")
    with pytest.raises(mmaprobe.MmaprobeError, match="function"):
        mj.diverge(4, (), "H100", "A100")  # type: ignore[arg-type]
