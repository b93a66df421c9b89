"""The steps of an algorithm: values whose text is their name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Pair = tuple[int, int]  # the word of a and the word of b; word 0 is the leading one


@dataclass(frozen=True)
class Word:
    """A word of a factor: `number` counts the words of a number, `place` the products."""

    side: Literal["a", "b"]
    number: int
    place: int

    def __str__(self) -> str:
        return f"{self.side}.word{self.number}[{self.place}]"


@dataclass(frozen=True)
class InUnit:
    """The unit's running sum after the products from `start` to before `stop`, of those words if there are several."""

    words: Pair | None
    start: int
    stop: int

    def __str__(self) -> str:
        return f"unit{_of(self.words)}[{self.start}:{self.stop}]"


@dataclass(frozen=True)
class Outside:
    """The sum outside of the unit after the products of those words up to before `stop`."""

    words: Pair
    stop: int

    def __str__(self) -> str:
        return f"outside{_of(self.words)}[:{self.stop}]"


@dataclass(frozen=True)
class SumOfSize:
    """The sum of all products of one size, unscaled."""

    size: int

    def __str__(self) -> str:
        return f"sum{self.size}"


@dataclass(frozen=True)
class Result:
    """The last step."""

    def __str__(self) -> str:
        return "d"


Step = Word | InUnit | Outside | SumOfSize | Result
RESULT = Result()


def _of(words: Pair | None) -> str:
    return "" if words is None else ".a{}b{}".format(*words)
