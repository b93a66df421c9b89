"""Arrays of numbers in .npy and .npz files."""

from __future__ import annotations

import ast
import math
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click
import numpy as np
from numpy.typing import NDArray

from mmaprobe.smtmodel.base.errors import IncompleteError, InexactError, InputError, ParameterError
from mmaprobe.smtmodel.base.files import cannot_read

ARCHIVE, ARCHIVE_END = b"PK\3\4", 22  # the first bytes of a .npz file, and the least number of bytes of its last record
HEADER = 1 << 16  # bytes before the numbers of a .npy file: NumPy itself reads at most 10,000
CONVERTED = "say how to round (--convert)"
ROUNDED = "give a file of rounded numbers"  # for commands that convert no numbers


@contextmanager
def errors_name(place: str, *parameters: str, wanted: str = CONVERTED) -> Iterator[None]:
    """A block in which a ParameterError (if `parameters` are given, only an error about one of these) becomes an
    InputError that names `place`, the file or files. `wanted`: what to do about
    numbers that are not exact in a format."""
    try:
        yield
    except ParameterError as error:
        if parameters and error.parameter not in parameters:
            raise
        message = error.asking(wanted) if isinstance(error, InexactError) else str(error)
        raise InputError(message, place) from None


def with_addend(files: tuple[str, ...], c: Path | None, wanted: str) -> tuple[str, ...]:
    """The files A and B, and C where it is the third file or the file of --c; `wanted`: the error for another number of
    files."""
    if c is not None and len(files) > 2:
        raise click.UsageError(f"C is given twice: {files[2]}, and --c {c}")
    if len(files) not in (2, 3):
        raise click.UsageError(wanted)
    return files if c is None else (*files, str(c))


def load_matrix(path: Path, mapped: bool = False) -> NDArray[Any]:
    """The matrix of a .npy file, of a .npz file that has one matrix alone, or of FILE.npz:NAME; `mapped`:
    memory-mapped, so that only the parts used of a .npy file are read. Raises InputError."""
    tables = load(path, mapped)
    if len(tables) != 1:
        several = f"it has {', '.join(tables)}: write {path}:{next(iter(tables), '')} for one of them"
        raise InputError(f"one matrix is needed; {several if tables else 'it has none'}", str(path))
    return next(iter(tables.values()))


def load(path: Path, mapped: bool = False) -> dict[str, NDArray[Any]]:
    """The matrices of a file by name; the matrix of a .npy file, or of FILE.npz:NAME, has the name "". Raises
    InputError."""
    file, _, name = str(path).rpartition(":")
    if file.endswith(".npz") and not os.path.exists(path):
        tables = load(Path(file))
        if name not in tables:
            raise InputError(f"it has no matrix {name!r}, but {', '.join(tables) or 'none'}", file)
        return {"": tables[name]}
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise InputError("is no regular file", str(path))
    try:
        with path.open("rb") as stream:  # given a path, NumPy leaves a broken archive open
            _check_promises(stream, path)
            plain = mapped and stream.read(6) == np.lib.format.MAGIC_PREFIX
            stream.seek(0)
            loaded = np.load(path if plain else stream, mmap_mode="r" if plain else None, allow_pickle=False)
            tables = {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
            if strange := [name for name, table in tables.items() if not isinstance(table, np.ndarray)]:
                raise InputError(f"{strange[0]}: not an array of numbers", str(path))
            return tables
    except OSError as error:
        raise cannot_read(error, path) from None
    except MemoryError:
        raise IncompleteError(f"{path}: memory ran out") from None
    except InputError:
        raise
    except Exception:  # NumPy reads headers with Python's own parser, which raises errors of many kinds
        raise InputError("not a .npy or .npz file of numbers", str(path)) from None


def _check_promises(stream: IO[bytes], path: Path) -> None:
    """Raises InputError for an array whose header promises more bytes than the file holds (NumPy would make room for
    them) or fewer (NumPy would leave out the rest). The stream is at its beginning again afterwards."""
    if stream.read(len(ARCHIVE)) == ARCHIVE:  # NumPy's own test for an archive
        with zipfile.ZipFile(stream) as archive:
            stream.seek(-len(archive.comment) - ARCHIVE_END, os.SEEK_END)
            if not stream.read(ARCHIVE_END).startswith(b"PK\5\6"):
                raise InputError("more bytes follow the archive: damaged, or no .npz file", str(path))
            for member in archive.infolist():
                with archive.open(member) as inner:
                    _check_promise(inner, member.file_size, f"{path}: {member.filename}")
    else:
        stream.seek(0)
        _check_promise(stream, os.fstat(stream.fileno()).st_size, str(path))
    stream.seek(0)


def _check_promise(stream: IO[bytes], size: int, name: str) -> None:
    """Raises InputError for an array of `size` bytes whose header promises another number; bytes without such a header
    are left to NumPy."""
    head = stream.read(12)
    if not head.startswith(np.lib.format.MAGIC_PREFIX):
        return
    start = 10 if head[6] == 1 else 12
    length = int.from_bytes(head[8:start], "little")
    if start + length > min(size, HEADER):
        raise InputError(f"its header is said to have {length:,} bytes: damaged, or no .npy file of numbers", name)
    stream.seek(start)
    header = ast.literal_eval(stream.read(length).decode())
    kind = np.lib.format.descr_to_dtype(header["descr"])
    if kind.hasobject:
        raise InputError("it holds objects of Python, not numbers", name)
    if any(axis < 0 for axis in header["shape"]):
        raise InputError(f"its header promises the shape {header['shape']}: damaged, or no .npy file of numbers", name)
    promised = math.prod(header["shape"]) * kind.itemsize
    if promised != size - start - length:
        raise InputError(f"its header promises {promised:,} bytes, but {size - start - length:,} follow", name)
