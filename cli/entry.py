"""The program `mmaprobe`. Imports are few until an interrupt (Ctrl-C) has the effect that it has in all commands."""

from __future__ import annotations

import gc
import sys

#: allocations between two runs of the garbage collector: with the default, a tenth of the time of an identification
#: was spent in it, and it freed next to nothing
COLLECTED = (100_000, 50, 50)


def main() -> None:
    gc.set_threshold(*COLLECTED)
    try:
        from cli.main import main as command
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(3)
    command()
