"""Recorded NumPy calls, executed by a small interpreter in C over a few hundred lanes at a time, ten times as fast as
NumPy's own calls. Without a C compiler NumPy makes the calls.

NumPy defines the meaning of the calls: each has one C statement here, and tests compare every statement with NumPy.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.smtmodel.base.libraries import EACH, is_at_hand, loaded

BLOCK = 256  # lanes that the interpreter takes at a time
KINDS = tuple(map(np.dtype, (np.bool_, np.uint32, np.uint64)))  # the types of incoming and outgoing arrays
_C = {"?": "uint8_t", "I": "uint32_t", "L": "uint64_t", "i": "int32_t", "l": "int64_t", "d": "double"}
_BITS = {"I": 32, "L": 64, "i": 32, "l": 64}


def _statements() -> dict[tuple[str, str], tuple[str, str]]:
    """The type of the result and the C expression of x, y and z, by the name of a call and the types of its
    operands."""
    table: dict[tuple[str, str], tuple[str, str]] = {}
    bitwise = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}
    for kind in "IL":
        for name, sign in {"add": "+", "subtract": "-", "multiply": "*", **bitwise}.items():
            table[name, 2 * kind] = kind, f"x {sign} y"
        for name, sign in (("minimum", "<"), ("maximum", ">")):
            table[name, 2 * kind] = kind, f"x {sign} y ? x : y"
        for name, sign in (("left_shift", "<<"), ("right_shift", ">>")):
            table[name, 2 * kind] = kind, f"y < {_BITS[kind]} ? x {sign} y : 0"
        for name, sign in (("equal", "=="), ("not_equal", "!="), ("less", "<"), ("less_equal", "<=")):
            table[name, 2 * kind] = "?", f"x {sign} y"
    for kind in "il":  # the carrier never shifts these by the lane's width or more
        table["right_shift", 2 * kind] = kind, f"x >> (y & {_BITS[kind] - 1})"
    for name, sign in bitwise.items():
        table[name, "??"] = "?", f"x {sign} y"
    table["invert", "?"] = "?", "x ^ 1"
    for kind in "?IL":
        table["where", "?" + 2 * kind] = kind, "x ? y : z"
    for kind, other in ("?I", "?L", "IL", "LI", "Id", "Ld", "Ii", "Ll"):
        table[f"astype {other}", kind] = other, f"({_C[other]})x"
    for kind, other in ("Ii", "iI", "Ll", "lL"):
        table[f"view {other}", kind] = other, f"({_C[other]})x"
    table["view L", "d"] = "L", "x"  # the bits
    return table


STATEMENTS = _statements()
CODES = {name: code for code, name in enumerate(STATEMENTS)}

_SOURCE = """#include <stdint.h>
#include <string.h>
{each}#define BLOCK {block}
/* code: the numbers of calls, inputs, constants, places in between and outputs; for each input its size and row; for
   each constant its size; for each call its code, three places and that of the result; for each output its place, size
   and row. in, out: rows of lanes of 1, 4 and 8 bytes; a few hundred bytes after the last of `in` may be read. */
