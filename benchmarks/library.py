"""Every question of the library, asked of each solver alone: a Markdown table of verdicts and solver times.

    python benchmarks/library.py [--solvers bitwuzla,z3,cvc5] [--timeout 60] [-o benchmarks/library.md] [ID...]

The seconds are the solvers' own, summed over the small questions and the whole one; a pair's time limit holds for all
of them together. No difference is looked for by simulation first, as the program does it, and no vector of one pair is
reused for another. Exit code 1 if two engines contradict each other.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from mmaprobe.hypotheses.library import library
from mmaprobe.hypotheses.schema import Question
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.search.answer import problems
from mmaprobe.queries.search.distinguish import Options, PairOutcome, SolverFaultError, distinguish
from mmaprobe.queries.solvers.contract import ENGINE_NAMES
from mmaprobe.queries.solvers.worker import version_of

#: seconds of z3 4.8.9 and cvc5 1.0.2 in Valpey et al. 2025, Table 4
PAPER = {
    "exact-products": ("0.55", "0.027"),
    "exact-sum-f16": ("27.59", "0.12"),
    "final-rounding-f16": ("0.52", "0.008"),
    "accumulator-rounding": ("0.34", "0.017"),
    "accumulation-order": ("9.87", "0.25"),
    "normalisation": ("9.63", "0.25"),
    "carry-bits-volta": ("410.25", "72.793"),
    "carry-bits-ampere": ("none in 6 h", "none in 6 h"),
}


@dataclass(frozen=True)
class Result:
    """What one engine said about one pair. `verdict` is None where it did not answer, and `text` says why."""

    engine: str
    verdict: str | None
    seconds: float
    text: str


@dataclass(frozen=True)
class PairResults:
    """One pair of hypotheses and every engine's result."""

    question: str
    pair: str
    results: list[Result]

    @property
    def verdicts(self) -> set[str]:
        return {result.verdict for result in self.results if result.verdict is not None}

    @property
    def agreement(self) -> str:
        answered = sum(1 for result in self.results if result.verdict is not None)
        if len(self.verdicts) > 1:
            return "CONTRADICTION"
        return f"{answered} of {len(self.results)}" if answered != 1 else f"1 of {len(self.results)}, unconfirmed"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Time every question of the library with each solver alone.")
    parser.add_argument("ids", nargs="*", metavar="ID", help="questions (default: all)")
    parser.add_argument("--solvers", default=",".join(ENGINE_NAMES), help="engines, separated by commas")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for each pair and engine")
    parser.add_argument("-o", "--output", type=Path, help="Markdown file, kept up to date (default: standard output)")
    given = parser.parse_args()
    given.solvers = given.solvers.split(",")
    for kind, names, known in (("solver", given.solvers, ENGINE_NAMES), ("question", given.ids, library())):
        for name in names:
            if name not in known:
                parser.error(f"unknown {kind} {name!r}; known: {', '.join(known)}")
    if given.timeout <= 0:
        parser.error("--timeout must be positive")
    return given


def asked(problem: Problem, engine: str, timeout: float) -> Result:
    """One pair put to one engine."""
    try:
        outcome = distinguish(problem, Options(engine, timeout, simulate=False))
    except SolverFaultError:
        return Result(engine, None, 0.0, "model does not replay")
    if outcome.verdict == "unknown":
        return Result(engine, None, outcome.seconds, _why(outcome, timeout))
    return Result(engine, outcome.verdict, outcome.seconds, f"{outcome.seconds:.2f}")


def _why(outcome: PairOutcome, timeout: float) -> str:
    reason = outcome.steps[-1].answer.reason
    return f"time out at {timeout:g} s" if "time" in reason else reason


def rows_of(question: Question, engines: list[str], timeout: float) -> Iterator[PairResults]:
    for left, right, problem in problems(question):
        results = []
        for engine in engines:
            results.append(asked(problem, engine, timeout))
            progress = f"{question.id}: {left} | {right}: {engine}: {results[-1].verdict or 'unknown'}"
            print(f"{progress} ({results[-1].text})", file=sys.stderr)
        yield PairResults(question.id, f"{left} / {right}", results)


def markdown(rows: list[PairResults], engines: list[str], timeout: float, complete: bool) -> str:
    """The whole document."""
    lines = [
        "# The library of hypothesis pairs, solver by solver",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"mmaprobe {version('mmaprobe')}, {', '.join(f'{engine} {version_of(engine)}' for engine in engines)}; "
        f"at most {timeout:g} s for each pair and engine, one engine at a time.",
        "",
        "Times are the solver's own seconds, summed over the questions asked for the pair. The last two columns are "
        "the seconds that Valpey et al. 2025 (Table 4) report for z3 4.8.9 and cvc5 1.0.2, on other hardware and with "
        "another encoding.",
        "" if complete else "\n**Incomplete: the run has not ended.**\n",
        *summary(rows, engines),
        "",
        *table(rows, engines),
        "",
    ]
    return "\n".join(lines)


def summary(rows: list[PairResults], engines: list[str]) -> list[str]:
    lines = []
    for engine in engines:
        results = [result for row in rows for result in row.results if result.engine == engine]
        answered = [result.seconds for result in results if result.verdict is not None]
        lines.append(f"- {engine}: {len(answered)} of {len(results)} pairs answered, in {sum(answered):.1f} s together")
    clashes = [row for row in rows if len(row.verdicts) > 1]
    shared = sum(1 for row in rows if sum(result.verdict is not None for result in row.results) > 1)
    if clashes:
        lines.append(f"- **{len(clashes)} contradictions** between engines")
    else:
        lines.append(f"- engines agree wherever more than one answered ({shared} of {len(rows)} pairs)")
    return lines


def table(rows: Iterable[PairResults], engines: list[str]) -> list[str]:
    """The paper's times are in the first row of a question."""
    heads = ["question", "pair", "verdict", *engines, "answered by", "paper z3", "paper cvc5"]
    lines = [" | ".join(heads), " | ".join("---" for _ in heads)]
    seen: set[str] = set()
    for row in rows:
        first = row.question not in seen
        seen.add(row.question)
        paper = PAPER.get(row.question, ("", "")) if first else ("", "")
        verdict = " or ".join(sorted(row.verdicts)) or "unknown"
        cells = [row.question if first else "", row.pair, verdict, *(result.text for result in row.results)]
        lines.append(" | ".join([*cells, row.agreement, *paper]))
    return [f"| {line} |" for line in lines]


def main() -> None:
    given = arguments()
    rows: list[PairResults] = []
    for name, question in library().items():
        if given.ids and name not in given.ids:
            continue
        for row in rows_of(question, given.solvers, given.timeout):
            rows.append(row)
            if given.output is not None:
                given.output.write_text(markdown(rows, given.solvers, given.timeout, False), encoding="utf-8")
    document = markdown(rows, given.solvers, given.timeout, True)
    if given.output is None:
        print(document, end="")
    else:
        given.output.write_text(document, encoding="utf-8")
    sys.exit(1 if any(len(row.verdicts) > 1 for row in rows) else 0)


if __name__ == "__main__":
    main()
