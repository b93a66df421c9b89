"""What an interrupt (Ctrl-C, a polite kill, a closed terminal) does while modules are loaded, and from when on it is an
exception."""

try:
    import os
    import signal
except KeyboardInterrupt:
    raise SystemExit(3) from None

#: what each interrupt does where nobody ignores it, as a background job or nohup does
_PLAIN = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}

_program = False  # whether this process is the program, and nobody else's that runs a command


def _leave(number: int, frame: object) -> None:
    try:
        os.write(2, b"interrupted\n")
    finally:
        os._exit(3)


def _raise(number: int, frame: object) -> None:
    signal.signal(number, signal.SIG_DFL)  # the next one ends the process at once
    raise KeyboardInterrupt


def interrupts_leave() -> None:
    """From now on an interrupt ends the process at once, unless it is ignored. Raised as an exception while modules are
    loaded, it could be lost (Python ignores what a callback of its import locks raises) or be taken for a damaged
    module."""
    global _program
    _program = True
    for number, plain in _PLAIN.items():
        if signal.getsignal(number) is plain:
            signal.signal(number, _leave)


def interrupts_end(code: int) -> None:
    """From now on, when all is said, an interrupt only ends the program sooner, with the exit code that it has."""
    for number in _PLAIN if _program else ():
        if signal.getsignal(number) in (_raise, signal.default_int_handler):
            signal.signal(number, lambda *_: os._exit(code))


def interrupts_raise() -> None:
    """From now on an interrupt raises KeyboardInterrupt, as a command expects: what was found so far is kept."""
    for number in _PLAIN:
        if signal.getsignal(number) is _leave:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else _raise)
