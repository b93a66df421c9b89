"""Whether the input beside a question, or beside a claim, refutes or decides it: its terms are made again, and
evaluated by the gates that also check proofs, which share no code with what found the input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pysmt.fnode import FNode

from hypotheses.claim import Claim
from queries.certificates.bitblast import Blaster, bits_of
from queries.certificates.exact_values import chained, number_of
from queries.certificates.gates import TRUE
from queries.certificates.magnitudes import need
from queries.certificates.names import CLAIM, LEFT_PLAN, RIGHT_PLAN, UNIT, WITNESS
from queries.certificates.together import refuting_fault
from queries.checking.finding import Contents, Finding, of_file, read_claim
from queries.checking.padding import padding_fault
from queries.kernel.problem import Placed, Problem, is_beyond
from queries.kernel.same import Compared
from queries.kernel.undecided import Question
from queries.plans.certify import read_plan
from queries.properties.asked import PADDING, plain, read_document, read_question, read_unit
from smtmodel.algebra import Bits
from smtmodel.dot import Model
from smtmodel.plans.lowering import unit_of_plan


class _Evaluated:
    """Terms, once each symbol has the pattern that is stated of it."""

    def __init__(self, symbols: Sequence[FNode], stated: Mapping[str, str]) -> None:
        self.blaster = Blaster()
        need({symbol.symbol_name() for symbol in symbols} == stated.keys(), "it is no input of the question")
        for symbol in symbols:
            value, width = int(stated[symbol.symbol_name()], 16), symbol.bv_width()
            need(0 <= value < 1 << width, "a pattern does not fit its operand")
            self.blaster.memo[symbol] = bits_of(value, width)

    def holds(self, *terms: FNode) -> bool:
        return all(self.blaster.truth(term) == TRUE for term in terms)

    def pattern(self, bits: Bits) -> str:
        found = self.blaster.bits(bits.node)
        return f"0x{sum((bit == TRUE) << place for place, bit in enumerate(found)):0{(len(found) + 3) // 4}x}"


@of_file(WITNESS)
def witness(folder: Path, contents: Contents) -> Iterator[Finding]:
    """Whether the input is admitted, and decides what it is said to decide."""
    stated = read_document(folder / WITNESS)
    if CLAIM in contents.files:
        claim = read_claim(folder, Claim)
        asked = Question(claim.assertion)
        decides = _Evaluated(asked.symbols, stated["values"]).holds(asked.assumed, asked.goal.node)
        says = {"all": "refutes", "exists": "shows"}[claim.quantifier]
        yield Finding(WITNESS, f"an admitted input that {says}: {claim.text}" if decides else
                      "it is not admitted, or does not decide the claim", "fine" if decides else "fault")  # fmt: skip
        return
    if UNIT in contents.files:
        yield _wraps(folder, stated)
        return
    if LEFT_PLAN in contents.files:
        yield _differ(_at(folder, stated), stated, f"not equal for K = {stated['length']}")
        return
    problem = read_question(folder, WITNESS)
    units = {"left": plain(problem.left.unit), "right": plain(problem.right.unit)}
    fault = refuting_fault(stated | units)
    if stated["property"] == PADDING and not fault:
        fault = padding_fault(stated, units["right"], [units["left"]], every=False)
    if fault:
        yield Finding(WITNESS, fault, "fault")
        return
    yield _differ(problem, stated, f"not {stated['property']}")


def _differ(problem: Problem, stated: Mapping[str, Any], says: str) -> Finding:
    """Whether an input is admitted, and the sides of a problem differ on it."""
    compared = Compared(problem, "select")
    found = _Evaluated(compared.symbols, stated["values"])
    if not found.holds(*compared.assertions, compared.differ.node):
        return Finding(WITNESS, "it is not admitted, or the two sides do not differ on it", "fault")
    results = (f"{side} gives {found.pattern(one.d)}"
               for side, one in zip(problem.sides, (compared.left, compared.right), strict=True))  # fmt: skip
    return Finding(WITNESS, f"{says}: on this input {', '.join(results)}")


def _at(folder: Path, stated: Mapping[str, Any]) -> Problem:
    """Both plans at the K stated, with zeros at all places but those stated."""
    length, places = stated["length"], stated["places"]
    need(all(0 <= place < length for place in places), "these are no places of products")
    plans = [read_plan(folder, name) for name in (LEFT_PLAN, RIGHT_PLAN)]
    need(all(plan.scale is None for plan in plans), "plans with scale factors are not compared")
    left, right = (Model(plan.reference, unit_of_plan(plan, length)) for plan in plans)
    return Placed(left, right, places=tuple(places))


def _wraps(folder: Path, stated: Mapping[str, Any]) -> Finding:
    """Whether the result of a chain is further from the exact one than the magnitudes of all terms together, though no
    value is too large for its format. A chain whose last row changes nothing may go on with it."""
    model, rows = Model(UNIT, read_unit(folder / UNIT)), stated["rows"]
    count, results = stated["length"] // model.length, list[str]()
    need(stated["property"] == "error-bound" and 0 < len(rows) <= count, "its rows are more than its steps")
    compared = Compared(Problem(model, model), "select")
    fine = [(~is_beyond(visit)).node for visit in compared.left.trace.visits]
    for row in rows:
        found = _Evaluated(compared.symbols, row)
        need(found.holds(*compared.assertions, *fine), "a value is too large for its format")
        need(not results or int(row["c"], 16) == int(results[-1], 16), "an addend is not the result before it")
        results.append(found.pattern(compared.left.d))
    unit = plain(model.unit)
    values = chained(unit, [{name: int(value, 16) for name, value in row.items()} for row in rows])
    ends = len(rows) == count or (len(rows) > 1 and values[-1] == values[-2] and results[-1] == results[-2])
    need(ends, "the chain goes on")
    (exact, size), d = values[-1], number_of(unit["formats"][unit["unit"]["d"]], int(results[-1], 16))
    if abs(d - exact) <= size:
        return Finding(WITNESS, "the result is no further from the exact one than all magnitudes together", "fault")
    return Finding(WITNESS, f"no error bound: d is {float(d):.6g} on this input, the exact result {float(exact):.6g}, "
                   f"and all magnitudes add up to {float(size):.6g}")  # fmt: skip
