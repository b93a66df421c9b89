"""The `mmaprobe` command: it maps arguments to calls of the library, and results to text and exit codes."""

from __future__ import annotations

import io
import sys
from collections import UserDict
from collections.abc import MutableMapping, Sequence
from importlib import import_module
from typing import Any

import click

from mmaprobe.cli.completion import PROGRAM
from mmaprobe.cli.config import config_path, load_defaults
from mmaprobe.cli.interrupts import interrupts_end, interrupts_raise
from mmaprobe.cli.options import ARGUMENTS, CONFIGURATION, LINE, LOUDNESS
from mmaprobe.cli.streams import NobodyReadsError, secure
from mmaprobe.smtmodel import VERSION
from mmaprobe.smtmodel.base.errors import FaultError, IncompleteError, MmaprobeError, UnknownNameError
from mmaprobe.smtmodel.base.interrupts import state
from mmaprobe.smtmodel.base.wording import abridged

#: module and name of each command; a module is imported when its command runs, so that no command waits for others
PLACES = {
    "distinguish": "mmaprobe.cli.commands.distinguish:distinguish",
    "prove": "mmaprobe.cli.commands.prove:prove",
    "verify": "mmaprobe.cli.commands.verify:verify",
    "check": "mmaprobe.cli.commands.check:check",
    "separate": "mmaprobe.cli.commands.separate:separate",
    "identify": "mmaprobe.cli.commands.identify:identify",
    "order": "mmaprobe.cli.commands.order:order",
    "cover": "mmaprobe.cli.commands.cover:cover",
    "evaluate": "mmaprobe.cli.commands.evaluate:evaluate",
    "run": "mmaprobe.cli.commands.run:run",
    "device": "mmaprobe.cli.commands.run:device",
    "compare": "mmaprobe.cli.commands.compare:compare",
    "explain": "mmaprobe.cli.commands.explain:explain",
    "export": "mmaprobe.cli.commands.export:export",
    "import": "mmaprobe.cli.commands.importing:import_command",
    "simulate": "mmaprobe.cli.commands.simulate:simulate",
    "study": "mmaprobe.cli.commands.study:study",
    "report": "mmaprobe.cli.commands.report:report",
    "datasheet": "mmaprobe.cli.commands.datasheet:datasheet",
    "list": "mmaprobe.cli.commands.listing:list_command",
    "show": "mmaprobe.cli.commands.show:show",
    "completion": "mmaprobe.cli.completion:completion",
}


class Commands(UserDict[str, Any]):
    """Commands by name. The value of a command in PLACES is its place until a lookup imports its module."""

    def __getitem__(self, name: str) -> click.Command:
        if isinstance(place := self.data[name], str):
            module, _, attribute = place.partition(":")
            self.data[name] = getattr(import_module(module), attribute)
        command: click.Command = self.data[name]
        return command


