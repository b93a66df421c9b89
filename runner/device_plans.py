"""The search for the plans of a function that multiplies matrices."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial, wraps
from typing import Any

from mmaprobe.documents.identify import Layout
from mmaprobe.queries.order.probe import UnrevealedError
from mmaprobe.queries.order.reveal import reveal
from mmaprobe.queries.order.tree import Leaf, Node
from mmaprobe.queries.plans.dependence import Dependence, DependenceFindings
from mmaprobe.queries.plans.invariant import Fixed
from mmaprobe.queries.plans.library import Mapper
from mmaprobe.queries.plans.rules import Shape
from mmaprobe.runner.callable import CallableDevice
from mmaprobe.runner.called import Called
from mmaprobe.runner.calling import laid
from mmaprobe.runner.devices import open_device
from mmaprobe.runner.protocol import Device, check_asked, without_c
from mmaprobe.smtmodel.base.errors import IncompleteError, InputError
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.inputs.vectors import Vector


def mapper_of(
    name: str | Callable[..., Any], asked: Signature, sides: tuple[int, int], timeout: float | None,
    device_timeout: float = 60.0, progress: Callable[[str], None] = lambda text: None,
    least: tuple[int, int, int] = (1, 1, 1), multiple: int = 1, layout: Layout = "nn",
    say: Callable[[str], None] = lambda text: None,
) -> Mapper:  # fmt: skip
    """The Mapper for a function, or for a device's name python:FILE.py:FUNCTION. `timeout`: seconds in all;
    `device_timeout`: seconds for one call; `sides`: the largest M and N; `least`: the smallest M, N and K; `multiple`:
    the number that divides every M, N and K asked; `layout`: the memory order of A and B; `say` gets messages. Raises
    MmaprobeError."""
    deadline = None if timeout is None else time.monotonic() + timeout
    device = _function(name, asked, device_timeout, deadline)
    if zeros := without_c(device, asked):
        say(zeros)
    function, orders = device.function, layout.replace("n", "C").replace("t", "F") + "C"
    if isinstance(function, Called):
        function.orders = orders
    else:
        # `wraps` keeps the signature, which says whether the function takes c
        device.function = wraps(function)(lambda *arrays: function(*map(laid, arrays, orders)))

    def order(shape: Shape, place: tuple[int, int], until: float | None) -> Node | Leaf | None:
        part = CallableDevice(device.function, device.name, (shape.rows, shape.columns), place)
        signature = Signature(asked.a, asked.b, asked.c, asked.d, shape.length, asked.addend)

        def every(vectors: Sequence[Vector]) -> list[int]:
            if until is not None and time.monotonic() > until:
                raise IncompleteError("the time for this order ran out")
            return [d for d in part.every(vectors) if d is not None]

        for addend in dict.fromkeys((signature.addend, False)):  # without c if c has a factor
            with suppress(UnrevealedError):
                return reveal(every, signature, addend=addend, any_factor=True).root
        return None

    top = Shape(*sides, asked.length)
    return Mapper(asked, partial(device.product, asked), order, top, 1, deadline, progress, least, multiple)


def dependence_of(
    device: str | Callable[..., Any], asked: Signature, top: Shape, fixed: Fixed | None, timeout: float | None,
    device_timeout: float = 60.0, progress: Callable[[str], None] = lambda text: None,
) -> DependenceFindings:  # fmt: skip
    """Whether results of a function depend on the product's shape, up to the shape `top`. `fixed`: the sides that are
    not varied; `timeout`: seconds in all; `device_timeout`: seconds for one call. Raises MmaprobeError."""
    deadline = None if timeout is None else time.monotonic() + timeout
    with _function(device, asked, device_timeout, deadline) as function:
        return Dependence(asked, partial(function.product, asked), top, fixed, deadline, progress).run()


def _function(
    device: str | Callable[..., Any], asked: Signature, device_timeout: float, deadline: float | None
) -> CallableDevice:
    """The device of a function, or the device of a name, which must be a function. Raises MmaprobeError."""
    if not isinstance(device, str):
        opened: Device = CallableDevice(device)
    else:
        opened = open_device(device, device_timeout, until=deadline)
    if not isinstance(opened, CallableDevice):
        raise InputError(f"device {device!r}: --gemm asks a function that multiplies matrices, python:FILE.py:FUNCTION")
    check_asked(opened, asked)
    return opened
