"""Models compiled to machine code: the same definition traced through the algebra into C.

Needs a C compiler (`cc`, or the one named by CC); without one, or for vectors beyond 128 bits, `compile_model` gives
None and the array carrier does the work. Libraries are kept in the user's cache folder, named by their source, the
compiler and the processor.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smtmodel.algebra import Bits
from smtmodel.carriers.code import COLUMN, INNER, ROW, CodeCarrier, Name, TooWideError
from smtmodel.dot import Model, evaluate
from smtmodel.folders import cache_folder

FLAGS = ("-O3", "-march=native", "-shared", "-fPIC", "-w")
LONGEST = 8000  # statements: an optimising compiler takes minutes for many more
STRIP = 512  # columns decoded at a time, so that their values stay in the processor's cache

_PROGRAM = """#include <stdint.h>
#define STRIP {strip}
void tile(long rows, long columns, const {ta} *a, const {tb} *b, const {tc} *c, {td} *d) {{
  /* a: rows x {k}; b: {k} x columns; c, d: rows x columns */
  {slots}
  for (long start = 0; start < columns; start += STRIP) {{
    long count = columns - start < STRIP ? columns - start : STRIP;
    for (long j = 0; j < count; j++) {{
{column}
    }}
    for (long i = 0; i < rows; i++) {{
{row}
      const {tc} *cc = c + i * columns + start;
      {td} *dd = d + i * columns + start;
      for (long j = 0; j < count; j++) {{
{inner}
      }}
    }}
  }}
}}
"""

_LANES = """#include <stdint.h>
void lanes(long count, {parameters}) {{
  for (long i = 0; i < count; i++) {{
{body}
  }}
}}
"""


def c_source(model: Model) -> str:
    """The C of one chained step over a tile of outputs. Raises TooWideError."""
    carrier = CodeCarrier()
    k = model.length
    a = [carrier.input(f"a{x}", model.a.width, ROW) for x in range(k)]
    b = [carrier.input(f"b{x}", model.b.width, COLUMN) for x in range(k)]
    result = evaluate(model, a, b, carrier.input("c0", model.c.width, INNER)).d.node
    statements = _statements(carrier, [result])
    if len(statements) > LONGEST:
        raise TooWideError(f"{len(statements)} statements")
    loops = _Loops(model, statements, result.text)
    kinds = {f"t{side}": _kind(getattr(model, side).width) for side in "abcd"}
    bodies = {name: "\n".join(" " * 8 + line for line in getattr(loops, name)) for name in ("column", "row", "inner")}
    return _PROGRAM.format(strip=STRIP, k=k, slots="\n  ".join(loops.slots), **kinds, **bodies)


class _Loops:
    """The statements sorted into the loops; what the inner loop reads of the column loop waits in arrays (`slots`)."""

    def __init__(self, model: Model, statements: list[tuple[Name, str]], result: str) -> None:
        k, column = model.length, _kind(model.b.width)
        inner_text = " ".join(text for name, text in statements if name.place == INNER)
        self.used = set(_words(f"{inner_text} {result}"))
        self.slots: list[str] = []
        self.column: list[str] = []
        self.row = [f"const {_kind(model.a.width)} a{x} = a[i * {k} + {x}];" for x in range(k)]
        self.inner = [f"const {_kind(model.c.width)} c0 = cc[j];"]
        for x in range(k):
            self._in_column(f"b{x}", column, f"b[{x} * columns + start + j]")
        for name, text in statements:
            if name.place == COLUMN:
                self._in_column(name.text, name.kind, text)
            else:
                loop = self.inner if name.place == INNER else self.row
                loop.append(f"const {name.kind} {name.text} = {text};")
        self.inner.append(f"dd[j] = ({_kind(model.d.width)}){result};")

    def _in_column(self, name: str, kind: str, text: str) -> None:
        self.column.append(f"const {kind} {name} = {text};")
        if name in self.used:
            self.slots.append(f"{kind} s{name}[STRIP];")
            self.column.append(f"s{name}[j] = {name};")
            self.inner.append(f"const {kind} {name} = s{name}[j];")


def _kind(width: int) -> str:
    return "uint32_t" if width <= 32 else "uint64_t"


def _words(text: str) -> list[str]:
    return [word for word in "".join(x if x.isalnum() else " " for x in text).split() if word[0] in "vb"]


def _statements(carrier: CodeCarrier, results: Sequence[Name]) -> list[tuple[Name, str]]:
    """The statements that the results depend on: the signals of the trace that nobody reads are dropped."""
    needed = {result.text for result in results}
    for name, text in reversed(carrier.statements):
        if name.text in needed:
            needed.update(_words(text))
    return [(name, text) for name, text in carrier.statements if name.text in needed]


@cache
def compiler() -> str | None:
    """The C compiler found, if there is one."""
    return shutil.which(os.environ.get("CC", "cc"))


@cache
def _library(source: str) -> Any:
    """The loaded library of a source, built if it is not in the cache; None where that fails."""
    cc = compiler()
    if cc is None:
        return None
    try:
        return ctypes.CDLL(str(kept_build(cc, FLAGS, source, ".so")))
    except (OSError, subprocess.CalledProcessError):
        return None


def kept_build(cc: str, flags: tuple[str, ...], source: str, suffix: str) -> Path:
    """What a compiler makes of a source for this machine, from the cache folder where it is there. Raises OSError or
    CalledProcessError."""
    key = "\0".join((source, cc, " ".join(flags), platform.processor(), platform.machine(), platform.node()))
    path = cache_folder() / "compiled" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}{suffix}"
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        code = Path(folder) / "model.c"
        code.write_text(source, encoding="utf-8")
        built = Path(folder) / "model.so"
        subprocess.run([cc, *flags, "-o", str(built), str(code)], check=True, capture_output=True)
        built.replace(path)  # at once, so that another process never loads half a file
    return path


class CompiledModel:
    """One chained step of a model over tiles of outputs."""

    def __init__(self, model: Model, library: Any) -> None:
        self.model = model
        self._types = [np.dtype(np.uint32 if fmt.width <= 32 else np.uint64) for fmt in self._formats(model)]
        self._function = library.tile
        self._function.restype = None
        self._function.argtypes = [ctypes.c_long, ctypes.c_long, *[ctypes.c_void_p] * 4]

    @staticmethod
    def _formats(model: Model) -> list[Any]:
        return [model.a, model.b, model.c, model.d]

    def tile(self, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
        """d for patterns a (rows x length), b (length x columns) and c (rows x columns), any integer type."""
        left, right, addend = (
            np.ascontiguousarray(side, dtype=kind) for side, kind in zip((a, b, c), self._types, strict=False)
        )
        out = np.empty(addend.shape, dtype=self._types[3])
        if left.shape != (out.shape[0], self.model.length) or right.shape != (self.model.length, out.shape[1]):
            raise ValueError(f"shapes {left.shape}, {right.shape}, {addend.shape} do not fit")
        pointers = [array.ctypes.data for array in (left, right, addend, out)]
        self._function(out.shape[0], out.shape[1], *pointers)
        return out


@cache
def compile_model(model: Model) -> CompiledModel | None:
    """The compiled model, or None where the array carrier must do (no compiler, too wide, scale factors)."""
    if model.scale is not None or compiler() is None:
        return None
    try:
        library = _library(c_source(model))
    except TooWideError:
        return None
    return None if library is None else CompiledModel(model, library)


class CompiledLanes:
    """A function of bit vectors over arrays, element by element."""

    def __init__(self, library: Any, outputs: Sequence[int], inputs: Sequence[int]) -> None:
        self._types = [
            [np.dtype(np.uint32 if width <= 32 else np.uint64) for width in part] for part in (inputs, outputs)
        ]
        self._function = library.lanes
        self._function.restype = None
        self._function.argtypes = [ctypes.c_long, *[ctypes.c_void_p] * (len(inputs) + len(outputs))]

    def __call__(self, *arrays: NDArray[Any]) -> list[NDArray[Any]]:
        """The results for arrays of patterns of one shape, any integer type."""
        sides = [np.ascontiguousarray(x, dtype=kind) for x, kind in zip(arrays, self._types[0], strict=True)]
        found = [np.empty(sides[0].shape, dtype=kind) for kind in self._types[1]]
        self._function(sides[0].size, *(array.ctypes.data for array in (*sides, *found)))
        return found


@lru_cache(maxsize=64)
def compile_lanes(function: Callable[..., Sequence[Bits]], widths: tuple[int, ...]) -> CompiledLanes | None:
    """A function of vectors of these widths, compiled; None where that cannot be done. Tracing it takes some
    milliseconds, and a new function some tenths of a second."""
    if compiler() is None:
        return None
    carrier = CodeCarrier()
    try:
        results = function(*(carrier.input(f"x{k}", width, INNER) for k, width in enumerate(widths)))
        names = [result.node for result in results]
    except TooWideError:
        return None
    lines = [f"const {_kind(width)} x{k} = in{k}[i];" for k, width in enumerate(widths)]
    lines += [f"const {name.kind} {name.text} = {text};" for name, text in _statements(carrier, names)]
    lines += [f"out{k}[i] = ({_kind(x.width)}){x.node.text};" for k, x in enumerate(results)]
    parameters = [f"const {_kind(width)} *in{k}" for k, width in enumerate(widths)]
    parameters += [f"{_kind(x.width)} *restrict out{k}" for k, x in enumerate(results)]
    body = "\n".join("    " + line for line in lines)
    library = _library(_LANES.format(parameters=", ".join(parameters), body=body))
    return None if library is None else CompiledLanes(library, [x.width for x in results], widths)
