"""The result store: solvers' answers, kept in one SQLite file, so that no query is asked twice.

The key of an answer is made of the query's text, the engine and the engine's version. An answer is on disk before it is
reported, so that a run killed at any moment can be resumed. A decided answer holds for ever. An "unknown" holds for
budgets no larger than its own, and not at all if the engine crashed, was ended, or got less memory than its limit.

A store that cannot be opened is an error. A later failure costs no answer: the store warns once, and is not used any
more. Since the store's answers are believed, nobody but the user may own or write the store or its folder.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sqlite3
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, get_args

from mmaprobe.queries.solvers.contract import ENGINE_NAMES, Answer, Reason, Status, _tell, is_told
from mmaprobe.queries.solvers.worker import version_of
from mmaprobe.smtmodel import VERSION
from mmaprobe.smtmodel.base.errors import MmaprobeError, OutputError
from mmaprobe.smtmodel.base.folders import cache_folder, check_own, closed_folder
from mmaprobe.smtmodel.base.jsontext import parse_json

SCHEMA = 2  # raised when a table changes, and when engines get options with which they decide more
EARLIER = range(1, SCHEMA)
APPLICATION_ID = 0x6D6D6150  # "mmaP": SQLite's mark of the program that owns a file
VERDICTS = ("equal", "different", "unknown")  # verdicts of whole results
BUSY = 10.0  # seconds to wait for another process's transaction, which takes milliseconds

_JOURNALS = ("-journal", "-wal", "-shm")  # suffixes of the files that SQLite keeps beside its own
_MAGIC = b"SQLite format 3\0"
_TABLES = (
    "CREATE TABLE queries (digest TEXT PRIMARY KEY, text BLOB NOT NULL)",  # zlib, UTF-8
    'CREATE TABLE answers (key TEXT PRIMARY KEY, query TEXT NOT NULL REFERENCES queries, engine TEXT NOT NULL, '
    'version TEXT NOT NULL, status TEXT NOT NULL, seconds REAL NOT NULL, "values" TEXT NOT NULL, why TEXT, '
    "detail TEXT NOT NULL, timeout REAL, memory INTEGER NOT NULL, recorded TEXT NOT NULL, name TEXT, "
    "checksum TEXT NOT NULL)",
    "CREATE TABLE results (key TEXT PRIMARY KEY, document TEXT NOT NULL, recorded TEXT NOT NULL, "
    "checksum TEXT NOT NULL)",
)  # fmt: skip
_OTHER = "name another file with --store"


class StoreError(MmaprobeError):
    """A file that cannot serve as the store. `full`: the disk is full, with the exit code of a failed output."""

    def __init__(self, path: Path, message: str, full: bool = False) -> None:
        self.path = path
        if full:
            self.exit_code = OutputError.exit_code
        super().__init__(f"{path}: {message}")


def default_path() -> Path:
    """The path of the store that is used by default. Raises StoreError if there is no cache folder."""
    try:
        return cache_folder() / "store.sqlite"
    except FileNotFoundError as error:
        raise StoreError(Path("store.sqlite"), f"{error}, or {_OTHER}") from None


# --- keys ---------------------------------------------------------------------------------------------------------


def answer_key(text: str, engine: str, engine_version: str) -> str:
    """The key of an answer."""
    return _sha(f"{SCHEMA}\0{engine}\0{engine_version}\0{text}")


def result_key(kind: str, /, **facts: Any) -> str:
    """The key of a whole result, made of the question (`kind` and `facts`, which JSON can hold) and of everything else
    on which the result depends: this program and the engines' versions."""
    engines = {engine: version_of(engine) for engine in ENGINE_NAMES}
    return _sha(_json([SCHEMA, _program(), engines, kind, facts]))


@cache
def _program() -> tuple[str, str]:
    return program("hypotheses", "queries", "smtmodel")


