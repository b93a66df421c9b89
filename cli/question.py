"""The questions of `order` and `identify`, each one value, which opens the device and the file of its answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmaprobe.cli.options import say
from mmaprobe.smtmodel.base.interrupts import begun
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.documents.identify import Layout
    from mmaprobe.queries.plans.invariant import Fixed
    from mmaprobe.queries.search.distinguish import Options
    from mmaprobe.runner.answers import AnswersFile
    from mmaprobe.runner.protocol import Device
    from mmaprobe.smtmodel.evaluate.model import Model
    from mmaprobe.smtmodel.inputs.signature import Signature
    from mmaprobe.smtmodel.inputs.vectors import Vector

    Opened = tuple[Device, AnswersFile | None]

INSTRUCTIONS = ("model:", "cpu:", "cuda:", "hip:")  # kinds of devices that have their own formats and length
EXAMPLE = "--formats f32,f32,f32 --length 64 (a, b and the result; a,b,c,d where c is added)"


@dataclass(frozen=True, kw_only=True)
class DeviceQuestion:
    """The question of `order`: the parameters of the command that are about the device. `output`: the file in which
    answers are kept, and from which a run cut short goes on; `timeout`: seconds for everything."""

    device_name: str
    formats: str | None
    length: int | None
    scale: str | None = None
    output: str | Path | None
    device_timeout: float
    timeout: float | None

    def __post_init__(self) -> None:
        """A plan named for any K is asked at the length given."""
        from mmaprobe.smtmodel.tables.reference import LENGTH

        if self.length is not None and self._of_any_length:
            object.__setattr__(self, "device_name", f"{self.device_name}{LENGTH}{self.length}")

    @property
    def _is_plan(self) -> bool:
        from mmaprobe.smtmodel.tables.reference import is_plan

        kind, _, name = self.device_name.partition(":")
        return kind == "model" and is_plan(name)

    @property
    def _of_any_length(self) -> bool:
        from mmaprobe.smtmodel.tables.reference import LENGTH

        return self._is_plan and LENGTH not in self.device_name

    @property
    def until(self) -> float | None:
        """The end of the time, in seconds of time.monotonic."""
        return None if self.timeout is None else begun() + self.timeout

    def signature(self) -> Signature:
        """The signature given by formats, length and scale factors; the signature of the device's instruction if all
        three are missing, and of its plan if formats are. Raises click.UsageError, and what parse_signature and
        open_device raise."""
        from mmaprobe.runner.devices import open_device
        from mmaprobe.smtmodel.inputs.signature import parse_signature, signature_of

        formats, length = self.formats, self.length
        if formats is not None and length is not None:
            return parse_signature(formats, length, self.scale)
        if self._of_any_length:
            raise click.UsageError(f"give the number of products: --device {self.device_name} --length 64")
        own = formats is None and (length is None or self._is_plan) and self.scale is None
        if own and self.device_name.startswith(INSTRUCTIONS):
            with open_device(self.device_name) as opened:
                if opened.model is not None and length in (None, opened.model.length):
                    return signature_of(opened.model)
                if opened.model is not None:
                    raise click.UsageError(
                        f"--length {length}: {self.device_name} takes {opened.model.length} products"
                    )
        wanted = f"--{'length' if length is None else 'formats'} is missing"
        if formats is None and length is None:
            unsaid = "this device does not say its own (model:, cpu:, cuda: and hip: do)"
            wanted = unsaid if self.scale is None else "--scale goes with both"
        raise click.UsageError(f"give --formats and --length: {wanted}; for example {EXAMPLE}")

    @contextmanager
    def opened(self, asked: Model | None, first: Callable[[Vector], bool]) -> Iterator[Opened]:
        """The device, with the file of its answers; before that, some questions of an earlier run are asked again, half
        of them questions for which `first` holds. `asked`: the signature of rows that name no instruction. Raises what
        open_device and AnswersFile raise."""
        from mmaprobe.runner.answers import AnswersFile
        from mmaprobe.runner.devices import open_device

        def device() -> Device:
            return open_device(self.device_name, self.device_timeout, asked, self.until)

        file = nullcontext() if self.output is None else AnswersFile(Path(self.output), self.device_name, asked)
        with file as answers:
            if answers is not None and answers.earlier:
                say(f"{counted(answers.earlier, 'answer')} of an earlier run")
                with device() as earlier:
                    answers.recheck(earlier, first)
            with device() as opened:
                yield opened, answers

    @contextmanager
    def kept(self, asked: Signature) -> Iterator[Device]:
        """The device, whose answers to questions of a signature are kept in the file. Raises what `opened` and
        check_asked raise."""
        from mmaprobe.runner.answers import KeptDevice
        from mmaprobe.runner.protocol import check_asked, without_c

        with self.opened(asked, lambda vector: "question" not in vector.extra) as (device, answers):
            if zeros := without_c(device, asked):
                say(zeros)
            check_asked(device, asked)
            yield device if answers is None else KeptDevice(device, answers)


@dataclass(frozen=True, kw_only=True)
class Question(DeviceQuestion):
    """The question of `identify`: the parameters of the command."""

    family: str | None
    model: str | None
    save: Path | None
    addend: Path | None
    gemm: bool
    invariant: bool
    fixed: Fixed | None
    shape: str | None
    multiple: int
    layout: Layout
    every: bool
    options: Options
    as_json: bool
