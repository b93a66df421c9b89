"""`prove` for plans: the equality of two plans, and the independence of results from the shape, by the plans of a map
(`--invariant`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mmaprobe.cli.commands.prove_line import ERROR_BOUND, OfResults, Statement
from mmaprobe.cli.options import refuse, say
from mmaprobe.cli.text.vectors import answers_text, show_lemmas, show_witness, stopped_text
from mmaprobe.documents.prove import ElementAt, ProveInvariant, ProvePlans, proved_text
from mmaprobe.smtmodel.base.wording import counted, spans_text

if TYPE_CHECKING:
    from mmaprobe.queries.conjectures.plans import InvarianceConjecture, PlanConjecture
    from mmaprobe.queries.plans.equal import PlanProof
    from mmaprobe.queries.plans.invariant import Invariance

LISTED = 4  # the most pairs of plans that are printed


class PlansEqual(OfResults["PlanProof", ProvePlans]):
    """The statement that two plans, or two units that take K in tiles, are equal."""

    def check(self) -> None:
        super().check()
        plans = "plans for any K" if self.line.length is None else f"plans at --length {self.line.length}"
        what = plans if self.line.names_plan else "chains of a unit to --length products"
        why = f"{what} can only be proved equal, bit for bit and on every input{self.line.plan_hint}"
        refuse(why, "restrictions", "compare", "flags")
        if self.line.restrictions or self.line.compare:
            raise click.UsageError(why)

    def conjectured(self) -> PlanConjecture:
        from mmaprobe.queries.conjectures.plans import PlanConjecture

        left, right = self.line.sides
        return PlanConjecture(left.plan, right.plan, self.line.length, (left.text, right.text))

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
            if document.multiples != 1:
                self._show_other_lengths()
        elif document.verdict == "different":
            assert found.problem is not None
            say(f"equal: no, at K = {found.problem.left.length}: the vector below was replayed on both plans")
            self._show_other_lengths()
            show_witness(found.problem, found.witness, (found.left.reference, found.right.reference))
        else:
            tried = answers_text(document.unanswered) or "nothing, in so short a time"
            say(f"equal: {stopped_text(document)}; tried: {tried}")
            if self.line.length is None:
                say("  it was asked for every K that is whole tiles: --length K asks about one")
        if self.line.explain or document.interrupted:
            show_lemmas(document.proofs)

    def _show_other_lengths(self) -> None:
        if self.line.length is None:
            say("  it says nothing of any other K: --length K asks about one")


class Invariant(Statement["Invariance", ProveInvariant]):
    """The statement that results depend on no shape, by a map."""

    def check(self) -> None:
        if self.line.sides:
            raise click.UsageError("--invariant is about a map: it takes no model")
        refuse("--invariant compares plans, bit for bit and on every input", "wanted", "restrictions", "compare")
        refuse("--invariant has --shapes", "length")
        refuse("it is about the results of two models", "flags")
        refuse(f"it is for {ERROR_BOUND}", "latex", "measure")

    def conjectured(self) -> InvarianceConjecture:
        from mmaprobe.queries.conjectures.plans import InvarianceConjecture

        assert self.line.rules is not None
        return InvarianceConjecture.of(self.line.rules, self.line.shapes, self.line.fixed)

    def show(self, found: Invariance, document: ProveInvariant) -> None:
        explain = self.line.explain
        wanted = f"{document.property} ({found.shapes.text()}{f'; {found.fixed} fixed' if found.fixed else ''})"
        if document.verdict == "different":
            _show_difference(found, document, wanted)
            return
        pairs = document.compared
        engines = sorted({engine for pair in pairs for engine in pair.engines})
        by = sorted({engine for pair in pairs for engine in pair.confirmed_by})
        if document.verdict == "equal":
            how = proved_text(engines, by, "by rewriting alone" if pairs else "as each K has one plan")
            say(f"{wanted}: proved in {document.seconds:.1f} s, {how}")
        else:
            say(f"{wanted}: {stopped_text(document)}")
        for pair in pairs[: None if explain else LISTED]:
            elements = " and ".join(map(_named, pair.example))
            say(f"  {pair.left} and {pair.right} add the same products in {elements}")
            say(f"    equal at {_spans(pair.proved)} of K = {_spans(pair.lengths)}")
            for line in pair.rules if explain else ():
                say(f"      {line}")
            if pair.unanswered:
                say(f"    tried: {answers_text(pair.unanswered)}")
        if len(pairs) > LISTED and not explain:
            say(f"  and {counted(len(pairs) - LISTED, 'more pair')} of plans (--explain)")
        if document.open_example is not None:
            say(
                f"  the map says nothing of some results at K = {_spans(document.open)}, the first one "
                f"{_named(document.open_example)}: --shapes leaves them out"
            )
            if not any(map(found.left_open, found.enumeration.needs)):
                say("  the results of which the map says something do not depend on the shape")


def _show_difference(found: Invariance, document: ProveInvariant, wanted: str) -> None:
    assert found.difference is not None
    proof = found.difference[0]
    say(f"{wanted}: no; one row and one column, in two shapes, replayed on both plans")
    names = (f"{_named(one)}, by {one.plan}," for one in document.difference)
    show_witness(proof.problem, proof.witness, names)


def _named(element: ElementAt) -> str:
    return f"{element.place} of {' x '.join(map(str, element.shape))}"


def _spans(spans: Sequence[Sequence[int]]) -> str:
    return spans_text(spans, LISTED) or "no K"
