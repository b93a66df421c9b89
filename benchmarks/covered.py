"""How many of the datapath's mutants the covering vectors of a unit catch: benchmarks/covered.md.

`python -m benchmarks.covered [--only TEXT] [--timeout 60] [-o FILE]`

Every mutant that benchmarks/mutants.md tells apart is evaluated on the covering vectors of its models and on nothing
else: first on those that samples give, then, where these miss it, on those of the whole command.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.mutants import MODELS, Mutant, Mutated, read_mutants, shadowed
from mmaprobe.cli.line import StatusLine
from mmaprobe.queries.covering.cover import Cover, Covering
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.witness import replay
from mmaprobe.smtmodel.carriers.algebra import WidthError
from mmaprobe.smtmodel.tables.reference import parse_reference

CAMPAIGN = Path(__file__).with_name("mutants.md")


@dataclass(frozen=True)
class Caught:
    """What caught a mutant: the model, and whether samples were enough; neither where nothing did."""

    mutant: Mutant
    model: str = ""
    sampled: bool = False


def differing() -> Iterator[Mutant]:
    """The mutants that the campaign told apart."""
    rows = re.findall(r"^\| [\w.]+ \| ([\w-]+) \| .* \| different \| [\d.]+ \|", CAMPAIGN.read_text("utf-8"), re.M)
    known = set(rows)
    yield from (mutant for mutant in read_mutants() if mutant.id in known)


@cache
def cover_of(name: str, seconds: float) -> Cover:
    """The covering vectors of a model: for 0 seconds those that samples give."""
    covering = Covering(parse_reference(MODELS[name]))
    if seconds:
        return covering.run(Options(timeout=seconds))
    covering.sample(lambda text: None)
    return covering.finished()


def caught(mutant: Mutant, timeout: float) -> Caught:
    """By which vectors a mutant is caught."""
    with shadowed(mutant) as shadow:
        for seconds in dict.fromkeys((0.0, timeout)):
            for name in mutant.models:
                model = parse_reference(MODELS[name])
                try:
                    notices = replay(
                        Mutated(model, model, shadow=shadow.__name__), cover_of(name, seconds).rows
                    ).differs.any()
                except WidthError:
                    notices = True  # it cannot be evaluated
                if notices:
                    return Caught(mutant, name, not seconds)
    return Caught(mutant)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="mutants whose id contains this")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for the covering vectors of a model")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    line, found = StatusLine(), list[Caught]()
    for mutant in differing():
        if arguments.only in mutant.id:
            found.append(caught(mutant, arguments.timeout))
            one = found[-1]
            word = f"{one.model}, {'samples' if one.sampled else 'the whole'}" if one.model else "MISSED"
            line.say(f"{mutant.file} {mutant.id}: {word}")
    sampled = sum(one.sampled for one in found)
    rest = [one for one in found if one.model and not one.sampled]
    missed = [one.mutant.id for one in found if not one.model]
    counts = [len(cover_of(name, 0.0).rows) for name in {one.model for one in found} if name]
    lines = [
        "# Mutants of the datapath caught by covering vectors alone\n",
        f"{len(found)} mutants that differ: {len(found) - len(missed)} caught, {sampled} of them by covering vectors "
        f"that samples gave ({min(counts)} to {max(counts)} vectors for a model), the others by the whole command with "
        f"{arguments.timeout:g} s for a model. `python -m benchmarks.covered` runs it.\n",
        f"Missed: {', '.join(missed) or 'none'}.\n",
        "| caught with solvers alone | model |\n|---|---|",
        *(f"| {one.mutant.id}: {one.mutant.note} | `{MODELS[one.model]}` |" for one in rest),
    ]
    text = "\n".join(lines) + "\n"
    line.say(text)
    if arguments.output:
        arguments.output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
