"""HTML of values in notebooks: tables with escaped text."""

from __future__ import annotations

from collections.abc import Sequence


def html_table(caption: str, rows: Sequence[Sequence[object]], head: Sequence[str] = ()) -> str:
    """A table below a line of text (`caption`). `head`: the names of the columns."""
    from html import escape  # loads all named characters of HTML

    lines = [f"<div>{escape(caption)}</div>", "<table>"]
    if head:
        lines.append(f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>")
    lines += [f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows]
    return "\n".join([*lines, "</table>"])
