"""Libraries and programs built from C on the machine that they run on, kept in the user's cache folder: named by their
source, the compiler and the processor.

A program in the cache is run only where folder and file belong to the user, nobody else can write them, and the file is
as it was built. Otherwise the source is built anew, or in a temporary folder where no cache can be used.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmaprobe.smtmodel.base.folders import cache_folder, check_own, closed_folder

if TYPE_CHECKING:  # imported where used: this import takes a twentieth of the time of a command that compiles nothing
    from tempfile import TemporaryDirectory

IS_X86 = platform.machine().lower() in ("x86_64", "amd64")
#: loops are vectorised, their remainders are not: the source compiles twice as fast, and the code runs as fast
FLAGS = (
    "-O2", "-ftree-vectorize", "--param=vect-epilogues-nomask=0", "-march=native", "-shared", "-fPIC", "-w",
    *(("-mprefer-vector-width=512",) if IS_X86 else ()),  # where the processor has it: 25 to 67 % more outputs a second
)  # fmt: skip
#: for code that is run little: it compiles in a tenth of the time
BRIEF_FLAGS = ("-O0", "-march=native", "-shared", "-fPIC", "-w")
#: stands before a loop with independent turns, which becomes vector instructions
EACH = """#if defined(__clang__)
#define EACH _Pragma("clang loop vectorize(assume_safety) interleave(disable)")
#elif defined(__GNUC__)
#define EACH _Pragma("GCC ivdep")
#else
#define EACH
#endif
"""
ANSWER_SECONDS = 5.0  # for a compiler to compile one line; a compiler that takes longer never ends
BUILD_SECONDS = 300.0  # for one of the project's sources; the longest takes a tenth of this time on a busy machine
LEFT_SECONDS = 3600.0  # the age from which on a folder of a build belongs to a process that was killed
#: a program that loads a library and looks its functions up, or is ended by the library
LOADS = "import ctypes, sys; library = ctypes.CDLL(sys.argv[1]); [getattr(library, name) for name in sys.argv[2:]]"


class BuildError(Exception):
    """Why a source was not built, or why its library cannot be loaded."""


@cache
def compiler() -> tuple[str, ...] | None:
    """The command of the C compiler, if there is one: CC with its options, else clang, whose loops are the quickest
    (benchmarks/simulate.md), else cc."""
    named = os.environ.get("CC")
    return next(filter(None, map(command_of, (named,) if named else ("clang", "cc"))), None)


def command_of(text: str) -> tuple[str, ...] | None:
    """The words of a command such as `gcc -O3`, its program as a path; None where there is no such program."""
    try:
        name, *options = shlex.split(text)
    except ValueError:  # no word, or a quotation mark that is not closed
        return None
    program = shutil.which(name)
    return None if program is None else (program, *options)


_failures: list[str] = []


def failure() -> str:
    """Why the last source of a library was not built or loaded; empty where none failed."""
    return _failures[-1] if _failures else ""


@cache
def loaded(source: str, names: tuple[str, ...], load: Callable[[str], Any] = ctypes.CDLL) -> Any:
    """The loaded library of a C source, built if it is not in the cache; `names`: the functions that it must have. None
    where that fails (`failure` says why)."""
    cc = compiler()
    if cc is None:
        return None
    flags = BRIEF_FLAGS if _brief and not is_kept(cc, source) else FLAGS
    try:
        for again in (False, True):
            path = kept_build(cc, flags, source, ".so", names)
            try:
                return load(str(path))
            except OSError:
                path.unlink(missing_ok=True)  # made before the system was changed
                if again:
                    raise
    except (OSError, BuildError) as error:
        _failures.append(str(error))
    return None


def is_at_hand(source: str) -> bool:
    """Whether the library of a C source is in the cache, so that `loaded` need not build it."""
    cc = compiler()
    with suppress(OSError):  # there is no cache
        some = (cache_folder() / "compiled").is_dir()  # else the key, which takes a program to ask, need not be known
        return cc is not None and some and is_kept(cc, source)
    return False


_brief: list[bool] = []


@contextmanager
def briefly_built() -> Iterator[None]:
    """A block in which libraries that are not in the cache are built to be run little: the build takes less time, and
    the libraries are slower."""
    _brief.append(True)
    try:
        yield
    finally:
        _brief.pop()


def address_of(function: Any) -> int:
    """The address of a loaded function."""
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def kept_build(
    cc: Sequence[str], flags: Sequence[str], source: str, suffix: str, names: Sequence[str] | None = None
) -> Path:
    """The path of a source's library or program for this machine, from the cache folder or built now. `names`:
    functions that a library must have. Raises BuildError, and OSError where no folder can be written or no library
    loaded."""
    name = _name_of(cc, flags, source, suffix)
    try:
        folder = _closed_folder()
        if sound(folder / name):
            return folder / name
        return _kept(folder, cc, flags, source, name, names)
    except OSError:  # there is no cache, it is full, or it is read-only
        path = own_folder() / name
        return path if sound(path) else _kept(own_folder(), cc, flags, source, name, names)


def is_kept(cc: Sequence[str], source: str) -> bool:
    """Whether the cache has the library that a compiler makes of a source with FLAGS."""
    return sound(cache_folder() / "compiled" / _name_of(cc, FLAGS, source, ".so"))


def _name_of(cc: Sequence[str], flags: Sequence[str], source: str, suffix: str) -> str:
    key = "\0".join((source, *cc, " ".join(flags), platform.processor(), platform.machine(), platform.node()))
    return f"{_sha256(key.encode())[:32]}{suffix}"


def _closed_folder() -> Path:
    """The cache folder, which nobody but the user can write. Raises OSError where there is none and it cannot be made,
    PermissionError if it is another user's."""
    folders = (cache_folder(), cache_folder() / "compiled")
    folders[0].parent.mkdir(parents=True, exist_ok=True)
    opened = [closed_folder(folder) for folder in folders]
    _emptied(folders[1], everything=any(opened))
    return folders[1]


