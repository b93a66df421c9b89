"""Tables about the results recorded on GPUs: the number of results for each instruction, and the parameters that the
results decide. The results themselves are in tests/data.

`python -m benchmarks.recorded_rows` writes the tables; tests/tables/test_recordings.py compares the tables with the
results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict


class Decided(TypedDict):
    """What the results of one GPU decide about an instruction's parameters. `decided`: the parameters of which every
    near value disagrees with some result. `open`: for each other parameter, the near values that agree with all
    results."""

    decided: list[str]
    open: dict[str, list[str]]


def _text(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


#: instruction -> GPU -> number of recorded results
RECORDED: Mapping[str, Mapping[str, int]] = json.loads(_text("recorded.json"))
#: instruction -> GPU -> the parameters that the GPU's results decide
DECIDED: Mapping[str, Mapping[str, Decided]] = json.loads(_text("decided.json"))
