"""Clamps, which no plan has: multiples of the sums, but none above or below a bound that many results have."""

from __future__ import annotations

import numpy as np

from mmaprobe.queries.plans.recorded import Sample
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.inputs.signature import Signature

ENOUGH = 8  # results between the bounds, and results at a bound that the multiples of the sums are beyond, at least
NEAR = 0.02  # distance from multiples of the sums, as a share of the results between the bounds: as root mean square


@np.errstate(all="ignore")
def clamp_of(asked: Signature, sample: Sample) -> str:
    """The clamp of the results of a sample, with its bounds, in words; empty if there is none that a plan lacks: ReLU,
    and the ends of the format of the results, are no such clamps."""
    a, b, c, d = sample.numbers(asked)
    sums = a @ b
    seen = np.isfinite(sums) & np.isfinite(c) & np.isfinite(d)
    if asked.of_integers:  # larger sums may wrap
        seen &= np.abs(sums + c) <= float(FORMATS["int32"].most)
    d = d[seen]
    if d.size == 0:
        return ""
    least, most = float(d.min()), float(d.max())
    between = (d > least) & (d < most)
    if between.sum() < ENOUGH:
        return ""
    terms = np.stack([sums[seen], c[seen], np.ones_like(d)], axis=1)
    factors, *_ = np.linalg.lstsq(terms[between], d[between], rcond=None)
    multiples = terms @ factors
    error = np.sqrt(np.mean((d - multiples)[between] ** 2))
    unit = 1.0 if asked.d.is_integer else 0.0
    if error > max(NEAR * np.sqrt(np.mean(d[between] ** 2)), unit):
        return ""
    margin = max(NEAR * (most - least), unit)
    above, below = multiples > most + margin, multiples < least - margin
    at_most = bool(above.sum() >= ENOUGH and (d[above] == most).all())
    at_least = bool(below.sum() >= ENOUGH and (d[below] == least).all())
    first, last = map(float, asked.d.interval)
    if not (at_most and most < last) and not (at_least and least > first and least != 0):
        return ""
    if at_most and at_least:
        like = " (ReLU6)" if (least, most) == (0, 6) else ""
        return f"a clamp from {least:.9g} to {most:.9g}{like}"
    return f"a clamp to {most:.9g} at most" if at_most else f"a clamp to {least:.9g} at least"
