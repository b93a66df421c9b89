"""Every rule of the kernel on small formats: `python -m benchmarks.rules [--part NAME] [-o FILE]`.

Arguments of each rule are made at random, right and wrong ones; what a rule makes of them is held against its meaning
on all inputs of units of formats of at most six bits (a window of them, where they are too many).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time

from benchmarks.rules.campaign import Campaign, Refusal, Tally, refusals
from benchmarks.rules.everything import PARTS, UNREACHED, Part, run
from benchmarks.rules.units import MOST, SOME
from mmaprobe.queries.kernel import closed

PAGE = """# Each rule on small formats

Made by `python -m benchmarks.rules -o benchmarks/rules.md`: arguments of every rule are made at random, right ones and
wrong ones, over units of formats of at most six bits. What a rule makes of them is held against what the docstring of
its goal says, computed in exact numbers by code that shares nothing with the rules (benchmarks/rules/), on all inputs,
or on {some} of them where there are more than {most}.

Each call that makes a theorem is followed by two in which one thing is exchanged for that of another call, or changed
(benchmarks/rules/crossing.py). A part ends when each of its rules was called 1,000 times and made 100 theorems.

Theorems: of how many arguments the rule made one; refused: of how many it made none. Conditions: how many of the
statements by which a rule, or what it calls, refuses did so in its calls, of how many there are. A rule of rewriting
refuses where it says nothing of a node; a lemma, where not all its values make it true.

| Rule | Theorems | Refused | Conditions | False |
| --- | ---: | ---: | ---: | ---: |
{rows}

## Conditions that nothing failed

{never}

## Conditions that no call fails

{unreached}
"""


def conditions_of(name: str) -> tuple[Refusal, ...]:
    return refusals(name) if name in closed.RULES or name in closed.REWRITES else ()


def row(name: str, own: Tally) -> str:
    every = conditions_of(name)
    failed = sum(any(one.holds(site) for site in own.refused) for one in every)
    conditions = f"{failed} of {len(every)}" if every else ""
    unchecked = f" ({own.unchecked} of them not checked)" if own.unchecked else ""
    return f"| `{name}` | {own.theorems:,}{unchecked} | {own.refused.total():,} | {conditions} | {len(own.false)} |"


def page(campaign: Campaign, parts: Sequence[Part]) -> str:
    names = [name for part in parts for name in part.rules]
    return PAGE.format(
        some=f"{SOME:,}", most=f"{1 << MOST:,}",
        rows="\n".join(row(name, campaign.tally(name)) for name in names),
        never="\n".join(_never(campaign, [name for part in PARTS for name in part.rules])) or "None.",
        unreached="\n".join(f"- `{text}`: {reason}." for text, reason in UNREACHED.items()),
    )  # fmt: skip


def _never(campaign: Campaign, names: Sequence[str]) -> Iterator[str]:
    """The statements that refused in no call of any rule, each once."""
    sites = {site for own in campaign.tallies.values() for site in own.refused}
    listed = set[Refusal]()
    for name in names:
        own = [one for one in conditions_of(name) if one not in listed and not any(map(one.holds, sites))]
        listed.update(own)
        own = [one for one in own if one.text not in UNREACHED]
        if own:
            yield f"- `{name}`: {'; '.join(f'`{one.text}`' for one in own)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds a part of share 1 takes at most")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--enough", type=int, default=1000, help="instances of each rule, after which a part ends")
    parser.add_argument("--part", nargs="+", help="these parts alone")
    parser.add_argument("-o", "--output", type=Path, help="where the table is written, after each part")
    options = parser.parse_args()
    parts = tuple(part for part in PARTS if options.part is None or part.name in options.part)

    def seeds(part: Part) -> range:
        return range(options.first, options.first + max(1, int(part.share * options.seeds)))

    def done(campaign: Campaign, part: Part) -> None:
        print(f"{process_time():6.0f} s  {part.name}", file=sys.stderr, flush=True)
        if options.output is not None:
            options.output.write_text(page(campaign, parts), encoding="utf-8")

    campaign = run(parts, seeds, options.enough, done)
    if options.output is None:
        print(page(campaign, parts))
    for name, own in campaign.tallies.items():
        for broken, count in own.broken.items():
            print(f"{name}: {count} times {broken}", file=sys.stderr)
    for false in campaign.false():
        print(false, file=sys.stderr)
    sys.exit(bool(campaign.false()))


if __name__ == "__main__":
    main()
