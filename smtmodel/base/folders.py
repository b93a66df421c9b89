"""The folders of files that are kept between runs. These files are trusted, so only the user may write them."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def check_own(path: Path, status: os.stat_result | None = None) -> None:
    """Raises PermissionError, with advice, for a file or folder that belongs to another user or that other users can
    write. `status`: the `os.stat_result` of the file, if the caller has it."""
    status = status or path.stat()
    if status.st_uid != os.geteuid():
        raise PermissionError(f"{path} belongs to another user")
    if status.st_mode & OTHERS_WRITE:
        raise PermissionError(f"other users can write {path} (`chmod go-w` closes it)")


def closed_folder(folder: Path) -> bool:
    """Make a folder that only the user can write, or make an existing folder of the user so. Returns whether other
    users could write the folder before. Raises OSError, also for a folder of another user."""
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.stat()
    opened = status.st_uid == os.geteuid() and bool(status.st_mode & OTHERS_WRITE)
    if opened:
        folder.chmod(stat.S_IMODE(status.st_mode) & ~OTHERS_WRITE)
    check_own(folder)
    return opened


def cache_folder() -> Path:
    """The user's cache folder for this program, which need not exist. Raises FileNotFoundError without a home folder.

    The folder holds programs that are run: a relative XDG_CACHE_HOME, which the XDG standard forbids, is ignored.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "mmaprobe"
    except RuntimeError:
        raise FileNotFoundError("no home folder: set XDG_CACHE_HOME") from None
