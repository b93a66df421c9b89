"""A query to several engines, and to the store of their earlier answers."""

from __future__ import annotations

from mmaprobe.queries.solvers.contract import DEFAULT_MEMORY, Answer, Reason
from mmaprobe.queries.solvers.engines import AUTO, engines_of, race
from mmaprobe.queries.solvers.pool import Pool
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.queries.solvers.store import Store


def solve(
    query: Query,
    solver: str = AUTO,
    timeout: float | None = None,
    memory: int = DEFAULT_MEMORY,
    store: Store | None = None,
    fresh: bool = False,
    name: str = "",
    pool: Pool | None = None,
    processor: float | None = None,
) -> list[Answer]:
    """The answers of the engines asked, the decisive answer first; if none decides, all answers are "unknown".

    `timeout`: seconds for the whole call (None: no limit), after which no engine's process is left; `processor`: the
    processor seconds for each engine, a limit that does not depend on the machine's load; `memory`: MiB for each
    engine. Stored answers are used, unless `fresh`; new answers are stored before they are returned, with `name` for
    readers of the store. The engines run in `pool`, by default on this machine.
    """
    budget = min((limit for limit in (timeout, processor) if limit is not None), default=None)
    engines = engines_of(solver)
    known = [] if store is None or fresh else stored_answers(query, solver, budget, memory, store)
    if known and known[0].status != "unknown":
        return known[:1]
    silent = {answer.engine for answer in known}

    def keep(answer: Answer) -> Answer:
        if store is not None:
            less = processor is not None and answer.why is Reason.TIME
            store.record(query.text, answer, answer.seconds if less else budget, memory, name)
        return answer

    rest = tuple(engine for engine in engines if engine not in silent)
    new = (race if pool is None else pool.race)(rest, query.text, timeout, memory, keep, processor)
    if new and new[0].status != "unknown":
        return [new[0], *known, *new[1:]]
    return [*known, *new]


def stored_answers(query: Query, solver: str, timeout: float | None, memory: int, store: Store) -> list[Answer]:
    """The stored answers to a query, those with "sat" first, then "unsat", then "unknown": the input of a "sat" is
    evaluated again, while an "unsat" is believed. `timeout` in seconds and `memory` in MiB as for `Store.find`."""
    stored = [store.find(query.text, engine, timeout, memory) for engine in engines_of(solver)]
    order = ("sat", "unsat", "unknown")
    return sorted((answer for answer in stored if answer is not None), key=lambda answer: order.index(answer.status))
