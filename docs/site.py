"""What the pages need to become a site (mkdocs.yml): files beside code blocks as their titles, and links that lead out
of this folder as the paths that they show, since the site holds pages alone."""

from __future__ import annotations

import re
from posixpath import dirname, join, normpath
from typing import Any

#: the pages in order of need: those for users, what is known, those for who changes mmaprobe
_FENCE = re.compile(r"(?m)^```(\w+) (\S+)$")
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The text of a page of the site."""
    return page_text(markdown, page.file.src_uri)


def page_text(markdown: str, place: str) -> str:
    """The text of the page at a place in this folder."""
    markdown = _FENCE.sub(r'```\1 title="\2"', markdown)

    def link(found: re.Match[str]) -> str:
        text, target = found[1], found[2]
        outside = "://" not in target and normpath(join(dirname(place), target)).startswith("..")
        return text if outside else found[0]

    parts = re.split(r"(?ms)^(```.*?^```)$", markdown)  # links of code are none
    return "".join(part if number % 2 else _LINK.sub(link, part) for number, part in enumerate(parts))
