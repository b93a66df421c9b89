"""Where the project is, and what the tests have with them."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
DATA = ROOT / "tests" / "data"
