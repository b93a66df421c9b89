"""Records what the libraries of a GPU give for matrix products, for the search of their plans where no GPU is.

    python -m benchmarks.gpu_gemm FOLDER [--seconds 240] [--workers 6] [--device cuda] [--kinds f16,...]

Needs NumPy and PyTorch, and CuPy, JAX or Triton for the names that begin with them; nothing of this project but the
kernel of examples/triton_device.py. Every product of
`KINDS` (or those named) writes FOLDER/NAME.npz and NAME.json, whole at any moment: an error, or the end of the time,
loses what was not yet asked. Of each shape:

- random: results at some rows and columns of random matrices (`Inputs`), of which the rest is zero;
- masked: how many units are left where a mask at place i and its negative at place j of K cancel each other;
- names of the kernels that ran, as PyTorch's profiler gives them.

`read` gives the records of a file back.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]
LOOKED = 6  # rows, and columns, of which results are kept
UNITS = 256  # places that hold a unit in a masked question, at most: a sum of more is not exact in eight bits
ANCHORS = 6  # places of the first mask
PARTNERS = 512  # places of the second mask, for each of the first ones, at most
SIDES = ((1, 1), (1, 4096), (4096, 1), (8, 4096), (16, 16), (64, 64), (128, 128), (256, 256), (128, 4096), (512, 512),
         (1024, 1024), (4096, 128), (2048, 2048), (4096, 4096))  # fmt: skip
LENGTHS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
ODD_SIDES = ((17, 33), (100, 100), (1000, 1000), (64, 64), (128, 128))
ODD_LENGTHS = (17, 24, 33, 40, 72, 100, 200, 1000, 1001, 4097, 5000)
MASKED_SIDES = (
    (128, 128),
    (1024, 1024),
    (16, 16),
    (256, 256),
    (4096, 128),
    (1, 4096),
    (4096, 1),
    (64, 64),
    (4096, 4096),
)
MASKED_LENGTHS = (64, 512, 2048, 8192)
RANDOM = 240  # random shapes


@dataclass(frozen=True)
class Numeric:
    """Numbers that are asked in a format: `bits` of the significand, of which one is implied; powers of two of the mask
    and of the unit in a question, of both factors together (`split`: both are halved between a and b); `centre` and
    `spread`: exponents of random numbers whose sum cancels."""

    bits: int
    mask: int
    unit: int
    centre: int
    spread: int
    split: bool = False


NUMERICS = {
    "f16": Numeric(11, 15, -18, 2, 3),
    "bf16": Numeric(8, 60, 0, 2, 3),
    "f32": Numeric(24, 60, 0, 2, 3),
    "f64": Numeric(53, 300, 0, 2, 3),
    "e4m3": Numeric(4, 16, -18, 1, 3, split=True),
    "e5m2": Numeric(3, 28, -18, 1, 3, split=True),
}


@dataclass(frozen=True)
class Kind:
    """A product that is recorded: a format of the factors (as NUMERICS has it) and one of the result, and how a library
    is asked: `call` with its `options` (`Torch.multiply`), PyTorch's `flags`, whether the sides are multiples of 16."""

    given: str
    result: str
    call: str = "mm"
    flags: tuple[tuple[str, object], ...] = ()
    aligned: bool = False
    options: tuple[Any, ...] = ()


def _triton(given: str, result: str, *options: Any) -> Kind:
    """A kernel with tiles of so many products of K, input_precision and max_num_imprecise_acc of `tl.dot`."""
    return Kind(given, result, "triton", options=(*options, None, None)[:3])


def _flag(name: str, value: object) -> tuple[tuple[str, object], ...]:
    return ((name, value),)


