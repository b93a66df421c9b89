"""The composition of a proof of equality by stages into one proof of the whole question."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from mmaprobe.queries.certificates.whole import WholeLemma, WholeProof
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.records import Proof


def wholes_of(
    roots: Iterable[Theorem], proofs: Sequence[Proof], options: Options
) -> tuple[dict[Theorem, WholeProof], Options]:
    """The formula and the proof of the whole question, for each proof by stages on which a theorem of `roots` rests;
    and the options with the time that is left. Raises OutOfTimeError, and FaultyProofError."""
    start, wholes = time.monotonic(), dict[Theorem, WholeProof]()
    used = {one for root in roots for one in root.walk() if one.rule == "agreed"}
    for proof in proofs:
        if proof.theorem in used:
            wholes[proof.theorem] = _whole(proof, _left(options, start))
    return wholes, _left(options, start)


def _left(options: Options, start: float) -> Options:
    """The options with the time that is left since the start."""
    if options.timeout is None:
        return options
    return replace(options, timeout=max(0.0, options.timeout - (time.monotonic() - start)))


def _whole(proof: Proof, options: Options) -> WholeProof:
    compared = proof.compared
    assert compared is not None
    carrier = compared.carrier
    marked = [*(signal.value.node for signal in compared.left.trace), *carrier.addends]
    cuts = tuple(node for node in dict.fromkeys(marked) if not (node.is_constant() or node.is_symbol()))
    lemmas = [WholeLemma(*lemma.pair, cuts if lemma.points is None else lemma.points, lemma.facts, lemma.cases)
              for lemma in proof.lemmas if lemma.pair is not None]  # fmt: skip
    last = proof.lemmas[-1] if proof.lemmas else None
    return WholeProof(
        compared.assertions, compared.differ.node, lemmas, options.timeout, options.memory,
        inputs=compared.symbols, maxima=carrier.maxima, progress=options.progress, maximum=carrier.maximum,
        points=None if last is None or last.pair is not None else last.points,
        facts=() if last is None else last.facts,
    )  # fmt: skip
