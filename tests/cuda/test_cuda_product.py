"""Models as CUDA kernels: compiled by NVRTC without a GPU, and run on the processor, thread by thread."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.runner.gpu.cuda_product import CudaProduct
from mmaprobe.runner.gpu.nvrtc import compiler_for, library
from mmaprobe.runner.gpu.rtc import CompilerError
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.cuda_tape import NAME, cuda_tape
from mmaprobe.smtmodel.plans.gemm import simulate, simulate_each
from mmaprobe.smtmodel.tables.reference import parse_plan_path, parse_reference
from tests.cuda.processor import product_by_text
from tests.evaluation.test_compiled import patterns
from tests.marks import some_slow

pytestmark = pytest.mark.kernels

MODELS = (
    "hopper/mma/m16n8k16.f32.f16.f16.f32",
    "hopper/mma/m16n8k16.f16.f16.f16.f16",
    "hopper/wgmma/m64n8k32.f32.e4m3.e4m3",
    "ampere/mma/m16n8k8.f32.tf32.tf32.f32",
    "ampere/mma/m8n8k4.f64.f64.f64.f64",
    "cdna1/mfma/f32_32x32x4f16",
    "cdna2/mfma/f32_32x32x8f16",
    "cdna3/mfma/f32_32x32x8_f16",
    "x86/avx512/vdpbf16ps",
    "arm/neon/bfdot",
)
SCALED = "blackwell/tcgen05mma_block_scale/m64n8k64.block16.f32.e2m1.e2m1.ue4m3@length=32,block=32"
#: sums of parts in f32, of words of the factors, of lanes, with a last rounding; with c and without
PLANS = {name: parse_plan_path(name) for name in (
    "plan:cublas/split-k", "plan:cublas/tf32", "plan:cutlass/fp8-promoted", "plan:triton/bf16x3", "plan:loop/pairwise",
    "plan:cutlass/linear-combination")}  # fmt: skip
CAPABILITIES = ((7, 0), (9, 0), (10, 0))


@pytest.fixture
def product(monkeypatch: pytest.MonkeyPatch) -> CudaProduct:
    return product_by_text(monkeypatch)


@pytest.mark.parametrize("reference", MODELS)
def test_the_kernel_computes_the_model(reference: str, product: CudaProduct) -> None:
    """Special values among the inputs; K of several instructions, the last one filled up."""
    model, rng, k = parse_reference(reference), np.random.default_rng(5), 0
    k = 2 * model.length + max(1, model.length // 2)
    a, b, c = (
        patterns(rng, fmt, shape, True).astype(kind_of(fmt))
        for fmt, shape in ((model.a, (9, k)), (model.b, (k, 37)), (model.c, (9, 37)))
    )
    progress_steps: list[tuple[int, int]] = []
    found = simulate(a, b, c, model, engine=product, progress=lambda done, total: progress_steps.append((done, total)))
    assert np.array_equal(found, simulate(a, b, c, model, engine="numpy"))
    assert progress_steps[-1] == (9, 9)


@pytest.mark.parametrize("reference", PLANS)
def test_the_kernel_computes_a_plan(reference: str, product: CudaProduct) -> None:
    """Of one matrix, and of several at once."""
    plan, rng = PLANS[reference], np.random.default_rng(6)
    for k in (0, 1, 352):
        a, b = (patterns(rng, fmt, shape, True).astype(kind_of(fmt))
                for fmt, shape in ((plan.a, (3, 5, k)), (plan.b, (3, k, 7))))  # fmt: skip
        c = patterns(rng, plan.c, (3, 5, 7), True).astype(kind_of(plan.c)) if plan.addend else None
        one = None if c is None else c[0]
        assert np.array_equal(simulate(a[0], b[0], one, plan, engine=product), simulate(a[0], b[0], one, plan))
        several = simulate_each(a, b, c, plan)
        assert np.array_equal(product.each(plan, a, b, c), several)
        if k:  # by one launch
            out = np.zeros_like(several)
            zero = np.zeros(1, kind_of(plan.c))
            product.blocks(cuda_tape(plan, k), {"a": a, "b": b, "c": zero if c is None else c}, out)
            assert np.array_equal(out, several)


def test_tiny_results(product: CudaProduct) -> None:
    """Results below the normal numbers, which this unit flushes and a GPU's own addition does not."""
    model, rng = parse_reference("x86/avx512/vdpbf16ps"), np.random.default_rng(8)
    a, b = (
        (rng.integers(62, 67, shape, dtype=np.uint16) << 7) + rng.integers(0, 128, shape, dtype=np.uint16)
        for shape in ((20, 2), (2, 40))
    )
    found = simulate(a, b, None, model, engine=product)
    assert np.array_equal(found, simulate(a, b, None, model, engine="numpy"))
    assert 0.1 < np.mean(found == 0) < 0.9


