"""The program `mmaprobe`. Little is loaded before an interrupt is answered as the whole program answers it."""

from __future__ import annotations

import gc
import sys

#: how many objects are made before Python looks for cycles among them: a tenth of the time of an identification went
#: into that, and found none worth the while
COLLECTED = (100_000, 50, 50)


def main() -> None:
    gc.set_threshold(*COLLECTED)
    try:
        from cli.main import main as command
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(3)
    command()
