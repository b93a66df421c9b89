"""The workers of a dask.distributed cluster as the place where solvers run.

What is sent is a function with plain data: a query's text with its engines and limits, a point of a study, a mutant.
The answer comes back to this process, which alone reads and writes the store. A worker runs the same function that this
process would run, so that the loss of a worker or scheduler costs time and no answer: another worker, or this process,
does the work. The queues are dask's; this module adds races of engines, a time limit for each race, and continuation
without a cluster.
"""

from __future__ import annotations

import logging
import os
import pickle
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from mmaprobe.queries.solvers import engines as racing
from mmaprobe.queries.solvers.contract import ENGINE_NAMES, Answer, Reason, _tell
from mmaprobe.queries.solvers.pool import AHEAD, Pool
from mmaprobe.queries.solvers.store import program
from mmaprobe.queries.solvers.worker import version_of
from mmaprobe.smtmodel.base import interrupts
from mmaprobe.smtmodel.base.errors import IncompleteError, MmaprobeError
from mmaprobe.smtmodel.base.wording import install_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from distributed import Client
    from distributed import Future as Remote

Result = TypeVar("Result")
CONNECT = 10.0  # seconds that a scheduler has to answer
SILENT = 2.0  # seconds for the scheduler's further messages after the connection
GRACE = 20.0  # seconds without a worker before this process does the work; a worker that died may be started again
WATCH = 0.5  # seconds between looks at the scheduler


class ClusterError(MmaprobeError):
    """A cluster that cannot be used."""


class WorkerError(IncompleteError):
    """A piece of work during which every worker that tried it died."""


class _GoneError(Exception):
    """The cluster is no longer used."""