def _emptied(folder: Path, everything: bool) -> None:
    """Remove the folders of killed builds, and with `everything` all files, as other users could have written them."""
    for path in folder.iterdir():
        with suppress(OSError):
            if everything and not path.is_dir():
                path.unlink()
            elif path.name.startswith("build-") and time.time() - path.stat().st_mtime > LEFT_SECONDS:
                shutil.rmtree(path)


@cache
def own_folder() -> Path:
    """A new temporary folder of this process, removed at its end. Raises OSError."""
    from tempfile import TemporaryDirectory

    _temporary.append(TemporaryDirectory(prefix="mmaprobe-", ignore_cleanup_errors=True))
    return Path(_temporary[-1].name)


_temporary: list[TemporaryDirectory[str]] = []


def sound(path: Path) -> bool:
    """Whether a file is the user's own, nobody else can write it, and its content has the digest noted at the build."""
    try:
        digest = _read(_digest_of(path), 100).decode("ascii", "replace")
        return _sha256(_read(path)) == digest.strip()
    except OSError:
        return False


def _read(path: Path, most: int = -1) -> bytes:
    """The content of a regular file that belongs to the user and that nobody else can write. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise PermissionError(f"{path} is no regular file")
        check_own(path, status)
        return stream.read(most)


def _sha256(content: bytes) -> str:
    import hashlib

    return hashlib.sha256(content).hexdigest()


def _digest_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _kept(
    folder: Path, cc: Sequence[str], flags: Sequence[str], source: str, name: str, names: Sequence[str] | None
) -> Path:
    """Build a source and put the file into the cache folder under a name. Raises OSError, BuildError."""
    from tempfile import TemporaryDirectory

    path = folder / name
    with TemporaryDirectory(dir=folder, prefix="build-") as made:
        built = build(cc, flags, source, Path(made))
        if names is not None:
            _try(built, names)
        digest = Path(made) / "sha256"
        digest.write_text(_sha256(built.read_bytes()) + "\n", encoding="ascii")
        for file, place in ((built, path), (digest, _digest_of(path))):
            file.chmod(0o700)
            _on_disk(file)
            file.replace(place)  # in one step, so that another process never loads half a file
    return path


def _on_disk(path: Path) -> None:
    """Flush a file to its disk: after a power cut the file has all of its content or does not exist."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def build(cc: Sequence[str], flags: Sequence[str], source: str, folder: Path, seconds: float = BUILD_SECONDS) -> Path:
    """The path of the file that a compiler makes of a source, in an empty folder. Raises BuildError, OSError."""
    line, code, built = folder / "line.c", folder / "model.c", folder / "model.so"
    line.write_text("int main(void) { return 0; }\n", encoding="utf-8")
    code.write_text(source, encoding="utf-8")
    _compile([*cc, "-c", "-o", str(folder / "line.o"), str(line)], folder, min(seconds, ANSWER_SECONDS))
    _compile([*cc, *flags, "-o", str(built), str(code)], folder, seconds)
    if not built.is_file():
        raise BuildError(f"{cc[0]} made no file")
    return built


def _compile(command: Sequence[str], folder: Path, seconds: float) -> None:
    """Run a compiler, with its temporary files in `folder`. An exception here ends the compiler and the processes that
    it started. Raises BuildError."""
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=os.environ | {"TMPDIR": str(folder)}, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise BuildError(f"{command[0]} cannot be run: {error.strerror}") from None
    try:
        _, output = process.communicate(timeout=seconds)
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)  # nobody has waited for it, so the number is still its own
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise BuildError(f"{command[0]} did not end within {seconds:g} s") from None
        raise
    if process.returncode:
        lines = output.decode(errors="replace").strip().splitlines()
        raise BuildError(f"{command[0]} failed: {lines[0] if lines else f'status {process.returncode}'}")


def _try(library: Path, names: Sequence[str]) -> None:
    """Load a library in a process of its own, as a damaged library ends the process. Raises OSError."""
    command = [sys.executable, "-I", "-S", "-c", LOADS, str(library), *names]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, cwd="/")
    if done.returncode:
        raise OSError("what the C compiler made cannot be loaded")
