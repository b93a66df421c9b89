"""The inputs of one evaluation, and the order in which they are in a flat row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.model import Model

Value = TypeVar("Value")

RAISED = "_raised"  # ends the name of an operand that takes another's place in a second evaluation


class Reader(Protocol):
    """A model or a plan, which may not read c."""

    @property
    def reference(self) -> str: ...
    @property
    def addend(self) -> bool: ...


def check_addend(how: Reader, given: bool, name: str = "c", instead: str = "leave it out") -> None:
    """Raises ParameterError for an addend (called `name`) that would not be read. `given`: whether there is one: an
    array is, whatever it holds; a pattern is where it is not that of +0."""
    if given and not how.addend:
        raise ParameterError(name, f"{how.reference or 'this device'} does not read c: {instead}")


@dataclass(frozen=True)
class Operands(Generic[Value]):
    """Products' factors, addend, and scale factors (none for most models): vectors of any carrier, or patterns.

    `changed`: what takes the place of some of them in a second evaluation, for questions that need one.
    """

    a: tuple[Value, ...]
    b: tuple[Value, ...]
    c: Value
    scale_a: tuple[Value, ...] = ()
    scale_b: tuple[Value, ...] = ()
    changed: tuple[Value, ...] = ()

    @property
    def every(self) -> tuple[Value, ...]:
        """All of them in the order of a row: a, b, c, scale_a, scale_b, changed."""
        return (*self.a, *self.b, self.c, *self.scale_a, *self.scale_b, *self.changed)


def unpadded(operands: Operands[int]) -> Operands[int]:
    """The same input without the zero products (of two zero patterns) at its end."""
    length = len(operands.a)
    while length and not operands.a[length - 1] and not operands.b[length - 1]:
        length -= 1
    return replace(operands, a=operands.a[:length], b=operands.b[:length])


def padded(operands: Operands[int], shape: Model | Layout) -> Operands[int]:
    """The same input with zeros for missing trailing products, and for their scale factors."""

    def filled(side: tuple[int, ...], count: int) -> tuple[int, ...]:
        return (*side, *[0] * (count - len(side)))

    a, b = (filled(side, shape.length) for side in (operands.a, operands.b))
    scales = (filled(side, shape.scales) for side in (operands.scale_a, operands.scale_b))
    return Operands(a, b, operands.c, *scales)


@dataclass(frozen=True)
class Layout:
    """The shape of an input: how many products and scale factors, and the format of each position of a row. `addend`:
    whether c is read; where it is not, it is +0 in every row."""

    length: int
    scales: int
    formats: tuple[Format, ...]
    names: tuple[str, ...]
    addend: bool = True

    @property
    def unread(self) -> tuple[int, ...]:
        """The positions of a row that are +0, since nothing reads them."""
        return () if self.addend else (2 * self.length,)

    def split(self, row: Sequence[Value]) -> Operands[Value]:
        """The operands of a row."""
        k, s = self.length, self.scales
        first = 2 * k + 1
        return Operands(
            tuple(row[:k]),
            tuple(row[k : 2 * k]),
            row[2 * k],
            tuple(row[first : first + s]),
            tuple(row[first + s : first + 2 * s]),
            tuple(row[first + 2 * s :]),
        )


def layout_of(model: Model, length: int | None = None, *, addend: bool = True) -> Layout:
    """The layout of a model's inputs, or of inputs with fewer products (a multiple of its scale block). `addend`:
    whether others that take the same inputs read c."""
    length = model.length if length is None else length
    scales = length // model.scale_block if model.scale else 0
    parts: list[tuple[str, int, Format]] = [("a", length, model.a), ("b", length, model.b)]
    formats = [fmt for _, count, fmt in parts for _ in range(count)] + [model.c]
    names = [f"{name}{k}" for name, count, _ in parts for k in range(count)] + ["c"]
    if model.scale is not None:
        formats += [model.scale] * (2 * scales)
        names += [f"{name}{k}" for name in ("scale_a", "scale_b") for k in range(scales)]
    return Layout(length, scales, tuple(formats), tuple(names), addend and model.addend)