KINDS = {
    "f16": Kind("f16", "f16"),
    "bf16": Kind("bf16", "bf16"),
    "f16-f32": Kind("f16", "f32", "mm_f32"),
    "bf16-f32": Kind("bf16", "f32", "mm_f32"),
    "tf32": Kind("f32", "f32", flags=_flag("allow_tf32", True)),
    "f32": Kind("f32", "f32", flags=_flag("allow_tf32", False)),
    "f64": Kind("f64", "f64"),
    "fp8-fast": Kind("e4m3", "f32", "scaled_fast", aligned=True),
    "fp8": Kind("e4m3", "f32", "scaled", aligned=True),
    "fp8-bf16-fast": Kind("e4m3", "bf16", "scaled_fast", aligned=True),
    "fp8-bf16": Kind("e4m3", "bf16", "scaled", aligned=True),
    "fp8-rows-fast": Kind("e4m3", "bf16", "scaled_rows_fast", aligned=True),
    "fp8-rows": Kind("e4m3", "bf16", "scaled_rows", aligned=True),
    "f16-whole": Kind("f16", "f16", flags=_flag("allow_fp16_reduced_precision_reduction", False)),
    "bf16-whole": Kind("bf16", "bf16", flags=_flag("allow_bf16_reduced_precision_reduction", False)),
    "f16-linear": Kind("f16", "f16", "linear"),
    "bf16-linear": Kind("bf16", "bf16", "linear"),
    "f16-addmm": Kind("f16", "f16", "addmm"),
    "f16-in-f16": Kind("f16", "f16", flags=_flag("allow_fp16_accumulation", True)),
    "cupy-f16": Kind("f16", "f16", "cupy"),
    "cupy-f32": Kind("f32", "f32", "cupy"),
    "cupy-f64": Kind("f64", "f64", "cupy"),
    "triton-f16": _triton("f16", "f32", 64),
    "triton-f16-in-f16": _triton("f16", "f16", 64),
    "triton-bf16": _triton("bf16", "f32", 64),
    "triton-tf32": _triton("f32", "f32", 32, "tf32"),
    "triton-tf32x3": _triton("f32", "f32", 32, "tf32x3"),
    "triton-bf16x3": _triton("f32", "f32", 32, "bf16x3"),
    "triton-bf16x6": _triton("f32", "f32", 32, "bf16x6"),
    "triton-ieee": _triton("f32", "f32", 32, "ieee"),
    "triton-f64": _triton("f64", "f64", 16),
    "triton-e4m3": _triton("e4m3", "f32", 128),
    "triton-e4m3-0": _triton("e4m3", "f32", 128, None, 0),
    "triton-e4m3-32": _triton("e4m3", "f32", 128, None, 32),
    "triton-e4m3-128": _triton("e4m3", "f32", 128, None, 128),
    "triton-e5m2": _triton("e5m2", "f32", 128),
    "jax-f16": Kind("f16", "f16", "jax"),
    "jax-bf16": Kind("bf16", "bf16", "jax"),
    "jax-f16-f32": Kind("f16", "f32", "jax"),
    "jax-f32": Kind("f32", "f32", "jax"),
    "jax-f32-highest": Kind("f32", "f32", "jax", options=("highest",)),
    "jax-f64": Kind("f64", "f64", "jax"),
}  # fmt: skip


# -- inputs, which the one who reads the records makes again


class Inputs:
    """Random numbers from raw 64-bit words, which are the same in every version of NumPy."""

    def __init__(self, seed: int) -> None:
        self.bits = np.random.PCG64(seed)

    def numbers(self, numeric: Numeric, size: tuple[int, int], centre: int, spread: int) -> Numbers:
        """Numbers of `numeric.bits` bits with a random sign, exponents from centre - spread to centre + spread."""
        words = self._words(size[0] * size[1])
        whole = (words >> np.uint64(65 - numeric.bits)).astype(np.float64)
        exponents = ((words >> np.uint64(1)) & np.uint64(0x7FF)).astype(np.int64) % (2 * spread + 1) + centre - spread
        signs = 1 - 2 * (words & np.uint64(1)).astype(np.float64)
        found: Numbers = signs * np.ldexp(1 + np.ldexp(whole, 1 - numeric.bits), exponents)
        return found.reshape(size)

    def order(self, count: int) -> Places:
        found: Places = np.argsort(self._words(count), kind="stable")
        return found

    def _words(self, count: int) -> NDArray[np.uint64]:
        return np.asarray(self.bits.random_raw(count), dtype=np.uint64).reshape(count)


