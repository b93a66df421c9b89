"""`prove` about two plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mmaprobe.cli.commands.prove_line import OfResults
from mmaprobe.cli.options import refuse, say
from mmaprobe.cli.text.vectors import answers_text, proved_text, show_lemmas, show_witness, stopped_text
from mmaprobe.documents.prove import ProvePlans
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.queries.conjectures.plans import OfPlans
    from mmaprobe.queries.plans.equal import PlanProof


class PlansEqual(OfResults["PlanProof", ProvePlans]):
    """Two plans, or two units that take K in tiles, are equal."""

    def check(self) -> None:
        super().check()
        what = "plans for any K" if self.line.names_plan else "chains of a unit to --length products"
        why = f"{what} can only be proved equal, bit for bit and on every input{self.line.plan_hint}"
        refuse(why, "restrictions", "compare", "flags")
        if self.line.restrictions or self.line.compare:
            raise click.UsageError(why)

    def conjectured(self) -> OfPlans:
        from mmaprobe.queries.conjectures.plans import OfPlans

        left, right = self.line.sides
        return OfPlans(left.plan, right.plan, self.line.length, (left.text, right.text))

    def show(self, found: PlanProof, document: ProvePlans) -> None:
        if document.verdict == "equal":
            what = (
                f"K = {document.length}" if document.length else f"every K that is a multiple of {document.multiples}"
            )
            alone = "by rewriting alone" if found.is_rewritten else "by a lemma about scale factors"
            how = proved_text(document.engines, document.confirmed_by, alone)
            say(f"equal for {what}: proved in {document.seconds:.1f} s, {how}")
            for line in document.rules:
                say(f"  {line}")
        elif document.verdict == "different":
            assert found.problem is not None
            count = counted(found.problem.left.length, "product")
            say(f"equal: no; the vector below, of {count}, was replayed on both plans")
            show_witness(found.problem, found.witness, (found.left.reference, found.right.reference))
        else:
            tried = answers_text(document.unanswered) or "nothing, in so short a time"
            say(f"equal: {stopped_text(document)}; tried: {tried}")
        if self.line.explain or document.interrupted:
            show_lemmas(document.proofs)
