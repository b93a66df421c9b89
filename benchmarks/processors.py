"""Instructions of real hardware, built without a family: those of processors, on this machine or by an emulator
(qemu-user), or with `--gpu` those of this machine's GPU.

`python -m benchmarks.processors [--gpu] [--only TEXT] [-o benchmarks/processors.md]` builds the unit of every
instruction that can be executed, once as `identify` does, which knows the units that ship, and once without these. It
holds the unit against the instruction on 100,000 vectors that the builder does not use (tests/cpu.py, for GPUs
tests/inputs.py): random bits, sums that cancel, subnormal numbers, infinities, NaNs and zeros of both signs.
"""

from __future__ import annotations

import argparse
import platform
import re
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np

from mmaprobe.queries.search.distinguish import Options
from mmaprobe.runner.batches import BatchDevice
from mmaprobe.runner.cpu import INSTRUCTIONS, Instruction, processor
from mmaprobe.runner.device_unit import built
from mmaprobe.runner.gpu.kernels import architecture, kernels_of
from mmaprobe.runner.protocol import DeviceUnavailableError
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.evaluate.batch import Patterns, evaluate_batch
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.inputs.signature import signature_of
from tests.cpu import MACHINES, Inputs, NoDeviceError, differing, execute
from tests.inputs import mixture

COUNT = 100_000
SECONDS = 120.0
HERE = {"x86_64": "x86", "aarch64": "arm", "ppc64le": "power10", "riscv64": "riscv"}.get(platform.machine())


class Executed(BatchDevice):
    """An instruction on its processor, or on an emulator of it. Raises DeviceUnavailableError."""

    batch = 4096

    def __init__(self, row: Instruction) -> None:
        self.row, self.name, self.model = row, f"{row.arch}:{row.name}", row.model
        self.description = {"name": processor() if row.arch == HERE else MACHINES[row.arch].emulator}

    def patterns(
        self, a: Patterns, b: Patterns, c: Patterns, scale_a: Patterns | None = None, scale_b: Patterns | None = None
    ) -> Patterns:
        try:
            return execute(self.row.arch, self.row.program, (a, b, c))
        except NoDeviceError as error:
            raise DeviceUnavailableError(str(error)) from None


@dataclass(frozen=True)
class Result:
    """Of one instruction, with the units that ship or without: questions of the order and of the arithmetic, seconds
    of a processor, and what vectors say."""

    name: str
    by: str
    known: bool
    questions: str
    seconds: float
    outcome: str


def measure(name: str, device: BatchDevice, known: bool) -> Result:
    """Raises DeviceUnavailableError."""
    start, asked = time.process_time(), signature_of(device.model)
    nothing = np.zeros((1, device.model.length), dtype=np.uint64)
    device.patterns(nothing, nothing, nothing[:, 0])  # whether it is here
    by = device.description["name"]
    try:
        with nullcontext() if known else patch("mmaprobe.queries.building.build.same_signature", lambda asked: []):
            found, order = built(
                device,
                asked,
                Options(timeout=SECONDS),
                time.monotonic() + SECONDS,
                lambda text: None,
                lambda text: None,
            )
    except DeviceUnavailableError:
        raise
    except MmaprobeError as error:
        return Result(name, by, known, "", time.process_time() - start, f"not found: {error}")
    seconds = time.process_time() - start
    questions = f"{order.questions} + {found.questions}"
    if found.unit is None:
        return Result(name, by, known, questions, seconds, "not found")
    model = Model("built", found.unit)
    if isinstance(device, Executed):
        a, b, c = Inputs(model, seed=20261125).vectors(COUNT)
    else:
        a, b, c = mixture(model, COUNT, np.random.default_rng(20261126))
    if not asked.addend:
        c[:] = 0
    wrong = len(differing(model, evaluate_batch(model, a, b, c), device.patterns(a, b, c)))
    right = "exact on" if found.verdict == "built" else "not finished, no difference on"
    outcome = f"wrong: {wrong} of {len(c)} vectors" if wrong else f"{right} {len(c)} vectors"
    return Result(name, by, known, questions, seconds, outcome)


def devices(gpu: bool) -> Iterator[tuple[str, Callable[[], BatchDevice]]]:
    """Every instruction's name, and what opens it."""
    if gpu:
        from mmaprobe.runner.gpu.cuda import launcher_here, open_cuda

        for kernel in kernels_of(str(architecture(launcher_here().capability))):
            name = f"{kernel.row.unit}/{kernel.row.name}"
            yield f"{kernel.row.arch} {name}", partial(open_cuda, name)
    else:
        yield from ((f"{row.arch} {row.name}", partial(Executed, row)) for row in INSTRUCTIONS)


def results(gpu: bool, only: str) -> Iterator[Result]:
    for name, opened in devices(gpu):
        if re.search(only, name):
            try:
                yield from (measure(name, opened(), known) for known in (True, False))
            except DeviceUnavailableError as error:
                yield Result(name, "not run", True, "", 0, str(error))


def line_of(one: Result) -> str:
    known = ("known" if one.known else "unknown") if one.questions else ""
    return f"| {one.name} | {one.by} | {known} | {one.questions} | {one.seconds:.1f} | {one.outcome} |"


def report(found: list[Result], gpu: bool) -> str:
    lines = [
        "# Instructions of real hardware, built without a family",
        "",
        f"`python -m benchmarks.processors{' --gpu' if gpu else ''}`, {date.today()}.",
        "Questions about the order and about the arithmetic, seconds of a processor (not an emulator's) until the unit",
        "was found and validated, and vectors that the builder does not use. Each is built twice: as `identify` does,",
        "and as if no unit that ships were known.",
        "",
        "| instruction | by | units that ship | questions | seconds | outcome |",
        "|---|---|---|---|---|---|",
        *(line_of(one) for one in found),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    found = []
    for one in results(arguments.gpu, arguments.only):
        print(f"{one.name}: {one.questions} questions, {one.seconds:.1f} s, {one.outcome}", flush=True)
        found.append(one)
    if arguments.output:
        arguments.output.write_text(report(found, arguments.gpu), encoding="utf-8")


if __name__ == "__main__":
    main()
