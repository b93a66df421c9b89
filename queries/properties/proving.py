"""The proof of a property: all its problems one after another, within one time limit.

A model that is monotonic in one product of a step is monotonic in every product of the step if the order of these
products has no effect: the order is proved once, and the other products need no proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from mmaprobe.documents.parts import Verdict
from mmaprobe.queries.equality.staged import prove
from mmaprobe.queries.equality.sweeping import prove_design
from mmaprobe.queries.kernel.properties.together import ORDER, each_part, every_order, raised_elsewhere
from mmaprobe.queries.kernel.questions.designs import Designed
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import (
    Monotonic,
    Negated,
    Reordered,
    exchangeable,
    problems_of,
    subject_of,
    symmetries_of,
)
from mmaprobe.queries.kernel.terms.same import SidesAgree
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.properties.forms import by_form
from mmaprobe.queries.properties.monotonic import prove_monotonic
from mmaprobe.queries.properties.signs import by_nodes
from mmaprobe.queries.search.contradiction import check_problems
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.solvers.store import result_key
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.smtmodel.base.errors import FaultError
from mmaprobe.smtmodel.base.progress import Pieces
from mmaprobe.smtmodel.evaluate.identity import identity_text


def proofs_of(problems: Sequence[Problem], options: Options, confirm: bool) -> list[Proof]:
    """The proofs of `problems`; the first difference, or an interrupt, ends the work. A product gets no proof of its
    own if proofs of another product's rise and of the order of products cover this product. Raises FaultError if an
    evaluation contradicts a proof."""
    proofs = _Proving(options, confirm).run(problems)
    evaluated = not all(proof.theorem is not None and proof.theorem.rule == "one_expression" for proof in proofs)
    if evaluated and verdict_of(proofs) == "equal" and not any(proof.interrupted for proof in proofs):
        _check_once(problems, options)
    return proofs


def _check_once(problems: Sequence[Problem], options: Options) -> None:
    """Compare proved problems with evaluations. Where only stored answers are used, nothing is evaluated again that
    this program has evaluated before: the inputs would be the same."""
    if options.store is None:
        check_problems(problems)
        return
    key = result_key("evaluated", problems=[identity_text(problem) for problem in problems])
    if not options.stored or options.store.find_result(key) is None:
        check_problems(problems)
        options.store.record_result(key, {"verdict": "equal"})


def verdict_on(wanted: str, proofs: Sequence[Proof]) -> Verdict:
    """The verdict on a property. Raises FaultError if the verdict is "equal" without a theorem."""
    verdict = verdict_of(proofs)
    if verdict == "equal":
        established_theorem(wanted, proofs)
    return verdict


def established_theorem(wanted: str, proofs: Sequence[Proof]) -> Theorem:
    """The theorem for the verdict "equal": two models agree, or one model has the property. Raises FaultError if the
    proofs do not give this theorem."""
    first, known = proofs[0].problem, [proof.theorem for proof in proofs if proof.theorem is not None]
    if wanted == "equal":
        (theorem,) = known
        return theorem
    model = subject_of(wanted, first)
    inputs, compare = first.inputs, first.compare
    try:
        if wanted == ORDER:
            return every_order(model, inputs, compare, known)
        own = {proof.problem: proof.theorem for proof in proofs}
        problems = problems_of(wanted, model, inputs, compare)
        parts = [own[one] if one in own else _elsewhere(one, proofs) for one in problems]
        return each_part(wanted, model, inputs, compare, [part for part in parts if part is not None])
    except RuleError as error:
        raise FaultError(f"{model.reference}: called {wanted} without a theorem that says so: {error}") from None


def _elsewhere(problem: Problem, proofs: Sequence[Proof]) -> Theorem | None:
    """The theorem that the result does not fall when a product rises, derived from the theorem about another product
    and the orders that are known to have no effect; None if the theorem does not follow."""
    known = [proof.theorem for proof in proofs if proof.theorem is not None]
    orders = [one for one in known if isinstance(one.goal, SidesAgree) and isinstance(one.goal.problem, Reordered)]
    if not isinstance(problem, Monotonic):
        return None
    for one in known:
        with suppress(RuleError):
            return raised_elsewhere(problem, one, orders)
    return None


def verdict_of(proofs: Sequence[Proof]) -> Verdict:
    """The verdict of several proofs: "different" if one proof is, "equal" if all are; else, and without proofs,
    "unknown"."""
    verdicts = {proof.verdict for proof in proofs}
    return "different" if "different" in verdicts else "equal" if verdicts == {"equal"} else "unknown"


class _Proving:
    def __init__(self, options: Options, confirm: bool) -> None:
        self.options, self.confirm = options, confirm
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
                proof = self._prove(problem)
                self._add(proof)
                if proof.verdict == "different":
                    break
        except KeyboardInterrupt:
            if not any(proof.interrupted for proof in self.proofs):  # else an open proof stands for the problem
                self.proofs += [Proof(problem, interrupted=True) for problem in reached]
            elif verdict_of(self.proofs) == "equal":  # what was interrupted is proved: the next problem is open
                known = {proof.problem for proof in self.proofs}
                rest = [problem for problem in problems[problems.index(reached[0]) :] if problem not in known]
                self.proofs += [Proof(problem, interrupted=True) for problem in rest[:1]]
        return self.proofs

    def _prove(self, problem: Problem) -> Proof:
        """The proof of a problem within the time that remains. An interrupted proof is kept. Raises KeyboardInterrupt
        after it, and FaultError for a proof of "equal" without a theorem."""
        left = self.options.timeout
        if left is not None:
            left = max(0.0, left - self.spent)
        rest = replace(self.options, timeout=left)
        if isinstance(problem, Designed):
            proof = prove_design(problem, rest, self.confirm)
        elif isinstance(problem, Negated):
            proof = by_nodes(problem, rest, self.confirm) or prove(problem, rest, self.confirm)
        elif isinstance(problem, Monotonic):
            proof = prove_monotonic(problem, rest, self.confirm)
        else:
            proof = by_form(problem, rest, self.confirm) or prove(problem, rest, self.confirm)
        self.spent += proof.seconds
        if proof.interrupted:
            self._add(proof)
            raise KeyboardInterrupt
        return proof

    def _add(self, proof: Proof) -> None:
        self.proofs.append(proof)
        self.options.progress("")

    def _by_symmetry(self, problem: Monotonic) -> bool:
        """Whether the proof follows from the proof of another product of the same step, and from proofs that the order
        of the step's products has no effect."""
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
        return _elsewhere(problem, self.proofs) is not None
