"""A plan computed for many small products of one shape: its steps are noted first, then done by one loop in C.

A plan of many short sums has thousands of steps, each of a microsecond; done from Python one by one they would take a
hundred times that.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from smtmodel.compiled import CompiledModel, compile_lanes, compile_model
from smtmodel.dot import Model
from smtmodel.formats import Format
from smtmodel.libraries import loaded
from smtmodel.nodes import Index, Round
from smtmodel.nodes.round import Rounding
from smtmodel.plans.matrices import Results, kept
from smtmodel.plans.plan import Plan
from smtmodel.plans.span import Span
from smtmodel.tiles import Elementwise, Given, Matrix, kind_of

INPUTS = 4  # of an expression of one step, at most
WORDS, VALUES, FIRST = 12, slice(2, 7), 7  # of a step: how many, those that are values, where its places begin
NONE = -1  # the place of a product that is missing: zero times zero

_PLAYER = """
#include <stdint.h>
#include <string.h>
typedef void tile(long, long, long, const void *, const void *, const void *, void *, const void *, const void *);
typedef void one(long, void *, void *);
typedef void two(long, void *, void *, void *);
typedef void three(long, void *, void *, void *, void *);
typedef void four(long, void *, void *, void *, void *, void *);
typedef struct { int64_t call, inputs, out, in[4], first, products, length, wc, wd; } step;

/* rows of `width` bytes at some places, one after another */
static void gather(char *to, const char *from, const int32_t *places, long count, long width) {
  for (long n = 0; n < count; n++, to += width)
    if (places[n] < 0) memset(to, 0, width);
    else memcpy(to, from + places[n] * width, width);
}

/* sums: values of 8 bytes, or fewer, for each element of each block. a: blocks x k x rows; b: blocks x k x columns. A
   step without inputs is a tile. */
