"""Questions asked with a store: what is known is not asked again, and nothing that was answered is lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mmaprobe.queries.solvers.contract import ENGINE_NAMES, Reason, SolverProcess
from mmaprobe.queries.solvers.portfolio import solve
from mmaprobe.queries.solvers.store import Store
from mmaprobe.smtmodel.base.errors import UnknownNameError
from mmaprobe.smtmodel.base.interrupts import Latch
from tests.solvers.test_portfolio import Recorded, recorded
from tests.solvers.test_solvers import HARD, SAT, UNSAT, gone, pid_of, text_query
from tests.solvers.test_store import answer_of, path, sql, store

pytestmark = [pytest.mark.solvers, pytest.mark.processes]

__all__ = ["path", "recorded", "store"]  # fixtures


def started(recorded: type[Recorded]) -> list[str]:
    """The engines started since the last call."""
    engines = [process.engine for process in recorded.started_ones]
    recorded.started_ones.clear()
    return engines


@pytest.mark.parametrize(("text", "status"), [(SAT, "sat"), (UNSAT, "unsat")])
def test_a_decided_question_starts_no_process(
    store: Store, path: Path, recorded: type[Recorded], text: str, status: str
) -> None:
    recorded.texts.update(dict.fromkeys(ENGINE_NAMES, HARD) | {"z3": text})
    query = text_query("")
    first = solve(query, timeout=60, store=store, name="a question")
    assert [(answer.engine, answer.status, answer.stored) for answer in first] == [("z3", status, False)]
    assert started(recorded) == list(ENGINE_NAMES)
    for choice in ("auto", "z3"):
        again = solve(query, choice, 1, 64, store)
        assert again == [replace(first[0], stored=True)]
        assert str(again[0]) == f"{first[0]} (from the store)"
    assert started(recorded) == []
    assert sql(path, "SELECT engine, status, timeout, memory, name FROM answers") == [
        ("z3", status, 60, 8192, "a question")
    ]
    assert solve(query, timeout=60)[0].stored is False
    recorded.texts.update(cvc5=text)
    assert solve(query, "cvc5", 60, store=store)[0].engine == "cvc5"  # one engine's word is not another's


def test_only_engines_that_may_say_more_are_asked(store: Store, recorded: type[Recorded]) -> None:
    recorded.texts.update(dict.fromkeys(ENGINE_NAMES, "(nonsense"))
    query = text_query("")
    for engine in ("bitwuzla", "z3"):
        store._record(query.text, answer_of("unknown", engine, Reason.TIME), 60, 8192)
    for _ in range(2):  # cvc5 fails, which is not a fact about the question
        answers = solve(query, timeout=60, store=store)
        assert started(recorded) == ["cvc5"]
        assert [(answer.engine, answer.stored) for answer in answers] == [
            ("bitwuzla", True), ("z3", True), ("cvc5", False)
        ]  # fmt: skip
    assert str(answers[0]).endswith("s (time ran out; from the store)")
    solve(query, timeout=61, store=store)
    assert sorted(started(recorded)) == sorted(ENGINE_NAMES)
    solve(query, timeout=60, memory=16384, store=store)
    assert sorted(started(recorded)) == sorted(ENGINE_NAMES)
    assert [answer.stored for answer in solve(query, "bitwuzla", timeout=30, store=store)] == [True]
    recorded.texts.update(cvc5=UNSAT)
    first, *others = solve(query, timeout=50, store=store)
    assert (first.engine, first.status, started(recorded)) == ("cvc5", "unsat", ["cvc5"])
    assert [(answer.engine, answer.stored) for answer in others] == [("bitwuzla", True), ("z3", True)]


def test_time_that_ran_out_is_recorded(store: Store, recorded: type[Recorded]) -> None:
    recorded.texts.update(dict.fromkeys(ENGINE_NAMES, HARD))
    first = solve(text_query(""), timeout=0.3, store=store)
    assert len(started(recorded)) == len(ENGINE_NAMES)
    again = solve(text_query(""), timeout=0.3, store=store)
    assert again == [replace(answer, stored=True) for answer in first]
    assert started(recorded) == []


def test_what_got_less_of_a_processor_is_asked_again(
    store: Store, recorded: type[Recorded], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is stored holds for the seconds of a processor that an engine used, not for those of the clock."""
    recorded.texts.update(dict.fromkeys(ENGINE_NAMES, HARD))
    limits = {"store": store, "processor": 0.3}
    with monkeypatch.context() as busy:
        busy.setattr(SolverProcess, "used", 0.1)
        [first] = solve(text_query(""), "bitwuzla", timeout=0.5, **limits)  # type: ignore[arg-type]
    [second] = solve(text_query(""), "bitwuzla", **limits)  # type: ignore[arg-type]
    [third] = solve(text_query(""), "bitwuzla", **limits)  # type: ignore[arg-type]
    assert [answer.why for answer in (first, second, third)] == [Reason.TIME] * 3
    assert [first.seconds < 0.3 <= second.seconds, second.stored, third.stored] == [True, False, True]


def test_fresh_asks_again_and_replaces(store: Store, recorded: type[Recorded]) -> None:
    query = text_query("")
    recorded.texts.update(z3=SAT)
    store._record(query.text, answer_of("unsat"), 1.0, 100)
    assert solve(query, "z3", 60, store=store)[0].status == "unsat"
    assert started(recorded) == []
    answer = solve(query, "z3", 60, store=store, fresh=True)[0]
    assert (answer.status, answer.stored, started(recorded)) == ("sat", False, ["z3"])
    assert solve(query, "z3", 1, store=store)[0] == replace(answer, stored=True)


def test_of_stored_answers_the_one_that_is_replayed_comes_first(store: Store) -> None:
    query = text_query("")
    store._record(query.text, answer_of("unknown", "bitwuzla", Reason.TIME), 1.0, 0)
    store._record(query.text, answer_of("unsat", "z3"), 1.0, 100)
    store._record(query.text, answer_of("sat", "cvc5", x=1), 1.0, 100)
    assert solve(query, timeout=0, store=store) == [replace(answer_of("sat", "cvc5", x=1), stored=True)]


def test_an_answer_is_on_disk_before_it_is_returned(
    store: Store, path: Path, recorded: type[Recorded], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that came before the run was cut short."""
    recorded.texts.update(dict.fromkeys(ENGINE_NAMES, HARD) | {"cvc5": "(nonsense"})
    rows: list[tuple[object, ...]] = []

    def interrupted(latch: Latch, seconds: float | None = None) -> bool:
        if all(latch is not process.finished for process in recorded.started_ones):
            return wait(latch, seconds)
        rows[:] = sql(path, "SELECT engine, status FROM answers")
        if rows:
            monkeypatch.setattr(Latch, "wait", wait)  # it comes once
            raise KeyboardInterrupt
        return False

    wait = Latch.wait

    monkeypatch.setattr(Latch, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        solve(text_query(""), timeout=60, store=store)
    assert rows == [("cvc5", "unknown")]
    assert all(gone(pid_of(process)) for process in recorded.started_ones)


def test_a_store_that_fails_costs_no_answer(path: Path) -> None:
    with Store(path) as store:
        store._connection.execute("PRAGMA query_only = 1")
        assert solve(text_query("(assert false)"), timeout=60, store=store)[0].status == "unsat"
        assert "cannot be written" in store.warning


def test_an_unknown_engine_with_a_store(store: Store) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'cvc5'"):
        solve(text_query(""), "cvc4", store=store)
