"""Generated C computes a plan. First the steps of the plan at one K are recorded. Then one loop in C runs the steps for
a block of a matrix product, or for many small products of one shape.

A plan of many short sums has thousands of steps of a microsecond each; a call from Python for each step would take a
hundred times as long.
"""

from __future__ import annotations

import ctypes
import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.libraries import loaded
from mmaprobe.smtmodel.carriers.arrays import lane_type
from mmaprobe.smtmodel.evaluate.compiled import CompiledModel, compile_lanes, compile_model
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.tiles import Elementwise, Matrix, kind_of
from mmaprobe.smtmodel.nodes import Index, Round
from mmaprobe.smtmodel.plans.matrices import Results, factors_of, gathered_numbers, kept, spread_over
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.plans.span import Span
from mmaprobe.smtmodel.plans.words import Gathered, Words, over_given

# The columns of a step, as in the C struct `step`: the address of its function; the number of values that it reads, its
# own value, the values that it reads (at most MOST_READ); the number of units that it runs, the bytes of a value of c
# and of d; for its products and then its scale factors, the index of the first place, the number of places, and whether
# the places follow one another; the indices of its words of a and of b.
MOST_READ = 16
READ, VALUES, PRODUCTS, FACTORS, NUMBERS = 1, slice(2, 3 + MOST_READ), 6 + MOST_READ, 9 + MOST_READ, 14 + MOST_READ
NONE = -1  # the place of a missing product: zero times zero

# rows and columns of a block of D. All steps of a block run before those of the next block, so that the sums stay in a
# near cache; the results are the same for any block
BLOCK = 128, 512
SIDE = 1 << 25  # the most elements of A or of B that a block reads, if the block has more than 64 rows or columns

_PLAYER = """
#include <stdint.h>
#include <string.h>
typedef void tile(long, long, long, const void *, const void *, const void *, void *, const void *, const void *);
TYPES
typedef struct { int64_t first, count, straight; } range;
typedef struct { int64_t call, inputs, out, in[MOST_READ], steps, wc, wd; range products, factors; int64_t a, b; } step;
typedef struct { const char *at; long width; } side;

/* The rows of `width` bytes at some places of `from`, as one array: in `from`, if the places follow one another, else
   copied to `to`. */
static const char *gathered(range of, const int32_t *places, char *to, const char *from, long width) {
  const int32_t *at = places + of.first;
  if (of.straight) return from + at[0] * width;
  char *next = to;
  for (long n = 0; n < of.count; n++, next += width)
    if (at[n] < 0) memset(next, 0, width);
    else memcpy(next, from + at[n] * width, width);
  return to;
}

/* sums: for each value, an array of at most `word` bytes for each element of each block. a: an array blocks x k x rows
   for each word; b: an array blocks x k x columns for each word. p, q: the scale factors, blocks x factors x rows and
   blocks x factors x columns. A step without inputs runs a unit. */
void play(long count, const step *steps, const int32_t *places, long blocks, long rows, long columns, long k,
          long factors, long word, const side *a, const side *b, const char *p, const char *q, char *sums,
          char **scratch) {
  const long each = rows * columns, all = blocks * each;
  for (const step *s = steps; s < steps + count; s++) {
    char *out = sums + s->out * all * word, *in[MOST_READ];
    for (int n = 0; n == 0 || n < s->inputs; n++) in[n] = sums + s->in[n] * all * word;
    void *call = (void *)s->call;
    switch (s->inputs) {
CASES
    }
    const side rows_of = a[s->a], columns_of = b[s->b];
    const long wa = rows * rows_of.width, wb = columns * columns_of.width;
    for (long n = 0; n < blocks; n++) {
      const char *left = gathered(s->products, places, scratch[0], rows_of.at + n * k * wa, wa);
      const char *right = gathered(s->products, places, scratch[1], columns_of.at + n * k * wb, wb);
      const char *own = 0, *other = 0;
      if (s->factors.count) {
        own = gathered(s->factors, places, scratch[2], p + n * factors * rows * 4, rows * 4);
        other = gathered(s->factors, places, scratch[3], q + n * factors * columns * 4, columns * 4);
      }
      const char *c = in[0] + n * each * s->wc;
      ((tile *)call)(rows, columns, s->steps, left, right, c, out + n * each * s->wd, own, other);
    }
  }
}
"""


