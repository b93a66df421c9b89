"""Sums of n numbers by chained matrix instructions with a matrix of ones (Navarro et al. 2020), and, for comparison, by
trees without matrix instructions.

A warp takes R matrices of m x m numbers. R chained products with ones on the left give the sums of the columns, and one
product with ones on the right adds these sums (equations 18 to 22 of the paper).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property, partial
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from mmaprobe.smtmodel.algorithms.words import adder, converted
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.carriers.arrays import lane_type
from mmaprobe.smtmodel.evaluate.compiled import compile_lanes, compile_model
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import check_addend, check_plain
from mmaprobe.smtmodel.evaluate.programs import ARRAYS
from mmaprobe.smtmodel.families.parameters import Parameter, check_parameter
from mmaprobe.smtmodel.plans.gemm import Engine, simulate
from mmaprobe.smtmodel.tables.reference import parse_reference

Numbers = TypeVar("Numbers")
Value = TypeVar("Value")
F16, F32 = FORMATS["f16"], FORMATS["f32"]
WARP = 32  # threads that add what they have by shuffles
LONG = 256  # the number of additions in sequence from which on compiled code is faster, including the compilation
CHUNK = 1 << 14  # elements evaluated at a time, whose lanes fit the processor's cache
LARGE = 1 << 16  # the number of elements from which on compiled code is faster, including the compilation

PARAMETERS: dict[str, Parameter] = {
    "unit": Parameter("the matrix unit", ("a model reference (in parentheses if it has parameters)",)),
    "side": Parameter("m: a warp sums matrices of m x m numbers", low=1, high=64),
    "chain": Parameter("R: matrices chained by a warp before the sums of columns are added up", low=1, high=1024),
    "columns": Parameter("sums of columns: rounded to the unit's format for one more instruction, or added outside",
                         ("unit", "outside")),
    "warps": Parameter("warps of a block, whose results are added in a tree", low=1, high=32),
    "share": Parameter("percent of the numbers that go through the unit", low=1, high=99),
    "format": Parameter("of every number and sum", ("f16", "f32")),
}  # fmt: skip
FREE = {"unit"}


class Operations(ABC, Generic[Numbers]):
    """The operations that a reduction uses on the numbers that it sums."""

    @abstractmethod
    def length(self, numbers: Numbers) -> int: ...

    @abstractmethod
    def part(self, numbers: Numbers, start: int, stop: int) -> Numbers: ...

    @abstractmethod
    def joined(self, first: Numbers, second: Numbers) -> Numbers: ...

    @abstractmethod
    def converted(self, source: Format, fmt: Format, numbers: Numbers) -> Numbers:
        """Every number in another format, rounded to nearest even."""

    @abstractmethod
    def column_sums(self, unit: Model, shape: tuple[int, int], chain: int, numbers: Numbers) -> Numbers:
        """The sums of the columns of every `chain` matrices of `shape` (rows, columns), as products of ones with these
        matrices, each result the next product's addend. The numbers are row by row; the last group of matrices is
        filled up with +0."""

    @abstractmethod
    def trees(self, fmt: Format, size: int, numbers: Numbers) -> Numbers:
        """The sum in a tree (`in_tree`) of each group of `size` neighbours, the last group filled up with +0."""

    @abstractmethod
    def in_sequence(self, fmt: Format, numbers: Numbers) -> Numbers:
        """The sum of numbers that are added one after another, each sum rounded to nearest, as by atomic additions in
        ascending order."""


class ArrayOperations(Operations[NDArray[Any]]):
    """Numbers as a flat array of patterns; groups of numbers are summed side by side, one group in each lane."""

    def length(self, numbers: NDArray[Any]) -> int:
        return len(numbers)

    def part(self, numbers: NDArray[Any], start: int, stop: int) -> NDArray[Any]:
        return numbers[start:stop]

    def joined(self, first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([first, second])

    def converted(self, source: Format, fmt: Format, numbers: NDArray[Any]) -> NDArray[Any]:
        return on_arrays(_converter(source, fmt), source, numbers)

    def column_sums(self, unit: Model, shape: tuple[int, int], chain: int, numbers: NDArray[Any]) -> NDArray[Any]:
        side, width = shape
        large = numbers.size >= LARGE and compile_model(unit) is not None
        engine: Engine = "compiled" if large else "numpy"
        matrices = np.pad(numbers, (0, -len(numbers) % (chain * side * width))).reshape(-1, chain, side, width)
        ones = np.full((1, side), unit.a.one, dtype=np.uint32)
        running: NDArray[Any] | None = None
        for r in range(chain):
            columns = matrices[:, r].transpose(1, 0, 2).reshape(side, -1)
            running = simulate(ones, columns, running, unit, engine=engine)
        assert running is not None
        return np.asarray(running[0])

    def trees(self, fmt: Format, size: int, numbers: NDArray[Any]) -> NDArray[Any]:
        def both(x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
            return on_arrays(adder(fmt), fmt, x, y)

        groups = np.pad(numbers, (0, -len(numbers) % size)).reshape(-1, size)
        return in_tree(both, list(np.ascontiguousarray(groups.T)))

    def in_sequence(self, fmt: Format, numbers: NDArray[Any]) -> NDArray[Any]:
        """The sum by multiply-adds with a factor of one, which give the same results and are simulated fast."""
        unit = parse_reference(f"ieee/fma/{fmt.name}")
        ones = np.full((len(numbers) - 1, 1), fmt.one, dtype=np.uint32)
        first, rest = numbers[None, :1], numbers[None, 1:]
        engine: Engine = "compiled" if len(numbers) > LONG and compile_model(unit) is not None else "numpy"
        return np.asarray(simulate(rest, ones, first, unit, engine=engine)[0])


@cache
def _converter(source: Format, fmt: Format) -> Callable[..., Bits]:
    return partial(converted, source=source, fmt=fmt)


@cache
def _single(operation: Callable[..., Bits]) -> Callable[..., tuple[Bits]]:
    """An operation as a function with a tuple of one result; the same function each time, so that it is compiled
    once."""
    return lambda *lanes: (operation(*lanes),)


def on_arrays(operation: Callable[..., Bits], fmt: Format, *arrays: NDArray[Any]) -> NDArray[Any]:
    """An operation on patterns of a format, on arrays of one shape, element by element."""
    count = arrays[0].size
    if count >= LARGE and (compiled := compile_lanes(_single(operation), (fmt.width,) * len(arrays))) is not None:
        return np.asarray(compiled(*arrays)[0])
    chunks = [operation(*(ARRAYS.lanes(side[start : start + CHUNK], fmt.width) for side in arrays))
             for start in range(0, max(count, 1), CHUNK)]  # fmt: skip
    return np.concatenate([np.asarray(bits.node, dtype=lane_type(bits.width)) for bits in chunks])


def in_tree(both: Callable[[Value, Value], Value], numbers: Sequence[Value]) -> Value:
    """The sum in a tree, as by the shuffles of a warp: numbers k and k + half are added for every k, then these sums in
    the same way, until one is left."""
    layer = list(numbers)
    while len(layer) > 1:
        half = (len(layer) + 1) // 2
        layer = [both(layer[k], layer[k + half]) if k + half < len(layer) else layer[k] for k in range(half)]
    return layer[0]


@dataclass(frozen=True)
class Reduction(ABC):
    """An algorithm for the sum of n f32 numbers, whose result has the format `result_format`. Raises ParameterError and
    UnknownNameError."""

    name: ClassVar[str]
    about: ClassVar[str]
    parameters: ClassVar[dict[str, Parameter]] = PARAMETERS
    free: ClassVar[set[str]] = FREE

    def __post_init__(self) -> None:
        for name in {field.name for field in fields(self)} - FREE:
            check_parameter(name, getattr(self, name), PARAMETERS)

    @property
    def result_format(self) -> Format:
        return F32

    @abstractmethod
    def evaluate(self, operations: Operations[Numbers], numbers: Numbers) -> Numbers:
        """The sum of the numbers, as a single number."""


@dataclass(frozen=True)
class WarpShuffle(Reduction):
    """A sum without matrix unit: trees in warps of 32 and in blocks, then atomic additions, all in one format.
    format=f32 stands for the baseline of Navarro et al. as their text describes it (their code adds in f16 within a
    warp) and for their CUB-float, format=f16 for their CUB-half (CUB itself adds in another order)."""

    name: ClassVar[str] = "warp-shuffle"
    about: ClassVar[str] = "a sum by trees in warps and blocks, without matrix unit"

    format: Literal["f16", "f32"] = "f32"
    warps: int = 32

    @property
    def result_format(self) -> Format:
        return FORMATS[self.format]

    def blocks(self, operations: Operations[Numbers], numbers: Numbers) -> Numbers:
        fmt = self.result_format
        rounded = operations.converted(F32, fmt, numbers)
        return operations.trees(fmt, self.warps, operations.trees(fmt, WARP, rounded))

    def evaluate(self, operations: Operations[Numbers], numbers: Numbers) -> Numbers:
        return operations.in_sequence(self.result_format, self.blocks(operations, numbers))


@dataclass(frozen=True)
class Chained(Reduction):
    """The common part of the reductions by matrix instructions."""

    unit: str = "volta/mma/m8n8k4.f32.f16.f16.f32"
    side: int = 16
    chain: int = 4
    columns: Literal["unit", "outside"] = "unit"

    def __post_init__(self) -> None:
        super().__post_init__()
        model = self.model
        if model.scale is not None or model.c.name != "f32" or model.a.name != model.b.name:
            raise ParameterError("unit", f"{self.unit}: a unit with factors of one format and f32 sums is needed")
        check_plain(model)
        check_addend(model, True, "unit", "an earlier sum would be lost")

    @cached_property
    def model(self) -> Model:
        return parse_reference(self.unit)

    def warp_sums(self, operations: Operations[Numbers], numbers: Numbers) -> Numbers:
        """The sums (f32) of every R matrices of numbers of the unit's format. The ones of the last product are on the
        left here and on the right in the paper; no unit treats its factors differently."""
        columns = operations.column_sums(self.model, (self.side, self.side), self.chain, numbers)
        if self.columns == "outside":
            return operations.trees(F32, self.side, columns)
        return operations.column_sums(self.model, (self.side, 1), 1, self.rounded(operations, columns))

    def rounded(self, operations: Operations[Numbers], numbers: Numbers) -> Numbers:
        return operations.converted(F32, self.model.a, numbers)


@dataclass(frozen=True)
class SinglePass(Chained):
    """Chains of R instructions by each warp, then f32 sums: a tree in each block, atomic additions of the blocks
    (Navarro et al. 2020, section 5.2: R = 4, blocks of 128 threads). The numbers, and between the two products the
    sums of columns (equation 22 needs them as a factor), are rounded to nearest even to the unit's format;
    columns=outside keeps the sums of columns in f32, as the paper's abstract says, and adds them outside."""

    name: ClassVar[str] = "single-pass"
    about: ClassVar[str] = "a sum by chained matrix instructions, then in f32 (Navarro et al. 2020)"

    warps: int = 4

    def blocks(self, operations: Operations[Numbers], numbers: Numbers) -> Numbers:
        return operations.trees(F32, self.warps, self.warp_sums(operations, self.rounded(operations, numbers)))

    def evaluate(self, operations: Operations[Numbers], numbers: Numbers) -> Numbers:
        return operations.in_sequence(F32, self.blocks(operations, numbers))


