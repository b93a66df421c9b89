"""What the scripts that write tables share: rows of Markdown, rows of JSON that are kept, a page written or printed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mmaprobe.smtmodel.base.files import write_whole


def table_row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def table_head(*columns: object) -> list[str]:
    """The names of columns, and the line under them."""
    return [table_row(*columns), "|---" * len(columns) + "|"]


def read_rows(path: Path | None) -> list[dict[str, Any]]:
    """What earlier runs kept."""
    lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
    return [json.loads(line) for line in lines]


def write_rows(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """All or none of them: a run may be ended at any time."""
    write_whole(path, "".join(json.dumps(row) + "\n" for row in rows))


def keep_row(row: Mapping[str, Any], path: Path) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def keep_line(line: str, output: Path | None) -> None:
    """A line, printed and added to a file: another run goes on from it."""
    print(line, flush=True)
    if output is not None:
        with output.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def put_page(text: str, output: Path | None) -> None:
    """A page, in its file if there is one."""
    if output is None:
        print(text, end="" if text.endswith("\n") else "\n")
    else:
        output.write_text(text, encoding="utf-8")
