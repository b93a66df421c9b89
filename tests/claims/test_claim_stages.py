"""Claims proved in stages: what is proved holds, what is false is not proved, and cuts keep the meaning."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import yaml

from benchmarks.claims import row
from benchmarks.sides import results_of
from mmaprobe.hypotheses.claim import Claim, build_claims, claims_named
from mmaprobe.queries.claims.decide import decide
from mmaprobe.queries.claims.nearest_sums import nearest
from mmaprobe.queries.claims.samples import claim_rows
from mmaprobe.queries.claims.stages import Stages
from mmaprobe.queries.claims.verify import verify
from mmaprobe.queries.kernel.questions.scene import lanes_of
from mmaprobe.queries.kernel.terms.facts import Fact
from mmaprobe.queries.kernel.terms.undecided import Question
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.scene import evaluate_claim
from mmaprobe.queries.solvers.asking import Heard
from mmaprobe.queries.tactics.ledger import Ledger, UnprovedError
from mmaprobe.smtmodel.algorithms.exact import Fixed
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.yamlfile import read_yaml
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, constant
from mmaprobe.smtmodel.carriers.arrays import ArrayCarrier
from mmaprobe.smtmodel.evaluate.batch import to_integers
from mmaprobe.smtmodel.plans.dot import RESULT
from tests.oracles.oracle import decode

pytestmark = pytest.mark.solvers

TF32 = "multiword@unit=ampere/mma/m16n8k8.f32.tf32.tf32.f32,split=toward_zero,order=large_first,products"
VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
POSITIVE = ["nonnegative(a)", "nonnegative(b)"]


def claim_of(claim: str, **changes: Any) -> Claim:
    inputs = {"format": "f32", "a": [0, 0], "b": [0, 0], "c": "zero", "where": POSITIVE}
    parts = {"three": f"{TF32}=3", "four": f"{TF32}=4"}
    data = {"id": "mine", "about": "", "source": "", "says": "nothing", "expect": "holds", "terms": 2,
            "inputs": inputs, "parts": parts, "claim": claim} | changes  # fmt: skip
    (found,) = build_claims(read_yaml(yaml.safe_dump(data), "mine.yaml"))
    assert isinstance(found, Claim)
    return found


HEARD = Heard()  # two claims of one test ask many questions in common


def stages_of(claim: Claim, proved: list[str]) -> Stages:
    """The ways of a claim; with the questions answered "unsat"."""
    question = Question(claim.assertion, claim.shape.whole)
    ledger = Ledger(question)
    ledger.heard, asked = HEARD, set[str]()

    def prove(what: str, facts: Sequence[Theorem], goal: Bit, cuts: Sequence[Bits], share: float) -> Theorem:
        engines = Options().engines(60.0, what, "bitwuzla")
        found = ledger.prove(what, goal.node, facts, [cut.node for cut in cuts], engines)
        if (text := engines.answered_queries[-1].query.text) not in asked:  # lemmas of one text are asked once
            proved.append(what)
            asked.add(text)
        return found

    return Stages(question, ledger.admitted, prove)


def ways(claim: Claim, only: str = "") -> tuple[list[str], list[str]]:
    """The ways (or one of them) that prove the claim, and the facts proved."""
    proved, found = list[str](), list[str]()
    for way in stages_of(claim, proved).ways:
        if only in way.__name__:
            with suppress(UnprovedError):
                way()
                found.append(way.__name__)
    return found, proved


@pytest.mark.parametrize(
    ("terms", "zeros", "bound"),
    [
        (1, True, 7),
        (2, True, 7),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((3, True, 10), (4, False, 6))),
    ],
)
def test_intervals(terms: int, zeros: bool, bound: int) -> None:
    """The bound follows from intervals, and one less does not."""
    where = POSITIVE if zeros else [*POSITIVE, "nonzero(a)", "nonzero(b)"]
    inputs = {"format": "f32", "a": [0, 0], "b": [0, 0], "c": "zero", "where": where}
    claims = [claim_of(f"distance(three, four) <= {b}", terms=terms, inputs=inputs) for b in (bound, bound - 1)]
    found, lemmas = ways(claims[0])
    assert found[:1] == ["intervals"]
    assert lemmas[:2] == ["interval of a.word0[0]", "interval of a.word1[0]"]
    assert len([name for name in lemmas if name.startswith("interval of unit.")]) == 3
    assert ways(claims[1])[0] == []


def test_intervals_show_that_values_are_numbers() -> None:
    """Where the claim follows from intervals, no other bound of a sum is proved."""
    proved = list[str]()
    stages = stages_of(claim_of("distance(three, four) <= 7", terms=1), proved)
    stages.intervals()
    known = len(proved)
    theorem = stages.numbers()
    assert theorem.goal == Fact(stages.question, stages.question.fits.node)
    assert proved[known:] == ["every value is a number"]


@pytest.mark.parametrize("where", [[], ["nonnegative(a)"]])
def test_intervals_of_signed_numbers(where: list[str]) -> None:
    """They are not where the words of positive numbers are: the first false interval ends the way."""
    inputs = {"format": "f32", "a": [0, 0], "b": [0, 0], "c": "zero", "where": where}
    found, lemmas = ways(claim_of("distance(three, four) <= 10", inputs=inputs))
    assert found == []
    assert not any(name.startswith("interval of unit.") for name in lemmas)


@pytest.mark.slow
def test_any_result() -> None:
    """Whatever an exact result and another one are, the other is off by a last place of it, or exact."""
    claim = "error(three) != 0 or error(four) == 0 or error(four) * 2**{} >= exact()"
    found, lemmas = ways(claim_of(claim.format(24)), "any_result")
    assert (found, lemmas[0]) == (["any_result"], "every result and the exact sum may be any number")
    assert ways(claim_of(claim.format(23)), "any_result")[0] == []
    found, lemmas = ways(claim_of("value(three) < 2**3 or value(three) == value(four)"))
    assert (found, lemmas) == (["any_result"], ["the result of four may be any number"])


def test_results_of_two_formats_are_no_fault_of_the_claim() -> None:
    """What only results of one format allow is not tried; it was called a mistake in the claim file, where time had
    run out before."""
    parts = {"fp8": "hopper/wgmma/m64n8k32.f32.e4m3.e4m3@length=2,block=2", "fp16": VOLTA}
    inputs = {"format": "e4m3", "a": [0, 0], "b": [0, 0], "c": "zero"}
    stages = stages_of(claim_of("error(fp8) < error(fp16)", terms=1, inputs=inputs, parts=parts), [])
    for way in stages.ways:
        with pytest.raises(UnprovedError):
            way()


@pytest.mark.slow
def test_every_sum_on_the_way_is_a_number() -> None:
    inputs = {"format": "e4m3", "a": [-6, 8], "b": [-6, 8], "c": "zero"}
    claim = claim_of("error(single) == 0 or error(single) > 0", terms=8, inputs=inputs, parts={"single": VOLTA})
    outcome = verify(claim, Options(timeout=60))
    assert outcome.verdict == "holds"
    assert [lemma.name for lemma in outcome.lemmas[-3:]] == [
        "bound of unit[0:4] of single", "bound of unit[4:8] of single",
        "every value is a number",
    ]  # fmt: skip


def test_a_sum_that_may_overflow_has_no_bound() -> None:
    claim = claim_of(
        "error(half) >= 0", terms=4, parts={"half": "volta/mma/m8n8k4.f16.f16.f16.f16"},
        inputs={"format": "f16", "a": [7, 8], "b": [7, 8], "c": "zero"},
    )  # fmt: skip
    proved: list[str] = []
    with pytest.raises(UnprovedError, match=r"bound of unit\[0:4\] of half"):
        stages_of(claim, proved).sizes.numbers()
    assert not proved
    narrow = claim.reshaped(window=replace(claim.shape.window, a=(3, 4), b=(3, 4)))
    assert isinstance(stages_of(narrow, proved).sizes.numbers().goal, Fact)


def of_f16(claim: str, terms: int, windows: list[list[int]]) -> Claim:
    inputs = {"format": "f16"} | dict(zip("abc", windows, strict=True))
    parts = {name.partition("-")[0]: f"{name}@unit={VOLTA},split=toward_zero" for name in ("markidis", "ootomo-yokota")}
    found = claim_of(claim, terms=terms, inputs=inputs, parts=parts)
    return found.reshaped(whole=frozenset(parts))  # numbers of f16 are first words


@pytest.mark.slow
@pytest.mark.parametrize("terms", [1, 2])
def test_nearest_sum(terms: int) -> None:
    """One rounding to nearest makes a part the best one, where the unit's sum is exact."""
    claim = of_f16("error(ootomo) <= error(markidis)", terms, [[0, 0], [0, 0], [-6, 0]])
    found, lemmas = ways(claim, "nearest_sum")
    assert found == ["nearest_sum"]
    assert lemmas[-3:-2] + lemmas[-1:] == ["the rounded sum is nearest to the exact one", "the claim follows"]