@dataclass(frozen=True)
class Recurrence(Chained):
    """The warps' results are rounded to the unit's format, and are summed in the same way until one is left (Navarro et
    al. 2020, section 5.1: R = 5, blocks of one warp). Partial sums beyond the format's range overflow."""

    name: ClassVar[str] = "recurrence"
    about: ClassVar[str] = "a sum by matrix instructions over and over, partial sums in f16 (Navarro et al. 2020)"

    chain: int = 5

    @property
    def result_format(self) -> Format:
        return self.model.a

    def evaluate(self, operations: Operations[Numbers], numbers: Numbers) -> Numbers:
        numbers = self.rounded(operations, numbers)
        while True:
            numbers = self.rounded(operations, self.warp_sums(operations, numbers))
            if operations.length(numbers) == 1:
                return numbers


@dataclass(frozen=True)
class Split(Chained):
    """A share of the numbers is summed by chains of one instruction, the rest by shuffles in f32; atomic additions sum
    all blocks (Navarro et al. 2020, section 5.3)."""

    name: ClassVar[str] = "split"
    about: ClassVar[str] = "a sum half by matrix instructions, half by shuffles (Navarro et al. 2020)"

    chain: int = 1
    share: int = 50
    warps: int = 4

    def evaluate(self, operations: Operations[Numbers], numbers: Numbers) -> Numbers:
        length = operations.length(numbers)
        cut = max(1, length * self.share // 100)
        first = SinglePass(self.unit, self.side, self.chain, self.columns, self.warps)
        blocks = first.blocks(operations, operations.part(numbers, 0, cut))
        if cut < length:
            rest = WarpShuffle("f32", self.warps).blocks(operations, operations.part(numbers, cut, length))
            blocks = operations.joined(blocks, rest)
        return operations.in_sequence(F32, blocks)
