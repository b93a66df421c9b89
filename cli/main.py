"""The `mmaprobe` command: a thin line from arguments to the library and back."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import click

from cli.ask import distinguish
from cli.compare import compare
from cli.completion import completion
from cli.config import config_path, load_defaults
from cli.datasheet import datasheet
from cli.explain import explain
from cli.export import export
from cli.faults import fault_text
from cli.identify import identify, separate
from cli.measure import evaluate
from cli.options import ARGUMENTS, CONFIGURATION, LINE, LOUDNESS, program_version
from cli.order import order
from cli.prove import prove
from cli.report import report
from cli.run import device, run
from cli.show import list_command
from cli.show_unit import show
from cli.simulate import simulate
from cli.streams import NobodyReadsError, secure
from cli.study import study
from cli.verify import verify
from smtmodel.errors import FaultError, MmaprobeError


class Group(click.Group):
    """Turns the project's errors into one line on standard error and their exit code."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[ARGUMENTS] = list(args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        if (path := config_path()) is not None:
            ctx.default_map, ctx.meta[CONFIGURATION] = load_defaults(self, path), str(path)
        return super().invoke(ctx)

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, standalone_mode: bool = True, **rest: Any
    ) -> Any:
        if not standalone_mode:
            return super().main(args, prog_name, standalone_mode=False, **rest)
        secure()
        sys.exit(self._code(args, prog_name, **rest))

    def _code(self, args: Sequence[str] | None, prog_name: str | None, **rest: Any) -> int:
        """The exit code of a command line; what ended it early is said."""
        try:
            return super().main(args, prog_name, standalone_mode=False, **rest) or 0
        except click.ClickException as error:
            with suppress(OSError):
                error.show()
            return error.exit_code
        except NobodyReadsError as error:
            return error.exit_code
        except MmaprobeError as error:
            LINE.say(f"error: {error}")
            return error.exit_code
        except (KeyboardInterrupt, click.Abort):
            LINE.say("interrupted")
            return 3
        except MemoryError:
            LINE.say("error: memory ran out")
            return 3
        except Exception as error:
            LINE.say(f"error: {fault_text(error)}")
            return FaultError.exit_code
        finally:
            LINE.end()


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(program_version(), prog_name="mmaprobe")
@click.option("-q", "--quiet", is_flag=True, help="No text for people: only data, errors and the exit code.")
@click.option("-v", "--verbose", is_flag=True, help="Every step of the work as a line of its own.")
@click.pass_context
def main(context: click.Context, quiet: bool, verbose: bool) -> None:
    """Tell matrix multiply-accumulate units apart.

    mmaprobe models how tensor cores compute d = c + sum of a_k * b_k, asks SMT solvers for inputs on which two
    candidate models differ, and replays them.

    Defaults of options stand in ~/.config/mmaprobe/config.toml (MMAPROBE_CONFIG names another file): `timeout = 60`
    for every command that has the option, `[prove]` before it for one. NO_COLOR turns colours off.

    Exit codes: 0 the positive answer, or as a file expects; 1 the opposite; 2 bad input; 3 unknown or incomplete;
    4 a fault of this program (results that contradict each other, an unexpected error), or output that could not be
    written.
    """
    if quiet and verbose:
        raise click.UsageError("--quiet and --verbose exclude each other")
    context.meta[LOUDNESS] = verbose - quiet


for command in (
    distinguish, prove, verify, separate, identify, order, evaluate, run, device, compare, explain, export, simulate,
    study, report, datasheet, list_command, show, completion,
):  # fmt: skip
    main.add_command(command)

if __name__ == "__main__":
    main()
