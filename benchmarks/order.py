"""Does the order of the products matter? Every arithmetic of the instruction table, proved or with a vector.

`python benchmarks/order.py [--timeout 60] [-o benchmarks/order.md]`
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from queries.distinguish import Options
from queries.properties import reorderings
from queries.prove import Proof, prove
from smtmodel.instructions import INSTRUCTIONS
from smtmodel.reference import parse_reference


def decide(reference: str, timeout: float) -> tuple[str, float, list[Proof]]:
    """(verdict, seconds, proofs): independent if every generator of the orders is proved harmless."""
    start, proofs = time.monotonic(), []
    for problem in reorderings(parse_reference(reference)):
        proofs.append(prove(problem, Options("bitwuzla", timeout), confirm=False))
        if proofs[-1].verdict == "different":
            return "order matters", time.monotonic() - start, proofs
    unknown = any(proof.verdict == "unknown" for proof in proofs)
    return "unknown" if unknown else "independent", time.monotonic() - start, proofs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="references that contain this")
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    seen, lines = {}, ["| instruction | order of products | seconds |", "|---|---|---|"]
    for reference, row in INSTRUCTIONS.items():
        if arguments.only not in reference:
            continue
        seen.setdefault((row.a, row.b, row.c, row.accumulator), []).append(reference)
    for references in seen.values():
        verdict, seconds, _ = decide(references[0], arguments.timeout)
        more = f" and {len(references) - 1} more" if len(references) > 1 else ""
        lines.append(f"| {references[0]}{more} | {verdict} | {seconds:.1f} |")
        print(lines[-1], file=sys.stderr, flush=True)
    text = f"# {__doc__.splitlines()[0]}\n\n" + "\n".join(lines) + "\n"
    if arguments.output:
        arguments.output.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
