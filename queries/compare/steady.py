"""Whether a device repeats its answers: some of its questions are asked again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mmaprobe.queries.compare.observed import is_nan
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import IncompleteError
from mmaprobe.smtmodel.inputs.vectors import Vector, to_hex

AGAIN = 16  # questions asked again
AGAIN_IN_DOUBT = 64  # questions asked again if no candidate fits the answers

Answer = int | None
Answered = tuple[Vector, int]
AskDevice = Callable[[Sequence[Vector]], Sequence[Answer]]


class ContradictionError(IncompleteError):
    """A device answered one question in two ways."""

    def __init__(self, vector: Vector, first: int, again: int, device: str = "the device") -> None:
        self.vector, self.first, self.again = vector, first, again
        name = f"line {vector.line}" if vector.id is None else str(vector.id)
        results = [to_hex(d, vector.model.d) for d in (first, again)]
        super().__init__(
            f"{device} contradicts itself: it answered vector {name} with {' and then with '.join(results)}"
        )

    def named(self, device: str) -> ContradictionError:
        """The same error of a device with a name."""
        return ContradictionError(self.vector, self.first, self.again, device)


def spread(count: int, most: int) -> list[int]:
    """Up to `most` indices below `count`, evenly spread, with the first and the last index."""
    if count <= most:
        return list(range(count))
    return [round(number * (count - 1) / (most - 1)) for number in range(most)]


def same_answer(fmt: Format, one: int, other: int) -> bool:
    """Whether two results are the same; all NaNs are the same, whatever their patterns."""
    return one == other or (is_nan(one, fmt) and is_nan(other, fmt))


def contradictions(ask: AskDevice, answered: Sequence[Answered]) -> list[tuple[Vector, int, int]]:
    """The questions that get another answer when they are asked again, as (vector, first answer, second answer)."""
    answers = ask([vector for vector, _ in answered]) if answered else []
    return [
        (vector, first, again)
        for (vector, first), again in zip(answered, answers, strict=True)
        if again is not None and not same_answer(vector.model.d, first, again)
    ]


def stand_by(ask: AskDevice, answered: Sequence[Answered], most: int = AGAIN) -> None:
    """Ask some of the questions a second time, spread over all of them. Raises ContradictionError."""
    for contradiction in contradictions(ask, [answered[place] for place in spread(len(answered), most)]):
        raise ContradictionError(*contradiction)


class Sample:
    """A sample of the answers of a run of any length, evenly spread: at least AGAIN answers, if the run has as many."""

    def __init__(self) -> None:
        self.answered: list[Answered] = []
        self._count, self._step = 0, 1

    def take(self, vector: Vector, d: int) -> None:
        """Count an answer, and keep it if it is at a place of the sample."""
        if self._count % self._step == 0:
            self.answered.append((vector, d))
            if len(self.answered) == 2 * AGAIN:
                self.answered, self._step = self.answered[::2], 2 * self._step
        self._count += 1