def program(*packages: str) -> tuple[str, str]:
    """The program's version, and a digest of the sources of some packages, since a changed checkout has the same
    version."""
    root = Path(__file__).parents[2]
    files = sorted(path for package in packages for path in (root / package).rglob("*.py"))
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(root)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return VERSION, digest.hexdigest()


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _json(document: Any) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _checksum(*columns: Any) -> str:
    return _sha(json.dumps(columns, default=repr))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# --- rows ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Entry:
    """An answer with its budget: seconds (None: no limit) and MiB (0: no limit)."""

    answer: Answer
    timeout: float | None
    memory: int

    @property
    def decided(self) -> bool:
        return self.answer.status != "unknown"

    @property
    def accident(self) -> bool:
        """Whether the engine failed for another reason than its budget."""
        return not self.decided and (self.answer.why is None or not self.answer.why.is_of_budget)

    def covers(self, timeout: float | None, memory: int) -> bool:
        """Whether this answer holds for a budget: asking again with the budget would decide no more."""
        if self.decided or self.accident:
            return self.decided
        seconds, limit = (math.inf if value is None else value for value in (self.timeout, timeout))
        return limit <= seconds and (memory or math.inf) <= (self.memory or math.inf)

    def outranks(self, new: _Entry) -> bool:
        """Whether this answer is kept when `new` comes. An undecided answer replaces no decided answer, and no
        undecided answer of a larger budget."""
        if new.decided or self.accident:
            return False
        if self.decided or new.accident:
            return True
        return self.covers(new.timeout, new.memory) and not new.covers(self.timeout, self.memory)


_COLUMNS = 'engine, version, status, seconds, "values", why, detail, timeout, memory, query, recorded, name'
_SELECT = f"SELECT {_COLUMNS}, checksum FROM answers WHERE key = ?"


class _SenselessError(ValueError):
    """A row with a right checksum that no version of mmaprobe writes."""


