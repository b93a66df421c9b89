"""Options and output that several commands share."""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from mmaprobe.cli.choice import Choice, FileName, Mebibytes, OwnFile, RoundingName, Seconds
from mmaprobe.cli.completion import file_names, models
from mmaprobe.cli.line import StatusLine
from mmaprobe.documents.parts import ABSENT, Document, Part, Produced, plain
from mmaprobe.smtmodel import VERSION
from mmaprobe.smtmodel.base.files import append_whole, size_of, write_whole
from mmaprobe.smtmodel.base.interrupts import allow
from mmaprobe.smtmodel.base.progress import Notice
from mmaprobe.smtmodel.exceptions import DOCUMENTS
from mmaprobe.smtmodel.inputs.restrictions import RESTRICTIONS, WINDOW

if TYPE_CHECKING:
    from mmaprobe.queries.solvers.pool import Pool
    from mmaprobe.queries.solvers.store import Store
    from mmaprobe.smtmodel.inputs.vectors import Vector

#: keys of what the outermost command keeps in its context: the command line, the file of defaults, and the loudness
#: (-1 for --quiet, 1 for --verbose, else 0)
ARGUMENTS, CONFIGURATION, LOUDNESS = "mmaprobe.arguments", "mmaprobe.configuration", "mmaprobe.loudness"

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
#: suffixes of files that hold no vectors
OTHER_FILES = (".npy", ".npz", ".yaml", ".yml", ".py", ".csv", ".svg", ".pdf", ".tex", ".png")

#: the sources of values that a user gives, unlike defaults
TYPED = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
#: the names of the options about solvers, but for the timeout
SOLVING = ("solver", "memory", "store", "fresh", "cluster")


def output_option(what: str, metavar: str = "FILE", kind: FileName | None = None) -> Decorator:
    """The option for a file to write, of vectors if no other `kind` is given; `what`: its help."""
    file = kind or OwnFile(".jsonl", OTHER_FILES, "vectors are written as JSONL: ", path_type=None)
    return click.option("-o", "--output", type=file, metavar=metavar, shell_complete=file_names, help=what)


VECTORS_OUTPUT = output_option("Write the vectors here as JSONL (default: standard output).")
MODEL_OF_ROWS = click.option(
    "--model", metavar="MODEL", shell_complete=models, help="Evaluate every row under this model instead of its own."
)
JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
DESIGN = "rtl:"  # before the name of a device that is a design
DEVICE = click.option(
    "--device", "device_name", required=True, metavar="D",
    help="model:REFERENCE, command:CMDLINE, plain:CMDLINE, python:FILE.py:FUNCTION, recorded:FILE, "
    "rtl:FILE.sv,top=NAME, cpu:INSTRUCTION, cuda:[UNIT/]INSTRUCTION or hip:[UNIT/]INSTRUCTION; `mmaprobe list devices` "
    "shows those of this machine.",
)  # fmt: skip
DEVICE_TIMEOUT = click.option(
    "--device-timeout", type=Seconds(), default=60.0, show_default=True,
    help="Seconds for one answer, or one call of a function.",
)  # fmt: skip
FIXED = click.option(
    "--fixed", type=Choice(["M", "N"]),
    help="With --invariant: compare shapes with the same M, or N, alone (N: weights of one layer, any batch).",
)  # fmt: skip
FLAGS = click.option(
    "--flags", type=Choice(DOCUMENTS), metavar=f"[{'|'.join(DOCUMENTS)}]",
    help="The exceptions of IEEE 754 (16 invalid, 4 overflow, 2 underflow, 1 inexact), as this architecture signals "
    "them.",
)  # fmt: skip
CONVERT = click.option(
    "--convert", help="Round A, B and C to the input formats.",
    # the modes are written out, as the module that lists them takes long to load
    type=RoundingName(["nearest_even", "nearest_away", "toward_zero", "up", "down"]),
)  # fmt: skip
ADDEND = click.option(
    "--c", "addend", type=FileName(), metavar="C",
    help="The addend of the matrix product, or a bias of one row or column (default: zeros).",
)  # fmt: skip
STORE = click.option(
    "--store", type=FileName(), metavar="FILE", help="Keep answers in this SQLite file (default: in the cache folder)."
)
CLUSTER = click.option("--cluster", metavar="ADDRESS", help="Use the workers of this dask scheduler (docs/cluster.md).")


