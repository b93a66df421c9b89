"""The folder into which a certificate is written: it is new or empty, or holds an older certificate."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path

from mmaprobe.queries.certificates.manifest import MANIFEST, read_any_manifest
from mmaprobe.queries.certificates.names import NAMES
from mmaprobe.queries.certificates.reading import is_folder
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.base.files import INPUTS, check_folder, make_folder
from mmaprobe.smtmodel.base.interrupts import undone_if_ended

DEEPEST = 3  # the most nested folders, which certificates of the cases of claims need
UNFINISHED = ".new-"  # prefix of folders with a certificate that is being written, or whose writing was ended
REFUSED = "a certificate is written into a new or an empty folder, or takes the place of another certificate"


def is_ours(name: str) -> bool:
    """Whether a file of a certificate may have this name."""
    return any(fnmatch(name, pattern) for pattern in NAMES)


def check_place(directory: Path) -> None:
    """Raises InputError for a folder that holds anything but a certificate, or folders of certificates."""
    check_folder(directory)
    _owned_paths(directory)


def empty_folder(directory: Path) -> None:
    """Remove the files of a folder that certificates' manifests name, and no others. Raises the errors of
    `check_place`."""
    for path in _owned_paths(directory):
        if is_folder(path):
            path.rmdir()
        else:
            path.unlink()


def _owned_paths(top: Path, directory: Path | None = None) -> list[Path]:
    """The contents of a folder, files before their folders. Raises InputError if any of it does not belong to a
    certificate."""
    where = directory or top
    try:
        entries = sorted(where.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", str(top)) from None
    names = {path.name for path in entries}
    manifest = None
    if MANIFEST in names:
        with suppress(InputError):
            manifest = read_any_manifest(where)
    files = manifest.files if manifest else set[str]()
    left = [path for path in entries if path.name.startswith(UNFINISHED) and is_folder(path)]
    paths = [inner for one in left for inner in (*sorted(one.rglob("*"), reverse=True), one)]
    below = [path for path in entries if path not in left and is_folder(path)
             and (manifest is None or path.name in manifest.parts)]  # fmt: skip
    for path in entries:
        if path not in left and path not in below and (path.name not in files or is_folder(path)):
            raise InputError(f"{path.relative_to(top)} is in it: {REFUSED}", str(top))
    deep = len(where.relative_to(top).parts) > DEEPEST
    if where != top and not files and (deep or not below):
        raise InputError(f"{where.relative_to(top)} is in it: {REFUSED}", str(top))
    paths += [path for path in entries if path.name in files]
    for path in below:
        paths += [*_owned_paths(top, path), path]
    return paths


def _exchange(directory: Path, new: Path) -> None:
    """Replace everything in a folder by the contents of `new`, a folder inside it; an interrupt undoes the exchange."""
    old = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=directory))

    def moved(source: Path, target: Path) -> None:
        for path in sorted(source.iterdir(), key=lambda path: path.name == MANIFEST):  # the manifest last
            if path not in (new, old):
                path.rename(target / path.name)

    is_empty = False
    try:
        moved(directory, old)
        is_empty = True
        moved(new, directory)
    except BaseException:
        if is_empty:
            moved(directory, new)
        moved(old, directory)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)
    new.rmdir()


@contextmanager
def written_apart(directory: Path) -> Iterator[Path]:
    """A block with a new folder inside `directory`. At the end of the block the new files replace the certificate in
    `directory`; an error leaves the old certificate as it was. Raises the errors of `check_place`."""
    check_place(directory)
    made = [one for one in (directory, *directory.parents) if not one.exists()]
    make_folder(directory)
    try:
        new = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=directory))
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", str(directory)) from None

    def remove() -> None:
        shutil.rmtree(new, ignore_errors=True)
        for one in made:
            with suppress(OSError):
                one.rmdir()

    with undone_if_ended(remove):
        try:
            yield new
            for path in _owned_paths(directory):  # now, when the inputs that other inputs name are known
                INPUTS.check(path)
            _exchange(directory, new)
        except BaseException:
            remove()
            raise
