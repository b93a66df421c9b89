"""How many single changes to the netlist of a printed model its covering vectors catch: benchmarks/netlists.md.

`python -m benchmarks.netlists [MODEL...] [--only TEXT] [--operators] [--count 400] [--timeout 60] [--samples]
[--rows 13000] [-o FILE]`

Yosys reads the module that `export --format verilog` prints. In a changed netlist one cell is of another type, or one
bit that a cell reads is a constant: an OR with an input missing, say; with `--operators`, every operator in turn is
another one, as a slip of the pen makes it. Those that no covering vector tells from the model are put to `prove`, which
finds an input or proves that nothing is changed.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from mmaprobe.cli.line import StatusLine
from mmaprobe.queries.covering.cover import Covering
from mmaprobe.queries.equality.sweeping import prove_design
from mmaprobe.queries.kernel.questions.designs import Designed
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.samples import Table, sample_rows, subnormal_rows, tie_rows
from mmaprobe.queries.search.witness import replay
from mmaprobe.reports.exports.verilog import module
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.designs.design import Design
from mmaprobe.smtmodel.designs.yosys import read_design
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Layout
from mmaprobe.smtmodel.tables.reference import parse_reference

ROWS = ["ieee/fma/f16", "ieee/fma/bf16", "ieee/fma/f32", "arm/neon/bfdot", "volta/mma/m8n8k4.f32.f16.f16.f32",
        "hopper/mma/m16n8k8.f32.tf32.tf32.f32", "x86/avx10.2/vdpphps", "cdna3/mfma/f32_32x32x8_f16",
        "riscv/v/vfwmaccbf16", "arm/sme/fmopa-f16f32"]  # fmt: skip
KINDS = ({"$and", "$or", "$xor"}, {"$add", "$sub"}, {"$eq", "$ne"}, {"$lt", "$le", "$gt", "$ge"},
         {"$logic_and", "$logic_or"}, {"$reduce_or", "$reduce_and", "$reduce_bool", "$logic_not"})  # fmt: skip
OPERATORS = {"$and": "$or", "$or": "$and", "$add": "$sub", "$sub": "$add", "$lt": "$le", "$not": "$pos"}
PORTS = tuple((name, name) for name in ("a", "b", "c", "d", "scale_a", "scale_b"))
SEED = 1


def design_of(model: Model) -> Design:
    """The netlist of the module that is printed of a model."""
    with TemporaryDirectory(prefix="mmaprobe-") as folder:
        path = Path(folder) / "unit.v"
        path.write_text(module(model, "unit"), encoding="utf-8")
        design = read_design([path], "unit")
    return replace(design, ports=tuple(pair for pair in PORTS if pair[0] == "d" or pair[0] in design.parsed.inputs))


def changes_of(document: dict[str, Any]) -> Iterator[tuple[str, str, int, str]]:
    """Every single change: the cell, a port, the place of a bit, and the constant it becomes; or the cell, "", 0 and
    its new type."""
    (inner,) = document["modules"].values()
    for name, cell in inner["cells"].items():
        for kinds in KINDS:
            if cell["type"] in kinds:
                yield from ((name, "", 0, other) for other in sorted(kinds - {cell["type"]}))
        for port, way in cell["port_directions"].items():
            if way == "input":
                for place, bit in enumerate(cell["connections"][port]):
                    if not isinstance(bit, str):
                        yield from ((name, port, place, value) for value in "01")


def operators_of(document: dict[str, Any]) -> Iterator[tuple[str, str, int, str]]:
    """Every change of an operator, as `changes_of` gives them: & and |, + and - for one another, <= for <, ~ left
    out."""
    (inner,) = document["modules"].values()
    for name, cell in inner["cells"].items():
        if cell["type"] in OPERATORS:
            yield name, "", 0, OPERATORS[cell["type"]]


def changed(design: Design, document: dict[str, Any], change: tuple[str, str, int, str]) -> Design:
    """The design with one change made."""
    name, port, place, value = change
    other = deepcopy(document)
    (inner,) = other["modules"].values()
    cell = inner["cells"][name]
    if port:
        cell["connections"][port][place] = value
    else:
        cell["type"] = value
    return replace(design, netlist=json.dumps(other))


def other_rows(layout: Layout, fmt: Format, count: int) -> Table:
    """Rows that no condition was asked of: of three kinds, so many of each, and of random ones twice as many."""
    seed = SEED + 1
    kinds = (sample_rows(layout, 2 * count, seed), tie_rows(layout, fmt, count, seed),
             subnormal_rows(layout, count, seed))  # fmt: skip
    return np.concatenate([rows for rows in kinds if len(rows)])


def measured(
    reference: str, count: int | None, timeout: float, whole: bool, others: int, line: StatusLine
) -> tuple[Counter[str], int]:
    """What became of the changes of one model, and the number of covering vectors. `count`: of so many chosen at
    random; None: of every change of an operator. `others`: in place of proofs, so many rows of each kind tell changes
    apart that covering vectors do not."""
    model = parse_reference(reference)
    covering = Covering(model)
    if whole:
        rows = covering.run(Options(timeout=timeout)).rows
    else:
        covering.sample(lambda text: None)
        rows = covering.finished().rows
    design, table = design_of(model), np.array(rows, dtype=np.uint64)
    rest = other_rows(covering.layout, model.d, others) if others else table
    document = json.loads(design.netlist)
    every = list(operators_of(document) if count is None else changes_of(document))
    chosen = every if count is None or len(every) <= count else Random(SEED).sample(every, count)
    found = Counter[str]()
    for change in chosen:
        try:
            problem = Designed(model, model, design=changed(design, document, change))
            if replay(problem, table).differs.any():
                found["caught"] += 1
                continue
        except ParameterError:  # the changed cell hangs on itself
            continue
        if others:
            found["different" if replay(problem, rest).differs.any() else "unknown"] += 1
            continue
        proof = prove_design(problem, Options(timeout=timeout), confirm=False)
        found[proof.verdict] += 1
        if proof.verdict != "equal":
            (inner,) = document["modules"].values()
            kind = inner["cells"][change[0]]["type"]
            line.say(f"{reference}: {proof.verdict}: {kind} {change}: {proof.witness and proof.witness.operands.every}")
    return found, len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=ROWS, help="others than those of benchmarks/netlists.md")
    parser.add_argument("--operators", action="store_true", help="every change of an operator, in place of --count")
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--count", type=int, default=400, help="changes of a model, chosen at random")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for the covering vectors, and for a proof")
    parser.add_argument("--samples", action="store_true", help="covering vectors of samples alone")
    parser.add_argument("--rows", type=int, default=0, help="rows of each kind in place of proofs")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    line, lines = StatusLine(), list[str]()
    for reference in arguments.models:
        if arguments.only in reference:
            found, count = measured(
                reference,
                None if arguments.operators else arguments.count,
                arguments.timeout,
                not arguments.samples,
                arguments.rows,
                line,
            )
            total = sum(found.values())
            lines.append(f"| `{reference}` | {count} | {total} | {found['equal']} | {found['caught']} | "
                         f"{found['different']} | {found['unknown']} |")  # fmt: skip
            line.say(lines[-1])
    if arguments.output:
        arguments.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