def _entry(key: str, row: tuple[Any, ...] | None) -> _Entry | None:
    """The entry of a row of _SELECT; None for no row, and for a wrong checksum. Raises _SenselessError."""
    if row is None:
        return None
    *columns, checksum = row
    if checksum != _checksum(key, *columns):
        return None
    engine, engine_version, status, seconds, values, why, detail, timeout, memory, *_ = columns
    try:
        inputs, reason = parse_json(values), None if why is None else Reason[why]
        sensible = (
            status in get_args(Status)
            and all(isinstance(text, str) for text in (engine, engine_version, detail))
            and isinstance(seconds, float)
            and isinstance(timeout, float | None)
            and isinstance(memory, int)
            and isinstance(inputs, dict)
            and all(type(value) is int for value in inputs.values())
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _SenselessError(str(error)) from None
    if not sensible:
        raise _SenselessError("a column has no value of its kind")
    answer = Answer(status, engine, engine_version, seconds, inputs, reason, detail, stored=True)
    return _Entry(answer, timeout, memory)


# --- the store ----------------------------------------------------------------------------------------------------


class Store:
    """A store in use; close it, or use it in a `with`. `path` None: the user's default store. Raises StoreError.

    `warning` is the first failure after opening, "" if there was none; `warn` is called with this warning at once.
    """

    def __init__(self, path: Path | str | None = None, warn: Callable[[str], object] | None = None) -> None:
        self.path = default_path() if path is None else Path(path)
        self.warning = ""
        self._warn = warn
        self._readable = self._writable = True
        self._lock = threading.Lock()  # one transaction at a time, of all threads
        self._connection = _open(self.path, in_cache=path is None)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store; from then on it has no answers and records none."""
        self._readable = self._writable = False
        with suppress(sqlite3.Error):  # every answer is on disk already
            self._connection.close()

    def find(self, text: str, engine: str, timeout: float | None, memory: int) -> Answer | None:
        """The answer of the installed version of an engine to a query's text; None if there is none, or if asking again
        with these limits could decide more. `timeout`: seconds, None without a limit; `memory`: MiB, 0 without a
        limit."""
        key = answer_key(text, engine, version_of(engine))
        try:
            entry = _entry(key, self._read(_SELECT, key))
        except _SenselessError as error:
            self._doubt(error)
            return None
        return _tell(text, entry.answer) if entry is not None and entry.covers(timeout, memory) else None

    @property
    def is_empty(self) -> bool:
        """Whether there is no answer to any query."""
        return self._read("SELECT 1 FROM answers WHERE key > ? LIMIT 1", "") is None

    def record(self, text: str, answer: Answer, timeout: float | None, memory: int, name: str = "") -> None:
        """Keep the answer that an engine gave to a query's text within a budget; the answer is on disk when this method
        returns. An earlier answer is replaced unless it outranks the new one.

        `name`: a description of the question. A failing disk raises no error, but sets `warning`. Raises ValueError for
        a decided answer that no engine gave.
        """
        if answer.status != "unknown" and not is_told(answer, text):
            raise ValueError(f"{answer}: no engine gave this answer to this text")
        self._record(text, answer, timeout, memory, name)

    def _record(self, text: str, answer: Answer, timeout: float | None, memory: int, name: str = "") -> None:
        if answer.stored:
            return
        key, digest = answer_key(text, answer.engine, answer.version), _sha(text)
        values = json.dumps(answer.values)
        columns = [
            answer.engine, answer.version, answer.status, float(answer.seconds), values,
            None if answer.why is None else answer.why.name, answer.detail,
            None if timeout is None else float(timeout), memory, digest, _now(), name or None,
        ]  # fmt: skip
        packed = zlib.compress(text.encode())  # outside the transaction, to keep that short

        def write(connection: sqlite3.Connection) -> None:
            try:
                old = _entry(key, connection.execute(_SELECT, (key,)).fetchone())
            except _SenselessError:
                old = None
            if old is not None and old.outranks(_Entry(answer, timeout, memory)):
                return
            connection.execute("INSERT OR IGNORE INTO queries VALUES (?, ?)", (digest, packed))
            holes = ", ".join("?" * (len(columns) + 2))
            connection.execute(
                f"INSERT OR REPLACE INTO answers (key, {_COLUMNS}, checksum) VALUES ({holes})",
                (key, *columns, _checksum(key, *columns)),
            )

        self._write(write)

    def find_result(self, key: str) -> dict[str, Any] | None:
        """The whole result of a `result_key`; None if there is none."""
        row = self._read("SELECT document, recorded, checksum FROM results WHERE key = ?", key)
        if row is None or row[2] != _checksum(key, *row[:2]):
            return None
        try:
            document = parse_json(row[0])
            if not isinstance(document, dict) or document.get("verdict") not in VERDICTS:
                raise ValueError("no document with a verdict")
        except (TypeError, ValueError) as error:
            self._doubt(error)
            return None
        return document

    def record_result(self, key: str, document: dict[str, Any]) -> None:
        """Keep a whole result in the place of an earlier one; the result is on disk when this method returns."""
        columns = (key, json.dumps(document), _now())
        self._write(
            lambda connection: connection.execute(
                "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?)", (*columns, _checksum(*columns))
            )
        )

    def _read(self, statement: str, key: str) -> tuple[Any, ...] | None:
        """The row of a key; None if there is no row, or once a read has failed."""
        if not self._readable:
            return None
        try:
            with self._lock:
                row: tuple[Any, ...] | None = self._connection.execute(statement, (key,)).fetchone()
            return row
        except sqlite3.ProgrammingError:
            raise
        except sqlite3.Error as error:
            self._readable = self._writable = False
            self._fail(f"cannot be read ({error}): stored answers are not used, and no more are stored")
            return None

    def _write(self, write: Callable[[sqlite3.Connection], object]) -> None:
        """Run one transaction, unless an earlier write has failed."""
        if not self._writable:
            return
        connection = self._connection
        try:
            with self._lock:
                try:
                    connection.execute("BEGIN IMMEDIATE")
                    write(connection)
                    connection.execute("COMMIT")
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
        except sqlite3.ProgrammingError:
            raise
        except sqlite3.Error as error:
            self._writable = False
            self._fail(f"cannot be written ({error}): answers from here on are not stored")

    def _doubt(self, error: Exception) -> None:
        """Warn, once, of a row with a right checksum that no version of mmaprobe writes."""
        self._fail(f"has a row that mmaprobe does not write ({error}): what it is about is asked again")

    def _fail(self, message: str) -> None:
        if self.warning:
            return
        self.warning = f"the result store {self.path} {message}"
        if self._warn is not None:
            self._warn(self.warning)


# --- opening ------------------------------------------------------------------------------------------------------


def _open(path: Path, in_cache: bool) -> sqlite3.Connection:
    """The connection to a store. `in_cache`: the file is in this program's own cache folder, which is closed to other
    users if it is open to them. Raises StoreError."""
    file = Path(os.path.realpath(path))  # SQLite puts its journals beside this path
    try:
        if in_cache:
            file.parent.parent.mkdir(parents=True, exist_ok=True)
            closed_folder(file.parent)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_kind(path)
        for place in (file.parent, *(file.with_name(file.name + end) for end in ("", *_JOURNALS))):
            if os.path.lexists(place):
                check_own(place)
    except OSError as error:
        why = error.strerror or error
        raise StoreError(path, f"cannot be used as the result store: {why}; {_OTHER}") from None
    connection, new = None, not path.exists()
    try:
        connection = sqlite3.connect(file, timeout=BUSY, isolation_level=None, check_same_thread=False)
        _prepare(connection, path)
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, sqlite3.Error):
            full = _is_full(error)
            if full and new and path.exists() and not path.stat().st_size:
                path.unlink()
            raise StoreError(path, _advice(error), full) from None
        raise
    return connection


def _check_kind(path: Path) -> None:
    """Check the first bytes of a file before SQLite opens the file, since SQLite may change a file to recover it.
    Raises StoreError."""
    if not path.exists():
        return
    if not path.is_file():
        raise StoreError(path, f"is not a file; {_OTHER}")
    with path.open("rb") as stream:
        head = stream.read(100)
    if not head:
        return
    if not head.startswith(_MAGIC):
        raise StoreError(path, f"is not a result store; {_OTHER}")
    if len(head) < 100:
        raise StoreError(path, f"is damaged (cut short after {len(head)} bytes); move it away, or {_OTHER}")
    if int.from_bytes(head[68:72], "big") != APPLICATION_ID:
        raise StoreError(path, f"is an SQLite file of another program; {_OTHER}")


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    # text of a damaged row is read without an error, since the row's checksum shows the damage
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    connection.execute("PRAGMA synchronous = FULL")  # a power cut loses nothing either
    connection.execute("BEGIN IMMEDIATE")  # also shows whether the file can be written
    try:
        schema = connection.execute("PRAGMA user_version").fetchone()[0]
        if schema in EARLIER:  # tables of an earlier schema: their queries are asked again
            for table in ("answers", "queries", "results"):
                connection.execute(f"DROP TABLE {table}")
        if schema == 0 or schema in EARLIER:
            # in the rollback journal's mode, so that the file has its application id before there is a write-ahead log
            for statement in _TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA}")
        elif schema != SCHEMA:
            which = "a newer" if schema > SCHEMA else "another"
            raise StoreError(
                path, f"is of {which} version (schema {schema}, this one is {SCHEMA}); update mmaprobe, or {_OTHER}"
            )
        connection.execute("SELECT count(*) FROM (SELECT 1 FROM answers LIMIT 1)")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        with suppress(sqlite3.OperationalError):  # another process sets the mode; either mode is safe
            connection.execute("PRAGMA journal_mode = WAL").fetchone()


def _is_full(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorname", "").startswith("SQLITE_FULL")


def _advice(error: sqlite3.Error) -> str:
    """What to do about a file that SQLite cannot open or write."""
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return f"is damaged ({error}); move it away, or {_OTHER}"
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"another process has held it for {BUSY:.0f} s; end that, or {_OTHER}"
    if _is_full(error):
        return f"the disk is full; free some space, or {_OTHER}"
    return f"cannot be used as the result store ({error}); make file and folder writable, or {_OTHER}"
