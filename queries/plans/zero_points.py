"""Zero points of quantised results: which are likely, and the steps from a sum to results to which one is added."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mmaprobe.queries.plans.recorded import Sample
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.nodes import ExactSum, Literal, Node, Round
from mmaprobe.smtmodel.nodes.round import Rounding

ENOUGH = 16  # results between the least and the largest, from which zero points are estimated
UNSURE = 0.8  # how far a zero point may be from its estimate: results that are rounded down are half a unit too small
SUMS = FORMATS["int32"]  # of products of integers


def is_quantised(asked: Signature) -> bool:
    """Whether results may have a zero point: integers narrower than the sums of products of integers."""
    return asked.of_integers and asked.d.is_integer and asked.d.width < SUMS.width


def likely_zero_points(asked: Signature, sample: Sample) -> list[int]:
    """Zero points that recorded results may have, the likeliest first; 0 is always among them. They are what a linear
    combination of the sums and c leaves of the results that are neither the least nor the largest."""
    if not is_quantised(asked):
        return [0]
    a, b, c, d = sample.numbers(asked)
    inner = (d > d.min()) & (d < d.max())
    if np.count_nonzero(inner) < ENOUGH:
        return [0]
    terms = [np.ones(np.count_nonzero(inner)), (a @ b)[inner], *([c[inner]] if asked.addend else [])]
    estimate = float(np.linalg.lstsq(np.stack(terms, axis=1), d[inner], rcond=None)[0][0])
    near = [point for point in (math.floor(estimate), math.ceil(estimate)) if abs(point - estimate) < UNSURE]
    least, most = map(int, asked.d.interval)
    return list(dict.fromkeys((*(point for point in near if least <= point <= most and point), 0)))


def with_zero_point(end: Node, zero_point: int) -> Iterator[Node]:
    """The steps `end`, whose last one rounds to an integer format, with a zero point: it is added to the number that is
    rounded to int32, and the sum is saturated to the format; or it is added before the rounding, if this is to nearest
    even, and the sum is rounded at once or in f32 first. The other roundings give the same either way, or are of
    libraries that add it afterwards. No steps for an `end` without a rounding."""
    if not isinstance(end, Round):
        return
    how, single = end.rounding, Rounding(FORMATS["f32"])
    point = Literal(int(np.float32(zero_point).view(np.uint32)), single.format)
    integer = Round(end.term, replace(how, format=FORMATS["int32"]))
    yield Round(ExactSum((integer, point)), Rounding(how.format))
    if how.mode == "nearest_even":
        total = ExactSum((end.term, point))
        yield from (Round(total, how), Round(Round(total, single), how))
