"""Where files are kept between runs."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """The user's cache folder for this program; it need not exist. Raises FileNotFoundError without a home folder.

    Programs are kept there and run: a relative folder, which the standard of these variables forbids, does not count.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "mmaprobe"
    except RuntimeError:
        raise FileNotFoundError("no home folder: set XDG_CACHE_HOME") from None
