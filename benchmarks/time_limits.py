"""How far commands overrun --timeout: 40 commands that would take longer, with `--timeout 5`.

`python -m benchmarks.time_limits [-o benchmarks/time_limits.md]`. The time of a command begins once the program is
loaded; how long that took is told as well.
"""

from __future__ import annotations

import argparse
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.interrupts import ROOT, prepare

SECONDS = 5.0
MOST = max(2.0, SECONDS / 10)  # seconds that a command may overrun
HOPPER = "hopper/mma/m16n8k16.f32.f16.f16.f32"
VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
FORMATS = "--formats f16,f16,f32,f32"

#: functions that hang, loop, block every other thread, answer slowly or always alike
FUNCTIONS = """
import ctypes, time
import numpy as np
def hang(a, b, c): time.sleep(600)
def loop(a, b, c):
    while True: pass
def deaf(a, b, c): ctypes.PyDLL(None).sleep(600)
def slow(a, b, c):
    time.sleep(0.5)
    return (a.astype(np.float32) @ b.astype(np.float32) + c).astype(np.float32)
def one(a, b, c): return np.ones(c.shape, np.float32)
"""
PROGRAM = """
import json, sys, time
kind = sys.argv[1]
if kind == "silent":
    time.sleep(600)
if kind == "deaf":
    sys.stdin.close()
    time.sleep(600)
if kind == "drips":
    while True:
        print("x", end="", flush=True)
        time.sleep(0.5)
for line in sys.stdin:
    row = json.loads(line)
    if kind == "slow":
        time.sleep(0.5)
    d = "3f800000" if kind == "one" else row["c"]
    print(json.dumps({"id": row["id"], "d": d}), flush=True)
"""
CLAIM = f"""
id: long
about: an algorithm on 256 products
source: a paper
says: nothing
expect: refuted
terms: 256
inputs: {{a: [-3, 3], b: [-2, 4], c: [-4, 4]}}
parts:
  p: markidis@unit={VOLTA},split=toward_zero
  q: ootomo-yokota@unit={VOLTA},split=toward_zero
claim: error(q) <= error(p)
"""


def unit(length: int, step: str, rounding: str = "round(f32, nearest_even)") -> str:
    """A unit file: one step for each of many products."""
    return (
        f"unit: long\nformats: {{a: bf16, b: bf16, c: f32, d: f32}}\nlength: {length}\nroundings:\n  r: {rounding}\n"
        f"steps:\n  d: {step}\n"
    )


def files(folder: Path) -> None:
    prepare(folder)
    (folder / "bad.py").write_text(FUNCTIONS, encoding="utf-8")
    (folder / "bad_program.py").write_text(PROGRAM, encoding="utf-8")
    chain = "repeat(k in range({}), c, r(exact(acc, a[k] * b[k])))"
    for length in (64, 256, 1024):
        (folder / f"chain{length}.yaml").write_text(unit(length, chain.format(length)), encoding="utf-8")
        (folder / f"back{length}.yaml").write_text(
            unit(length, f"repeat(k in range({length - 1}, -1, -1), c, r(exact(acc, a[k] * b[k])))"), encoding="utf-8"
        )
    (folder / "long.yaml").write_text(CLAIM, encoding="utf-8")
    (folder / "at_once.yaml").write_text(unit(256, "r(exact(c, a[0:256] * b[0:256]))"), encoding="utf-8")


