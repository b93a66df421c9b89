"""Gates with structural hashing, and the clauses that define them.

A literal is a nonzero integer as in DIMACS; variable 1 is true. Four kinds of gate suffice for every operator: AND (two
or more inputs), XOR (two), MUX (selector, then, otherwise) and MAJ (majority of three, the carry of a full adder). No
library of circuits is used: merging.py compares gates by kind, and whoever trusts a certificate has to read this file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

Kind = Literal["and", "xor", "mux", "maj"]
Clause = tuple[int, ...]
Definition = tuple[Kind, Clause]

TRUE, FALSE = 1, -1


class Gates:
    """A circuit: `definitions` maps a gate's variable to the gate's kind and inputs, whose variables are all lower."""

    def __init__(self) -> None:
        self.count = TRUE
        self.definitions: dict[int, Definition] = {}
        self.table: dict[Definition, int] = {}

    def fresh(self) -> int:
        """A free variable."""
        self.count += 1
        return self.count

    def gate(self, kind: Kind, inputs: Iterable[int]) -> int:
        """The literal of a gate: a constant, an input, a gate that exists, or a new one."""
        form = normal(kind, inputs)
        if isinstance(form, int):
            return form
        sign, definition = form
        literal = self.table.get(definition)
        if literal is None:
            literal = self.table[definition] = self.fresh()
            self.definitions[literal] = definition
        return sign * literal

    def conjunction(self, inputs: Iterable[int]) -> int:
        return self.gate("and", inputs)

    def disjunction(self, inputs: Iterable[int]) -> int:
        return -self.gate("and", [-literal for literal in inputs])

    def xor(self, left: int, right: int) -> int:
        return self.gate("xor", (left, right))

    def mux(self, selector: int, then: int, otherwise: int) -> int:
        return self.gate("mux", (selector, then, otherwise))

    def add(self, left: Sequence[int], right: Sequence[int], carry: int = FALSE) -> list[int]:
        """The bits of a ripple-carry sum, lowest first; the last carry has no gate."""
        total: list[int] = []
        for a, b in zip(left, right, strict=True):
            total.append(self.xor(self.xor(a, b), carry))
            if len(total) < len(left):
                carry = self.gate("maj", (a, b, carry))
        return total

    def clauses(self) -> list[Clause]:
        """The clauses of every gate, in the order of the gates' variables."""
        every: list[Clause] = [(TRUE,)]
        for variable, definition in self.definitions.items():
            every += defining_clauses(variable, *definition)
        return every


def normal(kind: Kind, inputs: Iterable[int]) -> int | tuple[int, Definition]:
    """The normal form of a gate: a literal that it equals, or its sign and definition."""
    literals = tuple(inputs)
    if kind == "and":
        return _normal_and(literals)
    if kind == "xor":
        return _normal_xor(*literals)
    return _normal_mux(*literals) if kind == "mux" else _normal_maj(literals)


def _normal_and(inputs: Clause) -> int | tuple[int, Definition]:
    kept = set(inputs)
    kept.discard(TRUE)
    if FALSE in kept or any(-literal in kept for literal in kept):
        return FALSE
    if len(kept) < 2:
        return kept.pop() if kept else TRUE
    return 1, ("and", tuple(sorted(kept, key=lambda literal: (abs(literal), literal))))


def _normal_xor(left: int, right: int) -> int | tuple[int, Definition]:
    sign = (1 if left > 0 else -1) * (1 if right > 0 else -1)
    low, high = sorted((abs(left), abs(right)))
    if low == high:
        return FALSE * sign
    if low == TRUE:
        return -high * sign
    return sign, ("xor", (low, high))


def _negated(gate: int | tuple[int, Definition]) -> int | tuple[int, Definition]:
    return -gate if isinstance(gate, int) else (-gate[0], gate[1])


def _normal_mux(selector: int, then: int, otherwise: int) -> int | tuple[int, Definition]:
    if selector < 0:
        selector, then, otherwise = -selector, otherwise, then
    if selector == TRUE or then == otherwise:
        return then
    if then == -otherwise:
        return _normal_xor(selector, otherwise)
    if then in (TRUE, selector):
        return _negated(_normal_and((-selector, -otherwise)))
    if then in (FALSE, -selector):
        return _normal_and((-selector, otherwise))
    if otherwise in (FALSE, selector):
        return _normal_and((selector, then))
    if otherwise in (TRUE, -selector):
        return _negated(_normal_and((selector, -then)))
    if then < 0:
        return -1, ("mux", (selector, -then, -otherwise))
    return 1, ("mux", (selector, then, otherwise))


def _normal_maj(inputs: Clause) -> int | tuple[int, Definition]:
    a, b, c = sorted(inputs, key=abs)
    if a == b or a == -c:
        return b
    if a == -b or b == c:
        return c if a == -b else b
    if b == -c:
        return a
    if a == FALSE:
        return _normal_and((b, c))
    if a == TRUE:
        return _negated(_normal_and((-b, -c)))
    if (a < 0) + (b < 0) + (c < 0) >= 2:
        return -1, ("maj", (-a, -b, -c))
    return 1, ("maj", (a, b, c))


def defining_clauses(output: int, kind: Kind, inputs: Clause) -> list[Clause]:
    """The clauses of output = kind(inputs). The output is the first literal of each clause, and the clauses with a
    positive output precede the others, so that for a fresh output each clause is a definition in the sense of DRAT (RAT
    on its first literal)."""
    if kind == "and":
        return [(output, *(-literal for literal in inputs)), *((-output, literal) for literal in inputs)]
    if kind == "xor":
        a, b = inputs
        return [(output, -a, b), (output, a, -b), (-output, a, b), (-output, -a, -b)]
    a, b, c = inputs
    if kind == "mux":
        # (output, -b, -c) and (-output, b, c) are implied; through these, units propagate where both branches agree
        positive, negative = [(output, -a, -b), (output, a, -c)], [(-output, -a, b), (-output, a, c)]
        return [*positive, (output, -b, -c), *negative, (-output, b, c)]
    positive = [(output, -a, -b), (output, -a, -c), (output, -b, -c)]
    return [*positive, (-output, a, b), (-output, a, c), (-output, b, c)]
