"""The `mmaprobe` command: a thin line from arguments to the library and back."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click

from cli.ask import distinguish
from cli.compare import compare
from cli.explain import explain
from cli.identify import identify, separate
from cli.measure import evaluate
from cli.prove import prove
from cli.run import device, run
from cli.show import list_command
from cli.simulate import simulate
from cli.study import study
from cli.verify import verify
from smtmodel.errors import MmaprobeError


def _version() -> str:
    try:
        return version("mmaprobe")
    except PackageNotFoundError:
        return "unknown (not installed)"


class Group(click.Group):
    """Turns the project's errors into one line on standard error and their exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MmaprobeError as error:
            click.echo(f"error: {error}", err=True)
            sys.exit(error.exit_code)
        except (KeyboardInterrupt, click.Abort):
            click.echo("interrupted", err=True)
            sys.exit(3)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_version(), prog_name="mmaprobe")
def main() -> None:
    """Tell matrix multiply-accumulate units apart.

    mmaprobe models how tensor cores compute d = c + sum of a_k * b_k, asks SMT solvers for inputs on which two
    candidate models differ, and replays them.

    Exit codes: 0 the positive answer, or as a file expects; 1 the opposite; 2 bad input; 3 unknown or incomplete.
    """


for command in (
    distinguish, prove, verify, separate, identify, evaluate, run, device, compare, explain, simulate, study,
    list_command,
):  # fmt: skip
    main.add_command(command)

if __name__ == "__main__":
    main()
