"""What documents of several commands share."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

ABSENT: Any = None

Hex = Annotated[str, StringConstraints(pattern="^[0-9a-f]+$")]

Verdict = Literal["equal", "different", "unknown"]


class Part(BaseModel):
    """An object inside a document."""

    model_config = ConfigDict(extra="forbid", strict=True, use_attribute_docstrings=True)


class Produced(Part):
    """What made a document."""

    by: str
    """name and version of the program"""
    command: str
    """the command line, to be run again"""
    defaults: str = ABSENT
    """the file of defaults, where one was read"""


class Document(Part):
    """One document on standard output."""

    schema_: Literal[1] = Field(alias="schema")
    """the version of the document: raised when a field goes or changes its meaning; fields may be added"""
    produced: Produced
    """the program and its command line"""


class Vector(Part):
    """An input of a unit, as in a line of a vector file. Keys of your own are kept."""

    model_config = ConfigDict(extra="allow")

    schema_: Literal[1] = Field(alias="schema", default=ABSENT)
    """the version of the row"""
    id: str | int = ABSENT
    """its name in the file"""
    model: str = ABSENT
    """the unit that it was made for"""
    a: list[Hex]
    """bit patterns of the first factors; missing trailing products are zero"""
    b: list[Hex]
    """bit patterns of the second factors"""
    c: Hex
    """bit pattern of the addend"""
    scale_a: list[Hex] = ABSENT
    """scale factors of a, one a block; of units that take them"""
    scale_b: list[Hex] = ABSENT
    """scale factors of b"""
    d: Hex = ABSENT
    """the result observed"""
    predictions: dict[str, Hex] = ABSENT
    """hypothesis: the result that it predicts"""
    question: str = ABSENT
    """the question that the predictions belong to"""
    exercises: list[str] = ABSENT
    """conditions of the datapath that the input reaches"""
    family: str = ABSENT
    """the family whose candidates it helps to distinguish"""
    outcomes: dict[str, int] = ABSENT
    """result: how many classes of that family's candidates give it"""