@pytest.mark.parametrize("claim", ["error(ootomo) < error(markidis)", "error(markidis) <= error(ootomo)"])
def test_what_does_not_follow_from_a_nearest_sum(claim: str) -> None:
    found, lemmas = ways(of_f16(claim, 1, [[0, 0], [0, 0], [-1, 1]]), "nearest_sum")
    assert found == []
    assert lemmas[-2:] == ["the rounded sum is nearest to the exact one", "the result of ootomo is that sum"]


def test_nearest_sum_of_an_inexact_one() -> None:
    """Where the unit cuts products off the exact sum is not that of c and the unit's result, and no more is asked."""
    found, lemmas = ways(of_f16("error(ootomo) <= error(markidis)", 2, [[0, 2], [0, 2], [-1, 1]]), "nearest_sum")
    assert found == []
    assert lemmas[-1] == "unit.a0b0[0:2] is zero or in its window"


def test_what_two_parts_have_in_common_is_asked_about_once() -> None:
    claim = of_f16("error(ootomo) <= error(markidis)", 2, [[0, 2], [0, 2], [-1, 1]])
    parts = dict.fromkeys(claim.shape.parts, claim.shape.parts["ootomo"])
    question, seen = Question(claim.reshaped(parts=parts).assertion, frozenset(parts)), list[str]()

    def prove(what: str, *_: object) -> Theorem:
        seen.append(what)
        raise UnprovedError(what)

    with suppress(UnprovedError):
        Stages(question, Ledger(question).admitted, prove).nearest_sum()
    assert seen
    assert len(set(seen)) == len(seen)


