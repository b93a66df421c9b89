"""A checker of DRAT proofs in Python, whose rules are those of check.c: the oracle of check.c, and unit propagation.

Every step must be RUP, or RAT on its first literal, and the last one must be the empty clause. The deletion of a clause
that is the reason of a literal assigned by unit propagation is ignored, as in drat-trim, and so is the deletion of a
clause that is not there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator


class _Clause:
    __slots__ = ("active", "literals")

    def __init__(self, literals: list[int]) -> None:
        self.literals = literals
        self.active = True


class Propagator:
    """Clauses with two watched literals each, and the literals that follow by unit propagation."""

    def __init__(self) -> None:
        self.watches: dict[int, list[_Clause]] = defaultdict(list)
        self.holders: dict[int, list[_Clause]] = defaultdict(list)
        self.known: dict[frozenset[int], list[_Clause]] = defaultdict(list)
        self.true: set[int] = set()
        self.reason: dict[int, _Clause | None] = {}
        self.trail: list[int] = []
        self.done = 0
        self.refuted = False

    def add(self, clause: list[int]) -> None:
        """Add a clause, and propagate."""
        ordered = sorted(dict.fromkeys(clause), key=lambda literal: -literal in self.true)
        entry = _Clause(ordered)
        self.known[frozenset(ordered)].append(entry)
        for literal in ordered:
            self.holders[literal].append(entry)
        for literal in ordered[:2] if len(ordered) > 1 else ():
            self.watches[literal].append(entry)
        free = [literal for literal in ordered[:2] if -literal not in self.true]
        if self.refuted or len(free) > 1 or any(literal in self.true for literal in ordered):
            return
        if not free:
            self.refuted = True
            return
        self._assign(free[0], entry)
        self.refuted = self._propagate()

    def delete(self, clause: list[int]) -> None:
        found = self.known.get(frozenset(clause))
        if not found:
            return
        entry = found[-1]
        if any(self.reason.get(literal) is entry for literal in entry.literals):
            return
        entry.active = False
        found.pop()
        for literal in entry.literals:
            self.holders[literal].remove(entry)

    def follows(self, clause: list[int]) -> bool:
        """Whether the clause is RUP, or RAT on its first literal."""
        if self.refuted:
            return True
        size = len(self.trail)
        fine = self._refutes(clause)
        if not fine and clause:
            fine = self._is_rat(clause[0])
        self._retract(size)
        return fine

    def _is_rat(self, pivot: int) -> bool:
        size = len(self.trail)
        for entry in list(self.holders[-pivot]):
            fine = self._refutes([literal for literal in entry.literals if literal != -pivot])
            self._retract(size)
            if not fine:
                return False
        return True

    def _refutes(self, literals: list[int]) -> bool:
        for literal in literals:
            if literal in self.true:
                return True
            if -literal not in self.true:
                self._assign(-literal, None)
        return self._propagate()

    def _assign(self, literal: int, reason: _Clause | None) -> None:
        self.true.add(literal)
        self.reason[literal] = reason
        self.trail.append(literal)

    def _retract(self, size: int) -> None:
        for literal in self.trail[size:]:
            self.true.discard(literal)
            del self.reason[literal]
        del self.trail[size:]
        self.done = size

    def _propagate(self) -> bool:
        """Propagate units; returns whether there is a conflict."""
        while self.done < len(self.trail):
            falsified = -self.trail[self.done]
            self.done += 1
            waiting = self.watches[falsified]
            kept = self.watches[falsified] = []
            for position, entry in enumerate(waiting):
                if entry.active and not self._moved(entry, falsified):
                    kept.append(entry)
                    first = entry.literals[0]
                    if -first in self.true:
                        kept += waiting[position + 1 :]
                        return True
                    if first not in self.true:
                        self._assign(first, entry)
        return False

    def _moved(self, entry: _Clause, falsified: int) -> bool:
        """Whether the clause found another literal to watch; the one still watched comes first."""
        literals, true = entry.literals, self.true
        if literals[0] == falsified:
            literals[0], literals[1] = literals[1], falsified
        if literals[0] in true:
            return False
        for place in range(2, len(literals)):
            if -literals[place] not in true:
                literals[1], literals[place] = literals[place], falsified
                self.watches[literals[1]].append(entry)
                return True
        return False


def _clauses(text: str) -> Iterator[tuple[bool, list[int]]]:
    """The clauses of a proof or of the body of a formula, as (whether it is a deletion, the clause). Raises
    ValueError."""
    deletion = False
    clause: list[int] = []
    for line in text.splitlines():
        if line.startswith("c"):
            continue
        for word in line.split():
            if word == "d" and not clause and not deletion:
                deletion = True
            elif word == "0":
                yield deletion, list(dict.fromkeys(clause))
                deletion, clause = False, []
            else:
                clause.append(int(word))
    if clause or deletion:
        raise ValueError("a clause without its end")


def _read_formula(text: str, state: Propagator) -> None:
    lines = text.splitlines()
    start = next(place for place, line in enumerate(lines) if not line.startswith("c"))
    kind, form, *sizes = lines[start].split()
    variables, clauses = map(int, sizes)
    count = 0
    for deletion, clause in _clauses("\n".join(lines[start + 1 :])):
        if deletion or any(abs(literal) > variables for literal in clause):
            raise ValueError("not a clause of the formula")
        state.add(clause)
        count += 1
    if (kind, form) != ("p", "cnf") or count != clauses:
        raise ValueError("the header does not fit")


def fault(cnf: str, proof: str) -> str:
    """What is wrong with a proof; empty if it is valid."""
    state = Propagator()
    try:
        _read_formula(cnf, state)
    except (ValueError, StopIteration):
        return "the formula cannot be read"
    number = 0
    try:
        for number, (deletion, clause) in enumerate(_clauses(proof), 1):
            if deletion:
                state.delete(clause)
            elif not state.follows(clause):
                return f"step {number}: the clause does not follow"
            elif not clause:
                return ""
            else:
                state.add(clause)
    except ValueError:
        return f"step {number + 1}: not a clause"
    return "the proof does not end in the empty clause"
