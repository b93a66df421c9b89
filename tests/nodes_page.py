"""The page of the nodes of unit files, made of their table: `python -m tests.nodes_page` writes docs/nodes.md."""

from __future__ import annotations

from mmaprobe.smtmodel.units.written import NODES
from tests.places import DOCS

PAGE = DOCS / "nodes.md"
HEAD = """# Nodes of unit files

What a step of a [unit file](units.md) is made of, each node with all that it takes and a unit that has it.
`mmaprobe list nodes` prints the list, `mmaprobe list nodes fused` one of them. An option in capitals is given by its
place, another one by its name. `python -m tests.nodes_page` makes this page of the table by which files are read.

| node | meaning |
|---|---|
"""


def page() -> str:
    """The text of the page."""
    lines = [HEAD.rstrip()]
    lines += [f"| [`{row.written}`](#{row.name}) | {row.meaning} |" for row in NODES.values()]
    for row in NODES.values():
        lines += ["", f"## {row.name}", "", f"`{row.written}`: {row.meaning}.", ""]
        if row.options:
            lines += ["| option | meaning | values | if not given |", "|---|---|---|---|"]
            for one in row.options:
                default = "an error" if one.default == "needed" else one.default
                lines.append(f"| `{one.name}` | {one.meaning} | {one.values} | {default} |")
            lines.append("")
        lines += ["```yaml", row.file.rstrip(), "```"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
