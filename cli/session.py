"""One device that is asked which candidate it is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mmaprobe.cli.candidates import say_impossible
from mmaprobe.cli.options import progress, say
from mmaprobe.smtmodel.base.errors import IncompleteError, MmaprobeError
from mmaprobe.smtmodel.base.progress import Count, Throttle
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.hypotheses.family import Family
    from mmaprobe.queries.candidates.identify import Identification
    from mmaprobe.queries.search.distinguish import Options
    from mmaprobe.runner.answers import AnswersFile
    from mmaprobe.runner.protocol import Device
    from mmaprobe.smtmodel.evaluate.model import Model
    from mmaprobe.smtmodel.inputs.vectors import Vector

PART = 64  # questions about the summation order between two checks of the deadline


@dataclass
class Session:
    """The questions asked of one device, and the answers of an earlier run. `deadline`: of time.monotonic, for the
    summation order."""

    device: Device
    name: str
    answers: AnswersFile | None
    deadline: float | None
    structure: Any = None
    structure_questions: int = 0

    def identify(
        self, family: Family, options: Options, recorded: Sequence[Vector]
    ) -> tuple[Identification, MmaprobeError | None]:
        """The result, and the error that ended the work early, or None. An interrupt is such an error."""
        from mmaprobe.queries.candidates.identify import Identification, Identifier
        from mmaprobe.queries.compare.steady import ContradictionError

        candidates = family.candidates(self.deadline)
        say_impossible(family)
        found = Identification("open", len(candidates))
        start = None if self.deadline is None or options.timeout is None else self.deadline - options.timeout
        try:
            if not recorded:
                self._reveal(family.base)
            identifier = Identifier(
                candidates, self.ask, options, self.structure, recorded, again=self.again, start=start
            )
            found = identifier.result
            identifier.run()
            for contradiction in found.contradictions:
                raise ContradictionError(*contradiction, self.name)
        except ContradictionError as error:
            error = ContradictionError(error.vector, error.first, error.again, self.name)
            found.contradictions = found.contradictions or [(error.vector, error.first, error.again)]
            return found, error
        except MmaprobeError as error:
            return found, error
        except KeyboardInterrupt:
            say("interrupted")
        return found, None

    def _reveal(self, base: Model) -> None:
        """Reveal the summation order, as a first step."""
        from mmaprobe.queries.order.reveal import UnrevealedError, reveal

        def every(vectors: Sequence[Vector]) -> list[int]:
            progress(f"revealing the summation order: {counted(self.structure_questions, 'question')}")
            return [d for d in self.ask(vectors, revealing=True) if d is not None]

        progress("revealing the summation order")
        try:
            self.structure = reveal(lambda vector: every([vector])[0], base, ask_all=every, again=self.again)
        except UnrevealedError as error:
            say(f"summation order: {error}")
            return
        finally:
            progress("")
        say("summation order:")
        for line in self.structure.draw():
            say(f"  {line}")

    def ask(self, vectors: Sequence[Vector], revealing: bool = False) -> list[int | None]:
        """Answers in order, those of an earlier run reused; each is written before the next one is requested."""
        known = [None if self.answers is None else self.answers.take(vector) for vector in vectors]
        missing = [vector for vector, d in zip(vectors, known, strict=True) if d is None]
        self.structure_questions += revealing * (len(vectors) - len(missing))
        fresh: list[int | None] = []
        now_and_then = Throttle()
        parts = [missing[start : start + PART] for start in range(0, len(missing), PART)] if revealing else [missing]
        for part in parts:
            for vector, d in self.device.answers(part):
                self.structure_questions += revealing
                if now_and_then():
                    progress(Count(len(fresh), len(missing), "answers"))
                if d is not None and self.answers is not None:
                    self.answers.append(vector, d, self.device.description)
                fresh.append(d)
                if revealing and self.deadline is not None and time.monotonic() > self.deadline:
                    raise IncompleteError(
                        f"the time ran out after {counted(self.structure_questions, 'question')} about the summation "
                        f"order of {counted(vector.model.length, 'product')} and the addend"
                    )
        rest = iter(fresh)
        return [next(rest) if d is None else d for d in known]

    def again(self, vectors: Sequence[Vector]) -> list[int | None]:
        """The device's answers now, without those of an earlier run."""
        return self.device.again(vectors)
