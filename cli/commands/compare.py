"""The `compare` command: minimised vectors on which two devices differ."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mmaprobe.cli.choice import Choice, FileName, Length, Seconds, WholeNumber
from mmaprobe.cli.command import Command
from mmaprobe.cli.completion import file_names, models
from mmaprobe.cli.factors import factor_options
from mmaprobe.cli.options import (
    ADDEND,
    CONVERT,
    DEVICE_TIMEOUT,
    JSON,
    VECTORS_OUTPUT,
    compare_option,
    end_work,
    print_json,
    progress,
    refuse,
    say,
    write_vectors,
)
from mmaprobe.cli.reading import open_input
from mmaprobe.cli.text.comparison import show
from mmaprobe.smtmodel.base.errors import IncompleteError, InputError, MmaprobeError
from mmaprobe.smtmodel.base.files import is_file
from mmaprobe.smtmodel.base.interrupts import Interrupted, begun, state, why_ended
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.cli.commands.compare_gemm import Files
    from mmaprobe.queries.compare.devices import ComparedDevice, Comparison, Pair
    from mmaprobe.queries.covering.neighbour_rows import NeighbourRows
    from mmaprobe.queries.search.witness import Row
    from mmaprobe.reports.comparison import Report
    from mmaprobe.runner.devices import Device
    from mmaprobe.runner.recorded import RecordedDevice
    from mmaprobe.smtmodel.evaluate.model import Model
    from mmaprobe.smtmodel.inputs.signature import Signature
    from mmaprobe.smtmodel.inputs.vectors import Vector

OF_TWO = "compare DEVICE DEVICE --formats A,B,D --length K"
OWN_FORMATS = "devices and --model have their formats: leave out --formats"


class Matrix(FileName):
    """The name of a matrix file, which is no device."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from mmaprobe.runner.devices import FORMS

        kinds = re.findall(r"(?:^|\s)(\w+):", FORMS)
        if str(value).partition(":")[0] in kinds and not is_file(str(value)):
            files = "--gemm takes four files, before devices: compare --gemm A B D1 D2 DEVICE DEVICE"
            self.fail(f"{value} is a device. {files}; without files: {OF_TWO}", param, ctx)
        return super().convert(value, param, ctx)


