"""Commands about families of candidates: `separate` distinguishes them, `identify` finds the one that a device
implements."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.build import build
from cli.choice import Seconds
from cli.command import Command
from cli.completion import families, file_names, models
from cli.identify_gemm import RECORDED, map_gemm, plans_of_files
from cli.options import (
    DEVICE,
    DEVICE_TIMEOUT,
    JSON,
    VECTORS_OUTPUT,
    print_json,
    progress,
    say,
    solver_options,
    write_vectors,
)
from cli.order import asked_of
from smtmodel.errors import IncompleteError, InputError, MmaprobeError
from smtmodel.progress import Count, Throttle
from smtmodel.wording import counted

if TYPE_CHECKING:
    from hypotheses.family import Family
    from queries.candidates.classes import Equality
    from queries.candidates.identify import Identification
    from queries.search.distinguish import Options
    from runner.answers import AnswersFile
    from runner.protocol import Device
    from smtmodel.dot import Model
    from smtmodel.vectors import Vector

Named = tuple[list[str], str]  # references of equal units, and why they are

CONTRADICTIONS = 3  # contradictions printed as text
NAMING = 20.0  # seconds for proofs that a unit is one of the table
PART = 64  # questions about the summation order between two checks of the deadline
SHOWN = 20  # open pairs printed as text

MODEL = click.option(
    "--model",
    metavar="MODEL",
    shell_complete=models,
    help="Take formats, length and scale factors from this instruction.",
)


@click.command(cls=Command)
@click.argument("family", metavar="FAMILY", shell_complete=families)
@MODEL
@VECTORS_OUTPUT
@click.option("--one", is_flag=True, help="A single vector with as many different outcomes as possible.")
@click.option(
    "--each", type=Seconds(), metavar="SECONDS",
    help="Time for one pair, of --timeout (default: 30).",
)  # fmt: skip
@solver_options("all pairs together")
@JSON
def separate(
    family: str, model: str | None, output: str | None, one: bool, each: float | None, options: Options, as_json: bool
) -> None:
    """Find a few vectors that distinguish all candidates of FAMILY. Every two differ in the result of at least one.

    FAMILY is an id (`mmaprobe list families`) or a file. Candidates that no vector distinguishes are proved equal. The
    timeout is for all of it; after an interrupt the undecided pairs are open.

    \b
    mmaprobe separate nvidia-f16 --timeout 600 -o vectors.jsonl
    mmaprobe separate nvidia-fp8 --one

    Exit codes: 0 every pair is distinguished or proved equal, 2 bad input, 3 some pairs stay open.
    """
    from queries.candidates.separate import EACH, single
    from queries.candidates.separate import separate as separate_family
    from smtmodel.operands import layout_of
    from smtmodel.vectors import Vector, to_hex

    start = time.monotonic()  # --timeout includes what builds the candidates
    chosen = _family(family, model)
    candidates = chosen.candidates()
    _say_impossible(chosen)
    found = single(candidates, options) if one else separate_family(candidates, options, each=each or EACH, start=start)
    progress("")
    base = chosen.base
    layout = layout_of(candidates[0])
    vectors = [
        Vector(
            base,
            layout.split(row),
            id=f"{chosen.id}-{number}",
            extra={"family": family, "outcomes": _outcomes(found, number, base)},
        )
        for number, row in enumerate(found.rows)
    ]
    say(
        f"{chosen.id}: {counted(found.candidates, 'candidate')}, {counted(len(found.classes), 'class')}, "
        f"{counted(len(vectors), 'vector')}, {counted(found.asked, 'class')} asked of solvers, "
        f"{counted(len(found.unknown), 'pair')} open, {found.seconds:.1f} s"
    )
    if found.interrupted:
        say("interrupted: pairs not yet decided are open")
    for left, right in found.unknown[:SHOWN]:
        say(f"  open: {left.reference} | {right.reference}")
    if len(found.unknown) > SHOWN:
        say(f"  and {counted(len(found.unknown) - SHOWN, 'more open pair')}, which --json lists")
    if as_json:
        classes = [
            {"members": _members(members), "results": [to_hex(d, base.d) for d in results]}
            for members, results in zip(found.classes, found.predictions, strict=True)
        ]
        print_json({
            "schema": 1, "family": chosen.id, "candidates": found.candidates,
            "impossible": _impossible(chosen), "classes": classes,
            "vectors": [vector.to_json() for vector in vectors],
            "unknown": [[left.reference, right.reference] for left, right in found.unknown],
            "seconds": round(found.seconds, 3),
        })  # fmt: skip
    if output is not None or not as_json:
        write_vectors(vectors, output)
    sys.exit(3 if found.unknown else 0)


def _say_impossible(family: Family) -> None:
    if family.impossible.count:
        say(f"left out: {family.impossible.text()}")


def _impossible(family: Family) -> dict[str, Any]:
    """The impossible combinations left out of a family, as JSON."""
    left_out = family.impossible
    return {"combinations": left_out.combinations, "left_out": left_out.count, "reasons": dict(left_out.reasons)}


def _outcomes(found: Any, number: int, base: Model) -> dict[str, int]:
    """The number of classes that give each result."""
    from smtmodel.vectors import to_hex

    counts: dict[str, int] = {}
    for results in found.predictions:
        text = to_hex(results[number], base.d)
        counts[text] = counts.get(text, 0) + 1
    return counts


def _members(members: Sequence[Equality]) -> list[dict[str, Any]]:
    return [{"model": m.model.reference, "why": m.why or None, "confirmed_by": m.confirmed} for m in members]


@click.command(cls=Command)
@click.argument("family", metavar="[FAMILY]", required=False, shell_complete=families)
@DEVICE
@MODEL
@click.option(
    "-o",
    "--output",
    metavar="ANSWERS",
    shell_complete=file_names,
    help="Append the answers here; a run cut short goes on from them.",
)
@click.option(
    "--formats",
    metavar="A,B,C,D",
    help="Without FAMILY: the formats of a, b, c and the result, or A,B,D without c. Instructions have theirs.",
)
@click.option(
    "--length", type=int, metavar="K", help="Without FAMILY: the number of products. Instructions have theirs."
)
@click.option(
    "--scale", metavar="FORMAT/BLOCK",
    help="Without FAMILY: the format of scale factors, and how many products share one: ue8m0/32.",
)  # fmt: skip
@click.option(
    "--save", type=click.Path(dir_okay=False, path_type=Path), metavar="UNIT.yaml", shell_complete=file_names,
    help="Without FAMILY: write the unit found into this file, which every command takes.",
)  # fmt: skip
@click.option(
    "--gemm", is_flag=True,
    help="Without FAMILY, of a Python function: which plan it runs at which K, up to --length, and at which shapes.",
)  # fmt: skip
@click.option("--shape", metavar="M,N", help="With --gemm: the largest M and N that are asked (default: 64,64).")
@DEVICE_TIMEOUT
@solver_options("everything together")
@JSON
def identify(
    family: str | None, device_name: str, model: str | None, output: str | None, formats: str | None,
    length: int | None, scale: str | None, save: Path | None, gemm: bool, shape: str | None, device_timeout: float,
    options: Options, as_json: bool,
) -> None:  # fmt: skip
    """Find out which unit a device has. It is the candidate of FAMILY that gives the device's answers to the most
    discriminating vectors; without FAMILY, the unit is built from the answers. FAMILY is an id (`mmaprobe list
    families`), a file, or a GPU (H100, "RTX 4090", MI300X), whose instructions are then the candidates. With --gemm:
    the plans of a library's matrix product (docs/plans.md).

    \b
    mmaprobe identify nvidia-f16 --device command:./my-gpu -o answers.jsonl
    mmaprobe identify nvidia-fp8 --device model:hopper/wgmma/m64n8k32.f32.e4m3.e4m3
    mmaprobe identify H100 --device recorded:answers.jsonl
    mmaprobe identify --device cpu:vdpbf16ps --save unit.yaml
    mmaprobe identify --gemm --device python:mine.py:matmul --formats f32,f32,f32 --length 1000
    mmaprobe identify --gemm --device recorded:a.npy,b.npy,d.npy --formats f16,f16,f16

    Exit codes: 0 one class of candidates is left (with --gemm: every shape looked at has its plan), 1 no candidate
    fits, 2 bad input (also: ANSWERS are of another device), 3 cut short or undecided, or the device contradicts itself.
    """
    from runner.devices import open_device
    from runner.recorded import RecordedDevice
    from smtmodel.reference import is_unit_file

    if save is not None and not is_unit_file(str(save)):
        raise click.UsageError(f"--save {save}: the name of a unit file, or of a plan file, ends in .yaml")
    if family is None:
        if gemm and formats is not None and device_name.startswith(RECORDED):
            if {length, scale, shape, output, model} != {None}:
                raise click.UsageError("a recorded product has its own M, N and K: give --formats alone")
            plans_of_files(device_name.removeprefix(RECORDED), formats, save, options, as_json)
        if output is not None or model is not None:
            raise click.UsageError("--output and --model go with FAMILY")
        if gemm:
            if formats is None and device_name.startswith(RECORDED):
                raise click.UsageError("--gemm of a recorded product needs --formats")
            if formats is None or length is None:
                raise click.UsageError("--gemm needs --formats and --length")
            if scale is not None:
                raise click.UsageError("a matrix product has no scale factors: leave out --scale")
            map_gemm(device_name, formats, length, shape or "64,64", save, options, as_json)
        if shape is not None:
            raise click.UsageError("--shape goes with --gemm")
        asked = asked_of(device_name, formats, length, scale)
        build(device_name, asked, save, device_timeout, options, as_json)
        return
    if gemm or shape is not None:
        raise click.UsageError("--gemm takes no FAMILY")
    if any(given is not None for given in (formats, length, scale, save)):
        raise click.UsageError(
            "FAMILY sets the formats and the length: leave out --formats, --length, --scale and --save"
        )
    start = time.monotonic()
    asked_here = _asked(family, model)
    with _answers(output, device_name) as answers:
        if answers is not None and answers.earlier:
            say(f"{counted(answers.earlier, 'answer')} of an earlier run")
            with open_device(device_name, device_timeout, asked_here) as device:
                answers.recheck(device, lambda vector: str(vector.id).startswith("question"))
        with open_device(device_name, device_timeout, asked_here) as device:
            recorded = list(getattr(device, "vectors", ()))
            base = model or _reference_of(device, device_name, recorded)
            chosen = _family(family, base)
            recorded = [vector for vector in recorded if _same_instruction(vector, base)]
            if not recorded and isinstance(device, RecordedDevice):
                raise InputError(f"{device.name}: no row is an input of {base}")
            session = _Session(device, device_name, answers, options.timeout and start + options.timeout)
            found, failure = session.identify(chosen, options, recorded)
    progress("")
    named = _units(found, options, session.deadline)
    consistent = _consistent(found, recorded)
    progress("")
    _show(chosen, found, named, consistent, session, failure)
    if as_json:
        print_json(_document(chosen, found, named[0], consistent, session, failure))
    if failure is not None:
        raise failure
    sys.exit({"identified": 0, "no candidate": 1, "open": 3}[found.verdict])


def _family(name: str, model: str | None) -> Family:
    from hypotheses.family import family_named
    from hypotheses.gpu_family import gpu_family
    from smtmodel.gpus import gpu_named
    from smtmodel.reference import parse_reference

    if gpu_named(name) and model is None:
        raise InputError(f"{name} has several instructions: --model says on which formats and length the device is "
                         f"asked (`mmaprobe list {name}`)")  # fmt: skip
    asked = None if model is None else parse_reference(model)
    if asked is not None and (found := gpu_family(name, asked)) is not None:
        return found
    family = family_named(name)
    return family if asked is None else family.retargeted(asked)


def _asked(family: str, model: str | None) -> Model | None:
    """What recorded rows that name no instruction are inputs of: that of --model, else of the family; a GPU has
    several."""
    from hypotheses.family import family_named
    from smtmodel.gpus import gpu_named
    from smtmodel.reference import parse_reference

    if model is not None:
        return parse_reference(model)
    return None if gpu_named(family) else family_named(family).base


def _reference_of(device: Device, name: str, recorded: Sequence[Vector]) -> str | None:
    """The instruction of a device, or of the rows of its recording."""
    from runner.batches import BatchDevice

    _, _, rest = name.partition(":")
    if isinstance(device, BatchDevice):
        return device.model.reference
    references = {vector.model.reference for vector in recorded}
    if len(references) > 1:
        names = ", ".join(sorted(references)[:5])
        raise InputError(f"{rest} holds several instructions ({names}, ...): choose one with --model")
    return references.pop() if references else None


def _same_instruction(vector: Vector, reference: str | None) -> bool:
    return vector.model.reference.partition("@")[0] == (reference or "").partition("@")[0]


def _answers(output: str | None, device: str) -> AbstractContextManager[AnswersFile | None]:
    """The file in which answers are kept; None if there is none. Raises InputError."""
    from runner.answers import AnswersFile

    return nullcontext() if output is None else AnswersFile(Path(output), device)


@dataclass
class _Session:
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
        from queries.candidates.identify import Identification, Identifier
        from queries.compare.steady import ContradictionError

        candidates = family.candidates()
        _say_impossible(family)
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
        from queries.order.reveal import UnrevealedError, reveal

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


def _units(found: Identification, options: Options, deadline: float | None) -> Named:
    """The instructions and shipped units that are equal to the identified candidate, NaN patterns aside, and how that
    is known: by normal form, else by proof within NAMING seconds."""
    from queries.building.naming import name_of, of_known_form, same_signature
    from queries.compare.observed import agrees
    from smtmodel.batch import evaluate_row

    if found.verdict != "identified":
        return [], ""
    survivors = found.survivors
    asked = [replace(question.vector, d=question.answer) for question in found.questions]
    known = [
        model
        for model in same_signature(survivors[0])
        if all(agrees(model, evaluate_row(model, vector.operands), vector) for vector in asked)
    ]
    of_form = of_known_form(survivors, known)
    until = min(time.monotonic() + NAMING, math.inf if deadline is None else deadline)
    try:
        equal = name_of(of_form or survivors[0], known, options, until, 0 if of_form else None).equal
    except KeyboardInterrupt:  # the identified candidate is printed all the same
        equal = []
    return [model.reference for model, _ in equal], equal[0][1] if equal else ""


def _consistent(found: Identification, recorded: Sequence[Vector]) -> list[str]:
    """Where several candidates are left: the instructions and shipped units that give every answer, also those of fewer
    products than the family that take every input."""
    from queries.building.naming import same_signature
    from queries.compare.observed import agrees
    from smtmodel.batch import evaluate_rows
    from smtmodel.operands import unpadded

    if found.verdict != "open" or not found.survivors:
        return []
    answered = list(recorded) or [replace(question.vector, d=question.answer) for question in found.questions]
    rows = [unpadded(vector.operands) for vector in answered]
    longest = max((len(row.a) for row in rows), default=0)
    return [
        model.reference
        for model in same_signature(found.survivors[0], max(longest, 1))
        if all(map(partial(agrees, model), evaluate_rows(model, rows), answered))
    ]


def _show(
    family: Family, found: Identification, named: Named, consistent: Sequence[str], session: _Session,
    failure: MmaprobeError | None,
) -> None:  # fmt: skip
    from cli.build import say_gpus, say_names, some_of
    from cli.show import result_text, show_operands

    say(
        f"{counted(found.candidates, 'candidate')}, {counted(len(found.questions), 'question')}, "
        f"{session.structure_questions} more for the "
        f"summation order, {counted(found.validated, 'vector')} of validation, {found.seconds:.1f} s"
    )
    decided, undecided = found.values()
    for vector, first, second in found.contradictions[:CONTRADICTIONS]:
        say(f"the device contradicts itself on {vector.id}")
        show_operands(vector.model, vector.operands)
        for text, d in (("it gave", first), ("and then", second)):
            say(f"  {text} {result_text(d, vector.model.d)}")
    if found.verdict == "no candidate":
        say("no candidate fits")
        if found.killer is not None:
            vector = found.killer.vector
            show_operands(vector.model, vector.operands)
            say(f"  the device gives {result_text(found.killer.answer, vector.model.d)}")
        for model, agreed in found.nearest:
            say(f"  nearest: {model.reference} explains {agreed} of {len(found.questions)} answers")
        for line in _other_formats(family):
            say(f"  {line}")
    elif found.survivors:
        identified = found.verdict == "identified"
        if consistent:
            say(f"consistent with every answer: {some_of(consistent)}")
            say_gpus(consistent)
        elif not identified:
            say("no instruction of the table is consistent with every answer")
        say("identified:" if identified else "decided:")
        for name, value in decided.items():
            if name in family.values:
                say(f"  {name} = {_text(value)}")
        if undecided:
            say("no input distinguishes these values:" if identified else "not decided:")
        for name, values in undecided.items():
            say(f"  {name}: {' or '.join(map(_text, values))}")
        for why in sorted({member.why for members in found.classes for member in members if member.why}):
            say(f"  proved equal: {why}")
        for left, right in found.unknown:
            say(f"  open: {left.reference} | {right.reference}")
        if found.would_decide:
            say(f"  {counted(len(found.would_decide), 'vector')} that the recording does not hold would decide")
        if named[0]:
            say_names(*named)
        elif identified:
            say("no instruction of the table is proved to be this unit")
    elif not found.contradictions:
        say("cut short" if failure is None else f"cut short: {failure}")


def _other_formats(family: Family) -> Iterator[str]:
    """A hint, if the device's formats are not those of the family: the families that have the device's formats."""
    from hypotheses.family import families

    asked, own = family.formats, families().get(family.id, family).formats
    if asked != own:
        better = ", ".join(name for name, other in families().items() if other.formats == asked)
        yield f"{family.id} is made for {' '.join(own)}, and the device was asked {' '.join(asked)}" + (
            f": try {better}" if better else ""
        )


def _text(value: Any) -> str:
    from smtmodel.parameters import format_parameter

    return format_parameter(value)


def _document(
    family: Family, found: Identification, units: list[str], consistent: list[str], session: _Session,
    failure: MmaprobeError | None,
) -> dict[str, Any]:  # fmt: skip
    from smtmodel.parameters import format_parameter
    from smtmodel.vectors import to_hex

    decided, undecided = found.values()

    def plain(value: Any) -> Any:
        return format_parameter(value) if isinstance(value, tuple) else value

    return {
        "schema": 1,
        "family": family.id,
        "device": {"name": session.name, **session.device.description},
        "verdict": found.verdict,
        "error": str(failure) if failure else None,
        "candidates": found.candidates,
        "impossible": _impossible(family),
        "units": units,
        "consistent": consistent,
        "decided": {name: plain(value) for name, value in decided.items() if name in family.values},
        "assumed": {
            name: plain(value)
            for name, value in decided.items()
            if name not in family.values and (name != "scale_block" or decided.get("scale_format"))
        },
        "undecided": {name: [plain(value) for value in values] for name, values in undecided.items()},
        "why_undecided": sorted({m.why for members in found.classes for m in members if m.why}),
        "classes": [_members(members) for members in found.classes],
        "open": [[left.reference, right.reference] for left, right in found.unknown],
        "questions": len(found.questions),
        "summation_order": {
            "questions": session.structure_questions,
            "tree": list(session.structure.draw()) if session.structure is not None else None,
        },
        "validated": found.validated,
        "asked": [
            {
                **question.vector.to_json(),
                "d": to_hex(question.answer, question.vector.model.d),
                "left": question.left,
                "ruled_out": {name: [plain(v) for v in values] for name, values in question.ruled_out.items()},
            }
            for question in found.questions
        ],
        "nearest": [{"model": model.reference, "explains": agreed} for model, agreed in found.nearest],
        "contradictions": [
            {"vector": vector.to_json(), "answers": [to_hex(d, vector.model.d) for d in (first, second)]}
            for vector, first, second in found.contradictions
        ],
        "would_decide": [vector.to_json() for vector in found.would_decide],
        "seconds": round(found.seconds, 3),
    }