@pytest.mark.slow
def test_nearest_sum_of_one_part() -> None:
    """An error of half a unit in the last place, and no less."""
    for bound, proved in (
        ("2 * error(ootomo) <= ulp(exact())", ["nearest_sum"]),
        ("3 * error(ootomo) <= ulp(exact())", []),
    ):
        claim = of_f16(bound, 1, [[0, 0], [0, 0], [-1, 1]])
        parts = {"ootomo": claim.shape.parts["ootomo"]}
        assert ways(claim.reshaped(parts=parts), "nearest_sum")[0] == proved


@pytest.mark.parametrize("unit", [-9, -6, -4, 3])
def test_nearest(unit: int) -> None:
    """What is nearest to an exact number, by brute force over all numbers of a format."""
    fmt, carrier, places = FORMATS["e4m3"], ArrayCarrier(), Fraction(2) ** unit
    values = {x: decode(fmt.name, x).value / places for x in range(256) if x & 0x7F != 0x7F}
    asked = {x: value for x, value in values.items() if value.denominator == 1 and (x & 0x78 or not value)}
    for exact in range(-299, 300, 7):
        if 0 < abs(exact) * places < Fraction(2) ** (fmt.emin + 1) or abs(exact) > max(values.values()):
            continue  # beside subnormal numbers, or beyond all
        like = Fixed(constant(carrier, exact, 20), unit)
        found = {x for x in asked if nearest(constant(carrier, x, 8), fmt, like).value}
        least = min(abs(value - exact) for value in values.values())
        assert found == {x for x, value in asked.items() if abs(value - exact) == least}, exact


@pytest.mark.parametrize("name", ["markidis", "ootomo-yokota"])
@pytest.mark.parametrize("split", ["toward_zero", "nearest_even"])
def test_first_words(name: str, split: str) -> None:
    """Of numbers of f16 the factors are the first words: results are the same, step by step."""
    inputs = {"format": "f16", "a": [-6, 6], "b": [-6, 6], "c": [-12, 12]}
    claim = claim_of("finite(p)", terms=4, inputs=inputs, parts={"p": f"{name}@unit={VOLTA},split={split}"})
    short = claim.reshaped(whole=frozenset("p"))
    table = claim_rows(claim, 2000, 1)
    plain, whole = ({step: to_integers(bits, len(table)) for step, bits in lanes_of(each, table).steps("p").items()}
                    for each in (claim, short))  # fmt: skip
    assert plain.keys() == whole.keys()
    assert all(np.array_equal(plain[step], whole[step]) for step in plain)
    assert len(np.unique(plain[RESULT])) > 1000
    assert not evaluate_claim(claim, table).deciding.any()


def test_rows_of_the_table() -> None:
    """Of a property that fails both sides are in the row, with the result of each."""
    (claim,) = claims_named("symmetric-round-down@model=cdna3/mfma/f32_32x32x8_f16")
    document = decide(claim, Options(timeout=60)).document
    cells = [cell.strip() for cell in row(document, biased=False).strip("|\n ").split(" | ")]
    assert cells[:2] == [f"`{claim.id}`", "refuted, as the source says"]
    assert cells[2].startswith("simulated inputs")
    proof = document.counterexample
    assert proof is not None
    assert proof.vector is not None
    left, right = results_of(proof.sides, proof.vector.results)
    assert left in cells[3]
    assert right in cells[3]
    assert int(left, 16) ^ 0x80000000 != int(right, 16)
