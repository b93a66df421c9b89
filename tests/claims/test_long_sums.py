"""Claims about every number of products: the inputs that refute them beyond the few that terms of claims take."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.commands.verify import _products
from mmaprobe.cli.main import main
from mmaprobe.documents.parts import ABSENT
from mmaprobe.documents.verify import ClaimVector
from mmaprobe.hypotheses.claim import Claim, build_claims
from mmaprobe.queries.claims import verify as verifying
from mmaprobe.queries.claims.algorithms import AlgorithmOutcome
from mmaprobe.queries.claims.long_sums import Long, LongSums
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.smtmodel.base.yamlfile import read_yaml
from mmaprobe.smtmodel.evaluate.tiles import Matrix
from tests.oracles.claim_oracle import Rationals

TEXT = """id: long
terms: {multiples: 1, most: 1024}
inputs: {format: f16, a: [%d, 2], b: [%d, 2], c: zero}
parts: {p: "%s"}
claim: error(p) <= %s * magnitude_sum()
"""
FMA = "multiword@words=1,products=1,unit=ieee/fma/f32"


def claim_of(share: str, part: str = FMA) -> Claim:
    (claim,) = build_claims(read_yaml(TEXT % (-2, -2, part, share), "long.yaml"))
    assert isinstance(claim, Claim)
    return claim


def run(tmp_path: Path, claim: str) -> dict[str, object]:
    (tmp_path / "long.yaml").write_text(claim)
    store = str(tmp_path / "store.sqlite")
    result = CliRunner().invoke(main, ["verify", str(tmp_path / "long.yaml"), "--json", "--store", store])
    (document,) = json.loads(result.stdout)["claims"]
    return dict(document)


def test_long_sums_refute_what_short_ones_do_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("BRIEFLY", 0.5), ("LONGER", 4.0)):  # no short one does, however long it is looked
        monkeypatch.setattr(f"mmaprobe.queries.claims.verify.{name}", value)
    document = run(tmp_path, TEXT % (-2, -2, FMA, "2**-17"))
    assert document["verdict"] == "refuted"
    vector = document["vector"]
    assert isinstance(vector, dict)
    a, b = ([int(x, 16) for x in vector[side]] for side in "ab")
    assert 32 < len(a) <= 512  # no longer than it has to be
    assert Rationals(claim_of("2**-17").at(len(a)), (*a, *b, 0)).decides()


@pytest.mark.slow
def test_what_is_reached_comes_near_what_is_proved(tmp_path: Path) -> None:
    shares = run(tmp_path, TEXT % (-14, -14, FMA, "(terms() * 2**-23)"))["shares"]
    assert isinstance(shares, dict)
    proved, reached = Fraction(shares["proved"]), Fraction(shares["reached"])
    assert reached <= proved < 2 * reached


@pytest.mark.parametrize("terms", [2, 300])
def test_the_input_that_decides_is_among_what_is_reached(terms: int) -> None:
    """Climbing may end below it; what it reaches is its error over its sum of magnitudes, with c among both."""
    claim = claim_of("2**-17").at(terms)
    row = (*(0x3C00 + k % 7 for k in range(terms)), *(0x3C01 + k % 5 for k in range(terms)), 0)
    oracle = Rationals(claim, row)
    share = abs(oracle.value(("f32", oracle.results["p"])) - oracle.exact) / sum(map(abs, oracle.products))
    for reached, most in ((None, share), (share / 2, share), (2 * share + 1, 2 * share + 1)):
        found = AlgorithmOutcome(claim, row=row, reached=reached).shares.reached
        assert found is not None
        assert Fraction(found) == most
    assert AlgorithmOutcome(claim).shares is ABSENT


def test_a_share_that_no_time_was_left_to_prove_is_said_to_be_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ "nothing is proved" alone reads as if no bound were known."""
    path = tmp_path / "short.yaml"
    path.write_text((TEXT % (-2, -2, FMA, "2**-30")).replace("{multiples: 1, most: 1024}", "2"))
    shown = dict[bool, str]()
    for late in (True, False):
        with monkeypatch.context() as patched:
            if late:
                patched.setattr("mmaprobe.queries.claims.verify._Verifier.remaining", lambda self, share=1.0: 0.0)
            result = CliRunner().invoke(main, ["verify", str(path), "--store", str(tmp_path / f"{late}.sqlite")])
        assert "refuted" in result.output
        shown[late] = result.output
    assert "nothing is proved in the time given; 1." in shown[True]
    assert "is proved; 1." in shown[False]