def test_scale_factors(product: CudaProduct) -> None:
    model, rng = parse_reference(SCALED), np.random.default_rng(4)
    k = 2 * model.length
    a, b = (rng.integers(0, 16, shape, dtype=np.uint8) for shape in ((5, k), (k, 33)))
    p, q = (rng.integers(0, 0x80, shape, dtype=np.uint8) for shape in ((5, 2 * model.scales), (2 * model.scales, 33)))
    found = [
        simulate(a, b, None, model, scales={"scale_a": p, "scale_b": q}, engine=engine) for engine in (product, "numpy")
    ]  # type: ignore[arg-type]
    assert np.array_equal(*found)
    assert len(np.unique(found[0])) > 20
    each = product.each(Plan.chained(model), a[None], b[None], None, {"scale_a": p[None], "scale_b": q[None]})
    assert np.array_equal(each[0], found[0])


def test_what_a_kernel_does_not_do(product: CudaProduct) -> None:
    a = np.zeros((4, 16), dtype=np.uint16)
    plan = parse_plan_path("plan:ozaki/int8-6")
    with pytest.raises(ParameterError, match="has no kernel: it reads numbers found from several elements"):
        simulate(a.astype(np.uint64), a.T.astype(np.uint64), None, plan, engine=product)
    wide = np.arange(64, dtype=np.uint64).reshape(1, 4, 16)
    assert np.array_equal(product.each(plan, wide, wide.mT), simulate_each(wide, wide.mT, None, plan))
    empty = np.zeros((4, 0), dtype=np.uint16)
    model = parse_reference(MODELS[0])
    assert not simulate(empty, empty.T, None, model, engine=product).any()


def test_without_a_gpu(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.eye(16, dtype=np.float16))
    a = str(tmp_path / "a.npy")
    arguments = ["simulate", a, a, "-o", str(tmp_path / "d.npy"), "--model", MODELS[0], "--engine", "cuda"]
    result = CliRunner().invoke(main, arguments)
    if result.exit_code == 0:  # there is one
        assert np.array_equal(np.load(tmp_path / "d.npy"), np.eye(16, dtype=np.float32))
    else:
        assert "NVIDIA GPU" in result.output
        assert not (tmp_path / "d.npy").exists()


@pytest.mark.parametrize("capability", some_slow(CAPABILITIES, *CAPABILITIES[:-1]))
@pytest.mark.parametrize("reference", [*MODELS[:1], *MODELS[4:6], SCALED, *PLANS])
def test_nvrtc_compiles_it(reference: str, capability: tuple[int, int]) -> None:
    if not any(map(library, (12, 13))):
        pytest.skip("no NVRTC")
    try:
        compiler = compiler_for(capability)
    except CompilerError as error:
        pytest.skip(str(error))
    plan = PLANS.get(reference) or Plan.chained(parse_reference(reference))
    cubin = compiler.compile(cuda_tape(plan, 256).source, f"sm_{capability[0]}{capability[1]}").cubin
    assert cubin[:4] == b"\x7fELF"
    assert NAME.encode() in cubin
