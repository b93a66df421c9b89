"""Predicates of bit patterns by kinds of numbers. They select the results, or inputs, that count in a stage."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.batch import Patterns
from mmaprobe.smtmodel.evaluate.numbers import nans

Counts = Callable[[Patterns, Format], NDArray[np.bool_]]


def ordinary(patterns: Patterns, fmt: Format) -> NDArray[np.bool_]:
    """Normal numbers and zeros."""
    fields = (patterns & np.uint64((1 << fmt.field_width) - 1)) >> np.uint64(fmt.padding)
    normal = (fields >> np.uint64(fmt.fraction) > 0) & (fields <= np.uint64(fmt.largest_field))
    flags: NDArray[np.bool_] = normal | (fields == 0) & ~nans(patterns, fmt)
    return flags


def finite(patterns: Patterns, fmt: Format) -> NDArray[np.bool_]:
    """Finite numbers, zeros included."""
    fields = (patterns & np.uint64((1 << fmt.field_width) - 1)) >> np.uint64(fmt.padding)
    flags: NDArray[np.bool_] = (fields <= np.uint64(fmt.largest_field)) & ~nans(patterns, fmt)
    return flags


def nonzero(patterns: Patterns, fmt: Format) -> NDArray[np.bool_]:
    """Finite numbers other than zero."""
    flags: NDArray[np.bool_] = (patterns & np.uint64((1 << fmt.field_width) - 1)) > 0
    return flags & finite(patterns, fmt)


def not_zero(patterns: Patterns, fmt: Format) -> NDArray[np.bool_]:
    """All patterns except zeros: infinities and NaNs count too."""
    return nonzero(patterns, fmt) | ~finite(patterns, fmt)


def every(patterns: Patterns, fmt: Format) -> NDArray[np.bool_]:
    return np.ones(patterns.shape, dtype=np.bool_)
