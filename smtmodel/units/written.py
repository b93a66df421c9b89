"""What is said of a node that unit files call: how it is written, what it takes, and an example."""

from __future__ import annotations

from dataclasses import dataclass

TRUTH = "true, false"


@dataclass(frozen=True)
class Option:
    """What a call takes by its place (an upper-case name) or by name: meaning, values, and what it is if not given."""

    name: str
    meaning: str
    values: str
    default: str = "needed"

    @property
    def by_name(self) -> bool:
        """Whether it is given by name; F is too, as papers write it."""
        return self.name == "F" or not self.name.isupper()

    def line(self) -> str:
        """Its row as text."""
        given = "" if self.default == "needed" else f" (if not given: {self.default})"
        return f"{self.name}: {self.meaning}: {self.values}{given}"


@dataclass(frozen=True)
class Written:
    """One node: how it is written, what it means, what it takes, and the step `d` of a unit with it. `formats` and
    `length` of that unit; `more`: its further lines."""

    name: str
    written: str
    meaning: str
    example: str
    options: tuple[Option, ...] = ()
    formats: str = "a: f16, b: f16, c: f32, d: f32"
    length: int = 4
    more: str = ""

    @property
    def file(self) -> str:
        """The unit file of the example."""
        roundings = "roundings: {r: 'round(f32, nearest_even)'}\n" if "r(" in self.example.replace("or(", "") else ""
        return (f"unit: with-{self.name}\nformats: {{{self.formats}}}\nlength: {self.length}\n{self.more}{roundings}"
                f"steps:\n  d: {self.example}\n")  # fmt: skip

    @property
    def names(self) -> tuple[str, ...]:
        """The options that are given by name."""
        return tuple(option.name for option in self.options if option.by_name)
