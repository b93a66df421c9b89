"""The class of commands that check their outputs first: each is writable, and neither an input nor another output."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.base.files import INPUTS, check_folder, is_file, real_path
from mmaprobe.smtmodel.base.interrupts import allow

#: parameters that name a file to write
OUTPUTS = ("output", "save", "svg", "pdf", "tikz", "smt2", "junit")
#: the parameter that names a folder to replace
FOLDER = "certificate"
#: separators of the parts of a word that may be files, as in recorded:A,B and FILE@name=value
SEPARATORS = re.compile(r"[:,@=\s]+")
PARTS = 24  # parts of a word that are tried as files, at most


#: options of the program, not of a command
GLOBAL = ("-q", "--quiet", "-v", "--verbose")


class Command(click.Command):
    """A command. Raises InputError before any work if an output is an input, another output, or not writable; files
    that other inputs name are not overwritten either. --timeout limits the work, unless the command says otherwise."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.option_name in GLOBAL and ctx.parent is not None:
                where = f"{ctx.parent.command_path} {error.option_name} {ctx.info_name} ..."
                raise click.UsageError(f"{error.option_name} is written before the command: {where}", ctx) from None
            raise

    def invoke(self, ctx: click.Context) -> Any:
        seen = dict.fromkeys(_inputs(ctx), "")
        for parameter in self.params:
            if parameter.name not in OUTPUTS or (value := ctx.params[parameter.name]) in (None, "-"):
                continue
            option, path = parameter.opts[-1], Path(real_path(value))
            if isinstance(parameter.type, click.Path) and not parameter.type.file_okay:
                check_folder(Path(value))
                if path.is_dir():
                    continue
            elif path.is_dir():
                raise InputError("is a folder: a file is needed", str(value))
            if not path.parent.is_dir():
                parent = path.parent if os.path.islink(value) else Path(value).parent
                raise InputError(f"there is no folder {parent}: make it first", str(value))
            if path.exists() and not path.is_file():  # such as /dev/null
                continue
            if (other := seen.setdefault(path, option)) != option:
                why = f"{other} and {option} name one file" if other else f"{option} would overwrite an input"
                raise InputError(why, str(value))
        if (folder := ctx.params.get(FOLDER)) is not None:
            _check_folder(Path(folder), seen)
        allow(ctx.params.get("timeout"))
        with INPUTS.kept():
            return super().invoke(ctx)


def _check_folder(folder: Path, named: Mapping[Path, str]) -> None:
    """Raises InputError for a folder that cannot be replaced by a certificate."""
    from mmaprobe.queries.certificates.place import check_place

    check_folder(folder)
    if not folder.exists():
        return
    for path, option in named.items():
        if Path(real_path(folder)) in path.parents:
            raise InputError(f"--{FOLDER} would overwrite {option or 'an input'}: {path.name} is in it", str(folder))
    check_place(folder)


def _inputs(ctx: click.Context) -> Iterator[Path]:
    """The existing files named by parameters other than outputs, alone or as part of a word."""
    for name, value in ctx.params.items():
        for word in value if isinstance(value, tuple) else (value,):
            if name in OUTPUTS or not isinstance(word, str | Path):
                continue
            text = str(word)
            ends = [0, *(at for match in SEPARATORS.finditer(text) for at in match.span()), len(text)][: 2 * PARTS]
            for part in dict.fromkeys(text[start:end] for start in ends[::2] for end in ends[1::2] if start < end):
                if is_file(part):
                    yield Path(real_path(part))
