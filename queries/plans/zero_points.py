"""Zero points of quantised results: the steps from a sum to results that a zero point is added to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.nodes import ExactSum, Literal, Node, Round
from mmaprobe.smtmodel.nodes.round import Rounding


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
