"""Order, sign symmetry and monotonicity of every arithmetic of the instruction table: proved, or refuted by a vector.

`python -m benchmarks.properties [--only TEXT] [--timeout 300] [--store FILE]` asks `mmaprobe prove` and writes
benchmarks/properties.jsonl, a line for each question, and from it docs/properties.md. A second run asks what is not
there yet, stayed unknown, or was asked of another arithmetic: each line has a digest of the one that it is about.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.pages import read_rows, write_rows
from benchmarks.sides import results_of
from mmaprobe.smtmodel.nodes.node import structure
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference

RECORDS, PAGE = Path("benchmarks/properties.jsonl"), Path("docs/properties.md")
COLUMNS = {
    "order-independent": "order of products",
    "sign-symmetric": "sign",
    "monotonic-addend": "monotonic in c",
    "monotonic-product": "monotonic in a product",
}
INTRODUCTION = """# Order, sign symmetry and monotonicity of every instruction

In short: the fused sums of NVIDIA's units do not depend on the order of the products; the chains and pairs of f64, f32
and CDNA2, and CDNA3's FP8, do. Negated inputs give the negated result on every unit but those of CDNA3 that round down.
A larger addend can give a smaller result on most of NVIDIA's units that truncate, and on none of AMD's; a larger
product can on about a quarter of all.

The four properties of an arithmetic, on all inputs (infinities and NaNs too; a NaN is neither larger nor smaller):

- **order of products**: the result has the same bits in whatever order the products of a step (or scale group) stand,
  or, where each step adds one product, in whatever order all of them stand;
- **sign**: negating every a and c negates the result (+0 and -0 count as one);
- **monotonic in c**, **in a product**: the result does not fall when c, or the value of one product, rises.

