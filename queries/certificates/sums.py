"""Sums of the same terms in another order: an equality that SAT solvers find hard and that has a short proof.

Two neighbours x, y after a partial sum P are exchanged: (P + x) + y = (P + y) + x. Column by column, the two carries on
the left are, as a set with multiplicity, the two carries on the right (both count what the columns below overflow by);
that is eight clauses of three literals, each of which follows from those of the column before. The adders of the
exchanged order are new definitions in the proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pysmt.operators as op
from pysmt.fnode import FNode

from queries.certificates.bitblast import Blaster
from queries.certificates.gates import FALSE, Clause, defining_clauses, ripple
from queries.certificates.merging import Merging, ProofText, simplified
from queries.certificates.sat import SatSolver
from queries.certificates.slow import Propagator


@dataclass(frozen=True)
class _Adder:
    left: Clause
    right: Clause
    total: Clause
    carries: Clause


class Sums:
    """Proves reordered sums equal, with the SAT solver's proofs of one column kept and used again."""

    def __init__(self, blaster: Blaster, merging: Merging, solver: SatSolver) -> None:
        self.blaster, self.merging, self.solver = blaster, merging, solver
        self.columns: dict[tuple[Clause, ...], list[list[Clause]]] = {}

    def reorder(self, left: FNode, right: FNode) -> bool:
        """Prove two chains of additions of the same terms equal; False if they are not such chains."""
        chains = self._alike(left, right)
        if chains is None:
            return False
        ours, theirs = chains
        partial = [ours[0]]
        for term in ours[1:]:
            partial.append(self._add(partial[-1], term).total)
        for place, wanted in enumerate(theirs):
            for position in range(ours.index(wanted, place), place, -1):
                self._exchange(ours, partial, position - 1)
        self.merging.close()
        return True

    def _alike(self, left: FNode, right: FNode) -> tuple[list[Clause], list[Clause]] | None:
        """The terms of both chains, opened as deep as leaves the same terms on both sides."""
        theirs = {len(chain): chain for chain in self._chains(right)}
        for ours in self._chains(left):
            if len(ours) > 2 and sorted(ours) == sorted(theirs.get(len(ours), ())):
                return ours, theirs[len(ours)]
        return None

    def _chains(self, node: FNode) -> list[list[Clause]]:
        """The terms of a chain of additions, first to last and without zeros, opened all the way, once less, ..."""
        terms: list[FNode] = []
        chains = []
        while node.node_type() == op.BV_ADD:
            terms.append(node.arg(1))
            node = node.arg(0)
            bits = [self.merging.found(self.blaster.bits(term)) for term in (node, *reversed(terms))]
            chains.append([term for term in bits if any(bit != FALSE for bit in term)])
        return chains[::-1]

    def _add(self, left: Clause, right: Clause) -> _Adder:
        total, carries = ripple(self.merging.gate, left, right, FALSE)
        return _Adder(left, right, tuple(total), tuple(carries))

    def _exchange(self, terms: list[Clause], partial: list[Clause], place: int) -> None:
        """Exchange the terms at `place` and after it."""
        first, second = terms[place], terms[place + 1]
        terms[place], terms[place + 1] = second, first
        if place == 0:  # x + y and y + x are the same gates
            partial[0] = second
            return
        before = partial[place - 1]
        old = self._add(before, first)
        old_next = self._add(old.total, second)
        new = self._add(before, second)
        new_next = self._add(new.total, first)
        for column in range(len(before)):
            self._prove_column([old, old_next, new, new_next], column)
        self.merging.close()
        partial[place] = new.total

    def _prove_column(self, adders: Sequence[_Adder], column: int) -> None:
        premises = [clause for adder in adders for clause in self._full_adder(adder, column)]
        premises += self._same_carries(adders, column)
        outputs = [self.merging.find(adder.total[column]) for adder in (adders[1], adders[3])]
        goals = self._same_carries(adders, column + 1)
        goals += _reduced([(-outputs[0], outputs[1]), (outputs[0], -outputs[1])])
        if goals:
            self._prove_clauses(premises, goals)
        self.merging.equate(*outputs)

    def _full_adder(self, adder: _Adder, column: int) -> list[Clause]:
        a, b, carry, total = self.merging.found(
            bits[column] for bits in (adder.left, adder.right, adder.carries, adder.total)
        )
        half = self.merging.gate("xor", (a, b))
        clauses = _relation("xor", half, (a, b)) + _relation("xor", total, (half, carry))
        if column + 1 < len(adder.carries):
            clauses += _relation("maj", self.merging.find(adder.carries[column + 1]), (a, b, carry))
        return _reduced(clauses)

    def _same_carries(self, adders: Sequence[_Adder], column: int) -> list[Clause]:
        """Both carries of the first two adders, or one, or none, are set where those of the last two are."""
        if column >= len(adders[0].carries):
            return []
        p, q, r, s = self.merging.found(adder.carries[column] for adder in adders)
        clauses = []
        for (a, b), (c, d) in (((p, q), (r, s)), ((r, s), (p, q))):
            clauses += [(-a, -b, c), (-a, -b, d), (-a, c, d), (-b, c, d)]
        return _reduced(clauses)

    def _prove_clauses(self, premises: list[Clause], goals: list[Clause]) -> None:
        """Write a proof of some clauses, found once for every column of the same form."""
        literals, form = _canonical([*premises, *goals])
        if form not in self.columns:
            named = form[: len(premises)]
            proofs = self.columns[form] = []
            for goal in form[len(premises) :]:
                proofs.append(self._weakened(named, goal))
                named = (*named, goal)
        for steps in self.columns[form]:
            written = [self.merging.proof.add(literals[x] for x in clause) for clause in steps]
            for clause in written[:-1]:
                self.merging.proof.delete(clause)

    def _weakened(self, premises: Sequence[Clause], goal: Clause) -> list[Clause]:
        """A proof of one clause: a refutation of its negation, each step with the clause added to it."""
        steps = self.solver.refute([*((-literal,) for literal in goal), *premises])
        if steps is None:
            raise AssertionError("a column of exchanged sums that does not hold")
        added = [clause for deletion, clause in steps if not deletion]
        return [(*clause, *goal) for clause in _trimmed([*((-literal,) for literal in goal), *premises], added)]


