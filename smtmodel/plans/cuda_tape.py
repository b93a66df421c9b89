"""A plan as a CUDA kernel, in which each thread computes one output by the steps of the plan at one K (tape.py).

The kernel's text has the plan's units and expressions. The steps are a table, which all threads read in the same order,
so that one kernel computes products of any K.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from mmaprobe.smtmodel.evaluate.compiled import TooLongError
from mmaprobe.smtmodel.evaluate.cuda_text import PRELUDE, lanes_function, unit_function, word_of
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.tiles import Elementwise
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.tape import FACTORS, NUMBERS, PRODUCTS, VALUES, Tape, UncompiledError
from mmaprobe.smtmodel.plans.words import over_given

NAME = "product"
THREADS = 256  # threads of a block

_KERNEL = """{prelude}
struct Sides {{ const {a} *a; const {b} *b; {scales_of} uint64_t columns; }};
{functions}
/* a: blocks x rows x K, b: blocks x K x columns; scale factors p: blocks x rows x factors, q: blocks x factors x
   columns; c (one element, if it is not read) and d: blocks x rows x columns */
extern "C" __global__ void {name}({parameters}, uint32_t blocks, uint32_t rows, uint32_t columns, uint32_t length,
                                  uint32_t factors, uint32_t steps, uint32_t result) {{
  const uint64_t at = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= (uint64_t)blocks * rows * columns) return;
  const uint64_t row = at / columns, j = at % columns, n = row / rows;
  const Sides of = {{ a + row * length, b + n * length * columns + j, {scales} columns }};
  {kept} v[{values}];
  v[0] = {c};
  v[1] = 0;
{negative}
  for (uint32_t step = 0; step < steps; step++, table += {numbers}) {{
    const int32_t *x = table + {first};
    {kept} next;
    switch (table[0]) {{
{cases}
    }}
    v[table[{out}]] = next;
  }}
  d[at] = v[result];
}}
"""


class CudaTape(Tape):
    """The steps of a plan at K = `length` as tables, and the text of the plan's kernel. Raises ParameterError for a K
    that the plan does not take, UncompiledError for a plan without a kernel."""

    def __init__(self, plan: Plan, length: int) -> None:
        self._functions: dict[tuple[object, ...], int] = {}
        self._texts: list[str] = []
        self._cases: list[str] = []
        if plan.gathered:
            raise UncompiledError("it reads numbers found from several elements")
        super().__init__(plan, length)

    def unit(self, model: Model, a: int, b: int) -> int:
        key = (model, a, b)
        if key not in self._functions:
            read = [self._reader(side, number) for side, number in enumerate((a, b))]
            name = f"unit{len(self._texts)}"
            self._add(unit_function, name, model, *read)
            places = f"places + table[{PRODUCTS}], places + table[{FACTORS}]"
            self._case(key, f"{name}(of, {places}, table[{PRODUCTS - 3}], v[x[0]])")
        return self._functions[key]

    def lanes(self, function: Elementwise) -> int:
        key = (function,)
        if key not in self._functions:
            name = f"lanes{len(self._texts)}"
            self._add(lanes_function, name, function)
            values = ", ".join(f"v[x[{n}]]" for n in range(len(function.formats)))
            self._case(key, f"{name}({values})")
        return self._functions[key]

    def _reader(self, side: int, number: int) -> str:
        """The name of the function that makes a word of an element of a side; empty for the element itself."""
        word = self.words[side][number]
        if word is None:
            return ""
        function = Elementwise(over_given(word)[0], (self.plan.b if side else self.plan.a,))
        key = ("word", function)
        if key not in self._functions:
            self._add(lanes_function, f"word{len(self._texts)}", function)
            self._functions[key] = len(self._texts) - 1
        return f"word{self._functions[key]}"

    def _add(self, write: Callable[..., str], name: str, *what: object) -> None:
        try:
            self._texts.append(write(name, *what))
        except TooLongError as error:
            raise UncompiledError(f"too long for a kernel: {error}") from None

    def _case(self, key: tuple[object, ...], call: str) -> None:
        self._functions[key] = len(self._cases)
        self._cases.append(f"    case {len(self._cases)}: next = {call}; break;")

    @cached_property
    def tables(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The table of steps (steps x NUMBERS), and the table of the places that steps read."""
        steps, places = self._program
        return steps.astype(np.int32), places if len(places) else np.zeros(1, np.int32)

    @property
    def result(self) -> int:
        """The index of the result among the values."""
        return self._result

    @cached_property
    def source(self) -> str:
        """The text of the kernel."""
        plan = self.plan
        scale = [] if plan.scale is None else [("p", plan.scale), ("q", plan.scale)]
        arrays = [("a", plan.a), ("b", plan.b), ("c", plan.c), *scale]
        parameters = [*(f"const {word_of(fmt)} *{name}" for name, fmt in arrays), "const int32_t *table",
                      "const int32_t *places", f"{word_of(plan.d)} *d"]  # fmt: skip
        c = f"c[at] >> {plan.c.padding} << {plan.c.padding}" if plan.addend else "0"
        return _KERNEL.format(
            prelude=PRELUDE,
            name=NAME,
            a=word_of(plan.a),
            b=word_of(plan.b),
            scales_of="".join(f"const {word_of(fmt)} *{name};" for name, fmt in scale),
            scales="p + row * factors, q + n * factors * columns + j," if scale else "",
            functions="\n".join(self._texts),
            parameters=", ".join(parameters),
            kept="uint64_t" if self._wide else "uint32_t",
            values=1 << max(2, self._values - 1).bit_length(),  # a power of two, so that many K share a text
            c=c,
            negative="\n".join(f"  v[{place}] = {fmt.sign_bit:#x}ull;" for place, fmt in self._negative.items()),
            numbers=NUMBERS,
            first=VALUES.start + 1,
            out=VALUES.start,
            cases="\n".join(self._cases),
        )


@lru_cache(maxsize=512)
def cuda_tape(plan: Plan, length: int) -> CudaTape:
    """The kernel of a plan and the plan's steps at K = `length`, cached."""
    return CudaTape(plan, length)
