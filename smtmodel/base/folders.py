"""The folders of files kept between runs, and the check that only the user can write to them: kept files are
trusted."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def check_own(path: Path, status: os.stat_result | None = None) -> None:
    """Raises PermissionError, with advice, for a file or folder that belongs to another user or that others can write.
    `status`: the `os.stat_result` of an open file, if the caller has it."""
    status = status or path.stat()
    if status.st_uid != os.geteuid():
        raise PermissionError(f"{path} belongs to another user")
    if status.st_mode & OTHERS_WRITE:
        raise PermissionError(f"other users can write {path} (`chmod go-w` closes it)")


def closed_folder(folder: Path) -> bool:
    """Make a folder that only the user can write, or close the user's own to others; returns whether it was open.
    Raises OSError, also for a folder of another user."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.stat()
    opened = status.st_uid == os.geteuid() and bool(status.st_mode & OTHERS_WRITE)
    if opened:
        folder.chmod(stat.S_IMODE(status.st_mode) & ~OTHERS_WRITE)
    check_own(folder)
    return opened


def cache_folder() -> Path:
    """The user's cache folder for this program; it need not exist. Raises FileNotFoundError without a home folder.

    Programs are kept there and run: a relative XDG_CACHE_HOME, which the XDG standard forbids, does not count.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "mmaprobe"
    except RuntimeError:
        raise FileNotFoundError("no home folder: set XDG_CACHE_HOME") from None
