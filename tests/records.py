"""The rows of tests/data/*.jsonl.gz by instruction, parsed when an instruction's are asked for."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from mmaprobe.smtmodel.tables.recordings import RECORDED
from mmaprobe.smtmodel.tables.reference import normalised_name
from tests.places import DATA

Row = dict[str, Any]
_WHOSE = [re.compile(rf'"{word}": ?"([^"]*)"') for word in ("arch", "unit", "instruction")]
_named = cache(normalised_name)


class Records(Mapping[str, list[Row]]):
    """The rows of a file by model reference, each passed through `read`."""

    def __init__(self, name: str, read: Callable[[Row], Row] = dict) -> None:
        self._lines: dict[str, list[str]] = {}
        for line in gzip.decompress((DATA / name).read_bytes()).decode().splitlines():
            arch, unit, instruction = (one.findall(line)[0] for one in _WHOSE)
            self._lines.setdefault(_named(arch, unit, instruction), []).append(line)
        self._read, self._rows = read, dict[str, list[Row]]()

    def __getitem__(self, reference: str) -> list[Row]:
        if reference not in self._rows:
            self._rows[reference] = [self._read(json.loads(line)) for line in self._lines[reference]]
        return self._rows[reference]

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


rows = cache(Records)


def recorded(reference: str) -> str:
    """What is said of an instruction's results: how many of each GPU there are."""
    return "recorded: " + ", ".join(f"{gpu} {count} rows" for gpu, count in RECORDED[reference].items())
