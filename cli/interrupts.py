"""What an interrupt (Ctrl-C) does while modules are loaded, and from when on it is an exception."""

try:
    import os
    import signal
except KeyboardInterrupt:
    raise SystemExit(3) from None


def _leave(number: int, frame: object) -> None:
    try:
        os.write(2, b"interrupted\n")
    finally:
        os._exit(3)


def interrupts_leave() -> None:
    """From now on an interrupt ends the process at once, unless it is ignored, as in a background job. Raised as an
    exception while modules are loaded, it could be lost (Python ignores what a callback of its import locks raises) or
    be taken for a damaged module."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def interrupts_raise() -> None:
    """From now on an interrupt raises KeyboardInterrupt, as a command expects."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
