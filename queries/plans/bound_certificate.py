"""Certificates of the error bounds of a plan."""

from __future__ import annotations

from pathlib import Path

from mmaprobe.queries.certificates.asked import of_bounded_plan
from mmaprobe.queries.certificates.certificate import Certificate, CertificateError
from mmaprobe.queries.certificates.logged import certify_theorems
from mmaprobe.queries.certificates.names import PLAN
from mmaprobe.queries.certificates.plan_files import plan_texts
from mmaprobe.queries.kernel.blocks import InLargest
from mmaprobe.queries.kernel.enclosures import Enclosed
from mmaprobe.queries.kernel.largest import OfLargest
from mmaprobe.queries.kernel.steps import PlanAt
from mmaprobe.queries.plans.bound_report import PlanBound
from mmaprobe.queries.search.distinguish import Options


def certify_plan_bound(bound: PlanBound, directory: Path, options: Options) -> list[Certificate]:
    """Write the certificate of the bounds of a plan, for each K and for any. Raises CertificateError if nothing is
    proved or a proof fails, and OutOfTimeError."""
    theorems = [*bound.theorems, *bound.in_largest]
    if not theorems:
        raise CertificateError("only what is proved has a certificate")
    about = of_bounded_plan(bound.plan, [_length(theorem.goal) for theorem in theorems])
    manifest = certify_theorems(theorems, about, plan_texts({PLAN: bound.plan}), directory, options)
    return [(directory, manifest)]


def _length(goal: object) -> int | None:
    """The K that a bound of a plan is about; None: any."""
    if isinstance(goal, InLargest):
        return goal.length
    assert isinstance(goal, Enclosed | OfLargest)
    assert isinstance(goal.unit, PlanAt)
    return goal.unit.length
