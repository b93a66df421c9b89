"""Certificates of bounds of a unit, and of inputs that show that a unit has no bound."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mmaprobe.queries.certificates.asked import of_unit
from mmaprobe.queries.certificates.certificate import Certificate, write_certificate
from mmaprobe.queries.certificates.logged import certify_theorems
from mmaprobe.queries.certificates.names import UNIT, WITNESS
from mmaprobe.queries.certificates.questions import document_texts
from mmaprobe.queries.certificates.sat import CertificateError
from mmaprobe.queries.kernel.questions.problem import free_values
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.queries.properties.bound_report import BoundResult
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.units.unitfile import unit_text


def certify_bound(result: BoundResult, directory: Path, options: Options) -> list[Certificate]:
    """Write the certificate of a bound, and check its proofs; or the certificate of an input on which a sum wraps.
    Raises CertificateError if nothing is proved or a proof fails."""
    if result.verdict == "refuted":
        return certify_wrap(result, directory, options)
    if result.shown is None:
        raise CertificateError()
    roots = [theorem for theorem in (result.shown, result.any) if theorem is not None]
    return certify_unit_bounds(roots, result.model, directory, options)


def certify_unit_bounds(roots: Sequence[Theorem], model: Model, directory: Path, options: Options) -> list[Certificate]:
    """Write the certificate of bounds of a unit. Raises CertificateError."""
    return certify_theorems(roots, of_unit(model), {UNIT: unit_text(model.unit)}, directory, options)


def certify_wrap(result: BoundResult, directory: Path, options: Options) -> list[Certificate]:
    """Write the certificate that no bound holds, as a sum wraps: the input, which the checker evaluates again. Raises
    CertificateError without an input, and ParameterError for a unit that no file states."""
    if result.near is None:
        raise CertificateError("no input was found")
    layout = layout_of(result.model)
    width = len(layout.names)
    rows = [free_values(layout, (), result.near.row[at : at + width]) for at in range(0, len(result.near.row), width)]
    texts = document_texts(WITNESS, {"property": "error-bound", "length": result.length, "rows": rows})
    return write_certificate(directory, options, texts | {UNIT: unit_text(result.model.unit)})
