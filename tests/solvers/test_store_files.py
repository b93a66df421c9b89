"""The store's file: nothing reported is lost, a failing disk costs no answer, nobody else's file is touched."""

from __future__ import annotations

import os
import random
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mmaprobe.queries.solvers import store as module
from mmaprobe.queries.solvers.store import APPLICATION_ID, SCHEMA, Store, StoreError, default_path
from tests.places import ROOT
from tests.solvers.test_store import TEXT, answer_of, sql

pytestmark = pytest.mark.programs


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "store.sqlite"


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {item.name: item.read_bytes() if item.is_file() else None for item in folder.iterdir()}


# --- files that are not a store --------------------------------------------------------------------------------------


def other_sqlite(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE answers (key)")
    connection.close()


def newer(path: Path) -> None:
    Store(path).close()
    sql(path, f"PRAGMA user_version = {SCHEMA + 1}")


def damaged(path: Path) -> None:
    Store(path).close()
    head = path.read_bytes()
    path.write_bytes(head[:100] + b"\xa5" * (len(head) - 100))


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "text": (lambda path: path.write_text("# notes\n" * 100, encoding="utf-8"), "is not a result store"),
    "one byte": (lambda path: path.write_bytes(b"S"), "is not a result store"),
    "cut": (lambda path: path.write_bytes(b"SQLite format 3\0abc"), r"is damaged \(cut short after 19 bytes\)"),
    "other SQLite": (other_sqlite, "SQLite file of another program"),
    "newer": (newer, f"newer version \\(schema {SCHEMA + 1}, this one is {SCHEMA}\\); update mmaprobe"),
    "damaged": (damaged, "is damaged"),
    "folder": (Path.mkdir, "is not a file"),
    "FIFO": (os.mkfifo, "is not a file"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_file_that_is_no_store_is_refused_and_left_alone(kind: str, tmp_path: Path) -> None:
    make, message = BAD[kind]
    path = tmp_path / "given.sqlite"
    make(path)
    before = snapshot(tmp_path)
    with pytest.raises(StoreError, match=message) as caught:
        Store(path)
    assert str(path) in str(caught.value)
    assert "--store" in str(caught.value)
    assert caught.value.exit_code == 2
    assert snapshot(tmp_path) == before


def test_a_foreign_file_with_a_log_to_recover_is_left_alone(tmp_path: Path) -> None:
    """SQLite would recover it on opening, and so change it."""
    path = tmp_path / "given.sqlite"
    program = (
        "import os, signal, sqlite3, sys\n"
        "connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "connection.execute('PRAGMA journal_mode = WAL')\n"
        "connection.execute('CREATE TABLE x (y)')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    before = snapshot(tmp_path)
    assert len(before) == 3
    with pytest.raises(StoreError, match="another program"):
        Store(path)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("name", ["/dev/null", "/proc/store.sqlite", "/dev/null/store.sqlite"])
def test_places_where_no_file_can_be(name: str) -> None:
    with pytest.raises(StoreError, match=name):
        Store(name)


AS_NOBODY = """
import os, sys
from mmaprobe.queries.solvers.store import Store, StoreError
from pathlib import Path
if os.getuid() == 0:
    os.setgid(65534), os.setuid(65534)
try:
    Store(Path(sys.argv[1]))
except StoreError as error:
    print(error)
"""


@pytest.mark.parametrize("kind", ["folder of a new store", "folder", "file", "unreadable"])
def test_read_only(kind: str, path: Path) -> None:
    """Without the right to write, or to read (permissions do not bind root, who steps down)."""
    path.parent.mkdir()
    if kind != "folder of a new store":
        Store(path).close()
    path.parent.chmod(0o755 if kind in ("file", "unreadable") else 0o555)
    if path.exists():
        path.chmod({"folder": 0o644, "file": 0o444, "unreadable": 0o000}[kind])
    if os.geteuid() == 0:
        for one in (path.parent, *path.parent.iterdir()):
            os.chown(one, 65534, 65534)
    for parent in path.parents[1:3]:
        parent.chmod(0o755)  # pytest keeps its folders from others
    out = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(path)], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    path.parent.chmod(0o755)
    assert str(path) in out
    assert "--store" in out
    assert "another user" not in out


WHOSE = ["folder", "store.sqlite", "store.sqlite-wal", "store.sqlite-journal", "store.sqlite-shm"]


def planted(path: Path, whose: str) -> Path:
    """The folder of a store, or a file in it."""
    Store(path).close()
    if whose == "folder":
        return path.parent
    one = path.with_name(whose)
    one.touch()
    return one


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("whose", WHOSE)
def test_what_belongs_to_another_is_not_believed(path: Path, whose: str) -> None:
    one = planted(path, whose)
    os.chown(one, 65534, 65534)
    before = snapshot(path.parent)
    with pytest.raises(StoreError, match=rf"{one} belongs to another user; name another file with --store"):
        Store(path)
    assert snapshot(path.parent) == before


@pytest.mark.parametrize("whose", WHOSE)
@pytest.mark.parametrize("mode", [0o020, 0o002])
def test_what_others_could_write_is_not_believed(path: Path, whose: str, mode: int) -> None:
    one = planted(path, whose)
    one.chmod(one.stat().st_mode | mode)
    with pytest.raises(StoreError, match=rf"other users can write {one} \(`chmod go-w` closes it\)") as caught:
        Store(path)
    assert caught.value.exit_code == 2
    one.chmod(one.stat().st_mode & ~mode)
    Store(path).close()


def test_a_link_to_a_store_that_others_could_write(path: Path, tmp_path: Path) -> None:
    Store(path).close()
    path.parent.chmod(0o777)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(StoreError, match="other users can write"):
        Store(tmp_path / "link")


def test_a_new_store_is_closed_whatever_the_umask(path: Path) -> None:
    before = os.umask(0)
    try:
        with Store(path) as store:
            store._record(TEXT, answer_of("unsat"), 1.0, 100)
            assert not any(one.stat().st_mode & 0o022 for one in (path.parent, *path.parent.iterdir()))
    finally:
        os.umask(before)


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    path.touch()
    with Store(path) as store:
        store._record(TEXT, answer_of("unsat"), 1.0, 100)
        assert store.find(TEXT, "z3", 1.0, 100) is not None
    assert sql(path, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert sql(path, "PRAGMA journal_mode") == [("wal",)]
    assert [item.name for item in tmp_path.iterdir()] == ["empty"]


@pytest.fixture
def own_store() -> None:
    """Here the usual place itself is tested."""


def test_the_default_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_path() == tmp_path / "mmaprobe" / "store.sqlite"
    with Store() as store:
        assert store.path.exists()
    (tmp_path / "mmaprobe").chmod(0o777)
    Store().close()
    assert not (tmp_path / "mmaprobe").stat().st_mode & 0o022
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    assert default_path() == tmp_path / "home" / ".cache" / "mmaprobe" / "store.sqlite"

    def homeless() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(StoreError, match="no home folder"):
        Store()


# --- failures after opening ---------------------------------------------------------------------------------------


def test_a_full_disk_costs_no_answer(path: Path) -> None:
    """It warns once, goes on reading, and what it held before is intact."""
    warnings: list[str] = []
    noise = random.Random(1).randbytes(1 << 20).hex()  # does not compress
    with Store(path, warnings.append) as store:
        store._record(TEXT, answer_of("unsat"), 1.0, 100)
        store._connection.execute("PRAGMA max_page_count = 20")
        for number in range(3):
            store._record(f"{number}{noise}", answer_of("unsat"), 1.0, 100)
            store.record_result(str(number), {})
        assert warnings == [store.warning]
        assert "full" in store.warning
        assert str(path) in store.warning
        assert store.find(TEXT, "z3", 1.0, 100) is not None
        assert store.find(f"0{noise}", "z3", 1.0, 100) is None
        store._connection.execute("PRAGMA max_page_count = 1000000")
        store._record("after", answer_of("unsat"), 1.0, 100)  # as it warned
        assert store.find("after", "z3", 1.0, 100) is None
    with Store(path) as store:
        store._record("next", answer_of("unsat"), 1.0, 100)
        assert store.find(TEXT, "z3", 1.0, 100) is not None
        assert store.find("next", "z3", 1.0, 100) is not None
    assert sql(path, "PRAGMA integrity_check") == [("ok",)]


LIMITED = """
import resource, sys
import random
from mmaprobe.queries.solvers.contract import Answer
from mmaprobe.queries.solvers.worker import version_of
from mmaprobe.queries.solvers.store import Store
with Store(sys.argv[1], print) as store:
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    for number in range(100):
        text = random.Random(number).randbytes(5000).hex()
        store._record(text, Answer("unsat", "z3", version_of("z3"), 1.0), 1.0, 100)
        if store.warning:
            break
        print(number)
"""


def test_a_file_size_limit_costs_no_answer(path: Path) -> None:
    """The kernel refuses to write: what was reported before is there, and a later run goes on."""
    out = subprocess.run(
        [sys.executable, "-B", "-c", LIMITED, str(path)], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    *numbers, warning = out
    assert "cannot be written" in warning
    assert 5 < len(numbers) < 50
    with Store(path) as store:
        for number in numbers:
            assert store.find(random.Random(int(number)).randbytes(5000).hex(), "z3", 1.0, 100) is not None
        store._record(TEXT, answer_of("unsat"), 1.0, 100)
        assert store.find(TEXT, "z3", 1.0, 100) is not None
    assert sql(path, "PRAGMA integrity_check") == [("ok",)]


def test_a_file_damaged_in_use_is_a_warning(path: Path) -> None:
    warnings: list[str] = []
    with Store(path) as store:
        store._record(TEXT, answer_of("unsat"), 1.0, 100)
    with Store(path, warnings.append) as store:
        path.write_bytes(b"\xa5" * path.stat().st_size)
        assert [store.find(TEXT, "z3", 1.0, 100) for _ in range(2)] == [None, None]
        store._record(TEXT, answer_of("unsat"), 1.0, 100)
        assert store.find_result("x") is None
        assert len(warnings) == 1
        assert "cannot be read" in warnings[0]


def test_writing_and_reading_fail_with_one_warning(path: Path) -> None:
    warnings: list[str] = []
    Store(path).close()
    with Store(path, warnings.append) as store:
        store._connection.execute("PRAGMA query_only = 1")
        store._record(TEXT, answer_of("unsat"), 1.0, 100)
        path.write_bytes(b"\xa5" * path.stat().st_size)
        store._connection.execute("PRAGMA shrink_memory")
        assert store.find(TEXT, "z3", 1.0, 100) is None
        assert not store._readable
        assert len(warnings) == 1
        assert "cannot be written" in warnings[0]


def test_an_interrupt_while_recording_leaves_the_store_usable(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*columns: object) -> str:
        raise KeyboardInterrupt

    with Store(path) as store:
        monkeypatch.setattr(module, "_checksum", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store._record(TEXT, answer_of("unsat"), 1.0, 100)
        monkeypatch.undo()
        assert sql(path, "SELECT count(*) FROM queries") == [(0,)]
        store._record(TEXT, answer_of("unsat"), 1.0, 100)
        assert store.find(TEXT, "z3", 1.0, 100) is not None
        assert store.warning == ""


def test_a_closed_store_neither_finds_nor_records(path: Path) -> None:
    store = Store(path)
    store._record(TEXT, answer_of("unsat"), 1.0, 100)
    store.close()
    store.close()
    store._record("more", answer_of("unsat"), 1.0, 100)
    assert store.find(TEXT, "z3", 1.0, 100) is None
    assert store.warning == ""
    assert sql(path, "SELECT count(*) FROM answers") == [(1,)]


# --- several processes, and their deaths --------------------------------------------------------------------------


def test_a_held_lock_is_waited_for_and_then_a_warning(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUSY", 0.2)
    with Store(path) as store:
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        start = time.monotonic()
        with pytest.raises(StoreError, match="another process has held it"):
            Store(path)
        store._record(TEXT, answer_of("unsat"), 1.0, 100)
        assert time.monotonic() - start >= 0.4
        assert "locked" in store.warning
        holder.close()


WRITER = """
import itertools, sys
sys.stdin.readline()
from mmaprobe.queries.solvers.contract import Answer
from mmaprobe.queries.solvers.worker import version_of
from mmaprobe.queries.solvers.store import Store
path, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Store(path, lambda text: sys.exit(text)) as store:
    for number in itertools.count() if count < 0 else range(count):
        text = f"{name} {number} " * 200
        store._record(text, Answer("sat", "z3", version_of("z3"), 1.0, {"x": number}), 1.0, 100)
        print(number, flush=True)
"""


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(count)], cwd=ROOT,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def holds(store: Store, name: str, number: int) -> bool:
    answer = store.find(f"{name} {number} " * 200, "z3", 1.0, 100)
    return answer is not None and answer.values == {"x": number}


def test_processes_that_create_and_write_at_the_same_time(path: Path) -> None:
    writers = {name: writer(path, name, 100) for name in "abcd"}
    for process in writers.values():
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in writers.values():
        out, err = process.communicate(timeout=60)
        assert (err, len(out.split()), process.returncode) == ("", 100, 0)
    with Store(path) as store:
        assert all(holds(store, name, number) for name in writers for number in range(100))
    assert sql(path, "PRAGMA integrity_check") == [("ok",)]
    assert [item.name for item in path.parent.iterdir()] == [path.name]


def test_killed_at_any_moment(path: Path) -> None:
    """Processes that die while writing, or while creating the file: what they reported is in the store."""
    chance = random.Random(3)
    rounds = [writer(path, f"round{number}", -1) for number in range(8)]
    for number, process in enumerate(rounds):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        select.select([process.stdout], [], [], 30)  # its first answer
        time.sleep(chance.random() / 20)
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate()
        assert err == ""
        complete = out.split("\n")[:-1]
        with Store(path) as store:
            assert complete
            assert all(holds(store, f"round{number}", int(line)) for line in complete)
    assert sql(path, "PRAGMA integrity_check") == [("ok",)]


CREATOR = """
import os, sys, threading, time
from mmaprobe.queries.solvers.store import Store
def die(seconds):
    time.sleep(seconds)
    os.kill(os.getpid(), 9)
for number in range(20):
    if os.fork() == 0:
        threading.Thread(target=die, args=(number * 0.0002,)).start()
        Store(f"{sys.argv[1]}/{number}.sqlite")
        time.sleep(60)
    os.wait()
"""


def test_killed_while_it_is_created(tmp_path: Path) -> None:
    """Whatever is left becomes a store."""
    subprocess.run([sys.executable, "-c", CREATOR, str(tmp_path)], cwd=ROOT, check=True)
    for number in range(20):
        path = tmp_path / f"{number}.sqlite"
        with Store(path) as store:
            store._record(TEXT, answer_of("unsat"), 1.0, 100)
            assert store.find(TEXT, "z3", 1.0, 100) is not None
        assert sql(path, "PRAGMA integrity_check") == [("ok",)]


def test_a_store_on_a_full_disk(path: Path) -> None:
    """There is no room for a new store."""
    program = "import resource, sys\nfrom mmaprobe.queries.solvers.store import Store, StoreError\n" + (
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n    Store(sys.argv[1])\nexcept StoreError as error:\n    print(error)\n"
    )
    out = subprocess.run(
        [sys.executable, "-B", "-c", program, str(path)], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert str(path) in out
    assert "--store" in out
    Store(path).close()  # what is left becomes a store later


def test_a_new_store_that_the_disk_has_no_room_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is that of any output, and no empty file is left."""
    prepare = module._prepare

    def full(connection: sqlite3.Connection, where: Path) -> None:
        connection.execute("PRAGMA max_page_count = 1")
        prepare(connection, where)

    monkeypatch.setattr(module, "_prepare", full)
    with pytest.raises(StoreError, match="the disk is full") as caught:
        Store(path)
    assert caught.value.exit_code == 4
    assert not path.exists()