def inputs_option(about: str = "") -> Decorator:
    """The option for the inputs admitted; `about`: what stands before its help."""
    text = f"{about}Inputs admitted (comma-separated): {', '.join(RESTRICTIONS)}, {WINDOW}."
    return click.option(
        "--inputs", "restrictions", metavar="LIST", default="", callback=_named_restrictions, help=text
    )  # fmt: skip


def _named_restrictions(context: click.Context, param: click.Parameter, value: str) -> str:
    """The value of --inputs. Raises click.BadParameter for an empty one, as an unset variable of a script gives it."""
    if not value and context.get_parameter_source(str(param.name)) in TYPED:
        raise click.BadParameter(f"a word is missing; known: {', '.join((*RESTRICTIONS, WINDOW))}.", context, param)
    return value


def compare_option(aside: str = "", **kind: Any) -> Decorator:
    """The option for how results are compared; `aside`: the end of its help."""
    text = f"value: +0 and -0 are equal, and formats of results may differ{aside}."
    return click.option("--compare", type=Choice(["bits", "value"]), help=text, **kind)


#: the exit code of each verdict
EXIT = {"equal": 0, "holds": 0, "different": 1, "refuted": 1, "unknown": 3}
LISTED = 4  # lines of a list that are printed without --all


def solver_options(timed: str, unread: Callable[[Mapping[str, Any]], str | None] = lambda named: None) -> Decorator:
    """Adds --solver, --timeout, --memory, --store, --fresh and --cluster to a command, which gets them as `options`.
    `timed`: what the timeout is for; `unread`: from the command's parameters, why no solver is asked, or None."""
    return functools.partial(_with_solver_options, timed, unread)


def _with_solver_options(
    timed: str, unread: Callable[[Mapping[str, Any]], str | None], command: Callable[..., Any]
) -> Callable[..., Any]:
    @functools.wraps(command)
    def run(
        *rest: Any, solver: str, timeout: float, memory: int, store: Path | None, fresh: bool, cluster: str | None,
        **named: Any,
    ) -> Any:  # fmt: skip
        from mmaprobe.queries.search.distinguish import Options

        if why := unread(named):
            refuse(why, *SOLVING)
        shown = functools.partial(progress, loud=loudness())
        with opened_store(store) as opened, opened_pool(cluster) as pool:
            options = Options(solver, timeout, memory, progress=shown, store=opened, fresh=fresh, pool=pool)
            return command(*rest, options=options, **named)

    wrapped: Callable[..., Any] = run
    for option in (
        CLUSTER,
        click.option("--fresh", is_flag=True, help="Ask the solvers again, also where the store has an answer."),
        STORE,
        click.option(
            "--memory", type=Mebibytes(64, 1 << 24), default=8192, show_default=True,
            help="Memory limit of a solver process, in MiB.",
        ),
        click.option(
            "--timeout", type=Seconds(), default=300.0, show_default=True,
            help=f"Seconds for {timed}.",
        ),
        click.option(
            "--solver", type=Choice(["auto", "bitwuzla", "z3", "cvc5"]), default="auto", show_default=True,
            help="auto: all of them at once, the first answer counts.",
        ),
    ):  # fmt: skip
        wrapped = option(wrapped)
    return wrapped


def refuse(why: str, *names: str) -> None:
    """Raises click.UsageError for options that the command line gives although this use of the command reads none of
    them; defaults of the configuration are for other uses."""
    context = click.get_current_context()
    typed = [param for param in context.command.params if context.get_parameter_source(param.name or "") in TYPED]
    given = [param.opts[-1] for param in typed if param.name in names]
    if given:
        raise click.UsageError(f"{', '.join(given)}: {why}")


@contextmanager
def opened_store(path: Path | None) -> Iterator[Store | None]:
    """The store of answers. Raises StoreError if a store given by the user cannot be opened; the default store gives a
    warning and None instead."""
    from mmaprobe.queries.solvers.store import Store, StoreError

    warn = _warning()
    if path is not None and not path.parent.exists():  # a misspelt path creates no folders
        raise StoreError(path, f"there is no folder {path.parent}: make it first")
    try:
        store = Store(path, warn=warn)
    except StoreError as error:
        if path is not None:
            raise
        warn(f"{error}; answers are not kept")
        yield None
        return
    with store:
        yield store