@click.command(cls=Command)
@click.argument("names", nargs=-1, metavar="[DEVICE DEVICE]")
@click.option(
    "-n",
    "--count",
    "count",
    type=WholeNumber(1),
    help="How many differences of different kinds to look for (default: 3; with --gemm 1).",
)
@click.option(
    "--samples",
    type=WholeNumber(0, 1_000_000_000),
    default=4000,
    show_default=True,
    help="Random vectors to draw, each asked once, after published, discriminating and special-value vectors.",
)
@click.option("--seed", type=WholeNumber(0), default=1, show_default=True, help="Seed of the random vectors.")
@click.option("--vectors", metavar="FILE", shell_complete=file_names, help="Ask these vectors first.")
@click.option(
    "--model",
    "reference",
    metavar="MODEL",
    shell_complete=models,
    help="The instruction to compare, where no device says its own formats and length, or where a recording names "
    "several instructions or none.",
)
@compare_option(default="bits", show_default=True)
@click.option(
    "--expect",
    type=Choice(["same", "different"]),
    default="different",
    show_default=True,
    help="What exit code 0 means; 1 is the contrary. A test that fails when bits change has --expect same.",
)
@VECTORS_OUTPUT
@DEVICE_TIMEOUT
@click.option("--gemm", nargs=4, type=Matrix(), metavar="A B D1 D2", help="Matrices, and two results of their product.")
@ADDEND
@click.option(
    "--formats",
    metavar="A,B,D",
    help="Where no model says them, as for two functions: the formats, A,B,D, or A,B,C,D if they take c. With --gemm "
    "for files whose types do not say the formats, such as files of FP8 numbers.",
)
@click.option("--length", type=Length(), metavar="K", help="With --formats, without --gemm: the number of products.")
@CONVERT
@factor_options
@click.option(
    "--timeout", type=Seconds(), metavar="SECONDS",
    help="Seconds for all of it, after which what was found is printed (default: none; without devices, 120 for the "
    "search for plans).",
)  # fmt: skip
@click.option(
    "--save", type=FileName(dir_okay=False), metavar="PLAN.yaml", shell_complete=file_names,
    help="With --gemm alone: write the plans found into PLAN-D1.yaml and PLAN-D2.yaml, which every command takes.",
)  # fmt: skip
@JSON
def compare(
    names: tuple[str, ...], count: int | None, samples: int, seed: int, vectors: str | None, reference: str | None,
    compare: Any, output: str | None, device_timeout: float, gemm: tuple[Path, ...] | None, timeout: float | None,
    save: Path | None, as_json: bool, expect: str, addend: Path | None, formats: str | None, length: int | None,
    convert: Any, **factors: Path | None,
) -> None:  # fmt: skip
    """Find vectors on which two devices differ, and say why. The vectors are minimised.

    A DEVICE is model:REFERENCE, command:CMDLINE, plain:CMDLINE, python:FILE.py:FUNCTION, recorded:FILE,
    rtl:FILE.sv,top=NAME, cpu:INSTRUCTION or cuda:[UNIT/]INSTRUCTION. recorded:FILE@GPU takes the rows of one GPU.
    Both devices get the same vectors; a difference counts if both repeat their answers. It is minimised by asking the
    devices about ever simpler inputs (a recording cannot be asked), and explained: by one changed parameter of a
    device that is a model, and by the questions of the library (`mmaprobe list hypotheses`). For two recordings that
    share no vector, the hypotheses of these questions are compared with all answers of each.

    With --gemm: start from two result matrices that differ, and reduce them to one dot product of a few terms on
    which the devices still differ. Both devices recompute the row and the column of an element, in tiles of K, each
    result the addend of the next tile. Without devices, plans that give the results are looked for; with --model,
    the model and changes of one of its parameters are compared with both results. Files are .npy, as in `mmaprobe
    simulate`; D1 belongs to the first device.

    \b
    mmaprobe compare command:./my-gpu model:hopper/mma/m16n8k16.f32.f16.f16.f32 -o differences.jsonl
    mmaprobe compare command:./one command:./other --model ampere/mma/m16n8k16.f32.bf16.bf16.f32
    mmaprobe compare python:one.py:product python:other.py:product --formats f16,f16,f32 --length 64
    mmaprobe compare recorded:answers.jsonl model:volta/mma/m8n8k4.f32.f16.f16.f32
    mmaprobe compare recorded:all.jsonl@A100 recorded:all.jsonl@H100
    mmaprobe compare --gemm a.npy b.npy d1.npy d2.npy --save found.yaml

    Exit codes: 0 the devices (with --gemm and no devices: the results) differ, 1 no difference was found (which
    proves nothing), with --expect same the other way round; 2 bad input, 3 a device failed, the time ran out (with
    --gemm and no devices: before a result had a plan), or a device contradicts itself so that no difference is certain.
    """
    from mmaprobe.smtmodel.inputs.signature import parse_signature
    from mmaprobe.smtmodel.tables.reference import is_unit_file

    if len(names) != 2 and not (gemm and not names):
        raise click.UsageError("give two devices; for two results of a matrix product, --gemm A B D1 D2 [--c C]")
    if gemm:
        refuse("the matrices have their products", "length")
    else:
        refuse("it goes with --gemm", "addend", "convert", *factors)
        if (formats is None) != (length is None):
            missing = "--length" if length is None else "--formats"
            raise click.UsageError(f"Missing option '{missing}': {OF_TWO}")
    if reference is not None:
        refuse(OWN_FORMATS, "formats", "length")
    if names or not gemm:
        refuse("it is for the plans of two results: it goes with --gemm, without devices", "save")
    if reference is not None:
        refuse("with --model changes of it are looked for, and no plan is saved", "save")
    if save is not None and not is_unit_file(str(save)):
        raise click.UsageError(f"--save {save}: the name of a plan file ends in .yaml")
    if gemm:
        refuse("with --gemm the matrices are the inputs", "vectors", "samples", "seed")
        if not names:
            refuse("no device is asked", "device_timeout")
        if not names and reference is None:
            refuse("plans are looked for, and no vectors are made", "count", "output")
    from mmaprobe.cli.commands.compare_gemm import Files
    from mmaprobe.queries.compare.devices import Comparison
    from mmaprobe.reports.comparison import Report

    scales = {name: path for name, path in factors.items() if path is not None}
    files = Files(gemm, addend, scales, formats, convert, save) if gemm else None
    until = None if timeout is None else begun() + timeout
    comparison = Comparison(count or (1 if gemm else 3), progress, until)
    asked = None if formats is None or length is None else parse_signature(formats, length)
    run = _Run(comparison, Report(comparison), compare, reference, asked)
    failure: MmaprobeError | None = None
    with ExitStack() as stack:
        try:
            run.open(names, device_timeout, stack, files)
            if files is not None:
                run.gemm(files, timeout)
                if state.interrupted:
                    raise Interrupted
            else:
                run.ask(vectors, samples, seed)
        except MmaprobeError as error:  # what was found before the error is kept
            failure = error
        except KeyboardInterrupt:
            failure = IncompleteError(why_ended())
    end_work()
    run.finish(failure, output, as_json, expect)


