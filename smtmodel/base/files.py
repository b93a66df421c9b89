"""Files: checks of names and paths, and files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from mmaprobe.smtmodel.base.errors import InputError, MmaprobeError, OutputError
from mmaprobe.smtmodel.base.escapes import text_bytes
from mmaprobe.smtmodel.base.interrupts import undone_if_ended

#: error handler for reading text: bytes that are not UTF-8 become an error of their line, not of the whole file
NOT_UTF8 = "surrogateescape"
STANDARD_INPUT = "standard input"  # what messages call it
_BYTE = re.compile("[\udc80-\udcff]")
ANOTHER = "another run writes here: wait for its end, or choose another file"


class InputFiles:
    """The files that a command has read, none of which its outputs may replace; empty outside of commands."""

    def __init__(self) -> None:
        self._names: set[str] | None = None

    @contextmanager
    def kept(self) -> Iterator[None]:
        """A block in which the files read since its beginning cannot be replaced."""
        before, self._names = self._names, set()
        try:
            yield
        finally:
            self._names = before

    def add(self, path: Path) -> None:
        if self._names is not None:
            self._names.add(real_path(path))

    def check(self, path: Path) -> None:
        """Raises InputError for a file that was read."""
        if self._names and real_path(path) in self._names:
            raise InputError("would overwrite an input", str(path))


INPUTS = InputFiles()


def is_file(name: str) -> bool:
    """Whether a file of that name exists; False for a name that is too long for the system."""
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def names_below(folder: Path) -> tuple[str, ...]:
    """The names of the YAML files below a folder: their paths relative to the folder, without the ending."""
    return tuple(sorted(str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.yaml")))


def names_file(name: str) -> bool:
    """Whether a word is the path of a YAML file, rather than a name of the library."""
    return name.endswith((".yaml", ".yml")) or "/" in name or is_file(name)


def missing_file(path: Path | str) -> InputError:
    """The error for a missing file. For "-", which some commands read as standard input, the error says that this
    command does not."""
    if str(path) == "-":
        return InputError("standard input is not read here: name a file", "-")
    return InputError("no such file", str(path))


def cannot_read(error: OSError, path: Path | str) -> InputError:
    """The error to raise for a file that could not be read."""
    if isinstance(error, FileNotFoundError):
        return missing_file(path)
    return InputError(f"cannot be read: {error.strerror or error}", str(path))  # NumPy's own errors have no strerror


def real_path(path: Path | str) -> str:
    """The absolute path without symbolic links. Raises InputError for a relative path if the current folder was
    removed."""
    try:
        return os.path.realpath(path)
    except OSError as error:
        raise InputError(f"the current folder is gone: {error.strerror}", str(path)) from None


def can_be_named(name: Path | str) -> bool:
    """Whether a file could have this name: False for a name that is too long or has a null character."""
    try:
        os.lstat(name)
    except OSError as error:
        return error.errno != errno.ENAMETOOLONG
    except ValueError:
        return False
    return True


def check_utf8(text: str, name: str, line: int = 1) -> str:
    """The same text. `text`: read as UTF-8 with the error handler NOT_UTF8, from line `line` of the file `name`. Raises
    InputError, with the line at fault, if the file is not UTF-8."""
    if not text.isascii() and (wrong := _BYTE.search(text)):
        line += text.count("\n", 0, wrong.start())
        raise InputError("cannot be read: not text in UTF-8", name, line)
    return text


def check_folder(path: Path) -> None:
    """Raises InputError if a folder neither exists nor can be made because its path or a parent's is no folder."""
    for one in (path, *path.parents):
        if os.path.lexists(one):
            if not os.path.isdir(one):
                there = os.path.exists(one)
                what = "is no folder" if there else f"is a link to {os.readlink(one)}, which is not there"
                raise InputError(what if one == path else f"{one} {what}", str(path))
            return