@cache
def _player() -> str:
    """The C source of the player, with a call for each number of values that a step may read."""
    types, cases = [], []
    for count in range(1, MOST_READ + 1):
        types.append(f"typedef void of{count}(long{', void *' * (count + 1)});")
        values = ", ".join(f"in[{number}]" for number in range(count))
        cases.append(f"    case {count}: ((of{count} *)call)(all, {values}, out); continue;")
    return (
        _PLAYER.replace("MOST_READ", str(MOST_READ))
        .replace("TYPES", "\n".join(types))
        .replace("CASES", "\n".join(cases))
    )


@dataclass(frozen=True)
class Noted:
    """A recorded value, of which every element of D has its own: the value's number in the tape, and its format."""

    number: int
    format: Format


@dataclass(frozen=True)
class Sides:
    """The inputs of a tape. `a`, `b`: for each word of A and of B that units read, the matrix of its patterns (blocks x
    K x rows, and blocks x K x columns). `gathered`: the numbers gathered from rows of A and columns of B (blocks x 1 x
    rows or columns; with blocks of K, a number for each of these). `scales`: the scale factors of the words (blocks x
    factors x rows or columns), if any."""

    a: Sequence[Matrix]
    b: Sequence[Matrix]
    gathered: Mapping[Gathered, Matrix]
    scales: Sequence[Matrix] = ()

    def part(self, rows: slice, columns: slice) -> Sides:
        """The inputs of some rows and columns of D."""
        gathered = {node: own[:, :, rows if node.operand == "a" else columns] for node, own in self.gathered.items()}
        scales = [x[:, :, part] for x, part in zip(self.scales, (rows, columns), strict=False)]
        return Sides([x[:, :, rows] for x in self.a], [x[:, :, columns] for x in self.b], gathered, scales)


class UncompiledError(Exception):
    """No compiled code is possible for a unit or an expression of a plan."""


