"""Vectors as an SMT-LIB 2.6 script with a question for each vector: does the model's result differ from the given
one?"""

from __future__ import annotations

from collections.abc import Sequence

from mmaprobe.queries.compare.observed import ObservedVector
from mmaprobe.queries.kernel.questions.problem import Problem, evaluate_on, symbolic_operands
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.reports.exports.export import Export
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.base.escapes import one_line, text_bytes
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import layout_of, padded

OBSERVED, WRONG = "observed", "wrong"
LAST_CHECK = "(check-sat)"  # the end of the text of a Query


def script(rows: Sequence[ObservedVector], name: str) -> Export:
    """The model is defined once, over the inputs a0, ..., b0, ..., and c if it is read; `wrong` states that its result
    differs from `observed`. Each vector is a scope (push, pop) that fixes the inputs and `observed` and asserts
    `wrong`; an evaluation of the model gives the expected status, sat or unsat. Raises InputError for rows of several
    models."""
    models = {row.model.reference: row.model for row in rows}
    if len(models) > 1:
        raise InputError(f"SMT-LIB holds one model, but there are rows of {len(models)}: choose one with --model", name)
    scopes = "\n".join(_scope(row) for row in rows)
    head = [_definition(model) for model in models.values()] or [""]
    return Export(text_bytes(head[0] + scopes + "\n"))


def _definition(model: Model) -> str:
    problem, carrier = Problem(model, model), TermCarrier()
    operands = symbolic_operands(problem, carrier)
    observed = carrier.symbol(OBSERVED, model.d.width)
    wrong = problem.differ(evaluate_on(model, operands).d, observed)
    symbols = tuple(bits.node for bits in (*operands.every, observed) if bits.value is None)
    query = Query(symbols, tuple(carrier.definitions), ((WRONG, wrong.node),))
    return f"; {one_line(model.reference)}\n" + query.text.rpartition(LAST_CHECK)[0]


def _scope(row: ObservedVector) -> str:
    model = row.model
    layout = layout_of(model)
    values = padded(row.vector.operands, model).every
    fixed = [
        f"(= {symbol} #b{value:0{fmt.width}b})"
        for place, (symbol, value, fmt) in enumerate(zip(layout.names, values, layout.formats, strict=True))
        if place not in layout.unread
    ]
    lines = [
        "(push 1)",
        f"(set-info :status {'sat' if row.agrees is False else 'unsat'})",
        f"(assert (and {' '.join(fixed)}))",
        f"(assert (= {OBSERVED} #b{row.result:0{model.d.width}b}))",
        f"(assert {WRONG})",
        "(check-sat)",
        "(pop 1)",
    ]
    return "\n".join(lines)
