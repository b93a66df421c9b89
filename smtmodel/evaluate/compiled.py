"""Models compiled to machine code: the same definition, traced through the algebra into C.

A C compiler is needed (named by CC, else `clang`, else `cc`); without one, or for a unit of very many steps,
`compile_model` returns None and callers use the array carrier. Libraries are kept in the user's cache folder, under
names made of their source, the compiler and the processor. The code is C rather than Numba's, because C states the
width of every lane, which a compiler needs for vector instructions, and because C adds no dependency.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaprobe.smtmodel.arithmetic.decode import unpack
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.libraries import address_of, compiler, loaded
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, any_of
from mmaprobe.smtmodel.carriers.arrays import lane_type
from mmaprobe.smtmodel.carriers.code import COLUMN, INNER, PRELUDE, ROW, CodeCarrier, CodeValue, word_type
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes.trace import Silent

LONGEST = 8000  # the most statements, since an optimising compiler takes minutes for many more
CACHE = 48 << 10  # bytes of the decoded columns of a strip: about the first-level cache
LINES = 16  # rows that are decoded at a time, as lanes of one vector
_VARIABLE = re.compile("(?<![0-9A-Za-z])[vabpqx][0-9A-Za-z]*")

_PROGRAM = """{prelude}
#define STRIP {strip}
#define LINES {lines}
#define INPUTS long rows, long columns, long steps, const {ta} *a, const {tb} *b, const {tc} *c, {td} *d, SCALES
#define SCALES const uint32_t *p, const uint32_t *q
static __attribute__((noinline)) void loops(INPUTS) {{
  /* a: {k} steps x rows; b: {k} steps x columns; c, d: rows x columns; p: {s} steps x rows; q: {s} steps x columns */
  {slots}
  for (long start = 0; start < columns; start += STRIP)
  for (long step = 0; step < steps; step++) {{
    long count = columns - start < STRIP ? columns - start : STRIP;
    uint32_t special = 0;
    EACH for (long j = 0; j < count; j++) {{
{column}
    }}
    for (long j = 0; j < count; j++) special |= {column_special};
    for (long top = 0; top < rows; top += LINES) {{
      long lines = rows - top < LINES ? rows - top : LINES;
      EACH for (long i = 0; i < lines; i++) {{
{row}
      }}
      for (long i = 0; i < lines; i++) {{
{given}
        const {tc} *cc = (step ? (const {tc} *)d : c) + (top + i) * columns + start;
        {td} *dd = d + (top + i) * columns + start;
        uint32_t here = special;
        EACH for (long j = 0; j < count; j++) {{
{addend}
        }}
        if (here) EACH for (long j = 0; j < count; j++) {{
{inner}
        }}
        else EACH for (long j = 0; j < count; j++) {{
{finite}
        }}
      }}
    }}
  }}
}}
void tile(INPUTS) {{
  const unsigned kept = ieee_environment({environment});
  loops(rows, columns, steps, a, b, c, d, p, q);
  restore_environment(kept);
}}
"""

_LANES = """{prelude}
static __attribute__((noinline)) void loop(long count, {parameters}) {{
  EACH for (long i = 0; i < count; i++) {{
{body}
  }}
}}
void lanes(long count, {parameters}) {{
  const unsigned kept = ieee_environment({environment});
  loop(count, {arguments});
  restore_environment(kept);
}}
"""


class TooLongError(Exception):
    """A function of more statements than a compiler compiles in a short time."""


def c_source(model: Model) -> str:
    """The C source of chained steps over a tile of outputs. Raises TooLongError.

    The source has two inner loops: for all inputs, and for inputs without NaNs and infinities, from the same definition
    over formats that have neither.
    """
    carrier, k, unit = CodeCarrier(), model.length, model.unit
    a = [carrier.input(f"a{x}", model.a.width, ROW) for x in range(k)]
    b = [carrier.input(f"b{x}", model.b.width, COLUMN) for x in range(k)]
    c = carrier.input("c0", model.c.width, INNER)
    scale, width = unit.scale, unit.scale.width if unit.scale else 0
    p, q = (
        [carrier.input(f"{x}{k}", width, place) for k in range(unit.scales)] for x, place in (("p", ROW), ("q", COLUMN))
    )
    plain = replace(unit, a=unit.a.finite, b=unit.b.finite, c=unit.c.finite, scale=scale and scale.finite)
    results = [version.evaluate(a, b, c, p, q, trace=Silent())[0].node for version in (unit, plain)]
    specials = [
        any_of([*(_is_special(x, fmt) for x in side), *(_is_special(x, scale) for x in factors if scale)]).node
        for side, fmt, factors in ((a, unit.a, p), (b, unit.b, q), ([c], unit.c, []))
    ]
    loops = _Loops(model, carrier, results, specials)
    kinds = {f"t{side}": word_type(getattr(model, side).width) for side in "abcd"}
    bodies = {name: "\n".join(" " * 8 + line for line in lines) for name, lines in loops.bodies.items()}
    return _PROGRAM.format(
        prelude=PRELUDE,
        strip=loops.strip,
        lines=LINES,
        k=k,
        s=unit.scales,
        environment=carrier.environment,
        column_special=loops.column_special,
        slots="\n  ".join(loops.arrays),
        **kinds,
        **bodies,
    )


def _is_special(pattern: Bits, fmt: Format) -> Bit:
    item = unpack(pattern, fmt)
    return item.is_nan | item.is_infinite


class _Loops:
    """The statements of each loop (`bodies`). Values of the row and column loops that inner loops read are stored in
    arrays (`slots`: variable -> the C expression of its element)."""

    def __init__(
        self, model: Model, carrier: CodeCarrier, results: Sequence[CodeValue], specials: Sequence[CodeValue]
    ) -> None:
        inner, finite = (needed_statements(carrier, [result]) for result in results)
        addend = needed_statements(carrier, [specials[2]])
        outer = [name for name, _ in (*inner, *finite) if name.place != INNER]
        shared = needed_statements(carrier, [*specials[:2], *outer])
        if max(len(inner), len(finite)) > LONGEST:
            raise TooLongError(f"{len(inner)} statements")
        texts = [text for part in (inner, finite) for name, text in part if name.place == INNER]
        used = set(variables_in(" ".join([*texts, *(result.text for result in results)])))
        self.slots: dict[str, str] = {}
        self.counts: dict[tuple[int, str], int] = {}
        self.bodies: dict[str, list[str]] = {"row": [], "column": [], "given": []}
        kept: dict[str, CodeValue] = {}
        for place, part in ((ROW, "row"), (COLUMN, "column")):
            for name, text in [*_operands(model, place), *shared]:
                if (name.place or ROW) == place:  # constants are stored with the rows
                    self.bodies[part].append(name.declared(text))
                    if name.text in used or name in specials[:2]:
                        self.slots[name.text] = self._slot(place, name.kind)
                        self.bodies[part].append(f"{self.slots[name.text]} = {name.text};")
                        kept[name.text] = name
        for name in kept.values():
            if name.place != COLUMN:
                self.bodies["given"].append(name.declared(self.slots.pop(name.text)))
        self.column_special = self.slots.get(specials[1].text, specials[1].text)
        start = [f"const {word_type(model.c.width)} c0 = cc[j];"]
        here = f"here |= {specials[0].text} | {specials[2].text};"
        self.bodies["addend"] = [*start, *self._lines(addend, kept), here]
        for part, statements, result in (("inner", inner, results[0]), ("finite", finite, results[1])):
            last = f"dd[j] = ({word_type(model.d.width)}){result.text};"
            self.bodies[part] = [*start, *self._lines(statements, kept), last]

    def _slot(self, place: int, kind: str) -> str:
        """A new element of the array of a loop and a type. Values share one array, so that one address serves for
        all."""
        number = self.counts[place, kind] = self.counts.get((place, kind), 0) + 1
        return f"{_array(place, kind)}[{number - 1}][{'i' if place == ROW else 'j'}]"

    @property
    def strip(self) -> int:
        """The number of columns that are decoded at a time."""
        column = sum(
            count * (4 if kind == "uint32_t" else 8) for (place, kind), count in self.counts.items() if place == COLUMN
        )
        return max(64, min(512, CACHE // max(1, column) // 64 * 64))

    @property
    def arrays(self) -> list[str]:
        """The declarations of the arrays of row and column values."""
        size = {ROW: "LINES", COLUMN: "STRIP"}
        return [
            f"{kind} {_array(place, kind)}[{count}][{size[place]}] __attribute__((aligned(64)));"
            for (place, kind), count in self.counts.items()
        ]

    def _lines(self, statements: Sequence[tuple[CodeValue, str]], kept: Mapping[str, CodeValue]) -> list[str]:
        """The statements of an inner loop; a value is loaded from its slot just before it is read."""
        lines, loaded = list[str](), set[str]()
        for name, text in statements:
            if name.place == INNER:
                for word in variables_in(text):
                    if word in self.slots and word not in loaded:
                        loaded.add(word)
                        lines.append(kept[word].declared(self.slots[word]))
                lines.append(name.declared(text))
        return lines


def _operands(model: Model, place: int) -> list[tuple[CodeValue, str]]:
    """The inputs of a row or a column, patterns and scale factors, each with the C expression that reads it."""
    side, factor, at = ("a", "p", "rows + top + i") if place == ROW else ("b", "q", "columns + start + j")
    kinds = {side: (getattr(model, side).width, model.length), factor: (32, model.scales)}
    return [
        (CodeValue(f"{array}{x}", place, word_type(width), 0), f"{array}[(step * {count} + {x}) * {at}]")
        for array, (width, count) in kinds.items()
        for x in range(count)
    ]


def _array(place: int, kind: str) -> str:
    return f"{'row' if place == ROW else 'column'}_{kind}"


def variables_in(text: str) -> list[str]:
    """The variables in a statement."""
    return _VARIABLE.findall(text)


def needed_statements(carrier: CodeCarrier, results: Sequence[CodeValue]) -> list[tuple[CodeValue, str]]:
    """The statements on which the results depend, each just before the first statement that reads it, so that few
    values occupy registers at a time."""
    statements = {name.text: (name, text) for name, text in carrier.words.statements}
    needed: dict[str, tuple[CodeValue, str]] = {}
    waiting = [(result.text, False) for result in reversed(results)]
    while waiting:
        word, ready = waiting.pop()
        if word not in statements or word in needed:
            continue
        if ready:
            needed[word] = statements[word]
        else:
            waiting.append((word, True))
            waiting += [(other, False) for other in reversed(variables_in(statements[word][1]))]
    return list(needed.values())


class _Compiled:
    """A C function whose arguments are some numbers and then pointers to arrays."""

    def __init__(self, function: Any, numbers: int, arrays: int) -> None:
        self._function = function
        function.restype = None
        function.argtypes = [*[ctypes.c_long] * numbers, *[ctypes.c_void_p] * arrays]

    @cached_property
    def address(self) -> int:
        """The address of the function."""
        return address_of(self._function)


class CompiledModel(_Compiled):
    """Chained steps of a model over tiles of outputs: the results of each step are the addends of the next."""

    def __init__(self, model: Model, library: Any) -> None:
        super().__init__(library.tile, 3, 6)
        self.model = model
        self._types = [np.dtype(lane_type(getattr(model, side).width)) for side in "abcd"]

    def tile(self, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any], *scales: NDArray[Any]) -> NDArray[Any]:
        """d (rows x columns) for patterns a (rows x length), b (length x columns) and c (rows x columns) of any integer
        type, and, for models that take these, scale factors (rows x scales, scales x columns). With n times the length
        and n times the scale factors there are n steps; each step's results are the next step's addends, without
        conversion. Raises ValueError for other shapes."""
        left, right, addend = (
            np.ascontiguousarray(side, dtype=kind) for side, kind in zip((a.T, b, c), self._types, strict=False)
        )
        out = np.empty(addend.shape, dtype=self._types[3])
        factors = [np.ascontiguousarray(x, dtype=np.uint32) for x in (*(p.T for p in scales[:1]), *scales[1:])]
        (rows, columns), steps = out.shape, max(1, len(left) // self.model.length)
        k, s = steps * self.model.length, steps * self.model.scales
        expected = [(k, rows), (k, columns), *([(s, rows), (s, columns)] if s else [])]
        shapes = [side.shape for side in (left, right, *factors)]
        if shapes != expected:
            raise ValueError(f"shapes {shapes} do not fit {expected}")
        pointers = [array.ctypes.data for array in (left, right, addend, out, *factors)]
        self._function(rows, columns, steps, *pointers, *([] if s else [None, None]))
        return out


@cache
def compile_model(model: Model) -> CompiledModel | None:
    """The compiled model; None without a C compiler, or if the source is too long."""
    if compiler() is None:
        return None
    try:
        library = loaded(c_source(model), ("tile",))
    except TooLongError:
        return None
    return None if library is None else CompiledModel(model, library)


class CompiledLanes(_Compiled):
    """A function of bit vectors over arrays, element by element."""

    def __init__(self, library: Any, outputs: Sequence[int], inputs: Sequence[int]) -> None:
        super().__init__(library.lanes, 1, len(inputs) + len(outputs))
        self._types = [[np.dtype(lane_type(width)) for width in part] for part in (inputs, outputs)]

    def __call__(self, *arrays: NDArray[Any]) -> list[NDArray[Any]]:
        """The results for arrays of patterns, all of one shape and of any integer type."""
        sides = [np.ascontiguousarray(x, dtype=kind) for x, kind in zip(arrays, self._types[0], strict=True)]
        results = [np.empty(sides[0].shape, dtype=kind) for kind in self._types[1]]
        self._function(sides[0].size, *(array.ctypes.data for array in (*sides, *results)))
        return results


@lru_cache(maxsize=64)
def compile_lanes(function: Callable[..., Sequence[Bits]], widths: tuple[int, ...]) -> CompiledLanes | None:
    """A compiled function of bit vectors of `widths` bits; None without a C compiler. Tracing takes some milliseconds,
    compiling a new function some tenths of a second."""
    if compiler() is None:
        return None
    carrier = CodeCarrier()
    results = function(*(carrier.input(f"x{k}", width, INNER) for k, width in enumerate(widths)))
    names = [result.node for result in results]
    lines = [f"const {word_type(width)} x{k} = in{k}[i];" for k, width in enumerate(widths)]
    lines += [name.declared(text) for name, text in needed_statements(carrier, names)]
    lines += [f"out{k}[i] = ({word_type(x.width)}){x.node.text};" for k, x in enumerate(results)]
    parameters = [f"const {word_type(width)} *in{k}" for k, width in enumerate(widths)]
    parameters += [f"{word_type(x.width)} *restrict out{k}" for k, x in enumerate(results)]
    body = "\n".join("    " + line for line in lines)
    arguments = ", ".join(parameter.rpartition("*")[2].removeprefix("restrict ") for parameter in parameters)
    source = _LANES.format(
        prelude=PRELUDE,
        environment=carrier.environment,
        parameters=", ".join(parameters),
        arguments=arguments,
        body=body,
    )
    library = loaded(source, ("lanes",))
    return None if library is None else CompiledLanes(library, [x.width for x in results], widths)
