"""What campaigns of random statements share. Each statement has a number, from which it can be drawn again; it is
asked, the answer is held against its truth, and a page counts the answers."""

from __future__ import annotations

import argparse
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, TypeVar

import yaml

from benchmarks.pages import put_page, table_row
from mmaprobe.hypotheses.claim import Claim, build_claims
from mmaprobe.hypotheses.claim_file import Statement
from mmaprobe.queries.claims.decide import decide
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.base.yamlfile import read_yaml


def parser(about: str | None, count: int, timeout: float | None = None) -> argparse.ArgumentParser:
    """The options of every campaign: which numbers, and the seconds for each where it is asked something."""
    found = argparse.ArgumentParser(description=about)
    found.add_argument("--count", type=int, default=count)
    found.add_argument("--first", type=int, default=0)
    if timeout is not None:
        found.add_argument("--timeout", type=float, default=timeout)
    return found


def which(given: argparse.Namespace) -> range:
    return range(given.first, given.first + given.count)


# -- claims


def claim_of(data: Mapping[str, Any], name: str = "mine.yaml") -> Statement:
    """The claim of a claim file's data. Raises InputError."""
    (found,) = build_claims(read_yaml(yaml.safe_dump(dict(data), width=1000), name))
    return found


@dataclass(frozen=True)
class Drawn(ABC):
    """A claim about units: the data of its file without the parts, and the unit files that are the parts."""

    number: int
    data: dict[str, Any]
    units: dict[str, str]

    @abstractmethod
    def text(self) -> str:
        """On one line."""

    @abstractmethod
    def allows(self, verdict: str) -> bool:
        """Whether a verdict is right."""

    def claim(self, folder: Path) -> Claim:
        """The claim, with its unit files in a folder."""
        for name, text in self.units.items():
            (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        found = claim_of(self.data | {"parts": {name: f"{folder}/{name}.yaml" for name in self.units}})
        assert isinstance(found, Claim)
        return found


Claimed = TypeVar("Claimed", bound=Drawn)


@dataclass(frozen=True)
class Result(Generic[Claimed]):
    """What was said, in how many seconds, and whether that is wrong."""

    statement: Claimed
    verdict: str
    seconds: float

    @property
    def wrong(self) -> bool:
        return self.verdict != "unknown" and not self.statement.allows(self.verdict)


def asked(statement: Claimed, options: Options, refusals: Mapping[str, str] | None = None) -> Result[Claimed]:
    """What is said of a claim. `refusals`: what a refusal that contains a text counts as."""
    start = time.monotonic()
    with TemporaryDirectory() as folder:
        try:
            verdict: str = decide(statement.claim(Path(folder)), options).verdict
        except MmaprobeError as error:
            known = [kind for text, kind in (refusals or {}).items() if text in str(error)]
            verdict = known[0] if known else "unknown" if error.exit_code == 3 else f"{type(error).__name__}: {error}"
    return Result(statement, verdict, time.monotonic() - start)


def every(given: argparse.Namespace, ask: Callable[[int], Result[Claimed]]) -> list[Result[Claimed]]:
    """The results of all numbers, each told when it is known."""
    found = []
    for number in which(given):
        one = ask(number)
        found.append(one)
        print(number, "WRONG" if one.wrong else "right", one.verdict, f"{one.seconds:.1f}", one.statement.text(),
              sep=" | ", file=sys.stderr, flush=True)  # fmt: skip
    return found


def counts(name: str, *chosen: object, of: Sequence[Result[Any]]) -> str:
    """A row: how many results there are, what is counted of them, how many are wrong, and the seconds."""
    seconds = [one.seconds for one in of]
    return table_row(name, len(of), *chosen, sum(one.wrong for one in of), f"{sum(seconds):.0f}",
               f"{max(seconds, default=0):.1f}")  # fmt: skip


def end(about: str | None, how: str, table: Sequence[str], found: Sequence[Result[Any]], output: Path | None) -> None:
    """Write the page, and end with 1 if something is wrong."""
    lines_of_findings = [
        f"- {one.verdict}: {one.statement.text()}" for one in found if one.wrong or one.verdict == "unknown"
    ]
    head = (about or "").partition("\n`python")[0].strip()
    which = f"Claims {found[0].statement.number} to {found[-1].statement.number}.{how}"
    lines = [
        f"# {head}",
        "",
        which,
        "",
        *table,
        *(["", "Not decided:", "", *lines_of_findings] if lines_of_findings else []),
    ]
    put_page("\n".join(lines) + "\n", output)
    sys.exit(1 if any(one.wrong for one in found) else 0)
