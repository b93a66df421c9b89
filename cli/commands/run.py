"""Commands about devices: ask a device vectors, serve a model as a device."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mmaprobe.cli.choice import Length
from mmaprobe.cli.command import Command
from mmaprobe.cli.completion import file_names, models
from mmaprobe.cli.options import DEVICE, DEVICE_TIMEOUT, JSON, output_option, print_json, progress, refuse, say
from mmaprobe.cli.reading import open_input
from mmaprobe.cli.streams import NobodyReadsError, check_reader
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.runner.device_vectors import VectorRun


@click.command(cls=Command)
@click.argument("model", metavar="MODEL", shell_complete=models)
@DEVICE_TIMEOUT
def device(model: str, device_timeout: float) -> None:
    """Serve MODEL as a device. Vectors are on standard input, one a line, answers on standard output.

    MODEL is a model reference, or cuda:[UNIT/]INSTRUCTION or hip:[UNIT/]INSTRUCTION for the GPU of this machine,
    which another machine then asks with --device "command:ssh gpu-host mmaprobe device cuda:...".

    The first line is {"device": {...}}, then {"id": ..., "d": "hex"} for every vector, in order, at once. A vector
    may name the model it was made for: MODEL is evaluated all the same, but formats must fit, and there may be no
    more products than MODEL has. A bad line ends it with exit code 2, the end of input with 0.

    \b
    mmaprobe device hopper/mma/m16n8k16.f32.f16.f16.f32 < vectors.jsonl
    """
    from mmaprobe.runner.devices import open_servable
    from mmaprobe.runner.serve import serve

    if not model.startswith(("cuda:", "hip:")):
        refuse("a model answers at once: it is for cuda:... and hip:...", "device_timeout")
    with open_servable(model, device_timeout) as opened:
        serve(opened)


@click.command(cls=Command)
@click.argument("file", metavar="FILE", shell_complete=file_names)
@DEVICE
@output_option("Append the answers here (default: standard output).", "ANSWERS")
@click.option(
    "--check", is_flag=True,
    help="Compare every answer with its model's: exit code 1 if one differs. Every vector is asked; answers of an "
    "earlier run are replaced.",
)  # fmt: skip
@click.option(
    "--formats", metavar="A,B,C,D",
    help="Where rows name no model, as those that `compare` writes of two functions: the formats of a, b, c and the "
    "result, or A,B,D without c.",
)  # fmt: skip
@click.option("--length", type=Length(), metavar="K", help="With --formats: the number of products.")
@DEVICE_TIMEOUT
@JSON
def run(
    file: str, device_name: str, output: str | None, check: bool, formats: str | None, length: int | None,
    device_timeout: float, as_json: bool,
) -> None:  # fmt: skip
    """Ask a device every vector of a file. Say which hypotheses are consistent with its answers.

    FILE is JSONL, gzip-compressed or not; "-" reads standard input. The answers are vectors with `d`, written as they
    come. If ANSWERS has answers of an earlier run with the same vectors and device, that run continues, unless --check
    is given. Some vectors are asked again, of an earlier run first and of this run at the end, to see whether the
    device repeats its answers.

    \b
    mmaprobe distinguish carry-bits-ampere -o vectors.jsonl
    mmaprobe run vectors.jsonl --device command:./my-gpu -o answers.jsonl

    Exit codes: 0 every vector was answered, 1 with --check: an answer is not its model's, 2 bad input (also: ANSWERS
    are of another device), 3 the device failed, has no answer, or contradicts itself (the answers are kept).
    """
    from mmaprobe.runner.device_vectors import VectorRun
    from mmaprobe.smtmodel.inputs.signature import parse_signature

    if (formats is None) is not (length is None):
        raise click.UsageError("--formats and --length go together")
    if formats is not None:
        refuse("rows without a model have no answers of their own", "check")
    asked = None if formats is None or length is None else parse_signature(formats, length)
    session = VectorRun(device_name, device_timeout, say, None if as_json else _write, check, model=asked)
    failure: MmaprobeError | None = None
    with open_input(file) as (lines, name):
        try:
            session.run(lines, name, None if output is None or output == "-" else Path(output))
        except NobodyReadsError:
            raise
        except MmaprobeError as error:  # earlier answers count
            failure = error
        except KeyboardInterrupt:
            _summary(session, output, name, whole=False)
            if as_json:
                print_json(session.document(name, output, "interrupted"))
            raise
    progress("")
    if session.answered or failure is None:
        _summary(session, output, name, whole=failure is None)
    if as_json:
        print_json(session.document(name, output, failure))
    if failure is not None:
        raise failure
    sys.exit(1 if session.wrong else 0)


def _write(row: dict[str, Any]) -> None:
    """Print an answer at once. Raises NobodyReadsError."""
    click.echo(json.dumps(row))
    check_reader()


def _summary(session: VectorRun, output: str | None, file: str, whole: bool) -> None:
    """Print the number of answers, the hypotheses that agree with them, with --check the answers that differ from
    their model's, and the command that shows which candidates are left. `whole`: nothing ended the run early."""
    from mmaprobe.cli.text.vectors import SHOWN, show_mismatch

    for line in session.standings.lines():
        say(line)
    say(f"{counted(session.answered, 'vector')} answered by {session.name}")
    if session.check and session.answered:
        right = f"every answer{'' if whole else ' so far'} is its model's"
        say(f"{counted(len(session.wrong), 'answer')} not the model's" if session.wrong else right)
        for row in session.wrong[:SHOWN]:
            show_mismatch(row, file)
        if session.shape is not None:
            rows, columns = session.shape
            asked = f"asked as products of {rows} x K and K x {columns} alone"
            say(f"{asked}: mmaprobe identify --gemm asks for other shapes")
    for family in sorted(session.families):
        kept = "ANSWERS" if output in (None, "-") else output
        device = shlex.quote(f"recorded:{kept}")
        say(f"which candidates they leave: mmaprobe identify {shlex.quote(family)} --device {device}")
