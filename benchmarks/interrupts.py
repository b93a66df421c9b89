"""Interrupts at random moments: whether commands end soon, as documented, and leave nothing over.

`python -m benchmarks.interrupts RUNS [--seed N] [-o benchmarks/interrupts.jsonl]` runs commands two at a time, sends
SIGINT or SIGTERM to each at a random moment, and appends a row for each run; without RUNS the table
benchmarks/interrupts.md is made of the rows. A run is bad if it ends later than 5 s after the interrupt or with another
exit code than one of its own or 3, or if a process, a temporary file or a half-written file is left.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from mmaprobe.smtmodel.base.folders import cache_folder

ROOT = Path(__file__).parent.parent
PATIENCE = 5.0  # seconds from an interrupt to the end
GIVEN_UP = 60.0  # seconds after which a command that does not end is killed
MARK = "MMAPROBE_RUN"  # the variable of the environment by which the processes of a run are known
VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
HOPPER = "hopper/mma/m16n8k16.f32.f16.f16.f32"

FUNCTION = """import numpy as np
def matmul(a, b, c):
    return (a.astype(np.float32) @ b.astype(np.float32) + c).astype(np.float32)
"""

#: name -> the command, in a folder with mine.py, a.npy and b.npy, and the longest time until its interrupt, in seconds
COMMANDS = {
    "distinguish": (["distinguish", VOLTA, f"{VOLTA}@block_order=3-2-1-0", "--solver", "bitwuzla", "-o", "out.jsonl"],
                    7.0),
    "prove": (["prove", VOLTA, f"{VOLTA}@carry_bits=4", "--fresh"], 7.0),
    "monotonic": (["prove", "--property", "monotonic-addend", "compensated.yaml"], 8.0),
    "certificate": (["prove", "--property", "error-bound", "arm/neon/bfdot", "--certificate", "proof"], 9.0),
    "verify": (["verify", "ootomo-not-worse-f16"], 8.0),
    "separate": (["separate", "nvidia-bf16", "-o", "out.jsonl"], 12.0),
    "identify": (["identify", "--device", f"model:{HOPPER}", "-o", "out.jsonl"], 8.0),
    "order of a program": (["order", "--device", f"command:{sys.executable} -m mmaprobe.cli.main device {HOPPER}",
                            "--formats", "f16,f16,f32,f32", "--length", "16", "-o", "out.jsonl"], 7.0),
    "order of a function": (["order", "--device", "python:mine.py:matmul", "--formats", "f16,f16,f32,f32", "--length",
                             "256", "-o", "out.jsonl"], 7.0),
    "simulate": (["simulate", "--model", HOPPER, "a.npy", "b.npy", "--engine", "numpy", "-o", "out.npy"], 8.0),
}  # fmt: skip


def prepare(folder: Path) -> None:
    import numpy as np

    (folder / "mine.py").write_text(FUNCTION, encoding="utf-8")
    np.save(folder / "a.npy", np.ones((256, 2048), np.float16))
    np.save(folder / "b.npy", np.ones((2048, 256), np.float16))
    (folder / "compensated.yaml").write_text(compensated(4), encoding="utf-8")


def compensated(length: int) -> str:
    """A unit in f16 that adds up the error of each sum, by two-sum, and adds it at the end."""
    steps, total, lost = [], "c", "+0"
    for k in range(length):
        steps += [f"x{k}: r(a[{k}] * b[{k}])", f"t{k}: r(exact({total}, x{k}))"]
        for name, left, right in (("p", f"t{k}", total), ("q", f"t{k}", f"p{k}"), ("u", total, f"q{k}"),
                                  ("v", f"x{k}", f"p{k}")):  # fmt: skip
            steps.append(f"{name}{k}: r(exact({left}, number(0xbc00, f16) * {right}))")
        steps += [f"l{k}: r(exact(u{k}, v{k}))", f"e{k}: r(exact({lost}, l{k}))"]
        total, lost = f"t{k}", f"e{k}"
    head = f"unit: compensated\nformats: {{a: f16, b: f16, c: f16, d: f16}}\nlength: {length}\n"
    body = "".join(f"  {step}\n" for step in (*steps, f"d: r(exact({total}, {lost}))"))
    return f"{head}roundings:\n  r: round(f16, nearest_even)\nsteps:\n{body}"


def processes(mark: str) -> list[int]:
    """The processes of a run that are left."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"{MARK}={mark}".encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def run(name: str, number: int, after: float) -> dict[str, Any]:
    """One run of a command, interrupted after so many seconds."""
    words, _ = COMMANDS[name]
    mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory(prefix="interrupts-") as place:
        folder, temporary = Path(place, "work"), Path(place, "tmp")
        folder.mkdir()
        temporary.mkdir()
        prepare(folder)
        compiled = cache_folder() / "compiled"
        if compiled.is_dir():  # whether a compiler leaves files is another question
            shutil.copytree(compiled, Path(place, "cache", "mmaprobe", "compiled"))
        before = {path.name for path in folder.iterdir()}
        environment = {**os.environ, MARK: mark, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT),
                       "XDG_CACHE_HOME": str(Path(place, "cache"))}  # fmt: skip
        command = [sys.executable, "-c", "from mmaprobe.cli.entry import main; main()", *words]
        with subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        ) as process:  # fmt: skip
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=after)
            sent = process.poll() is None
            begun = time.monotonic()
            if sent:
                process.send_signal(number)
            late = False
            try:
                _, errors = process.communicate(timeout=GIVEN_UP)
            except subprocess.TimeoutExpired:
                late = True
                process.kill()
                _, errors = process.communicate()
            seconds = time.monotonic() - begun
        deadline = time.monotonic() + 2
        while (left := processes(mark)) and time.monotonic() < deadline:
            time.sleep(0.05)
        for one in left:
            with suppress(OSError):
                os.kill(one, signal.SIGKILL)
        files = [str(path.relative_to(place)) for path in temporary.rglob("*")]
        files += [path.name for path in folder.iterdir() if path.name not in before and _half(path)]
        return {
            "command": name, "signal": signal.Signals(number).name, "after": round(after, 2), "sent": sent,
            "seconds": round(seconds, 2), "code": process.returncode, "killed": late, "processes": len(left),
            "files": files, "says": errors.decode(errors="replace").strip().splitlines()[-1:],
            "load": round(os.getloadavg()[0], 1),
        }  # fmt: skip