class Cluster(Pool):
    """The cluster of the scheduler at `address`. Close it, or use it in a `with`. Raises ClusterError.

    `warn` is called when the cluster is lost; then this process does the remaining work. `width`: the number of the
    workers' threads at the start, of which at most one counts for each core of a machine.
    """

    def __init__(self, address: str, warn: Callable[[str], object]) -> None:
        self.address, self._warn = address, warn
        self.lost, self._closing = threading.Event(), threading.Event()
        self.tasks: set[_Task] = set()
        self._losing = threading.Lock()
        self._client = _connect(address)
        try:
            threads = self._threads()
            super().__init__(self._with_a_core(threads))
        except BaseException:
            self.close()
            raise
        self.threads = AHEAD * self.width
        #: limits how many questions are asked at a time where workers have more threads than cores
        self._room = threading.BoundedSemaphore(self.width) if self.width < sum(threads.values()) else nullcontext()
        self._cores = threading.BoundedSemaphore(os.cpu_count() or 1)  # for work that this process does after a loss
        self._watcher = threading.Thread(target=self._watch, name="mmaprobe-cluster", daemon=True)
        self._watcher.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect. Work in progress on the cluster ends; the cluster itself keeps running."""
        self._closing.set()
        with suppress(Exception):  # the cluster may be gone
            self._client.close(timeout=CONNECT)

    def race(
        self,
        engines: Sequence[str],
        text: str,
        timeout: float | None,
        memory: int,
        keep: racing.Keep,
        processor: float | None = None,
    ) -> list[Answer]:
        with suppress(_GoneError), self._building.released(), self._own_time() as spent, self._room:
            began = time.monotonic()

            def begin(group: Sequence[str]) -> _Racer:
                late = time.monotonic() - began
                left = None if timeout is None else max(0.0, timeout - late)
                return _Racer(self, group, (text, left, memory), late, spent, processor)

            return racing.first_of(self._groups(engines), begin, None, keep)[0]
        return super().race(engines, text, timeout, memory, keep, processor)

    def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """The function's result, as `Pool.run`, computed on the cluster. Raises WorkerError."""
        with self._building.released(), suppress(_GoneError):
            task = _Task(self, function, arguments)
            try:
                while not task.finished.wait(WATCH):
                    if interrupts.unwanted.get()():
                        raise KeyboardInterrupt
                result: Result = task.result()[1]
                return result
            except KeyboardInterrupt:
                task.kill()
                raise
        with self._building.held():
            return function(*arguments)

    def _groups(self, engines: Sequence[str]) -> list[list[str]]:
        """The engines in as many groups as there are workers for a question, each with the likeliest engine first."""
        count = min(len(engines), max(1, self.width // max(1, self.busy)))
        return [list(engines[start::count]) for start in range(count)]

    @contextmanager
    def _own_time(self) -> Iterator[list[float]]:
        """A block that gets a list to which it appends durations in seconds. The thread's clock (`Pool.clock`) advances
        by the largest of these, not by the time of the block."""
        began, spent = time.monotonic(), list[float]()
        try:
            yield spent
        finally:
            self._building.add_idle(time.monotonic() - began - max(spent, default=0.0))

    def submit(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Remote[Any]:
        """Send work to a worker. Raises _GoneError."""
        key = f"mmaprobe-{uuid.uuid4().hex}"
        if not self.lost.is_set():
            try:
                return self._client.submit(pickle.loads, _call(key, function, arguments), key=key, pure=False)
            except Exception:
                if self._client.status == "running":
                    raise
                self.lose("the scheduler is gone")
        raise _GoneError

    # --- the cluster's health -------------------------------------------------------------------------------------

    def _threads(self) -> dict[str, int]:
        """The number of threads by worker, once a worker has some. Raises ClusterError after GRACE seconds."""
        deadline = time.monotonic() + GRACE
        while not any((threads := dict(self._client.nthreads())).values()):
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"the cluster at {self.address} has no workers: start one with `dask worker {self.address}`"
                )
            time.sleep(WATCH)
        return threads

    def _with_a_core(self, threads: Mapping[str, int]) -> int:
        """The number of workers' threads, counting at most one for each core of a machine: solvers that share a core
        answer no sooner."""
        from distributed.comm import get_address_host

        count: Counter[str] = Counter()
        for address, own in threads.items():
            count[get_address_host(address)] += own
        counts = self._client.run(os.cpu_count, on_error="ignore")
        cores = {get_address_host(address): number for address, number in counts.items() if number}
        return sum(min(own, cores.get(host, own)) for host, own in count.items())

    def _watch(self) -> None:
        """Watch for the loss of the scheduler, or of the last worker."""
        alone_since: float | None = None
        while not self._closing.wait(WATCH) and not self.lost.is_set():
            if self._client.status != "running":
                self.lose("the scheduler is gone")
                return
            with suppress(Exception):  # if the scheduler does not answer, the next round notices
                if self._client.nthreads():
                    alone_since = None
                elif alone_since is None:
                    alone_since = time.monotonic()
                elif time.monotonic() > alone_since + GRACE:
                    self.lose("no worker is left")

    def lose(self, why: str) -> None:
        """Stop using the cluster."""
        with self._losing:
            if self.lost.is_set() or self._closing.is_set():
                return
            self.lost.set()
        self._warn(f"the cluster at {self.address} is lost ({why}): the remaining work is done here")
        for task in list(self.tasks):
            task.finished.set()


class _Task:
    """One piece of work on a worker. `finished`: set when the result has arrived, or the cluster is lost."""

    def __init__(self, cluster: Cluster, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        self.cluster, self.finished = cluster, interrupts.Latch()
        cluster.tasks.add(self)
        self.future = cluster.submit(function, arguments)
        self.future.add_done_callback(lambda future: self.finished.set())

    def result(self) -> tuple[float, Any]:
        """The work's seconds and result. Raises WorkerError, _GoneError, and the errors of the work."""
        self.cluster.tasks.discard(self)
        while not self.cluster.lost.is_set():
            if self.future.status == "error":
                raise _project_error(self.future.exception())
            try:
                outcome: tuple[float, Any] = self.future.result(timeout=WATCH)
                return outcome
            except TimeoutError:  # the worker that held the result died; the work is done again
                continue
            except (CancelledError, OSError):  # OSError: the cluster was lost while the result was handed on
                if self.future.status == "error":  # an error of the work
                    raise
                self.cluster.lose("the scheduler is gone")
        raise _GoneError

    def stop(self) -> None:
        """Nothing: `kill` ends the work without waiting."""

    def kill(self) -> None:
        """End the work, wherever it runs."""
        self.cluster.tasks.discard(self)
        if not self.cluster.lost.is_set():
            with suppress(Exception):
                self.future.cancel(force=True)


class _Racer(_Task):
    """Engines that race on one worker, which enforces their limits. `late`: the seconds from the start of the question
    to the start of this race; `spent`: the list to which the question's duration is appended."""

    used = 0.0

    def __init__(
        self, cluster: Cluster, group: Sequence[str], limits: tuple[str, float | None, int], late: float,
        spent: list[float], processor: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(cluster, partial(racing.race, processor=processor), (group, *limits))
        self.group, self.text, self.late, self.spent = group, limits[0], late, spent

    def answers(self) -> list[Answer]:
        try:
            seconds, answers = self.result()
        except WorkerError as error:
            return [
                Answer("unknown", engine, version_of(engine), 0.0, why=Reason.FAILED, detail=str(error))
                for engine in self.group
            ]
        self.spent.append(self.late + seconds)
        return [_tell(self.text, answer) for answer in answers]


def _connect(address: str) -> Client:
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ImportError:
        raise ClusterError(
            f"--cluster needs dask.distributed, which is not installed: {install_command('cluster')}"
        ) from None

    class Connected(Client):  # type: ignore[misc]
        """A client whose `__del__` closes only an open connection. Without a scheduler, dask's own `__del__` waits and
        prints a message."""

        def __del__(self) -> None:
            if self.status == "running":
                super().__del__()

    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # failures are reported by this module, on one line
    try:
        get_address_host_port(address)  # raises for a malformed address, before a client is made
        return _call_within(
            CONNECT + SILENT, lambda: Connected(address, timeout=CONNECT, set_as_default=False, name="mmaprobe")
        )
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ClusterError(f"no dask scheduler at {address!r} ({why}): start one with `dask scheduler`") from None


def _call_within(seconds: float, call: Callable[[], Result]) -> Result:
    """The result of a call that ends within `seconds`; the thread of a longer call is abandoned. Raises TimeoutError
    and the call's errors. dask's own limit covers only the time until the connection."""
    answer: Future[Result] = Future()

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)

    with interrupts.held_back:
        threading.Thread(target=run, daemon=True).start()
    if not interrupts.settle(answer, seconds):
        raise TimeoutError(f"no answer within {seconds:g} s")
    return answer.result()


def _project_error(error: BaseException | None) -> BaseException:
    """The error of a task. A death of workers becomes a WorkerError, a failed import a ClusterError."""
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        return WorkerError(f"work for the cluster ended {error.allowed_failures + 1} workers, one after another")
    if isinstance(error, ImportError):
        return ClusterError(f"a worker cannot do the work ({error}): install the same mmaprobe there")
    return error or _GoneError()


# --- on a worker --------------------------------------------------------------------------------------------------


@cache
def _program() -> Any:
    """The versions of mmaprobe and of the engines, which must be the same on all machines."""
    return program("hypotheses", "queries", "smtmodel", "studies"), tuple(map(version_of, ENGINE_NAMES))


@dataclass(frozen=True)
class _Call:
    """A call that is executed when it is unpickled (by `perform`). On a worker without mmaprobe, or with another
    version, only the task fails. If dask could not read the task, the worker would end."""

    arguments: tuple[Any, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return perform, self.arguments


def _call(key: str, function: Callable[..., Any], arguments: Sequence[Any]) -> bytes:
    import cloudpickle

    work = cloudpickle.dumps((function, arguments))  # a function of the main script is pickled by value
    return pickle.dumps(_Call((_program(), key, work)))


def perform(expected: Any, key: str, work: bytes) -> tuple[float, Any]:
    """The seconds that a function took, and its result. Raises ClusterError on a worker of another version, and
    CancelledError if the work is no longer wanted."""
    from distributed import get_worker

    worker = get_worker()
    if expected != _program():
        raise ClusterError(
            f"the worker {worker.address} has another version of mmaprobe or of the solvers: install the same there"
        )
    function, arguments = pickle.loads(work)

    def unwanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled"

    token = interrupts.unwanted.set(unwanted)
    began = time.monotonic()
    try:
        result = function(*arguments)
        return time.monotonic() - began, result
    except KeyboardInterrupt:  # a KeyboardInterrupt would end the worker
        raise CancelledError("no longer wanted") from None
    finally:
        interrupts.unwanted.reset(token)
