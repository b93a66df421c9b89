"""Models as generated C: every operation by itself, rows and columns with and without special values, the processor's
own additions, and the mode that a thread comes with."""

from __future__ import annotations

import ctypes
import ctypes.util
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaprobe.smtmodel.arithmetic.alignment import magnitude_of
from mmaprobe.smtmodel.arithmetic.decode import fit
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.base.libraries import compiler
from mmaprobe.smtmodel.carriers import code, recording
from mmaprobe.smtmodel.carriers.algebra import Bits, constant, max_of, minimum, select, shift_right_jam, sum_of
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.carriers.code import INNER, CodeCarrier
from mmaprobe.smtmodel.carriers.machine import is_built
from mmaprobe.smtmodel.carriers.recording import WORTH, Program, Recorder
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.compiled import CompiledModel, c_source, compile_lanes, compile_model, needed_statements
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.tiles import Elementwise
from mmaprobe.smtmodel.nodes import ExactSum, Round
from mmaprobe.smtmodel.nodes.given import Given
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.plans.tape import BLOCK, block_of
from mmaprobe.smtmodel.tables.reference import parse_reference

pytestmark = [pytest.mark.compilers, pytest.mark.skipif(compiler() is None, reason="no C compiler")]

Patterns = NDArray[np.uint64]
WIDTHS = (1, 7, 24, 31, 32, 33, 63, 64)


