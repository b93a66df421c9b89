"""What is to be believed of a verdict, by file and line: `python -m tests.trusted` writes docs/trusted.md."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.places import ROOT

PAGE = ROOT / "docs" / "trusted.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of the table -->\n"
LIMIT = 1300  # lines of code of the kernel, with its lists and its check of arguments, and the rules of one kind


class Part(NamedTuple):
    """Files that are believed together, and for which verdicts."""

    title: str
    verdicts: str
    files: Sequence[str]


def _in(folder: str, names: str) -> list[str]:
    return [f"{folder}/{name}.py" for name in names.split()]


KERNEL = Part(
    "the kernel", "error bounds, normal forms", _in("queries/kernel", "theorem closed arguments errors lemmas")
)
BOUNDS = Part(
    "rules of error bounds",
    "error bounds",
    _in("queries/kernel", "bounds/forms bounds/enclosures bounds/induction bounds/table9 datapath/rounding_losses"),
)
DRAWN = Part("the rule of stochastic rounding", "error bounds", _in("queries/kernel", "bounds/draws"))
PARTED = Part("rules of the parts of an input", "error bounds", _in("queries/kernel", "bounds/parts"))
COMPENSATED = Part(
    "the rule of sums with what they lost", "error bounds", _in("queries/kernel", "bounds/transformations")
)
REWRITING = Part(
    "rules of rewriting, with their lemmas",
    "normal forms",
    _in("queries/kernel", "equality/rewriting datapath/ranges datapath/effects"),
)
SIGNS = Part("the rule of sign symmetry", "signs", _in("queries/kernel", "properties/opposite"))
PLANS = Part(
    "rules of plans, and what their stages do",
    "error bounds of plans",
    _in("queries/kernel", "bounds/sums questions/steps bounds/largest"),
)
SAME_PLANS = Part(
    "rules of equal plans",
    "plans that are equal",
    _in("queries/kernel", "equality/plan_units equality/plans equality/stages integers/factors"),
)
COVERING = Part(
    "what no input reaches", "cover", _in("queries/kernel", "cases/unreachable cases/conditions cases/lone_bits")
)
FACTS = Part("rules of facts about terms", "claims, equality, properties", _in("queries/kernel", "terms/facts"))
ROWS = Part("rules of sums of numbers", "claims of overflow, and of sums that wrap",
            _in("queries/kernel", "integers/rows questions/truncating integers/wraps integers/slices "
                                  "integers/every"))  # fmt: skip
BLOCKED = Part("the rule of block formats", "error bounds of plans", _in("queries/kernel", "integers/blocks"))
ASKED = Part("rules that tie facts to a question", "claims, equality, properties",
             _in("queries/kernel", "terms/same terms/undecided equality/expressions"))  # fmt: skip
SHARES = Part("rules of shares of the sum of magnitudes", "claims that compare with it",
              _in("queries/kernel", "bounds/shares questions/recorded bounds/unit_shares "
                                    "questions/windows"))  # fmt: skip
TOGETHER = Part("rules of what parts give together", "properties", _in("queries/kernel", "properties/together"))
RISING = Part(
    "the rule of what rises",
    "monotonicity",
    _in("queries/kernel", "properties/rises datapath/gains datapath/rounding_rises"),
)
RULED = (
    KERNEL,
    BOUNDS,
    DRAWN,
    PARTED,
    COMPENSATED,
    REWRITING,
    SIGNS,
    PLANS,
    SAME_PLANS,
    FACTS,
    ASKED,
    SHARES,
    TOGETHER,
    RISING,
    ROWS,
    BLOCKED,
    COVERING,
)
CUTTING = Part("terms cut out of a lemma", "claims, equality, properties", _in("queries/kernel", "terms/cutting"))
SAID = Part("what a claim says", "claims", ["queries/kernel/questions/scene.py",
    "smtmodel/algorithms/assertion.py", *_in("smtmodel/algorithms", "exact fixed parts predicate scene words"),
    *_in("smtmodel/plans", "dot multiword")])  # fmt: skip
GOALS = Part(
    "what is asked",
    "all",
    [*_in("queries/kernel", "questions/problem questions/statements"), "smtmodel/inputs/admitted.py"],
)
MEANING = Part("what a unit is", "all", [
    *_in("smtmodel/arithmetic", "alignment decode formats ieee ordering rounding"),
    *_in("smtmodel", "base/digits base/values carriers/algebra evaluate/model evaluate/operands units/unit"),
    "smtmodel/exceptions.py",
    "smtmodel/operand.py",
    *_in("smtmodel/nodes",
         "cancelling counting cut element exact flags fold fused gate given grid index known largest node normal "
         "product quotient relu repeat residues rewriting round scale segment shared signed sorting sums"),
])  # fmt: skip
PLANNED = Part("what a plan is, and the families that plans name units of", "plans", [
    *_in("smtmodel/plans", "engine joins lowering loop partitions plan span stages words"), "smtmodel/nodes/chains.py",
    *_in("smtmodel/families", "functions member parameters parts sketch"), "smtmodel/arithmetic/display.py",
])  # fmt: skip
DESIGNS = Part("what a design computes, by its netlist", "designs",
               ["queries/kernel/questions/designs.py", *_in("smtmodel/designs", "design netlist")])  # fmt: skip
CARRIERS = Part("terms, arrays (all inputs evaluated), and the way to SMT-LIB", "all",
                [*_in("smtmodel/carriers", "carrier terms arrays limbs"), "queries/solvers/smtlib.py",
                 *_in("smtmodel/plans", "gemm matrices"), *_in("smtmodel/evaluate", "tiles programs")])  # fmt: skip
ANSWERS = Part("the engines: how they are asked, their processes, their answers, and where these are kept", "all",
               [*_in("queries/solvers", "asking portfolio engines pool store contract children worker"),
                *_in("smtmodel/base", "folders frames jsontext")])  # fmt: skip
LOG = Part("the log, whose rules are called again", "with `mmaprobe check`", _in("queries/kernel", "log"))
CHECKER = Part("the checker of certificates", "with `mmaprobe check`, in place of engines", [
    *_in("queries/checking", "folder finding answers log witnesses"),
    *_in("queries/certificates", "asked questions plan_files claim_files statement manifest names reading checker"),
    *_in("queries/certificates", "bitblast gates"), "queries/properties/exact.py",
])  # fmt: skip
PARTS = (
    KERNEL,
    BOUNDS,
    DRAWN,
    PARTED,
    COMPENSATED,
    REWRITING,
    SIGNS,
    PLANS,
    SAME_PLANS,
    FACTS,
    ASKED,
    SHARES,
    TOGETHER,
    RISING,
    ROWS,
    BLOCKED,
    COVERING,
    CUTTING,
    SAID,
    GOALS,
    MEANING,
    PLANNED,
    DESIGNS,
    CARRIERS,
    ANSWERS,
    LOG,
    CHECKER,
)
#: imported by files of these, and not believed: what is shown to people, what errors are, and when work is
#: cut short
SHOWN = (
    "mmaprobe.queries.kernel.naming",
    "mmaprobe.queries.kernel.bounds.wording",
    "mmaprobe.smtmodel",
    "mmaprobe.smtmodel.base.errors",
    "mmaprobe.smtmodel.base.interrupts",
    "mmaprobe.smtmodel.nodes",
    "mmaprobe.smtmodel.base.progress",
    "mmaprobe.smtmodel.nodes.trace",
    "mmaprobe.smtmodel.base.wording",
    "mmaprobe.smtmodel.base.htmltext",
    "mmaprobe.smtmodel.base.escapes",
    "mmaprobe.smtmodel.base.files",
    "mmaprobe.smtmodel.base.yamlfile",
    "mmaprobe.smtmodel.units.unitfile",  # by which a model shows its steps
    "mmaprobe.smtmodel.units.unitkeys",
    "mmaprobe.smtmodel.units.written",
)


def lines(path: Path) -> tuple[int, int]:
    """The lines of a file, and those of code: neither blank nor comment nor docstring."""
    text = path.read_text(encoding="utf-8")
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            docstrings |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING):
            code |= set(range(token.start[0], token.end[0] + 1))
    return len(text.splitlines()), len(code - docstrings)


def size(*parts: Part) -> tuple[int, int]:
    """The lines of all their files, and those of code."""
    counts = [lines(ROOT / file) for part in parts for file in part.files]
    return sum(count[0] for count in counts), sum(count[1] for count in counts)


def table() -> str:
    found = ["| what | for which verdicts | files | lines | of code |", "|---|---|---|---|---|"]
    for part in PARTS:
        names: dict[str, list[str]] = {}
        for file in part.files:
            folder, _, name = file.rpartition("/")
            names.setdefault(folder, []).append(name.removesuffix(".py"))
        files = "; ".join(f"{folder}: {', '.join(own)}" for folder, own in names.items())
        found.append(f"| {part.title} | {part.verdicts} | {files} | {' | '.join(map(str, size(part)))} |")
    bounds, normal = size(KERNEL, BOUNDS), size(KERNEL, REWRITING, CUTTING)
    both = size(KERNEL, BOUNDS, REWRITING, CUTTING)
    found.append("")
    found.append(
        f"Kernel and rules: of an error bound {bounds[1]} lines of code ({bounds[0]} with comments and docstrings), of "
        f"a normal form {normal[1]} ({normal[0]}), all together {both[1]} ({both[0]})."
    )
    return "\n".join(found) + "\n"


def page() -> str:
    """The page with its table made anew."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
