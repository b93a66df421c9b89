"""How long a statement about two plans takes for K = 64, for K = 4096, and for every K, in seconds of computing.

`python -m benchmarks.plan_lengths [-o FILE]` asks questions of benchmarks/plan_choices.py, all of those that people
argue about among them, each in a process of its own with an empty store, and writes benchmarks/plan_lengths.md.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.plan_choices import CHOICES, record
from mmaprobe.smtmodel.base.files import write_whole

PAGE = Path("benchmarks/plan_lengths.md")
LENGTHS = (64, 4096, None)
MOST = 3  # times K = 64
MORE = (
    "Hopper: instructions of 16 products or of 8?", "One split, units of 16 or of 8?",
    "bf16 on a processor: AMX or AVX512-BF16?", "tf32: instructions of 8 products or of 4?",
    "sgemm: one loop, or 8 lanes?",
)  # fmt: skip


def asked(number: int, length: int | None) -> tuple[str, float]:
    """The verdict, and the seconds of computing that it took, solvers among them."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.plan_lengths", "--one", str(number), str(length or 0)],
            env={**os.environ, "XDG_CACHE_HOME": folder}, stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout.strip(), after.ru_utime - before.ru_utime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, type=int, help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path, default=PAGE)
    given = parser.parse_args()
    if given.one:
        from dataclasses import replace

        print(record(replace(CHOICES[given.one[0]], length=given.one[1] or None), 300)["verdict"])
        return
    lines = []
    for number, choice in enumerate(CHOICES):
        if not (choice.argued or choice.question in MORE):
            continue
        found = [asked(number, length) for length in LENGTHS]
        base = found[0][1]
        cells = [f"{verdict}, {seconds:.1f} s ({seconds / base:.1f})" for verdict, seconds in found]
        worst = max(seconds for _, seconds in found[1:]) / base
        lines.append(f"| {choice.question} | {' | '.join(cells)} | {'yes' if worst <= MOST else 'no'} |\n")
        print(lines[-1], end="", flush=True)
        head = f"# Statements about plans by K\n\n{(__doc__ or '').strip()}\n\nIn brackets: times that of K = 64.\n\n"
        table = f"| question | K = 64 | K = 4096 | every K | at most {MOST} times |\n|---|---|---|---|---|\n"
        write_whole(given.output, head + table + "".join(lines))


if __name__ == "__main__":
    main()
