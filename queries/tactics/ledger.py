"""A tactic's record of the facts proved about a basis, with the lemma behind each, for lists of a theorem's lemmas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pysmt.fnode import FNode

from mmaprobe.queries.kernel.terms.facts import Basis, follows, given
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.solvers.asking import Engines, Heard
from mmaprobe.queries.tactics.records import Lemma


class UnprovedError(Exception):
    """A lemma that no engine proved: the argument does not apply, or time ran out."""


class Ledger:
    """The facts proved about one basis. Lemmas with the same query text are asked once."""

    def __init__(self, basis: Basis) -> None:
        self.basis = basis
        self.admitted = given(basis)
        self.heard = Heard()
        self._notes: dict[Theorem, Lemma] = {}

    def prove(
        self,
        name: str,
        claim: FNode,
        facts: Sequence[Theorem],
        cuts: Iterable[FNode],
        engines: Engines,
        inputs: Sequence[FNode] = (),
    ) -> Theorem:
        """Prove a claim from facts, with the terms `cuts` replaced by free symbols. `name`: the lemma's name in lists;
        `inputs`: the symbols whose values an engine reports. Raises UnprovedError."""
        chosen = tuple(dict.fromkeys(cuts))
        try:
            theorem = follows(self.basis, claim, facts, chosen, replace(engines, heard=self.heard), inputs)
        except RuleError:
            raise UnprovedError(name) from None
        last = engines.answered_queries[-1]
        self._notes[theorem] = Lemma(name, len(chosen), last.query, last.answer)
        return theorem

    def lemmas(self, *theorems: Theorem) -> list[Lemma]:
        """The lemmas that theorems rest on, each once."""
        by_text: dict[str, Lemma] = {}
        for theorem, note in self._noted(theorems).items():
            used = dict.fromkeys(self._notes[one].name for one in theorem.premises if one in self._notes)
            by_text.setdefault(note.query.text, replace(note, using=", ".join(used)))
        return list(by_text.values())

    def lemma_of(self, theorem: Theorem) -> Lemma:
        """The lemma by which a fact was proved."""
        return self._notes[theorem]

    def _noted(self, theorems: Sequence[Theorem]) -> dict[Theorem, Lemma]:
        every = dict.fromkeys(one for theorem in theorems for one in theorem.walk())
        return {theorem: self._notes[theorem] for theorem in every if theorem in self._notes}
