"""What the result store answers: which answers hold for whom, nothing damaged is believed, nothing is asked twice."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from mmaprobe.queries.solvers import store as module
from mmaprobe.queries.solvers.contract import ENGINE_NAMES, Answer, Reason, SolverProcess, Status
from mmaprobe.queries.solvers.store import SCHEMA, Store, result_key
from mmaprobe.queries.solvers.worker import version_of
from tests.solvers.test_solvers import HARD, LARGE, pid_of

TEXT = "(set-logic QF_BV)\n(check-sat)\n"
VERSIONS = {engine: version_of(engine) for engine in ENGINE_NAMES}


def answer_of(status: Status, engine: str = "z3", why: Reason | None = None, detail: str = "", **values: int) -> Answer:
    return Answer(status, engine, VERSIONS[engine], 1.25, values, why, detail)


TIMED_OUT = answer_of("unknown", why=Reason.TIME)
FAILED = answer_of("unknown", why=Reason.FAILED, detail="x")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "store.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store(path) as opened:
        yield opened
        assert opened.warning == ""


def sql(path: Path, statement: str, *values: object) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


# --- answers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINE_NAMES)
@pytest.mark.parametrize(
    "answer",
    [answer_of("sat", a0=0, c=(1 << 200) + 1), answer_of("sat"), answer_of("unsat")],
    ids=["sat", "no inputs", "unsat"],
)
def test_a_decided_answer_holds_for_every_budget(path: Path, answer: Answer, engine: str) -> None:
    answer = replace(answer, engine=engine, version=VERSIONS[engine])
    with Store(path) as store:
        store._record(TEXT, answer, 1.0, 100)
    with Store(path) as store:
        for timeout, memory in ((0.5, 64), (1e6, 1 << 20), (None, 0)):
            assert store.find(TEXT, engine, timeout, memory) == replace(answer, stored=True)


def test_another_text_engine_or_version_does_not_match(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store._record(TEXT, answer_of("unsat"), None, 0)
    assert store.find(TEXT, "z3", None, 0) is not None
    assert store.find(TEXT + " ", "z3", None, 0) is None
    assert store.find(TEXT, "cvc5", None, 0) is None
    monkeypatch.setattr(module, "version_of", lambda engine: VERSIONS[engine] + ".1")
    assert store.find(TEXT, "z3", None, 0) is None
    monkeypatch.undo()
    monkeypatch.setattr(module, "SCHEMA", SCHEMA + 1)
    assert store.find(TEXT, "z3", None, 0) is None


def test_each_part_of_a_key_counts() -> None:
    keys = {module.answer_key(*parts) for parts in (("a", "b", "c"), ("x", "b", "c"), ("a", "x", "c"), ("a", "b", "x"))}
    assert len(keys) == 4


BUDGETS = [  # recorded under, asked with, holds
    ((10.0, 100), (10.0, 100), True),
    ((10.0, 100), (9.0, 99), True),
    ((10.0, 100), (10.1, 100), False),
    ((10.0, 100), (9.0, 101), False),
    ((10.0, 100), (None, 100), False),
    ((10.0, 100), (10.0, 0), False),
    ((None, 0), (None, 0), True),
    ((None, 0), (10.0, 100), True),
    ((None, 100), (1e9, 100), True),
    ((10.0, 0), (10.0, 1 << 30), True),
]


@pytest.mark.parametrize(("under", "asked", "holds"), BUDGETS)
@pytest.mark.parametrize("why", [Reason.TIME, Reason.NOT_ASKED, Reason.MEMORY, Reason.GAVE_UP])
def test_unknown_holds_for_budgets_no_larger(
    store: Store, under: tuple[float | None, int], asked: tuple[float | None, int], holds: bool, why: Reason
) -> None:
    answer = answer_of("unknown", why=why, detail="(incomplete)")
    store._record(TEXT, answer, *under)
    assert store.find(TEXT, "z3", *asked) == (replace(answer, stored=True) if holds else None)


@pytest.mark.parametrize("why", [None, Reason.ENDED, Reason.FAILED])
def test_an_accident_is_kept_but_not_reused(store: Store, path: Path, why: Reason | None) -> None:
    store._record(TEXT, answer_of("unknown", why=why, detail="x"), 10.0, 100)
    assert store.find(TEXT, "z3", 1.0, 64) is None
    assert sql(path, "SELECT status, why, detail FROM answers") == [("unknown", why and why.name, "x")]


def test_answers_of_an_earlier_schema_are_asked_again(store: Store, path: Path) -> None:
    store._record(TEXT, answer_of("unsat"), None, 0)
    store.close()
    sql(path, "PRAGMA user_version = 1")
    with Store(path) as opened:
        assert opened.find(TEXT, "z3", None, 0) is None
        opened._record(TEXT, answer_of("unsat"), None, 0)
        assert opened.find(TEXT, "z3", None, 0) is not None
    assert sql(path, "PRAGMA user_version") == [(SCHEMA,)]


def test_the_reasons_of_the_contract_are_known(store: Store) -> None:
    """Answers of real processes: out of time and out of memory hold, killed and not understood do not."""
    slow, large, killed, wrong = (
        SolverProcess("bitwuzla", HARD), SolverProcess("bitwuzla", LARGE, 100),
        SolverProcess("bitwuzla", HARD), SolverProcess("bitwuzla", "(nonsense"),
    )  # fmt: skip
    os.kill(pid_of(killed), signal.SIGKILL)
    expected = {"killed": False, "wrong": False, "large": True, "slow": True}
    for name, process in (("killed", killed), ("wrong", wrong), ("large", large)):
        store._record(name, process.answer(60), 60.0, 100)
    store._record("slow", slow.answer(0), 60.0, 100)
    assert {name: store.find(name, "bitwuzla", 60.0, 100) is not None for name in expected} == expected


SMALLER, LARGER = (5.0, 100), (20.0, 100)


@pytest.mark.parametrize(
    ("first", "under_first", "second", "under_second", "kept"),
    [
        (TIMED_OUT, SMALLER, answer_of("unsat"), SMALLER, 1),
        (answer_of("unsat"), SMALLER, TIMED_OUT, LARGER, 0),
        (answer_of("unsat"), SMALLER, answer_of("sat", x=1), SMALLER, 1),
        (TIMED_OUT, SMALLER, TIMED_OUT, LARGER, 1),
        (TIMED_OUT, LARGER, TIMED_OUT, SMALLER, 0),
        (TIMED_OUT, LARGER, answer_of("unknown", why=Reason.MEMORY), LARGER, 1),
        (TIMED_OUT, (20.0, 64), TIMED_OUT, (5.0, 128), 1),
        (TIMED_OUT, SMALLER, FAILED, LARGER, 0),
        (FAILED, LARGER, TIMED_OUT, SMALLER, 1),
        (FAILED, LARGER, answer_of("unknown", why=Reason.FAILED, detail="y"),
         SMALLER, 1),
    ],
)  # fmt: skip
def test_what_says_more_stays(
    store: Store, path: Path, first: Answer, under_first: tuple[float, int], second: Answer,
    under_second: tuple[float, int], kept: int,
) -> None:  # fmt: skip
    store._record(TEXT, first, *under_first)
    store._record(TEXT, second, *under_second)
    answer, budget = ((first, under_first), (second, under_second))[kept]
    row = sql(path, "SELECT status, why, detail, timeout, memory FROM answers")
    assert row == [(answer.status, answer.why and answer.why.name, answer.detail, *budget)]


def test_a_stored_answer_is_not_stored_again(store: Store, path: Path) -> None:
    store._record(TEXT, replace(answer_of("unsat"), stored=True), None, 0)
    assert sql(path, "SELECT * FROM answers") == []


def test_a_store_can_be_audited(store: Store, path: Path) -> None:
    """Each answer with its question, which is kept once for all engines, and its name."""
    store._record(TEXT, answer_of("unsat"), 2.5, 100, "lemma sum = sum")
    store._record(TEXT, answer_of("sat", "cvc5", x=3), None, 0)
    rows = sql(
        path,
        'SELECT engine, version, status, seconds, "values", timeout, memory, name, text FROM answers '
        "JOIN queries ON query = digest ORDER BY engine",
    )
    assert [row[:-1] for row in rows] == [
        ("cvc5", VERSIONS["cvc5"], "sat", 1.25, '{"x": 3}', None, 0, None),
        ("z3", VERSIONS["z3"], "unsat", 1.25, "{}", 2.5, 100, "lemma sum = sum"),
    ]
    assert all(zlib.decompress(row[-1]).decode() == TEXT for row in rows)  # type: ignore[arg-type]
    assert sql(path, "SELECT count(*) FROM queries") == [(1,)]
    assert sql(path, "SELECT max(julianday('now') - julianday(recorded)) < 1e-3 FROM answers") == [(1,)]


def test_a_hit_is_found_at_once(path: Path) -> None:
    """Among thousands of answers, with opening and closing: the best of some tries, as others share the machine."""
    with Store(path) as store:
        store._record(TEXT, answer_of("unsat"), None, 0)
        row = sql(path, "SELECT * FROM answers")[0]
        filler = [(f"{number:064x}", *row[1:]) for number in range(5000)]
        store._connection.execute("BEGIN")
        store._connection.executemany(f"INSERT INTO answers VALUES ({', '.join('?' * len(row))})", filler)
        store._connection.execute("COMMIT")
    times = []
    for _ in range(10):
        start = time.perf_counter()
        with Store(path) as store:
            assert store.find(TEXT, "z3", None, 0) is not None
        times.append(time.perf_counter() - start)
    assert min(times) < 0.01


# --- damage -------------------------------------------------------------------------------------------------------

DAMAGE = {
    "key": None, "status": "unsat", "engine": "cvc5", "version": "9", "seconds": 2.5, "values": '{"x": 4}',
    "why": "MEMORY", "detail": "x", "timeout": None, "memory": b"\xff", "checksum": "0", "query": "0", "recorded": "",
    "name": "y",
}  # fmt: skip


@pytest.mark.parametrize("column", DAMAGE)
def test_a_damaged_row_is_ignored_and_replaced(store: Store, path: Path, column: str) -> None:
    answer, other = answer_of("sat", x=3), TEXT + "(exit)"
    store._record(TEXT, answer, 10.0, 100, "name")
    moved = module.answer_key(other, "z3", VERSIONS["z3"])  # a row under the key of another question
    sql(path, f'UPDATE answers SET "{column}" = ?', moved if column == "key" else DAMAGE[column])
    text = other if column == "key" else TEXT
    assert store.find(text, "z3", 1.0, 64) is None
    store._record(text, TIMED_OUT, 10.0, 100)
    assert store.find(text, "z3", 1.0, 64) == replace(TIMED_OUT, stored=True)


def test_text_that_is_no_text_is_damage(store: Store, path: Path) -> None:
    store._record(TEXT, answer_of("unsat"), 10.0, 100)
    sql(path, "UPDATE answers SET detail = CAST(x'ff' AS TEXT)")
    assert store.find(TEXT, "z3", 1.0, 64) is None


# --- whole results ------------------------------------------------------------------------------------------------


def test_whole_results(path: Path) -> None:
    document = {"verdict": "equal", "lemmas": [1, {"x": None}], "text": "é"}
    key, other = result_key("prove", left="a", right="b"), result_key("prove", left="b", right="a")
    with Store(path) as store:
        assert store.find_result(key) is None
        store.record_result(key, document)
    with Store(path) as store:
        assert store.find_result(key) == document
        assert store.find_result(other) is None
        store.record_result(key, {"verdict": "unknown"})
        assert store.find_result(key) == {"verdict": "unknown"}
        sql(path, "UPDATE results SET document = ?", '{"verdict":"equal"}')
        assert store.find_result(key) is None


def test_the_key_of_a_result_depends_on_all_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"kind": "mma", "timeout": 1.5, "inputs": {"finite": True, "zero_terms": [1]}}
    key = result_key("prove", **facts)
    assert key == result_key("prove", **dict(reversed(facts.items())))
    keys = [key, result_key("verify", **facts), result_key("prove", **{**facts, "timeout": 2.5})]
    for name, value in (
        ("SCHEMA", SCHEMA + 1),
        ("version_of", lambda engine: "1"),
        ("_program", lambda: ("0.0.1", "0")),
        ("_program", lambda: ("0.0.1", "1")),
    ):
        monkeypatch.setattr(module, name, value)
        keys.append(result_key("prove", **facts))
        monkeypatch.undo()
    assert len(set(keys)) == len(keys) == 7
    with pytest.raises(TypeError):
        result_key("prove", model=object())


def test_a_changed_source_is_another_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "__file__", str(tmp_path / "queries" / "solvers" / "store.py"))
    digests = []
    for text in ("a = 1", "a = 2"):
        (tmp_path / "smtmodel" / "carriers").mkdir(parents=True, exist_ok=True)
        (tmp_path / "smtmodel" / "carriers" / "terms.py").write_text(text, encoding="utf-8")
        digests.append(module._program.__wrapped__())
    assert digests[0] != digests[1]


def test_the_version_of_an_engine_is_that_of_its_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first on the path, as the module of the standard library finds it, which reads any other kind."""
    found = version_of.__wrapped__
    assert {engine: found(engine) for engine in ENGINE_NAMES} == {
        engine: version({"z3": "z3-solver"}.get(engine, engine)) for engine in ENGINE_NAMES
    }
    monkeypatch.syspath_prepend(tmp_path)
    for folder, file in (("z3_solver-9.dist-info", "METADATA"), ("cvc5-8.egg-info", "PKG-INFO")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / file).write_text(f"Metadata-Version: 2.1\nName: x\nVersion: {folder.split('-')[1][0]}.5\n")
    assert [found("z3"), found("cvc5")] == ["9.5", "8.5"]
    monkeypatch.setattr("sys.path", [])
    assert found("z3") == "not installed"


def test_terms_load_no_solver() -> None:
    """Their library would, for numbers that no query has."""
    code = "import sys; import mmaprobe.smtmodel.carriers.terms; print('z3' in sys.modules, 'gmpy2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False False\n"
