"""Completion of names in a shell, and the `completion` command. The command prints click's own script; click prints it
only if an environment variable is set (_MMAPROBE_COMPLETE=bash_source)."""

from __future__ import annotations

from collections.abc import Callable

import click
from click.shell_completion import CompletionItem, get_completion_class

from mmaprobe.cli.choice import Choice
from mmaprobe.cli.command import Command

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
PROGRAM, VARIABLE = "mmaprobe", "_MMAPROBE_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


def _completer(*kinds: str) -> Completer:
    """Completes the names of the kinds of `mmaprobe list` (of GPUs their architectures), and files beside them."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from mmaprobe.listed import KINDS

        every = {getattr(row, "architecture", row.id) for kind in kinds for row in KINDS[kind]()}
        names = sorted(name for name in every if name.startswith(incomplete))
        return [CompletionItem(name) for name in names] or [CompletionItem(incomplete, type="file")]

    return complete


models = _completer("models")
models_or_architectures = _completer("models", "gpus")
questions_or_models = _completer("hypotheses", "models")
families = _completer("families")
studies = _completer("studies")
plans = _completer("plans")
claim_names = _completer("claims")
file_names = _completer()  # for parameters that may also be "-", a line of a file, or JSON


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