def _trimmed(premises: Sequence[Clause], steps: list[Clause]) -> list[Clause]:
    """A refutation without the steps that it can do without; for short ones."""
    place = len(steps) - 2
    while place >= 0:
        fewer = steps[:place] + steps[place + 1 :]
        state = Propagator()
        for clause in premises:
            state.add(list(clause))
        for clause in fewer:
            if not state.follows(list(clause), True):
                break
            state.add(list(clause))
        else:
            steps = fewer
        place -= 1
    return steps


def write_steps(proof: ProofText, steps: Iterable[tuple[bool, Clause]]) -> None:
    """Write the steps of a proof of its last clause, and delete all others of them afterwards."""
    alive: dict[Clause, list[Clause]] = {}
    written: Clause | None = None
    for deletion, clause in steps:
        key = tuple(sorted(clause))
        if deletion:
            if alive.get(key):  # a premise stays
                proof.delete(alive[key].pop())
            continue
        written = proof.add(clause)
        if written is not None:
            alive.setdefault(key, []).append(written)
    for key, copies in alive.items():
        for place, copy in enumerate(copies):
            if not (place == 0 and key == tuple(sorted(clause))):
                proof.delete(copy)


def _relation(kind: object, output: int, inputs: Clause) -> list[Clause]:
    return defining_clauses(output, kind, inputs)  # type: ignore[arg-type]


def _reduced(clauses: Iterable[Clause]) -> list[Clause]:
    return [reduced for clause in clauses if (reduced := simplified(clause)) is not None]


def _canonical(clauses: Sequence[Clause]) -> tuple[dict[int, int], tuple[Clause, ...]]:
    """(the literal that each new name stands for, the clauses so renamed); names are numbered as they are met, and
    positive there."""
    names: dict[int, int] = {}
    renamed = []
    for clause in clauses:
        for literal in clause:
            if literal not in names:
                names[literal] = len(names) // 2 + 1
                names[-literal] = -names[literal]
        renamed.append(tuple([names[literal] for literal in clause]))
    return {name: literal for literal, name in names.items()}, tuple(renamed)
