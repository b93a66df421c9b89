"""The parts of documents: values with named fields, and the parts that documents of several commands share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, dataclass_transform

if TYPE_CHECKING:
    from mmaprobe.smtmodel.inputs import vectors


class Absent:
    """The value of a missing field, which is false."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Any = Absent()

Hex = Annotated[str, re.compile("[0-9a-f]+")]

Verdict = Literal["equal", "different", "unknown"]


@dataclass_transform(kw_only_default=True, frozen_default=True)
@dataclass(frozen=True, kw_only=True)
class Part:
    """An object inside a document: a frozen dataclass whose fields are the keys, in this order."""

    def __init_subclass__(cls) -> None:
        cls.__init__ = _first_init  # type: ignore[assignment]


def _first_init(self: Part, **values: Any) -> None:
    complete(type(self))
    self.__init__(**values)  # type: ignore[misc]


def complete(kind: type[Part]) -> None:
    """Make a class a dataclass. This is done when the first value of the class is made: a command starts faster if the
    classes that it never uses stay plain."""
    for one in reversed(kind.__mro__):
        if issubclass(one, Part) and "__dataclass_fields__" not in vars(one):
            del one.__init__
            dataclass(frozen=True, kw_only=True)(one)


def plain(part: Part) -> dict[str, Any]:
    """The object of a part, whose values may be parts: for `json.dumps(document, default=plain)`."""
    return {name: value for name, value in vars(part).items() if value is not ABSENT}


class Produced(Part):
    """What made a document."""

    by: str  #: name and version of the program
    command: str  #: the command line, to be run again
    defaults: str = ABSENT  #: the file of defaults, where one was read


class Document(Part):
    """One document on standard output."""

    schema: Literal[1] = 1
    """the version of the document: raised when a field goes or changes its meaning; fields may be added"""
    produced: Produced = field(default=ABSENT, metadata={"always": True})  # every printed document has it
    """the program and its command line"""


class Input(Part):
    """An input, which may have more operands than those named here."""

    @classmethod
    def of(cls, row: Mapping[str, Any], **more: Any) -> Self:
        """The input with the keys of a row, unchanged, and the keys `more`."""
        complete(cls)
        made = object.__new__(cls)
        vars(made).update(row, **more)
        return made


class Vector(Input):
    """An input of a unit, as in a line of a vector file. Keys of your own are kept."""

    schema: Literal[1] = ABSENT  #: the version of the row
    id: str | int = ABSENT  #: its name in the file
    model: str = ABSENT  #: the unit that it was made for
    a: Sequence[Hex]  #: bit patterns of the first factors; missing trailing products are zero
    b: Sequence[Hex]  #: bit patterns of the second factors
    c: Hex  #: bit pattern of the addend
    scale_a: Sequence[Hex] = ABSENT  #: scale factors of a, one a block; of units that take them
    scale_b: Sequence[Hex] = ABSENT  #: scale factors of b
    d: Hex = ABSENT  #: the result observed
    predictions: Mapping[str, Hex] = ABSENT  #: hypothesis: the result that it predicts
    question: str = ABSENT  #: the question that the predictions belong to
    exercises: Sequence[str] = ABSENT  #: conditions of the datapath that the input reaches
    exercises_alone: Mapping[str, Sequence[str]] = ABSENT
    """hypothesis: those of these conditions that the input reaches in its model and not in the one compared with it"""
    family: str = ABSENT  #: the family whose candidates it helps to distinguish
    outcomes: Mapping[str, int] = ABSENT  #: result: how many classes of that family's candidates give it


def input_of(row: Vector) -> vectors.Vector:
    """The vector of a row of a file. Raises ValueError or MmaprobeError."""
    from mmaprobe.smtmodel.inputs.vectors import vector_of

    return vector_of(plain(row))
