"""The claims that `mmaprobe prove` must settle, each asked anew: what it answers, in how many seconds of processors (of
the command, with all that Python loads, and of engines that it waits for) and on the clock, for which there is a limit.

`python benchmarks/proofs.py [--only TEXT] [-o benchmarks/proofs.md]`
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
TURING = "turing/mma/m16n8k8.f32.f16.f16.f32"
AMPERE = "ampere/mma/m16n8k16.f32.f16.f16.f32"
AMPERE8 = "ampere/mma/m16n8k8.f32.f16.f16.f32"
HOPPER = "hopper/mma/m16n8k16.f32.f16.f16.f32"
FP8 = "hopper/wgmma/m64n8k32.f32.e4m3.e4m3"
CDNA3 = "cdna3/mfma/f32_32x32x8_f16"
CDNA1 = "cdna1/mfma/f32_32x32x4f16"
TERMS = ((5, VOLTA), (9, AMPERE8), (17, HOPPER), (33, FP8))
LONG = f"{HOPPER}@length=32,block=32"
# (terms, model, carry bits that are enough): products of e4m3 stay at or below 225/64, so that 33 terms need one bit
# less than 33 of f16
NORMALISED = ((5, VOLTA, 3), (9, AMPERE8, 4), (17, HOPPER, 5), (33, LONG, 6), (33, FP8, 6))
UNNORMALISED = ((5, VOLTA, 4), (9, AMPERE8, 5), (17, HOPPER, 6), (33, LONG, 7), (33, FP8, 6))
OUTCOME = {0: "proved", 1: "counterexample", 2: "error", 3: "unknown"}


@dataclass(frozen=True)
class Claim:
    """What is asked (arguments of `mmaprobe prove`), the outcome to expect, and the seconds that it may take."""

    name: str
    arguments: tuple[str, ...]
    expected: str
    limit: int


def carry_bits(model: str, left: int, right: int, product: str) -> tuple[str, ...]:
    joiner = "," if "@" in model else "@"
    models = [f"{model}{joiner}product={product},carry_bits={bits}" for bits in (left, right)]
    return (*models, "--inputs=finite")


def claims() -> list[Claim]:
    found = []
    for product, enough in (("normalised", NORMALISED), ("unnormalised", UNNORMALISED)):
        for terms, model, bits in enough:
            what = f"{terms} {product} {'fp8' if model == FP8 else 'f16'} terms"
            more = carry_bits(model, bits, bits + 1, product)
            fewer = carry_bits(model, bits - 1, bits, product)
            found.append(Claim(f"{what}: {bits} = {bits + 1} carry bits", more, "proved", 20))
            found.append(Claim(f"{what}: {bits - 1} = {bits}", fewer, "counterexample", 20))
    for name in ("order-independent", "sign-symmetric"):
        for terms, model in TERMS:
            found.append(Claim(f"{name}, L = {terms - 1}", (model, f"--property={name}"), "proved", 30))
    addend, product = "--property=monotonic-addend", "--property=monotonic-product"
    return [
        *found,
        Claim("sign-symmetric, CDNA3 f16", (CDNA3, "--property=sign-symmetric"), "counterexample", 30),
        Claim("T-FDPA monotonic in the addend", (VOLTA, addend), "counterexample", 10),
        Claim("the same, normal inputs", (VOLTA, addend, "--inputs=normal,finite"), "counterexample", 10),
        Claim("in one product, L = 4, F = 23", (VOLTA, product), "counterexample", 60),
        Claim("the same, normal inputs", (VOLTA, product, "--inputs=normal,finite"), "proved", 60),
        Claim("the same, L = 16, F = 23", (f"{HOPPER}@fraction_bits=23", product), "counterexample", 60),
        Claim("FMA chain monotonic in the addend", ("ieee/fma/f32@length=4", addend), "proved", 120),
        Claim("FMA chain monotonic in a product", ("ieee/fma/f32@length=4", product), "proved", 120),
        Claim("E-FDPA monotonic in the addend", (CDNA1, addend), "proved", 120),
        Claim("E-FDPA monotonic in a product", (CDNA1, product), "proved", 120),
        Claim("Turing k8 = Ampere k16 with eight zeros", (TURING, AMPERE), "proved", 30),
        Claim("Volta = Volta with a sticky sum", (VOLTA, f"{VOLTA}@align_rounding=sticky"), "counterexample", 5),
        Claim("8 fused = 4 + 4 chained", (AMPERE8, f"{AMPERE8}@block=4"), "counterexample", 10),
        Claim(
            "unnormalised = normalised products below 2",
            (VOLTA, f"{VOLTA}@product=normalised", "--inputs=normal,finite,products_below_two"),
            "proved", 60,
        ),
        Claim(
            "the same, 8 products",
            (AMPERE8, f"{AMPERE8}@product=normalised", "--inputs=normal,finite,products_below_two"),
            "proved", 60,
        ),
    ]  # fmt: skip


def ask(claim: Claim, slack: float) -> tuple[str, float, float, str]:
    """(outcome, seconds of processors and on the clock, who said so) by the command line, with an empty store."""
    start, before = time.monotonic(), used()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-P", "-m", "mmaprobe.cli.main", "prove", *claim.arguments]
        command += [f"--timeout={claim.limit * slack}"]
        done = subprocess.run([*command, f"--store={folder}/store.sqlite"], capture_output=True, text=True)
    tail = done.stderr.strip().splitlines() or [""]
    return OUTCOME.get(done.returncode, "crash"), used() - before, time.monotonic() - start, tail[-1]


def used() -> float:
    """Seconds of processors of all commands so far."""
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="claims whose name contains this")
    parser.add_argument("--slack", type=float, default=1.0, help="times the limit that a question may take")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    lines = ["| claim | expected | answer | processors, s | clock, s | limit |", "|---|---|---|---|---|---|"]
    missed = 0
    for claim in claims():
        if arguments.only not in claim.name:
            continue
        outcome, spent, seconds, verdict = ask(claim, arguments.slack)
        missed += outcome != claim.expected or seconds > claim.limit
        lines.append(f"| {claim.name} | {claim.expected} | {outcome} | {spent:.1f} | {seconds:.1f} | {claim.limit} |")
        print(lines[-1], verdict[:150], file=sys.stderr, flush=True)
    text = f"# {(__doc__ or '').partition(chr(10) * 2)[0]}\n\n" + "\n".join(lines) + f"\n\n{missed} missed.\n"
    if arguments.output:
        arguments.output.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
