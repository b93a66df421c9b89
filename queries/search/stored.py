"""Witnesses in the store: an input that showed a difference is neither searched for nor shrunk again; both sides are
evaluated on it again each time."""

from __future__ import annotations

from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.witness import Witness, confirmed_witness
from mmaprobe.queries.solvers.store import result_key
from mmaprobe.smtmodel.evaluate.identity import identity_text


def stored_witness(problem: Problem, options: Options) -> Witness | None:
    """The witness in the store of the options, evaluated again; None if there is none or none may be used."""
    if options.store is None or options.fresh:
        return None
    result = options.store.find_result(witness_key(problem))
    return None if result is None else confirmed_witness(problem, tuple(result["input"]))


def store_witness(problem: Problem, witness: Witness | None, options: Options) -> None:
    """Keep a witness in the store of the options, where both are given."""
    if witness is not None and options.store is not None:
        row = {"verdict": "different", "input": list(witness.operands.every)}
        options.store.record_result(witness_key(problem), row)


def witness_key(problem: Problem) -> str:
    """The key of a problem's witness in the store."""
    return result_key("witness", problem=identity_text(problem))
