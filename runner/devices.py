"""Devices by their names on the command line."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from runner.command import CommandDevice
from runner.model_device import ModelDevice
from runner.protocol import DEFAULT_TIMEOUT, Device, DeviceError, DeviceUnavailableError, UnansweredError
from runner.recorded import RecordedDevice
from smtmodel.errors import InputError, UnknownNameError

__all__ = ["DEFAULT_TIMEOUT", "FORMS", "Device", "DeviceError", "DeviceUnavailableError", "UnansweredError",
           "open_device"]  # fmt: skip

FORMS = "model:REFERENCE, command:CMDLINE, recorded:FILE or cuda:[UNIT/]INSTRUCTION"


def open_device(text: str, timeout: float = DEFAULT_TIMEOUT) -> Device:
    """The device of a name: FORMS says which there are. `timeout`: seconds for one answer.

    Raises UnknownNameError, InputError or DeviceUnavailableError.
    """
    kind, colon, rest = text.partition(":")
    if not colon or not rest.strip():
        raise InputError(f"device {text!r}: a device is written {FORMS}")
    kinds: dict[str, Callable[[], Device]] = {
        "model": lambda: ModelDevice(rest),
        "command": lambda: CommandDevice(rest, timeout),
        "recorded": lambda: RecordedDevice(rest),
        "cuda": lambda: _open_cuda(rest, timeout),
    }
    if kind not in kinds:
        raise UnknownNameError("kind of device", kind, kinds, hint=f" ({FORMS})")
    return kinds[kind]()


def _open_cuda(text: str, timeout: float) -> Device:
    """`runner.cuda.open_cuda(text, timeout)`, imported only here: it needs CuPy and a GPU."""
    wanted = f"cuda:{text}"
    try:
        module = importlib.import_module("runner.cuda")
    except ModuleNotFoundError as error:
        if error.name == "runner.cuda":
            message = "this version of mmaprobe has no CUDA kernels; command:CMDLINE runs a program of your own"
        else:
            message = (
                f"the Python package {error.name!r} is missing: pip install 'mmaprobe[cuda12]' brings CuPy; "
                "an NVIDIA GPU and its driver are needed as well"
            )
        raise DeviceUnavailableError(f"{wanted}: {message}") from None
    except ImportError as error:
        raise DeviceUnavailableError(f"{wanted}: CuPy cannot be loaded: {error}") from None
    device: Device = module.open_cuda(text, timeout)
    return device
