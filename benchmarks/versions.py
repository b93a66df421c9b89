"""Two checkouts of mmaprobe on the same work, in turn, as a Markdown table of times, ratios and memory.

    python -m benchmarks.versions BEFORE AFTER [--runs 5] [-o benchmarks/versions.md]

BEFORE and AFTER are `mmaprobe` programs (`.venv/bin/mmaprobe` of each checkout). Every run has an empty store; the two
take turns, so that a machine that gets slower slows both. Seconds are wall time and include the program's start.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.pages import put_page
from benchmarks.simulate import processor

HOPPER, AMPERE = "hopper/mma/m16n8k16.f32.f16.f16.f32", "ampere/mma/m16n8k16.f32.f16.f16.f32"
VOLTA, CDNA3 = "volta/mma/m8n8k4.f32.f16.f16.f32", "cdna3/mfma/f32_32x32x16_fp8_fp8"
ROW = '{"a": ["3c00", "3c01"], "b": ["3c00", "3c02"], "c": "3f800000"}'


@dataclass(frozen=True)
class Work:
    """One command. `many`: it is long, and runs a third as often."""

    what: str
    arguments: tuple[str, ...]
    many: bool = False


WORKS = (
    Work("start: `--version`", ("--version",)),
    Work("start: `list models`", ("list", "models")),
    Work("`explain`, one input", ("explain", HOPPER, ROW)),
    Work("`simulate` 2048 x 2048 x 512, compiled", ("simulate", "a.npy", "b.npy", "--model", HOPPER, "-o", "d.npy",
                                                  "--engine", "compiled")),
    Work("`simulate` 256 x 256 x 1024, NumPy", ("simulate", "small_a.npy", "small_b.npy", "--model", HOPPER, "-o",
                                             "d.npy", "--engine", "numpy")),
    Work("`simulate` 128 x 128 x 1024, NumPy, CDNA3 FP8", ("simulate", "fp8_a.npy", "fp8_b.npy", "--model", CDNA3, "-o",
                                                        "d.npy", "--engine", "numpy")),
    Work("questions: carry bits", ("distinguish", "carry-bits-volta", "carry-bits-ampere")),
    Work("questions: the library of Valpey et al.", ("distinguish", "exact-products", "exact-sum-f16",
                                                     "final-rounding-f16", "accumulator-rounding",
                                                     "accumulation-order", "normalisation"), True),
    Work("`prove`: a carry bit fewer than needed (refuted)", ("prove", f"{AMPERE}@length=8,carry_bits=4",
                                                              f"{AMPERE}@length=8,carry_bits=5"), True),
    Work("`prove`: order independent", ("prove", HOPPER, "--property", "order-independent"), True),
    Work("`prove`: sign symmetric", ("prove", HOPPER, "--property", "sign-symmetric"), True),
    Work("`prove`: monotonic in the addend (refuted)", ("prove", VOLTA, "--property", "monotonic-addend"), True),
    Work("`separate nvidia-f64`", ("separate", "nvidia-f64"), True),
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One run: wall seconds, peak memory of the largest process in MiB, exit code."""

    seconds: float
    memory: float
    code: int


def run(program: Path, arguments: Sequence[str], folder: Path) -> Run:
    """Run a command with an empty store, in a folder of matrices."""
    with tempfile.TemporaryDirectory() as cache:
        # compiled kernels are kept, as they are for a user
        environment = {**os.environ, "XDG_CACHE_HOME": str(folder / f"cache-{abs(hash(program))}")}
        store = [] if arguments[0] in ("--version", "list", "explain", "simulate") else ["--store", f"{cache}/store"]
        began = time.perf_counter()
        process = subprocess.Popen(
            [program, *arguments, *store], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        return Run(time.perf_counter() - began, usage.ru_maxrss / 1024, process.returncode)


def matrices(folder: Path) -> None:
    """What `simulate` takes."""
    rng = np.random.default_rng(1)
    np.save(folder / "a.npy", rng.standard_normal((2048, 512)).astype(np.float16))
    np.save(folder / "b.npy", rng.standard_normal((512, 2048)).astype(np.float16))
    np.save(folder / "small_a.npy", rng.standard_normal((256, 1024)).astype(np.float16))
    np.save(folder / "small_b.npy", rng.standard_normal((1024, 256)).astype(np.float16))
    for name, shape in (("fp8_a", (128, 1024)), ("fp8_b", (1024, 128))):
        np.save(folder / f"{name}.npy", rng.integers(0, 0x70, shape, dtype=np.uint8))


def rows(before: Path, after: Path, runs: int, folder: Path) -> Iterator[str]:
    """The table's rows, each as soon as it is measured."""
    for work in WORKS:
        count = max(1, runs // 3) if work.many else runs
        found: list[tuple[Run, Run]] = []
        for number in range(count + 1):
            pair = run(before, work.arguments, folder), run(after, work.arguments, folder)
            if number or work.many:  # the first of a short one warms files and compiled kernels
                found.append(pair)
        codes = sorted({side.code for pair in found for side in pair})
        times = [statistics.median(pair[side].seconds for pair in found) for side in (0, 1)]
        ratio = statistics.median(two.seconds / one.seconds for one, two in found)
        memory = [max(pair[side].memory for pair in found) for side in (0, 1)]
        note = "" if codes == [0] else f" (exit codes {', '.join(map(str, codes))})"
        yield (
            f"| {work.what}{note} | {times[0]:.2f} | {times[1]:.2f} | {ratio:.2f} "
            f"| {memory[0]:.0f} | {memory[1]:.0f} | {memory[1] / memory[0]:.2f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    lines = [
        "# Before and after", "",
        "The same commands by two versions of mmaprobe, in turn, each with an empty store; medians of wall seconds and "
        "of the ratios of pairs. Memory is the peak of the largest process, in MiB.", "",
        f"{processor()}, {os.cpu_count()} cores. Made with `python -m benchmarks.versions`.", "",
        "| work | before, s | after, s | ratio | before, MiB | after, MiB | ratio |", "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        matrices(folder)
        for line in rows(given.before.resolve(), given.after.resolve(), given.runs, folder):
            print(line, file=sys.stderr, flush=True)
            lines.append(line)
    text = "\n".join(lines) + "\n"
    put_page(text, given.output)
    shutil.rmtree(name, ignore_errors=True)


if __name__ == "__main__":
    main()
