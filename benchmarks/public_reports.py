"""Questions of public bug reports, asked as their authors would: what the commands answer, and answered before.

    python -m benchmarks.public_reports [--only TEXT] [--timeout 120] [-o benchmarks/public_reports.md]

Each is a run of the command line of its own in an empty folder. The files are our own statements of what the reports
say. "as wanted" where the exit code and a text in what is printed are those of the row; else the last line printed.
`before`: the answers of commit 7836c878, with the seconds that they took on two shared cores.
"""

from __future__ import annotations

import argparse
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mmaprobe import matmul

HEAD = """# Public bug reports, asked again

Written by `python -m benchmarks.public_reports`: the smallest inputs of public reports about products of matrices and
fused multiply-adds, and questions of the same kind. `before`: commit 7836c878, wall seconds at two shared cores.
`now`: as wanted, if the answer is the right one; functions may end by time, once their plan is found. `s`: seconds of
a processor.

| report | question | before | now | s |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Case:
    """One question: files by name, a command with its exit codes, and a pattern of what it has to print."""

    report: str
    question: str
    before: str
    command: str
    wanted: str
    codes: tuple[int, ...] = (0,)
    files: Mapping[str, str] = field(default_factory=dict)


def unit(name: str, formats: str, roundings: str, steps: str) -> Mapping[str, str]:
    a, b, c, d = formats.split(",")
    return {f"{name}.yaml": f"unit: {name}\nformats: {{a: {a}, b: {b}, c: {c}, d: {d}}}\nlength: 1\n"
            f"roundings: {{{roundings}}}\nsteps: {{{steps}}}\n"}  # fmt: skip


def twice(first: str, second: str, wide: str, narrow: str) -> Mapping[str, str]:
    """A sum rounded to a wide and then to a narrow format, and rounded once."""
    formats = ",".join([narrow] * 4)
    wider, own = f'w: "round({wide}, {first})", ', f'r: "round({narrow}, {second})"'
    return {**unit("twice", formats, wider + own, 'd: "r(w(exact(a[0] * b[0], c)))"'),
            **unit("once", formats, own, 'd: "r(exact(a[0] * b[0], c))"')}  # fmt: skip


def zero(fmt: str, mode: str, sign: str) -> Mapping[str, str]:
    """A product rounded, and through a sum with a zero."""
    how, formats = f'r: "round({fmt}, {mode})"', ",".join([fmt] * 4)
    return {**unit("product", formats, how, 'd: "r(a[0] * b[0])"'),
            **unit("through", formats, how, f'd: "r(exact(a[0] * b[0], {sign}0))"')}  # fmt: skip


def claim(model: str, terms: int, limits: str, bound: str) -> Mapping[str, str]:
    return {"claim.yaml": f"id: contract\nabout: An error that an author relies on\nsource: a report\nsays: holds\n"
            f"expect: holds\nterms: {terms}\ninputs: {{format: f16, a: {limits}, b: {limits}, c: zero}}\n"
            f"parts: {{d: {model}}}\nclaim: error(d) <= {bound} * magnitude_sum()\n"}  # fmt: skip


STORED = """plan: stored
formats: {a: f16, b: f16, c: f16, d: bf16}
units: {mma: ampere/mma/m16n8k16.f32.f16.f16.f32}
roundings: {h: "round(f16, nearest_even)", o: "round(bf16, nearest_even)"}
steps: {d: "o(h(sum(mma, +0)))"}
"""
CUTS = """import numpy as np
def matmul(a, b):
    a, b = ((np.asarray(x, np.float32).view(np.uint32) & np.uint32(0xffffe000)).view(np.float32) for x in (a, b))
    d = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        d = (d + a[:, k : k + 1].astype(np.float64) * b[k : k + 1].astype(np.float64)).astype(np.float32)
    return d
"""
EIGHTH = """import numpy as np
from mmaprobe import matmul as product
def matmul(a, b):
    return np.float32(0.125) * product(a, b, unit="ampere/mma/m16n8k16.f32.f16.f16.f32")
