"""All the problems of a property, one after another within one limit of time.

A model that is monotonic in one product of a step, and whose result does not depend on the order of the products in
that step, is monotonic in each of them: the order is proved once, and the other products need no proof of their own.
A model whose parts are sign-symmetric, whatever the sign of a zero or NaN between them, is so as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from queries.equality.lemmas import Proof, Verdict
from queries.equality.staged import prove
from queries.properties.forms import SAME, by_rewriting, is_one_expression
from queries.properties.monotonic import prove_monotonic
from queries.properties.signs import negated_parts
from queries.properties.statements import Monotonic, Negated, exchangeable, symmetries_of
from queries.search.contradiction import check_problems
from queries.search.distinguish import Options
from queries.search.problem import Problem
from smtmodel.progress import Pieces

STEPS = "products of a step whose order is of no effect stand for one another (queries/properties/proving.py)."
#: why several proofs together give a property
ARGUMENTS = {
    "order-independent": "an exchange of two products and a rotation of all generate every order.",
    "sign-symmetric": "the same value with the other sign goes from part to part, and the signs of zeros and NaNs "
    "between parts are of no effect (queries/properties/signs.py).",
    "zero-padding": "one proof for each shorter length.",
    "monotonic-product": f"one proof for each product raised; {STEPS}",
    "monotonic": f"one proof of the addend raised, and one for each product raised; {STEPS}",
}


MANY = 32  # products above which a normal form is looked for first: stages of so long a sum take long


def proofs_of(problems: Sequence[Problem], options: Options, confirm: bool, by_form: bool = True) -> list[Proof]:
    """The first difference, or an interrupt, ends it. What is proved by the order of products stands for the problems
    about these. `by_form`: models whose expressions are one, or have one normal form, need no other proof. Raises
    FaultError where an evaluation contradicts what was proved."""
    if by_form and problems and all(map(is_one_expression, problems)):
        return [Proof(problem, "equal", why=SAME) for problem in problems]
    proofs = _Proving(options, confirm, by_form).run(problems)
    if verdict_of(proofs) == "equal" and not any(proof.interrupted for proof in proofs):
        check_problems(problems)
    return proofs


def verdict_of(proofs: Sequence[Proof]) -> Verdict:
    """What several proofs say together: one difference refutes, and all must be proved."""
    verdicts = {proof.verdict for proof in proofs}
    return "different" if "different" in verdicts else "unknown" if "unknown" in verdicts else "equal"


class _Proving:
    def __init__(self, options: Options, confirm: bool, by_form: bool) -> None:
        self.options, self.confirm, self.by_form = options, confirm, by_form
        self.proofs: list[Proof] = []
        self.spent = 0.0
        self.alike: dict[Problem, bool] = {}

    def run(self, problems: Sequence[Problem]) -> list[Proof]:
        pieces, reached = Pieces(self.options.progress, "parts"), list(problems[:1])
        self.options = replace(self.options, progress=pieces)
        try:
            for problem in pieces.of(problems):
                reached = [problem]
                if isinstance(problem, Monotonic) and self._by_symmetry(problem):
                    continue
                if isinstance(problem, Negated) and self._by_parts(problem):
                    continue
                proof = self._prove(problem)
                self._add(proof)
                if proof.verdict == "different":
                    break
        except KeyboardInterrupt:
            if not any(proof.interrupted for proof in self.proofs):  # between two proofs: what is left is not proved
                self.proofs += [Proof(problem, interrupted=True) for problem in reached]
        return self.proofs

    def _prove(self, problem: Problem) -> Proof:
        """An interrupted proof is kept, and ends the work. Raises KeyboardInterrupt."""
        left = self.options.timeout
        if left is not None:
            left = max(0.0, left - self.spent)
        rest = replace(self.options, timeout=left)
        many = self.by_form and problem.length > MANY
        if many and (found := by_rewriting(problem, rest)) is not None:
            return found
        proof = (
            prove_monotonic(problem, rest, self.confirm)
            if isinstance(problem, Monotonic)
            else prove(problem, rest, self.confirm)
        )
        self.spent += proof.seconds
        if proof.interrupted:
            self._add(proof)
            raise KeyboardInterrupt
        if proof.verdict == "unknown" and self.by_form and not many:
            return by_rewriting(problem, self.options) or proof
        return proof

    def _by_parts(self, problem: Negated) -> bool:
        """Whether a model's symmetry follows from that of its parts. A part that is not symmetric says nothing."""
        found = []
        for part in negated_parts(problem):
            found.append(self._prove(part))
            if found[-1].verdict != "equal":
                return False
        for proof in found:
            self._add(proof)
        return bool(found)

    def _add(self, proof: Proof) -> None:
        self.proofs.append(proof)
        self.options.progress("")

    def _by_symmetry(self, problem: Monotonic) -> bool:
        """Whether another product of the same step has been proved, and the order of that step is of no effect."""
        group = next((group for group in exchangeable(problem.left) if problem.raised in group), ())
        proved = any(
            isinstance(proof.problem, Monotonic) and proof.problem.raised in group and proof.verdict == "equal"
            for proof in self.proofs
        )
        if not proved or problem.inputs.zero_terms or problem.left != problem.right:
            return False
        orders = symmetries_of(problem.left, group)
        for order in (replace(order, inputs=problem.inputs) for order in orders):
            if order not in self.alike:
                proof = self._prove(order)
                self.alike[order] = proof.verdict == "equal"
                if self.alike[order]:
                    self._add(proof)
            if not self.alike[order]:
                return False
        return bool(orders)
