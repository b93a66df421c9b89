"""A model as a CUDA kernel, from the same definition as everywhere: one thread computes an output, and keeps it in its
register over all of K.

The statements are those of the C (carriers/code.py), with a GPU's functions for the leading one and for fused
multiply-add. A GPU keeps subnormals, so that steps that flush are computed by the model's integers.
"""

from __future__ import annotations

import numpy as np

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.carriers.code import COLUMN, INNER, ROW, CodeCarrier, word_type
from mmaprobe.smtmodel.evaluate.compiled import LONGEST, TooLongError, needed
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.smtmodel.nodes.trace import Silent

NAME = "product"
THREADS = 256  # in a block

_KERNEL = """typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef int int32_t;
typedef long long int64_t;
static __device__ uint32_t zeros32(uint32_t x) {{ return __clz(x); }}
static __device__ uint64_t zeros64(uint64_t x) {{ return __clzll(x); }}
static __device__ uint32_t fma32(uint32_t x, uint32_t y, uint32_t z) {{
  return __float_as_uint(__fmaf_rn(__uint_as_float(x), __uint_as_float(y), __uint_as_float(z)));
}}
static __device__ uint64_t fma64(uint64_t x, uint64_t y, uint64_t z) {{
  return __double_as_longlong(__fma_rn(__longlong_as_double(x), __longlong_as_double(y), __longlong_as_double(z)));
}}
static __device__ uint64_t widened(uint32_t x) {{ return __double_as_longlong((double)__uint_as_float(x)); }}
/* a: rows x K, b: K x columns, c and d: rows x columns, K = steps * {length}; scale factors p: rows x steps * {scales},
   q: steps * {scales} x columns */
extern "C" __global__ void {name}({parameters}, uint32_t rows, uint32_t columns, uint32_t steps) {{
  const uint64_t at = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= (uint64_t)rows * columns) return;
  const uint64_t i = at / columns, j = at % columns;
  {kept} sum = c[at];
  for (uint32_t step = 0; step < steps; step++) {{
{body}
  }}
  d[at] = sum;
}}
"""


def word_of(fmt: Format) -> str:
    """The C type of the patterns of a format, in arrays."""
    return f"{np.dtype(kind_of(fmt)).name}_t"


def cuda_source(model: Model) -> str:
    """The kernel of a product A * B + C by successive instructions, the result of each being the next one's addend.
    Raises TooLongError."""
    carrier, unit, k, s = CodeCarrier(flushing=False), model.unit, model.length, model.scales
    given: list[str] = []

    def operands(name: str, fmt: Format | None, count: int, place: int) -> list[Bits]:
        if fmt is None:
            return []
        of_row, of_column = f"i * steps * {count} + step * {count} + {{}}", f"(step * {count} + {{}}) * columns + j"
        at = of_row if place == ROW else of_column
        given.extend(f"const {word_type(fmt.width)} {name}{x} = {name}[{at.format(x)}];" for x in range(count))
        return [carrier.input(f"{name}{x}", fmt.width, place) for x in range(count)]

    sides = (("a", unit.a, k, ROW), ("b", unit.b, k, COLUMN), ("p", unit.scale, s, ROW), ("q", unit.scale, s, COLUMN))
    a, b, p, q = (operands(*side) for side in sides)
    given.append(f"const {word_type(unit.c.width)} c0 = sum;")
    result = unit.evaluate(a, b, carrier.input("c0", unit.c.width, INNER), p, q, trace=Silent())[0].node
    statements = needed(carrier, [result])
    if len(statements) > LONGEST:
        raise TooLongError(f"{len(statements)} statements")
    lines = [
        *given,
        *(f"const {name.kind} {name.text} = {text};" for name, text in statements),
        f"sum = {result.text};",
    ]
    arrays = [("a", unit.a), ("b", unit.b), ("c", unit.c)]
    arrays += [("p", unit.scale), ("q", unit.scale)] if unit.scale else []
    parameters = [*(f"const {word_of(fmt)} *{name}" for name, fmt in arrays), f"{word_of(unit.d)} *d"]
    return _KERNEL.format(
        length=k,
        scales=s,
        name=NAME,
        parameters=", ".join(parameters),
        kept=word_type(max(unit.c.width, unit.d.width)),
        body="\n".join("    " + line for line in lines),
    )
