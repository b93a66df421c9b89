"""`prove` about two models or designs, or a property of one model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mmaprobe.cli.commands.prove_line import ERROR_BOUND, OfResults
from mmaprobe.cli.options import DESIGN, refuse, say, show_zeros
from mmaprobe.cli.text.vectors import answers_text, show_counterexample, show_lemmas, stopped_text
from mmaprobe.documents.prove import UNCONFIRMED, OneLemma, Prove, proved_text
from mmaprobe.hypotheses.properties import FALLING
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.queries.conjectures.models import ModelConjecture
    from mmaprobe.queries.tactics.records import Proof
    from mmaprobe.smtmodel.evaluate.model import Model

#: where order-independent holds of a unit with several steps
ORDERS = (
    "sums whose steps add other products are other plans; where two differ: mmaprobe distinguish "
    "plan:ONE@length=K plan:OTHER@length=K"
)
NAMED = 3  # the most lemmas whose names are in the first line


class Models(OfResults["list[Proof]", Prove]):
    """Two models are equal, or one has a property."""

    conjecture: ModelConjecture

    def check(self) -> None:
        super().check()
        if self.line.length is not None:
            text = f"--length is for two plans, two units that take K in tiles, and {ERROR_BOUND}"
            raise click.UsageError(f"{text}{self.line.plan_hint}")
        if self.line.wanted.startswith("monotonic"):
            refuse(FALLING, "compare")

    def conjectured(self) -> ModelConjecture:
        from mmaprobe.queries.conjectures.models import ModelConjecture

        line, models = self.line, [self.flagged(side.model) for side in self.line.sides]
        if line.wanted == "equal" and len(models) != 2:
            raise click.UsageError("give two models, or one model and --property")
        return ModelConjecture.of(
            line.wanted, models[0], models[1] if len(models) > 1 else None, line.inputs, line.compare
        )

    def flagged(self, model: Model) -> Model:
        """A model, or, with --flags, the model of its exceptions."""
        from mmaprobe.smtmodel.tables.reference import with_flags

        return model if self.line.flags is None else with_flags(model, self.line.flags)

    def show(self, found: list[Proof], document: Prove) -> None:
        problem = self.conjecture.problems[0]
        say(_headline(document))
        show_zeros(problem.zeros)
        if document.verdict == "holds" and "it says nothing of" in document.statement:
            say(f"  {ORDERS}")
        if document.property == "equal" and problem.left.length != problem.right.length:
            say(f"  about {counted(problem.length, 'product')}; further products of the longer model have factors +0")
        if self.line.explain:
            show_lemmas(document.proofs)
        for proof in document.proofs:
            if proof.vector:
                show_counterexample(proof)


class Design(Models):
    """A design gives the results of a model, or the model's exceptions at the port for flags."""

    def conjectured(self) -> ModelConjecture:
        from mmaprobe.queries.conjectures.models import ModelConjecture
        from mmaprobe.queries.kernel.questions.designs import Designed
        from mmaprobe.runner.rtl import RtlDevice

        line, texts = self.line, [side.text for side in self.line.sides]
        inputs = line.inputs
        if line.wanted != "equal" or len(texts) != 2 or texts[0].startswith(DESIGN):
            raise click.UsageError(f"a design is proved equal to a model: give MODEL {DESIGN}FILE,top=NAME")
        model, text = self.flagged(line.sides[0].model), texts[1].removeprefix(DESIGN)
        if line.flags is not None and ",d=" not in text:
            text = f"{text},d=flags"
        return ModelConjecture(
            "equal", [Designed(model, model, inputs, line.compare or "bits", RtlDevice(text).design)]
        )


def _headline(document: Prove) -> str:
    """The first line of the output: the verdict, and the proofs or answers for it."""
    wanted, seconds, proofs = document.property, document.seconds, document.proofs
    proved = document.verdict in ("equal", "holds")
    where = f", where only zeros of {', '.join(document.zeros_only)} are admitted" if document.zeros_only else ""
    stated = (wanted if wanted == "equal" else f"{wanted} ({document.statement})") + where
    lemmas = [lemma for proof in proofs for lemma in proof.lemmas]
    count = counted(len(lemmas), "lemma")
    whys = [proof.why for proof in proofs if proof.why]
    how = proved_text(document.engines, document.confirmed_by or [_unconfirmed(lemmas)])
    if proved and len(whys) == len(proofs) > 0:
        rests = f", with {count} {how}" if lemmas else ""
        return f"{stated}: proved in {seconds:.1f} s: {'; '.join(dict.fromkeys(whys))}{rests}"
    if proved:
        return f"{stated}: proved in {seconds:.1f} s, {count}, {how}"
    if document.verdict != "unknown":
        return f"{stated}: no; both results below were evaluated again, with NumPy"
    tried = answers_text(text for proof in proofs for text in proof.unanswered) or "nothing in time"
    left = "".join(f"; open: {proof.open}" for proof in proofs if proof.open)
    return f"{stated}: {stopped_text(document)}, {count} proved{left}; tried {tried}"


def _unconfirmed(lemmas: Sequence[OneLemma]) -> str:
    """Which solvers confirmed some of the lemmas; up to NAMED lemmas that no second solver confirmed are named."""
    left = [lemma.name for lemma in lemmas if lemma.confirmed_by is None]
    if len(left) == len(lemmas):
        return UNCONFIRMED
    which = "; ".join(left) if len(left) <= NAMED else "--explain says which"
    return f"a second solver for {len(lemmas) - len(left)} of {len(lemmas)} lemmas (not: {which})"
