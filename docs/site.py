"""The changes that make a site of the pages (mkdocs.yml): the file named beside a code block becomes the block's title,
and a link out of this folder becomes plain text, since the site holds pages alone."""

from __future__ import annotations

import re
from posixpath import dirname, join, normpath
from typing import Any

_FENCE = re.compile(r"(?m)^```(\w+) (\S+)$")
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The text of a page of the site, as mkdocs asks for it."""
    return page_text(markdown, page.file.src_uri)


def page_text(markdown: str, place: str) -> str:
    """The text of a page for the site. `place`: the page's path in this folder."""
    markdown = _FENCE.sub(r'```\1 title="\2"', markdown)

    def link(match: re.Match[str]) -> str:
        text, target = match[1], match[2]
        outside = "://" not in target and normpath(join(dirname(place), target)).startswith("..")
        return text if outside else match[0]

    parts = re.split(r"(?ms)^(```.*?^```)$", markdown)  # links within code blocks stay
    return "".join(part if number % 2 else _LINK.sub(link, part) for number, part in enumerate(parts))
