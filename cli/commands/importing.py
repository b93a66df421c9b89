"""The `import` command: vectors of files of hexadecimal words, as TestFloat writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from mmaprobe.cli.choice import FileName
from mmaprobe.cli.command import Command
from mmaprobe.cli.completion import file_names, models
from mmaprobe.cli.options import output_option, write_output
from mmaprobe.cli.reading import open_input

if TYPE_CHECKING:
    from mmaprobe.smtmodel.evaluate.model import Model

_WORD = re.compile(r"(?:0[xX])?([0-9a-fA-F]+)")
_COMMENT = re.compile(r"(#|//).*")


@click.command("import", cls=Command)
@click.argument("file", metavar="FILE", shell_complete=file_names)
@click.option(
    "--model",
    metavar="MODEL",
    required=True,
    shell_complete=models,
    help="The model whose operands and result each line has.",
)
@output_option("Write the vectors here as JSONL (default: standard output).", "OUT", FileName(path_type=None))
def import_command(file: str, model: str, output: str | None) -> None:
    """Read vectors from hexadecimal lines, as TestFloat's.

    A line has the operands of MODEL in the order of a `plain:` device (each a, each b, c, scale factors), then the
    result, and flags if there are any: for one product `A B C D FLAGS`. # and // begin comments.

    \b
    testfloat_gen f32_mulAdd > lines.txt
    mmaprobe import lines.txt --model ieee/fma/f32 -o vectors.jsonl
    mmaprobe evaluate vectors.jsonl
    """
    from mmaprobe.smtmodel.base.errors import InputError
    from mmaprobe.smtmodel.base.wording import counted
    from mmaprobe.smtmodel.tables.reference import parse_reference

    read = parse_reference(model)
    with open_input(file) as (lines, name):
        rows = list(_rows(lines, name, read))
    if not rows:
        raise InputError("the file has no line of words", name)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    write_output(text.encode(), output, counted(len(rows), "vector"))


def _rows(lines: Iterable[str], name: str, model: Model) -> Iterator[dict[str, object]]:
    """The vectors of the lines. Raises InputError with file and line."""
    from mmaprobe.smtmodel.base.errors import InputError
    from mmaprobe.smtmodel.base.wording import counted
    from mmaprobe.smtmodel.inputs.vectors import to_hex

    counts = {"a": model.length, "b": model.length, **({"c": 1} if model.addend else {})}
    counts |= {side: model.scales for side in ("scale_a", "scale_b") if side in model.formats}
    if unknown := model.formats.keys() - counts.keys() - {"c"}:
        raise InputError(f"{model.reference} takes {', '.join(sorted(unknown))}, for which a line has no words", name)
    wanted, number = sum(counts.values()) + 1, 0
    for number, line in enumerate(lines, 1):
        words = _COMMENT.sub("", line).split()
        if not words:
            continue
        if len(words) not in (wanted, wanted + 1):
            mismatch = f"{counted(len(words), 'word')}, where {model.reference} has {wanted - 1} operands and a result"
            raise InputError(mismatch, name, number)
        row: dict[str, object] = {"id": f"line-{number}", "model": model.reference}
        rest = iter(words)
        for side, count in counts.items():
            own = [to_hex(_pattern(next(rest), model.formats[side].width, name, number), model.formats[side])
                   for _ in range(count)]  # fmt: skip
            row[side] = own[0] if side == "c" else own
        if not model.addend:
            row["c"] = to_hex(0, model.c)
        row["d"] = to_hex(_pattern(next(rest), model.d.width, name, number), model.d)
        if (flags := next(rest, None)) is not None:
            row["flags"] = flags
        yield row


def _pattern(word: str, width: int, name: str, number: int) -> int:
    """The pattern that a word writes. Raises InputError."""
    from mmaprobe.smtmodel.base.errors import InputError

    found = _WORD.fullmatch(word)
    if found is None or len(found[1]) > 64 or (value := int(found[1], 16)) >> width:
        raise InputError(f"{word[:80]!r} is no pattern of {width} bits in hexadecimal", name, number)
    return value
