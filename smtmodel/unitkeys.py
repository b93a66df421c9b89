"""The keys of unit files, and those that plan files share with them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from smtmodel.formats import OwnSpecials
from smtmodel.yamlfile import Strict


class OwnFormat(Strict):
    """A format of one's own."""

    exponent: int = Field(strict=True)
    fraction: int = Field(strict=True)
    bias: int | None = Field(default=None, strict=True)
    specials: OwnSpecials
    signed: bool = Field(default=True, strict=True)


class ExpressionFile(Strict):
    """What every file of an expression has."""

    about: str = ""
    source: str = ""
    evidence: str = ""
    own_formats: dict[str, OwnFormat] = Field(default={})
    formats: dict[str, str]
    roundings: dict[str, str] = Field(default={})
    steps: dict[str, str | int]


class UnitFile(ExpressionFile):
    """What a unit file has."""

    unit: str
    length: int = Field(strict=True)
    ignored: list[Annotated[int, Field(strict=True)]] = Field(default=[])
    scale_block: int = Field(default=0, strict=True)
    inputs: dict[str, str] = Field(default={})
