"""The program `mmaprobe`. Until a command begins, an interrupt (Ctrl-C) ends the process at once: raised as an
exception while modules are loaded, it could be lost (Python ignores what a callback of its import locks raises) or be
taken for a damaged module. What happens before this module is loaded is the interpreter's, and few are loaded here."""

try:
    import gc
    import os
    import signal
except KeyboardInterrupt:
    raise SystemExit(3) from None

#: allocations between two runs of the garbage collector: with the default, a tenth of the time of an identification
#: was spent in it, and it freed next to nothing
COLLECTED = (100_000, 50, 50)


def _leave(number: int, frame: object) -> None:
    try:
        os.write(2, b"interrupted\n")
    finally:
        os._exit(3)


def interrupts_raise() -> None:
    """From now on an interrupt raises KeyboardInterrupt, as a command expects."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main() -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, as in a background job
        signal.signal(signal.SIGINT, _leave)
    gc.set_threshold(*COLLECTED)
    from cli.main import main as command

    command()
