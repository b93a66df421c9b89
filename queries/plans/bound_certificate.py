"""Certificates of the error bounds of a plan: the trees of its theorems, and of each unit what an instruction does."""

from __future__ import annotations

import json
from pathlib import Path

from queries.certificates.certificate import Certificate, CertificateError, Leaf, write_certificate
from queries.certificates.names import PLAN, SUMS
from queries.kernel.enclosures import Enclosed
from queries.kernel.induction import Chained
from queries.kernel.lemmas import Lemma, query_of, words_of
from queries.kernel.steps import PlanAt
from queries.kernel.theorem import Theorem
from queries.plans.bound_report import PlanBound
from queries.plans.certify import plan_texts
from queries.properties.asked import SCHEMA
from queries.properties.bound_certificate import certify_theorems
from queries.search.distinguish import Options
from queries.tactics.written_plan import WrittenPlan, units_of


def certify_plan_bound(found: PlanBound, directory: Path, options: Options) -> list[Certificate]:
    """Write the certificate of the bounds of a plan, for each K and for any, and those of its units, which are parts of
    it. Raises CertificateError if nothing is proved or a proof fails, and OutOfTimeError."""
    if not found.theorems:
        raise CertificateError("only what is proved has a certificate")
    numbers, chains, names = units_of(found.plan), dict[int, Theorem](), dict[Theorem, str]()
    leaves: dict[Lemma, Leaf] = {}
    for root in found.theorems:
        for theorem in root.walk():
            if isinstance(theorem.goal, Chained):
                number = numbers[theorem.goal.unit]
                first = chains.setdefault(number, theorem)
                if first.goal != theorem.goal:
                    raise CertificateError(f"two theorems about one instruction of {found.plan.reference}")
                names[theorem] = f"chain-{number + 1}"
        for theorem in root.walk(names):
            if theorem.rule in ("settled", "exhausted"):
                lemma: Lemma = theorem.goal  # type: ignore[assignment]  # what these rules are about
                leaves.setdefault(lemma, Leaf(lemma.statement(), query_of(lemma), words_of(theorem)))
                names[theorem] = f"lemma-{list(leaves).index(lemma) + 1:02d}"
    texts = {SUMS: json.dumps({"schema": SCHEMA, "trees": [_tree(root, names) for root in found.theorems]}) + "\n"}
    texts |= plan_texts({PLAN: found.plan})
    parts = {f"chain-{number + 1}": theorem for number, theorem in sorted(chains.items())}
    made = []
    for part, theorem in parts.items():
        goal = theorem.goal
        assert isinstance(goal, Chained)
        made.append((directory / part, certify_theorems([theorem], goal.unit, directory / part, options)))
    manifest = write_certificate(directory, options, texts, list(leaves.values()), parts=list(parts))
    return [*made, (directory, manifest)]


def _tree(root: Theorem, names: dict[Theorem, str]) -> dict[str, object]:
    assert isinstance(root.goal, Enclosed)
    assert isinstance(root.goal.unit, PlanAt)
    return WrittenPlan(root.goal.unit).stating([root], names)
