"""Claims about algorithms: decided by one input, or by the theorem that no input decides them."""

from __future__ import annotations

import ast
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from mmaprobe.documents.parts import ABSENT
from mmaprobe.documents.verify import Shares
from mmaprobe.hypotheses.claim import Claim, Largest
from mmaprobe.hypotheses.claim_file import Statement
from mmaprobe.queries.certificates.certificate import Certificate, write_certificate
from mmaprobe.queries.certificates.claim_files import claim_texts
from mmaprobe.queries.certificates.names import WITNESS
from mmaprobe.queries.certificates.questions import document_texts
from mmaprobe.queries.claims.outcome import Contradiction, Outcome, Verdict
from mmaprobe.queries.claims.samples import claim_rows
from mmaprobe.queries.claims.vectors import ClaimInput
from mmaprobe.queries.kernel.bounds.shares import Apart
from mmaprobe.queries.kernel.bounds.unit_shares import compared_parts, linear_in_terms, share_claim
from mmaprobe.queries.kernel.questions.problem import free_values
from mmaprobe.queries.kernel.theorem import RuleError, Theorem, is_theorem
from mmaprobe.queries.search.contradiction import SEED, row_text
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.scene import evaluate_claim
from mmaprobe.queries.search.witness import Row
from mmaprobe.smtmodel.algorithms.assertion import Quantifier

CHECKED, LATE = 4096, 64  # inputs evaluated to check a verdict by a theorem; LATE: once the time is over
#: quantifier -> the verdict if an input decides, and the verdict if no input does
DECIDED: dict[Quantifier, tuple[Verdict, Verdict]] = {"all": ("refuted", "holds"), "exists": ("holds", "refuted")}


@dataclass
class AlgorithmOutcome(Outcome[Claim]):
    """`row`: the input that decides, replayed, in the order of the claim's layout; `within`: theorems that bound the
    errors or the difference, which the claim compares with the sum of magnitudes, by a share of this sum; `reached`:
    the largest such share that an input was found to have, apart from the input that decides; `worst`: an input with
    the largest share of one search; `late`: the work ended before it was known that no theorem of
    such a share is proved."""

    row: Row | None = None
    within: list[Theorem] = field(default_factory=list)
    reached: Fraction | None = None
    worst: Row | None = None
    late: bool = False

    @property
    def verdict(self) -> Verdict:
        """The verdict by the theorem, or by the input."""
        by_input, otherwise = DECIDED[self.claim.quantifier]
        return by_input if self.row is not None else otherwise if self.proved else "unknown"

    def contradiction(self, late: bool) -> Contradiction | None:
        """An input that decides, where the verdict is that no input does."""
        if self.row is not None:
            return None
        rows = claim_rows(self.claim, LATE if late else CHECKED, SEED)
        hits = np.flatnonzero(evaluate_claim(self.claim, rows, compared_with_magnitudes(self.claim)).deciding)
        return (row_text(self.claim.layout, rows[hits[0]].tolist()), "the opposite") if len(hits) else None

    @property
    def input(self) -> ClaimInput | None:
        """The input that decides; for a claim about several numbers of products, with the claim about the number that
        this input has."""
        if self.row is None:
            return None
        several = self.claim.assertion.most is not None
        return ClaimInput(self.claim.at(len(self.row) // 2) if several else self.claim, self.row)

    def known(self, claim: Statement) -> list[Row]:
        if not isinstance(claim, Claim):
            return []
        one, other = self.claim.shape, claim.shape
        alike = (one.factors, one.addend) == (other.factors, other.addend)
        return [row for row in (self.row, self.worst) if alike and row is not None]

    @property
    def share(self) -> Fraction | None:
        """The least share of the sum of magnitudes that is proved to bound the error or the difference."""
        if not self.within or not all(map(is_theorem, self.within)):
            return None
        goals: list[Any] = [one.goal for one in self.within]
        compared = 1 if isinstance(goals[0], Apart) else len(compared_parts(self.claim.assertion))
        return sum((goal.share for goal in goals[:compared]), Fraction(0))

    @property
    def shares(self) -> Shares:
        found = [self.reached]
        with suppress(RuleError):
            found += [] if self.input is None else [self.input.share]
        most = max((one for one in found if one is not None), default=None)
        proved, reached = (None if one is None else str(one) for one in (self.share, most))
        late = True if self.late and not proved else ABSENT
        return Shares(proved=proved, reached=reached, late=late) if proved or reached else ABSENT

    @property
    def most(self) -> Fraction | None:
        """The least value that the quantity to maximise, in its unit, is proved never to exceed; None where what is
        proved is about another quantity."""
        largest, about = self.claim.maximise, self.claim.assertion
        if largest is None:
            return None
        asked, unit, found = ast.unparse(largest.quantity), ast.unparse(largest.unit), list[Fraction]()
        with suppress(RuleError):
            if self.share is not None:
                wanted = share_claim(about)
                if (ast.unparse(wanted.compared), ast.unparse(wanted.against)) == (asked, unit):
                    found.append(self.share)
        with suppress(RuleError):
            match about.predicate:
                case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE()], comparators=[right]) if (
                    self.verdict,
                    self.claim.quantifier,
                ) == ("holds", "all") and ast.unparse(left) == asked:
                    constant, each = linear_in_terms(_in_unit(right, unit))
                    found.append(constant + each * about.terms)
        return min(found, default=None)

    @property
    def certificates(self) -> int:
        return super().certificates if self.row is None else 1

    def certify(self, directory: Path, options: Options) -> list[Certificate]:
        """Write the certificate of the theorem, or the input."""
        if (decided := self.input) is None:
            return super().certify(directory, options)
        addend = {decided.claim.terms} if self.claim.zero_addend else ()
        values = free_values(decided.claim.layout, addend, decided.row)
        texts = claim_texts(self.claim) | document_texts(WITNESS, {"values": values})
        return write_certificate(directory, options, texts)


def compared_with_magnitudes(claim: Claim) -> Largest | None:
    """The quantity that a claim compares with the sum of magnitudes; None for another claim."""
    with suppress(RuleError):
        wanted = share_claim(claim.assertion)
        return Largest(wanted.compared, wanted.against, ())
    return None


def _in_unit(tree: ast.expr, unit: str) -> ast.expr:
    """The factor of a product with a unit. Raises RuleError for another expression."""
    match tree:
        case ast.BinOp(left=one, op=ast.Mult(), right=two):
            if unit in (ast.unparse(one), ast.unparse(two)):
                return two if ast.unparse(one) == unit else one
    if unit in ("1", ast.unparse(tree)):
        return tree if unit == "1" else ast.Constant(1)
    raise RuleError(f"{ast.unparse(tree)} is in another unit than {unit}")
