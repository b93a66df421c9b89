"""Where the time of proofs and searches goes: loading, terms, printing, solvers, evaluation, and the rest.

`python -m benchmarks.where_time_goes [--only TEXT] [-o benchmarks/where_time_goes.md]` runs each command with an empty
store in a process of its own; with --only, the rows of other commands stay as they are in the file. Every hundredth of
a second a thread of that process looks what the others do: what the innermost function of the project belongs to. A
solver counts where every other thread waits for it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from datetime import date
from pathlib import Path
from types import FrameType

from benchmarks.pages import put_page
from mmaprobe.hypotheses.claim import claims
from mmaprobe.hypotheses.library import library
from mmaprobe.smtmodel import VERSION

ROOT = Path(__file__).parents[1]
TICK = 0.01  # seconds between two looks
SOLVERS = "solvers"
LOADING = "loading"
#: what a function is part of, by its file: the first that fits counts; the last is what fits everywhere
PARTS = {
    SOLVERS: ("queries/solvers/engines", "queries/solvers/contract", "queries/solvers/pool", "queries/solvers/sat_"),
    "printing": ("queries/solvers/smtlib",),
    "store": ("queries/solvers/store",),
    "terms": ("smtmodel/carriers/terms", "pysmt/"),
    "evaluation": (
        "smtmodel/carriers/",
        "smtmodel/evaluate/batch",
        "smtmodel/evaluate/compiled",
        "smtmodel/plans/gemm",
        "queries/candidates/outcomes",  # waits for the processes that evaluate
    ),
    "normal forms": (
        "queries/kernel/equality/rewriting",
        "queries/tactics/normalising",
        "smtmodel/nodes/rewriting",
        "smtmodel/nodes/normal",
    ),
    "the rest": ("",),
}
HOPPER, AMPERE = "hopper/mma/m16n8k16.f32.f16.f16.f32", "ampere/mma/m16n8k16.f32.f16.f16.f32"
FP8, CDNA3, CDNA3_FP8 = (
    "hopper/wgmma/m64n8k32.f32.e4m3.e4m3",
    "cdna3/mfma/f32_32x32x8_f16",
    "cdna3/mfma/f32_16x16x32_fp8_fp8",
)
PROPERTIES = ("order-independent", "sign-symmetric", "monotonic-addend", "monotonic-product", "error-bound")
COMMANDS: dict[str, tuple[str, ...]] = {
    "library of questions": ("distinguish", *library(), "-o", os.devnull),
    "separate nvidia-f16": ("separate", "nvidia-f16", "-o", os.devnull),
    "separate nvidia-fp8": ("separate", "nvidia-fp8", "-o", os.devnull),
    "separate nvidia-block-scaled, 100 s": ("separate", "nvidia-block-scaled", "--timeout", "100", "-o", os.devnull),
    "identify any, Hopper f16": ("identify", "any", "--device", f"model:{HOPPER}"),
    "identify nvidia-fp8, Hopper FP8": ("identify", "nvidia-fp8", "--device", f"model:{FP8}"),
    "65 terms, 6 = 7 carry bits": ("prove", *(f"{AMPERE}@length=64,block=64,carry_bits={n}" for n in (6, 7))),
    **{
        f"{name}, {model}": ("prove", "--property", name, model)
        for model in (HOPPER, CDNA3, CDNA3_FP8)
        for name in PROPERTIES
    },
    "claims": ("verify", *claims()),
}  # fmt: skip


def part_of(frame: FrameType | None) -> str:
    """What a thread is busy with: by the innermost function of the project or of pysmt, but loading of a module comes
    first. A thread that has none waits, and so do all while a solver works."""
    inner = None
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith("<frozen importlib"):
            return LOADING
        if inner is None and ("pysmt/" in file or (file.startswith(str(ROOT)) and "site-packages" not in file)):
            inner = file
        frame = frame.f_back
    if inner is None or inner == __file__:
        return SOLVERS
    return next(name for name, files in PARTS.items() if any(file in inner for file in files))


class Sampler(threading.Thread):
    """Looks what every other thread is busy with. `counts`: how often it was what."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.counts: Counter[str] = Counter()
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(TICK):
            frames = sys._current_frames()
            parts = (part_of(frame) for thread, frame in frames.items() if thread != self.ident)
            self.counts[min((part for part in parts if part != SOLVERS), default=SOLVERS)] += 1


def sampled(arguments: list[str]) -> dict[str, int]:
    """The counts of one command, run in this process."""
    sampler = Sampler()
    sampler.start()
    from mmaprobe.cli.entry import main as command

    sys.argv[:] = ["mmaprobe", *arguments]
    with suppress(SystemExit):
        command()
    sampler.ended.set()
    sampler.join()
    return dict(sampler.counts)


def measured(arguments: list[str]) -> tuple[float, dict[str, float]]:
    """The seconds of a command in a process of its own, with an empty store, and the share of each part."""
    with tempfile.TemporaryDirectory() as folder:
        began, report = time.monotonic(), Path(folder) / "counts.json"
        subprocess.run(
            [sys.executable, "-m", "benchmarks.where_time_goes", "--sample", str(report), "--",
             *arguments, "--store", str(Path(folder) / "store.sqlite")],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
        )  # fmt: skip
        seconds = time.monotonic() - began
        counts = json.loads(report.read_text(encoding="utf-8"))
    total = sum(counts.values()) or 1
    return seconds, {part: count / total for part, count in counts.items()}


def table(rows: list[tuple[str, float, dict[str, float]]], before: str = "") -> str:
    """The page; `before`: the earlier one, whose rows of other commands are kept."""
    parts = [LOADING, *PARTS]
    machine = f"{date.today()}, {os.cpu_count()} cores, Python {platform.python_version()}, mmaprobe {VERSION}"
    lines = [
        "# Where the time of proofs and searches goes",
        "",
        f"{machine}. Each command starts with an empty store.",
        "",
        f"| command | seconds | {' | '.join(parts)} |",
        "|---" * (2 + len(parts)) + "|",
    ]
    found = {name: line for line in before.splitlines() for name in COMMANDS if line.startswith(f"| {name} |")}
    for name, seconds, shares in rows:
        cells = (f"{100 * shares.get(part, 0.0):.0f} %" for part in parts)
        found[name] = f"| {name} | {seconds:.1f} | {' | '.join(cells)} |"
    return "\n".join([*lines, *(found[name] for name in COMMANDS if name in found), ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="the commands with this in their name")
    parser.add_argument("-o", "--output", type=Path, help="Markdown file (default: standard output)")
    parser.add_argument("--sample", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("command", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.sample:
        given.sample.write_text(json.dumps(sampled(given.command)), encoding="utf-8")
        return
    rows = []
    for name, command in COMMANDS.items():
        if given.only in name:
            rows.append((name, *measured(list(command))))
            print(f"{name}: {rows[-1][1]:.1f} s", file=sys.stderr)
    kept = given.output and given.output.exists()
    text = table(rows, given.output.read_text(encoding="utf-8") if kept else "")
    put_page(text, given.output)


if __name__ == "__main__":
    main()
