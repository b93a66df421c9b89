"""The two forms in which algorithms run: one dot product over any carrier, or whole matrices of patterns.

An algorithm is written once over the operations of `Form`. The dot product is what questions to solvers and small
evaluations want; matrices go through `gemm.simulate`, which is much faster. Tests hold the two together bit for bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from mmaprobe.smtmodel.algorithms.steps import InUnit, Pair, Step, Word
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.carriers.algebra import Bits, constant
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.evaluate.compiled import compile_lanes, compile_model
from mmaprobe.smtmodel.evaluate.model import Model, evaluate
from mmaprobe.smtmodel.plans import gemm

Side = TypeVar("Side")  # the numbers of A or of B
Value = TypeVar("Value")  # results: c, d, partial sums
Patterns = NDArray[Any]

CHUNK = 1 << 14  # elements at a time: their lanes stay in the processor's cache
LARGE = 1 << 16  # elements above which compiling pays

_CARRIER = ArrayCarrier()


class Form(ABC, Generic[Side, Value]):
    """What an algorithm may do with the numbers of a product."""

    @abstractmethod
    def length(self, a: Side) -> int:
        """The number of products of one sum."""

    @abstractmethod
    def words(self, side: Side, fmt: Format, split: Callable[[Bits], tuple[Bits, ...]]) -> tuple[Side, ...]:
        """Every number of a side, in `fmt`, taken apart."""

    @abstractmethod
    def apply(self, operation: Callable[..., Bits], fmt: Format, *values: Value) -> Value:
        """An operation on results that all have the format `fmt`."""

    @abstractmethod
    def chain(
        self, unit: Model, a: Side, b: Side, start: int, stop: int, addend: Value | None, words: Pair | None = None
    ) -> Value:
        """The unit's instructions, one after another, over the products from `start` to before `stop`, each result the
        next addend; the first addend is +0 for None. The last instruction is filled up with zero products. Every result
        is noted; `words` tells whose it is where factors have several words."""

    def note(self, step: Step, value: Value) -> None:
        """A step of the algorithm, for forms that keep them."""
        return

    def note_words(self, side: Literal["a", "b"], number: int, words: Side) -> None:
        """Word `number` of every factor of a side, for forms that keep steps."""
        return


def tiles_of(unit: Model, start: int, stop: int) -> list[slice]:
    """The products of each instruction of a chain."""
    return [slice(k, min(k + unit.length, stop)) for k in range(start, stop, unit.length)]


class DotForm(Form[tuple[Bits, ...], Bits]):
    """One sum of products; a side is a tuple of vectors of any carrier."""

    def length(self, a: tuple[Bits, ...]) -> int:
        return len(a)

    def words(
        self, side: tuple[Bits, ...], fmt: Format, split: Callable[[Bits], tuple[Bits, ...]]
    ) -> tuple[tuple[Bits, ...], ...]:
        return tuple(zip(*(split(number) for number in side), strict=True))

    def apply(self, operation: Callable[..., Bits], fmt: Format, *values: Bits) -> Bits:
        return operation(*values)

    def chain(
        self, unit: Model, a: tuple[Bits, ...], b: tuple[Bits, ...], start: int, stop: int, addend: Bits | None,
        words: Pair | None = None,
    ) -> Bits:  # fmt: skip
        running = constant(a[0].carrier, 0, unit.c.width) if addend is None else addend
        for tile in tiles_of(unit, start, stop):
            running = self.instruction(unit, a[tile], b[tile], running)
            self.note(InUnit(words, tile.start, tile.stop), running)
        return running

    def instruction(self, unit: Model, a: tuple[Bits, ...], b: tuple[Bits, ...], addend: Bits) -> Bits:
        """The result of one of the unit's instructions."""
        return evaluate(unit, a, b, addend).d


class StepsForm(DotForm):
    """A dot product that keeps the steps on the way, in their order: words of numbers, sums in the unit and outside."""

    def __init__(self) -> None:
        self.steps: dict[Step, Bits] = {}

    def note(self, step: Step, value: Bits) -> None:
        self.steps[step] = value

    def note_words(self, side: Literal["a", "b"], number: int, words: tuple[Bits, ...]) -> None:
        self.steps |= {Word(side, number, place): word for place, word in enumerate(words)}


class MatrixForm(Form[Patterns, Patterns]):
    """A product of matrices of patterns: `a` is rows x K, `b` K x columns, results rows x columns."""

    def __init__(self, threads: int | None = None, engine: gemm.Engine = "auto") -> None:
        self.threads = threads
        self.engine = engine

    def length(self, a: Patterns) -> int:
        return int(a.shape[1])

    def words(self, side: Patterns, fmt: Format, split: Callable[[Bits], tuple[Bits, ...]]) -> tuple[Patterns, ...]:
        return on_arrays(split, fmt, side, engine=self.engine)

    def apply(self, operation: Callable[..., Bits], fmt: Format, *values: Patterns) -> Patterns:
        return on_arrays(single(operation), fmt, *values, engine=self.engine)[0]

    def chain(
        self,
        unit: Model,
        a: Patterns,
        b: Patterns,
        start: int,
        stop: int,
        addend: Patterns | None,
        words: Pair | None = None,
    ) -> Patterns:
        engine = self.engine
        if engine == "auto":  # by the whole product: one instruction of it alone would not pay
            large = a.size * b.shape[1] >= gemm.SMALL
            engine = "compiled" if large and compile_model(unit) is not None else "numpy"
        return gemm.simulate(a[:, start:stop], b[start:stop], addend, unit, engine=engine, threads=self.threads)


@lru_cache(maxsize=64)
def single(operation: Callable[..., Bits]) -> Callable[..., tuple[Bits]]:
    """An operation with one result, for `on_arrays`; the same one each time, so that it is compiled once."""
    return lambda *lanes: (operation(*lanes),)


def on_arrays(
    function: Callable[..., Sequence[Bits]], fmt: Format, *arrays: Patterns, engine: gemm.Engine = "auto"
) -> tuple[Patterns, ...]:
    """The results of a function of vectors on arrays of one shape, element by element, as unsigned integers."""
    count = arrays[0].size
    if engine == "compiled" or (engine == "auto" and count >= LARGE):
        compiled = compile_lanes(function, (fmt.width,) * len(arrays))
        if compiled is not None:
            return tuple(compiled(*arrays))
    flat = [array.ravel() for array in arrays]

    def chunk(start: int) -> list[Patterns]:
        pieces = [side[start : start + CHUNK] for side in flat]
        with np.errstate(over="ignore"):
            found = function(*(_CARRIER.lanes(piece, fmt.width) for piece in pieces))
        kinds = [np.uint32 if bits.width <= 32 else np.uint64 for bits in found]
        full = [np.broadcast_to(np.asarray(bits.node), pieces[0].shape) for bits in found]
        return [lanes.astype(kind) for lanes, kind in zip(full, kinds, strict=True)]

    with ThreadPoolExecutor() as pool:
        parts = list(pool.map(chunk, range(0, max(count, 1), CHUNK)))
    return tuple(np.concatenate(side).reshape(arrays[0].shape) for side in zip(*parts, strict=True))
