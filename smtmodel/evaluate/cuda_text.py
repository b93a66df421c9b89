"""Units and expressions as CUDA functions, from the definition for all carriers.

The statements are those of the C code (carriers/code.py), with a GPU's functions for leading zeros and fused
multiply-add. A GPU's functions keep subnormals, so steps that flush are computed on integers.
"""

from __future__ import annotations

from collections.abc import Sequence

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.carriers.code import COLUMN, INNER, ROW, CodeCarrier, CodeValue, word_type
from mmaprobe.smtmodel.evaluate.compiled import LONGEST, TooLongError, needed_statements
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.tiles import Elementwise
from mmaprobe.smtmodel.nodes.trace import Silent

PRELUDE = """typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef int int32_t;
typedef long long int64_t;
static __device__ uint32_t zeros32(uint32_t x) { return __clz(x); }
static __device__ uint64_t zeros64(uint64_t x) { return __clzll(x); }
static __device__ uint32_t fma32(uint32_t x, uint32_t y, uint32_t z) {
  return __float_as_uint(__fmaf_rn(__uint_as_float(x), __uint_as_float(y), __uint_as_float(z)));
}
static __device__ uint64_t fma64(uint64_t x, uint64_t y, uint64_t z) {
  return __double_as_longlong(__fma_rn(__longlong_as_double(x), __longlong_as_double(y), __longlong_as_double(z)));
}
static __device__ uint64_t widened(uint32_t x) { return __double_as_longlong((double)__uint_as_float(x)); }
"""

_UNIT = """static __device__ {kept} {name}(const Sides &of, const int32_t *at, const int32_t *own, uint32_t steps,
                                {kept} sum) {{
  for (uint32_t step = 0; step < steps; step++, at += {length}, own += {scales}) {{
{body}
  }}
  return sum;
}}
"""

_LANES = """static __noinline__ __device__ {kind} {name}({parameters}) {{
{body}
  return {result};
}}
"""


def word_of(fmt: Format) -> str:
    """The C type of a format's patterns in arrays."""
    return f"uint{fmt.word}_t"


def unit_function(name: str, model: Model, a: str, b: str) -> str:
    """The text of the function of successive instructions, each result the next one's addend. The function's argument
    `at` has the products' places in K, negative for missing products, and `own` the places of the scale factors. `a`,
    `b`: names of functions applied to the elements of A and B, or empty. Raises TooLongError."""
    carrier, unit, k, s = CodeCarrier(flushing=False), model.unit, model.length, model.scales
    lines: list[str] = []

    def operands(name: str, fmt: Format | None, count: int, place: int, text: str) -> list[Bits]:
        if fmt is None:
            return []
        lines.extend(f"const {word_type(fmt.width)} {name}{x} = {text.format(x)};" for x in range(count))
        return [carrier.input(f"{name}{x}", fmt.width, place) for x in range(count)]

    first = operands("a", unit.a, k, ROW, f"at[{{0}}] < 0 ? 0 : {a}(of.a[at[{{0}}]])")
    second = operands("b", unit.b, k, COLUMN, f"at[{{0}}] < 0 ? 0 : {b}(of.b[at[{{0}}] * of.columns])")
    p = operands("p", unit.scale, s, ROW, "of.p[own[{0}]]")
    q = operands("q", unit.scale, s, COLUMN, "of.q[own[{0}] * of.columns]")
    lines.append(f"const {word_type(unit.c.width)} c0 = sum;")
    result = unit.evaluate(first, second, carrier.input("c0", unit.c.width, INNER), p, q, trace=Silent())[0].node
    lines = [*lines, *_statements(carrier, result), f"sum = {result.text};"]
    return _UNIT.format(
        name=name, kept=word_type(max(unit.c.width, unit.d.width)), length=k, scales=s, body=_indented(lines, 4)
    )


def lanes_function(name: str, function: Elementwise) -> str:
    """The text of the function of an elementwise expression. Raises TooLongError."""
    carrier, widths = CodeCarrier(flushing=False), [fmt.width for fmt in function.formats]
    (result,) = function(*(carrier.input(f"x{n}", width, INNER) for n, width in enumerate(widths)))
    return _LANES.format(
        name=name,
        kind=word_type(result.width),
        parameters=", ".join(f"{word_type(width)} x{n}" for n, width in enumerate(widths)),
        body=_indented(_statements(carrier, result.node), 2),
        result=result.node.text,
    )


def _statements(carrier: CodeCarrier, result: CodeValue) -> list[str]:
    statements = needed_statements(carrier, [result])
    if len(statements) > LONGEST:
        raise TooLongError(f"{len(statements)} statements")
    return [name.declared(text) for name, text in statements]


def _indented(lines: Sequence[str], spaces: int) -> str:
    return "\n".join(" " * spaces + line for line in lines)
