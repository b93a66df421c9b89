"""`identify` finds the candidate of a family that a device implements, or builds its unit."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from mmaprobe.cli.candidates import MODEL, family_of
from mmaprobe.cli.choice import FileName, Length, WholeNumber
from mmaprobe.cli.command import Command
from mmaprobe.cli.commands.identify_gemm import RECORDED, map_gemm, plans_of_files
from mmaprobe.cli.commands.identify_invariant import ask_invariant
from mmaprobe.cli.commands.order import asked_of
from mmaprobe.cli.completion import families, file_names
from mmaprobe.cli.options import (
    ADDEND,
    DEVICE,
    DEVICE_TIMEOUT,
    FIXED,
    JSON,
    output_option,
    print_json,
    progress,
    refuse,
    say,
    solver_options,
)
from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError
from mmaprobe.smtmodel.base.interrupts import begun, why_ended
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.queries.search.distinguish import Options
    from mmaprobe.runner.answers import AnswersFile
    from mmaprobe.runner.protocol import Device
    from mmaprobe.smtmodel.evaluate.model import Model
    from mmaprobe.smtmodel.inputs.vectors import Vector


@click.command(cls=Command)
@click.argument("family", metavar="[FAMILY]", required=False, shell_complete=families)
@DEVICE
@MODEL
@output_option("Append the answers here; a run cut short goes on from them.", "ANSWERS")
@click.option(
    "--formats",
    metavar="A,B,C,D",
    help="Without FAMILY: the formats of a, b, c and the result, or A,B,D without c. Instructions have theirs.",
)
@click.option(
    "--length", type=Length(), metavar="K", help="Without FAMILY: the number of products. Instructions have theirs."
)
@click.option(
    "--scale", metavar="FORMAT/BLOCK",
    help="Without FAMILY: the format of scale factors, and how many products share one: ue8m0/32.",
)  # fmt: skip
@click.option(
    "--save", type=FileName(dir_okay=False), metavar="UNIT.yaml", shell_complete=file_names,
    help="Without FAMILY: write the unit found, with --gemm the plan, into this file, which every command takes.",
)  # fmt: skip
@ADDEND
@click.option(
    "--gemm", is_flag=True,
    help="Which plan a library's product (a Python function, or files) runs, at each K up to --length and each shape.",
)  # fmt: skip
@click.option(
    "--invariant", is_flag=True,
    help="With --gemm: ask only whether the bits of a row depend on M, N, its place or the number of stacked products.",
)  # fmt: skip
@FIXED
@click.option(
    "--shape",
    metavar="M,N",
    help="With --gemm: the largest M and N that are asked, or spans of both, 16..256,16..256 (default: 64,64). With a "
    "third number or span it has K too, without --length: 8..64,50257..50257,768..768.",
)
@click.option(
    "--multiple", metavar="NUMBER", type=WholeNumber(1, 4096), default=1, show_default=True,
    help="With --gemm: ask only for M, N and K that are multiples of it, as those of models are.",
)  # fmt: skip
@click.option(
    "--layout", type=click.Choice(["nn", "nt", "tn", "tt"]), default="nn", show_default=True,
    help="With --gemm: how A and B are handed over, row after row in memory (n), or column after column (t), as "
    "transposed views are; nt is x @ weight.T.",
)  # fmt: skip
@click.option(
    "--all", "every", is_flag=True,
    help="Without FAMILY: print every other unit that gives the same answers, if none is proved equal.",
)  # fmt: skip
@DEVICE_TIMEOUT
@solver_options("everything together", lambda named: "--gemm asks no solver" if named["gemm"] else None)
@JSON
def identify(
    family: str | None, device_name: str, model: str | None, output: str | None, formats: str | None,
    length: int | None, scale: str | None, save: Path | None, addend: Path | None, gemm: bool, invariant: bool,
    fixed: Any, shape: str | None, multiple: int, layout: Any, every: bool, device_timeout: float, options: Options,
    as_json: bool,
) -> None:  # fmt: skip
    """Find out which unit a device has. With FAMILY, the most discriminating vectors are asked until one class
    of candidates is left; without it, the unit is built from the answers. FAMILY is an id (`mmaprobe list
    families`), a file, or a GPU (H100, "RTX 4090", MI300X), whose instructions are then the candidates. With --gemm:
    the plans of a library's matrix product (docs/plans.md).

    \b
    mmaprobe identify nvidia-f16 --device command:./my-gpu -o answers.jsonl
    mmaprobe identify nvidia-fp8 --device model:hopper/wgmma/m64n8k32.f32.e4m3.e4m3
    mmaprobe identify H100 --device recorded:answers.jsonl
    mmaprobe identify --device cpu:vdpbf16ps --save unit.yaml
    mmaprobe identify --gemm --device python:mine.py:matmul --formats f32,f32,f32 --length 1000
    mmaprobe identify --gemm --invariant --device python:mine.py:matmul --formats f32,f32,f32 --length 1000
    mmaprobe identify --gemm --device recorded:a.npy,b.npy,d.npy --formats f16,f16,f16

    Exit codes: 0 one class of candidates is left (with --gemm: every shape looked at has its plan; with --invariant:
    no dependence was seen), 1 no candidate fits (with --invariant: bits depend on the shape), 2 bad input (also:
    ANSWERS are of another device), 3 cut short or undecided, none fits but it is said where the nearest differs, or
    the device contradicts itself.
    """
    from mmaprobe.cli.commands.build import build
    from mmaprobe.cli.text.identified import show_identified
    from mmaprobe.queries.building.naming import consistent_units, equal_units
    from mmaprobe.runner.device_family import Session
    from mmaprobe.runner.devices import open_device
    from mmaprobe.runner.protocol import check_asked
    from mmaprobe.runner.recorded import RecordedDevice
    from mmaprobe.smtmodel.tables.reference import is_unit_file

    if save is not None and not is_unit_file(str(save)):
        raise click.UsageError(f"--save {save}: the name of a unit file, or of a plan file, ends in .yaml")
    if not invariant:
        refuse("it goes with --invariant", "fixed")
    if not gemm:
        refuse("it goes with --gemm", "invariant")
    if not (gemm and device_name.startswith(RECORDED)):
        refuse("it goes with --gemm and a recorded product", "addend")
    if gemm or family is not None:
        refuse(
            "it lists units that give the same answers as the one that was built, without FAMILY and --gemm", "every"
        )
    if family is None:
        if gemm and invariant:
            _invariant(device_name, formats, length, shape, fixed, device_timeout, options, as_json)
        if gemm:
            _plans(device_name, formats, length, scale, shape, multiple, layout, output, model, save, addend,
                   device_timeout, options, as_json)  # fmt: skip
        refuse("it goes with FAMILY", "model")
        refuse("it goes with --gemm", "shape", "multiple", "layout")
        asked = asked_of(device_name, formats, length, scale)
        build(
            device_name, asked, None if output is None else Path(output), save, device_timeout, options, every, as_json
        )
        return
    refuse("a product of matrices has no FAMILY", "gemm", "invariant", "shape", "multiple", "layout")
    refuse("without FAMILY the unit is built from the device's answers, and can be saved", "save")
    refuse("FAMILY sets the formats and the length", "formats", "length", "scale")
    until = options.timeout and begun() + options.timeout
    asked_here = _asked(family, model)
    failure: MmaprobeError | None = None
    with _answers(output, device_name) as answers:
        if answers is not None and answers.earlier:
            say(f"{counted(answers.earlier, 'answer')} of an earlier run")
            with open_device(device_name, device_timeout, asked_here, until) as device:
                answers.recheck(device, lambda vector: str(vector.id).startswith("question"))
        with open_device(device_name, device_timeout, asked_here, until) as device:
            if asked_here is not None:
                check_asked(device, asked_here)
            recorded = list(getattr(device, "vectors", ()))
            base = model or _reference_of(device, device_name, recorded)
            chosen = family_of(family, base)
            recorded = [vector for vector in recorded if _same_instruction(vector, base)]
            if not recorded and isinstance(device, RecordedDevice):
                raise InputError(f"{device.name}: no row is an input of {base}")
            candidates = chosen.candidates(until)
            if chosen.impossible.count:
                say(f"left out: {chosen.impossible.text()}")
            session = Session(device, device_name, chosen, candidates, until, say, progress, answers)
            try:
                session.run(options, recorded)
            except MmaprobeError as error:  # findings before the error count
                failure = error
            except KeyboardInterrupt:
                say(why_ended())
    progress("")
    identification = session.found
    names, why = equal_units(identification, options, until)
    consistent = consistent_units(identification, recorded)
    progress("")
    document = session.document(names, consistent, failure)
    show_identified(document, chosen, identification, why)
    if as_json:
        print_json(document)
    if failure is not None:
        raise failure
    sys.exit({"identified": 0, "no candidate": 1, "open": 3}[identification.verdict])


def _plans(
    device: str, formats: str | None, length: int | None, scale: str | None, shape: str | None, multiple: int,
    layout: Any, output: str | None, model: str | None, save: Path | None, c: Path | None, device_timeout: float,
    options: Options, as_json: bool,
) -> NoReturn:  # fmt: skip
    """The plans of a recorded product or of a function; ends the command."""
    if device.startswith(RECORDED):
        refuse("files are not waited for", "device_timeout")
        refuse(
            "a recorded product has its own M, N and K",
            "length",
            "scale",
            "shape",
            "multiple",
            "layout",
            "output",
            "model",
        )
        plans_of_files(device.removeprefix(RECORDED), c, formats, save, options, as_json)
    known = _function(formats, length, shape)
    map_gemm(device, *known, multiple, layout, save, device_timeout, options, as_json)


def _function(formats: str | None, length: int | None, shape: str | None) -> tuple[str, int | None, str]:
    """What is asked of a function: formats, the largest K (None: --shape has it), shapes. Raises click.UsageError."""
    refuse("they go with FAMILY", "output", "model")
    if formats is None or (length is None and shape is None):
        raise click.UsageError("--gemm needs --formats and --length")
    refuse("a matrix product has no scale factors", "scale")
    return formats, length, "64,64" if shape is None else shape


def _invariant(
    device: str, formats: str | None, length: int | None, shape: str | None, fixed: Any, device_timeout: float,
    options: Options, as_json: bool,
) -> NoReturn:  # fmt: skip
    """Whether results of a function depend on the shape; ends the command."""
    if device.startswith(RECORDED):
        raise click.UsageError("--invariant asks a function: a recorded product has one shape")
    refuse("--invariant finds no plan", "save")
    refuse("--invariant asks all shapes", "multiple")
    refuse("--invariant hands over rows", "layout")
    known = _function(formats, length, shape)
    ask_invariant(device, *known, fixed, device_timeout, options, as_json)


def _asked(family: str, model: str | None) -> Model | None:
    """The instruction of recorded rows that name none: --model's, else the family's; None of a GPU, which has
    several."""
    from mmaprobe.hypotheses.family import family_named
    from mmaprobe.smtmodel.tables.gpus import gpu_named
    from mmaprobe.smtmodel.tables.reference import parse_reference

    if model is not None:
        return parse_reference(model)
    return None if gpu_named(family) else family_named(family).base


def _reference_of(device: Device, name: str, recorded: Sequence[Vector]) -> str | None:
    """The instruction of a device, or of the rows of its recording."""
    from mmaprobe.runner.batches import BatchDevice

    _, _, rest = name.partition(":")
    if isinstance(device, BatchDevice):
        return device.model.reference
    references = {vector.model.reference for vector in recorded}
    if len(references) > 1:
        names = ", ".join(sorted(references)[:5])
        raise InputError(f"{rest} holds several instructions ({names}, ...): choose one with --model")
    return references.pop() if references else None


def _same_instruction(vector: Vector, reference: str | None) -> bool:
    return vector.model.instruction == (reference or "").partition("@")[0]


def _answers(output: str | None, device: str) -> AbstractContextManager[AnswersFile | None]:
    """The file in which answers are kept; None if there is none. Raises InputError."""
    from mmaprobe.runner.answers import AnswersFile

    return nullcontext() if output is None else AnswersFile(Path(output), device)
