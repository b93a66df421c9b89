"""Sign symmetry of a unit: a tactic that calls the rule and is not trusted."""

from __future__ import annotations

import time

from mmaprobe.queries.kernel.properties.opposite import lemmas_of, turned
from mmaprobe.queries.kernel.properties.together import negates
from mmaprobe.queries.kernel.questions.statements import Negated
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.queries.properties.bound import proved
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.queries.tactics.settling import Settled, result_or_none
from mmaprobe.smtmodel.units.unit import Unit

BY_NODES = "each node's value is negated or unchanged, and the result is negated"
LEMMA_SECONDS = 10.0


def symmetry_of(unit: Unit, settle: Settled) -> Theorem:
    """The theorem that negating every a and c negates the result as a value. Raises RuleError if the rule does not
    give this theorem."""
    return turned(unit, proved(lemmas_of(unit), settle))


def by_nodes(problem: Negated, options: Options, confirm: bool) -> Proof | None:
    """The proof of a model's symmetry by the rule about nodes; None if the rule does not give it. Raises
    KeyboardInterrupt."""
    if problem.compare != "value":
        return None
    start, settle = time.monotonic(), Settled(options, confirm, LEMMA_SECONDS, needed=False)
    theorem = result_or_none(lambda: negates(problem, symmetry_of(problem.left.unit, settle)))
    return (
        None
        if theorem is None
        else Proof(problem, settle.asked, seconds=time.monotonic() - start, why=BY_NODES, theorem=theorem)
    )
