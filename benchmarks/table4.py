"""Every row of Table 4 of Valpey et al. 2025 beside the questions here: writes benchmarks/table4.md, and each question
in its smallest form as SMT-LIB, benchmarks/table4/ROW.smt2.

python -m benchmarks.table4 [--timeout 30]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.library import PAPER
from mmaprobe.hypotheses.library import library
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.search.answer import problems
from mmaprobe.queries.search.distinguish import Options, build_query, free_sets
from mmaprobe.queries.solvers.contract import ENGINE_NAMES
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.queries.solvers.worker import version_of

PAGE = Path(__file__).parent / "table4.md"
HEAD = """# Table 4 of Valpey et al. 2025, row by row

Written by `python -m benchmarks.table4`. Theirs: seconds of z3 4.8.9 and cvc5 1.0.2 on their machine, for a question
about all products of an instruction. Ours: the same question on the models here, in its smallest form: all products are
zero but as few as leave an answer, found with the first engine that has one. Each engine is asked alone, {timeout:g} s,
on one of two busy cores. The SMT-LIB of the form is beside it, lines without comments: any solver for QF_BV reads it.
[The library](library.md) has the whole questions, proofs included.

| row | theirs: z3 | cvc5 | free products | {engines} | SMT-LIB |
|---|---|---|---|{dashes}|---|
"""


def smallest(problem: Problem, timeout: float) -> tuple[int, Query]:
    """The fewest free products with which the sides differ, and the question. Raises ValueError for none."""
    for free in free_sets(problem):
        query = build_query(problem, free)
        if Options("bitwuzla", timeout).ask(query, timeout, "smallest form")[0].status == "sat":
            return len(free), query
    raise ValueError("no small form has an answer")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--timeout", type=float, default=30.0)
    timeout = parser.parse_args().timeout
    engines = " | ".join(f"{name} {version_of(name)}" for name in ENGINE_NAMES)
    lines = [HEAD.format(timeout=timeout, engines=engines, dashes="---|" * (len(ENGINE_NAMES) - 1) + "---")]
    for name, theirs in PAPER.items():
        _, _, problem = next(iter(problems(library()[name])))
        free, query = smallest(problem, timeout)
        path = PAGE.with_suffix("") / f"{name}.smt2"
        path.write_text(query.text, encoding="utf-8")
        cells = []
        for engine in ENGINE_NAMES:
            (answer, *_) = Options(engine, timeout).ask(query, timeout, name)
            cells.append(f"{answer.seconds:.2f}" if answer.status == "sat" else f"none in {timeout:g}")
        text = f"[{len(query.text.splitlines())}](table4/{path.name})"
        lines.append(f"| {' | '.join([name, *theirs, str(free), *cells, text])} |\n")
        print(lines[-1], end="", flush=True)
        PAGE.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
