"""A staged proof as a certificate."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from queries.certificates.certificate import CertificateError, Whole, WholeLemma, whole_of_query, write_certificate
from queries.equality.lemmas import Basis, Proof
from queries.search.distinguish import Options


def certify(proof: Proof, directory: Path, options: Options) -> dict[str, Any]:
    """Write the certificate of a proof that two sides are equal, check it, and give its manifest.

    `options.timeout` holds for the certificate. Raises CertificateError (which says why there is none), OutOfTimeError.
    """
    if proof.verdict != "equal":
        raise CertificateError("only what is proved has a certificate")
    start = time.monotonic()
    question = f"{proof.problem.left.reference} = {proof.problem.right.reference}"
    if proof.basis is not None:
        whole = _whole(proof, proof.basis, options)
    elif len(proof.lemmas) == 1:
        whole = whole_of_query(proof.lemmas[0].query, options.timeout, options.memory)
    else:
        raise CertificateError("a chain of lemmas that are not equalities of signals has no certificate")
    left = None if options.timeout is None else max(0.0, options.timeout - (time.monotonic() - start))
    leaves = [lemma.leaf for lemma in proof.lemmas]
    return write_certificate(directory, leaves, whole, question, left, options.memory, options.progress)


def _whole(proof: Proof, basis: Basis, options: Options) -> Whole:
    manager = basis.environment.formula_manager
    lemmas: list[WholeLemma] = []
    for lemma in proof.lemmas:
        if lemma.pair is not None:
            lemmas.append((*lemma.pair, basis.cuts))
        elif lemma.fact is not None:
            lemmas.append((lemma.fact, manager.TRUE(), ()))
    return Whole(
        basis.assertions, basis.goal, lemmas, options.timeout, options.memory,
        inputs=basis.inputs, maxima=basis.maxima, progress=options.progress,
    )  # fmt: skip