void run(long lanes, const int32_t *code, const uint64_t *constants, const char *const *in, char *const *out,
         char *scratch, char **at) {{
  const long calls = code[0], inputs = code[1], known = code[2], between = code[3], outputs = code[4];
  const int32_t *input = code + 5, *size = input + 2 * inputs, *call = size + known, *output = call + 5 * calls;
  for (long k = 0; k < known + between; k++) at[inputs + k] = scratch + k * BLOCK * 8;
  for (long k = 0; k < known; k++) {{
    char *to = at[inputs + k];
    if (size[k] == 1) memset(to, (int)constants[k], BLOCK);
    else if (size[k] == 4) for (int i = 0; i < BLOCK; i++) ((uint32_t *)to)[i] = (uint32_t)constants[k];
    else for (int i = 0; i < BLOCK; i++) ((uint64_t *)to)[i] = constants[k];
  }}
  for (long start = 0; start < lanes; start += BLOCK) {{
    const long count = lanes - start < BLOCK ? lanes - start : BLOCK;
    for (long k = 0; k < inputs; k++) {{
      const long bytes = input[2 * k];
      at[k] = (char *)in[bytes >> 2] + (input[2 * k + 1] * lanes + start) * bytes;
    }}
    for (long k = 0; k < calls; k++) {{
      const int32_t *c = call + 5 * k;
      const char *X = at[c[1]], *Y = at[c[2]], *Z = at[c[3]];
      char *O = at[c[4]];
      switch (c[0]) {{
{cases}
      }}
    }}
    for (long k = 0; k < outputs; k++) {{
      const long bytes = output[3 * k + 1];
      memcpy(out[bytes >> 2] + (output[3 * k + 2] * lanes + start) * bytes, at[output[3 * k]], count * bytes);
    }}
  }}
}}
"""


def _case(code: int, kinds: str, result: str, expression: str) -> str:
    types = [_C["L" if kind == "d" else kind] for kind in kinds]
    sources = [
        f"const {kind} *{side}s = (const {kind} *){side.upper()};" for kind, side in zip(types, "xyz", strict=False)
    ]
    each = [f"const {kind} {side} = {side}s[i];" for kind, side in zip(types, "xyz", strict=False)]
    kind = _C[result]
    body = f"EACH for (int i = 0; i < BLOCK; i++) {{ {' '.join(each)} os[i] = {expression}; }}"
    return f"      case {code}: {{ {' '.join(sources)} {kind} *os = ({kind} *)O; {body} break; }}"


@cache
def _source() -> str:
    cases = [_case(CODES[name], name[1], *statement) for name, statement in STATEMENTS.items()]
    return _SOURCE.format(block=BLOCK, cases="\n".join(cases), each=EACH)


@cache
def is_built() -> bool:
    """Whether the compiled interpreter is in the cache."""
    return is_at_hand(_source())


@cache
def _function() -> Any:
    """The compiled interpreter; None without a C compiler."""
    library = loaded(_source(), ("run",), ctypes.PyDLL)  # PyDLL: one thread runs it at a time
    if library is None:
        return None
    library.run.restype = None
    library.run.argtypes = [ctypes.c_long, *[ctypes.c_void_p] * 6]
    return library.run


class _Space(threading.local):
    """The interpreter's memory in a thread, which grows as needed: incoming lanes, a block of lanes for each place, and
    the addresses of places. `outputs`: the addresses of outgoing lanes."""

    def __init__(self) -> None:
        self._rows = [np.empty(0, dtype=kind) for kind in KINDS]
        self._blocks = self._at = np.empty(0, dtype=np.uint64)
        self._inputs, self.outputs = (ctypes.c_uint64 * 3)(), (ctypes.c_uint64 * 3)()
        self._ends = ctypes.addressof(self._inputs), ctypes.addressof(self.outputs)
        self._addresses = 0, 0

    def rows_of(self, number: int, size: int) -> NDArray[Any]:
        """An array of `size` lanes of the type KINDS[number]; a further block behind it may be read."""
        if len(self._rows[number]) < size + BLOCK:
            self._rows[number] = np.zeros(2 * size + BLOCK, dtype=KINDS[number])
            self._inputs[number] = self._rows[number].ctypes.data
        return self._rows[number][:size]

    def places(self, blocks: int, at: int) -> tuple[int, ...]:
        """The addresses of the inputs, of the outputs, of `blocks` blocks and of an array of `at` pointers."""
        if len(self._blocks) < blocks * BLOCK or len(self._at) < at:
            self._blocks = np.zeros(2 * blocks * BLOCK, dtype=np.uint64)
            self._at = np.zeros(2 * at, dtype=np.uint64)
            self._addresses = self._blocks.ctypes.data, self._at.ctypes.data
        return *self._ends, *self._addresses


_SPACE = _Space()


class Machine:
    """Calls in the interpreter's code. `inputs`: the types of the inputs; `outputs`: the types and places of the
    outputs; `calls`: for each call its name with the operands' types, the operands' places and the result's place;
    `places`: the number of places, which are numbered from inputs over constants to results."""

    def __init__(
        self,
        inputs: Sequence[np.dtype[Any]],
        constants: Sequence[Any],
        calls: Sequence[tuple[tuple[str, str], tuple[int, ...], int]],
        outputs: Sequence[tuple[np.dtype[Any], int]],
        places: int,
    ) -> None:
        input_rows, self._inputs = _rows(inputs)
        output_rows, self._outputs = _rows([kind for kind, _ in outputs])
        code = [len(calls), len(inputs), len(constants), places - len(inputs) - len(constants), len(outputs)]
        for kind, row in zip(inputs, input_rows, strict=True):
            code += [kind.itemsize, row]
        code += [value.dtype.itemsize for value in constants]
        for name, operands, at in calls:
            code += [CODES[name], *(*operands, 0, 0)[:3], at]
        for (kind, at), row in zip(outputs, output_rows, strict=True):
            code += [at, kind.itemsize, row]
        self._code = np.array(code, dtype=np.int32)
        self._constants = np.array([int(value) for value in constants] or [0], dtype=np.uint64)
        self._pointers = self._code.ctypes.data, self._constants.ctypes.data
        self._places = places - len(inputs), places
        self._count = len(outputs)
        self._run = _function()

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """The outputs for input arrays of one length. Raises ValueError or TypeError for arrays of different lengths or
        of other types."""
        lanes = len(inputs[0])
        for number, rows in self._inputs:
            into = _SPACE.rows_of(number, len(rows) * lanes)
            np.concatenate([inputs[row] for row in rows], out=into, casting="no")
        out: list[Any] = [None] * self._count
        arrays = []
        for number, rows in self._outputs:
            of_kind = np.empty((len(rows), lanes), dtype=KINDS[number])
            _SPACE.outputs[number] = of_kind.__array_interface__["data"][0]
            arrays.append(of_kind)
        self._run(lanes, *self._pointers, *_SPACE.places(*self._places))
        for (_, rows), of_kind in zip(self._outputs, arrays, strict=True):
            for row, lane in zip(rows, of_kind, strict=True):
                out[row] = lane
        return out


def machine(
    inputs: Sequence[np.dtype[Any]],
    constants: Sequence[Any],
    calls: Sequence[tuple[tuple[str, str], tuple[int, ...], int]],
    outputs: Sequence[tuple[np.dtype[Any], int]],
    places: int,
) -> Machine | None:
    """The `Machine` for these parameters; None if the interpreter lacks a call or a type, or without a C compiler."""
    known = all(name in CODES for name, _, _ in calls)
    kinds = {*inputs, *(kind for kind, _ in outputs), *(value.dtype for value in constants)}
    if not inputs or not known or not kinds <= set(KINDS) or _function() is None:
        return None
    return Machine(inputs, constants, calls, outputs, places)


def _rows(kinds: Sequence[np.dtype[Any]]) -> tuple[list[int], list[tuple[int, list[int]]]]:
    """For each array its row among the arrays of its type; and for each type, by its index in KINDS, the indices of its
    arrays."""
    places: dict[int, list[int]] = {}
    rows = []
    for place, kind in enumerate(kinds):
        of_kind = places.setdefault(KINDS.index(kind), [])
        rows.append(len(of_kind))
        of_kind.append(place)
    return rows, list(places.items())
