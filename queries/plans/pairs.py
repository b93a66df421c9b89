"""Pairs of products that are saturated before they are added, which no unit of the table has."""

from __future__ import annotations

import numpy as np

from mmaprobe.queries.plans.recorded import Sample
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, format_named
from mmaprobe.smtmodel.inputs.signature import Signature


def saturates_pairs(asked: Signature, sample: Sample) -> bool:
    """Whether the results of a sample are sums of c and of pairs of neighbouring products that are saturated to int16,
    and not all of them the sums of c and all products. Of results in int32; sums beyond it are not looked at."""
    if not asked.of_integers or asked.d != FORMATS["int32"]:
        return False
    a, b, c, d = sample.numbers(asked)
    least, most = map(float, format_named("int16").interval)
    total = c.copy()
    for k in range(0, a.shape[2], 2):
        total += np.clip(a[:, :, k : k + 2] @ b[:, k : k + 2], least, most)
    within = np.abs(total) <= float(asked.d.most)
    saturated = within & (total != a @ b + c)
    return bool(saturated.any() and (d[within] == total[within]).all())
