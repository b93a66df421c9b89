"""Matrices through a model: engines and tilings agree, conversions are exact, the command behaves."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from mmaprobe.cli.main import main
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.arithmetic.rounding import ROUNDINGS
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.libraries import compiler
from mmaprobe.smtmodel.evaluate import tiles
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.compiled import compile_model
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import from_numbers, to_numbers
from mmaprobe.smtmodel.plans import Plan, gemm
from mmaprobe.smtmodel.plans.gemm import LONG, ROWS, Engine, _tape, simulate
from mmaprobe.smtmodel.tables.reference import parse_plan_reference, parse_reference

pytestmark = pytest.mark.compilers

HOPPER = "hopper/mma/m16n8k16.f32.f16.f16.f32"
MODELS = (
    HOPPER,
    "volta/mma/m8n8k4.f16.f16.f16.f16",
    "ampere/mma/m16n8k8.f32.tf32.tf32.f32",
    "ada-lovelace/mma/m16n8k16.f32.e4m3.e5m2.f32",
    "hopper/mma/m16n8k32.f16.e4m3.e4m3.f16",
    "ampere/mma/m8n8k4.f64.f64.f64.f64",
    "cdna1/mfma/f32_16x16x4f32",
    "cdna2/mfma/f32_32x32x8f16",
    "cdna3/mfma/f32_16x16x8_xf32",
    "cdna3/mfma/f32_32x32x16_fp8_bf8",
)
needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C compiler: set CC or install one")


def patterns(fmt: Format, shape: tuple[int, int], rng: np.random.Generator) -> NDArray[Any]:
    """Random bits in the upper half, plain numbers of one size in the lower."""
    bits = rng.integers(0, 2**fmt.width - 1, shape, dtype=np.uint64, endpoint=True)
    plain = from_numbers(rng.standard_normal(shape), fmt, "nearest_even").astype(np.uint64)
    return np.where(np.arange(shape[0])[:, None] * 2 < shape[0], bits, plain)


def operands(model: Model | Plan, rows: int, columns: int, k: int, seed: int = 0) -> list[NDArray[Any]]:
    rng = np.random.default_rng(seed)
    return [
        patterns(model.a, (rows, k), rng),
        patterns(model.b, (k, columns), rng),
        patterns(model.c, (rows, columns), rng),
    ]


def by_hand(model: Model, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
    """The chain of tiles written out over the batch evaluation."""
    i, j = (index.ravel() for index in np.indices(c.shape))
    running = c[i, j]
    for k in range(0, a.shape[1], model.length):
        left, right = a[:, k : k + model.length], b[k : k + model.length]
        running = evaluate_batch(model, left[i], right[:, j].T, running)
    return running.reshape(c.shape)


@needs_compiler
@pytest.mark.parametrize("reference", MODELS)
def test_compiled_and_numpy_agree_with_the_chain_by_hand(reference: str) -> None:
    model = parse_reference(reference)
    a, b, c = operands(model, 24, 20, 2 * model.length + 1)
    expected = by_hand(model, a, b, c)
    assert len(np.unique(expected)) > 20
    for engine in ("numpy", "compiled"):
        assert np.array_equal(simulate(a, b, c, model, engine=engine), expected), engine  # type: ignore[arg-type]


@pytest.mark.parametrize("how", [HOPPER, "plan:cutlass/linear-combination"])
@pytest.mark.parametrize("engine", ["numpy", pytest.param("compiled", marks=needs_compiler)])
def test_a_bias_is_the_addend_of_every_row_or_column(how: str, engine: Engine) -> None:
    """More rows than a strip has, also none; each element with the bias of its own column or row."""
    model = parse_plan_reference(how) if how.startswith("plan:") else parse_reference(how)
    a, b, c = operands(model, ROWS + 3, 5, 17)
    for bias in (c[:1], c[:, :1], c[:1, :1]):
        whole = np.tile(bias, (len(c) // len(bias), c.shape[1] // bias.shape[1]))
        found = simulate(a, b, bias, model, engine=engine)
        assert np.array_equal(found, simulate(a, b, whole, model, engine="numpy"))
        assert len(np.unique(found)) > 100
    assert simulate(a[:0], b, c[:1], model, engine=engine).shape == (0, 5)


def test_a_bias_without_products_is_the_result() -> None:
    column = np.arange(3, dtype=np.uint32)[:, None]
    a, b = np.zeros((3, 0), dtype=np.uint16), np.zeros((0, 4), dtype=np.uint16)
    assert np.array_equal(simulate(a, b, column, parse_reference(HOPPER)), np.tile(column, (1, 4)))


@needs_compiler
def test_a_wrong_model_is_noticed() -> None:
    model = parse_reference(HOPPER)
    a, b, c = operands(model, 24, 20, 32)
    other = parse_reference(f"{HOPPER}@fraction_bits=24")
    assert not np.array_equal(simulate(a, b, c, model), simulate(a, b, c, other, engine="compiled"))


def test_tiling_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    model = parse_reference(HOPPER)
    a, b, c = operands(model, 37, 29, 40)
    expected = simulate(a, b, c, model, engine="numpy")
    for rows, columns, threads in ((1, 5, 1), (16, 8, 2), (64, 64, 3)):
        monkeypatch.setattr(gemm, "ROWS", rows)
        monkeypatch.setattr(tiles, "COLUMNS", columns)
        assert np.array_equal(simulate(a, b, c, model, engine="numpy", threads=threads), expected)


def test_scale_factors() -> None:
    model = parse_reference("rtx-blackwell/mma_block_scale/m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3")
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 16, shape, dtype=np.uint8) for shape in ((5, 80), (80, 4)))
    ones = [np.full(shape, 0x38, dtype=np.uint8) for shape in ((5, 5), (5, 4))]
    plain = to_numbers(simulate(a, b, None, model, scales={"scale_a": ones[0], "scale_b": ones[1]}), model.d)
    doubled = simulate(a, b, None, model, scales={"scale_a": ones[0] + 8, "scale_b": ones[1]})
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
    assert np.array_equal(plain, values[a] @ values[b])
    assert np.array_equal(to_numbers(doubled, model.d), 2 * plain)
    with pytest.raises(ParameterError, match="scale factors"):
        simulate(a, b, None, model)


def test_progress_counts_rows() -> None:
    model = parse_reference(HOPPER)
    a, b, _ = operands(model, 300, 3, 16)
    seen: list[tuple[int, int]] = []
    simulate(a, b, None, model, engine="numpy", progress=lambda done, total: seen.append((done, total)))
    assert seen == [(128, 300), (256, 300), (300, 300)]


@pytest.mark.parametrize(
    ("a", "b", "c", "match"),
    [
        ((4, 8), (9, 4), None, "cannot be multiplied"),
        ((4, 8), (8, 4), (4, 5), "not that of the product"),
        ((4, 8), (8, 4), (2, 4), "or of a row or column of it"),
        ((4, 8), (8, 4), (1, 5), r"\(1, 5\) is not that"),
        ((4, 8), (8, 4), (5,), r"\(5,\) is not that"),
        ((4, 8), (8, 1), (1, 4), r"\(1, 4\) is not that"),
    ],
)
def test_shapes_that_do_not_fit(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int] | None, match: str) -> None:
    sides = [None if shape is None else np.zeros(shape, dtype=np.uint16) for shape in (a, b, c)]
    with pytest.raises(ParameterError, match=match):
        simulate(sides[0], sides[1], sides[2], parse_reference(HOPPER))  # type: ignore[arg-type]


def test_patterns_too_wide() -> None:
    model = parse_reference("hopper/wgmma/m64n8k32.f32.e4m3.e4m3")
    wide = np.full((4, 32), 0x100, dtype=np.uint16)
    with pytest.raises(ParameterError, match="wider than the 8 bits"):
        simulate(wide, wide.T, None, model)


def test_convert_takes_every_rounding_of_the_models() -> None:
    for command in ("simulate", "compare"):
        option = next(option for option in main.commands[command].params if option.name == "convert")
        assert tuple(option.type.choices) == ROUNDINGS  # type: ignore[attr-defined]


def test_numbers_that_are_not_exact_need_a_rounding() -> None:
    numbers = np.array([[1.0, 1 / 3, np.nan]], dtype=np.float32)
    with pytest.raises(ParameterError, match="convert"):
        from_numbers(numbers, FORMATS["f16"])
    rounded = from_numbers(numbers, FORMATS["f16"], "nearest_even")
    assert np.array_equal(rounded[0, :2].view(np.float16), numbers.astype(np.float16)[0, :2])
    assert np.array_equal(from_numbers(np.array([[0.5, -3.0]]), FORMATS["e4m3"]), [[0x30, 0xC4]])


@pytest.mark.parametrize("name", ["file", "allow_pickle", "args"])
def test_matrices_have_any_name(name: str, tmp_path: Path) -> None:
    """Also one that numpy.savez cannot give."""
    for side in "ab":
        with zipfile.ZipFile(tmp_path / f"{side}.npz", "w") as archive, archive.open(f"{name}.npy", "w") as member:
            np.lib.format.write_array(member, np.eye(4, dtype=np.float16))
    files = [str(tmp_path / f"{one}.npz") for one in "abd"]
    result = CliRunner().invoke(main, ["simulate", *files[:2], "-o", files[2], "--model", HOPPER])
    assert result.exit_code == 0, result.output
    with np.load(files[2]) as found:
        assert found.files == [name]
        assert (found[name] == np.eye(4)).all()


def test_command_with_npy_and_npz(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    sides = {name: rng.standard_normal((20, 20)).astype(np.float16) for name in "ab"}
    for name, matrix in sides.items():
        np.save(tmp_path / f"{name}.npy", matrix)
        np.savez(tmp_path / f"{name}.npz", one=matrix, two=matrix * 2, **{f"only_{name}": matrix})
    arguments = ["--model", HOPPER, "-o"]
    files = [str(tmp_path / "a.npy"), str(tmp_path / "b.npy"), *arguments, str(tmp_path / "d.npy")]
    assert CliRunner().invoke(main, ["simulate", *files]).exit_code == 0
    d = np.load(tmp_path / "d.npy")
    assert d.dtype == np.float32
    assert np.allclose(d, sides["a"].astype(np.float64) @ sides["b"].astype(np.float64), atol=1e-4)
    files = [str(tmp_path / "a.npz"), str(tmp_path / "b.npz"), *arguments, str(tmp_path / "d.npz"), "--json"]
    result = CliRunner().invoke(main, ["simulate", *files])
    assert result.exit_code == 0
    assert "left out, since not every file has it: only_a, only_b" in result.stderr
    with np.load(tmp_path / "d.npz") as many:
        assert set(many) == {"one", "two"}
        assert np.array_equal(many["one"], d)
        assert np.array_equal(many["two"], 4 * d)


def test_command_errors(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((4, 4), dtype=np.float32) / 3)
    (tmp_path / "text.npy").write_text("not a matrix", encoding="utf-8")
    good = str(tmp_path / "a.npy")
    for files in ([good, str(tmp_path / "none.npy")], [good, str(tmp_path / "text.npy")], [good, good], [good]):
        result = CliRunner().invoke(main, ["simulate", *files, "--model", HOPPER, "-o", str(tmp_path / "d.npy")])
        assert result.exit_code == 2
        assert not (tmp_path / "d.npy").exists()


def test_models_beyond_the_compiler_are_left_to_numpy() -> None:
    model = parse_reference("cdna1/mfma/f32_32x32x4bf16@length=32")
    assert compile_model(model) is None
    a, b, c = operands(model, 3, 2, 4)
    assert np.array_equal(simulate(a, b, c, model), by_hand(model, a, b, c))
    with pytest.raises(ParameterError, match="engine"):
        simulate(a, b, c, model, engine="compiled")


SCALED = "rtx-blackwell/mma_block_scale/m16n8k32.block32.f32.e4m3.e4m3.f32.ue8m0"


def scaled_files(folder: Path, **changed: Any) -> list[str]:
    """A and B of ones with K = 64, and factors of one; the arguments of `simulate`."""
    ones = {"a": np.full((8, 64), 0x38, np.uint8), "b": np.full((64, 8), 0x38, np.uint8),
            "p": np.full((8, 2), 127, np.uint8), "q": np.full((2, 8), 127, np.uint8)}  # fmt: skip
    for name, matrix in (ones | changed).items():
        np.save(folder / f"{name}.npy", matrix)
    files = [str(folder / f"{name}.npy") for name in "abpq"]
    scales = ["--scale-a", files[2], "--scale-b", files[3]]
    return ["simulate", *files[:2], *scales, "-o", str(folder / "d.npy")]


@pytest.mark.parametrize("how", ["--model", "--plan"])
def test_scale_factors_are_patterns_or_numbers(tmp_path: Path, how: str) -> None:
    for factors, expected in ((np.full((8, 2), 127, np.uint8), 64), (np.full((8, 2), 2, np.float32), 128)):
        arguments = scaled_files(tmp_path, p=factors)
        result = CliRunner().invoke(main, [*arguments, how, SCALED])
        assert result.exit_code == 0, result.output
        assert (np.load(tmp_path / "d.npy") == expected).all()


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        (np.full((8, 2), 3.0), "powers of two"),
        (np.full((8, 2), -1, np.int64), "int64"),
        (np.full((8, 2), True), "bool"),
        (np.full((8, 2), 300, np.uint16), "bit patterns of ue8m0"),
        (np.full((8, 1), 127, np.uint8), "one factor for each 32 products"),
        (np.full((8, 3), 127, np.uint8), "one factor for each 32 products"),
    ],
)
def test_wrong_scale_factors_are_refused(tmp_path: Path, factors: Any, message: str) -> None:
    result = CliRunner().invoke(main, [*scaled_files(tmp_path, p=factors), "--model", SCALED])
    assert result.exit_code == 2
    assert message in result.output
    assert not (tmp_path / "d.npy").exists()


@pytest.mark.parametrize(
    ("wrong", "matrix", "message"),
    [
        ("b", np.ones((16, 2), np.uint8), "uint8 is too narrow for patterns of f16: uint16 is wanted"),
        ("b", np.full((16, 2), 0.1, np.float32), "not exact in f16"),
        ("c", np.ones((3, 2), np.float32), "shape (3, 2) is not that of the product"),
        ("a", np.ones((2, 15), np.float16), "cannot be multiplied"),
    ],
)
def test_the_file_at_fault_is_named(tmp_path: Path, wrong: str, matrix: Any, message: str) -> None:
    right = {"a": np.ones((2, 16), np.float16), "b": np.ones((16, 2), np.float16), "c": np.ones((2, 2), np.float32)}
    for name, one in (right | {wrong: matrix}).items():
        np.save(tmp_path / f"{name}.npy", one)
    files = [str(tmp_path / f"{name}.npy") for name in right]
    result = CliRunner().invoke(main, ["simulate", *files, "-o", str(tmp_path / "d.npy"), "--model", HOPPER])
    assert result.exit_code == 2
    assert f"{wrong}.npy" in result.output
    assert message in result.output


def test_scale_factors_of_another_name(tmp_path: Path) -> None:
    arguments = scaled_files(tmp_path)
    np.savez(tmp_path / "p.npz", other=np.full((8, 2), 127, np.uint8))
    arguments[4] = str(tmp_path / "p.npz")
    result = CliRunner().invoke(main, [*arguments, "--model", SCALED])
    assert result.exit_code == 2
    assert "--scale-a: no matrix" in result.output


def test_few_outputs_of_many_products_are_compiled() -> None:
    if compiler() is None:
        pytest.skip("no C compiler")
    model = parse_reference(HOPPER)
    plan = Plan.chained(model)
    assert _tape(plan, 64, 64, "auto") is None
    assert _tape(plan, 16 * LONG, 16 * LONG, "auto") is not None


def test_an_output_that_cannot_be_is_refused_before_the_work(tmp_path: Path) -> None:
    arguments = [*scaled_files(tmp_path)[:-1], str(tmp_path / "none" / "d.npy"), "--model", SCALED]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "there is no folder" in result.output
    assert " in " not in result.output.partition("error:")[0]  # no product was made
    for name in ("d.npz", "d.csv", "d"):
        result = CliRunner().invoke(main, [*scaled_files(tmp_path)[:-1], str(tmp_path / name), "--model", SCALED])
        assert result.exit_code == 2
        assert "name the output .npy" in result.output
