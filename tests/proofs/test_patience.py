"""How long cases are tried, by what became of others."""

from __future__ import annotations

from dataclasses import replace

from pysmt.environment import Environment

from mmaprobe.queries.equality.cases import FIRST, LEAST, Case, Patience, Zeros

_WORD = Environment().formula_manager.BV(0, 8)
ONE = Case(_WORD, (3, 3), {_WORD: Zeros(_WORD, 0, 3)}, depth=2)
NEXT, OTHER = replace(ONE, within=(4, 4)), replace(ONE, zeros={_WORD: Zeros(_WORD, 4, 8)})


def test_what_one_distance_took_is_what_the_next_one_gets() -> None:
    patience = Patience()
    assert patience.limit(ONE) == FIRST
    patience.tell(ONE, 7.0, proved=True)
    assert patience.limit(NEXT) == 10.5
    assert patience.limit(replace(OTHER, depth=1)) == 7.0  # no longer than a part of it
    patience.tell(NEXT, 0.1, proved=True)
    assert patience.limit(replace(NEXT, within=(5, 5))) == LEAST
    assert patience.limit(OTHER) == FIRST


def test_a_case_that_was_divided_is_divided_until_its_parts_are_easy() -> None:
    patience = Patience()
    patience.tell(ONE, 4.0, proved=False)
    patience.tell_parts(ONE, 9.0)
    assert patience.limit(NEXT) == 0
    patience.tell_parts(NEXT, 1.9)
    tried = [patience.limit(replace(ONE, within=(at, at))) for at in (5, 6)]
    assert tried == [0, FIRST]  # the first is one of those that are left out after a failure


def test_ranges_of_distances_say_nothing_of_one() -> None:
    patience = Patience()
    patience.tell(replace(ONE, within=(3, 9)), 4.0, proved=False)
    assert [patience.limit(ONE), patience.limit(ONE)] == [0, FIRST]  # but one of its depth is left out