def random_factors(numeric: Numeric, length: int, cancels: bool, seed: int) -> tuple[Numbers, Numbers]:
    """Rows of a (LOOKED x K) and columns of b (K x LOOKED). With `cancels` the products come in pairs whose sum is
    zero, so that the result consists of rounding errors."""
    inputs = Inputs(seed)
    centre, spread = (numeric.centre, numeric.spread) if cancels else (0, 2)
    a = inputs.numbers(numeric, (LOOKED, length), centre, spread)
    b = inputs.numbers(numeric, (length, LOOKED), centre, spread)
    if cancels:
        order, half = inputs.order(length), length // 2
        one, other, rest = order[:half], order[half : 2 * half], order[2 * half :]
        a[:, other], b[other] = a[:, one], -b[one]
        b[rest] = 0
    return a, b


def places(side: int, seed: int) -> Places:
    """The rows, or columns, that are kept: the first, the last two and some between."""
    words = np.asarray(np.random.PCG64(seed).random_raw(LOOKED - 3), dtype=np.uint64)
    between = (words % np.uint64(side)).astype(np.int64)
    return np.unique(np.concatenate([[0, side - 1, max(0, side - 2)], between]))


def unit_places(length: int) -> Places:
    """The places of K that hold a unit in masked questions."""
    return np.arange(0, length, -(-length // UNITS))


def masked_pairs(length: int) -> tuple[Places, Places]:
    """The places (anchors) of a mask and, for each of them in turn, those (partners) of its negative."""
    anchors = np.unique(np.linspace(0, length - 1, ANCHORS).astype(np.int64))
    partners = np.unique(np.linspace(0, length - 1, min(length, PARTNERS)).astype(np.int64))
    return np.repeat(anchors, len(partners)), np.tile(partners, len(anchors))


def shapes(kind: Kind) -> list[tuple[int, int, int]]:
    """The shapes (M, N, K) of random products, in the order in which they are asked."""
    random = _random_shapes(kind.aligned)
    fixed = [(m, n, k) for k in LENGTHS for m, n in SIDES]
    odd = [(m, n, k) for k in ODD_LENGTHS for m, n in ODD_SIDES]
    every = [*random[:60], *fixed, *([] if kind.aligned else odd), *random[60:]]
    least = 16 if kind.aligned else 1
    return list(dict.fromkeys((max(m, least), max(n, least), max(k, least)) for m, n, k in every))


def _random_shapes(aligned: bool) -> list[tuple[int, int, int]]:
    words = np.asarray(np.random.PCG64(7).random_raw(4 * RANDOM), dtype=np.uint64).reshape(RANDOM, 4)
    unit = (words[:, :3] >> np.uint64(11)).astype(np.float64) / 2**53
    sides = np.exp(unit * np.log([4097, 4097, 16385])).astype(np.int64)
    rounded = np.where((words[:, 3:] & np.uint64(1) == 0) | aligned, -(-sides // 16) * 16, sides)
    return [(int(m), int(n), int(k)) for m, n, k in np.minimum(rounded, [4096, 4096, 16384])]


# -- libraries


class Torch:
    """PyTorch on a device. Matrices are its tensors."""

    def __init__(self, kind: Kind, device: str) -> None:
        self.torch: Any = importlib.import_module("torch")
        self.kind, self.device = kind, device
        torch = self.torch
        self.types = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}
        self.types |= {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
        matmul = torch.backends.cuda.matmul
        for name, value in (("allow_tf32", False), *kind.flags):
            setattr(matmul, name, value)
        self.dtype, self.out = self.types[kind.given], self.types[kind.result]

    def tensor(self, numbers: Numbers) -> Any:
        return self.torch.from_numpy(np.ascontiguousarray(numbers)).to(self.device).to(self.dtype)

    def zeros(self, rows: int, columns: int) -> Any:
        return self.torch.zeros((rows, columns), dtype=self.dtype, device=self.device)

    def put(self, matrix: Any, rows: Any, columns: Any, values: Any) -> None:
        """Set elements. One byte types are set as bytes."""
        if matrix.element_size() == 1:
            matrix, values = matrix.view(self.torch.uint8), values.view(self.torch.uint8)
        matrix[rows, columns] = values

    def multiply(self, a: Any, b: Any) -> Any:
        torch, kind = self.torch, self.kind
        match kind.call:
            case "mm":
                return torch.mm(a, b)
            case "mm_f32":
                return torch.mm(a, b, out_dtype=torch.float32)
            case "linear":  # b as weights: N x K
                return torch.nn.functional.linear(a, b.t().contiguous())
            case "addmm":
                return torch.addmm(torch.zeros(b.shape[1], dtype=a.dtype, device=a.device), a, b)
            case "cupy":
                cupy = importlib.import_module("cupy")
                return torch.from_dlpack(cupy.matmul(cupy.from_dlpack(a), cupy.from_dlpack(b)))
            case "triton":
                triton = importlib.import_module("examples.triton_device")
                d = torch.empty((len(a), b.shape[1]), dtype=self.out, device=a.device)
                return triton.product(a, b, d, *kind.options)
            case "jax":
                jax = importlib.import_module("jax")
                jax.config.update("jax_enable_x64", True)
                given = map(jax.dlpack.from_dlpack, (a, b.contiguous()))
                kept = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}[kind.result]
                d = jax.numpy.matmul(*given, precision=(*kind.options, None)[0], preferred_element_type=kept)
                return torch.from_dlpack(d)
        rows = kind.call.startswith("scaled_rows")
        ones = [torch.ones(size, dtype=torch.float32, device=a.device)
                for size in (((len(a), 1), (1, b.shape[1])) if rows else ((), ()))]  # fmt: skip
        columns = b.t().contiguous().t()
        return torch._scaled_mm(
            a, columns, scale_a=ones[0], scale_b=ones[1], out_dtype=self.out, use_fast_accum=kind.call.endswith("fast")
        )

    def patterns(self, d: Any) -> NDArray[Any]:
        size = d.element_size()
        whole = {1: self.torch.uint8, 2: self.torch.int16, 4: self.torch.int32, 8: self.torch.int64}[size]
        found: NDArray[Any] = d.contiguous().view(whole).cpu().numpy().view(f"u{size}")
        return found

    def numbers(self, d: Any) -> Numbers:
        found: Numbers = d.to(self.torch.float64).cpu().numpy()
        return found

    def kernels(self, calls: Sequence[Callable[[], object]]) -> list[list[str]]:
        """The names of the kernels that each call starts."""
        profiler = importlib.import_module("torch.profiler")
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA]) as run:
            for number, call in enumerate(calls):
                with profiler.record_function(f"shape {number}"):
                    call()
            if self.device != "cpu":
                self.torch.cuda.synchronize()
        found: list[list[str]] = [[] for _ in calls]
        events = list(run.events())
        spans = {event.name: event.time_range for event in events
                 if event.name.startswith("shape ") and "CPU" in str(event.device_type)}  # fmt: skip
        for event in events:
            for kernel in getattr(event, "kernels", []):
                for number in range(len(calls)):
                    span = spans.get(f"shape {number}")
                    if span and span.start <= event.time_range.start and event.time_range.end <= span.end:
                        name = str(kernel.name)
                        if name not in found[number]:
                            found[number].append(name)
        return found


# -- records


@dataclass
class Record:
    """What was asked of one kind. `random`: by shape, results of plain and of cancelling factors (patterns, 2 x rows x
    columns, as `places` has them), `again`: whether a second call gave the same; `masked`: by shape, the units left
    for each pair, -1 where the result is no number of units, -2 where it was not asked; `columns`: whether all columns
    (or rows) of those products were the same; `kernels`: names by shape."""

    kind: str
    random: dict[str, NDArray[Any]] = field(default_factory=dict)
    again: dict[str, bool] = field(default_factory=dict)
    masked: dict[str, NDArray[Any]] = field(default_factory=dict)
    columns: dict[str, bool] = field(default_factory=dict)
    kernels: dict[str, list[str]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    about: dict[str, object] = field(default_factory=dict)
    seconds: float = 0

    def write(self, folder: Path) -> None:
        arrays = {f"random {name}": value for name, value in self.random.items()}
        arrays |= {f"masked {name}": value for name, value in self.masked.items()}
        _whole(folder / f"{self.kind}.npz", lambda path: np.savez_compressed(path, **arrays))  # type: ignore[arg-type]
        document = {"kind": self.kind, "about": self.about, "errors": self.errors, "seconds": self.seconds,
                    "again": self.again, "columns": self.columns, "kernels": self.kernels}  # fmt: skip
        _whole(folder / f"{self.kind}.json", lambda path: path.write_text(json.dumps(document)))


def _whole(path: Path, write: Callable[[Path], object]) -> None:
    new = path.with_name(f"new-{path.name}")
    write(new)
    new.replace(path)


def read(folder: Path, kind: str) -> Record:
    """The records of one kind."""
    document = json.loads((folder / f"{kind}.json").read_text())
    record = Record(**document)
    with np.load(folder / f"{kind}.npz") as arrays:
        for name in arrays.files:
            what, shape = name.split(" ", 1)
            (record.random if what == "random" else record.masked)[shape] = arrays[name]
    return record


def named(shape: tuple[int, int, int]) -> str:
    return ",".join(map(str, shape))


class Recorder:
    """Asks one kind until a deadline, in seconds of time.monotonic()."""

    def __init__(self, name: str, folder: Path, device: str, deadline: float, largest: int) -> None:
        self.kind, self.folder, self.deadline, self.largest = KINDS[name], folder, deadline, largest
        self.record, self.numeric = Record(name), NUMERICS[self.kind.given]
        self.library = Torch(self.kind, device)

    def run(self) -> Record:
        begun = time.monotonic()
        every = [shape for shape in shapes(self.kind) if np.prod(shape) <= self.largest]
        least = 16 if self.kind.aligned else 1
        probed = [(max(m, least), max(n, least), k) for k in MASKED_LENGTHS for m, n in MASKED_SIDES]
        probed = [shape for shape in probed if np.prod(shape) <= self.largest]
        with self.kept("about"):
            self.record.about = self.about()
        steps: list[tuple[str, Callable[[], None]]] = []
        steps += [(f"random {named(shape)}", partial(self.random, shape)) for shape in every[:60]]
        steps += [(f"masked {named(shape)}", partial(self.masked, shape)) for shape in probed[:6]]
        steps += [(f"random {named(shape)}", partial(self.random, shape)) for shape in every[60:]]
        steps += [(f"kernels {n}", partial(self.kernels, every[n : n + 40])) for n in range(0, len(every), 40)]
        steps += [(f"masked {named(shape)}", partial(self.masked, shape)) for shape in probed[6:]]
        failures = 0
        written = time.monotonic()
        for what, step in steps:
            if time.monotonic() > self.deadline or failures > 40:
                break
            before = len(self.record.errors)
            with self.kept(what):
                step()
            failures += len(self.record.errors) > before
            if time.monotonic() > written + 10:
                self.record.write(self.folder)
                written = time.monotonic()
        self.record.seconds = round(time.monotonic() - begun, 1)
        self.record.write(self.folder)
        return self.record

    @contextlib.contextmanager
    def kept(self, what: str) -> Iterator[None]:
        """An error is written down, and the next thing is asked."""
        try:
            yield
        except Exception as error:  # whatever a library raises
            text = f"{type(error).__name__}: {error}"
            self.record.errors.append(f"{what}: {text[:300]}")
            if len(self.record.errors) == 1:
                self.record.errors.append(traceback.format_exc()[-1500:])

    def about(self) -> dict[str, object]:
        torch = self.library.torch
        found: dict[str, object] = {"torch": torch.__version__, "numpy": np.__version__, "cuda": torch.version.cuda}
        if self.library.device != "cpu":
            found["gpu"] = torch.cuda.get_device_name()
            found["capability"] = list(torch.cuda.get_device_capability())
        if self.kind.call in ("jax", "triton"):
            found[self.kind.call] = importlib.import_module(self.kind.call).__version__
        if self.kind.call == "cupy":
            cupy = importlib.import_module("cupy")
            found["cupy"] = cupy.__version__
            found["cublas"] = cupy.cuda.cublas.getVersion(cupy.cuda.device.get_cublas_handle())
        return found

    def random(self, shape: tuple[int, int, int]) -> None:
        rows, columns, length = shape
        library = self.library
        i, j = (library.torch.from_numpy(x).to(library.device) for x in (places(rows, 1), places(columns, 2)))
        found, again = [], True
        for cancels in (False, True):
            numbers = random_factors(self.numeric, length, cancels, length)
            left, right = library.zeros(rows, length), library.zeros(length, columns)
            library.put(left, i, slice(None), library.tensor(numbers[0][: len(i)]))
            library.put(right, slice(None), j, library.tensor(numbers[1][:, : len(j)]))
            one, other = (library.patterns(library.multiply(left, right)[i][:, j]) for _ in range(2))
            again &= bool((one == other).all())
            found.append(one)
        self.record.random[named(shape)] = np.array(found)
        self.record.again[named(shape)] = again

    def masked(self, shape: tuple[int, int, int]) -> None:
        rows, columns, length = shape
        numeric, library, torch = self.numeric, self.library, self.library.torch
        both, by_rows = numeric.split, numeric.split or rows >= columns
        most = min(rows, columns) if both else max(rows, columns)
        first, second = masked_pairs(length)
        units = torch.from_numpy(unit_places(length)).to(library.device)
        share = 2 if both else 1
        mask, unit = (2.0 ** (power // share) for power in (numeric.mask, numeric.unit))

        def side(count: int, height: int, signed: bool, asks: bool, at: slice) -> Any:
            """Masked factors in the first `count` rows (of `height`); ones, if this side asks nothing."""
            given = library.zeros(height, length)
            value = library.tensor(np.array([[mask, -mask, unit, 1.0]]))[0]
            if not asks:
                library.put(given, slice(None), slice(None), value[3:].expand(height, length).contiguous())
                return given
            which = torch.arange(count, device=library.device)
            one, other = (torch.from_numpy(x[at]).to(library.device) for x in (first, second))
            library.put(given, which[:, None], units[None, :], value[2:3].expand(count, len(units)).contiguous())
            library.put(given, which, one, value[0:1].expand(count).contiguous())
            library.put(given, which, other, value[int(signed) : int(signed) + 1].expand(count).contiguous())
            return given

        left_counts = np.full(len(first), -2, dtype=np.int32)
        alike = True
        for start in range(0, len(first), most):
            if time.monotonic() > self.deadline:
                break
            at = slice(start, min(start + most, len(first)))
            count = at.stop - at.start
            a = side(count, rows, True, both or by_rows, at)
            b = side(count, columns, not both, both or not by_rows, at).t().contiguous()
            d = library.multiply(a, b)
            if both:
                which = torch.arange(count, device=library.device)
                got = library.numbers(d[which, which])
            else:
                d = d if by_rows else d.t()
                alike &= bool((d[:count] == d[:count, :1]).all())
                got = library.numbers(d[:count, 0])
            with np.errstate(invalid="ignore"):
                number = got / 2.0**numeric.unit
                known = np.isfinite(number) & (np.abs(number) <= length) & (number == np.round(number))
            left_counts[at] = np.where(known, np.nan_to_num(number), -1).astype(np.int32)
        self.record.masked[named(shape)] = left_counts
        self.record.columns[named(shape)] = alike

    def kernels(self, some: Sequence[tuple[int, int, int]]) -> None:
        most = max(max(m * k, k * n) for m, n, k in some)
        pool = self.library.zeros(1, most)[0]

        def call(shape: tuple[int, int, int]) -> Callable[[], object]:
            m, n, k = shape
            return lambda: self.library.multiply(pool[: m * k].view(m, k), pool[: k * n].view(k, n))

        names = self.library.kernels([call(shape) for shape in some])
        self.record.kernels |= {named(shape): name for shape, name in zip(some, names, strict=True)}


# -- all kinds


def line(record: Record) -> str:
    """What came out of one kind, in a line."""
    names = {name for every in record.kernels.values() for name in every}
    differing = sum(not same for same in record.again.values())
    text = f"{record.kind:<16}{len(record.random):>7}{differing:>8}{len(record.masked):>8}{len(names):>9}"
    return f"{text}{len(record.errors):>8}{record.seconds:>9}  {record.errors[0][:70] if record.errors else ''}"


def work(names: Sequence[str], folder: Path, device: str, until: float, largest: int) -> None:
    """One process: its kinds, one after another, each with its share of the time."""
    with contextlib.suppress(ImportError):  # which takes long, and is no kind's time
        importlib.import_module("torch.profiler")
    for number, name in enumerate(names):
        share = (until - time.time()) / (len(names) - number)
        try:
            record = Recorder(name, folder, device, time.monotonic() + share, largest).run()
        except Exception as error:  # a library that is missing
            record = Record(name, errors=[f"{type(error).__name__}: {error}"[:300], traceback.format_exc()[-1500:]])
            record.write(folder)
        print(f"{name}: {len(record.random)} random, {len(record.masked)} masked shapes, "
              f"{len(record.errors)} errors, {record.seconds} s", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--largest", type=int, default=1 << 40, help="M * N * K of a shape, at most")
    parser.add_argument(
        "--until", type=float, help=argparse.SUPPRESS
    )  # of one process: the end, in seconds of time.time()
    given = parser.parse_args()
    names = given.kinds.split(",")
    for name in names:
        if name not in KINDS:
            parser.error(f"unknown kind {name}: {', '.join(KINDS)}")
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.until:
        work(names, given.folder, given.device, given.until, given.largest)
        return
    until = time.time() + given.seconds
    environment = {**os.environ, "CUPY_TF32": "0", "PYTORCH_NVML_BASED_CUDA_CHECK": "0",
                   "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # fmt: skip
    module = [sys.executable, "-m", "benchmarks.gpu_gemm", str(given.folder.absolute()), "--kinds"]
    options = ["--device", given.device, "--until", str(until), "--largest", str(given.largest)]
    shares = [names[number :: given.workers] for number in range(min(given.workers, len(names)))]
    root = Path(__file__).parent.parent
    running = [subprocess.Popen([*module, ",".join(share), *options], env=environment, cwd=root) for share in shares]
    for process in running:
        try:
            process.wait(max(1.0, until + 15 - time.time()))
        except subprocess.TimeoutExpired:
            process.kill()
    print(f"{'kind':<16}{'random':>7}{'differ':>8}{'masked':>8}{'kernels':>9}{'errors':>8}{'seconds':>9}")
    for name in names:
        if (given.folder / f"{name}.json").exists():
            print(line(read(given.folder, name)))
        else:
            print(f"{name:<16} nothing came out")


if __name__ == "__main__":
    main()
