"""The summation order of a device, from the device's answers within a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial

import numpy as np

from mmaprobe.queries.compare.steady import AGAIN
from mmaprobe.queries.order.probe import UnrevealedError
from mmaprobe.queries.order.reveal import Tree, reveal
from mmaprobe.queries.plans.recorded import Sample
from mmaprobe.queries.plans.summed import WHOLE, Summed, summed
from mmaprobe.runner.callable import CallableDevice, PlacesError
from mmaprobe.runner.protocol import Device
from mmaprobe.smtmodel.base.errors import IncompleteError
from mmaprobe.smtmodel.base.progress import Throttle
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.numbers import from_numbers
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.inputs.vectors import Vector

SEED = 1  # of the random inputs that show which products are in a sum
#: the fewest and the most vectors of random numbers; a function is asked one matrix product instead
LEAST_VECTORS, MOST_VECTORS = 64, 4096
RESTARTS = 8  # times that a search begins anew where results turn out to depend on their place in a product
PART = 64  # questions asked again between two looks at the clock


def revealed(
    device: Device, asked: Signature, deadline: float, progress: Callable[[str], None], ends: bool = False
) -> Tree:
    """The summation tree of a device. `deadline`: in seconds of time.monotonic; `progress` gets texts now and then.

    With `ends` the tree also has the number from which the sum starts, the products that are rounded, and the products
    that are missing, added twice or computed from other factors; and every question is asked again while there is
    time, since no later question tests these answers. Raises UnrevealedError, ContradictionError, or IncompleteError at
    the deadline or for a question without a recorded answer."""
    count, now_and_then = 0, Throttle()

    def every(vectors: Sequence[Vector]) -> list[int]:
        nonlocal count
        results = []
        for vector, d in device.answers(vectors):
            if d is None:
                which = f"no answer is recorded to question {vector.id} about the order"
                hint = "`mmaprobe identify FAMILY` says which candidates give the results recorded"
                raise IncompleteError(f"{device.name}: {which}; {hint}")
            results.append(d)
            count += 1
            if now_and_then():
                progress(f"revealing the summation order: {counted(count, 'question')}")
            if time.monotonic() > deadline:
                raise IncompleteError(f"the time ran out after {counted(count, 'question')} about the summation order")
        return results

    def again(vectors: Sequence[Vector]) -> list[int | None]:
        answers: list[int | None] = []
        for start in range(0, len(vectors), PART):
            in_time = not start or time.monotonic() < deadline
            part = vectors[start : start + PART]
            answers += device.again(part) if in_time else [None] * len(part)
            if now_and_then():
                progress(f"asking again: {counted(len(answers), 'question')} of {len(vectors)}")
        return answers

    def tree(without: Collection[int] = ()) -> Tree:
        often = None if ends else AGAIN  # with `ends` the result rests on the answer to every question
        ask = partial(reveal, every, asked, again=again, addend=asked.addend, ends=ends, asked_again=often,
                      without=without)  # fmt: skip
        with device.strict() if isinstance(device, CallableDevice) else nullcontext():
            for _ in range(RESTARTS):
                with suppress(PlacesError):  # the function leaves out these places from now on
                    return ask()
            return ask()

    order, failed = None, None
    try:
        order = tree()
    except UnrevealedError as error:
        failed = error
    if ends and asked.scale is None and (order is None or (order.ends and order.ends.left_out)):
        products = _summed(device, asked, every)
        odd = {*products.left_out, *products.twice}
        if odd and (order is None or order.ends is None or odd != {*order.ends.left_out}):
            order = tree(odd)
        if odd and order is not None and order.ends is not None:
            gone = tuple(sorted({*order.ends.left_out, *products.left_out}))
            ends_of = replace(order.ends, left_out=gone, twice=products.twice, instead=products.instead)
            order = replace(order, ends=ends_of)
    if order is None:
        assert failed is not None
        raise failed
    return order


def _summed(device: Device, asked: Signature, ask: Callable[[Sequence[Vector]], list[int]]) -> Summed:
    """The products that the sums lack or contain twice, from results for random numbers: of one matrix product if the
    device is a function, else of vectors. `WHOLE` if the device has no answers to these."""
    chance = np.random.default_rng(SEED)
    whole = isinstance(device, CallableDevice)
    count = 1 if whole else max(LEAST_VECTORS, min(2 * asked.length + LEAST_VECTORS, MOST_VECTORS))
    rows, columns = device.shape if isinstance(device, CallableDevice) else (1, 1)
    shapes = ((count, rows, asked.length), (count, asked.length, columns), (count, rows, columns))
    a, b, c = (from_numbers(chance.standard_normal(shape), fmt, "nearest_even")
               for shape, fmt in zip(shapes, (asked.a, asked.b, asked.c), strict=True))  # fmt: skip
    if not asked.addend:
        c = np.zeros_like(c)
    if isinstance(device, CallableDevice):
        return summed(asked, Sample(a, b, c, device.product(asked, a[0], b[0], c[0])[None]))
    vectors = [Vector(asked, Operands(tuple(x[0].tolist()), tuple(y[:, 0].tolist()), int(z[0, 0])), id=number)
               for number, (x, y, z) in enumerate(zip(a, b, c, strict=True), 1)]  # fmt: skip
    try:
        d = np.array(ask(vectors), dtype=kind_of(asked.d))[:, None, None]
    except IncompleteError:
        return WHOLE
    return summed(asked, Sample(a, b, c, d))
