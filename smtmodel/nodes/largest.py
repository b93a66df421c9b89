"""The largest magnitude of some elements, from which scale factors of block formats are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from mmaprobe.smtmodel.arithmetic.decode import unpack
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import Bits, max_of
from mmaprobe.smtmodel.nodes.element import Element
from mmaprobe.smtmodel.nodes.known import Known
from mmaprobe.smtmodel.nodes.node import Context, Knowledge, Node, Value


def check_magnitudes(fmt: Format) -> None:
    """Raises ParameterError for a format whose patterns are not ordered as magnitudes are, with NaNs above all
    numbers."""
    if fmt.complement or fmt.nan_for_negative_zero or not fmt.subnormals:
        raise ParameterError("largest", f"patterns of {fmt.name} are not ordered as magnitudes are")


def magnitude(pattern: Bits, fmt: Format) -> Bits:
    """A pattern without its sign, and with zeros for the bits that the format ignores. Such patterns have the order of
    the magnitudes, with NaNs above all numbers."""
    return pattern.extract(fmt.field_width - 1, fmt.padding).pad(fmt.padding).zext(fmt.width)


@dataclass(frozen=True, eq=False)
class Largest(Node):
    """The largest magnitude of some elements of one operand: a NaN if an element is a NaN, else an infinity if an
    element is infinite. `format`: the format of the elements."""

    kind: ClassVar[str] = "largest"
    source: ClassVar[str] = "OCP microscaling 1.0, 6.3"
    one_side: ClassVar[str] = "the largest magnitude is one of elements of one side: largest(a[0:16])"
    items: tuple[Node, ...]
    format: Format
    is_number = never_below_zero = True

    def __post_init__(self) -> None:
        check_magnitudes(self.format)
        plain = all(isinstance(item, Element) and item.subnormals == "keep" for item in self.items)
        if not self.items or not plain:
            raise ParameterError("largest", self.one_side)

    def evaluate(self, context: Context, keep: int | None) -> Value:
        own_of = partial(magnitude, fmt=self.format)
        own = list[Bits]()
        for item in self.items:
            assert isinstance(item, Element)
            assert item.index is not None
            pattern = context.pattern(item.operand, context.at(item.index))
            own.append(context.formed((self.kind, self.format), own_of, pattern))
        return context.step(self, unpack(max_of(own), self.format))

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        return Known.number(frozenset({self.format}))

    def sentence(self) -> str:
        return "the largest magnitude"