void play(long count, const step *steps, const int32_t *places, long blocks, long rows, long columns, long k, long wa,
          long wb, const char *a, const char *b, char *sums, char *left, char *right) {
  const long each = rows * columns, all = blocks * each;
  for (const step *s = steps; s < steps + count; s++) {
    char *out = sums + s->out * all * 8, *in[4];
    for (int n = 0; n < 4; n++) in[n] = sums + s->in[n] * all * 8;
    void *call = (void *)s->call;
    switch (s->inputs) {
    case 1: ((one *)call)(all, in[0], out); continue;
    case 2: ((two *)call)(all, in[0], in[1], out); continue;
    case 3: ((three *)call)(all, in[0], in[1], in[2], out); continue;
    case 4: ((four *)call)(all, in[0], in[1], in[2], in[3], out); continue;
    }
    const int32_t *at = places + s->first;
    for (long n = 0; n < blocks; n++) {
      gather(left, a + n * k * rows * wa, at, s->products, rows * wa);
      gather(right, b + n * k * columns * wb, at, s->products, columns * wb);
      ((tile *)call)(rows, columns, s->products / s->length, left, right, in[0] + n * each * s->wc,
                     out + n * each * s->wd, 0, 0);
    }
  }
}
"""


@dataclass(frozen=True)
class Noted:
    """A value for every element, by its number."""

    number: int
    format: Format


class UncompiledError(Exception):
    """A unit or an expression of a plan cannot be compiled."""


class Tape(Results[Noted]):
    """The steps of a plan for K products. Raises ParameterError for a K that does not fit, UncompiledError."""

    def __init__(self, plan: Plan, length: int) -> None:
        self.plan, self.length = plan, length
        self.c, self._count = Noted(0, plan.c), 2  # c, and a value of zeros
        self._negative: dict[int, Format] = {}  # values of negative zeros
        self._steps, self._places = array("q"), array("i")  # WORDS for each step
        self.result = self.value(plan.result, length)

    def zeros(self, fmt: Format, negative: bool) -> Noted:
        if not negative:
            return Noted(1, fmt)
        self._negative[self._count] = fmt
        self._count += 1
        return Noted(self._count - 1, fmt)

    def tile(self, model: Model, span: Span, start: Noted) -> Noted:
        return self._tiles(model, [*span.places, *[NONE] * (model.length - span.count)], start)

    def tiles(self, model: Model, span: Span, start: Noted) -> Noted:
        first, loops = span.loops(model.length)
        places = [0]
        for count, distance in loops:
            places = [place + distance * n for place in places for n in range(count)]
        places = [place + other for place in places for other in first.places]
        most = len(places) if model.c.width == model.d.width else model.length  # each result is first made an addend
        for done in range(0, len(places), most):
            start = self._tiles(model, places[done : done + most], start)
        return start

    def _tiles(self, model: Model, places: list[int], start: Noted) -> Noted:
        c = self.in_format(start, model.c)
        words = (_word(fmt).itemsize for fmt in (model.c, model.d))
        entry = (_compiled(model).address, 0), (c.number, 0, 0, 0, len(self._places), len(places), model.length, *words)
        self._places.extend(places)
        return self._step(*entry, model.d)

    def repeat(self, count: int, name: str, start: Noted, body: Callable[[Index, Noted], Noted]) -> Noted:
        """The body is noted twice: later ones read places that are as far on again, and begin with the sum before."""
        if count < 4:
            return super().repeat(count, name, start, body)
        ends, sums = [self._end()], [start]
        for number in range(2):
            sums.append(body(Index(number), sums[-1]))
            ends.append(self._end())
        (first, *_), (_, steps, places), last = ends
        start, size, times = sums[2], last[0] - ends[1][0], np.arange(1, count - 1)
        assert start.number == sums[1].number + size, "the body gives its last value"
        noted = np.frombuffer(self._steps, dtype=np.int64).reshape(-1, WORDS)[steps:].copy()
        read = np.frombuffer(self._places, dtype=np.int32)
        one, two = read[ends[0][2] : places].copy(), read[places:].copy()
        del read
        more = np.tile(noted, (count - 2, 1, 1))
        values = more[:, :, VALUES]
        more[:, :, VALUES] = np.where(values >= first, values + size * times[:, None, None], values)
        more[:, :, FIRST] += np.where(more[:, :, 1] == 0, len(two) * times[:, None], 0)
        self._steps.frombytes(more.tobytes())
        self._places.frombytes((two + (two - one) * times[:, None]).astype(np.int32).tobytes())
        self._count += size * (count - 2)
        return Noted(start.number + size * (count - 2), start.format)

    def _end(self) -> tuple[int, int, int]:
        """How many values, steps and places there are."""
        return self._count, len(self._steps) // WORDS, len(self._places)

    def elementwise(self, node: Round, given: Sequence[Noted]) -> Noted:
        found = compile_lanes(Elementwise(node, tuple(x.format for x in given)), tuple(x.format.width for x in given))
        if found is None or not 0 < len(given) <= INPUTS:
            raise UncompiledError(str(node))
        numbers = [x.number for x in given] + [0] * (INPUTS - len(given))
        return self._step((found.address, len(given)), (*numbers, *[0] * 5), node.rounding.format)

    def _step(self, what: tuple[int, int], rest: tuple[int, ...], fmt: Format) -> Noted:
        self._steps.extend((*what, self._count, *rest))
        self._count += 1
        return Noted(self._count - 1, fmt)

    def play(self, a: Matrix, b: Matrix, c: Matrix) -> Matrix:
        """D of each block: of patterns A (blocks x rows x K), B (blocks x K x columns) and C (blocks x rows x
        columns)."""
        plan = self.plan
        sides = [_converted(*x) for x in ((a.transpose(0, 2, 1), plan.a, plan.convert_a), (b, plan.b, plan.convert_b))]
        (blocks, rows, columns), k = c.shape, a.shape[2]
        out, size = _word(plan.d), c.size
        sums = np.empty((self._count, size), dtype=np.uint64)
        sums[1] = 0
        sums[0].view(_word(plan.c))[:size] = kept(c, plan.c).ravel()
        for number, fmt in self._negative.items():
            sums[number].view(_word(fmt))[:size] = fmt.sign_bit
        steps, places = np.frombuffer(self._steps, dtype=np.int64), np.frombuffer(self._places, dtype=np.int32)
        table = steps.reshape(-1, WORDS)
        longest = int(table[:, FIRST + 1].max(initial=1))
        scratch = [np.empty(longest * side * 8, dtype=np.uint8) for side in (rows, columns)]
        player = loaded(_PLAYER).play
        assert table[:, VALUES].max(initial=0) < self._count
        assert places.max(initial=-1) < k
        arrays: list[NDArray[Any]] = [steps, places, *sides, sums, *scratch]
        at = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        numbers = [ctypes.c_long(x) for x in (blocks, rows, columns, k, *(side.itemsize for side in sides))]
        player(ctypes.c_long(len(steps) // WORDS), *at[:2], *numbers, *at[2:])
        found: Matrix = sums[self.result.number].view(out)[:size].reshape(c.shape).astype(kind_of(plan.d))
        return found


@cache
def _compiled(model: Model) -> CompiledModel:
    found = compile_model(model)
    if found is None:
        raise UncompiledError(model.reference)
    return found


def _word(fmt: Format) -> Any:
    """The type in which compiled functions take patterns."""
    return np.dtype(np.uint32 if fmt.width <= 32 else np.uint64)


def _converted(side: Matrix, fmt: Format, how: Rounding | None) -> Matrix:
    """A side as the units take it."""
    if how is not None:
        lanes = compile_lanes(Elementwise(Round(Given(0, fmt), how), (fmt,)), (fmt.width,))
        if lanes is None:
            raise UncompiledError(str(how))
        side, fmt = lanes(side)[0], how.format
    return np.ascontiguousarray(side, dtype=_word(fmt))