| cell | meaning |
|---|---|
| holds | proved, and every lemma was confirmed by a second engine |
| holds\\* | proved, but not every lemma was confirmed |
| unknown | neither proved nor refuted in the time given |
| refuted | an input [below](#inputs-that-refute) refutes it |

`python -m benchmarks.properties` writes this page, and benchmarks/properties.jsonl with the complete vectors, with
scales and places, and the engines. `mmaprobe prove` with `--property` asks about one ([prove](prove.md)).
"""
INPUTS = """
## Inputs that refute

An input in hexadecimal, `a*b + ... + c`, and its result, then the changed input and its result. At most three products
of an input are shown, none with a factor of zero; "..." stands for more.

"""


def alike() -> list[list[str]]:
    """The instructions of the table, those of one arithmetic together."""
    found: dict[Any, list[str]] = {}
    for reference in INSTRUCTIONS:
        model = parse_reference(reference)
        found.setdefault(model.unit, []).append(reference)
    return list(found.values())


def arithmetic(reference: str) -> str:
    """A digest of what an instruction computes: its formats and its expression."""
    model = parse_reference(reference)
    formats = [side.name for side in (model.a, model.b, model.c, model.d)]
    return hashlib.sha256(f"{formats} {structure(model.unit.result)}".encode()).hexdigest()[:12]


def current(records: Iterable[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """The records by instruction and property, without those of an arithmetic that the table no longer has."""
    known = {group[0]: arithmetic(group[0]) for group in alike()}
    return {
        (record["instruction"], record["property"]): record
        for record in records
        if record["arithmetic"] == known.get(record["instruction"])
    }


def ask(wanted: str, reference: str, timeout: float, store: str | None, confirm: bool) -> dict[str, Any]:
    """What `prove` says, without its lemmas."""
    command = [sys.executable, "-P", "-m", "mmaprobe.cli.main", "prove", reference]
    command += ["--property", wanted, "--timeout", str(timeout)]
    command += ["--json", *(["--store", store] if store else []), *([] if confirm else ["--no-confirm"])]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout.strip():
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    document = json.loads(done.stdout)
    proof = next((proof for proof in document["proofs"] if proof["vector"]), None)
    kept = {key: document[key] for key in ("property", "verdict", "seconds", "engines", "confirmed_by")}
    kept["arithmetic"] = arithmetic(reference)
    return {"instruction": reference, **kept, "sides": proof and proof["sides"], "vector": proof and proof["vector"]}


def terms_text(row: dict[str, Any]) -> str:
    """The products that are not zero, three at most, and c."""
    pairs = [f"{a}*{b}" for a, b in zip(row["a"], row["b"], strict=True) if int(a, 16) and int(b, 16)]
    return " + ".join([*pairs[:3], *(["..."] if len(pairs) > 3 else []), row["c"]])


def confirmed(record: dict[str, Any]) -> bool:
    """Whether a second engine has proved all lemmas too, if there are any."""
    return bool(record["confirmed_by"]) or not record["engines"]


def cell(record: dict[str, Any]) -> str:
    """One cell of the table."""
    if record["verdict"] == "unknown":
        return f"unknown: no answer in {record['seconds']:.0f} s"
    if record["verdict"] == "holds":
        return "holds" if confirmed(record) else "holds\\*"
    return "refuted"


def refuting(record: dict[str, Any]) -> str:
    """The input that refutes a property."""
    row = record["vector"]
    one, two = results_of(record["sides"], record["vector"]["results"])
    other = row.get("other_side")
    return f"`{terms_text(row)}` → `{one}`; " + (f"`{terms_text(other)}` → `{two}`" if other else f"`{two}`")


def page(records: Iterable[dict[str, Any]]) -> str:
    """docs/properties.md."""
    known = current(records)
    lines = ["| instruction | " + " | ".join(COLUMNS.values()) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    rows = [(group, [known.get((group[0], wanted)) for wanted in COLUMNS]) for group in alike()]
    inputs = list[str]()
    for group, found in rows:
        named = f"`{group[0]}`" + (f" and {len(group) - 1} more" if len(group) > 1 else "")
        cells = ["not asked" if record is None else cell(record) for record in found]
        lines.append(f"| {named} | " + " | ".join(cells) + " |")
        refuted = [record for record in found if record is not None and record["verdict"] == "refuted"]
        inputs += [f"- {named}"] * bool(refuted)
        inputs += [f"    - {COLUMNS[record['property']]}: {refuting(record)}" for record in refuted]
    counts = "".join(_count(name, [found[k] for _, found in rows]) for k, name in enumerate(COLUMNS.values()))
    return (
        f"{INTRODUCTION}\nOf {len(rows)} arithmetics:\n\n{counts}\n"
        + "\n".join(lines)
        + f"\n{INPUTS}"
        + "\n".join(inputs)
        + "\n"
    )


def _count(name: str, column: list[dict[str, Any] | None]) -> str:
    verdicts = [record["verdict"] for record in column if record is not None]
    left = len(column) - len(verdicts)
    return (
        f"- {name}: holds for {verdicts.count('holds')}, refuted for {verdicts.count('refuted')}, unknown for "
        f"{verdicts.count('unknown')}{f', not asked of {left}' if left else ''}\n"
    )


def wanting(record: dict[str, Any] | None, no_confirm: bool) -> bool:
    """Whether there is something to ask: the verdict, or its confirmation by a second engine."""
    if record is None or record["verdict"] == "unknown":
        return True
    return record["verdict"] == "holds" and not no_confirm and not confirmed(record)


def better(old: dict[str, Any] | None, new: dict[str, Any]) -> dict[str, Any]:
    """Which of two records to keep; SystemExit if they contradict each other."""
    if old is None or old["verdict"] == "unknown":
        return new
    if new["verdict"] not in (old["verdict"], "unknown"):
        raise SystemExit(f"{old['instruction']}: {old['property']} was {old['verdict']} and is {new['verdict']}")
    return new if confirmed(new) and new["verdict"] != "unknown" else old


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="instructions and properties whose names contain this")
    parser.add_argument("--timeout", type=float, default=300.0)
    parser.add_argument("--no-confirm", action="store_true", help="no second engine (`holds*` in the table)")
    parser.add_argument("--store", help="the store of answers (default: in the cache folder)")
    arguments = parser.parse_args()
    kept = current(read_rows(RECORDS))
    todo = [
        (group[0], wanted) for group in alike() for wanted in COLUMNS
        if wanting(kept.get((group[0], wanted)), arguments.no_confirm)
    ]  # fmt: skip
    random.Random(2026).shuffle(todo)  # any first part of them is a fair sample
    for number, (reference, wanted) in enumerate(todo, 1):
        if arguments.only not in f"{reference} {wanted}":
            continue
        new = ask(wanted, reference, arguments.timeout, arguments.store, not arguments.no_confirm)
        kept[reference, wanted] = better(kept.get((reference, wanted)), new)
        write_rows(kept.values(), RECORDS)
        verdict_text = f"{new['verdict']} in {new['seconds']} s"
        print(f"{number} of {len(todo)}: {wanted} {reference}: {verdict_text}", file=sys.stderr, flush=True)
    PAGE.write_text(page(kept.values()), encoding="utf-8")


if __name__ == "__main__":
    main()