@contextmanager
def opened_pool(address: str | None, width: int | None = None) -> Iterator[Pool]:
    """Where the solvers run: a scheduler's cluster, or this machine with `width` processes (by default one for each
    core). Raises ClusterError."""
    from mmaprobe.queries.solvers.pool import Pool

    if address is None:
        yield Pool(width)
        return
    from mmaprobe.queries.solvers.cluster import Cluster

    with Cluster(address, _warning()) as pool:
        yield pool


def _warning() -> Callable[[str], None]:
    """A function that prints warnings, from any thread, unless --quiet is given."""
    loud = loudness()
    return lambda text: LINE.say(f"warning: {text}") if loud >= 0 else None


def show_zeros(zeros: Mapping[str, str]) -> None:
    """Print the operands for which restrictions admit only zeros, each with the reason."""
    for name, reach in zeros.items():
        say(f"  of {name} only zeros are admitted: {reach}")


def say(text: str = "") -> None:
    """Print a message on standard error; standard output carries data only."""
    if loudness() >= 0:
        LINE.say(text)


def say_list(lines: Sequence[str], every: bool) -> None:
    """Print the first few lines, or all if `every`."""
    shown = len(lines) if every else LISTED
    for line in lines[:shown]:
        say(f"    {line}")
    if len(lines) > shown:
        say(f"    and {len(lines) - shown} more (--all lists them)")


def loudness() -> int:
    """-1 for --quiet, 1 for --verbose, else 0."""
    context = click.get_current_context(silent=True)
    return 0 if context is None else int(context.find_root().meta.get(LOUDNESS, 0))


def print_json(document: Document | Sequence[Part]) -> None:
    """Print a document as JSON, with the version and command that produced it, or a list as it is."""
    if isinstance(document, Document):
        click.echo(document_text({**plain(document), "produced": produced()}))
    else:
        click.echo(document_text(document))


def document_text(document: Any) -> str:
    """A document as it is printed. The tests read every printed document as its class in mmaprobe.documents."""
    return json.dumps(document, default=plain)


def produced() -> Produced:
    """The version and the command line that this process runs."""
    meta = click.get_current_context().find_root().meta
    command = shlex.join(["mmaprobe", *meta.get(ARGUMENTS, [])])
    return Produced(by=f"mmaprobe {VERSION}", command=command, defaults=meta.get(CONFIGURATION, ABSENT))


LINE = StatusLine()


def progress(text: str, loud: int | None = None) -> None:
    """Show progress on a terminal, with the time that base/progress.py formats; the next call replaces the line.
    With --verbose the line stays. Threads without a click context pass the loudness as `loud` (see `loudness`)."""
    loud = loudness() if loud is None else loud
    if loud >= 0 and isinstance(text, Notice):
        LINE.say(text)
    elif loud >= 0:
        LINE.show(text, stays=loud > 0)


def end_work() -> None:
    """End the work of a command, and with it the progress line and the time limit: what was found is shown, however
    late it comes."""
    allow(None)
    progress("")


def write_vectors(
    vectors: Iterable[Vector], target: str | None, more: bool = False, after: int | None = None
) -> int | None:
    """Write vectors as JSONL to a file, or to standard output if `target` is None or "-". `more`: append to the file,
    of which an earlier call gave the size `after`. Raises what `write_whole` and `append_whole` raise."""
    lines = "".join(json.dumps(vector.to_json()) + "\n" for vector in vectors)
    if target is None or target == "-":
        click.echo(lines, nl=False)
        return None
    if more:
        append_whole(Path(target), lines, after)
    else:
        write_whole(Path(target), lines)
    return size_of(Path(target))


def write_output(content: bytes, target: str | None, about: str, note: str = "") -> None:
    """Write the content that a command makes to a file, and say what it is `about`; or, if `target` is None or "-",
    write it to standard output, and say the `note`, if there is one. Raises what `write_whole` raises."""
    if target is None or target == "-":
        click.echo(content, nl=False)
        if note:
            say(note)
    else:
        write_whole(Path(target), content)
        say(f"{target}: {about}")


def overall(codes: Sequence[int]) -> int:
    """The exit code of a command with several answers: 4 if any of them is a fault, else 3 if any is unknown, else 1 if
    any is not as expected, else 0."""
    return max(codes)
