"""The inputs of one evaluation, and their order in a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain, pairwise
from typing import Generic, Protocol, TypeVar

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.operand import FURTHER, NAMED, OPERANDS, counts_of

Value = TypeVar("Value")

RAISED = "_raised"  # the end of the name of an operand that replaces another in a second evaluation


class Reader(Protocol):
    """A model or a plan. `addend`: whether it reads c."""

    @property
    def reference(self) -> str: ...
    @property
    def addend(self) -> bool: ...


def check_addend(how: Reader, given: bool, name: str = "c", instead: str = "leave it out") -> None:
    """Raises ParameterError if there is an addend (`given`) that `how` does not read. An array counts as an addend
    whatever its numbers, a pattern unless it is +0. `name`: the addend's name in the message; `instead`: its advice."""
    if given and not how.addend:
        raise ParameterError(name, f"{how.reference or 'this device'} does not read c: {instead}")


def check_plain(model: Model) -> None:
    """Raises ParameterError for a model with operands besides a, b, c and scale factors."""
    if more := [row.name for row in FURTHER if row.key != "scale" and row.name in model.formats]:
        raise ParameterError(more[0], f"{model.reference or 'the unit'} needs it, and it cannot be given here")


@dataclass(frozen=True)
class Operands(Generic[Value]):
    """The inputs of an evaluation: factors, addend and further operands, as bit vectors of any carrier or as patterns.

    `rest`: the elements of each further operand, in the order of `FURTHER`, without operands at the end that a model
    lacks. `changed`: the elements that replace some operands in a second evaluation, for questions about two.
    """

    a: tuple[Value, ...]
    b: tuple[Value, ...]
    c: Value
    rest: tuple[tuple[Value, ...], ...] = ()
    changed: tuple[Value, ...] = ()

    def __post_init__(self) -> None:
        if self.rest and not self.rest[-1]:
            last = max((place for place, side in enumerate(self.rest, start=1) if side), default=0)
            object.__setattr__(self, "rest", self.rest[:last])

    @property
    def sides(self) -> dict[str, tuple[Value, ...]]:
        """The elements of each operand by name."""
        return dict(zip(NAMED, (self.a, self.b, (self.c,), *self.rest, *[()] * len(FURTHER)), strict=False))

    @property
    def scale_a(self) -> tuple[Value, ...]:
        return self.sides["scale_a"]

    @property
    def scale_b(self) -> tuple[Value, ...]:
        return self.sides["scale_b"]

    @property
    def every(self) -> tuple[Value, ...]:
        """All elements in the order of a row: a, b, c, the further operands, `changed`."""
        return (*self.a, *self.b, self.c, *chain.from_iterable(self.rest), *self.changed)


def unpadded(operands: Operands[int]) -> Operands[int]:
    """The same input without products of two zero patterns at its end."""
    length = len(operands.a)
    while length and not operands.a[length - 1] and not operands.b[length - 1]:
        length -= 1
    return replace(operands, a=operands.a[:length], b=operands.b[:length])


def padded(operands: Operands[int], shape: Model | Layout) -> Operands[int]:
    """The same input with zeros for missing products at the end and their scale factors; without `changed`."""

    def filled(side: tuple[int, ...], count: int) -> tuple[int, ...]:
        return side + (0,) * (count - len(side))

    a, b, _, *counts = shape.counts
    sides = (*operands.rest, *[()] * len(counts))
    rest = tuple(map(filled, sides, counts)) if any(counts) else ()
    return Operands(filled(operands.a, a), filled(operands.b, b), operands.c, rest)


@dataclass(frozen=True)
class Layout:
    """The layout of an input as a row. `counts`: the number of elements of each operand, in the order of OPERANDS;
    `formats`, `names`: the format and the name of the element at each position of the row; `addend`: whether the unit
    reads c; if not, c is +0 in every row."""

    counts: tuple[int, ...]
    formats: tuple[Format, ...]
    names: tuple[str, ...]
    addend: bool = True

    @property
    def length(self) -> int:
        """The number of products."""
        return self.counts[0]

    @property
    def a(self) -> Format:
        return self.formats[0]

    @property
    def b(self) -> Format:
        return self.formats[self.length]

    @property
    def c(self) -> Format:
        return self.formats[2 * self.length]

    @property
    def scales(self) -> int:
        """The number of scale factors on each side."""
        return self.counts[3]

    @cached_property
    def _further(self) -> list[tuple[int, int]]:
        """The begin and end of each further operand in a row."""
        return list(pairwise(accumulate(self.counts, initial=0)))[3:] if any(self.counts[3:]) else []

    @cached_property
    def columns(self) -> int:
        """The number of positions of a row without those of `changed`."""
        return sum(self.counts)

    @property
    def further(self) -> range:
        """The positions of scale factors and further operands."""
        return range(2 * self.length + 1, self.columns)

    @cached_property
    def places(self) -> tuple[tuple[str, int], ...]:
        """The operand's name and the element's index in the operand for each position, without those of `changed`."""
        return tuple((row.name, k) for row, count in zip(OPERANDS, self.counts, strict=True) for k in range(count))

    @property
    def unread(self) -> tuple[int, ...]:
        """The positions of a row that no model reads, which are always +0."""
        return () if self.addend else (2 * self.length,)

    def split(self, row: Sequence[Value]) -> Operands[Value]:
        """The operands of an input given as a row."""
        k, further = self.counts[0], self._further
        rest = tuple([tuple(row[start:end]) for start, end in further]) if further else ()
        return Operands(tuple(row[:k]), tuple(row[k : 2 * k]), row[2 * k], rest, tuple(row[self.columns :]))


def layout_of(model: Model, length: int | None = None, *, addend: bool = True) -> Layout:
    """The layout of a model's inputs, or of inputs with `length` products, a multiple of the scale block. `addend`:
    whether other models on the same inputs read c."""
    length = model.length if length is None else length
    counts = counts_of(model.formats, length, length // model.scale_block)
    formats, names = list[Format](), list[str]()
    for row, count in zip(OPERANDS, counts, strict=True):
        formats += [model.formats[row.name]] * count if count else []
        names += map(row.at, range(count))
    return Layout(counts, tuple(formats), tuple(names), addend and model.addend)