def test_products_with_the_same_factors_share_a_line_of_a_long_input() -> None:
    """110 lines had one pair of numbers in runs of three."""
    a = ["0000" if k % 4 == 3 else "3c00" for k in range(80)]
    vector = ClaimVector(format="f16", c_format="f32", a=["4000", *a], b=["3c01"] * 81, c="00000000", exact="",
                         exact_decimal="", results={}, first_divergence=None)  # fmt: skip
    shown = [(places.format("a"), pair) for places, pair in _products(vector)]
    assert shown[0] == ("a0", ("4000", "3c01"))
    assert shown[1] == ("a1 to a3, a5 to a7, a9 to a11, ..., a77 to a79", ("3c00", "3c01"))
    assert len(shown) == 3  # zeros times a number are products with a nonzero factor, too
    short = replace(vector, a=["0000", "3c00", "3c00"], b=["0000", "3c00", "3c00"])
    assert [places.format("b") for places, _ in _products(short)] == ["b1", "b2"]


def test_long_sums_count_as_reached_if_their_search_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worst of the sums looked at so far; it was lost."""
    monkeypatch.setattr(verifying, "BRIEFLY", 0.2)
    results, looked = LongSums._results, list[int]()

    def interrupted(sums: LongSums, left: Matrix, right: Matrix) -> dict[str, Matrix]:
        looked.append(left.shape[1])
        if len(looked) == 4:
            raise KeyboardInterrupt
        return results(sums, left, right)

    monkeypatch.setattr(LongSums, "_results", interrupted)
    found = verifying.verify(claim_of("2**-17"), Options(timeout=30))
    reached = found.reached
    assert looked == [256] * 4
    assert reached is not None
    assert found.share is not None
    assert Fraction(1, 1 << 19) < reached < found.share  # more than any sum of 32 products


def test_what_is_reached_in_long_double_is_no_more_than_some_input_has() -> None:
    """And hardly less."""
    for seed in range(3):
        sums = LongSums(claim_of("2**-17"), [(0x3C00 + seed, 0x3C01, 0x3C00, 0x3C01 + seed, 0)])
        exact = max(one.share for longs in sums.worst(0) for one in longs if one.share is not None)
        assert exact * (1 - Fraction(1, 1 << 30)) < sums.least <= exact


def test_inputs_are_admitted_and_their_errors_exact() -> None:
    claim = claim_of("2**-17")
    seen = 0
    for longs in LongSums(claim, []).worst(0):
        for one in longs:
            oracle = Rationals(claim.at(one.terms), one.row)
            whole = sum(map(abs, oracle.products))
            assert one.share == abs(oracle.value(("f32", oracle.results["p"])) - oracle.exact) / whole
            assert all(x == 0 or -2 <= (x >> 10 & 31) - 15 <= 2 for x in one.row)
            seen += 1
    assert seen >= 6


@pytest.mark.slow
def test_an_overflow_of_a_long_sum_is_the_claim_s_fault(tmp_path: Path) -> None:
    f16 = "multiword@words=1,products=1,unit=volta/mma/m8n8k4.f16.f16.f16.f16"
    (tmp_path / "long.yaml").write_text((TEXT % (-2, -2, f16, "2")).replace("multiples: 1", "multiples: 4"))
    result = CliRunner().invoke(main, ["verify", str(tmp_path / "long.yaml"), "--store", str(tmp_path / "store")])
    assert result.exit_code == 2
    assert "gives no number for" in result.stderr


#: what is compared, conditions, and what they say of an input
ASKED: dict[str, tuple[str, list[str], Callable[[Rationals], bool]]] = {
    "every number of a side": ("error(p)", ["abs(a) <= 1", "nonzero(a)"],
                               lambda one: all(0 < abs(one.value(x)) <= 1 for x in one.number("a"))),
    "another result": ("error(p)", ["finite(q)", "value(q) < 1000"], lambda one: one.truth("value(q) < 1000")),
    "two results": ("abs(value(p) - value(q))", ["nonnegative(b)"], lambda one: one.truth("nonnegative(b)")),
}  # fmt: skip


@pytest.mark.parametrize("case", ASKED.values(), ids=ASKED)
def test_inputs_of_long_sums_meet_conditions(case: tuple[str, list[str], Callable[[Rationals], bool]]) -> None:
    compared, where, says = case
    text = (TEXT % (-2, -2, FMA, "2**-17")).replace("c: zero", f"c: zero, where: {json.dumps(where)}")
    text = text.replace("error(p)", compared).replace("parts: {", 'parts: {q: "cdna1/mfma/f32_32x32x8f16", ')
    (claim,) = build_claims(read_yaml(text, "long.yaml"))
    assert isinstance(claim, Claim)
    decided = set()
    for one in [one for longs in LongSums(claim, []).worst(0) for one in longs if one.share is not None]:
        oracle = Rationals(claim.at(one.terms), one.row)
        assert says(oracle)
        assert one.share == oracle.number(compared) / oracle.number("magnitude_sum()")
        assert one.decides == (one.share > Fraction(1, 1 << 17))
        decided.add(one.decides)
    assert decided


def test_claims_of_other_kinds_are_searched_with_many_products() -> None:
    """Two chains of positive numbers are further apart the longer they are."""
    text = (TEXT % (-2, -2, FMA, "1")).replace("error(p) <= 1 * magnitude_sum()", "distance(p, q) <= 60")
    text = text.replace("c: zero", 'c: zero, where: ["a > 0", "b > 0"]')
    (claim,) = build_claims(read_yaml(text.replace("parts: {", 'parts: {q: "plan:loop/pairwise", '), "long.yaml"))
    assert isinstance(claim, Claim)
    every = [one for longs in LongSums(claim, []).worst(0) for one in longs]
    assert {one.terms for one in every if one.decides} >= {1024}
    for one in every:
        p, q = (int(own.item()) for own in LongSums(claim, [])._results(*_sides(one)).values())
        assert one.decides == (abs(p - q) > 60)


def _sides(one: Long) -> tuple[Matrix, Matrix]:
    a, b = one.row[: one.terms], one.row[one.terms : -1]
    return np.array([a], dtype=np.uint64), np.array([b], dtype=np.uint64)


@pytest.mark.slow
def test_conditions_are_searched_with_many_products(tmp_path: Path) -> None:
    text = (TEXT % (-2, -2, FMA, "2**-17")).replace("c: zero", 'c: zero, where: ["abs(a) <= 2"]')
    assert run(tmp_path, text)["verdict"] == "refuted"
    text = (TEXT % (-2, -2, FMA, "(terms() * 2**-23)")).replace("c: zero", 'c: zero, where: ["value(p) > %d"]')
    assert run(tmp_path, text % 5000)["verdict"] == "holds"  # a sum of 32 products is below 2048
    (tmp_path / "long.yaml").write_text((text % (1 << 30)).replace("most: 1024", "most: 2"))
    result = CliRunner().invoke(main, ["verify", str(tmp_path / "long.yaml"), "--store", str(tmp_path / "store")])
    assert "no input meets all conditions" in result.stderr
