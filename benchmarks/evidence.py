"""Everything that is to be learnt from a GPU: `make evidence`, or `python -m benchmarks.evidence --help`.

For every instruction of the GPU: the same answers in every position, special values, a million random-bit vectors, a
million that make a unit align, cut, carry and tie, and the vectors of `mmaprobe cover` against the model, the whole
library of questions with those that are open (benchmarks/findings), and `identify`. Each step leaves its answers with
their provenance and a JSON document in the folder of the instruction; summary.md and summary.json tell what was found.
A run that ends early, by Ctrl-C or by a fault of the GPU, goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.evidence_steps import PREPARED, STEPS, Job
from mmaprobe.runner.devices import DeviceUnavailableError
from mmaprobe.runner.gpu.hip_kernels import TARGETS, hip_kernels
from mmaprobe.runner.gpu.kernels import CAPABILITIES, architecture, kernels_of
from mmaprobe.smtmodel.base.errors import IncompleteError, MmaprobeError

TEMPLATE = "{kind}:{unit}/{instruction}{position}"
#: the GPUs of AMD; CDNA4's instructions have no model to compare with
AMD = [arch for arch in TARGETS if arch != "cdna4"]


def arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.evidence", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("out/evidence"), help="folder (default: out/evidence)"
    )
    parser.add_argument(
        "--device", metavar="TEMPLATE",
        help="device of each instruction, with {arch}, {unit}, {instruction}, {reference} and {position}; "
        "default: this machine's GPU; another's: 'command:ssh gpu-host mmaprobe device cuda:{unit}/{instruction}'",
    )  # fmt: skip
    parser.add_argument("--arch", choices=[*CAPABILITIES, *AMD], help="architecture (default: this machine's GPU's)")
    parser.add_argument("--only", default="", metavar="REGEX", help="instructions whose reference matches")
    parser.add_argument("--steps", default=",".join(STEPS), help=f"default: {','.join(STEPS)}")
    parser.add_argument(
        "--count", type=int, default=1_000_000, help="vectors of random bits, and shaped ones, of each instruction"
    )
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for an answer (default: 60)")
    parser.add_argument("--patience", type=float, default=20.0, help="seconds for a solver's question (default: 20)")
    parser.add_argument("--prepare", action="store_true", help="only find vectors: needs no device")
    chosen = parser.parse_args(given)
    chosen.steps = chosen.steps.split(",") if chosen.steps else []
    for step in chosen.steps:
        if step not in STEPS:
            parser.error(f"unknown step {step!r}; known: {', '.join(STEPS)}")
    return chosen


def architecture_here() -> str:
    """The architecture of this machine's GPU, NVIDIA's or AMD's. Raises DeviceUnavailableError, saying what is
    missing."""
    from mmaprobe.runner.gpu import cuda, hip

    try:
        launcher = cuda.launcher_here()
    except DeviceUnavailableError as error:
        try:
            amd = hip.HipLauncher()
        except DeviceUnavailableError as other:
            raise DeviceUnavailableError(f"{error}; {other}") from None
        gpu, arch = amd.gpu, next((arch for arch in AMD if amd.target in TARGETS[arch]), None)
    else:
        gpu, arch = launcher.gpu, architecture(launcher.capability)
    if arch is None:
        raise DeviceUnavailableError(f"{gpu}: no instruction in the table is of its architecture")
    return arch


def jobs(chosen: argparse.Namespace, arch: str) -> list[Job]:
    """The instructions to ask, in the order of the table."""
    if arch in AMD:
        own = [kernel for kernel in hip_kernels().values() if kernel.arch == arch and not kernel.alike]
        asked = {kernel.reference: kernel.shape for kernel in own}
    else:
        asked = {kernel.row.reference: kernel.shape for kernel in kernels_of(arch)}
    template = chosen.device or TEMPLATE.replace("{kind}", "hip" if arch in AMD else "cuda")
    folder, store = chosen.output, chosen.output / "solvers.sqlite"
    much = chosen.count, chosen.timeout, chosen.patience
    return [
        Job(reference, shape, folder / reference.replace("/", "-"), template, *much, store)
        for reference, shape in asked.items()
        if re.search(chosen.only, reference)
    ]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def work(chosen: argparse.Namespace, todo: Sequence[Job]) -> None:
    """Every step of every instruction that is not done yet. Raises IncompleteError when the device fails."""
    for job in todo:
        job.folder.mkdir(parents=True, exist_ok=True)
    for step in chosen.steps:
        for job in todo:
            if chosen.prepare:
                if step in PREPARED:
                    PREPARED[step](job, say)
                continue
            target = job.folder / f"{step}.json"
            if target.exists():
                continue
            if step in PREPARED:
                PREPARED[step](job, say)
            start = time.monotonic()
            result = STEPS[step](job)
            write(target, result | {"took": round(time.monotonic() - start, 1)})
            say(f"{job.reference}: {step} took {time.monotonic() - start:.1f} s")
            summarise(chosen.output, todo)
    if not chosen.prepare:  # also where all was done before, one instruction at a time
        summarise(chosen.output, todo)


def write(path: Path, document: Any) -> None:
    """A document, whole or not at all."""
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps(document, indent=1) + "\n")
    partial.replace(path)


def summarise(folder: Path, todo: Sequence[Job]) -> None:
    """summary.json with every document, summary.md with a table."""
    found = {}
    for job in todo:
        paths = {step: job.folder / f"{step}.json" for step in STEPS}
        found[job.reference] = {step: json.loads(path.read_text()) for step, path in paths.items() if path.exists()}
    write(folder / "summary.json", found)
    (folder / "summary.md").write_text("\n".join(_lines(found)) + "\n")


def _lines(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield "| instruction | position | special values | random bits | shaped | conditions | questions | identified |"
    yield "|---|---|---|---|---|---|---|---|"
    for reference, steps in found.items():
        yield f"| {reference} | " + " | ".join(_cell(step, steps.get(step)) for step in STEPS) + " |"
    for reference, steps in found.items():
        for name, standing in steps.get("questions", {}).get("standing", {}).items():
            yield f"- {reference}: {name}: {', '.join(standing) or 'no hypothesis is consistent'}"


def _cell(step: str, result: dict[str, Any] | None) -> str:
    if result is None:
        return "not done"
    if "skipped" in result:
        return str(result["skipped"])
    if step == "position":
        return "independent" if result["independent"] else "DEPENDS on it"
    if step == "specials":
        return f"{len(result['mismatches'])} of {len(result['results'])} not as the model"
    if step in ("random", "shaped"):
        return f"{result['mismatches']} of {result['vectors']} not as the model"
    if step == "cover":
        return f"{len(result['mismatches'])} of {result['vectors']} not as the model"
    if step == "questions":
        return f"{result['answers']} answers, {len(result['standing'])} questions"
    return f"{result['verdict']}, {result['questions']} questions"


def main(given: Sequence[str] | None = None) -> int:
    """0: everything is done; 2: bad input, or no GPU; 3: ended early, run it again to go on."""
    chosen = arguments(sys.argv[1:] if given is None else given)
    try:
        arch = chosen.arch or architecture_here()
        todo = jobs(chosen, arch)
        if not todo:
            say(f"error: no instruction of {arch} matches {chosen.only!r}")
            return 2
        chosen.output.mkdir(parents=True, exist_ok=True)
        work(chosen, todo)
    except KeyboardInterrupt:
        say("interrupted; the same command goes on")
        return 3
    except IncompleteError as error:
        say(f"error: {error}; the same command goes on")
        return 3
    except MmaprobeError as error:
        say(f"error: {error}")
        return error.exit_code
    say(f"done: {chosen.output / 'summary.md'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
