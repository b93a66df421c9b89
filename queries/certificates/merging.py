"""Gates proved equal by congruence closure over a circuit; each step is written as clauses of a DRAT proof."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from mmaprobe.queries.certificates.gates import FALSE, TRUE, Clause, Definition, Gates, Kind, defining_clauses, normal


class ProofText:
    """The steps of a DRAT proof, without tautologies."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, clause: Iterable[int]) -> Clause | None:
        """Append a clause without its false literals; returns the clause written, None for a tautology."""
        reduced = simplified(clause)
        if reduced is not None:
            self.lines.append(" ".join(map(str, (*reduced, 0))))
        return reduced

    def delete(self, clause: Clause | None) -> None:
        if clause is not None and len(clause) > 1:  # units stay, as checkers ignore their deletion
            self.lines.append("d " + " ".join(map(str, (*clause, 0))))

    @property
    def text(self) -> str:
        return "".join(line + "\n" for line in self.lines)


def simplified(clause: Iterable[int]) -> Clause | None:
    """A clause without repeated and false literals; None for a tautology."""
    kept = dict.fromkeys(clause)
    if TRUE in kept or any(-literal in kept for literal in kept):
        return None
    kept.pop(FALSE, None)
    return tuple(kept)


def propagated(clauses: Sequence[Clause]) -> dict[int, int]:
    """The values, 1 or -1, of the variables to which unit propagation gives a value."""
    users: dict[int, list[Clause]] = {}
    for clause in clauses:
        for literal in clause:
            users.setdefault(-literal, []).append(clause)
    values: dict[int, int] = {}
    waiting = [clause[0] for clause in clauses if len(clause) == 1]
    while waiting:
        literal = waiting.pop()
        if abs(literal) in values:
            continue
        values[abs(literal)] = 1 if literal > 0 else -1
        for clause in users.get(literal, []):
            left = [x for x in clause if values.get(abs(x)) != (-1 if x > 0 else 1)]
            if len(left) == 1:
                waiting.append(left[0])
    return values