def operations(x: Bits, y: Bits) -> Iterator[Bits]:
    """Every operation on two vectors of one width, and on parts of them, whose bounds are known."""
    width = x.width
    low = x.truncate(max(1, width // 2)).zext(width)
    for left, right in ((x, y), (low, y), (y, low), (low, low)):
        yield from (left + right, left - right, left * right, left & right, left | right, left ^ right)
        yield from (left.shl(right), left.lshr(right), left.ashr(right), shift_right_jam(left, right))
        yield from (one.bits(1) for one in (left.ult(right), left.ule(right), left.slt(right), left.eq(right)))
        yield from (minimum(left, right), max_of([left, right, low]), left.leading_zeros(), -left, ~left)
        yield from (select(left.ult(right), right, left), left.concat(right).extract(width, 1), left.any().bits(2))
        yield from (left.bit(width - 1).bits(1), left.shl(width // 3), left.lshr(width // 3), left.sext(2 * width))
        yield from (max_of([left, right, low]) - left, right - minimum(left, right), left - minimum(right, low))
        zeros = left.leading_zeros()
        some = minimum(zeros, fit(right, zeros.width))
        yield from (left.shl(zeros), left.shl(some), right.shl(some), left.shl(left.zext(width + 5).leading_zeros()))
    for most in ((1 << max(1, width // 2)) - 2, (1 << max(1, width // 2)) - 1):
        yield select(constant(x.carrier, most, width).ult(low), x, y)
    product = low.zext(width + 3) * y.truncate(max(1, width // 3)).zext(width + 3)
    yield from (product, product.shl(2), product + constant(x.carrier, 3, width + 3))
    signs = [x.bit(0), y.bit(0), low.bit(0)]
    for total in (width + 3, width + 2, width, max(1, width - 1)):
        found = sum_of(x.carrier, signs, [z.truncate(min(total, width)) for z in (x, y, low)], total)
        negative, magnitude = magnitude_of(found, wraps=True)
        yield from (found, negative.bits(1), magnitude)
        wider = found.zext(total + 2)  # no sum of signed terms: its first bit is never set
        yield select(negative, -wider, wider)


def edges(width: int, rng: np.random.Generator) -> Patterns:
    """Random patterns, small ones (amounts of shifts) and the ends."""
    top = np.uint64((1 << width) - 1)
    drawn = rng.integers(0, 1 << 63, 200, dtype=np.uint64) * np.uint64(2) + rng.integers(0, 2, 200, dtype=np.uint64)
    small = rng.integers(0, 2 * width + 2, 200, dtype=np.uint64)
    ends = np.array([0, 1, int(top), int(top) >> 1, 1 << (width - 1)], dtype=np.uint64)
    return np.concatenate([drawn & top, small & top, np.tile(ends, 5), np.repeat(ends, 5)])


@pytest.mark.parametrize(("width", "wide"), [*((width, width) for width in WIDTHS), (33, 66), (63, 150), (64, 192)])
def test_operations(width: int, wide: int) -> None:
    """`wide`: of the vectors that they are done on, made of two given ones."""
    rng, arrays = np.random.default_rng(width), ArrayCarrier()

    def narrow(x: Bits, y: Bits) -> Sequence[Bits]:  # lanes of at most 64 bits come back
        if wide > width:
            top = wide - 2 * width
            x, y = x.concat(y), y.concat(x).lshr(x.truncate(6))
            x, y = (z.concat(z.truncate(top)) if top else z for z in (x, y))
        return [part for found in operations(x, y) for part in pieces(found)]

    compiled = compile_lanes(narrow, (width, width))
    assert compiled is not None
    x, y = (rng.permutation(edges(width, rng)) for _ in "xy")
    expected = narrow(arrays.lanes(x, width), arrays.lanes(y, width))
    for number, (ours, theirs) in enumerate(zip(compiled(x, y), expected, strict=True)):
        assert np.array_equal(ours, np.broadcast_to(np.asarray(theirs.node), x.shape)), (width, number)


def pieces(found: Bits) -> list[Bits]:
    return [found.extract(min(low + 63, found.width - 1), low) for low in range(0, found.width, 64)]


def test_a_wrong_bound_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    trim = code.CodeWords._trim
    monkeypatch.setattr(
        code.CodeWords, "_trim", lambda self, text, width, most, *rest: trim(self, text, width, 0, *rest)
    )
    with pytest.raises(AssertionError):
        test_operations(7, 7)


# -- whole models

MODELS = {
    "fused": "hopper/mma/m16n8k16.f32.f16.f16.f32@length=4",
    "e4m3": "ada-lovelace/mma/m16n8k16.f32.e4m3.e5m2.f32@length=4",
    "fnuz": "cdna3/mfma/f32_16x16x32_fp8_fp8@length=4,block=4",
    "late": "cdna3/mfma/f32_16x16x16_f16@length=4,block=4",
    "flushing after": "cdna2/mfma/f32_32x32x8f16@length=4",
    "flushing before": "x86/avx512/vdpbf16ps",
    "f64": "ampere/mma/m8n8k4.f64.f64.f64.f64",
    "to odd": "arm/neon/bfdot",
    "exact in 182 bits": "cdna1/mfma/f32_32x32x4f16",
    "exact in 524 bits": "cdna1/mfma/f32_32x32x2bf16",
}


def by_arrays(model: Model, a: Patterns, b: Patterns, c: Patterns) -> Patterns:
    """What `tile` gives."""
    rows, columns = c.shape
    found = evaluate_batch(model, np.repeat(a, columns, 0), np.tile(b.T, (rows, 1)), c.ravel())
    return found.reshape(rows, columns)


def patterns(rng: np.random.Generator, fmt: Any, shape: tuple[int, ...], special: bool) -> Patterns:
    """Numbers near one and of every kind; half the lines without NaNs and infinities, unless none is `special`."""
    width, fraction = fmt.width, np.uint64(fmt.fraction + fmt.padding)
    drawn = rng.integers(0, 1 << 63, shape, dtype=np.uint64) >> np.uint64(63 - width) if width < 64 else (
        rng.integers(0, 1 << 63, shape, dtype=np.uint64) * np.uint64(2) + rng.integers(0, 2, shape, dtype=np.uint64)
    )  # fmt: skip
    field = np.uint64((1 << fmt.exponent) - 1) << fraction
    near = rng.integers(max(1, fmt.bias - 4), fmt.bias + 5, shape, dtype=np.uint64) << fraction
    plain = np.where(rng.random(shape) < 0.2, drawn & ~field, drawn & ~field | near)
    found = np.where((rng.random(shape) < 0.05) & special, drawn | field, plain)
    return found >> np.uint64(fmt.padding) << np.uint64(fmt.padding)


@pytest.mark.parametrize("name", MODELS)
def test_rows_and_columns_with_and_without_specials(name: str) -> None:
    model, rng = parse_reference(MODELS[name]), np.random.default_rng(7)
    compiled = compile_model(model)
    assert compiled is not None
    for special in (False, True):
        a, b, c = (
            patterns(rng, fmt, shape, special)
            for fmt, shape in ((model.a, (9, model.length)), (model.b, (model.length, 700)), (model.c, (9, 700)))
        )
        assert np.array_equal(compiled.tile(a, b, c), by_arrays(model, a, b, c))


@pytest.mark.parametrize("name", ["flushing before", "flushing after"])
def test_results_at_the_least_normal_number(name: str) -> None:
    """One product of numbers near 2^-64 and an addend near 2^-126, with long runs of ones: a result that rounds up to
    the least normal number is where flushing before and after rounding differ."""
    model, rng = parse_reference(MODELS[name]), np.random.default_rng(11)
    compiled = compile_model(model)
    assert compiled is not None
    count = model.length

    def near(fmt: Any, shape: tuple[int, ...], low: int, high: int) -> Patterns:
        exponent = rng.integers(low + fmt.bias, high + fmt.bias, shape, dtype=np.uint64) << np.uint64(fmt.fraction)
        fraction = rng.integers(0, 1 << fmt.fraction, shape, dtype=np.uint64)
        ones = np.where(rng.random(shape) < 0.4, np.uint64((1 << fmt.fraction) - 1), fraction)
        return exponent | ones | rng.integers(0, 2, shape, dtype=np.uint64) << np.uint64(fmt.width - 1)

    if name == "flushing after":  # products of f16 numbers do not come near: the addends alone do
        a, b = (np.zeros(shape, np.uint64) for shape in ((64, count), (count, 512)))
        a[:, 0], b[0] = near(model.a, (64,), -14, -10), 1
    else:
        a, b = near(model.a, (64, count), -66, -62), near(model.b, (count, 512), -66, -60)
        a[:, 1:] = 0
    c = near(model.c, (64, 512), -126, -123)
    c = np.where(rng.random(c.shape) < 0.4, c & np.uint64(0x807FFFFF), c)
    found, expected = compiled.tile(a, b, c), by_arrays(model, a, b, c)
    assert np.array_equal(found, expected)
    least = np.uint64(1 << model.d.fraction)
    assert ((expected & np.uint64(0x7FFFFFFF)) <= least).any()


def test_the_processor_adds_and_nothing_else_does() -> None:
    assert "fma64(" in c_source(parse_reference(MODELS["f64"])).partition("static __attribute__")[2]
    assert "fma32(" not in c_source(parse_reference(MODELS["fused"])).partition("static __attribute__")[2]
    assert "zeros32(" not in c_source(parse_reference("ieee/fma/f32")).partition("static __attribute__")[2]


def ends_of(fmt: Format) -> Patterns:
    """Zeros, the ends of subnormal and normal numbers, infinity and NaNs, of both signs."""
    one, top = 1 << fmt.fraction, ((1 << fmt.exponent) - 1) << fmt.fraction
    found = [x << fmt.padding for x in (0, 1, one - 1, one, top - 1, top, top + 1, top + one - 1)]
    return np.array([x | sign for x in found for sign in (0, fmt.sign_bit)], dtype=np.uint64)


@pytest.mark.parametrize("names", ["e8m13 f32 f32", "bf16 tf32 f32", "f32 f64 f64", "bf16 f64 f64", "f32 f32 f64"])
def test_the_processor_adds_numbers_of_narrower_formats(names: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any patterns, bits that a format ignores among them; no number is normalised on the way. What NumPy does, the
    machine of recorded calls does after some runs."""
    monkeypatch.setattr(recording, "BUILT", -1)
    *given, to = (FORMATS[name] for name in names.split())
    added = Elementwise(
        Round(ExactSum(tuple(Given(slot, fmt) for slot, fmt in enumerate(given))), Rounding(to)), tuple(given)
    )
    rng, sides = np.random.default_rng(3), []
    for fmt, repeated in zip(given, (np.repeat, np.tile), strict=True):
        ignored = rng.integers(0, 1 << fmt.padding, 1000, dtype=np.uint64)
        some, ends = patterns(rng, fmt, (1000,), True) | ignored, ends_of(fmt)
        sides.append(np.concatenate([some, repeated(ends, len(ends))]).reshape(8, -1))
    expected, compiled = added.of(sides), compile_lanes(added, tuple(fmt.width for fmt in given))
    assert compiled is not None
    assert np.array_equal(compiled(*sides)[0], expected)
    for _ in range(WORTH):
        assert np.array_equal(added.of(sides), expected)
    carrier = CodeCarrier()
    (result,) = added(*(carrier.input(f"x{slot}", fmt.width, INNER) for slot, fmt in enumerate(given)))
    texts = [text for _, text in needed_statements(carrier, [result.node])]
    assert any("fma" in text for text in texts)
    assert not any("zeros" in text for text in texts)


def test_the_machine_is_built_for_many_calls_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build takes longer than all calls of most commands."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    is_built.cache_clear()
    monkeypatch.setattr(Program, "_lanes", 0)
    recorder = Recorder([np.dtype(np.uint64)])
    program, lanes = Program(recorder, [recorder.slot(recorder.lanes[0] + recorder.lanes[0])]), np.arange(8, dtype="u8")
    try:
        for _ in range(2 * WORTH):
            assert np.array_equal(program.run([lanes])[0], lanes + lanes)
        assert program._machine is None
        monkeypatch.setattr(recording, "BUILT", Program._lanes - 1)
        assert np.array_equal(program.run([lanes])[0], lanes + lanes)
        assert program._machine is not None
    finally:
        is_built.cache_clear()


def test_strips_of_few_columns_have_more_rows() -> None:
    """No result depends on it, and every row is counted."""
    model, rng, counted = parse_reference("ieee/fma/f32"), np.random.default_rng(4), list[tuple[int, int]]()
    a, b, c = (patterns(rng, model.a, shape, True) for shape in ((300, 5), (5, 3), (300, 3)))
    expected = simulate(a, b, c, model, engine="numpy")
    for threads in (1, 2):
        found = simulate(a, b, c, model, engine="compiled", threads=threads, progress=lambda *x: counted.append(x))
        assert np.array_equal(found, expected)
    assert counted == [(300, 300), (150, 300), (300, 300)]


@pytest.mark.parametrize(
    ("shape", "length", "block"),
    [
        ((4096, 4096), 4096, BLOCK),
        ((300, 3), 5, (150, 436)),
        ((1, 9000), 64, (1, 65536)),
        ((9000, 9000), 1 << 20, (64, 64)),
    ],
)
def test_blocks_have_a_size_that_memory_holds(shape: tuple[int, int], length: int, block: tuple[int, int]) -> None:
    assert block_of(shape, length, 2) == block


def c_library(name: str) -> Any:
    path = ctypes.util.find_library(name)
    return None if path is None else ctypes.CDLL(path)


def test_the_mode_of_the_thread_does_not_matter() -> None:
    """A library that sets the rounding direction, or flushing, changes nothing, and finds its mode as it left it."""
    libm = c_library("m")
    if libm is None or not Path("/proc").exists():
        pytest.skip("no fesetround by that number")
    model, rng = parse_reference(MODELS["f64"]), np.random.default_rng(2)
    compiled: CompiledModel | None = compile_model(model)
    assert compiled is not None
    a, b, c = (patterns(rng, model.a, shape, False) for shape in ((3, model.length), (model.length, 70), (3, 70)))
    before, up = compiled.tile(a, b, c), {"x86_64": 0x800, "aarch64": 0x400000}[platform.machine()]
    assert libm.fesetround(up) == 0
    try:
        during, mode = compiled.tile(a, b, c), libm.fegetround()
    finally:
        libm.fesetround(0)
    assert np.array_equal(before, during)
    assert mode == up


def test_scale_factors() -> None:
    """NaNs among the factors of some rows and columns too; ue4m3 has them, and e2m1 has none."""
    model = parse_reference("blackwell/tcgen05mma_block_scale/m64n8k64.block16.f32.e2m1.e2m1.ue4m3@length=32,block=32")
    compiled, rng = compile_model(model), np.random.default_rng(4)
    assert compiled is not None
    rows, columns, k, s = 7, 300, model.length, model.scales
    a, b = (rng.integers(0, 16, shape, dtype=np.uint64) for shape in ((rows, k), (k, columns)))
    c = patterns(rng, model.c, (rows, columns), special=True)
    p, q = (np.where(rng.random(x.shape) < 0.1, np.uint64(0x7F), x) for x in (
        rng.integers(0, 0x7F, shape, dtype=np.uint64) for shape in ((rows, s), (s, columns))
    ))  # fmt: skip
    found = compiled.tile(a, b, c, p, q)
    spread = (np.repeat(a, columns, 0), np.tile(b.T, (rows, 1)), c.ravel())
    expected = evaluate_batch(model, *spread, np.repeat(p, columns, 0), np.tile(q.T, (rows, 1)))
    assert np.array_equal(found, expected.reshape(rows, columns))
    with pytest.raises(ValueError, match="do not fit"):
        compiled.tile(a, b, c)


#: a model of every family of the table, and of every kind of step that unit files have besides
FAMILIES = (
    "hopper/mma/m16n8k16.f32.f16.f16.f32",
    "hopper/mma/m16n8k32.f32.e4m3.e5m2.f32",
    "hopper/wgmma/m64n8k32.f32.e4m3.e4m3",
    "ampere/mma/m16n8k8.f32.tf32.tf32.f32",
    "ampere/mma/m16n8k16.f16.f16.f16.f16",
    "blackwell/tcgen05mma_block_scale/m64n8k32.block32.f32.e4m3.e2m1.ue8m0",
    "blackwell/tcgen05mma_block_scale/m64n8k64.block16.f32.e2m1.e2m1.ue4m3",
    "ampere/mma/m8n8k4.f64.f64.f64.f64",
    "cdna1/mfma/f32_32x32x4f16",
    "cdna1/mfma/f32_32x32x2bf16",
    "cdna2/mfma/f32_32x32x8f16",
    "cdna3/mfma/f32_16x16x16_f16",
    "cdna3/mfma/f32_16x16x32_fp8_bf8",
    "arm/neon/bfdot",
    "rdna3.5/wmma/f32_16x16x16_bf16",
    "rdna4/wmma/f32_16x16x16_f16",
    "x86/amx/tdpbf16ps",
)


@pytest.mark.slow
@pytest.mark.parametrize("reference", FAMILIES)
def test_ten_million_outputs(reference: str) -> None:
    """Half of them of numbers near one, where terms cancel and meet, half of any patterns."""
    model, rng, rows, columns = parse_reference(reference), np.random.default_rng(17), 250, 2000
    k, s, scale = model.length, model.scales, model.scale
    for turn in range(20):
        shapes = ((model.a, (rows, k)), (model.b, (k, columns)), (model.c, (rows, columns)))
        sides = [patterns(rng, fmt, shape, turn % 4 == 0) for fmt, shape in shapes]
        if turn % 2:
            sides = [rng.integers(0, 1 << fmt.width, shape, dtype=np.uint64, endpoint=False) if fmt.width < 64
                     else rng.integers(0, (1 << 64) - 1, shape, dtype=np.uint64, endpoint=True)
                     for fmt, shape in shapes]  # fmt: skip
        factors = {} if scale is None else {
            "scale_a": rng.integers(0, 1 << scale.width, (rows, s), dtype=np.uint64),
            "scale_b": rng.integers(0, 1 << scale.width, (s, columns), dtype=np.uint64),
        }  # fmt: skip
        compiled, arrays = (
            simulate(*sides, model, engine=engine, threads=1, scales=factors)  # type: ignore[arg-type]
            for engine in ("compiled", "numpy")
        )
        assert np.array_equal(compiled, arrays)
