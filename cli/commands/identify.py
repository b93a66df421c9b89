"""`identify` finds the candidate of a family that a device implements, or builds its unit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from mmaprobe.cli.candidates import family_of, model_option
from mmaprobe.cli.choice import FileName, Length, WholeNumber
from mmaprobe.cli.command import Command
from mmaprobe.cli.commands.build import build
from mmaprobe.cli.commands.identify_gemm import RECORDED, map_gemm, plans_of_files
from mmaprobe.cli.commands.identify_invariant import ask_invariant
from mmaprobe.cli.completion import families, file_names
from mmaprobe.cli.options import (
    ADDEND,
    DEVICE,
    DEVICE_TIMEOUT,
    FIXED,
    JSON,
    end_work,
    output_option,
    print_json,
    progress,
    refuse,
    say,
    solver_options,
)
from mmaprobe.cli.question import Question
from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError
from mmaprobe.smtmodel.base.interrupts import why_ended
from mmaprobe.smtmodel.base.wording import some_of

if TYPE_CHECKING:
    from mmaprobe.runner.protocol import Device
    from mmaprobe.smtmodel.inputs.vectors import Vector


@click.command(cls=Command)
@click.argument("family", metavar="[FAMILY]", required=False, shell_complete=families)
@DEVICE
@model_option("With FAMILY")
@output_option("Append the answers here; a run cut short goes on from them.", "ANSWERS")
@click.option(
    "--formats",
    metavar="A,B,C,D",
    help="Without FAMILY: the formats of a, b, c and the result, or A,B,D without c. Instructions have their own.",
)
@click.option(
    "--length",
    type=Length(),
    metavar="K",
    help="Without FAMILY: the number of products. Instructions have their own.",
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
    help="With --gemm: ask only for M, N and K that are multiples of it, as those of neural networks are.",
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
def identify(**given: Any) -> None:
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
    ANSWERS are of another device), 3 cut short or undecided, no unit fits but the output says where the nearest
    one differs, or the device contradicts itself.
    """
    from mmaprobe.smtmodel.tables.reference import is_unit_file

    if (save := given["save"]) is not None and not is_unit_file(str(save)):
        raise click.UsageError(f"--save {save}: the name of a unit file, or of a plan file, ends in .yaml")
    question = Question(**given, timeout=given["options"].timeout)
    if not question.invariant:
        refuse("it goes with --invariant", "fixed")
    if not question.gemm:
        refuse("it goes with --gemm", "invariant")
    answer, unread = KINDS[_kind(question)]
    for why, *names in unread:
        refuse(why, *names)
    sys.exit(answer(question))


def _kind(question: Question) -> str:
    """The kind of a question, one of KINDS."""
    if question.family is not None:
        return "candidate"
    if not question.gemm:
        return "unit"
    if question.invariant:
        return "invariance"
    return "files" if question.device_name.startswith(RECORDED) else "map"


def _candidate(question: Question) -> int:
    """Ask which candidate of a family the device implements; gives the exit code. Raises MmaprobeError."""
    from mmaprobe.cli.text.identified import show_identified
    from mmaprobe.hypotheses.gpu_family import own_family
    from mmaprobe.runner.device_family import Session
    from mmaprobe.runner.protocol import check_asked
    from mmaprobe.runner.recorded import RecordedDevice
    from mmaprobe.smtmodel.tables.reference import parse_reference

    family, model, until = question.family, question.model, question.until
    assert family is not None
    own = own_family(family)
    # the instruction of recorded rows that name none; a GPU has several
    asked = parse_reference(model) if model is not None else own.base if own is not None else None
    failure: MmaprobeError | None = None
    with question.opened(asked, lambda vector: str(vector.id).startswith("question")) as (device, answers):
        if asked is not None:
            check_asked(device, asked)
        recorded = list(getattr(device, "vectors", ()))
        base = model or _reference(device, question.device_name, recorded)
        chosen = family_of(family, own, base)
        instruction = (base or "").partition("@")[0]
        recorded = [vector for vector in recorded if vector.model.instruction == instruction]
        if not recorded and isinstance(device, RecordedDevice):
            raise InputError(f"{device.name}: no row is an input of {base}")
        candidates = chosen.candidates(until)
        if chosen.impossible.count:
            say(f"left out: {chosen.impossible.text()}")
        session = Session(device, question.device_name, chosen, candidates, until, say, progress, answers)
        try:
            session.run(question.options, recorded)
        except MmaprobeError as error:  # what was found before the error is kept
            failure = error
        except KeyboardInterrupt:
            say(why_ended())
    progress("")
    document, why = session.document(question.options, recorded, failure)
    end_work()
    show_identified(document, chosen, session.found, why)
    if question.as_json:
        print_json(document)
    if failure is not None:
        raise failure
    return {"identified": 0, "no candidate": 1, "open": 3}[session.found.verdict]


def _reference(device: Device, name: str, recorded: Sequence[Vector]) -> str | None:
    """The instruction of a device, or of the rows of its recording."""
    if device.model is not None:
        return device.model.reference
    references = {vector.model.reference for vector in recorded}
    if len(references) > 1:
        _, _, rest = name.partition(":")
        raise InputError(
            f"{rest} holds several instructions ({some_of(sorted(references), 5)}): choose one with --model"
        )
    return references.pop() if references else None


_UNITS = ("it lists units that give the same answers as the one that was built, without FAMILY and --gemm", "every")
_OF_FILES = ("it goes with --gemm and a recorded product", "addend")
_NO_SCALES = ("no plan with scale factors is looked for", "scale")
_OF_A_FUNCTION = (("they go with FAMILY", "output", "model"), _NO_SCALES)
#: kind of question -> the function that answers it, and the options that it does not read, each group after its reason
KINDS: dict[str, tuple[Callable[[Question], int], tuple[tuple[str, ...], ...]]] = {
    "candidate": (_candidate, (
        _OF_FILES,
        _UNITS,
        ("a product of matrices has no FAMILY", "gemm", "invariant", "shape", "multiple", "layout"),
        ("without FAMILY the unit is built from the device's answers, and can be saved", "save"),
        ("FAMILY sets the formats and the length", "formats", "length", "scale"),
    )),
    "unit": (build, (
        _OF_FILES,
        ("it goes with FAMILY", "model"),
        ("it goes with --gemm", "shape", "multiple", "layout"),
    )),
    "map": (map_gemm, (_OF_FILES, _UNITS, *_OF_A_FUNCTION)),
    "files": (plans_of_files, (
        _UNITS,
        ("files are not waited for", "device_timeout"),
        _NO_SCALES,
        ("a recorded product has its own M, N and K", "length", "shape", "multiple", "layout", "output", "model"),
    )),
    "invariance": (ask_invariant, (
        _OF_FILES,
        _UNITS,
        ("--invariant finds no plan", "save"),
        ("--invariant asks all shapes", "multiple"),
        ("--invariant hands over A and B row after row", "layout"),
        *_OF_A_FUNCTION,
    )),
}  # fmt: skip
