"""The program `mmaprobe`. Until `main` runs, the interpreter handles an interrupt, so this module is loaded first and
imports little; from then on, until a command begins, an interrupt ends the process at once."""

try:
    import gc
    import os
    import time

    from mmaprobe.cli.interrupts import interrupts_leave, leave
except KeyboardInterrupt:
    raise SystemExit(3) from None

BEGAN = time.monotonic()
#: thresholds of the garbage collector: with its own ones it took a tenth of the time of an identification, and freed
#: next to nothing
GC_THRESHOLDS = (100_000, 50, 50)


def main() -> None:
    interrupts_leave()
    gc.set_threshold(*GC_THRESHOLDS)
    from mmaprobe.cli.main import main as command
    from mmaprobe.smtmodel.base.frames import with_room
    from mmaprobe.smtmodel.base.interrupts import state

    state.started = BEGAN

    try:
        with_room(command)
    except SystemExit as end:
        leave(end.code)
    except MemoryError:  # no memory for the frames
        os.write(2, b"error: memory ran out\n")
        leave(3)
