"""The site of the pages: each is built without a warning, and no link on it is dead."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from tests.places import DOCS, ROOT

pytestmark = pytest.mark.pages

_SPEC = spec_from_file_location("site_of_pages", DOCS / "site.py")
assert _SPEC is not None
assert _SPEC.loader is not None
SITE = module_from_spec(_SPEC)
_SPEC.loader.exec_module(SITE)


@pytest.mark.parametrize(
    ("place", "text", "becomes"),
    [
        ("prove.md", "[a](../queries/x.py), [b](units.md#c), [d](https://e.f)", "a, [b](units.md#c), [d](https://e.f)"),
        ("gpus/README.md", "[a](../units.md) [b](../../cli/x.py) ![c](../pictures/d.svg)",
         "[a](../units.md) b ![c](../pictures/d.svg)"),
        ("ci.md", "```python kernel.py\n[a](../b)\n```\n", '```python title="kernel.py"\n[a](../b)\n```\n'),
    ],
)  # fmt: skip
def test_what_becomes_of_a_page(place: str, text: str, becomes: str) -> None:
    assert SITE.page_text(text, place) == becomes


def test_every_page_has_its_place() -> None:
    """In the navigation, or in a folder whose first page lists it."""
    named = set(re.findall(r"^    - (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert named <= pages
    assert {page for page in pages - named if not page.startswith(("gpus/", "studies/"))} == set()


class Links(HTMLParser):
    """The places of a page to which links lead, and its links."""

    def __init__(self) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.places.add(given.get("id") or "")
        self.links += [found for name in ("href", "src") if (found := given.get(name))]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("mkdocs") is None or find_spec("material") is None, reason="needs the extra docs")
def test_it_is_built_without_a_warning_or_a_dead_link(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)], cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    found = {}
    for path in tmp_path.rglob("*.html"):
        found[path] = Links()
        found[path].feed(path.read_text(encoding="utf-8"))
    dead = []
    for path, page in found.items():
        for link in page.links if path.name != "404.html" else ():  # served at any depth: its links begin at the root
            place, _, fragment = link.partition("#")
            if re.match("[a-z]+:|//", link):
                continue
            target = (path.parent / place).resolve() if place else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (fragment and target in found and fragment not in found[target].places):
                dead.append((path.name, link))
    assert dead == []
