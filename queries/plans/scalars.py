"""Alpha and beta of a matrix product, as its results show them."""

from __future__ import annotations

import numpy as np

from mmaprobe.queries.plans.recorded import Sample
from mmaprobe.smtmodel.evaluate.numbers import to_numbers
from mmaprobe.smtmodel.evaluate.tiles import Matrix
from mmaprobe.smtmodel.inputs.signature import Signature

DIGITS = 4  # decimal digits of alpha and beta


def scalars_of(asked: Signature, sample: Sample, d: Matrix) -> tuple[float, float] | None:
    """Alpha and beta of few decimal digits such that the results are about alpha * A B + beta * C; None if no such
    numbers are near, or they are 1 and 1, or 1 and 0."""
    a, b, c, results = (
        to_numbers(np.ascontiguousarray(side), fmt).astype(np.float64)
        for side, fmt in ((sample.a, asked.a), (sample.b, asked.b), (sample.c, asked.c), (d, asked.d))
    )
    terms = np.stack([(a @ b).ravel(), c.ravel()][: 1 + asked.addend], axis=1)
    if not np.isfinite(terms).all() or not np.isfinite(results).all():
        return None
    results = results.ravel()
    found, *_ = np.linalg.lstsq(terms, results, rcond=None)
    with np.errstate(divide="ignore", invalid="ignore"):  # C may be zeros
        error = 4 * np.abs(results - terms @ found).max() / np.abs(terms).max(axis=0)
    near = [_short(value, limit) for value, limit in zip(found, error, strict=True)]
    alpha, beta = near[0], near[1] if asked.addend else 0.0
    return None if alpha is None or beta is None or (alpha, beta) in ((1, 1), (1, 0)) or not alpha else (alpha, beta)


def _short(value: float, error: float) -> float | None:
    """The number of the fewest decimal digits, at most four, within an error of a value."""
    tried = (float(f"{value:.{digits}g}") for digits in range(1, DIGITS + 1))
    return 0.0 if abs(value) <= error else next((one for one in tried if abs(one - value) <= error), None)
