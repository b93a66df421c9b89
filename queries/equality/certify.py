"""Staged proofs as certificates."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pysmt.fnode import FNode

from queries.certificates.certificate import CertificateError, Whole, write_certificate
from queries.certificates.names import CHAIN, FACTS
from queries.search.distinguish import Options
from queries.solvers.smtlib import Query
from queries.tactics.records import Chain, Proof


def certify(proof: Proof, question: Mapping[str, str], directory: Path, options: Options) -> dict[str, Any]:
    """Write the certificate of a proof that two sides are equal, check it, and give its manifest. `question`: the files
    that say what was asked.

    `options.timeout` holds for the certificate. Raises CertificateError (which says why there is none), OutOfTimeError.
    """
    if proof.verdict != "equal":
        raise CertificateError("only what is proved has a certificate")
    start = time.monotonic()
    leaves = [lemma.leaf for lemma in proof.lemmas]
    whole = _whole(proof, options)
    rest = None if options.timeout is None else max(0.0, options.timeout - (time.monotonic() - start))
    left_over = replace(options, timeout=rest)
    return write_certificate(directory, left_over, question, leaves, whole)


def _whole(proof: Proof, options: Options) -> Whole:
    compared = proof.compared
    assert compared is not None
    carrier = compared.carrier
    marked = [*(signal.value.node for signal in compared.left.trace), *carrier.addends]
    cuts = tuple(node for node in dict.fromkeys(marked) if not (node.is_constant() or node.is_symbol()))
    lemmas = [(*lemma.pair, cuts) for lemma in proof.lemmas if lemma.pair is not None]
    return Whole(
        compared.assertions, compared.differ.node, lemmas, options.timeout, options.memory,
        inputs=compared.symbols, maxima=carrier.maxima, progress=options.progress,
    )  # fmt: skip


def chain_texts(
    chain: Chain, states: Sequence[FNode] = (), before: int = 0, more: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """A chain of facts as files: the terms, named, and the steps. `states`: what it is for, the last fact if nothing is
    said; `before`: the lemmas written before those of the chain; `more`: what else the document has."""
    names: dict[FNode, str] = {}

    def named(term: FNode, kind: str) -> str:
        return names.setdefault(term, f"{kind}-{len(names) + 1}")

    axioms = {named(term, "axiom"): name for name, term in chain.axioms}
    steps = [
        {
            "fact": named(step.claim, "fact"),
            "states": step.name,
            "lemma": f"lemma-{step.lemma + before + 1:02d}",
            "uses": [named(use, "fact") for use in step.uses],
            "terms": {symbol.symbol_name(): named(term, "term") for symbol, term in step.terms},
        }
        for step in chain.steps
    ]
    stated = [names[term] for term in (states or [chain.steps[-1].claim])]
    facts = Query((), (), tuple((name, term) for term, name in names.items()))
    document = {"schema": 1, "axioms": axioms, "steps": steps, "states": stated} | dict(more or {})
    return {FACTS: facts.text, CHAIN: json.dumps(document, indent=1) + "\n"}
