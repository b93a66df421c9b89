"""Activations that no plan has: which of them results look like."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.plans.clamps import clamp_of
from mmaprobe.queries.plans.recorded import Sample
from mmaprobe.smtmodel.inputs.signature import Signature

ENOUGH = 16  # finite results, at least
NEAR = 0.02  # distance from an activation of the sums, as a share of the results: both as root mean square
EXACT = 2.0**-40  # a line, or ReLU, that is so near, as a share of the results, is what they are
NEARER = 8.0  # a line, or ReLU, is at least this many times as far

Numbers = NDArray[np.float64]


def _sigmoid(x: Numbers) -> Numbers:
    return np.asarray(1 / (1 + np.exp(-x)))


#: activations by name, as functions of the sum
ACTIVATIONS: dict[str, Callable[[Numbers], Numbers]] = {
    "GELU": lambda x: np.asarray(x * (1 + np.vectorize(math.erf)(x / np.sqrt(2))) / 2),
    "SiLU": lambda x: x * _sigmoid(x),
    "quick GELU": lambda x: x * _sigmoid(1.702 * x),
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
    "softplus": lambda x: np.logaddexp(0, x),
}
LEAKY = "leaky ReLU"  # with any slope


def activation_of(asked: Signature, sample: Sample) -> str:
    """The activation that the results of a sample look like, by name, or a clamp with its bounds; empty if no
    activation is near, or if a linear combination of the sums and c, or ReLU, is not much farther."""
    if clamp := clamp_of(asked, sample):
        return clamp
    a, b, c, d = sample.numbers(asked)
    with np.errstate(all="ignore"):
        sums = a @ b + (c if asked.addend else 0)
        seen = np.isfinite(sums) & np.isfinite(d)
        x, d = sums[seen], d[seen]
        size = _rms(d)
        if len(x) < ENOUGH or size == 0:
            return ""
        terms = np.stack([x, c[seen]], axis=1) if asked.addend else x[:, None]
        others = [_rms(d - terms @ np.linalg.lstsq(terms, d, rcond=None)[0])]
        slopes = [float(d[side] @ x[side] / max(float(x[side] @ x[side]), 1e-300)) for side in (x > 0, x < 0)]
        rectified = bool((d >= 0).all())
        if rectified:
            others.append(_rms(d - slopes[0] * np.maximum(x, 0)))
        if min(others) <= EXACT * size:
            return ""
        least = min(NEAR * size, min(others) / NEARER)
        leaky = np.where(x > 0, slopes[0] * x, slopes[1] * x)
        apart = {name: _rms(d - activation(x)) for name, activation in ACTIVATIONS.items()}
    if not rectified:
        apart[LEAKY] = _rms(d - leaky)
    name = min(apart, key=lambda name: apart[name])
    return name if apart[name] <= least else ""


def _rms(numbers: Numbers) -> float:
    return float(np.sqrt(np.mean(numbers**2))) if len(numbers) else 0.0
