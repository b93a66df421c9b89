"""What all claim files have in common: their head and their cases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

from pydantic import Field, StrictInt

from mmaprobe.smtmodel.algorithms.assertion import Quantifier
from mmaprobe.smtmodel.base.yamlfile import Strict, YamlFile, validate

Expected = Literal["holds", "refuted"]
Case = dict[str, Any]


class Head(Strict):
    """`says`: the source's verdict; `expect`: the result that verify is to find (None: that the claim holds);
    `cases`: name -> values; {name} in the file is replaced by each value, and every choice of values is a claim."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    about: str = ""
    source: str = ""
    says: Literal["holds", "refuted", "nothing"] = "nothing"
    expect: Expected | None = None
    cases: dict[str, list[StrictInt | str]] = Field(default={})
    note: str = ""

    @abstractmethod
    def statement(self, file: YamlFile, stated: dict[str, Any]) -> Statement:
        """The claim of a file without cases; `stated`: the fields that every statement has from its file. Raises
        InputError."""


@dataclass(frozen=True, kw_only=True)
class Statement(ABC):
    """One case of a claim of any kind."""

    id: str
    about: str
    source: str
    says: str
    expect: Expected | None
    file: YamlFile
    note: str = ""
    case: Case = field(default_factory=dict)
    quantifier: Quantifier = "all"

    @property
    def zeros(self) -> dict[str, str]:
        """Operand -> the reason why only zeros are admitted for it."""
        return {}

    @property
    def where(self) -> tuple[str, ...]:
        """The conditions that its inputs meet, as predicates."""
        return ()

    @property
    @abstractmethod
    def text(self) -> str:
        """The claim in a line."""

    @property
    @abstractmethod
    def part_texts(self) -> dict[str, str]:
        """What each part of the claim is, by the name of the part: a model, or an algorithm in words."""


def cases_of(file: YamlFile, schema: type[Head]) -> Iterator[Statement]:
    """A claim for every choice of values for `cases`: the claim of the file with these values filled in. Raises
    InputError with file, line and key."""
    values = validate(file, schema).cases
    for name, given in values.items():
        if not given:
            raise file.error(("cases", name), "no values")
        if not _names({key: part for key, part in file.data.items() if key != "cases"}, "{" + name + "}"):
            raise file.error(("cases", name), f"nothing in the file is {{{name}}}, which it would replace")
    for chosen in product(*values.values()):
        case = dict(zip(values, chosen, strict=True))
        filled = YamlFile(file.name, _filled(file.data, case), file.lines)
        head = validate(filled, schema)
        choice = ",".join(f"{key}={value}" for key, value in case.items())
        stated = {key: getattr(head, key) for key in ("about", "source", "says", "expect", "note")}
        name = f"{head.id}@{choice}" if choice else head.id
        yield head.statement(filled, stated | {"id": name, "file": filled, "case": case})


def _names(value: Any, name: str) -> bool:
    """Whether a name stands in a value of a file."""
    if isinstance(value, (dict, list)):
        return any(_names(part, name) for part in (value.values() if isinstance(value, dict) else value))
    return isinstance(value, str) and name in value


def _filled(value: Any, case: Case) -> Any:
    """A value of a file with {name} replaced by its value in the case."""
    if isinstance(value, str):
        for name, chosen in case.items():
            value = value.replace("{" + name + "}", str(chosen))
        return value
    if isinstance(value, dict):
        return {key: _filled(part, case) for key, part in value.items()}
    return [_filled(part, case) for part in value] if isinstance(value, list) else value