@dataclass
class _Run:
    """One comparison: its two sides, what was asked of them and found. `signature`: the formats and the number of
    products that the options say."""

    comparison: Comparison
    report: Report
    compare: Any
    reference: str | None
    signature: Signature | None
    sides: list[ComparedDevice] = field(default_factory=list)
    recordings: list[RecordedDevice] = field(default_factory=list)

    def open(self, names: Sequence[str], timeout: float, stack: ExitStack, files: Files | None) -> None:
        """Open the devices, and find the formats of their vectors: where no device says them, the formats of the
        `files` of a product, whose dot products are then asked whole. Raises MmaprobeError."""
        from mmaprobe.cli.array_files import load_matrix
        from mmaprobe.cli.commands.identify_gemm import RECORDED
        from mmaprobe.runner.devices import open_device
        from mmaprobe.runner.recorded import RecordedDevice
        from mmaprobe.smtmodel.tables.reference import parse_reference

        asked = None if self.reference is None else parse_reference(self.reference)
        opened: dict[int, Device] = {}
        until = self.comparison.until
        for place in sorted(range(len(names)), key=lambda place: names[place].startswith(RECORDED)):
            known = (device.model for device in opened.values() if device.model)
            opened[place] = stack.enter_context(open_device(names[place], timeout, asked or next(known, None), until))
        devices = [opened[place] for place in range(len(names))]
        self.report.devices = devices
        self.recordings = [device for device in devices if isinstance(device, RecordedDevice)]
        if self.recordings:
            refuse("the rows recorded are the inputs", "samples", "seed")
        if devices and all(device.model for device in devices):
            refuse("both devices say which instruction they are", "reference")
        lead = asked or next((device.model for device in devices if device.model), None)
        if lead is not None:
            refuse(OWN_FORMATS, "formats", "length")
        elif self.signature is not None:
            lead = self.signature
        elif devices and files is not None and not self.recordings:
            lead = self._formats(files, products=load_matrix(files.sides[0], mapped=True).shape[-1])
        for device in devices:
            if isinstance(device, RecordedDevice):
                lead_here = _recorded_model(device, lead)
                lead = lead or lead_here
                self.sides.append(_side(device, lead_here))
            else:
                if lead is None:
                    others = [other for other in devices if isinstance(other, RecordedDevice)]
                    lead = _recorded_model(others[0], None) if others else None
                if lead is None:
                    raise InputError(
                        f"neither device says the formats and the length of its vectors: {OF_TWO}; or --model MODEL"
                    )
                self.sides.append(_side(device, device.model or lead))
        if len(devices) == 2 and devices[0].name == devices[1].name:
            for side, which in zip(self.sides, ("first", "second"), strict=True):
                side.name += f" ({which})"

    def ask(self, vectors: str | None, samples: int, seed: int) -> None:
        """Ask both devices until enough differences are found. Raises MmaprobeError."""
        from mmaprobe.queries.compare.devices import Pair

        pair = Pair(self.sides[0], self.sides[1], self.compare)
        self.report.pair = pair
        given = [] if vectors is None else list(_given(vectors, pair))
        total = len(given) + (len(self.recordings[0].vectors) if self.recordings else samples)
        near = self._neighbour_rows(pair)
        self.comparison.run(pair, self._rows(pair, given, samples, seed, near), total)
        if not self.comparison.differences and (found := list(near.solved())):
            self.comparison.run(pair, found, len(found))
        self.report.untold = near.open
        if not self.comparison.compared and all(side.closed for side in pair.sides):
            self.comparison.apart = [
                (pair.layout.split(row), *((d, None) if side is pair.left else (None, d)))
                for recording, side in zip(self.recordings, pair.sides, strict=True)
                for row, d in _recorded(recording, side, pair)
            ]

    def _neighbour_rows(self, pair: Pair) -> NeighbourRows:
        """The search for rows that tell the models of the sides from their neighbours; of recordings, none."""
        from mmaprobe.queries.covering.neighbour_rows import NeighbourRows
        from mmaprobe.smtmodel.inputs.signature import Signature

        known = [side.model for side in pair.sides if not isinstance(side.model, Signature)]
        models = [] if self.recordings else list(dict.fromkeys(known))
        return NeighbourRows(models, pair.layout, self.comparison.until, progress)

    def _rows(self, pair: Pair, given: list[Row], samples: int, seed: int, near: NeighbourRows) -> Iterator[Row]:
        from mmaprobe.queries.compare.asked_rows import all_rows

        yield from given
        if not self.recordings:
            yield from all_rows(pair.layout, pair.left.model, samples, seed, near.sampled(), self.report.repeated)
            return
        side = next(side for side in pair.sides if side.closed)
        recorded, c, addends = [row for row, _ in _recorded(self.recordings[0], side, pair)], 2 * pair.length, 0
        for row in recorded:
            if row[c] and not pair.layout.addend:
                addends += 1
            else:
                yield row
        if addends:
            name = next(side.name for side in pair.sides if not side.addend)
            say(f"{addends} of {counted(len(recorded), 'recorded row')} passed over: {name} takes no addend")

    def gemm(self, files: Files, timeout: float | None) -> None:
        """Reduce two matrices to a dot product of a few terms. Raises MmaprobeError."""
        from mmaprobe.cli.commands.compare_gemm import run_gemm
        from mmaprobe.smtmodel.tables.reference import parse_reference

        if self.recordings:
            raise InputError(f"{self.recordings[0].name}: a recording cannot recompute a dot product")
        model = None
        if not self.sides:
            model = self._formats(files) if self.reference is None else parse_reference(self.reference)
        run_gemm(self.comparison, self.report, self.sides, model, self.compare, files, timeout)

    @staticmethod
    def _formats(files: Files, products: int = 1) -> Signature:
        """The formats of a product's files, as the signature of dot products of `products` products. Raises
        MmaprobeError."""
        from mmaprobe.cli.product_files import formats_of
        from mmaprobe.smtmodel.inputs.signature import Signature

        named = dict(zip(("a", "b", "d", "d2"), files.sides, strict=True))
        named |= {} if files.c is None else {"c": files.c}
        known = formats_of(named, files.formats, ", or --model")
        return Signature(known.a, known.b, known.c, known.d, products, known.addend)

    def finish(self, failure: MmaprobeError | None, output: str | None, as_json: bool, expect: str) -> None:
        """Print what was found, write it, and exit with 0 if it is as expected, with 1 if not; raises the error that
        ended the comparison early."""
        comparison, differ = self.comparison, bool(self.comparison.differences) or self.report.differ
        if self.report.pair is not None and (failure is None or comparison.compared or comparison.apart or differ):
            self.report.explain()
            show(self.report)
        if failure is None and not (differ or comparison.compared or self.report.gemm):
            rests = (
                "the reason above rests on hypotheses alone"
                if self.report.explanations
                else "ask both the same vectors"
            )
            failure = IncompleteError(f"nothing was compared: no vector was answered by both; {rests}")
        if failure is None and (sides := self._without_plan()):
            failure = IncompleteError(f"{' and '.join(sides)}: no plan was found before the time was over")
        vectors = self.report.vectors()
        if output is not None and (vectors or failure is None):
            write_vectors(vectors, output)
        if as_json:
            print_json(self.report.document(failure))
        elif output is None and vectors:
            write_vectors(vectors, None)
        if failure is not None:
            raise failure
        if not differ and self.comparison.contradictions:
            names = sorted({one.side.name for one in self.comparison.contradictions})
            raise IncompleteError(f"{' and '.join(names)}: contradicts itself; no difference is certain")
        sys.exit(0 if differ == (expect == "different") else 1)

    def _without_plan(self) -> list[str]:
        """The results for which not all plans could be tried in time, and no plan was found."""
        from mmaprobe.documents.parts import ABSENT

        gemm = self.report.gemm
        if gemm is None or gemm.plans is ABSENT:
            return []
        sides = {"D1": gemm.plans.D1, "D2": gemm.plans.D2}
        return [name for name, found in sides.items() if not found.plans and not found.complete]


