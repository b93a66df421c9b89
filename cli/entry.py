"""The program `mmaprobe`. Little is loaded before an interrupt is answered as the whole program answers it."""

from __future__ import annotations

import sys


def main() -> None:
    try:
        from cli.main import main as command
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(3)
    command()
