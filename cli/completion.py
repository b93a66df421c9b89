"""Completion of names in a shell, and the `completion` command. It prints click's own script, which click itself prints
only if an environment variable is set (_MMAPROBE_COMPLETE=bash_source)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem, get_completion_class

from mmaprobe.cli.choice import Choice
from mmaprobe.cli.command import Command

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
PROGRAM, VARIABLE = "mmaprobe", "_MMAPROBE_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


def _instructions() -> Iterable[str]:
    from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS

    return INSTRUCTIONS


def _architectures() -> Iterable[str]:
    from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS

    return {row.arch for row in INSTRUCTIONS.values()}


def _questions() -> Iterable[str]:
    from mmaprobe.hypotheses.library import library

    return library()


def _families() -> Iterable[str]:
    from mmaprobe.hypotheses.family import families as known

    return known()


def _studies() -> Iterable[str]:
    from mmaprobe.studies.file import studies as known

    return known()


def _claims() -> Iterable[str]:
    from mmaprobe.hypotheses.claim import claims as known

    return known()


def _plans() -> Iterable[str]:
    from mmaprobe.smtmodel.plans.plan_files import plans as known
    from mmaprobe.smtmodel.tables.reference import PLAN

    return [f"{PLAN}{name}" for name in known()]


def _completer(*sources: Callable[[], Iterable[str]]) -> Completer:
    """Completes the names of tables, and files beside them."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        names = sorted({name for source in sources for name in source() if name.startswith(incomplete)})
        return [CompletionItem(name) for name in names] or [CompletionItem(incomplete, type="file")]

    return complete


models = _completer(_instructions)
models_or_architectures = _completer(_instructions, _architectures)
questions_or_models = _completer(_questions, _instructions)
families = _completer(_families)
studies = _completer(_studies)
plans = _completer(_plans)
claim_names = _completer(_claims)
file_names = _completer()  # of parameters that also take "-", a line of a file or JSON


@click.command(cls=Command)
@click.argument("shell", type=Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes commands in SHELL. It also completes options, models, questions and families.

    \b
    mmaprobe completion bash > ~/.local/share/bash-completion/completions/mmaprobe
    mmaprobe completion zsh > ~/.zfunc/_mmaprobe
    mmaprobe completion fish > ~/.config/fish/completions/mmaprobe.fish
    """
    shell_class = get_completion_class(shell)
    assert shell_class is not None
    source = shell_class(context.find_root().command, {}, PROGRAM, VARIABLE)
    click.echo(shell_class.source_template % source.source_vars())
