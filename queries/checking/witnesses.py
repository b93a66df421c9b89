"""The check of the input in a certificate, which refutes a question or decides a claim. The terms are made again and
evaluated by the gates that also check proofs; this code is not that of the search for the input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pysmt.fnode import FNode

from mmaprobe.hypotheses.claim import Claim
from mmaprobe.queries.certificates.bitblast import Blaster, bits_of
from mmaprobe.queries.certificates.claim_files import read_claim
from mmaprobe.queries.certificates.gates import TRUE
from mmaprobe.queries.certificates.names import CLAIM, LEFT_PLAN, RIGHT_PLAN, UNIT, WITNESS
from mmaprobe.queries.certificates.plan_files import read_plan
from mmaprobe.queries.certificates.questions import (
    PADDING,
    model_of_table,
    read_document,
    read_model,
    read_question,
    same_unit,
)
from mmaprobe.queries.checking.finding import Finding, Texts, of_file
from mmaprobe.queries.kernel.properties.together import ORDER
from mmaprobe.queries.kernel.questions.designs import Designed
from mmaprobe.queries.kernel.questions.problem import Placed, Problem, is_beyond
from mmaprobe.queries.kernel.questions.statements import (
    PROPERTIES,
    Reordered,
    problems_of,
    reordered_groups,
    subject_of,
)
from mmaprobe.queries.kernel.terms.same import Compared
from mmaprobe.queries.kernel.terms.undecided import Question
from mmaprobe.queries.properties.exact import ExactChain
from mmaprobe.smtmodel.arithmetic.display import finite_value
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.plans.lowering import unit_of_plan


class _Evaluated:
    """Evaluates terms over symbols that have the stated patterns."""

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
        signals = self.blaster.bits(bits.node)
        return f"0x{sum((bit == TRUE) << place for place, bit in enumerate(signals)):0{(len(signals) + 3) // 4}x}"


@of_file(WITNESS)
def witness(texts: Texts, pieces: Sequence[str]) -> Iterator[Finding]:
    """The finding whether the input is admitted, and decides the question or claim as the certificate says."""
    stated = read_document(texts, WITNESS)
    if CLAIM in texts:
        claim = read_claim(texts)
        need(isinstance(claim, Claim), "an input decides claims about algorithms alone")
        assert isinstance(claim, Claim)
        about = claim.assertion
        if about.most is not None:
            count = sum(name.startswith("a") for name in stated["values"])
            need(count > 0 and count % about.terms == 0 and count <= about.most, "no number of products of the claim")
            about = about.at(count)
        asked = Question(about)
        decides = _Evaluated(asked.symbols, stated["values"]).holds(asked.assumed, asked.goal.node)
        says = {"all": "refutes", "exists": "shows"}[claim.quantifier]
        yield Finding(WITNESS, f"an admitted input that {says}: {claim.text}" if decides else
                      "it is not admitted, or does not decide the claim", "fine" if decides else "fault")  # fmt: skip
        return
    if UNIT in texts:
        yield _wraps(texts, stated)
        return
    if LEFT_PLAN in texts:
        yield _differ(_plans_at(texts, stated), stated, f"not equal for K = {stated['length']}")
        return
    problem = read_question(texts, WITNESS)
    need(_refutes(problem, stated), f"it does not refute what is asked: {stated['property']}")
    yield _differ(problem, stated, f"not {stated['property']}")


def need(holds: bool, why: str) -> None:
    """Raises ValueError with the reason where a condition does not hold."""
    if not holds:
        raise ValueError(why)


def _refutes(problem: Problem, stated: Mapping[str, Any]) -> bool:
    """Whether an input on which the sides of a problem differ refutes the question ("equal" or a property). Raises
    ParameterError for a unit that is not the table's unit of its name."""
    wanted, left, right = stated["property"], problem.left, problem.right
    if wanted == "equal":
        return type(problem) in (Problem, Designed)
    if wanted == ORDER:
        groups, order = reordered_groups(left), getattr(problem, "order", ())
        moved = sorted(order) == list(range(left.length)) and all({order[k] for k in one} == set(one) for one in groups)
        return type(problem) is Reordered and same_unit(left.unit, right.unit) and moved
    model = subject_of(wanted, problem)
    if wanted == PADDING:
        model = model_of_table(stated["model"], right.unit)
        need(stated["lengths"] == [left.length], "the shorter unit is of another length")
    elif wanted not in PROPERTIES:
        return False
    asked = problems_of(wanted, model, problem.inputs, problem.compare)
    return any(_same_question(problem, one) for one in asked)