class Tape(Results[Noted]):
    """The recorded steps of a plan for `length` products. Raises ParameterError for a `length` that does not fit, and
    UncompiledError."""

    def __init__(self, plan: Plan, length: int) -> None:
        self.plan, self.words = plan, tuple(plan.words_read(side) for side in range(2))
        self.c, self._count = Noted(0, plan.c), 2  # c, and a value of zeros
        self._negative: dict[int, Format] = {}  # values of negative zeros
        self._gathered: dict[Gathered, Noted] = {}
        self._steps, self._places = array("q"), array("i")  # NUMBERS for each step
        self._wide = plan.c.width > 32
        result = self.value(plan.result, length)
        self._word = 8 if self._wide else 4
        places = np.array(self._places, dtype=np.int32)
        kept = [*self._negative, *(value.number for value in self._gathered.values()), result.number]
        steps, self._values, (*given, self._result) = _with_slots(_with_marks(self._steps, places), self._count, kept)
        self._negative = dict(zip(given, self._negative.values(), strict=False))
        self._found = dict(zip(given[len(self._negative) :], self._gathered, strict=True))
        self._program = steps, places
        del self._steps, self._places

    def zeros(self, fmt: Format, negative: bool) -> Noted:
        self._wide |= fmt.width > 32
        if not negative:
            return Noted(1, fmt)
        self._negative[self._count] = fmt
        return self._new(fmt)

    def gathered(self, node: Gathered) -> Noted:
        if node not in self._gathered:
            self._gathered[node] = self._new(node.given)
        return self._gathered[node]

    def _new(self, fmt: Format) -> Noted:
        self._wide |= fmt.width > 32
        self._count += 1
        return Noted(self._count - 1, fmt)

    def tile(self, model: Model, words: Words, span: Span, start: Noted) -> Noted:
        places = [*span.places, *[NONE] * (model.length - span.count)]
        return self._tiles(model, words, places, [span.start.offset], span, start)

    def tiles(self, model: Model, words: Words, span: Span, start: Noted) -> Noted:
        first, loops = span.loops(model.length)
        starts = np.array([first.start.offset])
        for count, distance in loops:
            starts = np.add.outer(starts, distance * np.arange(count)).ravel()
        within = np.array(first.places) - first.start.offset
        most = len(starts) if model.c.width == model.d.width else 1  # else each result is converted to an addend
        for done in range(0, len(starts), most):
            some = starts[done : done + most]
            start = self._tiles(model, words, np.add.outer(some, within).ravel(), some.tolist(), first, start)
        return start

    def _tiles(
        self, model: Model, words: Words, places: Any, starts: Sequence[int], first: Span, start: Noted
    ) -> Noted:
        """One step, which runs a unit once for each of `starts` (the places where spans like `first` begin), on the
        products at `places`."""
        c = self.in_format(start, model.c)
        factors: list[int] = []
        if model.scales:
            own = (replace(first, start=Index(place)).scales(model.scale_block).offset for place in starts)
            factors = [place + n for place in own for n in range(model.scales)]
        sizes = (_word(fmt).itemsize for fmt in (model.c, model.d))
        sides = [read.index(word) for read, word in zip(self.words, self.plan.read(words), strict=True)]
        at = len(self._places)
        parts = (at, len(places), 0, at + len(places), len(factors), 0)
        self._places.extend(places)
        self._places.extend(factors)
        return self._step(
            (self.unit(model, *sides), 0),
            (c.number, *[0] * (MOST_READ - 1), len(starts), *sizes, *parts, *sides),
            model.d,
        )

    def repeat(self, count: int, name: str, start: Noted, body: Callable[[Index, Noted], Noted]) -> Noted:
        """Record the body twice, and copy the second turn for all later turns: the places of a turn differ from those
        of the turn before by the same distance, and each turn begins with the sum of the turn before."""
        if count < 4:
            return super().repeat(count, name, start, body)
        ends, sums = [self._end()], [start]
        for number in range(2):
            sums.append(body(Index(number), sums[-1]))
            ends.append(self._end())
        (first, *_), (_, steps, places), last = ends
        start, size, times = sums[2], last[0] - ends[1][0], np.arange(1, count - 1)
        assert start.number == sums[1].number + size, "the body gives its last value"
        noted = np.frombuffer(self._steps, dtype=np.int64).reshape(-1, NUMBERS)[steps:].copy()
        read = np.frombuffer(self._places, dtype=np.int32)
        one, two = read[ends[0][2] : places].copy(), read[places:].copy()
        del read
        more = np.tile(noted, (count - 2, 1, 1))
        values = more[:, :, VALUES]
        more[:, :, VALUES] = np.where(values >= first, values + size * times[:, None, None], values)
        for part in (PRODUCTS, FACTORS):
            more[:, :, part] += np.where(more[:, :, READ] == 0, len(two) * times[:, None], 0)
        self._steps.frombytes(more.tobytes())
        self._places.frombytes((two + (two - one) * times[:, None]).astype(np.int32).tobytes())
        self._count += size * (count - 2)
        return Noted(start.number + size * (count - 2), start.format)

    def _end(self) -> tuple[int, int, int]:
        """How many values, steps and places are recorded."""
        return self._count, len(self._steps) // NUMBERS, len(self._places)

    def elementwise(self, node: Round, given: Sequence[Noted]) -> Noted:
        if not 0 < len(given) <= MOST_READ:
            raise UncompiledError(str(node))
        call = self.lanes(Elementwise(node, tuple(x.format for x in given)))
        numbers = [x.number for x in given] + [0] * (MOST_READ - len(given))
        return self._step((call, len(given)), (*numbers, *[0] * (NUMBERS - PRODUCTS + 3)), node.rounding.format)

    def unit(self, model: Model, a: int, b: int) -> int:
        """The address of the function that computes a tile of a unit. `a`, `b`: the indices of the words that the unit
        reads. Raises UncompiledError."""
        return _compiled(model).address

    def lanes(self, function: Elementwise) -> int:
        """The address of the function that computes an expression over values. Raises UncompiledError."""
        compiled = compile_lanes(function, tuple(fmt.width for fmt in function.formats))
        if compiled is None:
            raise UncompiledError(str(function.node))
        return compiled.address

    def _step(self, what: tuple[int, int], rest: tuple[int, ...], fmt: Format) -> Noted:
        self._steps.extend((*what, self._count, *rest))
        return self._new(fmt)

    def read(self, a: Matrix, b: Matrix) -> Sides:
        """The inputs of this tape from patterns A (blocks x rows x K) and B (blocks x K x columns)."""
        plan, turned = self.plan, (a.transpose(0, 2, 1), b)
        gathered = {node: gathered_numbers(node, turned["ab".index(node.operand)], 1) for node in plan.gathered}
        words = [[_read_as(word, side, fmt, gathered) for word in read]
                 for side, fmt, read in zip(turned, (plan.a, plan.b), self.words, strict=True)]  # fmt: skip
        return Sides(words[0], words[1], gathered, list(factors_of(plan, b.shape[1], gathered, (1, 1)).values()))

    def play(self, a: Matrix, b: Matrix, c: Matrix, *scales: Matrix) -> Matrix:
        """D of each block (blocks x rows x columns), from patterns A (blocks x rows x K), B (blocks x K x columns) and
        C (blocks x rows x columns), and, for units with scale factors, from scale factors (blocks x rows x factors,
        blocks x factors x columns)."""
        return self.play_sides(self.read(a, b), c, *scales)

    def play_sides(self, inputs: Sides, c: Matrix, *scales: Matrix) -> Matrix:
        """D of each block, as `play` computes it, from the inputs that `read` returns."""
        plan, sides = self.plan, [[np.ascontiguousarray(x) for x in words] for words in (inputs.a, inputs.b)]
        (blocks, rows, columns), k, factors = c.shape, inputs.a[0].shape[1], 0
        own: list[NDArray[Any] | None] = [None, None]
        turned = [scales[0].transpose(0, 2, 1), scales[1]] if scales else inputs.scales
        if turned:
            own = [np.ascontiguousarray(x, dtype=np.uint32) for x in turned]
            factors = turned[1].shape[1]
        out, size, word = _word(plan.d), c.size, self._word
        sums = np.empty((self._values, size * word), dtype=np.uint8)
        sums[1] = 0
        sums[0].view(_word(plan.c))[:size] = kept(c, plan.c).ravel()
        for number, fmt in self._negative.items():
            sums[number].view(_word(fmt))[:size] = fmt.sign_bit
        for number, node in self._found.items():
            gathered = inputs.gathered[node]
            whole = np.broadcast_to(gathered.transpose(0, 2, 1) if node.operand == "a" else gathered, c.shape)
            sums[number].view(_word(node.given))[:size] = whole.ravel()
        steps, places = self._program
        longest = [int(steps[:, part + 1].max(initial=1)) for part in (PRODUCTS, FACTORS)]
        scratch = [np.empty(count * side * 8, dtype=np.uint8) for count in longest for side in (rows, columns)]
        pointers = (ctypes.c_void_p * 4)(*(part.ctypes.data for part in scratch))
        assert places.max(initial=-1) < max(k, factors)
        read = [np.array([(x.ctypes.data, x.itemsize) for x in side], dtype=np.int64) for side in sides]
        arrays: list[NDArray[Any] | None] = [steps, places, *read, *own, sums]
        at = [array if array is None else ctypes.c_void_p(array.ctypes.data) for array in arrays]
        numbers = [ctypes.c_long(x) for x in (blocks, rows, columns, k, factors, word)]
        loaded(_player(), ("play",)).play(ctypes.c_long(len(steps)), *at[:2], *numbers, *at[2:], pointers)
        results: Matrix = sums[self._result].view(out)[:size].reshape(c.shape).astype(kind_of(plan.d))
        return results


