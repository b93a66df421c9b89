"""Random claims whose conditions read results, against all their inputs (benchmarks/claim_values.py)."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from benchmarks.claim_values import NoNumberError, Pattern, Truth, Words, check, make, truth
from benchmarks.rules.claims import columns_of
from mmaprobe.queries.kernel.questions.scene import Conditions, lanes_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.evaluate.batch import to_integers
from tests.claims.test_claim_stages import claim_of
from tests.claims.test_claim_values import never_at_fault

pytestmark = pytest.mark.solvers

OPTIONS = Options("bitwuzla", 15.0)


@pytest.mark.parametrize("number", range(40))
def test_no_answer_is_wrong(number: int) -> None:
    found = check(make(number), OPTIONS)
    assert not found.wrong, (found.verdict, found.statement.text())


@pytest.mark.parametrize(("number", "verdict"), [(60, "none admitted"), (135, "holds")])
def test_conditions_that_guess_are_seen(number: int, verdict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim with a condition at fault, decided as if what reads no number left the input out."""
    statement = make(number)
    assert check(statement, OPTIONS).verdict == "at fault"
    monkeypatch.setattr(Conditions, "then", never_at_fault)
    found = check(statement, OPTIONS)
    assert (found.verdict, found.wrong) == (verdict, True)


def words(result: int, other: int = 0x08) -> Words:
    """1 * 1 + 1 in e2m1 and e4m3."""
    one = Pattern("e2m1", 0x2)
    return Words((one,), (one,), Pattern("e4m3", 0x38), {"p": Pattern("e4m3", result), "q": Pattern("e4m3", other)})


@pytest.mark.parametrize(("text", "value"), [
    ("value(p)", 3), ("error(p)", 1), ("exact()", 2), ("ulp(p)", Fraction(1, 4)), ("ulp(exact() - 2)", 0), ("top()", 1),
    ("bits(p)", 0x44), ("magnitude_sum()", 2), ("distance(p, c)", 12), ("distance(q, p)", 0x44 - 8),
    ("max(value(p), 4)", 4), ("fits(p, ue8m0)", False), ("fits(p, e2m1)", True), ("lacks(c, ue8m0)", False),
    ("finite(p) and not zero(a)", True), ("nonnegative(b) or nonzero(p)", True),
    ("2**-1 * value(p) == 3 * 2**-1", True),
])  # fmt: skip
def test_what_words_say(text: str, value: Fraction) -> None:
    assert words(0x44).says(text) == value


SIDES = ("abs(a) <= 1", "1 < a", "a != b", "abs(a - b) < 2 * b", "max(abs(a), b) >= 1", "value(a) == value(b)",
         "not (a * a > b)", "-2 <= a <= b", "value(a[0]) < value(b[1]) and 2 * a >= 1")  # fmt: skip


@pytest.mark.parametrize("text", SIDES)
def test_a_comparison_with_a_side_is_one_with_each_of_its_numbers(text: str) -> None:
    inputs = {"format": "e2m1", "a": [0, 0], "b": [0, 1], "c": "zero"}
    claim = claim_of(text, terms=2, inputs=inputs, parts={"p": "multiword@words=1,products=1,unit=ieee/fma/f32"})
    every, zero = list(product(*columns_of(claim.assertion))), Pattern("f32", 0)
    holds = lanes_of(claim.assertion, np.array(every, dtype=np.uint64)).truth(claim.assertion.predicate).yes
    found = to_integers(holds, len(every)).astype(bool).tolist()
    numbers = [[Pattern("e2m1", x) for x in row[:-1]] for row in every]
    assert found == [Words((*one[:2],), (*one[2:],), zero, {"p": zero}).says(text) for one in numbers]
    assert len({*found}) == 2


def test_what_is_no_number_is_at_fault() -> None:
    nan = words(0x7F)
    assert [nan.says(text) for text in ("finite(p)", "bits(p)", "finite(q)")] == [False, 0x7F, True]
    for text in ("value(p)", "finite(p) and value(p) > 0", "distance(q, p)", "zero(p)", "nonnegative(p)", "ulp(p)"):
        with pytest.raises(NoNumberError):
            nan.says(text)
    inputs = [words(0x44), nan]
    assert truth(inputs, ["value(p) > 3"], "finite(p)", "all") == Truth(1, 0, 0)
    assert truth(inputs, ["finite(p)", "value(p) >= 3"], "value(p) > 3", "all") == Truth(0, 1, 1)


@pytest.mark.parametrize(("known", "quantifier", "right"), [
    (Truth(0, 5, 0), "all", {"holds"}), (Truth(0, 5, 0), "exists", {"refuted"}), 
    (Truth(0, 5, 1), "all", {"refuted"}), (Truth(0, 0, 0), "all", {"none admitted"}),
    (Truth(1, 0, 0), "all", {"at fault"}),
    (Truth(1, 5, 0), "all", {"at fault"}), (Truth(1, 5, 1), "exists", {"at fault", "holds"}),
])  # fmt: skip
def test_what_may_be_said(known: Truth, quantifier: str, right: set[str]) -> None:
    verdicts = ("holds", "refuted", "at fault", "none admitted", "mine.yaml: unknown name")
    assert {one for one in verdicts if known.allows(one, quantifier)} == right