class Merging:
    """Classes of literals proved equal, with the least variable as the representative of each.

    Whenever the inputs of two gates have become equal, the gates are proved equal and merged as well. The clauses
    written are unit-implied (RUP), if necessary after a case split on one input.
    """

    def __init__(self, gates: Gates, proof: ProofText) -> None:
        self.gates, self.proof = gates, proof
        self.parent: dict[int, int] = {}
        self.users: dict[int, list[int]] = {}
        self.waiting: list[int] = []
        self.known = TRUE  # gates up to this variable are in `users`
        self.written: set[tuple[int, Clause]] = set()
        self.introduce(written=True)

    def find(self, literal: int) -> int:
        """The representative of a literal."""
        root, sign = abs(literal), 1
        while root in self.parent:
            step = self.parent[root]
            root, sign = abs(step), sign if step > 0 else -sign
        sign = sign if literal > 0 else -sign
        return sign * root

    def representatives(self, literals: Iterable[int]) -> Clause:
        return tuple(self.find(literal) for literal in literals)

    def introduce(self, written: bool = False) -> None:
        """Register the gates made since the last call; define them in the proof, unless the formula has them
        (`written`)."""
        for variable in range(self.known + 1, self.gates.count + 1):
            definition = self.gates.definitions.get(variable)
            if definition is None:
                continue
            for literal in definition[1]:
                self.users.setdefault(abs(self.find(literal)), []).append(variable)
            if not written:
                for clause in defining_clauses(variable, *definition):
                    self.proof.add(clause)
                heapq.heappush(self.waiting, variable)
        self.known = self.gates.count

    def gate(self, kind: Kind, inputs: Iterable[int]) -> int:
        """The representative of a gate over representatives; a new gate is defined in the proof."""
        literal = self.gates.gate(kind, self.representatives(inputs))
        self.introduce()
        return self.find(literal)

    def equate(self, left: int, right: int) -> None:
        """Merge two literals whose equality the proof already implies by unit propagation."""
        left, right = self.find(left), self.find(right)
        if left == right:
            return
        if abs(left) < abs(right):
            left, right = right, left
        if left == -right:  # the formula is contradictory
            self.proof.add((left,))
            self.proof.add(())
            return
        self.proof.add((-left, right))
        self.proof.add((left, -right))
        variable = abs(left)
        self.parent[variable] = right if left > 0 else -right
        users = self.users.pop(variable, [])
        self.users.setdefault(abs(right), []).extend(users)
        for user in users:
            heapq.heappush(self.waiting, user)

    def close(self) -> None:
        """Merge all pairs of gates that have become equal."""
        while self.waiting:
            variable = heapq.heappop(self.waiting)
            while self.waiting and self.waiting[0] == variable:
                heapq.heappop(self.waiting)
            self._revisit(variable)

    def _revisit(self, variable: int) -> None:
        kind, inputs = self.gates.definitions[variable]
        reduced = self.representatives(inputs)
        form = normal(kind, reduced)
        if isinstance(form, int):
            equal = form
        else:
            sign, definition = form
            other = self.gates.table.setdefault(definition, sign * variable)
            equal = sign * other
        if self.find(equal) != self.find(variable):
            self._prove_equal(variable, self.find(equal), kind, reduced)
            self.equate(variable, equal)

    def _prove_equal(self, variable: int, equal: int, kind: Kind, inputs: Sequence[int]) -> None:
        split = next((literal for literal in inputs if abs(literal) != TRUE), TRUE)
        for clause in ((-variable, equal), (variable, -equal)):
            case = None if kind == "and" else self.proof.add((*clause, split))
            self.proof.add(clause)
            self.proof.delete(case)

    def reduced_clauses(self, variable: int) -> list[Clause]:
        """The clauses of a gate over representatives. If inputs coincide, these clauses are shorter than the gate's own
        clauses; they are then added to the proof, so that units propagate through them as through the gate."""
        kind, inputs = self.gates.definitions[variable]
        reduced = self.representatives(inputs)
        form = normal(kind, reduced)
        if isinstance(form, int):
            raise AssertionError(f"gate {variable} equals {form} and was not merged")
        sign, definition = form
        clauses = defining_clauses(sign * variable, *definition)
        shorter = definition[0] != kind or len(definition[1]) != len(inputs)
        if shorter and (variable, reduced) not in self.written:
            self.written.add((variable, reduced))
            for clause in clauses:
                self.proof.add(clause)
        return clauses

    def supposing(self, literal: int, clauses: Sequence[Clause]) -> list[Clause]:
        """The clauses by which more gates are equal if a literal is true. Inputs of an exclusive OR that then has a
        value are equal, or opposite; further gates are equal by congruence. Each clause includes the negated literal
        and is added to the proof."""
        values = propagated([*clauses, (literal,)])
        same: dict[int, int] = {}
        written = list[Clause]()

        def find(one: int) -> int:
            while abs(one) in same:
                one = same[abs(one)] * (1 if one > 0 else -1)
            return (
                one if abs(one) == TRUE or abs(one) not in values else TRUE * values[abs(one)] * (1 if one > 0 else -1)
            )

        def equate(left: int, right: int, split: int) -> None:
            if left == right or left == -right:
                return
            if abs(left) < abs(right):
                left, right = right, left
            for clause in ((-literal, -left, right), (-literal, left, -right)):
                case = None if abs(split) == TRUE else self.proof.add((*clause, split))
                if (added := self.proof.add(clause)) is not None:
                    written.append(added)
                self.proof.delete(case)
            same[abs(left)] = right if left > 0 else -right

        inside = sorted({abs(x) for clause in clauses for x in clause} & set(self.gates.definitions))
        gates = [(variable, *self.gates.definitions[variable]) for variable in inside]
        for variable, kind, inputs in gates:
            if kind == "xor" and variable in values:
                left, right = map(find, self.representatives(inputs))
                equate(left, -right * values[variable], TRUE)
        before = -1
        while before < len(same):  # a gate may come before others that make its inputs equal
            before, table = len(same), dict[Definition, int]()
            for variable, kind, inputs in gates:
                reduced = tuple(map(find, self.representatives(inputs)))
                form = normal(kind, reduced)
                equal = form if isinstance(form, int) else form[0] * table.setdefault(form[1], form[0] * variable)
                split = next((x for x in reduced if abs(x) != TRUE), TRUE)
                equate(find(variable), find(equal), TRUE if kind == "and" else split)
        return written

    def cone(self, roots: Iterable[int], cuts: set[int]) -> list[int]:
        """The variables on which literals depend, over representatives. The search stops at variables in `cuts`."""
        stack = [abs(self.find(root)) for root in roots]
        top, seen = set(stack), set(stack)
        while stack:
            variable = stack.pop()
            definition = self.gates.definitions.get(variable)
            if definition is None or (variable in cuts and variable not in top):
                continue
            for literal in definition[1]:
                child = abs(self.find(literal))
                if child not in seen:
                    seen.add(child)
                    stack.append(child)
        return sorted(seen)