def block_of(shape: tuple[int, int], length: int, threads: int) -> tuple[int, int]:
    """The rows and columns of a block of D, whose shape is `shape`. Each thread has at least one block, and a block
    reads at most `SIDE` elements of A and of B, or 64 rows of A and 64 columns of B."""
    outputs, most = math.prod(BLOCK), max(64, SIDE // max(length, 1))
    columns = max(1, min(BLOCK[1], shape[1], most))
    rows = max(1, min(outputs // columns, -(-shape[0] // threads) if shape[1] <= columns else shape[0], most))
    return rows, min(outputs // rows, most)


@lru_cache(maxsize=8192)
def noted(plan: Plan, length: int) -> Tape:
    """The steps of a plan; the cache keeps them, because many products have the same K."""
    return Tape(plan, length)


def _with_marks(steps: array[int], places: NDArray[np.int32]) -> NDArray[np.int64]:
    """The table of steps, in which two columns now say whether the places of a step follow one another."""
    table = np.array(steps, dtype=np.int64).reshape(-1, NUMBERS)
    breaks = np.cumsum(np.diff(places, prepend=places[:1]) != 1)
    for part in (PRODUCTS, FACTORS):
        some = np.flatnonzero(table[:, part + 1])
        first, count = table[some, part], table[some, part + 1]
        table[some, part + 2] = breaks[first] == breaks[first + count - 1]
    return table


def _with_slots(table: NDArray[np.int64], count: int, some: Sequence[int]) -> tuple[NDArray[np.int64], int, list[int]]:
    """The steps with slots in memory for values: a value takes the slot of a value that no later step reads. Also the
    number of slots, and the slots of `some` values. Slots 0 and 1 hold c and zeros. The last one of `some` is the
    result; the others have values before the first step."""
    last = np.full(count, -1)
    for slot in range(MOST_READ):
        reads = np.flatnonzero(np.maximum(table[:, READ], 1) > slot)
        np.maximum.at(last, table[reads, VALUES.start + 1 + slot], reads)
    last[some[-1]] = len(table)
    initial = [0, 1, *some[:-1]]
    spots = dict(zip(initial, range(count), strict=False))
    free, most = list[int](), len(initial)
    ends = last.tolist()
    for number, (read, out, *values) in enumerate(table[:, READ : VALUES.stop].tolist()):
        if free:
            spots[out] = free.pop()
        else:
            spots[out], most = most, most + 1
        over = {value for value in values[: max(read, 1)] if ends[value] == number}
        free += [spots[value] for value in over]
        if ends[out] < 0:
            free.append(spots[out])
    table[:, VALUES] = np.array([spots.get(value, 0) for value in range(count)])[table[:, VALUES]]
    return table, most, [spots[value] for value in some]


@cache
def _compiled(model: Model) -> CompiledModel:
    compiled = compile_model(model)
    if compiled is None:
        raise UncompiledError(model.reference)
    return compiled


def _word(fmt: Format) -> Any:
    """The NumPy type of patterns of a format in compiled functions."""
    return np.dtype(lane_type(fmt.width))


def _read_as(word: Round | None, side: Matrix, fmt: Format, gathered: Mapping[Gathered, Matrix]) -> Matrix:
    """A side of the product as units read it: the patterns of one word (None: of the elements themselves)."""
    if word is not None:
        node, parts = over_given(word)
        formats = (fmt, *(part.given for part in parts))
        lanes = compile_lanes(Elementwise(node, formats), tuple(x.width for x in formats))
        if lanes is None:
            raise UncompiledError(str(word))
        each = (spread_over(gathered[part], part.block, side.shape[1], 1) for part in parts)
        side = lanes(side, *(np.broadcast_to(x, side.shape) for x in each))[0]
        fmt = word.rounding.format
    return np.ascontiguousarray(side, dtype=_word(fmt))