"""
HALVES = """import numpy as np
def fma(a, b, c):
    def half(x):
        x = np.asarray(x, np.float16).astype(np.float64)
        return np.where(np.abs(x) < 2.0**-14, x / 2, x)
    return (half(a) @ half(b) + np.asarray(c, np.float64)).astype(np.float32)
"""
PHASES = {
    "phases.yaml": """unit: phases
formats: {a: bf16, b: bf16, c: bf16, d: bf16}
length: 1
inputs: {subnormals: zero}
roundings: {r: "round(bf16, nearest_even, subnormals=flush_before)"}
steps:
  p: "r(exact(c, segment(a[0], 0, 5) * segment(b[0], 0, 7)))"
  d: "r(exact(p, segment(a[0], 5, 8) * segment(b[0], 0, 7)))"
"""
}
CHAIN = {
    "chain.yaml": """unit: chain
formats: {a: f16, b: f16, c: f32, d: f32}
length: 4
roundings: {r: "round(f32, nearest_even)"}
steps: {e: "r(exact(r(exact(a[0] * b[0], a[1] * b[1])), c))", d: "r(exact(r(exact(a[2] * b[2], a[3] * b[3])), e))"}
"""
}
PROVED = r"equal: proved.*rewriting"
FMA = "openlibm 160"
CASES = (
    Case(FMA, "is every rounding of a number rounded twice drawn?", "the first one is not",
         """explain plan:./stored.yaml@length=2 {"a":["3c01"],"b":["3c03"],"c":"0000"}""",
         r"(?s)f16, nearest even.*bf16, nearest even", files={"stored.yaml": STORED}),
    Case(FMA, "f32 through f64, both toward zero: as once?", "proved, 200 s", "prove ./twice.yaml ./once.yaml", PROVED,
         files=twice("toward_zero", "toward_zero", "f64", "f32")),
    Case(FMA, "f32 through f64, both up: as once?", "proved, 300 s", "prove ./twice.yaml ./once.yaml", PROVED,
         files=twice("up", "up", "f64", "f32")),
    Case("RVVM 246", "f32 through f64 to odd: as once?", "unknown, 300 s", "prove ./twice.yaml ./once.yaml", PROVED,
         files=twice("to_odd", "nearest_even", "f64", "f32")),
    Case("RVVM 246", "f16 through f32 to odd: as once?", "proved, 111 s", "prove ./twice.yaml ./once.yaml", PROVED,
         files=twice("to_odd", "nearest_away", "f32", "f16")),
    Case("cvfpu 72", "does -0 added change a product of f64?", "unknown, 60 s", "prove ./product.yaml ./through.yaml",
         PROVED, files=zero("f64", "nearest_even", "-")),
    Case("cvfpu 72", "does +0 added change one, down?", "unknown, 60 s", "prove ./product.yaml ./through.yaml",
         PROVED, files=zero("f64", "down", "+")),
    Case("cvfpu 72", "does +0 added change one, to nearest?", "no", "prove ./product.yaml ./through.yaml",
         r"equal: no", (1,), zero("f64", "nearest_even", "+")),
    Case("cvfpu 94", "does 65504 + 8 overflow in f16?", "flag o: wrong", "export ./over.jsonl --format fptest",
         r"(?m)x$",
         files={"over.jsonl": '{"a":["4800"],"b":["3c00"],"c":"7bff","d":"7bff","model":"ieee/fma/f16"}\n'}),
    Case("code-samples 53", "D1 = 0.125 * product on Ampere, D2 on Hopper: why do they differ?",
         "none of 4004 plans, 64 s", "compare --gemm a.npy b.npy e1.npy e2.npy --timeout 60",
         r"D1: .*2\*\*-3.*(?s:.*)D2: .*2\*\*-3"),
    Case("code-samples 53", "a function 0.125 * product", "no plan, 19 s",
         "identify --gemm --device python:./half.py:matmul --formats f16,f16,f32 --length 32 --shape 8,8 --timeout 99",
         r"2\*\*-3", (0, 3), {"half.py": EIGHTH}),
    Case("oneDNN 756", "a product, c added last, recorded", "best 43 of 144",
         "identify --gemm --device recorded:a.npy,b.npy,c.npy,dc.npy --formats f16,f16,f32,f32 --timeout 60",
         r"exact\(sum"),
    Case("mlx 4411", "a function that cuts its inputs", "no plan, 20 s",
         "identify --gemm --device python:./cuts.py:matmul --formats f32,f32,f32 --length 32 --shape 8,8 --timeout 99",
         r"tf32, toward_zero|toward zero", (0, 3), {"cuts.py": CUTS}),
    Case("tt-metal 12923", "parts of 5 and 3 bits by 7: which unit?", "no unit, 47 s",
         "identify --device model:./phases.yaml --formats bf16,bf16,bf16,bf16 --length 1 --timeout 120",
         r"segment\(", files=PHASES),
    Case("tt-metal 48996", "a loader halves subnormals: which unit?", "no unit, one vector printed twice",
         "identify --device python:./halves.py:fma --formats f16,f16,f32,f32 --length 1 --timeout 120",
         r"(?s)where .*subnormal", (3,), {"halves.py": HALVES}),
    Case("Sarek 329", "an error of at most 2^-20 of the sum on Hopper, 16 products", "unknown, 90 s",
         "verify ./claim.yaml --timeout 60", r"proved|holds",
         files=claim("hopper/mma/m16n8k16.f32.f16.f16.f32", 16, "[-4, 4]", "2**-20")),
    Case("Sarek 329", "an error of RDNA3 (not proved): is a result below the grid an overflow?", "yes",
         "verify ./claim.yaml --timeout 60",
         r"(?s)^(?!.*overflow)", (3,), claim("rdna3/wmma/f32_16x16x16_f16", 2, "[0, 2]", "2**-18")),
    Case("of this kind", "two chained steps of two products: which unit?", "1 other draft, not named",
         "identify --device model:./chain.yaml --formats f16,f16,f32,f32 --length 4 --timeout 120",
         r"exact\(r\(exact", files=CHAIN),
)  # fmt: skip


def write_arrays(folder: Path) -> None:
    """Products of normal numbers, as recordings."""
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((32, 256)).astype(np.float16), rng.standard_normal((256, 32)).astype(np.float16)
    c = rng.standard_normal((32, 32)).astype(np.float32)
    one, other = (np.asarray(matmul(a, b, unit=f"{gpu}/mma/m16n8k16.f32.f16.f16.f32")) for gpu in ("ampere", "hopper"))
    eighth = np.float32(0.125)
    sides = {"a": a, "b": b, "c": c, "e1": eighth * one, "e2": eighth * other, "dc": one + c}
    for name, values in sides.items():
        np.save(folder / f"{name}.npy", values)


def asked(case: Case, limit: float) -> tuple[str, float]:
    """What became of a question, and the processor's seconds."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        write_arrays(folder)
        for name, content in case.files.items():
            (folder / name).write_text(content, encoding="utf-8")
        words = case.command.split(" ")
        command = [shutil.which("mmaprobe", path=str(Path(sys.executable).parent)) or "mmaprobe", *words]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=limit, check=False)
        except subprocess.TimeoutExpired:
            return "the time ran out", limit
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode in case.codes and re.search(case.wanted, done.stdout + done.stderr):
        return "as wanted", spent
    last = (done.stdout + done.stderr).strip().splitlines()[-1:]
    return f"exit {done.returncode}: {' '.join(last)[:100]}", spent


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--timeout", type=float, default=200)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args(arguments)
    lines = []
    for case in CASES:
        if given.only in f"{case.report}: {case.question}":
            outcome, seconds = asked(case, given.timeout)
            lines.append(f"| {case.report} | {case.question} | {case.before} | {outcome} | {seconds:.1f} |")
            print(lines[-1], flush=True)
    if given.output is not None:
        given.output.write_text(HEAD + "".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
