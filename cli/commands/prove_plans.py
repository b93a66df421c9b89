"""`prove` about two plans: text and JSON of its verdict."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mmaprobe.cli.options import EXIT, say
from mmaprobe.cli.text.certificates import finish
from mmaprobe.cli.text.vectors import merged, proved_text, show_lemmas, show_witness, stopped_text
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mmaprobe.documents.prove import ProvePlans
    from mmaprobe.queries.certificates.certificate import Certificate
    from mmaprobe.queries.plans.equal import PlanProof
    from mmaprobe.queries.search.distinguish import Options


def about_plans(names: tuple[str, ...], length: int | None) -> bool:
    """Whether the two sides are to be compared as plans for any K: one is a plan, or K is given for units that take K
    in tiles."""
    from mmaprobe.smtmodel.tables.reference import names_plan

    return len(names) == 2 and (length is not None or any(names_plan(name) for name in names))


def run_plans(
    names: tuple[str, ...], length: int | None, options: Options, confirm: bool, explain: bool, as_json: bool,
    certificate: Path | None,
) -> None:  # fmt: skip
    """Ask the solvers, print the verdict, and end with its exit code."""
    from mmaprobe.queries.plans.equal import prove_plans
    from mmaprobe.queries.plans.report import document_of
    from mmaprobe.smtmodel.tables.reference import parse_plan_reference

    left, right = (parse_plan_reference(name) for name in names)
    proof = prove_plans(left, right, length, options, confirm)
    options.progress("")
    document = document_of(proof, names[0], names[1], length)
    _show(document, proof)
    if explain or proof.interrupted:
        show_lemmas(document.proofs)

    def write(folder: Path) -> Iterable[Certificate]:
        from mmaprobe.queries.plans.certify import certify_difference, certify_plans

        return (certify_plans if proof.verdict == "equal" else certify_difference)(proof, folder, options)

    finish(document, None if proof.verdict == "unknown" else certificate, write, options.timeout, as_json)
    sys.exit(EXIT[proof.verdict])


def _show(document: ProvePlans, proof: PlanProof) -> None:
    length, multiples = document.length, document.multiples
    if proof.verdict == "equal":
        what = f"for K = {length}" if length else f"for every K that is a multiple of {multiples}"
        alone = "by rewriting alone" if proof.is_rewritten else "by a lemma about scale factors"
        how = proved_text(document.engines, document.confirmed_by, alone)
        say(f"equal {what}: proved in {document.seconds:.1f} s, {how}")
        for line in document.rules:
            say(f"  {line}")
    elif proof.verdict == "different":
        assert proof.problem is not None
        count = counted(proof.problem.left.length, "product")
        say(f"equal: no; the vector below, of {count}, was replayed on both plans")
        show_witness(proof.problem, proof.witness, (proof.left.reference, proof.right.reference))
    else:
        tried = merged(document.unanswered) or "nothing, in so short a time"
        say(f"equal: {stopped_text(document)}; tried: {tried}")
