"""The reference of `import mmaprobe`, made of its docstrings: `python -m tests.reference` writes docs/reference.md."""

from __future__ import annotations

import inspect
from typing import Any

import mmaprobe
from tests.places import DOCS

PAGE = DOCS / "reference.md"
HEAD = """# `import mmaprobe`: reference

Every function with its shapes, units, errors and source, and what it returns. [python](python.md) has examples.
`python -m tests.reference` makes this page of the docstrings.

## Functions
"""


def page() -> str:
    """The text of the page."""
    public = {name: getattr(mmaprobe, name) for name in mmaprobe.__all__}
    lines = [HEAD]
    for name, one in public.items():
        if inspect.isfunction(one):
            lines += [f"### {name}\n", f"`{call(one)}`\n", *_paragraphs(one)]
    lines.append("## Results\n")
    for name, one in public.items():
        if inspect.isclass(one):
            lines += [f"### {name}\n", *_paragraphs(one), *_parts(one)]
    return "\n".join(lines).rstrip() + "\n"


def call(function: Any) -> str:
    """A function with its arguments and their defaults."""
    arguments, starred = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            arguments.append("*")
            starred = True
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        more = "**" * (parameter.kind is parameter.VAR_KEYWORD)
        arguments.append(f"{more}{parameter.name}{default}")
    return f"{function.__name__}({', '.join(arguments)})"


def _paragraphs(one: Any) -> list[str]:
    return [f"{part}\n" for part in (inspect.getdoc(one) or "").split("\n\n")]


def _parts(kind: type) -> list[str]:
    """The methods and properties of a class that say what they are."""
    found = []
    for name, part in vars(kind).items():
        if not name.startswith("_") and (isinstance(part, property) or inspect.isfunction(part)):
            text = " ".join((inspect.getdoc(part) or "").split())
            what = call(part).replace("(self, ", "(").replace("(self)", "()") if inspect.isfunction(part) else name
            found += [f"- `{what}`: {text}"] if text else []
    return [*found, ""] if found else []


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
