"""The keys of unit files, of which plan files share those of `ExpressionFile`."""

from __future__ import annotations

from pydantic import Field, StrictInt

from mmaprobe.smtmodel.arithmetic.formats import OwnSpecials
from mmaprobe.smtmodel.base.yamlfile import Strict


class OwnFormat(Strict):
    """A format that a file defines: the numbers of exponent and fraction bits, the exponent bias, the special values,
    and whether there is a sign bit."""

    exponent: int = Field(strict=True)
    fraction: int = Field(strict=True)
    bias: int | None = Field(default=None, strict=True)
    specials: OwnSpecials
    signed: bool = Field(default=True, strict=True)


class ExpressionFile(Strict):
    """The keys of unit files and plan files."""

    about: str = ""
    source: str = ""
    evidence: str = ""
    own_formats: dict[str, OwnFormat] = Field(default={})
    formats: dict[str, str]
    roundings: dict[str, str] = Field(default={})
    steps: dict[str, str | int]


class UnitFile(ExpressionFile):
    """The keys of a unit file."""

    unit: str
    length: StrictInt
    ignored: list[StrictInt] = Field(default=[])
    scale_block: StrictInt = 0
    inputs: dict[str, str] = Field(default={})