class Group(click.Group):
    """Prints one of the project's errors as one line on standard error, and exits with its exit code."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[ARGUMENTS] = list(args)
        if args[:1] == ["help"]:  # `help prove` is `prove --help`
            args = [*args[1:2], "--help"]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and not ctx.resilient_parsing and (path := config_path()) is not None:
            ctx.default_map, ctx.meta[CONFIGURATION] = {name: load_defaults(self, path, name)}, str(path)
        return name, command, rest

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, standalone_mode: bool = True, **rest: Any
    ) -> Any:
        if not standalone_mode:
            return super().main(args, prog_name, standalone_mode=False, **rest)
        secure()
        try:
            code = self._code(args, prog_name, **rest)
        except KeyboardInterrupt:  # while the result was written, or just after it
            code = IncompleteError.exit_code
        interrupts_end(code)
        sys.exit(code)

    def _main_shell_completion(
        self, ctx_args: MutableMapping[str, Any], prog_name: str, complete_var: str | None = None
    ) -> None:
        try:
            super()._main_shell_completion(ctx_args, prog_name, complete_var)
        except (KeyError, ValueError) as error:  # the completion's variables are not as the script sets them
            why = f"COMP_WORDS and COMP_CWORD are not those of a shell ({error})"
            raise click.UsageError(f"{why}: `{PROGRAM} completion` prints the script that completes") from None

    def _code(self, args: Sequence[str] | None, prog_name: str | None, **rest: Any) -> int:
        """Runs a command line and gives its exit code; an error is printed."""
        explained = False  # whether an error says why work is incomplete
        try:
            return super().main(args, prog_name, standalone_mode=False, **rest) or 0
        except SystemExit as end:  # a command's own
            return end.code if isinstance(end.code, int) else int(end.code is not None)
        except click.ClickException as error:
            message = io.StringIO()
            error.show(message)
            LINE.say(abridged(message.getvalue().rstrip("\n")))
            return error.exit_code
        except NobodyReadsError as error:
            return error.exit_code
        except MmaprobeError as error:
            explained = isinstance(error, IncompleteError)
            LINE.say(f"error: {error}{_also(error)}")
            return error.exit_code
        except (KeyboardInterrupt, click.Abort) as end:
            if isinstance(end.__cause__, EOFError):  # a damaged file was loaded: click takes it for the input's end
                return _failed(end.__cause__)
            if not state.late:  # else the last line says that time ran out
                LINE.say("interrupted")
            return 3
        except Exception as error:
            return _failed(error)
        finally:
            LINE.end()
            if state.late and not explained:
                LINE.say(f"time ran out: {state.seconds:g} s were given, and the work was cut short")


def _also(error: MmaprobeError) -> str:
    """What the name of an unknown model stands for elsewhere, if anything: a plan, or a sum of numbers."""
    if not (isinstance(error, UnknownNameError) and error.kind == "model"):
        return ""
    from mmaprobe.smtmodel.algorithms import ALGORITHMS
    from mmaprobe.smtmodel.plans.multiword import SCHEMES

    name = error.name.partition("@")[0]
    if name in SCHEMES:
        return f"; it is a plan, and a model for a given K: plan:{error.name}@length=64 (docs/plans.md)"
    return "; it is a sum of numbers, as claims name them (docs/claims.md)" if name in ALGORITHMS else ""


def _failed(error: Exception) -> int:
    from mmaprobe.cli.faults import fault_text, shortage

    if short := shortage(error):
        LINE.say(f"error: {short}")
        return IncompleteError.exit_code
    LINE.say(f"error: {fault_text(error)}")
    return FaultError.exit_code


def _version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        click.echo(f"mmaprobe, version {VERSION}")
        context.exit()


@click.group(cls=Group, commands=Commands(PLACES), context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Show the version and exit."
)
@click.option("-q", "--quiet", is_flag=True, help="Print only data and errors.")
@click.option("-v", "--verbose", is_flag=True, help="Print every step of the work on its own line.")
@click.pass_context
def main(context: click.Context, quiet: bool, verbose: bool) -> None:
    """Distinguish matrix multiply-accumulate units.

    mmaprobe models how tensor cores and other matrix units compute d = c + sum of a_k * b_k, bit for bit. It finds
    inputs on which two units differ, proves units equal, and finds out which unit a device has.

    Defaults of options are read from ~/.config/mmaprobe/config.toml (MMAPROBE_CONFIG names another file):
    `timeout = 60` at the top is for every command that has the option, below `[prove]` for that command. NO_COLOR turns
    colours off.

    Exit codes: 0 the positive answer, or as a file expects; 1 the opposite; 2 bad input; 3 unknown or incomplete;
    4 a fault of this program (results that contradict each other, an unexpected error), or output cut short by a full
    disk.

    The words used here and by the commands (fused, F, carry bit, floor, witness, ...) are explained in
    docs/glossary.md; `mmaprobe list words` prints them.
    """
    interrupts_raise()  # the command's modules are loaded
    if quiet and verbose:
        raise click.UsageError("--quiet and --verbose exclude each other")
    context.meta[LOUDNESS] = verbose - quiet


if __name__ == "__main__":
    main()
