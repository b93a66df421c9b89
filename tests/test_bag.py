"""The bag of parameters stays behind the families' own files: who reads it can only become fewer."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("mmaprobe", "smtmodel", "queries", "hypotheses", "runner", "reports", "studies", "cli")
#: the families, the tables that call them, and the parsing of `@name=value` and of family files
OWNERS = {f"smtmodel/{name}.py" for name in ("accumulator", "families", "functions", "nvidia", "amd", "instruction",
                                             "reference")}  # fmt: skip
OWNERS |= {"hypotheses/family.py", "hypotheses/retarget.py"}
#: still to be written over nodes; nothing may be added
LEFT = {"smtmodel/dot.py"}
BAG = re.compile(r"\bAccumulator\b|\b(?!fragments\b|self\b|stage\b|body\b|tail\b|smtmodel\b)\w+\.accumulator\b")


def test_who_reads_the_bag() -> None:
    readers = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if BAG.search(text):
                readers.add(str(path.relative_to(ROOT)))
    assert readers - OWNERS - LEFT == set()
    assert LEFT - readers == set(), "take these from the list"
