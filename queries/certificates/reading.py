"""Files of a certificate, as a stranger may have made them: regular files of its folder are read, and nothing else."""

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

#: bytes of a file at most: of queries and proofs, and of all others
MOST_PROOF, MOST = 4 << 30, 64 << 20
PROOFS = (".smt2", ".cnf", ".drat")


def opened(path: Path) -> BufferedReader:
    """A regular file, open for reading; no link is followed. Raises OSError for anything else, and for one that is
    longer than any file of a certificate."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except ValueError:
        raise OSError(errno.EINVAL, "is no name of a file") from None
    except OSError as error:
        what = "is a link: a file of the folder is needed" if error.errno == errno.ELOOP else error.strerror
        raise OSError(error.errno, what) from None
    found = os.fstat(descriptor)
    most = MOST_PROOF if path.suffix in PROOFS else MOST
    why = "" if found.st_size <= most else f"has more than {most >> 20} MiB"
    if not stat.S_ISREG(found.st_mode):
        why = "is not a regular file"
    if why:
        os.close(descriptor)
        raise OSError(errno.EINVAL, why)
    return os.fdopen(descriptor, "rb")


def digest(path: Path) -> str:
    """The SHA-256 of a file. Raises what `opened` does."""
    with opened(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def file_text(path: Path, encoding: str = "utf-8") -> str:
    """The text of a file. Raises what `opened` does, and UnicodeDecodeError."""
    with opened(path) as stream:
        return stream.read().decode(encoding)


def json_of(path: Path) -> Any:
    """What a JSON file says. Raises what `opened` does, and ValueError."""
    with opened(path) as stream:
        return parse_json(stream.read())


class Held(Mapping[str, str]):
    """The texts of the files of these names in a folder, read where one is asked for, which raises what `file_text`
    does. `read`: the names of those that were asked for."""

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