def _half(path: Path) -> bool:
    """Whether an output is half written."""
    if path.is_dir():
        return not (path / "manifest.json").exists()
    if path.suffix == ".jsonl":
        with suppress(ValueError):
            text = path.read_text(encoding="utf-8")
            [json.loads(line) for line in text.splitlines()]
            return bool(text) and not text.endswith("\n")
    return path.suffix != ".npy"


def bad(row: dict[str, Any]) -> bool:
    """Codes are the documented ones; by signal only an interpreter ends that has not begun with our own lines."""
    if not row["sent"]:
        return False
    early = row["code"] in (-signal.SIGINT, -signal.SIGTERM, 1) and row["after"] < 1.0
    code = row["code"] in (0, 1, 3) or early
    return row["killed"] or row["seconds"] > PATIENCE or not code or bool(row["processes"] or row["files"])


def table(rows: list[dict[str, Any]]) -> str:
    by: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["sent"]:
            by[row["command"]].append(row)
    lines = ["| command | interrupts | ended in time, nothing left | median s | longest s | exit codes |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    for name, own in [*by.items(), ("all", [row for one in by.values() for row in one])]:
        seconds = sorted(row["seconds"] for row in own)
        codes = sorted({row["code"] for row in own})
        counts = ", ".join(f"{code}: {sum(row['code'] == code for row in own)}" for code in codes)
        fine = sum(not bad(row) for row in own)
        lines.append(
            f"| {name} | {len(own)} | {fine} | {seconds[len(seconds) // 2]:.1f} | {seconds[-1]:.1f} | {counts} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=int, nargs="?", default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=COMMANDS)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/interrupts.jsonl"))
    given = parser.parse_args()
    rng = random.Random(given.seed)
    names = [given.only] if given.only else list(COMMANDS)
    work = []
    for place in range(given.runs):
        name = names[place % len(names)]
        work.append((name, rng.choice((signal.SIGINT, signal.SIGTERM)), rng.uniform(0.1, COMMANDS[name][1])))
    with ThreadPoolExecutor(2) as threads, given.output.open("a", encoding="utf-8") as stream:
        for row in threads.map(lambda one: run(*one), work):
            stream.write(json.dumps(row) + "\n")
            stream.flush()
            if bad(row):
                print(json.dumps(row), flush=True)
    if not given.runs:
        rows = [json.loads(line) for line in given.output.read_text(encoding="utf-8").splitlines()]
        print(table(rows), end="")


if __name__ == "__main__":
    main()
