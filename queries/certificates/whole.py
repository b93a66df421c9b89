"""One formula and one proof for a question that was proved by lemmas.

The formula is the original question, without cut-points or substitutions. It has the clauses of each lemma's query, so
that every step of a lemma's proof is also a step from the whole formula. The whole proof consists of the proofs of the
lemmas in order; after the proof of a lemma come the equalities that follow from the lemma by congruence.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import NamedTuple

from pysmt.fnode import FNode

from mmaprobe.queries.certificates.bitblast import Blaster
from mmaprobe.queries.certificates.gates import FALSE, TRUE, Clause, defining_clauses
from mmaprobe.queries.certificates.merging import Merging, ProofText, simplified
from mmaprobe.queries.certificates.sat import FaultyProofError, OutOfTimeError, SatSolver, time_left
from mmaprobe.queries.solvers.contract import DEFAULT_MEMORY
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.smtmodel.base.progress import Count, Wait
from mmaprobe.smtmodel.carriers.terms import Maximum

LEMMA_SHARE = 0.25  # the largest share of the remaining time for one lemma
BRIEF = 3.0  # seconds for a lemma without cut-points


class WholeLemma(NamedTuple):
    """A pair of terms that are equal wherever the assertions hold (of two numbers with different widths, one is the
    other extended). `cuts`: terms that may be cut-points of the lemma's query. If `right` is true, the lemma is a
    claim, and `facts` are the earlier claims on which its proof rests. `cases`: for each of some words, terms that the
    word has a certain value; these values are all that the word can have. The claim is first proved for every
    combination of them."""

    left: FNode
    right: FNode
    cuts: Sequence[FNode] = ()
    facts: Sequence[FNode] = ()
    cases: Sequence[Sequence[FNode]] = ()


class WholeProof:
    """`cnf`: the assertions and the goal; `drat`: a proof that they contradict each other.

    A lemma that is not proved in its share of the time is left out of the proof (`skipped` has its position). `points`:
    terms that may be cut-points of the goal, by default the cut-points of the lemmas; `facts`: claims on which the
    goal's proof rests. `maxima`: symbols that the assertions define as the largest of some terms; symbols are proved
    equal once their terms are; `maximum`: the form of maxima in the terms. Raises OutOfTimeError, and FaultyProofError
    for a satisfiable goal.
    """

    def __init__(
        self,
        assertions: Sequence[FNode],
        goal: FNode,
        lemmas: Sequence[WholeLemma] = (),
        timeout: float | None = None,
        memory: int = DEFAULT_MEMORY,
        inputs: Sequence[FNode] = (),
        maxima: Mapping[FNode, Collection[FNode]] | None = None,
        progress: Callable[[str], None] = lambda text: None,
        maximum: Maximum = "relational",
        points: Sequence[FNode] | None = None,
        facts: Sequence[FNode] = (),
    ) -> None:
        self.maximum: Maximum = maximum
        self.query = Query(tuple(inputs), (*assertions, goal))
        self.progress = progress
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self.blaster = Blaster()
        self.formula = self.blaster.cnf([*assertions, goal])
        self.asserted = [self.blaster.truth(term) for term in assertions]
        self.proof = ProofText()
        self.merging = Merging(self.blaster.gates, self.proof)
        self.supports = {literal: self._support(literal) for literal in self.asserted}
        self.maxima = dict(maxima or {})
        self.skipped: list[int] = []
        self.claimed: dict[FNode, int] = {}
        with SatSolver(memory=memory) as self.solver:
            if points is None:
                points = [term for lemma in lemmas for term in lemma.cuts]
            self._prove(lemmas, self.blaster.truth(goal), points, facts)

    def _prove(self, lemmas: Sequence[WholeLemma], goal: int, points: Sequence[FNode], facts: Sequence[FNode]) -> None:
        """Prove the lemmas, except those left out (`skipped`), and then the goal."""
        for position, lemma in enumerate(lemmas):
            self.progress(Count(position, len(lemmas), "lemmas", " of the whole proof"))
            self._merge_maxima()
            proved = self._claim(lemma) if lemma.right.is_true() else self._lemma(lemma, BRIEF if lemma.cuts else None)
            if not proved:
                self.skipped.append(position)
        self._merge_maxima()
        self.progress(Wait("whole proof: the goal", self._remaining()))
        cuts = self._cut_variables(points, [[goal]])
        known = self._known(facts)
        if not (cuts and self._attempt(goal, cuts, self._share(), facts=known)):
            for position in [position for position in self.skipped if lemmas[position].cuts]:
                self.progress(Wait(f"whole proof: lemma {position + 1} again", self._remaining()))
                if not lemmas[position].right.is_true() and self._lemma(lemmas[position]._replace(cuts=()), None):
                    self.skipped.remove(position)
            if FALSE not in self.asserted and not any(
                self._refute(goal, set(), self._remaining(), unmerged, known) for unmerged in (False, True)
            ):
                raise FaultyProofError("the goal of the whole question is satisfiable")
        self.proof.add(())

    @cached_property
    def cnf(self) -> str:
        return self.formula.text

    @cached_property
    def drat(self) -> str:
        return self.proof.text

    def _remaining(self) -> float | None:
        return time_left(self.deadline, "the proof of the whole question")

    def _share(self) -> float | None:
        limit = self._remaining()
        return None if limit is None else limit * LEMMA_SHARE

    def _known(self, facts: Sequence[FNode]) -> list[int]:
        """The literals of claims that have been proved."""
        return [self.claimed[fact] for fact in facts if fact in self.claimed]

    def _claim(self, lemma: WholeLemma) -> bool:
        """Prove a claim from its facts; once proved, the claim is a fact. Returns whether a proof was found."""
        literal, facts = self.blaster.truth(lemma.left), self._known(lemma.facts)
        facts += self._cases(literal, lemma, facts) if lemma.cases else []
        self.merging.introduce()
        self.merging.close()
        words = {value.arg(0) for values in lemma.cases for value in values}
        cuts = self._cut_variables([cut for cut in lemma.cuts if cut not in words], [[literal]])
        proved = self._attempt(-literal, cuts, self._share(), facts=facts)
        if proved:
            self.claimed[lemma.left] = literal
        return proved

    def _cases(self, literal: int, lemma: WholeLemma, facts: Sequence[int]) -> list[int]:
        """For each case in which a claim is proved, the literal that the case implies the claim."""
        proved = list[int]()
        for values in product(*lemma.cases):
            case = self.blaster.gates.disjunction([literal, *(-self.blaster.truth(value) for value in values)])
            self.merging.introduce()
            self.merging.close()
            if self._attempt(-case, self._cut_variables(lemma.cuts, [[case]]), self._share(), facts=facts):
                proved.append(case)
        return proved

    def _lemma(self, lemma: WholeLemma, brief: float | None) -> bool:
        """Prove two terms equal and merge them. A proof with cut-points is tried first, then one without for at most
        `brief` seconds. Returns whether a proof was found."""
        first, second = (self.blaster.bits(term) for term in (lemma.left, lemma.right))
        self.merging.introduce()
        self.merging.close()
        for sides in _widened(first, second):
            if self._agree(sides):
                return True
            if self._equal(sides, self._cut_variables(lemma.cuts, sides), brief):
                return True
        return False

    def _equal(self, sides: Sequence[Sequence[int]], cuts: set[int], brief: float | None) -> bool:
        gate, pairs = self.merging.gate, list(zip(*sides, strict=True))
        differ = -gate("and", [-gate("xor", pair) for pair in pairs])
        self.merging.close()
        share = self._share()
        limits = [limit for limit in (share, brief) if limit is not None]
        proved = cuts and self._attempt(differ, cuts, share)
        if not proved and not any(
            self._attempt(differ, set(), min(limits, default=None), unmerged) for unmerged in (False, True)
        ):
            return False
        self.merging.equate(differ, FALSE)
        for pair in pairs:
            self.merging.equate(*pair)
        self.merging.close()
        return True

    def _merge_maxima(self) -> None:
        """Prove equal all maxima whose terms are proved equal."""
        known: dict[frozenset[Clause], FNode] = {}
        for symbol, terms in self.maxima.items():
            key = frozenset(self.merging.representatives(self.blaster.bits(term)) for term in terms)
            other = known.setdefault(key, symbol)
            sides = [self.blaster.bits(side) for side in (other, symbol)]
            if not self._agree(sides):
                self._equal(sides, {abs(literal) for bits in key for literal in bits} - {TRUE}, BRIEF)

    def _attempt(
        self, literal: int, cuts: set[int], timeout: float | None, unmerged: bool = False, facts: Sequence[int] = ()
    ) -> bool:
        try:
            return self._refute(literal, cuts, timeout, unmerged, facts)
        except OutOfTimeError:
            self._remaining()
            return False

    def _agree(self, sides: Sequence[Sequence[int]]) -> bool:
        return self.merging.representatives(sides[0]) == self.merging.representatives(sides[1])

    def _cut_variables(self, cuts: Sequence[FNode], sides: Sequence[Sequence[int]]) -> set[int]:
        """The variables of the cut-points, without those of the terms to be proved equal."""
        known = [self.blaster.memo[term] for term in cuts if term in self.blaster.memo]
        variables = {abs(self.merging.find(literal)) for bits in known for literal in bits}
        return variables - {abs(self.merging.find(literal)) for bits in sides for literal in bits} - {TRUE}

    def _refute(
        self, literal: int, cuts: set[int], timeout: float | None, unmerged: bool = False, facts: Sequence[int] = ()
    ) -> bool:
        """Prove a literal false from its gates, from assertions about their inputs, and from facts. `unmerged`: whether
        the assertions as they were written are used too, since a merged gate no longer implies the facts that proved
        the merge. Returns whether the literal is false; raises OutOfTimeError."""
        literal = self.merging.find(literal)
        if literal == FALSE:
            return True
        written = self._unmerged() if unmerged else []
        clauses = self._clauses([literal, *facts], cuts, [abs(x) for clause in written for x in clause]) + written
        if (literal,) not in clauses:
            clauses.append((literal,))
        supposed = self.merging.supposing(literal, clauses) if facts else []
        clauses += supposed
        names: dict[int, int] = {}
        renamed = [[names.setdefault(abs(x), len(names) + 1) * (1 if x > 0 else -1) for x in c] for c in clauses]
        steps = self.solver.refute(renamed, timeout)
        if steps is None:
            return False
        original = {name: variable for variable, name in names.items()}
        _write_steps(
            self.proof,
            (
                (deletion, (*(original[abs(x)] * (1 if x > 0 else -1) for x in clause), -literal))
                for deletion, clause in steps
            ),
        )
        for clause in supposed:
            self.proof.delete(clause)
        return True

    def _unmerged(self) -> list[Clause]:
        """The clauses of the assertions in the formula, and the proved equalities of their gates."""
        clauses: list[Clause] = [(literal,) for literal in self.asserted]
        stack = [abs(literal) for literal in self.asserted]
        seen = set(stack)
        while stack:
            variable = stack.pop()
            same = self.merging.find(variable)
            clauses += [(-variable, same), (variable, -same)]
            if (definition := self.blaster.gates.definitions.get(variable)) is not None:
                clauses += defining_clauses(variable, *definition)
                below = {abs(literal) for literal in definition[1]} - seen
                seen |= below
                stack += below
        return [clause for clause in map(simplified, clauses) if clause is not None]

    def _clauses(self, literals: Sequence[int], cuts: set[int], more: Sequence[int] = ()) -> list[Clause]:
        """The clauses of the cones of a literal and of facts, with the assertions that share an input with these cones.
        `more`: variables whose gates are included."""
        roots, left = list(literals), list(self.asserted)
        while True:
            cone = self.merging.cone([*roots, *more], cuts)
            inside = set(cone)
            met = [asserted for asserted in left if self._touches(asserted, inside)]
            if not met:
                break
            roots += met
            left = [asserted for asserted in left if asserted not in met]
        tops = {abs(self.merging.find(root)) for root in roots}
        clauses: list[Clause] = [(self.merging.find(root),) for root in roots[1:]]
        for variable in cone:
            if variable in self.blaster.gates.definitions and (variable in tops or variable not in cuts):
                clauses += self.merging.reduced_clauses(variable)
        reduced = [simplified(clause) for clause in clauses]
        return [clause for clause in reduced if clause is not None]

    def _touches(self, asserted: int, variables: set[int]) -> bool:
        return any(abs(self.merging.find(variable)) in variables for variable in self.supports[asserted])

    def _support(self, literal: int) -> set[int]:
        """The inputs on which a literal depends."""
        return {x for x in self.merging.cone([literal], set()) if x not in self.blaster.gates.definitions}


def _write_steps(proof: ProofText, steps: Iterable[tuple[bool, Clause]]) -> None:
    """Write the steps of a proof, then delete all clauses written except the last, which the proof proves."""
    alive: dict[Clause, list[Clause]] = {}
    written: Clause | None = None
    for deletion, clause in steps:
        key = tuple(sorted(clause))
        if deletion:
            if alive.get(key):  # premises, which this proof did not write, are not deleted
                proof.delete(alive[key].pop())
            continue
        written = proof.add(clause)
        if written is not None:
            alive.setdefault(key, []).append(written)
    for key, copies in alive.items():
        for place, copy in enumerate(copies):
            if not (place == 0 and key == tuple(sorted(clause))):
                proof.delete(copy)


def _widened(left: list[int], right: list[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Two numbers at one width: the narrower one sign-extended, or zero-extended."""
    width = max(len(left), len(right))
    for fill in (-1, 0) if len(left) != len(right) else (0,):
        first, second = (bits + [bits[-1] if fill else FALSE] * (width - len(bits)) for bits in (left, right))
        yield first, second