def _recorded_model(device: RecordedDevice, lead: Model | None) -> Model:
    """The instruction of a recording to compare: that of `lead`, if recorded; else the only recorded instruction, with
    the formats of `lead` if given. Raises InputError."""
    from mmaprobe.queries.compare.asked_rows import takes_the_same

    models: dict[str, Model] = {}
    for vector in device.vectors:
        base = vector.model.instruction
        if base not in models and (lead is None or takes_the_same(vector.model, lead)):
            models[base] = vector.model
    if lead is not None and (own := lead.instruction) in models:
        return models[own]
    if not models:
        raise InputError(f"{device.name}: no result for the formats of {lead.reference if lead else 'any model'}")
    if len(models) > 1:
        raise InputError(
            f"--model: {device.name} holds several instructions: {', '.join(sorted(models))}; name one of them"
        )
    return next(iter(models.values()))


def _recorded(recording: RecordedDevice, side: ComparedDevice, pair: Pair) -> Iterator[tuple[Row, int | None]]:
    """The recorded inputs of the instruction compared that fit the pair, with their results (None: not recorded)."""
    from mmaprobe.queries.compare.asked_rows import row_of, takes_the_same

    instruction = side.model.instruction
    for vector in recording.vectors:
        if vector.model.instruction == instruction and takes_the_same(vector.model, pair.left.model):
            row = row_of(vector.operands, pair.layout)
            if row is not None:
                yield row, vector.d


