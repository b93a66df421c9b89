"""Several solvers on one question: the first answer decides, and none is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmaprobe.queries.solvers import engines
from mmaprobe.queries.solvers.contract import DEFAULT_MEMORY, ENGINE_NAMES, Reason, SolverProcess
from mmaprobe.queries.solvers.engines import engines_of
from mmaprobe.queries.solvers.portfolio import solve
from mmaprobe.queries.solvers.store import Store
from mmaprobe.smtmodel.base.errors import UnknownNameError
from tests.solvers.test_solvers import EACH, HARD, SAT, UNSAT, gone, pid_of, text_query

pytestmark = pytest.mark.processes


class Recorded(SolverProcess):
    """A process that is remembered, and may be given another text than the query's."""

    started_ones: list[SolverProcess]
    texts: dict[str, str]

    def __init__(self, engine: str, text: str, *rest: int) -> None:
        super().__init__(engine, self.texts.get(engine, text), *rest)
        self._text = text  # as if it had been given that
        self.started_ones.append(self)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> type[Recorded]:
    monkeypatch.setattr(Recorded, "started_ones", [], raising=False)
    monkeypatch.setattr(Recorded, "texts", {}, raising=False)
    monkeypatch.setattr(engines, "SolverProcess", Recorded)
    monkeypatch.setattr(engines, "HEAD_START", 0.0)
    return Recorded


def test_an_easy_question_needs_one_engine(recorded: type[Recorded], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "HEAD_START", 60.0)
    recorded.texts.update(dict.fromkeys(ENGINE_NAMES, SAT))
    assert [answer.status for answer in solve(text_query(""), timeout=100)] == ["sat"]
    assert [process.engine for process in recorded.started_ones] == [ENGINE_NAMES[0]]


@EACH
@pytest.mark.parametrize(("text", "status"), [(SAT, "sat"), (UNSAT, "unsat")], ids=["sat", "unsat"])
def test_the_first_answer_decides_and_the_others_end(
    engine: str, text: str, status: str, recorded: type[Recorded]
) -> None:
    """One engine gets an easy question, the others one that keeps them busy: the call returns all the same."""
    recorded.texts.update(dict.fromkeys(ENGINE_NAMES, HARD) | {engine: text})
    answers = solve(text_query(""), timeout=120)
    assert [(answer.engine, answer.status) for answer in answers] == [(engine, status)]
    assert [process.engine for process in recorded.started_ones] == list(ENGINE_NAMES)
    assert all(gone(pid_of(process)) for process in recorded.started_ones)


def test_an_engine_that_fails_does_not_decide(recorded: type[Recorded]) -> None:
    recorded.texts.update(z3=UNSAT, bitwuzla="(nonsense", cvc5="(nonsense")
    first, *others = solve(text_query(""), timeout=120)
    assert (first.engine, first.status) == ("z3", "unsat")
    assert all("failed" in answer.reason for answer in others)


def test_time_runs_out_for_all(recorded: type[Recorded]) -> None:
    recorded.texts.update(dict.fromkeys(ENGINE_NAMES, HARD))
    answers = solve(text_query(""), timeout=1)
    assert sorted(answer.engine for answer in answers) == sorted(ENGINE_NAMES)
    assert all(answer.status == "unknown" and "time" in answer.reason for answer in answers)
    assert all(gone(pid_of(process)) for process in recorded.started_ones)


def test_processor_time_runs_out(recorded: type[Recorded]) -> None:
    """An engine gets the seconds of a processor that it was given, however long that takes."""
    recorded.texts[ENGINE_NAMES[0]] = HARD
    [answer] = solve(text_query(""), ENGINE_NAMES[0], processor=0.3)
    assert (answer.why, 0.3 <= answer.seconds < 3) == (Reason.TIME, True)


def test_nobody_understands(recorded: type[Recorded]) -> None:
    answers = solve(text_query("(nonsense)"), timeout=60)
    assert sorted(answer.engine for answer in answers) == sorted(ENGINE_NAMES)
    assert all(answer.status == "unknown" and "failed" in answer.reason for answer in answers)
    assert all(gone(pid_of(process)) for process in recorded.started_ones)


def test_interrupt_ends_every_engine(recorded: type[Recorded], monkeypatch: pytest.MonkeyPatch) -> None:
    recorded.texts.update(dict.fromkeys(ENGINE_NAMES, HARD))

    def interrupted(engine: str) -> tuple[str, ...]:
        for process in recorded.started_ones:
            monkeypatch.setattr(process.finished, "is_set", interrupt)
        return ENGINE_NAMES

    def interrupt() -> bool:
        raise KeyboardInterrupt

    original = Recorded.__init__

    def started(self: Recorded, engine: str, text: str, *rest: int) -> None:
        original(self, engine, text, *rest)
        interrupted(engine)

    monkeypatch.setattr(Recorded, "__init__", started)
    with pytest.raises(KeyboardInterrupt):
        solve(text_query(""), timeout=60)
    assert len(recorded.started_ones) == len(ENGINE_NAMES)
    assert all(gone(pid_of(process)) for process in recorded.started_ones)


def test_all_that_answer_at_once_are_stored(
    recorded: type[Recorded], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recorded.texts.update(dict.fromkeys(ENGINE_NAMES, UNSAT))
    original = Recorded.__init__

    def begun(self: Recorded, engine: str, text: str, *rest: int) -> None:
        original(self, engine, text, *rest)
        assert self.finished.wait(60)

    monkeypatch.setattr(Recorded, "__init__", begun)
    query = text_query("")
    with Store(tmp_path / "store.sqlite") as store:
        assert len(solve(query, timeout=60, store=store)) == 1
        assert all(store.find(query.text, engine, 60, DEFAULT_MEMORY) for engine in ENGINE_NAMES)


def test_choices() -> None:
    assert engines_of("auto") == ENGINE_NAMES
    assert engines_of("cvc5") == ("cvc5",)
    with pytest.raises(UnknownNameError, match="known: auto, bitwuzla, cvc5, z3"):
        solve(text_query(""), "xyz")
