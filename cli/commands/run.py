"""Commands about devices: ask a device vectors, serve a model as a device."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mmaprobe.cli.choice import VectorsFile
from mmaprobe.cli.command import Command
from mmaprobe.cli.completion import file_names, models
from mmaprobe.cli.options import DEVICE, DEVICE_TIMEOUT, JSON, print_json, progress, refuse, say
from mmaprobe.cli.reading import open_input
from mmaprobe.cli.streams import NobodyReadsError, check_reader
from mmaprobe.smtmodel.base.errors import IncompleteError, InputError, MmaprobeError
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.documents.devices import Run
    from mmaprobe.queries.compare.standing import Standings
    from mmaprobe.queries.compare.steady import Sample
    from mmaprobe.runner.answers import AnswersFile
    from mmaprobe.runner.protocol import Device
    from mmaprobe.smtmodel.evaluate.model import Model
    from mmaprobe.smtmodel.inputs.vectors import Vector


@click.command(cls=Command)
@click.argument("model", metavar="MODEL", shell_complete=models)
@DEVICE_TIMEOUT
def device(model: str, device_timeout: float) -> None:
    """Serve MODEL as a device. Vectors are on standard input, one a line, answers on standard output.

    MODEL is a model reference, or cuda:[UNIT/]INSTRUCTION for the GPU of this machine, which another machine then
    asks with --device "command:ssh gpu-host mmaprobe device cuda:...".

    The first line is {"device": {...}}, then {"id": ..., "d": "hex"} for every vector, in order, at once. A vector
    may name the model it was made for: MODEL is evaluated all the same, but formats must fit, and there may be no
    more products than MODEL has. A bad line ends it with exit code 2, the end of input with 0.

    \b
    mmaprobe device hopper/mma/m16n8k16.f32.f16.f16.f32 < vectors.jsonl
    """
    from mmaprobe.runner.devices import open_servable
    from mmaprobe.runner.serve import serve

    if not model.startswith("cuda:"):
        refuse("a model answers at once: it is for cuda:...", "device_timeout")
    with open_servable(model, device_timeout) as opened:
        serve(opened)


@click.command(cls=Command)
@click.argument("file", metavar="FILE", shell_complete=file_names)
@DEVICE
@click.option(
    "-o",
    "--output",
    type=VectorsFile(),
    metavar="ANSWERS",
    shell_complete=file_names,
    help="Append the answers here (default: standard output).",
)
@DEVICE_TIMEOUT
@JSON
def run(file: str, device_name: str, output: str | None, device_timeout: float, as_json: bool) -> None:
    """Ask a device every vector of a file. Say which hypotheses are consistent with its answers.

    FILE is JSONL, gzip-compressed or not; "-" reads standard input. The answers are vectors with `d`, written as they
    come. If ANSWERS has answers of an earlier run with the same vectors and device, that run continues. Some vectors
    are asked again before and at the end, to see whether the device repeats its answers.

    \b
    mmaprobe distinguish carry-bits-ampere -o vectors.jsonl
    mmaprobe run vectors.jsonl --device command:./my-gpu -o answers.jsonl

    Exit codes: 0 every vector was answered, 2 bad input (also: ANSWERS are of another device), 3 the device failed, has
    no answer, or contradicts itself (the answers are kept).
    """
    from mmaprobe.queries.compare.standing import Standings

    session = _Session(device_name, device_timeout, Standings())
    failure: MmaprobeError | None = None
    with open_input(file) as (lines, name):
        try:
            session.run(lines, name, output, as_json)
        except NobodyReadsError:
            raise
        except MmaprobeError as error:  # the answers before it count
            failure = error
        except KeyboardInterrupt:
            session.summary(output)
            raise
    progress("")
    if session.answered or failure is None:
        session.summary(output)
    if as_json:
        print_json(session.document(name, output, failure))
    if failure is not None:
        raise failure


def _sample() -> Sample:
    from mmaprobe.queries.compare.steady import Sample

    return Sample()


@dataclass
class _Session:
    """One run: the vectors asked, the answers received."""

    name: str
    timeout: float
    standings: Standings
    answered: int = 0
    earlier: int = 0
    unanswered: list[Vector] = field(default_factory=list)
    description: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    keep: bool = False
    sample: Sample = field(default_factory=_sample)
    source: dict[str, Any] = field(default_factory=dict)  # provenance of answers that are not written to a file
    device: Device | None = None  # while it is in use
    model: Model | None = None
    families: set[str] = field(default_factory=set)  # whose candidates the answered vectors distinguish

    def run(self, lines: Iterable[str], name: str, output: str | None, as_json: bool) -> None:
        """Ask the device every vector. Raises MmaprobeError; the answers received before are written and counted."""
        from mmaprobe.runner.answers import AnswersFile, provenance
        from mmaprobe.runner.devices import open_device
        from mmaprobe.smtmodel.inputs.vectors import read_vectors

        vectors: Iterable[Vector] = read_vectors(lines, name, self._model)
        if output is None or output == "-":
            self.keep, self.source = as_json, provenance(self.name)
            self._ask(vectors, name, None)
        else:
            with AnswersFile(Path(output), self.name) as target:
                if target.earlier:
                    vectors = self._remaining(vectors, target)
                    with open_device(self.name, self.timeout) as device:
                        target.recheck(device, lambda vector: bool(vector.extra.get("predictions")))
                self._ask(vectors, name, target)
        if self.unanswered:
            count, first = len(self.unanswered), self.unanswered[0]
            total = self.answered + count
            raise IncompleteError(f"{self.name}: no answer to {count} of {total} vectors, first {name}:{first.line}")

    def _remaining(self, vectors: Iterable[Vector], target: AnswersFile) -> list[Vector]:
        """The vectors that an earlier run did not answer; the answers of that run are counted."""
        everything, remaining, known = list(vectors), [], []
        for vector in everything:
            d = target.take(vector)
            if d is None:
                remaining.append(vector)
            else:
                known.append((vector, d))
        if target.earlier:
            raise InputError(
                f"{target.earlier} of its answers are to vectors that are not asked: remove the file, or name another",
                str(target.path),
            )
        for vector, d in known:
            self._count(vector, d)
        self.earlier = self.answered = len(known)
        self.description = target.description or {}
        say(f"{self.earlier} of {len(everything)} vectors were answered by an earlier run")
        return remaining

    def _ask(self, vectors: Iterable[Vector], name: str, target: AnswersFile | None) -> None:
        from mmaprobe.runner.devices import DeviceError

        if vectors == []:
            return
        with self._device() as device:
            self.description = device.description
            try:
                for vector, d in device.answers(_checked(vectors, name)):
                    self.description = device.description
                    if d is None:
                        self.unanswered.append(vector)
                    else:
                        self._take(vector, d, target)
                self._stand_by(device)
            except DeviceError as error:
                raise IncompleteError(f"{name}:{error.vector.line}: {error}") from None
            except InputError as error:
                if error.file is None and error.line is not None:  # a vector that does not fit the device
                    raise InputError(str(error).removeprefix(f"{error.line}: "), name, error.line) from None
                raise

    def _stand_by(self, device: Device) -> None:
        """Ask some vectors again, first those whose answers contradict a hypothesis or an earlier result. Raises
        ContradictionError."""
        from mmaprobe.queries.compare.steady import AGAIN, ContradictionError, contradictions, spread
        from mmaprobe.runner.devices import DeviceError

        odd = list(self.standings.surprises())
        chosen = [odd[place] for place in spread(len(odd), AGAIN)]
        chosen += [self.sample.answered[place] for place in spread(len(self.sample.answered), AGAIN)]
        try:
            for one in [] if device.steady else chosen:
                for contradiction in contradictions(device.every, [one]):
                    raise ContradictionError(*contradiction, device.name)
        except DeviceError as error:  # every vector has been answered
            say(f"asked again: {error}")

    @contextmanager
    def _device(self) -> Iterator[Device]:
        """The device; opened unless it is in use already."""
        from mmaprobe.runner.devices import open_device

        if self.device is not None:
            yield self.device
            return
        with open_device(self.name, self.timeout) as self.device:
            try:
                yield self.device
            finally:
                self.device = None

    def _model(self) -> Model:
        """The model of vectors that name none: the device's instruction. Raises InputError."""
        from mmaprobe.runner.batches import BatchDevice

        if self.model is None:
            with self._device() as device:
                if not isinstance(device, BatchDevice):
                    raise InputError(
                        f"model: this field is missing, and {self.name} does not say what it computes: name in the row "
                        "the instruction that it is for, or any with its formats"
                    )
                self.model = device.model
        return self.model

    def _take(self, vector: Vector, d: int, target: AnswersFile | None) -> None:
        from mmaprobe.runner.answers import answered_row

        if target is not None:
            target.append(vector, d, self.description)
        else:
            row = answered_row(vector, d, self.source, self.description)
            if self.keep:
                self.rows.append(row)
            else:
                click.echo(json.dumps(row))
                check_reader()
        self.answered += 1
        self._count(vector, d)
        self.sample.take(vector, d)

    def _count(self, vector: Vector, d: int) -> None:
        self.standings.take(vector, d)
        if isinstance(family := vector.extra.get("family"), str):
            self.families.add(family)

    def summary(self, output: str | None) -> None:
        """Print the number of answers, their meaning, and the command that shows more."""
        for line in self.standings.lines():
            say(line)
        say(f"{counted(self.answered, 'vector')} answered by {self.name}")
        for family in sorted(self.families):
            kept = "ANSWERS" if output in (None, "-") else output
            device = shlex.quote(f"recorded:{kept}")
            say(f"which candidates they leave: mmaprobe identify {shlex.quote(family)} --device {device}")

    def document(self, file: str, output: str | None, failure: MmaprobeError | None) -> Run:
        """The result as a document."""
        from mmaprobe.documents.devices import Place, Run, RunDevice
        from mmaprobe.documents.parts import ABSENT
        from mmaprobe.documents.parts import Vector as Row

        return Run(
            device=RunDevice(name=self.name, description=self.description),
            answered=self.answered,
            earlier=self.earlier,
            unanswered=[Place(id=vector.id, line=vector.line) for vector in self.unanswered],
            questions=[standing.document() for standing in self.standings.questions.values()],
            observed_before=self.standings.observed_before(),
            vectors=list(map(Row.of, self.rows)) if self.keep else ABSENT,
            file=file,
            output=output,
            error=str(failure) if failure else None,
        )


def _checked(vectors: Iterable[Vector], name: str) -> Iterator[Vector]:
    """The vectors; their predictions are checked before the device is asked. Raises InputError."""
    from mmaprobe.queries.compare.standing import predictions_of

    for vector in vectors:
        try:
            predictions_of(vector)
        except InputError as error:
            raise InputError(str(error), name, vector.line) from None
        yield vector