def _side(device: Device, model: Model) -> ComparedDevice:
    from mmaprobe.queries.compare.devices import ComparedDevice
    from mmaprobe.runner.model_device import ModelDevice
    from mmaprobe.runner.recorded import RecordedDevice

    def ask(vectors: Sequence[Vector]) -> list[int | None]:
        return [pattern for _, pattern in device.answers(vectors)]

    software, closed = isinstance(device, ModelDevice), isinstance(device, RecordedDevice)
    return ComparedDevice(
        device.name, model, ask, software, device.is_design, device.steady, closed, takes_addend=device.addend
    )


def _given(file: str, pair: Pair) -> Iterator[Row]:
    """The rows of a file of vectors. Raises InputError for a row that does not fit the pair."""
    from mmaprobe.queries.compare.asked_rows import row_of, takes_the_same
    from mmaprobe.runner.protocol import unread
    from mmaprobe.smtmodel.inputs.vectors import read_vectors

    with open_input(file) as (lines, name):
        for vector in read_vectors(lines, name, lambda: pair.left.model):
            row = row_of(vector.operands, pair.layout) if takes_the_same(vector.model, pair.left.model) else None
            if row is None:
                message = f"{vector.model.reference} takes other formats, or more products, than {pair.left.name}"
                raise InputError(message, name, vector.line)
            if vector.operands.c and not pair.layout.addend:
                raise unread(vector, next(side.name for side in pair.sides if not side.addend), name)
            yield row