def make_folder(path: Path) -> None:
    """Make a folder and its parents, unless they exist. Raises InputError."""
    check_folder(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", str(path)) from None


def cannot_write(error: OSError, path: Path | str) -> MmaprobeError:
    """The error to raise for a file that could not be written."""
    why = error.strerror or f"{error} (is the disk full?)"  # NumPy's own errors have no strerror
    return OutputError(f"{path}: cannot be written: {why}")


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A block with a stream for the new content of a file. The stream writes a temporary file beside the file, which
    replaces the file at the end of the block; an error leaves the file as it was. Symbolic links are followed; devices
    and pipes are written directly.

    Raises InputError if the file cannot be made or is an input or claimed, OutputError if it cannot be written to its
    end (a full disk).
    """
    if _is_special_file(path):
        with _written(path), _open_file(path, "wb") as stream:
            yield stream
        return
    INPUTS.check(path)
    target = Path(real_path(path))
    if target.exists() and not os.access(target, os.W_OK):
        raise InputError("cannot be written: Permission denied", str(path))
    _check_unclaimed(target, path)
    beside = target.with_name(f".{target.name[:100]}.{os.urandom(6).hex()}.new")
    with undone_if_ended(lambda: beside.unlink(missing_ok=True)), _open_file(beside, "xb", path) as stream:
        try:
            with _written(path):
                with suppress(FileNotFoundError):
                    os.fchmod(stream.fileno(), stat.S_IMODE(target.stat().st_mode))
                yield stream
                stream.close()  # writes the buffer, and may fail
                _check_unclaimed(target, path)
                beside.replace(target)
        except BaseException:
            beside.unlink(missing_ok=True)
            with suppress(OSError):  # closing writes the buffer once more
                stream.close()
            raise


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file, text in UTF-8. Raises the errors of `whole_file`."""
    with whole_file(path) as stream:
        stream.write(text_bytes(content) if isinstance(content, str) else content)


def append_whole(path: Path, content: str, after: int | None = None) -> None:
    """Add text to the end of a file, completely or not at all. `after`: the file's size in bytes, as last returned by
    `size_of`. Raises the errors of `whole_file`, and InputError if another process has written the file since."""
    with _open_file(path, "ab") as stream, _written(path):
        _lock(stream, path)
        if after is not None and size_of(path) != after:
            raise InputError(ANOTHER, str(path))
        end = stream.tell()
        try:
            stream.write(text_bytes(content))
            stream.flush()
        except OSError:
            with suppress(OSError):  # closing writes the buffer once more
                stream.close()
            with suppress(OSError):
                os.truncate(path, end)
            raise


def size_of(path: Path) -> int | None:
    """The size in bytes of a regular file; None for any other path."""
    return path.stat().st_size if path.is_file() and not _is_special_file(path) else None


def open_claimed(path: Path) -> IO[bytes]:
    """An unbuffered stream to append to a regular file, which is made if it does not exist. Until the stream is closed
    the file is claimed: in another process this function and `whole_file` raise InputError for it. Raises InputError
    also for a file that cannot be opened."""
    while True:
        try:
            stream = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)
        except OSError as error:
            raise InputError(f"cannot be written: {error.strerror}", str(path)) from None
        try:
            _lock(stream, path)
            if is_at(stream, path):  # else another process has removed or replaced the file before it was locked
                return stream
        except BaseException:
            stream.close()
            raise
        stream.close()


def is_at(stream: IO[bytes], path: Path) -> bool:
    """Whether a path still names the file that is open as a stream."""
    try:
        return os.path.samestat(os.fstat(stream.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _check_unclaimed(target: Path, path: Path) -> None:
    """Raises InputError if another process has claimed the file `target` (`open_claimed`). `path`: the file's name in
    the message."""
    with suppress(OSError), target.open("rb") as stream:
        _lock(stream, path)


def _lock(stream: IO[bytes], path: Path) -> None:
    try:
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(ANOTHER, str(path)) from None
    except (ImportError, OSError):  # the system or its file system has no locks
        pass


def _is_special_file(path: Path) -> bool:
    """Whether a path is something other than a regular file, or names an open stream, as /dev/stdout does."""
    parent = real_path(path.parent)
    if parent == "/dev" or parent.startswith("/proc/"):
        return True
    return path.exists() and not path.is_file()


def _open_file(path: Path, mode: str, named: Path | None = None) -> IO[bytes]:
    try:
        return path.open(mode)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", str(named or path)) from None


@contextmanager
def _written(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise cannot_write(error, path) from None
