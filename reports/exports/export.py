"""The result of an exporter."""

from __future__ import annotations

from typing import NamedTuple


class Export(NamedTuple):
    """The bytes to write. `note`: a text for standard output, such as the number of vectors left out; `about`: a
    description of the file, for vectors their number."""

    content: bytes
    note: str = ""
    about: str = ""
