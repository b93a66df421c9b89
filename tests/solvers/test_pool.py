"""Work in threads that take turns: results in order, whoever is first; errors and interrupts; the clock of a budget."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from mmaprobe.queries.candidates import separate as separating
from mmaprobe.queries.candidates.separate import Separation, separate
from mmaprobe.queries.kernel.equality.rewriting import REWRITES
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.solvers import engines
from mmaprobe.queries.solvers.pool import Pool
from tests.families import little_family

pytestmark = [pytest.mark.solvers, pytest.mark.processes]


def outside(pool: Pool, wait: Callable[[], object]) -> None:
    """Wait as a question does, without the turn."""
    with pool._building.released():
        wait()


def test_results_are_taken_in_order_whoever_is_first() -> None:
    pool, last_done = Pool(3), threading.Event()
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        if item == 2:
            last_done.set()
        outside(pool, lambda: last_done.wait(30))  # the first two wait for the third
        return item * item

    taken: list[tuple[int, int]] = []
    pool.gather(work, range(5), lambda item, result: taken.append((item, result())))
    assert taken == [(0, 0), (1, 1), (2, 4), (3, 9), (4, 16)]
    assert sorted(begun) == list(range(5))


def test_one_thread_at_a_time_holds_the_lock() -> None:
    pool, inside, most = Pool(4), list[int](), list[int]()

    def work(item: int) -> None:
        for _ in range(20):
            inside.append(item)
            time.sleep(0.0005)
            most.append(len(inside))
            inside.pop()
            outside(pool, lambda: None)

    def take(item: int, result: Callable[[], None]) -> None:
        work(item)
        result()

    pool.gather(work, range(6), take)
    assert len(most) == 240
    assert set(most) == {1}


@pytest.mark.parametrize("width", [1, 2])
def test_an_error_ends_the_work(width: int) -> None:
    pool, done = Pool(width), list[int]()

    def work(item: int) -> int:
        done.append(item)
        outside(pool, lambda: time.sleep(0.01))
        if item == 1:
            raise ValueError("no")
        return item

    taken: list[int] = []
    with pytest.raises(ValueError, match="no"):
        pool.gather(work, range(50), lambda item, result: taken.append(result()))
    assert taken == [0]
    assert len(done) < 10
    pool.gather(lambda item: item, range(3), lambda item, result: taken.append(result()))  # it can be used again
    assert taken == [0, 0, 1, 2]


def test_a_result_that_is_not_wanted_raises_nothing() -> None:
    def work(item: int) -> int:
        raise ValueError("no")

    Pool(2).gather(work, range(3), lambda item, result: None)


def test_an_interrupt_ends_questions_in_progress() -> None:
    pool, asked, ended = Pool(2), threading.Event(), list[bool]()

    def work(item: int) -> None:
        if item == 0:
            outside(pool, lambda: asked.wait(30))
            raise KeyboardInterrupt
        asked.set()
        with pytest.raises(KeyboardInterrupt):
            pool.race(["bitwuzla"], HARD, 100, 0, lambda answer: answer)
        ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        pool.gather(work, range(2), lambda item, result: result())
    assert ended == [True]


#: a product of two unknown factors: no engine answers soon
HARD = """(set-logic QF_BV)(declare-fun a () (_ BitVec 96))(declare-fun b () (_ BitVec 96))
(assert (= (bvmul ((_ zero_extend 96) a) ((_ zero_extend 96) b)) (_ bv3945803945803945803945803945803945803945803 192)))
(assert (bvugt a (_ bv1 96)))(assert (bvugt b (_ bv1 96)))(check-sat)"""


def test_the_clock_stands_still_while_others_hold_the_lock() -> None:
    pool, turn_given, other_has_it = Pool(2), threading.Event(), threading.Event()
    passed: dict[int, tuple[float, float]] = {}

    def wait() -> None:
        turn_given.set()
        other_has_it.wait(30)

    def work(item: int) -> None:
        began, clock = time.monotonic(), pool.clock()
        if item == 0:
            outside(pool, wait)
        else:
            outside(pool, lambda: turn_given.wait(30))
            other_has_it.set()
            time.sleep(0.5)
        passed[item] = time.monotonic() - began, pool.clock() - clock

    pool.gather(work, range(2), lambda item, result: result())
    assert passed[0][0] - passed[0][1] > 0.1  # it waited for the other
    assert passed[1][1] > 0.4


def test_budgets_grow_with_the_sharing() -> None:
    assert [Pool(width).sharing("auto") for width in (1, 2, 8)] == [1, 2, 3]
    assert Pool(8).sharing("z3") == 1


def comparable(found: Separation) -> object:
    return replace(found, seconds=0.0)


def test_the_number_of_cores_changes_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(separating, "POOL", 1)
    monkeypatch.delitem(REWRITES, "carry bits that no sum needs")  # so that pairs are left for solvers
    most, running = list[int](), list[int]()

    def counted(*arguments: object) -> object:
        running.append(1)
        most.append(len(running))
        try:
            return race(*arguments)  # type: ignore[arg-type]
        finally:
            running.pop()

    race = engines.race
    monkeypatch.setattr(engines, "race", counted)
    found = []
    for width in (1, 3):
        most.clear()
        found.append(separate(little_family().candidates(), Options("bitwuzla", 100, pool=Pool(width))))
        assert max(most) == 1 if width == 1 else 1 < max(most) <= width
    assert comparable(found[0]) == comparable(found[1])
    assert len(found[0].classes) == 6
    assert not found[0].unknown
