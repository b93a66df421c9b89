"""Devices by their names on the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mmaprobe.runner.batches import BatchDevice
from mmaprobe.runner.command import CommandDevice
from mmaprobe.runner.model_device import ModelDevice
from mmaprobe.runner.plain import PlainDevice
from mmaprobe.runner.protocol import DEFAULT_TIMEOUT, Device, DeviceError, DeviceUnavailableError, Patience
from mmaprobe.runner.recorded import RecordedDevice
from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError, UnknownNameError
from mmaprobe.smtmodel.base.files import is_file
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.tables.gpus import gpu_named
from mmaprobe.smtmodel.tables.reference import LENGTH, is_unit_file, parse_reference

__all__ = ["DEFAULT_TIMEOUT", "FORMS", "Device", "DeviceError", "DeviceUnavailableError", "open_device",
           "open_servable"]  # fmt: skip

FORMS = (
    "model:REFERENCE, command:CMDLINE, plain:CMDLINE, python:FILE.py:FUNCTION, recorded:FILE, rtl:FILE.sv,top=NAME, "
    "cpu:INSTRUCTION, cuda:[UNIT/]INSTRUCTION[?row=R,...] or hip:[UNIT/]INSTRUCTION"
)


def open_device(
    text: str, timeout: float = DEFAULT_TIMEOUT, asked: Model | None = None, until: float | None = None
) -> Device:
    """The device of a name in one of the FORMS. `timeout`: seconds for one answer; `until`: the end of the time for all
    answers, in seconds of time.monotonic. `asked`: the signature of recorded rows that name no instruction.

    Raises UnknownNameError, InputError or DeviceUnavailableError.
    """
    kind, colon, rest = text.partition(":")
    if not colon or not rest.strip():
        raise InputError(f"device {text!r}: {_likely_meaning(text)}a device is written {FORMS}")
    kinds: dict[str, Callable[[], Device]] = {
        "model": lambda: ModelDevice(rest),
        "command": lambda: CommandDevice(rest),
        "plain": lambda: PlainDevice(rest),
        "python": lambda: _open_python(rest, timeout, until),
        "recorded": lambda: RecordedDevice(rest, asked),
        "rtl": lambda: _open_rtl(rest),
        "cpu": lambda: _open_cpu(rest),
        "cuda": lambda: _open_cuda(rest),
        "hip": lambda: _open_hip(rest),
    }
    if kind == "plan":
        name, _, length = text.partition(LENGTH)
        raise InputError(f"device {text!r}: a plan at one K is a model: model:{name}{LENGTH}{length or 64}")
    if kind not in kinds:
        meant = f" (for a function in a file write python:{text})" if Path(kind).suffix == ".py" else f" ({FORMS})"
        raise UnknownNameError("kind of device", kind, kinds, hint=meant)
    device = kinds[kind]()
    device.patience = Patience(timeout, until)
    return device


def _likely_meaning(text: str) -> str:
    """A likely meaning of a name without a kind of device, as the beginning of a message."""
    if is_file(text):
        if is_unit_file(text):
            return f"for a unit file write model:{text}; "
        if Path(text).suffix == ".py":
            return f"for a function in a file write python:{text}:FUNCTION; "
        return f"for answers in a file write recorded:{text}; "
    if gpu := gpu_named(text):
        shown = f'`mmaprobe list "{gpu[0]}"` shows the instructions'
        between = "docs/generations.md says what changes from GPU to GPU"
        return f"{shown}, {between}; write model:REFERENCE for a model of one, cuda:... or hip:... for a GPU; "
    try:
        return f"for a model write model:{parse_reference(text).reference}; "
    except MmaprobeError:
        return ""


def open_servable(text: str, timeout: float = DEFAULT_TIMEOUT) -> BatchDevice:
    """The device to serve to other programs: a model by its reference, or the GPU of this machine by a name of the kind
    cuda or hip. Raises the errors of `open_device`."""
    kind, _, rest = text.partition(":")
    gpus = {"cuda": _open_cuda, "hip": _open_hip}
    device = gpus[kind](rest) if kind in gpus else ModelDevice(text)
    device.patience = Patience(timeout)
    return device


def _open_python(rest: str, timeout: float, until: float | None) -> Device:
    from mmaprobe.runner.callable import open_callable  # needs ml_dtypes, which no other device needs

    return open_callable(rest, timeout, until)


def _open_rtl(text: str) -> Device:
    from mmaprobe.runner.rtl import RtlDevice
    from mmaprobe.runner.simulated import SimulatedDevice
    from mmaprobe.runner.wiring import Wiring

    wiring = Wiring.read(text)
    return SimulatedDevice(wiring) if wiring.simulator else RtlDevice(wiring)


def _open_cpu(name: str) -> BatchDevice:
    from mmaprobe.runner.cpu import CpuDevice

    return CpuDevice(name)


def _open_cuda(text: str) -> BatchDevice:
    from mmaprobe.runner.gpu.cuda import open_cuda

    return open_cuda(text)


def _open_hip(text: str) -> BatchDevice:
    from mmaprobe.runner.gpu.hip import open_hip

    return open_hip(text)
