"""Work on a cluster of worker processes on this machine: the same results, also when a worker or the scheduler dies."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.cluster import SETTINGS
from benchmarks.mutants import campaign, read_mutants
from mmaprobe.cli.main import main
from mmaprobe.queries.candidates import separate as separating
from mmaprobe.queries.candidates.separate import Separation, separate
from mmaprobe.queries.kernel.equality.rewriting import REWRITES
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.solvers import asking, engines
from mmaprobe.queries.solvers import cluster as module
from mmaprobe.queries.solvers.cluster import Cluster, WorkerError
from mmaprobe.queries.solvers.contract import Answer
from mmaprobe.queries.solvers.pool import Pool
from mmaprobe.queries.solvers.store import Store
from mmaprobe.queries.solvers.worker import PR_SET_PDEATHSIG
from mmaprobe.studies.file import studies
from mmaprobe.studies.run import run
from mmaprobe.studies.table import Table
from tests.families import little_family
from tests.places import ROOT
from tests.solvers.test_pool import HARD

pytestmark = [pytest.mark.cluster, pytest.mark.processes]

distributed = pytest.importorskip("distributed", reason="it is not installed (pip install 'mmaprobe[cluster]')")
psutil = pytest.importorskip("psutil", reason="comes with distributed")
dask = pytest.importorskip("dask", reason="comes with distributed")

SAT = """(set-logic QF_BV)(set-option :produce-models true)(declare-fun x () (_ BitVec 8))(assert (= x #x2a))
(check-sat)(get-value (x))"""


def die_with_parent() -> None:
    """Tests that are killed leave nothing behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Processes:
    """A scheduler and workers, one process each."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder, self.running = folder, list[subprocess.Popen[bytes]]()
        self.environment = {**os.environ, "PYTHONPATH": str(ROOT), **SETTINGS, **settings}
        file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
        self.address = f"tcp://127.0.0.1:{self._port()}"

    def _start(self, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--no-dashboard", *arguments]
        with (self.folder / f"{kind}-{len(self.running)}.log").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdout=log, stderr=log, preexec_fn=die_with_parent
            )
        self.running.append(process)
        return process

    def _port(self) -> int:
        """The port in the scheduler's log: a file of its address is written before it listens to anyone."""
        for _ in range(600):
            for line in (self.folder / "scheduler-0.log").read_text(errors="replace").splitlines():
                if "Scheduler at:" in line:
                    return int(line.rpartition(":")[2])
            time.sleep(0.1)
        raise AssertionError((self.folder / "scheduler-0.log").read_text(errors="replace"))

    def worker(self) -> subprocess.Popen[bytes]:
        return self._start("worker", self.address, "--no-nanny", "--nthreads", "1")

    def stop(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()


@contextmanager
def processes(folder: Path, workers: int = 2, **settings: str) -> Iterator[Processes]:
    started = Processes(folder, **settings)
    try:
        for _ in range(workers):
            started.worker()
        yield started
    finally:
        started.stop()


@pytest.fixture(autouse=True)
def _watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solvers are asked through classes of the tests, which watch."""
    monkeypatch.setattr(asking, "asks_solvers", lambda part: True)


class Watched(Cluster):
    """A cluster that counts the texts which it is asked."""

    def __init__(self, address: str, workers: int = 2) -> None:
        self.warnings: list[str] = []
        self.texts: Counter[str] = Counter()
        super().__init__(address, self.warnings.append)
        self._client.wait_for_workers(workers, timeout=60)
        self.width, self.threads = workers, 2 * workers

    def lost_because(self) -> str:
        """The one warning."""
        [warning] = self.warnings
        assert "the remaining work is done here" in warning
        return warning

    def race(self, engines: Any, text: str, *rest: Any) -> list[Answer]:
        self.texts[text] += 1
        return super().race(engines, text, *rest)

    def at_work(self) -> list[int]:
        """The process ids of workers that have something to do."""
        ids = self._client.run(os.getpid)
        return [ids[address] for address, keys in self._client.processing().items() if keys]


class Tripwire(Store):
    """A store that does something when the third answer is on disk, and counts answers."""

    def __init__(self, path: Path, act: Callable[[], object] = lambda: None) -> None:
        super().__init__(path)
        self.act, self.answered = act, Counter[tuple[str, str]]()

    def record(self, text: str, answer: Answer, *rest: Any) -> None:
        super().record(text, answer, *rest)
        self.answered[text, answer.engine] += 1
        if self.answered.total() == 3:
            self.act()


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with processes(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def cluster(two: Processes) -> Iterator[Watched]:
    with Watched(two.address) as found:
        yield found


def separated(pool: Pool, store: Store | None = None) -> Separation:
    """The little family, of which simulation is made to leave much to solvers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(separating, "POOL", 1)
        patch.delitem(REWRITES, "carry bits that no sum needs")
        options = Options("bitwuzla", 300, store=store, pool=pool)
        return replace(separate(little_family().candidates(), options), seconds=0)


@pytest.fixture(scope="module")
def alone() -> Separation:
    """What one machine finds."""
    found = separated(Pool())
    assert len(found.classes) == 6
    return found


def test_separate_and_what_was_answered_is_not_asked_again(cluster: Watched, alone: Separation, tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"

    def interrupt() -> None:
        raise KeyboardInterrupt

    with Tripwire(path, interrupt) as store:
        assert separated(cluster, store).interrupted
    first = {text for text, _ in store.answered}
    assert len(first) >= 3
    cluster.texts.clear()
    with Tripwire(path) as store:
        assert separated(cluster, store) == alone
    assert cluster.texts
    assert first.isdisjoint(cluster.texts)
    assert not cluster.warnings
    cluster.texts.clear()
    with Tripwire(path) as store:
        assert separated(cluster, store) == alone
    assert not cluster.texts


def test_study_gives_the_same_table(cluster: Watched, tmp_path: Path) -> None:
    study = studies()["valero-tf32"]
    study = replace(study, id="small", series=study.series[:3], measures=("l2", "linf"))
    tables = []
    for name, pool in (("here", None), ("there", cluster)):
        table = Table(tmp_path / f"{name}.csv", study.measures)
        assert run(study, (4, 8), 1, table, lambda done, total, point: None, pool) == 12
        tables.append(table.path.read_bytes())
    assert tables[0] == tables[1]


def test_mutants_come_out_the_same_and_are_kept(cluster: Watched, tmp_path: Path) -> None:
    some = [mutant for mutant in read_mutants() if mutant.id in ("ties-down", "overflow-sign-truncated")]

    def answers_of(pool: Pool, store: Store | None) -> list[Any]:
        return [replace(outcome, seconds=0) for outcome in campaign(some, 60, pool, store, lambda outcome: None)]

    here = answers_of(Pool(1), None)
    assert [outcome.mutant for outcome in here] == some
    with Store(tmp_path / "store.sqlite") as store:
        assert answers_of(cluster, store) == here
        cluster.run = None  # type: ignore[method-assign, assignment]
        assert answers_of(cluster, store) == here


def test_engines_are_dealt_to_the_workers(cluster: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    hands: list[Any] = []

    class RecordingRacer(module._Racer):
        def __init__(self, pool: Cluster, hand: Any, *rest: Any) -> None:
            hands.append(hand)
            super().__init__(pool, hand, *rest)

    monkeypatch.setattr(module, "_Racer", RecordingRacer)
    monkeypatch.setattr(engines, "HEAD_START", 0.0)
    kept: list[Answer] = []

    def keep(answer: Answer) -> Answer:
        kept.append(answer)
        return answer

    answers = cluster.race(["bitwuzla", "z3", "cvc5"], HARD, 2.0, 0, keep)
    assert hands == [["bitwuzla", "cvc5"], ["z3"]]
    assert sorted((answer.engine, answer.status) for answer in answers) == [
        ("bitwuzla", "unknown"), ("cvc5", "unknown"), ("z3", "unknown")
    ]  # fmt: skip
    assert all(answer.reason.startswith("time ran out") for answer in answers)
    assert sorted(map(str, kept)) == sorted(map(str, answers))
    [first, *_] = cluster.race(["bitwuzla", "z3", "cvc5"], SAT, 60, 0, keep)
    assert (first.status, first.values) == ("sat", {"x": 42})


def test_no_more_questions_are_asked_than_there_are_cores(
    cluster: Watched, two: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sum(cluster._client.nthreads().values()) == 2
    open_now, most = set[object](), list[int]()

    class RecordingRacer(module._Racer):
        def __init__(self, *given: Any) -> None:
            open_now.add(self)
            most.append(len(open_now))
            super().__init__(*given)

        def answers(self) -> list[Answer]:
            open_now.discard(self)
            return super().answers()

    monkeypatch.setattr(module, "_Racer", RecordingRacer)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # of the workers' machine, too
    warnings: list[str] = []
    with Cluster(two.address, warnings.append) as narrow:
        assert narrow.width == 1
        asking = [
            threading.Thread(target=narrow.race, args=(["bitwuzla"], HARD, 0.3, 0, lambda answer: answer))
            for _ in range(3)
        ]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()
    assert most == [1, 1, 1]
    assert not warnings


def test_the_loser_of_a_race_is_ended(cluster: Watched, two: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "HEAD_START", 0.0)

    def begin(text: str) -> module._Racer:
        if text == SAT:
            wait_until(lambda: solvers(two) == 1)  # the hard one is being worked on
        return module._Racer(cluster, ["bitwuzla"], (text, None, 0), 0.0, [])

    [answer], _ = engines.first_of([HARD, SAT], begin, None, lambda answer: answer)
    assert answer.status == "sat"
    wait_until(lambda: solvers(two) == 0)


def test_an_interrupt_ends_what_runs_on_workers(cluster: Watched, two: Processes) -> None:
    def work(item: int) -> None:
        if item == 0:
            with cluster._building.released():
                wait_until(lambda: solvers(two) == 1)
            raise KeyboardInterrupt
        cluster.race(["bitwuzla"], HARD, None, 0, lambda answer: answer)

    with pytest.raises(KeyboardInterrupt):
        cluster.gather(work, range(2), lambda item, result: result())
    wait_until(lambda: solvers(two) == 0)


def solvers(started: Processes) -> int:
    """How many queries the workers' solvers have: each is a child of a process that has a solver loaded."""
    below = [child for process in started.running[1:] for child in psutil.Process(process.pid).children(recursive=True)]
    count = 0
    for process in below:
        with suppress(psutil.NoSuchProcess):
            parent = process.parent()
            count += parent is not None and "queries/solvers/worker.py" in " ".join(parent.cmdline())
    return count


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen within 30 s")


def test_time_that_a_question_waits_for_a_worker_is_not_its_own(cluster: Watched) -> None:
    others = cluster._client.map(time.sleep, [1.0, 1.01])
    wait_until(lambda: len(cluster.at_work()) == 2)
    clock, started = cluster.clock(), time.monotonic()
    answers = cluster.race(["bitwuzla"], SAT, 60, 0, lambda answer: answer)
    passed, own = time.monotonic() - started, cluster.clock() - clock
    assert answers[0].status == "sat"
    assert answers[0].seconds <= own < passed - 0.3
    del others


@pytest.mark.slow
def test_a_worker_dies_and_the_results_are_the_same(alone: Separation, tmp_path: Path) -> None:
    with processes(tmp_path) as started, Watched(started.address) as cluster:
        killed: list[int] = []

        def caught() -> bool:
            killed.extend(cluster.at_work()[:1])
            return bool(killed)

        def kill() -> None:
            wait_until(caught)
            os.kill(killed[0], signal.SIGKILL)

        killer = threading.Thread(target=kill)
        with Tripwire(tmp_path / "store.sqlite", killer.start) as store:
            assert separated(cluster, store) == alone
        killer.join()
        assert killed
        assert set(store.answered.values()) == {1}
        assert len(store.answered) > 10
        assert len(cluster._client.nthreads()) == 1
        assert not cluster.warnings


@pytest.mark.slow
def test_the_scheduler_goes_away_with_a_result_in_its_hands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(future: Any, timeout: float | None = None) -> Any:
        raise distributed.comm.CommClosedError("connection reset by peer")

    with processes(tmp_path) as started, Watched(started.address) as cluster:
        monkeypatch.setattr(distributed.Future, "result", broken)
        answers = cluster.race(["bitwuzla"], SAT, 60, 0, lambda answer: answer)
        assert answers[0].status == "sat"
        assert "the scheduler is gone" in cluster.lost_because()


def test_the_scheduler_goes_away_and_the_work_goes_on_here(alone: Separation, tmp_path: Path) -> None:
    with processes(tmp_path) as started, Watched(started.address) as cluster:
        with Tripwire(tmp_path / "store.sqlite", started.scheduler.kill) as store:
            assert separated(cluster, store) == alone
        assert set(store.answered.values()) == {1}
        assert "the scheduler is gone" in cluster.lost_because()
        table = Table(tmp_path / "table.csv", studies()["valero-tf32"].measures)
        study = replace(studies()["valero-tf32"], series=studies()["valero-tf32"].series[:1])
        assert run(study, (4,), 1, table, lambda done, total, point: None, cluster) == 2


def test_work_that_kills_workers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        processes(tmp_path, 1, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0") as started,
        Watched(started.address, 1) as cluster,
    ):
        monkeypatch.setattr(module, "GRACE", 1.0)
        with pytest.raises(WorkerError, match="ended 1 workers") as caught:
            cluster.run(signal.raise_signal, signal.SIGKILL)
        assert caught.value.exit_code == 3
        assert cluster.run(abs, -3) == 3  # no worker is left
        assert "no worker is left" in cluster.lost_because()


def test_the_settings_of_the_page_are_those_that_were_measured_and_that_dask_knows() -> None:
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if line.startswith("export ")] == [
        f"export {name}={value}" for name, value in SETTINGS.items()
    ]
    for name in SETTINGS:
        key = name.removeprefix("DASK_").lower().replace("__", ".")
        assert dask.config.get(key) is not None  # a KeyError for a name that nothing reads


def test_the_command_on_a_cluster(two: Processes, tmp_path: Path) -> None:
    wanted = ["distinguish", "truncation-or-toward-zero", "--solver", "bitwuzla"]
    here, there = (CliRunner().invoke(main, [*wanted, *more]) for more in ((), ("--fresh", "--cluster", two.address)))
    assert there.exit_code == 0, there.stderr
    assert here.stdout == there.stdout
