"""What is built and kept: it is run only where nobody else can have changed it, a damaged file is built again, and a
compiler that hangs or makes junk ends in a message."""

from __future__ import annotations

import ctypes
import hashlib
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mmaprobe.queries.certificates import checker
from mmaprobe.smtmodel.base import libraries
from mmaprobe.smtmodel.base.libraries import BuildError, command_of, kept_build, loaded

SOURCE = "int seven(void) { return 7; }\n"
FLAGS = ("-shared", "-fPIC")

pytestmark = [pytest.mark.compilers, pytest.mark.skipif(libraries.compiler() is None, reason="no C compiler")]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder of its own, and nothing remembered of others."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    remembered: tuple[Callable[[], None], ...] = (
        libraries.compiler.cache_clear, loaded.cache_clear, libraries.own_folder.cache_clear,
        checker._own.cache_clear,
    )  # fmt: skip
    for forget in remembered:
        forget()
    yield tmp_path / "cache" / "mmaprobe" / "compiled"
    for forget in remembered:
        forget()


def built(source: str = SOURCE) -> Path:
    cc = command_of("cc")
    assert cc is not None
    return kept_build(cc, FLAGS, source, ".so", ["seven"])


def says(path: Path) -> int:
    return int(ctypes.CDLL(str(path)).seven())


def script(path: Path, text: str) -> Path:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def test_folders_and_files_are_closed_whatever_the_umask(cache: Path) -> None:
    before = os.umask(0)
    try:
        path = built()
    finally:
        os.umask(before)
    assert path.parent == cache
    for one in (cache, cache.parent, *cache.iterdir()):
        assert not one.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH), one
    assert says(path) == 7


def planted(path: Path) -> None:
    """Another library in its place, with a digest that fits, as somebody would who can write there."""
    cc = command_of("cc")
    assert cc is not None
    code = path.with_name("planted.c")
    code.write_text("int seven(void) { return 8; }\n")
    path.unlink()
    subprocess.run([*cc, *FLAGS, "-o", str(path), str(code)], check=True)
    path.with_name(path.name + ".sha256").write_text(hashlib.sha256(path.read_bytes()).hexdigest())


@pytest.mark.parametrize("open_to_others", ["compiled", "mmaprobe", "file"])
def test_what_others_could_write_is_not_run(cache: Path, open_to_others: str) -> None:
    path = built()
    planted(path)
    {"compiled": cache, "mmaprobe": cache.parent, "file": path}[open_to_others].chmod(0o777)
    assert says(built()) == 7
    assert not cache.stat().st_mode & 0o022


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("of_another", ["compiled", "mmaprobe", "file", "digest"])
def test_what_belongs_to_another_is_not_run(cache: Path, of_another: str) -> None:
    path = built()
    planted(path)
    places = {"compiled": cache, "mmaprobe": cache.parent, "file": path,
              "digest": path.with_name(path.name + ".sha256")}  # fmt: skip
    os.chown(places[of_another], 65534, 65534)
    again = built()
    assert says(again) == 7
    assert (again.parent == cache) == (of_another in ("file", "digest"))
    assert not again.parent.stat().st_mode & 0o077


def test_a_link_is_not_followed(cache: Path) -> None:
    path = built()
    planted(path)
    path.rename(cache / "elsewhere.so")
    path.symlink_to(cache / "elsewhere.so")
    assert says(built()) == 7


@pytest.mark.parametrize("damage", [lambda x: x[:3000], lambda x: b"", lambda x: x[:-1] + b"?"])
def test_a_damaged_file_is_built_again(cache: Path, damage: Callable[[bytes], bytes]) -> None:
    path = built()
    path.write_bytes(damage(path.read_bytes()))
    assert says(built()) == 7
    path.with_name(path.name + ".sha256").unlink()
    assert says(built()) == 7


