"""Which instructions have results of real GPUs, and how many: recorded.json, counted from the rows under tests/data.

`python -m benchmarks.recorded_rows` writes the table; tests/test_recordings.py compares it with the rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files

TABLE = "recorded.json"


def _table() -> dict[str, dict[str, int]]:
    text = (files("smtmodel") / TABLE).read_text(encoding="utf-8")
    rows: dict[str, dict[str, int]] = json.loads(text)
    return rows


#: instruction -> GPU -> number of recorded results
RECORDED: Mapping[str, Mapping[str, int]] = _table()
