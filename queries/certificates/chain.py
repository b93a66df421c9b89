"""Checks a chain of facts: each must follow from facts before it, by a lemma whose cut-points are free symbols.

A lemma is an unsatisfiable query. It stays unsatisfiable if terms are substituted for its free symbols; so if its
assertions then are known facts and the negation of a claim, the claim is a fact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from pysmt.environment import Environment
from pysmt.fnode import FNode
from pysmt.smtlib.parser import SmtLibParser

from queries.certificates.reading import file_text


class Facts:
    """The named terms of a file, and the queries of other files, in one environment: equal terms are one object."""

    def __init__(self, path: Path) -> None:
        self.environment = Environment()
        self.terms = self.named(file_text(path, "ascii"))

    def _read(self, text: str, kind: str) -> Iterator[tuple[str, FNode]]:
        script = SmtLibParser(self.environment).get_script(StringIO(text))
        for command in script.commands:
            if command.name == kind:
                yield str(command.args[0]), command.args[-1]

    def named(self, text: str) -> dict[str, FNode]:
        """The terms that a text names."""
        return dict(self._read(text, "define-fun"))

    def asserted(self, path: Path) -> list[FNode]:
        """The assertions of a query."""
        return [term for _, term in self._read(file_text(path, "ascii"), "assert")]

    def with_terms(self, term: FNode, terms: Mapping[FNode, FNode]) -> FNode:
        """A term with terms substituted for its free symbols."""
        changed: FNode = self.environment.substituter.substitute(term, terms)
        return changed


def chain_faults(folder: Path, facts: Facts, document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The facts that do not follow, each with the reason."""
    known = {part for name in document["axioms"] for part in parts_of(facts.terms[name])}
    asserted: dict[str, list[FNode]] = {}
    for step in document["steps"]:
        name, claim = step["fact"], facts.terms[step["fact"]]
        uses = [part for use in step["uses"] for part in parts_of(facts.terms[use])]
        if not known.issuperset(uses):
            yield name, "rests on what was not proved before it"
        lemma = step["lemma"]
        if lemma not in asserted:
            asserted[lemma] = facts.asserted(folder / f"{lemma}.smt2")
        symbols = {symbol.symbol_name(): symbol for term in asserted[lemma] for symbol in term.get_free_variables()}
        terms = {symbols[cut]: facts.terms[term] for cut, term in step["terms"].items() if cut in symbols}
        negated = facts.environment.formula_manager.Not(claim)
        given = {negated, *parts_of(negated), *uses, *(facts.terms[use] for use in step["uses"])}
        if any(facts.with_terms(term, terms) not in given for term in asserted[lemma]):
            yield name, f"is not what {lemma} proves of the facts named"
        known |= parts_of(claim)
    states: Sequence[str] = document["states"]
    yield from ((name, "is not proved") for name in states if not known.issuperset(parts_of(facts.terms[name])))
    last = document["steps"][-1]["fact"]
    if last not in states:
        yield last, "is proved last, and is not what is stated"


def parts_of(term: FNode) -> set[FNode]:
    """The conjuncts of a term, those of nested conjunctions included."""
    found, waiting = set(), [term]
    while waiting:
        part = waiting.pop()
        if part.is_and():
            waiting += part.args()
        else:
            found.add(part)
    return found
