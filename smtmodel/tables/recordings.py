"""Tables of the results recorded on GPUs: for each instruction the number of results, and the parameters that they
decide. The rows are in tests/data.

`python -m benchmarks.recorded_rows` writes the tables; tests/tables/test_recordings.py compares them with the rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict


class Decided(TypedDict):
    """The parameters of an instruction that the results of one GPU decide: every near value disagrees with some result.
    For the other parameters, the near values that agree with all results."""

    decided: list[str]
    open: dict[str, list[str]]


def _text(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


#: instruction -> GPU -> number of recorded results
RECORDED: Mapping[str, Mapping[str, int]] = json.loads(_text("recorded.json"))
#: instruction -> GPU -> parameters that its results decide
DECIDED: Mapping[str, Mapping[str, Decided]] = json.loads(_text("decided.json"))