def test_without_a_cache_a_folder_of_the_process_does(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    path = built()
    assert says(path) == 7
    assert built() == path
    assert path.parent == libraries.own_folder()


def test_leftovers_of_builds_that_were_killed_are_removed(cache: Path) -> None:
    built()
    for name, age in (("build-old", 7200.0), ("build-new", 0.0)):
        (cache / name).mkdir()
        os.utime(cache / name, (time.time() - age,) * 2)
    built()
    assert not (cache / "build-old").exists()
    assert (cache / "build-new").exists()


#: a compiler that writes the beginning of a library
JUNK = 'before=; for word; do [ "$before" = -o ] && head -c 3000 {elf} > "$word"; before=$word; done; true\n'


@pytest.mark.parametrize(("text", "why"), [
    (JUNK, "cannot be loaded"), ("exit 1\n", "failed: status 1"), ("echo broken >&2; exit 3\n", "failed: broken"),
    ("sleep 100\n", "did not end within 0.3 s"), ("exit 0\n", "made no file"),
])  # fmt: skip
def test_a_compiler_that_is_no_use(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, why: str
) -> None:
    elf = built()
    cc = script(tmp_path / "cc", text.replace("{elf}", str(elf)))
    monkeypatch.setenv("CC", str(cc))
    monkeypatch.setattr(libraries, "ANSWER_SECONDS", 0.3 if "sleep" in text else 20.0)
    libraries.compiler.cache_clear()
    assert loaded(SOURCE + "/* other */", ("seven",)) is None
    assert why in libraries.failure()
    assert not [path for path in cache.iterdir() if path.name.startswith("build-")]


def test_a_library_without_the_function_is_built_again(cache: Path, tmp_path: Path,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    """A compiler that made the wrong thing once, and is mended."""
    wrong = tmp_path / "wrong.c"
    wrong.write_text("int eight(void) { return 8; }\n")
    once = "last=; for word; do last=$word; done\n"
    once += f'case "$last" in *model.c) if [ ! -e {tmp_path}/seen ]; then touch {tmp_path}/seen; '
    once += f'set -- $(echo "$@" | sed "s#$last#{wrong}#"); fi;; esac\nexec cc "$@"\n'
    monkeypatch.setenv("CC", str(script(tmp_path / "cc", once)))
    libraries.compiler.cache_clear()
    assert loaded(SOURCE, ("seven",)).seven() == 7


def test_options_of_the_compiler(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "cc -O3 -DSEVEN=7")
    libraries.compiler.cache_clear()
    assert loaded("int seven(void) { return SEVEN; }\n", ("seven",)).seven() == 7
    assert command_of("cc 'open") is None
    assert command_of("") is None
    assert command_of("no-such-compiler -O3") is None


def test_an_interrupt_ends_the_compiler_too(cache: Path, tmp_path: Path) -> None:
    """Nothing of it is left: neither the process that it has started, nor a folder."""
    number = tmp_path / "number"
    cc = script(tmp_path / "cc", f"case $1 in -c) exit 0;; esac\nsleep 60 & echo $! > {number}; wait\n")
    program = (
        "from mmaprobe.smtmodel.base.libraries import compiler, kept_build\n"
        f"kept_build(compiler(), (), {SOURCE!r}, '.so')\n"
    )  # fmt: skip
    with subprocess.Popen([sys.executable, "-c", program], env=os.environ | {"CC": str(cc)},
                          stderr=subprocess.DEVNULL) as process:  # fmt: skip
        while not number.exists() or not number.read_text().strip():
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        process.wait(20)
    child = Path("/proc") / number.read_text().strip() / "stat"
    deadline = time.monotonic() + 5
    while child.exists() and child.read_text().split()[2] != "Z" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not child.exists() or child.read_text().split()[2] == "Z"
    assert list(cache.iterdir()) == []


# -- the checker of proofs


@pytest.fixture
def without_drat_trim(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = os.environ["PATH"].split(os.pathsep)
    monkeypatch.setenv("PATH", os.pathsep.join(one for one in folders if not (Path(one) / "drat-trim").exists()))


def test_the_checker_is_not_the_one_that_lies_in_the_cache(cache: Path, without_drat_trim: None) -> None:
    cache.mkdir(parents=True)
    found = checker.checker().path
    assert cache not in found.parents
    assert not found.parent.stat().st_mode & 0o077


def test_a_compiler_that_hangs_leaves_no_checker(cache: Path, tmp_path: Path, without_drat_trim: None,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setenv("CC", str(script(tmp_path / "cc", "sleep 100\n")))
    monkeypatch.setattr(libraries, "ANSWER_SECONDS", 0.3)
    with pytest.raises(checker.NoCheckerError, match=r"install drat-trim or a C compiler \(.*cc did not end within"):
        checker.checker()


def test_a_build_says_what_failed(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="cannot be run"):
        libraries.build((str(tmp_path / "nothing"),), (), SOURCE, tmp_path)
