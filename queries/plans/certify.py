"""Certificates that two plans are equal, or that they differ on an input; and of the error bounds of a plan."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from mmaprobe.queries.certificates.asked import length_of, of_bounded_plan, of_plans, part_data
from mmaprobe.queries.certificates.certificate import Certificate, write_certificate
from mmaprobe.queries.certificates.logged import certify_theorems
from mmaprobe.queries.certificates.names import LEFT_PLAN, PLAN, PLANS, RIGHT_PLAN, WITNESS
from mmaprobe.queries.certificates.plan_files import plan_texts
from mmaprobe.queries.certificates.questions import document_texts
from mmaprobe.queries.certificates.sat import CertificateError
from mmaprobe.queries.equality.certify import wholes_of
from mmaprobe.queries.kernel.equality.plan_units import AtLength, Part, Steps, Tails, units_of
from mmaprobe.queries.kernel.equality.plans import PlansAgree
from mmaprobe.queries.kernel.equality.stages import same_steps
from mmaprobe.queries.kernel.questions.problem import Problem, free_values
from mmaprobe.queries.kernel.terms.same import SidesAgree
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.plans.bound_report import PlanBound
from mmaprobe.queries.plans.equal import PlanProof
from mmaprobe.queries.plans.invariant import Invariance
from mmaprobe.queries.search.distinguish import Options


def certify_plans(proof: PlanProof, directory: Path, options: Options) -> list[Certificate]:
    """Write the certificate that two plans are equal, or that they differ on an input. Raises CertificateError (with
    the reason) if there is none, and OutOfTimeError."""
    if proof.verdict == "different":
        return certify_difference(proof, directory, options)
    theorem = proof.theorem
    if proof.verdict != "equal" or theorem is None:
        raise CertificateError()
    goal = theorem.goal
    assert isinstance(goal, PlansAgree)
    texts = plan_texts({LEFT_PLAN: goal.left, RIGHT_PLAN: goal.right})
    solved = [one.goal.problem for one in theorem.walk() if isinstance(one.goal, SidesAgree)]
    parts = [part_data(goal.left, goal.right, _part(goal, theorem, problem)) for problem in solved]
    texts |= document_texts(PLANS, {"length": goal.length, "multiples": goal.multiples, "parts": parts})
    wholes, rest = wholes_of([theorem], proof.proofs, options)
    return certify_theorems([theorem], of_plans(goal, solved), texts, directory, rest, wholes)


def certify_invariance(found: Invariance, directory: Path, options: Options) -> list[Certificate]:
    """Write the certificate of each proof that two plans of a map are equal, in a folder of its own, or of two plans
    that differ. No certificate is about which element has which plan: the map says this. Raises as `certify_plans`,
    also where no two plans had to be compared."""
    if found.difference is not None:
        return certify_difference(found.difference[0], directory, options)
    proofs = [proof for proof in found.proofs if proof.verdict == "equal"]
    if not proofs:
        raise CertificateError("the map has one plan for each K: nothing was to be proved")
    return [
        made
        for number, proof in enumerate(proofs, 1)
        for made in certify_plans(proof, directory / f"{number:0{len(str(len(proofs)))}}", options)
    ]


def _part(goal: PlansAgree, theorem: Theorem, problem: Problem) -> Part:
    """The part of two plans whose units a problem is about. Raises CertificateError."""
    units = problem.left.unit, problem.right.unit
    for one in theorem.walk():
        given = one.arguments
        parts: list[Part] = []
        if one.rule == same_steps.__name__:
            parts.append(Steps(given["one"], given["other"]))  # type: ignore[arg-type]  # the rule takes two stages
        elif isinstance(length := given.get("length"), int):
            parts += [AtLength(length), Tails(length)]
        for part in parts:
            with suppress(RuleError):
                if units_of("certificate", goal.left, goal.right, part) == units:
                    return part
    raise CertificateError("what solvers proved is about no part of the plans")


def certify_difference(proof: PlanProof, directory: Path, options: Options) -> list[Certificate]:
    """Write the certificate that two plans differ: an input, which the checker evaluates again. Raises CertificateError
    without an input, or if a plan cannot be written as a file."""
    problem, witness = proof.problem, proof.witness
    if problem is None or witness is None:
        raise CertificateError("no input was found")
    values = free_values(problem.layout, (), witness.operands.every)
    length = problem.left.length
    document = {"property": "equal", "length": length, "places": problem.places, "values": values}
    plans = plan_texts({LEFT_PLAN: proof.left, RIGHT_PLAN: proof.right})
    return write_certificate(directory, options, document_texts(WITNESS, document) | plans)


def certify_plan_bound(bound: PlanBound, directory: Path, options: Options) -> list[Certificate]:
    """Write the certificate of the bounds of a plan, for each K asked and for any K. Raises CertificateError if nothing
    is proved or a proof fails, and OutOfTimeError."""
    theorems = [*bound.theorems, *bound.in_largest]
    if not theorems:
        raise CertificateError()
    about = of_bounded_plan(bound.plan, [length_of(theorem.goal) for theorem in theorems])
    return certify_theorems(theorems, about, plan_texts({PLAN: bound.plan}), directory, options)