def commands(silent: str) -> list[str]:
    """The commands; `silent` is the address of a scheduler that says nothing."""
    program = f"command:{sys.executable} bad_program.py"
    return [
        *(f"order --device python:bad.py:{name} {FORMATS} --length 16" for name in ("hang", "loop", "deaf", "slow")),
        *(f"order --device '{program} {kind}' {FORMATS} --length 256" for kind in ("silent", "deaf", "drips", "slow")),
        *(f"identify nvidia-f16 --device python:bad.py:{name}" for name in ("hang", "deaf", "slow", "one")),
        *(f"identify nvidia-f16 --device '{program} {kind}'" for kind in ("silent", "drips", "slow", "one")),
        *(f"identify {FORMATS} --length 32 --device python:bad.py:{name}" for name in ("hang", "slow")),
        f"identify {FORMATS} --length 32 --device '{program} drips'",
        f"identify --gemm --device python:bad.py:slow {FORMATS} --length 512",
        f"identify --gemm --device python:bad.py:hang {FORMATS} --length 512",
        "separate nvidia-bf16", "separate nvidia-f64", "separate nvidia-fp8", "separate nvidia-f16 --one",
        f"distinguish {VOLTA} {VOLTA}@block_order=3-2-1-0 --solver bitwuzla",
        "distinguish chain256.yaml back256.yaml",
        "distinguish chain64.yaml back64.yaml",
        "prove chain256.yaml back256.yaml", "prove chain1024.yaml back1024.yaml",
        "prove --property monotonic-addend compensated.yaml --fresh",
        "prove --property order-independent at_once.yaml --fresh",
        "prove --property error-bound chain1024.yaml --fresh",
        f"prove {VOLTA} {VOLTA}@carry_bits=4 --cluster {silent}",
        "prove plan:cublas/plain plan:cublas/split-k --length 4096 --fresh",
        f"cover {HOPPER}", "cover chain256.yaml", "cover hopper/mma/m16n8k4.f64.f64.f64.f64",
        "verify ootomo-not-worse-f16@terms=2,split=toward_zero --fresh",
        "verify long.yaml",
    ]  # fmt: skip


#: runs the command as `mmaprobe` does, and writes down when its time begins
START = """
import sys, time
from pathlib import Path
from mmaprobe.cli import command, entry
from mmaprobe.smtmodel.base.interrupts import allow

def noted(seconds, note=Path(sys.argv.pop(1))):
    note.write_text(repr(time.monotonic()))
    allow(seconds)

command.allow = noted
entry.main()
"""


def measure(words: list[str], folder: Path, environment: dict[str, str]) -> tuple[float, float, int, str]:
    """Seconds until the time of a command begins, seconds from then on, its exit code, and the end of what it said."""
    note = folder / "begun"
    note.unlink(missing_ok=True)
    launched = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", START, str(note), *words], cwd=folder, env=environment, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=120, check=False,
    )  # fmt: skip
    ended, begun = time.monotonic(), float(note.read_text(encoding="utf-8"))
    said = done.stderr.strip().splitlines() or [""]
    return begun - launched, ended - begun, done.returncode, said[-1].replace(sys.executable, "python")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/time_limits.md"))
    parser.add_argument("--only", help="commands that hold this text")
    given = parser.parse_args()
    lines = [
        "| command | beyond 5 s | after a start of | exit code | the end of what it says |",
        "|---|---|---|---|---|",
    ]
    late = count = 0
    with tempfile.TemporaryDirectory() as place, socket.create_server(("127.0.0.1", 0)) as server:
        folder = Path(place)
        files(folder)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(folder / "cache")}
        for text in commands(f"tcp://127.0.0.1:{server.getsockname()[1]}"):
            if given.only and given.only not in text:
                continue
            words = [*shlex.split(text), "--timeout", f"{SECONDS:g}"]
            begun, took, code, said = measure(words, folder, environment)
            over = took - SECONDS
            late, count = late + (over > MOST), count + 1
            shown = text.replace(sys.executable, "python").replace("|", "\\|")
            lines.append(f"| `{shown}` | {over:.1f} s | {begun:.1f} s | {code} | {said[:100]} |")
            print(f"{over:6.1f} {begun:4.1f} {code} {shown}: {said[:150]}", flush=True)
    load = ", ".join(f"{one:.0f}" for one in os.getloadavg())
    lines += ["", f"{count} commands, {late} of them more than {MOST:g} s late; load {load} on {os.cpu_count()} cores."]
    if not given.only:
        given.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