def _same_question(problem: Problem, other: Problem) -> bool:
    """Whether two problems differ only in the names of their units."""
    sides = zip(problem.models, other.models, strict=True)
    named = replace(problem, left=other.left, right=other.right)
    return type(problem) is type(other) and named == other and all(same_unit(x.unit, y.unit) for x, y in sides)


def _differ(problem: Problem, stated: Mapping[str, Any], says: str) -> Finding:
    """The finding whether an input is admitted, and the sides of a problem differ on it."""
    compared = Compared(problem, "select")
    evaluated = _Evaluated(compared.symbols, stated["values"])
    if not evaluated.holds(*compared.assertions, compared.differ.node):
        return Finding(WITNESS, "it is not admitted, or the two sides do not differ on it", "fault")
    results = (f"{side} gives {evaluated.pattern(one.d)}"
               for side, one in zip(problem.sides, (compared.left, compared.right), strict=True))  # fmt: skip
    return Finding(WITNESS, f"{says}: on this input {', '.join(results)}")


def _plans_at(texts: Texts, stated: Mapping[str, Any]) -> Problem:
    """The problem whether both plans agree at the stated K, with zeros at all places without a stated value."""
    length, places = stated["length"], stated["places"]
    need(all(0 <= place < length for place in places), "these are no places of products")
    plans = [read_plan(texts, name) for name in (LEFT_PLAN, RIGHT_PLAN)]
    need(all(plan.scale is None for plan in plans), "plans with scale factors are not compared")
    left, right = (Model(plan.reference, unit_of_plan(plan, length)) for plan in plans)
    return Placed(left, right, places=tuple(places))


def _wraps(texts: Texts, stated: Mapping[str, Any]) -> Finding:
    """The finding whether the result of a chain is further from the exact result than the sum of all magnitudes, with
    no value too large for its format. If the last stated row changes nothing, copies of this row may continue the
    chain."""
    model, rows, length = read_model(texts, UNIT), stated["rows"], stated["length"]
    need(type(length) is int and length % model.length == 0, "its products fill no whole number of instructions")
    count, results = length // model.length, list[str]()
    need(stated["property"] == "error-bound" and 0 < len(rows) <= count, "its rows are more than its steps")
    compared = Compared(Problem(model, model), "select")
    fine = [(~is_beyond(visit)).node for visit in compared.left.trace.visits]
    for row in rows:
        evaluated = _Evaluated(compared.symbols, row)
        need(evaluated.holds(*compared.assertions, *fine), "a value is too large for its format")
        need(not results or int(row["c"], 16) == int(results[-1], 16), "an addend is not the result before it")
        results.append(evaluated.pattern(compared.left.d))
    layout = layout_of(model)
    steps = np.array([[int(row.get(name, "0"), 16) for name in layout.names] for row in rows], dtype=np.uint64)
    chain = ExactChain.of(model, layout, steps)
    need(chain is not None, "an operand is no number")
    assert chain is not None
    exact, sizes = chain.exact, chain.magnitudes
    still = (exact[-1], sizes[-1], results[-1]) == (exact[-2], sizes[-2], results[-2]) if len(rows) > 1 else False
    need(len(rows) == count or still, "the chain goes on")
    d = finite_value(int(results[-1], 16), model.d)
    need(d is not None, "the result is no number")
    assert d is not None
    if abs(d - exact[-1]) <= sizes[-1]:
        return Finding(WITNESS, "the result is no further from the exact one than all magnitudes together", "fault")
    return Finding(WITNESS, f"no error bound: d is {float(d):.6g} on this input, the exact result "
                   f"{float(exact[-1]):.6g}, and all magnitudes add up to {float(sizes[-1]):.6g}")  # fmt: skip
