"""The effect of an interrupt (Ctrl-C, SIGTERM, a closed terminal): it ends the process while modules are loaded, and
raises an exception later. A process whose work does not return after an interrupt or a time limit is ended."""

try:
    import os
    import signal
except KeyboardInterrupt:
    raise SystemExit(3) from None

#: the handlers of these signals in a process that ignores none (a background job, or nohup, ignores some)
_PLAIN = {
    signal.SIGINT: signal.default_int_handler,
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
}
GRACE = 3.0  # seconds for the work to return after an interrupt
LOOK = 0.1  # seconds between two looks at the work


def _leave(number: int, frame: object) -> None:
    try:
        os.write(2, b"interrupted\n")
    finally:
        os._exit(3)


def _raise(number: int, frame: object) -> None:
    from mmaprobe.smtmodel.base.interrupts import Interrupted, interrupt

    for other in _PLAIN:
        if signal.getsignal(other) is _raise:
            signal.signal(other, _again)
    interrupt(Interrupted, frame)  # type: ignore[arg-type]


def _again(number: int, frame: object) -> None:
    """End the process at a second interrupt."""
    from mmaprobe.cli.ending import end

    end("interrupted")


def interrupts_leave() -> None:
    """From now on an interrupt ends the process at once, unless it is ignored. An exception raised while modules are
    loaded could be lost (Python ignores exceptions in callbacks of its import locks) or be taken for a damaged
    module."""
    for number, plain in _PLAIN.items():
        if signal.getsignal(number) is plain:
            signal.signal(number, _leave)


def interrupts_raise() -> None:
    """From now on an interrupt raises Interrupted, on which a command keeps its findings so far. Work that does
    not return is ended."""
    if _leave not in map(signal.getsignal, _PLAIN):
        return  # the program was not started by its own entry
    import threading

    from mmaprobe.smtmodel.base.interrupts import guard

    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(reader,), name="mmaprobe-ending", daemon=True).start()
    guard()
    for number in _PLAIN:
        if signal.getsignal(number) is _leave:
            signal.signal(number, _raise)


def interrupts_end(code: int) -> None:
    """From now on an interrupt does not change the exit code: the command has ended."""
    for number in _PLAIN:
        if signal.getsignal(number) in (_leave, _raise, _again):
            signal.signal(number, lambda *_: os._exit(code))
    from mmaprobe.smtmodel.base.interrupts import unguard

    unguard()


def leave(code: object) -> None:
    """End this process with an exit code, without the interpreter's shutdown: there an interrupt would change the exit
    code."""
    import atexit
    import sys
    from contextlib import suppress

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # the stream is closed, or None
            stream.flush()
    os._exit(code if isinstance(code, int) else 1 if code else 0)


def _watch(reader: int) -> None:
    """End the process once the time after an interrupt, or a time limit, is over. This runs in a thread, woken by each
    signal, since the main thread may be in code that handles no signals."""
    import time

    from mmaprobe.cli.ending import end, late_text
    from mmaprobe.smtmodel.base.interrupts import state

    while True:
        numbers = os.read(reader, 64)
        ends = time.monotonic() + GRACE if set(numbers) & set(_PLAIN) else None
        while ends is not None or state.hard is not None:
            now = time.monotonic()
            if ends is not None and now > ends:
                end("interrupted")
            if state.hard is not None and now > state.hard:
                end(late_text())
            if ends is None and state.soft is not None and now < state.soft:
                break  # the limit's signal is still to come
            time.sleep(LOOK)
