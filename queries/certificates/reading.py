"""Reading the files of an untrusted certificate: only regular files of its folder are read."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Collection, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

from mmaprobe.smtmodel.base.jsontext import parse_json

#: the largest size of a file in bytes: of queries and proofs, and of other files
MOST_PROOF_BYTES, MOST_BYTES = 4 << 30, 64 << 20
PROOFS = (".smt2", ".cnf", ".drat")


def open_regular(path: Path) -> BufferedReader:
    """A regular file, open for reading; links are not followed. Raises OSError for anything else, and for a file longer
    than any of a certificate's."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except ValueError:
        raise OSError(errno.EINVAL, "is no name of a file") from None
    except OSError as error:
        what = "is a link: a file of the folder is needed" if error.errno == errno.ELOOP else error.strerror
        raise OSError(error.errno, what) from None
    status = os.fstat(descriptor)
    most = MOST_PROOF_BYTES if path.suffix in PROOFS else MOST_BYTES
    why = "" if status.st_size <= most else f"has more than {most >> 20} MiB"
    if not stat.S_ISREG(status.st_mode):
        why = "is not a regular file"
    if why:
        os.close(descriptor)
        raise OSError(errno.EINVAL, why)
    return os.fdopen(descriptor, "rb")


def digest(path: Path) -> str:
    """The SHA-256 of a file. Raises the errors of `open_regular`."""
    with open_regular(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def file_text(path: Path, encoding: str = "utf-8") -> str:
    """The text of a file. Raises the errors of `open_regular`, and UnicodeDecodeError."""
    with open_regular(path) as stream:
        return stream.read().decode(encoding)


def json_of(path: Path) -> Any:
    """The value of a JSON file. Raises the errors of `open_regular`, and ValueError."""
    with open_regular(path) as stream:
        return parse_json(stream.read())


class FolderTexts(Mapping[str, str]):
    """The texts of files in a folder by name, each read at its first use, with the errors of `file_text`. `read`: the
    names used so far."""

    def __init__(self, folder: Path, names: Collection[str]) -> None:
        self.folder, self.names = folder, names
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> str:
        if name not in self.names:
            raise KeyError(name)
        self.read.add(name)
        return file_text(self.folder / name)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def is_folder(path: Path) -> bool:
    """Whether a path is a folder, and no link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (OSError, ValueError):
        return False
