"""What exporters give."""

from __future__ import annotations

from typing import NamedTuple


class Export(NamedTuple):
    """What is written. `note`: what is said beside it on standard output; `about`: what it is, said of its file; of
    vectors their number is."""

    content: bytes
    note: str = ""
    about: str = ""
